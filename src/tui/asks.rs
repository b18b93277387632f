//! Questions of the engine on their way to the user. A key belongs to what could be read when it was pressed: a question
//! waits in one line while keys come, opens after a quiet second or on Tab, and takes an answer only once it has stood
//! on the screen for a while. Time moves a question on, never a key: what was pressed before is dealt with first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;

use super::app::{App, TWICE};
use super::dialog::{self, Dialog};
use super::keymap::Action;
use super::msg::Effect;
use super::pager::Page;
use super::paint;
use super::theme::Theme;
use super::update;
use super::view;
use super::viewer;
use crate::protocol::{Answer, AskId, Op};

/// A question opens when no key was pressed for so long.
pub const QUIET: Duration = Duration::from_secs(1);
/// So long after it can be read, and after each key that would have answered it too early, no key answers it.
pub const ASLEEP: Duration = Duration::from_millis(500);

/// A letter or digit chooses when no other key came for so long: else it is the beginning of a text.
pub const ALONE: Duration = Duration::from_millis(50);
/// Both of these where the question opened by itself over a half-written prompt, whose author may be thinking.
pub const ASLEEP_OVER_A_DRAFT: Duration = Duration::from_secs(1);
pub const ALONE_OVER_A_DRAFT: Duration = Duration::from_millis(500);

/// How far the question in front has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is in one line; every key is the prompt's.
    Waiting {
        until: Instant,
    },
    /// It is open, but its frame is not on the screen yet: every key is still the prompt's.
    Unread,
    /// It can be read; what would answer it does nothing.
    Asleep {
        until: Instant,
    },
    Live,
}

/// Questions that are not answered yet, the one in front first.
#[derive(Debug, Clone)]
pub struct Asks {
    dialogs: VecDeque<Dialog>,
    stage: Stage,
    /// Whether the question in front opened by itself over a half-written prompt.
    over_a_draft: bool,
    /// What was pressed to choose, until it is clear that it is alone.
    held: Option<(KeyEvent, Instant)>,
    /// How many are done since the last time none were open.
    done: usize,
}

impl Default for Asks {
    fn default() -> Asks {
        Asks { dialogs: VecDeque::new(), stage: Stage::Unread, over_a_draft: false, held: None, done: 0 }
    }
}

impl Asks {
    pub fn is_empty(&self) -> bool {
        self.dialogs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.dialogs.len()
    }

    pub(super) fn push(&mut self, dialog: Dialog, now: Instant) {
        self.close(dialog.id(), now);
        if self.dialogs.is_empty() {
            self.wait(now);
            self.done = 0;
        }
        // What one answer covers has grown: it has to be read again.
        if dialog.edit().is_some() && self.front().is_some_and(|front| front.edit().is_some()) {
            self.hidden();
        }
        self.dialogs.push_back(dialog);
    }

    /// Brings the question in front up to date with what waits behind it.
    pub(super) fn settle(&mut self, size: (u16, u16), theme: &Theme) {
        let place = (self.done + 1, self.done + self.dialogs.len());
        let others = self.edits().skip(1).map(|(_, file)| file.to_owned()).collect();
        if let Some(front) = self.dialogs.front_mut() {
            front.among(place, others);
            front.settle(size, theme);
        }
    }

    /// The edits that one answer can allow, with their files: the question in front first; none where it is not an edit.
    fn edits(&self) -> impl Iterator<Item = (AskId, &str)> {
        let front = self.front().is_some_and(|dialog| dialog.edit().is_some());
        self.dialogs.iter().filter(move |_| front).filter_map(|dialog| Some((dialog.id(), dialog.edit()?)))
    }

    /// Takes a question away; the next one waits in its own right.
    pub(super) fn close(&mut self, id: AskId, now: Instant) {
        if self.front().is_some_and(|dialog| dialog.id() == id) {
            self.wait(now);
        }
        let before = self.dialogs.len();
        self.dialogs.retain(|dialog| dialog.id() != id);
        self.done += before - self.dialogs.len();
    }

    pub(super) fn find(&mut self, id: AskId) -> Option<&mut Dialog> {
        self.dialogs.iter_mut().find(|dialog| dialog.id() == id)
    }

