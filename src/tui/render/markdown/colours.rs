//! Where the colors of code come from: made on the spot, or brought by a thread beside the drawing.

use std::collections::VecDeque;

use super::scan::Step;
use super::{Coloured, Highlighter, Job, Runs, Theme, code_blocks, language};
use crate::stdx::text;

/// The colors of a segment's blocks of code.
pub(super) enum Colours {
    Here,
    /// Line by line, in order. A line beyond them is plain.
    Given(VecDeque<Runs>),
}

impl Colours {
    /// The rows' colors of one block.
    pub(super) fn open(&mut self, info: &str, theme: &Theme) -> Block<'_> {
        match self {
            Colours::Here => Block::Here(Highlighter::for_language(info, theme)),
            Colours::Given(lines) if language(info, theme).is_some() => Block::Given(lines),
            Colours::Given(_) => Block::Here(Highlighter::plain()),
        }
    }
}

/// The colors of one block, line by line.
pub(super) enum Block<'a> {
    Here(Highlighter),
    Given(&'a mut VecDeque<Runs>),
}

impl Block<'_> {
    pub(super) fn line(&mut self, line: &str, theme: &Theme) -> Vec<ratatui::text::Span<'static>> {
        match self {
            Block::Here(highlighter) => highlighter.line(line, theme),
            Block::Given(lines) => lines.pop_front().unwrap_or_default().spans(line, theme),
        }
    }
}

/// The lines of a block's code, as they are drawn.
pub(super) fn lines(code: &str) -> Vec<String> {
    text::clean(code).lines().map(str::to_owned).collect()
}

/// What a stream asked for and got.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    id: u64,
    asked: Vec<Job>,
    given: VecDeque<Runs>,
    /// The fenced block that is read has colors.
    open: bool,
    /// A look at the line under way was asked for and has not come.
    peeking: bool,
    peeked: Option<(String, Runs)>,
    /// Nothing comes anymore.
    over: bool,
}

impl Beside {
    pub(super) fn new(id: u64) -> Beside {
        let (asked, given, peeked) = (Vec::new(), VecDeque::new(), None);
        Beside { id, asked, given, open: false, peeking: false, peeked, over: false }
    }

    pub(super) fn works(&self) -> bool {
        !self.over
    }

    pub(super) fn give_up(&mut self) {
        self.over = true;
    }

    pub(super) fn take_jobs(&mut self) -> Option<(u64, Vec<Job>)> {
        (!self.asked.is_empty()).then(|| (self.id, std::mem::take(&mut self.asked)))
    }

    pub(super) fn take(&mut self, coloured: Coloured) {
        if coloured.stream != self.id {
            return;
        }
        self.given.extend(coloured.lines);
        if coloured.peeked.is_some() {
            self.peeking = false;
            self.peeked = coloured.peeked;
        }
    }

    /// Asks for the colors of a step; the number of lines that it waits for.
    pub(super) fn ask(&mut self, step: &Step, theme: &Theme) -> usize {
        if self.over {
            return 0;
        }
        let before = self.asked.len();
        match step {
            Step::FenceOpen { info, .. } => {
                let name = language(info, theme);
                self.open = name.is_some();
                self.asked.extend(name.map(|name| Job::Open(name.to_owned())));
                return 0;
            }
            Step::Code(line) if self.open => {
                self.asked.push(Job::Line(line.clone()));
                return 1;
            }
            Step::Segment { text, .. } if text.contains("```") || text.contains("~~~") => {
                for block in code_blocks(text) {
                    let Some(name) = language(&block.language, theme) else { continue };
                    self.asked.push(Job::Open(name.to_owned()));
                    self.asked.extend(lines(&block.code).into_iter().map(Job::Line));
                }
            }
            Step::FenceClose { .. } => self.open = false,
            Step::Code(_) | Step::Segment { .. } => {}
        }
        self.asked[before..].iter().filter(|job| matches!(job, Job::Line(_))).count()
    }

    /// Asks for a look at the line under way.
    pub(super) fn peek(&mut self, line: &str) {
        let known = self.peeked.as_ref().is_some_and(|(peeked, _)| peeked == line);
        if self.open && !self.peeking && !known && !self.over && !line.is_empty() {
            self.peeking = true;
            self.asked.push(Job::Peek(line.to_owned()));
        }
    }

    /// Whether what needs so many lines can be drawn for good.
    pub(super) fn has(&self, needs: usize) -> bool {
        self.over || self.given.len() >= needs
    }

    pub(super) fn give(&mut self, needs: usize) -> VecDeque<Runs> {
        self.given.drain(..needs.min(self.given.len())).collect()
    }

    /// The colors of a line of fenced code; those of its beginning where that is all there is.
    pub(super) fn give_line(&mut self, line: &str) -> Runs {
        self.given.pop_front().unwrap_or_else(|| {
            let begun = self.peeked.as_ref().filter(|(peeked, _)| line.starts_with(peeked.as_str()));
            begun.map(|(_, runs)| runs.clone()).unwrap_or_default()
        })
    }
}
