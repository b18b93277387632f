//! Draws the live region: running cells, todos, spinner, queue, then dialog or composer, then the status line.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::app::App;
use super::asks;
use super::composer::Mode;
use super::keymap::Action;
use super::paint;
use super::render::Row;
use super::terminal::Hold;
use crate::message::TodoStatus;
use crate::permission;
use crate::protocol::Delivery;

/// Most rows of the todo list and of the queue.
const TODOS: usize = 10;
const QUEUE: usize = 4;

/// Rows of each part below the running cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    todos: u16,
    spinner: u16,
    /// What was looked at meanwhile.
    panel: u16,
    queue: u16,
    /// The line of a question that waits.
    ask: u16,
    /// Dialog, list, or the composer between its rules.
    input: u16,
    popup: u16,
    /// The user's own status line.
    own: u16,
    status: u16,
}

impl Parts {
    fn sum(self) -> u16 {
        self.todos
            + self.spinner
            + self.panel
            + self.queue
            + self.ask
            + self.input
            + self.popup
            + self.own
            + self.status
    }
}

/// Rows that the live region wants, at most all of the screen; `live` is how many rows the running cells take.
pub fn height(app: &App, live: u16, width: u16, screen: u16) -> u16 {
    (parts(app, width, screen).sum() + live).min(screen)
}

/// Rows that the running cells may take: what is left, but not so much that a shrinking screen pushes them out. Where the
/// screen may become narrower before anybody knows, that is what is left when every row takes two.
pub fn live_room(app: &App, width: u16, screen: u16, hold: Hold) -> u16 {
    let rest = parts(app, width, screen).sum();
    let most = match hold {
        Hold::Loose => (screen / 2).max(6),
        Hold::Anchored | Hold::Low => (screen / 2).saturating_sub(rest).max(2),
    };
    screen.saturating_sub(rest).min(most)
}

/// Rows that the transcript has on a screen that is ours.
pub(super) fn body(app: &App) -> u16 {
    let (width, height) = app.size;
    height.saturating_sub(parts(app, width, height).sum())
}

/// Rows that a dialog may take of the screen.
pub(super) fn dialog_rows(app: &App) -> u16 {
    app.asks.open().map_or(app.size.1, |dialog| dialog.rows(app.size.1))
}

/// Draws everything but the transcript view and says where the cursor is; none hides it.
pub fn draw(app: &App, live: &[Row], area: Rect, buf: &mut Buffer, now: Instant) -> Option<Position> {
    let theme = app.theme();
    let parts = parts(app, area.width, area.height);
    let mut rest = area;
    let room = area.height.saturating_sub(parts.sum());
    let shown = &live[live.len().saturating_sub(room as usize)..];
    // Rows that nothing needs stay empty above the input, which keeps its place.
    let cells = paint::take(&mut rest, room);
    match &app.back {
        Some(back) => {
            back.draw(cells, buf, None, theme);
        }
        None => {
            for (row, y) in shown.iter().zip(cells.y..cells.bottom()) {
                buf.set_line(cells.x, y, &row.line, cells.width);
            }
        }
    }
    paint::lines(buf, paint::take(&mut rest, parts.todos), &todos(app, area.width as usize));
    let spinner = app.spinner.line(now, app.options.reduced_motion, area.width, theme);
    paint::lines(buf, paint::take(&mut rest, parts.spinner), spinner.as_slice());
    if let Some(panel) = &app.panel {
        panel.draw(paint::take(&mut rest, parts.panel), buf, &app.options.keymap.hint(Action::Cancel), theme);
    }
    paint::lines(buf, paint::take(&mut rest, parts.queue), &queue(app, area.width as usize));
    paint::lines(buf, paint::take(&mut rest, parts.ask), asks::line(app, area.width as usize).as_slice());

    let mut input = paint::take(&mut rest, parts.input);
    let cursor = if let Some(dialog) = app.asks.open() {
        dialog.draw(input, buf, app.asleep(), theme)
    } else if let Some(picker) = &app.picker {
        picker.draw(input, buf, theme)
    } else {
        let planning = app.status.mode == permission::Mode::Plan;
        let (label, style) = match (app.composer.mode == Mode::Shell, planning) {
            (true, _) => ("shell", theme.warning),
            (false, true) => ("plan · changes nothing", theme.mode_plan),
            (false, false) => ("", theme.border),
        };
        if input.height >= 3 {
            paint::rule(buf, paint::take(&mut input, 1), label, style);
            let rule = Rect { y: input.bottom() - 1, height: 1, ..input };
            paint::rule(buf, rule, "", style);
            input.height -= 1;
        }
        app.composer.draw(input, buf, theme)
    };
    if let Some(popup) = app.composer.popup() {
        popup.draw(paint::take(&mut rest, parts.popup), buf, theme);
    }
    paint::lines(buf, paint::take(&mut rest, parts.own), &own(app, area.width, dialog_open(app)));
    let (hint, urgent) = hint(app);
    paint::lines(buf, rest, &[app.status.line(&hint, urgent, area.width, theme)]);
    cursor
}

