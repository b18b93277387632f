//! The one gate in front of git: whether it may be started in a folder without anybody being asked.
//!
//! A repository's configuration can name programs that even `git status` runs, and places elsewhere that it reads. So
//! everything that git would obey is looked at first, without git, and judged by a list of what is harmless. Whose files
//! they are is git's own question (`safe.directory`).

mod config;
pub(super) mod hooks;
mod index;
mod own;
pub(super) mod todo;

pub(super) use self::config::is_plain;
pub use self::own::{OwnGit, VARIABLES};

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::files::{Disk, Files};
use crate::sandbox::guard::OF_GIT;
use crate::stdx::git::User;
use crate::stdx::regular;

/// Largest configuration that is looked at, in bytes.
const MAX_CONFIG: u64 = 1 << 18;
/// Largest index that is looked at, in bytes: some 600,000 files.
const MAX_INDEX: u64 = 64 << 20;
/// Longest `.git` file, or other file of one line, in bytes.
const MAX_LINE: u64 = 4096;
/// Most names below a work tree among which other repositories are looked for.
const MAX_BELOW: usize = 200_000;
/// Most repositories that one question leads through.
const MAX_REPOSITORIES: usize = 256;

/// Judges the repository that git would find from the folder, with the submodules that it would look into. Reads a few
/// small files and the index; walks no tree.
///
/// # Errors
/// What git might obey there.
pub(super) fn judge(folder: &Path) -> Result<(), String> {
    Walk::default().around(folder)
}

/// The same for a git that changes something by a rule of the user's: what a clone in parts, a machine that builds, and
/// git-lfs set up there is obeyed, too.
///
/// # Errors
/// What git might obey there.
pub(super) fn judge_change(folder: &Path) -> Result<(), String> {
    Walk { changes: true, ..Walk::default() }.around(folder)
}

/// Judges every repository below the work tree in which git would start, since a change of the index can make any of them
/// a submodule. `top`: the folder must be the top of its work tree, since in another one there may come to be what looks
/// like a repository.
///
/// # Errors
/// What git might obey there.
pub(super) fn judge_all(folder: &Path, top: bool) -> Result<(), String> {
    let folder = Disk.resolve(folder);
    let Some(root) = &self::top(&folder) else { return Ok(()) };
    if top && *root != folder {
        return Err(format!("what the line brings may make {} a repository of its own", folder.display()));
    }
    let common = git_dir(root, &root.join(".git"))?;
    let (mut left, mut seen, mut walk) = (vec![root.to_owned()], 0, Walk::default());
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_BELOW {
                return Err(format!("{} holds too many names to find every repository in it", root.display()));
            }
            match entry.file_name() == ".git" {
                true if folder == *root => {}
                true => walk.repository(&folder, &entry.path(), Some(&common))?,
                false if entry.file_type().is_ok_and(|kind| kind.is_dir()) => left.push(entry.path()),
                false => {}
            }
        }
    }
    Ok(())
}

/// Largest file of ignored names that is looked at, in bytes: what a larger one ignores counts as if it did not.
const MAX_IGNORED: u64 = 1 << 18;

/// Whether the ignore files of the repository around the path name it, or a folder that it is in.
pub(super) fn ignores(path: &Path, user: User<'_>) -> bool {
    let Some(root) = path.parent().and_then(top).filter(|root| path.starts_with(root)) else { return false };
    let common = git_dir(&root, &root.join(".git")).and_then(|own| common_dir(&own));
    let exclude = common.ok().map(|common| (root.clone(), common.join("info/exclude")));
    let own = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&root));
    // The user's own list, for all their repositories.
    let set = all_settings(&root, user).into_iter().flat_map(|(_, settings)| settings);
    let mut set = set.filter(|setting| setting.is("core", "excludesfile")).filter_map(|setting| setting.value);
    let everywhere = match set.next_back() {
        Some(path) => {
            Some(path.strip_prefix("~/").zip(user.home).map_or(root.join(&path), |(rest, home)| home.join(rest)))
        }
        None => user.named("ignore"),
    };
    let files = own.map(|folder| (folder.to_owned(), folder.join(".gitignore"))).chain(exclude);
    let files = files.chain(everywhere.map(|file| (root.clone(), file)));
    // The nearest that speaks of it decides.
    let verdict = |(folder, file): (PathBuf, PathBuf)| {
        let bytes = regular::read(&file, MAX_IGNORED).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut builder = ignore::gitignore::GitignoreBuilder::new(&folder);
        for line in text.trim_start_matches('\u{feff}').lines() {
            builder.add_line(None, line).ok()?;
        }
        let patterns = builder.build().ok()?;
        let found = patterns.matched_path_or_any_parents(path, false);
        (!found.is_none()).then(|| found.is_ignore())
    };
    files.into_iter().find_map(verdict).unwrap_or(false)
}

