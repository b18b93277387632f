//! Small changes of code that may be what a failure asks for, most likely first. Pure.

use super::code::{self, Sort, indent, words};
use super::suspects::{exchanged, expected, missing, suggested};

/// A file that may be wrong.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

/// Some lines of a file, and what they could be instead.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) old: String,
    pub(super) new: String,
    /// The lines with their neighbors, so that the edit is unique.
    pub(super) old_context: String,
    pub(super) new_context: String,
}

impl Change {
    fn of(source: &Source, from: usize, to: usize, new: String) -> Change {
        let lines = &source.lines;
        let whole = lines.join("\n");
        let (mut start, mut end) = (from.saturating_sub(1), (to + 1).min(lines.len()));
        while whole.matches(&lines[start..end].join("\n")).count() > 1 && (start > 0 || end < lines.len()) {
            (start, end) = (start.saturating_sub(1), (end + 1).min(lines.len()));
        }
        let around = |inner: &str| {
            let before = lines[start..from].iter().map(String::as_str);
            before.chain([inner]).chain(lines[to..end].iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
        };
        let old = lines[from..to].join("\n");
        let (old_context, new_context) = (around(&old), around(&new));
        Change { path: source.path.clone(), line: from, old, new, old_context, new_context }
    }
}

/// What a failure points to.
pub(super) struct Failure<'a> {
    pub(super) output: &'a str,
    /// Functions that failing tests call, or the prompt names.
    pub(super) called: &'a [String],
    /// What the failing line of the test wants, as it is written there.
    pub(super) wanted: Option<&'a str>,
    /// Lines of tests that may be wrong themselves.
    pub(super) in_tests: bool,
}

/// Small slips and what was meant, most common first.
#[rustfmt::skip]
const SLIPS: &[(&str, &str)] = &[
    (" - 1", ""), (" + 1", ""), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" - ", " + "),
    (" + ", " - "), (" -= ", " += "), (" += ", " -= "), (" && ", " || "), (" || ", " && "), (" and ", " or "),
    (" or ", " and "), (" == ", " != "), (" != ", " == "), (" === ", " !== "), (" !== ", " === "), ("..=", ".."),
    ("..", "..="), (" * ", " / "), (" + ", " * "), (" * ", " + "), (" / ", " * "), (" // ", " / "), (" / ", " // "),
    (" % ", " / "), (" not in ", " in "), (" not ", " "), (" < ", " > "), (" > ", " < "), (" <= ", " >= "),
    (" >= ", " <= "), (" is ", " == "), (".length]", ".length - 1]"), (".len()]", ".len() - 1]"), ("true", "false"),
    ("false", "true"), ("True", "False"), ("False", "True"), ("min(", "max("), ("max(", "min("), ("lower", "upper"),
    ("upper", "lower"), ("Lower", "Upper"), ("Upper", "Lower"), ("[0]", "[1]"), ("[1]", "[0]"), ("[0]", "[-1]"),
    ("[-1]", "[0]"), ("first", "last"), ("last", "first"), (".any(", ".all("), (".all(", ".any("), ("any(", "all("),
    ("all(", "any("), (".sort()", ".sort((a, b) => a - b)"), ("startsWith", "endsWith"), ("startswith", "endswith"),
    ("append(", "extend("), ("floor(", "ceil("), (" in ", " not in "),
];

/// Names that a language has, and where they come from.
const BROUGHT: &[(&str, &str, &str)] = &[
    (".py", "import {}", "math json os re sys random datetime time itertools functools string collections shutil csv"),
    (".py", "from collections import {}", "defaultdict Counter deque namedtuple OrderedDict"),
    (".py", "from pathlib import {}", "Path"),
    (".py", "from math import {}", "sqrt ceil floor pi"),
    (".py", "from datetime import {}", "timedelta date"),
    (".py", "from functools import {}", "reduce lru_cache partial"),
    (".py", "from dataclasses import {}", "dataclass field"),
    (".py", "from typing import {}", "Optional List Dict Any"),
    (".py", "from enum import {}", "Enum"),
    (".js", "const {} = require('{}');", "fs path os util assert crypto http events"),
    (".js", "const { {} } = require('fs');", "readFileSync writeFileSync existsSync"),
    (".js", "const { {} } = require('path');", "join basename extname dirname"),
    (".c", "#include <string.h>", "strlen strcmp strcpy memcpy strchr"),
    (".c", "#include <stdlib.h>", "malloc free atoi abs exit"),
    (".c", "#include <stdio.h>", "printf puts fprintf snprintf"),
    (".c", "#include <stdbool.h>", "bool true false"),
];

