//! What a star may stand for in a rule that allows. Alone it is any words. Beside other characters it is a part of words that
//! stay what these say: no options, no other folder.

use super::super::glob;

/// Whether the words fit the pattern, star by star.
pub(super) fn fit(pattern: &str, words: &[String]) -> bool {
    let parts = parts(pattern);
    // The program itself is named as it is.
    let program = |part: &str, word: &str| match part {
        "*" => !word.contains('/'),
        _ => means(part, word),
    };
    let (Some((first, parts)), Some((name, words))) = (parts.split_first(), words.split_first()) else { return false };
    if !program(first, name) {
        return false;
    }
    // Whether the parts so far may be the words up to each of them.
    let mut fits: Vec<bool> = (0..=words.len()).map(|at| at == 0).collect();
    // Behind a last star come arguments.
    let open = pattern.ends_with('*');
    if open && parts.is_empty() {
        return true;
    }
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let mut next: Vec<bool> = Vec::with_capacity(fits.len());
        for (end, here) in fits.iter().enumerate() {
            let before = end.checked_sub(1).map(|before| (fits[before], next[before], &words[before]));
            next.push(match before {
                _ if part == "*" => *here || before.is_some_and(|(_, next, _)| next),
                None => false,
                // Each of several words may be one that the part means.
                Some((fits, next, word)) => {
                    (fits || next && part.contains('*')) && means(part, word) || last && open && next
                }
            });
        }
        fits = next;
    }
    fits.last().is_some_and(|fits| *fits)
}

/// Whether the part of a pattern stands for the word.
fn means(part: &str, word: &str) -> bool {
    if !part.contains('*') {
        return part == word;
    }
    let begins = |start: &str| part.starts_with('*') && word.starts_with(start);
    let up = |text: &str| text.split('/').any(|part| part == "..");
    glob::wildcard(part, word) && !begins("-") && !(begins("/") || begins("~")) && (!up(word) || up(part))
}

/// The words of the pattern; blanks in quotes part none.
fn parts(pattern: &str) -> Vec<String> {
    let mut quote = None;
    let mut parts = vec![String::new()];
    for c in pattern.chars() {
        match c {
            '\'' | '"' if quote.is_none_or(|open| open == c) => {
                quote = if quote.is_none() { Some(c) } else { None };
            }
            _ => {}
        }
        match parts.last_mut() {
            Some(last) if !c.is_whitespace() || quote.is_some() => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_in_their_words() {
        for (pattern, line, want) in [
            ("./scripts/*", "./scripts/a --b c", true),
            ("./scripts/*", "./scripts/../x", false),
            ("rm *.tmp", "rm a.tmp b/c.tmp", true),
            ("rm *.tmp", "rm -rf src x.tmp", false),
            ("rm *.tmp", "rm -x.tmp", false),
            ("rm *.tmp", "rm ../x.tmp", false),
            ("python3 *.py", "python3 /tmp/a.py", false),
            ("* --version", "node --version", true),
            ("* --version", "./node --version", false),
            ("* --version", "node x.js --version", false),
            ("npm run test*", "npm run test:unit --x", true),
            ("cargo * --offline", "cargo test --lib --offline", true),
            ("git commit *", "git commit", true),
            ("a* b", "a b", true),
            ("ls *", "ls -la /x", true),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(fit(pattern, &words), want, "{pattern} {line}");
        }
        assert!(fit("git commit -m '*'", &["git", "commit", "-m", "'a b'"].map(str::to_owned)));
    }
}
