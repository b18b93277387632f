//! The policy that the kernel holds a line to: of one that passes because it only reads, what it was judged to read; of any
//! other, what rules forbid whatever the text says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::approved::Ruled;
use super::decide::{self, Decision, Query};
use super::files::{Files, Step, walk};
use super::installed::installed;
use super::permit::Consent;
use super::places::holds_keys;
use super::rule::Strictness;
use super::shell::{Simple, Word};
use super::vocabulary::Matches;
use super::{Access, Behavior, Mode, approved, guarding, wrapper};
use crate::sandbox::{Guard, Level, Policy, Reads, Refused};

/// Most names that are looked at for what rules forbid. What lies further is left to the text of the line.
const MAX_LOOKED: usize = 10_000;

/// None where nothing is taken away.
pub(super) fn policy(query: &Query, decision: &Decision, consent: Consent, files: &dyn Files) -> Option<Policy> {
    let Access::Shell { command, cwd } = query.access else { return None };
    if query.level == Level::None {
        return None;
    }
    match (&decision.reads, decision.behavior, query.mode) {
        (Some(outside), Behavior::Allow, mode) if mode != Mode::Bypass && !decide::escapes(query) => {
            let mut commands = Vec::new();
            command.parsed().ok()?.node.for_each_simple(&mut |simple| commands.push(simple.clone()));
            let paths = readable(query, &commands, (cwd, outside), files);
            let hidden = hidden(query, starts_git(&commands), files);
            Some(Policy { reads: Reads::Only { paths, hidden }, ..Policy::reading(Vec::new()) })
        }
        _ => {
            let (mut hidden, kept) =
                (forbidden(query, Matches::Reading, files), forbidden(query, Matches::Editing, files));
            // No person has seen the line.
            let guard = match consent == Consent::Missing && query.mode != Mode::Bypass {
                true => guarding::guard(query, cwd, files),
                false => Guard::default(),
            };
            let guard = Guard { refused: refused(query, files), ..guard };
            let ruled = Ruled { hidden: hidden.clone(), kept: kept.clone(), guard: guard.clone() };
            if let Some(profile) = approved::profile(query, decision.unasked, consent, ruled, files) {
                return Some(profile);
            }
            // Beside what Landlock hides, nothing new could be read: builds would not find what they have just made.
            hidden.retain(|path| query.level == Level::Mount || !query.places.inside(path, files));
            let policy = Policy { reads: Reads::AllBut(hidden), protected: kept, guard, ..Policy::free() };
            (policy != Policy::free()).then_some(policy)
        }
    }
}

/// What commands that only read may open: the workspace, what they were judged to read outside of it, what git reads, and
/// the programs themselves.
fn readable(
    query: &Query,
    commands: &[Simple],
    (cwd, outside): (&Path, &[PathBuf]),
    files: &dyn Files,
) -> Vec<PathBuf> {
    let places = query.places;
    let mut all: Vec<PathBuf> = places.workspace().map(|root| files.resolve(root)).collect();
    all.extend(places.free_reads.iter().cloned());
    all.extend(outside.iter().cloned());
    let mut beside = BTreeSet::new();
    let names: BTreeSet<String> = commands.iter().flat_map(|simple| programs(&simple.words)).collect();
    for name in &names {
        beside.extend(installed(&places.programs, &places.cwd, name, files));
    }
    if starts_git(commands) {
        beside.extend(files.git_reads(cwd, places.git_user()));
    }
    // What would open more than the program, or what is private, stays closed: then it fails.
    beside.retain(|path| !places.too_wide(path, files));
    for path in beside {
        if !all.iter().any(|known| path.starts_with(known)) {
            all.push(path);
        }
    }
    all
}

fn starts_git(commands: &[Simple]) -> bool {
    commands.iter().flat_map(|simple| programs(&simple.words)).any(|name| name.rsplit('/').next() == Some("git"))
}

/// What the policy of the line hides from it, if it only reads.
pub(super) fn closed(query: &Query, files: &dyn Files) -> Vec<PathBuf> {
    let Access::Shell { command, .. } = query.access else { return Vec::new() };
    let Ok(line) = command.parsed() else { return Vec::new() };
    let mut commands = Vec::new();
    line.node.for_each_simple(&mut |simple| commands.push(simple.clone()));
    hidden(query, starts_git(&commands), files)
}

