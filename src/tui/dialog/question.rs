//! What each kind of question says and offers.

use ratatui::text::Line;

use crate::permission::Matches;
use crate::protocol::{Answer, GrantScope, PresetGrant, Question};
use crate::tools::RULES;
use crate::tui::paint;
use crate::tui::render::diff;
use crate::tui::theme::Theme;

/// Most rows of a diff in a dialog.
const DIFF_ROWS: usize = 2_000;

/// What choosing leads to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    Answer(Answer),
    /// Keeps the suggested rules, for as long as the scope beside it says.
    Always,
    /// Keeps the rules for all that the program needs, for the same time.
    Preset,
    /// Asks what to do instead.
    Feedback,
    /// Yes to this edit, and to all others that wait.
    Together,
}

impl Then {
    /// It gives nothing away.
    pub(super) fn refuses(&self) -> bool {
        matches!(self, Then::Feedback | Then::Answer(Answer::No { .. }))
    }

    /// The key that chooses it, besides its digit; of `Always` those that change its scope.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Then::Answer(Answer::Yes) => "y",
            Then::Answer(Answer::AllEdits) => "shift+tab",
            Then::Answer(Answer::Unconfined) => "u",
            Then::Answer(_) if !self.refuses() => "",
            Then::Answer(_) | Then::Feedback => "n",
            Then::Always => "←→",
            Then::Preset => "p",
            Then::Together => "a",
        }
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
        Question::Permission { tool, title, .. } => match RULES.of(tool).matches {
            Matches::Command => format!("{tool} wants to run a command"),
            Matches::Reading => format!("{tool} wants to read {title}"),
            _ => format!("{tool} asks for permission"),
        },
        Question::Connect { place, .. } => format!("A command wants to connect to {place}"),
        Question::Trust { plugin: Some(id), .. } => format!("Do you trust the plugin {id}?"),
        Question::Trust { .. } => "Do you trust this folder?".to_owned(),
        Question::LocalServer { .. } => "Found a local model server".to_owned(),
        Question::Repeated { tool, times, .. } => format!("{tool} returned the same result {times} times"),
        Question::Unrecorded { .. } => "The disk is full".to_owned(),
        Question::Locked { .. } => "This session is open in another process".to_owned(),
        Question::Import { .. } => "A memory file wants to import another file".to_owned(),
        Question::EnterPlan { .. } => "The agent wants to plan first".to_owned(),
        Question::Plan { .. } => "The plan is ready".to_owned(),
        Question::Choices { questions } => match questions.as_slice() {
            [one] => one.question.clone(),
            several => format!("The agent asks {} things", several.len()),
        },
    }
}

/// All that is between title and choices.
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
        Question::Connect { command, place, reasons, .. } => {
            lines.extend(code(command));
            lines.extend(text(&format!("It waits for {place}.")));
            for reason in reasons {
                lines.extend(dim(&format!("· {reason}")));
            }
        }
        Question::Trust { folder, plugin, uses, kept, gone } => {
            if plugin.is_none() {
                lines.extend(code(&folder.to_string_lossy()));
            }
            lines.extend(text(match kept.is_empty() {
                _ if plugin.is_some() => "If you do, this can run in every folder:",
                true => "If you do, cocode uses these settings of the folder:",
                false => "If you do, cocode uses these new settings of the folder:",
            }));
            for used in uses {
                lines.extend(text(&format!("· {used}")));
            }
            for line in gone {
                lines.extend(dim(&format!("· no longer there: {line}")));
            }
            lines.extend(dim(&match kept.len() {
                _ if plugin.is_some() => "Until then nothing of it runs.".to_owned(),
                0 => "Until then only its deny and ask rules apply.".to_owned(),
                1 => "1 setting you trusted before keeps working.".to_owned(),
                many => format!("{many} settings you trusted before keep working."),
            }));
        }
        Question::LocalServer { url, model } => {
            lines.extend(text(&format!("{url} offers {model}.")));
            lines.extend(dim("If you use it, your prompts and files go to this address."));
        }
        Question::Repeated { title, .. } => {
            lines.extend(code(title));
            lines.extend(dim("The agent may be going in circles."));
        }
        Question::Unrecorded { path } => {
            lines.extend(text("A command waits: what it is about to change could not be saved for undo."));
            lines.extend(code(&path.to_string_lossy()));
            lines.extend(dim("Free some space first if you want to be able to undo it."));
        }
        Question::Locked { session } => {
            lines.extend(text(&format!("Another process is writing session {session}.")));
        }
        Question::Import { file, import, reason } => {
            lines.extend(text(&format!("{} imports", file.display())));
            lines.extend(code(&import.to_string_lossy()));
            if !reason.is_empty() {
                lines.extend(dim(&format!("· {reason}")));
            }
            lines.extend(dim("Its text will be sent to the model."));
        }
        Question::EnterPlan { reason } => {
            lines.extend(reason.iter().flat_map(|reason| text(reason)));
            lines.extend(dim("It will read and write a plan. Nothing changes until you approve it."));
        }
        // These have panels of their own.
        Question::Plan { .. } | Question::Choices { .. } => {}
    }
    lines
}

