//! Colors code line by line, carrying the parser's state on, so that a block may stream.
//!
//! Grammars are loaded on first use. A block is coloured up to a number of lines and bytes; what follows is plain. The
//! colors of a line depend on neither theme nor width, so that they can be found beside the drawing (`beside`).

pub mod beside;

use std::ops::Range;
use std::sync::LazyLock;

use ratatui::style::Style;
use ratatui::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::tui::theme::{Theme, Tokens};

/// Most lines of a block that are coloured.
const MAX_LINES: usize = 2_000;
/// Most bytes of a block that are coloured.
const MAX_BYTES: usize = 200_000;
/// Longest line that is coloured, in bytes.
const MAX_LINE: usize = 4_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// A part of code that has its own look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Tag,
    Inserted,
    Deleted,
}

/// The first name that a scope begins with decides.
const SCOPES: &[(&str, Token)] = &[
    ("comment", Token::Comment),
    ("punctuation.definition.comment", Token::Comment),
    ("string", Token::String),
    ("punctuation.definition.string", Token::String),
    ("constant.character.escape", Token::Number),
    ("constant.other.symbol", Token::String),
    ("constant", Token::Number),
    ("keyword.operator.word", Token::Keyword),
    ("keyword.operator.logical.python", Token::Keyword),
    ("keyword.operator", Token::Plain),
    ("keyword", Token::Keyword),
    ("storage.type.numeric", Token::Number),
    ("storage", Token::Keyword),
    ("variable.language", Token::Keyword),
    ("variable.function", Token::Function),
    ("entity.name.function", Token::Function),
    ("support.function", Token::Function),
    ("entity.name.tag", Token::Tag),
    ("entity.other.attribute-name", Token::Function),
    ("entity.name.namespace", Token::Plain),
    ("entity.name.label", Token::Keyword),
    ("entity.name.section", Token::Function),
    ("entity.name", Token::Type),
    ("entity.other.inherited-class", Token::Type),
    ("support.type.property-name", Token::Function),
    ("support", Token::Type),
    ("meta.mapping.key", Token::Function),
    ("markup.inserted", Token::Inserted),
    ("markup.deleted", Token::Deleted),
    ("markup.heading", Token::Function),
];

static TABLE: LazyLock<Vec<(Scope, Token)>> =
    LazyLock::new(|| SCOPES.iter().filter_map(|(name, token)| Some((Scope::new(name).ok()?, *token))).collect());

/// How a line of code is to look; nothing of it is known: plain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs(Vec<(Range<usize>, Token)>);

impl Runs {
    /// The line in a theme's colors. A line that continues after what these were made of continues plain.
    pub fn spans(&self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        if line.is_empty() {
            return Vec::new();
        }
        if self.0.is_empty() || theme.syntax.is_none() {
            return vec![Span::styled(line.to_string(), theme.code)];
        }
        let spans = self.0.iter().filter_map(|(range, token)| Some((line.get(range.clone())?, style(*token, theme))));
        let end = self.0.last().map_or(0, |(range, _)| range.end);
        let rest = line.get(end..).filter(|rest| !rest.is_empty()).map(|rest| (rest, theme.tokens.plain));
        spans.chain(rest).map(|(text, style)| Span::styled(text.to_string(), style)).collect()
    }
}

/// The name of the language that an info string gives; none where nothing is to be coloured.
pub fn language<'a>(info: &'a str, theme: &Theme) -> Option<&'a str> {
    let name = info.split([' ', ',', '{', ':']).next().unwrap_or_default().trim_start_matches('.');
    (!name.is_empty() && theme.syntax.is_some()).then_some(name)
}

/// Colors the lines of one block, in order.
#[derive(Debug, Clone)]
pub struct Highlighter {
    /// None: no such language, or the limits were reached.
    state: Option<Box<(ParseState, ScopeStack)>>,
    lines: usize,
    bytes: usize,
}

impl Highlighter {
    /// For a language's name or extension, as the info string of a fence gives it (`rust`, `ts`, `rust,ignore`).
    pub fn for_language(info: &str, theme: &Theme) -> Highlighter {
        language(info, theme).map_or_else(Highlighter::plain, Highlighter::named)
    }

    /// For a language's name or extension alone.
    fn named(name: &str) -> Highlighter {
        Highlighter::of(SYNTAXES.find_syntax_by_token(alias(name)))
    }

    /// Colors nothing.
    pub fn plain() -> Highlighter {
        Highlighter { state: None, lines: 0, bytes: 0 }
    }

    fn of(syntax: Option<&SyntaxReference>) -> Highlighter {
        let syntax = syntax.filter(|syntax| syntax.name != "Plain Text");
        let state = syntax.map(|syntax| Box::new((ParseState::new(syntax), ScopeStack::new())));
        Highlighter { state, lines: 0, bytes: 0 }
    }

