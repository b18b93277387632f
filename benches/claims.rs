//! Measures what the README claims about speed.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use cocode::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult, Usage};
use cocode::session::Session;
use cocode::session::entry::{Boundary, EntryKind};

fn main() {
    divan::main();
}

/// Resumes a session of 100,000 entries and 75 MiB: without any boundary, and with one every 1,000 turns.
#[divan::bench(args = [0, 1_000], sample_count = 10)]
fn resume(bencher: divan::Bencher<'_, '_>, boundary_every: u64) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let id = long_session(home.path(), boundary_every);
    bencher.bench(|| Session::open(home.path(), &id, SystemTime::now).expect("the session opens"));
}

/// Writes a session of six entries a turn, up to a kilobyte each; its id.
fn long_session(home: &Path, boundary_every: u64) -> String {
    let mut session = Session::create(home, Path::new("/work"), "1", SystemTime::now);
    let mut append = |kind| {
        let seq = session.append(kind).expect("the entry is written");
        (seq, session.id().to_owned())
    };
    let message = |message: Message| EntryKind::Message { message: Arc::new(message) };
    let text = "A line of an answer with \"quotes\" and some words.\n".repeat(16);
    let usage = Usage { input: 10, ..Usage::default() };
    let mut id = String::new();
    for turn in 1..=16_667 {
        let call = CallId::nth(turn);
        let input = serde_json::json!({"file_path": "/work/src/main.rs"});
        let block = ToolCall { id: call.clone(), name: "Read".to_owned(), input, invalid: None, wire: None };
        let reply = Message::reply(vec![Block::text(text.as_str()), Block::ToolCall(block)]);
        append(EntryKind::TurnStarted);
        append(message(Message::prompt(text.as_str())));
        append(EntryKind::ReplyPart { text: text.clone(), thinking: String::new() });
        append(message(Message { usage: Some(usage), ..reply }));
        append(message(Message::tool_results(vec![ToolResult::of_text(call, Outcome::Ok, text.as_str())])));
        let (seq, session) = append(EntryKind::TurnEnded { end: "done".to_owned(), usage });
        if boundary_every > 0 && turn.is_multiple_of(boundary_every) {
            append(EntryKind::CompactBoundary(Boundary {
                trigger: "auto".to_owned(),
                tier: "full".to_owned(),
                pre_tokens: 0,
                post_tokens: 0,
                keep_from: seq - 5,
                summary: None,
                attachments: Vec::new(),
                effects: Vec::new(),
            }));
        }
        id = session;
    }
    id
}
