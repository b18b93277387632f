//! Where the engine's op loop and the running turn meet: questions and answers, queued prompts, mode changes, interrupts.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decided;
use super::skill_runs::Invocation;
use crate::message::typed;
use crate::permission::{Mode, Source};
use crate::protocol::{Answer, Ask, AskId, Asker, BETWEEN, Delivery, Event, Op, Question, QueueId, Queued};
use crate::session::entry::Decided;
use crate::stdx::{outside, text};
use crate::thinking::{Level, Override};

/// A prompt on its way to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    pub attachments: Vec<PathBuf>,
    /// The command or skill to run in its place: `text` is how it was typed.
    pub skill: Option<Invocation>,
    /// The line of a shell to run in its place, after a `!`: `text` is how it was typed.
    pub shell: Option<String>,
    /// How hard its turn is thought about, where the caller says so.
    pub thinking: Option<Override>,
    /// Bytes of the text that nobody typed: a paste, piped input.
    pub data: Vec<Range<usize>>,
}

impl Prompt {
    /// A prompt that is nothing but its text.
    pub fn new(text: impl Into<String>) -> Prompt {
        Prompt {
            text: text.into(),
            attachments: Vec::new(),
            skill: None,
            shell: None,
            thinking: None,
            data: Vec::new(),
        }
    }

    /// Adds what nobody typed: the model reads it, and nothing in it is a word to us.
    pub fn with_data(mut self, data: &str) -> Prompt {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        let at = self.text.len();
        self.text.push_str(data);
        self.data.push(at..self.text.len());
        self
    }

    /// What somebody typed of it.
    pub fn typed(&self) -> String {
        typed(&self.text, &self.data, 0)
    }
}

/// A question that is open, until this is dropped.
struct OpenAsk<'a> {
    mailbox: &'a Mailbox,
    id: AskId,
    /// Who asked has waited until the end, and tells it.
    settled: bool,
}

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        let mut state = self.mailbox.state();
        state.asks.remove(&self.id);
        match state.asking {
            Some((since, open @ 2..)) => state.asking = Some((since, open - 1)),
            Some((since, _)) => {
                state.waited += since.elapsed();
                state.asking = None;
            }
            None => {}
        }
        drop(state);
        if !self.settled {
            // Nobody waits for the answer any longer. A front end that is so far behind closes it with the turn.
            let _ = self.mailbox.events.try_send(Event::AskClosed { id: self.id });
        }
    }
}

/// Shared by the op loop, the turn and its calls; the lock is never held over an await.
#[derive(Clone)]
pub struct Mailbox {
    events: mpsc::Sender<Event>,
    /// The user's home folder, `~` in what people read.
    home: Option<PathBuf>,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    ids: u64,
    asks: HashMap<AskId, oneshot::Sender<Answer>>,
    calls: HashMap<AskId, oneshot::Sender<outside::Answer>>,
    queue: Vec<(QueueId, Prompt, Delivery)>,
    mode: Option<Mode>,
    /// A choice that waits; the inner none takes one back.
    thinking: Option<Option<Level>>,
    /// Rules that were granted to another agent of the session.
    granted: Vec<(String, Source)>,
    cancel: Option<CancellationToken>,
    /// Lets those leave for the background that are waited for now.
    leave: CancellationToken,
    /// Since when questions have been open without a gap, and how many are.
    asking: Option<(Instant, usize)>,
    /// How long a person was waited for.
    waited: Duration,
    /// What was decided and is in no log yet.
    decided: Vec<Decided>,
    /// What the turn under way is to answer.
    prompt: Option<String>,
}

impl Mailbox {
    pub fn new(events: mpsc::Sender<Event>) -> Mailbox {
        Mailbox { events, home: None, state: Arc::default(), changed: Arc::default() }
    }

    /// With the home folder of the user who reads what it tells.
    pub fn at_home(self, home: Option<PathBuf>) -> Mailbox {
        Mailbox { home, ..self }
    }

