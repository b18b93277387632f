//! What the variables of a line may hold, where the line itself says it.

use std::collections::{HashMap, HashSet};

use super::paths::{self, Cwd};
use super::places::Places;
use super::shell::{Expansion, Node, Piece, Word};
use super::wrapper;

/// Most commands that one with variables may stand for.
const MAX_ALTERNATIVES: usize = 16;

/// Variables that every shell has and that hold no secret.
const COMMON: &str = "HOME PWD OLDPWD USER LOGNAME SHELL PATH LANG LC_ALL TERM TMPDIR HOSTNAME RANDOM SECONDS LINENO EUID \
    UID PPID BASHPID BASH_VERSION OSTYPE HOSTTYPE MACHTYPE COLUMNS LINES EDITOR VIRTUAL_ENV CARGO_HOME CARGO_TARGET_DIR \
    RUSTUP_HOME GOPATH GOROOT JAVA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME";

/// Every value that the line gives to a variable, wherever it does.
#[derive(Debug, Default)]
pub(super) struct Values {
    given: HashMap<String, Vec<Word>>,
    /// Those that may hold what the line does not say, such as a secret of the environment.
    tainted: HashSet<String>,
    /// How often the line defines each function; these have positional parameters of their own.
    functions: HashMap<String, usize>,
    /// A builtin may take functions away.
    removes: bool,
    /// An expansion may fail, and bash then continues with the next line as if the rest of this one were not there.
    breaks: bool,
    /// A builtin may set any of them.
    open: bool,
}

impl Values {
    /// Reads the line `text` with the construct `node`.
    pub(super) fn of(node: &Node, text: &str) -> Values {
        let mut values = Values::default();
        values.collect(node);
        // Where there is no next line, nothing runs after a failed expansion.
        values.breaks &= text.contains('\n');
        loop {
            let says =
                |name: &String| values.given[name].iter().all(|value| value.expansions().all(|one| values.says(one)));
            let more: Vec<String> =
                values.given.keys().filter(|name| !values.tainted.contains(*name) && !says(name)).cloned().collect();
            if more.is_empty() {
                return values;
            }
            values.tainted.extend(more);
        }
    }

    fn give(&mut self, name: &str, value: Word) {
        self.given.entry(name.to_owned()).or_default().push(value);
    }

