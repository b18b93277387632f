//! One line of the log as bytes: what it is at a glance, without parsing what it carries, and parsed whole.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::entry::{Entry, EntryKind, Seq, VERSION};
use super::untold;
use crate::message::{Kind, Message, Role};

/// Highest `seq` that is believed; a larger one is damage, and would leave no room to count on.
const MAX_SEQ: Seq = 1 << 53;

/// What a line is, as far as a resume needs to know before it reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Prompt,
    Reply,
    Results,
    /// Any other message.
    Message,
    Part,
    Discarded,
    TurnStarted,
    TurnEnded,
    /// Changes what the projection holds.
    Projected,
    /// Everything else.
    Other,
    /// Of use to the next request alone.
    Request,
    /// What requests begin with.
    Frozen,
}

impl Tag {
    const ALL: [Tag; 12] = [
        Tag::Prompt,
        Tag::Reply,
        Tag::Results,
        Tag::Message,
        Tag::Part,
        Tag::Discarded,
        Tag::TurnStarted,
        Tag::TurnEnded,
        Tag::Projected,
        Tag::Other,
        Tag::Request,
        Tag::Frozen,
    ];

    /// As the index of a log writes it.
    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Tag> {
        Tag::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn of(kind: &EntryKind) -> Tag {
        match kind {
            EntryKind::Message { message } => Tag::of_message(message.role, message.kind),
            EntryKind::ReplyPart { .. } => Tag::Part,
            EntryKind::ReplyDiscarded { .. } => Tag::Discarded,
            EntryKind::TurnStarted => Tag::TurnStarted,
            EntryKind::TurnEnded { .. } => Tag::TurnEnded,
            EntryKind::Request(_) => Tag::Request,
            EntryKind::Frozen(_) => Tag::Frozen,
            EntryKind::ToolResultsCleared { .. }
            | EntryKind::ToolResultsArchived { .. }
            | EntryKind::BlocksClipped { .. }
            | EntryKind::CompactBoundary(_)
            | EntryKind::BoundaryUndone { .. } => Tag::Projected,
            _ => Tag::Other,
        }
    }

    fn of_message(role: Role, kind: Kind) -> Tag {
        match (role, kind) {
            (Role::Assistant, _) => Tag::Reply,
            (Role::User, Kind::Prompt) => Tag::Prompt,
            (Role::User, Kind::ToolResult) => Tag::Results,
            (Role::User, _) => Tag::Message,
        }
    }
}

/// A line's own fields, borrowed.
struct Envelope<'a> {
    v: u32,
    seq: Seq,
    id: &'a str,
    ts: &'a str,
    kind: &'a str,
    /// What follows the value of `kind`, up to the end of the line.
    rest: &'a [u8],
}

/// Reads the envelope of a line in the order of fields that this program writes. None: any other line, to be parsed.
fn envelope(line: &[u8]) -> Option<Envelope<'_>> {
    fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
        Some((value, &bytes[digits..]))
    }
    fn string(bytes: &[u8]) -> Option<(&str, &[u8])> {
        let end = bytes.iter().take(64).position(|byte| matches!(byte, b'"' | b'\\'))?;
        (bytes[end] == b'"').then_some(())?;
        Some((str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
    }
    let (v, rest) = number(line.strip_prefix(b"{\"v\":")?)?;
    let (seq, rest) = number(rest.strip_prefix(b",\"seq\":")?)?;
    let (id, rest) = string(rest.strip_prefix(b",\"id\":\"")?)?;
    let (ts, rest) = string(rest.strip_prefix(b",\"ts\":\"")?)?;
    let (kind, rest) = string(rest.strip_prefix(b",\"kind\":\"")?)?;
    Some(Envelope { v: u32::try_from(v).ok()?, seq, id, ts, kind, rest })
}

/// What a line shows without being parsed whole.
#[derive(Debug, PartialEq)]
pub(super) struct Glance<'a> {
    pub(super) seq: Seq,
    pub(super) id: Cow<'a, str>,
    pub(super) tag: Tag,
    pub(super) newer: bool,
}

/// Looks at a line. None: it is damaged. Damage deep inside a line shows only when it is parsed.
pub(super) fn glance(line: &[u8]) -> Option<Glance<'_>> {
    if let Some(envelope) = envelope(line)
        && line.ends_with(b"}")
        && envelope.seq <= MAX_SEQ
        && let Some(tag) = tag_of(envelope.kind, envelope.rest)
    {
        let newer = envelope.v > VERSION;
        return Some(Glance { seq: envelope.seq, id: Cow::Borrowed(envelope.id), tag, newer });
    }
    #[derive(Deserialize)]
    struct Any<'a> {
        v: u32,
        seq: Seq,
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        kind: Cow<'a, str>,
        message: Option<Spoken>,
    }
    #[derive(Deserialize)]
    struct Spoken {
        role: Role,
        kind: Kind,
    }
    let any: Any<'_> = serde_json::from_slice(line).ok()?;
    if any.seq > MAX_SEQ {
        return None;
    }
    let tag = match (&*any.kind, any.message) {
        ("message", Some(spoken)) => Tag::of_message(spoken.role, spoken.kind),
        ("message", None) => return None,
        (kind, _) => tag_of(kind, &[]).unwrap_or(Tag::Other),
    };
    Some(Glance { seq: any.seq, id: any.id, tag, newer: any.v > VERSION })
}

