//! A shell line as a small tree of our own: only what can be judged, everything else is an error that asks.

#[cfg(test)]
mod against_bash;
mod braces;
mod command;
mod compound;
pub(super) mod guard;
pub(super) mod loose;
pub(super) mod parse;
mod second;
pub(super) mod word;

pub use command::CommandLine;
pub(super) use parse::{Line, parse};
pub(super) use word::{Expansion, MANY, ONE, Piece, Word};

/// One construct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Simple(Simple),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Sequence(Vec<Node>),
    /// `! …`: succeeds where the construct fails.
    Not(Box<Node>),
    /// Runs beside us or in a copy of the shell: pipeline stages, `( … )`, `… &`.
    Apart(Vec<Node>),
    /// Any of the parts may run, any number of times: `if`, `case`, loops. `words` are patterns and list items.
    Block {
        variable: Option<String>,
        words: Vec<Word>,
        parts: Vec<Node>,
    },
    Function {
        name: String,
        body: Box<Node>,
    },
    Redirected {
        body: Option<Box<Node>>,
        redirects: Vec<Redirect>,
    },
}

impl Node {
    /// Visits every redirection of the construct.
    pub(super) fn for_each_redirect(&self, visit: &mut impl FnMut(&Redirect)) {
        match self {
            Node::Simple(command) => command.redirects.iter().for_each(visit),
            Node::Not(inner) | Node::Function { body: inner, .. } => inner.for_each_redirect(visit),
            Node::And(left, right) | Node::Or(left, right) => {
                left.for_each_redirect(visit);
                right.for_each_redirect(visit);
            }
            Node::Sequence(nodes) | Node::Apart(nodes) | Node::Block { parts: nodes, .. } => {
                nodes.iter().for_each(|node| node.for_each_redirect(visit));
            }
            Node::Redirected { body, redirects } => {
                redirects.iter().for_each(&mut *visit);
                body.iter().for_each(|body| body.for_each_redirect(visit));
            }
        }
    }

    /// Visits every simple command of the construct, in the order of the text.
    pub(super) fn for_each_simple(&self, visit: &mut impl FnMut(&Simple)) {
        match self {
            Node::Simple(command) => visit(command),
            Node::Not(inner) | Node::Function { body: inner, .. } => inner.for_each_simple(visit),
            Node::And(left, right) | Node::Or(left, right) => {
                left.for_each_simple(visit);
                right.for_each_simple(visit);
            }
            Node::Sequence(nodes) | Node::Apart(nodes) | Node::Block { parts: nodes, .. } => {
                nodes.iter().for_each(|node| node.for_each_simple(visit));
            }
            Node::Redirected { body, .. } => body.iter().for_each(|body| body.for_each_simple(visit)),
        }
    }
}

/// One simple command: `A=1 name argument… >file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    /// The name and the arguments, with braces expanded.
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: Word,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    /// The descriptor that it opens; None for both outputs.
    pub(super) fd: Option<u32>,
    pub(super) target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    /// `<>`.
    ReadWrite,
    /// `2>&1`, `>&-`.
    Duplicate,
    /// `<<<` or a here-document: data on standard input.
    Data,
}

impl Simple {
    /// The words as a rule sees them: without quotes where they change nothing, as written otherwise.
    pub(super) fn canonical(words: &[Word]) -> String {
        words.iter().map(Word::canonical).collect::<Vec<_>>().join(" ")
    }
}
