//! The decision about one tool call: rules first, then what the mode says.

use std::path::{Path, PathBuf};

use super::files::{Files, Remembered};
use super::line;
use super::places::{Places, Twin};
use super::rule::{Entry, Rule, RuleSet, Source, Strictness};
use super::suggest;
use super::vocabulary::{Matches, Vocabulary};
use super::{Access, Behavior, Escapes, Mode};
use crate::sandbox::Level;
use crate::sandbox::proxy::Contact;
use crate::stdx::host::Host;

/// Everything that a decision depends on, but for where links lead.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The tool's name, as rules write it.
    pub tool: &'a str,
    pub access: &'a Access,
    pub mode: Mode,
    pub rules: &'a RuleSet,
    pub places: &'a Places,
    /// What rules may be about.
    pub vocabulary: Vocabulary,
    /// How far the machine can confine a command that only seems to read.
    pub level: Level,
}

/// What is to happen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub behavior: Behavior,
    /// Part by part, for people; the first is the one that decided.
    pub reasons: Vec<String>,
    /// Rules that would have allowed the call, one for each simple command. Empty when none is narrow enough.
    pub suggestions: Vec<Rule>,
    /// Git is started in it and passes because it only reads: it runs with [`QUIET_GIT`](super::QUIET_GIT).
    pub quiet_git: bool,
    /// The file or folder that was judged, links followed.
    pub target: Option<PathBuf>,
    /// It is allowed only because the kernel holds the command to reading: with nothing that confines it, it would ask.
    pub confined: bool,
    /// It is allowed only because the workspace profile holds the command.
    pub unasked: bool,
    /// What a command that is allowed and only reads looks at outside of the workspace; None where it may do more.
    pub reads: Option<Vec<PathBuf>>,
}

impl Decision {
    pub fn new(behavior: Behavior, reason: impl Into<String>) -> Decision {
        Decision {
            behavior,
            reasons: vec![reason.into()],
            suggestions: Vec::new(),
            quiet_git: false,
            target: None,
            confined: false,
            unasked: false,
            reads: None,
        }
    }
}

/// Decides whether the call may run. Asks nobody; looks at the file system only through `files`.
pub fn decide(query: &Query, files: &dyn Files) -> Decision {
    let files: &dyn Files = &Remembered::new(files);
    // What a command does to a file is not an edit, and nothing undoes it.
    let command = query.mode == Mode::Edits && matches!(query.access, Access::Shell { .. });
    let escapes = escapes(query);
    // Outside of the sandbox nothing confines it.
    let unheld = query.places.approved.required && query.level == Level::None;
    let confines = query.level > Level::None && query.mode != Mode::Bypass;
    let level = if escapes { Level::None } else { query.level };
    let query = &Query { mode: if command { Mode::Default } else { query.mode }, level, ..*query };
    let mut decision = match query.access {
        Access::Shell { .. } if unheld => Decision::new(Behavior::Deny, UNHELD),
        Access::Shell { command, cwd } => line::decide(query, command, cwd, files),
        Access::Read { path } => read(query, query.tool, path, files).into(),
        Access::Search { root } => search(query, root, files),
        Access::Write { path } => write(query, query.tool, path, files).into(),
        Access::Fetch { url } => fetch(query, url),
        Access::Connect(contact) => connect(query, contact),
        Access::WebSearch => named(query, None, Unruled::Ask),
        Access::Sessions => named(query, Some(EARLIER), Unruled::Ask),
        Access::Free => named(query, None, Unruled::Allow),
        Access::Skill { name } => named(query, Some(name), Unruled::Allow),
        Access::Agent { kind, read_only } => match query.mode {
            Mode::Plan if !read_only => {
                named(query, Some(kind), Unruled::Deny("plan mode only launches read-only agents, such as Explore"))
            }
            _ => named(query, Some(kind), Unruled::Allow),
        },
        Access::Foreign { read_only, changed, .. } => foreign(query, *read_only, changed.as_deref()),
    };
    if escapes {
        escape(query, &mut decision, confines);
    }
    decision.target = query.access.path().map(|path| files.resolve(path));
    if decision.behavior == Behavior::Allow
        && !query.rules.broken().is_empty()
        && !matches!(query.access, Access::Free)
        && !never_asked(query, files)
    {
        let names: Vec<_> = query.rules.broken().iter().map(Source::to_string).collect();
        decision.behavior = Behavior::Ask;
        decision.reasons.insert(0, format!("the rules in {} cannot be read and may forbid this", names.join(", ")));
    }
    if decision.behavior == Behavior::Ask && (query.mode == Mode::DontAsk || query.rules.walls.questions) {
        decision.behavior = Behavior::Deny;
        decision.reasons.insert(
            0,
            match query.mode {
                Mode::DontAsk => "mode dontAsk denies what is not allowed".into(),
                _ => "`permissions.deny_instead_of_asking` denies what is not allowed".into(),
            },
        );
    }
    if decision.behavior != Behavior::Ask {
        decision.suggestions = Vec::new();
    } else if decision.suggestions.is_empty() {
        decision.suggestions = suggest::rules(query, files);
    }
    if !query.rules.broken().is_empty() {
        decision.suggestions = Vec::new();
    }
    decision
}

