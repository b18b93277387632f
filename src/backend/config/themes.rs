//! Names of color themes: those that ship, and the user's own files in `themes/` beside their config.toml.

use super::paths::Paths;
use crate::stdx::nearest::nearest;

/// What ships; `auto` follows the terminal's background.
pub const SHIPPED: [&str; 5] = ["auto", "dark", "light", "terminal", "mono"];

/// The names of the user's own themes, sorted.
pub fn own(paths: &Paths) -> Vec<String> {
    let files = std::fs::read_dir(paths.themes()).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let name = path.file_stem()?.to_str()?.to_owned();
        (path.extension()? == "toml" && is_name(&name) && !SHIPPED.contains(&name.as_str())).then_some(name)
    };
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    names
}

/// Whether it is a name and no path.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '))
}

/// # Errors
/// There is no theme of that name; names those there are.
pub fn check(paths: &Paths, name: &str) -> Result<(), String> {
    if SHIPPED.contains(&name) {
        return Ok(());
    }
    let own = own(paths);
    if own.iter().any(|own| own == name) {
        return Ok(());
    }
    let all: Vec<&str> = SHIPPED.into_iter().chain(own.iter().map(String::as_str)).collect();
    let near = nearest(name, all.iter().copied()).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    Err(format!(
        "`tui.theme` must be one of {}{near}, or the name of a file in {}, not {name:?}",
        all.join(", "),
        paths.themes().display()
    ))
}
