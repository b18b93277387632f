//! Rules as they stand in settings: `Bash(git diff:*)`, `Edit(src/**)`, `WebFetch(domain:example.com)`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Behavior;
use super::files::{Files, lexical};
use super::glob::{self, Case};
use super::places::Places;
use super::vocabulary::{Matches, Vocabulary};
use crate::sandbox::proxy::Contact;
use crate::stdx::host::{Host, Pattern};

/// A tool and what of it is meant. Displays as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    tool: String,
    text: Option<String>,
    specifier: Specifier,
    matches: Matches,
    /// Tools whose calls it speaks of besides its own.
    below: Vec<&'static str>,
}

/// What is between the parentheses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Specifier {
    /// No parentheses: every call of the tool.
    Any,
    Shell(ShellPattern),
    Path(PathPattern),
    Domain(Pattern),
    /// A sub-agent's or a skill's name, with `*`.
    Name(String),
}

/// What a Bash rule matches. Never more than one simple command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ShellPattern {
    Exact(String),
    /// The first words, then anything.
    Prefix(Vec<String>),
    /// `*` somewhere else than at the end.
    Wildcard(String),
}

/// A gitignore-style pattern and where it starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PathPattern {
    anchor: Anchor,
    parts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Anchor {
    Root,
    Home,
    Project,
    /// A path below the project or, for rules that forbid, below the working directory.
    Relative,
    /// A name without a slash: at any depth.
    Anywhere,
}

/// A rule that cannot be read: the rule, what is wrong, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("permission rule {rule:?}: {problem}; {fix}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
    pub fix: String,
}

impl Rule {
    /// The words that a rule about commands names.
    pub(super) fn words(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self.specifier() {
            Specifier::Shell(ShellPattern::Prefix(words)) => Box::new(words.iter().map(String::as_str)),
            Specifier::Shell(ShellPattern::Exact(text) | ShellPattern::Wildcard(text)) => {
                Box::new(text.split_whitespace())
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    pub(super) fn read(text: &str, vocabulary: Vocabulary) -> Result<Rule, RuleError> {
        let fail = |problem: &str, fix: &str| {
            Err(RuleError { rule: text.to_owned(), problem: problem.to_owned(), fix: fix.to_owned() })
        };
        let trimmed = text.trim();
        let (tool, inner) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(inner) => (tool, Some(inner)),
                None => {
                    return fail("the closing parenthesis is missing", "write Tool(specifier), like Bash(git diff:*)");
                }
            },
        };
        if tool.is_empty() || !tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-*.:".contains(c)) {
            return fail(
                "it does not start with a tool name",
                "write Tool or Tool(specifier), like Read or Bash(ls:*)",
            );
        }
        let mcp = tool.starts_with("mcp__");
        if tool.contains('*') && !mcp {
            return fail(
                "a tool name cannot contain *",
                "name the tool, like Bash, or a server's tools, like mcp__server__*",
            );
        }
        if !mcp && !tool.starts_with(|c: char| c.is_ascii_uppercase()) {
            return fail(
                "tool names start with a capital letter",
                "write it like Bash, Read, Edit, WebFetch or mcp__server__tool",
            );
        }
        let (matches, below) = (vocabulary.of(tool).matches, vocabulary.below(tool));
        let Some(inner) = inner else {
            return Ok(Rule { tool: tool.to_owned(), text: None, specifier: Specifier::Any, matches, below });
        };
        let inner_trimmed = inner.trim();
        if inner_trimmed.is_empty() {
            return fail("the parentheses are empty", &format!("write {tool} for every call of the tool"));
        }
        if inner.chars().any(|c| c == '\0') {
            return fail("it contains a NUL", "remove it");
        }
        let specifier = match matches {
            Matches::Command => Specifier::Shell(ShellPattern::parse(inner_trimmed)),
            Matches::Path | Matches::Reading | Matches::Editing | Matches::Writing => {
                match PathPattern::parse(inner_trimmed) {
                    Some(pattern) => Specifier::Path(pattern),
                    None => {
                        return fail(
                            "a path pattern cannot contain !",
                            "put the path into another list (allow, ask or deny)",
                        );
                    }
                }
            }
            Matches::Domain => match inner_trimmed.strip_prefix("domain:").and_then(|host| Pattern::parse(host.trim()))
            {
                Some(host) => Specifier::Domain(host),
                None => {
                    return fail(&format!("{tool} rules name a host"), &format!("write {tool}(domain:example.com)"));
                }
            },
            Matches::Name if mcp => return fail("MCP tools take no specifier", &format!("write {tool}")),
            Matches::Name => Specifier::Name(inner_trimmed.to_owned()),
        };
        Ok(Rule { tool: tool.to_owned(), text: Some(inner.to_owned()), specifier, matches, below })
    }

