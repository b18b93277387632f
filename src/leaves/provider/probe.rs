//! Finds a model server on this machine.

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use serde_json::Value;
use url::Url;

use super::http::Client;
use super::settings::WireName;

/// Most bytes of an answer.
const CAP: usize = 1 << 20;

/// Which server is expected at an address, since each identifies itself differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Ollama,
    LlamaCpp,
    LmStudio,
}

/// Where to look, best first.
pub const ADDRESSES: [(&str, Server); 3] = [
    ("http://127.0.0.1:11434", Server::Ollama),
    ("http://127.0.0.1:8080", Server::LlamaCpp),
    ("http://127.0.0.1:1234", Server::LmStudio),
];

/// A server that answered as the one that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// With its version segment, for a provider's `base_url`.
    pub base_url: String,
    pub wire: WireName,
    /// The model that it has loaded, or its first.
    pub model: String,
    /// Tokens that fit into that one, where the server says so.
    pub window: Option<u64>,
    /// What else it has.
    pub others: Vec<String>,
}

/// The ports that are tried.
pub fn ports() -> Vec<u16> {
    let port = |(address, _): &(&str, Server)| Url::parse(address).ok()?.port();
    ADDRESSES.iter().filter_map(port).collect()
}

/// Asks all addresses at once and takes the first of the list that has a model. Takes at most twice the client's time for a
/// probe.
pub async fn local_server(client: &Client, addresses: &[(&str, Server)]) -> Option<Found> {
    let mut asked: FuturesOrdered<_> = addresses
        .iter()
        .map(|(address, server)| async move {
            let base = address.trim_end_matches('/');
            let model = match server {
                Server::Ollama => ollama(client, base).await,
                Server::LlamaCpp => llama_cpp(client, base).await,
                Server::LmStudio => lm_studio(client, base).await,
            };
            let Offer { model, window, others } = model?;
            Some(Found { base_url: format!("{base}/v1"), wire: WireName::OpenaiChat, model, window, others })
        })
        .collect();
    while let Some(found) = asked.next().await {
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The model that is in front, the window that the server says it has, and the other models.
struct Offer {
    model: String,
    window: Option<u64>,
    others: Vec<String>,
}

impl Offer {
    fn of(model: &str, window: Option<u64>, all: impl Iterator<Item = String>) -> Offer {
        Offer { model: model.to_owned(), window, others: all.filter(|other| other != model).collect() }
    }
}

async fn ollama(client: &Client, base: &str) -> Option<Offer> {
    let version = get(client, base, "/api/version").await?;
    version["version"].as_str()?;
    let tags = get(client, base, "/api/tags").await?;
    let models = tags["models"].as_array()?.iter();
    // Embedding models answer no prompt.
    let names: Vec<&str> =
        models.filter_map(|model| model["name"].as_str()).filter(|name| !name.contains("embed")).collect();
    // What the server will really give it depends on its own settings, which it does not tell.
    Some(Offer::of(names.first()?, None, names.iter().map(|name| (*name).to_owned())))
}

async fn llama_cpp(client: &Client, base: &str) -> Option<Offer> {
    let props = get(client, base, "/props").await?;
    if props.get("default_generation_settings").is_none() && props.get("chat_template").is_none() {
        return None;
    }
    let models = get(client, base, "/v1/models").await?;
    let window = props["default_generation_settings"]["n_ctx"].as_u64();
    Some(Offer::of(models["data"][0]["id"].as_str()?, window, std::iter::empty()))
}

async fn lm_studio(client: &Client, base: &str) -> Option<Offer> {
    let models = get(client, base, "/api/v0/models").await?;
    let models = models["data"].as_array()?;
    let usable = || models.iter().filter(|model| matches!(model["type"].as_str(), Some("llm" | "vlm")));
    let loaded = usable().find(|model| model["state"] == "loaded");
    let model = loaded.or_else(|| usable().next())?;
    let all = usable().filter_map(|model| Some(model["id"].as_str()?.to_owned()));
    Some(Offer::of(model["id"].as_str()?, model["loaded_context_length"].as_u64(), all))
}

async fn get(client: &Client, base: &str, path: &str) -> Option<Value> {
    let url = Url::parse(&format!("{base}{path}")).ok()?;
    let asked = async {
        let mut response = client.reach(&url, None).ok()?.get(url).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > CAP {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    };
    tokio::time::timeout(client.timeouts().probe, asked).await.ok().flatten()
}
