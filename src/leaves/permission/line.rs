//! Judges a shell line: its parts, the text of it that no grammar reads, and what the mode makes of them.

mod basis;
mod fed;
mod folder;
mod git;
mod input;
mod judge;
mod placed;
mod ruled;
mod scripts;
mod streams;
mod unknown;
mod unnamed;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use self::basis::{Basis, Rests};
use self::git::Git;
use self::judge::Judge;
use super::decide::{Decision, Query, Verdict, because};
use super::files::{Files, Remembered};
use super::matching::{self, Held, Text};
use super::paths::{self, Cwd};
use super::places::{Named, in_real_folder};
use super::rule::{Entry, Rule, RuleSet};
use super::shell::{self, CommandLine, Word};
use super::vocabulary::Matches;
use super::{Behavior, Mode, suggest, vast};

/// One judged part of the line.
#[derive(Debug, Clone)]
struct Part {
    text: String,
    verdict: Verdict,
    /// It only reads, wherever that is: what plan mode may let pass.
    read_only: bool,
    /// What lets it pass.
    basis: Basis,
    /// What it reads outside of the workspace, links followed.
    outside: Vec<PathBuf>,
    /// Why it asks where the kernel keeps nothing closed to it.
    closed: Option<String>,
    /// It is a redirection that writes a file.
    writes: bool,
    /// It may make names that look like options.
    names: bool,
    /// It may put links where the line then writes.
    links: bool,
    /// A rule covers it because of where its paths lead.
    held: bool,
    /// What the names of programs in it mean.
    named: Named,
    /// It takes the names that a glob stands for now for single words.
    split: bool,
    /// It passes because of what the files that it reads are, or the repository: by no rule.
    looks: bool,
    /// It reads what git's index names.
    listed: bool,
    /// The command, for suggestions.
    words: Vec<Word>,
    git: Git,
    /// The folders in which git, if it is one that reads, may start.
    starts: Cwd,
}

impl Part {
    /// A part that is not a command.
    fn new(text: String, verdict: Verdict, read_only: bool) -> Part {
        let (words, git, starts) = (Vec::new(), Git::No, Cwd(None));
        let (writes, names, links, held, split, named) = Default::default();
        let (looks, listed) = (false, false);
        let (basis, outside, closed) = (Basis::Text, Vec::new(), None);
        Part {
            text,
            verdict,
            read_only,
            basis,
            outside,
            closed,
            writes,
            names,
            links,
            held,
            split,
            named,
            looks,
            listed,
            words,
            git,
            starts,
        }
    }
}

/// Most rules that one dialog offers.
const MAX_SUGGESTIONS: usize = 32;

/// Decides about a whole line that is to run in `cwd`.
pub(super) fn decide(query: &Query, command: &CommandLine, cwd: &Path, files: &dyn Files) -> Decision {
    let parsed = command.parsed();
    // What a here-document holds is not work.
    let raw = parsed.map_or_else(|_| command.to_string(), |line| blanked(command, line));
    if vast::is_vast(&raw) {
        return too_long(query, command);
    }
    let decision = in_line(query, files, |query| match parsed {
        Ok(line) => {
            let mut parts = all_parts(query, command, line, cwd, files);
            let rests = basis::rests(query, command, &mut parts);
            let quiet_git = git::quiet(&parts);
            let text = Text::new(&raw);
            let offered = suggestions(query, &text, &raw, &parts, files);
            let ruled = ruled(query, &text, &raw, &parts, files);
            let held = query.places.approved.may_run_unasked(command, query.mode, query.level);
            let held = held && ruled.is_none() && query.places.approved.unasked && !query.places.is_at_home(files);
            let held = held && basis::hold(&mut parts);
            let decision = ruled.unwrap_or_else(|| conclude(query, parts, command));
            let allowed = decision.behavior == Behavior::Allow;
            let suggestions = if decision.behavior == Behavior::Ask { offered } else { Vec::new() };
            let Rests { confined, reads } = match allowed {
                true if held => Rests { confined: true, reads: None },
                true => rests,
                false => Rests::default(),
            };
            Decision { quiet_git, suggestions, confined, reads, unasked: held && allowed, ..decision }
        }
        Err(reason) => unparsable(query, command, reason, cwd, files),
    });
    match decision.behavior {
        Behavior::Ask if files.spend(0) => forbidden(query, command).unwrap_or(decision),
        Behavior::Allow if files.spend(0) => too_long(query, command),
        _ => decision,
    }
}

