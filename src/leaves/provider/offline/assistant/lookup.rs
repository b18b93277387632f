//! Recipes that find, run and fetch.

use serde_json::json;

use super::{Situation, bash, read, say, tail, tool};
use crate::provider::offline::script::Part;

/// Searches the code: lines with all terms, else with any of them; declarations first.
pub(super) fn find(situation: &Situation, terms: &[String]) -> Vec<Part> {
    let quoted = terms.join("`, `");
    let grep = |pattern: String, glob: Option<&str>| {
        let mut input = json!({
            "pattern": pattern, "output_mode": "content", "-n": true, "-i": true, "head_limit": 200
        });
        // A glob would bring in hidden files, too.
        if let Some(glob) = glob {
            input["glob"] = glob.into();
        }
        tool("Grep", input)
    };
    let any = |terms: &[String]| terms.iter().map(|term| escape(term)).collect::<Vec<_>>().join("|");
    let searched: Vec<_> = situation.of_tool("Grep").collect();
    let mut found: Vec<Hit> =
        searched.iter().flat_map(|step| step.text().lines().filter_map(Hit::of).collect::<Vec<_>>()).collect();
    found.sort_by(|a, b| (a.rank(), &a.file, a.line).cmp(&(b.rank(), &b.file, b.line)));
    found.dedup_by(|a, b| (&a.file, a.line) == (&b.file, b.line));
    match (searched.len(), terms) {
        (0, [first, others @ ..]) if !others.is_empty() => {
            // A file or folder may be named for one of the terms, and its lines have the others.
            let home = plain(first);
            return vec![
                say(format!("Searching for `{quoted}`.")),
                grep(all(terms), None),
                grep(any(others), Some(&format!("{{**/*{home}*,**/*{home}*/**}}"))),
                named(terms),
            ];
        }
        (0, _) => return vec![say(format!("Searching for `{quoted}`.")), grep(any(terms), None), named(terms)],
        (2, _) if found.is_empty() => {
            return vec![say("No line contains all of them. Searching for any."), grep(any(terms), None)];
        }
        _ => {}
    }
    let names: Vec<String> = situation
        .of_tool("Glob")
        .filter(|step| step.ok())
        .flat_map(|step| step.text().lines().map(|line| situation.short(line.trim()).to_owned()).collect::<Vec<_>>())
        .filter(|line| {
            !line.contains(' ') && terms.iter().any(|term| line.to_lowercase().contains(&term.to_lowercase()))
        })
        .take(6)
        .collect();
    if found.is_empty() && names.is_empty() {
        return vec![say(format!(
            "Nothing in this folder mentions `{quoted}`: neither file contents nor file names. Ignored files were not searched."
        ))];
    }
    let mut text = String::new();
    if !found.is_empty() {
        let mut files: Vec<&str> = found.iter().map(|hit| hit.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        text.push_str(&format!(
            "`{quoted}`: {} line{} in {} file{}, declarations first:\n\n",
            found.len(),
            s(found.len()),
            files.len(),
            s(files.len())
        ));
        for hit in found.iter().take(8) {
            let code: String = hit.code.trim().chars().take(90).collect();
            text.push_str(&format!("- `{}:{}` — `{}`\n", situation.short(&hit.file), hit.line, code.replace('`', "'")));
        }
        if found.len() > 8 {
            text.push_str(&format!("- … and {} more\n", found.len() - 8));
        }
    }
    if !names.is_empty() {
        text.push_str("\nFiles with a similar name:\n\n");
        for name in names {
            text.push_str(&format!("- `{name}`\n"));
        }
    }
    vec![say(text)]
}

/// Two or three terms on one line, in any order.
fn all(terms: &[String]) -> String {
    let words: Vec<String> = terms.iter().map(|term| escape(term)).collect();
    match words.as_slice() {
        [a, b] => format!("{a}.*{b}|{b}.*{a}"),
        [a, b, c] => format!("{a}.*{b}.*{c}|{b}.*{a}.*{c}|{c}.*{a}.*{b}|{a}.*{c}.*{b}|{b}.*{c}.*{a}|{c}.*{b}.*{a}"),
        others => others.join("|"),
    }
}

/// A term without what a glob reads as more than itself.
fn plain(term: &str) -> String {
    term.replace(['*', '?', '[', ']', '{', '}', ' ', ','], "")
}

/// Files whose names have one of the terms.
fn named(terms: &[String]) -> Part {
    let patterns: Vec<String> = terms.iter().map(|term| format!("**/*{}*", plain(term))).collect();
    let pattern = if patterns.len() == 1 { patterns.concat() } else { format!("{{{}}}", patterns.join(",")) };
    tool("Glob", json!({ "pattern": pattern }))
}

/// One line of the result of Grep in content mode: `file:line:code`.
struct Hit {
    file: String,
    line: u64,
    code: String,
}

impl Hit {
    fn of(line: &str) -> Option<Hit> {
        let mut parts = line.splitn(3, ':');
        let (file, number, code) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Hit { file: file.to_owned(), line: number.parse().ok()?, code: code.to_owned() })
    }

    /// Declarations in code first, then other code, then tests, prose and comments.
    fn rank(&self) -> u8 {
        let code = self.code.trim_start();
        let extension = self.file.rsplit_once('.').map_or("", |(_, extension)| extension);
        match () {
            () if ["md", "txt", "lock", "snap", "json", "yaml", "yml"].contains(&extension) => 3,
            () if self.file.contains("test") || code.starts_with("//") || code.starts_with('#') => 2,
            () if super::explain::declares(code) => 0,
            () => 1,
        }
    }
}

