//! The view state of the terminal, folded from keys and events. Pure: it asks nobody and writes nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::asks::Asks;
use super::composer::Composer;
use super::composer::vim::Vim;
use super::dialog::Dialog;
use super::dialog::picker::Picker;
use super::fullscreen::Pointer;
use super::keymap::{Key, Keymap};
use super::leaving::Leaving;
use super::msg::{Effect, Progress};
use super::pager::Pager;
use super::panel::Panel;
use super::spinner::Spinner;
use super::status::{Status, own};
use super::theme::Theme;
use super::transcript::Transcript;
use crate::commands::Registry;
use crate::message::Todo;
use crate::protocol::{Delivery, Op, Queued, SettingPlace, StatusLine, Typed};
use crate::session::entry::{CacheBreak, Seq};

/// How long a hint stays.
const HINT: Duration = Duration::from_secs(5);
/// How long it takes to read one.
const READ: Duration = Duration::from_millis(1_500);
/// A second Esc or Ctrl+C within this time means the stronger thing.
pub(super) const TWICE: Duration = Duration::from_secs(1);

/// What the view is made with.
#[derive(Debug, Clone)]
pub struct Options {
    pub theme: Theme,
    /// The setting: the name of a theme, or `auto` where the terminal's background decides.
    pub theme_name: String,
    /// Code is colored.
    pub highlight: bool,
    pub keymap: Keymap,
    /// What `/` offers.
    pub commands: Registry,
    /// No spinner, one update a second.
    pub reduced_motion: bool,
    /// Calls the user back when the terminal is not in front.
    pub notifications: bool,
}

/// A short word in the status line.
#[derive(Debug, Clone)]
pub(super) struct Hint {
    pub(super) text: String,
    /// From then on it has been read, and the next key takes it away.
    pub(super) read: Instant,
    pub(super) until: Instant,
}

/// Keys that mean more when pressed twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Pressed {
    /// The first key of a chord.
    pub(super) chord: Option<Key>,
    pub(super) cancel: Option<Instant>,
    pub(super) interrupt: Option<Instant>,
}

/// All that the terminal shows.
#[derive(Debug)]
pub struct App {
    pub options: Options,
    /// Columns and rows of the screen.
    pub(super) size: (u16, u16),
    pub(super) composer: Composer,
    pub(super) asks: Asks,
    pub(super) picker: Option<Picker>,
    /// The memory file that was asked for by its number, while the list is gathered.
    pub(super) wanted: Option<usize>,
    pub(super) pager: Option<Pager>,
    /// The session has the alternate screen to itself.
    pub(super) fullscreen: bool,
    /// What was scrolled back to there; none at the end.
    pub(super) back: Option<Box<Pager>>,
    pub(super) pointer: Pointer,
    /// What was looked at while the agent works.
    pub(super) panel: Option<Panel>,
    /// The panel was closed while what it shows was asked for once more.
    pub(super) closed_panel: bool,
    pub(super) transcript: Transcript,
    pub(super) spinner: Spinner,
    pub(super) status: Status,
    pub(super) queue: Vec<Queued>,
    pub(super) todos: Vec<Todo>,
    pub(super) show_todos: bool,
    /// What the user has said in this session, oldest first: where a rewind can go.
    pub(super) prompts: Vec<(Seq, String)>,
    pub(super) hint: Option<Hint>,
    pub(super) pressed: Pressed,
    pub(super) focused: bool,
    /// The terminal prints what changes below what was there: the less changes, the better.
    pub(super) linear: bool,
    /// Commands that ran in the session, as far as they were shown.
    pub(super) commands: u64,
    /// What the session came to, for the shell that comes back.
    pub(super) receipt: Option<String>,
    /// Words that the list of sessions begins with.
    pub(super) searched: Option<String>,
    /// Shutdown was asked for.
    pub(super) closing: bool,
    pub(super) leaving: Leaving,
    /// A command that was typed behind the program's name, until all commands are known.
    pub(super) first: Option<String>,
    pub(super) cwd: PathBuf,
    /// The folder that the program began in.
    project: PathBuf,
    /// The picture of the clipboard is being read.
    pub(super) fetching: bool,
    /// The last turn failed.
    pub(super) failed: bool,
    /// What the turn under way paid for twice.
    pub(super) breaks: Vec<CacheBreak>,
    /// The composer begins with what an earlier session left; to be told once.
    pub(super) drafted: bool,
    progress: Progress,
    pub(super) name: String,
    title: String,
    /// The terminal's background is light.
    pub(super) light: bool,
    /// The theme that is shown, or on its way.
    looks: (String, bool),
    /// The composer's revision that was last given to be saved.
    saved: u64,
}

