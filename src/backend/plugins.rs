//! Plugins in the format of Claude Code: where they are found, what each has, and what of it runs.
//!
//! This only reads. What a plugin has enters the loaders that the user's own files go through: skills and commands those of
//! `commands`, agents those of `agents`, hooks those of `hooks`.

mod found;
pub mod git;
pub mod manifest;
mod row;
pub mod store;
mod told;
pub mod uses;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use found::{Installed, Record};
pub use row::{Row, Summary};
pub use told::Fault;

use crate::commands::discover::discover_plugin;
use crate::commands::{self, Severity};
use crate::permission::{Trust, Use};
use crate::stdx::sealed::Sealed;
use crate::{agents, hooks, mcp};
use found::Candidate;
use manifest::Manifest;
use told::fault;

/// Where plugins of this user in this folder may be. All absolute.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    pub home: &'a Path,
    pub project: &'a Path,
    /// Those of `--plugin-dir`.
    pub given: &'a [PathBuf],
    /// What settings say of them, by id.
    pub enabled: &'a BTreeMap<String, bool>,
}

/// What a variable holds.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How a plugin came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// `--plugin-dir`: for this session.
    Flag,
    /// `cocode plugin install`.
    Installed,
    /// Claude Code installed it.
    ClaudeCode,
    /// It lies among the user's skills.
    Skills,
    /// It lies among the project's skills.
    Project,
}

/// Whether a plugin is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    On,
    Off,
    /// The project brings it along, and the user has not agreed to it.
    Waiting,
    /// Its faults say why.
    Unusable,
    /// A stronger plugin has its name: the id of that one.
    Shadowed(String),
}

/// One plugin.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// `name@marketplace`.
    pub id: String,
    /// Its folder, where it really is.
    pub root: PathBuf,
    /// What it keeps over updates; may not exist yet.
    pub data: PathBuf,
    pub from: From,
    pub version: Option<String>,
    pub standing: Standing,
    pub manifest: Manifest,
    pub faults: Vec<Fault>,
    /// All of it that runs or grants something; of one that is off, nothing.
    pub uses: Vec<Use>,
    /// The user agreed to all of `uses`.
    pub trusted: bool,
    /// Its skills as they are typed; of one that is off, nothing.
    pub skills: Vec<String>,
    /// Files that its hooks run, by line.
    sealed: BTreeMap<String, Sealed>,
    /// Files that its servers run, by name.
    served: BTreeMap<String, Sealed>,
}

/// All plugins, the stronger ones first.
#[derive(Debug, Clone, Default)]
pub struct Plugins {
    pub all: Vec<Plugin>,
    /// What is wrong beside them.
    pub faults: Vec<Fault>,
}

/// Finds and reads every plugin. What is wrong with one costs nothing but itself.
pub fn load(sources: Sources<'_>, trust: &Trust) -> Plugins {
    let found::Found { candidates, mut faults } = found::find(sources);
    let mut names: HashMap<String, String> = HashMap::new();
    let mut all: Vec<Plugin> = Vec::new();
    for candidate in candidates {
        // One folder that is found in two ways is one plugin.
        if all.iter().any(|plugin| plugin.root == candidate.root) {
            continue;
        }
        let mut plugin = Plugin::read(candidate, sources);
        if plugin.standing == Standing::On {
            match names.get(&plugin.manifest.name.to_lowercase()) {
                Some(first) => {
                    let what = format!("has the name of {first}");
                    let words = [what.as_str(), "it does not load", "disable one of them"];
                    plugin.faults.push(fault(&plugin.root, Severity::Error, words));
                    plugin.standing = Standing::Shadowed(first.clone());
                }
                None => {
                    names.insert(plugin.manifest.name.to_lowercase(), plugin.id.clone());
                    plugin.find_uses(sources.project, trust);
                }
            }
        }
        all.push(plugin);
    }
    let known = |id: &&String| all.iter().any(|plugin| plugin.id == **id);
    for id in sources.enabled.iter().filter(|(_, on)| **on).map(|(id, _)| id).filter(|id| !known(id)) {
        let words =
            ["is enabled and not installed", "nothing of it is loaded", "install it, or take it out of the settings"];
        faults.push(fault(Path::new(id), Severity::Error, words));
    }
    Plugins { all, faults }
}

