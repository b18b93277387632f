//! Without a screen: prompts in, answers out, as text, as one JSON object, or as a line for each event.
//!
//! The lines follow the schema that wrappers of Claude Code read: `system/init`, `assistant`, `user`, `result`.

mod background;
mod input;
mod lines;
mod nobody;
mod prompts;
mod result;
mod stop;

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::pin::Pin;

use serde_json::Value;
use tempfile::TempPath;
use tokio::sync::mpsc;

use crate::commands::Registry;
use crate::engine::{self, Handle};
use crate::hooks;
use crate::message::Usage;
use crate::permission::Mode;
use crate::protocol::report::Report;
use crate::protocol::{Answer, Compaction, Event, ModeChange, Op, SessionInfo, Turn, TurnEnd, UsageInfo};
use crate::report;
use background::Background;
use input::{Line, Lines, Steering, Typed};

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

/// What a run is asked to be.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// The model was chosen, and is not just what was left.
    pub named: bool,
    /// The answer has to be an object that fits a schema.
    pub schema: bool,
}

/// Runs to the end of the input. Nothing but the result goes to `out`; diagnostics go to `err`.
///
/// # Errors
/// `out` cannot be written, for example since its reader is gone.
pub async fn run(
    mut handle: Handle,
    input: Input,
    output: Output,
    stops: mpsc::UnboundedReceiver<Exit>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    manner: Manner,
) -> io::Result<Exit> {
    let (prompts, next) = mpsc::channel(64);
    let stream = matches!(input, Input::StreamJson(_));
    let reader = match input {
        Input::Prompt(Prompt { typed, piped }) => {
            let typed = Typed { text: typed.unwrap_or_default(), piped: piped.is_some(), ..Typed::default() };
            // The channel cannot be full or closed here.
            let _ = prompts.try_send(Line::Prompt(typed));
            drop(prompts);
            None
        }
        Input::StreamJson(lines) => Some(std::thread::spawn(move || input::read_lines(lines, &prompts))),
    };
    let mut run = Run {
        output,
        out,
        err,
        registry: Registry::builtin(),
        manner,
        stream,
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
    };
    let ended = run.all(&mut handle, Lines::new(next), stops).await;
    // A reader blocked on standard input ends with the process.
    drop(reader);
    // The engine writes what is pending even if nobody reads our output anymore.
    let _ = handle.ops.send(Op::Shutdown).await;
    while let Some(event) = handle.events.recv().await {
        // Nothing follows the result on standard output.
        let _ = match event {
            Event::Hook { ran } => ran.word().map_or(Ok(()), |word| writeln!(run.err, "{word}")),
            Event::Error { text, .. } => writeln!(run.err, "error: {text}"),
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
}

/// The next event, those that were kept first. May be dropped while it waits.
async fn next(kept: &mut VecDeque<Event>, events: &mut mpsc::Receiver<Event>) -> Option<Event> {
    match kept.pop_front() {
        Some(event) => Some(event),
        None => events.recv().await,
    }
}

impl Run<'_> {
    /// Waits until the session is there. False when the engine could not start.
    pub(super) async fn begin(&mut self, handle: &mut Handle) -> io::Result<bool> {
        let (mut settled, mut known) = (false, false);
        while let Some(event) = handle.events.recv().await {
            match event {
                Event::Session(info) => {
                    // While a server is looked for, it is not known which model answers.
                    settled = !info.model.probing;
                    self.session = Some(info);
                }
                Event::Model(model) => {
                    if let Some(session) = self.session.as_mut().filter(|_| !model.probing) {
                        session.model = model;
                        settled = true;
                    }
                }
                Event::Commands { registry } => {
                    self.registry = registry;
                    known = true;
                }
                Event::Notice { text } => writeln!(self.err, "{text}")?,
                Event::Hook { ran } => self.hook(&ran)?,
                Event::Error { text, .. } => {
                    self.failed = Some(text);
                    self.exit = Exit::Error;
                    self.finish(0)?;
                    return Ok(false);
                }
                Event::Ask(ask) => {
                    let _ = handle.ops.send(Op::Answer { id: ask.id, answer: Answer::No { feedback: None } }).await;
                }
                Event::Closed => return Ok(false),
                _ => {}
            }
            if settled && known {
                return self.told_init();
            }
        }
        Ok(false)
    }

    fn told_init(&mut self) -> io::Result<bool> {
        if self.output == Output::StreamJson {
            let init = lines::init(self.session.as_ref(), &self.registry);
            self.line(&init)?;
        }
        Ok(true)
    }

    /// Follows what the engine does to its end. False if the run cannot continue.
    pub(super) async fn work(
        &mut self,
        handle: &mut Handle,
        op: Op,
        lines: &mut Lines,
        mut stopped: Pin<&mut impl Future<Output = Exit>>,
    ) -> io::Result<bool> {
        self.begin_prompt();
        // What a skill has to say, or a task to plan, is the answer of its turn.
        self.turn = match &op {
            Op::Command { name, args } => self.registry.find(name).is_none_or(|command| command.makes_turn(args)),
            _ => true,
        };
        let reports = !self.turn;
        let offline = self.session.as_ref().is_some_and(|session| session.model.provider == engine::OFFLINE);
        if self.turn && offline && !std::mem::replace(&mut self.manner.named, true) {
            writeln!(self.err, "{BY_CHANCE}")?;
        }
        let (mut millis, mut ended) = (0, None);
        let mut told = Vec::new();
        loop {
            let event = tokio::select! {
                biased;
                stopped = stopped.as_mut() => {
                    (self.exit, self.all) = (stopped, stopped);
                    // Otherwise a running command would continue to its end.
                    let _ = handle.ops.send(Op::Interrupt).await;
                    // Not only this turn: a prompt that still waits for the start must not be sent either.
                    let _ = handle.ops.send(Op::Shutdown).await;
                    let millis = self.drain(handle).await?;
                    self.finish(millis)?;
                    return Ok(false);
                }
                event = next(&mut self.kept, &mut handle.events) => event,
                line = lines.beside(), if self.stream => {
                    self.beside(handle, line, lines).await?;
                    continue;
                }
            };
            match event {
                None | Some(Event::Closed) => {
                    self.answer = told.join("\n\n");
                    self.all = Exit::Error;
                    self.finish(0)?;
                    return Ok(false);
                }
                Some(Event::Done { op: done }) if done == op => {
                    if reports {
                        self.answer = told.join("\n\n");
                    }
                    self.finish(millis)?;
                    return Ok(true);
                }
                Some(Event::Notice { text }) if reports => told.push(text),
                Some(Event::Report(report)) => {
                    told.push(report::markdown(&report));
                    self.report = Some(report);
                }
                Some(Event::Notice { text }) => writeln!(self.err, "{text}")?,
                Some(Event::Retrying { attempt, of, delay_ms, reason }) => {
                    writeln!(
                        self.err,
                        "attempt {attempt} of {of} failed ({reason}); retrying in {:.1} s",
                        delay_ms as f64 / 1000.0
                    )?;
                }
                Some(Event::Queue { items }) => {
                    self.again.extend(self.steering.queue(&items, ended == Some(TurnEnd::Failed)));
                }
                // What is said of a queue that is dropped is not why.
                Some(Event::Error { .. }) if ended == Some(TurnEnd::Failed) => {}
                Some(Event::Error { text, .. }) => {
                    self.failed = Some(text);
                    self.exit = Exit::Error;
                }
                Some(Event::Commands { registry }) => self.registry = registry,
                Some(Event::Mode(change)) => match change {
                    ModeChange::Changed { mode } => {
                        if let Some(session) = &mut self.session {
                            session.mode = mode;
                        }
                    }
                    ModeChange::PlanExited { .. } if reports => told.push("Plan mode is off.".into()),
                    ModeChange::PlanEntered { .. } | ModeChange::PlanExited { .. } => {}
                },
                Some(Event::Ask(ask)) => {
                    let answer = self.nobody(ask.question);
                    let _ = handle.ops.send(Op::Answer { id: ask.id, answer }).await;
                }
                Some(Event::Compaction(step)) => {
                    match &step {
                        Compaction::Completed { receipt, .. } if reports => {
                            (self.usage, self.cost, millis) = (receipt.usage, receipt.cost_usd, receipt.millis);
                        }
                        Compaction::Failed { usage, cost_usd, .. } if reports => {
                            (self.usage, self.cost) = (*usage, *cost_usd);
                        }
                        _ => {}
                    }
                    let session = self.session.as_ref().map(|session| session.id.clone());
                    for line in lines::compaction(&step, session.as_deref()) {
                        if self.output == Output::StreamJson {
                            self.line(&line)?;
                        }
                    }
                }
                Some(Event::Background { running, ended }) => self.in_background(running, ended.as_ref())?,
                Some(Event::Task(task)) if self.output == Output::StreamJson => {
                    if let Some(line) = lines::below(&task, self.session_id()) {
                        self.line(&line)?;
                    }
                }
                Some(Event::Usage(UsageInfo { cache: Some(broke), .. })) if self.output == Output::StreamJson => {
                    let line = lines::cache(&broke, self.session_id());
                    self.line(&line)?;
                }
                Some(Event::Item(item)) => self.item(item, &mut told)?,
                Some(Event::Hook { ran }) => self.hook(&ran)?,
                Some(Event::Turn(Turn::Ended { end, usage, cost_usd, millis: took })) => {
                    (millis, ended) = (took, Some(end));
                    self.usage = usage;
                    self.cost = cost_usd;
                    let planned = self.plan.take().map(|plan| self.answer = plan).is_some()
                        || self.session.as_ref().is_some_and(|session| session.mode == Mode::Plan);
                    self.exit = match end {
                        // Planning changes nothing, whatever was denied on the way.
                        TurnEnd::Done | TurnEnd::Refused if planned => self.exit,
                        TurnEnd::Done | TurnEnd::Stopped if self.denials.is_empty() => self.exit,
                        TurnEnd::Done | TurnEnd::Stopped | TurnEnd::Refused => Exit::Refused,
                        TurnEnd::Failed => Exit::Error,
                        TurnEnd::MaxTurns => Exit::MaxTurns,
                        TurnEnd::Budget => Exit::Budget,
                        TurnEnd::Repeated => {
                            self.failed = Some("stopped: the same call kept returning the same result".into());
                            Exit::Error
                        }
                        TurnEnd::Interrupted => Exit::Interrupted,
                        TurnEnd::NoAnswer => Exit::NoAnswer,
                    };
                    let owed = self.manner.schema && self.structured.is_none();
                    if owed && matches!(self.exit, Exit::Done | Exit::Refused | Exit::NoAnswer) {
                        self.exit = Exit::NoAnswer;
                        self.failed = Some("the model gave no answer that fits the schema of --json-schema".into());
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// A line for programs; people read only what a hook has to say to them.
    fn hook(&mut self, report: &hooks::Report) -> io::Result<()> {
        if self.output == Output::StreamJson {
            let line = lines::hook(report, self.session_id());
            return self.line(&line);
        }
        match report.word() {
            Some(word) => writeln!(self.err, "{word}"),
            None => Ok(()),
        }
    }

    pub(super) fn line(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{value}")?;
        self.out.flush()
    }

    fn session_id(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.id.as_str())
    }
}

/// Starts an engine and runs it; what `main` calls.
///
/// # Errors
/// As `run`.
pub async fn start(
    mut setup: engine::Setup,
    input: Input,
    output: Output,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let stops = stop::listen()?;
    let named = setup.offline || setup.script.is_some() || setup.loaded.config.model.is_some();
    let manner = Manner { named, schema: setup.output_schema.is_some() };
    if let Input::Prompt(prompt) = &input {
        setup.piped = prompt.piped.clone();
    }
    run(engine::start(setup), input, output, stops, out, err, manner).await
}
