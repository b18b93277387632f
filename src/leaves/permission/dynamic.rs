//! Words that only bash will know, among the arguments of a command that a rule would allow.

use super::shell::{Expansion, Piece, Word};

/// Programs that neither write, execute nor open anything, whatever options they are given.
const INERT: &str = "echo true false : ls stat du df tr basename dirname realpath readlink pwd which seq sleep whoami id uname \
    nproc printf test [ [[";

/// Programs that neither write nor execute anything either, and show what is in files.
const SHOWING: &str = "cat tac rev head tail wc grep egrep fgrep cut nl fold expand paste comm cmp join md5sum sha1sum \
    sha224sum sha256sum sha384sum sha512sum b2sum cksum";

/// Options whose next word is their value, by program and, where it has them, subcommand.
const VALUED: &[(&str, &str)] = &[
    (
        "find",
        "-name -iname -path -ipath -regex -iregex -type -size -mtime -mmin -maxdepth -mindepth -newer -user -perm",
    ),
    ("git commit", "-m -am --message --author --date --fixup"),
    ("git tag", "-m --message"),
    ("git merge", "-m"),
    ("git notes", "-m --message"),
    ("git stash", "-m --message"),
    ("git log", "--author --since --until --after --before --grep -n -S -G"),
    ("git checkout", "-b -B"),
    ("git switch", "-c -C"),
    ("gh pr", "-t --title -b --body -B --base -H --head"),
    ("gh issue", "-t --title -b --body -S --search"),
    ("pytest", "-k -m"),
    ("go test", "-run -timeout -count"),
    // Where the value itself names a file, its table says so.
    (
        "curl",
        "-H --header -A --user-agent -X --request -m --max-time -d --data --data-raw --data-binary --data-urlencode --json -b \
         --cookie -F --form",
    ),
    ("kubectl get", "-n --namespace -l --selector"),
];

/// Programs whose arguments hold programs: what bash adds to one is run.
const SCRIPTED: &str = "awk gawk mawk nawk sed perl python python2 python3 node deno bun ruby php lua tclsh sqlite3 psql mysql \
    yq bc dc gdb lldb expect ed ex vi vim nvim emacs osascript R Rscript";

pub(super) fn is_inert(name: &str) -> bool {
    INERT.split_ascii_whitespace().any(|known| known == name) || shows_files(name)
}

/// Whether it tells of files no more than that they are there, and what they are.
pub(super) fn shows_names(name: &str) -> bool {
    matches!(name, "ls" | "stat" | "du" | "realpath" | "readlink" | "test" | "[" | "[[")
}

/// Whether it is git, and its words say which commits and branches are meant, or where they go: none is opened.
pub(super) fn takes_revisions(words: &[Word]) -> bool {
    const SUBCOMMANDS: &str = "push fetch pull tag branch switch checkout merge rebase cherry-pick revert reset stash";
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    text(0) == "git" && SUBCOMMANDS.split(' ').any(|known| known == text(1))
}

/// Whether a word that names no file is a branch to the command, or a filter of tests.
pub(super) fn is_no_file(words: &[Word], at: usize) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    // These bring files back that are not there.
    let brings = matches!(&*text(1), "checkout" | "reset" | "stash");
    let tests = text(1) == "test" && matches!(&*text(0), "cargo" | "npm" | "pnpm" | "yarn") || text(0) == "pytest";
    let filters = matches!(&*text(at - 1), "--" | "-t") || !text(at - 1).starts_with('-');
    !words[at].prefix().starts_with('-') && (takes_revisions(words) && !brings || tests && filters)
}

/// Whether it neither writes nor executes anything, and shows what is in files.
pub(super) fn shows_files(name: &str) -> bool {
    SHOWING.split_ascii_whitespace().any(|known| known == name)
}

/// Whether it changes the files that it is given, and shows nothing of what is in them, here or elsewhere.
pub(super) fn changes_alone(name: &str) -> bool {
    matches!(name, "rm" | "rmdir" | "mkdir" | "tee" | "touch" | "truncate" | "shred" | "chmod" | "chown" | "unlink")
}

/// Whether the command, by its program's name, opens no file that its words name: it shows them, tells no more than that files
/// are there, is the shell's own or runs the folder's code.
pub(super) fn opens_nothing(words: &[Word], name: &str) -> bool {
    let own = super::evaluate::is_shells(name) && !super::wrapper::carries(name);
    own || is_inert(name) && !shows_files(name)
        || shows_names(name)
        || matches!(name, "kill" | "pkill" | "pgrep" | "ps")
        || takes_revisions(words)
        || super::commands::runs_code(words)
}

