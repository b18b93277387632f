//! Which servers of the Model Context Protocol are configured, and which of them may run.
//!
//! Of two entries with one name the first counts, as a whole: flags, the user's own for the project, the project's, the user's.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::grant;
use super::json::object;
use super::layer::{Problem, read_text};
use super::paths::{Env, Paths};
use super::rules::{self, RuleText};
use super::settings::Mcp;
use super::trust::{self, Extent};
use crate::mcp::{Definition, Scope, Way};
use crate::permission::{Bound, Trust, Use};
use crate::plugins::{Plugin, Plugins};
use crate::stdx::ansi::shown;
use crate::stdx::regular;

/// Most bytes of the user's own file.
const OWN: u64 = 64 << 20;

/// The project's own file.
pub const FILE: &str = ".mcp.json";

/// What flags say of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// Files, or JSON.
    pub configs: Vec<String>,
    /// Nothing else counts.
    pub strict: bool,
}

/// Where definitions and their variables come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Origin {
    /// The user's own file.
    pub(super) file: PathBuf,
    pub(super) env: Env,
    pub(super) flags: Flags,
    /// What the file says: it is read once, since another program may keep megabytes in it.
    pub(super) own: OnceLock<Result<Own, Problem>>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    pub wanted: Vec<Definition>,
    /// Those that may not run, and why.
    pub off: Vec<(Definition, String)>,
}

impl Servers {
    /// Whether there are no servers at all.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.off.is_empty()
    }

    /// All of them, those that may not run included.
    pub fn all(&self) -> impl Iterator<Item = &Definition> {
        self.wanted.iter().chain(self.off.iter().map(|(definition, _)| definition))
    }
}

/// The user's own file: beside the folder of sessions, or in it where that was moved.
pub fn own_file(paths: &Paths) -> PathBuf {
    let usual = paths.user_home.as_ref().filter(|home| home.join(".claude") == paths.home);
    usual.unwrap_or(&paths.home).join(".claude.json")
}

/// What one reading gives.
pub(super) struct Read {
    pub(super) servers: Servers,
    pub(super) problems: Vec<Problem>,
    /// What needs the user's word.
    pub(super) uses: Vec<Use>,
}

/// Finds all servers for a project.
/// `rules` are the user's own.
pub(super) fn find(
    origin: &Origin,
    settings: &Mcp,
    (env, rules): (&Variables, &[RuleText]),
    (project, plugins): (&Path, &Plugins),
    trust: &Trust,
) -> Read {
    let mut reading = Reading {
        read: Read { servers: Servers::default(), problems: Vec::new(), uses: Vec::new() },
        seen: HashSet::new(),
        variable: &|name| origin.env.get(name).map(str::to_owned).or_else(|| env.get(name).cloned()),
        project,
        trust,
        settings,
        rules,
        off: Vec::new(),
    };
    for config in &origin.flags.configs {
        let place = place_of(config);
        match config_of(config, project) {
            Ok(map) => reading.entries(&map, Scope::Flag, &place),
            Err(problem) => reading.read.problems.push(problem),
        }
    }
    if !origin.flags.strict {
        let none = Own::default();
        let own = match origin.own.get_or_init(|| Own::read(&origin.file)) {
            Ok(own) => own,
            Err(problem) => {
                reading.read.problems.push(problem.clone());
                &none
            }
        };
        let place = origin.file.display().to_string();
        if let Some(here) = project.to_str().and_then(|project| own.projects.get(project)) {
            for (key, names, of_project) in [
                ("disabledMcpServers", &here.disabled, false),
                ("disabledMcpjsonServers", &here.disabled_project, true),
            ] {
                let names = names.as_array().into_iter().flatten().filter_map(Json::as_str);
                reading.off.extend(names.map(|name| (name.to_owned(), of_project, key)));
            }
            reading.map(&here.servers, Scope::Local, &place);
        }
        let file = project.join(FILE);
        match project_file(&file) {
            Ok(Some(map)) => reading.entries(&map, Scope::Project, &file.display().to_string()),
            Ok(None) => {}
            Err(problem) => reading.read.problems.push(problem),
        }
        reading.map(&own.servers, Scope::User, &place);
        plugins.loaded().for_each(|plugin| reading.of_plugin(plugin));
    }
    reading.read
}

/// Further variables, of the settings.
pub(super) type Variables = std::collections::BTreeMap<String, String>;

struct Reading<'a> {
    read: Read,
    seen: HashSet<String>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    project: &'a Path,
    trust: &'a Trust,
    settings: &'a Mcp,
    rules: &'a [RuleText],
    /// Names that the user turned off here, whether only those of the project are meant, and the key that says so.
    off: Vec<(String, bool, &'static str)>,
}

