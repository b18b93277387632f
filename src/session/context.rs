//! What the model sees: a fold over the entries of a log that count.
//!
//! Adding an entry costs that entry alone. What rewinds, boundaries and their undo do to the set of entries that count is
//! `timeline`'s part; the fold itself only ever goes forward.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

mod boundary;
mod calls;
mod clip;
mod memory;
mod view;

use calls::Calls;

pub use view::{Count, Held, Shown};

use super::entry::{Boundary, EntryKind, Seq};
use crate::message::tokens::{self, Load};
use crate::message::{Block, CallId, Content, Effect, Message, Outcome, Role, StopReason, Todo, ToolResult};

/// What a call without a result is answered with.
const INTERRUPTED: &str = "[interrupted: this call did not finish; what it did until then is unknown]";

/// The projection of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    items: Vec<Item>,
    calls: Calls,
    /// Who saw which content of a file, oldest first.
    reads: HashMap<PathBuf, Vec<(Reader, String)>>,
    seen: HashMap<PathBuf, String>,
    memory: memory::Files,
    todos: Vec<Todo>,
    cwd: PathBuf,
    parts: Parts,
    tally: Tally,
    /// Number of items that a boundary put at the start.
    lead: usize,
}

/// One message that the model sees.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    seq: Seq,
    /// As it is in the log.
    original: Arc<Message>,
    /// As the model sees it.
    shown: Arc<Message>,
    /// Index in `original` of each block of `shown`, when some were left out.
    kept: Option<Vec<usize>>,
    /// Digests of results that were archived here; they follow this message.
    digests: Vec<Arc<Message>>,
    /// Estimate for `shown` and `digests`, made when it is first asked for: most messages stand before the last reply,
    /// which the provider has counted.
    tokens: Estimate,
}

#[derive(Debug, Clone, Default)]
struct Estimate(OnceLock<Load>);

/// Equal messages have equal estimates, made or not.
impl PartialEq for Estimate {
    fn eq(&self, _other: &Estimate) -> bool {
        true
    }
}

/// What an edit took from an item and brought to it, by estimate.
struct Change {
    gone: Load,
    come: Load,
}

impl Item {
    /// Replaces a block that weighs `gone`. Blocks of the original stay its own; those next to it are copied.
    fn put(&mut self, at: usize, block: Block, gone: Load) -> Change {
        let change = Change { gone, come: tokens::load_of(&block) };
        if let Some(own) = Arc::get_mut(&mut self.shown) {
            own.blocks[at] = block;
            return change;
        }
        let Message { role, kind, blocks, agent_visible, user_visible, origin, usage, stop, effects } = &*self.shown;
        let mut with = Vec::with_capacity(blocks.len());
        with.extend_from_slice(&blocks[..at]);
        with.push(block);
        with.extend_from_slice(&blocks[at + 1..]);
        let (agent_visible, user_visible, usage) = (*agent_visible, *user_visible, *usage);
        let (origin, stop, effects) = (origin.clone(), stop.clone(), effects.clone());
        self.shown = Arc::new(Message {
            role: *role,
            kind: *kind,
            blocks: with,
            agent_visible,
            user_visible,
            origin,
            usage,
            stop,
            effects,
        });
        change
    }

    /// Index in `original` of a block of `shown`.
    fn place(&self, block: usize) -> usize {
        self.kept.as_ref().map_or(block, |kept| kept[block])
    }

