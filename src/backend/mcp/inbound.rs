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
    /// The project, for a server that asks for its roots.
    root: PathBuf,
    /// The list of tools changed.
    pub(super) changed: Notify,
    errors: Mutex<VecDeque<u8>>,
    odd: Mutex<Option<String>>,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    /// Why the connection is gone.
    pub(super) closed: watch::Sender<Option<String>>,
}

/// Who waits for an answer.
struct Waiting {
    answer: oneshot::Sender<Result<Value, Fault>>,
    /// Hears of progress; a full one misses some.
    progress: mpsc::Sender<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbound {
    pub(super) fn new(root: PathBuf) -> Inbound {
        Inbound {
            waiting: Mutex::default(),
            root,
            changed: Notify::new(),
            errors: Mutex::default(),
            odd: Mutex::default(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            closed: watch::channel(None).0,
        }
    }

    /// Waits for the answer with this id; dropping what is returned does not forget it, `forget` does.
    pub(super) fn expect(&self, id: u64, progress: mpsc::Sender<String>) -> oneshot::Receiver<Result<Value, Fault>> {
        let (answer, answered) = oneshot::channel();
        locked(&self.waiting).insert(id, Waiting { answer, progress });
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

    /// Takes what came as one message, or as a list of them. What is returned is to be sent back.
    pub(super) fn take(&self, text: &str) -> Vec<Value> {
        self.received.fetch_add(text.len() as u64, Ordering::Relaxed);
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(messages)) => messages.into_iter().filter_map(|message| self.message(message)).collect(),
            Ok(message) => self.message(message).into_iter().collect(),
            Err(_) => {
                self.odd(&format!("sent what is not JSON: {}", short(text)));
                Vec::new()
            }
        }
    }

    fn message(&self, mut message: Value) -> Option<Value> {
        let id = message.get("id").cloned().filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => Some(self.answer(&method, &id)),
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

    /// Answers a request of the server's.
    fn answer(&self, method: &str, id: &Value) -> Value {
        match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            "roots/list" => {
                let root = url::Url::from_file_path(&self.root).map(String::from).unwrap_or_default();
                json!({"jsonrpc": "2.0", "id": id, "result": {"roots": [{"uri": root}]}})
            }
            _ => {
                let message = format!("cocode does not answer {}", short(method));
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": message}})
            }
        }
    }

    fn notice(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.changed.notify_one(),
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
                    let _ = waiting.progress.try_send(format!("{count} {said}").trim().to_owned());
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

/// The beginning of a text of the server's, in one line that can be shown.
pub(super) fn short(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{}{more}", ansi::visible(&start))
}
