//! Without a screen: prompts in, answers out, as text, as one JSON object, or as a line for each event.
//!
//! The lines follow the schema that wrappers of Claude Code read: `system/init`, `assistant`, `user`, `result`.

mod answers;
mod background;
mod begin;
mod control;
mod host;
mod input;
mod lines;
mod mirror;
mod names;
mod nobody;
mod partial;
mod permits;
mod prompts;
mod result;
mod stop;
mod work;

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempPath;
use tokio::sync::mpsc;

use crate::commands::Registry;
use crate::engine::{self, Handle};
use crate::message::{StopReason, Usage};
use crate::permission::Mode;
use crate::protocol::report::Report;
use crate::protocol::{Event, ModelShare, Op, SessionInfo};
use background::Background;
use host::{Busy, Host};
use input::{Line, Lines, Steering, Typed};
use mirror::Mirror;
use names::Names;
use partial::Partial;
use permits::Calls;

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The last answer.
    Text,
    /// One object with answer, cost and denials.
    Json,
    /// A line for each step.
    StreamJson,
}

/// Where prompts come from.
pub enum Input {
    Prompt(Prompt),
    /// Lines of `{"type": "user", "message": {…}}` until the end of the stream.
    StreamJson(Box<dyn BufRead + Send>),
}

/// The one prompt of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// A message or a command.
    pub typed: Option<String>,
    /// What came with it from a file or a program: data, whatever it looks like.
    pub piped: Option<String>,
}

/// What a script is told that gets the offline model without having asked for it.
const BY_CHANCE: &str = "No key is set and no local server answers, so the offline model answers: it follows fixed recipes \
    and does not reason. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or say --offline.";

/// How a run ended; the process exits with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    Error = 1,
    Usage = 2,
    /// Done, but something was denied because nobody could be asked.
    Refused = 3,
    MaxTurns = 4,
    /// A budget is used up.
    Budget = 6,
    /// The model never gave an answer that fits the schema.
    NoAnswer = 5,
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

/// What the program at the other end wants to be told, and to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Talk {
    /// It was not a person who typed the flags: an SDK has started us.
    pub sdk: bool,
    /// It answers where a person would be asked for permission.
    pub permits: bool,
    pub partial: bool,
    pub hooks: bool,
    pub replay: bool,
    pub mirror: bool,
}

/// What a run is asked to be.
#[derive(Debug, Clone)]
pub struct Manner {
    /// The model was chosen, and is not just what was left.
    pub named: bool,
    /// The answer has to be an object that fits a schema.
    pub schema: bool,
    /// Mode Bypass may be chosen.
    pub may_bypass: bool,
    pub talk: Talk,
    /// The folder of Claude Code's sessions that the copy of this one goes to.
    pub mirror_in: Option<PathBuf>,
    /// The program reads `session_state_changed`, and does not pass it on where the inner flag says so.
    pub states: Option<bool>,
}

/// Runs to the end of the input. Nothing but the result goes to `out`; diagnostics go to `err`. `begun` is the request of a
/// program that waits until the session is there.
///
/// # Errors
/// `out` cannot be written, for example since its reader is gone.
async fn run(
    mut handle: Handle,
    (lines, stream, begun): (Lines, bool, Option<input::Request>),
    output: Output,
    stops: mpsc::UnboundedReceiver<Exit>,
    (out, err): (&mut dyn Write, &mut dyn Write),
    manner: Manner,
) -> io::Result<Exit> {
    let mut run = Run {
        output,
        out,
        err,
        registry: Registry::builtin(),
        host: Host::new(manner.talk),
        may_bypass: manner.may_bypass,
        states: manner.states,
        mirror: None,
        manner,
        stream,
        busy: Busy::Not,
        session: None,
        answer: String::new(),
        turn: false,
        structured: None,
        report: None,
        plan: None,
        imports: Vec::new(),
        denials: Vec::new(),
        usage: Usage::default(),
        cost: None,
        rounds: 0,
        failed: None,
        exit: Exit::Done,
        all: Exit::Done,
        steering: Steering::default(),
        background: Background::default(),
        kept: VecDeque::new(),
        again: VecDeque::new(),
        pictures: Vec::new(),
        tools: Calls::default(),
        prompts: Names::default(),
        partial: Partial::default(),
        first_model: String::new(),
        last_usage: None,
        stopped: None,
        api_millis: 0,
        millis: 0,
        models: Vec::new(),
    };
    let ended = run.all(&mut handle, (lines, begun), stops).await;
    // The engine writes what is pending even if nobody reads our output anymore.
    let _ = handle.ops.send(Op::Shutdown).await;
    while let Some(event) = handle.events.recv().await {
        // Nothing follows the result on standard output.
        let _ = match event {
            Event::Hook { ran } => ran.word().map_or(Ok(()), |word| writeln!(run.err, "{word}")),
            Event::Error { text, .. } => writeln!(run.err, "error: {text}"),
            Event::Call { id, .. } => {
                let answer = Err("the program no longer listens".to_owned());
                let _ = handle.ops.send(Op::Return { id, answer }).await;
                Ok(())
            }
            _ => Ok(()),
        };
    }
    let _ = run.err.flush();
    let crashed = handle.task.await.is_err();
    ended?;
    let exit = if stream { run.all } else { run.exit };
    Ok(if crashed && exit == Exit::Done { Exit::Error } else { exit })
}

