//! What an attachment is: told by who makes it, kept in the log, never read back from its words.

use serde::{Deserialize, Serialize};

use super::{Block, Kind, Message, Role};

const OPEN: &str = "<system-reminder>\n";
const CLOSE: &str = "\n</system-reminder>";

/// What a message brings that neither the user typed nor the model answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// The environment, and from byte `memory` of its text the memory files.
    Opening { memory: usize },
    /// Memory files of a folder that was read in.
    Memory,
    /// Which skills there are, or what changed about them.
    SkillList,
    /// What plan mode asks for.
    Plan,
    /// What the user reverted of the model's changes, or said of them.
    Review,
    /// Recalls open todos.
    Todos,
    /// What a hook of the user printed.
    Hook,
    /// A file that the user or a skill named, or why it could not be read.
    File,
    /// A `!` line of the user's own, and what it printed.
    Shell,
    /// What a compaction put back: a file, todos or a skill.
    Restored,
    /// Earlier prompts that a compaction kept, from byte `quotes` of its text.
    Prompts { quotes: usize },
    /// What must not be forgotten of all that a compaction replaced, told from the log; a newer one takes its place.
    Ledger,
    /// How much was dropped without a summary, by all trims together.
    Trimmed { prompts: u64, replies: u64, results: u64 },
    /// How many old results were cleared; a newer one takes its place.
    Cleared,
    /// Asks for something beside the conversation, in a request that the log never holds.
    Instruction,
    /// Any other note for the model.
    Reminder,
    /// Of a log that does not say it. Loading puts one of the others in its place.
    #[serde(rename = "attachment")]
    Untold,
}

impl Message {
    /// Text for the model that the conversation does not show.
    pub fn attachment(what: Attachment, text: &str) -> Message {
        let text = format!("{OPEN}{}{CLOSE}", text.trim_end());
        Message { user_visible: false, ..Message::plain(Role::User, Kind::Attachment(what), vec![Block::text(text)]) }
    }

    /// A note for the model of no kind of its own.
    pub fn reminder(text: &str) -> Message {
        Message::attachment(Attachment::Reminder, text)
    }

    /// The text that `attachment` was given.
    pub fn attached(&self) -> String {
        let text = self.text();
        let inner = text.strip_prefix(OPEN).unwrap_or(&text);
        inner.strip_suffix(CLOSE).unwrap_or(inner).to_owned()
    }
}