    /// Colors the next line, given without its newline.
    pub fn line(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        self.runs(line).spans(line, theme)
    }

    fn runs(&mut self, line: &str) -> Runs {
        self.lines += 1;
        self.bytes += line.len();
        if self.lines > MAX_LINES || self.bytes > MAX_BYTES || line.len() > MAX_LINE {
            // A skipped line would leave the parser in the wrong state: the rest stays plain.
            self.state = None;
        }
        let Some(state) = &mut self.state else { return Runs::default() };
        let (parser, stack) = &mut **state;
        let Ok(ops) = parser.parse_line(&format!("{line}\n"), &SYNTAXES) else {
            self.state = None;
            return Runs::default();
        };
        let mut runs: Vec<(Range<usize>, Token)> = Vec::new();
        let mut from = 0;
        let mut token = look(stack);
        for (at, op) in &ops {
            let at = (*at).min(line.len());
            push(&mut runs, from..at, token);
            from = from.max(at);
            if stack.apply(op).is_err() {
                break;
            }
            token = look(stack);
        }
        push(&mut runs, from..line.len(), token);
        Runs(runs)
    }
}

/// Adds a run to the line, to its last span where the look is the same.
fn push(spans: &mut Vec<(Range<usize>, Token)>, range: Range<usize>, token: Token) {
    if range.start >= range.end {
        return;
    }
    match spans.last_mut() {
        Some((last, same)) if *same == token => last.end = range.end,
        _ => spans.push((range, token)),
    }
}

/// Fence names that no grammar goes by.
fn alias(name: &str) -> &str {
    match name {
        "shell" | "console" | "shell-session" | "zsh" => "sh",
        "jsonc" | "json5" => "json",
        "golang" => "go",
        other => other,
    }
}

/// The innermost scope that has a look decides.
fn look(stack: &ScopeStack) -> Token {
    let known = |scope: &Scope| TABLE.iter().find(|(name, _)| name.is_prefix_of(*scope)).map(|(_, token)| *token);
    stack.as_slice().iter().rev().find_map(known).unwrap_or(Token::Plain)
}

fn style(token: Token, theme: &Theme) -> Style {
    let Tokens { plain, comment, string, number, keyword, function, kind, tag } = &theme.tokens;
    *match token {
        Token::Plain => plain,
        Token::Comment => comment,
        Token::String => string,
        Token::Number => number,
        Token::Keyword => keyword,
        Token::Function => function,
        Token::Type => kind,
        Token::Tag => tag,
        Token::Inserted => &theme.added,
        Token::Deleted => &theme.removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(info: &str, code: &str, want: &[(&str, Token)]) {
        let theme = Theme::dark();
        let mut highlighter = Highlighter::for_language(info, &theme);
        let mut spans = Vec::new();
        for line in code.lines() {
            spans = highlighter.line(line, &theme);
        }
        let got: Vec<(&str, Style)> = spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        let want: Vec<(&str, Style)> = want.iter().map(|(text, token)| (*text, style(*token, &theme))).collect();
        assert_eq!(got, want, "{info}: {code}");
    }

    #[test]
    fn colours_by_language() {
        use Token::*;
        check(
            "rust",
            "let x = \"a\"; // c",
            &[("let", Keyword), (" x = ", Plain), ("\"a\"", String), ("; ", Plain), ("// c", Comment)],
        );
        check("rust,ignore", "/* a\nb */ 1", &[("b */", Comment), (" ", Plain), ("1", Number)]);
        check(
            "python",
            "def f(): pass",
            &[("def", Keyword), (" ", Plain), ("f", Function), ("(): ", Plain), ("pass", Keyword)],
        );
    }

    #[test]
    fn unknown_languages_and_mono_are_plain() {
        let theme = Theme::dark();
        let mono = Theme::load("mono").expect("ships");
        for (info, theme) in [("nosuchlanguage", &theme), ("", &theme), ("rust", &mono)] {
            let spans = Highlighter::for_language(info, theme).line("let x", theme);
            assert_eq!(spans, [Span::styled("let x", theme.code)], "{info}");
        }
    }

    #[test]
    fn limits_end_the_colours_not_the_text() {
        let theme = Theme::dark();
        let mut highlighter = Highlighter::for_language("rust", &theme);
        let long = "x".repeat(MAX_LINE + 1);
        assert_eq!(highlighter.line(&long, &theme), [Span::styled(long.clone(), theme.code)]);
        assert_eq!(highlighter.line("let", &theme), [Span::styled("let", theme.code)]);
    }
}
