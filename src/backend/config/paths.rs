//! The process's environment as a value, and the folders that follow from it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::stdx::fs::private_dir;
use crate::stdx::{programs, text};

/// Variables and base folders of this process. Everything below `main` gets them from here.
#[derive(Debug, Clone, Default)]
pub struct Env {
    pub vars: BTreeMap<String, OsString>,
    /// The user's home folder; `None` for accounts without one.
    pub user_home: Option<PathBuf>,
    /// Where the platform keeps settings: `~/.config` on Linux.
    pub config_base: Option<PathBuf>,
    /// Where the platform keeps state: `~/.local/state` on Linux.
    pub state_base: Option<PathBuf>,
    /// This program, which commands call back.
    pub program: PathBuf,
}

impl Env {
    /// Reads the real environment. Call once, in `main`.
    pub fn process() -> Env {
        let vars = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let base = directories::BaseDirs::new();
        Env {
            vars,
            user_home: base.as_ref().map(|base| base.home_dir().to_owned()),
            config_base: base.as_ref().map(|base| base.config_dir().to_owned()),
            state_base: base.as_ref().map(|base| base.state_dir().unwrap_or(base.data_local_dir()).to_owned()),
            program: std::env::current_exe().unwrap_or_else(|_| "cocode".into()),
        }
    }

    /// An environment with these variables and all folders below `home`; for tests.
    pub fn fake(home: &Path, vars: &[(&str, &str)]) -> Env {
        Env {
            vars: vars.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect(),
            user_home: Some(home.to_owned()),
            config_base: Some(home.join(".config")),
            state_base: Some(home.join(".local/state")),
            program: "cocode".into(),
        }
    }

    /// A variable's text; `None` if it is unset, empty, or not UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// A variable that names a path; `None` if it is unset or empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.vars.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

/// The folders that the program uses. All absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `$COCODE_HOME`, else `~/.claude`: sessions, settings.json, and our state in `cocode/`.
    pub home: PathBuf,
    /// `$COCODE_CONFIG_DIR`, else `<config base>/cocode`: the user's config.toml.
    pub config_dir: PathBuf,
    /// `$COCODE_STATE_DIR`, else `<state base>/cocode`: logs.
    pub state_dir: PathBuf,
    pub user_home: Option<PathBuf>,
    /// The folders of `PATH`, as it names them.
    pub programs: Vec<PathBuf>,
    /// `/etc/cocode`: managed defaults and policy. No variable moves it, or a user could step around a policy.
    pub managed_dir: PathBuf,
    /// Claude Code's managed settings: a policy here, too.
    pub managed_settings: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("no home folder: set COCODE_HOME to a folder for sessions and settings")]
    NoHome,
    #[error("{name} is `{}`, which is not an absolute path: use the full path", path.display())]
    Relative { name: &'static str, path: PathBuf },
    #[error("{} is a file, not a folder: move it or set COCODE_HOME to another folder", .0.display())]
    HomeIsFile(PathBuf),
    #[error("cannot write to {}: {error}; set COCODE_HOME to a folder you can write to", path.display())]
    HomeNotWritable { path: PathBuf, error: std::io::Error },
}

impl Paths {
    /// A text for people: paths in the user's home begin with `~`.
    pub fn tilde(&self, text: &str) -> String {
        text::tilde(text, self.user_home.as_deref())
    }

