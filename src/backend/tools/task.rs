//! Task: launches a sub-agent, and brings its report or lets it continue in the background.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::agents::Definitions;
use crate::message::{Display, Outcome};
use crate::permission::{Access, Ruled};
use crate::protocol::TurnEnd;
use crate::session::entry::Begun;

use super::call::Typed;
use super::{After, Call, Context, Dirs, Manners, Offered, Output, file};

/// What the agent is asked to launch.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Our id of the call that launches.
    pub call: String,
    /// The type, as a definition names it.
    pub agent: String,
    pub description: String,
    pub prompt: String,
    /// A role, an id or `provider/id` in place of what the definition says.
    pub model: Option<String>,
    /// The id of an earlier sub-agent that continues.
    pub resume: Option<String>,
    /// The call is answered at once.
    pub background: bool,
}

/// What a launch led to.
#[derive(Debug)]
pub enum Spawned {
    /// The call waited for its end.
    Reported(Report),
    /// It continues in the background.
    Apart { begun: Begun, output: PathBuf, why: Away },
    /// The one that was to be resumed still runs: it reads the prompt at its next step.
    Told { id: String },
}

/// Why a sub-agent is in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Away {
    /// The model launched it there.
    Launched,
    /// The user moved it.
    Moved,
}

/// How a sub-agent ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// For `resume`; empty when it never began.
    pub id: String,
    pub agent: String,
    pub end: TurnEnd,
    /// The last that it said.
    pub text: String,
    /// Why it failed.
    pub failure: Option<String>,
    /// Calls that it made.
    pub tools: u32,
    /// Tokens that stood in its window at the end.
    pub tokens: u64,
    pub millis: u64,
}

impl Report {
    /// Of one that was cancelled before it began.
    pub fn interrupted(id: &str, agent: &str) -> Report {
        Report {
            id: id.to_owned(),
            agent: agent.to_owned(),
            end: TurnEnd::Interrupted,
            text: String::new(),
            failure: None,
            tools: 0,
            tokens: 0,
            millis: 0,
        }
    }
}

/// Says which types there are.
pub fn no_such_agent(definitions: &Definitions, name: &str) -> String {
    let names: Vec<&str> = definitions.active().map(|definition| definition.name.as_str()).collect();
    format!("No agent type {name:?}. The types are: {}.", names.join(", "))
}

pub(super) struct Task {
    definitions: Arc<Definitions>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The task in three to five words, for the user
    description: String,
    /// The task, with everything the agent needs to know
    prompt: String,
    /// The type of agent
    subagent_type: String,
    /// haiku, sonnet or opus; overrides the type's model
    #[serde(default)]
    model: Option<String>,
    /// Id of an agent to continue
    #[serde(default)]
    resume: Option<String>,
    #[serde(default)]
    run_in_background: Option<bool>,
}

impl Task {
    /// A tool that launches these.
    pub(super) fn new(definitions: Arc<Definitions>) -> Task {
        Task { definitions }
    }
}

/// What Claude Code calls the tool by now.
pub(super) const AGENT: &str = "Agent";

impl Typed for Task {
    type Input = Input;

    const NAME: &'static str = "Task";
    const ABOUT: &'static str = include_str!("../../../assets/tools/task.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { under: Some(AGENT), ..Ruled::BY_NAME },
        // The call itself changes nothing; every call of the sub-agent is judged by itself.
        reads: true,
        offered: Offered::Main,
        matched: "subagent_type",
        aliases: &[AGENT],
        needs_room: true,
        ..Manners::CHANGES
    };

    fn about(&self) -> String {
        format!("{}\n{}", Self::ABOUT.trim(), self.definitions.for_model().trim_end())
    }

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        if input.prompt.trim().is_empty() {
            return Err("Parameter `prompt` is empty: say what the agent should do.".into());
        }
        let Some(definition) = self.definitions.get(&input.subagent_type) else {
            return Err(no_such_agent(&self.definitions, &input.subagent_type));
        };
        let title = file::one_line(&format!("{}: {}", input.subagent_type.trim(), input.description.trim()));
        let agent = definition.name.clone();
        let access = Access::Agent { kind: agent.clone(), read_only: definition.read_only() };
        let work = move |context: Context| async move {
            let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
            let launch = Launch {
                call: context.call.clone(),
                agent,
                description: input.description.trim().to_owned(),
                prompt: input.prompt,
                model: given(input.model),
                resume: given(input.resume),
                background: input.run_in_background == Some(true),
            };
            match context.host.spawn_agent(launch).await {
                Ok(Spawned::Reported(report)) => output(report),
                Ok(Spawned::Apart { begun, output, why }) => apart(&begun, output, why),
                Ok(Spawned::Told { id }) => {
                    Output::ok(format!("Agent {id} is still running. It reads your message at its next step."))
                }
                Err(problem) => Output::error(problem),
            }
        };
        Ok(Call::new(access, title, work))
    }
}

