//! Op and Event: all that front ends and engine say to each other. Plain data, serialisable.

mod asking;
mod compaction;
pub mod report;
mod review;
mod rows;
pub mod task;
mod thinking;
mod turn;
mod typed;

pub use asking::{Answer, Approval, Ask, ChoiceOption, Choices, GrantScope, PresetGrant, Question};
pub use compaction::{Compacted, Compaction, FailureReason, Fullness, Receipt, Trigger, UsageInfo};

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::review::{Author, ChangedBy, Hunk, Judged, Reviewed, Scope, Span, Verdict, authors, restored_line};
pub use self::rows::{
    Access, AgentLog, Changes, Earlier, FoundList, FoundRow, MemoryRow, ModelList, ModelRow, Part, PromptRow,
    ProviderRow, Queued, ResourceRow, RuleRow, SessionRow, SettingKind, SettingList, SettingPlace, SettingRow, Word,
};
use crate::commands::report::SkillRow;
use crate::commands::{Builtin, Registry};
use crate::hooks::Report;
use crate::message::{CallId, Message, Todo};
use crate::permission::Mode;
use crate::plugins;
use crate::sandbox;
use crate::session::entry::{Begun, Ended, Restore, Seq};

pub use crate::commands::ListKind;
use crate::provider::key::Secret;
use crate::stdx::outside;
use crate::thinking::{Level, Override};
pub use task::{Asker, Task};
pub use thinking::{Thinking, ThinkingInfo};
pub use turn::{ModelShare, Turn, TurnEnd};
pub use typed::{BETWEEN, Fold, Picture, Typed};

/// Names a question of the engine until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskId(pub u64);

/// Names a queued prompt until it is delivered or withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueueId(pub u64);

/// When a prompt reaches a busy agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// At the next tool boundary.
    Steer,
    /// After the turn.
    AfterTurn,
}

/// What a front end asks of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// Starts a turn, or joins the queue of a busy agent. `attachments` are files to send along (`@path`, pasted images);
    /// `thinking` counts for this turn alone, in the place of the flag.
    Prompt {
        text: String,
        attachments: Vec<PathBuf>,
        delivery: Delivery,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking: Option<Override>,
        /// Bytes of the text that nobody typed, such as a paste.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        data: Vec<Range<usize>>,
    },
    /// A `!` line: runs at once as the user's own command; line and output join the context.
    Shell {
        command: String,
    },
    /// A local command that acts on the session, without its slash.
    Command {
        name: String,
        args: String,
    },
    Answer {
        id: AskId,
        answer: Answer,
    },
    /// What the program around us answers to `Event::Call`, or why it does not.
    Return {
        id: AskId,
        answer: outside::Answer,
    },
    /// Stops the turn, the countdown of a retry, or a running `!` line.
    Interrupt,
    /// Lets commands that the model waits for continue in the background.
    Background,
    /// Takes a queued prompt back; it comes with `Event::Queue` and is gone from there.
    Unqueue {
        id: QueueId,
    },
    SetMode {
        mode: Mode,
    },
    /// Chooses how hard the model thinks in this session, from its next request on; none leaves it to the configuration.
    SetThinking {
        level: Option<Level>,
    },
    /// Goes back to before the message at `to`.
    Rewind {
        to: Seq,
        what: RewindWhat,
    },
    /// Takes hunks of the agent's changes back, of one turn or of all, and tells the model of them at its next step.
    Review {
        turn: Option<Seq>,
        verdicts: Vec<Verdict>,
    },
    /// Keeps what was typed for the history of the project.
    Remember(Typed),
    /// Asks for a list; `Event::Listed` brings it.
    List {
        what: ListKind,
    },
    /// Searches all sessions; `Listed::Found` brings what has the words.
    Find {
        words: String,
    },
    /// Asks for what a sub-agent of this session did, by its id; `Listed::Agent` brings it.
    Agent {
        id: String,
    },
    /// Asks for a part of the session's log; `Listed::Earlier` brings it.
    Earlier {
        part: Part,
    },
    /// Keeps a key for a provider, in the credentials file; `Listed::Models` says what came of it. Nothing repeats the key.
    StoreKey {
        provider: String,
        key: Secret,
    },
    /// Changes a setting, or takes it out of the file where there is no `value`; `Listed::Settings` says what came of it.
    Set {
        key: String,
        value: Option<String>,
        place: SettingPlace,
    },
    /// Looks for a local model server again; `Listed::Models` comes with what was found.
    FindServer,
    /// Changes the servers of the Model Context Protocol of this session; `Event::Done` tells the end, and before it what
    /// was found wanting.
    Server {
        change: ServerChange,
    },
    /// Looks for changed skills; `Event::Commands` comes when there are any.
    Commands,
    /// Ends the session; the engine writes what is pending and closes its side.
    Shutdown,
}

