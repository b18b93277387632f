//! What is known of git: subcommands that only read, and how plan mode keeps them from writing and running programs.

use super::super::shell::Word;
use super::{Operands, Reader, Reads, may_be_option};

/// Settings under which git writes no lock or index and runs no monitor, pager, hook, external diff or text conversion:
/// the environment for every shell line in plan mode. `GIT_CONFIG_*` has the strength of `-c`; the exported function adds
/// the options that have no setting.
pub const QUIET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "log.showSignature"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_CONFIG_KEY_3", "core.pager"),
    ("GIT_CONFIG_VALUE_3", "cat"),
    (
        "BASH_FUNC_git%%",
        "() { local words=() seen= word; for word in \"$@\"; do words+=(\"$word\"); \
         if [ -z \"$seen\" ]; then case $word in diff|log|show|whatchanged) words+=(--no-ext-diff --no-textconv); seen=1;; \
         grep|blame) words+=(--no-textconv); seen=1;; -C|-*) ;; *) seen=1;; esac; fi; done; command git \"${words[@]}\"; }",
    ),
];

/// Options of the diff family and of revision walking that only read.
const DIFF: &str = "oneline stat? numstat shortstat dirstat? summary name-only name-status patch no-patch raw patch-with-stat \
    unified= color? no-color word-diff? word-diff-regex= color-words? cached staged merge-base minimal patience histogram \
    diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol \
    find-renames? find-copies? find-copies-harder no-renames full-index abbrev? no-abbrev binary diff-filter= pickaxe-all \
    pickaxe-regex relative? no-relative text exit-code quiet check inter-hunk-context= function-context no-ext-diff \
    no-textconv ignore-submodules? submodule? no-prefix src-prefix= dst-prefix= compact-summary no-index \
    graph decorate? no-decorate decorate-refs= all branches? tags? remotes? glob= max-count= skip= since= after= until= \
    before= author= committer= grep= invert-grep all-match regexp-ignore-case extended-regexp fixed-strings perl-regexp \
    merges no-merges min-parents= max-parents= first-parent reverse follow pretty? format= date= relative-date \
    abbrev-commit no-abbrev-commit parents children left-right cherry-mark cherry-pick boundary simplify-by-decoration \
    full-history topo-order date-order author-date-order walk-reflogs no-walk? source left-only right-only cherry count \
    not show-pulls ancestry-path? notes? no-notes reflog no-mailmap use-mailmap mailmap cc combined-all-paths root \
    clear-decorations shortstat diff-merges= help";

const fn sub(name: &'static str, flags: &'static str, valued: &'static str, long: &'static str) -> Reader {
    Reader { name, flags, valued, pathed: "", long, operands: Operands::Data, deep: &[] }
}

