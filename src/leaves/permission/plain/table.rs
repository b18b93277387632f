//! The programs, with each option and operand that they may be given. Whatever a program of the name makes of these, on any
//! system, it writes nothing, starts nothing and reads no more than its operands.

/// What the words besides options are.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    None,
    /// Anything, which is printed or looked up.
    Words,
    /// At most so many paths.
    Paths(usize),
    /// A pattern, unless an option gave it, and paths.
    Pattern,
    /// Git's revisions, and paths.
    Revisions,
    /// A pattern, unless an option gave it, and those.
    Searched,
    /// `+%F`: anything else would set the clock.
    Format,
    /// A script that this knows, and paths.
    Script(fn(&str) -> bool),
    /// Paths, and tests of find's.
    Tests,
    /// One test and its word.
    Unary,
    /// `-v name`.
    Looked,
}

pub(super) struct Plain {
    pub(super) names: &'static str,
    /// Letters of options without a value; `0` stands for all digits.
    flags: &'static str,
    /// Letters of options with a value, behind the letter or in the next word.
    valued: &'static str,
    /// Long options; those that end with `=` have their value in the same word, those with `:` there or in the next.
    long: &'static str,
    pub(super) operands: Operands,
}

const ANY: usize = usize::MAX;

const fn plain(
    names: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
    operands: Operands,
) -> Plain {
    Plain { names, flags, valued, long, operands }
}

#[rustfmt::skip]
pub(super) const PROGRAMS: &[Plain] = &[
    plain("cd", "", "", "", Operands::Paths(1)),
    plain("pwd", "LP", "", "", Operands::None),
    plain("true false whoami nproc arch uptime hostname", "", "", "", Operands::None),
    plain("id", "ugnG", "", "", Operands::None),
    plain("uname", "asrmnpo", "", "", Operands::None),
    plain("free", "hmgb", "", "", Operands::None),
    plain("echo", "", "", "", Operands::Words),
    plain("test", "", "", "", Operands::Unary),
    plain("command", "", "", "", Operands::Looked),
    plain("which type", "a", "", "", Operands::Words),
    plain("basename dirname", "", "", "", Operands::Words),
    plain("date", "u", "", "", Operands::Format),
    plain("ls", "laAhtrS1dRFpinkGg", "", "all almost-all human-readable color=", Operands::Paths(ANY)),
    plain("cat", "nAbEsTvet", "", "number", Operands::Paths(ANY)),
    plain("head tail", "qv0", "nc", "lines= bytes=", Operands::Paths(ANY)),
    plain("wc", "lwcmL", "", "lines words bytes", Operands::Paths(ANY)),
    plain("nl rev tac", "", "b", "", Operands::Paths(ANY)),
    plain("stat realpath readlink file", "", "", "", Operands::Paths(ANY)),
    plain("du", "shackm", "d", "summarize human-readable max-depth=", Operands::Paths(ANY)),
    plain("df", "hkT", "", "", Operands::Paths(ANY)),
    plain("tree", "adf", "LI", "", Operands::Paths(ANY)),
    plain("sort", "nrufhVbds", "kt", "numeric-sort reverse unique", Operands::Paths(ANY)),
    plain("uniq", "cdui", "fsw", "count", Operands::Paths(1)),
    plain("cut", "s", "dfcb", "complement output-delimiter=", Operands::Paths(ANY)),
    plain("paste", "s", "d", "", Operands::Paths(ANY)),
    plain("tr", "dscC", "", "", Operands::Words),
    plain("column", "t", "s", "", Operands::Paths(ANY)),
    plain("diff", "urNqwbBiy", "U", "color= brief unified= unified", Operands::Paths(2)),
    plain("cmp comm", "123s", "", "", Operands::Paths(2)),
    plain("md5sum sha1sum sha256sum cksum", "", "", "", Operands::Paths(ANY)),
    plain("sed", "nE", "", "", Operands::Script(is_sed)),
    plain("awk", "", "F", "", Operands::Script(is_awk)),
    plain(
        "grep egrep fgrep", "rniHhlLcowxvEFGPsqI", "ABCme",
        "include= exclude= exclude-dir= color= recursive ignore-case line-number files-with-matches count only-matching \
         word-regexp invert-match max-count= context= after-context= before-context= fixed-strings extended-regexp",
        Operands::Pattern,
    ),
    plain(
        "rg", "niIlcowvFSsNHxU", "ABCmegtT",
        "files type: type-not: glob: no-heading heading line-number ignore-case files-with-matches count fixed-strings color: \
         max-count: max-depth: context: after-context: before-context: word-regexp sort: multiline",
        Operands::Pattern,
    ),
    plain("find", "", "", "", Operands::Tests),
];

