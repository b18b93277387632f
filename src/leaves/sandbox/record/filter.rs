//! The program that the kernel runs at every system call: lets through what only reads, at no cost, and holds what may change
//! a file until the supervisor has answered.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_long, c_uint, c_ulong, sock_filter};

use super::calls::{self, Call, Deed, Flags};

/// How the kernel calls the programs of this machine, where we know its calls.
pub(super) const NATIVE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// How it calls 32-bit programs that we know.
const COMPAT: Option<u32> = if cfg!(target_arch = "x86_64") { Some(0x4000_0003) } else { None };

/// In the numbers of calls of a third kind of program, which nobody has anymore.
const X32: u32 = 0x4000_0000;

/// Offsets in what a filter looks at.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// An open with one of these flags may change something.
const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC).cast_unsigned();

/// A filter, made before a fork so that nothing is allocated after it.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<sock_filter>,
}

impl Filter {
    /// None: nobody knows the system calls of this machine.
    pub(super) fn new() -> Option<Filter> {
        let native = NATIVE?;
        let mut program = vec![load(ARCH)];
        let own: Vec<sock_filter> = {
            let mut part = vec![load(NUMBER)];
            if cfg!(target_arch = "x86_64") {
                part.extend([jump(libc::BPF_JGE, X32, 0, 1), refuse(libc::ENOSYS)]);
            }
            part.extend([jump(libc::BPF_JGT, calls::NEWEST, 0, 1), refuse(libc::ENOSYS)]);
            part.extend(calls::native().flat_map(|call| held(call.native, call.deed)));
            part.extend(calls::DENIED.iter().flat_map(|number| denied(*number)));
            part.push(allow());
            part
        };
        section(&mut program, native, own);
        if let Some(compat) = COMPAT {
            let mut part = vec![load(NUMBER), jump(libc::BPF_JGT, calls::NEWEST, 0, 1), refuse(libc::ENOSYS)];
            let numbers = calls::compat().map(|(number, deed)| Call { native: number.into(), compat: None, deed });
            part.extend(numbers.flat_map(|call| held(call.native, call.deed)));
            part.extend(calls::DENIED_COMPAT.iter().flat_map(|number| denied((*number).into())));
            part.push(allow());
            section(&mut program, compat, part);
        }
        program.push(refuse(libc::ENOSYS));
        Some(Filter { program })
    }

    /// Puts the filter on this thread, and on everything that it runs from here on. For between fork and exec: allocates
    /// nothing. Returns the descriptor on which the supervisor hears of calls.
    ///
    /// # Errors
    /// What the kernel says: `EBUSY` where something else supervises already, `EINVAL` or `ENOSYS` where it cannot.
    pub(super) fn install(&self) -> io::Result<RawFd> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            filter: self.program.as_ptr().cast_mut(),
        };
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // With the second flag, of Linux 5.19, a signal waits for the answer: a program that gets many would begin its call
        // again and again.
        let mut found = seccomp(flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
        if found.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EACCES)) {
            // SAFETY: sets a flag of this process.
            if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
            found = seccomp(flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
        }
        match found {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => seccomp(flags, &program),
            found => found,
        }
    }

    /// `install`, then hands the descriptor to the other end of a socket pair and closes it here: the program that is run
    /// must not have it. Ends this process where it cannot be sent: nobody would answer the calls of the program.
    ///
    /// # Errors
    /// As `install`.
    pub(super) fn install_and_send(&self, socket: RawFd) -> io::Result<()> {
        let listener = self.install()?;
        let sent = send(socket, listener);
        // SAFETY: the descriptor is ours, and nothing else knows its number; a child may end at any time.
        unsafe {
            libc::close(listener);
            if sent.is_err() {
                libc::_exit(UNSENT);
            }
        }
        Ok(())
    }
}

