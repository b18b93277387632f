//! Hostile requests, names that change their meaning, and how connections end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::AsyncWriteExt;

use super::head::{Body, Wish};
use super::*;

/// Each request, one line: what its head is read as. `^` stands for the end of a line, `_` for a NUL.
#[test]
fn heads() {
    let long = format!("GET http://h/{} HTTP/1.1", "a".repeat(9000));
    let many = format!("GET http://h/ HTTP/1.1{}", "^A: b".repeat(101));
    for (text, want) in [
        // What is understood.
        ("CONNECT a.b:443 HTTP/1.1^Host: a.b:443", "tunnel a.b 443"),
        ("CONNECT A.B.:443 HTTP/1.0", "tunnel a.b 443"),
        ("CONNECT [::1]:80 HTTP/1.1", "tunnel [::1] 80"),
        ("CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1", "tunnel 127.0.0.1 80"),
        ("CONNECT 0x7f000001:80 HTTP/1.1", "tunnel 127.0.0.1 80"),
        ("CONNECT 2852039166:80 HTTP/1.1", "tunnel 169.254.169.254 80"),
        ("GET http://h HTTP/1.1", "h 80 Bytes(0) GET / HTTP/1.1^Host: h^Connection: close"),
        ("GET HTTP://H:8080?q HTTP/1.1", "h 8080 Bytes(0) GET /?q HTTP/1.1^Host: h:8080^Connection: close"),
        ("GET http://017700000001/ HTTP/1.1", "127.0.0.1 80 Bytes(0) GET / HTTP/1.1^Host: 127.0.0.1^Connection: close"),
        (
            "GET http://xn--bcher-kva.de/a HTTP/1.1",
            "xn--bcher-kva.de 80 Bytes(0) GET /a HTTP/1.1^Host: xn--bcher-kva.de^Connection: close",
        ),
        // Whom the request is for is said once: by its address.
        ("GET http://good/ HTTP/1.1^Host: evil", "good 80 Bytes(0) GET / HTTP/1.1^Host: good^Connection: close"),
        (
            "GET http://good/http://evil/ HTTP/1.1",
            "good 80 Bytes(0) GET /http://evil/ HTTP/1.1^Host: good^Connection: close",
        ),
        // What is between a client and its proxy stays there.
        (
            "GET http://h/ HTTP/1.1^Proxy-Connection: keep-alive^Connection: X, Keep-Alive^X: 1^Y: 2^Upgrade: h2c^TE: x",
            "h 80 Bytes(0) GET / HTTP/1.1^Host: h^Y: 2^Connection: close",
        ),
        (
            "POST http://h/ HTTP/1.1^Connection: Content-Length^Content-Length: 5",
            "h 80 Bytes(5) POST / HTTP/1.1^Host: h^Content-Length: 5^Connection: close",
        ),
        (
            "POST http://h/ HTTP/1.1^Transfer-Encoding: Chunked",
            "h 80 Chunked POST / HTTP/1.1^Host: h^Transfer-Encoding: Chunked^Connection: close",
        ),
        (long.as_str(), "h 80 Bytes(0) …"),
        // What is not.
        ("CONNECT a.b HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT a.b:0 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT a.b:99999 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT a.b:+443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT a.b:443:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT ::1:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT http://a.b:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT a.b:443/ HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT good@evil:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT evil%2egood:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT evil%00.good:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT *.good:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT [fe80::1%25eth0]:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT 1.2.3.4.5:443 HTTP/1.1", "400 CONNECT names no host and port"),
        ("CONNECT evil#.good:443 HTTP/1.1", "400 the request line has characters that it may not have"),
        ("CONNECT evil\\.good:443 HTTP/1.1", "400 the request line has characters that it may not have"),
        ("CONNECT evil_:443 HTTP/1.1", "400 the request line has characters that it may not have"),
        ("CONNECT évil:443 HTTP/1.1", "400 the request line has characters that it may not have"),
        ("CONNECT  a.b:443 HTTP/1.1", "400 the request line does not have three parts"),
        ("CONNECT a.b:443 HTTP/1.1 x", "400 the request line does not have three parts"),
        ("CONNECT a.b:443", "400 the request line does not have three parts"),
        ("CONNECT\ta.b:443\tHTTP/1.1", "400 the request line does not have three parts"),
        ("", "400 the request line does not have three parts"),
        ("PRI * HTTP/2.0", "505 only HTTP/1.1 is spoken here"),
        ("GET http://h/ HTTP/0.9", "505 only HTTP/1.1 is spoken here"),
        ("GET http://h/ HTTP/1.2", "505 only HTTP/1.1 is spoken here"),
        ("GET http://h/ http/1.1", "505 only HTTP/1.1 is spoken here"),
        ("G@T http://h/ HTTP/1.1", "400 the request line has characters that it may not have"),
        ("connect a.b:443 HTTP/1.1", "400 this is a proxy: a request names a whole http:// address"),
        ("GET / HTTP/1.1^Host: h", "400 this is a proxy: a request names a whole http:// address"),
        ("GET //evil/ HTTP/1.1^Host: h", "400 this is a proxy: a request names a whole http:// address"),
        ("OPTIONS * HTTP/1.1", "400 this is a proxy: a request names a whole http:// address"),
        ("GET https://h/ HTTP/1.1", "400 only http:// addresses are requested here: use CONNECT for others"),
        ("GET ftp://h/ HTTP/1.1", "400 only http:// addresses are requested here: use CONNECT for others"),
        ("GET file:///etc/passwd HTTP/1.1", "400 only http:// addresses are requested here: use CONNECT for others"),
        ("GET http:///etc HTTP/1.1", "400 the address names no host"),
        ("GET http://good:80@evil/ HTTP/1.1", "400 the address has a user name"),
        ("GET http://evil#@good/ HTTP/1.1", "400 the request line has characters that it may not have"),
        ("GET http://evil\\@good/ HTTP/1.1", "400 the request line has characters that it may not have"),
        ("GET http://h:80:80/ HTTP/1.1", "400 the address names no host"),
        ("GET http://h/ HTTP/1.1^Host: a^Host: b", "400 a header that may be there once is there twice"),
        ("GET http://h/ HTTP/1.1^Host: a b", "400 the Host header does not name a host"),
        ("GET http://h/ HTTP/1.1^Host : a", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^X: a^ folded", "400 a header has no colon"),
        ("GET http://h/ HTTP/1.1^X: a^ Host: evil", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^X: a\nHost: evil", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^X: a\rHost: evil", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^X: _", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^: a", "400 a header has characters that it may not have"),
        ("GET http://h/ HTTP/1.1^nothing", "400 a header has no colon"),
        (many.as_str(), "431 there are too many headers"),
        (
            "POST http://h/ HTTP/1.1^Content-Length: 5^Content-Length: 6",
            "400 a header that may be there once is there twice",
        ),
        (
            "POST http://h/ HTTP/1.1^Content-Length: 5^Content-Length: 5",
            "400 a header that may be there once is there twice",
        ),
        ("POST http://h/ HTTP/1.1^Content-Length: 5, 5", "400 the Content-Length is not a number"),
        ("POST http://h/ HTTP/1.1^Content-Length: -1", "400 the Content-Length is not a number"),
        ("POST http://h/ HTTP/1.1^Content-Length: +1", "400 the Content-Length is not a number"),
        ("POST http://h/ HTTP/1.1^Content-Length: 99999999999999999999", "400 the Content-Length is not a number"),
        ("POST http://h/ HTTP/1.1^Content-Length: 5^Transfer-Encoding: chunked", "400 the request has two lengths"),
        ("POST http://h/ HTTP/1.1^Transfer-Encoding: gzip, chunked", "501 only the transfer encoding chunked is known"),
        ("POST http://h/ HTTP/1.1^Transfer-Encoding: xchunked", "501 only the transfer encoding chunked is known"),
        (
            "GET http://h/ HTTP/1.1^Proxy-Authorization: Basic eDp5^Proxy-Authorization: Basic eDp5",
            "400 a header that may be there once is there twice",
        ),
    ] {
        let request = format!("{text}\r\n\r\n").replace('^', "\r\n");
        // In a name the NUL stands for itself.
        let request =
            if text.contains("evil_") || text.contains("X: _") { request.replace('_', "\0") } else { request };
        let got = match head::read(request.as_bytes()) {
            Err(bad) => format!("{} {}", bad.status, bad.why),
            Ok(head) => match head.wish {
                Wish::Tunnel => format!("tunnel {} {}", head.host, head.port),
                Wish::Request { head: sent, body } => {
                    let sent = sent.strip_suffix("\r\n\r\n").unwrap().replace("\r\n", "^");
                    format!("{} {} {body:?} {sent}", head.host, head.port)
                }
            },
        };
        match want.strip_suffix('…') {
            Some(start) => assert!(got.starts_with(start), "{text}: {got}"),
            None => assert_eq!(got, want, "{text}"),
        }
    }
    assert_eq!(head::read(b"GET http://h/ HTTP/1.1\n\n").unwrap_err().why, "the head does not end");
    assert_eq!(head::read(b"GET http://h/\xff HTTP/1.1\r\n\r\n").unwrap_err().why, "the head is not text");
    let body = |text: &str| match head::read(text.as_bytes()).unwrap().wish {
        Wish::Request { body, .. } => body,
        Wish::Tunnel => unreachable!(),
    };
    assert_eq!(body("POST http://h/ HTTP/1.1\r\nContent-Length: 007\r\n\r\n"), Body::Bytes(7));
}

/// Names with what they lead to, in the order in which they are asked for.
#[derive(Default)]
struct Names {
    known: HashMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: Arc<AtomicUsize>,
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> door::Addresses<'a> {
        let times = self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let answers = self.known.get(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(answers[times.min(answers.len() - 1)].clone())
        })
    }
}

