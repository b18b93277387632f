//! The programs and options that only read, as a list for tests that try them all.

use super::{Reader, git, readers};

/// Every program of the read-only list with the options that it may be given, and whether the next word is the option's
/// value: for tests, which try them all.
pub fn listed_options() -> Vec<Listed> {
    readers::READERS.iter().map(Reader::listed).collect()
}

/// As [`listed_options`], for the subcommands of git.
pub fn listed_git_options() -> Vec<Listed> {
    git::listed()
}

/// A name, and options each with whether the next word is its value.
pub type Listed = (&'static str, Vec<(String, bool)>);

impl Reader {
    pub(super) fn listed(&self) -> Listed {
        let short =
            |letters: &str, valued: bool| letters.chars().map(|c| (format!("-{c}"), valued)).collect::<Vec<_>>();
        let long = self
            .long_options()
            .map(|known| (format!("--{}", known.trim_end_matches(['=', '?', '@'])), known.ends_with(['=', '@'])));
        let mut all = short(self.flags, false);
        all.extend(short(self.wide.0, false));
        all.extend(short(self.valued, true));
        all.extend(short(self.naming.0, true));
        all.extend(short(self.pathed, true));
        all.extend(short(self.attached, false));
        all.extend(long);
        (self.name, all)
    }
}
