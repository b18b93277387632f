//! What each kind of question says and offers.

use ratatui::text::Line;

use crate::protocol::{Answer, GrantScope, Question};
use crate::tui::paint;
use crate::tui::render::diff;
use crate::tui::theme::Theme;

/// Most rows of a diff in a dialog.
const DIFF_ROWS: usize = 2_000;

/// What choosing leads to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    Answer(Answer),
    /// Shows the rules and asks where to keep them.
    Scope,
    /// Asks what to do instead.
    Feedback,
}

impl Then {
    /// It gives nothing away.
    pub(super) fn refuses(&self) -> bool {
        matches!(self, Then::Feedback | Then::Answer(Answer::No { .. }))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) label: String,
    pub(super) then: Then,
}

fn choice(label: impl Into<String>, then: Then) -> Choice {
    Choice { label: label.into(), then }
}

fn no() -> Then {
    Then::Answer(Answer::No { feedback: None })
}

/// One line that says what is asked.
pub(super) fn title(question: &Question) -> String {
    match question {
        Question::Permission { tool, title, diff: Some(diff), .. } => {
            let what = if diff.created { "create" } else { "change" };
            format!("{tool} wants to {what} {title} (+{} −{})", diff.added, diff.removed)
        }
        Question::Permission { tool, .. } if tool == "Bash" => "Bash wants to run a command".to_owned(),
        Question::Permission { tool, .. } => format!("{tool} asks for permission"),
        Question::Trust { .. } => "Do you trust this folder?".to_owned(),
        Question::LocalServer { .. } => "A local model server was found".to_owned(),
        Question::Repeated { tool, times, .. } => format!("{tool} gave the same result {times} times"),
        Question::Locked { .. } => "This session is open in another process".to_owned(),
        Question::Import { .. } => "A memory file imports a file from outside".to_owned(),
        Question::EnterPlan { .. } => "The agent wants to plan first".to_owned(),
        Question::Plan { .. } => "The plan is ready".to_owned(),
        Question::Choices { questions } => match questions.as_slice() {
            [one] => one.question.clone(),
            several => format!("The agent asks {} things", several.len()),
        },
    }
}

/// All that stands between title and choices.
pub(super) fn body(question: &Question, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let text = |text: &str| paint::folded(&paint::dense(text), width, theme.text);
    let dim = |text: &str| paint::folded(&paint::dense(text), width, theme.dim);
    let code = |text: &str| paint::folded(&paint::dense(text), width, theme.code);
    let mut lines = Vec::new();
    match question {
        Question::Permission { title, input, diff, reasons, .. } => {
            // A title may be cut; what is approved is shown in full.
            let command = input.get("command").and_then(|command| command.as_str());
            if diff.as_ref().is_none_or(|diff| diff.path != *title && !diff.path.ends_with(&format!("/{title}"))) {
                lines.extend(code(command.unwrap_or(title)));
            }
            if let Some(description) = input.get("description").and_then(|text| text.as_str()) {
                lines.extend(dim(description));
            }
            if let Some(diff) = diff {
                lines.extend(diff::rows(diff, width, theme, Some(DIFF_ROWS)).into_iter().map(|row| row.line));
            }
            let path = diff.as_ref().map_or("", |diff| diff.path.as_str());
            // That it changes the file is what the title and the diff say; what only reads is not what is asked about.
            let telling = |reason: &&String| {
                reason.strip_prefix("it changes ") != Some(path) && !reason.ends_with(": it only reads")
            };
            for reason in reasons.iter().filter(telling) {
                lines.extend(dim(&format!("· {reason}")));
            }
        }
        Question::Trust { folder, uses } => {
            lines.extend(code(&folder.to_string_lossy()));
            lines.extend(text("If you do, what it brings along is used:"));
            for used in uses {
                lines.extend(text(&format!("· {used}")));
            }
            lines.extend(dim("Until then only its deny and ask rules count."));
        }
        Question::LocalServer { url, model } => {
            lines.extend(text(&format!("{url} offers {model}.")));
            lines.extend(dim("Your prompts and files go to this address when you use it."));
        }
        Question::Repeated { title, .. } => {
            lines.extend(code(title));
            lines.extend(dim("The agent may be going in circles."));
        }
        Question::Locked { session } => {
            lines.extend(text(&format!("Session {session} is being written by another process.")));
        }
        Question::Import { file, import } => {
            lines.extend(text(&format!("{} imports", file.display())));
            lines.extend(code(&import.to_string_lossy()));
            lines.extend(dim("Its text goes to the model."));
        }
        Question::EnterPlan { reason } => {
            lines.extend(reason.iter().flat_map(|reason| text(reason)));
            lines.extend(dim("It reads and writes a plan; nothing is changed until you approve it."));
        }
        // These have panels of their own.
        Question::Plan { .. } | Question::Choices { .. } => {}
    }
    lines
}

/// Whether all that stands there must have been on the screen before anything but a no can be chosen. What a diff shows
/// can be undone, and may be long.
pub(super) fn read_first(question: &Question) -> bool {
    !matches!(question, Question::Permission { diff: Some(_), .. })
}

/// What the user can choose first.
pub(super) fn choices(question: &Question) -> Vec<Choice> {
    let yes = || Then::Answer(Answer::Yes);
    match question {
        Question::Permission { suggestions, .. } => {
            let mut choices = vec![choice("Yes", yes())];
            if !suggestions.is_empty() {
                choices.push(choice(format!("Yes, and don't ask again for {}", suggestions.join(", ")), Then::Scope));
            }
            choices.push(choice("No, and tell the agent what to do instead", Then::Feedback));
            choices
        }
        Question::Trust { .. } => vec![choice("Yes, trust this folder", yes()), choice("No", no())],
        Question::LocalServer { .. } => vec![choice("Yes, use it", yes()), choice("No", no())],
        Question::Repeated { .. } => {
            vec![choice("Go on", yes()), choice("Stop, and tell the agent what to do instead", Then::Feedback)]
        }
        Question::Locked { .. } => vec![
            choice("Fork it: go on in a copy", Then::Answer(Answer::Fork)),
            choice("Open it to read only", Then::Answer(Answer::ReadOnly)),
        ],
        Question::Import { .. } => vec![choice("Yes, import it", yes()), choice("No", no())],
        Question::EnterPlan { .. } => vec![choice("Yes, plan first", yes()), choice("No, go on without a plan", no())],
        Question::Plan { .. } | Question::Choices { .. } => vec![choice("No", no())],
    }
}

/// Where the suggested rules can be kept.
pub(super) fn scopes(question: &Question) -> Vec<Choice> {
    let Question::Permission { suggestions, .. } = question else { return Vec::new() };
    let always = |scope| Then::Answer(Answer::Always { rules: suggestions.clone(), scope });
    vec![
        choice("For this session", always(GrantScope::Session)),
        choice("For this project (.claude/settings.local.json)", always(GrantScope::Project)),
        choice("For me, everywhere (user settings)", always(GrantScope::User)),
    ]
}

/// The rules exactly as they would be saved.
pub(super) fn rules(question: &Question, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Question::Permission { suggestions, .. } = question else { return Vec::new() };
    let mut lines = paint::folded("From now on this runs without asking:", width, theme.text);
    for rule in suggestions {
        lines.extend(paint::folded(&paint::dense(rule), width, theme.code));
    }
    lines
}
