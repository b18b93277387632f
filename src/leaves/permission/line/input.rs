//! Text that an interpreter runs, whether its words hold it or something of the line gives it: what a shell reads is judged as
//! a line by itself.

use super::super::Behavior;
use super::super::commands::{self, covered, plain};
use super::super::decide::{Verdict, because};
use super::super::dynamic;
use super::super::matching;
use super::super::paths::{self, Cwd};
use super::super::rule::Rule;
use super::super::shell::{self, Node, Redirect, RedirectKind, Simple, Word};
use super::super::vocabulary::Matches;
use super::super::wrapper;
use super::judge::Judge;
use super::scripts::SHELLS;

/// Deepest text within text that is judged as a line.
const MAX_DEPTH: usize = 4;

/// What a command finds on its standard input.
#[derive(Debug, Clone, Default)]
pub(super) enum Input {
    /// Nothing that the line makes: the terminal, or a file, which is then a script like any other that is named.
    #[default]
    Outside,
    Text(String),
    /// Only known when it runs.
    Unknown,
}

impl Input {
    fn and(self, more: Input) -> Input {
        match (self, more) {
            (Input::Text(one), Input::Text(other)) => Input::Text(format!("{one}\n{other}")),
            (Input::Outside, other) | (other, Input::Outside) => other,
            _ => Input::Unknown,
        }
    }

    fn of_word(word: &Word) -> Input {
        word.literal().map_or(Input::Unknown, Input::Text)
    }

    /// What the redirections make of it.
    pub(super) fn redirected(&self, redirects: &[Redirect]) -> Input {
        let Some(last) = redirects.iter().rfind(|redirect| redirect.fd == Some(0)) else { return self.clone() };
        match last.kind {
            RedirectKind::Data => Input::of_word(&last.target),
            RedirectKind::Duplicate => Input::Unknown,
            _ if is_input(&last.target) => self.clone(),
            _ => substituted(&last.target).unwrap_or_default(),
        }
    }

    /// What the construct prints that reads this.
    pub(super) fn printed(&self, node: &Node) -> Input {
        let all =
            |nodes: &[Node]| nodes.iter().map(|node| self.printed(node)).fold(Input::Text(String::new()), Input::and);
        match node {
            Node::Simple(command) => self.redirected(&command.redirects).echoed(command),
            Node::Sequence(nodes) | Node::Block { parts: nodes, .. } => all(nodes),
            Node::And(left, right) | Node::Or(left, right) => self.printed(left).and(self.printed(right)),
            Node::Not(inner) => self.printed(inner),
            Node::Apart(nodes) => nodes.iter().fold(self.clone(), |input, node| input.printed(node)),
            Node::Function { .. } => Input::Text(String::new()),
            Node::Redirected { body, redirects } => match body {
                Some(body) => self.redirected(redirects).printed(body),
                None => Input::Unknown,
            },
        }
    }

