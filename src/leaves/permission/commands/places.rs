//! What a command that a rule lets run may put where the same line reads later.

use super::super::shell::Word;
use super::{git, readers};

/// Commands that run the folder's own code: who allowed these allowed more than a link or an odd name can do.
const RUNNERS: &str = "cargo rustc go npm npx pnpm yarn bun deno node make just pytest python python3 ruff black mypy eslint \
    prettier tsc jest vitest gradle mvn dotnet bundle rake rspec swift zig";

/// Commands that make neither links nor repositories of what they are given, nor names that they are not given.
const PLACES_NOTHING: &str = "mkdir touch rm rmdir chmod kill";

/// Subcommands of git's that change neither the index nor a file of the work tree.
const GIT_PLACES_NOTHING: &str = "commit push tag branch fetch remote notes gc";

/// Subcommands of git's that bring files of a commit or of a patch, and leave configuration and hooks alone.
const GIT_LINKS: &str = "checkout switch restore reset merge rebase cherry-pick revert stash pull am apply rm mv clean";

/// Subcommands of git's that bring a repository or another folder of one.
const GIT_REPOSITORIES: &str = "clone init submodule worktree";

/// What a command that a rule lets run may put where the line then reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::permission) enum Places {
    Nothing,
    /// A folder of the work tree in git's index, which makes a submodule of a repository that is there.
    Listed,
    /// Files and links of a commit, and with them what looks like a repository without a work tree.
    Links,
    /// And repositories, with what they name.
    Repositories,
    /// What the repository that is there names.
    Settings,
}

/// What the command may put somewhere.
pub(in crate::permission) fn places(words: &[Word]) -> Places {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let listed = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    let name = text(0);
    if name == "git" {
        let at = if text(1) == "-C" { 3 } else { 1 };
        return match text(at) {
            sub if listed(GIT_PLACES_NOTHING, &sub) || git::is_listed(&sub) => Places::Nothing,
            sub if sub == "add" => Places::Listed,
            sub if listed(GIT_LINKS, &sub) => Places::Links,
            sub if listed(GIT_REPOSITORIES, &sub) => Places::Repositories,
            _ => Places::Settings,
        };
    }
    let reader = |name: &str| readers::READERS.iter().any(|reader| reader.name == name && !reader.acts);
    let looks = |name: &str| super::super::dynamic::is_inert(name) || reader(name);
    // Past options without a value comes the program.
    let plain =
        |word: &&Word| matches!(word.literal().as_deref(), Some("-0" | "--null" | "-r" | "--no-run-if-empty" | "-t"));
    let program = words[1..].iter().find(|word| !plain(word)).and_then(Word::literal);
    let passed_on = name == "xargs" && program.is_some_and(|program| looks(&program));
    match listed(RUNNERS, &name) || listed(PLACES_NOTHING, &name) || name.starts_with("./") || looks(&name) || passed_on
    {
        true => Places::Nothing,
        false => Places::Repositories,
    }
}

/// Whether the command, which is not known to only read, may make a name that starts with a dash, so that a glob behind it
/// becomes an option.
pub(in crate::permission) fn names_options(words: &[Word]) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let listed = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    match text(0) {
        name if listed(PLACES_NOTHING, &name) => words[1..].iter().any(names_option),
        name if name == "git" => {
            let subcommand = text(if text(1) == "-C" { 3 } else { 1 });
            subcommand != "add" && !listed(GIT_PLACES_NOTHING, &subcommand)
        }
        name => !listed(RUNNERS, &name) && !name.starts_with("./") && !super::super::dynamic::is_inert(&name),
    }
}

/// Whether a part of the path starts with a dash, or may do so; a word that starts with one is an option.
pub(in crate::permission) fn names_option(word: &Word) -> bool {
    word.literal().is_none_or(|text| text == "--" || text.contains("/-"))
}
