//! What the transcript says of compaction: receipts and refusals.

use super::note::Note;
use crate::compact::receipt;
use crate::protocol::{Compaction, FailureReason};

/// The row of a step; none for those that the spinner tells.
pub fn note(step: &Compaction) -> Option<Note> {
    Some(Note::Aside(match step {
        Compaction::Started { .. } | Compaction::Progress { .. } => return None,
        Compaction::Completed { receipt, .. } => receipt::words(receipt),
        Compaction::Failed { reason: FailureReason::Interrupted, .. } => "Compaction canceled.".into(),
        Compaction::Failed { text, .. } => format!("Compaction failed: {text}"),
        Compaction::MicroApplied { removed_results, saved_tokens } => {
            format!("{removed_results} old tool results cleared · about {saved_tokens} tokens saved")
        }
        Compaction::SessionMemoryApplied { saved_tokens, summary_tokens } => {
            format!("notes of the session used as summary · {summary_tokens} tokens, {saved_tokens} saved")
        }
        Compaction::ThresholdExceeded { tokens, target } => {
            format!("the conversation is still large: {tokens} tokens, {target} wanted")
        }
    }))
}
