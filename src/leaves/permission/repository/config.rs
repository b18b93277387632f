//! A repository's own configuration: read as git reads it, and judged by a list of what is known to be harmless.

/// One setting, with section and key in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    section: String,
    subsection: Option<String>,
    key: String,
    /// None for a key on its own, which means true.
    pub(super) value: Option<String>,
}

impl Setting {
    pub(super) fn name(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    pub(super) fn is(&self, section: &str, key: &str) -> bool {
        self.subsection.is_none() && self.section == section && self.key == key
    }

    /// Whether its value is another file of settings.
    pub(super) fn includes(&self) -> bool {
        self.key == "path" && matches!(self.section.as_str(), "include" | "includeif")
    }

    /// Whether it is the address of a remote, or a part of one, with an account in it.
    pub(super) fn names_account(&self) -> bool {
        matches!(self.section.as_str(), "remote" | "url" | "submodule")
            && [&self.subsection, &self.value].into_iter().flatten().any(|address| !is_open(address))
    }

    /// Whether git neither runs anything for the setting nor reads from a place that it names.
    pub(super) fn is_harmless(&self) -> bool {
        let value = self.value.as_deref().unwrap_or("true");
        if self.is("core", "fsmonitor") {
            return matches!(value, "false" | "no" | "off" | "0" | "");
        }
        if self.section == "submodule" && self.key == "update" {
            return !value.trim_start().starts_with('!');
        }
        let listed = |line: &(&str, &str, &str)| {
            let (section, subsections, keys) = line;
            *section == self.section
                && (*subsections == "*") == self.subsection.is_some()
                && (*keys == "*" || keys.split(' ').any(|key| key == self.key))
        };
        HARMLESS.iter().any(listed)
    }

    /// Whether it runs nothing foreign where git changes something, though one that only reads must not meet it: it would
    /// show a header that is a credential, fetch what it lacks, or run git-lfs.
    pub(super) fn is_harmless_to_change(&self) -> bool {
        let value = self.value.as_deref().unwrap_or("true");
        match (self.section.as_str(), self.subsection.as_deref(), self.key.as_str()) {
            ("http", _, "extraheader")
            | ("remote", Some(_), "promisor" | "partialclonefilter")
            | ("extensions", None, "partialclone") => true,
            ("filter", Some("lfs"), "clean") => value == "git-lfs clean -- %f",
            ("filter", Some("lfs"), "smudge") => {
                matches!(value, "git-lfs smudge -- %f" | "git-lfs smudge --skip -- %f")
            }
            ("filter", Some("lfs"), "process") => {
                matches!(value, "git-lfs filter-process" | "git-lfs filter-process --skip")
            }
            ("filter", Some("lfs"), "required") => true,
            _ => false,
        }
    }
}

/// Section, `*` where a subsection is, and keys. What is not listed asks: no filters, drivers, helpers, viewers,
/// includes, aliases, no paths of files that git would read, nothing that fetches when an object is missing.
/// `core.hooksPath` is no worse than `.git/hooks`, and what only reads runs no hook.
const HARMLESS: &[(&str, &str, &str)] = &[
    (
        "core",
        "",
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks protectntfs protecthfs \
         autocrlf eol safecrlf abbrev quotepath untrackedcache preloadindex compression loosecompression bigfilethreshold \
         packedgitlimit packedgitwindowsize deltabasecachelimit commitgraph multipackindex sparsecheckout \
         sparsecheckoutcone checkstat trustctime fscache longpaths whitespace commentchar commentstring notesref fsync \
         fsyncmethod fsyncobjectfiles sharedrepository warnambiguousrefs checkroundtripencoding hidedotfiles \
         createobject preferSymlinkRefs maxtreedepth hookspath splitindex",
    ),
    ("extensions", "", "worktreeconfig objectformat refstorage relativeworktrees noop preciousobjects"),
    (
        "remote",
        "*",
        "url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall followremotehead gh-resolved",
    ),
    ("remote", "", "pushdefault"),
    ("url", "*", "insteadof pushinsteadof"),
    // Not mergeoptions: they are options of `git merge`, which reads a file and names a program by some.
    (
        "branch",
        "*",
        "remote merge rebase pushremote description base vscode-merge-base gh-merge-base gk-merge-base gk-last-accessed \
         gk-last-modified gk-associated-issues github-pr-owner-number github-pr-base-branch",
    ),
    ("branch", "", "autosetupmerge autosetuprebase sort"),
    ("tag", "", "sort gpgsign"),
    ("user", "", "name email signingkey useconfigonly"),
    ("author", "", "name email"),
    ("committer", "", "name email"),
    ("init", "", "defaultbranch"),
    ("pull", "", "rebase ff octopus twohead"),
    ("push", "", "default autosetupremote followtags gpgsign usebitmaps"),
    ("fetch", "", "prune prunetags parallel writecommitgraph"),
    ("rebase", "", "autostash autosquash updaterefs stat missingcommitscheck"),
    ("merge", "", "conflictstyle ff renamelimit renames log stat"),
    ("rerere", "", "enabled autoupdate"),
    ("commit", "", "gpgsign verbose cleanup status"),
    ("gpg", "", "format"),
    ("checkout", "", "defaultremote guess workers"),
    (
        "diff",
        "",
        "algorithm renames renamelimit mnemonicprefix noprefix colormoved colormovedws context interhunkcontext \
         indentheuristic statgraphwidth wserrorhighlight suppressblankempty relative dirstat ignoresubmodules",
    ),
    ("log", "", "date decorate abbrevcommit follow mailmap showroot graphcolors"),
    ("status", "", "showuntrackedfiles relativepaths short branch aheadbehind renames renamelimit showstash"),
    ("color", "", "*"),
    ("color", "*", "*"),
    ("column", "", "*"),
    ("advice", "", "*"),
    ("feature", "", "manyfiles experimental"),
    ("index", "", "version threads sparse skiphash recordendofindexentries recordoffsettable"),
    ("pack", "", "threads windowmemory usebitmaps usesparse writereverseindex"),
    ("gc", "", "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable writecommitgraph"),
    ("maintenance", "", "auto strategy"),
    ("i18n", "", "commitencoding logoutputencoding"),
    ("receive", "", "denycurrentbranch denynonfastforwards denydeletes"),
    ("submodule", "*", "url active branch ignore shallow fetchrecursesubmodules"),
    ("submodule", "", "active fetchjobs"),
    ("lfs", "", "repositoryformatversion"),
    ("lfs", "*", "access"),
    ("gui", "", "wmstate geometry"),
    ("http", "", "postbuffer"),
];

/// Reads settings as git does, character by character.
///
/// # Errors
/// In which line git and we may not agree.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Setting>, String> {
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        .map_err(|_| "is not UTF-8 text".to_owned())?;
    if text.contains('\0') {
        return Err("holds a null character".into());
    }
    let mut reader = Text { rest: text.chars().peekable(), line: 1 };
    let mut settings = Vec::new();
    let mut header: Option<(String, Option<String>)> = None;
    while let Some(c) = reader.next() {
        match c {
            '#' | ';' => reader.comment(),
            '[' => header = Some(reader.header()?),
            c if c.is_ascii_whitespace() => {}
            c if c.is_ascii_alphabetic() => {
                let (section, subsection) = header.clone().ok_or_else(|| reader.unclear())?;
                let key = reader.key(c);
                let value = reader.assigned()?;
                settings.push(Setting { section, subsection, key, value });
            }
            _ => return Err(reader.unclear()),
        }
    }
    Ok(settings)
}

