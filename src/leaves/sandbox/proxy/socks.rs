//! SOCKS5 (RFC 1928) with a name and a password (RFC 1929), and of its commands CONNECT alone.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::door::Refusal;
use super::{Holder, Room, Shared, door, relay};
use crate::stdx::host::Host;

pub(super) const VERSION: u8 = 5;

const WITH_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const LOGIN: u8 = 1;

/// What it answers to a request.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Granted = 0,
    Failed = 1,
    NotAllowed = 2,
    Unreachable = 4,
    TooSlow = 6,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

/// Serves one connection, whose version was read.
pub(super) async fn serve(mut stream: TcpStream, shared: &Shared, room: Room) -> io::Result<()> {
    let asked = timeout(shared.limits.head, request(&mut stream, shared)).await.map_err(|_| io::ErrorKind::TimedOut)?;
    let Some((holder, host, port)) = asked? else { return stream.shutdown().await };
    let Some(_room) = room.enter() else { return reply(&mut stream, Reply::Failed).await };
    let mut alive = holder.alive.clone();
    let opened = tokio::select! {
        opened = door::open(&holder, host, port, shared) => opened,
        _ = alive.changed() => return Ok(()),
    };
    match opened {
        Ok(server) => {
            reply(&mut stream, Reply::Granted).await?;
            relay(stream, server, holder).await
        }
        Err(refusal) => {
            let code = match refusal {
                Refusal::Denied(_) => Reply::NotAllowed,
                Refusal::Unreachable(_) => Reply::Unreachable,
                Refusal::TooSlow(_) => Reply::TooSlow,
            };
            reply(&mut stream, code).await?;
            stream.shutdown().await
        }
    }
}

/// What a client with a pass wants; none when it was told that it gets nothing.
async fn request(stream: &mut TcpStream, shared: &Shared) -> io::Result<Option<(Holder, Host, u16)>> {
    let methods = counted(stream).await?;
    let method = if methods.contains(&WITH_PASSWORD) { WITH_PASSWORD } else { NO_METHOD };
    stream.write_all(&[VERSION, method]).await?;
    if method == NO_METHOD || stream.read_u8().await? != LOGIN {
        return Ok(None);
    }
    let (user, word) = (counted(stream).await?, counted(stream).await?);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_default();
    let holder = shared.holder(&text(user), &text(word));
    stream.write_all(&[LOGIN, u8::from(holder.is_none())]).await?;
    let Some(holder) = holder else { return Ok(None) };
    let mut start = [0; 4];
    stream.read_exact(&mut start).await?;
    let [version, command, _, kind] = start;
    if version != VERSION {
        return Ok(None);
    }
    let host = match kind {
        1 => Some(Host::of_ip(Ipv4Addr::from(stream.read_u32().await?).into())),
        3 => Host::parse(&text(counted(stream).await?)),
        4 => Some(Host::of_ip(Ipv6Addr::from(stream.read_u128().await?).into())),
        _ => None,
    };
    let Some(host) = host else {
        reply(stream, Reply::NoSuchAddress).await?;
        return Ok(None);
    };
    let port = stream.read_u16().await?;
    if command != 1 || port == 0 {
        reply(stream, if command == 1 { Reply::NoSuchAddress } else { Reply::NoSuchCommand }).await?;
        return Ok(None);
    }
    Ok(Some((holder, host, port)))
}

/// A byte with a count, and so many bytes.
async fn counted(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn reply(stream: &mut TcpStream, code: Reply) -> io::Result<()> {
    // The address that it would connect from is nobody's business.
    stream.write_all(&[VERSION, code as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
