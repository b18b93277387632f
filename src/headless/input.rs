//! What comes in during a run: prompts and requests, a line each; and what is sent to a turn under way.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use base64::Engine;
use serde_json::Value;
use tokio::sync::mpsc;

use super::background::Asked;
use crate::protocol::{Op, QueueId, Queued};
use crate::thinking::Override;

/// Most bytes of an input line.
const MOST: u64 = 32 << 20;

/// What one line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Prompt(Typed),
    /// Stops what runs; the id is answered.
    Interrupt(String),
    /// A request about commands in the background; the id is answered.
    Background(String, Asked),
    /// A request that is not known here, by its id and name.
    Unknown(String, String),
    /// Nothing that can be done; the text says why.
    Wrong(String),
}

/// A prompt as it comes in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) text: String,
    /// The engine has data to add to it.
    pub(super) piped: bool,
    /// For this turn alone.
    pub(super) thinking: Option<Override>,
    pub(super) pictures: Vec<Picture>,
    /// It is for the turn under way, where there is one.
    pub(super) steers: bool,
}

/// An image or a document that came with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    /// Of a file of its kind, with the dot.
    pub(super) ending: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Reads one line; none where it asks for nothing.
fn read(line: &str) -> Option<Line> {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return Some(Line::Wrong(format!("an input line is not JSON: {error}"))),
    };
    match value["type"].as_str() {
        Some("user") => Some(typed(&value).map_or_else(Line::Wrong, Line::Prompt)),
        Some("control_request") => {
            let id = value["request_id"].as_str().unwrap_or_default().to_owned();
            let name = value.pointer("/request/subtype").and_then(Value::as_str).unwrap_or_default();
            Some(match (name, Asked::read(name, &value["request"])) {
                ("interrupt", _) => Line::Interrupt(id),
                (_, Some(asked)) => Line::Background(id, asked),
                (name, None) => Line::Unknown(id, name.to_owned()),
            })
        }
        Some("keep_alive") => None,
        _ => Some(Line::Wrong(format!("an input line has type {}, not \"user\"", value["type"]))),
    }
}

/// # Errors
/// What the line lacks, for the user.
fn typed(value: &Value) -> Result<Typed, String> {
    let thinking = match value.get("thinking") {
        None | Some(Value::Null) => None,
        Some(Value::String(flag)) => {
            Some(Override::parse(flag).map_err(|problem| format!("`thinking` of an input line: {problem}"))?)
        }
        Some(other) => {
            return Err(format!("`thinking` of an input line is {other}, not a level such as \"deep:12000\""));
        }
    };
    let steers = matches!(value["priority"].as_str(), Some("now" | "next"));
    let mut typed = Typed { thinking, steers, ..Typed::default() };
    match &value["message"]["content"] {
        Value::String(text) => typed.text.clone_from(text),
        Value::Array(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                match part["type"].as_str() {
                    Some("text") => texts.extend(part["text"].as_str().map(str::to_owned)),
                    Some("image" | "document") => {
                        typed.pictures.push(picture(&part["source"])?);
                        // As a picture in the composer is called.
                        texts.push(format!("[Image {}]", typed.pictures.len()));
                    }
                    _ => {
                        return Err(format!(
                            "an input line holds a part of type {}: cocode takes text and images",
                            part["type"]
                        ));
                    }
                }
            }
            typed.text = texts.join("\n");
        }
        _ => return Err("an input line has no message.content".into()),
    }
    if typed.text.is_empty() { Err("an input line has no text".into()) } else { Ok(typed) }
}

