//! `git commit` and `git add`, with their options read as git reads them: clusters, abbreviations, values.

use std::path::Path;

use super::super::rule::ShellPattern;
use super::super::shell::{MANY, ONE};
use super::super::wrapper;

/// A subcommand and all its options: `name`, `name=` with a value, `name?` with a value only in the same word, `/x` with a
/// short form. What is marked with `!` runs an editor or a signer, reads another file, goes around a hook or rewrites a
/// commit: a rule for the subcommand does not cover it.
pub(super) struct Subcommand {
    pub(super) name: &'static str,
    pub(super) options: &'static str,
}

static SUBCOMMANDS: [Subcommand; 2] = [
    Subcommand {
        name: "commit",
        options: "quiet/q verbose/v file=/F! author= date= message=/m reedit-message=/c! reuse-message=/C fixup= squash=! \
            reset-author trailer= signoff/s template=/t! edit/e! no-edit cleanup= status no-status gpg-sign?/S! all/a \
            include/i! interactive! patch/p! only/o verify no-verify/n! dry-run short branch ahead-behind porcelain long \
            null/z amend! post-rewrite no-post-rewrite! untracked-files?/u pathspec-from-file=! pathspec-file-nul \
            allow-empty allow-empty-message",
    },
    Subcommand {
        name: "add",
        options: "dry-run/n verbose/v interactive/i! patch/p! edit/e! force/f! update/u renormalize intent-to-add/N all/A \
            no-all ignore-removal no-ignore-removal refresh ignore-errors ignore-missing sparse chmod= \
            pathspec-from-file=! pathspec-file-nul",
    },
];

/// The subcommand of that name.
pub(super) fn subcommand(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name)
}

/// Options of `git commit` that neither choose what is committed nor whose and from when it is.
const MESSAGE: &str = "message quiet verbose signoff cleanup no-edit status no-status dry-run short branch porcelain long \
    trailer verify allow-empty allow-empty-message";

/// Subcommands that git has itself, which no alias can be: behind another word there may be a commit with any option.
const BUILT_IN: &str = "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout \
    cherry cherry-pick clean clone commit-graph commit-tree config count-objects describe diff diff-files diff-index \
    diff-tree difftool fetch for-each-ref format-patch fsck gc grep hash-object help init lfs log ls-files ls-remote ls-tree \
    maintenance merge merge-base merge-tree mv name-rev notes pack-refs prune pull push range-diff read-tree rebase reflog \
    remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref \
    sparse-checkout stash status submodule switch symbolic-ref tag unpack-objects update-index update-ref var verify-commit \
    verify-tag version worktree write-tree";

/// A word as far as it is known: how it surely begins, and whether bash puts something behind that.
#[derive(Clone)]
pub(super) struct Argument {
    text: String,
    open: bool,
    /// What bash puts there may be more than one word.
    splits: bool,
    /// All of it, for where it is a value.
    word: String,
}

impl Argument {
    pub(super) fn of(word: &str) -> Argument {
        // An operand that starts with a glob may become an option.
        let end = if word.starts_with(['*', '?', '[']) { Some(0) } else { word.find([ONE, MANY]) };
        let text = word[..end.unwrap_or(word.len())].to_owned();
        Argument { text, open: end.is_some(), splits: word.contains(MANY), word: word.to_owned() }
    }

    /// The end of its text, with a mark where bash puts something behind it.
    fn marked(&self, end: &str) -> String {
        if self.open { format!("{end}{ONE}") } else { end.to_owned() }
    }
}

/// One option of a table.
struct Choice {
    name: &'static str,
    short: Option<char>,
    value: Value,
    acts: bool,
}

/// An option in a line: its long name, `--` for an operand, the word that holds it, and its value as far as it is known.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) acts: bool,
    pub(super) written: String,
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Next,
    Attached,
}

impl Subcommand {
    fn choices(&self) -> impl Iterator<Item = Choice> {
        self.options.split_whitespace().map(|text| {
            let (text, acts) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
            let (text, short) = text.split_once('/').map_or((text, None), |(text, short)| (text, short.chars().next()));
            let (name, value) = match (text.strip_suffix('='), text.strip_suffix('?')) {
                (Some(name), _) => (name, Value::Next),
                (_, Some(name)) => (name, Value::Attached),
                _ => (text, Value::None),
            };
            Choice { name, short, value, acts }
        })
    }

