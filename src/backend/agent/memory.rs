//! Memory files: AGENTS.md and CLAUDE.md, with their `@path` imports, and the rules of `.claude/rules`, as text for the model.

mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use globset::GlobSet;

use crate::permission::Behavior;
use crate::permission::files::lexical;
use crate::stdx::regular;

/// Most bytes of one memory file; the rest is cut, and said so.
const FILE_CAP: usize = 40_000;
/// Most bytes of all memory files together.
const TOTAL_CAP: usize = 120_000;
/// How deep imports may nest.
const DEPTH: usize = 5;
/// Most files that a session asks about; the rest is left out.
const MAX_ASKED: usize = 8;

/// One loaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    pub path: PathBuf,
    /// The same without links.
    pub real: PathBuf,
    pub text: String,
    /// Why it was read, in Claude Code's words.
    pub because: &'static str,
}

impl MemoryFile {
    /// One that is not there any more.
    pub fn gone(path: &Path) -> MemoryFile {
        let text = "(The file was removed: what it said no longer applies.)".to_owned();
        MemoryFile { path: path.to_owned(), real: path.to_owned(), text, because: "session_start" }
    }
}

/// What loading found.
#[derive(Debug, Default)]
pub struct Memory {
    /// In the order in which the model reads them: the user's own first, then from the root of the project down.
    pub files: Vec<MemoryFile>,
    /// Files that nobody allowed yet and that lead outside the project, may hold secrets, or that a rule asks for.
    pub asked: Vec<Asked>,
    /// Files that rules deny or that may hold secrets, with the reason: they are left out.
    pub denied: Vec<(PathBuf, String)>,
    /// Files that nobody is asked about, since they are too many.
    pub unasked: BTreeSet<PathBuf>,
}

/// A memory file that is read only once the user allows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The file that imports it, or itself, where it is a link.
    pub from: PathBuf,
    pub path: PathBuf,
    /// Where the path leads: what is allowed is this file, not what takes its place.
    pub real: PathBuf,
    pub reason: String,
}

/// Who put a file where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The user, where memory is looked for by itself: lying outside the project is not a reason to ask.
    Own,
    /// Anybody.
    Any,
}

/// What the permission engine says to reading a file.
pub type Judge<'a> = &'a dyn Fn(&Path, Whose) -> (Behavior, String);

/// Loads memory files, each once while the model has it in front of it.
#[derive(Debug, Default)]
pub struct Loader {
    /// Loaded files with the bytes that each took.
    seen: BTreeMap<PathBuf, usize>,
    /// Paths that the user allowed, and where each led then.
    allowed: BTreeSet<(PathBuf, PathBuf)>,
    /// Files that the user did not allow, by whatever path: nobody asks again.
    refused: BTreeSet<PathBuf>,
    names: Vec<String>,
    home: Option<PathBuf>,
    project: PathBuf,
    /// Files that the user does not want.
    excluded: GlobSet,
    /// Why files are looked for now.
    because: &'static str,
}

impl Loader {
    /// `names` count in every folder, in this order. `home` is the folder of the user's own memory (`<home>`), `project` the folder that imports may come from freely.
    pub fn new(names: Vec<String>, home: Option<PathBuf>, project: PathBuf) -> Loader {
        Loader { names, home, project, ..Loader::default() }
    }

    /// The same without the files whose absolute paths match one of these patterns.
    pub fn without(self, patterns: Vec<String>) -> Loader {
        Loader { excluded: rules::patterns(&patterns), ..self }
    }

    /// One that has loaded nothing yet; what the user answered holds.
    pub fn fresh(&self) -> Loader {
        let (allowed, refused, names) = (self.allowed.clone(), self.refused.clone(), self.names.clone());
        let excluded = self.excluded.clone();
        Loader { allowed, refused, excluded, ..Loader::new(names, self.home.clone(), self.project.clone()) }
    }

