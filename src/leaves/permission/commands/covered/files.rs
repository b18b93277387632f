//! The same for programs that write, show or send files, and for those that run a script.

use super::table::{Covered, Operands, covered, files, last};

const fn of(command: &'static str, operands: Operands, options: &'static str) -> Covered {
    Covered { command, options, operands }
}

const LESS: &str = "search-skip-screen/a SEARCH-SKIP-SCREEN/A auto-buffers/B clear-screen/c quit-at-eof/e QUIT-AT-EOF/E force/f \
    quit-if-one-screen/F hilite-search/g HILITE-SEARCH/G ignore-case/i IGNORE-CASE/I status-column/J quit-on-intr/K \
    no-lessopen/L long-prompt/m LONG-PROMPT/M line-numbers/n LINE-NUMBERS/N quiet/q QUIET/Q raw-control-chars/r \
    RAW-CONTROL-CHARS/R squeeze-blank-lines/s chop-long-lines/S underline-special/u UNDERLINE-SPECIAL/U version/V \
    hilite-unread/w HILITE-UNREAD/W no-init/X help/?";

/// Not what reads commands: `-c`, `-S`, `-s`, `-u`, `-t`, `-q`, and the modes of ex.
const VIM: &str = "R/R n/n b/b N/N M/M m/m Z/Z d/d version help/h";

const FD: &str = "hidden/H no-ignore/I no-ignore-vcs no-ignore-parent unrestricted/u case-sensitive/s ignore-case/i glob/g regex \
    fixed-strings/F and= absolute-path/a follow/L full-path/p print0/0 max-depth=/d min-depth= exact-depth= exclude=/E prune \
    type=/t extension=/e size=/S changed-within= changed-before= newer= older= owner=/o color=/c threads=/j max-results= 1/1 \
    quiet/q show-errors path-separator= strip-cwd-prefix? search-path= help/h version/V";

