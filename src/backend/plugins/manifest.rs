//! A plugin's manifest, `.claude-plugin/plugin.json`, which may be missing, and the places that it names.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::told::{Fault, Told};
use crate::hooks::Definitions;
use crate::stdx::nearest::nearest;
use crate::stdx::regular;

/// Where a manifest lies in its plugin.
pub const FILE: &str = ".claude-plugin/plugin.json";
/// Most bytes of a manifest, and of any other JSON file of a plugin.
const LARGEST: u64 = 1 << 20;
/// Longest name, in characters.
const NAME: usize = 64;

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Flag,
    List,
    Texts,
    Object,
    /// A name, or an object that has one.
    Author,
    Dependencies,
    /// A path, or a list of them.
    Paths,
    /// The same, or an object with the `source` of each.
    Commands,
    /// A path, what could be in the file, or a list of both.
    Config,
    Anything,
}

/// Every field of a manifest.
const FIELDS: [(&str, Shape); 27] = [
    ("$schema", Shape::Text),
    ("name", Shape::Text),
    ("displayName", Shape::Text),
    ("version", Shape::Text),
    ("description", Shape::Text),
    ("author", Shape::Author),
    ("homepage", Shape::Text),
    ("repository", Shape::Text),
    ("license", Shape::Text),
    ("keywords", Shape::Texts),
    ("metadata", Shape::Object),
    ("defaultEnabled", Shape::Flag),
    ("skills", Shape::Paths),
    ("commands", Shape::Commands),
    ("agents", Shape::Paths),
    ("workflows", Shape::Paths),
    ("hooks", Shape::Config),
    ("mcpServers", Shape::Config),
    ("outputStyles", Shape::Paths),
    ("lspServers", Shape::Config),
    ("experimental", Shape::Object),
    ("themes", Shape::Paths),
    ("monitors", Shape::Anything),
    ("userConfig", Shape::Object),
    ("channels", Shape::List),
    ("dependencies", Shape::Dependencies),
    ("settings", Shape::Object),
];
/// Fields of which a wrong value costs nothing else.
const LENIENT: [&str; 2] = ["experimental", "metadata"];
const EXPERIMENTAL: [&str; 2] = ["themes", "monitors"];

/// One server of the Model Context Protocol, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub name: String,
    pub entry: Value,
    pub file: PathBuf,
}

/// What a plugin says of itself, and what it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    pub name: String,
    pub display_name: Option<String>,
    pub version: Option<String>,
    pub description: Option<String>,
    pub author: Option<String>,
    pub homepage: Option<String>,
    pub license: Option<String>,
    pub default_enabled: bool,
    /// Names of plugins.
    pub dependencies: Vec<String>,
    /// Folders of skills, and single SKILL.md files.
    pub skills: Vec<PathBuf>,
    /// Markdown files, and folders of them.
    pub commands: Vec<PathBuf>,
    pub agents: Vec<PathBuf>,
    pub hooks: Definitions,
    pub servers: Vec<Server>,
    /// What it has and cocode does nothing with, each with its names.
    pub unsupported: Vec<(&'static str, Vec<String>)>,
}

impl Manifest {
    /// Whether there is nothing that could be loaded, or would be if it were supported.
    pub fn is_empty(&self) -> bool {
        let parts = [&self.skills, &self.commands, &self.agents];
        let runs = !self.hooks.0.is_empty() || !self.servers.is_empty();
        parts.into_iter().all(Vec::is_empty) && !runs && self.unsupported.is_empty()
    }
}

/// Reads the plugin in `root`, its real path. `name` is what it is called without a manifest; `entry` is what the
/// marketplace says of it. None where it cannot be used: then the faults say why.
pub fn read(root: &Path, name: &str, entry: Option<&Map<String, Value>>) -> (Option<Manifest>, Vec<Fault>) {
    let file = root.join(FILE);
    let mut reading = Reading { root, told: Told::new(&file), usable: true, whole: false, seen: BTreeSet::new() };
    let own = match file.symlink_metadata() {
        Ok(_) if !file.canonicalize().is_ok_and(|real| real.starts_with(root)) => {
            reading.refuse("is a link that leads out of the plugin, or nowhere", "put a copy of the file there");
            None
        }
        Ok(_) => reading.object(&file),
        Err(_) => Some(Map::new()),
    };
    let Some(own) = own else { return (None, reading.told.faults) };
    let given = !own.is_empty() || file.exists();
    reading.judge(&own);
    let fields = reading.with_entry(own, entry);
    if given && !fields.contains_key("name") {
        reading.refuse("`name` is missing", "add `\"name\": \"my-plugin\"`");
    }
    let manifest = reading.manifest(&fields, name);
    (Some(manifest).filter(|_| reading.usable), reading.told.faults)
}

