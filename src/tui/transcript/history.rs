//! Cells of a resumed session, made of its messages: they tell less than events did.

use std::time::Duration;

use super::Transcript;
use crate::message::{Kind, Media, Message};
use crate::protocol::{HistoryItem, Receipt};
use crate::session::entry::Seq;
use crate::tui::cell::Cell;
use crate::tui::cell::call::Shell;
use crate::tui::cell::compaction::Compacted;

/// One line for an attachment.
pub(super) fn media(media: &Media) -> String {
    format!("{}, {} kB", media.media_type, media.bytes.div_ceil(1000))
}

impl Transcript {
    /// The receipt of a compaction.
    pub(super) fn compacted(&mut self, receipt: &Receipt, summary: &str) {
        self.push(Cell::Compacted(Compacted { receipt: receipt.clone(), summary: summary.to_owned() }));
    }

    /// Folds what is shown of a resumed session.
    pub(super) fn fold_history(&mut self, history: &[HistoryItem], now: Duration) {
        history.iter().for_each(|item| self.fold_item(item, now));
        self.abandon_running();
    }

    pub(super) fn fold_item(&mut self, item: &HistoryItem, now: Duration) {
        self.logged = true;
        match item {
            HistoryItem::Message { seq, message } => self.fold_message(*seq, message, now),
            HistoryItem::Shell { command, output, code } => {
                let done = Some((output.clone(), *code));
                self.push(Cell::Shell(Shell { command: command.clone(), since: now, done }));
            }
            HistoryItem::Compacted { receipt, summary } => self.compacted(receipt, summary),
            HistoryItem::Note { text } => self.aside(text.clone()),
        }
        self.logged = false;
    }

    /// Folds a message of which nothing was told before; its calls count as begun.
    pub(super) fn fold_message(&mut self, seq: Seq, message: &Message, now: Duration) {
        self.message(seq, message, now);
        if message.kind == Kind::Reply {
            for call in message.calls() {
                self.start_call(call.id.clone(), call.name.clone(), call.title(), now);
            }
        }
    }
}
