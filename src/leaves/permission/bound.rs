//! What of a project its command lines run: the files are part of what the user agrees to.

mod builders;
mod programs;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use self::programs::{
    BUILDERS, BUILT, FORMATTERS, INERT, INTERPRETERS, READABLE, SHELLS, WRITERS, is_build_file, is_script,
};
use super::commands;
use super::files::lexical;
use super::shell::{self, Assignment, Node, Piece, RedirectKind, Simple, Word};
use super::wrapper;
use crate::stdx::sealed::{Content, Sealed, content};

/// Most names below a project that are looked at for scripts.
const MAX_NAMES: usize = 20_000;
/// Most scripts of a project, and most bytes of all of them.
const MAX_SCRIPTS: usize = 4_000;
const MAX_BYTES: usize = 64 << 20;
/// Most bytes of their texts that are kept, to show later how they changed.
const MAX_TEXT: usize = 32 << 10;
/// Deepest nesting of lines in lines, as in `sh -c "sh -c …"`.
const MAX_DEPTH: usize = 4;

/// Files of a project, by name with a hash of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    files: BTreeMap<String, String>,
    /// What the first of them hold, those before others that the lines name.
    texts: BTreeMap<String, String>,
    /// Those of them that the commands run, all when nobody can tell which: a change takes effect at once.
    runs: Sealed,
    reach: Reach,
}

/// How much of the project the commands may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The files that they name.
    #[default]
    Named,
    /// What a builder makes of the sources. They change all the time and are what it is for: nobody compares them.
    Build,
    /// Any script in the folder, since nobody can tell which.
    Folder,
    /// The same, and there are too many to compare.
    Session,
}

impl Bound {
    /// What the lines run, as the shell in `project` reads them.
    pub fn commands<'a>(project: &Path, lines: impl IntoIterator<Item = &'a str>) -> Bound {
        let mut walk = Walk::new(project);
        lines.into_iter().for_each(|line| walk.line(line, 0));
        walk.finish()
    }

    /// What programs run, wherever they lie, each behind the folder that it starts in. What one runs in a folder of its own
    /// below the project is not followed.
    pub(super) fn programs(project: &Path, programs: &[(PathBuf, PathBuf)]) -> Bound {
        let mut walk = Walk::new(project);
        for (folder, program) in programs {
            walk.all |= *folder != walk.project;
            walk.program(program, None, 0);
        }
        walk.finish()
    }

    /// What a variable names: files, and folders with the scripts in them.
    pub fn value(project: &Path, value: &str) -> Bound {
        let mut walk = Walk::new(project);
        let split = value.split(|c: char| c.is_whitespace() || ":=,;".contains(c));
        for text in std::iter::once(value).chain(split).filter(|text| !text.is_empty()) {
            let path = walk.path(text);
            match path.is_dir() && path.starts_with(&walk.project) && path != walk.project {
                true => {
                    walk.bound.reach = Reach::Folder;
                    walk.everything(&path);
                    // For what comes to lie there.
                    walk.bound.runs.add(&path, None);
                }
                false if path.is_file() => drop(walk.seal(&path)),
                false => {}
            }
        }
        walk.bound
    }

    /// What a person is told beside the line; empty when the line tells all.
    pub(super) fn note(&self) -> &'static str {
        match self.reach {
            Reach::Named => "",
            Reach::Build => {
                " – runs what the sources of the folder hold when it starts: changes in them do not ask again"
            }
            Reach::Folder => {
                " – can run any script in the folder: a change to a script asks again, a change to another file does not"
            }
            Reach::Session => {
                " – can run any script in the folder, and there are too many to watch: asks in every session"
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

    pub(super) fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }

    /// The files that the commands run, to be compared again before they do.
    pub fn runs(&self) -> &Sealed {
        &self.runs
    }
}

