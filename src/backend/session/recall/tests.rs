//! What is found again: everything that was said, nothing that was rewound.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;

use super::*;
use crate::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult};
use crate::session::Session;
use crate::session::entry::{Boundary, EntryKind};

struct Talk {
    home: tempfile::TempDir,
    session: Session,
}

impl Talk {
    fn new() -> Talk {
        let home = tempfile::tempdir().unwrap();
        let session = Session::create(home.path(), Path::new("/p"), "1", SystemTime::now);
        Talk { home, session }
    }

    fn say(&mut self, message: Message) -> Seq {
        self.session.append(EntryKind::Message { message: Arc::new(message) }).unwrap()
    }

    fn prompt(&mut self, text: &str) -> Seq {
        self.say(Message::prompt(text))
    }

    fn reply(&mut self, text: &str) -> Seq {
        self.say(Message::reply(vec![Block::text(text)]))
    }

    /// A call and its result.
    fn call(&mut self, tool: &str, input: serde_json::Value, result: &str) -> Seq {
        let id = CallId::nth(self.session.next_call());
        self.say(Message::reply(vec![Block::ToolCall(ToolCall::new(id.clone(), tool, input))]));
        self.say(Message::tool_results(vec![ToolResult::of_text(id, Outcome::Ok, result)]))
    }

    fn boundary(&mut self, summary: &str) {
        let summary = Message { kind: crate::message::Kind::CompactSummary, ..Message::prompt(summary) };
        let keep_from = self.session.next_seq();
        let boundary = Boundary { keep_from, summary: Some(Arc::new(summary)), ..Boundary::default() };
        self.session.append(EntryKind::CompactBoundary(boundary)).unwrap();
    }

    /// What is found; the same with an index of all, with one of what was there before, and without any.
    fn find(&self, query: &str, kind: Option<Kind>) -> Vec<Place> {
        let logs = [self.session.log().to_owned()];
        let find = || {
            let places = search(self.home.path(), &logs, &Terms::new(query, kind).unwrap(), 20).places;
            // How often a word is said is guessed where parts of the log are not looked at.
            places.into_iter().map(|place| Place { score: 0.0, ..place }).collect::<Vec<_>>()
        };
        let index = words::folder(self.home.path());
        let with = find();
        let remember = || super::remember(self.home.path(), &logs, &|| false);
        remember();
        assert!(index.exists(), "the session is worth an index");
        assert_eq!(find(), with, "{query}: all is known");
        std::fs::remove_dir_all(index).unwrap();
        assert_eq!(find(), with, "{query}: nothing is known");
        remember();
        with
    }

    /// The best place, as `turn kind tool: text`.
    fn best(&self, query: &str) -> String {
        self.find(query, None).first().map(line).unwrap_or_default()
    }
}

fn line(place: &Place) -> String {
    format!("{} {} {}: {}", place.turn, place.kind.name(), place.tool.as_deref().unwrap_or("-"), place.excerpt)
}

#[test]
fn everything_that_was_said_is_found() {
    let mut talk = Talk::new();
    talk.prompt("The staging database listens on port 5433.");
    talk.reply("Noted: staging is on 5433.");
    let result = "line one\nretry_limit = 7\n".to_owned() + &"filler words here\n".repeat(2_000);
    talk.call("Read", json!({"file_path": "/p/conf/worker.toml"}), &result);
    talk.boundary("The user works on the worker. The mascot is a heron.");
    talk.prompt("Now the 日本語 report, and \"quoted\\words\" in C:\\temp.");
    let cleared = EntryKind::ToolResultsCleared { calls: vec![CallId::nth(1)], persisted: vec![None] };
    talk.session.append(cleared).unwrap();
    for (query, want) in [
        ("staging port", "1 prompt -: The staging database listens on port 5433."),
        ("ports", "1 prompt -: The staging database listens on port 5433."),
        ("retry_limit", "1 result Read: …retry_limit = 7 filler words here"),
        ("worker.toml", "1 call Read: file_path: /p/conf/worker.toml"),
        ("heron", "1 summary -: The user works on the worker. The mascot is a heron."),
        ("日本語", "2 prompt -: Now the 日本語 report, and \"quoted\\words\" in C:\\temp."),
        ("c:\\TEMP", "2 prompt -: Now the 日本語 report, and \"quoted\\words\" in C:\\temp."),
        ("/retry_\\w+ = \\d$/", "1 result Read: …retry_limit = 7 filler words here"),
        ("\"on port\"", "1 prompt -: The staging database listens on port 5433."),
        ("absent", ""),
    ] {
        let got = talk.best(query);
        assert!(if want.is_empty() { got.is_empty() } else { got.starts_with(want) }, "{query}: {got}");
    }
    let kinds = |kind| talk.find("worker staging", Some(kind)).iter().map(|place| place.kind).collect::<Vec<_>>();
    for kind in [Kind::Prompt, Kind::Reply, Kind::Call, Kind::Summary] {
        assert!(kinds(kind).iter().all(|found| *found == kind) && !kinds(kind).is_empty(), "{kind:?}");
    }
}