    /// The one option that git takes the name for.
    fn long(&self, name: &str) -> Option<(String, Value, bool)> {
        let listed = self.choices().map(|choice| (choice.name.to_owned(), choice.value, choice.acts));
        // What is switched off was not judged one by one.
        let off = self
            .choices()
            .filter(|choice| !choice.name.starts_with("no-"))
            .map(|choice| (format!("no-{}", choice.name), Value::None, true));
        let mut all: Vec<_> = listed.collect();
        for choice in off {
            if all.iter().all(|known| known.0 != choice.0) {
                all.push(choice);
            }
        }
        if let Some(exact) = all.iter().find(|choice| choice.0 == name) {
            return Some(exact.clone());
        }
        let mut fits = all.into_iter().filter(|choice| !name.is_empty() && choice.0.starts_with(name));
        fits.next().filter(|_| fits.next().is_none())
    }

    /// The options that the arguments hold.
    ///
    /// # Errors
    /// The word of which nobody knows what it is.
    pub(super) fn read(&self, arguments: &[Argument]) -> Result<Vec<Found>, String> {
        let mut found = Vec::new();
        let operand = |argument: &Argument| {
            let written = argument.marked(&argument.text);
            Found { name: "--".into(), acts: false, written, value: String::new() }
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let text = argument.text.as_str();
            let unclear = || Err(text.to_owned());
            if argument.splits || argument.open && text.is_empty() {
                return unclear();
            }
            let next = |rest: &mut std::slice::Iter<'_, Argument>| match rest.next() {
                Some(value) if !value.splits => Ok(value.word.clone()),
                _ => Err(text.to_owned()),
            };
            if let Some(long) = text.strip_prefix("--") {
                if long.is_empty() && !argument.open {
                    found.extend(rest.map(operand));
                    break;
                }
                let (name, inline) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let Some((name, value, acts)) = self.long(name).filter(|_| inline.is_some() || !argument.open) else {
                    return unclear();
                };
                let value = match inline {
                    Some(inline) => argument.marked(inline),
                    None if value == Value::Next => next(&mut rest)?,
                    None => String::new(),
                };
                found.push(Found { name, acts, written: text.to_owned(), value });
            } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty() || argument.open)
            {
                let mut letters = cluster.chars();
                loop {
                    let Some(letter) = letters.next() else {
                        // What bash adds may be more letters.
                        if argument.open {
                            return unclear();
                        }
                        break;
                    };
                    let Some(choice) = self.choices().find(|choice| choice.short == Some(letter)) else {
                        return unclear();
                    };
                    let value = match choice.value {
                        Value::None => String::new(),
                        Value::Next if letters.as_str().is_empty() && !argument.open => next(&mut rest)?,
                        Value::Next | Value::Attached => argument.marked(letters.as_str()),
                    };
                    let (name, acts) = (choice.name.to_owned(), choice.acts);
                    found.push(Found { name, acts, written: text.to_owned(), value });
                    if choice.value != Value::None {
                        break;
                    }
                }
            } else {
                found.push(operand(argument));
            }
        }
        Ok(found)
    }
}

impl Subcommand {
    /// Whether the short option of that letter takes the next word as its value.
    pub(super) fn is_valued(&self, letter: char) -> bool {
        self.choices().any(|choice| choice.short == Some(letter) && choice.value == Value::Next)
    }

    /// How many words the option takes together with its value; None where the table does not tell, or where it acts.
    pub(super) fn step(&self, word: &str) -> Option<usize> {
        let takes = |value: Value, end: bool| if value == Value::Next && end { 2 } else { 1 };
        if let Some(long) = word.strip_prefix("--") {
            let (name, inline) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let choice = self.choices().find(|choice| choice.name == name && !choice.acts)?;
            return (inline.is_none() || choice.value != Value::None).then(|| takes(choice.value, inline.is_none()));
        }
        let mut letters = word.strip_prefix('-')?.chars();
        while let Some(letter) = letters.next() {
            let choice = self.choices().find(|choice| choice.short == Some(letter) && !choice.acts)?;
            if choice.value != Value::None {
                return Some(takes(choice.value, letters.as_str().is_empty()));
            }
        }
        Some(1)
    }

