//! A tool call on its way: ready for a decision, permitted, done. And whose calls they are.

use std::path::PathBuf;

use crate::agent::mailbox::Mailbox;
use crate::agent::parent_child::Note;
use crate::hooks::Verdict;
use crate::message::{ToolCall, ToolResult};
use crate::permission::{Access, Consent, Permit};
use crate::session::recorded::Finished;
use crate::tools::{After, Call, Undoing};

/// Most characters of a text of the user's that the model is told of.
const TOLD: usize = 4_000;

/// Who is asked where the rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// The user, who sees these calls: the model's own, and what skills want run. What hooks add joins the conversation.
    Person,
    /// Nobody: a summarizer looks something up.
    Nobody,
}

/// Who hears of a call while it runs.
#[derive(Clone, Copy)]
pub(super) enum Heard<'a> {
    /// Its beginning and what it writes.
    Wholly(&'a Mailbox),
    /// What it writes: something else shows that it began.
    Output(&'a Mailbox),
    Nobody,
}

/// A call that fits its tool, and waits for a decision.
pub(super) struct Ready {
    pub(super) call: ToolCall,
    pub(super) work: Call,
    /// What it touches, as rules name it.
    pub(super) access: Access,
    /// The file or folder that it names, links followed: what was decided about is what is read or written, or nothing is.
    pub(super) target: Option<PathBuf>,
    /// What PreToolUse hooks said of it.
    pub(super) said: Option<Verdict>,
    /// What the user had it write in the place of the model's text.
    pub(super) reworded: Option<String>,
}

impl Ready {
    pub(super) fn new(call: ToolCall, work: Call, access: Access) -> Ready {
        Ready { target: access.target(), call, work, access, said: None, reworded: None }
    }

    /// What the model is told of a change that the user has edited.
    pub(super) fn told(&self) -> Option<String> {
        let text = self.reworded.as_ref()?;
        let shown: String = text.chars().take(TOLD).collect();
        let more = if shown.len() < text.len() { "\n… (read the file for the rest)" } else { "" };
        Some(format!(
            "The user edited this change before approving it. Keep their version. What was written:\n{shown}{more}"
        ))
    }

    pub(super) fn with(self, permit: Permit, consent: Consent) -> Permitted {
        Permitted { ready: self, permit, consent, undoing: Undoing::Off }
    }

    /// What the call would do, as far as one line says it.
    pub(super) fn subject(&self) -> String {
        match &self.access {
            Access::Shell { command, .. } => command.to_string(),
            _ if self.reworded.is_some() => {
                format!("{} {}, as you edited it", self.call.name, self.work.title())
            }
            _ => format!("{} {}", self.call.name, self.work.title()).trim().to_owned(),
        }
    }
}

/// A call that runs.
pub(super) struct Permitted {
    pub(super) ready: Ready,
    pub(super) permit: Permit,
    pub(super) consent: Consent,
    pub(super) undoing: Undoing,
}

impl Permitted {
    /// What the log must know before it runs.
    pub(super) fn change(&self) -> Option<Note> {
        let Permitted { ready: Ready { call, access, .. }, permit, .. } = self;
        match access {
            Access::Write { path } => Some(Note::Before(permit.target().unwrap_or(path).to_owned())),
            Access::Shell { command, .. } if !permit.reads() => {
                let (call, command) = (call.id.clone(), command.to_string());
                let record = match &self.undoing {
                    Undoing::Recorded(record) => Some(record.clone()),
                    Undoing::Off | Undoing::Compared(_) => None,
                };
                Some(Note::Command { call, command, record, agent: None })
            }
            _ => None,
        }
    }
}

/// A call that ran, or will not.
pub(super) struct Done {
    pub(super) result: ToolResult,
    /// What is to be done once the result is in the log.
    pub(super) after: Vec<After>,
    /// What a command changed.
    pub(super) changed: Option<Finished>,
    /// How long it ran, in milliseconds.
    pub(super) millis: u64,
}

impl From<ToolResult> for Done {
    fn from(result: ToolResult) -> Done {
        Done { result, after: Vec::new(), changed: None, millis: 0 }
    }
}
