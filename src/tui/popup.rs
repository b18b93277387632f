//! The list under the composer: files after `@`, commands after `/`.

use std::ops::Range;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paint;
use super::theme::Theme;

/// Most rows that a popup takes.
const ROWS: usize = 8;

/// A command as the composer offers it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandInfo {
    /// Without its slash.
    pub name: String,
    pub aliases: Vec<String>,
    pub description: String,
    /// What its arguments look like; may be empty.
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Files,
    Commands,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What is put into the text, without `@` or `/`.
    pub name: String,
    pub detail: String,
}

/// An open popup.
#[derive(Debug, Clone, PartialEq)]
pub struct Popup {
    pub kind: Kind,
    /// What it replaces in the text, with its `@` or `/`.
    pub range: Range<usize>,
    pub query: String,
    pub items: Vec<Item>,
    pub selected: usize,
}

impl Popup {
    pub fn item(&self) -> Option<&Item> {
        self.items.get(self.selected)
    }

    /// Moves the selection around the list.
    pub fn step(&mut self, by: isize) {
        let most = self.items.len() as isize;
        if most > 0 {
            self.selected = (self.selected as isize + by).rem_euclid(most) as usize;
        }
    }

    pub fn height(&self) -> u16 {
        self.items.len().min(ROWS) as u16
    }

    pub fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let rows = area.height as usize;
        let first = self.selected.saturating_sub(rows.saturating_sub(1));
        let mark = if self.kind == Kind::Commands { "/" } else { "" };
        let shown = &self.items[first..(first + rows).min(self.items.len())];
        let names = shown.iter().map(|item| paint::width(&item.name) + mark.len()).max().unwrap_or(0);
        let room = (area.width as usize).saturating_sub(2);
        let column = if shown.iter().all(|item| item.detail.is_empty()) { room } else { names.min(room * 2 / 3) };
        let lines: Vec<Line> = shown
            .iter()
            .enumerate()
            .map(|(at, item)| {
                let chosen = first + at == self.selected;
                let style = if chosen { theme.selected } else { theme.text };
                let name = paint::cut(&format!("{mark}{}", item.name), column);
                let gap = " ".repeat(column.saturating_sub(paint::width(&name)) + 2);
                let detail = paint::cut(&item.detail, room.saturating_sub(column + 2));
                Line::from(vec![
                    Span::styled(if chosen { "› " } else { "  " }, theme.accent),
                    Span::styled(name, style),
                    Span::styled(gap + &detail, theme.dim),
                ])
            })
            .collect();
        paint::lines(buf, area, &lines);
    }
}

/// The best of `names` for a fuzzy query, best first, at most `most`. An empty query keeps the order.
pub fn ranked<'a>(query: &str, names: impl Iterator<Item = &'a str>, config: Config, most: usize) -> Vec<usize> {
    if query.is_empty() {
        return (0..names.take(most).count()).collect();
    }
    let mut matcher = Matcher::new(config);
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, usize, usize)> = names
        .enumerate()
        .filter_map(|(at, name)| {
            let score = pattern.score(Utf32Str::new(name, &mut buffer), &mut matcher)?;
            Some((score, name.len(), at))
        })
        .collect();
    scored.sort_by_key(|(score, len, at)| (std::cmp::Reverse(*score), *len, *at));
    scored.into_iter().take(most).map(|(_, _, at)| at).collect()
}

/// Commands that fit a query: names that begin with it first, then fuzzy ones. An alias counts for its command.
pub fn commands(query: &str, all: &[CommandInfo]) -> Vec<Item> {
    let names: Vec<(&str, usize)> = all
        .iter()
        .enumerate()
        .flat_map(|(at, command)| {
            std::iter::once(&command.name).chain(&command.aliases).map(move |name| (name.as_str(), at))
        })
        .collect();
    let mut order: Vec<usize> = if query.is_empty() {
        (0..all.len()).collect()
    } else {
        let fuzzy = ranked(query, names.iter().map(|(name, _)| *name), Config::DEFAULT, usize::MAX);
        let (begin, rest): (Vec<usize>, Vec<usize>) = fuzzy.into_iter().partition(|at| names[*at].0.starts_with(query));
        begin.into_iter().chain(rest).map(|at| names[at].1).collect()
    };
    let mut seen = vec![false; all.len()];
    order.retain(|at| !std::mem::replace(&mut seen[*at], true));
    let item = |at: usize| {
        let command = &all[at];
        let detail = match command.hint.as_str() {
            "" => command.description.clone(),
            hint => format!("{hint}  {}", command.description),
        };
        Item { name: command.name.clone(), detail }
    };
    order.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<CommandInfo> {
        [("clear", "new", ""), ("cost", "", ""), ("model", "", "[id]"), ("resume", "continue", "[session]")]
            .map(|(name, alias, hint)| CommandInfo {
                name: name.into(),
                aliases: [alias].iter().filter(|alias| !alias.is_empty()).map(|alias| (*alias).into()).collect(),
                description: format!("about {name}"),
                hint: hint.into(),
            })
            .into()
    }

    #[test]
    fn commands_match_by_name_alias_and_fuzzily() {
        let check = |query: &str, want: &[&str]| {
            let names: Vec<String> = commands(query, &some()).into_iter().map(|item| item.name).collect();
            assert_eq!(names, want, "{query}");
        };
        check("", &["clear", "cost", "model", "resume"]);
        check("co", &["cost", "resume"]);
        check("clr", &["clear"]);
        check("new", &["clear"]);
        check("zzz", &[]);
        assert_eq!(commands("mod", &some())[0].detail, "[id]  about model");
    }
}
