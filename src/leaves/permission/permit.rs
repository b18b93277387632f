//! The right to run one call: it comes from a decision, or from the user's own hand.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::decide::{Decision, Query};
use super::files::{Files, Remembered};
use super::shell::Word;
use super::{Access, Behavior, Sight, confine, line};
use crate::sandbox::Policy;

/// Whether somebody said yes where the rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Nobody was asked, so the rules themselves have to allow the call.
    Missing,
    /// A person said yes, or a hook in their place.
    Given,
    /// The same, and the command runs outside of the sandbox.
    Unconfined,
}

/// What a call that runs may do. Nothing runs without one.
#[derive(Debug, Clone, Default)]
pub struct Permit {
    target: Option<PathBuf>,
    sight: Sight,
    reads: bool,
    quiet_git: bool,
    path: Option<OsString>,
    policy: Option<Policy>,
    unasked: bool,
}

impl Permit {
    /// The permit of a call that was decided about. None where the decision forbids it, or asks and nobody said yes.
    pub fn of(query: &Query, decision: &Decision, consent: Consent, files: &dyn Files) -> Option<Permit> {
        let allowed = match decision.behavior {
            Behavior::Allow => true,
            Behavior::Ask => consent != Consent::Missing,
            Behavior::Deny => false,
        };
        let reads = || match query.access {
            Access::Shell { command, cwd } => line::reads(query, command, cwd, files),
            _ => false,
        };
        allowed.then(|| {
            let reads = reads();
            let sight = Sight::of(query, files);
            let path = if reads { own_path(query, files) } else { None };
            let policy = confine::policy(query, decision, consent, &Remembered::new(files));
            let quiet_git = decision.quiet_git || reads;
            let (target, unasked) = (decision.target.clone(), decision.unasked && consent == Consent::Missing);
            Permit { target, sight, reads, quiet_git, path, policy, unasked }
        })
    }

    /// The permit of a line that the user typed: nobody is asked about it, and nothing is known of it.
    pub fn by_hand() -> Permit {
        Permit::default()
    }

    /// The one file or folder that the call may touch, links followed: what was decided about is what is read or written, or
    /// nothing is.
    pub fn target(&self) -> Option<&Path> {
        self.target.as_deref()
    }

    /// Which files a search may show.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    /// Whether a command line provably changes nothing: plan mode would let it run.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// The `PATH` for a line that only reads, where it is another than the session's: what the programs of the line start in
    /// turn is not the project's either.
    pub fn path(&self) -> Option<&OsStr> {
        self.path.as_deref()
    }

    /// What the kernel holds a command line to; None where it may do what the user may.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// Whether nobody was asked because the policy holds the command: what the policy protects has to stay as it is.
    pub fn unasked(&self) -> bool {
        self.unasked
    }

    /// Whether git must not run what a repository names: for a line that only reads, or in which git passed because it does.
    pub fn quiet_git(&self) -> bool {
        self.quiet_git
    }
}

/// None where a line asks for the session's own, too: it runs nothing that it finds.
fn own_path(query: &Query, files: &dyn Files) -> Option<OsString> {
    let Access::Shell { command, .. } = query.access else { return None };
    let mut asks = false;
    command.parsed().ok()?.node.for_each_simple(&mut |command| {
        let name = command.words.first().and_then(Word::literal).unwrap_or_default();
        asks |= matches!(name.as_str(), "which" | "type" | "command" | "whereis");
    });
    let own: Vec<&PathBuf> = query.places.own_programs(files).collect();
    let path = std::env::join_paths(&own).ok().filter(|path| !path.is_empty())?;
    (!asks && own.len() < query.places.programs.len()).then_some(path)
}
