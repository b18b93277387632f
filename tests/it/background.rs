//! Commands in the background: started, stopped, and how each ended told to the model exactly once.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use cocode::agent::Presence;
use cocode::permission::Mode;
use cocode::protocol::{Answer, Op, RewindWhat};
use serde_json::json;

use super::support::harness::{Harness, Ran};
use super::support::program::{Program, end};

/// A step of a script in which the model starts a command and does not wait for it.
pub(super) fn starts(command: &str) -> String {
    let input = json!({"command": command, "run_in_background": true, "description": "the run"});
    format!("- reply: [tool: {{ name: Bash, input: {input} }}]\n")
}

pub(super) fn calls(tool: &str, input: serde_json::Value) -> String {
    format!("- reply: [tool: {{ name: {tool}, input: {input} }}]\n")
}

pub(super) fn says(text: &str) -> String {
    format!("- reply: [text: {text}]\n")
}

/// The lines of a trace that begin so; the session's folder is `$S`, times are left out.
pub(super) fn lines(ran: &Ran, starts: &[&str]) -> String {
    let folder = ran.log().parent().unwrap().display().to_string();
    let trace = ran.trace().replace(&folder, "$S");
    let rows = trace.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    let times = regex::Regex::new(r" after (\d+ [hms] ?)+").unwrap();
    rows.map(|row| times.replace_all(row, " after a while").into_owned()).collect::<Vec<_>>().join("\n")
}

pub(super) const TOLD: [&str; 5] = ["prompt", "toolresult", NOTICE, "item", "turn"];
pub(super) const NOTICE: &str = "attachment <system-reminder>⏎Background";
pub(super) const ENDED: &str = "item {\"type\":\"note\",\"text\":\"Background";

pub(super) fn harness(script: &str) -> Harness {
    Harness::new().mode(Mode::Bypass).env("COCODE_SANDBOXED", "1").script(script)
}

/// A command that ends once there is such a file.
pub(super) fn until(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.01; done")
}

