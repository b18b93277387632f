//! What an engine hears of that has nothing to do.

use super::inbox::Inbox;
use super::{Engine, forecast};
use crate::agent::{Board, Presence, waking};
use crate::hooks::Event as Hook;
use crate::protocol::Op;

/// What an engine without anything to do hears of.
pub(super) enum Next {
    Op(Op),
    /// A command in the background has ended.
    Ended,
    Closed,
}

/// What there is to do next; hooks hear of it when it is long in coming. `worked`: the agent has done something that is
/// waited on.
pub(super) async fn next(engine: &mut Engine, inbox: &mut Inbox, worked: bool) -> Next {
    let mut waits = worked && engine.agent.hooking.hooks.listens(Hook::Notification);
    let idle = tokio::time::sleep(engine.idle);
    tokio::pin!(idle);
    loop {
        let mailbox = engine.mailbox.clone();
        tokio::select! {
            biased;
            op = inbox.next() => return op.map_or(Next::Closed, Next::Op),
            ended = engine.agent.task_ended(&mailbox) => {
                if let Err(error) = ended {
                    engine.fail(error).await;
                }
                return Next::Ended;
            }
            () = &mut idle, if waits => {
                waits = false;
                engine.agent.notify("idle_prompt", "cocode is waiting for your input");
            }
        }
    }
}

/// A command in the background has ended while nothing was done: the model hears of it where somebody is there to see what
/// it makes of it, else with the next prompt. Whether it did.
pub(super) async fn wake(engine: &mut Engine, inbox: &mut Inbox) -> bool {
    let mailbox = engine.mailbox.clone();
    let attended = engine.setup.presence == Presence::Attended && !engine.agent.conversation.session.read_only();
    if !attended || !waking::wakes(&mut engine.agent, &mailbox).await {
        return false;
    }
    if !forecast::confirmed(engine, inbox).await {
        // Nor is it to ask again for the next one.
        waking::hold(&mut engine.agent);
        return false;
    }
    Box::pin(engine.run_turn(None, inbox)).await;
    true
}

/// `/tasks stop <id>`. Its end is told like that of any other.
///
/// # Errors
/// What cannot be stopped, or is not understood.
pub(super) fn stop(background: &Board, args: &str) -> Result<(), String> {
    let task = args.trim().strip_prefix("stop").filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim);
    match task {
        Some(task) if background.stop_task(task) => Ok(()),
        Some(task) => Err(format!("No command {task} is running in the background. `/tasks` lists them.")),
        None => Err(format!("Unknown: `/tasks {args}`. `/tasks` lists commands, `/tasks stop b1` stops one.")),
    }
}

/// The same between two turns.
pub(super) async fn stopped(engine: &mut Engine, args: &str) {
    let stopped = stop(&engine.look().agent.background, args);
    if let Err(problem) = stopped {
        engine.fail(problem).await;
    }
}
