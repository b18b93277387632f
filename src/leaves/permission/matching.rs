//! How Bash rules meet commands: strictly for allowing, and in every way that could be meant for forbidding.

mod held;
mod other;
mod seen;
mod spelled;
mod stars;
mod text;

use self::seen::Segment;
use self::text::text_of;
use super::commands::{self, danger};
use super::dynamic;
use super::glob::{self, Case};
use super::rule::{Rule, ShellPattern, Specifier};
use super::shell::loose::segments;
use super::shell::{MANY, ONE, Simple, Word};
use super::vocabulary::Matches;
use super::wrapper;
pub(super) use held::{Held, interprets, is_interpreter, touches_held};
pub(super) use seen::{Seen, Text};

/// The words that a rule about commands names these by, of a wildcard up to its stars; None where it is about others.
fn named(pattern: &ShellPattern, words: &[Word]) -> Option<Vec<String>> {
    match pattern {
        ShellPattern::Exact(_) => None,
        ShellPattern::Prefix(prefix) => {
            let fits = prefix.len() <= words.len()
                && prefix.iter().zip(words).all(|(want, word)| word.literal().is_some() && word.canonical() == *want);
            fits.then(|| prefix.clone())
        }
        ShellPattern::Wildcard(pattern) => {
            let canonical = Simple::canonical(words);
            let bare = pattern.strip_suffix(" *").unwrap_or(pattern);
            let written: Vec<String> = words.iter().map(Word::canonical).collect();
            let fits = (glob::wildcard(pattern, &canonical) || glob::wildcard(bare, &canonical))
                && stars::fit(pattern, &written)
                // `*` at the end covers an expansion; in the middle it could stand for anything.
                && (pattern.ends_with('*') || !words.iter().any(Word::is_dynamic));
            fits.then(|| pattern.split_whitespace().map(str::to_owned).collect())
        }
    }
}

/// The first word of the command that such a rule does not cover, where that is all that keeps it from allowing it.
pub(super) fn beyond(rule: &Rule, words: &[Word], placed: impl Fn() -> Vec<String>) -> Option<String> {
    let Specifier::Shell(pattern) = rule.specifier() else { return None };
    if !rule.is_about(Matches::Command) || wrapper::carried(words).is_some() {
        return None;
    }
    let named = named(pattern, words).filter(|named| !named.is_empty())?;
    let first = danger::dangers(&placed()).into_iter().find(|option| !names(&named, option))?;
    (first.starts_with('-') && !is_open(&first)).then_some(first)
}

/// Whether the rule allows a command with these words; `settled` is whether bash can make no options of them, `placed` the
/// words with the paths in them as they lead from the top of the project.
pub(super) fn allows(rule: &Rule, words: &[Word], settled: bool, placed: impl Fn() -> Vec<String>) -> bool {
    if !rule.is_about(Matches::Command) || words.first().and_then(Word::literal).is_none() {
        return false;
    }
    let pattern = match rule.specifier() {
        Specifier::Any => return true,
        Specifier::Shell(pattern) => pattern,
        _ => return false,
    };
    let named = match pattern {
        ShellPattern::Exact(text) => {
            let written: Vec<_> = words.iter().map(|word| word.source.as_str()).collect();
            return *text == Simple::canonical(words) || *text == written.join(" ");
        }
        ShellPattern::Prefix(prefix) if prefix.is_empty() => return true,
        pattern => match named(pattern, words) {
            Some(named) => named,
            None => return false,
        },
    };
    if !settled {
        return false;
    }
    // What a wrapper runs is a command of its own, which the rule has to name.
    let fixed = named.iter().take_while(|word| !word.contains('*')).count();
    if wrapper::carried(words).is_some_and(|inner| fixed <= inner) {
        return false;
    }
    // The program behind a wrapper is judged as if it stood alone, with what the rule says from there on.
    let mut at = 0;
    let placed = placed();
    loop {
        let (named, words) = (named.get(at..).unwrap_or_default(), &words[at..]);
        if goes_beyond(named, words, &placed[at..]) || fed_with_options(words) {
            return false;
        }
        match wrapper::carried(words) {
            Some(inner) if inner < words.len() => at += inner,
            _ => return true,
        }
    }
}

/// Whether the command does more than an allowing rule that begins with `named` says.
fn goes_beyond(named: &[String], words: &[Word], placed: &[String]) -> bool {
    let possible: Vec<String> = words.iter().map(Word::possible).collect();
    commands::commit::exceeds(named, &possible) || !danger::dangers(placed).iter().all(|option| names(named, option))
}

