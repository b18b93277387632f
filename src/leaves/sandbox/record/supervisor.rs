//! Answers the calls of a command, one after the other: what each is about to change is saved first, and then the call is made
//! for the program, on what was looked at.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::caller::Caller;
use super::calls::{self, Deed};
use super::guarding::Guarding;
use super::hand::{Done, Hand, Work};
use super::notify::{Answer, Heard, Inherited, Listener, Program, Waiting};
use super::places::Fault;
use super::recorder::{Recorder, Stop};
use crate::sandbox::{Denied, Effect};

/// How often is looked whether what a call waits for has come: a reader of a pipe, the end of a lease.
const SOONEST: Duration = Duration::from_millis(1);
const LATEST: Duration = Duration::from_millis(50);

/// Whose calls we cannot make.
const ANOTHER: &str = "a program that runs as another user";

/// Hears of a command while it runs.
pub trait Watcher: Send + 'static {
    /// What was refused, and what cannot be undone, before it happens.
    fn tell(&mut self, effect: Effect);

    /// There is no room to save what is about to be lost there; the call waits for the answer.
    fn full(&mut self, path: &Path) -> Full;

    /// Whether nobody hears of it anymore, nor closes what is recorded.
    fn gone(&self) -> bool {
        false
    }
}

/// What happens once there is no room to save anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The call fails, as on a full disk.
    Refuse,
    /// The command continues, and nothing more of it is recorded.
    Unrecorded,
}

/// Serves until nobody is left who could make a call. What is guarded is not changed: such a call fails. Whatever happens
/// here, calls are answered: once the listener is closed, each that would have been held fails, whatever it is for. Where
/// recording cannot begin, or its code fails, the command continues without it, and the manifest tells.
///
/// Without a hand the kernel makes the calls.
///
/// # Errors
/// What the kernel says of the listener.
pub(super) fn serve(
    listener: OwnedFd,
    mut recorder: Option<Recorder>,
    guarding: Guarding,
    hand: Option<Hand>,
    watcher: &mut dyn Watcher,
) -> io::Result<()> {
    let mut refused = false;
    if let Some(begun) = &mut recorder
        && let Err(error) = begun.began()
    {
        refused = matches!(Stop::from(error), Stop::Full) && watcher.full(begun.store()) == Full::Refuse;
        recorder = None;
    }
    let listener = Listener::new(listener);
    let us = Caller::us().ok().filter(|us| !us.is_unprivileged());
    let (later, looked) = (Vec::new(), Instant::now());
    let mut supervisor =
        Supervisor { listener: &listener, recorder, guarding, hand, us, caller: None, watcher, later, looked };
    loop {
        match listener.next(supervisor.pause())? {
            Heard::Over => return supervisor.over(),
            Heard::Call(waiting) if refused => listener.answer(&waiting, Answer::Refuse(libc::ENOSPC)),
            Heard::Call(waiting) => supervisor.hear(waiting, Instant::now()),
            Heard::Nothing => {}
        }
        supervisor.look_again();
        supervisor.recorder.iter_mut().for_each(Recorder::look);
    }
}

pub(super) struct Supervisor<'a> {
    pub(super) listener: &'a Listener,
    pub(super) recorder: Option<Recorder>,
    pub(super) guarding: Guarding,
    /// Makes the calls; none: the kernel does, of programs that might call again.
    pub(super) hand: Option<Hand>,
    /// This thread, where it may more than others.
    us: Option<Caller>,
    /// Who makes the call that is looked at, where that counts.
    caller: Option<Caller>,
    pub(super) watcher: &'a mut dyn Watcher,
    /// Calls that wait for somebody else, and since when.
    later: Vec<(Waiting, Instant)>,
    looked: Instant,
}

/// A call that may be made.
pub(super) struct Deal {
    pub(super) work: Work,
    /// It makes something, whose mode depends on who asks.
    pub(super) makes: bool,
    /// With these errors it is made again, until it works.
    pub(super) waits: &'static [i32],
    pub(super) inherited: Inherited,
}

