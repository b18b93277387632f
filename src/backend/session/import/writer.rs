//! Writes a log of ours from what the session of another program says, one thing after the other.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context as Sum, SHA256};
use serde_json::Value;

use super::calls;
use crate::message::{
    Attachment, Block, CallId, Display, FileDiff, Kind, Message, Origin, Outcome, ToolCall, ToolResult, Usage, tokens,
};
use crate::session::entry::{Boundary, Dropped, Entry, EntryKind, Header, Kept, Receipt, Seq, Trigger, VERSION};
use crate::stdx::{hash, redact};

/// Bytes of one text that are kept of its start and of its end.
const START: usize = 24 << 10;
const END: usize = 8 << 10;

/// What became of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    pub title: Option<String>,
    pub cwd: PathBuf,
    pub prompts: u64,
    pub replies: u64,
    pub calls: u64,
    /// Time of the last entry, in milliseconds since 1970.
    pub last_ms: i64,
    pub bytes: u64,
    /// SHA-256 of the log, in lower-case hex.
    pub hash: String,
}

/// A reply that may not be complete, its calls, and the results so far.
#[derive(Default)]
struct Round {
    /// Their name of the message.
    id: Option<String>,
    origin: Option<Origin>,
    blocks: Vec<Block>,
    calls: Vec<Open>,
    results: bool,
}

struct Open {
    /// Their name of the call.
    theirs: String,
    id: CallId,
    patch: Option<FileDiff>,
    result: Option<ToolResult>,
}

pub(super) struct Writer<'a> {
    out: &'a mut dyn Write,
    header: Header,
    /// Tells where it comes from, before everything else.
    notice: Option<String>,
    seq: Seq,
    time: i64,
    round: Round,
    in_turn: bool,
    named: Option<String>,
    /// What was said since the last boundary, or kept by it, with a rough count of its tokens.
    said: Vec<(Seq, Kind, u64)>,
    sum: Sum,
    written: Written,
}

