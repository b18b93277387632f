//! From tree-sitter's tree to ours. Every byte of the line must be accounted for by a construct that we know, so that what
//! the parser misses cannot run unseen (dependencies.md section 4).

use std::ops::Range;

use tree_sitter::{Node as Tree, Parser, Point};

use super::second::{self, Kind, Token};
use super::word::{Expansion, Piece, Span, Word, scan, scan_one};
use super::{Assignment, Node, Redirect, RedirectKind, Simple, guard};

/// Deepest nesting that is judged.
const MAX_DEPTH: usize = 60;

/// Bytes of a line that the grammar is given at a time.
const PIECE: usize = 128;
/// Most pieces that it is given. It looks ahead for the end of every pattern, so that a line of nothing else is read as
/// often as it has characters.
const MAX_PIECES: usize = 16 * guard::MAX_BYTES / PIECE;

/// A line that was understood in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::permission) struct Line {
    pub(in crate::permission) node: Node,
    /// Bytes that are never run: comments and here-documents.
    pub(in crate::permission) data: Vec<Range<usize>>,
}

/// Parses a line.
///
/// # Errors
/// What cannot be judged in it.
pub(in crate::permission) fn parse(text: &str) -> Result<Line, String> {
    tracing::trace!("a line was parsed");
    if let Some(reason) = guard::refuse(text) {
        return Err(reason);
    }
    // Before the grammar, which takes its time over what nobody would write.
    let tokens = second::read(text)?;
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|error| error.to_string())?;
    let mut pieces = 0;
    let mut piece = |at: usize, _: Point| {
        pieces += 1;
        let rest = text.as_bytes().get(at..).filter(|_| pieces <= MAX_PIECES).unwrap_or_default();
        &rest[..rest.len().min(PIECE)]
    };
    let tree = parser.parse_with_options(&mut piece, None, None).ok_or("the parser gave up")?;
    if pieces > MAX_PIECES {
        return Err("it takes too long to parse".into());
    }
    let root = tree.root_node();
    if root.has_error() {
        return Err("it cannot be parsed".into());
    }
    let mut reader = Reader { text, data: Vec::new(), nested: Vec::new(), tokens: Vec::new() };
    let blank = |range: Range<usize>| reader.text[range].chars().all(char::is_whitespace);
    if !blank(0..root.start_byte()) || !blank(root.end_byte()..text.len()) {
        return Err("part of it was not parsed".into());
    }
    let nodes = reader.statements(root, &[], 0)?;
    reader.tokens.sort_unstable();
    if reader.tokens != tokens {
        return Err("bash may read it in another way".into());
    }
    Ok(Line { node: Node::Sequence(nodes), data: reader.data })
}

/// Walks tree-sitter's tree.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) data: Vec<Range<usize>>,
    /// Commands of substitutions met since the last statement began.
    nested: Vec<Node>,
    /// What the grammar says that [`second`] must say, too.
    pub(super) tokens: Vec<Token>,
}

pub(super) fn children<'t>(tree: Tree<'t>) -> Vec<Tree<'t>> {
    // By cursor: asking for a child by its number walks past all before it.
    tree.children(&mut tree.walk()).collect()
}

