//! From a skill's body and the arguments to the text of the prompt. Pure: shell lines and files are found here, and run
//! and read by the agent.
//!
//! The body is scanned once. What is put into it, arguments and output alike, is never looked at again.

use std::ops::Range;
use std::path::Path;

use super::skill::BODY;
use crate::stdx::shell_word;

/// What placeholders stand for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// As they were typed; may be empty.
    pub args: &'a str,
    /// The skill's file says that arguments may follow its name.
    pub expected: bool,
    /// The folder that relative paths start from.
    pub skill_dir: Option<&'a Path>,
    pub plugin_root: Option<&'a Path>,
    pub plugin_data: Option<&'a Path>,
    pub project_dir: Option<&'a Path>,
    pub session_id: &'a str,
}

/// A part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Run it, and put its output here.
    Shell {
        command: String,
    },
    /// `@path` in the body, its placeholders filled in; attach the file if it exists.
    File {
        path: String,
    },
}

/// A body made ready to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    pub pieces: Vec<Piece>,
    /// Characters of the body that were cut off.
    pub cut: usize,
}

/// Puts arguments in and finds what is to be run and attached.
pub fn expand(body: &str, values: &Values<'_>) -> Expanded {
    let end = body.char_indices().nth(BODY).map_or(body.len(), |(at, _)| at);
    let (body, cut) = (&body[..end], body[end..].chars().count());
    let body = body.trim_end();
    let fenced = fences(body);
    let args = Arguments { raw: values.args.trim(), words: words(values.args) };
    let mut marks = Vec::new();
    let mut offset = 0;
    for line in body.split_inclusive('\n') {
        let in_fence = fenced.iter().any(|fence| fence.contains(&offset));
        marks_of(line, offset, in_fence, &mut marks);
        offset += line.len();
    }
    // `$0` and `[n]` count from 0; then `$1` is the second.
    let zero = marks.iter().any(|(_, mark)| matches!(mark, Mark::Index(_) | Mark::Digit(0)));
    // Elsewhere `$1` is a price, SQL or awk.
    let numbered = values.expected || body.contains("$ARGUMENTS");
    let mut out = Out { pieces: Vec::new(), used: false, values, args: &args, numbered, first: usize::from(!zero) };
    let mut from = 0;
    for (range, mark) in marks {
        if range.start < from {
            continue;
        }
        out.text(&body[from..range.start]);
        from = range.end;
        match mark {
            Mark::Shell => {
                let command = &body[range.start + 2..range.end - 1];
                let command = out.command(command);
                out.pieces.push(Piece::Shell { command });
            }
            Mark::File => {
                let path = out.path(&body[range.start + 1..range.end]);
                out.pieces.push(Piece::File { path });
            }
            mark => match out.value(mark) {
                Some(value) => out.text(&value),
                None => out.text(&body[range]),
            },
        }
    }
    out.text(&body[from..]);
    if cut > 0 {
        out.text(&format!("\n\n[The instructions were cut here: the skill's file has {cut} more characters.]"));
    }
    if !out.used && !args.raw.is_empty() {
        out.text(&format!("\n\nARGUMENTS: {}", args.raw));
    }
    Expanded { pieces: out.pieces, cut }
}

/// The shell lines that the body runs, before arguments are put in.
pub fn commands(body: &str) -> Vec<String> {
    let values = Values::default();
    let command = |piece| match piece {
        Piece::Shell { command } => Some(command),
        Piece::Text(_) | Piece::File { .. } => None,
    };
    expand(body, &values).pieces.into_iter().filter_map(command).collect()
}

struct Arguments<'a> {
    raw: &'a str,
    words: Vec<String>,
}

/// Something in the body that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `$ARGUMENTS`
    All,
    /// `$ARGUMENTS[n]`
    Index(usize),
    /// `$n`
    Digit(usize),
    SkillDir,
    PluginRoot,
    PluginData,
    ProjectDir,
    SessionId,
    Shell,
    File,
}

