//! What is said, and asked, before a step that costs more because the provider's cache is cold.

use super::{Engine, Inbox};
use crate::agent::Presence;
use crate::agent::prefix::{self, Next};
use crate::protocol::{Answer, ChoiceOption, Choices, Question};
use crate::report;

const SEND: &str = "Send it";

/// Says what the next request will cost where the cache is of no use to it.
pub(super) async fn tell(engine: &Engine, next: Next) {
    if let Some(text) = report::cache::forecast(&prefix::forecast(&engine.agent, next)) {
        engine.tell(text).await;
    }
}

/// Asks the person in front of it before a request that costs more than `budget.confirm_usd`.
pub(super) async fn confirmed(engine: &Engine, inbox: &mut Inbox) -> bool {
    let Some(most) = engine.loaded.config.budget.confirm_usd.filter(|_| engine.setup.presence == Presence::Attended)
    else {
        return true;
    };
    let forecast = prefix::forecast(&engine.agent, Next::AsIs);
    let Some(text) = report::cache::forecast(&forecast).filter(|_| forecast.usd.is_some_and(|usd| usd > most)) else {
        return true;
    };
    let option = |label: &str, description: &str| ChoiceOption { label: label.into(), description: description.into() };
    let options = vec![
        option(SEND, "Pay for the whole conversation once; what follows is read from the cache"),
        option("Don't send", "The message stays in the prompt; /compact or /clear makes it cheaper"),
    ];
    let question = Choices { header: "Cost".into(), question: format!("{text}. Send it?"), multi: false, options };
    let cancel = engine.mailbox.begin();
    let answer = inbox.attend(engine.mailbox.ask(Question::Choices { questions: vec![question] }, &cancel)).await;
    engine.mailbox.end();
    matches!(answer, Some(Answer::Chosen { answers }) if answers.iter().flatten().any(|answer| answer == SEND))
}
