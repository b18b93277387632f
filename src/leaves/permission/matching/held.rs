//! Text that a program may run: what it is given in words and options, through a pipe or as another name.

use std::collections::HashSet;

use super::super::files::Files;
use super::super::rule::{Rule, ShellPattern, Specifier};
use super::super::shell::loose::may_hold_line;
use super::super::shell::{Node, RedirectKind, Simple, Word};
use super::super::vocabulary::Matches;
use super::super::{commands, wrapper};
use super::{SUBCOMMANDS, Seen, Text, base, is_assignment, matches_from, takes_text, touches};

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

/// Whether the command runs text that other words of the line may hold.
pub(in crate::permission) fn interprets(words: &[String]) -> bool {
    words.first().is_some_and(|name| !commands::takes_data(base(name)))
        && words.iter().any(|word| listed(INTERPRETERS, base(word)))
}

/// Whether the command may run text of its words: all do but those of which it is known that they do not.
pub(super) fn runs(words: &[String]) -> bool {
    let words = &words[words.iter().take_while(|word| is_assignment(word)).count()..];
    words.first().is_some_and(|name| !takes_text(base(name), words))
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
    text.tokens().hold(rule)
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
    seen.tokens.get_or_init(|| Tokens::of(&words.join("\n"), Folders::Split)).hold(rule)
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
            text.split_whitespace().take_while(|word| !word.contains('*')).collect()
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
        let both = |token: &String| [token.to_ascii_lowercase(), base(token).to_ascii_lowercase()];
        let names = readings.iter().flatten().flat_map(both).collect();
        Tokens { readings, names }
    }

    /// Whether the rule's words are next to each other anywhere in the text, whatever is between them.
    fn hold(&self, rule: &Rule) -> bool {
        let want = wanted(rule);
        let Some(first) = want.first() else { return false };
        let joined = want.join("-");
        let named = |name: &str| self.names.contains(&name.to_ascii_lowercase());
        (named(first) || named(&joined))
            && self.readings.iter().any(|tokens| {
                let fit = |tokens: &[String]| want.iter().zip(tokens).all(|(want, token)| is_word(want, token));
                tokens.windows(want.len()).any(fit)
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
    // In a path without anything else the folders are no commands.
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
    want.eq_ignore_ascii_case(token) || want.eq_ignore_ascii_case(base(token))
}

/// Whether the token starts `git push` as `git-push`, from a folder of programs or without one.
fn is_program(joined: &str, token: &str) -> bool {
    joined.eq_ignore_ascii_case(token) || token.starts_with(['/', '.']) && joined.eq_ignore_ascii_case(base(token))
}

/// Whether the rule speaks about text that one command of the construct gives another, or about a program to which the
/// line gives another name.
pub(in crate::permission) fn runs_held(rule: &Rule, node: &Node, files: &dyn Files) -> bool {
    rule.is_about(Matches::Command) && !wanted(rule).is_empty() && (fed(rule, node, files) || renamed(rule, node))
}

fn known(words: &[Word]) -> Vec<String> {
    words.iter().map(Word::known).collect()
}

fn commands_of(node: &Node) -> Vec<Simple> {
    let mut all = Vec::new();
    node.for_each_simple(&mut |command| all.push(command.clone()));
    all
}

/// Whether what a pipe, a substitution or a here-document brings is matched, where something reads it that may run it.
fn fed(rule: &Rule, node: &Node, files: &dyn Files) -> bool {
    let given = |producers: &[&Node], consumers: &Node, data: &[String]| {
        let consumers: Vec<_> = commands_of(consumers).iter().map(|command| known(&command.words)).collect();
        let consumers: Vec<_> = consumers.into_iter().filter(|words| runs_input(words)).collect();
        let cost = producers.len() * (1 + 4 * consumers.len()) + data.iter().map(|text| text.len() / 8).sum::<usize>();
        if files.spend(cost) || consumers.is_empty() {
            return false;
        }
        let produced = producers.iter().flat_map(|node| commands_of(node)).map(|command| {
            let data = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Data);
            let data: Vec<String> = data.map(|redirect| redirect.target.known()).collect();
            [known(command.words.get(1..).unwrap_or_default()), data].concat().join("\n")
        });
        produced.chain(data.iter().cloned()).filter(|text| !text.is_empty()).any(|text| {
            Tokens::of(&text, Folders::Split).hold(rule)
                || touches_held(rule, &Text::new(&text))
                || consumers
                    .iter()
                    .any(|words| Tokens::of(&format!("{}\n{text}", words.join("\n")), Folders::Split).hold(rule))
        })
    };
    let data_of = |redirects: &[super::super::shell::Redirect]| {
        let data = redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Data);
        data.map(|redirect| redirect.target.known()).collect::<Vec<_>>()
    };
    match node {
        Node::Simple(command) => {
            let data = data_of(&command.redirects);
            !data.is_empty() && given(&[], node, &data)
        }
        Node::Not(inner) | Node::Function { body: inner, .. } => fed(rule, inner, files),
        Node::And(left, right) | Node::Or(left, right) => fed(rule, left, files) || fed(rule, right, files),
        // The substitutions of a statement are before it.
        Node::Sequence(nodes) => {
            matches!(nodes.as_slice(), [before @ Node::Apart(_), after] if given(&[before], after, &[]))
                || nodes.iter().any(|node| fed(rule, node, files))
        }
        Node::Apart(nodes) => {
            (1..nodes.len()).any(|at| given(&nodes[..at].iter().collect::<Vec<_>>(), &nodes[at], &[]))
                || nodes.iter().any(|node| fed(rule, node, files))
        }
        Node::Block { parts, .. } => parts.iter().any(|node| fed(rule, node, files)),
        Node::Redirected { body, redirects } => body.as_deref().is_some_and(|body| {
            let data = data_of(redirects);
            !data.is_empty() && given(&[], body, &data) || fed(rule, body, files)
        }),
    }
}

/// Whether a command by the name that the line itself gives the rule's program is one that the rule speaks about.
fn renamed(rule: &Rule, node: &Node) -> bool {
    let want = wanted(rule)[0];
    let commands = commands_of(node);
    let mut names: Vec<String> = Vec::new();
    for command in &commands {
        let words: Vec<&str> = command.words.iter().map(|word| word.source.as_str()).collect();
        let names_it = |word: &&str| readings(word, Folders::Kept).iter().flatten().any(|token| is_word(want, token));
        if words.iter().take(3).any(|word| listed(NAMES, base(word))) && words.iter().skip(1).any(names_it) {
            let last = command.words.iter().skip(1).map(|word| word.known());
            names.extend(last.map(|word| base(word.split('=').next().unwrap_or_default()).to_owned()));
        }
    }
    names.retain(|name| !name.is_empty() && name.as_str() != want);
    !names.is_empty()
        && commands.iter().any(|command| {
            let words = known(&command.words);
            let own = |word: &String| names.iter().any(|name| name == base(word));
            let replaced: Vec<String> =
                words.iter().map(|word| if own(word) { want.to_owned() } else { word.clone() }).collect();
            replaced != words
                && !words.iter().take(3).any(|word| listed(NAMES, base(word)))
                && touches(rule, &Seen::new(replaced))
        })
}
