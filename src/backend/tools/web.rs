//! Asks the web for one page, and never an address that is not meant for the public.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, redirect, retry};
use url::{Host, Url};

use crate::stdx::host::is_private;

/// Most bytes of one page.
const PAGE: usize = 10 * 1024 * 1024;

/// Most redirects within one host.
const HOPS: usize = 10;

/// Longest time for one page.
const TIME: Duration = Duration::from_secs(60);

/// Which addresses may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Public,
    /// Loopback and private networks, too.
    Any,
}

/// What came back.
pub(super) enum Fetched {
    Page(Page),
    /// The page is on another host, which is for the model to ask by itself.
    Elsewhere(Url),
}

pub(super) struct Page {
    /// Where it was after redirects.
    pub(super) url: Url,
    pub(super) status: u16,
    /// Lower case, without parameters; empty when the server did not say.
    pub(super) media_type: String,
    pub(super) charset: Option<String>,
    pub(super) body: Vec<u8>,
    /// It was longer than 10 MB.
    pub(super) cut: bool,
}

impl Page {
    /// The body as text. Western single-byte encodings are known; everything else is read as UTF-8.
    pub(super) fn text(&self) -> String {
        match self.charset.as_deref() {
            Some("iso-8859-1" | "latin1" | "windows-1252" | "us-ascii") => {
                self.body.iter().map(|b| char::from(*b)).collect()
            }
            _ => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }
}

/// Reads an address as the model gives it.
///
/// # Errors
/// A sentence for the model.
pub(super) fn parse(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url.trim())
        .map_err(|error| format!("The URL {url:?} is not valid: {error}. Use the full URL, with https://."))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("Only http and https can be fetched, not {}.", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("Leave the user name and password out of the URL.".into());
    }
    Ok(parsed)
}

/// Fetches a page, following redirects within its host.
///
/// # Errors
/// A sentence for the model: refused, not found, not reached, too slow.
pub(super) async fn get(url: Url, reach: Reach) -> Result<Fetched, String> {
    let shown = url.to_string();
    match tokio::time::timeout(TIME, follow(url, reach)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(format!("{shown} did not answer within {} s.", TIME.as_secs())),
    }
}

async fn follow(mut url: Url, reach: Reach) -> Result<Fetched, String> {
    let place = Place::find(&url, reach).await?;
    if url.scheme() == "http" && url.port().is_none() && !place.private {
        let _ = url.set_scheme("https");
    }
    let client = place.client().map_err(|error| format!("Cannot set up the web client: {}.", chain(&error)))?;
    for _ in 0..HOPS {
        let accept = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";
        let answer = client.get(url.clone()).header(ACCEPT, accept).send().await;
        let answer = answer.map_err(|error| format!("Cannot fetch {url}: {}.", chain(&error)))?;
        let to = answer.headers().get(LOCATION).filter(|_| answer.status().is_redirection());
        let Some(to) = to else { return page(url, answer).await.map(Fetched::Page) };
        let to = to.to_str().ok().and_then(|to| url.join(to).ok());
        let to = to.ok_or_else(|| format!("{url} redirects to an address that is not valid."))?;
        // The same host is the same addresses: they are pinned.
        let same = to.host() == url.host() && to.port_or_known_default() == url.port_or_known_default();
        let upgraded = to.host() == url.host() && url.scheme() == "http" && to.scheme() == "https";
        if !(same || upgraded) || !matches!(to.scheme(), "http" | "https") {
            return Ok(Fetched::Elsewhere(to));
        }
        url = to;
    }
    Err(format!("{url} redirects endlessly."))
}

async fn page(url: Url, answer: reqwest::Response) -> Result<Page, String> {
    let status = answer.status().as_u16();
    let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_ascii_lowercase();
    let (media_type, parameters) = content_type.split_once(';').unwrap_or((&content_type, ""));
    let charset = parameters.split(';').find_map(|one| one.trim().strip_prefix("charset="));
    let charset = charset.map(|charset| charset.trim_matches('"').to_string());
    let media_type = media_type.trim().to_string();
    let (mut body, mut cut) = (Vec::new(), false);
    let mut stream = answer.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| format!("{url} broke off: {}.", chain(&error)))?;
        let room = PAGE - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Page { url, status, media_type, charset, body, cut })
}

/// An error with its causes, which say what went wrong.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        text = cause.to_string();
        next = cause.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}

/// A host with the addresses that it had when they were checked.
struct Place {
    host: String,
    addresses: Vec<SocketAddr>,
    private: bool,
}

impl Place {
    /// Looks the host up, once: later connections use these addresses, so that a name cannot change its meaning.
    async fn find(url: &Url, reach: Reach) -> Result<Place, String> {
        let (host, addresses) = match url.host() {
            Some(Host::Ipv4(ip)) => (ip.to_string(), vec![SocketAddr::from((ip, 0))]),
            Some(Host::Ipv6(ip)) => (ip.to_string(), vec![SocketAddr::from((ip, 0))]),
            Some(Host::Domain(host)) => {
                // Behind a proxy names may be unknown here; without one the connection will say so. Port 0 stands for the
                // url's own, which changes when http becomes https.
                let found = tokio::net::lookup_host((host, 0)).await;
                (host.to_string(), found.map(Iterator::collect).unwrap_or_default())
            }
            None => return Err(format!("The url {url} names no host.")),
        };
        let private = addresses.iter().any(|address| is_private(address.ip()));
        let local = host == "localhost" || host.ends_with(".localhost") || private;
        if local && reach == Reach::Public {
            return Err(format!(
                "{host} is an address of this machine or of a private network, which WebFetch does not access. Use curl in Bash, or set tools.fetch_private."
            ));
        }
        Ok(Place { host, addresses, private: local })
    }

    fn client(self) -> Result<Client, reqwest::Error> {
        // The program has installed it already; tests have not.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let private = self.private;
        let resolver = Arc::new(self);
        let builder = || {
            let builder = Client::builder()
                .dns_resolver(Arc::clone(&resolver))
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .connect_timeout(Duration::from_secs(15))
                .read_timeout(Duration::from_secs(30))
                .user_agent(concat!("cocode/", env!("CARGO_PKG_VERSION")));
            if private { builder.no_proxy() } else { builder }
        };
        builder().build().or_else(|_| {
            // Without a system bundle of certificates the client cannot be built: then ours.
            let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
            let certificates = roots.iter().filter_map(|root| reqwest::Certificate::from_der(root).ok());
            builder().tls_certs_only(certificates).build()
        })
    }
}

impl Resolve for Place {
    fn resolve(&self, name: Name) -> Resolving {
        if name.as_str() == self.host {
            let addresses = self.addresses.clone();
            return Box::pin(async move {
                match addresses.is_empty() {
                    true => Err("the host is not known".into()),
                    false => Ok(Box::new(addresses.into_iter()) as Addrs),
                }
            });
        }
        // A proxy, named by the user's own environment.
        let host = name.as_str().to_string();
        Box::pin(async move {
            Ok(Box::new(tokio::net::lookup_host((host, 0)).await?.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
