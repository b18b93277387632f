//! What is known of git: subcommands that only read, and how plan mode keeps them from writing and running programs.

mod added;
mod config;
mod quiet;
mod shown;

pub(in crate::permission) use self::added::{Gathered, gathered, left_out};
pub(in crate::permission) use self::config::tells_addresses;
pub(in crate::permission) use self::quiet::{everything, may_show};
use super::super::shell::Word;
use super::{Listed, Named, Operands, Reach, Reader, Reads, Tracked, may_be_option, plain};

/// Most colons in one word; behind each a path may begin.
const MAX_COLONS: usize = 16;

/// Settings under which ripgrep reads no options of its own, and git writes no lock or index and runs no monitor, pager, hook, signature check, external diff or text
/// conversion, and takes no place from the environment: the environment of every shell line that runs because it only
/// reads. What the repository's configuration names beyond that is the matter of `repository::judge`.
/// `GIT_CONFIG_PARAMETERS` is what `git -c` sets, so that a user's own `GIT_CONFIG_*` stay in force beside it; the exported
/// function adds what has no setting.
pub const QUIET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    // A file of options may make every search show what is hidden, or run a program on each file.
    ("RIPGREP_CONFIG_PATH", ""),
    // A pager that is piped runs this on each file.
    ("LESSOPEN", ""),
    ("LESS", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    (
        "GIT_CONFIG_PARAMETERS",
        "'safe.barerepository=explicit' 'core.fsmonitor=false' 'diff.autorefreshindex=false' 'core.hookspath=/dev/null' 'core.pager=cat' 'log.showsignature=false' 'log.diffmerges=separate' 'gpg.program=false' \
         'gpg.openpgp.program=false' 'gpg.x509.program=false' 'gpg.ssh.program=false'",
    ),
    (
        "BASH_FUNC_git%%",
        "() { local words=() seen= skip= word; \
         for word in \"$@\"; do words+=(\"$word\"); \
         if [ -n \"$skip\" ]; then skip=; \
         elif [ -n \"$seen\" ]; then case $word in --ext*|--textc*|--out*|-O*|--open*) \
         echo \"git: $word does more than read\" >&2; return 1;; \
         show) [ \"$seen\" = stash ] && words+=(--no-ext-diff --no-textconv) && seen=1;; esac; \
         else case $word in \
         diff|log|show|whatchanged|reflog) seen=1; [ \"$word\" = reflog ] || words+=(--no-ext-diff --no-textconv);; \
         grep|blame) words+=(--no-textconv); seen=1;; \
         -C) skip=1;; -*) ;; *) seen=$word;; esac; fi; done; \
         (unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
         GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_PREFIX GIT_ATTR_SOURCE GIT_EXTERNAL_DIFF; command git \"${words[@]}\"); }",
    ),
];

/// Options of the diff family and of revision walking that only read. Not --help, which starts a viewer of manuals, and not
/// --text and --binary, which show what [`WITHHELD`](super::super::WITHHELD) keeps back.
const DIFF: &str = "oneline stat? numstat shortstat dirstat? summary name-only name-status patch no-patch raw patch-with-stat \
    unified= color? no-color word-diff? word-diff-regex= color-words? cached staged merge-base minimal patience histogram \
    diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol \
    find-renames? find-copies? find-copies-harder no-renames full-index abbrev? no-abbrev diff-filter= pickaxe-all \
    pickaxe-regex relative? no-relative exit-code quiet check inter-hunk-context= function-context no-ext-diff \
    no-textconv ignore-submodules? no-prefix src-prefix= dst-prefix= compact-summary \
    graph decorate? no-decorate decorate-refs= all branches? tags? remotes? glob= max-count= skip= since= after= until= \
    before= author= committer= grep= invert-grep all-match regexp-ignore-case extended-regexp fixed-strings perl-regexp \
    merges no-merges min-parents= max-parents= first-parent reverse follow pretty? format= date= relative-date \
    abbrev-commit no-abbrev-commit parents children left-right cherry-mark cherry-pick boundary simplify-by-decoration \
    full-history topo-order date-order author-date-order walk-reflogs no-walk? source left-only right-only cherry count \
    not show-pulls ancestry-path? notes? no-notes reflog no-mailmap use-mailmap mailmap cc combined-all-paths root no-commit-id \
    clear-decorations diff-merges=";