/// The paths of what git's index holds, in the repository around the folder; None where that is not told.
pub(super) fn tracked(folder: &Path) -> Option<Vec<PathBuf>> {
    let Some(root) = top(folder) else { return Some(Vec::new()) };
    let own = git_dir(&root, &root.join(".git")).ok()?;
    let common = common_dir(&own).ok()?;
    let bytes = content(&own.join("index"), MAX_INDEX).ok()?.unwrap_or_default();
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let names = index::names(&bytes, hash_length(&settings(&own, &common, false).ok()?)).ok()?;
    Some(names.into_iter().map(|name| root.join(String::from_utf8_lossy(&name).as_ref())).collect())
}

/// Whether a branch of the repository around the folder has the name, and nothing that git would take first: git makes
/// branches of commits alone, while a tag may be one of a file.
pub(super) fn is_branch(folder: &Path, name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let hash = |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !name.chars().all(plain) || name.starts_with(['-', '.', '/']) || name.contains("..") || hash(name) {
        return false;
    }
    let Some((_, folders)) = around(folder) else { return false };
    let packed = content(&folders[0].join("packed-refs"), MAX_INDEX).ok().flatten().unwrap_or_default();
    let packed = String::from_utf8_lossy(&packed);
    let is_packed =
        |full: &str| packed.lines().any(|line| line.split_once(' ').is_some_and(|(_, known)| known == full));
    let is_there = |full: &str| folders.iter().any(|own| own.join(full).symlink_metadata().is_ok());
    let earlier = [name.to_owned(), format!("refs/{name}"), format!("refs/tags/{name}")];
    let full = format!("refs/heads/{name}");
    // One that leads to another name is not looked through.
    let loose = content(&folders[0].join(&full), MAX_LINE).ok().flatten().is_some_and(|text| {
        let text = String::from_utf8_lossy(&text);
        hash(text.trim())
    });
    let own = loose || !is_there(&full) && is_packed(&full);
    own && !earlier.iter().any(|full| is_there(full) || is_packed(full))
}

/// The top of the work tree around a folder, and the folders that are its repository's own: of the work tree, and common to all.
fn around(folder: &Path) -> Option<(PathBuf, [PathBuf; 2])> {
    let root = top(folder)?;
    let own = git_dir(&root, &root.join(".git")).ok()?;
    let common = common_dir(&own).unwrap_or_else(|_| own.clone());
    Some((root, [common, own]))
}

/// The repository's own files of settings, with those that they include, and what each sets.
fn of_repository([common, own]: &[PathBuf; 2], user: User<'_>) -> Vec<(PathBuf, Vec<config::Setting>)> {
    with_included(vec![own.join("config.worktree"), common.join("config")], user)
}

/// What the repository around the folder and the user's own files set, with the top of its work tree.
fn all_settings(folder: &Path, user: User<'_>) -> Option<(PathBuf, Vec<config::Setting>)> {
    let (root, folders) = around(folder)?;
    let files = of_repository(&folders, user).into_iter().chain(of_user(user));
    Some((root, files.flat_map(|(_, settings)| settings).collect()))
}

/// Most files that a configuration is read from.
const MAX_INCLUDED: usize = 32;

/// Where the system keeps settings for all its users, by how git was installed.
const SYSTEM: [&str; 3] = ["/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"];

/// The files of settings that are not the repository's, the system's first, with those that they include whatever the
/// condition, and what each sets.
fn of_user(user: User<'_>) -> Vec<(PathBuf, Vec<config::Setting>)> {
    with_included(SYSTEM.iter().map(PathBuf::from).chain(user.settings()).rev().collect(), user)
}

