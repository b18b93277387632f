//! What of a project its command lines run: the files are part of what the user agrees to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use super::commands;
use super::files::lexical;
use super::shell::{self, Assignment, Node, Piece, RedirectKind, Simple, Word};
use super::wrapper;
use crate::stdx::hash::sha256_hex;
use crate::stdx::regular;

/// Most bytes of a script that are hashed; beyond them its length and its time count.
const SCRIPT: u64 = 4 << 20;
/// Most names below a project that are looked at for scripts.
const MAX_NAMES: usize = 20_000;
/// Most scripts of a project, and most bytes of all of them.
const MAX_SCRIPTS: usize = 4_000;
const MAX_BYTES: usize = 64 << 20;
/// Deepest nesting of lines in lines, as in `sh -c "sh -c …"`.
const MAX_DEPTH: usize = 4;

/// Shells that run the file that comes first, or the line behind `-c`.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
/// Programs that run the file that comes first.
const INTERPRETERS: [&str; 9] = ["python", "python3", "node", "ruby", "perl", "php", "lua", "tsx", "Rscript"];
/// Programs that run nothing of what they are given.
const INERT: [&str; 25] = [
    "echo",
    "printf",
    "true",
    "false",
    "exit",
    "sleep",
    "jq",
    "cat",
    "grep",
    "touch",
    "mkdir",
    "rmdir",
    "cp",
    "mv",
    "rm",
    "tee",
    "kill",
    "curl",
    "wget",
    "logger",
    "notify-send",
    "say",
    "afplay",
    "paplay",
    "date",
];
/// Programs that run what a file of the folder tells them, which has one of the names below.
const BUILDERS: [&str; 24] = [
    "make", "just", "task", "npm", "npx", "pnpm", "yarn", "bun", "deno", "cargo", "go", "uv", "poetry", "pytest",
    "prettier", "eslint", "biome", "tsc", "ruff", "black", "gofmt", "rustfmt", "mvn", "git",
];
const BUILD_FILES: [&str; 22] = [
    "makefile",
    "gnumakefile",
    "justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "package.json",
    "deno.json",
    "bunfig.toml",
    "cargo.toml",
    "build.rs",
    "go.mod",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "conftest.py",
    "pytest.ini",
    "pom.xml",
    "rakefile",
    "gemfile",
    "eslint.config.js",
    "prettier.config.js",
];
const SCRIPT_ENDINGS: [&str; 22] = [
    "sh", "bash", "zsh", "fish", "ksh", "py", "js", "mjs", "cjs", "ts", "mts", "tsx", "rb", "pl", "php", "lua", "r",
    "awk", "sed", "ps1", "bat", "cmd",
];

/// Files of a project, by name with a hash of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    files: BTreeMap<String, String>,
    reach: Reach,
}

/// How much of the project the commands may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The files that they name.
    #[default]
    Named,
    /// Any script in the folder, since nobody can tell which.
    Folder,
    /// The same, and there are too many to compare.
    Session,
}

impl Bound {
    /// What the lines run, as the shell in `project` reads them.
    pub fn commands<'a>(project: &Path, lines: impl IntoIterator<Item = &'a str>) -> Bound {
        let mut walk = Walk { project: lexical(project), bound: Bound::default(), all: false };
        let lines: Vec<&str> = lines.into_iter().collect();
        lines.iter().for_each(|line| walk.line(line, 0));
        if walk.all {
            let top = walk.project.clone();
            walk.everything(&top, &lines);
        }
        walk.bound
    }

    /// What a variable names: files, and folders with the scripts in them.
    pub fn value(project: &Path, value: &str) -> Bound {
        let mut walk = Walk { project: lexical(project), bound: Bound::default(), all: false };
        let split = value.split(|c: char| c.is_whitespace() || ":=,;".contains(c));
        for text in std::iter::once(value).chain(split).filter(|text| !text.is_empty()) {
            let path = walk.path(text);
            match path.is_dir() && path.starts_with(&walk.project) && path != walk.project {
                true => walk.everything(&path, &[]),
                false => walk.file(text),
            }
        }
        walk.bound
    }

    /// What a person is told beside the line; empty when the line tells all.
    pub(super) fn note(&self) -> &'static str {
        match self.reach {
            Reach::Named => "",
            Reach::Folder => " – may run any script of the folder: a change in one asks again",
            Reach::Session => {
                " – may run any script of the folder, and those are too many to watch: asks in every session"
            }
        }
    }

    /// Everything as text, for a hash.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, hash) in &self.files {
            let _ = write!(text, "{} {name}{hash}", name.len());
        }
        if self.reach == Reach::Session {
            static SESSION: OnceLock<String> = OnceLock::new();
            text += SESSION.get_or_init(|| format!("{} {:?}", std::process::id(), SystemTime::now()));
        }
        text
    }

    pub(super) fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }
}

