//! The options that a rule for a program covers. What is listed neither runs a program that it names, nor reads options or
//! code from a file, nor writes but where the operands say.

pub(super) struct Covered {
    /// Name and subcommand.
    pub(super) command: &'static str,
    /// In the form of `commit::Subcommand`.
    pub(super) options: &'static str,
    pub(super) operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Any,
    /// Paths that stay in the folder: what they name is run.
    Inside,
    /// As Inside, and nothing is set.
    Targets,
    /// The first is one of these.
    First(&'static str),
    /// Plain words, which hold neither a line, a setting nor code.
    Words,
    /// Paths that are written and stay in the folder, also behind `=`.
    Files,
    /// The last one is, or the folder that an option names.
    Last,
    /// Files that stay in the folder, and those of another machine.
    Remote,
    /// Addresses, of which each names the file that is written.
    Saved,
    /// The first is a script of the folder's, and what follows is its own.
    Script,
    /// The first is another machine, and what follows a line for its shell.
    Host,
}

pub(super) const fn covered(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Any }
}

const fn within(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Inside }
}

pub(super) const fn files(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Files }
}

pub(super) const fn last(command: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::Last }
}

const fn leading(command: &'static str, first: &'static str, options: &'static str) -> Covered {
    Covered { command, options, operands: Operands::First(first) }
}

const CARGO: &str = "quiet/q verbose/v color= locked offline frozen jobs=/j keep-going release/r profile= features=/F \
    all-features no-default-features package=/p workspace all exclude= lib bin= bins example= examples test= tests bench= \
    benches all-targets message-format= no-run no-fail-fast doc target= ignore-rust-version future-incompat-report help/h \
    no-deps document-private-items check invert=/i depth= duplicates/d edges=/e no-dedupe";

const GO: &str = "v race cover short json failfast benchmem x n a run= skip= count= timeout= tags= p= bench= benchtime= \
    parallel= list= cpu= vet= trimpath buildvcs= coverpkg= covermode= shuffle= o= coverprofile=";

/// Subcommands of cargo's own, and of tools that everybody has. Not `rustc`: it passes on what it is given.
const CARGO_FIRST: &str = "build b check c test t bench run r doc d clippy fmt clean update fetch add remove rm tree metadata \
    search new init install uninstall publish package vendor generate-lockfile locate-project pkgid version help info fix \
    nextest audit deny machete udeps outdated expand llvm-cov hack";

const NPM: &str = "silent/s if-present workspaces workspace=/w include-workspace-root ignore-scripts foreground-scripts \
    loglevel= json parseable quiet/q verbose save/S save-dev/D save-exact/E save-optional/O no-save legacy-peer-deps force/f \
    production omit= include= no-audit no-fund prefer-offline offline depth= all/a long/l global/g!";

/// Subcommands of npm's that keep no setting which later lines obey, as `config`, `set` and `pkg` do.
const NPM_FIRST: &str = "install i add ci clean-install it install-test test t tst run run-script rum urn start stop restart \
    build list ls ll la view v info show outdated audit pack publish version dedupe ddp prune explain why fund search s find \
    ping whoami root prefix bin docs home bugs issues repo help exec x init create innit update up upgrade rebuild rb \
    uninstall remove rm r un unlink link ln cache doctor diff query get sbom";

const APT_FIRST: &str = "update upgrade dist-upgrade full-upgrade install remove purge autoremove autopurge clean autoclean check \
    search show list policy";

const APT: &str = "yes/y assume-yes assume-no quiet?/q simulate/s dry-run download-only/d fix-broken/f fix-missing/m \
    no-install-recommends install-recommends no-install-suggests reinstall only-upgrade no-upgrade no-remove autoremove purge \
    print-uris show-progress verbose-versions/V installed upgradable all-versions/a";

/// One table for all its subcommands: a letter is here where it takes a value in each of them, or in none.
const GH: &str = "repo=/R json= jq=/q template=/t title= body=/b comments/c state= limit=/L author=/A label=/l assignee= \
    search=/S base=/B head=/H draft fill fill-first fill-verbose name-only patch color= watch required fail-fast interval= \
    log log-failed verbose/v exit-status attempt= job=/j branch= status= user=/u event=/e workflow=/w paginate";

