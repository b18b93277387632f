//! What a command reads whose operands others name: through xargs, by `-exec`, as what a loop goes through, or in a
//! substitution.

use std::path::PathBuf;

use super::super::Behavior;
use super::super::commands;
use super::super::decide::{Shown, Verdict};
use super::super::dynamic;
use super::super::evaluate::evaluates;
use super::super::found::{self, Found};
use super::super::paths::{self, Closed, Cwd};
use super::super::shell::{Node, ONE, Simple, Word};
use super::super::values;
use super::judge::Judge;

/// Whether the words are a find that starts a command.
pub(super) fn executes(words: &[Word]) -> bool {
    let is = |word: &Word, text: &str| word.literal().as_deref() == Some(text);
    words.first().is_some_and(|name| is(name, "find")) && words.iter().any(|word| is(word, "-exec"))
}

/// A variable that a loop sets to one name after another.
pub(super) struct Loop {
    variable: String,
    pub(super) found: Found,
}

/// What was found of a command's reading.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    /// The verdict about what it reads, or why it does more than that.
    pub(super) reads: Result<Verdict, String>,
    /// Whether it only reads.
    pub(super) only_reads: bool,
    /// What it reads outside of the workspace, links followed.
    pub(super) outside: Vec<PathBuf>,
    /// What the kernel has to keep closed to it, or it would show a secret, and why that asks otherwise.
    pub(super) closed: Option<String>,
}

impl Looked {
    /// Nothing was looked at but this.
    pub(super) fn of(reads: Result<Verdict, String>) -> Looked {
        Looked { reads, only_reads: false, outside: Vec::new(), closed: None }
    }
}

impl Judge<'_> {
    /// Whether what was found is all that the command does.
    pub(super) fn only_reads(&self, reads: &Result<commands::Reads, String>, cwd: &Cwd) -> bool {
        reads.as_ref().is_ok_and(|reads| self.stays_reading(reads, cwd))
    }

    fn stays_reading(&self, reads: &commands::Reads, cwd: &Cwd) -> bool {
        !reads.paths.iter().any(|word| self.may_become_option(word, cwd))
    }

    /// What is said of the files that the command reads, or why it does more; and whether it only reads.
    pub(super) fn look(&self, words: &[Word], cwd: &Cwd, piped: bool) -> Looked {
        let one = |reads: Result<commands::Reads, String>| reads.map(|reads| vec![reads]);
        let reads = match words {
            _ if piped => one(self.reads_found(words, cwd)),
            _ if executes(words) => one(self.reads_executed(words, cwd)),
            _ if let Some(reads) = self.reads_looped(words, cwd) => Ok(vec![reads]),
            _ if let Some(reads) = self.reads_listed(words, cwd) => Ok(reads.to_vec()),
            _ => one(evaluates(words).map_or_else(|| commands::reads(words), Err)),
        };
        let all = match reads {
            Ok(all) => all,
            Err(reason) => return Looked::of(Err(reason)),
        };
        let only_reads = all.iter().all(|reads| self.stays_reading(reads, cwd));
        let closed = Closed::default();
        let mut verdict = Verdict::new(Behavior::Allow, "it only reads");
        let mut outside = Vec::new();
        for reads in &all {
            outside.extend(paths::outside(reads, cwd, self.query.places, self.files));
            let found = paths::judge_closed(self.query, reads, shown(words), cwd, self.files, &closed);
            paths::worse(&mut verdict, found);
        }
        if self.names_options() && !only_reads {
            let reason = "a command of the line may have made a name that looks like an option";
            paths::worse(&mut verdict, Verdict::new(Behavior::Ask, reason));
        }
        let mut closed = closed.why();
        // What a rule may let pass is not held to reading.
        if verdict.behavior != Behavior::Allow
            && let Some(reason) = closed.take()
        {
            paths::worse(&mut verdict, Verdict::firm(reason));
        }
        Looked { reads: Ok(verdict), only_reads, outside, closed }
    }

    /// The loop that the construct is: `for f in $(find …)`, or `while read f` behind a pipe.
    pub(super) fn loop_of(&self, variable: Option<&str>, words: &[Word], parts: &[Node]) -> Option<Loop> {
        let (variable, found) = match (variable, words) {
            (Some(name), [word]) => (name.to_owned(), found::substituted(word)?),
            (None, []) => match values::reads_names(&found::only(parts.first()?)?.words)?.as_slice() {
                [name] => (name.clone(), self.fed.clone()?),
                _ => return None,
            },
            _ => return None,
        };
        (!found.zero && self.values.has_one_source(&variable)).then_some(Loop { variable, found })
    }

    /// The loop whose variable is among the words, each time as a word of its own.
    pub(super) fn looped(&self, words: &[Word]) -> Option<&Loop> {
        let mut open = words.iter().filter(|word| word.is_dynamic());
        let name = open.clone().next()?.expansions().next()?.variable()?.to_owned();
        let whole = |word: &Word| word.pieces.len() == 1 && word.expansions().all(|one| one.variable() == Some(&name));
        let inert = words[0].literal().is_some_and(|name| dynamic::is_inert(&name));
        self.loops.iter().find(|one| one.variable == name).filter(|_| inert && open.all(whole))
    }

    /// What a substitution finds that is one of the words, and the only one that bash makes more of: each name is a word then.
    fn listed(&self, words: &[Word]) -> Option<Found> {
        let mut open = words.iter().filter(|word| word.is_dynamic());
        let found = found::substituted(open.next()?).filter(|found| !found.zero)?;
        let inert = words[0].literal().is_some_and(|name| dynamic::is_inert(&name));
        (inert && open.next().is_none()).then_some(found)
    }

    /// What the names come from that the command is given: a loop, or a substitution.
    pub(super) fn given(&self, words: &[Word]) -> Option<Found> {
        self.looped(words).map(|one| one.found.clone()).or_else(|| self.listed(words))
    }

    /// What such a command reads: every name that is found, and what it reads without a name.
    fn reads_listed(&self, words: &[Word], cwd: &Cwd) -> Option<[commands::Reads; 2]> {
        let names = self.listed(words)?.names(cwd, self.query.places, self.files)?;
        if names.iter().any(|name| name.known().contains(['*', '?', '['])) {
            return None;
        }
        // The first comes last as well: where it stands for a pattern, another may do so.
        let names = [&names, &names[..1]].concat();
        let with = |names: &[Word]| {
            let one = |word: &Word| if word.is_dynamic() { names.to_vec() } else { vec![word.clone()] };
            let given: Vec<Word> = words.iter().flat_map(one).collect();
            let reads = evaluates(&given).map_or_else(|| commands::reads(&given), Err).ok()?;
            Some(commands::Reads { reach: reads.reach.max(commands::Reach::Names), ..reads })
        };
        Some([with(&names)?, with(&[])?])
    }

    /// What such a command reads: each name that the loop may go through.
    pub(super) fn reads_looped(&self, words: &[Word], cwd: &Cwd) -> Option<commands::Reads> {
        let names = self.looped(words)?.found.names(cwd, self.query.places, self.files)?;
        if names.iter().any(|name| name.known().contains(['*', '?', '['])) {
            return None;
        }
        let names = [&names, &names[..1]].concat();
        let given: Vec<Word> =
            words.iter().flat_map(|word| if word.is_dynamic() { names.clone() } else { vec![word.clone()] }).collect();
        let reads = evaluates(&given).map_or_else(|| commands::reads(&given), Err).ok()?;
        Some(commands::Reads { reach: reads.reach.max(commands::Reach::Names), ..reads })
    }

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

