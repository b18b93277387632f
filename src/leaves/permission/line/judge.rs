//! Walks the constructs of a line and judges every command and redirection in them.

use std::cell::RefCell;
use std::collections::HashMap;

use super::super::commands;
use super::super::decide::{Query, Verdict, because};
use super::super::dynamic;
use super::super::edit::Edits;
use super::super::evaluate::is_builtin;
use super::super::files::Files;
use super::super::found::{self, Found};
use super::super::matching::{self, Seen};
use super::super::paths::{self, Cwd};
use super::super::places::Named;
use super::super::rule::{Entry, Rule};
use super::super::shell::{Node, Redirect, RedirectKind, Simple, Word};
use super::super::values::{Values, set_by};
use super::super::wrapper;
use super::super::{Behavior, Mode};
use super::Part;
use super::basis::{self, Basis};
use super::folder::Unpacked;
use super::git::{self, Git};
use super::input::{self, Input};
use super::streams::Streams;
use super::unknown::Unknown;
use super::{fed, fed::Looked, scripts};

/// Most wrappers around one command that are looked behind, as in `nice timeout 5 env A=1 ls`.
const MAX_WRAPPERS: usize = 16;

pub(super) struct Judge<'a> {
    pub(super) query: &'a Query<'a>,
    pub(super) files: &'a dyn Files,
    /// Functions that surely exist by now in this very shell. What they run was judged where they are defined.
    functions: Vec<String>,
    /// Wrappers around the command that is being judged.
    pub(super) wrappers: usize,
    /// The first of them is the shell's own keyword.
    timed: bool,
    pub(super) values: Values,
    edits: Edits,
    /// Whether the order of its commands is not the one in which they stand.
    pub(super) unordered: bool,
    /// Names that look like options may lie in the folders when it starts.
    pub(super) stirred: bool,
    /// Variables that surely have one of these values by now.
    set: Vec<String>,
    /// What the pipe brings that the next command reads.
    pub(super) fed: Option<Found>,
    /// What commands find on their standard input.
    pub(super) input: Input,
    /// How many texts within text it is in.
    pub(super) depth: usize,
    /// The loops around the command whose variables take names that are known.
    pub(super) loops: Vec<fed::Loop>,
    /// What was found of commands, before and after names like options may have come: a line may hold one hundreds of times.
    /// With what feeds it by a pipe.
    looked: HashMap<(Vec<Word>, Vec<Word>, Cwd, bool), Looked>,
    /// What names of programs mean, with the folders of those that depend on where the shell is.
    pub(super) named: RefCell<HashMap<(String, Cwd), Named>>,
    /// Why what commands unpack may land outside.
    pub(super) unpacked: RefCell<Unpacked>,
    /// Something else than a pipe may be what the commands read.
    redirected: bool,
    /// The line may leave the folder in which it starts.
    moves: bool,
    /// What the line's redirections open.
    pub(super) streams: Streams,
    pub(super) parts: Vec<Part>,
}