/// Whether the word is the value of an option that says nothing about a file.
pub(super) fn is_told(words: &[Word], at: usize, name: &str) -> bool {
    let option = || words[at - 1].literal().is_some_and(|text| text.starts_with('-'));
    is_value(words, at) && name != "curl" || super::commands::covered::is_plainly_known(name) && option()
}

/// The first argument that bash may make options of: a word that only it will know is settled as the value of a known
/// option, behind `--`, or with a literal start that is not a dash. `globbed` tells whether a glob may stand for a name that
/// starts with a dash.
pub(super) fn unsettled(words: &[Word], globbed: impl Fn(&Word) -> bool) -> Option<&Word> {
    let (name, mut rest) = words.split_first()?;
    let name = name.literal()?;
    if is_inert(&name) {
        return None;
    }
    if SCRIPTED.split_ascii_whitespace().any(|known| known == name) {
        // A program that comes first is followed by files and its own arguments; where options come first, only their table would
        // tell which word is one.
        let plain = |word: &Word| matches!(word.literal().as_deref(), Some("-n" | "-E" | "-r"));
        let first = rest.iter().position(|word| name != "sed" || !plain(word)).unwrap_or(rest.len());
        let option = |word: &Word| word.prefix().starts_with('-') || word.pieces.is_empty();
        let open = |word: &Word| word.is_dynamic() || globbed(word);
        let script = rest.get(first).is_some_and(|word| word.literal().is_some() && !option(word));
        let behind = rest.get(first + 1..).unwrap_or_default();
        let settled = script && !behind.iter().any(option) && behind.iter().all(|word| !open(word) || is_settled(word));
        return rest.iter().find(|word| open(word)).filter(|_| !settled);
    }
    let mut valued = "";
    if let Some((_, options)) = VALUED.iter().find(|(known, _)| *known == name) {
        valued = options;
    } else if let Some((sub, behind)) = rest.split_first()
        && let Some(full) = sub.literal().map(|sub| format!("{name} {sub}"))
        && let Some((_, options)) = VALUED.iter().find(|(known, _)| *known == full)
    {
        (valued, rest) = (options, behind);
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some(text) if text == "--" => return None,
            Some(text) if valued.split_ascii_whitespace().any(|option| option == text) => {
                // More words than one would be no value anymore.
                if let Some(value) = rest.next().filter(|value| value.has_glob() || splits(value)) {
                    return Some(value);
                }
            }
            Some(_) => {}
            None if is_settled(word) || !word.is_dynamic() && !word.prefix().starts_with('-') && !globbed(word) => {}
            None => return Some(word),
        }
    }
    None
}

/// Whether the word is the value of an option that is known to take one, which names no file.
pub(super) fn is_value(words: &[Word], at: usize) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let (name, full) = (text(0), format!("{} {}", text(0), text(1)));
    let takes = |options: &str| options.split_ascii_whitespace().any(|option| option == text(at - 1));
    at > 0 && VALUED.iter().any(|(known, options)| (*known == name || *known == full) && takes(options))
}

