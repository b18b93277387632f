//! What git's subcommands show of what is in files, and not only names and figures. The lists hold what is known to show
//! nothing; whatever is on none of them may show any tracked file.

use super::super::super::shell::Word;
use super::super::{Named, Reader, Reads, Tracked, plain};

/// Options with which no contents are shown that were not without them.
const PATCHLESS: &str = "-- --oneline --graph --decorate --no-decorate --all --branches --tags --remotes --glob --max-count --skip \
    --since --after --until --before --author --committer --grep --invert-grep --all-match --regexp-ignore-case \
    --extended-regexp --fixed-strings --format --pretty --date --relative-date --abbrev-commit --abbrev --no-abbrev-commit \
    --merges --no-merges --first-parent --reverse --follow --topo-order --date-order --left-right --cherry-pick --cherry-mark \
    --full-history --count --no-notes --diff-filter --find-renames --no-renames --cached --staged --exit-code --root \
    --no-commit-id --no-ext-diff --no-textconv --no-walk --source --boundary --parents --children --not --no-color --color \
    --simplify-by-decoration --ignore-submodules --no-prefix --relative --walk-reflogs --reflog --decorate-refs \
    --author-date-order --no-mailmap --use-mailmap --show-pulls --ancestry-path --clear-decorations --min-parents \
    --max-parents --left-only --right-only --cherry -n -r -t -z -i -E -F -P -g";
/// Options with which names or figures stand in the place of contents.
const SUMMARIES: &str =
    "--stat --numstat --shortstat --dirstat --summary --name-only --name-status --raw --no-patch --quiet -s";

/// What a format of `for-each-ref`, `branch` and `tag` may tell of what a name is for. Not `raw`: that is a file's contents,
/// since a tag may be one for a file.
const FIELDS: &str = "refname objectname objecttype objectsize deltabase tree parent numparent object type tag upstream push HEAD \
    symref worktreepath author authorname authoremail authordate committer committername committeremail committerdate tagger \
    taggername taggeremail taggerdate creator creatordate subject body contents trailers align end color if then else \
    ahead-behind is-base describe version v";

fn within(list: &str, text: &str) -> bool {
    let option = text.split('=').next().unwrap_or_default();
    list.split_ascii_whitespace().any(|known| known == option)
}

