//! LS: what lies in one folder.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::message::Display;
use crate::permission::{Access, Sight};
use crate::provider::ToolSpec;

use super::{Context, Dirs, Output, Running, Tool, file, input};

/// Most entries that are listed.
const ENTRIES: usize = 1000;

pub(super) struct Ls;

#[derive(Deserialize, JsonSchema)]
struct Input {
    path: String,
}

impl Tool for Ls {
    fn spec(&self) -> ToolSpec {
        let description = include_str!("../../assets/tools/ls.md").trim().into();
        ToolSpec { name: "LS".into(), description, schema: input::schema::<Input>() }
    }

    fn access(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Result<Access, String> {
        let input: Input = input::parse(input)?;
        file::named(&input.path)?;
        Ok(Access::Read { path: dirs.absolute(&input.path, home) })
    }

    fn read_only(&self, _input: &Value) -> bool {
        true
    }

    fn title(&self, input: &Value) -> String {
        file::one_line(file::text_of(input, "path"))
    }

    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move {
            let path = match input::parse::<Input>(&input) {
                Ok(input) => context.dirs.absolute(&input.path, context.home),
                Err(error) => return Output::error(error),
            };
            if let Err(refusal) = file::check_place(&path, context) {
                return Output::error(refusal);
            }
            let sight = context.sight.clone();
            file::blocking(move || list(&path, &sight).unwrap_or_else(Output::error)).await
        })
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
