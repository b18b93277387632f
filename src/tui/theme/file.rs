//! Reads themes: the shipped ones by name, and text in the same format.

use std::collections::BTreeMap;
use std::str::FromStr;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use super::{Depth, Theme, Tokens};
use crate::stdx::nearest;

/// The shipped themes.
const SHIPPED: &[(&str, &str)] = &[
    ("dark", include_str!("../../../assets/themes/dark.toml")),
    ("light", include_str!("../../../assets/themes/light.toml")),
    ("terminal", include_str!("../../../assets/themes/terminal.toml")),
    ("mono", include_str!("../../../assets/themes/mono.toml")),
];

type Field = fn(&mut Theme) -> &mut Style;

/// Every style of a theme by its name in the file; tokens have a dot.
pub(super) const STYLES: &[(&str, Field)] = &[
    ("text", |theme| &mut theme.text),
    ("dim", |theme| &mut theme.dim),
    ("accent", |theme| &mut theme.accent),
    ("prompt", |theme| &mut theme.prompt),
    ("thinking", |theme| &mut theme.thinking),
    ("success", |theme| &mut theme.success),
    ("warning", |theme| &mut theme.warning),
    ("error", |theme| &mut theme.error),
    ("heading", |theme| &mut theme.heading),
    ("code", |theme| &mut theme.code),
    ("link", |theme| &mut theme.link),
    ("quote", |theme| &mut theme.quote),
    ("border", |theme| &mut theme.border),
    ("selected", |theme| &mut theme.selected),
    ("spinner", |theme| &mut theme.spinner),
    ("added", |theme| &mut theme.added),
    ("removed", |theme| &mut theme.removed),
    ("added_word", |theme| &mut theme.added_word),
    ("removed_word", |theme| &mut theme.removed_word),
    ("mode_default", |theme| &mut theme.mode_default),
    ("mode_accept_edits", |theme| &mut theme.mode_accept_edits),
    ("mode_plan", |theme| &mut theme.mode_plan),
    ("mode_bypass", |theme| &mut theme.mode_bypass),
    ("sandbox", |theme| &mut theme.sandbox),
    ("tokens.plain", |theme| &mut theme.tokens.plain),
    ("tokens.comment", |theme| &mut theme.tokens.comment),
    ("tokens.string", |theme| &mut theme.tokens.string),
    ("tokens.number", |theme| &mut theme.tokens.number),
    ("tokens.keyword", |theme| &mut theme.tokens.keyword),
    ("tokens.function", |theme| &mut theme.tokens.function),
    ("tokens.type", |theme| &mut theme.tokens.kind),
    ("tokens.tag", |theme| &mut theme.tokens.tag),
];

/// Why a theme cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("no theme {name}; the themes are {known}")]
    Unknown { name: String, known: String },
    #[error("line {line}: {problem}")]
    Syntax { line: usize, problem: String },
    #[error("there is no style {name:?}{}", meant(name))]
    Style { name: String },
    #[error(
        "{style}: cannot read {word:?}; write a color, bold, italic, underline, dim, reverse, strike, or `on` color"
    )]
    Word { style: String, word: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// A theme of one's own is called as its file.
    #[serde(default)]
    name: String,
    /// The shipped theme that says what this one leaves out.
    base: Option<String>,
    highlight: Option<bool>,
    #[serde(default)]
    styles: BTreeMap<String, String>,
    #[serde(default)]
    tokens: BTreeMap<String, String>,
}

impl Theme {
    /// Reads a shipped theme: `dark`, `light`, `terminal` or `mono`.
    ///
    /// # Errors
    /// `Unknown` with the names there are.
    pub fn load(name: &str) -> Result<Theme, ThemeError> {
        match SHIPPED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Theme::parse(text),
            None => {
                let known: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                Err(ThemeError::Unknown { name: name.to_string(), known: known.join(", ") })
            }
        }
    }

    /// The theme of that name for a terminal of that many colors: few colors have themes of their own, which say more than
    /// reduced ones. `own` is the text of a theme of the user's own.
    ///
    /// # Errors
    /// There is no such theme, or the user's own cannot be read.
    pub fn for_terminal(name: &str, own: Option<&str>, depth: Depth) -> Result<Theme, ThemeError> {
        let theme = match (depth, own) {
            (Depth::Mono, _) => Theme::load("mono")?,
            (_, Some(text)) => Theme { name: name.to_owned(), ..Theme::parse(text)? },
            (Depth::Ansi16, None) => Theme::load("terminal")?,
            (Depth::TrueColor | Depth::Indexed, None) => Theme::load(name)?,
        };
        Ok(theme.degrade(depth))
    }

    /// Reads a theme from TOML.
    ///
    /// # Errors
    /// Names the style and the word that cannot be read.
    pub fn parse(text: &str) -> Result<Theme, ThemeError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            ThemeError::Syntax { line: before.matches('\n').count() + 1, problem: error.message().replace('\n', " ") }
        })?;
        let mut theme = match &file.base {
            Some(base) => Theme { name: file.name.clone(), ..Theme::load(base)? },
            None => Theme::plain(file.name.clone()),
        };
        if let Some(highlight) = file.highlight {
            theme.syntax = highlight.then_some(file.name);
        }
        let tokens = file.tokens.iter().map(|(name, style)| (format!("tokens.{name}"), style));
        for (name, style) in file.styles.iter().map(|(name, style)| (name.clone(), style)).chain(tokens) {
            let Some((_, field)) = STYLES.iter().find(|(known, _)| *known == name) else {
                return Err(ThemeError::Style { name });
            };
            let style = parse_style(style).map_err(|word| ThemeError::Word { style: name, word })?;
            *field(&mut theme) = style;
        }
        Ok(theme)
    }

    fn plain(name: String) -> Theme {
        let none = Style::new();
        Theme {
            name,
            text: none,
            dim: none,
            accent: none,
            prompt: none,
            thinking: none,
            success: none,
            warning: none,
            error: none,
            heading: none,
            code: none,
            link: none,
            quote: none,
            border: none,
            selected: none,
            spinner: none,
            added: none,
            removed: none,
            added_word: none,
            removed_word: none,
            mode_default: none,
            mode_accept_edits: none,
            mode_plan: none,
            mode_bypass: none,
            sandbox: none,
            syntax: None,
            tokens: Tokens::default(),
            depth: Depth::TrueColor,
        }
    }
}