    /// The tool as written, before the parenthesis.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub(super) fn is_about(&self, matches: Matches) -> bool {
        self.matches == matches
    }

    pub(super) fn specifier(&self) -> &Specifier {
        &self.specifier
    }

    /// A rule of the same tool about other commands.
    pub(super) fn with_pattern(&self, pattern: ShellPattern) -> Rule {
        Rule { specifier: Specifier::Shell(pattern), ..self.clone() }
    }

    /// Whether the rule speaks about this tool at all, whatever its specifier.
    pub(super) fn governs(&self, tool: &str) -> bool {
        let rule = self.tool.as_str();
        if rule.starts_with("mcp__") {
            return glob::wildcard(rule, tool)
                || tool
                    .strip_prefix(rule)
                    .is_some_and(|rest| rest.starts_with("__") && !rule["mcp__".len()..].contains("__"));
        }
        // By which the model knows all of them.
        rule == tool || rule == "McpCall" && tool.starts_with("mcp__") || self.below.contains(&tool)
    }

    /// Whether the rule covers a call of `tool` with a name as its specifier.
    pub(super) fn covers_name(&self, tool: &str, name: Option<&str>) -> bool {
        self.governs(tool)
            && match &self.specifier {
                Specifier::Any => true,
                Specifier::Name(pattern) => name.is_some_and(|name| glob::wildcard(pattern, name)),
                _ => false,
            }
    }

    /// Whether the rule covers a connection to this host; none where it cannot be told.
    pub(super) fn covers_host(&self, host: Option<(&Host, u16)>) -> bool {
        self.is_about(Matches::Domain)
            && match (&self.specifier, host) {
                (Specifier::Any, _) => true,
                (Specifier::Domain(pattern), Some((host, port))) => pattern.covers(host, port),
                _ => false,
            }
    }

    /// Whether the rule is about commands that ask to run outside of the sandbox.
    pub(super) fn is_about_escapes(&self, tool: &str) -> bool {
        self.governs(tool) && self.text.as_deref().map(str::trim) == Some("dangerouslyDisableSandbox:true")
    }

    /// Whether the rule covers what a command connects to. A rule without a host is about fetching pages alone.
    pub(super) fn covers_contact(&self, Contact { host, port, .. }: &Contact) -> bool {
        matches!(&self.specifier, Specifier::Domain(pattern) if pattern.covers(host, *port))
    }

    /// Whether the rule lets a command connect there: what is private has to be named itself, not by a `*`.
    pub(super) fn lets_connect(&self, contact: &Contact) -> bool {
        let Contact { host, port, .. } = contact;
        let named = || matches!(&self.specifier, Specifier::Domain(pattern) if pattern.names(host, *port));
        self.covers_contact(contact) && (!host.is_private() || named())
    }

    /// The last part of a path rule, where it is a plain name.
    pub(super) fn last_part(&self) -> Option<&str> {
        match &self.specifier {
            Specifier::Path(pattern) => {
                pattern.parts.last().map(String::as_str).filter(|part| !part.contains(['*', '?', '[', '\\']))
            }
            _ => None,
        }
    }

    /// Where the paths lie that a rule about paths speaks of, each with whether it speaks of all that is there. None of a rule
    /// about everything.
    pub(super) fn starts(&self, places: &Places) -> Vec<(PathBuf, bool)> {
        match &self.specifier {
            Specifier::Path(pattern) => pattern.starts(places),
            _ => Vec::new(),
        }
    }

    /// Whether the rule covers `path` for `tool`; see [`Strictness`].
    /// The paths that a rule about files speaks of, there or not: the folders that its pattern starts from, and the parts of it.
    pub(super) fn pattern(&self, places: &Places) -> Option<(Vec<PathBuf>, &[String])> {
        let Specifier::Path(pattern) = &self.specifier else { return None };
        Some((pattern.bases(places).into_iter().map(Path::to_owned).collect(), &pattern.parts))
    }

    pub(super) fn covers_path(
        &self,
        tool: &str,
        path: &Path,
        strictness: Strictness,
        places: &Places,
        files: &dyn Files,
    ) -> bool {
        self.governs(tool)
            && match &self.specifier {
                Specifier::Any => true,
                Specifier::Path(pattern) => pattern.covers(path, strictness, places, files),
                _ => false,
            }
    }
}

