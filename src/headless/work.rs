//! A run from event to event: the start, and each prompt to its end.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::host::{self, Busy};
use super::input::Lines;
use super::mirror::Mirror;
use super::{BY_CHANCE, Exit, Output, Run, lines};
use crate::engine::{self, Handle};
use crate::hooks;
use crate::permission::Mode;
use crate::protocol::{Answer, Compaction, Event, ModeChange, Op, Turn, TurnEnd, UsageInfo};
use crate::report;

/// The next event, those that were kept first. May be dropped while it waits.
async fn next(kept: &mut VecDeque<Event>, events: &mut mpsc::Receiver<Event>) -> Option<Event> {
    match kept.pop_front() {
        Some(event) => Some(event),
        None => events.recv().await,
    }
}

impl Run<'_> {
    /// Waits until the session is there. False when the engine could not start.
    pub(super) async fn begin(&mut self, handle: &mut Handle, lines: &mut Lines) -> io::Result<bool> {
        let (mut settled, mut known) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                event = handle.events.recv() => event,
                line = lines.beside(), if self.stream => {
                    // Hooks of the start wait for their answers; all else waits for the session.
                    self.early(handle, line, lines).await;
                    continue;
                }
            };
            let Some(event) = event else { return Ok(false) };
            let Some(event) = host::hear(self, handle, event).await? else { continue };
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
                let model = self.session.as_ref().map(|session| &session.model);
                self.first_model = model.map(|model| format!("{}/{}", model.provider, model.model)).unwrap_or_default();
                self.mirror_opened()?;
                return Ok(true);
            }
        }
    }

    /// Begins the copy of the session. It is a service to others: without it the work is done all the same.
    fn mirror_opened(&mut self) -> io::Result<()> {
        let (Some(folder), Some(session)) = (&self.manner.mirror_in, &self.session) else { return Ok(()) };
        match Mirror::open(folder, session) {
            Ok((mirror, begun)) => {
                self.mirror = Some(mirror);
                self.mirror_told(begun)
            }
            Err(error) => {
                let folder = folder.display();
                writeln!(self.err, "cannot keep a copy of the session in {folder} for the lists of SDKs: {error}")
            }
        }
    }

    /// Adds to the copy of the session.
    pub(super) fn mirrored(&mut self, add: impl FnOnce(&mut Mirror) -> io::Result<Vec<Value>>) -> io::Result<()> {
        let Some(mirror) = &mut self.mirror else { return Ok(()) };
        match add(mirror) {
            Ok(entries) => self.mirror_told(entries),
            Err(error) => {
                let path = mirror.path().display().to_string();
                self.mirror = None;
                writeln!(self.err, "the copy of the session in {path} ends here: {error}")
            }
        }
    }

    /// Hands what was written to the program, where it keeps sessions itself.
    fn mirror_told(&mut self, entries: Vec<Value>) -> io::Result<()> {
        let Some(mirror) = self.mirror.as_ref().filter(|_| self.manner.talk.mirror && !entries.is_empty()) else {
            return Ok(());
        };
        let line = json!({ "type": "transcript_mirror", "filePath": mirror.path(), "entries": entries });
        self.line(&line)
    }

    /// Says what the session is, and that something runs.
    fn told_init(&mut self) -> io::Result<()> {
        if self.output == Output::StreamJson {
            self.state("running")?;
            let init = lines::init(self.session.as_ref(), &self.registry);
            self.line(&init)?;
        }
        Ok(())
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
        self.busy = if reports { Busy::Reporting } else { Busy::Turn };
        self.told_init()?;
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
            let event = match event {
                Some(event) => match host::hear(self, handle, event).await? {
                    Some(event) => Some(event),
                    None => continue,
                },
                None => None,
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
                    self.retrying((attempt, of), delay_ms)?;
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
                    ModeChange::Changed { mode } => self.told_mode(mode)?,
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
                    if self.output == Output::StreamJson {
                        lines::compaction(&step).iter().try_for_each(|line| self.line(line))?;
                    }
                }
                Some(Event::Background { running, ended }) => self.in_background(running, ended.as_ref())?,
                Some(Event::Task(task)) => self.below(&task)?,
                Some(Event::Usage(UsageInfo { cache: Some(broke), .. })) if self.output == Output::StreamJson => {
                    self.line(&lines::cache(&broke))?;
                }
                Some(Event::Item(item)) => self.item(item, &mut told)?,
                Some(Event::Delta(delta)) => self.delta(&delta)?,
                Some(Event::Hook { ran }) => self.hook(&ran)?,
                Some(Event::Turn(Turn::Spent { api_millis, models })) => {
                    (self.api_millis, self.models) = (api_millis, models);
                }
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
    pub(super) fn hook(&mut self, report: &hooks::Report) -> io::Result<()> {
        if self.output == Output::StreamJson {
            let told = self.host.talk.hooks;
            return lines::hook(report).iter().filter(|_| told).try_for_each(|line| self.line(line));
        }
        match report.word() {
            Some(word) => writeln!(self.err, "{word}"),
            None => Ok(()),
        }
    }

    /// Writes a line. Each that is not about the conversation between the programs has an id, and says whose it is.
    pub(super) fn line(&mut self, value: &Value) -> io::Result<()> {
        let mut line = value.clone();
        let kind = line["type"].as_str().unwrap_or_default();
        if !kind.starts_with("control_") && kind != "transcript_mirror" {
            if line.get("uuid").is_none() {
                line["uuid"] = json!(uuid::Uuid::new_v4());
            }
            line["session_id"] = json!(self.session_id().unwrap_or_default());
        }
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.id.as_str())
    }
}
