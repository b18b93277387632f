//! Without a screen: prompts in, answers out, as text, as one JSON object, or as a line for each event.
//!
//! The lines follow the schema that wrappers of Claude Code read: `system/init`, `assistant`, `user`, `result`.

mod lines;
mod nobody;
mod result;
mod stop;

use std::io::{self, BufRead, Write};
use std::pin::Pin;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::commands::{Parsed, Registry};
use crate::engine::{self, Handle};
use crate::hooks;
use crate::message::{Kind, Usage};
use crate::permission::Mode;
use crate::protocol::report::Report;
use crate::protocol::{Answer, Delivery, Event, Item, ModeChange, Op, SessionInfo, Turn, TurnEnd};
use crate::report;
use crate::session::entry::not_undone;
use lines::Typed;

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
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

/// Runs to the end of the input. `named`: the model was chosen, and is not just what was left. Nothing but the result goes to `out`; diagnostics go to `err`.
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
    named: bool,
) -> io::Result<Exit> {
    let (prompts, mut next) = mpsc::channel(1);
    let reader = match input {
        Input::Prompt(Prompt { typed, piped }) => {
            let typed = Typed { text: typed.unwrap_or_default(), piped: piped.is_some(), thinking: None };
            // The channel holds one; it cannot be full or closed here.
            let _ = prompts.try_send(Ok(typed));
            drop(prompts);
            None
        }
        Input::StreamJson(lines) => Some(std::thread::spawn(move || lines::read_prompts(lines, &prompts))),
    };
    let mut run = Run {
        output,
        out,
        err,
        registry: Registry::builtin(),
        named,
        session: None,
        answer: String::new(),
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
    };
    let ended = run.all(&mut handle, &mut next, stops).await;
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
    Ok(if crashed && run.exit == Exit::Done { Exit::Error } else { run.exit })
}

struct Run<'a> {
    output: Output,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    registry: Registry,
    /// Somebody said which model answers, or it was told that nobody did.
    named: bool,
    session: Option<SessionInfo>,
    answer: String,
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
    exit: Exit,
}

