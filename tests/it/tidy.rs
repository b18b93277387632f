//! What the compiler does not check: levels, file names and lengths, module docs, leftovers, how far the methods of a type
//! spread, the number of dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules and their levels, as ARCHITECTURE.md draws them (times ten). A module uses only lower levels, never its own.
/// A longer path stands for itself: the entry types are data that the protocol speaks of, below the session that writes them.
const LEVELS: &[(&str, u32)] = &[
    ("stdx", 0),
    ("sandbox", 5),
    ("message", 10),
    ("thinking", 15),
    ("provider", 20),
    ("permission", 20),
    ("commands", 20),
    ("hooks", 20),
    ("agents", 25),
    ("mcp", 25),
    ("plugins", 28),
    ("session::entry", 25),
    ("protocol", 30),
    ("session", 35),
    ("tools", 40),
    ("compact", 40),
    ("report", 40),
    ("agent", 60),
    ("config", 70),
    ("engine", 80),
    ("headless", 90),
    ("prove", 90),
    ("tui", 90),
    ("cli", 100),
    ("main", 110),
];

/// What is said in one place only: the code, and the files or folders that may say it. What decides about a tool call needs a
/// `Query`, and what runs one a `Context` with a `Permit`, so that nothing but `agent::dispatch` does either.
const ONLY: &[(&str, &[&str])] = &[
    ("Query {", &["src/leaves/permission/", "src/backend/agent/dispatch/grounds.rs"]),
    ("permission::decide", &["src/leaves/permission/", "src/backend/agent/dispatch/grounds.rs"]),
    ("Permit::of(", &["src/backend/agent/dispatch/grounds.rs"]),
    ("Permit::by_hand(", &["src/backend/agent/dispatch.rs"]),
    ("tools::Context {", &["src/backend/agent/dispatch/run.rs"]),
];

/// What starts a program other than under a policy, or with the reason why not (`Unconfined`): the code, and who may say it.
const STARTS: &[(&str, &[&str])] = &[
    // What else makes a command: the user's own editor, which has the terminal meanwhile, and what is listed below.
    (
        "Command::new(",
        &[
            "src/tui/start.rs",
            "src/tui/clipboard.rs",
            "src/leaves/sandbox/",
            "src/leaves/stdx/process",
            // In a scratch folder, for somebody who asked for it.
            "src/prove/",
            // A test in a file of its own.
            "src/leaves/permission/shell/against_bash.rs",
        ],
    ),
    (
        "command_without(",
        &[
            "src/backend/mcp/stdio.rs",
            "src/backend/tools/bash.rs",
            // Fetches what the user asked for by name.
            "src/backend/plugins/git.rs",
            "src/leaves/permission/repository/own.rs",
            "src/leaves/hooks/command.rs",
            "src/backend/agent/hook_env.rs",
            "src/leaves/provider/key.rs",
            "src/leaves/stdx/process",
        ],
    ),
    (".spawn()", &["src/tui/start.rs", "src/leaves/stdx/process", "src/prove/world.rs"]),
    // What the helper and its keepers are made of.
    ("process::start", &["src/leaves/sandbox/", "src/leaves/stdx/process"]),
    ("libc::fork", &["src/leaves/sandbox/helper.rs"]),
    ("Unconfined::Free", &["src/leaves/sandbox/running.rs"]),
    (
        "Unconfined::Settings",
        &[
            "src/backend/plugins/git.rs",
            "src/leaves/hooks/command.rs",
            "src/backend/agent/hook_env.rs",
            "src/leaves/provider/key.rs",
            "src/tui/run.rs",
        ],
    ),
    ("Unconfined::Clipboard", &["src/tui/clipboard.rs"]),
];

/// Longest file before its tests, in lines.
const MAX_LINES: usize = 500;

/// Most packages in Cargo.lock: every new dependency is a decision.
const MAX_PACKAGES: usize = 470;

#[test]
fn sources_are_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for file in rust_files(&root.join(folder)) {
            let name = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            faults.extend(faults_of(&name, &fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Most files in which one type has methods: what needs more is several states.
const MAX_IMPL_FILES: usize = 4;

#[test]
fn methods_of_a_type_stay_together() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = rust_files(&root.join("src")).into_iter().filter_map(|file| {
        let module = module_of(file.strip_prefix(root).unwrap().to_str().unwrap())?;
        Some((module, fs::read_to_string(&file).unwrap()))
    });
    let wide: Vec<(String, usize)> =
        impl_files(&sources.collect::<Vec<_>>()).into_iter().filter(|(_, files)| *files > MAX_IMPL_FILES).collect();
    assert!(wide.is_empty(), "split the state of a type that spreads: {wide:?}");
}

/// In how many files each type has methods of its own; `sources` are modules with their texts.
fn impl_files(sources: &[(String, String)]) -> BTreeMap<String, usize> {
    let mut defined: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, text) in sources {
        for name in names_after(text, &["struct", "enum"]) {
            defined.entry(name).or_default().push(module);
        }
    }
    let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (module, text) in sources {
        for name in names_after(text, &["impl"]) {
            // Several types may have the name: the one nearest in the tree is meant.
            let near = |home: &&&str| home.split("::").zip(module.split("::")).take_while(|(a, b)| a == b).count();
            let Some(home) = defined.get(name).and_then(|homes| homes.iter().max_by_key(near)) else { continue };
            files.entry(format!("{home}::{name}")).or_default().insert(module);
        }
    }
    files.into_iter().map(|(name, files)| (name, files.len())).collect()
}

/// The names behind these words where they begin an item of the file, `pub` and generics left out, and `impl … for …` too.
fn names_after<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let name = |line: &'a str| {
        let line = match line.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ")?.1,
            None => line.strip_prefix("pub ").unwrap_or(line),
        };
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.strip_prefix(' ')? };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (!rest.contains(" for ")).then_some(&rest[..end])
    };
    text.split("\nmod tests").next().unwrap_or(text).lines().filter_map(name).collect()
}