/// Subcommands that only read with these options. Their operands are revisions and paths in the repository.
const SUBCOMMANDS: &[Reader] = &[
    // Not --no-index, --output, --ext-diff, --textconv, -O: the first reads anywhere, the others write or run programs.
    sub("diff", "pusawbRMCDWzBct0", "UlSG", DIFF),
    sub("log", "pusawbRMCDWziEFPgcmqrt0", "UnlSGL", DIFF),
    sub("show", "pusawbRMCDWzciEFPmqrt0", "UnlSGL", DIFF),
    sub("whatchanged", "pusawbRMCDWzci0", "UnlSG", DIFF),
    sub("shortlog", "nsec0", "w", "numbered summary email committer group= format= all since= until= after= before= no-merges author="),
    sub("status", "sbvzu", "", "short branch verbose porcelain? long show-stash untracked-files? ignored? ignore-submodules? ahead-behind no-ahead-behind renames no-renames null column? no-column help"),
    sub("blame", "bceflnpstwM C", "LS", "root show-stats line-porcelain porcelain incremental encoding= date= show-name show-number show-email color-lines color-by-age ignore-rev= abbrev= no-textconv"),
    sub("rev-parse", "q", "", "abbrev-ref? all branches? tags? remotes? default= git-common-dir git-dir absolute-git-dir is-bare-repository is-inside-git-dir is-inside-work-tree is-shallow-repository local-env-vars show-cdup show-prefix show-toplevel short? symbolic symbolic-full-name verify quiet revs-only no-revs flags no-flags show-object-format? show-superproject-working-tree"),
    sub("rev-list", "n0", "n", "count all branches? tags? remotes? max-count= since= until= author= reverse objects topo-order no-merges merges first-parent left-right left-only right-only cherry-pick abbrev-commit oneline pretty? format= skip= parents"),
    sub("ls-files", "cdmosuzktvf", "x", "cached deleted modified others ignored stage unmerged killed exclude= exclude-standard error-unmatch full-name abbrev? eol deduplicate recurse-submodules format= directory no-empty-directory"),
    sub("ls-tree", "drtlz", "", "long name-only name-status object-only full-name full-tree abbrev? format="),
    sub("cat-file", "tspe", "", ""),
    sub("describe", "", "", "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent dirty? broken?"),
    sub("merge-base", "a", "", "all octopus independent is-ancestor fork-point"),
    sub("name-rev", "", "", "tags refs= exclude= all name-only no-undefined always"),
    sub("for-each-ref", "spt", "", "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case exclude="),
    sub("show-ref", "dqs", "", "head branches heads tags dereference hash? verify abbrev? quiet exists"),
    sub("cherry", "v", "", "verbose abbrev?"),
    sub("count-objects", "vH", "", "verbose human-readable"),
    sub("diff-tree", "rtpuszmcv", "", DIFF),
    sub("check-ignore", "qvnz", "", "quiet verbose non-matching no-index"),
    sub("var", "l", "", ""),
    sub("version", "", "", "build-options"),
];

/// Whether a git command only reads.
///
/// # Errors
/// Why it is not known to.
pub(super) fn reads(arguments: &[Word]) -> Result<Reads, String> {
    let mut reads = Reads::default();
    let mut rest = arguments;
    // Options before the subcommand.
    loop {
        let Some((word, after)) = rest.split_first() else {
            return if arguments.is_empty() { Err("git alone".into()) } else { Ok(reads) };
        };
        match word.literal().as_deref() {
            Some("--no-pager" | "--no-optional-locks" | "--no-replace-objects" | "--literal-pathspecs" | "--version" | "--no-lazy-fetch") => {
                rest = after;
            }
            // Another repository has another configuration, with programs of its own: it must lie inside.
            Some("-C") => {
                let (path, after) = after.split_first().ok_or("git -C without a folder")?;
                reads.paths.push(path.clone());
                rest = after;
            }
            Some(text) if text.starts_with('-') => return Err(format!("git {text} is not a known harmless option")),
            Some(_) => break,
            None => return Err("the subcommand of git is not literal".into()),
        }
    }
    let (name, arguments) = rest.split_first().ok_or("git alone")?;
    let name = name.literal().unwrap_or_default();
    if let Some(word) = arguments.iter().find(|word| word.has_glob() && may_be_option(word)) {
        return Err(format!("{} may become an option", word.source));
    }
    let texts: Vec<String> = arguments.iter().map(Word::known).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    if let Some(reader) = SUBCOMMANDS.iter().find(|reader| reader.name == name) {
        if texts.iter().any(|text| *text == "--no-index") && name.starts_with("diff") {
            reads.paths.extend(arguments.iter().filter(|word| !word.prefix().starts_with('-')).cloned());
        }
        if name == "show" || name == "cat-file" || name == "diff" || name == "blame" || name == "log" {
            // Outside of a repository, and for what it names as files, git diff reads any path.
            reads.paths.extend(arguments.iter().filter(|word| looks_outside(word)).cloned());
        }
        let inner = reader.reads(arguments)?;
        reads.paths.extend(inner.paths);
        return Ok(reads);
    }
    let only = |known: &[&str]| texts.iter().all(|text| known.contains(text) || known.iter().any(|known| known.ends_with('=') && text.starts_with(known)));
    let harmless = match name.as_str() {
        // A name that is no option would make a branch, a tag, a remote.
        "branch" => {
            let listing = ["-a", "-r", "-v", "-vv", "-l", "--list", "--all", "--remotes", "--verbose", "--show-current", "--no-color", "--color", "--sort=", "--format=", "--column", "--no-column", "--merged", "--no-merged", "--contains", "--no-contains", "-i", "--ignore-case", "--abbrev="];
            only(&listing)
        }
        "tag" => {
            only(&["-l", "--list", "-n", "--sort=", "--format=", "--no-color", "--column", "--merged", "--no-merged", "-i", "--ignore-case", "--contains", "--no-contains"])
                || matches!(texts.as_slice(), ["-l" | "--list", pattern] if !pattern.starts_with('-'))
        }
        "remote" => matches!(texts.as_slice(), [] | ["-v" | "--verbose"]) || matches!(texts.as_slice(), ["get-url", name] if !name.starts_with('-')),
        "stash" => matches!(texts.as_slice(), ["list"]),
        "worktree" => matches!(texts.as_slice(), ["list"] | ["list", "--porcelain"]),
        "reflog" => texts.is_empty() || matches!(texts.as_slice(), ["show"] | ["show", "HEAD"]),
        "submodule" => matches!(texts.as_slice(), ["status"]),
        "config" => match texts.as_slice() {
            ["--list" | "-l"] | ["--get" | "--get-all", _] | ["list"] | ["get", _] => texts.last().is_some_and(|text| !text.starts_with("--file") && !text.starts_with("-f")),
            _ => false,
        },
        "grep" => return grep(arguments),
        _ => false,
    };
    if harmless { Ok(reads) } else { Err(format!("git {} is not known to only read", std::iter::once(name.as_str()).chain(texts).collect::<Vec<_>>().join(" "))) }
}

