//! Text that a program may run: what it is given in words and options, through a pipe or as another name.

use std::collections::HashSet;

use super::super::files::Files;
use super::super::rule::{Rule, ShellPattern, Specifier};
use super::super::shell::loose::may_hold_line;
use super::super::shell::{Node, Redirect, RedirectKind, Simple, Word};
use super::super::vocabulary::Matches;
use super::super::{commands, wrapper};
use super::seen::distinct_segments;
use super::text::{SUBCOMMANDS, text_of};
use super::{Seen, Text, base, is_assignment, matches_from, spelled, touches};

/// Programs that run what they are given as text: in an argument, or on standard input.
const INTERPRETERS: &str = "sh bash dash ash zsh ksh fish busybox source . eval at batch crontab ssh python python3 python2 perl \
    ruby node php lua osascript";

/// Programs that show what they read from a pipe, though their own words may hold commands.
const SHOWS_INPUT: &str = "less more most bat batcat delta pbcopy xclip xsel wl-copy";

/// Programs that give another one a name, or that name to another file.
const NAMES: &str = "ln cp mv link install hash alias enable";

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// Whether the program runs what it is given as text.
pub(in crate::permission) fn is_interpreter(name: &str) -> bool {
    listed(INTERPRETERS, name)
}

/// Whether the command runs text that other words of the line may hold.
pub(in crate::permission) fn interprets(words: &[String]) -> bool {
    words.first().is_some_and(|name| !commands::takes_data(base(name)))
        && words.iter().any(|word| is_interpreter(base(word)))
}

/// Whether the command may run text of its words: all do but those of which it is known that they do not.
pub(super) fn runs(words: &[String]) -> bool {
    let words = &words[words.iter().take_while(|word| is_assignment(word)).count()..];
    words.first().is_some_and(|name| text_of(base(name), words) < words.len())
}

/// Whether the command may run what it reads from its input. What a carrier starts decides, should the words tell it.
fn runs_input(words: &[String]) -> bool {
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || "/.".contains(c))
            && !word.contains('=')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c))
    };
    let mut at = words.iter().take_while(|word| is_assignment(word)).count();
    while words.get(at).is_some_and(|word| wrapper::carries(base(word))) {
        match words[at + 1..].iter().position(|word| is_name(word)) {
            Some(next) => at += 1 + next,
            None => return true,
        }
        // Its words become those of the program, the first of them a subcommand.
        if words.get(at).is_some_and(|word| SUBCOMMANDS.contains(&base(word))) {
            return true;
        }
    }
    runs(&words[at..]) && !words.get(at).is_some_and(|word| listed(SHOWS_INPUT, base(word)))
}

/// Whether the rule speaks about anything in a text that an interpreter may run, in whatever language.
pub(in crate::permission) fn touches_held(rule: &Rule, text: &Text) -> bool {
    text.tokens().hold_apart(rule)
        || match rule.specifier() {
            Specifier::Shell(pattern) => text.all().iter().any(|words| matches_from(pattern, words, &[0])),
            _ => false,
        }
}

/// Whether the rule speaks about anything in the words, each of which may be or hold a command.
pub(super) fn touches_words(rule: &Rule, seen: &Seen) -> bool {
    let words = &seen.words;
    // A view of a bisection is a command of git's.
    let git = words.iter().position(|word| base(word) == "git");
    let viewed = git.and_then(|at| {
        let behind = &words[at + 1..];
        let view = behind.iter().position(|word| matches!(word.as_str(), "view" | "visualize"))?;
        behind[..view].iter().any(|word| word == "bisect").then(|| &behind[view + 1..])
    });
    let viewed = viewed.filter(|rest| !rest.is_empty()).map(|rest| [&["git".to_owned()], rest].concat());
    let text = seen.started().text;
    seen.tokens.get_or_init(|| Tokens::of(&words[text..].join("\n"), Folders::Split)).hold(rule)
        || viewed.is_some_and(|words| match rule.specifier() {
            Specifier::Shell(pattern) => matches_from(pattern, &words, &[0]),
            _ => false,
        })
}

/// The words that a command in the text has to begin with; the last may be a pattern.
fn wanted(rule: &Rule) -> Vec<&str> {
    match rule.specifier() {
        Specifier::Shell(ShellPattern::Prefix(prefix)) => prefix.iter().map(String::as_str).collect(),
        Specifier::Shell(ShellPattern::Exact(text) | ShellPattern::Wildcard(text)) => {
            let words = text.trim_matches('*').split_whitespace();
            words.skip_while(|word| *word == "*").take_while(|word| !word.contains('*')).collect()
        }
        _ => Vec::new(),
    }
}

/// What becomes of slashes in a text: in one whose lines are words of the command they may as well separate a script's parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Folders {
    Kept,
    Split,
}

