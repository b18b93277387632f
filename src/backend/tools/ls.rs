//! LS: what lies in one folder.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Display;
use crate::permission::{Access, Matches, Ruled, Shows, Sight};

use super::call::Typed;
use super::{Call, Dirs, Manners, Output, file};

/// Most entries that are listed.
const ENTRIES: usize = 1000;

pub(super) struct Ls;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    path: String,
}

impl Typed for Ls {
    type Input = Input;

    const NAME: &'static str = "LS";
    const ABOUT: &'static str = include_str!("../../../assets/tools/ls.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Path, under: Some(super::READ), shows: Some(Shows::Names) },
        matched: "path",
        needs_room: true,
        ..Manners::READS
    };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        file::named(&input.path)?;
        let path = dirs.absolute(&input.path);
        let access = Access::Read { path: path.clone() };
        Ok(Call::new(access, file::one_line(&input.path), move |context| {
            file::blocking(move || {
                let checked = file::check_place(&path, &context.permit);
                checked.and_then(|()| list(&path, context.permit.sight())).unwrap_or_else(Output::error)
            })
        }))
    }
}

fn list(path: &Path, sight: &Sight) -> Result<Output, String> {
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        // The sentence for a missing path is the same for every tool.
        Err(_) => return Err(file::open(path).err().unwrap_or_else(|| format!("{shown} has just been created."))),
    };
    if !metadata.is_dir() {
        return Err(format!("{shown} is not a folder. Use Read to read a file."));
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("Cannot list {shown}: {error}."))?;
    let mut names: Vec<(bool, String)> = entries
        .flatten()
        .filter(|entry| entry.file_name() != ".git" && sight.shows(&entry.path()))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().replace('\n', "\u{240a}");
            let name = crate::stdx::ansi::visible(&name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => (false, name + "/"),
                Ok(kind) if kind.is_symlink() => (true, name + &target(&entry.path())),
                _ => (true, name),
            }
        })
        .collect();
    names.sort();
    let count = names.len();
    let mut text = format!("{shown}/\n");
    for (_, name) in names.iter().take(ENTRIES) {
        let _ = writeln!(text, "  {name}");
    }
    if count == 0 {
        text.push_str("  (empty)\n");
    }
    if count > ENTRIES {
        let _ = writeln!(text, "[{} more entries are not shown. Use Glob with a pattern.]", count - ENTRIES);
    }
    let line = if count == 1 { "1 entry".to_string() } else { format!("{count} entries") };
    Ok(Output { display: Some(Display::Line { text: line }), ..Output::ok(text) })
}

fn target(link: &PathBuf) -> String {
    std::fs::read_link(link)
        .map_or(String::new(), |to| format!(" -> {}", crate::stdx::ansi::visible(&to.display().to_string())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[tokio::test]
    async fn lists() {
        let mut fixture = Fixture::new();
        for name in ["b.txt", "a\x1b[31m.txt", "z/inner", ".git/config", ".hidden"] {
            fixture.file(name, "");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("b.txt", fixture.root.join("link")).unwrap();
        let got = fixture.ok(&Ls, json!({"path": "."})).await;
        assert_eq!(got, "ROOT/\n  z/\n  .hidden\n  a\u{241b}[31m.txt\n  b.txt\n  link -> b.txt\n");
        assert!(fixture.error(&Ls, json!({"path": "b.txt"})).await.contains("is not a folder. Use Read"));
        assert!(fixture.error(&Ls, json!({"path": "gone"})).await.contains("does not exist"));
        std::fs::create_dir(fixture.root.join("empty")).unwrap();
        assert_eq!(fixture.ok(&Ls, json!({"path": "empty"})).await, "ROOT/empty/\n  (empty)\n");
    }
}
