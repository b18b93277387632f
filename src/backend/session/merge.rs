//! Brings two changes of one file together, line by line.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

/// How long the search for the shortest difference may take; what is found then is right, but longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a file becomes when `base` was changed to `ours` and to `theirs`; each `None` if there is no file. `None`: the
/// changes meet, or touch, so that one of them would lose lines.
pub(super) fn merge(base: Option<&[u8]>, ours: Option<&[u8]>, theirs: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
    if ours == theirs || theirs == base {
        return Some(ours.map(<[u8]>::to_vec));
    }
    if ours == base {
        return Some(theirs.map(<[u8]>::to_vec));
    }
    let (base, ours, theirs) = (base?, ours?, theirs?);
    if [base, ours, theirs].iter().any(|bytes| bytes.contains(&0)) {
        return None;
    }
    let [base, ours, theirs] = [base, ours, theirs].map(lines);
    let (mut left, mut right) =
        (hunks(&base, &ours).into_iter().peekable(), hunks(&base, &theirs).into_iter().peekable());
    let (mut merged, mut at) = (Vec::new(), 0);
    loop {
        let (hunk, lines) = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if touch(&one.old, &other.old) => {
                if one.old != other.old || ours[one.new.clone()] != theirs[other.new.clone()] {
                    return None;
                }
                right.next();
                (left.next()?, &ours)
            }
            (Some(one), Some(other)) if other.old.start < one.old.start => (right.next()?, &theirs),
            (Some(_), _) => (left.next()?, &ours),
            (None, Some(_)) => (right.next()?, &theirs),
        };
        merged.extend_from_slice(&base[at..hunk.old.start].concat());
        merged.extend_from_slice(&lines[hunk.new].concat());
        at = hunk.old.end;
    }
    merged.extend_from_slice(&base[at..].concat());
    Some(Some(merged))
}

/// Whether what became of `left` is what a formatter makes of the lines that we put in the place of some of `before`: the same
/// words in another layout, and no line of anybody else's is touched.
pub(super) fn only_formats(before: &[u8], left: &[u8], found: &[u8]) -> bool {
    if [before, left, found].iter().any(|bytes| bytes.contains(&0)) {
        return false;
    }
    let [before, left, found] = [before, left, found].map(lines);
    let ours = hunks(&before, &left);
    // What became of each of our changes, however many pieces it was touched in: lines may have moved within it.
    let (mut was, mut is) = (vec![Vec::new(); ours.len()], vec![Vec::new(); ours.len()]);
    for theirs in hunks(&left, &found) {
        let holds = |ours: &Hunk| ours.new.start <= theirs.old.start && theirs.old.end <= ours.new.end;
        let Some(at) = ours.iter().position(holds) else { return false };
        was[at].extend_from_slice(&left[theirs.old]);
        is[at].extend_from_slice(&found[theirs.new]);
    }
    was.iter().zip(&is).all(|(was, is)| same_words(was, is))
}

/// Whether lines differ in nothing but their order, or white space, line breaks, the kind of quotes, commas and semicolons.
fn same_words(was: &[&[u8]], is: &[&[u8]]) -> bool {
    let words = |lines: &[&[u8]]| -> Vec<Vec<u8>> {
        let bare = lines.iter().map(|line| {
            line.iter().copied().filter(|byte| !byte.is_ascii_whitespace() && !b"'\"`,;".contains(byte)).collect()
        });
        bare.filter(|line: &Vec<u8>| !line.is_empty()).collect()
    };
    let (mut was, mut is) = (words(was), words(is));
    was.concat() == is.concat() || {
        was.sort_unstable();
        is.sort_unstable();
        was == is
    }
}

/// Where `found` and `wanted` first changed the same lines of `left`: the lines of `found`, as an editor counts them.
pub(super) fn meeting(left: &[u8], found: &[u8], wanted: &[u8]) -> Option<String> {
    let [left, found, wanted] = [left, found, wanted].map(lines);
    let ours = hunks(&left, &wanted);
    let theirs =
        hunks(&left, &found).into_iter().find(|theirs| ours.iter().any(|ours| touch(&ours.old, &theirs.old)))?;
    let (first, last) = (theirs.new.start + 1, theirs.new.end);
    Some(if first < last { format!("lines {first} to {last}") } else { format!("line {first}") })
}

/// Lines that take the place of others.
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

pub(super) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

pub(super) fn hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let deadline = Instant::now().checked_add(PATIENCE);
    for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
        let (tag, old, new) = op.as_tag_tuple();
        match hunks.last_mut() {
            _ if tag == DiffTag::Equal => {}
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => hunks.push(Hunk { old, new }),
        }
    }
    hunks
}

/// Whether nothing of the base lies between two changes.
fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_do_not_touch_come_together() {
        /// `-`: no file; `!`: they meet.
        fn check(base: &str, ours: &str, theirs: &str, want: &str) {
            let file = |text: &'static str| (text != "-").then_some(text.as_bytes());
            let leak = |text: &str| file(String::leak(text.replace(' ', "\n")));
            for (one, other) in [(ours, theirs), (theirs, ours)] {
                let got = merge(leak(base), leak(one), leak(other));
                let got = match &got {
                    None => "!".to_owned(),
                    Some(None) => "-".to_owned(),
                    Some(Some(bytes)) => String::from_utf8_lossy(bytes).replace('\n', " "),
                };
                assert_eq!(got, want, "{base} | {one} | {other}");
            }
        }
        check("a b c d e ", "A b c d e ", "a b c d E ", "A b c d E ");
        check("a b c d e ", "a b c d e f ", "0 a b c d e ", "0 a b c d e f ");
        check("a b c d e ", "b c d e ", "a b c d ", "b c d ");
        check("a b c ", "a B c ", "a B c ", "a B c ");
        check("a b c d ", "a B c D ", "a B c d ", "a B c D ");
        // The same place, or side by side: someone's lines would be lost, or their order guessed.
        check("a b c ", "a B c ", "a 2 c ", "!");
        check("a b c d ", "a B c d ", "a b C d ", "!");
        check("a b ", "a x b ", "a y b ", "!");
        check("a b c ", "a c ", "a B c ", "!");
        check("a b", "a b c", "A b", "!");
        check("a b c", "a b C", "A b c", "A b C");
        check("a\0 b c ", "A\0 b c ", "a\0 b C ", "!");
        // Files that come and go.
        check("-", "a ", "a ", "a ");
        check("-", "a ", "b ", "!");
        check("-", "-", "a ", "a ");
        check("a ", "-", "a ", "-");
        check("a ", "-", "b ", "!");
        check("a ", "-", "-", "-");
        check("", "a ", "b ", "!");
    }
}
