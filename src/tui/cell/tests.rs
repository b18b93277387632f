//! Every cell at 80 and 40 columns.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::*;
use crate::message::{CallId, Content, Display, FileDiff, Outcome, Todo, TodoStatus, ToolResult};
use crate::protocol::ModelInfo;
use crate::tui::render::wrap::{shown, spans_width};

/// So many seconds on the clock of these tests.
fn at(seconds: u64) -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + Duration::from_secs(seconds)
}

fn live() -> Detail {
    Detail::Live { lines: 3, now: at(65) }
}

/// Draws the cell both ways, wide and narrow, with a title each.
fn drawn(cell: &Cell) -> String {
    let theme = Theme::dark();
    let mut text = String::new();
    let views = match cell.is_final() {
        true => vec![(Detail::Folded, 80), (Detail::Folded, 40), (Detail::Whole, 40)],
        false => vec![(live(), 80), (live(), 40)],
    };
    for (detail, width) in views {
        let rows = cell.rows(width, &theme, detail);
        for row in &rows {
            assert!(spans_width(&row.line.spans) <= width, "wider than {width}: {row:?}");
            let clean = row.line.spans.iter().all(|span| !span.content.chars().any(char::is_control));
            assert!(clean, "control characters: {row:?}");
        }
        let name = if let Detail::Live { .. } = detail { "Live".to_string() } else { format!("{detail:?}") };
        text.push_str(&format!("{name} {width}\n{}\n\n", shown(&rows)));
    }
    text
}

fn call(tool: &str, title: &str, result: Option<(Outcome, &str, Option<Display>)>) -> Cell {
    let id = CallId::nth(1);
    let result = result.map(|(outcome, text, display)| {
        let content = vec![Content::text(text)];
        Arc::new(ToolResult { id: id.clone(), outcome, content, display, effects: Vec::new() })
    });
    let (tool, title, since) = (tool.into(), title.into(), at(60));
    Cell::Call(Call { id, tool, title, since, output: String::new(), task: None, result, abandoned: false })
}

