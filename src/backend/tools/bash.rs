//! Bash: one command line in a fresh shell, whose working directory carries over and whose processes end with it.

mod background;
mod denials;
mod output;
mod reach;
mod undoing;

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::message::{Display, Effect, Outcome};
use crate::permission::{Access, CommandLine, Matches, Ruled};
use crate::sandbox::{Happening, Policy, Running as Process};
use crate::session::entry::Status;
use crate::stdx::process::{Streams, command_without};
use crate::stdx::text::duration;

use super::call::Typed;
use super::limit::Spool;
use super::{After, Call, Context, Dirs, Manners, Output, file};
use denials::Denial;
use output::{Growing, Kept, LastRecord, Sink, left};
use reach::Reach;
pub use undoing::Changed;
use undoing::{Verdict, Watch};

/// How long a command may run in the background, where its call does not say, and at most.
const BACKGROUND: Duration = Duration::from_secs(30 * 60);
const BACKGROUND_MOST: Duration = Duration::from_secs(2 * 60 * 60);

/// Follows a failure of a line that ran unasked.
const CONFINED: &str = "This command was judged to only read, so it ran confined: it could not write, use the network, or read outside the workspace. \
    Set dangerouslyDisableSandbox to true if it needs that: the user is asked";

/// What programs say of what the kernel refused.
const REFUSALS: [&str; 5] =
    ["ermission denied", "peration not permitted", "ould not resolve", "ame resolution", "etwork is unreachable"];

/// Longest command, in bytes: what the system takes as one argument.
const COMMAND: usize = 120_000;

/// Runs before the command. `$0` is the descriptor on which the shell says where it is: at its end, and after each change
/// of folder, since `exec`, a trap of the user's or a signal may leave no end of its own.
/// One line, so that the command's own lines count from 1 in messages.
const PRELUDE: &str = concat!(
    r#"{ __cocode_cwd() { [ "$BASH_SUBSHELL" != 0 ] || builtin printf '%s\0' "$PWD" >&"$__cocode_fd"; } 2>/dev/null; "#,
    r#"cd() { { local -; set +x; } 2>/dev/null; builtin cd "$@" && { __cocode_cwd || :; }; }; "#,
    r#"pushd() { { local -; set +x; } 2>/dev/null; builtin pushd "$@" && { __cocode_cwd || :; }; }; "#,
    r#"popd() { { local -; set +x; } 2>/dev/null; builtin popd "$@" && { __cocode_cwd || :; }; }; "#,
    r#"__cocode_fd=$1; __cocode_line=$2; shift 2; "#,
    r#"trap '{ set +x; } 2>/dev/null; __cocode_cwd' EXIT; }; eval "$__cocode_line""#,
);

pub(super) struct Bash;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    command: String,
    /// Milliseconds
    timeout: Option<u64>,
    /// What it does, in a few words
    description: Option<String>,
    /// Do not wait: servers, long runs. Timeout 30 min, at most 2 h
    run_in_background: Option<bool>,
    /// Run outside of the sandbox: only after the sandbox kept the command from something that it needs
    #[serde(rename = "dangerouslyDisableSandbox")]
    dangerously_disable_sandbox: Option<bool>,
}

impl Typed for Bash {
    type Input = Input;

    const NAME: &'static str = "Bash";
    const ABOUT: &'static str = include_str!("../../../assets/tools/bash.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Command, ..Ruled::BY_NAME },
        matched: "command",
        spare: &["description", "run_in_background", "dangerouslyDisableSandbox"],
        ..Manners::CHANGES
    };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        let command = &input.command;
        if command.trim().is_empty() {
            return Err("The command is empty.".into());
        }
        if command.contains('\0') {
            return Err("The command contains a NUL character.".into());
        }
        if command.len() > COMMAND {
            return Err(format!(
                "The command has {} bytes; the limit is {COMMAND}. Write a script file and run it.",
                command.len()
            ));
        }
        let line = CommandLine::from(command.as_str());
        let line = if input.dangerously_disable_sandbox == Some(true) { line.escaping() } else { line };
        let access = Access::Shell { command: line, cwd: dirs.cwd.clone() };
        let title = file::one_line(command);
        if input.run_in_background == Some(true) {
            return Ok(Call::new(access, title, move |context| background::begin(input, context)).in_background());
        }
        Ok(Call::new(access, title, move |context| background::wait(input, context)))
    }
}

