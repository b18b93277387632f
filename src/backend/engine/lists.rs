//! Lists for pickers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Setup;
use crate::agent::mailbox::Mailbox;
use crate::agent::{Board, Figures, Snapshot, board};
use crate::permission::{Entry, RuleSet, Source};
use crate::protocol::report::{Load, TaskRow};
use crate::protocol::{
    AgentLog, Earlier, Event, FoundList, FoundRow, Listed, MemoryRow, Part, PromptRow, RuleRow, SessionRow,
};
use crate::session::entry::{Begun, Ended, TaskSort};
use crate::session::recall::{self, Hit, Terms};
use crate::session::tasks::Task;
use crate::session::{self, Session, Transcripts, index};
use crate::stdx::ansi;
use crate::tools;

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

/// Most lines of output of a command in the background that are listed, and bytes of the file in which they are looked for.
const TAIL: usize = 5;
const LOOKED: u64 = 4096;

/// What runs, of all agents, and what has run in the background of a session: what runs first, then the others, newest
/// first.
pub(super) fn tasks(session: &Session, background: &Board) -> Vec<TaskRow> {
    let mut running = background.rows();
    let row = |begun: &Begun, ended: Option<&Ended>, now: Option<board::Row>, millis: Option<u64>| {
        let output = session.store().task_output(&begun.task);
        let written = match tools::tail(&output, LOOKED) {
            Ok((_, text)) => text,
            // It has none until it is in the background.
            Err(error) if now.is_some() && error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => format!("Its output cannot be read: {error}"),
        };
        let title = match &begun.sort {
            TaskSort::Agent { agent, .. } => format!("{agent}: {}", begun.title()),
            TaskSort::Shell | TaskSort::Monitor => begun.title(),
        };
        let worked = ended.and_then(|ended| ended.report.as_ref());
        let worked = worked.map(|report| Load { tools: report.tools, tokens: report.tokens, ..Load::default() });
        let (owner, load) = match now {
            Some(board::Row { owner, figures: Figures { doing, tools, tokens, usd }, .. }) => {
                (owner, Load { doing, tools, tokens, usd })
            }
            None => (None, worked.unwrap_or_default()),
        };
        let lines: Vec<String> = written.trim_end().lines().map(ansi::visible).collect();
        TaskRow {
            task: begun.task.clone(),
            sort: begun.sort.clone(),
            title,
            owner,
            load,
            ended: ended.map(Ended::how),
            millis,
            tail: lines[lines.len().saturating_sub(TAIL)..].to_vec(),
            output,
        }
    };
    let known = |task: &Task| {
        let at = running.iter().position(|row| row.begun.task == task.begun.task);
        let millis = match &task.ended {
            Some(ended) => Some(ended.millis).filter(|millis| *millis > 0),
            None => session.since(task.at),
        };
        row(&task.begun, task.ended.as_ref(), at.map(|at| running.swap_remove(at)), millis)
    };
    let mut rows: Vec<TaskRow> = session.facts().tasks.iter().map(known).collect();
    rows.extend(running.into_iter().map(|now| {
        let millis = u64::try_from(now.time.as_millis()).unwrap_or(u64::MAX);
        row(&now.begun.clone(), None, Some(now), Some(millis))
    }));
    rows.reverse();
    rows.sort_by_key(|row| row.ended.is_some());
    rows
}

/// The memory files in use, and a place for the project's own if it has none yet.
pub(super) fn memory(agent: &Snapshot, setup: &Setup) -> Vec<MemoryRow> {
    let project = setup.project.as_path();
    let row = |path: PathBuf, lines: Option<usize>| MemoryRow {
        name: setup.paths.tilde(&path.strip_prefix(project).unwrap_or(&path).to_string_lossy()),
        path,
        lines: lines.map(|lines| lines as u64),
    };
    let mut rows: Vec<MemoryRow> =
        agent.memory_files().into_iter().map(|(path, lines)| row(path, Some(lines))).collect();
    if !rows.iter().any(|row| row.path.parent() == Some(project)) {
        rows.push(row(project.join("AGENTS.md"), None));
    }
    rows
}

pub(super) fn rules(rules: &RuleSet) -> Vec<RuleRow> {
    let row = |entry: &Entry| RuleRow {
        rule: entry.rule.to_string(),
        behavior: entry.behavior,
        source: entry.source.to_string(),
        fixed: fixed(entry.source).map(str::to_owned),
    };
    rules.entries().iter().map(row).collect()
}