/// What is written without a question is for the tools that write one file, since a line may do more than it says: it may
/// only read that.
fn in_line<T>(query: &Query, files: &dyn Files, judge: impl FnOnce(&Query) -> T) -> T {
    if query.places.free_writes.is_empty() {
        return judge(query);
    }
    let mut places = query.places.clone();
    let read = places.free_writes.drain(..).map(|file| in_real_folder(&file, files));
    places.free_reads.extend(read);
    judge(&Query { places: &places, ..*query })
}

/// Whether the whole line provably changes nothing: without any rule, plan mode lets it run.
pub(super) fn reads(query: &Query, command: &CommandLine, cwd: &Path, files: &dyn Files) -> bool {
    let Ok(line) = command.parsed() else { return false };
    let (files, query) = (&Remembered::new(files), Query { mode: Mode::Plan, rules: &RuleSet::default(), ..*query });
    let judge = |query: &Query| {
        let mut parts = all_parts(query, command, line, cwd, files);
        basis::rests(query, command, &mut parts);
        conclude(query, parts, command).behavior
    };
    !vast::is_vast(&blanked(command, line)) && in_line(&query, files, judge) == Behavior::Allow
}

/// What a rule about the text of the line says.
fn ruled(query: &Query, text: &Text, raw: &str, parts: &[Part], files: &dyn Files) -> Option<Decision> {
    [Behavior::Deny, Behavior::Ask].into_iter().find_map(|behavior| {
        let touches = |rule: &Rule| !spent(text, raw, files) && matching::touches_raw(rule, text);
        let entry = query.entries(behavior).find(|entry| touches(&entry.rule))?;
        // In plan mode an ask rule is not a way in for what is refused anyway.
        if behavior == Behavior::Ask && query.mode == Mode::Plan {
            return None;
        }
        let deny = parts.iter().find(|part| part.verdict.behavior == Behavior::Deny);
        Some(match deny.filter(|_| behavior == Behavior::Ask) {
            Some(part) => answer(Behavior::Deny, vec![shown(part)]),
            None => answer(behavior, vec![because(entry)]),
        })
    })
}

/// Counts what it costs to try a rule on the text; whether that is too much by now.
fn spent(text: &Text, raw: &str, files: &dyn Files) -> bool {
    files.spend(raw.len() / 8 + 2 * text.segments().len())
}

/// What a rule that forbids says about text that one command of the line gives another, which may run it.
fn held(query: &Query, line: &shell::Line, files: &dyn Files) -> Option<Part> {
    let held = OnceCell::new();
    let found = |behavior| {
        query.entries(behavior).find(|entry| held.get_or_init(|| Held::of(&line.node, files)).runs(&entry.rule))
    };
    let entry = [Behavior::Deny, Behavior::Ask].into_iter().find_map(|behavior| Some((behavior, found(behavior)?)));
    entry.map(|(behavior, entry)| {
        let verdict = Verdict { behavior, reason: because(entry), firm: true };
        Part::new(String::new(), verdict, true)
    })
}

fn all_parts(query: &Query, text: &str, line: &shell::Line, cwd: &Path, files: &dyn Files) -> Vec<Part> {
    let start = || Judge::new(query, files, &line.node, text);
    let mut judge = start();
    judge.walk(&line.node, Cwd(Some(vec![cwd.to_owned()])));
    // What follows a glob may run before it.
    if judge.unordered && judge.names_options() && text.contains(['*', '?', '[']) {
        judge = start();
        judge.stirred = true;
        judge.walk(&line.node, Cwd(Some(vec![cwd.to_owned()])));
    }
    held(query, line, files).into_iter().chain(judge.finish()).collect()
}

