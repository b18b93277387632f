//! What a rebase or a series of cherry-picks that was interrupted is still to do: a list that git keeps in a file, and of which
//! a line may run any program.

use std::path::Path;

use super::{common_dir, content, git_dir, line, top};

/// Largest list that is looked at, in bytes.
const MAX_TODO: u64 = 1 << 20;

/// Commands that run no program that the list names, with their short names.
const KNOWN: &str =
    "pick p reword r edit e squash s fixup f break b drop d label l reset t merge m update-ref u noop revert";

/// Merge strategies that are git's own: another name is that of a program.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Judges what a rebase would continue with in the repository around the folder.
///
/// # Errors
/// What it would run.
pub(in crate::permission) fn judge(folder: &Path) -> Result<(), String> {
    let Some(root) = top(folder) else { return Ok(()) };
    let own = git_dir(&root, &root.join(".git"))?;
    for folder in [own.clone(), common_dir(&own)?] {
        for name in ["rebase-merge/git-rebase-todo", "sequencer/todo"] {
            let file = folder.join(name);
            let bytes = content(&file, MAX_TODO)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            if let Some(odd) = text.lines().find(|line| !is_known(line)) {
                let told: String = odd.trim().chars().take(200).collect();
                return Err(format!("{} says `{told}`, which git would run", file.display()));
            }
        }
        let file = folder.join("rebase-merge/strategy");
        if let Some(name) = line(&file)?.filter(|name| !STRATEGIES.contains(&name.as_str())) {
            return Err(format!("{} names {name:?}, which is not a strategy of git's own", file.display()));
        }
    }
    Ok(())
}

/// Whether the line of such a list runs no program: git takes a comment sign of the user's choice, which is left to them.
fn is_known(line: &str) -> bool {
    let line = line.trim_start();
    let command = line.split([' ', '\t']).next().unwrap_or_default();
    line.trim().is_empty() || line.starts_with('#') || KNOWN.split(' ').any(|known| known == command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_runs_a_program_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        std::fs::create_dir_all(git.join("rebase-merge")).unwrap();
        std::fs::create_dir_all(git.join("sequencer")).unwrap();
        for (file, text, want) in [
            ("rebase-merge/git-rebase-todo", "", true),
            ("rebase-merge/git-rebase-todo", "# a\n\npick 0123 one\nf -C 0123 two\r\nmerge -C 0123 side\n", true),
            ("rebase-merge/git-rebase-todo", "pick 0123 one\nexec touch x\n", false),
            ("rebase-merge/git-rebase-todo", "x touch x\n", false),
            ("rebase-merge/git-rebase-todo", "\t exec\ttouch x", false),
            ("rebase-merge/git-rebase-todo", ";exec touch x", false),
            ("sequencer/todo", "pick 0123 one\n", true),
            ("sequencer/todo", "exec touch x\n", false),
            ("rebase-merge/strategy", "ort\n", true),
            ("rebase-merge/strategy", "../../x\n", false),
        ] {
            std::fs::write(git.join(file), text).unwrap();
            assert_eq!(judge(temp.path()).is_ok(), want, "{file}: {text}");
            std::fs::remove_file(git.join(file)).unwrap();
        }
    }

    #[test]
    fn a_rebase_continues_unasked_only_where_it_runs_nothing() {
        use super::super::super::files::Disk;
        use super::super::super::rule::{Rule, RuleSet, Source};
        use super::super::super::{Access, Behavior, Mode, Places, Query, decide};
        use crate::sandbox::Level;
        let temp = tempfile::tempdir().unwrap();
        let project = temp.path().canonicalize().unwrap();
        assert!(
            std::process::Command::new("git").args(["init", "-q"]).current_dir(&project).status().unwrap().success()
        );
        let todo = project.join(".git/rebase-merge/git-rebase-todo");
        std::fs::create_dir_all(todo.parent().unwrap()).unwrap();
        let places = Places { cwd: project.clone(), project, ..Places::default() };
        let mut rules = RuleSet::default();
        for rule in ["Bash(git:*)", "Bash(git rebase:*)", "Bash(git add:*)"] {
            rules.add(Behavior::Allow, Rule::parse(rule).unwrap(), Source::Session);
        }
        let hostile = "pick 0123 one\nexec touch mark\n";
        for (text, line, want) in [
            (hostile, "git rebase --continue", Behavior::Ask),
            (hostile, "git rebase --skip", Behavior::Ask),
            (hostile, "git -C . rebase --cont", Behavior::Ask),
            (hostile, "git cherry-pick --continue", Behavior::Ask),
            (hostile, "git rebase --abort", Behavior::Allow),
            (hostile, "git add a", Behavior::Allow),
            ("pick 0123 one\n", "git rebase --continue", Behavior::Allow),
        ] {
            std::fs::write(&todo, text).unwrap();
            let access = Access::Shell { command: line.into(), cwd: places.cwd.clone() };
            let (mode, vocabulary) = (Mode::Default, crate::permission::vocabulary::TOOLS);
            let (rules, places) = (&rules, &places);
            let query = Query { tool: "Bash", access: &access, mode, rules, places, vocabulary, level: Level::Kernel };
            let decision = decide(&query, &Disk);
            assert_eq!(decision.behavior, want, "{line}: {decision:?}");
            let told = decision.reasons.iter().any(|reason| reason.contains("exec touch mark"));
            assert_eq!(told, want == Behavior::Ask, "{line}: {decision:?}");
        }
    }
}