impl Op {
    /// Whether `Event::Done` tells its end.
    pub fn is_work(&self) -> bool {
        matches!(
            self,
            Op::Prompt { .. } | Op::Command { .. } | Op::Shell { .. } | Op::Rewind { .. } | Op::Server { .. }
        )
    }

    /// A command of the program.
    pub fn builtin(builtin: Builtin, args: impl Into<String>) -> Op {
        Op::Command { name: builtin.name().to_owned(), args: args.into() }
    }
}

/// What becomes of servers of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerChange {
    /// Ends the connection and begins another one.
    Reconnect { name: String },
    /// Switches one on or off, for this session.
    Switch { name: String, on: bool },
    /// These, as `.mcp.json` has them, beside those of files; they replace those that were given this way before.
    Given { servers: serde_json::Value },
}

/// Rows of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", content = "rows", rename_all = "snake_case")]
pub enum Listed {
    Sessions(Vec<SessionRow>),
    Found(FoundList),
    Models(ModelList),
    Settings(SettingList),
    Rules(Vec<RuleRow>),
    Memory(Vec<MemoryRow>),
    Prompts(Vec<PromptRow>),
    History(Vec<Typed>),
    Skills(Vec<SkillRow>),
    Changes(Changes),
    /// A sub-agent's whole log, oldest first; empty if there is no such log.
    Agent(AgentLog),
    Earlier(Earlier),
    /// What servers let the user attach, as it is now.
    Resources(Vec<ResourceRow>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindWhat {
    Code,
    Conversation,
    Both,
}

/// What the engine tells every front end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session begins, or another one took its place: front ends start over from it.
    Session(SessionInfo),
    Turn(Turn),
    /// More of what is under way. Text and thinking are in the log already, so they may be shown for good.
    Delta(Delta),
    Item(Item),
    Ask(Ask),
    /// Answered elsewhere, or no longer needed; also of a call.
    AskClosed {
        id: AskId,
    },
    /// The program around us is asked; `Op::Return` answers. Only a front end that has brought hooks or servers is.
    Call {
        id: AskId,
        call: outside::Call,
    },
    Mode(ModeChange),
    Thinking(Thinking),
    Usage(UsageInfo),
    /// The conversation is made to fit the window.
    Compaction(Compaction),
    /// A failed request is asked again in `delay_ms`; what had arrived of its answer is discarded.
    Retrying {
        attempt: u32,
        of: u32,
        delay_ms: u64,
        reason: String,
    },
    Todos {
        items: Vec<Todo>,
    },
    /// All prompts that wait, oldest first.
    Queue {
        items: Vec<Queued>,
    },
    /// Something for the user that is not a failure, as Markdown.
    Notice {
        text: String,
    },
    /// What a command that looks has found.
    Report(report::Report),
    /// The turn or the op failed; the text names the fix. What the user had typed comes back in `restore`.
    Error {
        text: String,
        restore: Option<String>,
    },
    /// A hook ran.
    Hook {
        ran: Report,
    },
    /// The provider and model that will be asked next.
    Model(ModelInfo),
    /// What front ends look like and listen to, where it is not what they began with.
    Interface(Interface),
    /// All commands, built-ins and skills, as they are now.
    Commands {
        registry: Registry,
    },
    /// A sub-agent made progress.
    Task(Task),
    /// All commands in the background that run now, oldest first.
    Background {
        running: Vec<Begun>,
        /// The one that has just ended, where that is the news.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<Ended>,
    },
    /// What `Op::List` asked for.
    Listed(Listed),
    /// An op was served to its end, or refused: a prompt, a command, a `!` line, a rewind. A prompt that
    /// steered a turn ends with that turn.
    Done {
        op: Op,
    },
    /// The engine has ended.
    Closed,
}

/// What became of the permission mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModeChange {
    /// This mode holds from now on.
    Changed { mode: Mode },
    /// Planning began; the plan is to be written there.
    PlanEntered { plan_file: PathBuf },
    /// Planning ended: by approval of the plan, or without one.
    PlanExited { approved: bool },
}

