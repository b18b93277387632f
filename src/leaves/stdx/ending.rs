//! The signals that end the program: passed to the code that can end it cleanly, and enforced if that takes too long, for
//! example because a write waits forever for a terminal that nobody reads.

use std::io;
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::process;

/// How long the program may take to end by itself. With all that has to be done after it, less than a second.
const GRACE: Duration = Duration::from_millis(600);

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Interrupt,
    Terminate,
    Hangup,
    Quit,
    Abort,
}

impl Ending {
    const ALL: [Ending; 5] = [Ending::Interrupt, Ending::Terminate, Ending::Hangup, Ending::Quit, Ending::Abort];

    fn of(signal: u8) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.signal().as_raw() == i32::from(signal))
    }

    fn signal(self) -> Signal {
        match self {
            Ending::Interrupt => Signal::INT,
            Ending::Terminate => Signal::TERM,
            Ending::Hangup => Signal::HUP,
            Ending::Quit => Signal::QUIT,
            Ending::Abort => Signal::ABORT,
        }
    }

    /// Whether it wants a core file: the program dies of it, and nobody is told before.
    fn dumps(self) -> bool {
        matches!(self, Ending::Quit | Ending::Abort)
    }

    /// What the program exits with, by custom.
    pub fn code(self) -> u8 {
        match self {
            Ending::Hangup => 129,
            Ending::Interrupt => 130,
            Ending::Quit => 131,
            Ending::Abort => 134,
            Ending::Terminate => 143,
        }
    }
}

/// Where the handler says which signal came.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// What gives back what must be given back, for the handler of an abort.
static LET_GO: OnceLock<fn()> = OnceLock::new();

/// From now on the signals that end a program are told. If it has not ended within the grace after the first, `let_go` gives
/// back what must be given back, which may not wait for anybody; then all processes that were started are ended, and so are
/// we. A signal that our parent switched off (`nohup`) stays off. Call it once.
///
/// # Errors
/// When the system gives no pipe or no thread.
pub fn watch(mut tell: impl FnMut(Ending) + Send + 'static, let_go: fn()) -> io::Result<()> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // The handler must never wait.
    rustix::io::ioctl_fionbio(&writer, true)?;
    let watch = move || {
        let mut until: Option<(Instant, Ending)> = None;
        loop {
            let came = read(&reader, until.map(|(until, _)| until));
            match (came.and_then(Ending::of), until) {
                (Some(ending), _) if ending.dumps() => force(ending, let_go),
                (Some(ending), _) => {
                    until.get_or_insert((Instant::now() + GRACE, ending));
                    tell(ending);
                }
                (None, Some((_, ending))) => force(ending, let_go),
                (None, None) => {}
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).stack_size(256 * 1024).spawn(watch)?;
    // For the handlers, to the end of the process.
    LET_GO.get_or_init(|| let_go);
    WAKE.store(writer.into_raw_fd(), Ordering::Release);
    for ending in Ending::ALL {
        handle(ending.signal().as_raw(), if ending == Ending::Abort { on_abort } else { on_signal })?;
    }
    Ok(())
}

/// The next signal, or `None` if none arrived until then.
fn read(pipe: impl AsFd, until: Option<Instant>) -> Option<u8> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            // Not to be expected; without the pipe there is no telling.
            Err(_) => return None,
        }
        let mut byte = [0];
        if let Ok(1) = rustix::io::read(&pipe, &mut byte) {
            return Some(byte[0]);
        }
    }
}

/// Ends everything at once, asking nobody.
fn force(ending: Ending, let_go: fn()) -> ! {
    process::begin_nothing();
    let_go();
    process::end_all();
    if ending.dumps() {
        die_of(ending.signal().as_raw());
    }
    // SAFETY: ends the process; nothing is run that could wait.
    unsafe { libc::_exit(ending.code().into()) }
}

/// Ends this process by a signal, as if it had never been handled.
fn die_of(signal: i32) {
    // SAFETY: resets one signal and sends it to this thread; all of it is allowed in a handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Handles a signal, unless it is switched off. Only what is allowed in a handler may be called from it.
fn handle(signal: i32, handler: extern "C" fn(i32)) -> io::Result<()> {
    // SAFETY: both values live through the calls; the handler is a plain function.
    unsafe {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(signal, std::ptr::null(), &raw mut action) != 0 {
            return Err(io::Error::last_os_error());
        }
        if action.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(signal, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_signal(signal: i32) {
    let byte = [u8::try_from(signal).unwrap_or_default()];
    // SAFETY: the pipe is open as long as the process; `errno` is restored for the interrupted code.
    unsafe {
        let errno = errno();
        let before = *errno;
        libc::write(WAKE.load(Ordering::Acquire), byte.as_ptr().cast(), 1);
        *errno = before;
    }
}

/// The aborting thread may hold any lock, so another one ends what was started. Should it need that very lock, or be the one that
/// aborts, the program dies without it.
extern "C" fn on_abort(signal: i32) {
    if let Some(let_go) = LET_GO.get() {
        let_go();
    }
    on_signal(signal);
    let step = i32::try_from(GRACE.as_millis() / 10).unwrap_or_default();
    // Another signal ends a wait early.
    for _ in 0..10 {
        // SAFETY: waits for nothing but the time.
        unsafe { libc::poll(std::ptr::null_mut(), 0, step) };
    }
    die_of(signal);
}

#[cfg(any(target_os = "linux", target_os = "emscripten"))]
unsafe fn errno() -> *mut i32 {
    // SAFETY: has no condition.
    unsafe { libc::__errno_location() }
}

#[cfg(not(any(target_os = "linux", target_os = "emscripten")))]
unsafe fn errno() -> *mut i32 {
    // SAFETY: has no condition.
    unsafe { libc::__error() }
}