#[tokio::test]
async fn an_end_is_told_by_the_next_request() {
    let script = starts("echo one; exit 3") + &calls("Bash", json!({"command": until("seen")})) + &says("Done.");
    let ran = harness(&script).touch_at(ENDED, "seen").prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        item {"type":"note","text":"Background command b1 (the run) failed (exit code 3) after a while"}
        toolresult Ok: (no output)
        attachment <system-reminder>⏎Background command b1 (the run) failed (exit code 3) after a while. Its output, also in $S/tasks/b1.output:⏎one⏎[Exit code 3]⏎</system-reminder>
        turn ended Done
        "#);
    let output = ran.log().parent().unwrap().join("tasks/b1.output");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "one\n[Exit code 3]\n");
    assert_eq!(std::fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn an_idle_session_is_woken_and_a_script_is_not() {
    let script = starts(&until("go")) + &says("It runs.") + "- repeat: 9\n  reply: [text: It ended.]\n";
    let run = |presence| {
        let script = script.clone();
        async move {
            let (harness, ended) = match presence {
                Presence::Attended => (harness(&script), NOTICE),
                Presence::Unattended => (harness(&script).unattended(), ENDED),
            };
            harness.touch_at("turn ended", "go").prompt("go").wait_for(ended).prompt("more").run().await
        }
    };
    insta::assert_snapshot!(lines(&run(Presence::Attended).await, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        turn started
        prompt more
        turn ended Done
        "#);
    insta::assert_snapshot!(lines(&run(Presence::Unattended).await, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        prompt more
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        "#);
}

#[tokio::test]
async fn a_command_is_stopped_by_any_of_the_names() {
    let script = starts(&until("never"))
        + &starts("echo written; sleep 1000")
        + &calls("TaskStop", json!({"task_id": "b9"}))
        + &calls("KillShell", json!({"shell_id": "b1"}))
        + &calls("TaskStop", json!({"task_id": "b1"}))
        + &calls("Bash", json!({"command": "until grep -q written ../.claude/*/tasks/b2.output; do sleep 0.01; done"}))
        + &calls("BashOutput", json!({"bash_id": "b2"}))
        + &calls("TaskOutput", json!({"task_id": "b2", "block": true, "timeout": 1}))
        + &calls("KillBash", json!({"shell_id": "b2"}))
        + &calls("TaskOutput", json!({"task_id": "b2"}))
        + &calls("TaskStop", json!({}))
        + &says("Done.");
    let ran = harness(&script).prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        toolresult Ok: Running in the background as b2. Output goes to $S/tasks/b2.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        toolresult Error: Nothing called "b9" in the background. Running: b1 (the run), b2 (the run).
        item {"type":"note","text":"Background command b1 (the run) was stopped after a while"}
        toolresult Ok: Stopped b1 (the run). Its output is in $S/tasks/b1.output.
        toolresult Error: It has already ended. Background command b1 (the run) was stopped after a while. Its output is in $S/tasks/b1.output.
        toolresult Ok: (no output)
        toolresult Ok: Background command b2 (the run) is still running. Its output ($S/tasks/b2.output):⏎written⏎
        toolresult Ok: Background command b2 (the run) is still running. Its output ($S/tasks/b2.output):⏎written⏎
        item {"type":"note","text":"Background command b2 (the run) was stopped after a while"}
        toolresult Ok: Stopped b2 (the run). Its output is in $S/tasks/b2.output.
        toolresult Ok: Background command b2 (the run) was stopped after a while. Its output ($S/tasks/b2.output):⏎written⏎[Stopped with everything it started]⏎
        toolresult Error: Parameter `task_id` is missing. Nothing runs in the background.
        turn ended Done
        "#);
}

#[tokio::test]
async fn who_asks_about_a_command_asks_about_one_in_the_background() {
    let script = starts("touch a.txt; touch seen") + &starts("touch b.txt") + &says("Done.");
    let ran = harness(&script).mode(Mode::Default).answer(Answer::Yes).prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &["ask", "toolresult"]), @r#"
        ask Bash touch a.txt; touch seen ["Bash(touch a.txt)", "Bash(touch seen)"]
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        ask Bash touch b.txt ["Bash(touch b.txt)"]
        toolresult Denied: The user denied this call and stopped the turn. Wait for their next message.
        "#);
    assert!(!ran.project().join("b.txt").exists());
}

#[tokio::test]
async fn undo_reaches_what_one_changed() {
    let script = starts("echo changed > a.txt")
        + &calls("TaskOutput", json!({"task_id": "b1"}))
        + &starts("ls")
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script).file("a.txt", "old\n").prompt("go").prompt("/undo").run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "notice", RESTORED]), @r#"
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        toolresult Ok: Background command b1 (the run) completed (exit code 0) after a while. Its output ($S/tasks/b1.output):⏎[changed a.txt]⏎
        toolresult Ok: Running in the background as b3. Output goes to $S/tasks/b3.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        item {"type":"files_restored","how":"undo","turn":"go","restored":["$P/a.txt"],"refused":[],"by":[{"path":"$P/a.txt","by":[{"command":"echo changed > a.txt"}]}],"unseen":[]}
        "#);
    assert_eq!(ran.read("a.txt"), "old\n");
}

const RESTORED: &str = "item {\"type\":\"files_restored\"";

/// It belongs to the turn that started it, however many come before its end.
#[tokio::test]
async fn the_end_of_one_leaves_what_can_be_redone() {
    let script = starts(&format!("{}; echo x > c.txt", until("go")))
        + &says("It runs.")
        + &calls("Bash", json!({"command": "echo new > b.txt"}))
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let harness = harness(&script).file("b.txt", "old\n").touch_at(RESTORED, "go");
    let ran = harness.prompt("go").prompt("edit").prompt("/undo").wait_for(NOTICE).prompt("/redo").run().await;
    assert_eq!((ran.read("b.txt"), ran.read("c.txt")), ("new\n".into(), "x\n".into()), "{}", ran.trace());
}

#[tokio::test]
async fn undo_says_that_one_still_runs() {
    let command = format!("echo changed > a.txt; touch seen; {}; echo again > a.txt", until("go"));
    let script = starts(&command) + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script)
        .file("a.txt", "old\n")
        .touch_at("notice Nothing to undo", "go")
        .prompt("start it")
        .prompt(&format!("!{}", until("seen")))
        .prompt("more")
        .prompt("/undo")
        .wait_for(NOTICE)
        .prompt("/undo")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["notice", RESTORED]), @r#"
        notice Nothing to undo.⏎not undone: changes made by echo changed > a.txt; touch seen; until [ -e go ];… (still running in the background: undo again once it has ended)
        item {"type":"files_restored","how":"undo","turn":"start it","restored":["$P/a.txt","$P/seen"],"refused":[],"by":[{"path":"$P/a.txt","by":[{"command":"echo changed > a.txt; touch seen; until [ -e go ];…"}]},{"path":"$P/seen","by":[{"command":"echo changed > a.txt; touch seen; until [ -e go ];…"}]}],"unseen":[]}
        "#);
    assert_eq!(ran.read("a.txt"), "old\n");
    assert!(!ran.project().join("seen").exists());
}