impl Reading<'_> {
    fn map(&mut self, given: &Json, scope: Scope, place: &str) {
        match given {
            Json::Object(map) => self.entries(map, scope, place),
            Json::Null => {}
            _ => self.say(place, "`mcpServers` is ignored: it must be an object".to_owned()),
        }
    }

    fn say(&mut self, place: &str, message: String) {
        self.read.problems.push(Problem { place: place.to_owned(), message });
    }

    fn entries(&mut self, given: &Map<String, Json>, scope: Scope, place: &str) {
        for (name, entry) in given {
            if self.seen.contains(name) {
                continue;
            }
            let mut told = Vec::new();
            let read = Definition::read(name, entry, (scope, place), self.variable, &mut |text| told.push(text));
            for text in told {
                self.say(place, format!("MCP server `{name}`: {text}"));
            }
            // One that the project only offers does not take the name from the user's own.
            let mut holds = scope != Scope::Project;
            match read {
                Ok(Some(definition)) => {
                    self.give_way(&definition);
                    self.admit(definition);
                    holds |= self.read.servers.wanted.iter().any(|wanted| wanted.name == *name);
                }
                Ok(None) => {}
                Err(problem) => self.say(place, format!("MCP server `{name}` is ignored: {problem}")),
            }
            if holds {
                self.seen.insert(name.clone());
            }
        }
    }

    /// What runs of a plugin is agreed to with the plugin.
    fn of_plugin(&mut self, plugin: &Plugin) {
        let mut told = Vec::new();
        let mut tell =
            |name: &str, text: String| told.push(format!("MCP server `{name}` of the plugin {}: {text}", plugin.id));
        // What is wrong with one is told with the plugin.
        let read: Vec<_> = plugin.servers(self.project, Some(self.variable), &mut tell).collect();
        let place = plugin.root.display().to_string();
        for (server, definition) in read.into_iter().filter_map(|(server, read)| Some((server, read.ok()?))) {
            let as_written = format!("plugin:{}:{}", plugin.manifest.name, server.name);
            let again = self.read.servers.wanted.iter().find(|other| other.is_again(&definition));
            let off = again.map(|first| format!("{} is the same server", first.name));
            let off = off.or_else(|| self.turned_off(&definition, &[&definition.name, &as_written]));
            let servers = &mut self.read.servers;
            if let Some(why) = off {
                servers.off.push((definition, why));
            } else if plugin.trusted {
                servers.wanted.push(definition);
            } else {
                let why = format!(
                    "you have not agreed to the plugin yet: start cocode in a terminal, or `cocode plugin trust {}`",
                    plugin.id
                );
                servers.off.push((definition, why));
            }
        }
        told.into_iter().for_each(|text| self.say(&place, text));
    }

    /// Why a server that goes by these names may not run, whatever the user agreed to.
    fn turned_off(&self, definition: &Definition, names: &[&str]) -> Option<String> {
        let project = definition.scope == Scope::Project;
        let off =
            self.off.iter().find(|(off, of_project, _)| names.contains(&off.as_str()) && (project || !of_project));
        let denied = || {
            let mut patterns = self.settings.denied.iter();
            patterns.any(|pattern| names.contains(&pattern.as_str()) || denies(pattern, definition))
        };
        match off {
            Some((.., key)) => Some(format!("it is turned off by `{key}` in .claude.json")),
            None if denied() => Some("it is denied by `deniedMcpServers`".to_owned()),
            None if project
                && names.iter().any(|name| self.settings.disabled_project.iter().any(|off| off == name)) =>
            {
                Some("it is turned off by `disabledMcpjsonServers`".to_owned())
            }
            None => None,
        }
    }

    /// One of the project that does not run makes room for another one of its name.
    fn give_way(&mut self, to: &Definition) {
        let off = &mut self.read.servers.off;
        if let Some(at) = off.iter().position(|(other, _)| other.name == to.name) {
            let (other, why) = off.remove(at);
            let text = format!("MCP server `{}` is not used: {why}; the entry of {} counts", other.name, to.place);
            self.say(&other.place, text);
        }
    }

    /// Decides whether a server may run.
    fn admit(&mut self, definition: Definition) {
        let (name, project) = (definition.name.as_str(), definition.scope == Scope::Project);
        let has = |names: &[String]| names.iter().any(|other| other == name);
        if let Some(why) = self.turned_off(&definition, &[name]) {
            return self.read.servers.off.push((definition, why));
        }
        // Rules go by name: what the user allowed their own server would hold for one of the project's that has its name.
        let granted = if project { rules::granted(self.rules, name) } else { Vec::new() };
        let listed = self.settings.enable_all_project || has(&self.settings.enabled_project);
        if !project || listed && granted.is_empty() {
            return self.read.servers.wanted.push(definition);
        }
        let (used, bound) = used(&definition, self.project, &granted);
        if self.trust.covers(&used) {
            self.read.servers.wanted.push(Definition { runs: bound.runs().clone(), ..definition });
        } else {
            let why = match granted.is_empty() {
                true => "you have not approved it yet".to_owned(),
                false => format!("you have not approved that {} holds for it", granted.join(", ")),
            };
            let why = format!("{why}: start cocode in a terminal, or with --trust");
            self.read.servers.off.push((definition, why));
        }
        self.read.uses.push(used);
    }
}

