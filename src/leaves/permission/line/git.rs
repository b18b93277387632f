//! Which commands of a line start git, and for what: reading, or changing something.

use super::super::Behavior;
use super::super::commands::{self, Places, Reads};
use super::super::decide::{Query, Verdict};
use super::super::files::Files;
use super::super::paths::{self, Cwd};
use super::super::shell::Word;
use super::super::wrapper;
use super::Part;
use super::basis::Basis;

/// How a command starts git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Git {
    /// Not at all, or where the repository names programs: then a person decides.
    No,
    /// It only reads, and the repository names nothing that it would run. `ruled`: an allow rule covers the command, too.
    Reads { ruled: bool },
    /// It may change something, so the repository's hooks and filters belong to it.
    Changes,
}

/// What the command makes of git, also when it starts it through others such as `timeout`.
pub(super) fn kind(query: &Query, words: &[Word], cwd: &Cwd, files: &dyn Files, ruled: impl FnOnce() -> bool) -> Git {
    let Some(words) = inner(words) else { return Git::No };
    match commands::reads(&words) {
        Ok(reads) if paths::gate(query, &reads, cwd, files).is_ok() => Git::Reads { ruled: ruled() },
        Ok(_) => Git::No,
        Err(_) => Git::Changes,
    }
}

/// Where git starts, if the command starts one that reads.
pub(super) fn starts(query: &Query, words: &[Word], cwd: &Cwd, files: &dyn Files) -> Cwd {
    let reads = inner(words).and_then(|words| commands::reads(&words).ok());
    reads.map_or(Cwd(None), |reads| paths::starts(&reads, cwd, query.places, files))
}

/// Behind a command of git's that fills the index or the work tree, one that reads meets other submodules than now, and
/// below the top perhaps another repository: that asks, unless every repository there is harmless. Behind one that may
/// change the configuration it asks.
pub(super) fn brought(parts: &mut [Part], unordered: bool, files: &dyn Files) {
    let passes = |part: &Part| part.verdict.behavior == Behavior::Allow;
    let fills = |part: &Part| if part.git == Git::Changes { commands::places(&part.words) } else { Places::Nothing };
    for at in 0..parts.len() {
        let until = if unordered { parts.len() } else { at };
        let most = parts[..until].iter().filter(|part| passes(part)).map(fills).max().unwrap_or(Places::Nothing);
        if !matches!(parts[at].git, Git::Reads { .. }) || !passes(&parts[at]) || most == Places::Nothing {
            continue;
        }
        let judge = |folder: &std::path::PathBuf| files.repositories(folder, most > Places::Listed);
        let found = match &parts[at].starts.0 {
            _ if most == Places::Settings => Err("what comes before it may change what git runs".into()),
            Some(folders) => folders.iter().try_for_each(judge),
            None => Err("it is unknown which folder git starts in".into()),
        };
        if let Err(reason) = found {
            paths::worse(&mut parts[at].verdict, Verdict::new(Behavior::Ask, reason));
        }
    }
}

/// The git command in the words, by its plain name.
pub(super) fn inner(mut words: &[Word]) -> Option<Vec<Word>> {
    while let Some(Ok(inner)) = wrapper::unwrap(words) {
        words = inner;
    }
    let name = words.first()?.known();
    (name.rsplit('/').next()? == "git").then(|| [&[commands::plain("git")], &words[1..]].concat())
}

/// What the git command in the words may show of files that it keeps, whatever its options mean; None where git does not start.
/// Behind what passes on more words nobody knows its options.
pub(super) fn may_show(words: &[Word]) -> Option<Reads> {
    match inner(words) {
        Some(words) => Some(commands::git::may_show(&words[1..])),
        None => started(words, &[]).map(|words| commands::git::everything(&words[1..])),
    }
}

/// Whether the git command may continue with a list of commits that a rebase left, which may say more than the line does.
pub(super) fn continues(words: &[Word]) -> bool {
    const ENDING: [&str; 4] = ["--abort", "--quit", "--show-current-patch", "--edit-todo"];
    let known: Vec<String> = words.iter().map(Word::known).collect();
    let Some(at) = known.iter().position(|text| matches!(text.as_str(), "rebase" | "cherry-pick" | "revert")) else {
        return words.iter().skip(1).any(|word| word.literal().is_none());
    };
    !matches!(&known[at + 1..], [only] if ENDING.contains(&only.as_str()))
}

