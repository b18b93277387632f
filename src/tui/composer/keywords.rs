//! Words in the prompt that ask the model to think harder, found again when the text has changed.

use super::{Composer, Mode};
use crate::thinking::{Keywords, Level, Position, extract_keyword_positions};

/// Where they stand.
#[derive(Debug, Clone, Default)]
pub(super) struct Lit {
    positions: Vec<Position>,
    /// What they were looked for in, and for.
    revision: Option<u64>,
    keywords: Keywords,
}

impl Lit {
    /// The level that the word around a byte asks for.
    pub(super) fn at(&self, at: usize) -> Option<Level> {
        let next = self.positions.partition_point(|position| position.range.end <= at);
        self.positions.get(next).filter(|position| position.range.start <= at).map(|position| position.level)
    }
}

impl Composer {
    /// Looks for keywords and skills where text or words are others than before.
    pub fn heed(&mut self, keywords: &Keywords) {
        self.mentions.heed(self.editor.text(), self.editor.revision());
        let revision = Some(self.editor.revision());
        if self.lit.revision != revision || self.lit.keywords != *keywords {
            let positions = extract_keyword_positions(self.editor.text(), keywords);
            self.lit = Lit { positions, revision, keywords: keywords.clone() };
        }
    }

    /// What the prompt asks for by a word.
    pub fn keyword(&self) -> Option<Level> {
        let levels = self.lit.positions.iter().map(|position| position.level);
        levels.max().filter(|_| self.mode == Mode::Prompt)
    }
}
