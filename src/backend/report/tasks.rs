//! Commands in the background, in words.

use std::fmt::Write;
use std::time::Duration;

use super::fenced;
use crate::protocol::report::TaskRow;
use crate::stdx::text;

pub(super) fn tasks(rows: &[TaskRow]) -> String {
    if rows.is_empty() {
        return "No command has run in the background.".into();
    }
    let running = rows.iter().filter(|row| row.ended.is_none()).count();
    let mut text = format!("In the background: {running} running, {} ended", rows.len() - running);
    let code = |text: &str| format!("`{}`", text.replace('`', "'"));
    for row in rows {
        let how = row.ended.as_deref().unwrap_or("is running");
        let time = row.millis.map(|millis| text::duration(Duration::from_millis(millis)));
        let time = match (time, row.ended.is_some()) {
            (None, _) => String::new(),
            (Some(time), true) => format!(" after {time}"),
            (Some(time), false) => format!(" for {time}"),
        };
        let _ = write!(text, "\n\n**{}** {how}{time}: {}", row.task, code(&row.title));
        match row.tail.is_empty() {
            true => text.push_str("  \nIt has written nothing."),
            false => {
                let _ = write!(text, "\n\n{}", fenced(&row.tail.join("\n")));
            }
        }
    }
    if let Some(row) = rows.iter().find(|row| row.ended.is_none()) {
        let folder = row.output.parent().unwrap_or(&row.output).display();
        let _ =
            write!(text, "\n\n`/tasks stop {}` stops it. The output is in {}.", row.task, code(&folder.to_string()));
    }
    text
}
