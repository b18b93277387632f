//! Whether a call may run: the rules decide, and a person is asked where they say so.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::{Asks, Permitted, Ready};
use super::grounds::{Grounds, find_level};
use super::hooked::{interrupted, refused, stopped};
use super::prepare::Prepared;
use crate::agent::hooking::{tell_stop, told};
use crate::agent::mailbox::Mailbox;
use crate::agent::{Agent, Conversation, decided, events};
use crate::hooks::{self, Event as Hook, Occasion, Verdict};
use crate::message::{CallId, Display, FileDiff, Outcome, ToolCall, ToolResult};
use crate::permission::{Access, Behavior, Consent, Decision, Mode};
use crate::protocol::{Answer, Event, GrantScope, Question};
use crate::session::entry::{Decider, Lasts};
use crate::tools::Seen;
use crate::{boxed, session};

#[expect(clippy::large_enum_variant, reason = "one lives at a time, and nearly all of them are calls that run")]
pub(super) enum Admission {
    Run(Permitted),
    Refused(ToolResult),
    /// The user stopped the turn with the refusal.
    Stopped(ToolResult),
    /// A hook did.
    Halted(ToolResult),
}

/// How a question about a call was settled.
enum Waited {
    /// By a person, with the decision as it is then; none when the turn was interrupted.
    Answer(Option<Answer>, Decision),
    /// By a mode or a rule that forbids the call.
    Forbidden(Decision),
}

/// Whether the call runs after this answer.
fn allows(answer: &Answer) -> bool {
    let answer = if let Answer::Changed { then, .. } = answer { then } else { answer };
    matches!(answer, Answer::Yes | Answer::Unconfined | Answer::Unasked | Answer::AllEdits | Answer::Always { .. })
}

impl Grounds<'_> {
    /// Lets a call run that the rules allow.
    ///
    /// # Errors
    /// The decision that does not.
    pub(super) fn admit(&self, ready: Ready) -> Result<Permitted, Decision> {
        let decision = self.judge(&ready);
        match self.permit(&ready, &decision, Consent::Missing) {
            Some(permit) => Ok(ready.with(permit, Consent::Missing)),
            None => Err(decision),
        }
    }

    /// A call that was let through, as it may run now: a question about another one may have been open for long. Only what is
    /// stricter counts.
    ///
    /// # Errors
    /// Why it does not run any more, for the model.
    pub(super) fn permitted_still(
        &self,
        Permitted { ready, consent, .. }: Permitted,
        conversation: &Conversation,
    ) -> Result<Permitted, Box<ToolResult>> {
        let decision = self.judge(&ready);
        if let Some(permit) = self.permit(&ready, &decision, consent) {
            return Ok(ready.with(permit, consent));
        }
        if decision.behavior == Behavior::Deny {
            return Err(Box::new(self.refused(&ready, &decision, conversation)));
        }
        let why = decision.reasons.into_iter().next().unwrap_or_default();
        let text =
            format!("Not run: while another call was waiting, this one came to need approval ({why}). Make it again.");
        Err(Box::new(ToolResult::of_text(ready.call.id, Outcome::Error, text)))
    }

    /// Refuses a call, and tells the model why.
    fn refused(&self, ready: &Ready, decision: &Decision, conversation: &Conversation) -> ToolResult {
        let by_plan = || {
            let grounds = Grounds { mode: Mode::Default, ..self.clone() };
            grounds.decide(&ready.call.name, &ready.access).behavior
        };
        let text = conversation.refusal(decision, by_plan);
        ToolResult::of_text(ready.call.id.clone(), Outcome::Denied, text)
    }

    /// The change that the call would make, as the dialog shows it. An error is why it must fail as the file is now, and as
    /// the model has seen it, where the model may know what the file holds.
    fn outlook(&self, ready: &Ready, seen: &Seen) -> Result<Option<FileDiff>, String> {
        let (Some(outlook), Access::Write { path }) = (ready.work.outlook(seen), &ready.access) else {
            return Ok(None);
        };
        let mut diff = match outlook {
            Ok(diff) => diff,
            Err(problem) if self.read(path).behavior == Behavior::Allow => return Err(problem),
            Err(_) => return Ok(None),
        };
        if let Ok(below) = Path::new(&diff.path).strip_prefix(&self.places.project) {
            diff.path = below.to_string_lossy().into_owned();
        }
        Ok(Some(diff))
    }
}

