//! Measures what docs/figures.md claims about speed. `cargo bench --bench claims -- --sample-count 1` only tries it out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use cocode::commands::Catalog;
use cocode::commands::catalog::Snapshot;
use cocode::commands::discover::Folders;
use cocode::commands::usage::Usage as Uses;
use cocode::compact::{Driver, Step, Surroundings, Window, apply, ledger};
use cocode::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult, Usage, tokens};
use cocode::permission::{Access, Behavior, Disk, Mode, Places, Query, RuleSet, Source, decide};
use cocode::provider::codec::codec;
use cocode::provider::settings::WireName;
use cocode::provider::sse;
use cocode::session::entry::{Boundary, EntryKind};
use cocode::session::store::Store;
use cocode::session::{Session, recall};
use cocode::stdx::process::{Run, Running, Streams};
use cocode::tools::Toolbox;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

#[path = "../examples/compaction_lab/tool_context.rs"]
mod tool_context;

use tool_context::tool_context;

fn main() {
    divan::main();
}

/// Resumes a session of 100,000 entries and 75 MiB: without any boundary, and with one every 1,000 turns.
#[divan::bench(args = [0, 1_000], sample_count = 10)]
fn resume(bencher: Bencher<'_, '_>, boundary_every: u64) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let id = long_session(home.path(), boundary_every);
    bencher.bench(|| Session::open(home.path(), &id, SystemTime::now).expect("the session opens"));
}

/// What is looked for: words of nearly every line, of some, of a few, none at all, one that is being typed, a pattern.
const SOUGHT: [&str; 6] = ["w0 w3", "w120 w450", "w61803", "absent heron", "w61", "/w6180[3] /"];

/// Searches the log of a session of 100 MB: as the first search does, and as those after it.
#[divan::bench(args = SOUGHT, consts = [false, true], sample_count = 10)]
fn recall_100_mb<const KNOWN: bool>(bencher: Bencher<'_, '_>, words: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let logs = talks(home.path(), 1, 100_000_000);
    bench_search(bencher, home.path(), &logs, KNOWN, words);
}

/// Searches all sessions of a home, as a key in /find does: few large ones, and many small ones.
#[divan::bench(args = SOUGHT, consts = [4, 800], sample_count = 10)]
fn find_200_mb<const SESSIONS: usize>(bencher: Bencher<'_, '_>, words: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let logs = talks(home.path(), SESSIONS, 200_000_000 / SESSIONS);
    bench_search(bencher, home.path(), &logs, true, words);
}

/// The same before the words of the sessions are known.
#[divan::bench(args = SOUGHT, sample_count = 10)]
fn find_200_mb_first(bencher: Bencher<'_, '_>, words: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let logs = talks(home.path(), 4, 50_000_000);
    bench_search(bencher, home.path(), &logs, false, words);
}

fn bench_search(bencher: Bencher<'_, '_>, home: &Path, logs: &[PathBuf], known: bool, words: &str) {
    let query = recall::Terms::new(words, None).expect("a query");
    if known {
        recall::remember(home, logs, &|| false);
    }
    bencher.bench(|| recall::sessions(home, |_| true, &query, 40).expect("a list").len());
}

/// Keeps the words of a session of 100 MB, as is done once beside the first search.
#[divan::bench(sample_count = 3)]
fn remember_100_mb(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let logs = talks(home.path(), 1, 100_000_000);
    let index = home.path().join("cocode/words");
    bencher
        .with_inputs(|| drop(std::fs::remove_dir_all(&index)))
        .bench_values(|()| recall::remember(home.path(), &logs, &|| false));
}

