//! The YAML at the head of a Markdown file, between `---` lines, read as people write it.
//!
//! Strict YAML first. What that rejects is read entry by entry, so that one bad value does not take the others along; a
//! value that is not YAML at all counts as plain text.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::text::split_list;

/// Largest head that is read as YAML, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// What a file's head says, and where its body begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frontmatter {
    /// By key in snake_case, in the order of the file; of a repeated key the last.
    pub fields: Vec<Field>,
    /// Where the body starts, in bytes of the text.
    pub body: Range<usize>,
    pub faults: Vec<Fault>,
}

/// One top-level key.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// In snake_case.
    pub key: String,
    /// As it is written.
    pub written: String,
    pub value: Value,
    /// From 1.
    pub line: usize,
}

/// Something that strict readers would not take. None of it keeps the file from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The file has no head at all.
    Missing,
    /// There is a comment above the head.
    Preceded,
    /// The whole file is inside a code fence, as some editors save it.
    Wrapped,
    /// The head does not end; it was taken to end before this line.
    Unclosed,
    /// Above `MOST_BYTES`: only the plain lines of it were read.
    TooLong,
    /// The value of this key is not YAML and counts as text.
    Text { key: String, reason: String },
    /// A line that belongs to no key.
    Stray { text: String },
    /// The key is repeated here; this one counts.
    Repeated { key: String },
    /// ` #` begins a comment, which cut this value.
    Comment { key: String },
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Missing => write!(f, "no frontmatter"),
            FaultKind::Preceded => write!(f, "there is a comment above the frontmatter"),
            FaultKind::Wrapped => write!(f, "the whole file is inside a code fence"),
            FaultKind::Unclosed => write!(f, "the frontmatter has no closing `---`"),
            FaultKind::TooLong => write!(f, "the frontmatter is larger than 64 KiB"),
            FaultKind::Text { key, reason } => write!(f, "the value of `{key}` is not valid YAML ({reason})"),
            FaultKind::Stray { text } => write!(f, "`{text}` is not `key: value`"),
            FaultKind::Repeated { key } => write!(f, "`{key}` is written twice"),
            FaultKind::Comment { key } => write!(f, "` #` starts a comment in the value of `{key}`"),
        }
    }
}

/// How a value is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// As written for one program: text is text.
    Strictly,
    /// As written for many: what looks like text was meant as text.
    Leniently,
}

