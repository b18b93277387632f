//! One pipeline for every tool call: check, decide, ask, run, log. Nothing else runs a tool.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::desk::Desk;
use crate::message::{CallId, Display, Effect, Message, Outcome, ToolCall, ToolResult};
use crate::permission::{self, Access, Behavior, Decision, Disk, QUIET_GIT, Query, Sight};
use crate::protocol::{Answer, Delta, Event, Item, Question, TurnEnd};
use crate::session;
use crate::session::entry::EntryKind;
use crate::stdx::hash::sha256_hex;
use crate::tools::{self, Tool};

/// The same call with the same result, so many times in a row, asks whether to go on.
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
}

enum Admission {
    Run(Ready),
    Refused(ToolResult),
    /// The user stopped the turn with the refusal.
    Stopped(ToolResult),
}

/// How a question about a call was settled.
enum Waited {
    /// By a person; none when the turn was interrupted.
    Answer(Option<Answer>),
    /// By a change of mode.
    Decided(Decision),
}

impl Agent {
    /// Answers every call exactly once, in order; read-only neighbours run side by side.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn dispatch_all(
        &mut self,
        calls: Vec<ToolCall>,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Flow, session::Error> {
        let mut calls = VecDeque::from(calls);
        let mut end = None;
        while let Some(call) = calls.pop_front() {
            if cancel.is_cancelled() {
                end = Some(TurnEnd::Interrupted);
            }
            if let Some(end) = end {
                let text = match end {
                    TurnEnd::Interrupted => "Interrupted by the user before it ran.",
                    _ => "Not run: the turn was stopped before it.",
                };
                self.answer(ToolResult::of_text(call.id, Outcome::Interrupted, text), desk).await?;
                continue;
            }
            let mut group = vec![call];
            if self.parallel(&group[0]) {
                while calls.front().is_some_and(|next| self.parallel(next)) {
                    group.extend(calls.pop_front());
                }
            }
            if let Some(stop) = self.round(group, desk, cancel).await? {
                end = Some(stop);
            }
        }
        Ok(end.map_or(Flow::Continue, Flow::End))
    }

    fn parallel(&self, call: &ToolCall) -> bool {
        call.invalid.is_none() && self.toolbox.get(&call.name).is_some_and(|tool| tool.read_only(&call.input))
    }

    /// Runs a group of calls: one, or several that change nothing.
    async fn round(
        &mut self,
        group: Vec<ToolCall>,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let (mut order, mut ready, mut done, mut end) = (Vec::new(), Vec::new(), Vec::new(), None);
        for call in group {
            order.push((call.id.clone(), call.name.clone(), call.input.to_string()));
            if end.is_some() || cancel.is_cancelled() {
                done.push(ToolResult::of_text(
                    call.id,
                    Outcome::Interrupted,
                    "Not run: the turn was stopped before it.",
                ));
                continue;
            }
            match self.admit(call, desk, cancel).await? {
                Admission::Run(call) => ready.push(call),
                Admission::Refused(result) => done.push(result),
                Admission::Stopped(result) => {
                    done.push(result);
                    end = Some(if cancel.is_cancelled() { TurnEnd::Interrupted } else { TurnEnd::Refused });
                }
            }
        }
        let mut able = Vec::with_capacity(ready.len());
        for call in ready {
            match self.before(&call) {
                Ok(()) => able.push(call),
                // What is there cannot be read, so it could not be put back: the model may go another way.
                Err(error @ session::Error::Io { action: "read", .. }) => {
                    let text = format!("Not run, since it could not be undone: {error}");
                    done.push(ToolResult::of_text(call.call.id, Outcome::Error, text));
                }
                Err(error) => return Err(error),
            }
        }
        let ready = able;
        let accesses: Vec<(CallId, Access)> =
            ready.iter().map(|ready| (ready.call.id.clone(), ready.access.clone())).collect();
        done.extend(self.run_all(ready, desk, cancel).await?);
        for (id, name, input) in order {
            let Some(at) = done.iter().position(|result| result.id == id) else { continue };
            let result = done.swap_remove(at);
            let access = accesses.iter().find(|(call, _)| *call == id).map(|(_, access)| access);
            if let Some(Access::Write { path }) = access {
                self.session.after_change(path)?;
            }
            let again = self.repeats.note(&name, &input, &result);
            let read = match access {
                Some(Access::Read { path }) if result.outcome == Outcome::Ok => Some(path.clone()),
                _ => None,
            };
            self.answer(result, desk).await?;
            if let Some(path) = read {
                self.nested_memory(&path, desk, cancel).await?;
            }
            if again >= REPEATS && end.is_none() {
                self.repeats.clear();
                let question = Question::Repeated { tool: name, title: input, times: again };
                if !matches!(desk.ask(question, cancel).await, Some(Answer::Yes)) {
                    end = Some(if cancel.is_cancelled() { TurnEnd::Interrupted } else { TurnEnd::Repeated });
                }
            }
        }
        Ok(end)
    }

