//! Recipes that answer questions from what the project says of itself: manifest, README, license, sizes.

use std::collections::BTreeMap;

use serde_json::json;

use super::commands::{KINDS, how};
use super::{Recipe, Situation, bash, glob, listed, ls, once, read, rows, tell, tool, unnumbered};
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
    Config,
    Entry,
}

/// Files that may answer.
pub(super) fn telling(name: &str) -> bool {
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
pub(super) fn about(situation: &Situation, topics: &[Topic]) -> Recipe {
    let [top] = situation.need("Looking at what the project says of itself.", [ls()])?;
    let names = listed(&top.text());
    let reads = names.iter().filter(|name| telling(name)).take(6).map(|name| read(name));
    let mut calls: Vec<Part> = reads.collect();
    let asks = |all: &[Topic]| all.iter().any(|topic| topics.contains(topic));
    if asks(&[Topic::Language]) {
        calls.push(sizes());
    }
    if asks(&[Topic::Authors]) {
        calls.push(bash("git log --format='%an %ad' --date=short -n 200", "Show who commits here"));
    }
    if asks(&[Topic::Version]) {
        calls.push(bash("git tag --sort=-creatordate --list", "Show the tags"));
    }
    if asks(&[Topic::Config]) {
        calls.push(glob(CONFIGS));
    }
    if asks(&[Topic::Run, Topic::Entry, Topic::Test]) {
        calls.push(glob("**/*"));
    }
    situation.need_all("", calls)?;
    let known = known(situation);
    let mut answers: Vec<String> = topics.iter().map(|topic| answer(situation, *topic, &names, &known)).collect();
    if asks(&[Topic::Test, Topic::Build, Topic::Run, Topic::Install]) {
        answers.push("I have not run them: say `run` and the command, and I will.".into());
    }
    tell(answers.join("\n\n"))
}

/// Files that configure a program, by their names.
const CONFIGS: &str = "**/{*config*,*settings*,*.ini,*.toml,*.yaml,*.yml,*.cfg,*.conf,*rc.json,.env*}";

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
            None => {
                let tag = situation.of_tool("Bash").last().filter(|step| step.ok()).map(|step| step.text());
                match tag.and_then(|tags| {
                    tags.lines()
                        .next()
                        .filter(|tag| tag.starts_with(|c: char| c.is_ascii_digit() || c == 'v'))
                        .map(str::to_owned)
                }) {
                    Some(tag) => format!("The latest git tag is `{tag}`; no manifest states a version."),
                    None => "No manifest at the top level states a version, and no git tag does.".into(),
                }
            }
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
            let dates: Vec<&str> =
                log.lines().filter_map(|line| line.trim().rsplit_once(' ')).map(|(_, date)| date).collect();
            log.lines().filter_map(|line| line.trim().rsplit_once(' ')).for_each(|(name, _)| {
                *counts.entry(name.to_owned()).or_default() += 1;
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
                let when =
                    dates.last().zip(dates.first()).map_or(String::new(), |(from, to)| format!(", {from} to {to}"));
                text.push_str(&format!("Of the latest commits{when}:\n\n{}", rows.join("\n")));
            }
            text
        }
        Topic::Test | Topic::Build | Topic::Run | Topic::Install => how(situation, topic, names, kind),
        Topic::Config => {
            let found = situation.of_tool("Glob").find(|step| step.input("pattern") == CONFIGS);
            let found = found.map(|step| situation.paths_of(step)).unwrap_or_default();
            match found.is_empty() {
                true => {
                    "No file here is named like a configuration. `where is the config read?` searches the code for one."
                        .into()
                }
                false => format!("Files that configure something, by their names:\n\n{}", rows(&ticks(&found), 12)),
            }
        }
        Topic::Entry => match starts(situation, known).as_slice() {
            [] => "No file here is named like the start of a program.".into(),
            [first, others @ ..] => {
                let others =
                    if others.is_empty() { String::new() } else { format!("\n\nAlso: {}.", ticks(others).join(", ")) };
                format!("The program starts in `{first}`.{others} `explain {first}` shows it.")
            }
        },
    }
}

fn ticks(all: &[String]) -> Vec<String> {
    all.iter().map(|one| format!("`{one}`")).collect()
}

/// Where the program starts: what a manifest names, then files that are named like it.
fn starts(situation: &Situation, known: &BTreeMap<String, String>) -> Vec<String> {
    let files = situation.of_tool("Glob").find(|step| step.input("pattern") == "**/*");
    let files = files.map(|step| situation.paths_of(step)).unwrap_or_default();
    let main = known.get("main").map(|path| path.trim_start_matches("./").to_owned());
    let mut found = once(super::explain::entries(&files).into_iter().cloned().chain(main));
    let main = found.iter().any(|path| !path.contains("lib."));
    found.retain(|path| !main || !path.contains("lib."));
    found
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
pub(super) fn size(situation: &Situation) -> Recipe {
    situation.need("Counting.", [sizes()])?;
    let counts = Counts::of(situation);
    if counts.0.is_empty() {
        return tell("I found no text files to count here.");
    }
    let total: usize = counts.0.iter().map(|(_, lines)| lines).sum();
    let kinds: Vec<String> =
        counts.by_extension().into_iter().take(5).map(|(ext, lines)| format!("`.{ext}` {lines}")).collect();
    let largest: Vec<String> = counts.0.iter().take(8).map(|(file, lines)| format!("- `{file}`: {lines}\n")).collect();
    tell(format!(
        "{total} lines in {} files: {}. The largest:\n\n{}",
        counts.0.len(),
        kinds.join(", "),
        largest.concat()
    ))
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
