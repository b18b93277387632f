//! Draws one segment of Markdown: nested lists, quotes, inline styles, and code and tables inside of them.

use std::ops::Range;
use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::colours::Colours;
use super::scan::Kind;
use super::table::{self, Table};
use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Piece, Prefix};
use crate::tui::theme::Theme;

/// Widest row of prose, in cells: longer ones are hard to read. Code and tables take what there is.
const PROSE: usize = 100;

/// Rows of a segment of clean source.
pub(super) fn rows(kind: Kind, source: &str, width: usize, theme: &Theme, colours: &mut Colours) -> Vec<Row> {
    if kind == Kind::Rule {
        return vec![Row::from(Line::styled("─".repeat(width.min(40)), theme.border))];
    }
    let source = keep_definitions(source);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut block = Block::new(kind, &source, width, theme, colours);
    for (event, range) in Parser::new_ext(&source, options).into_offset_iter() {
        block.event(event, range);
    }
    block.flush();
    block.rows
}

/// Link definitions would vanish, and the text that refers to them is in other segments: they are shown as text.
fn keep_definitions(source: &str) -> String {
    if !source.contains("]:") || source.contains("```") || source.contains("~~~") {
        return source.to_string();
    }
    let mut kept = String::with_capacity(source.len() + 8);
    for line in source.split_inclusive('\n') {
        let text = line.trim_start_matches([' ', '>', '-', '*', '+']);
        if text.starts_with('[') && text.contains("]:") {
            kept.push_str(&line[..line.len() - text.len()]);
            kept.push('\\');
            kept.push_str(text.trim_end());
            kept.push_str("  \n");
        } else {
            kept.push_str(line);
        }
    }
    kept
}

/// What an enclosing item or quote puts before each row.
struct Level {
    first: Span<'static>,
    rest: Span<'static>,
    /// Nothing was drawn in it yet.
    fresh: bool,
}

struct Block<'a> {
    source: &'a str,
    width: usize,
    theme: &'a Theme,
    colours: &'a mut Colours,
    rows: Vec<Row>,
    /// Inline text that is not wrapped yet.
    pieces: Vec<Piece>,
    styles: Vec<Style>,
    /// Targets of open links and images: what is opened by a click, and what is shown after the text.
    links: Vec<(Option<Arc<str>>, Option<String>)>,
    levels: Vec<Level>,
    /// Next numbers of the open lists.
    lists: Vec<Option<u64>>,
    /// The number of the outermost item, which is alone in its segment.
    ordinal: Option<u64>,
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Number of rows after the last blank one was added: blocks that begin at one place share it.
    spaced: usize,
}

