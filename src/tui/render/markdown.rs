//! Markdown to rows, all at once or as it streams in: the same rows either way.
//!
//! The text falls into top-level segments whose ends depend on nothing that comes later (`scan`). Each is drawn on its
//! own (`block`), code line by line. So what is finished costs nothing again, and never changes.

mod block;
mod colours;
mod scan;
mod table;

use std::collections::VecDeque;

use ratatui::style::Style;
use ratatui::text::Line;

use self::colours::{Beside, Colours};
use self::scan::{Scanner, Step};
use super::Row;
use super::highlight::beside::{Coloured, Job};
use super::highlight::{Highlighter, Runs, language};
use super::wrap;
use crate::stdx::text;
use crate::tui::theme::Theme;

/// Draws a whole text, which may hold anything: it is cleaned on the way.
pub fn render(source: &str, width: usize, theme: &Theme) -> Vec<Row> {
    Stream::new().finish(source, width, theme)
}

/// Whether fences and backticks are shown, since no color tells code from prose.
fn shows_fences(theme: &Theme) -> bool {
    theme.code == Style::new()
}

/// How much of a text may be read, so that no key waits for a flood to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    bytes: usize,
    lines: usize,
}

impl Share {
    pub const ALL: Share = Share { bytes: usize::MAX, lines: usize::MAX };
    /// What one frame reads: a few milliseconds of work, and a few screens.
    pub const FRAME: Share = Share { bytes: 16 * 1024, lines: 250 };

    pub fn is_spent(self) -> bool {
        self.bytes == 0 || self.lines == 0
    }

    /// Counts rows that were drawn without being read here.
    pub fn count(&mut self, rows: usize) {
        self.lines = self.lines.saturating_sub(rows);
    }

    /// The beginning of a text that there is room for; it counts.
    fn take<'a>(&mut self, text: &'a str) -> &'a str {
        let most = text.floor_char_boundary(self.bytes);
        let mut ends = text[..most].match_indices('\n');
        let end = match self.lines.checked_sub(1) {
            Some(last) => ends.nth(last).map_or(most, |(at, _)| at + 1),
            None => 0,
        };
        // What is left may be less than one character.
        self.bytes = if end == 0 && !text.is_empty() { 0 } else { self.bytes - end };
        self.lines -= text[..end].matches('\n').count();
        &text[..end]
    }
}

/// Most lines that wait for their colors before reading continues, and most bytes of them.
const WAITING: (usize, usize) = (1_000, 128 * 1024);

/// Draws a text that grows, each row once.
///
/// Every call gets the whole text so far, of which only the new part is read. The width may differ between calls: it
/// holds for the rows that the call returns.
#[derive(Debug, Clone)]
pub struct Stream {
    scanner: Scanner,
    /// Bytes of the text that were read.
    at: usize,
    /// Bytes of the text whose lines the scanner has.
    settled: usize,
    /// The line under way, cleaned.
    line: String,
    /// The colors of the fenced code under way, where they are made on the spot.
    code: Highlighter,
    /// Where they are made beside the drawing.
    beside: Option<Beside>,
    /// What waits for its colors, with the number of lines that it needs.
    waiting: VecDeque<(Step, usize)>,
    /// The text is complete.
    finished: bool,
    /// A row was returned.
    started: bool,
    /// A blank row is before the next one.
    gap: bool,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream::new()
    }
}

impl Stream {
    pub fn new() -> Stream {
        Stream {
            scanner: Scanner::new(),
            at: 0,
            settled: 0,
            line: String::new(),
            code: Highlighter::plain(),
            beside: None,
            waiting: VecDeque::new(),
            finished: false,
            started: false,
            gap: false,
        }
    }

    /// One whose code is coloured elsewhere: rows of code become final when `coloured` has brought their colors.
    pub fn beside(id: u64) -> Stream {
        Stream { beside: Some(Beside::new(id)), ..Stream::new() }
    }

    /// What is to be coloured since the last call.
    pub fn take_jobs(&mut self) -> Option<(u64, Vec<Job>)> {
        self.beside.as_mut().and_then(Beside::take_jobs)
    }

    /// Takes colors that were asked for. Those of another stream are dropped.
    pub fn coloured(&mut self, coloured: Coloured) {
        if let Some(beside) = &mut self.beside {
            beside.take(coloured);
        }
    }

    /// Waits for no colors anymore: what lacks them is plain, what follows is coloured on the spot.
    pub fn colour_here(&mut self) {
        if let Some(beside) = &mut self.beside {
            beside.give_up();
        }
    }

    /// Whether rows wait for their colors.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the text was said to be complete.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Bytes of the text that were read.
    pub fn read(&self) -> usize {
        self.at
    }

    /// So much waits for its colors that nothing more is read.
    pub fn is_full(&self) -> bool {
        let bytes = |(step, _): &(Step, usize)| step.bytes();
        self.waiting.len() >= WAITING.0 || self.waiting.iter().map(bytes).sum::<usize>() >= WAITING.1
    }

    /// The rows that became final: they do not depend on anything that may follow. No more is read than `share` allows.
    pub fn push(&mut self, source: &str, width: usize, theme: &Theme, share: &mut Share) -> Vec<Row> {
        let mut rows = Vec::new();
        let new = share.take(&source[self.at.min(source.len())..]);
        if new.is_empty() {
            return rows;
        }
        self.line.push_str(&text::clean(new));
        if let Some(end) = new.rfind('\n') {
            self.settled = self.at + end + 1;
        }
        self.at += new.len();
        let mut steps = Vec::new();
        let mut from = 0;
        while let Some((line, next)) = next_line(&self.line[from..]) {
            self.scanner.line(line, &mut steps);
            from += next;
        }
        self.line.drain(..from);
        self.ask(steps, theme);
        self.draw_ready(width, theme, &mut rows);
        rows
    }