/// Rules that a dialog may offer for the line: one for each command that asks, none when a question would stay.
fn suggestions(query: &Query, text: &Text, raw: &str, parts: &[Part], files: &dyn Files) -> Vec<Rule> {
    let mut asking = parts.iter().filter(|part| part.verdict.behavior != Behavior::Allow).peekable();
    let asks = |entry: &Entry| spent(text, raw, files) || matching::touches_raw(&entry.rule, text);
    if asking.peek().is_none() || query.entries(Behavior::Ask).any(asks) || files.spend(0) {
        return Vec::new();
    }
    let mut rules: Vec<String> = Vec::new();
    for part in asking {
        match suggest::command(query.tool, &part.words).filter(|_| !part.verdict.firm && part.named.may_be_ruled()) {
            Some(rule) if !rules.contains(&rule) => {
                // Nobody reads so many.
                if rules.len() == MAX_SUGGESTIONS {
                    return Vec::new();
                }
                rules.push(rule);
            }
            Some(_) => {}
            None => return Vec::new(),
        }
    }
    rules.iter().filter_map(|text| query.vocabulary.rule(text).ok()).collect()
}

fn answer(behavior: Behavior, reasons: Vec<String>) -> Decision {
    Decision { reasons, ..Decision::new(behavior, String::new()) }
}

fn shown(part: &Part) -> String {
    if part.text.is_empty() {
        return part.verdict.reason.clone();
    }
    let mut text: String = part.text.chars().take(80).collect();
    if text.len() < part.text.len() {
        text.push('…');
    }
    format!("{text}: {}", part.verdict.reason)
}

/// The line without what is surely data, for matching as text.
fn blanked(command: &str, line: &shell::Line) -> String {
    let mut text = String::with_capacity(command.len());
    let mut ranges = line.data.clone();
    ranges.sort_by_key(|range| range.start);
    let mut at = 0;
    for range in ranges {
        if range.start >= at {
            text.push_str(&command[at..range.start]);
            text.push('\n');
            at = range.end;
        }
    }
    text.push_str(&command[at..]);
    text
}

/// What rules that forbid find in one pass over the words.
fn forbidden(query: &Query, command: &str) -> Option<Decision> {
    let words = vast::crude(command);
    let entry = query.entries(Behavior::Deny).find(|entry| vast::touches_crude(&entry.rule, &words))?;
    Some(answer(Behavior::Deny, vec![because(entry), "the line was read as bare words: it is too much".into()]))
}

/// Nothing looks at more words than anybody writes, nor longer than anybody waits: what no rule forbids asks.
fn too_long(query: &Query, command: &str) -> Decision {
    if let Some(decision) = forbidden(query, command) {
        return decision;
    }
    let behavior = if query.mode == Mode::Plan { Behavior::Deny } else { Behavior::Ask };
    answer(behavior, vec!["it is too much to be judged".into()])
}

/// Rules that forbid are tried on the text alone; the rest asks.
fn unparsable(query: &Query, command: &str, reason: &str, cwd: &Path, files: &dyn Files) -> Decision {
    let text = Text::new(command);
    let touches = |rule: &Rule| !spent(&text, command, files) && matching::touches_anywhere(rule, &text);
    let deny = query.entries(Behavior::Deny).find(|entry| touches(&entry.rule));
    if let Some(entry) = deny {
        return answer(Behavior::Deny, vec![because(entry), format!("the line was read as text: {reason}")]);
    }
    let touched = paths::judge_raw(query, "tee", command, cwd, files);
    if let Some(verdict) = touched.as_ref().filter(|verdict| verdict.behavior == Behavior::Deny) {
        return answer(Behavior::Deny, vec![verdict.reason.clone()]);
    }
    if query.mode == Mode::Plan {
        return answer(Behavior::Deny, vec![format!("plan mode runs only what is known to read: {reason}")]);
    }
    if let Some(entry) = query.entries(Behavior::Ask).find(|entry| touches(&entry.rule)) {
        return answer(Behavior::Ask, vec![because(entry)]);
    }
    match (query.mode, touched) {
        (Mode::Bypass, Some(verdict)) => answer(Behavior::Ask, vec![verdict.reason]),
        (Mode::Bypass, None) => answer(Behavior::Allow, vec!["mode bypassPermissions".into()]),
        _ => answer(Behavior::Ask, vec![format!("it cannot be judged: {reason}")]),
    }
}

