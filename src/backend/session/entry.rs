//! The schema of `transcript.jsonl`: one entry a line, versioned, never rewritten.

mod decided;
mod ledger;
mod request;
mod task;
mod version;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::{Attachment, BlobId, CallId, Effect, Kind, Message, Usage};
use crate::permission::Mode;
use crate::stdx::path_text;
use crate::thinking::Level;

pub use self::decided::{Decided, Decider, Lasts, Matter};
pub use self::ledger::{Ledger, Line, Sort, Who};
pub use self::request::{By, CacheBreak, Cause, Frozen, Segment, Sent};
pub use self::task::{AgentReport, Begun, Ended, Status, TaskSort};
pub use self::version::{Along, Content, Replaced, Version};

/// Version that this program writes.
pub const VERSION: u32 = 1;

/// Position of an entry in its log, from 0. Entries refer to one another by it.
pub type Seq = u64;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub v: u32,
    pub seq: Seq,
    /// UUID v7.
    pub id: String,
    /// RFC 3339, UTC, milliseconds.
    pub ts: String,
    #[serde(flatten)]
    pub kind: EntryKind,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "entries pass through one at a time; the context keeps messages, not entries"
)]
pub enum EntryKind {
    /// Always the first line.
    Header(Header),
    Message {
        message: Arc<Message>,
    },
    /// Text of a reply that is still streaming; the next reply `message` replaces all parts before it.
    ReplyPart {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
    /// The parts since the last message are of an answer that was asked again: out of the context, still on screen.
    ReplyDiscarded {
        reason: String,
    },
    /// A turn began with the prompt that follows.
    TurnStarted,
    /// A turn ended; how, and what it cost.
    TurnEnded {
        end: String,
        #[serde(default)]
        usage: Usage,
    },
    /// A file's content before the first change of this turn; no `blob` if it did not exist.
    FileBefore {
        path: PathBuf,
        blob: Option<BlobId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// How many of the folders above it did not exist either.
        #[serde(default, skip_serializing_if = "is_zero")]
        folders: usize,
    },
    /// A file's content after a change of ours, written before the change is made: whether it was, the file tells.
    /// No `blob` if it is removed.
    FileAfter {
        path: PathBuf,
        blob: Option<BlobId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// What exists beside the file meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temporary: Option<PathBuf>,
    },
    /// What the `FileAfter` or `FilesRestored` before it announced for these files was written to its end, or not begun:
    /// nothing half written can stand there.
    FilesSettled {
        #[serde(with = "path_text::list")]
        paths: Vec<PathBuf>,
    },
    /// A file's content after hooks had seen our change of it. They made it, or someone who saved meanwhile.
    FileTouched {
        path: PathBuf,
        blob: Option<BlobId>,
    },
    /// Files are restored as they were before entry `to`, by undo or rewind, or forward again by redo. Written before
    /// it is done.
    FilesRestored {
        to: Seq,
        how: Restore,
        #[serde(default)]
        files: Vec<Replaced>,
        /// Files that were left as they are: what was to become of them can be tried again.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "path_text::list")]
        refused: Vec<PathBuf>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        along: Vec<Along>,
    },
    /// What is in effect of all file changes before it, in place of entries that were lost.
    FilesKnown {
        changes: serde_json::Value,
    },
    /// A command is about to run. What it changes is recorded in the session's folder under this name; without one, undo
    /// cannot see it.
    CommandRan {
        call: CallId,
        command: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        /// The sub-agent that ran it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A recorded command has ended, and changed files: which, and how, is in its record.
    CommandChanged {
        record: String,
        files: u64,
        /// What undo cannot restore of it, for people; empty where the record is complete.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missed: Vec<String>,
    },
    /// The user's own `!` line is about to run: undo and rewind go back to before it, as to before a prompt.
    ShellStarted {
        command: String,
    },
    /// The user's own `!` line and what it wrote, for the screen: the model reads of it in a message. No code when it was
    /// killed.
    ShellRan {
        command: String,
        output: String,
        code: Option<i32>,
    },
    ToolResultsCleared {
        calls: Vec<CallId>,
        /// Where each content was saved, in the order of `calls`.
        persisted: Vec<Option<PathBuf>>,
    },
    BlocksClipped {
        blocks: Vec<ClippedBlock>,
    },
    ToolResultsArchived {
        calls: Vec<CallId>,
        digest: Arc<Message>,
    },
    CompactBoundary(Boundary),
    BoundaryUndone {
        // The line has a `seq` of its own.
        #[serde(rename = "boundary")]
        seq: Seq,
    },
    /// Messages, read-file state and todos as they were before entry `to`.
    Rewind {
        to: Seq,
    },
    Title {
        title: String,
    },
    ModeChanged {
        mode: Mode,
    },
    ModelChanged {
        model: String,
        /// Only for the run of a skill: a session that crashed in it continues with the model before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        borrowed: bool,
    },
    /// The user chose how hard the model thinks in this session, or (none) took the choice back.
    ThinkingChanged {
        level: Option<Level>,
    },
    /// A rule that the user granted for this session.
    Granted {
        rule: String,
    },
    /// The user took a rule of this session back.
    Revoked {
        rule: String,
    },
    /// A skill began to run, by the user or by the model; the message with its text follows.
    SkillInvoked {
        name: String,
        /// Its file; none for one of the program's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
        /// What relative paths in it start from, where reading was opened for the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened: Option<PathBuf>,
        /// As the model read it, to be restored after a compaction.
        content: String,
    },
    /// The user trusts the folder; used from here on.
    Trusted {
        folder: PathBuf,
    },
    /// A hook with `once` ran: it does not run again in this session.
    HookRan {
        hook: String,
    },
    /// The session's plan is `<home>/plans/<slug>.md`. A fork has the entry of the session that it came from, too, and
    /// gets a plan of its own.
    PlanSlug {
        session: String,
        slug: String,
    },
    /// A request that the user did not type, or the cost of one try that was thrown away.
    Spent {
        what: String,
        model: String,
        usage: Usage,
    },
    /// What every request begins with from here on, also after a resume.
    Frozen(Arc<Frozen>),
    /// A request of the conversation is about to be sent.
    Request(Arc<Sent>),
    /// Its answer was dearer than it should have been.
    CacheBroke(CacheBreak),
    /// Something that waited for a word was decided.
    Decided(Decided),
    /// A command or a sub-agent is about to continue in the background: how it ends is owed to the model.
    TaskBegun(Begun),
    /// It has ended. A message with `Effect::Told` pays what is owed.
    TaskEnded(Ended),
    /// This log is a sub-agent's; written once, before its first prompt.
    AgentStarted {
        agent: String,
        description: String,
    },
    /// Written by a newer version; kept in the file, without effect here.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub session: String,
    pub cwd: PathBuf,
    /// Program version that wrote the header.
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    Undo,
    Redo,
    Rewind,
    /// Hunks that the user reverted.
    Review,
}

/// What is said about a command whose changes stay.
pub fn not_undone(command: &str) -> String {
    format!("not undone: changes made by {command}")
}

/// The names of files that were put back, those nearest to the top first: a command may have changed thousands.
pub fn some_of(mut names: Vec<String>) -> String {
    const NAMED: usize = 8;
    names.sort_by_key(|name| name.matches('/').count());
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}

impl Restore {
    /// What is said when no file changed.
    pub fn nothing(self) -> &'static str {
        match self {
            Restore::Undo => "Nothing was undone",
            Restore::Redo => "Nothing was redone",
            Restore::Rewind => "No file was restored",
            Restore::Review => "Nothing was reverted",
        }
    }
}

/// One block that reads as head, marker, tail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClippedBlock {
    pub seq: Seq,
    pub block: usize,
    /// Bytes kept at each end; on character boundaries.
    pub head: usize,
    pub tail: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persisted: Option<PathBuf>,
}