/// Reads the plugin in a folder alone, for a check of it.
///
/// # Errors
/// There is no such folder.
pub fn read_one(folder: &Path, home: &Path) -> std::io::Result<Plugin> {
    let root = folder.canonicalize()?;
    let candidate = Candidate { from: From::Flag, root, id: None, entry: None, version: None };
    let enabled = BTreeMap::new();
    let mut plugin = Plugin::read(candidate, Sources { home, project: folder, given: &[], enabled: &enabled });
    plugin.find_uses(folder, &Trust::default());
    Ok(plugin)
}

impl Plugin {
    fn read(candidate: Candidate, sources: Sources<'_>) -> Plugin {
        let Candidate { from, root, id, entry, version } = candidate;
        let folder = || root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let called = id.as_deref().and_then(|id| id.split_once('@')).map_or_else(folder, |(name, _)| name.to_owned());
        let (manifest, faults) = manifest::read(&root, &called, entry.as_ref());
        let usable = manifest.is_some();
        let manifest = manifest.unwrap_or_else(|| Manifest { name: called, ..Manifest::default() });
        let place = match from {
            From::Flag => "inline",
            _ => "skills-dir",
        };
        let id = id.unwrap_or_else(|| format!("{}@{place}", manifest.name));
        let on = from == From::Flag || sources.enabled.get(&id).copied().unwrap_or(manifest.default_enabled);
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        Plugin {
            data: match from {
                // Claude Code may have one of the same name, and that is its own.
                From::Installed => store::data_of(sources.home, &id),
                _ => sources.home.join("plugins/data").join(id.chars().map(plain).collect::<String>()),
            },
            standing: match (usable, on) {
                (false, _) => Standing::Unusable,
                (true, true) => Standing::On,
                (true, false) => Standing::Off,
            },
            version: manifest.version.clone().or(version),
            trusted: false,
            uses: Vec::new(),
            skills: Vec::new(),
            sealed: BTreeMap::new(),
            served: BTreeMap::new(),
            id,
            root,
            from,
            manifest,
            faults,
        }
    }

    fn find_uses(&mut self, project: &Path, trust: &Trust) {
        if self.from == From::Project {
            let place = self.root.strip_prefix(project).unwrap_or(&self.root).display().to_string();
            let line = format!("plugin {}: the plugin of this folder in {place}", self.manifest.name);
            let gate = Use::new(format!("plugin {}", self.id), crate::stdx::ansi::shown(&line), &place);
            if !trust.covers(&gate) {
                self.standing = Standing::Waiting;
            }
            self.uses.push(gate);
        }
        let skills = discover_plugin(&self.for_skills()).skills;
        self.skills = skills.iter().map(|skill| format!("{}:{}", self.manifest.name, skill.name)).collect();
        let uses::Found { uses, sealed, served, faults } = uses::of(self, &skills);
        self.uses.extend(uses);
        self.faults.extend(faults);
        self.trusted = self.uses.iter().all(|used| trust.covers(used));
        (self.sealed, self.served) = (sealed, served);
    }

