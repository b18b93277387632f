//! Shows what the program looks like: drives the real binary in a pseudo-terminal through a few scenes, on a copy of
//! `assets/sample` and with the model in the binary, and draws the emulator's screen.
//!
//! `cargo build && cargo run --example screenshot` writes the pictures of the README into `assets/screenshots/`.
//! `-- --text [--size 40x12] [--binary PATH] [SCENE]` prints every picture of one scene, or of all, as text instead.

#[path = "../../tests/it/support/screen.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod screen;

mod svg;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use screen::Launch;

/// How long the screen is quiet before a picture is taken.
const QUIET: Duration = Duration::from_millis(300);

/// What happens in front of the camera.
enum Step {
    Keys(&'static str),
    Wait(&'static str),
    /// A look at the screen, in text.
    Shot(&'static str),
    /// A look that becomes a picture of the README.
    Picture(&'static str),
}

use Step::{Keys, Picture, Shot, Wait};

struct Scene {
    name: &'static str,
    /// Columns and rows, unless the command line says otherwise.
    size: (u16, u16),
    steps: &'static [Step],
}

const SCENES: &[Scene] = &[
    Scene {
        name: "repair",
        size: (92, 42),
        steps: &[
            Wait("? keys"),
            Shot("start"),
            Keys("fix the failing test"),
            Keys("\r"),
            Wait("Bash wants to run"),
            // It takes keys from then on.
            Wait("Esc no"),
            Shot("command"),
            // Not to be asked about this command again in this session.
            Keys("2"),
            Wait("Edit wants to change"),
            Wait("Esc no"),
            Picture("edit"),
            // The first guess may be wrong: the next edits need no answer.
            Keys("2"),
            Wait("takes an API key"),
            Picture("done"),
        ],
    },
    Scene {
        name: "tour",
        size: (92, 30),
        steps: &[
            Wait("? keys"),
            Keys("?"),
            Shot("keys"),
            Keys("q"),
            Keys("/"),
            Wait("/help"),
            Shot("commands"),
            Keys("\x15@li"),
            Wait("src/lib.rs"),
            Shot("files"),
            Keys("\x15what is this?\r"),
            Wait("takes an API key"),
            Shot("answer"),
            Keys("\x0f"),
            Shot("transcript"),
        ],
    },
];

struct Plan {
    binary: PathBuf,
    text: bool,
    size: Option<(u16, u16)>,
    scene: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = arguments()?;
    if !plan.binary.is_file() {
        return Err(format!("there is no {}: run `cargo build` first", plan.binary.display()).into());
    }
    let mut found = false;
    for scene in SCENES.iter().filter(|scene| plan.scene.as_deref().is_none_or(|name| name == scene.name)) {
        found = true;
        play(&plan, scene)?;
    }
    let names: Vec<&str> = SCENES.iter().map(|scene| scene.name).collect();
    if found { Ok(()) } else { Err(format!("there is no such scene; there are {}", names.join(", ")).into()) }
}

fn arguments() -> Result<Plan, Box<dyn Error>> {
    // An example lies in target/<profile>/examples, the binary two folders up.
    let own = std::env::current_exe()?;
    let binary = own.ancestors().nth(2).unwrap_or(Path::new(".")).join("cocode");
    let mut plan = Plan { binary, text: false, size: None, scene: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--text" => plan.text = true,
            "--binary" => plan.binary = value()?.into(),
            "--size" => {
                let value = value()?;
                let (columns, rows) = value.split_once('x').ok_or("--size is COLUMNSxROWS")?;
                plan.size = Some((columns.parse()?, rows.parse()?));
            }
            name if !name.starts_with('-') => plan.scene = Some(name.to_owned()),
            _ => return Err(format!("unknown argument {argument}; known: --text --size --binary").into()),
        }
    }
    Ok(plan)
}

#[expect(clippy::print_stdout, reason = "the pictures are the output")]
fn play(plan: &Plan, scene: &Scene) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = tempfile::tempdir()?;
    // Its path is in the pictures, so it is the same each time.
    let project = std::env::temp_dir().join("cocode-demo/paging");
    if project.exists() {
        std::fs::remove_dir_all(&project)?;
    }
    copy(&root.join("assets/sample"), &project)?;
    let (columns, rows) = plan.size.unwrap_or(scene.size);
    let mut launch = Launch::new(&plan.binary)
        .args(["--offline"])
        .env("HOME", home.path())
        // What the repair runs must not differ from machine to machine.
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TERM_PROGRESS_WHEN", "never")
        .cwd(&project)
        .size(columns, rows);
    for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            launch = launch.env(name, value);
        }
    }
    // The program gets a home of its own; its toolchain stays where it is.
    if let Some(user) = std::env::home_dir() {
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() {
                launch = launch.env(name, user.join(folder));
            }
        }
    }
    let screen = launch.start();
    for step in scene.steps {
        match step {
            Keys(keys) => screen.send(keys),
            Wait(text) => screen.wait_text(text),
            Shot(name) | Picture(name) => {
                screen.settle(QUIET);
                let state = screen.state();
                let shown = state.parser.screen();
                if plan.text {
                    println!("── {} {name} {columns}x{rows} ──\n{}", scene.name, shown.contents());
                } else if matches!(step, Picture(_)) {
                    let file = root.join("assets/screenshots").join(format!("{name}.svg"));
                    std::fs::write(&file, svg::draw(shown, "cocode — paging"))?;
                    println!("{}", file.display());
                }
            }
        }
    }
    Ok(())
}

/// Copies a folder with all below it, but for what a build has left.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == "target" => {}
            true => copy(&source, &target)?,
            false => drop(std::fs::copy(&source, &target)?),
        }
    }
    Ok(())
}
