//! EnterPlanMode: asks the user whether to plan first.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Outcome;
use crate::permission::Access;
use crate::protocol::{Answer, Question};

use super::call::Typed;
use super::{After, Call, Context, Dirs, Manners, Output, file};

pub(super) struct EnterPlanMode;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Why, in one sentence for the user
    reason: Option<String>,
}

impl Typed for EnterPlanMode {
    type Input = Input;

    const NAME: &'static str = "EnterPlanMode";
    const ABOUT: &'static str = include_str!("../../../assets/tools/enter_plan_mode.md");
    const MANNERS: Manners = Manners { needs_room: true, ..Manners::ASKS };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        let title = file::one_line(input.reason.as_deref().unwrap_or_default());
        let work = |context| async move { enter(input, &context).await.unwrap_or_else(Output::error) };
        Ok(Call::new(Access::Free, title, work))
    }
}

async fn enter(Input { reason }: Input, context: &Context) -> Result<Output, String> {
    if let Some(file) = &context.plan {
        return Err(format!("Plan mode is already on. The plan file is {}.", file.display()));
    }
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    Ok(match context.host.ask(Question::EnterPlan { reason }).await {
        Some(Answer::Yes | Answer::Always { .. }) => Output {
            after: vec![After::EnterPlan],
            ..Output::ok("The user agrees: plan mode is on. A reminder with the plan file and the steps follows.")
        },
        Some(Answer::Nobody { told }) => Output { outcome: Outcome::Denied, ..Output::ok(told) },
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
