//! What git takes into the repository without being told each name.

use super::super::super::shell::Word;

/// What such a command takes of what git does not know yet.
pub(in crate::permission) struct Gathered {
    /// What lies below these; none for everything.
    pub(in crate::permission) paths: Vec<Word>,
    /// What git ignores as well.
    pub(in crate::permission) ignored: bool,
}

/// What the git command takes; None where it takes nothing new.
pub(in crate::permission) fn gathered(words: &[Word]) -> Option<Gathered> {
    let option =
        |at: usize| words[at].prefix().starts_with('-') || at > 1 && matches!(&*words[at - 1].known(), "-C" | "-c");
    let at = (1..words.len()).find(|at| !option(*at))?;
    let rest = &words[at + 1..];
    let given = |letter: char, long: &str| {
        rest.iter().map(Word::known).any(|word| match word.strip_prefix("--") {
            Some(name) => !name.is_empty() && long.starts_with(name),
            None => word.starts_with('-') && word.contains(letter),
        })
    };
    let operands = || rest.iter().filter(|word| !word.prefix().starts_with('-'));
    match words[at].known().as_str() {
        "add" | "stage" if given('u', "update") => None,
        "add" | "stage" => {
            let paths: Vec<Word> = operands().cloned().collect();
            let all = !paths.is_empty() || given('A', "all");
            all.then(|| Gathered { paths, ignored: given('f', "force") })
        }
        "stash" if operands().next().is_none_or(|word| matches!(&*word.known(), "push" | "save")) => {
            let ignored = given('a', "all");
            let all = ignored || given('u', "include-untracked");
            all.then(|| Gathered { paths: Vec::new(), ignored })
        }
        _ => None,
    }
}