/// Writes sessions of so many bytes each, of words that are as frequent as those of people and programs are: the nth a
/// nth as often as the first, of 100,000, and in one of twenty places a number that is nowhere else. Their logs.
fn talks(home: &Path, sessions: usize, bytes: usize) -> Vec<PathBuf> {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut text = |length: usize| {
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            let word = (100_000f64.powf(rng.f64()) - 1.0) as u64;
            match rng.u8(0..20) {
                0 => text.push_str(&format!("{:x}", rng.u32(..))),
                _ => text.push_str(&format!("w{word}")),
            }
            text.push(if rng.u8(0..9) == 0 { '\n' } else { ' ' });
        }
        text
    };
    let bytes = if cfg!(debug_assertions) { bytes / 50 } else { bytes };
    let mut logs = Vec::new();
    for _ in 0..sessions {
        let mut session = Session::create(home, Path::new("/code"), "1", SystemTime::now);
        let mut say = |message: Message| {
            session.append(EntryKind::Message { message: Arc::new(message) }).expect("the entry is written")
        };
        for turn in 1..=(bytes as u64 / 7_000).max(1) {
            let call = CallId::nth(turn);
            let block = ToolCall::new(call.clone(), "Read", serde_json::json!({"file_path": "/code/src/main.rs"}));
            say(Message::prompt(text(300)));
            say(Message::reply(vec![Block::text(text(700)), Block::ToolCall(block)]));
            say(Message::tool_results(vec![ToolResult::of_text(call, Outcome::Ok, text(5_000))]));
        }
        logs.push(session.log().to_owned());
    }
    logs
}

/// Turns of a long session. CI runs this unoptimised to see that it runs: a tenth shows that, too.
const TURNS: u64 = if cfg!(debug_assertions) { 1_667 } else { 16_667 };

/// Writes a session of six entries a turn, up to a kilobyte each; its id.
fn long_session(home: &Path, boundary_every: u64) -> String {
    let mut session = Session::create(home, Path::new("/code"), "1", SystemTime::now);
    let mut append = |kind| {
        let seq = session.append(kind).expect("the entry is written");
        (seq, session.id().to_owned())
    };
    let message = |message: Message| EntryKind::Message { message: Arc::new(message) };
    let text = "A line of an answer with \"quotes\" and some words.\n".repeat(16);
    let usage = Usage { input: 10, ..Usage::default() };
    let mut id = String::new();
    for turn in 1..=TURNS {
        let call = CallId::nth(turn);
        let input = serde_json::json!({"file_path": "/code/src/main.rs"});
        let block = ToolCall::new(call.clone(), "Read", input);
        let reply = Message::reply(vec![Block::text(text.as_str()), Block::ToolCall(block)]);
        append(EntryKind::TurnStarted);
        append(message(Message::prompt(text.as_str())));
        append(EntryKind::ReplyPart { text: text.clone(), thinking: String::new() });
        append(message(Message { usage: Some(usage), ..reply }));
        append(message(Message::tool_results(vec![ToolResult::of_text(call, Outcome::Ok, text.as_str())])));
        let (seq, session) = append(EntryKind::TurnEnded { end: "done".to_owned(), usage });
        if boundary_every > 0 && turn.is_multiple_of(boundary_every) {
            append(EntryKind::CompactBoundary(Boundary {
                trigger: Default::default(),
                tier: "full".to_owned(),
                pre_tokens: 0,
                post_tokens: 0,
                keep_from: seq - 5,
                opening: vec![],
                summary: None,
                attachments: Vec::new(),
                effects: Vec::new(),
                archived: None,
                ledger: Default::default(),
                receipt: Default::default(),
            }));
        }
        id = session;
    }
    id
}

/// Adds a message to a session of so many entries and counts the context: must not depend on how many there are.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 20, sample_size = 100)]
fn append(bencher: Bencher<'_, '_>, entries: u64) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut session = Session::create(home.path(), Path::new("/code"), "1", SystemTime::now);
    let driver = driver();
    let mut next = 0..;
    let mut append = || {
        let text = "A line of an answer. ".repeat(10);
        let message = match next.next().unwrap_or(0) % 2 {
            0 => Message::prompt(text),
            _ => Message::reply(vec![Block::text(text)]),
        };
        session.append(EntryKind::Message { message: Arc::new(message) }).expect("the entry is written");
        driver.used(session.context())
    };
    (0..entries).for_each(|_| _ = append());
    bencher.bench_local(append);
}