/// A proxy with one pass, whose knocks are written down and answered.
struct Stand {
    proxy: Proxy,
    word: String,
    knocks: Arc<Mutex<Vec<String>>>,
    holder: JoinHandle<()>,
}

impl Stand {
    /// `answer` is asked about what is knocked for, as `host:port` and `(of name)`.
    async fn new(limits: Limits, names: Names, answer: impl Fn(&str) -> Option<Verdict> + Send + 'static) -> Stand {
        let proxy = Proxy::start(limits, Box::new(names), |_| None).await.unwrap();
        let mut pass = proxy.pass();
        let (word, knocks) = (pass.word.clone(), Arc::<Mutex<Vec<String>>>::default());
        let written = knocks.clone();
        let holder = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Some(Knock { contact, answer: send }) = pass.knock().await {
                let of = contact.address_of.map(|name| format!(" (of {name})")).unwrap_or_default();
                let text = format!("{}:{}{of}", contact.host, contact.port);
                let verdict = answer(&text);
                written.lock().unwrap().push(text);
                match verdict {
                    Some(verdict) => send.send(verdict).unwrap_or_default(),
                    None => open.push(send),
                }
            }
        });
        Stand { proxy, word, knocks, holder }
    }

    async fn open() -> Stand {
        Stand::new(Limits::default(), Names::default(), |_| Some(Verdict::Open)).await
    }

    async fn stream(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.proxy.port())).await.unwrap()
    }

    fn login(&self) -> String {
        format!("Proxy-Authorization: Basic {}", BASE64_STANDARD.encode(format!("{USER}:{}", self.word)))
    }

    /// Sends bytes, and returns what comes until the other side is done.
    async fn exchange(&self, sent: &[u8]) -> String {
        let mut stream = self.stream().await;
        stream.write_all(sent).await.unwrap();
        let mut got = Vec::new();
        // A connection that is closed with something unread may end in an error.
        let _ = stream.read_to_end(&mut got).await;
        String::from_utf8_lossy(&got).into_owned()
    }

    async fn connect(&self, place: &str) -> String {
        self.exchange(format!("CONNECT {place} HTTP/1.1\r\n{}\r\n\r\n", self.login()).as_bytes()).await
    }

    fn knocks(&self) -> String {
        std::mem::take(&mut *self.knocks.lock().unwrap()).join(", ")
    }
}

