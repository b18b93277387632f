//! What the model sees: a fold over the entries of a log that count.
//!
//! Adding an entry costs that entry alone. What rewinds, boundaries and their undo do to the set of entries that count is
//! `timeline`'s part; the fold itself only ever goes forward.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod boundary;
mod calls;
mod clip;
mod items;
mod reads;
mod view;

use items::{Change, Items};
use reads::{Reader, Reads};

pub use clip::CLEARED;
pub use view::{Count, Held, Shown};

use super::entry::{Boundary, EntryKind, Ledger, Seq};
use super::parts::Parts;
use crate::message::tokens::{self, Load};
use crate::message::{Attachment, Block, CallId, Effect, Kind, Message, Role, Todo};

/// The projection of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    items: Items,
    reads: Reads,
    todos: Vec<Todo>,
    cwd: PathBuf,
    parts: Parts,
    /// The boundary that it begins with, and what that carries on of everything before it.
    begun: Option<(Seq, Arc<Ledger>)>,
}

impl Context {
    /// An empty context whose shell starts in `cwd`.
    pub fn new(cwd: PathBuf) -> Context {
        Context {
            items: Items::default(),
            reads: Reads::default(),
            todos: Vec::new(),
            cwd,
            parts: Parts::default(),
            begun: None,
        }
    }