#[tokio::test]
async fn going_back_takes_along_what_it_changed() {
    let script = starts(&format!("echo changed > a.txt; touch seen; {}", until("never")))
        + &calls("Bash", json!({"command": until("seen")}))
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script).file("a.txt", "old\n").prompt("first").prompt("go").run().await;
    let to = ran.session().prompts().unwrap()[0].seq;
    let ran = Harness::after(ran)
        .mode(Mode::Bypass)
        .env("COCODE_SANDBOXED", "1")
        .script(&script)
        .prompt("again")
        .at("turn ended", Op::Rewind { to, what: RewindWhat::Both })
        .wait_for(ENDED)
        .prompt("/undo")
        .run()
        .await;
    assert_eq!(ran.read("a.txt"), "old\n", "{}", ran.trace());
    assert!(!ran.project().join("seen").exists(), "{}", ran.trace());
}

#[tokio::test]
async fn going_back_to_before_a_command_ends_it() {
    let script = starts(&until("never")) + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script).prompt("go").run().await;
    let to = ran.session().prompts().unwrap()[0].seq;
    // The end of the first session ended it; the second one starts another.
    let ran = Harness::after(ran)
        .mode(Mode::Bypass)
        .env("COCODE_SANDBOXED", "1")
        .script(&(starts(&until("never")) + "- repeat: 9\n  reply: [text: Done.]\n"))
        .prompt("again")
        .at("turn ended", Op::Rewind { to, what: RewindWhat::Conversation })
        .wait_for(ENDED)
        .prompt("more")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r#"
        turn started
        prompt again
        attachment <system-reminder>⏎Background command b1 (the run) was stopped (the session ended) after a while. Its output, also in $S/tasks/b1.output:⏎[Stopped with everything it started]⏎</system-reminder>
        toolresult Ok: Running in the background as b2. Output goes to $S/tasks/b2.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        turn ended Done
        item {"type":"note","text":"Background command b2 (the run) was stopped (the conversation went back to before it) after a while"}
        item {"type":"rewound","to":6,"prompt":"go"}
        turn started
        prompt more
        turn ended Done
        "#);
}

#[tokio::test]
async fn the_user_lists_what_runs_and_stops_it() {
    let written = "until grep -q two ../.claude/*/tasks/b1.output; do sleep 0.01; done";
    let script = starts(&format!("printf 'one\\n\\033[31mtwo\\n'; {}", until("never")))
        + &calls("Bash", json!({"command": written}))
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script)
        .prompt("go")
        .prompt("/tasks")
        .prompt("/tasks stop b1")
        .wait_for(ENDED)
        .prompt("/tasks")
        .prompt("!rm ../.claude/*/tasks/b1.output")
        .prompt("/tasks")
        .run()
        .await;
    let trace = lines(&ran, &["notice", "item", "error"]);
    let want = [
        "1 running, 0 ended",
        "**b1** has been running for ",
        "`/tasks stop b1` stops it",
        "was stopped (by the user)",
    ];
    let want = want.into_iter().chain([
        "0 running, 1 ended",
        "**b1** was stopped (by the user) after ",
        "one⏎two",
        "Its output cannot be read: ",
    ]);
    let mut rest = trace.as_str();
    for words in want {
        let at = rest.find(words).unwrap_or_else(|| panic!("{words}: {trace}"));
        rest = &rest[at..];
    }
}

