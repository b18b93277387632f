//! A provider with a true prefix cache, and what is said of every way to break it.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::stream;
use serde_json::json;

use super::pieces::pieces;
use super::*;
use crate::message::{Block, CallId, Message, Outcome, Role, ToolCall, ToolResult};
use crate::provider::catalog::Catalog;
use crate::provider::settings::WireName;
use crate::provider::{Purpose, ReplyStream, Thinking, ToolSpec};
use crate::session::entry::{Boundary, ClippedBlock, EntryKind};

thread_local! {
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + PASSED.get())
}

fn later(seconds: u64) {
    PASSED.set(PASSED.get() + seconds);
}

struct Wire(String);

impl Provider for Wire {
    fn wire(&self) -> &'static str {
        "anthropic"
    }

    fn route(&self) -> String {
        self.0.clone()
    }

    fn stream(&self, _request: Arc<Request>) -> ReplyStream {
        Box::pin(stream::empty())
    }
}

fn model(id: &str, route: &str) -> Model {
    let spec = Catalog::builtin().get(WireName::Anthropic, id);
    let provider = Arc::new(Wire(route.to_owned()));
    Model { provider, provider_name: "anthropic".into(), id: id.into(), spec }
}

/// The segments of a request, put together once more: bytes, whether they end a block, and whether a breakpoint follows.
fn parts(request: &Request) -> Vec<(Vec<u8>, bool, bool)> {
    let thinking = if request.thinking == Thinking::Unset { String::new() } else { format!("{:?}", request.thinking) };
    let mut parts = vec![
        (serde_json::to_vec(&*request.tools).unwrap(), true, request.system.is_empty()),
        (request.system.as_bytes().to_vec(), true, true),
        (thinking.into_bytes(), false, false),
    ];
    let mut turns = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        let pieces = pieces(message);
        for (index, piece) in pieces.iter().enumerate() {
            let ends = pieces.get(index + 1).is_none_or(|next| next.block != piece.block);
            parts.push((piece.bytes.to_vec(), ends, false));
        }
        let next = request.messages.get(at + 1);
        if message.role == Role::User && next.is_none_or(|next| next.role == Role::Assistant) {
            turns.push(parts.len() - 1);
        }
    }
    turns.into_iter().rev().take(2).for_each(|at| parts[at].2 = true);
    parts
}

/// What a provider with a cache would count.
#[derive(Default)]
struct TrueCache {
    kept: HashMap<(String, u64), SystemTime>,
}

impl TrueCache {
    fn usage(&mut self, request: &Request, model: &Model, minimum: u64) -> Usage {
        let key = format!("{} {}", model.id, model.provider.route());
        let (mut hasher, mut bytes, mut blocks) = (DefaultHasher::new(), 0, 0);
        let mut ends: Vec<(u64, u64, u64, bool)> = Vec::new();
        for (part, ends_block, marked) in parts(request) {
            part.hash(&mut hasher);
            bytes += part.len() as u64;
            blocks += u64::from(ends_block);
            ends.push((hasher.finish(), bytes / 4, blocks, marked));
        }
        let fresh = |at: &SystemTime| passed(*at, clock()) <= Duration::from_secs(300);
        let marks: Vec<_> = ends.iter().filter(|(.., marked)| *marked).copied().collect();
        let mut found = None;
        for (_, _, block, _) in marks.iter().rev() {
            let seen = ends.iter().filter(|(_, _, at, _)| at <= block && block - at <= 20).rev();
            let hit = seen.into_iter().find(|(hash, tokens, ..)| {
                *tokens >= minimum && self.kept.get(&(key.clone(), *hash)).is_some_and(fresh)
            });
            if let Some(hit) = hit {
                found = Some(*hit);
                break;
            }
        }
        for (hash, tokens, ..) in marks.iter().chain(&found) {
            if *tokens >= minimum {
                self.kept.insert((key.clone(), *hash), clock());
            }
        }
        let cache_read = found.map_or(0, |(_, tokens, ..)| tokens);
        let written = marks.last().map_or(0, |(_, tokens, ..)| *tokens);
        let cache_write = if written >= minimum { written.saturating_sub(cache_read) } else { 0 };
        let input = bytes / 4 - cache_read - cache_write;
        Usage { input, output: 9, cache_read, cache_write, reasoning: 0 }
    }
}

struct Talk {
    _home: tempfile::TempDir,
    session: Session,
    prefix: Prefix,
    cache: TrueCache,
    model: Model,
    system: Arc<str>,
    tools: Arc<[ToolSpec]>,
    thinking: Thinking,
    minimum: u64,
    sent: Vec<Request>,
    counted: Option<Usage>,
}

