//! The terminal's input: one thread that polls the terminal and a wake pipe, reads, parses, and sends on.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Size};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::mpsc::UnboundedSender;

use super::parse::Parser;
use crate::stdx::ending::{self, Ending};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long an answer is thought to be under way. Over a slow line it takes most of that, and a shell that has the terminal
/// back by then would take it for typing.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The same for a terminal that has answered before, unless it took longer then; a busy machine needs some of it.
const PROMPT_TIME: Duration = Duration::from_millis(500);

/// What comes from the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A key was pressed or repeats; releases are left out.
    Key(KeyEvent),
    /// The same for a key of a text that came at once, as nobody presses keys: it is written, and chooses nothing.
    Written(KeyEvent),
    /// Pasted text with `\n` line ends and no control characters but tabs.
    Paste(String),
    Resize(Size),
    /// Only where the whole session is on the alternate screen.
    Mouse(Mouse),
    /// A sequence is still in its middle: what comes may be the rest of it.
    Torn,
    /// The terminal's window got (true) or lost the focus.
    Focus(bool),
    /// An answer of the terminal, for `Surface::report`.
    Report(Report),
    Signal(Signal),
    /// The terminal is gone.
    Eof,
}

/// What the mouse did, at which cell of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// The left button.
    Pressed(Position),
    Dragged(Position),
    Released(Position),
    WheelUp,
    WheelDown,
}

/// What the terminal says of itself when asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Place of the cursor, counted from zero.
    Cursor(Position),
    /// Red, green and blue of the background.
    Background(u8, u8, u8),
    /// Flags of the kitty keyboard protocol; only terminals that have it answer.
    Kitty(u8),
    /// Name and version.
    Version(String),
    /// It takes the status of programs (OSC 7501).
    Status,
    /// Device attributes: what was asked before and is not answered yet will not be.
    Attributes,
}

/// A signal from outside that a front end acts on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Signal {
    Interrupt,
    Terminate,
    Hangup,
    /// The process was stopped from outside and continues; the terminal's modes are those of the shell.
    Continue,
}

/// The questions that the terminal has not answered yet, shared by the surface, which asks, and the keyboard.
#[derive(Debug, Clone, Default)]
pub struct Queries(Arc<Open>);

#[derive(Debug, Default)]
struct Open {
    cursor: AtomicU32,
    /// Batches of questions, each of which ends in the one that every terminal answers.
    batches: AtomicU32,
    times: Mutex<Times>,
}

/// How long the terminal takes to answer, and until when it may.
#[derive(Debug, Default)]
struct Times {
    asked: Option<Instant>,
    until: Option<Instant>,
    /// Longest that it took to answer a batch; none before it has answered one.
    took: Option<Duration>,
}

impl Queries {
    /// The cursor's place is asked for, and all that goes with it.
    pub(super) fn ask_all(&self) {
        self.0.batches.fetch_add(1, Ordering::AcqRel);
        self.ask();
    }

    /// The cursor's place is asked for.
    pub(super) fn ask(&self) {
        self.0.cursor.fetch_add(1, Ordering::AcqRel);
        self.expect(ANSWER_TIME);
    }

    /// Whether the terminal is to be asked one last question, whose answer comes after everything else that it has sent: true
    /// for one that has answered all others. The answer to a later question may not come in time where they are open.
    pub(super) fn fence(&self) -> bool {
        let Some(took) = self.times().took.filter(|_| self.none_open()) else { return false };
        self.0.batches.fetch_add(1, Ordering::AcqRel);
        self.expect((took * 3).clamp(PROMPT_TIME, ANSWER_TIME));
        true
    }

    fn expect(&self, within: Duration) {
        super::restore::asked(true);
        let now = Instant::now();
        let mut times = self.times();
        times.asked = Some(now);
        times.until = times.until.max(Some(now + within));
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all that was asked is answered; an answer may come at any time otherwise.
    pub(super) fn none_open(&self) -> bool {
        [&self.0.cursor, &self.0.batches].iter().all(|open| open.load(Ordering::Acquire) == 0)
    }

    /// Takes one answer for the cursor's place; false when nobody had asked.
    pub(super) fn answered(&self) -> bool {
        let wanted =
            self.0.cursor.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| open.checked_sub(1)).is_ok();
        super::restore::asked(!self.none_open());
        wanted
    }

