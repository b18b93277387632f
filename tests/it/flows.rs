//! Flows of a first day, on the binary: what was given on the command line, and what the last screen says.

use super::support::program::Program;
use super::terminal::{answer, begin, launch, leave, scripted};

const READY: &str = "Ask anything";
const UP: &str = "\x1b[A";

#[test]
fn words_that_find_no_session_end_with_an_error() {
    let program = Program::new();
    let mut screen = begin(&program, (80, 24), &["--offline", "--resume", "nothing-like-it"]);
    screen.wait_text("no session matches");
    assert_eq!(screen.wait_exit().exit_code(), 1);
}

#[test]
fn the_last_screen_is_a_receipt_and_undo_takes_everything_back() {
    let yaml = "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]
- reply: [tool: {name: Bash, input: {command: ls}}]
- reply: [text: Done.]
";
    let program = Program::new().file("a.txt", "one\n");
    let mut screen = scripted(&program, (80, 24), yaml);
    screen.send("make it two\r");
    answer(&screen, "wants to change a.txt", "1");
    screen.wait_text("Done.");
    screen.wait_text(READY);
    leave(&mut screen);
    let text = screen.text();
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).map(str::to_owned).unwrap_or_default();
    let done = line("Session ");
    assert!(
        done.starts_with(r#"Session "make it two": 1 prompt · 1 file changed (+1 −1) · 1 command · "#)
            && done.ends_with(" tokens"),
        "{text}"
    );
    let next = line("resume: cocode -c     undo all: cocode undo ");
    let id = next.rsplit(' ').next().unwrap();
    assert_eq!(id.len(), 8, "{text}");
    let undone = program.run(&["undo", id]);
    assert_eq!(
        (undone.code, std::fs::read_to_string(program.project().join("a.txt")).unwrap().as_str()),
        (Some(0), "one\n")
    );
    assert!(undone.out.contains("restored ") && undone.out.contains("a.txt"), "{}", undone.out);
    let again = program.run(&["undo", id]);
    assert!(again.code == Some(1) && again.err.contains("nothing to undo"), "{}", again.err);
}

#[test]
fn nothing_was_done_nothing_is_told() {
    let program = Program::new();
    let mut screen = launch(&program, (80, 24), &["--offline"]);
    screen.wait_text(READY);
    leave(&mut screen);
    assert!(!screen.text().contains("resume:"), "{}", screen.text());
}

#[test]
fn a_command_behind_the_name_is_a_command() {
    for (line, shown) in [
        ("/cost", "No request to a model has finished yet."),
        ("!echo hello from here", "└ hello from here"),
        ("/nosuch", "unknown command /nosuch"),
    ] {
        let program = Program::new();
        let mut screen = launch(&program, (80, 24), &["--offline", line]);
        screen.wait_text(shown);
        screen.send("\x15");
        screen.wait_text(READY);
        leave(&mut screen);
    }
}

#[test]
fn words_that_several_sessions_have_open_the_list_of_them() {
    let program = Program::new();
    for prompt in ["alpha one", "alpha two", "beta"] {
        let script = program.script("one.yaml", "- reply: [text: Ok.]\n");
        assert_eq!(program.run(&["-p", prompt, "--offline-script", &script]).code, Some(0));
    }
    let mut screen = launch(&program, (80, 24), &["--offline", "-r", "alpha"]);
    screen.wait_text("Resume which session?");
    screen.wait_text("alpha two");
    assert!(screen.text().contains("alpha one") && !screen.text().contains("beta"), "{}", screen.text());
    screen.send("\x1b");
    screen.wait_text(READY);
    leave(&mut screen);
}

#[test]
fn a_paste_stays_folded_where_it_was_sent_and_when_it_comes_back() {
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), "- reply: [text: Read it.]\n");
    let lines: String = (1..=30).map(|n| format!("pasted {n}\n")).collect();
    screen.send(format!("\x1b[200~{lines}\x1b[201~"));
    screen.wait_text("[Pasted 30 lines]");
    screen.send(" what is it?\r");
    screen.wait_text("Read it.");
    screen.wait_text("> [Pasted 30 lines] what is it?");
    assert!(!screen.text().contains("pasted 2"), "{}", screen.text());
    screen.wait_text(READY);
    screen.send(UP);
    screen.wait_for("the prompt comes back", |text| text.matches("[Pasted 30 lines] what is it?").count() == 2);
    screen.send("\x15");
    screen.wait_text(READY);
    leave(&mut screen);
}

