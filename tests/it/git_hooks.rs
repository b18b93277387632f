//! Hooks of a repository that nobody agreed to: a rule that was made for all folders does not run them.

use cocode::permission::{Behavior, GitHooks, Mode, Source, Trust};
use cocode::stdx::git::{User, Variables};

use super::config::User as Home;
use super::repositories::Fixture;

/// `h` writes a hook that leaves a mark through a script beside it.
const HOOK: &str = "h() { mkdir -p \"${1%/*}\"; printf '#!/bin/sh\\n. ./lib.sh\\n' > \"$1\"; chmod +x \"$1\"; }; \
    echo \"touch ${M%/*}/ran\" > lib.sh; git add lib.sh; git commit -qm lib";

/// Where a repository has hooks, and a line that runs them.
const HOOKED: [(&str, &str, &str); 8] = [
    ("through xargs", "h .git/hooks/post-index-change", "echo a | xargs git add --"),
    ("through find", "h .git/hooks/post-index-change", "find a -exec git add {} +"),
    ("in its own folder", "h .git/hooks/post-checkout", "git checkout -q -b x"),
    ("of the index", "h .git/hooks/post-index-change", "git add a"),
    ("where a setting says", "git config core.hooksPath tools; h tools/post-checkout", "git checkout -q -b x"),
    ("outside", "git config core.hooksPath ../tools; h ../tools/post-checkout", "timeout 5 git checkout -q -b x"),
    (
        "of a linked work tree",
        "git worktree add -q ../w; h .git/hooks/post-checkout; cd ../w; pwd > ../cwd",
        "git checkout -q -b x",
    ),
    ("of a submodule", "$SUBMODULE; h .git/modules/sub/hooks/post-checkout; cp lib.sh sub", "git checkout -q -b x"),
];

const RULES: [&str; 7] = [
    "Bash(echo:*)",
    "Bash(xargs git add --:*)",
    "Bash(find a -exec git add:*)",
    "Bash(git checkout:*)",
    "Bash(git add:*)",
    "Bash(timeout 5 git checkout:*)",
    "Bash(git commit -m:*)",
];

#[test]
fn a_rule_for_all_folders_runs_no_hook_that_nobody_trusts() {
    for (name, setup, line) in HOOKED {
        let fixture = Fixture::new(&format!("rm .gitattributes; {HOOK}; {setup}"));
        let decide = |source, line: &str| fixture.ruled_by(source, line, Mode::Default, &RULES);
        for source in [Source::User, Source::Config, Source::Managed] {
            let decision = decide(source, line);
            assert_eq!(decision.behavior, Behavior::Ask, "{name}: {source}");
            assert!(decision.reasons[0].contains("which you have not trusted"), "{name}: {decision:?}");
        }
        for source in [Source::Session, Source::Project, Source::ProjectLocal, Source::CommandLine, Source::Skill] {
            assert_eq!(decide(source, line).behavior, Behavior::Allow, "{name}: {source}");
        }
        // What only reads runs no hook.
        assert_eq!(decide(Source::User, "git status").behavior, Behavior::Allow, "{name}");

        let user = User { home: Some(fixture.folder.path()), variables: &Variables::default() };
        let (used, hooks) = GitHooks::found(&fixture.cwd(), user).unwrap();
        assert!(used.line.starts_with("hooks of git: post-"), "{name}: {}", used.line);
        let trusting = |line: &str| fixture.trusting(&hooks, Source::User, line, Mode::Default, &RULES);
        let decision = trusting(line);
        assert_eq!(decision.behavior, Behavior::Allow, "{name}: {decision:?}");
        let bash = |line: &str| Fixture::bash(fixture.folder.path(), &fixture.cwd(), line, false);
        if name == "of a submodule" {
            continue;
        }
        assert!(fixture.marks(line, false), "{name}");
        // What the hook runs is another by now.
        bash("echo 'touch other' >> $(git rev-parse --show-toplevel)/lib.sh");
        let changed = trusting(line);
        assert_eq!(changed.behavior, Behavior::Ask, "{name}");
        assert!(changed.reasons[0].contains("has changed since you trusted it"), "{name}: {changed:?}");
        bash("git checkout -q lib.sh");
        assert_eq!(trusting(line).behavior, Behavior::Allow, "{name}");
        // Another hook comes.
        bash(
            "hooks=$(git rev-parse --git-path hooks); printf '#!/bin/sh\\n' > $hooks/pre-commit; chmod +x $hooks/pre-commit",
        );
        assert_eq!(trusting("git commit -m x").behavior, Behavior::Ask, "{name}");
    }
}

/// What is not a hook, and one that is the user's own.
#[test]
fn what_runs_nothing_of_the_repository_needs_no_trust() {
    let own = "git config --global core.hooksPath";
    for (name, setup, want) in [
        ("samples", "h .git/hooks/post-checkout.sample", Behavior::Allow),
        ("not executable", "h .git/hooks/post-checkout; chmod -x .git/hooks/post-checkout", Behavior::Allow),
        ("the user's own folder", &format!("h ../own/post-checkout; {own} ~/own"), Behavior::Allow),
        ("the same inside of each repository", &format!("h own/post-checkout; {own} own"), Behavior::Ask),
    ] {
        let fixture = Fixture::new(&format!("rm .gitattributes; {HOOK}; {setup}"));
        let decision = fixture.ruled_by(Source::User, "git checkout -q -b x", Mode::Default, &RULES);
        assert_eq!(decision.behavior, want, "{name}: {decision:?}");
    }
}

/// The question about the folder names the hooks where a rule would run them, and says later what changed in them.
#[test]
fn hooks_are_part_of_what_is_trusted() {
    let settings = |rules: &str| format!("{{\"permissions\": {{\"allow\": [{rules}]}}}}");
    let user = Home::new().file("~/.claude/settings.json", &settings("\"Bash(git commit:*)\""));
    let user = user.file(".git/HEAD", "ref: refs/heads/main\n").file(".git/objects/x", "").file(".git/refs/x", "");
    let user = user.file("check.sh", "echo one\n").program(".git/hooks/pre-commit", "#!/bin/sh\nsh check.sh\n");
    let nothing = Trust::default();
    let loaded = user.given(&nothing);
    assert_eq!(loaded.withheld, ["hooks of git: pre-commit (.git/hooks)"]);
    assert_eq!(loaded.git_hooks, GitHooks::default());
    let mut trust = Trust::default();
    trust.agree(&loaded.uses);
    let trusted = user.given(&trust);
    assert_eq!(trusted.withheld, Vec::<String>::new());
    assert_ne!(trusted.git_hooks, GitHooks::default());
    let user = user.file("check.sh", "echo two\n");
    let changed = user.given(&trust);
    assert_eq!(changed.git_hooks, GitHooks::default());
    assert_eq!(
        trust.difference(&changed.uses).new,
        [
            "hooks of git: pre-commit (.git/hooks) – changed: the content of ./check.sh\n./check.sh:\n-echo one\n+echo two"
        ]
    );
    // Without such a rule git asks anyway.
    let user = user.file("~/.claude/settings.json", &settings("\"Bash(cargo test:*)\""));
    assert_eq!(user.given(&nothing).withheld, Vec::<String>::new());
}