    /// The place of the first operand; past the last argument if no operand is given. Behind what is not known it is the next word.
    pub(super) fn first_operand(&self, arguments: &[String]) -> usize {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let valued = match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                None => break,
                Some("-") => return (at + 1).min(arguments.len()),
                Some(rest) => match rest.strip_prefix('-') {
                    Some(name) => self.choices().any(|choice| choice.name == name && choice.value == Value::Next),
                    None => rest.chars().position(|letter| self.is_valued(letter)) == Some(rest.chars().count() - 1),
                },
            };
            at += if valued { 2 } else { 1 };
        }
        at.min(arguments.len())
    }

    /// The options and operands, with what only bash knows of them marked, and the words of which nobody knows what they are.
    pub(super) fn found(&self, mut arguments: Vec<Argument>) -> (Vec<Found>, Vec<String>) {
        let mut unknown = Vec::new();
        loop {
            match self.read(&arguments) {
                Ok(found) => return (found, unknown),
                Err(word) => {
                    // What comes behind it is judged as if it had no value.
                    if let Some(at) = arguments.iter().position(|argument| argument.text == word) {
                        arguments.remove(at);
                    }
                    unknown.push(word);
                }
            }
        }
    }

    /// The options by their long names and their letters.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, Option<char>)> {
        self.choices().map(|choice| (choice.name, choice.short))
    }

    /// The words that act, or of which nobody knows what they are.
    fn acting(&self, arguments: Vec<Argument>) -> Vec<String> {
        let (found, mut acting) = self.found(arguments);
        acting.extend(found.into_iter().filter(|option| option.acts).map(|option| option.written));
        acting
    }
}

/// How the words behind `git` begin.
struct Start<'a> {
    /// An option or a variable before it gives git another configuration or another repository.
    configured: bool,
    /// The subcommand and what follows; none where it is not known.
    rest: Option<&'a [Argument]>,
}

fn start(arguments: &[Argument]) -> Start<'_> {
    let mut configured = false;
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        if first.open {
            break;
        }
        match first.text.as_str() {
            "--no-pager"
            | "-P"
            | "-p"
            | "--paginate"
            | "--no-optional-locks"
            | "--no-replace-objects"
            | "--literal-pathspecs" => rest = after,
            "-C" if after.first().is_some_and(|folder| !folder.splits) => rest = &after[1..],
            "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" if !after.is_empty() => {
                configured = true;
                rest = &after[1..];
            }
            text if text.starts_with('-') => {
                configured = true;
                rest = after;
            }
            _ => return Start { configured, rest: Some(rest) },
        }
    }
    Start { configured, rest: None }
}

/// The words of a `git commit` or `git add` that a rule for the subcommand does not cover; None for another subcommand.
pub(super) fn acts(arguments: &[String]) -> Option<Vec<String>> {
    let arguments: Vec<Argument> = arguments.iter().map(|word| Argument::of(word)).collect();
    let start = start(&arguments);
    let (name, options) = start.rest.filter(|_| !start.configured)?.split_first()?;
    let subcommand = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name.text)?;
    Some(subcommand.acting(options.to_vec()))
}

/// Whether a line does more than an allowing rule that begins with `named` says: `git commit -m` commits what is staged,
/// `git add --` stages what is named.
pub(in crate::permission) fn exceeds(named: &[String], words: &[String]) -> bool {
    let [git, name, first, ..] = named else { return false };
    let arguments: Vec<Argument> = words.iter().skip(2).map(|word| Argument::of(word)).collect();
    match (git.as_str(), name.as_str(), first.as_str()) {
        ("git", "commit", "-m") => SUBCOMMANDS[0].read(&arguments).map_or(true, |found| {
            found.iter().any(|option| !MESSAGE.split_whitespace().any(|known| known == option.name))
        }),
        ("git", "add", "--") => arguments.iter().skip(1).any(|argument| argument.open || !names_one(&argument.text)),
        _ => false,
    }
}

