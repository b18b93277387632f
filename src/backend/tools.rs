//! What the model can do. A tool reads a call once and says what it touches; it never decides whether the call may run.

pub mod answer;
mod ask_user_question;
pub mod background;
mod bash;
mod call;
mod change;
pub mod diff;
mod edit;
mod elicitation;
mod enter_plan_mode;
mod exit_plan_mode;
mod file;
mod glob;
mod grep;
mod html;
pub mod input;
pub mod limit;
mod ls;
pub mod mcp_call;
mod media;
mod notebook;
mod notebook_edit;
mod read;
mod recall;
mod search;
mod skill;
mod task;
mod task_output;
mod task_stop;
mod todo_write;
mod tool_search;
mod toolbox;
mod web;
mod web_fetch;
mod web_search;
mod write;

#[cfg(test)]
mod fixture;

pub use bash::Changed;
pub use call::{Call, Running};
pub use task::{Away, Launch, Report, Spawned, no_such_agent, output as report};
pub use task_output::tail;
pub use toolbox::{RULES, Toolbox};

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::background::{Background, Shell};
use self::call::Typed;
use crate::message::{BlobId, Content, Display, Effect, Outcome};
use crate::permission::{Permit, Ruled};
use crate::protocol::{Answer, Approval, Question, TurnEnd};
use crate::provider::ToolSpec;
use crate::sandbox::Sandbox;
use crate::sandbox::proxy::{Contact, Gateway, Verdict};
use crate::session::store::Store;

/// Names of the tools that the agent itself turns to.
pub const BASH: &str = bash::Bash::NAME;
pub const EDIT: &str = <edit::Edit as Typed>::NAME;
pub const READ: &str = read::Read::NAME;
pub const SKILL: &str = skill::Skill::NAME;
pub const TASK: &str = task::Task::NAME;
pub const WEB_FETCH: &str = web_fetch::WebFetch::NAME;
pub const TODO_WRITE: &str = todo_write::TodoWrite::NAME;

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
    /// Leaves plan mode as the user chose; calls that follow in the same reply are judged in the mode that follows.
    PlanApproved { how: Approval, plan: String },
    /// Runs a skill: its text joins the conversation.
    Skill { name: String, args: String },
    /// Offers these rules when the command is asked about again: the sandbox kept it from something.
    Denied { command: String, rules: Vec<String> },
    /// Notes what a command changed, so that it can be undone.
    Changed(Changed),
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
        let display = Some(Display::said(Some(words).filter(|words| !words.is_empty())));
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
    /// The user's home folder.
    pub home: Option<PathBuf>,
}

impl Dirs {
    /// Makes a path of the model's absolute and lexically clean; `~/` is the home folder.
    pub fn absolute(&self, path: &str) -> PathBuf {
        let path = match (path.strip_prefix("~/"), &self.home) {
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
    /// What is kept of files that commands change. None: nothing.
    pub undo: Option<Undo>,
}

/// How much is kept so that what commands change can be undone, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undo {
    /// Largest file that is copied.
    pub largest: u64,
    /// Most that is copied for one command.
    pub budget: u64,
    /// Most that a session keeps.
    pub session: u64,
}

/// How what a command changes is kept, so that it can be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Undoing {
    /// It changes nothing, or nobody wants to undo it.
    #[default]
    Off,
    /// It is recorded under this name.
    Recorded(String),
    /// It is not: all files are looked at before and after, to tell which of them changed.
    Compared(Unrecordable),
}

/// Why what a command changes cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecordable {
    /// It starts a program with more rights than the user has, which it would not get.
    Privileged,
    /// The kernel, or what cocode runs in, does not allow it.
    Here,
}

impl Settings {
    /// For so many calls of one reply. Where the window is what limits a result, all of them share the room of two.
    pub fn shared(self: &Arc<Settings>, calls: usize) -> Arc<Settings> {
        const BYTES_PER_TOKEN: u64 = 4;
        if calls <= 2 || self.max_tokens.saturating_mul(BYTES_PER_TOKEN) >= self.max_bytes as u64 {
            return Arc::clone(self);
        }
        Arc::new(Settings { max_tokens: self.max_tokens * 2 / calls as u64, ..Settings::clone(self) })
    }
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

/// Whether a command may connect somewhere.
pub type VerdictFuture = Pin<Box<dyn Future<Output = Verdict> + Send>>;

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

/// What a launch led to; an error when it could not be done.
pub type SpawnedFuture<'a> = Pin<Box<dyn Future<Output = Result<Spawned, String>> + Send + 'a>>;

/// What a tool may ask of the agent that runs it. Implemented in `agent`.
pub trait Host: Send + Sync {
    /// Asks the user. Headless mode answers no.
    fn ask(&self, question: Question) -> AskFuture<'_>;

