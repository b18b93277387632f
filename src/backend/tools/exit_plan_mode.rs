//! ExitPlanMode: shows the plan file to the user, who approves it or asks for another one.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::{Display, Outcome};
use crate::permission::Access;
use crate::protocol::{Answer, Approval, Question, TurnEnd};

use super::call::Typed;
use super::{After, Call, Context, Dirs, Manners, Output};

pub(super) struct ExitPlanMode;

/// Longest plan that is shown, in bytes: nobody reviews more.
const MOST: u64 = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {}

impl Typed for ExitPlanMode {
    type Input = Input;

    const NAME: &'static str = "ExitPlanMode";
    const ABOUT: &'static str = include_str!("../../../assets/tools/exit_plan_mode.md");
    const MANNERS: Manners = Manners::ASKS;

    fn call(&self, Input {}: Input, _dirs: &Dirs) -> Result<Call, String> {
        let work = |context| async move { review(&context).await.unwrap_or_else(Output::error) };
        Ok(Call::new(Access::Free, "", work))
    }
}

async fn review(context: &Context) -> Result<Output, String> {
    let Some(path) = &context.plan else {
        return Err("Plan mode is off, so there is nothing to approve. Continue with the task.".into());
    };
    let plan = read(path)?;
    let how = match context.host.ask(Question::Plan { plan, path: path.clone() }).await {
        Some(Answer::Approve { how }) => how,
        Some(Answer::No { feedback: Some(words) }) if !words.trim().is_empty() => {
            let told = format!(
                "The user keeps planning and says: {}\nChange the plan in {} accordingly, then call ExitPlanMode again.",
                words.trim(),
                path.display()
            );
            return Ok(Output::denied(&told, words.trim()));
        }
        Some(_) => {
            let told = "The user did not approve the plan and stays in plan mode. Wait for their next message.";
            return Ok(Output { after: vec![After::End(TurnEnd::Refused)], ..Output::denied(told, "") });
        }
        None => {
            let told = "Interrupted before the user decided on the plan; plan mode is still on.";
            return Ok(Output { outcome: Outcome::Interrupted, ..Output::ok(told) });
        }
    };
    // What was edited in the dialog is what was approved.
    let plan = read(path)?;
    let mode = match how {
        Approval::AcceptEdits => "edits do not ask",
        Approval::AskEach => "each edit asks",
        Approval::FreshContext => "each edit asks, and the conversation restarts with the plan",
    };
    let told = format!(
        "The user approved the plan; plan mode is over, {mode}. Carry it out now, keeping a todo list if it has several steps. It is in {}:\n\n{plan}",
        path.display()
    );
    let display = Some(Display::Line { text: format!("Approved: {mode}") });
    Ok(Output { display, after: vec![After::PlanApproved { how, plan }], ..Output::ok(told) })
}

/// The plan as the file has it.
fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let missing = || format!("There is no plan yet: write it to {shown} with the Write tool, then call ExitPlanMode.");
    // A link could show what is not a plan.
    let meta = std::fs::symlink_metadata(path).map_err(|_| missing())?;
    if !meta.is_file() {
        return Err(format!("{shown} is not a regular file, so it cannot be the plan. Ask the user to remove it."));
    }
    if meta.len() > MOST {
        return Err(format!(
            "The plan has {} kB; the limit for a review is {} kB. Shorten it in {shown} to what matters.",
            meta.len() / 1024,
            MOST / 1024
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("Cannot read the plan in {shown}: {error}."))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.trim().is_empty() {
        return Err(format!("The plan is empty: write it to {shown} with the Write tool, then call ExitPlanMode."));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    async fn answered(fixture: &mut Fixture, answer: Option<Answer>) -> Output {
        fixture.answer = answer;
        fixture.run(&ExitPlanMode, json!({})).await
    }

    #[tokio::test]
    async fn each_choice() {
        let mut fixture = Fixture::new();
        let path = fixture.file("plans/p.md", "# Plan\n1. Do it.\n");
        fixture.plan = Some(path.clone());
        for how in [Approval::AcceptEdits, Approval::AskEach, Approval::FreshContext] {
            let output = answered(&mut fixture, Some(Answer::Approve { how })).await;
            assert_eq!(output.outcome, Outcome::Ok);
            assert!(fixture.text(&output).ends_with("p.md:\n\n# Plan\n1. Do it.\n"), "{output:?}");
            assert_eq!(output.after, [After::PlanApproved { how, plan: "# Plan\n1. Do it.\n".into() }]);
            assert_eq!(
                fixture.asked(),
                Some(Question::Plan { plan: "# Plan\n1. Do it.\n".into(), path: path.clone() })
            );
        }
        let words = Answer::No { feedback: Some(" use b.rs \n".into()) };
        let output = answered(&mut fixture, Some(words)).await;
        assert_eq!((output.outcome, output.after.as_slice()), (Outcome::Denied, &[][..]));
        assert!(fixture.text(&output).starts_with("The user keeps planning and says: use b.rs\n"));
        // Anything but an approval keeps planning, and ends the turn.
        for answer in [Answer::No { feedback: None }, Answer::No { feedback: Some(" ".into()) }, Answer::Yes] {
            let output = answered(&mut fixture, Some(answer)).await;
            assert_eq!((output.outcome, output.after), (Outcome::Denied, vec![After::End(TurnEnd::Refused)]));
        }
        let output = answered(&mut fixture, None).await;
        assert_eq!((output.outcome, output.after), (Outcome::Interrupted, vec![]));
    }

    #[tokio::test]
    async fn without_a_plan_the_model_is_told_to_write_one() {
        let mut fixture = Fixture::new();
        let told = fixture.error(&ExitPlanMode, json!({})).await;
        assert_eq!(told, "Plan mode is off, so there is nothing to approve. Continue with the task.");
        fixture.plan = Some(fixture.root.join("p.md"));
        let told = fixture.error(&ExitPlanMode, json!({})).await;
        assert_eq!(told, "There is no plan yet: write it to ROOT/p.md with the Write tool, then call ExitPlanMode.");
        fixture.file("p.md", " \n");
        let told = fixture.error(&ExitPlanMode, json!({})).await;
        assert_eq!(told, "The plan is empty: write it to ROOT/p.md with the Write tool, then call ExitPlanMode.");
        fixture.file("p.md", "x".repeat(300 * 1024));
        assert!(fixture.error(&ExitPlanMode, json!({})).await.contains("300 kB"));
        #[cfg(unix)]
        {
            fixture.plan = Some(fixture.root.join("link.md"));
            std::os::unix::fs::symlink("/etc/passwd", fixture.root.join("link.md")).unwrap();
            assert!(fixture.error(&ExitPlanMode, json!({})).await.contains("not a regular file"));
        }
        assert_eq!(fixture.asked(), None);
    }
}
