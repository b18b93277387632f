//! Finds skills: which folders are searched, in which order they count, and what each file is.

mod bounds;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use self::bounds::Bounds;
use super::diagnostic::Diagnostic;
use super::plugin::Plugin;
use super::registry::{LoadedFrom, Source};
use super::skill::{At, Skill};
use crate::stdx::git;
use crate::stdx::text::grouped;

/// How deep below a skills folder a SKILL.md may lie.
const DEPTH: usize = 4;
/// Most folders below one root; a link into a whole disk must not be walked for minutes.
const FOLDERS: usize = 20_000;
/// Folders in which nobody keeps skills.
const SKIPPED: [&str; 4] = [".git", "node_modules", "target", ".venv"];
/// Files from which on several threads read.
const MANY: usize = 64;

/// Where skills of this user in this folder may be. All absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    /// `/etc/cocode`.
    pub managed: PathBuf,
    /// `<home>`.
    pub home: PathBuf,
    /// The platform's folder of settings, `~/.config`.
    pub user_config: Option<PathBuf>,
    pub user_home: Option<PathBuf>,
    pub project: PathBuf,
    /// Load `.claude/commands/*.md`, too.
    pub legacy: bool,
    /// The stronger of two with one skill comes first.
    pub plugins: Vec<Arc<Plugin>>,
    pub shown: Shown,
}

/// What settings say of skills, whatever their own files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Those that ship with the program are left out.
    pub unbundled: bool,
    /// Single ones, by name. Those of plugins go by their plugin.
    pub hidden: BTreeMap<String, Hidden>,
}

/// Who does not see a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    FromModel,
    FromAll,
}

/// One searched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub path: PathBuf,
    pub source: Source,
    pub loaded_from: LoadedFrom,
    holds: Holds,
    plugin: Option<Arc<Plugin>>,
}

/// What a root has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Folders with a SKILL.md.
    Folders,
    /// Markdown files that are one skill each.
    Files,
}

impl Root {
    fn new(path: PathBuf, source: Source, loaded_from: LoadedFrom) -> Root {
        let holds = match loaded_from {
            LoadedFrom::CommandsDeprecated => Holds::Files,
            LoadedFrom::Skills | LoadedFrom::Plugin | LoadedFrom::Mcp | LoadedFrom::Bundled => Holds::Folders,
        };
        Root { path, source, loaded_from, holds, plugin: None }
    }

    /// All that a plugin has.
    fn of(plugin: &Arc<Plugin>) -> impl Iterator<Item = Root> {
        let root = |path: &PathBuf, holds| Root {
            path: path.clone(),
            source: Source::Plugin { id: plugin.name.clone() },
            loaded_from: LoadedFrom::Plugin,
            holds,
            plugin: Some(plugin.clone()),
        };
        let skills = plugin.skills.iter().map(move |path| root(path, Holds::Folders));
        skills.chain(plugin.commands.iter().map(move |path| root(path, Holds::Files)))
    }
}

impl Folders {
    /// The folders in the order in which their skills count, the strongest first; those that are not there included.
    pub fn roots(&self) -> Vec<Root> {
        let root = |path: PathBuf, source: Source| Root::new(path, source, LoadedFrom::Skills);
        let mut roots = vec![
            root(self.managed.join("skills"), Source::PolicySettings),
            root(self.home.join("skills"), Source::UserSettings),
        ];
        let config = self.user_config.iter().map(|config| config.join(".claude/skills"));
        let agents = self.user_home.iter().map(|home| home.join(".agents/skills"));
        roots.extend(config.chain(agents).map(|path| root(path, Source::UserSettings)));
        for folder in self.project_folders() {
            for name in [".claude/skills", ".agents/skills"] {
                roots.push(root(folder.join(name), Source::ProjectSettings));
            }
        }
        roots.extend(self.plugins.iter().flat_map(Root::of));
        if !self.shown.unbundled {
            roots.push(Root::new(self.home.join("skills-bundled"), Source::Bundled, LoadedFrom::Bundled));
        }
        roots
    }

    /// Folders of the older prompt files, which count last.
    pub fn legacy_roots(&self) -> Vec<Root> {
        let root = |path: PathBuf, source| Root::new(path, source, LoadedFrom::CommandsDeprecated);
        let own = root(self.home.join("commands"), Source::UserSettings);
        let project = self.project_folders().into_iter();
        let mut roots = vec![own];
        roots.extend(project.map(|folder| root(folder.join(".claude/commands"), Source::ProjectSettings)));
        roots
    }