/// All that a front end needs to draw a session from its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    pub id: String,
    pub cwd: PathBuf,
    pub title: Option<String>,
    pub mode: Mode,
    pub model: ModelInfo,
    /// Names of the tools that the model has.
    pub tools: Vec<String>,
    /// What to show of a resumed session, oldest first: the last turns.
    pub history: Vec<HistoryItem>,
    /// Messages before `history` that are shown on demand.
    pub older: u64,
    /// Where the log is; the transcript view reads older turns from it.
    pub log: PathBuf,
    /// The user opened it to read only: prompts are refused.
    pub read_only: bool,
    /// How far commands are confined.
    pub sandbox: sandbox::Status,
    /// Servers of the Model Context Protocol, as they were then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<report::ServerRow>,
    #[serde(default)]
    pub plugins: plugins::Summary,
    /// Kinds of sub-agents that the model may launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output_style: String,
}

/// One shown thing of a resumed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HistoryItem {
    Message {
        seq: Seq,
        message: Arc<Message>,
    },
    /// The user's own `!` line.
    Shell {
        command: String,
        output: String,
        code: Option<i32>,
    },
    /// The conversation was compacted there.
    Compacted {
        receipt: Receipt,
        summary: String,
    },
    /// A row that says what left the conversation, or similar.
    Note {
        text: String,
    },
}

/// What a terminal shows and listens to: `[tui]`, `[keys]` and `[status_line]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub theme: String,
    pub notifications: bool,
    pub highlight: bool,
    pub reduced_motion: bool,
    /// The prompt is edited with vim's keys.
    pub vim: bool,
    /// A new width clears the scrollback, and the session is drawn again.
    pub rebuild: bool,
    pub keys: BTreeMap<String, Vec<String>>,
    pub status_line: StatusLine,
}

/// The user's own status line: `[status_line]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusLine {
    /// Empty: the program's own line.
    pub command: String,
    /// Columns left free on both sides.
    pub padding: u16,
    /// Runs again after so many seconds, also when nothing has changed; 0: never.
    pub refresh_s: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    pub provider: String,
    pub model: String,
    pub window: u64,
    /// False when the window is the stated default of an unknown model.
    pub known: bool,
    /// Still looking for a local server.
    pub probing: bool,
    /// Asked on this machine, where reading a prompt takes its time.
    #[serde(default)]
    pub local: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    /// So many more bytes of a call's arguments; for a counter, not for show.
    ToolArgs {
        name: String,
        bytes: u64,
    },
    ToolOutput {
        call: CallId,
        text: String,
    },
    /// What had been streamed of this reply is out of the conversation.
    Discarded {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// A message is in the log for good. A reply replaces the deltas since the last item; a result ends its call.
    Message { seq: Seq, message: Arc<Message> },
    /// A call begins to run.
    CallStarted { call: CallId, tool: String, title: String },
    /// The user's `!` line began.
    ShellStarted { command: String },
    /// The user's `!` line ended.
    ShellDone { command: String, output: String, code: Option<i32> },
    /// Files were put back.
    FilesRestored {
        how: Restore,
        /// The first line of the prompt whose changes were undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
        restored: Vec<PathBuf>,
        /// Those of them that keep what somebody else changed in between.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merged: Vec<PathBuf>,
        /// Files that were left as they are; a line each that begins with the path.
        refused: Vec<String>,
        /// Of the restored files those that commands had changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by: Vec<ChangedBy>,
        unseen: Vec<String>,
    },
    /// The conversation went back to before the message at `to`; `prompt` is what the user had typed there.
    Rewound { to: Seq, prompt: String },
    /// What left the conversation, and why.
    Note { text: String },
}
