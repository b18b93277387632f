//! What a command runs in that somebody approved or a rule allows: what the user may, or the workspace profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::decide::Query;
use super::files::Files;
use super::permit::Consent;
use super::vocabulary::Matches;
use super::{Access, Behavior, CommandLine, Mode, installed};
use crate::sandbox::presets::Preset;
use crate::sandbox::{Guard, Level, Network, Policy, Reads};

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

/// All programs of a user share it: one confined changes what it has made there.
const SHARED_MEMORY: &str = "/dev/shm";

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

/// What rules hide and keep, and what is guarded beside that.
pub(super) struct Ruled {
    pub(super) hidden: Vec<PathBuf>,
    pub(super) kept: Vec<PathBuf>,
    pub(super) guard: Guard,
}

/// The profile of a line that was approved, or that runs unasked because the profile holds it; None where it runs as the user.
pub(super) fn profile(
    query: &Query,
    unasked: bool,
    consent: Consent,
    Ruled { mut hidden, mut kept, mut guard }: Ruled,
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
        guard.paths.extend(["hooks", "config"].map(|name| repository.join(name)));
        writes.push(repository);
    }
    let variable = |name: &str| places.approved.caches.get(name).cloned();
    if let Some(home) = &places.home {
        writes.extend(Preset::of(&command.programs()).flat_map(|preset| preset.caches(home, variable)));
    }
    let starts = |matches| {
        let tool = query.vocabulary.tool(matches);
        let allowed = query.entries(Behavior::Allow).filter(move |entry| entry.rule.governs(tool));
        allowed.flat_map(|entry| entry.rule.starts(places)).filter(|(_, whole)| *whole).map(|(start, _)| start)
    };
    let granted = |matches, path: &Path| starts(matches).any(|start| path.starts_with(start));
    writes.extend(starts(Matches::Editing).map(|start| files.resolve(&start)));
    hidden.extend(places.secrets().filter(|path| !granted(Matches::Reading, path)).map(|path| files.resolve(&path)));
    let own = roots.iter().flat_map(|root| KEPT.iter().map(|name| root.join(name)));
    guard.paths.extend(own.filter(|path| !granted(Matches::Editing, path)));
    guard.shared.push(SHARED_MEMORY.into());
    for list in [&mut writes, &mut hidden, &mut kept, &mut guard.paths] {
        list.sort();
        list.dedup();
    }
    let reads = match places.home.as_ref().filter(|_| unasked).map(|home| files.resolve(home)) {
        Some(home) if home.parent().is_some() => {
            let mut open = installed::open(query, cwd, &writes, files);
            open.extend(starts(Matches::Reading).map(|start| files.resolve(&start)));
            Reads::Within { home, open, hidden }
        }
        _ => Reads::AllBut(hidden),
    };
    // Where no supervisor is, that is all there is.
    let written = |path: &&PathBuf| writes.iter().any(|folder| path.starts_with(folder));
    let put_back = match unasked {
        true => kept.iter().chain(guard.paths.iter().filter(written)).cloned().collect(),
        false => Vec::new(),
    };
    // The port is known once the command starts.
    let network = Network::Proxy { port: 0 };
    Some(Policy { reads, writes, protected: kept, guard, put_back, network, record: None })
}
