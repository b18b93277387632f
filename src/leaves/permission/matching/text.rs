//! Which words of a command are text to it, so that it runs none of them.

use super::super::commands::{self, danger};
use super::super::shell::{MANY, ONE};

/// Programs of whose words the first is a command of their own. Of those without a table, what else they are given may run.
pub(super) const SUBCOMMANDS: [&str; 40] = [
    "git",
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "docker",
    "podman",
    "kubectl",
    "gh",
    "go",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "brew",
    "apt",
    "apt-get",
    "systemctl",
    "make",
    "bun",
    "deno",
    "terraform",
    "aws",
    "gcloud",
    "az",
    "helm",
    "svn",
    "hg",
    "rustup",
    "conda",
    "dnf",
    "yum",
    "pacman",
    "apk",
    "gem",
    "bundle",
    "composer",
    "dotnet",
    "mvn",
    "gradle",
];

/// Words of these programs behind which comes another command of their own.
const GROUPS: [(&str, &str); 12] = [
    (
        "docker",
        "compose container image volume network system builder buildx context manifest plugin secret service stack swarm",
    ),
    ("podman", "compose container image volume network system pod machine manifest secret"),
    ("kubectl", "rollout auth config set"),
    ("terraform", "state workspace providers"),
    ("aws", "s3 s3api ec2 ecr ecs eks iam lambda logs rds sts cloudformation"),
    ("gcloud", "storage compute container projects auth run functions"),
    ("az", "storage vm group account acr aks"),
    ("helm", "repo"),
    ("rustup", "toolchain target component override"),
    ("uv", "pip tool python cache"),
    ("conda", "env"),
    ("dotnet", "tool nuget workload"),
];

/// Words behind which such a program takes the names of packages.
const PACKAGES: &str = "install add remove uninstall upgrade update search show info list purge reinstall download require pull \
    push images logs ps";

/// Options of theirs that take no value.
const PLAIN: &str = "-y -q -qq -D -U -g -E -P --yes --assume-yes --quiet --dev --save-dev --global --upgrade --user --no-cache \
    --no-install-recommends --exact --optional --cask --formula --frozen --locked";

/// Words behind which such a program runs a command of ours.
const RUNS: [&str; 13] = [
    "exec",
    "run",
    "dlx",
    "foreach",
    "bisect",
    "rebase",
    "filter-branch",
    "-c",
    "-x",
    "--exec",
    "alias",
    "shell",
    "debug",
];

/// How many of a command's words are text to it, as far as they tell: it runs none of them.
pub(super) fn text_of(name: &str, words: &[String]) -> usize {
    if SUBCOMMANDS.contains(&name) && !commands::covered::describes(name) {
        return spoken(name, words);
    }
    let runs = SUBCOMMANDS.contains(&name)
        && words.iter().enumerate().any(|(place, word)| {
            RUNS.contains(&word.as_str())
                || word == "x" && place == 1
                || word.starts_with("--exec")
                || word.starts_with("-c")
                || name == "make" && word.contains('=')
        });
    let finds = name == "find" && words.iter().any(|word| word.starts_with("-exec") || word.starts_with("-ok"));
    let text = (commands::takes_data(name) || SUBCOMMANDS.contains(&name) || name == "find")
        && !runs
        && !finds
        && danger::dangers(&words.iter().map(|word| at_home(name, word)).collect::<Vec<_>>()).is_empty();
    if text { words.len() } else { 0 }
}

/// The words that name what a program without a table does, and the packages with which it does that.
fn spoken(name: &str, words: &[String]) -> usize {
    let listed = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    let plain =
        |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    let own = |at: usize| {
        words.get(at).is_some_and(|word| !word.starts_with('-') && plain(word) && !RUNS.contains(&word.as_str()))
    };
    let mut at = 1;
    while own(at) {
        at += 1;
        let group = |(of, groups): &(&str, &str)| *of == name && listed(groups, &words[at - 1]);
        if at > 2 || !GROUPS.iter().any(group) {
            break;
        }
    }
    // What another machine is asked for is an address, which may name what is run.
    if at > 1 && !matches!(name, "hg" | "svn") && listed(PACKAGES, &words[at - 1]) {
        let package = |word: &&String| {
            listed(PLAIN, word)
                || word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
                    && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-+@=".contains(c))
        };
        at += words[at..].iter().take_while(package).count();
    }
    if at == 1 { 0 } else { at }
}

/// The word without what only bash knows and what leads elsewhere: where it is makes it no command.
fn at_home(name: &str, word: &str) -> String {
    let known = word.replace([ONE, MANY], "");
    if !commands::covered::writes_inside(name) {
        return known;
    }
    known.replace("..", "").trim_start_matches(['/', '~']).to_owned()
}