    /// How many files the session may still ask about when so many are to be asked about anyway.
    pub fn questions(&self, waiting: usize) -> usize {
        MAX_ASKED.saturating_sub(self.allowed.len() + self.refused.len() + waiting)
    }

    /// Leaves the file out for as long as the session lasts.
    pub fn refuse(&mut self, asked: &Asked) {
        self.refused.insert(asked.real.clone());
    }

    /// Sets what counts as loaded: files that a rewind, a boundary or clearing removed load again, those that a resumed
    /// session holds do not.
    pub fn set_loaded<'a>(&mut self, held: impl Iterator<Item = &'a Path>) {
        let before = std::mem::take(&mut self.seen);
        self.seen = held.map(|path| (path.to_path_buf(), before.get(path).copied().unwrap_or(0))).collect();
    }

    /// Loads an import from outside the project, now that the user allowed it; nothing when the path leads elsewhere by now.
    pub fn import(&mut self, asked: &Asked, judge: Judge) -> Memory {
        let mut memory = Memory::default();
        self.allowed.insert((asked.path.clone(), asked.real.clone()));
        self.file((&asked.path, &asked.path), 1, judge, &mut memory);
        memory
    }

    /// Loads the user's files, then those of every folder from the top of the file system down to `cwd`.
    pub fn start(&mut self, cwd: &Path, judge: Judge) -> Memory {
        let mut memory = Memory::default();
        self.because = "session_start";
        if let Some(home) = self.home.clone() {
            self.folder(&home, judge, &mut memory);
        }
        let mut folders: Vec<&Path> = cwd.ancestors().collect();
        folders.reverse();
        for folder in folders {
            self.folder(folder, judge, &mut memory);
        }
        memory
    }

    /// Loads what lies between the project and a file that was read or changed for the first time, and the rules that mean
    /// this file.
    pub fn below(&mut self, file: &Path, judge: Judge) -> Memory {
        let mut memory = Memory::default();
        let folder = file.parent().filter(|folder| folder.starts_with(&self.project));
        let mut folders: Vec<PathBuf> = folder.map_or_else(Vec::new, |folder| {
            folder.ancestors().take_while(|folder| *folder != self.project).map(Path::to_path_buf).collect()
        });
        folders.reverse();
        self.because = "nested_traversal";
        for folder in &folders {
            self.folder(folder, judge, &mut memory);
        }
        self.because = "path_glob_match";
        // The user's own rules are about every project.
        let around = self.project.ancestors().map(|folder| (folder.to_path_buf(), folder.to_path_buf()));
        let own = self.home.iter().map(|home| (home.clone(), self.project.clone()));
        let nested = folders.into_iter().map(|folder| (folder.clone(), folder));
        for (folder, base) in own.chain(around).chain(nested).collect::<Vec<_>>() {
            let Ok(file) = file.strip_prefix(&base) else { continue };
            for rule in rules::below(&rules::folder_of(&folder, self.home.as_deref())) {
                if rules::scope(&rule).is_some_and(|scope| rules::mean(&scope, file)) {
                    self.file((&rule, &rule), 0, judge, &mut memory);
                }
            }
        }
        memory
    }

    fn folder(&mut self, folder: &Path, judge: Judge, memory: &mut Memory) {
        for name in self.names.clone() {
            let path = in_place_of(&folder.join(&name)).unwrap_or_else(|| folder.join(name));
            self.file((&path, &path), 0, judge, memory);
        }
        for rule in rules::below(&rules::folder_of(folder, self.home.as_deref())) {
            if rules::scope(&rule).is_none() {
                self.file((&rule, &rule), 0, judge, memory);
            }
        }
    }

    fn is_excluded(&self, path: &Path) -> bool {
        self.excluded.is_match(path)
    }

    /// `from` is the file that imports `path`, or `path` itself.
    fn file(&mut self, (from, path): (&Path, &Path), depth: usize, judge: Judge, memory: &mut Memory) {
        // One file reached over two names (CLAUDE.md linked to AGENTS.md) is read once; that also cuts cycles.
        let Ok(real) = path.canonicalize() else { return };
        let spent: usize = self.seen.values().sum();
        if !real.is_file() || self.seen.contains_key(&real) || spent >= TOTAL_CAP {
            return;
        }
        if self.is_excluded(path) || self.is_excluded(&real) {
            return;
        }
        let whose = if self.is_own(&real, from, path) { Whose::Own } else { Whose::Any };
        match judge(path, whose) {
            (Behavior::Deny, reason) => {
                let known = memory.denied.iter().any(|(denied, _)| denied == path);
                return memory.denied.extend((!known).then(|| (path.to_path_buf(), reason)));
            }
            (Behavior::Ask, reason) if !self.allowed.contains(&(path.to_path_buf(), real.clone())) => {
                if self.refused.contains(&real) || memory.asked.iter().any(|asked| asked.real == real) {
                    return;
                }
                if self.questions(memory.asked.len()) == 0 {
                    memory.unasked.insert(real);
                    return;
                }
                return memory.asked.push(Asked { from: from.to_path_buf(), path: path.to_path_buf(), real, reason });
            }
            _ => {}
        }
        let cap = FILE_CAP.min(TOTAL_CAP - spent);
        let Ok(bytes) = regular::read(&real, cap as u64 + 1) else { return };
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() > cap {
            text.truncate(floor(&text, cap));
            text.push_str("\n[cut: the file exceeds the limit for memory files]");
        }
        if rules::around(path, self.home.as_deref()).is_some() {
            text = rules::body(&text).to_owned();
        }
        self.seen.insert(real.clone(), text.len());
        let imports = imports(&text);
        let because = if depth > 0 { "include" } else { self.because };
        memory.files.push(MemoryFile { path: path.to_path_buf(), real, text, because });
        if depth >= DEPTH {
            return;
        }
        for import in imports {
            let target = self.resolve(path, &import);
            self.file((path, &target), depth + 1, judge, memory);
        }
    }

    /// Whether the user put the file where memory is looked for by itself: in their own home, links and imports of it
    /// included, or in a folder above the project, where a link may lead to the folder's other memory files alone. What
    /// belongs to neither the user nor root, as a file in /tmp may, somebody else put there.
    fn is_own(&self, real: &Path, from: &Path, path: &Path) -> bool {
        let within = |home: &PathBuf| {
            from == path && path.parent() == Some(home)
                || from.starts_with(home) && home.canonicalize().is_ok_and(|home| real.starts_with(home))
        };
        if self.home.as_ref().is_some_and(within) {
            return true;
        }
        if let Some(rules) = rules::around(path, self.home.as_deref()) {
            let above = rules.parent().and_then(Path::parent).is_some_and(|folder| self.project.starts_with(folder));
            let inside = rules.canonicalize().is_ok_and(|rules| real.starts_with(rules));
            return from == path && above && inside && belongs_to_user(real);
        }
        let named =
            |path: &Path| path.file_name().is_some_and(|name| self.names.iter().any(|known| name == known.as_str()));
        let Some(folder) = path.parent().filter(|folder| named(path) && self.project.starts_with(folder)) else {
            return false;
        };
        from == path
            && named(real)
            && folder.canonicalize().is_ok_and(|folder| real.parent() == Some(&folder))
            && belongs_to_user(real)
    }

    fn resolve(&self, file: &Path, import: &str) -> PathBuf {
        if let Some(rest) = import.strip_prefix("~/")
            && let Some(user) = self.home.as_ref().and_then(|home| home.parent())
        {
            return user.join(rest);
        }
        lexical(&file.parent().unwrap_or(Path::new("/")).join(import))
    }
}

