//! Makes the context fit without any model: clears, clips, drops. Deterministic, and it never makes it larger.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::micro::{self, Clear, eligible, unread_from};
use super::{Terms, apply, rounds};
use crate::message::tokens::{self, Load};
use crate::message::{Block, CallId, Content, Kind, Message};
use crate::session::Context;
use crate::session::context::Count;
use crate::session::entry::{Boundary, ClippedBlock, Seq};

/// Name of the tier in boundaries and receipts.
pub const TIER: &str = "trim";

/// What of the target a trim goes down to, in percent: a trim for every request would empty the provider's cache each time.
const GOAL_PERCENT: u64 = 75;

/// What has to go, in the order in which it is done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub clear: Vec<Clear>,
    pub clip: Vec<ClippedBlock>,
    /// Drops the oldest rounds.
    pub drop: Option<Boundary>,
    /// Messages that `drop` takes away.
    pub dropped: usize,
    /// Tokens that the request will have.
    pub after: u64,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.clear.is_empty() && self.clip.is_empty() && self.drop.is_none()
    }
}

/// Sizes of the context while it is cut down on paper.
struct Sizes<'a> {
    terms: Terms<'a>,
    loads: Vec<Load>,
    count: Count,
    /// What a boundary that drops something brings along, at most.
    brought: Load,
    /// What the blocks weigh that are to be clipped.
    clipped: HashMap<(Seq, usize), Load>,
    /// Messages before this one are dropped.
    cut: usize,
}

impl Sizes<'_> {
    fn used(&self) -> u64 {
        let meter = self.terms.meter;
        if self.cut > 0 {
            return meter.request(self.loads[self.cut..].iter().copied().sum::<Load>() + self.brought);
        }
        match self.count.counted {
            Some(counted) => counted + meter.of(self.count.later),
            None => meter.request(self.count.later),
        }
    }

    /// As the projection reckons when a message of it changes.
    fn change(&mut self, index: usize, from: Load, to: Load) {
        self.loads[index] = self.loads[index] + to - from;
        match &mut self.count.counted {
            Some(counted) if index < self.count.covers => {
                *counted = (*counted + to.total()).saturating_sub(from.total())
            }
            _ => self.count.later = self.count.later + to - from,
        }
    }
}

/// Plans how the context comes under `target`: as far as it can when even a note alone would not.
pub fn plan(context: &Context, terms: Terms<'_>, opening: &[Arc<Message>], target: u64) -> Plan {
    let goal = target * GOAL_PERCENT / 100;
    let mut sizes = Sizes {
        terms,
        loads: context.shown().map(|shown| shown.load).collect(),
        count: context.count(),
        brought: Load::default(),
        clipped: HashMap::new(),
        cut: 0,
    };
    let mut plan = Plan { after: sizes.used(), ..Plan::default() };
    if plan.after <= goal {
        return plan;
    }
    clear(context, &mut sizes, goal, &mut plan);
    if sizes.used() > goal {
        clip(context, &mut sizes, terms.limits.clip, goal, &mut plan);
    }
    plan.after = sizes.used();
    if plan.after <= goal {
        return plan;
    }
    let whole = plan.clone();
    drop_rounds(context, &mut sizes, opening, goal, target, &mut plan);
    plan.after = sizes.used();
    // The note and the opening may weigh more than a few short rounds. What is used does not tell it alone: the provider's
    // count, which goes with the first round that is dropped, may lie far under the estimate that takes its place, or over it.
    let dropped: Load = sizes.loads[..sizes.cut].iter().copied().sum();
    if dropped.total() > sizes.brought.total() || plan.after < whole.after { plan } else { whole }
}

