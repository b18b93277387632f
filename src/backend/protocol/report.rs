//! What commands that look have found. `crate::report` puts it into words; programs read it as it is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::compaction::{Compacted, Receipt};
use super::rows::{Changes, MemoryRow, ModelList, RuleRow};
use super::{SessionRow, ThinkingInfo};
use crate::agents::AgentRow;
use crate::commands::Registry;
use crate::commands::report::SkillList;
use crate::hooks;
use crate::message::{Todo, Usage};
use crate::permission::{Behavior, Mode};
use crate::plugins;
use crate::sandbox;
use crate::session::entry::{CacheBreak, TaskSort};

/// The answer of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", content = "found", rename_all = "snake_case")]
pub enum Report {
    Commands(Registry),
    Models(ModelList),
    Thinking(ThinkingInfo),
    Rules(Vec<RuleRow>),
    Verdict(Verdict),
    Sessions(Vec<SessionRow>),
    Window(Window),
    Cost(Cost),
    Broken(Broken),
    Changes(Changes),
    Todos(Vec<Todo>),
    Tasks(Vec<TaskRow>),
    Settings(Settings),
    SettingChanged(SettingChanged),
    Skills(SkillList),
    Doctor(Vec<Finding>),
    /// The file that was written.
    BugReport(PathBuf),
    Hooks(Vec<hooks::Row>),
    Plugins(Vec<plugins::Row>),
    Status(Status),
    Sandbox(Box<SandboxReport>),
    Agents(Agents),
    Servers(Vec<ServerRow>),
    ServersChanged(ServersChanged),
    Memory(Vec<MemoryRow>),
    Plan(PlanMode),
    Freed(Freed),
    /// The session that a person worked in has ended.
    Ended(Ended),
}

/// What came of servers that were given in the course of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersChanged {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Names, and why they do not run.
    pub errors: Vec<(String, String)>,
}

/// A server of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRow {
    pub name: String,
    pub state: ServerState,
    /// `stdio`, `http` or `sse`.
    pub kind: String,
    /// `user`, `local`, `project` or `flag`, and the file.
    pub scope: String,
    pub place: String,
    /// What runs, or who is asked.
    pub line: String,
    /// The revision of the protocol, and why this one.
    pub version: Option<(String, String)>,
    /// From the start until it listed what it offers, in milliseconds.
    pub handshake_ms: Option<u64>,
    /// Why it failed, or what was last wrong with it.
    pub error: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The end of what it wrote to its error stream.
    pub tail: String,
    pub tools: u64,
    /// How many of these it offers to the user.
    #[serde(default)]
    pub prompts: u64,
    #[serde(default)]
    pub resources: u64,
    /// Their own names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<String>,
    /// What the definitions of its tools would take of each request.
    pub tokens: u64,
    /// Bytes.
    pub sent: u64,
    pub received: u64,
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    Pending,
    Connected,
    NeedsAuth,
    Failed,
    /// It may not run.
    Disabled,
}

/// Something in the background, or a sub-agent that its call waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// What `/tasks stop` calls it.
    pub task: String,
    #[serde(default)]
    pub sort: TaskSort,
    pub title: String,
    /// The sub-agent whose command it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default)]
    pub load: Load,
    /// How it ended; none while it runs.
    pub ended: Option<String>,
    /// How long it runs, or ran, as far as that is known.
    #[serde(default)]
    pub millis: Option<u64>,
    /// The last lines of what it wrote, without what a terminal would obey.
    pub tail: Vec<String>,
    /// Where all of that is.
    pub output: PathBuf,
}

/// What something in the background takes, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What an agent does now, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// Calls of an agent.
    #[serde(default)]
    pub tools: u32,
    /// Tokens in its window.
    #[serde(default)]
    pub tokens: u64,
    /// Dollars.
    #[serde(default)]
    pub usd: f64,
}

/// What a session came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub session: String,
    pub title: String,
    pub prompts: u64,
    /// Commands that ran, as far as a front end has seen them.
    pub commands: u64,
    /// Files that are not as they were before, and lines of them.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}

/// What fills the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub model: String,
    /// None: the window's size is unknown, so messages count.
    pub tokens: Option<u64>,
    /// Tokens of the next request.
    pub used: u64,
    /// Percent that are free before automatic compaction, or before the end when it is off: what the status line shows.
    pub left: u8,
    pub messages: u64,
    pub marks: Marks,
    /// Automatic compaction is on.
    pub auto: bool,
    pub parts: Vec<(Part, u64)>,
    pub duplicates: Vec<Duplicate>,
    /// Compactions of the session, oldest first.
    pub compactions: Vec<Compacted>,
}

/// Marks of the window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The window without what is reserved for the answer.
    pub available: u64,
    pub warning: u64,
    /// Where automatic compaction starts.
    pub target: u64,
    /// From here on nothing is sent as it is.
    pub blocking: u64,
    /// Messages that trigger instead of tokens, when the window is unknown.
    pub max_messages: Option<u64>,
}

