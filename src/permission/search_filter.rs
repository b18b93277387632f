//! What one search may show: files that a rule forbids or asks for, and private ones, stay out of its results.

use std::path::Path;

use super::files::{Disk, Files};
use super::places::{Places, holds_keys};
use super::rule::{Entry, Strictness};
use super::vocabulary::Shows;
use super::{Access, Behavior, Mode, Query};

/// The files that an admitted call may show of what lies below its root. By default all.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    tool: String,
    /// Rules that keep files back. One that covers the root itself is not part of them: it was asked about.
    stops: Vec<Entry>,
    places: Places,
    /// Whether what is private stays out as well.
    private: bool,
    /// Whether environment files do.
    keys: bool,
}

impl Sight {
    /// What the call may show; everything for a call that is neither a search nor a listing.
    pub fn of(query: &Query, files: &dyn Files) -> Sight {
        let shows = query.vocabulary.of(query.tool).shows;
        let root = match query.access {
            Access::Search { root } => root,
            Access::Read { path } if shows.is_some() => path,
            _ => return Sight::default(),
        };
        let places = query.places;
        let covers =
            |entry: &Entry, path: &Path| entry.rule.covers_path(query.tool, path, Strictness::Possible, places, files);
        let stops = query.rules.entries().iter().filter(|entry| {
            entry.behavior != Behavior::Allow
                && entry.rule.governs(query.tool)
                && !covers(entry, root)
                && !covers(entry, &root.join("x"))
        });
        Sight {
            keys: query.mode != Mode::Bypass && shows == Some(Shows::Lines) && !holds_keys(root),
            tool: query.tool.to_owned(),
            stops: stops.cloned().collect(),
            places: places.clone(),
            private: query.mode != Mode::Bypass
                && places.private(root, files).is_none()
                && places.reaches_private(root, files),
        }
    }

    /// Whether the path may be one of the results.
    pub fn shows(&self, path: &Path) -> bool {
        self.shows_in(path, &Disk)
    }

    fn shows_in(&self, path: &Path, files: &dyn Files) -> bool {
        if self.keys && holds_keys(path) {
            return false;
        }
        if self.stops.is_empty() && !self.private || self.places.free_read(path, files) {
            return true;
        }
        let stopped = self
            .stops
            .iter()
            .any(|entry| entry.rule.covers_path(&self.tool, path, Strictness::Possible, &self.places, files));
        !(stopped || self.private && self.places.private(path, files).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::fake::Table;
    use super::super::{RuleSet, Source};
    use super::*;

    #[test]
    fn what_a_search_may_show() {
        let files = Table(&[("/p/link", "/p/secrets/key")]);
        for (tool, root, mode, path, want) in [
            ("Grep", "/p", Mode::Default, "/p/src/a.rs", true),
            ("Grep", "/p", Mode::Default, "/p/.env", false),
            ("Grep", "/p", Mode::Default, "/p/sub/.ENV", false),
            ("Glob", "/p", Mode::Bypass, "/p/.env", false),
            ("LS", "/p", Mode::Default, "/p/.env", false),
            ("Grep", "/p", Mode::Default, "/p/.env.local", false),
            ("Glob", "/p", Mode::Default, "/p/.env.local", true),
            ("Grep", "/p", Mode::Bypass, "/p/.env.local", true),
            ("Grep", "/p", Mode::Default, "/p/secrets/key", false),
            ("Grep", "/p", Mode::Default, "/p/link", false),
            // The question about the folder was answered.
            ("Grep", "/p/asked", Mode::Default, "/p/asked/a", true),
            ("Grep", "/p/asked", Mode::Default, "/p/asked/.env", false),
            ("Grep", "/p", Mode::Default, "/p/asked/a", false),
            ("Grep", "/p", Mode::Default, "/p/only-grep/a", false),
            ("Glob", "/p", Mode::Default, "/p/only-grep/a", true),
            ("Grep", "/home/u", Mode::Default, "/home/u/.claude/cocode/trust.json", false),
            ("Grep", "/home/u", Mode::Bypass, "/home/u/.claude/cocode/trust.json", true),
            ("Grep", "/home/u", Mode::Default, "/home/u/notes", true),
            ("Read", "/p/.env", Mode::Default, "/p/.env", true),
        ] {
            let mut rules = RuleSet::default();
            for (behavior, rule) in [
                (Behavior::Deny, "Read(.env)"),
                (Behavior::Deny, "Read(/secrets/**)"),
                (Behavior::Ask, "Read(/asked/**)"),
                (Behavior::Deny, "Grep(/only-grep/**)"),
                (Behavior::Allow, "Read(/src/**)"),
            ] {
                rules.add(behavior, rule.parse().unwrap(), Source::User);
            }
            let (places, root) = (Places::for_tests(), root.into());
            let access = if tool == "LS" { Access::Read { path: root } } else { Access::Search { root } };
            let access = if tool == "Read" { Access::Read { path: path.into() } } else { access };
            let query =
                Query { tool, access: &access, mode, rules: &rules, places: &places, vocabulary: crate::tools::RULES };
            let sight = Sight::of(&query, &files);
            assert_eq!(sight.shows_in(Path::new(path), &files), want, "{tool} {mode} {path}");
        }
    }
}
