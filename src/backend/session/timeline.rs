//! Which entries of a log count now. Rewind and undone boundaries change that; nothing else does.
//!
//! Every entry follows another one: mostly the one before it in the file, after a rewind the one that was before its
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
    /// Its place in the log.
    index: usize,
    step: Step,
    seq: Seq,
    /// Highest `seq` up to here: ascending even where a damaged log is not.
    high: Seq,
    /// The last entry that counts once this one was read.
    head: Option<usize>,
}

/// The entries of a log in file order, by index. Adding one is O(1).
#[derive(Debug, Default, Clone)]
pub(super) struct Timeline {
    /// Those that do not just follow the one before them with the next `seq`.
    nodes: Vec<Node>,
    len: usize,
}

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
    /// Adds the next entry of the log. True if the projection must be folded from scratch.
    pub(super) fn push(&mut self, seq: Seq, kind: &EntryKind) -> bool {
        let index = self.len;
        let last = index.checked_sub(1).map(|last| self.node(last));
        let high = last.map_or(seq, |node| node.high.max(seq));
        let (step, head) = match kind {
            EntryKind::Rewind { to } => (Step::Plain, self.last_below(*to).and_then(|before| self.node(before).head)),
            // A boundary cannot keep less than nothing of what was before it.
            EntryKind::CompactBoundary(boundary) => {
                (Step::Boundary { keep_from: boundary.keep_from.min(high) }, Some(index))
            }
            EntryKind::BoundaryUndone { seq } => (Step::Undone { boundary: *seq }, Some(index)),
            _ => (Step::Plain, Some(index)),
        };
        let follows = last.is_some_and(|last| last.seq.checked_add(1) == Some(seq));
        if !follows || step != Step::Plain || head != Some(index) {
            self.nodes.push(Node { index, step, seq, high, head });
        }
        self.len += 1;
        matches!(kind, EntryKind::Rewind { .. } | EntryKind::CompactBoundary(_) | EntryKind::BoundaryUndone { .. })
    }

    /// Whether an entry did more to the order than to follow the one before it.
    pub(super) fn orders(&self, index: usize) -> bool {
        let node = self.node(index);
        node.step != Step::Plain || node.head != Some(index)
    }

    /// An entry of the log; only those that there are have one.
    fn node(&self, index: usize) -> Node {
        let at = self.nodes.partition_point(|node| node.index <= index);
        match at.checked_sub(1).map(|at| self.nodes[at]) {
            Some(node) if node.index < index => {
                let seq = node.seq + (index - node.index) as u64;
                Node { index, step: Step::Plain, seq, high: node.high.max(seq), head: Some(index) }
            }
            Some(node) => node,
            None => Node { index, step: Step::Plain, seq: 0, high: 0, head: None },
        }
    }

    /// The last entry before which, itself included, every `seq` is below `to`.
    fn last_below(&self, to: Seq) -> Option<usize> {
        let at = self.nodes.partition_point(|node| node.high < to).checked_sub(1)?;
        let (node, end) = (self.nodes[at], self.nodes.get(at + 1).map_or(self.len, |next| next.index));
        // Within a run the numbers go up by one.
        let below = usize::try_from(to - node.seq).unwrap_or(usize::MAX);
        Some((node.index.saturating_add(below)).min(end) - 1)
    }

    /// The entries that count, newest first, those that a boundary put away included.
    pub(super) fn back(&self) -> impl Iterator<Item = usize> {
        self.back_from(self.len)
    }

    /// As `back`, for the log as it was before entry `end`.
    fn back_from(&self, end: usize) -> impl Iterator<Item = usize> {
        let head_before = |index: usize| index.checked_sub(1).and_then(|before| self.node(before).head);
        std::iter::successors(head_before(end), move |index| head_before(*index))
    }

    pub(super) fn live(&self) -> Live {
        let mut undone = HashSet::new();
        let (mut boundary, mut keep) = (None, 0);
        let mut entries = Vec::new();
        let mut ignored = Vec::new();
        for index in self.back() {
            let node = self.node(index);
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
        entries.retain(|index| self.node(*index).high >= keep);
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
                    ledger: Default::default(),
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

    #[test]
    fn numbers_with_gaps_and_numbers_that_went_back() {
        for (to, live) in [(0, vec![7]), (4, vec![0, 1, 7]), (6, vec![0, 1, 2, 7]), (7, vec![0, 1, 2, 3, 4, 7])] {
            let mut timeline = Timeline::default();
            [0, 1, 5, 6, 3, 7].into_iter().for_each(|seq| _ = timeline.push(seq, &EntryKind::TurnStarted));
            timeline.push(8, &EntryKind::Rewind { to });
            timeline.push(9, &EntryKind::TurnStarted);
            assert_eq!(timeline.live().entries, live, "{to}");
            assert_eq!((0..9).filter(|index| timeline.orders(*index)).collect::<Vec<_>>(), [6], "{to}");
        }
    }
}
