//! Starts a program on Linux: a child that borrows our memory until it runs its program, as in `posix_spawn`, and does before
//! that what `posix_spawn` cannot.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::ptr;

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::stdx::programs;

/// Size of the child's stack until it runs its program, in 16 bytes: some calls deep, no recursion.
const STACK: usize = 4096;

/// A program as the system wants it.
#[derive(Debug)]
pub struct Program {
    pub path: CString,
    /// With the name that it is called by.
    pub arguments: Vec<CString>,
    /// `NAME=value`.
    pub environment: Vec<CString>,
    /// None: ours.
    pub folder: Option<CString>,
}

impl Program {
    /// What a command runs. Its streams do not count.
    ///
    /// # Errors
    /// There is no such program, or a text holds a zero byte.
    pub fn of(command: &Command) -> io::Result<Program> {
        let environment = environment(command);
        let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let path = cstring(programs::find(command.get_program(), path)?.as_os_str())?;
        let arguments = std::iter::once(command.get_program()).chain(command.get_args());
        let variable = |(mut entry, value): (OsString, OsString)| {
            entry.push("=");
            entry.push(value);
            cstring(&entry)
        };
        Ok(Program {
            path,
            arguments: arguments.map(cstring).collect::<io::Result<_>>()?,
            environment: environment.into_iter().map(variable).collect::<io::Result<_>>()?,
            folder: command.get_current_dir().map(|folder| cstring(folder.as_os_str())).transpose()?,
        })
    }
}

/// The descriptors of a child, as they are here; what else is open here is closed there.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// Its standard input, output and error output.
    pub streams: [RawFd; 3],
    /// One more, and the number that it has there.
    pub kept: Option<(RawFd, RawFd)>,
}

/// What else holds for a child.
#[derive(Debug, Clone, Copy)]
pub struct Bonds<'a> {
    /// Ends with the thread that starts it.
    pub with_us: bool,
    /// The limit that marks its tree.
    pub mark: Option<u64>,
    /// What it gives up before it runs its program.
    pub confined: Option<&'a Confined>,
    /// What it joins right before that.
    pub joined: Option<&'a dyn Join>,
}

/// Something that a child becomes part of before it runs its program.
pub trait Join: std::fmt::Debug {
    /// Called in the child, on the memory of the one who starts it: it must not allocate.
    fn join(&self);
}

/// What a child gives up for good, prepared: it can only ask the kernel for it.
#[derive(Debug, Default)]
pub struct Confined {
    /// A Landlock ruleset.
    pub ruleset: Option<RawFd>,
    /// A filter of system calls.
    pub filter: Vec<libc::sock_filter>,
    /// The capabilities that it keeps if it has them, as bits: root is not everything in there.
    pub capabilities: u64,
}

impl Confined {
    /// Puts all but the filter on this thread.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn put_on(&self) -> io::Result<()> {
        // SAFETY: asks the kernel for what it does to this thread only.
        if unsafe { self.give_up() } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The same; below zero where that fails. Allocates nothing.
    ///
    /// # Safety
    /// What else runs on the thread must do without what it gives up.
    unsafe fn give_up(&self) -> libc::c_long {
        // SAFETY: numbers only.
        unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || keep_capabilities(self.capabilities) < 0 {
                return -1;
            }
            self.ruleset.map_or(0, |ruleset| libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0))
        }
    }
}

/// What the child does before it runs its program. Made before it starts: it must not allocate.
struct Plan<'a> {
    path: &'a CStr,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    folder: Option<&'a CStr>,
    ends: Ends,
    bonds: Bonds<'a>,
    /// Why the program does not run.
    error: c_int,
    /// It was refused its confinement.
    unconfined: bool,
}

/// Starts a program in a session of its own.
///
/// # Errors
/// What the system says: no such program, no such folder, arguments too long.
pub fn start(program: &Program, ends: Ends, bonds: Bonds<'_>) -> io::Result<Pid> {
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
    let mut plan = Plan {
        path: &program.path,
        arguments: pointers(&program.arguments),
        environment: pointers(&program.environment),
        folder: program.folder.as_deref(),
        ends,
        bonds,
        error: 0,
        unconfined: false,
    };
    let mut stack = Vec::<u128>::with_capacity(STACK);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack and the plan outlive the call, which returns when the child has its own memory or is gone. Every
    // signal is blocked meanwhile, so that no handler of ours runs in the child, in our memory.
    let pid = unsafe {
        let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        let top = stack.as_mut_ptr().add(STACK).cast::<c_void>();
        let pid = libc::clone(child, top, flags, (&raw mut plan).cast());
        let started = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        started
    }?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system started a process without a number"))?;
    // SAFETY: the child has written both, if anybody, and the compiler knows nothing of the child.
    let (error, unconfined) =
        unsafe { (ptr::read_volatile(&raw const plan.error), ptr::read_volatile(&raw const plan.unconfined)) };
    if error == 0 {
        return Ok(pid);
    }
    let _ = waitpid(Some(pid), WaitOptions::empty());
    let error = io::Error::from_raw_os_error(error);
    Err(if unconfined { io::Error::other(format!("the kernel refused the sandbox: {error}")) } else { error })
}

