//! One pipeline for every tool call: check, decide, ask, run, log. Nothing else runs a tool.

mod admit;
mod aside;
mod confined;
mod hooked;
mod lookup;
mod repeats;
mod run;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::admit::Admission;
pub(super) use self::confined::Confined;
pub(super) use self::repeats::Repeats;
use super::Agent;
use super::mailbox::Mailbox;
use super::skill_runs::Invocation;
use crate::hooks::Verdict;
use crate::message::{CallId, Effect, Message, Outcome, ToolCall, ToolResult};
use crate::permission::{Access, Mode};
use crate::protocol::{Answer, Event, Question, TurnEnd};
use crate::session;
use crate::session::entry::EntryKind;
use crate::stdx::process;
use crate::tools::{After, Tool};

/// The same call with the same result, so many times in a row, asks whether to continue.
const REPEATS: u32 = 5;

/// What the turn does after a round of calls.
pub(super) enum Flow {
    Continue,
    End(TurnEnd),
}

/// A call that may run.
struct Ready {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    access: Access,
    /// The file or folder that it names, links followed: what was decided about is what is read or written, or nothing is.
    target: Option<PathBuf>,
    /// It provably changes nothing: plan mode would let it run. Then undo need not speak of it, and nothing has to be on disk
    /// first.
    reads: bool,
    /// Git must not run what a repository names, as the decision that let the call run says.
    quiet_git: bool,
    /// What PreToolUse hooks said of it.
    said: Option<Verdict>,
    /// Nobody was asked.
    unasked: bool,
}

/// A call that ran, or will not.
struct Done {
    result: ToolResult,
    /// What is to be done once the result is in the log.
    after: Vec<After>,
}

impl From<ToolResult> for Done {
    fn from(result: ToolResult) -> Done {
        Done { result, after: Vec::new() }
    }
}

impl Agent {
    /// Answers every call exactly once, in order; read-only neighbours run side by side.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn dispatch_all(
        &mut self,
        calls: Vec<ToolCall>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Flow, session::Error> {
        let mut calls = VecDeque::from(calls);
        let mut end = None;
        while let Some(call) = calls.pop_front() {
            process::may_begin().await;
            if cancel.is_cancelled() {
                end = Some(TurnEnd::Interrupted);
            }
            if let Some(end) = end {
                let text = match end {
                    TurnEnd::Interrupted => "Interrupted by the user before it ran.",
                    _ => "Not run: the turn was stopped before it.",
                };
                self.answer(ToolResult::of_text(call.id, Outcome::Interrupted, text), mailbox).await?;
                continue;
            }
            let mut group = vec![call];
            if self.parallel(&group[0]) {
                while calls.front().is_some_and(|next| self.parallel(next)) {
                    group.extend(calls.pop_front());
                }
            }
            if let Some(stop) = self.round(group, mailbox, cancel).await? {
                end = Some(stop);
            }
        }
        self.restart_with_plan(mailbox).await?;
        Ok(end.map_or(Flow::Continue, Flow::End))
    }

    fn parallel(&self, call: &ToolCall) -> bool {
        call.invalid.is_none() && self.toolbox.get(&call.name).is_some_and(|tool| tool.read_only(&call.input))
    }

