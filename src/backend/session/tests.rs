//! What holds for every log, however it came to be: cut at any byte, folded at once or entry by entry.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use serde_json::json;

use super::entry::{Boundary, ClippedBlock, EntryKind, Restore, Seq};
use super::*;
use crate::message::{
    BlobId, Block, CallId, Effect, Kind, Message, Outcome, Role, Todo, TodoStatus, ToolCall, ToolResult, Usage,
};
use crate::protocol::HistoryItem;

fn message(message: Message) -> EntryKind {
    EntryKind::Message { message: Arc::new(message) }
}

fn call(n: u64) -> Block {
    Block::ToolCall(ToolCall::new(CallId::nth(n), "Read", json!({"file_path": "/a"})))
}

fn result(n: u64) -> ToolResult {
    let todo = Todo { content: format!("todo {n}"), active_form: String::new(), status: TodoStatus::Pending };
    let effects = match n % 4 {
        0 => vec![Effect::Seen { path: PathBuf::from(format!("/f{}", n % 3)), sha256: n.to_string() }],
        1 => vec![Effect::Todos { items: vec![todo] }],
        2 => vec![Effect::Cwd { path: PathBuf::from(format!("/d{n}")) }],
        _ => vec![],
    };
    let text = format!("result {n} \"type\":\"todos\" héé {}", "x".repeat(n as usize % 50));
    ToolResult { effects, ..ToolResult::of_text(CallId::nth(n), Outcome::Ok, text) }
}

fn boundary(keep_from: Seq) -> EntryKind {
    EntryKind::CompactBoundary(Boundary {
        trigger: Default::default(),
        tier: "full".into(),
        pre_tokens: 9,
        post_tokens: 3,
        keep_from,
        opening: vec![],
        summary: Some(Arc::new(Message { kind: Kind::CompactSummary, ..Message::prompt("summary") })),
        attachments: vec![Arc::new(Message::reminder("file"))],
        effects: vec![Effect::Seen { path: PathBuf::from("/kept"), sha256: "k".into() }],
        archived: None,
        ledger: Default::default(),
        receipt: Default::default(),
    })
}

/// Each call is answered exactly once, right after its reply, in order; nothing else answers anything.
fn assert_valid(context: &Context) {
    let messages = context.messages();
    let mut known = HashSet::new();
    let mut awaited: Vec<CallId> = Vec::new();
    for message in &messages {
        assert!(!message.blocks.is_empty() && message.agent_visible);
        let results: Vec<CallId> = message.results().map(|result| result.id.clone()).collect();
        assert_eq!(results, std::mem::take(&mut awaited), "in {messages:#?}");
        if !results.is_empty() {
            assert!(matches!(message.blocks[0], Block::ToolResult(_)) && message.role == Role::User);
        }
        if message.role == Role::Assistant {
            awaited = message.calls().map(|call| call.id.clone()).collect();
            assert!(awaited.iter().all(|id| known.insert(id.clone())), "an id twice in {messages:#?}");
        } else {
            assert_eq!(message.calls().count(), 0);
        }
    }
    assert_eq!(awaited, [], "unanswered in {messages:#?}");
}

fn assert_same(live: &Session, read: &Session) {
    assert_eq!(live.context(), read.context());
    assert_eq!(live.facts(), read.facts());
    assert_eq!(live.next_call(), read.next_call());
    assert_eq!(live.next_seq(), read.next_seq());
    assert_eq!(live.prompts().unwrap(), read.prompts().unwrap());
    assert_eq!(live.folds.count, read.folds.count);
    let changes = |session: &Session| serde_json::to_value(&session.files().changes).unwrap();
    assert_eq!(changes(live), changes(read));
}