#[test]
fn dependencies_stay_few() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages <= MAX_PACKAGES, "{packages} packages in Cargo.lock: raise MAX_PACKAGES only on purpose");
}

#[test]
fn the_levels_are_drawn() {
    let picture = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    assert!(picture.lines().count() <= 150, "ARCHITECTURE.md is a picture, not a book");
    for (module, _) in LEVELS {
        let file = module.rsplit("::").next().unwrap();
        assert!(picture.contains(file), "ARCHITECTURE.md does not show {module}");
    }
}

pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false => Vec::from_iter(path.extension().is_some_and(|extension| extension == "rs").then_some(path)),
        })
        .collect();
    files.sort();
    files
}

/// Everything that is wrong with one file; `name` is relative to the package, with `/`.
fn faults_of(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//! ") {
        faults.push(format!("{name}: starts without a `//!` module doc"));
    }
    // Put together, so that this file does not find itself.
    for leftover in
        [["todo", "!("], ["unimplemented", "!("], ["dbg", "!("], ["allow(dead", "_code"]].map(|parts| parts.concat())
    {
        for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(&leftover)) {
            faults.push(format!("{name}:{}: {leftover}…", index + 1));
        }
    }
    let Some(module) = module_of(name).filter(|module| !module.ends_with("::tests")) else { return faults };
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text);
    // Whatever else comes before them, such as the system that they are for.
    let shipped = ["\n#[cfg(test)]", "\n#[cfg(all(test"]
        .iter()
        .fold(code, |code, tests| code.split(tests).next().unwrap_or(code));
    for (code_of_one, homes) in
        ONLY.iter().chain(STARTS).filter(|(_, homes)| !homes.iter().any(|home| name.starts_with(home)))
    {
        let names = |line: &str| line.split("//").next().is_some_and(|line| line.contains(code_of_one));
        if let Some(index) = shipped.lines().position(names).filter(|_| name != "src/backend/tools/fixture.rs") {
            faults.push(format!("{name}:{}: `{code_of_one}` is for {} alone", index + 1, homes.join(", ")));
        }
    }
    let lines = code.lines().count();
    if lines > MAX_LINES {
        faults.push(format!("{name}: {lines} lines before its tests; {MAX_LINES} are a lot already: split the state"));
    }
    let Some(own) = level(&module) else {
        faults.push(format!("{name}: `{module}` has no level in tests/it/tidy.rs and ARCHITECTURE.md"));
        return faults;
    };
    for (line, used) in uses(&module, code) {
        match level(&used) {
            _ if top(&used) == top(&module) => {}
            Some(level) if level.1 < own.1 => {}
            Some(level) => {
                let (own, used) = (format!("{} (level {})", own.0, own.1), format!("{} (level {})", level.0, level.1));
                faults.push(format!("{name}:{line}: {own} uses {used}"));
            }
            None => {}
        }
    }
    faults
}

/// `src/backend/tools/read.rs` → `tools::read`, `src/leaves/stdx/text.rs` → `stdx::text`; none outside of src and for the roots.
fn module_of(name: &str) -> Option<String> {
    let path = name.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_prefix("leaves/").or_else(|| path.strip_prefix("backend/")).unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    (path != "lib").then(|| path.replace('/', "::"))
}

fn top(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// The longest entry of the table that the path lies in.
fn level(path: &str) -> Option<(&'static str, u32)> {
    let within = |name: &str| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"));
    LEVELS.iter().copied().filter(|(name, _)| within(name)).max_by_key(|(name, _)| name.len())
}

/// The crate's own paths that the code names, with their lines: `crate::…`, `cocode::…`, and `super::…` that leaves the module.
fn uses(module: &str, code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Comments may speak of anything.
    let code: String = code.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let climb = "super::".repeat(module.split("::").count());
    for start in ["crate::", "cocode::", &climb] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) || code[..at].ends_with("super::")
            {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            found.extend(paths(&code[at + start.len()..]).into_iter().map(|path| (line, path)));
        }
    }
    found
}

