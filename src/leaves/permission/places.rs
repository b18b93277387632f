//! Which paths are the workspace's, which are protected, and which are never asked for.

mod folded;
mod names;
mod processes;
mod programs;
mod secret;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::folded::{folded, folded_path, strip, under};
use self::names::{PIPELINES, PLAIN_HIDDEN, SECRETS, SYSTEM_SECRETS};
use self::processes::{is_of_process, shows_processes};
pub(super) use self::programs::Named;
pub use self::secret::WITHHELD;
pub(super) use self::secret::{TOOLS, configures_git, holds_keys, is_set_apart, may_be_kept, only_sources};
use super::approved::Approved;
use super::files::{Disk, Files, Remembered, Step, Walk, lexical, walk};
use super::git_hooks::GitHooks;
use super::glob::{self, Case};
use crate::sandbox::guard::{FOLDERS, PROFILE_ENDINGS, PROFILE_PATHS, PROFILES};
use crate::stdx::git;
use crate::stdx::links::resolve_with;

/// The folders that a decision looks at. All absolute; links are resolved when a path is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Where the session was started.
    pub project: PathBuf,
    /// Folders added with `--add-dir` or by settings.
    pub added: Vec<PathBuf>,
    /// Where relative paths start now.
    pub cwd: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// What leads git to the user's settings elsewhere.
    pub git: git::Variables,
    /// Our home, `~/.claude`.
    pub cocode_home: PathBuf,
    /// Our config and log folders and other files of ours: written only after a question, and read only after one.
    pub own: Vec<PathBuf>,
    /// The folders of `PATH` as it names them.
    pub programs: Vec<PathBuf>,
    /// Files of the project that hooks and settings run which the user agreed to.
    pub run: Run,
    /// Hooks of the project's repository that the user agreed to.
    pub git_hooks: GitHooks,
    /// Read without a question: this session's `tool-results/` and `blobs/`, the plan file, invoked skills' folders. Real
    /// paths: a link that takes the place of one later opens nothing.
    pub free_reads: Vec<PathBuf>,
    /// Written without a question: the plan file in plan mode, the extraction fork's `summary.md`. Exact paths.
    pub free_writes: Vec<PathBuf>,
    /// What a command runs in that somebody approved.
    pub approved: Approved,
}

/// Which other names of a file count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twin {
    /// Those of secrets: it would be read.
    Secret,
    /// Those of what is protected, too: it would be written.
    Any,
}

/// Thousands of files, and folders with all that comes to lie in them, for one look each: what a path is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run(Arc<HashSet<PathBuf>>);

impl Run {
    /// Also where the paths lead now.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Run {
        let files = Remembered::new(&Disk);
        let both = paths.into_iter().flat_map(|path| [folded_path(path), folded_path(&files.resolve(path))]);
        Run(Arc::new(both.collect()))
    }

    fn holds(&self, path: &Path) -> bool {
        !self.0.is_empty() && folded_path(path).ancestors().any(|path| self.0.contains(path))
    }
}

/// Most names that are looked at before a folder is removed as a whole.
const MAX_REMOVED: usize = 5_000;

