//! What a session's entries say about the session itself, whatever counts of the conversation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::entry::{By, CacheBreak, Entry, EntryKind, Header, Seq};
use super::tasks::Tasks;
use crate::message::{Kind, Usage};
use crate::permission::Mode;
use crate::protocol::Compacted;
use crate::protocol::report::Spent;
use crate::thinking::Level;

/// Changes of the projection that are remembered.
const CHANGES: usize = 8;
/// Characters of the first prompt that make a title.
const TITLE: usize = 60;

/// A skill that was invoked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invoked {
    pub name: String,
    pub path: Option<PathBuf>,
    /// A folder that may be read without a question since then.
    pub opened: Option<PathBuf>,
    /// As the model read it.
    pub content: String,
}

/// A fold over all entries, rewound ones included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub header: Option<Header>,
    /// None until the mode was changed for the first time.
    pub mode: Option<Mode>,
    /// The model that is asked now.
    pub model: Option<String>,
    /// The model of the session: the one that is asked, but for runs of skills with one of their own.
    pub own_model: Option<String>,
    /// How hard the model thinks, where the user chose in this session.
    pub thinking: Option<Level>,
    /// Rules that the user granted for this session, oldest first.
    pub grants: Vec<String>,
    /// Folders that the user trusted in this session.
    pub trust: Vec<PathBuf>,
    /// Hooks with `once` that ran.
    pub hooks: BTreeSet<String>,
    /// Names the file of this session's plan, once there is one.
    pub plan_slug: Option<String>,
    /// The plan of the session that this one was forked from.
    pub parent_plan: Option<String>,
    /// The mode that plan mode was entered from.
    pub before_plan: Option<Mode>,
    /// Skills by their last invocation, oldest first, each once.
    pub invoked: Vec<Invoked>,
    /// The type of the sub-agent whose log this is.
    pub agent: Option<String>,
    named: Option<String>,
    first_prompt: Option<String>,
    /// The first `!` line of the user, which tells a session that has no prompt.
    #[serde(default)]
    first_line: Option<String>,
    /// Every compaction, oldest first.
    #[serde(default)]
    pub compactions: Vec<Compacted>,
    /// Requests that the user did not type, oldest first.
    pub spent: Vec<Spent>,
    /// Usage of ended turns and of requests that the user did not type, by model.
    used: Vec<(String, Usage)>,
    /// Usage of the replies of a turn that has not ended.
    open: Usage,
    /// What was paid for twice, with its time, oldest first.
    #[serde(default)]
    pub breaks: Vec<(String, CacheBreak)>,
    /// The last reply's usage, with its model.
    #[serde(default)]
    pub counted: Option<(String, Usage)>,
    /// Commands in the background, and what the model is owed of them.
    #[serde(default)]
    pub tasks: Tasks,
    /// What changed the conversation lately other than by adding to it.
    #[serde(default)]
    changes: Vec<(Seq, By)>,
}

impl Facts {
    /// The name that the user gave, or the first prompt or else `!` line, cut.
    pub fn title(&self) -> Option<&str> {
        self.named.as_deref().or(self.first_prompt.as_deref()).or(self.first_line.as_deref())
    }

    /// Tokens by the model that they were spent on, in order of first use. A model that no entry names is empty.
    pub fn usage_by_model(&self) -> Vec<(String, Usage)> {
        let mut used = self.used.clone();
        if self.open != Usage::default() {
            add(&mut used, self.model.as_deref().unwrap_or_default(), &self.open);
        }
        used
    }

    /// Requests that the user did not type, one row for each purpose and model, in order of first use.
    pub fn spent_by_what(&self) -> Vec<Spent> {
        let mut rows: Vec<Spent> = Vec::new();
        for spent in &self.spent {
            match rows.iter_mut().find(|row| row.what == spent.what && row.model == spent.model) {
                Some(row) => row.usage.add(&spent.usage),
                None => rows.push(spent.clone()),
            }
        }
        rows
    }

    /// All tokens of the session.
    pub fn usage(&self) -> Usage {
        let mut total = self.open;
        self.used.iter().for_each(|(_, usage)| total.add(usage));
        total
    }

