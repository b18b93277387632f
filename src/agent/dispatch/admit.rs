//! Whether a call may run: its input is checked, the rules decide, and a person is asked where they say so.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Ready;
use super::hooked::Hooked;
use crate::agent::Agent;
use crate::agent::decided;
use crate::agent::mailbox::Mailbox;
use crate::message::{Display, Outcome, ToolCall, ToolResult};
use crate::permission::{self, Access, Behavior, Decision, Disk, Mode, Places, Query, RuleSet};
use crate::protocol::{Answer, Event, Question};
use crate::session;
use crate::session::entry::{Decider, Lasts};
use crate::tools::Tool;

#[expect(clippy::large_enum_variant, reason = "one lives at a time, and nearly all of them are calls that run")]
pub(super) enum Admission {
    Run(Ready),
    Refused(ToolResult),
    /// The user stopped the turn with the refusal.
    Stopped(ToolResult),
    /// A hook did.
    Halted(ToolResult),
}

/// How a question about a call was settled.
enum Waited {
    /// By a person; none when the turn was interrupted.
    Answer(Option<Answer>),
    /// By a mode or a rule that forbids the call.
    Forbidden(Decision),
}

/// Whether the call runs after this answer.
fn allows(answer: &Answer) -> bool {
    matches!(answer, Answer::Yes | Answer::AllEdits | Answer::Always { .. })
}

