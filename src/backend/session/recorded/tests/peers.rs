//! What undo of other agents destroyed, by the name of the report.

use super::*;

const REPOSITORY: &str = "git init -q .; echo 1 > tracked; echo out/ > .gitignore; git add .; git commit -qm one; \
    echo 2 > tracked; git add tracked; echo 3 > tracked; mkdir out; echo built > out/a; echo mine > untracked";

/// openai/codex#8214: undo by dangling commits destroyed the user's index.
#[test]
fn codex_8214_the_index_is_never_touched() {
    let mut it = Fixture::new(REPOSITORY);
    let old = it.tree();
    it.turn();
    it.run("echo x > tracked; rm untracked; echo y > new");
    assert_eq!(it.tree()[Path::new(".git/index")], old[Path::new(".git/index")]);
    it.undo();
    // Every byte of .git included.
    same(&it.tree(), &old, "undo");
    it.turn();
    it.run("git add -A; git commit -qm two; git checkout -q -b other; git stash -q; git reset -q --hard HEAD~1");
    it.undo();
    same(&it.tree(), &old, "undo of what git did");
    it.by_hand("git status --porcelain | grep -q '^MM tracked'");
}

/// google-gemini/gemini-cli#13331: a restore deleted nearly all files of a repository.
#[test]
fn gemini_13331_nothing_is_deleted_that_was_not_seen_being_created() {
    let mut it = Fixture::new("for d in a b c; do mkdir $d; for i in $(seq 50); do echo $i > $d/$i; done; done");
    it.turn();
    it.run("mkdir n; echo x > n/x; echo y > a/1");
    it.by_hand(
        "echo mine > n/mine; mkdir later; echo mine > later/mine; for i in $(seq 50); do echo $i > b/more$i; done",
    );
    let before = it.tree().len();
    it.undo();
    // Of all that is there one file alone was made by the command.
    assert_eq!(it.tree().len(), before - 1);
    assert!(!it.path("n/x").exists() && it.path("n/mine").exists());
}

/// cline/cline#1675: a checkpoint's `git clean` deleted untracked output.
#[test]
fn cline_1675_untracked_output_survives() {
    let mut it = Fixture::new(REPOSITORY);
    let old = it.tree();
    it.turn();
    it.run("git stash -q -u; git clean -fdxq; rm -rf out");
    assert!(!it.path("out").exists() && !it.path("untracked").exists());
    it.undo();
    same(&it.tree(), &old, "undo of a clean");
    it.turn();
    it.run("echo x > tracked");
    it.undo();
    same(&it.tree(), &old, "undo beside untracked output");
}

/// #14367: the ignore file was reverted before a clean, which then deleted what had been ignored.
#[test]
fn a_reverted_ignore_file_deletes_nothing_14367() {
    let mut it = Fixture::new(REPOSITORY);
    it.by_hand("git checkout -q -f .; rm -r out");
    let old = it.tree();
    it.turn();
    it.run("echo data/ >> .gitignore");
    it.by_hand("mkdir data; echo gigabytes > data/set");
    it.undo();
    assert_eq!(fs::read_to_string(it.path("data/set")).unwrap(), "gigabytes\n");
    it.by_hand("rm -r data");
    same(&it.tree(), &old, "undo");
}

/// anthropics/claude-code#93045: what Bash changed is not restored by a rewind.
#[test]
fn claude_93045_a_rewind_restores_what_bash_changed() {
    let mut it = Fixture::new("echo one > a; echo two > b; mkdir d; echo f > d/f");
    let old = it.tree();
    let prompt = it.turn();
    it.run("sed -i s/one/ONE/ a; rm b; mv d e; printf '#!/bin/sh\\necho x > made\\n' > run; chmod +x run; ./run");
    it.session.rewind(prompt, RewindWhat::Both).unwrap();
    same(&it.tree(), &old, "rewind");
}
