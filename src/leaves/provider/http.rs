//! Sends requests and streams answers. The only part of a provider that touches the network.

mod address;
mod document;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, stream};
use url::Url;

pub use self::address::endpoint;
use self::address::{address, shown};
use super::bounds::bounded;
use super::catalog::Catalog;
use super::codec::{Codec, CodecSettings, Decoder, Encoded, bearer, codec, malformed, of_another};
use super::failure::clip;
use super::key::{Key, Secret};
use super::settings::{KeyHeader, ProviderSettings};
use super::{CompactedFuture, Error, Provider, ReplyStream, Request, StreamEvent, sse};
use crate::stdx::process;

/// Most bytes of a refusal that are read.
const REFUSAL: usize = 1 << 20;

/// Most bytes of an answer, whatever is in them.
const ANSWER: u64 = 1 << 30;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Without a single byte, before the answer and within it.
    pub idle: Duration,
    /// The same, of a server on this machine: it may read a long prompt for minutes before its first word.
    pub local_idle: Duration,
    /// For each question to a server that may be on this machine.
    pub probe: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let [connect, idle, local_idle] = [30, 300, 1_800].map(Duration::from_secs);
        Timeouts { connect, idle, local_idle, probe: Duration::from_millis(300) }
    }
}

/// Connections, shared by all providers. Built when first needed: that costs some milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Client {
    timeouts: Timeouts,
    built: Arc<Mutex<HashMap<Way, reqwest::Client>>>,
}

/// Requests that may share connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Way {
    /// A proxy cannot reach this machine's own servers.
    loopback: bool,
    /// Nothing is encrypted, and no redirect is followed: the system's hundreds of certificates need not be read, which
    /// takes longer than all else before the first request.
    plain: bool,
    ca_file: Option<PathBuf>,
}

impl Client {
    pub fn new(timeouts: Timeouts) -> Client {
        Client { timeouts, built: Arc::default() }
    }

    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    fn idle_at(&self, url: &Url) -> Duration {
        if is_loopback(url) { self.timeouts.local_idle } else { self.timeouts.idle }
    }

    /// The connections for an address: past the system's proxy when it is this machine's own.
    ///
    /// # Errors
    /// When `ca_file` cannot be used.
    pub fn reach(&self, url: &Url, ca_file: Option<&Path>) -> Result<reqwest::Client, Error> {
        let loopback = is_loopback(url);
        let way = Way { loopback, plain: loopback && url.scheme() == "http", ca_file: ca_file.map(Path::to_path_buf) };
        let mut built = self.built.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(client) = built.get(&way) {
            return Ok(client.clone());
        }
        let client = build(&way, self.timeouts.connect)?;
        built.insert(way, client.clone());
        Ok(client)
    }
}

fn build(way: &Way, connect: Duration) -> Result<reqwest::Client, Error> {
    // The second one to install is refused, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let extra = match &way.ca_file {
        None => Vec::new(),
        Some(path) => {
            let unusable = |error: String| Error::Other(format!("ca_file {} cannot be used: {error}", path.display()));
            let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let roots = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
            if roots.is_empty() {
                return Err(unusable("it contains no certificate".to_string()));
            }
            roots
        }
    };
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("cocode/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect)
            // Our own policy is the only one; and a redirect would carry the key to wherever it points.
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if way.loopback { builder.no_proxy() } else { builder }
    };
    if way.plain {
        let built = builder().tls_certs_only(extra).build();
        return built.map_err(|error| Error::Other(format!("cannot set up the HTTP client: {}", chain(&error))));
    }
    builder().tls_certs_merge(extra.clone()).build().or_else(|_| {
        // A machine without a bundle of roots of its own.
        let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = bundled.filter_map(|root| reqwest::Certificate::from_der(root).ok()).chain(extra);
        builder()
            .tls_certs_only(roots)
            .build()
            .map_err(|error| Error::Other(format!("cannot set up the HTTP client: {}", chain(&error))))
    })
}

/// Whether an address is this machine's own.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        // Connecting to the unspecified address reaches this machine, too.
        Some(url::Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(url::Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        None => false,
    }
}