    /// Its servers, each with the files that it runs. They are called after the plugin.
    ///
    /// # Errors
    /// Of each: why it cannot be used.
    pub fn servers<'a>(
        &'a self,
        project: &'a Path,
        variable: Option<Variable<'a>>,
        told: &'a mut dyn FnMut(&str, String),
    ) -> impl Iterator<Item = (&'a manifest::Server, Result<mcp::Definition, String>)> {
        let known = move |name: &str| {
            // Without variables it is read as it is written.
            let variable = variable?;
            let text = |path: &Path| Some(path.to_string_lossy().into_owned());
            match name {
                "CLAUDE_PLUGIN_ROOT" | "COCODE_PLUGIN_ROOT" => text(&self.root),
                "CLAUDE_PLUGIN_DATA" | "COCODE_PLUGIN_DATA" => text(&self.data),
                "CLAUDE_PROJECT_DIR" | "COCODE_PROJECT_DIR" => text(project),
                _ => variable(name),
            }
        };
        self.manifest.servers.iter().filter_map(move |server| {
            let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
            let name: String = format!("plugin_{}_{}", self.manifest.name, server.name).chars().map(plain).collect();
            let place = server.file.display().to_string();
            let at = (mcp::Scope::Plugin, place.as_str());
            let read = mcp::Definition::read(&name, &server.entry, at, &known, &mut |text| told(&server.name, text));
            let folders = [("CLAUDE_PLUGIN_ROOT", &self.root), ("CLAUDE_PLUGIN_DATA", &self.data)];
            let whole = |mut definition: mcp::Definition| {
                if let mcp::Way::Program { env, .. } = &mut definition.way
                    && variable.is_some()
                {
                    for (name, folder) in folders {
                        env.entry(name.to_owned()).or_insert_with(|| folder.to_string_lossy().into_owned());
                    }
                }
                definition.runs = self.served.get(&server.name).cloned().unwrap_or_default();
                definition
            };
            Some((server, read.transpose()?.map(whole)))
        })
    }

    /// As the loader of skills takes it.
    pub fn for_skills(&self) -> Arc<commands::Plugin> {
        Arc::new(commands::Plugin {
            name: self.manifest.name.clone(),
            id: self.id.clone(),
            root: self.root.clone(),
            data: self.data.clone(),
            skills: self.manifest.skills.clone(),
            commands: self.manifest.commands.clone(),
        })
    }

    /// As the loader of agents takes it.
    pub(crate) fn for_agents(&self) -> agents::Plugin {
        agents::Plugin {
            name: self.manifest.name.clone(),
            root: self.root.clone(),
            data: self.data.clone(),
            paths: self.manifest.agents.clone(),
        }
    }

    /// Whether what it does is agreed to with the project that brings it along, and not for the user everywhere.
    pub fn of_project(&self) -> bool {
        self.from == From::Project
    }
}

impl Plugins {
    /// Those that are loaded; what of them runs takes the user's word.
    pub fn loaded(&self) -> impl Iterator<Item = &Plugin> {
        self.all.iter().filter(|plugin| plugin.standing == Standing::On)
    }

    pub fn for_skills(&self) -> Vec<Arc<commands::Plugin>> {
        self.loaded().map(Plugin::for_skills).collect()
    }

    pub(crate) fn for_agents(&self) -> Vec<agents::Plugin> {
        self.loaded().map(Plugin::for_agents).collect()
    }

    /// The hooks of those that the user trusts.
    pub fn hooks(&self) -> impl Iterator<Item = hooks::Given> {
        let trusted = self.loaded().filter(|plugin| plugin.trusted && !plugin.manifest.hooks.0.is_empty());
        trusted.map(|plugin| hooks::Given {
            origin: hooks::Origin::Plugin(plugin.id.clone()),
            root: Some(plugin.root.clone()),
            data: Some(plugin.data.clone()),
            definitions: plugin.manifest.hooks.clone(),
            sealed: plugin.sealed.clone(),
        })
    }

    /// All that runs or grants something.
    pub fn uses(&self) -> impl Iterator<Item = &Use> {
        self.all.iter().flat_map(|plugin| &plugin.uses)
    }

    /// What of them does not work, by plugin or place.
    pub fn errors(&self) -> Vec<(String, String)> {
        let bad = |faults: &[Fault]| -> Vec<Fault> {
            faults.iter().filter(|fault| fault.severity == Severity::Error).cloned().collect()
        };
        let beside = bad(&self.faults).into_iter().map(|fault| (fault.file.display().to_string(), fault));
        let on = self.all.iter().filter(|plugin| plugin.standing != Standing::Off);
        let of = on.flat_map(|plugin| bad(&plugin.faults).into_iter().map(|fault| (plugin.id.clone(), fault)));
        beside.chain(of).map(|(place, fault)| (place, fault.to_string())).collect()
    }

    /// By id, or by a name that one plugin alone has.
    pub fn named(&self, name: &str) -> Option<&Plugin> {
        let by_id = self.all.iter().find(|plugin| plugin.id == name);
        by_id.or_else(|| {
            let mut called = self.all.iter().filter(|plugin| plugin.manifest.name == name);
            called.next().filter(|_| called.next().is_none())
        })
    }
}
