//! What the tables say of git is tried: every option that they list and every option that git tells, with values that would
//! write or run something, for each subcommand that may only read. Each line that is let pass is run as a line that only
//! reads is, in a repository beside settings of a user that name programs; whatever is written or started leaves a
//! mark, and a file with secrets that git does not track tells when it was opened.
//!
//! Each subcommand has its share of lines; `COCODE_OPTION_FUZZ=all cargo test --test it option_fuzz_git` tries all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cocode::permission::{Behavior, Listed, Places, QUIET_GIT, listed_git_options};

use super::option_fuzz::{Watch, judged};
use super::plan_enforced::{git, snapshot};

/// Lines of a subcommand that are tried where not all are asked for.
const SHARE: usize = 20;

/// Values that would run a program, write a file, or lead somewhere else.
const BAITS: &[&str] = &["mark", "./mark", "new.txt", "../home", "%G?", "one", "sub"];

/// Options of git that write, run, or read more than they say, wherever they are known.
#[rustfmt::skip]
const ACTING: &[&str] = &[
    "--output=new.txt", "--outpu=new.txt", "--output new.txt", "--ext-diff", "--textconv", "-Omark", "-O mark",
    "--open-files-in-pager=./mark", "--open-files-in-pager", "--open=./mark", "--upload-pack=./mark", "--exec=./mark",
    "--contents new.txt", "--show-signature", "--format=%G?", "--pretty=%GG", "--format='%(signature)'", "-o new.txt",
    "--output-directory=sub", "--edit", "-e", "-d", "-D", "-f", "-m", "--unset", "--add", "--delete", "--create-reflog",
    "--set-upstream-to=HEAD", "--replace-all", "-w", "--filters", "--stdin", "--file=new.txt", "--verify", "-i", "-p",
];

/// What comes before a subcommand.
const BEFORE: &[&str] = &[
    "-c core.pager=./mark -p",
    "-c diff.external=./mark",
    "--config-env=diff.external=EXTERNAL",
    "--paginate",
    "--exec-path=.",
    "--git-dir=.git",
    "--no-pager",
    "-C sub",
];

/// Programs that git starts by name.
const STARTED: &[&str] =
    &["mark", "less", "more", "cat", "vi", "editor", "ssh", "ssh-keygen", "gpg", "gpgsm", "man", "xdg-open"];

/// A repository with a signed commit, settings of the user that name programs, and a folder of programs that leave a mark.
fn victim(root: &Path) -> Places {
    let (project, home) = (root.join("project"), root.join("home"));
    for folder in [project.join("sub"), home.clone(), root.join("traps")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let mark = format!("#!/bin/sh\n: > '{}'\n", root.join("ran").display());
    let traps = STARTED.iter().map(|name| root.join("traps").join(name));
    for file in traps.chain([project.join("mark")]) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&file, &mark).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "x\n"), ("sub/c.txt", "c\n")] {
        std::fs::write(project.join(name), text).unwrap();
    }
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    std::fs::write(project.join("a.txt"), "two\n").unwrap();
    git(&project, &["commit", "-qam", "second"]);
    git(&project, &["tag", "-a", "v1", "-m", "one"]);
    git(&project, &["notes", "add", "-m", "note"]);
    sign(&project);
    std::fs::write(project.join("b.txt"), "y\n").unwrap();
    git(&project, &["stash", "push", "-q"]);
    // Newer than the index, so that git would like to refresh it.
    std::fs::write(project.join("a.txt"), "three\n").unwrap();
    std::fs::write(project.join("new.txt"), "old\n").unwrap();
    std::fs::write(project.join("sub/.env"), "KEY=one\n").unwrap();
    let trap = root.join("traps/mark");
    let trap = trap.display();
    let settings = format!(
        "[core]\npager={trap}\neditor={trap}\nfsmonitor={trap}\nattributesFile={}\n[diff]\nexternal={trap}\n\
         [diff \"d\"]\ntextconv={trap}\ncommand={trap}\n[gpg]\nprogram={trap}\n[log]\nshowSignature=true\n[pager]\nlog=true\n\
         [user]\nname=a\nemail=a@b.c\n",
        home.join("attributes").display()
    );
    std::fs::write(home.join(".gitconfig"), settings).unwrap();
    std::fs::write(home.join("attributes"), "*.txt diff=d\n").unwrap();
    Places { cwd: project.clone(), project, cocode_home: home.join(".claude"), home: Some(home), ..Places::default() }
}

/// Makes the last commit one that says it is signed.
fn sign(project: &Path) {
    let shell = "set -e; new=$(git cat-file commit HEAD | \
         sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n iQ==\\n -----END PGP SIGNATURE-----' | \
         git hash-object -t commit -w --stdin); git update-ref HEAD $new";
    assert!(Command::new("bash").args(["-c", shell]).current_dir(project).status().unwrap().success());
}

/// The options that git itself tells of a subcommand.
fn told(name: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q"]);
    let output = Command::new("git").args([name, "-h"]).current_dir(folder.path()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut all = BTreeSet::new();
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let options = line.split("  ").next().unwrap_or_default();
        for word in options.split([' ', ',', '=', '<', '[']).flat_map(|word| word.strip_prefix("no-]").or(Some(word))) {
            if word.len() > 1 && word.starts_with('-') && !word.trim_matches('-').is_empty() {
                all.insert(word.trim_end_matches([']', ')', '.']).to_owned());
            }
        }
        if let Some((_, long)) = options.split_once("--[no-]") {
            let long: String = long.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            all.extend([format!("--{long}"), format!("--no-{long}")]);
        }
    }
    all
}

