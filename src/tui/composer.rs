//! Where the user writes: the editor with its history, popup, shell mode and stash. Knows actions, not keys.

pub mod chip;
pub mod editor;
pub mod field;
pub mod history;
mod keywords;
pub mod layout;
mod mentions;
mod paint;
pub mod vim;

use nucleo_matcher::Config;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::chip::{Chip, Draft, Picture};
use self::editor::{Editor, Unit, Way};
use self::history::{History, Search};
use self::vim::{Outcome, Vim};
use super::keymap::Action;
use super::popup::{self, Item, Kind, Popup};
use crate::commands::Registry;
use crate::protocol::{ResourceRow, Typed};

/// Most resources of MCP servers that are offered beside files.
const RESOURCES: usize = 50;
/// Cells that the mark before the text takes.
pub const MARGIN: u16 = 2;

/// What the composer is written for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Prompt,
    /// A `!` line for the user's own shell.
    Shell,
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Reaction {
    /// It means nothing here.
    Ignored,
    Handled,
    /// The user sends what is there.
    Send,
    /// A new query for the file popup.
    ListFiles(String),
    /// The list of commands was opened: some may have changed.
    ListCommands,
}

/// The composer.
#[derive(Debug, Clone, Default)]
pub struct Composer {
    pub editor: Editor,
    pub mode: Mode,
    pub history: History,
    pub search: Option<Search>,
    /// None: it edits as other programs do.
    pub vim: Option<Vim>,
    popup: Option<Popup>,
    lit: keywords::Lit,
    mentions: mentions::Mentions,
    /// What MCP servers let the user mention beside files.
    pub(super) resources: Vec<ResourceRow>,
    stash: Option<(Draft, Mode)>,
    /// The text whose popup the user has closed.
    dismissed: Option<String>,
    /// What a picked skill offers, as long as nothing is written behind its name: the text, and the offer.
    pub(super) offer: Option<(String, String)>,
}

impl Composer {
    pub fn is_empty(&self) -> bool {
        self.editor.is_empty() && self.mode == Mode::Prompt
    }

    pub fn popup(&self) -> Option<&Popup> {
        self.popup.as_ref().filter(|popup| !popup.items.is_empty())
    }

    /// Nothing is being completed here, nor could be.
    pub fn completes_nothing(&self) -> bool {
        self.is_empty() && self.popup.is_none()
    }

    pub fn has_stash(&self) -> bool {
        self.stash.is_some()
    }

    /// What would be sent, for the draft file; a shell line begins with `!`.
    pub fn typed(&self) -> Typed {
        let typed = self.editor.draft().typed();
        if self.mode == Mode::Shell { typed.behind("!") } else { typed }
    }

    /// Puts a saved draft back at the start of a session.
    pub fn set_draft(&mut self, typed: &Typed) {
        self.put(&Draft::of(typed));
    }

    /// Gives a key to vim first, where that is switched on. Passed: it means what it always does.
    pub fn vim_key(&mut self, key: KeyEvent, action: Option<Action>, width: usize) -> Outcome {
        let Some(vim) = self.vim.as_mut().filter(|_| self.search.is_none()) else { return Outcome::Passed };
        let outcome = vim.key(key, action, &mut self.editor, width);
        if outcome != Outcome::Passed && !vim.writes() {
            self.dismissed = Some(self.editor.text().to_owned());
            self.popup = None;
        }
        outcome
    }