    /// Derives the folders; touches no file.
    ///
    /// # Errors
    /// A variable holds a relative path, or there is no home folder and `COCODE_HOME` is not set.
    pub fn new(env: &Env) -> Result<Paths, PathError> {
        let named = |name: &'static str| match env.path(name) {
            Some(path) if path.is_relative() => Err(PathError::Relative { name, path }),
            path => Ok(path),
        };
        let home = match (named("COCODE_HOME")?, &env.user_home) {
            (Some(home), _) => home,
            (None, Some(user_home)) => user_home.join(".claude"),
            (None, None) => return Err(PathError::NoHome),
        };
        let below =
            |base: &Option<PathBuf>| base.as_ref().map_or_else(|| home.join("cocode"), |base| base.join("cocode"));
        Ok(Paths {
            config_dir: named("COCODE_CONFIG_DIR")?.unwrap_or_else(|| below(&env.config_base)),
            state_dir: named("COCODE_STATE_DIR")?.unwrap_or_else(|| below(&env.state_base)),
            user_home: env.user_home.clone(),
            programs: programs::folders(env.vars.get("PATH").map(OsString::as_os_str)),
            managed_dir: PathBuf::from("/etc/cocode"),
            managed_settings: PathBuf::from(if cfg!(target_os = "macos") {
                "/Library/Application Support/ClaudeCode/managed-settings.json"
            } else {
                "/etc/claude-code/managed-settings.json"
            }),
            home,
        })
    }

    /// The user's own configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config_dir.join("config.toml")
    }

    /// The user's own color themes.
    pub fn themes(&self) -> PathBuf {
        self.config_dir.join("themes")
    }

    /// The user's Claude Code settings.
    pub fn user_settings(&self) -> PathBuf {
        self.home.join("settings.json")
    }

    /// Where our own state lives: trust, prompt history, session index.
    pub fn own_state(&self) -> PathBuf {
        self.home.join("cocode")
    }

    /// Where it is remembered how far this machine confines commands.
    pub fn sandbox(&self) -> PathBuf {
        self.own_state().join("sandbox")
    }

    /// Makes `home` when it is missing (0700) and proves that it can be written to.
    ///
    /// # Errors
    /// Names `COCODE_HOME` when it is a file or cannot be written to.
    pub fn prepare_home(&self) -> Result<(), PathError> {
        let failed = |error| PathError::HomeNotWritable { path: self.home.clone(), error };
        match fs::metadata(&self.home) {
            Ok(metadata) if !metadata.is_dir() => return Err(PathError::HomeIsFile(self.home.clone())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                let file = self.home.ancestors().find(|path| path.is_file()).unwrap_or(&self.home);
                return Err(PathError::HomeIsFile(file.to_owned()));
            }
            Err(_) => private_dir(&self.home).map_err(failed)?,
        }
        // Permission bits lie for root, read-only mounts and quotas: only a write tells.
        tempfile::Builder::new().prefix(".cocode-").tempfile_in(&self.home).map(drop).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_written_short() {
        let paths = Paths::new(&Env::fake(Path::new("/home/ada"), &[])).unwrap();
        for (text, want) in [
            ("/home/ada/.config/x.toml:2: odd", "~/.config/x.toml:2: odd"),
            ("in `/home/ada`, or /home/ada/b", "in `~`, or ~/b"),
            ("/home/adams/x /mnt/home/ada/x /home/ada.old", "/home/adams/x /mnt/home/ada/x /home/ada.old"),
        ] {
            assert_eq!(paths.tilde(text), want);
        }
    }

    #[test]
    fn variables_move_the_folders() {
        let home = Path::new("/home/ada");
        let paths = Paths::new(&Env::fake(home, &[])).unwrap();
        assert_eq!(
            paths,
            Paths {
                home: "/home/ada/.claude".into(),
                config_dir: "/home/ada/.config/cocode".into(),
                state_dir: "/home/ada/.local/state/cocode".into(),
                user_home: Some(home.into()),
                programs: vec!["/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()],
                managed_dir: "/etc/cocode".into(),
                managed_settings: paths.managed_settings.clone(),
            }
        );
        let moved =
            Paths::new(&Env::fake(home, &[("COCODE_HOME", "/srv/c"), ("COCODE_CONFIG_DIR", "/srv/k")])).unwrap();
        assert_eq!((moved.home, moved.config_dir), ("/srv/c".into(), "/srv/k".into()));
    }

    #[test]
    fn unusable_homes_are_named_with_the_variable() {
        fn check(env: &Env, want: &str) {
            let error = match Paths::new(env) {
                Ok(paths) => paths.prepare_home().unwrap_err(),
                Err(error) => error,
            };
            let text = error.to_string();
            assert!(text.contains(want) && text.contains("COCODE_HOME"), "{text}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("below");
        check(&Env::default(), "no home folder");
        check(&Env::fake(dir.path(), &[("COCODE_HOME", "rel/ative")]), "not an absolute path");
        check(&Env::fake(dir.path(), &[("COCODE_HOME", file.to_str().unwrap())]), "is a file");
        check(&Env::fake(dir.path(), &[("COCODE_HOME", below.to_str().unwrap())]), "file is a file");
        check(&Env::fake(dir.path(), &[("COCODE_HOME", "/proc/cocode")]), "cannot write");
    }

    #[test]
    fn a_missing_home_is_made_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Env::fake(dir.path(), &[])).unwrap();
        paths.prepare_home().unwrap();
        assert_eq!(fs::read_dir(&paths.home).unwrap().count(), 0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&paths.home).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}
