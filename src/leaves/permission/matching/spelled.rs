//! The same command in another spelling than a rule's: the program's own options before its subcommand, options in another
//! order, place, cluster or length, and values in one word with them.

use super::super::commands::covered::{Given, given};
use super::super::glob::{self, Case};
use super::super::rule::ShellPattern;
use super::super::shell::loose::segments;
use super::super::shell::{MANY, ONE};
use super::{MAX_OPTIONS, base, is_open, may_be, same_name};

/// Options that only say how much is told.
const TELLING: [&str; 8] = ["quiet", "q", "verbose", "v", "silent", "s", "progress", "no-progress"];

/// What a rule names.
struct Wanted {
    /// None where the pattern begins with an option.
    name: Option<String>,
    /// The words behind the name up to the first option.
    fixed: Vec<String>,
    rest: Vec<String>,
    /// Whether nothing more may follow.
    exact: bool,
}

/// Whether a command that starts at one of these words is one that the rule names, in whatever spelling.
pub(super) fn fits(pattern: &ShellPattern, words: &[String], starts: &[usize]) -> bool {
    Wanted::of(pattern).is_some_and(|wanted| starts.iter().any(|at| wanted.starts(&words[*at..])))
}

impl Wanted {
    fn of(pattern: &ShellPattern) -> Option<Wanted> {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (words, exact) = match pattern {
            ShellPattern::Prefix(prefix) => (prefix.clone(), false),
            ShellPattern::Exact(text) => (segments(text).concat(), true),
            ShellPattern::Wildcard(text) => {
                let words = split(text.trim_start_matches('*'));
                let open = text.ends_with('*') || words.iter().any(|word| word == "*");
                (words, !open)
            }
        };
        let option = |word: &str| word.starts_with(['-', '+']);
        let (name, behind) = match words.split_first()? {
            (name, _) if option(name) || name == "*" => (None, &words[..]),
            (name, behind) => (Some(name.clone()), behind),
        };
        let fixed = behind.iter().take_while(|word| !option(word) && *word != "*").count();
        let (fixed, rest) = behind.split_at(fixed);
        // Of a star among the words nothing is wanted.
        let rest: Vec<String> = rest.iter().filter(|word| *word != "*").cloned().collect();
        (name.is_some() || !rest.is_empty()).then(|| Wanted { name, fixed: fixed.to_vec(), rest, exact })
    }

    /// Whether the words begin a command that is wanted.
    fn starts(&self, words: &[String]) -> bool {
        if self.name.as_ref().is_some_and(|name| !same_name(name, &words[0])) {
            return false;
        }
        let name = base(&words[0]);
        let mut ends = Vec::new();
        behind(&self.fixed, words, 1, &mut ends);
        ends.iter().any(|end| {
            let arguments = &words[*end..];
            // Some programs take options of the subcommand before it.
            let early = words[1..*end].iter().filter(|word| word.starts_with('-')).chain(arguments).cloned();
            let early: Vec<String> = early.collect();
            if early.len() > arguments.len() && self.fit(name, &self.fixed, &early) {
                return true;
            }
            let own = arguments.iter().find(|word| !word.starts_with('-'));
            // Where the rule names no subcommand, the line does.
            self.fit(name, &self.fixed, arguments)
                || self.fixed.is_empty() && own.is_some_and(|own| self.fit(name, std::slice::from_ref(own), arguments))
        })
    }
}

impl Wanted {
    fn fit(&self, name: &str, subcommand: &[String], arguments: &[String]) -> bool {
        if self.rest.is_empty() && !self.exact {
            return true;
        }
        let subcommand: Vec<String> = subcommand.iter().map(|word| word.trim_end_matches('*').to_owned()).collect();
        // Options end with a star where any may follow, and a value that is left open is one.
        let bare: Vec<String> = self.rest.iter().map(|word| option_of(word)).collect();
        let open = bare.last().filter(|word| word.starts_with('-')).map(|_| ONE.to_string());
        let (mut want, has) = (
            given(name, &subcommand, &bare.iter().cloned().chain(open).collect::<Vec<_>>()),
            given(name, &subcommand, arguments),
        );
        want.operands.retain(|word| !word.is_empty() && *word != ONE.to_string());
        let held = want.options.iter().filter(|one| !one.unsure).all(|one| {
            // Of a cluster every letter is wanted.
            let cluster = (2..=3).contains(&one.name.chars().count()) && bare.contains(&format!("-{}", one.name));
            cluster
                || has.options.iter().any(|other| {
                    let starred = self.rest.iter().any(|word| *word == format!("--{}*", one.name));
                    let named = other.name == one.name
                        || starred && other.name.starts_with(&one.name)
                        || !has.described && other.name.len() > 1 && one.name.starts_with(&other.name);
                    let value = one.values.iter().filter(|_| want.described).all(|value| {
                        value.is_empty()
                            || value == &ONE.to_string()
                            || other.values.iter().any(|other| is(value, other))
                    });
                    named && value
                })
        });
        held && self.operands(&want, &has) && (!self.exact || more(&want, &has).is_none())
    }

    /// Whether the operands that the rule names are among those of the command, in their order.
    fn operands(&self, want: &Given, has: &Given) -> bool {
        if self.exact && want.described && want.operands.len() != has.operands.len() {
            return false;
        }
        let mut rest = has.operands.iter();
        let values = || has.options.iter().flat_map(|one| &one.values);
        want.operands.iter().all(|word| {
            let is = |other: &String| is(word, other);
            if has.described { rest.any(is) } else { has.operands.iter().chain(values()).any(is) }
        })
    }
}

/// What the command is given beyond the rule's options.
fn more<'a>(want: &Given, has: &'a Given) -> Option<&'a str> {
    let told = |name: &str| TELLING.contains(&name) || want.options.iter().any(|one| one.name == name);
    let mut names = has.options.iter().filter(|one| !one.unsure).map(|one| one.name.as_str());
    names.find(|name| !told(name) && (has.described || name.chars().count() == 1))
}

/// The option without the star behind it.
fn option_of(word: &str) -> String {
    match word.strip_suffix('*') {
        Some(option) if word.starts_with('-') => option.to_owned(),
        _ => word.to_owned(),
    }
}

/// Whether the word is the one that is wanted, or may be.
fn is(want: &str, word: &str) -> bool {
    want == word || want.contains('*') && glob::wildcard(want, word) || is_open(word) && may_be(word, want, Case::Exact)
}

/// Whether the words behind the first one are those that are wanted behind theirs, options before each of them apart.
pub(super) fn leads(want: &[&str], words: &[String]) -> bool {
    let want: Vec<String> = want[1..].iter().map(|word| (*word).to_owned()).collect();
    let mut ends = Vec::new();
    behind(&want, words, 1, &mut ends);
    !ends.is_empty()
}

/// Where the words may end that the rule wants next, behind options that come before them, each with a value.
fn behind(want: &[String], words: &[String], at: usize, ends: &mut Vec<usize>) {
    let Some((first, rest)) = want.split_first() else {
        ends.push(at);
        return;
    };
    let mut option = false;
    for (place, word) in words.iter().enumerate().skip(at).take(MAX_OPTIONS) {
        // What is known of the value of `-C "$x"` is that it is one.
        let value = option && words[place - 1].len() == 2 && is_open(word);
        if is(first, word) && !value && !word.contains(MANY) {
            behind(rest, words, place + 1, ends);
        }
        if !word.starts_with(['-', '+']) && !option {
            return;
        }
        option = word.starts_with(['-', '+']);
    }
}