    /// A mailbox that nobody opens: events go nowhere, questions are not answered.
    pub(super) fn unattended() -> Mailbox {
        Mailbox::new(mpsc::channel(1).0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can be left half done by a panic: every change is one assignment or one push.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the front ends; waits while they are behind. A front end that is gone is not an error.
    pub async fn emit(&self, event: Event) {
        let tilde = |text: &str| text::tilde(text, self.home.as_deref());
        let event = match event {
            Event::Error { text, restore } => Event::Error { text: tilde(&text), restore },
            Event::Notice { text } => Event::Notice { text: tilde(&text) },
            event => event,
        };
        let _ = self.events.send(event).await;
    }

    /// Asks a person and waits for the answer. None when cancelled.
    pub async fn ask(&self, question: Question, cancel: &CancellationToken) -> Option<Answer> {
        self.ask_as(None, question, cancel).await
    }

    /// Asks in the name of a sub-agent.
    pub async fn ask_as(&self, asker: Option<Asker>, question: Question, cancel: &CancellationToken) -> Option<Answer> {
        if cancel.is_cancelled() {
            return None;
        }
        let (send, receive) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.ids += 1;
            let id = AskId(state.ids);
            state.asks.insert(id, send);
            let (since, open) = state.asking.unwrap_or((Instant::now(), 0));
            state.asking = Some((since, open + 1));
            id
        };
        let mut open = OpenAsk { mailbox: self, id, settled: false };
        // What a sub-agent asked is in its own log first.
        let own = asker.is_none().then(|| question.clone());
        self.emit(Event::Ask(Ask { id, question, asker })).await;
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = receive => answer.ok(),
        };
        let decided = own.zip(answer.as_ref()).and_then(|(question, answer)| decided::of(&question, answer));
        self.state().decided.extend(decided);
        open.settled = true;
        drop(open);
        self.emit(Event::AskClosed { id }).await;
        answer
    }

    /// How long a person was waited for since the last call.
    pub(super) fn take_waited(&self) -> Duration {
        std::mem::take(&mut self.state().waited)
    }

    pub(super) fn take_decided(&self) -> Vec<Decided> {
        std::mem::take(&mut self.state().decided)
    }

    /// Hands over an answer; one to a question that is closed already is ignored.
    pub fn answer(&self, id: AskId, answer: Answer) {
        if let Some(waiting) = self.state().asks.remove(&id) {
            // The asker may have been cancelled in this very moment.
            let _ = waiting.send(answer);
        }
    }

