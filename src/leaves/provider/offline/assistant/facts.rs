//! Recipes that answer questions from what the project says of itself: manifest, README, license, sizes.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Situation, bash, listed, read, say, tool, unnumbered};
use crate::provider::offline::script::Part;

/// What is asked about the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Name,
    Version,
    License,
    Language,
    Dependencies,
    Authors,
    Test,
    Build,
    Run,
    Install,
}

/// A kind of project: its manifest, its language, and the commands that are usual there.
struct Kind {
    manifest: &'static str,
    language: &'static str,
    test: &'static str,
    build: &'static str,
    run: &'static str,
    install: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        manifest: "Cargo.toml",
        language: "Rust",
        test: "cargo test",
        build: "cargo build",
        run: "cargo run",
        install: "cargo install --path .",
    },
    Kind {
        manifest: "package.json",
        language: "JavaScript",
        test: "npm test",
        build: "npm run build",
        run: "npm start",
        install: "npm install",
    },
    Kind {
        manifest: "pyproject.toml",
        language: "Python",
        test: "python3 -m pytest",
        build: "python3 -m build",
        run: "python3 -m <package>",
        install: "pip install .",
    },
    Kind {
        manifest: "setup.py",
        language: "Python",
        test: "python3 -m pytest",
        build: "python3 -m build",
        run: "python3 -m <package>",
        install: "pip install .",
    },
    Kind {
        manifest: "go.mod",
        language: "Go",
        test: "go test ./...",
        build: "go build ./...",
        run: "go run .",
        install: "go install .",
    },
];

/// Files that may answer.
fn telling(name: &str) -> bool {
    let lower = name.to_lowercase();
    KINDS.iter().any(|kind| kind.manifest == name)
        || ["makefile", "justfile", "authors"].contains(&lower.as_str())
        || ["readme", "license", "copying"].iter().any(|start| lower.starts_with(start))
}

/// What the manifest says, by key: its top-level strings, and those of its first table.
pub(super) fn known(situation: &Situation) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for step in situation.of_tool("Read").filter(|step| step.ok()) {
        let (path, lines) = (step.input("file_path"), unnumbered(&step.text()));
        if path.ends_with("package.json") {
            let value = serde_json::from_str::<serde_json::Value>(&lines.join("\n")).unwrap_or_default();
            for (key, value) in value.as_object().into_iter().flatten() {
                if let Some(text) = value.as_str() {
                    known.entry(key.clone()).or_insert_with(|| text.to_owned());
                }
            }
        } else if path.ends_with(".toml") {
            let table = lines.join("\n").parse::<toml::Table>().unwrap_or_default();
            let of = ["package", "project", "workspace"].iter().find_map(|key| table.get(*key)?.as_table());
            for (key, value) in of.into_iter().flatten() {
                let text = match value {
                    toml::Value::String(text) => Some(text.clone()),
                    toml::Value::Array(all) => {
                        let words = all.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
                        Some(words.collect::<Vec<_>>().join(", "))
                    }
                    _ => None,
                };
                known.entry(key.clone()).or_insert(text.unwrap_or_default());
            }
            known.retain(|_, value| !value.is_empty());
        } else if path.ends_with("go.mod")
            && let Some(name) = lines.iter().find_map(|line| line.strip_prefix("module "))
        {
            known.entry("name".into()).or_insert_with(|| name.trim().to_owned());
        }
    }
    known
}

/// Answers from the files at the top of the folder.
pub(super) fn about(situation: &Situation, topics: &[Topic]) -> Vec<Part> {
    let Some(top) = situation.of_tool("LS").next() else {
        return vec![say("Looking at what the project says of itself."), tool("LS", json!({ "path": "." }))];
    };
    let names = listed(&top.text());
    if situation.of_tool("Read").next().is_none() {
        let reads: Vec<Part> = names.iter().filter(|name| telling(name)).take(6).map(|name| read(name)).collect();
        if !reads.is_empty() {
            return reads;
        }
    }
    if topics.contains(&Topic::Language) && situation.of_tool("Grep").next().is_none() {
        return vec![sizes()];
    }
    if topics.contains(&Topic::Authors) && situation.of_tool("Bash").next().is_none() {
        return vec![bash("git log --format=%an -n 200", "Show who commits here")];
    }
    let known = known(situation);
    let answers: Vec<String> = topics.iter().map(|topic| answer(situation, *topic, &names, &known)).collect();
    vec![say(answers.join("\n\n"))]
}

