//! Which questions to `git config` are answered without a secret.

pub(super) const PLACES: &[&str] = &[
    "--global",
    "--local",
    "--system",
    "--worktree",
    "--show-origin",
    "--show-scope",
    "--name-only",
    "--null",
    "-z",
    "--includes",
    "--no-includes",
    "--bool",
    "--int",
    "--path",
];

pub(super) const ASKS: &[&str] = &["--list", "-l", "list", "--get", "--get-all", "--get-regexp", "get"];

/// Sections in which no value is a secret. Others may hold headers, addresses and helpers with passwords.
const TOLD: &str = "user author committer core init branch alias color diff merge pull push rebase commit tag log status fetch gc gpg \
    pack i18n rerere column advice feature index submodule remote";

/// Whether `git config` only tells values that are not secret.
pub(super) fn tells(texts: &[&str]) -> bool {
    let mut rest = texts;
    while let [first, after @ ..] = rest {
        if !PLACES.contains(first) && !first.starts_with("--type=") {
            break;
        }
        rest = after;
    }
    let told = |name: &str| {
        let section = name.trim_start_matches('^').split(['.', '\\']).next().unwrap_or_default().to_ascii_lowercase();
        TOLD.split_ascii_whitespace().any(|known| known == section)
    };
    // A pattern that can only fit the names of one section.
    let one_section = |pattern: &str| {
        let known = pattern.strip_prefix('^').and_then(|rest| rest.split_once("\\."));
        let plain = |c: char| c.is_ascii_alphanumeric() || ".*+$_-\\".contains(c);
        known.is_some_and(|(section, rest)| {
            told(section) && section.chars().all(char::is_alphanumeric) && rest.chars().all(plain)
        })
    };
    let names = |names: &[&str]| {
        names.iter().all(|name| !name.starts_with('-')) && names.first().is_some_and(|name| told(name))
    };
    let own = |place: &&str| matches!(*place, "--local" | "--worktree" | "--name-only");
    match rest {
        // What the user's own files hold beside may be the header of an account.
        ["--list" | "-l" | "list", places @ ..] => {
            let before = &texts[..texts.len() - rest.len()];
            places.iter().all(|place| PLACES.contains(place)) && before.iter().chain(places).any(own)
        }
        ["--get-regexp", wanted @ ..] if !wanted.first().is_some_and(|pattern| one_section(pattern)) => false,
        ["--get" | "--get-all" | "--get-regexp" | "get", wanted @ ..] => matches!(wanted.len(), 1 | 2) && names(wanted),
        // Without a section it is a subcommand, like edit.
        [name] => names(&[name]) && name.contains('.'),
        _ => false,
    }
}

/// Whether what it tells may be the address of a remote.
pub(in crate::permission) fn tells_addresses(texts: &[&str]) -> bool {
    let section =
        |text: &str| text.trim_start_matches('^').split(['.', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    texts.iter().any(|text| {
        matches!(*text, "--list" | "-l" | "list") || matches!(section(text).as_str(), "remote" | "submodule")
    })
}
