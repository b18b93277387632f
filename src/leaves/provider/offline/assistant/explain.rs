//! Recipes that explain a repository or a file from what the tools returned.

use std::collections::BTreeMap;

use serde_json::json;

use super::code::{self, Sort, indent};
use super::{Recipe, Situation, Step, glob, listed, ls, read, rows, s, tell, tool, unnumbered};

/// Documents and manifests that say what a project is, best first.
const TELLING: [&str; 10] = [
    "README.md",
    "README",
    "README.rst",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "ARCHITECTURE.md",
    "AGENTS.md",
];

pub(super) fn repository(situation: &Situation) -> Recipe {
    let [top, all] = situation.need("Let me look at the layout, then the docs.", [ls(), glob("**/*")])?;
    let names = listed(&top.text());
    let telling = TELLING.iter().filter(|telling| names.iter().any(|name| name == *telling)).take(4);
    let docs = situation.need_all("", telling.map(|name| read(name)).collect())?;
    let files = situation.paths_of(all);
    // Without a word on what it is, its entry says most.
    let silent = !docs.iter().any(|step| step.input("file_path").starts_with("README"));
    let entry = entries(&files).into_iter().next().filter(|_| silent);
    let entry = situation.need_all("", entry.iter().map(|path| read(path)).collect())?;
    tell(compose(situation, &names, &files, entry.first().copied()))
}

fn compose(situation: &Situation, names: &[String], files: &[String], entry: Option<&Step>) -> String {
    let (mut title, mut about, mut facts) = (None, None, Vec::new());
    for step in situation.of_tool("Read").filter(|step| step.ok()) {
        let (path, lines) = (step.input("file_path"), unnumbered(&step.text()));
        match path {
            "Cargo.toml" | "pyproject.toml" => facts.extend(manifest(path, &lines)),
            "package.json" => {
                facts.extend(package(&lines));
                about = about.or_else(|| super::facts::known(situation).remove("description"));
            }
            "go.mod" => facts.extend(lines.first().map(|line| format!("Go {line}"))),
            _ if path.starts_with("README") => {
                title = lines.iter().find_map(|line| line.strip_prefix("# ")).map(str::to_owned);
                about = paragraph(&lines);
            }
            _ => {}
        }
    }
    let mut text = String::new();
    let folder = situation.folder();
    text.push_str(&format!("**{}**", title.as_deref().unwrap_or(folder)));
    if let Some(about) = about {
        text.push_str(&format!(" — {about}"));
    }
    text.push_str("\n\n");
    for fact in facts {
        text.push_str(&format!("- {fact}\n"));
    }
    text.push_str(&kinds(files));
    text.push_str("\nAt the top level:\n\n");
    for name in names.iter().filter(|name| !name.starts_with('.') && !name.contains(' ')).take(16) {
        text.push_str(&format!("- {}\n", named(name)));
    }
    if let Some(entry) = entry {
        let (path, lines) = (situation.short(entry.input("file_path")), unnumbered(&entry.text()));
        text.push_str(&format!("\nNo README says more. {}", outline(path, &lines, 8)));
    }
    let entries: Vec<String> = entries(files).iter().take(4).map(|entry| format!("`{entry}`")).collect();
    if !entries.is_empty() {
        text.push_str(&format!("\nGood places to start: {}.\n", entries.join(", ")));
    }
    text
}

/// Files that programs begin in, shallow ones first.
pub(super) fn entries(files: &[String]) -> Vec<&String> {
    const STEMS: [&str; 6] = ["main", "__main__", "lib", "cli", "app", "index"];
    let rank = |file: &&String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = STEMS.iter().position(|stem| name.split('.').next() == Some(stem));
        let bin = file.starts_with("bin/") || file.starts_with("cmd/");
        let fits = code::is_source(file) && !code::is_test(file) && (stem.is_some() || bin);
        fits.then(|| (file.matches('/').count() > 2, if bin { 0 } else { stem.unwrap_or(9) }, file.len()))
    };
    let mut found: Vec<&String> = files.iter().filter(|file| rank(file).is_some()).collect();
    found.sort_by_key(rank);
    found
}

