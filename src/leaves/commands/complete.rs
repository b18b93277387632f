//! Fuzzy completion of command names.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::Command;

/// One row of the popup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion<'a> {
    pub command: &'a Command,
    /// Positions, in characters of the command's name, that matched; for emphasis. Empty when an alias or the description matched.
    pub matched: Vec<u32>,
}

/// Which part of a command matched; a name beats an alias beats a description.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Description,
    Alias,
    Name,
    NamePrefix,
}

/// Orders the commands that match by how well they do; all of them, in their own order, for an empty query.
pub(super) fn complete<'a>(query: &str, commands: impl Iterator<Item = &'a Command>) -> Vec<Completion<'a>> {
    if query.is_empty() {
        let mut rows: Vec<Completion<'a>> =
            commands.map(|command| Completion { command, matched: Vec::new() }).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.command.score));
        return rows;
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(&literal(query), CaseMatching::Ignore, Normalization::Smart);
    let mut rows: Vec<((Part, u32), Completion<'a>)> =
        commands.filter_map(|command| rate(query, &pattern, &mut matcher, command)).collect();
    rows.sort_by(|(a, row), (b, other)| {
        let used = other.command.score.cmp(&row.command.score);
        b.cmp(a).then(used).then_with(|| row.command.name.cmp(&other.command.name))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

fn rate<'a>(
    query: &str,
    pattern: &Pattern,
    matcher: &mut Matcher,
    command: &'a Command,
) -> Option<((Part, u32), Completion<'a>)> {
    let mut buffer = Vec::new();
    let mut matched = Vec::new();
    if let Some(score) = pattern.indices(Utf32Str::new(&command.name, &mut buffer), matcher, &mut matched) {
        matched.sort_unstable();
        matched.dedup();
        let prefix = command.name.to_lowercase().starts_with(&query.to_lowercase());
        let part = if prefix { Part::NamePrefix } else { Part::Name };
        return Some(((part, score), Completion { command, matched }));
    }
    let aliases = command.aliases.iter();
    let alias = aliases.filter_map(|alias| pattern.score(Utf32Str::new(alias, &mut buffer), matcher)).max();
    let row = Completion { command, matched: Vec::new() };
    if let Some(score) = alias {
        return Some(((Part::Alias, score), row));
    }
    // Scattered letters are found in nearly every sentence: of descriptions only whole words count.
    let wanted = query.to_lowercase();
    // One or two letters begin some word of nearly every description.
    if wanted.chars().count() < 3 {
        return None;
    }
    let word =
        command.description.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with(&wanted));
    word.then_some(((Part::Description, 0), row))
}

/// The query without the meaning that the matcher gives to `^ $ ! '` and blanks.
fn literal(query: &str) -> String {
    let mut pattern = String::with_capacity(query.len());
    for c in query.chars() {
        if matches!(c, '^' | '$' | '!' | '\'' | '\\') || c.is_whitespace() {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
