//! From what comes in to what the engine is to do, one after the other.

use std::io::{self, Write};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;

use serde_json::{Value, json};

use super::background::{self, Asked};
use super::input::{Line, Lines, Typed};
use super::{Exit, Output, Run, lines, stop};
use crate::commands::Builtin;
use crate::commands::Parsed;
use crate::engine::Handle;
use crate::message::Usage;
use crate::protocol::{Delivery, Event, Op};
use crate::session::entry::{Begun, Ended};

/// How long commands in the background may still run once there is nothing more to do.
const GRACE: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Does all that comes in, to its end.
    pub(super) async fn all(
        &mut self,
        handle: &mut Handle,
        mut lines: Lines,
        stops: mpsc::UnboundedReceiver<Exit>,
    ) -> io::Result<()> {
        // One listener for the whole run: a signal between two events is not lost.
        let stopped = stop::signal(stops);
        tokio::pin!(stopped);
        let mut goes_on = self.begin(handle).await?;
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
                    self.meanwhile(event)?;
                    continue;
                }
                line = lines.next() => line,
            };
            goes_on = match line {
                None => return self.let_end(handle, stopped.as_mut()).await,
                Some(Line::Prompt(typed)) => self.one(handle, typed, &mut lines, stopped.as_mut()).await?,
                Some(Line::Wrong(problem)) => {
                    self.all = Exit::Usage;
                    self.begin_prompt();
                    self.wrong(&problem)?
                }
                Some(line) => self.beside(handle, line, &mut lines).await?,
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
        while !self.background.is_empty() {
            tokio::select! {
                biased;
                stopped = stopped.as_mut() => {
                    (self.exit, self.all) = (stopped, stopped);
                    return Ok(());
                }
                () = &mut over => return Ok(()),
                event = handle.events.recv() => match event {
                    Some(Event::Background { running, ended }) if self.stream => {
                        self.in_background(running, ended.as_ref())?;
                    }
                    // Nothing follows the one result.
                    Some(Event::Background { running, ended }) => {
                        self.background.take(running, ended.as_ref(), self.session.as_ref());
                    }
                    None | Some(Event::Closed) => return Ok(()),
                    Some(_) => {}
                },
            }
        }
        Ok(())
    }

    /// Takes a line while something runs, or a request at any time.
    pub(super) async fn beside(&mut self, handle: &Handle, line: Line, lines: &mut Lines) -> io::Result<bool> {
        let answer = match line {
            Line::Prompt(typed)
                if typed.steers && self.turn && self.registry.parse_line(&typed.text) == Parsed::Message =>
            {
                let op = self.message(typed, Delivery::Steer)?;
                self.steering.sent(op.clone());
                // An engine that is gone tells so itself.
                let _ = handle.ops.send(op).await;
                return Ok(true);
            }
            Line::Prompt(_) | Line::Wrong(_) => {
                lines.keep(line);
                return Ok(true);
            }
            Line::Interrupt(id) => {
                let _ = handle.ops.send(Op::Interrupt).await;
                lines::control(&id, Ok(json!({})))
            }
            Line::Background(id, asked) => lines::control(&id, self.asked(handle, asked).await),
            Line::Unknown(id, name) => {
                writeln!(self.err, "control request {name:?} is not supported")?;
                lines::control(&id, Err(format!("control request {name:?} is not supported")))
            }
        };
        if self.output == Output::StreamJson {
            self.line(&answer)?;
        }
        Ok(true)
    }

    /// Does what was asked about commands in the background.
    async fn asked(&mut self, handle: &Handle, asked: Asked) -> Result<Value, String> {
        let op = match asked {
            Asked::Move => Op::Background,
            Asked::Stop(task) if !self.background.runs(&task) => return Err(background::unknown(&task)),
            Asked::Stop(task) => Op::builtin(Builtin::Tasks, format!("stop {task}")),
            Asked::Output(task) => return self.background.output(&task, self.session.as_ref()),
        };
        // An engine that is gone tells so itself.
        let _ = handle.ops.send(op).await;
        Ok(json!({}))
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

    /// Takes what the engine says while it is not asked for anything. All else is for the next prompt.
    fn meanwhile(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Background { running, ended } => self.in_background(running, ended.as_ref()),
            event => {
                self.kept.push_back(event);
                Ok(())
            }
        }
    }

    /// Forgets the prompt before.
    pub(super) fn begin_prompt(&mut self) {
        (self.answer, self.failed, self.rounds, self.report) = (String::new(), None, 0, None);
        (self.turn, self.structured) = (false, None);
        if self.stream {
            (self.exit, self.usage, self.cost) = (Exit::Done, Usage::default(), None);
            self.denials.clear();
        }
    }

    /// The op of a message; what came with it lies in files until the run ends.
    fn message(&mut self, typed: Typed, delivery: Delivery) -> io::Result<Op> {
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
        self.begin_prompt();
        let op = match self.registry.parse_line(&typed.text) {
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
