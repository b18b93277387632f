//! What a compaction did, for people: counted before its boundary is committed.

use crate::message::Kind;
use crate::session::Context;
use crate::session::entry::{Boundary, Dropped, Kept, Receipt};

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
            Kind::ToolSummary | Kind::CompactSummary | Kind::Attachment | Kind::Skill | Kind::Notice => {
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
    let Receipt { before, after, kept, dropped, .. } = receipt;
    let mut parts = vec![
        format!("{} messages compacted ({})", dropped.messages(), tier(&receipt.tier)),
        format!("{before} → {after} tokens ({} saved)", before.saturating_sub(*after)),
    ];
    let mut stays = vec![format!("{} messages", kept.messages)];
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            stays.push(format!("{count} {what}"));
        }
    };
    note(kept.files, "files");
    note(kept.todos, "todos");
    note(u64::from(kept.plan), "plan");
    note(kept.skills, "skills");
    parts.push(format!("kept {}", stays.join(", ")));
    if let Some(cost) = receipt.cost_usd.filter(|cost| *cost > 0.0) {
        parts.push(format!("${cost:.4}"));
    }
    if receipt.millis >= 100 {
        parts.push(format!("{:.1} s", receipt.millis as f64 / 1000.0));
    }
    parts.join(" · ")
}

fn tier(name: &str) -> &str {
    match name {
        "session_memory" => "with the notes of the session",
        "remote" => "by the provider",
        "full" => "with a summary",
        "trim" => "without a summary",
        other => other,
    }
}