impl<'a> Judge<'a> {
    /// Starts with the line's first construct.
    pub(super) fn new(query: &'a Query<'a>, files: &'a dyn Files, node: &Node, text: &str) -> Judge<'a> {
        Judge {
            query,
            files,
            functions: Vec::new(),
            wrappers: 0,
            timed: false,
            values: Values::of(node, text),
            edits: Edits::default(),
            unordered: false,
            stirred: false,
            set: Vec::new(),
            fed: None,
            input: Input::default(),
            depth: 0,
            loops: Vec::new(),
            looked: HashMap::new(),
            named: RefCell::default(),
            unpacked: RefCell::default(),
            redirected: false,
            moves: paths::moves(node),
            streams: Streams::of(node),
            parts: Vec::new(),
        }
    }

    /// The parts in their order. What a rule lets run may have changed where a file's name leads and what a repository
    /// names, so that behind or beside it nothing is written unasked, nor read without a rule.
    pub(super) fn finish(mut self) -> Vec<Part> {
        let acts = |part: &Part| !part.words.is_empty() && !part.read_only && part.basis != Basis::Edit;
        let passes = |part: &Part| part.verdict.behavior == Behavior::Allow;
        let brings = |part: &Part| acts(part) && commands::places(&part.words) >= commands::Places::Links;
        for at in 0..self.parts.len() {
            let until = if self.unordered { self.parts.len() } else { at };
            let part = &self.parts[at];
            let (writes, looks) = (part.writes, part.looks && passes(part));
            let before = &self.parts[..until];
            let leads = |other: (usize, &Part)| other.0 != at && passes(other.1) && other.1.links;
            let makes = |other: (usize, &Part)| {
                other.0 != at && acts(other.1) && passes(other.1) && !dynamic::is_inert(&other.1.words[0].known())
            };
            let least = match part.git {
                _ if part.listed => commands::Places::Listed,
                Git::No => commands::Places::Links,
                _ => commands::Places::Repositories,
            };
            if writes && before.iter().any(acts)
                || part.split && passes(part) && before.iter().enumerate().any(makes)
                || part.held && passes(part) && before.iter().enumerate().any(leads)
                || part.named.open && passes(part) && before.iter().any(|part| passes(part) && brings(part))
                || looks
                    && before.iter().any(|part| acts(part) && passes(part) && commands::places(&part.words) >= least)
            {
                let reason = "a command of the line may have changed where it leads";
                paths::worse(&mut self.parts[at].verdict, Verdict::new(Behavior::Ask, reason));
            }
        }
        git::beside(&mut self.parts);
        git::brought(&mut self.parts, self.unordered, self.files);
        self.parts
    }

    pub(super) fn unknown(&self) -> Unknown<'_> {
        Unknown { query: self.query, files: self.files, values: &self.values, set: &self.set }
    }

    fn push(&mut self, text: String, verdict: Verdict, read_only: bool) {
        self.parts.push(Part::new(text, verdict, read_only));
    }

    /// Judges a construct; returns where the shell may be after it succeeded and after it failed.
    pub(super) fn walk(&mut self, node: &Node, cwd: Cwd) -> (Cwd, Cwd) {
        match node {
            Node::Simple(command) => self.simple(command, cwd),
            Node::And(left, right) => {
                let (then, failed) = self.walk(left, cwd);
                let known = self.set.len();
                self.set.extend(set_by(left));
                let (then, otherwise) = self.walk_aside(right, then);
                self.set.truncate(known);
                (then, failed.or(otherwise))
            }
            Node::Or(left, right) => {
                let (then, failed) = self.walk(left, cwd);
                let (second, otherwise) = self.walk_aside(right, failed);
                (then.or(second), otherwise)
            }
            Node::Not(inner) => {
                let (then, failed) = self.walk(inner, cwd);
                (failed, then)
            }
            Node::Sequence(nodes) => {
                let mut state = (cwd.clone(), cwd);
                let known = self.set.len();
                let outer = input::feeds(nodes).then(|| std::mem::replace(&mut self.input, Input::Unknown));
                for node in nodes {
                    state = self.walk(node, state.0.or(state.1));
                    self.set.extend(set_by(node));
                }
                if let Some(outer) = outer {
                    self.input = outer;
                }
                self.set.truncate(known);
                state
            }
            Node::Apart(nodes) => {
                self.unordered = true;
                let outer = self.input.clone();
                for (at, node) in nodes.iter().enumerate() {
                    if at > 0 {
                        self.input = self.input.printed(&nodes[at - 1]);
                    }
                    let before = at.checked_sub(1).map(|at| &nodes[at]);
                    self.fed = before.filter(|_| !self.redirected && found::is_piped(node)).and_then(found::found);
                    self.walk_aside(node, cwd.clone());
                    self.fed = None;
                }
                self.input = outer;
                (cwd.clone(), cwd)
            }
            Node::Block { variable, words, parts } => {
                if let Some(word) = words.iter().find(|word| !self.values.tells_little(word)) {
                    let reason = "the line would reveal the value of a variable";
                    self.push(word.source.clone(), Verdict::new(Behavior::Ask, reason), true);
                }
                if let Some(name) = variable.as_ref().filter(|name| !wrapper::is_local(name)) {
                    self.push(
                        name.clone(),
                        Verdict::new(Behavior::Ask, "the loop sets a variable that commands may obey"),
                        false,
                    );
                }
                let cwd = if parts.iter().any(paths::moves) { Cwd(None) } else { cwd };
                self.unordered = true;
                let known = (self.set.len(), self.loops.len());
                self.loops.extend(self.loop_of(variable.as_deref(), words, parts));
                self.set.extend(variable.clone());
                for part in parts {
                    self.walk_aside(part, cwd.clone());
                }
                self.set.truncate(known.0);
                self.loops.truncate(known.1);
                (cwd.clone(), cwd)
            }
            Node::Function { name, body } => {
                // The names with dashes below are of the shell that we start ourselves.
                if commands::is_known(name)
                    || wrapper::carries(name)
                    || is_builtin(name)
                    || name.starts_with("__cocode")
                {
                    self.push(
                        name.clone(),
                        Verdict::new(Behavior::Ask, "the function takes a known command's name"),
                        false,
                    );
                }
                self.unordered = true;
                // It runs wherever it is called.
                let outer = std::mem::replace(&mut self.input, Input::Unknown);
                self.walk_aside(body, if self.moves { Cwd(None) } else { cwd.clone() });
                self.input = outer;
                // Only now: in the body the name is another program's, or calls without an end.
                if self.values.keeps_function(name) {
                    self.functions.push(name.clone());
                }
                if paths::moves(body) { (Cwd(None), Cwd(None)) } else { (cwd.clone(), cwd) }
            }
            Node::Redirected { body, redirects } => {
                let input = self.input.redirected(redirects);
                let (outer, around) = (self.redirected, std::mem::replace(&mut self.input, input));
                self.redirected |= redirects.iter().any(|redirect| redirect.kind != RedirectKind::Write);
                let after = match body {
                    // Where a file cannot be opened, the body does not run.
                    Some(body) => self.walk_aside(body, cwd.clone()),
                    None => (cwd.clone(), cwd.clone()),
                };
                (self.redirected, self.input) = (outer, around);
                // Whether they are opened before or within the body is not told, so both must do.
                let cwd = cwd.or(after.0.clone()).or(after.1.clone());
                for redirect in redirects {
                    self.redirect(redirect, &cwd);
                }
                after
            }
        }
    }