/// What is read instead of a file: `AGENTS.override.md` beside `AGENTS.md`, unless it is empty.
fn in_place_of(file: &Path) -> Option<PathBuf> {
    let other = file.with_file_name("AGENTS.override.md");
    let says = |bytes: Vec<u8>| !bytes.trim_ascii().is_empty();
    (file.ends_with("AGENTS.md") && regular::read(&other, FILE_CAP as u64).is_ok_and(says)).then_some(other)
}

/// The folder that a memory file belongs to.
pub(super) fn folder_of(path: &Path) -> Option<&Path> {
    match rules::around(path, None) {
        Some(rules) => rules.parent()?.parent(),
        None => path.parent(),
    }
}

#[cfg(unix)]
fn belongs_to_user(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let user = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|data| data.uid() == user || data.uid() == 0)
}

#[cfg(not(unix))]
fn belongs_to_user(_: &Path) -> bool {
    true
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

    /// As the permission engine would: what lies outside asks, .env is denied.
    pub(super) fn judged(path: &Path, project: &Path, whose: Whose) -> (Behavior, String) {
        let real = path.canonicalize().unwrap();
        match (real.ends_with(".env"), real.starts_with(project) || whose == Whose::Own) {
            (true, _) => (Behavior::Deny, "rule".into()),
            (false, true) => (Behavior::Allow, String::new()),
            (false, false) => (Behavior::Ask, String::new()),
        }
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
        let project = base.join("project").canonicalize().unwrap();
        let memory = loader.start(&base.join(cwd), &|path, whose| judged(path, &project, whose));
        let got: Vec<String> = memory
            .files
            .iter()
            .map(|file| file.path.strip_prefix(&base).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!((got.iter().map(String::as_str).collect::<Vec<_>>(), memory.asked.len()), (want.to_vec(), outside));
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
        let judge = |path: &Path, whose: Whose| judged(path, &base, whose);
        assert_eq!(loader.start(&base, &judge).files.len(), 0);
        assert_eq!(loader.below(&base.join("a/b/x.rs"), &judge).files.len(), 1);
        assert_eq!(loader.below(&base.join("a/y.rs"), &judge).files.len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn what_was_allowed_is_the_file_that_was_asked_about() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        std::fs::create_dir(&project).unwrap();
        for (file, text) in [("project/CLAUDE.md", "@../shared.md"), ("shared.md", "shared"), ("key.md", "key")] {
            std::fs::write(base.join(file), text).unwrap();
        }
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        let mut loader = Loader::new(names(), None, project.clone());
        let asked = loader.start(&project, &judge).asked.remove(0);
        std::fs::remove_file(base.join("shared.md")).unwrap();
        std::os::unix::fs::symlink("key.md", base.join("shared.md")).unwrap();
        let memory = loader.import(&asked, &judge);
        assert_eq!((memory.files.len(), memory.asked.len()), (0, 1));
        std::fs::remove_file(base.join("shared.md")).unwrap();
        std::fs::write(base.join("shared.md"), "shared").unwrap();
        assert_eq!(loader.import(&asked, &judge).files[0].text, "shared");
    }

    #[test]
    fn an_import_asks_once_and_only_so_many_ask() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(project.join("sub")).unwrap();
        let outside: Vec<String> = (0..12).map(|at| format!("../{at}.md")).collect();
        for name in &outside {
            std::fs::write(project.join(name), "x").unwrap();
        }
        std::fs::write(project.join("CLAUDE.md"), "@../0.md @../0.md @../project/../0.md").unwrap();
        std::fs::write(project.join("sub/AGENTS.md"), format!("@../{}", outside.join(" @../").repeat(3))).unwrap();
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        let mut loader = Loader::new(names(), None, project.clone());
        let asked = loader.start(&project, &judge).asked;
        assert_eq!(asked.len(), 1, "{asked:?}");
        loader.refuse(&asked[0]);
        assert_eq!(loader.fresh().start(&project, &judge).asked, []);
        let memory = loader.below(&project.join("sub/x"), &judge);
        assert_eq!((memory.asked.len(), memory.unasked.len()), (MAX_ASKED - 1, 12 - MAX_ASKED));
        memory.asked.iter().for_each(|asked| loader.refuse(asked));
        assert_eq!(loader.fresh().below(&project.join("sub/x"), &judge).asked, []);
    }

    #[cfg(unix)]
    #[test]
    fn what_somebody_else_put_above_the_project_asks() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(base.join("AGENTS.md"), "mine").unwrap();
        std::fs::write(base.join("CLAUDE.local.md"), "theirs").unwrap();
        // Only root can give a file away.
        let given = std::os::unix::fs::chown(base.join("CLAUDE.local.md"), Some(65_534), None).is_ok();
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        let memory = Loader::new(names(), None, project.clone()).start(&project, &judge);
        assert_eq!((memory.files.len(), memory.asked.len()), if given { (1, 1) } else { (2, 0) });
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_what_asks_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(project.join("conf")).unwrap();
        for file in ["above.txt", "project/.env.asks", "project/conf/.env.asks", "project/notes.md"] {
            std::fs::write(base.join(file), file).unwrap();
        }
        for (name, target) in [
            ("project/AGENTS.md", "notes.md"),
            ("project/CLAUDE.md", ".env.asks"),
            ("project/CLAUDE.local.md", "conf/.env.asks"),
            ("CLAUDE.md", "above.txt"),
        ] {
            std::os::unix::fs::symlink(target, base.join(name)).unwrap();
        }
        // A plain file above the project is the user's; the engine asks for it, since it is outside.
        std::fs::write(base.join("AGENTS.md"), "mine").unwrap();
        let mut loader = Loader::new(names(), None, project.clone());
        let judge = |path: &Path, whose: Whose| match path.canonicalize().unwrap() {
            real if real.ends_with(".env.asks") => (Behavior::Ask, "it may hold secrets".to_owned()),
            real => judged(&real, &project, whose),
        };
        let memory = loader.start(&project, &judge);
        let loaded: Vec<_> = memory.files.iter().map(|file| file.path.strip_prefix(&base).unwrap()).collect();
        assert_eq!(loaded, [Path::new("AGENTS.md"), Path::new("project/AGENTS.md")]);
        assert_eq!(memory.asked.len(), 3, "{:?}", memory.asked);
    }

    #[cfg(unix)]
    #[test]
    fn links_out_ask_denied_files_stay_out_and_long_ones_are_cut() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (project, home) = (base.join("project"), base.join("home/.claude"));
        std::fs::create_dir_all(project.join("sub")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("secret"), "SECRET").unwrap();
        std::fs::write(project.join(".env"), "SECRET").unwrap();
        // A link out of the project, an import of our own home, and an import of a denied file.
        symlink(home.join("secret"), project.join("CLAUDE.md")).unwrap();
        std::fs::write(project.join("AGENTS.md"), "@~/.claude/secret.md @.env @fifo.md").unwrap();
        std::fs::write(home.join("secret.md"), "SECRET").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(project.join("fifo.md")).status().unwrap().success());
        std::fs::File::create(project.join("sub/AGENTS.md")).unwrap().set_len(3 << 30).unwrap();
        let mut loader = Loader::new(names(), Some(home.clone()), project.clone());
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        let memory = loader.start(&project, &judge);
        assert_eq!(memory.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), [project.join("AGENTS.md")]);
        let asked: Vec<_> = memory.asked.iter().map(|asked| asked.path.clone()).collect();
        assert_eq!(asked, [home.join("secret.md"), project.join("CLAUDE.md")]);
        assert_eq!(memory.denied, [(project.join(".env"), "rule".to_owned())]);
        let below = loader.below(&project.join("sub/x"), &judge);
        assert!(below.files[0].text.len() < FILE_CAP + 100, "{}", below.files[0].text.len());
    }
}