impl From<Work> for Deal {
    fn from(work: Work) -> Deal {
        Deal { work, makes: false, waits: &[], inherited: Inherited::Yes }
    }
}

/// How a call ends before it has begun.
pub(super) enum Halt {
    /// It changes nothing that has a name, whatever it is given.
    Idle,
    /// It leads nowhere.
    Fails(Errno),
    /// It is answered as if the kernel did not know it.
    Missing,
    /// It must not be made.
    Refused(Denied),
    Stopped(PathBuf, Stop),
    /// Nobody knows what it does.
    Blind(io::Error),
    /// It cannot be made for this program.
    Beyond(&'static str),
}

impl Halt {
    pub(super) fn refused(path: PathBuf) -> Halt {
        Halt::Refused(Denied::Write(path))
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::Blind(error)
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Halt {
        match fault {
            Fault::Fails(errno) => Halt::Fails(errno),
            Fault::Blind(error) => Halt::Blind(error),
        }
    }
}

impl Supervisor<'_> {
    /// Answers a call, unless it has to wait.
    fn hear(&mut self, waiting: Waiting, since: Instant) {
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(&waiting)));
        let answer = judged.unwrap_or_else(|_| {
            self.recorder = None;
            // What guards does not give way.
            Some(if self.guarding.is_empty() { Answer::Continue } else { Answer::Refuse(libc::EIO) })
        });
        match answer {
            Some(answer) => self.listener.answer(&waiting, answer),
            None => self.later.push((waiting, since)),
        }
    }

    /// How long to wait for the next call.
    fn pause(&self) -> Option<Duration> {
        let look = self.recorder.as_ref().and_then(Recorder::pause);
        self.retry().into_iter().chain(look).min()
    }

    /// How long until calls that wait are made again: longer, the longer they wait already.
    fn retry(&self) -> Option<Duration> {
        let youngest = self.later.iter().map(|(_, since)| since.elapsed()).min()?;
        Some((youngest / 8).clamp(SOONEST, LATEST))
    }

    /// The command has ended.
    fn over(&mut self) -> io::Result<()> {
        let abandoned = self.watcher.gone();
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.over(abandoned))
    }

    /// Makes calls again that had to wait.
    fn look_again(&mut self) {
        if self.retry().is_none_or(|pause| self.looked.elapsed() < pause) {
            return;
        }
        for (waiting, since) in std::mem::take(&mut self.later) {
            match Caller::of(waiting.program.thread) {
                _ if !self.listener.waits(&waiting) => {}
                Ok(caller) if caller.signaled => self.listener.answer(&waiting, Answer::Again),
                _ => self.hear(waiting, since),
            }
        }
        self.looked = Instant::now();
    }

    /// None: later.
    fn judge(&mut self, waiting: &Waiting) -> Option<Answer> {
        let halt = match self.answered(waiting) {
            Ok(answer) => return answer,
            Err(halt) => halt,
        };
        Some(match halt {
            Halt::Idle => Answer::Continue,
            Halt::Fails(errno) if self.hand.is_some() => Answer::Refuse(errno.raw_os_error()),
            Halt::Fails(Errno::NOENT | Errno::NOTDIR | Errno::FAULT | Errno::BADF | Errno::LOOP) => Answer::Continue,
            Halt::Missing => Answer::Refuse(libc::ENOSYS),
            Halt::Refused(what) => {
                self.watcher.tell(Effect::Denied { what });
                Answer::Refuse(libc::EACCES)
            }
            Halt::Stopped(path, stop) => return self.stop(waiting, path, stop),
            // The program may have been killed while it was looked at: then nothing happens anymore.
            _ if !self.listener.waits(waiting) => Answer::Continue,
            Halt::Fails(errno) => self.cannot_see(waiting, &errno),
            Halt::Blind(error) => self.cannot_see(waiting, &error),
            Halt::Beyond(what) if self.guarding.is_empty() => {
                self.miss(format!("{what} may have changed more than was seen"));
                Answer::Continue
            }
            Halt::Beyond(what) => {
                self.watcher.tell(Effect::Denied { what: Denied::Call(what.to_owned()) });
                Answer::Refuse(libc::EACCES)
            }
        })
    }

    fn answered(&mut self, waiting: &Waiting) -> Result<Option<Answer>, Halt> {
        let thread = waiting.program.thread;
        self.caller = match self.us.as_ref().filter(|us| self.hand.is_some() && !us.equals(thread)) {
            Some(_) => Some(Caller::of(thread)?),
            None => None,
        };
        let deal = self.decide(waiting)?;
        self.make(waiting, deal)
    }

    fn cannot_see(&mut self, waiting: &Waiting, error: &dyn fmt::Display) -> Answer {
        let binds = calls::deed(waiting.arch, waiting.number) == Some(Deed::Bind);
        if self.guarding.is_empty() || binds {
            self.miss(format!("a program hid what it changed ({error})"));
            return Answer::Continue;
        }
        // It might be anything that is guarded.
        let what = "a change by a program that hides what it does".to_owned();
        self.watcher.tell(Effect::Denied { what: Denied::Call(what) });
        Answer::Refuse(libc::EACCES)
    }

    /// What would be lost is not saved: rather than to lose it in silence, the call fails, or somebody agrees to it.
    fn stop(&mut self, waiting: &Waiting, path: PathBuf, stop: Stop) -> Option<Answer> {
        let errno = match stop {
            Stop::Full if self.watcher.full(&path) == Full::Unrecorded => {
                self.miss(format!("{} and everything after it: the disk was full", path.display()));
                self.recorder = None;
                return self.judge(waiting);
            }
            Stop::Full => libc::ENOSPC,
            Stop::Io(error) => {
                self.miss(format!(
                    "{}: its old content could not be saved ({error}): it was not changed",
                    path.display()
                ));
                error.raw_os_error().unwrap_or(libc::EIO)
            }
        };
        Some(Answer::Refuse(errno))
    }

    pub(super) fn miss(&mut self, why: String) {
        // A manifest that takes no more lines is met by the next path at the latest.
        let _ = self.recorder.as_mut().map(|recorder| recorder.missed(why));
    }

    /// Finds what a call means, with no more rights than its program has.
    pub(super) fn find<T>(&self, waiting: &Waiting, look: impl FnOnce(Program) -> Result<T, Fault>) -> Result<T, Halt> {
        let found = match self.caller.as_ref().zip(self.us.as_ref()) {
            Some((caller, us)) => caller.look(us, || look(waiting.program)),
            None => Ok(look(waiting.program)),
        };
        Ok(found.map_err(|_| Halt::Beyond(ANOTHER))??)
    }

    /// Makes the call for its program. None: not yet.
    fn make(&mut self, waiting: &Waiting, deal: Deal) -> Result<Option<Answer>, Halt> {
        let Some(hand) = &self.hand else { return Err(Halt::Idle) };
        let caller = match self.caller.take() {
            None if deal.makes => Some(Caller::of(waiting.program.thread)?),
            caller => caller,
        };
        // What was read of its program is of that program.
        if !self.listener.waits(waiting) {
            return Err(Halt::Idle);
        }
        match hand.make(caller, deal.work) {
            Ok(Done::Made) => Ok(Some(Answer::Made)),
            Ok(Done::Opened(file)) => Ok(Some(Answer::Opened(file, deal.inherited))),
            Err(error) => match error.raw_os_error() {
                Some(errno) if deal.waits.contains(&errno) => Ok(None),
                Some(errno) => Ok(Some(Answer::Refuse(errno))),
                None => Err(Halt::Beyond(ANOTHER)),
            },
        }
    }
}