/// Names the style that was probably meant.
fn meant(name: &str) -> String {
    let known = STYLES.iter().map(|(known, _)| *known);
    nearest::nearest(name, known).map(|known| format!("; did you mean {known:?}?")).unwrap_or_default()
}

/// Reads a style; the error is the word that it stumbled over.
fn parse_style(text: &str) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underline" => style.add_modifier(Modifier::UNDERLINED),
            "dim" => style.add_modifier(Modifier::DIM),
            "reverse" => style.add_modifier(Modifier::REVERSED),
            "strike" => style.add_modifier(Modifier::CROSSED_OUT),
            "on" => {
                let colour = words.next().ok_or("on")?;
                style.bg(Color::from_str(colour).map_err(|_| colour.to_string())?)
            }
            colour => style.fg(Color::from_str(colour).map_err(|_| colour.to_string())?),
        };
    }
    Ok(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_themes_parse_under_their_own_name() {
        for (name, _) in SHIPPED {
            assert_eq!(Theme::load(name).map(|theme| theme.name).as_deref(), Ok(*name));
        }
        assert!(matches!(Theme::load("neon"), Err(ThemeError::Unknown { .. })));
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        assert_eq!(crate::config::themes::SHIPPED, ["auto"].into_iter().chain(names).collect::<Vec<_>>()[..]);
    }

    #[test]
    fn styles_read_as_written() {
        let check = |text: &str, want: Result<Style, &str>| {
            assert_eq!(parse_style(text), want.map_err(String::from), "{text}");
        };
        check("", Ok(Style::new()));
        check("#102030 bold", Ok(Style::new().fg(Color::Rgb(16, 32, 48)).bold()));
        check("red on 17", Ok(Style::new().fg(Color::Red).bg(Color::Indexed(17))));
        check("bold glowing", Err("glowing"));
        check("red on", Err("on"));
    }

    #[test]
    fn a_theme_of_ones_own_begins_with_a_shipped_one() {
        let own = Theme::parse("base = \"dark\"\n[styles]\naccent = \"red\"\n").expect("is a theme");
        let dark = Theme::load("dark").expect("ships");
        assert_eq!(own, Theme { name: String::new(), accent: Style::new().fg(Color::Red), ..dark });
    }

    #[test]
    fn mistakes_are_named_in_one_line() {
        let check = |text: &str, want: &str| {
            let got = Theme::parse(text).map_or_else(|error| error.to_string(), |_| "a theme".to_owned());
            assert!(got.starts_with(want) && !got.contains('\n'), "{text:?}: {got:?}");
        };
        check("accent = \"red\"", "line 1: unknown field `accent`, expected one of");
        check("base = \"dark\"\n\n[styles]\naccent = \"red", "line 4: ");
        check("[styles]\nacent = \"red\"", "there is no style \"acent\"; did you mean \"accent\"?");
        check("[styles]\naccent = \"reddish\"", "accent: cannot read \"reddish\"; write a color");
        check("base = \"drak\"", "no theme drak; the themes are dark, light, terminal, mono");
    }

    #[test]
    fn few_colours_mean_few_colours() {
        for (name, _) in SHIPPED {
            let mut mono = Theme::load(name).expect("ships").degrade(Depth::Mono);
            let mut few = Theme::load(name).expect("ships").degrade(Depth::Ansi16);
            for (_, field) in STYLES {
                let style = *field(&mut mono);
                assert_eq!((style.fg, style.bg), (None, None));
                let style = *field(&mut few);
                for colour in [style.fg, style.bg].into_iter().flatten() {
                    assert!(!matches!(colour, Color::Rgb(..) | Color::Indexed(_)), "{name}: {colour:?}");
                }
            }
        }
    }
}
