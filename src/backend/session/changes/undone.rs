//! What an undo or a rewind undid, so that it can be redone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::unit::{Item, Unit};
use crate::session::entry::Replaced;

/// One undo or rewind that can be redone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Undone {
    /// What it undid.
    pub(super) units: Vec<Unit>,
    /// What it undid of commands in the background that earlier turns had started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) along: Vec<Unit>,
    pub(super) files: Vec<Replaced>,
}

impl Undone {
    /// Parts it in two: what it did to `paths`, and the rest.
    pub(super) fn part(self, paths: &[PathBuf]) -> (Undone, Undone) {
        let (units, other_units) = part(self.units, paths);
        let (along, other_along) = part(self.along, paths);
        let (mine, others) = self.files.into_iter().partition(|file| paths.contains(&file.path));
        let rest = Undone { units: other_units, along: other_along, files: others };
        (Undone { units, along, files: mine }, rest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty() && self.along.is_empty() && self.files.is_empty()
    }
}

/// Parts units in two: what they did to `paths`, and the rest.
fn part(units: Vec<Unit>, paths: &[PathBuf]) -> (Vec<Unit>, Vec<Unit>) {
    let (mut of, mut rest) = (Vec::new(), Vec::new());
    for Unit { start, turn, items } in units {
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::File(change) if paths.contains(&change.path) => mine.push(Item::File(change)),
                Item::File(change) => others.push(Item::File(change)),
                Item::Command(ran) => {
                    let (part, rest) = ran.part(paths.iter().map(|path| (path.as_path(), 0)));
                    mine.extend(Some(Item::Command(part)).filter(|_| !paths.is_empty()));
                    others.push(Item::Command(rest));
                }
            }
        }
        of.push(Unit { start, turn, items: mine });
        rest.push(Unit { start, turn, items: others });
    }
    for units in [&mut of, &mut rest] {
        units.retain(|unit| !unit.items.is_empty());
    }
    (of, rest)
}
