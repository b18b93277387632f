//! What `/plugin` and `cocode plugin` say of plugins.

use std::fmt::Write;

use crate::plugins::{From, Row, Standing};
use crate::stdx::ansi::visible;

/// The list as Markdown.
pub(super) fn words(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No plugins. `cocode plugin install <folder>` adds one, and `--plugin-dir` tries one out.".into();
    }
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "- **{}** {}", row.id, standing(row));
        for line in more(row) {
            let _ = writeln!(text, "  - {line}");
        }
    }
    visible(text.trim_end())
}

/// The list for a terminal, a plugin a line.
pub fn list(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.id.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{:<width$}  {}", row.id, standing(row));
        for fault in &row.faults {
            let _ = writeln!(text, "    {fault}");
        }
    }
    visible(&text)
}

/// All that is known of one.
pub fn details(row: &Row) -> String {
    let mut text = format!("{}: {}\n", row.id, standing(row));
    if let Some(about) = &row.description {
        let _ = writeln!(text, "{about}");
    }
    let _ = writeln!(text, "folder: {}", row.install_path.display());
    for line in more(row) {
        let _ = writeln!(text, "- {line}");
    }
    visible(&text)
}

/// Whether it is loaded, in words.
fn standing(row: &Row) -> String {
    let from = match row.from {
        From::Flag => "by --plugin-dir",
        From::Installed => "installed",
        From::ClaudeCode => "installed by Claude Code",
        From::Skills => "among your skills",
        From::Project => "of this project",
    };
    let is = match &row.standing {
        Standing::On if row.trusted || row.runs.is_empty() => "on".to_owned(),
        Standing::On => "on, but what it runs is not trusted yet".to_owned(),
        Standing::Off => "off".to_owned(),
        Standing::Waiting => "not loaded: not trusted yet".to_owned(),
        Standing::Unusable => "not loaded: its files are broken".to_owned(),
        Standing::Shadowed(by) => format!("not loaded: {by} has its name"),
    };
    let version = row.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{is} ({from}{version})")
}

fn more(row: &Row) -> Vec<String> {
    let mut lines = Vec::new();
    if !row.skills.is_empty() {
        lines.push(format!(
            "skills: {}",
            row.skills.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(", ")
        ));
    }
    lines.extend(row.runs.iter().map(|line| format!("runs: {line}")));
    lines.extend(row.not_used.iter().cloned());
    lines.extend(row.faults.iter().cloned());
    lines
}
