//! Repositories that name programs or places: nothing that cocode runs unasked starts the ones or shows the others.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use cocode::permission::{
    Access, Behavior, Decision, Disk, GitHooks, Mode, OwnGit, Places, QUIET_GIT, Query, RuleSet, Source, decide,
};
use cocode::protocol::{ListKind, Op};
use cocode::sandbox::{Level, Sandbox};
use cocode::stdx::git::Variables;

use super::support::harness::Harness;
use super::support::program::Program;

/// Longest run of git.
const LIMIT: Duration = Duration::from_secs(60);

/// A repository with one commit, a change and an attribute for every file, in `p`; a foreign one, with a secret, in `q`.
const BASE: &str = "git init -q p && cd p && echo one > a && mkdir d && echo two > d/b && git add . && git commit -qm one && \
    echo changed > a && echo '* filter=f diff=f merge=f' > .gitattributes && \
    (git init -q ../q && cd ../q && echo SECRET > s && git add . && git commit -qm SECRET)";
/// A second repository in `p/sub` that the first one has as a submodule, as `git submodule add` makes it.
const SUBMODULE: &str = "git init -q ../r && (cd ../r && echo r > r && git add . && git commit -qm r) && \
    git -c protocol.file.allow=always submodule --quiet add ../r sub && git commit -qm sub && touch sub/r";