/// None: only parsing can tell.
fn tag_of(kind: &str, rest: &[u8]) -> Option<Tag> {
    Some(match kind {
        "message" => {
            let rest = rest.strip_prefix(b",\"message\":{\"role\":\"")?;
            if rest.starts_with(b"assistant\"") {
                Tag::Reply
            } else if rest.starts_with(b"user\",\"kind\":\"prompt\"") {
                Tag::Prompt
            } else if rest.starts_with(b"user\",\"kind\":\"tool_result\"") {
                Tag::Results
            } else if rest.starts_with(b"user\",\"kind\":\"") {
                Tag::Message
            } else {
                return None;
            }
        }
        "reply_part" => Tag::Part,
        "reply_discarded" => Tag::Discarded,
        "turn_started" => Tag::TurnStarted,
        "turn_ended" => Tag::TurnEnded,
        "request" => Tag::Request,
        "frozen" => Tag::Frozen,
        "tool_results_cleared"
        | "tool_results_archived"
        | "blocks_clipped"
        | "compact_boundary"
        | "boundary_undone" => Tag::Projected,
        _ => Tag::Other,
    })
}

/// Parses a line whole. What a newer version wrote and this one cannot read is `Unknown`. None: the line is damaged.
pub(super) fn parse(line: &[u8]) -> Option<Entry> {
    let mut entry = as_written(line)?;
    untold::tell(&mut entry.kind);
    Some(entry)
}

fn as_written(line: &[u8]) -> Option<Entry> {
    if let Some(envelope) = envelope(line)
        && envelope.kind == "message"
        && let Some(message) = envelope.rest.strip_prefix(b",\"message\":").and_then(|rest| rest.strip_suffix(b"}"))
        && let Ok(mut message) = serde_json::from_slice::<Message>(message)
    {
        // A list that grew while it was read has room for four blocks; most messages have one and live for the session.
        message.blocks.shrink_to_fit();
        let kind = EntryKind::Message { message: Arc::new(message) };
        return Some(Entry { v: envelope.v, seq: envelope.seq, id: envelope.id.into(), ts: envelope.ts.into(), kind });
    }
    if let Ok(entry) = serde_json::from_slice::<Entry>(line) {
        return (entry.seq <= MAX_SEQ).then_some(entry);
    }
    #[derive(Deserialize)]
    struct Foreign {
        v: u32,
        seq: Seq,
        id: String,
        #[serde(default)]
        ts: String,
    }
    let foreign: Foreign = serde_json::from_slice(line).ok()?;
    (foreign.v > VERSION && foreign.seq <= MAX_SEQ).then_some(Entry {
        v: foreign.v,
        seq: foreign.seq,
        id: foreign.id,
        ts: foreign.ts,
        kind: EntryKind::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &EntryKind) -> Vec<u8> {
        let entry = Entry { v: 1, seq: 7, id: "i".into(), ts: "t".into(), kind: kind.clone() };
        serde_json::to_vec(&entry).unwrap()
    }

    #[test]
    fn own_lines_are_known_at_a_glance_and_parse_back() {
        let message = |message: Message| EntryKind::Message { message: Arc::new(message) };
        for (kind, tag) in [
            (message(Message::prompt("a \"b\" \\ \n c")), Tag::Prompt),
            (message(Message::reply(vec![])), Tag::Reply),
            (message(Message::tool_results(vec![])), Tag::Results),
            (message(Message::reminder("r")), Tag::Message),
            (EntryKind::ReplyPart { text: "a".into(), thinking: String::new() }, Tag::Part),
            (EntryKind::ReplyDiscarded { reason: "cut".into() }, Tag::Discarded),
            (EntryKind::TurnStarted, Tag::TurnStarted),
            (EntryKind::TurnEnded { end: "done".into(), usage: Default::default() }, Tag::TurnEnded),
            (EntryKind::Rewind { to: 3 }, Tag::Other),
            (EntryKind::Request(Arc::default()), Tag::Request),
        ] {
            let line = line(&kind);
            let want = Glance { seq: 7, id: "i".into(), tag, newer: false };
            assert_eq!(glance(&line), Some(want), "{}", String::from_utf8_lossy(&line));
            assert!(envelope(&line).is_some());
            assert_eq!(parse(&line).unwrap().kind, kind);
            assert_eq!(Tag::of(&kind), tag);
        }
    }

    #[test]
    fn foreign_lines() {
        let prompt = r#"{"kind":"message","message":{"kind":"prompt","role":"user","blocks":[]},"ts":"","id":"x","seq":2,"v":1}"#;
        for (line, tag) in [
            (prompt, Some(Tag::Prompt)),
            (r#"{"v":1,"seq":2,"id":"x","ts":"","kind":"of_tomorrow","a":[1]}"#, Some(Tag::Other)),
            (r#"{"v":9,"seq":2,"id":"x","ts":"","kind":"rewind","towards":"a"}"#, Some(Tag::Other)),
            (r#"{"v":1,"seq":99999999999999999,"id":"x","ts":"","kind":"rewind","to":1}"#, None),
            (r#"{"v":1,"seq":2,"id":"x","ts":"","kind":"message"}"#, None),
            (r#"{"v":1,"seq":2,"id":"x","ts":"","kind":"rew"#, None),
            ("\u{0}\u{0}\u{0}", None),
            ("[]", None),
        ] {
            assert_eq!(glance(line.as_bytes()).map(|glance| glance.tag), tag, "{line}");
            assert_eq!(parse(line.as_bytes()).is_some(), tag.is_some(), "{line}");
        }
        assert_eq!(parse(br#"{"v":1,"seq":2,"id":"x","ts":"","kind":"rewind","towards":"a"}"#), None);
    }
}