/// Files of settings, the last one first, with those that they include whatever the condition, and what each sets.
fn with_included(mut left: Vec<PathBuf>, user: User<'_>) -> Vec<(PathBuf, Vec<config::Setting>)> {
    let mut all = Vec::new();
    while let Some(file) = left.pop().filter(|_| all.len() < MAX_INCLUDED) {
        let Ok(Some(bytes)) = content(&file, MAX_CONFIG) else { continue };
        let settings = config::parse(&bytes).unwrap_or_default();
        let included = settings.iter().filter(|setting| setting.includes());
        let included: Vec<PathBuf> = included.filter_map(|setting| from_user(user, &file, setting)).collect();
        left.extend(included.into_iter().rev());
        all.push((file, settings));
    }
    all
}

/// The path that a setting of a file names.
fn from_user(user: User<'_>, file: &Path, setting: &config::Setting) -> Option<PathBuf> {
    let value = setting.value.as_deref()?;
    match value.strip_prefix("~/") {
        Some(rest) => Some(user.home?.join(rest)),
        None => Some(file.parent()?.join(value)),
    }
}

/// Settings whose value is a file that git reads.
const FILES: [(&str, &str); 6] = [
    ("core", "excludesfile"),
    ("core", "attributesfile"),
    ("mailmap", "file"),
    ("blame", "ignorerevsfile"),
    ("diff", "orderfile"),
    ("gpg", "allowedsignersfile"),
];

/// What git reads of the repository around the folder, and of the user's own configuration: the folders of the repository,
/// the top of its work tree, and each file by itself, since credentials lie beside some.
pub(super) fn reads(folder: &Path, user: User<'_>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(root) = top(folder) {
        if let Ok(own) = git_dir(&root, &root.join(".git")) {
            all.extend(common_dir(&own));
            all.push(own);
        }
        all.push(root);
    }
    all.extend(["ignore", "attributes"].into_iter().filter_map(|name| user.named(name)));
    for (file, settings) in of_user(user) {
        let named = |setting: &&config::Setting| FILES.iter().any(|(section, key)| setting.is(section, key));
        all.extend(settings.iter().filter(named).filter_map(|setting| from_user(user, &file, setting)));
        // The system's own folders may be read anyway.
        all.extend(Some(file).filter(|file| !SYSTEM.iter().any(|system| file == Path::new(system))));
    }
    all.retain(|path| path.exists());
    all.iter().map(|path| Disk.resolve(path)).collect()
}

