//! What a compaction puts back from disk and session.

use std::path::Path;

use crate::agent::{Agent, Reminders};
use crate::compact::restore::{self, Found, Restored, Sources};
use crate::message::CallId;
use crate::message::tokens::Load;
use crate::permission::Behavior;
use crate::session::entry::Seq;

/// Bytes of a file beyond which it cannot come under any limit in tokens that makes sense.
const BYTES_PER_TOKEN: u64 = 16;

/// Tokens that are put back if no message stays.
pub(super) fn most(agent: &Agent) -> u64 {
    restored(agent, Seq::MAX, &[]).tokens()
}

/// What is put back beside messages from `keep_from` on, of whose results these are archived.
pub(super) fn restored(agent: &Agent, keep_from: Seq, archived: &[CallId]) -> Restored {
    // Without reminders there are no attachments at all.
    if agent.settings.reminders == Reminders::Off {
        return Restored::default();
    }
    let (driver, context) = (&agent.compaction.driver, agent.conversation.context());
    // At most a third of what there is, or a short conversation would grow.
    let all: Load = context.shown().map(|shown| shown.load).sum();
    let counted = driver.used(context).saturating_sub(driver.meter.request(Load::default()));
    let budget = all.total().max(counted) / 3;
    let memory = &agent.settings.memory_names;
    let paths =
        restore::reads(context, keep_from, archived).into_iter().filter(|path| !restore::excluded(path, memory));
    let sources = Sources {
        files: paths
            .filter(|path| !is_plan(agent, path))
            .filter_map(|path| found(agent, &path))
            .take(driver.settings().restore.max_files)
            .collect(),
        todos: context.todos(),
        plan: agent.conversation.restored_plan(driver.limits().plan),
        skills: &agent.conversation.facts().invoked,
    };
    restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
}

fn is_plan(agent: &Agent, path: &Path) -> bool {
    agent.conversation.plan_file().is_some_and(|plan| plan == path)
}

/// The file as it is now; none where it is gone, no text, or may not be read without a question anymore.
fn found(agent: &Agent, path: &Path) -> Option<Found> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    if agent.policy.grounds(&agent.conversation).read(path).behavior != Behavior::Allow {
        return None;
    }
    let most = agent.compaction.driver.limits().file.saturating_mul(BYTES_PER_TOKEN);
    let text = match meta.len() <= most {
        true => Some(String::from_utf8(std::fs::read(path).ok()?).ok()?),
        false => None,
    };
    Some(Found { path: path.to_owned(), text })
}