    /// The rows that are left when the text is complete; without those that wait for colors: the same call returns them
    /// later.
    pub fn finish(&mut self, source: &str, width: usize, theme: &Theme) -> Vec<Row> {
        let mut rows = self.push(source, width, theme, &mut { Share::ALL });
        self.end(theme);
        self.draw_ready(width, theme, &mut rows);
        rows
    }

    /// The rows of what was read after those returned so far, as if the text ended here. Code whose colors are not there
    /// yet is plain.
    pub fn tail(&self, width: usize, theme: &Theme) -> Vec<Row> {
        let (mut all, mut rows) = (self.clone(), Vec::new());
        all.end(theme);
        while let Some((step, needs)) = all.waiting.pop_front() {
            all.draw(step, needs, width, theme, &mut rows);
        }
        rows
    }

    fn end(&mut self, theme: &Theme) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let mut steps = Vec::new();
        if !self.line.is_empty() {
            self.scanner.line(&std::mem::take(&mut self.line), &mut steps);
        }
        self.scanner.finish(&mut steps);
        self.ask(steps, theme);
    }

    /// Puts steps into the queue, and asks for the colors that they need.
    fn ask(&mut self, steps: Vec<Step>, theme: &Theme) {
        for step in steps {
            let needs = self.beside.as_mut().map_or(0, |beside| beside.ask(&step, theme));
            self.waiting.push_back((step, needs));
        }
        if let Some(beside) = &mut self.beside {
            beside.peek(&self.line);
        }
    }

    /// The rows whose colors have come.
    pub fn ready(&mut self, width: usize, theme: &Theme) -> Vec<Row> {
        let mut rows = Vec::new();
        self.draw_ready(width, theme, &mut rows);
        rows
    }

    fn draw_ready(&mut self, width: usize, theme: &Theme, rows: &mut Vec<Row>) {
        while let Some((_, needs)) = self.waiting.front() {
            if self.beside.as_ref().is_some_and(|beside| !beside.has(*needs)) {
                return;
            }
            if let Some((step, needs)) = self.waiting.pop_front() {
                self.draw(step, needs, width, theme, rows);
            }
        }
    }

    /// Forgets the line under way, so that another text may follow the returned number of bytes.
    pub fn rewind(&mut self) -> usize {
        self.line.clear();
        self.at = self.settled;
        self.settled
    }

    /// Whether any row was returned.
    pub fn started(&self) -> bool {
        self.started
    }

    fn draw(&mut self, step: Step, needs: usize, width: usize, theme: &Theme, rows: &mut Vec<Row>) {
        let given = self.beside.as_mut().filter(|_| needs > 0);
        let drawn = match step {
            Step::Segment { kind, text, gap } => {
                self.gap |= gap;
                let mut colours = given.map_or(Colours::Here, |beside| Colours::Given(beside.give(needs)));
                block::rows(kind, &text, width, theme, &mut colours)
            }
            Step::FenceOpen { info, fence } => {
                self.gap = true;
                self.code = match self.beside.as_ref().is_some_and(Beside::works) {
                    true => Highlighter::plain(),
                    false => Highlighter::for_language(&info, theme),
                };
                fence_rows(fence, width, theme)
            }
            Step::Code(line) => {
                let spans = match given {
                    Some(beside) => beside.give_line(&line).spans(&line, theme),
                    None => self.code.line(&line, theme),
                };
                wrap::cut(spans, width, &[])
            }
            Step::FenceClose { fence } => fence_rows(fence, width, theme),
        };
        if drawn.is_empty() {
            return;
        }
        if self.gap && self.started {
            rows.push(Row::default());
        }
        (self.gap, self.started) = (false, true);
        rows.extend(drawn);
    }
}

fn fence_rows(fence: String, width: usize, theme: &Theme) -> Vec<Row> {
    if !shows_fences(theme) {
        return Vec::new();
    }
    wrap::cut(Line::styled(fence, theme.dim).spans, width, &[])
}

/// The next complete line and the bytes it takes with its newline. A very long one is split, at a place that depends
/// on its beginning alone.
fn next_line(rest: &str) -> Option<(&str, usize)> {
    let head = rest.floor_char_boundary(scan::MAX_LINE);
    if let Some(end) = rest[..head].find('\n') {
        return Some((&rest[..end], end + 1));
    }
    if rest.len() < scan::MAX_LINE {
        return None;
    }
    let space = rest[..head].rfind(' ').filter(|at| *at > scan::MAX_LINE / 2);
    Some(space.map_or((&rest[..head], head), |at| (&rest[..at], at + 1)))
}

/// A block of code in a Markdown text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The info string of the fence; empty when it has none.
    pub language: String,
    pub code: String,
}

/// All blocks of code, nested ones included, in order.
pub fn code_blocks(source: &str) -> Vec<CodeBlock> {
    use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
    let mut blocks = Vec::new();
    let mut open: Option<CodeBlock> = None;
    for event in Parser::new(source) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                open = Some(CodeBlock { language, code: String::new() });
            }
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.code.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests;
