//! Which git commands, of those that may do more than read, show nothing of what is in tracked files: subcommands with the
//! options that are known to show nothing. Every other subcommand or option may show the contents of any file.

use super::super::super::dynamic::prints_hash;
use super::super::super::shell::{Piece, Word};
use super::super::commit::{Argument, Found, Subcommand};
use super::super::{Reach, Reads, Tracked, plain};
use super::shown::tells_fields;

/// Settings of a single command that change neither what it does nor what it shows of files.
const SETTINGS: &str = "user.name user.email author.name author.email committer.name committer.email color.ui core.quotepath \
    init.defaultbranch commit.gpgsign tag.gpgsign core.autocrlf core.safecrlf gc.auto protocol.version pull.rebase pull.ff \
    rebase.autostash advice.detachedhead push.default";

const ADD: &str = "dry-run/n verbose/v force/f update/u renormalize intent-to-add/N all/A no-all ignore-removal \
    no-ignore-removal refresh ignore-errors ignore-missing sparse chmod= pathspec-from-file= pathspec-file-nul";
const MERGING: &str = "ff ff-only no-ff commit no-commit edit/e no-edit squash no-squash stat compact-summary no-stat/n log? \
    no-log message=/m quiet/q verbose/v abort continue quit skip signoff/s no-signoff autostash no-autostash \
    strategy-option=/X strategy= allow-unrelated-histories file=/F verify no-verify gpg-sign?/S no-gpg-sign into-name= \
    rerere-autoupdate no-rerere-autoupdate progress no-progress allow-empty keep-redundant-commits cleanup= mainline=/m";
const NOTES: &str = "message=/m file=/F force/f allow-empty";
const NOTHING: &str = "quiet/q";

const fn quiet(name: &'static str, options: &'static str) -> Subcommand {
    Subcommand { name, options }
}

