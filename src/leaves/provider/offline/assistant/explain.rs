//! Recipes that explain a repository or a file from what the tools returned.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Situation, listed, read, say, tool, unnumbered};
use crate::provider::offline::script::Part;

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

pub(super) fn repository(situation: &Situation) -> Vec<Part> {
    let Some(top) = situation.of_tool("LS").next() else {
        return vec![
            say("Let me look at the layout, then the docs."),
            tool("LS", json!({ "path": "." })),
            tool("Glob", json!({ "pattern": "**/*" })),
        ];
    };
    let names = listed(&top.text());
    if situation.of_tool("Read").next().is_none() {
        let found: Vec<Part> = TELLING
            .iter()
            .filter(|telling| names.iter().any(|name| name == *telling))
            .take(4)
            .map(|name| read(name))
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    vec![say(compose(situation, &names))]
}

fn compose(situation: &Situation, names: &[String]) -> String {
    let (mut title, mut about, mut facts) = (None, None, Vec::new());
    for step in situation.of_tool("Read").filter(|step| step.ok()) {
        let (path, lines) = (step.input("file_path"), unnumbered(&step.text()));
        match path {
            "Cargo.toml" | "pyproject.toml" => facts.extend(manifest(path, &lines)),
            "package.json" => facts.extend(package(&lines)),
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
    let files: Vec<String> = situation
        .of_tool("Glob")
        .filter(|step| step.ok())
        .flat_map(|step| step.text().lines().map(|line| situation.short(line.trim()).to_owned()).collect::<Vec<_>>())
        .filter(|line| !line.is_empty() && !line.contains(' '))
        .collect();
    text.push_str(&kinds(&files));
    text.push_str("\nAt the top level:\n\n");
    for name in names.iter().filter(|name| !name.starts_with('.') && !name.contains(' ')).take(16) {
        match role(name) {
            Some(role) => text.push_str(&format!("- `{name}` — {role}\n")),
            None => text.push_str(&format!("- `{name}`\n")),
        }
    }
    let entries: Vec<&String> =
        files.iter().filter(|file| ENTRIES.iter().any(|entry| file.ends_with(entry))).take(4).collect();
    if !entries.is_empty() {
        text.push_str("\nGood places to start: ");
        text.push_str(&entries.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(", "));
        text.push_str(".\n");
    }
    text
}

const ENTRIES: [&str; 9] = [
    "src/main.rs",
    "src/lib.rs",
    "main.py",
    "__main__.py",
    "main.go",
    "src/index.ts",
    "src/index.js",
    "index.js",
    "main.c",
];

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
        "target" | "node_modules" | "dist" | "build" => "built output",
        "Dockerfile" => "the container image",
        _ => return None,
    })
}

/// What is in a folder.
pub(super) fn folder(situation: &Situation, path: &str) -> Vec<Part> {
    match situation.of_tool("LS").next() {
        None => vec![say(format!("Looking into `{path}`.")), tool("LS", json!({ "path": path }))],
        Some(step) if !step.ok() => vec![say(format!("I cannot look into it: {}", step.text()))],
        Some(step) => {
            let names = listed(&step.text());
            let rows: Vec<String> = names
                .iter()
                .take(40)
                .map(|name| match role(name) {
                    Some(role) => format!("- `{name}` — {role}\n"),
                    None => format!("- `{name}`\n"),
                })
                .collect();
            let more = if names.len() > 40 { format!("- … and {} more\n", names.len() - 40) } else { String::new() };
            vec![say(format!("`{path}` contains:\n\n{}{more}", rows.concat()))]
        }
    }
}

pub(super) fn file(situation: &Situation, path: &str) -> Vec<Part> {
    let reads: Vec<_> = situation.of_tool("Read").collect();
    let step = match (reads.as_slice(), situation.of_tool("Glob").next()) {
        ([], _) => return vec![say(format!("Reading `{path}`.")), read(path)],
        ([.., step], _) if step.ok() => step,
        // It may be somewhere else.
        ([_], None) => {
            let name = path.trim_start_matches(['.', '/']);
            return vec![tool("Glob", json!({ "pattern": format!("**/{name}") }))];
        }
        ([step], Some(found)) => {
            let text = found.text();
            let other = text.lines().map(str::trim).find(|line| line.ends_with(path.trim_start_matches("./")));
            match other.filter(|_| found.ok()) {
                Some(other) => return vec![read(situation.short(other))],
                None => return vec![say(format!("I cannot read it: {}", step.text()))],
            }
        }
        ([.., step], _) => return vec![say(format!("I cannot read it: {}", step.text()))],
    };
    let path = situation.short(step.input("file_path"));
    let lines = unnumbered(&step.text());
    let language = path.rsplit_once('.').map(|(_, extension)| extension).unwrap_or("text");
    let doc: Vec<&str> = lines
        .iter()
        .map(|line| line.trim())
        .skip_while(|line| line.is_empty() || line.starts_with("#!"))
        .take_while(|line| line.starts_with("//") || line.starts_with('#') || line.starts_with("\"\"\""))
        .map(|line| line.trim_start_matches(['/', '!', '#', '"', ' ']))
        .filter(|line| !line.is_empty())
        .take(4)
        .collect();
    let mut text = format!("`{path}` has {} line{}.", lines.len(), if lines.len() == 1 { "" } else { "s" });
    if !doc.is_empty() {
        text.push_str(&format!(" Its description: *{}*", doc.join(" ")));
    }
    let items: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim_end()))
        .filter(|(_, line)| declares(line))
        .collect();
    if items.is_empty() {
        let head: Vec<&str> = lines.iter().take(20).map(String::as_str).collect();
        text.push_str(&format!("\n\n```{language}\n{}\n```", head.join("\n")));
    } else {
        text.push_str("\n\nIt declares:\n\n");
        for (line, code) in items.iter().take(20) {
            text.push_str(&format!(
                "- line {line}: `{}`\n",
                code.trim().trim_end_matches('{').trim_end().replace('`', "'")
            ));
        }
        if items.len() > 20 {
            text.push_str(&format!("- … and {} more\n", items.len() - 20));
        }
    }
    vec![say(text)]
}

pub(super) fn declares(line: &str) -> bool {
    const STARTS: [&str; 22] = [
        "pub fn ",
        "fn ",
        "pub struct ",
        "struct ",
        "pub enum ",
        "enum ",
        "pub trait ",
        "trait ",
        "impl ",
        "pub mod ",
        "mod ",
        "def ",
        "class ",
        "function ",
        "export ",
        "func ",
        "type ",
        "interface ",
        "pub async fn ",
        "async fn ",
        "async def ",
        "pub type ",
    ];
    STARTS.iter().any(|start| line.trim_start().starts_with(start)) && line.len() - line.trim_start().len() <= 4
}