    /// Notes a change of a file before it is made, so that it can be undone although the program is killed meanwhile.
    /// An error forbids it.
    fn will_change(&self, _change: FileChange) -> NotedFuture<'_> {
        Box::pin(async { Ok(()) })
    }

    /// Decides about a connection that the command of a call makes; may ask the user.
    fn connects(&self, _call: &str, _command: &str, _contact: Contact) -> VerdictFuture {
        Box::pin(async { Verdict::Closed("nobody can be asked about it here".to_owned()) })
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

    /// Runs a sub-agent to its end, or lets it continue in the background. An error says why it could not be launched.
    fn spawn_agent(&self, _launch: Launch) -> SpawnedFuture<'_> {
        Box::pin(async { Err("agents cannot be launched here".into()) })
    }

    /// Is cancelled when what begins now is to continue in the background, because the user wants that.
    fn leaving(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// As this one, for a command that continues after its call was answered: nobody is asked, and the rules decide as they do
    /// now. None: there is nobody to take it over.
    fn apart(&self) -> Option<Arc<dyn Host>> {
        None
    }

    /// Takes over a command or a sub-agent; it is in the session's log then.
    fn keep_running(&self, _background: Background) -> NotedFuture<'_> {
        Box::pin(async { Err("nobody would hear of its end".to_owned()) })
    }

    /// What runs in the background of this conversation, and what has ended.
    fn shells(&self) -> Vec<Shell> {
        Vec::new()
    }

    /// Searches the web with the current model's own search; an error says that it has none.
    fn web_search<'a>(&'a self, query: &'a str, allowed: &'a [String], blocked: &'a [String]) -> SearchFuture<'a>;
}

/// Files that the model has seen, with the hash (lower-case hex SHA-256) of what it saw.
pub type Seen = HashMap<PathBuf, String>;

/// Everything that one call may use. It owns all of it.
#[derive(Clone)]
pub struct Context {
    /// Our id of the call.
    pub call: String,
    /// What the call was let do.
    pub permit: Permit,
    pub undoing: Undoing,
    pub dirs: Arc<Dirs>,
    pub seen: Arc<Seen>,
    /// Where the plan is to be written; none outside plan mode.
    pub plan: Option<PathBuf>,
    pub settings: Arc<Settings>,
    /// The log of the conversation that the call belongs to.
    pub log: PathBuf,
    /// Where output too large for the context goes.
    pub store: Store,
    /// What commands run in.
    pub sandbox: Sandbox,
    /// How commands reach the network that have no way of their own.
    pub gateway: Gateway,
    pub host: Arc<dyn Host>,
    /// Live output for the screen; a missing listener does not hold up the tool.
    pub live: mpsc::UnboundedSender<String>,
    pub cancel: CancellationToken,
}

/// One tool. Stateless: what it remembers are effects in results.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;

    /// What holds for all of its calls.
    fn manners(&self) -> Manners;

    /// Reads the input of a call: nothing else does.
    ///
    /// # Errors
    /// A precise sentence for the model when the input does not fit.
    fn call(&self, input: &Value, dirs: &Dirs) -> Result<Call, String>;

    /// The same of a call by this name: one tool answers for all tools of servers.
    ///
    /// # Errors
    /// As `call`.
    fn call_named(&self, _name: &str, input: &Value, dirs: &Dirs) -> Result<Call, String> {
        self.call(input, dirs)
    }
}

/// What holds for all calls of a tool, however they are made or shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Its calls change nothing, so that neighbours run side by side.
    pub reads: bool,
    /// Compaction may clear its old results.
    pub clearable: bool,
    pub offered: Offered,
    /// Left out where the window is small: its definition takes more room than it is worth there.
    pub needs_room: bool,
    /// Parameters that are left out there as well. A call may have them all the same.
    pub spare: &'static [&'static str],
    /// The parameter that its rules match; empty where they name the tool alone.
    pub matched: &'static str,
    /// Other names that calls have for it.
    pub aliases: &'static [&'static str],
    pub rules: Ruled,
}

/// The least agent that is offered a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offered {
    /// An agent that may change nothing, whatever the input.
    Reading,
    /// Any agent.
    Below,
    /// A sub-agent whose definition names it.
    Named,
    /// Only the agent that the user talks to.
    Main,
    /// No agent: a call by one of its names is understood all the same.
    Nobody,
}

impl Manners {
    /// Those of a tool that changes something.
    pub const CHANGES: Manners = Manners {
        reads: false,
        clearable: true,
        offered: Offered::Below,
        needs_room: false,
        spare: &[],
        matched: "",
        aliases: &[],
        rules: Ruled::BY_NAME,
    };
    /// Those of a tool that only reads.
    pub const READS: Manners = Manners { reads: true, offered: Offered::Reading, ..Manners::CHANGES };
    /// Those of a tool that turns to the user.
    pub const ASKS: Manners = Manners { clearable: false, offered: Offered::Main, ..Manners::CHANGES };
}
