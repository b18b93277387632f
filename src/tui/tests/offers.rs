//! What is offered while one types: earlier prompts, files, skills, commands.

use super::*;

#[test]
fn history_is_walked_and_searched() {
    let mut run = Run::new(60, 24);
    run.app.set_history(["fix the tests", "!cargo test", "write docs"].map(Into::into).into());
    run.keys("half<up><up>");
    assert_eq!(run.app.draft().text, "!cargo test");
    run.keys("<down><down>");
    assert_eq!(run.app.draft().text, "half");
    run.keys("<ctrl+r>test<ctrl+r>");
    assert_snapshot!(run.screen(), @r"
    ───
    search: test▏
    fix the tests
    ───
    ask first · … · ? keys
    ");
    run.keys("<esc>");
    assert_eq!(run.app.draft().text, "half");
    run.keys("<ctrl+r>cargo<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"shell","command":"cargo test"}"#));
}

#[test]
fn files_complete_after_an_at() {
    let mut run = Run::new(40, 12);
    run.keys("look at @ma");
    assert_eq!(run.sent().lines().last(), Some(r#"ListFiles("ma")"#));
    run.msg(Msg::Files { query: "m".into(), paths: vec!["stale.rs".into()] });
    run.msg(Msg::Files { query: "ma".into(), paths: vec!["src/main.rs".into(), "日本/ma p.md".into()] });
    assert_snapshot!(run.screen(), @r"
    ───
    > look at @ma▏
    ───
    › src/main.rs
      日本/ma p.md
    ask first · … · ? keys
    ");
    run.keys("<down><enter>please<enter>");
    let want = r#"{"op":"prompt","text":"look at @\"日本/ma p.md\" please","attachments":["日本/ma p.md"],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
    run.paste("/tmp/shot.png").keys("what is it?<enter>");
    let want = r#"{"op":"prompt","text":"[Image 1] what is it?","attachments":["/tmp/shot.png"],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
}

#[test]
fn resources_of_servers_complete_beside_files() {
    let mut run = Run::new(60, 12);
    let row = |mention: &str, about: &str| ResourceRow { mention: mention.into(), about: about.into() };
    let rows = vec![row("srv:demo://main", "The main thing"), row("srv:demo://other", "")];
    run.msg(Msg::Engine(Event::Listed(Listed::Resources(rows)))).keys("see @main");
    run.msg(Msg::Files { query: "main".into(), paths: vec!["src/main.rs".into()] });
    assert_snapshot!(run.screen(), @r"
    ───
    > see @main▏
    ───
    › src/main.rs                                            1/2
      srv:demo://main  The main thing
    ask first · … · ? keys
    ");
    run.keys("<down><tab><enter>");
    let sent = run.sent();
    assert!(sent.lines().last().unwrap().contains(r#""text":"see @srv:demo://main"#), "{sent}");
}

#[test]
fn skills_pop_up_as_they_want_to_look() {
    let mut run = Run::new(80, 24);
    run.keys("/wri");
    let interface = Interface {
        display_name: Some("Release notes".into()),
        short_description: Some("From the log".into()),
        brand_color: Some((255, 128, 0)),
        default_prompt: Some("since which version?".into()),
        ..Interface::default()
    };
    let skill = Command {
        name: "write-notes".into(),
        kind: crate::commands::Kind::Skill(crate::commands::Source::UserSettings),
        interface: Some(interface),
        ..Registry::builtin().find("cost").unwrap().clone()
    };
    // It comes while the list is open: an edited skill is there at the next keystroke.
    run.msg(Msg::Engine(Event::Commands { registry: Registry::of(vec![skill]) }));
    let screen = run.screen();
    assert!(screen.contains("› /write-notes  Release notes: From the log") && screen.contains("  user\n"), "{screen}");
    run.keys("<tab>");
    assert!(run.screen().contains("> /write-notes ▏since which version?"), "{}", run.screen());
    run.keys("x");
    assert!(!run.screen().contains("since which"), "{}", run.screen());
}

#[test]
fn commands_pop_up() {
    let mut run = Run::new(60, 24);
    run.keys("/c");
    assert_snapshot!(run.screen(), @r"
    ───
    > /c▏
    ───
    › /clear  Start over with an empty conversation          1/2
      /cost   What this session has cost
    ask first · … · ? keys
    ");
    run.keys("<esc>zz<enter>");
    assert_snapshot!(run.screen(), @r"
    ───
    > /czz▏
    ───
    unknown command /czz: /help lists all commands
    ");
}

#[test]
fn what_is_typed_behind_the_name_does_what_it_says() {
    for (line, at_once, later) in [
        ("fix it", vec!["fix it"], ""),
        ("!ls", vec!["shell ls"], ""),
        ("!", vec!["!"], ""),
        ("/cost", vec![], r#"{"op":"command","name":"cost","args":""}"#),
        ("/usr/bin is what?", vec![], r#"{"op":"prompt","text":"/usr/bin is what?""#),
        ("/nosuch thing", vec![], ""),
    ] {
        let mut run = Run::new(60, 24);
        let ops = run.app.begin_with(line.to_owned());
        let shown = |op: &Op| match op {
            Op::Prompt { text, .. } => Some(text.clone()),
            Op::Shell { command } => Some(format!("shell {command}")),
            _ => None,
        };
        assert_eq!(ops.iter().filter_map(shown).collect::<Vec<_>>(), at_once, "{line}");
        // Skills are known by then, too.
        let registry = run.app.options.commands.clone();
        run.event(Event::Commands { registry: registry.clone() });
        let sent = run.sent();
        assert!(sent.contains(later) && (!later.is_empty() || sent.is_empty()), "{line}: {sent}");
        assert_eq!(run.screen().contains("> /nosuch thing"), line.starts_with("/nosuch"), "{line}");
        run.event(Event::Commands { registry });
        assert_eq!(run.sent(), "", "once: {line}");
    }
}