/// Clears all results that may be, oldest first; the model has to have read them.
fn clear(context: &Context, sizes: &mut Sizes<'_>, goal: u64, plan: &mut Plan) {
    let unread = unread_from(context);
    for held in context.whole_results().filter(|held| held.index < unread && eligible(held, sizes.terms.clearable)) {
        if sizes.used() <= goal {
            return;
        }
        if let Some((clear, freed)) = micro::clear(context, sizes.terms, &held) {
            sizes.change(held.index, Load { text: freed, images: 0 }, Load::default());
            plan.clear.push(clear);
        }
    }
}

/// Clips blocks of more than `keep` tokens, largest first.
fn clip(context: &Context, sizes: &mut Sizes<'_>, keep: u64, goal: u64, plan: &mut Plan) {
    let mut large = Vec::new();
    let cleared: HashSet<CallId> = plan.clear.iter().map(|clear| clear.call.clone()).collect();
    for (index, shown) in context.shown().enumerate().skip(sizes.cut).filter(|(_, shown)| !shown.lead) {
        for (at, block) in shown.message.blocks.iter().enumerate() {
            let load = sizes.clipped.get(&(shown.seq, at)).copied().unwrap_or_else(|| tokens::load_of(block));
            let taken = matches!(block, Block::ToolResult(result) if cleared.contains(&result.id));
            if (load.total() > keep || load.images > 0) && !taken {
                large.push((load, index, at, shown.seq, block));
            }
        }
    }
    // Stable: of blocks of one size the oldest goes first.
    large.sort_by_key(|(load, ..)| std::cmp::Reverse(load.total()));
    for (load, index, at, seq, block) in large {
        if sizes.used() <= goal {
            return;
        }
        let persisted = apply::file_of(sizes.terms.store, block, (seq, at));
        let bare = ClippedBlock { seq, block: at, head: 0, tail: 0, persisted };
        let Some((clipped, left)) = ends(context, block, bare, keep) else { continue };
        if left.total() >= load.total() {
            continue;
        }
        sizes.clipped.insert((seq, at), left);
        // A block that is clipped further replaces its first cut.
        match plan.clip.iter_mut().find(|clip| (clip.seq, clip.block) == (seq, at)) {
            Some(clip) => *clip = clipped,
            None => plan.clip.push(clipped),
        }
        sizes.change(index, load, left);
    }
}

/// How much of a block stays at each end when it keeps `keep` tokens, and what it weighs then; `bare` keeps nothing.
fn ends(context: &Context, block: &Block, bare: ClippedBlock, keep: u64) -> Option<(ClippedBlock, Load)> {
    let marker = context.clipped(&bare)?;
    let (text, images) = match block {
        Block::Text { text, .. } => (text.clone(), false),
        Block::ToolResult(result) => {
            (result.text(), result.content.iter().any(|part| matches!(part, Content::Media(_))))
        }
        Block::Media(_) | Block::Thinking { .. } | Block::ToolCall(_) => (String::new(), true),
    };
    // Images go as a whole, along with what is next to them.
    if images {
        return Some((bare, marker));
    }
    let room = keep.saturating_sub(marker.text);
    let clipped = ClippedBlock { head: prefix(&text, room * 2 / 3), tail: suffix(&text, room / 3), ..bare };
    let left = context.clipped(&clipped)?;
    Some((clipped, left))
}

/// Bytes of the longest start of a text that counts at most `tokens`, nearly.
fn prefix(text: &str, tokens: u64) -> usize {
    let mut end = text.floor_char_boundary(usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX));
    while tokens::text(&text[..end]) > tokens {
        end = text.floor_char_boundary(end * 3 / 4);
    }
    end
}

/// As `prefix`, for the end.
fn suffix(text: &str, tokens: u64) -> usize {
    let mut length = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX).min(text.len());
    loop {
        let start = text.ceil_char_boundary(text.len() - length);
        if tokens::text(&text[start..]) <= tokens {
            return text.len() - start;
        }
        length = length * 3 / 4;
    }
}