    /// Whether the user has said or done anything in the session.
    pub(super) fn used(&self) -> bool {
        self.first_prompt.is_some() || self.first_line.is_some()
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.first_prompt.is_some()
    }

    /// Folds an entry, with what only its envelope says.
    pub(super) fn record(&mut self, entry: &Entry) {
        if let EntryKind::CompactBoundary(boundary) = &entry.kind {
            self.compactions.push(Compacted {
                seq: entry.seq,
                ts: entry.ts.clone(),
                trigger: boundary.trigger,
                tier: boundary.tier.clone(),
                before: boundary.pre_tokens,
                after: boundary.post_tokens,
                undone: false,
            });
        }
        if let EntryKind::CacheBroke(broke) = &entry.kind {
            self.breaks.push((entry.ts.clone(), broke.clone()));
        }
        let change = match &entry.kind {
            EntryKind::CompactBoundary(_) => Some(By::Compaction { number: self.compactions.len() }),
            EntryKind::BoundaryUndone { .. } => Some(By::CompactionUndone),
            EntryKind::Rewind { .. } => Some(By::Rewind),
            EntryKind::ToolResultsCleared { .. } => Some(By::Cleared),
            EntryKind::BlocksClipped { .. } => Some(By::Clipped),
            EntryKind::ToolResultsArchived { .. } => Some(By::Archived),
            _ => None,
        };
        if let Some(by) = change {
            self.changes.drain(..(self.changes.len() + 1).saturating_sub(CHANGES));
            self.changes.push((entry.seq, by));
        }
        self.tasks.record(entry.seq, &entry.kind);
        self.apply(&entry.kind);
    }

    /// What changed the conversation after an entry: of several things the one that changed most.
    pub fn projected_since(&self, seq: Seq) -> Option<By> {
        let since = || self.changes.iter().filter(|(at, _)| *at > seq).map(|(_, by)| by);
        let whole = |by: &&By| matches!(by, By::Compaction { .. } | By::CompactionUndone | By::Rewind);
        since().rfind(whole).or_else(|| since().next_back()).cloned()
    }

    fn apply(&mut self, kind: &EntryKind) {
        match kind {
            EntryKind::Header(header) => {
                self.header.get_or_insert_with(|| header.clone());
            }
            EntryKind::Message { message } if message.kind == Kind::Prompt && self.first_prompt.is_none() => {
                self.first_prompt = Some(title_of(&message.text()));
            }
            EntryKind::ShellRan { command, .. } if self.first_line.is_none() => {
                self.first_line = Some(title_of(&format!("! {command}")));
            }
            EntryKind::TurnStarted => self.close(&Usage::default()),
            EntryKind::TurnEnded { usage, .. } => self.close(usage),
            EntryKind::Title { title } => self.named = Some(title.clone()),
            EntryKind::ThinkingChanged { level } => self.thinking = *level,
            EntryKind::ModeChanged { mode } => self.mode_changed(*mode),
            EntryKind::ModelChanged { model, borrowed } => {
                self.close(&Usage::default());
                self.model = Some(model.clone());
                if !borrowed {
                    self.own_model = Some(model.clone());
                }
            }
            EntryKind::Granted { rule } if !self.grants.contains(rule) => self.grants.push(rule.clone()),
            EntryKind::Revoked { rule } => self.grants.retain(|granted| granted != rule),
            EntryKind::Trusted { folder } if !self.trust.contains(folder) => self.trust.push(folder.clone()),
            EntryKind::HookRan { hook } => {
                self.hooks.insert(hook.clone());
            }
            EntryKind::PlanSlug { session, slug } => {
                let own = self.header.as_ref().is_none_or(|header| header.session == *session);
                let kept = if own { &mut self.plan_slug } else { &mut self.parent_plan };
                *kept = Some(slug.clone());
            }
            EntryKind::SkillInvoked { name, path, opened, content } => {
                self.invoked.retain(|invoked| invoked.name != *name);
                let (name, path, opened, content) = (name.clone(), path.clone(), opened.clone(), content.clone());
                self.invoked.push(Invoked { name, path, opened, content });
            }
            EntryKind::BoundaryUndone { seq } => {
                self.compactions.iter_mut().filter(|done| done.seq == *seq).for_each(|done| done.undone = true);
            }
            EntryKind::Spent { what, model, usage } => {
                add(&mut self.used, model, usage);
                self.spent.push(Spent { what: what.clone(), model: model.clone(), usage: *usage });
            }
            EntryKind::AgentStarted { agent, .. } => self.agent = Some(agent.clone()),
            _ => {}
        }
    }

