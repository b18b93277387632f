//! One word of a shell line: what is literal in it, and what only bash will know.

use std::ops::Range;

use super::braces;

/// A word after quote removal and brace expansion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::permission) struct Word {
    /// As it is in the line, quotes and all.
    pub(in crate::permission) source: String,
    pub(in crate::permission) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::permission) enum Piece {
    Text(String),
    /// Unquoted `*`, `?` or the `[` of a class.
    Glob(char),
    /// `~` alone at the start: the home folder.
    Tilde,
    Dynamic(Expansion),
}

/// What only bash will know: `$x`, `$( … )`, `~user`, `{1..9}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::permission) struct Expansion {
    /// As it is in the line.
    pub(in crate::permission) source: String,
    /// Within double quotes, where nothing is split.
    quoted: bool,
}

/// Stands for an expansion that is one word or a part of it, in [`Word::possible`]. No line that is judged holds it.
pub(in crate::permission) const ONE: char = '\u{1a}';
/// Stands for an expansion that may be any number of words.
pub(in crate::permission) const MANY: char = '\u{1b}';

impl Expansion {
    /// One that is not quoted.
    pub(super) fn of(source: &str) -> Expansion {
        Expansion { source: source.to_owned(), quoted: false }
    }

    /// What a command reads from its input.
    pub(in crate::permission) fn input() -> Expansion {
        Expansion::of("$(cat)")
    }

    /// The variable whose value it is, without any change.
    pub(in crate::permission) fn variable(&self) -> Option<&str> {
        let name = self.source.strip_prefix('$')?;
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        super::parse::is_name(name).then_some(name)
    }

    /// The variable or parameter whose value it is made of: of those forms that are judged none names another.
    pub(in crate::permission) fn base(&self) -> Option<&str> {
        let name = self.source.strip_prefix('$')?;
        let name = name.strip_prefix('{').unwrap_or(name);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match name.find(|c| !plain(c)).unwrap_or(name.len()) {
            0 => name.get(..1),
            end => Some(&name[..end]),
        }
    }

    /// Whether it tells no more of its variable than whether that is empty, where nobody sees the rest.
    pub(in crate::permission) fn keeps_empty(&self) -> bool {
        let rest = self.source.trim_start_matches("${").trim_start_matches('$');
        self.base().filter(|name| super::parse::is_name(name)).is_some_and(|name| {
            let rest = rest[name.len()..].trim_start_matches(':');
            rest.is_empty() || rest.starts_with(['}', '-', '+'])
        })
    }

    /// Whether it is always a part of one word: quoted, or a number.
    pub(in crate::permission) fn is_one(&self) -> bool {
        let inner = self.source.trim_start_matches("${");
        let list = self.source == "$@" || inner.starts_with('@') || inner.contains("[@]");
        self.quoted && !list || self.is_number()
    }

    /// `$?`, `$#`, `$$`, `${#x}`, `$((1 + 1))`, `$(nproc)`: one word that is never empty. `$!` is, until something runs beside us.
    pub(in crate::permission) fn is_number(&self) -> bool {
        let length = self.source.strip_prefix("${#").and_then(|rest| rest.strip_suffix('}'));
        let parameter = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*'));
        matches!(self.source.as_str(), "$?" | "$#" | "$$" | "$(nproc)")
            || length.is_some_and(|name| parameter(name.strip_suffix("[@]").unwrap_or(name)))
            || self.source.starts_with("$((")
    }

    /// Whether it starts with a digit: arithmetic may go below zero, also by growing too large.
    pub(in crate::permission) fn starts_with_digit(&self) -> bool {
        let digits = self.source.bytes().filter(u8::is_ascii_digit).count();
        let counts =
            |inner: &str| !inner.contains("**") && inner.chars().all(|c| c.is_ascii_digit() || " +*/%()".contains(c));
        self.is_number() && self.source.strip_prefix("$((").is_none_or(|inner| digits <= 18 && counts(inner))
    }