/// Whether a rule with these words names the option. Of a cluster of letters a rule that names the first one says nothing about
/// the others.
fn names(named: &[String], option: &str) -> bool {
    let value = |word: &str| word.starts_with("--") && option.starts_with(&format!("{word}="));
    named.iter().any(|word| word.len() > 1 && (word == option || value(word)))
}

/// Whether xargs or find gives the program words that it may take for options.
fn fed_with_options(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal).unwrap_or_default();
    let fed = matches!(name.rsplit('/').next(), Some("xargs" | "parallel"));
    let inner = wrapper::carried(words).and_then(|at| words.get(at..)).unwrap_or_default();
    let program = inner.first().and_then(Word::literal);
    let closed = inner.iter().any(|word| word.literal().as_deref() == Some("--"));
    fed && !closed && !program.is_some_and(|name| dynamic::is_inert(&name))
}

/// Whether the rule speaks about a command with these words, or about one that they may start, by whatever names.
pub(super) fn touches(rule: &Rule, seen: &Seen) -> bool {
    let alike = other::rules(rule);
    std::iter::once(rule)
        .chain(&alike)
        .any(|rule| std::iter::once(seen).chain(&seen.alike).any(|seen| touches_named(rule, seen)))
}

fn touches_named(rule: &Rule, seen: &Seen) -> bool {
    if !rule.is_about(Matches::Command) {
        return false;
    }
    let pattern = match rule.specifier() {
        Specifier::Any => return true,
        Specifier::Shell(pattern) => pattern,
        _ => return false,
    };
    let started = seen.started();
    let matches = |(words, starts): &Segment| matches_from(pattern, words, starts);
    started.set.iter().any(matches)
        || matches_from(pattern, &started.given, &started.starts)
        || started.text < seen.words.len() && held::touches_words(rule, seen)
        || started.holds_lines && seen.lines().iter().any(matches)
        || seen.apart.as_ref().is_some_and(|seen| touches(rule, seen))
}

/// Whether the rule speaks about anything in a line, read without a grammar.
pub(super) fn touches_raw(rule: &Rule, text: &Text) -> bool {
    if !rule.is_about(Matches::Command) {
        return false;
    }
    match rule.specifier() {
        Specifier::Any => return true,
        Specifier::Shell(ShellPattern::Exact(want)) if want == text.text.trim() => return true,
        Specifier::Shell(ShellPattern::Wildcard(pattern)) if glob::wildcard(pattern, text.text.trim()) => return true,
        Specifier::Shell(_) => {}
        _ => return false,
    }
    let anyhow = |pattern: &ShellPattern| {
        text.all().iter().any(|words| commands::commit::touches_anyhow(pattern, words)) && text.changes_hooks()
    };
    text.segments().iter().any(|seen| touches(rule, seen))
        || matches!(rule.specifier(), Specifier::Shell(pattern) if anyhow(pattern))
}

/// Whether any word of the line, wherever it is, could be what the rule means: for names that only bash will know.
pub(super) fn touches_anywhere(rule: &Rule, text: &Text) -> bool {
    let Specifier::Shell(pattern) = rule.specifier() else { return touches_raw(rule, text) };
    if rule.is_about(Matches::Command)
        && text.segments().iter().any(|seen| held::runs(&seen.words))
        && touches_held(rule, text)
    {
        return true;
    }
    if rule.is_about(Matches::Command) && text.open().iter().any(|seen| touches(rule, seen)) {
        return true;
    }
    text.all().iter().any(|words| {
        matches_from(pattern, words, &(0..words.len()).collect::<Vec<_>>())
            || words
                .iter()
                .any(|word| word.split_once('=').is_some_and(|(_, value)| matches_name(pattern, &[value.to_owned()])))
    }) || text.all().iter().flatten().any(|word| matches_name(pattern, std::slice::from_ref(word)))
}

fn matches_name(pattern: &ShellPattern, words: &[String]) -> bool {
    match pattern {
        ShellPattern::Prefix(prefix) => prefix.first().is_none_or(|want| same_name(want, &words[0])),
        ShellPattern::Exact(text) | ShellPattern::Wildcard(text) => {
            text.split_whitespace().next().is_some_and(|want| same_name(want, &words[0]))
        }
    }
}

/// Commands whose words set variables that programs run.
const SETTERS: [&str; 6] = ["export", "declare", "typeset", "readonly", "local", "env"];

