//! Events that hooks hear of beside calls and turns: what they refuse, what was denied, read, or put on the todo list.

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::hooking::told;
use super::mailbox::Mailbox;
use crate::hooks::{self, Event as Hook, Occasion};
use crate::message::{Effect, Todo, TodoStatus, ToolCall, ToolResult};
use crate::permission::{Access, Decision};
use crate::session;

/// Lets hooks refuse something that the user does beside a turn, and tells why they do.
///
/// # Errors
/// The log cannot be written.
pub async fn refused(
    agent: &mut Agent,
    occasion: Occasion,
    mailbox: &Mailbox,
) -> Result<Option<String>, session::Error> {
    let event = occasion.event;
    let outcome = agent.fire(occasion, mailbox, &CancellationToken::new()).await?.unwrap_or_default();
    // Nobody is asked here: what a hook wants to be asked about is not done.
    let verdict = outcome.verdict.filter(|verdict| verdict.decision != hooks::Decision::Allow);
    let reason = verdict.map(|verdict| verdict.reason).or(outcome.block).or(outcome.stop);
    Ok(reason.map(|reason| match reason.as_str() {
        "" => format!("a {event} hook does not allow it"),
        reason => format!("a {event} hook does not allow it: {reason}"),
    }))
}

/// Tells hooks of something that they cannot change.
pub fn beside(agent: &mut Agent, occasion: Occasion) {
    if agent.hooking.hooks.listens(occasion.event) {
        let (place, settings) = agent.hooks_at();
        agent.hooking.run_beside(occasion, place, settings);
    }
}

/// Tells hooks that rules or the mode denied a call.
pub(super) async fn denied(
    agent: &mut Agent,
    (call, access): (&ToolCall, &Access),
    decision: &Decision,
    (mailbox, cancel): (&Mailbox, &CancellationToken),
) -> Result<(), session::Error> {
    if !agent.hooking.hooks.listens(Hook::PermissionDenied) {
        return Ok(());
    }
    let conditions = agent.hooking.hooks.conditions(Hook::PermissionDenied);
    let meets = agent.policy.grounds(&agent.conversation).met(&call.name, access, conditions);
    let reason = decision.reasons.first().map_or("", String::as_str);
    let occasion = Occasion::permission_denied(&call.name, &call.input, call.id.as_str(), reason).meeting(meets);
    if let Some(outcome) = agent.fire(occasion, mailbox, cancel).await? {
        let added = outcome.context.iter().map(|text| told(Hook::PermissionDenied, text));
        agent.hooking.beside_calls.extend(added);
    }
    Ok(())
}

/// Tells hooks of the memory files that the model was given since they were last told.
pub(super) fn instructions(agent: &mut Agent) {
    let loaded = std::mem::take(&mut agent.conversation.loaded);
    if agent.hooking.worker.is_some() || !agent.hooking.hooks.listens(Hook::InstructionsLoaded) {
        return;
    }
    for (file, reason) in loaded {
        let kind = match file.file_name().is_some_and(|name| name.to_string_lossy().contains(".local.")) {
            _ if file.starts_with(&agent.policy.places.cocode_home) => "User",
            true => "Local",
            false => "Project",
        };
        beside(agent, Occasion::instructions_loaded(&file, kind, reason));
    }
}

/// The todo list as it is before a result that changes it; None where no hook wants to know.
pub(super) fn todos_before(agent: &Agent, result: &ToolResult) -> Option<Vec<Todo>> {
    let listens = [Hook::TaskCreated, Hook::TaskCompleted].iter().any(|event| agent.hooking.hooks.listens(*event));
    let changes = || result.effects.iter().any(|effect| matches!(effect, Effect::Todos { .. }));
    (listens && changes()).then(|| agent.conversation.context().todos().to_vec())
}

/// Tells hooks what became of the todo list. What they object to is for the model.
pub(super) async fn todos(
    agent: &mut Agent,
    before: &[Todo],
    mailbox: &Mailbox,
    cancel: &CancellationToken,
) -> Result<(), session::Error> {
    let now = agent.conversation.context().todos().to_vec();
    for (at, todo) in now.iter().enumerate() {
        let known = before.iter().find(|known| known.content == todo.content);
        let id = (at + 1).to_string();
        let done = todo.status == TodoStatus::Completed && known.is_none_or(|known| known.status != todo.status);
        let created = known.is_none().then(|| Occasion::task_created(&id, &todo.content, &todo.active_form));
        let completed = done.then(|| Occasion::task_completed(&id, &todo.content, &todo.active_form));
        for occasion in created.into_iter().chain(completed) {
            let event = occasion.event;
            let Some(outcome) = agent.fire(occasion, mailbox, cancel).await? else { return Ok(()) };
            for text in outcome.block.into_iter().chain(outcome.context) {
                let text = format!("About the todo {:?}:\n\n{text}", todo.content);
                agent.hooking.beside_calls.push(told(event, &text));
            }
        }
    }
    Ok(())
}
