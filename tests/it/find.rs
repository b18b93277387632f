//! What was said in any session is found: on the command line and in the list.

use super::support::program::Program;
use super::terminal::{launch, leave};

/// Has two sessions behind it.
fn after_sessions() -> Program {
    let program = Program::new();
    let script = program.script("two.yaml", "- reply: [text: Noted the place.]\n");
    for prompt in ["The heron nests on port 8731, its token: abcdef123", "Otters swim in the harbor"] {
        let ran = program.run(&["-p", prompt, "--offline-script", &script]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    program
}

#[test]
fn the_command_prints_places_as_text_and_json() {
    let program = after_sessions();
    for (args, code, want) in [
        (vec!["find", "heron", "ports"], 0, "    turn 1 prompt: The heron nests on port 8731, its token: [hidden]\n"),
        (vec!["find", "/ott[a-z]+ swim/"], 0, "    turn 1 prompt: Otters swim in the harbor\n"),
        (vec!["find", "otters", "--repo", "--since", "2d"], 0, "    turn 1 prompt: Otters swim in the harbor\n"),
        (vec!["find", "abcdef123"], 1, "nothing found\n"),
        (vec!["find", "walrus"], 1, "nothing found\n"),
        (vec!["find", "/(/"], 2, "error: the regular expression is invalid: unclosed group\n"),
        (vec!["find", ""], 2, "error: nothing to look for: type a word\n"),
        (vec!["-p", "/find otters"], 2, "/find needs a terminal: `cocode find words` prints the same"),
        (vec!["find", "otters", "--since", "soon"], 2, "`soon` is not an age such as 12h, 30d or 8w"),
    ] {
        let ran = program.run(&args);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && said.contains(want), "{args:?}: {:?} {said}", ran.code);
    }
    let ran = program.run(&["find", "--json", "heron"]);
    let place: serde_json::Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&place["kind"], &place["turn"]), (&"prompt".into(), &1.into()), "{place}");
    // A session is named once, before all of its places.
    let script = program.script("one.yaml", "- reply: [text: Good.]\n");
    assert_eq!(program.run(&["-c", "-p", "The heron is back", "--offline-script", &script]).code, Some(0));
    let ran = program.run(&["find", "heron", "otters"]);
    let (places, heads): (Vec<&str>, Vec<&str>) = ran.out.lines().partition(|line| line.starts_with("    "));
    assert_eq!((places.len(), heads.len()), (3, 2), "{}", ran.out);
}

#[test]
fn the_list_searches_as_you_type_and_quotes() {
    let program = after_sessions();
    let mut screen = launch(&program, (100, 30), &["--offline"]);
    screen.wait_text("Ask anything");
    screen.send("/find her\r");
    screen.wait_text("› The heron nests");
    screen.wait_text("turn 1 · prompt");
    screen.send("\x7f\x7f\x7fotter");
    screen.wait_text("› Otters swim");
    screen.send("\t");
    screen.wait_text("> > Otters swim in the harbor");
    screen.send("\x03");
    leave(&mut screen);
}
