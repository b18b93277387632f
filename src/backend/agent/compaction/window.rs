//! What fills the window, part by part: gathered for `/context`.

use std::collections::{BTreeMap, HashMap};

use super::weight;
use crate::agent::Snapshot;
use crate::message::tokens;
use crate::message::{Attachment, CallId, Kind, Outcome};
use crate::protocol::report::{Duplicate, Part, Window};
use crate::session::{Context, Session};
use crate::tools;

/// Tokens of what a conversation holds, estimated.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Shares {
    memory: u64,
    skills: u64,
    prompts: u64,
    replies: u64,
    results: u64,
    summary: u64,
    reminders: u64,
}

impl Shares {
    fn of(context: &Context) -> Shares {
        let mut shares = Shares::default();
        for shown in context.shown() {
            let total = shown.load.total();
            match shown.message.kind {
                Kind::Prompt => shares.prompts += total,
                Kind::Reply => shares.replies += total,
                Kind::ToolResult | Kind::ToolResultArchived | Kind::ToolSummary => shares.results += total,
                Kind::CompactSummary => shares.summary += total,
                Kind::Skill => shares.skills += total,
                Kind::Attachment(Attachment::Memory) => shares.memory += total,
                Kind::Attachment(Attachment::SkillList) => shares.skills += total,
                Kind::Attachment(Attachment::Opening { memory }) => {
                    let files = shown.message.attached().get(memory..).map_or(0, tokens::text).min(total);
                    shares.memory += files;
                    shares.reminders += total - files;
                }
                Kind::Attachment(_) | Kind::Notice => shares.reminders += total,
            }
        }
        shares
    }

    fn messages(self) -> u64 {
        self.prompts + self.replies + self.results + self.summary + self.reminders
    }
}

impl Snapshot {
    /// Tokens of the session's next request, as far as they are known.
    pub fn used(&self, session: &Session) -> u64 {
        self.driver.used(session.context())
    }

    /// What fills the window.
    pub fn window(&self, session: &Session) -> Window {
        let context = session.context();
        let (shares, used) = (Shares::of(context), self.used(session));
        Window {
            model: self.model.name(),
            tokens: self.driver.window().tokens,
            used,
            left: self.driver.marks().percent_left(used),
            messages: context.len() as u64,
            marks: self.driver.marks().marks(),
            auto: self.auto,
            parts: vec![
                (Part::SystemPrompt, tokens::text(&self.system)),
                (Part::Tools, self.tool_specs.iter().map(weight).sum()),
                (Part::MemoryFiles, shares.memory),
                (Part::Skills, shares.skills),
                (Part::Messages, shares.messages()),
                (Part::Prompts, shares.prompts),
                (Part::Replies, shares.replies),
                (Part::ToolResults, shares.results),
                (Part::Summary, shares.summary),
                (Part::Reminders, shares.reminders),
            ],
            duplicates: duplicates(context),
            compactions: session.facts().compactions.clone(),
        }
    }
}

/// Files that more than one result holds, by path.
fn duplicates(context: &Context) -> Vec<Duplicate> {
    let paths: HashMap<&CallId, &str> = context
        .shown()
        .flat_map(|shown| shown.message.calls())
        .filter_map(|call| Some((&call.id, call.input.get("file_path")?.as_str()?)))
        .collect();
    let mut reads: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for held in context.results().filter(|held| held.tool == tools::READ && !held.replaced) {
        if held.result.outcome == Outcome::Ok
            && let Some(path) = paths.get(&held.result.id)
        {
            let (times, tokens) = reads.entry(path).or_default();
            (*times, *tokens) = (*times + 1, *tokens + held.load.total());
        }
    }
    reads
        .into_iter()
        .filter(|(_, (times, _))| *times > 1)
        .map(|(path, (times, tokens))| Duplicate { path: path.to_owned(), times, tokens: tokens - tokens / times })
        .collect()
}