impl Agent {
    /// Decides about a call, and asks where the decision is to ask.
    pub(super) async fn admit(
        &mut self,
        prepared: Prepared,
        asks: Asks,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Admission, session::Error> {
        // A call before it may have gone to another folder.
        let prepared = match prepared.cwd == self.conversation.context().cwd() {
            true => prepared,
            false => self.prepare_call(prepared.call),
        };
        let prepared = self.reached(prepared, cancel).await;
        let ready = match self.fitting(prepared) {
            Ok(ready) => ready,
            Err((id, problem)) => {
                return Ok(Admission::Refused(ToolResult::of_text(id, Outcome::Error, problem)));
            }
        };
        if matches!(ready.access, Access::Shell { .. }) {
            find_level(&self.policy, mailbox).await;
        }
        let ready = match boxed(|| self.before_call(ready, asks, mailbox, cancel)).await? {
            ControlFlow::Continue(ready) => ready,
            ControlFlow::Break(admission) => return Ok(admission),
        };
        self.take_mode(mailbox).await?;
        let grounds = self.policy.grounds(&self.conversation);
        let decision = grounds.judge(&ready);
        if let Some(permit) = grounds.permit(&ready, &decision, Consent::Missing) {
            return Ok(Admission::Run(ready.with(permit, Consent::Missing)));
        }
        if asks == Asks::Nobody {
            let why = "Denied: this would need the user's approval, and nobody is asked while a summary is written.";
            return Ok(Admission::Refused(ToolResult::of_text(ready.call.id, Outcome::Denied, why)));
        }
        if decision.behavior == Behavior::Deny {
            let refused = grounds.refused(&ready, &decision, &self.conversation);
            drop(grounds);
            events::denied(self, (&ready.call, &ready.access), &decision, (mailbox, cancel)).await?;
            return Ok(Admission::Refused(refused));
        }
        match self.answered_by_hooks((ready, decision), mailbox, cancel).await? {
            // Its input may be another one now.
            ControlFlow::Continue((ready, decision)) => boxed(|| self.ask(ready, decision, mailbox, cancel)).await,
            ControlFlow::Break(admission) => Ok(admission),
        }
    }

    /// Reads a call that does not come from a reply, or reads one again.
    ///
    /// # Errors
    /// What the model is told of a call that does not fit.
    pub(super) fn ready(&self, call: ToolCall) -> Result<Ready, (CallId, String)> {
        self.fitting(self.prepare_call(call))
    }

    /// A call that fits, with what it touches as rules name it.
    fn fitting(&self, Prepared { call, read, .. }: Prepared) -> Result<Ready, (CallId, String)> {
        match read {
            Ok(work) => {
                let grounds = self.policy.grounds(&self.conversation);
                let access = grounds.judged(&call.name, work.access(), |name| self.runs.own_name(name));
                Ok(Ready::new(call, work, access))
            }
            Err(problem) => Err((call.id, problem)),
        }
    }

    /// The conditions of an event's hooks that a call meets.
    fn met(&self, ready: &Ready, event: Hook) -> BTreeSet<String> {
        let conditions = self.hooking.hooks.conditions(event);
        self.policy.grounds(&self.conversation).met(&ready.call.name, &ready.access, conditions)
    }

    /// Lets PreToolUse hooks see a call, which continues or is settled. What they rewrite is checked like what the model wrote.
    async fn before_call(
        &mut self,
        ready: Ready,
        asks: Asks,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<ControlFlow<Admission, Ready>, session::Error> {
        let Ready { call, .. } = &ready;
        let meets = self.met(&ready, Hook::PreToolUse);
        let occasion = Occasion::pre_tool_use(&call.name, &call.input, call.id.as_str()).meeting(meets);
        let Some(outcome) = self.fire(occasion, mailbox, cancel).await? else { return Ok(interrupted(&ready)) };
        if asks == Asks::Person {
            self.hooking.beside_calls.extend(outcome.context.iter().map(|text| told(Hook::PreToolUse, text)));
        }
        if let Some(reason) = &outcome.stop {
            tell_stop(reason, mailbox).await;
            return Ok(stopped(&ready));
        }
        if let Some(Verdict { decision: hooks::Decision::Deny, reason }) = &outcome.verdict {
            return Ok(refused(&ready, Hook::PreToolUse, reason));
        }
        let hooks::Outcome { verdict, input, .. } = outcome;
        Ok(match self.rewritten(ready, input, "a hook") {
            ControlFlow::Continue(ready) => ControlFlow::Continue(Ready { said: verdict, ..ready }),
            settled @ ControlFlow::Break(_) => settled,
        })
    }

    /// Lets PermissionRequest hooks answer for the person who is about to be asked, with the decision that asks.
    async fn answered_by_hooks(
        &mut self,
        (ready, decision): (Ready, Decision),
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<ControlFlow<Admission, (Ready, Decision)>, session::Error> {
        let Ready { call, .. } = &ready;
        let meets = self.met(&ready, Hook::PermissionRequest);
        let occasion = Occasion::permission_request(&call.name, &call.input, call.id.as_str()).meeting(meets);
        let Some(outcome) = self.fire(occasion, mailbox, cancel).await? else { return Ok(interrupted(&ready)) };
        let what = ready.subject();
        match outcome.verdict {
            _ if outcome.stop.is_some() => {
                tell_stop(&outcome.stop.unwrap_or_default(), mailbox).await;
                Ok(stopped(&ready))
            }
            Some(Verdict { decision: hooks::Decision::Deny, reason }) => {
                self.conversation.decided_call((false, Decider::Hook, Lasts::Once), &what, mailbox).await?;
                Ok(refused(&ready, Hook::PermissionRequest, &reason))
            }
            Some(Verdict { decision: hooks::Decision::Allow, .. }) => {
                let said = ready.said.clone();
                let ready = match self.rewritten(ready, outcome.input, "a hook") {
                    ControlFlow::Continue(ready) => Ready { said, ..ready },
                    ControlFlow::Break(admission) => return Ok(ControlFlow::Break(admission)),
                };
                self.take_mode(mailbox).await?;
                let grounds = self.policy.grounds(&self.conversation);
                let decision = grounds.judge(&ready);
                if decision.behavior == Behavior::Ask && !grounds.hooks_may_answer(&ready) {
                    return Ok(ControlFlow::Continue((ready, decision)));
                }
                let what = ready.subject();
                Ok(ControlFlow::Break(match grounds.permit(&ready, &decision, Consent::Given) {
                    Some(permit) => {
                        self.conversation.decided_call((true, Decider::Hook, Lasts::Once), &what, mailbox).await?;
                        Admission::Run(ready.with(permit, Consent::Given))
                    }
                    None => Admission::Refused(grounds.refused(&ready, &decision, &self.conversation)),
                }))
            }
            _ => Ok(ControlFlow::Continue((ready, decision))),
        }
    }

    /// Puts somebody's input in the place of the model's.
    fn rewritten(&self, ready: Ready, input: Option<Value>, who: &str) -> ControlFlow<Admission, Ready> {
        let Some(input) = input.filter(|input| *input != ready.call.input) else { return ControlFlow::Continue(ready) };
        match self.ready(ToolCall { input, ..ready.call }) {
            Ok(ready) => ControlFlow::Continue(ready),
            Err((id, problem)) => {
                let text = format!("Not run: {who} rewrote the arguments, and they are not valid: {problem}");
                ControlFlow::Break(Admission::Refused(ToolResult::of_text(id, Outcome::Error, text)))
            }
        }
    }

    /// Asks the person, and again as long as they edit what the call would write.
    async fn ask(
        &mut self,
        ready: Ready,
        decision: Decision,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Admission, session::Error> {
        let mut asked = (ready, decision);
        loop {
            match self.ask_once(asked, mailbox, cancel).await? {
                ControlFlow::Break(admission) => return Ok(admission),
                ControlFlow::Continue(again) => asked = again,
            }
        }
    }

    /// The call with the user's own text in the place of what it would write; as it was, where that would not work.
    async fn reword(&self, ready: Ready, field: &str, text: String, mailbox: &Mailbox) -> Ready {
        let mut input = ready.call.input.clone();
        input[field] = Value::String(text.clone());
        let reworded = self.ready(ToolCall { input, ..ready.call.clone() }).map_err(|(_, problem)| problem);
        let reworded = reworded.and_then(|now| {
            self.policy.grounds(&self.conversation).outlook(&now, self.conversation.context().seen())?;
            Ok(Ready { said: ready.said.clone(), reworded: Some(text), ..now })
        });
        match reworded {
            Ok(reworded) => reworded,
            Err(problem) => {
                mailbox.emit(Event::Notice { text: format!("Your version was not taken: {problem}") }).await;
                ready
            }
        }
    }

    async fn ask_once(
        &mut self,
        (ready, decision): (Ready, Decision),
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<ControlFlow<Admission, (Ready, Decision)>, session::Error> {
        let grounds = self.policy.grounds(&self.conversation);
        let diff = match grounds.outlook(&ready, self.conversation.context().seen()) {
            Ok(diff) => diff,
            Err(problem) => {
                let result = ToolResult::of_text(ready.call.id, Outcome::Error, problem);
                return Ok(ControlFlow::Break(Admission::Refused(result)));
            }
        };
        let all_edits = diff.is_some() && grounds.accepted_as_edit(&ready);
        let session_only = ready.work.access().session_only();
        let confined = grounds.confines(&ready);
        let unasked = !self.policy.offered && grounds.could_run_unasked(&ready);
        let preset = self.policy.denials.grant(&ready.access);
        let what = ready.subject();
        let question = Question::Permission {
            call: ready.call.id.clone(),
            tool: ready.call.name.clone(),
            title: ready.work.title().to_owned(),
            input: ready.call.input.clone(),
            diff,
            reasons: decision.reasons,
            suggestions: decision.suggestions.iter().map(ToString::to_string).collect(),
            all_edits,
            session_only,
            confined,
            unasked,
            preset,
        };
        self.policy.offered |= unasked;
        let written = question.written().map(|(field, _)| field);
        let id = ready.call.id.clone();
        let result = |outcome, text: &str| ToolResult::of_text(id.clone(), outcome, text);
        // The screen shows the user's own words, if any: they know what the model is told.
        let refused = |text: &str, words: Option<&str>| ToolResult {
            display: Some(Display::said(words)),
            ..result(Outcome::Denied, text)
        };
        let (answer, decision) = match self.wait(&ready, question, mailbox, cancel).await? {
            Waited::Answer(answer, decision) => (answer, decision),
            Waited::Forbidden(decision) => {
                self.conversation.decided_call((false, Decider::Change, Lasts::Once), &what, mailbox).await?;
                let result = self.policy.grounds(&self.conversation).refused(&ready, &decision, &self.conversation);
                return Ok(ControlFlow::Break(Admission::Refused(result)));
            }
        };
        if let (Some(Answer::Rewrite { text }), Some(field)) = (&answer, written) {
            let ready = self.reword(ready, field, text.clone(), mailbox).await;
            let decision = self.policy.grounds(&self.conversation).judge(&ready);
            return Ok(ControlFlow::Continue((ready, decision)));
        }
        // Somebody's own arguments are read, and judged, like the model's.
        let (answer, input) = answer.map_or((None, None), Answer::parted);
        let changed = input.is_some();
        let ready = match self.rewritten(ready, input, "who approved it") {
            ControlFlow::Continue(ready) => ready,
            ControlFlow::Break(admission) => return Ok(ControlFlow::Break(admission)),
        };
        let decision = if changed { self.policy.grounds(&self.conversation).judge(&ready) } else { decision };
        let what = ready.subject();
        // Only what was offered can be chosen.
        let answer = answer.map(|answer| match answer {
            Answer::AllEdits if !all_edits => Answer::No { feedback: None },
            Answer::Unconfined if !confined => Answer::No { feedback: None },
            Answer::Unasked if !unasked => Answer::No { feedback: None },
            Answer::Always { rules, .. } if session_only => Answer::Always { rules, scope: GrantScope::Session },
            answer => answer,
        });
        if answer.as_ref().is_some_and(|answer| !allows(answer)) {
            self.conversation.decided_call((false, Decider::User, Lasts::Once), &what, mailbox).await?;
        }
        let grounds = self.policy.grounds(&self.conversation);
        Ok(ControlFlow::Break(match answer {
            None => Admission::Stopped(result(Outcome::Interrupted, "Interrupted by the user before it ran.")),
            Some(answer) if allows(&answer) => {
                let consent = if answer == Answer::Unconfined { Consent::Unconfined } else { Consent::Given };
                if grounds.permit(&ready, &decision, consent).is_none() {
                    let refused = grounds.refused(&ready, &decision, &self.conversation);
                    return Ok(ControlFlow::Break(Admission::Refused(refused)));
                }
                self.take_yes(answer, &what, mailbox).await?;
                // A rule that came with the yes counts already.
                let grounds = self.policy.grounds(&self.conversation);
                match grounds.permit(&ready, &decision, consent) {
                    Some(permit) => Admission::Run(ready.with(permit, consent)),
                    None => Admission::Refused(grounds.refused(&ready, &decision, &self.conversation)),
                }
            }
            Some(Answer::No { feedback: Some(words) }) if !words.trim().is_empty() => Admission::Refused(refused(
                &format!("The user denied this call and says what to do instead: {}", words.trim()),
                Some(words.trim()),
            )),
            Some(Answer::Nobody { told }) => Admission::Refused(result(Outcome::Denied, &told)),
            Some(_) => Admission::Stopped(refused(
                "The user denied this call and stopped the turn. Wait for their next message.",
                None,
            )),
        }))
    }

    /// Notes a yes, with what else it lets run from now on.
    async fn take_yes(&mut self, answer: Answer, what: &str, mailbox: &Mailbox) -> Result<(), session::Error> {
        match answer {
            Answer::Unasked => {
                self.policy.places.approved.unasked = true;
                let saved = self.grants.run_unasked();
                let lasts = if saved.is_ok() { Lasts::User } else { Lasts::Session };
                if let Err(problem) = saved {
                    let text = format!("Confined commands run without asking in this session only: {problem}");
                    mailbox.emit(Event::Notice { text }).await;
                }
                self.conversation.decided_call((true, Decider::User, lasts), "sandboxed commands", mailbox).await
            }
            Answer::AllEdits => {
                self.conversation.decided_call((true, Decider::User, Lasts::Session), "all edits", mailbox).await?;
                self.accept_edits(mailbox).await
            }
            Answer::Always { rules, scope } => {
                let lasts = self.grant_all(&rules, scope, mailbox).await?;
                self.conversation.decided_call((true, Decider::User, lasts), &rules.join(", "), mailbox).await
            }
            _ => self.conversation.decided_call((true, Decider::User, Lasts::Once), what, mailbox).await,
        }
    }

    /// Grants rules from now on. Returns how long they hold.
    pub(super) async fn grant_all(
        &mut self,
        rules: &[String],
        scope: GrantScope,
        mailbox: &Mailbox,
    ) -> Result<Lasts, session::Error> {
        let mut lasts = decided::lasts(scope);
        for rule in rules {
            let (source, saved) = self.policy.grant(rule, scope, &*self.grants, &mut self.conversation)?;
            if let Some(source) = source {
                self.family.granted(rule.clone(), source);
            }
            if let Err(problem) = saved {
                lasts = Lasts::Session;
                let text = format!("`{rule}` applies to this session only: {problem}");
                mailbox.emit(Event::Notice { text }).await;
            }
        }
        Ok(lasts)
    }

    /// Waits for the answer. What changes meanwhile may forbid the call, and never allows it: someone who passes a looser mode,
    /// or allows another call, has not read this question.
    async fn wait(
        &mut self,
        ready: &Ready,
        question: Question,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Waited, session::Error> {
        self.notify("permission_prompt", &format!("cocode needs your permission to use {}", ready.call.name));
        let open = cancel.child_token();
        let mut asked = std::pin::pin!(mailbox.ask(question, &open));
        loop {
            let answer = tokio::select! {
                biased;
                () = mailbox.changed() => None,
                word = self.tasks.said() => super::take_word(self, word, mailbox).await.map(|()| None)?,
                answer = &mut asked => Some(answer),
            };
            self.take_mode(mailbox).await?;
            let decision = self.policy.grounds(&self.conversation).judge(ready);
            let forbidden = decision.behavior == Behavior::Deny;
            match answer {
                // A yes in the old mode is a no in the new one.
                Some(Some(answer)) if allows(&answer) && forbidden => return Ok(Waited::Forbidden(decision)),
                Some(answer) => return Ok(Waited::Answer(answer, decision)),
                None if forbidden => {
                    open.cancel();
                    // An answer that arrived in this very moment is too late.
                    let _ = asked.await;
                    return Ok(Waited::Forbidden(decision));
                }
                None => {}
            }
        }
    }
}
