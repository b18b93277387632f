//! Hides what looks like a key or a password in a text.

use std::sync::LazyLock;

use regex::Regex;

/// What takes the place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// What keys look like, and what stands for each.
static KEYS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"(?i)\b(sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf)[-_][A-Za-z0-9_\-]{8,}", HIDDEN),
        (r"\bAIza[A-Za-z0-9_\-]{16,}", HIDDEN),
        (r"\bAKIA[A-Z0-9]{12,}", HIDDEN),
        (r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+", HIDDEN),
        (r"://[^\s/:@]*:[^\s/@]+@", "://[hidden]@"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._\-]{6,}", "$1 [hidden]"),
        (r"(?i)\b([a-z_\-]*(?:api[_-]?key|token|secret|password|passwd))(\s*[=:]\s*)[^\s,;]{4,}", "$1$2[hidden]"),
    ];
    patterns.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// The text without what looks like a key.
pub fn keys(text: &str) -> String {
    KEYS.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden() {
        for (text, want) in [
            ("sk-ant-api03-abcDEF_123-x and sk-1", "[hidden] and sk-1"),
            ("postgres://me:pw@host/db and https://host/path", "postgres://[hidden]@host/db and https://host/path"),
            ("AKIA1234567890ABCD", "[hidden]"),
            ("the password: hunter22, then", "the password: [hidden], then"),
            ("max_tokens = 5", "max_tokens = 5"),
        ] {
            assert_eq!(keys(text), want);
        }
    }
}
