//! Vim keys in the prompt, as they meet the rest of the screen.

use super::*;

fn run() -> Run {
    let mut run = Run::new(60, 24);
    run.app.use_vim(true);
    run.app.set_history(vec!["an earlier prompt".into()]);
    run
}

#[test]
fn esc_leaves_insert_mode_before_it_interrupts() {
    let mut run = run();
    run.busy().keys("stop now<esc>");
    assert_eq!(run.sent(), "");
    assert_snapshot!(run.screen(), @r"
    ● Waiting for the model (0 s · esc to interrupt)
    ───
    > stop no▏w
    ───
    -- NORMAL -- · ask first · …
    ");
    run.keys("<esc>");
    assert_eq!(run.sent(), r#"{"op":"interrupt"}"#);
}

#[test]
fn enter_sends_in_every_mode_and_a_new_prompt_is_written() {
    let mut run = run();
    run.keys("one two<esc>bcwthree<esc><enter>");
    let want = r#"{"op":"prompt","text":"one three","attachments":[],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
    run.keys("four<enter>");
    assert!(run.sent().contains(r#""text":"four""#));
}

#[test]
fn rows_end_in_the_history() {
    let mut run = run();
    run.keys("new<esc>k");
    assert_snapshot!(run.screen(), @r"
    ───
    > an earlier promp▏t
    ───
    -- NORMAL -- · ask first · … · ? keys
    ");
    run.keys("j");
    assert_eq!(run.app.composer.editor.text(), "new");
    run.keys("dd/earl<enter>x");
    assert_eq!(run.app.composer.editor.text(), "an earlier promp");
}

#[test]
fn a_popup_closes_with_insert_mode() {
    let mut run = run();
    run.keys("/c");
    assert!(run.app.composer.popup().is_some());
    run.keys("<esc>");
    assert!(run.app.composer.popup().is_none());
    run.keys("hx");
    assert_eq!(run.app.composer.editor.text(), "c");
    run.keys("v");
    assert_snapshot!(run.screen(), @r"
    ───
    > ▏c
    ───
    -- VISUAL -- · ask first · … · ? keys
    ");
}

#[test]
fn the_command_switches_and_keeps_it() {
    let mut run = Run::new(60, 24);
    run.app.options.commands = Registry::builtin();
    run.keys("/vim<enter>");
    assert!(run.app.composer.vim.is_some());
    let want = r#"{"op":"set","key":"tui.editor_mode","value":"vim","place":"user"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
    run.keys("/vim<enter>");
    assert!(run.app.composer.vim.is_none());
}
