//! Reads a failure: where it points, what it expected, and what it says the code should be. Pure.

use super::code::{self, words};

/// A line of source code that an output names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    /// From 1.
    pub(super) line: usize,
}

/// Every `path:line` of source code of the project, in order; also as Python and Node write them.
pub(super) fn places(output: &str, cwd: &str) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    let mut add = |path: &str, line: usize| {
        let path = path.trim_start_matches("file://").trim_start_matches("./");
        let own = path.strip_prefix(cwd).map(|rest| rest.trim_start_matches('/'));
        let foreign = own.is_none() && (path.starts_with(['/', '<']) || path.contains("../"));
        let path = own.unwrap_or(path);
        let built = ["node_modules/", "site-packages/", "target/", "node:"].iter().any(|part| path.contains(part));
        let place = Place { path: path.to_owned(), line };
        if code::is_source(path) && !foreign && !built && !found.contains(&place) {
            found.push(place);
        }
    };
    for text in output.lines() {
        if let Some((_, rest)) = text.split_once("File \"")
            && let Some((path, rest)) = rest.split_once("\", line ")
        {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().into_iter().for_each(|line| add(path, line));
            continue;
        }
        for word in text.split(|c: char| c.is_whitespace() || "()'\",[]".contains(c)) {
            let word = word.trim_start_matches("file://");
            let mut parts = word.split(':');
            if let (Some(path), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse)) {
                add(path, line);
            }
        }
    }
    found
}

/// What is called in the test around a line, the line itself first.
pub(super) fn called_near(lines: &[String], line: usize) -> Vec<String> {
    const COMMON: &str = "assert assert_eq assert_ne assertEqual assertTrue assertFalse assertRaises equal strictEqual \
        deepEqual deepStrictEqual ok throws expect toBe toEqual print len range list dict set str int \
        require test it describe printf";
    let at = line.saturating_sub(1).min(lines.len().saturating_sub(1));
    let starts = |text: &String| {
        let text = text.trim_start();
        ["def ", "fn ", "test(", "it(", "func ", "async def ", "pub fn "].iter().any(|start| text.starts_with(start))
    };
    let from = (0..=at).rev().find(|above| lines.get(*above).is_some_and(starts)).unwrap_or(at.saturating_sub(10));
    // Some runners name the line that the test begins with: then its body follows.
    let body = if lines.get(at).is_some_and(starts) { (at + 10).min(lines.len()) } else { at + 1 };
    let body = (at + 1..body).find(|line| lines[*line].trim().is_empty()).unwrap_or(body);
    let own = |name: &String| {
        !COMMON.split(' ').any(|common| common == name) && !name.starts_with("test") && !name.starts_with("assert")
    };
    let lines = lines.get(at..body).into_iter().chain(lines.get(from..at)).flatten();
    code::calls(lines).into_iter().filter(own).collect()
}