struct Walk {
    project: PathBuf,
    bound: Bound,
    /// Whether a command may run what nobody can name.
    all: bool,
}

impl Walk {
    fn line(&mut self, line: &str, depth: usize) {
        match shell::parse(line) {
            Ok(line) if depth <= MAX_DEPTH => self.node(&line.node, depth),
            _ => self.all = true,
        }
    }

    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::Simple(command) => self.simple(command, depth),
            Node::Not(node) => self.node(node, depth),
            Node::And(left, right) | Node::Or(left, right) => {
                self.node(left, depth);
                self.node(right, depth);
            }
            Node::Sequence(nodes) | Node::Apart(nodes) => nodes.iter().for_each(|node| self.node(node, depth)),
            Node::Block { parts, .. } => parts.iter().for_each(|node| self.node(node, depth)),
            Node::Function { .. } => self.all = true,
            Node::Redirected { body, redirects } => {
                redirects.iter().for_each(|redirect| self.redirect(redirect.kind, &redirect.target));
                body.iter().for_each(|body| self.node(body, depth));
            }
        }
    }

    fn redirect(&mut self, kind: RedirectKind, target: &Word) {
        if matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite) {
            self.operands(std::slice::from_ref(target));
        }
    }

    fn simple(&mut self, command: &Simple, depth: usize) {
        command.redirects.iter().for_each(|redirect| self.redirect(redirect.kind, &redirect.target));
        let plain = |set: &Assignment| {
            wrapper::sets_harmlessly(&set.name, set.value.literal().as_deref()) || wrapper::is_local(&set.name)
        };
        self.all |= command.assignments.iter().any(|set| !plain(set));
        self.words(&command.words, depth);
    }

    fn words(&mut self, words: &[Word], depth: usize) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(name) = self.literal(name) else { return self.all = true };
        if name.contains('/') && self.path(&name).starts_with(&self.project) {
            self.file(&name);
            return self.operands(arguments);
        }
        let name = name.rsplit('/').next().unwrap_or_default();
        match wrapper::unwrap(words) {
            Some(Ok(inner)) => return self.words(inner, depth + 1),
            Some(Err(_)) => return self.all = true,
            None => {}
        }
        let first = arguments.first().and_then(|word| self.literal(word));
        match (name, first) {
            (name, Some(first)) if SHELLS.contains(&name) && first == "-c" => {
                match arguments.get(1).and_then(|line| self.literal(line)) {
                    Some(line) => self.line(&line, depth + 1),
                    None => self.all = true,
                }
                self.operands(&arguments[1..]);
            }
            (name, Some(first))
                if (SHELLS.contains(&name) || INTERPRETERS.contains(&name) || matches!(name, "." | "source"))
                    && self.path(&first).is_file()
                    && !first.starts_with('-')
                    && (first.contains('/') || !matches!(name, "." | "source")) =>
            {
                self.operands(arguments);
            }
            (name, _) if INERT.contains(&name) || commands::reads(words).is_ok() => self.operands(arguments),
            (name, _) if BUILDERS.contains(&name) && arguments.iter().all(|word| self.literal(word).is_some()) => {
                self.operands(arguments);
                self.build_files(&self.project.clone());
                let texts: Vec<String> = arguments.iter().filter_map(|word| self.literal(word)).collect();
                for text in &texts {
                    self.build_files(&self.path(text.split_once('=').map_or(text, |(_, value)| value)));
                }
            }
            _ => self.all = true,
        }
    }

    /// The word as text; None when only bash knows it.
    fn literal(&self, word: &Word) -> Option<String> {
        let mut text = String::new();
        for piece in &word.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Dynamic(expansion) if expansion.variable() == Some("CLAUDE_PROJECT_DIR") => {
                    text.push_str(self.project.to_str()?);
                }
                Piece::Glob(_) | Piece::Tilde | Piece::Dynamic(_) => return None,
            }
        }
        Some(text)
    }

    fn path(&self, text: &str) -> PathBuf {
        lexical(&self.project.join(text))
    }

    fn operands(&mut self, words: &[Word]) {
        for text in words.iter().filter_map(|word| self.literal(word)).collect::<Vec<_>>() {
            self.file(&text);
            if let Some((_, value)) = text.split_once('=') {
                self.file(value);
            }
        }
    }

    /// Binds the file; a folder is none, what lies elsewhere is not the project's, and what cannot be read cannot be run.
    fn file(&mut self, text: &str) {
        let path = self.path(text);
        let Ok(name) = path.strip_prefix(&self.project) else { return };
        let name = format!("./{}", name.display());
        if let Ok(bytes) = regular::read(&path, SCRIPT) {
            self.bound.files.insert(name, hash(&path, &bytes));
        }
    }

    fn build_files(&mut self, folder: &Path) {
        if !folder.starts_with(&self.project) {
            return;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let known = entry.file_name().to_str().is_some_and(|name| BUILD_FILES.contains(&&*name.to_lowercase()));
            if let Some(path) = entry.path().to_str().filter(|_| known) {
                self.file(path);
            }
        }
    }

    /// Binds every script below the folder, and whatever else the lines name.
    fn everything(&mut self, top: &Path, lines: &[&str]) {
        self.bound.reach = self.bound.reach.max(Reach::Folder);
        let (mut left, mut seen, mut size) = (vec![top.to_owned()], 0, 0);
        while let Some(folder) = left.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let Ok(kind) = entry.file_type() else { continue };
                seen += 1;
                if kind.is_dir() {
                    // Nothing writes there unasked.
                    left.extend((name != ".git").then_some(path));
                } else if is_script(&path, &name) || lines.iter().any(|line| line.contains(&name)) {
                    let Ok(bytes) = regular::read(&path, SCRIPT) else { continue };
                    size += bytes.len();
                    let below = path.strip_prefix(&self.project).unwrap_or(&path);
                    self.bound.files.insert(format!("./{}", below.display()), hash(&path, &bytes));
                }
                if seen > MAX_NAMES || self.bound.files.len() > MAX_SCRIPTS || size > MAX_BYTES {
                    self.bound.reach = Reach::Session;
                    return;
                }
            }
        }
    }
}

fn hash(path: &Path, bytes: &[u8]) -> String {
    let mut hash = sha256_hex(bytes);
    if bytes.len() as u64 == SCRIPT
        && let Ok(data) = path.metadata()
    {
        let _ = write!(hash, "{} {:?}", data.len(), data.modified().ok());
    }
    hash
}

/// Whether a shell, or another interpreter, could be meant to run the file.
fn is_script(path: &Path, name: &str) -> bool {
    let lower = name.to_lowercase();
    let ending = lower.rsplit_once('.').map_or("", |(_, ending)| ending);
    #[cfg(unix)]
    let executable =
        path.metadata().is_ok_and(|data| std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0);
    #[cfg(not(unix))]
    let executable = false;
    executable
        || ending.is_empty()
        || SCRIPT_ENDINGS.contains(&ending)
        || BUILD_FILES.contains(&&*lower)
        || regular::read(path, 2).is_ok_and(|start| start == b"#!")
}