pub(super) const TABLE: &[Covered] = &[
    last(
        "cp",
        "archive/a attributes-only backup? b/b copy-contents d/d force/f interactive/i H/H link/l dereference/L no-clobber/n \
         no-dereference/P preserve? p/p no-preserve= parents recursive/R r/r reflink? remove-destination sparse= \
         strip-trailing-slashes symbolic-link/s target-directory=/t no-target-directory/T update? u/u verbose/v \
         one-file-system/x Z/Z help version",
    ),
    files(
        "mv",
        "backup? b/b force/f interactive/i no-clobber/n strip-trailing-slashes target-directory=/t \
         no-target-directory/T update? u/u verbose/v Z/Z help version",
    ),
    last(
        "ln",
        "backup? b/b directory/d F/F force/f interactive/i logical/L no-dereference/n physical/P relative/r symbolic/s \
         target-directory=/t no-target-directory/T verbose/v help version",
    ),
    files(
        "rm",
        "force/f i/i I/I interactive? one-file-system preserve-root? recursive/r R/R dir/d verbose/v help version",
    ),
    files("rmdir", "ignore-fail-on-non-empty parents/p verbose/v help version"),
    files("mkdir", "mode=/m parents/p verbose/v Z/Z help version"),
    files("touch", "a/a no-create/c date=/d f/f no-dereference/h m/m reference=/r t=/t time= help version"),
    files("tee", "append/a ignore-interrupts/i p/p output-error? help version"),
    // Letters of a mode may stand behind a dash.
    files("chmod", "changes/c silent/f quiet verbose/v recursive/R reference= r/r w/w x/x X/X s/s t/t help version"),
    files(
        "chown",
        "changes/c silent/f quiet verbose/v recursive/R no-dereference/h dereference from= reference= help version",
    ),
    files(
        "chgrp",
        "changes/c silent/f quiet verbose/v recursive/R no-dereference/h dereference reference= help version",
    ),
    files("truncate", "no-create/c io-blocks/o reference=/r size=/s help version"),
    files("dd", "help version"),
    files(
        "gzip",
        "stdout/c decompress/d force/f keep/k list/l no-name/n name/N quiet/q recursive/r test/t verbose/v fast/1 \
         2/2 3/3 4/4 5/5 6/6 7/7 8/8 best/9 help/h version/V",
    ),
    files("gunzip", "stdout/c force/f keep/k list/l no-name/n name/N quiet/q recursive/r test/t verbose/v help/h"),
    covered("unzip", "l/l t/t v/v n/n o/o q/q j/j a/a b/b x/x C/C L/L p/p c/c f/f u/u z/z D/D d=/d"),
    files(
        "patch",
        "strip=/p input=/i directory=/d output=/o reject-file=/r reverse/R forward/N batch/t force/f silent/s quiet verbose \
         dry-run backup/b fuzz=/F ignore-whitespace/l unified/u normal/n context/c remove-empty-files/E posix binary \
         no-backup-if-mismatch merge? help",
    ),
    // Letters of which no two make an option of their own, as `-lf` and `-TT` do.
    of(
        "zip",
        Operands::Files,
        "recurse-paths/r quiet/q verbose/v junk-paths/j symlinks/y no-extra/X no-dir-entries/D update/u exclude=/x 0/0 1/1 \
         2/2 3/3 4/4 5/5 6/6 7/7 8/8 9/9",
    ),
    of(
        "split",
        Operands::Files,
        "suffix-length=/a additional-suffix= bytes=/b line-bytes=/C d/d numeric-suffixes? x/x hex-suffixes? \
         elide-empty-files/e lines=/l number=/n separator=/t unbuffered/u verbose help version",
    ),
    of(
        "rsync",
        Operands::Remote,
        "verbose/v info= quiet/q no-motd checksum/c archive/a recursive/r inc-recursive no-inc-recursive relative/R \
         no-implied-dirs backup/b update/u inplace append append-verify dirs/d mkpath links/l copy-links/L safe-links \
         copy-dirlinks/k hard-links/H perms/p executability/E chmod= acls/A xattrs/X owner/o group/g devices specials D/D \
         times/t atimes/U crtimes/N omit-dir-times/O omit-link-times/J no-perms no-p no-owner no-o no-group no-g no-times no-t \
         no-links no-l no-D sparse/S preallocate dry-run/n whole-file/W no-whole-file one-file-system/x existing \
         ignore-existing remove-source-files del delete delete-before delete-during delete-delay delete-after delete-excluded \
         ignore-missing-args ignore-errors max-delete= max-size= min-size= partial delay-updates prune-empty-dirs/m \
         numeric-ids timeout= contimeout= ignore-times/I size-only modify-window= fuzzy/y compress/z compress-choice= \
         compress-level= cvs-exclude/C exclude= include= stats 8-bit-output/8 human-readable/h progress P/P \
         itemize-changes/i out-format= list-only bwlimit= fsync ipv4/4 ipv6/6 version/V help",
    ),
    of("scp", Operands::Remote, "3/3 4/4 6/6 B/B C/C O/O p/p q/q r/r R/R s/s T/T v/v l=/l P=/P c=/c"),
    of("ssh", Operands::Host, "4/4 6/6 a/a C/C n/n q/q T/T t/t v/v x/x p=/p l=/l"),
    of(
        "wget",
        Operands::Saved,
        "quiet/q verbose/v no-verbose n?/n tries=/t retry-connrefused retry-on-http-error= no-clobber continue/c \
         timestamping/N progress= show-progress server-response/S spider timeout=/T dns-timeout= connect-timeout= \
         read-timeout= wait=/w waitretry= random-wait no-proxy quota=/Q limit-rate= no-dns-cache inet4-only/4 inet6-only/6 \
         prefer-family= user= password= http-user= http-password= no-cache header= compression= max-redirect= referer= \
         user-agent=/U no-cookies post-data= method= body-data= content-on-error https-only no-check-certificate no-hsts \
         output-document=/O directory-prefix=/P help/h version/V",
    ),
    covered("less", LESS),
    covered(
        "more",
        "silent/d logical/f no-pause/l print-over/c clean-print/p exit-on-eof/e squeeze/s plain/u lines=/n help/h",
    ),
    covered(
        "man",
        "whatis/f apropos/k global-apropos/K where/w path location where-cat/W sections=/s S=/S extension=/e ignore-case/i \
         match-case/I regex wildcard names-only all/a no-subpages ascii/7 no-hyphenation nh no-justification nj help version/V",
    ),
    covered("vim", VIM),
    covered("vi", VIM),
    covered("view", VIM),
    covered("nvim", VIM),
    covered(
        "ag",
        "ignore-case/i case-sensitive/s smart-case/S literal/Q word-regexp/w files-with-matches/l files-without-matches/L \
         count/c after?/A before?/B context?/C nocolor color nogroup group nobreak noheading numbers nonumbers column ignore= \
         depth= max-count=/m hidden invert-match/v filename-pattern=/g file-search-regex=/G follow/f unrestricted/u all-text/a \
         vimgrep stats silent only-matching/o nofilename",
    ),
    covered("fd", FD),
    covered("fdfind", FD),
    // There are two: of one `-s` and `--split-exp` write files, and `-i` is `--inplace` for one and `--in-place` for the other.
    covered(
        "yq",
        "null-input/n raw-output/r prettyPrint/P output-format=/o input-format=/p colors/C no-colors/M exit-status/e \
         yaml-output/y yaml-roundtrip/Y compact-output/c sort-keys/S indent=/I no-doc/N tojson/j width= unwrapScalar? help/h",
    ),
    of("perl", Operands::Script, "w/w W/W X/X T/T t/t c/c n/n p/p a/a v/v"),
    of(
        "node",
        Operands::Script,
        "check/c test test-only watch no-warnings trace-warnings no-deprecation trace-deprecation throw-deprecation \
         trace-uncaught enable-source-maps expose-gc max-old-space-size? max-semi-space-size? stack-size? \
         experimental-strip-types experimental-vm-modules experimental-test-coverage test-name-pattern= test-concurrency= \
         test-timeout= preserve-symlinks use-strict help/h version/v",
    ),
];
