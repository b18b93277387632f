//! What a command that a rule lets run may put where the same line reads later.

use super::super::shell::{MANY, ONE, Word};
use super::super::wrapper;
use super::{covered, danger, git, readers};

/// Commands that run the folder's own code: who allowed these allowed more than a link or an odd name can do.
const RUNNERS: &str = "cargo rustc go npm npx pnpm yarn bun deno node make just pytest python python3 ruff black mypy eslint \
    prettier tsc jest vitest gradle mvn dotnet bundle rake rspec swift zig";

/// Commands that make neither links nor repositories of what they are given, nor names that they are not given.
const PLACES_NOTHING: &str = "mkdir touch rm rmdir chmod kill";

/// Commands that make plain files, whatever they call them.
const PLACES_FILES: &str = "tee dd truncate gzip gunzip zip split wget curl gcc cc g++ c++ clang clang++ sed awk";

/// Subcommands of git's that change neither the index nor a file of the work tree.
const GIT_PLACES_NOTHING: &str = "commit push tag branch fetch remote notes gc";

/// Subcommands of git's that bring files of a commit or of a patch, and leave configuration and hooks alone.
const GIT_LINKS: &str = "checkout switch restore reset merge rebase cherry-pick revert stash pull am apply rm mv clean";

/// Subcommands of git's that bring a repository or another folder of one.
const GIT_REPOSITORIES: &str = "clone init submodule worktree";

/// Commands of docker's that put nothing into the folder.
const DOCKER_PLACES_NOTHING: &str =
    "build compose ps logs images start stop restart rm rmi pull push tag inspect network volume";

/// What a command that a rule lets run may put where the line then reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::permission) enum Places {
    Nothing,
    /// A folder of the work tree in git's index, which makes a submodule of a repository that is there.
    Listed,
    /// Files and links of a commit, and with them what looks like a repository without a work tree.
    Links,
    /// And repositories, with what they name.
    Repositories,
    /// What the repository that is there names.
    Settings,
}

/// What the command may put somewhere.
pub(in crate::permission) fn places(words: &[Word]) -> Places {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let listed = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    let name = text(0);
    if name == "git" {
        let at = if text(1) == "-C" { 3 } else { 1 };
        return match text(at) {
            sub if listed(GIT_PLACES_NOTHING, &sub) || git::is_listed(&sub) => Places::Nothing,
            sub if sub == "add" => Places::Listed,
            sub if listed(GIT_LINKS, &sub) => Places::Links,
            sub if listed(GIT_REPOSITORIES, &sub) => Places::Repositories,
            _ => Places::Settings,
        };
    }
    if name == "docker" && listed(DOCKER_PLACES_NOTHING, &text(1)) {
        return Places::Nothing;
    }
    let reader = |name: &str| readers::READERS.iter().any(|reader| reader.name == name && !reader.acts);
    let looks = |name: &str| super::super::dynamic::is_inert(name) || reader(name);
    // Past options without a value comes the program.
    let plain =
        |word: &&Word| matches!(word.literal().as_deref(), Some("-0" | "--null" | "-r" | "--no-run-if-empty" | "-t"));
    let program = words[1..].iter().find(|word| !plain(word)).and_then(Word::literal);
    let passed_on = name == "xargs" && program.is_some_and(|program| looks(&program));
    let known = [RUNNERS, PLACES_NOTHING, PLACES_FILES].iter().any(|list| listed(list, &name));
    match known || name.starts_with("./") || looks(&name) || passed_on {
        true => Places::Nothing,
        false => Places::Repositories,
    }
}

/// Whether the command runs the folder's own code.
pub(in crate::permission) fn runs_code(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal).unwrap_or_default();
    name.starts_with("./") || RUNNERS.split_whitespace().any(|known| known == name)
}

/// Programs that rewrite what they are given, or all files of the folder.
const FORMATTERS: &str = "ruff black prettier eslint rustfmt gofmt goimports biome clang-format isort autopep8 yapf stylelint dprint \
    shfmt standard xo rubocop ktlint swiftformat stylua taplo";

/// Subcommands, scripts and options by which other programs do so.
const FORMATTING: &str = "fmt fix format --fix";

