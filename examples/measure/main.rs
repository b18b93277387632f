//! Measures what the terminal agent costs: start, idle, keys, streams, tool rounds and headless runs, each against a
//! scripted model on loopback and in a pseudo-terminal of 120x40 whose emulator answers as a real terminal does. Beside
//! each figure is its floor: what a program costs that only prints what it gets, measured in the same run.
//!
//! `cargo run --release --example measure -- [--binary PATH] [--smoke] [--json] [--long] [--floods]`. `--smoke` takes few
//! samples, to see that the measuring works. `--long` and `--floods` measure what they are called after, and nothing else.
//! Fails only when the program does something wrong, never for being slow.

#[path = "../../tests/it/support/screen.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod screen;

mod floods;
mod floor;
mod long;
mod process;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use screen::{Launch, Screen};
use server::Server;

/// A key that no agent prints by itself.
const KEY: char = '§';
/// Keys typed into one prompt line.
const KEYS: usize = 50;

struct Plan {
    binary: PathBuf,
    target: Target,
    smoke: bool,
    json: bool,
    long: bool,
    floods: bool,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Agent,
    /// This program in its other role: see `floor`.
    Floor,
}

/// One line of the table.
struct Figure {
    name: &'static str,
    value: f64,
    /// What is asked of it; none where nothing is.
    most: Option<f64>,
}

struct Table(Vec<Figure>);

impl Table {
    #[expect(clippy::print_stderr, reason = "progress goes to stderr, so that the output stays a table")]
    fn add(&mut self, name: &'static str, value: f64, most: impl Into<Option<f64>>) {
        let most = most.into();
        eprintln!("{name}: {value:.4}");
        self.0.push(Figure { name, value, most });
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rest = std::env::args().skip(1).peekable();
    if rest.next_if(|argument| argument == "--floor").is_some() {
        return Ok(floor::run(rest.skip_while(|argument| argument != "-p").nth(1))?);
    }
    let mut plan = arguments()?;
    let server = Server::start()?;
    if plan.long || plan.floods {
        let mut table = Table(Vec::new());
        if plan.long {
            table.0.extend(long::measure(&plan, &server).0);
        }
        if plan.floods {
            table.0.extend(floods::measure(&plan, &server)?.0);
        }
        print(&plan, &Table(Vec::new()), &table);
        return Ok(());
    }
    let mut measure = |target| -> Result<Table, Box<dyn std::error::Error>> {
        plan.target = target;
        let mut table = Table(Vec::new());
        starts(&plan, &server, &mut table);
        terminal(&plan, &server, &mut table)?;
        headless(&plan, &server, &mut table)?;
        Ok(table)
    };
    let (floor, table) = (measure(Target::Floor)?, measure(Target::Agent)?);
    print(&plan, &floor, &table);
    Ok(())
}

fn arguments() -> Result<Plan, String> {
    let binary = PathBuf::from("target/release/cocode");
    let mut plan = Plan { binary, target: Target::Agent, smoke: false, json: false, long: false, floods: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--binary" => plan.binary = arguments.next().ok_or("--binary needs a path")?.into(),
            "--smoke" => plan.smoke = true,
            "--json" => plan.json = true,
            "--long" => plan.long = true,
            "--floods" => plan.floods = true,
            _ => {
                return Err(format!("unknown argument {argument}; known: --binary --smoke --json --long --floods"));
            }
        }
    }
    plan.binary = std::path::absolute(&plan.binary).map_err(|error| error.to_string())?;
    if !plan.binary.exists() {
        return Err(format!("{} does not exist: build it with cargo build --release", plan.binary.display()));
    }
    Ok(plan)
}

impl Plan {
    /// The program and its first argument.
    fn command(&self) -> (PathBuf, &'static str) {
        match self.target {
            Target::Agent => (self.binary.clone(), "--dangerously-skip-permissions"),
            Target::Floor => (std::env::current_exe().expect("a program has a file"), "--floor"),
        }
    }

    /// How often what takes long is measured.
    fn repeats(&self) -> usize {
        if self.smoke { 1 } else { 3 }
    }
}

/// The variables that keep a run to itself, with everything below `home`.
fn environment(server: &Server, home: &Path) -> Vec<(&'static str, String)> {
    let home = home.display();
    vec![
        ("ANTHROPIC_API_KEY", "test".into()),
        ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", server.port)),
        ("COCODE_HOME", format!("{home}/state")),
        ("COCODE_CONFIG_DIR", format!("{home}/config")),
        ("COCODE_SANDBOXED", "1".into()),
    ]
}

