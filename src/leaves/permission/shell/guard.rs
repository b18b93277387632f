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
