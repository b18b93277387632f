//! Carries plans out: writes what leaves the context to files, then the entry that lets it leave.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{micro, trim};
use crate::message::{Block, Outcome, ToolResult};
use crate::session::entry::{ClippedBlock, EntryKind, Seq};
use crate::session::store::Store;
use crate::session::{self, Session};

/// What clearing came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleared {
    pub results: usize,
    /// Tokens by estimate.
    pub tokens: u64,
    /// Results that stay since their file could not be written.
    pub kept: usize,
}

/// What a trim came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmed {
    pub cleared: Cleared,
    pub clipped: usize,
    pub dropped: usize,
    /// The boundary's entry, when rounds were dropped.
    pub boundary: Option<Seq>,
}

/// What happens to a result whose file cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    Keep,
    /// It has to go all the same: the log has it.
    Clear,
}

/// Clears results. One whose content could not be saved stays.
///
/// # Errors
/// The log cannot be written; nothing was cleared.
pub fn clear(session: &mut Session, plan: &micro::Plan) -> Result<Cleared, session::Error> {
    clear_results(session, &plan.clear, Unsaved::Keep)
}

fn clear_results(session: &mut Session, clear: &[micro::Clear], unsaved: Unsaved) -> Result<Cleared, session::Error> {
    let (mut calls, mut persisted, mut done) = (Vec::new(), Vec::new(), Cleared::default());
    for clear in clear {
        let large = clear.persist.then(|| session.context().result_of(&clear.call)).flatten();
        let saved = large.map_or(Ok(None), |held| save(session.store(), held.result));
        let path = match saved {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(%error, call = %clear.call, "a result could not be saved");
                if unsaved == Unsaved::Keep {
                    done.kept += 1;
                    continue;
                }
                None
            }
        };
        done.results += 1;
        done.tokens += clear.tokens;
        calls.push(clear.call.clone());
        persisted.push(path);
    }
    if !calls.is_empty() {
        session.append(EntryKind::ToolResultsCleared { calls, persisted })?;
    }
    Ok(done)
}

/// Writes a result's whole text into the session's folder; its file. What was cut already has one, which holds more.
fn save(store: &Store, result: &ToolResult) -> io::Result<Option<PathBuf>> {
    for extension in ["txt", "json"] {
        let path = store.spill_path(result.id.as_str(), extension);
        if path.exists() {
            return Ok(Some(path));
        }
    }
    let text = result.text();
    let structured = result.outcome == Outcome::Ok && serde_json::from_str::<serde_json::Value>(&text).is_ok();
    write(store, result.id.as_str(), if structured { "json" } else { "txt" }, &text).map(Some)
}

/// The file that a block is saved in when it is clipped, as far as it is known before: a result that is JSON has the longer
/// extension.
pub(super) fn file_of(store: &Store, block: &Block, place: (Seq, usize)) -> Option<PathBuf> {
    match block {
        Block::ToolResult(result) => Some(store.spill_path(result.id.as_str(), "json")),
        Block::Text { .. } => Some(store.spill_path(&message_name(place), "txt")),
        _ => None,
    }
}

fn message_name((seq, block): (Seq, usize)) -> String {
    format!("message_{seq}_{block}")
}

fn write(store: &Store, name: &str, extension: &str, text: &str) -> io::Result<PathBuf> {
    let (path, mut file) = store.spill(name, extension)?;
    match file.write_all(text.as_bytes()) {
        Ok(()) => Ok(path),
        Err(error) => {
            // Half a file would pass for the whole.
            let _ = std::fs::remove_file(&path);
            Err(error)
        }
    }
}

/// Carries a trim out, whatever can be saved of what leaves.
///
/// # Errors
/// The log cannot be written; what was done until then stays done.
pub fn trim(session: &mut Session, plan: &trim::Plan, before: u64) -> Result<Trimmed, session::Error> {
    let cleared = clear_results(session, &plan.clear, Unsaved::Clear)?;
    if !plan.clip.is_empty() {
        let blocks = plan.clip.iter().map(|clip| saved(session, clip)).collect();
        session.append(EntryKind::BlocksClipped { blocks })?;
    }
    let mut boundary = None;
    if let Some(drop) = &plan.drop {
        let mut drop = drop.clone();
        drop.pre_tokens = before;
        boundary = Some(session.append(EntryKind::CompactBoundary(drop))?);
    }
    Ok(Trimmed { cleared, clipped: plan.clip.len(), dropped: plan.dropped, boundary })
}

/// The clip with the file that holds the whole block, if it could be written.
fn saved(session: &Session, clip: &ClippedBlock) -> ClippedBlock {
    let shown = session.context().shown().find(|shown| !shown.lead && shown.seq == clip.seq);
    let saved = match shown.and_then(|shown| shown.message.blocks.get(clip.block)) {
        Some(Block::ToolResult(result)) => save(session.store(), result).ok().flatten(),
        Some(Block::Text { text, .. }) => {
            write(session.store(), &message_name((clip.seq, clip.block)), "txt", text).ok()
        }
        _ => None,
    };
    ClippedBlock { persisted: saved, ..clip.clone() }
}