/// Why a call ended.
enum End {
    Exited(io::Result<ExitStatus>),
    TimedOut(Duration),
    Interrupted,
    /// Its output can no longer be kept.
    Unkept(String),
    /// There was no room to save what it was about to change there.
    Full(PathBuf),
}

/// Who keeps what a command writes.
enum Way<'a> {
    /// The call waits for it, unless it leaves.
    Waited(Box<Spool<'a>>, background::Exit),
    /// The call is answered once it has started.
    Background(File, oneshot::Sender<()>),
}

/// How a command ended that ran.
struct Done {
    output: Output,
    status: Status,
    code: Option<i32>,
    why: Option<String>,
    millis: u64,
}

/// Runs a command to its end. An error where it was not started.
async fn work(input: &Input, context: &Context, way: Way<'_>) -> Result<Done, Output> {
    let settings = &*context.settings;
    let asked = input.timeout.filter(|timeout| *timeout > 0).map(Duration::from_millis);
    let (timeout, most) = match way {
        Way::Waited(..) => {
            (Duration::from_millis(settings.bash_timeout_ms), Duration::from_millis(settings.bash_max_timeout_ms))
        }
        Way::Background(..) => (BACKGROUND, BACKGROUND_MOST),
    };
    let timeout = asked.unwrap_or(timeout).min(most);
    let (start_in, mut notes) = match context.dirs.cwd.is_dir() {
        true => (&context.dirs.cwd, Vec::new()),
        false => {
            let note = format!(
                "The working directory {} no longer exists; the command ran in {}.",
                context.dirs.cwd.display(),
                context.dirs.project.display()
            );
            (&context.dirs.project, vec![note])
        }
    };
    let started = Instant::now();
    let mut reach = match Reach::of(&input.command, context).await {
        Ok(reach) => reach,
        Err(error) => return Err(Output::error(format!("Cannot start the proxy of the sandbox: {error}."))),
    };
    let mut watch = Watch::begin(context, &mut reach.policy).await;
    let (mut process, output, place) = loop {
        match start(&input.command, start_in, context, (&reach.policy, &reach.variables)).await {
            Ok(parts) => break parts,
            Err(error) if error.kind() == io::ErrorKind::StorageFull && reach.policy.record.is_some() => {
                if let Verdict::Stopped(path) = watch.without(&mut reach.policy).await {
                    return Err(Output::error(format!("Not run: {}.", full(&path))));
                }
            }
            Err(error) => return Err(Output::error(denials::not_started(&error, start_in, &reach.policy))),
        }
    };
    let (kept, mut exit, mut waited) = match way {
        Way::Waited(spool, exit) => (Kept::Spool(spool), Some(exit), true),
        Way::Background(file, started) => {
            // Without the call nobody waits.
            let _ = started.send(());
            (Kept::File(Growing::new(file)), None, false)
        }
    };
    let mut cancel = context.cancel.clone();
    let mut sink = Sink::new(kept, &context.live);
    let mut last_place = LastRecord::default();
    let mut buffer = vec![0; 64 * 1024];
    let end = {
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let (mut open, mut place_open) = (true, true);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break End::Interrupted,
                () = &mut deadline, if !reach.asks() && !watch.asks() => {
                    // The time in which it waited for a person is not its own.
                    let late = std::mem::take(&mut reach.waited);
                    if !late.is_zero() {
                        let next = deadline.deadline() + late;
                        deadline.as_mut().reset(next);
                        continue;
                    }
                    let Some(left) = exit.take().filter(|_| background::may_leave(&input.command)) else {
                        break End::TimedOut(timeout);
                    };
                    let Some((token, host)) = left.leave(context, &mut sink, Some(timeout)) else { break End::TimedOut(timeout) };
                    (cancel, reach.host, waited) = (token, host, false);
                    watch.let_go();
                    deadline.as_mut().reset(Instant::now() + BACKGROUND);
                }
                () = async { if let Some(exit) = &exit { exit.wanted().await } }, if exit.is_some() => {
                    if let Some((token, host)) = exit.take().and_then(|exit| exit.leave(context, &mut sink, None)) {
                        (cancel, reach.host, waited) = (token, host, false);
                        watch.let_go();
                        deadline.as_mut().reset(Instant::now() + BACKGROUND);
                    }
                }
                () = reach.next() => {}
                verdict = watch.answer(), if watch.asks() => match verdict {
                    Verdict::Unrecorded(_) => process.unrecorded(),
                    Verdict::Stopped(path) => break End::Full(path),
                },
                happening = process.next() => match happening {
                    Ok(Happening::Ended(status)) => break End::Exited(Ok(status)),
                    Ok(Happening::Effect(effect)) => watch.take(effect),
                    Ok(Happening::Full(path)) => watch.ask(path),
                    Err(error) => break End::Exited(Err(error)),
                },
                ready = place.readable(), if place_open => {
                    place_open = ready.is_ok() && last_place.read(&place, pipe::Receiver::try_read);
                }
                ready = output.readable(), if open => {
                    open = ready.is_ok() && sink.read(&output, pipe::Receiver::try_read, &mut buffer).is_some();
                    if let Some(fault) = sink.fault() {
                        break End::Unkept(fault.to_owned());
                    }
                }
                () = tokio::time::sleep_until(sink.due), if sink.waiting() => sink.send(),
            }
        }
    };
    notes.extend(denials::put_back(&process.finish().await));
    // What was written before the end is still in the pipes.
    last_place.read(&place, left);
    sink.drain(&output, &mut buffer);
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (mut text, silent) = sink.finish(settings);
    let guarded = std::mem::take(&mut watch.guarded);
    let (changed, told) = watch.finish(&text).await;
    notes.extend(told);
    // Later calls start where the one before them ended: nobody knows when this one does.
    let place = last_place.value().filter(|_| waited);
    let effect = place.and_then(|place| moved(place, &context.dirs, &mut notes));

    let before = notes.len();
    let (outcome, code) = match &end {
        End::Exited(Ok(status)) => match (status.code(), signal_of(*status)) {
            (Some(0), _) => (Outcome::Ok, Some(0)),
            (Some(code), _) => {
                notes.push(format!("Exit code {code}"));
                let refused = REFUSALS.iter().any(|words| text.contains(words));
                if refused && context.permit.policy().is_some_and(|policy| policy.writes.is_empty()) {
                    notes.push(CONFINED.to_owned());
                }
                (Outcome::Error, Some(code))
            }
            (None, signal) => {
                notes.push(format!("Killed by signal {}", signal.unwrap_or_default()));
                (Outcome::Error, None)
            }
        },
        End::Exited(Err(error)) => {
            notes.push(format!("Its exit status is unknown: {error}"));
            (Outcome::Error, None)
        }
        End::TimedOut(_) if !waited => {
            notes.push(format!("Stopped at its time limit, after {}", duration(started.elapsed())));
            (Outcome::Error, None)
        }
        End::Unkept(why) => {
            notes.push(format!("Stopped because {why}"));
            (Outcome::Error, None)
        }
        End::TimedOut(after) => {
            notes.push(format!(
                "Timed out after {} s and was killed with everything it started. Set a longer timeout (at most {} ms) if it needs more time.",
                after.as_secs_f64(),
                settings.bash_max_timeout_ms
            ));
            (Outcome::Error, None)
        }
        End::Full(path) => {
            notes.push(format!("Stopped: {}", full(path)));
            (Outcome::Error, None)
        }
        End::Interrupted if !waited => {
            notes.push("Stopped with everything it started".into());
            (Outcome::Interrupted, None)
        }
        End::Interrupted => {
            notes.push("Interrupted by the user; everything it started was killed".into());
            (Outcome::Interrupted, None)
        }
    };
    let why = notes.get(before).filter(|_| code.is_none() && outcome == Outcome::Error).cloned();
    let mut denied: Vec<Denial> = reach.denied.iter().map(denials::connection).collect();
    denied.extend(guarded.iter().map(denials::guarded));
    if outcome == Outcome::Error && !reach.policy.is_free() && !reach.policy.writes.is_empty() {
        denied.extend(denials::files(&text, start_in, &reach.policy));
    }
    notes.extend(denials::notes(&denied));
    sink.note(&notes);
    if silent && notes.is_empty() {
        text.push_str("(no output)");
    }
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    let display = Some(Display::Command { code, millis });
    let rules: Vec<String> = denied.into_iter().filter_map(|denial| denial.rule).collect();
    let denied = (!rules.is_empty()).then(|| After::Denied { command: input.command.clone(), rules });
    let after = denied.into_iter().chain(changed.map(After::Changed));
    let (effects, after) = (effect.into_iter().collect(), after.collect());
    let status = match outcome {
        Outcome::Ok => Status::Completed,
        Outcome::Error => Status::Failed,
        Outcome::Interrupted | Outcome::Denied => Status::Stopped,
    };
    let output = Output { outcome, display, effects, after, ..Output::ok(text) };
    Ok(Done { output, status, code, why, millis })
}

