//! `Screen`: a program in a real pseudo-terminal, read through an emulator that answers as a terminal does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Longest wait of `wait_for` and `wait_exit`.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
/// Rows that the emulator keeps above its screen.
const SCROLLBACK_ROWS: usize = 50_000;

/// A program to be started in a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: BTreeMap<String, OsString>,
    cwd: Option<PathBuf>,
    size: (u16, u16),
    answers: Option<Duration>,
}

/// A running program and the terminal around it. Dropping it kills the program.
pub(crate) struct Screen {
    shared: Arc<Shared>,
    master: Box<dyn MasterPty + Send>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    child: Box<dyn Child + Send + Sync>,
    reader: Option<JoinHandle<()>>,
    home: tempfile::TempDir,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The emulator and what it has seen.
pub(crate) struct State {
    pub(crate) parser: vt100::Parser<Answers>,
    /// Every byte that the program has written.
    pub(crate) raw: Vec<u8>,
    closed: bool,
}

/// What the terminal says and keeps beside its cells.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    replies: Vec<u8>,
    /// How often it has answered.
    pub(crate) answered: usize,
    pub(crate) title: String,
    /// The last text copied through OSC 52, still encoded.
    pub(crate) clipboard: String,
}

impl vt100::Callbacks for Answers {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).into_owned();
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.clipboard = String::from_utf8_lossy(data).into_owned();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let param = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        match (first, last, param) {
            (None, 'n', 6) => {
                let ((row, column), (_, columns)) = (screen.cursor_position(), screen.size());
                let column = (column + 1).min(columns.get());
                self.replies.extend_from_slice(format!("\x1b[{};{column}R", row + 1).as_bytes());
            }
            (None, 'n', 5) => self.replies.extend_from_slice(b"\x1b[0n"),
            (None, 'c', _) => self.replies.extend_from_slice(b"\x1b[?62;22c"),
            (Some(b'?'), 'u', _) => self.replies.extend_from_slice(b"\x1b[?0u"),
            // This emulator cuts rows at a resize as xterm does, so it says that it is one.
            (Some(b'>'), 'q', _) => self.replies.extend_from_slice(b"\x1bP>|XTerm(390)\x1b\\"),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        match params {
            [b"10", b"?"] => self.replies.extend_from_slice(b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
            [b"11", b"?"] => self.replies.extend_from_slice(b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"),
            _ => {}
        }
    }
}

impl Launch {
    /// The program in an 80x24 terminal, with a clean environment and a home of its own.
    pub(crate) fn new(program: impl AsRef<Path>) -> Launch {
        Launch {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            size: (80, 24),
            answers: Some(Duration::ZERO),
        }
    }

    pub(crate) fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Launch {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Launch {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Directory that the program is started in; its home when not given.
    pub(crate) fn cwd(mut self, cwd: impl AsRef<Path>) -> Launch {
        self.cwd = Some(cwd.as_ref().to_owned());
        self
    }

    pub(crate) fn size(mut self, columns: u16, rows: u16) -> Launch {
        self.size = (columns, rows);
        self
    }

    /// A terminal that never answers.
    pub(crate) fn silent(mut self) -> Launch {
        self.answers = None;
        self
    }

    /// A terminal that takes so long to answer.
    pub(crate) fn slow(mut self, answers: Duration) -> Launch {
        self.answers = Some(answers);
        self
    }

    /// Starts the program.
    ///
    /// # Panics
    /// When there is no pseudo-terminal or no such program.
    pub(crate) fn start(self) -> Screen {
        let home = tempfile::tempdir().expect("a directory for the program's home");
        let pty = native_pty_system().openpty(pty_size(self.size.0, self.size.1)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(&self.program);
        command.args(&self.args);
        command.env_clear();
        command.env("HOME", home.path());
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.env("LANG", "C.UTF-8");
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        for (name, value) in &self.env {
            command.env(name, value);
        }
        command.cwd(self.cwd.unwrap_or_else(|| home.path().to_owned()));
        let child = pty.slave.spawn_command(command).expect("the program starts");
        drop(pty.slave);
        let reader = pty.master.try_clone_reader().expect("a reader of the terminal");
        let writer = Arc::new(Mutex::new(pty.master.take_writer().expect("a writer to the terminal")));
        let (columns, rows) = self.size;
        let parser = vt100::Parser::new_with_callbacks(
            nonzero(rows, 24),
            nonzero(columns, 80),
            SCROLLBACK_ROWS,
            Answers::default(),
        );
        let state = Mutex::new(State { parser, raw: Vec::new(), closed: false });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let thread = {
            let (shared, writer, answers) = (Arc::clone(&shared), Arc::clone(&writer), self.answers);
            std::thread::spawn(move || read(reader, &shared, &writer, answers))
        };
        Screen { shared, master: pty.master, writer, child, reader: Some(thread), home }
    }
}

fn read(
    mut reader: Box<dyn Read + Send>,
    shared: &Arc<Shared>,
    writer: &Arc<Mutex<Box<dyn Write + Send>>>,
    answers: Option<Duration>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // A closed terminal reads as an error on Linux.
        let count = reader.read(&mut buffer).unwrap_or(0);
        let mut state = lock(&shared.state);
        state.closed = count == 0;
        state.raw.extend_from_slice(&buffer[..count]);
        state.parser.process(&buffer[..count]);
        let replies = std::mem::take(&mut state.parser.callbacks_mut().replies);
        drop(state);
        shared.changed.notify_all();
        if count == 0 {
            return;
        }
        if let Some(late) = answers.filter(|_| !replies.is_empty()) {
            let (shared, writer) = (Arc::clone(shared), Arc::clone(writer));
            let answer = move || {
                // A program that has ended meanwhile needs no answer.
                let _ = lock(&writer).write_all(&replies);
                lock(&shared.state).parser.callbacks_mut().answered += 1;
                shared.changed.notify_all();
            };
            if late.is_zero() {
                answer();
            } else {
                std::thread::spawn(move || {
                    std::thread::sleep(late);
                    answer();
                });
            }
        }
    }
}

impl Screen {
    /// Sends bytes as a keyboard does.
    pub(crate) fn send(&self, bytes: impl AsRef<[u8]>) {
        let mut writer = lock(&self.writer);
        writer.write_all(bytes.as_ref()).and_then(|()| writer.flush()).expect("the terminal takes keys");
    }

    /// Waits until `holds` is true of the screen's text.
    ///
    /// # Panics
    /// With the screen, when the deadline passes or the program ends before that.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) {
        self.wait_until(what, |state| holds(&state.parser.screen().contents()));
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub(crate) fn wait_text(&self, text: &str) {
        self.wait_for(&format!("{text:?}"), |screen| screen.contains(text));
    }

    /// Waits until a question that shows `text` takes keys.
    #[track_caller]
    pub(crate) fn wait_live(&self, text: &str) {
        self.wait_for(&format!("a question with {text:?} that takes keys"), |screen| {
            screen.contains(text) && live(screen)
        });
    }

    /// Waits until `holds` is true of the emulator or the raw bytes.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&State) -> bool) {
        let end = Instant::now() + DEADLINE;
        let mut state = lock(&self.shared.state);
        while !holds(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || state.closed {
                let why = if state.closed { "the program ended" } else { "the deadline passed" };
                panic!("waited for {what}, but {why}. The screen:\n{}", picture(&state));
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until nothing has been written for a while.
    pub(crate) fn settle(&self, quiet: Duration) {
        let mut seen = usize::MAX;
        loop {
            let count = self.bytes();
            if count == seen {
                return;
            }
            seen = count;
            std::thread::sleep(quiet);
        }
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        lock(&self.shared.state).parser.set_size(nonzero(rows, 24), nonzero(columns, 80));
        self.master.resize(pty_size(columns, rows)).expect("the terminal takes a size");
    }

    /// The rows on the screen without blanks at their ends.
    pub(crate) fn text(&self) -> String {
        lock(&self.shared.state).parser.screen().contents()
    }

    /// All rows, from the scrollback's first to the screen's last that shows something.
    pub(crate) fn scrollback_text(&self) -> String {
        all_rows(lock(&self.shared.state).parser.screen_mut()).join("\n").trim_end().to_owned()
    }

    /// The cursor's row and column, counted from zero.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        lock(&self.shared.state).parser.screen().cursor_position()
    }

    /// How many bytes the program has written.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.shared.state).raw.len()
    }

    /// The emulator and the raw bytes, as they are now.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().expect("the program has an id")
    }

    /// The program's home, empty at its start.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the program's end and for all that it has written.
    ///
    /// # Panics
    /// With the screen, when the deadline passes before that.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                if let Some(reader) = self.reader.take() {
                    let _ = reader.join();
                }
                return status;
            }
            assert!(Instant::now() < end, "the program does not end. The screen:\n{}", picture(&self.state()));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Fails when the program has scrolled by SU or SD, which lose rows in terminals built on xterm.js.
    #[track_caller]
    pub(crate) fn assert_no_lossy_scroll(&self) {
        assert_eq!(lossy_scrolls(&self.state().raw), Vec::<String>::new());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A question is open, and it takes keys.
pub(crate) fn live(screen: &str) -> bool {
    screen.contains("› 1. ") && !screen.contains("keys work in a moment")
}

/// Every `CSI n S` and `CSI n T` in the bytes.
pub(crate) fn lossy_scrolls(bytes: &[u8]) -> Vec<String> {
    let starts = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"\x1b[").map(|(index, _)| index + 2);
    starts
        .filter_map(|start| {
            let end = bytes[start..].iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')? + start;
            matches!(bytes[end], b'S' | b'T').then(|| String::from_utf8_lossy(&bytes[start..=end]).into_owned())
        })
        .collect()
}

/// All rows of an emulator, the scrollback's first.
pub(crate) fn all_rows(screen: &mut vt100::Screen) -> Vec<String> {
    let (height, width) = (usize::from(screen.size().0.get()), screen.size().1.get());
    let mut rows = Vec::new();
    let mut above = screen.scrollback_len();
    while above > 0 {
        screen.set_scrollback(above);
        rows.extend(screen.rows(0, width).take(above.min(height)));
        above -= above.min(height);
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, width));
    rows
}

