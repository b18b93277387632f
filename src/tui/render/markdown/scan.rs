//! Splits Markdown into top-level segments, line by line, never looking ahead: where a segment ends depends on the
//! text before it alone. So a text that streams in falls into the same segments as one that is there at once.

/// Longest block, in bytes, before it is split at the end of a line. Keeps the unfinished part of a hostile text small.
const MAX_BLOCK: usize = 32 * 1024;
/// The same in lines.
const MAX_LINES: usize = 1_000;
/// Longest line, in bytes, before it is split.
pub(super) const MAX_LINE: usize = 8 * 1024;

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Paragraph,
    Heading,
    Rule,
    Quote,
    Table,
    Indented,
    /// One top-level item with all that it contains; the number it is shown with, for an ordered list.
    Item(Option<u64>),
}

/// A step of the scan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// A whole block, as source. `gap`: a blank row is before it (unless it is the first).
    Segment {
        kind: Kind,
        text: String,
        gap: bool,
    },
    /// Fenced code begins; the info string and the fence itself.
    FenceOpen {
        info: String,
        fence: String,
    },
    Code(String),
    FenceClose {
        fence: String,
    },
}

impl Step {
    /// Bytes of source in it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Step::Segment { text, .. } | Step::Code(text) => text.len(),
            Step::FenceOpen { fence, .. } | Step::FenceClose { fence } => fence.len(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Between,
    /// Under way: paragraph, quote, table, indented code.
    Block(Kind),
    /// An item of a list. `mark` is the bullet or the delimiter of the number, `content` the column where its text
    /// begins; `blank`: its last line was blank; `fence`: code that is open in it.
    Item {
        number: Option<u64>,
        mark: char,
        content: usize,
        blank: bool,
        fence: Option<Fence>,
    },
    Fence(Fence),
}

/// Where the scan is.
#[derive(Debug, Clone)]
pub(super) struct Scanner {
    state: State,
    /// Source of the block under way.
    open: String,
    lines: usize,
    /// The last item of a list that may continue: its number and marker.
    list: Option<(Option<u64>, char)>,
    /// A blank line came before what comes.
    blank: bool,
    /// What came last wants a blank row after it.
    spaced: bool,
    /// The block was split here: no blank row.
    split: bool,
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        Scanner {
            state: State::Between,
            open: String::new(),
            lines: 0,
            list: None,
            blank: false,
            spaced: false,
            split: false,
        }
    }

    /// Takes the next line, without its newline; says what became final.
    pub(super) fn line(&mut self, line: &str, steps: &mut Vec<Step>) {
        if let State::Fence(fence) = &self.state {
            if closes(line, fence) {
                steps.push(Step::FenceClose { fence: line.trim().to_string() });
                self.state = State::Between;
                (self.spaced, self.blank) = (true, false);
            } else {
                steps.push(Step::Code(dedent(line, fence.indent).to_string()));
            }
            return;
        }
        if !self.goes_on(line) {
            self.close(steps);
            self.begin(line, steps);
            return;
        }
        self.take(line);
        if self.state == State::Block(Kind::Paragraph) {
            if is_setext(line) {
                self.state = State::Block(Kind::Heading);
                self.close(steps);
            } else if self.lines == 2 && is_delimiter_row(line) && self.open.lines().next().is_some_and(has_pipe) {
                self.state = State::Block(Kind::Table);
            }
        }
        self.split_when_long(steps);
    }

    /// Ends the text: closes what is under way.
    pub(super) fn finish(&mut self, steps: &mut Vec<Step>) {
        self.close(steps);
    }

    fn take(&mut self, line: &str) {
        self.open.push_str(line);
        self.open.push('\n');
        self.lines += 1;
    }

    /// Whether the line belongs to the block under way. Updates what is known of that block.
    fn goes_on(&mut self, line: &str) -> bool {
        let blank = line.trim().is_empty();
        let indent = indent_of(line);
        match &mut self.state {
            State::Between | State::Fence(_) => false,
            State::Block(Kind::Indented) => blank || indent >= 4,
            State::Block(Kind::Quote) => !blank && (line.trim_start().starts_with('>') || !starts_block(line)),
            State::Block(Kind::Paragraph) => !blank && (is_setext(line) || !starts_block(line)),
            State::Block(_) => !blank && !starts_block(line),
            State::Item { mark, content, blank: after_blank, fence, .. } => {
                if blank {
                    *after_blank = true;
                    return true;
                }
                if indent >= *content {
                    let inner = line.trim_start();
                    match fence {
                        Some(open) if closes(inner, open) => *fence = None,
                        Some(_) => {}
                        None => *fence = opens(inner).map(|(fence, _)| fence),
                    }
                    *after_blank = false;
                    return true;
                }
                let sibling = marker(line).is_some_and(|other| other.mark == *mark);
                !*after_blank && fence.is_none() && !sibling && !starts_block(line)
            }
        }
    }