    /// Logs a result and shows it.
    async fn answer(&mut self, result: ToolResult, desk: &Desk) -> Result<(), session::Error> {
        let todos = result.effects.iter().find_map(|effect| match effect {
            Effect::Todos { items } => Some(items.clone()),
            _ => None,
        });
        self.push(Message::tool_results(vec![result]), desk).await?;
        if let Some(items) = todos {
            desk.emit(Event::Todos { items }).await;
        }
        Ok(())
    }

    /// Checks the call, decides, and asks where the decision is to ask.
    async fn admit(
        &mut self,
        call: ToolCall,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Admission, session::Error> {
        let refuse =
            |outcome, text: String| Ok(Admission::Refused(ToolResult::of_text(call.id.clone(), outcome, text)));
        let Some(tool) = self.toolbox.get(&call.name).cloned() else {
            let names: Vec<String> = self.tool_specs.iter().map(|spec| spec.name.clone()).collect();
            return refuse(
                Outcome::Error,
                format!("There is no tool named {:?}. The tools are: {}.", call.name, names.join(", ")),
            );
        };
        if let Some(raw) = &call.invalid {
            let start: String = raw.chars().take(200).collect();
            return refuse(
                Outcome::Error,
                format!("The arguments are not valid JSON: {start:?}. Send one JSON object that fits the schema."),
            );
        }
        let dirs = self.dirs();
        let access = match tool.access(&call.input, &dirs, self.settings.user_home.as_deref()) {
            Ok(access) => access,
            Err(problem) => return refuse(Outcome::Error, problem),
        };
        self.take_mode(desk).await?;
        let decision = self.decide(&call.name, &access);
        tracing::debug!(tool = %call.name, behavior = ?decision.behavior, "decided");
        match decision.behavior {
            Behavior::Allow => Ok(Admission::Run(Ready { call, tool, access })),
            Behavior::Deny => refuse(Outcome::Denied, format!("Refused: {}.", decision.reasons.join("; "))),
            Behavior::Ask => self.ask(Ready { call, tool, access }, decision, desk, cancel).await,
        }
    }

    pub(super) fn decide(&self, tool: &str, access: &Access) -> Decision {
        let places = self.places();
        let query = Query {
            tool,
            access,
            mode: self.mode(),
            rules: &self.policy.rules,
            places: &places,
            trust: self.policy.trust,
        };
        permission::decide(&query, &Disk)
    }

    async fn ask(
        &mut self,
        ready: Ready,
        decision: Decision,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Admission, session::Error> {
        let dirs = self.dirs();
        let mut diff = ready.tool.preview(&ready.call.input, &dirs, self.settings.user_home.as_deref());
        if let Some(diff) = &mut diff
            && let Ok(below) = Path::new(&diff.path).strip_prefix(&dirs.project)
        {
            diff.path = below.to_string_lossy().into_owned();
        }
        let question = Question::Permission {
            call: ready.call.id.clone(),
            tool: ready.call.name.clone(),
            title: ready.tool.title(&ready.call.input),
            input: ready.call.input.clone(),
            diff,
            reasons: decision.reasons,
            suggestions: decision.suggestions.iter().map(ToString::to_string).collect(),
        };
        let result = |outcome, text: &str| ToolResult::of_text(ready.call.id.clone(), outcome, text);
        // The screen shows the user's own words, if any: what the model is told is no news to who said it.
        let refused = |text: &str, words: &str| ToolResult {
            display: Some(Display::Line { text: words.to_owned() }),
            ..result(Outcome::Denied, text)
        };
        let answer = match self.wait(&ready, question, desk, cancel).await? {
            Waited::Answer(answer) => answer,
            Waited::Decided(decision) if decision.behavior == Behavior::Allow => return Ok(Admission::Run(ready)),
            Waited::Decided(decision) => {
                let text = format!("Refused: {}.", decision.reasons.join("; "));
                return Ok(Admission::Refused(result(Outcome::Denied, &text)));
            }
        };
        Ok(match answer {
            None => Admission::Stopped(result(Outcome::Interrupted, "Interrupted by the user before it ran.")),
            Some(Answer::Yes) => Admission::Run(ready),
            Some(Answer::Always { rules, scope }) => {
                for rule in rules {
                    if let Err(problem) = self.grant(&rule, scope)? {
                        desk.emit(Event::Notice { text: format!("`{rule}` holds for this session only: {problem}") })
                            .await;
                    }
                }
                Admission::Run(ready)
            }
            Some(Answer::No { feedback: Some(words) }) if !words.trim().is_empty() => Admission::Refused(refused(
                &format!("The user refused this call and says what to do instead: {}", words.trim()),
                words.trim(),
            )),
            Some(Answer::No { .. } | Answer::Fork | Answer::ReadOnly) => Admission::Stopped(refused(
                "The user refused this call and stopped the turn. Wait for what they say next.",
                "",
            )),
        })
    }

    /// Waits for the answer. A mode change meanwhile decides anew, and may make the question pointless.
    async fn wait(
        &mut self,
        ready: &Ready,
        question: Question,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Waited, session::Error> {
        let open = cancel.child_token();
        let asked = desk.ask(question, &open);
        tokio::pin!(asked);
        loop {
            let answer = tokio::select! {
                biased;
                () = desk.changed() => None,
                answer = &mut asked => Some(answer),
            };
            self.take_mode(desk).await?;
            let decision = self.decide(&ready.call.name, &ready.access);
            match answer {
                // A yes in the old mode is none in the new one.
                Some(Some(Answer::Yes | Answer::Always { .. })) if decision.behavior == Behavior::Deny => {
                    return Ok(Waited::Decided(decision));
                }
                Some(answer) => return Ok(Waited::Answer(answer)),
                None if decision.behavior == Behavior::Ask => {}
                None => {
                    open.cancel();
                    // An answer that arrived in this very moment is too late.
                    let _ = asked.await;
                    return Ok(Waited::Decided(decision));
                }
            }
        }
    }

    /// Makes a change undoable, and the log safe on disk, before it happens.
    fn before(&mut self, ready: &Ready) -> Result<(), session::Error> {
        match &ready.access {
            Access::Write { path } => self.session.before_change(path)?,
            Access::Shell { command, .. }
                if !ready.tool.read_only(&ready.call.input)
                    && !self.provably_read_only(&ready.call.name, &ready.access) =>
            {
                self.session.append(EntryKind::CommandRan { call: ready.call.id.clone(), command: command.clone() })?;
            }
            _ => return Ok(()),
        }
        self.session.sync()
    }

    /// Whether plan mode would let it run: then undo need not speak of it, and nothing has to be on disk first.
    fn provably_read_only(&self, tool: &str, access: &Access) -> bool {
        let places = self.places();
        let rules = permission::RuleSet::default();
        let query = Query {
            tool,
            access,
            mode: permission::Mode::Plan,
            rules: &rules,
            places: &places,
            trust: permission::Trust::Untrusted,
        };
        permission::decide(&query, &Disk).behavior == Behavior::Allow
    }

    /// What a search may show: the files that the rules keep back stay out of its results.
    fn sight(&self, ready: &Ready) -> Sight {
        let places = self.places();
        let query = Query {
            tool: &ready.call.name,
            access: &ready.access,
            mode: self.mode(),
            rules: &self.policy.rules,
            places: &places,
            trust: self.policy.trust,
        };
        Sight::of(&query, &Disk)
    }

    /// Settings for a line that runs because it only reads: git must not run what a repository's configuration names.
    /// None for any other call, so that hooks and filters work where the user allowed a change.
    fn quiet(&self, ready: &Ready) -> Option<tools::Settings> {
        let Access::Shell { command, .. } = &ready.access else { return None };
        if !command.contains("git") || !self.provably_read_only(&ready.call.name, &ready.access) {
            return None;
        }
        let mut settings = (*self.settings.tools).clone();
        settings.env.extend(QUIET_GIT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Some(settings)
    }

    async fn run_all(
        &mut self,
        ready: Vec<Ready>,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolResult>, session::Error> {
        // The runs own what they look at, so that the session can be written while they go on.
        let context = self.session.context();
        let (dirs, seen, todos) = (self.dirs(), context.seen().clone(), context.todos().to_vec());
        let (store, settings, host, user_home) =
            (self.session.store().clone(), self.settings.tools.clone(), self.host(), self.settings.user_home.clone());
        let ready: Vec<_> = ready
            .into_iter()
            .map(|ready| {
                let sight = self.sight(&ready);
                let quiet = self.quiet(&ready);
                (ready, sight, quiet)
            })
            .collect();
        let runs = ready.into_iter().map(|(Ready { call, tool, .. }, sight, quiet)| {
            let (dirs, seen, todos, store, settings, host, user_home) =
                (&dirs, &seen, todos.as_slice(), &store, &*settings, &host, user_home.as_deref());
            async move {
                let settings = quiet.as_ref().unwrap_or(settings);
                let title = tool.title(&call.input);
                desk.emit(Event::Item(Item::CallStarted { call: call.id.clone(), tool: call.name.clone(), title }))
                    .await;
                let (live, mut output) = mpsc::unbounded_channel();
                let context = tools::Context {
                    call: call.id.as_str(),
                    dirs,
                    sight: &sight,
                    home: user_home,
                    seen,
                    todos,
                    settings,
                    store,
                    host,
                    live,
                    cancel,
                };
                let running = AssertUnwindSafe(tool.run(call.input.clone(), &context)).catch_unwind();
                tokio::pin!(running);
                let finished = loop {
                    tokio::select! {
                        finished = &mut running => break finished,
                        Some(text) = output.recv() => {
                            desk.emit(Event::Delta(Delta::ToolOutput { call: call.id.clone(), text })).await;
                        }
                    }
                };
                let output = finished.unwrap_or_else(|_| {
                    tools::Output::error("The tool crashed; this is a bug of cocode. Try another way.")
                });
                let output = tools::limit::apply(output, settings, store, call.id.as_str());
                ToolResult {
                    id: call.id.clone(),
                    outcome: output.outcome,
                    content: output.content,
                    display: output.display,
                    effects: output.effects,
                }
            }
        });
        let all = join_all(runs);
        tokio::pin!(all);
        loop {
            tokio::select! {
                biased;
                results = &mut all => {
                    self.record_searches(&host)?;
                    return Ok(results);
                }
                () = desk.changed() => self.take_mode(desk).await?,
            }
        }
    }
}

/// Counts how often the same call gave the same result since something was changed: a model that goes in circles may
/// well put another call in between.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    seen: HashMap<(String, String, String), u32>,
}

impl Repeats {
    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }

    /// Notes a call and its result; how often the two came together by now.
    fn note(&mut self, tool: &str, input: &str, result: &ToolResult) -> u32 {
        let changed = matches!(result.display, Some(Display::Diff(_))) && result.outcome == Outcome::Ok;
        if changed {
            self.clear();
        }
        let times =
            self.seen.entry((tool.to_owned(), input.to_owned(), sha256_hex(result.text().as_bytes()))).or_default();
        *times += 1;
        *times
    }
}
