//! Opens a connection for somebody with a pass: asks about the host, looks it up, and connects to the very address that was
//! checked, so that a name cannot change its meaning in between.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Contact, Holder, Knock, Shared, Verdict};
use crate::stdx::host::{Host, Pattern, is_private};

/// Addresses of a name.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks names up.
pub trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// Why a connection was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// By an answer, or because nobody answered.
    Denied(String),
    /// The name means nothing, or nobody is there.
    Unreachable(String),
    TooSlow(String),
}

impl Refusal {
    pub(super) fn status(&self) -> u16 {
        match self {
            Refusal::Denied(_) => 403,
            Refusal::Unreachable(_) => 502,
            Refusal::TooSlow(_) => 504,
        }
    }

    pub(super) fn text(&self) -> &str {
        let (Refusal::Denied(text) | Refusal::Unreachable(text) | Refusal::TooSlow(text)) = self;
        text
    }
}

/// Opens a connection, if the holder of the pass agrees.
pub(super) async fn open(holder: &Holder, host: Host, port: u16, shared: &Shared) -> Result<TcpStream, Refusal> {
    let contact = Contact { host, port, address_of: None };
    ask(holder, contact.clone(), shared).await?;
    let Contact { host, .. } = contact;
    let limit = shared.limits.connect;
    let slow = || Refusal::TooSlow(format!("{host}:{port} did not answer within {} s", limit.as_secs()));
    let lookup = async {
        match &host {
            Host::Ip(ip) => Ok(vec![*ip]),
            Host::Name(name) => shared.resolver.resolve(name).await,
        }
    };
    let found = timeout(limit, lookup).await.map_err(|_| slow())?;
    let upstream = shared.upstream.as_ref().filter(|upstream| !upstream.skips(&host, port));
    let way = match (found.map(|found| choose(&host, &found)), upstream) {
        (Ok(Choice::Connect(_)) | Err(_), Some(upstream)) => Way::Upstream(upstream),
        (Ok(Choice::Connect(addresses)), None) => Way::Direct(addresses),
        (Ok(Choice::Ask(address)), _) => {
            let address_of = Some(host.to_string());
            ask(holder, Contact { host: Host::of_ip(address), port, address_of }, shared).await?;
            Way::Direct(vec![address])
        }
        (Ok(Choice::Nothing), _) => return Err(Refusal::Unreachable(format!("{host} has no usable address"))),
        (Err(_), None) => return Err(Refusal::Unreachable(format!("cannot resolve {host}"))),
    };
    let connected = timeout(limit, way.connect(&host, port, shared)).await.map_err(|_| slow())?;
    let stream =
        connected.map_err(|problem| Refusal::Unreachable(format!("cannot connect to {host}:{port}: {problem}")))?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

enum Way<'a> {
    /// Where names may be known to the session's own proxy alone, or nothing else leads out.
    Upstream(&'a Upstream),
    Direct(Vec<IpAddr>),
}

impl Way<'_> {
    async fn connect(self, host: &Host, port: u16, shared: &Shared) -> Result<TcpStream, String> {
        let addresses = match self {
            Way::Upstream(upstream) => return upstream.connect(host, port).await,
            Way::Direct(addresses) => addresses,
        };
        let mut problem = "no address".to_owned();
        for ip in addresses {
            if port == shared.own.port() && (ip.is_loopback() || ip.is_unspecified()) {
                return Err("it is this proxy".to_owned());
            }
            match TcpStream::connect(SocketAddr::new(ip, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => problem = error.kind().to_string(),
            }
        }
        Err(problem)
    }
}

async fn ask(holder: &Holder, contact: Contact, shared: &Shared) -> Result<(), Refusal> {
    let place = format!("{}:{}", contact.host, contact.port);
    let (answer, answered) = oneshot::channel();
    let gone = || Refusal::Denied(format!("{place} was not allowed: the command has ended"));
    holder.knocks.send(Knock { contact, answer }).map_err(|_| gone())?;
    match timeout(shared.limits.answer, answered).await {
        Ok(Ok(Verdict::Open)) => Ok(()),
        Ok(Ok(Verdict::Closed(why))) => Err(Refusal::Denied(why)),
        Ok(Err(_)) => Err(gone()),
        Err(_) => Err(Refusal::Denied(format!(
            "{place} was not allowed: nobody answered within {} s. Try again after answering",
            shared.limits.answer.as_secs()
        ))),
    }
}

/// What to do with the addresses of a host that was answered for.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Connect(Vec<IpAddr>),
    /// They all lead into a private network: somebody has to answer for this one.
    Ask(IpAddr),
    Nothing,
}

/// Decides which of its addresses a host may mean. A public name means public addresses, `localhost` means this machine.
fn choose(host: &Host, found: &[IpAddr]) -> Choice {
    let found: Vec<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
    let usable: Vec<IpAddr> = match host {
        Host::Ip(_) => found.clone(),
        name if name.is_localhost() => found.iter().copied().filter(IpAddr::is_loopback).collect(),
        Host::Name(_) => found.iter().copied().filter(|ip| !is_private(*ip)).collect(),
    };
    match (usable.is_empty(), found.first()) {
        (false, _) => Choice::Connect(usable),
        (true, Some(first)) if !host.is_localhost() => Choice::Ask(*first),
        (true, _) => Choice::Nothing,
    }
}