/// How a path is compared with a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// For allowing: where the path really leads must match, letter by letter.
    Sure,
    /// For forbidding: the path as written or where it leads, in any case, is enough.
    Possible,
}

impl ShellPattern {
    fn parse(text: &str) -> ShellPattern {
        let open = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")).map(str::trim_end);
        match open {
            Some(prefix) if !prefix.contains('*') => {
                ShellPattern::Prefix(prefix.split_whitespace().map(str::to_owned).collect())
            }
            _ if text == "*" => ShellPattern::Prefix(Vec::new()),
            Some(prefix) => ShellPattern::Wildcard(format!("{prefix} *")),
            None if text.contains('*') => ShellPattern::Wildcard(text.to_owned()),
            None => ShellPattern::Exact(text.to_owned()),
        }
    }

    /// The same without the stars around it, where it has no others: for rules that forbid `git push*` means what
    /// `git push:*` means, and more.
    pub(super) fn plain(&self) -> Option<ShellPattern> {
        let ShellPattern::Wildcard(text) = self else { return None };
        let inner = text.trim_start_matches('*').trim_end_matches('*');
        let whole = !inner.contains('*') && inner == inner.trim() && !inner.is_empty();
        whole.then(|| match text.ends_with('*') {
            true => ShellPattern::Prefix(inner.split_whitespace().map(str::to_owned).collect()),
            false => ShellPattern::Exact(inner.to_owned()),
        })
    }
}

impl PathPattern {
    fn parse(text: &str) -> Option<PathPattern> {
        if text.starts_with('!') {
            return None;
        }
        let (anchor, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Anchor::Root, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else if text == "~" {
            (Anchor::Home, "")
        } else if let Some(rest) = text.strip_prefix('/') {
            (Anchor::Project, rest)
        } else if text.trim_end_matches('/').contains('/') || matches!(text.trim_end_matches('/'), "." | "..") {
            (Anchor::Relative, text)
        } else {
            (Anchor::Anywhere, text)
        };
        let mut parts: Vec<String> = Vec::new();
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                // Above the anchor there is nothing that a pattern could mean, so the part stays and matches no path.
                ".." if parts.last().is_some_and(|last| last != "..") => {
                    parts.pop();
                }
                part => parts.push(part.to_owned()),
            }
        }
        if anchor == Anchor::Anywhere {
            parts.insert(0, "**".to_owned());
        }
        Some(PathPattern { anchor, parts })
    }

    fn bases<'a>(&self, places: &'a Places) -> Vec<&'a Path> {
        match self.anchor {
            Anchor::Root => vec![Path::new("/")],
            Anchor::Home => places.home.iter().map(PathBuf::as_path).collect(),
            Anchor::Project => vec![&places.project],
            Anchor::Relative => vec![&places.project, &places.cwd],
            Anchor::Anywhere => places.workspace().collect(),
        }
    }

    fn starts(&self, places: &Places) -> Vec<(PathBuf, bool)> {
        let bases = self.bases(places);
        let plain = self.parts.iter().take_while(|part| !part.contains(['*', '?', '[', '\\'])).count();
        let (start, rest) = self.parts.split_at(plain);
        let whole = rest.is_empty() || rest == ["**"];
        bases.iter().map(|base| (start.iter().fold(base.to_path_buf(), |path, part| path.join(part)), whole)).collect()
    }

    fn covers(&self, path: &Path, strictness: Strictness, places: &Places, files: &dyn Files) -> bool {
        let case = match strictness {
            Strictness::Sure => Case::Exact,
            Strictness::Possible => Case::Ignored,
        };
        let real = files.resolve(path);
        let fits =
            |path: &Path, base: &Path| below(path, base).is_some_and(|parts| glob::path(&self.parts, &parts, case));
        let mut bases = match (self.anchor, strictness) {
            (Anchor::Relative, Strictness::Sure) => vec![places.project.as_path()],
            (Anchor::Anywhere, Strictness::Possible) => vec![Path::new("/")],
            _ => self.bases(places),
        };
        bases.dedup();
        bases.iter().any(|base| {
            let real_base = files.resolve(base);
            if strictness == Strictness::Sure {
                return fits(&real, &real_base);
            }
            let (same_path, same_base) = (real == path, real_base == *base);
            let written = if same_path { real.clone() } else { lexical(path) };
            fits(&real, &real_base)
                || !(same_path && same_base) && fits(&written, base)
                || !same_path && !same_base && fits(&written, &real_base)
        })
    }
}