/// The words of a command that only shows or compares them, with text for what it may show, as `shown` tells. None when
/// it is not such a command, or nothing is left to bash.
pub(super) fn as_data(words: &[Word], shown: impl Fn(&Word) -> bool) -> Option<Vec<Word>> {
    let (name, arguments) = words.split_first()?;
    let name = name.literal()?;
    let compares = matches!(name.as_str(), "test" | "[" | "[[");
    if !compares && !matches!(name.as_str(), "echo" | "printf" | "true" | "false" | ":" | "basename" | "dirname") {
        return None;
    }
    let text = |word: Option<&Word>| word.and_then(Word::literal).unwrap_or_default();
    let data = |at: usize, word: &Word| {
        let compared =
            |text: String| matches!(text.as_str(), "=" | "==" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
        let before = text(at.checked_sub(1).and_then(|at| arguments.get(at)));
        let emptiness = matches!(before.as_str(), "-n" | "-z");
        let behind = compared(text(arguments.get(at + 1)));
        // Whether a variable is empty is not a secret, what it is compared with may be.
        let empty = emptiness && !behind && word.pieces.len() == 1 && word.expansions().all(Expansion::keeps_empty);
        let neighbour = behind || emptiness || before == "=~" || compared(before);
        let place = if compares { neighbour } else { name != "printf" || at > 0 };
        place && word.is_dynamic() && !word.has_glob() && (compares && empty || shown(word))
    };
    if super::evaluate::evaluates(words).is_some() || !words.iter().any(Word::is_dynamic) {
        return None;
    }
    let known = arguments.iter().enumerate().map(|(at, word)| {
        let pieces = if data(at, word) { vec![Piece::Text("0".into())] } else { word.pieces.clone() };
        Word { source: word.source.clone(), pieces }
    });
    let known: Vec<Word> = [words[0].clone()].into_iter().chain(known).collect();
    (!known.iter().any(Word::is_dynamic)).then_some(known)
}

/// The word with what is known of its substitution: of the pipe of `<(…)`, whose name is that of the input.
pub(super) fn told(word: &Word) -> Word {
    match word.pieces.as_slice() {
        [Piece::Dynamic(one)] if one.source.starts_with("<(") => word.with_pieces(vec![Piece::Text("-".into())]),
        _ => word.clone(),
    }
}

/// Most hashes among the arguments of one command.
const MAX_HASHES: usize = 2;

/// The arguments of a command of git's that takes revisions, with each hash that a substitution prints, and without it: one
/// that fails prints nothing. None when there is no such name, or something else may be in its place.
pub(super) fn with_hashes(arguments: &[Word]) -> Option<Vec<Vec<Word>>> {
    let subcommand = arguments.first()?.literal()?;
    let is_hash = |piece: &Piece| matches!(piece, Piece::Dynamic(one) if prints_hash(&one.source));
    let count = arguments.iter().flat_map(|word| &word.pieces).filter(|piece| is_hash(piece)).count();
    if !matches!(subcommand.as_str(), "log" | "diff" | "show") || !(1..=MAX_HASHES).contains(&count) {
        return None;
    }
    let with = |printed: usize| {
        let mut at = 0;
        let mut tell = |piece: &Piece| {
            let hash = is_hash(piece);
            let text = if hash && printed & 1 << at != 0 { "0" } else { "" };
            at += usize::from(hash);
            if hash { Piece::Text(text.into()) } else { piece.clone() }
        };
        let told = |word: &Word| word.with_pieces(word.pieces.iter().map(&mut tell).collect());
        let words = arguments.iter().map(told).collect::<Vec<_>>().into_iter();
        // Of a word without quotes that is empty, nothing is left.
        let stays =
            |word: &Word| word.source.contains(['"', '\'']) || word.literal().is_none_or(|text| !text.is_empty());
        words.filter(stays).collect()
    };
    Some((0..1 << count).map(with).collect())
}

/// Whether a substitution prints one hash or nothing: what git cannot resolve, it may print as it is given.
pub(super) fn prints_hash(source: &str) -> bool {
    let Some(inner) = source.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._/~^@-".contains(c);
    let mut words = inner.split(' ').filter(|word| !word.is_empty());
    let (git, subcommand) = (words.next(), words.next());
    let words: Vec<&str> = words.collect();
    let head = |word: &&str| {
        let rest = word.strip_prefix("HEAD").or(word.strip_prefix('@'));
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '~' | '^')))
    };
    inner.chars().all(plain)
        && git == Some("git")
        && match subcommand {
            Some("rev-parse") => match words.as_slice() {
                [rest @ .., revision] => {
                    head(revision) && rest.iter().all(|word| matches!(*word, "--short" | "--verify"))
                }
                [] => false,
            },
            Some("merge-base") => words.len() == 2 && !words.iter().any(|word| word.starts_with('-')),
            _ => false,
        }
}

/// Whether bash may make several words of it.
fn splits(word: &Word) -> bool {
    word.expansions().any(|expansion| !expansion.is_one())
}

/// Whether it starts with text that makes it an operand, or with an option's name and its `=`.
fn is_settled(word: &Word) -> bool {
    // A letter and a number, as in `-j$(nproc)`.
    if let [Piece::Text(option), Piece::Dynamic(number)] = word.pieces.as_slice()
        && option.len() == 2
        && option.starts_with('-')
        && number.starts_with_digit()
    {
        return true;
    }
    let start = match word.pieces.first() {
        Some(Piece::Text(text)) => text.as_str(),
        Some(Piece::Tilde) => "~",
        Some(Piece::Dynamic(expansion)) if expansion.starts_with_digit() => "0",
        _ => return false,
    };
    (!start.starts_with('-') || start.contains('=')) && !splits(word)
}