    /// The working directory and those above it, up to the root of the repository; only itself outside of one.
    fn project_folders(&self) -> Vec<&Path> {
        let top = git::root(&self.project);
        let Some(top) = top else { return vec![&self.project] };
        self.project.ancestors().take_while(|folder| folder.starts_with(top)).collect()
    }
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The strongest first.
    pub skills: Vec<Skill>,
    /// Files that were reached before: this one, and the one that was loaded.
    pub dropped: Vec<(PathBuf, PathBuf)>,
    pub problems: Vec<Diagnostic>,
    /// Files of `.claude/commands` that were not loaded.
    pub legacy: Vec<PathBuf>,
    /// How everything looked that was looked at.
    pub stamps: Stamps,
}

/// Time and size of every folder and file that was looked at; none for what was not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

type Stamp = (SystemTime, u64, u64);

impl Stamps {
    /// Whether anything looks different now.
    pub fn changed(&self) -> bool {
        self.0.iter().any(|(path, stamp)| look(path).map(|(_, stamp)| stamp) != *stamp)
    }

    fn note(&mut self, path: &Path) -> Option<fs::Metadata> {
        let (meta, stamp) = look(path).unzip();
        self.0.push((path.to_owned(), stamp));
        meta
    }
}

fn look(path: &Path) -> Option<(fs::Metadata, Stamp)> {
    let meta = fs::metadata(path).ok()?;
    let stamp = (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), identity(path, &meta).1);
    Some((meta, stamp))
}

/// What a path really is: device and inode, or a hash of the real path on systems without them.
fn identity(path: &Path, meta: &fs::Metadata) -> (u64, u64) {
    #[cfg(unix)]
    {
        let _ = path;
        use std::os::unix::fs::MetadataExt;
        (meta.dev(), meta.ino())
    }
    #[cfg(not(unix))]
    {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let _ = meta;
        let mut hasher = DefaultHasher::new();
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).hash(&mut hasher);
        (0, hasher.finish())
    }
}

/// A file that is to be read.
struct Candidate {
    path: PathBuf,
    /// Name of the folder that contains it, or of the file.
    name: String,
    root: usize,
}

/// Searches all folders and reads what is there. `bundled` are the skills of the binary, by name and text.
pub fn discover(folders: &Folders, bundled: &[(&'static str, &'static str)]) -> Found {
    let mut found = Found::default();
    let mut roots = folders.roots();
    let shipped = roots.len();
    roots.extend(folders.legacy_roots());
    let mut walk = Walk {
        found: &mut found,
        folders: HashSet::new(),
        files: HashMap::new(),
        candidates: Vec::new(),
        left: 0,
        outside: 0,
        bounds: Bounds::Anywhere,
    };
    let repository = folders.project_folders().last().and_then(|top| top.canonicalize().ok());
    for (at, root) in roots.iter().enumerate() {
        walk.bound(match (&root.plugin, &repository) {
            (Some(plugin), _) => Bounds::Plugin(plugin.root.clone()),
            (None, Some(top)) if root.source == Source::ProjectSettings => Bounds::Repository(top.clone()),
            _ => Bounds::Anywhere,
        });
        walk.root(root, at);
    }
    let mut candidates = walk.candidates;
    if !folders.legacy {
        let old = candidates.extract_if(.., |candidate| candidate.root >= shipped);
        found.legacy = old.map(|candidate| candidate.path).collect();
    }
    let before = candidates.iter().filter(|candidate| candidate.root < shipped).count();
    let mut read = read_all(&candidates, &roots);
    let legacy = read.split_off(before);
    for (skill, problems) in read {
        found.skills.extend(skill);
        found.problems.extend(problems);
    }
    found.skills.extend(bundled.iter().map(|(name, text)| Skill::bundled(name, text)));
    for (skill, problems) in legacy {
        found.skills.extend(skill);
        found.problems.extend(problems);
    }
    found
}

/// Reads one SKILL.md, or all below a folder, as a root of its own.
pub fn discover_at(path: &Path) -> Found {
    let root = Root::new(path.to_owned(), Source::ProjectSettings, LoadedFrom::Skills);
    read_roots(vec![root], Bounds::Anywhere)
}

/// Reads the skills of one plugin alone.
pub fn discover_plugin(plugin: &Arc<Plugin>) -> Found {
    read_roots(Root::of(plugin).collect(), Bounds::Plugin(plugin.root.clone()))
}

