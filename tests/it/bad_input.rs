//! Bad input to the whole program: each names its fix, exits with the right code and loses nothing.

use std::time::{Duration, Instant};

use cocode::provider::settings::WireName;

use super::support::fake_api::{FakeApi, Reply};
use super::support::program::{Done, Program};

/// The run has to end with this code and say all of this on standard error.
#[track_caller]
fn check(done: &Done, code: i32, told: &[&str]) {
    let missing: Vec<&&str> = told.iter().filter(|text| !done.err.contains(**text)).collect();
    assert!(done.code == Some(code) && missing.is_empty(), "wanted {code} and {missing:?}, got {done:#?}");
}

const OK: &str = "- repeat: 9\n  reply: [text: Fine.]\n";

/// A prompt to a server that answers so, over the anthropic wire, with one retry.
fn asked(replies: &[Reply], settings: &[(&str, &str)]) -> Done {
    let api = FakeApi::start(replies.iter().cloned());
    let mut program = Program::new().env("COCODE_NETWORK__MAX_RETRIES", "1");
    for (name, value) in api.env(WireName::Anthropic) {
        program = program.env(name, &value);
    }
    for (name, value) in settings {
        program = program.env(name, value);
    }
    program.run(&["-p", "hello", "--model", "anthropic/claude-none"])
}