    /// Walks what may not run, or runs in another shell: the functions that it defines do not exist after it.
    fn walk_aside(&mut self, node: &Node, cwd: Cwd) -> (Cwd, Cwd) {
        let known = self.functions.len();
        let after = self.walk(node, cwd);
        self.functions.truncate(known);
        after
    }

    fn simple(&mut self, command: &Simple, cwd: Cwd) -> (Cwd, Cwd) {
        for redirect in &command.redirects {
            self.redirect(redirect, &cwd);
        }
        if command.words.is_empty() {
            for assignment in &command.assignments {
                let harmless = wrapper::sets_harmlessly(&assignment.name, assignment.value.literal().as_deref())
                    || wrapper::is_local(&assignment.name);
                let verdict = if harmless {
                    Verdict::new(Behavior::Allow, "it sets a variable of the line")
                } else {
                    Verdict::new(Behavior::Ask, "it sets a variable that commands may obey")
                };
                let part = Part::new(assignment.name.clone(), verdict, harmless);
                self.parts.push(Part { basis: Basis::Nothing, ..part });
            }
            return (cwd.clone(), cwd);
        }
        // A line's read alone splits by it.
        let splits = |name: &str| name == "IFS" && command.words[0].literal().as_deref() == Some("read");
        if let Some(assignment) = wrapper::harmful(&command.assignments).filter(|found| !splits(&found.name)) {
            let reason = format!("{} may change what the command does", assignment.name);
            self.push(format!("{}=…", assignment.name), Verdict::new(Behavior::Ask, reason), false);
        }
        // At the start of a pipeline it is a keyword, which runs the shell's own functions.
        let bare = command.assignments.is_empty() && command.redirects.is_empty() && !self.unordered;
        self.timed = bare && command.words[0].source == "time";
        let input = self.input.redirected(&command.redirects);
        let outer = std::mem::replace(&mut self.input, input);
        let after = self.command(&command.words, cwd);
        // Alone it redirects what comes after it.
        let lasts = command.words.len() == 1 && command.words[0].literal().as_deref() == Some("exec");
        self.timed = false;
        if !lasts {
            self.input = outer;
        }
        after
    }

    fn redirect(&mut self, redirect: &Redirect, cwd: &Cwd) {
        self.parts.extend(self.streams.judge(redirect, self.query, &self.edits, cwd, self.files));
    }