const QUIET: &[Subcommand] = &[
    quiet("add", ADD),
    quiet("stage", ADD),
    quiet(
        "commit",
        "quiet/q file=/F author= date= message=/m reuse-message=/C reedit-message=/c fixup= squash= reset-author trailer= \
         signoff/s no-signoff template=/t edit/e no-edit cleanup= status no-status gpg-sign?/S no-gpg-sign all/a include/i \
         only/o verify no-verify/n amend post-rewrite no-post-rewrite untracked-files?/u pathspec-from-file= \
         pathspec-file-nul allow-empty allow-empty-message",
    ),
    quiet(
        "push",
        "all branches tags follow-tags no-follow-tags dry-run/n porcelain force/f force-with-lease? no-force-with-lease \
         force-if-includes set-upstream/u quiet/q verbose/v progress no-progress thin no-thin ipv4/4 ipv6/6 atomic no-atomic \
         delete/d prune mirror push-option=/o signed? no-signed verify no-verify repo= recurse-submodules= \
         no-recurse-submodules",
    ),
    quiet(
        "fetch",
        "all append/a atomic depth= deepen= shallow-since= shallow-exclude= unshallow update-shallow dry-run force/f keep/k \
         multiple no-tags/n prune/p prune-tags/P tags/t jobs=/j quiet/q verbose/v progress no-progress ipv4/4 ipv6/6 \
         set-upstream filter= recurse-submodules? no-recurse-submodules refmap= update-head-ok/u porcelain no-write-fetch-head \
         auto-gc no-auto-gc auto-maintenance no-auto-maintenance refetch",
    ),
    quiet(
        "pull",
        "rebase?/r no-rebase ff ff-only no-ff autostash no-autostash commit no-commit edit/e no-edit squash no-squash stat \
         no-stat/n log? no-log strategy-option=/X strategy=/s verbose/v quiet/q all tags/t prune/p depth= force/f no-tags \
         signoff no-signoff allow-unrelated-histories verify no-verify jobs=/j recurse-submodules? no-recurse-submodules \
         progress no-progress ipv4/4 ipv6/6 set-upstream unshallow gpg-sign?/S",
    ),
    quiet(
        "clone",
        "local/l no-local no-hardlinks quiet/q verbose/v progress no-checkout/n bare mirror origin=/o branch=/b depth= \
         single-branch no-single-branch no-tags shallow-submodules jobs=/j filter= sparse dissociate shallow-since= \
         recurse-submodules? recursive",
    ),
    quiet(
        "remote",
        "verbose/v fetch/f tags no-tags track=/t master=/m mirror? all/a push add delete prune dry-run/n auto",
    ),
    quiet("ls-remote", "heads/h branches/b tags/t refs quiet/q exit-code get-url sort= symref server-option=/o"),
    quiet(
        "checkout",
        "quiet/q new=/b reset=/B track?/t no-track guess no-guess detach/d orphan= ours/2 theirs/3 force/f merge/m conflict= \
         progress no-progress overlay no-overlay l/l recurse-submodules? no-recurse-submodules ignore-other-worktrees",
    ),
    quiet(
        "switch",
        "create=/c force-create=/C detach/d guess no-guess force/f discard-changes merge/m conflict= quiet/q track?/t \
         no-track orphan= progress no-progress recurse-submodules? ignore-other-worktrees",
    ),
    quiet(
        "branch",
        "delete/d force-delete/D move/m force-move/M copy/c force-copy/C list/l all/a remotes/r verbose/v quiet/q track?/t \
         no-track set-upstream-to=/u unset-upstream force/f contains= no-contains= merged? no-merged? sort= format= abbrev? \
         no-abbrev show-current color? no-color column? no-column points-at= ignore-case/i create-reflog omit-empty \
         edit-description recurse-submodules",
    ),
    // Alone: to apply a patch may copy a file to another name.
    quiet("apply", "check stat numstat summary verbose/v quiet/q p=/p index cached recount"),
    quiet("merge", MERGING),
    quiet(
        "cherry-pick",
        "abort continue skip quit no-commit/n edit/e no-edit note/x signoff/s mainline=/m ff allow-empty \
        allow-empty-message keep-redundant-commits strategy-option=/X strategy= gpg-sign?/S no-gpg-sign cleanup= \
        rerere-autoupdate no-rerere-autoupdate",
    ),
    quiet(
        "revert",
        "abort continue skip quit no-commit/n edit/e no-edit signoff/s mainline=/m strategy-option=/X strategy= \
        gpg-sign?/S no-gpg-sign cleanup= reference rerere-autoupdate no-rerere-autoupdate",
    ),
    quiet(
        "rebase",
        "onto= abort continue skip quit keep-base root autostash no-autostash quiet/q verbose/v no-stat/n stat fork-point \
         no-fork-point rebase-merges?/r no-rebase-merges autosquash no-autosquash force-rebase/f no-ff signoff \
         strategy-option=/X strategy=/s update-refs no-update-refs reapply-cherry-picks no-reapply-cherry-picks interactive/i \
         edit-todo gpg-sign?/S no-gpg-sign verify no-verify merge/m empty= keep-empty no-keep-empty \
         committer-date-is-author-date reset-author-date ignore-date whitespace= ignore-whitespace rerere-autoupdate exec=/x",
    ),
    quiet(
        "stash push",
        "include-untracked/u no-include-untracked all/a keep-index/k no-keep-index message=/m quiet/q staged/S",
    ),
    quiet("stash save", "include-untracked/u all/a keep-index/k no-keep-index quiet/q staged/S"),
    quiet("stash pop", "index quiet/q"),
    quiet("stash apply", "index quiet/q"),
    quiet("stash drop", NOTHING),
    quiet("stash clear", ""),
    quiet("stash branch", ""),
    quiet("stash create", ""),
    quiet("stash store", "message=/m quiet/q"),
    quiet("stash list", "oneline max-count=/n date= format= pretty? stat name-only name-status abbrev? no-abbrev"),
    quiet(
        "tag",
        "list/l annotate/a delete/d force/f message=/m file=/F sort= format= contains= no-contains= merged? no-merged? \
         points-at= lines?/n cleanup= create-reflog color? column? no-column ignore-case/i sign/s no-sign local-user=/u \
         edit/e trailer= omit-empty",
    ),
    quiet(
        "restore",
        "source=/s staged/S worktree/W quiet/q progress no-progress ours/2 theirs/3 merge/m conflict= overlay no-overlay \
         ignore-unmerged recurse-submodules?",
    ),
    quiet("reset", "soft mixed hard merge keep quiet/q refresh no-refresh intent-to-add/N recurse-submodules?"),
    quiet("rm", "cached force/f dry-run/n recursive/r quiet/q ignore-unmatch sparse"),
    quiet("mv", "force/f dry-run/n skip/k verbose/v sparse"),
    quiet("clean", "d/d force/f dry-run/n quiet/q exclude=/e x/x X/X interactive/i"),
    quiet("init", "quiet/q bare initial-branch=/b object-format= ref-format= shared?"),
    // Not --blob, which shows a file's lines.
    quiet(
        "config",
        "local global system worktree add append replace-all unset unset-all rename-section remove-section bool int \
         bool-or-int bool-or-str path expiry-date type= get get-all get-regexp get-urlmatch get-color get-colorbool list/l \
         show-origin show-scope show-names name-only null/z default= fixed-value all regexp value= url= comment= includes \
         no-includes edit/e",
    ),
    quiet(
        "gc",
        "aggressive auto prune? no-prune quiet/q force keep-largest-pack cruft no-cruft max-cruft-size= detach no-detach",
    ),
    quiet("prune", "dry-run/n verbose/v progress no-progress expire="),
    quiet(
        "repack",
        "all/a A/A delete/d local/l no-reuse/f F/F quiet/q no-update/n window= depth= threads= window-memory= \
         max-pack-size= write-bitmap-index/b write-midx/m keep-unreachable/k unpack-unreachable= cruft cruft-expiration= \
         geometric=/g delta-islands/i keep-pack= filter=",
    ),
    quiet("pack-refs", "all prune no-prune auto include= exclude="),
    // Not --lost-found, which writes them out.
    quiet(
        "fsck",
        "unreachable dangling no-dangling root tags cache no-reflogs full no-full connectivity-only strict verbose progress \
         no-progress name-objects",
    ),
    quiet("hash-object", "t=/t w/w stdin path= no-filters literally"),
    quiet("submodule init", NOTHING),
    quiet("submodule status", "cached recursive quiet/q"),
    quiet("submodule add", "branch=/b force/f name= depth= quiet/q progress"),
    quiet("submodule deinit", "force/f all quiet/q"),
    quiet("submodule sync", "recursive quiet/q"),
    quiet("submodule absorbgitdirs", NOTHING),
    quiet(
        "submodule update",
        "init recursive force/f remote no-fetch/N checkout merge rebase depth= jobs=/j progress quiet/q recommend-shallow \
         no-recommend-shallow single-branch filter=",
    ),
    quiet("notes add", NOTES),
    quiet("notes append", NOTES),
    quiet("notes list", ""),
    quiet("notes remove", "ignore-missing stdin"),
    quiet("notes prune", "dry-run/n verbose/v"),
    quiet("bisect start", "term-good= term-bad= term-new= term-old= no-checkout first-parent"),
    quiet("bisect good", ""),
    quiet("bisect bad", ""),
    quiet("bisect new", ""),
    quiet("bisect old", ""),
    quiet("bisect skip", ""),
    quiet("bisect next", ""),
    quiet("bisect reset", ""),
    quiet("bisect terms", ""),
    quiet("bisect log", ""),
    quiet("sparse-checkout", "cone no-cone sparse-index no-sparse-index stdin skip-checks end-of-options"),
    quiet("symbolic-ref", "quiet/q delete/d short recurse no-recurse message=/m"),
    quiet("update-ref", "message=/m delete/d no-deref create-reflog"),
    quiet(
        "update-index",
        "add remove force-remove refresh really-refresh q/q chmod= again/g assume-unchanged no-assume-unchanged skip-worktree \
         no-skip-worktree ignore-missing ignore-submodules verbose",
    ),
    quiet("worktree list", "porcelain verbose/v z/z expire="),
    quiet("worktree prune", "dry-run/n verbose/v expire="),
    quiet("worktree lock", "reason="),
    quiet("worktree unlock", ""),
    quiet("worktree remove", "force/f"),
    quiet("worktree move", "force/f"),
    quiet("worktree repair", ""),
    quiet("maintenance", "auto quiet/q task= schedule? detach no-detach"),
    quiet(
        "status",
        "short/s branch/b show-stash porcelain? long untracked-files?/u ignored? ignore-submodules? ahead-behind \
         no-ahead-behind renames no-renames find-renames? null/z column? no-column",
    ),
    quiet(
        "describe",
        "all tags contains abbrev= candidates= exact-match debug long match= exclude= always first-parent dirty? broken?",
    ),
    quiet(
        "diff-index",
        "quiet name-only name-status stat? numstat shortstat summary raw cached m/m r/r z/z exit-code ignore-submodules? \
         no-patch/s diff-filter= merge-base no-ext-diff no-textconv relative? abbrev? find-renames? no-renames",
    ),
    quiet(
        "diff-files",
        "quiet name-only name-status stat? numstat shortstat summary raw r/r z/z q/q exit-code ignore-submodules? no-patch/s \
         diff-filter= no-ext-diff no-textconv relative? abbrev? find-renames? no-renames",
    ),
    quiet(
        "rev-list",
        "count all branches? tags? remotes? max-count=/n since= until= after= before= author= reverse objects \
        topo-order date-order no-merges merges first-parent left-right left-only right-only cherry-pick abbrev-commit oneline \
        pretty? format= skip= parents timestamp quiet max-age= min-age= disk-usage? not ancestry-path? boundary",
    ),
    quiet(
        "reflog expire",
        "expire= expire-unreachable= all updateref rewrite stale-fix dry-run/n verbose single-worktree",
    ),
    quiet("reflog delete", "updateref rewrite dry-run/n verbose"),
    quiet("reflog exists", ""),
    quiet("version", "build-options"),
    quiet("help", ""),
];