/// Where in the words a command may start, and whether a word may itself hold a line. Fails towards more.
fn reach(words: &[String]) -> (Vec<usize>, bool) {
    let mut at = 0;
    // Assignments and keywords stand before the command.
    while at < words.len() {
        let word = words[at].as_str();
        let keyword = matches!(
            word,
            "then"
                | "do"
                | "else"
                | "elif"
                | "if"
                | "while"
                | "until"
                | "!"
                | "time"
                | "{"
                | "}"
                | "coproc"
                | "fi"
                | "done"
                | "esac"
                | "in"
        );
        if !is_assignment(word) && !keyword {
            break;
        }
        at += 1;
    }
    let Some(name) = words.get(at) else { return ((0..words.len()).collect(), true) };
    let name = base(name);
    let text = at + text_of(name, &words[at..]);
    // A redirection before the name leaves its target as the first word, so an unknown first word is looked behind anyway.
    // A subscript in what such a builtin is given runs commands.
    let evaluates =
        super::evaluate::is_builtin(name) && words.iter().any(|word| word.contains("$(") || word.contains('`'));
    match text == at {
        true => ((0..words.len()).collect(), true),
        false => ([0, at].into_iter().chain(text..words.len()).collect(), evaluates || text < words.len()),
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.trim_end_matches('+').chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The words that only bash knows and that a program runs as commands: `env A=1 $x`, `bash -c "$x"`, `find . -exec $x`.
fn opened_commands(words: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut runs = false;
    let mut option = false;
    for (at, word) in words.iter().enumerate() {
        if wrapper::carries(base(word)) || word.starts_with("-exec") || word.starts_with("-ok") {
            (runs, option) = (true, false);
        } else if runs && is_open(word) {
            found.push(at);
            runs = option;
        } else if word.starts_with('-') {
            option = true;
        } else {
            // Behind an option it may be the value.
            runs &= option || is_assignment(word) || word.starts_with(|c: char| c.is_ascii_digit());
            option = false;
        }
    }
    found
}

/// Whether a part of the word is only known when it runs.
fn is_open(word: &str) -> bool {
    word.contains([ONE, MANY])
}

/// Whether the word, with whatever bash puts into it, may be the one that is wanted.
fn may_be(word: &str, want: &str, case: Case) -> bool {
    word.contains(['*', '?', '[', ONE, MANY]) && glob::may_fit(&word.replace([ONE, MANY], "*"), want, case)
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a command's name is, or may expand to, the rule's.
fn same_name(want: &str, name: &str) -> bool {
    let fits = |name: &str| {
        want.eq_ignore_ascii_case(name)
            || want.contains('*') && glob::wildcard(want, name)
            || may_be(name, want, Case::Ignored)
    };
    fits(name) || fits(base(name)) || other::same_file(want, name)
}

/// Whether the pattern speaks about a command that starts at one of these words, as it is written or in another spelling.
fn matches_from(pattern: &ShellPattern, words: &[String], starts: &[usize]) -> bool {
    let plain = pattern.plain();
    plain.is_some_and(|plain| is_written(&plain, words, starts))
        || is_written(pattern, words, starts)
        || spelled::fits(pattern, words, starts)
}

fn is_written(pattern: &ShellPattern, words: &[String], starts: &[usize]) -> bool {
    // A pattern that begins with `*` finds from the first word what it could find from a later one.
    let open = matches!(pattern, ShellPattern::Wildcard(text) if text.starts_with('*'));
    let starts = if open { &starts[..starts.len().min(1)] } else { starts };
    let (text, wildcard) = match pattern {
        ShellPattern::Prefix(prefix) => {
            let Some((want, rest)) = prefix.split_first() else { return !starts.is_empty() };
            return starts.iter().any(|at| {
                let (before, from) = words.split_at(*at);
                match commands::commit::touches(pattern, before, &from[0], &from[1..]) {
                    Some(touches) => touches && same_name(want, &from[0]),
                    None => begins(want, rest, from),
                }
            });
        }
        ShellPattern::Exact(text) => (text, false),
        ShellPattern::Wildcard(text) => (text, true),
    };
    let Some(want) = text.split_whitespace().next() else { return false };
    let odd = if wildcard { want.contains('*') } else { want.contains(['\'', '"', '\\']) };
    // Something that is not known may be what the rule wants behind its first words, or instead of them.
    let head: Vec<String> =
        text.split_whitespace().take_while(|word| !wildcard || !word.contains('*')).map(str::to_owned).collect();
    let last = words.iter().rposition(|word| is_open(word));
    let unknown = starts.iter().any(|at| {
        last.is_some_and(|last| *at <= last)
            && head.split_first().is_none_or(|(want, rest)| begins(want, rest, &words[*at..]))
    });
    if unknown {
        return true;
    }
    let starts: Vec<usize> = starts.iter().copied().filter(|at| odd || same_name(want, &words[*at])).collect();
    if starts.is_empty() {
        return false;
    }
    // Joined once: a line of many words that all may start the command would cost their square.
    let line = words.join(" ");
    let mut offsets = Vec::with_capacity(words.len());
    let mut offset = 0;
    for word in words {
        offsets.push(offset);
        offset += word.len() + 1;
    }
    // From the word on, with its folder and without.
    let tails = |at: usize| [offsets[at], offsets[at] + words[at].len() - base(&words[at]).len()];
    if wildcard {
        let bare = glob::Tails::new(text.strip_suffix(" *").unwrap_or(text), &line);
        let whole = glob::Tails::new(text, &line);
        return starts.iter().any(|at| tails(*at).into_iter().any(|from| whole.fit(from) || bare.fit(from)));
    }
    let wanted = segments(text).concat();
    starts.iter().any(|at| wanted == words[*at..] || tails(*at).into_iter().any(|from| line[from..] == **text))
}

/// Whether the words may begin with a name and what follows it.
fn begins(want: &str, rest: &[String], words: &[String]) -> bool {
    same_name(want, &words[0])
        && (words[0].contains(MANY) || follows(rest, &words[1..]) || other::is_told(want, rest, &words[1..]))
}

/// Whether the command may start what a rule about a subcommand of git's speaks about under another name.
pub(super) fn may_be_alias(rule: &Rule, words: &[String]) -> bool {
    let text = match rule.specifier() {
        Specifier::Shell(ShellPattern::Prefix(prefix)) => prefix.join(" "),
        Specifier::Shell(ShellPattern::Exact(text) | ShellPattern::Wildcard(text)) => text.clone(),
        _ => return false,
    };
    let mut named = text.split_whitespace();
    let (Some("git"), Some(sub)) = (named.next(), named.next()) else { return false };
    rule.is_about(Matches::Command) && base(&words[0]) == "git" && commands::commit::may_alias(sub, &words[1..])
}

/// Most words that are looked at for the next word of a rule.
const MAX_OPTIONS: usize = 24;

/// Whether the words begin with what the rule wants, possibly after options that stand before it, each with a value.
fn follows(want: &[String], words: &[String]) -> bool {
    let Some((first, rest)) = want.split_first() else { return true };
    let mut after_option = false;
    for (at, word) in words.iter().enumerate().take(MAX_OPTIONS) {
        // The value of `-C "$x"`; what may be several words may bring all that is wanted.
        let value = after_option && at > 0 && words[at - 1].len() == 2 && !word.contains(MANY) && is_open(word);
        let fits = !value && (word == first || may_be(word, first, Case::Exact));
        if fits && (word.contains(MANY) || follows(rest, &words[at + 1..])) {
            return true;
        }
        let option = word.starts_with(['-', '+', ONE, MANY]) && !value;
        if !option && !after_option {
            return false;
        }
        after_option = option;
    }
    // Nobody writes so many.
    words.len() > MAX_OPTIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidding_is_broad() {
        for (rule, line, want) in [
            ("Bash(rm:*)", "rm x", true),
            ("Bash(rm:*)", "/bin/rm x", true),
            ("Bash(rm:*)", "r? x", true),
            ("Bash(rm:*)", "sudo -u root rm x", true),
            ("Bash(rm:*)", "busybox rm x", true),
            ("Bash(rm:*)", "bash -c 'ls; rm x'", true),
            ("Bash(rm:*)", "python -c 'os.system(\"rm x\")'", true),
            ("Bash(rm:*)", "git commit -m 'rm x'", false),
            ("Bash(rm:*)", "git rm x", false),
            ("Bash(rm:*)", "echo rm", false),
            ("Bash(rm:*)", "grep rm x", false),
            ("Bash(git push:*)", "git -C dir push", true),
            ("Bash(git push:*)", "git -c a=b --no-pager push origin", true),
            ("Bash(git push:*)", "git log push", false),
            ("Bash(git push)", "git push", true),
            ("Bash(*--force*)", "git push --force", true),
        ] {
            assert_eq!(touches_raw(&Rule::parse(rule).unwrap(), &Text::new(line)), want, "{rule} {line}");
        }
    }
}
