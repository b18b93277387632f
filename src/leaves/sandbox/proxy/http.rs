//! HTTP to the proxy: a tunnel with CONNECT, or one plain request.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::head::{self, Body, Head, Wish};
use super::{Holder, Room, Shared, door, relay};

/// Longest line between chunks of a body, and most bytes behind the last one.
const LINE: u64 = 4 * 1024;

/// Serves one connection, whose first byte was read.
pub(super) async fn serve(mut stream: TcpStream, first: u8, shared: &Shared, room: Room) -> io::Result<()> {
    let head = match timeout(shared.limits.head, whole(&mut stream, first)).await {
        Ok(Ok(head)) => head,
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            return answer(&mut stream, 431, "the head of the request is too long").await;
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => return answer(&mut stream, 408, "the request did not come in time").await,
    };
    let Head { login, host, port, wish } = match head::read(&head) {
        Ok(head) => head,
        Err(bad) => return answer(&mut stream, bad.status, bad.why).await,
    };
    let Some(holder) = login.and_then(|(user, word)| shared.holder(&user, &word)) else {
        return answer(&mut stream, 407, "this proxy belongs to a session of cocode").await;
    };
    let Some(_room) = room.enter() else { return answer(&mut stream, 503, "too many connections are open").await };
    // The command may end while the question is open.
    let mut alive = holder.alive.clone();
    let opened = tokio::select! {
        opened = door::open(&holder, host, port, shared) => opened,
        _ = alive.changed() => return Ok(()),
    };
    let mut server = match opened {
        Ok(server) => server,
        Err(refusal) => return answer(&mut stream, refusal.status(), refusal.text()).await,
    };
    match wish {
        Wish::Tunnel => {
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            relay(stream, server, holder).await
        }
        Wish::Request { head, body } => {
            server.write_all(head.as_bytes()).await?;
            forward(stream, server, body, holder).await
        }
    }
}

/// Reads a head to its empty line, and not one byte of what follows.
async fn whole(stream: &mut TcpStream, first: u8) -> io::Result<Vec<u8>> {
    let mut head = vec![first];
    let mut peeked = vec![0; head::MOST];
    loop {
        let count = stream.peek(&mut peeked).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let before = head.len();
        head.extend_from_slice(&peeked[..count]);
        // The end may have begun in the piece before.
        let from = before.saturating_sub(3);
        let end = head[from..].windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
        head.truncate(end.unwrap_or(head.len()));
        if head.len() > head::MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let taken = head.len() - before;
        stream.read_exact(&mut peeked[..taken]).await?;
        if end.is_some() {
            return Ok(head);
        }
    }
}

/// Sends the rest of one request, and all that comes back. What the client sends behind it goes nowhere: it could be for
/// another host.
async fn forward(mut client: TcpStream, mut server: TcpStream, body: Body, mut holder: Holder) -> io::Result<()> {
    let (from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let mut from = BufReader::new(from_client);
        match body {
            Body::Bytes(count) => {
                let copied = tokio::io::copy(&mut (&mut from).take(count), &mut to_server).await?;
                if copied < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            }
            Body::Chunked => chunks(&mut from, &mut to_server).await,
        }
    };
    let down = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::pin!(up, down);
    let mut sending = true;
    loop {
        tokio::select! {
            done = &mut down => return done,
            sent = &mut up, if sending => {
                sent?;
                sending = false;
            }
            _ = holder.alive.changed() => return Ok(()),
        }
    }
}

/// Copies a chunked body to its end.
async fn chunks(from: &mut (impl AsyncBufRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    loop {
        let line = line(from).await?;
        let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t' | b'\r')).next().unwrap_or_default();
        let size = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let size = size.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or(io::ErrorKind::InvalidData)?;
        to.write_all(&line).await?;
        if size == 0 {
            break;
        }
        if tokio::io::copy(&mut (&mut *from).take(size), to).await? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut end = [0; 2];
        from.read_exact(&mut end).await?;
        if end != *b"\r\n" {
            return Err(io::ErrorKind::InvalidData.into());
        }
        to.write_all(&end).await?;
    }
    let mut room = LINE;
    loop {
        let line = line(from).await?;
        to.write_all(&line).await?;
        if line == b"\r\n" {
            return to.flush().await;
        }
        room = room.checked_sub(line.len() as u64).ok_or(io::ErrorKind::InvalidData)?;
    }
}

/// A line with the end that a line has to have.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE).read_until(b'\n', &mut line).await?;
    let whole = line.ends_with(b"\r\n") && !line[..line.len() - 2].contains(&b'\r');
    if whole { Ok(line) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Answers in the proxy's own name, and ends the connection.
async fn answer(stream: &mut TcpStream, status: u16, why: &str) -> io::Result<()> {
    // Most programs show no more of a refused CONNECT than its first line.
    let line: String = why.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(300).collect();
    let login = if status == 407 { "Proxy-Authenticate: Basic realm=\"cocode\"\r\n" } else { "" };
    let text = format!(
        "HTTP/1.1 {status} {line}\r\n{login}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\ncocode: {why}\n",
        why.len() + "cocode: \n".len()
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with bytes unread would reset the connection, and the client might not see the answer.
    let mut rest = [0; 4096];
    let drain = async { while matches!(stream.read(&mut rest).await, Ok(1..)) {} };
    let _ = timeout(std::time::Duration::from_secs(1), drain).await;
    Ok(())
}