impl App {
    /// An empty view for a screen of `size` columns and rows.
    pub fn new(options: Options, size: (u16, u16)) -> App {
        App {
            looks: (options.theme_name.clone(), false),
            light: false,
            options,
            size,
            composer: Composer::default(),
            asks: Asks::default(),
            picker: None,
            wanted: None,
            pager: None,
            fullscreen: false,
            back: None,
            pointer: Pointer::default(),
            panel: None,
            closed_panel: false,
            transcript: Transcript::default(),
            spinner: Spinner::default(),
            status: Status::default(),
            queue: Vec::new(),
            todos: Vec::new(),
            show_todos: false,
            prompts: Vec::new(),
            hint: None,
            pressed: Pressed::default(),
            focused: true,
            linear: false,
            commands: 0,
            receipt: None,
            searched: None,
            closing: false,
            leaving: Leaving::No,
            first: None,
            cwd: PathBuf::new(),
            project: PathBuf::new(),
            fetching: false,
            failed: false,
            breaks: Vec::new(),
            drafted: false,
            progress: Progress::Idle,
            name: String::new(),
            title: String::new(),
            saved: 0,
        }
    }

    /// Prompts of earlier sessions in this project, oldest first.
    pub fn set_history(&mut self, entries: Vec<Typed>) {
        self.composer.history.set(entries);
    }

    /// What was being written when the program last ended. What would only turn the next words into a command is left out.
    pub fn set_draft(&mut self, draft: &Typed) {
        if self.composer.is_empty() && !matches!(draft.text.trim(), "" | "/" | "!") {
            self.composer.set_draft(draft);
            self.drafted = true;
            self.settle();
        }
    }

    /// Has the alternate screen for the whole session.
    pub fn use_fullscreen(&mut self, on: bool) {
        self.fullscreen = on;
    }

    /// Edits the prompt with vim's keys, or as other programs do.
    pub fn use_vim(&mut self, on: bool) {
        self.composer.vim = on.then(|| self.composer.vim.take().unwrap_or_default());
        self.settle();
    }

    /// The folder that the program begins in.
    pub fn begin_in(&mut self, project: PathBuf) {
        self.project = project;
    }

    /// Shows what a command of the user prints as the status line; without one, our own line.
    pub fn use_status_line(&mut self, settings: StatusLine, now: Instant) {
        let same = self.status.own.take_if(|own| *own.settings() == settings);
        let wanted = !settings.command.trim().is_empty();
        self.status.own = same.or_else(|| wanted.then(|| own::Own::new(settings, now)));
    }

    /// Runs the user's own status line when it is time.
    pub(super) fn run_status_line(&mut self, now: Instant) -> Option<Effect> {
        let facts = self.status.own.is_some().then(|| self.status.facts(self.cwd.clone(), self.project.clone()))?;
        let own = self.status.own.as_mut()?;
        own.heed(facts, now);
        own.take(now).map(|told| Effect::StatusLine { command: own.settings().command.clone(), told })
    }

