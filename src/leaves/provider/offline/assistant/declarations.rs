//! Recipes that list and show what the code declares.

use serde_json::json;

use super::{Situation, read, say, tool, unnumbered};
use crate::provider::offline::script::Part;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Things {
    Functions,
    PublicFunctions,
    Types,
    Tests,
    Todos,
}

/// Lists declarations of a kind, tests, or notes to oneself.
pub(super) fn list(situation: &Situation, things: Things) -> Vec<Part> {
    let (pattern, one, more) = match things {
        Things::PublicFunctions => (
            r"^\s*(pub (async |const |unsafe )*fn \w+|export (default )?(async )?function \w+|def [a-z]\w*|func [A-Z(])",
            "public function",
            "public functions",
        ),
        Things::Functions => (
            r"^\s*(pub(\([a-z]+\))? )?(export )?(default )?(async |const |unsafe )*(fn|function|def|func) [\w(]",
            "function",
            "functions",
        ),
        Things::Types => (
            r"^\s*(pub(\([a-z]+\))? )?(export )?(default )?(abstract )?(struct|enum|trait|class|interface|type|union) \w+",
            "type",
            "types",
        ),
        Things::Tests => {
            (r"#\[(tokio::)?test\]|^\s*(async )?def test\w*|^\s*func Test\w+|^\s*(it|test)\(", "test", "tests")
        }
        Things::Todos => (r"\b(TODO|FIXME|HACK|XXX)\b", "note to do", "notes to do"),
    };
    let Some(step) = situation.of_tool("Grep").next() else {
        let after = if things == Things::Tests { 2 } else { 0 };
        let input = json!({ "pattern": pattern, "output_mode": "content", "-n": true, "-A": after, "head_limit": 400 });
        return vec![say(format!("Looking for {more}.")), tool("Grep", input)];
    };
    let text = step.text();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut marked = false;
    for line in text.lines() {
        let Some((place, code)) = placed(line) else { continue };
        let code = code.trim();
        if code.starts_with("#[") {
            marked = true;
            continue;
        }
        // Lines behind a test's mark are its name, or something in between.
        let named = ["fn ", "def ", "func ", "it(", "test("].iter().any(|word| code.contains(word));
        if things == Things::Tests && !named {
            continue;
        }
        let context = !line.contains(&format!("{place}:"));
        if context && !std::mem::take(&mut marked) {
            continue;
        }
        let code = code.trim_end_matches(['{', ':']).trim_end();
        rows.push((situation.short(&place).to_owned(), code.chars().take(100).collect()));
    }
    rows.dedup();
    if rows.is_empty() {
        return vec![say(format!("I found no {more} in this folder. Ignored files were not searched."))];
    }
    let count = rows.len();
    let shown: Vec<String> =
        rows.iter().take(40).map(|(place, code)| format!("- `{place}` — `{}`\n", code.replace('`', "'"))).collect();
    let rest = if count > 40 { format!("- … and {} more\n", count - 40) } else { String::new() };
    vec![say(format!("{count} {}:\n\n{}{rest}", if count == 1 { one } else { more }, shown.concat()))]
}

/// `file:line` and the code of a line of Grep; lines around a match have dashes.
fn placed(line: &str) -> Option<(String, &str)> {
    for mark in [':', '-'] {
        for (at, _) in line.match_indices(mark) {
            let rest = &line[at + 1..];
            let digits = rest.chars().take_while(char::is_ascii_digit).count();
            if digits > 0 && rest[digits..].starts_with(mark) {
                return Some((format!("{}:{}", &line[..at], &rest[..digits]), &rest[digits + 1..]));
            }
        }
    }
    None
}

/// Shows where a name is declared, with its comment and body.
pub(super) fn symbol(situation: &Situation, name: &str) -> Vec<Part> {
    let Some(found) = situation.of_tool("Grep").next() else {
        let kinds = "fn|def|function|func|struct|enum|trait|class|interface|type|const|static|let|var|mod|macro_rules!";
        let pattern = format!(r"\b({kinds})\s+(\(\w+ \*?\w+\)\s+)?{name}\b");
        let input = json!({ "pattern": pattern, "output_mode": "content", "-n": true, "head_limit": 20 });
        return vec![say(format!("Looking for where `{name}` is declared.")), tool("Grep", input)];
    };
    let text = found.text();
    let Some((place, _)) = text.lines().find_map(placed) else {
        return vec![say(format!("Nothing in this folder declares `{name}`. `find {name}` searches every mention."))];
    };
    let Some((file, line)) = place.rsplit_once(':') else { return vec![say(text)] };
    let Some(step) = situation.of_tool("Read").next() else { return vec![read(file)] };
    let (lines, at) = (unnumbered(&step.text()), line.parse::<usize>().unwrap_or(1).saturating_sub(1));
    let comment = |line: &String| {
        let line = line.trim_start();
        ["//", "#", "*", "/*", "@"].iter().any(|start| line.starts_with(start))
    };
    let from = (0..at.min(lines.len())).rev().take_while(|above| comment(&lines[*above])).last().unwrap_or(at);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let base = lines.get(at).map_or(0, |line| indent(line));
    // A body is what stands deeper, with the line that closes it.
    let deeper = |line: &String| line.trim().is_empty() || indent(line) > base;
    let body = lines.iter().skip(at + 1).take_while(|line| deeper(line)).count();
    let closes = |line: &&String| indent(line) == base && line.trim_start().starts_with(['}', ')', ']']);
    let end = (at + 1 + body + usize::from(lines.get(at + 1 + body).as_ref().is_some_and(closes))).min(lines.len());
    let code: Vec<&str> = lines.get(from..end).unwrap_or_default().iter().map(String::as_str).collect();
    let code: Vec<&str> = code.into_iter().take(60).collect();
    let language = file.rsplit_once('.').map_or("text", |(_, extension)| extension);
    vec![say(format!(
        "`{name}` is declared in `{}:{line}`:\n\n```{language}\n{}\n```",
        situation.short(file),
        code.join("\n").trim_end()
    ))]
}