    fn echoed(self, command: &Simple) -> Input {
        let Some(texts) = command.words.iter().map(Word::literal).collect::<Option<Vec<_>>>() else {
            return Input::Unknown;
        };
        let Some((name, arguments)) = texts.split_first() else { return Input::Text(String::new()) };
        match (name.as_str(), arguments) {
            ("echo", arguments) => {
                let option = |word: &&String| matches!(word.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en");
                let own = arguments.iter().take_while(option).count();
                let text = arguments[own..].join(" ");
                // That of some shells decodes without being told to.
                match arguments[..own].iter().any(|option| option.contains('e')) {
                    true => decoded(&text),
                    false if text.contains('\\') => Input::Unknown,
                    false => Input::Text(text),
                }
            }
            ("printf", [format]) if !format.contains('%') => decoded(format),
            ("printf", [format, rest @ ..]) if matches!(&**format, "%s" | "%s\\n" | "%s ") => {
                let end = &format["%s".len()..].replace("\\n", "\n");
                Input::Text(rest.iter().map(|word| format!("{word}{end}")).collect())
            }
            ("true" | "false" | ":" | "cd" | "test" | "[" | "[[", _) => Input::Text(String::new()),
            ("cat", []) => self,
            ("cat", [only]) if only == "-" => self,
            _ => Input::Unknown,
        }
    }
}

/// The text with its escapes as `printf` reads them.
fn decoded(text: &str) -> Input {
    let plain = text.replace("\\n", "\n").replace("\\t", "\t");
    if plain.contains('\\') { Input::Unknown } else { Input::Text(plain) }
}

/// Whether these are a command and the substitutions before it, of which one reads what the command writes.
pub(super) fn feeds(nodes: &[Node]) -> bool {
    let [Node::Apart(_), after] = nodes else { return false };
    let mut found = false;
    let reads = |word: &Word| word.source.contains(">(");
    after.for_each_redirect(&mut |redirect| found |= reads(&redirect.target));
    after.for_each_simple(&mut |command| found |= command.words.iter().any(reads));
    found
}

/// Whether the word names the standard input.
fn is_input(word: &Word) -> bool {
    matches!(word.literal().as_deref(), Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"))
}

/// What is read from `<(…)`; None for another word.
fn substituted(word: &Word) -> Option<Input> {
    let inner = word.source.strip_prefix("<(")?.strip_suffix(')')?;
    Some(shell::parse(inner).map_or(Input::Unknown, |line| Input::default().printed(&line.node)))
}

fn base(word: &Word) -> Option<String> {
    word.literal().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned())
}

/// What the command runs of text, and whether a shell does.
fn run(words: &[Word], input: &Input) -> Vec<(Input, bool)> {
    let Some(name) = words.first().and_then(base) else { return Vec::new() };
    if commands::takes_data(&name) || dynamic::is_inert(&name) {
        return Vec::new();
    }
    let known = |word: &Word| base(word).is_some_and(|name| matching::is_interpreter(&name));
    let carries = wrapper::carried(words).is_some();
    let Some(at) = words.iter().take(if carries { words.len() } else { 1 }).rposition(known) else { return Vec::new() };
    let (name, rest) = (base(&words[at]).unwrap_or_default(), &words[at + 1..]);
    let option = |word: &Word| word.prefix().starts_with(['-', '+']);
    let valued =
        |at: usize| at > 0 && matches!(&*rest[at - 1].known(), "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file");
    let operands = || (0..rest.len()).filter(|at| !option(&rest[*at]) && !valued(*at)).map(|at| &rest[at]);
    let given = || {
        operands().next().map_or_else(
            || Some(input.clone()),
            |word| match is_input(word) {
                true => Some(input.clone()),
                false => substituted(word),
            },
        )
    };
    let letter = |word: &Word, letter| {
        word.known().strip_prefix(['-', '+']).is_some_and(|rest| !rest.starts_with('-') && rest.contains(letter))
    };
    match &*name {
        "eval" => vec![(
            rest.iter()
                .map(Word::literal)
                .collect::<Option<Vec<_>>>()
                .map_or(Input::Unknown, |all| Input::Text(all.join(" "))),
            true,
        )],
        "ssh" => {
            let texts: Vec<String> = rest.iter().map(Word::possible).collect();
            if covered::remote_line(&texts) < texts.len() { Vec::new() } else { vec![(input.clone(), true)] }
        }
        "at" | "batch" | "crontab" => vec![(input.clone(), true)],
        // What it is given by xargs comes last.
        name if SHELLS.contains(&name) && carries && operands().next().is_none() && passes(&words[..at]) => {
            vec![(Input::Unknown, true)]
        }
        name if SHELLS.contains(&name) || matches!(name, "fish" | "source" | ".") => {
            if rest.iter().any(|word| letter(word, 'c')) {
                // Which of them is the script depends on options with values before it.
                return operands().map(|word| (Input::of_word(word), true)).collect();
            }
            let read = if rest.iter().any(|word| letter(word, 's')) { Some(input.clone()) } else { given() };
            read.into_iter().map(|text| (text, true)).collect()
        }
        // What their options hold is judged with the other words.
        _ if rest.iter().any(|word| option(word) && !is_input(word) && word.known() != "-u") => Vec::new(),
        _ => given().into_iter().map(|text| (text, false)).collect(),
    }
}

/// Whether one of the words is a program that gives another words of its own.
fn passes(words: &[Word]) -> bool {
    words.iter().any(|word| matches!(base(word).as_deref(), Some("xargs" | "parallel" | "find")))
}

/// Whether the command runs text of which nobody knows what it says: no rule for the program covers that.
pub(super) fn runs_unknown(judge: &Judge, words: &[Word]) -> bool {
    run(words, &judge.input).iter().any(|(text, by_shell)| *by_shell && matches!(text, Input::Unknown))
}

/// What is said of text that the command runs; None when that stops nothing.
pub(super) fn judge_text(judge: &Judge, words: &[Word], cwd: &Cwd) -> Option<Verdict> {
    let reason =
        |rule: &str| format!("what {} runs is only known when it runs, and {rule} may forbid it", words[0].source);
    // It may be whatever a rule forbids.
    let unknown = |by_shell: bool| {
        let ruled = |behavior| {
            let about = |rule: &Rule| rule.is_about(Matches::Command) && !rule.is_about_escapes(judge.query.tool);
            judge.query.entries(behavior).find(|entry| about(&entry.rule))
        };
        if let Some(entry) = ruled(Behavior::Deny).filter(|_| by_shell) {
            return Some(Verdict::new(Behavior::Deny, reason(&because(entry))));
        }
        let entry = ruled(Behavior::Deny).or_else(|| ruled(Behavior::Ask)).map(because);
        let entry = entry.or_else(|| judge.unknown().rules_files().then(|| "a rule about files".to_owned()));
        entry.map(|rule| Verdict::firm(reason(&rule)))
    };
    let mut worst: Option<Verdict> = None;
    for (text, by_shell) in run(words, &judge.input) {
        let text = match text {
            Input::Outside => continue,
            Input::Unknown => {
                unknown(by_shell).into_iter().for_each(|verdict| worst = worse(worst.take(), verdict));
                continue;
            }
            Input::Text(text) => text,
        };
        if judge.files.spend(text.len() / 4) || judge.depth >= MAX_DEPTH {
            return Some(paths::too_much());
        }
        let named = [plain(if by_shell { "sh" } else { "python3" }), plain("-c"), plain(&text)];
        let mut found: Vec<Verdict> = paths::judge_words(judge.query, &named, cwd, judge.files).into_iter().collect();
        if let Some(line) = by_shell.then(|| shell::parse(&text).ok()).flatten() {
            let mut inner = Judge::new(judge.query, judge.files, &line.node, &text);
            (inner.depth, inner.input) = (judge.depth + 1, judge.input.clone());
            inner.walk(&line.node, cwd.clone());
            let stops = |verdict: &Verdict| verdict.firm || verdict.behavior == Behavior::Deny;
            found.extend(inner.finish().into_iter().map(|part| part.verdict).filter(stops));
        }
        found.into_iter().for_each(|verdict| worst = worse(worst.take(), verdict));
    }
    worst
}

/// Judges the script of `bash -c '…'` as the commands that it is: nothing of the line reaches it but where it starts and what
/// it finds on its input. False for other words.
pub(super) fn judge_script(judge: &mut Judge, words: &[Word], cwd: &Cwd) -> bool {
    let texts: Option<Vec<String>> = words.iter().map(Word::literal).collect();
    let Some([name, option, script]) = texts.as_deref() else { return false };
    // What another shell makes of the text is another matter, and so are files that it finds open.
    let apart = name == "bash" && option == "-c" && judge.streams.all().is_empty();
    if !apart || judge.depth >= MAX_DEPTH || judge.files.spend(script.len() / 4) {
        return false;
    }
    let Ok(line) = shell::parse(script) else { return false };
    let mut inner = Judge::new(judge.query, judge.files, &line.node, script);
    (inner.depth, inner.input, inner.stirred) = (judge.depth + 1, judge.input.clone(), judge.names_options());
    inner.walk(&line.node, cwd.clone());
    judge.unordered |= inner.unordered;
    let parts = inner.finish();
    judge.parts.extend(parts);
    true
}

fn worse(worst: Option<Verdict>, verdict: Verdict) -> Option<Verdict> {
    let mut worst = worst.unwrap_or_else(|| verdict.clone());
    paths::worse(&mut worst, verdict);
    Some(worst)
}
