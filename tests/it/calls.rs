//! The road of a tool call: each input is read once, each line parsed once, and the title outlives the session.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use cocode::permission::Mode;
use cocode::protocol::{Answer, Event, HistoryItem, Item};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing::{Metadata, Subscriber};

use super::support::harness::Harness;

/// Counts what is told of the work on calls.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<BTreeMap<String, usize>>>);

impl Visit for Tally {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let counted = ["an input was read", "a line was parsed", "decided", "a schema was derived"];
        if field.name() == "message" && counted.contains(&text.as_str()) {
            *self.0.lock().unwrap().entry(text).or_default() += 1;
        }
    }
}

impl Subscriber for Tally {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn tally(calls: usize) -> BTreeMap<String, usize> {
    let tally = Tally::default();
    // With one dispatcher alone, a place in the code that another thread reaches first would stay silent for good.
    let _second = tracing::Dispatch::new(Tally::default());
    let _guard = set_default(tally.clone());
    let (mut script, mut harness) = (String::new(), Harness::new().mode(Mode::Default).prompt("go"));
    for call in 0..calls {
        script += &format!("- reply: [tool: {{name: Bash, input: {{command: git push origin v{call}}}}}]\n");
        harness = harness.answer(Answer::Yes);
    }
    harness.script(&format!("{script}- reply: [text: Done.]\n")).run().await;
    tally.0.lock().unwrap().clone()
}

#[tokio::test]
async fn an_asked_command_is_read_and_parsed_once() {
    let (two, one) = (tally(2).await, tally(1).await);
    let each: BTreeMap<&str, usize> =
        two.iter().map(|(what, count)| (what.as_str(), count - one.get(what).unwrap_or(&0))).collect();
    // Decided before the question, and once more when it was answered.
    let want = [("a line was parsed", 1), ("a schema was derived", 0), ("an input was read", 1), ("decided", 2)];
    assert_eq!(each, BTreeMap::from(want));
}

#[tokio::test]
async fn a_resumed_call_has_the_title_that_it_had() {
    let script = "- reply:\n  - tool: {name: Grep, input: {pattern: fn main, path: src}}\n  \
                  - tool: {name: TodoWrite, input: {todos: []}}\n- reply: [text: Done.]\n";
    let run = Harness::new().file("src/a.rs", "fn main() {}\n").prompt("go").script(script).run().await;
    let started = run.events.iter().filter_map(|event| match event {
        Event::Item(Item::CallStarted { title, .. }) => Some(title.clone()),
        _ => None,
    });
    let started: Vec<String> = started.collect();
    assert_eq!(started, ["fn main in src", "0 items"]);
    let history = run.session().history(9).unwrap().0;
    let messages = history.iter().filter_map(|item| match item {
        HistoryItem::Message { message, .. } => Some(message),
        _ => None,
    });
    let titles: Vec<&str> = messages.flat_map(|message| message.calls()).map(|call| call.title()).collect();
    assert_eq!(titles, started);
}