/// Name, what makes it hostile. `$M` is a program that leaves a mark.
const HOSTILE: &[(&str, &str)] = &[
    ("clean filter", "git config filter.f.clean \"$M\""),
    ("filter process", "git config filter.f.process \"$M\""),
    ("smudge filter", "git config filter.f.smudge \"$M\"; git config filter.f.required true"),
    (
        "a filter of an odd name",
        "git config $'filter.f = x\\ny.clean' \"$M\"; echo '* filter=f' > .git/info/attributes; git config filter.f.clean \"$M\"",
    ),
    ("a filter on the header's line", "echo \"[filter \\\"f\\\"] clean = $M\" >> .git/config"),
    ("an escaped filter", "printf '[filter \"\\\\f\"]\\n\\tclean = %s\\n' \"$M\" >> .git/config"),
    (
        "a filter behind a continued line",
        "printf '[user]\\n\\tname = a \\\\\\n b\\n[filter \"f\"]\\nclean = %s\\n' \"$M\" >> .git/config",
    ),
    (
        "a filter in old spelling",
        "printf '[FILTER.F]\\nCLEAN = %s\\n' \"$M\" >> .git/config; echo '* filter=f' > .gitattributes",
    ),
    // Git passes by what is not a complete repository, and finds the hostile one above.
    (
        "nothing but a HEAD",
        "git config filter.f.clean \"$M\"; mkdir d/.git; echo 'ref: refs/heads/m' > d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD of nonsense",
        "git config filter.f.clean \"$M\"; git init -q d; echo nonsense > d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD that is a folder",
        "git config filter.f.clean \"$M\"; git init -q d; rm d/.git/HEAD; mkdir d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD that leads elsewhere",
        "git config filter.f.clean \"$M\"; git init -q d; ln -sf ../b d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD with an odd blank",
        "git config filter.f.clean \"$M\"; git init -q d; printf 'ref:\\302\\240refs/heads/m\\n' > d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD with many blanks",
        "git config filter.f.clean \"$M\"; git init -q d; printf 'ref:%300s\\n' refs/heads/m > d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "a HEAD that is a link to refs",
        "git config filter.f.clean \"$M\"; git init -q d; ln -sf refs d/.git/HEAD; echo $PWD/d > ../cwd",
    ),
    (
        "refs that are a file",
        "git config filter.f.clean \"$M\"; git init -q d; rm -r d/.git/refs; echo > d/.git/refs; echo $PWD/d > ../cwd",
    ),
    ("no objects", "git config filter.f.clean \"$M\"; git init -q d; rm -r d/.git/objects; echo $PWD/d > ../cwd"),
    (
        "a common folder that is not there",
        "git config filter.f.clean \"$M\"; git init -q d; echo gone > d/.git/commondir; echo $PWD/d > ../cwd",
    ),
    ("external diff", "git config diff.external \"$M\""),
    ("diff command", "git config diff.f.command \"$M\""),
    ("text conversion", "git config diff.f.textconv \"$M\""),
    ("merge driver", "git config merge.f.driver \"$M\""),
    ("file monitor", "git config core.fsmonitor \"$M\""),
    ("file monitor without a value", "printf '[core]\\nfsmonitor\\n' >> .git/config"),
    ("pager", "git config core.pager \"$M\"; git config pager.log \"$M\""),
    ("editor", "git config core.editor \"$M\""),
    ("signature program", "git config gpg.program \"$M\"; git config log.showSignature true"),
    ("signature in a format", "git config gpg.program \"$M\"; git config format.pretty '%GG %h'"),
    ("alias", "git config alias.whatchanged \"!$M\"; git config alias.st \"!$M\""),
    ("viewer of help", "git config man.viewer m; git config man.m.cmd \"$M\"; git config help.format man"),
    ("credential helper", "git config credential.helper \"!$M\""),
    (
        "ssh command",
        "git config core.sshCommand \"$M\"; git config remote.o.url ssh://h/x; git config remote.o.promisor true",
    ),
    (
        "lazy fetch",
        "git config remote.o.url ../q; git config remote.o.uploadpack \"$M\"; git config extensions.partialClone o; git config core.repositoryFormatVersion 1; rm -rf .git/objects/??",
    ),
    (
        "ext protocol",
        "git config remote.o.url \"ext::$M\"; git config protocol.ext.allow always; git config remote.o.promisor true; rm -rf .git/objects/??",
    ),
    ("include", "git config include.path ../../evil; printf '[diff]\\nexternal = %s\\n' \"$M\" > ../evil"),
    (
        "conditional include",
        "git config includeIf.gitdir:/.path ../../evil; printf '[diff]\\nexternal = %s\\n' \"$M\" > ../evil",
    ),
    (
        "configuration of the work tree",
        "git config extensions.worktreeConfig true; git config --worktree filter.f.clean \"$M\"",
    ),
    ("a configuration that is a pipe", "rm .git/config; mkfifo .git/config"),
    ("a configuration that is a link", "mv .git/config ../c; ln -s ../../c .git/config"),
    ("a configuration without an end", "head -c 400000 /dev/zero | tr '\\0' '#' >> .git/config"),
    ("work tree elsewhere", "git config core.worktree ../../q"),
    (".git that leads elsewhere", "rm -rf .git; echo 'gitdir: ../q/.git' > .git"),
    (".git that is a link", "rm -rf .git; ln -s ../q/.git .git"),
    ("commondir elsewhere", "echo ../../q/.git > .git/commondir; cp ../q/.git/HEAD .git/HEAD"),
    (
        "objects of another",
        "rm -rf .git/objects .git/refs; ln -s ../../q/.git/objects .git/objects; ln -s ../../q/.git/refs .git/refs",
    ),
    (
        "alternates",
        "echo ../../../q/.git/objects > .git/objects/info/alternates; cp ../q/.git/refs/heads/* .git/refs/heads/",
    ),
    (
        "a list of ignored files from elsewhere",
        "echo 'a SECRET' > ../ignored; git config core.excludesFile ../ignored; rm .git/info/exclude; ln -s ../../../ignored .git/info/exclude",
    ),
    ("addresses from elsewhere", "git config mailmap.file /etc/passwd"),
    (
        "an embedded bare repository",
        "rm -rf .git; git init -q --bare b; cp -r b/* .; printf '[core]\\nbare = false\\nworktree = .\\nfsmonitor = %s\\n' \"$M\" > config; git add a",
    ),
    (
        "a bare one by a common folder",
        "mkdir c; git init -q --bare c; mv .git g; echo 'ref: refs/heads/main' > HEAD; echo c > commondir; git --git-dir c config core.fsmonitor \"$M\"; mkdir objects; git --git-dir c config core.worktree ..; git --git-dir c config core.bare false; git --git-dir c --work-tree . add a",
    ),
    (
        "a submodule's configuration",
        "$SUBMODULE; git -C sub config core.fsmonitor \"$M\"; git -C sub config filter.f.clean \"$M\"; echo '* filter=f' > sub/.gitattributes",
    ),
    (
        "a submodule with its own .git",
        "$SUBMODULE; rm sub/.git; cp -r .git/modules/sub sub/.git; git config -f sub/.git/config --unset core.worktree; git -C sub config core.fsmonitor \"$M\"",
    ),
    (
        "a submodule nobody declared",
        "git init -q sub; (cd sub; echo r > r; git add r; git commit -qm r); git add sub 2> /dev/null; git -C sub config core.fsmonitor \"$M\"",
    ),
    (
        "a submodule in an index of version 4",
        "git init -q sub; (cd sub; echo r > r; git add r; git commit -qm r); git add sub 2> /dev/null; git update-index --index-version 4; git -C sub config core.fsmonitor \"$M\"",
    ),
    (
        "a submodule in a split index",
        "git init -q sub; (cd sub; echo r > r; git add r; git commit -qm r); git add sub 2> /dev/null; git update-index --split-index; git -C sub config core.fsmonitor \"$M\"",
    ),
    (
        "a submodule's submodule",
        "$SUBMODULE; (cd sub; git init -q in; cd in; echo r > r; git add r; git commit -qm r; cd ..; git add in 2> /dev/null; git -C in config core.fsmonitor \"$M\")",
    ),
];

