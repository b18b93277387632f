//! What is known of find: tests and actions that only look.

use super::super::glob::{self, Case};
use super::super::shell::Word;
use super::{Reach, Reads};

/// Expressions without a value.
const ALONE: &[&str] = &[
    "!",
    "(",
    ")",
    ",",
    "-a",
    "-o",
    "-and",
    "-or",
    "-not",
    "-depth",
    "-d",
    "-empty",
    "-print",
    "-print0",
    "-prune",
    "-ls",
    "-xdev",
    "-mount",
    "-daystart",
    "-executable",
    "-readable",
    "-writable",
    "-true",
    "-false",
    "-nouser",
    "-nogroup",
    "-noleaf",
    "-ignore_readdir_race",
    "-quit",
    "-P",
    "-warn",
    "-nowarn",
];

/// Expressions with a value that is not a path to open.
const VALUED: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-regextype",
    "-printf",
    "-fstype",
    "-lname",
    "-ilname",
];

/// What a find command looks at.
///
/// # Errors
/// Why it is not known to only look: it follows links, executes, writes, or says something unknown.
pub(super) fn reads(arguments: &[Word]) -> Result<Reads, String> {
    let mut reads = Reads { reach: Reach::Names, ..Reads::default() };
    let mut expression = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.known();
        let starts = text.starts_with('-') || matches!(text.as_str(), "!" | "(" | ")" | ",");
        if !starts && !expression {
            if word.has_glob() && !matches!(word.prefix().chars().next(), Some(c) if c != '-') {
                return Err("a glob that may become an expression".into());
            }
            reads.paths.push(word.clone());
            continue;
        }
        if word.has_glob() {
            return Err("a glob that may become an expression".into());
        }
        expression |= text != "-P";
        if ALONE.contains(&text.as_str()) {
            continue;
        }
        let value = rest.next();
        match value {
            Some(value) if text == "-newer" => reads.paths.push(value.clone()),
            // A glob may become several words, the second of them an expression.
            Some(value) if VALUED.contains(&text.as_str()) && !value.has_glob() => {}
            Some(value) if VALUED.contains(&text.as_str()) => {
                return Err(format!("{} is a glob: quote it", value.source));
            }
            _ => return Err(format!("{text} is not a known harmless expression of find")),
        }
    }
    Ok(reads)
}

/// What all names must be that a find prints below the folders it is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::permission) struct Tests {
    names: Vec<String>,
    /// No links and no folders.
    files: bool,
}

impl Tests {
    /// By the arguments of a find that only looks. Of tests that are joined by more than "and" nothing is told.
    pub(in crate::permission) fn of(arguments: &[String]) -> Tests {
        let mut tests = Tests::default();
        let mut rest = arguments.iter().map(String::as_str).skip_while(|text| !text.starts_with(['-', '!', '(']));
        while let Some(text) = rest.next() {
            match text {
                "-o" | "-or" | "," | "!" | "-not" | "(" | ")" => return Tests::default(),
                // What follows it is tested too late.
                "-print0" => break,
                _ if ALONE.contains(&text) => continue,
                _ => {}
            }
            let Some(value) = rest.next() else { return Tests::default() };
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-*".contains(c);
            match text {
                "-name" | "-iname" if value.chars().all(plain) => tests.names.push(value.to_owned()),
                "-type" => tests.files |= value == "f",
                _ => {}
            }
        }
        // Of an earlier "and" nothing holds where an "or" follows.
        if rest.any(|text| matches!(text, "-o" | "-or" | "," | "!" | "-not" | "(" | ")")) {
            return Tests::default();
        }
        tests
    }

    /// Whether a name may pass.
    pub(in crate::permission) fn may_pass(&self, name: &str, link: bool) -> bool {
        !(link && self.files) && self.names.iter().all(|pattern| glob::may_fit(pattern, name, Case::Ignored))
    }
}