struct Text<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Text<'_> {
    /// The next character; a carriage return before a line's end is not part of the text.
    fn next(&mut self) -> Option<char> {
        let mut c = self.rest.next()?;
        if c == '\r' && self.rest.peek() == Some(&'\n') {
            self.rest.next();
            c = '\n';
        }
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn unclear(&self) -> String {
        format!("cannot be read reliably in line {}", self.line)
    }

    fn comment(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// What is between brackets: `[a]`, `[a.b]` or `[a "B"]`.
    fn header(&mut self) -> Result<(String, Option<String>), String> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(']') => {
                    return Ok(match name.split_once('.') {
                        Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                        None => (name, None),
                    });
                }
                Some(' ' | '\t') => break,
                Some(c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => name.push(c.to_ascii_lowercase()),
                _ => return Err(self.unclear()),
            }
        }
        loop {
            match self.next() {
                Some(' ' | '\t') => {}
                Some('"') => break,
                _ => return Err(self.unclear()),
            }
        }
        let mut subsection = String::new();
        loop {
            match self.next() {
                Some('"') => break,
                Some('\\') => match self.next() {
                    Some(c) if c != '\n' => subsection.push(c),
                    _ => return Err(self.unclear()),
                },
                Some('\n') | None => return Err(self.unclear()),
                Some(c) => subsection.push(c),
            }
        }
        // `[a.b "C"]` is two subsections in one.
        match self.next() {
            Some(']') if !name.contains('.') => Ok((name, Some(subsection))),
            _ => Err(self.unclear()),
        }
    }

    fn key(&mut self, first: char) -> String {
        let mut key = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            key.push(c.to_ascii_lowercase());
        }
        key
    }

    /// What follows a key.
    fn assigned(&mut self) -> Result<Option<String>, String> {
        loop {
            match self.next() {
                Some(' ' | '\t') => {}
                Some('\n') | None => return Ok(None),
                Some('=') => return self.value().map(Some),
                Some(_) => return Err(self.unclear()),
            }
        }
    }

    fn value(&mut self) -> Result<String, String> {
        let (mut value, mut blanks, mut quoted) = (String::new(), String::new(), false);
        loop {
            let c = match self.next() {
                Some('\n') | None if quoted => return Err(self.unclear()),
                Some('\n') | None => return Ok(value),
                Some('#' | ';') if !quoted => {
                    self.comment();
                    return Ok(value);
                }
                Some('"') => {
                    quoted = !quoted;
                    continue;
                }
                Some('\\') => match self.next() {
                    Some('\n') => continue,
                    Some('t') => '\t',
                    Some('b') => '\u{8}',
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    _ => return Err(self.unclear()),
                },
                Some(c) if c.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        blanks.push(c);
                    }
                    continue;
                }
                Some(c) => c,
            };
            value.push_str(&std::mem::take(&mut blanks));
            value.push(c);
        }
    }
}