/// Starts the program in a terminal and waits for its first output; the directory holds its files and goes away with it.
fn launch(plan: &Plan, server: &Server) -> (Screen, tempfile::TempDir) {
    let home = tempfile::tempdir().expect("a directory for the program");
    let (program, argument) = plan.command();
    let launch = Launch::new(program).args([argument]);
    let launch =
        environment(server, home.path()).into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let screen = launch.cwd(home.path()).size(120, 40).start();
    // A key before the first output would be echoed by the terminal itself.
    let start = Instant::now();
    while screen.bytes() == 0 && start.elapsed() < screen::DEADLINE {
        std::thread::sleep(Duration::from_micros(200));
    }
    (screen, home)
}

fn keys_shown(text: &str) -> usize {
    text.chars().filter(|c| *c == KEY).count()
}

/// Types the key and returns how long it takes to show, in milliseconds.
fn key(screen: &Screen) -> f64 {
    let before = keys_shown(&screen.text());
    let start = Instant::now();
    screen.send(KEY.to_string());
    screen.wait_for("the key", |text| keys_shown(text) > before);
    millis(start)
}

fn clear_keys(screen: &Screen) {
    let count = keys_shown(&screen.text());
    screen.send("\x7f".repeat(count));
    screen.wait_for("an empty prompt", |text| keys_shown(text) == 0);
}

/// The 95th percentile of key times at an even pace, in milliseconds.
fn keys(screen: &Screen, count: usize) -> f64 {
    let mut times = Vec::new();
    for index in 0..count {
        pause(index);
        times.push(key(screen));
    }
    p95(times)
}

/// Waits before the next key, not in step with a frame clock.
fn pause(index: usize) {
    std::thread::sleep(Duration::from_millis(12 + u64::try_from(index * 7 % 11).unwrap_or(0)));
}