fn interprets(part: &Part) -> bool {
    matching::interprets(&part.words.iter().map(Word::known).collect::<Vec<_>>())
}

/// Whether the command is a file, by its path, that another one of the line may write.
fn is_made(part: &Part, parts: &[Part]) -> bool {
    let Some(path) = part.words.first().and_then(Word::literal).filter(|name| name.contains('/')) else { return false };
    let name = path.rsplit('/').next().unwrap_or_default();
    let names = |text: &str| text.split(|c: char| c.is_whitespace() || c == '/').any(|word| word == name);
    parts.iter().any(|other| !other.read_only && other.text != part.text && names(&other.text))
        || parts.iter().any(|other| other.writes && names(&other.text))
}

/// Puts the parts together as the mode wants.
fn conclude(query: &Query, mut parts: Vec<Part>, command: &str) -> Decision {
    if parts.iter().any(interprets) {
        let text = Text::new(command);
        for behavior in [Behavior::Deny, Behavior::Ask] {
            let ruled = query
                .entries(behavior)
                .find(|entry| entry.rule.is_about(Matches::Command) && matching::touches_held(&entry.rule, &text));
            if let Some(entry) = ruled.filter(|_| behavior == Behavior::Deny || query.mode != Mode::Plan) {
                return answer(behavior, vec![because(entry), "an interpreter may run it".into()]);
            }
        }
    }
    // What the line itself writes is a script of which its text is known.
    if parts.iter().any(|part| is_made(part, &parts)) {
        let text = Text::new(command);
        let forbids = |entry: &&Entry| {
            entry.behavior != Behavior::Allow
                && entry.rule.is_about(Matches::Command)
                && matching::touches_held(&entry.rule, &text)
        };
        if let Some(entry) = query.rules.entries().iter().find(forbids) {
            let denies = query.mode == Mode::Plan;
            let reasons = vec!["the line runs a file that it writes".to_owned(), because(entry)];
            if parts.iter().all(|part| part.verdict.behavior != Behavior::Deny) {
                return answer(if denies { Behavior::Deny } else { Behavior::Ask }, reasons);
            }
        }
    }
    // acceptEdits speaks of lines made only of such commands.
    let edits_only = parts.iter().all(|part| part.basis == Basis::Edit || part.words.is_empty());
    for part in &mut parts {
        if part.basis == Basis::Edit && !edits_only {
            part.basis = Basis::Text;
            part.verdict = Verdict::new(Behavior::Ask, "acceptEdits covers lines made only of such commands");
        }
        let verdict = &mut part.verdict;
        match query.mode {
            Mode::Bypass if verdict.behavior == Behavior::Ask && !verdict.firm => {
                *verdict = Verdict::new(Behavior::Allow, "mode bypassPermissions");
            }
            Mode::Plan if !part.read_only && verdict.behavior != Behavior::Deny => {
                let why = part.named.brought.as_deref().or(basis::unconfined(verdict));
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let reason = format!("plan mode runs only what is known to read{why}");
                *verdict = Verdict::new(Behavior::Deny, reason);
            }
            _ => {}
        }
    }
    // The worst first, those last of them that only ask because of the others, and the others in their order.
    parts.sort_by_key(|part| (std::cmp::Reverse(part.verdict.behavior), basis::unconfined(&part.verdict).is_some()));
    let behavior = parts.first().map_or(Behavior::Allow, |part| part.verdict.behavior);
    let reasons = if parts.is_empty() { vec!["it does nothing".into()] } else { parts.iter().map(shown).collect() };
    answer(behavior, reasons)
}

#[cfg(test)]
mod tests {
    use super::super::decide::decide;
    use std::path::PathBuf;

    use super::super::files::MAX_NAMES;
    use super::super::files::fake::Table;
    use super::super::rule::Source;
    use super::super::{Access, Places};
    use super::*;
    use crate::sandbox::Level;

