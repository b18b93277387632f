//! What a compaction did: counted before its boundary is committed.

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