/// A server that answers each connection with the same bytes, and says what it read until its client was done, or had sent so
/// many bytes.
async fn origin(answer: &'static str, until: usize) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (send, read) = mpsc::unbounded_channel();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut got, mut piece) = (Vec::new(), [0; 1024]);
            while got.len() < until {
                match stream.read(&mut piece).await {
                    Ok(count @ 1..) => got.extend_from_slice(&piece[..count]),
                    _ => break,
                }
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            let _ = send.send(String::from_utf8_lossy(&got).into_owned());
        }
    });
    (port, read)
}

#[tokio::test]
async fn a_stranger_gets_nothing() {
    let stand = Stand::open().await;
    let login = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
    for given in [
        None,
        Some(login("cocode:guess")),
        Some(login(&format!("other:{}", stand.word))),
        Some(login(&format!("cocode:{}x", stand.word))),
        Some(login("cocode:")),
        Some(format!("Bearer {}", stand.word)),
        Some("Basic !!!".to_owned()),
    ] {
        let header = given.map(|given| format!("Proxy-Authorization: {given}\r\n")).unwrap_or_default();
        let got = stand.exchange(format!("CONNECT 127.0.0.1:9 HTTP/1.1\r\n{header}\r\n").as_bytes()).await;
        assert!(got.starts_with("HTTP/1.1 407 ") && got.contains("Proxy-Authenticate: Basic"), "{header} {got}");
    }
    let word = stand.word.as_bytes();
    let with = |user: &[u8], word: &[u8]| [&[1, user.len() as u8], user, &[word.len() as u8], word].concat();
    for (sent, want) in [
        // No password offered, no method at all, a wrong one, another user, another version.
        ([&[5, 1, 0][..], &[5, 1, 0, 1]].concat(), &[5u8, 0xff][..]),
        (vec![5, 0], &[5, 0xff]),
        ([&[5, 1, 2][..], &with(b"cocode", b"guess")].concat(), &[5, 2, 1, 1]),
        ([&[5, 1, 2][..], &with(b"root", word)].concat(), &[5, 2, 1, 1]),
        ([&[5, 1, 2][..], &[2, 0, 0]].concat(), &[5, 2]),
        // Not CONNECT, an unknown kind of address, no port, no host; the whole of version 4.
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 2, 0, 1, 127, 0, 0, 1, 0, 9]].concat(), &[5, 2, 1, 0, 5, 7]),
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 3, 0, 1, 127, 0, 0, 1, 0, 9]].concat(), &[5, 2, 1, 0, 5, 7]),
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 1, 0, 9, 0, 9]].concat(), &[5, 2, 1, 0, 5, 8]),
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 1, 0, 1, 127, 0, 0, 1, 0, 0]].concat(), &[5, 2, 1, 0, 5, 8]),
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 1, 0, 3, 0, 0, 9]].concat(), &[5, 2, 1, 0, 5, 8]),
        ([&[5, 1, 2][..], &with(b"cocode", word), &[5, 1, 0, 3, 3, b'a', 0, b'b', 0, 9]].concat(), &[5, 2, 1, 0, 5, 8]),
        (vec![4, 1, 0, 9, 127, 0, 0, 1, 0], &[]),
    ] {
        let mut stream = stand.stream().await;
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got).await;
        assert!(got.starts_with(want) && got.len() < 16, "{sent:?} {got:?}");
    }
    assert_eq!(stand.knocks(), "");
}

