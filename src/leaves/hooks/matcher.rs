//! Which subjects a hook is for: all, some names, or a regular expression.

use regex::Regex;

/// A matcher as files write it. Letter case counts.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    /// Empty or `*`.
    All,
    /// `Edit|Write` or `Edit, Write`: exactly these.
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher as Claude Code does: names, where there is nothing else in it, and a pattern that is searched for.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the regular expression.
    pub(super) fn parse(text: &str) -> Result<Matcher, String> {
        let text = text.trim();
        if matches!(text, "" | "*") {
            return Ok(Matcher::All);
        }
        if text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '|' | ',')) {
            return Ok(Matcher::Names(text.split(['|', ',']).map(|name| name.trim().to_owned()).collect()));
        }
        Regex::new(text).map(Matcher::Pattern).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("matcher {text:?} is not a valid regular expression: {why}")
        })
    }

    pub(super) fn matches(&self, subject: &str) -> bool {
        match self {
            Matcher::All => true,
            Matcher::Names(names) => names.iter().any(|name| name == subject),
            Matcher::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_take_names_and_patterns() {
        fn check(matcher: &str, yes: &[&str], no: &[&str]) {
            let matcher = Matcher::parse(matcher).unwrap();
            for subject in yes {
                assert!(matcher.matches(subject), "{matcher:?} {subject}");
            }
            for subject in no {
                assert!(!matcher.matches(subject), "{matcher:?} {subject}");
            }
        }
        check("", &["Bash", ""], &[]);
        check("*", &["Bash"], &[]);
        check("  ", &["Bash"], &[]);
        check("Bash", &["Bash"], &["bash", "BashOutput", "MyBash"]);
        check("Edit|Write", &["Edit", "Write"], &["TodoWrite", "NotebookEdit", "Edit|Write"]);
        check("Edit | Write", &["Edit", "Write"], &["TodoWrite"]);
        check("general-purpose", &["general-purpose"], &["general"]);
        check("Edit, Write,Bash", &["Edit", "Write", "Bash"], &["TodoWrite", "Edit, Write"]);
        check("mcp__mem__.*", &["mcp__mem__get"], &["mcp__memo"]);
        check("Edit.*", &["Edit", "NotebookEdit"], &["Write"]);
        check("mcp__mem", &["mcp__mem"], &["mcp__mem__get"]);
        check("mcp__.*__write.*", &["mcp__fs__write_file"], &["mcp__fs__read"]);
        check(".*", &["Bash", ""], &[]);
        check("Notebook.*|Edit", &["NotebookEdit", "Edit", "MultiEdit"], &["Write"]);
        check("^mcp__", &["mcp__a__b"], &["x_mcp__"]);
        check("Write$", &["TodoWrite", "Write"], &["Writer"]);
        check("^(Edit|Write)$", &["Edit", "Write"], &["TodoWrite"]);
        check("(?i)bash", &["Bash", "BASH", "BashOutput"], &["Sh"]);
        check("Bäsh", &["Bäsh"], &["Bash"]);
    }

    #[test]
    fn a_broken_pattern_says_why() {
        let error = Matcher::parse("mcp__(").unwrap_err();
        assert_eq!(error, "matcher \"mcp__(\" is not a valid regular expression: unclosed group");
        assert!(Matcher::parse("a)|(b.").is_err());
        assert!(Matcher::parse(&"(a{100}){100}{100}".repeat(9)).is_err());
    }
}
