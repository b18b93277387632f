//! Words that only bash knows, where a program opens what they name: a rule covers them unless a secret would ask there.

use super::super::Behavior;
use super::super::commands;
use super::super::decide::{Query, Shown, Verdict};
use super::super::dynamic;
use super::super::files::Files;
use super::super::paths::{self, Cwd};
use super::super::shell::{Expansion, Piece, Word};
use super::super::values::Values;
use super::super::vocabulary::Matches;
use super::super::wrapper;

/// Stands for what is not known. Whatever is before it, the path is one of secrets; behind it, too, unless the end of the name
/// says that it is a source.
const SECRET: &str = "/.secrets/";

/// What is known of the words of a command when it is judged.
pub(super) struct Unknown<'a> {
    pub(super) query: &'a Query<'a>,
    pub(super) files: &'a dyn Files,
    pub(super) values: &'a Values,
    /// Variables that surely have one of these values by now.
    pub(super) set: &'a [String],
}

impl Unknown<'_> {
    /// What is said of a command that is given a value of the environment.
    pub(super) fn revealed(&self, words: &[Word]) -> Option<Verdict> {
        let revealed = words.iter().any(|word| self.values.reveals(word));
        revealed.then(|| Verdict::new(Behavior::Ask, "it may reveal the value of a variable"))
    }

    /// Whether rules of the kind forbid or ask.
    fn is_ruled(&self, matches: Matches) -> bool {
        let mut rules = [Behavior::Deny, Behavior::Ask].into_iter().flat_map(|kind| self.query.entries(kind));
        rules.any(|entry| entry.rule.is_about(matches))
    }

    /// Whether rules about files forbid or ask.
    pub(super) fn rules_files(&self) -> bool {
        [Matches::Reading, Matches::Editing, Matches::Writing].into_iter().any(|matches| self.is_ruled(matches))
    }

    /// Where rules about files forbid or ask, what a command opens must be known, behind whatever wrapper it is.
    pub(super) fn may_be_forbidden(&self, words: &[Word]) -> Option<String> {
        let shown = self.is_ruled(Matches::Reading);
        let changed = self.is_ruled(Matches::Editing) || self.is_ruled(Matches::Writing);
        if !shown && !changed {
            return None;
        }
        let base = |word: &Word| word.literal().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
        let (mut inner, mut fed) = (words, false);
        while let Some(at) = wrapper::carried(inner) {
            fed |= matches!(base(&inner[0]).as_deref(), Some("xargs" | "find" | "parallel"));
            match inner.get(at..).filter(|rest| !rest.is_empty()) {
                Some(rest) => inner = rest,
                // Behind its options any word may be the program.
                None => break,
            }
        }
        let name = base(inner.first()?)?;
        let shows = shown && !dynamic::changes_alone(&name);
        let changes = changed && !dynamic::shows_files(&name) && !commands::only_reads(&name);
        if !shows && !changes || dynamic::opens_nothing(inner, &name) {
            return None;
        }
        let lists = ["--files0-from", "--files-from", "--pathspec-from-file"];
        if fed || inner.iter().any(|word| lists.iter().any(|option| word.prefix().starts_with(option))) {
            return Some(format!("what {} passes on may be a file that a rule speaks about", words[0].source));
        }
        // What a command prints for another one is not anybody's file.
        let open = |at: usize| {
            let mut open = inner[at].expansions().filter(|one| !one.source.starts_with("<(") && !one.counts());
            open.next().is_some() && !dynamic::is_told(inner, at, &name)
        };
        let at = (1..inner.len()).find(|at| open(*at))?;
        Some(format!("{} may be a file that a rule speaks about", inner[at].source))
    }

    /// Whether the command, with the name of a secret in place of each word that is not known, would ask whatever is allowed.
    pub(super) fn may_open_secret(&self, words: &[Word], cwd: &Cwd) -> bool {
        let mut told: Vec<Word> = words.iter().map(dynamic::told).collect();
        let fed = words[0].literal().as_deref() == Some("xargs");
        if fed {
            // What it reads become operands of the program that it starts.
            told.drain(..wrapper::carried(words).unwrap_or_default().min(words.len()));
            told.push(commands::plain(SECRET));
            return commands::reads(&told).is_ok() && self.asks_firmly(&self.filled(&told, None), cwd);
        }
        let opens = !dynamic::takes_revisions(words) && !dynamic::shows_names(&words[0].known());
        // Who lets the code of the folder run lets it read there.
        if !told.iter().any(Word::is_dynamic) || !opens || commands::runs_code(words) {
            return false;
        }
        let known = self.values.named(&told, self.set);
        let known = known.filter(|_| self.splits_no_name(words, cwd));
        let asks = |values: Option<&Word>| self.asks_firmly(&self.filled(&told, values), cwd);
        known.map_or_else(|| asks(None), |values| values.iter().any(|value| asks(Some(value))))
    }

    /// Whether it opens names of a loop's globs that bash would split if they held blanks.
    pub(super) fn splits_names(&self, words: &[Word]) -> bool {
        let split = |expansion: &Expansion| !expansion.is_one();
        words.iter().any(|word| word.expansions().any(split)) && self.values.named(words, self.set).is_some()
    }

    /// Whether no name that a loop's globs stand for becomes several words.
    fn splits_no_name(&self, words: &[Word], cwd: &Cwd) -> bool {
        let odd = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | '\\');
        let values = if self.splits_names(words) { self.values.named(words, self.set) } else { None };
        values.into_iter().flatten().all(|value| {
            let value = value.with_pieces(value.pieces.iter().map(counted).collect());
            let found = paths::paths(&value, cwd, self.query.places, self.files);
            // The last is the glob itself.
            let globbed = usize::from(value.has_glob());
            found.is_some_and(|found| {
                found[..found.len().saturating_sub(globbed)].iter().all(|path| !path.to_string_lossy().contains(odd))
            })
        })
    }

    /// The words as they would be with the value in place of the variable that has it, and a secret in place of all else.
    fn filled(&self, words: &[Word], value: Option<&Word>) -> Vec<Word> {
        let mut all = Vec::new();
        let git = words[0].literal().as_deref() == Some("git");
        for (at, word) in words.iter().enumerate() {
            if dynamic::is_value(words, at) {
                all.push(commands::plain("0"));
                continue;
            }
            let mut more = false;
            let mut pieces = Vec::new();
            for (at, piece) in word.pieces.iter().enumerate() {
                // Two revisions, of which the second does not belong to a file.
                let range =
                    |next: &Piece| matches!(next, Piece::Text(text) if text.starts_with("..") && !text.contains(':'));
                match piece {
                    Piece::Dynamic(one) if one.counts() || git && word.pieces[at + 1..].first().is_some_and(range) => {
                        pieces.push(Piece::Text("0".to_owned()));
                    }
                    Piece::Dynamic(one) => match value.filter(|_| one.variable().is_some()) {
                        Some(value) => pieces.extend(value.pieces.iter().map(counted)),
                        None => {
                            more |= !one.is_one() && !self.values.leaves(one);
                            pieces.push(Piece::Text(SECRET.to_owned()));
                        }
                    },
                    piece => pieces.push(piece.clone()),
                }
            }
            all.push(word.with_pieces(pieces));
            // What is split brings operands of its own.
            all.extend(more.then(|| commands::plain(SECRET)));
        }
        all
    }

    fn asks_firmly(&self, words: &[Word], cwd: &Cwd) -> bool {
        let verdict = match commands::reads(words) {
            Ok(reads) => Some(paths::judge_reads(self.query, &reads, Shown::Contents, cwd, self.files)),
            Err(_) => paths::judge_words(self.query, words, cwd, self.files),
        };
        verdict.is_some_and(|verdict| verdict.firm)
    }
}

/// A number in place of what shows one.
fn counted(piece: &Piece) -> Piece {
    match piece {
        Piece::Dynamic(_) => Piece::Text("0".to_owned()),
        piece => piece.clone(),
    }
}