impl Places {
    /// The user, as git sees them.
    pub(super) fn git_user(&self) -> git::User<'_> {
        git::User { home: self.home.as_deref(), variables: &self.git }
    }

    /// The folders in which reading needs no question.
    pub(super) fn workspace(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.project.as_path()).chain(self.added.iter().map(PathBuf::as_path))
    }

    /// Whether the path really leads to something below the workspace.
    pub(super) fn inside(&self, path: &Path, files: &dyn Files) -> bool {
        // What /proc shows depends on who looks.
        if lexical(path).starts_with("/proc") {
            return false;
        }
        let real = files.resolve(path);
        self.workspace().any(|root| real.starts_with(files.resolve(root)))
    }

    /// Why it is unknown which file the path means: it leads through what the kernel shows of a process, such as
    /// `/proc/self/cwd`, and that depends on who looks.
    pub(super) fn of_process(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let apart = |folder: &Path| !folder.starts_with("/proc") && !folder.starts_with("/dev");
        let plain = |folder: &Path| apart(folder) && files.resolve(folder) == *folder && files.resolve(path) == *path;
        if path.file_name().is_some() && path.parent().is_some_and(plain) {
            return None;
        }
        let seen = Cell::new(false);
        resolve_with(path, |part| {
            seen.set(seen.get() || is_of_process(part));
            files.link(part)
        });
        seen.get().then(|| format!("{} depends on who opens it", shown(path)))
    }

    /// Why writing the path always asks; None when it is an ordinary file.
    pub(super) fn protected(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let lexical = lexical(path);
        let real = files.resolve(path);
        for path in [&lexical, &real] {
            let names: Vec<Cow<'_, str>> = path.components().map(folded).collect();
            for (at, name) in names.iter().enumerate() {
                let last = at + 1 == names.len();
                let name = &**name;
                if FOLDERS.contains(&name) || ["git~", "claude~", "cocode~"].iter().any(|short| name.starts_with(short))
                {
                    return Some(format!("{} is protected", shown(path)));
                }
                let ends = |folder: &&[&str]| {
                    names[..=at].iter().rev().map(|name| &**name).take(folder.len()).eq(folder.iter().rev().copied())
                };
                if PROFILE_PATHS.iter().any(ends) {
                    return Some(format!("{} is a profile", shown(path)));
                }
                if last && (PROFILES.contains(&name) || PROFILE_ENDINGS.iter().any(|ending| name.ends_with(ending))) {
                    return Some(format!("{} is a profile", shown(path)));
                }
            }
        }
        let etc = ["/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/cocode", "/etc/zsh", "/etc/environment"];
        let own = self.own.iter().chain(std::iter::once(&self.cocode_home)).map(PathBuf::as_path);
        for folder in own.chain(etc.map(Path::new)).filter(|folder| !folder.as_os_str().is_empty()) {
            if under(&lexical, folder) || under(&real, &files.resolve(folder)) {
                return Some(format!("{} belongs to cocode or the shell", shown(path)));
            }
        }
        let run = [&lexical, &real].into_iter().any(|path| self.run.holds(path));
        run.then(|| format!("{} is run by a hook or a setting of this folder", shown(path)))
    }

    /// Why writing the path may make git run something: it is in a repository's own folder, wherever that lies and whatever
    /// it is called, or completes one, or a hook.
    pub(super) fn runs_in_git(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let (lexical, real) = (lexical(path), files.resolve(path));
        for path in [&lexical, &real] {
            // Without this file no folder is a repository.
            if path.components().next_back().is_some_and(|name| folded(name) == "head") {
                return Some(format!("{} may make its folder a repository", shown(path)));
            }
            let headed = |folder: &Path| {
                let head = folder.join("HEAD");
                files.is_file(&head) || files.link(&head).is_some()
            };
            let own = |folder: &&Path| {
                let names = if headed(folder) { files.names(folder) } else { Vec::new() };
                let holds = |part: &str| names.iter().any(|name| name == part);
                holds("commondir") || holds("objects") && holds("refs")
            };
            let part =
                path.file_name().is_some_and(|name| ["objects", "refs", "commondir"].iter().any(|part| name == *part));
            let completes = || path.parent().filter(|folder| part && headed(folder));
            if let Some(folder) = path.ancestors().skip(1).find(own).or_else(completes) {
                return Some(format!("{} is, or becomes, a repository's own folder", folder.display()));
            }
        }
        let folders = [&lexical, &real].into_iter().filter_map(|path| path.parent());
        let mut obeyed = folders.flat_map(|folder| files.git_obeys(folder, self.git_user()));
        let lies_in = |obeyed: &PathBuf| {
            let obeyed = files.resolve(obeyed);
            // Of a project that has hooks at its top, only what has a hook's name.
            match self.workspace().any(|root| files.resolve(root).starts_with(&obeyed)) {
                true => real.parent() == Some(&obeyed) && real.extension().is_none(),
                false => under(&real, &obeyed),
            }
        };
        obeyed.any(|obeyed| lies_in(&obeyed)).then(|| format!("git runs or obeys {}", shown(path)))
    }

    /// Whether the file tells a build server what to run.
    pub(super) fn is_pipeline(path: &Path) -> bool {
        let name = path.components().next_back().map(folded).unwrap_or_default();
        let (stem, extension) = name.split_once('.').unwrap_or((&name, ""));
        let told = |begin: &&str| stem == *begin || stem.strip_prefix(begin).is_some_and(|rest| rest.starts_with('-'));
        stem == "jenkinsfile"
            || extension == "jenkinsfile"
            || extension.split('.').any(|part| matches!(part, "yml" | "yaml" | "json")) && PIPELINES.iter().any(told)
    }

    /// Which files with several names are secrets by one of them, in the workspace and at home.
    pub(super) fn twins(&self, files: &dyn Files) -> HashSet<(u64, u64)> {
        let mut found = HashSet::new();
        walk(self.workspace().map(Path::to_owned).collect(), MAX_REMOVED, files, |path, _| {
            found.extend(files.shared(path).filter(|_| holds_keys(path)));
            if path.ends_with(".git") { Step::Past } else { Step::Into }
        });
        let bases = self.workspace().chain(self.home.as_deref());
        let tops = bases.flat_map(|base| {
            SECRETS.iter().map(|parts| parts.iter().fold(base.to_owned(), |path, part| path.join(part)))
        });
        let tops: Vec<PathBuf> = tops.collect();
        found.extend(tops.iter().filter_map(|path| files.shared(path)));
        walk(tops, MAX_REMOVED, files, |path, _| {
            found.extend(files.shared(path));
            Step::Into
        });
        found
    }

    /// Why a file with several names asks: one of the others is protected or a secret, in the workspace, at home or among our
    /// own. Looked for only where there are others, and no further than so many names.
    pub(super) fn twin(&self, path: &Path, which: Twin, files: &dyn Files) -> Option<String> {
        let real = files.resolve(path);
        let own = files.shared(&real)?;
        let below = |base: &Path, names: &[&[&str]]| -> Vec<PathBuf> {
            names.iter().map(|parts| parts.iter().fold(base.to_owned(), |path, part| path.join(part))).collect()
        };
        let bases = self.workspace().chain(self.home.as_deref());
        let mut tops: Vec<PathBuf> = bases.flat_map(|base| below(base, SECRETS)).collect();
        if which == Twin::Any {
            for base in self.workspace().chain(self.home.as_deref()) {
                tops.extend(FOLDERS.iter().chain(PROFILES).map(|name| base.join(name)));
                tops.extend(below(base, &PROFILE_PATHS));
            }
            tops.extend(self.own.iter().chain(std::iter::once(&self.cocode_home)).cloned());
        }
        let same = |path: &Path| *path != real && files.shared(path) == Some(own);
        let mut found = tops.iter().find(|path| same(path)).cloned();
        if found.is_none() {
            walk(self.workspace().map(Path::to_owned).collect(), MAX_REMOVED, files, |path, _| {
                if holds_keys(path) && same(path) {
                    found = Some(path.to_owned());
                    return Step::Stop;
                }
                if path.ends_with(".git") { Step::Past } else { Step::Into }
            });
        }
        if found.is_none() {
            walk(tops, MAX_REMOVED, files, |path, _| {
                if same(path) {
                    found = Some(path.to_owned());
                    return Step::Stop;
                }
                // Git's own copies of what was committed, and ours of what commands changed.
                let copies = path.ends_with(".git/objects")
                    || path.ends_with("commands") && files.is_file(&path.with_file_name("transcript.jsonl"));
                if copies { Step::Past } else { Step::Into }
            });
        }
        found.map(|other| format!("{} is {} by another name", shown(path), other.display()))
    }

    /// Whether the path has a hidden part in the workspace, and is not one of the few such files that configure nothing.
    pub(super) fn hidden(&self, path: &Path, files: &dyn Files) -> bool {
        let conceals = |rest: Vec<String>| {
            let hidden = |name: &&String| name.starts_with('.');
            let document = rest.first().is_some_and(|first| first == ".github")
                && rest.last().is_some_and(|last| last.ends_with(".md"));
            rest.iter()
                .enumerate()
                .any(|(at, name)| hidden(&name) && !PLAIN_HIDDEN.contains(&name.as_str()) && !(at == 0 && document))
        };
        let real = files.resolve(path);
        self.workspace().any(|root| {
            strip(&lexical(path), root).is_some_and(conceals)
                || strip(&real, &files.resolve(root)).is_some_and(conceals)
        })
    }

    /// Why reading the path always asks: trust, credentials, other sessions, and where secrets are known to lie.
    pub(super) fn private(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let (lexical, real) = (lexical(path), files.resolve(path));
        let keeps = |path: &Path| holds_keys(path) || configures_git(path) && files.keeps_token(path);
        if [&lexical, &real].into_iter().take(if lexical == real { 1 } else { 2 }).any(|path| keeps(path)) {
            return Some(format!("{} may hold secrets", shown(path)));
        }
        self.private_place(path, files)
    }

    /// The same by where it lies, whatever its name.
    pub(super) fn private_place(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let home = files.resolve(&self.cocode_home);
        let lexical = lexical(path);
        let real = files.resolve(path);
        let secret = |path: &Path, home: &Path| {
            if home.as_os_str().is_empty() {
                return false;
            }
            match strip(path, home).and_then(|rest| rest.first().cloned()) {
                Some(first) => {
                    first == "cocode" || first.contains("credential") || uuid::Uuid::parse_str(&first).is_ok()
                }
                None => false,
            }
        };
        let own = self.own.iter().any(|folder| under(&lexical, folder) || under(&real, &files.resolve(folder)));
        let both = [&lexical, &real].into_iter().take(if lexical == real { 1 } else { 2 });
        if { both }.any(|path| self.well_known(path, files)) {
            return Some(format!("{} may hold secrets", shown(path)));
        }
        (own || secret(&lexical, &self.cocode_home) || secret(&real, &home))
            .then(|| format!("{} may hold credentials, trust or another session", shown(path)))
    }

    /// The places at home and of the system where secrets are known to lie, and our own.
    pub(super) fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let join = |home: &Path, parts: &[&str]| parts.iter().fold(home.to_owned(), |path, part| path.join(part));
        let home = self.home.iter().flat_map(move |home| SECRETS.iter().map(move |parts| join(home, parts)));
        let system = SYSTEM_SECRETS.iter().map(PathBuf::from);
        home.chain(system).chain(self.own.iter().cloned())
    }

    /// Whether the path is one of the places where secrets are known to lie.
    fn well_known(&self, path: &Path, files: &dyn Files) -> bool {
        if shows_processes(path) {
            return true;
        }
        let homes = self.home.iter().flat_map(|home| [home.clone(), files.resolve(home)]);
        let below = homes.filter_map(|home| strip(path, &home)).chain(any_home(path));
        let listed = |rest: Vec<String>| {
            SECRETS.iter().any(|secret| rest.len() >= secret.len() && rest.iter().zip(*secret).all(|(a, b)| a == b))
        };
        below.into_iter().any(listed) || SYSTEM_SECRETS.iter().any(|secret| under(path, Path::new(secret)))
    }

    /// Whether a search below the folder would reach what only asking may read.
    pub(super) fn reaches_private(&self, root: &Path, files: &dyn Files) -> bool {
        let real = files.resolve(root);
        if under(&real, Path::new("/proc")) && (real.components().count() < 3 || shows_processes(&real.join("environ")))
        {
            return true;
        }
        // Homes, and what holds them.
        if ["/home", "/root", "/Users", "/etc", "/run", "/var/run"].iter().any(|place| under(Path::new(place), &real))
            || self.home.as_ref().is_some_and(|home| under(&files.resolve(home), &real))
        {
            return true;
        }
        let below = self.home.as_ref().and_then(|home| strip(&real, &files.resolve(home)));
        if below.into_iter().chain(any_home(&real)).any(|rest| {
            SECRETS.iter().any(|secret| rest.len() < secret.len() && rest.iter().zip(*secret).all(|(a, b)| a == b))
        }) {
            return true;
        }
        self.own
            .iter()
            .chain(std::iter::once(&self.cocode_home))
            .filter(|own| !own.as_os_str().is_empty())
            .any(|own| under(&files.resolve(own), &real))
    }

    /// Whether removing, moving or overwriting the folder as a whole would take something protected with it.
    pub(super) fn holds_protected(&self, folder: &Path, files: &dyn Files) -> bool {
        let real = files.resolve(folder);
        let anchors = self.workspace().chain(self.home.as_deref()).chain(std::iter::once(self.cocode_home.as_path()));
        anchors.filter(|anchor| !anchor.as_os_str().is_empty()).any(|anchor| under(&files.resolve(anchor), &real))
    }

    /// Whether the workspace holds the home folder: nothing of that could be kept from a command.
    pub(super) fn is_at_home(&self, files: &dyn Files) -> bool {
        let home = self.home.as_ref().map(|home| files.resolve(home));
        home.is_some_and(|home| self.workspace().any(|root| home.starts_with(files.resolve(root))))
    }

    /// Whether the folder is the top of a repository, or holds settings that programs obey.
    pub(super) fn holds_settings(&self, folder: &Path, files: &dyn Files) -> bool {
        files.names(&files.resolve(folder)).iter().any(|name| FOLDERS.contains(&&*name.to_lowercase()))
    }

    /// Why the path, and all that lies below it, is not removed without a question; None for ordinary files alone.
    pub(super) fn spared(&self, path: &Path, files: &dyn Files) -> Option<String> {
        if self.holds_protected(path, files) {
            return Some(format!("{} contains the workspace or more", shown(path)));
        }
        let top = files.resolve(path);
        let kept = |path: &Path| {
            files.spend(8);
            // A repository without a working tree has no `.git`.
            let bare = || {
                let names = path.parent().map(|folder| files.names(folder)).unwrap_or_default();
                ["objects", "refs"].iter().all(|part| names.iter().any(|name| name == part))
            };
            self.protected(path, files).or_else(|| self.private(path, files)).is_some()
                || files.is_mount(path)
                || path.ends_with("HEAD") && bare()
        };
        if kept(&top) {
            return Some(format!("{} is protected, private or a mount", shown(path)));
        }
        match walk(vec![top], MAX_REMOVED, files, |path, _| if kept(path) { Step::Stop } else { Step::Into }) {
            Walk::Done => None,
            Walk::Stopped => Some(format!("{} contains protected or private files", shown(path))),
            Walk::TooMany => Some(format!("{} contains too many files to check", shown(path))),
        }
    }

    pub(super) fn free_read(&self, path: &Path, files: &dyn Files) -> bool {
        let real = files.resolve(path);
        self.free_reads.iter().any(|folder| real.starts_with(folder)) || self.free_write(path, files)
    }

    /// Whether the folder, a real path, holds more than what somebody who opens it for reading can mean: what is private,
    /// or the whole of the workspace, of the home folder or of ours.
    pub fn too_wide(&self, folder: &Path, files: &dyn Files) -> bool {
        self.private(folder, files).is_some()
            || self.reaches_private(folder, files)
            || self.holds_protected(folder, files)
    }

    pub(super) fn free_write(&self, path: &Path, files: &dyn Files) -> bool {
        // The parent is resolved and the file is not: a link in the plan file's place must not be written through.
        let real = files.resolve(path);
        self.free_writes.iter().any(|file| real == in_real_folder(file, files))
    }

    /// Whether a glob in one part of a path could stand for a protected name.
    pub(super) fn glob_may_be_protected(part: &str) -> bool {
        // Without dotglob, a star at the start does not match a leading dot.
        if part.starts_with(['*', '?']) {
            return false;
        }
        let begins = |name: &str| match part.bytes().next() {
            Some(b'[' | b'\\') | None => true,
            Some(first) => name.bytes().next().is_some_and(|byte| byte.eq_ignore_ascii_case(&first)),
        };
        let names = FOLDERS.iter().chain(PROFILES).chain([".ssh", ".config"].iter());
        names.filter(|name| begins(name)).any(|name| glob::may_fit(part, name, Case::Ignored))
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Places {
        Places {
            project: "/p".into(),
            added: vec!["/added".into()],
            cwd: "/p".into(),
            home: Some("/home/u".into()),
            git: git::Variables::default(),
            cocode_home: "/home/u/.claude".into(),
            own: vec!["/home/u/.config/cocode".into(), "/home/u/.local/state/cocode".into()],
            programs: Vec::new(),
            run: Run::new([Path::new("/p/tools/hook.sh")]),
            git_hooks: GitHooks::default(),
            free_reads: vec!["/home/u/.claude/0192f0c1-2345-7000-8000-000000000001/tool-results".into()],
            free_writes: vec!["/home/u/.claude/plans/plan.md".into()],
            approved: Approved::default(),
        }
    }
}

