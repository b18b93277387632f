//! Opens the terminal, starts the engine beside it, and brings everything back at the end.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;

use super::app::{App, Options};
use super::clipboard::Clipboard;
use super::drafts::Drafts;
use super::keymap::Keymap;
use super::run::{self, Host, Left, Terminal};
use super::terminal::{Keyboard, Output, Queries, Session, Signal, Surface, Traits, Tty, signals};
use super::theme::{Depth, Theme};
use crate::commands::Registry;
use crate::config::paths::Env;
use crate::config::themes;
use crate::engine::{self, Setup};
use crate::protocol::{Interface, ListKind, Op, Typed};
use crate::session::Pictures;
use crate::stdx::process::Guest;
use crate::stdx::programs;

/// What the terminal front end starts with.
pub struct Start {
    pub setup: Setup,
    /// What to do first.
    pub prompt: Option<String>,
    /// Begin with the list of sessions that these words find; no words, all of them.
    pub choose: Option<String>,
}

/// Runs until the user leaves. Returns the exit code.
///
/// # Errors
/// There is no terminal, `[keys]` names an invalid key, or the terminal cannot be written.
pub fn start(start: Start) -> io::Result<u8> {
    let Start { setup, prompt, choose } = start;
    let no_terminal =
        || io::Error::other("standard input and output must be a terminal; `cocode -p` works without one");
    let (input, output) =
        (Tty::of(io::stdin())?.ok_or_else(no_terminal)?, Tty::of(io::stdout())?.ok_or_else(no_terminal)?);
    let (modes, measure) = (Tty::of(io::stdin())?.ok_or_else(no_terminal)?, Tty::of(io::stdout())?);
    let size = output.size().ok_or_else(no_terminal)?;
    let options = options(&setup).map_err(io::Error::other)?;
    let home = Home::new(&setup);
    let mut app = App::new(options, (size.width, size.height));
    app.begin_in(setup.project.clone());
    let interface = setup.loaded.config.interface();
    app.use_status_line(interface.status_line, Instant::now());
    app.use_vim(interface.vim);
    *app.transcript.rebuilds() = interface.rebuild;
    // Other words at the start take its place.
    if let Some(draft) = home.drafts.read().filter(|_| prompt.is_none()) {
        app.set_draft(&draft);
    }
    let fullscreen = setup.loaded.config.tui.fullscreen;
    let mut first = Vec::new();
    if let Some(words) = choose {
        first.push(Op::List { what: ListKind::Sessions });
        app.search_sessions(words);
    }
    first.extend(prompt.map(|prompt| app.begin_with(prompt)).unwrap_or_default());
    // Two workers: one for the engine, one for what it waits for. The loop has the main thread. Threads for blocking calls
    // outlive a round of them, not the work.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(1))
        .enable_all()
        .build()?;
    let left = runtime.block_on(async {
        let mut session = Session::open(modes.into())?;
        if let Some(shared) = session.share() {
            setup.commands.watch_terminal(shared);
        }
        let queries = Queries::default();
        let env = setup.env.clone();
        let traits = Traits::detect(|name| env.get(name).map(str::to_owned));
        let traits = if setup.loaded.config.tui.screen_reader { traits.plain() } else { traits };
        app.use_fullscreen(fullscreen && !traits.plain);
        let surface = Surface::open(output, traits, queries.clone());
        let (sender, inputs) = unbounded_channel();
        let keyboard = Keyboard::start(input.into(), queries, sender.clone())?;
        let watch = signals(move || measure.as_ref().and_then(Output::size), sender)?;
        let handle = engine::start(setup);
        for op in first {
            // The channel holds more than these; the engine cannot have ended yet.
            let _ = handle.ops.try_send(op);
        }
        let terminal = Terminal { surface, modes: Some((keyboard, session)), inputs };
        let left = run::run(app, terminal, handle.ops, handle.events, Arc::new(home)).await;
        watch.abort();
        // What is pending is written within a moment; a model call that hangs must not hold the shell up.
        let ended = tokio::time::timeout(Duration::from_millis(500), handle.task).await;
        left.map(|left| (left, matches!(ended, Ok(Err(_)))))
    });
    runtime.shutdown_background();
    let (left, crashed) = match left {
        // Writing to a terminal that is gone fails like this, often before its signal is heard.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => (Left::Gone, false),
        left => left?,
    };
    Ok(match left {
        Left::Done if crashed => 1,
        Left::Ended => 1,
        Left::Done => 0,
        Left::Gone | Left::Signal(Signal::Hangup) => 129,
        Left::Signal(Signal::Interrupt) => 130,
        Left::Signal(_) => 143,
    })
}

