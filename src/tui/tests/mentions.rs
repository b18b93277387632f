//! Skills named in the middle of a prompt: completed, lit up, and sent as part of the text.

use super::*;

/// A run that knows one skill beside its commands.
fn run() -> Run {
    let mut run = Run::new(60, 24);
    let skill = Command {
        name: "commit".into(),
        description: "Commits the work".into(),
        kind: crate::commands::Kind::Skill(crate::commands::Source::Bundled),
        ..Registry::builtin().find("cost").unwrap().clone()
    };
    let builtins = run.app.options.commands.all().cloned();
    let registry = Registry::of(builtins.chain([skill]).collect());
    run.event(Event::Commands { registry });
    run
}

/// The text of the prompt's first row, with what is lit up in brackets.
fn lit(run: &mut Run) -> String {
    let (width, height) = run.app.size;
    let rows = view::height(&run.app, 0, width, height);
    let mut buf = Buffer::empty(Rect::new(0, 0, width, rows));
    view::draw(&run.app, &[], buf.area, &mut buf, run.now);
    let accent = run.app.options.theme.accent.fg;
    let mut text = String::new();
    for x in 2..width {
        let cell = &buf[(x, 1)];
        let on = Some(cell.fg) == accent && cell.symbol() != " ";
        match (on, text.ends_with(']')) {
            (true, true) => text.insert_str(text.len() - 1, cell.symbol()),
            (true, false) => text.push_str(&format!("[{}]", cell.symbol())),
            (false, _) => text.push_str(cell.symbol()),
        }
    }
    text.trim_end().to_owned()
}

#[test]
fn a_skill_is_completed_in_the_middle_of_a_line() {
    let mut run = run();
    run.keys("use /c");
    assert_snapshot!(run.screen(), @r"
    ───
    > use /c▏
    ───
    › /commit  Commits the work                          bundled
    ask first · … · ? keys
    ");
    run.keys("<tab>here");
    assert_eq!(lit(&mut run), "use [/commit] here");
    run.keys("<enter>");
    let want = r#"{"op":"prompt","text":"use /commit here","attachments":[],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
}

#[test]
fn enter_sends_the_text_as_it_stands() {
    let mut run = run();
    run.keys("what is in /com<enter>");
    let want = r#"{"op":"prompt","text":"what is in /com","attachments":[],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
}

#[test]
fn only_names_of_skills_light_up() {
    let mut run = run();
    for (typed, want) in [
        ("use /commit here", "use [/commit] here"),
        ("(/commit), then /cost", "([/commit]), then /cost"),
        ("see /commit/x and a/commit", "see /commit/x and a/commit"),
        ("/commits", "/commits"),
        ("/commit ", "[/commit]"),
    ] {
        run.app.composer.clear();
        run.keys(typed).keys("<esc>");
        assert_eq!(lit(&mut run), want, "{typed}");
    }
    // A skill that is gone is a word like any other.
    run.app.composer.clear();
    run.keys("use /commit here");
    let registry = run.app.options.commands.clone();
    let rest = registry.all().filter(|command| command.name != "commit").cloned().collect();
    run.event(Event::Commands { registry: Registry::of(rest) });
    assert_eq!(lit(&mut run), "use /commit here");
}
