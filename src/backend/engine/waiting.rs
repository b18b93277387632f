//! What an engine hears of that has nothing to do.

use super::inbox::Inbox;
use super::{Engine, forecast};
use crate::agent::Presence;
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
    if !attended || !engine.agent.wakes(&mailbox).await {
        return false;
    }
    if !forecast::confirmed(engine, inbox).await {
        // Nor is it to ask again for the next one.
        engine.agent.sleep();
        return false;
    }
    Box::pin(engine.run_turn(None, inbox)).await;
    true
}

/// `/tasks stop <id>`.
pub(super) async fn stop(engine: &mut Engine, args: &str) {
    let task = args.trim().strip_prefix("stop").filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim);
    match task {
        // Its end is told like that of any other.
        Some(task) if engine.agent.stop_task(task) => {}
        Some(task) => {
            engine.fail(format!("No command {task} is running in the background. `/tasks` lists them.")).await;
        }
        None => {
            engine.fail(format!("Unknown: `/tasks {args}`. `/tasks` lists commands, `/tasks stop b1` stops one.")).await
        }
    }
}
