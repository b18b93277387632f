//! A server that lives in the program that runs us: messages go there one by one, and each answer comes back the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::inbound::Inbound;
use super::peer::Fault;
use crate::stdx::outside::{Call, Outside};

/// What the program has said in advance of a server, so that a start needs no round trip.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The answer to `initialize`.
    pub hello: Option<Value>,
    /// The first answer to `tools/list`.
    pub tools: Option<Value>,
}

/// The way to the program, and what it has said of its servers, by their names.
#[derive(Debug, Clone)]
pub struct Program {
    pub outside: Outside,
    pub manifests: BTreeMap<String, Manifest>,
}

/// See the module.
pub(super) struct Link {
    name: String,
    outside: Outside,
    manifest: Mutex<Manifest>,
    inbound: Arc<Inbound>,
}

impl Link {
    pub(super) fn new(name: &str, program: &Program, inbound: &Arc<Inbound>) -> Link {
        let manifest = program.manifests.get(name).cloned().unwrap_or_default();
        Link {
            name: name.to_owned(),
            outside: program.outside.clone(),
            manifest: Mutex::new(manifest),
            inbound: inbound.clone(),
        }
    }

    /// Sends a request; its answer is settled like that of any server.
    pub(super) async fn request(&self, id: u64, method: &str, message: Value) -> Result<(), Fault> {
        let known = {
            // What is taken out is gone whole, whatever panics elsewhere.
            let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
            match method {
                "initialize" => manifest.hello.take(),
                "tools/list" => manifest.tools.take(),
                _ => None,
            }
        };
        let answer = match known {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => self.send(message).await?,
        };
        self.inbound.take(&answer.to_string(), Some(id));
        Ok(())
    }

    pub(super) async fn send(&self, message: Value) -> Result<Value, Fault> {
        let call = Call::Message { server: self.name.clone(), message };
        let mut answer = self.outside.call(call).await.map_err(Fault::Closed)?;
        Ok(answer.get_mut("mcp_response").map(Value::take).unwrap_or_default())
    }
}
