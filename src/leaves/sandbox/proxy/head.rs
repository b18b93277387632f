//! Reads the head of a request to the proxy. Pure, and strict: what two readers could understand in two ways is refused.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::stdx::host::{self, Host};

/// Longest head, in bytes.
pub(super) const MOST: usize = 16 * 1024;

/// Most headers of a request.
const HEADERS: usize = 100;

/// Headers between a client and its proxy, and what a connection that ends after one answer has no use for.
const HOP: [&str; 9] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "upgrade",
    "http2-settings",
];

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// User and password of `Proxy-Authorization`.
    pub(super) login: Option<(String, String)>,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) wish: Wish,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Tunnel,
    /// One request, as the server reads it.
    Request {
        head: String,
        body: Body,
    },
}

/// How much of what follows belongs to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Bytes(u64),
    Chunked,
}

/// What is wrong with a head, and the status that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) status: u16,
    pub(super) why: &'static str,
}

fn bad(why: &'static str) -> Bad {
    Bad { status: 400, why }
}

/// Reads a head up to and with its empty line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<Head, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the head is not text"))?;
    let text = text.strip_suffix("\r\n\r\n").ok_or(bad("the head does not end"))?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut parts = first.split(' ');
    let (Some(method), Some(target), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad("the request line does not have three parts"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(Bad { status: 505, why: "only HTTP/1.1 is spoken here" });
    }
    if !is_token(method) || !target.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#\"<>".contains(&byte)) {
        return Err(bad("the request line has characters that it may not have"));
    }
    let headers: Vec<(&str, &str)> = lines.map(header).collect::<Result<_, _>>()?;
    if headers.len() > HEADERS {
        return Err(Bad { status: 431, why: "there are too many headers" });
    }
    let login = login(&headers)?;
    if one(&headers, "host")?.is_some_and(|host| !is_place(host)) {
        return Err(bad("the Host header does not name a host"));
    }
    if method == "CONNECT" {
        let (host, port) = host::authority(target).ok_or(bad("CONNECT names no host and port"))?;
        return Ok(Head { login, host, port, wish: Wish::Tunnel });
    }
    let Some((scheme, rest)) = target.split_once("://") else {
        return Err(bad("this is a proxy: a request names a whole http:// address"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(bad("only http:// addresses are requested here: use CONNECT for others"));
    }
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.contains('@') {
        return Err(bad("the address has a user name"));
    }
    let (host, port) = match host::authority(authority) {
        Some(place) => place,
        None => (Host::parse(authority).ok_or(bad("the address names no host"))?, 80),
    };
    let body = body(&headers)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let named = one(&headers, "connection")?.unwrap_or_default();
    let dropped = |name: &str| {
        HOP.iter().any(|hop| hop.eq_ignore_ascii_case(name))
            // A client may name what is between it and us, but not take the request's own framing away.
            || !is_framing(name) && named.split(',').any(|own| own.trim().eq_ignore_ascii_case(name))
    };
    let shown = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {shown}\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| !dropped(name)) {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(Head { login, host, port, wish: Wish::Request { head, body } })
}

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
}

fn is_place(text: &str) -> bool {
    host::authority(text).is_some() || Host::parse(text).is_some()
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn header(line: &str) -> Result<(&str, &str), Bad> {
    let (name, value) = line.split_once(':').ok_or(bad("a header has no colon"))?;
    let plain = |c: char| c == '\t' || !c.is_control();
    if !is_token(name) || !value.chars().all(plain) {
        return Err(bad("a header has characters that it may not have"));
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

/// The value of a header that may be there once.
fn one<'a>(headers: &[(&str, &'a str)], name: &str) -> Result<Option<&'a str>, Bad> {
    let mut values = headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(bad("a header that may be there once is there twice")),
    }
}

fn login(headers: &[(&str, &str)]) -> Result<Option<(String, String)>, Bad> {
    let Some(value) = one(headers, "proxy-authorization")? else { return Ok(None) };
    let read = || {
        let (scheme, text) = value.split_once(' ')?;
        let bytes = BASE64_STANDARD.decode(text.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (user, word) = text.split_once(':')?;
        scheme.eq_ignore_ascii_case("basic").then(|| (user.to_owned(), word.to_owned()))
    };
    Ok(read())
}

fn body(headers: &[(&str, &str)]) -> Result<Body, Bad> {
    match (one(headers, "content-length")?, one(headers, "transfer-encoding")?) {
        (None, None) => Ok(Body::Bytes(0)),
        (Some(length), None) => {
            let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            length.parse().ok().filter(|_| digits).map(Body::Bytes).ok_or(bad("the Content-Length is not a number"))
        }
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => Ok(Body::Chunked),
        (None, Some(_)) => Err(Bad { status: 501, why: "only the transfer encoding chunked is known" }),
        (Some(_), Some(_)) => Err(bad("the request has two lengths")),
    }
}
