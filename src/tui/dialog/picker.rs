//! A list to choose from: sessions, models, settings, rules, prompts to go back to. Typing filters it.

mod drawn;
mod entry;
mod items;

use std::path::PathBuf;

use nucleo_matcher::Config;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::entry::Entry;
use crate::commands::Builtin;
use crate::protocol::{FoundRow, ListKind, Listed, RewindWhat, SettingKind, SettingPlace, SettingRow, Word};
use crate::provider::key::Secret;
use crate::session::entry::Seq;
use crate::tui::composer::field::Field;
use crate::tui::leaving::Leave;
use crate::tui::popup;

/// Characters of a paste that can only be a key.
const KEY: usize = 20;

/// What a row stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Session(String),
    Found(Box<FoundRow>),
    /// What is quoted into the prompt.
    Quote(String),
    Model(String),
    /// A provider that wants a key.
    Key {
        provider: String,
        title: String,
    },
    /// Look for a local server.
    FindServer,
    Setting(Box<SettingRow>),
    Value {
        key: String,
        value: String,
        place: SettingPlace,
    },
    /// A rule that can be revoked.
    Rule(String),
    /// A prompt to go back to before.
    Prompt(Seq),
    Rewind(Seq, RewindWhat),
    Revoke(String),
    Leave(Leave),
    /// A file to open in the editor.
    File(PathBuf),
    /// Nothing is done, for this reason.
    Stay(String),
    /// Only to be read, or the way out.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
struct Item {
    label: String,
    /// Between label and detail, in a column of its own.
    value: String,
    detail: String,
    /// What the filter reads; empty: label and detail.
    words: String,
    /// The label where the row is shown without those around it.
    alone: Option<String>,
    current: bool,
    choice: Choice,
}

impl Item {
    fn new(label: impl Into<String>, detail: impl Into<String>, choice: Choice) -> Item {
        Item {
            label: label.into(),
            value: String::new(),
            detail: detail.into(),
            words: String::new(),
            alone: None,
            current: false,
            choice,
        }
    }
}

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Open,
    Closed,
    Chosen(Choice),
    /// Keep a key; the list stays open.
    StoreKey {
        provider: String,
        key: Secret,
    },
    /// Look for a local server; the list stays open.
    FindServer,
    /// Search all sessions; the list stays open.
    Find(String),
    /// Change a setting, or take the change back; the list stays open.
    Set {
        key: String,
        value: Option<String>,
        place: SettingPlace,
    },
    /// Test the line typed into the rules list.
    Test(String),
    Ignored,
}

/// An open list.
#[derive(Debug, Clone)]
pub struct Picker {
    title: String,
    /// The list that it waits for; none when it is complete.
    wait: Option<ListKind>,
    kind: Option<ListKind>,
    filter: Field,
    items: Vec<Item>,
    /// Items that match the filter, best first.
    shown: Vec<usize>,
    selected: usize,
    /// The user has moved in the list: letters are its keys until somebody writes on.
    moved: bool,
    /// What a row led to.
    over: Option<Over>,
    /// What came of what was done last.
    word: Option<Word>,
    /// The provider whose key was stored, until the list says so.
    stored: Option<String>,
    /// A key was stored since the list was opened.
    keyed: bool,
    /// Settings that were changed since the list was opened.
    changed: Vec<String>,
    /// Where a changed setting goes.
    place: SettingPlace,
    /// What the selected row means is shown.
    explains: bool,
}

#[derive(Debug, Clone)]
enum Over {
    Entry(Box<Entry>),
    Values(Box<Picker>),
}

impl Picker {
    fn new(title: impl Into<String>, wait: Option<ListKind>, items: Vec<Item>) -> Picker {
        Picker {
            title: title.into(),
            wait,
            kind: wait,
            filter: Field::default(),
            shown: (0..items.len()).collect(),
            items,
            selected: 0,
            moved: false,
            over: None,
            word: None,
            stored: None,
            keyed: false,
            changed: Vec::new(),
            place: SettingPlace::User,
            explains: false,
        }
    }

