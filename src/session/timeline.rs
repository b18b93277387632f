//! Which entries of a log count now. Rewind and undone boundaries change that; nothing else does.
//!
//! Every entry follows another one: mostly the one before it in the file, after a rewind the one that stood before its
//! target. The entries that count are found by following these links back from the last one.

use std::collections::HashSet;

use super::entry::{EntryKind, Seq};

/// What an entry does to the order of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Plain,
    Boundary { keep_from: Seq },
    Undone { boundary: Seq },
}

#[derive(Debug, Clone, Copy)]
struct Node {
    step: Step,
    seq: Seq,
    /// Highest `seq` up to here: ascending even where a damaged log is not.
    high: Seq,
    /// The last entry that counts once this one was read.
    head: Option<usize>,
}

/// The entries of a log in file order, by index. Adding one is O(1).
#[derive(Debug, Default, Clone)]
pub(super) struct Timeline(Vec<Node>);

/// What the projection is folded from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Live {
    /// The last boundary that counts.
    pub(super) boundary: Option<usize>,
    /// Entries from the boundary's `keep_from` on, oldest first, without boundaries that were undone.
    pub(super) entries: Vec<usize>,
    /// Entries before those that a boundary put away, newest first, are `back` from this one on.
    pub(super) kept: usize,
}

impl Timeline {
    /// Adds the next entry of the log. True when the projection must be folded anew.
    pub(super) fn push(&mut self, seq: Seq, kind: &EntryKind) -> bool {
        let index = self.0.len();
        let high = self.0.last().map_or(seq, |node| node.high.max(seq));
        let (step, head) = match kind {
            EntryKind::Rewind { to } => {
                let first = self.0.partition_point(|node| node.high < *to);
                (Step::Plain, first.checked_sub(1).and_then(|before| self.0[before].head))
            }
            // A boundary cannot keep less than nothing of what stood before it.
            EntryKind::CompactBoundary(boundary) => {
                (Step::Boundary { keep_from: boundary.keep_from.min(high) }, Some(index))
            }
            EntryKind::BoundaryUndone { seq } => (Step::Undone { boundary: *seq }, Some(index)),
            _ => (Step::Plain, Some(index)),
        };
        self.0.push(Node { step, seq, high, head });
        matches!(kind, EntryKind::Rewind { .. } | EntryKind::CompactBoundary(_) | EntryKind::BoundaryUndone { .. })
    }

    /// Whether an entry did more to the order than to follow the one before it.
    pub(super) fn orders(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|node| node.step != Step::Plain || node.head != Some(index))
    }

    /// The entries that count, newest first, those that a boundary put away included.
    pub(super) fn back(&self) -> impl Iterator<Item = usize> {
        self.back_from(self.0.len())
    }

    /// As `back`, for the log as it stood before entry `end`.
    fn back_from(&self, end: usize) -> impl Iterator<Item = usize> {
        let head_before = |index: usize| index.checked_sub(1).and_then(|before| self.0[before].head);
        std::iter::successors(head_before(end), move |index| head_before(*index))
    }

    pub(super) fn live(&self) -> Live {
        let mut undone = HashSet::new();
        let (mut boundary, mut keep) = (None, 0);
        let mut entries = Vec::new();
        let mut ignored = Vec::new();
        for index in self.back() {
            let node = self.0[index];
            // An earlier boundary keeps nothing that is newer than itself, so it cannot raise `keep` from here on.
            if node.high < keep {
                break;
            }
            match node.step {
                Step::Undone { boundary } => {
                    undone.insert(boundary);
                }
                Step::Boundary { .. } if undone.contains(&node.seq) => ignored.push(index),
                Step::Boundary { keep_from } => {
                    boundary = boundary.or(Some(index));
                    keep = keep.max(keep_from);
                }
                Step::Plain => {}
            }
            entries.push(index);
        }
        entries.retain(|index| self.0[*index].high >= keep);
        let kept = entries.len();
        entries.retain(|index| !ignored.contains(index));
        entries.reverse();
        Live { boundary, entries, kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::entry::Boundary;

    enum E {
        M,
        /// Boundary that keeps from there on.
        B(Seq),
        /// Undo of the boundary at.
        U(Seq),
        R(Seq),
    }
    use E::*;

    fn timeline(entries: &[E]) -> Timeline {
        let mut timeline = Timeline::default();
        for (seq, entry) in entries.iter().enumerate() {
            let kind = match *entry {
                M => EntryKind::TurnStarted,
                B(keep_from) => EntryKind::CompactBoundary(Boundary {
                    trigger: Default::default(),
                    tier: String::new(),
                    pre_tokens: 0,
                    post_tokens: 0,
                    keep_from,
                    opening: vec![],
                    summary: None,
                    attachments: vec![],
                    effects: vec![],
                    archived: None,
                    receipt: Default::default(),
                }),
                U(seq) => EntryKind::BoundaryUndone { seq },
                R(to) => EntryKind::Rewind { to },
            };
            timeline.push(seq as Seq, &kind);
        }
        timeline
    }

    fn check(entries: &[E], boundary: Option<usize>, live: &[usize]) {
        let found = timeline(entries).live();
        assert_eq!((found.boundary, found.entries.as_slice()), (boundary, live));
    }

    #[test]
    fn what_counts() {
        check(&[], None, &[]);
        check(&[M, M], None, &[0, 1]);
        // One boundary; one that keeps all; one that keeps nothing.
        check(&[M, M, B(1), M], Some(2), &[1, 2, 3]);
        check(&[M, M, B(0), M], Some(2), &[0, 1, 2, 3]);
        check(&[M, M, B(9), M], Some(2), &[2, 3]);
        // Boundary right after boundary, and one that reaches back past an earlier one's cut.
        check(&[M, M, B(2), B(3)], Some(3), &[3]);
        check(&[M, M, M, B(2), M, B(1)], Some(5), &[2, 3, 4, 5]);
        // Undo of a boundary; of the earlier of two; of both; of none.
        check(&[M, M, B(2), M, U(2)], None, &[0, 1, 3, 4]);
        check(&[M, M, B(2), M, B(3), U(2)], Some(4), &[3, 4, 5]);
        check(&[M, M, B(2), M, B(3), U(4)], Some(2), &[2, 3, 5]);
        check(&[M, M, B(2), M, B(3), U(4), U(2)], None, &[0, 1, 3, 5, 6]);
        check(&[M, U(7), U(0)], None, &[0, 1, 2]);
        // Rewind; to the start; past the end; twice.
        check(&[M, M, M, R(1), M], None, &[0, 4]);
        check(&[M, M, R(0), M], None, &[3]);
        check(&[M, R(9), M], None, &[0, 2]);
        check(&[M, M, M, R(2), M, R(1), M], None, &[0, 6]);
        check(&[M, M, R(1), M, R(3), M], None, &[0, 5]);
        // Rewind across a boundary, then as if it had never been; back into the time after a rewind.
        check(&[M, M, B(1), M, R(1), M], None, &[0, 5]);
        check(&[M, M, B(1), M, R(3), M], Some(2), &[1, 2, 5]);
        // Rewind across an undo: the boundary counts again. Undo after the rewind that removed it: nothing.
        check(&[M, M, B(2), M, U(2), M, R(4), M], Some(2), &[2, 3, 7]);
        check(&[M, M, B(2), M, R(1), U(2), M], None, &[0, 5, 6]);
        check(&[M, R(1), R(1), R(2)], None, &[0]);
    }
}
