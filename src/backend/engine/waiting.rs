//! What an engine hears of that has nothing to do.

use super::inbox::Inbox;
use super::{Engine, forecast};
use crate::agent::{Board, Presence, next_news, note_news, waking};
use crate::hooks::Event as Hook;
use crate::protocol::{Event, Op};

/// What an engine without anything to do hears of.
pub(super) enum Next {
    Op(Op),
    /// Something in the background has ended.
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
            news = next_news(&mut engine.agent) => match note_news(&mut engine.agent, news, &mailbox).await {
                Ok(true) => return Next::Ended,
                // A sub-agent did something.
                Ok(false) => {}
                Err(error) => {
                    engine.fail(error).await;
                    return Next::Ended;
                }
            },
            () = &mut idle, if waits => {
                waits = false;
                engine.agent.notify("idle_prompt", "cocode is waiting for your input");
            }
        }
    }
}

/// Something in the background has ended while nothing was done: the model hears of it where somebody is there to see what
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

/// `/tasks stop <id>` and `/tasks tell <id> <message>`. An end is told like that of any other. What there is to say of it.
///
/// # Errors
/// What cannot be done, or is not understood.
pub(super) fn act(background: &Board, args: &str) -> Result<Option<String>, String> {
    let args = args.trim();
    let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let (task, words) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    match (verb, task, words.trim()) {
        ("stop", task, "") if !task.is_empty() => match background.stop_task(task) {
            true => Ok(None),
            false => Err(format!("Nothing called {task} is running. `/tasks` lists what is.")),
        },
        ("tell", task, words) if !words.is_empty() => match background.tell(task, words) {
            true => Ok(Some(format!("{task} reads your message at its next step."))),
            false => Err(format!("No agent called {task} is running. `/tasks` lists them.")),
        },
        _ => Err(format!(
            "Unknown: `/tasks {args}`. `/tasks` lists what runs, `/tasks stop b1` stops it, `/tasks tell a1 <message>` sends \
             an agent a message."
        )),
    }
}

/// The same between two turns.
pub(super) async fn acted(engine: &mut Engine, args: &str) {
    match act(&engine.look().agent.background, args) {
        Ok(Some(text)) => engine.mailbox.emit(Event::Notice { text }).await,
        Ok(None) => {}
        Err(problem) => engine.fail(problem).await,
    }
}
