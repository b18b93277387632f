//! How a server wants to be spoken to: found out once, and remembered with the reason.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::inbound::short;
use super::peer::{Fault, Limits, Peer, Plain};

/// The stateless revision.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// A server that is silent for so long does not know the question.
const PROBE: Duration = Duration::from_secs(10);
/// Most characters of a server's instructions that are kept.
const INSTRUCTIONS: usize = 2048;

/// Which of the two protocols a server speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Era {
    /// With a handshake; the revision that was agreed on.
    Legacy(String),
    /// Without one.
    Modern,
}

impl Era {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Era::Modern)
    }

    /// The revision.
    pub fn version(&self) -> &str {
        match self {
            Era::Legacy(version) => version,
            Era::Modern => MODERN,
        }
    }
}

/// Which eras are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Negotiation {
    /// The older one alone: an older program may stay silent at what it does not know.
    Legacy,
    Auto,
}

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hello {
    pub(super) era: Era,
    /// Why this era.
    pub(super) cause: String,
    pub(super) capabilities: Value,
    pub(super) instructions: String,
}

/// What we call ourselves.
pub(super) fn client() -> Value {
    json!({"name": "cocode", "version": env!("CARGO_PKG_VERSION")})
}

/// What a server may ask of us.
pub(super) fn capabilities() -> Value {
    json!({"roots": {"listChanged": true}, "elicitation": {"form": {}, "url": {}}})
}

/// Finds out which era a server speaks, and begins to speak it.
///
/// # Errors
/// The server cannot be used. Nothing of that is taken for a sign of the older era.
pub(super) async fn greet(peer: &Peer, negotiation: Negotiation, limit: Duration) -> Result<Hello, Fault> {
    if negotiation == Negotiation::Legacy {
        return initialize(peer, "the default for programs", limit).await;
    }
    let discover = async || {
        let asked = ("server/discover", Map::new());
        peer.request(asked, (Some(&Era::Modern), &[]), Limits::all(PROBE.min(limit)), &Plain).await
    };
    let mut answer = discover().await;
    if matches!(&answer, Err(Fault::Rpc { code: -32022, data: Some(data), .. }) if supports(&data["supported"])) {
        // It refuses what it says it supports: that may have been a moment of its start.
        answer = discover().await;
    }
    let cause = match answer {
        Ok(result) => match result.get("supportedVersions").and_then(Value::as_array) {
            Some(versions) if versions.iter().any(|version| version == MODERN) => {
                let cause = "it answered server/discover".to_owned();
                return Ok(hello(Era::Modern, cause, &result));
            }
            Some(versions) => format!("it supports {}", list(versions)),
            None => "its answer to server/discover names no versions".to_owned(),
        },
        Err(Fault::Rpc { code: -32022, data, .. }) => {
            let supported = data.as_ref().and_then(|data| data["supported"].as_array()).cloned().unwrap_or_default();
            if data.is_some_and(|data| supports(&data["supported"])) {
                return Err(Fault::Broken("it refuses the version that it says it supports".to_owned()));
            }
            format!("it supports {}", list(&supported))
        }
        Err(fault @ Fault::Rpc { code: -32021 | -32020, .. }) => return Err(fault),
        Err(Fault::Rpc { code, .. }) => format!("it answered server/discover with error {code}"),
        Err(Fault::Status { status: status @ (400 | 404 | 405), .. }) => {
            format!("it answered server/discover with {status}")
        }
        Err(Fault::Silent(time)) => {
            format!("it did not answer server/discover within {}", crate::stdx::text::duration(time))
        }
        Err(fault) => return Err(fault),
    };
    initialize(peer, &cause, limit).await
}

/// Whether a list of versions has ours.
fn supports(versions: &Value) -> bool {
    versions.as_array().is_some_and(|versions| versions.iter().any(|version| version == MODERN))
}

async fn initialize(peer: &Peer, cause: &str, limit: Duration) -> Result<Hello, Fault> {
    let Value::Object(params) = json!({
        "protocolVersion": LEGACY[0],
        "capabilities": capabilities(),
        "clientInfo": client(),
    }) else {
        return Err(Fault::Broken(String::new()));
    };
    let result = peer.request(("initialize", params), (None, &[]), Limits::all(limit), &Plain).await?;
    let version = result["protocolVersion"].as_str().unwrap_or_default();
    if !LEGACY.contains(&version) {
        return Err(Fault::Broken(match version {
            "" => "its answer to initialize names no protocol version".to_owned(),
            version => format!("it speaks protocol version {}, which cocode does not know", short(version)),
        }));
    }
    let era = Era::Legacy(version.to_owned());
    peer.notify("notifications/initialized", json!({}), Some(&era)).await;
    Ok(hello(era, cause.to_owned(), &result))
}

fn hello(era: Era, cause: String, result: &Value) -> Hello {
    let instructions = result["instructions"].as_str().unwrap_or_default();
    Hello {
        era,
        cause,
        capabilities: result["capabilities"].clone(),
        instructions: instructions.chars().take(INSTRUCTIONS).collect(),
    }
}

fn list(versions: &[Value]) -> String {
    let versions: Vec<String> = versions.iter().filter_map(Value::as_str).take(8).map(short).collect();
    if versions.is_empty() { "no version that it names".to_owned() } else { versions.join(", ") }
}
