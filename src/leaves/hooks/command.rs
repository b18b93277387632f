//! Runs one hook: a command with the event on its standard input, ended with everything it started.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::config::FOLDERS;
use super::event::Place;
use crate::stdx::fs::private_dir;
use crate::stdx::outside::Outside;
use crate::stdx::process::{Unconfined, command_without, run_captured};

/// Most bytes of each output that are read. Only what a hook hands on as JSON may be that long.
const READ: usize = 1 << 20;
/// Maximum number of characters of a text that reach the model or the user.
const SHOWN: usize = 10_000;

/// Environment of hooks; a slice of the configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Variables that no hook inherits (keys).
    pub secret_env: Vec<String>,
    /// Further variables; a name in `secret_env` is left out.
    pub env: BTreeMap<String, String>,
    pub limits: Limits,
    /// The program that runs us, where it has hooks of its own.
    pub outside: Option<Outside>,
}

/// What hooks that send may reach, wherever they are defined. None: whatever they name themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Addresses, in which `*` is any text.
    pub urls: Option<Vec<String>>,
    /// Variables that their headers may hold.
    pub variables: Option<Vec<String>>,
}

impl Limits {
    /// Whether an address may be reached.
    pub(super) fn reach(&self, url: &str) -> bool {
        self.urls.as_ref().is_none_or(|urls| urls.iter().any(|pattern| fits(pattern, url)))
    }

    /// Whether a header may hold a variable.
    pub(super) fn lend(&self, name: &str) -> bool {
        self.variables.as_ref().is_none_or(|names| names.iter().any(|allowed| allowed == name))
    }
}

/// Whether `*` in a pattern for any text makes it equal to the text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = tail.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exited(i32),
    /// By a signal.
    Killed,
    TimedOut(Duration),
    /// It did not start, or what answered was no answer; why.
    Failed(String),
}

/// What a hook left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) millis: u64,
}

impl Ran {
    /// Of a hook that said nothing, and why.
    pub(super) fn none(why: String) -> Ran {
        Ran { end: End::Failed(why), stdout: String::new(), stderr: String::new(), millis: 0 }
    }
}

/// The folders of the plugin or skill that a hook belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Home<'a> {
    pub(super) root: Option<&'a Path>,
    /// Only plugins have one.
    pub(super) data: Option<&'a Path>,
}

/// The folder's name, where a shell reads it as it is, whatever quotes are around it; blanks count as in any variable.
pub fn plain(folder: &Path) -> Option<&str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@, ".contains(c);
    folder.to_str().filter(|text| text.chars().all(plain))
}

/// What is started.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    Line(&'a str),
    Program(&'a str, &'a [String]),
}

impl Start<'_> {
    /// The command, and what it is called when it cannot be started.
    fn command(self, folders: &[(String, String)], of_plugin: bool, secret_env: &[String]) -> (Command, String) {
        match self {
            Start::Line(line) => {
                // A shell knows them as variables, but not between single quotes.
                let known = folders.iter().filter(|(_, folder)| of_plugin && plain(Path::new(folder)).is_some());
                let line = known.fold(line.to_owned(), |line, (name, folder)| line.replace(name.as_str(), folder));
                let mut command = command_without("bash", secret_env);
                command.args(["--norc", "--noprofile", "-c", &line]).env_remove("BASH_ENV");
                (command, "bash".to_owned())
            }
            Start::Program(program, arguments) => {
                let whole = |word: &str| {
                    folders.iter().fold(word.to_owned(), |word, (name, folder)| word.replace(name.as_str(), folder))
                };
                let program = whole(program);
                let mut command = command_without(&program, secret_env);
                command.args(arguments.iter().map(|word| whole(word)));
                (command, program)
            }
        }
    }
}