impl Agent {
    /// Checks the call, decides, and asks where the decision is to ask.
    pub(super) async fn admit(
        &mut self,
        call: ToolCall,
        mailbox: &Mailbox,
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
                format!("The arguments are not valid JSON: {start:?}. Send one JSON object that matches the schema."),
            );
        }
        let dirs = self.dirs();
        let access = match tool.access(&call.input, &dirs, self.settings.user_home.as_deref()) {
            Ok(access) => access,
            Err(problem) => return refuse(Outcome::Error, problem),
        };
        let ready = match self.before_call(self.ready(call, tool, access), mailbox, cancel).await? {
            Hooked::On(ready) => ready,
            Hooked::Settled(admission) => return Ok(admission),
        };
        self.take_mode(mailbox).await?;
        let decision = self.decide_ready(&ready);
        tracing::debug!(tool = %ready.call.name, behavior = ?decision.behavior, "decided");
        match decision.behavior {
            Behavior::Allow => Ok(Admission::Run(Ready { quiet_git: decision.quiet_git, unasked: true, ..ready })),
            Behavior::Deny => Ok(self.denied(&ready, &decision)),
            Behavior::Ask => match self.answered_by_hooks(ready, mailbox, cancel).await? {
                // Its input may be another one now.
                Hooked::On(ready) => self.ask(ready, mailbox, cancel).await,
                Hooked::Settled(admission) => Ok(admission),
            },
        }
    }

    pub(super) fn ready(&self, call: ToolCall, tool: Arc<dyn Tool>, access: Access) -> Ready {
        let access = self.by_own_name(&call.name, access);
        let reads = matches!(access, Access::Shell { .. }) && {
            let rules = &RuleSet::default();
            self.decide_by(&call.name, &access, Mode::Plan, rules).behavior == Behavior::Allow
        };
        let target = access.target();
        Ready { call, tool, access, target, reads, quiet_git: false, said: None, unasked: false }
    }

    /// A skill under its own name, however it was called, so that a rule against it holds. A rule may name an alias, too.
    fn by_own_name(&self, tool: &str, access: Access) -> Access {
        let Access::Other { specifier: Some(name), read_only } = &access else { return access };
        if tool != "Skill" || self.decide(tool, &access).behavior == Behavior::Deny {
            return access;
        }
        match self.runs.own_name(name) {
            Some(own) => Access::Other { specifier: Some(own), read_only: *read_only },
            None => access,
        }
    }

    pub(in crate::agent) fn decide(&self, tool: &str, access: &Access) -> Decision {
        self.decide_by(tool, access, self.mode(), &self.policy.rules)
    }

    pub(in crate::agent) fn decide_by(&self, tool: &str, access: &Access, mode: Mode, rules: &RuleSet) -> Decision {
        let places = self.places();
        permission::decide(&Query { tool, access, mode, rules, places: &places }, &Disk)
    }

    /// Refuses a call, and tells the model why.
    pub(super) fn denied(&self, ready: &Ready, decision: &Decision) -> Admission {
        let rules = &self.policy.rules;
        let by_plan = || self.decide_by(&ready.call.name, &ready.access, Mode::Default, rules).behavior;
        let text = self.refusal(decision, by_plan);
        Admission::Refused(ToolResult::of_text(ready.call.id.clone(), Outcome::Denied, text))
    }

    /// As `decide`, with other places.
    pub(in crate::agent) fn decide_in(&self, places: &Places, tool: &str, access: &Access) -> Decision {
        let (mode, rules) = (self.mode(), &self.policy.rules);
        permission::decide(&Query { tool, access, mode, rules, places }, &Disk)
    }

    async fn ask(
        &mut self,
        ready: Ready,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Admission, session::Error> {
        let decision = self.decide_ready(&ready);
        let ready = Ready { quiet_git: decision.quiet_git, ..ready };
        let dirs = self.dirs();
        // What it says of the file is the model's to know only where it may read it.
        if let Access::Write { path } = &ready.access
            && self.decide("Read", &Access::Read { path: path.clone() }).behavior == Behavior::Allow
            && let Some(problem) = ready.tool.hopeless(&ready.call.input, &dirs, self.settings.user_home.as_deref())
        {
            return Ok(Admission::Refused(ToolResult::of_text(ready.call.id.clone(), Outcome::Error, problem)));
        }
        let mut diff = ready.tool.preview(&ready.call.input, &dirs, self.settings.user_home.as_deref());
        if let Some(diff) = &mut diff
            && let Ok(below) = Path::new(&diff.path).strip_prefix(&dirs.project)
        {
            diff.path = below.to_string_lossy().into_owned();
        }
        let all_edits = diff.is_some() && self.accepted_as_edit(&ready);
        let title = ready.tool.title(&ready.call.input);
        let what = decided::subject(&ready.call, &title);
        let question = Question::Permission {
            call: ready.call.id.clone(),
            tool: ready.call.name.clone(),
            title,
            input: ready.call.input.clone(),
            diff,
            reasons: decision.reasons,
            suggestions: decision.suggestions.iter().map(ToString::to_string).collect(),
            all_edits,
        };
        let result = |outcome, text: &str| ToolResult::of_text(ready.call.id.clone(), outcome, text);
        // The screen shows the user's own words, if any: they know what the model is told.
        let refused = |text: &str, words: &str| ToolResult {
            display: Some(Display::Line { text: words.to_owned() }),
            ..result(Outcome::Denied, text)
        };
        let answer = match self.wait(&ready, question, mailbox, cancel).await? {
            Waited::Answer(answer) => answer,
            Waited::Forbidden(decision) => {
                self.decided_call((false, Decider::Change, Lasts::Once), &what, mailbox).await?;
                return Ok(self.denied(&ready, &decision));
            }
        };
        // Only what was offered can be chosen.
        let answer = answer.map(|answer| match answer {
            Answer::AllEdits if !all_edits => Answer::No { feedback: None },
            answer => answer,
        });
        if answer.as_ref().is_some_and(|answer| !allows(answer)) {
            self.decided_call((false, Decider::User, Lasts::Once), &what, mailbox).await?;
        }
        Ok(match answer {
            None => Admission::Stopped(result(Outcome::Interrupted, "Interrupted by the user before it ran.")),
            Some(Answer::Yes) => {
                self.decided_call((true, Decider::User, Lasts::Once), &what, mailbox).await?;
                Admission::Run(ready)
            }
            Some(Answer::AllEdits) => {
                self.decided_call((true, Decider::User, Lasts::Session), "all edits", mailbox).await?;
                self.accept_edits(mailbox).await?;
                Admission::Run(ready)
            }
            Some(Answer::Always { rules, scope }) => {
                let mut lasts = decided::lasts(scope);
                for rule in &rules {
                    if let Err(problem) = self.grant(rule, scope)? {
                        lasts = Lasts::Session;
                        mailbox
                            .emit(Event::Notice { text: format!("`{rule}` applies to this session only: {problem}") })
                            .await;
                    }
                }
                self.decided_call((true, Decider::User, lasts), &rules.join(", "), mailbox).await?;
                Admission::Run(ready)
            }
            Some(Answer::No { feedback: Some(words) }) if !words.trim().is_empty() => Admission::Refused(refused(
                &format!("The user denied this call and says what to do instead: {}", words.trim()),
                words.trim(),
            )),
            Some(
                Answer::No { .. } | Answer::Fork | Answer::ReadOnly | Answer::Approve { .. } | Answer::Chosen { .. },
            ) => Admission::Stopped(refused(
                "The user denied this call and stopped the turn. Wait for their next message.",
                "",
            )),
        })
    }

    /// Waits for the answer. What changes meanwhile may forbid the call, and never allows it: whoever passes a looser mode,
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
        let asked = mailbox.ask(question, &open);
        tokio::pin!(asked);
        loop {
            let answer = tokio::select! {
                biased;
                () = mailbox.changed() => None,
                answer = &mut asked => Some(answer),
            };
            self.take_mode(mailbox).await?;
            let decision = self.decide_ready(ready);
            let forbidden = decision.behavior == Behavior::Deny;
            match answer {
                // A yes in the old mode is a no in the new one.
                Some(Some(answer)) if allows(&answer) && forbidden => return Ok(Waited::Forbidden(decision)),
                Some(answer) => return Ok(Waited::Answer(answer)),
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
