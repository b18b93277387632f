//! What a boundary leaves of a context, without reading the log again.

use super::{Context, Item, Parts, Reader};
use crate::message::{Effect, StopReason, ToolResult};
use crate::session::entry::{Boundary, EntryKind, Seq};

impl Context {
    /// The context behind a new boundary: the same as a fold of the log would be, at the cost of what stays. None where
    /// only the log can tell, as with calls that are cut from their results.
    pub(in crate::session) fn behind(&self, seq: Seq, boundary: &Boundary) -> Option<Context> {
        let stays = |index: usize| index >= self.lead && self.items[index].seq >= boundary.keep_from;
        let first = (self.lead..self.items.len()).find(|index| stays(*index)).unwrap_or(self.items.len());
        // The log knows more where numbers went astray, where a reply never ended, where results answered nothing, where a
        // digest stands for results that leave, and where memory files came with reads.
        let (leaving, staying) = self.items.split_at(first);
        let known = |item: &Item| item.kept.is_none() && item.original.stop != Some(StopReason::Interrupted);
        let told = (first..self.items.len()).all(stays)
            && staying.iter().all(known)
            && leaving.iter().all(|item| item.kept.is_none() && item.digests.is_empty())
            && self.parts == Parts::default()
            && !self.memory.any_leave();
        told.then_some(())?;
        let mut behind = Context::new(self.cwd.clone());
        behind.todos.clone_from(&self.todos);
        behind.begin(seq, boundary);
        for item in staying {
            behind.message(item.seq, &item.original);
            let now = behind.items.last_mut().filter(|now| now.kept.is_none())?;
            now.shown.clone_from(&item.shown);
            now.digests.clone_from(&item.digests);
            now.tokens.clone_from(&item.tokens);
        }
        for item in staying {
            for result in item.original.results() {
                let (Some(then), Some(now)) = (self.calls.get(&result.id), behind.calls.get_mut(&result.id)) else {
                    continue;
                };
                now.tokens.clone_from(&then.tokens);
                now.replaced = then.replaced;
                if then.replaced {
                    behind.unread(result);
                }
            }
        }
        behind.calls.forget_replaced();
        behind.apply(seq, &EntryKind::CompactBoundary(boundary.clone()));
        Some(behind)
    }

    /// A result no longer shows what it read: a file whose only surviving reads are gone is not known as read anymore.
    pub(super) fn unread(&mut self, result: &ToolResult) {
        for effect in &result.effects {
            let Effect::Seen { path, .. } = effect else { continue };
            let Some(reads) = self.reads.get_mut(path) else { continue };
            reads.retain(|(reader, _)| *reader != Reader::Call(result.id.clone()));
            match reads.last() {
                Some((_, sha256)) => self.seen.insert(path.clone(), sha256.clone()),
                None => {
                    self.reads.remove(path);
                    self.seen.remove(path)
                }
            };
        }
    }
}
