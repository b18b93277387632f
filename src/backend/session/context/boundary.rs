//! What a boundary leaves of a context, without reading the log again.

use super::Context;
use super::items::Item;
use crate::message::StopReason;
use crate::session::entry::{Boundary, EntryKind, Seq};

impl Context {
    /// The context behind a new boundary: the same as a fold of the log would be, at the cost of what stays. None where
    /// only the log can tell, as with calls that are cut from their results.
    pub(in crate::session) fn behind(&self, seq: Seq, boundary: &Boundary) -> Option<Context> {
        let (items, lead) = (&self.items.list, self.items.lead);
        let stays = |index: usize| index >= lead && items[index].seq >= boundary.keep_from;
        let first = (lead..items.len()).find(|index| stays(*index)).unwrap_or(items.len());
        // The log knows more where numbers went astray, where a reply never ended, where results answered nothing, where a
        // digest stands for results that leave, and where memory files came with reads.
        let (leaving, staying) = items.split_at(first);
        let known = |item: &Item| item.kept.is_none() && item.original.stop != Some(StopReason::Interrupted);
        let told = (first..items.len()).all(stays)
            && staying.iter().all(known)
            && leaving.iter().all(|item| item.kept.is_none() && item.digests.is_empty())
            && self.parts.is_empty()
            && !self.reads.any_memory_leaves();
        told.then_some(())?;
        let mut behind = Context::new(self.cwd.clone());
        behind.todos.clone_from(&self.todos);
        behind.begin(seq, boundary);
        for item in staying {
            behind.message(item.seq, &item.original);
            let now = behind.items.list.last_mut().filter(|now| now.kept.is_none())?;
            now.shown.clone_from(&item.shown);
            now.digests.clone_from(&item.digests);
            now.tokens.clone_from(&item.tokens);
        }
        for item in staying {
            for result in item.original.results() {
                let (Some(then), Some(now)) =
                    (self.items.calls.get(&result.id), behind.items.calls.get_mut(&result.id))
                else {
                    continue;
                };
                now.tokens.clone_from(&then.tokens);
                now.replaced = then.replaced;
                if then.replaced {
                    behind.reads.unread(result);
                }
            }
        }
        behind.items.calls.forget_replaced();
        behind.apply(seq, &EntryKind::CompactBoundary(boundary.clone()));
        Some(behind)
    }
}