/// Why a command was stopped, and what to do.
fn full(path: &Path) -> String {
    format!(
        "the disk is full, so what it would change in {} could not be saved for undo. Free some space, or set undo.commands to false",
        path.display()
    )
}

/// Starts the shell. Both its outputs share one pipe, so that they stay in order; the other pipe is for where it is.
async fn start(
    line: &str,
    cwd: &Path,
    context: &Context,
    (policy, variables): (&Policy, &[(String, String)]),
) -> io::Result<(Process, pipe::Receiver, pipe::Receiver)> {
    let settings = &*context.settings;
    let (output, writer) = io::pipe()?;
    let (place, place_writer) = io::pipe()?;
    let fd: RawFd = place_writer.as_raw_fd();
    let mut command: Command = command_without("bash", &settings.secret_env);
    let own = settings.env.iter().filter(|(name, _)| !settings.secret_env.contains(name));
    command
        .envs(own)
        .envs(variables.iter().cloned())
        .args(["--norc", "--noprofile", "-c", PRELUDE, "bash", &fd.to_string(), line])
        .current_dir(cwd)
        .env("PWD", cwd)
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .env("PAGER", "cat")
        .env("GIT_PAGER", "cat")
        .env("GIT_EDITOR", "true")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("BASH_ENV")
        .env_remove("CDPATH");
    let streams = Streams {
        stdin: None,
        stdout: writer.try_clone()?.into(),
        stderr: writer.into(),
        kept: Some(place_writer.into()),
    };
    let process = context.sandbox.spawn(&command, streams, policy).await?;
    let receiver = |reader: PipeReader| pipe::Receiver::from_owned_fd(OwnedFd::from(reader));
    Ok((process, receiver(output)?, receiver(place)?))
}