/// Programs that start git for their own work.
const THROUGH: [&str; 4] = ["gh", "glab", "hub", "git-lfs"];

/// The command where it may start git with the hooks of the repository: what only reads runs without them.
pub(super) fn runs_hooks(words: &[Word]) -> Option<Vec<Word>> {
    let starts = started(words, &THROUGH)?;
    commands::reads(&starts).is_err().then_some(starts)
}

/// The command of git's that the words start, also where xargs or find pass more on to it, or that of one of these programs.
pub(super) fn started(words: &[Word], through: &[&str]) -> Option<Vec<Word>> {
    let is = |word: &Word, known: &[&str]| {
        let name = word.known();
        name.rsplit('/').next().is_some_and(|name| known.contains(&name))
    };
    let mut words = words;
    while let Some(at) = wrapper::carried(words) {
        words = match words.get(at..).filter(|rest| !rest.is_empty()) {
            Some(rest) => rest,
            // Behind its options any word may be the program.
            None => &words[1 + words[1..].iter().position(|word| is(word, &["git"]) || is(word, through))?..],
        };
    }
    let name = words.first()?;
    let git = || [&[commands::plain("git")], &words[1..]].concat();
    if is(name, &["git"]) { Some(git()) } else { is(name, through).then(|| words.to_vec()) }
}

/// Why the repository must not be read by a command that a rule lets pass, though its options are not known to only read:
/// who allowed `git diff` thought of reading.
pub(super) fn unfit(query: &Query, words: &[Word], cwd: &Cwd, files: &dyn Files) -> Option<String> {
    let words = inner(words)?;
    let option = |at: usize| words[at].prefix().starts_with('-') || at > 1 && words[at - 1].known() == "-C";
    let subcommand = (1..words.len()).find(|at| !option(*at))?;
    paths::gate(query, &commands::reads(&words[..=subcommand]).ok()?, cwd, files).err()
}

/// Whether git's words may show addresses of remotes, also in a form of which nobody knows that it only reads.
pub(super) fn tells_addresses(words: &[Word]) -> bool {
    const KEEPING: [&str; 9] =
        ["add", "rename", "remove", "rm", "set-url", "set-head", "set-branches", "prune", "update"];
    let known: Vec<String> = words.iter().map(Word::known).collect();
    let valued = |at: usize| matches!(known[at].as_str(), "-C" | "-c");
    let Some(at) = (1..known.len()).find(|at| !known[*at].starts_with('-') && !valued(at - 1)) else { return false };
    let rest: Vec<&str> = known[at + 1..].iter().map(String::as_str).collect();
    match known[at].as_str() {
        "config" => commands::git::tells_addresses(&rest),
        "remote" => rest.first().is_some_and(|what| !KEEPING.contains(what)),
        "ls-remote" => true,
        _ => false,
    }
}

/// Beside a git command that changes something, one that reads would run hooks, too: that asks, or a rule allows it.
pub(super) fn beside(parts: &mut [Part]) {
    if parts.iter().any(|part| part.git == Git::Changes) {
        for part in parts.iter_mut().filter(|part| part.git == Git::Reads { ruled: false }) {
            let reason = "next to a git command that may change something, it may also run the repository's hooks";
            paths::worse(&mut part.verdict, Verdict::new(Behavior::Ask, reason));
        }
    }
}

/// Whether git must run nothing that a repository names: something in the line passes because git only reads, and nothing
/// in it changes things with git or is there for a person to decide.
pub(super) fn quiet(parts: &[Part]) -> bool {
    let edit = |part: &Part| part.basis == Basis::Edit || part.writes;
    let asks = |part: &Part| !part.read_only && !edit(part) && part.verdict.behavior != Behavior::Allow;
    parts.iter().any(|part| matches!(part.git, Git::Reads { .. }))
        && !parts.iter().any(|part| part.git == Git::Changes || asks(part))
}