/// A model behind HTTP.
pub struct HttpProvider {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    settings: ProviderSettings,
    key: Key,
    client: Client,
    catalog: Catalog,
    codec: &'static dyn Codec,
}

impl HttpProvider {
    /// `name` is what the configuration calls it.
    pub fn new(name: &str, settings: ProviderSettings, key: Key, client: Client) -> HttpProvider {
        HttpProvider::with_catalog(name, settings, key, client, Catalog::builtin())
    }

    /// With what the settings say of models.
    pub fn with_catalog(
        name: &str,
        settings: ProviderSettings,
        key: Key,
        client: Client,
        catalog: Catalog,
    ) -> HttpProvider {
        let codec = codec(settings.wire);
        HttpProvider { shared: Arc::new(Shared { name: name.to_string(), settings, key, client, catalog, codec }) }
    }
}

impl Provider for HttpProvider {
    fn wire(&self) -> &'static str {
        self.shared.codec.name()
    }

    fn route(&self) -> String {
        shown(&self.shared.settings.base_url)
    }

    fn local(&self) -> bool {
        Url::parse(&self.shared.settings.base_url).is_ok_and(|url| is_loopback(&url))
    }

    fn stream(&self, request: Arc<Request>) -> ReplyStream {
        let shared = self.shared.clone();
        let opened = async move {
            let answer = shared.open(&request).await;
            stream::unfold(Some(answer), |answer| async move {
                match answer? {
                    Err(error) => Some((Err(error), None)),
                    Ok(mut answer) => match answer.next().await {
                        Ok(Some(event)) => Some((Ok(event), Some(Ok(answer)))),
                        Ok(None) => None,
                        Err(error) => Some((Err(answer.shared.complete(error, answer.secret.as_ref())), None)),
                    },
                }
            })
        };
        bounded(opened.flatten_stream())
    }

    fn compact(&self, request: Arc<Request>) -> Option<CompactedFuture> {
        let compaction = self.shared.codec.compaction()?;
        Some(Box::pin(self.shared.clone().compact(compaction, request)))
    }
}

impl Shared {
    /// Sends the request and waits for the head of its answer.
    async fn open(self: Arc<Self>, request: &Request) -> Result<Answer, Error> {
        let mut secret = self.key.get().await?;
        let mut sent = self.send(request, secret.as_ref()).await;
        if let Err(Error::Auth { status: 401, .. }) = sent
            && let Some(other) = self.key.instead_of(secret.as_ref()).await
        {
            sent = self.send(request, Some(&other)).await;
            secret = Some(other);
        }
        match sent {
            Ok(body) => Ok(Answer {
                decoder: self.codec.decoder(&request.model),
                shared: self,
                secret,
                body,
                parser: sse::Parser::new(),
                events: Vec::new(),
                ready: Vec::new(),
                waiting: VecDeque::new(),
                failure: None,
                head: Vec::new(),
                seen: false,
                began: false,
                ended: false,
                bytes: 0,
            }),
            Err(error) => Err(self.complete(error, secret.as_ref())),
        }
    }

    async fn send(&self, request: &Request, secret: Option<&Secret>) -> Result<reqwest::Response, Error> {
        let encoded = self.codec.encode(request, &self.codec_settings(request));
        let response = self.post(encoded, "text/event-stream", secret).await?;
        self.judge(response).await
    }

    fn codec_settings(&self, request: &Request) -> CodecSettings {
        CodecSettings::from(&self.catalog.get(self.settings.wire, &request.model))
    }

