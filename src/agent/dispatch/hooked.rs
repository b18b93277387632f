//! What hooks have to say about a call: before it, in place of the person who would be asked, and after it.

use std::path::PathBuf;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Ready;
use super::admit::Admission;
use crate::agent::Agent;
use crate::agent::decided;
use crate::agent::hooking::told;
use crate::agent::mailbox::Mailbox;
use crate::hooks::{self, Event as Hook, Occasion, Outcome, Verdict};
use crate::message::{Outcome as Ended, ToolCall, ToolResult};
use crate::permission::{Access, Behavior, Decision, Mode, Rule, RuleSet, Source};
use crate::protocol::TurnEnd;
use crate::session;
use crate::session::entry::{Decider, Lasts};

/// A call on its way through hooks.
pub(super) enum Hooked {
    /// It continues, perhaps with another input.
    On(Ready),
    /// It is settled.
    Settled(Admission),
}

/// Calls whose results hooks want to see; empty when none listens.
pub(super) struct Watched(Vec<Call>);

struct Call {
    call: ToolCall,
    /// The file that it changed, as the call names it.
    path: Option<PathBuf>,
    /// The same, links followed.
    target: Option<PathBuf>,
    result: Option<ToolResult>,
}

impl Watched {
    /// Keeps what a call came to.
    pub(super) fn note(&mut self, result: &ToolResult) {
        if let Some(call) = self.0.iter_mut().find(|call| call.call.id == result.id) {
            call.result = Some(result.clone());
        }
    }
}