    /// The messages to send, oldest first: each call is followed by exactly one result before anything else, in the order
    /// of the calls.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let items = &self.items.list;
        let mut messages = Vec::with_capacity(items.len() + 1);
        let mut sent_results = None;
        for (index, item) in items.iter().enumerate() {
            if item.shown.role == Role::Assistant {
                if item.shown.blocks.is_empty() {
                    continue;
                }
                messages.push(Arc::clone(&item.shown));
                if item.shown.calls().next().is_none() {
                    continue;
                }
                match items.get(index + 1) {
                    Some(next) if answers_in_order(&item.shown, &next.shown) => {
                        messages.push(Arc::clone(&next.shown));
                        sent_results = Some(index + 1);
                    }
                    _ => {
                        let results = item.shown.calls().map(|call| self.items.result(&call.id)).collect();
                        messages.push(Arc::new(Message::tool_results(results)));
                    }
                }
            } else if sent_results != Some(index) {
                messages.extend(without_results(&item.shown));
            }
            messages.extend(item.digests.iter().cloned());
        }
        messages.extend(self.parts.clone().reply().filter(|reply| reply.agent_visible).map(Arc::new));
        messages
    }

    /// The messages with the entry that each came from, as the projection holds them: what compaction chooses from.
    /// Messages of a boundary bear the boundary's `seq`.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (Seq, &Arc<Message>)> {
        self.items.list.iter().map(|item| (item.seq, &item.shown))
    }

    /// Files that the model has seen and that it may edit while their content still has this hash.
    pub fn seen(&self) -> &HashMap<PathBuf, String> {
        self.reads.seen()
    }

    /// Memory files that the model has in front of it.
    pub fn memory_files(&self) -> impl Iterator<Item = &Path> {
        self.reads.memory_files()
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
        let calls = self.items.list.iter().flat_map(|item| item.shown.calls());
        calls
            .filter(|call| self.items.calls.get(&call.id).is_some_and(|call| call.result.is_none()))
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
        self.begun = Some((seq, Arc::clone(&boundary.ledger)));
        for message in boundary.messages() {
            self.message(seq, message);
        }
        self.items.lead = self.items.list.len();
        for effect in &boundary.effects {
            self.effect(self.items.lead, Reader::Attachment, effect);
        }
    }

    /// Adds an entry. Rewinds, boundaries and their undo have done their work before the fold.
    pub(super) fn apply(&mut self, seq: Seq, kind: &EntryKind) {
        match kind {
            EntryKind::Message { message } => {
                if message.role == Role::Assistant {
                    self.parts.clear();
                }
                self.message(seq, message);
            }
            EntryKind::ReplyPart { text, thinking } => self.parts.add(text, thinking),
            EntryKind::ReplyDiscarded { .. } => self.parts.clear(),
            EntryKind::TurnStarted | EntryKind::TurnEnded { .. } => self.flush(seq),
            EntryKind::ToolResultsCleared { calls, persisted } => {
                for (index, call) in calls.iter().enumerate() {
                    let saved = persisted.get(index).and_then(Option::as_deref);
                    self.replace(call, |bytes| clip::cleared_marker(bytes, saved));
                }
                self.forget_replaced();
            }
            EntryKind::ToolResultsArchived { calls, digest } => self.archive(seq, calls, digest),
            EntryKind::BlocksClipped { blocks } => blocks.iter().for_each(|block| self.items.clip(block)),
            EntryKind::CompactBoundary(boundary) => {
                self.flush(seq);
                // What an earlier boundary archived may have left with a later one.
                if let Some(archived) = &boundary.archived
                    && archived.calls.iter().any(|call| self.items.calls.get(call).is_some())
                {
                    self.archive(seq, &archived.calls, &archived.digest);
                }
                // Older usage counted what is no longer there.
                self.items.uncount();
            }
            // What was counted since the boundary was without what comes back.
            EntryKind::BoundaryUndone { seq } => self.items.recount(*seq),
            EntryKind::Header(_)
            | EntryKind::FileBefore { .. }
            | EntryKind::FileAfter { .. }
            | EntryKind::FilesSettled { .. }
            | EntryKind::FileTouched { .. }
            | EntryKind::FilesKnown { .. }
            | EntryKind::FilesRestored { .. }
            | EntryKind::CommandRan { .. }
            | EntryKind::ShellStarted { .. }
            | EntryKind::CommandChanged { .. }
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
            | EntryKind::Frozen(_)
            | EntryKind::Request(_)
            | EntryKind::CacheBroke(_)
            | EntryKind::Decided(_)
            | EntryKind::AgentStarted { .. }
            | EntryKind::TaskBegun(_)
            | EntryKind::TaskEnded(_)
            | EntryKind::Unknown => {}
        }
    }

    /// Parts that never got their message become an interrupted reply.
    fn flush(&mut self, seq: Seq) {
        if let Some(reply) = self.parts.reply() {
            self.message(seq, &Arc::new(reply));
        }
    }

    fn message(&mut self, seq: Seq, message: &Arc<Message>) {
        if !message.agent_visible {
            return;
        }
        if message.kind == Kind::Attachment(Attachment::Cleared) {
            let same = |item: &items::Item| item.shown.kind == message.kind && !item.shown.blocks.is_empty();
            if let Some(earlier) = self.items.list.iter().rposition(same) {
                self.items.empty(earlier);
            }
        }
        let index = self.items.list.len();
        let shown = self.items.add(seq, message);
        for result in shown.results() {
            result.effects.iter().for_each(|effect| self.effect(index, Reader::Call(result.id.clone()), effect));
        }
        message.effects.iter().for_each(|effect| self.effect(index, Reader::Attachment, effect));
    }

    /// `item` is the index of the message that had it.
    fn effect(&mut self, item: usize, reader: Reader, effect: &Effect) {
        match effect {
            Effect::Seen { path, sha256 } => self.reads.see(reader, path, sha256),
            Effect::Cwd { path } => self.cwd.clone_from(path),
            Effect::Todos { items } => self.todos.clone_from(items),
            // Reminders look through the messages.
            Effect::Plan { .. } | Effect::Skills { .. } => {}
            // What is owed is a fact of the session, whatever leaves the window.
            Effect::Told { .. } => {}
            Effect::Memory { files, because } => self.reads.add_memory(item, files, because.as_ref()),
        }
    }

    /// Puts a marker in the place of a result's content; `marker` gets the content's size in bytes. Once a result.
    fn replace(&mut self, id: &CallId, marker: impl Fn(usize) -> String) -> Option<usize> {
        let (index, result) = self.items.replace(id, marker)?;
        self.reads.unread(result);
        Some(index)
    }

    /// Results were replaced: once for all of an entry.
    fn forget_replaced(&mut self) {
        self.items.calls.forget_replaced();
        for item in self.reads.leaving_memory(&self.items.calls) {
            self.items.empty(item);
        }
    }

    fn archive(&mut self, seq: Seq, calls: &[CallId], digest: &Arc<Message>) {
        let last = calls.iter().filter_map(|call| self.replace(call, stub)).max();
        self.forget_replaced();
        let Some(last) = last else { return self.message(seq, digest) };
        if digest.agent_visible {
            self.items.edit(last, |item| {
                item.digests.push(Arc::clone(digest));
                Change { gone: Load::default(), come: tokens::load(digest) }
            });
        }
    }
}

/// What stands for an archived result of so many bytes.
pub fn stub(bytes: usize) -> String {
    format!("[result archived: {bytes} bytes; a digest follows]")
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
    use crate::message::{Outcome, ToolCall, ToolResult, Usage};
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
        check(&with(&[cleared(&[2, 9])]), &["a: c1 c2", "u: r1 [Old tool result content cleared] 2 bytes", "u: b"]);
        check(
            &with(&[cleared(&[2]), cleared(&[2])]),
            &["a: c1 c2", "u: r1 [Old tool result content cleared] 2 bytes", "u: b"],
        );
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
            &["u: a", "a: c1", "u: [Old tool result content cleared] 2 bytes"],
        );
    }

    #[test]
    fn one_reminder_stands_for_all_clearings() {
        let told = |text: &str| message(Message::attachment(Attachment::Cleared, text));
        let last = "u: <system-reminder>\n3 were\n</system-reminder>";
        check(&[prompt("a"), told("1 was"), prompt("b"), told("3 were")], &["u: a", "u: b", last]);
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
        let marker = tokens::text("[Old tool result content cleared] 401 bytes");
        context.apply(9, &cleared(&[1]));
        assert_eq!(size(&context), (Some(1000 - 287 + marker), 0));
    }
}
