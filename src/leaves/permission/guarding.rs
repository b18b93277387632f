//! What a line must not change that runs without a person's own yes: what no edit changes unasked either, held by the kernel.

use std::path::{Path, PathBuf};

use super::Behavior;
use super::decide::Query;
use super::files::Files;
use super::places::TOOLS;
use super::vocabulary::Matches;
use crate::sandbox::guard::OF_GIT;
use crate::sandbox::{Guard, Guarded};

/// The guard of such a line.
pub(super) fn guard(query: &Query, cwd: &Path, files: &dyn Files) -> Guard {
    let places = query.places;
    let roots: Vec<PathBuf> = places.workspace().map(|root| files.resolve(root)).collect();
    let homes: Vec<PathBuf> = places.home.iter().map(|home| files.resolve(home)).collect();
    // A project may lie among our own files: there it is one like any other.
    let apart = |folder: &PathBuf| !roots.iter().any(|root| root.starts_with(folder));
    let own = places.own.iter().chain([&places.cocode_home]).filter(|own| !own.as_os_str().is_empty());
    let own = own.map(|own| files.resolve(own)).chain(KERNEL.map(PathBuf::from));
    let mut paths: Vec<PathBuf> = own.filter(apart).collect();
    // Wherever git obeys something for the workspace: above it, in another repository, in a folder that it names.
    let elsewhere = (!roots.iter().any(|root| root == cwd)).then_some(cwd);
    for folder in roots.iter().map(PathBuf::as_path).chain(elsewhere) {
        let repositories = files.git_reads(folder, places.git_user()).into_iter();
        for repository in repositories.filter(|folder| files.is_file(&folder.join("HEAD"))) {
            paths.extend(OF_GIT.iter().map(|name| repository.join(name)));
        }
        let obeyed = files.git_obeys(folder, places.git_user()).into_iter().map(|path| files.resolve(&path));
        paths.extend(obeyed.filter(apart));
    }
    // What is run by its name, and what makes an environment of the folder above.
    let project = |folder: &Path| {
        roots.iter().any(|root| folder.starts_with(root) && !homes.iter().any(|home| home.starts_with(root)))
    };
    let at_home = |folder: &Path| homes.iter().any(|home| folder.starts_with(home)) && !project(folder);
    for folder in &places.programs {
        let real = files.resolve(folder);
        if at_home(&real) && holds_programs(&real) && !is_of_packages(&real, files) {
            paths.extend(ENVIRONMENT.map(|mark| real.with_file_name(mark)));
            paths.extend([folder.clone(), real]);
        }
    }
    // Where a name at home is a link, what it leads to is obeyed as well.
    for home in &homes {
        let named = Guard::names_at_home().map(|name| home.join(name));
        paths.extend(named.filter_map(|path| Some(files.resolve(&path)).filter(|real| *real != path && apart(real))));
    }
    paths.sort();
    paths.dedup();
    // Packages at home bring such files along, too, if the session was started there.
    let tools = homes.iter().flat_map(|home| TOOLS.split_ascii_whitespace().map(|tool| home.join(tool)));
    let tools: Vec<PathBuf> = tools.filter(|tool| roots.iter().any(|root| tool.starts_with(root))).collect();
    let mut guard = Guard { paths, roots, homes, ..Guard::default() };
    let granted = granted(query, &guard, files);
    guard.free = tools.into_iter().filter(|tool| guard.says(tool) == Guarded::Free).chain(granted).collect();
    guard
}

/// What the kernel runs or obeys, and our own settings for all users.
const KERNEL: [&str; 4] = ["/etc/cocode", "/proc/sys", "/proc/sysrq-trigger", "/sys"];

/// What says of a folder that it is an environment of Python's or conda's.
const ENVIRONMENT: [&str; 2] = ["pyvenv.cfg", "conda-meta"];

/// Whether the programs in the folder are those of an environment: they come and go with packages.
fn is_of_packages(programs: &Path, files: &dyn Files) -> bool {
    files.is_file(&programs.with_file_name("pyvenv.cfg"))
        || files.is_file(&programs.with_file_name("conda-meta/history"))
}

/// Whether the folder is for programs: others in `PATH` hold much else, such as the packages of pnpm.
fn holds_programs(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| ["bin", "sbin", "shims"].iter().any(|known| name == *known))
}

/// What rules name that let it be edited: one that lets a whole project be edited says nothing of what is protected in it.
fn granted(query: &Query, guard: &Guard, files: &dyn Files) -> Vec<PathBuf> {
    let editing = query.vocabulary.tool(Matches::Editing);
    let rules = query.entries(Behavior::Allow).filter(|entry| entry.rule.governs(editing));
    let starts = rules.flat_map(|entry| entry.rule.starts(query.places)).filter(|(_, whole)| *whole);
    let starts = starts.map(|(start, _)| files.resolve(&start)).filter(|start| guard.says(start) != Guarded::Free);
    // Git writes another file first, which takes its place.
    starts.flat_map(|start| [PathBuf::from(format!("{}.lock", start.display())), start]).collect()
}