/// The choice that answers several edits at once.
pub(super) fn together(others: &[String]) -> Option<Choice> {
    let count = match others.len() {
        0 => return None,
        1 => "Both edits".to_owned(),
        2 => "All three edits".to_owned(),
        more => format!("All {} edits", more + 1),
    };
    Some(choice(format!("{count}: this, {}", others.join(", ")), Then::Together))
}

/// Whether all that is there must have been on the screen before anything but a no can be chosen. What a diff shows
/// can be undone, and may be long.
pub(super) fn read_first(question: &Question) -> bool {
    !matches!(question, Question::Permission { diff: Some(_), .. })
}

/// What the user can choose; a label of one row has `room` cells.
pub(super) fn choices(question: &Question, scope: GrantScope, room: usize) -> Vec<Choice> {
    let yes = || Then::Answer(Answer::Yes);
    match question {
        Question::Permission { suggestions, all_edits, confined, unasked, preset, .. } => {
            let mut choices = vec![choice("Yes", yes())];
            if *all_edits {
                choices.push(choice("Yes, all edits in this session", Then::Answer(Answer::AllEdits)));
            }
            if !suggestions.is_empty() {
                choices.push(choice(always(question, scope, room), Then::Always));
            }
            if let Some(preset) = preset {
                choices.push(choice(needed(preset, scope), Then::Preset));
            }
            if *unasked {
                let label = "Yes, and from now on run sandboxed commands without asking";
                choices.push(choice(label, Then::Answer(Answer::Unasked)));
            }
            if *confined {
                choices.push(choice("Yes, outside of the sandbox", Then::Answer(Answer::Unconfined)));
            }
            choices.push(choice("No, and say why", Then::Feedback));
            choices
        }
        Question::Connect { suggestions, preset, .. } => {
            let mut choices = vec![choice("Yes, for this command", yes())];
            if !suggestions.is_empty() {
                choices.push(choice(always(question, scope, room), Then::Always));
            }
            if let Some(preset) = preset {
                choices.push(choice(needed(preset, scope), Then::Preset));
            }
            choices.push(choice("No, and say why", Then::Feedback));
            choices
        }
        Question::Trust { plugin: Some(_), .. } => vec![choice("Yes, trust this plugin", yes()), choice("No", no())],
        Question::Trust { .. } => vec![choice("Yes, trust this folder", yes()), choice("No", no())],
        Question::LocalServer { .. } => vec![choice("Yes, use it", yes()), choice("No", no())],
        Question::Repeated { .. } => {
            vec![choice("Continue", yes()), choice("Stop, and say why", Then::Feedback)]
        }
        Question::Unrecorded { .. } => {
            vec![choice("Continue without undo", yes()), choice("Stop the command", no())]
        }
        Question::Locked { .. } => vec![
            choice("Fork it: continue in a copy", Then::Answer(Answer::Fork)),
            choice("Open it read-only", Then::Answer(Answer::ReadOnly)),
        ],
        Question::Import { .. } => vec![choice("Yes, import it", yes()), choice("No", no())],
        Question::EnterPlan { .. } => {
            vec![choice("Yes, plan first", yes()), choice("No, continue without a plan", no())]
        }
        Question::Plan { .. } | Question::Choices { .. } => vec![choice("No", no())],
    }
}

/// Where rules can be kept: a word for the choice, and what it means.
const SCOPES: [(GrantScope, &str, &str); 3] = [
    (GrantScope::Session, "session", "session: until it ends"),
    (GrantScope::Project, "project", "project: .claude/settings.local.json"),
    (GrantScope::User, "me", "me: user settings, in every project"),
];
/// What is before the rules, and between them and all scopes.
const ALWAYS: &str = "Yes, always: ";
const GAP: &str = "   ";

