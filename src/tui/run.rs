//! The loop that owns the terminal: reads keys and events, folds them, applies effects, draws. It waits for nothing that
//! takes long, and wakes up only when something changes.

mod drawing;

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::layout::Size;
use tokio::process::Command;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

use super::app::App;
use super::clipboard::Clipboard;
use super::composer::chip::{self, Picture};
use super::files::Files;
use super::msg::{Effect, Msg};
use super::render::highlight::beside::{Coloured, Painter};
use super::terminal::{self, Input, Keyboard, Output, Report, Session, Signal, Surface};
use super::theme::Theme;
use super::update::update;
use crate::protocol::{Event, Op, Typed};
use crate::stdx::process::{Unconfined, run_captured};

/// Shortest time between two frames that the model causes.
const FRAME: Duration = Duration::from_micros(16_600);
/// How long a terminal may have another size than it has told after a resize: tmux tells of the next one 250 ms later.
const SIZE: Duration = Duration::from_millis(400);
/// How long the composer rests before its draft is saved.
const DRAFT: Duration = Duration::from_secs(1);
/// How long the engine may take to end.
const FAREWELL: Duration = Duration::from_secs(3);
/// The same when the terminal is gone or a signal came.
const HURRY: Duration = Duration::from_millis(500);
/// How long rows that are not drawn yet may take at the end.
const LAST_ROWS: Duration = Duration::from_millis(500);
/// How long the user's status line may take, and most bytes of it.
const STATUS: Duration = Duration::from_secs(5);
const STATUS_BYTES: usize = 16 << 10;
/// Most events that are folded between two looks at the keyboard.
const BATCH: usize = 256;

/// What the loop needs from outside the terminal. Every call may block; all but `edit` run beside the loop.
pub trait Host: Send + Sync + 'static {
    /// The working directory: `@` lists it, attachments are relative to it.
    fn cwd(&self) -> &Path;
    /// Keeps what is being written; an empty text removes it.
    fn save_draft(&self, draft: &Typed);
    /// Lets the user edit a text in an editor, which has the terminal meanwhile.
    ///
    /// # Errors
    /// A word on why there is no new text.
    fn edit(&self, text: &str) -> Result<String, String>;
    /// Opens a file in an editor, which has the terminal meanwhile.
    ///
    /// # Errors
    /// A word on why the editor did not end well.
    fn edit_file(&self, path: &Path) -> Result<(), String>;
    /// Where a picture is taken from.
    fn clipboard(&self) -> Clipboard;
    /// A line for the user's shell, in the working directory.
    fn shell(&self, line: &str) -> Command;
    /// The theme of that name; `light` decides for `auto`.
    ///
    /// # Errors
    /// Why there is no such theme.
    fn theme(&self, name: &str, light: bool) -> Result<Theme, String>;
    /// The branch of the working directory.
    fn branch(&self) -> Option<String>;
}