    const FILES: Table = Table(&[
        ("/p/link", "/etc"),
        ("/p/deep", "/p/src/a/b"),
        ("/p/hooks", "/p/.git/hooks"),
        ("/p/passwd-link", "/etc/passwd"),
        ("/p/passwd-link2", "/etc/passwd"),
        ("/p/env-link", "/p/.env"),
        ("/p/{to,etc}", "/etc"),
        ("/p/[a]", "/etc/passwd"),
        ("/p/a", "/p/a"),
        ("/p/.env", "/p/.env"),
        ("/p/nest/sub", "/p/nest/sub"),
        ("/p/nest/sub/.git", "/p/nest/sub/.git"),
        ("/p/nest/sub/fresh/.env", "/p/nest/sub/fresh/.env"),
        ("/p/bare/HEAD", "/p/bare/HEAD"),
        ("/p/bare/objects", "/p/bare/objects"),
        ("/p/bare/refs", "/p/bare/refs"),
        ("/p/half/HEAD", "/p/half/HEAD"),
        ("/p/half/refs", "/p/half/refs"),
        ("/p/keyed/x", "/p/keyed/x"),
        ("/p/keyed/x/.env", "/p/keyed/x/.env"),
        ("/p/conf/.npmrc", "/p/conf/.npmrc"),
        ("/p/holder/mounted", "/p/holder/mounted"),
        ("/p/dash/-ox", "/p/dash/-ox"),
        ("/p/dash/y", "/p/dash/y"),
        ("/p/evil/a", "/outside"),
        ("/p/led/e", "/p/.env"),
        ("/p/into/g", "/p/.git"),
        ("/p/kept/.env", "/p/kept/.env"),
        ("/p/twin/hard.txt", "/p/twin/hard.txt"),
        ("/p/file-link", "/outside/file"),
        ("/p/kept/secret.key", "/p/kept/secret.key"),
    ]);

    fn run(mode: Mode, rules: &RuleSet, command: &str) -> Decision {
        run_at(Level::Kernel, &FILES, mode, rules, command)
    }

    fn run_at(level: Level, files: &dyn Files, mode: Mode, rules: &RuleSet, command: &str) -> Decision {
        let access = Access::Shell { command: command.into(), cwd: "/p".into() };
        let places = Places::for_tests();
        let vocabulary = crate::permission::vocabulary::TOOLS;
        let query = Query { tool: "Bash", access: &access, mode, rules, places: &places, vocabulary, level };
        decide(&query, files)
    }

    /// `default; allow A, B; deny C`.
    fn header(text: &str) -> (Mode, RuleSet) {
        let mut parts = text.split("; ");
        let mode = parts.next().unwrap().parse().unwrap();
        let mut rules = RuleSet::default();
        for part in parts {
            let (behavior, list) = part.split_once(' ').unwrap();
            let behavior = match behavior {
                "allow" => Behavior::Allow,
                "ask" => Behavior::Ask,
                "deny" => Behavior::Deny,
                other => panic!("{other}"),
            };
            for rule in list.split(", ") {
                rules.add(behavior, Rule::parse(rule).unwrap(), Source::User);
            }
        }
        (mode, rules)
    }

    #[test]
    fn endless_wrappers_ask() {
        let (mode, rules) = header("default; deny Bash(rm:*)");
        let wrapped = |count: usize, command: &str| run(mode, &rules, &format!("{}{command}", "nice ".repeat(count)));
        assert_eq!(wrapped(10, "ls").behavior, Behavior::Allow);
        assert_eq!(wrapped(20_000, "ls").behavior, Behavior::Ask);
        assert_eq!(wrapped(20_000, "rm x").behavior, Behavior::Deny);
    }

