//! What holds after anything that may happen to a conversation, in any order.

use proptest::prelude::*;

use super::candidate::{self, Made, Quotes};
use super::fixture::{Talk, clearable, driver, text};
use super::restore::Restored;
use super::{Driver, Search, Step, Summarized, Surroundings, apply, micro, rounds, summary, trim};
use crate::message::tokens::Load;
use crate::message::{CallId, Message, Role, Usage};
use crate::protocol::Trigger;
use crate::session::Context;
use crate::session::entry::{Boundary, EntryKind, Seq};

/// One thing that happens, with numbers that say how.
#[derive(Debug, Clone)]
enum Happens {
    Prompt(u64),
    Reply(u64),
    Round(&'static str, Vec<u64>),
    /// Clears down to so many tokens.
    Micro(u64),
    /// Trims to so many tokens.
    Trim(u64),
    /// Summarizes everything before one of the places where that is possible.
    Boundary(usize),
    /// Takes the last boundary back.
    Undo,
    /// Goes back to one of the prompts.
    Rewind(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    let tool = prop_oneof![Just("Read"), Just("Bash"), Just("Task")];
    prop_oneof![
        3 => (1u64..400).prop_map(Happens::Prompt),
        2 => (1u64..400).prop_map(Happens::Reply),
        5 => (tool, prop::collection::vec(0u64..1_500, 1..4)).prop_map(|(tool, sizes)| Happens::Round(tool, sizes)),
        2 => (0u64..4_000).prop_map(Happens::Micro),
        1 => (200u64..6_000).prop_map(Happens::Trim),
        1 => (0usize..100).prop_map(Happens::Boundary),
        1 => Just(Happens::Undo),
        1 => (0usize..100).prop_map(Happens::Rewind),
    ]
}

/// Each call is answered exactly once, right after it, in order, and nothing is empty.
fn assert_paired(context: &Context) {
    let mut awaited: Vec<CallId> = Vec::new();
    for message in context.messages() {
        assert!(!message.blocks.is_empty());
        let results: Vec<CallId> = message.results().map(|result| result.id.clone()).collect();
        assert_eq!(results, std::mem::take(&mut awaited));
        if message.role == Role::Assistant {
            awaited = message.calls().map(|call| call.id.clone()).collect();
        }
    }
    assert_eq!(awaited, []);
}

/// Sizes that are kept up to date equal those of a fresh count.
fn assert_counted(context: &Context, driver: &Driver) {
    let sum = context.shown().map(|shown| crate::message::tokens::message(shown.message)).sum::<u64>();
    let kept = context.shown().map(|shown| shown.load.total()).sum::<u64>();
    assert_eq!(kept, sum);
    assert_eq!(driver.used(context), driver.meter.request(context.shown().map(|shown| shown.load).sum()));
}

fn clear(talk: &mut Talk, driver: &Driver, target: u64) -> usize {
    let asked = micro::Trigger::Asked { target: Some(target) };
    let Some(plan) = micro::plan(talk.context(), driver.terms(talk.session.store(), &clearable), asked) else {
        return 0;
    };
    apply::clear(&mut talk.session, &plan).unwrap().results
}

/// Lets it happen.
fn perform(talk: &mut Talk, driver: &Driver, prompts: &mut Vec<(Seq, Context)>, what: &Happens) {
    match what {
        Happens::Prompt(tokens) => {
            prompts.push((talk.session.next_seq(), talk.context().clone()));
            talk.prompt(*tokens);
        }
        Happens::Reply(tokens) => _ = talk.reply(*tokens),
        Happens::Round(tool, sizes) => _ = talk.round(tool, sizes),
        Happens::Micro(target) => {
            clear(talk, driver, *target);
            assert_eq!(clear(talk, driver, *target), 0, "cleared twice");
        }
        Happens::Trim(target) => {
            let before = driver.used(talk.context());
            let plan = trim::plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], *target);
            apply::trim(&mut talk.session, &plan, before).unwrap();
            let after = driver.used(talk.context());
            assert!(after <= before, "a trim made the context larger");
            assert!(after <= plan.after, "a trim left more than it planned");
        }
        Happens::Boundary(cut) => {
            let cuts = rounds::cuts(talk.context());
            let Some(cut) = cuts.get(cut % cuts.len().max(1)) else { return };
            let keep_from = rounds::keep_from(talk.context(), *cut);
            let summary =
                Some(std::sync::Arc::new(summary::message("Things were done.", Trigger::Auto, Search::Recall)));
            let boundary = Boundary { tier: "full".into(), keep_from, summary, ..Boundary::default() };
            talk.session.append(EntryKind::CompactBoundary(boundary)).unwrap();
        }
        Happens::Undo => {
            let Some(seq) = talk.session.last_boundary() else { return };
            let undone = EntryKind::BoundaryUndone { seq };
            let preview = talk.session.preview(&undone).unwrap();
            talk.session.append(undone).unwrap();
            assert_eq!(preview.messages(), talk.context().messages());
        }
        Happens::Rewind(prompt) => {
            let Some((to, then)) = prompts.get(prompt % prompts.len().max(1)) else { return };
            talk.session.append(EntryKind::Rewind { to: *to }).unwrap();
            assert_eq!(talk.context(), then, "not as it stood before entry {to}");
        }
    }
}

