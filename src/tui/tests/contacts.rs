//! The first contact of a command with a host, as it is asked about.

use insta::assert_snapshot;

use super::Run;
use crate::message::CallId;
use crate::protocol::*;

pub(super) fn connect() -> Question {
    let rule = |host: &str| format!("WebFetch(domain:{host})");
    Question::Connect {
        call: CallId::nth(1),
        command: "cargo build".into(),
        place: "crates.io:443".into(),
        reasons: vec!["no rule allows crates.io".into()],
        suggestions: vec![rule("crates.io")],
        preset: Some(PresetGrant { name: "cargo".into(), rules: vec![rule("crates.io"), rule("static.crates.io")] }),
    }
}

#[test]
fn a_host_is_allowed_once_or_with_all_that_its_program_needs() {
    for (keys, want) in [
        ("y", r#"{"type":"yes"}"#),
        ("2", r#"{"type":"always","rules":["WebFetch(domain:crates.io)"],"scope":"session"}"#),
        (
            "p",
            r#"{"type":"always","rules":["WebFetch(domain:crates.io)","WebFetch(domain:static.crates.io)"],"scope":"session"}"#,
        ),
        ("<down><down><right>p", r#""scope":"project"}"#),
        ("<esc>", r#"{"type":"no","feedback":null}"#),
    ] {
        let mut run = Run::new(80, 24);
        run.event(Event::Ask(Ask { id: AskId(1), question: connect(), asker: None }));
        run.live();
        if keys == "y" {
            assert_snapshot!(run.screen(), @r"
            ── A command wants to connect to crates.io:443 ───
            cargo build
            It waits for crates.io:443.
            · no rule allows crates.io
            › 1. Yes, for this command                                                y
              2. Yes, always: WebFetch(domain:crates.io)   ‹session› project  me     ←→
              3. Always ‹session›, all that cargo needs: crates.io, static.crates.io  p
              4. No, and say why                                                      n
            ↑↓ Enter choose · Esc no
            ask first · … · ? keys
            ");
        }
        run.keys(keys);
        let sent = run.sent();
        assert!(sent.contains(want), "{keys}: {sent}");
    }
}
