//! Whether a projection is valid: by its structure, and as every wire would send it.

use std::collections::HashMap;
use std::fmt::Formatter;
use std::sync::Arc;

use cocode::message::{Block, CallId, Message, Role};
use cocode::provider::catalog::Catalog;
use cocode::provider::codec::{CodecSettings, codec};
use cocode::provider::settings::WireName;
use cocode::provider::{Purpose, Request, Thinking};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

const WIRES: [(WireName, &str); 4] = [
    (WireName::Anthropic, "claude-sonnet-5"),
    (WireName::Openai, "gpt-5.4"),
    (WireName::OpenaiChat, "qwen3"),
    (WireName::Gemini, "gemini-3-flash-preview"),
];

/// Checks the structure of one projection after the other; what both hold is looked at once.
#[derive(Default)]
pub(crate) struct Structure {
    /// The last projection. Messages never change, so that the same one needs no second look.
    checked: Vec<Arc<Message>>,
    /// Calls, with the position of the reply that makes them.
    known: HashMap<CallId, usize>,
}

impl Structure {
    /// Each call is answered exactly once, right after its reply, in order; what is sent ends with the user.
    pub(crate) fn check(&mut self, messages: &[Arc<Message>]) -> Result<(), String> {
        let same = messages.iter().zip(&self.checked).take_while(|(now, then)| Arc::ptr_eq(now, then)).count();
        if same < self.checked.len() {
            self.checked.truncate(same);
            self.known.retain(|_, at| *at < same);
        }
        let mut awaited: Vec<&CallId> = match same.checked_sub(1) {
            Some(last) => messages[last].calls().map(|call| &call.id).collect(),
            None => Vec::new(),
        };
        for (at, message) in messages.iter().enumerate().skip(same) {
            if message.blocks.is_empty() || !message.agent_visible {
                return Err("an empty or hidden message".into());
            }
            if !message.results().map(|result| &result.id).eq(awaited.drain(..)) {
                return Err(format!("message {at} answers other calls than those before it"));
            }
            if message.role == Role::Assistant {
                awaited.extend(message.calls().map(|call| &call.id));
                for id in &awaited {
                    if self.known.insert(CallId::clone(id), at).is_some() {
                        return Err("a call id twice".into());
                    }
                }
            }
            self.checked.push(Arc::clone(message));
        }
        if !awaited.is_empty() {
            return Err(format!("calls {awaited:?} without results"));
        }
        match messages.last() {
            Some(last) if last.role == Role::User => Ok(()),
            _ => Err("the request does not end with the user".into()),
        }
    }
}

/// Encodes the request for all four wires and pairs calls with results in what would be sent.
pub(crate) fn encoded(messages: &[Arc<Message>]) -> Result<(), String> {
    let calls = messages.iter().flat_map(|message| &message.blocks);
    let calls = calls.filter(|block| matches!(block, Block::ToolCall(_))).count();
    for (wire, model) in WIRES {
        let request = Request {
            model: model.into(),
            system: "You help.".into(),
            tools: Arc::new([]),
            messages: messages.to_vec(),
            media: Default::default(),
            max_output: 1_000,
            thinking: Thinking::Unset,
            purpose: Purpose::Main,
            cache_key: "lab".into(),
            web_search: None,
            frontier: None,
        };
        let settings = CodecSettings::from(&Catalog::builtin().get(wire, model));
        let body = codec(wire).encode(&request, &settings).body;
        let mut found = Pairs::default();
        let mut json = serde_json::Deserializer::from_slice(&body);
        found.deserialize(&mut json).and_then(|()| json.end()).map_err(|error| format!("{wire:?}: {error}"))?;
        let Pairs { made, answered } = found;
        if made != answered || made.len() != calls {
            return Err(format!("{wire:?}: {} calls, {} results, {calls} expected", made.len(), answered.len()));
        }
    }
    Ok(())
}

/// Ids of calls and of results, in order, in any wire's words. Reads a body through without keeping it.
#[derive(Default)]
struct Pairs {
    made: Vec<String>,
    answered: Vec<String>,
}

/// Gemini pairs by order and name.
#[derive(Deserialize)]
struct Named {
    name: String,
}

impl<'de> DeserializeSeed<'de> for &mut Pairs {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Pairs {
    type Value = ();

    fn expecting(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut own: HashMap<String, String> = HashMap::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" | "id" | "tool_use_id" | "call_id" | "tool_call_id" => {
                    let value = map.next_value::<&RawValue>()?.get();
                    own.insert(key, value.to_owned());
                }
                "functionCall" => self.made.push(map.next_value::<Named>()?.name),
                "functionResponse" => self.answered.push(map.next_value::<Named>()?.name),
                _ => map.next_value_seed(&mut *self)?,
            }
        }
        let (list, id) = match own.get("type").map(String::as_str) {
            Some(r#""tool_use""#) => (&mut self.made, "id"),
            Some(r#""tool_result""#) => (&mut self.answered, "tool_use_id"),
            Some(r#""function_call""#) => (&mut self.made, "call_id"),
            Some(r#""function_call_output""#) => (&mut self.answered, "call_id"),
            Some(r#""function""#) if own.contains_key("id") => (&mut self.made, "id"),
            _ if own.contains_key("tool_call_id") => (&mut self.answered, "tool_call_id"),
            _ => return Ok(()),
        };
        list.push(own.remove(id).unwrap_or_default());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