fn picture(state: &State) -> String {
    let screen = state.parser.screen();
    let rows = screen.rows(0, screen.size().1.get()).map(|row| format!("|{}\n", row.trim_end()));
    format!("{}cursor {:?}, {} bytes", rows.collect::<String>(), screen.cursor_position(), state.raw.len())
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the emulator shows of a terminal that claims a side of 0: the usual one.
fn nonzero(count: u16, usual: u16) -> NonZeroU16 {
    NonZeroU16::new(if count == 0 { usual } else { count }).expect("it has rows and columns")
}

fn pty_size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

#[test]
fn a_program_gets_its_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "pwd; echo $NAME $HOME $0; stty size; printf '\\033]2;title\\007ab'; read line; echo got $line; exit 3";
    let mut screen = Launch::new("/bin/sh")
        .args(["-c", script, "zero"])
        .env("NAME", "value")
        .cwd(directory.path())
        .size(200, 10)
        .start();
    screen.wait_text("ab");
    let home = screen.home().display().to_string();
    let want = format!("{}\nvalue {home} zero\n10 200\nab", directory.path().display());
    assert_eq!((screen.text(), screen.cursor()), (want, (3, 2)));
    assert_eq!(screen.state().parser.callbacks().title, "title");
    assert!(Path::new(&format!("/proc/{}", screen.pid())).exists() || !Path::new("/proc/self").exists());
    let before = screen.bytes();
    screen.send("x\r");
    screen.wait_text("got x");
    screen.settle(Duration::from_millis(5));
    assert!(screen.bytes() > before);
    assert_eq!(screen.wait_exit().exit_code(), 3);
}

#[test]
fn lossy_scrolls_are_found() {
    assert_eq!(lossy_scrolls(b"a\x1b[2Sb\x1b[Tc\x1b[1;3r\x1b[31mS\x1b[K"), ["2S", "T"]);
}
