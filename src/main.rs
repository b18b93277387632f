//! Arguments to configuration, to one front end, to an exit code.

use std::ffi::OsString;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use cocode::agent::Presence;
use cocode::cli::{self, Cli, Earlier, Here, InputFormat, Offline, OutputFormat, PermissionsCommand, Start, Sub};
use cocode::config::paths::{Env, Paths};
use cocode::config::{self, Loaded};
use cocode::engine::check::Check;
use cocode::engine::{self, Begin, Setup};
use cocode::headless::{self, Input, Output, Prompt};
use cocode::permission::{Mode, Sandbox, Trust};
use cocode::prove::Proof;
#[cfg(target_os = "linux")]
use cocode::sandbox::helper;
use cocode::sandbox::proxy::client;
use cocode::session::{self, Overwrite, Session, index};
use cocode::stdx::ansi::Shown;
use cocode::stdx::clock::Clocks;
use cocode::stdx::{panics, process, programs, secrecy};

/// Exit code for mistakes in what was typed or configured.
const USAGE: u8 = 2;

/// Most bytes of standard input that become a prompt: more than any model reads.
const MOST_PIPED: u64 = 16 << 20;
/// Exit code of a program that panicked, by custom.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = helper::serve(std::env::args_os()) {
        return code;
    }
    if let Some(code) = connect(std::env::args_os()) {
        return code;
    }
    // SAFETY: nothing has been started yet that could read the environment meanwhile.
    unsafe {
        programs::settle();
        secrecy::keep();
    }
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        // An argument is quoted as it came, escapes and all.
        Err(error) if error.use_stderr() => {
            let _ = write!(Shown::new(io::stderr()), "{error}");
            return ExitCode::from(USAGE);
        }
        Err(error) => error.exit(),
    };
    let ended = panics::reported(|| run(&cli));
    // Nothing that was started outlives us, however we ended.
    process::end_all();
    match ended {
        Some(Ok(code)) => ExitCode::from(code),
        Some(Err(Stop { code, text })) => {
            let mut err = Shown::new(io::stderr());
            // The reader of our errors may be gone; nobody is left to tell.
            let _ = writeln!(err, "error: {text}").and_then(|()| err.flush());
            ExitCode::from(code)
        }
        None => ExitCode::from(PANICKED),
    }
}

/// Serves as a `ProxyCommand` where the first argument says so: inside a confined command nothing else can be done.
fn connect(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.skip(1);
    if arguments.next()? != client::NAME {
        return None;
    }
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let Err(problem) = client::run(arguments, std::env::var(client::VARIABLE).ok()) else {
        return Some(ExitCode::SUCCESS);
    };
    let mut err = Shown::new(io::stderr());
    let _ = writeln!(err, "error: {problem}").and_then(|()| err.flush());
    Some(ExitCode::FAILURE)
}

/// Why the program ends before it does anything.
struct Stop {
    code: u8,
    text: String,
}

fn stop(code: u8) -> impl Fn(String) -> Stop {
    move |text| Stop { code, text }
}

fn run(cli: &Cli) -> Result<u8, Stop> {
    let env = Env::process();
    let cwd = folder(cli.cwd.as_deref())?;
    let paths = Paths::new(&env).map_err(|error| stop(USAGE)(error.to_string()))?;
    let output = |error: io::Error| stop(1)(format!("cannot write: {error}"));
    match &cli.command {
        Some(Sub::Own(own)) => {
            return cli::run(
                own,
                Here { env: &env, paths: &paths, cwd: &cwd },
                &mut Shown::new(io::stdout().lock()),
                &mut Shown::new(io::stderr().lock()),
            )
            .map_err(output);
        }
        Some(Sub::Permissions(PermissionsCommand::Check { .. })) => {
            return check_permissions(Check::new(Here { env: &env, paths: &paths, cwd: &cwd })).map_err(output);
        }
        Some(Sub::Export { session, format, output: file, force }) => {
            let overwrite = if *force { Overwrite::Forced } else { Overwrite::Never };
            return export(&paths, session, *format, file.as_deref().map(|file| (file, overwrite)));
        }
        Some(Sub::Undo { session }) => return undo(&paths, session),
        Some(Sub::Prove { json }) => return prove(*json),
        None => {}
    }
    let start = cli.start().unwrap_or_else(|error| error.exit());
    let loaded = config::load(&paths, &env, cli.layer()).map_err(|broken| stop(USAGE)(broken.to_string()))?;
    let servers = cli.servers();
    for given in &servers.configs {
        config::servers::config_of(given, &cwd).map_err(|problem| stop(USAGE)(problem.to_string()))?;
    }
    let mut loaded = loaded.with_flags(servers);
    loaded.plugin_dirs = cli.flags.plugin_dir.iter().map(|folder| cwd.join(folder)).collect();
    if let Some(why) = cli.mode().and_then(|mode| mode.refused(engine::root(), sandbox(&env))) {
        return Err(stop(USAGE)(why.to_owned()));
    }
    if !cli.ignored.is_empty() {
        let mut err = Shown::new(io::stderr());
        // A program that does not read it misses little.
        let _ = writeln!(err, "ignored, since cocode has no such flag: {}", cli.ignored.join(" "))
            .and_then(|()| err.flush());
    }
    let _log = config::logging::start(&paths, &loaded.config.log, config::logging::today);
    match start.headless {
        Some(_) => print(start, loaded, paths, env, cwd, cli.mode()),
        None => cocode::tui::start(terminal(start, loaded, paths, env, cwd, cli.mode())?)
            .map_err(|error| stop(1)(error.to_string())),
    }
}

