//! What happens in a session: prompts, calls and results of realistic sizes, drawn from a seed.

use cocode::message::{BlobId, Block, CallId, Content, Effect, Media, Message, Outcome, ToolCall, ToolResult};
use serde_json::json;

/// What a session is mostly made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Many files are read.
    Reads,
    /// Test runs with huge logs.
    Tests,
    /// Long talk, few calls.
    Talk,
    /// Screenshots.
    Images,
    /// Sub-agents report back.
    Agents,
}

impl Shape {
    pub(crate) fn nth(n: u64) -> Shape {
        [Shape::Reads, Shape::Tests, Shape::Talk, Shape::Images, Shape::Agents][n as usize % 5]
    }
}

/// Text to cut pieces from.
pub(crate) fn corpus() -> String {
    const LINE: &str =
        "    let entry = self.lookup(name, &scope).ok_or_else(|| Error::missing(name, line))?; // checked above\n";
    let mut text = String::new();
    for n in 0..60_000 {
        text.push_str(&format!("{n:>6}\t"));
        text.push_str(LINE);
    }
    text
}

/// Draws from a seed.
pub(crate) struct Dice<'a> {
    pub(crate) rng: fastrand::Rng,
    pub(crate) corpus: &'a str,
    /// Most tokens of one tool result.
    pub(crate) cap: u64,
    /// The results of one reply share the room of two.
    pub(crate) shared: bool,
}

impl Dice<'_> {
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.rng.u64(0..n) == 0
    }

    /// A text of about so many tokens.
    pub(crate) fn text(&mut self, tokens: u64) -> String {
        let length = (tokens as usize * 4).min(self.corpus.len() / 2);
        let start = self.rng.usize(0..self.corpus.len() / 2);
        self.corpus[start..start + length].to_owned()
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        // Mostly small, seldom large, as results are.
        let share = self.rng.f64();
        low + ((high - low) as f64 * share * share * share) as u64
    }

    fn media(&mut self) -> Media {
        let blob = BlobId(format!("{:064x}", self.rng.u64(..)));
        Media { media_type: "image/png".into(), blob, bytes: 100_000 }
    }

    /// What the user types. Once in a while it is more than any window of its size can hold.
    pub(crate) fn prompt(&mut self, shape: Shape, window: u64) -> Message {
        let tokens = match shape {
            _ if self.one_in(400) => window * 3 / 2,
            Shape::Talk => self.between(50, 1_500),
            _ => self.between(10, 300),
        };
        let mut prompt = Message::prompt(self.text(tokens.min(400_000)));
        if matches!(shape, Shape::Images) && self.one_in(2) {
            for _ in 0..self.rng.u64(1..3) {
                prompt.blocks.push(Block::Media(self.media()));
            }
        }
        prompt
    }

    /// What the model says, without calls.
    pub(crate) fn answer(&mut self, shape: Shape) -> Message {
        let tokens = if matches!(shape, Shape::Talk) { self.between(200, 2_500) } else { self.between(50, 600) };
        Message::reply(vec![Block::text(self.text(tokens))])
    }

    /// A reply with calls, and their results.
    pub(crate) fn round(&mut self, shape: Shape, first: u64) -> (Message, Message) {
        let count = if self.one_in(4) { self.rng.u64(2..6) } else { 1 };
        self.calls(shape, first, count)
    }

    /// A reply that makes one call once more.
    pub(crate) fn again(&mut self, shape: Shape, first: u64) -> (Message, Message) {
        self.calls(shape, first, 1)
    }

    fn calls(&mut self, shape: Shape, first: u64, count: u64) -> (Message, Message) {
        let (tool, low, high) = match shape {
            Shape::Reads | Shape::Talk => ("Read", 200, 9_000),
            Shape::Tests => ("Bash", 500, 12_500),
            Shape::Images => ("Read", 100, 4_000),
            Shape::Agents => ("Task", 300, 5_000),
        };
        let text = self.between(5, 120);
        let mut calls = vec![Block::text(self.text(text))];
        let mut results = Vec::new();
        for n in 0..count {
            let id = CallId::nth(first + n);
            let tool = if matches!(shape, Shape::Agents) && self.one_in(2) { "Read" } else { tool };
            let path = format!("/code/src/module_{}.rs", self.rng.u64(0..300));
            let input = json!({ "file_path": path });
            let seen = (tool == "Read").then(|| Effect::Seen { path: path.into(), sha256: "x".into() });
            calls.push(Block::ToolCall(ToolCall::new(id.clone(), tool, input)));
            let tokens = self.between(low, high).min(if self.shared { self.cap * 2 / count.max(2) } else { self.cap });
            let mut result = ToolResult::of_text(id, Outcome::Ok, self.text(tokens));
            result.effects.extend(seen);
            if matches!(shape, Shape::Images) && self.one_in(6) {
                result.content.push(Content::Media(self.media()));
            }
            results.push(result);
        }
        (Message::reply(calls), Message::tool_results(results))
    }
}
