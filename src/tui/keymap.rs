//! Which key does what: defaults from `config/keymap.toml`, overrides from `[keys]`.

use std::collections::{BTreeMap, HashMap};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

const DEFAULTS: &str = include_str!("../../config/keymap.toml");

/// Declares the actions once: variant, name in files, help.
macro_rules! actions {
    ($($variant:ident $name:literal $help:literal,)*) => {
        /// Everything that a key can be bound to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action { $($variant,)* }

        impl Action {
            pub const ALL: &[Action] = &[$(Action::$variant,)*];

            /// The name in `keymap.toml` and `[keys]`.
            pub fn name(self) -> &'static str {
                match self { $(Action::$variant => $name,)* }
            }

            /// What it does, for people.
            pub fn help(self) -> &'static str {
                match self { $(Action::$variant => $help,)* }
            }
        }
    };
}

actions! {
    Send "send" "send; while the agent works: steer it at its next step",
    Newline "newline" "new line (a backslash before Enter does the same)",
    SendAfter "send_after" "while the agent works: send after this turn; else a new line",
    Cancel "cancel" "interrupt the agent; close what is open; twice on an empty prompt: rewind",
    Interrupt "interrupt" "interrupt, or clear the prompt; twice: exit",
    Exit "exit" "exit when the prompt is empty, else delete forward",
    Suspend "suspend" "suspend to the shell",
    Redraw "redraw" "redraw the screen",
    CycleMode "cycle_mode" "next permission mode",
    ThinkMore "think_more" "think harder; after the hardest level: no thinking",
    ThinkLess "think_less" "the same in reverse",
    Transcript "transcript" "whole transcript",
    Todos "todos" "show or hide the todo list",
    SearchHistory "search_history" "search earlier prompts",
    Editor "editor" "edit the prompt in $EDITOR",
    PasteImage "paste_image" "take an image from the clipboard",
    Stash "stash" "stash the prompt, or restore it",
    Complete "complete" "accept the suggestion; on an empty prompt: think harder",
    Help "help" "these keys (on an empty prompt)",
    Background "background" "move the running command to the background; else left",
    Left "left" "left",
    Right "right" "right",
    Up "up" "row up; at the top: earlier prompt, or edit what is queued",
    Down "down" "row down; at the bottom: later prompt",
    WordLeft "word_left" "word left",
    WordRight "word_right" "word right",
    LineStart "line_start" "start of the line",
    LineEnd "line_end" "end of the line",
    TextStart "text_start" "start of the prompt",
    TextEnd "text_end" "end of the prompt",
    DeleteBack "delete_back" "delete back",
    DeleteForward "delete_forward" "delete forward",
    DeleteWordBack "delete_word_back" "cut the word before the cursor",
    DeleteWordForward "delete_word_forward" "cut the word after the cursor",
    KillChunkBack "kill_chunk_back" "cut back to white space",
    KillToEnd "kill_to_end" "cut to the end of the line",
    KillToStart "kill_to_start" "cut to the start of the line",
    Yank "yank" "paste what was cut",
    YankPop "yank_pop" "after pasting: the cut before it instead",
    Undo "undo" "undo",
    Redo "redo" "redo",
    PageUp "page_up" "page up in lists, dialogs and --fullscreen",
    PageDown "page_down" "page down in lists, dialogs and --fullscreen",
}

/// One key with its modifiers, in one spelling however the terminal reports it; or a chord, which begins with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    first: Option<(KeyCode, KeyModifiers)>,
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Key {
        let mut modifiers = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match event.code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => {
                if c.is_uppercase() {
                    modifiers |= KeyModifiers::SHIFT;
                }
                KeyCode::Char(c.to_ascii_lowercase())
            }
            // The character says already that Shift was held, but not every terminal makes it large under Alt.
            KeyCode::Char(c) => {
                let shift = modifiers.contains(KeyModifiers::ALT | KeyModifiers::SHIFT);
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(if shift { upper(c) } else { c })
            }
            code => code,
        };
        // `_`, `<` and the like need Shift on some layouts and not on others.
        if matches!(code, KeyCode::Char(c) if !c.is_alphabetic()) {
            modifiers -= KeyModifiers::SHIFT;
        }
        Key { first: None, code, modifiers }
    }
}

fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(c)
}

const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("plus", KeyCode::Char('+')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

impl Key {
    /// Reads `ctrl+o`, `alt+enter`, `f1`, `?`, and the chord `ctrl+x ctrl+b`.
    pub fn parse(text: &str) -> Option<Key> {
        match text.trim().split_once(' ') {
            Some((first, then)) => Some(Key::one(then)?.after(Key::one(first)?)),
            None => Key::one(text),
        }
    }

    /// The chord of two keys.
    pub fn after(self, first: Key) -> Key {
        Key { first: Some((first.code, first.modifiers)), ..self }
    }

    fn one(text: &str) -> Option<Key> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text.trim();
        while let Some((modifier, name)) = rest.split_once('+').filter(|(_, name)| !name.is_empty()) {
            modifiers |= match modifier.trim().to_ascii_lowercase().as_str() {
                "ctrl" | "control" => KeyModifiers::CONTROL,
                "alt" | "meta" | "option" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return None,
            };
            rest = name.trim();
        }
        let lower = rest.to_ascii_lowercase();
        let mut chars = rest.chars();
        let code = match (NAMED.iter().find(|(name, _)| *name == lower), chars.next(), chars.next()) {
            (Some((_, code)), _, _) => *code,
            (None, Some(c), None) => KeyCode::Char(c),
            _ => KeyCode::F(lower.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n))?),
        };
        let code = match code {
            KeyCode::Char(c) if modifiers == KeyModifiers::SHIFT => KeyCode::Char(c.to_ascii_uppercase()),
            code => code,
        };
        Some(Key::from(KeyEvent::new(code, modifiers)))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((code, modifiers)) = self.first {
            write!(f, "{} ", Key { first: None, code, modifiers })?;
        }
        for (modifier, name) in
            [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::F(n) => write!(f, "F{n}"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) if self.modifiers.is_empty() => write!(f, "{c}"),
            KeyCode::Char(c) if c.is_uppercase() => write!(f, "Shift+{c}"),
            KeyCode::Char(c) => write!(f, "{}", c.to_ascii_uppercase()),
            code => match NAMED.iter().find(|(_, named)| *named == code) {
                Some((name, _)) => write!(f, "{}{}", name[..1].to_ascii_uppercase(), &name[1..]),
                None => write!(f, "{code:?}"),
            },
        }
    }
}