    fn command(&mut self, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let told = self.values.told(words, &cwd, self.query.places);
        let words = told.as_deref().unwrap_or(words);
        // Between brackets of two nothing is split.
        let compares = words.first().is_some_and(|name| matches!(name.literal().as_deref(), Some("test" | "[" | "[[")));
        let shown =
            |word: &Word| self.values.shows_little(word, &self.set) || compares && self.values.tells_little(word);
        let text = Simple::canonical(words);
        if let Some(data) = dynamic::as_data(words, shown) {
            return self.known_command(text, &data, cwd);
        }
        let Some(alternatives) = self.values.alternatives(words, &self.set) else {
            return self.known_command(text, words, cwd);
        };
        let after = alternatives.iter().map(|words| self.known_command(Simple::canonical(words), words, cwd.clone()));
        after.reduce(|one, other| (one.0.or(other.0), one.1.or(other.1))).unwrap_or((Cwd(None), Cwd(None)))
    }

    fn known_command(&mut self, text: String, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let known: Vec<String> = words.iter().map(Word::known).collect();
        let mut possible = vec![Seen::new(words.iter().map(Word::possible).collect())];
        possible.extend(scripts::given(words).into_iter().chain(fed::filled(words)).map(Seen::new));
        let forbids = self.query.rules.entries().iter().filter(|entry| entry.behavior != Behavior::Allow).count();
        let steps = |seen: &Seen| 2 + seen.words.iter().map(|word| 1 + word.len() / 4).sum::<usize>();
        if self.files.spend((1 + forbids) * possible.iter().map(steps).sum::<usize>()) {
            self.push(text, paths::too_much(), false);
            return (Cwd(None), Cwd(None));
        }
        for behavior in [Behavior::Deny, Behavior::Ask] {
            let touches = |rule: &Rule| possible.iter().any(|seen| matching::touches(rule, seen));
            if let Some(entry) = self.query.entries(behavior).find(|entry| touches(&entry.rule)) {
                let read_only = self.only_reads(&commands::reads(words), &cwd);
                let verdict = Verdict { behavior, reason: because(entry), firm: true };
                let git = git::kind(self.query, words, &cwd, self.files, || false);
                self.parts.push(Part { words: words.to_vec(), git, ..Part::new(text, verdict, read_only) });
                return (Cwd(None), Cwd(None));
            }
        }
        let alias = |entry: &&Entry| matching::may_be_alias(&entry.rule, &possible[0].words);
        if let Some(entry) = self.query.entries(Behavior::Deny).find(alias) {
            let verdict = Verdict::firm(format!("it may be an alias of what {} forbids", entry.rule));
            self.push(text, verdict, false);
            return (cwd.clone(), cwd);
        }
        match known[0].as_str() {
            // A wrapper starts a program of that name, which some systems have.
            "cd" if self.wrappers == 0 && words[0].literal().is_some() => return self.change_folder(words, cwd),
            // A wrapper starts the program of that name.
            name if self.wrappers == 0
                && words[0].literal().is_some()
                && self.functions.iter().any(|known| known == name) =>
            {
                // What it is given, its body may read.
                let touched = paths::judge_words(self.query, words, &cwd, self.files);
                let touched = touched.or_else(|| self.unknown().revealed(words));
                let verdict = touched.unwrap_or_else(|| Verdict::new(Behavior::Allow, "its body was judged"));
                self.parts.push(Part { basis: Basis::Nothing, ..Part::new(text, verdict, true) });
                return (cwd.clone(), cwd);
            }
            _ => {}
        }
        let (named, unpacks) = (self.brought(words, &cwd), self.unpacks_out(words, &cwd));
        if self.wrappers == 0
            && named.brought.is_none()
            && !self.is_allowed(words, &cwd)
            && input::judge_script(self, words, &cwd)
        {
            return (cwd.clone(), cwd);
        }
        let unlooked = match wrapper::unwrap(words) {
            _ if named.brought.is_some() => named.brought.clone(),
            Some(Ok(_)) if self.wrappers == MAX_WRAPPERS => Some("it is wrapped too deeply".into()),
            Some(Ok(inner)) if !self.is_allowed(words, &cwd) => {
                self.wrappers += 1;
                let after = self.command(inner, cwd);
                self.wrappers -= 1;
                return after;
            }
            Some(Err(reason)) => Some(reason),
            _ if unpacks.is_some() => unpacks,
            _ if self.streams.are_named(words) && (known[0] == "tee" || commands::reads(words).is_err()) => {
                Some("it may write to a file that the line opens".into())
            }
            // The function that keeps git from running what a repository names is the shell's own: a wrapper starts the
            // program itself.
            _ if self.wrappers > usize::from(self.timed) && known[0] == "git" => {
                Some("git behind another command may run what the repository's configuration names".into())
            }
            _ => None,
        };
        let (verdict, basis, looked) = self.judge(words, &cwd, unlooked);
        let read_only = looked.only_reads;
        let stays = || paths::exports(words) || read_only && matches!(known[0].as_str(), "set" | "read");
        let moved = words[0].literal().is_none() || known[0] == "cd" || paths::shell_state(&known[0]) && !stays();
        let git = git::kind(self.query, words, &cwd, self.files, || self.is_allowed(words, &cwd));
        let shows =
            || !dynamic::shows_names(&known[0]) && commands::reads(words).is_ok_and(|reads| reads.shows_contents());
        let given = self.given(words);
        let looks = git != Git::No || known[0] == "xargs" || fed::executes(words) || given.is_some() || shows();
        let listed = given.as_ref().or(self.fed.as_ref()).is_some_and(|found| found.tracked.is_some());
        let looks = looks && read_only && verdict.behavior == Behavior::Allow;
        let starts = git::starts(self.query, words, &cwd, self.files);
        let names = !read_only && commands::names_options(words);
        let (links, held) = (self.brings_links(words, &cwd), self.is_held(words, &cwd));
        let split = self.unknown().splits_names(words);
        let part = Part::new(text, verdict, read_only);
        self.parts.push(Part {
            basis,
            outside: looked.outside,
            closed: looked.closed,
            names,
            looks,
            listed,
            links,
            held,
            split,
            named,
            words: words.to_vec(),
            git,
            starts,
            ..part
        });
        if moved { (Cwd(None), Cwd(None)) } else { (cwd.clone(), cwd) }
    }

