//! How what commands change is kept for undo: what is said of it before they run, and noted once they have ended.

use std::path::Path;

use super::call::{Done, Permitted};
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::permission::{Access, CommandLine};
use crate::sandbox::Sandbox;
use crate::session;
use crate::stdx::programs;
use crate::tools::{After, Undo, Undoing, Unrecordable};

/// Makes a call undoable before it happens.
///
/// # Errors
/// As `Conversation::announce`; the call must not run then.
pub(super) async fn announce(agent: &mut Agent, call: &mut Permitted) -> Result<(), session::Error> {
    call.undoing = undoing(call, agent.settings.tools.undo, &agent.policy.sandbox).await;
    agent.conversation.announce(call.change()).await
}

/// Notes what a command has changed.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn note(agent: &mut Agent, done: &mut Done, mailbox: &Mailbox) -> Result<(), session::Error> {
    let Some(at) = done.after.iter().position(|after| matches!(after, After::Changed(_))) else { return Ok(()) };
    let After::Changed(changed) = done.after.remove(at) else { return Ok(()) };
    done.changed = Some(changed.finished.clone());
    agent.conversation.note_changed(changed, agent.settings.tools.undo, mailbox).await?;
    Ok(())
}

/// How what a call changes is kept.
async fn undoing(call: &Permitted, undo: Option<Undo>, sandbox: &Sandbox) -> Undoing {
    let Access::Shell { command, .. } = &call.ready.access else { return Undoing::Off };
    if undo.is_none() || call.permit.reads() {
        return Undoing::Off;
    }
    sandbox.probe().await;
    let why = match sandbox.records() {
        true if !gains(command) => return Undoing::Recorded(uuid::Uuid::now_v7().simple().to_string()),
        true => Unrecordable::Privileged,
        false => Unrecordable::Here,
    };
    // Two looks far apart cannot tell what a command changed from what others did meanwhile.
    if call.ready.work.is_background() { Undoing::Off } else { Undoing::Compared(why) }
}

/// Whether a line starts a program that runs with more rights than its user has: under a record it would not get them. Root
/// gains nothing.
fn gains(command: &CommandLine) -> bool {
    let file = |name: &String| if name.contains('/') { Ok(Path::new(name).to_owned()) } else { programs::own(name) };
    !rustix::process::geteuid().is_root()
        && command.started().iter().filter_map(|name| file(name).ok()).any(|file| programs::gains(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_gain_privileges() {
        if rustix::process::geteuid().is_root() {
            return;
        }
        for (line, want) in [("su -c id", true), ("echo su", false), ("env X=1 su", true), ("ls; true && su", true)] {
            assert_eq!(gains(&line.into()), want, "{line}");
        }
    }
}