/// Reads a JSON file of a plugin or a marketplace.
///
/// # Errors
/// What is wrong with it.
pub fn json(file: &Path) -> Result<Value, String> {
    let bytes = regular::read(file, LARGEST + 1).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB".into());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| format!("is not valid JSON: {error}"))
}

/// Whether a plugin or marketplace may be called so: a name becomes part of commands and of paths.
pub fn usable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.len() <= NAME && name.chars().all(plain) && !name.contains("..")
}

fn kebab(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.split('-').all(|part| !part.is_empty() && part.chars().all(plain))
}

struct Reading<'a> {
    root: &'a Path,
    told: Told,
    usable: bool,
    /// The marketplace has all that there is to say: what it names is not joined by what lies beside it.
    whole: bool,
    /// Configuration files that were read: one that is named and at the default place counts once.
    seen: BTreeSet<PathBuf>,
}

impl Reading<'_> {
    fn refuse(&mut self, what: &str, fix: &str) {
        self.usable = false;
        self.told.error(what, "the plugin does not load", fix);
    }

    fn object(&mut self, file: &Path) -> Option<Map<String, Value>> {
        match json(file) {
            Ok(Value::Object(map)) => return Some(map),
            Ok(_) => self.refuse("is not a JSON object", "write `{\"name\": \"my-plugin\"}`"),
            Err(what) => self.refuse(&what, "correct the file"),
        }
        None
    }

    /// Names unknown fields and wrong values.
    fn judge(&mut self, own: &Map<String, Value>) {
        for (key, value) in own {
            let Some((_, shape)) = FIELDS.iter().find(|(known, _)| known == key) else {
                let fix = match nearest(key, FIELDS.map(|(known, _)| known)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "remove it".into(),
                };
                self.told.warning(&format!("unknown field `{key}`"), "it is ignored", &fix);
                continue;
            };
            let Some(want) = shape.fault(value) else { continue };
            match LENIENT.contains(&key.as_str()) {
                true => self.told.warning(&format!("`{key}` must be {want}"), "it is ignored", "correct it"),
                false => self.refuse(&format!("`{key}` must be {want}"), "correct it"),
            }
        }
        let inner = own.get("experimental").and_then(Value::as_object);
        for key in inner.into_iter().flat_map(Map::keys).filter(|key| !EXPERIMENTAL.contains(&key.as_str())) {
            self.told.warning(&format!("unknown field `experimental.{key}`"), "it is ignored", "remove it");
        }
        for place in ["skills", "commands", "agents", "hooks"] {
            if self.root.join(".claude-plugin").join(place).exists() {
                let what = format!("`.claude-plugin/{place}` is not looked at");
                self.told.warning(&what, "what is in it is not loaded", &format!("move it to `{place}`"));
            }
        }
    }

    /// The fields with those that the marketplace adds. Where its entry says `strict: false`, it is the whole manifest.
    fn with_entry(&mut self, mut own: Map<String, Value>, entry: Option<&Map<String, Value>>) -> Map<String, Value> {
        let Some(entry) = entry else { return own };
        let parts = ["skills", "commands", "agents", "hooks", "mcpServers", "lspServers", "outputStyles", "workflows"];
        self.whole = entry.get("strict") == Some(&Value::Bool(false));
        if self.whole
            && let Some(part) = parts.into_iter().find(|part| own.contains_key(*part))
        {
            let what = format!("`{part}` is here, and the marketplace says `strict: false`");
            self.refuse(&what, "take it out of one of them");
        }
        for (key, shape) in FIELDS {
            let Some(value) = entry.get(key).filter(|_| key != "name") else { continue };
            if let Some(want) = shape.fault(value) {
                let what = format!("`{key}` in the marketplace must be {want}");
                self.told.error(&what, "it is ignored", "correct the marketplace");
            } else if !own.contains_key(key) || key == "defaultEnabled" {
                own.insert(key.to_owned(), value.clone());
            }
        }
        own.entry("name").or_insert_with(|| entry.get("name").cloned().unwrap_or_default());
        own
    }

    fn manifest(&mut self, fields: &Map<String, Value>, fallback: &str) -> Manifest {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").unwrap_or_else(|| fallback.to_owned());
        if !usable(&name) {
            let what = format!("the name {name:?} is not made of letters, digits, `-`, `_` and `.`");
            self.refuse(&what, "use a name like `my-plugin`");
        } else if !kebab(&name) && fields.contains_key("name") {
            let fix = "use lower-case letters, digits and single hyphens";
            self.told.warning(&format!("the name `{name}` is not in kebab case"), "other tools may refuse it", fix);
        }
        let author = fields.get("author").and_then(|author| author.get("name").unwrap_or(author).as_str());
        let mut manifest = Manifest {
            author: author.map(str::to_owned),
            display_name: text("displayName"),
            version: text("version"),
            description: text("description"),
            homepage: text("homepage"),
            license: text("license"),
            default_enabled: fields.get("defaultEnabled") != Some(&Value::Bool(false)),
            dependencies: dependencies(fields),
            skills: self.skills(fields),
            commands: self.replaced(fields, "commands", "commands"),
            agents: self.replaced(fields, "agents", "agents"),
            hooks: self.hooks(fields),
            servers: self.servers(fields),
            name,
            ..Manifest::default()
        };
        manifest.unsupported = self.unsupported(fields);
        if manifest.is_empty() && self.usable {
            self.told.warning("the plugin has nothing that could be loaded", "it does nothing", "add `skills/`");
        }
        manifest
    }

    /// The default folder, and what the manifest adds to it; a SKILL.md at the root where there is neither.
    fn skills(&mut self, fields: &Map<String, Value>) -> Vec<PathBuf> {
        let default = if self.whole && fields.contains_key("skills") { None } else { self.default("skills") };
        let mut places: Vec<PathBuf> = default.into_iter().collect();
        for path in self.named(fields.get("skills"), "skills") {
            if !places.contains(&path) {
                places.push(path);
            }
        }
        if places.is_empty() && !fields.contains_key("skills") {
            places.extend(self.default("SKILL.md"));
        }
        places
    }

    /// What the manifest names, or else the default folder.
    fn replaced(&mut self, fields: &Map<String, Value>, key: &str, default: &str) -> Vec<PathBuf> {
        match fields.get(key) {
            Some(value) => self.named(Some(value), key),
            None => self.default(default).into_iter().collect(),
        }
    }

    fn hooks(&mut self, fields: &Map<String, Value>) -> Definitions {
        let mut all = Definitions::default();
        for (file, value) in self.configs(fields, "hooks", "hooks/hooks.json") {
            // A file has them below `hooks`, beside a description; in the manifest both forms occur.
            let inner = value.get("hooks").filter(|inner| inner.is_object()).cloned().unwrap_or(value);
            let (mut read, problems) = Definitions::read(&inner);
            for problem in problems {
                self.told.error_in(&file, &problem, "the other hooks run", "correct it, or remove it");
            }
            for hook in read.without_lines_with("${user_config.") {
                let what = format!("a hook in a shell cannot use ${{user_config}}: {hook}");
                self.told.error_in(&file, &what, "the hook does not run", "use $CLAUDE_PLUGIN_OPTION_…");
            }
            for (event, groups) in read.0 {
                all.0.entry(event).or_default().extend(groups);
            }
        }
        all
    }

    /// Those of a file lie below `mcpServers` or alone; of two with one name the later counts.
    fn servers(&mut self, fields: &Map<String, Value>) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        for (file, value) in self.configs(fields, "mcpServers", ".mcp.json") {
            let map = value.get("mcpServers").unwrap_or(&value).as_object();
            for (name, entry) in map.into_iter().flatten() {
                servers.retain(|other| other.name != *name);
                servers.push(Server { name: name.clone(), entry: entry.clone(), file: file.clone() });
            }
        }
        servers
    }

    /// What of the plugin nothing is done with, by kind.
    fn unsupported(&mut self, fields: &Map<String, Value>) -> Vec<(&'static str, Vec<String>)> {
        let mut found = Vec::new();
        let names = |value: &Value, inner: &str| -> Vec<String> {
            let map = value.get(inner).unwrap_or(value).as_object();
            map.into_iter().flat_map(Map::keys).cloned().collect()
        };
        let configs = self.configs(fields, "lspServers", ".lsp.json");
        if !configs.is_empty() {
            found.push(("LSP servers", configs.iter().flat_map(|(_, value)| names(value, "lspServers")).collect()));
        }
        let experimental = fields.get("experimental").and_then(Value::as_object);
        for (what, key, default) in [
            ("output styles", "outputStyles", "output-styles"),
            ("themes", "themes", "themes"),
            ("monitors", "monitors", "monitors/monitors.json"),
            ("workflows", "workflows", "workflows"),
            ("settings", "settings", "settings.json"),
            ("user configuration", "userConfig", ""),
            ("channels", "channels", ""),
        ] {
            let given = fields.contains_key(key) || experimental.is_some_and(|inner| inner.contains_key(key));
            if given || !default.is_empty() && self.root.join(default).exists() {
                found.push((what, fields.get(key).map(|value| names(value, "")).unwrap_or_default()));
            }
        }
        found
    }

    /// Values of a kind that lies in JSON files or in the manifest, with the file of each.
    fn configs(&mut self, fields: &Map<String, Value>, key: &str, default: &str) -> Vec<(PathBuf, Value)> {
        let mut found = Vec::new();
        let file = self.default(default);
        found.extend(file.and_then(|file| self.config(file)));
        let given = match fields.get(key) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for value in given {
            match value {
                Value::String(text) => {
                    let file = self.place(key, text);
                    found.extend(file.and_then(|file| self.config(file)));
                }
                inline => found.push((self.root.join(FILE), inline.clone())),
            }
        }
        found
    }

    fn config(&mut self, file: PathBuf) -> Option<(PathBuf, Value)> {
        if !self.seen.insert(file.clone()) {
            return None;
        }
        match json(&file) {
            Ok(value) if value.is_object() => Some((file, value)),
            Ok(_) => {
                self.told.error_in(&file, "is not a JSON object", "it is ignored", "correct the file");
                None
            }
            Err(what) => {
                self.told.error_in(&file, &what, "it is ignored", "correct the file");
                None
            }
        }
    }

    /// Paths that a field names.
    fn named(&mut self, value: Option<&Value>, key: &str) -> Vec<PathBuf> {
        let texts = match value {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Object(each)) => {
                for (name, _) in each.iter().filter(|(_, one)| !one.get("source").is_some_and(Value::is_string)) {
                    let what = format!("`{key}.{name}` has no `source`");
                    self.told.error(&what, "it is ignored", "put its text into a file and name that");
                }
                each.values().filter_map(|one| one.get("source")?.as_str()).collect()
            }
            _ => Vec::new(),
        };
        texts.into_iter().filter_map(|text| self.place(key, text)).collect()
    }

    /// What a path of the manifest means; told and left out where it is not a path of the plugin.
    fn place(&mut self, key: &str, text: &str) -> Option<PathBuf> {
        let mut wrong = |what: &str, fix: &str| {
            self.told.error(&format!("`{key}`: {text:?} {what}"), "the path is ignored", fix);
        };
        let path = Path::new(text);
        if path.components().any(|part| part == Component::ParentDir) {
            wrong("leads out of the plugin with `..`", "name a path in the plugin");
        } else if !(text.starts_with("./") || key == "skills" && text == ".") {
            wrong("does not begin with `./`", "put `./` in front");
        } else {
            let path = path.strip_prefix(".").unwrap_or(path);
            return self.real(&self.root.join(path), &format!("`{key}`: {text:?} "));
        }
        None
    }

    /// A place of the layout, where there is something.
    fn default(&mut self, name: &str) -> Option<PathBuf> {
        let path = self.root.join(name);
        // Also a link that leads nowhere is something.
        path.symlink_metadata().ok()?;
        self.real(&path, &format!("`{name}` "))
    }

    /// Where a path really is; told where it is nowhere, or not in the plugin.
    fn real(&mut self, path: &Path, called: &str) -> Option<PathBuf> {
        let what = match path.canonicalize() {
            Ok(real) if real.starts_with(self.root) => return Some(real),
            Ok(real) => format!("is a link to {}, outside the plugin", real.display()),
            Err(error) if path.symlink_metadata().is_ok() => format!("is a link that leads nowhere: {error}"),
            Err(_) => "does not exist".into(),
        };
        self.told.error(&format!("{called}{what}"), "it is ignored", "name what is in the plugin");
        None
    }
}

