//! Lines of more words than anybody writes: nothing judges them, and rules that forbid are tried in one pass.

use std::collections::HashSet;

use super::rule::{Rule, ShellPattern, Specifier};
use super::vocabulary::Matches;

/// Most words, quoted or not, of a line that is looked at.
const MAX_WORDS: usize = 2048;
/// Most of them in one command.
const MAX_RUN: usize = 512;

/// Whether the line has more words, redirections, braces or assignments than are looked at: reading them costs more than
/// their number.
pub(super) fn is_vast(text: &str) -> bool {
    let mut all = 0;
    text.split([';', '\n', '|', '&']).any(|run| {
        let words = run.split(|c: char| c.is_whitespace() || "<>(){}=$`".contains(c));
        let count = words.filter(|word| !word.is_empty()).count();
        all += count;
        count > MAX_RUN || all > MAX_WORDS
    })
}

/// Every word of a line, with its folder and without; of quotes and backslashes nothing is left.
pub(super) fn crude(text: &str) -> HashSet<String> {
    let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let words = bare.split(|c: char| c.is_whitespace() || ";&|<>(){}=$`,".contains(c)).filter(|word| !word.is_empty());
    words
        .flat_map(|word| [word.to_ascii_lowercase(), word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase()])
        .collect()
}

/// Whether the rule's words, as far as it names them, are all among those of a line.
pub(super) fn touches_crude(rule: &Rule, words: &HashSet<String>) -> bool {
    let named: Vec<&str> = match rule.specifier() {
        _ if !rule.is_about(Matches::Command) => return false,
        Specifier::Any => return true,
        Specifier::Shell(ShellPattern::Prefix(prefix)) => prefix.iter().map(String::as_str).collect(),
        Specifier::Shell(ShellPattern::Exact(text) | ShellPattern::Wildcard(text)) => text.split_whitespace().collect(),
        _ => return false,
    };
    named.iter().all(|word| word.contains('*') || words.contains(&word.to_ascii_lowercase()))
}