/// What is said of a command that may not run without a sandbox.
const UNHELD: &str =
    "nothing confines commands here, and `sandbox.required` is on: `cocode doctor` says what is missing";

/// Whether the call is a command that asks to run outside of the sandbox, and is heard.
pub(super) fn escapes(query: &Query) -> bool {
    let asked = query.places.approved.escapes == Escapes::Asked;
    asked && matches!(query.access, Access::Shell { command, .. } if command.escapes())
}

/// What rules say to running outside of the sandbox, whatever the command is.
fn escape(query: &Query, decision: &mut Decision, confines: bool) {
    for behavior in [Behavior::Deny, Behavior::Ask] {
        let ruled = query.entries(behavior).find(|entry| entry.rule.is_about_escapes(query.tool));
        if let Some(entry) = ruled.filter(|_| decision.behavior != Behavior::Deny) {
            *decision = Decision { suggestions: Vec::new(), ..Decision::new(behavior, because(entry)) };
            return;
        }
    }
    // A rule, or a mode, lets it run guarded: without that only a person does.
    if confines && decision.behavior == Behavior::Allow && decision.reads.is_none() {
        decision.behavior = Behavior::Ask;
    }
    if decision.behavior == Behavior::Ask {
        decision.reasons.insert(0, "it asks to run outside of the sandbox".to_owned());
    }
}

/// One judged part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) behavior: Behavior,
    pub(super) reason: String,
    /// A question that no allow rule answers: an ask rule, a protected or private path.
    pub(super) firm: bool,
}

impl Verdict {
    pub(super) fn new(behavior: Behavior, reason: impl Into<String>) -> Verdict {
        Verdict { behavior, reason: reason.into(), firm: false }
    }

    pub(super) fn firm(reason: impl Into<String>) -> Verdict {
        Verdict { behavior: Behavior::Ask, reason: reason.into(), firm: true }
    }
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Decision {
        Decision::new(verdict.behavior, verdict.reason)
    }
}

impl Query<'_> {
    /// The rules of a kind that count here.
    pub(super) fn entries(&self, behavior: Behavior) -> impl Iterator<Item = &Entry> {
        self.rules.entries().iter().filter(move |entry| entry.behavior == behavior)
    }

    /// Why no rule can tell which file the path means; None too where nothing but rules would count and there are no rules.
    pub(super) fn hidden_from_rules(&self, path: &Path, files: &dyn Files) -> Option<String> {
        let forbids = |entry: &Entry| entry.behavior != Behavior::Allow;
        (self.mode != Mode::Bypass || self.rules.entries().iter().any(forbids))
            .then(|| self.places.of_process(path, files))?
    }

    fn path_rule(&self, behavior: Behavior, tool: &str, path: &Path, files: &dyn Files) -> Option<String> {
        let strictness = if behavior == Behavior::Allow { Strictness::Sure } else { Strictness::Possible };
        self.entries(behavior)
            .find(|entry| entry.rule.covers_path(tool, path, strictness, self.places, files))
            .map(because)
    }
}

