//! What is known of commands: which only read, and which options make a command execute or write.

pub(super) mod commit;
mod compiler;
pub(super) mod covered;
pub(super) mod danger;
mod fetched;
pub(super) mod find;
pub(super) mod git;
mod listed;
mod places;
mod reach;
pub(super) mod readers;
mod script;
mod special;
pub(super) mod starters;

use super::shell::{Piece, Word};
pub(super) use fetched::writes_what_it_names;
pub(super) use git::{Gathered, gathered, left_out};
pub use listed::{Listed, listed_git_options, listed_options};
pub(super) use places::{
    Formats, Places, Runs, brings_links, formats, leads_through, names_option, names_options, places, runs_code,
    runs_of_folder, unpacked_in,
};
pub(super) use reach::{Named, Reach, Tracked};

/// What a command that only reads looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reads {
    /// Operands and option values that name files or folders.
    pub(super) paths: Vec<Word>,
    /// What it shows of what lies below its paths, or below the working directory without paths.
    pub(super) reach: Reach,
    /// Globs of which a file's name must match one, or its contents are not shown; None where every name may.
    pub(super) only: Option<Vec<String>>,
    /// It passes over what ignore files name.
    pub(super) ignores: bool,
    /// It follows the links that it meets there.
    pub(super) follows: bool,
    /// The same as text, from the top of git's work tree.
    pub(super) from_top: Vec<Word>,
    /// Whether it is git and shows the contents of files that are tracked.
    pub(super) tracked: Tracked,
    /// What its words limit that to.
    pub(super) named: Vec<Named>,
    /// Globs that git itself matches with the names of tracked files.
    pub(super) patterns: Vec<String>,
    /// It is git and shows the addresses of remotes.
    pub(super) addresses: bool,
    /// It starts git, in the folder that these words lead to one after the other.
    pub(super) git: Option<Vec<Word>>,
}

impl Reads {
    /// Whether it shows what is in files: links that came meanwhile would show others.
    pub(super) fn shows_contents(&self) -> bool {
        !self.paths.is_empty() && self.reach != Reach::Names || self.reach > Reach::Names
    }
}

/// Whether the command only reads, and what.
///
/// # Errors
/// Why it is not known to.
pub(super) fn reads(words: &[Word]) -> Result<Reads, String> {
    let Some((name, arguments)) = words.split_first() else { return Ok(Reads::default()) };
    let Some(name) = name.literal() else { return Err("the command's name is not literal".into()) };
    if let Some(all) = (name == "git").then(|| super::dynamic::with_hashes(arguments)).flatten() {
        return either(&words[0], all);
    }
    let arguments = &arguments.iter().map(super::dynamic::told).collect::<Vec<_>>();
    if let Some(word) = arguments.iter().find(|word| word.is_dynamic()) {
        return Err(format!("{} is only known when it runs", word.source));
    }
    if tells_version(&name, arguments) {
        return Ok(Reads::default());
    }
    // Alone it shows every variable.
    if matches!(name.as_str(), "set" | "read" | "export")
        && !arguments.is_empty()
        && super::evaluate::evaluates(words).is_none()
    {
        return Ok(Reads::default());
    }
    if let Some(result) = special::reads(&name, arguments) {
        return result;
    }
    match name.as_str() {
        "git" => git::reads(arguments),
        "find" => find::reads(arguments),
        _ => match readers::READERS.iter().find(|reader| reader.name == name) {
            Some(reader) => reader.reads(arguments),
            None => Err(format!("{name} is not on the read-only list")),
        },
    }
}

/// What the command reads, whichever of these are its arguments.
fn either(name: &Word, all: Vec<Vec<Word>>) -> Result<Reads, String> {
    let mut either = Reads::default();
    for arguments in all {
        let reads = reads(&[std::slice::from_ref(name), &arguments].concat())?;
        either.paths.extend(reads.paths);
        either.from_top.extend(reads.from_top);
        either.reach = either.reach.max(reads.reach);
        either.follows |= reads.follows;
        either.addresses |= reads.addresses;
        either.tracked = either.tracked.max(reads.tracked);
        // Each time all of it has to be limited.
        if reads.tracked != Tracked::No {
            either.named.push(if reads.named.is_empty() { Named::Object } else { Named::Commit });
            either.named.extend(reads.named);
        }
        either.patterns.extend(reads.patterns);
        either.git = reads.git;
    }
    Ok(either)
}