/// What runs in the child, on our memory, while the thread that started it is suspended.
extern "C" fn child(plan: *mut c_void) -> c_int {
    // SAFETY: the starting thread passes its plan and waits. Only calls follow that are allowed after a fork.
    unsafe {
        let plan = plan.cast::<Plan<'_>>();
        let (error, unconfined) = match become_program(&*plan) {
            Refused::Started(error) => (error, false),
            Refused::Confined(error) => (error, true),
        };
        ptr::write_volatile(&raw mut (*plan).unconfined, unconfined);
        ptr::write_volatile(&raw mut (*plan).error, error);
        libc::_exit(127)
    }
}

/// What did not work, by its error number.
enum Refused {
    Started(c_int),
    Confined(c_int),
}

/// Runs the program; returns why that failed.
///
/// # Safety
/// Only in a child, with all signals blocked.
unsafe fn become_program(plan: &Plan<'_>) -> Refused {
    macro_rules! done {
        ($call:expr) => {
            done!($call, Started)
        };
        ($call:expr, $refused:ident) => {
            if $call < 0 {
                return Refused::$refused(*libc::__errno_location());
            }
        };
    }
    // SAFETY: pointers are to what the plan owns; both lists end with a null pointer.
    unsafe {
        usual_signals();
        done!(libc::setsid());
        if plan.bonds.with_us {
            // With the thread that started it, so at the latest with us, however we end.
            done!(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL));
        }
        if let Some(mark) = plan.bonds.mark {
            let mark = libc::rlimit { rlim_cur: mark as libc::rlim_t, rlim_max: mark as libc::rlim_t };
            done!(libc::setrlimit(libc::RLIMIT_LOCKS, &raw const mark));
        }
        if let Some(folder) = plan.folder {
            done!(libc::chdir(folder.as_ptr()));
        }
        if let Some(confined) = plan.bonds.confined {
            done!(confined.give_up(), Confined);
            // A filter may forbid what joining takes.
            join(plan.bonds.joined);
            let filter = &confined.filter;
            if !filter.is_empty() {
                let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
                done!(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program), Confined);
            }
        } else {
            join(plan.bonds.joined);
        }
        // Last, since one of these numbers may be that of the ruleset, or of what it is joined by.
        let mut streams = plan.ends.streams;
        if let Some((kept, number)) = plan.ends.kept {
            for stream in &mut streams {
                if *stream == number && kept != number {
                    *stream = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3);
                    done!(*stream);
                }
            }
            if kept == number {
                done!(libc::fcntl(kept, libc::F_SETFD, 0));
            } else {
                done!(libc::dup2(kept, number));
            }
        }
        for (target, stream) in (0..).zip(streams) {
            done!(libc::dup2(stream, target));
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        libc::execve(plan.path.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
        Refused::Started(*libc::__errno_location())
    }
}

fn join(joined: Option<&dyn Join>) {
    if let Some(joined) = joined {
        joined.join();
    }
}

/// Gives up all capabilities but these, on this thread and for all programs that follow; below zero where that fails.
///
/// # Safety
/// What else runs on the thread must do without them.
unsafe fn keep_capabilities(kept: u64) -> libc::c_long {
    /// The second of its forms that hold 64 of them.
    const VERSION: u32 = 0x2008_0522;

    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }

    // SAFETY: header and sets live through the calls, and are of the sizes that the version says.
    unsafe {
        let header = Header { version: VERSION, pid: 0 };
        // Effective, permitted and inheritable ones, the lower half first.
        let mut sets = [[0_u32; 3]; 2];
        if libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) < 0 {
            return -1;
        }
        // Who has none gains none: no new privileges.
        if sets.iter().flatten().all(|set| *set == 0) {
            return 0;
        }
        for (set, kept) in sets.iter_mut().zip([kept as u32, (kept >> 32) as u32]) {
            *set = [set[0] & kept, set[1] & kept, 0];
        }
        // What the kernel does not know ends the list; without the right to, root still gains nothing.
        for number in (0..64).filter(|number| kept & 1 << number == 0) {
            libc::prctl(libc::PR_CAPBSET_DROP, number as libc::c_ulong, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr())
    }
}

/// Takes our handlers away, and lets a closed pipe end the program, which we ignore.
///
/// # Safety
/// Only in a child.
unsafe fn usual_signals() {
    for signal in 1..=64 {
        // SAFETY: both values live through the calls; numbers that are not a signal are refused.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            if libc::sigaction(signal, ptr::null(), &raw mut action) != 0 || action.sa_sigaction == libc::SIG_DFL {
                continue;
            }
            if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// What the child gets: our variables with the command's changes.
fn environment(command: &Command) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => environment.insert(name.to_owned(), value.to_owned()),
            None => environment.remove(name),
        };
    }
    environment
}

fn cstring(text: &OsStr) -> io::Result<CString> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "a zero byte cannot be handed to a program");
    // What the library's `Command` puts in the place of a text with a zero byte.
    if text == "<string-with-nul>" {
        return Err(refused());
    }
    CString::new(text.as_bytes()).map_err(|_| refused())
}