/// Not -O and --open-files-in-pager, which run a program, nor --no-index and -f.
fn grep(arguments: &[Word]) -> Result<Reads, String> {
    let reader = Reader {
        operands: Operands::Pattern,
        ..sub(
            "git grep",
            "aIivwEGFPnlLzochqpWr0H",
            "eABCm",
            "cached untracked no-textconv text ignore-case word-regexp invert-match extended-regexp basic-regexp perl-regexp \
             fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count \
             color? no-color break heading show-function context= after-context= before-context= function-context and or not \
             all-match quiet max-depth= recursive no-recursive max-count= threads= full-name",
        )
    };
    let reads = reader.reads(arguments)?;
    let paths: Vec<Word> = reads.paths.into_iter().filter(looks_outside).collect();
    Ok(Reads { paths, deep: true })
}

/// Whether an operand may name a file outside of the repository.
fn looks_outside(word: &Word) -> bool {
    let text = word.known();
    text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;

    #[test]
    fn subcommands() {
        for (line, want) in [
            ("status", true),
            ("status -sb", true),
            ("diff --stat HEAD~1", true),
            ("diff --output=x", false),
            ("diff --outp=x", false),
            ("diff --ext-diff", false),
            ("log --oneline -5", true),
            ("log --textconv", false),
            ("--no-pager log -p", true),
            ("-c core.pager=x log", false),
            ("-p log", false),
            ("--exec-path=/tmp log", false),
            ("--git-dir=/tmp/x log", false),
            ("branch", true),
            ("branch -a", true),
            ("branch new", false),
            ("branch --list new", false),
            ("branch -D x", false),
            ("tag", true),
            ("tag v1", false),
            ("tag -l v*", true),
            ("remote -v", true),
            ("remote add x y", false),
            ("stash", false),
            ("stash list", true),
            ("config --get user.name", true),
            ("config user.name x", false),
            ("grep -n foo", true),
            ("grep -Osh foo", false),
            ("grep --open-files-in-pager=sh foo", false),
            ("fetch --upload-pack=x", false),
            ("push", false),
            ("commit -m x", false),
            ("ls-remote x", false),
            ("bisect run x", false),
            ("cat-file --textconv x", false),
        ] {
            let words: Vec<Word> = line.split(' ').map(plain).collect();
            assert_eq!(reads(&words).is_ok(), want, "git {line}");
        }
    }

    #[test]
    fn quiet_settings_are_counted() {
        let count = QUIET.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY_")).count();
        assert!(QUIET.contains(&("GIT_CONFIG_COUNT", count.to_string().as_str())));
    }
}
