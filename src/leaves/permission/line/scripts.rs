//! Scripts that a command gives to a shell.

use super::super::shell::loose::{all_segments, open_segments};
use super::super::shell::{self, Word};

/// Shells whose `-c` takes a script.
pub(super) const SHELLS: [&str; 9] = ["bash", "sh", "dash", "ash", "zsh", "ksh", "mksh", "yash", "busybox"];

/// The commands of scripts in the words, as in `sudo bash -c 'git "$1"' - push`: a rule that forbids reads them with
/// positional parameters as unknown words.
pub(super) fn given(words: &[Word]) -> Vec<Vec<String>> {
    let is_shell =
        |word: &Word| word.literal().is_some_and(|name| SHELLS.contains(&name.rsplit('/').next().unwrap_or_default()));
    let mut scripts = Vec::new();
    if let Some(at) = words.iter().position(|word| word.literal().as_deref() == Some("eval")) {
        scripts.extend(words[at + 1..].iter().map(Word::literal).collect::<Option<Vec<_>>>().map(|all| all.join(" ")));
    }
    // What a later one is given, the first one may be given as well.
    if let Some(at) = words.iter().position(is_shell) {
        // Which of the words is the script depends on options with values before it.
        let option = |word: &&Word| word.prefix().starts_with(['-', '+']);
        if words[at + 1..].iter().any(|word| option(&word)) {
            scripts.extend(words[at + 1..].iter().filter(|word| !option(word)).filter_map(Word::literal));
        }
    }
    let mut commands = Vec::new();
    for script in scripts {
        match shell::parse(&script) {
            Ok(line) => line.node.for_each_simple(&mut |command| {
                commands.push(command.words.iter().map(Word::possible).collect::<Vec<_>>());
            }),
            Err(_) => commands.extend([all_segments(&script), open_segments(&script)].concat()),
        }
    }
    commands.retain(|words| !words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::super::super::commands::plain;
    use super::*;

    #[test]
    fn every_word_is_one_script_at_most() {
        let words: Vec<Word> = "bash -c a ".repeat(50).split_whitespace().map(plain).collect();
        assert_eq!(given(&words).len(), 99);
    }
}