    fn load(&self) -> Load {
        let messages = std::iter::once(&self.shown).chain(&self.digests);
        *self.tokens.0.get_or_init(|| messages.map(|message| tokens::load(message)).sum())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reader {
    Call(CallId),
    /// An attachment holds the file whole.
    Attachment,
}

/// What has arrived of a reply that has no `message` yet.
#[derive(Debug, Clone, Default, PartialEq)]
struct Parts {
    text: String,
    thinking: String,
}

/// What a provider counted last.
#[derive(Debug, Clone, Default)]
struct Tally {
    /// Tokens of the last reply and all before it, less what was cleared since.
    counted: Option<u64>,
    /// Number of items that `counted` covers.
    covers: usize,
    /// Sum of the estimates of the items from `covers` on, up to `summed`.
    later: Load,
    summed: usize,
}

/// How far the sum has got says nothing about the projection.
impl PartialEq for Tally {
    fn eq(&self, other: &Tally) -> bool {
        (self.counted, self.covers) == (other.counted, other.covers)
    }
}

impl Context {
    /// An empty context whose shell starts in `cwd`.
    pub fn new(cwd: PathBuf) -> Context {
        Context {
            items: Vec::new(),
            calls: Calls::default(),
            reads: HashMap::new(),
            seen: HashMap::new(),
            memory: memory::Files::default(),
            todos: Vec::new(),
            cwd,
            parts: Parts::default(),
            tally: Tally::default(),
            lead: 0,
        }
    }

    /// The messages to send, oldest first: each call is followed by exactly one result before anything else, in the order
    /// of the calls.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let mut messages = Vec::with_capacity(self.items.len() + 1);
        let mut sent_results = None;
        for (index, item) in self.items.iter().enumerate() {
            if item.shown.role == Role::Assistant {
                if item.shown.blocks.is_empty() {
                    continue;
                }
                messages.push(Arc::clone(&item.shown));
                if item.shown.calls().next().is_none() {
                    continue;
                }
                match self.items.get(index + 1) {
                    Some(next) if answers_in_order(&item.shown, &next.shown) => {
                        messages.push(Arc::clone(&next.shown));
                        sent_results = Some(index + 1);
                    }
                    _ => {
                        let results = item.shown.calls().map(|call| self.result(&call.id)).collect();
                        messages.push(Arc::new(Message::tool_results(results)));
                    }
                }
            } else if sent_results != Some(index) {
                messages.extend(without_results(&item.shown));
            }
            messages.extend(item.digests.iter().cloned());
        }
        messages.extend(self.parts.reply().filter(|reply| reply.agent_visible).map(Arc::new));
        messages
    }

    /// The messages with the entry that each came from, as the projection holds them: what compaction chooses from.
    /// Messages of a boundary bear the boundary's `seq`.
    pub fn entries(&self) -> impl Iterator<Item = (Seq, &Arc<Message>)> {
        self.items.iter().map(|item| (item.seq, &item.shown))
    }

    /// Files that the model has seen and that it may edit while their content still has this hash.
    pub fn seen(&self) -> &HashMap<PathBuf, String> {
        &self.seen
    }

    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// Where the next shell line starts.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Calls that have no result yet, oldest first.
    pub fn open_calls(&self) -> Vec<CallId> {
        let calls = self.items.iter().flat_map(|item| item.shown.calls());
        calls
            .filter(|call| self.calls.get(&call.id).is_some_and(|call| call.result.is_none()))
            .map(|call| call.id.clone())
            .collect()
    }

    /// Carries over what no boundary takes away.
    pub(super) fn set_state(&mut self, todos: Option<Vec<Todo>>, cwd: Option<PathBuf>) {
        self.todos = todos.unwrap_or_default();
        if let Some(cwd) = cwd {
            self.cwd = cwd;
        }
    }

    /// Starts the fold with what a boundary puts in the place of everything before it.
    pub(super) fn begin(&mut self, seq: Seq, boundary: &Boundary) {
        for message in boundary.messages() {
            self.message(seq, message);
        }
        self.lead = self.items.len();
        for effect in &boundary.effects {
            self.effect(Reader::Attachment, effect);
        }
    }

    /// Adds an entry. Rewinds, boundaries and their undo have done their work before the fold.
    pub(super) fn apply(&mut self, seq: Seq, kind: &EntryKind) {
        match kind {
            EntryKind::Message { message } => {
                if message.role == Role::Assistant {
                    self.parts = Parts::default();
                }
                self.message(seq, message);
            }
            EntryKind::ReplyPart { text, thinking } => {
                self.parts.text.push_str(text);
                self.parts.thinking.push_str(thinking);
            }
            EntryKind::ReplyDiscarded { .. } => self.parts = Parts::default(),
            EntryKind::TurnStarted | EntryKind::TurnEnded { .. } => self.flush(seq),
            EntryKind::ToolResultsCleared { calls, persisted } => {
                for (index, call) in calls.iter().enumerate() {
                    let saved = persisted.get(index).and_then(Option::as_deref);
                    self.replace(call, |bytes| clip::cleared_marker(bytes, saved));
                }
                self.forget_replaced();
            }
            EntryKind::ToolResultsArchived { calls, digest } => self.archive(seq, calls, digest),
            EntryKind::BlocksClipped { blocks } => blocks.iter().for_each(|block| self.clip(block)),
            EntryKind::CompactBoundary(boundary) => {
                self.flush(seq);
                // What an earlier boundary archived may have left with a later one.
                if let Some(archived) = &boundary.archived
                    && archived.calls.iter().any(|call| self.calls.get(call).is_some())
                {
                    self.archive(seq, &archived.calls, &archived.digest);
                }
                // Older usage counted what is no longer there.
                self.tally = Tally::default();
            }
            // What was counted since the boundary was without what comes back.
            EntryKind::BoundaryUndone { .. } => self.tally = Tally::default(),
            EntryKind::Header(_)
            | EntryKind::FileBefore { .. }
            | EntryKind::FileAfter { .. }
            | EntryKind::FilesSettled { .. }
            | EntryKind::FileTouched { .. }
            | EntryKind::FilesKnown { .. }
            | EntryKind::FilesRestored { .. }
            | EntryKind::CommandRan { .. }
            | EntryKind::ShellRan { .. }
            | EntryKind::Rewind { .. }
            | EntryKind::Title { .. }
            | EntryKind::ModeChanged { .. }
            | EntryKind::ModelChanged { .. }
            | EntryKind::ThinkingChanged { .. }
            | EntryKind::Granted { .. }
            | EntryKind::Revoked { .. }
            | EntryKind::Trusted { .. }
            | EntryKind::HookRan { .. }
            | EntryKind::PlanSlug { .. }
            | EntryKind::SkillInvoked { .. }
            | EntryKind::Spent { .. }
            | EntryKind::Decided(_)
            | EntryKind::AgentStarted { .. }
            | EntryKind::Unknown => {}
        }
    }

    /// Parts that never got their message become an interrupted reply.
    fn flush(&mut self, seq: Seq) {
        if let Some(reply) = self.parts.reply() {
            self.parts = Parts::default();
            self.message(seq, &Arc::new(reply));
        }
    }

    fn message(&mut self, seq: Seq, message: &Arc<Message>) {
        if !message.agent_visible {
            return;
        }
        let index = self.items.len();
        // Calls whose id was used before, and results that answer no open call, would make the request invalid.
        let mut kept = Vec::with_capacity(message.blocks.len());
        for (at, block) in message.blocks.iter().enumerate() {
            let keep = match (message.role, block) {
                (Role::Assistant, Block::ToolCall(call)) => self.calls.make(&call.id, &call.name),
                (Role::User, Block::ToolResult(result)) => {
                    let answers = self.calls.answer(&result.id, (index, kept.len()));
                    if answers {
                        for effect in &result.effects {
                            self.effect(Reader::Call(result.id.clone()), effect);
                        }
                    }
                    answers
                }
                (Role::Assistant, Block::ToolResult(_)) | (Role::User, Block::ToolCall(_)) => false,
                (_, Block::Text { .. } | Block::Thinking { .. } | Block::Media(_)) => true,
            };
            if keep {
                kept.push(at);
            }
        }
        let whole = kept.len() == message.blocks.len();
        let shown = match whole {
            true => Arc::clone(message),
            false => {
                let blocks = kept.iter().map(|at| message.blocks[*at].clone()).collect();
                Arc::new(Message { blocks, ..Message::clone(message) })
            }
        };
        for effect in &message.effects {
            self.effect(Reader::Attachment, effect);
        }
        let counted = message.usage.filter(|_| message.role == Role::Assistant).map_or(0, |usage| usage.context());
        self.items.push(Item {
            seq,
            original: Arc::clone(message),
            shown,
            kept: (!whole).then_some(kept),
            digests: Vec::new(),
            tokens: Estimate::default(),
        });
        if counted > 0 {
            self.tally = Tally { counted: Some(counted), covers: index + 1, later: Load::default(), summed: index + 1 };
        }
    }

    fn effect(&mut self, reader: Reader, effect: &Effect) {
        match effect {
            Effect::Seen { path, sha256 } => {
                self.seen.insert(path.clone(), sha256.clone());
                self.reads.entry(path.clone()).or_default().push((reader, sha256.clone()));
            }
            Effect::Cwd { path } => self.cwd.clone_from(path),
            Effect::Todos { items } => self.todos.clone_from(items),
            // Reminders look through the messages.
            Effect::Plan { .. } | Effect::Skills { .. } => {}
            Effect::Memory { files, because } => self.memory.add(self.items.len(), files, because.as_ref()),
        }
    }

    /// A result as it is sent.
    fn result(&self, id: &CallId) -> ToolResult {
        let held = self.calls.get(id).and_then(|call| call.result);
        let held = held.and_then(|(index, block)| self.items.get(index)?.shown.blocks.get(block));
        match held {
            Some(Block::ToolResult(result)) => Some(result.clone()),
            _ => None,
        }
        .unwrap_or_else(|| ToolResult::of_text(id.clone(), Outcome::Interrupted, INTERRUPTED))
    }

    /// Puts a marker in the place of a result's content; `marker` gets the content's size in bytes. Once a result.
    fn replace(&mut self, id: &CallId, marker: impl Fn(usize) -> String) -> Option<usize> {
        let call = self.calls.get_mut(id).filter(|call| !call.replaced)?;
        let (index, block) = call.result?;
        call.replaced = true;
        let known = std::mem::take(&mut call.tokens).0.into_inner();
        let item = &self.items[index];
        let gone = known.unwrap_or_else(|| tokens::load_of(&item.shown.blocks[block]));
        let original = Arc::clone(&item.original);
        let Block::ToolResult(original) = &original.blocks[item.place(block)] else { return None };
        let marker = vec![Content::text(marker(original.text_len()))];
        let (id, outcome, display) = (original.id.clone(), original.outcome, original.display.clone());
        let marked = ToolResult { id, outcome, content: marker, display, effects: original.effects.clone() };
        self.edit(index, |item| item.put(block, Block::ToolResult(marked), gone));
        self.unread(original);
        Some(index)
    }

    fn archive(&mut self, seq: Seq, calls: &[CallId], digest: &Arc<Message>) {
        let stub = |bytes| format!("[result archived: {bytes} bytes; a digest follows]");
        let last = calls.iter().filter_map(|call| self.replace(call, stub)).max();
        self.forget_replaced();
        let Some(last) = last else { return self.message(seq, digest) };
        if digest.agent_visible {
            self.edit(last, |item| {
                item.digests.push(Arc::clone(digest));
                Change { gone: Load::default(), come: tokens::load(digest) }
            });
        }
    }

    /// Changes what the model sees of an item, by a difference; what the provider had counted of it changes by the same.
    fn edit(&mut self, index: usize, change: impl FnOnce(&mut Item) -> Change) {
        let item = &mut self.items[index];
        let before = item.load();
        let Change { gone, come } = change(item);
        let after = before + come - gone;
        item.tokens = Estimate(OnceLock::from(after));
        let tally = &mut self.tally;
        if index < tally.covers {
            if let Some(counted) = &mut tally.counted {
                *counted = (*counted + after.total()).saturating_sub(before.total());
            }
        } else if index < tally.summed {
            tally.later = tally.later + after - before;
        }
    }
}

impl Parts {
    fn reply(&self) -> Option<Message> {
        if self.text.is_empty() && self.thinking.is_empty() {
            return None;
        }
        let mut blocks = Vec::new();
        if !self.thinking.is_empty() {
            blocks.push(Block::Thinking { text: self.thinking.clone(), wire: None });
        }
        if !self.text.is_empty() {
            blocks.push(Block::text(self.text.clone()));
        }
        let mut reply = Message::reply(blocks);
        reply.stop = Some(StopReason::Interrupted);
        // Reasoning alone, without its signature, is nothing that could be sent.
        reply.agent_visible = !self.text.is_empty();
        Some(reply)
    }
}

/// Whether `results` begins with exactly the answers to the calls of `reply`, in order, and holds no others.
fn answers_in_order(reply: &Message, results: &Message) -> bool {
    let first = results.blocks.iter().take_while(|block| matches!(block, Block::ToolResult(_))).count();
    results.role == Role::User
        && results.results().count() == first
        && reply.calls().map(|call| &call.id).eq(results.results().map(|result| &result.id))
}

/// The message without results, which were sent with their calls. None when nothing else is in it.
fn without_results(message: &Arc<Message>) -> Option<Arc<Message>> {
    if message.results().next().is_none() {
        return (!message.blocks.is_empty()).then(|| Arc::clone(message));
    }
    let others = message.blocks.iter().filter(|block| !matches!(block, Block::ToolResult(_)));
    let blocks: Vec<Block> = others.cloned().collect();
    (!blocks.is_empty()).then(|| Arc::new(Message { blocks, ..Message::clone(message) }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Kind, ToolCall, Usage};
    use crate::session::entry::ClippedBlock;

    fn message(message: Message) -> EntryKind {
        EntryKind::Message { message: Arc::new(message) }
    }

    fn prompt(text: &str) -> EntryKind {
        message(Message::prompt(text))
    }

    fn calls(ids: &[u64]) -> EntryKind {
        let call = |id: &u64| Block::ToolCall(ToolCall::new(CallId::nth(*id), "T", json!({})));
        message(Message::reply(ids.iter().map(call).collect()))
    }

    fn ok(id: u64) -> ToolResult {
        ToolResult::of_text(CallId::nth(id), Outcome::Ok, format!("r{id}"))
    }

    fn results(ids: &[u64]) -> EntryKind {
        message(Message::tool_results(ids.iter().map(|id| ok(*id)).collect()))
    }

    fn read(id: u64, path: &str, sha256: &str) -> EntryKind {
        let effects = vec![Effect::Seen { path: path.into(), sha256: sha256.into() }];
        message(Message::tool_results(vec![ToolResult { effects, ..ok(id) }]))
    }

    fn part(text: &str) -> EntryKind {
        EntryKind::ReplyPart { text: text.into(), thinking: "hm".into() }
    }

    fn cleared(ids: &[u64]) -> EntryKind {
        EntryKind::ToolResultsCleared { calls: ids.iter().map(|id| CallId::nth(*id)).collect(), persisted: vec![] }
    }

    fn context(entries: &[EntryKind]) -> Context {
        let mut context = Context::new("/".into());
        entries.iter().enumerate().for_each(|(seq, entry)| context.apply(seq as Seq, entry));
        context
    }

    /// One word a block: `c1` is a call, `r1` its result, `!1` a result that says it was interrupted.
    fn show(context: &Context) -> Vec<String> {
        let block = |block: &Block| match block {
            Block::Text { text, .. } => text.clone(),
            Block::Thinking { text, .. } => format!("~{text}"),
            Block::ToolCall(call) => format!("c{}", &call.id.as_str()[5..]),
            Block::ToolResult(result) if result.outcome == Outcome::Interrupted => {
                format!("!{}", &result.id.as_str()[5..])
            }
            Block::ToolResult(result) => result.text(),
            Block::Media(_) => "media".to_owned(),
        };
        let row = |message: &Arc<Message>| {
            let blocks: Vec<String> = message.blocks.iter().map(block).collect();
            let role = if message.role == Role::User { "u" } else { "a" };
            format!("{role}: {}", blocks.join(" "))
        };
        context.messages().iter().map(row).collect()
    }

    fn check(entries: &[EntryKind], want: &[&str]) {
        assert_eq!(show(&context(entries)), want);
    }

    #[test]
    fn each_call_is_answered_right_after_it() {
        check(&[], &[]);
        check(&[prompt("a"), calls(&[1, 2]), results(&[1, 2])], &["u: a", "a: c1 c2", "u: r1 r2"]);
        // Out of order, in several messages, with a steered prompt between, in part, not at all.
        check(&[calls(&[1, 2]), results(&[2, 1])], &["a: c1 c2", "u: r1 r2"]);
        check(&[calls(&[1, 2]), results(&[1]), results(&[2])], &["a: c1 c2", "u: r1 r2"]);
        check(&[calls(&[1]), prompt("steer"), results(&[1])], &["a: c1", "u: r1", "u: steer"]);
        check(&[calls(&[1, 2]), results(&[2]), prompt("b")], &["a: c1 c2", "u: !1 r2", "u: b"]);
        check(&[calls(&[1]), calls(&[2]), results(&[2, 1])], &["a: c1", "u: r1", "a: c2", "u: r2"]);
        check(&[calls(&[1])], &["a: c1", "u: !1"]);
        // Results without a call, results twice, calls twice.
        check(&[results(&[1]), calls(&[1])], &["a: c1", "u: !1"]);
        check(&[calls(&[1]), results(&[1]), results(&[1]), prompt("b")], &["a: c1", "u: r1", "u: b"]);
        check(&[calls(&[1, 1]), results(&[1, 1])], &["a: c1", "u: r1"]);
        check(&[calls(&[1]), results(&[1]), calls(&[1]), results(&[1])], &["a: c1", "u: r1"]);
        // What the model does not see answers nothing.
        let EntryKind::Message { message: hidden } = results(&[1]) else { unreachable!() };
        let hidden = message(Message { agent_visible: false, ..Message::clone(&hidden) });
        check(&[calls(&[1]), hidden], &["a: c1", "u: !1"]);
    }

    #[test]
    fn parts_become_a_reply_when_no_message_came() {
        let reply = || message(Message::reply(vec![Block::text("whole")]));
        let discarded = EntryKind::ReplyDiscarded { reason: String::new() };
        check(&[part("a"), part("b"), reply()], &["a: whole"]);
        check(&[part("a"), part("b")], &["a: ~hmhm ab"]);
        check(&[part("a"), EntryKind::TurnStarted, prompt("p"), reply()], &["a: ~hm a", "u: p", "a: whole"]);
        check(&[part("a"), discarded, part("b"), reply()], &["a: whole"]);
        check(
            &[part("a"), message(Message::reminder("x")), reply()],
            &["u: <system-reminder>\nx\n</system-reminder>", "a: whole"],
        );
        check(&[part(""), EntryKind::TurnStarted, prompt("p")], &["u: p"]);
    }

    #[test]
    fn results_are_cleared_archived_and_clipped_in_place() {
        let digest = Arc::new(Message { kind: Kind::ToolSummary, ..Message::prompt("digest") });
        let archived = |ids: &[u64]| EntryKind::ToolResultsArchived {
            calls: ids.iter().map(|id| CallId::nth(*id)).collect(),
            digest: Arc::clone(&digest),
        };
        let start = [calls(&[1, 2]), results(&[1, 2]), prompt("b")];
        let with = |entries: &[EntryKind]| start.iter().chain(entries).cloned().collect::<Vec<_>>();
        check(&with(&[cleared(&[2, 9])]), &["a: c1 c2", "u: r1 [old result cleared: 2 bytes]", "u: b"]);
        check(&with(&[cleared(&[2]), cleared(&[2])]), &["a: c1 c2", "u: r1 [old result cleared: 2 bytes]", "u: b"]);
        check(
            &with(&[archived(&[1])]),
            &["a: c1 c2", "u: [result archived: 2 bytes; a digest follows] r2", "u: digest", "u: b"],
        );
        check(&with(&[archived(&[9])]), &["a: c1 c2", "u: r1 r2", "u: b", "u: digest"]);
        let clip = |seq, block| EntryKind::BlocksClipped {
            blocks: vec![ClippedBlock { seq, block, head: 4, tail: 4, persisted: Some("/f".into()) }],
        };
        let long = "日本語日本語";
        check(
            &[prompt(long), clip(0, 0), clip(0, 1), clip(9, 0)],
            &["u: 日\n[12 bytes left out; the full text is in /f]\n語"],
        );
        check(&[prompt("short"), clip(0, 0)], &["u: short"]);
        check(
            &[prompt("a"), calls(&[1]), results(&[1]), cleared(&[1]), clip(2, 0)],
            &["u: a", "a: c1", "u: [old result cleared: 2 bytes]"],
        );
    }

    #[test]
    fn a_file_is_seen_while_a_read_of_it_survives() {
        let start = [calls(&[1, 2]), read(1, "/f", "old"), read(2, "/f", "new")];
        for (clear, want) in [(vec![], Some("new")), (vec![2], Some("old")), (vec![1], Some("new")), (vec![1, 2], None)]
        {
            let mut context = context(&start);
            context.apply(9, &cleared(&clear));
            assert_eq!(context.seen().get(Path::new("/f")).map(String::as_str), want, "{clear:?}");
        }
        // A result that answers nothing shows nothing.
        assert_eq!(context(&[read(1, "/f", "x")]).seen().len(), 0);
    }

    #[test]
    fn tokens_rest_on_the_last_count() {
        let reply = |input| {
            message(Message {
                usage: Some(Usage { input, ..Usage::default() }),
                ..Message::reply(vec![Block::text("x")])
            })
        };
        let text = "x".repeat(400) + " ";
        let long = || prompt(&"word ".repeat(80));
        assert_eq!(tokens::text(&"word ".repeat(80)), 100);
        let size = |context: &Context| (context.count().counted, context.count().later.total());
        assert_eq!(size(&context(&[long()])), (None, 100));
        assert_eq!(size(&context(&[long(), reply(1000)])), (Some(1000), 0));
        assert_eq!(size(&context(&[long(), reply(1000), long()])), (Some(1000), 100));
        assert_eq!(size(&context(&[long(), reply(0)])), (None, 101));
        let result = ToolResult::of_text(CallId::nth(1), Outcome::Ok, text);
        let entries = [calls(&[1]), message(Message::tool_results(vec![result])), reply(1000)];
        let mut context = context(&entries);
        let marker = tokens::text("[old result cleared: 401 bytes]");
        context.apply(9, &cleared(&[1]));
        assert_eq!(size(&context), (Some(1000 - 287 + marker), 0));
    }
}