    /// Does what a key means; `width` is that of the text column.
    pub fn act(&mut self, action: Action, width: usize, commands: &Registry) -> Reaction {
        if self.search.is_some() {
            return self.act_in_search(action);
        }
        if let Some(reaction) = self.act_in_popup(action, commands) {
            return reaction;
        }
        let editor = &mut self.editor;
        match action {
            Action::Send if editor.text()[..editor.cursor()].ends_with('\\') => {
                let at = editor.cursor();
                editor.replace(at - 1..at, "\n");
            }
            Action::Send if editor.text().trim().is_empty() => return Reaction::Handled,
            Action::Send => return Reaction::Send,
            Action::Newline => editor.insert("\n"),
            Action::Left => drop(editor.step(Unit::Grapheme, Way::Back)),
            Action::Right => drop(editor.step(Unit::Grapheme, Way::Forward)),
            Action::Up => {
                if !editor.row(Way::Back, width) {
                    self.recall(Way::Back);
                }
                return Reaction::Handled;
            }
            Action::Down => {
                if !editor.row(Way::Forward, width) {
                    self.recall(Way::Forward);
                }
                return Reaction::Handled;
            }
            Action::WordLeft => drop(editor.step(Unit::Word, Way::Back)),
            Action::WordRight => drop(editor.step(Unit::Word, Way::Forward)),
            Action::LineStart => editor.line_edge(Way::Back),
            Action::LineEnd => editor.line_edge(Way::Forward),
            Action::TextStart => drop(editor.step(Unit::All, Way::Back)),
            Action::TextEnd => drop(editor.step(Unit::All, Way::Forward)),
            Action::DeleteBack if editor.is_empty() => self.mode = Mode::Prompt,
            Action::DeleteBack => editor.delete(Unit::Grapheme, Way::Back),
            Action::DeleteForward | Action::Exit => editor.delete(Unit::Grapheme, Way::Forward),
            Action::DeleteWordBack => editor.kill(Unit::Word, Way::Back),
            Action::DeleteWordForward => editor.kill(Unit::Word, Way::Forward),
            Action::KillChunkBack => editor.kill(Unit::Chunk, Way::Back),
            Action::KillToEnd => editor.kill(Unit::Line, Way::Forward),
            Action::KillToStart => {
                editor.kill(Unit::Line, Way::Back);
                if editor.is_empty() {
                    self.mode = Mode::Prompt;
                }
            }
            Action::Yank => editor.yank(),
            Action::YankPop => editor.yank_pop(),
            Action::Undo => editor.undo(),
            Action::Redo => editor.redo(),
            Action::SearchHistory => {
                self.search = Some(Search::default());
                self.popup = None;
                return Reaction::Handled;
            }
            Action::Stash => {
                self.swap_stash();
                return Reaction::Handled;
            }
            Action::Cancel if self.mode == Mode::Shell && editor.is_empty() => {
                self.mode = Mode::Prompt;
                return Reaction::Handled;
            }
            _ => return Reaction::Ignored,
        }
        self.look_around(commands)
    }

    /// Takes a key that is bound to nothing: text, as a rule.
    pub fn type_key(&mut self, key: KeyEvent, commands: &Registry) -> Reaction {
        if let Some(search) = &mut self.search {
            if search.query.key(key) {
                search.rewind();
            }
            return Reaction::Handled;
        }
        let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
        // AltGr comes as Ctrl+Alt with the character that it makes.
        let alt_gr = key.modifiers.contains(KeyModifiers::CONTROL | KeyModifiers::ALT)
            && matches!(key.code, KeyCode::Char(c) if !c.is_ascii_alphanumeric());
        match key.code {
            KeyCode::Char('!') if self.editor.is_empty() && self.mode == Mode::Prompt => self.mode = Mode::Shell,
            KeyCode::Char(c) if (!held || alt_gr) && !c.is_control() && chip::index(c).is_none() => {
                self.editor.type_text(c.encode_utf8(&mut [0; 4]));
            }
            _ => return Reaction::Ignored,
        }
        self.look_around(commands)
    }

    /// Puts a quotation before what is written next.
    pub fn quote(&mut self, text: &str) {
        self.editor.insert(&format!("> {text}\n\n"));
    }

    /// Takes a key of a text that came in one go, where it would open or run a shell line: nobody may have read it. False
    /// when it is a key like any other.
    pub fn written(&mut self, key: KeyEvent) -> bool {
        let shell = self.mode == Mode::Shell || self.editor.text().starts_with('!');
        let text = match key.code {
            KeyCode::Char('!') if self.is_empty() => "!",
            KeyCode::Enter if shell => "\n",
            _ => return false,
        };
        if self.search.is_none() {
            self.editor.insert(text);
        }
        self.search.is_none()
    }

    /// Takes pasted text; `image` is the file that it names, when it is an image that exists.
    pub fn paste(&mut self, text: &str, image: Option<Picture>, commands: &Registry) -> Reaction {
        let text = chip::tidy(text);
        if let Some(search) = &mut self.search {
            search.query.insert(&text);
            search.rewind();
            return Reaction::Handled;
        }
        match (image, chip::large(&text)) {
            (Some(picture), _) => {
                let number = self.editor.draft().next_image();
                self.editor.insert_chip(Chip::Image { picture, number });
                self.editor.insert(" ");
            }
            (None, Some(large)) => self.editor.insert_chip(large),
            (None, None) if !text.is_empty() => self.editor.insert(&text),
            (None, None) => {}
        }
        self.look_around(commands)
    }