/// What lies in the workspace and stays closed though the folder around it is open: secrets, but for those that git itself
/// has to read, and what deny rules forbid.
fn hidden(query: &Query, git: bool, files: &dyn Files) -> Vec<PathBuf> {
    let roots: Vec<PathBuf> = query.places.workspace().map(|root| files.resolve(root)).collect();
    // A folder, too, if something in it is tracked: git would take what it cannot read for changed.
    let tracked = |path: &Path| {
        let below = |all: Vec<PathBuf>| all.iter().any(|known| known.starts_with(path));
        git && roots.iter().any(|root| files.tracked(root).is_none_or(below))
    };
    let mut all = forbidden(query, Matches::Reading, files);
    walk(roots.clone(), MAX_SPARED, files, |path, link| {
        if !link && holds_keys(path) && !tracked(path) {
            all.push(path.to_owned());
        }
        if path.ends_with(".git") || path.ends_with("node_modules") { Step::Past } else { Step::Into }
    });
    // Each folder above is opened name by name.
    let inside = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    all.retain(|path| {
        let above = path.ancestors().skip(1).take_while(inside);
        above.map(|folder| files.names(folder).len()).sum::<usize>() <= MAX_BESIDE
    });
    all.sort();
    all.dedup();
    all.truncate(MAX_HIDDEN);
    all
}

/// Most names of the workspace among which secrets are looked for, nearest first: what is further is left to the text.
const MAX_SPARED: usize = 1_000;

/// Most names that are opened one by one so that one among them stays closed.
const MAX_BESIDE: usize = 1_000;

/// Most paths that stay closed.
const MAX_HIDDEN: usize = 64;

/// The names that the words may start a program by.
fn programs(words: &[Word]) -> Vec<String> {
    let carries = wrapper::carried(words).is_some();
    let words = &words[..if carries { words.len() } else { words.len().min(1) }];
    words.iter().filter_map(Word::literal).filter(|name| !name.starts_with('-')).collect()
}

/// What deny rules about changing files refuse by its name, also where nothing is yet.
fn refused(query: &Query, files: &dyn Files) -> Vec<Refused> {
    let tool = query.vocabulary.tool(Matches::Editing);
    let rules = query.entries(Behavior::Deny).filter(|entry| entry.rule.governs(tool));
    let patterns = rules.filter_map(|entry| entry.rule.pattern(query.places));
    let below = |(bases, parts): (Vec<PathBuf>, &[String])| {
        let one = |base: PathBuf| Refused { base: files.resolve(&base), parts: parts.to_vec() };
        bases.into_iter().map(one).collect::<Vec<_>>()
    };
    patterns.flat_map(below).collect()
}

