//! `cocode import`: sessions of other agents.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};

use super::Here;
use super::find::age;
use crate::session::import::{self, Imported, Outcome, Run, Source};
use crate::session::index;
use crate::stdx::ansi::visible;

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Import {
    /// Import only the sessions of this agent
    #[arg(value_enum, default_value_t)]
    from: From,
    /// Only sessions used since then: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age)]
    since: Option<Duration>,
    /// List what would be imported, without importing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum From {
    Claude,
    Codex,
    Opencode,
    Pi,
    /// All that are installed
    #[default]
    Auto,
}

impl From {
    fn sources(self) -> &'static [Source] {
        match self {
            From::Claude => &[Source::Claude],
            From::Codex => &[Source::Codex],
            From::Opencode => &[Source::Opencode],
            From::Pi => &[Source::Pi],
            From::Auto => &Source::ALL,
        }
    }
}

/// Where an agent keeps its sessions: each has a variable of its own that moves it.
fn root(source: Source, here: Here<'_>) -> Option<PathBuf> {
    let (variable, inside, usual) = match source {
        Source::Claude => ("CLAUDE_CONFIG_DIR", "projects", ".claude/projects"),
        Source::Codex => ("CODEX_HOME", "", ".codex"),
        Source::Opencode => ("XDG_DATA_HOME", "opencode", ".local/share/opencode"),
        Source::Pi => ("PI_CODING_AGENT_DIR", "sessions", ".pi/agent/sessions"),
    };
    let named = here.env.path(variable).filter(|path| path.is_absolute()).map(|path| path.join(inside));
    named.or_else(|| Some(here.env.user_home.as_ref()?.join(usual)))
}

/// What became of the sessions of one agent.
#[derive(Debug, Default)]
struct Count {
    new: usize,
    updated: usize,
    unchanged: usize,
    continued: usize,
    nothing: usize,
    failed: usize,
}

impl Count {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::New => &mut self.new,
            Outcome::Updated => &mut self.updated,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Continued => &mut self.continued,
            Outcome::Nothing => &mut self.nothing,
            Outcome::Failed(_) => &mut self.failed,
        } += 1;
    }

    fn told(&self, run: Run) -> String {
        let done = if run == Run::Dry { "to import" } else { "imported" };
        let grown = if run == Run::Dry { "to update" } else { "updated" };
        let counts = [
            (self.new, done),
            (self.updated, grown),
            (self.unchanged, "unchanged"),
            (self.continued, "continued here and left alone"),
            (self.nothing, "without a prompt of yours"),
            (self.failed, "failed"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if counts.is_empty() { "no sessions".to_owned() } else { counts.join(", ") }
    }
}

/// Imports; returns the exit code: 0, 1 when something failed or nothing was there to import.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub(super) fn run(import: &Import, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let now = SystemTime::now();
    let since = import.since.and_then(|age| now.checked_sub(age)).unwrap_or(UNIX_EPOCH);
    let run = if import.dry_run { Run::Dry } else { Run::Real };
    let (mut some, mut failed) = (false, false);
    let sources = import.from.sources().iter().filter_map(|source| Some((*source, root(*source, here)?)));
    for (source, root) in sources {
        let shown = here.paths.tilde(&root.display().to_string());
        if !root.is_dir() {
            if import.from != From::Auto {
                writeln!(err, "error: no sessions of {}: {shown} does not exist", source.name())?;
                return Ok(1);
            }
            continue;
        }
        some = true;
        let (mut count, mut lines) = (Count::default(), Vec::new());
        let tell = |imported: Imported| {
            count.add(&imported.outcome);
            lines.extend(line(&imported, run, now, here));
        };
        let done = import::import((source, &root), &here.paths.home, env!("CARGO_PKG_VERSION"), (since, run), tell);
        match &done {
            Ok(()) => writeln!(out, "{:<12} {}  ({shown})", source.name(), count.told(run))?,
            Err(error) => writeln!(err, "error: {}: {error}", source.name())?,
        }
        for line in lines {
            writeln!(out, "  {}", visible(&line))?;
        }
        failed |= count.failed > 0 || done.is_err();
    }
    if !some {
        writeln!(err, "no sessions of Claude Code, Codex, opencode or pi found")?;
    }
    Ok(u8::from(failed || !some))
}

/// What is said of one session: what went wrong, and in a dry run what would be imported.
fn line(imported: &Imported, run: Run, now: SystemTime, here: Here<'_>) -> Option<String> {
    let Imported { path, outcome, written, .. } = imported;
    match outcome {
        Outcome::Failed(error) => Some(format!("{}: {error}", here.paths.tilde(&path.display().to_string()))),
        Outcome::New | Outcome::Updated if run == Run::Dry => {
            let last = UNIX_EPOCH + Duration::from_millis(written.last_ms.max(0).cast_unsigned());
            let title = written.title.as_deref().unwrap_or("untitled");
            let (prompts, cwd) = (written.prompts, here.paths.tilde(&written.cwd.display().to_string()));
            let s = if prompts == 1 { "" } else { "s" };
            Some(format!("{}  {title}  {cwd}  {prompts} prompt{s}", index::ago(now, last)))
        }
        _ => None,
    }
}