/// What the user says is around us.
fn sandbox(env: &Env) -> Sandbox {
    if env.get("COCODE_SANDBOXED") == Some("1") { Sandbox::Outer } else { Sandbox::None }
}

fn folder(given: Option<&Path>) -> Result<PathBuf, Stop> {
    // The one place that asks the process for its working directory.
    #[expect(clippy::disallowed_methods)]
    let here =
        std::env::current_dir().map_err(|error| stop(1)(format!("the working directory no longer exists: {error}")))?;
    let folder = given.map_or_else(|| here.clone(), |given| here.join(given));
    let folder =
        folder.canonicalize().map_err(|error| stop(USAGE)(format!("cannot work in {}: {error}", folder.display())))?;
    if !folder.is_dir() {
        return Err(stop(USAGE)(format!("{} is not a folder", folder.display())));
    }
    Ok(folder)
}

fn setup(start: &Start, loaded: Loaded, paths: Paths, env: Env, project: PathBuf, mode: Option<Mode>) -> Setup {
    let sandbox = sandbox(&env);
    let commands = cocode::sandbox::Sandbox::of_this_program(loaded.config.sandbox.enabled);
    let commands = commands.remembered_in(paths.sandbox());
    let script = match &start.offline {
        Offline::Script(file) => Some(project.join(file)),
        Offline::Model | Offline::No => None,
    };
    Setup {
        begin: match &start.earlier {
            // The list is shown by the front end once the engine runs.
            Earlier::None | Earlier::Choose => Begin::New,
            Earlier::Last => Begin::Continue,
            Earlier::Search(query) => Begin::Resume(query.clone()),
        },
        fork: start.fork,
        trust: start.trust,
        offline: start.offline == Offline::Model,
        script,
        mode,
        thinking: start.thinking,
        system: start.system_prompt.clone(),
        append_system: start.append_system_prompt.clone(),
        output_schema: start.headless.as_ref().and_then(|headless| headless.json_schema.clone()),
        loaded,
        paths,
        env,
        project,
        sandbox,
        commands,
        piped: None,
        presence: if start.headless.is_some() { Presence::Unattended } else { Presence::Attended },
        may_bypass: start.given.may_bypass && Mode::Bypass.refused(engine::root(), sandbox).is_none(),
        host: None,
        session_id: start.given.session_id.clone(),
        resume_at: start.given.resume_at,
        only_tools: start.given.tools.clone(),
        clocks: Clocks::real(),
    }
}

fn terminal(
    start: Start,
    loaded: Loaded,
    paths: Paths,
    env: Env,
    cwd: PathBuf,
    mode: Option<Mode>,
) -> Result<cocode::tui::Start, Stop> {
    if !io::stdin().is_terminal() {
        let text = "standard input is not a terminal: use `cocode -p \"prompt\"`";
        return Err(stop(USAGE)(text.to_owned()));
    }
    let (mut start, mut choose) = (start, None);
    // Words that several sessions have lead to the list of those.
    let several = |words: &str| {
        matches!(index::resolve(&paths.home, words, SystemTime::now()), Err(session::Error::Ambiguous { .. }))
    };
    match &start.earlier {
        Earlier::Choose => choose = Some(String::new()),
        Earlier::Search(words) if several(words) => {
            choose = Some(words.clone());
            start.earlier = Earlier::Choose;
        }
        _ => {}
    }
    let prompt = start.prompt.clone();
    Ok(cocode::tui::Start { setup: setup(&start, loaded, paths, env, cwd, mode), prompt, choose })
}