impl<'a> Writer<'a> {
    /// `id` is that of the new session.
    pub(super) fn new(out: &'a mut dyn Write, id: &str, version: &str, notice: String) -> Writer<'a> {
        let (session, version) = (id.to_owned(), version.to_owned());
        let header = Header { session, cwd: PathBuf::new(), version, forked_from: None };
        let (sum, written) = (Sum::new(&SHA256), Written::default());
        let (round, notice, said) = (Round::default(), Some(notice), Vec::new());
        Writer { out, header, notice, seq: 0, time: 0, round, in_turn: false, named: None, said, sum, written }
    }

    /// The folder of the session: the first that is told.
    pub(super) fn cwd(&mut self, cwd: Option<&str>) {
        let is_folder = |cwd: &&str| Path::new(cwd).is_absolute() && !cwd.contains(char::is_control);
        if let Some(cwd) = cwd.filter(is_folder).filter(|_| self.header.cwd.as_os_str().is_empty()) {
            self.header.cwd = PathBuf::from(cwd);
        }
    }

    /// The time of what follows, in milliseconds since 1970.
    pub(super) fn at(&mut self, millis: Option<i64>) {
        self.time = millis.filter(|millis| *millis > 0).unwrap_or(self.time);
        self.written.last_ms = self.written.last_ms.max(self.time);
    }

    /// The name that the user, or the other program, gave the session.
    pub(super) fn title(&mut self, title: Option<&str>) {
        if let Some(title) = title.map(str::trim).filter(|title| !title.is_empty()) {
            let line = clean(title).split_whitespace().collect::<Vec<_>>().join(" ");
            self.named = Some(line.chars().take(120).collect());
        }
    }

    /// The entry that comes next, once what is open is written.
    pub(super) fn place(&mut self) -> io::Result<Seq> {
        self.flush()?;
        Ok(self.seq.max(2))
    }

    pub(super) fn prompt(&mut self, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.end_turn()?;
        self.in_turn = true;
        self.put(EntryKind::TurnStarted)?;
        self.written.prompts += 1;
        let text = clean(text);
        self.written.title.get_or_insert_with(|| crate::session::title_of(&text));
        // Their programs put files, pastes and notes of their own into prompts: what was typed cannot be told apart.
        let data = std::iter::once(0..text.len()).collect();
        self.put(message(Message { data, ..Message::prompt(text) }))
    }

    /// Begins a reply, or continues the one of that name.
    pub(super) fn reply(&mut self, id: Option<&str>, origin: Option<Origin>) -> io::Result<()> {
        let same = match id {
            Some(id) => self.round.id.as_deref() == Some(id),
            None => self.round.id.is_none() && !self.round.results,
        };
        if !same {
            self.flush()?;
            self.round.id = id.map(str::to_owned);
        }
        self.round.origin = origin.or(self.round.origin.take());
        Ok(())
    }

    pub(super) fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.round.blocks.push(Block::text(clean(text)));
        }
    }

    /// Thoughts without what proves them: only who thought them could read that.
    pub(super) fn think(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.round.blocks.push(Block::Thinking { text: clean(text), wire: None });
        }
    }

    pub(super) fn call(&mut self, theirs: &str, tool: &str, input: Value) {
        let patch = input.get("patch").or(input.get("input")).or(input.get("patchText")).and_then(Value::as_str);
        let patch = patch.and_then(|patch| calls::patch(&clean(patch)));
        let tool = calls::name(tool);
        let input = cleaned(calls::input(tool, input));
        self.written.calls += 1;
        let id = CallId::nth(self.written.calls);
        let title = patch.as_ref().map(|patch| patch.path.clone()).or_else(|| calls::title(&input));
        self.round.blocks.push(Block::ToolCall(ToolCall { title, ..ToolCall::new(id.clone(), tool, input) }));
        self.round.calls.push(Open { theirs: theirs.to_owned(), id, patch, result: None });
    }

    /// What a call came to. One that nobody made is passed over.
    pub(super) fn result(&mut self, theirs: &str, outcome: Outcome, text: &str) {
        let open = self.round.calls.iter_mut().find(|call| call.theirs == theirs && call.result.is_none());
        if let Some(call) = open {
            let diff = call.patch.take().filter(|_| outcome == Outcome::Ok).map(Display::Diff);
            let result = ToolResult::of_text(call.id.clone(), outcome, clean(text));
            call.result = Some(ToolResult { display: diff, ..result });
            self.round.results = true;
        }
    }

    /// What the model reads beside prompts and replies.
    pub(super) fn note(&mut self, what: Attachment, text: &str) -> io::Result<()> {
        self.flush()?;
        self.put(message(Message::attachment(what, &clean(text))))
    }

    /// Everything before `keep_from`, or everything so far, left their context and a summary took its place. `before` is
    /// their count of tokens, 0 where they do not tell it.
    pub(super) fn boundary(&mut self, summary: &str, before: u64, keep_from: Option<Seq>) -> io::Result<()> {
        self.end_turn()?;
        self.begin()?;
        let keep_from = keep_from.unwrap_or(self.seq);
        let all = self.said.iter().map(|(.., tokens)| tokens).sum();
        let pre_tokens = if before > 0 { before } else { all };
        let mut dropped = Dropped::default();
        self.said.retain(|(seq, kind, _)| {
            let gone = *seq < keep_from;
            *match kind {
                Kind::Prompt => &mut dropped.prompts,
                Kind::Reply => &mut dropped.replies,
                Kind::ToolResult => &mut dropped.results,
                _ => &mut dropped.others,
            } += u64::from(gone);
            !gone
        });
        let text = clean(summary);
        let kept = Kept { messages: self.said.len() as u64, ..Kept::default() };
        let post_tokens = tokens::text(&text) + self.said.iter().map(|(.., tokens)| tokens).sum::<u64>();
        let (tier, trigger) = ("full".to_owned(), Trigger::Auto);
        let (before, after) = (pre_tokens, post_tokens);
        let receipt = Receipt { tier: tier.clone(), trigger, before, after, kept, dropped, ..Receipt::default() };
        let summary = Message { kind: Kind::CompactSummary, user_visible: false, ..Message::prompt(text) };
        let summary = Some(Arc::new(summary));
        let boundary =
            Boundary { trigger, tier, pre_tokens, post_tokens, keep_from, summary, receipt, ..Boundary::default() };
        self.put(EntryKind::CompactBoundary(boundary))
    }

    /// Ends the log, and tells what it says.
    pub(super) fn finish(mut self) -> io::Result<Written> {
        self.end_turn()?;
        if let Some(title) = self.named.take() {
            self.put(EntryKind::Title { title: title.clone() })?;
            self.written.title = Some(title);
        }
        let sum = self.sum.finish();
        let hash = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Written { cwd: self.header.cwd, hash, ..self.written })
    }

    fn end_turn(&mut self) -> io::Result<()> {
        self.flush()?;
        match std::mem::take(&mut self.in_turn) {
            true => self.put(EntryKind::TurnEnded { end: "done".to_owned(), usage: Usage::default() }),
            false => Ok(()),
        }
    }

    /// Writes the reply that is open. Each of its calls has one result afterwards.
    fn flush(&mut self) -> io::Result<()> {
        let Round { origin, blocks, calls, .. } = std::mem::take(&mut self.round);
        if blocks.is_empty() {
            return Ok(());
        }
        self.written.replies += 1;
        self.put(message(Message { origin, ..Message::reply(blocks) }))?;
        for call in calls {
            let missing = || ToolResult::of_text(call.id.clone(), Outcome::Interrupted, "No result was recorded.");
            self.put(message(Message::tool_results(vec![call.result.clone().unwrap_or_else(missing)])))?;
        }
        Ok(())
    }

    /// Header and notice, before the first entry.
    fn begin(&mut self) -> io::Result<()> {
        let Some(notice) = self.notice.take() else { return Ok(()) };
        if self.header.cwd.as_os_str().is_empty() {
            self.header.cwd = PathBuf::from("/");
        }
        self.put(EntryKind::Header(self.header.clone()))?;
        self.put(message(Message::notice(notice)))
    }

    fn put(&mut self, kind: EntryKind) -> io::Result<()> {
        self.begin()?;
        let random = hash::short(&[self.header.session.as_bytes(), &self.seq.to_be_bytes()]);
        let mut bits = [0; 10];
        bits[..8].copy_from_slice(&random.to_be_bytes());
        let id = uuid::Builder::from_unix_timestamp_millis(self.time.max(0).cast_unsigned(), &bits).into_uuid();
        let ts = jiff::Timestamp::from_millisecond(self.time).unwrap_or_default();
        let ts = ts.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
        let said = match &kind {
            EntryKind::Message { message } if message.agent_visible => Some(message.kind),
            _ => None,
        };
        let mut line = serde_json::to_vec(&Entry { v: VERSION, seq: self.seq, id: id.to_string(), ts, kind })?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.sum.update(&line);
        self.said.extend(said.map(|kind| (self.seq, kind, line.len() as u64 / 4)));
        self.written.bytes += line.len() as u64;
        self.seq += 1;
        Ok(())
    }
}

