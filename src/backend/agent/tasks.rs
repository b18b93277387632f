//! Commands and sub-agents in the background: each runs in a task that its agent owns until it has ended. How it ended is in
//! the log at once, and is told to the model by the next request, in the words of a message that counts as the telling.

pub mod board;
mod outlet;
pub mod waking;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::board::{Board, Figures};
pub(super) use self::outlet::Outlet;
use super::mailbox::Mailbox;
use super::parent_child::Word;
use super::{Agent, Grounds, Presence, dispatch};
use crate::message::{Attachment, Effect, Message};
use crate::permission::{Access, Behavior};
use crate::protocol::{Event, Item, Question};
use crate::sandbox::proxy::{Contact, Verdict};
use crate::session;
use crate::session::entry::{Begun, Ended, EntryKind, Seq, Status};
use crate::session::recorded::Finished;
use crate::tools::background::{Background, Shell, State};
use crate::tools::{self, AskFuture, Changed, Host, SearchFuture, VerdictFuture};
use tokio_util::sync::CancellationToken;

/// Most bytes of output that the model is shown with the end of a command.
const SHOWN: u64 = 2048;
/// How long a turn waits for sub-agents in the background where nobody is there who could wait for them.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What one agent runs now.
pub(super) struct Tasks {
    pub(super) board: Board,
    work: JoinSet<(Ended, Option<Changed>)>,
    /// What sub-agents have to say.
    words: (mpsc::UnboundedSender<Word>, mpsc::UnboundedReceiver<Word>),
    pub(super) waking: waking::Waking,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let (work, words) = (JoinSet::new(), mpsc::unbounded_channel());
        Tasks { board: Board::default(), work, words, waking: waking::Waking::default() }
    }
}

/// What an agent hears of those that run.
pub struct News(Heard);

enum Heard {
    Word(Word),
    Over(Over),
}

/// One that has ended; calls that wait for it hear of it once that is in the log.
struct Over {
    ended: Ended,
    changed: Option<Changed>,
    tell: watch::Sender<Option<Ended>>,
}

impl Tasks {
    fn begin(&mut self, background: Background) {
        let Background { begun, cancel, work, .. } = background;
        let record = begun.record.clone();
        let why = Some("cocode crashed while it was running".to_owned());
        let crashed = Ended { why, ..Ended::of(&begun, Status::Failed) };
        self.board.add(begun, cancel);
        self.work.spawn(async move {
            let unseen = || Finished::unseen("cocode crashed while it was running");
            let changed = record.map(|record| Changed { record: Some(record), finished: unseen() });
            AssertUnwindSafe(work).catch_unwind().await.unwrap_or((crashed, changed))
        });
    }

    /// The next that is heard of those that run; never where none does. What one said comes before its end. May be dropped
    /// while it waits.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let joined = tokio::select! {
                biased;
                Some(word) = self.words.1.recv() => return News(Heard::Word(word)),
                Some(joined) = self.work.join_next() => joined,
                else => std::future::pending().await,
            };
            if let Ok((mut ended, changed)) = joined
                && let Some(tell) = self.board.over(&mut ended)
            {
                return News(Heard::Over(Over { ended, changed, tell }));
            }
        }
    }

    /// The next word of a sub-agent. Ends wait meanwhile.
    pub(super) async fn said(&mut self) -> Word {
        match self.words.1.recv().await {
            Some(word) => word,
            // Its other end is here, too.
            None => std::future::pending().await,
        }
    }

    /// Where sub-agents say what they have to say.
    pub(super) fn words(&self) -> mpsc::UnboundedSender<Word> {
        self.words.0.clone()
    }

    /// As front ends show them.
    fn shown(&self, ended: Option<Ended>) -> Event {
        Event::Background { running: self.board.all(), ended }
    }
}

/// A task on its way to its agent, which says when it is in the log.
pub(super) struct Handed {
    background: Background,
    taken: oneshot::Sender<Result<(), String>>,
}

/// What the calls of one round have of it.
pub(super) struct Door {
    hand: mpsc::UnboundedSender<Handed>,
    pub(super) shells: Vec<Shell>,
    pub(super) apart: Apart,
}