#[test]
fn what_was_rewound_or_is_secret_is_not_found() {
    let mut talk = Talk::new();
    talk.prompt("keep the otter");
    let gone = talk.prompt("forget the walrus");
    talk.reply("the walrus is noted");
    talk.session.append(EntryKind::Rewind { to: gone }).unwrap();
    let again = talk.prompt("the badger for a while");
    talk.session.append(EntryKind::Rewind { to: again }).unwrap();
    talk.prompt("the beaver stays; token: abcdef123456 opens it, sk-ant-api03-abcdefgh too");
    // A key is hidden whole, however far it reaches.
    let long = format!("eyJ{}.{} lizard", "a".repeat(30 << 10), "b".repeat(30 << 10));
    talk.prompt(&format!("before\n{long}\nafter"));
    talk.say(Message::reply(vec![
        Block::Thinking { text: "secretly a marmot".into(), wire: None },
        Block::text("A reply without it."),
    ]));
    // What the tool itself found before is an echo.
    talk.call(TOOL, json!({"query": "otter"}), "#1 turn 1 prompt: keep the otter");
    for (query, want) in [
        ("otter", "1 prompt -: keep the otter"),
        ("walrus", ""),
        ("badger", ""),
        ("marmot", ""),
        ("abcdef123456", ""),
        ("/sk-[a-z0-9-]+/", ""),
        ("lizard", "3 prompt -: [hidden] lizard after"),
        ("beaver", "2 prompt -: the beaver stays; token: [hidden] opens it, [hidden] too"),
    ] {
        assert_eq!(talk.best(query), want, "{query}");
    }
    assert_eq!(talk.find("otter", None).len(), 1);
    let log = talk.session.log().to_owned();
    assert_eq!(read(&log, gone).unwrap(), None);
    assert_eq!(read(&log, 1).unwrap().unwrap()[0].text, "keep the otter");
}

/// Facts as they come up in a session, each with the one to three words that are asked for later.
const FACTS: [(&str, &str, &str); 16] = [
    ("prompt", "Never touch the vendored libxml, legal said so.", "vendored legal"),
    ("prompt", "The release goes out on the 14th of March.", "release date"),
    ("prompt", "Use tabs in the Makefile, spaces everywhere else.", "tabs spaces"),
    ("prompt", "Marta Lindqvist owns the billing service.", "billing owner"),
    ("prompt", "We settled on 250 ms as the debounce delay.", "debounce"),
    ("prompt", "Please answer in German from now on in commit messages.", "language commit messages"),
    ("prompt", "The port is 8731, not 8080 as the README claims.", "port README"),
    ("reply", "I chose a ring buffer over a channel because senders must never block.", "ring buffer why"),
    ("reply", "The race was in flush(): two writers held stale offsets.", "race flush"),
    ("reply", "Decision: the cache key is blake3 of path plus mtime.", "cache key"),
    ("reply", "The third migration fails on Postgres 12 and below.", "migration postgres"),
    ("result", "error[E0502]: cannot borrow `ledger` as mutable", "E0502"),
    ("result", "p99 latency: 41.7 ms over 120000 requests", "p99 latency"),
    ("result", "test payments::refund_rounding ... FAILED", "refund failed"),
    ("result", "commit 9f3c1ab fixes the leap second parser", "leap second commit"),
    ("result", "WORKER_POOL_SIZE=48 # tuned for m6i.4xlarge", "worker pool size"),
];