impl<'a> Reader<'a> {
    pub(super) fn source(&self, tree: Tree) -> &'a str {
        &self.text[tree.byte_range()]
    }

    pub(super) fn token(&mut self, tree: Tree, kind: Kind) {
        self.tokens.push((tree.start_byte(), tree.end_byte(), kind));
    }

    /// The children without comments, after checking that only blanks lie between them.
    pub(super) fn parts<'t>(&mut self, tree: Tree<'t>) -> Result<Vec<Tree<'t>>, String> {
        let mut parts = Vec::new();
        let mut end = tree.start_byte();
        for child in children(tree) {
            if child.start_byte() < end || !is_blank(&self.text[end..child.start_byte()]) {
                return Err(format!("text that was not parsed in a {}", tree.kind()));
            }
            end = child.end_byte();
            if child.kind() != "comment" {
                parts.push(child);
                continue;
            }
            let before = self.text[..child.start_byte()].chars().next_back();
            let comment = self.source(child);
            let ends = self.text[end..].chars().next().is_none_or(|c| c == '\n');
            if !comment.starts_with('#')
                || comment.contains('\n')
                || !ends
                || before.is_some_and(|c| !" \t\n;&|()".contains(c))
            {
                return Err("a possible comment".into());
            }
            self.data.push(child.byte_range());
        }
        if !is_blank(&self.text[end..tree.end_byte()]) {
            return Err(format!("text that was not parsed in a {}", tree.kind()));
        }
        Ok(parts)
    }

    /// The statements among the children; `words` are the keywords that may stand between them.
    fn statements(&mut self, tree: Tree, words: &[&str], depth: usize) -> Result<Vec<Node>, String> {
        let parts = self.parts(tree)?;
        self.sequence(&parts, words, depth)
    }

    pub(super) fn sequence(&mut self, parts: &[Tree], words: &[&str], depth: usize) -> Result<Vec<Node>, String> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Option<usize> = None;
        for part in parts {
            match part.kind() {
                "&" => {
                    self.token(*part, Kind::Join);
                    let Some(last) = nodes.pop() else { return Err("a & without a command".into()) };
                    nodes.push(Node::Apart(vec![last]));
                    open = None;
                }
                ";" | "\n" | ";;" => open = None,
                kind if words.contains(&kind) => open = None,
                _ => {
                    // A here-document's end is its own line, and the next statement needs no other separator.
                    if open.is_some_and(|end| {
                        !self.text[end..part.start_byte()].contains('\n') && !self.text[..end].ends_with('\n')
                    }) {
                        return Err("two commands without a separator".into());
                    }
                    nodes.push(self.statement(*part, depth + 1)?);
                    open = Some(part.end_byte());
                }
            }
        }
        Ok(nodes)
    }

    /// A statement together with the substitutions in its words, which run before it in shells of their own.
    pub(super) fn statement(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply".into());
        }
        let outer = std::mem::take(&mut self.nested);
        let node = self.bare_statement(tree, depth)?;
        let nested = std::mem::replace(&mut self.nested, outer);
        if nested.is_empty() {
            return Ok(node);
        }
        Ok(Node::Sequence(vec![Node::Apart(nested), node]))
    }

    fn bare_statement(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        match tree.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(tree, depth),
            "variable_assignment" => Ok(simple(vec![self.assignment(tree, depth)?])),
            "variable_assignments" => {
                let parts = self.parts(tree)?;
                let assignments =
                    parts.into_iter().map(|part| self.assignment(part, depth)).collect::<Result<_, _>>()?;
                Ok(simple(assignments))
            }
            "list" => {
                let parts = self.parts(tree)?;
                let [left, operator, right] = parts.as_slice() else { return Err("an odd list".into()) };
                self.token(*operator, Kind::Join);
                let left = Box::new(self.statement(*left, depth + 1)?);
                let right = Box::new(self.statement(*right, depth + 1)?);
                match operator.kind() {
                    "&&" => Ok(Node::And(left, right)),
                    "||" => Ok(Node::Or(left, right)),
                    kind => Err(format!("an unknown operator {kind}")),
                }
            }
            "pipeline" => {
                let mut nodes: Vec<Node> = Vec::new();
                for (at, part) in self.parts(tree)?.into_iter().enumerate() {
                    match (at % 2, part.kind()) {
                        (1, kind @ ("|" | "|&")) => {
                            self.token(part, Kind::Join);
                            if let Some(left) = nodes.pop_if(|_| kind == "|&") {
                                let target = Word { source: "1".into(), pieces: vec![Piece::Text("1".into())] };
                                let both = Redirect { kind: RedirectKind::Duplicate, fd: Some(2), target };
                                nodes.push(attach(left, vec![both]));
                            }
                        }
                        (0, _) => nodes.push(self.statement(part, depth + 1)?),
                        _ => return Err("an odd pipeline".into()),
                    }
                }
                Ok(Node::Apart(nodes))
            }
            "negated_command" => {
                let parts = self.parts(tree)?;
                match parts.as_slice() {
                    [not, inner] if not.kind() == "!" && inner.start_byte() > not.end_byte() => {
                        Ok(Node::Not(Box::new(self.statement(*inner, depth + 1)?)))
                    }
                    _ => Err("an odd negation".into()),
                }
            }
            "subshell" => Ok(Node::Apart(vec![Node::Sequence(self.statements(tree, &["(", ")"], depth)?)])),
            "compound_statement" => {
                let parts = self.parts(tree)?;
                let Some(open) = parts.first().filter(|part| part.kind() == "{") else {
                    return Err("arithmetic".into());
                };
                // `{ls` is a word for bash.
                if !self.text[open.end_byte()..].starts_with([' ', '\t', '\n']) {
                    return Err("a brace that joins a word".into());
                }
                Ok(Node::Sequence(self.sequence(&parts, &["{", "}"], depth)?))
            }
            "if_statement" | "elif_clause" | "else_clause" | "do_group" | "while_statement" => {
                let words = ["if", "then", "fi", "elif", "else", "do", "done", "while", "until"];
                let parts = self.statements(tree, &words, depth)?;
                Ok(Node::Block { variable: None, words: Vec::new(), parts })
            }
            "for_statement" => self.for_statement(tree, depth),
            "case_statement" => self.case_statement(tree, depth),
            "function_definition" => self.function(tree, depth),
            "redirected_statement" => self.redirected(tree, depth),
            "test_command" => self.test(tree, depth),
            kind => Err(format!("a construct that is not judged: {}", kind.replace('_', " "))),
        }
    }

    fn command(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let mut command = Simple { assignments: Vec::new(), words: Vec::new(), redirects: Vec::new() };
        let mut end: Option<usize> = None;
        // Braces may leave nothing of a word.
        let mut named = false;
        for part in self.parts(tree)? {
            let gap = end.map(|end| &self.text[end..part.start_byte()]);
            if gap.is_some_and(|gap| gap.replace("\\\n", "").contains('\n')) {
                return Err("a command over two lines".into());
            }
            end = Some(part.end_byte());
            match part.kind() {
                "file_redirect" | "herestring_redirect" => command.redirects.push(self.redirect(part, depth)?),
                kind if gap.is_some_and(str::is_empty) => {
                    return Err(format!("a {kind} that joins the word before it"));
                }
                "variable_assignment" if !named => command.assignments.push(self.assignment(part, depth)?),
                "subshell" => return Err("a subshell as an argument".into()),
                _ => {
                    self.token(part, if named { Kind::Argument } else { Kind::Name });
                    named = true;
                    command.words.extend(self.words(part, depth)?);
                }
            }
        }
        Ok(Node::Simple(command))
    }

    fn assignment(&mut self, tree: Tree, depth: usize) -> Result<Assignment, String> {
        self.token(tree, Kind::Assignment);
        let source = self.source(tree);
        let (name, value) = source.split_once('=').ok_or("an odd assignment")?;
        let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain {
            return Err("an assignment to something else than a variable".into());
        }
        let spans = self.spans(tree, depth)?;
        let mut value = scan_one(value, tree.end_byte() - value.len(), &spans)?.without_globs();
        // What it adds to is not told.
        if adds {
            value.pieces.insert(0, Piece::Dynamic(Expansion::of(&format!("${name}"))));
        }
        Ok(Assignment { name: name.to_owned(), value })
    }

    pub(super) fn words(&mut self, tree: Tree, depth: usize) -> Result<Vec<Word>, String> {
        let spans = self.spans(tree, depth)?;
        scan(self.source(tree), tree.start_byte(), &spans)
    }

    /// A word in which bash expands no braces.
    pub(super) fn one_word(&mut self, tree: Tree, depth: usize) -> Result<Word, String> {
        let spans = self.spans(tree, depth)?;
        scan_one(self.source(tree), tree.start_byte(), &spans)
    }

    /// The outermost expansions in a word, each judged to be a plain one; the commands in them go to `nested`.
    pub(super) fn spans(&mut self, tree: Tree, depth: usize) -> Result<Vec<Span>, String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply".into());
        }
        let source = self.source(tree);
        match tree.kind() {
            "simple_expansion" => {
                let name = source.strip_prefix('$').unwrap_or_default();
                let special = name.len() == 1 && name.chars().all(|c| c.is_ascii_digit() || "@*#?$!_-".contains(c));
                if !special && !is_name(name) {
                    return Err("an odd expansion".into());
                }
            }
            "expansion" if !plain_expansion(source) => return Err("an expansion that may do more than expand".into()),
            "expansion" => {}
            "arithmetic_expansion" => {
                let inner = source.strip_prefix("$((").and_then(|source| source.strip_suffix("))"));
                if !inner.is_some_and(|inner| guard::counts(inner, self.text)) {
                    return Err("arithmetic with variables".into());
                }
            }
            "command_substitution" | "process_substitution" => {
                let parts = self.parts(tree)?;
                let [open, inner @ .., close] = parts.as_slice() else { return Err("an odd substitution".into()) };
                if !matches!(open.kind(), "$(" | "<(" | ">(") || close.kind() != ")" {
                    return Err("a backtick".into());
                }
                let node = match inner {
                    [redirect] if redirect.kind() == "file_redirect" => {
                        Node::Redirected { body: None, redirects: vec![self.redirect(*redirect, depth + 1)?] }
                    }
                    _ => Node::Sequence(self.sequence(inner, &[], depth + 1)?),
                };
                self.nested.push(Node::Apart(vec![node]));
            }
            "ansi_c_string" | "translated_string" => return Err("a $'…' or $\"…\" string".into()),
            "array" => return Err("an array".into()),
            _ => {
                let mut spans = Vec::new();
                for child in children(tree) {
                    spans.extend(self.spans(child, depth + 1)?);
                }
                return Ok(spans);
            }
        }
        Ok(vec![Span { range: tree.byte_range() }])
    }

    pub(super) fn redirect(&mut self, tree: Tree, depth: usize) -> Result<Redirect, String> {
        let parts = self.parts(tree)?;
        let (parts, fd) = match parts.as_slice() {
            [fd, rest @ ..] if fd.kind() == "file_descriptor" => (rest, Some(self.source(*fd))),
            all => (all, None),
        };
        let [operator, rest @ ..] = parts else { return Err("an odd redirection".into()) };
        let kind = match operator.kind() {
            "<" => RedirectKind::Read,
            ">" | ">>" | ">|" | "&>" | "&>>" => RedirectKind::Write,
            "<>" => RedirectKind::ReadWrite,
            ">&" | "<&" | ">&-" | "<&-" => RedirectKind::Duplicate,
            "<<<" => RedirectKind::Data,
            kind => return Err(format!("an unknown redirection {kind}")),
        };
        let fd = match fd {
            Some(fd) => Some(fd.parse().map_err(|_| "an odd file descriptor")?),
            None if operator.kind().starts_with('&') => None,
            None => Some(u32::from(operator.kind().starts_with('>'))),
        };
        let mut words = match rest {
            [] => Vec::new(),
            [target] => {
                if !operator.kind().ends_with('&') || self.source(*target) != "-" {
                    self.token(*target, Kind::Target);
                }
                match kind {
                    RedirectKind::Data => vec![self.one_word(*target, depth)?],
                    _ => self.words(*target, depth)?,
                }
            }
            // The parser takes arguments that follow for further targets.
            _ => return Err("arguments after a redirection".into()),
        };
        match (words.pop(), words.is_empty()) {
            (Some(target), true) => {
                let number = target
                    .literal()
                    .is_some_and(|text| text == "-" || text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()));
                match kind {
                    // `>&file` writes the file.
                    RedirectKind::Duplicate if !number => {
                        Ok(Redirect { kind: RedirectKind::ReadWrite, fd: None, target })
                    }
                    kind => Ok(Redirect { kind, fd, target }),
                }
            }
            (None, _) if operator.kind().ends_with("&-") => {
                Ok(Redirect { kind, fd, target: Word { source: "-".into(), pieces: Vec::new() } })
            }
            _ => Err("a redirection with an odd target".into()),
        }
    }

    fn redirected(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let mut body = None;
        let mut redirects = Vec::new();
        let mut after = Vec::new();
        for part in self.parts(tree)? {
            match part.kind() {
                "file_redirect" | "herestring_redirect" => redirects.push(self.redirect(part, depth)?),
                "heredoc_redirect" => self.heredoc(part, &mut redirects, &mut after, depth)?,
                _ if body.is_none() && redirects.is_empty() => body = Some(Box::new(self.statement(part, depth + 1)?)),
                kind => return Err(format!("a {kind} after a redirection")),
            }
        }
        let node = match body {
            Some(body) => attach(*body, redirects),
            None => Node::Redirected { body: None, redirects },
        };
        if after.is_empty() {
            return Ok(node);
        }
        after.insert(0, node);
        Ok(Node::Apart(after))
    }
}

