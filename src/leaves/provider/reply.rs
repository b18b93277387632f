//! The only fold from stream events to a message.

use serde_json::{Map, Value};

use super::{BlockStart, StreamEvent};
use crate::message::{Block, CallId, Message, Origin, StopReason, ToolCall, Usage, Wire};

#[derive(Debug)]
struct Part {
    index: usize,
    start: BlockStart,
    /// Text, thinking or the arguments' JSON.
    text: String,
    ended: bool,
    wire: Option<Wire>,
}

/// Collects one reply. Forgives missing starts and ends of blocks.
#[derive(Debug)]
pub struct Fold {
    first_call: u64,
    /// Ordered by index.
    parts: Vec<Part>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    model: Option<String>,
}

impl Fold {
    /// Begins a reply whose first call gets the id `CallId::nth(first_call)`.
    pub fn new(first_call: u64) -> Fold {
        Fold { first_call, parts: Vec::new(), usage: None, stop: None, model: None }
    }

    pub fn push(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Start { model } => self.model = Some(model),
            StreamEvent::BlockStart { index, block } => {
                // A start behind its first delta still knows the name of the call.
                let part = self.part(index, || BlockStart::Text);
                part.start = block;
            }
            StreamEvent::Text { index, text } => self.part(index, || BlockStart::Text).text.push_str(&text),
            StreamEvent::Thinking { index, text } => self.part(index, || BlockStart::Thinking).text.push_str(&text),
            StreamEvent::ToolInput { index, json } => {
                self.part(index, || BlockStart::ToolCall { name: String::new() }).text.push_str(&json);
            }
            StreamEvent::BlockEnd { index, wire } => {
                let part = self.part(index, || BlockStart::Text);
                part.ended = true;
                part.wire = wire;
            }
            StreamEvent::Usage(usage) => self.usage = Some(usage),
            StreamEvent::End(stop) => self.stop = Some(stop),
        }
    }

    fn part(&mut self, index: usize, start: impl FnOnce() -> BlockStart) -> &mut Part {
        // Deltas nearly always belong to the last block.
        let at = self.parts.iter().rposition(|part| part.index <= index);
        let at = match at {
            Some(at) if self.parts[at].index == index => at,
            _ => {
                let at = at.map_or(0, |before| before + 1);
                self.parts.insert(at, Part { index, start: start(), text: String::new(), ended: false, wire: None });
                at
            }
        };
        &mut self.parts[at]
    }

    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The finished reply. Empty blocks are left out; calls are numbered in block order.
    pub fn finish(self, origin: Origin) -> Message {
        let Fold { first_call, parts, usage, stop, .. } = self;
        let stop = stop.unwrap_or(StopReason::EndTurn);
        Message { usage, stop: Some(stop), origin: Some(origin), ..Message::reply(blocks(parts, first_call)) }
    }

    /// What had arrived when the user interrupted: text, finished thinking and finished calls. None when that is nothing.
    pub fn interrupted(self, origin: Origin) -> Option<Message> {
        let Fold { first_call, mut parts, usage, .. } = self;
        parts.retain(|part| part.ended || part.start == BlockStart::Text);
        let blocks = blocks(parts, first_call);
        if blocks.is_empty() {
            return None;
        }
        Some(Message { usage, stop: Some(StopReason::Interrupted), origin: Some(origin), ..Message::reply(blocks) })
    }
}

fn blocks(parts: Vec<Part>, first_call: u64) -> Vec<Block> {
    let mut next = first_call;
    let mut blocks = Vec::with_capacity(parts.len());
    for Part { start, text, wire, .. } in parts {
        match start {
            BlockStart::Text if text.is_empty() && wire.is_none() => {}
            BlockStart::Thinking if text.is_empty() && wire.is_none() => {}
            BlockStart::Text => blocks.push(Block::Text { text, wire }),
            BlockStart::Thinking => blocks.push(Block::Thinking { text, wire }),
            BlockStart::ToolCall { name } => {
                let (input, invalid) = match arguments(&text) {
                    Some(input) => (Value::Object(input), None),
                    None => (Value::Object(Map::new()), Some(text)),
                };
                blocks.push(Block::ToolCall(ToolCall {
                    invalid,
                    wire,
                    ..ToolCall::new(CallId::nth(next), name, input)
                }));
                next += 1;
            }
        }
    }
    blocks
}

