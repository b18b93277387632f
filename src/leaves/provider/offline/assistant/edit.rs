//! Recipes that change files. The permission engine asks; these only call.

use serde_json::json;

use super::code::{self, Sort};
use super::look::escape;
use super::{Part, Recipe, Situation, Step, bash, capital, glob, grep, read, repair, rows, s, tell, tool, unnumbered};

pub(super) fn create(situation: &Situation, path: &str, text: &str) -> Recipe {
    written(situation, path, text, &format!("Wrote `{path}`."))
}

/// Writes a file, and says that it is written.
pub(super) fn written(situation: &Situation, path: &str, text: &str, done: &str) -> Recipe {
    let call = tool("Write", json!({ "file_path": path, "content": with_newline(text) }));
    let [step] = situation.need(&format!("Writing `{path}`."), [call])?;
    tell(if step.ok() { done.to_owned() } else { format!("The write failed: {}", step.text()) })
}

/// A file by the name that the user gave it, wherever it is.
pub(super) fn file<'s, 'a>(situation: &'s Situation<'a>, path: &str) -> Result<(&'s Step<'a>, String), Vec<Part>> {
    let found = |path: &str| situation.of_tool("Read").find(|step| step.input("file_path") == path);
    situation.need(&format!("Reading `{path}` first."), [read(path)])?;
    match found(path) {
        Some(step) if !step.ok() && !path.starts_with('/') => {
            let [other] = situation.need("", [glob(&format!("**/{path}"))])?;
            let Some(other) = situation.paths_of(other).into_iter().next() else { return Ok((step, path.to_owned())) };
            situation.need("", [read(&other)])?;
            found(&other).map(|step| (step, other)).ok_or_else(Vec::new)
        }
        Some(step) => Ok((step, path.to_owned())),
        None => Err(Vec::new()),
    }
}

fn unreadable(step: &Step) -> Recipe {
    tell(format!("I cannot read it: {}", step.text()))
}

/// Whether a match is a whole word, where only whole words count.
fn alone(line: &str, at: usize, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    !line[..at].ends_with(letter) && !line[at + word.len()..].starts_with(letter)
}

fn exchanged(line: &str, old: &str, new: &str) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for (at, _) in line.match_indices(old).filter(|(at, _)| alone(line, *at, old)) {
        text.push_str(&line[from..at]);
        text.push_str(new);
        from = at + old.len();
    }
    text + &line[from..]
}

/// Replaces a text in one file, or a name in all of them; then the tests say whether it holds.
pub(super) fn replace(situation: &Situation, old: &str, new: &str, path: Option<&str>) -> Recipe {
    let name = code::words(old).next() == Some(old) && path.is_none();
    let (files, missing): (Vec<(String, &Step)>, _) = match path {
        Some(path) => {
            let (step, path) = file(situation, path)?;
            if !step.ok() {
                return unreadable(step);
            }
            (vec![(path.clone(), step)], format!("`{path}` does not contain `{old}`."))
        }
        None => {
            let pattern = if name { format!(r"\b{old}\b") } else { escape(old) };
            let call = tool("Grep", json!({ "pattern": pattern, "output_mode": "files_with_matches" }));
            let [found] = situation.need(&format!("Looking for `{old}`."), [call])?;
            let paths: Vec<String> = situation.paths_of(found);
            if paths.len() > 30 {
                let text =
                    format!("`{old}` is in {} files. Name the one to change, or give a longer text.", paths.len());
                return tell(text);
            }
            let steps = situation.need_all("", paths.iter().map(|path| read(path)).collect())?;
            (
                paths.into_iter().zip(steps).filter(|(_, step)| step.ok()).collect(),
                format!("Nothing in this folder contains `{old}`."),
            )
        }
    };
    let (mut edits, mut changed) = (Vec::new(), Vec::new());
    for (path, step) in &files {
        let text = unnumbered(&step.text()).join("\n");
        let hits: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
        let whole = hits.iter().filter(|at| !name || alone(&text, **at, old)).count();
        let edit = |old: &str, new: &str| {
            tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new, "replace_all": true }))
        };
        if whole == hits.len() && whole > 0 {
            edits.push(edit(old, new));
        } else {
            // Longer names have this one in them: line by line, long lines first, since they may contain short ones.
            let mut lines: Vec<&str> = text.lines().filter(|line| exchanged(line, old, new) != **line).collect();
            lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
            lines.dedup();
            edits.extend(lines.into_iter().map(|line| edit(line, &exchanged(line, old, new))));
        }
        if whole > 0 {
            changed.push(format!("`{path}`: {whole} time{}", s(whole)));
        }
    }
    if edits.is_empty() {
        return tell(format!("{missing} Nothing was changed."));
    }
    let opening = format!("`{old}` is in {} file{}. Changing it to `{new}`.", changed.len(), s(changed.len()));
    let done = situation.need_all(&opening, edits)?;
    if let Some(failed) = done.iter().find(|step| !step.ok()) {
        return tell(format!("An edit did not work: {}\n\n`/undo` reverts the others.", failed.text()));
    }
    let text = format!("Replaced `{old}` with `{new}`:\n\n{}", rows(&changed, 30));
    // One text in one file may be prose; a name is code.
    tell(if name { format!("{text}\n{}", repair::verdict(situation)?) } else { text })
}