struct Walk {
    project: PathBuf,
    bound: Bound,
    /// All files that are bound, and the folders of what is built.
    seen: Sealed,
    built: Vec<PathBuf>,
    /// Every word of the build files that hold command lines.
    told: HashSet<String>,
    /// Whether a command may run what nobody can name.
    all: bool,
    /// Every line and script that was read.
    lines: Vec<String>,
    /// Scripts and build files whose text was read.
    followed: HashSet<PathBuf>,
}

impl Walk {
    fn new(project: &Path) -> Walk {
        Walk {
            project: lexical(project),
            bound: Bound::default(),
            seen: Sealed::default(),
            built: Vec::new(),
            told: HashSet::new(),
            all: false,
            lines: Vec::new(),
            followed: HashSet::new(),
        }
    }

    /// Looks further for what the commands may run, as long as they may run more than they name.
    fn finish(mut self) -> Bound {
        loop {
            if self.all {
                self.bound.reach = self.bound.reach.max(Reach::Folder);
            }
            let reach = self.bound.reach;
            if reach > Reach::Named {
                self.everything(&self.project.clone());
            }
            // A build file that was found on the way may include what only the builder knows.
            if !self.all || reach >= Reach::Folder {
                break;
            }
        }
        if self.bound.reach >= Reach::Folder {
            // Every edit of a project that a formatter looks at would stop it, were these compared.
            self.bound.runs.watch(&self.seen);
        }
        self.bound
    }

