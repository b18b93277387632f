//! What commands of the session meet: its folders, the git of the user, the way out to the network.

use std::path::{Path, PathBuf};

use super::Setup;
use crate::agent::prompt::GitStatus;
use crate::config::Loaded;
use crate::config::paths::{Env, Paths};
use crate::permission::{Approved, GitHooks, OwnGit, Places, Root, Run};
use crate::sandbox::proxy::{Gateway, PROXIES, Surroundings};
use crate::stdx::{git, programs};

/// Where work may happen under these settings, and what is protected.
pub(super) fn places_with(setup: &Setup, loaded: &Loaded) -> Places {
    let added = &loaded.config.permissions.additional_directories;
    let mut places = places(&setup.paths, &setup.project, added);
    places.look_in(loaded.config.env.get("PATH"));
    let approved = loaded.config.sandbox.approved(|name| setup.env.get(name).map(str::to_owned));
    let (run, git) = (Run::new(loaded.runs().iter().map(PathBuf::as_path)), git_variables(&setup.env, loaded));
    Places { run, git_hooks: loaded.git_hooks.clone(), approved, git, ..places }
}

/// The way out to the network for commands of the session.
pub(super) fn gateway(setup: &Setup) -> Gateway {
    let variable = |name: &str| setup.env.get(name).map(str::to_owned);
    let spellings = PROXIES.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_lowercase()]);
    let proxies = spellings.filter_map(|name| Some((name.clone(), variable(&name)?))).collect();
    Gateway::new(Surroundings { proxies, ssh: variable("GIT_SSH_COMMAND"), program: setup.env.program.clone() })
}

/// Where work may happen, and what is protected, for a project with further folders.
pub fn places(paths: &Paths, project: &Path, added: &[PathBuf]) -> Places {
    let added: Vec<PathBuf> = added.iter().map(|folder| project.join(folder)).collect();
    programs::keep_out(added.iter().map(PathBuf::as_path).chain([project]), paths.user_home.as_deref());
    Places {
        project: project.to_path_buf(),
        added,
        cwd: project.to_path_buf(),
        home: paths.user_home.clone(),
        git: git::Variables::default(),
        cocode_home: paths.home.clone(),
        own: vec![paths.config_dir.clone(), paths.state_dir.clone(), paths.managed_dir.clone()],
        programs: paths.programs.clone(),
        run: Run::default(),
        git_hooks: GitHooks::default(),
        free_reads: Vec::new(),
        free_writes: Vec::new(),
        approved: Approved::default(),
    }
}

/// Asks git beside everything else, unless the model is not to be told.
pub(super) fn git_status(setup: &Setup, loaded: &Loaded) -> GitStatus {
    if loaded.config.git_status { GitStatus::ask(own_git(setup, loaded)) } else { GitStatus::of(Some(String::new())) }
}

/// Git for what nobody is asked about; it gets no keys.
pub(super) fn own_git(setup: &Setup, loaded: &Loaded) -> OwnGit {
    OwnGit {
        folder: setup.project.clone(),
        home: setup.paths.user_home.clone(),
        variables: git_variables(&setup.env, loaded),
        secrets: loaded.config.secret_env(),
        sandbox: setup.commands.clone(),
    }
}

/// What leads git to the user's settings: as commands get it.
pub(super) fn git_variables(env: &Env, loaded: &Loaded) -> git::Variables {
    let path = |name: &str| {
        let set = loaded.config.env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set.or_else(|| env.path(name)).filter(|path| path.is_absolute())
    };
    git::Variables { config_home: path("XDG_CONFIG_HOME"), global: path("GIT_CONFIG_GLOBAL") }
}

/// Whether this process has every right.
pub fn root() -> Root {
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() {
        return Root::Yes;
    }
    Root::No
}