const fn sub(name: &'static str, flags: &'static str, valued: &'static str, long: &'static str) -> Reader {
    Reader {
        name,
        flags,
        valued,
        attached: "",
        pathed: "",
        long,
        operands: Operands::Data,
        deep: &[],
        below: Reach::Everything,
        wide: ("", ""),
        naming: ("", ""),
        acts: true,
        unsure: true,
    }
}

/// Subcommands that only read with these options. Their operands are revisions and paths in the repository.
const SUBCOMMANDS: &[Reader] = &[
    // Not --output, --ext-diff, --textconv, -O: they write or run programs.
    Reader { deep: &["--no-index"], wide: ("", "no-index"), ..sub("diff", "puswbRMCDWzBct0", "UlSG", DIFF) },
    sub("log", "puswbRMCDWziEFPgcmqrt0", "UnlSGL", DIFF),
    sub("show", "puswbRMCDWzciEFPmqrt0", "UnlSGL", DIFF),
    sub("whatchanged", "puswbRMCDWzci0", "UnlSG", DIFF),
    sub(
        "shortlog",
        "nsec0",
        "w",
        "numbered summary email committer group= format= all since= until= after= before= no-merges author=",
    ),
    sub(
        "status",
        // Not -v: its diff may run text conversions.
        "sbzu",
        "",
        "short branch porcelain? long show-stash untracked-files? ignored? ignore-submodules? ahead-behind no-ahead-behind renames no-renames null column? no-column",
    ),
    sub(
        "blame",
        "bceflnpstwM C",
        "L",
        "root show-stats line-porcelain porcelain incremental encoding= date= show-name show-number show-email color-lines color-by-age ignore-rev= abbrev= no-textconv",
    ),
    sub(
        "rev-parse",
        "q",
        "",
        "abbrev-ref? all branches? tags? remotes? default= git-common-dir git-dir absolute-git-dir is-bare-repository is-inside-git-dir is-inside-work-tree is-shallow-repository local-env-vars show-cdup show-prefix show-toplevel short? symbolic symbolic-full-name verify quiet revs-only no-revs flags no-flags show-object-format? show-superproject-working-tree",
    ),
    sub(
        "rev-list",
        "n0",
        "n",
        "count all branches? tags? remotes? max-count= since= until= author= reverse objects topo-order no-merges merges first-parent left-right left-only right-only cherry-pick abbrev-commit oneline pretty? format= skip= parents",
    ),
    sub(
        "ls-files",
        "cdmosuzktvf",
        "x",
        "cached deleted modified others ignored stage unmerged killed exclude= exclude-standard error-unmatch full-name abbrev? eol deduplicate format= directory no-empty-directory",
    ),
    sub("ls-tree", "drtlz", "", "long name-only name-status object-only full-name full-tree abbrev? format="),
    sub("cat-file", "tspe", "", ""),
    sub(
        "describe",
        // Not --dirty and --broken: they refresh the index.
        "",
        "",
        "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent",
    ),
    sub("check-attr", "az", "", "all cached"),
    sub("merge-base", "a", "", "all octopus independent is-ancestor fork-point"),
    sub("name-rev", "", "", "tags refs= exclude= all name-only no-undefined always"),
    sub(
        "for-each-ref",
        "spt",
        "",
        "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case exclude=",
    ),
    sub("show-ref", "dqs", "", "head branches heads tags dereference hash? verify abbrev? quiet exists"),
    sub("cherry", "v", "", "verbose abbrev?"),
    sub("count-objects", "vH", "", "verbose human-readable"),
    sub("diff-tree", "rtpuszmcv", "", DIFF),
    sub("check-ignore", "qvnz", "", "quiet verbose non-matching no-index"),
    // Not -l, which shows the configuration of all files.
    sub("var", "", "", ""),
    sub("version", "", "", "build-options"),
];