/// Whether a path of git's names one file or folder below the working directory, which it is not itself.
fn names_one(path: &str) -> bool {
    use std::path::Component::{CurDir, Normal};
    let within = || Path::new(path).components().all(|part| matches!(part, Normal(_) | CurDir));
    let somewhere = || Path::new(path).components().any(|part| matches!(part, Normal(_)));
    !path.starts_with([':', '~']) && !path.contains(['*', '?', '[', '\\']) && within() && somewhere()
}

/// The subcommand and the option that a rule like `Bash(git commit --amend:*)` speaks about.
fn ruled(pattern: &ShellPattern) -> Option<(&'static Subcommand, &'static str)> {
    let ShellPattern::Prefix(prefix) = pattern else { return None };
    let [git, name, option] = prefix.as_slice() else { return None };
    let subcommand = SUBCOMMANDS.iter().find(|subcommand| git == "git" && subcommand.name == name)?;
    let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1).and_then(|rest| rest.chars().next());
    let speaks =
        |choice: &Choice| option.strip_prefix("--") == Some(choice.name) || letter.is_some() && choice.short == letter;
    subcommand.choices().find(speaks).map(|choice| (subcommand, choice.name))
}

/// Whether a forbidding rule about an option of `git commit` may speak about a git line: it holds the option in some
/// spelling, or nobody can tell. None for a rule about anything else. `before` are the words before the name.
pub(in crate::permission) fn touches(
    pattern: &ShellPattern,
    before: &[String],
    git: &str,
    arguments: &[String],
) -> Option<bool> {
    let (subcommand, option) = ruled(pattern)?;
    let set = before.iter().any(|word| word.split_once('=').is_some_and(|(name, _)| !leaves_hooks(name)));
    let arguments: Vec<Argument> = arguments.iter().map(|word| Argument::of(word)).collect();
    let start = start(&arguments);
    let Some((name, options)) = start.rest.and_then(<[Argument]>::split_first) else {
        // Options alone do nothing; a word of bash's may be anything.
        return Some(git.contains(MANY) || arguments.iter().any(|argument| argument.open));
    };
    if name.text == subcommand.name {
        let found = subcommand.read(options);
        let holds = |found: Vec<Found>| found.iter().any(|found| found.name == option);
        return Some(git.contains(MANY) || set || start.configured || found.map_or(true, holds));
    }
    Some(git.contains(MANY) || is_alias(name) && !git.contains(ONE))
}

/// Variables of whom a commit is by and from when, and of what shows its text.
const PERSONAL: &str = "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL \
    GIT_COMMITTER_DATE EMAIL GIT_PAGER PAGER";

/// Whether hooks run as before with the variable set: git and the programs that hooks start have many that switch some off,
/// so only these few are known not to.
pub(in crate::permission) fn leaves_hooks(variable: &str) -> bool {
    let variable = variable.trim_end_matches('+');
    PERSONAL.split_whitespace().any(|known| known == variable)
        || wrapper::is_harmless(variable)
        || wrapper::is_local(variable)
}

/// Whether a rule like `Bash(git commit --no-verify:*)` speaks about a commit among the words, once something is set that
/// may switch hooks off.
pub(in crate::permission) fn touches_anyhow(pattern: &ShellPattern, words: &[String]) -> bool {
    let git = |word: &String| word.rsplit('/').next() == Some("git");
    words
        .iter()
        .position(git)
        .is_some_and(|at| touches(pattern, &["GIT_DIR=".to_owned()], &words[at], &words[at + 1..]) == Some(true))
}

/// Whether the subcommand may be an alias of a user's, and so any other.
fn is_alias(name: &Argument) -> bool {
    !name.open && name.text != "commit" && !BUILT_IN.split_whitespace().any(|known| known == name.text)
}

/// Whether the subcommand behind `git` may be an alias for what a rule forbids, which begins with `git` and `wanted`.
pub(in crate::permission) fn may_alias(wanted: &str, arguments: &[String]) -> bool {
    let arguments: Vec<Argument> = arguments.iter().map(|word| Argument::of(word)).collect();
    start(&arguments).rest.and_then(<[Argument]>::first).is_some_and(|name| name.text != wanted && is_alias(name))
}