pub(super) const TABLE: &[Covered] = &[
    covered(
        "git push",
        "all branches tags follow-tags dry-run/n porcelain force/f force-with-lease? force-if-includes set-upstream/u \
         quiet/q verbose/v progress no-progress thin no-thin ipv4/4 ipv6/6 atomic delete/d prune mirror push-option=/o \
         signed?! no-verify! repo=! receive-pack=! exec=! recurse-submodules=!",
    ),
    covered(
        "git fetch",
        "all append/a atomic depth= deepen= shallow-since= shallow-exclude= unshallow dry-run force/f keep/k multiple \
         no-tags/n prune/p prune-tags/P tags/t jobs=/j quiet/q verbose/v progress ipv4/4 ipv6/6 set-upstream filter= \
         no-recurse-submodules upload-pack=!",
    ),
    covered(
        "git pull",
        "rebase?/r no-rebase ff ff-only no-ff autostash no-autostash commit no-commit no-edit squash no-squash stat \
         no-stat/n log? strategy-option=/X verbose/v quiet/q all tags/t prune/p depth= force/f no-tags signoff \
         allow-unrelated-histories edit/e! strategy=/s! upload-pack=!",
    ),
    covered(
        "git clone",
        "local/l no-local shared/s no-hardlinks quiet/q verbose/v progress no-checkout/n bare mirror origin=/o branch=/b \
         depth= single-branch no-single-branch no-tags shallow-submodules jobs=/j filter= sparse dissociate \
         shallow-since= upload-pack=/u! config=/c! template=! separate-git-dir=!",
    ),
    leading(
        "git submodule",
        "status init deinit update sync summary absorbgitdirs",
        "quiet/q init recursive force/f remote no-fetch depth= jobs=/j cached all progress",
    ),
    covered(
        "git remote",
        "verbose/v fetch/f tags no-tags track=/t master=/m mirror? all/a push add delete prune dry-run/n",
    ),
    covered(
        "git ls-remote",
        "heads branches/b tags/t refs quiet/q exit-code get-url sort= symref server-option=/o! upload-pack=!",
    ),
    covered(
        "git checkout",
        "quiet/q new=/b reset=/B track?/t no-track guess no-guess detach/d orphan= ours/2 theirs/3 force/f merge/m conflict= \
         progress no-progress overlay no-overlay l/l patch/p!",
    ),
    covered(
        "git switch",
        "create=/c force-create=/C detach/d guess no-guess force/f discard-changes merge/m conflict= quiet/q track?/t \
         no-track orphan= progress no-progress",
    ),
    covered(
        "git branch",
        "delete/d force-delete/D move/m force-move/M copy/c force-copy/C list/l all/a remotes/r verbose/v quiet/q track?/t \
         no-track set-upstream-to=/u unset-upstream force/f contains= no-contains= merged? no-merged? sort= format= \
         show-current color? no-color column? no-column points-at= ignore-case/i create-reflog edit-description!",
    ),
    covered(
        "git merge",
        "ff ff-only no-ff commit no-commit no-edit squash no-squash stat no-stat/n log? message=/m quiet/q verbose/v abort \
         continue quit signoff autostash no-autostash strategy-option=/X allow-unrelated-histories edit/e! file=/F! \
         strategy=/s! no-verify! gpg-sign?/S!",
    ),
    covered(
        "git rebase",
        "onto= abort continue skip quit keep-base root autostash no-autostash quiet/q verbose/v no-stat/n stat fork-point \
         no-fork-point rebase-merges?/r autosquash no-autosquash force-rebase/f signoff strategy-option=/X update-refs \
         reapply-cherry-picks interactive/i! exec=/x! strategy=/s! edit-todo! gpg-sign?/S! no-verify!",
    ),
    covered(
        "git stash",
        "include-untracked/u all/a keep-index/k no-keep-index message=/m quiet/q index staged/S stat name-only patch/p!",
    ),
    covered(
        "git tag",
        "list/l annotate/a delete/d force/f message=/m sort= format= contains= no-contains= merged? no-merged? points-at= \
         lines?/n cleanup= create-reflog color? column? ignore-case/i verify/v! sign/s! local-user=/u! file=/F! edit/e!",
    ),
    covered(
        "git restore",
        "source=/s staged/S worktree/W quiet/q progress no-progress ours/2 theirs/3 merge/m conflict= overlay no-overlay \
         ignore-unmerged patch/p!",
    ),
    covered("git reset", "soft mixed hard merge keep quiet/q refresh no-refresh intent-to-add/N patch/p!"),
    covered("git rm", "cached force/f dry-run/n recursive/r quiet/q ignore-unmatch sparse"),
    covered("git mv", "force/f dry-run/n skip/k verbose/v sparse"),
    covered(
        "git cherry-pick",
        "abort continue skip quit no-commit/n no-edit note/x signoff/s mainline=/m ff allow-empty keep-redundant-commits \
         strategy-option=/X edit/e! strategy=! gpg-sign?/S!",
    ),
    covered(
        "git revert",
        "abort continue skip quit no-commit/n no-edit signoff/s mainline=/m strategy-option=/X edit/e! strategy=! gpg-sign?/S!",
    ),
    within(
        "git worktree",
        "force/f detach/d new=/b reset=/B checkout no-checkout lock reason= track no-track guess-remote verbose/v porcelain \
         dry-run/n expire= quiet/q",
    ),
    covered("git archive", "list/l verbose/v prefix= format= worktree-attributes output=/o! remote=! exec=!"),
    covered(
        "git format-patch",
        "stdout numbered/n no-numbered/N signoff/s keep-subject/k subject-prefix= start-number= suffix= cover-letter \
         zero-commit stat no-stat thread? output-directory=/o!",
    ),
    covered(
        "git am",
        "3way/3 quiet/q signoff/s keep/k keep-non-patch/b keep-cr no-keep-cr scissors/c no-scissors utf8/u no-utf8 \
         ignore-space-change ignore-whitespace whitespace= directory= exclude= include= reject continue/r resolved skip \
         abort quit retry show-current-patch? committer-date-is-author-date ignore-date message-id/m p=/p c=/C \
         patch-format= resolvemsg= allow-empty no-verify/n! interactive/i! gpg-sign?/S!",
    ),
    covered(
        "git apply",
        "stat numstat summary check index cached intent-to-add/N 3way/3 ours theirs union reverse/R reject allow-empty \
         z/z p=/p c=/C whitespace= unidiff-zero no-add exclude= include= inaccurate-eof verbose/v quiet/q recount \
         directory= apply binary allow-overlap ignore-space-change ignore-whitespace unsafe-paths! build-fake-ancestor=!",
    ),
    leading(
        "git bisect",
        "start bad new good old terms skip reset log next",
        "term-good= term-bad= term-new= term-old= no-checkout first-parent",
    ),
    covered("git clean", "d/d force/f dry-run/n quiet/q exclude=/e x/x X/X interactive/i!"),
    covered(
        "git fsck",
        "unreachable dangling no-dangling root tags cache no-reflogs full no-full connectivity-only strict verbose progress \
         no-progress name-objects lost-found!",
    ),
    covered(
        "git gc",
        "aggressive auto prune? no-prune quiet/q force keep-largest-pack cruft no-cruft max-cruft-size= detach no-detach \
         expire-to=!",
    ),
    covered("git hash-object", "t=/t stdin path= no-filters literally w/w! stdin-paths!"),
    within(
        "git init",
        "quiet/q bare initial-branch=/b object-format= ref-format= shared? template=! separate-git-dir=!",
    ),
    leading(
        "git notes",
        "add list show remove append copy merge prune get-ref",
        "message=/m reuse-message=/C force/f allow-empty ref= stdin ignore-missing dry-run/n verbose/v strategy=/s commit \
         abort quiet/q file=/F! edit/e! reedit-message=/c!",
    ),
    within("git bundle", "quiet/q progress all-progress no-progress version= all branches tags stdin!"),
    leading(
        "git config",
        "user.name user.email init.defaultBranch pull.rebase pull.ff push.default push.autoSetupRemote fetch.prune color.ui \
         core.autocrlf core.eol core.filemode core.ignorecase merge.conflictStyle rebase.autoStash rebase.autoSquash \
         diff.algorithm branch.sort tag.sort get list",
        "local add replace-all unset unset-all bool int bool-or-int type= get get-all list/l show-origin show-scope \
         name-only null/z default= global! system! worktree! file=/f! blob=! edit/e! fixed-value",
    ),
    covered("git pack-refs", "all prune no-prune auto include= exclude="),
    covered("git prune", "dry-run/n verbose/v progress expire="),
    covered(
        "git range-diff",
        "creation-factor= no-dual-color color? no-color no-patch/s stat left-only right-only diff-merges= notes? no-notes",
    ),
    leading(
        "git reflog",
        "show expire delete exists list drop",
        "expire= expire-unreachable= all updateref rewrite stale-fix dry-run verbose single-worktree oneline max-count= \
         date= format= pretty?",
    ),
    covered(
        "git repack",
        "all/a A/A delete/d local/l no-reuse/f F/F quiet/q no-update/n window= depth= threads= window-memory= max-pack-size= \
         write-bitmap-index/b write-midx/m keep-unreachable/k unpack-unreachable= cruft cruft-expiration= geometric=/g \
         delta-islands/i keep-pack= filter= filter-to=! expire-to=!",
    ),
    covered("git replace", "delete/d list/l force/f format= raw graft/g edit/e! convert-graft-file!"),
    leading("git rerere", "clear forget diff status remaining gc", ""),
    leading(
        "git sparse-checkout",
        "list init set add reapply disable check-rules",
        "cone no-cone sparse-index no-sparse-index stdin skip-checks",
    ),
    covered("git symbolic-ref", "quiet/q delete/d short recurse no-recurse message=/m"),
    covered(
        "git update-index",
        "add remove force-remove replace refresh really-refresh q/q ignore-submodules unmerged ignore-missing \
         assume-unchanged no-assume-unchanged skip-worktree no-skip-worktree chmod= cacheinfo= again/g info-only verbose \
         index-info! stdin! split-index! fsmonitor! untracked-cache!",
    ),
    covered("git update-ref", "message=/m delete/d no-deref create-reflog stdin! z/z"),
    covered(
        "tar",
        "create/c extract/x get list/t update/u append/r gzip/z bzip2/j xz/J zstd file=/f verbose/v keep-old-files/k \
         preserve-permissions/p dereference/h directory=/C one-file-system exclude= strip-components= totals \
         auto-compress/a no-same-owner/o wildcards diff/d overwrite to-stdout/O keep-newer-files touch/m",
    ),
    covered(
        "curl",
        "silent/s show-error/S location/L fail/f fail-with-body include/i head/I verbose/v get/G compressed globoff/g \
         ipv4/4 ipv6/6 insecure/k no-progress-meter progress-bar/# request=/X header=/H data=/d data-raw= data-binary= \
         data-urlencode= json= user-agent=/A user=/u max-time=/m connect-timeout= retry= retry-delay= retry-all-errors \
         referer=/e range=/r cookie=/b form=/F url=! http1.1 http2 max-redirs= no-buffer/N path-as-is write-out=/w",
    ),
    last(
        "install",
        "directory/d mode=/m owner=/o group=/g verbose/v compare/C preserve-timestamps/p target-directory=/t \
         no-target-directory/T D/D c/c backup? b/b strip/s preserve-context Z/Z",
    ),
    leading("cargo", CARGO_FIRST, CARGO),
    leading("npm config", "get list ls", NPM),
    leading("npm", NPM_FIRST, NPM),
    Covered {
        command: "make",
        options: "jobs?/j keep-going/k silent/s quiet always-make/B dry-run/n just-print question/q touch/t ignore-errors/i \
            no-print-directory print-directory/w load-average?/l trace output-sync?/O warn-undefined-variables version/v",
        operands: Operands::Targets,
    },
    within("go", GO),
    within(
        "pytest",
        "verbose/v quiet/q exitfirst/x keyword=/k markers=/m stdout/s tb= maxfail= last-failed lf failed-first ff durations= \
         collect-only co no-header no-summary showlocals/l color= numprocesses=/n disable-warnings strict-markers report=/r \
         stepwise sw new-first nf p=/p cov? cov-report= cov-branch cov-append cov-fail-under= no-cov",
    ),
    within(
        "ruff",
        "fix unsafe-fixes diff select= ignore= extend-select= quiet/q verbose/v silent/s statistics show-fixes \
         output-format= line-length= target-version= exit-zero/e no-cache/n preview isolated check exclude= force-exclude",
    ),
    leading("apt-get", APT_FIRST, APT),
    leading("apt", APT_FIRST, APT),
    leading("gh auth", "status", GH),
    leading("gh gist", "list view", GH),
    leading(
        "gh",
        "pr issue run repo release workflow search status label browse api cache ruleset org project attestation help \
         version",
        GH,
    ),
];
