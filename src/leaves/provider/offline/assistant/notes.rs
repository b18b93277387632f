//! Session notes, from what is in the request: prompts, files that were changed, todos.

use serde_json::json;

use super::super::script::{Part, notes_file};
use super::tool;
use crate::message::{Attachment, Kind, Message, Outcome};
use crate::provider::Request;

/// Prompts that are named as what was asked for, newest last.
const PROMPTS: usize = 8;
/// Most characters of one of them.
const LONGEST: usize = 200;

/// Brings the notes up to date with one edit.
pub(super) fn update(request: &Request) -> Vec<Part> {
    let Some(asked) = request.messages.last().filter(|last| last.kind == Kind::Attachment(Attachment::Instruction))
    else {
        return vec![Part::Text("Noted.".into())];
    };
    let asked = asked.text();
    let file = notes_file(request);
    let notes =
        asked.split_once("<notes>\n").and_then(|(_, rest)| rest.rsplit_once("\n</notes>")).map(|(notes, _)| notes);
    let (Some(file), Some(notes)) = (file, notes) else { return vec![Part::Text("Nothing to note.".into())] };
    let new = filled(notes, &sections(request));
    vec![tool("Edit", json!({ "file_path": file, "old_string": notes, "new_string": new }))]
}

/// The lines below each heading.
fn sections(request: &Request) -> [(&'static str, Vec<String>); 3] {
    let prompts: Vec<String> =
        request.messages.iter().filter(|message| message.kind == Kind::Prompt).map(|message| line(message)).collect();
    let (earlier, current) = prompts.split_at(prompts.len().saturating_sub(1));
    let earlier =
        earlier[earlier.len().saturating_sub(PROMPTS)..].iter().map(|prompt| format!("- Asked before: {prompt}"));
    [
        ("# Current task", current.iter().map(|prompt| format!("- Asked last: {prompt}")).collect()),
        ("# Files modified", modified(request)),
        ("# Important context", earlier.collect()),
    ]
}

fn line(message: &Message) -> String {
    let text = message.text().split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(LONGEST).collect()
}

/// Files whose change went through, each once.
fn modified(request: &Request) -> Vec<String> {
    let results = || request.messages.iter().flat_map(|message| message.results());
    let calls = request.messages.iter().flat_map(|message| message.calls());
    super::once(calls.filter_map(|call| {
        let wrote = matches!(call.name.as_str(), "Edit" | "Write");
        let done = || results().any(|result| result.id == call.id && result.outcome == Outcome::Ok);
        call.input["file_path"].as_str().filter(|_| wrote && done()).map(|path| format!("- {path}"))
    }))
}

/// The notes with these lines in place of those below the headings.
fn filled(notes: &str, sections: &[(&str, Vec<String>)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut filling = false;
    for line in notes.lines() {
        if line.starts_with("# ") {
            filling = false;
        }
        let hint = line.starts_with('_');
        if !filling || hint {
            lines.push(line.to_owned());
        }
        if let Some((_, rows)) = sections.iter().find(|(heading, _)| *heading == line) {
            filling = !rows.is_empty();
        }
        if hint && filling {
            let heading = lines.iter().rev().find(|line| line.starts_with("# ")).cloned().unwrap_or_default();
            if let Some((_, rows)) = sections.iter().find(|(of, _)| *of == heading) {
                lines.extend(rows.iter().cloned());
                lines.push(String::new());
            }
        }
    }
    lines.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_the_place_of_earlier_ones() {
        let sections = |rows: &[&str]| [("# Current task", rows.iter().map(ToString::to_string).collect::<Vec<_>>())];
        let empty = "# Current task\n_Hint._\n\n# Open items\n_Hint._\n- kept";
        let once = filled(empty, &sections(&["- a"]));
        assert_eq!(once, "# Current task\n_Hint._\n- a\n\n# Open items\n_Hint._\n- kept");
        assert_eq!(filled(&once, &sections(&["- b", "- c"])), once.replace("- a", "- b\n- c"));
        assert_eq!(filled(&once, &sections(&[])), once);
    }
}
