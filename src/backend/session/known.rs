//! What becomes of a file that goes by several names.

use std::collections::HashSet;
use std::path::PathBuf;

use super::changes::Change;
use super::entry::{Content, Version};

/// What several steps say of one file.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of which steps it was a version.
    pub(super) paths: HashSet<usize>,
    /// As commands found and left it, with the time.
    pub(super) versions: Vec<(u64, Version)>,
    /// What commands left, also as undo wrote it again.
    pub(super) left: Vec<Version>,
    /// When a command found it.
    pub(super) found: Option<u64>,
}

impl Known {
    /// What happened to the file itself, whatever its names are by now; none where it is what it was.
    pub(super) fn change(&self, path: PathBuf) -> Option<Change> {
        let (began, first) = self.versions.first()?;
        let (_, last) = self.versions.last()?;
        // Where its bits alone were changed, the content is what it was.
        let told =
            |(_, version): &&(u64, Version)| !matches!(version, Version::File { content: Content::Untouched, .. });
        let with = |version: &Version, of: Option<&(u64, Version)>| match (version, of) {
            (Version::File { mode, .. }, Some((_, Version::File { content, stamp, .. }))) => {
                Version::File { content: content.clone(), mode: *mode, stamp: *stamp }
            }
            (version, _) => version.clone(),
        };
        let before = with(first, self.versions.iter().find(told));
        let after = with(last, self.versions.iter().rfind(told));
        let same = before.stamp().zip(after.stamp()).is_some_and(|(was, is)| was.same_content(is));
        // One that a command made has only names that were made, too.
        let left = || self.left.iter().cloned().chain([after.clone()]).collect();
        (self.found == Some(*began) && !(same && before.mode() == after.mode()))
            .then(|| Change::new(path, before.clone(), left(), false))
    }
}
