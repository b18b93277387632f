//! Answers to questions, for the person who is not there.

use serde_json::json;

use super::Run;
use crate::protocol::{Answer, Question};

impl Run<'_> {
    /// Answers in place of a person. The model is told, and continues.
    pub(super) fn nobody(&mut self, question: Question) -> Answer {
        match question {
            Question::Permission { call, tool, input, reasons, .. } => {
                self.denials.push(json!({ "tool_name": tool, "tool_use_id": call, "tool_input": input }));
                let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
                Answer::Nobody {
                    told: format!(
                        "Nobody can be asked{why}. Continue without this call, and say at the end what could not be done."
                    ),
                }
            }
            Question::Connect { call, command, place, suggestions, .. } => {
                let input = json!({ "command": command, "connect": place });
                self.denials.push(json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": input }));
                let rule = suggestions.first().map(|rule| format!(" (the rule {rule} would allow it)"));
                Answer::Nobody { told: format!("nobody can be asked{}", rule.unwrap_or_default()) }
            }
            Question::Trust { plugin: Some(id), uses, .. } => {
                let fix = match id.ends_with("@inline") {
                    true => "start with --trust to use it".to_owned(),
                    false => format!("`cocode plugin trust {id}` lets it"),
                };
                let uses = uses.iter().map(|used| whole(used)).collect::<Vec<_>>().join(", ");
                let _ = writeln!(self.err, "the plugin {id} is not trusted, so this does not run: {uses}; {fix}");
                Answer::Nobody { told: "nobody can be asked".into() }
            }
            Question::Trust { folder, uses, kept, .. } => {
                // Standard error may be closed; the run continues without it.
                let _ = writeln!(
                    self.err,
                    "{} is not trusted{}, so these settings are ignored: {}; start with --trust to use them",
                    folder.display(),
                    if kept.is_empty() { "" } else { " with its new settings" },
                    uses.iter().map(|used| whole(used)).collect::<Vec<_>>().join(", ")
                );
                Answer::Nobody { told: "nobody can be asked".into() }
            }
            Question::Import { import, .. } => {
                self.imports.push(import.display().to_string());
                Answer::No { feedback: None }
            }
            Question::LocalServer { .. }
            | Question::Repeated { .. }
            | Question::Unrecorded { .. }
            | Question::Locked { .. } => Answer::No { feedback: None },
            Question::Plan { plan, .. } => {
                // What was asked for is the plan; the turn ends with it.
                self.plan = Some(plan);
                Answer::No { feedback: None }
            }
            Question::EnterPlan { .. } | Question::Choices { .. } => {
                Answer::Nobody { told: "Nobody can be asked: decide yourself, and say what you assumed.".into() }
            }
        }
    }
}

/// All lines of what would run, in one: who starts with --trust has read it.
fn whole(used: &str) -> String {
    used.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ⏎ ")
}
