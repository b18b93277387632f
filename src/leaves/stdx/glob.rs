//! Two small matchers: `*` in a line of text, and gitignore-style patterns over the parts of a path.

/// Whether letters match without regard to case. Rules that forbid do: `.ENV` is `.env` on some disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Exact,
    Ignored,
}

/// Whether `*` in `pattern` standing for any characters, also none, makes it equal to `text`.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    Tails::new(pattern, text).fit(0)
}

/// `wildcard` for any number of tails of one text; all of them together take one pass over it.
pub struct Tails<'a> {
    text: &'a str,
    /// The pattern up to its first star, or all of it.
    head: &'a str,
    behind: Behind,
}

/// What follows a pattern's head.
enum Behind {
    /// Nothing: there is no star.
    Nothing,
    /// It fits for a head that ends here at the latest, in bytes of the text.
    FitsFrom(usize),
    /// It is not in the text.
    Missing,
}

impl<'a> Tails<'a> {
    pub fn new(pattern: &'a str, text: &'a str) -> Tails<'a> {
        let Some((head, rest)) = pattern.split_once('*') else {
            return Tails { text, head: pattern, behind: Behind::Nothing };
        };
        let (between, last) = rest.rsplit_once('*').map_or(("", rest), |(between, last)| (between, last));
        // From the end backwards, as late as possible.
        let end = text.ends_with(last).then(|| text.len() - last.len());
        let latest = between.rsplit('*').try_fold(end, |end, part| end.map(|end| text[..end].rfind(part)));
        let behind = latest.flatten().map_or(Behind::Missing, Behind::FitsFrom);
        Tails { text, head, behind }
    }

    /// Whether the text from this byte on fits.
    pub fn fit(&self, from: usize) -> bool {
        match self.behind {
            Behind::Nothing => &self.text[from..] == self.head,
            Behind::FitsFrom(latest) => from + self.head.len() <= latest && self.text[from..].starts_with(self.head),
            Behind::Missing => false,
        }
    }
}

/// Whether a pattern of bash's, of git's or of a search may stand for one part of a path. Of `?` and of classes anything is
/// believed: what they match depends on the locale, on the shell and on how many bytes a letter has.
pub fn may_fit(pattern: &str, text: &str, case: Case) -> bool {
    let class = pattern.find('[').filter(|open| pattern[*open..].contains(']'));
    let plain = &pattern[..class.unwrap_or(pattern.len())];
    let rest = if plain.len() < pattern.len() { "*" } else { "" };
    // A pattern much longer than any name: what it says letter by letter is more than the text holds.
    let literal = |c: &char| !matches!(c, '*' | '?' | '\\');
    if plain.chars().filter(literal).nth(4 * text.len() + 16).is_some() {
        return false;
    }
    component(&format!("{}{rest}", plain.replace('?', "*")), text, case)
}

/// Whether one part of a path fits `*`, `?` and `[…]`.
fn component(pattern: &str, text: &str, case: Case) -> bool {
    // Nearly every rule and every name: a line may name ten thousand files.
    if pattern.is_ascii() && text.is_ascii() && !pattern.contains(['?', '[', '\\']) {
        return stars(pattern, text, case);
    }
    letters(pattern, text, case)
}

/// The same letter by letter, with classes.
fn letters(pattern: &str, text: &str, case: Case) -> bool {
    let fold = |text: &str| match case {
        Case::Exact => text.to_owned(),
        Case::Ignored => text.to_lowercase(),
    };
    let text: Vec<char> = fold(text).chars().collect();
    run(&tokens(&fold(pattern)), &text, |token, c| match token {
        Token::One(want) => want == c,
        Token::Any => true,
        Token::Class { negated, ranges } => ranges.iter().any(|(low, high)| low <= c && c <= high) != *negated,
        Token::Many => false,
    })
}

