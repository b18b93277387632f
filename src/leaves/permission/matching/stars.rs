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
    // Behind a last star come arguments: one of its own stands for any; one in a name, for options; one in the name of a
    // script, for what the script is given. A path or an address names all that is meant.
    let runs =
        matches!(first.as_str(), "npm" | "pnpm" | "yarn" | "bun") && parts.first().is_some_and(|part| part == "run");
    let open = |word: &String| match parts.last() {
        Some(last) if last != "*" && !runs => !last.contains('/') && word.starts_with('-') && word != "--",
        _ => true,
    };
    let ended = pattern.ends_with('*');
    if ended && parts.is_empty() {
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
                    (fits || next && part.contains('*')) && means(part, word) || last && ended && next && open(word)
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
    if let Some((scheme, address)) = part.split_once("://") {
        return word.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")).is_some_and(|word| {
            let host = |text: &str| text.split(['/', '?', '#', '\\']).next().unwrap_or_default().to_owned();
            is_host(&host(address), &host(word)) && glob::wildcard(address, word) && (!up(word) || up(address))
        });
    }
    glob::wildcard(part, word) && !begins("-") && !(begins("/") || begins("~")) && (!up(word) || up(part))
}

/// Whether the host of an address is the one that the pattern names: a star stands for labels before it or for a port behind it.
fn is_host(pattern: &str, host: &str) -> bool {
    let (before, behind) = pattern.split_once('*').unwrap_or((pattern, ""));
    match host.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)) {
        None => false,
        Some(rest) if !pattern.contains('*') => rest.is_empty(),
        Some(rest) if behind.is_empty() => {
            let port = rest.strip_prefix(':').unwrap_or(if before.ends_with(':') { rest } else { "" });
            rest.is_empty() || !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
        }
        Some(rest) => rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.'),
    }
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
            ("npm run test*", "npm run test:unit -- --grep x", true),
            ("rm build/*", "rm build/x README.md", false),
            ("rm build/*", "rm build/x build/y", true),
            ("rm -rf build*", "rm -rf build src", false),
            ("cargo test*", "cargo test --lib", true),
            ("git push origin feature/*", "git push origin feature/x main", false),
            ("git push origin feature/*", "git push origin feature/x --force", false),
            ("curl http://localhost:3000/*", "curl http://localhost:3000/a", true),
            ("curl http://localhost:3000/*", "curl http://localhost:3000/a http://evil", false),
            ("curl http://localhost*", "curl http://localhost:80/a", true),
            ("curl http://localhost*", "curl http://localhost.evil.com", false),
            ("curl http://localhost*", "curl http://localhost@evil.com/", false),
            ("curl https://*.a.org/*", "curl https://x.a.org/y", true),
            ("curl https://*.a.org/*", "curl https://evil/.a.org/y", false),
            ("curl https://a.b/*", "curl https://a.b/c?d=e", true),
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
