//! Long turns: what is let go of, what is drawn of much that comes at once.

use super::*;

#[test]
fn memory_follows_the_screen_and_the_viewer_reads_the_rest() {
    let mut screen = Screen::new();
    let mut log = Log(Vec::new());
    let mut say = |screen: &mut Screen, message: Message| {
        let (seq, message) = (log.0.len() as u64, Arc::new(message));
        log.0.push(HistoryItem::Message { seq, message: message.clone() });
        screen.apply([Event::Item(Item::Message { seq, message })]);
    };
    for turn in 0..2_000 {
        say(&mut screen, Message::prompt(format!("prompt {turn}.")));
        screen.apply([Event::Notice { text: format!("told in {turn}.") }]);
        say(&mut screen, Message::reply(vec![tool_call(turn, "Bash", json!({"command": "ls"}))]));
        screen.apply([started(turn, "Bash", "ls")]);
        say(
            &mut screen,
            Message::tool_results(vec![ToolResult::of_text(CallId::nth(turn), Outcome::Ok, "x".repeat(999))]),
        );
        screen.apply([text("answer")]);
        say(&mut screen, Message::reply(vec![Block::text("answer")]));
        screen.apply([ended(TurnEnd::Done, 1)]);
        let (cells, bytes) = screen.app.transcript.history.cells.held();
        assert!(
            cells <= cells::CELLS + 8 && bytes <= cells::BYTES + 8_192,
            "turn {turn}: {cells} cells, {bytes} bytes"
        );
    }
    let given = screen.given();
    assert_eq!((0..2_000).filter(|turn| !given.contains(&format!("> prompt {turn}."))).count(), 0);

    // What the viewer holds is bounded, too; what is in view moves as rows come in above it.
    let text = |view: &View| shown(&view.rows);
    let mut view = log.view(&mut screen, Want::Back);
    assert!(text(&view).ends_with("answer") && view.older && view.gap.is_none(), "{}", text(&view));
    // Notices are in no log, and stand where they were told.
    assert!(text(&view).contains("> prompt 1920.\n\n· told in 1920.\n\n● Bash(ls)"), "{}", text(&view));
    for _ in 0..20 {
        let before = view.rows.len() as isize;
        let first = view.rows[2].clone();
        view = log.view(&mut screen, Want::Back);
        let moved = view.moved.unwrap();
        assert!(moved > 100 && view.rows.len() < 14_000, "{moved} of {before}, {} rows", view.rows.len());
        assert_eq!(view.rows[(2 + moved) as usize].line, first.line);
    }
    assert!(view.gap.is_some(), "pages at the end were let go");
    // To the start at once, then down again.
    view = log.view(&mut screen, Want::First);
    assert!(text(&view).starts_with("> prompt 0.\n\n● Bash(ls)") && !view.older, "{}", text(&view));
    assert_eq!(view.moved, None);
    for _ in 0..40 {
        view = log.view(&mut screen, Want::Forward);
    }
    let all = text(&view);
    let last: Vec<usize> = (1_700..2_000).filter(|turn| !all.contains(&format!("> prompt {turn}."))).collect();
    assert!(last.is_empty() && view.gap.is_none(), "{last:?}");
    screen.app.transcript.forget_drawn();
    assert!(screen.app.transcript.earlier.unread());
}

#[test]
fn a_long_turn_is_let_go_between_its_calls_and_never_while_one_runs() {
    let mut screen = Screen::new();
    screen.apply([prompt("go"), started(1_000_000, "Task", "long")]);
    for n in 0..2_000 {
        screen.apply([started(n, "Bash", "ls"), done(n, Outcome::Ok, "x")]);
    }
    assert_eq!(screen.app.transcript.history.cells.held().0, 2_002, "the first call still runs");
    screen.apply([done(1_000_000, Outcome::Ok, "x"), started(5_000, "Bash", "ls")]);
    assert!(
        screen.app.transcript.history.cells.held().0 <= cells::CELLS + 8,
        "{:?}",
        screen.app.transcript.history.cells.held()
    );
    screen.apply([done(5_000, Outcome::Ok, "x")]);
    assert_eq!(screen.given().matches("Ran ls").count(), 2_001);
}

#[test]
fn no_flood_is_drawn_in_one_frame() {
    for (name, part, times) in FLOODS {
        let head = match *name {
            "code" => "```\n",
            "a table" => "| a | b |\n|---|---|\n",
            _ => "",
        };
        let flood = format!("{head}{}", part.repeat(*times));
        let mut whole = Screen::new();
        whole.apply([text(&flood), reply(&flood)]);
        let mut screen = Screen::new();
        // All of it came between two frames.
        for event in [text(&flood), reply(&flood)] {
            screen.app.apply(event, screen.now);
        }
        let (mut read, mut frames) = (0, 0);
        loop {
            let rows = screen.app.transcript.take_committed(60, &screen.theme, Share::FRAME);
            assert!(rows.len() <= 1_500, "{name}: {} rows at once", rows.len());
            screen.given.extend(rows);
            if !screen.app.transcript.scrollback.behind() {
                break;
            }
            let now = screen.app.transcript.scrollback.stream.read();
            assert!((1..=16 * 1024).contains(&(now - read)), "{name}: {} bytes at once", now - read);
            (read, frames) = (now, frames + 1);
            assert!(frames % 50 > 0 || screen.live(10).lines().count() <= 10, "{name}");
        }
        assert!(frames >= flood.len() / (16 * 1024), "{name}: {frames} frames");
        assert_eq!((screen.live(10).as_str(), screen.given == whole.given), ("", true), "{name}");
    }
}

#[test]
fn a_flood_behind_a_running_command_is_looked_at_from_its_end() {
    let flood = (0..40_000).map(|n| format!("- item {n}\n")).collect::<String>();
    let mut screen = Screen::new();
    let shell = Event::Item(Item::ShellStarted { command: "sleep 9".into() });
    screen.apply([shell, text(&flood)]);
    assert_eq!(screen.live(3), "• item 39997\n• item 39998\n• item 39999");
    let Some(cell) = screen.app.transcript.history.cells.last() else { panic!("there is a reply") };
    let rows = cell.rows(60, &screen.theme, Detail::Live { lines: 5, now: screen.now }).len();
    assert!(rows < 2_000, "{rows} rows are made for three");
}