    fn look_at<'a>(&mut self, mut words: impl Iterator<Item = &'a Word>) {
        self.breaks |= words.any(|word| word.expansions().any(may_fail));
    }

    fn collect(&mut self, node: &Node) {
        match node {
            Node::Simple(command) => {
                self.look_at(command.words.iter());
                self.look_at(command.assignments.iter().map(|assignment| &assignment.value));
                self.look_at(command.redirects.iter().map(|redirect| &redirect.target));
                for assignment in &command.assignments {
                    self.give(&assignment.name, assignment.value.clone());
                }
                let sets = |word: &Word| {
                    word.literal().is_none_or(|text| {
                        paths::shell_state(&text) || matches!(text.as_str(), "printf" | "let" | "getopts" | "wait")
                    })
                };
                self.removes |= removes(&command.words);
                // Behind `command` or `time`, too.
                let printed = command.words.first().is_some_and(|name| name.literal().as_deref() == Some("printf"))
                    && command.words.get(1).is_some_and(|format| !format.prefix().starts_with('-'));
                let reads = reads_names(&command.words);
                for name in reads.iter().flatten() {
                    // Of what it reads no more is known than of a substitution.
                    let pieces = vec![Piece::Dynamic(Expansion::input())];
                    self.give(name, Word { source: name.clone(), pieces });
                }
                self.open |= !printed
                    && reads.is_none()
                    && command
                        .words
                        .iter()
                        .take(3)
                        .enumerate()
                        .any(|(at, word)| sets(word) && (at == 0 || !word.is_dynamic() && !word.has_glob()));
            }
            Node::And(left, right) | Node::Or(left, right) => {
                self.collect(left);
                self.collect(right);
            }
            Node::Sequence(nodes) | Node::Apart(nodes) => nodes.iter().for_each(|node| self.collect(node)),
            Node::Not(inner) => self.collect(inner),
            Node::Block { variable, words, parts } => {
                self.look_at(words.iter());
                if let Some(name) = variable {
                    if words.is_empty() {
                        self.open = true;
                    }
                    words.iter().for_each(|word| self.give(name, word.clone()));
                }
                parts.iter().for_each(|node| self.collect(node));
            }
            Node::Function { name, body } => {
                *self.functions.entry(name.clone()).or_default() += 1;
                self.collect(body);
            }
            Node::Redirected { body, redirects } => {
                self.look_at(redirects.iter().map(|redirect| &redirect.target));
                body.iter().for_each(|body| self.collect(body));
            }
        }
    }

    /// Whether a function, once it is defined, stays what it is until the line ends.
    pub(super) fn keeps_function(&self, name: &str) -> bool {
        !self.removes && !self.breaks && self.functions.get(name) == Some(&1)
    }

    /// The words with what every shell knows for `$HOME`, `$PWD` and `$(pwd)`, where the line does not set them; None when there is
    /// nothing to tell.
    pub(super) fn told(&self, words: &[Word], cwd: &Cwd, places: &Places) -> Option<Vec<Word>> {
        let value = |expansion: &Expansion| {
            let name = if expansion.source == "$(pwd)" { Some("PWD") } else { expansion.variable() };
            let path = match name.filter(|name| !self.open && !self.given.contains_key(*name))? {
                "HOME" => places.home.as_deref()?,
                "PWD" => match cwd.0.as_deref()? {
                    [one] => one.as_path(),
                    _ => return None,
                },
                _ => return None,
            };
            let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
            path.to_str().filter(|path| path.chars().all(plain)).map(str::to_owned)
        };
        let known = |piece: &Piece| matches!(piece, Piece::Dynamic(expansion) if value(expansion).is_some());
        words.iter().any(|word| word.pieces.iter().any(known)).then(|| {
            let tell = |piece: &Piece| match piece {
                Piece::Dynamic(expansion) => value(expansion).map_or_else(|| piece.clone(), Piece::Text),
                _ => piece.clone(),
            };
            let told = |word: &Word| word.with_pieces(word.pieces.iter().map(tell).collect());
            words.iter().map(told).collect()
        })
    }

    /// Whether the expansion is a word of the line or the name of a file that one of its globs stands for.
    fn is_name(&self, expansion: &Expansion, set: &[String]) -> bool {
        let plain = |piece: &Piece| match piece {
            Piece::Text(text) => {
                !text.starts_with(['/', '~']) && !text.contains(['*', '?', '[', '\\']) && !text.contains("..")
            }
            Piece::Glob(_) => true,
            Piece::Dynamic(expansion) => expansion.counts(),
            Piece::Tilde => false,
        };
        let named = |value: &Word| value.pieces.iter().all(plain);
        let known = |name: &&str| wrapper::is_local(name) && set.iter().any(|set| set == name);
        let values = expansion.variable().filter(known).and_then(|name| self.given.get(name));
        !self.open && !self.breaks && values.is_some_and(|values| values.iter().all(named))
    }

    /// Every value of the one variable in the words that a loop of the line gives a word or the name of a file.
    pub(super) fn named(&self, words: &[Word], set: &[String]) -> Option<Vec<Word>> {
        let mut open = words.iter().flat_map(Word::expansions).filter(|expansion| !expansion.counts());
        let first = open.next()?;
        let name = first.variable().filter(|_| self.is_name(first, set))?;
        open.all(|other| other.variable() == Some(name)).then(|| self.given.get(name).cloned()).flatten()
    }

    /// Whether the line gives the variable its value in one place, and nothing else may set it.
    pub(super) fn has_one_source(&self, name: &str) -> bool {
        let given = self.given.get(name).is_some_and(|given| given.len() == 1);
        given && wrapper::is_local(name) && !self.open && !self.breaks
    }

    /// Whether it is a variable that the line leaves as the user's environment has it: a word, as far as anybody sets them.
    pub(super) fn leaves(&self, expansion: &Expansion) -> bool {
        !self.open && expansion.variable().is_some_and(|name| !self.given.contains_key(name))
    }

    /// What the expansion may become as pieces of its word; none when the line does not say.
    fn pieces(&self, expansion: &Expansion, set: &[String]) -> Option<Vec<&[Piece]>> {
        let name = expansion.variable().filter(|name| wrapper::is_local(name) && set.iter().any(|set| set == name))?;
        let values =
            self.given.get(name).filter(|values| !self.open && !self.breaks && values.len() <= MAX_ALTERNATIVES)?;
        let plain = |piece: &Piece| match piece {
            // Unquoted, it is split and its stars mean something.
            Piece::Text(text) => {
                expansion.is_one() || !text.contains([' ', '\t', '\n', '*', '?', '[', '\\']) && !text.is_empty()
            }
            Piece::Glob(_) => expansion.is_one(),
            Piece::Tilde | Piece::Dynamic(_) => false,
        };
        values.iter().map(|value| value.pieces.iter().all(plain).then_some(value.pieces.as_slice())).collect()
    }

    /// The commands that these words stand for, with what the line says about the variables in them; `set` are those that
    /// surely have one of the line's values by now. None when it says nothing, or too much.
    pub(super) fn alternatives(&self, words: &[Word], set: &[String]) -> Option<Vec<Vec<Word>>> {
        if self.open
            || self.breaks
            || set.is_empty()
            || !words.iter().any(|word| word.expansions().any(|one| self.pieces(one, set).is_some()))
        {
            return None;
        }
        let mut all: Vec<Vec<Word>> = vec![Vec::new()];
        for word in words {
            let mut choices = vec![Word { source: word.source.clone(), pieces: Vec::new() }];
            for piece in &word.pieces {
                let kept = std::slice::from_ref(piece);
                let found = match piece {
                    Piece::Dynamic(expansion) => self.pieces(expansion, set).unwrap_or_else(|| vec![kept]),
                    _ => vec![kept],
                };
                choices = choices
                    .iter()
                    .flat_map(|choice| found.iter().map(|more| choice.with(more)))
                    .take(MAX_ALTERNATIVES + 1)
                    .collect();
            }
            all = all
                .iter()
                .flat_map(|command| {
                    choices.iter().map(|word| [command.as_slice(), std::slice::from_ref(word)].concat())
                })
                .take(MAX_ALTERNATIVES + 1)
                .collect();
            if choices.len() > MAX_ALTERNATIVES || all.len() > MAX_ALTERNATIVES {
                return None;
            }
        }
        Some(all)
    }

    /// Whether the expansion is made of nothing but what the line or any shell holds.
    fn says(&self, expansion: &Expansion) -> bool {
        let source = expansion.source.as_str();
        // The commands of a substitution were judged.
        if expansion.shows_number() || source.starts_with("$(") || source.starts_with('~') {
            return true;
        }
        // A range, unless a variable is a part of it.
        if source.starts_with('{') {
            return !source.contains('$');
        }
        let Some(name) = expansion.base() else { return false };
        if name.bytes().all(|b| b.is_ascii_digit()) || matches!(name, "@" | "*") {
            return self.functions.is_empty() && !self.open;
        }
        let common = COMMON.split_ascii_whitespace().any(|known| known == name) || wrapper::is_harmless(name);
        let own = self.given.contains_key(name) && wrapper::is_local(name);
        (common || own && !self.open) && !self.tainted.contains(name)
    }

    /// Whether a construct may look at the word: what it then does tells nothing of the environment.
    pub(super) fn tells_little(&self, word: &Word) -> bool {
        word.expansions().all(|expansion| self.says(expansion))
    }

    /// Whether it holds a value that the line does not give: of whatever program, an error message may show that of the
    /// environment. What a function is given is looked at where it is called.
    pub(super) fn reveals(&self, word: &Word) -> bool {
        let given = |name: &str| name.bytes().all(|b| b.is_ascii_digit()) || matches!(name, "@" | "*");
        word.expansions().any(|one| !self.says(one) && (self.open || !one.base().is_some_and(given)))
    }

    /// Whether showing the word shows nothing but what the line or any shell holds.
    pub(super) fn shows_little(&self, word: &Word, set: &[String]) -> bool {
        word.expansions().all(|expansion| {
            // Unquoted, what it says is expanded once more.
            let common = |name: &str| COMMON.split_ascii_whitespace().any(|known| known == name);
            let whole = expansion.is_one()
                || expansion.shows_number()
                || expansion.counts()
                || expansion.variable().is_some_and(common);
            whole && self.says(expansion) || self.pieces(expansion, set).is_some() || self.is_name(expansion, set)
        })
    }
}

