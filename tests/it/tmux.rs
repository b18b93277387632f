//! Resizes in a real tmux, which makes all rows again and pushes those at the top out of reach. Where there is no tmux,
//! nothing can be said.

use std::cell::RefCell;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::support::program::Program;
use super::support::screen::live;

/// Longest wait for something to show.
const PATIENCE: Duration = Duration::from_secs(20);

/// A tmux server of its own with one window, in which the binary runs below what a shell has left.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn start(program: &Program, size: (u16, u16), history: usize, script: &str) -> Tmux {
        Tmux::start_in(program, size, history, script, "")
    }

    /// The same in an environment that `env` changes.
    fn start_in(program: &Program, size: (u16, u16), history: usize, script: &str, env: &str) -> Tmux {
        let tmux = Tmux { socket: program.home().with_file_name("tmux").display().to_string() };
        let script = program.script("script.yaml", script);
        let run = format!(
            "for i in $(seq 1 {history}); do echo shell row $i; done; cd {}; env {env} HOME={} {} --offline-script {script}; cat",
            program.project().display(),
            program.home().display(),
            Program::binary(),
        );
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        tmux.tell(&["new-session", "-d", "-x", &columns, "-y", &rows, "sh", "-c", &run]);
        // The header comes with the engine, after the region, and the gauge after both.
        tmux.wait_for("cocode ");
        tmux.wait_for("% free");
        tmux.at_rest(size);
        tmux
    }

    /// Runs one command of tmux.
    fn tell(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket, "-f", "/dev/null"]).args(args).env("LANG", "C.UTF-8").env_remove("TMUX");
        let output = command.stdin(Stdio::null()).output().expect("tmux starts");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tell(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(&self.screen()) {
            assert!(Instant::now() < end, "waited for {what}. The screen:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    #[track_caller]
    fn resize(&self, size: (u16, u16)) {
        self.tell(&["resize-window", "-x", &size.0.to_string(), "-y", &size.1.to_string()]);
        self.at_rest(size);
    }

    /// Waits until the live region is drawn for this size, has found the bottom of the screen, and nothing moves any more:
    /// tmux tells a program of a new size up to 250 ms after it made the rows again, and what is drawn in between is lost.
    #[track_caller]
    fn at_rest(&self, (columns, rows): (u16, u16)) {
        let whole = |rule: &str| rule.ends_with('─') && rule.chars().count() == usize::from(columns);
        const STILL: Duration = Duration::from_millis(300);
        let last_seen = RefCell::new((String::new(), Instant::now()));
        self.wait_until("the region at the bottom", |screen| {
            let mut seen = last_seen.borrow_mut();
            if seen.0 != screen {
                *seen = (screen.to_owned(), Instant::now());
            }
            if seen.1.elapsed() < STILL {
                return false;
            }
            let lines: Vec<_> = screen.lines().collect();
            let last = lines.get(usize::from(rows) - 1);
            let rules: Vec<_> = lines.iter().filter(|line| line.starts_with('─')).collect();
            let drawn = !rules.is_empty() && rules.iter().all(|line| whole(line));
            drawn && last.is_some_and(|line| !line.is_empty())
        });
    }

    /// History once and in order, the composer's two rules, one status line, and nothing more of ours.
    #[track_caller]
    fn check(&self, history: usize, shown: &[&str]) {
        let all = self.tell(&["capture-pane", "-p", "-S", "-"]);
        let shell: Vec<_> = all.lines().filter(|row| row.starts_with("shell row ")).collect();
        assert_eq!(shell, (1..=history).map(|n| format!("shell row {n}")).collect::<Vec<_>>(), "{all}");
        let rules = all.lines().filter(|row| row.starts_with('─')).count();
        let status = all.lines().filter(|row| row.starts_with("ask first · ")).count();
        assert_eq!((rules, status), (2, 1), "{all}");
        for text in shown {
            assert_eq!(all.matches(text).count(), 1, "{text}: {all}");
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may never have started.
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).stderr(Stdio::null()).status();
    }
}

fn missing() -> bool {
    Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err()
}

/// tmux tells of a new size late: what is written meanwhile is for another screen, and is there all the same. Rows that are
/// not final yet wrap on a narrower one, and must not push each other out of reach.
#[test]
fn what_comes_while_the_window_is_dragged_is_all_there() {
    dragged("");
}

/// As it is over SSH, and where the environment was cleared.
#[test]
fn a_tmux_that_only_answers_as_one_is_dragged_like_any() {
    dragged("-u TMUX -u TMUX_PANE TERM=xterm-256color");
}

fn dragged(env: &str) {
    if missing() {
        return;
    }
    const PARTS: usize = 20;
    let part = |n: usize| {
        let code =
            if n.is_multiple_of(3) { format!("\n\n```\n{}\n```", "code and ".repeat(12)) } else { String::new() };
        format!(
            "Part {n} explains at some length, and in one line that wraps on any screen here, how pages are counted.{code}\n\n"
        )
    };
    let text: String = (1..=PARTS).map(part).collect();
    let script = format!("- chunk: 5\n  pace_ms: 15\n  reply: [text: {}]\n", serde_json::to_string(&text).unwrap());
    let program = Program::new();
    let tmux = Tmux::start_in(&program, (80, 24), 30, &script, env);
    tmux.keys(&["go", "Enter"]);
    tmux.wait_for("to interrupt");
    // By an edge, by a corner, and by keys of tmux.
    let sides = (0..20).chain((0..20).rev()).map(|step| ((80 - 2 * step, 24), 30));
    let corners = (0..20).chain((0..20).rev()).map(|step| ((80 - 2 * step, 24 - step / 2), 30));
    let dragged = corners.chain(sides);
    let jumps = [((57, 28), 120), ((104, 26), 320), ((40, 12), 120), ((100, 30), 600), ((80, 24), 0)];
    for ((columns, rows), pause) in dragged.chain(jumps) {
        tmux.tell(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        // Shorter and longer than tmux takes to tell of it.
        std::thread::sleep(Duration::from_millis(pause));
    }
    let last = format!("Part {PARTS}");
    let so_far = tmux.tell(&["capture-pane", "-p", "-S", "-"]);
    assert!(!so_far.contains(&last), "it has to write during all of that: {so_far}");
    tmux.wait_for(&last);
    tmux.wait_until("the end", |screen| !screen.contains("to interrupt"));
    tmux.resize((80, 24));
    let all = tmux.tell(&["capture-pane", "-p", "-J", "-S", "-"]);
    // Every word once and in order, and nothing between them: no half row, and no row twice.
    let words = |text: &str| text.split_whitespace().filter(|word| *word != "```").map(str::to_owned).collect();
    let want: Vec<String> = words(&text);
    let (_, below) = all.split_once("> go\n").expect("the prompt shows");
    let mut got: Vec<String> = words(below);
    got.truncate(want.len());
    assert_eq!(got, want, "{all}");
    let rows: Vec<_> = all.lines().filter(|row| row.starts_with("shell row ")).collect();
    assert_eq!(rows, (1..=30).map(|n| format!("shell row {n}")).collect::<Vec<_>>(), "{all}");
}

/// Another screen makes tmux forget that the first row here continues one of its history.
#[test]
fn a_line_that_the_terminal_wraps_is_one_line_after_a_drag() {
    if missing() {
        return;
    }
    let lines: Vec<String> =
        (1..=14).map(|n| format!("let value_{n} = {};", "of many words ".repeat(20).trim_end())).collect();
    let text = format!("```\n{}\n```\nThat was all.", lines.join("\n"));
    let script = format!("- chunk: 8\n  pace_ms: 10\n  reply: [text: {}]\n", serde_json::to_string(&text).unwrap());
    let program = Program::new();
    let tmux = Tmux::start(&program, (100, 24), 3, &script);
    tmux.keys(&["go", "Enter"]);
    tmux.wait_for("value_4");
    for columns in [61, 47, 90, 58] {
        tmux.tell(&["resize-window", "-x", &columns.to_string(), "-y", "24"]);
        // Told, and at rest.
        tmux.wait_until("the region", |screen| screen.contains("resizing…") || screen.contains("That was all."));
        tmux.wait_until("the region again", |screen| !screen.contains("resizing…"));
    }
    assert!(!tmux.screen().contains("That was all."), "it has to write during all of that");
    tmux.wait_for("That was all.");
    tmux.resize((100, 24));
    let all = tmux.tell(&["capture-pane", "-p", "-J", "-S", "-"]);
    let got: Vec<&str> = all.lines().filter(|line| line.contains("words")).map(str::trim_end).collect();
    assert_eq!(got, lines, "{all}");
}

#[test]
fn a_resize_leaves_no_copy_and_takes_nothing() {
    if missing() {
        return;
    }
    let long: String = (1..60).map(|n| format!("new line {n}\\n")).collect();
    let script = format!(
        "- reply: [text: Looking., tool: {{name: Write, input: {{file_path: new.txt, content: \"{long}\"}}}}]\n- reply: [text: Written.]\n"
    );
    for (sizes, history) in [
        (&[(80, 30), (40, 12), (80, 30)][..], 0),
        (&[(200, 60), (40, 12)], 3),
        (&[(80, 24), (40, 24), (120, 12), (80, 24)], 30),
    ] {
        let program = Program::new();
        let tmux = Tmux::start(&program, sizes[0], history, &script);
        for size in &sizes[1..] {
            tmux.resize(*size);
        }
        tmux.check(history, &["cocode "]);
        tmux.keys(&["go", "Enter"]);
        tmux.wait_until("the question takes keys", live);
        for size in sizes {
            tmux.resize(*size);
            tmux.wait_until("the question takes keys again", live);
        }
        tmux.keys(&["1"]);
        tmux.wait_for("Written.");
        tmux.wait_for("Ask anything");
        tmux.check(history, &["cocode ", "Looking.", "Written."]);
    }
}
