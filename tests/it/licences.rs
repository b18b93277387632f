//! Every dependency is under a licence of deny.toml's list, comes from the package registry, and is not one of the banned ones.
//!
//! `cargo deny` says the same and more, where it is installed; this needs nothing but cargo, and no network.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use serde::Deserialize;

use crate::support::cargo;

#[derive(Deserialize)]
struct Policy {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
}

struct Package {
    name: String,
    licence: String,
    /// Where it comes from, when that is not the package registry.
    elsewhere: Option<String>,
}

#[test]
fn dependencies_are_allowed() {
    let policy: Policy = toml::from_str(&read("deny.toml")).unwrap();
    let exceptions: BTreeMap<&str, &Vec<String>> =
        policy.licenses.exceptions.iter().map(|exception| (exception.name.as_str(), &exception.allow)).collect();
    let mut faults = Vec::new();
    for package in packages() {
        if let Some(place) = package.elsewhere {
            faults.push(format!("{} comes from {place}", package.name));
        }
        if policy.bans.deny.iter().any(|banned| banned.name == package.name) {
            faults.push(format!("{} is banned", package.name));
        }
        let own = exceptions.get(package.name.as_str()).into_iter().copied().flatten();
        let allowed: Vec<&str> = policy.licenses.allow.iter().chain(own).map(String::as_str).collect();
        if !allows(&allowed, &package.licence) {
            faults.push(format!("{} is under {:?}", package.name, package.licence));
        }
    }
    assert!(faults.is_empty(), "deny.toml does not allow:\n{}\n", faults.join("\n"));
}

/// What is built on this machine, tests included; the packages of other systems need not be here.
fn packages() -> Vec<Package> {
    let output = cargo()
        .args(["tree", "--offline", "--locked", "--edges=normal,build,dev", "--prefix=none", "--format={p}\t{l}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // A mark says that what is below has been shown before.
    let lines: BTreeSet<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    lines.iter().filter_map(|line| package(line)).collect()
}

/// `name v1.0.0 (place)<tab>licence`; none for these packages themselves.
fn package(line: &str) -> Option<Package> {
    let (package, licence) = line.split_once('\t')?;
    let (name, rest) = package.split_once(' ')?;
    let places = rest.split_once('(').map(|(_, place)| place.trim_end_matches(')'));
    let elsewhere = places.filter(|place| *place != "proc-macro").map(str::to_owned);
    let own = elsewhere.as_deref().is_some_and(|place| place.starts_with(env!("CARGO_MANIFEST_DIR")));
    (!own).then(|| Package { name: name.to_owned(), licence: licence.to_owned(), elsewhere })
}

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Whether a licence expression can be met with these licences alone. An old `/` means OR.
fn allows(allowed: &[&str], expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "+WITH+");
    let words: Vec<String> = spaced.split_whitespace().map(|word| word.replace("+WITH+", " WITH ")).collect();
    let mut words: Words<'_> = words.iter().map(String::as_str).collect();
    !expression.is_empty() && any(allowed, &mut words) && words.is_empty()
}

/// The words that are left of an expression.
type Words<'a> = VecDeque<&'a str>;

fn take(words: &mut Words<'_>, word: &str) -> bool {
    let there = words.front() == Some(&word);
    if there {
        words.pop_front();
    }
    there
}

fn any(allowed: &[&str], words: &mut Words<'_>) -> bool {
    let mut met = all(allowed, words);
    while take(words, "OR") {
        met |= all(allowed, words);
    }
    met
}

fn all(allowed: &[&str], words: &mut Words<'_>) -> bool {
    let mut met = one(allowed, words);
    while take(words, "AND") {
        met &= one(allowed, words);
    }
    met
}

fn one(allowed: &[&str], words: &mut Words<'_>) -> bool {
    match words.pop_front() {
        Some("(") => {
            let met = any(allowed, words);
            take(words, ")") && met
        }
        Some(licence) => allowed.contains(&licence),
        None => false,
    }
}

#[test]
fn expressions_are_understood() {
    fn check(expression: &str, want: bool) {
        assert_eq!(allows(&["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"], expression), want, "{expression}");
    }
    check("MIT", true);
    check("GPL-3.0", false);
    check("", false);
    check("GPL-3.0 OR MIT", true);
    check("GPL-3.0/MIT", true);
    check("GPL-3.0 AND MIT", false);
    check("MIT AND (GPL-3.0 OR ISC)", true);
    check("(MIT OR ISC) AND GPL-3.0", false);
    check("Apache-2.0 WITH LLVM-exception", true);
    check("Apache-2.0", false);
    check("MIT ISC", false);
}