    /// Whether it shows nothing but numbers: also `{1..9}`, though not `{a..z}`.
    pub(in crate::permission) fn counts(&self) -> bool {
        let range = self.source.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        self.is_number()
            || range.is_some_and(|range| range.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-')))
    }

    /// Whether it shows digits or nothing.
    pub(in crate::permission) fn shows_number(&self) -> bool {
        self.is_number() || self.source == "$!"
    }
}

/// Something in a word that the parser found to be an expansion, in bytes of the line, with whether it may stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
}

/// A part of a word that bash sees at once.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    Char {
        c: char,
        quoted: bool,
    },
    Dynamic(Expansion),
    /// `""`: makes a word where there is nothing else.
    Nothing,
}

impl Word {
    /// The same word made of other pieces; text beside text is one, and no text adds none.
    pub(in crate::permission) fn with_pieces(&self, pieces: Vec<Piece>) -> Word {
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        let alone = pieces.len() == 1;
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (_, Piece::Text(text)) if text.is_empty() && !alone => {}
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => joined.push(piece),
            }
        }
        Word { source: self.source.clone(), pieces: joined }
    }

    /// The same word where bash takes stars as they are.
    pub(super) fn without_globs(&self) -> Word {
        let plain = |piece: &Piece| match piece {
            Piece::Glob(c) => Piece::Text(c.to_string()),
            piece => piece.clone(),
        };
        self.with_pieces(self.pieces.iter().map(plain).collect())
    }

    /// The value, where nothing in it is left to bash.
    pub(in crate::permission) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                _ => return None,
            }
        }
        Some(text)
    }

    /// The value as far as it is known: globs as written, expansions left out.
    pub(in crate::permission) fn known(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Glob(c) => c.to_string(),
                Piece::Tilde => "~".to_owned(),
                Piece::Dynamic(_) => String::new(),
            })
            .collect()
    }

    /// The literal text that the word surely starts with.
    pub(in crate::permission) fn prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Tilde) => "~",
            _ => "",
        }
    }

    /// What a rule that forbids compares: the value with [`ONE`] and [`MANY`] for what is not known.
    pub(in crate::permission) fn possible(&self) -> String {
        let mark = |expansion: &Expansion| if expansion.is_one() { ONE } else { MANY };
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Glob(c) => c.to_string(),
                Piece::Tilde => "~".to_owned(),
                Piece::Dynamic(expansion) => mark(expansion).to_string(),
            })
            .collect()
    }

    pub(in crate::permission) fn expansions(&self) -> impl Iterator<Item = &Expansion> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Dynamic(expansion) => Some(expansion),
            _ => None,
        })
    }

    /// The word with more behind it.
    pub(in crate::permission) fn with(&self, more: &[Piece]) -> Word {
        let mut pieces = self.pieces.clone();
        for piece in more {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(more),
                _ => pieces.push(piece.clone()),
            }
        }
        Word { source: self.source.clone(), pieces }
    }

    pub(in crate::permission) fn is_dynamic(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Dynamic(_)))
    }

    pub(in crate::permission) fn has_glob(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)))
    }

    /// Without quotes where they change nothing, as written otherwise.
    pub(in crate::permission) fn canonical(&self) -> String {
        match self.literal() {
            Some(text)
                if !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_@%+=:,./-^".contains(c)) =>
            {
                text
            }
            _ => self.source.clone(),
        }
    }
}

/// Reads one whole word and expands its braces. `base` is where `text` starts in the line; `spans` are the expansions in it.
///
/// # Errors
/// When the text is not exactly one word, or holds what the parser is known to misread.
pub(super) fn scan(text: &str, base: usize, spans: &[Span]) -> Result<Vec<Word>, String> {
    let mut words = braces::expand(&units(text, base, spans)?)?;
    // `{,}` alone leaves no word at all.
    words.retain(|units| !units.is_empty());
    Ok(words.into_iter().map(|units| Word { source: text.to_owned(), pieces: pieces(units) }).collect())
}