/// How a rule is cited as a reason.
pub(super) fn because(entry: &Entry) -> String {
    format!("{} rule {} ({})", entry.behavior.name(), entry.rule, entry.source)
}

fn never_asked(query: &Query, files: &dyn Files) -> bool {
    match query.access {
        Access::Read { path } => query.places.free_read(path, files),
        Access::Write { path } => query.places.free_write(path, files),
        _ => false,
    }
}

/// What is shown of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// That it is there, and what a listing of its folder tells, which needs no question in the workspace.
    Names,
    Contents,
}

/// Judges the reading of one file or folder.
pub(super) fn read(query: &Query, tool: &str, path: &Path, files: &dyn Files) -> Verdict {
    show(query, tool, path, Shown::Contents, files)
}

/// Judges the showing of one file or folder.
pub(super) fn show(query: &Query, tool: &str, path: &Path, shown: Shown, files: &dyn Files) -> Verdict {
    let places = query.places;
    if let Some(reason) = query.path_rule(Behavior::Deny, tool, path, files) {
        return Verdict::new(Behavior::Deny, reason);
    }
    if let Some(reason) = query.hidden_from_rules(path, files) {
        return Verdict::firm(reason);
    }
    if places.free_read(path, files) {
        return Verdict::new(Behavior::Allow, "it belongs to this session");
    }
    if query.rules.walls.reads && !places.inside(path, files) {
        return walled(path, "reads", files);
    }
    if let Some(reason) = query.path_rule(Behavior::Ask, tool, path, files) {
        return Verdict::firm(reason);
    }
    if query.mode == Mode::Bypass {
        return Verdict::new(Behavior::Allow, "mode bypassPermissions");
    }
    let private = match shown {
        Shown::Names if places.inside(path, files) => places.private_place(path, files),
        _ => places.private(path, files).or_else(|| places.twin(path, Twin::Secret, files)),
    };
    if let Some(reason) = private {
        return Verdict::firm(reason);
    }
    if let Some(reason) = query.path_rule(Behavior::Allow, tool, path, files) {
        return Verdict::new(Behavior::Allow, reason);
    }
    if places.inside(path, files) {
        return Verdict::new(Behavior::Allow, "it reads inside the workspace");
    }
    Verdict::new(Behavior::Ask, format!("{} is outside the workspace", files.resolve(path).display()))
}

/// The denial of what lies outside of the workspace.
fn walled(path: &Path, what: &str, files: &dyn Files) -> Verdict {
    let path = files.resolve(path);
    let reason = format!("{} is outside the workspace, and `permissions.block_outside_{what}` is on", path.display());
    Verdict::new(Behavior::Deny, reason)
}

fn search(query: &Query, root: &Path, files: &dyn Files) -> Decision {
    // A rule about what is in the folder speaks about the search of the folder, too.
    let within = root.join("x");
    let inner = read(query, query.tool, &within, files);
    if inner.behavior == Behavior::Deny {
        return inner.into();
    }
    let verdict = read(query, query.tool, root, files);
    if verdict.behavior == Behavior::Allow
        && query.mode != Mode::Bypass
        && query.places.reaches_private(root, files)
        && !query.places.free_read(root, files)
    {
        return Decision::new(Behavior::Ask, format!("{} contains cocode's own files or secrets", root.display()));
    }
    verdict.into()
}