fn tool(name: &str, words: usize) -> ToolSpec {
    ToolSpec { name: name.into(), description: "Reads files. ".repeat(words), schema: json!({ "type": "object" }) }
}

impl Talk {
    fn new() -> Talk {
        let home = tempfile::tempdir().unwrap();
        Talk {
            session: Session::create(home.path(), home.path(), "1", clock),
            _home: home,
            prefix: Prefix::default(),
            cache: TrueCache::default(),
            model: model("claude-sonnet-5", "https://one.example"),
            system: "You help. ".repeat(600).into(),
            tools: vec![tool("Read", 300), tool("Write", 300)].into(),
            thinking: Thinking::Unset,
            minimum: 1_024,
            sent: Vec::new(),
            counted: None,
        }
    }

    fn say(&mut self, message: Message) -> Seq {
        self.session.append(EntryKind::Message { message: Arc::new(message) }).unwrap()
    }

    /// One request with its answer.
    fn ask(&mut self) -> Option<CacheBreak> {
        let broke = self.ask_for_nothing();
        let mut reply = Message::reply(vec![Block::text("Yes.")]);
        reply.usage = self.counted;
        self.say(reply);
        broke
    }

    /// One request whose answer is empty.
    fn ask_for_nothing(&mut self) -> Option<CacheBreak> {
        let request = Request {
            model: self.model.id.clone(),
            system: self.system.clone(),
            tools: self.tools.clone(),
            messages: self.session.context().messages(),
            media: HashMap::new(),
            max_output: 1_000,
            thinking: self.thinking.clone(),
            purpose: Purpose::Main,
            cache_key: "key".into(),
            web_search: None,
            frontier: None,
        };
        let sent = self.prefix.sending(&request, &self.session, &self.model);
        self.prefix.logged(self.session.append(EntryKind::Request(Arc::new(sent))).unwrap());
        let usage = self.cache.usage(&request, &self.model, self.minimum);
        self.sent.push(request);
        self.counted = Some(usage);
        self.prefix.answered(&usage, &self.model)
    }

    fn prompt(&mut self, text: &str) -> Option<CacheBreak> {
        self.say(Message::prompt(text));
        self.ask()
    }

    /// Three turns, the second with a result of 20,000 bytes.
    fn begin() -> (Talk, Seq) {
        let mut talk = Talk::new();
        let opening = "# Environment\n\n# Memory files\n\nContents of /p/AGENTS.md:\n\nBe kind.\n\n";
        talk.say(Message::attachment(crate::message::Attachment::Opening { memory: 15 }, opening));
        assert_eq!(talk.prompt(&"one ".repeat(2_000)), None);
        let second = talk.say(Message::prompt("two"));
        let call = ToolCall::new(CallId::nth(1), "Read", json!({ "file_path": "/p/a" }));
        talk.say(Message::reply(vec![Block::ToolCall(call)]));
        let result = ToolResult::of_text(CallId::nth(1), Outcome::Ok, "line of a file\n".repeat(1_400));
        talk.say(Message::tool_results(vec![result]));
        assert_eq!(talk.ask(), None);
        assert_eq!(talk.prompt(&"three ".repeat(2_000)), None);
        (talk, second)
    }

    /// As another process continues it.
    fn resume(&mut self) {
        self.prefix = Prefix::default();
    }

    /// Where the last two requests differ, found byte by byte.
    fn first_difference(&self) -> u64 {
        let [.., old, new] = self.sent.as_slice() else { panic!("two requests") };
        let flat = |request| -> Vec<u8> { parts(request).into_iter().flat_map(|(bytes, ..)| bytes).collect() };
        flat(old).iter().zip(&flat(new)).take_while(|(old, new)| old == new).count() as u64
    }
}

