//! What a compaction did, for people: counted before its boundary is committed.

use crate::message::Kind;
use crate::session::Context;
use crate::session::entry::{Boundary, Dropped, Kept, Receipt};
use crate::stdx::text::short;

/// Counts what a boundary takes away and what it leaves. Costs and time are the caller's to add.
pub fn of(context: &Context, boundary: &Boundary) -> Receipt {
    let (mut kept, mut dropped) = (Kept::default(), Dropped::default());
    for shown in context.shown() {
        if !shown.lead && shown.seq >= boundary.keep_from {
            kept.messages += 1;
            continue;
        }
        let count = match shown.message.kind {
            Kind::Prompt => &mut dropped.prompts,
            Kind::Reply => &mut dropped.replies,
            Kind::ToolResult | Kind::ToolResultArchived => &mut dropped.results,
            Kind::ToolSummary | Kind::CompactSummary | Kind::Attachment(_) | Kind::Skill | Kind::Notice => {
                &mut dropped.others
            }
        };
        *count += 1;
    }
    Receipt {
        tier: boundary.tier.clone(),
        trigger: boundary.trigger,
        before: boundary.pre_tokens,
        after: boundary.post_tokens,
        kept,
        dropped,
        ..Receipt::default()
    }
}

/// The receipt in words, one fact a part.
pub fn words(receipt: &Receipt) -> String {
    format!("{} · {}", title(receipt), lines(receipt).join(" · "))
}

/// What happened, in one line: how many messages left, and which tier did it.
pub fn title(receipt: &Receipt) -> String {
    let tier = receipt.tier.replace('_', " ");
    match receipt.dropped.messages() {
        0 => format!("Contents cleared or clipped · {tier}"),
        1 => format!("Compacted 1 message · {tier}"),
        count => format!("Compacted {count} messages · {tier}"),
    }
}

/// Its facts: sizes, what left, what stays, what it took.
pub fn lines(receipt: &Receipt) -> Vec<String> {
    let Receipt { before, after, kept, dropped, .. } = receipt;
    let saved = before.saturating_sub(*after);
    let mut lines = vec![format!("{} → {} tokens ({} saved)", short(*before), short(*after), short(saved))];
    let counts = |counts: &[(u64, &str, &str)]| -> Vec<String> {
        let told = counts.iter().filter(|(count, ..)| *count > 0);
        told.map(|(count, one, more)| format!("{count} {}", if *count == 1 { one } else { more })).collect()
    };
    let left = counts(&[
        (dropped.prompts, "prompt", "prompts"),
        (dropped.replies, "reply", "replies"),
        (dropped.results, "result", "results"),
        (dropped.others, "other", "others"),
    ]);
    if !left.is_empty() {
        lines.push(format!("dropped: {}", left.join(", ")));
    }
    let mut stays = counts(&[
        (kept.messages, "message", "messages"),
        (kept.files, "file", "files"),
        (kept.todos, "todo", "todos"),
        (kept.skills, "skill", "skills"),
    ]);
    if kept.plan {
        stays.push("the plan".into());
    }
    lines.push(format!("kept: {}", if stays.is_empty() { "nothing else".into() } else { stays.join(", ") }));
    let cost = receipt.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.4}"));
    let time = (receipt.millis >= 100).then(|| format!("{:.1} s", receipt.millis as f64 / 1000.0));
    let took: Vec<String> = cost.into_iter().chain(time).collect();
    if !took.is_empty() {
        lines.push(format!("took: {}", took.join(", ")));
    }
    lines
}