fn answer(situation: &Situation, topic: Topic, names: &[String], known: &BTreeMap<String, String>) -> String {
    let has = |name: &str| names.iter().any(|listed| listed == name);
    let kind = KINDS.iter().find(|kind| has(kind.manifest));
    let said = |key: &str| known.get(key).map(|value| (key.to_owned(), value.clone()));
    let manifest = kind.map_or("the manifest", |kind| kind.manifest);
    match topic {
        Topic::Name => match known.get("name") {
            Some(name) => format!("It is called `{name}`, says `{manifest}`."),
            None => format!("No manifest names it; the folder is `{}`.", situation.folder()),
        },
        Topic::Version => match known.get("version") {
            Some(version) => format!("Version `{version}`, says `{manifest}`."),
            None => "No manifest at the top level states a version. `git tag` may know one.".into(),
        },
        Topic::License => {
            let file = names.iter().find(|name| {
                let lower = name.to_lowercase();
                lower.starts_with("license") || lower.starts_with("copying")
            });
            let first = file.and_then(|file| {
                let step = situation.of_tool("Read").find(|step| step.input("file_path") == file)?;
                unnumbered(&step.text()).into_iter().find(|line| !line.trim().is_empty())
            });
            match (said("license"), file) {
                (Some((_, license)), Some(file)) => format!("`{license}`, says `{manifest}`; the text is in `{file}`."),
                (Some((_, license)), None) => format!("`{license}`, says `{manifest}`. There is no license file."),
                (None, Some(file)) => {
                    let first = first.map(|line| format!(", which starts: “{}”", line.trim())).unwrap_or_default();
                    format!("The license is in `{file}`{first}.")
                }
                (None, None) => "There is no license file at the top level, and no manifest names a license.".into(),
            }
        }
        Topic::Language => {
            let counts = Counts::of(situation);
            let most: Vec<String> =
                counts.by_extension().into_iter().take(4).map(|(ext, lines)| format!("`.{ext}`: {lines}")).collect();
            let named = kind.map_or(String::new(), |kind| format!("{}, by its `{}`. ", kind.language, kind.manifest));
            format!("{named}Lines by file type: {}.", most.join(", "))
        }
        Topic::Dependencies => dependencies(situation, manifest),
        Topic::Authors => {
            let log = situation.of_tool("Bash").last().filter(|step| step.ok()).map(|step| step.text());
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            let log = log.unwrap_or_default();
            log.lines().filter(|line| !line.trim().is_empty()).for_each(|name| {
                *counts.entry(name.trim().to_owned()).or_default() += 1;
            });
            let mut people: Vec<(String, usize)> = counts.into_iter().collect();
            people.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let of = said("authors").or_else(|| said("author"));
            let mut text = of.map(|(_, who)| format!("`{manifest}` names {who}. ")).unwrap_or_default();
            if people.is_empty() {
                text.push_str("git knows no commits here.");
            } else {
                let rows: Vec<String> =
                    people.iter().take(8).map(|(name, count)| format!("- {name}: {count}")).collect();
                text.push_str(&format!("Of the latest commits:\n\n{}", rows.join("\n")));
            }
            text
        }
        Topic::Test | Topic::Build | Topic::Run | Topic::Install => how(situation, topic, names, kind),
    }
}

/// The command for a step of the work: what the README shows, what a package's scripts and a Makefile have, what is usual.
fn how(situation: &Situation, topic: Topic, names: &[String], kind: Option<&Kind>) -> String {
    let (words, usual): (&[&str], Option<&str>) = match topic {
        Topic::Test => (&["test"], kind.map(|kind| kind.test)),
        Topic::Build => (&["build", "compile", "make"], kind.map(|kind| kind.build)),
        Topic::Install => (&["install"], kind.map(|kind| kind.install)),
        _ => (&["run", "start", "serve"], kind.map(|kind| kind.run)),
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
                } else if fenced && words.iter().any(|word| bare.contains(word)) && !bare.starts_with('#') {
                    told.push(bare.trim_start_matches("$ ").to_owned());
                }
            }
        } else if path == "package.json" {
            let value = serde_json::from_str::<serde_json::Value>(&text.join("\n")).unwrap_or_default();
            let scripts = value["scripts"].as_object().cloned().unwrap_or_default();
            let fits = |name: &&String| words.iter().any(|word| name.contains(word));
            told.extend(scripts.keys().filter(fits).map(|name| format!("npm run {name}")));
        } else if lower == "makefile" || lower == "justfile" {
            let tool = if lower == "makefile" { "make" } else { "just" };
            let targets = text.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
            let fits = |name: &&str| !name.contains([' ', '\t', '.']) && words.iter().any(|word| name.contains(word));
            told.extend(targets.filter(fits).map(|name| format!("{tool} {name}")));
        }
        told.dedup();
        lines.extend(told.into_iter().take(3).map(|line| format!("- `{line}` (from `{path}`)\n")));
    }
    if let Some(usual) = usual
        && !lines.iter().any(|line| line.contains(usual))
    {
        let manifest = kind.map_or("", |kind| kind.manifest);
        lines.push(format!("- `{usual}` (usual where there is a `{manifest}`)\n"));
    }
    if lines.is_empty() {
        let seen: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
        return format!("Neither a README nor a manifest says how. The folder has {}.", seen.join(", "));
    }
    format!("{}\nI have not run them: say `run` and the command, and I will.", lines.concat())
}

