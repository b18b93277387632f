//! Reads source code by its shape alone, in any of the usual languages. Pure.

/// What a line declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Function,
    Type,
    Value,
    Module,
}

/// Files of these endings hold code.
pub(super) const SOURCES: &[&str] = &[
    ".rs", ".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".c", ".h", ".cc", ".cpp", ".hpp", ".rb",
    ".java", ".kt", ".cs", ".php", ".sh",
];

pub(super) fn is_source(path: &str) -> bool {
    SOURCES.iter().any(|end| path.ends_with(end))
}

/// Whether a file holds tests and nothing else, by its name.
pub(super) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folder = path.split('/').rev().skip(1).any(|part| matches!(part, "tests" | "test" | "__tests__" | "spec"));
    folder || name.starts_with("test") || ["_test.", ".test.", ".spec."].iter().any(|part| name.contains(part))
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a line is nothing but a comment.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "#", "*", "/*", "\"\"\""].iter().any(|start| line.starts_with(start))
        && !["#define", "#include", "#["].iter().any(|start| line.starts_with(start))
}

/// Whether a line brings in names from elsewhere.
pub(super) fn brings(line: &str) -> bool {
    let line = line.trim_start();
    ["use ", "pub use ", "import ", "from ", "package ", "#include", "module.exports", "export {"]
        .iter()
        .any(|start| line.starts_with(start))
        || line.contains("require(")
}

/// Words with which no declaration of a function begins, and that are never called.
const CONTROL: &str = "if for while switch return else catch match elif with assert print do case throw raise await new not \
    in and or func fn function";

/// What a line declares, and its name.
pub(super) fn declared(line: &str) -> Option<(Sort, &str)> {
    let first = |text: &str| -> usize { text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()) };
    let mut rest = line.trim();
    if let Some(after) = rest.strip_prefix("#define ") {
        return words(after).next().map(|name| (Sort::Value, name));
    }
    if is_comment(rest) || rest.starts_with(['}', ')', '.', '"', '\'', '@', '<']) {
        return None;
    }
    loop {
        let (word, after) = rest.split_at(first(rest));
        let after = match after.trim_start().strip_prefix('(') {
            Some(scope) if word == "pub" => scope.split_once(')').map_or(scope, |(_, after)| after),
            _ => after,
        };
        let after = after.trim_start();
        let name = |text: &'_ str| first(text);
        let plain = |text: &'_ str| first(text) > 0;
        match word {
            "pub" | "export" | "default" | "async" | "unsafe" | "public" | "private" | "protected" | "abstract"
            | "final" | "inline" | "extern" | "static"
                if plain(after) || after.starts_with(['"', '{']) && word == "extern" =>
            {
                rest = after;
            }
            "fn" | "def" | "function" | "func" => {
                let after = after.trim_start_matches(['*', ' ']);
                // The receiver of a Go method.
                let after = match after.strip_prefix('(') {
                    Some(receiver) => receiver.split_once(')').map_or("", |(_, after)| after.trim_start()),
                    None => after,
                };
                return plain(after).then(|| (Sort::Function, &after[..name(after)]));
            }
            "struct" | "enum" | "trait" | "class" | "interface" | "type" | "union" if plain(after) => {
                let (name, behind) = after.split_at(name(after));
                // `struct ring *make(…)` and `struct ring r;` declare something else.
                if !behind.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '*') || word == "type" {
                    return Some((Sort::Type, name));
                }
                break;
            }
            "mod" if plain(after) => return Some((Sort::Module, &after[..name(after)])),
            "const" | "let" | "var" if after.starts_with("fn ") || after.starts_with("unsafe ") => rest = after,
            "const" | "let" | "var" => {
                let function = after.contains("=>") || after.contains("= function") || after.contains("= async");
                let sort = if function { Sort::Function } else { Sort::Value };
                return (plain(after) && (function || indent(line) == 0)).then(|| (sort, &after[..name(after)]));
            }
            _ => break,
        }
    }
    let (name, after) = rest.split_at(first(rest));
    let after = after.trim_start();
    let assigned = after.starts_with('=') && !after.starts_with("==") || after.starts_with(": ");
    let caps = name.len() > 1 && name.chars().all(|c| !c.is_lowercase());
    if !name.is_empty() && assigned && (caps || indent(line) == 0 && !after.starts_with(':')) {
        return Some((Sort::Value, name));
    }
    // `int push(struct ring *r) {`, or the method of a class.
    let (before, arguments) = rest.split_once('(')?;
    let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())?;
    let typed = before.chars().all(|c| c.is_alphanumeric() || "_ *&<>:,".contains(c));
    let two = words(before).count() > 1;
    let opens = rest.ends_with('{') || indent(line) == 0 && two && rest.ends_with(')');
    let call = ["=>", "function", "\"", "'"].iter().any(|part| arguments.contains(part));
    let control = words(before).next().is_some_and(|word| CONTROL.split(' ').any(|control| control == word));
    (typed && opens && !call && !control).then_some((Sort::Function, name))
}