impl Shape {
    /// What a value of another kind should be.
    fn fault(self, value: &Value) -> Option<&'static str> {
        let texts = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        let named = |value: &Value| value.get("name").is_some_and(Value::is_string);
        let config = |value: &Value| value.is_string() || value.is_object();
        let (fits, want) = match self {
            Shape::Text => (value.is_string(), "a string"),
            Shape::Flag => (value.is_boolean(), "true or false"),
            Shape::List => (value.is_array(), "a list"),
            Shape::Texts => (texts(value), "a list of strings"),
            Shape::Object => (value.is_object(), "an object"),
            Shape::Author => (value.is_string() || named(value), "an object with a `name`"),
            Shape::Dependencies => {
                let one = |item: &Value| item.is_string() || named(item);
                (value.as_array().is_some_and(|items| items.iter().all(one)), "a list of names")
            }
            Shape::Paths => (value.is_string() || texts(value), "a path or a list of paths"),
            Shape::Commands => {
                (value.is_string() || texts(value) || value.is_object(), "a path, a list of paths, or an object")
            }
            Shape::Config => {
                let list = value.as_array().is_some_and(|items| items.iter().all(config));
                (config(value) || list, "a path, an object, or a list of both")
            }
            Shape::Anything => (true, ""),
        };
        (!fits).then_some(want)
    }
}

fn dependencies(fields: &Map<String, Value>) -> Vec<String> {
    let items = fields.get("dependencies").and_then(Value::as_array);
    let name = |item: &Value| item.get("name").unwrap_or(item).as_str().map(str::to_owned);
    items.into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests;
