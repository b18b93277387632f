//! `/diff`, hunk by hunk.

use super::*;
use crate::message::BlobId;

fn hunk(line: usize, unified: &str) -> Hunk {
    let span = Span { old: (line, line + 1), new: (line, line + 1) };
    Hunk { span, unified: unified.into(), added: 1, removed: 1 }
}

fn changes() -> Changes {
    let file = |name: &str, hunks: Vec<Hunk>, held: Option<&str>| Reviewed {
        path: format!("/p/{name}").into(),
        name: name.into(),
        without: Some(BlobId("w".into())),
        now: Some(BlobId("n".into())),
        hunks,
        held: held.map(str::to_owned),
        by: match name {
            "c.txt" => vec![
                Author { command: "sed -i s/old/new/ c.txt".into(), agent: None },
                Author { command: "make c.txt".into(), agent: Some("Explore".into()) },
            ],
            _ => Vec::new(),
        },
    };
    let one = hunk(1, "@@ -1,2 +1,2 @@\n fn main() {\n-    hello();\n+    morning();\n");
    let other = hunk(8, "@@ -9,1 +9,1 @@\n-old\n+new\n");
    let all = vec![
        file("src/main.rs", vec![one.clone(), other.clone()], None),
        file("b.txt", Vec::new(), Some("was changed since at line 2")),
        file("c.txt", vec![other], None),
    ];
    let scopes = vec![
        Scope { turn: None, prompt: String::new(), files: all },
        Scope { turn: Some(7), prompt: "greet".into(), files: vec![file("src/main.rs", vec![one], None)] },
    ];
    Changes { session: Vec::new(), uncommitted: Some(Vec::new()), scopes }
}

/// The whole screen.
fn screen(run: &Run) -> String {
    let (width, height) = run.app.size;
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    view::draw_over(&run.app, buf.area, &mut buf);
    let row = |y: u16| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

fn run(width: u16, height: u16) -> Run {
    let mut run = Run::new(width, height);
    run.event(Event::Listed(Listed::Changes(changes())));
    run
}

#[test]
fn hunks_are_reverted_with_a_comment() {
    let mut run = run(80, 24);
    assert_snapshot!(screen(&run), @r"
    Changed in this session · 3 files · 3 hunks

    › src/main.rs  1/2  [✓ keep]
    1   fn main() {
    2 -     hello();
    2 +     morning();

      src/main.rs  2/2  [✓ keep]
    9 - old
    9 + new

    b.txt
    was changed since at line 2

      c.txt  1/1  [✓ keep]
      changed by `sed -i s/old/new/ c.txt`, `make c.txt` (Explore)
    9 - old
    9 + new

    Not committed
    nothing


    Space keep/revert · q close · c comment · ←→ by turn · f whole file
    ");
    run.keys(" cuse the constant<enter><down> ");
    let shown = screen(&run);
    let rows: Vec<&str> = shown.lines().filter(|row| row.contains("[✗") || row.contains('“')).collect();
    let want = ["  src/main.rs  1/2  [✗ revert]", "  “use the constant”", "› src/main.rs  2/2  [✗ revert]"];
    assert_eq!(rows, want);
    assert!(shown.contains("\nEnter apply · Space keep/revert · q close · c comment"), "{shown}");
    run.keys("<enter>");
    assert!(run.app.pager.is_none());
    let (one, other) = (r#""new":[1,2]"#, r#""new":[8,9]"#);
    let sent = run.sent();
    assert_eq!(sent.matches(r#""path":"/p/src/main.rs""#).count(), 1, "{sent}");
    assert!(sent.starts_with(r#"{"op":"review","turn":null,"#) && sent.contains(one) && sent.contains(other), "{sent}");
    assert!(sent.contains(r#""revert":true,"comment":"use the constant""#) && !sent.contains("c.txt"), "{sent}");
}

#[test]
fn a_turn_is_reviewed_on_its_own() {
    let mut run = run(40, 12);
    run.keys("<right>");
    assert_snapshot!(screen(&run), @r"
    Changed by “greet” · 1 file · 1 hunk

    › src/main.rs  1/1  [✓ keep]
    1   fn main() {
    2 -     hello();
    2 +     morning();





    Space keep/revert · q close · c comment
    ");
    run.keys("f<enter>");
    assert!(run.sent().contains(r#""turn":7"#));
}

#[test]
fn nothing_decided_sends_nothing_and_the_hunk_stays_in_view() {
    let mut run = run(40, 12);
    run.keys("<enter>");
    assert_eq!(run.sent(), "");
    run.keys("jj");
    assert_snapshot!(screen(&run), @r"
      src/main.rs  2/2  [✓ keep]
    9 - old
    9 + new

    b.txt
    was changed since at line 2

    › c.txt  1/1  [✓ keep]
      changed by `sed -i s/old/new/ c.txt`,…
    9 - old
    9 + new
    Space keep/revert · q close · c comment
    ");
    run.keys("c").paste("pasted").keys("<enter>");
    assert!(screen(&run).contains("“pasted”"));
    run.keys("c<ctrl+u><enter>");
    // A comment that is given up, and one that is reverted.
    run.keys("cno<esc>cx<enter>c<bs><enter><enter>");
    assert_eq!(run.sent(), "");
    run.keys("  q");
    assert_eq!((run.sent(), run.app.pager.is_none()), (String::new(), true));
}