/// What may be trusted to only read.
const ORDINARY: &[(&str, &str)] = &[
    ("as made", ":"),
    ("a clone", "git commit -qam two; cd ..; git clone -q p c; rm -rf p; mv c p"),
    ("a linked work tree", "git worktree add -q ../w; cd ../w; pwd > ../cwd"),
    ("with a submodule", "$SUBMODULE"),
    ("inside a submodule", "$SUBMODULE; cd sub; pwd > ../../cwd"),
    ("inside a folder", "cd d; pwd > ../../cwd"),
    ("with hooks elsewhere", "git config core.hooksPath .husky/_"),
    (
        "with names, tools and colors",
        "git config user.email a@b; git config commit.gpgSign true; git config color.ui auto; git config branch.main.gh-merge-base x; git config submodule.active .",
    ),
    ("with an index of version 4", "git update-index --index-version 4; git config core.untrackedCache true"),
    ("no repository", "rm -rf .git"),
];

/// What asks although nobody means harm: git would run what the configuration names.
const LFS: &str =
    "git config filter.lfs.clean 'git-lfs clean -- %f'; git config filter.lfs.process 'git-lfs filter-process'";

const LINES: &[&str] = &[
    "git status",
    "git status --short --branch",
    "git diff",
    "git diff --stat HEAD",
    "git diff --cached",
    "git log -p --all",
    "git log --oneline -3",
    "git show",
    "git show HEAD:a",
    "git cat-file -p HEAD",
    "git whatchanged -3",
    "git blame a",
    "git grep -n o",
    "git grep --cached one HEAD",
    "git branch -a -v",
    "git tag",
    "git stash list",
    "git reflog",
    "git describe --always --dirty",
    "git ls-files -m",
    "git ls-files --others --exclude-standard",
    "git ls-tree -r HEAD",
    "git shortlog -s HEAD",
    "git rev-parse --show-toplevel",
    "git rev-list --objects --all",
    "git for-each-ref --format='%(subject)'",
    "git submodule status",
    "git remote -v",
    "git check-ignore -v a",
    "git check-attr -a a",
    "git config --list",
    "git worktree list",
    "git status --help",
    "git -C . status",
    "git -C sub status",
    "cd sub && git diff",
    "(cd d; git status)",
    "git log | head -3",
    "git --no-pager log -1; git diff",
];

pub(super) struct Fixture {
    pub(super) folder: tempfile::TempDir,
    mark: PathBuf,
}

