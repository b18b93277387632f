//! What a compaction puts back from disk and session.

use std::path::PathBuf;

use super::Compaction;
use crate::agent::{Conversation, Grounds, Policy, Reminders, Settings};
use crate::compact::restore::{self, Found, Restored, Sources};
use crate::message::CallId;
use crate::permission::Behavior;
use crate::session::entry::Seq;
use crate::session::tasks::Task;
use crate::tools;

/// Most bytes of the output of one command in the background.
const SHOWN: u64 = 512;

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
        let sources = Sources {
            files,
            todos: context.todos(),
            plan: conversation.restored_plan(driver.limits().plan),
            skills,
            tasks: tasks(conversation, keep_from),
        };
        restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
    }
}

/// How tasks in the background are: those that run, with what they wrote last, then those of which the conversation was
/// told since it was last compacted, where that leaves it now. What it is owed, it is told anyway.
fn tasks(conversation: &Conversation, keep_from: Seq) -> Vec<String> {
    let (store, all) = (conversation.session.store(), &conversation.facts().tasks);
    let running = all.running().map(|Task { begun, .. }| {
        let path = store.task_output(&begun.task);
        let written = match tools::tail(&path, SHOWN) {
            Ok((0, _)) => "nothing is written yet".to_owned(),
            Ok((bytes, text)) => format!("{bytes} bytes until now, which end with:\n{}", text.trim_end()),
            Err(error) => format!("which cannot be read: {error}"),
        };
        format!("{}. Its output is in {}: {written}", begun.runs(), path.display())
    });
    let since = conversation.session.last_boundary().unwrap_or_default();
    let ended = all.iter().rev().filter(|task| task.told.is_some_and(|told| (since..keep_from).contains(&told)));
    let ended = ended.filter_map(|task| {
        Some(format!(
            "{}. Its output is in {}",
            task.ended.as_ref()?.line(),
            store.task_output(&task.begun.task).display()
        ))
    });
    running.chain(ended).collect()
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
