//! Judges a shell line construct by construct.

use std::path::{Path, PathBuf};

use super::commands;
use super::decide::{Decision, Query, Verdict, because, read, write};
use super::files::{Files, lexical};
use super::matching;
use super::rule::Specifier;
use super::shell::{self, Node, Redirect, RedirectKind, Simple, Word};
use super::touch::{self, Cwd};
use super::wrapper;
use super::{Behavior, Mode, suggest};

/// One judged part of the line.
#[derive(Debug, Clone)]
struct Part {
    text: String,
    verdict: Verdict,
    /// It only reads, wherever that is: what plan mode may let pass.
    read_only: bool,
    /// acceptEdits let it pass.
    edit: bool,
    /// The command, for suggestions.
    words: Vec<Word>,
}

/// Most wrappers around one command that are looked behind, as in `nice timeout 5 env A=1 ls`.
const MAX_WRAPPERS: usize = 16;
/// Most rules that one dialog offers.
const MAX_SUGGESTIONS: usize = 32;

struct Judge<'a> {
    query: &'a Query<'a>,
    files: &'a dyn Files,
    /// Where the line starts.
    start: PathBuf,
    functions: Vec<String>,
    /// Wrappers around the command that is being judged.
    wrappers: usize,
    parts: Vec<Part>,
}

/// Decides about a whole line that is to run in `cwd`.
pub(super) fn decide(query: &Query, command: &str, cwd: &Path, files: &dyn Files) -> Decision {
    let parsed = shell::parse(command);
    let line = match &parsed {
        Ok(line) => line,
        Err(reason) => return unparsable(query, command, reason, cwd, files),
    };
    let raw = blanked(command, line);
    for behavior in [Behavior::Deny, Behavior::Ask] {
        if let Some(entry) = query.entries(behavior).find(|entry| matching::touches_raw(&entry.rule, &raw)) {
            // In plan mode an ask rule is no way in for what is refused anyway.
            if behavior == Behavior::Deny || query.mode != Mode::Plan {
                let deny =
                    all_parts(query, line, cwd, files).into_iter().find(|part| part.verdict.behavior == Behavior::Deny);
                return match deny.filter(|_| behavior == Behavior::Ask) {
                    Some(part) => answer(Behavior::Deny, vec![shown(&part)]),
                    None => answer(behavior, vec![because(entry)]),
                };
            }
        }
    }
    conclude(query, all_parts(query, line, cwd, files), command, &raw)
}

fn all_parts(query: &Query, line: &shell::Line, cwd: &Path, files: &dyn Files) -> Vec<Part> {
    let mut judge =
        Judge { query, files, start: cwd.to_owned(), functions: Vec::new(), wrappers: 0, parts: Vec::new() };
    judge.walk(&line.node, Cwd(Some(vec![cwd.to_owned()])));
    judge.parts
}

