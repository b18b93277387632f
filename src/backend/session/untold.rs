//! Tells what the attachments of logs are that do not say it: those written before attachments carried their kind. The
//! words below are the ones of that time; no prompt of today has to keep to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::entry::{Boundary, EntryKind};
use crate::message::{Attachment, Effect, Kind, Message};

const SKILLS: [&str; 3] = ["# Skills\nInstructions for tasks of a kind.", "# Skills that are new or changed\n", GONE];
const GONE: &str = "No longer there: ";
const PROMPTS: &str = "# Earlier messages of the user\nWord for word, oldest first. They are history: what is still \
                       to be done stands in the summary.\n\n";
/// What stood before the path of the plan file.
const PLAN_FILE: [&str; 3] = ["Plan file: ", "nothing but the plan file ", "An earlier plan stands in "];

/// Gives every attachment of an entry its kind.
pub(super) fn tell(kind: &mut EntryKind) {
    match kind {
        EntryKind::Message { message } => tell_message(message),
        EntryKind::CompactBoundary(Boundary { opening, summary, attachments, .. }) => {
            opening.iter_mut().chain(summary).chain(attachments).for_each(tell_message);
        }
        _ => {}
    }
}

fn tell_message(message: &mut Arc<Message>) {
    if message.kind != Kind::Attachment(Attachment::Untold) {
        return;
    }
    let text = message.attached();
    let message = Arc::make_mut(message);
    let what = what_it_is(&text, &message.effects);
    message.kind = Kind::Attachment(what);
    match what {
        Attachment::SkillList => message.effects.push(skills(&text)),
        Attachment::Plan => {
            for effect in &mut message.effects {
                if let Effect::Plan { file, .. } = effect {
                    *file = plan_file(&text).unwrap_or_default();
                }
            }
        }
        _ => {}
    }
}

fn what_it_is(text: &str, effects: &[Effect]) -> Attachment {
    let starts = |words: &str| text.starts_with(words);
    if starts("# Environment\n") {
        Attachment::Opening { memory: text.find("\n# Memory files\n").unwrap_or(text.len()) }
    } else if starts("Memory files for the folder of") {
        Attachment::Memory
    } else if SKILLS.iter().any(|words| starts(words)) {
        Attachment::SkillList
    } else if effects.iter().any(|effect| matches!(effect, Effect::Plan { .. })) {
        Attachment::Plan
    } else if starts("The todo list was last touched") {
        Attachment::Todos
    } else if starts(PROMPTS) {
        Attachment::Prompts { quotes: PROMPTS.len() }
    } else if starts("From a ") && text.contains(" hook of the user:\n\n") {
        Attachment::Hook
    } else if starts("The user ran a command of their own") {
        Attachment::Shell
    } else if starts("The user attached ") {
        Attachment::File
    } else {
        Attachment::Reminder
    }
}

fn skills(text: &str) -> Effect {
    let (mut lines, mut gone) = (BTreeMap::new(), Vec::new());
    for row in text.lines() {
        if let Some(names) = row.strip_prefix(GONE) {
            gone.extend(names.split(", ").map(str::to_owned));
        } else if let Some(rest) = row.strip_prefix("- ") {
            lines.insert(rest.split(": ").next().unwrap_or(rest).to_owned(), row.to_owned());
        }
    }
    Effect::Skills { lines, gone }
}

fn plan_file(text: &str) -> Option<PathBuf> {
    let rest = PLAN_FILE.iter().find_map(|words| Some(text.split_once(words)?.1))?;
    Some(rest[..rest.find(".md")? + ".md".len()].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an attachment of an old log, with its effects as JSON.
    fn check(text: &str, effects: &str, want: Attachment, and: &str) {
        let text = serde_json::to_string(&format!("<system-reminder>\n{text}\n</system-reminder>")).unwrap();
        let line = format!(
            r#"{{"v":1,"seq":2,"id":"x","ts":"","kind":"message","message":{{"role":"user","kind":"attachment","blocks":[{{"type":"text","text":{text}}}],"user_visible":false,"effects":{effects}}}}}"#
        );
        let Some(EntryKind::Message { message }) = super::super::line::parse(line.as_bytes()).map(|entry| entry.kind)
        else {
            panic!("{line}")
        };
        assert_eq!(message.kind, Kind::Attachment(want), "{text}");
        assert_eq!(serde_json::to_string(&message.effects).unwrap(), and, "{text}");
    }

    #[test]
    fn old_attachments_are_known_by_the_words_of_their_time() {
        check("# Environment\nDate: d\n", "[]", Attachment::Opening { memory: 22 }, "[]");
        check("# Environment\nDate: d\n\n# Memory files\nx", "[]", Attachment::Opening { memory: 22 }, "[]");
        check("Memory files for the folder of /p/a:\n\nx", "[]", Attachment::Memory, "[]");
        check(
            "# Skills\nInstructions for tasks of a kind. More.\n- a: b: c\n- d",
            "[]",
            Attachment::SkillList,
            r#"[{"type":"skills","lines":{"a":"- a: b: c","d":"- d"},"gone":[]}]"#,
        );
        check(
            "# Skills that are new or changed\n- e\nNo longer there: a, d",
            "[]",
            Attachment::SkillList,
            r#"[{"type":"skills","lines":{"e":"- e"},"gone":["a","d"]}]"#,
        );
        for text in [
            "Plan file: /h/plans/a b.md\nIt",
            "nothing but the plan file /h/plans/a b.md. It",
            "An earlier plan stands in /h/plans/a b.md.",
        ] {
            check(
                text,
                r#"[{"type":"plan","note":"full"}]"#,
                Attachment::Plan,
                r#"[{"type":"plan","note":"full","file":"/h/plans/a b.md"}]"#,
            );
        }
        check("The todo list was last touched a while ago.", "[]", Attachment::Todos, "[]");
        check(&format!("{PROMPTS}one"), "[]", Attachment::Prompts { quotes: PROMPTS.len() }, "[]");
        check("From a Stop hook of the user:\n\nx", "[]", Attachment::Hook, "[]");
        check("The user ran a command of their own, and it failed:\n$ x", "[]", Attachment::Shell, "[]");
        check("The user attached a.txt:\n\nx", "[]", Attachment::File, "[]");
        check("3 older tool results were cleared", "[]", Attachment::Reminder, "[]");
    }
}