/// Gives a constant, or a line of a configuration, another value.
pub(super) fn set(situation: &Situation, terms: &[String], value: &str) -> Recipe {
    let any = terms.iter().map(|term| escape(term)).collect::<Vec<_>>().join("|");
    let [found] =
        situation.need(&format!("Looking for `{}`.", terms.join("`, `")), [grep(&format!("({any}).*[=: ]"), 300)])?;
    let wanted: Vec<String> = terms.iter().map(|term| term.to_lowercase()).collect();
    let text = found.text();
    let mut places: Vec<(bool, usize, String, usize, String, String)> = text
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (path, number, code) = (parts.next()?, parts.next()?.parse::<usize>().ok()?, parts.next()?);
            let setting =
                [" = ", "=", ": "].iter().find_map(|mark| code.trim().split_once(mark)).map(|(name, _)| name.trim());
            let setting = setting.filter(|_| !code::is_source(path) && !path.ends_with(".md"));
            let name = match code::declared(code) {
                Some((Sort::Value, name)) => Some(name),
                _ => setting,
            }?;
            let lower = name.to_lowercase();
            let all = wanted.iter().all(|term| lower.contains(term.as_str()));
            let exact = wanted.contains(&lower);
            (all || exact).then(|| {
                (!exact, name.len(), situation.short(path).to_owned(), number, name.to_owned(), code.to_owned())
            })
        })
        .collect();
    places.sort();
    let Some((inexact, _, path, number, name, line)) = places.first() else {
        let text = format!("I found no constant or setting named like `{}`. Nothing was changed.", terms.join(" "));
        return tell(text);
    };
    if places.len() > 1 && *inexact {
        let all: Vec<String> = places
            .iter()
            .map(|(_, _, path, number, _, code)| format!("`{path}:{number}` — `{}`", code.trim()))
            .collect();
        return tell(format!("Several could be meant. Name one:\n\n{}", rows(&all, 10)));
    }
    let Some(new) = assigned(line, name, value) else {
        let text = format!(
            "`{name}` is in `{path}:{number}`:\n\n- `{}`\n\nI only change plain values, and `{value}` is not one like it. Nothing was changed.",
            line.trim()
        );
        return tell(text);
    };
    let [_, done] = situation.need(
        &format!("It is in `{path}:{number}`."),
        [read(path), tool("Edit", json!({ "file_path": path, "old_string": line, "new_string": new }))],
    )?;
    if !done.ok() {
        return tell(format!("The edit did not work: {}", done.text()));
    }
    let text = format!("Changed `{path}:{number}`:\n\n```diff\n-{line}\n+{new}\n```");
    tell(if code::is_source(path) { format!("{text}\n\n{}", repair::verdict(situation)?) } else { text })
}

