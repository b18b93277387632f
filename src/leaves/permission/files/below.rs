//! Looks at what lies below folders.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::{Files, MAX_NAMES};

/// What a walk does after it has looked at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::permission) enum Step {
    /// It looks below it as well.
    Into,
    Past,
    /// It ends.
    Stop,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::permission) enum Walk {
    Stopped,
    /// There is nothing more to look at.
    Done,
    /// There are more than so many names, or more in one folder than anybody lists. What lies nearest was looked at.
    TooMany,
}

/// Looks at everything below the folders, nearest first, each path with whether it is a link; what links lead to is left out.
pub(in crate::permission) fn walk(
    tops: Vec<PathBuf>,
    most: usize,
    files: &dyn Files,
    mut step: impl FnMut(&Path, bool) -> Step,
) -> Walk {
    let mut left = VecDeque::from(tops);
    let mut seen = 0;
    while let Some(folder) = left.pop_front() {
        let names = files.names(&folder);
        seen += names.len();
        if files.spend(0) {
            return Walk::TooMany;
        }
        for path in names.iter().map(|name| folder.join(name)) {
            let link = files.link(&path).is_some();
            match step(&path, link) {
                Step::Stop => return Walk::Stopped,
                Step::Into if !link && !files.is_file(&path) => left.push_back(path),
                Step::Into | Step::Past => {}
            }
        }
        if names.len() >= MAX_NAMES || seen > most {
            return Walk::TooMany;
        }
    }
    Walk::Done
}
