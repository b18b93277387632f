//! What is said, and asked, before a step that costs more because the provider's cache is cold.

use super::{Engine, Inbox};
use crate::agent::Presence;
use crate::agent::prefix::{self, Next};
use crate::protocol::{Answer, ChoiceOption, Choices, Question};
use crate::report;

const SEND: &str = "Send it";

/// Says what the next request will cost where the cache is of no use to it, once.
pub(super) async fn tell(engine: &mut Engine, next: Next) {
    let text = report::cache::forecast(&prefix::forecast(&engine.agent, next));
    if let Some(text) = text.filter(|text| engine.known.forecast.as_ref() != Some(text)) {
        engine.known.forecast = Some(text.clone());
        engine.tell(text).await;
    }
}

/// Says what a request is about to cost, or asks the person in front of it where that is more than `budget.confirm_usd`.
pub(super) async fn confirmed(engine: &mut Engine, inbox: &mut Inbox) -> bool {
    let forecast = prefix::forecast(&engine.agent, Next::AsIs);
    let most = engine.loaded.config.budget.confirm_usd.filter(|_| engine.setup.presence == Presence::Attended);
    let dear = most.zip(forecast.usd).is_some_and(|(most, usd)| usd > most);
    let Some(text) = report::cache::forecast(&forecast).filter(|_| dear) else {
        tell(engine, Next::AsIs).await;
        // What comes later is another request.
        engine.known.forecast = None;
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