fn numbered(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

/// What a commit needs on the screen is one line; why it failed, and what ran beside it, is not folded away.
#[test]
fn a_commit_is_told_by_what_it_made() {
    let check = |command: &str, outcome, said: &str, want: &str| {
        let code = Some(if outcome == Outcome::Ok { 0 } else { 1 });
        let cell = call("Bash", command, Some((outcome, said, Some(Display::Command { code, millis: 20 }))));
        assert_eq!(shown(&cell.rows(100, &Theme::dark(), Detail::Folded)), want, "{command}: {said}");
        assert!(shown(&cell.rows(100, &Theme::dark(), Detail::Whole)).contains(said.lines().next().unwrap()));
    };
    let made = "[main 1a2b3c4] stats: sort first\n 3 files changed, 12 insertions(+), 4 deletions(-)\n create mode 100644 c.txt";
    let want = "● Committed 1a2b3c4 \"stats: sort first\"  3 files, +12 −4";
    check("git commit -m 'stats: sort first'", Outcome::Ok, made, want);
    check("git add --all && git commit -m 'stats: sort first'", Outcome::Ok, made, want);
    check("git commit -m x", Outcome::Ok, &format!("lint: 2 files are fine\n{made}"), want);
    check(
        "git commit -m x",
        Outcome::Ok,
        "[detached HEAD 1a2b3c4d] x\n 1 file changed, 1 deletion(-)",
        "● Committed 1a2b3c4d \"x\"  1 file, +0 −1",
    );
    check("git commit -m x", Outcome::Ok, "[main (root-commit) 1a2b3c4] x", "● Committed 1a2b3c4 \"x\"");
    check(
        "git commit -m x",
        Outcome::Error,
        "lint: a.rs:3 is too long\n[Exit code 1]",
        "✗ Ran git commit -m x  exit 1\n  └ lint: a.rs:3 is too long",
    );
    // More ran than the commit.
    check(
        "git commit -m x && cargo test",
        Outcome::Ok,
        "[main 1a2b3c4] x\ntest result: ok",
        "● Ran git commit -m x && cargo test\n  └ [main 1a2b3c4] x\n    test result: ok",
    );
    check("git log -n 2 --format=%s", Outcome::Ok, "one\ntwo", "● Ran git log -n 2 --format=%s  2 lines (ctrl+o)");
    check("git status --short", Outcome::Ok, "(no output)", "● Ran git status --short  no output");
    check("git status; ls", Outcome::Ok, "a", "● Ran git status; ls\n  └ a");
    check("git show > a", Outcome::Ok, "a", "● Ran git show > a\n  └ a");
    check("git stash", Outcome::Ok, "a", "● Ran git stash\n  └ a");
}

#[test]
fn a_receipt_and_its_summary() {
    use crate::protocol::Receipt;
    use crate::session::entry::{Dropped, Kept};
    let receipt = Receipt {
        tier: "full".into(),
        before: 170_000,
        after: 21_500,
        kept: Kept { messages: 4, files: 2, plan: true, ..Kept::default() },
        dropped: Dropped { prompts: 3, replies: 12, results: 11, others: 1 },
        cost_usd: Some(0.0123),
        millis: 4_200,
        ..Receipt::default()
    };
    let summary = "# What was asked\n\nThe parser must be rewritten, and \u{1b}[31mnothing else.".to_owned();
    let cell = Compacted { receipt, summary };
    insta::assert_snapshot!(drawn(&Cell::Compacted(cell.clone())), @r#"
    Folded 80
    ✻ Compacted 27 messages · full (ctrl+o)
      └ 170k → 21k tokens (148k saved)
        dropped: 3 prompts, 12 replies, 11 results, 1 other
        kept: 4 messages, 2 files, the plan
        took: $0.0123, 4.2 s

    Folded 40
    ✻ Compacted 27 messages · full (ctrl+o)
      └ 170k → 21k tokens (148k saved)
        dropped: 3 prompts, 12 replies, 11
        results, 1 other
        kept: 4 messages, 2 files, the plan
        took: $0.0123, 4.2 s

    Whole 40
    ✻ Compacted 27 messages · full
      └ 170k → 21k tokens (148k saved)
        dropped: 3 prompts, 12 replies, 11
        results, 1 other
        kept: 4 messages, 2 files, the plan
        took: $0.0123, 4.2 s

      # What was asked

      The parser must be rewritten, and
      ␛[31mnothing else.
    "#);
}

#[test]
fn an_answer_that_does_not_fit_stands_below() {
    let text = "Store: Redis · Tests: unit tests; a fuzzer · Name: something of my own";
    let cell = call("WebSearch", "a store", Some((Outcome::Ok, "x", Some(Display::Line { text: text.into() }))));
    insta::assert_snapshot!(drawn(&cell), @r#"
    Folded 80
    ● Searched the web for a store
      └ Store: Redis · Tests: unit tests; a fuzzer · Name: something of my own

    Folded 40
    ● Searched the web for a store
      └ Store: Redis · Tests: unit tests; a
        fuzzer · Name: something of my own

    Whole 40
    ● WebSearch(a store)
      x
    "#);
}

#[test]
fn calls() {
    use Outcome::*;
    let command = |code, millis| Some(Display::Command { code, millis });
    let unified = "@@ -1,2 +1,2 @@\n use std::io;\n-let a = 1;\n+let a = 2;\n".to_string();
    let diff = FileDiff { path: "src/a.rs".into(), unified, added: 1, removed: 1, created: false };
    let new = FileDiff {
        unified: "@@ -0,0 +1,33 @@\n".to_string() + &"+x\n".repeat(33),
        added: 33,
        created: true,
        ..diff.clone()
    };
    let todo = |content: &str, status| Todo { content: content.into(), active_form: format!("{content}ing"), status };
    let items = vec![
        todo("Read", TodoStatus::Completed),
        todo("Fix", TodoStatus::InProgress),
        todo("Test all of it with every single feature", TodoStatus::Pending),
    ];
    let mut running = call("Bash", "cargo test --all-features --workspace -- --nocapture", None);
    if let Cell::Call(call) = &mut running {
        call.push(&numbered(9));
        call.push("10%\r90%");
    }
    let hostile = "\x1b]0;pwned\x07\x1b[2Jtext\u{202e}live\nmore\x1b[31mred";
    let rows = [
        ("bash", call("Bash", "cargo test", Some((Ok, &numbered(9), command(Some(0), 200))))),
        ("bash_exit", call("Bash", "false", Some((Error, "no\n[Exit code 1]", command(Some(1), 1))))),
        ("said_no", call("Bash", "rm x", Some((Denied, "The user refused this.", Some(Display::said(None)))))),
        (
            "said_why",
            call("Bash", "rm x", Some((Denied, "The user refused this.", Some(Display::said(Some("use git rm")))))),
        ),
        ("bash_short", call("Bash", "ls", Some((Ok, "a\nb\n", command(Some(0), 1500))))),
        ("bash_failed", call("Bash", "false", Some((Error, "Exit code 1", command(Some(1), 61_000))))),
        ("bash_killed", call("Bash", "sleep 100", Some((Interrupted, "", command(None, 100))))),
        ("read_line", call("Read", "src/main.rs", Some((Ok, "x", Some(Display::Line { text: "120 lines".into() }))))),
        ("read_failed", call("Read", "nope", Some((Error, "No such file: nope", None)))),
        ("edit", call("Edit", "src/a.rs", Some((Ok, "done", Some(Display::Diff(diff)))))),
        ("write", call("Write", "src/b.rs", Some((Ok, "done", Some(Display::Diff(new)))))),
        ("todos", call("TodoWrite", "", Some((Ok, "ok", Some(Display::Todos { items }))))),
        ("denied", call("Bash", "rm -rf /", Some((Denied, "The user said no.", None)))),
        ("running", running),
        ("hostile", call("mcp\x1b[31m", "a\nb\u{202e}c\x07", Some((Ok, hostile, None)))),
    ];
    for (name, cell) in rows {
        insta::assert_snapshot!(format!("call_{name}"), drawn(&cell));
    }
}

#[test]
fn everything_else() {
    let model = ModelInfo {
        provider: "anthropic".into(),
        model: "claude-opus".into(),
        window: 200_000,
        known: true,
        probing: false,
        local: false,
    };
    let cwd = PathBuf::from("/home/someone/projects/deep/inside/some/folder/cocode");
    let since = Some(at(60));
    let thinking = |closed| Thinking { source: numbered(6), since, took: None, tokens: None, closed };
    let mut thought = Thinking { tokens: Some(3_120), ..thinking(false) };
    thought.close(at(75));
    let retry = Retry { attempt: 2, of: 10, reason: "overloaded".into(), due: at(68), over: false };
    let shell =
        |done: Option<(String, Option<i32>)>| Cell::Shell(Shell { command: "git status".into(), since: at(60), done });
    let prompt = |text: String| Cell::Prompt(Prompt { text, folded: None, media: vec!["image/png, 12 kB".into()] });
    // The text names one, the other came by its path.
    let pictured = Cell::Prompt(Prompt {
        text: "what is [Image 1] in @b.png".into(),
        folded: Some("what is [Image 1: a.png, 2 kB] in @b.png".into()),
        media: vec!["image/png, 2 kB".into(), "image/png, 3 kB".into()],
    });
    let rows = [
        ("welcome", Cell::Welcome(Welcome { model: model.clone(), cwd: cwd.clone(), title: None })),
        ("welcome_resumed", Cell::Welcome(Welcome { model, cwd, title: Some("Fix the parser".into()) })),
        ("prompt", prompt("Please fix the failing test in the parser, and say why it failed.\n\n  Thanks".into())),
        ("prompt_long", prompt(numbered(42))),
        ("prompt_pictures", pictured),
        ("thinking", Cell::Thinking(thinking(false))),
        ("thought", Cell::Thinking(thought)),
        ("retry", Cell::Retry(retry.clone())),
        ("retried", Cell::Retry(Retry { over: true, ..retry })),
        ("shell", shell(Some((numbered(3), Some(1))))),
        ("shell_running", shell(None)),
        ("notice", Cell::Note(Note::Notice("# Cost\n\n- `main`: $0.10\n- other\n\n```\ncode\n```".into()))),
        ("error", Cell::Note(Note::Error("the key was refused: set ANTHROPIC_API_KEY, or run `cocode doctor`".into()))),
        ("aside", Cell::Note(Note::Aside("rewound to before: fix it".into()))),
        ("worked", Cell::Note(Note::Worked(Duration::from_secs(72)))),
    ];
    for (name, cell) in rows {
        insta::assert_snapshot!(name, drawn(&cell));
    }
}

#[test]
fn the_view_lays_out_the_end_of_what_is_long() {
    let code = format!("```rust\n{}```\nThe end.\n", "let a = 1;\n".repeat(100_000));
    let floods = [
        "漢".repeat(7_000_000),
        "- item\n".repeat(300_000),
        "---\n\n".repeat(200_000),
        "\x1b[31m\u{202e}".repeat(500_000),
        code,
        format!("{}\n", "x".repeat(5_000_000)),
    ];
    for text in floods {
        let thinking = Thinking { source: text.clone(), since: None, took: None, tokens: None, closed: true };
        for cell in [
            Cell::Reply(Reply { source: text.clone(), closed: true }),
            Cell::Prompt(Prompt { text: text.clone(), folded: None, media: Vec::new() }),
            Cell::Thinking(thinking),
        ] {
            let rows = cell.rows(80, &Theme::dark(), Detail::Whole);
            let start: String = text.chars().take(8).collect();
            assert!((2..=WHOLE / 2).contains(&rows.len()), "{start:?}: {} rows", rows.len());
            assert!(shown(&rows[..2]).contains("kB before this"), "{start:?}");
        }
    }
}

#[test]
fn a_block_of_code_that_began_before_is_still_code() {
    let code = format!("```rust\n{}```\n**The end.**\n", "let **a** = 1;\n".repeat(10_000));
    let rows = Cell::Reply(Reply { source: code, closed: true }).rows(80, &Theme::dark(), Detail::Whole);
    let text = shown(&rows[rows.len() - 4..]);
    assert!(text.contains("let **a** = 1;") && text.ends_with("The end."), "{text}");
}