/// Lines of which each tries something else.
fn spelled((name, listed): &Listed) -> Vec<String> {
    let mut lines = Vec::new();
    let told = told(name);
    let told = told.into_iter().filter(|option| !listed.iter().any(|(known, _)| known == option));
    let options: Vec<String> = listed.iter().map(|(option, _)| option.clone()).chain(told).collect();
    for option in &options {
        for line in ["", " HEAD", " HEAD a.txt", " HEAD -- a.txt", " v1 HEAD", " user.name x"] {
            lines.push(format!("git {name} {option}{line}"));
        }
        lines.push(format!("git {name} HEAD {option} a.txt"));
        lines.push(format!("git {name} -- {option} new.txt"));
        for bait in BAITS {
            lines.push(format!("git {name} {option} {bait}"));
            lines.push(format!("git {name} {option}={bait} HEAD"));
            lines.push(format!("git {name} {option}{bait} HEAD"));
        }
        for acting in ACTING {
            lines.push(format!("git {name} {option} {acting} HEAD"));
            lines.push(format!("git {name} {option} -- {acting}"));
            lines.push(format!("git {name} {acting} {option}"));
        }
        if let Some(letter) = option.strip_prefix('-').filter(|letter| letter.len() == 1) {
            for more in ["O", "Omark", "e", "d", "f", "p", "o"] {
                lines.push(format!("git {name} -{letter}{more} HEAD"));
                lines.push(format!("git {name} -{more}{letter} HEAD"));
            }
        }
    }
    lines
}

/// Lines that are tried in every share.
fn always(name: &str) -> Vec<String> {
    let mut lines = vec![
        format!("git {name} --dirty"),
        format!("git {name}"),
        format!("git {name} HEAD"),
        format!("git {name} --help"),
    ];
    for acting in ACTING {
        lines.push(format!("git {name} {acting} HEAD"));
        lines.push(format!("git {name} HEAD {acting}"));
    }
    lines.extend(BEFORE.iter().map(|before| format!("git {before} {name}")));
    lines
}

fn run(line: &str, places: &Places, quiet: bool) {
    let root = places.project.parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([root.join("traps")].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut bash = Command::new("timeout");
    bash.args(["-k", "1", "10", "bash", "--norc", "--noprofile", "-c", line])
        .current_dir(&places.project)
        .env_clear()
        .env("PATH", path)
        .env("HOME", places.home.as_ref().unwrap())
        .env("EXTERNAL", "./mark")
        .envs(QUIET_GIT.iter().copied().filter(|_| quiet))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    bash.status().unwrap();
}

/// A folder of its own for each thread.
fn laid_out() -> (tempfile::TempDir, PathBuf, Places) {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let places = victim(&root);
    (temp, root, places)
}

#[test]
fn what_the_tables_let_pass_of_git_only_reads() {
    let all = std::env::var("COCODE_OPTION_FUZZ").is_ok_and(|value| value == "all");
    let mut lines = Vec::new();
    for listed in listed_git_options() {
        let spelled = spelled(&listed);
        // An odd step meets every kind of line.
        let step = if all { 1 } else { (spelled.len() / SHARE).max(1) | 1 };
        lines.extend(always(listed.0));
        lines.extend(spelled.into_iter().step_by(step));
    }
    let (next, ran, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut temp, mut root, mut places) = laid_out();
                let mut before = snapshot(&root);
                let mut watch = Watch::new(&[&places.project.join("sub/.env")]);
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if judged(line, &places) != Behavior::Allow {
                        continue;
                    }
                    ran.fetch_add(1, Ordering::Relaxed);
                    watch.was_opened();
                    run(line, &places, true);
                    if watch.was_opened() {
                        wrong.lock().unwrap().push(format!("{line}: it read what is secret"));
                    }
                    let after = snapshot(&root);
                    if after != before {
                        let of = |path: &&PathBuf| before.get(*path) != after.get(*path);
                        let changed: BTreeSet<_> = after.keys().chain(before.keys()).filter(of).collect();
                        wrong.lock().unwrap().push(format!("{line}: {changed:?}"));
                        (temp, root, places) = laid_out();
                        before = snapshot(&root);
                        watch = Watch::new(&[&places.project.join("sub/.env")]);
                    }
                }
                drop(temp);
            });
        }
    });
    let (ran, wrong) = (ran.into_inner(), wrong.into_inner().unwrap());
    println!("{} lines made, {ran} run, {} wrong", lines.len(), wrong.len());
    assert!(wrong.is_empty(), "{} of {ran}:\n{}", wrong.len(), wrong.join("\n"));
    // Lines that are never let pass prove nothing.
    assert!(ran * 20 >= lines.len(), "only {ran} runs of {} lines", lines.len());
}

#[test]
fn the_repository_marks_what_git_starts() {
    for line in [
        "git diff --ext-diff",
        "git log -p --textconv",
        "git log",
        "git log --format=%G?",
        "git grep -Omark one",
        "git diff --output=new.txt",
        "git status",
        "git log --help",
        "git tag -a v2",
    ] {
        let (_temp, root, places) = laid_out();
        let before = snapshot(&root);
        run(line, &places, false);
        assert!(snapshot(&root) != before, "{line} leaves no mark");
    }
}
