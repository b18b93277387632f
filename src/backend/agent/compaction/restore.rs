//! What a compaction puts back from disk and session.

use std::path::PathBuf;

use super::Compaction;
use crate::agent::{Conversation, Grounds, Policy, Reminders, Settings};
use crate::compact::restore::{self, Found, Restored, Sources};
use crate::message::CallId;
use crate::permission::Behavior;
use crate::session::entry::Seq;

/// Bytes of a file beyond which it cannot come under any limit in tokens that makes sense.
const BYTES_PER_TOKEN: u64 = 16;

impl Compaction {
    /// What is put back beside messages from `keep_from` on, of whose results these are archived, in `share` percent of
    /// its room.
    pub(super) fn restored(
        &self,
        (keep_from, archived, share): (Seq, &[CallId], u64),
        conversation: &Conversation,
        policy: &Policy,
        settings: &Settings,
    ) -> Restored {
        // Without reminders there are no attachments at all.
        if settings.reminders == Reminders::Off {
            return Restored::default();
        }
        let (driver, context) = (&self.driver, conversation.context());
        let budget = restore::budget(context, driver, share);
        let plan = conversation.plan_file();
        let most_bytes = driver.limits().file.saturating_mul(BYTES_PER_TOKEN);
        let skills = &conversation.facts().invoked;
        let files = restore::reads(context, keep_from, archived)
            .into_iter()
            .filter(|path| !restore::excluded(path, &settings.memory_names, skills) && plan.as_ref() != Some(path))
            .filter_map(|path| found(path, &policy.grounds(conversation), most_bytes))
            .take(driver.settings().restore.max_files)
            .collect();
        let sources =
            Sources { files, todos: context.todos(), plan: conversation.restored_plan(driver.limits().plan), skills };
        restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
    }
}

/// The file as it is now; none where it is gone, no text, or may not be read without a question anymore.
fn found(path: PathBuf, grounds: &Grounds<'_>, most_bytes: u64) -> Option<Found> {
    let meta = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
    if grounds.read(&path).behavior != Behavior::Allow {
        return None;
    }
    let text = match meta.len() <= most_bytes {
        true => Some(String::from_utf8(std::fs::read(&path).ok()?).ok()?),
        false => None,
    };
    Some(Found { path, text })
}