/// A text that counts at most about `tokens`: its start and its end.
pub fn shortened(text: &str, tokens: u64) -> String {
    if tokens::text(text) <= tokens {
        return text.to_owned();
    }
    let (head, tail) = (prefix(text, tokens * 2 / 3), suffix(text, tokens / 3));
    if head + tail >= text.len() {
        return text.to_owned();
    }
    format!("{} […] {}", text[..head].trim_end(), text[text.len() - tail..].trim_start())
}

/// Drops the oldest rounds behind a note until the rest fits; at last everything but the note and what the user just said.
fn drop_rounds(
    context: &Context,
    sizes: &mut Sizes<'_>,
    opening: &[Arc<Message>],
    goal: u64,
    target: u64,
    plan: &mut Plan,
) {
    let limits = sizes.terms.limits;
    let opening = fitting(opening, limits.note * 4);
    let earlier = earlier_summary(context).map(|text| shortened(&text, limits.summary));
    let weight = |earlier: &Option<String>| Load {
        text: limits.note + 100 + earlier.as_deref().map_or(0, tokens::text),
        images: 0,
    };
    let opened: Load = opening.iter().map(|message| tokens::load(message)).sum();
    sizes.brought = opened + weight(&earlier);
    let cuts = rounds::cuts(context);
    let pending = unread_from(context);
    // The model's last reply and what it waits for stay, unless nothing else helps.
    let round = cuts.iter().copied().rfind(|cut| *cut < pending).unwrap_or(pending);
    let fits = |sizes: &Sizes<'_>, most: u64, last: usize| {
        let mut behind = sizes.loads.iter().copied().sum::<Load>() + sizes.brought;
        let mut at = 0;
        cuts.iter().copied().filter(|cut| *cut > 0 && *cut <= last).find(|cut| {
            behind = behind - sizes.loads[at..*cut].iter().copied().sum();
            at = *cut;
            sizes.terms.meter.request(behind) <= most
        })
    };
    let mut found = fits(sizes, goal, round).or_else(|| fits(sizes, target, round));
    if found.is_none() {
        sizes.cut = round;
        clip(context, sizes, limits.clip / 4, goal, plan);
        // A prompt that waits for its answer is what the request is for, and it gives way when that fails.
        let asked =
            context.shown().skip(pending).position(|shown| matches!(shown.message.kind, Kind::Prompt | Kind::Skill));
        let last = asked.map_or(context.len(), |asked| pending + asked);
        found = fits(sizes, target, last).or(Some(last));
    }
    let cut = found.unwrap_or(round);
    sizes.cut = cut;
    if cut == 0 {
        return;
    }
    let leaving: Vec<&Message> =
        context.shown().take(cut).filter(|shown| !shown.lead).map(|shown| &**shown.message).collect();
    plan.dropped = leaving.len();
    // What is dropped need not be cleared or clipped.
    let gone: HashSet<&CallId> =
        context.results().filter(|held| held.index < cut).map(|held| &held.result.id).collect();
    plan.clear.retain(|clear| !gone.contains(&clear.call));
    let kept_from = rounds::keep_from(context, cut);
    plan.clip.retain(|clip| clip.seq >= kept_from);
    let note = note(&leaving, earlier.as_deref(), limits.note);
    let weight = tokens::load(&note);
    sizes.brought = opened + weight;
    plan.drop = Some(Boundary {
        tier: TIER.into(),
        keep_from: kept_from,
        opening,
        summary: Some(Arc::new(note)),
        ..Boundary::default()
    });
}

/// As many of the messages as fit a budget together, in order.
fn fitting(messages: &[Arc<Message>], budget: u64) -> Vec<Arc<Message>> {
    let mut left = budget;
    let fits = |message: &&Arc<Message>| {
        let tokens = tokens::message(message);
        let fits = tokens <= left;
        left = left.saturating_sub(if fits { tokens } else { 0 });
        fits
    };
    messages.iter().filter(fits).cloned().collect()
}

