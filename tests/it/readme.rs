//! What the README and `docs/` say is true: generated tables are current, examples work, and every flag, key, setting,
//! variable, command, error and link exists. `COCODE_REGENERATE=1 cargo test --test it readme` rewrites the tables.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};
use cocode::cli::Cli;
use cocode::commands::Registry;
use cocode::config::paths::{Env, Paths};
use cocode::config::{self, docs};
use cocode::provider::offline::script::Script;
use cocode::tui::keymap::{self, Key};
use cocode::tui::theme::Theme;
use regex::Regex;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and every page of `docs/`, by path from the root.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.map(|name| format!("docs/{name}")).collect();
    names.sort();
    names.insert(0, "README.md".into());
    let read = |name: String| (fs::read_to_string(root().join(&name)).unwrap(), name);
    names.into_iter().map(read).map(|(text, name)| (name, text)).collect()
}

fn check(page: &str, name: &str, table: &str) {
    let file = root().join(page);
    let text = fs::read_to_string(&file).unwrap();
    let (start, end) = (format!("<!-- generated:{name} -->\n"), "<!-- end -->");
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{page} lacks {start}"));
    let (current, after) = rest.split_once(end).unwrap_or_else(|| panic!("{page} lacks {end} after {start}"));
    if std::env::var_os("COCODE_REGENERATE").is_some() {
        fs::write(&file, format!("{before}{start}{table}{end}{after}")).unwrap();
    } else {
        assert!(
            current == table,
            "the table in {page} is out of date: COCODE_REGENERATE=1 cargo test --test it readme"
        );
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

#[test]
fn tables_are_current() {
    check("docs/terminal.md", "keys", &keys());
    check("docs/settings.md", "settings", &docs::settings_table());
    check("docs/commands.md", "commands", &Registry::builtin().table());
}

/// The code blocks of a language, on all pages.
fn blocks(language: &str) -> Vec<String> {
    let start = Regex::new(&format!("(?ms)^ *```{language}\n(.*?)^ *```")).unwrap();
    let of = |text: &str| start.captures_iter(text).map(|found| found[1].to_owned()).collect::<Vec<_>>();
    let found: Vec<String> = pages().iter().flat_map(|(_, text)| of(text)).collect();
    assert!(!found.is_empty(), "no page has {language}");
    found
}

/// Code in the middle of a line, with its page; generated tables speak for themselves.
fn code() -> Vec<(String, String)> {
    let blocks = Regex::new("(?ms)^ *```.*?^ *```|<!-- generated:.*?<!-- end -->").unwrap();
    let span = Regex::new("`([^`\n]+)`").unwrap();
    let of = |(page, text): (String, String)| {
        let prose = blocks.replace_all(&text, "").into_owned();
        span.captures_iter(&prose).map(|found| (page.clone(), found[1].to_owned())).collect::<Vec<_>>()
    };
    pages().into_iter().flat_map(of).collect()
}

#[test]
fn examples_of_files_are_valid() {
    for script in blocks("yaml") {
        Script::parse(&script).unwrap();
    }
    let (themes, settings): (Vec<_>, Vec<_>) = blocks("toml").into_iter().partition(|text| text.contains("[styles]"));
    assert_eq!(themes.iter().map(|text| Theme::parse(text).is_ok()).collect::<Vec<_>>(), [true]);
    for settings in settings {
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
    let blocks = blocks("sh");
    // What is piped in or out is another program's.
    let lines = blocks.iter().flat_map(|block| block.lines()).flat_map(|line| line.split(" | "));
    let code = code();
    let lines = lines.map(str::trim).chain(code.iter().map(|(_, code)| code.as_str()));
    let mut seen = 0;
    for line in lines.filter(|line| line.starts_with("cocode ")) {
        Cli::try_parse_from(words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        seen += 1;
    }
    assert!(seen > 20, "only {seen} command lines were found");
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

/// Every long flag of the command and of those below it.
fn flags(command: &Command, found: &mut BTreeSet<String>) {
    found.extend(command.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))));
    command.get_subcommands().for_each(|command| flags(command, found));
}

/// Holds what a pattern finds on all pages against what there is.
fn all_exist(what: &str, pattern: &str, at_least: usize, exists: impl Fn(&str) -> bool) {
    let (pattern, mut seen) = (Regex::new(pattern).unwrap(), 0);
    for (page, text) in pages() {
        for found in pattern.captures_iter(&text) {
            assert!(exists(&found[1]), "{page}: no {what} {}", &found[1]);
            seen += 1;
        }
    }
    assert!(seen >= at_least, "only {seen} mentions of a {what} were found");
}

#[test]
fn flags_exist() {
    let mut known = BTreeSet::new();
    flags(&Cli::command(), &mut known);
    // Of cargo, git, and of our own programs for developers.
    let cargo =
        ["--locked", "--path", "--git", "--release", "--example", "--long", "--floods", "--list", "--all", "--stat"];
    let lab = "--file --tier --window --writer --density --least --lost --show --write-session --sessions --turns";
    known.extend(cargo.into_iter().chain(lab.split(' ')).map(String::from));
    all_exist("flag", r"(?m)(?:^|[\s`(])(--[a-z][a-z-]*)", 30, |flag| known.contains(flag));
}

#[test]
fn keys_are_bound() {
    let bound: Vec<Key> = keymap::table()
        .iter()
        .flat_map(|(_, keys, _)| keys.split(", ").filter_map(Key::parse).collect::<Vec<_>>())
        .collect();
    let is_bound = |key: &str| Key::parse(key).is_some_and(|key| bound.contains(&key));
    all_exist("key", r"\b((?:Ctrl\+X )?(?:Ctrl\+|Alt\+|Shift\+)+(?:\w+|[^\s\w`]))", 60, is_bound);
}

#[test]
fn variables_are_read() {
    let settings = docs::settings();
    let sources: String = sources().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let read = |name: &str| {
        let own = name.strip_prefix("COCODE_");
        let key = own.map(|name| name.to_lowercase().replace("__", "."));
        sources.contains(name)
            || own.is_some_and(|name| sources.contains(&format!("CLAUDE_CODE_{name}")))
            || settings.iter().any(|setting| key.as_ref() == Some(&setting.key))
    };
    all_exist("variable", r"\b((?:COCODE|CLAUDE|DISABLE)_[A-Z0-9_]+)\b", 15, read);
}

fn sources() -> Vec<PathBuf> {
    let mut found = crate::tidy::rust_files(&root().join("src"));
    found.retain(|file| !file.ends_with("tests.rs"));
    found
}

#[test]
fn settings_and_commands_exist() {
    let settings = docs::settings();
    let (key, file) =
        (Regex::new(r"^[a-z_]+(\.[a-z_<>]+)*( = .*)?$").unwrap(), Regex::new(r"\.(json|toml|md|svg)$").unwrap());
    let tables: BTreeSet<&str> = settings.iter().filter_map(|setting| Some(setting.key.split_once('.')?.0)).collect();
    let slash = Regex::new("^/([a-z-]+)(?: .*)?$").unwrap();
    let commands = Registry::builtin();
    let skills = root().join("assets/skills");
    let (mut seen, placeholder) = (0, ["name"]);
    for (page, code) in code() {
        let name = code.split(" = ").next().unwrap().replace("<name>", "anthropic");
        if key.is_match(&code)
            && (code.contains(" = ") || tables.contains(name.split('.').next().unwrap()))
            && !file.is_match(&code)
        {
            let of_a_table = |setting: &docs::Setting| setting.key.starts_with(&format!("{name}."));
            // Of hooks, of a list of rules shown without its table, and of credentials.toml.
            let other = ["async", "once", "if", "deny", "anthropic"].contains(&name.as_str());
            let exists = settings.iter().any(|setting| setting.key == name || of_a_table(setting));
            assert!(exists || other, "{page}: no setting `{code}`");
            seen += 1;
        }
        if let Some(found) = slash.captures(&code) {
            let name = &found[1];
            let exists = commands.find(name).is_some() || skills.join(name).is_dir() || placeholder.contains(&name);
            assert!(exists, "{page}: no command `{code}`");
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} settings and commands were found");
}

#[test]
fn errors_read_as_quoted() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let sources: String = sources().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let quoted = Regex::new("^\\| `([^|]+?)` \\|").unwrap();
    let (rows, number) = (page.lines().filter(|line| line.starts_with("| `")), Regex::new(r"\(\d+\)").unwrap());
    for row in rows {
        let text = &quoted.captures(row).unwrap_or_else(|| panic!("{row}"))[1];
        for error in text.split("`, `") {
            for part in number.replace_all(error, "…").split('…').map(str::trim).filter(|part| part.len() > 3) {
                assert!(sources.contains(part), "no error says `{part}`");
            }
        }
    }
}

/// What the README claims of clearing is what the table of figures says: in percent of what never clearing costs.
#[test]
fn what_clearing_saves_is_what_was_measured() {
    let figures = fs::read_to_string(root().join("docs/figures.md")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap().replace("\n  ", " ");
    let cell = Regex::new(r"\$([\d.]+) of \$([\d.]+)").unwrap();
    let saved = |window: &str| {
        let row = figures.lines().find(|line| line.starts_with(&format!("| {window} | $"))).unwrap();
        let cost = |text: &str| text.parse::<f64>().unwrap();
        let cells = cell.captures_iter(row).map(|cell| 100.0 - cost(&cell[1]) / cost(&cell[2]) * 100.0);
        let (least, most) = cells.fold((100.0, 0.0), |(least, most): (f64, f64), of| (least.min(of), most.max(of)));
        format!("{least:.0}% to {most:.0}%")
    };
    let claim =
        format!("{} of the cost of simulated sessions at 8k tokens, {} at a million.", saved("8k"), saved("1M"));
    assert!(readme.contains(&claim), "the README does not say: {claim}");
}

/// What GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn links_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)#]*)(?:#([^)]*))?\)").unwrap();
    let mut linked = BTreeSet::new();
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let all = pages();
    for (page, text) in all.iter().chain([&("ARCHITECTURE.md".to_owned(), architecture)]) {
        for found in link.captures_iter(text).filter(|found| !found[1].starts_with("https://")) {
            let file = match &found[1] {
                "" => root().join(page),
                target => root().join(page).parent().unwrap().join(target),
            };
            assert!(file.exists(), "{page}: no {}", &found[0]);
            if let Some(wanted) = found.get(2) {
                let target = fs::read_to_string(&file).unwrap();
                let mut headings = target.lines().filter(|line| line.starts_with('#'));
                let exists = headings.any(|line| anchor(line.trim_start_matches('#')) == wanted.as_str());
                assert!(exists, "{page}: no heading for {}", &found[0]);
            }
            if page == "README.md" {
                linked.insert(found[1].to_owned());
            }
        }
    }
    for (page, _) in all.iter().skip(1) {
        assert!(linked.contains(page), "README.md does not link {page}");
    }
}

#[test]
fn pictures_place_every_cell() {
    let folder = root().join("assets/screenshots");
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
