//! What goes between us and the helper: JSON behind its length, and descriptors beside it.

use std::ffi::{CString, OsStr};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Effect, Policy, PutBack};
use crate::stdx::path_text;
use crate::stdx::process::start::Program;

/// Most descriptors beside one message.
pub(super) const DESCRIPTORS: usize = 8;
/// Longest message, in bytes: more than any kernel takes as arguments and environment.
const LONGEST: usize = 64 << 20;

/// A command that the helper is to run. Its streams come beside it: input, output, error output, and perhaps one more. What
/// it is given need not be UTF-8, as paths need not.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(with = "path_text")]
    program: PathBuf,
    #[serde(with = "path_text::list")]
    arguments: Vec<PathBuf>,
    #[serde(with = "path_text::list")]
    environment: Vec<PathBuf>,
    /// None: ours.
    #[serde(with = "path_text::list")]
    folder: Vec<PathBuf>,
    /// The number that the fourth descriptor has there.
    pub(super) kept: Option<RawFd>,
    pub(super) policy: Policy,
}

impl Request {
    pub(super) fn new(program: &Program, kept: Option<RawFd>, policy: Policy) -> Request {
        let text = |text: &CString| PathBuf::from(OsStr::from_bytes(text.as_bytes()));
        Request {
            program: text(&program.path),
            arguments: program.arguments.iter().map(text).collect(),
            environment: program.environment.iter().map(text).collect(),
            folder: program.folder.iter().map(text).collect(),
            kept,
            policy,
        }
    }

    pub(super) fn program(&self) -> io::Result<Program> {
        let text = |text: &PathBuf| CString::new(text.as_os_str().as_bytes()).map_err(io::Error::other);
        Ok(Program {
            path: text(&self.program)?,
            arguments: self.arguments.iter().map(text).collect::<io::Result<_>>()?,
            environment: self.environment.iter().map(text).collect::<io::Result<_>>()?,
            folder: self.folder.first().map(text).transpose()?,
        })
    }
}

/// What the helper says of its command.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// Under this number.
    Started(u32),
    /// It was not started, and why.
    Failed {
        os: Option<i32>,
        text: String,
    },
    Effect(Effect),
    /// There is no room to save what it is about to change there: it waits for an answer.
    Full(#[serde(with = "path_text")] std::path::PathBuf),
    /// The last, where something was saved: what the command had changed of it.
    PutBack(PutBack),
    /// As `waitpid` tells it.
    Ended(i32),
}

impl Reply {
    pub(super) fn failed(error: &io::Error) -> Reply {
        Reply::Failed { os: error.raw_os_error(), text: error.to_string() }
    }
}

/// The bytes of a message.
pub(super) fn message(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Takes the first whole message out of what was read so far.
pub(super) fn take<T: DeserializeOwned>(read: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(length) = read.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) else { return Ok(None) };
    if length > LONGEST {
        return Err(io::Error::other("a message without end"));
    }
    let Some(body) = read.get(4..4 + length) else { return Ok(None) };
    let value = serde_json::from_slice(body)?;
    read.drain(..4 + length);
    Ok(Some(value))
}

/// Room for the descriptors of one message, aligned as their header wants it.
type Beside = [MaybeUninit<u64>; 16];

/// Sends bytes, and descriptors beside the first of them; how many bytes were taken.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
    let mut beside: Beside = [MaybeUninit::zeroed(); 16];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all that the header points to lives through the call; the room holds `DESCRIPTORS` and their header.
    let sent = unsafe {
        let mut header = MaybeUninit::<libc::msghdr>::zeroed().assume_init();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let size = size_of::<RawFd>() * descriptors.len().min(DESCRIPTORS);
            header.msg_control = beside.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size as u32) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size as u32) as _;
            std::ptr::copy_nonoverlapping(descriptors.as_ptr().cast::<u8>(), libc::CMSG_DATA(first), size);
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives what is there, at most a buffer full, waiting for the first byte; zero at the end.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut beside: Beside = [MaybeUninit::zeroed(); 16];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut descriptors = Vec::new();
    // SAFETY: as above; the kernel says how many descriptors it wrote, and nobody else owns them.
    let count = unsafe {
        let mut header = MaybeUninit::<libc::msghdr>::zeroed().assume_init();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = beside.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE((size_of::<RawFd>() * DESCRIPTORS) as u32) as _;
        let count = loop {
            let count = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC);
            if count >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break count;
            }
        };
        let mut next = if count < 0 { std::ptr::null_mut() } else { libc::CMSG_FIRSTHDR(&raw const header) };
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_RIGHTS {
                let size = (*next).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for at in 0..size / size_of::<RawFd>() {
                    let number = libc::CMSG_DATA(next).cast::<RawFd>().add(at).read_unaligned();
                    descriptors.push(OwnedFd::from_raw_fd(number));
                }
            }
            next = libc::CMSG_NXTHDR(&raw const header, next);
        }
        count
    };
    Ok((usize::try_from(count).map_err(|_| io::Error::last_os_error())?, descriptors))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::stdx::process::pair;

    #[test]
    fn any_bytes_come_back() {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap();
        let odd = [&b"plain"[..], "überall".as_bytes(), b"\xff\xfe/x", b"", b"a\xc3"].map(text);
        for folder in [None, Some(text(b"/\xff"))] {
            let program = Program { path: odd[2].clone(), arguments: odd.to_vec(), environment: odd.to_vec(), folder };
            let mut bytes = message(&Request::new(&program, Some(4), Policy::free())).unwrap();
            let back = take::<Request>(&mut bytes).unwrap().unwrap().program().unwrap();
            assert_eq!(format!("{back:?}"), format!("{program:?}"));
        }
    }

    #[test]
    fn messages_and_descriptors_arrive() {
        let (here, there) = pair(libc::SOCK_STREAM).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let bytes = message(&Reply::Started(7)).unwrap();
        let sent = send(here.as_fd(), &bytes[..3], &[reader.as_raw_fd(), writer.as_raw_fd()]).unwrap();
        assert_eq!(sent, 3);
        send(here.as_fd(), &bytes[3..], &[]).unwrap();
        let mut read = vec![0; 100];
        let (count, descriptors) = receive(there.as_fd(), &mut read).unwrap();
        assert_eq!((count, descriptors.len()), (3, 2));
        read.truncate(count);
        assert_eq!(take::<Reply>(&mut read).unwrap(), None);
        let mut rest = vec![0; 100];
        let (count, descriptors) = receive(there.as_fd(), &mut rest).unwrap();
        assert_eq!(descriptors.len(), 0);
        read.extend(&rest[..count]);
        assert_eq!(take(&mut read).unwrap(), Some(Reply::Started(7)));
        assert_eq!(read, Vec::<u8>::new());
        drop(here);
        assert_eq!(receive(there.as_fd(), &mut rest).unwrap().0, 0);
    }
}
