//! Installed plugins: copies of folders, each version in one of its own, and the list of them.
//!
//! All of it lies below `<home>/cocode/plugins`; what Claude Code installed is left alone.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::found::{Installed, Record};
use super::manifest::usable;
use super::{Standing, read_one};
use crate::commands::Severity;
use crate::stdx::fs::{private_dir, replace_private};
use crate::stdx::hash::sha256_hex;
use crate::stdx::links;
use crate::stdx::regular;

/// The place, behind the `@`, of plugins that no marketplace has.
pub const LOCAL: &str = "local";
/// Most files of a plugin, and most bytes of all of them.
const FILES: usize = 20_000;
const BYTES: u64 = 256 << 20;

/// What an installation came to.
#[derive(Debug)]
pub struct Done {
    pub id: String,
    pub version: String,
    /// The version before; none for a new plugin.
    pub before: Option<String>,
    /// What was not copied, and why.
    pub skipped: Vec<String>,
}

/// Copies the plugin in `folder`. `source` says where it came from, for an update; `commit` is the one that was fetched.
///
/// # Errors
/// It is not a plugin, is too large, or cannot be copied; what was installed before stays.
pub fn install(home: &Path, folder: &Path, source: Value, commit: Option<&str>) -> Result<Done, String> {
    let plugin = read_one(folder, home).map_err(|error| format!("{}: {error}", folder.display()))?;
    if plugin.standing == Standing::Unusable {
        let faults = plugin.faults.iter().filter(|fault| fault.severity == Severity::Error);
        return Err(faults.map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    if plugin.manifest.is_empty() {
        return Err(format!("{} has nothing that could be loaded: is it the folder of a plugin?", folder.display()));
    }
    let mut installed = Installed::read(home)?;
    let name = &plugin.manifest.name;
    let id = format!("{name}@{LOCAL}");
    let own = Installed::folder(home).join("cache").join(LOCAL).join(name);
    let failed = |error: io::Error| format!("cannot install {name}: {error}");
    private_dir(&own).map_err(failed)?;
    // Beside the versions, so that a copy that breaks off is never taken for one.
    let copied = tempfile::Builder::new().prefix(".new-").tempdir_in(&own).map_err(failed)?;
    let mut copy = Copy { root: &plugin.root, files: 0, bytes: 0, hashes: String::new(), skipped: Vec::new() };
    copy.folder(&plugin.root, copied.path())?;
    let hash = sha256_hex(copy.hashes.as_bytes());
    let short = |text: &str| text.chars().take(12).collect::<String>();
    let version = plugin.version.as_deref().map(as_folder).filter(|version| !version.is_empty());
    let version = version.unwrap_or_else(|| commit.map_or_else(|| short(&hash), short));
    let path = own.join(&version);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(failed)?;
    }
    fs::rename(copied.keep(), &path).map_err(failed)?;
    let record = Record { path, version: version.clone(), source, ..Record::default() };
    let before = installed.plugins.insert(id.clone(), record).map(|record| record.version);
    write(home, &installed)?;
    Ok(Done { id, version, before, skipped: copy.skipped })
}

/// Whether what a plugin keeps goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Data,
    Nothing,
}

/// Where a plugin that was installed here keeps its data: no other one has the place.
pub fn data_of(home: &Path, id: &str) -> PathBuf {
    Installed::folder(home).join("data").join(id)
}

