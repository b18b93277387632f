//! What a server sends: answers find who waits for them, questions are answered, notices are noted. Nothing of it is trusted,
//! and nothing of it grows.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::peer::Fault;
use crate::stdx::ansi;

/// Most characters of a line that are shown of it.
const SHOWN: usize = 200;
/// Most bytes that are kept of what a server writes to its error stream.
const TAIL: usize = 4096;

/// What a connection and its readers share.
pub(super) struct Inbound {
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// The folders of the session, for a server that asks for its roots.
    roots: watch::Receiver<Vec<PathBuf>>,
    /// What it offers changed.
    pub(super) changed: Notify,
    errors: Mutex<VecDeque<u8>>,
    odd: Mutex<Option<String>>,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    /// Why the connection is gone.
    pub(super) closed: watch::Sender<Option<String>>,
}

/// What comes before an answer.
pub(super) enum Heard {
    Progress(String),
    /// The server asks the user something: the id of its request, and what it asks.
    Asked(Value, Value),
}

/// Who waits for an answer.
struct Waiting {
    answer: oneshot::Sender<Result<Value, Fault>>,
    /// Hears of progress; a full one misses some.
    heard: mpsc::Sender<Heard>,
    /// The user may be asked on its behalf.
    may_ask: bool,
}

/// The answer to a question that the user did not see, or did not answer.
pub(super) fn cancelled() -> Value {
    json!({"action": "cancel"})
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbound {
    pub(super) fn new(roots: watch::Receiver<Vec<PathBuf>>) -> Inbound {
        Inbound {
            waiting: Mutex::default(),
            roots,
            changed: Notify::new(),
            errors: Mutex::default(),
            odd: Mutex::default(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            closed: watch::channel(None).0,
        }
    }

    /// Waits for the answer with this id; dropping what is returned does not forget it, `forget` does.
    pub(super) fn expect(
        &self,
        id: u64,
        heard: mpsc::Sender<Heard>,
        may_ask: bool,
    ) -> oneshot::Receiver<Result<Value, Fault>> {
        let (answer, answered) = oneshot::channel();
        locked(&self.waiting).insert(id, Waiting { answer, heard, may_ask });
        answered
    }

    pub(super) fn forget(&self, id: u64) {
        locked(&self.waiting).remove(&id);
    }

    pub(super) fn waits(&self, id: u64) -> bool {
        locked(&self.waiting).contains_key(&id)
    }

    pub(super) fn settle(&self, id: u64, answer: Result<Value, Fault>) {
        if let Some(waiting) = locked(&self.waiting).remove(&id) {
            let _ = waiting.answer.send(answer);
        }
    }

    /// The connection is gone: nobody waits any longer.
    pub(super) fn close(&self, why: &str) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| why.to_owned());
            first
        });
        for (_, waiting) in locked(&self.waiting).drain() {
            let _ = waiting.answer.send(Err(Fault::Closed(why.to_owned())));
        }
    }

    /// Takes what came as one message, or as a list of them. What is returned is to be sent back. `asked` is the request
    /// that it came in answer to, where the transport tells.
    pub(super) fn take(&self, text: &str, asked: Option<u64>) -> Vec<Value> {
        self.received.fetch_add(text.len() as u64, Ordering::Relaxed);
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(messages)) => {
                messages.into_iter().filter_map(|message| self.message(message, asked)).collect()
            }
            Ok(message) => self.message(message, asked).into_iter().collect(),
            Err(error) => {
                self.odd(&format!("sent what is not JSON: {}", short(text)));
                self.unreadable(text, asked, &format!("its answer cannot be read: {error}"));
                Vec::new()
            }
        }
    }

    /// Fails the request to which something that cannot be read is the answer, so that nobody waits for it: the one of its
    /// own number, or the one that it came in answer to, or the only one that there is.
    pub(super) fn unreadable(&self, text: &str, asked: Option<u64>, why: &str) {
        let Outline { id, asks, answers } = Outline::of(text);
        if asks {
            return;
        }
        let only = || {
            let waiting = locked(&self.waiting);
            waiting.keys().next().copied().filter(|_| answers && waiting.len() == 1)
        };
        if let Some(id) = id.or(asked).or_else(only) {
            self.settle(id, Err(Fault::Broken(why.to_owned())));
        }
    }

    fn message(&self, mut message: Value, asked: Option<u64>) -> Option<Value> {
        let id = message.get("id").cloned().filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => self.answer(&method, (id, message["params"].take()), asked),
            (Some(method), None) => {
                self.notice(&method, message.get("params").unwrap_or(&Value::Null));
                None
            }
            (None, Some(id)) => {
                let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
                let answer = match (message.get_mut("error").map(Value::take), message.get_mut("result")) {
                    (Some(error), _) if !error.is_null() => Err(Fault::of_error(&error)),
                    (_, Some(result)) => Ok(result.take()),
                    _ => Err(Fault::Broken("its answer has neither a result nor an error".to_owned())),
                };
                // A second answer, or one to nothing, finds nobody.
                number.into_iter().for_each(|id| self.settle(id, answer.clone()));
                None
            }
            (None, None) => {
                // An error without an id is about something that the server could not read.
                let said = message.pointer("/error/message").and_then(Value::as_str);
                self.odd(&match said {
                    Some(said) => format!("reports: {}", short(said)),
                    None => format!("sent what is not a message: {}", short(&message.to_string())),
                });
                None
            }
        }
    }

    /// Answers a request of the server's; a question to the user is answered later.
    fn answer(&self, method: &str, (id, params): (Value, Value), asked: Option<u64>) -> Option<Value> {
        let result = match method {
            "ping" => json!({}),
            "roots/list" => self.roots(),
            "elicitation/create" => {
                let waiting = locked(&self.waiting);
                let open = waiting.iter().filter(|(_, waiting)| waiting.may_ask);
                // On a stream that all share, the call that began last is meant.
                let call = open.max_by_key(|(open, _)| (Some(**open) == asked, **open));
                let question = Heard::Asked(id.clone(), params);
                if call.is_some_and(|(_, call)| call.heard.try_send(question).is_ok()) {
                    return None;
                }
                cancelled()
            }
            _ => {
                let message = format!("cocode does not answer {}", short(method));
                return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": message}}));
            }
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// The folders that a server may look at.
    pub(super) fn roots(&self) -> Value {
        let uri = |root: &PathBuf| url::Url::from_file_path(root).ok().map(|uri| json!({"uri": String::from(uri)}));
        json!({"roots": self.roots.borrow().iter().filter_map(uri).collect::<Vec<_>>()})
    }

    fn notice(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => self.changed.notify_one(),
            "notifications/progress" => {
                let token = &params["progressToken"];
                let Some(id) = token.as_u64().or_else(|| token.as_str()?.parse().ok()) else { return };
                if let Some(waiting) = locked(&self.waiting).get(&id) {
                    let count = match (params["progress"].as_f64(), params["total"].as_f64()) {
                        (Some(done), Some(total)) => format!("{done}/{total}"),
                        (Some(done), None) => done.to_string(),
                        _ => String::new(),
                    };
                    let said = params["message"].as_str().map(short).unwrap_or_default();
                    let text = format!("{count} {said}").trim().to_owned();
                    let _ = waiting.heard.try_send(Heard::Progress(text));
                }
            }
            _ => {}
        }
    }

    /// Notes that a server did something that it must not.
    pub(super) fn odd(&self, what: &str) {
        *locked(&self.odd) = Some(what.to_owned());
    }

    /// The last that was odd.
    pub(super) fn last_odd(&self) -> Option<String> {
        locked(&self.odd).clone()
    }

    /// Keeps the end of what it writes to its error stream.
    pub(super) fn wrote(&self, bytes: &[u8]) {
        let mut errors = locked(&self.errors);
        errors.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let over = errors.len().saturating_sub(TAIL);
        errors.drain(..over);
    }

    /// The end of what it wrote to its error stream, as plain text.
    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = locked(&self.errors).iter().copied().collect();
        ansi::clean(String::from_utf8_lossy(&bytes).trim()).trim().to_owned()
    }
}