/// A declaration with its place.
pub(super) struct Item<'a> {
    pub(super) sort: Sort,
    pub(super) name: &'a str,
    /// Index of the first line, and of the line behind the last.
    pub(super) at: usize,
    pub(super) end: usize,
    /// The first sentence that its comment says of it.
    pub(super) doc: Option<String>,
}

pub(super) fn items(lines: &[String]) -> Vec<Item<'_>> {
    let found = lines.iter().enumerate().filter_map(|(at, line)| declared(line).map(|found| (at, found)));
    found.map(|(at, (sort, name))| Item { sort, name, at, end: end(lines, at), doc: doc(lines, at) }).collect()
}

/// Where the body of a declaration ends: what is indented deeper, with the line that closes it.
pub(super) fn end(lines: &[String], at: usize) -> usize {
    let base = lines.get(at).map_or(0, |line| indent(line));
    let deeper = |line: &&String| line.trim().is_empty() || indent(line) > base;
    let mut end = at + 1;
    if lines.get(end).is_some_and(|line| line.trim() == "{" && indent(line) == base) {
        end += 1;
    }
    end += lines.iter().skip(end).take_while(deeper).count();
    let closes = |line: &String| indent(line) == base && line.trim_start().starts_with(['}', ')', ']']);
    if lines.get(end).is_some_and(closes) {
        return end + 1;
    }
    // Blank lines behind belong to nobody.
    end - lines[at..end].iter().rev().take_while(|line| line.trim().is_empty()).count()
}

/// Where the comment above a declaration begins.
pub(super) fn above(lines: &[String], at: usize) -> usize {
    let mark = |line: &str| is_comment(line) || line.trim_start().starts_with(['@', '*']) || line.contains("#[");
    (0..at.min(lines.len())).rev().take_while(|above| mark(&lines[*above])).last().unwrap_or(at)
}

