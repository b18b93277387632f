//! Memory files: AGENTS.md and CLAUDE.md, with their `@path` imports, as text for the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Most bytes of one memory file; the rest is cut, and said so.
const FILE_CAP: usize = 40_000;
/// Most bytes of all memory files together.
const TOTAL_CAP: usize = 120_000;
/// How deep imports may nest.
const DEPTH: usize = 5;

/// One loaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    pub path: PathBuf,
    /// The same without links.
    pub real: PathBuf,
    pub text: String,
}

/// What loading found.
#[derive(Debug, Default)]
pub struct Memory {
    /// In the order in which the model reads them: the user's own first, then from the root of the project down.
    pub files: Vec<MemoryFile>,
    /// Imports of files outside the project that nobody allowed yet: importing file and imported file.
    pub outside: Vec<(PathBuf, PathBuf)>,
}

/// Loads memory files, each once while the model has it in front of it.
#[derive(Debug, Default)]
pub struct Loader {
    /// Loaded files with the bytes that each took.
    seen: BTreeMap<PathBuf, usize>,
    allowed: BTreeSet<PathBuf>,
    names: Vec<String>,
    home: Option<PathBuf>,
    project: PathBuf,
}

impl Loader {
    /// `names` count in every folder, in this order. `home` is the folder of the user's own memory (`<home>`), `project` the folder that imports may come from freely.
    pub fn new(names: Vec<String>, home: Option<PathBuf>, project: PathBuf) -> Loader {
        Loader { names, home, project, ..Loader::default() }
    }

    /// One that has loaded nothing yet; what the user allowed stays allowed.
    pub fn anew(&self) -> Loader {
        let (allowed, names) = (self.allowed.clone(), self.names.clone());
        Loader { allowed, ..Loader::new(names, self.home.clone(), self.project.clone()) }
    }

    /// Takes these for what is loaded: what a rewind, a boundary or clearing took away comes again, what a resumed session
    /// holds does not.
    pub fn heed<'a>(&mut self, held: impl Iterator<Item = &'a Path>) {
        let before = std::mem::take(&mut self.seen);
        self.seen = held.map(|path| (path.to_path_buf(), before.get(path).copied().unwrap_or(0))).collect();
    }

    /// Loads an import from outside the project, now that the user allowed it.
    pub fn import(&mut self, import: &Path) -> Memory {
        let mut memory = Memory::default();
        self.allowed.insert(import.to_path_buf());
        self.file(import, 1, &mut memory);
        memory
    }

    /// Loads the user's files, then those of every folder from the top of the file system down to `cwd`.
    pub fn start(&mut self, cwd: &Path) -> Memory {
        let mut memory = Memory::default();
        if let Some(home) = self.home.clone() {
            self.folder(&home, &mut memory);
        }
        let mut folders: Vec<&Path> = cwd.ancestors().collect();
        folders.reverse();
        for folder in folders {
            self.folder(folder, &mut memory);
        }
        memory
    }

    /// Loads what lies between the project and a file that was read for the first time.
    pub fn below(&mut self, file: &Path) -> Memory {
        let mut memory = Memory::default();
        let Some(folder) = file.parent().filter(|folder| folder.starts_with(&self.project)) else { return memory };
        let mut folders: Vec<PathBuf> =
            folder.ancestors().take_while(|folder| *folder != self.project).map(Path::to_path_buf).collect();
        folders.reverse();
        for folder in folders {
            self.folder(&folder, &mut memory);
        }
        memory
    }

    fn folder(&mut self, folder: &Path, memory: &mut Memory) {
        for name in self.names.clone() {
            self.file(&folder.join(name), 0, memory);
        }
    }

    fn file(&mut self, path: &Path, depth: usize, memory: &mut Memory) {
        // One file reached over two names (CLAUDE.md linked to AGENTS.md) is read once; that also cuts cycles.
        let Ok(real) = path.canonicalize() else { return };
        let spent: usize = self.seen.values().sum();
        if !real.is_file() || self.seen.contains_key(&real) || spent >= TOTAL_CAP {
            return;
        }
        let Ok(bytes) = std::fs::read(&real) else { return };
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        let cap = FILE_CAP.min(TOTAL_CAP - spent);
        if text.len() > cap {
            text.truncate(floor(&text, cap));
            text.push_str("\n[cut: the file is longer than memory files may be]");
        }
        self.seen.insert(real.clone(), text.len());
        let imports = imports(&text);
        memory.files.push(MemoryFile { path: path.to_path_buf(), real, text });
        if depth >= DEPTH {
            return;
        }
        for import in imports {
            let target = self.resolve(path, &import);
            let inside = target.canonicalize().is_ok_and(|real| {
                [Some(&self.project), self.home.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(root)))
            });
            if inside || self.allowed.contains(&target) {
                self.file(&target, depth + 1, memory);
            } else if target.is_file() {
                memory.outside.push((path.to_path_buf(), target));
            }
        }
    }

    fn resolve(&self, file: &Path, import: &str) -> PathBuf {
        if let Some(rest) = import.strip_prefix("~/")
            && let Some(user) = self.home.as_ref().and_then(|home| home.parent())
        {
            return user.join(rest);
        }
        let joined = file.parent().unwrap_or(Path::new("/")).join(import);
        let mut clean = PathBuf::new();
        for part in joined.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    clean.pop();
                }
                other => clean.push(other),
            }
        }
        clean
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Finds `@path` words outside code. A word counts only as a path: at the start of a line or after white space.
fn imports(text: &str) -> Vec<String> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Odd pieces between backticks are inline code.
        for (at, piece) in line.split('`').enumerate() {
            if at % 2 == 1 {
                continue;
            }
            for word in piece.split_whitespace() {
                if let Some(path) = word.strip_prefix('@') {
                    let path = path.trim_end_matches([',', '.', ';', ':', ')']);
                    if path.contains('.') || path.contains('/') {
                        found.push(path.to_owned());
                    }
                }
            }
        }
    }
    found
}