/// The line with another value of the same kind: a number, a text, a truth, or a variant beside the old one.
fn assigned(line: &str, name: &str, value: &str) -> Option<String> {
    let at = line.find(name)? + name.len();
    let mark = line[at..].find('=').or_else(|| line[at..].find(": ")).or_else(|| line[at..].find(' '))? + at + 1;
    let start = mark + line[mark..].len() - line[mark..].trim_start().len();
    let rest = &line[start..];
    let quote = rest.chars().next().filter(|c| ['"', '\'', '`'].contains(c));
    let end = match quote {
        Some(quote) => rest[1..].find(quote)? + 2,
        None => rest.find([';', ',', ' ', '#']).unwrap_or(rest.len()),
    };
    let (old, behind) = rest.split_at(end);
    let (amount, unit) = value.split_once(' ').unwrap_or((value, ""));
    let new = if let (Ok(_), Ok(number)) = (old.replace('_', "").parse::<f64>(), amount.parse::<f64>()) {
        let lower = name.to_lowercase();
        let factor = match unit.chars().next() {
            Some('s') if lower.ends_with("ms") || lower.contains("milli") => 1000.0,
            Some('m') if unit.starts_with("min") && (lower.ends_with("ms") || lower.contains("milli")) => 60_000.0,
            Some('m') if unit.starts_with("min") => 60.0,
            _ => 1.0,
        };
        if factor == 1.0 { amount.to_owned() } else { (number * factor).to_string() }
    } else if let Some(quote) = quote {
        format!("{quote}{}{quote}", value.trim_matches(['"', '\'']))
    } else if ["true", "false"].contains(&old.to_lowercase().as_str())
        && ["true", "false"].contains(&value.to_lowercase().as_str())
    {
        let large = old.starts_with(char::is_uppercase);
        let lower = value.to_lowercase();
        if large { capital(&lower) } else { lower }
    } else if let Some((of, variant)) = old.rsplit_once("::").filter(|_| code::words(value).next() == Some(value)) {
        let large = variant.starts_with(char::is_uppercase);
        let new = if large { capital(value) } else { value.to_owned() };
        format!("{of}::{new}")
    } else if !code::is_source(line)
        && quote.is_none()
        && !line.contains(['(', '{', '['])
        && old.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
        && !line.trim_end().ends_with(';')
        && !line.starts_with("const")
    {
        value.to_owned()
    } else {
        return None;
    };
    Some(format!("{}{new}{behind}", &line[..start]))
}

/// Spaces in place of the tabs that lines begin with.
pub(super) fn spaces(situation: &Situation, path: &str) -> Recipe {
    if path.is_empty() {
        return tell("Name the file, such as `convert tabs to spaces in main.py`.");
    }
    let (step, path) = file(situation, path)?;
    if !step.ok() {
        return unreadable(step);
    }
    let lines = unnumbered(&step.text());
    let count = lines.iter().filter(|line| line.starts_with('\t')).count();
    if count == 0 {
        return tell(format!("No line of `{path}` begins with a tab. Nothing was changed."));
    }
    let spaced = |line: &String| {
        let tabs = line.chars().take_while(|c| *c == '\t').count();
        format!("{}{}", "    ".repeat(tabs), &line[tabs..])
    };
    let text: Vec<String> = lines.iter().map(spaced).collect();
    let done = format!("Replaced the tabs at the start of {count} line{} of `{path}` with four spaces each.", s(count));
    written(situation, &path, &text.join("\n"), &done)
}

pub(super) fn append(situation: &Situation, text: &str, path: &str) -> Recipe {
    let [step] = situation.need(&format!("Reading `{path}` first."), [read(path)])?;
    let mut lines = if step.ok() { unnumbered(&step.text()) } else { Vec::new() };
    lines.push(text.to_owned());
    written(situation, path, &lines.join("\n"), &format!("Added the line to the end of `{path}`."))
}

pub(super) fn delete(situation: &Situation, path: &str) -> Recipe {
    let quoted = path.replace('\'', r"'\''");
    let [step] =
        situation.need(&format!("Removing `{path}`."), [bash(&format!("rm -- '{quoted}'"), "Remove the file")])?;
    tell(if step.ok() { format!("Removed `{path}`.") } else { format!("Could not remove it: {}", step.text()) })
}

fn with_newline(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
