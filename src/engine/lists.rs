//! Lists for pickers.

use std::time::{Duration, SystemTime};

use super::Engine;
use crate::agent::mailbox::Mailbox;
use crate::commands::report;
use crate::permission::Source;
use crate::protocol::{AgentLog, Earlier, Event, ListKind, Listed, MemoryRow, Part, PromptRow, RuleRow, SessionRow};
use crate::session::{self, Transcripts, index};

/// Most prompts that a front end gets to search in.
pub(super) const HISTORY: usize = 1_000;

/// Entries that a front end gets at once of what it does not keep of a session.
const PAGE: usize = 250;

/// Tells the front ends what a sub-agent did. Of one without a log there is nothing to tell.
pub(super) async fn tell_agent(transcripts: &Transcripts, id: String, mailbox: &Mailbox) {
    let items = transcripts.history(&id).unwrap_or_else(|error| {
        tracing::warn!(%error, id, "the log of a sub-agent");
        Vec::new()
    });
    mailbox.emit(Event::Listed(Listed::Agent(AgentLog { id, items }))).await;
}

/// Tells the front ends what is in a part of the log.
pub(super) async fn tell_earlier(transcripts: &Transcripts, part: Part, mailbox: &Mailbox) {
    let earlier = session::read_part(&transcripts.session_log(), part, PAGE).unwrap_or_else(|error| {
        tracing::warn!(%error, "an earlier part of the session");
        Earlier { items: Vec::new(), from: 0, until: 0, older: 0, newer: 0 }
    });
    mailbox.emit(Event::Listed(Listed::Earlier(earlier))).await;
}

impl Engine {
    pub(super) fn list(&self, what: ListKind) -> Listed {
        let home = &self.setup.paths.home;
        match what {
            ListKind::Sessions => {
                let now = (self.setup.clocks.wall)();
                let sessions = index::list(home, Some(&self.setup.project)).unwrap_or_else(|error| {
                    tracing::error!(%error, "cannot list the sessions");
                    Vec::new()
                });
                let rows = sessions.into_iter().filter(|summary| summary.id != self.agent.session.id());
                Listed::Sessions(
                    rows.map(|summary| SessionRow {
                        detail: format!(
                            "{} · {} prompt{}",
                            ago(now, SystemTime::UNIX_EPOCH + Duration::from_millis(summary.changed_ms)),
                            summary.prompts,
                            if summary.prompts == 1 { "" } else { "s" }
                        ),
                        title: summary.title.unwrap_or_else(|| "untitled".into()),
                        id: summary.id,
                    })
                    .collect(),
                )
            }
            ListKind::Models => Listed::Models(self.models.rows(&self.agent.model)),
            ListKind::Rules => Listed::Rules(self.rules()),
            ListKind::Memory => Listed::Memory(self.memory_files()),
            ListKind::Prompts => {
                let prompts = self.agent.session.prompts().unwrap_or_else(|error| {
                    tracing::error!(%error, "cannot read the prompts");
                    Vec::new()
                });
                let row = |prompt: session::PromptRow| PromptRow {
                    seq: prompt.seq,
                    text: prompt.text,
                    changed_files: prompt.changed_files,
                };
                Listed::Prompts(prompts.into_iter().map(row).collect())
            }
            ListKind::Skills => Listed::Skills(report::rows(&self.catalog.refresh().0)),
            // Gathered where it may take its time.
            ListKind::Changes => what.empty(),
            // The inbox keeps it, since it is wanted while a turn runs, too.
            ListKind::History => what.empty(),
        }
    }

    /// The memory files in use, and a place for the project's own if it has none yet.
    fn memory_files(&self) -> Vec<MemoryRow> {
        let files = self.agent.memory_files();
        let mut rows: Vec<MemoryRow> = files
            .into_iter()
            .map(|(path, lines)| MemoryRow {
                path,
                detail: format!("{lines} line{}", if lines == 1 { "" } else { "s" }),
            })
            .collect();
        let project = &self.setup.project;
        if !rows.iter().any(|row| row.path.parent() == Some(project)) {
            rows.push(MemoryRow {
                path: project.join("AGENTS.md"),
                detail: "new: instructions for the agent in this project".into(),
            });
        }
        rows
    }

    pub(super) fn rules(&self) -> Vec<RuleRow> {
        let rows = self.agent.policy.rules.entries().iter().map(|entry| RuleRow {
            rule: entry.rule.to_string(),
            behavior: entry.behavior,
            source: entry.source.to_string(),
            revocable: matches!(entry.source, Source::Session | Source::ProjectLocal | Source::User),
        });
        rows.collect()
    }
}

/// How long ago, for people.
fn ago(now: SystemTime, then: SystemTime) -> String {
    let passed = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    let (count, unit) = match passed {
        0..60 => return "just now".into(),
        60..3_600 => (passed / 60, "minute"),
        3_600..86_400 => (passed / 3_600, "hour"),
        _ => (passed / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}