/// The summary that the last boundary brought.
fn earlier_summary(context: &Context) -> Option<String> {
    let mut lead = context.shown().take_while(|shown| shown.lead);
    lead.find(|shown| shown.message.kind == Kind::CompactSummary).map(|shown| shown.message.text())
}

/// Says what was left out, with the user's own words, newest first, as far as they fit.
fn note(leaving: &[&Message], earlier: Option<&str>, budget: u64) -> Message {
    let count = |kind| leaving.iter().filter(|message| message.kind == kind).count();
    let mut text = format!(
        "The beginning of this conversation no longer fit into the context window and was dropped without a summary: \
         {} prompts, {} replies, {} messages with tool results. Files are as you left them: read again what you need.",
        count(Kind::Prompt),
        count(Kind::Reply),
        count(Kind::ToolResult),
    );
    if let Some(earlier) = earlier {
        text.push_str("\n\nWhat was known about the conversation before that:\n\n");
        text.push_str(earlier);
    }
    let mut quotes: Vec<String> = Vec::new();
    let mut left = budget.saturating_sub(100);
    for prompt in leaving.iter().rev().filter(|message| message.kind == Kind::Prompt) {
        let quote = shortened(prompt.text().trim(), (budget / 3).min(left.saturating_sub(10)));
        let tokens = tokens::text(&quote) + 4;
        if quote.is_empty() || tokens > left {
            continue;
        }
        left -= tokens;
        quotes.push(format!("- {}", quote.replace('\n', "\n  ")));
    }
    if !quotes.is_empty() {
        quotes.reverse();
        text.push_str("\n\nWhat the user asked in the dropped part, oldest first:\n\n");
        text.push_str(&quotes.join("\n"));
    }
    Message { kind: Kind::CompactSummary, user_visible: false, ..Message::prompt(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, clearable, driver, text};
    use crate::message::{BlobId, Media, Usage};

    /// Trims; the projection after it, and whether it came under the target.
    fn trimmed(talk: &mut Talk, window: u64) -> (String, bool) {
        let driver = driver(window, |_| {});
        let opening = [Arc::new(Message::reminder("environment"))];
        let before = driver.used(talk.context());
        let plan =
            plan(talk.context(), driver.terms(talk.session.store(), &clearable), &opening, driver.marks().target);
        apply::trim(&mut talk.session, &plan, before).unwrap();
        let after = driver.used(talk.context());
        assert!(after <= plan.after, "{after} is more than the {} of the plan", plan.after);
        (talk.show(), after <= driver.marks().target)
    }

    fn check(build: impl FnOnce(&mut Talk), window: u64, want: &str) {
        let mut talk = Talk::new();
        build(&mut talk);
        assert_eq!(trimmed(&mut talk, window), (want.to_owned(), true));
        // Once is enough.
        assert_eq!(trimmed(&mut talk, window).0, want);
    }

    /// Found by chance by `whatever_happens_the_context_stays_whole`.
    #[test]
    fn a_note_that_weighs_more_than_what_it_stands_for_is_not_written() {
        let mut talk = Talk::new();
        talk.push(Message::reminder("environment"));
        talk.prompt(167).prompt(100).reply(6);
        let driver = driver(8_192, |_| {});
        let plan = plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], 200);
        assert_eq!(plan, Plan { after: driver.used(talk.context()), ..Plan::default() });
    }

    /// Found by chance by `whatever_happens_the_context_stays_whole`: a marker names a file, and its path may be long.
    #[test]
    fn a_marker_that_weighs_more_than_what_it_cuts_is_not_written() {
        for tokens in [115, 194, 300, 1_000] {
            let mut talk = Talk::within(&["long"; 95].join("/"));
            talk.prompt(tokens);
            let driver = driver(8_192, |_| {});
            let before = driver.used(talk.context());
            let plan = plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], 200);
            apply::trim(&mut talk.session, &plan, before).unwrap();
            let after = driver.used(talk.context());
            assert!(after <= plan.after.min(before), "{before} to {after}, and {} by the plan", plan.after);
        }
    }

    /// Found by the lab: a request of 32,181 tokens in a window of 32,000.
    #[test]
    fn a_provider_that_counts_less_than_the_estimate_stops_no_drop() {
        let mut talk = Talk::new();
        (0..30).for_each(|_| _ = talk.prompt(500).reply(500));
        // Reasoning is signed, so the last round stays whole: it alone is estimated at more than the provider counted.
        let thought = Block::Thinking { text: text(5_000), wire: None };
        let usage = Some(Usage { input: 8_000, ..Usage::default() });
        talk.prompt(10).push(Message { usage, ..Message::reply(vec![thought, Block::text("ok")]) });
        talk.prompt(10);
        let driver = driver(32_000, |_| {});
        let plan = plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], 10_000);
        let used = driver.used(talk.context());
        assert!(plan.dropped == 60 && plan.after > used, "{} messages dropped, {used} to {}", plan.dropped, plan.after);
    }

    #[test]
    fn clears_then_clips_then_drops() {
        check(|talk| _ = talk.prompt(100).reply(5), 8_192, "prompt reply");
        check(
            |talk| _ = talk.prompt(10).round("Read", &[3_000]).round("Read", &[100]).reply(1),
            8_192,
            "prompt c1 x1 c2 r2 reply",
        );
        // The result that the model has not read yet, one of a tool that must not be cleared, a giant prompt.
        check(|talk| _ = talk.prompt(10).round("Read", &[30_000]), 8_192, "prompt c1 ~1");
        check(|talk| _ = talk.prompt(10).round("Ask", &[30_000]).reply(1), 8_192, "prompt c1 ~1 reply");
        check(|talk| _ = talk.prompt(30_000), 8_192, "~text");
        let chat = |talk: &mut Talk| (0..30).for_each(|_| _ = talk.prompt(100).reply(200));
        check(
            chat,
            8_192,
            "attachment(reminder) compactsummary prompt reply prompt reply prompt reply prompt reply prompt reply prompt reply",
        );
        // Arguments cannot be cut: the round goes as a whole.
        check(
            |talk| {
                talk.prompt(10).reply(6_000);
                let thought = Block::Thinking { text: text(6_000), wire: None };
                talk.push(Message::reply(vec![thought, Block::text("so")]));
                talk.prompt(10);
            },
            8_192,
            "attachment(reminder) compactsummary prompt",
        );
        check(
            |talk| {
                let media = |n| Media { media_type: "image/png".into(), blob: BlobId(format!("{n}")), bytes: 9 };
                let blocks = (0..20).map(|n| Block::Media(media(n))).collect();
                talk.push(Message { blocks, ..Message::prompt("") });
            },
            32_000,
            &["~text+".repeat(15), "media+media+media+media+media".into()].concat(),
        );
    }

    #[test]
    fn a_note_carries_the_users_words_and_earlier_summaries() {
        let mut talk = Talk::new();
        talk.push(Message::prompt("Fix the parser."));
        (0..30).for_each(|_| _ = talk.reply(200).prompt(100));
        trimmed(&mut talk, 8_192);
        let first = talk.context().messages()[1].text();
        assert!(first.contains("without a summary"), "{first}");
        (0..30).for_each(|_| _ = talk.reply(200).prompt(100));
        trimmed(&mut talk, 8_192);
        let second = talk.context().messages()[1].text();
        assert!(second.contains("What was known about the conversation before that"), "{second}");
        assert!(tokens::text(&second) < 3_000);
    }

    #[test]
    fn texts_are_shortened_on_character_boundaries() {
        for text in ["日本語".repeat(500), "x".repeat(3_000), "word ".repeat(900), "é".into()] {
            for tokens in [0, 1, 10, 100, 1_000, 100_000] {
                let short = shortened(&text, tokens);
                assert!(tokens::text(&short) <= tokens + 6 || short == text, "{tokens}: {short}");
            }
        }
    }
}
