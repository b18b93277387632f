//! The page that `?` opens: what every key does, also in questions.

use ratatui::text::{Line, Span};

use super::app::App;
use super::keymap::Action;
use super::paint;
use super::render::Row;
use super::theme::Theme;

/// Keys that nobody binds: those of questions and lists.
const FIXED: &[(&str, &[(&str, &str)])] = &[
    (
        "In a question",
        &[
            ("Tab", "while it waits in one line: open it now"),
            ("1-9", "choose the option with that number"),
            ("y n", "yes; no, and say why"),
            ("Shift+Tab", "yes, and edits no longer ask in this session"),
            ("Left Right", "how long “always” lasts: session, project, me"),
            ("a", "yes to this edit and all others that wait"),
            ("d", "the whole diff"),
            ("Up Down Enter", "choose an option"),
            ("PgUp PgDn Space", "scroll the command, the diff or the plan"),
            ("Esc", "no, without a comment; in a text field: back"),
        ],
    ),
    (
        "When reviewing a plan",
        &[("Tab", "move between the options"), ("e, Ctrl+G", "edit the plan in $EDITOR"), ("c", "copy the plan")],
    ),
    (
        "When the agent asks a question",
        &[
            ("Space", "mark an option, if several are allowed"),
            ("Left Right", "go to another question; answers are kept"),
            ("letters", "on the last option: type your own answer"),
            ("Esc", "decline to answer"),
        ],
    ),
    ("In a list", &[("letters", "filter"), ("Up Down Enter", "choose"), ("Esc", "close")]),
];

/// What the keys that can be bound are for, in the order of the page.
const GROUPS: [&str; 4] = ["Compose", "While the agent works", "Session", "Edit the prompt"];

fn group(action: Action) -> &'static str {
    use Action::*;
    match action {
        Send | Newline | Complete | SearchHistory | Editor | Stash | Up | Down => GROUPS[0],
        SendAfter | Cancel | Interrupt | Background | Transcript | Todos => GROUPS[1],
        Exit | Suspend | Redraw | CycleMode | ThinkMore | ThinkLess | Help | PageUp | PageDown => GROUPS[2],
        _ => GROUPS[3],
    }
}

/// The page, for the screen as it is.
pub(super) fn rows(app: &App) -> Vec<Row> {
    let (theme, width) = (&app.options.theme, app.size.0 as usize);
    let bound = app.options.keymap.rows();
    let of = |group: &str| -> Vec<(&str, &str)> {
        let of_group = Action::ALL.iter().zip(&bound).filter(|(action, _)| self::group(**action) == group);
        of_group.map(|(_, (_, keys, help))| (keys.as_str(), *help)).collect()
    };
    let groups: Vec<(&str, Vec<(&str, &str)>)> = GROUPS.iter().map(|group| (*group, of(group))).collect();
    let tables = || groups.iter().map(|(name, rows)| (*name, rows.as_slice())).chain(FIXED.iter().copied());
    let widest = tables().flat_map(|(_, rows)| rows.iter().map(|(keys, _)| paint::width(keys))).max();
    let column = widest.unwrap_or(0).min(width / 3);
    let mut lines = Vec::new();
    for (at, (title, rows)) in tables().enumerate() {
        if at > 0 {
            lines.push(Line::default());
        }
        lines.push(Line::styled(title, theme.heading));
        rows.iter().for_each(|(keys, help)| row(&mut lines, (keys, help), (column, width), theme));
    }
    lines.push(Line::default());
    let hint = "A backslash before Enter starts a new line. [keys] in config.toml binds other keys.";
    lines.extend(paint::folded(hint, width, theme.dim));
    lines.into_iter().map(Row::from).collect()
}

fn row(lines: &mut Vec<Line<'static>>, (keys, help): (&str, &str), (column, width): (usize, usize), theme: &Theme) {
    let keys = paint::cut(keys, column);
    let gap = " ".repeat(column - paint::width(&keys) + 2);
    for (at, help) in paint::fold(help, width.saturating_sub(column + 2)).into_iter().enumerate() {
        let head = if at == 0 { format!("{keys}{gap}") } else { " ".repeat(column + 2) };
        lines.push(Line::from(vec![Span::styled(head, theme.accent), Span::styled(help, theme.text)]));
    }
}