#[tokio::test]
async fn what_is_answered_for_is_reached() {
    let (port, mut read) = origin("pong", 4).await;
    let stand = Stand::open().await;
    // A tunnel.
    let head = format!("CONNECT localhost:{port} HTTP/1.1\r\n{}\r\n\r\nping", stand.login());
    let local = Stand::new(
        Limits::default(),
        Names { known: [("localhost", vec![vec!["127.0.0.1".parse().unwrap()]])].into(), ..Names::default() },
        |_| Some(Verdict::Open),
    )
    .await;
    let head = head.replace(&stand.login(), &local.login());
    assert_eq!(local.exchange(head.as_bytes()).await, "HTTP/1.1 200 Connection established\r\n\r\npong");
    assert_eq!((read.recv().await.unwrap(), local.knocks()), ("ping".to_owned(), format!("localhost:{port}")));
    // SOCKS, by address and by name.
    let word = stand.word.as_bytes();
    for address in [&[1, 127, 0, 0, 1][..], &[3, 5, b'1', b'2', b'7', b'.', b'1']] {
        let login = [&[5, 1, 2, 1, 6][..], b"cocode", &[word.len() as u8], word].concat();
        let sent = [&login[..], &[5, 1, 0], address, &port.to_be_bytes(), b"ping"].concat();
        let got = stand.exchange(&sent).await;
        assert!(got.ends_with("pong"), "{got:?}");
        assert_eq!((read.recv().await.unwrap(), stand.knocks()), ("ping".to_owned(), format!("127.0.0.1:{port}")));
    }
}

