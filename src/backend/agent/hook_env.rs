//! Variables that SessionStart hooks leave for later commands: lines of shell in the file that `CLAUDE_ENV_FILE` names.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};

use crate::hooks::Settings;
use crate::stdx::process::{Unconfined, command_without, run_captured};

/// Longest run of the lines.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of an environment.
const MOST: usize = 1 << 20;
/// Prints the environment without and with what the file sets, apart from each other.
const PRINT: &str = r#"env -0; printf '=\0'; set -a; . "$1" >/dev/null 2>&1; env -0"#;
/// Variables that a shell sets by itself.
const OWN: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

/// A file that SessionStart hooks may write to.
pub(super) fn file() -> Option<TempPath> {
    let made = NamedTempFile::with_prefix("cocode-env-").map(NamedTempFile::into_temp_path);
    made.inspect_err(|error| tracing::warn!(%error, "cannot create the file for hook variables")).ok()
}

/// What the lines of a file set or change in the environment of commands.
pub(super) async fn set_by(file: &Path, settings: &Settings, cwd: &Path) -> BTreeMap<String, String> {
    let mut command = command_without("bash", &settings.secret_env);
    command.args(["--norc", "--noprofile", "-c", PRINT, "bash"]).arg(file).env_remove("BASH_ENV");
    command.envs(settings.env.iter().filter(|(name, _)| !settings.secret_env.contains(name))).current_dir(cwd);
    let Ok(ran) = run_captured(command, Unconfined::Settings, &[], TIMEOUT, MOST).await else { return BTreeMap::new() };
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let (before, after) = text.split_once("\0=\0").unwrap_or_default();
    let variables = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.split('\0').filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let before = variables(before);
    let mut set = variables(after);
    set.retain(|name, value| !OWN.contains(&name.as_str()) && before.get(name) != Some(value));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_file_sets_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env");
        std::fs::write(&file, "export E= A='one\ntwo' B=$HAD:x\nC=3\necho noise\nHAD=same\ncd /\nfalse\n").unwrap();
        let env =
            BTreeMap::from([("HAD", "same"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        let set = set_by(&file, &Settings { env, ..Settings::default() }, dir.path()).await;
        let want = [("E", ""), ("A", "one\ntwo"), ("B", "same:x"), ("C", "3")];
        assert_eq!(set, want.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        std::fs::write(&file, "if then\n").unwrap();
        assert_eq!(set_by(&file, &Settings::default(), dir.path()).await, BTreeMap::new());
    }
}
