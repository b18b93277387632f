//! What hooks have to say about a call: what it means for the decision, and what follows once the call has run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::admit::Admission;
use super::call::{Permitted, Ready};
use super::grounds::Grounds;
use crate::agent::Conversation;
use crate::agent::hooking::{Hooking, tell_stop, told};
use crate::agent::mailbox::Mailbox;
use crate::hooks::{self, Event as Hook, Hooks, Occasion, Verdict};
use crate::message::{Outcome as Ended, ToolCall, ToolResult};
use crate::permission::{Access, Behavior, Decision, Mode, RuleSet, Source};
use crate::protocol::TurnEnd;
use crate::session;
use crate::session::recorded::Finished;
use crate::tools::RULES;

/// Most files of a kind that hooks are told of.
const LISTED: usize = 1_000;

/// Calls whose results hooks want to see; empty when none listens.
pub(super) struct Watched(Vec<Call>);

struct Call {
    call: ToolCall,
    access: Access,
    /// What it touched, links followed.
    target: Option<PathBuf>,
    /// The conditions of hooks that it meets.
    meets: BTreeSet<String>,
    result: Option<ToolResult>,
    /// What a command changed.
    changed: Option<Finished>,
    millis: u64,
}

impl Watched {
    /// Keeps the calls whose results hooks want to see.
    pub(super) fn of(permitted: &[Permitted], hooks: &Hooks, grounds: &Grounds<'_>) -> Watched {
        if ![Hook::PostToolUse, Hook::PostToolUseFailure, Hook::PostToolBatch].iter().any(|event| hooks.listens(*event))
        {
            return Watched(Vec::new());
        }
        let mut conditions = hooks.conditions(Hook::PostToolUse);
        conditions.extend(hooks.conditions(Hook::PostToolUseFailure));
        let call = |permitted: &Permitted| Call {
            meets: grounds.met(&permitted.ready.call.name, &permitted.ready.access, conditions.clone()),
            call: permitted.ready.call.clone(),
            access: permitted.ready.access.clone(),
            target: permitted.permit.target().map(Path::to_owned),
            result: None,
            changed: None,
            millis: 0,
        };
        Watched(permitted.iter().map(call).collect())
    }

    /// Keeps what a call came to.
    pub(super) fn note(&mut self, result: &ToolResult, changed: Option<Finished>, millis: u64) {
        if let Some(call) = self.0.iter_mut().find(|call| call.call.id == result.id) {
            (call.result, call.changed, call.millis) = (Some(result.clone()), changed, millis);
        }
    }
}