/// Makes an entry of three arbitrary numbers; calls and entries that it refers to mostly exist.
fn entry(session: &Session, kind: u8, a: u64, b: u64) -> EntryKind {
    let next = session.next_seq();
    let (seq, old) = (a % (next + 1), a % session.next_call().max(1) + 1);
    match kind {
        0 | 1 => message(Message::prompt(format!("prompt {a}"))),
        2 | 3 => {
            let fresh = session.next_call();
            let mut blocks: Vec<Block> = (0..b % 4).map(|n| call(fresh + n)).collect();
            blocks.insert(0, Block::text("reply"));
            if a.is_multiple_of(13) {
                blocks.push(call(old));
            }
            let usage = a.is_multiple_of(2).then_some(Usage { input: a, output: b, ..Usage::default() });
            message(Message { usage, ..Message::reply(blocks) })
        }
        4 | 5 => message(Message::tool_results(session.context().open_calls().iter().map(answer).collect())),
        6 => {
            let mut some: Vec<ToolResult> = session.context().open_calls().iter().map(answer).collect();
            let turn = a as usize % some.len().max(1);
            some.rotate_left(turn);
            some.truncate(1 + b as usize % 2);
            some.push(result(old));
            let mut results = Message::tool_results(some);
            results.blocks.push(Block::text("and more"));
            message(results)
        }
        7 | 8 => EntryKind::ReplyPart { text: format!("part {a} "), thinking: "t".repeat(b as usize % 2) },
        9 => EntryKind::ReplyDiscarded { reason: "cut".into() },
        10 => EntryKind::TurnStarted,
        11 => EntryKind::TurnEnded { end: "done".into(), usage: Usage { input: b % 2, ..Usage::default() } },
        12 => EntryKind::ToolResultsCleared { calls: vec![CallId::nth(old)], persisted: vec![Some("/saved".into())] },
        13 => EntryKind::ToolResultsArchived {
            calls: vec![CallId::nth(old), CallId::nth(old + 1)],
            digest: Arc::new(Message { kind: Kind::ToolSummary, ..Message::prompt("digest") }),
        },
        14 => EntryKind::BlocksClipped {
            blocks: vec![ClippedBlock { seq, block: b as usize % 3, head: 8, tail: 8, persisted: None }],
        },
        15 => boundary(seq),
        16 => EntryKind::BoundaryUndone { seq },
        17 => EntryKind::Rewind { to: seq },
        18 => message(Message::reminder("reminder")),
        19 => message(Message::notice("notice")),
        20 => EntryKind::ModelChanged { model: format!("m{}", a % 2), borrowed: false },
        21 => EntryKind::FileBefore { path: file(a), blob: None, mode: None, folders: b as usize % 2 },
        22 => EntryKind::FileAfter { path: file(a), blob: Some(BlobId(b.to_string())), mode: None, temporary: None },
        23 => EntryKind::FilesSettled { paths: vec![file(a)] },
        24 => {
            let how = [Restore::Undo, Restore::Redo, Restore::Rewind][b as usize % 3];
            EntryKind::FilesRestored { to: seq, how, files: vec![], refused: vec![file(b)], along: vec![] }
        }
        _ => EntryKind::Spent {
            what: "summary".into(),
            model: "m".into(),
            usage: Usage { input: a, ..Usage::default() },
        },
    }
}

fn file(n: u64) -> PathBuf {
    PathBuf::from(format!("/f{}", n % 3))
}

