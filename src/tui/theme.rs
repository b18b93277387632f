//! Named styles. Code names what a thing is; the theme says how it looks.

use ratatui::style::{Color, Modifier, Style};

/// Every style that the screen uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub name: String,
    pub text: Style,
    /// Secondary text: hints, paths, times.
    pub dim: Style,
    pub accent: Style,
    /// The user's own words in the transcript.
    pub prompt: Style,
    pub thinking: Style,
    pub success: Style,
    pub warning: Style,
    pub error: Style,
    pub heading: Style,
    pub code: Style,
    pub link: Style,
    pub quote: Style,
    /// Borders of composer and dialogs.
    pub border: Style,
    pub selected: Style,
    pub spinner: Style,
    pub added: Style,
    pub removed: Style,
    /// Changed words inside a changed line.
    pub added_word: Style,
    pub removed_word: Style,
    /// Colours of the permission modes in the status line.
    pub mode_default: Style,
    pub mode_accept_edits: Style,
    pub mode_plan: Style,
    pub mode_bypass: Style,
    /// Name of the syntax theme for highlighting; none draws code in `code` alone.
    pub syntax: Option<String>,
}

impl Theme {
    /// The theme for a dark background with true colour.
    pub fn dark() -> Theme {
        let fg = |color| Style::new().fg(color);
        Theme {
            name: "dark".into(),
            text: Style::new(),
            dim: fg(Color::Rgb(138, 143, 152)),
            accent: fg(Color::Rgb(122, 162, 247)),
            prompt: Style::new().add_modifier(Modifier::BOLD),
            thinking: fg(Color::Rgb(138, 143, 152)).add_modifier(Modifier::ITALIC),
            success: fg(Color::Rgb(126, 200, 120)),
            warning: fg(Color::Rgb(224, 175, 104)),
            error: fg(Color::Rgb(240, 113, 120)),
            heading: fg(Color::Rgb(122, 162, 247)).add_modifier(Modifier::BOLD),
            code: fg(Color::Rgb(180, 200, 240)),
            link: fg(Color::Rgb(122, 162, 247)).add_modifier(Modifier::UNDERLINED),
            quote: fg(Color::Rgb(138, 143, 152)),
            border: fg(Color::Rgb(86, 92, 105)),
            selected: fg(Color::Rgb(122, 162, 247)).add_modifier(Modifier::BOLD),
            spinner: fg(Color::Rgb(187, 154, 247)),
            added: fg(Color::Rgb(126, 200, 120)),
            removed: fg(Color::Rgb(240, 113, 120)),
            added_word: fg(Color::Rgb(220, 255, 220)).bg(Color::Rgb(30, 80, 40)),
            removed_word: fg(Color::Rgb(255, 220, 220)).bg(Color::Rgb(95, 35, 40)),
            mode_default: fg(Color::Rgb(138, 143, 152)),
            mode_accept_edits: fg(Color::Rgb(187, 154, 247)),
            mode_plan: fg(Color::Rgb(115, 208, 200)),
            mode_bypass: fg(Color::Rgb(240, 113, 120)),
            syntax: Some("dark".into()),
        }
    }
}