/// The scopes that a question offers.
fn scopes(question: &Question) -> &'static [(GrantScope, &'static str, &'static str)] {
    match question {
        Question::Permission { session_only: true, .. } => &SCOPES[..1],
        _ => &SCOPES,
    }
}

/// What a scope means.
pub(super) fn means(scope: GrantScope) -> &'static str {
    SCOPES.iter().find(|(one, ..)| *one == scope).map_or("", |(.., means)| means)
}

/// The scope beside another one; the first and the last have one neighbour.
pub(super) fn beside(question: &Question, scope: GrantScope, by: isize) -> GrantScope {
    let scopes = scopes(question);
    let at = scopes.iter().position(|(one, ..)| *one == scope).unwrap_or(0);
    scopes[at.saturating_add_signed(by).min(scopes.len() - 1)].0
}

/// What the choice of a preset says: whose hosts it keeps, and which.
fn needed(PresetGrant { name, rules }: &PresetGrant, scope: GrantScope) -> String {
    let host = |rule: &String| {
        let (_, host) = rule.split_once("(domain:")?;
        host.strip_suffix(')').map(str::to_owned)
    };
    let hosts: Vec<String> = rules.iter().filter_map(host).collect();
    let kept = SCOPES.iter().find(|(one, ..)| *one == scope).map_or("", |(_, word, _)| word);
    if name.is_empty() {
        return format!("Always ‹{kept}›, what the sandbox denied: {}", rules.join(", "));
    }
    format!("Always ‹{kept}›, all that {name} needs: {}", hosts.join(", "))
}

/// The rules of the preset that is offered.
pub(super) fn preset(question: &Question) -> &[String] {
    match question {
        Question::Connect { preset: Some(preset), .. } | Question::Permission { preset: Some(preset), .. } => {
            &preset.rules
        }
        _ => &[],
    }
}

/// The rules that are suggested.
pub(super) fn suggestions(question: &Question) -> &[String] {
    match question {
        Question::Permission { suggestions, .. } | Question::Connect { suggestions, .. } => suggestions,
        _ => &[],
    }
}

/// All suggested rules in one row, where they can be read in it.
fn row_of_rules(question: &Question, room: usize) -> Option<String> {
    let rules: Vec<String> = suggestions(question).iter().map(|rule| paint::visible(&paint::dense(rule))).collect();
    let row = rules.join(", ");
    let narrow = paint::width(&narrow("session", &row));
    (!row.contains('\n') && narrow <= room).then_some(row)
}

fn narrow(scope: &str, rules: &str) -> String {
    format!("Always ‹{scope}›: {rules}")
}

/// What the choice of keeping the rules says: the rules, where one row of `room` cells holds them, and for how long.
pub(super) fn always(question: &Question, scope: GrantScope, room: usize) -> String {
    let chosen = SCOPES.iter().find(|(one, ..)| *one == scope).map_or("", |(_, word, _)| word);
    let Some(rules) = row_of_rules(question, room) else { return narrow(chosen, "rules above") };
    let mark = |(_, word, _): &(GrantScope, &str, &str)| {
        if *word == chosen { format!("‹{word}›") } else { format!(" {word} ") }
    };
    let scopes: String = scopes(question).iter().map(mark).collect();
    let all = format!("{ALWAYS}{rules}{GAP}{}", scopes.trim_end());
    let widest = paint::width(ALWAYS) + paint::width(&rules) + paint::width(GAP) + paint::width(&scopes);
    if widest <= room { all } else { narrow(chosen, &rules) }
}

/// Whether the rules stand in the body, since no row holds them.
pub(super) fn rules_in_body(question: &Question, room: usize) -> bool {
    !suggestions(question).is_empty() && row_of_rules(question, room).is_none()
}

/// The rules exactly as they would be saved, where the choice cannot hold them.
pub(super) fn rules(question: &Question, room: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if !rules_in_body(question, room) {
        return Vec::new();
    }
    let mut lines = paint::folded("“Yes, always” would stop asking for these:", width, theme.text);
    for rule in suggestions(question) {
        lines.extend(paint::folded(&paint::dense(rule), width, theme.code));
    }
    lines
}