/// Pairs of what was there and what a test wanted, as the common runners write them: either may be the wrong one in the
/// source, so both orders come.
pub(super) fn expected(output: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |one: &str, other: &str| {
        let bare = |text: &str| text.trim().trim_end_matches([',', ';']).trim_matches(['"', '\'', '`']).to_owned();
        let (one, other) = (bare(one), bare(other));
        let short = |text: &String| !text.is_empty() && text.len() <= 80;
        if one != other && short(&one) && short(&other) {
            for pair in [(one.clone(), other.clone()), (other, one)] {
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    };
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    const TOLD: [(&str, &str); 8] = [
        ("expected ", ", got "),
        ("expected ", ", but got "),
        ("expected ", " got "),
        ("want ", ", got "),
        ("got ", ", want "),
        ("got ", "; want "),
        ("got ", ", expected "),
        ("= ", ", want "),
    ];
    let after = |at: usize, mark: &str| lines[at + 1..].iter().take(3).find_map(|line| line.strip_prefix(mark));
    for (at, line) in lines.iter().enumerate() {
        for (one, other) in [("left:", "right:"), ("actual:", "expected:"), ("expected:", "actual:")] {
            if let (Some(one), Some(other)) = (line.strip_prefix(one), after(at, other)) {
                add(one, other);
            }
        }
        for (one, other) in TOLD {
            if let Some((one, other)) = line.split_once(one).and_then(|(_, rest)| rest.split_once(other)) {
                add(one, other);
            }
        }
        let said = line.strip_prefix("AssertionError: ").or_else(|| line.strip_prefix("E       assert "));
        let said = said.or_else(|| line.strip_prefix("E   AssertionError: ")).unwrap_or(line);
        for sign in [" !== ", " != ", " == "] {
            let compared = said.split_once(sign).filter(|_| said != *line || sign == " !== ");
            if let Some((one, other)) = compared {
                add(one, other.split(" : ").next().unwrap_or(other));
            }
        }
    }
    // Where two texts differ in one letter everywhere, that is the pair.
    let only = |one: &str, other: &str| {
        let mut left: Vec<char> = one.chars().filter(|c| !other.contains(*c)).collect();
        left.dedup();
        if let [only] = left[..] { Some(only.to_string()) } else { None }
    };
    let letters: Vec<_> =
        pairs.iter().filter_map(|(one, other)| Some((only(one, other)?, only(other, one)?))).collect();
    // Also what is between the same beginning and the same end.
    let middles: Vec<_> = pairs.iter().filter_map(|(one, other)| middle(one, other)).collect();
    pairs.extend(letters.into_iter().chain(middles));
    pairs
}

/// What two texts do not share, without their common beginning and end.
fn middle(one: &str, other: &str) -> Option<(String, String)> {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let most = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x == y).count();
    let (a, b): (String, String) = (a[start..a.len() - end].iter().collect(), b[start..b.len() - end].iter().collect());
    (start + end > 0 && !a.is_empty() && !b.is_empty()).then_some((a, b))
}

/// The line with one literal in place of another: a number or a word alone, not part of a longer one.
pub(super) fn exchanged(line: &str, actual: &str, meant: &str) -> Option<String> {
    let text = actual.chars().any(|c| !c.is_ascii_digit() && c != '.');
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    line.match_indices(actual).find_map(|(at, _)| {
        let after = &line[at + actual.len()..];
        let alone = !line[..at].ends_with(word) && !after.starts_with(word);
        let (opens, closes) = (line[..at].ends_with(['"', '\'', '`']), after.starts_with(['"', '\'', '`']));
        let quoted = opens && closes || (opens || closes) && actual.chars().count() > 1;
        ((text && quoted) || (!text && alone)).then(|| format!("{}{meant}{after}", &line[..at]))
    })
}

/// What a compiler or an interpreter says the line should be, by its position in the file.
pub(super) fn suggested(path: &str, lines: &[String], output: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let rows: Vec<&str> = output.lines().collect();
    let own = |line: usize, new: &str| {
        let at = line.checked_sub(1).filter(|at| *at < lines.len())?;
        (lines[at].trim_end() != new.trim_end()).then(|| (at, new.trim_end().to_owned()))
    };
    let mut here = false;
    for (at, row) in rows.iter().enumerate() {
        if let Some((_, place)) = row.split_once("--> ") {
            here = place.split(':').next().is_some_and(|file| path.ends_with(file.trim()));
        }
        let Some((number, code)) = numbered(row).filter(|_| here) else { continue };
        // `3 + code`, below `3 - code`; or `3 | code` with `+` or `~` marks below what is new.
        let below = rows.get(at + 1).map_or("", |below| below.trim_start());
        let marks = below.strip_prefix('|').map(str::trim).filter(|marks| !marks.is_empty());
        let marked = marks.is_some_and(|marks| marks.chars().all(|c| matches!(c, '+' | '~' | ' ')));
        if let Some(new) = code.strip_prefix("+ ") {
            let instead = at > 0
                && numbered(rows[at - 1]).is_some_and(|(before, code)| before == number && code.starts_with("- "));
            match lines.get(number.saturating_sub(1)) {
                // Nothing goes for it: the line is new.
                Some(line) if !instead => found.push((number - 1, format!("{new}\n{line}"))),
                _ => found.extend(own(number, new)),
            }
        } else if let Some(new) = code.strip_prefix("| ").filter(|_| marked) {
            found.extend(own(number, new));
        }
    }
    for row in &rows {
        // NameError: name 'totl' is not defined. Did you mean: 'total'?
        let Some(wrong) = missing(row) else { continue };
        let said =
            ["Did you mean: '", "did you mean '", "did you mean: '"].iter().find_map(|mark| row.split_once(mark));
        let meant = said.and_then(|(_, rest)| rest.split('\'').next().map(str::to_owned));
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| words(line).any(|word| word == wrong)) {
            let near = meant.clone().or_else(|| nearest(wrong, lines));
            if let Some(new) = near.and_then(|meant| respelled(line, wrong, &meant)) {
                found.push((at, new));
            }
        }
    }
    // SyntaxError: expected ':'
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.starts_with("SyntaxError: ")) {
        let place = rows[..at].iter().rev().find_map(|row| row.split_once("\", line ")).map(|(_, line)| line.trim());
        let Some((number, line)) = place
            .and_then(|line| line.parse::<usize>().ok())
            .and_then(|number| Some((number, lines.get(number.checked_sub(1)?)?)))
        else {
            continue;
        };
        let end = line.trim_end();
        let new = match () {
            () if row.contains("expected ':'") => format!("{end}:"),
            () if row.contains("'(' was never closed") => format!("{end})"),
            () if row.contains("'[' was never closed") => format!("{end}]"),
            () if row.contains("Maybe you meant '=='") => line.replacen(" = ", " == ", 1),
            () => continue,
        };
        found.push((number - 1, new));
    }
    found
}

