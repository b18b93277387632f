//! Skills that the prompt names anywhere, such as `use /commit here`: they stand out, and mean what their name says.

use std::collections::HashSet;
use std::ops::Range;

use crate::commands::Registry;

/// Where they stand, found again when text or skills are others than before.
#[derive(Debug, Clone, Default)]
pub(super) struct Mentions {
    /// In lower case.
    names: HashSet<String>,
    ranges: Vec<Range<usize>>,
    revision: Option<u64>,
}

impl Mentions {
    /// Takes over the names of all skills that can be typed.
    pub(super) fn learn(&mut self, commands: &Registry) {
        let skills = commands.all().filter(|command| command.source().is_some() && command.user_invocable);
        self.names = skills
            .flat_map(|command| command.aliases.iter().chain([&command.name]).chain(&command.qualified))
            .map(|name| name.to_lowercase())
            .collect();
        self.revision = None;
    }

    pub(super) fn heed(&mut self, text: &str, revision: u64) {
        if self.revision != Some(revision) {
            self.ranges = found(text, &self.names);
            self.revision = Some(revision);
        }
    }

    /// Whether a byte is part of a skill's name, with its slash.
    pub(super) fn at(&self, at: usize) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= at);
        self.ranges.get(next).is_some_and(|range| range.start <= at)
    }
}

/// `/name` after a blank or a bracket; what ends a sentence may follow it.
fn found(text: &str, names: &HashSet<String>) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (at, _) in text.match_indices('/') {
        let before = text[..at].chars().next_back();
        if !before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '\'' | '`')) {
            continue;
        }
        let rest = &text[at + 1..];
        let word = rest.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        if rest[word.len()..].starts_with('/') {
            continue;
        }
        let name = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'', '`']);
        if names.contains(&name.to_lowercase()) {
            ranges.push(at..at + 1 + name.len());
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_skills_are_found_anywhere() {
        fn check(text: &str, want: &[&str]) {
            let names = ["commit", "review-pr", "user:help", "größe"].map(str::to_owned).into();
            let got: Vec<&str> = found(text, &names).into_iter().map(|range| &text[range]).collect();
            assert_eq!(got, want, "{text}");
        }
        check("use /commit here", &["/commit"]);
        check("/commit", &["/commit"]);
        check("then /Commit, (/review-pr) and \"/größe\".", &["/Commit", "/review-pr", "/größe"]);
        check("/user:help\n\t/commit", &["/user:help", "/commit"]);
        check("see src/commit, /commit/x, /commits, /comm, // and /", &[]);
        check("what is in /tmp?", &[]);
    }
}
