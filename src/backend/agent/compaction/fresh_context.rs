//! A fresh context for an approved plan: everything before it leaves the conversation, without a model call.

use std::sync::Arc;

use super::Compaction;
use crate::agent::plan::reminders;
use crate::agent::{Conversation, Policy};
use crate::compact::{candidate, ledger};
use crate::message::{Kind, Message, PlanNote, tokens};
use crate::session;
use crate::session::entry::{Boundary, EntryKind, Trigger};

/// Tokens of the user's own messages that come along, newest first.
const MOST_REQUEST: u64 = 20_000;

impl Compaction {
    /// Restarts the conversation with the approved plan. All results are in the log by now.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn restart(
        &mut self,
        plan: &str,
        conversation: &mut Conversation,
        policy: &Policy,
        model: &str,
    ) -> Result<(), session::Error> {
        let path = conversation.plan_file().unwrap_or_default();
        let told = format!(
            "# The approved plan\nThe user approved this plan, and the conversation restarts with it; plan mode is over. Carry it out. The user's request follows. The plan is in {}:\n\n{plan}",
            path.display()
        );
        let request = {
            let messages: Vec<&Arc<Message>> = conversation.context().entries().map(|(_, message)| message).collect();
            request(&messages)
        };
        let mut attachments = vec![Arc::new(reminders::noted(PlanNote::Exit, &path, &told))];
        let ledger = self.driver.ledger(conversation.context());
        let said = format!("{told}\n{}", request.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n"));
        let known = ledger::Known { verbatim: &said, summary: "" };
        let most = self.driver.limits().ledger;
        attachments.extend(ledger::message(&ledger, conversation.context().todos(), known, most));
        attachments.extend(request);
        let mut boundary = Boundary {
            trigger: Trigger::Plan,
            tier: "plan".into(),
            pre_tokens: self.driver.meter.likely_used(conversation.context()),
            post_tokens: 0,
            keep_from: conversation.session.next_seq(),
            opening: vec![Arc::new(conversation.opening_again(policy, model).await)],
            attachments,
            ledger,
            ..Boundary::default()
        };
        boundary.post_tokens =
            self.driver.meter.likely_request(candidate::load_after(conversation.context(), &boundary));
        self.notes.forget(&mut conversation.session);
        conversation.append(EntryKind::CompactBoundary(boundary))?;
        conversation.session.sync()?;
        conversation.forget_files();
        Ok(())
    }
}

/// What the user asked for since the last plan was carried out: from the prompt that this planning began with.
fn request(messages: &[&Arc<Message>]) -> Vec<Arc<Message>> {
    let note = |message: &&Arc<Message>| reminders::note(message);
    let over = messages.iter().rposition(|message| note(message) == Some(PlanNote::Exit)).map_or(0, |at| at + 1);
    let begun =
        messages[over..].iter().position(|message| note(message).is_some()).map_or(messages.len(), |at| over + at);
    let prompt = |message: &&&Arc<Message>| message.kind == Kind::Prompt;
    let from = messages[..begun].iter().rposition(|message| message.kind == Kind::Prompt).unwrap_or(begun);
    let mut room = MOST_REQUEST;
    let mut kept: Vec<Arc<Message>> = messages[from..]
        .iter()
        .filter(prompt)
        .rev()
        .take_while(|message| {
            let fits = tokens::message(message) <= room;
            room = room.saturating_sub(tokens::message(message));
            fits
        })
        .map(|message| Arc::clone(message))
        .collect();
    kept.reverse();
    kept
}
