//! What every conversation opens with: the constant system prompt, and the facts of the session, frozen in its first message.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Settings, memory};
use crate::message::{Attachment, Kind, Message};
use crate::permission::OwnGit;

/// The system prompt. It never changes within a session, in any mode, so that the cached prefix holds.
pub const SYSTEM: &str = include_str!("../../../assets/prompts/system.md");

/// The system prompt without its instructions for coding: an output style has its own.
pub fn without_coding() -> String {
    let (before, rest) = SYSTEM.split_once("# How to work\n").expect("the prompt says how to work");
    let (_, after) = rest.split_once("\n# ").expect("a section follows");
    format!("{before}# {after}")
}

/// The system prompt of a session that begins with these settings.
pub(super) fn system(settings: &Settings) -> Arc<str> {
    let own = settings.system.as_deref().unwrap_or(SYSTEM);
    settings.append_system.as_ref().map_or_else(|| own.into(), |more| format!("{own}\n\n{more}").into())
}

/// Longest wait for git's status; a huge work tree must not hold the first request up.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of git's status that are read.
const GIT_BYTES: usize = 1 << 20;
/// Most lines of git's status that the model gets.
const GIT_LINES: usize = 30;

/// Facts of the session that the model cannot know. Gathered once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    pub cwd: PathBuf,
    pub added: Vec<PathBuf>,
    /// Status lines, or none outside a repository.
    pub git: Option<String>,
    pub date: String,
    pub model: String,
}

/// Asks git for branch and changes. None when there is no repository, no git, or no answer in time; why git was not
/// started where its configuration is not harmless.
async fn git_status(git: OwnGit) -> Option<String> {
    match git.ask(&["status", "--short", "--branch"], GIT_TIMEOUT, GIT_BYTES).await {
        Ok(captured) => captured.filter(|captured| captured.code == Some(0)).map(|captured| answer(&captured.stdout)),
        Err(reason) => Some(printable(&format!("unknown, because git was not started: {reason}"))),
    }
}

fn answer(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<String> = text.lines().take(GIT_LINES).map(printable).collect();
    let rest = text.lines().count().saturating_sub(GIT_LINES);
    if rest > 0 {
        lines.push(format!("… and {rest} more changed files"));
    }
    lines.join("\n")
}

/// Git's status, asked for once, beside whatever else continues.
pub struct GitStatus {
    asked: Option<tokio::task::JoinHandle<Option<String>>>,
    known: Option<String>,
}

impl GitStatus {
    /// Starts asking. Needs a running tokio.
    pub fn ask(git: OwnGit) -> GitStatus {
        GitStatus { asked: Some(tokio::spawn(git_status(git))), known: None }
    }

    /// What somebody else was told already.
    pub fn of(known: Option<String>) -> GitStatus {
        GitStatus { asked: None, known }
    }

    /// What git said, as far as it was waited for.
    pub fn known(&self) -> Option<String> {
        self.known.clone()
    }

    /// What git said, waiting for it when it has not answered yet.
    pub async fn get(&mut self) -> Option<String> {
        if let Some(asked) = self.asked.take() {
            self.known = asked.await.ok().flatten();
        }
        self.known.clone()
    }
}

/// File names are untrusted: control characters in them must not reach anything.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Whether a message is one that `opening` made.
pub fn opens(message: &Message) -> bool {
    matches!(message.kind, Kind::Attachment(Attachment::Opening { .. }))
}

/// The first message: environment, then memory files.
pub fn opening(environment: &Environment, files: &[memory::MemoryFile]) -> Message {
    let list = |folders: &[PathBuf]| folders.iter().map(|folder| show(folder)).collect::<Vec<_>>().join(", ");
    let mut text = format!("# Environment\nWorking directory: {}\n", show(&environment.cwd));
    if !environment.added.is_empty() {
        text.push_str(&format!("Additional folders: {}\n", list(&environment.added)));
    }
    text.push_str(&format!("Platform: {} {}\n", std::env::consts::OS, std::env::consts::ARCH));
    text.push_str(&format!("Date: {}\nModel: {}\n", environment.date, environment.model));
    match &environment.git {
        // The user does not want it told.
        Some(status) if status.is_empty() => {}
        Some(status) => text.push_str(&format!("Git status when the session began:\n{status}\n")),
        None => text.push_str("Not a git repository.\n"),
    }
    let memory = text.len();
    if !files.is_empty() {
        text.push_str(
            "\n# Memory files\nThe user's standing instructions. Follow them where they apply to the task.\n\n",
        );
        text.push_str(&memory::render(files));
    }
    Message::attachment(Attachment::Opening { memory }, &text)
}

fn show(path: &Path) -> String {
    printable(&path.to_string_lossy())
}