    /// Opens a list that is still being gathered.
    pub fn waiting(kind: ListKind) -> Picker {
        let title = match kind {
            ListKind::Sessions => "Resume which session?",
            ListKind::Found => "Search all sessions",
            ListKind::Models => "Which model?",
            ListKind::Settings => "Settings",
            ListKind::Rules => "Permission rules",
            ListKind::Memory => "Open which memory file?",
            ListKind::Prompts => "Rewind to where?",
            ListKind::Skills => "Open which skill?",
            ListKind::Changes => "Changes",
        };
        Picker::new(title, Some(kind), Vec::new())
    }

    /// Opens the list of prompts, newest first.
    pub fn prompts(prompts: &[(Seq, String)]) -> Picker {
        let item = |(seq, text): &(Seq, String)| Item::new(text, "", Choice::Prompt(*seq));
        let items = prompts.iter().rev().map(item).collect();
        Picker { kind: Some(ListKind::Prompts), ..Picker::new("Rewind to before which prompt?", None, items) }
    }

    /// The same for a command, which may be about one row.
    pub fn opened(kind: ListKind, by: Option<Builtin>) -> Picker {
        let mut picker = Picker::waiting(kind);
        if by == Some(Builtin::Theme) {
            picker.filter.insert("tui.theme");
        }
        picker
    }

    /// Opens the search of all sessions with these words.
    pub fn finding(words: &str) -> Picker {
        let mut picker = Picker::waiting(ListKind::Found);
        picker.filter.insert(words);
        picker
    }

    /// The words that all sessions are searched for.
    pub fn sought(&self) -> Option<String> {
        (self.kind == Some(ListKind::Found)).then(|| self.filter.text().to_owned())
    }

    /// What row `number`, counted from 1, stands for.
    pub fn row(&self, number: usize) -> Option<Choice> {
        Some(self.items.get(number.checked_sub(1)?)?.choice.clone())
    }

    /// The values of a setting, the one that holds selected.
    fn values(row: &SettingRow, values: &[String], place: SettingPlace) -> Picker {
        let item = |value: &String| {
            let detail = match (row.value.as_ref() == Some(value), row.default.as_ref() == Some(value)) {
                (true, true) => "✓ in use · default",
                (true, false) => "✓ in use",
                (false, true) => "default",
                (false, false) => "",
            };
            let choice = Choice::Value { key: row.key.clone(), value: value.clone(), place };
            Item::new(value, detail, choice)
        };
        let title = match place {
            SettingPlace::User => row.key.clone(),
            SettingPlace::Project => format!("{} for this project", row.key),
        };
        let selected = values.iter().position(|value| row.value.as_ref() == Some(value)).unwrap_or(0);
        Picker { selected, ..Picker::new(title, None, values.iter().map(item).collect()) }
    }

    /// The theme that the selected row would set: it is shown while somebody looks at it.
    pub fn preview(&self) -> Option<&str> {
        match (&self.over, self.shown.get(self.selected).map(|at| &self.items[*at].choice)) {
            (Some(Over::Values(values)), _) => values.preview(),
            (None, Some(Choice::Value { key, value, .. })) if key == "tui.theme" => Some(value),
            _ => None,
        }
    }

    /// Takes the gathered rows, when they are those of this list; a list that is open already keeps its place.
    pub fn listed(&mut self, listed: Listed) {
        // Words that were typed since have an answer of their own.
        if matches!(&listed, Listed::Found(found) if found.words != self.filter.text()) {
            return;
        }
        let Some((kind, items, word)) = items::of(listed).filter(|(kind, ..)| self.kind == Some(*kind)) else { return };
        let before = self.selected_item().map(|item| (item.label.clone(), item.choice.clone()));
        let first = self.wait.take().is_some();
        self.items = items;
        if let Some(Word::Failed { .. }) = word {
            self.changed.pop();
        }
        for item in &mut self.items {
            if self.changed.contains(&item.label) {
                item.detail = "changed just now".to_owned();
            }
        }
        self.rank();
        let position = |wanted: &dyn Fn(&Item) -> bool| self.shown.iter().position(|at| wanted(&self.items[*at]));
        let stored = match &word {
            Some(Word::Done { .. }) => self.stored.take(),
            _ => None,
        };
        self.keyed |= stored.is_some();
        let below = stored.map(|provider| format!("{provider}/"));
        let at = match (below, before) {
            (Some(below), _) => {
                let of = |item: &Item| item.alone.as_ref().is_some_and(|id| id.starts_with(&below));
                position(&|item| of(item) && item.detail.contains("default")).or_else(|| position(&of))
            }
            (None, _) if first => position(&|item: &Item| item.current),
            (None, Some((label, choice))) => position(&|item: &Item| item.label == label && item.choice == choice)
                .or_else(|| position(&|item: &Item| item.label == label)),
            (None, None) => None,
        };
        self.selected = at.unwrap_or(self.selected).min(self.shown.len().saturating_sub(1));
        if word.is_some() || kind == ListKind::Models && !first {
            self.word = word.or(self.word.take().filter(|word| *word != looking()));
        }
    }