/// Runs a hook to its end. A dropped future leaves no process behind.
pub(super) async fn run(
    start: Start<'_>,
    Home { root, data }: Home<'_>,
    timeout: Duration,
    input: &[u8],
    place: &Place,
    settings: &Settings,
) -> Ran {
    let started = Instant::now();
    let folders = FOLDERS.map(|name| {
        let folder = match name {
            name if name.contains("PROJECT") => Some(&*place.project),
            name if name.contains("DATA") => data,
            _ => root,
        };
        (name.to_owned(), folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default())
    });
    let (mut command, called) = start.command(&folders, data.is_some(), &settings.secret_env);
    // A folder that is gone meanwhile must not keep a guard from running.
    command.current_dir(if place.cwd.is_dir() { &place.cwd } else { &place.project });
    for (name, value) in &settings.env {
        if !settings.secret_env.contains(name) {
            command.env(name, value);
        }
    }
    for owner in ["CLAUDE", "COCODE"] {
        command.env(format!("{owner}_PROJECT_DIR"), &place.project);
        for (name, folder) in [("ROOT", root), ("DATA", data)] {
            match folder {
                Some(folder) => command.env(format!("{owner}_PLUGIN_{name}"), folder),
                None => command.env_remove(format!("{owner}_PLUGIN_{name}")),
            };
        }
    }
    if let Some(data) = data {
        // A hook that does not use it runs all the same.
        let _ = private_dir(data);
    }
    let captured = run_captured(command, Unconfined::Settings, input, timeout, READ).await;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let captured = match captured {
        Ok(captured) => captured,
        Err(error) => {
            return Ran { millis, ..Ran::none(format!("cannot start {called}: {error}")) };
        }
    };
    let end = match captured.code {
        _ if captured.timed_out => End::TimedOut(timeout),
        Some(code) => End::Exited(code),
        None => End::Killed,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { end, stdout: text(&captured.stdout), stderr: text(&captured.stderr), millis }
}

/// The text within the cap, with a note on what was cut.
pub(super) fn capped(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n… (cut after {SHOWN} characters)", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_limited_as_they_will_be_sent() {
        let limits = |urls: Option<&[&str]>| Limits {
            urls: urls.map(|urls| urls.iter().map(|url| (*url).to_owned()).collect()),
            variables: None,
        };
        let reach = |urls: Option<&[&str]>, url: &str| limits(urls).reach(url);
        assert!(reach(None, "http://a/"));
        assert!(!reach(Some(&[]), "http://a/"));
        let some = Some(&["https://hooks.example.com/*", "http://localhost:*/x"][..]);
        for (url, want) in [
            ("https://hooks.example.com/a/b", true),
            ("https://hooks.example.com.evil.com/", false),
            ("https://hooks.example.com@evil.com/", false),
            ("http://localhost:80/x", true),
            ("http://localhost:80/xy", false),
        ] {
            assert_eq!(reach(some, url), want, "{url}");
        }
        let only = Limits { urls: None, variables: Some(vec!["A".into()]) };
        assert!(only.lend("A") && !only.lend("B") && Limits::default().lend("B"));
    }

    async fn check(line: &str, timeout_ms: u64, want: (End, &str, &str)) {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            session: "s".into(),
            transcript: "/none".into(),
            cwd: dir.path().join("gone"),
            project: dir.path().canonicalize().unwrap(),
            mode: "default",
            agent: None,
        };
        let settings = Settings {
            secret_env: vec!["HOOK_SECRET".into()],
            env: BTreeMap::from([("CI".into(), "1".into()), ("HOOK_SECRET".into(), "x".into())]),
            limits: Limits::default(),
            outside: None,
        };
        let (root, timeout) = (Path::new("/plugin"), Duration::from_millis(timeout_ms));
        let ran =
            run(Start::Line(line), Home { root: Some(root), data: None }, timeout, b"{\"a\":1}\n", &place, &settings)
                .await;
        let clean = |text: &str| text.replace(&*place.project.to_string_lossy(), "$P");
        assert_eq!((ran.end, &*clean(&ran.stdout), &*clean(&ran.stderr)), want, "{line}");
    }

    #[tokio::test]
    async fn hooks_get_input_folder_and_variables() {
        check("cat; pwd; exit 3", 60_000, (End::Exited(3), "{\"a\":1}\n$P\n", "")).await;
        check(
            "echo $CLAUDE_PROJECT_DIR $COCODE_PROJECT_DIR $CLAUDE_PLUGIN_ROOT $COCODE_PLUGIN_ROOT $CI [$HOOK_SECRET]",
            60_000,
            (End::Exited(0), "$P $P /plugin /plugin 1 []\n", ""),
        )
        .await;
        check("printf 'a\\377b' >&2", 60_000, (End::Exited(0), "", "a\u{fffd}b")).await;
        check("exec 0<&-; sleep 0.01; echo on", 60_000, (End::Exited(0), "on\n", "")).await;
        check("no-such-program", 60_000, (End::Exited(127), "", "bash: line 1: no-such-program: command not found\n"))
            .await;
        check("kill -9 $$", 60_000, (End::Killed, "", "")).await;
    }

    #[tokio::test]
    async fn a_program_runs_without_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        let place = Place {
            session: "s".into(),
            transcript: "/none".into(),
            cwd: project.clone(),
            project: project.clone(),
            mode: "default",
            agent: None,
        };
        let arguments =
            ["%s|%s|%s|", "$HOME; false", "${CLAUDE_PROJECT_DIR}/a", "${COCODE_PLUGIN_ROOT}"].map(str::to_owned);
        let start = Start::Program("printf", &arguments);
        let (timeout, settings) = (Duration::from_secs(60), Settings::default());
        let ran =
            run(start, Home { root: Some(Path::new("/plugin")), data: None }, timeout, b"{}\n", &place, &settings)
                .await;
        let said = format!("$HOME; false|{}/a|/plugin|", project.display());
        assert_eq!((ran.end, ran.stdout), (End::Exited(0), said));
        let start = Start::Program("no-such-program", &[]);
        let ran = run(start, Home { root: None, data: None }, timeout, b"{}\n", &place, &settings).await;
        let End::Failed(why) = ran.end else { panic!("{ran:?}") };
        assert!(why.starts_with("cannot start no-such-program: "), "{why}");
    }

    #[tokio::test]
    async fn no_hook_outlives_its_timeout() {
        let late = || End::TimedOut(Duration::from_millis(300));
        check("echo a; sleep 1000", 300, (late(), "a\n", "")).await;
        check("trap '' TERM; while :; do sleep 1000; done", 300, (late(), "", "")).await;
        check("(trap '' TERM; sleep 1000) & (setsid sleep 1000 &) ; wait", 300, (late(), "", "")).await;
        check("cat /dev/zero | head -c 3000000 >/dev/null; cat >/dev/null; sleep 1000", 300, (late(), "", "")).await;
    }

    #[test]
    fn texts_are_cut_on_a_character() {
        assert_eq!(capped(" a\n"), "a");
        assert_eq!(capped(&"é".repeat(SHOWN)), "é".repeat(SHOWN));
        assert_eq!(capped(&"é".repeat(SHOWN + 1)), format!("{}\n… (cut after 10000 characters)", "é".repeat(SHOWN)));
    }
}
