//! What comes in during a run: prompts and requests, a line each; and what is sent to a turn under way.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use base64::Engine;
use serde_json::Value;
use tokio::sync::mpsc;

use uuid::Uuid;

use crate::protocol::{Delivery, Op, QueueId, Queued};
use crate::stdx::outside;
use crate::thinking::Override;

/// Most bytes of an input line.
const MOST: u64 = 32 << 20;

/// What one line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    Prompt(Typed),
    /// A request of the program at the other end; its id is answered.
    Request(Request),
    /// It answers what it was asked under this id.
    Answer(String, outside::Answer),
    /// It withdraws its request.
    Withdrawn,
    /// Nothing that can be done; the text says why.
    Wrong(Wrong),
}

/// A request of the program at the other end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) id: String,
    /// With its name as `subtype`.
    pub(super) body: Value,
}

impl Request {
    pub(super) fn name(&self) -> &str {
        self.body["subtype"].as_str().unwrap_or_default()
    }
}

/// A line that asks for nothing that can be done, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) text: String,
    /// It was meant as a prompt, so that its sender waits for a result.
    pub(super) prompt: bool,
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
    /// The sender's own name for it.
    pub(super) uuid: Option<Uuid>,
    /// Nothing in it is a command.
    pub(super) verbatim: bool,
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
    let wrong = |text: String| Some(Line::Wrong(Wrong { text, prompt: false }));
    let mut value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return wrong(format!("an input line is not JSON: {error}")),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match value["type"].as_str() {
        Some("user") => Some(typed(&value).map_or_else(|text| Line::Wrong(Wrong { text, prompt: true }), Line::Prompt)),
        Some("control_request") => {
            Some(Line::Request(Request { id: text(&value["request_id"]), body: value["request"].take() }))
        }
        Some("control_response") => {
            let response = &mut value["response"];
            let answer = match response["subtype"].as_str() {
                Some("error") => Err(text(&response["error"])),
                _ => Ok(response["response"].take()),
            };
            Some(Line::Answer(text(&response["request_id"]), answer))
        }
        Some("control_cancel_request") => Some(Line::Withdrawn),
        // Said by programs that know more than we do.
        Some("keep_alive" | "update_environment_variables" | "assistant" | "system") => None,
        _ => wrong(format!("an input line has type {}, not \"user\"", value["type"])),
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
    let uuid = value["uuid"].as_str().and_then(|uuid| Uuid::parse_str(uuid).ok());
    let verbatim = value["client_composed"] == Value::Bool(true);
    let mut typed = Typed { thinking, steers, uuid, verbatim, ..Typed::default() };
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

/// The next line, without its end, or what is wrong with it. None at the end of the input.
fn line_of(lines: &mut dyn BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    if lines.take(MOST + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 > MOST {
        // The rest of it is passed over in pieces.
        while !bytes.ends_with(b"\n") {
            bytes.clear();
            if lines.take(MOST).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
        }
        return Ok(Some(Err(format!("a line is longer than {} MiB", MOST >> 20))));
    }
    Ok(Some(String::from_utf8(bytes).map_err(|_| "a line is not UTF-8".to_owned())))
}

/// Passes on the lines of an input stream until it ends or cannot be read.
pub(super) fn read_lines(mut from: Box<dyn BufRead + Send>, lines: &mpsc::Sender<Line>) {
    let wrong =
        |why: String| Some(Line::Wrong(Wrong { text: format!("cannot read standard input: {why}"), prompt: false }));
    loop {
        let (line, stop) = match line_of(&mut from) {
            Ok(None) => return,
            Ok(Some(Ok(line))) if line.trim().is_empty() => continue,
            Ok(Some(Ok(line))) => (read(&line), false),
            Ok(Some(Err(why))) => (wrong(why), false),
            Err(error) => (wrong(error.to_string()), true),
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

    /// A line that comes in while something runs; none once, when the input has ended, and then never again.
    pub(super) async fn beside(&mut self) -> Option<Line> {
        if self.ended {
            return std::future::pending().await;
        }
        let line = self.from.recv().await;
        self.ended = line.is_none();
        line
    }

    pub(super) fn keep(&mut self, line: Line) {
        self.waiting.push_back(line);
    }

    /// Puts a line before all that wait.
    pub(super) fn keep_first(&mut self, line: Line) {
        self.waiting.push_front(line);
    }

    /// The names of prompts that wait.
    pub(super) fn named(&self) -> impl Iterator<Item = Uuid> {
        self.waiting.iter().filter_map(|line| match line {
            Line::Prompt(typed) => typed.uuid,
            _ => None,
        })
    }

    /// Drops the prompts that wait and have such a name; returns the names.
    pub(super) fn drop_named(&mut self, meant: impl Fn(Uuid) -> bool) -> Vec<Uuid> {
        let dropped: Vec<Uuid> = self.named().filter(|uuid| meant(*uuid)).collect();
        self.waiting.retain(|line| !matches!(line, Line::Prompt(Typed { uuid: Some(uuid), .. }) if meant(*uuid)));
        dropped
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
        // Commands wait there, too, as do prompts of other front ends.
        let steers = items.iter().filter(|item| item.delivery == Delivery::Steer);
        for item in steers.filter(|item| newest.is_none_or(|newest| item.id > newest)) {
            self.newest = Some(item.id);
            self.queued.extend(self.sent.pop_front().map(|op| (item.id, op)));
        }
        let here = |id: &QueueId| items.iter().any(|item| item.id == *id);
        let (queued, gone): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queued).into_iter().partition(|(id, _)| here(id));
        self.queued = queued;
        if failed { gone.into_iter().map(|(_, op)| op).collect() } else { Vec::new() }
    }

    /// Those that wait in the engine's queue.
    pub(super) fn ids(&self) -> Vec<QueueId> {
        self.queued.iter().map(|(id, _)| *id).collect()
    }

    /// What the engine does of its own once a turn has ended without it.
    pub(super) fn left(&mut self) -> Option<Op> {
        self.queued.pop_front().map(|(_, op)| op).or_else(|| self.sent.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                Some(Line::Wrong(Wrong { text, prompt })) => format!("Wrong({text:?}) {prompt}"),
                Some(Line::Request(Request { id, body })) => format!("Request({id:?}, {body})"),
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
        check(&user("[]"), r#"Wrong("an input line has no text") true"#);
        check(&user("null"), r#"Wrong("an input line has no message.content") true"#);
        check(&user(r#"[{"type":"tool_result"}]"#), r#"Wrong("an input line holds a part of type \"tool_result\""#);
        check(
            &user(r#"[{"type":"image","source":{"type":"url","url":"http://x"}}]"#),
            r#"Wrong("an image of an input line has a source of type \"url\": send it as \"base64\"") true"#,
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
        check(
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"x"}}"#,
            r#"Request("r", {"subtype":"x"})"#,
        );
        check(
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"a":1}}}"#,
            r#"Answer("r", Ok(Object {"a": Number(1)}))"#,
        );
        check(
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no"}}"#,
            r#"Answer("r", Err("no"))"#,
        );
        check(r#"{"type":"control_response"}"#, r#"Answer("", Ok(Null))"#);
        check(r#"{"type":"control_cancel_request","request_id":"r"}"#, "Withdrawn");
        check(r#"{"type":"nonsense"}"#, r#"Wrong("an input line has type \"nonsense\", not \"user\"") false"#);
        check(r#"["user"]"#, r#"Wrong("an input line has type null, not \"user\"") false"#);
        check("{", r#"Wrong("an input line is not JSON"#);
    }

    #[test]
    fn a_line_that_is_too_long_costs_nothing_but_itself() {
        let mut long = vec![b'x'; 3 * MOST as usize + 5];
        long.extend(b"\n{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}\n\xff\n{");
        let (send, mut lines) = mpsc::channel(8);
        read_lines(Box::new(io::Cursor::new(long)), &send);
        drop(send);
        let mut told = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            told.push(match line {
                Line::Prompt(typed) => typed.text,
                Line::Wrong(wrong) => wrong.text,
                other => format!("{other:?}"),
            });
        }
        assert_eq!(
            told[..3],
            [
                "cannot read standard input: a line is longer than 32 MiB",
                "hi",
                "cannot read standard input: a line is not UTF-8"
            ]
        );
        assert!(told[3].starts_with("an input line is not JSON"), "{told:?}");
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