fn answer(id: &CallId) -> ToolResult {
    result(id.as_str()["call_".len()..].parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn folded_as_it_grows_and_read_back_are_the_same(
        rows in prop::collection::vec((0u8..26, 0u64..1000, 0u64..1000), 1..60),
        cut in 0.0f64..1.0,
    ) {
        let home = tempfile::tempdir().unwrap();
        let mut session = Session::create(home.path(), Path::new("/code"), "1", SystemTime::now);
        session.append(EntryKind::TurnStarted).unwrap();
        for (kind, a, b) in rows {
            let entry = entry(&session, kind, a, b);
            session.append(entry).unwrap();
            assert_valid(session.context());
        }
        let read = Session::open_read_only(home.path(), session.id(), SystemTime::now).unwrap();
        assert_same(&session, &read);
        prop_assert_eq!(read.notices(), [""; 0]);
        let fork = Session::fork(home.path(), session.id(), None, SystemTime::now).unwrap();
        prop_assert_eq!(fork.context(), session.context());

        let bytes = fs::read(session.log()).unwrap();
        let id = session.id().to_owned();
        drop(session);
        let log = read.log();
        fs::write(log, &bytes[..(bytes.len() as f64 * cut) as usize]).unwrap();
        if let Ok(cut) = Session::open(home.path(), &id, SystemTime::now) {
            assert_valid(cut.context());
        }
    }
}

#[test]
fn a_boundary_costs_what_stays_and_not_the_log() {
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::create(home.path(), Path::new("/code"), "1", SystemTime::now);
    for entry in [
        message(Message::prompt("first")),
        message(Message::reply(vec![call(1), call(2)])),
        message(Message::tool_results(vec![result(1), result(2)])),
        message(Message::prompt("second")),
        message(Message::reply(vec![call(3), call(4)])),
        message(Message::tool_results(vec![result(3), result(4)])),
        EntryKind::ToolResultsCleared { calls: vec![CallId::nth(1), CallId::nth(3)], persisted: vec![None, None] },
        EntryKind::BlocksClipped { blocks: vec![ClippedBlock { seq: 4, block: 0, head: 2, tail: 2, persisted: None }] },
    ] {
        session.append(entry).unwrap();
    }
    let (log, aside) = (session.log().to_owned(), home.path().join("aside"));
    fs::rename(&log, &aside).unwrap();
    session.append(boundary(4)).unwrap();
    fs::rename(&aside, &log).unwrap();
    assert_valid(session.context());
    let read = Session::open_read_only(home.path(), session.id(), SystemTime::now).unwrap();
    assert_same(&session, &read);
    assert_eq!(session.context().whole_results().count(), 1);
}

/// A session that has something of everything; its id and log.
fn sample(home: &Path) -> (String, PathBuf) {
    let mut session = Session::create(home, Path::new("/code"), "1", SystemTime::now);
    session.append(EntryKind::ModelChanged { model: "m".into(), borrowed: false }).unwrap();
    for entry in [
        EntryKind::TurnStarted,
        message(Message::prompt("first 日本")),
        EntryKind::ReplyPart { text: "I ".into(), thinking: "hm".into() },
        EntryKind::ReplyPart { text: "read".into(), thinking: String::new() },
        message(Message::reply(vec![Block::text("I read"), call(1), call(4)])),
        message(Message::prompt("steered")),
        message(Message::tool_results(vec![result(1), result(4)])),
        EntryKind::TurnEnded { end: "done".into(), usage: Usage::default() },
        boundary(6),
        EntryKind::TurnStarted,
        message(Message::prompt("second")),
        EntryKind::Rewind { to: 12 },
        EntryKind::BoundaryUndone { seq: 10 },
        EntryKind::ReplyPart { text: "cut".into(), thinking: String::new() },
    ] {
        session.append(entry).unwrap();
    }
    (session.id().to_owned(), session.log().to_owned())
}

#[test]
fn an_answer_that_a_kill_cut_off_says_so() {
    let home = tempfile::tempdir().unwrap();
    let (id, log) = sample(home.path());
    let notes = |items: Vec<HistoryItem>| -> usize {
        let cut = |item: &&HistoryItem| matches!(item, HistoryItem::Note { text } if text.starts_with("cut off"));
        items.iter().filter(cut).count()
    };
    let mut session = Session::open(home.path(), &id, SystemTime::now).unwrap();
    assert_eq!(notes(session.history(9).unwrap().0), 1);
    // In a session that runs it may still grow.
    assert_eq!(notes(read_history(&log).unwrap()), 0);
    session.append(EntryKind::TurnStarted).unwrap();
    assert_eq!(notes(read_history(&log).unwrap()), 1);
}

#[test]
fn a_log_cut_at_any_byte_keeps_every_whole_line() {
    let home = tempfile::tempdir().unwrap();
    let (id, log) = sample(home.path());
    let bytes = fs::read(&log).unwrap();
    let at_line_end = |cut: usize| bytes[cut.saturating_sub(1)..bytes.len().min(cut + 2)].contains(&b'\n');
    // Every seventh byte, and those around the end of a line: each costs two readings of the log.
    for cut in (0..=bytes.len()).filter(|cut| cut % 7 == 0 || at_line_end(*cut)) {
        fs::write(&log, &bytes[..cut]).unwrap();
        // A line without its newline is whole, too.
        let whole =
            bytes[..cut].iter().filter(|byte| **byte == b'\n').count() + usize::from(bytes.get(cut) == Some(&b'\n'));
        let mut session = match Session::open(home.path(), &id, SystemTime::now) {
            Err(Error::NotASession { .. }) if whole == 0 => continue,
            session => session.unwrap(),
        };
        assert_eq!(session.next_seq(), whole as Seq, "cut at {cut}");
        assert_eq!(fs::read(&log).unwrap()[..], session_prefix(&bytes, whole, cut)[..], "cut at {cut}");
        let torn = cut != 0 && bytes[cut - 1] != b'\n' && bytes.get(cut).is_some_and(|byte| *byte != b'\n');
        assert_eq!(session.notices().len(), usize::from(torn), "cut at {cut}: {:?}", session.notices());
        assert_valid(session.context());
        session.append(message(Message::prompt("again"))).unwrap();
        assert_valid(session.context());
        let read = Session::open_read_only(home.path(), &id, SystemTime::now).unwrap();
        assert_same(&session, &read);
        assert_eq!(read.notices(), [""; 0]);
    }
}

/// The log after it was opened: a torn line is still there until the next write, a missing newline is added.
fn session_prefix(bytes: &[u8], whole: usize, cut: usize) -> Vec<u8> {
    let completed = bytes.get(cut) == Some(&b'\n');
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if completed { lines[..whole].concat() } else { bytes[..cut].to_vec() }
}

#[test]
fn damage_costs_the_damaged_lines_alone() {
    let home = tempfile::tempdir().unwrap();
    let (id, log) = sample(home.path());
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for damaged in 0..lines.len() {
        for damage in ["", "{", "\u{0}\u{0}", "null", &lines[damaged][..lines[damaged].len() / 2]] {
            let mut lines = lines.clone();
            lines[damaged] = damage;
            fs::write(&log, lines.join("\n") + "\n").unwrap();
            let session = Session::open_read_only(home.path(), &id, SystemTime::now).unwrap();
            assert_valid(session.context());
            let want = usize::from(!damage.is_empty()) + usize::from(damaged == 0);
            assert_eq!(session.notices().len(), want, "{damaged} {damage:?}: {:?}", session.notices());
            assert_eq!(session.folds.lines.len(), lines.len() - 1);
        }
    }
    // Lines that stand twice count once; gaps do not matter; Windows line ends neither.
    let twice: String = lines.iter().flat_map(|line| [line, "\r\n", line, "\n"]).collect();
    fs::write(&log, twice).unwrap();
    let session = Session::open_read_only(home.path(), &id, SystemTime::now).unwrap();
    assert_eq!(session.folds.lines.len(), lines.len());
    fs::write(&log, text.repeat(2)).unwrap();
    assert_valid(Session::open_read_only(home.path(), &id, SystemTime::now).unwrap().context());
}

#[test]
fn nothing_is_left_of_a_session_without_a_prompt() {
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::create(home.path(), Path::new("/code"), "1", SystemTime::now);
    session.append(EntryKind::ModelChanged { model: "m".into(), borrowed: false }).unwrap();
    session.sync().unwrap();
    assert!(session.is_empty());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    session.append(message(Message::prompt("go"))).unwrap();
    assert_same(&session, &Session::open_read_only(home.path(), session.id(), SystemTime::now).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(session.log()), mode(session.store().dir())), (0o600, 0o700));
    }
}