/// The working directory of later calls, if it changed. One outside the workspace is not kept.
fn moved(place: PathBuf, dirs: &Dirs, notes: &mut Vec<String>) -> Option<Effect> {
    let inside = |place: &Path| {
        let real = place.canonicalize().ok()?;
        let folders = std::iter::once(&dirs.project).chain(&dirs.added);
        let mut folders = folders.filter_map(|folder| folder.canonicalize().ok());
        folders.any(|folder| real.starts_with(folder)).then_some(())
    };
    let path = if place.is_absolute() && place.is_dir() && inside(&place).is_some() {
        place
    } else {
        notes.push(format!(
            "The shell ended in {}, which is {}; the working directory is {} again",
            crate::stdx::ansi::visible(&place.display().to_string()),
            if place.is_dir() { "outside the workspace" } else { "gone" },
            dirs.project.display()
        ));
        dirs.project.clone()
    };
    (path != dirs.cwd).then_some(Effect::Cwd { path })
}

fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stdx::hash::sha256_hex;
    use crate::tools::fixture::Fixture;

    async fn check(command: &str, outcome: Outcome, want: &str) {
        let mut fixture = Fixture::new();
        let output = fixture.run(&Bash, json!({"command": command})).await;
        assert_eq!((output.outcome, fixture.text(&output).as_str()), (outcome, want), "{command}");
    }

    #[tokio::test]
    async fn settings_add_variables_but_no_secrets() {
        check("echo \"${FROM_SETTINGS:-none} ${SECRET_KEY:-none}\"", Outcome::Ok, "set none\n").await;
    }

    #[tokio::test]
    async fn output_and_exit() {
        check("echo one; echo two >&2; echo three", Outcome::Ok, "one\ntwo\nthree\n").await;
        check("true", Outcome::Ok, "(no output)").await;
        check("echo gone; exit 3", Outcome::Error, "gone\n[Exit code 3]").await;
        check("printf partial; false", Outcome::Error, "partial\n[Exit code 1]").await;
        check("kill -9 $$", Outcome::Error, "[Killed by signal 9]").await;
        check("cat; echo $#", Outcome::Ok, "0\n").await;
        check("echo \"$0 $PAGER $TERM\"; type -t cd", Outcome::Ok, "bash cat dumb\nfunction\n").await;
        check("printf '\\033[31mred\\033[0m\\n10%%\\r99%%\\n\\033]0;title\\007.'", Outcome::Ok, "red\n99%\n.").await;
        check("printf 'caf\\xe9\\n'", Outcome::Ok, "caf\u{fffd}\n").await;
        check("echo (", Outcome::Error, "bash: eval: line 1: syntax error near unexpected token `newline'\nbash: eval: line 1: `echo ('\n[Exit code 2]").await;
        check("set -eux; cd /tmp/.. 2>/dev/null; cd - >/dev/null", Outcome::Ok, "++ cd /tmp/..\n++ cd -\n").await;
        check("(exit 4)", Outcome::Error, "[Exit code 4]").await;
        check(
            "set -e; cd nowhere; echo no",
            Outcome::Error,
            "environment: line 1: cd: nowhere: No such file or directory\n[Exit code 1]",
        )
        .await;
        check("sleep 1000 & disown; echo done", Outcome::Ok, "done\n").await;
        check(
            "read -t 5 x || echo 'no input'; test -t 0 || echo 'no terminal'",
            Outcome::Ok,
            "no input\nno terminal\n",
        )
        .await;
    }

    #[tokio::test]
    async fn the_folder_carries_over() {
        for line in [
            "cd sub",
            "cd sub; exit 0",
            "set -e; cd sub; true",
            "trap 'true' EXIT; cd sub",
            "cd sub; exec true",
            "cd sub && (cd / && true)",
            "pushd sub",
            "set -u; cd sub; unset nothing",
            "builtin cd sub",
            "cd sub; cd / & wait",
            "for n in $(seq 3000); do cd sub; cd ..; done; cd sub",
        ] {
            let mut fixture = Fixture::new();
            fixture.file("sub/file", "");
            fixture.run(&Bash, json!({"command": line})).await;
            assert_eq!(fixture.dirs.cwd, fixture.root.join("sub"), "{line}");
            assert_eq!(fixture.ok(&Bash, json!({"command": "pwd"})).await, "ROOT/sub\n");
            // A failing command moves, too.
            fixture.run(&Bash, json!({"command": "cd ..; false"})).await;
            assert_eq!(fixture.dirs.cwd, fixture.root, "{line}");
        }
    }

    #[tokio::test]
    async fn the_folder_stays_in_the_workspace() {
        let mut fixture = Fixture::new();
        fixture.file("sub/file", "");
        std::os::unix::fs::symlink("/", fixture.root.join("link")).unwrap();
        fixture.run(&Bash, json!({"command": "cd sub"})).await;
        let got = fixture.ok(&Bash, json!({"command": "cd /usr"})).await;
        assert_eq!(
            got,
            "[The shell ended in /usr, which is outside the workspace; the working directory is ROOT again]"
        );
        assert_eq!(fixture.dirs.cwd, fixture.root);
        fixture.ok(&Bash, json!({"command": "cd link"})).await;
        assert_eq!(fixture.dirs.cwd, fixture.root);
        fixture.dirs.added.push("/usr".into());
        fixture.ok(&Bash, json!({"command": "cd /usr/bin"})).await;
        assert_eq!(fixture.dirs.cwd, Path::new("/usr/bin"));
        fixture.dirs.cwd = fixture.root.join("sub");
        let got = fixture.ok(&Bash, json!({"command": "rm -r ../sub"})).await;
        assert_eq!(got, "[The shell ended in ROOT/sub, which is gone; the working directory is ROOT again]");
        fixture.dirs.cwd = fixture.root.join("sub");
        let got = fixture.ok(&Bash, json!({"command": "pwd"})).await;
        assert_eq!(got, "ROOT\n[The working directory ROOT/sub no longer exists; the command ran in ROOT.]");
    }

    #[tokio::test]
    async fn long_output_is_saved_and_cut() {
        let mut fixture = Fixture::new();
        let output = fixture.run(&Bash, json!({"command": "yes 0123456789abcde | head -c 67108864"})).await;
        let text = fixture.text(&output);
        assert!(text.len() < 51_200 && text.starts_with("0123") && text.ends_with("abcde\n"), "{}", text.len());
        let limited = super::super::limit::apply(output.clone(), &fixture.settings, &fixture.store, "other");
        assert_eq!(limited, output);
        let saved = fixture.store.dir().join("tool-results/call_1.txt");
        assert_eq!(std::fs::metadata(&saved).unwrap().len(), 67_108_864);
        assert!(text.contains(&sha256_hex(&std::fs::read(saved).unwrap())));
        assert!(fixture.live.len() < 4_000_000, "{}", fixture.live.len());
    }

    #[tokio::test]
    async fn an_endless_command_is_stopped_with_what_it_said() {
        let mut fixture = Fixture::new();
        let command = "trap '' TERM; echo $$; setsid sleep 1000 & while :; do sleep 1; done";
        let output = fixture.run(&Bash, json!({"command": command, "timeout": 1500})).await;
        let text = fixture.text(&output);
        assert!(text.contains("[Timed out after 1.5 s and was killed with everything it started."), "{text}");
        let pid = text.lines().next().unwrap();
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is gone");
        assert_eq!(fixture.live, format!("{pid}\n"));
        assert!(matches!(output.display, Some(Display::Command { code: None, millis: 1500.. })));
    }

    #[tokio::test]
    async fn an_interrupt_keeps_the_output() {
        let mut fixture = Fixture::new();
        let cancel = fixture.cancel.clone();
        let marker = fixture.root.join("started");
        let wait = tokio::task::spawn_blocking(move || {
            while !marker.exists() {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        let output = fixture.run(&Bash, json!({"command": "echo begun; touch started; sleep 1000"})).await;
        wait.await.unwrap();
        let want = "begun\n[Interrupted by the user; everything it started was killed]";
        assert_eq!((output.outcome, fixture.text(&output).as_str()), (Outcome::Interrupted, want));
    }

    #[test]
    fn refusals() {
        let fixture = Fixture::new();
        let long = "x".repeat(COMMAND + 1);
        for (command, want) in [("  ", "is empty"), ("a\0b", "NUL"), (long.as_str(), "Write a script file")] {
            let got = fixture.call(&Bash, json!({"command": command})).unwrap_err();
            assert!(got.contains(want), "{got}");
        }
    }
}
