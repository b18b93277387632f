//! `cocode __connect <host> <port>`: standard input and output through the session's proxy, as `ssh` wants it of a
//! `ProxyCommand`. It runs inside the sandbox and has no way of its own to the network.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::head;

/// The first argument that leads here.
pub const NAME: &str = "__connect";

/// Where it finds the proxy, with the command's pass.
pub const VARIABLE: &str = "COCODE_PROXY";

/// Connects, and copies until both ends are done.
///
/// # Errors
/// What went wrong, for `ssh` to show.
pub fn run(mut arguments: impl Iterator<Item = String>, proxy: Option<String>) -> Result<(), String> {
    let (Some(host), Some(port), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(format!("usage: cocode {NAME} <host> <port>"));
    };
    let proxy = proxy.ok_or(format!("{VARIABLE} is not set: {NAME} works only inside a command that cocode runs"))?;
    let stream = open(&proxy, &host, &port)?;
    let failed = |error: io::Error| format!("the connection to {host} failed: {error}");
    let mut back = stream.try_clone().map_err(failed)?;
    std::thread::spawn(move || {
        let mut stream = stream;
        // The other direction tells what went wrong, if anything did.
        let _ = io::copy(&mut io::stdin().lock(), &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
    let mut out = io::stdout().lock();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match back.read(&mut piece).map_err(failed)? {
            0 => return Ok(()),
            count => out.write_all(&piece[..count]).and_then(|()| out.flush()).map_err(failed)?,
        }
    }
}

fn open(proxy: &str, host: &str, port: &str) -> Result<TcpStream, String> {
    let url = url::Url::parse(proxy).map_err(|error| format!("{VARIABLE} is not a URL: {error}"))?;
    let place = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    let failed = |error: io::Error| format!("cannot reach the proxy of this session: {error}");
    let mut stream = TcpStream::connect(place).map_err(failed)?;
    let login = BASE64_STANDARD.encode(format!("{}:{}", url.username(), url.password().unwrap_or_default()));
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: Basic {login}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < head::MOST {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(failed)?;
        answer.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    let status = line.split_once(' ').map_or(line, |(_, status)| status);
    if status.starts_with('2') { Ok(stream) } else { Err(format!("cocode did not connect to {place}: {status}")) }
}