/// Settings whose values are not secret, but for what an address may hold.
const OPEN: &str = "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks worktree url pushurl \
    fetch push remote merge rebase pushremote autosetuprebase name email editor active autocrlf eol safecrlf gpgsign signingkey \
    prune tagopt mirror objectformat refstorage worktreeconfig partialclone promisor partialclonefilter hookspath ff \
    sparsecheckout sparsecheckoutcone vscode-merge-base gh-resolved";

/// Whether the address of a remote has no account of its own in it.
fn is_open(address: &str) -> bool {
    let account = address.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'));
    account.is_none_or(|(account, _)| account == "git") && !address.contains('?')
}

/// Whether a configuration surely holds neither passwords nor tokens: only settings that are known to be open, and addresses
/// without an account of their own.
pub(in crate::permission) fn is_plain(text: &str) -> bool {
    let address = is_open;
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() {
            return true;
        }
        if line.starts_with('[') {
            return line.ends_with(']') && address(line);
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let name = name.trim().to_ascii_lowercase();
        OPEN.split_whitespace().any(|known| known == name) && address(value) && !value.ends_with('\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_git_does() {
        for (text, want) in [
            ("[core]\n\tbare = false\n", "core.bare=false"),
            ("\u{feff}[Core] FileMode=true # x\r\n", "core.filemode=true"),
            ("[a \"B.c\\\"]\"] k", "a.B.c\"].k"),
            ("[A.B]k=v", "a.b.k=v"),
            ("[a]k = one \\\n two \"# x\" ; no\n", "a.k=one  two # x"),
            ("# x\n; [y]\n[a]\nk=\"\"\nl=a\\tb", "a.k=|a.l=a\tb"),
            ("k=v", "line 1"),
            ("[a]\n=v", "line 2"),
            ("[a\nk=v", "line 2"),
            ("[a]k=\"x\n", "line 2"),
            ("[a]k=\\x", "line 1"),
            ("[a]k v", "line 1"),
            ("[a b]k", "line 1"),
            ("[a.b \"c\"]k", "line 1"),
            ("[a]k=\0", "null"),
        ] {
            let got = match parse(text.as_bytes()) {
                Ok(settings) => {
                    let one = |setting: Setting| {
                        setting.name() + &setting.value.map_or(String::new(), |value| format!("={value}"))
                    };
                    settings.into_iter().map(one).collect::<Vec<_>>().join("|")
                }
                Err(error) => error,
            };
            assert!(got == want || want.len() < 8 && got.contains(want), "{text:?}: {got:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_harmless() {
        for (text, want) in [
            ("[core]bare=true", true),
            ("[remote \"origin\"]url=x", true),
            ("[branch \"x.y\"]vscode-merge-base=z", true),
            ("[branch \"x\"]mergeoptions=-F /etc/passwd", false),
            ("[submodule \"s\"]update=rebase", true),
            ("[core]fsmonitor=0", true),
            ("[core]fsmonitor", false),
            ("[core]fsmonitor=x", false),
            ("[core \"x\"]bare", false),
            ("[core.x]bare", false),
            ("[submodule \"s\"]update=!x", false),
            ("[filter \"\"]clean=x", false),
            ("[diff]external=x", false),
            ("[diff \"d\"]textconv=x", false),
            ("[merge \"d\"]driver=x", false),
            ("[include]path=x", false),
            ("[includeIf \"gitdir:/\"]path=x", false),
            ("[alias]status=!x", false),
            ("[remote \"o\"]promisor", false),
            ("[remote \"o\"]uploadpack=x", false),
            ("[extensions]partialclone=o", false),
            ("[core]excludesfile=/etc/passwd", false),
            ("[core]worktree=/", false),
            ("[core]pager=x", false),
            ("[gc]recentobjectshook=x", false),
            ("[pretty]oneline=%GG", false),
            ("[format]pretty=%GG", false),
            ("[man \"x\"]cmd=x", false),
            ("[new]thing=x", false),
        ] {
            let settings = parse(text.as_bytes()).unwrap();
            assert_eq!(settings.iter().all(Setting::is_harmless), want, "{text}");
        }
    }

    #[test]
    fn open_configurations_hold_no_tokens() {
        for (text, want) in [
            ("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@h.example:a/b.git\n", true),
            (
                "[remote \"origin\"]\n\turl = https://h.example/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
                true,
            ),
            ("[remote \"origin\"]\n\turl = https://u:tok@h.example/a.git\n", false),
            ("[remote \"origin\"]\n\turl = https://tok@h.example/a.git\n", false),
            ("[http \"https://h.example/\"]\n\textraheader = Authorization: x\n", false),
            ("[url \"https://tok@h.example/\"]\n", false),
            ("[core]\n\tbare = \\\n x\n", false),
            ("# tok\n", false),
        ] {
            assert_eq!(is_plain(text), want, "{text}");
        }
    }
}