const NAMED: [(&str, Mark); 10] = [
    ("${CLAUDE_SKILL_DIR}", Mark::SkillDir),
    ("${CLAUDE_PLUGIN_ROOT}", Mark::PluginRoot),
    ("${CLAUDE_PLUGIN_DATA}", Mark::PluginData),
    ("${CLAUDE_PROJECT_DIR}", Mark::ProjectDir),
    ("${CLAUDE_SESSION_ID}", Mark::SessionId),
    ("${COCODE_SKILL_DIR}", Mark::SkillDir),
    ("${COCODE_PLUGIN_ROOT}", Mark::PluginRoot),
    ("${COCODE_PLUGIN_DATA}", Mark::PluginData),
    ("${COCODE_PROJECT_DIR}", Mark::ProjectDir),
    ("${COCODE_SESSION_ID}", Mark::SessionId),
];

/// The byte ranges of fenced code.
fn fences(body: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Option<(char, usize, usize)> = None;
    let mut offset = 0;
    for line in body.split_inclusive('\n') {
        let text = line.trim();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| text.chars().take_while(|c| *c == mark).count());
        match (open, mark) {
            (None, Some(mark)) if run >= 3 && !(mark == '`' && text[run..].contains('`')) => {
                open = Some((mark, run, offset));
            }
            (Some((kind, length, start)), Some(mark)) if mark == kind && run >= length && text.len() == run => {
                found.push(start..offset + line.len());
                open = None;
            }
            _ => {}
        }
        offset += line.len();
    }
    found.extend(open.map(|(_, _, start)| start..body.len()));
    found
}

/// Everything in one line that is replaced, in order.
fn marks_of(line: &str, offset: usize, fenced: bool, marks: &mut Vec<(Range<usize>, Mark)>) {
    let mut at = 0;
    // Where the inline code that is being passed ends: nothing is run or attached in there.
    let mut code = 0;
    while let Some(next) = line[at..].find(['$', '!', '@', '`']) {
        at += next;
        let rest = &line[at..];
        let before = line[..at].chars().next_back();
        let blank = before.is_none_or(char::is_whitespace);
        let found = match rest.as_bytes()[0] {
            b'$' => placeholder(rest, before, fenced),
            b'!' if blank && !fenced && at >= code => shell(rest),
            b'@' if (blank || before == Some('(')) && !fenced && at >= code => file(rest),
            b'`' if at >= code => {
                let run = rest.bytes().take_while(|byte| *byte == b'`').count();
                let closing = closing(&rest[run..], run).map_or(0, |end| end + run);
                code = at + run + closing;
                at += run;
                continue;
            }
            _ => None,
        };
        match found {
            Some((length, mark)) => {
                marks.push((offset + at..offset + at + length, mark));
                at += length;
            }
            None => at += 1,
        }
    }
}

/// Where a run of exactly `run` backticks begins.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find('`') {
        at += next;
        let length = text[at..].bytes().take_while(|byte| *byte == b'`').count();
        if length == run {
            return Some(at);
        }
        at += length;
    }
    None
}

fn placeholder(rest: &str, before: Option<char>, fenced: bool) -> Option<(usize, Mark)> {
    if let Some((name, mark)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((name.len(), *mark));
    }
    if matches!(before, Some('\\' | '$')) {
        return None;
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    // `US$1` is a price, too.
    let glued = before.is_some_and(word);
    if let Some(after) = rest.strip_prefix("$ARGUMENTS") {
        let length = rest.len() - after.len();
        if let Some((digits, tail)) = after.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            let _ = tail;
            if !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let index = digits.parse().ok()?;
                return (!fenced && !glued).then_some((length + digits.len() + 2, Mark::Index(index)));
            }
        }
        return (!after.starts_with(word)).then_some((length, Mark::All));
    }
    let digit = rest[1..].chars().next().filter(char::is_ascii_digit)?;
    let after = &rest[2..];
    // `$10`, `$1.50` and `$1,000` are prices, `$1st` is something else.
    let price = after.strip_prefix(['.', ',']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let index = usize::try_from(digit.to_digit(10)?).ok()?;
    (!fenced && !glued && !price && !after.starts_with(word)).then_some((2, Mark::Digit(index)))
}