/// The folded parts of a path below somebody's home folder, by where homes are.
fn any_home(path: &Path) -> Option<Vec<String>> {
    let mut parts = path.components().skip(1).map(folded);
    match parts.next().as_deref() {
        Some("root") => {}
        Some("home" | "users") => drop(parts.next()?),
        _ => return None,
    }
    Some(parts.map(Cow::into_owned).collect())
}

/// The file in the real folder; what is in the file's own place is not followed.
pub fn in_real_folder(file: &Path, files: &dyn Files) -> PathBuf {
    match (file.parent(), file.file_name()) {
        (Some(parent), Some(name)) => files.resolve(parent).join(name),
        _ => file.to_owned(),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::files::fake::Table;
    use super::super::{Access, Behavior, Mode, Query, RuleSet, decide};
    use super::*;
    use crate::sandbox::Level;

    #[test]
    fn protected_paths_hold_against_spelling() {
        let places = Places::for_tests();
        let files = Table(&[("/p/hooks", "/p/.git/hooks"), ("/p/cfg", "/home/u/.config/cocode")]);
        for (path, want) in [
            ("/p/.git/config", true),
            ("/p/.GIT/config", true),
            ("/p/.git./config", true),
            ("/p/.git ", true),
            ("/p/git~1/config", true),
            ("/p/.git\u{200c}/config", true),
            ("/p/.git::$INDEX_ALLOCATION/x", true),
            ("/p/a/../.git/x", true),
            ("/p/hooks/pre-commit", true),
            ("/p/sub/.claude/settings.json", true),
            ("/p/.cocode/config.toml", true),
            ("/p/.COCODE/skills/x/SKILL.md", true),
            ("/p/.vscode/tasks.json", true),
            ("/p/.husky/pre-commit", true),
            ("/p/.envrc", true),
            ("/p/.cargo/config.toml", true),
            ("/p/sub/.cargo/config", true),
            ("/p/.cargo/audit.toml", false),
            ("/p/config.toml", false),
            ("/p/.npmrc", true),
            ("/p/sub/.NPMRC", true),
            ("/p/.gitattributes", true),
            ("/p/lib/sitecustomize.py", true),
            ("/p/rust-toolchain.toml", true),
            ("/p/.hg/hgrc", true),
            ("/p/package.json", false),
            ("/p/Makefile", false),
            ("/p/conftest.py", false),
            ("/p/Cargo.toml", false),
            ("/p/cocode/x", false),
            ("/home/u/.bashrc", true),
            ("/p/.zshrc", true),
            ("/home/u/.claude/x", true),
            ("/p/cfg/config.toml", true),
            ("/p/.gitignore", false),
            ("/p/src/git/config", false),
            ("/p/src/main.rs", false),
            ("/p/tools/hook.sh", true),
            ("/p/Tools/../tools/HOOK.sh", true),
            ("/p/tools/other.sh", false),
        ] {
            assert_eq!(places.protected(Path::new(path), &files).is_some(), want, "{path}");
        }
    }

    #[test]
    fn private_paths() {
        let places = Places::for_tests();
        let files = Table(&[("/p/t", "/home/u/.claude/cocode"), ("/p/cfg", "/home/u/.config/cocode")]);
        for (path, want) in [
            ("/home/u/.claude/cocode/trust.json", true),
            ("/p/t/trust.json", true),
            ("/p/cfg/config.toml", true),
            ("/home/u/.claude/0192f0c1-2345-7000-8000-000000000002/transcript.jsonl", true),
            ("/home/u/.claude/.credentials.json", true),
            ("/home/u/.config/cocode/config.toml", true),
            ("/home/u/.claude/skills/x/SKILL.md", false),
            ("/p/a", false),
            ("/home/u/.ssh/id_rsa", true),
            ("/home/u/.SSH/id_rsa", true),
            ("/home/other/.aws/credentials", true),
            ("/root/.netrc", true),
            ("/home/u/.config/gh/hosts.yml", true),
            ("/home/u/.docker/config.json", true),
            ("/home/u/.docker/x", false),
            ("/home/u/.bash_history", true),
            ("/home/u/p/../.kube/config", true),
            ("/etc/shadow", true),
            ("/etc/passwd", false),
            ("/proc/self/environ", true),
            ("/proc/1/task/1/environ", true),
            ("/proc/cpuinfo", false),
            ("/proc/kcore", true),
            ("/proc/self/status", false),
            ("/proc/self/task/1/auxv", true),
            ("/proc/1/e*", true),
            ("/proc/sys/kernel/hostname", false),
            ("/p/.ssh/config", false),
            ("/p/sub/.env", true),
            ("/p/.env.local", true),
            ("/p/.env.example", false),
            ("/p/.environment", false),
            ("/p/id_rsa", true),
            ("/p/keys/id_ed25519_work", true),
            ("/p/keys/id_rsa.pub", false),
            ("/p/server.pem", true),
            ("/p/tls/server.KEY", true),
            ("/p/.npmrc", true),
            ("/p/.netrc", true),
            ("/p/.git-credentials", true),
            ("/p/.aws/credentials", true),
            ("/p/credentials.json", true),
            ("/p/src/credentials.rs", false),
            ("/p/docs/credentials.md", false),
        ] {
            assert_eq!(places.private(Path::new(path), &files).is_some(), want, "{path}");
        }
    }

    #[test]
    fn accepted_edits_leave_hidden_files_alone() {
        let places = Places { project: "/home/u/.local/p".into(), ..Places::for_tests() };
        for (path, want) in [
            (".devcontainer.json", true),
            (".mise.local.toml", true),
            ("mise.local.toml", true),
            (".config/mise/config.toml", true),
            (".tool-versions", true),
            ("lefthook.yaml", true),
            ("lefthook.toml", true),
            ("lefthook-local.yml", true),
            ("all.code-workspace", true),
            (".nvim.lua", true),
            (".emacs.d/init.el", true),
            (".dir-locals-2.el", true),
            (".pnpmfile.mjs", true),
            ("bunfig.toml", true),
            (".githooks/pre-commit", true),
            (".cursor/rules/a.md", true),
            (".codex/config.toml", true),
            (".gemini/settings.json", true),
            (".zshrc.local", true),
            (".bashrc.d/a.sh", true),
            (".prettierrc.js", true),
            (".eslintrc.cjs", true),
            (".github/workflows/ci.yml", true),
            ("sub/.unheard-of", true),
            (".PRETTIERRC.mjs", true),
            ("a/../.githooks/x", true),
            (".gitignore", false),
            ("sub/.gitkeep", false),
            (".dockerignore", false),
            (".editorconfig", false),
            (".prettierrc", false),
            (".prettierrc.json", false),
            (".github/CONTRIBUTING.md", false),
            (".github/ISSUE_TEMPLATE/bug.md", false),
            ("src/main.rs", false),
            ("package.json", false),
            ("a..b/c.d", false),
        ] {
            let (path, rules) = (places.project.join(path), RuleSet::default());
            let access = Access::Write { path: path.clone() };
            let query = Query {
                tool: "Write",
                access: &access,
                mode: Mode::AcceptEdits,
                rules: &rules,
                places: &places,
                vocabulary: crate::permission::vocabulary::TOOLS,
                level: Level::Kernel,
            };
            assert_eq!(decide(&query, &Table(&[])).behavior == Behavior::Ask, want, "{}", path.display());
        }
    }

    #[test]
    fn opened_folders() {
        let places = Places { free_reads: vec!["/p/.claude/skills/x".into()], ..Places::for_tests() };
        let free = |path: &str, files: &Table| places.free_read(Path::new(path), files);
        assert!(free("/p/.claude/skills/x/a", &Table(&[])));
        assert!(!free("/p/.claude/skills/x/../y/a", &Table(&[])));
        // The folder, or what lies in it, was made a link after it was opened.
        assert!(!free("/p/.claude/skills/x/.ssh/id", &Table(&[("/p/.claude/skills/x", "/home/u")])));
        assert!(!free("/p/.claude/skills/x/a/id", &Table(&[("/p/.claude/skills/x/a", "/home/u/.ssh")])));
        for (folder, want) in [
            ("/p/.claude/skills/x", false),
            ("/home/u/.claude/skills/x", false),
            ("/usr/share/x", false),
            ("/p", true),
            ("/", true),
            ("/home", true),
            ("/home/u", true),
            ("/home/u/.claude", true),
            ("/home/u/.config", true),
            ("/home/u/.config/cocode", true),
            ("/home/u/.claude/cocode", true),
        ] {
            assert_eq!(places.too_wide(Path::new(folder), &Table(&[])), want, "{folder}");
        }
    }

    #[test]
    fn the_plan_file_is_no_way_out() {
        let places = Places::for_tests();
        let check = |files: &Table, want| {
            assert_eq!(places.free_write(Path::new("/home/u/.claude/plans/plan.md"), files), want)
        };
        check(&Table(&[]), true);
        check(&Table(&[("/home/u/.claude/plans/plan.md", "/etc/passwd")]), false);
    }

    #[cfg(unix)]
    #[test]
    fn what_git_obeys_and_keeps_is_found_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let places = Places { project: root.join("p"), cwd: root.join("p"), ..Places::default() };
        let script = "mkdir p && cd p && git init -q --separate-git-dir=gitdata . && mkdir secrets src && echo x > secrets/x && \
                      echo x > src/a && git add . && git config core.hooksPath scripts/hooks && git init -q --bare sub/bare";
        let shell = |script: &str| {
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", script]).current_dir(&root).env("HOME", &root);
            assert!(shell.status().unwrap().success());
        };
        shell(script);
        let behavior = |tool: &str, access: Access, deny: &[&str]| {
            let mut rules = RuleSet::default();
            deny.iter().for_each(|rule| rules.add(Behavior::Deny, rule.parse().unwrap(), super::super::Source::User));
            let (mode, vocabulary) = (Mode::AcceptEdits, crate::permission::vocabulary::TOOLS);
            let query =
                Query { tool, access: &access, mode, rules: &rules, places: &places, vocabulary, level: Level::Kernel };
            decide(&query, &super::super::Disk).behavior
        };
        for (path, want) in [
            ("gitdata/config", Behavior::Ask),
            ("gitdata/hooks/pre-commit", Behavior::Ask),
            ("scripts/hooks/pre-commit", Behavior::Ask),
            ("sub/bare/config", Behavior::Ask),
            ("sub/new/HEAD", Behavior::Ask),
            ("Jenkinsfile", Behavior::Ask),
            ("scripts/build.sh", Behavior::Allow),
            ("sub/config", Behavior::Allow),
            ("src/a", Behavior::Allow),
        ] {
            assert_eq!(behavior("Write", Access::Write { path: places.project.join(path) }, &[]), want, "{path}");
        }
        for (line, rule, want) in [
            ("git diff", "Read(secrets/**)", Behavior::Ask),
            ("git diff", "Read(other/**)", Behavior::Allow),
            ("git diff", "Read(.env)", Behavior::Allow),
            ("git diff src/a", "Read(secrets/**)", Behavior::Allow),
            ("git diff --stat", "Read(secrets/**)", Behavior::Allow),
            ("git diff secrets", "Read(secrets/**)", Behavior::Deny),
        ] {
            let access = Access::Shell { command: line.into(), cwd: places.project.clone() };
            assert_eq!(behavior("Bash", access, &[rule]), want, "{line} {rule}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn another_name_of_a_protected_file_is_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let places = Places {
            project: root.join("p"),
            home: Some(root.join("home")),
            cocode_home: root.join("home/.claude"),
            ..Places::default()
        };
        std::fs::create_dir(root.join("p")).unwrap();
        for (at, (real, write, read)) in [
            ("home/.bashrc", true, false),
            ("home/.config/fish/config.fish", true, false),
            ("home/.claude/settings.json", true, false),
            ("home/.ssh/id_rsa", true, true),
            ("home/.aws/sso/cache/x", true, true),
            ("p/.git/config", true, false),
            ("p/.git/hooks/pre-commit", true, false),
            ("p/.git/objects/aa/bb", false, false),
            ("p/src/a.rs", false, false),
        ]
        .into_iter()
        .enumerate()
        {
            let (real, other) = (root.join(real), root.join(format!("p/{at}.txt")));
            std::fs::create_dir_all(real.parent().unwrap()).unwrap();
            std::fs::write(&real, "x").unwrap();
            std::fs::write(&other, "x").unwrap();
            let asks = |access: Access| {
                let rules = RuleSet::default();
                let query = Query {
                    tool: "Edit",
                    access: &access,
                    mode: Mode::AcceptEdits,
                    rules: &rules,
                    places: &places,
                    vocabulary: crate::permission::vocabulary::TOOLS,
                    level: Level::Kernel,
                };
                decide(&query, &super::super::Disk).behavior == Behavior::Ask
            };
            let both = || (asks(Access::Write { path: other.clone() }), asks(Access::Read { path: other.clone() }));
            assert_eq!(both(), (false, false), "{} alone", real.display());
            std::fs::remove_file(&other).unwrap();
            std::fs::hard_link(&real, &other).unwrap();
            assert_eq!(both(), (write, read), "{}", real.display());
        }
    }
}