/// What a search or a copy may show at most, with options that are not known; None for another command.
pub(super) fn searches(words: &[Word]) -> Option<Reads> {
    let mut words = words;
    while let Some(Ok(inner)) = super::wrapper::unwrap(words) {
        words = inner;
    }
    let name = words.first()?.literal()?;
    let name = name.rsplit('/').next().unwrap_or_default();
    let searches = ["grep", "egrep", "fgrep", "rgrep", "ugrep", "rg", "ag", "ack", "diff"].contains(&name);
    let deep = |word: &Word| word.prefix().starts_with('-') && word.known().contains(['r', 'R', 'a', 'd']);
    let copies = match name {
        "tar" => true,
        "cp" | "zip" | "scp" | "rsync" | "gzip" | "bzip2" | "xz" => words.iter().any(deep),
        _ => false,
    };
    // Where nothing but a word of bash's is not known, the others tell what is read.
    let told: Vec<Word> = words.iter().map(|word| if word.is_dynamic() { plain("0") } else { word.clone() }).collect();
    if let Some(reads) = (words.len() > 1).then(|| reads(&told).ok()).flatten() {
        return Some(reads);
    }
    let operands = words[1..].iter().filter(|word| !word.is_dynamic() && !word.prefix().starts_with('-'));
    let here = searches.then(|| plain("."));
    let paths: Vec<Word> = match searches || copies {
        true => operands.cloned().chain(here).collect(),
        false => sent_folders(name, words),
    };
    let follows = follows_links(name, &words[1..]);
    let looks = searches || copies || !paths.is_empty();
    looks.then(|| Reads { paths, reach: Reach::Everything, follows, ..Reads::default() })
}

/// The operands that may be folders which are sent elsewhere: those of copies to a cloud or a container, and of a program that
/// nobody described what is written as a path.
fn sent_folders(name: &str, words: &[Word]) -> Vec<Word> {
    let known: Vec<String> = words.iter().map(Word::known).collect();
    let copies = match name {
        "aws" => known.iter().any(|word| matches!(word.as_str(), "sync" | "cp" | "mv")),
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" => known.iter().take(4).any(|word| word == "cp"),
        _ => false,
    };
    let path = |word: &str| word == "." || word.contains('/') && !word.contains("://");
    let sends = copies || known[1..].iter().any(|word| path(word)) && danger::is_undescribed(&known);
    if !sends {
        return Vec::new();
    }
    let operand = |word: &&Word| !word.is_dynamic() && !word.prefix().starts_with('-');
    words[1..].iter().filter(operand).filter(|word| copies || path(&word.known())).cloned().collect()
}

/// Whether a search or a copy takes what links lead to, by itself or by an option.
fn follows_links(name: &str, arguments: &[Word]) -> bool {
    let option = |letters: &str, long: &str| {
        arguments.iter().map(Word::known).any(|text| match text.strip_prefix("--") {
            Some(given) => !given.is_empty() && !long.is_empty() && given.starts_with(long),
            None => text.strip_prefix('-').is_some_and(|given| given.contains(|c| letters.contains(c))),
        })
    };
    match name {
        "zip" => !option("y", "symlinks"),
        "scp" | "aws" => true,
        "tar" => option("h", "deref") || arguments.first().is_some_and(|word| word.known().contains('h')),
        "cp" => option("LH", "deref"),
        "rsync" => option("Lk", "copy-"),
        "diff" => !option("", "no-deref"),
        "grep" | "egrep" | "fgrep" | "rgrep" | "ugrep" => option("RS", "deref"),
        "rg" | "ag" | "ack" => option("Lf", "follow"),
        _ => false,
    }
}