/// Whether a name, a URL with stars or a command means this server.
fn denies(pattern: &str, definition: &Definition) -> bool {
    let meant = match &definition.way {
        Way::Program { command, args, .. } => {
            let words = std::iter::once(command).chain(args).map(String::as_str).collect::<Vec<_>>();
            words.join(" ") == pattern
        }
        Way::Outside => false,
        Way::Http { url, .. } | Way::Sse { url, .. } => {
            let mut rest = url.as_str();
            let mut parts = pattern.split('*');
            let first = parts.next().is_some_and(|first| match rest.strip_prefix(first) {
                Some(behind) => {
                    rest = behind;
                    true
                }
                None => false,
            });
            let last = if pattern.contains('*') { parts.next_back() } else { None };
            let middle = |part: &str| match rest.split_once(part) {
                Some((_, behind)) => {
                    rest = behind;
                    true
                }
                None => false,
            };
            // An address without a path has one slash more than people write.
            first && parts.all(middle) && last.map_or(matches!(rest, "" | "/"), |last| rest.ends_with(last))
        }
    };
    pattern == definition.name || meant
}

/// What the user is asked about one of the project's, with the files of the project that it runs. `granted` are the rules
/// of the user's that will hold for it.
fn used(definition: &Definition, project: &Path, granted: &[&str]) -> (Use, Bound) {
    let name = &definition.name;
    let bound = Bound::commands(project, definition.program());
    let unasked = match granted {
        [] => String::new(),
        rules => format!(" – your rules let it run without asking: {}", rules.join(", ")),
    };
    let line = shown(&format!("mcpServers.{name} = {definition} ({FILE}){unasked}"));
    (Use::running(format!("mcpServers.{name} ({FILE})"), line, &definition.bound, &bound), bound)
}

/// What the user's own file says of servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Own {
    #[serde(rename = "mcpServers")]
    servers: Json,
    projects: HashMap<String, Here>,
}

/// What it says for one project.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Here {
    #[serde(rename = "mcpServers")]
    servers: Json,
    #[serde(rename = "disabledMcpServers")]
    disabled: Json,
    #[serde(rename = "disabledMcpjsonServers")]
    disabled_project: Json,
}

impl Own {
    fn read(file: &Path) -> Result<Own, Problem> {
        let problem = |message: String| Problem { place: file.display().to_string(), message };
        let text = match regular::read(file, OWN) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text".to_owned()))?,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Own::default());
            }
            Err(error) => return Err(problem(format!("cannot be read: {error}"))),
        };
        let text = text.trim_start_matches('\u{feff}');
        // Without a name to look for it need not be parsed.
        if !text.contains("cpServers\"") {
            return Ok(Own::default());
        }
        serde_json::from_str(text).map_err(|error| Problem {
            place: format!("{}:{}", file.display(), error.line()),
            message: format!("its MCP servers cannot be read: {error}"),
        })
    }
}

/// The project's file: its servers below `mcpServers`, or alone.
fn project_file(file: &Path) -> Result<Option<Map<String, Json>>, Problem> {
    match read_text(file)? {
        Some(text) => servers_of(file, &text).map(Some),
        None => Ok(None),
    }
}

fn servers_of(file: &Path, text: &str) -> Result<Map<String, Json>, Problem> {
    let mut map = object(file, text)?.map;
    let problem = |message: &str| Problem { place: file.display().to_string(), message: message.to_owned() };
    match map.remove("mcpServers") {
        Some(Json::Object(servers)) => Ok(servers),
        Some(Json::Null) => Ok(Map::new()),
        Some(_) => Err(problem("`mcpServers` must be an object")),
        None if map.values().all(|entry| entry.get("command").is_some() || entry.get("url").is_some()) => Ok(map),
        None => Err(problem("has no `mcpServers`, and is not a map of servers")),
    }
}

fn place_of(config: &str) -> String {
    if is_json(config) { "--mcp-config".to_owned() } else { config.to_owned() }
}

fn is_json(config: &str) -> bool {
    config.trim_start().starts_with('{')
}