#[tokio::test]
async fn one_plain_request_goes_out_and_nothing_behind_it() {
    let answer = "HTTP/1.1 200 OK\r\n\r\nhello";
    let stand = Stand::open().await;
    for (framing, body, behind, want) in [
        ("", "", "GET http://evil/ HTTP/1.1\r\n\r\n", ""),
        ("Content-Length: 3\r\n", "abc", "GET /evil HTTP/1.1\r\n\r\n", "abc"),
        (
            "Transfer-Encoding: chunked\r\n",
            "3;x\r\nabc\r\n0\r\nT: v\r\n\r\n",
            "evil",
            "3;x\r\nabc\r\n0\r\nT: v\r\n\r\n",
        ),
    ] {
        let head =
            |port: u16| format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{framing}Connection: close\r\n\r\n");
        // Ports that nobody chose have five digits.
        let (port, mut read) = origin(answer, head(65535).len() + want.len()).await;
        let sent =
            format!("POST http://127.0.0.1:{port}/ HTTP/1.1\r\n{}\r\n{framing}\r\n{body}{behind}", stand.login());
        assert_eq!(stand.exchange(sent.as_bytes()).await, answer, "{framing}");
        assert_eq!(read.recv().await.unwrap(), head(port) + want);
    }
    for broken in ["x\r\n", "-1\r\n", "3\r\nabcd\r\n", "ffffffffffffffffff\r\n", "1\na\r\n0\r\n\r\n", "+1\r\na\r\n"] {
        let (port, mut read) = origin("late", usize::MAX).await;
        let sent = format!(
            "POST http://127.0.0.1:{port}/ HTTP/1.1\r\n{}\r\nTransfer-Encoding: chunked\r\n\r\n{broken}",
            stand.login()
        );
        let got = stand.exchange(sent.as_bytes()).await;
        assert!(!got.contains("late"), "{broken:?} {got}");
        assert!(read.recv().await.unwrap().ends_with(['\n', 'c']), "{broken:?}");
    }
}

#[tokio::test]
async fn a_name_cannot_change_its_meaning() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let (port, _read) = origin("secret", 0).await;
    let names = || {
        let asked = Arc::<AtomicUsize>::default();
        let known = [
            ("inner.corp", vec![vec![ip("127.0.0.1")]]),
            ("mapped.corp", vec![vec![ip("::ffff:127.0.0.1")]]),
            ("meta.corp", vec![vec![ip("169.254.169.254"), ip("fd00:ec2::254")]]),
            // Public when it is checked, private when it would be looked up again: nobody listens at the first.
            ("rebind.corp", vec![vec![ip("192.0.2.1")], vec![ip("127.0.0.1")]]),
            ("localhost", vec![vec![ip("10.0.0.1")]]),
        ];
        (Names { known: known.into(), asked: asked.clone() }, asked)
    };
    let limits = Limits { connect: Duration::from_millis(300), ..Limits::default() };
    let deny_private = |text: &str| match text.contains("(of ") {
        true => Some(Verdict::Closed(format!("{text} is private"))),
        false => Some(Verdict::Open),
    };
    for (name, knocks, got) in [
        ("inner.corp", "inner.corp:P, 127.0.0.1:P (of inner.corp)", "403 127.0.0.1:P (of inner.corp) is private"),
        ("mapped.corp", "mapped.corp:P, 127.0.0.1:P (of mapped.corp)", "403 127.0.0.1:P (of mapped.corp) is private"),
        (
            "meta.corp",
            "meta.corp:P, 169.254.169.254:P (of meta.corp)",
            "403 169.254.169.254:P (of meta.corp) is private",
        ),
        ("localhost", "localhost:P", "502 localhost has no usable address"),
        ("unknown.corp", "unknown.corp:P", "502 cannot resolve unknown.corp"),
    ] {
        let stand = Stand::new(limits, names().0, deny_private).await;
        let answer = stand.connect(&format!("{name}:{port}")).await;
        let status = answer.lines().next().unwrap().replace(&port.to_string(), "P");
        assert_eq!(
            (stand.knocks().replace(&port.to_string(), "P").as_str(), status.as_str()),
            (knocks, format!("HTTP/1.1 {got}").as_str())
        );
    }
    let (names, asked) = names();
    let stand = Stand::new(limits, names, |_| Some(Verdict::Open)).await;
    let answer = stand.connect(&format!("rebind.corp:{port}")).await;
    assert!(!answer.contains("secret") && answer.starts_with("HTTP/1.1 50"), "{answer}");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "it is looked up once");
    // The address that was answered for is the one that is reached.
    let answer = stand.connect(&format!("inner.corp:{port}")).await;
    assert!(answer.ends_with("secret"), "{answer}");
}