/// Decides what to do about 10,000 messages of 1,000,000 tokens, and clears their old results: entry and projection, and
/// with one large result in so many also the files that large ones are saved in. The messages have been counted before, as
/// those of a session that lives: once each, when they came.
#[divan::bench(args = [0, 100], sample_count = 20)]
fn micro_compact(bencher: Bencher<'_, '_>, large: u64) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let clearable = |tool: &str| tool == "Read";
    let step = |driver: &mut Driver, session: &Session| {
        let around = Surroundings { store: session.store(), clearable: &clearable, prices: None, cold: false };
        driver.step(session.context(), around)
    };
    let full = || {
        let (mut driver, session) = (driver(), full_session(home.path(), large));
        driver.prepare();
        step(&mut driver, &session);
        (driver, session)
    };
    bencher.with_inputs(full).bench_local_values(|(mut driver, mut session)| {
        driver.prepare();
        let Step::Clear(plan) = step(&mut driver, &session) else { panic!("there is much to clear") };
        let cleared = apply::clear(&mut session, &plan).expect("the entry is written");
        assert!(cleared.results > 4_000, "{cleared:?}");
        session
    });
}

/// Reads one more entry into the ledger of 10,000 messages, and makes what a compaction puts back of it, checked against a
/// summary.
#[divan::bench(sample_count = 20)]
fn ledger(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let full = || {
        let (mut fold, mut session) = (ledger::Fold::default(), full_session(home.path(), 0));
        for n in 0..400 {
            let text = format!("Never touch src/part_{n}.rs. The port of service {n} is {}.", 8_000 + n);
            let message = Arc::new(Message::prompt(text));
            session.append(EntryKind::Message { message }).expect("the entry is written");
        }
        fold.follow(session.context());
        let message = Arc::new(Message::prompt("Use port 9000 for the gateway instead."));
        session.append(EntryKind::Message { message }).expect("the entry is written");
        (fold, session)
    };
    let summary = "I changed src/part_7.rs; everything else is done.\n".repeat(100);
    bencher.with_inputs(full).bench_local_values(|(mut fold, session)| {
        let read = fold.follow(session.context());
        let known = ledger::Known { verbatim: "", summary: &summary };
        ledger::message(read, &[], known, 2_000).expect("there is much to tell")
    });
}

/// What a request reads of 10,000 messages that are not in the ledger yet.
#[divan::bench(sample_count = 20)]
fn ledger_approaches(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let session = full_session(home.path(), 0);
    let mut begun = ledger::Fold::default();
    begun.approach(session.context());
    bencher.with_inputs(|| begun.clone()).bench_local_values(|mut fold| {
        fold.approach(session.context());
        fold
    });
}

/// The driver of a session with a window of a million tokens, as shipped.
fn driver() -> Driver {
    let defaults: toml::Table = cocode::config::DEFAULTS.parse().expect("the defaults are TOML");
    let part = |name: &str| defaults[name].clone();
    let settings = part("compact").try_into().expect("the shipped settings");
    let features = part("features").try_into().expect("the shipped features");
    Driver::new(settings, features, Window { tokens: Some(1_000_000), max_output: 64_000 })
}

/// 5,000 replies of 40 tokens, each with a call and its result of 160, or 2,000 where it is large.
fn full_session(home: &Path, large: u64) -> Session {
    let mut session = Session::create(home, Path::new("/code"), "1", SystemTime::now);
    let message = |message: Message| EntryKind::Message { message: Arc::new(message) };
    let is_large = |n: u64| large > 0 && n.is_multiple_of(large);
    for n in 1..=5_000 {
        let call = CallId::nth(n);
        let input = serde_json::json!({"file_path": "/code/src/main.rs"});
        let block = ToolCall::new(call.clone(), "Read", input);
        let reply = Message::reply(vec![Block::text("abc ".repeat(30)), Block::ToolCall(block)]);
        let result = ToolResult::of_text(call, Outcome::Ok, "abc ".repeat(if is_large(n) { 2_000 } else { 160 }));
        session.append(message(reply)).expect("the entry is written");
        session.append(message(Message::tool_results(vec![result]))).expect("the entry is written");
    }
    session.append(message(Message::reply(vec![Block::text("done")]))).expect("the entry is written");
    session
}

