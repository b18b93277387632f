//! `compaction_lab facts`: which planted facts survive compaction, as a table or as JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cache::Density;
use crate::script::Script;
use crate::survive::{self, AFTER, Case, Row, Tier, WINDOWS};
use crate::writers::Writer;

/// Where the scripts are.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compaction");

/// Percent by which a receipt may be off.
const RIGHT: f64 = 3.0;

const USAGE: &str = "facts [--file FILE] [--tier micro|notes|full|trim] [--window TOKENS] [--writer NAME|all] [--density PERCENT] \
                     [--least N] [--json] [--lost] [--show] [--write-session DIR]";

struct Arguments {
    files: Vec<PathBuf>,
    tiers: Vec<Tier>,
    windows: Vec<u64>,
    writers: Vec<Writer>,
    /// With one in percent receipts have to be right.
    density: Density,
    /// Facts that have to be alive in every row.
    least: usize,
    json: bool,
    lost: bool,
    show: bool,
    write_session: Option<PathBuf>,
}

impl Arguments {
    fn read(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments {
            files: Vec::new(),
            tiers: Tier::ALL.to_vec(),
            windows: WINDOWS.to_vec(),
            writers: vec![Writer::Honest],
            density: Density::Uneven,
            least: 0,
            json: false,
            lost: false,
            show: false,
            write_session: None,
        };
        while let Some(name) = given.next() {
            match name.as_str() {
                "--json" => arguments.json = true,
                "--lost" => arguments.lost = true,
                "--show" => arguments.show = true,
                _ => {
                    let value = given.next().ok_or_else(|| format!("{name} needs a value: {USAGE}"))?;
                    arguments.set(&name, &value)?;
                }
            }
        }
        if arguments.files.is_empty() {
            let found = fs::read_dir(SCRIPTS).map_err(|error| format!("{SCRIPTS}: {error}"))?;
            let found = found.filter_map(|entry| Some(entry.ok()?.path()));
            arguments.files = found.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
            arguments.files.sort();
        }
        Ok(arguments)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let unknown = || format!("{name} {value} is unknown: {USAGE}");
        match name {
            "--file" => self.files.push(value.into()),
            "--write-session" => self.write_session = Some(value.into()),
            "--tier" => self.tiers = vec![Tier::ALL.into_iter().find(|it| it.name() == value).ok_or_else(unknown)?],
            "--window" => self.windows = vec![value.parse().map_err(|_| unknown())?],
            "--density" => self.density = Density::Percent(value.parse().map_err(|_| unknown())?),
            "--least" => self.least = value.parse().map_err(|_| unknown())?,
            "--writer" if value == "all" => self.writers = Writer::ALL.to_vec(),
            "--writer" => {
                self.writers = vec![Writer::ALL.into_iter().find(|it| it.name() == value).ok_or_else(unknown)?];
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

pub(crate) fn run(given: impl Iterator<Item = String>, home: &Path) -> ExitCode {
    match Arguments::read(given).and_then(|arguments| play(&arguments, home)) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| eprintln!("{fault}"));
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

/// What must not be.
fn play(arguments: &Arguments, home: &Path) -> Result<Vec<String>, String> {
    let scripts: Vec<Script> = arguments.files.iter().map(|file| Script::load(file)).collect::<Result<_, _>>()?;
    if let Some(folder) = &arguments.write_session {
        for (script, window) in scripts.iter().flat_map(|script| arguments.windows.iter().map(move |it| (script, *it)))
        {
            write_session(folder, script, window).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        return Ok(Vec::new());
    }
    let mut cases = Vec::new();
    for script in &scripts {
        for writer in &arguments.writers {
            for tier in &arguments.tiers {
                // Without a model there is no writer, either.
                let asked = matches!(tier, Tier::Notes | Tier::Full) || *writer == Writer::Honest;
                let (tier, writer, density) = (*tier, *writer, arguments.density);
                let case = |window: &u64| Case { script, tier, window: *window, writer, density };
                cases.extend(arguments.windows.iter().filter(|_| asked).map(case));
            }
        }
    }
    let rows: Vec<Row> = crate::together(cases.len(), |at| survive::play(home, cases[at]));
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are JSON"));
    } else {
        report(&rows, arguments.lost);
    }
    if arguments.show {
        for text in rows.iter().flat_map(|row| &row.after).flat_map(|left| &left.sent) {
            println!("\n{text}");
        }
    }
    let over: u64 = rows.iter().map(|row| row.over).sum();
    let mut faults: Vec<String> =
        (over > 0).then(|| format!("{over} requests did not fit into the window")).into_iter().collect();
    if arguments.density != Density::Uneven {
        let off: Vec<f64> = rows.iter().flat_map(|row| row.receipts.as_flattened()).map(|off| off.abs()).collect();
        let (worst, most) = (off.iter().copied().fold(0.0, f64::max), RIGHT);
        println!("\n{} receipts, the worst {worst:.1}% off", off.len() / 2);
        faults.extend((worst > most).then(|| format!("a receipt is more than {most}% off")));
    }
    for row in &rows {
        let alive = row.after.iter().map(|left| left.alive_user + left.alive_found).min().unwrap_or_default();
        if alive < arguments.least {
            faults.push(format!(
                "{}, {}, {}, {}k: {alive} facts are alive",
                row.script,
                row.writer,
                row.tier,
                row.window / 1000
            ));
        }
    }
    Ok(faults)
}

fn report(rows: &[Row], lost: bool) {
    let columns: Vec<String> = AFTER
        .iter()
        .map(|nth| format!("alive after {nth} | user | found | reachable | false claims | tokens | cost"))
        .collect();
    println!("| session, writer, tier | window | {} | compactions |", columns.join(" | "));
    println!("|---|--:|{}--:|", "--:|".repeat(AFTER.len() * 7));
    for row in rows {
        let after: Vec<String> = row
            .after
            .iter()
            .map(|left| {
                format!(
                    "{} of {} | {} | {} | {} | {} | {:.1}k | ${:.2}",
                    left.alive_user + left.alive_found,
                    row.facts,
                    left.alive_user,
                    left.alive_found,
                    left.reachable,
                    left.false_claims,
                    left.tokens as f64 / 1e3,
                    left.dollars,
                )
            })
            .collect();
        let compactions: Vec<String> = row.after.iter().map(|left| left.compactions.to_string()).collect();
        let (script, writer, tier) = (&row.script, row.writer, row.tier);
        println!(
            "| {script}, {writer}, {tier} | {}k | {} | {} |",
            row.window / 1000,
            after.join(" | "),
            compactions.join(", ")
        );
    }
    for row in rows.iter().filter(|_| lost) {
        let last = row.after.last().expect("it was counted");
        println!("\n{}, {}, {}, {}k:", row.script, row.writer, row.tier, row.window / 1000);
        last.lost.iter().for_each(|fact| println!("  lost         {fact}"));
        last.unreachable.iter().for_each(|fact| println!("  unreachable  {fact}"));
    }
}

/// The session as other agents can be fed it, made as long as the window asks for.
fn write_session(folder: &Path, script: &Script, window: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let pad = survive::pad(script, window);
    let mut text = format!("{}\n", serde_json::json!({ "session": script.name, "cwd": script.cwd }));
    let mut calls = 0;
    for scene in &script.steps {
        calls += u64::from(!scene.tool.is_empty());
        scene.lines(calls, pad).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    fs::write(folder.join(format!("{}-{}k.jsonl", script.name, window / 1000)), text)
}