struct Run<'a> {
    output: Output,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    registry: Registry,
    manner: Manner,
    /// Prompts come as lines: one that fails is not the end.
    stream: bool,
    session: Option<SessionInfo>,
    answer: String,
    /// A turn is under way, and not a command that only tells something.
    turn: bool,
    /// The answer that was accepted.
    structured: Option<Value>,
    /// What a command has found.
    report: Option<Report>,
    /// The plan that was submitted.
    plan: Option<String>,
    /// Memory files that were not read, since nobody could be asked.
    imports: Vec<String>,
    denials: Vec<Value>,
    usage: Usage,
    cost: Option<f64>,
    rounds: u32,
    failed: Option<String>,
    /// How the prompt ended.
    exit: Exit,
    /// How a run of lines ends: well, unless the program failed.
    all: Exit,
    steering: Steering,
    /// Commands that run in the background.
    background: Background,
    /// What the engine said between two prompts.
    kept: VecDeque<Event>,
    /// Prompts that a turn dropped when it failed.
    again: VecDeque<Op>,
    /// What came with prompts, as files for as long as the run lasts.
    pictures: Vec<TempPath>,
    /// The program at the other end.
    host: Host,
    /// What the engine does now.
    busy: Busy,
    may_bypass: bool,
    states: Option<bool>,
    /// The copy of the session for the lists of the SDKs.
    mirror: Option<Mirror>,
    /// The last call of each tool.
    tools: Calls,
    /// Names of prompts.
    prompts: Names,
    /// The reply under way.
    partial: Partial,
    /// The model that the session began with.
    first_model: String,
    /// Of the last reply: its tokens, and why it ended.
    last_usage: Option<Usage>,
    stopped: Option<StopReason>,
    /// How long the last turn waited for models, and took.
    api_millis: u64,
    millis: u64,
    /// What the session has cost so far.
    models: Vec<ModelShare>,
}

/// Starts an engine and runs it; what `main` calls.
///
/// # Errors
/// As `run`.
pub async fn start(
    mut setup: engine::Setup,
    input: Input,
    (output, talk): (Output, Talk),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let stops = stop::listen()?;
    let named = setup.offline || setup.script.is_some() || setup.loaded.config.model.is_some();
    let (lines, stream, begun) = match input {
        Input::Prompt(Prompt { typed, piped }) => {
            let (prompts, next) = mpsc::channel(1);
            setup.piped.clone_from(&piped);
            let typed = Typed { text: typed.unwrap_or_default(), piped: piped.is_some(), ..Typed::default() };
            // The channel cannot be full or closed here.
            let _ = prompts.try_send(Line::Prompt(typed));
            (Lines::new(next), false, None)
        }
        Input::StreamJson(from) => {
            let mut lines = begin::reader(from);
            let begun = begin::initialize(&mut setup, &mut lines, out, err).await?;
            (lines, true, begun)
        }
    };
    let asks = |name: &str| setup.env.get(name).is_some_and(|value| matches!(value, "1" | "true"));
    let states = match (asks("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"), asks("CLAUDE_CODE_SDK_READS_SESSION_STATE")) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    };
    let may_bypass = setup.may_bypass || setup.mode == Some(Mode::Bypass);
    let mirrored = setup.loaded.config.sessions.claude_mirror.unwrap_or(talk.sdk || talk.mirror);
    let named_folder = setup.env.path("CLAUDE_CONFIG_DIR").filter(|path| path.is_absolute());
    let claude = named_folder.or_else(|| Some(setup.env.user_home.as_ref()?.join(".claude")));
    let schema = setup.output_schema.is_some();
    let manner = Manner { named, schema, may_bypass, talk, mirror_in: claude.filter(|_| mirrored), states };
    run(engine::start(setup), (lines, stream, begun), output, stops, (out, err), manner).await
}