    /// Begins a block with a line that belongs to none.
    fn begin(&mut self, line: &str, steps: &mut Vec<Step>) {
        if line.trim().is_empty() {
            self.blank = true;
            return;
        }
        let list = self.list.take();
        if indent_of(line) >= 4 {
            self.state = State::Block(Kind::Indented);
        } else if let Some((fence, info)) = opens(line) {
            self.state = State::Fence(fence);
            steps.push(Step::FenceOpen { info, fence: line.trim().to_string() });
            return;
        } else if is_heading(line) || is_rule(line) {
            self.state = State::Block(if is_heading(line) { Kind::Heading } else { Kind::Rule });
            self.take(line);
            self.close(steps);
            return;
        } else if let Some(found) = marker(line) {
            let number = match (found.number, list) {
                (Some(_), Some((Some(last), mark))) if mark == found.mark => Some(last.saturating_add(1)),
                (number, _) => number,
            };
            let fence = opens(line[found.text..].trim_start()).map(|(fence, _)| fence);
            self.state = State::Item { number, mark: found.mark, content: found.content, blank: false, fence };
        } else if line.trim_start().starts_with('>') {
            self.state = State::Block(Kind::Quote);
        } else {
            self.state = State::Block(Kind::Paragraph);
        }
        self.take(line);
        self.split_when_long(steps);
    }

    fn split_when_long(&mut self, steps: &mut Vec<Step>) {
        if self.open.len() <= MAX_BLOCK && self.lines <= MAX_LINES {
            return;
        }
        let header = match self.state {
            State::Block(Kind::Table) => self.open.split_inclusive('\n').take(2).collect(),
            _ => String::new(),
        };
        self.close(steps);
        self.split = true;
        // The rest of a table is one, too: with the same header.
        if !header.is_empty() && header.len() < MAX_BLOCK / 8 {
            self.state = State::Block(Kind::Table);
            self.open = header;
            self.lines = 2;
        }
    }

    /// Ends the block under way.
    fn close(&mut self, steps: &mut Vec<Step>) {
        let kind = match std::mem::replace(&mut self.state, State::Between) {
            State::Between => return,
            State::Fence(_) => {
                (self.spaced, self.blank) = (true, false);
                return;
            }
            State::Block(kind) => kind,
            State::Item { number, mark, .. } => {
                self.list = Some((number, mark));
                Kind::Item(number)
            }
        };
        let blank_inside = self.open.ends_with("\n\n") || self.open.lines().last().is_some_and(|l| l.trim().is_empty());
        let spaced = matches!(kind, Kind::Heading | Kind::Rule | Kind::Table | Kind::Indented);
        let gap = !self.split && (self.blank || self.spaced || spaced);
        steps.push(Step::Segment { kind, text: std::mem::take(&mut self.open), gap });
        (self.lines, self.blank, self.spaced, self.split) = (0, blank_inside, spaced, false);
    }
}

/// The mark of a list item at the start of a line.
struct Marker {
    mark: char,
    number: Option<u64>,
    /// Column where the item's text begins.
    content: usize,
    /// Byte where it begins.
    text: usize,
}

fn marker(line: &str) -> Option<Marker> {
    let indent = indent_of(line);
    if indent > 3 {
        return None;
    }
    let rest = line.trim_start_matches(' ');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mark = rest[digits..].chars().next()?;
    let number = match (digits, mark) {
        (0, '-' | '*' | '+') => None,
        (1..=9, '.' | ')') => Some(rest[..digits].parse().ok()?),
        _ => return None,
    };
    let after = &rest[digits + 1..];
    let spaces = after.len() - after.trim_start_matches(' ').len();
    if spaces == 0 && !after.is_empty() {
        return None;
    }
    // Five spaces and more are one, and indented code after it.
    let pad = if after.is_empty() || spaces == after.len() || spaces > 4 { 1 } else { spaces };
    let content = indent + digits + 1 + pad;
    Some(Marker { mark, number, content, text: content.min(line.len()) })
}

/// Whether the line begins a block even directly after a line of text.
fn starts_block(line: &str) -> bool {
    if indent_of(line) > 3 {
        return false;
    }
    let interrupts = |marker: Marker| marker.number.unwrap_or(1) == 1 && !line[marker.text..].trim().is_empty();
    opens(line).is_some()
        || is_heading(line)
        || is_rule(line)
        || line.trim_start().starts_with('>')
        || marker(line).is_some_and(interrupts)
}

/// Columns of spaces before the text. Tabs were expanded before.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The line without up to `columns` leading spaces.
fn dedent(line: &str, columns: usize) -> &str {
    &line[indent_of(line).min(columns)..]
}

