//! A request as segments: how it differs from the one before, and where the first byte of the difference is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::pieces::{Part, pieces};
use super::{Chain, EARLIER, Earlier, HEAD, Key, Prefix, Seg};
use crate::message::{Message, Role, tokens};
use crate::provider::cache::{Grain, Promise};
use crate::provider::{Request, ToolSpec};
use crate::session::Session;
use crate::session::entry::{By, Cause, Frozen, Segment, Sent, Seq};
use crate::stdx::hash;

/// What segments were made of, to be compared byte by byte.
#[derive(Debug)]
pub(super) struct Content {
    tools: Arc<[ToolSpec]>,
    system: Arc<str>,
    /// Each message with the end of its segments.
    messages: Vec<(Arc<Message>, usize)>,
}

impl Content {
    pub(super) fn of_head(frozen: &Frozen) -> Content {
        Content { tools: frozen.tools.clone(), system: frozen.system.clone(), messages: Vec::new() }
    }
}

impl Prefix {
    /// Puts a request in the place of the last one.
    pub(super) fn next(&mut self, request: &Request, session: &Session, key: Key, promise: &Promise) -> Sent {
        let mut last = std::mem::take(&mut self.last);
        let thinking = thinking(request);
        let head = head(request, &thinking, &last);
        let (same, from) = match &last.content {
            Some(content) => {
                let same = content.messages.iter().zip(&request.messages);
                let same = same.take_while(|((old, _), new)| Arc::ptr_eq(old, new)).count();
                (same, same.checked_sub(1).map_or(HEAD, |at| content.messages[at].1))
            }
            None => (0, HEAD),
        };
        let old_tail = last.segs.split_off(from.min(last.segs.len()));
        let old_head: Vec<Seg> = last.segs.iter().take(HEAD).copied().collect();
        let mut segs = std::mem::take(&mut last.segs);
        segs.splice(..HEAD.min(segs.len()), head.iter().copied());
        let mut ends = last.content.as_mut().map(|content| std::mem::take(&mut content.messages)).unwrap_or_default();
        let old_messages = ends.split_off(same);
        let seqs = seqs(session, request.messages.len() - same);
        let mut names = Vec::new();
        for message in &request.messages[same..] {
            let seq = seqs.get(&Arc::as_ptr(message)).copied();
            add(message, seq, &mut segs, &mut names);
            ends.push((message.clone(), segs.len()));
        }
        let common = old_tail.iter().zip(&segs[from..]).take_while(|(old, new)| old.hash == new.hash).count();
        let (old_rest, new_rest) = (&old_tail[common..], &segs[from + common..]);
        let tail =
            old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old.hash == new.hash).count();
        let changed_head = old_head.len() == HEAD && old_head.iter().zip(&head).any(|(old, new)| old.hash != new.hash);
        let lcp = match old_head.iter().zip(&head).position(|(old, new)| old.hash != new.hash) {
            Some(at) => at,
            None => from + common,
        };
        let added = segs.iter().skip(from + common).take(new_rest.len() - tail).zip(names.iter().skip(common));
        let marks = marks(request, &ends, promise);
        let sent = Sent {
            model: key.model.clone(),
            route: key.route.clone(),
            thinking: thinking.clone(),
            ttl: promise.ttl,
            head: match old_head.is_empty() || changed_head {
                true => ["tools", "system", "params"].iter().zip(&head).map(|(name, seg)| seg.told(name)).collect(),
                false => Vec::new(),
            },
            keep: from + common - HEAD,
            add: added.map(|(seg, name)| seg.told(name)).collect(),
            tail,
            marks: marks.clone(),
        };
        let content = Content { tools: request.tools.clone(), system: request.system.clone(), messages: ends };
        let next = Chain { key, segs, marks, thinking, seq: 0, at: None, content: Some(content) };
        if let Some(cached) = self.cached.as_mut().filter(|cached| lcp < cached.intact.min(cached.upto)) {
            cached.intact = lcp;
            let old = || next.segs[HEAD.min(from)..from].iter().chain(&old_tail);
            let hashes: HashSet<u64> = old().map(|seg| seg.hash).collect();
            // What was clipped is a part of what it was.
            let known = old().filter(|seg| seg.seq != u32::MAX);
            let blocks: HashSet<(u32, u16)> = known.map(|seg| (seg.seq, seg.block)).collect();
            let stays = |seg: &Seg| hashes.contains(&seg.hash) || blocks.contains(&(seg.seq, seg.block));
            let kept = next.segs.iter().enumerate().filter(|(at, seg)| *at < HEAD || stays(seg));
            cached.kept = Some(kept.map(|(_, seg)| u64::from(seg.tokens)).sum());
            if cached.change.is_none() {
                let old = Old { chain: &last, head: &old_head, tail: &old_tail, from, messages: &old_messages };
                cached.change = Some(change(&old, &next, lcp, session));
            }
        }
        // What it leaves behind may be sent again while it is cached.
        let diverged = lcp < old_head.len() + from - HEAD + old_tail.len() || last.key != next.key;
        if let Some(at) = last.at.filter(|_| diverged) {
            let kept = next.segs[..from].iter().skip(HEAD);
            let hashes = old_head.iter().chain(kept).chain(&old_tail).map(|seg| seg.hash).collect();
            self.earlier.insert(0, Earlier { key: last.key, hashes, marks: last.marks, at });
            self.earlier.truncate(EARLIER);
        }
        self.last = next;
        sent
    }
}

