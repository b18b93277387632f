//! How far the agent may continue by itself, as commands in the background end: it could start another one each time that it
//! is told of an end, and nobody may be there to see it.

use tokio::time::Instant;

use super::super::Agent;
use super::super::mailbox::Mailbox;
use crate::protocol::{Event, TurnEnd};
use crate::session::entry::Seq;

/// How often in a row the agent continues because something ended that it had started without a prompt.
const MOST: u32 = 20;

/// What is said after a turn that has named its limit already.
const LIMIT: &str = "Your next prompt tells the agent what ended in the background. `continue` is enough.";

/// What was done since the user's last prompt.
#[derive(Debug, Default)]
pub(in crate::agent) struct Waking {
    /// Requests, against `max_turns`.
    pub(in crate::agent) requests: u32,
    /// Where the log was when it continued for the first time: what began before that, the prompt is behind.
    first: Option<Seq>,
    /// How often it continued because of what began after that.
    times: u32,
    held: Option<Held>,
    told: bool,
    /// The turn ended at its limit, and said so.
    limit: bool,
    /// Until when sub-agents in the background are waited for.
    pub(super) patience: Option<Instant>,
}

/// Why an end waits for the next prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The user stopped the agent, or something else ended its turn early.
    Stopped,
    Requests(u32),
    Times,
}

impl Held {
    fn text(self) -> String {
        let why = match self {
            Held::Stopped => "The agent was stopped, so".to_owned(),
            Held::Requests(most) => {
                format!("The agent has made its {most} model calls, those after background tasks included, so")
            }
            Held::Times => format!(
                "The agent has continued {MOST} times in a row because background tasks of its own ended, so now"
            ),
        };
        format!("{why} it waits for you: your next prompt tells it what ended. `continue` is enough.")
    }
}

impl Waking {
    /// The user said something.
    pub(in crate::agent) fn steered(&mut self) {
        *self = Waking { requests: self.requests, ..Waking::default() };
    }

    /// A turn has ended.
    pub(in crate::agent) fn after(&mut self, end: TurnEnd) {
        self.limit = end == TurnEnd::MaxTurns;
        // What failed may work the next time.
        if !matches!(end, TurnEnd::Done | TurnEnd::Failed) {
            self.held.get_or_insert(Held::Stopped);
        }
    }

    /// Whether the agent continues with what it is owed, of which the newest began at `newest`; the log is at `now`.
    fn may(&mut self, newest: Seq, now: Seq, most: Option<u32>) -> Result<(), Held> {
        let spent = most.filter(|most| self.requests >= *most).map(Held::Requests);
        if let Some(held) = spent.or(self.held) {
            return Err(held);
        }
        if newest >= *self.first.get_or_insert(now) {
            if self.times >= MOST {
                return Err(Held::Times);
            }
            self.times += 1;
        }
        Ok(())
    }
}

/// Whether the agent continues since it is owed how something ended; says why not, once.
pub(in crate::agent) async fn continues(agent: &mut Agent, most: Option<u32>, mailbox: &Mailbox) -> bool {
    let Some(newest) = agent.conversation.facts().tasks.newest_owed() else { return false };
    let now = agent.conversation.session.next_seq();
    let waking = &mut agent.tasks.waking;
    match waking.may(newest, now, most) {
        Ok(()) => true,
        Err(held) => {
            if !std::mem::replace(&mut waking.told, true) {
                let text = if waking.limit { LIMIT.to_owned() } else { held.text() };
                mailbox.emit(Event::Notice { text }).await;
            }
            false
        }
    }
}

/// Whether what the agent is owed wakes it while nothing else happens; says why not, once.
pub async fn wakes(agent: &mut Agent, mailbox: &Mailbox) -> bool {
    continues(agent, agent.settings.max_turns, mailbox).await
}

/// From now on ends wait for the next prompt.
pub fn hold(agent: &mut Agent) {
    agent.tasks.waking.held = Some(Held::Stopped);
}

/// The user interrupts while nothing is done, and commands in the background are to wake the agent: they do not. Says what
/// comes of it.
pub async fn interrupted(agent: &mut Agent, mailbox: &Mailbox) {
    let waking = &agent.tasks.waking;
    if waking.held.is_none() && !agent.tasks.board.is_empty() {
        hold(agent);
        agent.tasks.waking.told = true;
        mailbox.emit(Event::Notice { text: Held::Stopped.text() }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_prompt_started_does_not_count() {
        let mut waking = Waking::default();
        // A hundred commands of one prompt end one by one.
        assert!((0..100).all(|task| waking.may(task, 1000 + task, None).is_ok()));
        // What was started meanwhile does.
        assert!((0..MOST).all(|task| waking.may(1001, 2000 + Seq::from(task), None).is_ok()));
        assert_eq!(waking.may(1001, 3000, None), Err(Held::Times));
        assert_eq!(waking.may(5, 3000, None), Ok(()));
        waking.steered();
        assert_eq!(waking.may(3001, 4000, None), Ok(()));
    }

    #[test]
    fn how_a_turn_ended_counts() {
        for (end, want) in [
            (TurnEnd::Done, Ok(())),
            (TurnEnd::Failed, Ok(())),
            (TurnEnd::Interrupted, Err(Held::Stopped)),
            (TurnEnd::Refused, Err(Held::Stopped)),
            (TurnEnd::MaxTurns, Err(Held::Requests(3))),
        ] {
            let mut waking = Waking { requests: if end == TurnEnd::MaxTurns { 3 } else { 2 }, ..Waking::default() };
            waking.after(end);
            assert_eq!(waking.may(1, 2, Some(3)), want, "{end:?}");
        }
    }
}
