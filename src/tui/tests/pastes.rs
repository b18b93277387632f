//! Text that comes in one go, and pictures.

use super::*;

#[test]
fn text_that_comes_in_one_go_runs_no_shell_line() {
    for (before, text, draft) in [
        ("", "!touch x\r", "!touch x\n"),
        ("", "!touch x\r!touch y\r", "!touch x\n!touch y\n"),
        ("!", "touch x\r", "!touch x\n"),
        ("!touch", " x\r", "!touch x\n"),
    ] {
        let mut run = Run::new(80, 24);
        run.keys(before);
        for c in text.chars() {
            let code = if c == '\r' { KeyCode::Enter } else { KeyCode::Char(c) };
            run.msg(Msg::Written(KeyEvent::from(code)));
        }
        assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), ("", draft), "{before:?} {text:?}");
    }
}

#[test]
fn a_line_that_comes_in_one_go_is_a_shell_line_all_the_same() {
    let mut run = Run::new(60, 24);
    run.msg(Msg::Paste { text: "!git status".into(), image: None }).keys("<enter>");
    assert!(run.sent().ends_with(r#"{"op":"shell","command":"git status"}"#));
    run.msg(Msg::Paste { text: "!".into(), image: None }).keys("<enter>");
    assert!(!run.sent().contains("shell"));
}

#[test]
fn a_prompt_comes_back_with_its_pastes_and_images() {
    let mut run = Run::new(60, 24);
    let lines: String = (1..=20).map(|n| format!("row {n}\n")).collect();
    run.msg(Msg::Paste { text: lines.clone(), image: None });
    run.msg(Msg::Paste {
        text: "/tmp/a.png".into(),
        image: Some(crate::tui::composer::chip::Picture { path: "/tmp/a.png".into(), bytes: 12_000 }),
    })
    .keys(" and?<enter>");
    let sent = run.sent();
    assert!(sent.contains("/tmp/a.png") && sent.contains(r#""data":[{"start":0,"end":131}]"#), "{sent}");
    for keys in ["<up>", "<ctrl+r>and<enter>"] {
        run.keys("<ctrl+c>").keys(keys);
        assert!(
            run.screen().contains("[Pasted 20 lines]") && run.screen().contains("[Image 1: a.png, 12 kB]"),
            "{}",
            run.screen()
        );
    }
    run.keys("<enter>");
    let again = run.sent();
    assert!(again.contains("/tmp/a.png") && again.contains("row 20"), "{again}");
}

#[test]
fn the_clipboard_is_waited_for_and_can_be_left() {
    let picture = || Msg::Picture(Ok(crate::tui::composer::chip::Picture { path: "/tmp/a.png".into(), bytes: 12_000 }));
    for (keys, sent, shown) in [
        ("look<ctrl+v>", "PasteImage", "> look[Image 1: a.png, 12 kB]"),
        // What is typed meanwhile does not cancel it, but the prompt waits.
        ("<ctrl+v>look <enter>", "PasteImage", "> look [Image 1: a.png, 12 kB]"),
        ("look<ctrl+v><ctrl+v>", "PasteImage", "> look[Image 1: a.png, 12 kB]"),
        ("look<ctrl+v><esc>", "PasteImage\nLeaveImage", "> look▏"),
        ("look<ctrl+v><ctrl+c>", "PasteImage\nLeaveImage", "> look▏"),
    ] {
        let mut run = Run::new(60, 24);
        run.keys(keys);
        let effects = run.sent();
        let effects: Vec<&str> = effects.lines().filter(|effect| effect.ends_with("Image")).collect();
        run.msg(picture());
        assert!(effects.join("\n") == sent && run.screen().contains(shown), "{keys}: {effects:?}\n{}", run.screen());
        // Enter and a second picture work as ever.
        run.keys("<ctrl+v>").msg(picture());
        assert!(run.screen().contains("a.png, 12 kB]"), "{}", run.screen());
    }
}

#[test]
fn what_was_said_goes_with_the_next_key_once_it_was_read() {
    let mut run = Run::new(60, 24);
    let why = "no image in the clipboard";
    run.keys("<ctrl+v>").msg(Msg::Picture(Err(why.into()))).wait(1_000).keys("a");
    assert!(run.screen().contains(why), "{}", run.screen());
    run.wait(600);
    assert!(run.screen().contains(why), "{}", run.screen());
    run.keys("b");
    assert!(!run.screen().contains(why), "{}", run.screen());
}

#[test]
fn large_texts_are_no_trouble() {
    let line = "日本 word ".repeat(5_000);
    let mut run = Run::new(40, 12);
    run.paste(&line).keys("!");
    assert_eq!(run.app.draft().text, format!("{line}!"));
    // What the editor left alone stays folded.
    run.msg(Msg::Edited(Ok(format!("{line}\nend\n"))));
    assert!(run.screen().contains("[Pasted 40000 characters]"), "{}", run.screen());
    let line = line.replace("word", "text");
    run.msg(Msg::Edited(Ok(format!("{line}\nend\n")))).keys("<up>x<ctrl+_>");
    assert_eq!(run.app.draft().text, format!("{line}\nend"));
    assert_eq!(run.screen().lines().count(), 7);
}