impl Door {
    /// Hands a task over.
    ///
    /// # Errors
    /// Why it was not taken.
    pub(super) async fn hand_over(&self, background: Background) -> Result<(), String> {
        let gone = || "its turn was dropped".to_owned();
        let (taken, answer) = oneshot::channel();
        self.hand.send(Handed { background, taken }).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Opens the door of a round, and says where tasks arrive.
pub(super) fn door(agent: &Agent) -> (Door, mpsc::UnboundedReceiver<Handed>) {
    let (hand, handed) = mpsc::unbounded_channel();
    let store = agent.conversation.session.store();
    let shell = |task: &session::tasks::Task| {
        let state = match (&task.ended, agent.tasks.board.stopper(&task.begun.task)) {
            (Some(ended), _) => State::Ended(ended.clone()),
            (None, Some(stopper)) => State::Running(stopper),
            // Not one of ours, as in a session that is only looked at.
            (None, None) => return None,
        };
        Some(Shell { begun: task.begun.clone(), output: store.task_output(&task.begun.task), state })
    };
    let shells = agent.conversation.facts().tasks.iter().filter_map(shell).collect();
    let grounds = agent.policy.grounds(&agent.conversation);
    let grounds = Grounds { rules: std::borrow::Cow::Owned(grounds.rules.into_owned()), ..grounds };
    (Door { hand, shells, apart: Apart(Arc::new(grounds)) }, handed)
}

/// The host of a command in the background: the rules as they were decide, and nobody is asked.
#[derive(Clone)]
pub(super) struct Apart(Arc<Grounds<'static>>);

impl Host for Apart {
    fn ask(&self, _question: Question) -> AskFuture<'_> {
        Box::pin(async { None })
    }

    fn connects(&self, _call: &str, _command: &str, contact: Contact) -> VerdictFuture {
        let decision = self.0.decide(tools::BASH, &Access::Connect(contact.clone()));
        let verdict = match decision.behavior {
            Behavior::Allow => Verdict::Open,
            Behavior::Deny => {
                let why = decision.reasons.first().map_or("rules", String::as_str);
                Verdict::Closed(format!("{contact} is denied: {why}"))
            }
            Behavior::Ask => {
                let rule = decision.suggestions.first().map(|rule| format!(": the rule {rule} would allow it"));
                let rule = rule.unwrap_or_default();
                Verdict::Closed(format!("nobody is asked about {contact} for a command in the background{rule}"))
            }
        };
        Box::pin(async { verdict })
    }

    fn web_search<'a>(&'a self, _: &'a str, _: &'a [String], _: &'a [String]) -> SearchFuture<'a> {
        Box::pin(async { Err("commands do not search the web".to_owned()) })
    }
}

/// Takes a task over: first the log knows of it.
pub(super) async fn take(agent: &mut Agent, Handed { background, taken }: Handed, mailbox: &Mailbox) {
    let entry = EntryKind::TaskBegun(background.begun.clone());
    // Dropped, it ends.
    let done = agent.conversation.append(entry).map(|_| agent.tasks.begin(background));
    mailbox.emit(agent.tasks.shown(None)).await;
    // The call may have been cancelled meanwhile: it is told of all the same.
    let _ = taken.send(done.map_err(|error| error.to_string()));
}

/// The next that is heard of what runs. May be dropped while it waits.
pub async fn next(agent: &mut Agent) -> News {
    agent.tasks.next().await
}

/// Does what a sub-agent says, or logs that one has ended and shows it. Whether one has.
///
/// # Errors
/// The log cannot be written.
pub async fn note(agent: &mut Agent, News(heard): News, mailbox: &Mailbox) -> Result<bool, session::Error> {
    let Over { ended, changed, tell } = match heard {
        Heard::Word(word) => return dispatch::take_word(agent, word, mailbox).await.map(|()| false),
        Heard::Over(over) => over,
    };
    if let Some(changed) = changed {
        agent.conversation.note_changed(changed, agent.settings.tools.undo, mailbox).await?;
    }
    agent.conversation.append(EntryKind::TaskEnded(ended.clone()))?;
    mailbox.emit(Event::Item(Item::Note { text: ended.line() })).await;
    mailbox.emit(agent.tasks.shown(Some(ended.clone()))).await;
    tell.send_replace(Some(ended));
    Ok(true)
}

/// Logs those that have ended meanwhile, and does what sub-agents have said.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn collect(agent: &mut Agent, mailbox: &Mailbox) -> Result<(), session::Error> {
    while let Some(news) = agent.tasks.next().now_or_never() {
        note(agent, news, mailbox).await?;
    }
    Ok(())
}

/// Does what sub-agents have said until now.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn hear(agent: &mut Agent, mailbox: &Mailbox) -> Result<(), session::Error> {
    while let Some(word) = agent.tasks.said().now_or_never() {
        dispatch::take_word(agent, word, mailbox).await?;
    }
    Ok(())
}