/// The arguments of a call: an object, nothing at all, `null`, or an object that was encoded twice. None: neither.
fn arguments(json: &str) -> Option<Map<String, Value>> {
    if json.trim().is_empty() {
        return Some(Map::new());
    }
    match serde_json::from_str(json).ok()? {
        Value::Object(input) => Some(input),
        Value::Null => Some(Map::new()),
        Value::String(inner) => match serde_json::from_str(&inner).ok()? {
            Value::Object(input) => Some(input),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin() -> Origin {
        Origin { provider: "test".into(), model: "m".into() }
    }

    fn fold(events: Vec<StreamEvent>) -> Fold {
        let mut fold = Fold::new(5);
        events.into_iter().for_each(|event| fold.push(event));
        fold
    }

    fn text(index: usize, text: &str) -> StreamEvent {
        StreamEvent::Text { index, text: text.into() }
    }

    fn call(index: usize, name: &str) -> StreamEvent {
        StreamEvent::BlockStart { index, block: BlockStart::ToolCall { name: name.into() } }
    }

    fn input(index: usize, json: &str) -> StreamEvent {
        StreamEvent::ToolInput { index, json: json.into() }
    }

    fn end(index: usize) -> StreamEvent {
        StreamEvent::BlockEnd { index, wire: None }
    }

    fn tool(n: u64, name: &str, input: Value, invalid: Option<&str>) -> Block {
        Block::ToolCall(ToolCall { invalid: invalid.map(String::from), ..ToolCall::new(CallId::nth(n), name, input) })
    }

    #[test]
    fn blocks_are_ordered_and_calls_numbered_by_index() {
        let events = vec![
            call(2, "B"),
            input(2, "{\"b\":"),
            call(1, "A"),
            input(1, "{}"),
            text(0, "Hel"),
            input(2, "1}"),
            text(0, "lo"),
            StreamEvent::End(StopReason::ToolUse),
        ];
        let want = vec![Block::text("Hello"), tool(5, "A", json!({}), None), tool(6, "B", json!({"b": 1}), None)];
        let message = fold(events).finish(origin());
        assert_eq!((message.blocks, message.stop), (want, Some(StopReason::ToolUse)));
    }

    #[test]
    fn arguments_in_every_state() {
        let check = |json: &str, want: Value, invalid: Option<&str>| {
            let message = fold(vec![call(0, "T"), input(0, json), end(0)]).finish(origin());
            assert_eq!(message.blocks, [tool(5, "T", want, invalid)], "{json}");
        };
        check("", json!({}), None);
        check(" ", json!({}), None);
        check("null", json!({}), None);
        check("{\"a\": [1]}", json!({"a": [1]}), None);
        check("\"{\\\"a\\\":1}\"", json!({"a": 1}), None);
        check("{\"a\":", json!({}), Some("{\"a\":"));
        check("[1]", json!({}), Some("[1]"));
        check("\"text\"", json!({}), Some("\"text\""));
    }

    #[test]
    fn an_interruption_keeps_what_is_usable() {
        let wire = Some(Wire { wire: "w".into(), model: "m".into(), data: json!("signature") });
        let thinking = |index| StreamEvent::Thinking { index, text: "hm".into() };
        let events = vec![
            thinking(0),
            StreamEvent::BlockEnd { index: 0, wire: wire.clone() },
            text(1, "half a sen"),
            call(2, "Done"),
            input(2, "{}"),
            end(2),
            call(3, "Open"),
            input(3, "{}"),
            thinking(4),
        ];
        let message = fold(events).interrupted(origin()).expect("something arrived");
        let want = vec![
            Block::Thinking { text: "hm".into(), wire },
            Block::text("half a sen"),
            tool(5, "Done", json!({}), None),
        ];
        assert_eq!((message.blocks, message.stop), (want, Some(StopReason::Interrupted)));
        for events in [vec![], vec![thinking(0)], vec![call(0, "Open")], vec![text(0, "")]] {
            assert_eq!(fold(events).interrupted(origin()), None);
        }
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let start = StreamEvent::BlockStart { index: 0, block: BlockStart::Text };
        assert_eq!(fold(vec![start, end(0)]).finish(origin()).blocks, []);
    }
}