/// `` !`command` ``, closed on the same line.
fn shell(rest: &str) -> Option<(usize, Mark)> {
    let inner = rest.strip_prefix("!`").filter(|inner| !inner.starts_with('`'))?;
    let end = inner.find(['`', '\n']).filter(|end| inner[*end..].starts_with('`'))?;
    (!inner[..end].trim().is_empty()).then_some((2 + end + 1, Mark::Shell))
}

fn file(rest: &str) -> Option<(usize, Mark)> {
    let end =
        rest[1..].find(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'')).map_or(rest.len(), |at| at + 1);
    let path = rest[1..end].trim_end_matches([',', '.', ';', ':', ')', '!', '?', ']', '*']);
    (!path.is_empty()).then_some((1 + path.len(), Mark::File))
}

struct Out<'a> {
    pieces: Vec<Piece>,
    /// The text contains an argument.
    used: bool,
    values: &'a Values<'a>,
    args: &'a Arguments<'a>,
    /// `$1` stands for an argument.
    numbered: bool,
    /// What `$1` counts from.
    first: usize,
}

impl Out<'_> {
    fn text(&mut self, more: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.pieces.push(Piece::Text(more.to_owned())),
        }
    }

    fn word(&self, mark: Mark) -> Option<&str> {
        let at = match mark {
            Mark::Index(at) => at,
            Mark::Digit(at) if self.numbered => at.checked_sub(self.first)?,
            _ => return None,
        };
        self.args.words.get(at).map(String::as_str)
    }

    /// What a placeholder becomes; `None` leaves it as it is.
    fn value(&mut self, mark: Mark) -> Option<String> {
        let path = |path: Option<&Path>| path.map(|path| path.display().to_string());
        match mark {
            Mark::All => {
                self.used = true;
                Some(self.args.raw.to_owned())
            }
            Mark::Index(_) | Mark::Digit(_) => {
                let word = self.word(mark)?.to_owned();
                self.used = true;
                Some(word)
            }
            Mark::SkillDir => path(self.values.skill_dir),
            Mark::PluginRoot => path(self.values.plugin_root),
            Mark::PluginData => path(self.values.plugin_data),
            Mark::ProjectDir => path(self.values.project_dir),
            Mark::SessionId => Some(self.values.session_id.to_owned()),
            Mark::Shell | Mark::File => None,
        }
    }

    /// A path with its placeholders filled in. What is filled in stays as it is.
    fn path(&mut self, written: &str) -> String {
        let (mut path, mut at) = (String::new(), 0);
        while let Some(next) = written[at..].find('$') {
            path.push_str(&written[at..at + next]);
            at += next;
            let before = written[..at].chars().next_back();
            let found = placeholder(&written[at..], before, false);
            match found.and_then(|(length, mark)| Some((length, self.value(mark)?))) {
                Some((length, value)) => {
                    path.push_str(&value);
                    at += length;
                }
                None => {
                    path.push('$');
                    at += 1;
                }
            }
        }
        path + &written[at..]
    }

    /// A command with its placeholders filled in as words of the shell: what is typed as an argument can never become
    /// another command.
    fn command(&mut self, line: &str) -> String {
        let (mut command, mut quote, mut at) = (String::new(), None, 0);
        // From here on, only the shell itself knows what is quoted: the rest stays as it is.
        let mut lost = false;
        while let Some(c) = line[at..].chars().next() {
            let rest = &line[at..];
            let before = line[..at].chars().next_back();
            lost |= match quote {
                None => {
                    ["$'", "<<", "(("].iter().any(|start| rest.starts_with(start))
                        || c == '#' && before.is_none_or(char::is_whitespace)
                }
                Some('"') => rest.starts_with("$("),
                Some(_) => false,
            };
            let found = if c == '$' && !lost { placeholder(rest, before, false) } else { None };
            if let Some((length, mark)) = found {
                let words = match mark {
                    Mark::All => {
                        self.used = true;
                        Some(self.args.words.clone())
                    }
                    mark => self.value(mark).map(|value| vec![value]),
                };
                if let Some(words) = words {
                    let words: Vec<String> = words.iter().map(|word| quoted(word, quote)).collect();
                    command.push_str(&words.join(" "));
                    at += length;
                    continue;
                }
            }
            match (c, quote) {
                ('\\', None | Some('"')) => {
                    command.push(c);
                    at += 1;
                    // The escaped character is not a quote.
                    if let Some(next) = line[at..].chars().next() {
                        command.push(next);
                        at += next.len_utf8();
                    }
                    continue;
                }
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                _ => {}
            }
            command.push(c);
            at += c.len_utf8();
        }
        command
    }
}