    /// Runs a group of calls: one, or several that change nothing.
    async fn round(
        &mut self,
        group: Vec<ToolCall>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let (mut order, mut ready, mut done, mut end) = (Vec::new(), Vec::new(), Vec::new(), None);
        for call in group {
            order.push((call.id.clone(), call.name.clone(), call.input.to_string()));
            if end.is_some() || cancel.is_cancelled() {
                let text = "Not run: the turn was stopped before it.";
                done.push(Done::from(ToolResult::of_text(call.id, Outcome::Interrupted, text)));
                continue;
            }
            match self.admit(call, mailbox, cancel).await? {
                Admission::Run(call) => ready.push(call),
                Admission::Refused(result) => done.push(result.into()),
                Admission::Stopped(result) => {
                    done.push(result.into());
                    end = Some(if cancel.is_cancelled() { TurnEnd::Interrupted } else { TurnEnd::Refused });
                }
                Admission::Halted(result) => {
                    done.push(result.into());
                    end = Some(TurnEnd::Stopped);
                }
            }
        }
        let mut able = Vec::with_capacity(ready.len());
        let several = order.len() > 1;
        for call in ready {
            // A question about another call may have been open for long.
            if several && let Some(refused) = self.no_longer(&call) {
                done.push(refused.into());
                continue;
            }
            match self.before(&call).await {
                Ok(()) => able.push(call),
                // What is there cannot be read, so it could not be put back: the model may go another way.
                Err(error @ session::Error::Io { action: "read", .. }) => {
                    let text = format!("Not run because it could not be undone: {error}");
                    done.push(ToolResult::of_text(call.call.id, Outcome::Error, text).into());
                }
                Err(error) => return Err(error),
            }
        }
        let ready = able;
        let accesses: Vec<(CallId, Access)> =
            ready.iter().map(|ready| (ready.call.id.clone(), ready.access.clone())).collect();
        let mut watched = self.watch_calls(&ready);
        done.extend(self.run_all(ready, mailbox, cancel).await?);
        for (id, name, input) in order {
            let Some(at) = done.iter().position(|done| done.result.id == id) else { continue };
            let Done { result, after } = done.swap_remove(at);
            let access = accesses.iter().find(|(call, _)| *call == id).map(|(_, access)| access);
            let again = self.repeats.note(&name, &input, &result);
            let read = match access {
                Some(Access::Read { path }) if result.outcome == Outcome::Ok => Some((id, path.clone())),
                _ => None,
            };
            watched.note(&result);
            self.answer(result, mailbox).await?;
            for after in after {
                match after {
                    After::EnterPlan => self.set_mode(Mode::Plan, mailbox).await?,
                    After::PlanApproved { how, plan } => self.approve_plan(how, plan, mailbox).await?,
                    After::Skill { name, args } => self.run_skill(Invocation { name, args }, mailbox, cancel).await?,
                    After::End(stop) => end = end.or(Some(stop)),
                }
            }
            if let Some((call, path)) = read {
                self.nested_memory(call, &path, mailbox, cancel).await?;
            }
            if again >= REPEATS && end.is_none() {
                self.repeats.clear();
                let question = Question::Repeated { tool: name, title: input, times: again };
                if !matches!(mailbox.ask(question, cancel).await, Some(Answer::Yes)) {
                    end = Some(if cancel.is_cancelled() { TurnEnd::Interrupted } else { TurnEnd::Repeated });
                }
            }
        }
        let stopped = self.after_calls(watched, mailbox, cancel).await?;
        Ok(end.or(stopped))
    }

    /// Logs a result and shows it.
    async fn answer(&mut self, result: ToolResult, mailbox: &Mailbox) -> Result<(), session::Error> {
        let todos = result.effects.iter().find_map(|effect| match effect {
            Effect::Todos { items } => Some(items.clone()),
            _ => None,
        });
        self.push(Message::tool_results(vec![result]), mailbox).await?;
        if let Some(items) = todos {
            mailbox.emit(Event::Todos { items }).await;
        }
        Ok(())
    }

    /// Makes a change undoable before it happens. For a command the log is then safe on disk; a tool that changes a file
    /// says so once it knows what it will write (`tools::Host::will_change`).
    async fn before(&mut self, ready: &Ready) -> Result<(), session::Error> {
        let above = self.family.above.clone();
        match &ready.access {
            Access::Write { path } => {
                let path = ready.target.as_ref().unwrap_or(path);
                return match above {
                    Some(above) => above.before_change(path).await,
                    None => self.conversation.session.before_change(path),
                };
            }
            Access::Shell { command, .. } if !ready.reads && !ready.tool.read_only(&ready.call.input) => {
                if let Some(above) = above {
                    return above.command(&ready.call.id, command).await;
                }
                self.conversation
                    .append(EntryKind::CommandRan { call: ready.call.id.clone(), command: command.clone() })?;
            }
            _ => return Ok(()),
        }
        self.conversation.session.sync()
    }
}