/// The words with something unknown where a program puts what it reads or finds: `xargs -I{} sh -c '{}'`.
pub(super) fn filled(words: &[Word]) -> Option<Vec<String>> {
    let texts: Vec<String> = words.iter().map(Word::possible).collect();
    let name = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let at = texts.iter().position(|text| matches!(&*name(text), "xargs" | "parallel" | "find"))?;
    let marked = |at: usize| match texts[at].strip_prefix('-')? {
        "-replace" | "i" => Some("{}"),
        long if long.starts_with('-') => long.strip_prefix("-replace="),
        short => match short.split_once(['I', 'J']).or_else(|| short.split_once('i'))?.1 {
            "" => texts.get(at + 1).map(String::as_str),
            glued => Some(glued),
        },
    };
    let mark = if name(&texts[at]) == "xargs" { (at + 1..texts.len()).find_map(marked)? } else { "{}" };
    // Within a line for a shell it is taken for a name, as everywhere where it is not the command.
    let names =
        |text: &String| text.contains(mark) && !text.starts_with('-') && !text.contains(' ') || text.starts_with(mark);
    // A name that is found begins with where it was looked for.
    let fill = |text: &String| if names(text) { text.replace(mark, &format!("./{ONE}")) } else { text.clone() };
    // Where the command begins, no option is left of which the program could be the value.
    let valued = |word: &str| {
        word.len() == 2 && word.starts_with('-') && word.ends_with(['I', 'J', 'n', 'P', 'L', 'd', 'a', 's', 'E'])
    };
    let mut start = at + 1;
    while name(&texts[at]) == "xargs" && texts.get(start).is_some_and(|word| word.starts_with('-')) {
        start += if valued(&texts[start]) { 2 } else { 1 };
    }
    let inner = texts.get(start..)?;
    let filled: Vec<String> = inner.iter().map(fill).collect();
    (filled != inner).then(|| [&texts[..=at], &filled].concat())
}

/// What the command shows of what it looks at.
pub(super) fn shown(words: &[Word]) -> Shown {
    let names = words[0].literal().is_some_and(|name| dynamic::shows_names(&name));
    if names { Shown::Names } else { Shown::Contents }
}