impl Run<'_> {
    async fn all(
        &mut self,
        handle: &mut Handle,
        prompts: &mut mpsc::Receiver<Result<Typed, String>>,
        stops: mpsc::UnboundedReceiver<Exit>,
    ) -> io::Result<()> {
        // One listener for the whole run: a signal between two events is not lost.
        let stopped = stop::signal(stops);
        tokio::pin!(stopped);
        if !self.begin(handle).await? {
            return Ok(());
        }
        while let Some(prompt) = prompts.recv().await {
            let prompt = match prompt {
                Ok(prompt) => prompt,
                Err(problem) => {
                    writeln!(self.err, "error: {problem}")?;
                    self.exit = Exit::Usage;
                    return Ok(());
                }
            };
            if !self.one(handle, prompt, stopped.as_mut()).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until the session is there. False when the engine could not start.
    async fn begin(&mut self, handle: &mut Handle) -> io::Result<bool> {
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

    /// Runs one prompt or command to its end. False if the run cannot continue.
    async fn one(
        &mut self,
        handle: &mut Handle,
        typed: Typed,
        mut stopped: Pin<&mut impl Future<Output = Exit>>,
    ) -> io::Result<bool> {
        let Typed { text, piped, thinking } = typed;
        (self.answer, self.failed, self.rounds, self.report) = (String::new(), None, 0, None);
        // What a skill has to say, or a task to plan, is the answer of its turn.
        let mut reports = false;
        let op = match self.registry.parse_line(&text) {
            Parsed::Command { command, args } if piped && !command.makes_turn(args) => {
                return self.wrong(&format!("/{} does not read standard input: add `< /dev/null`", command.name));
            }
            Parsed::Message => {
                Op::Prompt { text: text.clone(), attachments: Vec::new(), delivery: Delivery::AfterTurn, thinking }
            }
            Parsed::Command { command, .. } if thinking.is_some() => {
                let text = format!("`thinking` only applies to messages, not to /{}: use --thinking", command.name);
                return self.wrong(&text);
            }
            Parsed::Command { command, .. } if command.needs_terminal() => {
                return self.wrong(&format!("/{} needs a terminal", command.name));
            }
            Parsed::Command { command, args } => {
                reports = !command.makes_turn(args);
                Op::Command { name: command.name.clone(), args: args.to_owned() }
            }
            Parsed::Unknown { name } => return self.wrong(&self.registry.unknown(name)),
        };
        let turn = matches!(op, Op::Prompt { .. }) || !reports;
        let offline = self.session.as_ref().is_some_and(|session| session.model.provider == engine::OFFLINE);
        if turn && offline && !std::mem::replace(&mut self.named, true) {
            writeln!(self.err, "{BY_CHANCE}")?;
        }
        if handle.ops.send(op.clone()).await.is_err() {
            return self.wrong("the engine stopped unexpectedly");
        }
        let (mut millis, mut ended) = (0, None);
        let mut told = Vec::new();
        loop {
            let event = tokio::select! {
                biased;
                stopped = stopped.as_mut() => {
                    self.exit = stopped;
                    // Otherwise a running command would continue to its end.
                    let _ = handle.ops.send(Op::Interrupt).await;
                    // Not only this turn: a prompt that still waits for the start must not be sent either.
                    let _ = handle.ops.send(Op::Shutdown).await;
                    let millis = self.drain(handle).await?;
                    self.finish(millis)?;
                    return Ok(false);
                }
                event = handle.events.recv() => event,
            };
            match event {
                None | Some(Event::Closed) => {
                    self.answer = told.join("\n\n");
                    self.finish(0)?;
                    return Ok(false);
                }
                Some(Event::Done { op: done }) if done == op => {
                    if reports {
                        self.answer = told.join("\n\n");
                    }
                    self.finish(millis)?;
                    return Ok(match ended {
                        Some(end) => matches!(end, TurnEnd::Done | TurnEnd::Stopped | TurnEnd::Refused),
                        None => self.failed.is_none(),
                    });
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
                    let session = self.session.as_ref().map(|session| session.id.clone());
                    for line in lines::compaction(&step, session.as_deref()) {
                        if self.output == Output::StreamJson {
                            self.line(&line)?;
                        }
                    }
                }
                Some(Event::Task(task)) if self.output == Output::StreamJson => {
                    if let Some(line) = lines::below(&task, self.session_id()) {
                        self.line(&line)?;
                    }
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
                        TurnEnd::Repeated => {
                            self.failed = Some("stopped: the same call kept returning the same result".into());
                            Exit::Error
                        }
                        TurnEnd::Interrupted => Exit::Interrupted,
                    };
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

    fn item(&mut self, item: Item, told: &mut Vec<String>) -> io::Result<()> {
        match item {
            Item::Message { message, .. } => {
                if message.kind == Kind::Reply && message.agent_visible {
                    self.rounds += 1;
                    let text = message.text();
                    if !text.is_empty() {
                        self.answer = text;
                    }
                    if let Some(call) = message.calls().find(|call| call.name == crate::tools::answer::NAME) {
                        self.structured = Some(call.input.clone());
                    }
                }
                if self.output == Output::StreamJson
                    && let Some(line) = lines::message(&message, self.session_id())
                {
                    self.line(&line)?;
                }
            }
            Item::FilesRestored { how, turn, restored, merged, refused, unseen } => {
                let refused_any = !refused.is_empty();
                let mut lines: Vec<String> =
                    restored.iter().map(|path| format!("restored {}", path.display())).collect();
                let of = turn.map(|turn| format!(" from turn “{turn}”")).unwrap_or_default();
                match lines.is_empty() {
                    true => lines.push(format!("{}{of}", how.nothing())),
                    false => lines.iter_mut().for_each(|line| line.push_str(&of)),
                }
                lines.extend(merged.iter().map(|path| format!("kept changes by others in {}", path.display())));
                lines.extend(refused.into_iter().map(|text| format!("left alone: {text}")));
                if refused_any {
                    self.exit = Exit::Error;
                }
                lines.extend(unseen.into_iter().map(|text| not_undone(&text)));
                told.push(lines.join("\n"));
            }
            _ => {}
        }
        Ok(())
    }

    fn wrong(&mut self, text: &str) -> io::Result<bool> {
        self.failed = Some(text.to_owned());
        self.exit = Exit::Usage;
        self.finish(0)?;
        Ok(false)
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
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
    if let Input::Prompt(prompt) = &input {
        setup.piped = prompt.piped.clone();
    }
    run(engine::start(setup), input, output, stops, out, err, named).await
}