impl Agent {
    /// Lets PreToolUse hooks see a call. What they rewrite is checked like what the model wrote.
    pub(super) async fn before_call(
        &mut self,
        ready: Ready,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Hooked, session::Error> {
        let Ready { call, .. } = &ready;
        let occasion = Occasion::pre_tool_use(&call.name, &call.input, call.id.as_str());
        let Some(outcome) = self.fire(occasion, mailbox, cancel).await? else { return Ok(interrupted(&ready)) };
        self.hooking.beside_calls.extend(outcome.context.iter().map(|text| told(Hook::PreToolUse, text)));
        if let Some(reason) = &outcome.stop {
            self.tell_stop(reason, mailbox).await;
            return Ok(stopped(&ready));
        }
        if let Some(Verdict { decision: hooks::Decision::Deny, reason }) = &outcome.verdict {
            return Ok(refused(&ready, Hook::PreToolUse, reason));
        }
        let Outcome { verdict, input, .. } = outcome;
        Ok(match self.rewritten(ready, input) {
            Hooked::On(ready) => Hooked::On(Ready { said: verdict, ..ready }),
            settled @ Hooked::Settled(_) => settled,
        })
    }

    /// Lets PermissionRequest hooks answer for the person who is about to be asked.
    pub(super) async fn answered_by_hooks(
        &mut self,
        ready: Ready,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Hooked, session::Error> {
        let Ready { call, .. } = &ready;
        let occasion = Occasion::permission_request(&call.name, &call.input, call.id.as_str());
        let Some(outcome) = self.fire(occasion, mailbox, cancel).await? else { return Ok(interrupted(&ready)) };
        let what = decided::subject(call, &ready.tool.title(&call.input));
        match outcome.verdict {
            _ if outcome.stop.is_some() => {
                self.tell_stop(&outcome.stop.unwrap_or_default(), mailbox).await;
                Ok(stopped(&ready))
            }
            Some(Verdict { decision: hooks::Decision::Deny, reason }) => {
                self.decided_call((false, Decider::Hook, Lasts::Once), &what, mailbox).await?;
                Ok(refused(&ready, Hook::PermissionRequest, &reason))
            }
            Some(Verdict { decision: hooks::Decision::Allow, .. }) => {
                let said = ready.said.clone();
                let ready = match self.rewritten(ready, outcome.input) {
                    Hooked::On(ready) => Ready { said, ..ready },
                    settled @ Hooked::Settled(_) => return Ok(settled),
                };
                self.take_mode(mailbox).await?;
                let decision = self.decide_ready(&ready);
                Ok(match decision.behavior {
                    Behavior::Deny => Hooked::Settled(self.denied(&ready, &decision)),
                    Behavior::Ask if !self.hooks_may_answer(&ready) => Hooked::On(ready),
                    Behavior::Allow | Behavior::Ask => {
                        let what = decided::subject(&ready.call, &ready.tool.title(&ready.call.input));
                        self.decided_call((true, Decider::Hook, Lasts::Once), &what, mailbox).await?;
                        Hooked::Settled(Admission::Run(Ready { quiet_git: decision.quiet_git, ..ready }))
                    }
                })
            }
            _ => Ok(Hooked::On(ready)),
        }
    }

    /// The decision about a call. What was judged must be what the call will touch: a link in the path may have come or gone
    /// since the call was made.
    pub(super) fn decide_ready(&self, ready: &Ready) -> Decision {
        let mut decision = self.decide_said(ready);
        if let Some(now) = decision.target.clone().filter(|now| ready.target.as_ref() != Some(now)) {
            decision.behavior = Behavior::Deny;
            decision.reasons = vec![format!("its path changed in the meantime and now leads to {}", now.display())];
        }
        decision
    }

    /// Why a call does not run anymore that was let through; none when it does.
    pub(super) fn no_longer(&self, ready: &Ready) -> Option<ToolResult> {
        let decision = self.decide_ready(ready);
        match decision.behavior {
            Behavior::Deny => match self.denied(ready, &decision) {
                Admission::Refused(result) => Some(result),
                _ => None,
            },
            Behavior::Ask if ready.unasked => {
                let why = decision.reasons.into_iter().next().unwrap_or_default();
                let text = format!(
                    "Not run: while another call was waiting, this one came to need approval ({why}). Make it again."
                );
                Some(ToolResult::of_text(ready.call.id.clone(), Ended::Error, text))
            }
            _ => None,
        }
    }

    /// The decision about a call, with what PreToolUse hooks said of it: their `ask` asks, their `allow` counts as an allow
    /// rule of the user's for this one call, which lifts no deny rule, no ask rule and no mode.
    fn decide_said(&self, ready: &Ready) -> Decision {
        match &ready.said {
            Some(Verdict { decision: hooks::Decision::Allow, .. }) => {
                self.decide_with(ready, &with_allow(self.policy.rules.clone(), &ready.call.name))
            }
            Some(Verdict { decision: hooks::Decision::Ask, reason }) => {
                let mut decision = self.decide(&ready.call.name, &ready.access);
                if decision.behavior == Behavior::Allow {
                    let asks = self.mode() != Mode::DontAsk;
                    decision.behavior = if asks { Behavior::Ask } else { Behavior::Deny };
                    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    decision.reasons = vec![format!("a PreToolUse hook asks you to review it{why}")];
                }
                decision
            }
            _ => self.decide(&ready.call.name, &ready.access),
        }
    }

    /// Whether a call that asks now would run in mode `edits`.
    pub(super) fn accepted_as_edit(&self, ready: &Ready) -> bool {
        let hook_asks = ready.said.as_ref().is_some_and(|said| said.decision == hooks::Decision::Ask);
        let rules = &self.policy.rules;
        self.mode() == Mode::Default
            && !hook_asks
            && matches!(ready.access, Access::Write { .. })
            && self.decide_by(&ready.call.name, &ready.access, Mode::Edits, rules).behavior == Behavior::Allow
    }

    /// Whether a hook's yes may stand for the user's: not where the administrator or another hook wants a person to be
    /// asked, nor for files that no rule opens.
    fn hooks_may_answer(&self, ready: &Ready) -> bool {
        let asked = ready.said.as_ref().is_some_and(|said| said.decision == hooks::Decision::Ask);
        if asked || !self.policy.rules.broken().is_empty() {
            return false;
        }
        let mut managed = RuleSet::default();
        for entry in self.policy.rules.entries().iter().filter(|entry| entry.source == Source::Managed) {
            managed.add(entry.behavior, entry.rule.clone(), entry.source);
        }
        self.decide_with(ready, &with_allow(managed, &ready.call.name)).behavior == Behavior::Allow
    }

    fn decide_with(&self, ready: &Ready, rules: &RuleSet) -> Decision {
        self.decide_by(&ready.call.name, &ready.access, self.mode(), rules)
    }

    /// Puts a hook's input in the place of the model's.
    fn rewritten(&self, ready: Ready, input: Option<Value>) -> Hooked {
        let Some(input) = input.filter(|input| *input != ready.call.input) else { return Hooked::On(ready) };
        match ready.tool.access(&input, &self.dirs(), self.settings.user_home.as_deref()) {
            Ok(access) => Hooked::On(self.ready(ToolCall { input, ..ready.call }, ready.tool, access)),
            Err(problem) => {
                let text = format!("Not run: a hook rewrote the arguments, and they are not valid: {problem}");
                Hooked::Settled(Admission::Refused(ToolResult::of_text(ready.call.id, Ended::Error, text)))
            }
        }
    }

    /// Keeps the calls whose results hooks want to see.
    pub(super) fn watch_calls(&self, ready: &[Ready]) -> Watched {
        let hooks = &self.hooking.hooks;
        if !hooks.listens(Hook::PostToolUse) && !hooks.listens(Hook::PostToolUseFailure) {
            return Watched(Vec::new());
        }
        let call = |ready: &Ready| {
            let path = if let Access::Write { path } = &ready.access { Some(path.clone()) } else { None };
            let target = ready.target.clone().filter(|_| path.is_some());
            Call { call: ready.call.clone(), path, target, result: None }
        };
        Watched(ready.iter().map(call).collect())
    }

    /// Lets hooks see what calls came to; what they say is for the model. Some when they end the turn.
    pub(super) async fn after_calls(
        &mut self,
        watched: Watched,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, session::Error> {
        let seen: Vec<(Call, Occasion)> = watched
            .0
            .into_iter()
            .filter_map(|call| Some((occasion(&call)?, call)))
            .map(|(occasion, call)| (call, occasion))
            .collect();
        if seen.is_empty() {
            return self.deliver_context(mailbox).await.map(|()| None);
        }
        let (place, settings) = (self.hook_place(), self.hook_settings());
        seen.iter().for_each(|(_, occasion)| self.fire_later(occasion, &place, &settings));
        let outcomes = {
            let runs = seen.iter().map(|(_, occasion)| self.hooking.hooks.run(occasion, &place, &settings));
            tokio::select! {
                biased;
                () = cancel.cancelled() => Vec::new(),
                outcomes = join_all(runs) => outcomes,
            }
        };
        self.deliver_context(mailbox).await?;
        let mut end = None;
        for ((call, occasion), outcome) in seen.into_iter().zip(outcomes) {
            self.report(&outcome, mailbox).await?;
            if let Some(path) = call.target.filter(|_| !outcome.reports.is_empty()) {
                // A formatter that ran as a hook belongs to the change: undo takes both back.
                self.conversation.session.after_hook(&path)?;
            }
            for text in outcome.block.into_iter().chain(outcome.context) {
                let text = format!("About the {} call {}:\n\n{text}", call.call.name, call.call.id);
                self.push(told(occasion.event, &text), mailbox).await?;
            }
            if let Some(reason) = outcome.stop {
                self.tell_stop(&reason, mailbox).await;
                end = Some(TurnEnd::Stopped);
            }
        }
        Ok(end)
    }

    /// Hands on what PreToolUse hooks added, now that the results of the round are in the log.
    async fn deliver_context(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        for message in std::mem::take(&mut self.hooking.beside_calls) {
            self.push(message, mailbox).await?;
        }
        Ok(())
    }
}

fn occasion(call: &Call) -> Option<Occasion> {
    let (ToolCall { id, name, input, .. }, result) = (&call.call, call.result.as_ref()?);
    let text = result.text();
    match result.outcome {
        Ended::Ok => {
            // The fields that scripts for Claude Code look at.
            let mut response = json!({ "content": text });
            match name.as_str() {
                "Bash" => {
                    response["stdout"] = json!(text);
                    response["stderr"] = json!("");
                    response["interrupted"] = json!(false);
                }
                _ if call.path.is_some() => {
                    response["filePath"] = json!(call.path);
                    response["success"] = json!(true);
                }
                _ => {}
            }
            Some(Occasion::post_tool_use(name, input, id.as_str(), response))
        }
        Ended::Error => Some(Occasion::post_tool_use_failure(name, input, id.as_str(), &text)),
        Ended::Denied | Ended::Interrupted => None,
    }
}

fn with_allow(mut rules: RuleSet, tool: &str) -> RuleSet {
    if let Ok(rule) = Rule::parse(tool) {
        rules.add(Behavior::Allow, rule, Source::Session);
    }
    rules
}

fn interrupted(ready: &Ready) -> Hooked {
    let text = "Interrupted by the user before it ran.";
    Hooked::Settled(Admission::Stopped(ToolResult::of_text(ready.call.id.clone(), Ended::Interrupted, text)))
}

fn stopped(ready: &Ready) -> Hooked {
    let text = "One of the user's hooks stopped the turn. Wait for their next message.";
    Hooked::Settled(Admission::Halted(ToolResult::of_text(ready.call.id.clone(), Ended::Denied, text)))
}

fn refused(ready: &Ready, event: Hook, reason: &str) -> Hooked {
    let reason = if reason.is_empty() { "no reason was given" } else { reason };
    let text = format!("Denied by the user's {event} hook: {reason}");
    Hooked::Settled(Admission::Refused(ToolResult::of_text(ready.call.id.clone(), Ended::Denied, text)))
}