    /// Takes the draft out to be sent.
    pub fn take(&mut self) -> (Draft, Mode) {
        let draft = self.editor.take();
        let mode = std::mem::take(&mut self.mode);
        self.popup = None;
        self.dismissed = None;
        self.vim.iter_mut().for_each(Vim::begin);
        (draft, mode)
    }

    /// Empties the composer; undo brings it back.
    pub fn clear(&mut self) {
        self.editor.set(Draft::default());
        self.mode = Mode::Prompt;
        self.popup = None;
    }

    /// Brings sent prompts back, with their chips where they are still known, in front of what was typed since.
    pub fn restore(&mut self, text: &str) {
        let draft = Draft::of(&self.history.retyped(text.trim()));
        if self.is_empty() {
            self.put(&draft);
        } else {
            self.editor.put_before(&draft);
        }
        self.popup = None;
    }

    /// Replaces the text with what an external editor left.
    pub fn edited(&mut self, text: &str) {
        let typed = self.editor.draft().typed().rewritten(text.strip_suffix('\n').unwrap_or(text));
        self.editor.set(Draft::of(&typed));
        self.popup = None;
    }

    /// Files for a query; ignored when the query is no longer the one asked for.
    pub fn listed(&mut self, query: &str, paths: Vec<String>) {
        if let Some(popup) = self.popup.as_mut().filter(|popup| popup.kind == Kind::Files && popup.query == query) {
            let named = self.resources.iter().map(|row| row.mention.as_str());
            let fitting = popup::ranked(query, named, Config::DEFAULT.match_paths(), RESOURCES);
            let resource = |row: &ResourceRow| Item { detail: row.about.clone(), ..Item::file(row.mention.clone()) };
            let resources = fitting.into_iter().map(|at| resource(&self.resources[at]));
            popup.items = paths.into_iter().map(Item::file).chain(resources).collect();
            popup.selected = 0;
        }
    }