/// The terminal as the loop has it. Without `modes` (in tests) there is nothing to hand over to an editor or a shell.
pub struct Terminal<O: Output> {
    pub surface: Surface<O>,
    pub modes: Option<(Keyboard, Session)>,
    pub inputs: UnboundedReceiver<Input>,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Left {
    /// The user.
    Done,
    /// The engine ended, and nobody had asked for it: the session could not be opened.
    Ended,
    Signal(Signal),
    /// The terminal is gone.
    Gone,
}

/// Runs until the user leaves or the engine ends. The terminal is released at the end; its modes are the caller's.
///
/// # Errors
/// When the terminal cannot be written.
pub async fn run<O: Output>(
    app: App,
    terminal: Terminal<O>,
    ops: Sender<Op>,
    mut events: Receiver<Event>,
    host: Arc<dyn Host>,
) -> io::Result<Left> {
    let Terminal { surface, modes, mut inputs } = terminal;
    let (results, mut arrived) = unbounded_channel();
    let (colours, mut coloured) = unbounded_channel();
    let files = Files::new(host.cwd().to_owned());
    let mut front = Front {
        app,
        surface,
        modes,
        host,
        files,
        results,
        commands: JoinSet::new(),
        fetching: None,
        painter: None,
        colours,
        outbox: VecDeque::new(),
        frame: Frame::Now,
        framed: None,
        resized: None,
        built: None,
        laid: None,
        waiting: false,
        behind: false,
        draft_due: None,
        farewell: None,
        left: Left::Done,
        done: false,
    };
    front.app.linear = front.surface.traits().plain;
    front.app.transcript.scrollback.colour_beside();
    if front.app.fullscreen {
        front.surface.take_screen();
    }
    front.find_branch();
    while !front.done {
        if front.left != Left::Gone && (front.behind || front.frame_due(Instant::now())) {
            front.draw()?;
        }
        let due = front.due(Instant::now());
        tokio::select! {
            biased;
            input = inputs.recv(), if front.left != Left::Gone => {
                front.input(input)?;
                while let Ok(input) = inputs.try_recv() {
                    front.input(Some(input))?;
                }
                front.frame = Frame::Now;
            }
            Some(msg) = arrived.recv() => {
                while front.commands.try_join_next().is_some() {}
                front.step(msg)?;
                front.frame = Frame::Now;
            }
            Some(lines) = coloured.recv() => {
                front.app.transcript.scrollback.coloured(lines);
                front.frame = front.frame.max(Frame::Soon);
            }
            permit = ops.reserve(), if !front.outbox.is_empty() => match (permit, front.outbox.pop_front()) {
                (Ok(permit), Some(op)) => permit.send(op),
                _ => front.outbox.clear(),
            },
            () = until(due) => front.elapsed()?,
            event = events.recv() => {
                front.step(Msg::Engine(event.unwrap_or(Event::Closed)))?;
                for _ in 1..BATCH {
                    let Ok(event) = events.try_recv() else { break };
                    front.step(Msg::Engine(event))?;
                }
                front.frame = front.frame.max(Frame::Soon);
            }
            // There is more to draw, and no key waits.
            () = tokio::task::yield_now(), if front.behind => {}
        }
    }
    if front.left == Left::Done && !front.app.closing {
        front.left = Left::Ended;
    }
    front.host.save_draft(&front.app.draft());
    if front.left != Left::Gone {
        // Rows that the last events made final belong into the scrollback.
        (front.app.pager, front.app.back, front.resized) = (None, None, None);
        front.app.transcript.scrollback.colour_here();
        let until = Instant::now() + LAST_ROWS;
        front.draw()?;
        while front.behind && Instant::now() < until {
            front.draw()?;
        }
        front.leave_behind();
        front.surface.release()?;
        if front.left == Left::Done
            && let Some(receipt) = &front.app.receipt
        {
            receipt.lines().try_for_each(|line| front.surface.print_after(line))?;
        }
    }
    Ok(front.left)
}

/// When the next frame is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Frame {
    Not,
    /// Paced: the model caused it.
    Soon,
    /// The user caused it.
    Now,
}

struct Front<O: Output> {
    app: App,
    surface: Surface<O>,
    /// In the order of their end: answers that are under way are read before a shell has the terminal.
    modes: Option<(Keyboard, Session)>,
    host: Arc<dyn Host>,
    files: Files,
    results: UnboundedSender<Msg>,
    /// Commands of the user that run beside the loop, and end with it.
    commands: JoinSet<()>,
    /// The one of them that reads the clipboard.
    fetching: Option<AbortHandle>,
    /// Colors code from the first block on.
    painter: Option<Painter>,
    colours: UnboundedSender<Coloured>,
    /// Ops that wait for room in the engine's channel: neither side ever waits for the other.
    outbox: VecDeque<Op>,
    frame: Frame,
    framed: Option<Instant>,
    /// The last resize, as long as the next one may be under way.
    resized: Option<Instant>,
    /// The width that the scrollback was drawn for.
    built: Option<u16>,
    /// What a screen that is ours was drawn for.
    laid: Option<(Size, Box<Theme>)>,
    /// Nothing is written before the size has settled.
    waiting: bool,
    /// The last frame left rows over.
    behind: bool,
    draft_due: Option<Instant>,
    farewell: Option<Instant>,
    left: Left,
    done: bool,
}

impl<O: Output> Front<O> {
    fn frame_due(&self, now: Instant) -> bool {
        match self.frame {
            Frame::Not => false,
            Frame::Soon => self.framed.is_none_or(|framed| now >= framed + FRAME),
            Frame::Now => true,
        }
    }