fn numbered(row: &str) -> Option<(usize, &str)> {
    let (number, rest) = row.trim_start().split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

/// The name that an error says is not there.
pub(super) fn missing(row: &str) -> Option<&str> {
    let quoted = |start: &str, end: char| row.split_once(start)?.1.split(end).next();
    quoted("NameError: name '", '\'')
        .or_else(|| quoted("has no attribute '", '\''))
        .or_else(|| quoted("cannot find value `", '`'))
        .or_else(|| quoted("cannot find function `", '`'))
        .or_else(|| quoted("cannot import name '", '\''))
        .or_else(|| quoted("cannot find type `", '`'))
        .or_else(|| row.split_once("' undeclared")?.0.rsplit('\'').next())
        .or_else(|| quoted("implicit declaration of function '", '\''))
        .or_else(|| {
            let said = [" is not defined", " is not a function"].iter().find_map(|end| row.split_once(end))?.0;
            said.rsplit([' ', '\'', '.']).next().filter(|name| !name.is_empty() && row.contains("rror"))
        })
        .or_else(|| row.split_once("undefined: ").map(|(_, name)| name.trim()))
}

/// The name in the file that is spelled nearly like this one.
fn nearest(wrong: &str, lines: &[String]) -> Option<String> {
    let known = lines.iter().flat_map(|line| words(line)).filter(|word| *word != wrong && word.len() > 2);
    known.map(|word| (distance(wrong, word), word)).filter(|(far, _)| *far <= 2).min().map(|(_, word)| word.to_owned())
}

/// The line with a name spelled otherwise.
fn respelled(line: &str, wrong: &str, meant: &str) -> Option<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let (at, _) = line
        .match_indices(wrong)
        .find(|(at, _)| !line[..*at].ends_with(word) && !line[at + wrong.len()..].starts_with(word))?;
    Some(format!("{}{meant}{}", &line[..at], &line[at + wrong.len()..]))
}

/// Letters to change, insert or leave out to come from one word to the other.
pub(super) fn distance(one: &str, other: &str) -> usize {
    let differing: Vec<(char, char)> = one.chars().zip(other.chars()).filter(|(a, b)| a != b).collect();
    if let [(a, b), (c, d)] = differing[..]
        && (a, b) == (d, c)
        && one.len() == other.len()
    {
        return 1;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (column, b) in other.iter().enumerate() {
            let change = before + usize::from(a != *b);
            before = row[column + 1];
            row[column + 1] = change.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_each_language_writes_them() {
        fn check(output: &str, want: &str) {
            let found = places(output, "/w").into_iter().map(|place| format!("{}:{}", place.path, place.line));
            assert_eq!(found.collect::<Vec<_>>().join(" "), want, "{output}");
        }
        check("thread 'a' panicked at src/lib.rs:9:9:", "src/lib.rs:9");
        check("  --> /w/src/main.rs:3:5", "src/main.rs:3");
        check("  File \"/w/test_a.py\", line 5, in test_a\n  File \"/usr/lib/python3/x.py\", line 9", "test_a.py:5");
        check("    at Object.<anonymous> (file:///w/a.test.js:7:10)\n    at node:internal/x.js:1:1", "a.test.js:7");
        check("location: '/w/a.test.js:3:1' x:1", "a.test.js:3");
        check("  12: __libc_start_main_impl\n      at ./csu/../csu/libc-start.c:360:3", "");
    }

    #[test]
    fn calls_near_a_line() {
        let lines = ["def test_a():", "    cart = Cart()", "    cart.add(3)", "    assert total(cart) == 3"];
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(called_near(&lines, 4), ["total", "Cart", "add"]);
        assert_eq!(called_near(&lines, 1), ["Cart", "add", "total"]);
    }
}