impl Chain {
    /// Follows a request that the log tells of.
    pub(super) fn take(&mut self, seq: Seq, sent: &Sent) {
        let Sent { model, route, thinking, head, keep, add, tail, marks, .. } = sent;
        let told = |part| move |segment: &Segment| Seg::read(segment, part);
        if head.len() == HEAD {
            let parts = [Part::Tools, Part::System, Part::Params];
            let head = head.iter().zip(parts).map(|(segment, part)| told(part)(segment));
            self.segs.splice(..HEAD.min(self.segs.len()), head);
        }
        let from = (HEAD + keep).min(self.segs.len());
        let to = self.segs.len().saturating_sub(*tail).max(from);
        self.segs.splice(from..to, add.iter().map(told(Part::Message)));
        (self.key, self.thinking) = (Key { model: model.clone(), route: route.clone() }, thinking.clone());
        (self.seq, self.marks) = (seq, marks.clone());
    }
}

impl Seg {
    fn told(&self, name: &str) -> Segment {
        Segment(name.to_owned(), format!("{:016x}", self.hash), self.bytes, self.tokens)
    }

    fn read(Segment(_, hash, bytes, tokens): &Segment, part: Part) -> Seg {
        let hash = u64::from_str_radix(hash, 16).unwrap_or_default();
        Seg { hash, bytes: *bytes, tokens: *tokens, seq: 0, block: 0, part }
    }

    fn new(part: Part, bytes: &[u8], tokens: u64) -> Seg {
        let (bytes, hash) = (count(bytes.len() as u64), hash::short(&[bytes]));
        Seg { hash, bytes, tokens: count(tokens), seq: 0, block: 0, part }
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What of a request's parameters a cached prefix depends on.
fn thinking(request: &Request) -> String {
    match &request.thinking {
        crate::provider::Thinking::Unset => String::new(),
        thinking => format!("{thinking:?}"),
    }
}

fn tools_json(tools: &[ToolSpec]) -> Vec<u8> {
    serde_json::to_vec(tools).unwrap_or_default()
}

fn head(request: &Request, thinking: &str, last: &Chain) -> [Seg; HEAD] {
    let known = |at: usize| last.segs.get(at).copied();
    let same = |same: &dyn Fn(&Content) -> bool| last.content.as_ref().is_some_and(same);
    let tools = known(0).filter(|_| same(&|content| Arc::ptr_eq(&content.tools, &request.tools)));
    let system = known(1).filter(|_| same(&|content| Arc::ptr_eq(&content.system, &request.system)));
    [
        tools.unwrap_or_else(|| {
            let json = tools_json(&request.tools);
            Seg::new(Part::Tools, &json, tokens::text(&String::from_utf8_lossy(&json)))
        }),
        system.unwrap_or_else(|| Seg::new(Part::System, request.system.as_bytes(), tokens::text(&request.system))),
        Seg::new(Part::Params, thinking.as_bytes(), 0),
    ]
}

/// Adds the segments of a message with their names.
fn add(message: &Message, seq: Option<Seq>, segs: &mut Vec<Seg>, names: &mut Vec<String>) {
    for piece in pieces(message) {
        let (hash, bytes) = (piece.hash(message.role), count(piece.bytes.len() as u64));
        let (seq, block) = (seq.map_or(u32::MAX, count), piece.block);
        let seg = Seg { hash, bytes, tokens: count(piece.tokens), seq, block, part: piece.part };
        names.push(name(&seg, piece.path()));
        segs.push(seg);
    }
}

fn name(seg: &Seg, path: Option<&str>) -> String {
    match seg.part {
        Part::Tools => "tools".into(),
        Part::System => "system".into(),
        Part::Params => "params".into(),
        Part::Opening => "opening".into(),
        Part::Memory => format!("memory:{}", path.unwrap_or_default()),
        Part::Skills => "skills".into(),
        Part::Message if seg.seq == u32::MAX => "message".into(),
        Part::Message => format!("message:{}.{}", seg.seq, seg.block),
    }
}

/// The entries of the newest messages.
fn seqs(session: &Session, new: usize) -> HashMap<*const Message, Seq> {
    let newest = session.context().entries().rev().take(if new == 0 { 0 } else { 2 * new + 16 });
    newest.map(|(seq, message)| (Arc::as_ptr(message), seq)).collect()
}

/// Where breakpoints stand, as the codec puts them.
fn marks(request: &Request, ends: &[(Arc<Message>, usize)], promise: &Promise) -> Vec<usize> {
    if promise.grain != Grain::Marks {
        return Vec::new();
    }
    // That of the system prompt covers the tools, too.
    let mut marks = vec![usize::from(!request.system.is_empty())];
    let next = |message: &Arc<Message>| message.results().any(|result| Some(&result.id) == request.frontier.as_ref());
    let cleared = request.messages.iter().position(next).unwrap_or(0);
    let before = request.messages[..cleared].iter().rposition(|message| message.role == Role::User);
    marks.extend(before.and_then(|at| ends.get(at)).map(|(_, end)| end - 1));
    let mut turns = Vec::new();
    for (at, message) in request.messages.iter().enumerate().rev() {
        let last_of_run = request.messages.get(at + 1).is_none_or(|next| next.role != message.role);
        if message.role == Role::User && last_of_run {
            turns.extend(ends.get(at).map(|(_, end)| end - 1));
            if turns.len() == 2 {
                break;
            }
        }
    }
    marks.extend(turns.iter().rev());
    marks.dedup();
    marks
}

/// A request that was sent, taken apart by the next one.
struct Old<'a> {
    chain: &'a Chain,
    head: &'a [Seg],
    /// Segments from `from` on, and the messages that they belong to, where they are known.
    tail: &'a [Seg],
    from: usize,
    messages: &'a [(Arc<Message>, usize)],
}

impl Old<'_> {
    /// What a segment was made of.
    fn bytes(&self, at: usize) -> Option<Vec<u8>> {
        let content = self.chain.content.as_ref()?;
        match at {
            0 => Some(tools_json(&content.tools)),
            1 => Some(content.system.as_bytes().to_vec()),
            2 => Some(self.chain.thinking.clone().into_bytes()),
            _ => of_message(self.messages, self.from, at),
        }
    }
}

