//! One pipeline for every tool call: read, decide, ask, run, log. Nothing else decides about a call or runs it.

mod admit;
mod beside;
mod call;
mod confined;
mod contacts;
mod grounds;
mod hooked;
mod prepare;
mod repeats;
mod run;
mod undoing;
mod words;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::admit::Admission;
pub use self::beside::Beside;
use self::call::{Asks, Done, Heard, Permitted, Ready};
pub(super) use self::confined::{Confined, Nobody};
pub(super) use self::contacts::Connection;
use self::contacts::{Contacts, Next};
pub use self::grounds::Grounds;
use self::hooked::Watched;
pub(super) use self::prepare::Prepared;
pub(super) use self::repeats::Repeats;
pub(super) use self::run::Runner;
pub(super) use self::words::take as take_word;
use super::mailbox::Mailbox;
use super::plan::Leave;
use super::skill_runs::Invocation;
use super::subagent::Launcher;
use super::{Agent, Settings, events, host, prompt, tasks};
use crate::hooks::Occasion;
use crate::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult};
use crate::permission::{Access, Consent, Decision, Mode, Permit, Places};
use crate::protocol::{Answer, Approval, Event, Item, Question, TurnEnd};
use crate::provider::ToolSpec;
use crate::report;
use crate::session;
use crate::session::entry::EntryKind;
use crate::stdx::process;
use crate::tools::{self, After};

/// The same call with the same result, so many times in a row, asks whether to continue.
const REPEATS: u32 = 5;

/// What tools of MCP servers begin with.
const MCP: &str = "mcp__";

impl Agent {
    /// Reads the calls of a reply, and gives them their titles.
    pub(super) fn prepare(&self, reply: &mut Message) -> Vec<Prepared> {
        let prepare = |block: &mut Block| {
            let Block::ToolCall(call) = block else { return None };
            let prepared = self.prepare_call(call.clone());
            // A call of a server's tool goes by the name of that.
            call.clone_from(&prepared.call);
            Some(prepared)
        };
        reply.blocks.iter_mut().filter_map(prepare).collect()
    }

    fn prepare_call(&self, call: ToolCall) -> Prepared {
        Prepared::read(call, &self.toolbox, self.policy.dirs(&self.conversation))
    }

    /// The call, read when the server of its tool is there: what rules and modes say depends on what it says of the tool.
    async fn reached(&self, prepared: Prepared, cancel: &CancellationToken) -> Prepared {
        let name = &prepared.call.name;
        let Some(servers) = self.policy.servers.as_ref().filter(|servers| servers.is_starting(name)) else {
            return prepared;
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => prepared,
            () = servers.reached(name) => self.prepare_call(prepared.call),
        }
    }