/// Decodes an answer of 20,000 deltas that comes in pieces of 16 KiB.
#[divan::bench(args = ["anthropic", "openai", "openai-chat", "gemini"], sample_count = 10)]
fn decode(bencher: Bencher<'_, '_>, wire: &str) {
    let bytes = stream(wire);
    let wire = match wire {
        "anthropic" => WireName::Anthropic,
        "openai" => WireName::Openai,
        "openai-chat" => WireName::OpenaiChat,
        _ => WireName::Gemini,
    };
    bencher.counter(BytesCount::of_slice(&bytes)).bench(|| {
        let (mut parser, mut decoder) = (sse::Parser::new(), codec(wire).decoder("measured"));
        let (mut events, mut out, mut count) = (Vec::new(), Vec::new(), 0);
        for piece in bytes.chunks(16 * 1024) {
            parser.push(piece, &mut events).expect("no event is too long");
            for event in events.drain(..) {
                decoder.event(&event, &mut out).expect("the event is well-formed");
            }
            count += out.drain(..).count();
        }
        assert!(count >= DELTAS, "{count} events");
    });
}

const DELTAS: usize = 20_000;

/// An answer of `DELTAS` deltas as it comes over a wire.
fn stream(wire: &str) -> Vec<u8> {
    let (before, delta, after): (&str, fn(String) -> String, &str) = match wire {
        "anthropic" => (
            concat!(
                r#"event: message_start~data: {"type":"message_start","message":{"id":"m","type":"message","role":"#,
                r#""assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}~~"#,
                r#"event: content_block_start~data: {"type":"content_block_start","index":0,"content_block":{"type":"#,
                r#""text","text":""}}~~"#,
            ),
            |text| {
                format!(
                    r#"event: content_block_delta~data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}~~"#
                )
            },
            concat!(
                r#"event: content_block_stop~data: {"type":"content_block_stop","index":0}~~"#,
                r#"event: message_delta~data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":"#,
                r#"{"output_tokens":9}}~~event: message_stop~data: {"type":"message_stop"}~~"#,
            ),
        ),
        "openai" => (
            concat!(
                r#"event: response.output_item.added~data: {"type":"response.output_item.added","output_index":0,"item":"#,
                r#"{"id":"msg_1","type":"message","role":"assistant","content":[]}}~~"#,
            ),
            |text| {
                format!(
                    r#"event: response.output_text.delta~data: {{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"{text}"}}~~"#
                )
            },
            concat!(
                r#"event: response.completed~data: {"type":"response.completed","response":{"id":"r","status":"#,
                r#""completed","model":"x","output":[],"usage":{"input_tokens":1,"output_tokens":9}}}~~"#,
            ),
        ),
        "openai-chat" => (
            "",
            |text| {
                format!(
                    r#"data: {{"id":"c","object":"chat.completion.chunk","model":"x","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}~~"#
                )
            },
            concat!(
                r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"#,
                r#""completion_tokens":9}}~~data: [DONE]~~"#,
            ),
        ),
        _ => (
            "",
            |text| {
                format!(
                    r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"modelVersion":"x","responseId":"r"}}~~"#
                )
            },
            concat!(
                r#"data: {"candidates":[{"content":{"parts":[{"text":"."}],"role":"model"},"index":0,"finishReason":"#,
                r#""STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":9}}~~"#,
            ),
        ),
    };
    let deltas: String = (0..DELTAS).map(|index| delta(format!("word{index} "))).collect();
    format!("{before}{deltas}{after}").replace('~', "\n").into_bytes()
}

