//! What the model can do. A tool declares what a call touches, then does it; it never decides whether it may.

pub mod answer;
mod ask_user_question;
mod bash;
mod change;
pub mod diff;
mod edit;
mod enter_plan_mode;
mod exit_plan_mode;
mod file;
mod glob;
mod grep;
mod html;
pub mod input;
pub mod limit;
mod ls;
mod media;
mod notebook;
mod notebook_edit;
mod read;
mod search;
mod skill;
mod task;
mod todo_write;
mod toolbox;
mod web;
mod web_fetch;
mod web_search;
mod write;

#[cfg(test)]
mod fixture;

pub use task::{Launch, Report, Task, no_such_agent, output as report};
pub use toolbox::Toolbox;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::message::{BlobId, Content, Display, Effect, FileDiff, Outcome, Todo};
use crate::permission::{Access, Sight};
use crate::protocol::{Answer, Approval, Question, TurnEnd};
use crate::provider::ToolSpec;
use crate::session::store::Store;

/// What a tool answers; a failure is a value for the model, never an `Err`.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub outcome: Outcome,
    pub content: Vec<Content>,
    pub display: Option<Display>,
    pub effects: Vec<Effect>,
    /// What the agent does once the result is in the log.
    pub after: Vec<After>,
}

/// What a call leads to beyond its result: only the agent can do it.
#[derive(Debug, Clone, PartialEq)]
pub enum After {
    /// Goes into plan mode; calls that follow in the same reply are judged in it.
    EnterPlan,
    /// Leaves plan mode as the user chose; calls that follow in the same reply are judged in the mode that comes of it.
    PlanApproved { how: Approval, plan: String },
    /// Runs a skill: its text joins the conversation.
    Skill { name: String, args: String },
    /// Ends the turn; calls that follow are answered as not run.
    End(TurnEnd),
}

impl Output {
    pub fn ok(text: impl Into<String>) -> Output {
        Output {
            outcome: Outcome::Ok,
            content: vec![Content::text(text)],
            display: None,
            effects: Vec::new(),
            after: Vec::new(),
        }
    }

    /// A failure, told to the model: what is wrong and what to do instead.
    pub fn error(text: impl Into<String>) -> Output {
        Output { outcome: Outcome::Error, ..Output::ok(text) }
    }

    /// A no of the user. The screen shows their own words, if any: they know what the model is told.
    pub fn denied(text: &str, words: &str) -> Output {
        let display = Some(Display::Line { text: words.to_owned() });
        Output { outcome: Outcome::Denied, display, ..Output::ok(text) }
    }
}

/// The folders that a call may work in. All absolute.
#[derive(Debug, Clone)]
pub struct Dirs {
    /// Where the session was started: the project.
    pub project: PathBuf,
    /// Folders added with `--add-dir`.
    pub added: Vec<PathBuf>,
    /// Where the next shell line starts; relative paths of every tool start here.
    pub cwd: PathBuf,
}

impl Dirs {
    /// Makes a path of the model's absolute and lexically clean; `~/` is the home folder.
    pub fn absolute(&self, path: &str, home: Option<&Path>) -> PathBuf {
        let path = match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(path),
        };
        let mut clean = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => {
                    clean.pop();
                }
                other => clean.push(other),
            }
        }
        clean
    }
}

/// Limits and switches of the tools; a slice of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Most lines of a result that reach the model.
    pub max_lines: usize,
    /// Most bytes of a result that reach the model.
    pub max_bytes: usize,
    /// Most tokens of a result that reach the model.
    pub max_tokens: u64,
    /// Keep head and tail of a cut result, or its head alone.
    pub keep: Keep,
    /// How long a command may run when the call does not say, in milliseconds.
    pub bash_timeout_ms: u64,
    /// Longest time that a call may ask for, in milliseconds.
    pub bash_max_timeout_ms: u64,
    /// WebFetch may ask loopback and private addresses.
    pub fetch_private: bool,
    /// A search endpoint for WebSearch: `{query}` is replaced; JSON or HTML is read. None: the provider's own, or none.
    pub search_url: Option<String>,
    /// Variables that no child process inherits (keys).
    pub secret_env: Vec<String>,
    /// Further variables of commands; a name in `secret_env` is left out.
    pub env: BTreeMap<String, String>,
}

