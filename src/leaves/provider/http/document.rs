//! Answers that are one document: refusals, lists of models, and conversations that the server compacts.

use std::sync::Arc;

use super::{HttpProvider, Shared};
use crate::provider::catalog::offered::{self, Offered};
use crate::provider::codec::{Compaction, malformed, of_another};
use crate::provider::failure::Failure;
use crate::provider::key::Secret;
use crate::provider::{Compacted, Error, Request};

/// Most bytes of an answer that are read.
const MOST: usize = 64 << 20;
/// Most bytes of a list of models that are read.
const LIST: usize = 8 << 20;

impl HttpProvider {
    /// The models that the endpoint says it has.
    ///
    /// # Errors
    /// It cannot be asked, refuses the key, or has no such list.
    pub async fn offers(&self) -> Result<Vec<Offered>, Error> {
        self.shared.offers().await
    }
}

impl Shared {
    pub(super) async fn compact(
        self: Arc<Self>,
        compaction: &'static dyn Compaction,
        request: Arc<Request>,
    ) -> Result<Compacted, Error> {
        let secret = self.key.get().await?;
        let answer = self.ask_compaction(compaction, &request, secret.as_ref()).await;
        answer.map_err(|error| self.complete(error, secret.as_ref()))
    }

    async fn ask_compaction(
        &self,
        compaction: &'static dyn Compaction,
        request: &Request,
        secret: Option<&Secret>,
    ) -> Result<Compacted, Error> {
        let encoded = compaction.encode(request, &self.codec_settings(request));
        let response = self.post(encoded, "application/json", secret).await?;
        let kind = kind(&response);
        let (status, headers, body, ended) = self.whole(response, MOST).await;
        if status >= 300 {
            return Err(self.refused(status, &kind, &headers, &body));
        }
        ended?;
        compaction.decode(&request.model, &body)
    }

    pub(super) async fn offers(&self) -> Result<Vec<Offered>, Error> {
        let secret = self.key.get().await?;
        let asked = async {
            let response = self.post(self.codec.listing(), "application/json", secret.as_ref()).await?;
            let kind = kind(&response);
            let (status, headers, body, ended) = self.whole(response, LIST).await;
            if status >= 300 {
                return Err(self.refused(status, &kind, &headers, &body));
            }
            ended?;
            let body = serde_json::from_slice(&body)
                .map_err(|_| malformed(self.codec.name(), "its list of models is not JSON"))?;
            Ok(offered::read(&body))
        };
        asked.await.map_err(|error| self.complete(error, secret.as_ref()))
    }

    /// Reads an answer that is not a stream, up to about this many bytes; the last value says whether it was complete.
    pub(super) async fn whole(
        &self,
        mut response: reqwest::Response,
        most: usize,
    ) -> (u16, Vec<(String, String)>, Vec<u8>, Result<(), Error>) {
        let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_string(), text(value))).collect();
        let (status, idle) = (response.status().as_u16(), self.client.timeouts.idle);
        let mut body = Vec::new();
        let ended = loop {
            match tokio::time::timeout(idle, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None)) => break Ok(()),
                Ok(Err(_)) => break Err(Error::EndedEarly),
                Err(_) => break Err(Error::Idle(idle)),
            }
            if body.len() > most {
                break Err(Error::EndedEarly);
            }
        };
        (status, headers, body, ended)
    }

    pub(super) fn refused(&self, status: u16, kind: &str, headers: &[(String, String)], body: &[u8]) -> Error {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.refusal(status, kind, &headers, body)
    }

    /// What an answer means that is not a stream.
    pub(super) fn refusal(&self, status: u16, kind: &str, headers: &[(&str, &str)], body: &[u8]) -> Error {
        if status >= 300 {
            return self.codec.classify(status, headers, body);
        }
        match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(value) if Failure::find(&value).is_some() => self.codec.classify(status, headers, body),
            Ok(value) => {
                let other = of_another(self.codec.name(), &value);
                let usual = || "it answered with one JSON document instead of an event stream".to_owned();
                malformed(self.codec.name(), other.unwrap_or_else(usual))
            }
            Err(_) => {
                // A document on every line, as Ollama has it.
                let mut lines = serde_json::Deserializer::from_slice(body).into_iter::<serde_json::Value>();
                let other = lines.next().and_then(Result::ok).and_then(|value| of_another(self.codec.name(), &value));
                let usual = || format!("it answered with {}", if kind.is_empty() { "text" } else { kind });
                malformed(self.codec.name(), other.unwrap_or_else(usual))
            }
        }
    }
}

/// What an answer says it is.
pub(super) fn kind(response: &reqwest::Response) -> String {
    let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