/// Whether all that a subcommand may do without changing anything is listed: of `log`, `diff` or `grep`, and not of `branch`.
pub(super) fn is_listed(subcommand: &str) -> bool {
    subcommand == "grep" || SUBCOMMANDS.iter().any(|reader| reader.name == subcommand)
}

/// Subcommands whose operands are paths, too: of what they show contents, or of what is told about it.
const PATHED: [&str; 7] = ["show", "cat-file", "diff", "blame", "log", "whatchanged", "diff-tree"];

/// Adds the paths that an operand may name: as such, behind the marks of a pathspec, or in a commit.
fn add_paths(word: &Word, reads: &mut Reads) -> Result<(), String> {
    // Outside of a repository git diff reads any path; and rules about a file speak about its history, too.
    let (text, option) = (word.known(), word.prefix().starts_with('-'));
    if !option {
        reads.paths.push(word.clone());
        let marked = pathspec(&text)?;
        // The character behind a backslash stands for itself.
        let bare = marked.unwrap_or(&text).replace('\\', "");
        if text.contains(['*', '?', '[', '\\']) {
            reads.patterns.push(bare.clone());
        }
        reads.paths.extend(text.contains('\\').then(|| plain(&bare)));
        let marked = marked.map(|_| plain(&bare));
        reads.paths.extend(marked.clone());
        reads.from_top.extend(marked);
    }
    // Of a revision with colons of its own, any may stand before the path; `-L1,5:path` is the range of a file.
    if !option || text.starts_with("-L") {
        if text.matches(':').count() > MAX_COLONS {
            return Err("a word holds more colons than a revision and a path have".into());
        }
        let paths = text.match_indices(':').map(|(at, _)| &text[at + 1..]);
        let paths: Vec<Word> = paths.filter(|path| !path.is_empty()).map(plain).collect();
        reads.paths.extend(paths.iter().cloned());
        reads.from_top.extend(paths);
    }
    Ok(())
}