#[test]
fn facts_are_reached_with_the_words_that_are_asked_for() {
    let mut talk = Talk::new();
    let noise = |seed: usize| {
        let words =
            ["the", "service", "release", "port", "cache", "error", "commit", "test", "file", "size", "race", "key"];
        let line = |at: usize| format!("{} {} {}", words[(seed + at) % 12], words[(seed * 7 + at * 5) % 12], seed * at);
        (0..120).map(line).collect::<Vec<_>>().join("\n")
    };
    for (at, (kind, fact, _)) in FACTS.iter().enumerate() {
        for turn in 0..6 {
            talk.prompt(&format!("Please look at part {at}.{turn} of the service next."));
            talk.call("Bash", json!({"command": format!("make part-{at}")}), &noise(at * 10 + turn));
            talk.reply("The tests pass, the file has the right size.");
        }
        match *kind {
            "prompt" => talk.prompt(fact),
            "reply" => talk.reply(fact),
            _ => talk.call(
                "Bash",
                json!({"command": "make check"}),
                &format!("{}\n{fact}\n{}", noise(at), noise(at + 3)),
            ),
        };
        talk.boundary("Work continues.");
    }
    let logs = [talk.session.log().to_owned()];
    for known in [false, true] {
        let found = |fact: &str, query: &str| {
            let places = search(talk.home.path(), &logs, &Terms::new(query, None).unwrap(), 20).places;
            places.iter().take(5).any(|place| place.excerpt.contains(fact))
        };
        let lost: Vec<&str> =
            FACTS.iter().filter(|(_, fact, query)| !found(fact, query)).map(|(.., query)| *query).collect();
        assert_eq!(lost, Vec::<&str>::new(), "an index: {known}");
        remember(talk.home.path(), &logs, &|| false);
    }
}
/// A home with two sessions, and what its index knows.
struct Home {
    talks: [Talk; 2],
    logs: Vec<std::path::PathBuf>,
}

const BIRDS: [&str; 7] = ["heron", "otter", "marten", "badger", "日本語", "/mart[e]n is/", "plover"];

impl Home {
    fn new() -> Home {
        let first = Talk::new();
        let session = Session::create(first.home.path(), Path::new("/p"), "1", SystemTime::now);
        let second = Talk { home: tempfile::tempdir().unwrap(), session };
        let logs = [&first, &second].map(|talk| talk.session.log().to_owned()).to_vec();
        Home { talks: [first, second], logs }
    }

    fn path(&self) -> &Path {
        self.talks[0].home.path()
    }

    fn remember(&self) {
        super::remember(self.path(), &self.logs, &|| false);
    }

    fn say(&mut self, talk: usize, word: &str) -> Seq {
        let seq = self.talks[talk].prompt(&format!("The {word} is here. {}", "Nothing else is. ".repeat(40)));
        self.talks[talk].session.append(EntryKind::TurnStarted).unwrap();
        seq
    }

    /// The files of the index, with what they hold.
    fn files(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let folder = std::fs::read_dir(words::folder(self.path())).unwrap();
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Bytes of each log that are known.
    fn known(&self) -> Vec<u64> {
        let index = words::Index::open(self.path());
        self.logs.iter().map(|log| index.known(log).end).collect()
    }

    fn lengths(&self) -> Vec<u64> {
        self.logs.iter().map(|log| std::fs::metadata(log).unwrap().len()).collect()
    }

    /// Just these birds are found.
    fn check(&self, name: &str, birds: &[&str]) {
        for bird in BIRDS {
            let word = bird.trim_matches('/').replace("[e]n is", "en");
            let found = search(self.path(), &self.logs, &Terms::new(bird, None).unwrap(), 20).places.len();
            assert_eq!(found, usize::from(birds.contains(&word.as_str())), "{name}: {bird}");
        }
    }
}

#[test]
fn an_index_is_of_its_logs_or_of_no_use() {
    let mut home = Home::new();
    home.say(0, "heron");
    home.say(1, "otter");
    home.remember();
    assert_eq!(home.known(), home.lengths());
    // What came later is read from the log, until it is known, too. Small files become one.
    home.say(0, "marten");
    home.check("before the rest is known", &["heron", "otter", "marten"]);
    home.remember();
    assert_eq!((home.known(), home.files().len()), (home.lengths(), 1));
    let gone = home.say(1, "badger");
    home.remember();
    home.talks[1].session.append(EntryKind::Rewind { to: gone }).unwrap();
    home.say(1, "日本語");
    home.remember();
    let all = ["heron", "otter", "marten", "日本語"];
    home.check("rewound", &all);

    let (path, good) = home.files().pop().unwrap();
    let changed = |at: usize| good.iter().enumerate().map(|(i, byte)| byte ^ u8::from(i == at)).collect::<Vec<_>>();
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("of another version", changed(14)),
        ("cut off", good[..good.len() - 9].to_vec()),
        ("of other parts", changed(16 + 40 + 8 + 32 + 60)),
        ("zeros", vec![0; good.len()]),
    ] {
        std::fs::write(&path, bytes).unwrap();
        home.check(name, &all);
        home.remember();
        home.check(name, &all);
        assert_eq!((home.known(), home.files().len()), (home.lengths(), 1), "{name}: it is whole again");
    }
    // The places of words are damaged: what they say does not matter, and nothing panics.
    let (path, good) = home.files().pop().unwrap();
    for byte in [0x00, 0x7F, 0x80, 0xFF] {
        let places = good.len() - 200;
        std::fs::write(&path, [&good[..places], &[byte; 200]].concat()).unwrap();
        search(home.path(), &home.logs, &Terms::new("heron otter /[a-z]/", None).unwrap(), 20);
    }
    std::fs::remove_file(path).unwrap();
    // Another one is at it.
    let held = File::open(home.path().join("cocode/words.lock")).unwrap();
    held.lock().unwrap();
    home.remember();
    assert_eq!(home.known(), [0, 0]);
    drop(held);
    super::remember(home.path(), &home.logs, &|| true);
    assert_eq!(home.known(), [0, 0], "told to stop");
    home.remember();
    assert_eq!(home.known(), home.lengths());
}