    async fn post(&self, encoded: Encoded, accept: &str, secret: Option<&Secret>) -> Result<reqwest::Response, Error> {
        let url = address(&self.settings.base_url, encoded.version, &encoded.path, encoded.query)
            .ok_or_else(|| Error::Other(format!("base_url of provider {} is not an HTTP URL", self.name)))?;
        let own_key = ["authorization", "x-api-key", "x-goog-api-key"]
            .iter()
            .any(|name| self.settings.headers.keys().any(|header| header.eq_ignore_ascii_case(name)));
        if secret.is_none() && self.key.expected() && !is_loopback(&url) && !own_key {
            return Err(Error::NoKey { provider: self.name.clone(), hint: self.key.hint() });
        }
        let client = self.client.reach(&url, self.settings.ca_file.as_deref())?;
        let (idle, local) = (self.client.idle_at(&url), is_loopback(&url));
        let method = if encoded.body.is_empty() { reqwest::Method::GET } else { reqwest::Method::POST };
        let mut post = client.request(method, url).header("content-type", "application/json").header("accept", accept);
        for (name, value) in &encoded.headers {
            post = post.header(*name, value);
        }
        if let Some(secret) = secret {
            let (of_wire, bearer) = (self.codec.key_header(secret.expose()), bearer(secret.expose()));
            let carriers = match self.settings.key_header {
                KeyHeader::Wire => vec![of_wire],
                KeyHeader::Bearer => vec![bearer],
                KeyHeader::Both if of_wire == bearer => vec![bearer],
                KeyHeader::Both => vec![of_wire, bearer],
            };
            for (name, value) in carriers {
                let mut value = reqwest::header::HeaderValue::from_str(&value).map_err(|_| Error::NoKey {
                    provider: self.name.clone(),
                    hint: format!("the key contains characters that a header cannot: {}", self.key.hint()),
                })?;
                value.set_sensitive(true);
                post = post.header(name, value);
            }
        }
        let mut headers = reqwest::header::HeaderMap::new();
        for (name, value) in &self.settings.headers {
            let wrong = || Error::Other(format!("providers.{}.headers: {name} is not a valid header", self.name));
            let header = reqwest::header::HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.insert(header, reqwest::header::HeaderValue::from_str(value).map_err(|_| wrong())?);
        }
        process::may_begin().await;
        // The user's own headers replace ours.
        match tokio::time::timeout(idle, post.headers(headers).body(encoded.body).send()).await {
            Err(_) => Err(Error::Idle(idle)),
            Ok(Err(error)) if error.is_connect() && local && refused(&error) => {
                Err(Error::NoServer { url: String::new() })
            }
            Ok(Err(error)) if error.is_connect() => Err(Error::Connect { url: String::new(), message: chain(&error) }),
            // There was a connection, so the address is right.
            Ok(Err(error)) => Err(Error::Broken { message: chain(&error) }),
            Ok(Ok(response)) => Ok(response),
        }
    }

    /// Lets an event stream through; says what anything else means.
    async fn judge(&self, response: reqwest::Response) -> Result<reqwest::Response, Error> {
        let kind = document::kind(&response);
        // What does not say what it is may still be a stream; it is looked at as it comes.
        let maybe_stream = !matches!(kind.as_str(), "application/json" | "text/html" | "application/xhtml+xml");
        if response.status().is_success() && maybe_stream {
            return Ok(response);
        }
        // A refusal that breaks off is still a refusal.
        let (status, headers, body, _) = self.whole(response, REFUSAL).await;
        Err(self.refused(status, &kind, &headers, &body))
    }