    /// When the loop must wake up by itself; none while nothing moves.
    fn due(&self, now: Instant) -> Option<Instant> {
        let paced = self.frame == Frame::Soon && self.left != Left::Gone;
        let frame = self.framed.filter(|_| paced).map(|framed| framed + FRAME);
        let settled = self.resized.map(|resized| resized + SIZE);
        [frame, self.app.wake(now), settled, self.draft_due, self.farewell].into_iter().flatten().min()
    }

    /// Does what is due.
    fn elapsed(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let past = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if past(self.resized.map(|resized| resized + SIZE)) {
            self.resized = None;
            self.rebuild();
        }
        if past(self.farewell) {
            self.done = true;
        }
        if past(self.draft_due) {
            self.draft_due = None;
            let draft = self.app.draft();
            self.beside(move |host| {
                host.save_draft(&draft);
                None
            });
        }
        self.step(Msg::Tick)?;
        self.frame = self.frame.max(Frame::Soon);
        Ok(())
    }

    fn input(&mut self, input: Option<Input>) -> io::Result<()> {
        let msg = match input {
            Some(Input::Key(key)) => Msg::Key(key),
            Some(Input::Written(key)) => Msg::Written(key),
            Some(Input::Paste(text)) => {
                let image = chip::image_path(&text).map(|path| self.host.cwd().join(path));
                let picture = |path: PathBuf| {
                    let meta = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
                    Some(Picture { path, bytes: meta.len() })
                };
                Msg::Paste { image: image.and_then(picture), text }
            }
            Some(Input::Resize(size)) => {
                self.surface.resize(size);
                self.resized = Some(Instant::now());
                Msg::Resize(size.width, size.height)
            }
            Some(Input::Mouse(mouse)) => Msg::Mouse(mouse),
            Some(Input::Torn) => Msg::Torn,
            Some(Input::Focus(focused)) => Msg::Focus(focused),
            Some(Input::Report(report)) => {
                self.surface.report(&report)?;
                let Report::Background(red, green, blue) = report else { return Ok(()) };
                Msg::Background { light: brightness(red, green, blue) > 128 }
            }
            Some(Input::Signal(Signal::Continue)) => {
                if let Some((_, session)) = &self.modes {
                    session.resume()?;
                }
                self.app.asks.hidden();
                self.surface.redraw();
                return Ok(());
            }
            Some(Input::Signal(signal)) => {
                self.left = Left::Signal(signal);
                self.farewell = Some(Instant::now() + HURRY);
                Msg::Eof
            }
            Some(Input::Eof) | None => {
                self.left = Left::Gone;
                self.farewell = Some(Instant::now() + HURRY);
                Msg::Eof
            }
        };
        self.step(msg)
    }

    /// Folds one message and applies what follows.
    fn step(&mut self, msg: Msg) -> io::Result<()> {
        let mut effects: VecDeque<Effect> = update(&mut self.app, msg, Instant::now()).into();
        while let Some(effect) = effects.pop_front() {
            if let Some(answer) = self.apply(effect)? {
                effects.extend(update(&mut self.app, answer, Instant::now()));
            }
        }
        if self.app.closing && self.farewell.is_none() {
            self.farewell = Some(Instant::now() + FAREWELL);
        }
        Ok(())
    }