/// The paths at the start of the text; a group in braces holds several.
fn paths(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).unwrap_or(text.len());
        let (path, rest) = text.split_at(end);
        // `crate::session::{entry::Seq, store}` names two modules.
        return match path.strip_suffix("::").filter(|_| rest.starts_with('{')) {
            Some(prefix) => paths(rest).into_iter().map(|path| format!("{prefix}::{path}")).collect(),
            None => vec![path.to_owned()],
        };
    };
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.extend(
                    Some(group[start..at].trim()).filter(|part| !part.is_empty()).map(paths).into_iter().flatten(),
                );
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn methods_are_counted_by_file() {
    let source = |module: &str, text: &str| (module.to_owned(), text.to_owned());
    let sources = [
        source("a", "pub(super) struct Wide<'a> {\n}\nimpl<'a> Wide<'a> {\n}\nimpl Drop for Wide<'_> {}\nenum Own {}"),
        source("a::b", "impl Wide<'_> {}\nimpl<T: Into<String>> From<T> for Wide<'_> {}"),
        source("a::c", "pub enum Own {}\nimpl Own {}\n#[cfg(test)]\nmod tests {\n}\nimpl Wide<'_> {}"),
        source("a::c::d", "impl Own {}"),
    ];
    let want = [("a::Wide", 2), ("a::c::Own", 2)].map(|(name, files)| (name.to_owned(), files));
    assert_eq!(impl_files(&sources), BTreeMap::from(want));
}

#[test]
fn tidy_finds_what_it_looks_for() {
    fn check(name: &str, text: &str, want: &[&str]) {
        assert_eq!(faults_of(name, &format!("//! Doc.\n{text}")), want, "{name}: {text}");
    }
    let up = "src/backend/tools/read.rs:2: tools (level 40) uses agent (level 60)";
    check("src/backend/tools/read.rs", "use crate::agent::Turn;", &[up]);
    check("src/backend/tools/read.rs", "use super::super::agent::Turn;", &[up]);
    check("src/backend/tools/read.rs", "use crate::{message::{Todo, Id}, agent};", &[up]);
    check("src/backend/tools/read.rs", "fn f() -> crate::agent::Turn {}", &[up]);
    check("src/backend/tools/read.rs", "use crate::{\n    message::Todo,\n    agent::Turn,\n};", &[up]);
    check(
        "src/backend/tools/read.rs",
        "use super::Tool; use crate::tools::write; use crate::session::store::Store;",
        &[],
    );
    check("src/backend/tools/read.rs", "// See crate::agent.\nuse other_crate::agent;", &[]);
    check("src/backend/tools/read.rs", "\n#[cfg(test)]\nmod tests { use crate::agent::Turn; }", &[]);
    check(
        "src/tui/app.rs",
        "use crate::headless::run;",
        &["src/tui/app.rs:2: tui (level 90) uses headless (level 90)"],
    );
    check("src/backend/protocol.rs", "use crate::session::entry::Seq;", &[]);
    let decides = "src/backend/agent/voice.rs:2: `Query {` is for src/leaves/permission/, src/backend/agent/dispatch/grounds.rs alone";
    check("src/backend/agent/voice.rs", "let query = Query { tool: READ, ..query };", &[decides]);
    check("src/backend/agent/dispatch/grounds.rs", "let query = Query { tool: READ, ..query };", &[]);
    let runs = "src/backend/agent/mod.rs:2: `Permit::by_hand(` is for src/backend/agent/dispatch.rs alone";
    check("src/backend/agent/mod.rs", "call.run(context(Permit::by_hand()))", &[runs]);
    check(
        "src/backend/protocol.rs",
        "use crate::session::{entry::Seq, store::Store};",
        &["src/backend/protocol.rs:2: protocol (level 30) uses session (level 35)"],
    );
    check("src/main.rs", "use cocode::cli;", &[]);
    let starts = "src/backend/engine/changes.rs:2: `.spawn()` is for src/tui/start.rs, src/leaves/stdx/process, src/prove/world.rs alone";
    check("src/backend/engine/changes.rs", "let child = git.spawn()?;", &[starts]);
    check("src/backend/engine/changes.rs", "\n#[cfg(test)]\n#[cfg(unix)]\nmod tests { git.spawn() }", &[]);
    check("src/tui/tests.rs", &"\n".repeat(600), &[]);
    check("src/new.rs", "", &["src/new.rs: `new` has no level in tests/it/tidy.rs and ARCHITECTURE.md"]);
    check(
        "src/stdx/a.rs",
        &"\n".repeat(MAX_LINES),
        &["src/stdx/a.rs: 501 lines before its tests; 500 are a lot already: split the state"],
    );
    check("tests/it/a.rs", &["todo", "!()"].concat(), &[&["tests/it/a.rs:2: todo", "!(…"].concat()]);
    assert_eq!(faults_of("src/stdx/a.rs", "fn f() {}"), ["src/stdx/a.rs: starts without a `//!` module doc"]);
}