/// Judges a change of one file.
pub(super) fn write(query: &Query, tool: &str, path: &Path, files: &dyn Files) -> Verdict {
    let places = query.places;
    if let Some(reason) = query.path_rule(Behavior::Deny, tool, path, files) {
        return Verdict::new(Behavior::Deny, reason);
    }
    if places.free_write(path, files) {
        return Verdict::new(Behavior::Allow, "it belongs to this session");
    }
    if query.rules.walls.writes && !places.inside(path, files) {
        return walled(path, "writes", files);
    }
    if query.mode == Mode::Plan {
        return Verdict::new(Behavior::Deny, "plan mode changes only the plan file");
    }
    if let Some(reason) = query.hidden_from_rules(path, files) {
        return Verdict::firm(reason);
    }
    if let Some(reason) = query.path_rule(Behavior::Ask, tool, path, files) {
        return Verdict::firm(reason);
    }
    let protected = places.protected(path, files).or_else(|| places.runs_in_git(path, files));
    if let Some(reason) = protected.or_else(|| places.twin(path, Twin::Any, files)) {
        return Verdict::firm(reason);
    }
    if query.mode == Mode::Bypass {
        return Verdict::new(Behavior::Allow, "mode bypassPermissions");
    }
    if let Some(reason) = query.path_rule(Behavior::Allow, tool, path, files) {
        return Verdict::new(Behavior::Allow, reason);
    }
    if !places.inside(path, files) {
        return Verdict::new(Behavior::Ask, format!("{} is outside the workspace", files.resolve(path).display()));
    }
    let shown = path.strip_prefix(&places.project).unwrap_or(path);
    let accepted = matches!(query.mode, Mode::AcceptEdits | Mode::Edits);
    if accepted && places.is_named(path, files) {
        return Verdict::new(Behavior::Ask, format!("{} is found by its name, through PATH", shown.display()));
    }
    if accepted
        && (places.hidden(path, files) || Places::is_pipeline(path) || Places::is_pipeline(&files.resolve(path)))
    {
        return Verdict::new(Behavior::Ask, format!("{} may configure a program", shown.display()));
    }
    if accepted {
        return Verdict::new(Behavior::Allow, format!("mode {}", query.mode));
    }
    Verdict::new(Behavior::Ask, format!("it changes {}", shown.display()))
}

/// The host and the port that an address names.
pub(super) fn place(url: &str) -> Option<(Host, u16)> {
    let url = url::Url::parse(url).ok()?;
    Some((Host::of_url(&url)?, url.port_or_known_default()?))
}

fn fetch(query: &Query, url: &str) -> Decision {
    let host = place(url);
    let of = host.as_ref().map(|(host, port)| (host, *port));
    for behavior in [Behavior::Deny, Behavior::Ask] {
        // A deny rule for a host also forbids an address that hides its host.
        let hidden = host.is_none() && behavior == Behavior::Deny;
        let ruled = query
            .entries(behavior)
            .find(|entry| entry.rule.covers_host(of) || hidden && entry.rule.is_about(Matches::Domain));
        if let Some(entry) = ruled {
            return Decision::new(behavior, because(entry));
        }
    }
    if query.mode == Mode::Bypass {
        return Decision::new(Behavior::Allow, "mode bypassPermissions");
    }
    match (query.entries(Behavior::Allow).find(|entry| entry.rule.covers_host(of)), host) {
        (Some(entry), Some(_)) => Decision::new(Behavior::Allow, because(entry)),
        (_, Some((host, _))) => Decision::new(Behavior::Ask, format!("it fetches from {host}")),
        (_, None) => Decision::new(Behavior::Ask, format!("{url:?} names no host")),
    }
}

/// Judges a connection of a command that runs. Plan mode has no say: what runs in it has no network, or was approved.
fn connect(query: &Query, contact: &Contact) -> Decision {
    for behavior in [Behavior::Deny, Behavior::Ask] {
        if let Some(entry) = query.entries(behavior).find(|entry| entry.rule.covers_contact(contact)) {
            return Decision::new(behavior, because(entry));
        }
    }
    if query.mode == Mode::Bypass {
        return Decision::new(Behavior::Allow, "mode bypassPermissions");
    }
    if let Some(entry) = query.entries(Behavior::Allow).find(|entry| entry.rule.lets_connect(contact)) {
        return Decision::new(Behavior::Allow, because(entry));
    }
    let Contact { host, port, address_of } = contact;
    Decision::new(
        Behavior::Ask,
        match address_of {
            Some(name) => format!("{name} leads to {host}, which is this machine or a private network"),
            None if host.is_private() => format!("{host}:{port} is this machine or a private network"),
            None => format!("no rule allows {host}"),
        },
    )
}