/// What a git command may show of tracked files, of which nobody said that it only reads; `arguments` come behind `git`.
pub(in crate::permission) fn may_show(arguments: &[Word]) -> Reads {
    match shows_nothing(arguments) {
        true => Reads::default(),
        false => everything(arguments),
    }
}

/// What a git command may show whose arguments nobody knows.
pub(in crate::permission) fn everything(arguments: &[Word]) -> Reads {
    let all = Reads { tracked: Tracked::Ever, named: vec![super::super::Named::Object], ..Reads::default() };
    // With an option of theirs these look at files that git does not keep.
    let looks = |word: &Word| matches!(word.known().as_str(), "grep" | "diff" | "difftool");
    match arguments.iter().position(looks) {
        Some(at) => {
            let operand = |word: &&Word| !word.is_dynamic() && !word.prefix().starts_with('-');
            let here = (arguments[at].known() == "grep").then(|| plain("."));
            let paths: Vec<Word> = arguments[at + 1..].iter().filter(operand).cloned().chain(here).collect();
            Reads { reach: if paths.is_empty() { Reach::Names } else { Reach::Everything }, paths, ..all }
        }
        None => all,
    }
}

fn shows_nothing(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    let name = loop {
        let Some((word, after)) = rest.split_first() else { return true };
        rest = match word.literal().as_deref() {
            Some(
                "--no-pager"
                | "-P"
                | "-p"
                | "--paginate"
                | "--no-optional-locks"
                | "--no-replace-objects"
                | "--literal-pathspecs"
                | "--no-lazy-fetch"
                | "--version"
                | "--help"
                | "-v"
                | "-h"
                | "--exec-path"
                | "--html-path"
                | "--man-path"
                | "--info-path",
            ) => after,
            Some("-C") => after.get(1..).unwrap_or_default(),
            Some("-c") if after.first().is_some_and(sets_nothing) => &after[1..],
            Some(text) if !text.starts_with('-') => {
                rest = after;
                break text.to_owned();
            }
            _ => return false,
        };
    };
    let whole = [&[plain("git")], arguments].concat();
    if super::super::reads(&whole).is_ok_and(|reads| reads.tracked == Tracked::No) {
        return true;
    }
    let first = rest.first().and_then(Word::literal).unwrap_or_default();
    let full = format!("{name} {first}");
    let table = |name: &str| QUIET.iter().find(|known| known.name == name);
    let (table, rest) = match table(&full) {
        Some(found) => (Some(found), &rest[1..]),
        None if name == "stash" && (rest.is_empty() || first.starts_with('-')) => (table("stash push"), rest),
        None if name == "submodule" && rest.is_empty() => (table("submodule status"), rest),
        None => (table(&name), rest),
    };
    let Some(table) = table else { return false };
    let count = |word: &&Word| {
        let text = word.known();
        text.len() > 1 && text.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let told = |word: &Word| match word.pieces.as_slice() {
        [Piece::Dynamic(one)] if one.is_one() && prints_hash(&one.source) => "0".to_owned(),
        _ => word.possible(),
    };
    let given: Vec<Argument> = rest.iter().filter(|word| !count(word)).map(|word| Argument::of(&told(word))).collect();
    let Ok(found) = table.read(&given) else { return false };
    let options = found.iter().all(|one| !one.acts);
    let formats: Vec<String> = found.iter().filter(|one| one.name == "format").map(|one| one.value.clone()).collect();
    let sorts = found.iter().filter(|one| one.name == "sort").map(|one| format!("--sort={}", one.value));
    let formats: Vec<String> = formats.into_iter().chain(sorts).collect();
    let fields =
        !matches!(&*name, "branch" | "tag") || tells_fields(&formats.iter().map(String::as_str).collect::<Vec<_>>());
    let mut operands = found.iter().filter(|one| one.name == "--").map(|one| one.written.as_str());
    // A copy of the repository beside it holds the same files by other names.
    let elsewhere = name != "clone" || operands.next().is_some_and(|from| from.contains("://") || from.contains('@'));
    let looks = |one: &Found| matches!(one.name.as_str(), "check" | "stat" | "numstat" | "summary");
    let applies = name == "apply" && !found.iter().any(looks);
    options && fields && elsewhere && !applies
}

/// Whether the word of `-c` sets nothing that makes the command run or show something else.
fn sets_nothing(word: &Word) -> bool {
    let text = word.known();
    let name = text.split('=').next().unwrap_or_default().to_ascii_lowercase();
    SETTINGS.split_ascii_whitespace().any(|known| known == name) && !word.prefix().is_empty()
}
