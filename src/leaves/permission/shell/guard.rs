//! What no line may hold if it is to be judged at all: bytes that hide what runs.

/// Longest line that is judged, in bytes.
pub(in crate::permission) const MAX_BYTES: usize = 64 * 1024;

/// Why the line is not even parsed.
pub(in crate::permission) fn refuse(line: &str) -> Option<String> {
    if line.len() > MAX_BYTES {
        return Some(format!("the line is longer than {} KB", MAX_BYTES / 1024));
    }
    let hidden = line.chars().find(|c| is_hidden(*c))?;
    Some(format!("the line holds {}, which hides what it does", hidden.escape_unicode()))
}

/// Control characters, and those that people see as nothing, as a blank, or in another order.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' | '\u{1d173}'..='\u{1d17a}' => true,
        ' ' => false,
        c => c.is_whitespace(),
    }
}

/// Longest line in which variables of arithmetic are looked for, in bytes: each time from its start.
const MAX_COUNTED: usize = 4096;

/// Whether the arithmetic is about numbers, and variables that the text of the line gives numbers and nothing else: bash runs
/// what a value holds in brackets.
pub(super) fn counts(inner: &str, text: &str) -> bool {
    let plain = inner.chars().all(|c| c.is_ascii_alphanumeric() || "_ +-*/%()<>&|^~!?:".contains(c));
    let number = |name: &str| name.starts_with(|c: char| c.is_ascii_digit());
    plain && names(inner).all(|(_, name)| number(name) || text.len() <= MAX_COUNTED && is_number(name, text))
}

/// Runs of letters, digits and `_`, with where they begin.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c))
        .filter(|name| !name.is_empty())
        .map(|name| (name.as_ptr() as usize - text.as_ptr() as usize, name))
}

/// Whether wherever the text names the variable it sets it to a number, or reads it.
fn is_number(name: &str, text: &str) -> bool {
    let (mut set, mut other) = (false, false);
    for (at, _) in names(text).filter(|(_, found)| *found == name) {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let digits = after.strip_prefix('=').map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            end > 0 && (end == rest.len() || rest[end..].starts_with([';', '\n', ' ']))
        });
        let begins =
            before.trim_end_matches(' ').is_empty() || before.trim_end_matches(' ').ends_with([';', '\n', '&']);
        let read =
            before.ends_with(['$', '{']) || before.rfind("$((").is_some_and(|open| !before[open..].contains("))"));
        match digits {
            Some(true) if begins => set = true,
            None if read => {}
            _ => other = true,
        }
    }
    set && !other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters() {
        for (line, want) in [
            ("ls -la\n\tpwd", false),
            ("echo grüße 日本", false),
            ("ls\r", true),
            ("ls\0", true),
            ("ls\u{a0}x", true),
            ("ls \u{202e}x", true),
            ("l\u{200b}s", true),
            ("ls \u{1b}[2J", true),
        ] {
            assert_eq!(refuse(line).is_some(), want, "{line:?}");
        }
        assert!(refuse(&"a".repeat(MAX_BYTES + 1)).is_some());
    }
}