/// What git obeys of the repository around the folder, and of the user's own settings, beside what has its place in `.git`:
/// folders of hooks, files that settings include, and what a link in `.git` leads to.
pub(super) fn obeyed(folder: &Path, user: User<'_>) -> Vec<PathBuf> {
    let Some((root, folders)) = around(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for (file, settings) in of_repository(&folders, user).into_iter().chain(of_user(user)) {
        for setting in settings {
            let named = setting.value.as_deref().filter(|path| !path.is_empty() && setting.is("core", "hookspath"));
            all.extend(named.map(|path| hooks::expanded(&root, path, user.home)));
            all.extend(Some(&setting).filter(|setting| setting.includes()).and_then(|one| from_user(user, &file, one)));
        }
    }
    let own = folders.iter().flat_map(|folder| OF_GIT.iter().map(|name| folder.join(name)));
    all.extend(own.filter(|path| path.is_symlink()).map(|path| Disk.resolve(&path)));
    all
}

/// Whether an address of a remote, as git shows it in the folder, holds an account.
pub(super) fn names_account(folder: &Path, user: User<'_>) -> bool {
    all_settings(folder, user).is_some_and(|(_, settings)| settings.iter().any(config::Setting::names_account))
}

/// The top of the work tree around the folder.
pub(super) fn top(folder: &Path) -> Option<PathBuf> {
    let folder = Disk.resolve(folder);
    folder.ancestors().find(|root| root.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

#[derive(Default)]
struct Walk {
    seen: BTreeSet<PathBuf>,
    /// Git is there to change something.
    changes: bool,
    /// The work trees, with folders in which their repositories have hooks.
    hooks: Vec<(PathBuf, PathBuf)>,
}

impl Walk {
    fn around(&mut self, folder: &Path) -> Result<(), String> {
        let folder = Disk.resolve(folder);
        for root in folder.ancestors() {
            let dot = root.join(".git");
            if occupied(&dot)? {
                return self.repository(root, &dot, None);
            }
            if occupied(&root.join("HEAD"))?
                && (occupied(&root.join("refs"))?
                    || occupied(&root.join("objects"))?
                    || occupied(&root.join("commondir"))?)
            {
                return Err(format!("{} is, or looks like, a repository without a work tree", root.display()));
            }
        }
        Ok(())
    }

    /// `dot` is the `.git` of the work tree `root`, a real path; `outer` the folder of the repository around a submodule.
    fn repository(&mut self, root: &Path, dot: &Path, outer: Option<&Path>) -> Result<(), String> {
        if !self.seen.insert(root.to_owned()) {
            return Ok(());
        }
        if self.seen.len() > MAX_REPOSITORIES {
            return Err(format!("more than {MAX_REPOSITORIES} submodules"));
        }
        let own = git_dir(root, dot)?;
        let common = common_dir(&own)?;
        if !is_complete(&own, &common)? {
            return Err(format!("{} is not a complete repository: git may use one of a folder above", own.display()));
        }
        let settings = settings(&own, &common, self.changes)?;
        let named = settings.iter().filter(|setting| setting.is("core", "hookspath"));
        let named = named.filter_map(|setting| Some(hooks::expanded(root, setting.value.as_deref()?, None)));
        let hooks = named.chain([common.join("hooks")]).map(|folder| (root.to_owned(), folder));
        self.hooks.extend(hooks.collect::<Vec<_>>());
        let worktree = settings.iter().find(|setting| setting.is("core", "worktree"));
        let leads_back = worktree
            .is_some_and(|setting| Disk.resolve(&own.join(setting.value.as_deref().unwrap_or_default())) == root);
        if worktree.is_some() && !leads_back {
            return Err(format!("core.worktree in {} leads elsewhere", own.join("config").display()));
        }
        let linked = || {
            let back = line(&own.join("gitdir"))?;
            Ok::<bool, String>(
                own.parent() == Some(&common.join("worktrees"))
                    && back.is_some_and(|back| Disk.resolve(&own.join(back)) == dot),
            )
        };
        let within = own.starts_with(root) && common.starts_with(root);
        let of_outer = outer.is_some_and(|outer| own.starts_with(outer) && common.starts_with(outer));
        if !(within || of_outer || leads_back && own == common || linked()?) {
            return Err(format!("{} leads to {}", dot.display(), common.display()));
        }
        stays(&own, &common)?;
        let file = own.join("index");
        let Some(bytes) = content(&file, MAX_INDEX)? else { return Ok(()) };
        let submodules =
            index::submodules(&bytes, hash_length(&settings)).map_err(|why| format!("{} {why}", file.display()))?;
        for path in submodules {
            let path = String::from_utf8(path).map_err(|_| format!("{} names a submodule oddly", file.display()))?;
            let inner = Disk.resolve(&root.join(path));
            let dot = inner.join(".git");
            if occupied(&dot)? {
                self.repository(&inner, &dot, Some(&common))?;
            }
        }
        Ok(())
    }
}

/// Whether git is sure to take the folder for a repository. One that it does not take it passes by, to look in the folders
/// above, whose configuration would then count. So this takes less than git does: a HEAD as git itself writes it.
fn is_complete(own: &Path, common: &Path) -> Result<bool, String> {
    let head = own.join("HEAD");
    let bytes = match head.is_symlink() {
        true => None,
        false => content(&head, MAX_LINE)?,
    };
    let written = bytes.is_some_and(|bytes| {
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        text.starts_with(b"ref: refs/") || matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
    });
    let entered = |path: PathBuf| path.is_dir() && rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok();
    Ok(written && entered(common.join("objects")) && entered(common.join("refs")))
}

/// The folder that a repository's work trees share.
fn common_dir(own: &Path) -> Result<PathBuf, String> {
    Ok(match line(&own.join("commondir"))? {
        Some(path) => Disk.resolve(&own.join(path)),
        None => own.to_owned(),
    })
}

/// How many bytes an object's name has.
fn hash_length(settings: &[config::Setting]) -> usize {
    let other = |setting: &config::Setting| {
        setting.is("extensions", "objectformat") && setting.value.as_deref() != Some("sha1")
    };
    if settings.iter().any(other) { 32 } else { 20 }
}

/// The folder that `.git` is or names, as a real path.
fn git_dir(root: &Path, dot: &Path) -> Result<PathBuf, String> {
    let real = Disk.resolve(dot);
    if real.is_dir() {
        return Ok(real);
    }
    let text = line(&real)?.unwrap_or_default();
    let path = text.strip_prefix("gitdir: ").ok_or_else(|| format!("{} cannot be parsed", dot.display()))?;
    Ok(Disk.resolve(&root.join(path)))
}

/// Every setting that is not harmless is an error but for core.worktree, which is handed out.
fn settings(own: &Path, common: &Path, changes: bool) -> Result<Vec<config::Setting>, String> {
    let mut all = Vec::new();
    for file in [common.join("config"), own.join("config.worktree")] {
        let Some(bytes) = content(&file, MAX_CONFIG)? else { continue };
        let found = config::parse(&bytes).map_err(|why| format!("{} {why}", file.display()))?;
        let is_harmless =
            |setting: &config::Setting| setting.is_harmless() || changes && setting.is_harmless_to_change();
        if let Some(odd) = found.iter().find(|setting| !is_harmless(setting) && !setting.is("core", "worktree")) {
            let name: String = odd.name().chars().take(100).collect();
            return Err(format!("{} sets {name:?}, which may run a program or read files elsewhere", file.display()));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Most names in a repository's own folders that are looked at.
const MAX_NAMES: usize = 16_384;

/// Whether the repository's parts are its own: no links and no alternates that lead out of it.
fn stays(own: &Path, common: &Path) -> Result<(), String> {
    let inside = |path: &Path| path.starts_with(own) || path.starts_with(common);
    let tops = if own.starts_with(common) { vec![common] } else { vec![own, common] };
    let (mut left, mut seen): (Vec<PathBuf>, usize) = (tops.iter().map(|top| top.to_path_buf()).collect(), 0);
    while let Some(folder) = left.pop() {
        let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(unreadable)?,
        };
        for entry in entries {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).map_err(unreadable)?;
            seen += 1;
            if seen > MAX_NAMES {
                return Err(format!("{} holds more names than anybody looks at", common.display()));
            }
            if kind.is_symlink() {
                let real = Disk.resolve(&path);
                if !inside(&real) {
                    return Err(format!("{} leads to {}", path.display(), real.display()));
                }
            } else if kind.is_dir() && !holds_objects(&path) {
                left.push(path);
            }
        }
    }
    let file = common.join("objects/info/alternates");
    let alternates = content(&file, MAX_CONFIG)?.unwrap_or_default();
    let named = |line: &[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
    if alternates.split(|byte| *byte == b'\n').any(named) {
        return Err(format!("{} refers to objects stored elsewhere", file.display()));
    }
    Ok(())
}

/// Whether the folder holds nothing but files named by what they hold, which git checks.
fn holds_objects(folder: &Path) -> bool {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned);
    let fan = |name: String| name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
    name(folder.parent()).is_some_and(|name| name == "objects") && name(Some(folder)).is_some_and(fan)
}

/// Whether anything is at the path, be it a link that leads nowhere.
fn occupied(path: &Path) -> Result<bool, String> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(format!("cannot examine {}: {error}", path.display())),
    }
}

/// The bytes of a file; none where there is no file.
fn content(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    match regular::read(path, most + 1) {
        Ok(bytes) if bytes.len() as u64 <= most => Ok(Some(bytes)),
        Ok(_) => Err(format!("{} is too large to examine", path.display())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// The text of a file of one line.
fn line(path: &Path) -> Result<Option<String>, String> {
    let Some(bytes) = content(path, MAX_LINE)? else { return Ok(None) };
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned())),
        _ => Err(format!("{} is not text", path.display())),
    }
}