impl Fixture {
    pub(super) fn new(setup: &str) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("ran");
        let program = folder.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
        let mut executable = std::fs::metadata(&program).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut executable, 0o755);
        std::fs::set_permissions(&program, executable).unwrap();
        let user = "export GIT_CONFIG_GLOBAL=$PWD/.gitconfig; git config --global user.name a; git config --global user.email a@b; \
            git config --global init.defaultBranch main";
        // The start is the same for all.
        static START: OnceLock<tempfile::TempDir> = OnceLock::new();
        let start = START.get_or_init(|| {
            let start = tempfile::tempdir().unwrap();
            Fixture::bash(start.path(), start.path(), &format!("{user}; {BASE}"), false);
            start
        });
        let (start, setup) = (start.path().display(), setup.replace("$SUBMODULE", SUBMODULE));
        let line = format!("cp -a {start}/. .; cd p; M={}; {setup}", program.display());
        Fixture::bash(folder.path(), folder.path(), &line, false);
        let _ = std::fs::remove_file(&mark);
        Fixture { folder, mark }
    }

    fn command(home: &Path, cwd: &Path, line: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["5", "bash", "--norc", "--noprofile", "-c", line]).current_dir(cwd).env("HOME", home);
        command.env("GIT_CONFIG_GLOBAL", home.join(".gitconfig")).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// Git as cocode itself asks it in the repository.
    fn own_git(&self, sandbox: &Sandbox) -> OwnGit {
        let home = self.folder.path().to_owned();
        let variables = Variables { config_home: None, global: Some(home.join(".gitconfig")) };
        OwnGit { folder: self.cwd(), home: Some(home), variables, secrets: Vec::new(), sandbox: sandbox.clone() }
    }

    pub(super) fn bash(home: &Path, cwd: &Path, line: &str, quiet: bool) -> String {
        let mut command = Fixture::command(home, cwd, line);
        command.envs(QUIET_GIT.iter().copied().filter(|_| quiet)).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    pub(super) fn cwd(&self) -> PathBuf {
        match std::fs::read_to_string(self.folder.path().join("cwd")) {
            Ok(path) => path.trim_end().into(),
            Err(_) => self.folder.path().join("p").canonicalize().unwrap(),
        }
    }

    fn decide(&self, line: &str, mode: Mode) -> Behavior {
        self.ruled(line, mode, &[]).behavior
    }

    /// The decision with these allow rules of the user's.
    fn ruled(&self, line: &str, mode: Mode, allowed: &[&str]) -> Decision {
        self.ruled_by(Source::User, line, mode, allowed)
    }

    pub(super) fn ruled_by(&self, source: Source, line: &str, mode: Mode, allowed: &[&str]) -> Decision {
        self.trusting(&GitHooks::default(), source, line, mode, allowed)
    }

    /// The same where the user agreed to hooks of git.
    pub(super) fn trusting(
        &self,
        hooks: &GitHooks,
        source: Source,
        line: &str,
        mode: Mode,
        allowed: &[&str],
    ) -> Decision {
        let cwd = self.cwd();
        let git_hooks = hooks.clone();
        let home = Some(self.folder.path().to_owned());
        let places = Places { project: cwd.clone(), cwd: cwd.clone(), home, git_hooks, ..Places::default() };
        let access = Access::Shell { command: line.into(), cwd };
        let mut rules = RuleSet::default();
        for rule in allowed {
            rules.add(Behavior::Allow, cocode::tools::RULES.rule(rule).unwrap(), source);
        }
        let query = Query {
            tool: "Bash",
            access: &access,
            mode,
            rules: &rules,
            places: &places,
            vocabulary: cocode::tools::RULES,
            level: cocode::sandbox::Level::Kernel,
        };
        decide(&query, &Disk)
    }

    /// Starts in a copy of the repository and asks for changes; whether that left a mark or told a secret.
    async fn starts(&self) -> bool {
        let harness = Harness::new().script("- reply: [text: Hello.]");
        let (from, project) = (self.folder.path().display(), harness.project().display().to_string());
        let copy = format!("cp -a {from}/. {project}/.. && cp -a {from}/p/. {project}");
        Fixture::bash(self.folder.path(), self.folder.path(), &copy, false);
        let ran = harness.prompt("go").at("mode", Op::List { what: ListKind::Changes }).prompt("/diff").run().await;
        let said = ran.trace() + &std::fs::read_to_string(ran.log()).unwrap();
        // To the model, to the screen, and as text.
        let refusals = said.matches("not started").count();
        assert!(refusals >= 2, "{refusals}: {said}");
        self.mark.exists() || said.contains("SECRET")
    }

    /// Runs the line; whether it ran a program or told a secret.
    pub(super) fn marks(&self, line: &str, quiet: bool) -> bool {
        // What looks changed is looked at again.
        Fixture::bash(self.folder.path(), &self.cwd(), "touch a; [ -e sub/r ] && touch sub/r", false);
        let _ = std::fs::remove_file(&self.mark);
        let said = Fixture::bash(self.folder.path(), &self.cwd(), line, quiet);
        self.mark.exists() || said.contains("SECRET")
    }
}

/// The user's settings count wherever they are: confined, git would fail where it may not read them.
#[tokio::test]
async fn git_reads_the_users_own_settings() {
    let sandbox = Sandbox::new(Some(Program::binary().into()));
    let level = sandbox.probe().await;
    for (place, name) in [
        ("GIT_CONFIG_GLOBAL", "elsewhere"),
        ("XDG_CONFIG_HOME", "xdg/git/config"),
        ("HOME", ".config/git/config"),
        ("HOME", ".gitconfig"),
    ] {
        let fixture = Fixture::new("echo three > new");
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(home.path().join("included"), "[status]\nshowUntrackedFiles = no\n").unwrap();
        let include = format!("[include]\npath = {}\n", home.path().join("included").display());
        std::fs::write(&file, include).unwrap();
        let variables = Variables {
            config_home: (place == "XDG_CONFIG_HOME").then(|| home.path().join("xdg")),
            global: (place == "GIT_CONFIG_GLOBAL").then_some(file),
        };
        let git = OwnGit { home: Some(home.path().to_owned()), variables, ..fixture.own_git(&sandbox) };
        let status = git.ask(&["status", "--short"], LIMIT, 1 << 20).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&status.stdout).into_owned() + &String::from_utf8_lossy(&status.stderr);
        assert_eq!((status.code, said.as_str()), (Some(0), " M a\n"), "{place} {name} {level:?}");
    }
}