/// Reads the opening of fenced code: the fence and its info string.
fn opens(line: &str) -> Option<(Fence, String)> {
    let indent = indent_of(line);
    let rest = line.trim_start_matches(' ');
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = rest.chars().take_while(|c| *c == mark).count();
    let info = rest[length..].trim();
    let fits = indent <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
    fits.then(|| (Fence { mark, length, indent }, info.to_string()))
}

fn closes(line: &str, fence: &Fence) -> bool {
    let rest = line.trim();
    indent_of(line) <= 3 && rest.len() >= fence.length && rest.chars().all(|c| c == fence.mark)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start();
    let level = rest.bytes().take_while(|byte| *byte == b'#').count();
    indent_of(line) <= 3 && (1..=6).contains(&level) && matches!(rest.as_bytes().get(level), None | Some(b' '))
}

fn is_rule(line: &str) -> bool {
    let mark = line.trim_start().chars().next().filter(|mark| matches!(mark, '-' | '*' | '_'));
    let only = |mark: char| line.chars().all(|c| c == mark || c == ' ') && line.matches(mark).count() >= 3;
    indent_of(line) <= 3 && mark.is_some_and(only)
}

fn is_setext(line: &str) -> bool {
    let rest = line.trim();
    let mark = rest.chars().next().filter(|mark| matches!(mark, '-' | '='));
    indent_of(line) <= 3 && mark.is_some_and(|mark| rest.chars().all(|c| c == mark))
}

fn is_delimiter_row(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn has_pipe(line: &str) -> bool {
    line.contains('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step on one line.
    fn check(source: &str, want: &[&str]) {
        let (mut scanner, mut steps) = (Scanner::new(), Vec::new());
        source.lines().for_each(|line| scanner.line(line, &mut steps));
        scanner.finish(&mut steps);
        let told: Vec<String> = steps
            .iter()
            .map(|step| match step {
                Step::Segment { kind, text, gap } => format!("{kind:?}{} {text:?}", if *gap { " gap" } else { "" }),
                Step::FenceOpen { info, .. } => format!("open {info}"),
                Step::Code(line) => format!("code {line}"),
                Step::FenceClose { .. } => "close".to_string(),
            })
            .collect();
        assert_eq!(told, want, "{source}");
    }

    #[test]
    fn segments_end_where_markdown_ends_them() {
        check("a\nb\n\nc", &["Paragraph \"a\\nb\\n\"", "Paragraph gap \"c\\n\""]);
        check("a\n# h\nb", &["Paragraph \"a\\n\"", "Heading gap \"# h\\n\"", "Paragraph gap \"b\\n\""]);
        check("a\n---\nb", &["Heading gap \"a\\n---\\n\"", "Paragraph gap \"b\\n\""]);
        check("a:\n- x\n- y", &["Paragraph \"a:\\n\"", "Item(None) \"- x\\n\"", "Item(None) \"- y\\n\""]);
        check(
            "1. x\n\n   more\n\n1. y\nlazy",
            &["Item(Some(1)) \"1. x\\n\\n   more\\n\\n\"", "Item(Some(2)) gap \"1. y\\nlazy\\n\""],
        );
        check("- a\n  - b\n\nend", &["Item(None) \"- a\\n  - b\\n\\n\"", "Paragraph gap \"end\\n\""]);
        check("- a\n* b", &["Item(None) \"- a\\n\"", "Item(None) \"* b\\n\""]);
        check("> a\nb\n> c", &["Quote \"> a\\nb\\n> c\\n\""]);
        check("a|b\n-|-\n1|2\n\nx", &["Table gap \"a|b\\n-|-\\n1|2\\n\"", "Paragraph gap \"x\\n\""]);
        check("2024. was\nfine", &["Item(Some(2024)) \"2024. was\\nfine\\n\""]);
        check("in\n2024. was", &["Paragraph \"in\\n2024. was\\n\""]);
    }

    #[test]
    fn fences_give_their_lines_at_once() {
        check(
            "t\n```rust\na\n\n b\n```\nx",
            &["Paragraph \"t\\n\"", "open rust", "code a", "code ", "code  b", "close", "Paragraph gap \"x\\n\""],
        );
        check("````md\n```\n````", &["open md", "code ```", "close"]);
        check("  ~~~\n    a\n   b", &["open ", "code   a", "code  b"]);
        check("```a`b", &["Paragraph \"```a`b\\n\""]);
        check(
            "- x\n  ```\n  - no item\n\n  ```\n- y",
            &["Item(None) \"- x\\n  ```\\n  - no item\\n\\n  ```\\n\"", "Item(None) \"- y\\n\""],
        );
    }
}