    /// Answers every call exactly once, in order; read-only neighbours run side by side. Returns how the turn ends when it does.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn dispatch_all(
        &mut self,
        calls: Vec<Prepared>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let among = calls.len();
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
                let result = ToolResult::of_text(call.call.id, Outcome::Interrupted, text);
                self.conversation.answer(result, mailbox).await?;
                continue;
            }
            let mut group = vec![call];
            if group[0].reads() {
                while calls.front().is_some_and(Prepared::reads) {
                    group.extend(calls.pop_front());
                }
            }
            if let Some(stop) = crate::boxed(|| self.round((group, among), mailbox, cancel)).await? {
                end = Some(stop);
            }
        }
        let at = self.hooks_at();
        let stopped = self.hooking.after_batch(at, &mut self.conversation, mailbox, cancel).await?;
        end = end.or(stopped);
        if let Some(plan) = self.fresh.take() {
            self.compaction.restart(&plan, &mut self.conversation, &self.policy, &self.model.id).await?;
            self.repeats.clear();
            let text = "the conversation restarts with the approved plan".into();
            mailbox.emit(Event::Item(Item::Note { text })).await;
            mailbox.emit(Event::Usage(self.usage_info())).await;
        }
        Ok(end)
    }

    /// Runs a group of calls: one, or several that change nothing. Their results share the room of `among` calls.
    async fn round(
        &mut self,
        (group, among): (Vec<Prepared>, usize),
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
            match self.admit(prepared, Asks::Person, mailbox, cancel).await? {
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
                let grounds = self.policy.grounds(&self.conversation);
                call = match grounds.permitted_still(call, &self.conversation) {
                    Ok(call) => call,
                    Err(refused) => {
                        done.push((*refused).into());
                        continue;
                    }
                };
            }
            match undoing::announce(self, &mut call).await {
                Ok(()) => permitted.push(call),
                // What is there cannot be read, so it could not be put back: the model may go another way.
                Err(error @ session::Error::Io { action: "read", .. }) => {
                    let text = format!("Not run because it could not be undone: {error}");
                    done.push(ToolResult::of_text(call.ready.call.id, Outcome::Error, text).into());
                }
                Err(error) => return Err(error),
            }
        }
        let known: Vec<(CallId, Access, String)> = permitted
            .iter()
            .map(|Permitted { ready, .. }| (ready.call.id.clone(), ready.access.clone(), ready.work.title().to_owned()))
            .collect();
        let mut watched = Watched::of(&permitted, &self.hooking.hooks, &self.policy.grounds(&self.conversation));
        let from = self.conversation.context().cwd().to_path_buf();
        done.extend(self.run_all((permitted, among), mailbox, cancel).await?);
        for (id, name, input) in order {
            let Some(at) = done.iter().position(|done| done.result.id == id) else { continue };
            let Done { result, after, changed, millis } = done.swap_remove(at);
            let call = known.iter().find(|(call, ..)| *call == id);
            let again = self.repeats.note(&name, &input, &result);
            let read = match call {
                Some((_, Access::Read { path } | Access::Write { path }, _)) if result.outcome == Outcome::Ok => {
                    Some((id, path.clone()))
                }
                _ => None,
            };
            watched.note(&result, changed, millis);
            let before = events::todos_before(self, &result);
            self.conversation.answer(result, mailbox).await?;
            if let Some(before) = before {
                events::todos(self, &before, mailbox, cancel).await?;
            }
            for after in after {
                match after {
                    After::EnterPlan => self.set_mode(Mode::Plan, mailbox).await?,
                    After::PlanApproved { how, plan } => self.approve_plan(how, plan, mailbox).await?,
                    After::Skill { name, args } => {
                        crate::boxed(|| self.run_skill(Invocation { name, args }, mailbox, cancel)).await?
                    }
                    After::Denied { command, rules } => self.policy.denials.note(command, rules),
                    // It was noted when the call ended.
                    After::Changed(_) => {}
                    After::End(stop) => end = end.or(Some(stop)),
                }
            }
            if let Some((call, path)) = read {
                self.conversation.nested_memory((call, &path), &self.policy, mailbox, cancel).await?;
                events::instructions(self);
            }
            if again >= REPEATS && end.is_none() {
                self.repeats.clear();
                // One that never ran has no title.
                let title = call.map_or(input, |(_, _, title)| title.clone());
                let question = Question::Repeated { tool: name, title, times: again };
                if !matches!(tasks::beside(self, mailbox, mailbox.ask(question, cancel)).await?, Some(Answer::Yes)) {
                    end = Some(if cancel.is_cancelled() { TurnEnd::Interrupted } else { TurnEnd::Repeated });
                }
            }
        }
        let at = self.hooks_at();
        let stopped = self.hooking.after_calls(watched, at, &mut self.conversation, mailbox, cancel).await?;
        if self.conversation.context().cwd() != from {
            let occasion = Occasion::cwd_changed(&from, self.conversation.context().cwd());
            self.fire(occasion, mailbox, cancel).await?;
        }
        Ok(end.or(stopped))
    }

    /// Runs calls side by side, while modes change and sub-agents speak.
    async fn run_all(
        &mut self,
        (permitted, among): (Vec<Permitted>, usize),
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Vec<Done>, session::Error> {
        let words = self.tasks.words();
        let mut host = host::AgentHost::new(self.model.clone(), self.runs.view(), mailbox, cancel);
        host.words = Some(self.conversation.above.as_ref().map_or_else(|| words.clone(), |above| above.words.clone()));
        host.launcher = self.launcher();
        if let Some(launcher) = &host.launcher {
            let calls = permitted.iter().map(|permitted| &permitted.ready.call);
            let (agents, forecast) = launcher.forecast(calls.filter(|call| call.name == tools::TASK));
            if let Some(text) = report::cache::fan_out(agents, &forecast) {
                mailbox.emit(Event::Notice { text }).await;
            }
        }
        let (connections, mut contacts) = Contacts::new();
        host.connections = Some(connections);
        let (door, mut handed) = tasks::door(self);
        host.tasks = Some(door);
        let host = Arc::new(host);
        let settings = self.settings.tools.shared(among);
        let runner = Runner::new(&self.policy, &self.conversation, &settings, host.clone(), cancel);
        let all = join_all(permitted.into_iter().map(|call| runner.run(call, Heard::Wholly(mailbox))));
        tokio::pin!(all);
        loop {
            tokio::select! {
                biased;
                mut results = &mut all => {
                    tasks::hear(self, mailbox).await?;
                    let spent = std::mem::take(&mut *host.spent.lock().unwrap_or_else(PoisonError::into_inner));
                    for usage in spent {
                        self.spend("web search", usage)?;
                    }
                    for done in &mut results {
                        undoing::note(self, done, mailbox).await?;
                    }
                    return Ok(results);
                }
                () = mailbox.changed() => {
                    self.take_mode(mailbox).await?;
                    contacts.recheck(self);
                }
                Some(handed) = handed.recv() => tasks::take(self, handed, mailbox).await,
                news = self.tasks.next() => {
                    tasks::note(self, news, mailbox).await?;
                    contacts.recheck(self);
                }
                next = contacts.next() => match next {
                    Next::Heard(connection) => contacts.take(connection, self, mailbox, cancel),
                    Next::Answered(key, answer) => {
                        contacts.answered(key, answer, self, mailbox).await?;
                    }
                },
            }
        }
    }

    /// What calls run with that launch nobody.
    fn runner(&self, mailbox: &Mailbox, cancel: &CancellationToken) -> Runner {
        let host = Arc::new(host::AgentHost::new(self.model.clone(), self.runs.view(), mailbox, cancel));
        Runner::new(&self.policy, &self.conversation, &self.settings.tools, host, cancel)
    }

    /// Runs a call that the model did not make under the rules of all calls, and shows it like one: a command or a
    /// sub-agent that a skill wants. The model reads only what becomes of its output.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn aside(
        &mut self,
        tool: &str,
        input: Value,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, session::Error> {
        let id = CallId::nth(self.conversation.session.next_call());
        let prepared = self.prepare_call(ToolCall::new(id.clone(), tool, input));
        let shown = Message::reply(vec![Block::ToolCall(prepared.call.clone())]);
        self.conversation.push(Message { agent_visible: false, ..shown }, mailbox).await?;
        let result = match self.admit(prepared, Asks::Person, mailbox, cancel).await? {
            Admission::Run(mut permitted) => {
                undoing::announce(self, &mut permitted).await?;
                let permitted = vec![permitted];
                let mut watched =
                    Watched::of(&permitted, &self.hooking.hooks, &self.policy.grounds(&self.conversation));
                let done = self.run_all((permitted, 1), mailbox, cancel).await?;
                let none = || ToolResult::of_text(id, Outcome::Interrupted, "It did not run.");
                let done = done.into_iter().next().unwrap_or_else(|| none().into());
                watched.note(&done.result, done.changed, done.millis);
                let result = done.result;
                let at = self.hooks_at();
                self.hooking.after_calls(watched, at, &mut self.conversation, mailbox, cancel).await?;
                result
            }
            Admission::Refused(result) | Admission::Stopped(result) | Admission::Halted(result) => result,
        };
        let shown = Message::tool_results(vec![result.clone()]);
        self.conversation.push(Message { agent_visible: false, ..shown }, mailbox).await?;
        Ok(result)
    }

    /// Runs a line of the user's own through the shell tool; nobody is asked.
    ///
    /// # Errors
    /// The log cannot be written; the command did not run.
    pub async fn user_command(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
        mailbox: &Mailbox,
    ) -> Result<ToolResult, session::Error> {
        let id = CallId(format!("user_{}", self.conversation.session.next_seq()));
        let mut permitted = match self.of_hand(id, tools::BASH, json!({ "command": command })) {
            Ok(ready) => ready.with(Permit::by_hand(), Consent::Given),
            Err((id, problem)) => return Ok(ToolResult::of_text(id, Outcome::Error, problem)),
        };
        self.conversation.append(EntryKind::ShellStarted { command: command.to_owned() })?;
        undoing::announce(self, &mut permitted).await?;
        let runner = self.runner(mailbox, cancel);
        let run = crate::boxed(|| runner.run(permitted, Heard::Output(mailbox)));
        let mut done = crate::boxed(|| tasks::beside(self, mailbox, run)).await?;
        undoing::note(self, &mut done, mailbox).await?;
        Ok(done.result)
    }

    /// What lines of the user run with beside the turn that is about to begin, until `cancel` ends them.
    pub fn beside(&self, mailbox: &Mailbox, cancel: &CancellationToken) -> Beside {
        let (grounds, dirs) = (self.policy.grounds(&self.conversation), self.policy.dirs(&self.conversation));
        Beside::new(grounds, self.toolbox.clone(), dirs, self.runner(mailbox, cancel))
    }

    /// Reads a file through the Read tool, so that its limits hold, where reading it needs no question in these places. An
    /// error is the decision that forbids it.
    pub(in crate::agent) async fn attach(
        &self,
        path: &Path,
        places: Places,
        mailbox: &Mailbox,
    ) -> Result<ToolResult, Decision> {
        let ready = match self.of_hand(CallId("attachment".into()), tools::READ, json!({ "file_path": path })) {
            Ok(ready) => ready,
            Err((id, problem)) => return Ok(ToolResult::of_text(id, Outcome::Error, problem)),
        };
        let permitted = Grounds { places, ..self.policy.grounds(&self.conversation) }.admit(ready)?;
        let cancel = CancellationToken::new();
        Ok(self.runner(mailbox, &cancel).run(permitted, Heard::Nobody).await.result)
    }

    fn of_hand(&self, id: CallId, tool: &str, input: Value) -> Result<Ready, (CallId, String)> {
        if self.toolbox.get(tool).is_none() {
            return Err((id, format!("the {tool} tool is switched off")));
        }
        self.ready(ToolCall::new(id, tool, input))
    }

    /// What a summarizer may call: Read, and what MCP servers declare to change nothing.
    pub(in crate::agent) fn lookup_specs(&self) -> Vec<ToolSpec> {
        let reads = |name: &str| {
            let tool = self.toolbox.get(name).filter(|_| name.starts_with(MCP));
            name == tools::READ || tool.is_some_and(|tool| tool.manners().reads)
        };
        self.tool_specs.iter().filter(|spec| reads(&spec.name)).cloned().collect()
    }

    /// Answers a call of a summarizer: nobody is asked, and neither conversation nor screen shows it.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn look_up(
        &mut self,
        call: ToolCall,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, session::Error> {
        if !self.lookup_specs().iter().any(|spec| spec.name == call.name) {
            let text = "This tool is not available here: answer with what you know.";
            return Ok(ToolResult::of_text(call.id, Outcome::Denied, text));
        }
        let (mailbox, prepared) = (Mailbox::unattended(), self.prepare_call(call));
        let permitted = match self.admit(prepared, Asks::Nobody, &mailbox, cancel).await? {
            Admission::Run(permitted) => permitted,
            Admission::Refused(result) | Admission::Stopped(result) | Admission::Halted(result) => return Ok(result),
        };
        Ok(self.runner(&mailbox, cancel).run(permitted, Heard::Nobody).await.result)
    }

    /// Carries out what the user chose in the review of a plan.
    async fn approve_plan(&mut self, how: Approval, plan: String, mailbox: &Mailbox) -> Result<(), session::Error> {
        let mode = match how {
            Approval::AcceptEdits => Mode::AcceptEdits,
            Approval::AskEach | Approval::FreshContext => Mode::Default,
        };
        if mode != self.conversation.mode() {
            self.enter_mode(mode, Leave::Approved, mailbox).await?;
        }
        if how == Approval::FreshContext {
            self.fresh = Some(plan);
        }
        Ok(())
    }

    /// Lets edits of the whole session run from now on. What else was chosen meanwhile stays.
    async fn accept_edits(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        match &self.conversation.above {
            Some(above) => above.accept_edits(),
            None if self.conversation.mode() == Mode::Default => self.set_mode(Mode::Edits, mailbox).await?,
            None => {}
        }
        Ok(())
    }

    /// What launching takes; none for a sub-agent, which launches nobody.
    fn launcher(&self) -> Option<Arc<Launcher>> {
        if self.conversation.above.is_some() {
            return None;
        }
        // Both may have been logged without being shown.
        self.family.set_mode(self.conversation.mode());
        self.family.set_thinking(self.conversation.facts().thinking);
        let mut policy = self.policy.clone();
        policy.places.cwd = self.conversation.context().cwd().to_path_buf();
        let opening =
            self.conversation.context().entries().map(|(_, message)| message).find(|message| prompt::opens(message));
        Some(Arc::new(Launcher {
            model: self.model.clone(),
            policy,
            settings: Settings { thinking: self.thinking.below(&self.settings.thinking), ..self.settings.clone() },
            toolbox: self.toolbox.clone(),
            grants: self.grants.clone(),
            hooks: self.hooking.hooks.branch(),
            git: self.conversation.git.known(),
            date: self.conversation.date.clone(),
            clock: self.clock,
            transcripts: self.conversation.session.transcripts(),
            opening: opening.cloned(),
            definitions: self.family.definitions.clone(),
            skills: self.runs.settings.clone(),
            seats: self.family.seats.clone(),
            standing: self.family.standing(),
            words: self.tasks.words(),
            board: self.tasks.board.clone(),
            store: self.conversation.session.store().clone(),
            known: self.conversation.facts().tasks.iter().map(|task| task.begun.task.clone()).collect(),
            purse: self.budget.purse.clone(),
            plan: self.conversation.open_plan(),
        }))
    }
}