#[tokio::test]
async fn the_user_stops_one_while_the_agent_works() {
    let script = starts(&until("never"))
        + &calls("Bash", json!({"command": format!("echo begun; {}", until("go"))}))
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let stop = |task: &str| Op::Command { name: "tasks".into(), args: format!("stop {task}") };
    // The turn ends when the command has.
    let ran = harness(&script)
        .at("output begun", stop("b7"))
        .at("error Nothing called b7", stop("b1"))
        .touch_at(ENDED, "go")
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["error", "item", NOTICE, "turn"]), @r#"
        turn started
        error Nothing called b7 is running. `/tasks` lists what is. restore=Some("/tasks stop b7")
        item {"type":"note","text":"Background command b1 (the run) was stopped (by the user) after a while"}
        attachment <system-reminder>⏎Background command b1 (the run) was stopped (by the user) after a while. Its output, also in $S/tasks/b1.output:⏎[Stopped with everything it started]⏎</system-reminder>
        turn ended Done
        "#);
}

#[tokio::test]
async fn a_command_of_a_sub_agent_ends_with_it() {
    let launch = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    let script = calls("Task", launch)
        + &starts(&until("never")).replace("- reply", "- for: agent:general-purpose\n  reply")
        + "- for: agent:general-purpose\n  reply: [text: It runs.]\n"
        + &says("Done.");
    let ran = harness(&script).prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: It runs.⏎⏎Stopped with the agent, since it had left them running: agent-a1-b1 (the run)⏎⏎[agent a1, general-purpose; `resume: "a1"` continues it]
        turn ended Done
        "#);
}

#[tokio::test]
async fn what_ended_with_its_session_is_told_when_that_continues() {
    let script = starts(&until("never")) + &says("It runs.");
    let ran = harness(&script).prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r#"
        turn started
        prompt go
        toolresult Ok: Running in the background as b1. Output goes to $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it.
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) was stopped (the session ended) after a while"}
        "#);
    let ran =
        Harness::after(ran).script("- repeat: 9\n  reply: [text: Seen.]\n").prompt("one").prompt("two").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD), @r"
        turn started
        prompt one
        attachment <system-reminder>⏎Background command b1 (the run) was stopped (the session ended) after a while. Its output, also in $S/tasks/b1.output:⏎[Stopped with everything it started]⏎</system-reminder>
        turn ended Done
        turn started
        prompt two
        turn ended Done
        ");
}

/// Kills; more of them in a run of its own, with another number here.
const POINTS: usize = 16;

