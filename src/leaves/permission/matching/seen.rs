//! What rules that forbid see of a command and of a line: read once, whatever the number of rules.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::super::commands;
use super::super::shell::loose::{all_segments, may_hold_line, open_segments, segments};
use super::super::shell::{MANY, ONE};
use super::super::wrapper;
use super::held::{Folders, Tokens};
use super::text::text_of;
use super::{SETTERS, base, is_assignment, is_open, opened_commands, other, reach};

/// The words of a command as rules that forbid see them: read once, whatever the number of rules.
#[derive(Debug)]
pub(in crate::permission) struct Seen {
    pub(in crate::permission) words: Vec<String>,
    started: OnceCell<Started>,
    /// The segments of lines in its words.
    lines: OnceCell<Vec<Segment>>,
    pub(super) tokens: OnceCell<Tokens>,
    /// The same with `git commit` for `git-commit`, where there is such a word.
    pub(super) apart: Option<Box<Seen>>,
    /// The same by other names.
    pub(super) alike: Vec<Seen>,
}

/// Words, and where among them a command may start.
pub(super) type Segment = (Vec<String>, Vec<usize>);

/// What a command may start.
#[derive(Debug)]
pub(super) struct Started {
    /// Its words with what others put among them.
    pub(super) given: Vec<String>,
    pub(super) starts: Vec<usize>,
    /// Whether a word may itself hold a line.
    pub(super) holds_lines: bool,
    /// What its variables say.
    pub(super) set: Vec<Segment>,
    /// How many of its words are surely text to it; where these are all, it runs none.
    pub(super) text: usize,
}

impl Seen {
    pub(in crate::permission) fn new(words: Vec<String>) -> Seen {
        let alike = other::names(&words).into_iter().map(Seen::named).collect();
        Seen { alike, ..Seen::named(words) }
    }

    /// The words as they are called here.
    fn named(words: Vec<String>) -> Seen {
        let (started, lines, tokens) = Default::default();
        let subcommand =
            |word: &str| base(word).strip_prefix("git-").filter(|name| !name.is_empty()).map(str::to_owned);
        let apart = words.iter().any(|word| subcommand(word).is_some()).then(|| {
            let split = words.iter().flat_map(|word| match subcommand(word) {
                Some(name) => vec!["git".to_owned(), name],
                None => vec![word.clone()],
            });
            Box::new(Seen::new(split.collect()))
        });
        Seen { words, started, lines, tokens, apart, alike: Vec::new() }
    }

    pub(super) fn started(&self) -> &Started {
        self.started.get_or_init(|| Started::of(&self.words))
    }

    pub(super) fn lines(&self) -> &[Segment] {
        self.lines.get_or_init(|| {
            let of = |word: &String| {
                let value = word.split_once('=').map_or("", |(_, value)| value);
                // `--checkpoint-action=exec=…`
                let last = word.rsplit_once('=').map_or("", |(_, value)| value);
                let mut lines =
                    vec![word.as_str(), value, last, value.trim_start_matches('!'), word.trim_start_matches('!')];
                // What nothing is known of is looked at where a command is.
                lines.retain(|line| !line.trim_matches([ONE, MANY]).is_empty());
                lines.dedup();
                lines.into_iter().flat_map(segments_of).collect::<Vec<_>>()
            };
            let held = self.words.iter().filter(|word| may_hold_line(word)).flat_map(of);
            let env = self.words.iter().position(|word| base(word) == "env");
            let split = env.map_or(&[][..], |at| &self.words[at + 1..]).iter().filter_map(|word| split_string(word));
            held.chain(split.flat_map(|line| segments_of(&line).collect::<Vec<_>>())).collect()
        })
    }
}

/// A line as rules that forbid see it without a grammar: read once, whatever the number of rules.
#[derive(Debug)]
pub(in crate::permission) struct Text<'a> {
    pub(super) text: &'a str,
    segments: OnceCell<Vec<Seen>>,
    open: OnceCell<Vec<Seen>>,
    all: OnceCell<Vec<Vec<String>>>,
    tokens: OnceCell<Tokens>,
}

