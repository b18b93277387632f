//! Sends an event to a server, and reads its answer as what a hook said.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect, retry};
use serde_json::Value;
use url::{Host, Url};

use super::command::{End, Ran, Settings};
use super::config::Request;

/// Most bytes of an answer.
const READ: usize = 1 << 20;
/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(15);

impl Request {
    /// Why it cannot be sent.
    pub(super) fn fault(&self) -> Option<String> {
        let url = match Url::parse(&self.url) {
            Ok(url) => url,
            Err(error) => return Some(format!("its `url` is not valid: {error}")),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Some(format!("its `url` must begin with http:// or https://, not {}:", url.scheme()));
        }
        let name = |name: &String| HeaderName::from_bytes(name.as_bytes()).is_err();
        let wrong = self.headers.keys().find(|header| name(header));
        wrong.map(|name| format!("{name:?} in `headers` is not the name of a header"))
    }

    /// The headers, with the variables that may be sent.
    fn headers(&self, variable: impl Fn(&str) -> Option<String>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &self.headers {
            let text = filled(value, |name| {
                self.variables.iter().any(|allowed| allowed == name).then(|| variable(name)).flatten()
            });
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            // The value may be a secret: it is not shown.
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// The text with variables put in: `$NAME` and `${NAME}`.
fn filled(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('$') {
        whole.push_str(before);
        let braced = behind.strip_prefix('{').and_then(|behind| behind.split_once('}'));
        let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
        let (name, after) = braced.unwrap_or(behind.split_at(end));
        if name.is_empty() {
            whole.push('$');
            rest = behind;
            continue;
        }
        whole.push_str(&variable(name).unwrap_or_default());
        rest = after;
    }
    whole + rest
}

/// Sends the event. What is not a 2xx answer without a body, or with a JSON object, is a failure: a server cannot object by a
/// status.
pub(super) async fn send(request: &Request, timeout: Duration, input: &[u8], settings: &Settings) -> Ran {
    let started = Instant::now();
    let answer = tokio::time::timeout(timeout, exchange(request, input, settings)).await;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ended = |end, stdout: String| Ran { end, stdout, stderr: String::new(), millis };
    match answer {
        Ok(Ok(body)) => ended(End::Exited(0), body),
        Ok(Err(why)) => ended(End::Failed(why), String::new()),
        Err(_) => ended(End::TimedOut(timeout), String::new()),
    }
}

async fn exchange(request: &Request, input: &[u8], settings: &Settings) -> Result<String, String> {
    let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
    // As it will be sent: nothing in how it is written hides where it leads.
    if !settings.limits.reach(url.as_str()) {
        return Err("not sent: `allowed_hook_urls` does not list its address".into());
    }
    let variable = |name: &str| {
        let value = || settings.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        settings.limits.lend(name).then(value).flatten()
    };
    let headers = request.headers(variable)?;
    let client = client(&url).map_err(|error| format!("the HTTP client cannot be set up: {error}"))?;
    let sent = client.post(url).headers(headers).body(input.to_vec()).send().await;
    let mut response = sent.map_err(|error| format!("the server could not be reached: {}", causes(&error)))?;
    let status = response.status();
    if status.is_redirection() {
        return Err(format!("the server answered {status}; redirects are not followed"));
    }
    if !status.is_success() {
        return Err(format!("the server answered {status}"));
    }
    let mut body = Vec::new();
    while let Some(part) =
        response.chunk().await.map_err(|error| format!("the answer broke off: {}", causes(&error)))?
    {
        body.extend_from_slice(&part);
        if body.len() > READ {
            return Err(format!("the answer is longer than {READ} bytes"));
        }
    }
    let text = String::from_utf8_lossy(&body).trim().to_owned();
    match text.is_empty() || serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()) {
        true => Ok(text),
        false => Err("the answer is not a JSON object".to_owned()),
    }
}

fn client(url: &Url) -> Result<Client, reqwest::Error> {
    // The program has installed it already; tests have not.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let builder = || {
        let builder = Client::builder()
            .user_agent(concat!("cocode/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // A second one would tell the server of two events, and a redirect would carry headers elsewhere.
            .retry(retry::never())
            .redirect(redirect::Policy::none());
        if here { builder.no_proxy() } else { builder }
    };
    builder().build().or_else(|_| {
        // A machine without a bundle of roots of its own.
        let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = bundled.filter_map(|root| reqwest::Certificate::from_der(root).ok());
        builder().tls_certs_only(roots).build()
    })
}

/// The error with what caused it, without the address, which may hold a secret.
fn causes(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut text = if error.is_timeout() { "it took too long".to_owned() } else { String::new() };
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Sends an event to a server that answers so; what it got, and what the hook said.
    async fn check(headers: &[(&str, &str)], answer: &'static str, want: Result<&str, &str>) -> String {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?key=s3cret", server.local_addr().unwrap());
        let got = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let (mut got, mut part) = (Vec::new(), [0; 4096]);
            while !got.ends_with(b"{\"a\":1}\n") {
                let read = stream.read(&mut part).unwrap();
                got.extend_from_slice(&part[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(got).unwrap()
        });
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { url, headers, variables: vec!["TOKEN".into()] };
        let settings = Settings {
            env: [("TOKEN", "t0ken"), ("OTHER", "x")].map(|(name, value)| (name.into(), value.into())).into(),
            ..Settings::default()
        };
        let ran = send(&request, Duration::from_secs(60), b"{\"a\":1}\n", &settings).await;
        let said = match &ran.end {
            End::Exited(0) => Ok(ran.stdout.as_str()),
            End::Failed(why) => Err(why.as_str()),
            end => panic!("{end:?}"),
        };
        assert_eq!(said, want, "{answer}");
        got.join().unwrap()
    }

    #[tokio::test]
    async fn a_server_answers_with_json_or_nothing() {
        let got = check(
            &[("X-Key", "a $TOKEN ${TOKEN} $OTHER $ $$")],
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
            Ok(""),
        )
        .await;
        assert!(got.contains("x-key: a t0ken t0ken  $ $$\r\n"), "{got}");
        assert!(got.contains("content-type: application/json\r\n"), "{got}");
        check(&[], "HTTP/1.1 204 No Content\r\n\r\n", Ok("")).await;
        check(&[], "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n {\"a\": 2} ", Ok("{\"a\": 2}")).await;
        check(&[], "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfine", Err("the answer is not a JSON object")).await;
        check(&[], "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n{}", Err("the server answered 403 Forbidden"))
            .await;
        let moved = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n";
        check(&[], moved, Err("the server answered 302 Found; redirects are not followed")).await;
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_without_its_secrets() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let request = Request { url: format!("http://127.0.0.1:{port}/?key=s3cret"), ..Request::default() };
        let ran = send(&request, Duration::from_secs(60), b"{}\n", &Settings::default()).await;
        let End::Failed(why) = ran.end else { panic!("{ran:?}") };
        assert!(why.starts_with("the server could not be reached: ") && !why.contains("s3cret"), "{why}");
        let headers = [("X-Key".to_owned(), "a\nb".to_owned())].into();
        let ran = send(&Request { headers, ..request }, Duration::from_secs(60), b"{}\n", &Settings::default()).await;
        assert_eq!(ran.end, End::Failed("the header x-key has a value that cannot be sent".into()));
    }

    #[test]
    fn what_cannot_be_sent_is_said_before() {
        for (url, header, want) in [
            ("http://localhost:1/x", "X", None),
            ("ftp://a/", "X", Some("its `url` must begin with http:// or https://, not ftp:")),
            ("a b", "X", Some("its `url` is not valid: relative URL without a base")),
            ("https://a/", "X y", Some("\"X y\" in `headers` is not the name of a header")),
        ] {
            let headers = [(header.to_owned(), String::new())].into();
            let request = Request { url: url.into(), headers, variables: Vec::new() };
            assert_eq!(request.fault().as_deref(), want, "{url}");
        }
    }
}