    /// Takes the answer that ends a batch.
    pub(super) fn all_answered(&self) {
        // One that nobody asked for ends none.
        let ended = self.0.batches.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| open.checked_sub(1));
        if ended.is_ok() {
            let mut times = self.times();
            times.took = times.took.max(times.asked.map(|asked| asked.elapsed()));
        }
        super::restore::asked(!self.none_open());
    }

    /// How much longer an answer may be under way.
    pub(super) fn waiting(&self) -> Option<Duration> {
        self.times().until.and_then(|until| until.checked_duration_since(Instant::now()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Reading,
    ParkAsked,
    Parked,
    Stopped,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }
}

/// The thread that owns the terminal's input, until it is dropped.
#[derive(Debug)]
pub struct Keyboard {
    shared: Arc<Shared>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Starts to read `tty`, which must be in raw mode.
    ///
    /// # Errors
    /// When the system gives no pipe or no thread.
    pub fn start(tty: OwnedFd, queries: Queries, inputs: UnboundedSender<Input>) -> io::Result<Keyboard> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { state: Mutex::new(State::Reading), changed: Condvar::new() });
        let parser = Parser::new(queries.clone());
        let reader = Reader { tty, woken, shared: Arc::clone(&shared), queries, parser, inputs };
        let thread = std::thread::Builder::new().name("keyboard".into()).spawn(move || reader.run())?;
        Ok(Keyboard { shared, wake, thread: Some(thread) })
    }

    /// Stops reading, so that another program gets every key; returns when the thread is still.
    pub fn park(&self) {
        let mut state = self.shared.lock();
        if *state != State::Reading {
            return;
        }
        *state = State::ParkAsked;
        self.nudge();
        while *state == State::ParkAsked {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads on after `park`.
    pub fn unpark(&self) {
        let mut state = self.shared.lock();
        if matches!(*state, State::Parked | State::ParkAsked) {
            *state = State::Reading;
            self.shared.changed.notify_all();
        }
    }

    fn nudge(&self) {
        // A full pipe wakes the thread as well.
        let _ = rustix::io::write(&self.wake, &[0]);
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.shared.set(State::Stopped);
        self.nudge();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the hook.
            let _ = thread.join();
        }
    }
}

struct Reader {
    tty: OwnedFd,
    woken: OwnedFd,
    shared: Arc<Shared>,
    queries: Queries,
    parser: Parser,
    inputs: UnboundedSender<Input>,
}

impl Reader {
    fn run(mut self) {
        let mut buffer = vec![0; READ_BYTES];
        while self.may_read() {
            if !self.read_once(&mut buffer) {
                let inputs = &self.inputs;
                self.parser.flush(&mut |input| drop(inputs.send(input)));
                // Nobody listens anymore when this fails, which is as good.
                let _ = inputs.send(Input::Eof);
                break;
            }
        }
        self.shared.set(State::Stopped);
    }

    /// Waits while parked; false if the thread should end.
    fn may_read(&mut self) -> bool {
        let leaving = *self.shared.lock() != State::Reading;
        if leaving {
            self.last_answers();
        }
        let mut state = self.shared.lock();
        loop {
            match *state {
                State::Reading => return true,
                State::Stopped => return false,
                State::ParkAsked => {
                    *state = State::Parked;
                    self.shared.changed.notify_all();
                }
                State::Parked => {
                    state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Reads what the terminal still has to say to us before somebody else reads it.
    fn last_answers(&mut self) {
        let mut buffer = [0; 256];
        while let Some(left) = self.queries.waiting().filter(|_| !self.queries.none_open()) {
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.tty, PollFlags::IN)], timeout.as_ref()) {
                Ok(count) if count > 0 => {}
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) | Err(_) => return,
            }
            let Ok(count @ 1..) = rustix::io::read(&self.tty, &mut buffer) else { return };
            let inputs = &self.inputs;
            self.parser.feed(&buffer[..count], &mut |input| drop(inputs.send(input)));
        }
    }

