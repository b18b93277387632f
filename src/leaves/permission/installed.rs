//! What of a home folder the programs need that run without a question: the rest of it is nobody's business there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::decide::Query;
use super::files::Files;
use super::places::TOOLS;
use crate::sandbox::presets::Preset;

/// Files that programs read when they start, where keys are kept elsewhere.
const OWN: &str = ".cargo/config .cargo/config.toml .cargo/env .cargo/.crates.toml .cargo/.crates2.json .cargo/.package-cache \
    .cargo/.package-cache-mutate .cargo/.global-cache .gitconfig .gitignore .gitignore_global .gitattributes .config/git \
    .config/rustfmt .rustfmt.toml .editorconfig .inputrc .tool-versions .terminfo .config/fontconfig .config/ccache";

/// Folders of packages that are not hidden.
const VISIBLE: &str = "go/pkg go/bin go/src miniconda3 anaconda3 miniforge3 mambaforge";

/// What belongs to a program beside the folder that it is started from, where that is not a folder of the system: no
/// configuration, since credentials lie there.
const PARTS: [&str; 5] = ["lib", "lib64", "libexec", "versions", "version"];

/// The paths below the home folder that may be read, real ones.
pub(super) fn open(query: &Query, cwd: &Path, writes: &[PathBuf], files: &dyn Files) -> Vec<PathBuf> {
    let places = query.places;
    let Some(home) = places.home.as_ref().map(|home| files.resolve(home)) else { return Vec::new() };
    let mut all = BTreeSet::new();
    let variable = |name: &str| places.approved.caches.get(name).cloned();
    if !places.approved.caches.is_empty() {
        all.extend(Preset::all_caches(&home, variable));
    }
    if let Some(cargo) = variable("CARGO_HOME") {
        all.extend(["bin", "env", "config", "config.toml"].map(|part| cargo.join(part)));
    }
    all.extend(files.git_reads(cwd, places.git_user()));
    for folder in places.programs.iter().map(|folder| files.resolve(folder)) {
        all.extend(with_parts(&folder, files));
    }
    all.retain(|path| path.starts_with(&home) && !home.starts_with(path) && !places.too_wide(path, files));
    // Most of these nobody has.
    let there = files.names(&home);
    let has = |tool: &&str| tool.split('/').next().is_some_and(|first| there.iter().any(|name| name == first));
    let words = [TOOLS, OWN, VISIBLE].into_iter().flat_map(str::split_ascii_whitespace);
    all.extend(words.filter(has).map(|tool| home.join(tool)));
    // These somebody chose.
    all.extend(places.workspace().map(|root| files.resolve(root)));
    all.extend(places.free_reads.iter().chain(writes).cloned());
    all.into_iter().collect()
}

/// The folders of a program that is not the system's: where the folders of `PATH` have it, where it really lies, and what it
/// is made of.
pub(super) fn installed(path: &[PathBuf], cwd: &Path, name: &str, files: &dyn Files) -> Vec<PathBuf> {
    let found = match name.contains('/') {
        true => Some(cwd.join(name)),
        false => path.iter().map(|folder| folder.join(name)).find(|file| files.runs(file)),
    };
    let Some(found) = found.filter(|file| file.is_absolute() && files.runs(file)) else { return Vec::new() };
    let real = files.resolve(&found);
    let folders = [&found, &real].into_iter().filter_map(|file| Some(files.resolve(file.parent()?)));
    let system = |folder: &Path| ["/usr", "/bin", "/sbin"].iter().any(|system| folder.starts_with(system));
    folders.filter(|folder| !system(folder)).flat_map(|folder| with_parts(&folder, files)).collect()
}

/// A folder of programs, behind what they are made of.
fn with_parts(folder: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let names = folder.parent().map(|install| files.names(install)).unwrap_or_default();
    let parts = PARTS.iter().filter(|part| names.iter().any(|name| name == *part));
    let mut all: Vec<PathBuf> = parts.filter_map(|part| Some(files.resolve(&folder.parent()?.join(part)))).collect();
    all.push(folder.to_owned());
    all
}