fn of_message(messages: &[(Arc<Message>, usize)], first: usize, at: usize) -> Option<Vec<u8>> {
    let index = messages.iter().position(|(_, end)| at < *end)?;
    let start = index.checked_sub(1).map_or(first, |before| messages[before].1);
    pieces(&messages[index].0).into_iter().nth(at - start).map(|piece| piece.bytes.into_owned())
}

/// The first difference between two requests.
fn change(old: &Old<'_>, new: &Chain, lcp: usize, session: &Session) -> Cause {
    let before: u64 = new.segs.iter().take(lcp).map(|seg| u64::from(seg.bytes)).sum();
    let content = new.content.as_ref();
    let now = content.and_then(|content| match lcp {
        0 => Some(tools_json(&content.tools)),
        1 => Some(content.system.as_bytes().to_vec()),
        2 => Some(new.thinking.clone().into_bytes()),
        _ => of_message(&content.messages, HEAD, lcp),
    });
    let within = match (old.bytes(lcp), &now) {
        (Some(old), Some(new)) => old.iter().zip(new).take_while(|(old, new)| old == new).count() as u64,
        _ => 0,
    };
    let seg = new.segs.get(lcp).or(old.tail.get(lcp.saturating_sub(old.from))).or(old.head.get(lcp));
    let path = now.as_deref().and_then(|bytes| str::from_utf8(bytes).ok());
    let path = path.and_then(|text| text.strip_prefix("Contents of ")?.split_once(":\n")).map(|(path, _)| path);
    Cause::Changed {
        segment: seg.map_or_else(String::new, |seg| name(seg, path)),
        offset: before + within,
        by: by(old, new, lcp, session),
    }
}

fn by(old: &Old<'_>, new: &Chain, lcp: usize, session: &Session) -> By {
    match lcp {
        0 => match (&old.chain.content, &new.content) {
            (Some(old), Some(new)) => tools_changed(&old.tools, &new.tools),
            _ => By::Tools { added: Vec::new(), removed: Vec::new(), changed: Vec::new() },
        },
        1 => By::System,
        2 => By::Thinking { from: old.chain.thinking.clone(), to: new.thinking.clone() },
        _ => match session.facts().projected_since(old.chain.seq) {
            Some(by) => by,
            None if old.chain.key.model != new.key.model => By::Signatures,
            None => By::Unknown,
        },
    }
}

fn tools_changed(old: &[ToolSpec], new: &[ToolSpec]) -> By {
    let names = |of: &[ToolSpec], without: &[ToolSpec]| -> Vec<String> {
        let lacks = |spec: &&ToolSpec| without.iter().all(|other| other.name != spec.name);
        of.iter().filter(lacks).map(|spec| spec.name.clone()).collect()
    };
    let differs = |spec: &&ToolSpec| old.iter().any(|other| other.name == spec.name && other != *spec);
    let changed = new.iter().filter(differs).map(|spec| spec.name.clone()).collect();
    By::Tools { added: names(new, old), removed: names(old, new), changed }
}