    /// Adds what only the sender knows, and takes out what nobody may see.
    fn complete(&self, error: Error, secret: Option<&Secret>) -> Error {
        let clean = |text: String| {
            let text = secret.map_or_else(|| text.clone(), |secret| secret.redact(&text));
            // Values of the user's own headers are as secret; short ones would hit common words.
            let values = self.settings.headers.values().filter(|value| value.len() >= 12);
            values.fold(text, |text, value| {
                let bare = value.split_once(' ').map_or(value.as_str(), |(_, bare)| bare);
                let text = text.replace(value.as_str(), "[key]");
                if bare.len() >= 12 { text.replace(bare, "[key]") } else { text }
            })
        };
        let hinted = |hint: String, own: String| if hint.is_empty() { own } else { hint };
        match error {
            Error::RateLimited { message, retry_after } => Error::RateLimited { message: clean(message), retry_after },
            Error::Server { status, message, retry_after } => {
                Error::Server { status, message: clean(message), retry_after }
            }
            Error::NoServer { .. } => Error::NoServer { url: shown(&self.settings.base_url) },
            Error::Connect { message, .. } => {
                Error::Connect { url: shown(&self.settings.base_url), message: clean(message) }
            }
            Error::Auth { status, message, hint } => {
                Error::Auth { status, message: clean(message), hint: hinted(hint, self.key.hint()) }
            }
            Error::NotFound { status, message, hint } => {
                let own = format!("check the model (--model, /model) and providers.{}.base_url", self.name);
                Error::NotFound { status, message: clean(message), hint: hinted(hint, own) }
            }
            Error::BadRequest { status, message } => Error::BadRequest { status, message: clean(message) },
            Error::Quota { status, message } => Error::Quota { status, message: clean(message) },
            Error::Broken { message } => Error::Broken { message: clean(message) },
            Error::Malformed { wire, message, .. } => {
                Error::Malformed { url: shown(&self.settings.base_url), wire, message: clean(message) }
            }
            Error::NoKey { provider, hint } => {
                let provider = if provider.is_empty() { self.name.clone() } else { provider };
                Error::NoKey { provider, hint: clean(hint) }
            }
            Error::Other(message) => Error::Other(clean(message)),
            Error::Idle(_) | Error::EndedEarly | Error::ContextTooLong { .. } => error,
        }
    }
}

/// An answer that is being read.
struct Answer {
    shared: Arc<Shared>,
    secret: Option<Secret>,
    body: reqwest::Response,
    parser: sse::Parser,
    decoder: Box<dyn Decoder>,
    /// Scratch of the parser and the decoder.
    events: Vec<sse::Event>,
    ready: Vec<StreamEvent>,
    waiting: VecDeque<StreamEvent>,
    /// Why the stream fails, once what came before is handed out.
    failure: Option<Error>,
    /// The beginning of the body, until its first event: it may not be a stream at all.
    head: Vec<u8>,
    seen: bool,
    /// An event meant something: what follows is of this wire, or damaged.
    began: bool,
    ended: bool,
    /// How many came.
    bytes: u64,
}

impl Answer {
    /// The next event; none after the last.
    async fn next(&mut self) -> Result<Option<StreamEvent>, Error> {
        let idle = self.shared.client.idle_at(self.body.url());
        loop {
            if let Some(event) = self.waiting.pop_front() {
                if matches!(event, StreamEvent::End(_)) {
                    self.ended = true;
                    // Reading the end of the body, when it is there already, lets the connection be used again.
                    let _ = self.body.chunk().now_or_never();
                }
                return Ok(Some(event));
            }
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(None);
            }
            match tokio::time::timeout(idle, self.body.chunk()).await {
                Err(_) => return Err(Error::Idle(idle)),
                Ok(Ok(Some(bytes))) => self.failure = self.take(&bytes).err(),
                // A connection that breaks behind the stop event has broken nothing.
                Ok(Ok(None) | Err(_)) => self.failure = self.finish().err(),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.seen && self.head.len() < REFUSAL {
            self.head.extend_from_slice(bytes);
        }
        let wire = self.shared.codec.name();
        self.bytes += bytes.len() as u64;
        if self.bytes > ANSWER {
            return Err(malformed(wire, "the answer is larger than 1 GiB"));
        }
        self.parser.push(bytes, &mut self.events).map_err(|error| malformed(wire, error.to_string()))?;
        for event in self.events.drain(..) {
            self.seen = true;
            if !self.began
                && let Ok(value) = serde_json::from_str(&event.data)
                && let Some(problem) = of_another(wire, &value)
            {
                return Err(malformed(wire, problem));
            }
            let decoded = self.decoder.event(&event, &mut self.ready);
            self.began |= !self.ready.is_empty();
            self.waiting.extend(self.ready.drain(..));
            decoded.map_err(|error| match error {
                Error::Malformed { message, .. } if self.began => Error::Broken { message },
                error => error,
            })?;
        }
        if self.seen {
            self.head = Vec::new();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.ended = true;
        if let Some(event) = std::mem::take(&mut self.parser).finish() {
            // It has no blank line behind it: only a whole document is believed.
            let whole = serde_json::from_str::<serde::de::IgnoredAny>(&event.data).is_ok();
            if whole || event.data.trim() == "[DONE]" {
                self.seen = true;
                self.decoder.event(&event, &mut self.ready)?;
            }
        }
        let head = self.head.trim_ascii();
        if !self.seen && head.first().is_some_and(|byte| matches!(byte, b'{' | b'[' | b'<')) {
            return Err(self.shared.refusal(200, "", &[], head));
        }
        self.decoder.end(&mut self.ready)?;
        self.waiting.extend(self.ready.drain(..));
        self.ended = self.waiting.is_empty();
        Ok(())
    }
}

/// An error with its causes, without the address, which may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    let mut texts = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    match texts.last() {
        Some(_) if error.is_timeout() && error.is_connect() => "no connection in time".to_string(),
        Some(last) => clip(last),
        None => "the connection failed".to_string(),
    }
}

