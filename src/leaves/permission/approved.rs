//! What a command runs in that somebody approved or a rule allows: what the user may, or the workspace profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::decide::Query;
use super::files::Files;
use super::permit::Consent;
use super::vocabulary::Matches;
use super::{Access, Behavior, CommandLine, Mode};
use crate::sandbox::presets::Preset;
use crate::sandbox::{Level, Network, Policy, Reads};

/// How approved commands run; a slice of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approved {
    pub profile: Profile,
    /// Whether a call that asks to run outside of the sandbox is heard.
    pub escapes: Escapes,
    /// What the profile holds runs without a question, whatever `profile` says of commands that somebody approved.
    pub unasked: bool,
    /// Where nothing confines commands, none runs.
    pub required: bool,
    /// Programs that run outside of it.
    pub excluded: Vec<String>,
    /// Folders that the environment names for caches.
    pub caches: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// They may do what the user may.
    #[default]
    Off,
    /// They may change the workspace and caches, read what is not secret, and connect where somebody agreed to.
    Workspace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Escapes {
    #[default]
    Asked,
    Ignored,
}

/// Files of a workspace that tell programs what to run: who writes one has it run outside of the sandbox later.
const KEPT: [&str; 9] =
    [".git/hooks", ".git/config", ".claude", ".mcp.json", ".vscode", ".idea", ".gitmodules", ".envrc", ".husky"];

impl Approved {
    /// Whether a command line runs in the workspace profile once it is approved.
    pub fn confines(&self, command: &CommandLine, mode: Mode, level: Level) -> bool {
        self.profile == Profile::Workspace && self.holds(command, mode, level)
    }

    /// Whether it would run without a question if the profile may speak for what it holds.
    pub fn may_run_unasked(&self, command: &CommandLine, mode: Mode, level: Level) -> bool {
        mode != Mode::Plan && self.holds(command, mode, level)
    }

    /// Whether the profile can hold a command line.
    fn holds(&self, command: &CommandLine, mode: Mode, level: Level) -> bool {
        let escapes = command.escapes() && self.escapes == Escapes::Asked;
        level > Level::None
            && mode != Mode::Bypass
            && !escapes
            && !command.programs().iter().any(|program| self.excluded.contains(program))
    }
}

/// The profile of a line that was approved, or that runs unasked because the profile holds it, with what rules hide and keep; None where it runs as the user.
pub(super) fn profile(
    query: &Query,
    unasked: bool,
    consent: Consent,
    (mut hidden, mut kept): (Vec<PathBuf>, Vec<PathBuf>),
    files: &dyn Files,
) -> Option<Policy> {
    let (Access::Shell { command, cwd }, places) = (query.access, query.places) else { return None };
    let confines = unasked || places.approved.confines(command, query.mode, query.level);
    if consent == Consent::Unconfined || !confines {
        return None;
    }
    let mut writes: Vec<PathBuf> = places.workspace().map(|root| files.resolve(root)).collect();
    let roots = writes.clone();
    if let Some(repository) = files.linked_repository(cwd) {
        kept.extend(["hooks", "config"].map(|name| repository.join(name)));
        writes.push(repository);
    }
    let variable = |name: &str| places.approved.caches.get(name).cloned();
    if let Some(home) = &places.home {
        writes.extend(Preset::of(&command.programs()).flat_map(|preset| preset.caches(home, variable)));
    }
    let granted = |matches, path: &Path| {
        let tool = query.vocabulary.tool(matches);
        let mut allowed = query.entries(Behavior::Allow).filter(|entry| entry.rule.governs(tool));
        allowed.any(|entry| entry.rule.starts(places).iter().any(|(start, whole)| *whole && path.starts_with(start)))
    };
    let editing = query.vocabulary.tool(Matches::Editing);
    for entry in query.entries(Behavior::Allow).filter(|entry| entry.rule.governs(editing)) {
        let starts = entry.rule.starts(places).into_iter();
        writes.extend(starts.filter(|(_, whole)| *whole).map(|(start, _)| files.resolve(&start)));
    }
    hidden.extend(places.secrets().filter(|path| !granted(Matches::Reading, path)).map(|path| files.resolve(&path)));
    let own = roots.iter().flat_map(|root| KEPT.iter().map(|name| root.join(name)));
    kept.extend(own.filter(|path| !granted(Matches::Editing, path)));
    for list in [&mut writes, &mut hidden, &mut kept] {
        list.sort();
        list.dedup();
    }
    // The port is known once the command starts.
    let network = Network::Proxy { port: 0 };
    Some(Policy { reads: Reads::AllBut(hidden), writes, protected: kept, network, ..Policy::free() })
}