#[test]
fn keys_and_servers() {
    let no_key = Program::new().run(&["-p", "hello", "--model", "anthropic/sonnet"]);
    check(
        &no_key,
        1,
        &["no key for provider anthropic", "ANTHROPIC_API_KEY", "into ~/.config/cocode/credentials.toml"],
    );
    let endpoint = asked(&[], &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/v1/messages")]);
    check(
        &endpoint,
        1,
        &["`providers.anthropic.base_url` ends in `/messages`, which cocode adds itself: leave it out"],
    );
    let refused = |status, kind: &str, text: &str| {
        let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{text}"}}}}"#);
        asked(&[Reply::raw(status, "application/json", &body)], &[])
    };
    let key = refused(401, "authentication_error", "invalid x-api-key");
    check(&key, 1, &["invalid x-api-key", "ANTHROPIC_API_KEY", "`--offline` needs no key"]);
    assert!(!key.err.contains("`/model"), "{}", key.err);
    check(&refused(404, "not_found_error", "model: claude-none"), 1, &["model: claude-none", "--model"]);
    let html = Reply::raw(200, "text/html", "<html><title>Log in to the hotel</title></html>");
    check(&asked(&[html.clone(), html], &[]), 1, &["does not speak the", "base_url"]);
    let silent = Reply::turn().text("Some words that come.").hang_after(700);
    let settings = [("COCODE_NETWORK__LOCAL_IDLE_TIMEOUT_S", "1")];
    check(&asked(&[silent.clone(), silent], &settings), 1, &["sent nothing for"]);
    let cut = Reply::turn().text("Some words that come.").cut_after(700);
    check(&asked(&[cut.clone(), cut], &[]), 1, &["attempt 1 of 2 failed"]);
    // What is cut once is asked again.
    let again = asked(&[Reply::turn().text("Some words.").cut_after(700), Reply::turn().text("All words.")], &[]);
    check(&again, 0, &["attempt 1 of 2 failed"]);
    assert_eq!(again.out, "All words.\n");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Program::new()
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", &format!("http://{closed}"))
        .run(&["-p", "hello"]);
    check(&nobody, 1, &["attempt 1 of 3", "no server is listening at http://127.0.0.1", "start it"]);
}

#[test]
fn settings_and_homes() {
    let program = Program::new();
    let script = program.script("ok.yaml", OK);
    let args = ["-p", "hello", "--offline-script", &script];
    let typo = "permisions = 1\nprobe_local = false\n";
    let done = Program::new().home_file(".config/cocode/config.toml", typo).run(&args);
    check(&done, 2, &["config.toml:1", "`permisions`", "did you mean `permissions`?"]);
    let done = Program::new().file(".cocode/config.toml", "modle = \"x\"\n").run(&args);
    check(&done, 0, &[".cocode/config.toml:1", "did you mean `model`? (ignored)"]);
    let done = Program::new().file(".cocode/config.toml", "permisions = 1\n").run(&args);
    check(&done, 2, &[".cocode/config.toml:1", "did you mean `permissions`?"]);
    let file = program.script("a-file", "");
    check(&Program::new().env("HOME", &file).run(&args), 1, &["is a file, not a folder", "COCODE_HOME"]);
    // For root every folder can be written, so a folder that no one can make takes its place.
    check(&Program::new().env("COCODE_HOME", "/proc/nowhere").run(&args), 1, &["/proc/nowhere", "COCODE_HOME"]);
    check(&Program::new().run(&["hello"]), 2, &["standard input is not a terminal", "cocode -p"]);
    check(&Program::new().run(&["-p"]), 2, &["no prompt"]);
    check(&Program::new().run(&["-p", "x", "--offline-script", "gone.yaml"]), 1, &["gone.yaml"]);
}

#[test]
fn a_log_that_cannot_grow_stops_the_turn() {
    let program = Program::new();
    let script = program.script(
        "long.yaml",
        "- repeat: 50\n  reply: [tool: {name: Read, input: {file_path: long.txt}}, tool: {name: LS, input: {path: .}}]\n",
    );
    let program = program.file("long.txt", &"a line of some length\n".repeat(600));
    // In blocks of 512 bytes or 1 KiB, as the shell has it: the log of some rounds.
    let command = "ulimit -f 60; exec \"$0\" \"$@\"";
    let args = ["-c", command, Program::binary(), "-p", "read on", "--offline-script", &script];
    let done = program.wait(program.command("sh", &args));
    check(&done, 1, &["error: "]);
    assert!(done.err.contains("full") || done.err.contains("large") || done.err.contains("space"), "{}", done.err);
    // What was written before is whole, and the session continues where there is room.
    let after = program.script("ok.yaml", OK);
    let done = program.run(&["--continue", "-p", "again", "--offline-script", &after]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Fine.\n"), "{}", done.err);
}

/// Runs a script of one round of calls, and returns what the model read of each.
fn results(program: Program, calls: &str) -> Vec<String> {
    let script = program.script("calls.yaml", &format!("- reply: [{calls}]\n- reply: [text: Done.]\n"));
    let args =
        ["-p", "go", "--offline-script", &script, "--output-format", "stream-json", "--allowed-tools", "Bash,Read"];
    let done = program.run(&args);
    assert_eq!(done.code, Some(0), "{done:#?}");
    done.lines()
        .iter()
        .filter(|line| line["type"] == "user")
        .map(|line| line["message"]["content"][0]["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[track_caller]
fn says(got: &[String], want: &[&str]) {
    assert_eq!(got.len(), want.len(), "{got:#?}");
    for (got, want) in got.iter().zip(want) {
        assert!(got.contains(want), "wanted {want:?} in {:?}", got.chars().take(600).collect::<String>());
    }
}

#[test]
fn files_that_are_none() {
    let program = Program::new();
    std::fs::write(program.project().join("binary"), (0u8..=255).cycle().take(3000).collect::<Vec<u8>>()).unwrap();
    // Takes no room on the disk.
    std::fs::File::create(program.project().join("huge.txt")).unwrap().set_len(2 << 30).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, program.project().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let calls = ["binary", "huge.txt", "gone", "pipe", "/dev/zero"]
        .map(|path| format!("tool: {{name: Read, input: {{file_path: {path}}}}}"))
        .join(", ");
    let begun = Instant::now();
    let got = results(program, &calls);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    says(&got, &["is a binary file", "huge.txt", "does not exist", "FIFO", "/dev/zero"]);
}

#[test]
fn a_file_changed_meanwhile_is_not_edited() {
    let program = Program::new().file("a.txt", "one\n");
    let script = program.script(
        "edit.yaml",
        "- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n\
         - reply: [tool: {name: Bash, input: {command: \"echo other > a.txt\"}}]\n\
         - reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]\n\
         - reply: [text: Done.]\n",
    );
    let flags = ["--permission-mode", "acceptEdits", "--allowed-tools", "Bash", "--output-format", "stream-json"];
    let done = program.run(&[&["-p", "go", "--offline-script", &script], &flags[..]].concat());
    let last = done.lines().into_iter().rfind(|line| line["type"] == "user").unwrap();
    assert_eq!(last["message"]["content"][0]["is_error"], true, "{done:#?}");
    assert!(last.to_string().contains("changed"), "{last}");
    assert_eq!(std::fs::read_to_string(program.project().join("a.txt")).unwrap(), "other\n");
}

#[test]
fn commands_that_misbehave() {
    let calls = r#"tool: {name: Bash, input: {command: "sleep 1000", timeout: 300}},
        tool: {name: Bash, input: {command: "head -c 8000000 /dev/zero | tr '\\0' x"}},
        tool: {name: Bash, input: {command: "printf '\\033[2J\\033]0;title\\007red\\033[31m'"}},
        tool: {name: Bash, input: {command: "cat"}}"#;
    let got = results(Program::new(), calls);
    says(&got, &["Timed out after 0.3 s", "x", "red", ""]);
    assert!(got[1].len() < 60_000, "{} bytes reach the model", got[1].len());
    assert_eq!(got[2], "red");
}

#[test]
fn locales_that_are_not_utf8() {
    for (name, value) in [("LANG", "C"), ("LC_ALL", "POSIX"), ("LC_ALL", "de_DE.ISO-8859-1")] {
        let program = Program::new().env(name, value).file("näme.txt", "grüße 日本 🦀\n");
        let script = program.script(
            "utf8.yaml",
            "- expect: {contains: \"schön\"}\n  reply: [tool: {name: Read, input: {file_path: \"näme.txt\"}}]\n\
             - expect: {contains: \"grüße 日本 🦀\"}\n  reply: [text: \"Ähnlich: 日本\"]\n",
        );
        let done = program.run(&["-p", "schön", "--offline-script", &script]);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "Ähnlich: 日本\n"), "{name}={value}: {}", done.err);
    }
}