    fn mode_changed(&mut self, mode: Mode) {
        if mode == Mode::Plan && self.mode != Some(Mode::Plan) {
            self.before_plan = Some(self.mode.unwrap_or_default());
        }
        self.mode = Some(mode);
    }

    /// Counts a reply of the turn that is under way. Replies come here, not to `record`.
    pub(super) fn reply(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.open.add(&usage);
            self.counted = Some((self.model.clone().unwrap_or_default(), usage));
        }
    }

    /// Ends a turn. Its entry counts the turn's replies; a turn without one is the sum of its replies.
    fn close(&mut self, usage: &Usage) {
        let open = std::mem::take(&mut self.open);
        let usage = if *usage == Usage::default() { open } else { *usage };
        if usage != Usage::default() {
            let model = self.model.clone().unwrap_or_default();
            add(&mut self.used, &model, &usage);
        }
    }
}

fn add(used: &mut Vec<(String, Usage)>, model: &str, usage: &Usage) {
    match used.iter_mut().find(|(name, _)| name == model) {
        Some((_, sum)) => sum.add(usage),
        None => used.push((model.to_owned(), *usage)),
    }
}

/// Cuts a prompt to a title: one line of at most 60 characters.
pub fn title_of(prompt: &str) -> String {
    let words = prompt.split_whitespace().take(TITLE);
    let line = words.fold(String::new(), |mut line, word| {
        if !line.is_empty() {
            line.push(' ');
        }
        line + word
    });
    let line: String = line.chars().filter(|char| !char.is_control()).collect();
    match line.char_indices().nth(TITLE) {
        None => line,
        Some(_) => {
            let cut = line.char_indices().nth(TITLE - 1).map_or(line.len(), |(at, _)| at);
            format!("{}…", line[..cut].trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        for (prompt, want) in [
            ("fix it", "fix it".to_owned()),
            (" fix\n\tit \u{1b}[31m", "fix it [31m".to_owned()),
            ("", String::new()),
            (&"日".repeat(60), "日".repeat(60)),
            (&"日".repeat(61), format!("{}…", "日".repeat(59))),
        ] {
            assert_eq!(title_of(prompt), want);
        }
    }

    #[test]
    fn usage_counts_each_reply_once() {
        let usage = |input| Usage { input, ..Usage::default() };
        let mut facts = Facts::default();
        // An entry, and the replies that follow it.
        for (kind, replies) in [
            (EntryKind::ModelChanged { model: "a".into(), borrowed: false }, vec![]),
            (EntryKind::TurnStarted, vec![1, 2]),
            (EntryKind::TurnEnded { end: "done".into(), usage: usage(3) }, vec![]),
            (EntryKind::Spent { what: "summary".into(), model: "c".into(), usage: usage(10) }, vec![]),
            // A turn that crashed, one without figures, one that is under way on another model.
            (EntryKind::TurnStarted, vec![20]),
            (EntryKind::TurnStarted, vec![40]),
            (EntryKind::TurnEnded { end: "done".into(), usage: usage(0) }, vec![]),
            (EntryKind::ModelChanged { model: "b".into(), borrowed: false }, vec![100]),
        ] {
            facts.apply(&kind);
            replies.into_iter().for_each(|input| facts.reply(Some(usage(input))));
        }
        let want = [("a", 63), ("c", 10), ("b", 100)].map(|(model, input)| (model.to_owned(), usage(input)));
        assert_eq!(facts.usage_by_model(), want);
        assert_eq!(facts.usage(), usage(173));
    }
}
