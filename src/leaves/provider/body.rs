//! A request's body while it is written. What can no longer change is bytes at once: as a tree of values, a long
//! conversation would take several times the memory of its text with every request.

use std::collections::VecDeque;

use serde_json::{Map, Value};

/// So many messages at the end may still change. Roles alternate, so these hold the last two turns of each.
const OPEN: usize = 4;

/// The conversation of a request, in the order in which it is sent.
#[derive(Debug, Default)]
pub(super) struct Body {
    written: Vec<u8>,
    open: VecDeque<Value>,
}

impl Body {
    pub(super) fn push(&mut self, message: Value) {
        self.open.push_back(message);
        if self.open.len() > OPEN {
            self.write();
        }
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Value> {
        self.open.back_mut()
    }

    /// The messages that may still change, the last one first.
    pub(super) fn latest(&mut self) -> impl Iterator<Item = &mut Value> {
        self.open.iter_mut().rev()
    }

    fn write(&mut self) {
        let Some(message) = self.open.pop_front() else { return };
        if !self.written.is_empty() {
            self.written.push(b',');
        }
        serde_json::to_writer(&mut self.written, &message).expect("a JSON value is JSON");
    }

    /// The whole body. The conversation comes last, so that a longer one starts with the bytes of the shorter one.
    pub(super) fn finish(mut self, head: &Map<String, Value>, field: &str) -> Vec<u8> {
        while !self.open.is_empty() {
            self.write();
        }
        let mut bytes = serde_json::to_vec(head).expect("a JSON object is JSON");
        bytes.pop();
        if !head.is_empty() {
            bytes.push(b',');
        }
        bytes.extend_from_slice(format!("\"{field}\":[").as_bytes());
        // In place, since the conversation may be large.
        let front = bytes.len();
        self.written.extend_from_slice(&bytes);
        self.written.rotate_right(front);
        self.written.extend_from_slice(b"]}");
        self.written
    }
}

impl Extend<Value> for Body {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_are_those_of_the_whole_value() {
        for count in [0, 1, OPEN, OPEN + 1, 9] {
            for head in [json!({}), json!({ "model": "m", "stream": true })] {
                let messages: Vec<Value> = (0..count).map(|at| json!({ "role": "user", "content": [at] })).collect();
                let mut body = Body::default();
                body.extend(messages.clone());
                let head = head.as_object().expect("an object");
                let mut want = head.clone();
                want.insert("messages".into(), messages.into());
                let bytes = String::from_utf8(body.finish(head, "messages")).expect("UTF-8");
                assert_eq!(bytes, Value::Object(want).to_string(), "{count}");
            }
        }
    }
}