/// Which contents the subcommand shows whose options are all listed, and what limits that.
pub(super) fn shows(reader: &Reader, arguments: &[Word], reads: &mut Reads) {
    let texts: Vec<String> = arguments.iter().map(Word::known).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let summary = |text: &&str| within(SUMMARIES, text);
    let patchless = |text: &&str| {
        // A number of commits, a number of them in one word with its option, and what is searched for.
        let inline = text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
            || ["-n", "-S", "-G", "-M", "-C"].iter().any(|option| text.starts_with(option));
        !text.starts_with('-') || inline || within(PATCHLESS, text) || summary(text)
    };
    // Whether a text is found tells, asked often enough, what is in a file.
    let searches = texts.iter().any(|text| text.starts_with("-S") || text.starts_with("-G"));
    let none = !searches && texts.iter().all(patchless);
    let told = none && texts.iter().any(summary);
    let named = Positionals::of(reader, arguments);
    let (tracked, named) = match reader.name {
        "cat-file" if texts.iter().any(|text| matches!(*text, "-t" | "-s" | "-e")) => (Tracked::No, Vec::new()),
        // A commit holds no contents itself.
        "cat-file" => {
            let named = named.objects(false).into_iter().filter(|one| *one != Named::Commit).collect::<Vec<_>>();
            (if named.is_empty() { Tracked::No } else { Tracked::Ever }, named)
        }
        // Where it names no file that is there, one that was.
        "blame" => {
            let mut named = named;
            named.0.retain(|(_, place)| *place != Place::Value);
            (Tracked::Ever, named.objects(true))
        }
        "diff" if told => (Tracked::No, Vec::new()),
        "diff" => {
            let before = texts.iter().take_while(|text| **text != "--");
            let index =
                before.into_iter().all(|text| text.starts_with('-') && !matches!(*text, "--cached" | "--staged"));
            (if index { Tracked::Index } else { Tracked::Ever }, named.objects(true))
        }
        // What is not a commit is shown as it is, whatever the options say.
        "show" => {
            let named = named.objects(true);
            let commits = named.iter().all(|one| matches!(one, Named::Commit | Named::Path(_)));
            (if told && commits { Tracked::No } else { Tracked::Ever }, named)
        }
        // So does a count of what fits a pattern.
        "grep" => {
            let cut = named.0.iter().position(|(_, place)| *place == Place::Before);
            let pattern = !texts.iter().any(|text| text.starts_with("-e"));
            let mut named = named;
            if let Some(at) = cut.filter(|_| pattern) {
                named.0.remove(at);
            }
            let revision = named.0.iter().any(|(_, place)| *place == Place::Before);
            (if revision { Tracked::Ever } else { Tracked::Index }, named.objects(true))
        }
        // These show commits and trees alone: another word that names no file is one of those. A file's older names are others.
        "log" | "whatchanged" if !none && texts.contains(&"--follow") => (Tracked::Ever, vec![Named::Object]),
        "log" | "whatchanged" if !none => (Tracked::Ever, named.commits()),
        "diff-tree" if !none => (Tracked::Ever, named.objects(true)),
        "for-each-ref" if !tells_fields(&texts) => (Tracked::Ever, vec![Named::Object]),
        _ => (Tracked::No, Vec::new()),
    };
    (reads.tracked, reads.named) = (tracked, named);
}

/// Whether formats and orders speak of fields alone that hold no file.
pub(super) fn tells_fields(texts: &[&str]) -> bool {
    let field = |text: &str| {
        let name = text.trim_start_matches(['*', '-']).split([':', ')', '=']).next().unwrap_or_default();
        within(FIELDS, name)
    };
    let format = |text: &str| text.split("%(").skip(1).all(field);
    let mut before = "";
    texts.iter().all(|text| {
        let sorts = text.strip_prefix("--sort=").or(Some(*text).filter(|_| before == "--sort"));
        before = text;
        format(text) && sorts.is_none_or(field)
    })
}

/// Where a word comes in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    /// Behind an option that has a value.
    Value,
    /// Behind `--`.
    Behind,
}

/// The words of a subcommand that are not options.
struct Positionals(Vec<(Word, Place)>);

impl Positionals {
    fn of(reader: &Reader, arguments: &[Word]) -> Positionals {
        let mut all = Vec::new();
        let (mut place, mut valued) = (Place::Before, false);
        for word in arguments {
            let text = word.known();
            if place == Place::Before && text.starts_with('-') && !valued {
                if text == "--" {
                    place = Place::Behind;
                }
                valued = takes_next(reader, &text);
            } else {
                all.push((word.clone(), if valued { Place::Value } else { place }));
                valued = false;
            }
        }
        Positionals(all)
    }

    /// For a subcommand that shows a file by its object's name. `paths`: it takes paths as well.
    fn objects(&self, paths: bool) -> Vec<Named> {
        let one = |(word, place): &(Word, Place)| {
            let text = word.literal().unwrap_or_default();
            match place {
                Place::Behind if paths => path(word),
                // No object's name is so short.
                Place::Value if text.len() < 4 && text.bytes().all(|b| b.is_ascii_digit()) => None,
                _ if is_commit(&text) => Some(Named::Commit),
                _ if let Some(path) = path_of_commit(&text) => Some(Named::At(plain(path))),
                Place::Before if paths && !text.starts_with(':') => Some(Named::Either(word.clone())),
                _ => Some(Named::Object),
            }
        };
        self.0.iter().filter_map(one).collect()
    }

