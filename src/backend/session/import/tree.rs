//! Entries that name the one before them: which of them lead to the end.

use std::collections::{HashMap, HashSet};

/// One line of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) offset: u64,
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
}

/// The nodes of a file, in its order.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    places: HashMap<u64, usize>,
}

impl Tree {
    pub(super) fn new(nodes: Vec<Node>) -> Tree {
        let places = nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        Tree { nodes, places }
    }

    /// From a node to its root, by their places; from a circle each once.
    pub(super) fn up(&self, from: usize) -> impl Iterator<Item = usize> {
        let mut seen = HashSet::new();
        let parent = |at: &usize| self.nodes[*at].parent.and_then(|parent| self.places.get(&parent).copied());
        std::iter::successors(Some(from), parent).take_while(move |at| seen.insert(*at))
    }
}
