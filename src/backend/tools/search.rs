//! Walks a folder as ripgrep does: in parallel, past hidden and ignored files, until told to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::permission::{Access, Permit, Sight};
use crate::stdx::regular::has_plain_ignores;

use super::{Call, Context, Output, file};

/// Most threads of one search.
const THREADS: usize = 8;

/// Tells a search that nobody wants its result anymore.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the future that holds it goes away.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a search can begin there; nowhere is where the shell is.
pub(super) fn named(path: Option<&str>) -> Result<(), String> {
    path.filter(|path| !path.is_empty()).map_or(Ok(()), file::named)
}

/// What a search is called on the screen.
fn title(pattern: &str, path: Option<&str>) -> String {
    match path.filter(|path| !path.is_empty()) {
        Some(path) => file::one_line(&format!("{pattern} in {path}")),
        None => file::one_line(pattern),
    }
}

/// A search for a pattern in a place. One that is missing, or may not be read, is an error before `work` begins.
pub(super) fn call(
    (pattern, path): (&str, Option<&str>),
    root: PathBuf,
    work: impl FnOnce(&Path, &Sight, &Stop) -> Result<Output, String> + Send + Sync + 'static,
) -> Call {
    let access = Access::Search { root: root.clone() };
    Call::new(access, title(pattern, path), move |context| {
        run(context, move |permit, stop| {
            file::check_place(&root, permit)?;
            check_root(&root)?;
            work(&root, permit.sight(), &stop)
        })
    })
}

/// Runs a search off the async threads; a cancelled one answers as interrupted.
pub(super) async fn run(
    Context { permit, cancel, .. }: Context,
    work: impl FnOnce(&Permit, Stop) -> Result<Output, String> + Send + 'static,
) -> Output {
    let stop = Stop::default();
    let _guard = StopOnDrop(stop.clone());
    tokio::select! {
        biased;
        () = cancel.cancelled() => file::interrupted(),
        output = file::blocking(move || work(&permit, stop).unwrap_or_else(Output::error)) => output,
    }
}

/// A walker below `root` with ripgrep's usual filters.
pub(super) fn walker(root: &Path) -> WalkBuilder {
    let mut walker = WalkBuilder::new(root);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    walker.threads(threads.min(THREADS));
    // Ignore files also count in folders that are not repositories.
    walker.require_git(false);
    // The library reads them to their end: a link to a device, a pipe or a million patterns would be the last it reads.
    if !root.ancestors().all(has_plain_ignores) {
        walker.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
    walker.filter_entry(may_enter);
    walker
}

/// Whether a walk may look at the entry: neither git's own folder nor one whose ignore files nobody can read.
fn may_enter(entry: &DirEntry) -> bool {
    let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    entry.depth() == 0 || entry.file_name() != ".git" && (!folder || has_plain_ignores(entry.path()))
}

/// Calls a function made once per thread for every regular file below the walker's root that may be shown.
pub(super) fn files<'w, F>(walker: &WalkBuilder, sight: &'w Sight, stop: &'w Stop, mut each: impl FnMut() -> F)
where
    F: FnMut(&Path) + Send + 'w,
{
    walker.build_parallel().run(|| {
        let mut visit = each();
        Box::new(move |entry| {
            if stop.is_set() {
                return WalkState::Quit;
            }
            // Unreadable folders are passed over, as their parent's listing shows them anyway.
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
                && sight.shows(entry.path())
            {
                visit(entry.path());
            }
            WalkState::Continue
        })
    });
}

/// Sorts newest first, then by path.
pub(super) fn newest_first(paths: &mut Vec<PathBuf>) {
    let mut dated: Vec<(SystemTime, PathBuf)> = std::mem::take(paths)
        .into_iter()
        .map(|path| (path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH), path))
        .collect();
    dated.sort_by(|(one, path), (other, other_path)| other.cmp(one).then_with(|| path.cmp(other_path)));
    paths.extend(dated.into_iter().map(|(_, path)| path));
}

/// Checks the place where a search starts.
///
/// # Errors
/// A sentence for the model.
fn check_root(root: &Path) -> Result<(), String> {
    match std::fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        _ => file::open(root).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::permission::{Behavior, Mode, Source};
    use crate::tools::Toolbox;
    use crate::tools::fixture::Fixture;

    #[tokio::test]
    async fn what_the_rules_keep_back_is_not_found() {
        let mut fixture = Fixture::new();
        for name in ["a.txt", ".env", "secrets/key.txt", "asked/b.txt"] {
            fixture.file(name, "token\n");
        }
        for (behavior, rule) in
            [(Behavior::Deny, "Read(.env)"), (Behavior::Deny, "Read(/secrets/**)"), (Behavior::Ask, "Read(/asked/**)")]
        {
            fixture.rules.add(behavior, crate::tools::RULES.rule(rule).unwrap(), Source::User);
        }
        fixture.mode = Mode::Default;
        let toolbox = Toolbox::builtin();
        for (name, input, want) in [
            ("Grep", json!({"pattern": "token"}), "a.txt"),
            ("Grep", json!({"pattern": "token", "path": "asked"}), "asked/b.txt"),
            ("Glob", json!({"pattern": "**/{*.txt,.env}"}), "a.txt"),
            ("LS", json!({"path": "."}), "ROOT/\n  a.txt\n"),
        ] {
            let call = toolbox.get(name).unwrap().call(&input, &fixture.dirs);
            let output = fixture.run_call(name, call).await;
            assert_eq!(fixture.text(&output), want, "{name} {input}");
        }
    }

    /// The library that walks would read such a file to its end: here one that would hide the file.
    #[tokio::test]
    async fn ignore_files_that_are_too_large_count_for_nothing() {
        let mut fixture = Fixture::new();
        fixture.file("a.txt", "token\n");
        fixture.file("sub/b.txt", "token\n");
        fixture.file("sub/.gitignore", "c\n".repeat(200_000));
        let toolbox = Toolbox::builtin();
        for (ignore, want) in [
            ("a.txt\n".to_owned(), "No files match. Hidden and ignored files are skipped; LS lists them."),
            ("a.txt\n".repeat(50_000), "a.txt"),
        ] {
            fixture.file(".gitignore", &ignore);
            let input = json!({"pattern": "**/*.txt"});
            let call = toolbox.get("Glob").unwrap().call(&input, &fixture.dirs);
            let output = fixture.run_call("Glob", call).await;
            assert_eq!(fixture.text(&output), want);
        }
    }
}
