//! Cells of a resumed session: messages tell less than events did, the rest is read from the calls' arguments.

use std::time::Duration;

use serde_json::Value;

use super::Transcript;
use crate::message::{Kind, Media, ToolCall};
use crate::protocol::HistoryItem;
use crate::tui::cell::Cell;
use crate::tui::cell::call::Shell;

/// Arguments that say best what a call is about, the first that is there.
const TITLES: &[&str] =
    &["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt", "name"];

/// One line for a call whose tool is not at hand.
pub(super) fn title(call: &ToolCall) -> String {
    let named = TITLES.iter().find_map(|key| call.input.get(key).and_then(Value::as_str));
    named.and_then(|text| text.lines().next()).unwrap_or_default().to_string()
}

/// One line for an attachment.
pub(super) fn media(media: &Media) -> String {
    format!("{}, {} kB", media.media_type, media.bytes.div_ceil(1000))
}

impl Transcript {
    /// Folds what is shown of a resumed session.
    pub(super) fn fold_history(&mut self, history: &[HistoryItem], now: Duration) {
        for item in history {
            match item {
                HistoryItem::Message { message, .. } => {
                    self.message(message, now);
                    if message.kind == Kind::Reply {
                        for call in message.calls() {
                            self.start_call(call.id.clone(), call.name.clone(), &title(call), now);
                        }
                    }
                }
                HistoryItem::Shell { command, output, code } => {
                    let done = Some((output.clone(), *code));
                    self.push(Cell::Shell(Shell { command: command.clone(), since: now, done }));
                }
                HistoryItem::Note { text } => self.aside(text.clone()),
            }
        }
        self.abandon_running();
    }
}