fn doc(lines: &[String], at: usize) -> Option<String> {
    let bare = |line: &String| line.trim().trim_matches(['/', '!', '#', '*', '"', ' ']).to_owned();
    let said: Vec<String> = lines[above(lines, at)..at].iter().filter(|line| is_comment(line)).map(bare).collect();
    let inside = lines.get(at + 1).filter(|line| line.trim().starts_with("\"\"\"")).map(bare);
    let note =
        |text: &String| ["TODO", "FIXME", "XXX", "HACK", "eslint", "noqa"].iter().any(|mark| text.contains(mark));
    let text: Vec<String> = inside.into_iter().chain(said).filter(|text| !text.is_empty() && !note(text)).collect();
    let text = text.join(" ");
    let sentence = text.find(". ").map_or(text.as_str(), |at| &text[..=at]);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

/// Names that are called in some lines, in order, each once.
pub(super) fn calls<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines.into_iter().filter(|line| !is_comment(line)) {
        for (at, _) in line.match_indices('(') {
            let before = &line[..at];
            let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let head = before[..before.len() - name.len()].trim_end();
            let declares = ["fn", "def", "func", "function"].iter().any(|word| head.ends_with(word));
            let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if starts
                && !declares
                && !CONTROL.split(' ').any(|control| control == name)
                && !found.iter().any(|known| known == name)
            {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// What a function takes, calls, returns and refuses, as its lines say.
pub(super) fn reading(lines: &[String], item: &Item) -> Vec<String> {
    let (head, body) = (&lines[item.at], &lines[item.at + 1..item.end]);
    let mut told = Vec::new();
    let taken = head.split_once(&format!("{}(", item.name)).map(|(_, rest)| {
        let closes = rest.rfind(") ->").or_else(|| rest.rfind("):")).or_else(|| rest.rfind(')'));
        rest[..closes.unwrap_or(rest.len())].to_owned()
    });
    told.extend(taken.filter(|taken| !taken.is_empty()).map(|taken| format!("takes `{taken}`")));
    for (at, line) in body.iter().enumerate() {
        let code = line.trim().trim_end_matches(['}', ' ']);
        let leaves = [("return ", "returns"), ("raise ", "raises"), ("throw ", "throws")];
        let Some((column, (mark, verb))) =
            leaves.iter().find_map(|leaf| Some((code.find(leaf.0).filter(|_| !is_comment(line))?, *leaf)))
        else {
            continue;
        };
        let value = code[column + mark.len()..].trim_end_matches([';', ' ', ',']);
        // The condition comes before it on the line, or on the nearest line that is less deep.
        let outer = || body[..at].iter().rev().find(|above| !above.trim().is_empty() && indent(above) < indent(line));
        let condition = if column > 0 { Some(code[..column].to_owned()) } else { outer().cloned() };
        let bare = |text: String| {
            let text = text.trim().trim_start_matches(['}', ' ']).trim_end_matches(['{', ':', ' ']).to_owned();
            let asked = text.strip_prefix("if ").or_else(|| text.strip_prefix("elif "))?;
            let inner = asked.strip_prefix('(').and_then(|asked| asked.strip_suffix(')'));
            Some(inner.unwrap_or(asked).to_owned())
        };
        let when = condition.and_then(bare).map_or(String::new(), |asked| format!(" when `{asked}`"));
        told.push(format!("{verb} `{}`{when}", value.trim_start_matches('(').trim_end_matches(['(', '{', '['])));
    }
    // The last expression of a Rust function.
    let last = body.iter().rev().skip(1).find(|line| !line.trim().is_empty());
    let tail = last.filter(|line| head.contains("->") && head.contains("fn ") && indent(line) == indent(head) + 4);
    if let Some(tail) = tail.map(|line| line.trim()).filter(|tail| !tail.ends_with([';', '}', '{', ','])) {
        told.push(format!("returns `{tail}`"));
    }
    let called: Vec<String> = calls(body).into_iter().filter(|name| name != item.name).take(8).collect();
    if !called.is_empty() {
        told.push(format!("calls `{}`", called.join("`, `")));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_every_language() {
        fn check(line: &str, want: Option<(Sort, &str)>) {
            assert_eq!(declared(line), want, "{line}");
        }
        check("pub(crate) async fn read(path: &str) -> u8 {", Some((Sort::Function, "read")));
        check("    def total(self, items):", Some((Sort::Function, "total")));
        check("export const add = (a, b) => a + b;", Some((Sort::Function, "add")));
        check("func (s *Store) Get(key string) int {", Some((Sort::Function, "Get")));
        check("static int ring_push(struct ring *r, int value) {", Some((Sort::Function, "ring_push")));
        check("struct ring *make(void)", Some((Sort::Function, "make")));
        check("  area(width, height) {", Some((Sort::Function, "area")));
        check("public static void main(String[] args) {", Some((Sort::Function, "main")));
        check("struct ring {", Some((Sort::Type, "ring")));
        check("pub struct Report(u8);", Some((Sort::Type, "Report")));
        check("#define RING_SIZE 8", Some((Sort::Value, "RING_SIZE")));
        check("TAX_RATE = 0.19", Some((Sort::Value, "TAX_RATE")));
        check("pub const LIMIT: usize = 3;", Some((Sort::Value, "LIMIT")));
        check("const RETRIES = 3;", Some((Sort::Value, "RETRIES")));
        check("    if (ready(x)) {", None);
        check("    struct ring r;", None);
        check("test('adds', () => {", None);
        check("    total = add(1, 2)", None);
        check("# def gone():", None);
    }

    #[test]
    fn a_function_is_read_by_what_leaves_it() {
        fn check(code: &str, want: &[&str]) {
            let lines: Vec<String> = code.lines().map(str::to_owned).collect();
            assert_eq!(reading(&lines, &items(&lines)[0]), want, "{code}");
        }
        check(
            "def off(amount, percent):\n    if percent < 0:\n        raise ValueError(\"no\")\n    return amount * percent",
            &[
                "takes `amount, percent`",
                "raises `ValueError(\"no\")` when `percent < 0`",
                "returns `amount * percent`",
                "calls `ValueError`",
            ],
        );
        check(
            "int push(struct ring *r) {\n    if (r->count == SIZE)\n        return 0;\n    return 1;\n}",
            &["takes `struct ring *r`", "returns `0` when `r->count == SIZE`", "returns `1`"],
        );
        check(
            "fn two(text: &str) -> usize {\n    text.len() + 2\n}",
            &["takes `text: &str`", "returns `text.len() + 2`", "calls `len`"],
        );
    }
}