/// Lines are judged, and those that need no question are run; then cocode starts in the folder, which asks git for its status,
/// and `/diff` asks for what is not committed.
#[tokio::test]
async fn a_hostile_repository_runs_nothing_unasked() {
    let (mut marks, mut unasked, mut harmless) = (Vec::new(), Vec::new(), Vec::new());
    let sandbox = Sandbox::new(Some(Program::binary().into()));
    for (at, (name, setup)) in HOSTILE.iter().enumerate() {
        let fixture = Fixture::new(setup);
        for line in LINES {
            for mode in [Mode::Default, Mode::Plan] {
                if fixture.decide(line, mode) == Behavior::Allow {
                    unasked.push(format!("{name}: {line}"));
                    marks.extend(fixture.marks(line, true).then(|| format!("{name}: {line}")));
                }
            }
        }
        assert_eq!(fixture.decide("git status", Mode::Plan), Behavior::Ask, "{name}");

        // Both go through the one way to start git; some show that they do.
        let git = fixture.own_git(&sandbox);
        assert!(git.ask(&["status"], LIMIT, 1 << 20).await.is_err(), "{name}");
        if at % 9 == 0 {
            marks.extend(fixture.starts().await.then(|| format!("{name}: start")));
        }

        // Without the gate most of them bite; otherwise this would be no test of anything.
        let lines =
            "git status; git diff; git log --all -p -3; git show; git check-ignore -v a; git st; git whatchanged";
        if !name.contains("pipe") && !fixture.marks(lines, false) {
            harmless.push(*name);
        }
        // What it is held to holds without the gate, too.
        if sandbox.probe().await > Level::None {
            let _ = std::fs::remove_file(&fixture.mark);
            let mut command =
                tokio::process::Command::from(Fixture::command(fixture.folder.path(), &git.folder, lines));
            command.env_remove("GIT_OPTIONAL_LOCKS");
            sandbox.run_captured(command, &git.policy(), b"", LIMIT, 1 << 20).await.unwrap();
            marks.extend(fixture.mark.exists().then(|| format!("{name}: confined")));
        }
    }
    assert!(HOSTILE.len() > 40);
    assert_eq!((marks, unasked), (Vec::new(), Vec::<String>::new()));
    assert!(2 * harmless.len() < HOSTILE.len(), "{harmless:?}");
}

