//! What a command that only looks has found while the agent works: above the composer, until Esc closes it.

mod tasks;

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::tasks::Tasks;
pub use self::tasks::Wish;
use super::msg::Effect;
use super::paint;
use super::render::{Row, markdown, wrap};
use super::theme::Theme;
use crate::commands::Builtin;
use crate::protocol::Op;
use crate::protocol::report::Report;
use crate::report;

/// Columns that its borders take.
const SIDES: u16 = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    title: String,
    /// Markdown.
    source: String,
    /// In place of that: a list of what runs.
    tasks: Option<Tasks>,
    /// The first row that is shown.
    top: usize,
    /// When what it shows is asked for again; none where that changes only with what the user does.
    due: Option<Instant>,
}

/// How often that is.
const AGAIN: Duration = Duration::from_secs(1);

fn title(command: Builtin) -> String {
    format!("/{}", command.name())
}

impl Panel {
    /// A panel for what a command has found; none for news of what was done.
    pub fn of(found: &Report) -> Option<Panel> {
        let command = match found {
            Report::Commands(_) => Builtin::Help,
            Report::Models(_) => Builtin::Model,
            Report::Rules(_) | Report::Verdict(_) => Builtin::Permissions,
            Report::Sessions(_) => Builtin::Resume,
            Report::Window(_) => Builtin::Context,
            Report::Cost(_) | Report::Broken(_) => Builtin::Cost,
            Report::Changes(_) => Builtin::Diff,
            Report::Todos(_) => Builtin::Todos,
            Report::Tasks(_) => Builtin::Tasks,
            Report::Settings(_) => Builtin::Config,
            Report::Skills(_) => Builtin::Skills,
            Report::Doctor(_) => Builtin::Doctor,
            Report::Hooks(_) => Builtin::Hooks,
            Report::Plugins(_) => Builtin::Plugin,
            Report::Status(_) => Builtin::Status,
            Report::Sandbox(_) => Builtin::Sandbox,
            Report::Agents(_) => Builtin::Agents,
            Report::Servers(_) => Builtin::Mcp,
            Report::Memory(_) => Builtin::Memory,
            Report::Thinking(_)
            | Report::ServersChanged(_)
            | Report::SettingChanged(_)
            | Report::BugReport(_)
            | Report::Plan(_)
            | Report::Ended(_)
            | Report::Freed(_) => return None,
        };
        let tasks = if let Report::Tasks(rows) = found { Some(Tasks::of(rows)) } else { None };
        Some(Panel { title: title(command), source: report::markdown(found), tasks, top: 0, due: None })
    }

    /// The same in the place of what is open. Commands in the background are looked at for as long as it is.
    pub fn renewed(self, open: Option<Panel>, live: bool, now: Instant) -> Panel {
        let due = (live && self.is_of(Builtin::Tasks)).then_some(now + AGAIN);
        let open = open.filter(|open| open.title == self.title);
        let before = open.as_ref().and_then(|open| open.tasks.as_ref());
        let tasks = self.tasks.map(|tasks| tasks.choosing(before));
        Panel { top: open.as_ref().map_or(0, |open| open.top), due, tasks, ..self }
    }

    pub fn is_of(&self, command: Builtin) -> bool {
        self.title == title(command)
    }

    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Asks for what it shows again where that is due by then.
    pub fn ask(&mut self, by: Option<Instant>) -> Option<Effect> {
        self.due.take_if(|due| by.is_none_or(|by| *due <= by))?;
        Some(Effect::Send(Op::Command { name: Builtin::Tasks.name().to_owned(), args: String::new() }))
    }

    /// Whether that was asked for, and has not come.
    pub fn is_asking(&self) -> bool {
        self.is_of(Builtin::Tasks) && self.due.is_none()
    }

    /// Takes a key that is not for the composer, on a screen of this size.
    pub fn key(&mut self, key: KeyEvent, (width, screen): (u16, u16), theme: &Theme) -> Option<Wish> {
        let wish = self.tasks.as_mut()?.key(key)?;
        let room = usize::from(self.height(width, screen, theme).saturating_sub(2)).max(1);
        let at = self.tasks.as_ref().map_or(0, Tasks::at);
        self.top = self.top.clamp((at + 1).saturating_sub(room), at);
        Some(wish)
    }

    fn rows(&self, width: u16, theme: &Theme) -> Vec<Row> {
        if let Some(tasks) = &self.tasks {
            return tasks.rows(usize::from(width.saturating_sub(SIDES)), theme);
        }
        markdown::render(self.source.trim(), usize::from(width.saturating_sub(SIDES)).max(1), theme)
    }

    /// Rows that it takes of a screen.
    pub fn height(&self, width: u16, screen: u16, theme: &Theme) -> u16 {
        let rows = u16::try_from(self.rows(width, theme).len()).unwrap_or(u16::MAX);
        rows.saturating_add(2).min((screen / 2).max(4))
    }

    /// Goes on by a page in a panel as high as on this screen.
    pub fn page(&mut self, by: isize, (width, screen): (u16, u16), theme: &Theme) {
        let room = usize::from(self.height(width, screen, theme).saturating_sub(2)).max(1);
        // It may have got less room than it wants.
        let last = self.rows(width, theme).len().saturating_sub(room.min(4));
        self.top = self.top.saturating_add_signed(by * room as isize).min(last);
    }

    pub fn draw(&self, area: Rect, buf: &mut Buffer, close: &str, theme: &Theme) {
        if area.height < 3 || area.width < SIDES + 2 {
            return;
        }
        let width = usize::from(area.width);
        let rows = self.rows(area.width, theme);
        let room = usize::from(area.height) - 2;
        let top = self.top.min(rows.len().saturating_sub(room));
        let more = rows.len() - top - room.min(rows.len() - top);
        let title = paint::cut(&self.title, width.saturating_sub(6));
        let fits = |keys: &String| paint::width(keys) + paint::width(&title) + 8 <= width;
        let scrolls =
            [format!("{top}↑ {more}↓ PgUp/PgDn · {close} closes"), format!("{top}↑ {more}↓ · {close} closes")];
        let scrolls = scrolls.into_iter().filter(|_| rows.len() > room);
        let own = self.tasks.as_ref().map(|tasks| tasks.keys(close)).unwrap_or_default();
        let keys = own.into_iter().chain(scrolls).chain([format!("{close} closes")]).find(fits).unwrap_or_default();
        let fill = width.saturating_sub(paint::width(&title) + paint::width(&keys) + 6);
        let head = Line::from(vec![
            Span::styled("┌ ", theme.border),
            Span::styled(title, theme.heading),
            Span::styled(format!(" {} ", "─".repeat(fill)), theme.border),
            Span::styled(keys, theme.dim),
            Span::styled(" ┐", theme.border),
        ]);
        let foot = Line::styled(format!("└{}┘", "─".repeat(width - 2)), theme.border);
        buf.set_line(area.x, area.y, &head, area.width);
        buf.set_line(area.x, area.bottom() - 1, &foot, area.width);
        let empty = Row::default();
        for (at, y) in (area.y + 1..area.bottom() - 1).enumerate() {
            let row = rows.get(top + at).unwrap_or(&empty);
            buf.set_string(area.x, y, "│", theme.border);
            let spans = wrap::clip(row.line.spans.clone(), width - usize::from(SIDES));
            buf.set_line(area.x + 2, y, &Line::from(spans).style(row.line.style), area.width - SIDES);
            buf.set_string(area.right() - 1, y, "│", theme.border);
        }
    }
}