impl Taken {
    /// The value as text; a name of digits is a number to YAML.
    pub fn text(self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ if self == Taken::Strictly => None,
            Value::Bool(flag) => Some(flag.to_string()),
            // `[a, b]` where a text is wanted.
            Value::Array(items) => {
                items.iter().map(|item| self.text(item)).collect::<Option<Vec<_>>>().map(|items| items.join(", "))
            }
            // `description: {name}`, or `Bash(a: b)` in a list.
            Value::Object(map) => {
                let pairs = map.iter().map(|(key, value)| match value {
                    Value::Null => Some(key.clone()),
                    value => Some(format!("{key}: {}", self.text(value)?)),
                });
                pairs.collect::<Option<Vec<_>>>().map(|pairs| pairs.join(", "))
            }
            Value::Null => None,
        }
    }

    /// Names in a list, or in one text with commas or blanks between them, each once; what is in brackets stays together.
    /// What is not a name goes to `odd`.
    pub fn names<'a>(self, value: &'a Value, odd: &mut Vec<&'a Value>) -> Vec<String> {
        let items = match value {
            Value::Null => return Vec::new(),
            Value::Array(items) => items.as_slice(),
            value => std::slice::from_ref(value),
        };
        let mut names = Vec::new();
        for item in items.iter().filter(|item| !item.is_null()) {
            // A number is not a name, where names are taken strictly.
            let Some(text) = self.text(item).filter(|_| self == Taken::Leniently || item.is_string()) else {
                odd.push(item);
                continue;
            };
            // A list that is never closed, too.
            let text = text.strip_prefix('[').map_or(text.as_str(), |text| text.trim_end_matches(']'));
            for name in split_list(text, |c| c == ',' || c.is_whitespace()) {
                let name = name.trim_matches(['"', '\'']).to_owned();
                if !name.is_empty() && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}

impl Frontmatter {
    /// Reads the head of a text. Never fails: what cannot be read is a fault.
    pub fn read(text: &str) -> Frontmatter {
        let lines = lines(text);
        let Some(Opening { at: open, mut faults, wrap }) = opening(&lines) else {
            let start = text.len() - text.trim_start_matches('\u{feff}').len();
            return Frontmatter {
                body: start..text.len(),
                faults: vec![Fault { line: 1, kind: FaultKind::Missing }],
                ..Default::default()
            };
        };
        let rest = &lines[open + 1..];
        let (count, after) = match rest.iter().position(|line| fence(line.text) || line.text.trim_end() == "...") {
            Some(close) => (close, close + 1),
            None => {
                let end = unclosed_end(rest);
                faults.push(Fault { line: open + 2 + end, kind: FaultKind::Unclosed });
                (end, end)
            }
        };
        let body = match wrap {
            Some(wrap) => unwrapped(&rest[after.min(rest.len())..], wrap, text.len()),
            None => rest.get(after).map_or(text.len(), |line| line.start)..text.len(),
        };
        let head = &rest[..count];
        let mut found = Frontmatter { fields: Vec::new(), body, faults };
        found.fill(head, open + 2);
        found
    }

    /// The field of a key in snake_case.
    pub fn get(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    fn fill(&mut self, head: &[Line<'_>], first: usize) {
        let size: usize = head.iter().map(|line| line.text.len() + 1).sum();
        if size > MOST_BYTES {
            self.faults.push(Fault { line: first, kind: FaultKind::TooLong });
        }
        let entries = entries(head, first, &mut self.faults);
        let whole = (size <= MOST_BYTES).then(|| yaml(&join(head))).and_then(Result::ok);
        let whole = match whole {
            Some(Value::Object(map)) => Some(map),
            // Only comments and blank lines.
            Some(Value::Null) if entries.is_empty() => return,
            _ => None,
        };
        if whole.is_some() {
            // Quoted keys, or a head in braces: read, though no line begins with a key.
            self.faults.retain(|fault| !matches!(fault.kind, FaultKind::Stray { .. }));
        }
        let shown: Vec<&str> = entries.iter().map(|entry| entry.key).collect();
        for entry in entries {
            let value = match whole.as_ref().and_then(|map| map.get(entry.key)) {
                Some(value) => value.clone(),
                None => entry.alone(size <= MOST_BYTES, &mut self.faults),
            };
            if let Value::String(text) = &value
                && entry.cut_by_comment(text)
            {
                self.faults.push(Fault { line: entry.line, kind: FaultKind::Comment { key: entry.key.into() } });
            }
            self.put(Field { key: snake(entry.key), written: entry.key.into(), value, line: entry.line });
        }
        // Keys that no line shows: a head in flow style, or quoted keys.
        for (key, value) in whole.into_iter().flatten() {
            if !shown.contains(&key.as_str()) {
                self.put(Field { key: snake(&key), written: key, value, line: first });
            }
        }
        self.faults.sort_by_key(|fault| fault.line);
    }

    fn put(&mut self, field: Field) {
        if let Some(at) = self.fields.iter().position(|known| known.key == field.key) {
            self.faults.push(Fault { line: field.line, kind: FaultKind::Repeated { key: field.written.clone() } });
            self.fields.remove(at);
        }
        self.fields.push(field);
    }
}

/// A line without its end, and where it starts.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    start: usize,
    text: &'a str,
}

/// Lines of a text that ends them with LF, CRLF or, without any LF, CR.
fn lines(text: &str) -> Vec<Line<'_>> {
    let skip = text.len() - text.trim_start_matches('\u{feff}').len();
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let mut start = skip;
    let split = text[skip..].split(end).map(|line| {
        let found = Line { start, text: line.strip_suffix('\r').unwrap_or(line) };
        start += line.len() + 1;
        found
    });
    split.collect()
}

/// Where a head begins.
struct Opening<'a> {
    /// Index of the line with its dashes.
    at: usize,
    faults: Vec<Fault>,
    /// The fence that the file is wrapped in, without its language.
    wrap: Option<&'a str>,
}