/// What a session in a small window is made of.
#[derive(Debug, Clone)]
enum Said {
    Prompt(u64),
    /// A reply with a call for each result of so many tokens.
    Round(u64, Vec<u64>),
    Answer(u64),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        2 => prop_oneof![1u64..300, 1u64..40_000].prop_map(Said::Prompt),
        9 => (1u64..300, prop::collection::vec(prop_oneof![1u64..900, 1u64..20_000], 1..8)).prop_map(|(text, sizes)| Said::Round(text, sizes)),
        1 => (1u64..600).prop_map(Said::Answer),
    ]
}

/// Prepares a request as an agent does: a summary is written where one is due, unless the writer fails.
fn prepare(talk: &mut Talk, driver: &mut Driver, writes: bool) {
    let opening = [std::sync::Arc::new(Message::reminder(&text(300)))];
    driver.prepare();
    for steps in 0.. {
        assert!(steps < 5, "the driver does not come to an end");
        let around = Surroundings { store: talk.session.store(), clearable: &clearable, prices: None, cold: false };
        match driver.step(talk.context(), around) {
            Step::Send => break,
            Step::Clear(plan) => _ = apply::clear(&mut talk.session, &plan).unwrap(),
            Step::Summarize if writes => {
                let message = std::sync::Arc::new(summary::message(&text(3_000), Trigger::Auto, Search::Recall));
                let (context, of) = (talk.context(), &*driver);
                let candidate = candidate::fit(context, of, |ration| {
                    let summary = ration.summary(&message, of.limits());
                    let keep_from = candidate::cut(context, of, candidate::weight(&opening, &summary), ration);
                    let (opening, quotes) = (opening.to_vec(), Quotes::Opening);
                    let made = Made { tier: "full", trigger: Trigger::Auto, keep_from, opening, summary, quotes };
                    made.candidate(context, of, ration, |_| Restored::default())
                });
                let what = match driver.judge(context, candidate) {
                    Ok(candidate) => {
                        talk.session.append(EntryKind::CompactBoundary(candidate.boundary)).unwrap();
                        Summarized::Committed
                    }
                    Err(_) => Summarized::Rejected,
                };
                driver.summarized(what);
            }
            Step::Summarize => _ = driver.summarized(Summarized::Failed),
            Step::Trim { target } => {
                let before = driver.used(talk.context());
                let plan = trim::plan(talk.context(), driver.terms(talk.session.store(), &clearable), &opening, target);
                apply::trim(&mut talk.session, &plan, before).unwrap();
            }
            Step::Refuse { .. } => panic!("refused although compaction is on"),
        }
    }
}

