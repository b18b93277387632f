//! Lists what the code declares.

use serde_json::json;

use super::{Recipe, Situation, rows, tell, tool};

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
pub(super) fn list(situation: &Situation, things: Things) -> Recipe {
    let (pattern, one, more) = match things {
        Things::PublicFunctions => (
            r"^\s*(pub (async |const |unsafe )*fn \w+|export (default )?(async )?function \w+|def [a-z]\w*|func [A-Z(])|^\w[\w ]* \*?\w+\([^;\x22']*\{$",
            "public function",
            "public functions",
        ),
        Things::Functions => (
            r"^\s*(pub(\([a-z]+\))? )?(export )?(default )?(async |const |unsafe )*(fn|function|def|func) [\w(]|^(static |inline )*\w[\w ]* \*?\w+\([^;]*$",
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
        Things::Todos => (r"\b(TODO|FIXME|HACK|XXX)\b", "TODO comment", "TODO comments"),
    };
    let after = if things == Things::Tests { 2 } else { 0 };
    let input = json!({ "pattern": pattern, "output_mode": "content", "-n": true, "-A": after, "head_limit": 400 });
    let [step] = situation.need(&format!("Looking for {more}."), [tool("Grep", input)])?;
    let text = step.text();
    let mut found: Vec<(String, String)> = Vec::new();
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
        // What has its own word for being public says it, and tests are for nobody else.
        let bare =
            code.starts_with("fn ") || code.starts_with("static ") || super::code::is_test(&place.replace(':', "."));
        if things == Things::PublicFunctions && bare {
            continue;
        }
        let code = code.trim_end_matches(['{', ':']).trim_end();
        found.push((situation.short(&place).to_owned(), code.chars().take(100).collect()));
    }
    found.dedup();
    if found.is_empty() {
        return tell(format!("I found no {more} in this folder. Ignored files were not searched."));
    }
    let count = found.len();
    let shown: Vec<String> =
        found.iter().map(|(place, code)| format!("`{place}` — `{}`", code.replace('`', "'"))).collect();
    tell(format!("{count} {}:\n\n{}", if count == 1 { one } else { more }, rows(&shown, 40)))
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
