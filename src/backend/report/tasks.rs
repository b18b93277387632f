//! What runs and has run in the background, in words.

use std::fmt::Write;
use std::time::Duration;

use super::fenced;
use crate::protocol::report::{Load, TaskRow};
use crate::session::entry::TaskSort;
use crate::stdx::text;

pub(super) fn tasks(rows: &[TaskRow]) -> String {
    if rows.is_empty() {
        return "Nothing has run in the background.".into();
    }
    let running = rows.iter().filter(|row| row.ended.is_none()).count();
    let mut text = format!("In the background: {running} running, {} ended", rows.len() - running);
    let code = |text: &str| format!("`{}`", text.replace('`', "'"));
    for row in rows {
        let how = row.ended.as_deref().unwrap_or(if row.millis.is_some() { "has been running" } else { "is running" });
        let time = row.millis.map(|millis| text::duration(Duration::from_millis(millis)));
        let time = match (time, row.ended.is_some()) {
            (None, _) => String::new(),
            (Some(time), true) => format!(" after {time}"),
            (Some(time), false) => format!(" for {time}"),
        };
        let of = row.owner.as_ref().map(|owner| format!(" (of {owner})")).unwrap_or_default();
        let load = load(&row.load);
        let load = if load.is_empty() { load } else { format!("  \n{load}") };
        let _ = write!(text, "\n\n**{}**{of} {how}{time}: {}{load}", row.task, code(&row.title));
        match row.tail.is_empty() {
            true if matches!(row.sort, TaskSort::Agent { .. }) => {}
            true => text.push_str("  \nIt has written nothing."),
            false => {
                let _ = write!(text, "\n\n{}", fenced(&row.tail.join("\n")));
            }
        }
    }
    if let Some(row) = rows.iter().find(|row| row.ended.is_none()) {
        let folder = row.output.parent().unwrap_or(&row.output).display();
        let agent = rows.iter().find(|row| row.ended.is_none() && matches!(row.sort, TaskSort::Agent { .. }));
        let tell = agent.map(|row| format!(" `/tasks tell {} …` sends a message.", row.task)).unwrap_or_default();
        let folder = code(&folder.to_string());
        let _ = write!(text, "\n\n`/tasks stop {}` stops it.{tell} The output is in {folder}.", row.task);
    }
    text
}

/// `Grep(parse) · 3 calls · 12.3k tokens · $0.02`.
pub fn load(load: &Load) -> String {
    let Load { doing, tools, tokens, usd } = load;
    let calls = match tools {
        0 => String::new(),
        1 => "1 call".to_owned(),
        tools => format!("{tools} calls"),
    };
    let tokens = if *tokens > 0 { format!("{} tokens", text::short(*tokens)) } else { String::new() };
    let usd = if *usd > 0.0 { format!("${usd:.2}") } else { String::new() };
    let parts = [text::clean_line(doing), calls, tokens, usd];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}
