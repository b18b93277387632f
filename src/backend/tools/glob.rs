//! Glob: finds files by name.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use globset::{GlobBuilder, GlobSet};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Display;
use crate::permission::{Matches, Ruled, Shows, Sight};

use super::call::Typed;
use super::search::{self, Stop};
use super::{Call, Dirs, Manners, Output, file};

/// Most files that are named.
const FILES: usize = 100;

pub(super) struct Glob;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    pattern: String,
    /// Folder to search; default: the working directory
    path: Option<String>,
}

impl Input {
    /// The folder to start from, and the pattern below it: the fixed folders that a pattern begins with count as folder.
    fn place(&self, dirs: &Dirs) -> (PathBuf, String) {
        let root = dirs.absolute(self.path.as_deref().unwrap_or("."));
        let fixed =
            self.pattern.find(['*', '?', '[', '{', '\\']).map_or(self.pattern.as_str(), |at| &self.pattern[..at]);
        let outside = fixed.starts_with('/') || fixed.starts_with("~/") || fixed.split('/').any(|part| part == "..");
        match fixed.rfind('/').filter(|_| outside) {
            Some(at) => {
                let from = Dirs { cwd: root, ..dirs.clone() };
                (from.absolute(&fixed[..=at]), self.pattern[at + 1..].to_string())
            }
            None => (root, self.pattern.strip_prefix("./").unwrap_or(&self.pattern).to_string()),
        }
    }
}

impl Typed for Glob {
    type Input = Input;

    const NAME: &'static str = "Glob";
    const ABOUT: &'static str = include_str!("../../../assets/tools/glob.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Path, under: Some(super::READ), shows: Some(Shows::Names) },
        matched: "path",
        ..Manners::READS
    };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        search::named(input.path.as_deref())?;
        matcher(&input.pattern)?;
        let (root, pattern) = input.place(dirs);
        let cwd = dirs.cwd.clone();
        Ok(search::call((&input.pattern, input.path.as_deref()), root, move |root, sight, stop| {
            find(root, &pattern, &cwd, sight, stop)
        }))
    }
}

/// Builds the matcher for paths below the root. A pattern without a slash matches in every folder.
fn matcher(pattern: &str) -> Result<GlobSet, String> {
    if pattern.is_empty() {
        return Err("The pattern is empty; use `*` for every file.".into());
    }
    let everywhere = if pattern.contains('/') { pattern.to_string() } else { format!("**/{pattern}") };
    // A set of one: a glob that is too large for the regex engine is an error here, and a panic in a matcher of its own.
    let glob = GlobBuilder::new(&everywhere).literal_separator(true).build();
    let set = glob.and_then(|glob| GlobSet::builder().add(glob).build());
    set.map_err(|error| format!("The pattern is not valid: {}.", file::one_line(&error.kind().to_string())))
}

fn find(root: &Path, pattern: &str, cwd: &Path, sight: &Sight, stop: &Stop) -> Result<Output, String> {
    let matcher = matcher(pattern)?;
    let mut walker = search::walker(root);
    // Who names a hidden file means it.
    let hidden = pattern.split('/').any(|part| part.starts_with('.'));
    walker.hidden(!hidden);
    let (found, paths) = mpsc::channel();
    search::files(&walker, sight, stop, || {
        let (found, matcher) = (found.clone(), matcher.clone());
        move |path: &Path| {
            if path.strip_prefix(root).is_ok_and(|below| matcher.is_match(below)) {
                // The receiver outlives the walk.
                let _ = found.send(path.to_path_buf());
            }
        }
    });
    drop(found);
    let mut paths: Vec<PathBuf> = paths.into_iter().collect();
    search::newest_first(&mut paths);
    let count = paths.len();
    let mut lines: Vec<String> = paths.iter().take(FILES).map(|path| file::shown(path, cwd)).collect();
    if count == 0 {
        lines.push("No files match. Hidden and ignored files are skipped; LS lists them.".into());
    }
    if count > FILES {
        lines.push(format!(
            "[{} more files are not shown; these are the {FILES} newest. Use a narrower pattern.]",
            count - FILES
        ));
    }
    let line = if count == 1 { "1 file".to_string() } else { format!("{count} files") };
    Ok(Output { display: Some(Display::Line { text: line }), ..Output::ok(lines.join("\n")) })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::*;
    use crate::permission::Access;
    use crate::tools::fixture::Fixture;

    fn project() -> Fixture {
        let fixture = Fixture::new();
        for (age, name) in [
            "new.rs",
            "src/b.rs",
            "src/a/deep.rs",
            "src/view.tsx",
            "src/old.ts",
            ".github/ci.yml",
            ".git/x.rs",
            "target/made.rs",
            "odd\x1b[1m\nname.txt",
        ]
        .iter()
        .enumerate()
        {
            let path = fixture.file(name, "");
            let modified = SystemTime::now() - Duration::from_secs(60 * age as u64);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
        fixture.file(".gitignore", "target/\n");
        fixture
    }

    #[tokio::test]
    async fn finds() {
        let mut fixture = project();
        let root = fixture.root.display().to_string();
        let none = "No files match. Hidden and ignored files are skipped; LS lists them.";
        for (pattern, path, want) in [
            ("*.rs", None, "new.rs\nsrc/b.rs\nsrc/a/deep.rs"),
            ("**/*.rs", None, "new.rs\nsrc/b.rs\nsrc/a/deep.rs"),
            ("src/*.rs", None, "src/b.rs"),
            ("./src/*.rs", None, "src/b.rs"),
            ("*.{ts,tsx}", None, "src/view.tsx\nsrc/old.ts"),
            ("*.rs", Some("src"), "src/b.rs\nsrc/a/deep.rs"),
            ("../src/*.ts", Some("target"), "src/old.ts"),
            (".github/*", None, ".github/ci.yml"),
            ("*.yml", None, none),
            ("made.rs", None, none),
            ("*.txt", None, "odd\u{241b}[1m\u{240a}name.txt"),
            (&format!("{root}/src/*.ts"), None, "src/old.ts"),
        ] {
            let got = fixture.ok(&Glob, json!({"pattern": pattern, "path": path})).await;
            assert_eq!(got, want, "{pattern} in {path:?}");
        }
        assert!(fixture.error(&Glob, json!({"pattern": "*", "path": "gone"})).await.contains("does not exist"));
        assert!(fixture.error(&Glob, json!({"pattern": "a{b"})).await.contains("is not valid"));
        let deep = format!("{}b{}", "{a,".repeat(200), "}".repeat(200));
        assert!(fixture.error(&Glob, json!({"pattern": deep})).await.contains("is not valid"));
        let call = fixture.call(&Glob, json!({"pattern": "/etc/*.conf"})).unwrap();
        assert_eq!(*call.access(), Access::Search { root: "/etc".into() });
    }

    #[tokio::test]
    async fn many_are_capped() {
        let mut fixture = Fixture::new();
        for n in 0..120 {
            fixture.file(&format!("{n}.txt"), "");
        }
        let got = fixture.ok(&Glob, json!({"pattern": "*.txt"})).await;
        assert_eq!(got.lines().count(), 101);
        assert!(got.ends_with("[20 more files are not shown; these are the 100 newest. Use a narrower pattern.]"));
    }
}