/// What deny rules about reading, or about changing, forbid as a whole, where it lies now.
fn forbidden(query: &Query, matches: Matches, files: &dyn Files) -> Vec<PathBuf> {
    let (places, tool) = (query.places, query.vocabulary.tool(matches));
    let mut all = BTreeSet::new();
    for entry in query.entries(Behavior::Deny).filter(|entry| entry.rule.governs(tool)) {
        let covers = |path: &Path| entry.rule.covers_path(tool, path, Strictness::Possible, places, files);
        let mut searched = Vec::new();
        for (start, whole) in entry.rule.starts(places) {
            if whole && !files.spend(0) {
                all.insert(files.resolve(&start));
            } else {
                searched.push(start);
            }
        }
        walk(searched, MAX_LOOKED, files, |path, link| {
            if !link && covers(path) {
                all.insert(files.resolve(path));
                return Step::Past;
            }
            if path.ends_with(".git/objects") { Step::Past } else { Step::Into }
        });
    }
    all.retain(|path| files.is_file(path) || !files.names(path).is_empty());
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::files::Disk;
    use super::super::rule::{RuleSet, Source};
    use super::super::{CommandLine, Permit, Places, Profile};
    use super::*;
    use crate::sandbox::Network;

    /// A home with a project, programs and git's configuration, and another repository beside them.
    fn home() -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (file, text) in [
            ("home/work/src/main.rs", ""),
            ("home/work/secrets/a/key.txt", ""),
            ("home/work/a.pem", ""),
            ("home/work/src/b.pem", ""),
            ("home/.cargo/bin/rg", "#!/bin/sh\n"),
            ("home/.cargo/lib/x", ""),
            ("home/.cargo/credentials.toml", ""),
            ("home/.gitconfig", "[include]\npath = dot/git\n[include]\npath = gone\n"),
            ("home/dot/git", "[core]\nexcludesFile = ~/dot/ignore\n"),
            ("home/dot/ignore", ""),
            ("home/dot/token", ""),
            ("other/notes.txt", ""),
        ] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        }
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(root.join("home/work/.git").join(folder)).unwrap();
        }
        std::fs::write(root.join("home/work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let home = root.join("home");
        let programs = vec![home.join(".cargo/bin"), "/usr/bin".into(), "/bin".into()];
        let project = home.join("work");
        (dir, Places { cwd: project.clone(), project, home: Some(home), programs, ..Places::default() })
    }

    /// What a line may do by one rule, written `allow Bash(make)`, or none. `ROOT` is the folder that all lies in.
    fn permit(places: &Places, rule: &str, level: Level, mode: Mode, command: CommandLine, consent: Consent) -> Permit {
        let mut rules = RuleSet::default();
        if let Some((kind, rule)) = rule.split_once(' ') {
            let kind = match kind {
                "allow" => Behavior::Allow,
                "ask" => Behavior::Ask,
                _ => Behavior::Deny,
            };
            let root = places.home.as_deref().and_then(Path::parent).unwrap();
            rules.add(kind, rule.replace("//ROOT", &format!("/{}/", root.display())).parse().unwrap(), Source::User);
        }
        let access = Access::Shell { command, cwd: places.cwd.clone() };
        let vocabulary = crate::permission::vocabulary::TOOLS;
        let query = Query { tool: "Bash", access: &access, mode, rules: &rules, places, vocabulary, level };
        let decision = decide::decide(&query, &Disk);
        Permit::of(&query, &decision, consent, &Disk).unwrap_or_else(|| panic!("{access:?}: {decision:?}"))
    }

    #[test]
    fn what_is_approved_runs_in_the_workspace() {
        let (dir, mut places) = home();
        let root = format!("{}/", dir.path().canonicalize().unwrap().display());
        places.approved.profile = Profile::Workspace;
        places.approved.excluded = vec!["docker".into()];
        std::fs::create_dir_all(dir.path().join("home/.ssh")).unwrap();
        let check = |rules: &str, line: &str, escape: bool, mode, consent| {
            let command = CommandLine::from(line);
            let command = if escape { command.escaping() } else { command };
            let permit = permit(&places, rules, Level::Kernel, mode, command, consent);
            let Some(policy) = permit.policy() else { return "free".to_owned() };
            assert_eq!(policy.network, Network::Proxy { port: 0 });
            let Reads::AllBut(hidden) = &policy.reads else { panic!("{policy:?}") };
            let ssh = if hidden.iter().any(|path| path.ends_with(".ssh")) { "" } else { " +ssh" };
            let shown = policy.writes.iter().map(|path| path.display().to_string().replace(&root, ""));
            format!("{}{ssh}", shown.collect::<Vec<_>>().join(" "))
        };
        let given = Consent::Given;
        for (rules, line, want) in [
            ("", "make", "home/work"),
            ("allow Bash(make)", "make", "home/work"),
            (
                "",
                "cd src && cargo test",
                "home/.cargo/.global-cache home/.cargo/.package-cache home/.cargo/.package-cache-mutate \
                 home/.cargo/git home/.cargo/registry home/work",
            ),
            ("allow Edit(//ROOTother/**)", "make", "home/work other"),
            ("allow Edit(//ROOTother/*.rs)", "make", "home/work"),
            ("allow Read(~/.ssh/**)", "make", "home/work +ssh"),
            ("", "docker ps; make", "free"),
        ] {
            assert_eq!(check(rules, line, false, Mode::Default, given), want, "{rules} {line}");
        }
        assert_eq!(check("", "make", true, Mode::Default, given), "free");
        assert_eq!(check("", "make", false, Mode::Bypass, given), "free");
        assert_eq!(check("", "make", false, Mode::Default, Consent::Unconfined), "free");
    }

    #[test]
    fn what_the_sandbox_holds_may_run_unasked() {
        let (dir, mut places) = home();
        let root = format!("{}/", dir.path().canonicalize().unwrap().display());
        places.approved.unasked = true;
        places.approved.excluded = vec!["docker".into()];
        let (kernel, default) = (Level::Kernel, Mode::Default);
        for (rules, line, level, mode, want) in [
            ("", "make", kernel, default, "home/work"),
            ("", "make", kernel, Mode::AcceptEdits, "home/work"),
            ("", "make > out.txt && ./run | tail", kernel, default, "home/work"),
            ("", "make", kernel, Mode::DontAsk, "home/work"),
            ("allow Bash(make)", "make; od -c src/main.rs", kernel, default, "home/work"),
            // By a rule of the user's, or in bypass, as ever; only that nobody has seen the line.
            ("allow Bash(make)", "make", kernel, default, "guarded"),
            ("", "make", kernel, Mode::Bypass, "free"),
            ("", "ls", kernel, default, "reads"),
            ("", "make", kernel, Mode::Plan, "Deny"),
            ("", "make", Level::None, default, "Ask"),
            ("deny Bash(make:*)", "make", kernel, default, "Deny"),
            ("ask Bash(make:*)", "make", kernel, default, "Ask"),
            ("ask Edit(/src/**)", "touch src/a", kernel, default, "Ask"),
            ("", "make > .git/hooks/pre-commit", kernel, default, "Ask"),
            ("", "make; cat a.pem", kernel, default, "Ask"),
            ("", "make; cat ../../other/notes.txt", kernel, default, "Ask"),
            ("", "docker ps", kernel, default, "Ask"),
            ("", "make $(", kernel, default, "Ask"),
        ] {
            let mut set = RuleSet::default();
            if let Some((kind, rule)) = rules.split_once(' ') {
                let kind = match kind {
                    "allow" => Behavior::Allow,
                    "ask" => Behavior::Ask,
                    _ => Behavior::Deny,
                };
                set.add(kind, rule.parse().unwrap(), Source::User);
            }
            let access = Access::Shell { command: line.into(), cwd: places.cwd.clone() };
            let vocabulary = crate::permission::vocabulary::TOOLS;
            let query = Query { tool: "Bash", access: &access, mode, rules: &set, places: &places, vocabulary, level };
            let decision = decide::decide(&query, &Disk);
            let told = match Permit::of(&query, &decision, Consent::Missing, &Disk) {
                None => format!("{:?}", decision.behavior),
                Some(permit) => match permit.policy() {
                    None => "free".to_owned(),
                    Some(policy) if policy.writes.is_empty() => "reads".to_owned(),
                    Some(policy) if policy.is_free() => {
                        assert!(policy.guard.roots == [places.project.clone()], "{policy:?}");
                        "guarded".to_owned()
                    }
                    Some(policy) => {
                        assert!(permit.unasked() && decision.confined, "{line}");
                        assert_eq!(policy.network, Network::Proxy { port: 0 }, "{line}");
                        let Reads::Within { home, open, .. } = &policy.reads else { panic!("{policy:?}") };
                        let readable = |path: &str| open.iter().any(|open| home.join(path).starts_with(open));
                        for path in ["work/src/main.rs", ".cargo/bin/rg", ".cargo/lib/x", ".gitconfig", "dot/ignore"] {
                            assert!(readable(path), "{path}: {open:?}");
                        }
                        for path in
                            [".cargo/credentials.toml", ".env", ".claude/x", "dot/token", ".cache/x", ".config/gh"]
                        {
                            assert!(!readable(path), "{path}: {open:?}");
                        }
                        policy.writes.iter().map(|path| path.display().to_string().replace(&root, "")).collect()
                    }
                },
            };
            assert_eq!(told, want, "{rules} {line} {mode:?}: {decision:?}");
        }
    }

    /// Each row: rules, the level, the line, and what its policy says, without the folder that all lies in.
    #[test]
    fn policies() {
        let (dir, places) = home();
        let root = format!("{}/", dir.path().canonicalize().unwrap().display());
        for (rules, level, mode, line, want) in [
            (
                "",
                Level::Kernel,
                Mode::Default,
                "ls src",
                "reads home/work hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "",
                Level::Mount,
                Mode::Plan,
                "cat src/*.rs | wc -l",
                "reads home/work hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            ("", Level::None, Mode::Default, "ls src", "free"),
            ("", Level::Kernel, Mode::Bypass, "ls src", "free"),
            (
                "",
                Level::Kernel,
                Mode::Default,
                "rg x src/main.rs",
                "reads home/work home/.cargo/bin home/.cargo/lib hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "",
                Level::Kernel,
                Mode::Default,
                "timeout 5 rg x src/main.rs",
                "reads home/work home/.cargo/bin home/.cargo/lib hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "",
                Level::Kernel,
                Mode::Default,
                "echo rg",
                "reads home/work hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "",
                Level::Kernel,
                Mode::Default,
                "git status",
                "reads home/work home/.gitconfig home/dot/git home/dot/ignore hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            // Approved, or allowed by a rule: as the user.
            ("", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("allow Bash(cargo test:*)", Level::Kernel, Mode::Default, "cargo test | tail", "free"),
            // What lies outside, where a rule says that it may be read.
            (
                "allow Read(//ROOTother/**)",
                Level::Kernel,
                Mode::Default,
                "cat ../../other/notes.txt",
                "reads home/work other/notes.txt hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "allow Read(//ROOTother/**)",
                Level::Kernel,
                Mode::Default,
                "wc -l < ../../other/notes.txt",
                "reads home/work other/notes.txt hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            (
                "allow Bash(cat:*)",
                Level::Kernel,
                Mode::Default,
                "cat ../../other/notes.txt",
                "reads home/work other/notes.txt hides home/work/a.pem home/work/secrets home/work/src/b.pem",
            ),
            ("", Level::Kernel, Mode::Default, "cat ../../other/notes.txt", "free"),
            // What is denied stays closed to whatever runs.
            ("deny Read(secrets/**)", Level::Mount, Mode::Default, "cargo test", "hides home/work/secrets keeps"),
            ("deny Read(secrets)", Level::Mount, Mode::Default, "cargo test", "hides home/work/secrets keeps"),
            (
                "deny Read(*.pem)",
                Level::Mount,
                Mode::Default,
                "cargo test",
                "hides home/work/a.pem home/work/src/b.pem keeps",
            ),
            (
                "deny Read(~/.cargo/credentials.toml)",
                Level::Kernel,
                Mode::Bypass,
                "cargo test",
                "hides home/.cargo/credentials.toml keeps",
            ),
            (
                "deny Edit(/src/**)",
                Level::Kernel,
                Mode::Default,
                "cargo test",
                "hides keeps home/work/src refuses home/work/src/**",
            ),
            // Also what is not there yet.
            (
                "deny Edit(*.lock)",
                Level::Kernel,
                Mode::Default,
                "cargo test",
                "hides keeps refuses home/work/**/*.lock",
            ),
            ("deny Edit(/gone)", Level::Kernel, Mode::Bypass, "cargo test", "hides keeps refuses home/work/gone"),
            ("deny Write(/src/**)", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("deny Read(secrets/**)", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("deny Read(gone/**)", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("deny Read", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("ask Read(secrets/**)", Level::Kernel, Mode::Default, "cargo test", "free"),
            ("deny Read(secrets/**)", Level::None, Mode::Default, "cargo test", "free"),
        ] {
            let permit = permit(&places, rules, level, mode, line.into(), Consent::Given);
            let shown = |paths: &[PathBuf]| {
                paths.iter().map(|path| format!(" {}", path.display()).replace(&root, "")).collect::<String>()
            };
            let told = permit.policy().map_or("free".to_owned(), |policy| match &policy.reads {
                Reads::Only { paths, hidden } => {
                    assert_eq!((&policy.writes, policy.network), (&Vec::new(), Network::Closed), "{line}");
                    format!("reads{} hides{}", shown(paths), shown(hidden))
                }
                Reads::Within { .. } => panic!("{line}: {policy:?}"),
                Reads::AllBut(paths) => {
                    assert_eq!((&policy.writes, policy.network), (&vec!["/".into()], Network::Open), "{line}");
                    let names = policy.guard.refused.iter().map(|one| one.base.join(one.parts.join("/")));
                    let names = shown(&names.collect::<Vec<_>>());
                    let refuses = if names.is_empty() { "" } else { " refuses" };
                    format!("hides{} keeps{}{refuses}{names}", shown(paths), shown(&policy.protected))
                }
            });
            assert_eq!(told, want, "{rules} {line}");
        }
    }
}