/// What the first half of a line brings, the second half would obey: each asks though a rule allows both, and leaves a mark
/// where it is run.
#[test]
fn what_a_line_brings_is_not_obeyed() {
    let nested =
        "git init -q n; (cd n; echo r > r; git add r; git commit -qm r; git config core.fsmonitor \"$M\"; touch r)";
    let bare = "mkdir -p x/objects x/refs; touch x/objects/.k x/refs/.k; echo 'ref: refs/heads/m' > x/HEAD; \
        printf '[core]\\nrepositoryformatversion = 0\\nworktree = ..\\nfsmonitor = %s\\n' \"$M\" > x/config; \
        git checkout -q .; git checkout -qb evil; git add x; git commit -qm x; git checkout -q main";
    let rules = [
        "Bash(git:*)",
        "Bash(git config:*)",
        "Bash(git add:*)",
        "Bash(git checkout:*)",
        "Bash(git status:*)",
        "Bash(git diff:*)",
    ];
    for (setup, line, want) in [
        (nested, "git add . && git status", Behavior::Ask),
        (nested, "git add -A; git diff HEAD", Behavior::Ask),
        (nested, "git status; git add d", Behavior::Allow),
        (bare, "git checkout -q evil && cd x && git status", Behavior::Ask),
        (bare, "git checkout -q evil; git -C x status", Behavior::Ask),
        (bare, "git checkout -q evil && git status", Behavior::Allow),
        ("git checkout -q .", "git config core.fsmonitor ../program && git status", Behavior::Ask),
        ("git checkout -q .", "git add . && git status", Behavior::Allow),
        ("git checkout -q .", "cd d && git add . && git status", Behavior::Allow),
    ] {
        let fixture = Fixture::new(&format!("rm .gitattributes; {setup}"));
        assert_eq!(fixture.ruled(line, Mode::Default, &rules).behavior, want, "{line}");
        assert_eq!(fixture.marks(line, false), want == Behavior::Ask, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_secret_by_another_name_asks() {
    let fixture =
        Fixture::new("echo KEY > .env; ln .env hard; ln a soft; mkdir -p s; echo KEY > s/.env; echo '!.env' > .ignore");
    for (line, want) in [
        ("cat hard", Behavior::Ask),
        ("wc -l hard", Behavior::Ask),
        ("cat soft", Behavior::Allow),
        // The ignore file above the folder shows again what a search passes over, and the kernel keeps it closed; not by
        // another name.
        ("rg KEY s", Behavior::Allow),
        ("grep -r KEY .", Behavior::Ask),
        ("rg KEY d", Behavior::Allow),
    ] {
        assert_eq!(fixture.decide(line, Mode::Default), want, "{line}");
    }
}

#[test]
fn a_rule_about_git_does_not_open_the_gate() {
    let rules = ["Bash(git status:*)", "Bash(git diff:*)", "Bash(git log:*)", "Bash(timeout 5 git status)"];
    let rules = [&rules[..], &["Bash(/usr/bin/git status:*)"]].concat();
    for (name, setup) in HOSTILE.iter().filter(|(name, _)| !name.contains("pipe")) {
        let fixture = Fixture::new(setup);
        for line in [
            "git status",
            "git status -v",
            "git diff --ext-diff",
            "git log -p",
            "timeout 5 git status",
            "/usr/bin/git status",
        ] {
            for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
                let decision = fixture.ruled(line, mode, &rules);
                assert_ne!(decision.behavior, Behavior::Allow, "{name}: {line} in {mode}");
                assert!(!decision.quiet_git, "{name}: {line} in {mode}");
            }
        }
    }
}

const CHANGES: [&str; 8] = [
    "git add a",
    "git -C . add a",
    "timeout 5 git add a",
    "git commit -m x",
    "git archive --format=foo HEAD",
    "git fetch",
    "git stash",
    "git checkout main",
];
const CHANGING: [&str; 7] = [
    "Bash(git add:*)",
    "Bash(git -C . add:*)",
    "Bash(git commit -m:*)",
    "Bash(git archive:*)",
    "Bash(git fetch:*)",
    "Bash(git stash)",
    "Bash(git checkout:*)",
];

/// What a rule for every folder lets git change, in a repository that names programs and in one that names none.
#[test]
fn a_rule_that_changes_things_asks_where_the_repository_names_programs() {
    let bites = [
        ("archiver", "git config tar.foo.command \"$M\""),
        ("filter", "git config filter.f.clean \"$M\""),
        ("filter that is almost git-lfs", "git config filter.lfs.clean 'git-lfs clean -- %f; ../program'"),
        ("transfer of git-lfs", "git config lfs.customtransfer.x.path \"$M\""),
    ];
    for (name, setup) in HOSTILE.iter().chain(&bites).filter(|(name, _)| !name.contains("pipe")) {
        let fixture = Fixture::new(setup);
        for line in CHANGES {
            for source in [Source::User, Source::CommandLine, Source::Skill] {
                let decision = fixture.ruled_by(source, line, Mode::Default, &CHANGING);
                assert_eq!(decision.behavior, Behavior::Ask, "{name}: {line} by {source}");
            }
        }
    }
    let fixture = Fixture::new("git config core.fsmonitor \"$M\"");
    let decision = fixture.ruled("git add a", Mode::Default, &CHANGING);
    assert!(decision.reasons[0].contains("sets \"core.fsmonitor\""), "{decision:?}");
    assert!(!decision.suggestions.is_empty(), "{decision:?}");
    assert!(fixture.marks("git add a", false));
    // What was allowed in this session, or for this project, was allowed here.
    for source in [Source::Session, Source::ProjectLocal, Source::Project] {
        let decision = fixture.ruled_by(source, "git add a", Mode::Default, &CHANGING);
        assert_eq!(decision.behavior, Behavior::Allow, "{source}");
    }

    let more = [
        ("git-lfs", LFS),
        (
            "a clone in parts",
            "git config remote.o.url https://h/x; git config remote.o.promisor true; git config remote.o.partialclonefilter blob:none",
        ),
        (
            "a machine that builds",
            "git config http.https://h/.extraheader 'AUTHORIZATION: basic x'; git config gc.auto 0",
        ),
        (
            "what gh leaves",
            "git remote add o git@h:x/y; git config remote.o.gh-resolved base; git config branch.main.remote o",
        ),
    ];
    for (name, setup) in ORDINARY.iter().chain(&more) {
        let fixture = Fixture::new(setup);
        for line in CHANGES {
            let decision = fixture.ruled(line, Mode::Default, &CHANGING);
            assert_eq!(decision.behavior, Behavior::Allow, "{name}: {line}: {decision:?}");
        }
    }
}

/// What is decided in a repository that names nothing, and whether git is kept from running its hooks.
#[test]
fn git_that_passes_as_reading_runs_no_hooks() {
    use Behavior::{Allow, Ask};
    let fixture = Fixture::new("printf '#!/bin/sh\\ntouch '$M.ran > .git/hooks/post-index-change; touch a");
    let rules =
        ["Bash(cargo test:*)", "Bash(git commit:*)", "Bash(git log:*)", "Bash(timeout 5 git log)", "Bash(echo:*)"];
    for (mode, line, want) in [
        (Mode::Default, "gi\"\"t status", (Allow, true)),
        (Mode::Plan, "g\\it status", (Allow, true)),
        (Mode::Plan, "'g'it status", (Allow, true)),
        (Mode::AcceptEdits, "git status > out", (Allow, true)),
        (Mode::AcceptEdits, "git diff > out", (Allow, true)),
        (Mode::AcceptEdits, "mkdir x; git diff", (Ask, true)),
        (Mode::Default, "git status > out", (Ask, true)),
        (Mode::Default, "cargo test; git status", (Allow, true)),
        (Mode::Default, "timeout 5 git log", (Allow, true)),
        // A person is asked about a command that may need what git would run.
        (Mode::Default, "git status; ./release.sh", (Ask, false)),
        (Mode::Bypass, "git status; ./release.sh", (Allow, false)),
        (Mode::Bypass, "git status", (Allow, true)),
        // The hooks are the commit's, and then also of what is beside it.
        (Mode::Default, "git commit -m x", (Allow, false)),
        (Mode::Default, "git status && git commit -m x", (Ask, false)),
        (Mode::Default, "git commit -m x && git log", (Allow, false)),
        (Mode::Default, "ls; cargo test", (Allow, false)),
        (Mode::Default, "echo git status", (Allow, false)),
    ] {
        let decision = fixture.ruled(line, mode, &rules);
        assert_eq!((decision.behavior, decision.quiet_git), want, "{line} in {mode}: {decision:?}");
    }
}

/// The same where the line really runs; the hook does its work when nothing keeps git from it.
#[tokio::test]
async fn a_line_that_is_spelled_oddly_runs_no_hook() {
    let script = "- reply: [tool: {name: Bash, input: {command: 'gi\"\"t status > out'}}]\n- reply: [text: Done.]";
    let harness = Harness::new().mode(Mode::AcceptEdits).script(script);
    let project = harness.project();
    let setup = "git init -q . && echo one > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && \
        printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-index-change && chmod +x .git/hooks/post-index-change && \
        touch -d '1 hour ago' a";
    Fixture::bash(&project, &project, setup, false);
    let ran = harness.prompt("go").run().await;
    let out = std::fs::read_to_string(project.join("out")).unwrap_or_default();
    assert!(out.contains("On branch"), "{out}{}", ran.trace());
    assert!(!project.join("ran").exists(), "{}", ran.trace());
    Fixture::bash(&project, &project, "git status", false);
    assert!(project.join("ran").exists());
}

/// Programs of the project that `PATH` finds by the names of known ones: neither the start nor a line that passes runs them.
#[test]
fn the_projects_own_git_is_never_started_unasked() {
    const LINES: [&str; 4] = ["git status", "ls", "tar tzf a.tar.gz", "cat a"];
    let calls = LINES.map(|line| format!("- reply: [tool: {{name: Bash, input: {{command: '{line}'}}}}]\n"));
    for folder in ["bin", "."] {
        let program = Program::new();
        let (project, mark) = (program.project(), program.home().join("mark"));
        std::fs::create_dir_all(project.join("bin")).unwrap();
        std::fs::create_dir_all(program.home()).unwrap();
        let setup = "git init -q . && echo one > a && tar czf a.tar.gz a";
        Fixture::bash(&program.home(), &project, setup, false);
        for name in ["git", "ls", "cat", "gzip", "bash", "sh"] {
            let path = project.join(folder).join(name);
            std::fs::write(&path, format!("#!/bin/bash\necho {name} >> '{}'\n", mark.display())).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let own = if folder == "." { ".".into() } else { project.join(folder).display().to_string() };
        let program = program.env("PATH", &format!("{own}:/usr/local/bin:/usr/bin:/bin"));
        let script = program.script("script.yaml", &format!("{}- reply: [text: Done.]\n", calls.join("")));
        let ran = program.run(&["-p", "go", "--offline-script", &script, "--output-format", "stream-json"]);
        let refused = ran.out.matches("\"text\":\"Nobody can be asked").count();
        // Relative folders are left out, so that nothing needs to be asked.
        let want = if folder == "." { (Some(0), 0) } else { (Some(3), 3) };
        assert_eq!((ran.code, refused), want, "{folder}: {}{}", ran.out, ran.err);
        assert_eq!(std::fs::read_to_string(&mark).unwrap_or_default(), "", "{folder}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn an_ordinary_repository_is_read_without_a_question() {
    for (name, setup) in ORDINARY {
        let fixture = Fixture::new(setup);
        for line in ["git status", "git diff", "git log -p -3", "git -C . branch -a", "git --no-pager show"] {
            for mode in [Mode::Default, Mode::Plan] {
                assert_eq!(fixture.decide(line, mode), Behavior::Allow, "{name}: {line} in {:?}", fixture.cwd());
            }
        }
    }
    assert_eq!(Fixture::new(LFS).decide("git status", Mode::Default), Behavior::Ask);
}

/// What git does not know yet and does not ignore is not taken along where it may be a secret.
#[test]
fn git_takes_no_secret_along() {
    for (setup, line, want) in [
        ("true", "git add -A", Behavior::Allow),
        ("touch .env", "git add -A", Behavior::Ask),
        ("touch .env", "git add .", Behavior::Ask),
        ("touch .env", "git add '*'", Behavior::Ask),
        ("touch .env", "git stash -u", Behavior::Ask),
        ("touch .env", "git add d", Behavior::Allow),
        ("touch .env", "git add -u", Behavior::Allow),
        ("touch .env", "git stash", Behavior::Allow),
        ("touch d/prod.env", "cd d && git add -A", Behavior::Ask),
        ("touch .env; echo .env > .gitignore", "git add -A", Behavior::Allow),
        ("touch .env; echo .env > .gitignore", "git stash -u", Behavior::Allow),
        ("touch .env; echo .env > .gitignore", "git stash --all", Behavior::Ask),
        ("touch d/.env; echo '*.env' > .gitignore", "git add .", Behavior::Allow),
        ("touch d/.env; echo '*.env' > .gitignore; echo '!.env' > d/.gitignore", "git add .", Behavior::Ask),
        ("touch .env; echo .env > .git/info/exclude", "git add -A", Behavior::Allow),
        ("touch .env; git add .env", "git add -A", Behavior::Allow),
        ("touch .env", "git add --no-ignore-removal", Behavior::Ask),
        ("touch .env", "git stash -u -m wip", Behavior::Ask),
        ("touch .env", "git stash -um wip", Behavior::Ask),
        ("touch .env", "git stash --include-untracked --message wip", Behavior::Ask),
        ("touch .env", "git stash list", Behavior::Allow),
        ("touch .env", "git add -A ':!.env'", Behavior::Allow),
        ("touch d/prod.env", "git add . ':(exclude)*.env'", Behavior::Allow),
        ("touch d/prod.env", "git add . ':!*.key'", Behavior::Ask),
        ("touch d/prod.env", "cd d && git add . ':!prod.env'", Behavior::Allow),
        ("touch d/prod.env", "git add . ':!prod.env'", Behavior::Ask),
    ] {
        let fixture = Fixture::new(setup);
        let rules = ["Bash(git add:*)", "Bash(git stash:*)"];
        let decision = fixture.ruled(line, Mode::Default, &rules);
        assert_eq!(decision.behavior, want, "{setup}: {line}: {decision:?}");
    }
}

/// A secret that was committed once, and one that was stashed: what git shows of them unasked is that they differ.
#[tokio::test]
async fn secrets_of_the_history_are_withheld() {
    let lines =
        ["git log -p", "git diff HEAD~2 HEAD~1", "git grep -n KEY HEAD~2", "git show 'stash^3'", "git whatchanged -p"];
    let reply = |line: &str| format!("- reply: [tool: {{name: Bash, input: {{command: \"{line}\"}}}}]\n");
    let script: String = lines.iter().map(|line| reply(line)).collect::<String>() + "- reply: [text: Done.]\n";
    let harness = Harness::new().script(&script);
    let setup = "git init -q && echo KEY=5ecret1 > .env && echo KEY=plain > a && git add . && git commit -qm one && \
        git rm -q .env && echo b > b && git add b && git commit -qm two && echo c > c && git add c && git commit -qm three && \
        echo KEY=5ecret2 > .env.local && git stash -qu";
    let mut bash = Command::new("bash");
    bash.args(["-c", setup]).current_dir(harness.project());
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        bash.env(name, "x");
    }
    assert!(bash.output().unwrap().status.success());
    let run = harness.prompt("go").run().await;
    let told = std::fs::read_to_string(run.log()).unwrap();
    assert!(!told.contains("5ecret"), "{told}");
    for shown in
        ["KEY=plain", "Binary files a/.env and /dev/null differ", "Binary files /dev/null and b/.env.local differ"]
    {
        assert!(told.contains(shown), "{shown}: {told}");
    }
}
