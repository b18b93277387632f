//! Constructs with words of their own: here-documents, `for`, `case`, functions, tests.

use std::ops::Range;

use tree_sitter::Node as Tree;

use super::parse::{Reader, children, is_name};
use super::second::Kind;
use super::word::{Piece, Word, scan, scan_one};
use super::{Node, Redirect, RedirectKind, Simple};

impl Reader<'_> {
    /// A here-document whose body is surely data, and what follows it on its line.
    pub(super) fn heredoc(
        &mut self,
        tree: Tree,
        redirects: &mut Vec<Redirect>,
        after: &mut Vec<Node>,
        depth: usize,
    ) -> Result<(), String> {
        let mut delimiter = None;
        let mut tabs = false;
        let mut body: Option<Range<usize>> = None;
        let mut ended = false;
        for part in children(tree) {
            match part.kind() {
                "<<" => {}
                "<<-" => tabs = true,
                "heredoc_start" => {
                    self.token(part, Kind::Target);
                    delimiter = Some(self.source(part));
                }
                "file_redirect" | "herestring_redirect" => redirects.push(self.redirect(part, depth)?),
                "heredoc_body" => body = Some(part.byte_range()),
                "heredoc_end" => {
                    ended = true;
                    let start = delimiter.ok_or("a here-document without a start")?;
                    let quoted = ['\'', '"'].iter().find_map(|q| start.strip_prefix(*q)?.strip_suffix(*q));
                    let name = quoted.unwrap_or(start);
                    if !is_name(name) {
                        return Err("an odd here-document delimiter".into());
                    }
                    let line_start = self.text[..part.start_byte()].rfind('\n').map_or(0, |at| at + 1);
                    let before = &self.text[line_start..part.start_byte()];
                    let alone = if tabs { before.bytes().all(|b| b == b'\t') } else { before.is_empty() };
                    let ends = self.text[part.end_byte()..].chars().next().is_none_or(|c| c == '\n');
                    let range = body.clone().unwrap_or(line_start..line_start);
                    let text = &self.text[range.start.min(line_start)..line_start];
                    let early =
                        text.lines().any(|line| (if tabs { line.trim_start_matches('\t') } else { line }) == name);
                    if self.source(part).trim() != name || !alone || !ends || early {
                        return Err("a here-document whose end is unclear".into());
                    }
                    if quoted.is_none() && text.contains(['$', '`', '\\']) {
                        return Err("a here-document with expansions: quote its delimiter".into());
                    }
                    self.data.push(range.start.min(line_start)..part.end_byte());
                    redirects.push(Redirect {
                        kind: RedirectKind::Data,
                        fd: Some(0),
                        target: Word { source: name.to_owned(), pieces: vec![Piece::Text(text.to_owned())] },
                    });
                }
                ";" => {}
                "&&" | "||" | "|" | "|&" => self.token(part, Kind::Join),
                "pipeline" => {
                    for inner in self.parts(part)? {
                        match inner.kind() {
                            "|" | "|&" => self.token(inner, Kind::Join),
                            _ => after.push(self.statement(inner, depth + 1)?),
                        }
                    }
                }
                "word" | "string" | "raw_string" | "concatenation" | "number" => {
                    return Err("arguments after a here-document".into());
                }
                _ => after.push(self.statement(part, depth + 1)?),
            }
        }
        if ended { Ok(()) } else { Err("a here-document without an end".into()) }
    }

    pub(super) fn for_statement(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let (mut variable, mut words, mut parts) = (None, Vec::new(), Vec::new());
        for part in self.parts(tree)? {
            match part.kind() {
                "for" | "in" | ";" | "\n" => {}
                "variable_name" => {
                    self.token(part, Kind::Item);
                    variable = Some(self.source(part).to_owned());
                }
                "do_group" => parts.push(self.statement(part, depth + 1)?),
                "select" => return Err("select reads from the terminal".into()),
                _ => {
                    self.token(part, Kind::Item);
                    words.extend(self.words(part, depth)?);
                }
            }
        }
        if variable.is_none() {
            return Err("an odd loop".into());
        }
        Ok(Node::Block { variable, words, parts })
    }

    pub(super) fn case_statement(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let (mut words, mut parts) = (Vec::new(), Vec::new());
        for part in self.parts(tree)? {
            match part.kind() {
                "case" | "in" | "esac" | "\n" | ";" => {}
                "case_item" => {
                    let inner = self.parts(part)?;
                    let close = inner.iter().position(|part| part.kind() == ")").ok_or("an odd case")?;
                    for pattern in &inner[..close] {
                        if !matches!(pattern.kind(), "(" | "|") {
                            self.token(*pattern, Kind::Item);
                            words.push(self.one_word(*pattern, depth)?);
                        }
                    }
                    parts.extend(self.sequence(&inner[close + 1..], &[";&", ";;&"], depth)?);
                }
                _ => {
                    self.token(part, Kind::Item);
                    words.push(self.one_word(part, depth)?);
                }
            }
        }
        Ok(Node::Block { variable: None, words, parts })
    }

    pub(super) fn function(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let (mut name, mut body) = (None, None);
        for part in self.parts(tree)? {
            match part.kind() {
                "function" | "(" | ")" => {}
                "word" if name.is_none() => {
                    self.token(part, Kind::Item);
                    name = Some(self.source(part).to_owned());
                }
                "compound_statement" | "subshell" if body.is_none() => {
                    body = Some(Box::new(self.statement(part, depth + 1)?))
                }
                kind => return Err(format!("a function with a {}", kind.replace('_', " "))),
            }
        }
        match (name, body) {
            (Some(name), Some(body)) if is_name(&name) => Ok(Node::Function { name, body }),
            _ => Err("an odd function".into()),
        }
    }

    /// `[ … ]` and `[[ … ]]` as a command with words; what is more than words is not judged.
    pub(super) fn test(&mut self, tree: Tree, depth: usize) -> Result<Node, String> {
        let spans = self.spans(tree, depth)?;
        let source = self.source(tree);
        let mut words = Vec::new();
        let mut start = 0;
        let mut quote = None;
        let mut escaped = false;
        let mut named = Kind::Name;
        // Expansions that end before the place that is looked at.
        let mut behind = 0;
        for (at, c) in source.char_indices().chain([(source.len(), ' ')]) {
            let here = tree.start_byte() + at;
            while spans.get(behind).is_some_and(|span| span.range.end <= here) {
                behind += 1;
            }
            let inside = spans.get(behind).is_some_and(|span| span.range.contains(&here));
            match (quote, c) {
                _ if inside => {}
                _ if escaped => escaped = false,
                (None | Some('"'), '\\') => escaped = true,
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None, ' ' | '\t' | '\n') => {
                    if at > start {
                        let from = tree.start_byte();
                        self.tokens.push((from + start, from + at, std::mem::replace(&mut named, Kind::Argument)));
                    }
                    match &source[start..at] {
                        "" => {}
                        // Quoted, so that a rule never sees them as an operator.
                        both @ ("&&" | "||") if source.starts_with("[[") => {
                            words.push(Word {
                                source: both.to_owned(),
                                pieces: vec![super::Piece::Text(both.to_owned())],
                            });
                        }
                        _ if c == '\n' => return Err("a test over two lines".into()),
                        word => {
                            let range = tree.start_byte() + start..tree.start_byte() + at;
                            let first = spans.partition_point(|span| span.range.end <= range.start);
                            let last = spans.partition_point(|span| span.range.start < range.end);
                            match source.starts_with("[[") {
                                true => words.push(scan_one(word, range.start, &spans[first..last])?),
                                false => words.extend(scan(word, range.start, &spans[first..last])?),
                            }
                        }
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        Ok(Node::Simple(Simple { assignments: Vec::new(), words, redirects: Vec::new() }))
    }
}