    /// The rows of a table that are decided otherwise.
    fn wrong(table: &str, level: Level, files: &dyn Files) -> Vec<String> {
        let (mut mode, mut rules) = header("default");
        let mut wrong = Vec::new();
        for (at, line) in table.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(text) = line.strip_prefix('[') {
                (mode, rules) = header(text.strip_suffix(']').unwrap());
                continue;
            }
            let (want, command) = line.split_once(' ').unwrap();
            let command = command.replace('⏎', "\n").replace('␍', "\r").replace('␀', "\0").replace('⇥', "\t");
            let decision = run_at(level, files, mode, &rules, &command);
            if decision.behavior.name() != want {
                wrong.push(format!("{}: {mode} {command:?}: want {want}, is {decision:?}", at + 1));
            }
        }
        wrong
    }

    #[test]
    fn lines() {
        let table = include_str!("../../../tests/data/permission/lines.txt");
        assert!(table.lines().count() > 5_000);
        let wrong = wrong(table, Level::Kernel, &FILES);
        assert_eq!(wrong, Vec::<String>::new(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Whether it is described by nobody here what a program does with its words: it may run them.
    #[test]
    fn programs_that_nobody_described_may_run_what_is_behind_them() {
        const HERE: Table = Table(&[
            ("/usr/bin/touch", "/usr/bin/touch"),
            ("/usr/bin/install", "/usr/bin/install"),
            ("/usr/bin/test", "/usr/bin/test"),
            ("/usr/bin/echo", "/usr/bin/echo"),
            ("/usr/bin/pytest", "/usr/bin/pytest"),
            ("/usr/bin/setfacl", "/usr/bin/setfacl"),
            ("/p/README.md", "/p/README.md"),
        ]);
        let (mode, rules) = header(
            "default; allow Bash(setarch:*), Bash(foo:*), Bash(tool install:*), Bash(uv run:*), Bash(prlimit --nproc=5 touch:*)",
        );
        for (line, want) in [
            ("setarch x86_64 touch m", Behavior::Ask),
            ("setarch touch", Behavior::Ask),
            ("setarch x86_64", Behavior::Allow),
            ("foo install x", Behavior::Ask),
            ("foo test x", Behavior::Allow),
            ("foo echo x", Behavior::Allow),
            ("foo build x", Behavior::Allow),
            ("tool install x", Behavior::Allow),
            // What a subcommand that the rule names is given are names of its own, as in `brew install git`.
            ("tool install touch", Behavior::Allow),
            ("uv run pytest", Behavior::Allow),
            ("uv run -q setfacl m", Behavior::Ask),
            ("uv run -q made m", Behavior::Allow),
            ("prlimit --nproc=5 touch m", Behavior::Allow),
            ("prlimit --nproc=5 install m", Behavior::Ask),
        ] {
            let access = Access::Shell { command: line.into(), cwd: "/p".into() };
            let places = Places { programs: vec!["/usr/bin".into()], ..Places::for_tests() };
            let vocabulary = crate::permission::vocabulary::TOOLS;
            let (rules, level) = (&rules, Level::None);
            let query = Query { tool: "Bash", access: &access, mode, rules, places: &places, vocabulary, level };
            let decision = decide(&query, &HERE);
            assert_eq!(decision.behavior, want, "{line}: {decision:?}");
        }
    }

    #[test]
    fn lines_that_nothing_confines() {
        const HERE: Table = Table(&[
            ("/p/README.md", "/p/README.md"),
            ("/p/src", "/p/src"),
            ("/p/src/main.rs", "/p/src/main.rs"),
            ("/p/.env", "/p/.env"),
            ("/p/link", "/etc"),
        ]);
        let table = include_str!("../../../tests/data/permission/unconfined.txt");
        let wrong = wrong(table, Level::None, &HERE);
        assert_eq!(wrong, Vec::<String>::new(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// A project of so many folders with a hundred names each, and one file with secrets.
    struct Vast(usize, &'static str);

    impl Files for Vast {
        fn link(&self, _: &Path) -> Option<PathBuf> {
            None
        }

        fn is_file(&self, path: &Path) -> bool {
            self.names(path).is_empty()
        }

        fn names(&self, folder: &Path) -> Vec<String> {
            let mut names: Vec<String> = match folder.components().count() {
                2 => (0..self.0).map(|at| format!("d{at}")).collect(),
                3 => (0..100).map(|at| format!("f{at}")).collect(),
                _ => Vec::new(),
            };
            names.extend(
                Path::new(self.1)
                    .strip_prefix(folder)
                    .ok()
                    .and_then(|rest| Some(rest.components().next()?.as_os_str().to_str()?.to_owned())),
            );
            names.truncate(MAX_NAMES);
            names
        }

        fn is_mount(&self, _: &Path) -> bool {
            false
        }

        fn repository(&self, _: &Path) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn secrets_are_looked_for_among_what_lies_nearest() {
        let rules = RuleSet::default();
        for (folders, secret, line, want) in [
            // Near enough to be kept closed.
            (10, "/p/d3/.env", "grep -r x .", Behavior::Allow),
            (10, "/p/d3/f4/sub/.env", "grep -r x .", Behavior::Ask),
            (10, "/p/d3/.hidden/.env", "rg x", Behavior::Allow),
            (1_000, "/p/.env", "grep -r x .", Behavior::Ask),
            // Too far away to be found in a project this large.
            (1_000, "/p/d999/sub/.env", "grep -r x .", Behavior::Ask),
            (1_000, "/p/d999/sub/.env", "rg -. x", Behavior::Ask),
            (1_000, "/p/d999/sub/.env", "rg x -t rust", Behavior::Allow),
            (1_000, "/none", "ls -R", Behavior::Allow),
            (1_000, "/p/d999/sub/.env", "grep -r x d999", Behavior::Ask),
            // Not even the nearest names are known.
            (5_000, "/p/.env", "grep -r x .", Behavior::Ask),
            (5_000, "/p/.env", "ls -R", Behavior::Allow),
            (1_000, "/p/.env", "grep -r x . --include '*.rs'", Behavior::Allow),
        ] {
            let access = Access::Shell { command: line.into(), cwd: "/p".into() };
            let places = Places::for_tests();
            let query = Query {
                tool: "Bash",
                access: &access,
                mode: Mode::Plan,
                rules: &rules,
                places: &places,
                vocabulary: crate::permission::vocabulary::TOOLS,
                level: Level::Kernel,
            };
            let decision = decide(&query, &Vast(folders, secret));
            assert_eq!(decision.behavior, want, "{folders} {secret} {line}: {decision:?}");
        }
        // A line that has looked at all it may look at is not told that there is nothing.
        let searches: String = (0..20).map(|at| format!("grep -r x{at} d1 d{at} .; ")).collect();
        let access = Access::Shell { command: searches.into(), cwd: "/p".into() };
        let places = Places::for_tests();
        let query = Query {
            tool: "Bash",
            access: &access,
            mode: Mode::Plan,
            rules: &rules,
            places: &places,
            vocabulary: crate::permission::vocabulary::TOOLS,
            level: Level::Kernel,
        };
        assert_ne!(decide(&query, &Vast(1_000, "/none")).behavior, Behavior::Allow);
    }

    #[test]
    fn reasons_go_part_by_part() {
        let (mode, rules) = header("default; allow Bash(npm test)");
        let decision = run(mode, &rules, "ls && npm test && rm x > /dev/null");
        let want = [
            "rm x: rm is not on the read-only list",
            "ls: it only reads",
            "npm test: allow rule Bash(npm test) (user settings)",
            "> /dev/null: writing to /dev/null is harmless",
        ];
        assert_eq!(decision.reasons, want);
        assert_eq!(decision.suggestions, [Rule::parse("Bash(rm x)").unwrap()]);
    }

    #[test]
    fn lines_of_too_many_words_end_soon() {
        let rules =
            "allow Bash(git add:*), Bash(cargo test:*); deny Bash(rm:*), Read(.env), Bash(git commit --amend:*)";
        for unit in
            ["a=b ", "ls ~/ ", "~/ ", ">a ", "-name x ", "{a,b}", "{a,b} ", "a;", "\"$x\" ", "$x ", "'a b' ", "nice "]
        {
            for (length, mode) in [(65_000, "plan"), (65_000, "bypassPermissions"), (600, "plan")] {
                let (mode, rules) = header(&format!("{mode}; {rules}"));
                let line = |before: &str, after: &str| {
                    let line = format!("{before}{}{after}", unit.repeat(length / unit.len()));
                    run(mode, &rules, &line).behavior
                };
                for before in ["", "ls ", "find "] {
                    let behavior = line(before, "");
                    assert!(length < 65_000 || behavior != Behavior::Allow, "{before}{unit}");
                }
                assert_eq!(line("", "; rm x"), Behavior::Deny, "{unit}");
            }
        }
    }

    #[test]
    fn lines_that_cost_too_much_ask() {
        let forbids: String = (0..34).map(|at| format!("; deny Bash(prog{at} sub:*); ask Bash(other{at}:*)")).collect();
        for (rules, before, unit, count) in [
            ("", "", "r?", 10_000),
            ("", "", "a?b?", 3_000),
            ("", "", "[a]", 5_000),
            ("", "ls ", "r?/", 4_000),
            ("", "ls ", "/*/*/", 3_000),
            ("", "", "{", 60_000),
            ("", "sh", "|sh", 500),
            (&forbids, "", "a b;", 600),
            (&forbids, "", "bash -c ", 200),
            (&forbids, "", "source a;", 600),
            (&forbids, "", "python3 -c \"print(1)\";", 400),
        ] {
            let (mode, rules) = header(&format!("default{rules}"));
            let line = |end: &str| run(mode, &rules, &format!("{before}{}{end}", unit.repeat(count))).behavior;
            assert_eq!(line(""), Behavior::Ask, "{before}{unit}");
            if rules.entries().len() > 1 {
                assert_eq!(line(" prog1 sub"), Behavior::Deny, "{before}{unit}");
            }
        }
        // What is looked at again and again is counted each time.
        let (mode, rules) = header("acceptEdits");
        for (count, want) in [(20, Behavior::Allow), (500, Behavior::Ask)] {
            let access = Access::Shell { command: "rm -rf d1;".repeat(count).into(), cwd: "/p".into() };
            let places = Places::for_tests();
            let query = Query {
                tool: "Bash",
                access: &access,
                mode,
                rules: &rules,
                places: &places,
                vocabulary: crate::permission::vocabulary::TOOLS,
                level: Level::Kernel,
            };
            assert_eq!(decide(&query, &Vast(10, "/none")).behavior, want, "{count}");
        }
    }

    #[test]
    fn long_and_deep_lines_ask() {
        let rules = RuleSet::default();
        for line in [
            "echo ".to_owned() + &"a".repeat(70_000),
            "$(".repeat(3_000),
            format!("{}ls{}", "(".repeat(3_000), ")".repeat(3_000)),
            "{".repeat(5_000),
            "echo ".to_owned() + &"{a,b}".repeat(40),
        ] {
            assert_eq!(run(Mode::Default, &rules, &line).behavior, Behavior::Ask, "{}", &line[..20]);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics_and_nothing_unread_is_allowed(line in "[a-z \\\\'\"$(){};&|<>`#\n=*?~!\\[\\]-]{0,40}") {
            let (mode, rules) = header("default; deny Bash(rm:*)");
            let decision = run(mode, &rules, &line);
            if line.contains('`') && !line.contains(['\'', '#', '<']) {
                proptest::prop_assert_ne!(decision.behavior, Behavior::Allow);
            }
        }

        #[test]
        fn a_denied_command_is_found_wherever_it_stands(
            before in proptest::sample::select(vec!["ls", "git status", "npm test", "echo 'a b'", "cat <a", "x=1", "true # no"]),
            name in proptest::sample::select(vec!["rm", "'rm'", "\"rm\"", "r\\m", "r''m", "/bin/rm", "$'rm'", "r\\\nm"]),
            glue in 0usize..16,
            mode in proptest::sample::select(Mode::ALL.to_vec()),
        ) {
            let (_, rules) = header("default; allow Bash; deny Bash(rm:*)");
            let bad = format!("{name} -rf x");
            let line = match glue {
                0 => format!("{before}\n{bad}"),
                1 => format!("{bad}; ls"),
                2 => format!("{before}\n({bad})"),
                3 => format!("echo $({bad})"),
                4 => format!("echo \"a $({bad})\""),
                5 => format!("echo `{bad}`"),
                6 => format!("cat <({bad})"),
                7 => format!("ls && {bad} || ls"),
                8 => format!("ls | {bad}"),
                9 => format!("ls & {bad}"),
                10 => format!("if ls; then {bad}; fi"),
                11 => format!("for i in a b; do {bad}; done"),
                12 => format!("f() {{ {bad}; }}; f"),
                13 => format!("A=1 timeout 5 nice {bad}"),
                14 => format!("{before}\nbash -c \"{}\"", bad.replace('\\', "\\\\").replace('"', "\\\"")),
                _ => format!("ls | xargs -n 1 {bad}"),
            };
            proptest::prop_assert_eq!(run(mode, &rules, &line).behavior, Behavior::Deny, "{}", line);
        }
    }
}