/// How the message begins that brings the memory files of a folder that was read in.
pub(super) const NESTED: &str = "Memory files for the folder of";

/// Renders loaded files for the model.
pub fn render(files: &[MemoryFile]) -> String {
    let mut text = String::new();
    for file in files {
        text.push_str(&format!("Contents of {}:\n\n{}\n\n", file.path.display(), file.text.trim_end()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"].map(str::to_owned).to_vec()
    }

    fn check(files: &[(&str, &str)], cwd: &str, want: &[&str], outside: usize) {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(base.join(cwd)).unwrap();
        let mut loader = Loader::new(names(), Some(base.join("home/.claude")), base.join("project"));
        let memory = loader.start(&base.join(cwd));
        let got: Vec<String> = memory
            .files
            .iter()
            .map(|file| file.path.strip_prefix(&base).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            (got.iter().map(String::as_str).collect::<Vec<_>>(), memory.outside.len()),
            (want.to_vec(), outside)
        );
    }

    #[test]
    fn loads_from_the_user_down_to_the_folder() {
        check(
            &[
                ("home/.claude/CLAUDE.md", "u"),
                ("project/AGENTS.md", "a"),
                ("project/CLAUDE.md", "c"),
                ("project/sub/CLAUDE.local.md", "l"),
            ],
            "project/sub",
            &["home/.claude/CLAUDE.md", "project/AGENTS.md", "project/CLAUDE.md", "project/sub/CLAUDE.local.md"],
            0,
        );
    }

    #[test]
    fn follows_imports_once_and_asks_for_those_outside() {
        check(
            &[
                (
                    "project/CLAUDE.md",
                    "see @docs/a.md and @../secret.md, not `@docs/b.md`\n```\n@docs/b.md\n```\n@nobody",
                ),
                ("project/docs/a.md", "@../CLAUDE.md @b.md"),
                ("project/docs/b.md", "b"),
                ("secret.md", "s"),
            ],
            "project",
            &["project/CLAUDE.md", "project/docs/a.md", "project/docs/b.md"],
            1,
        );
    }

    #[test]
    fn nested_files_come_with_the_first_read_below_them() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::fs::write(base.join("a/AGENTS.md"), "nested").unwrap();
        let mut loader = Loader::new(names(), None, base.clone());
        assert_eq!(loader.start(&base).files.len(), 0);
        assert_eq!(loader.below(&base.join("a/b/x.rs")).files.len(), 1);
        assert_eq!(loader.below(&base.join("a/y.rs")).files.len(), 0);
    }
}