fn options(setup: &Setup) -> Result<Options, String> {
    let config = &setup.loaded.config;
    let keymap = Keymap::new(&config.keys).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("[keys]: {}", lines.join("; "))
    })?;
    let Interface { theme: theme_name, notifications, highlight, reduced_motion, .. } = config.interface();
    let looks = Looks::new(setup);
    // One that cannot be read is said once there is a screen, and another one is shown meanwhile.
    let mut theme = looks.theme(&theme_name, false).or_else(|_| looks.theme("dark", false))?;
    if !highlight {
        theme.syntax = None;
    }
    Ok(Options {
        theme,
        theme_name,
        highlight,
        keymap,
        // The skills come with an event, once they are loaded.
        commands: Registry::builtin(),
        reduced_motion,
        notifications,
    })
}

/// Where themes are, and how many colors they may have.
struct Looks {
    depth: Depth,
    folder: PathBuf,
}

impl Looks {
    fn new(setup: &Setup) -> Looks {
        Looks { depth: depth(&setup.env), folder: setup.paths.themes() }
    }

    fn theme(&self, name: &str, light: bool) -> Result<Theme, String> {
        let name = match (name, light) {
            ("auto", true) => "light",
            ("auto", false) => "dark",
            (name, _) => name,
        };
        let file = self.folder.join(name).with_extension("toml");
        let is_own = themes::is_name(name) && !themes::SHIPPED.contains(&name);
        let named = |error: &dyn Display| match is_own {
            true => format!("themes/{name}.toml: {error}"),
            false => error.to_string(),
        };
        let own = is_own.then(|| std::fs::read_to_string(&file)).transpose().map_err(|error| named(&error))?;
        Theme::for_terminal(name, own.as_deref(), self.depth).map_err(|error| named(&error))
    }
}

/// How many colors the terminal says it has.
fn depth(env: &Env) -> Depth {
    let value = |name| env.get(name).unwrap_or_default();
    let term = value("TERM");
    if !value("NO_COLOR").is_empty() || term == "dumb" {
        Depth::Mono
    } else if matches!(value("COLORTERM"), "truecolor" | "24bit")
        || term.ends_with("-direct")
        || !value("WT_SESSION").is_empty()
    {
        Depth::TrueColor
    } else if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") || term.contains("tmux")
    {
        Depth::Indexed
    } else {
        Depth::Ansi16
    }
}

/// Files and programs of the user that the front end needs.
struct Home {
    cwd: PathBuf,
    drafts: Drafts,
    editor: Option<String>,
    clipboard: Clipboard,
    /// Variables that no other program gets to see.
    secrets: Vec<String>,
    looks: Looks,
}

impl Home {
    fn new(setup: &Setup) -> Home {
        let name = crate::stdx::hash::sha256_hex(setup.project.as_os_str().as_encoded_bytes());
        let editor = ["VISUAL", "EDITOR"]
            .into_iter()
            .filter_map(|name| setup.env.get(name))
            .find(|editor| !editor.trim().is_empty());
        Home {
            cwd: setup.project.clone(),
            drafts: Drafts::new(&setup.paths.own_state().join("drafts"), &name[..16]),
            editor: editor.map(str::to_owned),
            clipboard: Clipboard::new(&setup.env, Pictures::new(&setup.paths.home), setup.loaded.config.secret_env()),
            secrets: setup.loaded.config.secret_env(),
            looks: Looks::new(setup),
        }
    }
}

impl Host for Home {
    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn save_draft(&self, draft: &Typed) {
        if let Err(error) = self.drafts.write(draft) {
            tracing::warn!(%error, "draft");
        }
    }

    fn edit(&self, text: &str) -> Result<String, String> {
        let file =
            tempfile::Builder::new().prefix("cocode-").suffix(".md").tempfile().map_err(|error| error.to_string())?;
        std::fs::write(file.path(), text).map_err(|error| error.to_string())?;
        self.edit_file(file.path()).map_err(|error| format!("{error}; the text is unchanged"))?;
        let text = std::fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    fn edit_file(&self, path: &Path) -> Result<(), String> {
        let editor = self.editor.as_deref().unwrap_or("vi");
        // Through a shell, since the variable may hold arguments, too.
        let shell = programs::own("sh").map_err(|error| format!("cannot start {editor}: {error}"))?;
        let mut command = Command::new(shell);
        command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).env("PATH", programs::own_path());
        for name in &self.secrets {
            command.env_remove(name);
        }
        let ended = command.spawn().and_then(|mut child| {
            let _guest = Guest::new(child.id());
            child.wait()
        });
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if status.code() == Some(127) => Err(format!("{editor} not found: set VISUAL or EDITOR")),
            Ok(status) => Err(format!("{editor} exited with {status}")),
            Err(error) => Err(format!("cannot start {editor}: {error}")),
        }
    }

    fn clipboard(&self) -> Clipboard {
        self.clipboard.clone()
    }

    fn shell(&self, line: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.cwd).env("PATH", programs::own_path());
        for name in &self.secrets {
            command.env_remove(name);
        }
        command
    }

    fn theme(&self, name: &str, light: bool) -> Result<Theme, String> {
        self.looks.theme(name, light)
    }

    fn branch(&self) -> Option<String> {
        crate::stdx::git::branch(&self.cwd)
    }
}
