//! Builtins of bash that evaluate their words a second time: a subscript in them runs commands.

use super::shell::Word;
use super::wrapper;

/// Builtins of which no option and no operand is judged: they run, assign or define whatever they are given.
const ALWAYS: &str = "let eval . source exec builtin trap alias enable complete compgen bind mapfile readarray getopts \
    coproc fc hash shopt set declare typeset local readonly unset read export wait printf test [ [[";

/// Whether it is one of these builtins, all of which the shell itself may take for its own despite a function.
pub(super) fn is_builtin(name: &str) -> bool {
    ALWAYS.split_ascii_whitespace().any(|known| known == name)
}

/// Whether a shell looks for no program of that name, since it is its own.
pub(super) fn is_shells(name: &str) -> bool {
    const OTHERS: &str = "echo true false : cd pwd command exit return break continue kill umask type times jobs fg bg \
        disown dirs pushd popd logout suspend caller history ulimit shift time";
    is_builtin(name) || OTHERS.split_ascii_whitespace().any(|known| known == name)
}

/// Why the builtin may evaluate what it is given; None when it is not one of these, or surely does not.
pub(super) fn evaluates(words: &[Word]) -> Option<String> {
    let (name, arguments) = words.split_first()?;
    let name = name.literal()?;
    if !is_builtin(&name) {
        return None;
    }
    let harmless = match name.as_str() {
        "test" | "[" | "[[" => tests_only(&name, arguments),
        "printf" => prints_only(arguments),
        // Plain names alone, and values that are not code.
        "export" => arguments.iter().all(|word| {
            let (text, literal) = (word.known(), word.literal());
            let value = literal.as_deref().and_then(|text| text.split_once('=')).map(|(_, value)| value);
            let harmless = |name: &str| match text.contains('=') {
                true => wrapper::sets_harmlessly(name, value),
                false => wrapper::is_harmless(name),
            };
            let variable = text.split('=').next().unwrap_or_default();
            !word.has_glob() && word.prefix().starts_with(variable) && harmless(variable)
        }),
        "unset" | "read" => arguments.iter().all(|word| {
            word.literal().is_some_and(|text| text == "-r" || wrapper::is_local(&text) && !text.is_empty())
        }),
        "wait" => arguments.iter().all(|word| {
            word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()))
                || word.expansions().count() == 1 && word.source == "$!"
        }),
        "set" => arguments.iter().all(|word| {
            word.literal()
                .is_some_and(|text| matches!(text.as_str(), "-e" | "-u" | "-eu" | "-o" | "pipefail" | "-euo" | "+e"))
        }),
        _ => false,
    };
    (!harmless).then(|| match name.as_str() {
        "export" => "commands may obey the variable that it exports".to_owned(),
        _ => format!("{name} may evaluate what it is given"),
    })
}

/// No option before the format, and nothing in it that assigns.
fn prints_only(arguments: &[Word]) -> bool {
    let format = match arguments.first() {
        Some(word) if word.literal().as_deref() == Some("--") => arguments.get(1),
        other => other,
    };
    let Some(format) = format else { return true };
    let Some(text) = format.literal().filter(|text| !text.starts_with('-')) else { return false };
    !text.split('%').skip(1).any(|part| {
        part.trim_start_matches(|c: char| !c.is_ascii_alphabetic() || "hlLjzt".contains(c)).starts_with('n')
    })
}

/// No `-v`, no arithmetic on anything but numbers, and no operand that may turn into an operator.
fn tests_only(name: &str, arguments: &[Word]) -> bool {
    // Between brackets of two, bash looks for operators before it expands anything.
    let double = name == "[[";
    let numbers = |word: Option<&Word>| {
        word.is_some_and(|word| match word.literal() {
            Some(text) => !text.is_empty() && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()),
            None => word.pieces.len() == 1 && word.expansions().any(|expansion| expansion.is_number()),
        })
    };
    for (at, word) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &arguments[at]);
        let Some(text) = word.literal() else {
            let split = word.has_glob() || word.expansions().any(|expansion| !expansion.is_one());
            // One word beside an operator is an operand.
            let beside = |word: Option<&Word>| {
                word.and_then(Word::literal).is_some_and(|text| {
                    matches!(
                        text.as_str(),
                        "=" | "==" | "!=" | "-n" | "-z" | "-f" | "-d" | "-e" | "-s" | "-r" | "-w" | "-x"
                    )
                })
            };
            if !double && !numbers(Some(word)) && (split || !beside(before) && !beside(arguments.get(at + 1))) {
                return false;
            }
            continue;
        };
        match text.as_str() {
            "-v" | "-R" => return false,
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" if !numbers(before) || !numbers(arguments.get(at + 1)) => {
                return false;
            }
            _ => {}
        }
    }
    true
}