/// As many files as a listing names when it leaves some out.
const LISTED: usize = 100;

fn kinds(files: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        if let Some((_, extension)) = file.rsplit('/').next().and_then(|name| name.rsplit_once('.')) {
            *counts.entry(extension).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    if counts.is_empty() {
        return String::new();
    }
    let listed: Vec<String> =
        counts.iter().take(5).map(|(extension, count)| format!("{count} `.{extension}`")).collect();
    // A listing may be cut, the newest files first.
    let which = if files.len() < LISTED { format!("{} files", files.len()) } else { "of the newest files".to_owned() };
    format!("- {which}: {}\n", listed.join(", "))
}

/// First paragraph of a README that is prose: no heading, badge, image, list or HTML.
fn paragraph(lines: &[String]) -> Option<String> {
    let prose = |line: &&String| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['#', '!', '[', '<', '|', '-', '*', '>', '`', '='])
    };
    let from = lines.iter().position(|line| prose(&line))?;
    let text: Vec<&str> = lines[from..].iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    let text = text.join(" ");
    Some(match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    })
}

fn manifest(path: &str, lines: &[String]) -> Vec<String> {
    let value = |key: &str| {
        lines.iter().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    let kind = if path == "Cargo.toml" { "Rust package" } else { "Python package" };
    let mut facts = Vec::new();
    if let Some(name) = value("name") {
        let version = value("version").map(|version| format!(" {version}")).unwrap_or_default();
        facts.push(format!("{kind} `{name}`{version}"));
    }
    let mut section = "";
    let mut count = 0;
    for line in lines {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" && line.contains('=') {
            count += 1;
        }
    }
    if count > 0 {
        facts.push(format!("{count} direct dependencies"));
    }
    facts
}

fn package(lines: &[String]) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&lines.join("\n")) else { return Vec::new() };
    let mut facts = Vec::new();
    if let Some(name) = value["name"].as_str() {
        facts.push(format!("Node package `{name}` {}", value["version"].as_str().unwrap_or_default()));
    }
    if let Some(scripts) = value["scripts"].as_object() {
        facts.push(format!("scripts: {}", scripts.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")));
    }
    facts
}

/// A file or folder with its usual role.
pub(super) fn named(name: &str) -> String {
    role(name).map_or(format!("`{name}`"), |role| format!("`{name}` — {role}"))
}

fn role(name: &str) -> Option<&'static str> {
    Some(match name {
        "src" | "lib" | "source" => "the source code",
        "tests" | "test" | "spec" => "tests",
        "benches" | "bench" => "benchmarks",
        "examples" => "examples",
        "docs" | "doc" => "documentation",
        "assets" | "static" | "public" => "files that ship with it",
        "config" | "conf" => "configuration",
        "scripts" | "tools" | "bin" => "scripts and tools",
        "Cargo.toml" | "package.json" | "pyproject.toml" | "go.mod" | "pom.xml" => "the manifest",
        "Cargo.lock" | "package-lock.json" | "poetry.lock" | "go.sum" => "locked versions",
        "README.md" | "README" | "README.rst" => "start here",
        "ARCHITECTURE.md" => "the shape of the code",
        "Makefile" | "justfile" => "common commands",
        "requirements.txt" => "the dependencies",
        "target" | "node_modules" | "dist" | "build" => "built output",
        "Dockerfile" => "the container image",
        _ => return None,
    })
}

