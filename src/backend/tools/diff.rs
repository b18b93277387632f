//! The change to one file as a capped unified diff.

use std::path::Path;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::message::FileDiff;
use crate::stdx::ansi::visible;

/// Most lines and bytes of a diff; the rest is counted.
const LINES: usize = 600;
const BYTES: usize = 64 * 1024;

/// After this long a coarser diff will do.
const DEADLINE: Duration = Duration::from_millis(300);

/// Compares a file's content before and after; none before is a new file.
pub fn of(path: &Path, before: Option<&[u8]>, after: &[u8]) -> FileDiff {
    let old = String::from_utf8_lossy(before.unwrap_or_default());
    let new = String::from_utf8_lossy(after);
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(old.as_ref(), new.as_ref());
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let unified = cap(&diff.unified_diff().context_radius(3).to_string());
    FileDiff { path: visible(&path.display().to_string()), unified, added, removed, created: before.is_none() }
}

/// Cuts a diff to what a person would read.
fn cap(unified: &str) -> String {
    let end = unified.floor_char_boundary(BYTES);
    let end = unified[..end].match_indices('\n').nth(LINES - 1).map_or(end, |(at, _)| at + 1);
    if end >= unified.len() {
        return visible(unified);
    }
    let more = unified[end..].lines().count();
    let kept = visible(unified[..end].trim_end_matches('\n'));
    format!("{kept}\n… {more} more lines\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, after: &str, want: (&str, u32, u32, bool)) {
        let diff = of(Path::new("/a"), before.map(str::as_bytes), after.as_bytes());
        assert_eq!((diff.unified.as_str(), diff.added, diff.removed, diff.created), want);
    }

    #[test]
    fn unified() {
        check(None, "a\n", ("@@ -0,0 +1 @@\n+a\n", 1, 0, true));
        check(Some("a\nb\n"), "a\nc\n", ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", 1, 1, false));
        check(Some("a\n"), "a\n", ("", 0, 0, false));
        check(Some(""), "\x1b[31m\r\n", ("@@ -0,0 +1 @@\n+\u{241b}[31m\n", 1, 0, false));
    }

    #[test]
    fn capped() {
        let diff = of(Path::new("/a"), None, "x\n".repeat(5000).as_bytes());
        assert_eq!((diff.added, diff.unified.lines().count()), (5000, LINES + 1));
        assert!(diff.unified.ends_with("… 4401 more lines\n"), "{}", &diff.unified[diff.unified.len() - 40..]);
    }
}
