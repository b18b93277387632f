//! Plans instead of acting: looks around, writes the plan file, submits it.

use serde_json::json;

use super::intent::Intent;
use super::{Situation, listed, read, say, tool};
use crate::message::{Effect, Outcome, PlanNote};
use crate::provider::Request;
use crate::provider::offline::script::{Part, plan_file};

/// The plan file, while the model was last told that plan mode is on.
pub(super) fn planning(request: &Request) -> Option<String> {
    let mut notes = request.messages.iter().flat_map(|message| &message.effects).filter_map(|effect| match effect {
        Effect::Plan { note, .. } => Some(*note),
        _ => None,
    });
    notes.next_back().filter(|note| *note != PlanNote::Exit).and_then(|_| plan_file(request))
}

pub(super) fn recipe(situation: &Situation, file: &str) -> Vec<Part> {
    let write = |words: Option<&str>| tool("Write", json!({ "file_path": file, "content": text(situation, words) }));
    let Some(last) = situation.steps.last() else {
        return vec![say("Let me look around first, then write a plan."), tool("LS", json!({ "path": "." }))];
    };
    match (last.call.name.as_str(), last.result.outcome) {
        ("Write", Outcome::Ok) => vec![say("Wrote the plan."), tool("ExitPlanMode", json!({}))],
        // It exists from an earlier time and has to be read first.
        ("Write", _) if situation.of_tool("Read").next().is_none() => vec![read(file)],
        ("ExitPlanMode", Outcome::Denied) => {
            let told = last.text();
            let words = told.split_once("says: ").and_then(|(_, rest)| rest.lines().next());
            match words {
                Some(words) => vec![say("Updating the plan with that."), write(Some(words))],
                None => vec![say("The plan is unchanged. What should I change?")],
            }
        }
        ("LS" | "Read", _) => vec![write(None)],
        _ => vec![say(format!("`{}` failed, so there is no plan yet.", last.call.name))],
    }
}

fn text(situation: &Situation, words: Option<&str>) -> String {
    let intent = Intent::of(&situation.prompt);
    let (steps, files): (Vec<String>, Vec<String>) = match &intent {
        Intent::Fix { .. } | Intent::Test => (
            vec![
                "Run the tests and read what fails.".into(),
                "Read the function the failure points to.".into(),
                "Make the smallest change that fixes it.".into(),
                "Run the tests again.".into(),
            ],
            vec!["the file the failing test points to".into()],
        ),
        Intent::Replace { old, new, path } => (
            vec![format!("Replace `{old}` with `{new}`.")],
            vec![path.as_ref().map_or("the files that contain it".into(), |path| format!("`{path}`"))],
        ),
        Intent::Create { path, .. } => (vec![format!("Create `{path}`.")], vec![format!("`{path}` (new)")]),
        Intent::Append { path, .. } => (vec![format!("Append the text to `{path}`.")], vec![format!("`{path}`")]),
        Intent::Delete { path } => (vec![format!("Delete `{path}`.")], vec![format!("`{path}`")]),
        _ => (vec![format!("Do what was asked: {}", situation.prompt)], vec!["none known yet".into()]),
    };
    let numbered: Vec<String> = steps.iter().enumerate().map(|(at, step)| format!("{}. {step}", at + 1)).collect();
    let files: Vec<String> = files.iter().map(|file| format!("- {file}")).collect();
    let seen = situation.of_tool("LS").last().map(|step| listed(&step.text()).join(", ")).unwrap_or_default();
    let mut text = format!(
        "# Plan\n\n## Summary\n{}\n\nThe folder contains: {seen}.\n\n## Approach\n{}\n\n## Files to Modify\n{}\n\n## Considerations\n- The smallest change that does the job; nothing else is touched.\n",
        situation.prompt,
        numbered.join("\n"),
        files.join("\n")
    );
    if let Some(words) = words {
        text.push_str(&format!("- Asked for in the review: {words}\n"));
    }
    text.push_str("\n## Verification\nRun the project's narrowest check that covers the change.\n");
    text
}