/// What is in a file or a folder, wherever it is.
pub(super) fn place(situation: &Situation, path: &str) -> Recipe {
    let name = path.trim_start_matches("./").trim_end_matches('/');
    let opening = format!("Looking at `{name}`.");
    // What it is called may be where it is.
    if name.rsplit('/').next().is_some_and(|last| last.contains('.')) {
        let [step] = situation.need(&opening, [read(name)])?;
        if step.ok() {
            return tell(outline(name, &unnumbered(&step.text()), 25));
        }
    }
    let calls = [glob(&format!("**/{name}")), glob(&format!("**/{name}/**"))];
    let [files, below] = situation.need(&opening, calls)?;
    let (files, below) = (situation.paths_of(files), situation.paths_of(below));
    let file = files.iter().find(|file| *file == name).or_else(|| files.iter().min_by_key(|file| file.len()));
    if let (None, Some(inner)) = (file, below.iter().min_by_key(|file| file.len())) {
        let at = inner.find(&format!("{name}/")).unwrap_or(0);
        return folder(situation, &inner[..at + name.len()]);
    }
    // What no listing shows, such as an ignored file, may still be read.
    let [step] = situation.need("", [read(file.map_or(name, String::as_str))])?;
    if !step.ok() {
        let [all] = situation.need("", [glob("**/*")])?;
        let stem = name.rsplit('/').next().unwrap_or(name).split('.').next().unwrap_or(name).to_lowercase();
        let near: Vec<String> =
            situation.paths_of(all).into_iter().filter(|file| file.to_lowercase().contains(&stem)).collect();
        let near: Vec<String> = near.iter().take(5).map(|file| format!("`{file}`")).collect();
        let hint = if near.is_empty() { String::new() } else { format!(" Similar names: {}.", near.join(", ")) };
        return tell(format!("I found no `{name}` here.{hint}"));
    }
    let path = situation.short(step.input("file_path"));
    let lines = unnumbered(&step.text());
    tell(outline(path, &lines, 25))
}

fn folder(situation: &Situation, path: &str) -> Recipe {
    let [step] = situation.need("", [tool("LS", json!({ "path": path }))])?;
    if !step.ok() {
        return tell(format!("I cannot look into it: {}", step.text()));
    }
    let names: Vec<String> = listed(&step.text()).iter().map(|name| named(name)).collect();
    tell(format!("`{path}` contains:\n\n{}", rows(&names, 40)))
}

/// What a file says of itself, brings in and declares.
fn outline(path: &str, lines: &[String], most: usize) -> String {
    let language = path.rsplit_once('.').map(|(_, extension)| extension).unwrap_or("text");
    let bare = |line: &String| {
        line.trim().trim_start_matches(['/', '!', '#', '"', '*', ' ']).trim_end_matches(['"', '*', '/', ' ']).to_owned()
    };
    let doc = lines.iter().skip_while(|line| line.trim().is_empty() || line.starts_with("#!"));
    let doc = doc.take_while(|line| code::is_comment(line)).map(bare);
    let doc: Vec<String> = doc.filter(|line| !line.is_empty()).take(4).collect();
    let mut text = format!("`{path}` has {} line{}.", lines.len(), s(lines.len()));
    let items = code::items(lines);
    let head = lines.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    if !code::is_source(path) || items.is_empty() {
        return format!("{text}\n\n```{language}\n{head}\n```");
    }
    // A comment that is joined to the first declaration is about that.
    if !doc.is_empty() && items.first().is_none_or(|item| code::above(lines, item.at) > 0) {
        text.push_str(&format!(" Its description: *{}*", doc.join(" ")));
    }
    let brought: Vec<String> = lines
        .iter()
        .filter(|line| code::brings(line) && !line.contains("exports") && indent(line) == 0)
        .map(|line| format!("`{}`", line.trim().trim_end_matches(';')))
        .collect();
    if !brought.is_empty() {
        text.push_str(&format!(" It uses {}.", brought.iter().take(6).cloned().collect::<Vec<_>>().join(", ")));
    }
    let declared: Vec<String> = items
        .iter()
        .map(|item| {
            let head = lines[item.at].trim().trim_end_matches(['{', ':']).trim_end().replace('`', "'");
            let told = item.doc.clone().or_else(|| match item.sort {
                Sort::Function => code::reading(lines, item).into_iter().find(|told| !told.starts_with("takes")),
                _ => None,
            });
            format!("line {}: `{head}`{}", item.at + 1, told.map_or(String::new(), |told| format!(" — {told}")))
        })
        .collect();
    format!("{text}\n\nIt declares:\n\n{}", rows(&declared, most))
}