    pub fn front(&self) -> Option<&Dialog> {
        self.dialogs.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Dialog> {
        self.dialogs.front_mut()
    }

    /// The question that is in one line.
    pub fn waiting(&self) -> Option<&Dialog> {
        self.front().filter(|_| matches!(self.stage, Stage::Waiting { .. }))
    }

    /// The question that is shown, whether or not it takes keys yet.
    pub fn open(&self) -> Option<&Dialog> {
        self.front().filter(|_| !matches!(self.stage, Stage::Waiting { .. }))
    }

    /// Whether a key may answer the question in front.
    pub fn live(&self) -> bool {
        self.open().is_some() && self.stage == Stage::Live
    }

    /// When it continues by itself.
    pub fn wake(&self) -> Option<Instant> {
        match self.stage {
            Stage::Live => self.held.map(|(_, until)| until),
            Stage::Waiting { until } | Stage::Asleep { until } if !self.is_empty() => Some(until),
            _ => None,
        }
    }

    /// Somebody is at the keyboard.
    pub(super) fn pressed(&mut self, now: Instant) {
        if let Stage::Waiting { .. } = self.stage {
            self.wait(now);
        }
    }

    /// Back into the line.
    fn wait(&mut self, now: Instant) {
        self.held = None;
        self.stage = Stage::Waiting { until: now + QUIET };
    }

    /// Moves on what is due; `draft` says whether something is half-written in the prompt.
    pub(super) fn tick(&mut self, now: Instant, draft: bool) {
        match self.stage {
            Stage::Waiting { until } if until <= now => self.show(draft),
            Stage::Asleep { until } if until <= now => self.stage = Stage::Live,
            _ => {}
        }
    }

    fn show(&mut self, over_a_draft: bool) {
        (self.stage, self.over_a_draft) = (Stage::Unread, over_a_draft);
    }

    /// So long no key answers.
    fn asleep(&self) -> Duration {
        if self.over_a_draft { ASLEEP_OVER_A_DRAFT } else { ASLEEP }
    }

    /// Something else had the screen: an open question has to be read again.
    pub(super) fn hidden(&mut self) {
        if self.open().is_some() {
            self.held = None;
            self.stage = Stage::Unread;
        }
    }

    /// Whether what was pressed has not done anything yet.
    #[cfg(test)]
    pub(super) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// A frame with what is open has been written to its end. True when the next one looks different for that.
    pub(super) fn drawn(&mut self, now: Instant, theme: &Theme) -> bool {
        if self.open().is_none() {
            return false;
        }
        if self.stage == Stage::Unread {
            self.stage = Stage::Asleep { until: now + self.asleep() };
        }
        self.front_mut().is_some_and(|dialog| dialog.drawn(theme))
    }
}

/// Takes a key while there are questions; none when it belongs to what is below.
pub(super) fn key(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Option<Vec<Effect>> {
    if app.asks.waiting().is_some() {
        // Where Tab means something already, it keeps its meaning.
        if action == Some(Action::Complete) && !tab_is_taken(app) {
            app.asks.show(false);
            return Some(Vec::new());
        }
        return None;
    }
    app.asks.open()?;
    match action {
        Some(Action::Interrupt) => {
            if app.pressed.interrupt.replace(now).is_some_and(|at| now.duration_since(at) <= TWICE) {
                return Some(app.quit());
            }
            return Some(update::stop(app, now));
        }
        Some(Action::Transcript) => return Some(viewer::open_transcript(app, now)),
        _ => {}
    }
    match app.asks.stage {
        Stage::Live => {}
        // Reading on answers nothing.
        Stage::Asleep { .. }
            if matches!(key.code, KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End) => {}
        // A key that is held down repeats for longer than that: it has to be let go first.
        Stage::Asleep { .. } if answers(key) => {
            app.asks.stage = Stage::Asleep { until: now + app.asks.asleep() };
            return Some(Vec::new());
        }
        Stage::Waiting { .. } | Stage::Unread | Stage::Asleep { .. } => return back_to_the_prompt(app, now),
    }
    // Esc and Enter in one read are Alt+Enter, whose Enter is not the one that the dialog offers.
    let other = key.code == KeyCode::Enter && !key.modifiers.is_empty();
    if other && app.asks.front().is_some_and(|dialog| !dialog.writing()) {
        return Some(Vec::new());
    }
    if app.asks.front().is_some_and(|dialog| dialog.chooses(key)) {
        let alone = if app.asks.over_a_draft { ALONE_OVER_A_DRAFT } else { ALONE };
        app.asks.held = Some((key, now + alone));
        return Some(Vec::new());
    }
    press(app, key, action, now)
}

/// Moves on what is due.
pub(super) fn tick(app: &mut App, now: Instant) -> Vec<Effect> {
    if let Some((key, _)) = app.asks.held.take_if(|(_, until)| *until <= now) {
        let action = app.options.keymap.action(key);
        return press(app, key, action, now).unwrap_or_else(|| update::key_below(app, key, action, now));
    }
    let draft = !app.composer.is_empty();
    app.asks.tick(now, draft);
    Vec::new()
}

/// Text comes in one go: no part of it chooses, and the question waits where it has no field for it.
pub(super) fn written(app: &mut App, now: Instant) -> Vec<Effect> {
    if app.pager.is_some() || app.asks.open().is_none_or(|dialog| app.asks.live() && dialog.writing()) {
        return Vec::new();
    }
    let held = app.asks.held.take();
    app.asks.wait(now);
    held.map_or_else(Vec::new, |(key, _)| update::key_below(app, key, app.options.keymap.action(key), now))
}

/// Another key comes behind one that is held: both are a text, unless the second leads somewhere else.
pub(super) fn let_go(app: &mut App, key: KeyEvent, now: Instant) -> Vec<Effect> {
    if app.asks.held.is_none() {
        return Vec::new();
    }
    if writes(key) || matches!(key.code, KeyCode::Enter | KeyCode::Tab) {
        return written(app, now);
    }
    app.asks.held = None;
    Vec::new()
}

/// A key at a question that can be answered.
fn press(app: &mut App, key: KeyEvent, action: Option<Action>, now: Instant) -> Option<Vec<Effect>> {
    let size = (app.size.0, view::dialog_rows(app));
    let dialog = app.asks.front_mut()?;
    let id = dialog.id();
    if let (Some(Action::Editor), Some(path)) = (action, dialog.file()) {
        let path = path.to_owned();
        app.asks.hidden();
        return Some(vec![Effect::EditPlan(id, path)]);
    }
    Some(match dialog.key(key, size, &app.options.theme) {
        dialog::Outcome::Answered(answer) => {
            app.asks.close(id, now);
            vec![Effect::Send(Op::Answer { id, answer })]
        }
        dialog::Outcome::Edit(path) => {
            app.asks.hidden();
            vec![Effect::EditPlan(id, path)]
        }
        dialog::Outcome::Rewrite(text) => {
            app.asks.hidden();
            vec![Effect::Rewrite(id, text)]
        }
        dialog::Outcome::Together => {
            let ids: Vec<AskId> = app.asks.edits().map(|(id, _)| id).collect();
            let yes = |id: AskId| {
                app.asks.close(id, now);
                Effect::Send(Op::Answer { id, answer: Answer::Yes })
            };
            ids.into_iter().map(yes).collect()
        }
        dialog::Outcome::Diff(diff) => {
            app.asks.hidden();
            viewer::open_page(app, Page::Diff(diff));
            Vec::new()
        }
        dialog::Outcome::Copy(text) => vec![Effect::Copy(text)],
        // A letter that means nothing here is the beginning, or the rest, of what is being written.
        dialog::Outcome::Ignored if writes(key) => return back_to_the_prompt(app, now),
        dialog::Outcome::Open | dialog::Outcome::Ignored => Vec::new(),
    })
}

/// Takes pasted text: into the field that is being written in, else it is the prompt's. True when it is done with.
pub(super) fn paste(app: &mut App, text: &str) -> bool {
    app.asks.live() && app.asks.front_mut().is_some_and(|dialog| dialog.paste(text))
}

/// The line of a question that waits.
pub(super) fn line(app: &App, width: usize) -> Option<Line<'static>> {
    let dialog = app.asks.waiting()?;
    let key = app.options.keymap.hint(Action::Complete);
    let (why, look) = match (app.pager.is_some() || tab_is_taken(app), key.is_empty()) {
        (false, false) => (" · waiting until you stop typing", format!(" ({key}: open now)")),
        _ => (" · waiting until you stop typing", String::new()),
    };
    let whole = format!("? {}{why}{look}", paint::cut(dialog.headline(), width));
    let text = if paint::width(&whole) <= width {
        whole
    } else {
        let tail = if look.is_empty() { " · waiting".to_owned() } else { format!(" · {key}: open") };
        let room = width.saturating_sub(paint::width(&tail));
        format!("{}{tail}", paint::cut(&format!("? {}", dialog.headline()), room))
    };
    Some(Line::styled(paint::cut(&text, width), app.theme().warning))
}

fn tab_is_taken(app: &App) -> bool {
    app.picker.is_some() || app.composer.search.is_some() || app.composer.popup().is_some()
}

/// A person who is typing keeps typing: the question waits again, and the key goes to the prompt.
fn back_to_the_prompt(app: &mut App, now: Instant) -> Option<Vec<Effect>> {
    app.asks.wait(now);
    None
}

/// Keys that choose, leave, or lead to a choice.
fn answers(key: KeyEvent) -> bool {
    use KeyCode::{BackTab, Down, Enter, Esc, Tab, Up};
    matches!(key.code, Enter | Esc | Tab | BackTab | Up | Down)
}

fn writes(key: KeyEvent) -> bool {
    let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    plain && matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete)
}