impl<'a> Block<'a> {
    fn new(kind: Kind, source: &'a str, width: usize, theme: &'a Theme, colours: &'a mut Colours) -> Block<'a> {
        let ordinal = if let Kind::Item(number) = kind { number } else { None };
        let (rows, pieces, links, levels, lists) = Default::default();
        let styles = vec![theme.text];
        let (code, table, spaced) = (None, None, 0);
        Block {
            source,
            width,
            theme,
            colours,
            rows,
            pieces,
            styles,
            links,
            levels,
            lists,
            ordinal,
            code,
            table,
            spaced,
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range.start),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(code) => {
                let ticks = if super::shows_fences(self.theme) { "`" } else { "" };
                let style = self.style().patch(self.theme.code);
                self.text(&format!("{ticks}{code}{ticks}"), style);
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let name = html.trim().trim_matches(['<', '>', '/', ' ']);
                if name.eq_ignore_ascii_case("br") {
                    self.text("\n", self.style());
                } else {
                    self.text(&html, self.style());
                }
            }
            Event::SoftBreak => self.soft_break(range.end),
            Event::HardBreak => self.text("\n", self.style()),
            Event::Rule => {
                self.gap(range.start);
                let prefix = self.prefix();
                let columns = self.width.saturating_sub(prefix.width()).min(40);
                self.rows.extend(wrap::plain(&"─".repeat(columns), self.theme.border, self.width, &prefix));
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }, self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, self.style());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(at),
            Tag::Heading { .. } => {
                self.gap(at);
                self.push_style(self.theme.heading);
            }
            Tag::BlockQuote(_) => {
                self.gap(at);
                let bar = Span::styled("│ ", self.theme.quote);
                self.levels.push(Level { first: bar.clone(), rest: bar, fresh: true });
                self.push_style(self.theme.quote);
            }
            Tag::CodeBlock(kind) => {
                self.gap(at);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::List(number) => {
                self.gap(at);
                let number = if self.lists.is_empty() { self.ordinal.or(number) } else { number };
                self.lists.push(number);
            }
            Tag::Item => {
                self.gap(at);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => ["• ", "◦ ", "▪ "][(self.lists.len().max(1) - 1) % 3].to_string(),
                };
                let rest = Span::raw(" ".repeat(text::width(&mark)));
                self.levels.push(Level { first: Span::styled(mark, self.theme.dim), rest, fresh: true });
            }
            Tag::Table(aligns) => {
                self.gap(at);
                self.table = Some(Table { aligns, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.add(Modifier::ITALIC),
            Tag::Strong => self.add(Modifier::BOLD),
            Tag::Strikethrough => self.add(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => {
                let opens = ["http://", "https://", "file://"].iter().any(|scheme| dest_url.starts_with(scheme));
                let target = dest_url.to_string();
                self.links.push(if opens { (Some(target.into()), None) } else { (None, Some(target)) });
                self.push_style(self.theme.link);
            }
            Tag::Image { dest_url, .. } => {
                self.text("image: ", self.style().patch(self.theme.dim));
                self.links.push((None, Some(dest_url.to_string())));
                self.push_style(self.theme.dim);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.levels.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.code_rows(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                if self.levels.last().is_some_and(|level| level.fresh) {
                    let prefix = self.prefix();
                    self.rows.push(Row::from(Line::from(prefix.first)));
                }
                self.levels.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let prefix = self.prefix();
                    self.rows.extend(table::rows(&table, self.width, self.theme, &prefix));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((_, Some(target))) = self.links.pop()
                    && !target.is_empty()
                {
                    self.text(&format!(" ({target})"), self.style().patch(self.theme.dim));
                }
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn add(&mut self, modifier: Modifier) {
        self.styles.push(self.style().add_modifier(modifier));
    }

    fn text(&mut self, text: &str, style: Style) {
        let link = self.links.last().and_then(|(link, _)| link.clone());
        // Entities of the source can stand for anything.
        let text = text::clean(text);
        match self.pieces.last_mut() {
            Some(last) if last.style == style && last.link == link => last.text.push_str(&text),
            _ => self.pieces.push(Piece { text: text.into_owned(), style, link }),
        }
    }

    /// A line break of the source is a space, but not between characters of scripts that are written without.
    fn soft_break(&mut self, next: usize) {
        let wide = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && text::width(c.encode_utf8(&mut [0; 4])) == 2);
        let before = self.pieces.last().and_then(|piece| piece.text.chars().next_back());
        let after = self.source[next..].trim_start_matches([' ', '>', '\n']).chars().next();
        if !(wide(before) && wide(after)) {
            self.text(" ", self.style());
        }
    }

    /// Begins a block: ends the one before, with a blank row where the source has one.
    fn gap(&mut self, at: usize) {
        self.flush();
        let fresh = self.levels.last().is_some_and(|level| level.fresh);
        let line = self.source[..at].rfind('\n');
        let before = line.map(|end| self.source[..end].rsplit('\n').next().unwrap_or_default());
        let blank = before.is_some_and(|before| before.trim_matches([' ', '>']).is_empty());
        if self.rows.len() == self.spaced || fresh || !blank {
            return;
        }
        let bar = self.levels.iter().rposition(|level| level.rest.content.starts_with('│'));
        let row = match bar {
            Some(_) => Row::from(Line::from(self.prefix().rest)),
            None => Row::default(),
        };
        self.rows.push(row);
        self.spaced = self.rows.len();
    }

    /// What is before the next row. Of deep nesting the outer levels are left out: text keeps half of the width.
    fn prefix(&mut self) -> Prefix {
        let mut prefix = Prefix::default();
        let mut used = 0;
        for level in self.levels.iter_mut().rev() {
            used += text::width(&level.rest.content);
            if used > self.width / 2 {
                break;
            }
            prefix.first.push(if level.fresh { level.first.clone() } else { level.rest.clone() });
            prefix.rest.push(level.rest.clone());
            level.fresh = false;
        }
        // Also where its mark found no room.
        if let Some(level) = self.levels.last_mut() {
            level.fresh = false;
        }
        prefix.first.reverse();
        prefix.rest.reverse();
        prefix
    }

    /// Wraps the inline text so far.
    fn flush(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        while let Some(last) = pieces.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            pieces.pop();
        }
        if !pieces.is_empty() {
            let prefix = self.prefix();
            self.rows.extend(wrap::wrap(&pieces, self.width.min(PROSE), &prefix));
        }
    }

    fn code_rows(&mut self) {
        let Some((info, code)) = self.code.take() else { return };
        let language = info.clone();
        let prefix = self.prefix();
        let fence = super::shows_fences(self.theme).then(|| Span::styled("```", self.theme.dim));
        let mut lead = prefix.first;
        if let Some(fence) = &fence {
            let mut spans = lead.clone();
            spans.extend([fence.clone(), Span::styled(info, self.theme.dim)]);
            self.rows.extend(wrap::cut(spans, self.width, &[]));
            lead = prefix.rest.clone();
        }
        let mut painted = self.colours.open(&language, self.theme);
        for line in super::colours::lines(&code) {
            self.rows.extend(wrap::cut(painted.line(&line, self.theme), self.width, &lead));
            lead = prefix.rest.clone();
        }
        if let Some(fence) = fence {
            self.rows.extend(wrap::cut(vec![fence], self.width, &prefix.rest));
        }
    }
}
