//! The README's generated tables are current, and its examples work. `COCODE_REGENERATE=1 cargo test --test it readme`
//! writes the tables anew.

use std::fs;
use std::path::Path;

use clap::{CommandFactory, Parser};
use cocode::cli::Cli;
use cocode::commands::Registry;
use cocode::config::paths::{Env, Paths};
use cocode::config::{self, docs};
use cocode::provider::offline::script::Script;
use cocode::tui::keymap;

fn check(name: &str, table: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let (start, end) = (format!("<!-- generated:{name} -->\n"), "<!-- end -->");
    let (before, rest) = readme.split_once(&start).unwrap_or_else(|| panic!("README.md lacks {start}"));
    let (current, after) = rest.split_once(end).unwrap_or_else(|| panic!("README.md lacks {end} after {start}"));
    if std::env::var_os("COCODE_REGENERATE").is_some() {
        fs::write(&file, format!("{before}{start}{table}{end}{after}")).unwrap();
    } else {
        assert!(current == table, "the table `{name}` is not current: COCODE_REGENERATE=1 cargo test --test it readme");
    }
}

/// Default keys as a Markdown table.
fn keys() -> String {
    let mut rows = String::from("| Key | Action | What it does |\n|---|---|---|\n");
    for (action, keys, help) in keymap::table() {
        // A vertical bar ends a cell, a backquote the code.
        let keys: Vec<String> = keys.split(", ").map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
        rows.push_str(&format!("| {} | `{action}` | {} |\n", keys.join(" "), docs::cell(help)));
    }
    rows
}

// One test, as all of them write the same file.
#[test]
fn tables_are_current() {
    check("keys", &keys());
    check("settings", &docs::settings_table());
    check("commands", &Registry::builtin().table());
}

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The code blocks of a language.
fn blocks(language: &str) -> Vec<String> {
    let text = readme();
    let blocks = text.split("\n```").skip(1).step_by(2);
    let found = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).map(str::to_owned);
    let found: Vec<String> = found.collect();
    assert!(!found.is_empty(), "README.md has no {language}");
    found
}

#[test]
fn examples_of_files_are_valid() {
    for script in blocks("yaml") {
        Script::parse(&script).unwrap();
    }
    for settings in blocks("toml") {
        let home = tempfile::tempdir().unwrap();
        let env = Env::fake(home.path(), &[]);
        let paths = Paths::new(&env).unwrap();
        fs::create_dir_all(&paths.config_dir).unwrap();
        fs::write(paths.user_config(), settings).unwrap();
        config::load(&paths, &env, toml::Table::new()).unwrap();
    }
}

#[test]
fn examples_of_commands_are_understood() {
    let mut seen = 0;
    for block in blocks("sh") {
        // What is piped in or out is another program's.
        for line in block.lines().filter_map(|line| line.split(" | ").find(|part| part.starts_with("cocode "))) {
            let words = words(line);
            Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} command lines were found");
}

/// The words of a command line with nothing but double quotes in it.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn flags_and_pictures_exist() {
    let (text, help) = (readme(), Cli::command().render_help().to_string());
    // Of cargo, of our own programs for people, and of subcommands.
    let others = ["--release", "--example", "--text", "--size", "--json", "--list", "--long", "--floods"];
    let ends = |c: char| !(c.is_alphanumeric() || c == '-');
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '`' | '(')) {
        let flag = word.trim_end_matches(ends);
        // The lines around a frontmatter are no flags.
        if flag.starts_with("--")
            && !flag.chars().all(|c| c == '-')
            && flag.chars().skip(2).all(|c| c.is_ascii_lowercase() || c == '-')
        {
            assert!(help.contains(flag) || others.contains(&flag), "there is no {flag}");
        }
    }
    for (_, rest) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
        let target = rest.split(')').next().unwrap();
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(), "there is no {target}");
    }
}

#[test]
fn pictures_place_every_cell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/screenshots");
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let picture = fs::read_to_string(&file).unwrap();
        let mut cells = 0;
        for span in picture.split("<tspan x=\"").skip(1) {
            let text = span.split(['>', '<']).nth(1).unwrap();
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            assert_eq!(text.chars().count(), 1, "{}: `{text}` drifts in another font", file.display());
            cells += 1;
        }
        assert!(cells > 500, "{}: only {cells} cells are placed", file.display());
    }
}
