//! The files that `@` offers: what the ignore files leave of the working directory, fuzzily ranked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};
use nucleo_matcher::Config;

use super::popup;
use crate::stdx::regular::has_plain_ignores;

/// Most entries that are kept of a folder tree.
const MOST: usize = 200_000;
/// Most paths that are offered.
const OFFERED: usize = 50;
/// How long a listing counts as current.
const FRESH: Duration = Duration::from_secs(5);

/// Lists and ranks the files below one folder. Clones share one listing.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
    listing: Arc<Mutex<Option<Listing>>>,
    /// The newest query; older ones that still wait are dropped.
    newest: Arc<AtomicU64>,
}

/// What stood below the folder when it was read.
#[derive(Debug)]
struct Listing {
    at: Instant,
    paths: Arc<Vec<String>>,
}

/// A query in its order among others.
#[derive(Debug, Clone, Copy)]
pub struct Turn(u64);

impl Files {
    pub fn new(root: PathBuf) -> Files {
        Files { root, listing: Arc::default(), newest: Arc::default() }
    }

    /// Takes the place of every query before it.
    pub fn turn(&self) -> Turn {
        Turn(self.newest.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The best paths for a query, folders with a `/` at their end; none when a newer query has come. Blocks while it
    /// reads the disk.
    pub fn find(&self, query: &str, turn: Turn, now: Instant) -> Option<Vec<String>> {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.newest.load(Ordering::Relaxed) != turn.0 {
            return None;
        }
        let fresh = listing.as_ref().filter(|listing| now.saturating_duration_since(listing.at) < FRESH);
        let paths = match fresh {
            Some(listing) => Arc::clone(&listing.paths),
            None => {
                let paths = Arc::new(list(&self.root));
                *listing = Some(Listing { at: now, paths: Arc::clone(&paths) });
                paths
            }
        };
        drop(listing);
        let order = popup::ranked(query, paths.iter().map(String::as_str), Config::DEFAULT.match_paths(), OFFERED);
        Some(order.into_iter().map(|at| paths[at].clone()).collect())
    }
}

fn list(root: &Path) -> Vec<String> {
    let mut walker = WalkBuilder::new(root);
    if !root.ancestors().all(has_plain_ignores) {
        walker.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
    let enters = |entry: &DirEntry| {
        entry.file_name() != ".git"
            && (!entry.file_type().is_some_and(|kind| kind.is_dir()) || has_plain_ignores(entry.path()))
    };
    let walk = walker.hidden(false).filter_entry(enters).build();
    let mut paths: Vec<String> = walk
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
            // A name that cannot be typed cannot be offered.
            let fits = !path.is_empty() && !path.contains(|c: char| c.is_control() || c == '"');
            let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            fits.then(|| if folder { path + "/" } else { path })
        })
        .take(MOST)
        .collect();
    paths.sort_by_cached_key(|path| (path.trim_end_matches('/').matches('/').count(), path.clone()));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_what_is_not_ignored_and_drops_stale_queries() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (".gitignore", "target\n"),
            (".git/config", ""),
            ("target/debug/main.rs", ""),
            ("src/main.rs", ""),
            ("src/日本.rs", ""),
            ("README.md", ""),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let files = Files::new(folder.path().to_owned());
        let now = Instant::now();
        let check = |query: &str, want: &[&str]| {
            let want: Vec<String> = want.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(files.find(query, files.turn(), now), Some(want), "{query}");
        };
        check("", &[".gitignore", "README.md", "src/", "src/main.rs", "src/日本.rs"]);
        check("mn", &["src/main.rs"]);
        check("日", &["src/日本.rs"]);
        let old = files.turn();
        files.turn();
        assert_eq!(files.find("x", old, now), None);
    }
}