/// Rules that a dialog may offer for the line, as text: one for each command that asks, none when a question would stay.
pub(super) fn suggestions(query: &Query, command: &str, cwd: &Path, files: &dyn Files) -> Vec<String> {
    let Ok(line) = shell::parse(command) else { return Vec::new() };
    if query.entries(Behavior::Ask).any(|entry| matching::touches_raw(&entry.rule, &blanked(command, &line))) {
        return Vec::new();
    }
    let mut rules: Vec<String> = Vec::new();
    for part in all_parts(query, &line, cwd, files) {
        if part.verdict.behavior == Behavior::Allow {
            continue;
        }
        if part.verdict.firm {
            return Vec::new();
        }
        match suggest::command(&part.words) {
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
    rules
}

fn answer(behavior: Behavior, reasons: Vec<String>) -> Decision {
    Decision { behavior, reasons, suggestions: Vec::new() }
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

/// Rules that forbid are tried on the text alone; the rest asks.
fn unparsable(query: &Query, command: &str, reason: &str, cwd: &Path, files: &dyn Files) -> Decision {
    let deny = query.entries(Behavior::Deny).find(|entry| matching::touches_anywhere(&entry.rule, command));
    if let Some(entry) = deny {
        return answer(Behavior::Deny, vec![because(entry), format!("the line was read as text: {reason}")]);
    }
    let touched = touch::judge_raw(query, command, cwd, files);
    if let Some(verdict) = touched.as_ref().filter(|verdict| verdict.behavior == Behavior::Deny) {
        return answer(Behavior::Deny, vec![verdict.reason.clone()]);
    }
    if query.mode == Mode::Plan {
        return answer(Behavior::Deny, vec![format!("plan mode runs only what is known to read: {reason}")]);
    }
    if let Some(entry) = query.entries(Behavior::Ask).find(|entry| matching::touches_anywhere(&entry.rule, command)) {
        return answer(Behavior::Ask, vec![because(entry)]);
    }
    match (query.mode, touched) {
        (Mode::Bypass, Some(verdict)) => answer(Behavior::Ask, vec![verdict.reason]),
        (Mode::Bypass, None) => answer(Behavior::Allow, vec!["mode bypassPermissions".into()]),
        _ => answer(Behavior::Ask, vec![format!("it cannot be judged: {reason}")]),
    }
}

/// Puts the parts together as the mode wants.
fn conclude(query: &Query, mut parts: Vec<Part>, command: &str, raw: &str) -> Decision {
    let interprets = |part: &Part| matching::interprets(&part.words.iter().map(Word::known).collect::<Vec<_>>());
    if parts.iter().any(interprets) {
        for behavior in [Behavior::Deny, Behavior::Ask] {
            let ruled = query
                .entries(behavior)
                .find(|entry| entry.rule.tool() == "Bash" && matching::touches_tokens(&entry.rule, command));
            if let Some(entry) = ruled.filter(|_| behavior == Behavior::Deny || query.mode != Mode::Plan) {
                return answer(behavior, vec![because(entry), "an interpreter may run it".into()]);
            }
        }
    }
    let dynamic = parts.iter().any(|part| part.words.first().is_some_and(|word| word.literal().is_none()));
    if dynamic {
        for behavior in [Behavior::Deny, Behavior::Ask] {
            if let Some(entry) = query.entries(behavior).find(|entry| matching::touches_anywhere(&entry.rule, raw)) {
                return answer(behavior, vec![because(entry), "a command's name is only known when it runs".into()]);
            }
        }
    }
    // acceptEdits speaks of lines made only of such commands.
    let edits_only = parts.iter().all(|part| part.edit || part.words.is_empty());
    for part in &mut parts {
        if part.edit && !edits_only {
            part.edit = false;
            part.verdict = Verdict::new(Behavior::Ask, "acceptEdits covers lines made only of such commands");
        }
        let verdict = &mut part.verdict;
        match query.mode {
            Mode::Bypass if verdict.behavior == Behavior::Ask && !verdict.firm => {
                *verdict = Verdict::new(Behavior::Allow, "mode bypassPermissions");
            }
            Mode::Plan if !part.read_only && verdict.behavior != Behavior::Deny => {
                *verdict = Verdict::new(Behavior::Deny, "plan mode runs only what is known to read");
            }
            _ => {}
        }
    }
    // The worst first, the others in their order.
    parts.sort_by_key(|part| std::cmp::Reverse(part.verdict.behavior));
    let behavior = parts.first().map_or(Behavior::Allow, |part| part.verdict.behavior);
    let reasons = if parts.is_empty() { vec!["it does nothing".into()] } else { parts.iter().map(shown).collect() };
    answer(behavior, reasons)
}

impl Judge<'_> {
    fn push(&mut self, text: String, verdict: Verdict, read_only: bool) {
        self.parts.push(Part { text, verdict, read_only, edit: false, words: Vec::new() });
    }

    /// Judges a construct; returns where the shell may be after it succeeded and after it failed.
    fn walk(&mut self, node: &Node, cwd: Cwd) -> (Cwd, Cwd) {
        match node {
            Node::Simple(command) => self.simple(command, cwd),
            Node::And(left, right) => {
                let (then, failed) = self.walk(left, cwd);
                let (then, otherwise) = self.walk(right, then);
                (then, failed.or(otherwise))
            }
            Node::Or(left, right) => {
                let (then, failed) = self.walk(left, cwd);
                let (second, otherwise) = self.walk(right, failed);
                (then.or(second), otherwise)
            }
            Node::Sequence(nodes) => {
                let mut state = (cwd.clone(), cwd);
                for node in nodes {
                    state = self.walk(node, state.0.or(state.1));
                }
                state
            }
            Node::Apart(nodes) => {
                for node in nodes {
                    self.walk(node, cwd.clone());
                }
                (cwd.clone(), cwd)
            }
            Node::Block { variable, words: _, parts } => {
                if let Some(name) = variable.as_ref().filter(|name| !wrapper::is_local(name)) {
                    self.push(
                        name.clone(),
                        Verdict::new(Behavior::Ask, "the loop sets a variable that commands may obey"),
                        false,
                    );
                }
                let cwd = if parts.iter().any(touch::moves) { Cwd(None) } else { cwd };
                for part in parts {
                    self.walk(part, cwd.clone());
                }
                (cwd.clone(), cwd)
            }
            Node::Function { name, body } => {
                if commands::is_known(name) || WRAPPERS.contains(&name.as_str()) {
                    self.push(
                        name.clone(),
                        Verdict::new(Behavior::Ask, "the function takes a known command's name"),
                        false,
                    );
                }
                self.functions.push(name.clone());
                // It runs wherever it is called.
                self.walk(body, Cwd(None));
                if touch::moves(body) { (Cwd(None), Cwd(None)) } else { (cwd.clone(), cwd) }
            }
            Node::Redirected { body, redirects } => {
                let after = match body {
                    Some(body) => self.walk(body, cwd.clone()),
                    None => (cwd.clone(), cwd.clone()),
                };
                // Whether they are opened before or within the body is not told, so both must do.
                let cwd = cwd.or(after.0.clone()).or(after.1.clone());
                for redirect in redirects {
                    self.redirect(redirect, &cwd);
                }
                after
            }
        }
    }

    fn simple(&mut self, command: &Simple, cwd: Cwd) -> (Cwd, Cwd) {
        for redirect in &command.redirects {
            self.redirect(redirect, &cwd);
        }
        if command.words.is_empty() {
            for assignment in &command.assignments {
                let harmless = wrapper::is_harmless(&assignment.name) || wrapper::is_local(&assignment.name);
                let verdict = if harmless {
                    Verdict::new(Behavior::Allow, "it sets a variable of the line")
                } else {
                    Verdict::new(Behavior::Ask, "it sets a variable that commands may obey")
                };
                self.push(assignment.name.clone(), verdict, harmless);
            }
            return (cwd.clone(), cwd);
        }
        if let Some(assignment) = wrapper::harmful(&command.assignments) {
            let reason = format!("{} may change what the command does", assignment.name);
            self.push(format!("{}=…", assignment.name), Verdict::new(Behavior::Ask, reason), false);
        }
        self.command(&command.words, cwd)
    }

    fn redirect(&mut self, redirect: &Redirect, cwd: &Cwd) {
        let target = &redirect.target;
        let writes = match redirect.kind {
            RedirectKind::Duplicate => return,
            RedirectKind::Data if target.is_dynamic() => {
                return self.push(
                    format!("<<< {}", target.source),
                    Verdict::new(Behavior::Ask, "its input is only known when it runs"),
                    false,
                );
            }
            RedirectKind::Data => return,
            RedirectKind::Read => false,
            RedirectKind::Write | RedirectKind::ReadWrite => true,
        };
        let text = format!("{} {}", if writes { ">" } else { "<" }, target.source);
        let paths = if target.has_glob() { None } else { touch::paths(target, cwd, self.query.places, self.files) };
        let Some(paths) = paths else {
            // The name alone may already be one that is ruled or protected.
            let words = [commands::plain("tee"), target.clone()];
            let verdict = touch::judge_words(self.query, &words, cwd, self.files)
                .unwrap_or_else(|| Verdict::new(Behavior::Ask, "nobody knows where it leads"));
            return self.push(text, verdict, false);
        };
        let mut worst = Verdict::new(Behavior::Allow, "it may be used");
        for path in paths {
            let device = lexical(&path);
            if device
                .to_str()
                .is_some_and(|path| matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin"))
            {
                continue;
            }
            if device.starts_with("/dev/tcp") || device.starts_with("/dev/udp") {
                touch::worse(&mut worst, Verdict::firm("it opens a network connection"));
                continue;
            }
            let verdict = if writes {
                write(self.query, "Write", &path, self.files)
            } else {
                read(self.query, "Read", &path, self.files)
            };
            touch::worse(&mut worst, verdict);
            if redirect.kind == RedirectKind::ReadWrite {
                touch::worse(&mut worst, read(self.query, "Read", &path, self.files));
            }
        }
        let read_only = !writes || worst.behavior == Behavior::Allow;
        self.push(text, worst, read_only);
    }

    fn command(&mut self, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let text = Simple::canonical(words);
        let known: Vec<String> = words.iter().map(Word::known).collect();
        for behavior in [Behavior::Deny, Behavior::Ask] {
            if let Some(entry) = self.query.entries(behavior).find(|entry| matching::touches(&entry.rule, &known)) {
                let read_only = self.only_reads(&commands::reads(words), &cwd);
                self.parts.push(Part {
                    text,
                    verdict: Verdict { behavior, reason: because(entry), firm: true },
                    read_only,
                    edit: false,
                    words: words.to_vec(),
                });
                return (Cwd(None), Cwd(None));
            }
        }
        match known[0].as_str() {
            "cd" if words[0].literal().is_some() => return self.change_folder(words, cwd),
            name if words[0].literal().is_some() && self.functions.iter().any(|known| known == name) => {
                self.push(text, Verdict::new(Behavior::Allow, "its body was judged"), true);
                return (cwd.clone(), cwd);
            }
            _ => {}
        }
        let unlooked = match wrapper::unwrap(words) {
            Some(Ok(_)) if self.wrappers == MAX_WRAPPERS => Some("it is wrapped too deeply".into()),
            Some(Ok(inner)) if !self.is_allowed(words, &cwd) => {
                self.wrappers += 1;
                let after = self.command(inner, cwd);
                self.wrappers -= 1;
                return after;
            }
            Some(Err(reason)) => Some(reason),
            // The function that keeps git from running what a repository names is the shell's own: a wrapper starts the
            // program itself.
            _ if self.wrappers > 0 && known[0] == "git" => {
                Some("git behind another command may run what the repository's configuration names".into())
            }
            _ => None,
        };
        let (verdict, read_only, edit) = self.judge(words, &cwd, unlooked);
        let moved = touch::shell_state(&known[0]) || words[0].literal().is_none();
        self.parts.push(Part { text, verdict, read_only, edit, words: words.to_vec() });
        if moved { (Cwd(None), Cwd(None)) } else { (cwd.clone(), cwd) }
    }

    fn allow_rule(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        // A relative program is another one in another folder.
        let name = words.first()?.literal()?;
        let relative = name.contains('/') && !name.starts_with('/');
        let here = cwd.0.as_deref() == Some(std::slice::from_ref(&self.start));
        self.query
            .entries(Behavior::Allow)
            .find(|entry| {
                matching::allows(&entry.rule, words) && (!relative || here || *entry.rule.specifier() == Specifier::Any)
            })
            .map(because)
    }

    fn is_allowed(&self, words: &[Word], cwd: &Cwd) -> bool {
        self.allow_rule(words, cwd).is_some()
    }

    fn only_reads(&self, reads: &Result<commands::Reads, String>, cwd: &Cwd) -> bool {
        reads.as_ref().is_ok_and(|reads| !touch::may_be_options(reads, cwd, self.query.places, self.files))
    }

    /// The verdict, whether the command only reads, and whether acceptEdits let it pass.
    fn judge(&self, words: &[Word], cwd: &Cwd, unlooked: Option<String>) -> (Verdict, bool, bool) {
        let reads = match unlooked {
            Some(reason) => Err(reason),
            None => commands::reads(words),
        };
        let only_reads = self.only_reads(&reads, cwd);
        let reason = match &reads {
            Ok(reads) => {
                let verdict = touch::judge_reads(self.query, reads, cwd, self.files);
                if verdict.behavior != Behavior::Ask || verdict.firm {
                    return (verdict, only_reads, false);
                }
                verdict.reason
            }
            Err(reason) => {
                if let Some(verdict) = touch::judge_words(self.query, words, cwd, self.files) {
                    return (verdict, false, false);
                }
                reason.clone()
            }
        };
        if words[0].literal().is_none() {
            return (Verdict::new(Behavior::Ask, "the command's name is only known when it runs"), false, false);
        }
        if let Some(rule) = self.allow_rule(words, cwd) {
            return (Verdict::new(Behavior::Allow, rule), only_reads, false);
        }
        if self.query.mode == Mode::AcceptEdits && touch::is_edit(self.query, words, cwd, self.files) {
            return (Verdict::new(Behavior::Allow, "mode acceptEdits"), false, true);
        }
        (Verdict::new(Behavior::Ask, reason), only_reads, false)
    }

    fn change_folder(&mut self, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let text = Simple::canonical(words);
        let places = self.query.places;
        let arguments = match &words[1..] {
            [first, rest @ ..] if first.literal().as_deref() == Some("--") => rest,
            all => all,
        };
        let target = match arguments {
            [] => places.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
            [one] if one.literal().as_deref() != Some("-") && !one.prefix().starts_with('-') => {
                touch::path_text(one, places)
            }
            _ => None,
        };
        let (Some(target), Some(from)) = (target, cwd.0.clone()) else {
            let verdict = Verdict::new(Behavior::Ask, "nobody knows where it goes");
            self.parts.push(Part { text, verdict, read_only: true, edit: false, words: words.to_vec() });
            return (Cwd(None), Cwd(None));
        };
        let to: Vec<PathBuf> = from.iter().map(|from| lexical(&from.join(&target))).collect();
        let mut worst = Verdict::new(Behavior::Allow, "it stays in the workspace");
        for path in &to {
            if !places.inside(path, self.files) || !places.inside(&self.files.resolve(path), self.files) {
                touch::worse(
                    &mut worst,
                    Verdict::new(Behavior::Ask, format!("{} is outside the workspace", path.display())),
                );
            }
        }
        self.parts.push(Part { text, verdict: worst, read_only: true, edit: false, words: words.to_vec() });
        (Cwd(Some(to)), cwd)
    }
}

/// Commands that run others, so that no function may take their names.
const WRAPPERS: [&str; 10] =
    ["timeout", "nice", "nohup", "time", "stdbuf", "command", "env", "builtin", "eval", "exec"];

#[cfg(test)]
mod tests {
    use super::super::decide::{Trust, decide};
    use super::super::files::fake::Table;
    use super::super::rule::{Rule, RuleSet, Source};
    use super::super::{Access, Places};
    use super::*;

    const FILES: Table = Table(&[
        ("/p/link", "/etc"),
        ("/p/deep", "/p/src/a/b"),
        ("/p/hooks", "/p/.git/hooks"),
        ("/p/passwd-link", "/etc/passwd"),
        ("/p/passwd-link2", "/etc/passwd"),
        ("/p/env-link", "/p/.env"),
        ("/p/a", "/p/a"),
        ("/p/.env", "/p/.env"),
        ("/p/dash/-ox", "/p/dash/-ox"),
        ("/p/dash/y", "/p/dash/y"),
    ]);

    fn run(mode: Mode, rules: &RuleSet, command: &str) -> Decision {
        let access = Access::Shell { command: command.to_owned(), cwd: "/p".into() };
        let places = Places::for_tests();
        let query = Query { tool: "Bash", access: &access, mode, rules, places: &places, trust: Trust::Trusted };
        decide(&query, &FILES)
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

    #[test]
    fn lines() {
        let table = include_str!("../../tests/data/permission/lines.txt");
        let (mut mode, mut rules) = header("default");
        let mut wrong = Vec::new();
        let mut count = 0;
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
            let decision = run(mode, &rules, &command);
            count += 1;
            if decision.behavior.name() != want {
                wrong.push(format!("{}: {mode} {command:?}: want {want}, is {decision:?}", at + 1));
            }
        }
        assert!(count > 500, "{count}");
        assert_eq!(wrong, Vec::<String>::new(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn reasons_go_part_by_part() {
        let (mode, rules) = header("default; allow Bash(npm test)");
        let decision = run(mode, &rules, "ls && npm test && rm x > /dev/null");
        let want = [
            "rm x: rm is not on the read-only list",
            "ls: it only reads",
            "npm test: allow rule Bash(npm test) (user settings)",
            "> /dev/null: it may be used",
        ];
        assert_eq!(decision.reasons, want);
        assert_eq!(decision.suggestions, [Rule::parse("Bash(rm x)").unwrap()]);
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
