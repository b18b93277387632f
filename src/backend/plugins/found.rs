//! Where plugins lie: folders that were named, what was installed here or by Claude Code, and folders among skills.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manifest::{self, usable};
use super::told::{Fault, fault};
use super::{From, Sources};
use crate::commands::Severity;
use crate::stdx::git;

/// What of a marketplace is known, relative to its folder.
pub(super) const MARKETPLACE: &str = ".claude-plugin/marketplace.json";

/// A folder that may be a plugin.
pub(super) struct Candidate {
    /// Where it really is.
    pub(super) root: PathBuf,
    pub(super) from: From,
    /// None where only its manifest knows its name.
    pub(super) id: Option<String>,
    /// What the marketplace says of it.
    pub(super) entry: Option<Map<String, Value>>,
    pub(super) version: Option<String>,
}

/// All of them, the strongest first, and what was wrong on the way.
#[derive(Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) faults: Vec<Fault>,
}

/// What `cocode plugin install` remembers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Installed {
    /// By id.
    pub plugins: BTreeMap<String, Record>,
}

/// One installed plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub path: PathBuf,
    pub version: String,
    /// Where it came from, as it was written.
    pub source: Value,
    /// What its marketplace said of it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub entry: Map<String, Value>,
}

impl Installed {
    /// The folder of everything that was installed here.
    pub fn folder(home: &Path) -> PathBuf {
        home.join("cocode/plugins")
    }

    pub fn file(home: &Path) -> PathBuf {
        Installed::folder(home).join("installed.json")
    }

    /// The id that is meant by it, or by a name that one plugin alone has.
    pub fn id_of(&self, name: &str) -> Option<String> {
        let named = |id: &&String| *id == name || id.split_once('@').is_some_and(|(own, _)| own == name);
        let mut ids = self.plugins.keys().filter(named);
        ids.next().filter(|_| ids.next().is_none()).cloned()
    }