/// Those that write only where an option says so, which begins with one of the letters below.
const ASKED_FORMATTERS: &str = "prettier eslint gofmt goimports biome clang-format stylelint shfmt standard xo rubocop";

/// Options by which any of them only looks.
const LOOKING: &str = "--check --diff --dry-run --list-different";

/// Whether a command is there to change sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::permission) enum Formats {
    Nothing,
    /// It could, and is told to look only.
    Looking,
    Writing,
}

/// What the command is to sources.
pub(in crate::permission) fn formats(words: &[Word]) -> Formats {
    let listed = |list: &str, word: &Word| {
        let text = word.known();
        list.split_whitespace().any(|known| text.rsplit('/').next() == Some(known))
    };
    let runner = words.first().is_some_and(|name| listed(RUNNERS, name));
    let formatter = words.first().is_some_and(|name| listed(FORMATTERS, name))
        || runner && words[1..].iter().any(|word| listed(FORMATTING, word) || listed(FORMATTERS, word));
    let writes = |word: &Word| {
        let text = word.known();
        let option = text.trim_start_matches('-');
        option != text && (option.is_empty() || option.starts_with(['w', 'f', 'i', 'a', 'A', 'u'])) || word.is_dynamic()
    };
    let asked = words.iter().take(3).any(|word| listed(ASKED_FORMATTERS, word)) && !words.iter().any(writes);
    match formatter {
        false => Formats::Nothing,
        true if asked || words.iter().any(|word| listed(LOOKING, word)) => Formats::Looking,
        true => Formats::Writing,
    }
}

/// What a command runs of the folder in which it starts, without being told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::permission) enum Runs {
    Nothing,
    /// The hooks of the repository around it.
    Hooks,
    /// The code there, or nobody described it.
    Code,
}

/// What the command, or the one that it starts, runs of the folder.
pub(in crate::permission) fn runs_of_folder(words: &[Word]) -> Runs {
    let mut words = words;
    while let Some(at) = wrapper::carried(words).filter(|at| (1..words.len()).contains(at)) {
        words = &words[at..];
    }
    let name = words.first().and_then(Word::literal).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let described = covered::describes(name)
        || super::takes_data(name)
        || super::super::dynamic::is_inert(name)
        || super::compiler::acts(name, &[]).is_some()
        || matches!(name, "find" | "sed" | "awk" | "gawk" | "mawk" | "nawk" | "date" | "xxd");
    match name {
        "git" if super::reads(words).is_ok() => Runs::Nothing,
        "git" => Runs::Hooks,
        _ if described && !runs_code(words) => Runs::Nothing,
        _ => Runs::Code,
    }
}

/// Whether the command, which is not known to only read, may make a name that starts with a dash, so that a glob behind it
/// becomes an option.
pub(in crate::permission) fn names_options(words: &[Word]) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let listed = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    match text(0) {
        name if listed(PLACES_NOTHING, &name) => words[1..].iter().any(names_option),
        name if name == "git" => {
            let subcommand = text(if text(1) == "-C" { 3 } else { 1 });
            subcommand != "add" && !listed(GIT_PLACES_NOTHING, &subcommand)
        }
        name => !listed(RUNNERS, &name) && !name.starts_with("./") && !super::super::dynamic::is_inert(&name),
    }
}

/// Whether a part of the path starts with a dash, or may do so; a word that starts with one is an option.
pub(in crate::permission) fn names_option(word: &Word) -> bool {
    word.literal().is_none_or(|text| text == "--" || text.contains("/-"))
}

/// Whether the command may put links where the line then writes. Of what is not listed nobody knows more than that a rule
/// lets it run: it would not need them. `plain` tells whether a word names nothing but files.
pub(in crate::permission) fn brings_links(words: &[Word], plain: impl Fn(&Word) -> bool) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    let options = || arguments.iter().filter(|word| word.prefix().starts_with('-') || word.literal().is_none());
    let lettered = |letters: &'static str| {
        move |word: &Word| {
            let text = word.known();
            text.starts_with("--")
                || word.is_dynamic()
                || text.starts_with('-') && text.contains(|c| letters.contains(c))
        }
    };
    match name.literal().as_deref().map(|name| name.rsplit('/').next().unwrap_or_default()) {
        Some("tar") => {
            let bundle = arguments.first().is_some_and(|word| word.known().contains('x'));
            let long =
                |text: &str| text == "--extract" || text == "--get" || !text.starts_with("--") && text.contains('x');
            bundle || options().any(|word| word.is_dynamic() || long(&word.known()))
        }
        Some("unzip" | "bsdtar" | "cpio" | "7z" | "ln" | "rsync" | "patch") => true,
        Some("git") => matches!(places(words), Places::Links | Places::Repositories),
        Some("cp") => options().any(lettered("rRadPls")),
        Some("mv") => {
            let named = options().any(lettered("t"));
            let operands = arguments.iter().filter(|word| !word.prefix().starts_with('-')).rev();
            !operands.skip(usize::from(!named)).all(plain)
        }
        _ => false,
    }
}