/// Finds the head's first line: the first of the file, except for blank lines, comments and a fence around everything.
fn opening<'a>(lines: &[Line<'a>]) -> Option<Opening<'a>> {
    let mut opening = Opening { at: 0, faults: Vec::new(), wrap: None };
    let mut commented = false;
    loop {
        let text = lines.get(opening.at)?.text;
        if commented || text.trim_start().starts_with("<!--") {
            if !commented {
                opening.faults.push(Fault { line: opening.at + 1, kind: FaultKind::Preceded });
            }
            commented = !text.contains("-->");
        } else if fence(text) {
            return Some(opening);
        } else if !text.trim().is_empty() {
            let bare = text.trim_start_matches('`');
            let run = text.len() - bare.len();
            if run < 3 || opening.wrap.is_some() || bare.trim().contains(|c: char| !c.is_alphanumeric()) {
                return None;
            }
            opening.faults.push(Fault { line: opening.at + 1, kind: FaultKind::Wrapped });
            opening.wrap = Some(&text[..run]);
        }
        opening.at += 1;
    }
}

/// The body between a head and the fence that closes behind it: at the file's end, or before the body begins.
fn unwrapped(lines: &[Line<'_>], wrap: &str, end: usize) -> Range<usize> {
    let start = |at: usize| lines.get(at).map_or(end, |line| line.start);
    let closes = |at: usize| lines[at].text.trim() == wrap;
    let full = |line: &Line<'_>| !line.text.trim().is_empty();
    match (lines.iter().position(full), lines.iter().rposition(full)) {
        (Some(first), _) if closes(first) => start(first + 1)..end,
        (_, Some(last)) if closes(last) => start(0)..start(last),
        _ => start(0)..end,
    }
}

/// Three dashes or more, from the first column.
fn fence(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// How many lines after an opening fence without a closing one still look like a head.
fn unclosed_end(lines: &[Line<'_>]) -> usize {
    let mut end = 0;
    for (at, line) in lines.iter().enumerate() {
        let text = line.text;
        let belongs = key_of(text).is_some() || (at > 0 && (text.starts_with([' ', '\t']) || text.starts_with("- ")));
        if !belongs || text.trim().is_empty() {
            break;
        }
        end = at + 1;
    }
    end
}

/// The key and what follows its colon, for a line that begins an entry.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let fits = key.len() <= 64 && key.starts_with(|c: char| c.is_alphabetic() || c == '_') && key.chars().all(plain);
    // `http://…` is not an entry, nor is a sentence with a colon.
    let words = key.split(' ').count();
    (fits && words <= 3 && (rest.is_empty() || rest.starts_with([' ', '\t']) || words == 1 && !rest.starts_with('/')))
        .then(|| (key, rest.trim()))
}

/// A key with all lines that belong to it.
struct Entry<'a> {
    key: &'a str,
    /// What follows the colon.
    rest: &'a str,
    line: usize,
    more: Vec<&'a str>,
}

fn entries<'a>(head: &[Line<'a>], first: usize, faults: &mut Vec<Fault>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for (at, line) in head.iter().enumerate() {
        let text = line.text;
        let own = !text.starts_with([' ', '\t', '#']) && !text.trim().is_empty() && !text.starts_with("- ");
        match (own.then(|| key_of(text)).flatten(), entries.last_mut()) {
            (Some((key, rest)), _) => entries.push(Entry { key, rest, line: first + at, more: Vec::new() }),
            (None, Some(entry)) => entry.more.push(text),
            (None, None) if text.trim().is_empty() || text.starts_with('#') => {}
            (None, None) => {
                let text = text.trim().chars().take(80).collect();
                faults.push(Fault { line: first + at, kind: FaultKind::Stray { text } });
            }
        }
    }
    entries
}

