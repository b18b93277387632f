//! Reads a line without a grammar, for rules that forbid: what may be a command in it, whatever the parser thinks.

use super::{MANY, ONE};

/// Deepest text within text that is looked at.
const MAX_DEPTH: usize = 6;
/// Most characters that are looked at for the ends of braces.
const MAX_AHEAD: usize = 1 << 20;

/// Runs of words between anything that may separate commands, quotes removed. Words that hold whole lines are read, too.
pub(in crate::permission) fn segments(text: &str) -> Vec<Vec<String>> {
    run(text, Unknown::Left, 0)
}

/// The same with [`ONE`] and [`MANY`] for what only bash knows: once with all that is between marks as a line of its own,
/// and once with each substitution as the part of a word that it is where the marks before it do not mean something else.
pub(in crate::permission) fn open_segments(text: &str) -> Vec<Vec<String>> {
    let mut all = run(text, Unknown::Marked, 0);
    all.extend(run(text, Unknown::Paired, 0));
    all
}

fn run(text: &str, unknown: Unknown, depth: usize) -> Vec<Vec<String>> {
    let (segments, words, word) = Default::default();
    let mut lexer = Lexer { segments, words, word, braces: 0, ahead: 0, unknown, depth };
    lexer.run(text);
    lexer.segments
}

/// What becomes of expansions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// They are left out, as if they were empty.
    Left,
    Marked,
    /// The same, up to where each ends.
    Paired,
}

/// Whether a word may itself hold a command line.
pub(in crate::permission) fn may_hold_line(word: &str) -> bool {
    word.contains([' ', '\t', '\n', ';', '|', '&', '$', '`', '(', '<', '>', '\'', '"', '!', '='])
}

/// The segments of a line, and of every line in its words, as deep as they nest.
pub(in crate::permission) fn all_segments(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut texts = vec![(text.to_owned(), 0)];
    while let Some((text, depth)) = texts.pop() {
        for segment in segments(&text) {
            if depth < MAX_DEPTH {
                texts.extend(
                    segment
                        .iter()
                        .filter(|word| may_hold_line(word) && **word != text)
                        .map(|word| (word.clone(), depth + 1)),
                );
            }
            all.push(segment);
        }
    }
    all
}

struct Lexer {
    segments: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    braces: usize,
    /// Characters that were looked at for the ends of braces.
    ahead: usize,
    unknown: Unknown,
    /// How many texts it is in.
    depth: usize,
}

impl Lexer {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn expansion(&mut self) {
        if self.unknown != Unknown::Left {
            self.push(MANY);
        }
    }

    /// Takes what begins here as a part of the word and reads what is in it by itself; returns where it ends, if it does.
    fn pair(&mut self, behind: &[char], open: char, close: char) -> Option<usize> {
        if self.unknown != Unknown::Paired || self.depth >= MAX_DEPTH || self.ahead > MAX_AHEAD {
            return None;
        }
        let mut depth = 0usize;
        let ends = |c: &char| {
            depth += usize::from(*c == open && open != close);
            let last = *c == close && depth == 0;
            depth -= usize::from(*c == close && depth > 0);
            last
        };
        let end = behind.iter().position(ends);
        self.ahead += end.unwrap_or(behind.len());
        let inner: String = behind[..end?].iter().collect();
        self.push(MANY);
        self.segments.extend(run(inner.trim_start_matches([':', '-', '+', '?', '=']), self.unknown, self.depth + 1));
        Some(end? + 1)
    }

    /// One that holds commands: what is first may as well end another.
    fn substitution(&mut self) {
        if !self.words.is_empty() || self.word.is_some() {
            self.expansion();
        }
        self.end_segment();
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_segment(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.segments.push(std::mem::take(&mut self.words));
        }
    }