/// The same without looking at letters, for ASCII, and for a pattern in which nothing but `*` is special.
fn stars(pattern: &str, text: &str, case: Case) -> bool {
    let same = |want: &[u8], text: &[u8]| match case {
        Case::Exact => want == text,
        Case::Ignored => want.eq_ignore_ascii_case(text),
    };
    let mut rest = text.as_bytes();
    let Some((head, tail)) = pattern.split_once('*') else { return same(pattern.as_bytes(), rest) };
    let (middle, end) = tail.rsplit_once('*').map_or(("", tail), |(middle, end)| (middle, end));
    if rest.len() < head.len() + end.len()
        || !same(head.as_bytes(), &rest[..head.len()])
        || !same(end.as_bytes(), &rest[rest.len() - end.len()..])
    {
        return false;
    }
    rest = &rest[head.len()..rest.len() - end.len()];
    // Each as early as it comes.
    middle.split('*').map(str::as_bytes).filter(|part| !part.is_empty()).all(|part| {
        let found = rest.windows(part.len()).position(|window| same(part, window));
        rest = found.map_or(rest, |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

/// Whether the parts of a path, or the first few of them, fit the pattern's parts (a matched folder covers what is in it).
/// `**` stands for any number of parts.
pub fn path(pattern: &[String], path: &[&str], case: Case) -> bool {
    let deep = |at: usize| pattern.get(at).is_some_and(|part| part == "**");
    // Where in the pattern what was read so far may end; one pass over the path.
    let reach = |ends: &mut [bool], mut at: usize| {
        ends[at] = true;
        while deep(at) {
            at += 1;
            ends[at] = true;
        }
    };
    let (mut ends, mut next) = (vec![false; pattern.len() + 1], vec![false; pattern.len() + 1]);
    reach(&mut ends, 0);
    let mut rest = path.iter();
    while !ends[pattern.len()] {
        let Some(name) = rest.next() else { return false };
        next.fill(false);
        for at in (0..pattern.len()).filter(|at| ends[*at]) {
            if deep(at) {
                reach(&mut next, at);
            } else if component(&pattern[at], name, case) {
                reach(&mut next, at + 1);
            }
        }
        std::mem::swap(&mut ends, &mut next);
    }
    true
}

enum Token {
    One(char),
    Any,
    Many,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

fn tokens(pattern: &str) -> Vec<Token> {
    let chars: Vec<char> = pattern.chars().collect();
    // No class ends behind it.
    let last = chars.iter().rposition(|c| *c == ']').unwrap_or(0);
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        tokens.push(match c {
            '*' => Token::Many,
            '?' => Token::Any,
            '\\' if at < chars.len() => {
                at += 1;
                Token::One(chars[at - 1])
            }
            '[' if at > last => Token::One('['),
            '[' => match class(&chars[at..]) {
                Some((token, length)) => {
                    at += length;
                    token
                }
                None => Token::One('['),
            },
            c => Token::One(c),
        });
    }
    tokens
}

/// Reads a class after its `[`; None when it has no end.
fn class(chars: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let start = at;
    let mut ranges = Vec::new();
    loop {
        match *chars.get(at)? {
            ']' if at > start => return Some((Token::Class { negated, ranges }, at + 1)),
            low if chars.get(at + 1) == Some(&'-') && chars.get(at + 2).is_some_and(|c| *c != ']') => {
                ranges.push((low, chars[at + 2]));
                at += 3;
            }
            c => {
                ranges.push((c, c));
                at += 1;
            }
        }
    }
}

/// Greedy matching that goes back to the last `*`: linear in the text for each star, so that no rule can stall us.
fn run(pattern: &[Token], text: &[char], fits: impl Fn(&Token, &char) -> bool) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(Token::Many) => {
                star = Some((p, t));
                p += 1;
            }
            Some(token) if fits(token, &text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|token| matches!(token, Token::Many))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn stars_and_letters_agree(pattern in "[abA*]{0,9}", text in "[abAB]{0,12}") {
            for case in [Case::Exact, Case::Ignored] {
                assert_eq!(stars(&pattern, &text, case), letters(&pattern, &text, case), "{pattern} {text} {case:?}");
            }
        }
    }

    #[test]
    fn stars_in_text() {
        for (pattern, text, want) in [
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin maint", false),
            ("*", "", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b", "ab\nb", true),
            ("a?", "ab", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a**b", "ab", true),
            ("*x*x", "x", false),
            ("*x*x", "axxa", false),
            ("*x*x", "axbx", true),
            ("", "", true),
            ("é*é", "éaé", true),
        ] {
            assert_eq!(wildcard(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn classes_may_be_anything() {
        for (pattern, text, want) in [
            (".en[v]", ".env", true),
            (".[!A-Z]nv", ".env", true),
            (".[Z-f]nv", ".env", true),
            (".en[[:lower:]]", ".env", true),
            (".en[[=v=]]", ".env", true),
            (".en[]v]", ".env", true),
            (".en[", ".env", false),
            ("src[[:lower:]]", ".env", false),
            ("??", "\u{e9}", true),
            (".e*v", ".env", true),
            (".e*w", ".env", false),
        ] {
            assert_eq!(may_fit(pattern, text, Case::Ignored), want, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_over_paths() {
        for (pattern, text, want) in [
            ("src/**", "src/a/b.rs", true),
            ("src", "src/a/b.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("**/.env", "a/b/.env", true),
            ("**/.env", ".env", true),
            ("**/.env", ".environment", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b/z", true),
            ("[ab]?", "ax", true),
            ("[!ab]?", "ax", false),
            ("[x", "[x", true),
        ] {
            let pattern: Vec<String> = pattern.split('/').map(str::to_owned).collect();
            assert_eq!(path(&pattern, &text.split('/').collect::<Vec<_>>(), Case::Exact), want, "{pattern:?} {text}");
        }
        assert!(component(".env", ".ENV", Case::Ignored));
    }
}