    fn apply(&mut self, effect: Effect) -> io::Result<Option<Msg>> {
        match effect {
            Effect::Send(mut op) => {
                if let Op::Prompt { attachments, .. } = &mut op {
                    attachments.retain(|path| self.host.cwd().join(path).exists());
                }
                self.outbox.push_back(op);
            }
            Effect::OpenEditor(text) => {
                let host = Arc::clone(&self.host);
                return Ok(self.away(move || host.edit(&text))?.map(Msg::Edited));
            }
            Effect::EditFile(path) => {
                let host = Arc::clone(&self.host);
                let edited = self.away(move || host.edit_file(&path))?;
                return Ok(edited.and_then(Result::err).map(Msg::Told));
            }
            Effect::Suspend => {
                if let Some(Err(error)) = self.away(terminal::stop)? {
                    return Ok(Some(Msg::Told(format!("cannot suspend: {error}"))));
                }
            }
            Effect::EditPlan(id, path) => {
                let host = Arc::clone(&self.host);
                let edit = move || {
                    host.edit_file(&path)?;
                    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
                };
                return Ok(self.away(edit)?.map(|text| Msg::PlanEdited { id, text }));
            }
            Effect::PasteImage => {
                let (clipboard, results) = (self.host.clipboard(), self.results.clone());
                let fetch = async move {
                    // The loop may have ended meanwhile; then nobody wants it.
                    let _ = results.send(Msg::Picture(clipboard.picture().await));
                };
                self.fetching = Some(self.commands.spawn(fetch));
            }
            // Its programs end with it.
            Effect::LeaveImage => self.fetching.take().iter().for_each(AbortHandle::abort),
            Effect::Rewrite(id, text) => {
                let host = Arc::clone(&self.host);
                let edit = move || {
                    let mut edited = host.edit(&text)?;
                    // Editors end a file with a line end, which the text may not have.
                    if text.ends_with('\n') {
                        edited.push('\n');
                    }
                    Ok((edited != text).then_some(edited))
                };
                return Ok(self.away(edit)?.map(|text| Msg::Rewritten { id, text }));
            }
            Effect::Copy(text) => return Ok(Some(Msg::Told(self.copy(&text)?))),
            Effect::Theme { name, light } => {
                return Ok(Some(Msg::Theme(self.host.theme(&name, light).map(Box::new))));
            }
            Effect::Exit => self.done = true,
            Effect::Redraw => self.surface.redraw(),
            Effect::ListFiles(query) => {
                let (files, turn) = (self.files.clone(), self.files.turn());
                self.beside(move |_| {
                    let paths = files.find(&query, turn, Instant::now())?;
                    Some(Msg::Files { query, paths })
                });
            }
            Effect::FindBranch => self.find_branch(),
            Effect::FreeMemory => crate::stdx::memory::give_back(),
            Effect::SaveDraft => {
                self.draft_due.get_or_insert(Instant::now() + DRAFT);
            }
            Effect::Notify(text) => {
                let bytes = terminal::notify("cocode", &text, self.surface.traits());
                self.surface.send(&bytes)?;
            }
            Effect::StatusLine { command, told } => {
                let (mut command, results) = (self.host.shell(&command), self.results.clone());
                command.env("COLUMNS", self.surface.size().width.to_string());
                command.env("LINES", self.surface.size().height.to_string());
                self.commands.spawn(async move {
                    let ran = run_captured(command, Unconfined::Settings, told.as_bytes(), STATUS, STATUS_BYTES).await;
                    let text = ran.ok().filter(|ran| ran.code == Some(0)).map(|ran| ran.stdout).unwrap_or_default();
                    // The loop may have ended meanwhile; then nobody wants it.
                    let _ = results.send(Msg::StatusLine(String::from_utf8_lossy(&text).into_owned()));
                });
            }
            Effect::Progress(progress) => self.surface.progress(progress)?,
            Effect::SetTitle(text) => self.surface.send(&terminal::title(&text))?,
        }
        Ok(None)
    }

    /// Runs something that may block beside the loop; its message comes back to it.
    fn beside(&self, run: impl FnOnce(&dyn Host) -> Option<Msg> + Send + 'static) {
        let (host, results) = (Arc::clone(&self.host), self.results.clone());
        tokio::task::spawn_blocking(move || {
            if let Some(msg) = run(host.as_ref()) {
                // The loop may have ended meanwhile; then nobody wants it.
                let _ = results.send(msg);
            }
        });
    }

    fn find_branch(&self) {
        self.beside(move |host| Some(Msg::Branch(host.branch())));
    }

    fn away<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<Option<T>> {
        let Some((keyboard, session)) = &self.modes else { return Ok(None) };
        terminal::away(&mut self.surface, session, keyboard, run).map(Some)
    }

    fn copy(&mut self, text: &str) -> io::Result<String> {
        match terminal::copy(text, self.surface.traits()) {
            Some(bytes) => {
                self.surface.send(&bytes)?;
                Ok(format!("copied {} characters", text.chars().count()))
            }
            None => Ok("too long for the terminal's clipboard: use /export to write a file".into()),
        }
    }
}