/// Whether a program that was heard waits for its answer, whatever signals come: Linux 5.19. Without that a call that was made for
/// it could be made again.
pub(super) fn waits_for_answers() -> bool {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: without a program the kernel looks at the flags, and does nothing.
    let done = unsafe {
        let none = std::ptr::null::<libc::sock_fprog>();
        libc::syscall(libc::SYS_seccomp, c_ulong::from(libc::SECCOMP_SET_MODE_FILTER), flags, none)
    };
    done < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

fn seccomp(flags: c_ulong, program: &libc::sock_fprog) -> io::Result<RawFd> {
    // SAFETY: the program outlives the call, which copies it.
    let fd = unsafe {
        libc::syscall(libc::SYS_seccomp, c_ulong::from(libc::SECCOMP_SET_MODE_FILTER), flags, &raw const *program)
    };
    match fd {
        0.. => RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Room for one descriptor, as control data wants it.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Sends a descriptor. Allocates nothing.
fn send(socket: RawFd, fd: RawFd) -> io::Result<()> {
    let (mut byte, mut control) = ([0_u8; 1], Control([0; 24]));
    let mut piece = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: the message points to values that live through the call, and the control data has room for one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(SIZE) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(SIZE) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(fd);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes of a descriptor's number.
const SIZE: c_uint = size_of::<c_int>() as c_uint;

/// Exit code where it could not be sent.
const UNSENT: c_int = 126;

/// Takes the descriptor that `install_and_send` sent.
///
/// # Errors
/// What the system says; `UnexpectedEof` where the child ended before it sent one.
pub(super) fn receive(socket: &impl AsRawFd) -> io::Result<OwnedFd> {
    let (mut byte, mut control) = ([0_u8; 1], Control([0; 24]));
    let mut piece = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: as for `send`; a descriptor that came is nobody else's.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<c_int>().read_unaligned()))
    }
}

/// Runs a part for one kind of program only.
fn section(program: &mut Vec<sock_filter>, arch: u32, part: Vec<sock_filter>) {
    let over = u32::try_from(part.len()).unwrap_or(u32::MAX);
    program.extend([jump(libc::BPF_JEQ, arch, 1, 0), code(libc::BPF_JMP | libc::BPF_JA, over)]);
    program.extend(part);
}

/// Holds a call by its number; an open only if its flags may change something.
fn held(number: c_long, deed: Deed) -> Vec<sock_filter> {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    match deed {
        Deed::Open { flags: Flags::In(argument), .. } => vec![
            jump(libc::BPF_JEQ, number, 0, 4),
            load(ARGUMENTS + 8 * u32::try_from(argument).unwrap_or(0)),
            jump(libc::BPF_JSET, WRITES, 0, 1),
            hold(),
            allow(),
        ],
        Deed::Command => {
            let is = |command: u32, then: sock_filter| [jump(libc::BPF_JEQ, command, 0, 1), then];
            let mut rest = vec![load(ARGUMENTS + 8)];
            rest.extend(calls::ALTERING.iter().chain(&calls::BY_NUMBER).flat_map(|command| is(*command, hold())));
            rest.extend(calls::HARMLESS.iter().flat_map(|command| is(*command, allow())));
            rest.push(code(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xff00));
            rest.extend(calls::OF_TREES.iter().flat_map(|own| is(own << 8, hold())));
            rest.push(allow());
            let over = u8::try_from(rest.len()).unwrap_or(u8::MAX);
            let mut part = vec![jump(libc::BPF_JEQ, number, 0, over)];
            part.extend(rest);
            part
        }
        _ => vec![jump(libc::BPF_JEQ, number, 0, 1), hold()],
    }
}

fn denied(number: c_long) -> [sock_filter; 2] {
    [jump(libc::BPF_JEQ, u32::try_from(number).unwrap_or(u32::MAX), 0, 1), refuse(libc::ENOSYS)]
}

fn code(code: u32, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: 0, jf: 0, k }
}

fn load(offset: u32) -> sock_filter {
    code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn jump(test: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { jt, jf, ..code(libc::BPF_JMP | test | libc::BPF_K, k) }
}

fn hold() -> sock_filter {
    code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF)
}

fn allow() -> sock_filter {
    code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW)
}

fn refuse(errno: c_int) -> sock_filter {
    code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())
}
