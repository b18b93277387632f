//! What a shell starts for the name of a program.

use std::path::{Path, PathBuf};

use super::super::files::{Files, lexical};
use super::super::paths::Cwd;
use super::Places;
use crate::stdx::programs;

/// What `PATH` finds for a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::permission) struct Named {
    /// Why it says nothing about what the program does, where the first one may be anybody's.
    pub(in crate::permission) brought: Option<String>,
    /// The project has it, and nobody else: that is what somebody means who names it in this project.
    pub(in crate::permission) own: bool,
    /// A folder of the workspace comes first, so that whatever is put there now would be started.
    pub(in crate::permission) open: bool,
}

impl Named {
    /// Whether a rule of this project about the name helps: rules may speak of the project's own programs; others speak of
    /// those that have the name everywhere.
    pub(in crate::permission) fn may_be_ruled(&self) -> bool {
        self.brought.is_none() || self.own
    }
}

impl Places {
    /// Takes over another `PATH`, if commands get one.
    pub fn look_in(&mut self, path: Option<&String>) {
        if let Some(path) = path {
            self.programs = programs::folders(Some(path.as_ref()));
        }
    }

    /// What a shell finds that is in one of the folders.
    pub(in crate::permission) fn named(&self, name: &str, cwd: &Cwd, files: &dyn Files) -> Named {
        let mut named = Named::default();
        let mut outside = false;
        for folder in &self.programs {
            let here = folder.is_relative();
            let all: Vec<PathBuf> = match &cwd.0 {
                Some(cwds) if here => cwds.iter().map(|cwd| lexical(&cwd.join(folder))).collect(),
                _ => vec![folder.clone()],
            };
            for folder in all {
                let file = folder.join(name);
                let ours = here || self.brings(&folder, files);
                // What cannot be run yet may become so in the same line.
                let exists = here && cwd.0.is_none() || files.is_file(&file) || files.link(&file).is_some();
                let linked = exists && self.brings(&file, files);
                if exists && (ours || linked) {
                    named.own = named.brought.is_none();
                    let shown = file.strip_prefix(&self.project).map_or_else(
                        |_| file.display().to_string(),
                        |path| format!("{} of this folder", path.display()),
                    );
                    named.brought.get_or_insert_with(|| format!("{name} would run {shown}"));
                } else if exists && (files.others_write(&folder) || files.others_write(&files.resolve(&file))) {
                    let shown = file.display();
                    named.brought.get_or_insert_with(|| format!("{name} would run {shown}, which others may change"));
                } else {
                    outside |= files.runs(&file);
                }
                named.open |= ours;
            }
            if outside {
                named.own = false;
                break;
            }
        }
        named
    }

    /// The folders of `PATH` with what neither the workspace nor other users bring.
    pub(in crate::permission) fn own_programs(&self, files: &dyn Files) -> impl Iterator<Item = &PathBuf> {
        let own =
            |folder: &&PathBuf| folder.is_absolute() && !self.brings(folder, files) && !files.others_write(folder);
        self.programs.iter().filter(own)
    }

    /// Whether the file would be what a shell starts for its name. A name with an ending does not belong to a command.
    pub(in crate::permission) fn is_named(&self, path: &Path, files: &dyn Files) -> bool {
        let found = |file: &Path| {
            let folder = file.parent().filter(|_| file.extension().is_none());
            folder.is_some_and(|folder| {
                let same = |known: &PathBuf| known == folder || files.resolve(known) == folder;
                self.programs.iter().any(|known| known.is_absolute() && same(known))
            })
        };
        found(&lexical(path)) || found(&files.resolve(path))
    }