/// The parts of `path` below `base`, as text; None when it is not below it.
fn below<'a>(path: &'a Path, base: &Path) -> Option<Vec<&'a str>> {
    path.strip_prefix(base).ok()?.components().map(|part| part.as_os_str().to_str()).collect()
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => write!(f, "{}({text})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `/etc/cocode/`.
    Managed,
    CommandLine,
    /// `.claude/settings.local.json`.
    ProjectLocal,
    /// `.claude/settings.json`.
    Project,
    /// `<home>/settings.json`.
    User,
    /// The user's config.toml.
    Config,
    /// Granted in this session.
    Session,
    /// The running skill's `allowed_tools`.
    Skill,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Managed => "managed settings",
            Source::CommandLine => "command line",
            Source::ProjectLocal => ".claude/settings.local.json",
            Source::Project => ".claude/settings.json",
            Source::User => "user settings",
            Source::Config => "config.toml",
            Source::Session => "this session",
            Source::Skill => "running skill",
        })
    }
}

/// Rules of every source. Deny beats ask beats allow, from whatever source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    entries: Vec<Entry>,
    broken: Vec<Source>,
    /// What holds whatever the entries say.
    pub walls: Walls,
}

/// What is denied as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walls {
    /// Reading outside of the workspace.
    pub reads: bool,
    /// Changing files there.
    pub writes: bool,
    /// Everything that would ask.
    pub questions: bool,
}

/// One rule in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub behavior: Behavior,
    pub rule: Rule,
    pub source: Source,
}

impl RuleSet {
    pub fn add(&mut self, behavior: Behavior, rule: Rule, source: Source) {
        let entry = Entry { behavior, rule, source };
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
    }

