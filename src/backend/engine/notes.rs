//! `/memory add`, and a prompt that begins with `#`: a line for a memory file, written as a `!` line of the user would.

use std::path::{Path, PathBuf};

use super::inbox::Inbox;
use super::{Engine, Presence, Prompt, Setup};
use crate::protocol::{Answer, ChoiceOption, Choices, Question};
use crate::stdx::shell_word::quoted;

/// Where a line may go, or what else becomes of it.
struct Place {
    label: &'static str,
    about: &'static str,
    file: PathBuf,
}

/// Marks the file that is for this user alone.
const LOCAL: &str = ".local.";
const PROMPT: &str = "Send it as a prompt";

/// The user's own file in Claude Code, which reads it under no other name.
const USUAL: &str = "CLAUDE.md";

/// The memory files of a session that take a line: one that is there, or else the usual one, or the first of its kind.
fn places(names: &[String], project: &Path, home: &Path) -> Vec<Place> {
    let of = |folder: &Path, local: bool, usual: Option<&str>| {
        let mut names = names.iter().filter(|name| name.contains(LOCAL) == local);
        let new = names.clone().find(|name| Some(name.as_str()) == usual).or(names.clone().next());
        names.find(|name| folder.join(name).is_file()).or(new).map(|name| folder.join(name))
    };
    let place = |label, about, file: Option<PathBuf>| file.map(|file| Place { label, about, file });
    [
        place("Project", "shared with everyone who works on it", of(project, false, None)),
        place("Local", "this project, you alone", of(project, true, None)),
        place("User", "all your projects", of(home, false, Some(USUAL))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The line for the shell that adds a note to a file.
fn adding(file: &Path, shown: &str, note: &str) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    // A note is a line of its own.
    let begins = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\\n" };
    let folder = file.parent().filter(|folder| !folder.is_dir());
    let folder = folder.map_or(String::new(), |folder| format!("mkdir -p {} && ", quoted(&folder.to_string_lossy())));
    format!("{folder}printf '{begins}%s\\n' {} >> {shown}", quoted(&format!("- {note}")))
}

/// Adds a line to the memory file that the user chooses.
pub(super) async fn add(engine: &mut Engine, note: &str, inbox: &mut Inbox) {
    let Setup { project, paths, .. } = &engine.setup;
    let mut places = places(&engine.loaded.config.memory.files, project, &paths.home);
    let name = |file: &Path| paths.tilde(&file.strip_prefix(project).unwrap_or(file).to_string_lossy());
    let mut options: Vec<ChoiceOption> = places
        .iter()
        .map(|place| ChoiceOption {
            label: format!("{}: {}", place.label, name(&place.file)),
            description: place.about.to_owned(),
        })
        .collect();
    let chosen = match engine.setup.presence {
        // The first one is what everybody expects.
        Presence::Unattended => Some(0),
        Presence::Attended => {
            options.push(ChoiceOption { label: PROMPT.to_owned(), description: "nothing is remembered".to_owned() });
            let labels: Vec<String> = options.iter().map(|option| option.label.clone()).collect();
            let question = Choices {
                header: "Remember".to_owned(),
                question: format!("Where should this be remembered? {note}"),
                multi: false,
                options,
            };
            let mailbox = engine.mailbox.clone();
            let cancel = mailbox.begin();
            let question = Question::Choices { questions: vec![question] };
            let answer = inbox.attend(mailbox.ask(question, &cancel)).await;
            mailbox.end();
            match answer {
                Some(Answer::Chosen { answers }) => {
                    let answer = answers.into_iter().flatten().next().unwrap_or_default();
                    labels.iter().position(|label| *label == answer)
                }
                _ => None,
            }
        }
    };
    let Some(chosen) = chosen else { return engine.tell("Nothing was remembered.").await };
    if chosen == places.len() {
        return engine.turn(Prompt::new(format!("# {note}")), inbox).await;
    }
    if chosen < places.len() {
        let file = places.swap_remove(chosen).file;
        let shown = file.strip_prefix(&engine.setup.project).unwrap_or(&file).to_string_lossy().into_owned();
        Box::pin(engine.shell(adding(&file, &quoted(&shown), note), inbox)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_to_the_file_that_is_there() {
        let temp = tempfile::tempdir().unwrap();
        let (project, home) = (temp.path().join("p"), temp.path().join("h"));
        std::fs::create_dir_all(&project).unwrap();
        let names = ["AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"].map(str::to_owned);
        std::fs::create_dir_all(&home).unwrap();
        let check = |there: &str, names: &[String], want: [&str; 3]| {
            std::fs::write(temp.path().join(there), "").unwrap();
            let name = |place: Place| place.file.strip_prefix(temp.path()).unwrap().display().to_string();
            let found: Vec<String> = places(names, &project, &home).into_iter().map(name).collect();
            assert_eq!(found, want, "{there}");
        };
        // Of the user's own files Claude Code reads one alone.
        check("other", &names, ["p/AGENTS.md", "p/CLAUDE.local.md", "h/CLAUDE.md"]);
        check("p/CLAUDE.md", &names, ["p/CLAUDE.md", "p/CLAUDE.local.md", "h/CLAUDE.md"]);
        check("h/AGENTS.md", &names, ["p/CLAUDE.md", "p/CLAUDE.local.md", "h/AGENTS.md"]);
        let own = ["NOTES.md", "NOTES.local.md"].map(str::to_owned);
        check("other", &own, ["p/NOTES.md", "p/NOTES.local.md", "h/NOTES.md"]);
        assert!(places(&[], &project, &home).is_empty());
    }

    #[test]
    fn a_note_is_a_line_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        for (before, note, want) in [
            (None, "use tabs", "- use tabs\n"),
            (Some("# Rules"), "it's 100% $HOME", "# Rules\n- it's 100% $HOME\n"),
            (Some("- a\n"), "-n", "- a\n- -n\n"),
        ] {
            let file = temp.path().join(format!("f{}", want.len())).join("A B.md");
            if let Some(before) = before {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, before).unwrap();
            }
            let line = adding(&file, &quoted(&file.to_string_lossy()), note);
            // As the shell tool runs it.
            let ended = std::process::Command::new("bash").args(["-c", &line]).status().unwrap();
            assert!(ended.success(), "{line}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), want, "{line}");
        }
    }
}