/// Ends a shell with four processes below it, one of them in a session of its own.
#[divan::bench(sample_count = 20)]
fn kill_tree(bencher: Bencher<'_, '_>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let start = || {
        runtime.block_on(async {
            let mut command = tokio::process::Command::new("bash");
            let script = "sleep 100 & sleep 100 & (sleep 100 & wait) & setsid sleep 100 & echo up; wait";
            command.args(["--norc", "--noprofile", "-c", script]);
            let (output, writer) = std::io::pipe().expect("a pipe");
            let stdout = writer.try_clone().expect("a second end").into();
            let streams = Streams { stdin: None, stdout, stderr: writer.into(), kept: None };
            let running =
                Running::spawn(&command, streams, cocode::stdx::process::Unconfined::Free).expect("bash starts");
            let output = tokio::net::unix::pipe::Receiver::from_owned_fd(output.into()).expect("a pipe");
            let mut out = tokio::io::BufReader::new(output);
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line).await.expect("it says that it is up");
            running
        })
    };
    bencher.with_inputs(start).bench_local_values(|running| runtime.block_on(running.end()));
}

/// Decides about ordinary lines, and about hostile ones of 64 kB, under rules of every kind.
#[divan::bench(args = LINES.map(|(name, _)| name), sample_count = 5)]
fn decision(bencher: Bencher<'_, '_>, name: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let project = home.path().join("project");
    std::fs::create_dir(&project).expect("a project");
    let places = Places {
        project: project.clone(),
        cwd: project.clone(),
        home: Some(home.path().to_path_buf()),
        cocode_home: home.path().join(".claude"),
        ..Places::default()
    };
    let mut rules = RuleSet::default();
    for (behavior, rule) in [
        (Behavior::Allow, "Bash(cargo test:*)"),
        (Behavior::Allow, "Bash(git * main)"),
        (Behavior::Deny, "Bash(rm -rf /)"),
        (Behavior::Deny, "Bash(a * nowhere * to be found)"),
        (Behavior::Deny, "Bash(*--force*)"),
        (Behavior::Deny, "Read(**/.env)"),
        (Behavior::Ask, "Bash(git push:*)"),
        (Behavior::Ask, "Edit(/generated/**)"),
    ] {
        rules.add(behavior, cocode::tools::RULES.rule(rule).expect("the rule is one"), Source::User);
    }
    let line = LINES.iter().find(|(known, _)| *known == name).map(|(_, line)| line()).unwrap_or_default();
    let access = Access::Shell { command: line.into(), cwd: project };
    let query = Query {
        tool: "Bash",
        access: &access,
        mode: Mode::Default,
        rules: &rules,
        places: &places,
        vocabulary: cocode::tools::RULES,
        level: cocode::sandbox::Level::Kernel,
    };
    bencher.bench_local(|| decide(&query, &Disk));
}

/// Makes a command line.
type Line = fn() -> String;

const LINES: [(&str, Line); 16] = [
    ("ordinary", || "cd src && git log --oneline -5 | head -3; cargo test --lib 2>&1 | tail".into()),
    ("16,000 words", || "a ".repeat(16_000) + "b"),
    ("16,000 distinct files", || (0..10_000).fold("rm".to_owned(), |line, at| format!("{line} f{at}"))),
    ("16,000 files to read", || (0..10_000).fold("cat".to_owned(), |line, at| format!("{line} f{at}"))),
    ("commands", || "a;".repeat(32_000)),
    ("distinct commands", || (0..8_000).fold(String::new(), |line, at| format!("{line}c{at}; "))),
    ("wrappers", || "nice ".repeat(13_000) + "ls"),
    ("expansions", || format!("echo \"{}\"", "$a".repeat(32_000))),
    ("globs", || format!("cat {}", "/usr/bin/*a ".repeat(5_000))),
    ("quotes", || format!("bash -c '{}'", "rm x; ".repeat(10_000))),
    ("assignments", || "a=b ".repeat(16_000) + "ls"),
    ("no grammar", || "a ( ".repeat(16_000)),
    ("nested arrays", || "a=(".repeat(21_000)),
    ("open braces", || format!("echo {}", "{".repeat(65_000))),
    ("open brackets", || format!("bash -c \"{}\"", "[[ ".repeat(20_000))),
    ("unknown words", || format!("git {}", "$x ".repeat(3_900))),
];

