//! What a git command shows of files by no name of theirs: out of a commit, the index, or git's objects.

use std::path::PathBuf;

use super::super::commands::{Named, Reads, Tracked};
use super::super::decide::{Query, Verdict};
use super::super::files::{Files, lexical};
use super::super::places::{holds_keys, may_be_kept};
use super::super::rule::{Entry, Specifier, Strictness};
use super::super::shell::Word;
use super::super::vocabulary::Matches;
use super::super::{Behavior, Mode};
use super::{Cwd, paths, starts, tops};

/// What is said of a git command that shows contents: rules about files, then secrets. The files that it names were asked
/// already.
pub(super) fn judge_tracked(query: &Query, reads: &Reads, cwd: &Cwd, files: &dyn Files) -> Option<Verdict> {
    let folders = starts(reads, cwd, query.places, files).0;
    let starts = folders.clone().unwrap_or_else(|| vec![query.places.project.clone()]);
    let within = limits(query, reads, cwd, files);
    if within.as_ref().is_some_and(Vec::is_empty) && reads.patterns.is_empty() {
        return None;
    }
    // What one rule allows, another one may still forbid.
    let known =
        within.as_ref().is_none_or(|limits| limits.iter().any(|limit| limit.shows)) || !reads.patterns.is_empty();
    let near = |entry: &Entry| {
        let starts = entry.rule.starts(query.places);
        let meets = |top: &PathBuf| {
            starts
                .iter()
                .map(|(start, _)| files.resolve(start))
                .any(|start| start.starts_with(top) || top.starts_with(&start))
        };
        let limits = within.iter().flatten().flat_map(|limit| &limit.tops);
        within.is_none() || !reads.patterns.is_empty() || limits.into_iter().any(meets)
    };
    if let Some(verdict) = rules_on_tracked(query, reads, &starts, near, files).filter(|_| known) {
        return Some(verdict);
    }
    let shown = |path: &&PathBuf| {
        let below = |limit: &Limit| limit.tops.iter().any(|top| path.starts_with(top));
        within.as_ref().is_none_or(|limits| limits.iter().any(below))
    };
    let secret = |path: &&PathBuf| shown(path) && holds_keys(path) && !may_be_kept(path);
    let mut untold = folders.is_none();
    let found = starts.iter().find_map(|start| {
        let Some(all) = files.tracked(start) else {
            untold = true;
            return None;
        };
        let spent = files.spend(all.len());
        all.iter().find(|path| !spent && secret(path)).cloned()
    });
    if query.mode == Mode::Bypass {
        return None;
    }
    match found {
        // Who allowed the program did not speak of secrets.
        Some(path) => {
            let reason = format!("git tracks {}, which may hold secrets, and may show it", path.display());
            Some(Verdict::firm(reason))
        }
        None if untold && within.is_none() => {
            Some(Verdict::new(Behavior::Ask, "it is unknown what git tracks there, and it may show any of it"))
        }
        None => None,
    }
}

/// What a command shows of one of the words that limit it.
struct Limit {
    /// What it shows lies below one of these.
    tops: Vec<PathBuf>,
    /// It may show more than the file that it names.
    shows: bool,
}

/// What limits the contents that are shown: no more than what lies below these, and files that were named. None where nothing
/// does.
fn limits(query: &Query, reads: &Reads, cwd: &Cwd, files: &dyn Files) -> Option<Vec<Limit>> {
    let (start, top) = (starts(reads, cwd, query.places, files), tops(reads, cwd, query.places, files));
    let is_there = |path: &PathBuf| files.is_file(path) || !files.names(path).is_empty();
    let (mut limits, mut paths_named, mut commits) = (Vec::new(), false, reads.named.is_empty());
    for named in &reads.named {
        let word = match named {
            Named::Path(word) | Named::At(word) | Named::Either(word) | Named::Revision(word) => word,
            Named::Commit => {
                commits = true;
                continue;
            }
            Named::Object => return None,
        };
        // Each name that fits a glob is a word of its own.
        let mut here = paths(word, &start, query.places, files)?;
        let text = word.has_glob().then(|| here.pop()).flatten().filter(|_| here.is_empty());
        here.extend(text);
        let there = !here.is_empty() && here.iter().all(is_there);
        match named {
            Named::Either(_) if !there && !is_branch(&start, word, files) => return None,
            Named::Either(_) if !there => {
                commits = true;
                continue;
            }
            Named::Revision(_) if !there => {
                commits = true;
                continue;
            }
            Named::At(_) => {}
            _ => paths_named = true,
        }
        let above = if word.has_glob() { None } else { paths(word, &top, query.places, files) };
        let all: Vec<PathBuf> = here.into_iter().chain(above.into_iter().flatten()).collect();
        let folder = |path: &PathBuf| !files.is_file(path) && !files.names(path).is_empty();
        let file = all.iter().any(|path| files.is_file(path));
        let shows = all.iter().any(folder) || !file;
        let tops: Vec<PathBuf> =
            all.iter().filter(|path| !files.is_file(path)).map(|path| files.resolve(&lexical(path))).collect();
        if !tops.is_empty() {
            limits.push(Limit { tops, shows });
        }
    }
    (paths_named || !commits).then_some(limits)
}

