//! Which files a command changes in the folders that it reaches: those that are there, or whatever it brings.

use super::super::super::commands;
use super::super::super::paths::Cwd;
use super::super::super::shell::Word;
use super::{Reach, Unnamed, listed};

/// Which files a command changes in the folders that it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that are there.
    There,
    /// Those that git's index holds.
    Kept,
    /// Whatever a commit, a patch or another machine calls a file.
    Any,
}

impl Unnamed<'_> {
    /// How far a command reaches that brings files from another machine, whose names only that one knows.
    pub(super) fn receives(&self, name: &str, words: &[Word], cwd: &Cwd) -> Option<Reach> {
        let texts: Vec<String> = words.iter().skip(1).map(Word::known).collect();
        let has = |list: &str| texts.iter().any(|text| listed(list, text));
        let operands: Vec<&String> = texts.iter().filter(|text| !text.starts_with('-')).collect();
        // Of two places the second is written.
        let here = || operands.last().is_some_and(|last| !last.contains(':'));
        let comes = match name {
            "scp" | "rsync" => here() && operands.iter().any(|text| text.contains(':')),
            "docker" | "podman" | "nerdctl" | "kubectl" | "oc" => {
                texts.iter().take(4).any(|text| text == "cp") && here()
            }
            "aws" | "gsutil" | "gcloud" | "az" | "rclone" => has("cp sync mv copy move download rsync"),
            "gh" | "glab" => has("download checkout clone"),
            "curl" | "wget" => !commands::writes_what_it_names(words),
            _ => return None,
        };
        let folders = || !self.folders(words, cwd).is_empty();
        comes.then(|| if folders() { Reach::Below } else { Reach::Anything })
    }
}

/// Which files a git command changes that writes the work tree.
pub(super) fn git_files(words: &[Word]) -> Which {
    let texts: Vec<String> = words.iter().map(Word::known).collect();
    let option = |at: usize| texts[at].starts_with('-') || at > 1 && matches!(&*texts[at - 1], "-C" | "-c");
    let Some(at) = (1..texts.len()).find(|at| !option(*at)) else { return Which::Kept };
    let rest = &texts[at + 1..];
    let end = rest.iter().position(|text| text == "--");
    let before = &rest[..end.unwrap_or(rest.len())];
    let given = |starts: &[&str]| {
        before.iter().any(|text| {
            let name = text.split('=').next().unwrap_or_default();
            starts.iter().any(|start| name.len() > 2 && start.starts_with(name)) || starts.contains(&name)
        })
    };
    let letter = |letter: char| {
        before.iter().any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    };
    let names = before.iter().any(|text| !text.starts_with('-'));
    match &*texts[at] {
        // It takes away what git does not keep.
        "clean" => Which::There,
        "rm" | "mv" | "lfs" | "sparse-checkout" => Which::Kept,
        "stash" if rest.first().is_none_or(|first| first.starts_with('-') || matches!(&**first, "push" | "save")) => {
            let all = letter('u') || letter('a') || given(&["--include-untracked", "--all"]);
            if all { Which::There } else { Which::Kept }
        }
        "reset" if !names => Which::Kept,
        // Without a revision they bring back what is in the index.
        "checkout" if !(given(&["--pathspec-from-file"]) || end.is_some() && names) => Which::Kept,
        "restore" if !letter('s') && !given(&["--source", "--pathspec-from-file"]) => Which::Kept,
        _ => Which::Any,
    }
}