/// The same where bash leaves braces as they are: in assignments, between `[[` and `]]`, in the words of `case`.
///
/// # Errors
/// As above.
pub(super) fn scan_one(text: &str, base: usize, spans: &[Span]) -> Result<Word, String> {
    Ok(Word { source: text.to_owned(), pieces: pieces(units(text, base, spans)?) })
}

fn units(text: &str, base: usize, spans: &[Span]) -> Result<Vec<Unit>, String> {
    let mut units = Vec::new();
    let mut spans: Vec<&Span> = spans.iter().collect();
    spans.sort_by_key(|span| span.range.start);
    let mut rest = text.char_indices().peekable();
    let mut double = false;
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map(|(_, c)| *c);
        if let Ok(found) = spans.binary_search_by_key(&(base + at), |span| span.range.start) {
            let span = spans[found];
            let end = span.range.end - base;
            let source = text.get(at..end).ok_or("an expansion does not end in its word")?;
            units.push(Unit::Dynamic(Expansion { source: source.to_owned(), quoted: double }));
            while rest.next_if(|(at, _)| *at < end).is_some() {}
            continue;
        }
        match c {
            '`' => return Err("a backtick".into()),
            '\\' => {
                let Some((_, escaped)) = rest.next() else { return Err("a backslash at the end".into()) };
                if escaped == '\n' {
                    return Err("a line continued with a backslash".into());
                }
                if double && !matches!(escaped, '$' | '`' | '"' | '\\') {
                    units.push(Unit::Char { c: '\\', quoted: true });
                }
                units.push(Unit::Char { c: escaped, quoted: true });
            }
            '"' => {
                double = !double;
                units.push(Unit::Nothing);
            }
            '$' if double || !matches!(next, Some('\'' | '"')) => {
                // What the parser took for a plain dollar must be one for bash, too.
                if next.is_some_and(|c| c.is_alphanumeric() || "({[_@*#?$!-".contains(c)) {
                    return Err("an expansion that the parser did not see".into());
                }
                units.push(Unit::Char { c, quoted: double });
            }
            '$' => return Err("a $'…' or $\"…\" string".into()),
            c if double => units.push(Unit::Char { c, quoted: true }),
            '\'' => {
                units.push(Unit::Nothing);
                loop {
                    match rest.next() {
                        Some((_, '\'')) => break,
                        Some((_, c)) => units.push(Unit::Char { c, quoted: true }),
                        None => return Err("a quote without an end".into()),
                    }
                }
                units.push(Unit::Nothing);
            }
            c if c.is_whitespace() || "|&;()<>".contains(c) => return Err(format!("{c:?} within a word")),
            '#' if at == 0 => return Err("a comment where a word was expected".into()),
            c => units.push(Unit::Char { c, quoted: false }),
        }
    }
    if double {
        return Err("a quote without an end".into());
    }
    Ok(units)
}

pub(super) fn is_open(unit: &Unit, want: char) -> bool {
    matches!(unit, Unit::Char { c, quoted: false } if *c == want)
}