/// Whether bash may refuse the expansion without ending: all but plain forms, such as a division by zero.
fn may_fail(expansion: &Expansion) -> bool {
    let source = expansion.source.as_str();
    let substitutes = ["$(", "<(", ">(", "~"].iter().any(|start| source.starts_with(start));
    let plain = substitutes || source.starts_with('{') && !source.contains('$') || expansion.base().is_some();
    !plain
        || ["$((", "$["].iter().any(|start| source.contains(start))
        || source.starts_with("${") && source.contains('[')
}

/// Whether the command may take a function away, or something may go before it.
fn removes(words: &[Word]) -> bool {
    let plain = |text: &str| matches!(text, "export" | "local" | "read" | "readonly" | "set");
    let before = |text: &str| matches!(text, "command" | "time") || text.starts_with('-');
    let name = words.iter().map(Word::literal).find(|text| !text.as_deref().is_some_and(before));
    name.is_some_and(|name| name.is_none_or(|name| paths::shell_state(&name) && !plain(&name)))
}

/// The variables that a plain `read` sets.
pub(super) fn reads_names(words: &[Word]) -> Option<Vec<String>> {
    let texts: Vec<String> = words.iter().map(Word::literal).collect::<Option<_>>()?;
    let (name, rest) = texts.split_first()?;
    let names: Vec<String> = rest.iter().filter(|text| *text != "-r").cloned().collect();
    (name == "read" && !names.is_empty() && names.iter().all(|name| wrapper::is_local(name))).then_some(names)
}

/// Variables that have a value of the line's behind the construct.
pub(super) fn set_by(node: &Node) -> Vec<String> {
    match node {
        Node::Simple(command) if command.words.is_empty() => {
            command.assignments.iter().map(|assignment| assignment.name.clone()).collect()
        }
        Node::And(inner, _) | Node::Not(inner) => set_by(inner),
        Node::Sequence(nodes) => nodes.iter().flat_map(set_by).collect(),
        _ => Vec::new(),
    }
}