fn print(start: Start, loaded: Loaded, paths: Paths, env: Env, cwd: PathBuf, mode: Option<Mode>) -> Result<u8, Stop> {
    let Some(headless) = &start.headless else { return Ok(0) };
    let project = loaded.with_project(&cwd, &Trust::default());
    if project.project_broken() {
        // Nobody can see what is ignored and decide what it would have denied.
        let problems: Vec<String> = project.diagnostics.iter().map(ToString::to_string).collect();
        return Err(stop(USAGE)(problems.join("\n")));
    }
    let output = match headless.output {
        OutputFormat::Text => Output::Text,
        OutputFormat::Json => Output::Json,
        OutputFormat::StreamJson => Output::StreamJson,
    };
    let input = match headless.input {
        InputFormat::StreamJson => Input::StreamJson(Box::new(BufReader::new(io::stdin()))),
        InputFormat::Text => Input::Prompt(prompt(start.prompt.clone())?),
    };
    let talk = headless.talk;
    let setup = setup(&start, loaded, paths, env, cwd, mode);
    let (mut out, mut err) = (Shown::new(io::stdout()), Shown::new(io::stderr()));
    // One thread does: there is no screen to keep alive.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| stop(1)(format!("cannot start the async runtime: {error}")))?;
    let ended = runtime.block_on(headless::start(setup, input, (output, talk), &mut out, &mut err));
    // A blocked read of standard input must not hold the exit up.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => Ok(exit as u8),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(headless::Exit::Error as u8),
        Err(error) => Err(stop(1)(format!("cannot write: {error}"))),
    }
}

/// The prompt of `-p`: what was typed, and what standard input holds.
fn prompt(typed: Option<String>) -> Result<Prompt, Stop> {
    let mut piped = None;
    if !io::stdin().is_terminal() {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(MOST_PIPED + 1).read_to_end(&mut bytes);
        read.map_err(|error| stop(1)(format!("cannot read standard input: {error}")))?;
        if bytes.len() as u64 > MOST_PIPED {
            let text =
                format!("standard input is larger than {} MiB: name the file in the prompt instead", MOST_PIPED >> 20);
            return Err(stop(USAGE)(text));
        }
        piped = Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.trim().is_empty());
    }
    let typed = typed.filter(|text| !text.trim().is_empty());
    if typed.is_none() && piped.is_none() {
        return Err(stop(USAGE)("no prompt: use `cocode -p \"prompt\"`, or pipe one in".to_owned()));
    }
    Ok(Prompt { typed, piped })
}

/// Reads JSON lines and decides each without running anything.
fn check_permissions(mut check: Check<'_>) -> io::Result<u8> {
    let (mut out, mut code) = (Shown::new(io::stdout().lock()), 0);
    for (at, line) in io::stdin().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match check.line(&line) {
            Ok(answer) => writeln!(out, "{answer}")?,
            Err(problem) => {
                let mut err = Shown::new(io::stderr());
                writeln!(err, "error: line {}: {problem}", at + 1)?;
                err.flush()?;
                code = USAGE;
            }
        }
    }
    Ok(code)
}

fn undo(paths: &Paths, query: &str) -> Result<u8, Stop> {
    let failed = |error: cocode::session::Error| stop(1)(error.to_string());
    let id = index::resolve(&paths.home, query, SystemTime::now()).map_err(failed)?;
    let done = Session::open(&paths.home, &id, SystemTime::now).and_then(|mut session| session.undo_all());
    let done = done.map_err(failed)?;
    let mut out = Shown::new(io::stdout());
    let written = done.lines().iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
    written.map_err(|error| stop(1)(format!("cannot write: {error}")))?;
    Ok(u8::from(!done.refused.is_empty()))
}

/// Exit code 1: something that is promised does not hold here.
fn prove(json: bool) -> Result<u8, Stop> {
    let failed = |error: io::Error| stop(1)(format!("cannot try it: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut err = Shown::new(io::stderr());
    let said = |what: &str| {
        // Who cannot read it misses little.
        let _ = writeln!(err, "{what} …").and_then(|()| err.flush());
    };
    let proof = runtime.block_on(Proof::find(&program, said)).map_err(failed)?;
    let text = if json { serde_json::to_string(&proof).map_err(io::Error::from) } else { Ok(proof.text()) };
    let mut out = Shown::new(io::stdout());
    let written = text.and_then(|text| writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()));
    written.map_err(|error| stop(1)(format!("cannot write: {error}")))?;
    Ok(u8::from(!proof.holds()))
}

fn export(paths: &Paths, query: &str, format: cli::ExportFormat, file: Option<(&Path, Overwrite)>) -> Result<u8, Stop> {
    let failed = |error: cocode::session::Error| stop(1)(error.to_string());
    let id = index::resolve(&paths.home, query, SystemTime::now()).map_err(failed)?;
    let session = Session::open_read_only(&paths.home, &id, SystemTime::now).map_err(failed)?;
    let text = match format {
        cli::ExportFormat::Markdown => session.to_markdown(),
        cli::ExportFormat::Json => session.to_json(),
    }
    .map_err(failed)?;
    let write = |out: &mut dyn Write| out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let (written, to) = match file {
        // A terminal is a file, too.
        Some((file, overwrite)) => (
            session::export_file(file, overwrite).and_then(|file| write(&mut Shown::new(file))),
            format!(" to {}", file.display()),
        ),
        None => (write(&mut Shown::new(io::stdout())), String::new()),
    };
    written.map_err(|error| {
        let force = if error.kind() == io::ErrorKind::AlreadyExists { ": --force replaces it" } else { "" };
        stop(1)(format!("cannot write the export{to}: {error}{force}"))
    })?;
    Ok(0)
}
