//! Where the context can be cut: never between a call and its result.

use crate::message::tokens::Load;
use crate::message::{Kind, Role, StopReason};
use crate::session::Context;
use crate::session::context::Shown;
use crate::session::entry::Seq;

/// Positions among `Context::shown` before which everything may leave, oldest first. What came with the last boundary has
/// no position of its own; the last position is behind everything.
pub fn cuts(context: &Context) -> Vec<usize> {
    let mut cuts = Vec::new();
    // Position of the last message that answers a call which was made so far.
    let mut answered = None::<usize>;
    let mut lead = 0;
    for (index, shown) in context.shown().enumerate() {
        lead += usize::from(shown.lead);
        if !shown.lead && answered.is_none_or(|answered| answered < index) {
            cuts.push(index);
        }
        if shown.message.role == Role::Assistant {
            let last = shown.message.calls().filter_map(|call| context.answered_at(&call.id)).max();
            answered = answered.max(last);
        }
    }
    if context.len() > lead {
        cuts.push(context.len());
    }
    cuts
}

/// Prompts and replies: what is attached to them does not make a conversation longer.
pub fn spoken(context: &Context) -> u64 {
    context.shown().filter(speaks).count() as u64
}

pub(super) fn speaks(shown: &Shown<'_>) -> bool {
    matches!(shown.message.kind, Kind::Prompt | Kind::Skill | Kind::Reply)
}

/// Positions of the prompts that are being worked on, oldest first: all that came since the model last answered one without
/// a call, unless that is the end of the conversation. A skill counts like the prompt that it came with.
pub fn asked(context: &Context) -> Vec<usize> {
    let mut asked = Vec::new();
    if context.shown().next_back().is_some_and(|last| last.message.kind == Kind::Reply) {
        return asked;
    }
    for (index, shown) in (0..context.len()).zip(context.shown()).rev() {
        let message = shown.message;
        let cut = matches!(message.stop, Some(StopReason::MaxTokens | StopReason::Pause));
        match message.kind {
            Kind::Prompt | Kind::Skill => asked.push(index),
            Kind::Reply if !asked.is_empty() && !cut && message.calls().next().is_none() => break,
            _ => {}
        }
    }
    asked.reverse();
    asked
}

/// Position of the round that runs: of the last reply with the results that wait for the model, or of what waits alone.
pub fn running(context: &Context) -> usize {
    let unread = super::micro::unread_from(context);
    let calls = unread.checked_sub(1).and_then(|last| context.shown_from(last).next());
    match calls.is_some_and(|reply| reply.message.calls().next().is_some()) {
        true => cuts(context).into_iter().rfind(|cut| *cut < unread).unwrap_or(unread),
        false => unread,
    }
}

/// The entry from which on a boundary keeps everything behind a cut.
pub fn keep_from(context: &Context, cut: usize) -> Seq {
    let mut seqs = context.shown().filter(|shown| !shown.lead).map(|shown| shown.seq);
    match context.shown().nth(cut) {
        Some(shown) => shown.seq,
        // Nothing is kept.
        None => seqs.next_back().map_or(0, |last| last + 1),
    }
}

/// The first cut behind which at most `budget` tokens stand by estimate, and at least `messages` messages where they do.
/// What the model has not answered yet is always kept.
pub fn recent(context: &Context, budget: u64, messages: usize) -> usize {
    let loads: Vec<Load> = context.shown().map(|shown| shown.load).collect();
    let pending = super::micro::unread_from(context);
    let mut best = context.len();
    let (mut sum, mut at) = (0, loads.len());
    for cut in cuts(context).into_iter().rev() {
        sum += loads[cut..at].iter().copied().sum::<Load>().total();
        at = cut;
        // A round that ends in results counts as before them: they wait for the model with their calls.
        let wanted = context.len() - best < messages || best > pending;
        if sum > budget && !wanted {
            break;
        }
        best = cut;
    }
    best
}