/// The proxy that the session itself has to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upstream {
    host: String,
    port: u16,
    /// `user:password`, in Base64.
    login: Option<String>,
    /// Hosts that are reached without it.
    direct: Vec<Pattern>,
    everything_direct: bool,
}

impl Upstream {
    /// What the session's variables name. Only HTTP proxies are used; others are ignored.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Upstream> {
        let either = |name: &str| variable(&name.to_ascii_lowercase()).or_else(|| variable(name));
        let given = ["HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY"].into_iter().filter_map(either);
        let text = given.into_iter().find(|text| !text.trim().is_empty())?;
        let text = if text.contains("://") { text } else { format!("http://{text}") };
        let url = url::Url::parse(text.trim()).ok().filter(|url| url.scheme() == "http")?;
        let login = (!url.username().is_empty()).then(|| {
            let plain = |text: &str| percent_decoded(text);
            BASE64_STANDARD.encode(format!("{}:{}", plain(url.username()), plain(url.password().unwrap_or_default())))
        });
        let skipped = either("NO_PROXY").unwrap_or_default();
        let mut direct = Vec::new();
        for name in skipped.split(',').map(str::trim) {
            // As curl reads it: a name means itself and everything below.
            let name = name.trim_start_matches("*.").trim_start_matches('.');
            direct.extend(Pattern::parse(name));
            direct.extend(Pattern::parse(&format!("*.{name}")));
        }
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default()?;
        Some(Upstream { host, port, login, direct, everything_direct: skipped.trim() == "*" })
    }

    fn skips(&self, host: &Host, port: u16) -> bool {
        self.everything_direct || host.is_private() || self.direct.iter().any(|pattern| pattern.covers(host, port))
    }

    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, String> {
        let failed = |problem: &dyn std::fmt::Display| format!("the proxy {} failed: {problem}", self.host);
        let mut stream =
            TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| failed(&error.kind()))?;
        let login = self.login.as_ref().map(|login| format!("Proxy-Authorization: Basic {login}\r\n"));
        let login = login.unwrap_or_default();
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|error| failed(&error.kind()))?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() > super::head::MOST {
                return Err(failed(&"its answer is too long"));
            }
            // Byte by byte: what follows belongs to the connection.
            head.push(stream.read_u8().await.map_err(|error| failed(&error.kind()))?);
        }
        let status = String::from_utf8_lossy(&head);
        let code = status.split(' ').nth(1).unwrap_or_default();
        if code.starts_with('2') { Ok(stream) } else { Err(failed(&format!("it answered {code}"))) }
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let escaped = match others {
            [high, low, ..] if *first == b'%' => {
                let digits = [*high, *low];
                std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok())
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_name_means_public_addresses() {
        for (host, found, want) in [
            ("a.b", "8.8.8.8 10.0.0.1", "Connect([8.8.8.8])"),
            ("a.b", "10.0.0.1 127.0.0.1", "Ask(10.0.0.1)"),
            ("a.b", "::ffff:169.254.169.254", "Ask(169.254.169.254)"),
            ("a.b", "", "Nothing"),
            ("localhost", "127.0.0.1 ::1", "Connect([127.0.0.1, ::1])"),
            ("localhost", "8.8.8.8", "Nothing"),
            ("x.localhost", "10.0.0.1", "Nothing"),
            ("10.0.0.1", "10.0.0.1", "Connect([10.0.0.1])"),
        ] {
            let found: Vec<IpAddr> = found.split_whitespace().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(format!("{:?}", choose(&Host::parse(host).unwrap(), &found)), want, "{host} {found:?}");
        }
    }

    #[test]
    fn the_sessions_own_proxy() {
        let of = |given: &[(&str, &str)]| {
            let given: Vec<(String, String)> =
                given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Upstream::of(move |name| given.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", "socks5://p:1")]), None);
        let plain = of(&[("https_proxy", "p.corp:3128")]).unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.login.as_deref()), ("p.corp", 3128, None));
        let own = of(&[("HTTP_PROXY", "http://u:p%40x@[::1]/"), ("NO_PROXY", ".corp, 10.0.0.1,x.y:8")]).unwrap();
        assert_eq!((own.host.as_str(), own.port), ("::1", 80));
        assert_eq!(own.login, Some(BASE64_STANDARD.encode("u:p@x")));
        for (host, port, want) in [
            ("corp", 443, true),
            ("a.corp", 443, true),
            ("acorp", 443, false),
            ("10.0.0.1", 80, true),
            ("8.8.8.8", 80, false),
            ("x.y", 8, true),
            ("x.y", 9, false),
            ("localhost", 9, true),
        ] {
            assert_eq!(own.skips(&Host::parse(host).unwrap(), port), want, "{host}:{port}");
        }
        assert!(of(&[("ALL_PROXY", "p"), ("no_proxy", "*")]).unwrap().skips(&Host::parse("x").unwrap(), 1));
    }
}