fn picture(source: &Value) -> Result<Picture, String> {
    if source["type"] != "base64" {
        return Err(format!(
            "an image of an input line has a source of type {}: send it as \"base64\"",
            source["type"]
        ));
    }
    let ending = match source["media_type"].as_str() {
        Some("image/png") => ".png",
        Some("image/jpeg") => ".jpg",
        Some("image/gif") => ".gif",
        Some("image/webp") => ".webp",
        Some("application/pdf") => ".pdf",
        _ => {
            return Err(format!(
                "an image of an input line has media_type {}: use image/png, image/jpeg, image/gif, image/webp or application/pdf",
                source["media_type"]
            ));
        }
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(source["data"].as_str().unwrap_or_default())
        .map_err(|error| format!("an image of an input line is not base64: {error}"))?;
    Ok(Picture { ending, bytes })
}

/// The next line, without its end. None at the end of the input.
fn line_of(lines: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if lines.take(MOST + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("a line is longer than {} MiB", MOST >> 20)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| io::Error::other("a line is not UTF-8"))
}

/// Passes on the lines of an input stream until it ends or cannot be read.
pub(super) fn read_lines(mut from: Box<dyn BufRead + Send>, lines: &mpsc::Sender<Line>) {
    loop {
        let (line, stop) = match line_of(&mut from) {
            Ok(None) => return,
            Ok(Some(line)) if line.trim().is_empty() => continue,
            Ok(Some(line)) => (read(&line), false),
            Err(error) => (Some(Line::Wrong(format!("cannot read standard input: {error}"))), true),
        };
        if line.is_some_and(|line| lines.blocking_send(line).is_err()) || stop {
            return;
        }
    }
}

/// The input of a run.
pub(super) struct Lines {
    from: mpsc::Receiver<Line>,
    /// What came while something ran, oldest first.
    waiting: VecDeque<Line>,
    ended: bool,
}

impl Lines {
    pub(super) fn new(from: mpsc::Receiver<Line>) -> Lines {
        Lines { from, waiting: VecDeque::new(), ended: false }
    }

    /// What is to be done next, in order. None at the end.
    pub(super) async fn next(&mut self) -> Option<Line> {
        match self.waiting.pop_front() {
            Some(line) => Some(line),
            None => self.from.recv().await,
        }
    }

    /// A line that comes in while something runs; never resolves once the input has ended.
    pub(super) async fn beside(&mut self) -> Line {
        if !self.ended {
            if let Some(line) = self.from.recv().await {
                return line;
            }
            self.ended = true;
        }
        std::future::pending().await
    }

    pub(super) fn keep(&mut self, line: Line) {
        self.waiting.push_back(line);
    }
}

/// Prompts that were sent into turns, until they are delivered.
#[derive(Default)]
pub(super) struct Steering {
    /// The engine has not answered yet.
    sent: VecDeque<Op>,
    /// They wait in the engine's queue.
    queued: VecDeque<(QueueId, Op)>,
    newest: Option<QueueId>,
}

impl Steering {
    pub(super) fn sent(&mut self, op: Op) {
        self.sent.push_back(op);
    }

    /// Takes over the engine's queue; what is gone from it was delivered. Returns what was dropped instead, since its turn `failed`.
    pub(super) fn queue(&mut self, items: &[Queued], failed: bool) -> Vec<Op> {
        let newest = self.newest;
        for item in items.iter().filter(|item| newest.is_none_or(|newest| item.id > newest)) {
            self.newest = Some(item.id);
            self.queued.extend(self.sent.pop_front().map(|op| (item.id, op)));
        }
        let here = |id: &QueueId| items.iter().any(|item| item.id == *id);
        let (queued, gone): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queued).into_iter().partition(|(id, _)| here(id));
        self.queued = queued;
        if failed { gone.into_iter().map(|(_, op)| op).collect() } else { Vec::new() }
    }

    /// What the engine does of its own once a turn has ended without it.
    pub(super) fn left(&mut self) -> Option<Op> {
        self.queued.pop_front().map(|(_, op)| op).or_else(|| self.sent.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Delivery;

    #[test]
    fn lines_are_prompts_requests_or_mistakes() {
        let check = |line: &str, want: &str| {
            let read = match read(line) {
                None => "nothing".to_owned(),
                Some(Line::Prompt(typed)) => {
                    let pictures: Vec<String> =
                        typed.pictures.iter().map(|one| format!("{} {}", one.ending, one.bytes.len())).collect();
                    format!("{:?} {pictures:?} {}", typed.text, typed.steers)
                }
                Some(other) => format!("{other:?}"),
            };
            assert!(read.starts_with(want), "{line}: {read}");
        };
        let user = |content: &str| format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#);
        check(&user("\"hi\""), r#""hi" [] false"#);
        check(r#"{"type":"user","priority":"next","message":{"content":"hi"}}"#, r#""hi" [] true"#);
        check(
            &user(
                r#"[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]"#,
            ),
            r#""see\n[Image 1]" [".png 3"] false"#,
        );
        check(&user("[]"), r#"Wrong("an input line has no text")"#);
        check(&user("null"), r#"Wrong("an input line has no message.content")"#);
        check(&user(r#"[{"type":"tool_result"}]"#), r#"Wrong("an input line holds a part of type \"tool_result\""#);
        check(
            &user(r#"[{"type":"image","source":{"type":"url","url":"http://x"}}]"#),
            r#"Wrong("an image of an input line has a source of type \"url\": send it as \"base64\"")"#,
        );
        check(
            &user(r#"[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":""}}]"#),
            r#"Wrong("an image of an input line has media_type \"image/bmp\": use"#,
        );
        check(
            &user(r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}]"#),
            r#"Wrong("an image of an input line is not base64"#,
        );
        check(r#"{"type":"keep_alive"}"#, "nothing");
        check(r#"{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#, r#"Interrupt("r")"#);
        check(
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"stop_task","task_id":"b1"}}"#,
            r#"Background("r", Stop("b1"))"#,
        );
        check(r#"{"type":"control_request","request_id":"r","request":{"subtype":"x"}}"#, r#"Unknown("r", "x")"#);
        check(r#"{"type":"nonsense"}"#, r#"Wrong("an input line has type \"nonsense\", not \"user\"")"#);
        check("{", r#"Wrong("an input line is not JSON"#);
    }

    #[test]
    fn what_a_turn_did_not_take_is_a_turn_of_its_own() {
        let op = |text: &str| Op::Prompt {
            text: text.into(),
            attachments: Vec::new(),
            delivery: Delivery::Steer,
            thinking: None,
            data: Vec::new(),
        };
        let items = |ids: &[u64]| -> Vec<Queued> {
            ids.iter().map(|id| Queued { id: QueueId(*id), text: String::new(), delivery: Delivery::Steer }).collect()
        };
        let mut steering = Steering::default();
        ["a", "b", "c", "d"].iter().for_each(|text| steering.sent(op(text)));
        // Two are in the queue, one of them is delivered, then another comes in; the last was not answered yet.
        assert_eq!(steering.queue(&items(&[3]), false), []);
        assert_eq!(steering.queue(&items(&[3, 7]), false), []);
        assert_eq!(steering.queue(&items(&[7]), false), []);
        assert_eq!(steering.queue(&items(&[7, 9]), false), []);
        assert_eq!([steering.left(), steering.left()], [Some(op("b")), Some(op("c"))]);
        assert_eq!(steering.queue(&items(&[11]), false), []);
        // A turn that fails drops what waits.
        assert_eq!(steering.queue(&[], true), [op("d")]);
        assert_eq!(steering.left(), None);
    }
}