    /// Begins with what was typed behind the program's name. A command waits until the engine has told of all of them; what
    /// is to be done at once comes back.
    pub fn begin_with(&mut self, line: String) -> Vec<Op> {
        let line = line.trim();
        let remembered = Op::Remember(line.into());
        if line.starts_with('/') {
            self.first = Some(line.to_owned());
            return Vec::new();
        }
        let op = match line.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            Some(command) => Op::Shell { command: command.to_owned() },
            None => {
                let delivery = Delivery::AfterTurn;
                Op::Prompt {
                    text: line.to_owned(),
                    attachments: Vec::new(),
                    delivery,
                    thinking: None,
                    data: Vec::new(),
                }
            }
        };
        vec![remembered, op]
    }

    /// The list of sessions opens with these words in its filter.
    pub fn search_sessions(&mut self, words: String) {
        self.searched = Some(words);
    }

    /// What is being written, for the draft file.
    pub fn draft(&self) -> Typed {
        self.composer.typed()
    }

    pub fn theme(&self) -> &Theme {
        &self.options.theme
    }

    /// The pager covers the screen: draw it on the alternate screen.
    pub fn pager(&self) -> Option<&Pager> {
        self.pager.as_ref()
    }

    /// Closes the pager. The transcript keeps no rows without it.
    pub(super) fn close_pager(&mut self) -> Option<Effect> {
        let live = self.pager.take().is_some_and(|pager| pager.live());
        if live {
            self.transcript.forget_drawn();
        }
        live.then_some(Effect::FreeMemory)
    }

    /// Goes to the end of what was scrolled back in. The transcript keeps no rows for it.
    pub(super) fn close_back(&mut self) -> Option<Effect> {
        self.back.take()?;
        self.pointer = Pointer::default();
        self.transcript.forget_drawn();
        Some(Effect::FreeMemory)
    }

    /// Pager or dialog wants the whole (alternate) screen.
    pub fn covers(&self) -> bool {
        self.pager.is_some() || self.asks.open().is_some_and(Dialog::covers)
    }

    /// What waits outside the pager.
    pub fn alert(&self) -> Option<&'static str> {
        (!self.asks.is_empty()).then_some("A question is waiting")
    }

    /// A frame for a screen of `size` has been written to its end: what it shows can be read from now on. True when the
    /// next one looks different for that.
    pub fn drawn(&mut self, size: (u16, u16), now: Instant) -> bool {
        self.pager.is_none() && size == self.size && self.asks.drawn(now, &self.options.theme)
    }

    /// What an open question says while no key answers it.
    pub(super) fn asleep(&self) -> Option<&'static str> {
        (!self.linear && !self.asks.live()).then_some("keys work in a moment")
    }

    /// Whether there was a panel.
    pub(super) fn close_panel(&mut self) -> bool {
        let closed = self.panel.take();
        if let Some(panel) = &closed {
            self.closed_panel = !self.linear && panel.is_asking();
        }
        closed.is_some()
    }

    /// When the screen changes by itself next; none while nothing moves.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let hidden = self.pager.is_some() || !self.asks.is_empty();
        let spinner = if hidden { None } else { self.spinner.wake(now, self.options.reduced_motion) };
        // Below the pager a question goes nowhere.
        let asks = if self.pager.is_some() { None } else { self.asks.wake() };
        let viewer =
            self.pager.as_ref().or(self.back.as_deref()).and_then(|pager| pager.due(self.transcript.revision()));
        let hint = self.hint.as_ref().map(|hint| hint.until);
        let own = self.status.own.as_ref().and_then(own::Own::wake);
        let panel = self.panel.as_ref().and_then(Panel::due);
        [spinner, asks, viewer, hint, own, panel].into_iter().flatten().min()
    }

    /// Columns of the composer's text.
    pub(super) fn column(&self) -> usize {
        self.size.0.saturating_sub(super::composer::MARGIN).max(1) as usize
    }

    /// Most rows of the composer's text.
    pub(super) fn composer_rows(&self) -> u16 {
        (self.size.1 / 3).clamp(1, 16)
    }

    /// Brings what is laid out up to date with text, size and theme.
    pub(super) fn settle(&mut self) {
        let rows = self.composer_rows();
        self.composer.heed(&self.status.thinking.keywords());
        self.status.thinking.read(&self.composer);
        self.composer.settle(self.size.0, rows);
        self.status.editing = self.composer.vim.as_ref().map(Vim::label).unwrap_or_default();
        self.asks.settle(self.size, &self.options.theme);
    }

    /// Takes away what was said long ago, or what was read and a key follows.
    pub(super) fn outlive(&mut self, pressed: bool, now: Instant) {
        self.hint.take_if(|hint| hint.until <= now || (pressed && hint.read <= now));
    }

    /// Switches vim keys on or off; the setting follows.
    pub(super) fn switch_vim(&mut self, now: Instant) -> Op {
        let on = self.composer.vim.is_none();
        self.use_vim(on);
        self.tell(if on { "vim keys on: Esc for normal mode" } else { "vim keys off" }, now);
        let value = Some(if on { "vim" } else { "normal" }.to_owned());
        Op::Set { key: "tui.editor_mode".to_owned(), value, place: SettingPlace::User }
    }

    pub(super) fn tell(&mut self, text: impl Into<String>, now: Instant) {
        self.hint = Some(Hint { text: text.into(), read: now + READ, until: now + HINT });
    }

    pub(super) fn tell_briefly(&mut self, text: impl Into<String>, now: Instant) {
        self.hint = Some(Hint { text: text.into(), read: now + READ, until: now + TWICE });
    }

    /// Starts the end, or ends at once when it has been asked for before.
    pub(super) fn quit(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.closing, true) {
            return vec![Effect::Exit];
        }
        vec![Effect::Send(Op::Shutdown)]
    }

    /// The theme is asked for again, whatever is shown.
    pub(super) fn forget_looks(&mut self) {
        self.looks.0.clear();
    }

    /// Effects that follow from a change: another theme, a draft to be saved, another title.
    pub(super) fn follow(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        // A theme is shown while a list offers it.
        let name = self.picker.as_ref().and_then(Picker::preview).unwrap_or(&self.options.theme_name);
        let looks = (name.to_owned(), self.light && name == "auto");
        if looks != self.looks {
            self.looks = looks;
            effects.push(Effect::Theme { name: self.looks.0.clone(), light: self.looks.1 });
        }
        let revision = self.composer.editor.revision();
        if std::mem::replace(&mut self.saved, revision) != revision {
            effects.push(Effect::SaveDraft);
        }
        let mark = match (self.asks.is_empty(), self.spinner.busy()) {
            (false, _) => "? ",
            (true, true) => "… ",
            (true, false) => "",
        };
        let progress = match (self.asks.is_empty(), self.spinner.busy()) {
            (false, _) => Progress::Asking,
            (true, true) => Progress::Working,
            // It shows until something else runs.
            (true, false) if self.failed => Progress::Failed,
            (true, false) => Progress::Idle,
        };
        if progress != self.progress {
            self.progress = progress;
            effects.push(Effect::Progress(progress));
        }
        let title = format!("{mark}cocode{}{}", if self.name.is_empty() { "" } else { " · " }, self.name);
        if title != self.title {
            self.title.clone_from(&title);
            effects.push(Effect::SetTitle(title));
        }
        effects
    }
}
