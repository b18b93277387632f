//! From what comes in to what the engine is to do, one after the other.

use std::io::{self, Write};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;

use super::input::{Line, Lines, Request, Typed, Wrong};
use super::{Exit, Output, Run, control, host, lines, stop};
use crate::commands::Parsed;
use crate::engine::Handle;
use crate::message::Usage;
use crate::protocol::{Delivery, Event, ModeChange, Op, Task};
use crate::session::entry::{Begun, Ended};
use crate::stdx::outside;

/// How long commands in the background may still run once there is nothing more to do.
const GRACE: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Does all that comes in, to its end.
    pub(super) async fn all(
        &mut self,
        handle: &mut Handle,
        (mut lines, begun): (Lines, Option<Request>),
        stops: mpsc::UnboundedReceiver<Exit>,
    ) -> io::Result<()> {
        // One listener for the whole run: a signal between two events is not lost.
        let stopped = stop::signal(stops);
        tokio::pin!(stopped);
        let mut goes_on = self.begin(handle, &mut lines).await?;
        match begun {
            Some(request) if goes_on => {
                control::initialized(self, handle, &request).await;
                // What comes with the first prompt is not taken for a part of the answer.
                while self.host.serves() {
                    tokio::select! {
                        biased;
                        event = handle.events.recv() => match event {
                            Some(event) => self.meanwhile(handle, event).await?,
                            None => break,
                        },
                        // Hooks of the start may still wait for their answers.
                        line = lines.beside() => self.early(handle, line, &mut lines).await,
                    }
                }
            }
            Some(request) => {
                let why = self.failed.clone().unwrap_or_else(|| "the session could not start".to_owned());
                self.line(&lines::control(&request.id, Err(why)))?;
            }
            None => {}
        }
        if !goes_on {
            self.all = self.exit;
        }
        while goes_on {
            // What was sent into a turn and came too late is begun by the engine itself.
            if let Some(op) = self.steering.left() {
                goes_on = self.work(handle, op, &mut lines, stopped.as_mut()).await?;
                continue;
            }
            if let Some(op) = self.again.pop_front() {
                goes_on = self.send(handle, op, &mut lines, stopped.as_mut()).await?;
                continue;
            }
            let line = tokio::select! {
                biased;
                stopped = stopped.as_mut() => {
                    (self.exit, self.all) = (stopped, stopped);
                    return Ok(());
                }
                // One that is gone says so when it is asked for something.
                Some(event) = handle.events.recv() => {
                    self.meanwhile(handle, event).await?;
                    continue;
                }
                line = lines.next() => line,
            };
            goes_on = match line {
                None => {
                    self.left(handle).await;
                    return self.let_end(handle, stopped.as_mut()).await;
                }
                Some(Line::Prompt(typed)) => self.one(handle, typed, &mut lines, stopped.as_mut()).await?,
                Some(Line::Wrong(Wrong { text, prompt })) => {
                    if prompt || !self.host.talk.sdk {
                        self.all = if self.host.talk.sdk { self.all } else { Exit::Usage };
                        self.begin_prompt();
                        self.wrong(&text)?
                    } else {
                        // Nobody waits for a result of what cannot be read.
                        writeln!(self.err, "error: {text}")?;
                        true
                    }
                }
                line => {
                    self.beside(handle, line, &mut lines).await?;
                    true
                }
            };
        }
        Ok(())
    }

    /// Gives commands in the background a moment to end by themselves, before the session ends them.
    async fn let_end(
        &mut self,
        handle: &mut Handle,
        mut stopped: Pin<&mut impl Future<Output = Exit>>,
    ) -> io::Result<()> {
        let over = tokio::time::sleep(GRACE);
        tokio::pin!(over);
        while !self.background.is_empty() || self.host.serves() {
            tokio::select! {
                biased;
                stopped = stopped.as_mut() => {
                    (self.exit, self.all) = (stopped, stopped);
                    return Ok(());
                }
                () = &mut over => return Ok(()),
                event = handle.events.recv() => match event {
                    None | Some(Event::Closed) => return Ok(()),
                    Some(event) => match host::hear(self, handle, event).await? {
                        Some(Event::Background { running, ended }) if self.stream => {
                            self.in_background(running, ended.as_ref())?;
                        }
                        // Nothing follows the one result.
                        Some(Event::Background { running, ended }) => {
                            self.background.take(running, ended.as_ref(), self.session.as_ref());
                        }
                        _ => {}
                    },
                },
            }
        }
        Ok(())
    }

    /// Takes a line while something runs, or a request at any time; none at the end of the input.
    pub(super) async fn beside(&mut self, handle: &Handle, line: Option<Line>, lines: &mut Lines) -> io::Result<()> {
        match line {
            Some(Line::Prompt(typed))
                if typed.steers && self.turn && self.registry.parse_line(&typed.text) == Parsed::Message =>
            {
                if !self.prompts.is_new(typed.uuid) {
                    return Ok(());
                }
                let op = self.message(typed, Delivery::Steer)?;
                self.steering.sent(op.clone());
                // An engine that is gone tells so itself.
                let _ = handle.ops.send(op).await;
            }
            Some(line @ (Line::Prompt(_) | Line::Wrong(_))) => lines.keep(line),
            Some(Line::Request(request)) => control::take(self, handle, &request, lines).await?,
            Some(Line::Answer(id, answer)) => self.answered(handle, &id, answer).await?,
            Some(Line::Withdrawn) => {}
            None => self.left(handle).await,
        }
        Ok(())
    }

    /// As `beside`, while there is no session yet: only answers are taken at once.
    pub(super) async fn early(&mut self, handle: &Handle, line: Option<Line>, lines: &mut Lines) {
        match line {
            Some(Line::Answer(id, answer)) => {
                for (op, _) in self.host.answered(&id, answer) {
                    let _ = handle.ops.send(op).await;
                }
            }
            Some(line) => lines.keep(line),
            None => self.left(handle).await,
        }
    }

    async fn answered(&mut self, handle: &Handle, id: &str, answer: outside::Answer) -> io::Result<()> {
        let ops = self.host.answered(id, answer);
        if ops.iter().any(|(op, _)| matches!(op, Op::Answer { .. })) {
            self.state("running")?;
        }
        for (op, denied) in ops {
            self.denials.extend(denied);
            let _ = handle.ops.send(op).await;
        }
        Ok(())
    }

    /// Nothing more comes in.
    async fn left(&mut self, handle: &Handle) {
        for op in self.host.left() {
            let _ = handle.ops.send(op).await;
        }
    }

    /// Follows what runs in the background.
    pub(super) fn in_background(&mut self, running: Vec<Begun>, ended: Option<&Ended>) -> io::Result<()> {
        for line in self.background.take(running, ended, self.session.as_ref()) {
            if self.output == Output::StreamJson {
                self.line(&line)?;
            }
        }
        Ok(())
    }

    /// Tells programs what a sub-agent does.
    pub(super) fn below(&mut self, task: &Task) -> io::Result<()> {
        if self.output != Output::StreamJson {
            return Ok(());
        }
        let progress = self.background.progress(task, self.session.as_ref());
        lines::below(task).iter().chain(&progress).try_for_each(|line| self.line(line))
    }

    /// Takes what the engine says while it is not asked for anything. All else is for the next prompt.
    async fn meanwhile(&mut self, handle: &Handle, event: Event) -> io::Result<()> {
        match host::hear(self, handle, event).await? {
            Some(Event::Background { running, ended }) => self.in_background(running, ended.as_ref())?,
            Some(Event::Task(task)) => self.below(&task)?,
            Some(Event::Mode(ModeChange::Changed { mode })) => self.told_mode(mode)?,
            // Of a sub-agent: nobody would answer before the next prompt.
            Some(Event::Ask(ask)) => {
                let answer = self.nobody(ask.question);
                let _ = handle.ops.send(Op::Answer { id: ask.id, answer }).await;
            }
            Some(Event::Model(model)) => {
                if let Some(session) = &mut self.session {
                    session.model = model;
                }
            }
            event => self.kept.extend(event),
        }
        Ok(())
    }

    /// Forgets the prompt before.
    pub(super) fn begin_prompt(&mut self) {
        (self.answer, self.failed, self.rounds, self.report) = (String::new(), None, 0, None);
        (self.turn, self.structured, self.stopped, self.api_millis) = (false, None, None, 0);
        if self.stream {
            (self.exit, self.usage, self.cost) = (Exit::Done, Usage::default(), None);
            self.denials.clear();
        }
    }

    /// The op of a message; what came with it lies in files until the run ends.
    fn message(&mut self, typed: Typed, delivery: Delivery) -> io::Result<Op> {
        self.prompts.sent(&typed.text, typed.uuid);
        let mut attachments = Vec::new();
        for picture in typed.pictures {
            let mut file = tempfile::Builder::new().prefix("cocode-").suffix(picture.ending).tempfile()?;
            file.write_all(&picture.bytes)?;
            let path = file.into_temp_path();
            attachments.push(path.to_path_buf());
            self.pictures.push(path);
        }
        Ok(Op::Prompt { text: typed.text, attachments, delivery, thinking: typed.thinking, data: Vec::new() })
    }

    /// Runs one prompt or command to its end. False if the run cannot continue.
    async fn one(
        &mut self,
        handle: &mut Handle,
        typed: Typed,
        lines: &mut Lines,
        stopped: Pin<&mut impl Future<Output = Exit>>,
    ) -> io::Result<bool> {
        if !self.prompts.is_new(typed.uuid) {
            return Ok(true);
        }
        self.begin_prompt();
        let parsed = if typed.verbatim { Parsed::Message } else { self.registry.parse_line(&typed.text) };
        let op = match parsed {
            Parsed::Command { command, args } if typed.piped && !command.makes_turn(args) => {
                return self.wrong(&format!("/{} does not read standard input: add `< /dev/null`", command.name));
            }
            Parsed::Message => self.message(typed, Delivery::AfterTurn)?,
            Parsed::Command { command, .. } if typed.thinking.is_some() => {
                let text = format!("`thinking` only applies to messages, not to /{}: use --thinking", command.name);
                return self.wrong(&text);
            }
            Parsed::Command { command, .. } if !typed.pictures.is_empty() => {
                return self.wrong(&format!("images only go with messages, not with /{}", command.name));
            }
            Parsed::Command { command, .. } if command.needs_terminal() => {
                return self.wrong(&command.wants_terminal());
            }
            Parsed::Command { command, args } => Op::Command { name: command.name.clone(), args: args.to_owned() },
            Parsed::Served { .. } if typed.thinking.is_some() || !typed.pictures.is_empty() => {
                return self.wrong("`thinking` and images only go with messages, not with prompts of MCP servers");
            }
            Parsed::Served { name, args } => Op::Command { name: name.to_owned(), args: args.to_owned() },
            Parsed::Unknown { name } => return self.wrong(&self.registry.unknown(name)),
        };
        self.send(handle, op, lines, stopped).await
    }

    /// Gives the engine something to do, and sees it to its end.
    async fn send(
        &mut self,
        handle: &mut Handle,
        op: Op,
        lines: &mut Lines,
        stopped: Pin<&mut impl Future<Output = Exit>>,
    ) -> io::Result<bool> {
        if handle.ops.send(op.clone()).await.is_err() {
            self.all = Exit::Error;
            self.wrong("the engine stopped unexpectedly")?;
            return Ok(false);
        }
        self.work(handle, op, lines, stopped).await
    }

    /// Ends a prompt that cannot be begun.
    fn wrong(&mut self, text: &str) -> io::Result<bool> {
        self.failed = Some(text.to_owned());
        self.exit = Exit::Usage;
        self.finish(0)?;
        Ok(true)
    }
}