/// Whether a git command only reads.
///
/// # Errors
/// Why it is not known to.
pub(super) fn reads(arguments: &[Word]) -> Result<Reads, String> {
    let mut reads = Reads { git: Some(Vec::new()), ..Reads::default() };
    let mut rest = arguments;
    // Options before the subcommand.
    loop {
        let Some((word, after)) = rest.split_first() else {
            return if arguments.is_empty() { Err("git alone".into()) } else { Ok(reads) };
        };
        match word.literal().as_deref() {
            Some(
                "--no-pager"
                | "--no-optional-locks"
                | "--no-replace-objects"
                | "--literal-pathspecs"
                | "--version"
                | "--no-lazy-fetch",
            ) => {
                rest = after;
            }
            // What it finds there must lie inside.
            Some("-C") => {
                let (path, after) = after.split_first().ok_or("git -C without a folder")?;
                reads.paths.push(path.clone());
                reads.git.get_or_insert_default().push(path.clone());
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
        shown::shows(reader, arguments, &mut reads);
        if PATHED.contains(&name.as_str()) {
            for word in arguments {
                add_paths(word, &mut reads)?;
            }
        }
        if let Some(word) = texts.iter().find(|text| checks_signature(text)) {
            return Err(format!("{word} runs the program that checks signatures"));
        }
        if let Some(word) = texts.iter().find(|text| merges_again(text)) {
            return Err(format!("{word} may merge again, which writes and runs merge drivers"));
        }
        // The only short option with a value that may be left out.
        let untracked = |word: &Word| matches!(word.literal().as_deref(), Some("-uno" | "-unormal" | "-uall"));
        let arguments: Vec<Word> =
            arguments.iter().filter(|word| name != "status" || !untracked(word)).cloned().collect();
        let inner = reader.reads(&arguments)?;
        reads.paths.extend(inner.paths);
        reads.reach = if name == "diff" { inner.reach.max(Reach::Entered) } else { inner.reach };
        reads.follows = inner.follows;
        return Ok(reads);
    }
    let known = |text: &&str, known: &[&str]| {
        known.contains(text) || known.iter().any(|known| known.ends_with('=') && text.starts_with(known))
    };
    let plain = |text: &&str| !text.starts_with('-');
    let harmless = match name.as_str() {
        // Names alone would make a branch, a tag; behind an option that lists they are patterns.
        "branch" => {
            let asks = |text: &&str| known(text, LISTING);
            texts.iter().all(|text| asks(text) || known(text, BRANCH) || plain(text))
                && (texts.iter().any(asks) || !texts.iter().any(plain))
        }
        "tag" => {
            let asks = |text: &&str| {
                known(text, LISTING)
                    || text
                        .strip_prefix("-n")
                        .or(text.strip_prefix("-l"))
                        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            };
            texts.iter().all(|text| asks(text) || known(text, TAG) || plain(text))
                && (texts.iter().any(asks) || !texts.iter().any(plain))
        }
        "remote" => {
            reads.addresses = !texts.is_empty();
            matches!(texts.as_slice(), [] | ["-v" | "--verbose"])
                || matches!(texts.as_slice(), ["get-url", name] if !name.starts_with('-'))
        }
        "stash" => match texts.as_slice() {
            ["list"] => true,
            ["show", rest @ ..] => rest.iter().all(|text| plain(text) || known(text, STASH)),
            _ => false,
        },
        "worktree" => matches!(texts.as_slice(), ["list"] | ["list", "--porcelain"]),
        "reflog" => {
            let rest = texts.strip_prefix(["show"].as_slice()).unwrap_or(&texts);
            rest.iter().all(|text| {
                known(text, REFLOG)
                    || text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
                    || text.starts_with("HEAD@{")
            })
        }
        "symbolic-ref" => {
            let operands = texts.iter().filter(|text| plain(text)).count();
            operands == 1 && texts.iter().all(|text| plain(text) || known(text, SYMBOLIC))
        }
        "notes" => matches!(texts.as_slice(), [] | ["list"]),
        "submodule" => matches!(texts.as_slice(), [] | ["status"]),
        "config" => {
            reads.addresses = config::tells_addresses(&texts);
            config::tells(&texts)
        }
        "grep" => {
            let inner = GREP.reads(arguments)?;
            shown::shows(&GREP, arguments, &mut reads);
            for word in &inner.paths {
                add_paths(word, &mut reads)?;
            }
            return Ok(Reads { reach: inner.reach, follows: inner.follows, ..reads });
        }
        _ => false,
    };
    let told = !matches!(name.as_str(), "branch" | "tag") || shown::tells_fields(&texts);
    if !told || texts.iter().any(|text| matches!(*text, "-p" | "--patch")) {
        (reads.tracked, reads.named) = (Tracked::Ever, vec![Named::Object]);
    }
    // Asking for a signature runs the program that checks it.
    if harmless && !texts.iter().any(|text| checks_signature(text)) {
        Ok(reads)
    } else {
        Err(format!(
            "git {} is not known to be read-only",
            std::iter::once(name.as_str()).chain(texts).collect::<Vec<_>>().join(" ")
        ))
    }
}

/// Options of branch and tag that make them list, so that names are patterns or revisions. Not `-l`: it once made a branch.
const LISTING: &[&str] = &[
    "--list",
    "--merged",
    "--no-merged",
    "--contains",
    "--no-contains",
    "--points-at",
    "--merged=",
    "--no-merged=",
    "--contains=",
    "--no-contains=",
    "--points-at=",
];

const BRANCH: &[&str] = &[
    "-a",
    "-r",
    "-v",
    "-vv",
    "-l",
    "--all",
    "--remotes",
    "--verbose",
    "--show-current",
    "--no-color",
    "--color",
    "--sort=",
    "--format=",
    "--column",
    "--no-column",
    "-i",
    "--ignore-case",
    "--abbrev=",
    "--color=",
];

const TAG: &[&str] = &["--sort=", "--format=", "--no-color", "--color", "--column", "-i", "--ignore-case", "--color="];

/// What a path with a mark such as `:(top)` or `:/` before it names.
///
/// # Errors
/// Why nobody knows which files it means.
fn pathspec(text: &str) -> Result<Option<&str>, String> {
    let Some(rest) = text.strip_prefix(':') else { return Ok(None) };
    let (marks, path) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some(found) => found,
        None => {
            let path = rest.trim_start_matches(['/', '!', '^']);
            (if rest.starts_with(['!', '^']) { "exclude" } else { "" }, path)
        }
    };
    if marks.split(',').any(|mark| mark == "exclude") {
        return Ok(None);
    }
    match marks.split(',').all(|mark| matches!(mark, "" | "top" | "literal" | "icase")) {
        true => Ok(Some(path).filter(|path| !path.is_empty())),
        false => Err(format!("nobody knows which files {text} means")),
    }
}

/// Whether the option may show a merge by doing it again.
fn merges_again(text: &str) -> bool {
    const PLAIN: [&str; 10] =
        ["off", "none", "on", "m", "first-parent", "1", "separate", "combined", "dense-combined", "cc"];
    text.strip_prefix("--diff-merges")
        .is_some_and(|value| !PLAIN.iter().any(|plain| value.strip_prefix('=') == Some(plain)))
}

/// Whether a format's placeholder or an option runs the program that checks signatures.
fn checks_signature(text: &str) -> bool {
    // A sign between says what becomes of the line's end.
    let signs = |part: &str| part.trim_start_matches(['+', '-', ' ']).starts_with('G');
    text.split('%').skip(1).any(signs)
        || text.contains("%(signature")
        || text.contains("%(*signature")
        || text.contains("show-signature")
}

const STASH: &[&str] = &["-p", "--patch", "--stat", "--name-only", "--name-status"];

const REFLOG: &[&str] =
    &["--all", "--oneline", "--date=", "--format=", "--pretty=", "--no-abbrev", "-n", "HEAD", "--max-count="];

const SYMBOLIC: &[&str] = &["--short", "-q", "--quiet"];

/// Not -O and --open-files-in-pager, which run a program, nor --no-index and -f.
const GREP: Reader = Reader {
    operands: Operands::PatternDeep,
    // What git tracks is in the history, which other subcommands show.
    below: Reach::Names,
    wide: ("", "untracked"),
    ..sub(
        "grep",
        "IivwEGFPnlLzochqpWr0H",
        "eABCm",
        "cached no-textconv ignore-case word-regexp invert-match extended-regexp basic-regexp perl-regexp \
         fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count \
         color? no-color break heading show-function context= after-context= before-context= function-context and or not \
         all-match quiet max-depth= recursive no-recursive max-count= threads= full-name",
    )
};

/// The subcommands that may only read, with the options of which something is known.
pub(super) fn listed() -> Vec<Listed> {
    let words = |lists: &[&[&str]]| {
        let words = lists.concat().into_iter().map(|word| (word.trim_end_matches('=').to_owned(), word.ends_with('=')));
        words.collect::<Vec<_>>()
    };
    let mut all: Vec<Listed> = SUBCOMMANDS.iter().chain([&GREP]).map(Reader::listed).collect();
    all.extend([
        ("branch", words(&[LISTING, BRANCH])),
        ("tag", words(&[LISTING, TAG, &["-n", "-l"]])),
        ("reflog", words(&[REFLOG, &["show"]])),
        ("config", words(&[config::PLACES, config::ASKS])),
        ("remote", words(&[&["-v", "--verbose", "get-url"]])),
        ("stash", words(&[&["list", "show"], STASH])),
        ("worktree", words(&[&["list", "--porcelain"]])),
        ("symbolic-ref", words(&[SYMBOLIC])),
        ("notes", words(&[&["list"]])),
        ("submodule", words(&[&["status"]])),
    ]);
    all
}

#[cfg(test)]
mod tests {
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
            ("branch --list new", true),
            ("branch -D x", false),
            ("branch --merged main", true),
            ("branch --contains HEAD", true),
            ("branch -l x", false),
            ("branch -a x", false),
            ("branch --list -D x", false),
            ("branch --format=x new", false),
            ("tag", true),
            ("tag -n5", true),
            ("tag --contains HEAD", true),
            ("tag --sort=x v1", false),
            ("tag --list -d", false),
            ("status -uno", true),
            ("status -v", false),
            ("stash show -p stash@{0}", true),
            ("stash show --ext-diff", false),
            ("reflog -10", true),
            ("reflog show --all", true),
            ("reflog expire", false),
            ("reflog delete HEAD@{1}", false),
            ("symbolic-ref --short HEAD", true),
            ("symbolic-ref HEAD refs/heads/x", false),
            ("symbolic-ref -d HEAD", false),
            ("config user.name", true),
            ("config --global --list", false),
            ("config --list", false),
            ("config --local --list", true),
            ("config --list --name-only", true),
            ("config --get http.https://github.com/.extraheader", false),
            ("config --get-regexp .*", false),
            ("log --diff-merges=remerge", false),
            ("log --diff-merges=r", false),
            ("show --diff-merges remerge", false),
            ("log --diff-merges=first-parent", true),
            ("config --show-origin --get user.email", true),
            ("config --get-regexp alias", false),
            ("config --get-regexp ^alias\\.", true),
            ("config edit", false),
            ("config --get -e", false),
            ("config --get-all --unset", false),
            ("config --list --file=x", false),
            ("config --unset user.name", false),
            ("config -f x a.b", false),
            ("log --format=%G?", false),
            ("log --pretty=format:%h%GG", false),
            ("log --show-signature", false),
            ("for-each-ref --format=%(signature)", false),
            ("branch --format=%(signature:key)", false),
            ("blame -S/etc/passwd a", false),
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

    /// Runs real git in a repository whose configuration names programs that are switched off even so: the user's own may
    /// name such ones, too.
    #[cfg(unix)]
    #[test]
    fn a_quiet_git_runs_nothing_that_a_repository_names() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("ran");
        let shell = |line: &str, quiet: bool| {
            let mut command = std::process::Command::new("bash");
            command.args(["--norc", "--noprofile", "-c", line]).current_dir(dir.path()).env("HOME", dir.path());
            command.envs(QUIET.iter().copied().filter(|_| quiet)).output().unwrap()
        };
        let program = format!("touch {}; cat", mark.display());
        let setup = format!(
            "git init -q . && echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm m && \
             echo 'a diff=d' > .gitattributes && echo y > a; \
             for key in core.fsmonitor diff.d.textconv diff.d.command diff.external gpg.program core.pager; \
             do git config $key '{program}'; done; git config log.showSignature true"
        );
        shell(&setup, false);
        for line in [
            "git status --short",
            "git diff",
            "git -C . diff --stat",
            "git log -p",
            "git show",
            "git blame a",
            "git grep y",
            "git reflog",
            "git log | cat",
            "git --no-pager diff",
            "set -u; git branch",
        ] {
            // A file that looks changed is filtered again.
            shell("touch a", false);
            let output = shell(line, true);
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!mark.exists(), "{line}");
        }
        shell("touch a; git status", false);
        assert!(mark.exists(), "the repository tests nothing");
    }
}
