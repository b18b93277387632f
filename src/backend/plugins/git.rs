//! Fetches a plugin with git: one commit, without its history, and without anything that the repository could have run.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::permission::GIT_VARIABLES;
use crate::stdx::process::{Unconfined, command_without, run_captured};

/// Longest run of one git command.
const LIMIT: Duration = Duration::from_secs(300);
/// Most bytes of what git says.
const SAID: usize = 64 << 10;
/// What of the user's own settings of git could run something of the repository.
const SWITCHED: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// The ways to a repository that run nothing but git and ssh. Git takes no other one, whatever settings and variables say.
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// Where a plugin is fetched from.
#[derive(Debug, Clone, Copy)]
pub struct Repository<'a> {
    pub url: &'a str,
    /// A branch or tag; none is what the server calls HEAD.
    pub reference: Option<&'a str>,
    /// The only commit that will do, in full.
    pub sha: Option<&'a str>,
}

/// What was fetched; gone when dropped.
#[derive(Debug)]
pub struct Fetched {
    pub folder: TempDir,
    pub commit: String,
}

/// Fetches the files of one commit. Git does not see `secrets`.
///
/// # Errors
/// What git says; or the commit is another one.
pub async fn fetch(from: Repository<'_>, secrets: &[String]) -> Result<Fetched, String> {
    let Repository { url, reference, sha } = from;
    let full = |sha: &str| sha.len() == 40 && sha.chars().all(|c| c.is_ascii_hexdigit());
    if let Some(sha) = sha.filter(|sha| !full(sha)) {
        return Err(format!("{sha:?} is not a whole commit: give all 40 digits"));
    }
    if let Some(option) = [Some(url), reference].into_iter().flatten().find(|text| text.starts_with('-')) {
        return Err(format!("{option:?} is not the name of anything"));
    }
    let folder = tempfile::Builder::new().prefix("cocode-plugin-").tempdir();
    let folder = folder.map_err(|error| format!("cannot make a folder: {error}"))?;
    let at = folder.path();
    git(at, &["init", "-q", "--template="], secrets).await?;
    git(at, &["fetch", "-q", "--depth=1", "--no-tags", "--", url, sha.or(reference).unwrap_or("HEAD")], secrets)
        .await?;
    git(at, &["checkout", "-q", "--detach", "FETCH_HEAD"], secrets).await?;
    let commit = git(at, &["rev-parse", "HEAD"], secrets).await?.trim().to_owned();
    match sha.filter(|sha| !sha.eq_ignore_ascii_case(&commit)) {
        Some(sha) => Err(format!("{url} has {commit} where {sha} was asked for")),
        None => Ok(Fetched { folder, commit }),
    }
}

async fn git(at: &Path, arguments: &[&str], secrets: &[String]) -> Result<String, String> {
    let mut git = command_without("git", secrets);
    for setting in SWITCHED {
        git.args(["-c", setting]);
    }
    git.current_dir(at).args(arguments);
    // How to ask for a password is the user's own matter, as ssh is.
    for name in GIT_VARIABLES.into_iter().filter(|name| *name != "GIT_ASKPASS") {
        git.env_remove(name);
    }
    git.env("GIT_ALLOW_PROTOCOL", PROTOCOLS);
    // Nobody is there to type a password, and large files are not what a plugin is made of.
    git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1");
    let ran = run_captured(git, Unconfined::Settings, &[], LIMIT, SAID).await;
    let ran = ran.map_err(|error| format!("cannot start git: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match ran.code {
        Some(0) => Ok(text(&ran.stdout)),
        _ if ran.timed_out => Err(format!("git {} takes longer than {} s", arguments[0], LIMIT.as_secs())),
        _ => Err(format!("git {} failed: {}", arguments[0], text(&ran.stderr))),
    }
}