/// Where the command unpacks an archive or copies folders, following the links that are there; nothing where the shell is.
/// None for other commands. Git follows no link of its work tree.
pub(in crate::permission) fn unpacked_in(words: &[Word]) -> Option<Vec<Word>> {
    let (name, arguments) = words.split_first()?;
    let name = name.literal()?;
    // The option that names the folder, and those of one letter that have a value.
    let (short, long, valued) = match name.rsplit('/').next()? {
        "tar" | "bsdtar" => ('C', "--directory", "fbgHIKLNTVXF"),
        "unzip" => ('d', "", "Px"),
        "7z" => ('o', "", ""),
        "cpio" => ('D', "--directory", "FHIOR"),
        "cp" => ('t', "--target-directory", "S"),
        _ => return None,
    };
    brings_links(words, |_| true).then_some(())?;
    let (mut found, mut letters, mut open) = (Vec::new(), String::new(), false);
    for (at, word) in arguments.iter().enumerate() {
        let text = word.known();
        open |= word.is_dynamic() || matches!(text.as_str(), "--extract" | "--get");
        let value = text.strip_prefix(long).filter(|_| !long.is_empty());
        if let Some(value) = value.filter(|value| value.is_empty() || value.starts_with('=')) {
            let next = || arguments.get(at + 1).cloned();
            found.extend(value.strip_prefix('=').map(super::plain).or_else(next));
            continue;
        }
        let bundle = at == 0 && name == "tar" && !text.starts_with('-');
        let cluster =
            if bundle { Some(text.as_str()) } else { text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) };
        for (place, letter) in cluster.unwrap_or_default().char_indices() {
            letters.push(letter);
            let rest = &text[text.len() - cluster.unwrap_or_default().len() + place + letter.len_utf8()..];
            if letter == short && !bundle {
                found.extend(if rest.is_empty() { arguments.get(at + 1).cloned() } else { Some(super::plain(rest)) });
            }
            if !bundle && (letter == short || valued.contains(letter)) {
                break;
            }
        }
    }
    if name.ends_with("tar") && !open && !letters.contains('x') {
        return None;
    }
    if found.is_empty() && name == "cp" {
        found.extend(arguments.last().cloned());
    }
    Some(found)
}

/// Whether a command that a rule covers because of where its paths lead may reach something else through a link that is
/// there by then. What removes or makes a name, or replaces the file, does so in the folder that the name is in.
pub(in crate::permission) fn leads_through(name: &str, arguments: &[Word]) -> bool {
    let words = || arguments.iter().map(Word::possible);
    match name {
        "sed" => danger::edited(&words().collect::<Vec<_>>()).iter().any(|file| file.contains(['/', ONE, MANY])),
        "rm" | "rmdir" | "mkdir" => words().any(|word| word.contains(['/', ONE, MANY])),
        // Of its own work tree git follows no link.
        "git" => {
            let makes = |word: &String| ["clone", "init", "worktree", "bundle", "archive"].contains(&word.as_str());
            words().any(|word| makes(&word)) && words().any(|word| word.contains('/'))
        }
        _ if covered::writes_inside(name) => true,
        // Who lets the folder's code run lets it follow links.
        _ if name.starts_with("./") || RUNNERS.split_whitespace().any(|known| known == name) => false,
        _ if super::super::dynamic::is_inert(name) || super::takes_data(name) && !matches!(name, "curl" | "zip") => {
            false
        }
        _ => words().any(|word| word != "." && word.contains(['/', '.', '@', ONE, MANY])),
    }
}