/// Everything before `keep_from` leaves the context, what an earlier boundary brought included; opening, summary and
/// attachments enter and stand before what is kept. Todos and the working directory stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Boundary {
    pub trigger: Trigger,
    /// `session_memory`, `remote`, `full` or `trim`.
    pub tier: String,
    pub pre_tokens: u64,
    pub post_tokens: u64,
    pub keep_from: Seq,
    /// Environment and memory files, read again; the user's own earlier messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opening: Vec<Arc<Message>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<Message>>,
    #[serde(default)]
    pub attachments: Vec<Arc<Message>>,
    /// Files that the attachments hold whole, so that they count as seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Results among what is kept that are put behind a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<Archived>,
    /// What is remembered of everything before it, kept or not.
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub ledger: Arc<Ledger>,
    #[serde(default)]
    pub receipt: Receipt,
}

/// Results that keep their place with a stub, and what follows the last of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    pub calls: Vec<CallId>,
    pub digest: Arc<Message>,
}

/// Who asked for a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    Manual,
    /// A plan was approved with a fresh context.
    Plan,
    #[default]
    Auto,
}

/// What a compaction did, for people.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub tier: String,
    pub trigger: Trigger,
    /// Tokens of the request before and after.
    pub before: u64,
    pub after: u64,
    pub kept: Kept,
    pub dropped: Dropped,
    /// What its own requests cost.
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub millis: u64,
    /// What PreCompact hooks added to the instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
}

/// What stays in the context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Messages that stay word for word.
    pub messages: u64,
    /// Files that were read again.
    pub files: u64,
    pub todos: u64,
    pub plan: bool,
    pub skills: u64,
    /// Commands in the background of which it was told how they are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks: usize,
}

/// What left it, by kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    pub prompts: u64,
    pub replies: u64,
    pub results: u64,
    pub others: u64,
}

impl Dropped {
    pub fn messages(&self) -> u64 {
        self.prompts + self.replies + self.results + self.others
    }
}

impl Boundary {
    /// What enters with it, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.opening.iter().chain(&self.summary).chain(&self.attachments)
    }

    /// What stands for that which left, for people: the summary, and the note of a trim.
    pub fn told(&self) -> String {
        let note = |message: &&Arc<Message>| matches!(message.kind, Kind::Attachment(Attachment::Trimmed { .. }));
        let notes = self.attachments.iter().filter(note).map(|note| note.attached());
        self.summary.iter().map(|summary| summary.text()).chain(notes).collect::<Vec<_>>().join("\n\n")
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_many_files_are_named() {
        let names = |names: &[&str]| some_of(names.iter().map(ToString::to_string).collect());
        assert_eq!(names(&[]), "");
        assert_eq!(names(&["b", "a"]), "b, a");
        let many: Vec<String> = (1..=40).map(|nth| format!("target/debug/{nth}")).chain(["AGENTS.md".into()]).collect();
        let told = some_of(many);
        assert!(told.starts_with("AGENTS.md, target/debug/1, ") && told.ends_with(" and 33 more"), "{told}");
    }
}
