//! One pipeline for every tool call: read, decide, ask, run, log. Nothing else decides about a call or runs it.

mod admit;
mod aside;
mod confined;
mod grounds;
mod hooked;
mod lookup;
mod prepare;
mod repeats;
mod run;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use self::admit::Admission;
pub(super) use self::confined::Confined;
pub use self::grounds::Grounds;
pub(super) use self::prepare::Prepared;
pub(super) use self::repeats::Repeats;
use super::Agent;
use super::mailbox::Mailbox;
use super::skill_runs::Invocation;
use crate::hooks::Verdict;
use crate::message::{Block, CallId, Effect, Message, Outcome, ToolCall, ToolResult};
use crate::permission::{Access, Consent, Mode, Permit};
use crate::protocol::{Answer, Event, Question, TurnEnd};
use crate::session;
use crate::session::entry::EntryKind;
use crate::stdx::process;
use crate::tools::{After, Call};

/// The same call with the same result, so many times in a row, asks whether to continue.
const REPEATS: u32 = 5;

/// What the turn does after a round of calls.
pub(super) enum Flow {
    Continue,
    End(TurnEnd),
}

/// What holds for the calls that hooks and rules let through, by where they come from.
#[derive(Debug, Clone, Copy)]
struct Policy {
    asks: Asks,
    /// What hooks add to a call joins the conversation.
    told: bool,
}

/// Who is asked where the rules ask.
#[derive(Debug, Clone, Copy)]
enum Asks {
    Person,
    /// Nobody: the caller is told this in place of the reason.
    Nobody(&'static str),
}

impl Policy {
    /// Of calls that the user sees: the model's own, and what skills want run.
    const ASKING: Policy = Policy { asks: Asks::Person, told: true };
    /// Of a summarizer.
    const LOOKUP: Policy = Policy {
        asks: Asks::Nobody(
            "Denied: this would need the user's approval, and nobody is asked while a summary is written.",
        ),
        told: false,
    };
}

/// Who hears of a call while it runs.
#[derive(Clone, Copy)]
enum Heard<'a> {
    /// Its beginning and what it writes.
    Wholly(&'a Mailbox),
    /// What it writes: something else shows that it began.
    Output(&'a Mailbox),
    Nobody,
}

/// A call that fits its tool, and waits for a decision.
struct Ready {
    call: ToolCall,
    work: Call,
    /// What it touches, as rules name it.
    access: Access,
    /// The file or folder that it names, links followed: what was decided about is what is read or written, or nothing is.
    target: Option<PathBuf>,
    /// What PreToolUse hooks said of it.
    said: Option<Verdict>,
}

impl Ready {
    fn new(call: ToolCall, work: Call, access: Access) -> Ready {
        Ready { target: access.target(), call, work, access, said: None }
    }

    fn with(self, permit: Permit, consent: Consent) -> Permitted {
        Permitted { ready: self, permit, consent }
    }

    /// What the call would do, as far as one line says it.
    fn subject(&self) -> String {
        match &self.access {
            Access::Shell { command, .. } => command.to_string(),
            _ => format!("{} {}", self.call.name, self.work.title()).trim().to_owned(),
        }
    }
}

/// A call that runs.
struct Permitted {
    ready: Ready,
    permit: Permit,
    consent: Consent,
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
    /// Reads the calls of a reply, and gives them their titles.
    pub(super) fn prepare(&self, reply: &mut Message) -> Vec<Prepared> {
        let calls = reply.blocks.iter_mut().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        });
        let prepare = |call: &mut ToolCall| {
            let prepared = self.prepare_call(call.clone());
            call.title.clone_from(&prepared.call.title);
            prepared
        };
        calls.map(prepare).collect()
    }

    fn prepare_call(&self, call: ToolCall) -> Prepared {
        Prepared::read(call, &self.toolbox, self.dirs())
    }

    /// What decisions are made on now.
    pub(super) fn grounds(&self) -> Grounds<'_> {
        Grounds { mode: self.mode(), rules: Cow::Borrowed(&self.policy.rules), places: self.places() }
    }

    /// Answers every call exactly once, in order; read-only neighbours run side by side.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn dispatch_all(
        &mut self,
        calls: Vec<Prepared>,
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
                self.answer(ToolResult::of_text(call.call.id, Outcome::Interrupted, text), mailbox).await?;
                continue;
            }
            let mut group = vec![call];
            if group[0].reads() {
                while calls.front().is_some_and(Prepared::reads) {
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

    /// Runs a group of calls: one, or several that change nothing.
    async fn round(
        &mut self,
        group: Vec<Prepared>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let (mut order, mut admitted, mut done, mut end) = (Vec::new(), Vec::new(), Vec::new(), None);
        for prepared in group {
            let call = &prepared.call;
            order.push((call.id.clone(), call.name.clone(), call.input.to_string()));
            if end.is_some() || cancel.is_cancelled() {
                let text = "Not run: the turn was stopped before it.";
                done.push(Done::from(ToolResult::of_text(call.id.clone(), Outcome::Interrupted, text)));
                continue;
            }
            match self.admit(prepared, Policy::ASKING, mailbox, cancel).await? {
                Admission::Run(permitted) => admitted.push(permitted),
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
        let mut permitted = Vec::with_capacity(admitted.len());
        let several = order.len() > 1;
        for mut call in admitted {
            // A question about another call may have been open for long.
            if several {
                call = match self.permitted_still(call) {
                    Ok(call) => call,
                    Err(refused) => {
                        done.push((*refused).into());
                        continue;
                    }
                };
            }
            match self.before(&call).await {
                Ok(()) => permitted.push(call),
                // What is there cannot be read, so it could not be put back: the model may go another way.
                Err(error @ session::Error::Io { action: "read", .. }) => {
                    let text = format!("Not run because it could not be undone: {error}");
                    done.push(ToolResult::of_text(call.ready.call.id, Outcome::Error, text).into());
                }
                Err(error) => return Err(error),
            }
        }
        let accesses: Vec<(CallId, Access)> =
            permitted.iter().map(|call| (call.ready.call.id.clone(), call.ready.access.clone())).collect();
        let mut watched = self.watch_calls(&permitted);
        done.extend(self.run_all(permitted, mailbox, cancel).await?);
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
    async fn before(&mut self, permitted: &Permitted) -> Result<(), session::Error> {
        let Permitted { ready: Ready { call, access, .. }, permit, .. } = permitted;
        let above = self.family.above.clone();
        match access {
            Access::Write { path } => {
                let path = permit.target().unwrap_or(path);
                return match above {
                    Some(above) => above.before_change(path).await,
                    None => self.conversation.session.before_change(path),
                };
            }
            Access::Shell { command, .. } if !permit.reads() => {
                if let Some(above) = above {
                    return above.command(&call.id, command).await;
                }
                self.conversation
                    .append(EntryKind::CommandRan { call: call.id.clone(), command: command.to_string() })?;
            }
            _ => return Ok(()),
        }
        self.conversation.session.sync()
    }
}