impl<'a> Text<'a> {
    pub(in crate::permission) fn new(text: &'a str) -> Text<'a> {
        let (segments, open, all, tokens) = Default::default();
        Text { text, segments, open, all, tokens }
    }

    pub(in crate::permission) fn segments(&self) -> &[Seen] {
        self.segments.get_or_init(|| segments(self.text).into_iter().map(Seen::new).collect())
    }

    pub(super) fn open(&self) -> &[Seen] {
        self.open.get_or_init(|| open_segments(self.text).into_iter().map(Seen::new).collect())
    }

    pub(super) fn all(&self) -> &[Vec<String>] {
        self.all.get_or_init(|| distinct_segments(self.text))
    }

    pub(super) fn tokens(&self) -> &Tokens {
        self.tokens.get_or_init(|| Tokens::of(self.text, Folders::Kept))
    }

    /// Whether the line sets a variable that may keep a hook of git's from running.
    pub(super) fn changes_hooks(&self) -> bool {
        let keeps = |word: &str| commands::commit::leaves_hooks(word.split_once('=').map_or(word, |(name, _)| name));
        // One that is not exported reaches no program, unless the shell had it from its own start.
        let own = |word: &String| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            let inherited = ["GIT_", "XDG_", "LD_", "DYLD_", "BASH", "HOME", "PATH", "ENV", "SHELLOPTS"];
            let used = self.text.contains(&format!("${name}")) || self.text.contains(&format!("${{{name}"));
            keeps(word) || used && !inherited.iter().any(|start| name.starts_with(start))
        };
        self.all().iter().any(|words| {
            let before = words.iter().take_while(|word| is_assignment(word)).count();
            let (set, rest) = words.split_at(before);
            let Some((name, given)) = rest.split_first() else { return !set.iter().all(own) };
            let mut options = given.iter().filter(|word| word.starts_with(['-', '+']));
            let mut values = given.iter().filter(|word| !word.starts_with(['-', '+']));
            !set.iter().all(|word| keeps(word))
                || match base(name) {
                    "env" => {
                        options.next().is_some()
                            || !values.take_while(|word| is_assignment(word)).all(|word| keeps(word))
                    }
                    "unset" => !values.all(|word| keeps(word)),
                    "read" | "mapfile" | "readarray" | "getopts" | "printf" | "let" => {
                        options.next().is_some() && !values.all(own)
                    }
                    "set" => options.any(|word| word.contains('a')) || given.iter().any(|word| word == "allexport"),
                    name if SETTERS.contains(&name) => !values.all(|word| keeps(word)),
                    _ => false,
                }
        })
    }
}

/// Each segment of the text once: a line may hold one thousands of times.
pub(super) fn distinct_segments(text: &str) -> Vec<Vec<String>> {
    let mut seen = HashSet::new();
    let mut all = all_segments(text);
    all.retain(|words| seen.insert(words.clone()));
    all
}

fn segments_of(text: &str) -> impl Iterator<Item = Segment> {
    all_segments(text).into_iter().map(|words| {
        let starts = reach(&words).0;
        (words, starts)
    })
}

/// What env makes of text that it splits, in a word that may be such text or hold it behind its letters; None where that is
/// the word itself.
fn split_string(word: &str) -> Option<String> {
    let letters = word.strip_prefix('-').and_then(|rest| rest.split_once('S'));
    let glued = letters.filter(|(before, _)| before.chars().all(|c| matches!(c, '0' | 'i' | 'v')));
    let text = glued.map_or(word, |(_, text)| text);
    let mut line = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('_' | 't' | 'n' | 'f' | 'r' | 'v') => line.push(' '),
                Some('c') | None => break,
                Some(other) => line.push(other),
            },
            // The value of a variable.
            '$' => {
                line.push(MANY);
                chars.by_ref().find(|c| *c == '}');
            }
            c => line.push(c),
        }
    }
    (line != word && !line.is_empty()).then_some(line)
}

impl Started {
    fn of(words: &[String]) -> Started {
        let (mut starts, holds_lines) = reach(words);
        // Of a word that only bash knows, few programs make a command.
        let name = starts.iter().copied().find(|at| !is_assignment(&words[*at])).unwrap_or_default();
        let commands = opened_commands(&words[name..]);
        starts.retain(|at| *at <= name || !is_open(&words[*at]) || commands.contains(&(at - name)));
        // Xargs adds words of its own, and a shell splits what it is given as a line.
        let mut given = words.to_vec();
        for at in commands {
            given[name + at] = given[name + at].replace(ONE, &MANY.to_string());
        }
        if words.iter().any(|word| base(word) == "xargs") {
            given.push(MANY.to_string());
        }
        // A program runs what some of its variables say.
        let before = words.iter().take_while(|word| is_assignment(word)).count();
        let sets = words.get(before).is_some_and(|name| SETTERS.contains(&base(name)));
        let set = words[..if sets { words.len() } else { before }].iter().filter_map(|word| word.split_once('='));
        let set = set.filter(|(name, value)| !wrapper::is_local(name) && may_hold_line(value));
        let set = set.flat_map(|(_, value)| segments_of(value)).collect();
        let named = words.get(before).map_or(0, |name| text_of(base(name), &words[before..]));
        Started { given, starts, holds_lines, set, text: if named > 0 { before + named } else { 0 } }
    }
}
