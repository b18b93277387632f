//! Files that a command opens or changes though no word names them: what lies in a folder that it is given, or anything at
//! all. Where rules about files forbid or ask, a command passes only if it is known to stay with what it names.

mod brought;

use std::path::{Path, PathBuf};

use self::brought::{Which, git_files};
use super::super::commands::{self, Formats, covered};
use super::super::decide::{Query, because};
use super::super::dynamic;
use super::super::files::{Files, Step, Walk, walk};
use super::super::paths::{self, Cwd};
use super::super::rule::{Entry, Strictness};
use super::super::shell::Word;
use super::super::vocabulary::Matches;
use super::super::{Behavior, Mode, wrapper};
use super::git;

/// Most names in a folder among which one is looked for that a rule speaks about.
const MAX_LOOKED: usize = 5_000;

/// Programs that change what they are given, and of a folder what is in it only by the options below.
const PLAIN: &str = "cp mkdir touch tee ln chmod chown chgrp install truncate shred unlink rmdir dd sed perl split gzip gunzip \
    bzip2 xz zstd sort curl wget patch zip";
/// Those that take a folder with all that is in it.
const WHOLE: &str = "rm mv rsync tar unzip scp";

/// Programs that change nothing in a folder but by the subcommands below, since they are about other things.
const ELSEWHERE: &str = "gh glab kubectl helm docker podman docker-compose systemctl journalctl service apt apt-get brew ssh aws \
    gcloud az terraform psql mysql redis-cli tmux pip pip3 uv poetry kill pkill sudo crontab at ssh-add gpg ip";
/// Subcommands that bring files, or take files along. Not those that build: what they do, files of the folder say.
const BRINGING: &str = "checkout clone download sync cp copy run create import export load save exec apply init kustomize \
    format fmt fix";

/// Subcommands of git's that leave the files of the work tree alone, whatever their options.
const KEEPING: &str = "add stage commit push fetch tag branch remote notes gc config log diff show status reflog describe \
    rev-parse ls-files ls-remote ls-tree cat-file blame grep shortlog bundle archive format-patch maintenance repack prune fsck \
    update-ref symbolic-ref for-each-ref show-ref rev-list merge-base merge-tree commit-tree hash-object write-tree mktree \
    pack-refs count-objects verify-commit verify-tag range-diff replace var help version init";

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// What a command may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What its words name, and no more of a folder than the folder itself.
    Named,
    /// And what is in a folder that they name.
    Below,
    /// Anything in the folder where it starts.
    Anything,
}

/// Looks at a command for what its words leave out.
pub(super) struct Unnamed<'a> {
    pub(super) query: &'a Query<'a>,
    pub(super) files: &'a dyn Files,
}

