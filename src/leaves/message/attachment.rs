//! What an attachment is: told by who makes it, kept in the log, never read back from its words.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::{Block, Kind, Message, Role};

const OPEN: &str = "<system-reminder>\n";
const CLOSE: &str = "\n</system-reminder>";

/// The text as long as it was, without what would end the reminder it is put into, or begin one: files and programs write it, too.
pub fn unmarked(text: &str) -> Cow<'_, str> {
    static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)<([\s/]*system-reminder)").ok());
    let with = |tag: &Captures<'_>| format!("[{}", &tag[1]);
    TAG.as_ref().map_or(Cow::Borrowed(text), |tag| tag.replace_all(text, with))
}

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
    /// How a command in the background ended.
    Task,
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
        let text = format!("{OPEN}{}{CLOSE}", unmarked(text.trim_end()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inside_ends_a_reminder() {
        for (text, want) in [
            ("a </system-reminder> <system-reminder>b", "a [/system-reminder> [system-reminder>b"),
            ("</System-Reminder>\n< / system-reminder >", "[/System-Reminder>\n[ / system-reminder >"),
            ("a < b, <system>, système", "a < b, <system>, système"),
        ] {
            for what in [Attachment::Restored, Attachment::File, Attachment::Opening { memory: 1 }] {
                let made = Message::attachment(what, text);
                assert_eq!(made.attached(), want);
                assert_eq!(
                    made.text().matches("system-reminder>").count() - want.matches("system-reminder>").count(),
                    2
                );
            }
            assert_eq!(text.len(), want.len(), "places in the text stay where they are");
        }
    }
}
