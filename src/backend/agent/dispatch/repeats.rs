//! Notices a model that goes in circles.

use std::collections::HashMap;

use crate::message::{Display, Outcome, ToolResult};
use crate::stdx::hash::sha256_hex;

/// Counts how often the same call gave the same result since something was changed: a model that goes in circles may
/// well put another call in between.
#[derive(Debug, Default)]
pub(in crate::agent) struct Repeats {
    seen: HashMap<(String, String, String), u32>,
}

impl Repeats {
    pub(in crate::agent) fn clear(&mut self) {
        self.seen.clear();
    }

    /// Notes a call and its result; how often the two came together by now.
    pub(super) fn note(&mut self, tool: &str, input: &str, result: &ToolResult) -> u32 {
        let changed = matches!(result.display, Some(Display::Diff(_))) && result.outcome == Outcome::Ok;
        if changed {
            self.clear();
        }
        let times =
            self.seen.entry((tool.to_owned(), input.to_owned(), sha256_hex(result.text().as_bytes()))).or_default();
        *times += 1;
        *times
    }
}