    fn run(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let c = chars[at];
            let next = chars.get(at + 1).copied();
            at += 1;
            match c {
                '\\' => match next {
                    Some('\n') => at += 1,
                    Some(escaped) => {
                        self.push(escaped);
                        at += 1;
                    }
                    None => {}
                },
                '\'' => {
                    self.word.get_or_insert_default();
                    while at < chars.len() && chars[at] != '\'' {
                        self.push(chars[at]);
                        at += 1;
                    }
                    at += 1;
                }
                '$' if next == Some('\'') => at = self.ansi_c(&chars, at + 1),
                '"' => {
                    let start = self.word.get_or_insert_default().len();
                    while at < chars.len() && chars[at] != '"' {
                        if chars[at] == '\\' && at + 1 < chars.len() {
                            at += 1;
                            if !matches!(chars[at], '$' | '`' | '"' | '\\' | '\n') {
                                self.push('\\');
                            }
                            if chars[at] == '\n' {
                                at += 1;
                                continue;
                            }
                        }
                        self.push(chars[at]);
                        at += 1;
                    }
                    at += 1;
                    let word = self.word.get_or_insert_default();
                    if self.unknown != Unknown::Left && word[start..].contains(['$', '`']) {
                        word.truncate(start);
                        word.push(ONE);
                    }
                }
                '$' => match next {
                    Some('(') if chars.get(at + 1) == Some(&')') => at += 2,
                    Some('(') => match self.pair(&chars[at + 1..], '(', ')') {
                        Some(end) => at += 1 + end,
                        None => self.substitution(),
                    },
                    Some('{') => {
                        at += 1;
                        let start = at;
                        while chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_') {
                            at += 1;
                        }
                        if let Some(end) = self.pair(&chars[at..], '{', '}') {
                            at += end;
                            continue;
                        }
                        at = start;
                        while at < chars.len() && chars[at] != '}' && !":-+?=/#%^,[".contains(chars[at]) {
                            at += 1;
                        }
                        if chars.get(at) == Some(&'}') {
                            self.expansion();
                            at += 1;
                        } else if at > start {
                            while at < chars.len() && ":-+?=/#%^,[".contains(chars[at]) {
                                at += 1;
                            }
                            self.braces += 1;
                            self.end_segment();
                        }
                    }
                    // A variable may be empty, so that `r$@m` is `rm`.
                    Some(c) if "@*#?!-$".contains(c) => {
                        self.expansion();
                        at += 1;
                    }
                    Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                        self.expansion();
                        while at < chars.len() && (chars[at].is_ascii_alphanumeric() || chars[at] == '_') {
                            at += 1;
                        }
                    }
                    Some(c) if c.is_ascii_digit() => {
                        self.expansion();
                        at += 1;
                    }
                    _ => {}
                },
                // What substitutes nothing joins what is around it.
                '`' if next == Some('`') => at += 1,
                '`' => match self.pair(&chars[at..], '`', '`') {
                    Some(end) => at += end,
                    None => self.substitution(),
                },
                '\n' | '\r' | '\0' | ';' | '&' | '|' | '(' | ')' => self.end_segment(),
                '<' | '>' => {
                    // A descriptor before it is not a word.
                    if self.word.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
                        self.word = None;
                    }
                    self.end_word();
                }
                // Any of the words that it stands for.
                '{' if let Some(end) = self.expands(&chars[at..]) => {
                    let alone = self.word.is_none() && chars.get(at + end).is_none_or(|c| c.is_whitespace());
                    let inner: String = chars[at..at + end - 1].iter().collect();
                    if alone && self.unknown == Unknown::Left && !inner.contains(['{', '"', '\'', '\\', '$', '`']) {
                        self.words.extend(inner.split(',').map(str::to_owned));
                    } else {
                        self.push(MANY);
                    }
                    at += end;
                }
                '{' => {
                    self.braces += 1;
                    if self.word.is_none() {
                        self.end_segment();
                    }
                }
                '}' if self.braces > 0 => {
                    self.braces -= 1;
                    self.end_word();
                }
                ',' if self.braces > 0 => self.end_word(),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_segment();
    }

    /// Where a brace expansion ends. Of braces that nobody writes, the rest of the word is believed to be one.
    fn expands(&mut self, behind: &[char]) -> Option<usize> {
        let end_of_word = |c: &char| c.is_whitespace() || ";|&()<>".contains(*c);
        let word = || behind.iter().position(end_of_word).unwrap_or(behind.len());
        if self.ahead > MAX_AHEAD {
            return Some(word()).filter(|end| *end > 0);
        }
        let end = brace_expansion(behind);
        self.ahead += end.unwrap_or_else(word);
        end
    }

    /// Decodes a `$'…'` string from after its quote; returns where it ends.
    fn ansi_c(&mut self, chars: &[char], mut at: usize) -> usize {
        self.word.get_or_insert_default();
        while at < chars.len() && chars[at] != '\'' {
            if chars[at] != '\\' {
                self.push(chars[at]);
                at += 1;
                continue;
            }
            at += 1;
            let Some(&kind) = chars.get(at) else { break };
            let (radix, skip, most) = match kind {
                'x' => (16, 1, 2),
                'u' => (16, 1, 4),
                'U' => (16, 1, 8),
                '0'..='7' => (8, 0, 3),
                _ => {
                    self.push(match kind {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'a' | 'b' | 'e' | 'E' | 'f' | 'v' | 'c' => ' ',
                        other => other,
                    });
                    at += 1;
                    continue;
                }
            };
            at += skip;
            let digits: String = chars[at..].iter().take(most).take_while(|c| c.is_digit(radix)).collect();
            at += digits.len();
            if let Some(c) = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32) {
                self.push(c);
            }
        }
        at + 1
    }
}