    /// Takes a rule back; false when it was not there.
    pub fn remove(&mut self, behavior: Behavior, rule: &Rule, source: Source) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !(entry.behavior == behavior && &entry.rule == rule && entry.source == source));
        self.entries.len() != before
    }

    /// Drops every rule of a source, and that it was broken.
    pub fn clear(&mut self, source: Source) {
        self.entries.retain(|entry| entry.source != source);
        self.broken.retain(|broken| *broken != source);
    }

    /// Says that a source could not be read in full: whatever it could have denied asks.
    pub fn mark_broken(&mut self, source: Source) {
        if !self.broken.contains(&source) {
            self.broken.push(source);
        }
    }

    pub fn broken(&self) -> &[Source] {
        &self.broken
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::super::files::fake::Table;
    use super::*;
    use crate::permission::vocabulary::TOOLS as RULES;

    impl Rule {
        pub(crate) fn parse(text: &str) -> Result<Rule, RuleError> {
            RULES.rule(text)
        }
    }

    impl FromStr for Rule {
        type Err = RuleError;

        fn from_str(text: &str) -> Result<Rule, RuleError> {
            Rule::parse(text)
        }
    }

    #[test]
    fn rules_round_trip() {
        for text in [
            "Bash",
            "Bash(git diff:*)",
            "Bash(git *)",
            "Bash(npm run build)",
            "Bash(echo (x))",
            "Read(~/.zshrc)",
            "Edit(/src/**)",
            "Edit(//tmp/x)",
            "WebFetch(domain:*.example.com)",
            "mcp__github",
            "mcp__github__*",
            "Task(Explore)",
            "Agent(Explore)",
            "Skill(commit)",
        ] {
            assert_eq!(Rule::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_rules_name_the_fix() {
        for (text, want) in [
            ("", "write Tool or Tool(specifier)"),
            ("Bash(", "closing parenthesis"),
            ("Bash(ls", "closing parenthesis"),
            ("Bash()", "write Bash for every call"),
            ("bash(ls)", "capital letter"),
            ("*", "cannot contain *"),
            ("WebFetch(example.com)", "WebFetch(domain:example.com)"),
            ("WebFetch(domain:http://x)", "WebFetch(domain:example.com)"),
            ("WebFetch(domain:example.com:0)", "WebFetch(domain:example.com)"),
            ("WebFetch(domain:*.10.0.0.1)", "WebFetch(domain:example.com)"),
            ("WebFetch(domain:exam*.com)", "WebFetch(domain:example.com)"),
            ("Read(!x)", "another list"),
            ("mcp__a__b(x)", "write mcp__a__b"),
            ("rm -rf", "tool name"),
        ] {
            let error = Rule::parse(text).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn tools_that_a_rule_governs() {
        for (rule, tool, want) in [
            ("Read", "Grep", true),
            ("Grep", "Read", false),
            ("Edit", "Write", true),
            ("Edit", "NotebookEdit", true),
            ("Edit", "Read", false),
            ("Task", "Agent", true),
            ("mcp__github", "mcp__github__list", true),
            ("McpCall", "mcp__github__list", true),
            ("McpCall", "Bash", false),
            ("mcp__github", "mcp__github2__list", false),
            ("mcp__github__*", "mcp__github__list", true),
            ("mcp__git*", "mcp__github__list", true),
            ("mcp__github__list", "mcp__github__list__all", false),
        ] {
            assert_eq!(Rule::parse(rule).unwrap().governs(tool), want, "{rule} {tool}");
        }
    }

    #[test]
    fn path_patterns() {
        let places = Places::for_tests();
        let files = Table(&[("/p/link", "/etc")]);
        for (pattern, path, sure, possible) in [
            ("src/**", "/p/src/a.rs", true, true),
            ("/src/**", "/p/src/a.rs", true, true),
            ("./src", "/p/src/a.rs", true, true),
            ("//etc/**", "/etc/passwd", true, true),
            ("//etc/**", "/p/link/passwd", true, true),
            ("link/**", "/p/link/passwd", false, true),
            ("~/notes", "/home/u/notes/a", true, true),
            (".env", "/p/a/.env", true, true),
            (".env", "/p/a/.ENV", false, true),
            (".env", "/q/.env", false, true),
            ("*.md", "/p/a/b.md", true, true),
            ("src/*.rs", "/p/src/a/b.rs", false, false),
            ("../x", "/x", false, false),
            ("**", "/p/a", true, true),
            ("**", "/q/a", false, true),
        ] {
            let rule = Rule::parse(&format!("Read({pattern})")).unwrap();
            let covers = |strictness| rule.covers_path("Read", Path::new(path), strictness, &places, &files);
            assert_eq!((covers(Strictness::Sure), covers(Strictness::Possible)), (sure, possible), "{pattern} {path}");
        }
    }

    #[test]
    fn hosts() {
        for (rule, host, want) in [
            ("WebFetch(domain:example.com)", "example.com", true),
            ("WebFetch(domain:example.com)", "a.example.com", false),
            ("WebFetch(domain:example.com)", "notexample.com", false),
            ("WebFetch(domain:*.example.com)", "a.example.com", true),
            ("WebFetch(domain:*.example.com)", "example.com", false),
            ("WebFetch(domain:*.example.com)", "notexample.com", false),
            ("WebFetch(domain:Example.com.)", "example.com", true),
            ("WebFetch(domain:bücher.de)", "xn--bcher-kva.de", true),
            ("WebFetch(domain:*.BÜCHER.de)", "a.xn--bcher-kva.de", true),
            ("WebFetch(domain:127.1)", "127.0.0.1", true),
            ("WebFetch(domain:[::1])", "[::1]", true),
            ("WebFetch(domain:*)", "x", true),
            ("WebFetch(domain:x:443)", "x", true),
            ("WebFetch(domain:x:22)", "x", false),
            ("WebFetch", "x", true),
        ] {
            let rule = Rule::parse(rule).unwrap();
            let host = Host::parse(host).unwrap();
            assert_eq!(rule.covers_host(Some((&host, 443))), want, "{rule} {host}");
        }
    }
}