    /// For one that shows nothing but commits.
    fn commits(&self) -> Vec<Named> {
        let one = |(word, place): &(Word, Place)| match place {
            Place::Behind => path(word),
            Place::Value => None,
            Place::Before => Some(Named::Revision(word.clone())),
        };
        self.0.iter().filter_map(one).collect()
    }
}

/// Whether the next word is the value of an option that is listed.
fn takes_next(reader: &Reader, text: &str) -> bool {
    match text.strip_prefix("--") {
        Some(long) => {
            let mut known = reader.long.split_ascii_whitespace();
            !long.contains('=') && known.any(|known| known.strip_suffix(['=', '@']) == Some(long))
        }
        None => {
            let letters = text.trim_start_matches('-');
            letters.find(|c| reader.valued.contains(c)).is_some_and(|at| at + 1 == letters.len())
        }
    }
}

/// What a word behind `--` limits the contents to; None for what it leaves out.
fn path(word: &Word) -> Option<Named> {
    let text = word.known();
    let (marks, rest) = match text.strip_prefix(':') {
        None => return Some(Named::Path(word.clone())),
        Some(rest) => match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some(found) => found,
            None if rest.starts_with(['!', '^']) => return None,
            None => ("top", rest.strip_prefix('/').unwrap_or_default()),
        },
    };
    match marks {
        "exclude" => None,
        "top" | "literal" | "top,literal" if !rest.is_empty() && !rest.starts_with([':', '!', '^', '(']) => {
            Some(Named::Path(plain(rest)))
        }
        // All files, or it is unknown which.
        _ => Some(Named::Object),
    }
}

/// Whether the word can mean nothing to git but a commit: `HEAD`, or what is taken from a commit.
fn is_commit(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let simple =
        |text: &str| !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| name(c) || "~^@".contains(c));
    let single = |text: &str| {
        let base = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let base = if base.ends_with(['~', '^']) { base } else { text };
        let cut = base.trim_end_matches(['~', '^']);
        let peeled = cut.len() < base.len() && !cut.is_empty() && simple(cut);
        let of_head = |text: &str| {
            let rest = text.strip_prefix("HEAD").or(text.strip_prefix('@'));
            rest.is_some_and(|rest| {
                let place = rest.strip_prefix("@{").or(rest.strip_prefix('{')).and_then(|rest| rest.strip_suffix('}'));
                rest.is_empty()
                    || place.is_some_and(|n| n == "u" || n == "upstream" || n.bytes().all(|b| b.is_ascii_digit()))
            })
        };
        peeled || of_head(cut)
    };
    if let Some((from, to)) = text.split_once("...") {
        // The common ancestor of these is looked for.
        return [from, to].iter().all(|side| side.is_empty() || simple(side));
    }
    match text.split_once("..") {
        Some((from, to)) => [from, to].iter().all(|side| side.is_empty() || single(side)) && text != "..",
        None => single(text),
    }
}

/// The path of the one file, or folder, that `HEAD:path`, `v1.0:path` or `:path` names.
fn path_of_commit(text: &str) -> Option<&str> {
    let (revision, path) = text.split_once(':')?;
    // Anything else may be a search for words of a message, or a date.
    let stage = revision.is_empty() && ["0:", "1:", "2:", "3:"].iter().any(|stage| path.starts_with(stage));
    let path = if stage { &path[2..] } else { path };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/~^@-".contains(c);
    let index = !revision.is_empty() || path.starts_with(|c: char| c.is_alphanumeric() || "._".contains(c));
    let place = revision.strip_suffix('}').and_then(|text| text.split_once("@{"));
    let (name, place) = place.unwrap_or((revision, "0"));
    let known = name.chars().all(plain) && !name.starts_with('-') && place.bytes().all(|b| b.is_ascii_digit());
    (known && index && !path.is_empty() && !path.contains(':')).then_some(path)
}