/// Programs that tell their version before they read anything of the folder. What a project pins is not here: what starts
/// as `cargo`, `node` or `python` looks first for a toolchain that the folder names, and `pytest` runs its `conftest.py`,
/// and `curl` reads the `ldaprc` of the folder where it is built with LDAP.
const VERSIONED: &[&str] = &["bash", "sed", "tar", "gzip", "gcc", "g++", "cc", "make"];

fn tells_version(name: &str, arguments: &[Word]) -> bool {
    let [option] = arguments else { return false };
    VERSIONED.contains(&name) && option.literal().as_deref() == Some("--version")
}

/// Whether a name means something to us, so that a function of that name would confuse people and us.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "git" | "find" | "cd")
        || special::NAMES.contains(&name)
        || readers::READERS.iter().any(|reader| reader.name == name)
}

/// Whether it is a program that does no more than read, whatever its options.
pub(super) fn only_reads(name: &str) -> bool {
    readers::READERS.iter().any(|reader| reader.name == name && !reader.acts)
}

/// Whether the command's arguments are surely not commands themselves.
pub(super) fn takes_data(name: &str) -> bool {
    special::NAMES.contains(&name) && name != "command"
        || readers::READERS.iter().any(|reader| reader.name == name)
        || [
            "cp", "mv", "rm", "mkdir", "rmdir", "touch", "cd", "ln", "chmod", "chown", "tee", "kill", "export",
            "unset", "local", "ag", "curl", "wget", "gzip", "zip", "unzip",
        ]
        .contains(&name)
}

/// Whether a word could be an option once bash has expanded it.
pub(super) fn may_be_option(word: &Word) -> bool {
    match word.pieces.first() {
        Some(Piece::Text(text)) => text.starts_with('-'),
        Some(Piece::Tilde) | None => false,
        Some(Piece::Glob(_) | Piece::Dynamic(_)) => true,
    }
}

/// How a reading command's arguments are laid out.
pub(super) struct Reader {
    pub(super) name: &'static str,
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options with a value.
    pub(super) valued: &'static str,
    /// Short options whose value is in the same word, or is not a value: for some programs of the name it is optional,
    /// for others the next word is a file.
    pub(super) attached: &'static str,
    /// Short options whose value is a path.
    pub(super) pathed: &'static str,
    /// Long options: `name`, `name=` with a value, `name?` with a value only after `=`, `name@` with a path.
    pub(super) long: &'static str,
    pub(super) operands: Operands,
    /// Short or long options that make it look at everything below.
    pub(super) deep: &'static [&'static str],
    /// What it shows of what lies below, once it looks there, with the options above alone.
    pub(super) below: Reach,
    /// Options like those above, letters and long ones, with which it shows everything below.
    pub(super) wide: (&'static str, &'static str),
    /// Options like those above, letters and long ones, whose value names the files that are shown, hidden ones as well.
    pub(super) naming: (&'static str, &'static str),
    /// Whether options that are not listed can write, run something or read options from elsewhere, so that a word of
    /// which only bash knows whether it is an option may not stand where one could.
    pub(super) acts: bool,
    /// Whether the next word is an option's value depends on more than this table says: it has to be harmless either way.
    pub(super) unsure: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Paths,
    /// At most one path: a second one would be written.
    OnePath,
    /// Text that is not a path.
    Data,
    /// A pattern, unless an option gave one, then paths.
    Pattern,
    /// As Pattern, and everything below the working directory when there is no path.
    PatternDeep,
    /// Paths, and everything below.
    DeepPaths,
    None,
}

