//! The list under the composer: files after `@`, commands after `/`.

use std::ops::Range;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::paint;
use super::theme::Theme;
use crate::commands::{Command, Registry};

/// Most rows that a popup takes.
const ROWS: usize = 8;
/// Most commands that it scrolls through: nobody reads on.
const MOST: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Files,
    Commands,
    /// Skills named in the middle of a text: they are completed there, not run.
    Skills,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What is put into the text, without `@` or `/`.
    pub name: String,
    pub detail: String,
    /// What may follow a command.
    pub hint: String,
    /// Where a command is from; empty for built-ins and files.
    pub tag: String,
    /// The color that a skill gives itself.
    pub colour: Option<(u8, u8, u8)>,
    /// What the composer offers to write behind it.
    pub placeholder: Option<String>,
}

impl Item {
    pub fn file(name: String) -> Item {
        Item { name, detail: String::new(), hint: String::new(), tag: String::new(), colour: None, placeholder: None }
    }
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
    /// Somebody chose in it.
    pub moved: bool,
}

impl Popup {
    pub fn item(&self) -> Option<&Item> {
        self.items.get(self.selected)
    }

    /// Whether Enter may run the selected command: what was typed is the beginning of one of its names, or it was chosen by
    /// hand. What only has the same letters may be anything.
    pub fn means(&self, commands: &Registry) -> bool {
        let typed = self.query.to_lowercase();
        let Some(command) = self.item().and_then(|item| commands.find(&item.name)) else { return self.moved };
        let parts = command.name.split(':').next_back().into_iter();
        let mut names = parts.chain([command.name.as_str()]).chain(command.aliases.iter().map(String::as_str));
        self.moved
            || names.any(|name| name.to_lowercase().starts_with(&typed))
            || commands.find(&typed) == Some(command)
    }

    /// Moves the selection around the list.
    pub fn step(&mut self, by: isize) {
        self.moved = true;
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
        let mark = if self.kind == Kind::Files { "" } else { "/" };
        let shown = &self.items[first..(first + rows).min(self.items.len())];
        let names = shown.iter().map(|item| paint::width(&item.name) + mark.len()).max().unwrap_or(0);
        let room = (area.width as usize).saturating_sub(2);
        let column = if shown.iter().all(|item| item.detail.is_empty()) { room } else { names.min(room * 2 / 3) };
        let of = if self.items.len() < MOST { self.items.len().to_string() } else { format!("{MOST}+") };
        let place = format!("{}/{of}", self.selected + 1);
        // The description needs the room first.
        let aside = |item: &Item, chosen: bool| -> String {
            let wide = |word: &str| {
                let described = paint::width(&item.detail).min(30);
                room >= column + 2 + described + 2 + paint::width(word)
            };
            let hint = if item.hint.is_empty() { String::new() } else { format!("[{}]", item.hint) };
            let words = match chosen && self.items.len() > 1 {
                true => [place.clone(), String::new()],
                false if item.tag.is_empty() => [hint, String::new()],
                false => [item.tag.clone(), String::new()],
            };
            words.into_iter().find(|word| wide(word)).unwrap_or_default()
        };
        let lines: Vec<Line> = shown
            .iter()
            .enumerate()
            .map(|(at, item)| {
                let chosen = first + at == self.selected;
                let style = match (chosen, item.colour) {
                    (true, _) => theme.selected,
                    (false, Some((red, green, blue))) => theme.depth.adapt(theme.text.fg(Color::Rgb(red, green, blue))),
                    (false, None) => theme.text,
                };
                let name = paint::cut(&format!("{mark}{}", item.name), column);
                let gap = " ".repeat(column.saturating_sub(paint::width(&name)) + 2);
                let aside = aside(item, chosen);
                let kept = if aside.is_empty() { 0 } else { paint::width(&aside) + 2 };
                let mut detail = paint::cut(&item.detail, room.saturating_sub(column + 2 + kept));
                if !aside.is_empty() {
                    let filled = column + 2 + paint::width(&detail) + paint::width(&aside);
                    detail.push_str(&" ".repeat(room.saturating_sub(filled)));
                    detail.push_str(&aside);
                }
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

/// Commands that fit a query, best first; skills alone where only those are meant.
pub fn commands(query: &str, registry: &Registry, kind: Kind) -> Vec<Item> {
    let item = |command: &Command| {
        let interface = command.interface.as_ref();
        let title = interface.and_then(|interface| interface.display_name.as_deref());
        let summary = [title, Some(command.summary())].into_iter().flatten().collect::<Vec<_>>().join(": ");
        // Brackets of its own are not doubled.
        let hint = command.argument_hint.as_deref().unwrap_or_default().trim();
        let bare =
            hint.strip_prefix('[').and_then(|hint| hint.strip_suffix(']')).filter(|hint| !hint.contains(['[', ']']));
        Item {
            name: command.name.clone(),
            detail: summary,
            hint: bare.unwrap_or(hint).to_owned(),
            tag: command.source().map(|source| source.tag().to_owned()).unwrap_or_default(),
            colour: interface.and_then(|interface| interface.brand_color),
            placeholder: interface.and_then(|interface| interface.default_prompt.clone()),
        }
    };
    let fits = |command: &Command| kind != Kind::Skills || command.source().is_some();
    registry
        .complete(query)
        .into_iter()
        .map(|row| row.command)
        .filter(|command| fits(command))
        .take(MOST)
        .map(item)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Registry {
        let wanted = ["clear", "cost", "model", "resume"];
        let all = Registry::builtin();
        let some = all.all().filter(|command| wanted.contains(&command.name.as_str())).cloned();
        let mut some: Vec<Command> = some.collect();
        some.sort_by(|a, b| a.name.cmp(&b.name));
        some.iter_mut().for_each(|command| command.description = format!("about {}", command.name));
        Registry::of(some)
    }

    #[test]
    fn commands_match_by_name_alias_and_fuzzily() {
        let check = |query: &str, want: &[&str]| {
            let names: Vec<String> =
                commands(query, &some(), Kind::Commands).into_iter().map(|item| item.name).collect();
            assert_eq!(names, want, "{query}");
        };
        check("", &["clear", "cost", "model", "resume"]);
        check("co", &["cost", "resume"]);
        check("clr", &["clear"]);
        check("new", &["clear"]);
        check("zzz", &[]);
        assert_eq!(commands("", &some(), Kind::Skills), [], "built-ins are not skills");
        let model = &commands("mod", &some(), Kind::Commands)[0];
        assert_eq!((model.detail.as_str(), model.hint.as_str()), ("about model", "[provider/]id"));
    }
}