    /// Nothing where there is no such file.
    ///
    /// # Errors
    /// The file cannot be used; why.
    pub fn read(home: &Path) -> Result<Installed, String> {
        let file = Installed::file(home);
        if !file.exists() {
            return Ok(Installed::default());
        }
        let value = manifest::json(&file)?;
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

pub(super) fn find(sources: Sources<'_>) -> Found {
    let mut found = Found::default();
    for folder in sources.given {
        match folder.canonicalize() {
            Ok(root) if root.is_dir() => found.add(From::Flag, root, None),
            Ok(_) => found.fault(folder, "is not a folder", "name the folder of a plugin"),
            Err(error) => found.fault(folder, &format!("cannot be opened: {error}"), "name the folder of a plugin"),
        }
    }
    found.installed(sources.home);
    found.of_claude_code(sources);
    found.among(&sources.home.join("skills"), From::Skills);
    let user = sources.home.join("skills").canonicalize().ok();
    let top = git::root(sources.project).unwrap_or(sources.project);
    for folder in sources.project.ancestors().take_while(|folder| folder.starts_with(top)) {
        let skills = folder.join(".claude/skills");
        // A session in the home folder itself.
        if user.is_none() || skills.canonicalize().ok() != user {
            found.among(&skills, From::Project);
        }
    }
    // What a link of the project leads to is not the project's.
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let outside = |candidate: &mut Candidate| candidate.from == From::Project && !candidate.root.starts_with(&top);
    for Candidate { root, .. } in found.candidates.extract_if(.., outside).collect::<Vec<_>>() {
        found.fault(&root, "is a plugin that the project only links to", "load it with `--plugin-dir`");
    }
    found
}

impl Found {
    fn add(&mut self, from: From, root: PathBuf, id: Option<String>) {
        self.candidates.push(Candidate { root, from, id, entry: None, version: None });
    }

    fn fault(&mut self, file: &Path, what: &str, fix: &str) {
        self.faults.push(fault(file, Severity::Error, [what, "nothing of it is loaded", fix]));
    }

    fn installed(&mut self, home: &Path) {
        let installed = match Installed::read(home) {
            Ok(installed) => installed,
            Err(what) => return self.fault(&Installed::file(home), &what, "correct or remove the file"),
        };
        for (id, Record { path, version, entry, .. }) in installed.plugins {
            match path.canonicalize() {
                Ok(root) => self.candidates.push(Candidate {
                    root,
                    from: From::Installed,
                    id: Some(id),
                    entry: Some(entry).filter(|entry| !entry.is_empty()),
                    version: Some(version),
                }),
                Err(_) => self.fault(&path, "is gone", &format!("install it again, or `cocode plugin uninstall {id}`")),
            }
        }
    }

    /// What Claude Code installed: its list is read, and never written.
    fn of_claude_code(&mut self, sources: Sources<'_>) {
        let folder = sources.home.join("plugins");
        let file = folder.join("installed_plugins.json");
        if !file.exists() {
            return;
        }
        let list = match manifest::json(&file) {
            Ok(list) => list,
            Err(what) => return self.fault(&file, &what, "let Claude Code write it again"),
        };
        let Some(plugins) = list.get("plugins").and_then(Value::as_object) else {
            return self.fault(&file, "has no `plugins`", "let Claude Code write it again");
        };
        let mut markets = Markets { folder: &folder, known: None, entries: HashMap::new() };
        for (id, installs) in plugins {
            let Some((name, market)) = id.split_once('@').filter(|(name, market)| usable(name) && usable(market))
            else {
                self.fault(&file, &format!("`{id}` is not a name and a marketplace"), "remove it");
                continue;
            };
            // An older version of the list has one entry each.
            let installs = installs.as_array().map_or_else(|| std::slice::from_ref(installs), Vec::as_slice);
            let here = |install: &&Value| match install.get("scope").and_then(Value::as_str) {
                Some("project" | "local") => {
                    let project = install.get("projectPath").and_then(Value::as_str);
                    project.is_some_and(|project| sources.project.starts_with(project))
                }
                _ => true,
            };
            let Some(install) = installs.iter().find(here) else { continue };
            let text = |key: &str| install.get(key).and_then(Value::as_str);
            let Some(path) = text("installPath") else {
                self.fault(&file, &format!("`{id}` has no `installPath`"), "install it again");
                continue;
            };
            match Path::new(path).canonicalize() {
                Ok(root) if root.is_dir() => self.candidates.push(Candidate {
                    root,
                    from: From::ClaudeCode,
                    id: Some(id.clone()),
                    entry: markets.entry(market, name),
                    version: text("version").map(str::to_owned),
                }),
                _ => self.fault(Path::new(path), &format!("{id} is not there"), "install it again"),
            }
        }
    }

    /// Plugins among skills.
    fn among(&mut self, skills: &Path, from: From) {
        let entries = std::fs::read_dir(skills).into_iter().flatten().flatten();
        let mut roots: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.join(manifest::FILE).is_file())
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        roots.sort();
        roots.into_iter().for_each(|root| self.add(from, root, None));
    }
}

/// The marketplaces that Claude Code knows, read as they are asked for.
struct Markets<'a> {
    folder: &'a Path,
    known: Option<Value>,
    entries: HashMap<String, Vec<Value>>,
}

impl Markets<'_> {
    fn entry(&mut self, market: &str, plugin: &str) -> Option<Map<String, Value>> {
        if !self.entries.contains_key(market) {
            let known = self.known.get_or_insert_with(|| {
                manifest::json(&self.folder.join("known_marketplaces.json")).unwrap_or_default()
            });
            let place = known.get(market).and_then(|known| known.get("installLocation")?.as_str());
            let place = place.map_or_else(|| self.folder.join("marketplaces").join(market), PathBuf::from);
            // Without it, plugins with a manifest of their own load all the same.
            let list = manifest::json(&place.join(MARKETPLACE)).ok();
            let plugins = list.and_then(|mut list| match list.get_mut("plugins")?.take() {
                Value::Array(plugins) => Some(plugins),
                _ => None,
            });
            self.entries.insert(market.to_owned(), plugins.unwrap_or_default());
        }
        let named = |entry: &&Value| entry.get("name").is_some_and(|name| name == plugin);
        self.entries.get(market)?.iter().find(named)?.as_object().cloned()
    }
}
