//! What sub-agents say while calls run: what joins the session's own log and rules.

use crate::agent::mailbox::Mailbox;
use crate::agent::parent_child::Word;
use crate::agent::{Agent, budget};
use crate::permission::Source;
use crate::protocol::Event;
use crate::session;
use crate::session::entry::EntryKind;

/// Does what a sub-agent says.
pub(in crate::agent) async fn take(agent: &mut Agent, word: Word, mailbox: &Mailbox) -> Result<(), session::Error> {
    match word {
        Word::Note { note, noted } => {
            // The one who asks may have been cancelled meanwhile.
            let _ = noted.send(agent.conversation.note(note));
            agent.conversation.tell_news(mailbox).await;
        }
        Word::Granted { rule, source } => {
            agent.policy.allow(&rule, source);
            if source == Source::Session {
                agent.conversation.append(EntryKind::Granted { rule: rule.clone() })?;
            }
            agent.family.granted(rule, source);
        }
        Word::Decided(decided) => agent.conversation.decided(decided, mailbox).await?,
        Word::AcceptEdits => agent.accept_edits(mailbox).await?,
        Word::Spent { what, model, spec, usage } => {
            agent.spending.know(model.clone(), &spec);
            budget::record(agent, None);
            agent.spending.note(&mut agent.conversation.session, &what, (model, &spec), usage)?;
            agent.budget.paid(&agent.conversation.session);
            mailbox.emit(Event::Usage(agent.usage_info())).await;
        }
    }
    Ok(())
}