impl Grounds<'_> {
    /// Those of some conditions of hooks that a call meets. A condition is a rule: it holds where it would deny the call, in
    /// part or as a whole, and where nobody can say, since a hook that runs in vain harms less than one that does not.
    pub(in crate::agent) fn met(
        &self,
        tool: &str,
        access: &Access,
        mut conditions: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let under = |rules: RuleSet| {
            let rules = Cow::Owned(rules);
            let grounds = Grounds { mode: Mode::Bypass, rules, places: self.places.clone(), level: self.level };
            grounds.decide(tool, access).behavior
        };
        conditions.retain(|condition| {
            let Ok(rule) = RULES.rule(condition) else { return true };
            let own = rule.tool() == tool;
            let mut rules = RuleSet::default();
            rules.add(Behavior::Deny, rule, Source::Session);
            let behavior = under(rules);
            behavior == Behavior::Deny || (behavior == Behavior::Ask && own) || behavior != under(RuleSet::default())
        });
        conditions
    }

    /// The decision about a call. What was judged must be what the call will touch: a link in the path may have come or gone
    /// since the call was made.
    pub(super) fn judge(&self, ready: &Ready) -> Decision {
        let mut decision = self.judge_said(ready);
        if let Some(now) = decision.target.clone().filter(|now| ready.target.as_ref() != Some(now)) {
            decision.behavior = Behavior::Deny;
            decision.reasons = vec![format!("its path changed in the meantime and now leads to {}", now.display())];
        }
        decision
    }

    /// The decision about a call, with what PreToolUse hooks said of it: their `ask` asks, their `allow` counts as an allow
    /// rule of the user's for this one call, which lifts no deny rule, no ask rule and no mode.
    fn judge_said(&self, ready: &Ready) -> Decision {
        match &ready.said {
            Some(Verdict { decision: hooks::Decision::Allow, .. }) => self.with_allow(ready, (*self.rules).clone()),
            Some(Verdict { decision: hooks::Decision::Ask, reason }) => {
                let mut decision = self.decide(&ready.call.name, &ready.access);
                if decision.behavior == Behavior::Allow {
                    let asks = self.mode != Mode::DontAsk;
                    decision.behavior = if asks { Behavior::Ask } else { Behavior::Deny };
                    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    decision.reasons = vec![format!("a PreToolUse hook asks you to review it{why}")];
                }
                decision
            }
            _ => self.decide(&ready.call.name, &ready.access),
        }
    }

    /// The decision under these rules, and one more that allows the tool.
    fn with_allow(&self, ready: &Ready, mut rules: RuleSet) -> Decision {
        if let Ok(rule) = RULES.rule(&ready.call.name) {
            rules.add(Behavior::Allow, rule, Source::Session);
        }
        let rules = Cow::Owned(rules);
        Grounds { mode: self.mode, rules, places: self.places.clone(), level: self.level }
            .decide(&ready.call.name, &ready.access)
    }

    /// Whether a call that asks now would run in mode `edits`.
    pub(super) fn accepted_as_edit(&self, ready: &Ready) -> bool {
        let hook_asks = ready.said.as_ref().is_some_and(|said| said.decision == hooks::Decision::Ask);
        let accepting = || Grounds { mode: Mode::Edits, ..self.clone() };
        self.mode == Mode::Default
            && !hook_asks
            && matches!(ready.access, Access::Write { .. })
            && accepting().decide(&ready.call.name, &ready.access).behavior == Behavior::Allow
    }

    /// Whether a hook's yes may stand for the user's: not where the administrator or another hook wants a person to be
    /// asked, nor for files that no rule opens.
    pub(super) fn hooks_may_answer(&self, ready: &Ready) -> bool {
        let asked = ready.said.as_ref().is_some_and(|said| said.decision == hooks::Decision::Ask);
        if asked || !self.rules.broken().is_empty() {
            return false;
        }
        let mut managed = RuleSet::default();
        for entry in self.rules.entries().iter().filter(|entry| entry.source == Source::Managed) {
            managed.add(entry.behavior, entry.rule.clone(), entry.source);
        }
        self.with_allow(ready, managed).behavior == Behavior::Allow
    }
}

impl Hooking {
    /// Lets hooks see what calls came to; what they say is for the model. Some when they end the turn.
    pub(super) async fn after_calls(
        &mut self,
        watched: Watched,
        at: (hooks::Place, hooks::Settings),
        conversation: &mut Conversation,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let (place, settings) = &at;
        if self.hooks.listens(Hook::PostToolBatch) {
            self.batch.extend(watched.0.iter().filter_map(told_of));
        }
        let seen: Vec<(Call, Occasion)> =
            watched.0.into_iter().filter_map(|call| occasion(&call).map(|occasion| (call, occasion))).collect();
        seen.iter().for_each(|(_, occasion)| self.run_later(occasion, place, settings));
        let outcomes = {
            let runs = seen.iter().map(|(_, occasion)| self.hooks.run(occasion, place, settings));
            tokio::select! {
                biased;
                () = cancel.cancelled() => Vec::new(),
                outcomes = join_all(runs) => outcomes,
            }
        };
        // What PreToolUse hooks added, now that the results of the round are in the log.
        for message in std::mem::take(&mut self.beside_calls) {
            conversation.push(message, mailbox).await?;
        }
        let mut end = None;
        for ((call, occasion), outcome) in seen.into_iter().zip(outcomes) {
            conversation.note_hooks(&outcome, mailbox).await?;
            if let (Access::Write { .. }, Some(path), false) = (&call.access, &call.target, outcome.reports.is_empty())
            {
                // A formatter that ran as a hook belongs to the change: undo takes both back.
                conversation.session.after_hook(path)?;
            }
            for text in outcome.block.into_iter().chain(outcome.context) {
                let text = format!("About the {} call {}:\n\n{text}", call.call.name, call.call.id);
                conversation.push(told(occasion.event, &text), mailbox).await?;
            }
            if let Some(reason) = outcome.stop {
                tell_stop(&reason, mailbox).await;
                end = Some(TurnEnd::Stopped);
            }
        }
        Ok(end)
    }

