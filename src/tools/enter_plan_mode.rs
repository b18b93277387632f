//! EnterPlanMode: asks the user whether to plan first.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::message::Outcome;
use crate::permission::Access;
use crate::protocol::{Answer, Question};
use crate::provider::ToolSpec;

use super::{After, Context, Dirs, Output, Running, Tool, file, input};

pub(super) struct EnterPlanMode;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Why, in one sentence for the user
    reason: Option<String>,
}

impl Tool for EnterPlanMode {
    fn spec(&self) -> ToolSpec {
        let description = include_str!("../../assets/tools/enter_plan_mode.md").trim().into();
        ToolSpec { name: "EnterPlanMode".into(), description, schema: input::schema::<Input>() }
    }

    fn access(&self, input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Result<Access, String> {
        input::parse::<Input>(input).map(|_| Access::Free)
    }

    // What follows in the same reply is judged in the mode that comes of it.
    fn read_only(&self, _input: &Value) -> bool {
        false
    }

    fn title(&self, input: &Value) -> String {
        file::one_line(file::text_of(input, "reason"))
    }

    fn clearable(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move { enter(&input, context).await.unwrap_or_else(Output::error) })
    }
}

async fn enter(input: &Value, context: &Context<'_>) -> Result<Output, String> {
    let Input { reason } = input::parse(input)?;
    if let Some(file) = context.plan {
        return Err(format!("Plan mode is already on. The plan file is {}.", file.display()));
    }
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    Ok(match context.host.ask(Question::EnterPlan { reason }).await {
        Some(Answer::Yes | Answer::Always { .. }) => Output {
            after: vec![After::EnterPlan],
            ..Output::ok("The user agrees: plan mode is on. A reminder with the plan file and the steps follows.")
        },
        Some(Answer::No { feedback: Some(words) }) => Output::denied(
            &format!("The user does not want a plan first and says: {}. Continue without one.", words.trim()),
            &words,
        ),
        Some(_) => Output::denied("The user does not want a plan first. Continue with the task.", ""),
        None => Output { outcome: Outcome::Interrupted, ..Output::ok("Interrupted before the user answered.") },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[tokio::test]
    async fn asks_first() {
        let mut fixture = Fixture::new();
        for (answer, outcome, after) in [
            (Some(Answer::Yes), Outcome::Ok, vec![After::EnterPlan]),
            (Some(Answer::No { feedback: None }), Outcome::Denied, vec![]),
            (Some(Answer::No { feedback: Some("too small".into()) }), Outcome::Denied, vec![]),
            (Some(Answer::Fork), Outcome::Denied, vec![]),
            (None, Outcome::Interrupted, vec![]),
        ] {
            fixture.answer = answer;
            let output = fixture.run(&EnterPlanMode, json!({"reason": " many files "})).await;
            assert_eq!((output.outcome, output.after), (outcome, after));
            assert_eq!(fixture.asked(), Some(Question::EnterPlan { reason: Some("many files".into()) }));
        }
        fixture.plan = Some("/h/plans/p.md".into());
        assert!(fixture.error(&EnterPlanMode, json!({})).await.contains("/h/plans/p.md"));
        assert_eq!(fixture.asked(), None);
    }
}