/// The servers that a value of `--mcp-config` names.
///
/// # Errors
/// It is neither JSON nor a file that can be read.
pub fn config_of(config: &str, folder: &Path) -> Result<Map<String, Json>, Problem> {
    if is_json(config) {
        return servers_of(Path::new("--mcp-config"), config);
    }
    let file = folder.join(config);
    match read_text(&file)? {
        Some(text) => servers_of(&file, &text),
        None => {
            let message = "--mcp-config: neither a file nor JSON".to_owned();
            Err(Problem { place: file.display().to_string(), message })
        }
    }
}

/// Where an entry is written to.
fn file_of(scope: Scope, paths: &Paths, project: &Path) -> PathBuf {
    if scope == Scope::Project { project.join(FILE) } else { own_file(paths) }
}

/// The servers of a scope in the object of its file; made where they are missing.
fn map_of<'a>(
    object: &'a mut Map<String, Json>,
    scope: Scope,
    project: &Path,
) -> Result<&'a mut Map<String, Json>, String> {
    fn below<'a>(object: &'a mut Map<String, Json>, key: &str) -> Result<&'a mut Map<String, Json>, String> {
        let below = object.entry(key).or_insert_with(|| Json::Object(Map::new()));
        below.as_object_mut().ok_or_else(|| format!("`{key}` must be an object"))
    }
    match scope {
        Scope::Local => {
            let project = project.to_str().ok_or("the path of the folder is not UTF-8")?;
            below(below(below(object, "projects")?, project)?, "mcpServers")
        }
        _ => below(object, "mcpServers"),
    }
}

/// Adds an entry. One of the project's is taken for approved, since the user has just written it.
///
/// # Errors
/// The entry cannot be used, or its name is taken; the file is broken or cannot be written. It is then as before.
pub fn add(
    (paths, env): (&Paths, &Env),
    project: &Path,
    scope: Scope,
    (name, entry): (&str, &Json),
) -> Result<PathBuf, String> {
    let file = file_of(scope, paths, project);
    let variable = |name: &str| env.get(name).map(str::to_owned);
    let place = file.display().to_string();
    let read = Definition::read(name, entry, (scope, &place), &variable, &mut |_| ());
    let definition = read.map_err(|problem| format!("MCP server `{name}`: {problem}"))?;
    grant::change(&file, |object| {
        let map = map_of(object, scope, project)?;
        if map.contains_key(name) {
            return Err(format!("already has a server `{name}`: `cocode mcp remove {name}` removes it"));
        }
        map.insert(name.to_owned(), entry.clone());
        Ok(())
    })
    .map_err(|problem| problem.to_string())?;
    if let Some(definition) = definition.filter(|_| scope == Scope::Project) {
        let used = used(&definition, project, &[]).0;
        trust::remember(paths, project, Extent::More, &[used])
            .map_err(|error| format!("it is in {place}, and will ask at the next start: {error}"))?;
    }
    Ok(file)
}

/// Removes an entry; None where there is no such one.
///
/// # Errors
/// The file is broken or cannot be written; it is then as before.
pub fn remove(paths: &Paths, project: &Path, scope: Scope, name: &str) -> Result<Option<PathBuf>, String> {
    let file = file_of(scope, paths, project);
    if !file.exists() {
        return Ok(None);
    }
    let mut found = false;
    grant::change(&file, |object| {
        let bare = scope == Scope::Project && !object.contains_key("mcpServers");
        let before = object.clone();
        let map = if bare { &mut *object } else { map_of(object, scope, project)? };
        found = map.shift_remove(name).is_some();
        if !found {
            *object = before;
        }
        Ok(())
    })
    .map_err(|problem| problem.to_string())?;
    Ok(found.then_some(file))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_denied_server_is_meant_by_name_address_or_command() {
        let check = |entry: Json, pattern: &str, want: bool| {
            let read = Definition::read("srv", &entry, (Scope::User, "f"), &|_| None, &mut |_| ());
            assert_eq!(denies(pattern, &read.unwrap().unwrap()), want, "{pattern} {entry}");
        };
        let program = json!({"command": "npx", "args": ["-y", "tool"]});
        for (pattern, want) in [("srv", true), ("npx -y tool", true), ("npx", false), ("*", false), ("other", false)] {
            check(program.clone(), pattern, want);
        }
        let remote = json!({"type": "http", "url": "https://a.example.com/mcp/x"});
        for (pattern, want) in [
            ("https://*.example.com/*", true),
            ("https://a.example.com/mcp/x", true),
            ("*", true),
            ("*/x", true),
            ("https://*.com/*/x", true),
            ("https://a.example.com", false),
            ("https://*.org/*", false),
            ("http://*", false),
        ] {
            check(remote.clone(), pattern, want);
        }
        check(json!({"type": "http", "url": "https://b"}), "https://b", true);
    }
}
