//! The options and operands that a command is given, by the names that they have in whatever spelling: for rules that forbid, so
//! that what is not clear is everything that it may be.

use super::super::super::shell::ONE;
use super::super::commit::{self, Argument, Subcommand};
use super::{known, plain, unbundled};

/// An option by its long name where that is known, else by its letter, and all that may be its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) struct GivenOption {
    pub(in crate::permission) name: String,
    pub(in crate::permission) values: Vec<String>,
    /// One of those that a word may mean.
    pub(in crate::permission) unsure: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::permission) struct Given {
    pub(in crate::permission) options: Vec<GivenOption>,
    pub(in crate::permission) operands: Vec<String>,
    /// Whether it is known which options take a value, so that no operand is one.
    pub(in crate::permission) described: bool,
}

/// Reads the arguments behind the subcommand. What a table says of it counts also where it is one for another kind of rule.
pub(in crate::permission) fn given(name: &str, subcommand: &[String], arguments: &[String]) -> Given {
    let table =
        known(name, subcommand).or_else(|| Some(plain::of(name, subcommand)).filter(|row| !row.command.is_empty()));
    let command = table.map_or("", |covered| covered.command);
    let commits = || commit::subcommand(subcommand.first()?).filter(|_| name == "git").map(|known| known.options);
    let Some(options) = table.map(|covered| covered.options).or_else(commits) else { return undescribed(arguments) };
    let options = Subcommand { name: "", options };
    let split = if name == "tar" { unbundled(arguments, &options) } else { arguments.to_vec() };
    let (found, unknown) = options.found(split.iter().map(|word| Argument::of(word)).collect());
    let mut given = Given { described: true, ..Given::default() };
    for one in found {
        match one.name.as_str() {
            "--" => given.operands.push(one.written),
            name => given.add(name, vec![one.value]),
        }
    }
    for word in &unknown {
        for (name, value) in options.meant(word) {
            given.add(name, vec![value]);
            given.options.iter_mut().rev().take(1).for_each(|one| one.unsure = true);
        }
        // One that no table knows stays what it is.
        let long = |name: &str| options.named().find(|(_, short)| short.map(String::from).as_deref() == Some(name));
        for one in undescribed(std::slice::from_ref(word)).options {
            let name = long(&one.name).map_or(one.name, |(name, _)| name.to_owned());
            given.add(&name, one.values);
        }
    }
    given.by_signs(command, arguments);
    given
}

/// The same of a program of which nobody knows more than how options are written: each letter and each word may be one, and what
/// is behind it its value.
fn undescribed(arguments: &[String]) -> Given {
    let mut given = Given::default();
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    for (at, word) in arguments.iter().enumerate() {
        let next = arguments.get(at + 1).filter(|_| at + 1 < end).cloned().unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or((word, &next));
        match name.strip_prefix('-').filter(|rest| at < end && !rest.is_empty()) {
            None if at == end => {}
            None => given.operands.push(word.clone()),
            Some(rest) if rest.starts_with('-') => given.add(&rest[1..], vec![value.to_owned()]),
            Some(rest) => {
                // More letters than anybody writes as one may be a name with one dash.
                if rest.chars().count() > 1 {
                    given.add(rest, vec![value.to_owned()]);
                }
                for (at, letter) in word[1..].char_indices() {
                    let glued = &word[1 + at + letter.len_utf8()..];
                    given.add(&letter.to_string(), vec![glued.trim_start_matches('=').to_owned(), next.clone()]);
                }
            }
        }
    }
    given
}

impl Given {
    fn add(&mut self, name: &str, values: Vec<String>) {
        // Of most programs both letters mean the same.
        let name = if matches!(name, "R" | "r") { "recursive" } else { name }.to_owned();
        self.options.push(GivenOption { name, values, unsure: false });
    }

    fn has(&self, name: &str) -> bool {
        self.options.iter().any(|one| one.name == name)
    }

    /// What the signs before a branch say, and options that are short for two others.
    fn by_signs(&mut self, command: &str, arguments: &[String]) {
        if command == "git push" {
            for (sign, name) in [('+', "force"), (':', "delete")] {
                if arguments.iter().any(|word| word.starts_with(sign)) {
                    self.add(name, Vec::new());
                }
            }
        }
        for known in ["delete", "move", "copy"].iter().filter(|_| command == "git branch") {
            let both = format!("force-{known}");
            if self.has(&both) {
                self.add(known, Vec::new());
                self.add("force", Vec::new());
            } else if self.has(known) && self.has("force") {
                self.add(&both, Vec::new());
            }
        }
    }
}

impl Subcommand {
    /// The options that an abbreviation of several may mean, or a cluster of letters with others that are not known, each with
    /// what is behind it.
    fn meant(&self, word: &str) -> Vec<(&'static str, String)> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let open = |value: &str| if value.is_empty() { ONE.to_string() } else { value.to_owned() };
        let letters = self.named().filter_map(|(long, short)| match name.strip_prefix("--") {
            Some(name) => (!name.is_empty() && long.starts_with(name)).then(|| (long, open(value))),
            None => {
                let (_, behind) = word.strip_prefix('-')?.split_once(short?)?;
                Some((long, open(behind)))
            }
        });
        letters.collect()
    }
}