#[test]
fn an_index_forgets_what_is_gone() {
    let mut home = Home::new();
    for (talk, bird) in [(0, "heron"), (0, "otter"), (0, "marten"), (1, "badger")] {
        home.say(talk, bird);
    }
    home.remember();
    let holds = |home: &Home, word: &str| {
        home.files().iter().any(|(_, bytes)| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
    };
    assert!(holds(&home, "badger"));
    // The log was put back to what it was before, or was changed before its end.
    let text = std::fs::read(&home.logs[0]).unwrap();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    std::fs::write(&home.logs[0], lines[..3].concat()).unwrap();
    home.check("cut", &["heron", "badger"]);
    std::fs::write(&home.logs[0], [&lines[..3].concat()[..], &lines[5..].concat()].concat()).unwrap();
    home.check("changed in the middle", &["heron", "marten", "badger"]);
    home.remember();
    home.check("known again", &["heron", "marten", "badger"]);
    assert!(!holds(&home, "otter"));
    // A session was deleted.
    std::fs::remove_file(&home.logs[1]).unwrap();
    home.check("gone", &["heron", "marten"]);
    home.remember();
    home.check("gone and forgotten", &["heron", "marten"]);
    assert!(holds(&home, "heron") && !holds(&home, "badger"));
}

#[test]
fn many_sessions_make_few_files() {
    let mut home = Home::new();
    let mut rng = fastrand::Rng::with_seed(3);
    for turn in 0..150 {
        let text: String = (0..60).map(|_| format!("w{} ", rng.u32(0..300))).collect();
        home.talks[turn % 2].prompt(&text);
        if turn % 5 == 0 {
            home.remember();
        }
    }
    home.say(1, "heron");
    home.remember();
    assert_eq!(home.known(), home.lengths());
    let (files, bytes) = (home.files().len(), home.lengths().iter().sum::<u64>());
    assert!(files <= 2 + bytes as usize / (8 << 10), "{files} files for {bytes} bytes");
    // Each word is found where it is without an index.
    let find = |word: &str| {
        let found = search(home.path(), &home.logs, &Terms::new(word, None).unwrap(), 2_000).places;
        found.into_iter().map(|place| (place.log, place.seq)).collect::<std::collections::BTreeSet<_>>()
    };
    let words = ["w7", "w29", "w299", "99", "heron", "absent"];
    let with = words.map(find);
    std::fs::remove_dir_all(words::folder(home.path())).unwrap();
    assert_eq!(words.map(find), with);
    assert!(with[0].len() > 20 && with[5].is_empty());
}

#[test]
fn letters_of_every_match() {
    for (pattern, want) in [
        ("retry_\\w+ = \\d$", "retry_"),
        ("absen[t] he", "absen he"),
        ("ab+c?defg{2,3}hi", "ab def hi"),
        ("(one)?two(three)", "two"),
        ("one|two", ""),
        ("(?x) o n e", ""),
        ("\\x41bcd", ""),
        ("\\p{Greek}bcd", ""),
        ("\\[abc\\]", "abc"),
        ("[^]]abc", ""),
        ("^日本.*語語$", "日本 語語"),
        ("a.b", ""),
    ] {
        assert_eq!(terms::literals(pattern).join(" "), want, "{pattern}");
    }
}