fn escape(term: &str) -> String {
    term.chars()
        .flat_map(|c| if c.is_alphanumeric() || c == ' ' || c == '_' { vec![c] } else { vec!['\\', c] })
        .collect()
}

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Shows what git knows of changes.
pub(super) fn changes(situation: &Situation) -> Vec<Part> {
    let mut ran = situation.of_tool("Bash");
    let (Some(status), Some(diff)) = (ran.next(), ran.next()) else {
        return vec![
            say("Asking git."),
            bash("git status --short --branch", "Show the working tree status"),
            bash("git diff --stat HEAD", "Show what changed"),
        ];
    };
    if !status.ok() {
        return vec![say(format!("git failed:\n\n{}", tail(&status.text(), 5)))];
    }
    let state = status.text();
    let files = state.lines().filter(|line| !line.starts_with("##") && !line.trim().is_empty()).count();
    if files == 0 {
        return vec![say(format!("Nothing has changed.\n\n{}", tail(&state, 3)))];
    }
    vec![say(format!("{files} file{} changed:\n\n{}\n\n{}", s(files), tail(&state, 30), tail(&diff.text(), 30)))]
}

/// Runs one command.
pub(super) fn run(situation: &Situation, command: &str) -> Vec<Part> {
    let Some(ran) = situation.of_tool("Bash").next() else {
        return vec![say(format!("Running `{command}`.")), bash(command, "Run what was asked for")];
    };
    let verdict = if ran.ok() { "It ran." } else { "It failed." };
    vec![say(format!("{verdict} The end of its output:\n\n{}", tail(&ran.text(), 15)))]
}

pub(super) fn fetch(situation: &Situation, url: &str) -> Vec<Part> {
    let Some(page) = situation.of_tool("WebFetch").next() else {
        return vec![
            say(format!("Fetching {url}.")),
            tool("WebFetch", json!({ "url": url, "prompt": "What does the page say?" })),
        ];
    };
    if !page.ok() {
        return vec![say(format!("Could not fetch the page: {}", page.text()))];
    }
    let text = page.text();
    let opening: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(15).collect();
    vec![say(format!("The page starts with:\n\n> {}", opening.join("\n> ")))]
}

/// No recipe fits: shows the places that the words of the prompt point to.
pub(super) fn guess(situation: &Situation, words: &[String]) -> Vec<Part> {
    const NONE: &str = "I have no recipe for that, and an offline model cannot reason about it. What works: explaining the project or a file, finding code, facts from manifest and git, running the tests, fixing small slips, and exact edits (`what can you do?` lists them).";
    if words.is_empty() {
        return vec![say(NONE)];
    }
    let Some(hits) = situation.of_tool("Grep").next() else {
        let pattern = words.iter().map(|word| escape(word)).collect::<Vec<_>>().join("|");
        return vec![
            say("Looking for what your words might refer to in this folder."),
            tool("Grep", json!({ "pattern": pattern, "output_mode": "count", "-i": true, "head_limit": 40 })),
        ];
    };
    let mut counts: Vec<(u64, String)> = hits
        .text()
        .lines()
        .filter_map(|line| {
            let (file, count) = line.rsplit_once(':')?;
            Some((count.trim().parse().ok()?, file.to_owned()))
        })
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let Some((_, best)) = counts.first() else { return vec![say(NONE)] };
    if situation.of_tool("Read").next().is_none() {
        return vec![read(best)];
    }
    let places: String = counts
        .iter()
        .take(6)
        .map(|(count, file)| {
            format!("- `{}` ({count} line{})\n", situation.short(file), s(usize::try_from(*count).unwrap_or(2)))
        })
        .collect();
    let words = words.join("`, `");
    vec![say(format!("{NONE}\n\nFor what it is worth, `{words}` appear in:\n\n{places}"))]
}