/// Whether git can take the word for nothing but a branch, and so for a commit, wherever it starts.
fn is_branch(start: &Cwd, word: &Word, files: &dyn Files) -> bool {
    let known = |folders: &[PathBuf], name: &str| folders.iter().all(|folder| files.is_branch(folder, name));
    start.0.as_deref().zip(word.literal()).is_some_and(|(folders, name)| known(folders, &name))
}

/// What rules about files say to it.
fn rules_on_tracked(
    query: &Query,
    reads: &Reads,
    starts: &[PathBuf],
    near: impl Fn(&Entry) -> bool,
    files: &dyn Files,
) -> Option<Verdict> {
    let tool = query.vocabulary.tool(Matches::Reading);
    let forbids = |entry: &&Entry| {
        entry.behavior != Behavior::Allow
            && entry.rule.is_about(Matches::Reading)
            && *entry.rule.specifier() != Specifier::Any
            && near(entry)
    };
    let mut rules = query.rules.entries().iter().filter(forbids).peekable();
    rules.peek()?;
    let tracked = match reads.tracked {
        Tracked::Index => starts.iter().map(|start| files.tracked(start)).collect::<Option<Vec<_>>>(),
        Tracked::No | Tracked::Ever => None,
    };
    let unknown = || Verdict::firm("it shows what git keeps of any file, and a Read rule may forbid some of it");
    let Some(tracked) = tracked.filter(|_| !starts.is_empty()).map(|all| all.concat()) else { return Some(unknown()) };
    let covered = |entry: &Entry| {
        let covers = |path: &PathBuf| entry.rule.covers_path(tool, path, Strictness::Possible, query.places, files);
        files.spend(2 * tracked.len()) || tracked.iter().any(covers)
    };
    rules.any(covered).then(unknown)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::super::files::Disk;
    use super::super::super::rule::{Rule, RuleSet, Source};
    use super::super::super::{Access, Places, decide};
    use crate::sandbox::Level;

    use super::*;

    /// A repository that keeps a `.env`, a `README.md` and a folder.
    fn project(secret: &str) -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        let line = format!(
            "git init -q && mkdir src conf && echo a > src/x && echo a > README.md && echo k > {secret} && git add . && \
             git -c user.name=a -c user.email=a@b commit -qm one && rm -rf conf && git branch packed/one && \
             git pack-refs --all && git branch dev && git branch both && git tag both HEAD:README.md && git tag blob HEAD:README.md"
        );
        let mut sh = Command::new("sh");
        sh.args(["-c", &line]).current_dir(&project).env("HOME", &project).env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(sh.status().unwrap().success());
        (dir, Places { cwd: project.clone(), project, ..Places::default() })
    }

    fn behavior(places: &Places, rules: &[(Behavior, &str)], mode: Mode, line: &str) -> Behavior {
        let access = Access::Shell { command: line.into(), cwd: places.cwd.clone() };
        let mut set = RuleSet::default();
        for (behavior, rule) in rules {
            set.add(*behavior, Rule::parse(rule).unwrap(), Source::Session);
        }
        let (rules, vocabulary) = (&set, crate::permission::vocabulary::TOOLS);
        let query = Query { tool: "Bash", access: &access, mode, rules, places, vocabulary, level: Level::Kernel };
        decide(&query, &Disk).behavior
    }

    /// Lines that show a file by no name of its own, or may do so.
    const SHOWING: &str = "git show HEAD:README.md 0123abc
        git show 0123abc HEAD:README.md
        git show 0123abc -- README.md
        git show --stat 0123abc
        git show -s 0123abc
        git show HEAD
        git show HEAD:README.md HEAD
        git show :/README.md
        git show HEAD^{/x:README.md}
        git show HEAD:conf
        git diff HEAD:README.md 0123abc
        git diff 0123abc README.md
        git diff 0123abc -- README.md
        git diff 0123abc..README.md
        git diff HEAD: HEAD~1:
        git diff HEAD~1 HEAD
        git diff -- :/
        git diff HEAD -- . ':!README.md'
        git diff HEAD -- ':!README.md'
        git diff HEAD -- '*.md' .
        git diff HEAD -- conf
        git cat-file -p 0123abc
        git cat-file blob 0123abc
        git cat-file -p README.md
        git cat-file -p HEAD:README.md 0123abc
        git cat-file --batch
        git cat-file --batch-all-objects --batch
        git cat-file --textconv HEAD:README.md
        git log -p
        git log -p README.md:x
        git log -p --author README.md
        git log -p --grep README.md
        git log -p --follow README.md
        git log -p HEAD:README.md HEAD
        git log -p -a
        git log -p -a -- README.md
        git log -p --text
        git log -p --binary
        git log --remerge-diff
        git log --patch-with-raw
        git log --patch-with-stat
        git log --dd
        git log --full-diff -p -- README.md
        git log --textconv -p
        git log -c
        git log --cc
        git log -m -p
        git log -G x --pickaxe-all -p
        git log -S x --pickaxe-all -p
        git log -U3
        git -c core.pager=cat log --stat
        git show -a
        git diff -a
        git diff --cached
        git diff-tree -p --binary HEAD
        git diff-tree -p HEAD
        git diff-index -p HEAD
        git diff-files -p
        git reflog -p
        git reflog show -p
        git stash list -p
        git stash show -p
        git grep . HEAD
        git grep -e . 0123abc
        git grep . 0123abc -- README.md
        git grep -a . HEAD
        git grep -l a
        git grep -L a
        git grep -c k=1
        git grep -q k=1
        git grep --count -e k=1
        git log -S k=1 --oneline
        git log -Gk=1 --stat
        git log -p -Sk -- conf
        git diff -S k=1 --stat HEAD~1
        git diff-tree -G k --name-only HEAD~1 HEAD
        git diff dev
        git diff blob -- README.md
        git diff both -- README.md
        git diff nowhere -- README.md
        git show blob -- README.md
        git show both README.md
        git grep --no-index .
        git grep .
        git difftool -x cat
        git notes add -C 0123abc
        git notes show
        git format-patch --stdout HEAD~1
        git archive HEAD
        git bundle create - HEAD
        git fast-export HEAD
        git range-diff HEAD~1 HEAD HEAD
        git annotate README.md
        git rev-list --objects --filter=sparse:oid=HEAD:README.md HEAD
        git bisect visualize
        git bisect view
        git apply p.diff
        git am p.mbox
        git whatchanged -p
        git worktree add ../w
        git clone . copy
        git checkout-index -a --prefix=x/
        git unpack-file 0123abc
        git merge-file -p README.md README.md README.md
        git merge-tree HEAD HEAD
        git show-branch
        git checkout -p
        git add -p
        git add --patch
        git commit -v
        git commit -p
        git stash -p
        git reset -p
        git restore -p
        git status -v
        git tag --format='%(raw)'
        git tag -l --format '%(raw)'
        git branch --format='%(raw)'
        git branch -a --sort=raw
        git for-each-ref --format='%(raw)'
        git for-each-ref --format='%(refname)%(raw:size)'
        git update-index --cacheinfo 100644,0123abc,x
        git read-tree HEAD
        git replace 0123abc 4567def
        git config --blob 0123abc --list
        git fsck --lost-found
        git rebase --show-current-patch
        git am --show-current-patch
        git rerere diff
        git foo
        git -c alias.x='show 0123abc' x
        git --git-dir=.git log --stat
        echo 0123abc | xargs git show
        echo 0123abc | xargs git log --oneline
        timeout 5 git show 0123abc
        env git cat-file -p 0123abc";

    /// Lines of every day that show nothing, or one file that is not a secret.
    const QUIET: &str = "git status
        git apply --stat p.diff
        git log --oneline
        git log --stat -3
        git log -p -- README.md
        git log -p README.md
        git log -p -3 main -- src
        git log -p --author x -- src/x
        git show HEAD:README.md
        git show HEAD~1:README.md HEAD:src/x
        git show :README.md
        git show HEAD -- README.md
        git show HEAD~2 src/x
        git show --stat HEAD
        git show --name-only HEAD^
        git diff README.md
        git diff HEAD README.md
        git diff HEAD~1..HEAD -- src
        git diff main...dev -- README.md
        git diff --stat
        git diff --name-only main..dev
        git diff HEAD -- README.md ':!src'
        git cat-file -p HEAD
        git cat-file -p HEAD:README.md
        git cat-file -t 0123abc
        git blame README.md
        git blame -L 1,3 HEAD -- README.md
        git grep -n a -- src
        git diff dev -- README.md
        git diff dev README.md
        git diff dev packed/one -- src
        git show dev -- README.md
        git ls-files
        git rev-parse HEAD
        git stash list
        git add README.md
        git add -A
        git commit -m x
        git commit -am '-v is new'
        git commit --amend --no-edit
        git -c user.name=x -c user.email=y commit -m x
        git push
        git push -u origin main
        git fetch --all --prune
        git pull --rebase
        git checkout main
        git checkout -b new
        git checkout -- README.md
        git switch -c new
        git restore README.md
        git reset --hard HEAD~1
        git merge --no-ff dev
        git rebase main
        git cherry-pick HEAD~1
        git revert --no-edit HEAD
        git stash
        git stash -u
        git stash push -m wip
        git stash pop
        git tag -a v1 -m one
        git tag --format='%(refname)' --sort=-creatordate
        git branch -D old
        git rm README.md
        git mv README.md b
        git clean -fd
        git clone https://example.com/x.git
        git remote add o https://example.com/x.git
        git bisect start
        git bisect good HEAD~3
        git submodule update --init
        git worktree list
        git describe --tags --dirty
        git diff-index --quiet HEAD --
        git update-index --refresh
        git reflog";

    #[test]
    fn what_is_not_known_to_show_nothing_may_show_a_tracked_secret() {
        use Behavior::{Allow, Ask, Deny};
        let (_dir, places) = project(".env conf/.env && echo k > conf/.env");
        let (_plain, other) = project("notes");
        let lines = |text: &'static str| text.lines().map(str::trim);
        let ruled = [(Allow, "Bash"), (Deny, "Read(/secrets/**)")];
        let mut wrong = Vec::new();
        let mut check = |places: &Places, rules: &[(Behavior, &str)], mode: Mode, line: &str, want: Behavior| {
            let got = behavior(places, rules, mode, line);
            if got != want {
                wrong.push(format!("{line}: {got:?} under {rules:?} in {mode}"));
            }
        };
        for line in lines(SHOWING) {
            check(&places, &ruled[..1], Mode::Default, line, Ask);
            // A folder that the rule is not about shows nothing of what it is about.
            if !line.contains(" conf") && !line.contains(":conf") {
                check(&other, &ruled, Mode::Bypass, line, Ask);
            }
        }
        for line in lines(QUIET) {
            check(&places, &ruled[..1], Mode::Default, line, Allow);
            // Any Read rule makes a search of everything ask.
            if !line.starts_with("git grep") {
                check(&other, &ruled, Mode::Bypass, line, Allow);
            }
        }
        // What is not there cannot be shown.
        for line in
            ["git show HEAD:README.md 0123abc", "git log -p -a", "git archive HEAD", "git diff 0123abc README.md"]
        {
            check(&other, &ruled[..1], Mode::Default, line, Allow);
        }
        for line in ["git show HEAD:README.md 0123abc", "git show --stat 0123abc", "git cat-file -p 0123abc"] {
            check(&places, &[], Mode::Default, line, Ask);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