/// Draws the pager, or else the dialog that covers everything, over the whole (alternate) screen.
pub fn draw_over(app: &App, area: Rect, buf: &mut Buffer) -> Option<Position> {
    if let Some(pager) = app.pager() {
        return pager.draw(area, buf, app.alert(), app.theme());
    }
    let dialog = app.asks.open()?;
    let word = app.hint.as_ref().map(|hint| hint.text.as_str()).or(app.asleep());
    let mut rest = area;
    let body = paint::take(&mut rest, dialog.rows(area.height));
    let (hint, urgent) = hint(app);
    paint::lines(buf, rest, &[app.status.line(&hint, urgent, area.width, app.theme())]);
    dialog.draw(body, buf, word, app.theme())
}

/// Shares the rows out: input first, then status, spinner, popup, queue and todos as far as there is room.
fn parts(app: &App, width: u16, screen: u16) -> Parts {
    let mut left = screen;
    let mut share = |want: u16| {
        let got = want.min(left);
        left -= got;
        got
    };
    let dialog = app.asks.open();
    let status = share(u16::from(screen > 1 && !(app.linear && dialog.is_some())));
    let input = match (dialog, &app.picker) {
        (Some(dialog), _) => share(dialog.height(width, screen.saturating_sub(status), app.theme())),
        (None, Some(picker)) => share(picker.height(width, (app.size.1 / 3 * 2).max(6), app.theme())),
        (None, None) => {
            let text = app.composer.height(width, app.composer_rows());
            share(if app.size.1 >= 6 { text + 2 } else { text })
        }
    };
    let open = dialog_open(app);
    let ask = share(u16::from(app.asks.waiting().is_some()));
    let spinner = share(u16::from(app.spinner.busy() && app.asks.is_empty()));
    let popup = share(if open { 0 } else { app.composer.popup().map_or(0, |popup| popup.height()) });
    let own = share(own(app, width, open).len() as u16);
    let queue = share(queue(app, width as usize).len() as u16);
    let panel = app.panel.as_ref().filter(|_| !open).map_or(0, |panel| panel.height(width, app.size.1, app.theme()));
    let panel = share(panel);
    let todos = share(if dialog.is_some() { 0 } else { todos(app, width as usize).len() as u16 });
    Parts { todos, spinner, panel, queue, ask, input, popup, own, status }
}

fn dialog_open(app: &App) -> bool {
    app.asks.open().is_some() || app.picker.is_some()
}

/// The user's own status line, which makes room for what is asked.
fn own(app: &App, width: u16, open: bool) -> Vec<Line<'static>> {
    let own = app.status.own.as_ref().filter(|_| !open);
    own.map_or_else(Vec::new, |own| own.rows((width, app.size.1), app.theme()))
}

fn hint(app: &App) -> (String, bool) {
    let keymap = &app.options.keymap;
    if let Some(hint) = &app.hint {
        return (hint.text.clone(), true);
    }
    match app.asks.len() {
        0 | 1 => {}
        2 => return ("1 more question".to_owned(), false),
        all => return (format!("{} more questions", all - 1), false),
    }
    if app.spinner.in_turn() && !app.composer.is_empty() {
        let (now, later) = (keymap.hint(Action::Send), keymap.hint(Action::SendAfter));
        return (format!("{now} steers · {later} after the turn"), false);
    }
    if app.composer.has_stash() {
        return (format!("{} restores the stash", keymap.hint(Action::Stash)), false);
    }
    let todos = !app.todos.is_empty() && !app.show_todos;
    (if todos { format!("{} todos", keymap.hint(Action::Todos)) } else { "? keys".to_owned() }, false)
}

fn queue(app: &App, width: usize) -> Vec<Line<'static>> {
    let theme = app.theme();
    let hidden = app.queue.len().saturating_sub(QUEUE);
    let mut lines = Vec::new();
    if hidden > 0 {
        lines.push(Line::styled(paint::cut(&format!("  +{hidden} more waiting"), width), theme.dim));
    }
    for queued in &app.queue[hidden..] {
        let mark = match queued.delivery {
            Delivery::Steer => "↳ next step: ",
            Delivery::AfterTurn => "↳ when done: ",
        };
        let text = paint::cut(&queued.text, width.saturating_sub(paint::width(mark)));
        lines.push(Line::from(vec![Span::styled(mark, theme.accent), Span::styled(text, theme.dim)]));
    }
    lines
}

fn todos(app: &App, width: usize) -> Vec<Line<'static>> {
    if !app.show_todos {
        return Vec::new();
    }
    let theme = app.theme();
    let at = app.todos.iter().position(|todo| todo.status != TodoStatus::Completed).unwrap_or(0);
    let first = at.saturating_sub(2).min(app.todos.len().saturating_sub(TODOS));
    let row = |todo: &crate::message::Todo| {
        let (mark, words) = todo.line();
        Line::styled(paint::cut(&format!("{mark} {words}"), width), theme.todo(todo.status))
    };
    app.todos[first..].iter().take(TODOS).map(row).collect()
}
