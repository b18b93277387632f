//! Brace expansion, as bash does it before everything else.

use super::parse::is_name;
use super::word::{Expansion, Unit, is_open};

/// Most words that the braces of one word may stand for.
const MAX_BRACES: usize = 64;
/// Most characters that are looked at for the braces of one word.
const MAX_STEPS: usize = 1 << 20;

/// Every word that the units stand for, some of them perhaps empty.
///
/// # Errors
/// When they are too many, or braces bring together what bash then reads as an expansion.
pub(super) fn expand(units: &[Unit]) -> Result<Vec<Vec<Unit>>, String> {
    let words = Braces { steps: 0 }.expand(units, 0)?;
    let joined = |units: &[Unit]| units.windows(2).any(|pair| joins(&pair[0], &pair[1]));
    if joined(units) || words.iter().any(|word| joined(word)) {
        return Err("a dollar beside braces".into());
    }
    Ok(words)
}

/// Whether braces brought together what bash then reads as one expansion: `{a,$}x`, `$x{a,b}`; or none at all: `$${a,b}`.
fn joins(unit: &Unit, next: &Unit) -> bool {
    let open =
        |plain: &str| matches!(next, Unit::Char { c, quoted: false } if c.is_alphanumeric() || plain.contains(*c));
    match unit {
        Unit::Char { c: '$', quoted: false } => !matches!(next, Unit::Char { c, .. } if "/.,:=%+]}^~".contains(*c)),
        Unit::Dynamic(expansion) if expansion.source == "$$" => open("{"),
        Unit::Dynamic(expansion) => {
            let range = matches!(next, Unit::Dynamic(next) if next.source.starts_with('{'));
            expansion.source.strip_prefix('$').is_some_and(is_name) && (range || open("_"))
        }
        _ => false,
    }
}

/// The same search as bash's, step by step, so that no word is missed.
struct Braces {
    /// Units that were looked at.
    steps: usize,
}

impl Braces {
    /// The next `wanted` that is not within inner braces; a `}` counts only behind a comma or `..`.
    fn find(&mut self, units: &[Unit], from: usize, wanted: char) -> Result<Option<usize>, String> {
        let (mut level, mut several) = (0_usize, wanted != '}');
        let is = |at: usize, want: char| units.get(at).is_some_and(|unit| is_open(unit, want));
        for at in from..units.len() {
            if level == 0 && several && is(at, wanted) {
                if wanted == '{' && starts_text(units, at) && (at + 1 == units.len() || is(at + 1, '}')) {
                    continue;
                }
                self.spend(at - from)?;
                return Ok(Some(at));
            }
            if is(at, '{') {
                level += 1;
            } else if level > 0 && is(at, '}') {
                level -= 1;
            } else if level == 0 && (is(at, ',') || is(at, '.') && is(at + 1, '.') && !is(at + 2, '}')) {
                several = true;
            }
        }
        self.spend(units.len() - from)?;
        Ok(None)
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.steps += steps;
        if self.steps > MAX_STEPS { Err("it has too many braces".into()) } else { Ok(()) }
    }

    /// The braces that come first, where they open and close.
    fn pair(&mut self, units: &[Unit]) -> Result<Option<(usize, usize)>, String> {
        let mut from = 0;
        while let Some(open) = self.find(units, from, '{')? {
            if let Some(close) = self.find(units, open + 1, '}')? {
                return Ok(Some((open, close)));
            }
            from = open + 1;
        }
        Ok(None)
    }

    /// Every word that the text stands for, some of them perhaps empty.
    fn expand(&mut self, mut text: &[Unit], depth: usize) -> Result<Vec<Vec<Unit>>, String> {
        if depth > 16 {
            return Err("braces that stand for too many words".into());
        }
        let mut words = vec![Vec::new()];
        while let Some((open, close)) = self.pair(text)? {
            let (before, inner) = (&text[..open], &text[open + 1..close]);
            let comma = |unit: &Unit| match unit {
                Unit::Char { c, .. } => *c == ',',
                Unit::Dynamic(expansion) => expansion.source.contains(','),
                Unit::Nothing => false,
            };
            let choices = if inner.iter().any(|unit| is_open(unit, ',')) {
                self.choices(inner, depth)?
            } else if inner.iter().any(comma) {
                // Whether bash drops the braces depends on how the comma is quoted.
                return Err("braces with dots and a quoted comma".into());
            } else {
                vec![vec![Unit::Dynamic(range(inner))]]
            };
            if words.len() * choices.len() > MAX_BRACES {
                return Err("braces that stand for too many words".into());
            }
            let joined = |word: &Vec<Unit>, choice: &Vec<Unit>| [word.as_slice(), before, choice].concat();
            words = match choices.as_slice() {
                [choice] => {
                    words.iter_mut().for_each(|word| word.extend(before.iter().chain(choice).cloned()));
                    words
                }
                all => words.iter().flat_map(|word| all.iter().map(|choice| joined(word, choice))).collect(),
            };
            text = &text[close + 1..];
        }
        words.iter_mut().for_each(|word| word.extend_from_slice(text));
        Ok(words)
    }

    fn choices(&mut self, inner: &[Unit], depth: usize) -> Result<Vec<Vec<Unit>>, String> {
        let (mut words, mut from) = (Vec::new(), 0);
        loop {
            let end = self.find(inner, from, ',')?;
            words.extend(self.expand(&inner[from..end.unwrap_or(inner.len())], depth + 1)?);
            if words.len() > MAX_BRACES {
                return Err("braces that stand for too many words".into());
            }
            match end {
                Some(end) => from = end + 1,
                None => return Ok(words),
            }
        }
    }
}

/// Whether bash sees nothing or a blank before it: an escaped one is a blank for it as well.
fn starts_text(units: &[Unit], at: usize) -> bool {
    at == 0 || matches!(units[at - 1], Unit::Char { c: ' ' | '\t', .. })
}

/// What `{1..9}` stands for. Bash leaves some as they are, such as `{a..9}`: nobody relies on either.
fn range(inner: &[Unit]) -> Expansion {
    let plain = |unit: &Unit| match unit {
        Unit::Char { c, .. } if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+') => *c,
        _ => '$',
    };
    Expansion::of(&format!("{{{}}}", inner.iter().map(plain).collect::<String>()))
}
