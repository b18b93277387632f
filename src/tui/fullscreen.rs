//! The session on a screen of its own: scrolled through with keys and the wheel, copied from with the mouse.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Position;

use super::app::App;
use super::asks;
use super::dialog::Dialog;
use super::keymap::Action;
use super::lists;
use super::msg::Effect;
use super::pager::Pager;
use super::terminal::Mouse;
use super::view;
use super::viewer::{show_transcript, want_log};

/// Rows for one step of the wheel.
const WHEEL: isize = 3;

/// What the mouse is at.
#[derive(Debug, Default)]
pub(super) struct Pointer {
    /// Where its button went down, as long as it is.
    pressed: Option<Position>,
    /// The end was left for it.
    left_end: bool,
}

/// Takes a key that scrolls; the others are for the composer.
pub(super) fn key(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Option<Vec<Effect>> {
    if !app.fullscreen || app.panel.is_some() {
        return None;
    }
    let code = match (action?, key.code) {
        (Action::PageUp, _) => KeyCode::PageUp,
        (Action::PageDown, _) => KeyCode::PageDown,
        // In a text they go to the ends of its lines.
        (Action::LineStart, KeyCode::Home) if app.composer.is_empty() => KeyCode::Home,
        (Action::LineEnd, KeyCode::End) if app.composer.is_empty() => KeyCode::End,
        _ => return None,
    };
    let up = matches!(code, KeyCode::PageUp | KeyCode::Home);
    Some(scroll(app, up, now, |back, height| {
        back.key(KeyEvent::from(code), height);
    }))
}

/// Takes what the mouse does.
pub(super) fn mouse(app: &mut App, mouse: Mouse, now: Instant) -> Vec<Effect> {
    if !app.fullscreen {
        return Vec::new();
    }
    match mouse {
        Mouse::WheelUp => wheel(app, -WHEEL, now),
        Mouse::WheelDown => wheel(app, WHEEL, now),
        Mouse::Pressed(at) => press(app, at),
        Mouse::Dragged(at) => drag(app, at, now),
        Mouse::Released(_) => release(app),
    }
}

fn wheel(app: &mut App, by: isize, now: Instant) -> Vec<Effect> {
    let height = app.size.1;
    if let Some(pager) = &mut app.pager {
        pager.scroll(by, height);
        return want_log(app).into_iter().collect();
    }
    let key = |up, down| KeyEvent::from(if by < 0 { up } else { down });
    if app.asks.open().is_some_and(Dialog::covers) {
        let key = key(KeyCode::PageUp, KeyCode::PageDown);
        return asks::key(app, key, app.options.keymap.action(key), now).unwrap_or_default();
    }
    if app.picker.is_some() && app.asks.open().is_none() {
        return lists::key(app, key(KeyCode::Up, KeyCode::Down), None, now);
    }
    scroll(app, by < 0, now, |back, height| back.scroll(by, height))
}

/// Scrolls, and leaves or finds the end.
fn scroll(app: &mut App, up: bool, now: Instant, by: impl FnOnce(&mut Pager, u16)) -> Vec<Effect> {
    let mut effects = Vec::new();
    if up && app.back.is_none() {
        effects = open(app, now);
    }
    let height = view::body(app);
    let Some(back) = &mut app.back else { return effects };
    by(back, height);
    if up {
        back.await_older();
    }
    effects.extend(want_log(app));
    effects.extend(settle(app));
    effects
}

fn open(app: &mut App, now: Instant) -> Vec<Effect> {
    app.back = Some(Box::new(Pager::above()));
    show_transcript(app, now)
}

/// At the end there is nothing to scroll back from, unless the mouse holds it.
fn settle(app: &mut App) -> Option<Effect> {
    let ended = app.back.as_ref().is_some_and(|back| back.at_end()) && app.pointer.pressed.is_none();
    if ended { app.close_back() } else { None }
}

/// What the mouse is over, with the rows of its place; none above other things.
fn under(app: &mut App) -> Option<(&mut Pager, u16)> {
    let height = view::body(app);
    match (&mut app.pager, &mut app.back) {
        (Some(pager), _) => Some((pager, app.size.1)),
        (None, Some(back)) if !app.asks.open().is_some_and(Dialog::covers) => Some((back, height)),
        _ => None,
    }
}

fn press(app: &mut App, at: Position) -> Vec<Effect> {
    let below = app.pager.is_none() && app.back.is_some() && at.y + 1 == view::body(app);
    if below {
        return app.close_back().into_iter().collect();
    }
    app.pointer = Pointer { pressed: Some(at), left_end: false };
    if let Some((pager, _)) = under(app) {
        pager.unmark();
    }
    Vec::new()
}

fn drag(app: &mut App, at: Position, now: Instant) -> Vec<Effect> {
    let mut effects = Vec::new();
    let Some(pressed) = app.pointer.pressed else { return effects };
    let (over, body) = (app.pager.is_some() || app.asks.open().is_some_and(Dialog::covers), view::body(app));
    if !over && pressed.y >= body {
        return effects;
    }
    if !over && app.back.is_none() {
        effects = open(app, now);
        app.pointer.left_end = true;
        app.back.iter_mut().for_each(|back| back.hold(body));
    }
    let Some((pager, height)) = under(app) else { return effects };
    // The last row tells of what is below; the button may have gone down before it did.
    let last = height.saturating_sub(2).max(pressed.y);
    pager.mark(pressed, Position { y: at.y.min(last), ..at });
    if at.y == 0 && pressed.y > 0 {
        pager.scroll(-1, height);
    } else if at.y > last {
        pager.scroll(1, height);
    }
    effects
}

fn release(app: &mut App) -> Vec<Effect> {
    let text = under(app).and_then(|(pager, _)| pager.marked_text());
    let pointer = std::mem::take(&mut app.pointer);
    let mut effects: Vec<Effect> = text.filter(|_| pointer.pressed.is_some()).map(Effect::Copy).into_iter().collect();
    effects.extend(if pointer.left_end { app.close_back() } else { settle(app) });
    effects
}