#[tokio::test]
async fn what_is_not_answered_for_is_not_reached() {
    let limits = Limits { answer: Duration::from_millis(50), head: Duration::from_millis(200), ..Limits::default() };
    let stand = Stand::new(limits, Names::default(), |text| {
        (text != "10.0.0.1:5").then(|| Verdict::Closed("évil\r\nX: y is denied".to_owned()))
    })
    .await;
    let got = stand.connect("8.8.8.8:53").await;
    assert_eq!(got.lines().next(), Some("HTTP/1.1 403 ?vil??X: y is denied"));
    assert!(got.ends_with("cocode: évil\r\nX: y is denied\n"), "{got}");
    let got = stand.connect("10.0.0.1:5").await;
    assert!(got.contains("403 10.0.0.1:5 was not allowed: nobody answered within 0 s. Try again"), "{got}");
    // Nothing leads back into the proxy.
    let open = Stand::open().await;
    for host in ["127.0.0.1", "0.0.0.0", "127.9.9.9"] {
        let got = open.connect(&format!("{host}:{}", open.proxy.port())).await;
        assert!(got.contains("it is this proxy"), "{got}");
    }
    // One that says nothing, or too much.
    assert_eq!(stand.exchange(b"").await, "");
    assert!(stand.exchange(b"CONN").await.starts_with("HTTP/1.1 408 "));
    let long = format!("CONNECT a:1 HTTP/1.1\r\nX: {}", "a".repeat(head::MOST));
    assert!(stand.exchange(long.as_bytes()).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn halves_close_one_by_one_and_all_ends_with_the_command() {
    // The server answers once its client is done.
    let (port, mut read) = origin("late", usize::MAX).await;
    let stand = Stand::open().await;
    let mut stream = stand.stream().await;
    let head = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n{}\r\n\r\nearly", stand.login());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).await.unwrap();
    assert!(got.ends_with("\r\n\r\nlate"), "{got}");
    assert_eq!(read.recv().await.as_deref(), Some("early"));
    // A tunnel that nobody closes ends with the pass, and the pass is worth nothing afterwards.
    let mut stream = stand.stream().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 39];
    stream.read_exact(&mut status).await.unwrap();
    stand.holder.abort();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(read.recv().await.as_deref(), Some("early"));
    assert!(stand.connect("127.0.0.1:9").await.starts_with("HTTP/1.1 407 "));
    // And the listener with the session.
    let place = (Ipv4Addr::LOCALHOST, stand.proxy.port());
    let mut open = stand.stream().await;
    drop(stand.proxy);
    let _ = open.read_to_end(&mut rest).await;
    while TcpStream::connect(place).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_are_counted() {
    let limits = Limits { unknown: 2, known: 1, ..Limits::default() };
    let stand = Stand::new(limits, Names::default(), |_| None).await;
    let request = format!("CONNECT 10.0.0.1:5 HTTP/1.1\r\n{}\r\n\r\n", stand.login());
    // One waits for its answer: it is known, and the next one is too many.
    let mut first = stand.stream().await;
    first.write_all(request.as_bytes()).await.unwrap();
    while stand.knocks().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(stand.exchange(request.as_bytes()).await.starts_with("HTTP/1.1 503 "));
    // Two say nothing: the third is closed at once.
    let _silent = (stand.stream().await, stand.stream().await);
    assert_eq!(stand.exchange(request.as_bytes()).await, "");
}