impl Reader {
    /// Reads the arguments as GNU's getopt does; an option that is not listed, also an abbreviated one, is not known.
    fn reads(&self, arguments: &[Word]) -> Result<Reads, String> {
        let mut reads = Reads { ignores: self.below == Reach::Visible, ..Reads::default() };
        let mut operands: Vec<&Word> = Vec::new();
        let mut pattern_given = false;
        let (mut deep, mut wide, mut lists) = (false, false, false);
        // Values behind an operand: where options end at the first operand, they are operands, too.
        let mut late: Vec<Word> = Vec::new();
        let mut rest = arguments.iter();
        // Where a glob becomes several words, the second is not a value anymore. And where an option takes no value after
        // all, what follows it is an option: a value with a dash is one of those that nobody means.
        let value_of = |word: Option<&Word>, option: &str| match word {
            Some(word) if word.has_glob() => Err(format!("{} after {option} is a glob: quote it", word.source)),
            Some(word) if dashed(word) && !matches!(option, "-e" | "--regexp") => {
                Err(format!("{} after {option} may be an option: write it into the same word", word.source))
            }
            Some(word) => Ok(word.clone()),
            None => Err(self.unknown(option)),
        };
        // Binutils read options from such a file, wherever in the line it is named.
        if self.name == "strings" && arguments.iter().any(|word| word.known().starts_with('@')) {
            return Err("strings reads options from a file".into());
        }
        while let Some(word) = rest.next() {
            let text = word.known();
            if !may_be_option(word) || text == "-" {
                operands.push(word);
                // What follows a first operand is an option here and a second operand there.
                if self.operands == Operands::OnePath {
                    operands.extend(rest.by_ref());
                }
                continue;
            }
            if word.has_glob() && !text.starts_with('-') {
                if self.acts {
                    return Err(format!("{} may become an option of {}: write ./{0}", word.source, self.name));
                }
                // When the glob is expanded, a name like an option asks.
                operands.push(word);
                continue;
            }
            // `--include=*.rs` stays that option, whatever it becomes.
            let stays = word.prefix().split_once('=').is_some_and(|(option, _)| {
                option
                    .strip_prefix("--")
                    .is_some_and(|name| self.long_options().any(|known| known.strip_suffix('=') == Some(name)))
            });
            if word.has_glob() && !stays {
                return Err(format!("{text} may become an option"));
            }
            if text == "--" {
                operands.extend(rest.by_ref());
                break;
            }
            if self.deep.contains(&text.split('=').next().unwrap_or_default()) {
                deep = true;
                reads.follows |= self.follows(&text);
            }
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                let known = self.long_options().find(|known| known.trim_end_matches(['=', '?', '@']) == name);
                let Some(known) = known.filter(|_| !name.is_empty()) else { return Err(self.unknown(&text)) };
                if self.unsure && known.ends_with('=') && value.is_none() {
                    self.either_way(rest.as_slice().first(), &text)?;
                    continue;
                }
                reads.ignores &= !name.starts_with("no-ignore");
                pattern_given |= matches!(name, "regexp" | "file" | "files" | "type-list");
                lists |= matches!(name, "files" | "type-list");
                wide |= self.wide.1.split(' ').any(|wide| wide == known);
                let naming = self.naming.1.split(' ').any(|naming| naming == known);
                if naming && (value.is_some() || known.ends_with('@')) {
                    wide |= reach::name(name, value.unwrap_or_default(), &mut reads.only);
                }
                match (known.chars().next_back(), value) {
                    (Some('='), None) => {
                        let value = value_of(rest.next(), &text)?;
                        if naming {
                            wide |= reach::name(name, &value.known(), &mut reads.only);
                        }
                        late.extend(Some(value).filter(|_| !operands.is_empty()))
                    }
                    (Some('@'), None) => reads.paths.push(value_of(rest.next(), &text)?),
                    (Some('@'), Some(value)) => reads.paths.push(plain(value)),
                    (Some('=' | '?'), Some(_)) | (Some('?'), None) => {}
                    (_, None) => {}
                    (_, Some(_)) => return Err(self.unknown(&text)),
                }
                continue;
            }
            let mut letters = text[1..].chars();
            while let Some(letter) = letters.next() {
                if self.deep.iter().any(|deep| deep.len() == 2 && deep.ends_with(letter)) {
                    deep = true;
                    reads.follows |= self.follows(&format!("-{letter}"));
                }
                wide |= self.wide.0.contains(letter);
                let digit = letter.is_ascii_digit() && self.flags.contains('0');
                if self.flags.contains(letter) || self.wide.0.contains(letter) || digit {
                    continue;
                }
                if self.attached.contains(letter) && !letters.as_str().is_empty() {
                    break;
                }
                let path = self.pathed.contains(letter);
                let naming = self.naming.0.contains(letter);
                if !path && !naming && !self.valued.contains(letter) {
                    return Err(self.unknown(&format!("-{letter}")));
                }
                pattern_given |= matches!(letter, 'e' | 'f');
                let inline = letters.as_str();
                if self.unsure && inline.is_empty() {
                    self.either_way(rest.as_slice().first(), &text)?;
                    break;
                }
                // Tree continues with the cluster and takes the value from the next word.
                if self.name == "tree" && !inline.bytes().all(|b| b.is_ascii_digit() && letter == 'L') {
                    return Err(self.unknown(&text));
                }
                let value = if inline.is_empty() { value_of(rest.next(), &text)? } else { plain(inline) };
                if naming {
                    wide |= reach::name(&letter.to_string(), &value.known(), &mut reads.only);
                }
                if path {
                    reads.paths.push(value);
                } else if inline.is_empty() && !operands.is_empty() {
                    late.push(value);
                }
                break;
            }
        }
        let globbed = |operands: &[&Word]| {
            operands.iter().filter(|word| word.has_glob()).map(|word| (*word).clone()).collect::<Vec<_>>()
        };
        match self.operands {
            Operands::Paths | Operands::DeepPaths => reads.paths.extend(operands.iter().map(|word| (*word).clone())),
            Operands::OnePath => match operands.as_slice() {
                [] => {}
                [one] if !one.has_glob() => reads.paths.push((*one).clone()),
                _ => return Err(format!("{} writes its second operand", self.name)),
            },
            Operands::Data => reads.paths.extend(globbed(&operands)),
            Operands::Pattern | Operands::PatternDeep => {
                let paths = if pattern_given { operands.as_slice() } else { operands.get(1..).unwrap_or_default() };
                if !pattern_given && operands.first().is_some_and(|word| word.has_glob()) {
                    return Err("its pattern is a glob: quote it".into());
                }
                reads.paths.extend(paths.iter().map(|word| (*word).clone()));
            }
            Operands::None if operands.is_empty() => {}
            Operands::None => return Err(format!("{} with operands may change something", self.name)),
        }
        let looks_somewhere = match self.operands {
            Operands::Pattern | Operands::PatternDeep if !pattern_given => operands.len() > 1,
            _ => !operands.is_empty(),
        };
        if !matches!(self.operands, Operands::Data | Operands::None) {
            reads.paths.extend(late);
        }
        deep |= matches!(self.operands, Operands::PatternDeep | Operands::DeepPaths);
        reads.reach = match self.below {
            // Also one that lists names alone looks at them.
            below if deep && lists => below.min(Reach::Names),
            _ if deep && wide => Reach::Everything,
            below if deep => below,
            _ if self.name == "diff" && !self.unsure => Reach::Entered,
            _ => Reach::Paths,
        };
        reads.follows |= reads.reach == Reach::Entered;
        // What an option named is not where it looks.
        if reads.reach > Reach::Entered && !looks_somewhere {
            reads.paths.push(plain("."));
        }
        Ok(reads)
    }

    fn long_options(&self) -> impl Iterator<Item = &'static str> {
        [self.long, self.wide.1, self.naming.1].into_iter().flat_map(|list| list.split_whitespace())
    }

    /// Whether the option that makes it look at everything below makes it follow links as well.
    fn follows(&self, option: &str) -> bool {
        self.name == "diff" || self.name != "ls" && matches!(option, "-R" | "--dereference-recursive")
    }

    /// What follows an option is harmless as its value and as an operand: no option.
    fn either_way(&self, next: Option<&Word>, option: &str) -> Result<(), String> {
        match next {
            Some(word) if may_be_option(word) => {
                Err(format!("{} after {option} may be its value or an option: write both as one word", word.source))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, option: &str) -> String {
        format!("{option} is not a known harmless option of {}", self.name)
    }
}

/// Whether the word begins with a dash and is neither that alone nor a number.
fn dashed(word: &Word) -> bool {
    word.known().strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| !c.is_ascii_digit()))
}

/// A literal word of our own making.
pub(super) fn plain(text: &str) -> Word {
    Word { source: text.to_owned(), pieces: vec![Piece::Text(text.to_owned())] }
}
