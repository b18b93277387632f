//! What acceptEdits lets a shell line change: folders are made, single files are touched, copied, moved, and what is named is
//! removed. A folder is neither moved nor copied, since links in it would come to lead elsewhere.

use std::path::{Path, PathBuf};

use super::Behavior;
use super::decide::{Query, Verdict, read, write};
use super::files::{Files, MAX_PATH};
use super::paths::Cwd;
use super::shell::Word;
use super::vocabulary::Matches;

/// Flags of the commands that it lets run. `cp` copies what a link leads to, never the link.
const EDITS: [(&str, &str); 6] =
    [("mkdir", "pv"), ("touch", "acmh"), ("cp", "finuvT"), ("mv", "finuvT"), ("rm", "rRfivdI"), ("rmdir", "pv")];

/// What the edits of a line have replaced or removed by now, so that a path through it leads nobody knows where.
#[derive(Debug, Default)]
pub(super) struct Edits {
    changed: Vec<PathBuf>,
}

impl Edits {
    /// Whether the path leads through what the line changed.
    pub(super) fn lead_through(&self, path: &Path, files: &dyn Files) -> bool {
        let real = files.resolve(path);
        self.changed
            .iter()
            .any(|changed| [path, &real].iter().any(|path| *path != changed && path.starts_with(changed)))
    }

    /// Whether acceptEdits lets the command run: one of a few, with literal paths inside the workspace. What it changes is
    /// kept.
    pub(super) fn admit(&mut self, query: &Query, words: &[Word], cwd: &Cwd, files: &dyn Files) -> bool {
        let Some(name) = words.first().and_then(Word::literal) else { return false };
        let Some((_, flags)) = EDITS.iter().find(|(known, _)| *known == name) else { return false };
        let (mut operands, mut options) = (Vec::new(), true);
        for word in &words[1..] {
            let Some(text) = word.literal() else { return false };
            match text.strip_prefix('-').filter(|rest| options && !rest.is_empty()) {
                Some("-") => options = false,
                Some(rest) if rest.chars().all(|c| flags.contains(c)) => {}
                Some("-recursive") if name == "rm" => {}
                Some("-force" | "-verbose") if matches!(name.as_str(), "rm" | "cp" | "mv") => {}
                Some("-parents" | "-verbose") if matches!(name.as_str(), "mkdir" | "rmdir") => {}
                Some("-no-clobber") if matches!(name.as_str(), "cp" | "mv") => {}
                Some(_) => return false,
                None if text.len() > MAX_PATH => return false,
                None => operands.push(text),
            }
        }
        let Some(cwds) = &cwd.0 else { return false };
        let allowed = |verdict: Verdict| verdict.behavior == Behavior::Allow;
        let edits = query.vocabulary.tool(Matches::Editing);
        let mut changed = Vec::new();
        let admitted = cwds.iter().all(|cwd| {
            let target = operands.last().map(|last| cwd.join(last));
            operands.iter().enumerate().all(|(at, operand)| {
                let path = cwd.join(operand);
                let source = matches!(name.as_str(), "cp" | "mv") && at + 1 < operands.len();
                let copied = source && name == "cp";
                let gone = matches!(name.as_str(), "rm" | "rmdir" | "mv");
                // The file that really comes to be, should the target be a folder.
                let landing =
                    target.as_ref().filter(|_| source).and_then(|target| Some(target.join(path.file_name()?)));
                if gone {
                    changed.extend([path.clone(), files.resolve(&path)]);
                }
                changed.extend(landing.clone());
                // A folder stays what it is.
                changed.extend(target.clone().filter(|target| source && files.names(target).is_empty()));
                let file = if copied { files.is_file(&files.resolve(&path)) } else { files.is_file(&path) };
                (!source || file)
                    && !self.lead_through(&path, files)
                    && (if copied {
                        allowed(read(query, query.vocabulary.tool(Matches::Reading), &path, files))
                            && query.places.protected(&path, files).is_none()
                    } else {
                        allowed(write(query, edits, &path, files))
                    })
                    && landing.is_none_or(|path| allowed(write(query, edits, &path, files)))
                    && !(gone && query.places.spared(&path, files).is_some())
            })
        });
        self.changed.append(&mut changed);
        admitted
    }
}