    /// The verdict, what lets it pass, and what was found of its reading.
    fn judge(&mut self, words: &[Word], cwd: &Cwd, unlooked: Option<String>) -> (Verdict, Basis, Looked) {
        let piped = words[0].literal().as_deref() == Some("xargs");
        let feeder = self.looped(words).map(|one| &one.found).or(self.fed.as_ref().filter(|_| piped));
        let feeder = feeder.map(|found| found.words.clone()).unwrap_or_default();
        let known = (words.to_vec(), feeder, cwd.clone(), self.names_options());
        let mut looked = match unlooked {
            Some(reason) => Looked::of(Err(reason)),
            None => match self.looked.get(&known) {
                Some(looked) => looked.clone(),
                None => {
                    let looked = self.look(words, cwd, piped);
                    self.looked.insert(known, looked.clone());
                    looked
                }
            },
        };
        let reason = match &looked.reads {
            // No rule, and no list, says that what it reads is closed to it.
            Ok(verdict) if looked.closed.is_some() => return (verdict.clone(), Basis::Text, looked),
            Ok(verdict) if verdict.behavior != Behavior::Ask || verdict.firm => {
                return (verdict.clone(), basis::of(self, verdict, words, cwd), looked);
            }
            Ok(verdict) => verdict.reason.clone(),
            Err(reason) => match self.stopped(words, cwd) {
                Some(verdict) => {
                    looked.only_reads = false;
                    return (verdict, Basis::Text, looked);
                }
                None => reason.clone(),
            },
        };
        if words[0].literal().is_none() {
            looked.only_reads = false;
            let reason = "the command's name is only known when it runs";
            return (Verdict::new(Behavior::Ask, reason), Basis::Text, looked);
        }
        if let Some(rule) = self.allow_rule(words, cwd) {
            return (Verdict::new(Behavior::Allow, because(rule)), Basis::Leave, looked);
        }
        let named = self.brought(words, cwd).brought.is_none();
        if named && self.query.mode == Mode::AcceptEdits && self.edits.admit(self.query, words, cwd, self.files) {
            looked.only_reads = false;
            return (Verdict::new(Behavior::Allow, "mode acceptEdits"), Basis::Edit, looked);
        }
        let reason = self
            .obeys(words, cwd)
            .or_else(|| self.hooked(words, cwd))
            .or_else(|| self.elsewhere(words, cwd))
            .or_else(|| self.beyond(words, cwd))
            .unwrap_or(reason);
        (Verdict::new(Behavior::Ask, reason), Basis::Text, looked)
    }
}