/// Whether a function is a test, by its name or its attributes.
fn tests_itself(source: &Source, item: &code::Item) -> bool {
    let marked = source.lines[..item.at].iter().rev().take_while(|line| line.trim_start().starts_with(['#', '@', '/']));
    item.name.starts_with("test") || { marked }.any(|line| line.contains("#[test]") || line.contains("::test]"))
}

/// Candidates in all files: what the output itself suggests, then what was expected, then what is usual in a function that
/// returns nothing, then slips; in functions that the failure points to before all others.
pub(super) fn changes(sources: &[Source], failure: &Failure) -> Vec<Change> {
    let pairs = expected(failure.output);
    // Passing tests are named in the output, too.
    let telling = |line: &&str| {
        let marks = ["FAILED", "FAIL", "panicked", "Error", "error", "not ok", "ssertion"];
        marks.iter().any(|word| line.contains(word))
            || line.starts_with("----")
            || line.trim_start().starts_with("at ")
            || line.contains(", in ")
            || line.ends_with(')')
    };
    let failing: Vec<&str> =
        failure.output.lines().filter(telling).flat_map(words).filter(|word| word.len() > 3).collect();
    let mut found: Vec<(Rank, Change)> = Vec::new();
    // What the named functions call is the next best place.
    let all: Vec<(&Source, Vec<code::Item>)> =
        sources.iter().map(|source| (source, code::items(&source.lines))).collect();
    let inner = |source: &Source| {
        source.lines.iter().position(|line| line.contains("#[cfg(test)]")).unwrap_or(source.lines.len())
    };
    let mut named: Vec<String> = failure.called.to_vec();
    // What holds a failing test, a module or a class, holds others that pass.
    let fails = |item: &&code::Item| failing.contains(&item.name) && item.name != "main";
    let function = |item: &code::Item| item.sort == Sort::Function;
    let told = all.iter().any(|(_, items)| items.iter().filter(fails).any(function));
    for (source, items) in &all {
        for item in items.iter().filter(fails).filter(|item| function(item) || !told) {
            let body = &source.lines[item.at + 1..item.end];
            let test = item.at >= inner(source) || tests_itself(source, item);
            named.extend(if test { code::calls(body) } else { vec![item.name.to_owned()] });
        }
    }
    let mut near: Vec<String> = Vec::new();
    for (source, items) in &all {
        let bodies = items.iter().filter(|item| named.iter().any(|name| name == item.name));
        near.extend(bodies.flat_map(|item| code::calls(&source.lines[item.at + 1..item.end])));
    }
    for (file, (source, items)) in all.iter().enumerate() {
        let end = if failure.in_tests { source.lines.len() } else { inner(source) };
        for (at, new) in suggested(&source.path, &source.lines, failure.output) {
            found.push(((0, 0, 0, file, at), Change::of(source, at, at + 1, new)));
        }
        for (at, new) in brought(source, sources, failure.output) {
            found.push(((0, 1, 0, file, at), Change::of(source, at, at + 1, new)));
        }
        for at in 0..end {
            // A function inside another is the nearer one.
            let item = items
                .iter()
                .filter(|item| (item.at..item.end).contains(&at) && item.sort == Sort::Function)
                .max_by_key(|item| item.at);
            let is = |names: &[String]| item.is_some_and(|item| names.iter().any(|name| name == item.name));
            let place = if is(&named) {
                1
            } else if is(&near) {
                2
            } else {
                3
            };
            let line = &source.lines[at];
            // What a test wants is right until somebody says that it is not.
            let wants = item.is_some_and(|item| tests_itself(source, item)) || line.trim_start().starts_with("assert");
            if wants && !failure.in_tests {
                continue;
            }
            let mut add = |kind: u8, rank: usize, new: String| {
                if new != *line && !failure.in_tests || kind == 0 {
                    found.push(((place, kind, rank, file, at), Change::of(source, at, at + 1, new)));
                }
            };
            if code::is_comment(line) || code::brings(line) || line.contains("#[test]") {
                continue;
            }
            for (rank, (actual, meant)) in pairs.iter().enumerate() {
                exchanged(line, actual, meant).into_iter().for_each(|new| add(0, rank, new));
            }
            let head = item.is_some_and(|item| item.at == at);
            // A head is not where a slip hides, unless its body is on the same line.
            let one_line = line.contains("=>") || line.trim_end().ends_with('}') || line.contains(": return ");
            if !head || one_line {
                slips(line, &mut add);
            }
            if let Some(item) = item.filter(|_| !head) {
                swaps(&source.lines[item.at], line, &mut add);
                let asynchronous = source.lines[item.at].contains("async ");
                let awaited = |name: &String| {
                    all.iter().any(|(source, items)| {
                        items.iter().any(|item| item.name == name && source.lines[item.at].contains("async "))
                    })
                };
                for name in code::calls([line]).iter().filter(|name| asynchronous && awaited(name)) {
                    add(
                        1,
                        0,
                        line.replacen(&format!("{name}("), &format!("await {name}("), 1)
                            .replace("await await", "await"),
                    );
                }
            }
        }
        for item in items.iter().filter(|item| {
            item.sort == Sort::Function && item.at < end && !failure.in_tests && !tests_itself(source, item)
        }) {
            let is = |names: &[String]| names.iter().any(|name| name == item.name);
            let place = if is(&named) {
                1
            } else if is(&near) {
                2
            } else {
                3
            };
            for (rank, (from, to, new)) in whole(source, item, failure).into_iter().enumerate() {
                found.push(((place, 1, rank, file, from), Change::of(source, from, to, new)));
            }
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut changes: Vec<Change> = Vec::new();
    for (_, change) in found {
        if !changes
            .iter()
            .any(|known| (&known.path, known.line, &known.new) == (&change.path, change.line, &change.new))
        {
            changes.push(change);
        }
    }
    changes
}

/// Place (0: the output says it), kind, and order within.
type Rank = (u8, u8, usize, usize, usize);

/// A line that brings in a name that is not there.
fn brought(source: &Source, sources: &[Source], output: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for wrong in output.lines().filter_map(missing) {
        if !source.lines.iter().any(|line| words(line).any(|word| word == wrong)) {
            continue;
        }
        let module = source.lines.iter().any(|line| line.starts_with("import ") || line.starts_with("export "));
        let usual = BROUGHT
            .iter()
            .filter(|(end, _, names)| source.path.ends_with(end) && names.split(' ').any(|name| name == wrong));
        let mut lines: Vec<String> = usual.map(|(_, line, _)| line.replace("{}", wrong)).collect();
        for other in sources.iter().filter(|other| other.path != source.path) {
            if !code::items(&other.lines).iter().any(|item| item.name == wrong && indent(&other.lines[item.at]) == 0) {
                continue;
            }
            let stem = other.path.rsplit_once('.').map_or(other.path.as_str(), |(stem, _)| stem);
            let name = stem.rsplit('/').next().unwrap_or(stem);
            match other.path.rsplit_once('.').map_or("", |(_, end)| end) {
                "py" => lines.push(format!("from {} import {wrong}", stem.replace('/', "."))),
                "js" => lines.push(format!("const {{ {wrong} }} = require('./{name}');")),
                _ => {}
            }
        }
        for line in lines {
            let line = match line.strip_prefix("const ").and_then(|rest| rest.split_once(" = require(")) {
                Some((names, from)) if module => format!("import {names} from {};", from.trim_end_matches(");")),
                _ => line,
            };
            // Behind the description of the file, before everything else.
            let doc = source.lines.first().is_some_and(|first| {
                first.starts_with("\"\"\"") || first.starts_with("#!") || first.starts_with("'use strict'")
            });
            let at = if doc { 1 } else { 0 };
            if let Some(first) = source.lines.get(at) {
                found.push((at, format!("{line}\n{first}")));
            }
        }
    }
    found
}

/// One of the usual slips, undone.
fn slips(line: &str, add: &mut impl FnMut(u8, usize, String)) {
    for (rank, (slip, meant)) in SLIPS.iter().enumerate() {
        for (column, _) in line.match_indices(slip) {
            let (before, after) = (&line[..column], &line[column + slip.len()..]);
            // `..` is not part of `..=`, and a word not part of another.
            let letter = |c: char| c.is_alphanumeric() || c == '_';
            let range = *slip == ".." && after.starts_with(['=', '.']);
            let digits =
                slip.ends_with(|c: char| c.is_ascii_digit()) && after.starts_with(|c: char| c.is_ascii_digit());
            let part = slip.starts_with(letter) && slip.ends_with('(') && before.ends_with(letter);
            let text = before.matches('"').count() % 2 == 1 && (slip.starts_with(' ') || slip.len() < 5);
            if !range && !digits && !part && !text {
                add(2, rank, format!("{before}{meant}{after}"));
            }
        }
    }
    // `!ready` and `ready`; the whole condition, the other way round.
    for (column, _) in line.match_indices('!') {
        let after = &line[column + 1..];
        let alone = line[..column].ends_with([' ', '(']) || line[..column].is_empty();
        if alone && after.starts_with(|c: char| c.is_alphabetic() || c == '(') {
            add(2, 5, format!("{}{after}", &line[..column]));
        }
    }
    let code = line.trim_start();
    let pad = &line[..indent(line)];
    if let Some(asked) = code.strip_prefix("if ") {
        let (condition, end) = match asked.rfind([':', '{']) {
            Some(at) if asked.ends_with([':', '{']) => (asked[..at].trim(), asked[at..].to_owned()),
            _ => (asked, String::new()),
        };
        match end.as_str() {
            ":" => add(2, 30, format!("{pad}if not ({condition}):")),
            _ if condition.starts_with('(') => {
                add(2, 30, format!("{pad}if (!{condition}) {end}").trim_end().to_owned())
            }
            _ => add(2, 30, format!("{pad}if !({condition}) {end}").trim_end().to_owned()),
        }
    }
    // An index behind the last one; a range without its last number.
    if let Some(at) = line.find("[len(").and_then(|at| Some(at + line[at..].find(")]")? + 1)) {
        add(2, 2, format!("{} - 1{}", &line[..at], &line[at..]));
    }
    if let Some(at) = line.find("range(").and_then(|at| Some(at + 6 + closing(&line[at + 6..])?)) {
        add(2, 3, format!("{} + 1{}", &line[..at], &line[at..]));
    }
}

/// Where the parenthesis that is open closes.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    for (at, letter) in text.char_indices() {
        open += i32::from(letter == '(') - i32::from(letter == ')');
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// A parameter in place of another, and numbers one off.
fn swaps(head: &str, line: &str, add: &mut impl FnMut(u8, usize, String)) {
    let arguments = head.split_once('(').map_or("", |(_, rest)| rest);
    let arguments = arguments.rsplit_once(')').map_or(arguments, |(arguments, _)| arguments);
    let names: Vec<&str> = arguments
        .split(',')
        .filter_map(|one| words(one.split([':', '=']).next().unwrap_or(one)).last())
        .filter(|name| !["self", "this"].contains(name))
        .collect();
    let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    for name in &names {
        for (at, _) in line.match_indices(name) {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            if before.ends_with(letter) || after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            for other in names.iter().filter(|other| *other != name) {
                add(3, 0, format!("{before}{other}{after}"));
            }
        }
    }
    let mut at = 0;
    while let Some(start) = line[at..].find(|c: char| c.is_ascii_digit()).map(|found| at + found) {
        let end = start + line[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len() - start);
        at = end;
        let alone = !line[..start].ends_with(letter) && !line[end..].starts_with(letter);
        if let (true, Ok(number)) = (alone, line[start..end].parse::<u64>()) {
            for other in [Some(number + 1), number.checked_sub(1)].into_iter().flatten() {
                add(3, 1, format!("{}{other}{}", &line[..start], &line[end..]));
            }
        }
    }
}

/// Changes of a function as a whole: a return that is missing, a value that may be none, a file that stays open.
fn whole(source: &Source, item: &code::Item, failure: &Failure) -> Vec<(usize, usize, String)> {
    let (python, script) =
        (source.path.ends_with(".py"), [".js", ".mjs", ".ts"].iter().any(|end| source.path.ends_with(end)));
    if !python && !script {
        return Vec::new();
    }
    let lines = &source.lines;
    let end = if python { item.end } else { item.end.saturating_sub(1) };
    let body = item.at + 1..end.max(item.at + 1);
    let mut found = Vec::new();
    let stop = if python { "" } else { ";" };
    let pad = lines.get(item.at + 1).map_or(String::new(), |line| " ".repeat(indent(line)));
    let returns = lines[body.clone()].iter().any(|line| code_of(line).starts_with("return"));
    if let Some(last) =
        body.clone().rev().find(|at| !lines[*at].trim().is_empty()).filter(|_| !returns && item.name != "__init__")
    {
        let line = lines[last].trim_end();
        let assigned = line.split_once(" = ").filter(|(name, _)| words(name).count() < 3 && !name.contains('['));
        let value = assigned.map_or(line.trim(), |(_, value)| value.trim());
        if indent(line) == pad.len() && !value.contains("+=") {
            found.push((last, last + 1, format!("{pad}return {value}")));
        }
        let names = lines[body.clone()]
            .iter()
            .filter(|line| indent(line) == pad.len())
            .filter_map(|line| line.split_once(" = "));
        let mut names: Vec<&str> = names.filter_map(|(name, _)| words(name).last()).collect();
        names.reverse();
        names.dedup();
        found.extend(names.into_iter().map(|name| (last, last + 1, format!("{line}\n{pad}return {name}{stop}"))));
    }
    let none = ["NoneType", "None", "of null", "of undefined"].iter().any(|mark| failure.output.contains(mark));
    let empty = ["IndexError", "ZeroDivisionError", "KeyError", "NaN", "empty"]
        .iter()
        .any(|mark| failure.output.contains(mark));
    if let Some(wanted) = failure.wanted.filter(|_| none || empty) {
        let arguments =
            lines[item.at].split_once('(').map_or("", |(_, rest)| rest).split(')').next().unwrap_or_default();
        let names = arguments.split(',').filter_map(|one| words(one).next()).filter(|name| *name != "self");
        // A description stays where it is.
        let doc = lines.get(item.at + 1).is_some_and(|line| {
            line.trim().starts_with("\"\"\"") && line.trim().len() > 3 && line.trim().ends_with("\"\"\"")
        });
        let at = item.at + 1 + usize::from(doc);
        if let Some(first) = lines.get(at).filter(|_| body.contains(&at)) {
            for name in names {
                let guard = match (python, none) {
                    (true, true) => format!("{pad}if {name} is None:\n{pad}    return {wanted}"),
                    (true, false) => format!("{pad}if not {name}:\n{pad}    return {wanted}"),
                    (false, true) => format!("{pad}if ({name} == null) return {wanted};"),
                    (false, false) => format!("{pad}if (!{name} || {name}.length === 0) return {wanted};"),
                };
                found.push((at, at + 1, format!("{guard}\n{first}")));
            }
        }
    }
    let opened =
        body.clone().find(|at| python && lines[*at].contains(" = open(") && !lines[*at].trim().starts_with("with"));
    if let Some(at) = opened {
        let (name, call) = lines[at].trim().split_once(" = ").unwrap_or_default();
        let close = format!("{name}.close()");
        let rest = lines[at + 1..body.end].iter().filter(|line| line.trim() != close);
        let rest: Vec<String> =
            rest.map(|line| if line.trim().is_empty() { line.clone() } else { format!("    {line}") }).collect();
        let outer = " ".repeat(indent(&lines[at]));
        found.insert(0, (at, end, format!("{outer}with {call} as {name}:\n{}", rest.join("\n"))));
    }
    found
}

fn code_of(line: &str) -> &str {
    if code::is_comment(line) { "" } else { line.trim_start() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first changes that a failure speaks for.
    fn check(path: &str, source: &str, called: &[&str], output: &str, want: &[&str]) {
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let called: Vec<String> = called.iter().map(ToString::to_string).collect();
        let source = Source { path: path.to_owned(), lines };
        let found = changes(&[source], &Failure { output, called: &called, wanted: Some("\"Hi\""), in_tests: false });
        let new: Vec<&str> = found.iter().take(want.len()).map(|change| change.new.trim()).collect();
        assert_eq!(new, want, "{output}");
    }

    #[test]
    fn what_a_test_wants_is_left_alone() {
        let output = "FAILED test_total\nE       assert 220 == 180";
        for (path, source) in [
            (
                "a.py",
                "def total(a):\n    return a + 20\n\ndef test_total():\n    want = 180\n    assert total(200) == want",
            ),
            (
                "a.rs",
                "fn total(a: u8) -> u8 {\n    a + 20\n}\n\n#[test]\nfn adds() {\n    let want = 180;\n    assert_eq!(total(200), want);\n}",
            ),
        ] {
            let lines: Vec<String> = source.lines().map(str::to_owned).collect();
            let source = Source { path: path.to_owned(), lines };
            let called = ["total".to_owned()];
            let found = changes(&[source], &Failure { output, called: &called, wanted: None, in_tests: false });
            let places: Vec<_> = found.iter().map(|change| (change.line, change.new.as_str())).collect();
            assert!(!places.is_empty() && places.iter().all(|(line, _)| *line < 3), "{path}: {places:?}");
        }
    }

    #[test]
    fn what_the_failing_test_calls_comes_before_what_others_call() {
        let source = "fn count(a: usize) -> usize {\n    a - 1\n}\n\nfn page(a: usize) -> usize {\n    a - 1\n}\n\n\
            #[cfg(test)]\nmod tests {\n    #[test]\n    fn counts() {\n        assert_eq!(count(2), 1);\n    }\n\n    \
            #[test]\n    fn a_page() {\n        assert_eq!(page(2), 2);\n    }\n}";
        let output = "test tests::counts ... ok\ntest tests::a_page ... FAILED\n\n---- tests::a_page stdout ----\n";
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let source = Source { path: "src/lib.rs".to_owned(), lines };
        let found = changes(&[source], &Failure { output, called: &[], wanted: None, in_tests: false });
        assert_eq!(found.first().map(|change| (change.line, change.new.trim())), Some((5, "a")));
    }

    #[test]
    fn what_an_output_suggests_comes_first() {
        let rust = "error[E0425]: cannot find value `totl`\n --> src/lib.rs:2:5\nhelp: a local variable with a similar name exists\n  |\n2 -     totl + 1\n2 +     total + 1\n";
        check("src/lib.rs", "fn a(total: u8) -> u8 {\n    totl + 1\n}", &[], rust, &["total + 1"]);
        let insert =
            "error: expected `;`\n --> src/lib.rs:1:10\nhelp: add `;` here\n  |\n1 | let a = 1;\n  |          +\n";
        check("src/lib.rs", "let a = 1\nlet b = 2;", &[], insert, &["let a = 1;"]);
        let python = "NameError: name 'totl' is not defined. Did you mean: 'total'?";
        check("a.py", "def a(total):\n    return totl", &["a"], python, &["return total"]);
        let node = "ReferenceError: nmae is not defined";
        check("a.js", "function a(name) {\n  return nmae;\n}", &["a"], node, &["return name;"]);
    }

    #[test]
    fn what_was_expected_comes_before_slips() {
        let rust = "---- tests::greets stdout ----\n  left: \"Helo\"\n right: \"Hello\"\n";
        check("src/lib.rs", "fn greet() -> &'static str {\n    \"Helo\"\n}", &["greet"], rust, &["\"Hello\""]);
        check(
            "a.py",
            "def limit():\n    return 10 - 1 + 30",
            &["limit"],
            "AssertionError: 30 != 31",
            &["return 10 - 1 + 31"],
        );
        let node = "    12 !== 10\n";
        check("a.js", "const f = (a) => a * 12;", &["f"], node, &["const f = (a) => a * 10;"]);
        // A number is not part of a longer one.
        check("a.py", "def limit():\n    return 130 - x", &["limit"], "AssertionError: 30 != 31", &["return 130 + x"]);
    }

    #[test]
    fn functions_are_completed() {
        let none = "AssertionError: None != 3";
        check(
            "a.py",
            "def add(a, b):\n    total = a + b",
            &["add"],
            none,
            &["return a + b", "total = a + b\n    return total"],
        );
        let call = "AttributeError: 'NoneType' object has no attribute 'title'";
        let guard = "if name is None:\n        return \"Hi\"\n    return name.title()";
        check("a.py", "def greet(name):\n    return name.title()", &["greet"], call, &[guard]);
        let open = "def read(path):\n    file = open(path)\n    return file.read()";
        check("a.py", open, &["read"], "ResourceWarning", &["with open(path) as file:\n        return file.read()"]);
        let later =
            "async function read() {\n}\nasync function name() {\n  const item = read();\n  return item.name;\n}";
        check("a.js", later, &["name"], "+ undefined", &["const item = await read();"]);
        let brought = "NameError: name 'math' is not defined";
        check("a.py", "def root(x):\n    return math.sqrt(x)", &["root"], brought, &["import math\ndef root(x):"]);
        let rust =
            " --> src/lib.rs:1:9\nhelp: consider importing this struct\n  |\n1 + use std::collections::HashMap;\n  |\n";
        check(
            "src/lib.rs",
            "fn a() -> HashMap<u8, u8> {",
            &[],
            rust,
            &["use std::collections::HashMap;\nfn a() -> HashMap<u8, u8> {"],
        );
    }
}