impl Entry<'_> {
    /// The value of an entry whose neighbours, or itself, are not YAML.
    fn alone(&self, small: bool, faults: &mut Vec<Fault>) -> Value {
        let mut text = format!("{}: {}\n", self.key, self.rest);
        self.more.iter().for_each(|line| {
            text.push_str(line);
            text.push('\n');
        });
        let reason = match small.then(|| yaml(&text)) {
            Some(Ok(Value::Object(map))) if map.len() == 1 => {
                return map.into_iter().next().map_or(Value::Null, |(_, value)| value);
            }
            Some(Err(reason)) => reason,
            _ => "not one value".to_owned(),
        };
        faults.push(Fault { line: self.line, kind: FaultKind::Text { key: self.key.into(), reason } });
        let lines = || self.more.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let block = matches!(self.rest.trim_end_matches(['-', '+', '1', '2', '4', '8']), "|" | ">");
        let items: Vec<&str> = lines().filter_map(|line| line.strip_prefix("- ")).collect();
        if self.rest.is_empty() && !items.is_empty() && items.len() == lines().count() {
            return Value::Array(items.into_iter().map(|item| Value::String(unquoted(item).into())).collect());
        }
        let head = if block { "" } else { self.rest };
        let glue = if self.rest.starts_with('|') { "\n" } else { " " };
        let parts: Vec<&str> = std::iter::once(head).filter(|head| !head.is_empty()).chain(lines()).collect();
        Value::String(unquoted(&parts.join(glue)).to_owned())
    }

    /// Whether YAML took the end of a plain one-line value for a comment.
    fn cut_by_comment(&self, value: &str) -> bool {
        let plain = !self.rest.starts_with(['"', '\'', '|', '>', '#']);
        plain && self.rest.contains(" #") && self.rest.len() > value.len() && self.rest.starts_with(value)
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn join(lines: &[Line<'_>]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
    for line in lines {
        text.push_str(line.text);
        text.push('\n');
    }
    text
}

/// Reads YAML as JSON: `yes` stays a string, `0755` too, aliases cannot explode.
fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_yaml::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        duplicate_keys: serde_yaml::options::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        budget: serde_yaml::budget! { max_nodes: 10_000, max_depth: 64 },
    };
    serde_yaml::from_str_with_options::<Value>(text, options).map_err(|error| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        // The position counts from the entry, not from the file: the caller names the line.
        text.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

/// `allowedTools`, `Allowed-Tools`, `allowed tools` → `allowed_tools`.
pub fn snake(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 2);
    let mut before = '_';
    for c in key.chars() {
        match c {
            '-' | ' ' | '_' => snake.push('_'),
            c if c.is_uppercase() => {
                if before.is_lowercase() || before.is_ascii_digit() {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
            }
            c => snake.push(c),
        }
        before = c;
    }
    snake
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    /// Fields as JSON, the body, and the faults as `line kind`.
    fn check(text: &str, fields: &str, body: &str, faults: &[&str]) {
        let head = Frontmatter::read(text);
        let got: Map<String, Value> =
            head.fields.iter().map(|field| (field.key.clone(), field.value.clone())).collect();
        let told: Vec<String> = head
            .faults
            .iter()
            .map(|fault| {
                let kind = format!("{:?}", fault.kind);
                format!("{} {}", fault.line, kind.split(" {").next().unwrap())
            })
            .collect();
        assert_eq!(
            (Value::Object(got).to_string().as_str(), &text[head.body.clone()], told),
            (fields, body, faults.iter().map(|fault| (*fault).to_owned()).collect()),
            "{text:?}"
        );
    }

    #[test]
    fn clean_heads() {
        check("---\nname: a\n---\nBody", r#"{"name":"a"}"#, "Body", &[]);
        check("---\n---\nBody", "{}", "Body", &[]);
        check("---\n# nothing\n\n---\nBody", "{}", "Body", &[]);
        check("\u{feff}---\r\nname: a\r\n---\r\nBody\r\n", r#"{"name":"a"}"#, "Body\r\n", &[]);
        check("---\rname: a\r---\rBody", r#"{"name":"a"}"#, "Body", &[]);
        check("\n---\nname: a\n-----\n", r#"{"name":"a"}"#, "", &[]);
        check("---\nallowed-tools:\n- Read\n- Bash(a:*)\n---\n", r#"{"allowed_tools":["Read","Bash(a:*)"]}"#, "", &[]);
        check("---\nd: >\n  one\n  two\nmodel: opus\n---\n", r#"{"d":"one two\n","model":"opus"}"#, "", &[]);
        check("---\nuserInvocable: yes\nName: 007\n---\n", r#"{"user_invocable":"yes","name":"007"}"#, "", &[]);
        check("---\nhooks:\n  Stop:\n  - a: {b: 1}\n---\n", r#"{"hooks":{"Stop":[{"a":{"b":1}}]}}"#, "", &[]);
        check("---\n{name: a, model: b}\n---\n", r#"{"name":"a","model":"b"}"#, "", &[]);
        check("---\n\"name\": \"a\"\n'd': b\n---\n", r#"{"name":"a","d":"b"}"#, "", &[]);
        check("---\na:\n---\n", r#"{"a":null}"#, "", &[]);
    }

    #[test]
    fn heads_as_people_write_them() {
        check(
            "---\ndescription: Use when: asked\nname: a\n---\n",
            r#"{"description":"Use when: asked","name":"a"}"#,
            "",
            &["2 Text"],
        );
        check(
            "---\nargument-hint: [a] [--b]\nname: a\n---\n",
            r#"{"argument_hint":"[a] [--b]","name":"a"}"#,
            "",
            &["2 Text"],
        );
        check(
            "---\nname: a\ndescription: one\n two: three\n\tfour\n---\n",
            r#"{"name":"a","description":"one two: three four"}"#,
            "",
            &["3 Text"],
        );
        check("---\nname: a\nname: b\n---\n", r#"{"name":"b"}"#, "", &["3 Repeated"]);
        check("---\nallowed-tools: A\nallowedTools: B\n---\n", r#"{"allowed_tools":"B"}"#, "", &["3 Repeated"]);
        check(
            "---\nd: @x\ne: `y`\nf: *.rs\ng: !important z\n---\n",
            r#"{"d":"@x","e":"`y`","f":"*.rs","g":"z"}"#,
            "",
            &["2 Text", "3 Text", "4 Text"],
        );
        check("---\nd: fix #12 now\n---\n", r#"{"d":"fix"}"#, "", &["2 Comment"]);
        check("---\nd: \"open\nname: a\n---\n", r#"{"d":"\"open","name":"a"}"#, "", &["2 Text"]);
        check("---\nd: one\ntwo without indent\n---\n", r#"{"d":"one two without indent"}"#, "", &["2 Text"]);
        check("---\nd: |\n\tone: x\n\ttwo\nx: '@\n---\n", r#"{"d":"one: x\ntwo","x":"'@"}"#, "", &["2 Text", "5 Text"]);
        check("---\njust words\n---\nBody", "{}", "Body", &["2 Stray"]);
    }

    #[test]
    fn heads_without_an_end_and_none_at_all() {
        check(
            "---\nname: a\ndescription: b\n\n# Title\n",
            r#"{"name":"a","description":"b"}"#,
            "\n# Title\n",
            &["4 Unclosed"],
        );
        check("---\nname: a\n# Title: x\n", r#"{"name":"a"}"#, "# Title: x\n", &["3 Unclosed"]);
        check("---", "{}", "", &["2 Unclosed"]);
        check("# Title\n", "{}", "# Title\n", &["1 Missing"]);
        check("", "{}", "", &["1 Missing"]);
        check("\u{feff}text", "{}", "text", &["1 Missing"]);
        check("# Title\n\n---\nname: a\n---\n", "{}", "# Title\n\n---\nname: a\n---\n", &["1 Missing"]);
        check("name: a\n---\n", "{}", "name: a\n---\n", &["1 Missing"]);
    }

    #[test]
    fn heads_that_something_stands_around() {
        check("<!-- made by x -->\n---\nname: a\n---\nBody", r#"{"name":"a"}"#, "Body", &["1 Preceded"]);
        check("\n<!-- made\n\nby x -->\n\n---\nname: a\n---\nBody", r#"{"name":"a"}"#, "Body", &["2 Preceded"]);
        check("<!-- never closed\n---\nname: a\n---\n", "{}", "<!-- never closed\n---\nname: a\n---\n", &["1 Missing"]);
        check("```skill\n---\nname: a\n---\nBody\n```\n\n", r#"{"name":"a"}"#, "Body\n", &["1 Wrapped"]);
        check(
            "\n````markdown\n---\nname: a\n---\n```sh\nls\n```\n````",
            r#"{"name":"a"}"#,
            "```sh\nls\n```\n",
            &["2 Wrapped"],
        );
        check("```yaml\n---\nname: a\n---\n```\n\nBody\n```\n", r#"{"name":"a"}"#, "\nBody\n```\n", &["1 Wrapped"]);
        check("```\n---\nname: a\n---\nBody", r#"{"name":"a"}"#, "Body", &["1 Wrapped"]);
        check("```sh\nls\n```\n---\na: b\n---\n", "{}", "```sh\nls\n```\n---\na: b\n---\n", &["1 Missing"]);
        check("---\nname: a\n...\nBody", r#"{"name":"a"}"#, "Body", &[]);
    }

    #[test]
    fn bombs_end() {
        let aliases = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, at| {
            format!("{text}a{at}: &a{at} [*a{}, *a{}]\n", at - 1, at - 1)
        });
        let head = Frontmatter::read(&format!("---\nname: a\n{aliases}---\n"));
        assert_eq!(head.get("name").unwrap().value, "a");
        let head = Frontmatter::read(&format!("---\nname: a\nd: {}\n---\nBody", "[".repeat(20_000)));
        assert_eq!(head.get("name").unwrap().value, "a");
        let long = format!("---\nname: a\nd: {}\n---\nBody", "x".repeat(MOST_BYTES));
        let head = Frontmatter::read(&long);
        assert_eq!(head.get("name").unwrap().value, "a");
        assert_eq!(&long[head.body], "Body");
    }

    proptest! {
        #[test]
        fn never_panics_and_loses_no_body(
            text in "(\u{feff})?(---\r?\n)?((name|description|a b|allowed-tools)?[ :\\-#'\"|>\\[\\]{}&*!@`\t]{0,4}[a-zé]{0,5}\r?\n){0,8}(---\r?\n)?[ a-z\n]{0,20}"
        ) {
            let head = Frontmatter::read(&text);
            prop_assert!(text.get(head.body).is_some());
            // Whatever is not in the fields is in the body, or was said.
            let opened = text.trim_start_matches('\u{feff}').trim_start().starts_with("---");
            prop_assert!(!head.fields.is_empty() || !head.faults.is_empty() || opened);
        }
    }

    #[test]
    fn names_are_read_in_every_spelling() {
        use serde_json::json;
        for (value, want) in [
            (json!("Read, Grep"), vec!["Read", "Grep"]),
            (json!("Read Bash(git diff, x)"), vec!["Read", "Bash(git diff, x)"]),
            (json!(["Read", "Grep,LS", "Read"]), vec!["Read", "Grep", "LS"]),
            (json!("[Read, 'Grep'"), vec!["Read", "Grep"]),
            (json!(null), vec![]),
        ] {
            for taken in [Taken::Strictly, Taken::Leniently] {
                assert_eq!(taken.names(&value, &mut Vec::new()), want, "{value}");
            }
        }
        let (value, mut odd) = (json!([3, "a"]), Vec::new());
        assert_eq!((Taken::Strictly.names(&value, &mut odd), odd), (vec!["a".to_owned()], vec![&json!(3)]));
        assert_eq!(Taken::Leniently.names(&value, &mut Vec::new()), ["3", "a"]);
    }
}