/// Which end of a long result survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    HeadTail,
    Head,
}

/// Answers of the provider's server-side web search.
pub type SearchFuture<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// The answer of a person; none when the call was cancelled first.
pub type AskFuture<'a> = Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>>;

/// Whether something is in the session's log; an error says why not.
pub type NotedFuture<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// What a tool is about to leave in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The real one, which was decided about.
    pub path: PathBuf,
    /// The new content, which is in the store.
    pub blob: BlobId,
    /// What exists beside the file until it is done.
    pub temporary: PathBuf,
}

/// How a sub-agent ended; an error when it could not be launched.
pub type ReportFuture<'a> = Pin<Box<dyn Future<Output = Result<Report, String>> + Send + 'a>>;

/// What a tool may ask of the agent that runs it. Implemented in `agent`.
pub trait Host: Send + Sync {
    /// Asks the user. Headless mode answers no.
    fn ask(&self, question: Question) -> AskFuture<'_>;

    /// Notes a change of a file before it is made, so that it can be undone although the program is killed meanwhile.
    /// An error forbids it.
    fn will_change(&self, _change: FileChange) -> NotedFuture<'_> {
        Box::pin(async { Ok(()) })
    }

    /// Notes that the change was made, or that nothing of it was written.
    fn settled(&self, _path: PathBuf) -> NotedFuture<'_> {
        Box::pin(async { Ok(()) })
    }

    /// Whether the model may start this skill now.
    ///
    /// # Errors
    /// Why not, for the model.
    fn skill(&self, name: &str) -> Result<(), String> {
        Err(format!("No skill `{name}`."))
    }

    /// Runs a sub-agent to its end. An error says why it could not be launched.
    fn spawn_agent<'a>(&'a self, _launch: Launch<'a>) -> ReportFuture<'a> {
        Box::pin(async { Err("agents cannot be launched here".into()) })
    }

    /// Searches the web with the current model's own search; an error says that it has none.
    fn web_search<'a>(&'a self, query: &'a str, allowed: &'a [String], blocked: &'a [String]) -> SearchFuture<'a>;
}

/// Everything that one call may use.
pub struct Context<'a> {
    /// Our id of the call.
    pub call: &'a str,
    pub dirs: &'a Dirs,
    /// The real path of the file that the call may write, as it was when it was decided. None: it may write none.
    pub target: Option<&'a Path>,
    /// Which files a search may show.
    pub sight: &'a Sight,
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// Files that the model has seen, with the hash (lower-case hex SHA-256) of what it saw.
    pub seen: &'a HashMap<PathBuf, String>,
    pub todos: &'a [Todo],
    /// Where the plan is to be written; none outside plan mode.
    pub plan: Option<&'a Path>,
    pub settings: &'a Settings,
    /// Where output too large for the context goes.
    pub store: &'a Store,
    pub host: &'a dyn Host,
    /// Live output for the screen; a missing listener does not hold up the tool.
    pub live: mpsc::UnboundedSender<String>,
    pub cancel: &'a CancellationToken,
}

/// A running call.
pub type Running<'a> = Pin<Box<dyn Future<Output = Output> + Send + 'a>>;

/// One tool. Stateless: what it remembers are effects in results.
pub trait Tool: Send + Sync {
    fn spec(&self) -> ToolSpec;

    /// What the call touches, after checking its input.
    ///
    /// # Errors
    /// A precise sentence for the model when the input does not fit.
    fn access(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Result<Access, String>;

    /// Whether the call changes nothing, so that it may run beside others.
    fn read_only(&self, input: &Value) -> bool;

    /// One line for the screen: the path, the command, the pattern.
    fn title(&self, input: &Value) -> String;

    /// The change that the call would make, for the permission dialog. None where there is no file change, or it would fail.
    fn preview(&self, _input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Option<FileDiff> {
        None
    }

    /// Why the call must fail as the files are now, so that nobody is asked about it. The text may tell of the file.
    fn hopeless(&self, _input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Option<String> {
        None
    }

    /// Compaction may clear this tool's old results.
    fn clearable(&self) -> bool {
        true
    }

    /// Runs the call. Its future must end soon after `cancel`, with what was there until then; a dropped future leaves
    /// no process behind.
    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a>;
}