/// A text as rules that forbid look for their words in it: read once, whatever their number.
#[derive(Debug)]
pub(super) struct Tokens {
    readings: Vec<Vec<String>>,
    /// Every token in small letters, with its folder and without.
    names: HashSet<String>,
}

impl Tokens {
    pub(super) fn of(text: &str, folders: Folders) -> Tokens {
        let readings = readings(text, folders);
        let both = |token: &String| [token.trim_start_matches("./"), base(token)].map(str::to_ascii_lowercase);
        let names = readings.iter().flatten().flat_map(both).collect();
        Tokens { readings, names }
    }

    /// Whether the rule's words are next to each other anywhere in the text, whatever is between them.
    fn hold(&self, rule: &Rule) -> bool {
        self.find(rule, |_, _| false)
    }

    /// The same, options between the words apart.
    fn hold_apart(&self, rule: &Rule) -> bool {
        self.find(rule, |want, tokens| want.len() > 1 && spelled::leads(want, tokens))
    }

    fn find(&self, rule: &Rule, leads: impl Fn(&[&str], &[String]) -> bool) -> bool {
        let want = wanted(rule);
        let Some(first) = want.first() else { return false };
        let joined = want.join("-");
        let named = |name: &str| self.names.contains(&name.trim_start_matches("./").to_ascii_lowercase());
        (named(first) || named(&joined))
            && self.readings.iter().any(|tokens| {
                let fit = |tokens: &[String]| want.iter().zip(tokens).all(|(want, token)| is_word(want, token));
                tokens.windows(want.len()).any(fit)
                    || tokens.iter().enumerate().any(|(at, token)| is_word(first, token) && leads(&want, &tokens[at..]))
                    || want.len() > 1 && tokens.iter().any(|token| is_program(&joined, token))
            })
    }
}