fn read_roots(roots: Vec<Root>, bounds: Bounds) -> Found {
    let mut found = Found::default();
    let mut walk = Walk {
        found: &mut found,
        folders: HashSet::new(),
        files: HashMap::new(),
        candidates: Vec::new(),
        left: 0,
        outside: 0,
        bounds: Bounds::Anywhere,
    };
    walk.bound(bounds);
    roots.iter().enumerate().for_each(|(at, root)| walk.root(root, at));
    let candidates = walk.candidates;
    for (skill, problems) in read_all(&candidates, &roots) {
        found.skills.extend(skill);
        found.problems.extend(problems);
    }
    found
}

type ReadOne = (Option<Skill>, Vec<Diagnostic>);

fn read_all(candidates: &[Candidate], roots: &[Root]) -> Vec<ReadOne> {
    let read = |candidate: &Candidate| -> ReadOne {
        let root = &roots[candidate.root];
        let at = At {
            path: &candidate.path,
            folder: &candidate.name,
            source: &root.source,
            loaded_from: root.loaded_from,
            plugin: root.plugin.as_ref(),
        };
        let mut problems = Vec::new();
        match Skill::load(at, &mut problems) {
            Ok(skill) => (Some(skill), problems),
            Err(problem) => {
                problems.push(problem);
                (None, problems)
            }
        }
    };
    if candidates.len() < MANY {
        return candidates.iter().map(read).collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(4);
    let share = candidates.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let running: Vec<_> = candidates
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().map(read).collect::<Vec<_>>()))
            .collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

struct Walk<'a> {
    found: &'a mut Found,
    /// Folders that were entered, by what they really are: a link back ends there.
    folders: HashSet<(u64, u64)>,
    files: HashMap<(u64, u64), PathBuf>,
    candidates: Vec<Candidate>,
    /// Folders that may still be entered.
    left: usize,
    /// Those of them that may lie outside the repository.
    outside: usize,
    bounds: Bounds,
}