    /// Lets hooks see all calls of a reply together. Some when they end the turn.
    pub(super) async fn after_batch(
        &mut self,
        (place, settings): (hooks::Place, hooks::Settings),
        conversation: &mut Conversation,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let calls = std::mem::take(&mut self.batch);
        if calls.is_empty() {
            return Ok(None);
        }
        let occasion = Occasion::post_tool_batch(&calls);
        let Some(outcome) = self.run(&occasion, &place, &settings, cancel).await else { return Ok(None) };
        conversation.note_hooks(&outcome, mailbox).await?;
        for text in outcome.context {
            conversation.push(told(Hook::PostToolBatch, &text), mailbox).await?;
        }
        let Some(reason) = outcome.stop.or(outcome.block) else { return Ok(None) };
        tell_stop(&reason, mailbox).await;
        Ok(Some(TurnEnd::Stopped))
    }
}

/// What PostToolBatch hooks are told of a call; none where it did not run.
fn told_of(call: &Call) -> Option<Value> {
    let (ToolCall { id, name, input, .. }, result) = (&call.call, call.result.as_ref()?);
    Some(json!({
        "tool_name": name, "tool_input": input, "tool_use_id": id.as_str(), "tool_response": result.text(),
        "duration_ms": call.millis,
    }))
}

fn occasion(call: &Call) -> Option<Occasion> {
    let (ToolCall { id, name, input, .. }, result) = (&call.call, call.result.as_ref()?);
    let text = result.text();
    match result.outcome {
        Ended::Ok => {
            // The fields that scripts for Claude Code look at.
            let mut response = json!({ "content": text });
            match &call.access {
                Access::Shell { .. } => {
                    response["stdout"] = json!(text);
                    response["stderr"] = json!("");
                    response["interrupted"] = json!(false);
                    if let Some(Finished { created, changed, deleted, .. }) = &call.changed {
                        let listed = |paths: &[PathBuf]| {
                            paths.iter().take(LISTED).map(|path| path.display().to_string()).collect::<Vec<_>>()
                        };
                        response["files"] = json!({ "created": listed(created), "changed": listed(changed), "deleted": listed(deleted) });
                    }
                }
                Access::Write { path } => {
                    response["filePath"] = json!(path);
                    response["success"] = json!(true);
                }
                _ => {}
            }
            Some(Occasion::post_tool_use(name, input, id.as_str(), response, call.millis).meeting(call.meets.clone()))
        }
        Ended::Error => Some(
            Occasion::post_tool_use_failure(name, input, id.as_str(), &text, call.millis).meeting(call.meets.clone()),
        ),
        Ended::Denied | Ended::Interrupted => None,
    }
}

pub(super) fn interrupted<T>(ready: &Ready) -> ControlFlow<Admission, T> {
    let text = "Interrupted by the user before it ran.";
    ControlFlow::Break(Admission::Stopped(ToolResult::of_text(ready.call.id.clone(), Ended::Interrupted, text)))
}

pub(super) fn stopped<T>(ready: &Ready) -> ControlFlow<Admission, T> {
    let text = "One of the user's hooks stopped the turn. Wait for their next message.";
    ControlFlow::Break(Admission::Halted(ToolResult::of_text(ready.call.id.clone(), Ended::Denied, text)))
}

pub(super) fn refused<T>(ready: &Ready, event: Hook, reason: &str) -> ControlFlow<Admission, T> {
    let reason = if reason.is_empty() { "no reason was given" } else { reason };
    let text = format!("Denied by the user's {event} hook: {reason}");
    ControlFlow::Break(Admission::Refused(ToolResult::of_text(ready.call.id.clone(), Ended::Denied, text)))
}