/// Counts prose, code and base64.
#[divan::bench(sample_count = 20)]
fn estimate(bencher: Bencher<'_, '_>) {
    let prose = "The quick brown fox jumps over the lazy dog, and then — naïvely — rests.\n".repeat(8_000);
    let code = "    let total = lines.iter().map(|line| line.len()).sum::<usize>();\n".repeat(8_000);
    let text = format!("{prose}{code}{}", "QUJD".repeat(50_000));
    bencher.counter(BytesCount::of_str(&text)).bench(|| tokens::text(divan::black_box(&text)));
}

/// Files of the checkout that is searched.
const FILES: usize = 5_000;

/// Looks for a word in a checkout of 5,000 files and 60 MB, as our tool and as ripgrep, where that is installed.
#[divan::bench(args = ["ours", "ripgrep"], sample_count = 10)]
fn grep(bencher: Bencher<'_, '_>, who: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let root = checkout(home.path());
    let bencher = bencher.counter(ItemsCount::new(FILES));
    if who == "ripgrep" {
        let found = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
        if !found(Command::new("rg").arg("--version")) {
            return;
        }
        return bencher.bench(|| found(Command::new("rg").args(["-l", "needle_[0-9]+"]).current_dir(&root)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let toolbox = Toolbox::builtin();
    let tool = toolbox.get("Grep").expect("there is a Grep");
    let store = Store::new(home.path().join("session"));
    let (dirs, context) = tool_context(&root, home.path().join("session/transcript.jsonl"), store);
    bencher.bench_local(|| {
        let call = tool.call(&serde_json::json!({"pattern": "needle_[0-9]+"}), &dirs).expect("it fits");
        let output = runtime.block_on(call.run(context.clone()));
        assert_eq!(output.outcome, Outcome::Ok);
    });
}

/// Writes a checkout in which every fiftieth file has what is looked for.
fn checkout(home: &Path) -> PathBuf {
    let root = home.join("checkout");
    let body = "    let value = compute(first, second).unwrap_or_default(); // nothing to see here\n".repeat(150);
    for file in 0..FILES {
        let folder = root.join(format!("crate_{}/src/module_{}", file % 40, file % 7));
        std::fs::create_dir_all(&folder).expect("a folder");
        let needle = if file % 50 == 0 { format!("needle_{file}\n") } else { String::new() };
        std::fs::write(folder.join(format!("file_{file}.rs")), format!("{body}{needle}")).expect("a file");
    }
    root
}

/// Loads 1,000 skills of 4 kB from nothing: files, frontmatter, registry.
#[divan::bench(sample_count = 20)]
fn skills_cold(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folders = skills(home.path(), 1_000);
    bencher.bench(|| {
        let (now, _) = Snapshot::load(&folders, &Uses::off(), SystemTime::UNIX_EPOCH);
        assert!(now.skills.len() >= 1_000);
        now
    });
}

/// Looks whether any of 1,000 skills changed: before each command, and when the list of commands opens.
#[divan::bench(sample_count = 20)]
fn skills_unchanged(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let catalog = Catalog::new(skills(home.path(), 1_000), || SystemTime::UNIX_EPOCH);
    catalog.refresh();
    bencher.bench(|| assert!(!catalog.refresh().1));
}

/// Answers a keystroke in the list of 2,000 commands.
#[divan::bench(args = ["", "s", "skl12", "number 7", "zzz"], sample_count = 50)]
fn complete(bencher: Bencher<'_, '_>, query: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (now, _) = Snapshot::load(&skills(home.path(), 2_000), &Uses::off(), SystemTime::UNIX_EPOCH);
    bencher.bench(|| now.registry.complete(divan::black_box(query)).len());
}

/// A home with so many skills.
fn skills(home: &Path, count: usize) -> Folders {
    for at in 0..count {
        let folder = home.join("skills").join(format!("skill-{at:04}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let body = "Do this, and then that, with care and without haste.\n".repeat(75);
        let head = format!(
            "name: skill-{at:04}\ndescription: Does number {at} when asked to, and reports what came of it\nallowed-tools: Bash(git status:*), Read"
        );
        std::fs::write(folder.join("SKILL.md"), format!("---\n{head}\n---\n# Skill\n{body}")).expect("a file");
    }
    Folders { home: home.to_owned(), project: home.join("project"), ..Folders::default() }
}
