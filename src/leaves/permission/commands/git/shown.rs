//! Which subcommands of git show what is in files, and not only names and figures.

use super::Tracked;

/// Options with which no contents are shown that were not without them.
const PATCHLESS: &str = "-- --oneline --graph --decorate --no-decorate --all --branches --tags --remotes --glob --max-count --skip \
    --since --after --until --before --author --committer --grep --invert-grep --all-match --regexp-ignore-case \
    --extended-regexp --fixed-strings --format --pretty --date --relative-date --abbrev-commit --abbrev --no-abbrev-commit \
    --merges --no-merges --first-parent --reverse --follow --topo-order --date-order --left-right --cherry-pick --cherry-mark \
    --full-history --count --no-notes --diff-filter --find-renames --no-renames --cached --staged --exit-code --root \
    --no-commit-id --no-ext-diff --no-textconv --no-walk --source --boundary --parents --children --not --no-color --color \
    --simplify-by-decoration --ignore-submodules --no-prefix --relative -n -r -t -z -i -E -F -P";
/// Options with which names or figures stand in the place of contents.
const SUMMARIES: &str =
    "--stat --numstat --shortstat --dirstat --summary --name-only --name-status --raw --no-patch --quiet -s";

/// Options with which a search tells names and counts alone.
const NAMED: &str = "-l -L -c -q --files-with-matches --files-without-match --name-only --count --quiet";

/// Which contents the subcommand shows: none only where every option is known to show none.
pub(super) fn shows(name: &str, texts: &[&str]) -> Tracked {
    let within = |list: &str, text: &str| {
        let option = text.split('=').next().unwrap_or_default();
        list.split_ascii_whitespace().any(|known| known == option)
    };
    let summary = |text: &&str| within(SUMMARIES, text);
    let patchless = |text: &&str| {
        // A number of commits, a number of them in one word with its option, and what is searched for.
        let inline = text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
            || ["-n", "-S", "-G", "-M", "-C"].iter().any(|option| text.starts_with(option));
        !text.starts_with('-') || inline || within(PATCHLESS, text) || summary(text)
    };
    let none = texts.iter().all(patchless);
    match name {
        "cat-file" if texts.iter().any(|text| matches!(*text, "-t" | "-s" | "-e")) => Tracked::No,
        "blame" | "cat-file" => of_any_path(texts),
        "diff" | "show" if none && texts.iter().any(summary) => Tracked::No,
        "diff" => {
            let before = texts.iter().take_while(|text| **text != "--");
            let index =
                before.into_iter().all(|text| text.starts_with('-') && !matches!(*text, "--cached" | "--staged"));
            if index { Tracked::Index } else { of_any_path(texts) }
        }
        "show" => of_any_path(texts),
        "grep" if texts.iter().any(|text| within(NAMED, text)) => Tracked::No,
        "grep" => Tracked::Index,
        "log" | "whatchanged" | "diff-tree" | "stash" if !none => Tracked::Ever,
        _ => Tracked::No,
    }
}

/// What each names as a path of a commit is judged as that path.
fn of_any_path(texts: &[&str]) -> Tracked {
    let named = |text: &&str| text.split_once(':').is_some_and(|(_, path)| !path.is_empty());
    let mut operands = texts.iter().filter(|text| !text.starts_with('-')).peekable();
    if operands.peek().is_some() && operands.all(named) { Tracked::No } else { Tracked::Ever }
}
