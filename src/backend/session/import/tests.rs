//! What becomes of a session, as its log tells it.

use super::*;
use crate::session::Session;
use crate::session::entry::EntryKind;
use crate::session::recall::pieces;

/// What the log of the only session of a program says: entries with a text, and what a model would read of it.
fn check(source: Source, file: &str, lines: &[&str], want: &str) {
    let temp = tempfile::tempdir().unwrap();
    let (home, root) = (temp.path().join("home"), temp.path().join("root"));
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.join("\n")).unwrap();
    let mut outcomes = Vec::new();
    import((source, &root), &home, "1", (UNIX_EPOCH, Run::Real), |done| outcomes.push(done)).unwrap();
    let [Imported { id, outcome: Outcome::New, written, .. }] = outcomes.as_slice() else {
        panic!("{want}: {outcomes:?}");
    };
    let session = Session::open(&home, id, SystemTime::now).unwrap();
    assert_eq!(session.notices(), &[] as &[String]);
    let mut told = Vec::new();
    for entry in (0..session.next_seq()).filter_map(|seq| session.entry(seq)) {
        for piece in pieces(&entry.kind) {
            let tool = piece.tool.map(|tool| format!(" {tool}")).unwrap_or_default();
            told.push(format!("{}{tool}: {}", piece.kind.name(), short(&piece.text)));
        }
        if let EntryKind::Title { title } = entry.kind {
            told.push(format!("title: {title}"));
        }
    }
    let read = session.context().messages().iter().filter(|message| message.agent_visible).count();
    told.push(format!("{} in {}, {read} in the context", written.last_ms, session.header().cwd.display()));
    assert_eq!(told.join("\n"), want);
}

/// In one line, with letters for runs of 1,024.
fn short(text: &str) -> String {
    text.replace('\n', "|").replace(&"a".repeat(1 << 10), "A").replace(&"é".repeat(1 << 10), "E")
}

const CLAUDE: &str = "-w/11111111-2222-4333-8444-555555555555.jsonl";

#[test]
fn only_the_branch_that_counts_is_imported() {
    let user = |uuid: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"cwd":"/w","message":{{"content":"{text}"}}}}"#
        )
    };
    let lines = [
        user("a", "null", "first"),
        user("b", "\"a\"", "an earlier try"),
        user("c", "\"a\"", "the last try"),
        // A leaf that is nobody's word leads to what it hangs on.
        r#"{"type":"system","uuid":"s","parentUuid":"c","content":"x"}"#.to_owned(),
        r#"{"type":"summary","summary":"A title","leafUuid":"c"}"#.to_owned(),
        r#"{"type":"user","uuid":"d","parentUuid":"b","isMeta":true,"message":{"content":"meta"}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        Source::Claude,
        CLAUDE,
        &lines,
        "prompt: first\nprompt: the last try\ntitle: A title\n0 in /w, 2 in the context",
    );
    // Entries that follow one another in a circle end somewhere.
    let circle = [user("a", "\"b\"", "one"), user("b", "\"a\"", "two"), user("c", "\"b\"", "three")];
    let circle: Vec<&str> = circle.iter().map(String::as_str).collect();
    check(Source::Claude, CLAUDE, &circle, "prompt: one\nprompt: two\nprompt: three\n0 in /w, 3 in the context");
}

#[test]
fn a_copy_of_our_own_session_is_imported_only_once_somebody_else_continued_it() {
    let line = |uuid: &str, by: &str| {
        format!(r#"{{"type":"user","uuid":"{uuid}","entrypoint":"{by}","cwd":"/w","message":{{"content":"by {by}"}}}}"#)
    };
    for (second, want) in [(OWN, false), ("cli", true)] {
        let temp = tempfile::tempdir().unwrap();
        let (home, root) = (temp.path().join("home"), temp.path().join("root"));
        let path = root.join(CLAUDE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{}\n{}\n", line("a", OWN), line("b", second))).unwrap();
        let mut outcomes = Vec::new();
        let run = (UNIX_EPOCH, Run::Real);
        import((Source::Claude, &root), &home, "1", run, |done| outcomes.push(done)).unwrap();
        assert_eq!(matches!(outcomes[0].outcome, Outcome::New), want, "{second}: {outcomes:?}");
    }
}

#[test]
fn every_call_has_one_result() {
    let lines = [
        r#"{"timestamp":"2026-01-01T00:00:01Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}","call_id":"1"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"not JSON","call_id":"2"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"2","output":"two"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"2","output":"again"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"9","output":"nobody's"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done, api_key=abcdefg8"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","ro"#,
    ];
    let want = "prompt: go|[input_image]\ncall Bash: command: ls\ncall Bash: arguments: not JSON\n\
                result: No result was recorded.\nresult: two\nreply: done, api_key=[hidden]\n\
                1767225601000 in /w, 4 in the context";
    let file = "sessions/2026/01/01/rollout-2026-01-01T00-00-00-0199a1b2-0000-7000-8000-00000000c0de.jsonl";
    check(Source::Codex, file, &lines, want);
}

#[test]
fn long_lines_and_long_texts_are_bounded() {
    let long = format!("{}middle{}", "a".repeat(40 << 10), "é".repeat(10 << 10));
    let prompt = format!(r#"{{"type":"message","message":{{"role":"user","content":"{long}"}}}}"#);
    let huge = format!(r#"{{"type":"message","message":{{"role":"user","content":"{}"}}}}"#, "x".repeat(33 << 20));
    let want = format!(
        "prompt: {}|[28678 bytes were left out on import]|EEEE\nprompt: after\n0 in /w, 2 in the context",
        "A".repeat(24)
    );
    let lines = [
        r#"{"type":"session","id":"p","cwd":"/w"}"#,
        &prompt,
        &huge,
        r#"{"type":"message","message":{"role":"user","content":"after"}}"#,
    ];
    check(Source::Pi, "--w--/1_p.jsonl", &lines, &want);
}

#[cfg(unix)]
#[test]
fn links_and_odd_files_are_left_out() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    fs::create_dir_all(at("root/-w")).unwrap();
    let line = r#"{"type":"user","uuid":"a","parentUuid":null,"cwd":"/w","message":{"content":"not yours"}}"#;
    fs::write(at("11111111-2222-4333-8444-555555555555.jsonl"), line).unwrap();
    fs::write(at("root/-w/notes.jsonl"), line).unwrap();
    std::os::unix::fs::symlink(at("11111111-2222-4333-8444-555555555555.jsonl"), at("root").join(CLAUDE)).unwrap();
    std::os::unix::fs::symlink(temp.path(), at("root/-link")).unwrap();
    let mut told = 0;
    import((Source::Claude, &at("root")), &at("home"), "1", (UNIX_EPOCH, Run::Real), |_| told += 1).unwrap();
    assert_eq!(told, 0);
}
