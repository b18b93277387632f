//! Reads a failure: where it points, what it expected, and which small changes of the code it speaks for. Pure.

/// A line of source code that an output names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    /// From 1.
    pub(super) line: usize,
}

impl Place {
    pub(super) fn is_test(&self) -> bool {
        is_test(&self.path)
    }
}

/// Whether a file holds tests and nothing else, by its name.
pub(super) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folder = path.split('/').rev().skip(1).any(|part| matches!(part, "tests" | "test" | "__tests__" | "spec"));
    folder || name.starts_with("test") || ["_test.", ".test.", ".spec."].iter().any(|part| name.contains(part))
}

/// Every `path:line` of source code of the project, in order; also as Python and Node write them.
pub(super) fn places(output: &str, cwd: &str) -> Vec<Place> {
    const SOURCES: [&str; 11] = [".rs", ".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".c", ".rb", ".java"];
    let mut found: Vec<Place> = Vec::new();
    let mut add = |path: &str, line: usize| {
        let path = path.trim_start_matches("file://").trim_start_matches("./");
        let own = path.strip_prefix(cwd).map(|rest| rest.trim_start_matches('/'));
        let foreign = own.is_none() && (path.starts_with(['/', '<']) || path.contains("../"));
        let path = own.unwrap_or(path);
        let built = ["node_modules/", "site-packages/", "target/", "node:"].iter().any(|part| path.contains(part));
        let place = Place { path: path.to_owned(), line };
        if SOURCES.iter().any(|end| path.ends_with(end)) && !foreign && !built && !found.contains(&place) {
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

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// What is called in the test around a line, the line itself first.
pub(super) fn called_near(lines: &[String], line: usize) -> Vec<String> {
    const COMMON: [&str; 28] = [
        "assert",
        "assert_eq",
        "assert_ne",
        "assertEqual",
        "assertTrue",
        "assertFalse",
        "assertRaises",
        "equal",
        "strictEqual",
        "deepEqual",
        "deepStrictEqual",
        "ok",
        "throws",
        "expect",
        "toBe",
        "toEqual",
        "print",
        "len",
        "range",
        "list",
        "dict",
        "set",
        "str",
        "int",
        "require",
        "test",
        "it",
        "describe",
    ];
    let at = line.saturating_sub(1).min(lines.len().saturating_sub(1));
    let starts = |text: &String| {
        let text = text.trim_start();
        ["def ", "fn ", "test(", "it(", "func ", "async def ", "pub fn "].iter().any(|start| text.starts_with(start))
    };
    let from = (0..=at).rev().find(|above| lines.get(*above).is_some_and(starts)).unwrap_or(at.saturating_sub(10));
    // Some runners name the line that the test begins with: then its body follows.
    let body = if lines.get(at).is_some_and(starts) { (at + 10).min(lines.len()) } else { at + 1 };
    let body = (at + 1..body).find(|line| lines[*line].trim().is_empty()).unwrap_or(body);
    let mut found: Vec<String> = Vec::new();
    for text in lines.get(at..body).into_iter().chain(lines.get(from..at)).flatten() {
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('(') {
            let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let named = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            let own = !COMMON.contains(&name) && !name.starts_with("test") && !name.starts_with("assert");
            if named && own && !before.trim_end().ends_with("fn") && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
            rest = after;
        }
    }
    found
}

/// One line, and what it could be instead.
pub(super) struct Change {
    pub(super) line: usize,
    pub(super) old: String,
    pub(super) new: String,
    /// The line with its neighbours, so that the edit is unique.
    pub(super) old_context: String,
    pub(super) new_context: String,
}

impl Change {
    fn of(lines: &[String], at: usize, new: String) -> Change {
        let (from, to) = (at.saturating_sub(1), (at + 2).min(lines.len()));
        let mut changed = lines[from..to].to_vec();
        changed[at - from].clone_from(&new);
        let old = lines[at].clone();
        Change { line: at, old, new, old_context: lines[from..to].join("\n"), new_context: changed.join("\n") }
    }
}

/// Small slips and what was meant, most common first.
const SLIPS: [(&str, &str); 44] = [
    (" - 1", ""),
    (" + 1", ""),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" - ", " + "),
    (" + ", " - "),
    (" -= ", " += "),
    (" += ", " -= "),
    (" && ", " || "),
    (" || ", " && "),
    (" and ", " or "),
    (" or ", " and "),
    (" == ", " != "),
    (" != ", " == "),
    (" === ", " !== "),
    (" !== ", " === "),
    ("..=", ".."),
    ("..", "..="),
    (" * ", " / "),
    (" / ", " * "),
    (" // ", " / "),
    (" % ", " / "),
    (" < ", " > "),
    (" > ", " < "),
    ("true", "false"),
    ("false", "true"),
    ("True", "False"),
    ("False", "True"),
    (" not ", " "),
    ("min(", "max("),
    ("max(", "min("),
    ("lower", "upper"),
    ("upper", "lower"),
    ("Lower", "Upper"),
    ("Upper", "Lower"),
    ("[0]", "[1]"),
    ("[1]", "[0]"),
    ("[0]", "[-1]"),
    ("first", "last"),
    ("last", "first"),
    (".any(", ".all("),
    (".all(", ".any("),
];

/// The name that a line declares a function with.
fn declared(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let starts = [
        "pub fn ",
        "fn ",
        "pub async fn ",
        "async fn ",
        "pub const fn ",
        "def ",
        "async def ",
        "export function ",
        "export default function ",
        "export async function ",
        "async function ",
        "function ",
        "func ",
        "export const ",
        "const ",
        "let ",
    ];
    let rest = starts.iter().find_map(|start| code.strip_prefix(start))?;
    let arrow = !["const ", "let "].iter().any(|word| code.trim_start_matches("export ").starts_with(word))
        || code.contains("=>")
        || code.contains("function");
    words(rest).next().filter(|_| arrow)
}

/// Candidates in the code before its tests: what the output itself suggests, then what it expected, then small slips;
/// in functions that the failure points to before all others.
pub(super) fn changes(path: &str, lines: &[String], called: &[String], output: &str) -> Vec<Change> {
    let end = lines.iter().position(|line| line.contains("#[cfg(test)]")).unwrap_or(lines.len());
    // Passing tests are named in the output, too.
    let telling = |line: &&str| {
        ["FAILED", "FAIL", "panicked", "Error", "error", "not ok"].iter().any(|word| line.contains(word))
            || line.starts_with("----")
    };
    let failing: Vec<&str> = output.lines().filter(telling).flat_map(words).filter(|word| word.len() > 3).collect();
    let tests = lines[end..].join("\n");
    let pairs = expected(output);
    let mut found = Vec::new();
    for (at, new) in suggested(path, lines, output) {
        found.push((0, false, 0, at, Change::of(lines, at, new)));
    }
    let mut named = false;
    for (at, line) in lines[..end].iter().enumerate() {
        let code = line.trim_start();
        let head = declared(line);
        if let Some(name) = head {
            named =
                failing.contains(&name) || called.iter().any(|known| known == name) || tested(&tests, &failing, name);
        }
        let comment = ["//", "#", "*", "/*", "\"\"\""].iter().any(|start| code.starts_with(start));
        let brings = ["use ", "import ", "from ", "package "].iter().any(|start| code.starts_with(start));
        if comment || brings {
            continue;
        }
        for (rank, (actual, meant)) in pairs.iter().enumerate() {
            if let Some(new) = exchanged(line, actual, meant) {
                found.push((1, !named, rank, at, Change::of(lines, at, new)));
            }
        }
        // A head is no place for a slip, unless its body is on the same line.
        let one_line = code.contains("=>") || code.ends_with('}') || code.contains(": return ");
        if head.is_some() && !one_line {
            continue;
        }
        for (rank, (slip, meant)) in SLIPS.iter().enumerate() {
            for (column, _) in line.match_indices(slip) {
                let after = &line[column + slip.len()..];
                // `..` is not part of `..=`, and a word not part of another.
                let part = (*slip == ".." && after.starts_with(['=', '.']))
                    || slip.ends_with(|c: char| c.is_ascii_digit()) && after.starts_with(|c: char| c.is_ascii_digit());
                if !part {
                    let new = format!("{}{meant}{after}", &line[..column]);
                    found.push((2, !named, rank, at, Change::of(lines, at, new)));
                }
            }
        }
    }
    found.sort_by_key(|(kind, other, rank, at, _)| (*other, *kind, *rank, *at));
    let mut changes: Vec<Change> = Vec::new();
    for (.., change) in found {
        if !changes.iter().any(|known| known.line == change.line && known.new == change.new) {
            changes.push(change);
        }
    }
    changes
}

/// Pairs of what was there and what a test wanted, as the common runners write them: either may be the wrong one in the
/// source, so both orders come.
fn expected(output: &str) -> Vec<(String, String)> {
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
    let after = |at: usize, mark: &str| lines[at + 1..].iter().take(3).find_map(|line| line.strip_prefix(mark));
    for (at, line) in lines.iter().enumerate() {
        for (one, other) in [("left:", "right:"), ("actual:", "expected:"), ("expected:", "actual:")] {
            if let (Some(one), Some(other)) = (line.strip_prefix(one), after(at, other)) {
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
    pairs
}

/// The line with one literal in place of another: a number or a word alone, not part of a longer one.
fn exchanged(line: &str, actual: &str, meant: &str) -> Option<String> {
    let text = actual.chars().any(|c| !c.is_ascii_digit() && c != '.');
    if text && actual.len() < 2 {
        return None;
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    line.match_indices(actual).find_map(|(at, _)| {
        let after = &line[at + actual.len()..];
        let alone = !line[..at].ends_with(word) && !after.starts_with(word);
        let quoted = line[..at].ends_with(['"', '\'', '`']) || after.starts_with(['"', '\'', '`']);
        ((text && quoted) || (!text && alone)).then(|| format!("{}{meant}{after}", &line[..at]))
    })
}

/// What a compiler or an interpreter says the line should be, by its position in the file.
fn suggested(path: &str, lines: &[String], output: &str) -> Vec<(usize, String)> {
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
            found.extend(own(number, new));
        } else if let Some(new) = code.strip_prefix("| ").filter(|_| marked) {
            found.extend(own(number, new));
        }
    }
    for row in &rows {
        // NameError: name 'totl' is not defined. Did you mean: 'total'?
        let Some(wrong) = missing(row) else { continue };
        let meant = row.split_once("Did you mean: '").and_then(|(_, rest)| rest.split('\'').next().map(str::to_owned));
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| words(line).any(|word| word == wrong)) {
            let near = meant.clone().or_else(|| nearest(wrong, lines));
            if let Some(new) = near.and_then(|meant| respelled(line, wrong, &meant)) {
                found.push((at, new));
            }
        }
    }
    found
}

fn numbered(row: &str) -> Option<(usize, &str)> {
    let (number, rest) = row.trim_start().split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

/// The name that an error says is not there.
fn missing(row: &str) -> Option<&str> {
    let quoted = |start: &str, end: char| row.split_once(start)?.1.split(end).next();
    quoted("NameError: name '", '\'')
        .or_else(|| quoted("has no attribute '", '\''))
        .or_else(|| quoted("cannot find value `", '`'))
        .or_else(|| quoted("cannot find function `", '`'))
        .or_else(|| row.split_once("ReferenceError: ")?.1.strip_suffix(" is not defined"))
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
fn distance(one: &str, other: &str) -> usize {
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

/// Whether a failing test's body calls the function.
fn tested(tests: &str, failing: &[&str], name: &str) -> bool {
    let mut inside = false;
    for line in tests.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("fn ") {
            let test = rest.split('(').next().unwrap_or_default();
            inside = failing.contains(&test);
        } else if inside && line.contains(&format!("{name}(")) {
            return true;
        }
    }
    false
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

    /// The first changes that a failure speaks for.
    fn check(path: &str, source: &str, called: &[&str], output: &str, want: &[&str]) {
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let called: Vec<String> = called.iter().map(ToString::to_string).collect();
        let found = changes(path, &lines, &called, output);
        let new: Vec<&str> = found.iter().take(want.len()).map(|change| change.new.trim()).collect();
        assert_eq!(new, want, "{output}");
    }

    #[test]
    fn what_an_output_suggests_comes_first() {
        let rust = "error[E0425]: cannot find value `totl`\n --> src/lib.rs:2:5\nhelp: a local variable with a similar name exists\n  |\n2 -     totl + 1\n2 +     total + 1\n";
        check("src/lib.rs", "fn a(total: u8) -> u8 {\n    totl + 1\n}", &[], rust, &["total + 1"]);
        let insert =
            "error: expected `;`\n --> src/lib.rs:1:10\nhelp: add `;` here\n  |\n1 | let a = 1;\n  |          +\n";
        check("src/lib.rs", "let a = 1\nlet b = 2;", &[], insert, &["let a = 1;"]);
        let python = "NameError: name 'totl' is not defined. Did you mean: 'total'?";
        check("a.py", "def a(total):\n    return totl", &["a"], python, &["return total"]);
        let node = "ReferenceError: nmae is not defined";
        check("a.js", "function a(name) {\n  return nmae;\n}", &["a"], node, &["return name;"]);
    }

    #[test]
    fn what_was_expected_comes_before_slips() {
        let rust = "---- tests::greets stdout ----\n  left: \"Helo\"\n right: \"Hello\"\n";
        check("src/lib.rs", "fn greet() -> &'static str {\n    \"Helo\"\n}", &["greet"], rust, &["\"Hello\""]);
        check(
            "a.py",
            "def limit():\n    return 10 - 1 + 30",
            &["limit"],
            "AssertionError: 30 != 31",
            &["return 10 - 1 + 31"],
        );
        let node = "    12 !== 10\n";
        check("a.js", "const f = (a) => a * 12;", &["f"], node, &["const f = (a) => a * 10;"]);
        // A number is not part of a longer one.
        check("a.py", "def limit():\n    return 130 - x", &["limit"], "AssertionError: 30 != 31", &["return 130 + x"]);
    }

    #[test]
    fn calls_near_a_line() {
        let lines = ["def test_a():", "    cart = Cart()", "    cart.add(3)", "    assert total(cart) == 3"];
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(called_near(&lines, 4), ["total", "Cart", "add"]);
        assert_eq!(called_near(&lines, 1), ["Cart", "add", "total"]);
    }
}