/// How many characters behind the `{` belong to a brace expansion, if there is one.
fn brace_expansion(behind: &[char]) -> Option<usize> {
    let (mut at, mut depth, mut several) = (0, 0usize, false);
    while at < behind.len() {
        match behind[at] {
            '\\' => at += 1,
            quote @ ('\'' | '"') => at += 1 + behind[at + 1..].iter().position(|c| *c == quote)?,
            '{' => depth += 1,
            '}' if depth == 0 => return several.then_some(at + 1),
            '}' => depth -= 1,
            ',' => several |= depth == 0,
            '.' => several |= depth == 0 && behind.get(at + 1) == Some(&'.'),
            c if c.is_whitespace() || ";|&()<>".contains(c) => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_without_a_grammar() {
        for (line, want) in [
            ("a b; c", "a b|c"),
            ("r\\\nm x", "rm x"),
            ("$'\\x72\\155' x", "rm x"),
            ("r$@m x", "rm x"),
            ("r${z}m x", "rm x"),
            ("r``m x", "rm x"),
            ("r$()m x", "rm x"),
            ("${z:-rm} x", "rm x"),
            ("`rm x`", "rm x"),
            ("{rm,-rf,x}", "rm -rf x"),
            ("a 2>&1 | b", "a|1|b"),
            ("'a b' \"c'd\"", "a b c'd"),
        ] {
            let found: Vec<String> = segments(line).iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join("|"), want, "{line:?}");
        }
    }

    #[test]
    fn what_only_bash_knows_is_marked() {
        for (line, want) in [
            ("echo `ls`; git status $x", "echo *|ls*|git status *|ls|echo *|git status *"),
            ("git $x \"a$y\" ${z}", "git * 1 *|git * 1 *"),
            ("y=$(ls)", "y=*|ls|ls|y=*"),
            ("`a` x", "a*|x|a|* x"),
            ("${x:1}m y", "1 m y|1|*m y"),
        ] {
            let found: Vec<String> = open_segments(line).iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join("|").replace(MANY, "*").replace(ONE, "1"), want, "{line:?}");
        }
    }

    #[test]
    fn lines_in_words_are_read() {
        assert!(all_segments("bash -c 'eval \"rm x\"'").contains(&vec!["rm".to_owned(), "x".to_owned()]));
    }
}
