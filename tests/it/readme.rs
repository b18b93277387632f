//! The README's generated tables are current. `COCODE_REGENERATE=1 cargo test --test it readme` writes them anew.

use std::fs;
use std::path::Path;

use cocode::commands::Registry;
use cocode::config::docs;
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