/// What the model is told of a sub-agent that continues in the background.
fn apart(begun: &Begun, output: PathBuf, why: Away) -> Output {
    let (task, id) = (&begun.task, begun.agent().unwrap_or(&begun.task));
    let (told, word) = match why {
        Away::Launched => (format!("Agent {task} is running in the background"), "running"),
        Away::Moved => (format!("The user moved agent {task} to the background, where it continues"), "moved to run"),
    };
    let text = format!(
        "{told}. You are told its report when it ends, so do not wait for it, poll, or do its work yourself. What it does is \
         written to {}. TaskStop ends it; Task with `resume: \"{id}\"` sends it a message.",
        output.display()
    );
    let display = Display::Launched { id: id.to_owned(), output, text: format!("{word} in the background as {task}") };
    Output { display: Some(display), ..Output::ok(text) }
}

/// What the model is told of a sub-agent that ended.
pub fn output(report: Report) -> Output {
    let Report { id, agent, end, text, failure, tools, tokens, millis } = report;
    let said = text.trim();
    let last = if said.is_empty() { String::new() } else { format!("\n\nIts last message:\n\n{said}") };
    let (outcome, told) = match end {
        TurnEnd::Done if said.is_empty() => (Outcome::Error, "The agent ended without a report.".to_owned()),
        TurnEnd::Done => (Outcome::Ok, said.to_owned()),
        TurnEnd::Interrupted => (Outcome::Interrupted, format!("The agent was interrupted.{last}")),
        TurnEnd::Failed => {
            let why = failure.as_deref().unwrap_or("unknown reason");
            (Outcome::Error, format!("The agent failed: {why}{last}"))
        }
        TurnEnd::MaxTurns => {
            (Outcome::Error, format!("The agent reached its limit of model calls; its work is incomplete.{last}"))
        }
        TurnEnd::Budget => (Outcome::Error, format!("The agent stopped because a budget is used up.{last}")),
        TurnEnd::Stopped => (Outcome::Error, format!("A hook stopped the agent.{last}")),
        TurnEnd::NoAnswer => (Outcome::Error, format!("The agent gave no answer that fits its schema.{last}")),
        TurnEnd::Repeated => (Outcome::Error, format!("The agent was stopped because it was going in circles.{last}")),
        TurnEnd::Refused => {
            (Outcome::Denied, format!("The user denied one of the agent's calls and stopped it.{last}"))
        }
    };
    let told = match id.is_empty() {
        true => told,
        false => format!("{told}\n\n[agent {id}, {agent}; `resume: \"{id}\"` continues it]"),
    };
    let display = (!id.is_empty()).then_some(Display::Agent { id, tools, tokens, millis });
    // A no without a comment stops the whole turn, no matter who asked.
    let after = if end == TurnEnd::Refused { vec![After::End(TurnEnd::Refused)] } else { Vec::new() };
    Output { outcome, display, after, ..Output::ok(told) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::fixture::Fixture;

    fn task() -> Task {
        Task::new(Arc::new(Definitions::builtin()))
    }

    #[test]
    fn what_a_call_touches_is_its_type() {
        let fixture = Fixture::new();
        let access = |input: Value| fixture.call(&task(), input).map(|call| call.access().clone());
        let call = |kind: &str| json!({"description": "d", "prompt": "p", "subagent_type": kind});
        for (kind, want, read_only) in
            [("Explore", "Explore", true), ("explore", "Explore", true), ("general-purpose", "general-purpose", false)]
        {
            let want = Access::Agent { kind: want.into(), read_only };
            assert_eq!(access(call(kind)), Ok(want), "{kind}");
        }
        assert_eq!(
            access(call("Nobody")).unwrap_err(),
            "No agent type \"Nobody\". The types are: general-purpose, Explore, Plan."
        );
        let empty = json!({"description": "d", "prompt": " ", "subagent_type": "Plan"});
        assert!(access(empty).unwrap_err().starts_with("Parameter `prompt` is empty"));
        assert_eq!(fixture.call(&task(), call("Explore")).unwrap().title(), "Explore: d");
    }

    #[test]
    fn every_end_is_told() {
        let told = |end, text: &str| {
            let failure = Some("no key".to_owned());
            let report = Report { text: text.into(), failure, ..Report::interrupted("a1", "Plan") };
            let output = output(Report { end, ..report });
            let crate::message::Content::Text { text } = &output.content[0] else { panic!("{output:?}") };
            format!("{:?} {:?} {}", output.outcome, output.after, text.replace('\n', "⏎"))
        };
        let lines = [
            told(TurnEnd::Done, "All of it."),
            told(TurnEnd::Done, " "),
            told(TurnEnd::Interrupted, "Half."),
            told(TurnEnd::Failed, ""),
            told(TurnEnd::MaxTurns, "Half."),
            told(TurnEnd::Repeated, ""),
            told(TurnEnd::Refused, ""),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
            Ok [] All of it.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Error [] The agent ended without a report.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Interrupted [] The agent was interrupted.⏎⏎Its last message:⏎⏎Half.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Error [] The agent failed: no key⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Error [] The agent reached its limit of model calls; its work is incomplete.⏎⏎Its last message:⏎⏎Half.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Error [] The agent was stopped because it was going in circles.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            Denied [End(Refused)] The user denied one of the agent's calls and stopped it.⏎⏎[agent a1, Plan; `resume: "a1"` continues it]
            "#);
    }
}