fn p95(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Starts, then the last one at rest.
fn starts(plan: &Plan, server: &Server, table: &mut Table) {
    let (mut times, mut cpus) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..if plan.smoke { 2 } else { 15 } {
        drop(last.take());
        let start = Instant::now();
        let (screen, home) = launch(plan, server);
        key(&screen);
        times.push(start.elapsed().as_secs_f64());
        cpus.push(process::cpu(screen.pid()));
        last = Some((screen, home));
    }
    table.add("exec to usable prompt, s", median(times), 0.020);
    table.add("CPU s spent by then", median(cpus), 0.015);
    let Some((screen, _home)) = last else { return };
    std::thread::sleep(Duration::from_secs(if plan.smoke { 1 } else { 3 }));
    table.add("memory at idle, PSS MiB", process::pss(screen.pid()), 25.0);
    table.add("threads at idle", process::threads(screen.pid()), 8.0);
    let (threads, bytes) = (process::thread_times(screen.pid()), screen.bytes());
    std::thread::sleep(Duration::from_secs(if plan.smoke { 1 } else { 10 }));
    table.add("CPU s over 10 s idle", process::spent_since(&threads, screen.pid()), 0.001);
    table.add("bytes over 10 s idle", bytes_since(&screen, bytes), 0.0);
    clear_keys(&screen);
    table.add("key to screen, idle, p95 ms", keys(&screen, if plan.smoke { 10 } else { KEYS }), 2.0);
}

/// Sends a prompt and waits for the turn's last word; returns the seconds from Enter on.
fn turn(screen: &Screen, task: &str, tag: &str) -> f64 {
    screen.send(format!("BENCH:{task}:{tag}"));
    screen.wait_text(&format!(":{tag}"));
    let start = Instant::now();
    screen.send("\r");
    screen.wait_text(&format!("DONE{tag}"));
    start.elapsed().as_secs_f64()
}

fn terminal(plan: &Plan, server: &Server, table: &mut Table) -> Result<(), String> {
    let fresh = || {
        let (screen, home) = launch(plan, server);
        key(&screen);
        clear_keys(&screen);
        (screen, home)
    };
    server.take_requests();
    let (screen, _home) = fresh();
    turn(&screen, "plain:0", "P1");
    std::thread::sleep(Duration::from_millis(500));
    let requests = server.take_requests();
    table.add("first request of a turn, kB", requests.first().map_or(0.0, |size| *size as f64 / 1000.0), 18.0);
    table.add("model requests for one plain turn", requests.len() as f64, 1.0);

    // What only prints mixes keys and text.
    if plan.target == Target::Agent {
        let slow = if plan.smoke { 100 } else { 600 };
        screen.send(format!("BENCH:slow:{slow}:S1\r"));
        screen.wait_text("word5 ");
        table.add(
            "key to screen while 100 deltas/s stream, p95 ms",
            keys(&screen, if plan.smoke { 10 } else { KEYS }),
            2.0,
        );
        clear_keys(&screen);
        screen.wait_text("DONES1");
    }
    let times = (0..plan.repeats()).map(|at| turn(&screen, "deltas:2000", &format!("D2{at}"))).collect();
    table.add("2,000 deltas, Enter to last word visible, s", median(times), 0.08);

    let (mut times, mut cpus, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.repeats() {
        let (screen, _home) = fresh();
        let cpu = process::cpu(screen.pid());
        let count = if plan.smoke { 10_000 } else { 20_000 };
        times.push(turn(&screen, &format!("deltas:{count}"), "D20"));
        screen.settle(Duration::from_millis(500));
        cpus.push(process::cpu(screen.pid()) - cpu);
        memory.push(process::pss(screen.pid()));
        let rows = screen.scrollback_text();
        let shown = (0..1000).filter(|line| rows.matches(&format!("let value_{line} ")).count() == 1).count();
        if shown != 1000 {
            return Err(format!("{shown} of 1,000 lines of code are shown exactly once"));
        }
    }
    table.add("20,000 deltas, s", median(times), 0.3);
    table.add("20,000 deltas, CPU s", median(cpus), 0.6);
    table.add("memory after 20,000 deltas, PSS MiB", median(memory), 45.0);

    let rounds = if plan.smoke { 5 } else { 100 };
    let (mut times, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats() {
        let (screen, _home) = fresh();
        let cpu = process::cpu(screen.pid());
        times.push(turn(&screen, &format!("tools:{rounds}"), "T1") * 1000.0 / f64::from(rounds));
        cpus.push(process::cpu(screen.pid()) - cpu);
    }
    table.add("tool rounds in the terminal, ms a round", median(times), 4.0);
    table.add("100 tool rounds, CPU s", median(cpus), 0.4);
    Ok(())
}

/// Runs without a terminal, one after the other.
fn headless(plan: &Plan, server: &Server, table: &mut Table) -> std::io::Result<()> {
    let runs = if plan.smoke { 2 } else { 20 };
    let cpu = process::cpu_of_ended_children();
    let mut times = Vec::new();
    for _ in 0..runs {
        times.push(one_shot(plan, server, "BENCH:plain:0:H1")?.0);
    }
    let cpu = (process::cpu_of_ended_children() - cpu) / f64::from(runs);
    table.add("one-shot headless answer, s", median(times), 0.025);
    table.add("one-shot headless answer, CPU s", cpu, 0.015);
    let rounds = if plan.smoke { 5 } else { 50 };
    let (mut times, mut memory, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.repeats() {
        let (seconds, most) = one_shot(plan, server, &format!("BENCH:tools:{rounds}:H2"))?;
        times.push(seconds);
        memory.push(most.all);
        own.push(most.own);
    }
    table.add("50 tool rounds headless, s", median(times), 0.25);
    table.add("50 tool rounds headless, max MiB", median(memory), 25.0);
    table.add("50 tool rounds headless, of these not pages of programs, max MiB", median(own), 8.0);
    Ok(())
}

/// Runs one prompt to its end; returns seconds and the most MiB that were seen.
fn one_shot(plan: &Plan, server: &Server, prompt: &str) -> std::io::Result<(f64, process::Resident)> {
    let home = tempfile::tempdir()?;
    let (program, argument) = plan.command();
    let start = Instant::now();
    let mut child = Command::new(program)
        .args([argument, "-p", prompt])
        .env_clear()
        .envs(environment(server, home.path()))
        .env("HOME", home.path())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let mut memory = process::Resident::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory = memory.most(process::resident(child.id()));
        std::thread::sleep(Duration::from_millis(1));
    };
    if !status.success() {
        return Err(std::io::Error::other(format!("{prompt}: {status}")));
    }
    Ok((start.elapsed().as_secs_f64(), memory))
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn bytes_since(screen: &Screen, before: usize) -> f64 {
    (screen.bytes() - before) as f64
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print(plan: &Plan, floor: &Table, table: &Table) {
    if plan.json {
        let rows: Vec<_> = table
            .0
            .iter()
            .map(|Figure { name, value, most }| {
                serde_json::json!({"figure": name, "floor": floor.value(name), "value": value, "most": most})
            })
            .collect();
        println!("{}", serde_json::Value::from(rows));
        return;
    }
    println!("| figure | floor | measured | at most |\n|---|---|---|---|");
    for Figure { name, value, most } in &table.0 {
        let floor = floor.value(name).map_or("–".to_owned(), rounded);
        let most = most.map_or("–".to_owned(), |most| format!("{most}"));
        println!("| {name} | {floor} | {} | {most} |", rounded(*value));
    }
}

fn rounded(value: f64) -> String {
    match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.4}"),
    }
}