/// Removes a plugin that was installed here, with all its versions.
///
/// # Errors
/// It was not installed here, or cannot be removed.
pub fn uninstall(home: &Path, id: &str, kept: Kept) -> Result<(), String> {
    let mut installed = Installed::read(home)?;
    let own = id.split_once('@').filter(|(name, place)| usable(name) && usable(place));
    let (Some(_), Some((name, place))) = (installed.plugins.remove(id), own) else {
        return Err(format!("{id} was not installed by cocode"));
    };
    write(home, &installed)?;
    let versions = Installed::folder(home).join("cache").join(place).join(name);
    let data = (kept == Kept::Nothing).then(|| data_of(home, id));
    for folder in [Some(versions), data].into_iter().flatten().filter(|folder| is_folder(folder)) {
        fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    Ok(())
}

/// Removes the versions that no plugin uses any more; returns their folders.
///
/// # Errors
/// The list cannot be read, or a folder cannot be removed.
pub fn prune(home: &Path) -> Result<Vec<PathBuf>, String> {
    let installed = Installed::read(home)?;
    // What a link leads to is not ours, and what begins with a dot is being installed.
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let visible = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        visible.map(|entry| entry.path()).filter(|path| is_folder(path)).collect()
    };
    let places = below(&Installed::folder(home).join("cache"));
    let versions = places.iter().flat_map(|place| below(place)).flat_map(|plugin| below(&plugin));
    // One folder may be spelled in several ways, as where the home is reached through a link.
    let real = |path: &Path| path.canonicalize().ok();
    let kept: Vec<Option<PathBuf>> = installed.plugins.values().map(|record| real(&record.path)).collect();
    let used = |path: &PathBuf| kept.contains(&real(path));
    let mut unused: Vec<PathBuf> = versions.filter(|path| !used(path)).collect();
    unused.sort();
    for folder in &unused {
        fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    Ok(unused)
}

/// A link to one does not count.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

fn write(home: &Path, installed: &Installed) -> Result<(), String> {
    let file = Installed::file(home);
    let text = serde_json::to_string_pretty(installed).map_err(|error| error.to_string())?;
    replace_private(&file, text.as_bytes()).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// A version as the name of a folder.
fn as_folder(version: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    version.chars().map(plain).take(64).collect::<String>().trim_start_matches('.').to_owned()
}

struct Copy<'a> {
    root: &'a Path,
    files: usize,
    bytes: u64,
    /// Every file with the hash of what it holds.
    hashes: String,
    skipped: Vec<String>,
}

impl Copy<'_> {
    fn folder(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let failed = |path: &Path, error: io::Error| format!("cannot copy {}: {error}", path.display());
        let entries = fs::read_dir(from).map_err(|error| failed(from, error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().filter(|name| *name != ".git") else { continue };
            let to = to.join(name);
            let data = path.symlink_metadata().map_err(|error| failed(&path, error))?;
            if data.is_symlink() {
                self.link(&path, &to).map_err(|error| failed(&path, error))?;
            } else if data.is_dir() {
                fs::create_dir(&to).map_err(|error| failed(&path, error))?;
                self.folder(&path, &to)?;
            } else if data.is_file() {
                self.files += 1;
                self.bytes += data.len();
                if self.files > FILES || self.bytes > BYTES {
                    return Err(format!(
                        "{} is too large: {FILES} files and 256 MiB are the most",
                        self.root.display()
                    ));
                }
                let bytes = regular::read(&path, BYTES).map_err(|error| failed(&path, error))?;
                let place = path.strip_prefix(self.root).unwrap_or(&path).display();
                self.hashes += &format!("{place} {}\n", sha256_hex(&bytes));
                fs::write(&to, bytes)
                    .and_then(|()| fs::set_permissions(&to, data.permissions()))
                    .map_err(|error| failed(&path, error))?;
            } else {
                self.skipped.push(format!("{} is not a file", path.display()));
            }
        }
        Ok(())
    }

    /// A link stays one where it leads to something of the plugin; any other could show what does not belong to it.
    fn link(&mut self, path: &Path, to: &Path) -> io::Result<()> {
        let target = fs::read_link(path)?;
        if !self.stays(path) {
            self.skipped.push(format!("{} is a link to {}", path.display(), target.display()));
            return Ok(());
        }
        let place = path.strip_prefix(self.root).unwrap_or(path).display();
        self.hashes += &format!("{place} -> {}\n", target.display());
        std::os::unix::fs::symlink(target, to)
    }

    /// Whether a link never leaves the plugin on its way: one that comes back in would lead elsewhere from the copy.
    fn stays(&self, path: &Path) -> bool {
        let (inside, left) = (Cell::new(false), Cell::new(false));
        let real = links::resolve_with(path, |next| {
            let below = next != self.root && next.starts_with(self.root);
            left.set(left.get() || inside.get() && !below);
            inside.set(inside.get() || below);
            fs::read_link(next).ok()
        });
        !left.get() && real.starts_with(self.root) && real.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_folder_is_copied_updated_pruned_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (home, folder) = (root.join("home"), root.join("demo"));
        let manifest = |version: &str| {
            put(&folder.join(".claude-plugin/plugin.json"), &format!(r#"{{"name": "demo", "version": "{version}"}}"#));
        };
        manifest("../1");
        put(&folder.join("skills/a/SKILL.md"), "x");
        put(&folder.join(".git/config"), "x");
        put(&root.join("secret"), "x");
        std::os::unix::fs::symlink("skills", folder.join("inside")).unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("outside")).unwrap();
        for (target, link) in
            [("../demo/skills", "back"), (".", "here"), ("here/../demo/skills", "over"), ("gone", "lost")]
        {
            std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
        }
        let add = || install(&home, &folder, Value::Null, None).unwrap();
        let first = add();
        assert_eq!((first.id.as_str(), first.version.as_str(), first.before.as_deref()), ("demo@local", "-1", None));
        let skipped: Vec<&str> = first.skipped.iter().filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(skipped, ["../demo/skills", "gone", "../secret", "here/../demo/skills"]);
        let own = home.join("cocode/plugins/cache/local/demo");
        let has = |name: &str| own.join(name).symlink_metadata().is_ok();
        assert_eq!(["-1/skills/a/SKILL.md", "-1/inside", "-1/outside", "-1/.git"].map(has), [true, true, false, false]);
        manifest("2");
        assert_eq!((add().before.as_deref(), has("-1"), has("2")), (Some("-1"), true, true));
        assert_eq!(prune(&home).unwrap(), [own.join("-1")]);
        assert_eq!(prune(&home).unwrap(), [] as [PathBuf; 0]);
        // Neither what is installed in this moment, nor what lies behind a link or another spelling of the home.
        put(&own.join(".new-1/x"), "x");
        put(&root.join("victim/a/b"), "x");
        std::os::unix::fs::symlink(root.join("victim"), home.join("cocode/plugins/cache/local/linked")).unwrap();
        std::os::unix::fs::symlink(&home, root.join("again")).unwrap();
        assert_eq!(prune(&root.join("again")).unwrap(), [] as [PathBuf; 0]);
        assert!(has(".new-1/x") && has("2") && root.join("victim/a/b").exists());
        let theirs = home.join("plugins/data/demo-local");
        put(&theirs.join("kept"), "x");
        let data = data_of(&home, "demo@local");
        put(&data.join("kept"), "x");
        uninstall(&home, "demo@local", Kept::Data).unwrap();
        assert_eq!((own.exists(), data.exists()), (false, true));
        assert!(uninstall(&home, "demo@local", Kept::Nothing).is_err());
        add();
        uninstall(&home, "demo@local", Kept::Nothing).unwrap();
        assert_eq!((own.exists(), data.exists()), (false, false));
        assert!(theirs.join("kept").exists());
        assert_eq!(Installed::read(&home).unwrap(), Installed::default());
    }

    #[test]
    fn what_is_not_a_plugin_is_not_installed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (home, folder) = (root.join("home"), root.join("demo"));
        let refused = |want: &str| {
            let error = install(&home, &folder, Value::Null, None).unwrap_err();
            assert!(error.contains(want), "{error}");
            assert!(!home.join("cocode/plugins/installed.json").exists());
        };
        refused("No such file");
        fs::create_dir(&folder).unwrap();
        refused("has nothing that could be loaded");
        put(&folder.join(".claude-plugin/plugin.json"), "{");
        refused("is not valid JSON");
    }
}