    fn line(&mut self, line: &str, depth: usize) {
        self.lines.push(line.to_owned());
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
            Node::Block { words, parts, .. } => {
                self.all |= words.iter().any(substitutes);
                parts.iter().for_each(|node| self.node(node, depth));
            }
            Node::Function { .. } => self.all = true,
            Node::Redirected { body, redirects } => {
                redirects.iter().for_each(|redirect| self.redirect(redirect.kind, &redirect.target));
                body.iter().for_each(|body| self.node(body, depth));
            }
        }
    }

    fn redirect(&mut self, kind: RedirectKind, target: &Word) {
        self.all |= substitutes(target);
        if matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite) {
            self.operands(std::slice::from_ref(target));
        }
    }

    fn simple(&mut self, command: &Simple, depth: usize) {
        command.redirects.iter().for_each(|redirect| self.redirect(redirect.kind, &redirect.target));
        let plain = |set: &Assignment| {
            wrapper::sets_harmlessly(&set.name, set.value.literal().as_deref()) || wrapper::is_local(&set.name)
        };
        self.all |= command.assignments.iter().any(|set| !plain(set) || substitutes(&set.value));
        self.all |= command.words.iter().any(substitutes);
        self.words(&command.words, depth);
    }

    fn words(&mut self, words: &[Word], depth: usize) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(name) = self.literal(name) else { return self.all = true };
        if name.contains('/') && self.path(&name).starts_with(&self.project) {
            self.operands(arguments);
            return self.script(&name, None, depth);
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
                    && !first.starts_with('-')
                    && (first.contains('/') || !matches!(name, "." | "source")) =>
            {
                self.operands(arguments);
                self.script(&first, Some(name), depth);
            }
            // What only writes a file runs nothing of it, and a hook that changes what it names would end itself.
            (name, _) if WRITERS.contains(&name) => {}
            // Whatever files come in, none of them is run.
            ("xargs", Some(by)) if FORMATTERS.contains(&&*by) => self.words(arguments, depth + 1),
            ("git", Some(sub)) if ["add", "commit", "tag", "branch"].contains(&&*sub) => {
                self.operands(arguments);
                self.git_hooks(depth);
            }
            (name, _) if INERT.contains(&name) || commands::reads(words).is_ok() => self.operands(arguments),
            (name, _) if BUILDERS.contains(&name) || FORMATTERS.contains(&name) => {
                let texts: Vec<String> = arguments.iter().filter_map(|word| self.literal(word)).collect();
                self.all |= texts.len() < arguments.len();
                if BUILDERS.contains(&name) {
                    self.bound.reach = self.bound.reach.max(Reach::Build);
                }
                self.operands(arguments);
                self.build_files(&self.project.clone());
                self.build_files(&self.project.join(".cargo"));
                for path in texts.iter().flat_map(|text| self.named(text)).collect::<Vec<_>>() {
                    match path.is_file() {
                        true => self.build_file(&path),
                        false => self.build_files(&path),
                    }
                }
            }
            _ => self.all = true,
        }
    }

    /// Binds a script that `by` runs, or the kernel: of a shell's what it runs in turn, of another's all that it could.
    fn script(&mut self, text: &str, by: Option<&str>, depth: usize) {
        let path = self.path(text);
        if !path.starts_with(&self.project) || !self.followed.insert(path.clone()) {
            // Its standard input, in another spelling.
            self.all |= ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
            return;
        }
        self.program(&path, by, depth);
    }

    fn program(&mut self, path: &Path, by: Option<&str>, depth: usize) {
        let name = path.strip_prefix(&self.project).map(|name| format!("./{}", name.display()));
        let content = self.bind_as(name.unwrap_or_else(|_| path.display().to_string()), path);
        self.bound.runs.add(path, content.as_ref());
        let bytes = content.map(|content| content.bytes).unwrap_or_default();
        if by.is_none() && bytes.contains(&0) {
            return;
        }
        let first = bytes.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!"));
        let asked = first.map(|line| String::from_utf8_lossy(line).into_owned());
        let asked = asked.as_deref().and_then(|line| {
            let mut words = line.split_ascii_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
            words.find(|word| *word != "env")
        });
        // Without a first line that names another, a shell reads it.
        let reader = by.or(asked).unwrap_or("sh");
        match String::from_utf8(bytes) {
            Ok(text) if !text.is_empty() && (READABLE.contains(&reader) || matches!(reader, "." | "source")) => {
                self.line(&text, depth + 1);
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

    /// Binds the files among the words; what cannot be read cannot be run, and what lies elsewhere is not the project's.
    fn operands(&mut self, words: &[Word]) {
        for text in words.iter().filter_map(|word| self.literal(word)).collect::<Vec<_>>() {
            self.named(&text).into_iter().filter(|path| path.is_file()).for_each(|path| drop(self.seal(&path)));
        }
    }

    /// Files and folders of the project that a word may name: as a whole, behind `=`, or glued to short options.
    fn named(&self, text: &str) -> Vec<PathBuf> {
        let glued = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        let cuts = glued.char_indices().skip(1).map(|(at, _)| &glued[at..]);
        let values = text.split_once('=').map(|(_, value)| value);
        let paths = std::iter::once(text).chain(values).chain(cuts).map(|text| self.path(text));
        paths.filter(|path| path.starts_with(&self.project) && path.exists()).collect()
    }

    fn bind(&mut self, path: &Path) -> Option<Content> {
        let name = format!("./{}", path.strip_prefix(&self.project).ok()?.display());
        self.bind_as(name, path)
    }

    fn bind_as(&mut self, name: String, path: &Path) -> Option<Content> {
        let content = content(path)?;
        let kept: usize = self.bound.texts.values().map(String::len).sum();
        if kept + content.bytes.len() <= MAX_TEXT
            && let Ok(text) = std::str::from_utf8(&content.bytes)
        {
            self.bound.texts.insert(name.clone(), text.to_owned());
        }
        self.bound.files.insert(name, content.hash.clone());
        if !self.built.iter().any(|folder| path.starts_with(folder)) {
            self.seen.add(path, Some(&content));
        }
        Some(content)
    }

    /// Binds a file that is run as soon as a command is, whether it is there or not.
    fn seal(&mut self, path: &Path) -> Option<Content> {
        let content = self.bind(path);
        if path.starts_with(&self.project) {
            self.bound.runs.add(path, content.as_ref());
        }
        content
    }

    /// Binds whatever the lines and the build files name below the folder, and every script where any may be run.
    fn everything(&mut self, top: &Path) {
        let lines = std::mem::take(&mut self.lines);
        let any = self.bound.reach >= Reach::Folder;
        let (mut left, mut seen, mut size) = (VecDeque::from([top.to_owned()]), 0, 0);
        // The nearest first: they are watched also where there are too many.
        while let Some(folder) = left.pop_front() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let Ok(kind) = entry.file_type() else { continue };
                seen += 1;
                if kind.is_dir() {
                    // Nothing writes there unasked.
                    if name != ".git" {
                        if BUILT.contains(&&*name) || path.join("CACHEDIR.TAG").is_file() {
                            self.seen.add(&path, None);
                            self.built.push(path.clone());
                            // No build file names what a build made.
                            if !any {
                                continue;
                            }
                        }
                        left.push_back(path);
                    }
                    continue;
                }
                if self.bound.reach == Reach::Build && is_build_file(&name.to_lowercase()) {
                    self.build_file(&path);
                }
                let named = lines.iter().any(|line| line.contains(&name));
                let told = self.told.contains(&name) && !name.ends_with(".md");
                let script = (any || named) && is_script(&path, &name);
                let content = match (script, told) {
                    (true, _) if named && lines.iter().any(|line| has_word(line, &name)) => self.seal(&path),
                    (true, true) if !any => {
                        self.told_script(&path);
                        None
                    }
                    (_, true) if !any => self.seal(&path),
                    _ if script || named || told => self.bind(&path),
                    _ => None,
                };
                size += content.map_or(0, |content| content.bytes.len());
                if seen > MAX_NAMES || self.bound.files.len() > MAX_SCRIPTS || size > MAX_BYTES {
                    if any {
                        self.bound.reach = Reach::Session;
                    }
                    return;
                }
            }
        }
    }
}