/// Waits for something, and does meanwhile what sub-agents in the background say: they wait for that.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn beside<T>(
    agent: &mut Agent,
    mailbox: &Mailbox,
    work: impl Future<Output = T>,
) -> Result<T, session::Error> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            word = agent.tasks.said() => dispatch::take_word(agent, word, mailbox).await?,
        }
    }
}

/// Before a turn ends: logs what has ended. Where nobody is there who could come back to them, sub-agents in the background
/// are waited for, since their reports are what the turn was for.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn settle(
    agent: &mut Agent,
    mailbox: &Mailbox,
    cancel: &CancellationToken,
) -> Result<(), session::Error> {
    collect(agent, mailbox).await?;
    if agent.settings.presence == Presence::Attended || agent.conversation.above.is_some() {
        return Ok(());
    }
    let until = *agent.tasks.waking.patience.get_or_insert_with(|| Instant::now() + PATIENCE);
    while agent.tasks.board.has_agents()
        && agent.conversation.facts().tasks.newest_owed().is_none()
        && !mailbox.has_steers()
    {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            () = mailbox.changed() => agent.take_mode(mailbox).await?,
            news = agent.tasks.next() => drop(note(agent, news, mailbox).await?),
            () = tokio::time::sleep_until(until) => break,
        }
    }
    Ok(())
}

/// Tells the model how those ended of which it has not been told. True if there were any.
///
/// # Errors
/// The log cannot be written.
pub(super) async fn tell(agent: &mut Agent, mailbox: &Mailbox) -> Result<bool, session::Error> {
    collect(agent, mailbox).await?;
    let owed: Vec<Ended> = agent.conversation.facts().tasks.owed().cloned().collect();
    for ended in &owed {
        let path = agent.conversation.session.store().task_output(&ended.task);
        let output = match (&ended.report, tools::tail(&path, SHOWN)) {
            (Some(report), _) => {
                format!("What it did is in {}. Its report:\n{}", path.display(), report.text)
            }
            (None, written) => match written {
                Ok((0, _)) => "It wrote nothing.".to_owned(),
                Ok((bytes, text)) if bytes <= SHOWN => format!("Its output, also in {}:\n{text}", path.display()),
                Ok((bytes, text)) => {
                    format!("Its output is in {} ({bytes} bytes), which ends with:\n{text}", path.display())
                }
                Err(error) => format!("Its output in {} cannot be read: {error}", path.display()),
            },
        };
        let message = Message::attachment(Attachment::Task, &format!("{}. {output}", ended.line()));
        // One line of the log both tells it and says that it was told.
        let effects = vec![Effect::Told { task: ended.task.clone() }];
        agent.conversation.push(Message { effects, ..message }, mailbox).await?;
    }
    Ok(!owed.is_empty())
}

/// What a report says of those that end with its agent.
pub(super) fn names(agent: &Agent) -> String {
    let name = |begun: Begun| format!("{} ({})", begun.task, begun.title());
    let names: Vec<String> = agent.tasks.board.all().into_iter().map(name).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("\n\nStopped with the agent, since it had left them running: {}", names.join(", ")),
    }
}

/// Ends all, and waits until each has.
///
/// # Errors
/// The log cannot be written; then they end all the same.
pub(super) async fn end(agent: &mut Agent, by: &'static str, mailbox: &Mailbox) -> Result<(), session::Error> {
    end_those(agent, by, |_| true, mailbox).await
}

/// Ends those that began from an entry on: the conversation is about to go back to before them, and what they changed is
/// known only once they have ended.
///
/// # Errors
/// As `end`.
pub(super) async fn end_since(agent: &mut Agent, to: Seq, mailbox: &Mailbox) -> Result<(), session::Error> {
    let since = agent.conversation.facts().tasks.running().filter(|task| task.at >= to);
    let since: Vec<String> = since.map(|task| task.begun.task.clone()).collect();
    end_those(agent, "the conversation went back to before it", |begun| since.contains(&begun.task), mailbox).await
}

async fn end_those(
    agent: &mut Agent,
    by: &'static str,
    which: impl Fn(&Begun) -> bool,
    mailbox: &Mailbox,
) -> Result<(), session::Error> {
    agent.tasks.board.stop(by, &which);
    let mut noted = Ok(());
    while agent.tasks.board.all().iter().any(&which) {
        let news = agent.tasks.next().await;
        if noted.is_ok() {
            noted = note(agent, news, mailbox).await.map(drop);
        }
    }
    noted
}