/// One thing that takes room; its tokens are an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    SystemPrompt,
    Tools,
    MemoryFiles,
    Skills,
    Messages,
    /// A share of the messages, as are those that follow.
    Prompts,
    Replies,
    ToolResults,
    Summary,
    Reminders,
}

impl Part {
    /// It is a share of the messages.
    pub fn inner(self) -> bool {
        matches!(self, Part::Prompts | Part::Replies | Part::ToolResults | Part::Summary | Part::Reminders)
    }
}

/// A file whose content is in the window more than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    pub path: String,
    pub times: u64,
    /// Tokens of all but one of the reads.
    pub tokens: u64,
}

/// What the session cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// By model, in order of first use.
    pub models: Vec<ModelCost>,
    /// What of it the user did not type.
    pub beside: Vec<Spent>,
    #[serde(default)]
    pub cache: CacheReport,
}

/// What the provider's cache was good for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Input tokens, and those of them that were read from the cache.
    pub prompt: u64,
    pub read: u64,
    pub breaks: usize,
    /// Tokens that were written again, and what they cost; none without prices.
    pub again: u64,
    pub usd: Option<f64>,
}

/// What the next request will cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    pub tokens: u64,
    /// The provider has nothing of it in its cache.
    pub cold: bool,
    /// As things are, and with a warm cache; none without prices.
    pub usd: Option<f64>,
    pub warm_usd: Option<f64>,
}

/// Every break of the cache with its time, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    pub breaks: Vec<(String, CacheBreak)>,
    /// The one to be shown in detail, from 1.
    pub number: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    pub model: String,
    pub usage: Usage,
    /// None without prices.
    pub usd: Option<f64>,
}

/// A request that the user did not type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub what: String,
    pub model: String,
    pub usage: Usage,
}

/// What is in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub model: String,
    /// In tokens.
    pub window: u64,
    pub mode: Mode,
    pub folder: PathBuf,
    /// Settings of the folder that are not used.
    pub withheld: u64,
    pub session: String,
    pub title: Option<String>,
    pub log: PathBuf,
    /// Tokens in the window now.
    pub context: u64,
    pub rules: u64,
    /// The user's configuration file.
    pub settings: PathBuf,
}

/// How commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub status: sandbox::Status,
    /// Where nothing confines commands, none runs.
    pub required: bool,
    /// What one is held to that runs unasked because it only reads. None: nothing.
    pub reading: Option<sandbox::Policy>,
    /// The same of one that was approved.
    pub approved: Option<sandbox::Policy>,
    /// The same of one that runs unasked because the sandbox holds it; none does without `sandbox.auto_allow`.
    pub unasked: Option<sandbox::Policy>,
    /// What commands were kept from, the last ones first.
    pub denied: Vec<Kept>,
}

/// What a command was kept from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub command: String,
    /// The rules that would let it.
    pub rules: Vec<String>,
}

/// Settings with their sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// None: every key that somebody set.
    pub key: Option<String>,
    pub settings: Vec<Setting>,
    /// The user's configuration file.
    pub file: PathBuf,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub key: String,
    /// As TOML; none where it is not set.
    pub value: Option<String>,
    /// Every place that gives it, the strongest first.
    pub given: Vec<Given>,
    /// It is a list of what all of them give; any other value comes from the first alone.
    pub adds_up: bool,
}

/// A value, and the place that gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub value: String,
    pub place: String,
}

/// A setting that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChanged {
    pub key: String,
    /// As it is now: another place may win over the file.
    pub settings: Vec<Setting>,
    pub file: PathBuf,
    pub holds: Holds,
}

/// When a key holds that is changed while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    Now,
    /// Read when a session begins.
    NextSession,
    NextStart,
}

/// What would happen to a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub command: String,
    pub behavior: Behavior,
    /// Part by part.
    pub reasons: Vec<String>,
}

/// Plan mode, which is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanMode {
    /// The command turned it on.
    pub entered: bool,
    pub file: PathBuf,
    /// None: there is no plan yet.
    pub lines: Option<u64>,
}

/// What `/compact` came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Freed {
    Summarized {
        receipt: Box<Receipt>,
    },
    /// Old tool results; those are kept whose files could not be written.
    Cleared {
        results: u64,
        tokens: u64,
        kept: u64,
    },
    /// The last compaction, or the fresh start with a plan, was undone; the conversation has about so many tokens again.
    Undone {
        tokens: u64,
        plan: bool,
    },
    /// Nothing changed.
    Refused {
        why: String,
    },
}

/// The sub-agents, and what is wrong with their files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<AgentRow>,
    pub problems: Vec<String>,
}

/// One thing that the doctor looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub area: String,
    pub state: State,
    /// What was found and, where it is not good, what to do.
    pub text: String,
}

/// How well something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// Works with less.
    Limited,
    /// Stops something; makes the exit code 1.
    Bad,
}