fn pieces(units: Vec<Unit>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let tilde = units.first().is_some_and(|unit| is_open(unit, '~'));
    let mut text = String::new();
    let flush = |text: &mut String, pieces: &mut Vec<Piece>| {
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(text)));
        }
    };
    let home = || Piece::Dynamic(Expansion::of("~"));
    // No bracket that opens behind it is closed.
    let closes = |unit: &Unit| matches!(unit, Unit::Char { c: ']', .. } | Unit::Dynamic(_));
    let last = units.iter().rposition(closes).unwrap_or_default();
    let mut before = None;
    // Up to where a tilde's word goes: a user's name, or the `+` and `-` of folders.
    let mut behind = 0;
    let named = |from: usize| {
        let name =
            |unit: &Unit| matches!(unit, Unit::Char { c, quoted: false } if c.is_alphanumeric() || "+-_.".contains(*c));
        from + units[from..].iter().take_while(|unit| name(unit)).count()
    };
    for (at, unit) in units.iter().enumerate() {
        if at < behind {
            continue;
        }
        let single = match unit {
            Unit::Char { c: '~', quoted: false } if at == 0 && tilde => match units.get(1) {
                None => Some(Piece::Tilde),
                Some(Unit::Char { c: '/', quoted: false }) => Some(Piece::Tilde),
                _ => {
                    behind = named(at + 1);
                    Some(home())
                }
            },
            // Bash expands it in what looks like an assignment.
            Unit::Char { c: '~', quoted: false } if matches!(before, Some('=' | ':')) => {
                behind = named(at + 1);
                Some(home())
            }
            // A bracket that nothing closes is itself: the command `[`.
            Unit::Char { c: '[', quoted: false } if at >= last => {
                text.push('[');
                None
            }
            Unit::Char { c: c @ ('*' | '?' | '['), quoted: false } => Some(Piece::Glob(*c)),
            Unit::Char { c, quoted } => {
                text.push(*c);
                before = (!quoted).then_some(*c);
                None
            }
            Unit::Dynamic(expansion) => Some(Piece::Dynamic(expansion.clone())),
            Unit::Nothing => None,
        };
        if let Some(piece) = single {
            flush(&mut text, &mut pieces);
            pieces.push(piece);
            before = None;
        }
    }
    flush(&mut text, &mut pieces);
    if pieces.is_empty() {
        pieces.push(Piece::Text(String::new()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let check = |text: &str, want: &[&str]| {
            let words = scan(text, 0, &[]).map(|words| words.iter().map(Word::known).collect::<Vec<_>>());
            assert_eq!(words, Ok(want.iter().map(|word| (*word).to_owned()).collect()), "{text}");
        };
        check("rm", &["rm"]);
        check("r\"\"m", &["rm"]);
        check("'r'm", &["rm"]);
        check("\\rm", &["rm"]);
        check("\"a\\n\\\"\"", &["a\\n\""]);
        check("{rm,-rf,x}", &["rm", "-rf", "x"]);
        check("a{b,c{d,e}}f", &["abf", "acdf", "acef"]);
        check("'{a,b}'", &["{a,b}"]);
        check("{}", &["{}"]);
        check("\"\"", &[""]);
        for text in ["a b", "`x`", "a\\\nb", "$'x'", "$x", "a;b", "\"x", "'x", "#x", "$\"x\"", "$[1]", "$(x)"] {
            assert!(scan(text, 0, &[]).is_err(), "{text}");
        }
        for (text, want) in [
            // A pair without a comma or dots closes nothing.
            ("{a},b}", vec!["a}", "b"]),
            ("{-o}.x,}", vec!["-o}.x", ""]),
            ("{x{a,b}..y}", vec!["xa..y", "xb..y"]),
            ("{{a,b},c}d", vec!["ad", "bd", "cd"]),
            ("{a,b}{},c}", vec!["a{},c}", "b{},c}"]),
            ("x{},c}", vec!["x}", "xc"]),
            ("{},c}", vec!["{},c}"]),
            ("\\ {},c}", vec![" {},c}"]),
            ("' '{},c}", vec![" }", " c"]),
            ("{{a,b}", vec!["{a", "{b"]),
            ("{a,b", vec!["{a,b"]),
            ("{a..}", vec!["{a..}"]),
            ("{a,\",\",'}'}", vec!["a", ",", "}"]),
        ] {
            let want: Vec<&str> = want.into_iter().filter(|word| !word.is_empty()).collect();
            check(text, &want);
        }
        assert_eq!(scan_one("{a,b}", 0, &[]).unwrap().literal().unwrap(), "{a,b}");
        for text in ["{\"a,b\"..c}", &"{a,b}".repeat(8), &"{".repeat(5_000)] {
            assert!(scan(text, 0, &[]).is_err(), "{text}");
        }
        // What it is, only bash knows.
        for text in ["{1..3}", "{a..9}", "x{1..3}y", "{x{1..2}..y}"] {
            assert!(scan(text, 0, &[]).unwrap().iter().all(Word::is_dynamic), "{text}");
        }
    }
}