/// Why a rule cannot be revoked; none where it can.
pub(super) fn fixed(source: Source) -> Option<&'static str> {
    Some(match source {
        Source::Session | Source::ProjectLocal | Source::User => return None,
        Source::Managed => "the administrator set it, and only they can remove it",
        Source::CommandLine => "it comes from a flag or a variable, so start without that",
        Source::Project => "everyone in this project shares it, so edit the project's settings file",
        Source::Config => "it is in your config.toml, so change the list in /config",
        Source::Skill => "it comes with the running skill and ends with it",
    })
}

/// The user messages that a rewind can go back to.
pub(super) fn prompts(session: &Session) -> Vec<PromptRow> {
    let prompts = session.prompts().unwrap_or_else(|error| {
        tracing::error!(%error, "cannot read the prompts");
        Vec::new()
    });
    let row = |prompt: session::PromptRow| PromptRow {
        seq: prompt.seq,
        text: prompt.text,
        changed_files: prompt.changed_files,
    };
    prompts.into_iter().map(row).collect()
}

/// Places that a search of all sessions shows.
const FOUND: usize = 40;

/// A title that leaves the words beside it their room.
fn short(title: &str) -> String {
    const MOST: usize = 18;
    let mut short: String = title.chars().take(MOST).collect();
    if title.chars().nth(MOST).is_some() {
        short = format!("{}…", short.trim_end());
    }
    short
}

/// Searches all sessions beside what else is done, and tells the front ends.
pub(super) fn find(setup: &Setup, words: String, mailbox: &Arc<Mailbox>) {
    let (home, project, now) = (setup.paths.home.clone(), setup.project.clone(), (setup.clocks.wall)());
    let mailbox = Arc::clone(mailbox);
    tokio::spawn(async move {
        let (asked, searched) = (words.clone(), home.clone());
        let look = move || match words.trim().is_empty() {
            true => Ok(Vec::new()),
            false => {
                let terms = Terms::new(&words, None).map_err(|wrong| wrong.to_string())?;
                recall::sessions(&searched, |_| true, &terms, FOUND).map_err(|error| error.to_string())
            }
        };
        let hits = tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(error.to_string()));
        let row = |Hit { session, place }: Hit| {
            let when = index::ago(now, SystemTime::UNIX_EPOCH + Duration::from_millis(session.changed_ms));
            let tool = place.tool.map(|tool| format!(" of {tool}")).unwrap_or_default();
            FoundRow {
                detail: format!("{when} · {}", short(session.title.as_deref().unwrap_or("untitled"))),
                place: format!("turn {} · {}{tool}", place.turn, place.kind.name()),
                folder: Some(session.cwd).filter(|folder| *folder != project),
                session: session.id,
                text: place.excerpt,
            }
        };
        let list = match hits {
            Ok(hits) => FoundList { words: asked, rows: hits.into_iter().map(row).collect(), problem: None },
            Err(problem) => FoundList { words: asked, rows: Vec::new(), problem: Some(problem) },
        };
        mailbox.emit(Event::Listed(Listed::Found(list))).await;
        // The next key finds faster.
        recall::remember_beside(home, recall::logs);
    });
}

/// The sessions of the folder but for one, newest first.
///
/// # Errors
/// They cannot be listed.
pub(super) fn sessions(setup: &Setup, but: Option<&str>) -> Result<Vec<SessionRow>, String> {
    let now = (setup.clocks.wall)();
    let sessions = index::list(&setup.paths.home, Some(&setup.project)).map_err(|error| error.to_string())?;
    let prompts = |count: u64| match count {
        0 => "no prompt".to_owned(),
        1 => "1 prompt".to_owned(),
        count => format!("{count} prompts"),
    };
    let rows = sessions.into_iter().filter(|summary| Some(summary.id.as_str()) != but).map(|summary| SessionRow {
        detail: format!(
            "{} · {}",
            index::ago(now, SystemTime::UNIX_EPOCH + Duration::from_millis(summary.changed_ms)),
            prompts(summary.prompts)
        ),
        title: summary.title.unwrap_or_else(|| "untitled".into()),
        id: summary.id,
    });
    Ok(rows.collect())
}
