//! The nearest name to a mistyped one.

/// Finds the candidate with the fewest edits from `name`; none when all are too far to be a typing mistake.
/// Swapped neighbours count as one edit, letter case as none.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(64).collect();
    let limit = (name.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate))
        .filter(|(edits, candidate)| *edits <= limit || prefix(&name, candidate))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Whether `name` is the unfinished beginning of `candidate`.
fn prefix(name: &[char], candidate: &str) -> bool {
    name.len() >= 3 && candidate.to_lowercase().chars().zip(name).filter(|(a, b)| a == *b).count() == name.len()
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, want: Option<&str>) {
        assert_eq!(nearest(name, ["theme", "resize", "resume", "max_turns", "permissions"]), want, "{name}");
    }

    #[test]
    fn typing_mistakes_are_found_and_strangers_are_not() {
        check("tehme", Some("theme"));
        check("THEME", Some("theme"));
        check("resum", Some("resume"));
        check("max-turns", Some("max_turns"));
        check("perm", Some("permissions"));
        check("colour", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }
}