/// The id that a session of another program has here, always the same.
pub(super) fn id_of(source: &str, theirs: &str) -> String {
    let name = hash::sha256_hex(format!("{source}:{theirs}").as_bytes());
    let bits = u128::from_str_radix(&name[..32], 16).unwrap_or_default();
    uuid::Builder::from_u128(bits)
        .with_version(uuid::Version::Custom)
        .with_variant(uuid::Variant::RFC4122)
        .into_uuid()
        .to_string()
}

fn message(message: Message) -> EntryKind {
    EntryKind::Message { message: Arc::new(message) }
}

/// A text of bounded length without keys.
fn clean(text: &str) -> String {
    if text.len() <= START + END {
        return redact::keys(text);
    }
    let start = text.floor_char_boundary(START);
    let end = text.ceil_char_boundary(text.len() - END);
    let cut = format!("{}\n[{} bytes were left out on import]\n{}", &text[..start], end - start, &text[end..]);
    redact::keys(&cut)
}

fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(cleaned).collect()),
        Value::Object(fields) => {
            // What is called a secret is one, whatever it looks like.
            let field = |(name, value): (String, Value)| {
                let value = match value {
                    Value::String(text) => Value::String(clean(&redact::field(&name, &text))),
                    other => cleaned(other),
                };
                (redact::keys(&name), value)
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        other => other,
    }
}