#[test]
fn one_process_writes_others_read_or_fork() {
    let home = tempfile::tempdir().unwrap();
    let (id, _) = sample(home.path());
    let first = Session::open(home.path(), &id, SystemTime::now).unwrap();
    assert!(
        matches!(Session::open(home.path(), &id, SystemTime::now), Err(Error::Locked { session }) if session == id)
    );
    let mut reader = Session::open_read_only(home.path(), &id, SystemTime::now).unwrap();
    assert!(matches!(reader.append(EntryKind::TurnStarted), Err(Error::ReadOnly)));
    assert!(matches!(reader.undo(), Err(Error::Nothing("undo"))));
    let blob = first.store().put_blob(b"bytes").unwrap();
    let mut fork = Session::fork(home.path(), &id, Some(4), SystemTime::now).unwrap();
    assert_eq!(fork.header().forked_from.as_deref(), Some(id.as_str()));
    assert_eq!((fork.next_seq(), fork.title()), (4, Some("first 日本")));
    assert_eq!(fork.store().blob(&blob).unwrap(), b"bytes");
    fork.append(message(Message::prompt("elsewhere"))).unwrap();
    assert_eq!(first.prompts().unwrap().len(), 2);
    assert_eq!(fork.prompts().unwrap().len(), 2);
    for id in ["", ".", "..", "../x", "projects", "0190163d-8694-739b-aea5-966c26f8ad90"] {
        assert!(matches!(Session::open(home.path(), id, SystemTime::now), Err(Error::NotFound { .. })), "{id}");
    }
}

#[test]
fn home_that_is_a_file_fails_with_the_prompt_and_can_be_tried_again() {
    let temp = tempfile::tempdir().unwrap();
    let home = temp.path().join("home");
    fs::write(&home, "").unwrap();
    let mut session = Session::create(&home, Path::new("/code"), "1", SystemTime::now);
    let error = session.append(message(Message::prompt("go"))).unwrap_err().to_string();
    assert!(error.contains(home.to_str().unwrap()), "{error}");
    assert_eq!((session.next_seq(), session.context().messages().len()), (1, 0));
    fs::remove_file(&home).unwrap();
    session.append(message(Message::prompt("go"))).unwrap();
    assert_same(&session, &Session::open_read_only(&home, session.id(), SystemTime::now).unwrap());
}