/// What happens when no rule speaks.
#[derive(Clone, Copy)]
enum Unruled {
    Allow,
    Ask,
    Deny(&'static str),
}

/// What a rule calls the sessions before this one.
pub(super) const EARLIER: &str = "earlier";

fn named(query: &Query, name: Option<&str>, unruled: Unruled) -> Decision {
    let whole = match query.access {
        Access::Foreign { whole, .. } => whole.as_deref(),
        _ => None,
    };
    let covers = |entry: &&Entry| {
        entry.rule.covers_name(query.tool, name) || whole.is_some_and(|whole| entry.rule.covers_name(whole, name))
    };
    for behavior in [Behavior::Deny, Behavior::Ask] {
        if let Some(entry) = query.entries(behavior).find(covers) {
            return Decision::new(behavior, because(entry));
        }
    }
    match unruled {
        Unruled::Deny(why) => return Decision::new(Behavior::Deny, why),
        Unruled::Allow => return Decision::new(Behavior::Allow, "it changes nothing outside the conversation"),
        Unruled::Ask => {}
    }
    if query.mode == Mode::Bypass {
        return Decision::new(Behavior::Allow, "mode bypassPermissions");
    }
    match query.entries(Behavior::Allow).find(|entry| entry.rule.covers_name(query.tool, name)) {
        Some(entry) => Decision::new(Behavior::Allow, because(entry)),
        None => Decision::new(
            Behavior::Ask,
            match query.access {
                Access::Sessions => "it gives the model what was said in earlier sessions of this project".to_owned(),
                _ => format!("no rule allows {}", query.tool),
            },
        ),
    }
}

fn foreign(query: &Query, read_only: bool, changed: Option<&str>) -> Decision {
    if query.mode == Mode::Plan && !read_only {
        return named(query, None, Unruled::Deny("it is not a tool of plan mode"));
    }
    let mut decision = named(query, None, Unruled::Ask);
    // What was allowed is what it said of itself.
    if let Some(changed) = changed
        && (decision.behavior == Behavior::Ask || decision.behavior == Behavior::Allow && query.mode != Mode::Bypass)
    {
        decision =
            Decision::new(Behavior::Ask, format!("it changed how it describes itself since it last ran:\n{changed}"));
    }
    // An allow rule and a read-only annotation let it into plan mode; a question does not.
    if query.mode == Mode::Plan && decision.behavior == Behavior::Ask {
        return Decision::new(Behavior::Deny, "plan mode only runs this tool with an allow rule");
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::super::CommandLine;
    use super::super::files::fake::Table;
    use super::*;

    fn run(access: Access, tool: &str, rules: &RuleSet) -> Decision {
        let places = Places::for_tests();
        let query = Query {
            tool,
            access: &access,
            mode: Mode::Default,
            rules,
            places: &places,
            vocabulary: crate::permission::vocabulary::TOOLS,
            level: Level::Kernel,
        };
        decide(&query, &Table(&[]))
    }

    #[test]
    fn a_broken_source_asks() {
        let mut rules = RuleSet::default();
        rules.mark_broken(Source::Project);
        let read = |path: &str| run(Access::Read { path: path.into() }, "Read", &rules).behavior;
        assert_eq!(read("/p/a"), Behavior::Ask);
        assert_eq!(read("/home/u/.claude/0192f0c1-2345-7000-8000-000000000001/tool-results/x"), Behavior::Allow);
        assert_eq!(run(Access::Free, "TodoWrite", &rules).behavior, Behavior::Allow);
    }

    #[test]
    fn walls_hold_whatever_the_entries_say() {
        let mut rules = RuleSet::default();
        for rule in ["Read(//q/**)", "Edit(//q/**)"] {
            rules.add(Behavior::Allow, Rule::parse(rule).unwrap(), Source::User);
        }
        let judged = |rules: &RuleSet| {
            let read = |path: &str| run(Access::Read { path: path.into() }, "Read", rules).behavior;
            let write = |path: &str| run(Access::Write { path: path.into() }, "Write", rules).behavior;
            let cat = Access::Shell { command: "cat /q/a".into(), cwd: "/p".into() };
            [read("/q/a"), read("/p/a"), run(cat, "Bash", rules).behavior, write("/q/a"), write("/p/a")]
        };
        use Behavior::{Allow, Ask, Deny};
        assert_eq!(judged(&rules), [Allow, Allow, Allow, Allow, Ask]);
        rules.walls.reads = true;
        assert_eq!(judged(&rules), [Deny, Allow, Deny, Allow, Ask]);
        rules.walls.writes = true;
        assert_eq!(judged(&rules), [Deny, Allow, Deny, Deny, Ask]);
        rules.walls.questions = true;
        assert_eq!(judged(&rules), [Deny, Allow, Deny, Deny, Deny]);
    }

    #[test]
    fn nothing_is_offered_that_would_not_help() {
        let mut rules = RuleSet::default();
        for rule in ["Edit(/src/**)", "Read(//usr/**)", "WebFetch(domain:a.b)", "mcp__a"] {
            rules.add(Behavior::Ask, rule.parse().unwrap(), Source::User);
        }
        let fetch = |url: &str| (Access::Fetch { url: url.into() }, "WebFetch");
        let remote = |tool| (Access::Foreign { read_only: true, whole: None, changed: None }, tool);
        for ((access, tool), want) in [
            ((Access::Write { path: "/p/src/a.rs".into() }, "Write"), 0),
            ((Access::Write { path: "/p/lib/a.rs".into() }, "Write"), 1),
            ((Access::Read { path: "/usr/share/x/y".into() }, "Read"), 0),
            (fetch("https://a.b/c"), 0),
            (fetch("https://c.d/c"), 1),
            (remote("mcp__a__b"), 0),
            (remote("mcp__c__b"), 1),
        ] {
            let decision = run(access.clone(), tool, &rules);
            assert_eq!((decision.behavior, decision.suggestions.len()), (Behavior::Ask, want), "{access:?}");
        }
    }

    #[test]
    fn what_forbids_the_whole_name_of_a_tool_forbids_a_shorter_one() {
        let mut rules = RuleSet::default();
        for (behavior, rule) in [
            (Behavior::Deny, "mcp__a__delete_all"),
            (Behavior::Ask, "mcp__a__send_all"),
            (Behavior::Allow, "mcp__a__send_all"),
            (Behavior::Allow, "mcp__a__read_all"),
        ] {
            rules.add(behavior, rule.parse().unwrap(), Source::User);
        }
        for (tool, whole, want) in [
            ("mcp__a__delete_1", Some("mcp__a__delete_all"), Behavior::Deny),
            ("mcp__a__send_1", Some("mcp__a__send_all"), Behavior::Ask),
            // What allows one name allows no other one.
            ("mcp__a__read_1", Some("mcp__a__read_all"), Behavior::Ask),
            ("mcp__a__read_all", None, Behavior::Allow),
        ] {
            let access = Access::Foreign { read_only: true, whole: whole.map(str::to_owned), changed: None };
            assert_eq!(run(access, tool, &rules).behavior, want, "{tool}");
        }
        // What was allowed described itself in another way.
        for (tool, want) in [("mcp__a__read_all", Behavior::Ask), ("mcp__a__delete_all", Behavior::Deny)] {
            let access = Access::Foreign { read_only: true, whole: None, changed: Some("-a\n+b".into()) };
            let decision = run(access, tool, &rules);
            assert_eq!(decision.behavior, want, "{tool}");
            assert_eq!(decision.reasons[0].contains("+b"), want == Behavior::Ask, "{decision:?}");
        }
    }

    #[test]
    fn a_command_outside_of_the_sandbox() {
        use Behavior::{Allow, Ask, Deny};
        let told = "it asks to run outside of the sandbox";
        for (rule, line, behavior, first) in [
            (None, "cargo test", Ask, told),
            // Without a sandbox it would run unasked, too.
            (None, "rg x", Allow, "it only reads"),
            // By a rule it runs guarded: without that it takes a person.
            (Some((Allow, "Bash(cargo test:*)")), "cargo test", Ask, told),
            (Some((Ask, "Bash(dangerouslyDisableSandbox:true)")), "ls", Ask, "ask rule Bash(dangerouslyDisable"),
            (Some((Deny, "Bash(dangerouslyDisableSandbox:true)")), "ls", Deny, "deny rule Bash(dangerouslyDisable"),
            (Some((Deny, "Bash(ls:*)")), "ls", Deny, ""),
        ] {
            let mut rules = RuleSet::default();
            if let Some((behavior, rule)) = rule {
                rules.add(behavior, rule.parse().unwrap(), Source::User);
            }
            let command = CommandLine::from(line).escaping();
            let decision = run(Access::Shell { command, cwd: "/p".into() }, "Bash", &rules);
            let reason = decision.reasons.first().cloned().unwrap_or_default();
            assert!(decision.behavior == behavior && reason.contains(first), "{rule:?} {line}: {decision:?}");
            // The rule is about nothing else.
            let command = CommandLine::from(line);
            let decision = run(Access::Shell { command, cwd: "/p".into() }, "Bash", &rules);
            assert!(!decision.reasons.iter().any(|reason| reason.contains("andbox")), "{line}: {decision:?}");
        }
    }

    #[test]
    fn without_a_sandbox_that_is_required_no_command_runs() {
        use super::super::files::Disk;

        let mut rules = RuleSet::default();
        rules.add(Behavior::Allow, "Bash(make:*)".parse().unwrap(), Source::User);
        for (required, level, mode, line, want) in [
            (true, Level::None, Mode::Default, "make", Behavior::Deny),
            (true, Level::None, Mode::Default, "ls", Behavior::Deny),
            (true, Level::None, Mode::Bypass, "make", Behavior::Deny),
            (true, Level::Kernel, Mode::Default, "make", Behavior::Allow),
            (false, Level::None, Mode::Default, "make", Behavior::Allow),
        ] {
            let mut places = Places::for_tests();
            places.approved.required = required;
            let access = Access::Shell { command: line.into(), cwd: "/p".into() };
            let vocabulary = super::super::vocabulary::TOOLS;
            let query =
                Query { tool: "Bash", access: &access, mode, rules: &rules, places: &places, vocabulary, level };
            let decision = decide(&query, &Disk);
            assert_eq!(decision.behavior, want, "{required} {level:?} {mode:?} {line}: {decision:?}");
            let named = decision.reasons.iter().any(|reason| reason.contains("`cocode doctor`"));
            assert_eq!(named, want == Behavior::Deny, "{decision:?}");
        }
    }

    #[test]
    fn connections_of_commands() {
        use Behavior::{Allow, Ask, Deny};
        let mut rules = RuleSet::default();
        for (behavior, rule) in [
            (Allow, "WebFetch(domain:a.b)"),
            (Allow, "WebFetch(domain:*.c.d)"),
            (Allow, "WebFetch(domain:port.x:8080)"),
            (Allow, "WebFetch(domain:localhost:3000)"),
            (Allow, "WebFetch(domain:10.0.0.1)"),
            (Deny, "WebFetch(domain:*.evil.c.d)"),
            (Ask, "WebFetch(domain:ask.c.d)"),
        ] {
            rules.add(behavior, rule.parse().unwrap(), Source::User);
        }
        let check = |rules: &RuleSet, host: &str, port, mode| {
            let contact = Contact { host: Host::parse(host).unwrap(), port, address_of: None };
            let access = Access::Connect(contact);
            let (places, vocabulary) = (Places::for_tests(), crate::permission::vocabulary::TOOLS);
            let level = Level::Kernel;
            let query = Query { tool: "Bash", access: &access, mode, rules, places: &places, vocabulary, level };
            let decision = decide(&query, &Table(&[]));
            let offered: Vec<String> = decision.suggestions.iter().map(ToString::to_string).collect();
            (decision.behavior, offered.join(" "))
        };
        for (host, port, want, offered) in [
            ("A.B.", 443, Allow, ""),
            ("x.a.b", 443, Ask, "WebFetch(domain:x.a.b)"),
            ("x.c.d", 22, Allow, ""),
            ("x.evil.c.d", 443, Deny, ""),
            ("ask.c.d", 443, Ask, ""),
            ("port.x", 8080, Allow, ""),
            ("port.x", 8081, Ask, "WebFetch(domain:port.x:8081)"),
            ("localhost", 3000, Allow, ""),
            ("localhost", 80, Ask, "WebFetch(domain:localhost:80)"),
            ("10.1", 5, Allow, ""),
            ("::1", 80, Ask, "WebFetch(domain:[::1]:80)"),
        ] {
            assert_eq!(check(&rules, host, port, Mode::Default), (want, offered.to_owned()), "{host}:{port}");
        }
        assert_eq!(check(&rules, "new.x", 443, Mode::DontAsk).0, Deny);
        assert_eq!(check(&rules, "new.x", 443, Mode::Bypass).0, Allow);
        assert_eq!(check(&rules, "x.evil.c.d", 443, Mode::Bypass).0, Deny);
        for (rule, host, want) in [
            // A wildcard never names what is private.
            ("WebFetch(domain:*)", "169.254.169.254", Ask),
            ("WebFetch(domain:*)", "x.y", Allow),
            ("WebFetch(domain:*.localhost)", "a.localhost", Ask),
            // The tool alone is about fetching pages.
            ("WebFetch", "x.y", Ask),
        ] {
            let mut rules = RuleSet::default();
            rules.add(Allow, rule.parse().unwrap(), Source::User);
            assert_eq!(check(&rules, host, 443, Mode::Default).0, want, "{rule} {host}");
        }
    }

    #[test]
    fn sessions_and_suggestions() {
        let rules = RuleSet::default();
        let read = |path: &str| run(Access::Read { path: path.into() }, "Read", &rules);
        let line = |text: &str| run(Access::Shell { command: text.into(), cwd: "/p".into() }, "Bash", &rules).behavior;
        assert_eq!(line("cat /home/u/.claude/plans/plan.md"), Behavior::Allow);
        assert_eq!(line("echo x > /home/u/.claude/plans/plan.md"), Behavior::Ask);
        assert_eq!(
            read("/home/u/.claude/0192f0c1-2345-7000-8000-000000000002/transcript.jsonl").behavior,
            Behavior::Ask
        );
        assert_eq!(read("/home/u/.claude/0192f0c1-2345-7000-8000-000000000002/transcript.jsonl").suggestions, []);
        assert_eq!(read("/usr/share/doc/x").suggestions, ["Read(//usr/share/doc/**)".parse().unwrap()]);
        let write = |path: &str| run(Access::Write { path: path.into() }, "Write", &rules);
        assert_eq!(write("/p/src/a.rs").suggestions, ["Edit(/src/**)".parse().unwrap()]);
        assert_eq!(write("/p/Cargo.toml").suggestions, ["Edit(/Cargo.toml)".parse().unwrap()]);
        assert_eq!(write("/p/.git/config").suggestions, []);
        assert_eq!(write("/home/u/.claude/plans/plan.md").behavior, Behavior::Allow);
    }
}