/// The text as tokens: with paths and addresses whole, and with everything split that may separate a command from
/// what is before it.
fn readings(text: &str, folders: Folders) -> Vec<Vec<String>> {
    let decoded = ["\\n", "\\t", "\\r", "\\012", "\\011"]
        .iter()
        .fold(text.to_owned(), |text, escape| if text.contains(escape) { text.replace(escape, " ") } else { text });
    let split = |text: &str, kept: &str| {
        let tokens = text.split(|c: char| !(c.is_alphanumeric() || kept.contains(c)));
        tokens.filter(|token| !token.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    // In a path without anything else the folders are not commands.
    let parts: Vec<String> = decoded
        .split('\n')
        .flat_map(|word| split(word, if folders == Folders::Split && may_hold_line(word) { "_-." } else { "_-./" }))
        .collect();
    let whole = split(text, "_-./+@:");
    // `-S'rm x'`: an option with its value.
    let values = parts.iter().map(|token| attached(token).unwrap_or(token).to_owned()).collect();
    vec![whole, split(&decoded, "_-./+@:"), values, parts]
}

/// The value behind an option of one letter.
fn attached(token: &str) -> Option<&str> {
    let rest = token.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    rest.get(1..).filter(|rest| !rest.is_empty())
}

fn is_word(want: &str, token: &str) -> bool {
    // Letters of options mean different things.
    match want.starts_with('-') {
        true => want == token,
        false => {
            let (want, token) = (want.trim_start_matches("./"), token.trim_start_matches("./"));
            want.eq_ignore_ascii_case(token) || want.eq_ignore_ascii_case(base(token))
        }
    }
}

/// Whether the token starts `git push` as `git-push`, from a folder of programs or without one.
fn is_program(joined: &str, token: &str) -> bool {
    joined.eq_ignore_ascii_case(token) || token.starts_with(['/', '.']) && joined.eq_ignore_ascii_case(base(token))
}

/// What the commands of a line give each other: read once, whatever the number of rules.
#[derive(Debug, Default)]
pub(in crate::permission) struct Held {
    /// Texts that reach a program which may run them.
    texts: Vec<Fed>,
    /// The tokens of commands that give a program another name, and what that may be.
    names: Vec<(HashSet<String>, Vec<String>)>,
    /// The words of the others, where there are such.
    others: Vec<Vec<String>>,
}

/// A text that a program may run.
#[derive(Debug)]
struct Fed {
    /// Its tokens: alone, and behind the words of each that reads it.
    tokens: Vec<Tokens>,
    segments: Vec<Vec<String>>,
}

impl Held {
    pub(in crate::permission) fn of(node: &Node, files: &dyn Files) -> Held {
        let mut held = Held::default();
        held.feed(node, files);
        let commands = commands_of(node);
        let renames = |command: &Simple| command.words.iter().take(3).any(|word| listed(NAMES, base(&word.source)));
        for command in commands.iter().filter(|command| renames(command)) {
            let words = || command.words.iter().skip(1);
            let tokens = words().flat_map(|word| readings(&word.source, Folders::Kept)).flatten();
            let tokens = tokens.flat_map(|token| [token.to_ascii_lowercase(), base(&token).to_ascii_lowercase()]);
            let names =
                words().map(Word::known).map(|word| base(word.split('=').next().unwrap_or_default()).to_owned());
            held.names.push((tokens.collect(), names.filter(|name| !name.is_empty()).collect()));
        }
        if !held.names.is_empty() {
            let words = commands.iter().map(|command| known(&command.words));
            held.others = words.filter(|words| !words.iter().take(3).any(|word| listed(NAMES, base(word)))).collect();
        }
        held
    }

    /// Whether the rule speaks about text that one command gives another, or about a program to which the line gives another
    /// name.
    pub(in crate::permission) fn runs(&self, rule: &Rule) -> bool {
        rule.is_about(Matches::Command)
            && !wanted(rule).is_empty()
            && (self.texts.iter().any(|text| text.holds(rule)) || self.renamed(rule))
    }

    /// Whether a command by the name that the line itself gives the rule's program is one that the rule speaks about.
    fn renamed(&self, rule: &Rule) -> bool {
        let want = wanted(rule)[0];
        let given = self.names.iter().filter(|(tokens, _)| tokens.contains(&want.to_ascii_lowercase()));
        let names: Vec<&String> = given.flat_map(|(_, names)| names).filter(|name| *name != want).collect();
        !names.is_empty()
            && self.others.iter().any(|words| {
                let own = |word: &String| names.iter().any(|name| *name == base(word));
                let replaced: Vec<String> =
                    words.iter().map(|word| if own(word) { want.to_owned() } else { word.clone() }).collect();
                replaced != *words && touches(rule, &Seen::new(replaced))
            })
    }

    /// Collects what a pipe, a substitution or a here-document brings, where something reads it that may run it.
    fn feed(&mut self, node: &Node, files: &dyn Files) {
        match node {
            Node::Simple(command) => self.give(&[], node, &data_of(&command.redirects), files),
            Node::Not(inner) | Node::Function { body: inner, .. } => self.feed(inner, files),
            Node::And(left, right) | Node::Or(left, right) => {
                self.feed(left, files);
                self.feed(right, files);
            }
            // The substitutions of a statement are before it.
            Node::Sequence(nodes) => {
                if let [before @ Node::Apart(_), after] = nodes.as_slice() {
                    self.give(std::slice::from_ref(before), after, &[], files);
                }
                nodes.iter().for_each(|node| self.feed(node, files));
            }
            Node::Apart(nodes) => {
                (1..nodes.len()).for_each(|at| self.give(&nodes[..at], &nodes[at], &[], files));
                nodes.iter().for_each(|node| self.feed(node, files));
            }
            Node::Block { parts, .. } => parts.iter().for_each(|node| self.feed(node, files)),
            Node::Redirected { body, redirects } => {
                if let Some(body) = body {
                    self.give(&[], body, &data_of(redirects), files);
                    self.feed(body, files);
                }
            }
        }
    }

    fn give(&mut self, producers: &[Node], consumers: &Node, data: &[String], files: &dyn Files) {
        if producers.is_empty() && data.is_empty() {
            return;
        }
        let consumers: Vec<_> = commands_of(consumers).iter().map(|command| known(&command.words)).collect();
        let consumers: Vec<_> = consumers.into_iter().filter(|words| runs_input(words)).collect();
        let cost = producers.len() * (1 + 4 * consumers.len()) + data.iter().map(|text| text.len() / 8).sum::<usize>();
        if files.spend(4 * cost) || consumers.is_empty() {
            return;
        }
        let produced = producers.iter().flat_map(commands_of).map(|command| {
            [known(command.words.get(1..).unwrap_or_default()), data_of(&command.redirects)].concat().join("\n")
        });
        for text in produced.chain(data.iter().cloned()).filter(|text| !text.is_empty()) {
            let behind = consumers.iter().map(|words| format!("{}\n{text}", words.join("\n")));
            let behind = behind.map(|text| Tokens::of(&text, Folders::Split));
            let alone = [Folders::Split, Folders::Kept].map(|folders| Tokens::of(&text, folders));
            self.texts
                .push(Fed { tokens: alone.into_iter().chain(behind).collect(), segments: distinct_segments(&text) });
        }
    }
}

impl Fed {
    fn holds(&self, rule: &Rule) -> bool {
        self.tokens.iter().any(|tokens| tokens.hold_apart(rule))
            || match rule.specifier() {
                Specifier::Shell(pattern) => self.segments.iter().any(|words| matches_from(pattern, words, &[0])),
                _ => false,
            }
    }
}

fn data_of(redirects: &[Redirect]) -> Vec<String> {
    let data = redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Data);
    data.map(|redirect| redirect.target.known()).collect()
}

fn known(words: &[Word]) -> Vec<String> {
    words.iter().map(Word::known).collect()
}

fn commands_of(node: &Node) -> Vec<Simple> {
    let mut all = Vec::new();
    node.for_each_simple(&mut |command| all.push(command.clone()));
    all
}