    fn act_in_search(&mut self, action: Action) -> Reaction {
        let Some(search) = &mut self.search else { return Reaction::Ignored };
        match action {
            Action::SearchHistory | Action::Up => search.next(&self.history),
            Action::Send | Action::Complete | Action::Right | Action::LineEnd => {
                let found = search.found(&self.history).map(Draft::of);
                self.search = None;
                found.iter().for_each(|draft| self.put(draft));
            }
            Action::Cancel | Action::Interrupt => self.search = None,
            action => {
                let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
                let key = match action {
                    Action::DeleteBack => plain(KeyCode::Backspace),
                    Action::KillToStart | Action::KillChunkBack | Action::DeleteWordBack => {
                        KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)
                    }
                    Action::Help => plain(KeyCode::Char('?')),
                    Action::Left => plain(KeyCode::Left),
                    _ => return Reaction::Handled,
                };
                search.query.key(key);
                search.rewind();
            }
        }
        Reaction::Handled
    }

    fn act_in_popup(&mut self, action: Action, commands: &Registry) -> Option<Reaction> {
        let popup = self.popup.as_mut().filter(|popup| !popup.items.is_empty())?;
        match action {
            Action::Up => popup.step(-1),
            Action::Down => popup.step(1),
            Action::PageUp => popup.step(-8),
            Action::PageDown => popup.step(8),
            Action::Cancel => {
                self.dismissed = Some(self.editor.text().to_owned());
                self.popup = None;
            }
            Action::Complete | Action::Send => {
                let (kind, range) = (popup.kind, popup.range.clone());
                let item = popup.item()?;
                let (name, placeholder) = (item.name.clone(), item.placeholder.clone());
                let means = popup.means(commands);
                self.popup = None;
                let text = match (kind, action) {
                    // What is sent is the text as it is: `what is in /tmp` means no skill.
                    (Kind::Skills, Action::Send) => return None,
                    (Kind::Commands, Action::Send) if means => {
                        self.editor.replace(range, &format!("/{name}"));
                        return Some(Reaction::Send);
                    }
                    (Kind::Commands | Kind::Skills, _) => format!("/{name} "),
                    (Kind::Files, _) if name.contains(char::is_whitespace) => format!("@\"{name}\" "),
                    // A folder: the popup continues inside it.
                    (Kind::Files, _) if name.ends_with('/') => format!("@{name}"),
                    (Kind::Files, _) => format!("@{name} "),
                };
                self.editor.replace(range, &text);
                self.offer = placeholder.map(|placeholder| (self.editor.text().to_owned(), placeholder));
                return Some(self.look_around(commands));
            }
            _ => return None,
        }
        Some(Reaction::Handled)
    }

    /// Opens, renews or closes the popup after an edit or a motion.
    fn look_around(&mut self, commands: &Registry) -> Reaction {
        let text = self.editor.text();
        if self.dismissed.as_deref() == Some(text) || self.mode == Mode::Shell {
            self.popup = None;
            return Reaction::Handled;
        }
        let cursor = self.editor.cursor();
        let before = &text[..cursor];
        let start = before
            .rfind(|c: char| c.is_whitespace() || c == '(')
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        if let Some(query) = before[start..].strip_prefix('/').filter(|query| !query.contains('/')) {
            let end = cursor + text[cursor..].find(char::is_whitespace).unwrap_or(text.len() - cursor);
            let kind = if text[..start].trim().is_empty() { Kind::Commands } else { Kind::Skills };
            let items = popup::commands(query, commands, kind);
            let query = query.to_owned();
            let open = self.popup.as_ref().is_some_and(|popup| popup.kind == kind);
            self.popup = Some(Popup { kind, range: start..end, query, items, selected: 0, moved: false });
            return if open { Reaction::Handled } else { Reaction::ListCommands };
        }
        let Some(query) = before[start..].strip_prefix('@') else {
            self.popup = None;
            return Reaction::Handled;
        };
        let query = query.trim_start_matches('"').to_owned();
        let range = start..cursor;
        match &mut self.popup {
            Some(popup) if popup.kind == Kind::Files && popup.query == query => {
                popup.range = range;
                Reaction::Handled
            }
            // The old files stay until the new ones are there, so that the list does not flicker.
            Some(popup) if popup.kind == Kind::Files => {
                (popup.range, popup.query) = (range, query.clone());
                Reaction::ListFiles(query)
            }
            _ => {
                let popup = Popup {
                    kind: Kind::Files,
                    range,
                    query: query.clone(),
                    items: Vec::new(),
                    selected: 0,
                    moved: false,
                };
                self.popup = Some(popup);
                Reaction::ListFiles(query)
            }
        }
    }

    /// Takes over other commands: an open list of them shows the new ones.
    pub fn renew(&mut self, commands: &Registry) {
        self.mentions.learn(commands);
        if let Some(popup) = self.popup.as_mut().filter(|popup| popup.kind != Kind::Files) {
            // What nobody has moved to is not chosen: the best match may be among those that have come.
            let chosen = popup.item().filter(|_| popup.selected > 0).map(|item| item.name.clone());
            popup.items = popup::commands(&popup.query, commands, popup.kind);
            popup.selected = popup.items.iter().position(|item| Some(&item.name) == chosen.as_ref()).unwrap_or(0);
        }
    }

    fn recall(&mut self, way: Way) {
        let mut now = self.editor.draft().clone();
        if self.mode == Mode::Shell {
            now.text.insert(0, '!');
        }
        let found = if way == Way::Back { self.history.older(&now) } else { self.history.newer() };
        if let Some(draft) = found {
            self.put(&draft);
        }
        self.popup = None;
    }

    /// How a prompt of this project looked, where it had pastes or pictures.
    pub fn folded(&self, sent: &str) -> Option<String> {
        let draft = Draft::of(self.history.find(sent.trim())?);
        (!draft.chips.is_empty()).then(|| draft.folded())
    }

    /// Replaces the text; a `!` in front makes it a shell line.
    fn put(&mut self, draft: &Draft) {
        let mut draft = draft.clone();
        self.mode = Mode::Prompt;
        if let Some(line) = draft.text.strip_prefix('!') {
            draft.text = line.to_owned();
            self.mode = Mode::Shell;
        }
        self.dismissed = Some(draft.text.clone());
        self.editor.set(draft);
        self.popup = None;
    }

    fn swap_stash(&mut self) {
        let now = (!self.is_empty()).then(|| (self.editor.draft().clone(), self.mode));
        match self.stash.take() {
            Some((draft, mode)) => {
                self.editor.set(draft);
                self.mode = mode;
            }
            None => self.clear(),
        }
        self.stash = now;
        self.popup = None;
    }
}