/// Whether a word holds a command of its own, such as `$(…)`.
fn substitutes(word: &Word) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Dynamic(expansion) => {
            let source = expansion.source.replace("$((", "");
            ["$(", "`", "<(", ">("].iter().any(|opening| source.contains(opening))
        }
        _ => false,
    })
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a line names a file by the whole of its name.
fn has_word(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !before.ends_with(in_name) && !after.starts_with(in_name)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A line, and what it may run last.
    #[test]
    fn what_a_line_may_run_is_watched() {
        for (line, file) in [
            ("python3 ./hook.py", "helper.py"),
            ("./hook", "helper.py"),
            ("make -s lint", "tools/l.sh"),
            ("make -s all", "rules.inc"),
            ("npm run -s lint", "tools/l.sh"),
            ("python3 -m tools.h", "tools/h.py"),
            ("cat tools/a.txt | sh", "tools/a.txt"),
            ("grep -v '^#' tools/a.txt | tail -3 | timeout 5 bash -s", "tools/a.txt"),
            ("sh < tools/a.txt", "tools/a.txt"),
            ("{ cat; } < tools/a.txt | python3 -", "tools/a.txt"),
            ("sh /dev/stdin < tools/a.txt", "tools/a.txt"),
            ("cat tools/a.txt | . /dev/stdin", "tools/a.txt"),
            ("xargs -a tools/a.txt touch", "tools/a.txt"),
            ("find tools -name \"*.sh\" | xargs -n1 sh", "tools/l.sh"),
            ("node x.js", "lib/y.mjs"),
            // What is named counts, no matter what reads it.
            ("curl -s -K tools/cfg http://h", "tools/cfg"),
            ("curl -sKtools/cfg http://h", "tools/cfg"),
            ("cp tools/q /tmp/q.sh; sh /tmp/q.sh", "tools/q"),
            ("jq -n -f tools/f.jq", "tools/f.jq"),
            ("git -c alias.x='!sh tools/x.sh' x", "tools/x.sh"),
            ("git -c core.hooksPath=tools/hooks commit -m x", "tools/hooks/pre-commit"),
            ("git grep -Osh\\ tools/x.sh zz", "tools/x.sh"),
            ("make -s -Csub", "sub/Makefile"),
            ("make -f ci/x", "ci/y"),
            ("make -s deep", "deep/Makefile"),
            ("make -s build", "build/check.sh"),
            ("npm test -s", "scripts/b.sh"),
            ("npm test -ws", "packages/p/package.json"),
            ("just x", "tools/mod.just"),
            ("make -s at", "lib/inc"),
            ("make -s glob", "conf/a.cfg"),
            ("npm run -s flag", "lib/inc"),
            ("npm run -s bare", "tools/lib"),
            ("git commit -qm x", "tools/h.sh"),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &str| {
                let path = temp.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("hook", "#!/usr/bin/env python3\nimport helper\n");
            write("hook.py", "import helper\n");
            write(
                "Makefile",
                "R=rules.inc\ninclude $(R)\nlint:\n\tsh tools/l.sh\nbuild:\n\tsh build/check.sh\ndeep:\n\t$(MAKE) -C deep\n",
            );
            write("at.mk", "at:\n\t@./tools/run.sh\ninclude $(wildcard conf/*.cfg)\n");
            write("tools/run.sh", "#!/bin/sh -e\n. ./lib/inc\n");
            write("tools/run", "sh tools/lib\n");
            write(".git/hooks/pre-commit", "#!/bin/sh\nsh tools/h.sh\n");
            write(
                "package.json",
                "{\"scripts\": {\"lint\": \"sh tools/l.sh\", \"test\": \"sh scripts/a.sh\", \"flag\": \"tools/run.sh\", \
                 \"bare\": \"sh tools/run\"}}",
            );
            write("scripts/a.sh", ". ./lib.sh\nsh scripts/b.sh\n");
            write("ci/x", "include y\n");
            write("notes.md", "1");
            write("target/CACHEDIR.TAG", "");
            write("target/debug/made", "1");
            write(file, "1");
            let bound = Bound::commands(temp.path(), [line]);
            let path = |name: &str| temp.path().join(name);
            assert!(bound.runs().holds(&path(file)), "{line}: {bound:?}");
            assert!(bound.runs().holds(&path("target")) || bound.reach < Reach::Folder, "{line}");
            assert!(!bound.runs().holds(&path("notes.md")), "{line}");
            write("notes.md", "2");
            write("target/debug/made", "2");
            assert_eq!(bound.runs().broken(), None, "{line}");
        }
    }

    /// Edits of what a builder builds are what its hook waits for: they neither ask nor end the trust.
    #[test]
    fn a_builder_binds_its_settings_and_not_the_sources() {
        for line in ["npx prettier --write src", "cargo test -q", "npm test", "make -s check"] {
            let temp = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &str| {
                let path = temp.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            let settings =
                ["Makefile", "package.json", ".prettierrc", "Cargo.toml", ".cargo/config.toml", "x.config.mjs"];
            settings.iter().for_each(|name| write(name, "\n"));
            write("package.json", "{\"main\": \"src/a.js\"}");
            write("src/main.rs", "1");
            write("src/a.js", "1");
            let bound = || Bound::commands(temp.path(), [line]);
            let before = bound();
            assert_eq!(before.reach, Reach::Build, "{line}");
            settings.iter().for_each(|name| assert!(before.runs().holds(&temp.path().join(name)), "{line}: {name}"));
            write("src/main.rs", "2");
            write("src/a.js", "2");
            write("made", "2");
            assert!(!before.runs().holds(&temp.path().join("src/a.js")), "{line}");
            assert_eq!(bound().text(), before.text(), "{line}");
        }
    }

    #[test]
    fn a_formatter_of_the_files_that_come_in_runs_none() {
        for (line, reach) in [
            ("jq -r .tool_input.file_path | xargs rustfmt", Reach::Named),
            ("jq -r .tool_input.file_path | xargs black -q", Reach::Named),
            ("jq -r .tool_input.file_path | xargs git", Reach::Folder),
            ("jq -r .tool_input.file_path | xargs sh", Reach::Folder),
            ("jq -r .tool_input.file_path | xargs -n1 rustfmt", Reach::Folder),
        ] {
            let temp = tempfile::tempdir().unwrap();
            assert_eq!(Bound::commands(temp.path(), [line]).reach, reach, "{line}");
        }
    }
}