/// A word for the shell, where a quote may be open.
fn quoted(word: &str, quote: Option<char>) -> String {
    match quote {
        None => shell_word::quoted(word),
        Some('"') => word.chars().fold(String::new(), |mut text, c| {
            if matches!(c, '"' | '$' | '`' | '\\') {
                text.push('\\');
            }
            text.push(c);
            text
        }),
        Some(_) => word.replace('\'', r"'\''"),
    }
}

/// Splits arguments like a shell; where a quote stays open, at blanks alone.
fn words(args: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = args.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { args.split_whitespace().map(str::to_owned).collect() } else { words }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(body: &str, args: &str, expected: bool) -> String {
        let values = Values { args, expected, skill_dir: Some(Path::new("/s")), session_id: "id", ..Values::default() };
        let pieces = expand(body, &values).pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Shell { command } => format!("<run {command}>"),
            Piece::File { path } => format!("<file {path}>"),
        });
        pieces.collect()
    }

    fn check(body: &str, args: &str, want: &str) {
        assert_eq!(shown(body, args, true), want, "{body:?} with {args:?}");
    }

    #[test]
    fn numbers_count_where_arguments_are_meant() {
        fn check(expected: bool, body: &str, want: &str) {
            assert_eq!(shown(body, "x y", expected), want, "{body:?}");
        }
        let prose = "It costs $1 a month. `awk '{print $2}'` and WHERE id = $1";
        check(false, prose, &format!("{prose}\n\nARGUMENTS: x y"));
        check(true, "Review $1 for $2", "Review x for y");
        check(false, "Review $1: $ARGUMENTS", "Review x: x y");
        check(false, "Review $ARGUMENTS[1] of $0", "Review y of x");
        check(false, "!`git show $1`", "<run git show $1>\n\nARGUMENTS: x y");
        // Never behind a word: US$1.
        check(true, "US$1 and A$ARGUMENTS[0], but #$2", "US$1 and A$ARGUMENTS[0], but #y");
    }

    #[test]
    fn arguments() {
        check("Do $ARGUMENTS now", "a  b", "Do a  b now");
        check("Do $ARGUMENTS now", "", "Do  now");
        check("$1 and $2", "'a b' c", "a b and c");
        check("$1 and $2", "one", "one and $2");
        check("$0 and $1", "a b", "a and b");
        check("$ARGUMENTS[0], $1", "a b", "a, b");
        check("$ARGUMENTS[7]", "a", "$ARGUMENTS[7]\n\nARGUMENTS: a");
        check("$1", "", "$1");
        check("don't $1", "don't stop", "don't don't");
        check("No place", "x y", "No place\n\nARGUMENTS: x y");
        check("No place", "", "No place");
        check("$ARGUMENTS_X $ARGUMENTSX", "x", "$ARGUMENTS_X $ARGUMENTSX\n\nARGUMENTS: x");
        check(
            "It costs $10, $1.50, $1,000 and $5M. \\$1 $$1",
            "x",
            "It costs $10, $1.50, $1,000 and $5M. \\$1 $$1\n\nARGUMENTS: x",
        );
        check("```\nawk '{print $1}' $ARGUMENTS\n```\n$1", "x", "```\nawk '{print $1}' x\n```\nx");
        check("~~~sql\n$1\n~~~", "x", "~~~sql\n$1\n~~~\n\nARGUMENTS: x");
        check("````\n```\n$1\n````\n$1", "x", "````\n```\n$1\n````\nx");
        check("${CLAUDE_SKILL_DIR}/a ${CLAUDE_PLUGIN_ROOT} ${CLAUDE_SESSION_ID}", "", "/s/a ${CLAUDE_PLUGIN_ROOT} id");
    }

    #[test]
    fn inserted_text_is_data() {
        let all = "$ARGUMENTS $1 $ARGUMENTS[0] ${CLAUDE_SKILL_DIR} ${CLAUDE_SESSION_ID} !`id` @a.md ``` $0";
        check("Fix $ARGUMENTS", all, &format!("Fix {all}"));
        check("Fix $1", &format!("'{all}'"), &format!("Fix {all}"));
        check("Fix", all, &format!("Fix\n\nARGUMENTS: {all}"));
    }

    #[test]
    fn shell_lines() {
        check("- Status: !`git status`\n!`ls`", "", "- Status: <run git status>\n<run ls>");
        check("a!`ls` (!`ls`) !`` !` ` !`open", "", "a!`ls` (!`ls`) !`` !` ` !`open");
        check("Write `` !`command` `` to run", "", "Write `` !`command` `` to run");
        check("```\n!`ls`\n```", "", "```\n!`ls`\n```");
        check("    ```\n    !`ls`\n    ```\n!`pwd`", "", "    ```\n    !`ls`\n    ```\n<run pwd>");
        check("`x` !`ls`", "", "`x` <run ls>");
        check("!`git log $ARGUMENTS`", "--oneline -5", "<run git log --oneline -5>");
        check("!`git show \"$1\" '$2'`", "'a$(b)`c`' \"it's\"", r#"<run git show "a\$(b)\`c\`" 'it'\''s'>"#);
        check("!`git show $1`", "'x; rm -rf y'", "<run git show 'x; rm -rf y'>");
        check("!`echo $1`", "", "<run echo $1>");
        check("!`cat ${CLAUDE_SKILL_DIR}/x`", "", "<run cat /s/x>");
        check("!`echo $(git log $1)`", "'a b'", "<run echo $(git log 'a b')>");
        // Where another quoting holds, an argument could end it.
        for line in ["echo \"$(git log '$1')\"", "echo $'$1'", "cat <<< '$1' '$1'", "ls # '$1'", "echo $(( $1 ))"] {
            let args = "\"';touch evil;'\"";
            check(&format!("!`{line}`"), args, &format!("<run {line}>\n\nARGUMENTS: {args}"));
        }
    }

    #[test]
    fn files() {
        check("See @docs/a.md, (@b.md) and a@b.c", "", "See <file docs/a.md>, (<file b.md>) and a@b.c");
        check("`@a.md` and\n```\n@b.md\n```", "", "`@a.md` and\n```\n@b.md\n```");
        check("@ alone", "", "@ alone");
        check("Read @${CLAUDE_SKILL_DIR}/role.md, then @$1.", "a.md", "Read <file /s/role.md>, then <file a.md>.");
        check("@docs/$1/$2.md (@$ARGUMENTS)", "a b", "<file docs/a/b.md> (<file a b>)");
        // What is filled in is data, and a missing one stays.
        check("@$1 @$3", "'$2 @x' y", "<file $2 @x> <file $3>");
    }

    #[test]
    fn only_the_body_is_cut() {
        let body = format!("$ARGUMENTS {}", "é".repeat(BODY));
        let args = "x".repeat(BODY * 2);
        let values = Values { args: &args, expected: true, ..Values::default() };
        let Expanded { pieces, cut } = expand(&body, &values);
        assert_eq!((pieces.len(), cut), (1, 11));
        let Piece::Text(text) = &pieces[0] else { panic!() };
        assert!(
            text.starts_with(&args)
                && text.ends_with("[The instructions were cut here: the skill's file has 11 more characters.]")
        );
        assert_eq!(expand(&"é".repeat(BODY), &Values { args: "", ..values }).cut, 0);
    }

    proptest! {
        #[test]
        fn never_panics_and_never_runs_an_argument(body in "[ \n!`$@1é\\[\\]{}'\"A-Z]{0,40}", args in "[ !`$@1é'\"\\\\a-z]{0,20}") {
            let values = Values { args: &args, expected: true, ..Values::default() };
            let none = expand(&body, &Values { args: "", ..values });
            let with = expand(&body, &values);
            let count = |expanded: &Expanded| expanded.pieces.iter().filter(|piece| matches!(piece, Piece::Shell { .. })).count();
            prop_assert_eq!(count(&none), count(&with));
        }
    }
}