/// Whether the machine itself said that nothing listens.
fn refused(error: &reqwest::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |base: &str, version: &str, path: &str, want: Option<&str>| {
            assert_eq!(address(base, version, path, "").map(String::from).as_deref(), want, "{base}");
        };
        let (messages, responses, chat) = ("/messages", "/responses", "/chat/completions");
        check("https://api.anthropic.com", "/v1", messages, Some("https://api.anthropic.com/v1/messages"));
        check("https://gw.example/anthropic/", "/v1", messages, Some("https://gw.example/anthropic/v1/messages"));
        check("https://gw.example/v1", "/v1", messages, Some("https://gw.example/v1/messages"));
        check("https://gw.example/v1/messages", "/v1", messages, Some("https://gw.example/v1/messages"));
        check("https://gw.example/x/messages/", "/v1", messages, Some("https://gw.example/x/v1/messages"));
        check("https://gw.example/v1/messages", "/v1", chat, Some("https://gw.example/v1/chat/completions"));
        check("https://gw.example/v1/chat/completions", "/v1", chat, Some("https://gw.example/v1/chat/completions"));
        check("https://api.openai.com/v1", "/v1", responses, Some("https://api.openai.com/v1/responses"));
        check("http://localhost:8080", "/v1", chat, Some("http://localhost:8080/v1/chat/completions"));
        check("https://x.example/api/openai", "/v1", chat, Some("https://x.example/api/openai/chat/completions"));
        check("https://x.example/api/openai", "/v1", "/models", Some("https://x.example/api/openai/models"));
        check("https://g.example", "/v1beta", "/models/m:s", Some("https://g.example/v1beta/models/m:s"));
        check("https://g.example/v1beta", "/v1beta", "/models/m:s", Some("https://g.example/v1beta/models/m:s"));
        check("ftp://x", "/v1", chat, None);
        check("not an address", "/v1", chat, None);
    }

    #[test]
    fn loopback_is_what_stays_on_this_machine() {
        for (address, want) in [
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://0.0.0.0:11434", true),
            ("http://[::1]:80", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost.example.com", false),
            ("http://192.168.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), want, "{address}");
        }
    }

    #[test]
    fn a_ca_file_is_used_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        let reach = |file: &Path| {
            let url = Url::parse("https://model.example").unwrap();
            Client::default().reach(&url, Some(file)).map(drop)
        };
        let fails = |file: &Path| matches!(reach(file), Err(Error::Other(text)) if text.contains("roots.pem"));
        assert!(fails(&file));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(fails(&file));
        use base64::Engine;
        let root = base64::engine::general_purpose::STANDARD.encode(&webpki_root_certs::TLS_SERVER_ROOT_CERTS[0]);
        let lines: Vec<&str> = root.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
        std::fs::write(&file, pem).unwrap();
        assert_eq!(reach(&file), Ok(()));
    }

    #[test]
    fn a_shown_address_has_no_secret() {
        assert_eq!(shown("https://user:pass@x.example/v1/?key=s"), "https://x.example/v1");
    }
}