/// Kills the program when it has written so many bytes, lets the session continue, and looks whether each task was told of
/// once.
pub(super) fn killed_at(bytes: usize, begin: impl Fn(&Program) -> Child, tasks: &[&str]) {
    let program = Program::new().env("COCODE_SANDBOXED", "1");
    let mut child = begin(&program);
    let mut seen = vec![0; bytes];
    let _ = child.stdout.take().unwrap().read_exact(&mut seen);
    child.kill().unwrap();
    child.wait().unwrap();
    let script = program.script("more.yaml", "- repeat: 9\n  reply: [text: Seen.]\n");
    for _ in 0..2 {
        program.run(&["--continue", "-p", "more", "--offline-script", &script]);
    }
    let logs = program.logs();
    let Some(log) = logs.first() else { return };
    let text = std::fs::read_to_string(log).unwrap();
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    for task in tasks {
        let begun = count(&format!(r#""kind":"task_begun","task":"{task}""#));
        let ended = count(&format!(r#""kind":"task_ended","task":"{task}""#));
        let told = count(&format!(r#""effects":[{{"type":"told","task":"{task}"}}]"#));
        assert!(
            begun <= 1 && (ended, told) == (begun, begun),
            "killed at {bytes}, {task}: {begun} {ended} {told}\n{text}"
        );
    }
}

fn begun(program: &Program, word: &str) -> Child {
    let script = starts("echo one")
        + &starts(&format!("sleep {word}"))
        + &starts("exit 3")
        + "- repeat: 9\n  reply: [text: All run.]\n";
    let script = program.script("go.yaml", &script);
    let args =
        ["-p", "go", "--dangerously-skip-permissions", "--output-format", "stream-json", "--offline-script", &script];
    program.command(Program::binary(), &args).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_kill_neither_loses_nor_repeats_an_end() {
    let word = format!("{}.{}", 6003, std::process::id());
    let whole = end(begun(&Program::new().env("COCODE_SANDBOXED", "1"), &word));
    assert_eq!(whole.code, Some(0), "{}", whole.out);
    let mut random = fastrand::Rng::with_seed(15);
    let points: Vec<usize> = (0..POINTS).map(|_| random.usize(1..whole.out.len())).collect();
    std::thread::scope(|scope| {
        for half in points.chunks(POINTS / 2) {
            scope.spawn(|| {
                half.iter().for_each(|bytes| killed_at(*bytes, |program| begun(program, &word), &["b1", "b2", "b3"]))
            });
        }
    });
    let left = Command::new("pgrep").args(["-f", &format!("^sleep {word}")]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

/// A step in which the model waits for a command so many milliseconds.
fn waits(command: &str, timeout: u64) -> String {
    calls("Bash", json!({"command": command, "timeout": timeout, "description": "the run"}))
}

const MOVED: &str = "toolresult Ok: The command did not finish";

#[tokio::test]
async fn a_command_moves_at_its_timeout_with_what_it_wrote() {
    let long = format!("seq 400000; cd sub; {}; echo over", until("../go"));
    let script = waits(&long, 400)
        + &calls("Bash", json!({"command": "pwd"}))
        + &waits("sleep 1000", 30)
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let ran = harness(&script).file("sub/x", "").touch_at("turn ended", "go").prompt("go").wait_for(NOTICE).run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "item", "turn"]), @r#"
        turn started
        toolresult Ok: The command did not finish within its timeout of 0.4 s, so it moved to the background as b1. All of its output is in $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it. A change of the working directory does not carry over.
        toolresult Ok: $P⏎
        toolresult Error: [Timed out after 0.03 s and was killed with everything it started. Set a longer timeout (at most 600000 ms) if it needs more time.]
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        turn ended Done
        "#);
    let output = std::fs::read_to_string(ran.log().parent().unwrap().join("tasks/b1.output")).unwrap();
    assert_eq!(output, (1..=400_000).map(|n| format!("{n}\n")).collect::<String>() + "over\n");
}

#[tokio::test]
async fn undo_reaches_what_moved() {
    let script = waits(&format!("echo changed > a.txt; {}; echo again > a.txt", until("go")), 400)
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let harness = harness(&script).file("a.txt", "old\n").touch_at(MOVED, "go");
    let ran = harness.prompt("go").wait_for(NOTICE).prompt("/undo").run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "notice", "item"]), @r#"
        toolresult Ok: The command did not finish within its timeout of 0.4 s, so it moved to the background as b1. All of its output is in $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it. A change of the working directory does not carry over.
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        item {"type":"files_restored","how":"undo","turn":"go","restored":["$P/a.txt"],"refused":[],"by":[{"path":"$P/a.txt","by":[{"command":"echo changed > a.txt; until [ -e go ]; do sleep 0.…"}]}],"unseen":[]}
        "#);
    assert_eq!(ran.read("a.txt"), "old\n");
}

#[tokio::test]
async fn the_user_moves_what_runs_whatever_it_is() {
    let script = waits(&format!("echo begun; {}; git --version >/dev/null", until("go")), 60_000)
        + "- repeat: 9\n  reply: [text: Done.]\n";
    let harness = harness(&script).at("output begun", Op::Background).touch_at("toolresult", "go");
    let ran = harness.prompt("go").wait_for(NOTICE).run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "item", NOTICE]), @r#"
        toolresult Ok: The user moved the command to the background as b1. All of its output is in $S/tasks/b1.output: use Read or Grep on it. You are told when the command ends, so do not wait for it or poll. TaskStop ends it. A change of the working directory does not carry over.
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. Its output, also in $S/tasks/b1.output:⏎begun⏎</system-reminder>
        "#);
}

#[test]
fn a_script_lets_commands_end_for_a_moment() {
    let program = Program::new().env("COCODE_SANDBOXED", "1");
    let script = starts("sleep 0.4; touch done") + "- repeat: 9\n  reply: [text: Done.]\n";
    let script = program.script("go.yaml", &script);
    let done = program.run(&["-p", "go", "--dangerously-skip-permissions", "--offline-script", &script]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Done.\n"), "{}", done.err);
    assert!(program.project().join("done").exists());
}