    /// Asks the program around us, unless who wants to know is `gone`. That is not a person who is waited for.
    pub async fn call(&self, call: outside::Call, gone: impl Future<Output = ()>) -> Option<outside::Answer> {
        let (send, receive) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.ids += 1;
            let id = AskId(state.ids);
            state.calls.insert(id, send);
            id
        };
        self.emit(Event::Call { id, call }).await;
        let answer = tokio::select! {
            biased;
            answer = receive => return answer.ok(),
            () = gone => None,
        };
        self.state().calls.remove(&id);
        self.emit(Event::AskClosed { id }).await;
        answer
    }

    /// Hands over what the program around us answers; nobody may wait for it any more.
    pub fn returned(&self, id: AskId, answer: outside::Answer) {
        if let Some(waiting) = self.state().calls.remove(&id) {
            let _ = waiting.send(answer);
        }
    }

    /// Begins a turn: from now on `interrupt` cancels this token.
    pub fn begin(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.state().cancel = Some(cancel.clone());
        cancel
    }

    /// As `begin`, for a turn that answers this.
    pub fn begin_with(&self, prompt: &str) -> CancellationToken {
        self.state().prompt = Some(prompt.to_owned());
        self.begin()
    }

    /// What was to be answered when everything came to an end: the prompt of the turn, and those that wait.
    pub fn unanswered(&self) -> Option<String> {
        let prompt = self.state().prompt.take();
        let all: Vec<String> = prompt.into_iter().chain(self.take_texts()).collect();
        (!all.is_empty()).then(|| all.join(BETWEEN))
    }

    /// The prompt of the turn has its answer, though the turn continues.
    pub(super) fn answered(&self) {
        self.state().prompt = None;
    }

    /// The turn is to answer this, too.
    pub(super) fn joined(&self, prompt: &str) {
        let mut state = self.state();
        let all: Vec<String> = state.prompt.take().into_iter().chain([prompt.to_owned()]).collect();
        state.prompt = Some(all.join(BETWEEN));
    }

    pub fn end(&self) {
        let mut state = self.state();
        (state.cancel, state.prompt) = (None, None);
    }

    /// Cancels what runs. False when nothing does.
    pub fn interrupt(&self) -> bool {
        match &self.state().cancel {
            Some(cancel) => {
                cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Lets commands that are waited for continue in the background.
    pub fn leave(&self) {
        // Those that begin later are not meant.
        std::mem::take(&mut self.state().leave).cancel();
    }

    /// Is cancelled when a command that begins now is to leave.
    pub(super) fn leaving(&self) -> CancellationToken {
        self.state().leave.clone()
    }

    /// Asks the turn to change the mode at its next step.
    pub fn set_mode(&self, mode: Mode) {
        self.state().mode = Some(mode);
        self.changed.notify_one();
    }

    pub fn take_mode(&self) -> Option<Mode> {
        self.state().mode.take()
    }

    /// Asks the turn to think otherwise from its next request on.
    pub fn set_thinking(&self, level: Option<Level>) {
        self.state().thinking = Some(level);
        self.changed.notify_one();
    }

    pub fn take_thinking(&self) -> Option<Option<Level>> {
        self.state().thinking.take()
    }

    /// Lets a rule count here, too, from the next step on.
    pub(super) fn give(&self, rule: String, source: Source) {
        self.state().granted.push((rule, source));
        self.changed.notify_one();
    }

    pub(super) fn take_granted(&self) -> Vec<(String, Source)> {
        std::mem::take(&mut self.state().granted)
    }

    /// Resolves when a mode, a level, a rule or a prompt waits to be taken.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    pub fn enqueue(&self, prompt: Prompt, delivery: Delivery) {
        let mut state = self.state();
        state.ids += 1;
        let id = QueueId(state.ids);
        state.queue.push((id, prompt, delivery));
        drop(state);
        self.changed.notify_one();
    }

    /// Whether something is to be delivered at a tool boundary.
    pub(super) fn has_steers(&self) -> bool {
        self.state().queue.iter().any(|(_, _, delivery)| *delivery == Delivery::Steer)
    }

    pub fn unqueue(&self, id: QueueId) -> bool {
        let mut state = self.state();
        let before = state.queue.len();
        state.queue.retain(|(queued, _, _)| *queued != id);
        state.queue.len() != before
    }

    /// The queue as front ends show it.
    pub fn queue(&self) -> Event {
        let state = self.state();
        let items = state
            .queue
            .iter()
            .map(|(id, prompt, delivery)| Queued { id: *id, text: prompt.text.clone(), delivery: *delivery })
            .collect();
        Event::Queue { items }
    }

    /// Takes what is to be delivered at a tool boundary, oldest first.
    pub fn take_steers(&self) -> Vec<Prompt> {
        let mut state = self.state();
        let (steers, rest) =
            std::mem::take(&mut state.queue).into_iter().partition(|(_, _, delivery)| *delivery == Delivery::Steer);
        state.queue = rest;
        let steers: Vec<(QueueId, Prompt, Delivery)> = steers;
        steers.into_iter().map(|(_, prompt, _)| prompt).collect()
    }

    /// Puts prompts back that were taken but not delivered, oldest first.
    pub fn put_back(&self, steers: Vec<Prompt>) {
        let mut state = self.state();
        for (at, prompt) in steers.into_iter().enumerate() {
            state.ids += 1;
            let id = QueueId(state.ids);
            state.queue.insert(at, (id, prompt, Delivery::Steer));
        }
    }

    /// Takes the oldest prompt that waits, whatever it waits for, as the op that brought it.
    pub fn take_next(&self) -> Option<Op> {
        let mut state = self.state();
        let (_, prompt, delivery) = (!state.queue.is_empty()).then(|| state.queue.remove(0))?;
        Some(match (prompt.skill, prompt.shell) {
            (Some(Invocation { name, args }), _) => Op::Command { name, args },
            (None, Some(command)) => Op::Shell { command },
            (None, None) => {
                let Prompt { text, attachments, thinking, data, .. } = prompt;
                Op::Prompt { text, attachments, delivery, thinking, data }
            }
        })
    }

    /// Takes the words of all that waits, oldest first.
    pub fn take_texts(&self) -> Vec<String> {
        std::mem::take(&mut self.state().queue).into_iter().map(|(_, prompt, _)| prompt.text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_that_overlap_are_waited_for_once() {
        let (events, _open) = mpsc::channel(9);
        let (mailbox, cancel) = (Mailbox::new(events), CancellationToken::new());
        let ask = || mailbox.ask(Question::EnterPlan { reason: None }, &cancel);
        let answer = |id, seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            id
        };
        tokio::join!(ask(), ask(), async {
            let first = answer(AskId(1), 10).await;
            mailbox.answer(first, Answer::Yes);
            let second = answer(AskId(2), 5).await;
            mailbox.answer(second, Answer::Yes);
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((mailbox.take_waited().as_secs(), mailbox.take_waited()), (15, Duration::ZERO));
    }
}