/// What is wrong with a `[keys]` table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("keys.{name}: no such action; did you mean `{nearest}`?")]
    UnknownAction { name: String, nearest: &'static str },
    #[error(
        "keys.{action}: cannot read the key `{text}`; write modifiers and a name joined by +, as in `ctrl+o` or `f1`"
    )]
    BadKey { action: &'static str, text: String },
    #[error("keys.{first} and keys.{second} both use `{key}`: change one of them")]
    Conflict { key: String, first: &'static str, second: &'static str },
    #[error("keys.{action}: `{key}` is typed as text; add ctrl or alt, or use a function key")]
    Typed { action: &'static str, key: String },
}

/// The keys as they are in use.
#[derive(Debug, Clone)]
pub struct Keymap {
    keys: HashMap<Key, Action>,
    /// In the order of the files, for people.
    shown: BTreeMap<Action, Vec<Key>>,
}

impl Keymap {
    /// The keys of `config/keymap.toml`, with the actions in `overrides` bound to other keys. A key that an override
    /// takes is freed from the default action that had it.
    ///
    /// # Errors
    /// All that is wrong, each naming its key and the fix.
    pub fn new(overrides: &BTreeMap<String, Vec<String>>) -> Result<Keymap, Vec<Error>> {
        let mut errors = Vec::new();
        let mut shown = defaults();
        let mut taken: HashMap<Key, Action> = HashMap::new();
        for (name, texts) in overrides {
            let Some(action) = Action::ALL.iter().copied().find(|action| action.name() == name) else {
                errors.push(Error::UnknownAction { name: name.clone(), nearest: nearest(name) });
                continue;
            };
            let mut keys = Vec::new();
            for text in texts {
                let Some(key) = Key::parse(text) else {
                    errors.push(Error::BadKey { action: action.name(), text: text.clone() });
                    continue;
                };
                let (code, modifiers) = key.first.unwrap_or((key.code, key.modifiers));
                let plain = modifiers.is_empty() && matches!(code, KeyCode::Char(_));
                if plain && action != Action::Help {
                    errors.push(Error::Typed { action: action.name(), key: text.clone() });
                    continue;
                }
                match taken.insert(key, action) {
                    Some(first) if first != action => errors.push(Error::Conflict {
                        key: key.to_string(),
                        first: first.name(),
                        second: action.name(),
                    }),
                    _ => keys.push(key),
                }
            }
            shown.insert(action, keys);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (action, keys) in &mut shown {
            keys.retain(|key| taken.get(key).is_none_or(|owner| owner == action));
        }
        let keys = shown.iter().flat_map(|(action, keys)| keys.iter().map(|key| (*key, *action))).collect();
        Ok(Keymap { keys, shown })
    }

    /// What a key does; none for text and for key releases.
    pub fn action(&self, event: KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        self.keys.get(&Key::from(event)).copied()
    }

    /// What a key does as the second one of a chord.
    pub fn action_after(&self, first: Key, event: KeyEvent) -> Option<Action> {
        self.keys.get(&Key::from(event).after(first)).copied()
    }

    /// The key as the first one of a chord; none where no chord begins with it.
    pub fn begins(&self, event: KeyEvent) -> Option<Key> {
        let key = Key::from(event);
        let begins = |chord: &Key| chord.first == Some((key.code, key.modifiers));
        (event.kind != KeyEventKind::Release && self.keys.keys().any(begins)).then_some(key)
    }

    /// The first key of an action, as people write it; empty when it has none.
    pub fn hint(&self, action: Action) -> String {
        self.shown[&action].first().map(Key::to_string).unwrap_or_default()
    }

    /// All actions with their keys.
    pub fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let keys = |action: &Action| self.shown[action].iter().map(Key::to_string).collect::<Vec<_>>().join(", ");
        Action::ALL.iter().map(|action| (action.name(), keys(action), action.help())).collect()
    }
}

impl Default for Keymap {
    fn default() -> Keymap {
        Keymap::new(&BTreeMap::new()).unwrap_or_else(|_| Keymap { keys: HashMap::new(), shown: defaults() })
    }
}

/// The default keys for the README: action, keys, help.
pub fn table() -> Vec<(&'static str, String, &'static str)> {
    Keymap::default().rows()
}

fn defaults() -> BTreeMap<Action, Vec<Key>> {
    let file: BTreeMap<String, Vec<String>> = toml::from_str(DEFAULTS).expect("keymap.toml is part of the program");
    let keys = |action: &Action| -> Vec<Key> {
        file.get(action.name()).into_iter().flatten().filter_map(|text| Key::parse(text)).collect()
    };
    Action::ALL.iter().map(|action| (*action, keys(action))).collect()
}

fn nearest(name: &str) -> &'static str {
    let common = |action: &&Action| {
        let other = action.name();
        let same = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let shared = other.split('_').filter(|part| name.contains(part)).count();
        (same + 3 * shared, usize::MAX - other.len())
    };
    Action::ALL.iter().max_by_key(common).map_or("send", |action| action.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        rows.iter().map(|(name, keys)| ((*name).into(), keys.iter().map(|key| (*key).into()).collect())).collect()
    }

    #[test]
    fn every_action_has_a_default_key_and_none_clashes() {
        let file: BTreeMap<String, Vec<String>> = toml::from_str(DEFAULTS).unwrap();
        let mut seen = HashMap::new();
        for (name, keys) in &file {
            assert!(Action::ALL.iter().any(|action| action.name() == name), "{name}");
            assert!(!keys.is_empty(), "{name}");
            for key in keys {
                let parsed = Key::parse(key).unwrap_or_else(|| panic!("{key}"));
                assert_eq!(seen.insert(parsed, name), None, "{key} is bound twice");
            }
        }
        assert_eq!(file.len(), Action::ALL.len());
        assert!(table().iter().all(|(_, keys, help)| !keys.is_empty() && !help.is_empty()));
    }

    #[test]
    fn terminals_spell_one_key_in_many_ways() {
        let map = Keymap::default();
        let check = |code, modifiers, want| assert_eq!(map.action(KeyEvent::new(code, modifiers)), want, "{code:?}");
        let (control, shift, alt) = (KeyModifiers::CONTROL, KeyModifiers::SHIFT, KeyModifiers::ALT);
        check(KeyCode::BackTab, KeyModifiers::NONE, Some(Action::CycleMode));
        check(KeyCode::BackTab, shift, Some(Action::CycleMode));
        check(KeyCode::Tab, shift, Some(Action::CycleMode));
        check(KeyCode::Char('O'), control, None);
        check(KeyCode::Char('o'), control, Some(Action::Transcript));
        check(KeyCode::Char('?'), shift, Some(Action::Help));
        check(KeyCode::Char('_'), control | shift, Some(Action::Undo));
        check(KeyCode::Char('Z'), control, Some(Action::Redo));
        check(KeyCode::Char('z'), control | shift, Some(Action::Redo));
        check(KeyCode::Enter, alt, Some(Action::SendAfter));
        check(KeyCode::Char('t'), alt, Some(Action::ThinkMore));
        check(KeyCode::Char('T'), alt, Some(Action::ThinkLess));
        check(KeyCode::Char('t'), alt | shift, Some(Action::ThinkLess));
        check(KeyCode::Char('T'), alt | shift, Some(Action::ThinkLess));
        assert_eq!(map.hint(Action::ThinkLess), "Alt+Shift+T");
        check(KeyCode::Char('x'), KeyModifiers::NONE, None);
        let release = KeyEvent { kind: KeyEventKind::Release, ..KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE) };
        assert_eq!(map.action(release), None);
    }

    #[test]
    fn overrides_move_keys_and_name_what_is_wrong() {
        let map = Keymap::new(&overrides(&[("todos", &["ctrl+o"]), ("transcript", &["f2"])])).unwrap();
        let key = |text: &str| map.keys.get(&Key::parse(text).unwrap()).copied();
        assert_eq!((key("ctrl+o"), key("f2"), key("ctrl+t")), (Some(Action::Todos), Some(Action::Transcript), None));
        assert_eq!(map.hint(Action::Todos), "Ctrl+O");

        let first = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::CONTROL);
        let second = KeyEvent::new(KeyCode::Char('b'), KeyModifiers::CONTROL);
        let chord = |map: &Keymap| map.begins(first).and_then(|first| map.action_after(first, second));
        assert_eq!((chord(&map), map.action(second)), (Some(Action::Background), Some(Action::Background)));
        assert_eq!(map.begins(second), None);
        let map = Keymap::new(&overrides(&[("editor", &["ctrl+x ctrl+b"]), ("left", &["ctrl+b"])])).unwrap();
        assert_eq!((chord(&map), map.action(second)), (Some(Action::Editor), Some(Action::Left)));
        assert_eq!(map.hint(Action::Editor), "Ctrl+X Ctrl+B");

        let check = |rows: &[(&str, &[&str])], want: &str| {
            let errors = Keymap::new(&overrides(rows)).unwrap_err();
            let text: Vec<String> = errors.iter().map(Error::to_string).collect();
            assert_eq!(text.join("\n"), want);
        };
        check(&[("todo", &["f1"])], "keys.todo: no such action; did you mean `todos`?");
        check(
            &[("todos", &["hyper+x"])],
            "keys.todos: cannot read the key `hyper+x`; write modifiers and a name joined by +, as in `ctrl+o` or `f1`",
        );
        check(
            &[("todos", &["f1"]), ("editor", &["f1"])],
            "keys.editor and keys.todos both use `F1`: change one of them",
        );
        check(
            &[("todos", &["t ctrl+b"])],
            "keys.todos: `t ctrl+b` is typed as text; add ctrl or alt, or use a function key",
        );
        check(&[("todos", &["t"])], "keys.todos: `t` is typed as text; add ctrl or alt, or use a function key");
    }
}
