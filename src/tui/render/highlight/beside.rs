//! Colors made by a thread of their own, so that neither grammars nor long blocks hold a frame up.
//!
//! A stream asks for its lines in order and gets their colors in that order. Rows that the scrollback has cannot be
//! corrected, so a line waits for its colors before it goes there; the live region shows it plain meanwhile.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::{Highlighter, Runs};

/// Most lines that are delivered at once.
const BATCH: usize = 64;

/// What the thread is to do next for a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// A block of code in a language begins.
    Open(String),
    /// The next line of the block.
    Line(String),
    /// The line under way, as far as it goes: it comes again.
    Peek(String),
}

/// Colors of a stream's lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coloured {
    pub stream: u64,
    /// Those of the lines after the ones delivered before.
    pub lines: Vec<Runs>,
    /// The line under way, and its colors.
    pub peeked: Option<(String, Runs)>,
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Painter(Sender<(u64, Job)>);

impl Painter {
    /// Starts it. `deliver` is called on it.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(deliver: impl Fn(Coloured) + Send + 'static) -> io::Result<Painter> {
        let (jobs, asked) = channel();
        std::thread::Builder::new().name("highlight".into()).spawn(move || work(&asked, deliver))?;
        Ok(Painter(jobs))
    }

    /// Asks for the jobs of a stream. False: there is no thread anymore.
    pub fn ask(&self, stream: u64, jobs: Vec<Job>) -> bool {
        jobs.into_iter().all(|job| self.0.send((stream, job)).is_ok())
    }
}

fn work(asked: &Receiver<(u64, Job)>, deliver: impl Fn(Coloured)) {
    let mut code = Highlighter::plain();
    while let Ok(first) = asked.recv() {
        let mut done = Coloured { stream: first.0, ..Coloured::default() };
        let mut next = Ok(first);
        while let Ok((stream, job)) = next {
            if stream != done.stream || done.lines.len() >= BATCH {
                deliver(std::mem::replace(&mut done, Coloured { stream, ..Coloured::default() }));
            }
            match job {
                Job::Open(name) => code = Highlighter::named(&name),
                Job::Line(line) => done.lines.push(code.runs(&line)),
                Job::Peek(line) => {
                    let runs = code.clone().runs(&line);
                    done.peeked = Some((line, runs));
                }
            }
            next = asked.try_recv();
        }
        deliver(done);
        if next == Err(TryRecvError::Disconnected) {
            return;
        }
    }
}