/// Gives redirections to the command that they belong to: the parser hangs them on the whole list before them.
fn attach(node: Node, redirects: Vec<Redirect>) -> Node {
    match node {
        Node::Simple(mut command) => {
            command.redirects.extend(redirects);
            Node::Simple(command)
        }
        Node::And(left, right) => Node::And(left, Box::new(attach(*right, redirects))),
        Node::Or(left, right) => Node::Or(left, Box::new(attach(*right, redirects))),
        node => Node::Redirected { body: Some(Box::new(node)), redirects },
    }
}

/// Only blanks and continued lines.
fn is_blank(gap: &str) -> bool {
    gap.replace("\\\n", "").bytes().all(|b| matches!(b, b' ' | b'\t' | b'\n'))
}

fn simple(assignments: Vec<Assignment>) -> Node {
    Node::Simple(Simple { assignments, words: Vec::new(), redirects: Vec::new() })
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `${x}`, `${#x}`, `${x[0]}`, `${x:-word}`, `${x#pattern}`: forms in which nothing is evaluated a second time.
fn plain_expansion(source: &str) -> bool {
    let Some(inner) = source.strip_prefix("${").and_then(|source| source.strip_suffix('}')) else { return false };
    let inner = inner.strip_prefix('#').unwrap_or(inner);
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let (name, rest) = match inner.chars().next() {
        Some('@' | '*') => inner.split_at(1),
        _ => inner.split_at(end),
    };
    let rest = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((index, rest)) if index == "@" || index == "*" || index.bytes().all(|b| b.is_ascii_digit()) => rest,
        Some(_) => return false,
        None => rest,
    };
    let word = [":-", ":+", ":?", "-", "+", "?", "##", "#", "%%", "%", "//", "/", "^^", "^", ",,", ","]
        .iter()
        .find_map(|operator| rest.strip_prefix(operator));
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || " _./*-:,".contains(c));
    (is_name(name) || name.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() || matches!(name, "@" | "*"))
        && (rest.is_empty() || word.is_some_and(plain))
}
