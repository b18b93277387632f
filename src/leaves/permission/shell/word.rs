//! One word of a shell line: what is literal in it, and what only bash will know.

use std::ops::Range;

/// A word after quote removal and brace expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) struct Word {
    /// As it is in the line, quotes and all.
    pub(in crate::permission) source: String,
    pub(in crate::permission) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) enum Piece {
    Text(String),
    /// Unquoted `*`, `?` or the `[` of a class.
    Glob(char),
    /// `~` alone at the start: the home folder.
    Tilde,
    Dynamic(Expansion),
}

/// What only bash will know: `$x`, `$( … )`, `~user`, `{1..9}`.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// `$?`, `$#`, `$$`, `$!`, `${#x}`, `$((1 + 1))`.
    pub(in crate::permission) fn is_number(&self) -> bool {
        matches!(self.source.as_str(), "$?" | "$#" | "$$" | "$!")
            || self.source.starts_with("${#")
            || self.source.starts_with("$((")
    }
}

/// Something in a word that the parser found to be an expansion, in bytes of the line, with whether it may stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
}

/// Most words that the braces of one word may stand for.
const MAX_BRACES: usize = 64;

#[derive(Debug, Clone)]
enum Unit {
    Char {
        c: char,
        quoted: bool,
    },
    Dynamic(Expansion),
    /// `""`: makes a word where there is nothing else.
    Nothing,
}

impl Word {
    /// The same word made of other pieces; text beside text is one.
    pub(in crate::permission) fn with_pieces(&self, pieces: Vec<Piece>) -> Word {
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => joined.push(piece),
            }
        }
        Word { source: self.source.clone(), pieces: joined }
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

/// Reads one whole word. `base` is where `text` starts in the line; `spans` are the expansions in it.
///
/// # Errors
/// When the text is not exactly one word, or holds what the parser is known to misread.
pub(super) fn scan(text: &str, base: usize, spans: &[Span]) -> Result<Vec<Word>, String> {
    let units = units(text, base, spans)?;
    let mut words = Vec::new();
    braces(units, &mut words, 0)?;
    Ok(words.into_iter().map(|units| Word { source: text.to_owned(), pieces: pieces(units) }).collect())
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
                units.push(Unit::Char { c, quoted: true });
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

fn is_open(unit: &Unit, want: char) -> bool {
    matches!(unit, Unit::Char { c, quoted: false } if *c == want)
}

/// An open brace, the one that closes it, the commas between them that belong to no inner one, and whether it holds `..`.
struct Pair {
    open: usize,
    close: usize,
    commas: Vec<usize>,
    range: bool,
}

/// All pairs of braces, in the order in which they open; one pass.
fn pairs(units: &[Unit]) -> Vec<Pair> {
    let mut waiting: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut pairs = Vec::new();
    let mut dots = None;
    for (at, unit) in units.iter().enumerate() {
        let dot = |unit: &Unit| matches!(unit, Unit::Char { c: '.', .. });
        if at > 0 && dot(unit) && dot(&units[at - 1]) {
            dots = Some(at - 1);
        } else if is_open(unit, '{') {
            waiting.push((at, Vec::new()));
        } else if is_open(unit, ',') {
            waiting.iter_mut().last().into_iter().for_each(|(_, commas)| commas.push(at));
        } else if is_open(unit, '}')
            && let Some((open, commas)) = waiting.pop()
        {
            pairs.push(Pair { open, close: at, commas, range: dots.is_some_and(|dots| dots > open) });
        }
    }
    pairs.sort_by_key(|pair| pair.open);
    pairs
}

/// Expands `{a,b}` as bash does, before everything else.
fn braces(units: Vec<Unit>, words: &mut Vec<Vec<Unit>>, depth: usize) -> Result<(), String> {
    if depth > 16 || words.len() > MAX_BRACES {
        return Err("braces that stand for too many words".into());
    }
    let pairs = pairs(&units);
    for Pair { open, close, commas, range } in pairs {
        if commas.is_empty() {
            if !range {
                continue;
            }
            let inner: String = units[open + 1..close]
                .iter()
                .map(|unit| match unit {
                    Unit::Char { c, .. } => *c,
                    _ => '$',
                })
                .collect();
            let mut whole = units[..open].to_vec();
            whole.push(Unit::Dynamic(Expansion::of(&format!("{{{inner}}}"))));
            whole.extend_from_slice(&units[close + 1..]);
            return braces(whole, words, depth + 1);
        }
        let mut start = open + 1;
        for end in commas.into_iter().chain([close]) {
            let mut whole = units[..open].to_vec();
            whole.extend_from_slice(&units[start..end]);
            whole.extend_from_slice(&units[close + 1..]);
            braces(whole, words, depth + 1)?;
            start = end + 1;
        }
        return Ok(());
    }
    // `{,}` alone leaves no word at all.
    if !units.is_empty() {
        words.push(units);
    }
    Ok(())
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
    for (at, unit) in units.iter().enumerate() {
        let single = match unit {
            Unit::Char { c: '~', quoted: false } if at == 0 && tilde => match units.get(1) {
                None => Some(Piece::Tilde),
                Some(Unit::Char { c: '/', quoted: false }) => Some(Piece::Tilde),
                _ => Some(home()),
            },
            // Bash expands it in what looks like an assignment.
            Unit::Char { c: '~', quoted: false } if matches!(before, Some('=' | ':')) => Some(home()),
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
        assert!(scan(&"{a,b}".repeat(8), 0, &[]).is_err());
    }
}