fn dependencies(situation: &Situation, manifest: &str) -> String {
    let mut found = Vec::new();
    for step in situation.of_tool("Read").filter(|step| step.ok()) {
        let (path, lines) = (step.input("file_path").to_owned(), unnumbered(&step.text()));
        if path.ends_with("package.json") {
            let value = serde_json::from_str::<serde_json::Value>(&lines.join("\n")).unwrap_or_default();
            for key in ["dependencies", "devDependencies"] {
                let all = value[key].as_object().cloned().unwrap_or_default();
                found.extend(all.iter().map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("*"))));
            }
        } else if path.ends_with(".toml") {
            let table = lines.join("\n").parse::<toml::Table>().unwrap_or_default();
            for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
                found.extend(
                    table
                        .get(key)
                        .and_then(toml::Value::as_table)
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| if key == "dependencies" { name.clone() } else { format!("{name} ({key})") }),
                );
            }
            let python = table.get("project").and_then(|project| project.get("dependencies")?.as_array());
            found.extend(python.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)));
        } else if path.ends_with("go.mod") {
            let required = lines.iter().map(|line| line.trim().trim_start_matches("require ")).filter(|line| {
                line.split_once(' ').is_some_and(|(name, version)| name.contains('.') && version.starts_with('v'))
            });
            found.extend(required.map(str::to_owned));
        }
    }
    if found.is_empty() {
        return format!("`{manifest}` names no dependencies.");
    }
    let rows: Vec<String> = found.iter().take(40).map(|one| format!("- `{one}`\n")).collect();
    format!("{} direct dependenc{}:\n\n{}", found.len(), if found.len() == 1 { "y" } else { "ies" }, rows.concat())
}

/// Counts the lines of every file that is not ignored.
fn sizes() -> Part {
    tool("Grep", json!({ "pattern": "^", "output_mode": "count", "head_limit": 5000 }))
}

/// Lines by file.
struct Counts(Vec<(String, usize)>);

impl Counts {
    fn of(situation: &Situation) -> Counts {
        let mut counts = Vec::new();
        for step in situation.of_tool("Grep") {
            let text = step.text();
            let rows = text.lines().filter_map(|line| line.rsplit_once(':'));
            counts.extend(
                rows.filter_map(|(file, count)| Some((situation.short(file).to_owned(), count.trim().parse().ok()?))),
            );
        }
        counts.sort_by(|a: &(String, usize), b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Counts(counts)
    }

    fn by_extension(&self) -> Vec<(String, usize)> {
        let mut sums: BTreeMap<String, usize> = BTreeMap::new();
        for (file, lines) in &self.0 {
            if let Some((_, extension)) = file.rsplit('/').next().and_then(|name| name.rsplit_once('.')) {
                *sums.entry(extension.to_owned()).or_default() += lines;
            }
        }
        let mut sums: Vec<(String, usize)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
        sums
    }
}

/// How large the project is, and which files are the largest.
pub(super) fn size(situation: &Situation) -> Vec<Part> {
    if situation.of_tool("Grep").next().is_none() {
        return vec![say("Counting."), sizes()];
    }
    let counts = Counts::of(situation);
    if counts.0.is_empty() {
        return vec![say("I found no text files to count here.")];
    }
    let total: usize = counts.0.iter().map(|(_, lines)| lines).sum();
    let kinds: Vec<String> =
        counts.by_extension().into_iter().take(5).map(|(ext, lines)| format!("`.{ext}` {lines}")).collect();
    let largest: Vec<String> = counts.0.iter().take(8).map(|(file, lines)| format!("- `{file}`: {lines}\n")).collect();
    vec![say(format!(
        "{total} lines in {} files: {}. The largest:\n\n{}",
        counts.0.len(),
        kinds.join(", "),
        largest.concat()
    ))]
}

/// An answer that has to fit a schema: what the manifest says, by name; `text` where one string is wanted.
pub(super) fn shaped(situation: &Situation, schema: &serde_json::Value, text: &str) -> Option<serde_json::Value> {
    let known = known(situation);
    let properties = schema.get("properties")?.as_object()?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(|all| all.as_array())
        .into_iter()
        .flatten()
        .filter_map(|one| one.as_str())
        .collect();
    let mut filled = serde_json::Map::new();
    for (key, shape) in properties {
        let string = shape.get("type").and_then(|kind| kind.as_str()).is_none_or(|kind| kind == "string");
        match known.get(key) {
            Some(value) if string => {
                filled.insert(key.clone(), value.clone().into());
            }
            _ if string && properties.len() == 1 => {
                filled.insert(key.clone(), text.into());
            }
            _ => {}
        }
    }
    (!filled.is_empty() && required.iter().all(|key| filled.contains_key(*key))).then_some(filled.into())
}