impl Walk<'_> {
    /// Names in a folder, in order; `None` if it is not a folder, or was entered before.
    fn enter(&mut self, folder: &Path) -> Option<Vec<(String, PathBuf)>> {
        if !self.admits(folder) {
            self.found.stamps.note(folder);
            return None;
        }
        let meta = self.found.stamps.note(folder)?;
        if !meta.is_dir() || !self.folders.insert(identity(folder, &meta)) {
            return None;
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.left == 0 {
            let most = self.most();
            let what = format!("more than {} folders", grouped(most as u64));
            let words = [what.as_str(), "further skills are not found", "move other files away"];
            self.found.problems.push(Diagnostic::error(folder, None, words));
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let what = format!("cannot be listed: {error}");
                let words = [what.as_str(), "skills in it are not found", "make it readable"];
                self.found.problems.push(Diagnostic::error(folder, None, words));
                return None;
            }
        };
        let mut names: Vec<(String, PathBuf)> = entries
            .filter_map(Result::ok)
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .collect();
        names.sort();
        Some(names)
    }

    fn root(&mut self, root: &Root, at: usize) {
        match (root.holds, root.path.is_dir() || !root.path.exists()) {
            (Holds::Folders, true) => self.folder(&root.path, at, 0),
            (Holds::Folders, false) => self.file(root.path.clone(), at),
            (Holds::Files, true) => self.legacy(&root.path, at, DEPTH),
            (Holds::Files, false) => {
                let name = root.path.file_stem().map(|name| name.to_string_lossy().into_owned());
                self.candidate(root.path.clone(), name.unwrap_or_default(), at);
            }
        }
    }

    fn folder(&mut self, folder: &Path, root: usize, depth: usize) {
        let Some(names) = self.enter(folder) else { return };
        // A plugin among skills is loaded as one.
        let marked = depth > 0 && names.iter().any(|(name, _)| name == ".claude-plugin");
        if marked && folder.join(".claude-plugin/plugin.json").is_file() {
            return;
        }
        for (name, path) in names {
            if name == "SKILL.md" {
                self.file(path, root);
            } else if name.eq_ignore_ascii_case("skill.md") {
                let words = ["the file is not named `SKILL.md`", "the skill is not loaded", "rename it to `SKILL.md`"];
                self.found.problems.push(Diagnostic::error(&path, None, words));
            } else if name == "SKILL.toml" {
                self.found.stamps.note(&path);
            } else if SKIPPED.contains(&name.as_str()) && !path.join("SKILL.md").exists() {
            } else if path.is_dir() {
                if depth < DEPTH {
                    self.folder(&path, root, depth + 1);
                } else {
                    self.too_deep(&path);
                }
            } else if depth == 0 && !path.exists() {
                let words = ["is a link that leads nowhere", "no skill was loaded", "fix or remove the link"];
                self.found.problems.push(Diagnostic::error(&path, None, words));
            } else if depth == 0 && name.ends_with(".md") && !name.eq_ignore_ascii_case("readme.md") {
                let fix = format!("move it to `{}/SKILL.md`", name.trim_end_matches(".md"));
                let words = ["a skill is a folder with a SKILL.md", "the file is not loaded", fix.as_str()];
                self.found.problems.push(Diagnostic::warning(&path, None, words));
            }
        }
    }

    /// Names the skills that lie too deep to be loaded.
    fn too_deep(&mut self, folder: &Path) {
        if !self.admits(folder) {
            return;
        }
        let meta = fs::metadata(folder).ok();
        if self.left == 0 || !meta.is_some_and(|meta| self.folders.insert(identity(folder, &meta))) {
            return;
        }
        self.left -= 1;
        for path in fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
            if path.file_name().is_some_and(|name| name == "SKILL.md") {
                let words = ["it is more than four folders deep", "it is not loaded", "move it up"];
                self.found.problems.push(Diagnostic::error(&path, None, words));
            } else if path.is_dir() && !SKIPPED.iter().any(|name| path.ends_with(name)) {
                self.too_deep(&path);
            }
        }
    }

    fn legacy(&mut self, folder: &Path, root: usize, depth: usize) {
        let Some(names) = self.enter(folder) else { return };
        for (name, path) in names {
            if let Some(stem) = name.strip_suffix(".md") {
                self.candidate(path, stem.to_owned(), root);
            } else if depth > 0 && path.is_dir() {
                self.legacy(&path, root, depth - 1);
            }
        }
    }

    fn file(&mut self, path: PathBuf, root: usize) {
        let folder = path.parent().and_then(Path::file_name);
        let name = folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.candidate(path, name, root);
    }

    fn candidate(&mut self, path: PathBuf, name: String, root: usize) {
        let Some(meta) = self.found.stamps.note(&path) else {
            let words = ["is a link that leads nowhere", "the skill is not loaded", "fix or remove the link"];
            self.found.problems.push(Diagnostic::error(&path, None, words));
            return;
        };
        if let Some(what) = self.refuses(&path) {
            let words = [what.as_str(), "it is not loaded", "put a copy of the file here"];
            self.found.problems.push(Diagnostic::error(&path, None, words));
            return;
        }
        let identity = identity(&path, &meta);
        if let Some(first) = self.files.get(&identity) {
            self.found.dropped.push((path, first.clone()));
            return;
        }
        self.files.insert(identity, path.clone());
        self.candidates.push(Candidate { path, name, root });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `path=text` files below a home with `project` in it; what was found, in order, and what was told.
    fn check(files: &[(&str, &str)], want: &[&str], told: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                #[cfg(unix)]
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                _ if text.is_empty() => fs::create_dir_all(path).unwrap(),
                _ => fs::write(path, text).unwrap(),
            }
        }
        let found = discover(&folders(&base), &[("shipped", "---\ndescription: s\n---\nx")]);
        let rows: Vec<String> = found
            .skills
            .iter()
            .map(|skill| {
                format!("{} {:?} {}", skill.name, skill.source, skill.place().replace(base.to_str().unwrap(), ""))
            })
            .collect();
        let mut lines: Vec<String> =
            found.problems.iter().map(|problem| problem.what.replace(base.to_str().unwrap(), "")).collect();
        lines.extend(
            found
                .dropped
                .iter()
                .map(|(path, _)| path.display().to_string().replace(base.to_str().unwrap(), "dropped ")),
        );
        lines.extend(
            found.legacy.iter().map(|path| path.display().to_string().replace(base.to_str().unwrap(), "legacy ")),
        );
        assert_eq!(
            (rows.iter().map(String::as_str).collect::<Vec<_>>(), lines),
            (want.to_vec(), told.iter().map(|line| (*line).to_owned()).collect())
        );
    }

    fn folders(base: &Path) -> Folders {
        Folders {
            managed: base.join("etc"),
            home: base.join("home/.claude"),
            user_config: Some(base.join("home/.config")),
            user_home: Some(base.join("home")),
            project: base.join("repo/sub"),
            legacy: false,
            plugins: Vec::new(),
            shown: Shown::default(),
        }
    }

    const TEXT: &str = "---\ndescription: d\n---\nbody";

    #[test]
    fn sources_in_their_order() {
        check(
            &[
                ("repo/.git", ""),
                ("repo/sub", ""),
                ("home/.claude/skills-bundled/i/SKILL.md", TEXT),
                ("repo/.agents/skills/h/SKILL.md", TEXT),
                ("repo/.claude/skills/g/SKILL.md", TEXT),
                ("repo/sub/.agents/skills/f/SKILL.md", TEXT),
                ("repo/sub/.claude/skills/e/SKILL.md", TEXT),
                ("home/.agents/skills/d/SKILL.md", TEXT),
                ("home/.config/.claude/skills/c/SKILL.md", TEXT),
                ("home/.claude/skills/b/SKILL.md", TEXT),
                ("etc/skills/a/SKILL.md", TEXT),
                ("repo/.claude/commands/old.md", TEXT),
                (".claude/skills/above/SKILL.md", TEXT),
            ],
            &[
                "a PolicySettings /etc/skills/a/SKILL.md",
                "b UserSettings /home/.claude/skills/b/SKILL.md",
                "c UserSettings /home/.config/.claude/skills/c/SKILL.md",
                "d UserSettings /home/.agents/skills/d/SKILL.md",
                "e ProjectSettings /repo/sub/.claude/skills/e/SKILL.md",
                "f ProjectSettings /repo/sub/.agents/skills/f/SKILL.md",
                "g ProjectSettings /repo/.claude/skills/g/SKILL.md",
                "h ProjectSettings /repo/.agents/skills/h/SKILL.md",
                "i Bundled /home/.claude/skills-bundled/i/SKILL.md",
                "shipped Bundled in the program",
            ],
            &["legacy /repo/.claude/commands/old.md"],
        );
    }

    #[cfg(unix)]
    #[test]
    fn nesting_links_and_what_is_not_loaded() {
        check(
            &[
                ("home/.claude/skills/1/2/3/4/SKILL.md", TEXT),
                ("home/.claude/skills/1/2/3/4/5/SKILL.md", TEXT),
                ("home/.claude/skills/1/2/3/4/5/6/7/SKILL.md", TEXT),
                ("home/.claude/skills/1/2/3/4/5/6/up", "-> ../.."),
                ("home/.claude/skills/a/SKILL.md", TEXT),
                ("home/.claude/skills/a/loop", "-> .."),
                ("home/.claude/skills/b", "-> a"),
                ("home/.claude/skills/c/SKILL.md", "-> ../a/SKILL.md"),
                ("home/.claude/skills/d/SKILL.md", "-> nowhere"),
                ("home/.claude/skills/e/skill.md", TEXT),
                ("home/.claude/skills/gone", "-> nowhere"),
                ("home/.claude/skills/node_modules/x/SKILL.md", TEXT),
                ("home/.claude/skills/target/SKILL.md", TEXT),
                ("home/.claude/skills/f/SKILL.md/x", TEXT),
                ("home/.claude/skills/flat.md", TEXT),
                ("outside/g/SKILL.md", TEXT),
                ("home/.claude/skills/linked", "-> ../../../outside"),
            ],
            &[
                "4 UserSettings /home/.claude/skills/1/2/3/4/SKILL.md",
                "a UserSettings /home/.claude/skills/a/SKILL.md",
                "g UserSettings /home/.claude/skills/linked/g/SKILL.md",
                "target UserSettings /home/.claude/skills/target/SKILL.md",
                "shipped Bundled in the program",
            ],
            &[
                "it is more than four folders deep",
                "it is more than four folders deep",
                "is a link that leads nowhere",
                "the file is not named `SKILL.md`",
                "a skill is a folder with a SKILL.md",
                "is a link that leads nowhere",
                "cannot be read: is not a regular file",
                "dropped /home/.claude/skills/c/SKILL.md",
            ],
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_links_to_no_private_file() {
        check(
            &[
                ("repo/.git", ""),
                ("repo/sub", ""),
                ("home/secret", "hunter2"),
                ("home/shared/SKILL.md", TEXT),
                ("repo/docs/own.md", TEXT),
                ("repo/.claude/skills/a/SKILL.md", "-> ../../../../home/secret"),
                ("repo/.claude/skills/b", "-> ../../../home/shared"),
                ("repo/.claude/skills/c/SKILL.md", "-> ../../../docs/own.md"),
                ("repo/.env", "KEY=1"),
                ("repo/.claude/skills/e/SKILL.md", "-> ../../../.env"),
                ("home/.claude/skills/d/SKILL.md", "-> ../../../secret"),
            ],
            &[
                "d UserSettings /home/.claude/skills/d/SKILL.md",
                "b ProjectSettings /repo/.claude/skills/b/SKILL.md",
                "c ProjectSettings /repo/.claude/skills/c/SKILL.md",
                "shipped Bundled in the program",
            ],
            &[
                "is a link to /home/secret, which is not a skill",
                "is a link to /repo/.env, which is not a skill",
                "no frontmatter",
            ],
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_of_what_others_bring_do_not_lead_through_the_disk() {
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let put = |place: &str| {
            fs::create_dir_all(base.join(place)).unwrap();
            fs::write(base.join(place).join("SKILL.md"), TEXT).unwrap();
        };
        (0..bounds::OUTSIDE + 100).for_each(|at| put(&format!("disk/s{at:04}")));
        ["plugin/skills/own", "plugin/more/inner", "repo/.claude/skills/own"].into_iter().for_each(put);
        fs::create_dir_all(base.join("repo/.git")).unwrap();
        let skills = base.join("plugin/skills");
        fs::create_dir(skills.join("one")).unwrap();
        symlink("../../../disk/s0001/SKILL.md", skills.join("one/SKILL.md")).unwrap();
        for (target, link) in [("../../disk", "out"), ("../more", "in"), ("/", "root"), ("../../disk/s0002", "skill")] {
            symlink(target, skills.join(link)).unwrap();
        }
        symlink("../../../disk", base.join("repo/.claude/skills/out")).unwrap();
        let plugin = Plugin {
            name: "p".into(),
            id: "p@x".into(),
            root: base.join("plugin"),
            data: base.join("data"),
            skills: vec![skills],
            commands: Vec::new(),
        };
        let found = discover_plugin(&Arc::new(plugin));
        let names: Vec<&str> = found.skills.iter().map(|skill| skill.name.as_str()).collect();
        let told: Vec<String> =
            found.problems.iter().map(|problem| problem.what.replace(base.to_str().unwrap(), "")).collect();
        let out = |to: &str| format!("is a link to {to}, outside the plugin");
        let want = [out("/disk/s0001/SKILL.md"), out("/disk"), out("/"), out("/disk/s0002")];
        assert_eq!((names.as_slice(), told.as_slice()), (["inner", "own"].as_slice(), want.as_slice()));
        // What links of a repository lead to has an end, too.
        let project = base.join("repo");
        let found = discover(&Folders { project, ..folders(&base) }, &[]);
        let told: Vec<&str> = found.problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(found.skills.len(), 1 + bounds::OUTSIDE - 2);
        assert_eq!(told, ["a link leads to more than 500 folders outside the project"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("x")).unwrap();
        let pipe = dir.path().join("x/SKILL.md");
        std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        let found = discover_at(dir.path());
        assert_eq!((found.skills.len(), found.problems[0].what.as_str()), (0, "cannot be read: is not a regular file"));
    }

    #[test]
    fn edits_additions_and_removals_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let skills = base.join("home/.claude/skills");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(skills.join(name)).unwrap();
            fs::write(skills.join(name).join("SKILL.md"), text).unwrap();
        };
        let look = || discover(&folders(&base), &[]).stamps;
        let empty = look();
        assert!(!empty.changed());
        write("a", TEXT);
        assert!(empty.changed());
        let one = look();
        assert!(!one.changed());
        write("a", "---\ndescription: longer\n---\nbody");
        assert!(one.changed());
        let edited = look();
        write("b", TEXT);
        assert!(edited.changed());
        let two = look();
        fs::remove_dir_all(skills.join("a")).unwrap();
        assert!(two.changed());
    }

    #[test]
    fn two_thousand_in_one_folder() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..2_000 {
            let folder = dir.path().join(format!("s{at:04}"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("SKILL.md"), TEXT).unwrap();
        }
        let found = discover_at(dir.path());
        assert_eq!((found.skills.len(), found.problems.len()), (2_000, 0));
        assert_eq!(found.skills[1_999].name, "s1999");
    }
}