/// What can be told of a message without reading it whole.
#[derive(Debug, Default, PartialEq)]
struct Outline {
    id: Option<u64>,
    /// It has a method, so that it is not an answer.
    asks: bool,
    /// It is meant as an answer, and not as a line for people.
    answers: bool,
}

impl Outline {
    /// Looks at the names of the outermost object alone, however deep the rest is, and wherever it breaks off.
    fn of(text: &str) -> Outline {
        let mut outline = Outline::default();
        let (mut depth, mut at, bytes) = (0_usize, 0, text.as_bytes());
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let start = at;
                    while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    let name = bytes.get(start..at).unwrap_or_default();
                    at += 1;
                    let rest = text.get(at..).unwrap_or_default().trim_start();
                    let Some(value) = rest.strip_prefix(':').filter(|_| depth == 1) else { continue };
                    outline.asks |= name == b"method";
                    outline.answers |= [&b"jsonrpc"[..], b"result", b"error"].contains(&name);
                    if name == b"id" {
                        let value = value.trim_start().trim_start_matches('"');
                        let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
                        outline.id = value[..end].parse().ok();
                    }
                }
                _ => {}
            }
        }
        outline
    }
}

/// The beginning of a text of the server's, in one line that can be shown.
pub(super) fn short(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", ansi::visible(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two requests that wait, or one, whose is failed by what came.
    fn check(text: &str, asked: Option<u64>, waiting: &[u64], want: Option<u64>) {
        let inbound = Inbound::new(watch::channel(vec![PathBuf::from("/")]).1);
        let expect = |id: &u64| (*id, inbound.expect(*id, mpsc::channel(1).0, true));
        let mut answers: Vec<_> = waiting.iter().map(expect).collect();
        assert_eq!(inbound.take(text, asked), [] as [Value; 0]);
        let failed = |(id, answer): &mut (u64, oneshot::Receiver<Result<Value, Fault>>)| match answer.try_recv() {
            Ok(Err(Fault::Broken(why))) if why.starts_with("its answer cannot be read: ") => Some(*id),
            Ok(other) => panic!("{text}: {other:?}"),
            Err(_) => None,
        };
        assert_eq!(answers.iter_mut().find_map(failed), want, "{text}");
    }

    #[test]
    fn an_answer_that_cannot_be_read_fails_its_request_at_once() {
        let deep = format!(r#"{{"jsonrpc":"2.0","result":{}{},"id":2}}"#, "[".repeat(5000), "]".repeat(5000));
        check(&deep, None, &[1, 2], Some(2));
        check(r#"{"jsonrpc":"2.0","id":"2","result":{"a":}}"#, None, &[1, 2], Some(2));
        check(r#"{"result":{"id":1,"x":"\"id\": 1"},"id" : 2,"#, None, &[1, 2], Some(2));
        check(r#"{"jsonrpc":"2.0","result":{"a""#, None, &[1], Some(1));
        check(r#"{"jsonrpc":"2.0","result":{"a""#, None, &[1, 2], None);
        check("plain words", Some(2), &[1, 2], Some(2));
        // Words for people, and what the server asks or tells, are not an answer.
        check("Server started", None, &[1], None);
        check("{", None, &[1], None);
        check(r#"{"level":"info","id":"#, None, &[1], None);
        check(r#"{"method":"notifications/x","params":"#, Some(1), &[1], None);
        check(r#"{"id":1,"method":"ping","params":"#, None, &[1], None);
        check("{\"\\", None, &[], None);
    }

    #[test]
    fn a_question_reaches_the_call_that_it_belongs_to() {
        let inbound = Inbound::new(watch::channel(vec![PathBuf::from("/a b")]).1);
        let (old, mut first) = mpsc::channel(1);
        let (new, mut second) = mpsc::channel(1);
        let (list, mut third) = mpsc::channel(1);
        let _waiting = [inbound.expect(1, old, true), inbound.expect(2, new, true), inbound.expect(3, list, false)];
        let ask = |asked: Option<u64>| {
            let text = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}"#;
            inbound.take(text, asked)
        };
        let is = |heard: Option<Heard>| matches!(heard, Some(Heard::Asked(id, params)) if id == "q" && params["message"] == "m");
        assert!(ask(Some(1)).is_empty() && is(first.try_recv().ok()), "the stream of a call tells whose it is");
        assert!(ask(None).is_empty() && is(second.try_recv().ok()), "else it is the last call's");
        // One too many at once is answered at once, as it is where nobody waits.
        assert!(ask(None).is_empty());
        let cancelled = [json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "cancel"}})];
        assert_eq!(ask(None), cancelled);
        [1, 2].into_iter().for_each(|id| inbound.forget(id));
        assert_eq!(ask(None), cancelled);
        assert!(third.try_recv().is_err(), "a list is nobody's call");
        let roots = inbound.take(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#, None);
        assert_eq!(roots[0]["result"], json!({"roots": [{"uri": "file:///a%20b"}]}));
    }
}