#[derive(Debug, PartialEq)]
enum Want {
    Nothing,
    Cause(Cause),
    /// The segment's name, and what changed it; the offset is that of the first byte that differs.
    Changed(&'static str, By),
}

#[test]
fn every_break_is_named_with_the_byte_where_it_began() {
    type Break = (&'static str, fn(&mut Talk, Seq), Want);
    let tools = |added: &[&str], changed: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        By::Tools { added: names(added), removed: Vec::new(), changed: names(changed) }
    };
    let expired = |gap| Want::Cause(Cause::Expired { gap, ttl: 300 });
    let model_by = || By::Model { from: "anthropic/claude-sonnet-5".into(), to: "anthropic/claude-opus-5".into() };
    let thinking_by = || By::Thinking { from: String::new(), to: "Budget(9000)".into() };
    let rows: Vec<Break> = vec![
        ("another turn", |_, _| {}, Want::Nothing),
        ("a pause that is short enough", |_, _| later(299), Want::Nothing),
        ("a resume in time", |talk, _| talk.resume(), Want::Nothing),
        ("a long pause", |_, _| later(301), expired(301)),
        (
            "a resume after a day",
            |talk, _| {
                later(86_400);
                talk.resume();
            },
            expired(86_400),
        ),
        (
            "a tool that joins",
            |talk, _| talk.tools = vec![tool("Read", 300), tool("Write", 300), tool("Late", 1)].into(),
            Want::Changed("tools", tools(&["Late"], &[])),
        ),
        (
            "a tool's other description",
            |talk, _| talk.tools = vec![tool("Read", 300), tool("Write", 301)].into(),
            Want::Changed("tools", tools(&[], &["Write"])),
        ),
        (
            "another system prompt",
            |talk, _| talk.system = format!("{}Be brief.", "You help. ".repeat(400)).into(),
            Want::Changed("system", By::System),
        ),
        ("another effort", |talk, _| talk.thinking = Thinking::Budget(9_000), Want::Changed("params", thinking_by())),
        (
            "another model",
            |talk, _| talk.model = model("claude-opus-5", "https://one.example"),
            Want::Cause(Cause::Changed { segment: "model".into(), offset: 0, by: model_by() }),
        ),
        (
            "a compaction",
            |talk, second| {
                let summary = Some(Arc::new(Message::prompt("word ".repeat(4_000))));
                let boundary = Boundary { keep_from: second, summary, ..Boundary::default() };
                talk.session.append(EntryKind::CompactBoundary(boundary)).unwrap();
            },
            Want::Changed("message", By::Compaction { number: 1 }),
        ),
        (
            "a compaction that is undone",
            |talk, second| {
                let boundary = Boundary { keep_from: second, ..Boundary::default() };
                let seq = talk.session.append(EntryKind::CompactBoundary(boundary)).unwrap();
                talk.prompt("four");
                // What came before it is no longer kept by then.
                talk.cache.kept.clear();
                talk.session.append(EntryKind::BoundaryUndone { seq }).unwrap();
            },
            Want::Changed("opening", By::CompactionUndone),
        ),
        (
            "a rewind, and new words in the place of the old",
            |talk, second| {
                talk.session.append(EntryKind::Rewind { to: second }).unwrap();
                talk.say(Message::prompt("otherwise ".repeat(3_000)));
            },
            Want::Nothing,
        ),
        (
            "a result that is cleared",
            |talk, _| {
                let (calls, persisted) = (vec![CallId::nth(1)], vec![None]);
                talk.session.append(EntryKind::ToolResultsCleared { calls, persisted }).unwrap();
            },
            Want::Changed("message", By::Cleared),
        ),
        (
            "a block that is clipped",
            |talk, _| {
                let blocks = vec![ClippedBlock { seq: 2, block: 0, head: 100, tail: 100, persisted: None }];
                talk.session.append(EntryKind::BlocksClipped { blocks }).unwrap();
            },
            Want::Changed("message", By::Clipped),
        ),
        (
            "another address",
            |talk, _| talk.model = model("claude-sonnet-5", "https://two.example"),
            Want::Cause(Cause::Route { from: "https://one.example".into(), to: "https://two.example".into() }),
        ),
        (
            "more blocks than the provider looks back",
            |talk, _| {
                talk.say(Message::prompt("much ".repeat(12_000)));
                assert_eq!(talk.ask_for_nothing(), None);
                for _ in 0..25 {
                    talk.say(Message::prompt("and"));
                }
            },
            Want::Cause(Cause::BreakpointLimit { blocks: 26 }),
        ),
        (
            "a model that caches nothing so short",
            |talk, _| {
                *talk = Talk::new();
                talk.prompt("one");
                (talk.model, talk.minimum) = (model("claude-haiku-4-5", "https://one.example"), 4_096);
                talk.prompt("two");
            },
            Want::Cause(Cause::BelowMinimum { minimum: 4_096 }),
        ),
        ("a provider that forgets", |talk, _| talk.cache.kept.clear(), Want::Cause(Cause::Provider)),
    ];
    for (name, provoke, want) in rows {
        let (mut talk, second) = Talk::begin();
        provoke(&mut talk, second);
        let broke = talk.prompt("last");
        let found = match broke {
            None => Want::Nothing,
            Some(CacheBreak { cause: Cause::Changed { segment, offset, by }, .. }) if segment != "model" => {
                assert_eq!(offset, talk.first_difference(), "{name}");
                let named = ["tools", "system", "params", "opening"].into_iter().find(|name| *name == segment);
                Want::Changed(named.unwrap_or_else(|| segment.split(':').next().map_or("", |_| "message")), by)
            }
            Some(broke) => Want::Cause(broke.cause),
        };
        assert_eq!(found, want, "{name}");
    }
}
