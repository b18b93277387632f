//! What a command reads whose operands find names: through xargs, or by `-exec`.

use super::super::commands;
use super::super::dynamic;
use super::super::evaluate::evaluates;
use super::super::found;
use super::super::paths::Cwd;
use super::super::shell::{Node, Simple, Word};
use super::judge::Judge;

/// Whether the words are a find that starts a command.
pub(super) fn executes(words: &[Word]) -> bool {
    let is = |word: &Word, text: &str| word.literal().as_deref() == Some(text);
    words.first().is_some_and(|name| is(name, "find")) && words.iter().any(|word| is(word, "-exec"))
}

impl Judge<'_> {
    /// What `find … | xargs` reads: each name that find may print, and what its link leads to.
    pub(super) fn reads_found(&self, words: &[Word], cwd: &Cwd) -> Result<commands::Reads, String> {
        let refused = "xargs passes it arguments that are only known when it runs";
        let found = self.fed.as_ref().ok_or(refused)?;
        let inert = |word: &Word| word.literal().is_some_and(|name| dynamic::is_inert(&name));
        let (zero, inner) = match &words[1..] {
            [option, rest @ ..] if matches!(option.literal().as_deref(), Some("-0" | "--null")) => (true, rest),
            rest => (false, rest),
        };
        if !inner.first().is_some_and(inert) || found.zero != zero {
            return Err(refused.into());
        }
        let names = found.names(cwd, self.query.places, self.files).ok_or(refused)?;
        // The first comes last as well: where it stands for a pattern, another may do so the next time.
        let words = [inner, &names, &names[..1]].concat();
        let reads = evaluates(&words).map_or_else(|| commands::reads(&words), Err)?;
        Ok(commands::Reads { reach: reads.reach.max(commands::Reach::Names), ..reads })
    }

    /// What `find … -exec` reads: the same, where one command ends the expression.
    pub(super) fn reads_executed(&self, words: &[Word], cwd: &Cwd) -> Result<commands::Reads, String> {
        let refused = "find gives the command names that are only known when it runs";
        let is = |word: &Word, text: &str| word.literal().as_deref() == Some(text);
        let at = words.iter().position(|word| is(word, "-exec")).ok_or(refused)?;
        let (end, inner) = words[at + 1..].split_last().ok_or(refused)?;
        let each = is(end, ";");
        let all = is(end, "+") && inner.last().is_some_and(|word| is(word, "{}"));
        let inert = |word: &Word| word.literal().is_some_and(|name| dynamic::is_inert(&name));
        let odd = |word: &Word| {
            word.known().contains("{}") && !is(word, "{}") || matches!(word.known().as_str(), ";" | "-exec")
        };
        if !(each || all) || !inner.first().is_some_and(inert) || inner.iter().any(odd) {
            return Err(refused.into());
        }
        let find = Simple { assignments: Vec::new(), words: words[..at].to_vec(), redirects: Vec::new() };
        let mut found = found::found(&Node::Simple(find)).filter(|found| !found.zero).ok_or(refused)?;
        // A name stays one word.
        found.zero = true;
        let names = found.names(cwd, self.query.places, self.files).ok_or(refused)?;
        let given: Vec<Word> = inner
            .iter()
            .flat_map(|word| if is(word, "{}") { [&names, &names[..1]].concat() } else { vec![word.clone()] })
            .collect();
        let reads = evaluates(&given).map_or_else(|| commands::reads(&given), Err)?;
        let paths = [reads.paths, found.reads.paths].concat();
        Ok(commands::Reads { paths, reach: reads.reach.max(commands::Reach::Names), ..reads })
    }
}