/// Subcommands of git that show what a repository holds. Whether the repository may be looked at is judged before.
#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Plain] = &[
    plain("status", "sbu", "", "short branch porcelain porcelain= untracked-files=", Operands::Revisions),
    plain(
        "diff", "wbpR", "U",
        "stat shortstat numstat name-only name-status cached staged no-color color= ignore-all-space unified= summary check patch",
        Operands::Revisions,
    ),
    plain(
        "log show", "pw0", "nSG",
        "oneline stat shortstat numstat graph all decorate no-decorate no-merges merges name-only name-status author: since: until: \
         after: before: grep: max-count: skip: format= pretty= pretty date= reverse first-parent no-color follow patch no-patch \
         abbrev-commit summary",
        Operands::Revisions,
    ),
    plain("branch", "avr", "", "all list remotes show-current verbose", Operands::None),
    plain("tag", "l", "", "list", Operands::None),
    plain("remote", "v", "", "verbose", Operands::None),
    plain("describe", "", "", "tags always", Operands::None),
    plain("rev-parse", "", "", "show-toplevel abbrev-ref short verify is-inside-work-tree git-dir", Operands::Revisions),
    plain("rev-list", "", "n", "count all max-count=", Operands::Revisions),
    plain("ls-files", "comd", "", "cached others modified deleted exclude-standard", Operands::Revisions),
    plain("blame", "w", "L", "", Operands::Revisions),
    plain("shortlog", "sne", "", "summary numbered email", Operands::Revisions),
    plain(
        "grep", "niwlcEFo", "eABC", "line-number ignore-case word-regexp files-with-matches count fixed-strings",
        Operands::Searched,
    ),
];

/// `10,20p`, `5p`, `5,$p`, `s/a/b/`, `s|a|b|g`.
fn is_sed(script: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let range = |text: &str| match text.split_once(',') {
        Some((first, last)) => number(first) && (number(last) || last == "$"),
        None => number(text) || text == "$",
    };
    // Where another sed takes a sign within brackets for text, it finds too few of them.
    let replaces = |rest: &str| {
        let sign = rest.chars().next().filter(|sign| "/|#,".contains(*sign));
        let all = sign.map(|sign| rest.split(sign).collect::<Vec<_>>()).unwrap_or_default();
        all.len() == 4 && !rest.contains('\\') && matches!(all[3], "" | "g")
    };
    script.strip_suffix('p').is_some_and(range) || script.strip_prefix('s').is_some_and(replaces)
}

/// `{print $1, $NF}`.
fn is_awk(script: &str) -> bool {
    let inner = script.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::trim);
    inner.and_then(|rest| rest.strip_prefix("print")).is_some_and(|fields| {
        let field = |text: &str| {
            let number = text.trim().strip_prefix('$').unwrap_or_default();
            number == "NF" || !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        };
        fields.trim().is_empty() || fields.starts_with(' ') && fields.split(',').all(field)
    })
}

impl Plain {
    /// The words that are not options, and whether an option gave the pattern; None where an option is not listed.
    pub(super) fn operands_of<'a>(&self, arguments: &'a [String]) -> Option<(Vec<&'a String>, bool)> {
        let mut operands: Vec<&String> = Vec::new();
        let mut patterned = false;
        // Their words are judged as they stand.
        if matches!(self.operands, Operands::Tests | Operands::Unary | Operands::Looked) || self.names == "echo" {
            return Some((arguments.iter().collect(), false));
        }
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let value = |value: Option<&str>| {
                // What git checks a signature with is a program.
                value.is_some_and(|value| !value.starts_with('-') && !value.contains("%G")).then_some(())
            };
            match (word.strip_prefix("--"), word.strip_prefix('-')) {
                (Some(""), _) => {
                    operands.extend(
                        rest.by_ref()
                            .map(|word| (!word.starts_with('-')).then_some(word))
                            .collect::<Option<Vec<_>>>()?,
                    );
                }
                (Some(long), _) => {
                    let (name, given) = long.split_once('=').map_or((long, None), |(name, given)| (name, Some(given)));
                    let mut known = self.long.split_ascii_whitespace();
                    let known = known.find(|known| match given {
                        Some(_) => known.strip_suffix(['=', ':']) == Some(name),
                        None => known.trim_end_matches(':') == name,
                    })?;
                    match given {
                        None if known.ends_with(':') => value(rest.next().map(String::as_str))?,
                        None => {}
                        given => value(given)?,
                    }
                }
                (None, Some(letters)) if !letters.is_empty() => {
                    let first = letters.chars().next()?;
                    if self.valued.contains(first) {
                        let given = &letters[first.len_utf8()..];
                        value(if given.is_empty() { rest.next().map(String::as_str) } else { Some(given) })?;
                        patterned |= first == 'e';
                        continue;
                    }
                    let known = |c: char| self.flags.contains(c) || c.is_ascii_digit() && self.flags.contains('0');
                    letters.chars().all(known).then_some(())?;
                }
                // Standard input.
                (None, Some(_)) => {}
                (None, None) => operands.push(word),
            }
        }
        Some((operands, patterned))
    }
}