    /// A key was stored, and no model was chosen yet.
    pub fn keyed(&self) -> bool {
        self.keyed
    }

    /// Its rows are still being gathered.
    pub fn waits(&self) -> bool {
        self.wait.is_some()
    }

    fn selected_item(&self) -> Option<&Item> {
        self.shown.get(self.selected).map(|at| &self.items[*at])
    }

    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        match &mut self.over {
            Some(Over::Entry(entry)) => {
                let outcome = entry.key(key);
                if !matches!(outcome, Some(Outcome::Open | Outcome::Ignored)) {
                    self.over = None;
                }
                return outcome.map_or(Outcome::Open, |outcome| self.doing(outcome));
            }
            Some(Over::Values(values)) => {
                return match values.key(key) {
                    Outcome::Closed => {
                        self.over = None;
                        Outcome::Open
                    }
                    Outcome::Chosen(Choice::Value { key, value, place }) => {
                        self.over = None;
                        self.doing(Outcome::Set { key, value: Some(value), place })
                    }
                    outcome => outcome,
                };
            }
            None => {}
        }
        if self.kind == Some(ListKind::Found)
            && key.code == KeyCode::Tab
            && let Some(Choice::Found(row)) = self.selected_item().map(|item| &item.choice)
        {
            return Outcome::Chosen(Choice::Quote(row.text.clone()));
        }
        let most = self.shown.len();
        let moved = std::mem::replace(&mut self.moved, false);
        match key.code {
            KeyCode::Esc => return Outcome::Closed,
            KeyCode::Enter => return self.choose(),
            KeyCode::Tab if self.kind == Some(ListKind::Rules) && !self.filter.is_empty() => {
                return Outcome::Test(self.filter.text().to_owned());
            }
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(most.saturating_sub(1)),
            KeyCode::Down => self.selected = if self.selected + 1 < most { self.selected + 1 } else { 0 },
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(8),
            KeyCode::PageDown => self.selected = (self.selected + 8).min(most.saturating_sub(1)),
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                return match self.letter(c, moved) {
                    Some(outcome) => outcome,
                    None => self.write(key),
                };
            }
            _ => return self.write(key),
        }
        self.moved = true;
        self.word = None;
        Outcome::Open
    }

    /// A key that may belong to the filter.
    fn write(&mut self, key: KeyEvent) -> Outcome {
        if !self.filter.key(key) {
            return Outcome::Ignored;
        }
        self.word = None;
        if let Some(words) = self.sought() {
            return Outcome::Find(words);
        }
        self.refilter();
        Outcome::Open
    }

    /// A letter that is a key of the list; none where it is the filter's. It is one once the user has moved in the list.
    fn letter(&mut self, c: char, moved: bool) -> Option<Outcome> {
        let free = moved || self.filter.is_empty();
        let outcome = match (self.kind, c) {
            (Some(ListKind::Models), 'r') if free => self.doing(Outcome::FindServer),
            (Some(ListKind::Settings), ' ') => self.choose(),
            (Some(ListKind::Settings), '?') => {
                self.explains = !self.explains;
                Outcome::Open
            }
            (Some(ListKind::Settings), 'd') if moved => {
                let Choice::Setting(row) = self.selected_item()?.choice.clone() else { return None };
                self.doing(Outcome::Set { key: row.key, value: None, place: self.place })
            }
            (Some(ListKind::Settings), 'p') if moved => {
                self.place = match self.place {
                    SettingPlace::User => SettingPlace::Project,
                    SettingPlace::Project => SettingPlace::User,
                };
                self.word = None;
                Outcome::Open
            }
            (Some(ListKind::Settings | ListKind::Models), '/') if moved => Outcome::Open,
            _ => return None,
        };
        self.moved = moved && c != '/';
        Some(outcome)
    }

    /// What Enter does.
    fn choose(&mut self) -> Outcome {
        let Some(choice) = self.selected_item().map(|item| item.choice.clone()) else { return Outcome::Open };
        self.moved = true;
        match choice {
            Choice::Key { provider, title } => {
                self.over = Some(Over::Entry(Box::new(Entry::key_of(&provider, &title))))
            }
            Choice::FindServer => return self.doing(Outcome::FindServer),
            Choice::Found(row) => match &row.folder {
                None => return Outcome::Chosen(Choice::Session(row.session)),
                Some(folder) => {
                    let text = format!("in {}: run cocode -r {} there", folder.display(), row.session);
                    self.word = Some(Word::Failed { text });
                }
            },
            Choice::Stay(why) => self.word = Some(Word::Failed { text: why }),
            Choice::Setting(row) => match &row.kind {
                SettingKind::Switch => {
                    let value = if row.value.as_deref() == Some("true") { "false" } else { "true" };
                    return self.doing(Outcome::Set { key: row.key, value: Some(value.to_owned()), place: self.place });
                }
                SettingKind::Choice { values } => {
                    self.over = Some(Over::Values(Box::new(Picker::values(&row, values, self.place))));
                }
                SettingKind::Table => {
                    self.word = Some(Word::Failed { text: format!("{} is a table: edit it in config.toml", row.key) });
                }
                SettingKind::Text => self.over = Some(Over::Entry(Box::new(Entry::value_of(*row, self.place)))),
            },
            choice => return Outcome::Chosen(choice),
        }
        Outcome::Open
    }

    /// Notes what is on its way, so that the list can say what came of it.
    fn doing(&mut self, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::FindServer => self.word = Some(looking()),
            Outcome::StoreKey { provider, .. } => self.stored = Some(provider.clone()),
            Outcome::Set { key, .. } => {
                self.changed.retain(|changed| changed != key);
                self.changed.push(key.clone());
            }
            _ => {}
        }
        outcome
    }

    pub fn paste(&mut self, text: &str) {
        match &mut self.over {
            Some(Over::Entry(entry)) => return entry.paste(text),
            Some(Over::Values(values)) => return values.paste(text),
            None => {}
        }
        // Somebody who pastes a key at a provider means to store it; in the filter all could read it.
        let key = text.trim();
        if key.chars().count() >= KEY
            && key.chars().all(|c| c.is_ascii_graphic())
            && let Some(Choice::Key { provider, title }) = self.selected_item().map(|item| &item.choice)
        {
            let mut entry = Entry::key_of(provider, title);
            entry.paste(key);
            self.over = Some(Over::Entry(Box::new(entry)));
            return;
        }
        self.filter.insert(text);
        self.refilter();
    }

    fn refilter(&mut self) {
        self.rank();
        self.selected = 0;
    }

    fn rank(&mut self) {
        // These were searched for their words, and the best come first.
        if self.kind == Some(ListKind::Found) {
            self.shown = (0..self.items.len()).collect();
            return;
        }
        let text = |item: &Item| match item.words.is_empty() {
            true => format!("{} {}", item.label, item.detail),
            false => item.words.clone(),
        };
        let texts: Vec<String> = self.items.iter().map(text).collect();
        // Of many names, those that hold the words are meant.
        let words = self.filter.text().to_lowercase();
        if self.kind == Some(ListKind::Settings) && texts.iter().any(|text| text.to_lowercase().contains(&words)) {
            self.shown = (0..texts.len()).filter(|at| texts[*at].to_lowercase().contains(&words)).collect();
            return;
        }
        self.shown = popup::ranked(self.filter.text(), texts.iter().map(String::as_str), Config::DEFAULT, usize::MAX);
    }
}

fn looking() -> Word {
    Word::Done { text: "Looking for a local server…".to_owned() }
}