/// How bright a color looks, from 0 to 255.
fn brightness(red: u8, green: u8, blue: u8) -> u32 {
    (u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114) / 1000
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::config::paths::Env;
    use crate::message::Message;
    use crate::protocol::{Delivery, Item};
    use crate::session::Pictures;
    use crate::tui::app::Options;
    use crate::tui::keymap::Keymap;
    use crate::tui::terminal::{Queries, Traits};

    /// A terminal emulator that outlives the surface.
    #[derive(Clone)]
    struct Emulator(Arc<Mutex<vt100::Parser>>);

    impl Output for Emulator {
        fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().process(bytes);
            Ok(())
        }

        fn size(&self) -> Option<Size> {
            Some(Size::new(60, 12))
        }
    }

    /// Remembers what it was asked to keep.
    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Host for Kept {
        fn cwd(&self) -> &Path {
            Path::new("/nowhere")
        }

        fn save_draft(&self, draft: &Typed) {
            self.0.lock().unwrap().push(draft.text.clone());
        }

        fn edit(&self, _: &str) -> Result<String, String> {
            Err("there is no editor".into())
        }

        fn edit_file(&self, _path: &Path) -> Result<(), String> {
            Ok(())
        }

        fn clipboard(&self) -> Clipboard {
            Clipboard::new(&Env::default(), Pictures::new(Path::new("/nowhere")), Vec::new())
        }

        fn shell(&self, _: &str) -> Command {
            Command::new("true")
        }

        fn theme(&self, name: &str, _light: bool) -> Result<Theme, String> {
            Theme::load(name).map_err(|error| error.to_string())
        }

        fn branch(&self) -> Option<String> {
            Some("main".into())
        }
    }

    #[tokio::test]
    async fn a_prompt_goes_out_and_its_answer_stands_in_the_scrollback() {
        let side = |cells: u16| cells.try_into().unwrap();
        let emulator = Emulator(Arc::new(Mutex::new(vt100::Parser::new(side(12), side(60), 100))));
        let options = Options {
            theme: Theme::dark(),
            keymap: Keymap::default(),
            commands: crate::commands::Registry::builtin(),
            reduced_motion: true,
            notifications: true,
            theme_name: "dark".into(),
            highlight: true,
        };
        let surface = Surface::open(emulator.clone(), Traits::detect(|_| None), Queries::default());
        let (keys, inputs) = unbounded_channel();
        let (ops, mut asked) = channel(1);
        let (events, told) = channel(8);
        let host = Arc::new(Kept::default());
        let terminal = Terminal { surface, modes: None, inputs };
        let loop_ = run(App::new(options, (60, 12)), terminal, ops, told, Arc::clone(&host) as Arc<dyn Host>);
        let press = |code, modifiers| keys.send(Input::Key(KeyEvent::new(code, modifiers))).unwrap();
        let user = async {
            press(KeyCode::Char('h'), KeyModifiers::NONE);
            press(KeyCode::Char('i'), KeyModifiers::NONE);
            press(KeyCode::Enter, KeyModifiers::NONE);
            let prompt = Op::Prompt {
                text: "hi".into(),
                attachments: Vec::new(),
                delivery: Delivery::Steer,
                thinking: None,
                data: Vec::new(),
            };
            assert_eq!(asked.recv().await, Some(Op::Remember("hi".into())));
            assert_eq!(asked.recv().await, Some(prompt));
            for (seq, message) in [Message::prompt("hi"), Message::reply(vec![crate::message::Block::text("Hello.")])]
                .into_iter()
                .enumerate()
            {
                let item = Item::Message { seq: seq as u64, message: message.into() };
                events.send(Event::Item(item)).await.unwrap();
            }
            press(KeyCode::Char('x'), KeyModifiers::NONE);
            keys.send(Input::Signal(Signal::Terminate)).unwrap();
            assert_eq!(asked.recv().await, Some(Op::Shutdown));
            events.send(Event::Closed).await.unwrap();
        };
        let (left, ()) = tokio::join!(loop_, user);
        assert_eq!(left.unwrap(), Left::Signal(Signal::Terminate));
        let screen = emulator.0.lock().unwrap().screen().contents();
        let rows: Vec<&str> = screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        assert!(rows.iter().any(|row| row.contains("hi")) && rows.iter().any(|row| row.contains("Hello.")), "{rows:?}");
        assert_eq!(host.0.lock().unwrap().last().map(String::as_str), Some("x"), "the draft is kept");
    }
}