impl Unnamed<'_> {
    /// Why the command may open or change what a rule about files speaks about, though its words do not name it.
    pub(super) fn reaches_ruled(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        // Without a question for anything else, none is asked for what may be.
        if self.query.mode == Mode::Bypass {
            return None;
        }
        let ruled: Vec<(&Entry, Matches)> = self.about_files();
        if ruled.is_empty() {
            return None;
        }
        let (mut inner, mut told) = (words, true);
        while let Some(at) = wrapper::carried(inner).filter(|_| told) {
            let rest = inner.get(at..).filter(|rest| !rest.is_empty());
            (inner, told) = (rest.unwrap_or(inner), rest.is_some());
        }
        let base = |word: &Word| word.literal().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
        let name = base(inner.first()?)?;
        let named =
            dynamic::shows_files(&name) || commands::only_reads(&name) || super::super::evaluate::is_shells(&name);
        if told && named {
            return None;
        }
        let git = told && name == "git";
        let (changes, which) = match &*name {
            // Behind its options any word may be the program; that of another machine changes nothing here.
            _ if !told && name != "ssh" => {
                (Reach::Anything, if git::started(words, &[]).is_some() { Which::Any } else { Which::There })
            }
            _ if git => self.git_changes(inner, cwd),
            _ if let Some(reach) = self.receives(&name, inner, cwd) => (reach, Which::Any),
            _ => (self.changes(&name, inner, cwd), Which::There),
        };
        let below: Vec<PathBuf> = match changes {
            Reach::Named => return None,
            Reach::Below => self.folders(inner, cwd),
            Reach::Anything => cwd.0.clone().unwrap_or_else(|| vec![self.query.places.project.clone()]),
        };
        let found = below.iter().find_map(|folder| {
            let about = |(_, matches): &&(&Entry, Matches)| {
                // What git brings back or takes away, it has.
                *matches != Matches::Reading || !git && changes == Reach::Below
            };
            let mut ruled = ruled.iter().filter(about);
            // What comes in is written, whatever is there.
            let hold = |(entry, matches): &&(&Entry, Matches)| {
                let which = if *matches == Matches::Reading && which == Which::Any { Which::There } else { which };
                self.may_hold(folder, entry, *matches, which)
            };
            ruled.find(hold)
        });
        let (entry, matches) = found?;
        let does = if *matches == Matches::Reading { "open" } else { "change" };
        Some(format!(
            "{} may {does} files that no word names, and {} is about such files",
            words[0].source,
            because(entry)
        ))
    }

    /// The rules that forbid or ask for some files, and what they are about.
    fn about_files(&self) -> Vec<(&Entry, Matches)> {
        let mut all = Vec::new();
        for entry in self.query.rules.entries().iter().filter(|entry| entry.behavior != Behavior::Allow) {
            for matches in [Matches::Editing, Matches::Reading] {
                let governs = entry.rule.governs(self.query.vocabulary.tool(matches));
                if governs && !entry.rule.starts(self.query.places).is_empty() {
                    all.push((entry, matches));
                }
            }
        }
        all
    }

    fn changes(&self, name: &str, words: &[Word], cwd: &Cwd) -> Reach {
        let texts: Vec<String> = words.iter().skip(1).map(Word::known).collect();
        let has = |list: &str| texts.iter().any(|text| listed(list, text));
        let letters = |wanted: &[char]| {
            texts.iter().any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(wanted))
        };
        match commands::formats(words) {
            Formats::Looking => return Reach::Named,
            Formats::Writing if self.folders(words, cwd).is_empty() && !self.names_files(words, cwd) => {
                return Reach::Anything;
            }
            Formats::Writing => return Reach::Below,
            Formats::Nothing => {}
        }
        match name {
            // Who lets the code of the folder run lets it change what is there.
            _ if commands::runs_code(words) => Reach::Named,
            _ if listed(WHOLE, name) => Reach::Below,
            _ if listed(PLAIN, name) => {
                let recursive = letters(&['r', 'R', 'a'])
                    || texts.iter().any(|text| ["--recurs", "--archive"].iter().any(|option| text.starts_with(option)));
                if recursive { Reach::Below } else { Reach::Named }
            }
            _ if listed(ELSEWHERE, name) => {
                if has(BRINGING) {
                    Reach::Below
                } else {
                    Reach::Named
                }
            }
            _ if covered::describes(name) || commands::takes_data(name) || dynamic::is_inert(name) => Reach::Below,
            _ if dynamic::opens_nothing(words, name) => Reach::Named,
            _ if self.names_files(words, cwd) => Reach::Below,
            _ => Reach::Anything,
        }
    }

    /// What git changes, and which files of that.
    fn git_changes(&self, words: &[Word], cwd: &Cwd) -> (Reach, Which) {
        let (reach, which) = (self.git_reach(words, cwd), git_files(words));
        // What names no path may name a commit.
        let commit =
            || words.iter().any(|word| word.known() == "checkout") && !words.iter().any(|word| word.known() == "--");
        (reach, if reach == Reach::Anything && commit() { Which::Any } else { which })
    }

    fn git_reach(&self, words: &[Word], cwd: &Cwd) -> Reach {
        let texts: Vec<String> = words.iter().map(Word::known).collect();
        let option = |at: usize| texts[at].starts_with('-') || at > 1 && matches!(&*texts[at - 1], "-C" | "-c");
        let Some(at) = (1..texts.len()).find(|at| !option(*at)) else { return Reach::Named };
        let rest = &texts[at + 1..];
        let has = |list: &str| rest.iter().any(|text| listed(list, text));
        let alone = |list: &str| rest.first().is_some_and(|text| listed(list, text));
        let words_only =
            |list: &str| !rest.is_empty() && rest.iter().all(|text| text.starts_with('-') || listed(list, text));
        match &*texts[at] {
            sub if listed(KEEPING, sub) => Reach::Named,
            "reset"
                if !rest.iter().any(|text| {
                    text.len() > 2 && ["--hard", "--merge", "--keep"].iter().any(|mode| mode.starts_with(text.as_str()))
                }) =>
            {
                Reach::Named
            }
            "stash" if alone("list show drop clear create store") => Reach::Named,
            "worktree" if alone("list prune lock unlock") => Reach::Named,
            "submodule" if alone("status summary") => Reach::Named,
            "apply" if has("--cached --check --stat --numstat --summary") => Reach::Named,
            "checkout" | "switch" if matches!(rest, [new, _] if listed("-b -c", new)) => Reach::Named,
            "clone" => Reach::Named,
            "bisect" if words_only("log help") => Reach::Named,
            "rm" if has("--cached") => Reach::Named,
            // These are about the paths that they name.
            "restore" | "rm" | "mv" | "clean" | "checkout" if self.names_paths_alone(&words[at + 1..], cwd) => {
                Reach::Below
            }
            _ => Reach::Anything,
        }
    }

    /// Whether every operand is the path of something that is there, and nothing that git reads as a pattern.
    fn names_paths_alone(&self, words: &[Word], cwd: &Cwd) -> bool {
        let behind = words.iter().position(|word| word.known() == "--").map_or(0, |at| at + 1);
        let mut operands =
            words[behind..].iter().filter(|word| behind > 0 || !word.prefix().starts_with('-')).peekable();
        let plain = |word: &Word| word.literal().is_some_and(|text| !text.contains([':', '*', '?', '[', '\\']));
        let is_there = |word: &Word| self.paths(word, cwd).iter().any(|path| self.is_there(path));
        operands.peek().is_some() && operands.all(|word| plain(word) && is_there(word))
    }

    fn paths(&self, word: &Word, cwd: &Cwd) -> Vec<PathBuf> {
        paths::paths(word, cwd, self.query.places, self.files).unwrap_or_default()
    }

    fn is_there(&self, path: &Path) -> bool {
        self.files.is_file(path) || self.is_folder(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        !self.files.names(&self.files.resolve(path)).is_empty()
    }

    /// Whether a word names a file that is there.
    fn names_files(&self, words: &[Word], cwd: &Cwd) -> bool {
        words.iter().skip(1).any(|word| self.paths(word, cwd).iter().any(|path| self.is_there(path)))
    }

    /// The folders that the words name: as a whole, behind `=`, or before a `:` as in `-v .:/work`.
    fn folders(&self, words: &[Word], cwd: &Cwd) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for word in words.iter().skip(1) {
            let text = word.known();
            let values =
                text.split(['=', ':', ',']).filter(|part| *part != text && !part.is_empty()).map(commands::plain);
            for word in std::iter::once(word.clone()).chain(values) {
                all.extend(self.paths(&word, cwd).into_iter().filter(|path| self.is_folder(path)));
            }
        }
        all
    }

    /// Whether there may be something in the folder that the rule speaks about.
    fn may_hold(&self, folder: &Path, entry: &Entry, matches: Matches, which: Which) -> bool {
        let (places, files) = (self.query.places, self.files);
        let tool = self.query.vocabulary.tool(matches);
        let covers = |path: &Path| entry.rule.covers_path(tool, path, Strictness::Possible, places, files);
        let folder = files.resolve(folder);
        if which == Which::Kept {
            return files.tracked(&folder).is_none_or(|all| {
                files.spend(all.len() / 4);
                all.iter().any(|path| path.starts_with(&folder) && covers(path))
            });
        }
        let near = |start: &Path| {
            let start = files.resolve(start);
            start.starts_with(&folder) || folder.starts_with(&start)
        };
        let starts = entry.rule.starts(places);
        if !starts.iter().any(|(start, _)| near(start)) {
            return false;
        }
        if which == Which::Any {
            return true;
        }
        let walked = walk(vec![folder.clone()], MAX_LOOKED, files, |path, link| match !link && covers(path) {
            true => Step::Stop,
            false if path.ends_with(".git") => Step::Past,
            false => Step::Into,
        });
        walked != Walk::Done
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::super::files::Disk;
    use super::super::super::rule::{Rule, RuleSet, Source};
    use super::super::super::{Access, Places, decide};
    use crate::sandbox::Level;

    use super::*;

    /// A repository with files in `src`, `web`, `secrets` and a `.env`, which it keeps.
    fn project() -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap();
        let line = "git init -q && mkdir -p src/deep web secrets new && echo a > src/x && echo a > src/deep/z && \
            echo a > web/y && echo k > secrets/key && echo k > .env && echo a > new/untracked && git add src web secrets .env";
        assert!(Command::new("sh").args(["-c", line]).current_dir(&project).status().unwrap().success());
        (dir, Places { cwd: project.clone(), project, ..Places::default() })
    }

    fn check(places: &Places, deny: &str, mode: Mode, line: &str) -> Behavior {
        let access = Access::Shell { command: line.into(), cwd: places.cwd.clone() };
        let mut rules = RuleSet::default();
        let names = line.split(['|', ';']).map(|part| part.split_whitespace().next().unwrap());
        for name in names.chain([
            "git checkout",
            "git stash",
            "git clean",
            "git read-tree",
            "aws s3",
            "cargo fmt",
            "docker run",
            "find . -delete",
            "xargs git checkout",
        ]) {
            rules.add(Behavior::Allow, Rule::parse(&format!("Bash({name}:*)")).unwrap(), Source::Session);
        }
        rules.add(Behavior::Deny, Rule::parse(deny).unwrap(), Source::User);
        let (rules, vocabulary) = (&rules, crate::permission::vocabulary::TOOLS);
        let query = Query { tool: "Bash", access: &access, mode, rules, places, vocabulary, level: Level::Kernel };
        decide(&query, &Disk).behavior
    }

    #[test]
    fn what_no_word_names_is_forbidden_as_well() {
        use Behavior::{Allow, Ask, Deny};
        let (_dir, places) = project();
        let mut wrong = Vec::new();
        for (deny, line, want) in [
            ("Edit(/src/**)", "git checkout .", Ask),
            ("Edit(/src/**)", "git checkout main", Ask),
            ("Edit(/src/**)", "git checkout -- web", Allow),
            ("Edit(/src/**)", "git checkout web/y", Allow),
            ("Edit(/src/**)", "git checkout -- :/", Ask),
            ("Edit(/src/**)", "git checkout -- ':(top)sr?'", Ask),
            ("Edit(/src/**)", "git restore '*'", Ask),
            ("Edit(/src/**)", "git lfs pull", Ask),
            ("Edit(/src/**)", "echo . | xargs git checkout", Ask),
            ("Edit(/src/**)", "git checkout -b new", Allow),
            ("Edit(/src/**)", "git restore .", Ask),
            ("Edit(/src/**)", "git restore web/y", Allow),
            ("Edit(/src/**)", "git reset --hard", Ask),
            ("Edit(/src/**)", "git reset --har HEAD~1", Ask),
            ("Edit(/src/**)", "git reset HEAD~1", Allow),
            ("Edit(/src/**)", "git stash", Ask),
            ("Edit(/src/**)", "git stash pop", Ask),
            ("Edit(/src/**)", "git stash drop", Allow),
            ("Edit(/src/**)", "git apply p.diff", Ask),
            ("Edit(/src/**)", "git apply --check p.diff", Allow),
            ("Edit(/src/**)", "git pull", Ask),
            ("Edit(/src/**)", "git rebase main", Ask),
            ("Edit(/src/**)", "git rm -r .", Ask),
            ("Edit(/src/**)", "git clean -fd", Ask),
            ("Edit(/src/**)", "git commit -m x", Allow),
            ("Edit(/src/**)", "git push", Allow),
            // What git does not keep, it does not touch.
            ("Edit(/new/**)", "git checkout .", Allow),
            ("Edit(/other/**)", "git reset --hard", Allow),
            ("Edit(//etc/**)", "git reset --hard", Allow),
            // A commit, a patch or another machine may bring any name.
            ("Edit(/other/**)", "git reset --hard evil", Ask),
            ("Edit(/other/**)", "git checkout evil", Ask),
            ("Edit(/other/**)", "git checkout -b new evil", Ask),
            ("Edit(/other/**)", "git checkout evil -- .", Ask),
            ("Edit(/other/**)", "git checkout evil -- web", Allow),
            ("Edit(/web/other)", "git checkout evil -- web", Ask),
            ("Edit(/other/**)", "git restore --source=evil .", Ask),
            ("Edit(/other/**)", "git restore --so=evil .", Ask),
            ("Edit(/other/**)", "git restore -s evil .", Ask),
            ("Edit(/other/**)", "git restore .", Allow),
            ("Edit(/other/**)", "git merge evil", Ask),
            ("Edit(/other/**)", "git rebase evil", Ask),
            ("Edit(/other/**)", "git cherry-pick evil", Ask),
            ("Edit(/other/**)", "git revert evil", Ask),
            ("Edit(/other/**)", "git stash pop", Ask),
            ("Edit(/other/**)", "git stash", Allow),
            ("Edit(/new/**)", "git stash -u", Ask),
            ("Edit(/new/**)", "git clean -fd", Ask),
            ("Edit(/new/**)", "git clean -fd web", Allow),
            ("Edit(/other/**)", "git apply p.diff", Ask),
            ("Edit(/other/**)", "git am p.mbox", Ask),
            ("Edit(/other/**)", "git switch evil", Ask),
            ("Edit(/other/**)", "git switch -c new", Allow),
            ("Edit(/other/**)", "git read-tree -u HEAD", Ask),
            ("Edit(/other/**)", "git pull", Ask),
            ("Edit(/other/**)", "echo evil | xargs git checkout", Ask),
            ("Edit(/other/**)", "aws s3 sync s3://x .", Ask),
            ("Edit(/other/**)", "aws s3 cp s3://x/y web", Allow),
            ("Edit(/web/other)", "aws s3 cp s3://x/y web --recursive", Ask),
            ("Edit(/other/**)", "docker cp x:/a .", Ask),
            ("Edit(/other/**)", "gh run download", Ask),
            ("Edit(/other/**)", "gh pr checkout 1", Ask),
            ("Edit(/other/**)", "gh pr view 1", Allow),
            ("Edit(/other/**)", "rsync -a host:x .", Ask),
            ("Edit(/other/**)", "scp host:x .", Ask),
            ("Edit(/other/**)", "scp web/y host:", Allow),
            ("Edit(/other)", "curl -O https://h/other", Ask),
            ("Edit(/other)", "curl --remote-name-all https://h/x", Ask),
            ("Edit(/other)", "curl -s https://h/x", Allow),
            ("Edit(/other)", "curl -fsSL -X POST -d a=b https://h/x", Allow),
            ("Edit(/other)", "curl -sO https://h/x", Ask),
            ("Edit(/other)", "curl --remote-nam https://h/x", Ask),
            ("Edit(/other)", "curl -w '%output{other}x' https://h/x", Ask),
            ("Edit(/other)", "wget -O - --recur https://h/x", Ask),
            ("Edit(/web/other)", "wget -P web https://h/x", Ask),
            ("Edit(/other)", "wget https://h/x", Ask),
            ("Edit(/other)", "wget -qO- https://h/x", Allow),
            ("Edit(/src/**)", "prettier --write .", Ask),
            ("Edit(/src/**)", "prettier --write web", Allow),
            ("Edit(/src/**)", "prettier --write web/y", Allow),
            ("Edit(/src/**)", "black", Ask),
            ("Edit(/src/deep/**)", "black src", Ask),
            ("Edit(/src/**)", "cargo fmt", Ask),
            ("Edit(/src/**)", "npm run format", Ask),
            ("Edit(/src/**)", "eslint --fix .", Ask),
            ("Edit(/src/**)", "go fmt ./...", Ask),
            ("Edit(/src/**)", "black --check .", Allow),
            ("Edit(/src/**)", "cargo fmt --check", Allow),
            ("Edit(/src/**)", "prettier --check .", Allow),
            ("Edit(/src/**)", "eslint .", Allow),
            ("Edit(/src/**)", "npx eslint .", Allow),
            ("Edit(/src/**)", "gofmt -l .", Allow),
            ("Edit(/src/**)", "gofmt --w .", Ask),
            ("Edit(/src/**)", "foo", Ask),
            ("Edit(/src/**)", "foo web/y", Allow),
            ("Edit(/src/**)", "foo .", Ask),
            ("Edit(/src/deep/**)", "rm -r src", Ask),
            ("Edit(/src/deep/**)", "mv src old", Ask),
            ("Edit(/src/deep/**)", "cp web/y src", Allow),
            ("Edit(/src/deep/**)", "chmod -R a-w src", Ask),
            ("Edit(/src/**)", "find src -delete", Ask),
            ("Edit(/src/**)", "find . -delete", Ask),
            ("Edit(/src/deep/**)", "cp --archive new src", Ask),
            // Who lets code of the folder run lets it change what is there.
            ("Edit(/src/**)", "npm test", Allow),
            ("Edit(/src/**)", "make", Allow),
            ("Edit(/src/**)", "cargo test", Allow),
            ("Edit(/src/**)", "echo 'rm src/x' | sh", Deny),
            ("Edit(/src/**)", "echo 'git checkout .' | sh", Ask),
            ("Read(/secrets/**)", "docker run -v .:/x image", Ask),
            ("Read(/secrets/**)", "docker run -v $PWD:/x image", Ask),
            ("Read(/secrets/**)", "docker run --volume=.:/x image", Ask),
            ("Read(/secrets/**)", "docker run -v ./web:/x image", Allow),
            ("Read(/secrets/**)", "docker run image", Allow),
            ("Read(/secrets/**)", "kubectl cp . pod:/x", Ask),
            ("Read(/secrets/**)", "foo .", Ask),
            ("Read(/secrets/**)", "foo web", Allow),
            ("Read(/secrets/**)", "zip -@ x.zip", Ask),
            ("Read(/secrets/**)", "curl -K cfg http://h", Ask),
            // That git keeps a secret as well asks less than a rule.
            ("Read(/secrets/**)", "git diff", Ask),
            ("Read(/secrets/**)", "git archive HEAD", Ask),
        ] {
            let got = check(&places, deny, Mode::Default, line);
            if got != want {
                wrong.push(format!("{deny}: {line}: {got:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(check(&places, "Edit(/src/**)", Mode::Bypass, "git checkout ."), Allow);
        assert_eq!(check(&places, "Edit(/src/deep/**)", Mode::AcceptEdits, "rm -r src"), Ask);
    }
}
