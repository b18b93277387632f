//! What a kill left beside the files that were being changed.

use std::fs;

use super::changes::Temporary;
use super::session::Session;
use crate::message::BlobId;
use crate::stdx::hash::sha256_hex;

impl Session {
    /// Removes the temporary files of changes that were under way when the program was killed. One that holds what
    /// somebody else saved at that moment stays, and is named.
    pub(super) fn remove_leftovers(&self) -> Vec<String> {
        let left = self.changes.temporaries().iter().filter(|temporary| !self.remove_leftover(temporary));
        let told = |temporary: &Temporary| {
            format!(
                "{} contains what someone saved while cocode was being killed; it was left there",
                temporary.path.display()
            )
        };
        left.map(told).collect()
    }

    /// False: it is not ours.
    fn remove_leftover(&self, Temporary { path, new }: &Temporary) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return true };
        let Some(found) = Some(path).filter(|_| meta.is_file()).and_then(|path| fs::read(path).ok()) else {
            return false;
        };
        let new = new.as_ref().and_then(|new| self.store().sound_blob(new));
        let ours = found.is_empty()
            || new.is_some_and(|new| new.starts_with(&found))
            || self.store().sound_blob(&BlobId(sha256_hex(&found))).is_some();
        ours && fs::remove_file(path).is_ok()
    }
}
