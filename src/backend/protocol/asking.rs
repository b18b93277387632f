//! What the engine asks, and what people answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AskId;
use super::task::Asker;
use crate::message::CallId;
use crate::message::FileDiff;

/// Fields of inputs that hold what an edit writes.
const WRITTEN: [&str; 3] = ["content", "new_string", "new_source"];

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub question: Question,
    /// The sub-agent that asks; none for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Question {
    /// May this call run?
    Permission {
        call: CallId,
        tool: String,
        /// One line: path, command, address.
        title: String,
        input: Value,
        diff: Option<FileDiff>,
        /// Why it is asked, part by part.
        reasons: Vec<String>,
        /// What "don't ask again" would save; empty when nothing fitting can be suggested.
        suggestions: Vec<String>,
        /// It is an edit that mode `edits` would let run: `Answer::AllEdits` is possible.
        all_edits: bool,
        /// What is suggested holds for this session at most, wherever the answer wants to keep it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        session_only: bool,
        /// It is a command that would run in the sandbox: `Answer::Unconfined` is possible.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        confined: bool,
        /// From now on it, and all that the sandbox holds like it, could run without a question: `Answer::Unasked` is possible.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unasked: bool,
        /// What would let it do what the sandbox kept it from the last time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preset: Option<PresetGrant>,
    },
    /// May this command connect there? Answered like a permission.
    Connect {
        /// The call that runs the command.
        call: CallId,
        command: String,
        /// Host and port.
        place: String,
        reasons: Vec<String>,
        /// What "don't ask again" would save.
        suggestions: Vec<String>,
        /// The hosts that the command's program needs, as one grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preset: Option<PresetGrant>,
    },
    /// Use what is new in what this folder brings along? What the user agreed to earlier is kept whatever the answer; what
    /// is gone was agreed to and no longer exists.
    Trust {
        folder: PathBuf,
        /// Not the folder is asked about but this plugin of the user's, by id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plugin: Option<String>,
        uses: Vec<String>,
        kept: Vec<String>,
        gone: Vec<String>,
    },
    /// First use of a local server that was found.
    LocalServer { url: String, model: String },
    /// The same call kept returning the same result: continue?
    Repeated { tool: String, title: String, times: u32 },
    /// The disk is full, so what a command is about to change there cannot be saved: continue without undo, or stop it?
    Unrecorded { path: PathBuf },
    /// Another process writes this session: fork it, or read only?
    Locked { session: String },
    /// A memory file imports a file that is not read silently.
    Import {
        file: PathBuf,
        import: PathBuf,
        /// Why it is not read silently.
        #[serde(default)]
        reason: String,
    },
    /// The model wants to plan before it changes anything: yes or no.
    EnterPlan { reason: Option<String> },
    /// The plan is written: carry it out? Answered by `Answer::Approve`, or `No` to keep planning. The file may be edited
    /// meanwhile: the content at the time of the answer is what gets approved.
    Plan {
        /// The plan as the file has it, Markdown.
        plan: String,
        path: PathBuf,
    },
    /// One to four questions of the model's own. Answered by `Answer::Chosen`, or `No` when the user declines.
    Choices { questions: Vec<Choices> },
}

impl Question {
    /// The one text that an edit writes, with the name of its field in the input; none where there is no such text.
    pub fn written(&self) -> Option<(&'static str, &str)> {
        let Question::Permission { input, diff: Some(_), .. } = self else { return None };
        WRITTEN.into_iter().find_map(|field| Some((field, input.get(field)?.as_str()?)))
    }
}

/// Rules that are offered together: the hosts of a well-known program, or what the sandbox denied a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetGrant {
    /// Whose hosts they are: `cargo`. Empty: what the sandbox denied.
    pub name: String,
    pub rules: Vec<String>,
}

/// A question of the model's own: one of its options, several, or words of the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    /// A word or two that tells the questions apart.
    pub header: String,
    pub question: String,
    /// More than one option may be chosen.
    pub multi: bool,
    pub options: Vec<ChoiceOption>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChoiceOption {
    /// What is chosen, in a few words.
    pub label: String,
    /// What it means or leads to.
    pub description: String,
}

/// How an approved plan is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Edits run without a question.
    AcceptEdits,
    /// Each edit asks.
    AskEach,
    /// Each edit asks, and the conversation restarts with the plan.
    FreshContext,
}

/// Where a granted rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    Session,
    /// `.claude/settings.local.json` of the project.
    Project,
    /// `<home>/settings.json`.
    User,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    Yes,
    /// Yes, and outside of the sandbox; a no where the question does not offer it.
    Unconfined,
    /// Yes, and what the sandbox holds runs without a question from now on; a no where the question does not offer it.
    Unasked,
    /// Yes, and the session continues in mode `edits`; a no where the question does not offer it.
    AllEdits,
    /// Yes, and these rules from now on.
    Always {
        rules: Vec<String>,
        scope: GrantScope,
    },
    /// For an edit: the text that it writes is to be this one. The question comes again with the change that makes.
    Rewrite {
        text: String,
    },
    /// For a call: its arguments are to be these, and then this answer counts.
    Changed {
        input: Value,
        then: Box<Answer>,
    },
    /// No; the text, if any, tells the agent what to do instead. Without text the turn stops.
    No {
        feedback: Option<String>,
    },
    /// No, because no person could be asked; the text tells the agent.
    Nobody {
        told: String,
    },
    /// For `Question::Locked`.
    Fork,
    ReadOnly,
    /// For `Question::Plan`.
    Approve {
        how: Approval,
    },
    /// For `Question::Choices`: for each question the labels that were chosen, or the user's own words.
    Chosen {
        answers: Vec<Vec<String>>,
    },
}

impl Answer {
    /// What counts of it, and the arguments that a call is to have.
    pub fn parted(self) -> (Option<Answer>, Option<Value>) {
        match self {
            Answer::Changed { input, then } => (Some(*then), Some(input)),
            answer => (Some(answer), None),
        }
    }
}