    /// Waits for input or a nudge and passes on what came; false when the terminal is gone.
    fn read_once(&mut self, buffer: &mut [u8]) -> bool {
        let timeout = self.parser.patience().and_then(|patience| Timespec::try_from(patience).ok());
        let mut fds = [PollFd::new(&self.tty, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {
                let inputs = &self.inputs;
                self.parser.flush(&mut |input| drop(inputs.send(input)));
                return true;
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return true,
            Err(_) => return false,
        }
        let (ready, nudged) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if nudged {
            // The state says what to do; the byte only woke the thread.
            let _ = rustix::io::read(&self.woken, &mut buffer[..16]);
            return true;
        }
        if !ready {
            return true;
        }
        match rustix::io::read(&self.tty, &mut *buffer) {
            Ok(0) => false,
            Ok(count) => {
                let inputs = &self.inputs;
                self.parser.feed(&buffer[..count], &mut |input| drop(inputs.send(input)));
                true
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => true,
            Err(_) => false,
        }
    }
}

/// Sends changes of the terminal's size and signals from outside into the same channel, until its receiver is gone. One
/// that ends the program does so within a second, whatever the loop does with it.
///
/// # Errors
/// When the runtime cannot listen to a signal.
pub fn signals(
    size: impl Fn() -> Option<Size> + Send + 'static,
    inputs: UnboundedSender<Input>,
) -> io::Result<tokio::task::JoinHandle<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut winch = signal(SignalKind::window_change())?;
    let ends = inputs.clone();
    let tell = move |ending| {
        // The loop may have ended already.
        let _ = ends.send(Input::Signal(match ending {
            Ending::Interrupt => Signal::Interrupt,
            Ending::Terminate | Ending::Quit | Ending::Abort => Signal::Terminate,
            Ending::Hangup => Signal::Hangup,
        }));
    };
    ending::watch(tell, super::restore::let_go)?;
    let mut resumed = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    Ok(tokio::spawn(async move {
        loop {
            let input = tokio::select! {
                Some(()) = winch.recv() => match size() {
                    Some(size) => Input::Resize(size),
                    None => continue,
                },
                Some(()) = resumed.recv() => Input::Signal(Signal::Continue),
                () = inputs.closed() => return,
                else => return,
            };
            if inputs.send(input).is_err() {
                return;
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn the_terminal_is_given_back_when_it_has_answered() {
        let (tty, terminal) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (queries, (inputs, mut got)) = (Queries::default(), unbounded_channel());
        let keyboard = Keyboard::start(tty, queries.clone(), inputs).unwrap();
        queries.ask_all();
        let shared = Arc::clone(&keyboard.shared);
        let leaving = std::thread::spawn(move || drop(keyboard));
        while *shared.lock() != State::Stopped {
            std::thread::yield_now();
        }
        for answer in [&b"\x1b[3;1R"[..], b"\x1b[?0u", b"\x1b[?62;22c"] {
            assert!(!queries.none_open());
            rustix::io::write(&terminal, answer).unwrap();
        }
        leaving.join().unwrap();
        assert!(queries.none_open());
        assert_eq!(got.blocking_recv(), Some(Input::Report(Report::Cursor(Position::new(0, 2)))));
        assert_eq!(got.blocking_recv(), Some(Input::Report(Report::Kitty(0))));
        assert_eq!(got.blocking_recv(), Some(Input::Report(Report::Attributes)));
        assert_eq!(got.blocking_recv(), None);
    }

    #[test]
    fn only_a_terminal_that_has_answered_all_is_asked_a_last_question() {
        let queries = Queries::default();
        assert!(!queries.fence(), "nothing was asked");
        queries.ask_all();
        assert!(!queries.fence(), "it may never answer");
        queries.all_answered();
        assert!(!queries.fence(), "the answer for the cursor is under way");
        assert!(queries.answered() && queries.none_open());
        assert!(queries.fence() && !queries.none_open());
        queries.all_answered();
        assert!(queries.none_open());
    }
}
