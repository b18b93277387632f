//! Puts the oldest tool results behind one digest: which ones, and the digest that needs no model.

use std::sync::Arc;

use super::micro;
use crate::message::{CallId, Content, Kind, Message};
use crate::session::Context;
use crate::session::entry::{Archived, Seq};

/// What asks for a digest.
const INSTRUCTION: &str = include_str!("../../../assets/prompts/digest.md");

/// Results that leave, and what they say.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Oldest first.
    pub calls: Vec<CallId>,
    /// Each result behind the call that it answers.
    text: String,
}

/// Chooses the oldest results so that `visible` remain; none when no more than that are there. What the model has not read
/// yet stays, and so do images.
pub fn plan(context: &Context, visible: usize) -> Option<Plan> {
    plan_from(context, 0, visible)
}

/// The same among the messages that a boundary keeps.
pub fn plan_from(context: &Context, keep_from: Seq, visible: usize) -> Option<Plan> {
    let unread = micro::unread_from(context);
    let held: Vec<_> = context.results().filter(|held| !held.replaced && held.seq >= keep_from).collect();
    let surplus = held.len().checked_sub(visible).filter(|surplus| *surplus > 0)?;
    let plain = |content: &Content| matches!(content, Content::Text { .. });
    let old: Vec<_> = held
        .into_iter()
        .take(surplus)
        .filter(|held| held.index < unread && held.result.content.iter().all(plain))
        .collect();
    if old.is_empty() {
        return None;
    }
    let inputs: std::collections::HashMap<&CallId, String> = context
        .shown()
        .flat_map(|shown| shown.message.calls())
        .map(|call| (&call.id, clipped(&call.input.to_string(), 200)))
        .collect();
    let rows = old.iter().map(|held| {
        let input = inputs.get(&held.result.id).map_or("", String::as_str);
        format!("## {} {input}\n{}", held.tool, held.result.text().trim())
    });
    let text = rows.collect::<Vec<_>>().join("\n\n");
    Some(Plan { calls: old.into_iter().map(|held| held.result.id.clone()).collect(), text })
}

impl Plan {
    /// The message that asks a model for the digest, with so many characters of the results.
    pub fn instruction(&self, input: usize, output: usize) -> String {
        let text = clipped(&self.text, input);
        INSTRUCTION.trim_end().replace("{limit}", &output.to_string()).replace("{results}", &text)
    }

    /// Head and tail, without a model.
    pub fn heuristic(&self, output: usize) -> String {
        clipped(&self.text, output)
    }

    /// Puts the results away behind a digest that needs no model.
    pub fn archived(self, output: usize) -> Archived {
        let digest = Arc::new(self.message(&self.heuristic(output)));
        Archived { calls: self.calls, digest }
    }

    /// What the model reads in the place of the results.
    pub fn message(&self, digest: &str) -> Message {
        let text = format!("# Digest of {} earlier tool results\n\n{digest}", self.calls.len());
        Message { kind: Kind::ToolSummary, ..Message::reminder(&text) }
    }
}

/// A text of at most so many characters and a mark: two thirds of them from its start, the rest from its end.
pub fn clipped(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most - most / 3, most / 3);
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    format!("{}\n[… {} characters omitted …]\n{}", &text[..at(head)], count - most, &text[at(count - tail)..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::Talk;
    use crate::session::entry::EntryKind;

    fn calls(talk: &Talk, visible: usize) -> Vec<String> {
        plan(talk.context(), visible).map_or(Vec::new(), |plan| plan.calls.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_oldest_leave_until_so_many_remain() {
        let mut talk = Talk::new();
        talk.prompt(1).round("Read", &[1, 1]).round("Bash", &[1]);
        // The model has not read the last one.
        assert_eq!(calls(&talk, 2), ["call_1"]);
        assert_eq!(calls(&talk, 0), ["call_1", "call_2"]);
        assert_eq!(calls(&talk, 3), [""; 0]);
        talk.reply(1);
        let plan = plan(talk.context(), 1).unwrap();
        assert_eq!(plan.heuristic(1_000), "## Read {\"file_path\":\"/a\"}\nabc\n\n## Read {\"file_path\":\"/a\"}\nabc");
        assert!(
            plan.instruction(10, 1_200).contains("## Read\n[… 52 characters omitted …]\nabc"),
            "{}",
            plan.instruction(10, 1_200)
        );
        let digest = std::sync::Arc::new(plan.message("short"));
        talk.session.append(EntryKind::ToolResultsArchived { calls: plan.calls, digest }).unwrap();
        assert_eq!(calls(&talk, 1), [""; 0]);
        assert_eq!(talk.show(), "prompt c1+c2 r1+r2 toolsummary c3 r3 reply");
    }

    #[test]
    fn clips_fall_on_characters() {
        for (text, most, want) in [
            ("abc", 3, "abc"),
            ("日本語日本語", 3, "日本\n[… 3 characters omitted …]\n語"),
            ("abcdef", 0, "\n[… 6 characters omitted …]\n"),
        ] {
            assert_eq!(clipped(text, most), want);
        }
    }
}
