//! What of a file can be reverted on its own: the hunks between what it holds, and what it would hold without some of the
//! agent's changes. Both sides have everybody else's lines, so no choice of hunks loses one of them.

use std::path::PathBuf;

use super::entry::Seq;
use super::merge::{hunks, lines};
use crate::protocol::{Author, Span};

/// Changes that are reviewed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Where the turn begins; none for all of the session.
    pub turn: Option<Seq>,
    /// How its prompt begins; empty for all of the session.
    pub prompt: String,
    pub files: Vec<Sides>,
}

/// What a file holds; `None` where there is no file.
pub type Content = Option<Vec<u8>>;

/// A file without the changes, and as it is. The error says why it cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    pub path: PathBuf,
    pub both: Result<(Content, Content), String>,
    /// The commands that changed it.
    pub by: Vec<Author>,
}

/// The places where two contents differ. A file that comes or goes, or is not text, differs as a whole.
pub fn spans(without: Option<&[u8]>, now: Option<&[u8]>) -> Vec<Span> {
    let (Some(old), Some(new)) = (without, now) else { return vec![whole(without, now)] };
    if [old, new].iter().any(|bytes| bytes.contains(&0)) {
        return vec![whole(without, now)];
    }
    let span =
        |hunk: super::merge::Hunk| Span { old: (hunk.old.start, hunk.old.end), new: (hunk.new.start, hunk.new.end) };
    hunks(&lines(old), &lines(new)).into_iter().map(span).collect()
}

fn whole(without: Option<&[u8]>, now: Option<&[u8]>) -> Span {
    let count = |bytes: Option<&[u8]>| lines(bytes.unwrap_or_default()).len();
    Span { old: (0, count(without)), new: (0, count(now)) }
}

/// `now` with some places as they are in `without`; the outer `None`: there are no such places.
pub(super) fn take_back(without: Option<&[u8]>, now: Option<&[u8]>, spans: &[Span]) -> Option<Option<Vec<u8>>> {
    let (Some(old), Some(new)) = (without, now) else {
        return (spans == [whole(without, now)]).then(|| without.map(<[u8]>::to_vec));
    };
    let (old, new) = (lines(old), lines(new));
    let mut spans = spans.to_vec();
    spans.sort_by_key(|span| span.new);
    let (mut out, mut at) = (Vec::new(), 0);
    for Span { old: taken, new: left } in spans {
        out.extend_from_slice(&new.get(at..left.0)?.concat());
        out.extend_from_slice(&old.get(taken.0..taken.1)?.concat());
        at = left.1.max(left.0);
    }
    out.extend_from_slice(&new.get(at..)?.concat());
    Some(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with a line for each word; `-` means no file. The hunks by number, from 0.
    #[test]
    fn hunks_are_taken_back_one_by_one() {
        fn check(without: &str, now: &str, count: usize, pick: &[usize], want: &str) {
            let text = |text: &str| (text != "-").then(|| text.replace(' ', "\n").into_bytes());
            let (without, now) = (text(without), text(now));
            let all = spans(without.as_deref(), now.as_deref());
            assert_eq!(all.len(), count);
            let picked: Vec<Span> = pick.iter().map(|at| all[*at]).collect();
            let got = take_back(without.as_deref(), now.as_deref(), &picked);
            assert_eq!(got, Some(text(want)), "{pick:?}");
        }
        check("a b c d e ", "A b c d E ", 2, &[0], "a b c d E ");
        check("a b c d e ", "A b c d E ", 2, &[1], "A b c d e ");
        check("a b c d e ", "A b c d E ", 2, &[1, 0], "a b c d e ");
        check("a b c d e ", "A b c d E ", 2, &[], "A b c d E ");
        check("a b c ", "a x b c y ", 2, &[0], "a b c y ");
        check("a b c ", "c ", 1, &[0], "a b c ");
        check("a b c d ", "b d ", 2, &[1], "b c d ");
        check("a b", "a b c", 1, &[0], "a b");
        check("-", "a b ", 1, &[0], "-");
        check("a b ", "-", 1, &[0], "a b ");
        check("a\0 b c ", "A\0 b C ", 1, &[0], "a\0 b c ");
    }

    #[test]
    fn places_that_are_not_there_are_none() {
        let check = |span: Span| assert_eq!(take_back(Some(b"a\n"), Some(b"b\n"), &[span]), None, "{span:?}");
        check(Span { old: (0, 2), new: (0, 1) });
        check(Span { old: (0, 1), new: (0, 2) });
        check(Span { old: (1, 0), new: (0, 1) });
        let one = Span { old: (0, 1), new: (0, 1) };
        assert_eq!(take_back(Some(b"a\n"), Some(b"b\n"), &[one, one]), None);
        assert_eq!(take_back(None, Some(b"b\n"), &[]), None);
    }
}
