//! Git as we ask it ourselves, at the start and for `/diff`, without anybody's word.

use std::path::PathBuf;
use std::time::Duration;

use super::super::files::Disk;
use super::super::installed::installed;
use super::{judge, reads};
use crate::sandbox::{Level, Policy, Sandbox};
use crate::stdx::git::{User, Variables};
use crate::stdx::process::{Captured, command_without};
use crate::stdx::programs;

/// What git takes from the environment in place of what is in the folder, or of its own programs and protocols.
pub const VARIABLES: [&str; 22] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_ATTR_SOURCE",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_ALLOW_PROTOCOL",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_ASKPASS",
];

/// All that it takes to ask git something about a folder.
#[derive(Debug, Clone)]
pub struct OwnGit {
    pub folder: PathBuf,
    pub home: Option<PathBuf>,
    pub variables: Variables,
    /// Variables that it does not get to see.
    pub secrets: Vec<String>,
    pub sandbox: Sandbox,
}

impl OwnGit {
    /// What git says to these arguments; none where there is no git. It runs only where `judge` lets it, with nothing of the
    /// environment that would lead it elsewhere and with everything switched off that runs programs. Where the machine can, it
    /// is also held to reading the repository and the user's settings, so that a mistake of the judge costs nothing.
    ///
    /// # Errors
    /// Why it is not started.
    pub async fn ask(&self, arguments: &[&str], limit: Duration, cap: usize) -> Result<Option<Captured>, String> {
        let level = self.sandbox.probe().await;
        let own = self.clone();
        let look =
            move || judge(&own.folder).map(|()| if level == Level::None { Policy::free() } else { own.policy() });
        let policy = tokio::task::spawn_blocking(look).await.map_err(|error| error.to_string())??;
        let mut git = command_without("git", &self.secrets);
        git.current_dir(&self.folder).arg("--no-pager").args(arguments);
        for name in VARIABLES {
            git.env_remove(name);
        }
        // Where it looks is where it may read.
        for (name, path) in [
            ("HOME", &self.home),
            ("XDG_CONFIG_HOME", &self.variables.config_home),
            ("GIT_CONFIG_GLOBAL", &self.variables.global),
        ] {
            match path {
                Some(path) => git.env(name, path),
                None => git.env_remove(name),
            };
        }
        git.env("PATH", programs::own_path());
        git.envs(super::super::QUIET_GIT.iter().copied().filter(|(name, _)| name.starts_with("GIT_")));
        Ok(self.sandbox.run_captured(git, &policy, b"", limit, cap).await.ok())
    }

    /// What it is held to.
    pub fn policy(&self) -> Policy {
        let mut paths = reads(&self.folder, User { home: self.home.as_deref(), variables: &self.variables });
        let folders: Vec<PathBuf> = std::env::split_paths(&programs::own_path()).collect();
        paths.extend(installed(&folders, &self.folder, "git", &Disk));
        Policy::reading(paths)
    }
}