/// The last prompt and the results that the model has not seen are in front of it, whole or cut.
fn assert_works(talk: &Talk, prompt: &str, calls: &[CallId]) {
    let messages = talk.context().messages();
    let reads = |text: &str, start: &str| text.starts_with(start) || text.contains("left out; the full text is in");
    let asked = rounds::asked(talk.context()).into_iter().next_back().expect("the prompt is missing");
    let asked = talk.context().shown_from(asked).next().unwrap().message.text();
    assert!(reads(&asked, &prompt[..prompt.len().min(8)]), "another prompt: {asked}");
    let unread = messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
    let results: Vec<_> = messages[unread..].iter().flat_map(|message| message.results()).collect();
    assert!(results.iter().map(|result| &result.id).eq(calls), "{}", talk.show());
    assert!(results.iter().all(|result| reads(&result.text(), "abc")), "{}", talk.show());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_context_stays_whole(all in prop::collection::vec(happens(), 1..40)) {
        let driver = driver(8_192, |_| {});
        let (mut talk, mut prompts) = (Talk::new(), Vec::new());
        talk.push(Message::reminder("environment"));
        for what in &all {
            perform(&mut talk, &driver, &mut prompts, what);
            assert_paired(talk.context());
            assert_counted(talk.context(), &driver);
        }
    }

    /// However small the window, and whatever the model, its tools and the user come up with.
    #[test]
    fn every_request_holds_what_the_model_works_on(
        all in prop::collection::vec(said(), 1..40),
        window in prop_oneof![Just(8_192u64), Just(12_000), Just(16_000), 8_192u64..60_000],
        writes: bool,
        dense in 70u64..=135,
    ) {
        let (mut talk, mut driver) = (Talk::new(), driver(window, |_| {}));
        let head = if window < 16_000 { 1_300 } else { 3_200 };
        driver.meter.set_overhead(Load { text: head, images: 0 });
        talk.push(Message::reminder(&text(300)));
        let (mut prompt, mut calls) = (text(20), Vec::<CallId>::new());
        talk.prompt(20);
        for what in &all {
            let (said, sizes) = match what {
                Said::Prompt(tokens) => {
                    prompt = text(*tokens);
                    talk.prompt(*tokens);
                    continue;
                }
                Said::Round(said, sizes) => (*said, sizes.as_slice()),
                Said::Answer(said) => (*said, &[][..]),
            };
            prepare(&mut talk, &mut driver, writes);
            assert_paired(talk.context());
            assert_works(&talk, &prompt, &calls);
            let (used, room) = (driver.used(talk.context()), driver.room_for_output(talk.context(), Load::default()));
            prop_assert!(used + room <= window, "{used} and {room} of answer in {window}");
            // What the provider counts, for the next request to build on.
            let before = talk.context().count();
            let sum: Load = talk.context().shown().map(|shown| shown.load).sum();
            let input = (head + sum.total()) * dense / 100;
            prop_assert!(input + room <= window, "{input} counted and {room} of answer in {window}");
            let output = (said + 30 * sizes.len() as u64) * dense / 100 + 1;
            let usage = Usage { input, output, ..Usage::default() };
            calls = talk.replies(said, sizes, usage);
            driver.answered(before, &usage);
            if sizes.is_empty() {
                talk.prompt(20);
                prompt = text(20);
            }
        }
    }

    /// What waits to be cleared is seen the same whether it is asked for in one go or in steps.
    #[test]
    fn clearing_in_steps_ends_where_clearing_at_once_does(
        sizes in prop::collection::vec(0u64..3_000, 1..30),
        steps in prop::collection::vec(0u64..20_000, 0..4),
        target in 0u64..10_000,
    ) {
        let driver = driver(200_000, |_| {});
        let build = || {
            let mut talk = Talk::new();
            talk.prompt(5);
            sizes.iter().for_each(|size| _ = talk.round("Read", &[*size]));
            talk.reply(1);
            talk
        };
        let (mut at_once, mut in_steps) = (build(), build());
        clear(&mut at_once, &driver, target);
        for step in steps.iter().filter(|step| **step >= target) {
            clear(&mut in_steps, &driver, *step);
        }
        clear(&mut in_steps, &driver, target);
        let left = |talk: &Talk| talk.context().whole_results().map(|held| held.load.text).filter(|text| *text > 30).sum::<u64>();
        prop_assert_eq!(left(&at_once), left(&in_steps));
    }
}
