//! Every decision leaves a trace: in the log, and as one line on the screen.

use super::mailbox::Mailbox;
use super::{Conversation, Presence};
use crate::protocol::{Answer, Approval, Event, GrantScope, Item, Question};
use crate::session;
use crate::session::entry::{Decided, Decider, EntryKind, Lasts, Matter};

/// Most characters that are kept of what was decided about.
const KEPT: usize = 4_000;

/// What an answer decided. None for a call: how long it holds is known only where it is granted.
pub(super) fn of(question: &Question, answer: &Answer) -> Option<Decided> {
    let yes = !matches!(answer, Answer::No { .. } | Answer::AllEdits);
    let (matter, what) = match question {
        Question::Permission { .. } | Question::Connect { .. } => return None,
        Question::Trust { plugin: Some(id), .. } => (Matter::Trust, format!("plugin {id}")),
        Question::Trust { folder, .. } => (Matter::Trust, folder.display().to_string()),
        Question::LocalServer { url, .. } => (Matter::Server, url.clone()),
        Question::Repeated { tool, title, .. } => (Matter::Repeated, format!("{tool} {title}")),
        Question::Unrecorded { path } => (Matter::Unrecorded, path.display().to_string()),
        Question::Locked { .. } => {
            let how = if *answer == Answer::ReadOnly { "to read only" } else { "in a copy" };
            (Matter::Locked, how.to_owned())
        }
        Question::Import { import, .. } => (Matter::Import, import.display().to_string()),
        Question::EnterPlan { .. } => (Matter::EnterPlan, String::new()),
        Question::Plan { .. } => {
            let how = match answer {
                Answer::Approve { how: Approval::AcceptEdits } => "edits no longer ask",
                Answer::Approve { how: Approval::AskEach } => "each edit asks",
                Answer::Approve { how: Approval::FreshContext } => "fresh context, each edit asks",
                _ => "",
            };
            (Matter::Plan, how.to_owned())
        }
        Question::Choices { .. } => {
            let Answer::Chosen { answers } = answer else { return Some(decided(Matter::Choices, false, "")) };
            let answers: Vec<String> = answers.iter().map(|answers| answers.join(", ")).collect();
            (Matter::Choices, answers.join("; "))
        }
    };
    Some(decided(matter, yes, &what))
}

/// How long a granted rule holds.
pub(super) fn lasts(scope: GrantScope) -> Lasts {
    match scope {
        GrantScope::Session => Lasts::Session,
        GrantScope::Project => Lasts::Project,
        GrantScope::User => Lasts::User,
    }
}

pub(super) fn decided(matter: Matter, yes: bool, what: &str) -> Decided {
    let what = what.chars().take(KEPT).collect();
    Decided { matter, yes, by: Decider::User, lasts: Lasts::Once, what, agent: None }
}

impl Conversation {
    /// Logs and shows what was decided since the last time.
    pub(super) async fn note_decided(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        for decided in mailbox.take_decided() {
            self.decided(decided, mailbox).await?;
        }
        Ok(())
    }

    /// Logs a decision and shows it.
    pub(super) async fn decided(&mut self, mut decided: Decided, mailbox: &Mailbox) -> Result<(), session::Error> {
        let alone = self.above.is_none() && self.presence == Presence::Unattended;
        if alone && decided.by == Decider::User {
            decided.by = Decider::Nobody;
        }
        let text = decided.to_string();
        self.append(EntryKind::Decided(decided.clone()))?;
        match &self.above {
            // The user looks at the conversation above.
            Some(above) => above.decided(decided),
            None => mailbox.emit(Event::Item(Item::Note { text })).await,
        }
        Ok(())
    }

    /// The same for a call.
    pub(super) async fn decided_call(
        &mut self,
        (yes, by, lasts): (bool, Decider, Lasts),
        what: &str,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        self.decided(Decided { by, lasts, ..decided(Matter::Call, yes, what) }, mailbox).await
    }
}