    /// Whether what lies at the path may come with the workspace.
    fn brings(&self, path: &Path, files: &dyn Files) -> bool {
        let (real, home) = (files.resolve(path), self.home.as_ref().map(|home| files.resolve(home)));
        self.workspace().any(|root| {
            programs::brings(root, self.home.as_deref(), path)
                || programs::brings(&files.resolve(root), home.as_deref(), &real)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::decide::{Query, decide};
    use super::super::super::files::fake::Table;
    use super::super::super::rule::{RuleSet, Source};
    use super::super::super::{Access, Behavior, Mode};
    use super::*;

    const FILES: Table = Table(&[
        ("/usr/bin/ls", "/usr/bin/ls"),
        ("/usr/bin/git", "/usr/bin/git"),
        ("/usr/bin/cat", "/usr/bin/cat"),
        ("/usr/bin/cp", "/usr/bin/cp"),
        ("/p/ls", "/p/ls"),
        ("/p/sub/wc", "/p/sub/wc"),
        ("/p/.venv/bin/pytest", "/p/.venv/bin/pytest"),
        ("/p/.venv/bin/python", "/usr/bin/python3"),
        ("/p/.venv/bin/cat", "/tmp/cat"),
        ("/p/.venv/bin/mkdir", "/p/.venv/bin/mkdir"),
        ("/home/u/.cargo/bin/rg", "/home/u/.cargo/bin/rg"),
        ("/home/u/.local/bin/fd", "/p/fd"),
        ("/p/fd", "/p/fd"),
        ("/p/a", "/p/a"),
    ]);

    fn check(path: &str, line: &str, source: Source, want: &str) {
        let places = Places { programs: std::env::split_paths(path).collect(), ..Places::for_tests() };
        let mut rules = RuleSet::default();
        for rule in ["Bash(pytest:*)", "Bash(git log:*)", "Bash(ls:*)", "Bash(cp:*)"] {
            rules.add(Behavior::Allow, rule.parse().unwrap(), source);
        }
        let access = Access::Shell { command: line.into(), cwd: "/p".into() };
        let (tool, mode, vocabulary) = ("Bash", Mode::AcceptEdits, crate::permission::vocabulary::TOOLS);
        let level = crate::sandbox::Level::Kernel;
        let query = Query { tool, access: &access, mode, rules: &rules, places: &places, vocabulary, level };
        let decision = decide(&query, &FILES);
        let got = if decision.behavior == Behavior::Allow { "" } else { decision.reasons[0].as_str() };
        assert!(got.ends_with(want) && want.is_empty() == got.is_empty(), "{path} {line}: {decision:?}");
    }

    #[test]
    fn a_name_is_the_program_that_path_finds_first() {
        const VENV: &str = "/p/.venv/bin:/usr/bin";
        const OWN: &str = "/home/u/.cargo/bin:/home/u/.local/bin:/usr/bin";
        for (path, line, want) in [
            ("/usr/bin", "ls", ""),
            (".:/usr/bin", "ls", "ls would run ls of this folder"),
            (":/usr/bin", "ls", "ls would run ls of this folder"),
            ("/usr/bin:.", "ls", ""),
            (".:/usr/bin", "git status", ""),
            (".:/usr/bin", "cd sub && ls", ""),
            (".:/usr/bin", "wc -l a", ""),
            (".:/usr/bin", "cd sub && wc -l a", "wc would run sub/wc of this folder"),
            ("/p:/usr/bin", "ls", "ls would run ls of this folder"),
            ("/p:/usr/bin", "ls -R /home/u/.cargo", "ls would run ls of this folder"),
            (VENV, "ls", ""),
            (VENV, "cat a", "cat would run .venv/bin/cat of this folder"),
            (VENV, "timeout 5 cat a", "cat would run .venv/bin/cat of this folder"),
            (VENV, "command cat a", "cat would run .venv/bin/cat of this folder"),
            (VENV, "find . -exec cat {} +", "cat would run .venv/bin/cat of this folder"),
            (VENV, "find . -name a | xargs cat", "cat would run .venv/bin/cat of this folder"),
            (VENV, "find . -name a -print0 | xargs -0 cat", "cat would run .venv/bin/cat of this folder"),
            (VENV, "mkdir x", "mkdir would run .venv/bin/mkdir of this folder"),
            (VENV, "touch x", ""),
            ("/p/bin:/usr/bin", "mv a b; mkdir c", ""),
            ("/p/bin:/usr/bin", "mv a bin/ls", "mv is not on the read-only list"),
            ("/p/bin:/usr/bin", "echo x > bin/ls", "> bin/ls: bin/ls is found by its name, through PATH"),
            ("/p/bin:/usr/bin", "echo x > bin/ls.c", ""),
            (VENV, "cp a b && ls", "a command of the line may have changed where it leads"),
            ("/usr/bin", "cp a b && ls", ""),
            (VENV, "git log && git log", ""),
            ("/usr/bin", "pytest", ""),
            ("/p:/usr/bin", "echo x", ""),
            (OWN, "rg x", ""),
            (OWN, "fd x", "fd would run /home/u/.local/bin/fd"),
        ] {
            check(path, line, Source::User, want);
        }
        // Who allowed it in this project meant what is there.
        check(VENV, "pytest", Source::User, "pytest would run .venv/bin/pytest of this folder");
        check(VENV, "pytest", Source::ProjectLocal, "");
        check("/p:/usr/bin", "ls -R /home/u/.cargo", Source::ProjectLocal, "ls would run ls of this folder");
    }
}
