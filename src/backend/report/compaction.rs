//! What compactions did, in words.

use crate::protocol::Receipt;
use crate::protocol::report::Freed;
use crate::stdx::text::{short, truncate};

/// What a screen adds to a receipt that it has drawn.
pub const SUMMARIZED: &str = "The transcript (Ctrl+O) shows the summary; `/compact undo` reverts it.";

/// Characters of a hook's words in a receipt.
const MOST_HOOK: usize = 200;

fn one_line(text: &str, most: usize) -> String {
    truncate(&text.split_whitespace().collect::<Vec<_>>().join(" "), most).into_owned()
}

pub(super) fn freed(freed: &Freed) -> String {
    match freed {
        Freed::Summarized { receipt } => {
            format!("{} · {}\n\n{SUMMARIZED}", title(receipt), lines(receipt).join(" · "))
        }
        Freed::Cleared { results, tokens, kept } => {
            let kept = match kept {
                0 => String::new(),
                kept => format!(" {kept} were kept because their files could not be written."),
            };
            let results = if *results == 1 { "1 tool result".to_owned() } else { format!("{results} tool results") };
            format!("Cleared {results}, about {} tokens.{kept}", short(*tokens))
        }
        Freed::Undone { tokens, plan } => {
            let what = if *plan { "The fresh start with the plan is undone." } else { "Compaction undone." };
            format!("{what} The conversation is back to about {} tokens.", short(*tokens))
        }
        Freed::Refused { why } => why.clone(),
    }
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
        (kept.tasks as u64, "background task", "background tasks"),
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
    lines.extend(receipt.hooks.iter().map(|said| format!("PreCompact hook: {}", one_line(said, MOST_HOOK))));
    lines
}
