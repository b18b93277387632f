//! The plan's review and the agent's own questions, by keys and screens.

use insta::assert_snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Run;
use crate::protocol::*;
use crate::tui::msg::Msg;
use crate::tui::view;

/// A plan of 300 lines, each a paragraph or an item of a list that can be told apart.
fn long_plan() -> String {
    let steps: String = (1..=298).map(|n| format!("- step {n} of the plan\n")).collect();
    format!("# Cache the answers\n\n{steps}")
}

fn plan(run: &mut Run, plan: &str) {
    let path = "/home/ada/.cocode/plans/brave-otter-humming.md".into();
    run.event(Event::Ask(Ask { id: AskId(7), question: Question::Plan { plan: plan.into(), path }, asker: None }))
        .live();
}

/// The alternate screen as text; rules are cut.
pub(super) fn over(run: &Run) -> String {
    let (width, height) = run.app.size;
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    let cursor = view::draw_over(&run.app, buf.area, &mut buf);
    let row = |y: u16| {
        let mut row: String = (0..width).map(|x| buf[(x, y)].symbol()).collect();
        if let Some(cursor) = cursor.filter(|cursor| cursor.y == y) {
            row.insert(usize::from(cursor.x), '▏');
        }
        let bars = row.trim_end().trim_end_matches('─');
        if bars.len() < row.trim_end().len() { format!("{bars}───") } else { bars.to_owned() }
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plan_is_reviewed_at_every_size() {
    let mut run = Run::new(40, 12);
    plan(&mut run, &long_plan());
    assert!(run.app.covers());
    assert_snapshot!(over(&run), @r"
    ── Plan · brave-otter-humming.md ───
    Cache the answers

    • step 1 of the plan
    • step 2 of the plan
    • step 3 of the plan
    • step 4 of the plan
    › 1. Yes, and accept edits automatically
      2. Yes, and ask before each edit
      3. Yes, fresh context; ask for edits
      4. No, keep planning
    1–6 of 300 · e edit · c copy · Esc no ·…
    ");
    run.msg(Msg::Resize(80, 24)).frame().wait(500).keys("<pgdn>");
    assert_snapshot!(over(&run), @r"
    ── Plan · brave-otter-humming.md ───
    • step 14 of the plan
    • step 15 of the plan
    • step 16 of the plan
    • step 17 of the plan
    • step 18 of the plan
    • step 19 of the plan
    • step 20 of the plan
    • step 21 of the plan
    • step 22 of the plan
    • step 23 of the plan
    • step 24 of the plan
    • step 25 of the plan
    • step 26 of the plan
    • step 27 of the plan
    • step 28 of the plan
    • step 29 of the plan
    ───
    Go ahead with this plan?
    › 1. Yes, and accept edits automatically
      2. Yes, and ask before each edit
      3. Yes, fresh context; ask for edits
      4. No, keep planning
    16–31 of 300 · e edit · c copy · Esc no · PgUp PgDn · Tab Enter choose
    ");
    let mut run = Run::new(200, 60);
    plan(&mut run, "# Short\n\nOne `step`:\n\n```rust\nfn main() {}\n```\n");
    assert_snapshot!(over(&run).trim_end(), @r"
    ── Plan · brave-otter-humming.md ───
    Short

    One step:

    fn main() {}
    ───
    Go ahead with this plan?
    › 1. Yes, and accept edits automatically
      2. Yes, and ask before each edit
      3. Yes, fresh context; ask for edits
      4. No, keep planning
    e edit · c copy · Esc no · PgUp PgDn · Tab Enter choose
    ");
}

#[test]
fn every_line_of_a_plan_can_be_read() {
    for (width, height) in [(40, 12), (80, 24), (200, 60)] {
        let keys = ["<pgdn>", "<down>", " ", "j"];
        for keys in &keys[..if width == 200 { 1 } else { 4 }] {
            let mut run = Run::new(width, height);
            plan(&mut run, &long_plan());
            let mut seen = std::collections::BTreeSet::new();
            let mut before = String::new();
            while over(&run) != before {
                before = over(&run);
                seen.extend(before.lines().filter(|row| row.contains("of the plan")).map(str::to_owned));
                run.keys(keys);
            }
            assert_eq!(seen.len(), 298, "{width}x{height} {keys}");
            assert_eq!(run.sent(), "");
        }
    }
}

#[test]
fn a_plan_is_answered() {
    let check = |keys: &str, want: &str| {
        let mut run = Run::new(40, 12);
        plan(&mut run, "# Plan\n\nDo it.\n");
        run.keys(keys);
        assert_eq!(run.sent(), want, "{keys}");
    };
    let answer = |answer: &str| format!(r#"{{"op":"answer","id":7,"answer":{answer}}}"#);
    check("1", &answer(r#"{"type":"approve","how":"accept_edits"}"#));
    check("<enter>", &answer(r#"{"type":"approve","how":"accept_edits"}"#));
    check("<down><enter>", &answer(r#"{"type":"approve","how":"ask_each"}"#));
    check("<tab><tab><enter>", &answer(r#"{"type":"approve","how":"fresh_context"}"#));
    check("4use sqlite<enter>", &answer(r#"{"type":"no","feedback":"use sqlite"}"#));
    check("4<enter>", &answer(r#"{"type":"no","feedback":null}"#));
    check("4never mind<esc>2", &answer(r#"{"type":"approve","how":"ask_each"}"#));
    check("<esc>", &answer(r#"{"type":"no","feedback":null}"#));
    check("e", r#"EditPlan(AskId(7), "/home/ada/.cocode/plans/brave-otter-humming.md")"#);
    check("<ctrl+g>", r#"EditPlan(AskId(7), "/home/ada/.cocode/plans/brave-otter-humming.md")"#);
    check("c", r##"Copy("# Plan\n\nDo it.\n")"##);
    check("x?", "");
}

#[test]
fn an_edited_plan_is_shown_and_words_are_pasted() {
    let mut run = Run::new(40, 12);
    plan(&mut run, "# Plan\n\nDo it.\n");
    run.keys("e").msg(Msg::PlanEdited { id: AskId(7), text: Ok("# Plan\n\nDo it *well*.\n".into()) });
    run.msg(Msg::PlanEdited { id: AskId(9), text: Ok("of another question".into()) });
    run.frame().wait(500).keys("4").paste("two\nlines").keys("!");
    assert_snapshot!(over(&run), @r"
    ── Plan · brave-otter-humming.md ───
    Plan

    Do it well.
    What should change? (may be empty)
    > two lines!▏
    Enter send · Esc back
    ");
    run.msg(Msg::PlanEdited { id: AskId(7), text: Err("vi is not there".into()) });
    assert_eq!(over(&run).trim_end().lines().last(), Some("vi is not there"));
}

fn choices(header: &str, question: &str, multi: bool, labels: &[&str]) -> Choices {
    let option = |label: &&str| ChoiceOption {
        label: (*label).into(),
        description: format!("What {label} means, told in one sentence."),
    };
    Choices { header: header.into(), question: question.into(), multi, options: labels.iter().map(option).collect() }
}

fn asked(run: &mut Run, questions: Vec<Choices>) {
    run.event(Event::Ask(Ask { id: AskId(7), question: Question::Choices { questions }, asker: None })).live();
}

fn three() -> Vec<Choices> {
    vec![
        choices(
            "Storage",
            "Where should answers be kept between two runs of the program?",
            false,
            &["SQLite", "Files"],
        ),
        choices("Checks", "Which checks?", true, &["Unit tests", "End to end", "Benchmarks"]),
        choices("Name", "What is it called?", false, &["cache", "store"]),
    ]
}

#[test]
fn questions_are_asked_one_after_the_other() {
    let mut run = Run::new(40, 12);
    asked(&mut run, three());
    assert_snapshot!(run.screen(), @r"
    ───
    ☐ Storage → ☐ Checks → ☐ Name → Send
    Where should answers be kept between
    two runs of the program?
    › 1. SQLite
         What SQLite means, told in one
         sentence.
      2. Files
      3. Other: in your own words
    ↑↓ Enter choose · ← → · Esc decline
    ask first · … · ? keys
    ");
    run.keys("2");
    assert_snapshot!(run.screen(), @r"
    ───
    ☑ Storage → ☐ Checks → ☐ Name → Send
    Which checks?
    › 1. [ ] Unit tests
         What Unit tests means, told in one
         sentence.
      2. [ ] End to end
      3. [ ] Benchmarks
      4. [ ] Other: in your own words
    Space mark · Enter next · ← → · Esc dec…
    ask first · … · ? keys
    ");
    run.keys(" <down><down> <enter>");
    run.keys("<left>");
    assert_snapshot!(run.screen(), @r"
    ───
    ☑ Storage → ☑ Checks → ☐ Name → Send
    Which checks?
      1. [x] Unit tests
      2. [ ] End to end
    › 3. [x] Benchmarks
         What Benchmarks means, told in one
         sentence.
      4. [ ] Other: in your own words
    Space mark · Enter next · ← → · Esc dec…
    ask first · … · ? keys
    ");
    run.keys("<tab>my own");
    assert_snapshot!(run.screen(), @r"
    ───
    ☑ Storage → ☑ Checks → ☐ Name → Send
    What is it called?
      1. cache
         What cache means, told in one
         sentence.
      2. store
         What store means, told in one
         sentence.
    › 3. Other: my own▏
    ↑↓ Enter choose · ← → · Esc decline
    ask first · … · ? keys
    ");
    run.keys("<enter>");
    assert_snapshot!(run.screen(), @r"
    ───
    ☑ Storage → ☑ Checks → ☑ Name → Send
    1. Where should answers be kept between…
       Files
    2. Which checks?
       Unit tests, Benchmarks
    3. What is it called?
       my own
    Enter send · ← back · Esc decline
    ask first · … · ? keys
    ");
    run.keys("<enter>");
    assert_eq!(
        run.sent(),
        r#"{"op":"answer","id":7,"answer":{"type":"chosen","answers":[["Files"],["Unit tests","Benchmarks"],["my own"]]}}"#
    );
}

#[test]
fn questions_have_room_on_large_screens() {
    let mut run = Run::new(80, 24);
    asked(&mut run, three());
    run.keys("<down>");
    assert_snapshot!(run.screen(), @r"
    ───
    ☐ Storage → ☐ Checks → ☐ Name → Send
    Where should answers be kept between two runs of the program?
      1. SQLite
         What SQLite means, told in one sentence.
    › 2. Files
         What Files means, told in one sentence.
      3. Other: in your own words
    ↑↓ Enter choose · ← → · Esc decline
    ask first · … · ? keys
    ");
    run.msg(Msg::Resize(200, 60)).frame().wait(500).keys("<tab>1");
    assert_snapshot!(run.screen(), @r"
    ───
    ☐ Storage → ☑ Checks → ☐ Name → Send
    Which checks?
    › 1. [x] Unit tests
         What Unit tests means, told in one sentence.
      2. [ ] End to end
         What End to end means, told in one sentence.
      3. [ ] Benchmarks
         What Benchmarks means, told in one sentence.
      4. [ ] Other: in your own words
    Space mark · Enter next · ← → · Esc decline
    ask first · … · ? keys
    ");
}

#[test]
fn questions_are_answered() {
    let check = |questions: Vec<Choices>, keys: &str, want: &str| {
        let mut run = Run::new(40, 12);
        asked(&mut run, questions);
        run.keys(keys);
        let want = if want.is_empty() { String::new() } else { format!(r#"{{"op":"answer","id":7,"answer":{want}}}"#) };
        assert_eq!(run.sent(), want, "{keys}");
    };
    let single = || vec![choices("A", "A?", false, &["x", "y"])];
    let multi = || vec![choices("A", "A?", true, &["x", "y", "z"])];
    check(single(), "1", r#"{"type":"chosen","answers":[["x"]]}"#);
    check(single(), "<down><enter>", r#"{"type":"chosen","answers":[["y"]]}"#);
    check(single(), " <down> <enter>", r#"{"type":"chosen","answers":[["y"]]}"#);
    check(single(), "<up>1 or 2<enter>", r#"{"type":"chosen","answers":[["1 or 2"]]}"#);
    check(single(), "3neither<enter>", r#"{"type":"chosen","answers":[["neither"]]}"#);
    check(single(), "3<enter>", "");
    check(single(), "3typed<up><enter>", r#"{"type":"chosen","answers":[["y"]]}"#);
    check(single(), "<esc>", r#"{"type":"no","feedback":null}"#);
    check(multi(), "<enter>", r#"{"type":"chosen","answers":[["x"]]}"#);
    check(multi(), "13<enter>", r#"{"type":"chosen","answers":[["x","z"]]}"#);
    check(multi(), "131<enter>", r#"{"type":"chosen","answers":[["z"]]}"#);
    check(multi(), "2more<enter>", r#"{"type":"chosen","answers":[["y","more"]]}"#);
    check(multi(), "4<enter>", "");
    // What was left out is gone to before anything is sent.
    check(three(), "<tab><tab><tab><enter>12<enter>", "");
    check(
        three(),
        "<tab><tab>1<enter>1<enter>1<enter>",
        r#"{"type":"chosen","answers":[["SQLite"],["Unit tests"],["cache"]]}"#,
    );
}

#[test]
fn planning_is_entered_by_a_word() {
    let mut run = Run::new(80, 24);
    let question = Question::EnterPlan { reason: Some("The change touches three wires.".into()) };
    run.event(Event::Ask(Ask { id: AskId(7), question, asker: None })).live();
    assert_snapshot!(run.screen(), @r"
    ── The agent wants to plan first ───
    The change touches three wires.
    It will read and write a plan. Nothing changes until you approve it.
    › 1. Yes, plan first                                           y
      2. No, continue without a plan                               n
    ↑↓ Enter choose · Esc no
    ask first · … · ? keys
    ");
    run.keys("1");
    assert_eq!(run.sent(), r#"{"op":"answer","id":7,"answer":{"type":"yes"}}"#);
}

#[test]
fn every_size_draws_reviews_without_a_panic() {
    for width in [1, 2, 3, 5, 10, 40, 200] {
        for height in [1, 2, 3, 4, 6, 12, 60] {
            let mut run = Run::new(width, height);
            plan(&mut run, &long_plan());
            over(&run);
            run.keys("<pgdn><down><tab>").screen();
            run.keys("4日本語 text").msg(Msg::Resize(height, width));
            over(&run);
            run.keys("<enter>");
            let mut run = Run::new(width, height);
            asked(&mut run, three());
            run.screen();
            for keys in ["<down><pgdn>", "3日本", "<enter>", "<enter>", "<enter>", "<left>1"] {
                run.keys(keys).screen();
            }
        }
    }
}
