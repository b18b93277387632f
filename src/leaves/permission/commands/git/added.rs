//! What git takes into the repository without being told each name.

use super::super::super::shell::Word;

/// What such a command takes of what git does not know yet.
pub(in crate::permission) struct Gathered {
    /// What lies below these; none for everything.
    pub(in crate::permission) paths: Vec<Word>,
    /// Patterns of what it leaves out of that.
    pub(in crate::permission) without: Vec<String>,
    /// What git ignores as well.
    pub(in crate::permission) ignored: bool,
}

/// The pattern of a path that git leaves out, as in `:!*.env`.
pub(in crate::permission) fn left_out(word: &Word) -> Option<String> {
    let text = word.literal()?;
    let pattern = [":!", ":^", ":(exclude)"].iter().find_map(|magic| text.strip_prefix(magic))?;
    (!pattern.starts_with([':', '(', '!', '^', '/']) && !pattern.contains("./") && !pattern.ends_with('.'))
        .then(|| pattern.to_owned())
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
    // Behind an option comes its value: `git stash -m list` pushes.
    let pushes = |word: &Word| word.prefix().starts_with('-') || matches!(&*word.known(), "push" | "save");
    let operands = || rest.iter().filter(|word| !word.prefix().starts_with('-'));
    match words[at].known().as_str() {
        "add" | "stage" if given('u', "update") => None,
        "add" | "stage" => {
            let (without, paths): (Vec<Word>, Vec<Word>) =
                operands().cloned().partition(|word| left_out(word).is_some());
            let without: Vec<String> = without.iter().filter_map(left_out).collect();
            let all = !paths.is_empty() || !without.is_empty() || given('A', "all") || given('A', "no-ignore-removal");
            all.then(|| Gathered { paths, without, ignored: given('f', "force") })
        }
        "stash" if rest.first().is_none_or(pushes) => {
            let ignored = given('a', "all");
            let all = ignored || given('u', "include-untracked");
            all.then(|| Gathered { paths: Vec::new(), without: Vec::new(), ignored })
        }
        _ => None,
    }
}
