//! How a project is tested, built, run and installed: what its own files say, then what is usual.

use super::facts::{Topic, known, telling};
use super::{Part, Situation, glob, read, rows, unnumbered};

/// A kind of project: its manifest, its language, and the commands that are usual there.
pub(super) struct Kind {
    pub(super) manifest: &'static str,
    pub(super) language: &'static str,
    test: &'static str,
    build: &'static str,
    run: &'static str,
    install: &'static str,
}

const fn kind(manifest: &'static str, language: &'static str, usual: [&'static str; 4]) -> Kind {
    let [test, build, run, install] = usual;
    Kind { manifest, language, test, build, run, install }
}

pub(super) const KINDS: [Kind; 7] = [
    kind("Cargo.toml", "Rust", ["cargo test", "cargo build", "cargo run", "cargo install --path ."]),
    kind("package.json", "JavaScript", ["npm test", "npm run build", "npm start", "npm install"]),
    kind(
        "pyproject.toml",
        "Python",
        ["python3 -m pytest", "python3 -m build", "python3 -m <package>", "pip install ."],
    ),
    kind("setup.py", "Python", ["python3 -m pytest", "python3 -m build", "python3 -m <package>", "pip install ."]),
    kind("go.mod", "Go", ["go test ./...", "go build ./...", "go run .", "go install ."]),
    kind("requirements.txt", "Python", ["python3 -m pytest", "", "python3 <file>", "pip install -r requirements.txt"]),
    kind("Makefile", "", ["make test", "make", "", "make install"]),
];

/// A README of what the manifest says, the usual commands, and the layout.
pub(super) fn readme(situation: &Situation, names: &[String]) -> Result<String, Vec<Part>> {
    let reads: Vec<Part> = names.iter().filter(|name| telling(name)).take(6).map(|name| read(name)).collect();
    situation.need_all("", reads.into_iter().chain([glob("**/*")]).collect())?;
    let (known, kind) = (known(situation), KINDS.iter().find(|kind| names.iter().any(|name| name == kind.manifest)));
    let title = known.get("name").map_or(situation.folder(), |name| name.as_str());
    let mut text = format!("# {title}\n");
    text.push_str(&known.get("description").map_or(String::new(), |about| format!("\n{about}.\n").replace("..", ".")));
    for (topic, heading) in
        [(Topic::Install, "Install"), (Topic::Build, "Build"), (Topic::Run, "Run"), (Topic::Test, "Test")]
    {
        let commands = commands(situation, topic, kind);
        if let Some((command, _)) = commands.first() {
            text.push_str(&format!("\n## {heading}\n\n```sh\n{command}\n```\n"));
        }
    }
    let named = |name: &&String| !name.starts_with('.') && !["target", "node_modules"].contains(&name.as_str());
    let layout = names.iter().filter(named).map(|name| super::explain::named(name));
    text.push_str(&format!("\n## Layout\n\n{}", rows(&layout.collect::<Vec<_>>(), 20)));
    Ok(text)
}

/// The command for a step of the work: what the README shows, what a package's scripts and a Makefile have, what is usual.
fn commands(situation: &Situation, topic: Topic, kind: Option<&Kind>) -> Vec<(String, String)> {
    let (words, usual): (&[&str], Option<&str>) = match topic {
        Topic::Test => (&["test"], kind.map(|kind| kind.test)),
        Topic::Build => (&["build", "compile", "make"], kind.map(|kind| kind.build)),
        Topic::Install => (&["install"], kind.map(|kind| kind.install)),
        _ => (&["run", "start", "serve", "python", "node"], kind.map(|kind| kind.run)),
    };
    let mut lines = Vec::new();
    for step in situation.of_tool("Read").filter(|step| step.ok()) {
        let (path, text) = (step.input("file_path").to_owned(), unnumbered(&step.text()));
        let lower = path.to_lowercase();
        let mut told = Vec::new();
        if lower.starts_with("readme") {
            let mut fenced = false;
            for line in &text {
                let bare = line.trim();
                if bare.starts_with("```") {
                    fenced = !fenced;
                    continue;
                }
                let block = fenced || line.starts_with("    ");
                let inline = line.split('`').skip(1).step_by(2).filter(|code| code.contains(' '));
                let code = block.then_some(bare).into_iter().chain(inline.filter(|_| !block));
                let fits = |code: &&str| words.iter().any(|word| code.contains(word)) && !code.starts_with('#');
                told.extend(code.filter(fits).map(|code| code.trim_start_matches("$ ").to_owned()));
            }
        } else if path == "package.json" {
            let value = serde_json::from_str::<serde_json::Value>(&text.join("\n")).unwrap_or_default();
            let scripts = value["scripts"].as_object().cloned().unwrap_or_default();
            let fits = |name: &&String| words.iter().any(|word| name.contains(word));
            told.extend(scripts.keys().filter(fits).map(|name| format!("npm run {name}")));
        } else if lower == "makefile" || lower == "justfile" {
            let tool = if lower == "makefile" { "make" } else { "just" };
            let targets = text.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
            let fits = |name: &&str| {
                !name.contains([' ', '\t', '.', '=', '#']) && words.iter().any(|word| name.contains(word))
            };
            let all: Vec<&str> = targets.collect();
            told.extend(all.iter().copied().filter(fits).map(|name| format!("{tool} {name}")));
            // What a Makefile makes first is what it is there for.
            if told.is_empty() && matches!(topic, Topic::Build | Topic::Run) {
                let first =
                    all.into_iter().find(|name| !name.is_empty() && !name.contains([' ', '=', '.', '#', '$', '?']));
                told.extend(first.map(|name| format!("{tool} {name}")));
            }
        }
        told.dedup();
        lines.extend(told.into_iter().take(3).map(|line| (line, format!("from `{path}`"))));
    }
    let files = situation.of_tool("Glob").find(|step| step.input("pattern") == "**/*");
    let files = files.map(|step| situation.paths_of(step)).unwrap_or_default();
    let entry = super::explain::entries(&files).into_iter().find(|path| !path.ends_with("lib.rs"));
    let package =
        situation.of_tool("Read").find(|step| step.input("file_path") == "package.json").map(|step| step.text());
    let usual = usual.filter(|usual| !usual.is_empty()).and_then(|usual| match (topic, entry) {
        // What a package has no script for does not run.
        _ if package.is_some() && usual.starts_with("npm") && usual != "npm install" => {
            let script = usual.rsplit(' ').next().unwrap_or_default();
            let scripted = package.as_ref().is_some_and(|text| text.contains(&format!("\"{script}\":")));
            match (scripted, topic) {
                (true, _) => Some(usual.to_owned()),
                (false, Topic::Run) => entry.map(|entry| format!("node {entry}")),
                _ => None,
            }
        }
        (Topic::Run, Some(entry)) if usual.starts_with("python3") => {
            let module = entry.trim_end_matches(".py").trim_end_matches("/__main__").replace('/', ".");
            Some(format!("python3 -m {module}"))
        }
        (Topic::Test, _) if usual.contains("pytest") => {
            // A test that imports unittest runs without anything installed, too.
            Some(if lines.is_empty() { usual.to_owned() } else { return None })
        }
        (Topic::Run, None) if usual.contains('<') => None,
        _ => Some(usual.to_owned()),
    });
    if let Some(usual) = usual
        && !lines.iter().any(|(line, _)| line.contains(&usual))
    {
        let manifest = kind.map_or("", |kind| kind.manifest);
        lines.push((usual, format!("usual where there is a `{manifest}`")));
    }
    lines
}

/// How a step of the work is done.
pub(super) fn how(situation: &Situation, topic: Topic, names: &[String], kind: Option<&Kind>) -> String {
    let lines = commands(situation, topic, kind);
    let verb = match topic {
        Topic::Test => "test",
        Topic::Build => "build",
        Topic::Install => "install",
        _ => "run",
    };
    if lines.is_empty() && topic == Topic::Build && kind.is_some_and(|kind| kind.manifest == "package.json") {
        return "`package.json` has no build script: nothing has to be built.".into();
    }
    if lines.is_empty() {
        let seen: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
        return format!("Neither a README nor a manifest says how to {verb} it. The folder has {}.", seen.join(", "));
    }
    let lines: Vec<String> = lines.into_iter().map(|(line, from)| format!("`{line}` ({from})")).collect();
    format!("To {verb} it:\n\n{}", rows(&lines, 9).trim_end())
}