#[test]
fn history_shows_all_and_says_what_left() {
    let home = tempfile::tempdir().unwrap();
    let (id, log) = sample(home.path());
    let session = Session::open_read_only(home.path(), &id, SystemTime::now).unwrap();
    let show = |items: Vec<crate::protocol::HistoryItem>| -> Vec<String> {
        let row = |item| match item {
            crate::protocol::HistoryItem::Note { text } => {
                format!("* {}", text.split(['(', ';']).next().unwrap().trim())
            }
            crate::protocol::HistoryItem::Compacted { summary, .. } => format!("* compacted: {summary}"),
            crate::protocol::HistoryItem::Shell { command, .. } => format!("! {command}"),
            crate::protocol::HistoryItem::Message { seq, message } => format!("{seq} {:?}", message.kind),
        };
        items.into_iter().map(row).collect()
    };
    let all = [
        "3 Prompt",
        "6 Reply",
        "7 Prompt",
        "8 ToolResult",
        "* compacted: summary",
        "12 Prompt",
        "* Rewound the conversation to before an earlier prompt",
        "* Compaction undone",
        "15 Reply",
    ];
    assert_eq!(show(read_history(&log).unwrap()), all);
    let (last, older) = session.history(1).unwrap();
    assert_eq!((show(last), older), (all[5..].iter().map(|row| (*row).to_owned()).collect(), 4));
    assert_eq!(session.history(9).unwrap().1, 0);
    let markdown = session.to_markdown().unwrap();
    assert!(markdown.starts_with("# first 日本\n") && markdown.contains("\n## You\n\nsteered\n"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&session.to_json().unwrap()).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), all.len());
}

#[test]
fn a_long_log_is_read_on_several_threads_and_from_its_last_boundary() {
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::create(home.path(), Path::new("/code"), "1", SystemTime::now);
    for turn in 0..1_500 {
        session.append(EntryKind::TurnStarted).unwrap();
        session.append(message(Message::prompt(format!("prompt {turn}")))).unwrap();
        session.append(EntryKind::ReplyPart { text: "part".into(), thinking: String::new() }).unwrap();
        let n = session.next_call();
        let usage = Usage { input: n, ..Usage::default() };
        let reply = Message::reply(vec![Block::text("reply"), call(n)]);
        session.append(message(Message { usage: Some(usage), ..reply })).unwrap();
        session.append(message(Message::tool_results(vec![result(n)]))).unwrap();
        session.append(EntryKind::TurnEnded { end: "done".into(), usage }).unwrap();
    }
    let id = session.id().to_owned();
    assert_same(&session, &Session::open_read_only(home.path(), &id, SystemTime::now).unwrap());
    assert_eq!(session.context().messages().len(), 4_500);
    session.append(boundary(session.next_seq() - 4)).unwrap();
    assert_same(&session, &Session::open_read_only(home.path(), &id, SystemTime::now).unwrap());
    assert_eq!(session.context().messages().len(), 4);
    // The last todo list and folder are from before the boundary.
    assert_eq!(session.context().todos()[0].content, "todo 1497");
    assert_eq!(session.context().cwd(), Path::new("/d1498"));
}

#[test]
fn a_turn_that_was_compacted_leaves_its_place_alone() {
    use super::counting::held;
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::create(home.path(), Path::new("/p"), "1", SystemTime::now);
    let (before, mut sizes) = (held(), Vec::new());
    for turn in 0..2_000_u64 {
        let usage = Usage { input: 3, ..Usage::default() };
        for kind in [
            message(Message::prompt(format!("prompt {turn} {}", "x".repeat(300)))),
            EntryKind::TurnStarted,
            message(Message::reply(vec![call(turn)])),
            EntryKind::CommandRan {
                call: CallId::nth(turn),
                command: format!("echo {turn} {}", "y".repeat(300)),
                record: None,
                agent: None,
            },
            message(Message::tool_results(vec![result(turn)])),
            message(Message { usage: Some(usage), ..Message::reply(vec![Block::text("done ".repeat(60))]) }),
            EntryKind::TurnEnded { end: "done".into(), usage },
        ] {
            session.append(kind).unwrap();
        }
        if turn % 100 == 99 {
            session.append(boundary(session.next_seq())).unwrap();
            sizes.push(held() - before);
        }
    }
    // Eight entries a turn, and what a growing list has to spare.
    assert!(sizes[19] / 2_000 <= 128, "{sizes:?}");
}