#[test]
fn pastes_and_pictures_come_back_after_a_restart() {
    let program = Program::new();
    let one = "- reply: [text: Seen.]\n";
    let mut screen = scripted(&program, (80, 24), one);
    let lines: String = (1..=30).map(|n| format!("pasted {n}\n")).collect();
    let shot = program.project().join("shot.png");
    image::RgbImage::new(2, 2).save(&shot).unwrap();
    for text in [lines.as_str(), shot.to_str().unwrap()] {
        screen.send(format!("\x1b[200~{text}\x1b[201~"));
    }
    screen.wait_text("[Image 1: shot.png, 82 B]");
    screen.send("what is it?\r");
    screen.wait_text("Seen.");
    screen.wait_text(READY);
    leave(&mut screen);
    // Its own file may go.
    std::fs::remove_file(&shot).unwrap();

    let mut screen = launch(&program, (80, 24), &["--offline-script", &program.script("two.yaml", one), "-c"]);
    let both = "[Pasted 30 lines][Image 1: shot.png, 82 B] what is it?";
    screen.wait_for("the resumed prompt is folded", |text| text.contains(both) && text.contains(READY));
    screen.send("\x12");
    screen.wait_text("search:");
    screen.send("what");
    screen.wait_for("the match is folded", |text| text.matches(both).count() == 2);
    screen.send("\x1b");
    screen.wait_text(READY);
    screen.send(UP);
    screen.wait_for("the prompt comes back", |text| text.matches(both).count() == 2);
    // What is only a draft survives as well.
    let pid = rustix::process::Pid::from_raw(screen.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(screen.wait_exit().exit_code(), 143);
    let mut screen = launch(&program, (80, 24), &["--offline-script", &program.script("three.yaml", one)]);
    screen.wait_text(both);
    screen.wait_text("was left unsent when cocode last ended here");
    screen.send("\r");
    screen.wait_text("Seen.");
    screen.wait_text(both);
    assert!(!screen.text().contains("not attached"), "{}", screen.text());
    screen.wait_text(READY);
    leave(&mut screen);
}

#[test]
fn a_status_line_of_the_project_runs_once_it_is_trusted() {
    let settings = r#"{"statusLine": {"type": "command", "command": "cat > told.json; echo line of the project"}}"#;
    for (key, runs) in [("1", true), ("2", false)] {
        let program = Program::new().file(".claude/settings.json", settings);
        let mut screen = scripted(&program, (80, 24), "- reply: [text: Hello.]\n");
        screen.wait_text("Do you trust this folder?");
        screen.wait_text("status_line.command");
        answer(&screen, "1. Yes", key);
        screen.wait_text(READY);
        screen.send("hi\r");
        screen.wait_text("Hello.");
        let told = program.project().join("told.json");
        if runs {
            screen.wait_text("line of the project");
            let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
            assert_eq!(told["effort"]["level"], "low");
            assert!(told["cost"]["total_api_duration_ms"].is_u64(), "{told}");
        }
        leave(&mut screen);
        assert_eq!(told.exists(), runs);
    }
}

#[test]
fn a_commit_shows_what_came_of_it_and_not_how() {
    let program = Program::new().file("notes.md", "one\n");
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").current_dir(program.project()).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["config", "user.name", "Ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Begin"]);
    std::fs::write(program.project().join("notes.md"), "one\ntwo\n").unwrap();
    git(&["add", "."]);
    let screen = launch(&program, (80, 30), &["--offline"]);
    screen.wait_text(READY);
    screen.send("/commit");
    // The skills are read beside the start.
    screen.wait_for("the skill in the list", |text| text.lines().any(|row| row.starts_with("› /commit")));
    screen.send("\r");
    screen.wait_text("Committed:");
    screen.wait_for("the end", |text| !text.contains("to interrupt"));
    let text = screen.text();
    let (_, shown) = text.split_once("> /commit\n").expect("the prompt shows");
    let rows: Vec<&str> = shown.lines().take_while(|row| !row.starts_with('─')).filter(|row| !row.is_empty()).collect();
    let committed =
        |row: &&&str| row.starts_with("● Committed ") && row.ends_with("\"Update notes.md\"  1 file, +1 −0");
    assert_eq!(rows.iter().filter(committed).count(), 1, "{text}");
    assert!(rows.len() <= 12 && !shown.contains("git status") && !shown.contains("git diff"), "{text}");
}
