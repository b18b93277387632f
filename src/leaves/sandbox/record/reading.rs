//! What a call says beside its paths, in numbers and in structures of its program.

use std::ffi::CString;
use std::io;

use libc::timespec;
use rustix::io::Errno;

use super::calls::{Change, Times};
use super::filter::NATIVE;
use super::hand::Setting;
use super::notify::Waiting;
use super::supervisor::Halt;

/// Longest name and value of an attribute, with the end of the name.
const LONGEST_NAME: usize = 256;
const LONGEST_VALUE: u64 = 1 << 16;
/// `utimensat` of 32-bit programs that takes times of 64 bits, and the call that takes a length of 64 bits in two.
const WIDE_TIMES: i32 = 412;
const WIDE_LENGTH: i32 = 193;
/// Commands that take a number, as 64-bit programs say them, and one that takes a structure.
const NUMBERED: [u32; 2] = [0x4008_6602, 0x4008_7602];
const STRUCTURED: u32 = 0x401c_5820;

impl Waiting {
    fn is_native(&self) -> bool {
        Some(self.arch) == NATIVE
    }

    /// Flags, mode and what `openat2` lets the path do; what a newer kernel adds is not known.
    pub(super) fn how(&self, address: u64) -> Result<[u64; 3], Halt> {
        let mut how = [0; 24];
        if self.program.read(address, &mut how)? < how.len() || self.arguments[3] != 24 {
            return Err(Halt::Missing);
        }
        Ok([0, 8, 16].map(|at| how[at..].first_chunk().map_or(0, |part| u64::from_ne_bytes(*part))))
    }

    /// The length of a file in this argument. A program may set no greater one than it may write.
    pub(super) fn length(&self, at: usize) -> Result<i64, Halt> {
        let length = match (self.is_native(), self.number) {
            (true, _) => self.arguments[at].cast_signed(),
            (false, WIDE_LENGTH) => (self.arguments[at] & 0xffff_ffff | self.arguments[at + 1] << 32).cast_signed(),
            (false, _) => (self.arguments[at] as i32).into(),
        };
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the limit lives through the call, which sets nothing.
        unsafe {
            let thread = self.program.thread.cast_signed();
            libc::prlimit(thread, libc::RLIMIT_FSIZE, std::ptr::null(), &raw mut limit);
        }
        match u64::try_from(length).is_ok_and(|length| length > limit.rlim_cur) {
            true => Err(Halt::Fails(Errno::FBIG)),
            false => Ok(length),
        }
    }

    /// What a command to an open file sets.
    pub(super) fn flags(&self) -> Result<Setting, Halt> {
        // Of 32-bit programs the number tells the size of theirs, which the kernel never looks at.
        let command = match self.arguments[1] as u32 {
            command @ (0x4004_6602 | 0x4004_7602) => command + 0x4_0000,
            command => command,
        };
        let length = match command {
            STRUCTURED => 28,
            command if NUMBERED.contains(&command) => 4,
            _ => return Err(Halt::Fails(Errno::NOTTY)),
        };
        let mut bytes = vec![0; length];
        match self.program.read(self.arguments[2], &mut bytes)? == length {
            true => Ok(Setting::Flags { command, bytes }),
            false => Err(Halt::Fails(Errno::FAULT)),
        }
    }

    /// What is set on a file.
    pub(super) fn setting(&self, change: Change) -> Result<Setting, Halt> {
        let number = |at: usize| self.arguments[at] as u32;
        let short = |at: usize| match self.arguments[at] as u16 {
            u16::MAX => u32::MAX,
            id => id.into(),
        };
        Ok(match change {
            Change::Mode(at) => Setting::Mode(number(at)),
            Change::Owner(at) => Setting::Owner(number(at), number(at + 1)),
            Change::OwnerShort(at) => Setting::Owner(short(at), short(at + 1)),
            Change::Times(form, at) => Setting::Times(self.times(form, self.arguments[at])?),
            Change::NoAttribute(at) => Setting::NoAttribute { name: self.name(at)? },
            Change::Attribute(at) => {
                let length = self.arguments[at + 2];
                if length > LONGEST_VALUE {
                    return Err(Halt::Fails(Errno::TOOBIG));
                }
                let mut value = vec![0; usize::try_from(length).unwrap_or(0)];
                if !value.is_empty() && self.program.read(self.arguments[at + 1], &mut value)? < value.len() {
                    return Err(Halt::Fails(Errno::FAULT));
                }
                Setting::Attribute { name: self.name(at)?, value, flags: self.arguments[at + 3] as i32 }
            }
            Change::Newer => return Err(Halt::Beyond("a program that changes attributes by a new call")),
        })
    }

    fn name(&self, at: usize) -> Result<CString, Halt> {
        let name = self.program.text(self.arguments[at])?;
        if name.len() >= LONGEST_NAME {
            return Err(Halt::Fails(Errno::RANGE));
        }
        Ok(CString::new(name).map_err(io::Error::other)?)
    }

    /// The times of a call; none: now.
    fn times(&self, form: Times, address: u64) -> Result<Option<[timespec; 2]>, Halt> {
        if address == 0 {
            return Ok(None);
        }
        let wide = self.is_native() || self.number == WIDE_TIMES;
        let width = if wide { 8 } else { 4 };
        let count = if form == Times::Seconds { 2 } else { 4 };
        let mut bytes = vec![0; width * count];
        if self.program.read(address, &mut bytes)? < bytes.len() {
            return Err(Halt::Fails(Errno::FAULT));
        }
        let number = |at: usize| match wide {
            true => bytes[at * 8..].first_chunk().map_or(0, |part| i64::from_ne_bytes(*part)),
            false => bytes[at * 4..].first_chunk().map_or(0, |part| i32::from_ne_bytes(*part).into()),
        };
        let time = |at: usize| match form {
            Times::Seconds => Ok(timespec { tv_sec: number(at), tv_nsec: 0 }),
            Times::Nanoseconds => Ok(timespec { tv_sec: number(2 * at), tv_nsec: number(2 * at + 1) }),
            Times::Microseconds => match number(2 * at + 1) {
                micros @ 0..1_000_000 => Ok(timespec { tv_sec: number(2 * at), tv_nsec: micros * 1000 }),
                _ => Err(Halt::Fails(Errno::INVAL)),
            },
        };
        Ok(Some([time(0)?, time(1)?]))
    }
}
