//! The configuration: layers from defaults to policy, merged, with the source of every value.
//!
//! Two phases, so that the first frame waits for nothing: `load` reads what is the user's own, `Loaded::with_project`
//! adds what lies in the folder.

mod aliases;
mod claude;
pub mod docs;
pub mod edit;
mod explain;
pub mod grant;
mod json;
mod layer;
mod listed;
pub mod logging;
mod models;
pub mod paths;
mod providers;
mod rules;
pub mod servers;
pub mod settings;
mod shape;
pub mod styles;
pub mod themes;
pub mod thinking;
pub mod trust;
mod uses;
mod variables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::{Table, Value};

pub use layer::{Problem, Source};
pub use rules::RuleText;
pub use servers::Servers;
pub use settings::Config;

use crate::hooks::{self, Origin, Switch};
use crate::permission::{self, Behavior, GitHooks, Trust, Use};
use crate::plugins::{self, Plugins};
use crate::stdx::git::{User, Variables};
use crate::stdx::sealed::Sealed;
use layer::{Known, Layer, dollars, leaves, merge, path_of};
use paths::{Env, Paths};
use shape::Shape;
use uses::Place;

/// Every default, commented.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Sources of the user or the administrator that cannot be used: nothing may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub Vec<Problem>);

impl std::error::Error for Broken {}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if index > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// The configuration with its history.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// All permission rules, lowest source first.
    pub rules: Vec<RuleText>,
    /// Problems that did not stop the start.
    pub diagnostics: Vec<Problem>,
    /// Files that could not be used, of the project or the user's settings.json. What they could have denied must ask.
    pub broken: Vec<(Source, PathBuf)>,
    /// Everything in the folder's settings that needs the user's word: all but deny and ask rules.
    pub uses: Vec<Use>,
    /// What of it is not used, as `key = value (place)`.
    pub withheld: Vec<String>,
    /// The hooks of git that the user agreed to.
    pub git_hooks: GitHooks,
    /// Servers of the Model Context Protocol; those of the project are added with it.
    pub servers: Servers,
    origin: Arc<servers::Origin>,
    /// Those of the user and of the folder; none before the folder was looked at.
    pub plugins: Plugins,
    /// Folders of plugins that were named for this session.
    pub plugin_dirs: Vec<PathBuf>,
    home: PathBuf,
    merged: Table,
    layers: Vec<Layer>,
    user_home: Option<PathBuf>,
}

/// Loads defaults, managed and user files, environment, flags and policy. Reads at most four small files.
///
/// # Errors
/// One of these sources is broken or contains an unknown setting.
pub fn load(paths: &Paths, env: &Env, flags: Table) -> Result<Loaded, Broken> {
    let mut problems = Vec::new();
    let (mut diagnostics, mut broken) = (Vec::new(), Vec::new());
    let mut layers = vec![Layer::parse(Source::Default, None, DEFAULTS).map_err(|problem| Broken(vec![problem]))?];
    // Before the user's config.toml, which wins over it.
    match models::read(Source::User, &paths.config_dir.join(models::FILE)) {
        Ok(layer) => layers.extend(layer),
        Err(problem) => problems.push(problem),
    }
    // Of two policies our own counts more: it comes later.
    for (source, file) in
        [(Source::Policy, paths.managed_settings.clone()), (Source::UserSettings, paths.user_settings())]
    {
        match claude::read(source, &file) {
            Ok(Some((layer, left_out))) => {
                layers.push(layer);
                diagnostics.extend(left_out);
            }
            Ok(None) => {}
            // Another program's file must not keep this one from starting; a policy that cannot be read must.
            Err(problem) if source == Source::UserSettings => {
                diagnostics.push(problem);
                broken.push((source, file));
            }
            Err(problem) => problems.push(problem),
        }
    }
    for (source, file) in [
        (Source::ManagedDefaults, paths.managed_dir.join("config.toml")),
        (Source::User, paths.user_config()),
        (Source::Policy, paths.managed_dir.join("policy.toml")),
    ] {
        match Layer::read(source, &file) {
            Ok(layer) => layers.extend(layer),
            Err(problem) => problems.push(problem),
        }
    }
    // The schema costs more than all the rest: it is made only when there is something to check.
    if layers.len() > 1 {
        let shape = Shape::new();
        problems.extend(layers.iter().skip(1).flat_map(|layer| layer.check(&shape)));
    }
    match Layer::environment(env, &Shape::new) {
        Ok((layer, odd)) => {
            layers.push(layer);
            diagnostics.extend(odd);
        }
        Err(wrong) => problems.extend(wrong),
    }
    problems.extend(thinking::environment(env).err().into_iter().flatten());
    layers.push(Layer::new(Source::Flags, flags));
    if !problems.is_empty() {
        return Err(Broken(problems));
    }
    let loaded = Loaded::assemble(layers, diagnostics, paths.user_home.clone()).map_err(Broken)?;
    let origin = servers::Origin { file: servers::own_file(paths), env: env.clone(), ..Default::default() };
    let loaded = Loaded { broken, home: paths.home.clone(), origin: Arc::new(origin), ..loaded };
    match themes::check(paths, &loaded.config.tui.theme) {
        Ok(()) => Ok(loaded),
        Err(message) => {
            let layer = loaded.layers.iter().rev().find(|layer| find(&layer.table, &path_of("tui.theme")).is_some());
            let place = layer.map_or_else(|| "configuration".to_owned(), |layer| layer.place("tui.theme"));
            Err(Broken(vec![Problem { place, message }]))
        }
    }
}

impl Loaded {
    /// Adds the settings that lie in `project`, as far as the user agreed to them: every file is read once, and what was read
    /// is compared with what was agreed to. What is broken there is reported and left out: single settings, and whole files
    /// where what is wrong could have denied something.
    pub fn with_project(&self, project: &Path, trust: &Trust) -> Loaded {
        let own: Vec<Layer> = self.layers.iter().filter(|layer| !layer.source.of_project()).cloned().collect();
        let mut diagnostics = self.diagnostics.clone();
        let (mut layers, mut broken, mut uses) = (own.clone(), self.broken.clone(), Vec::new());
        for (source, name) in [
            (Source::ProjectSettings, ".claude/settings.json"),
            (Source::Project, ".cocode/models.json"),
            (Source::Project, ".cocode/config.toml"),
            (Source::LocalSettings, ".claude/settings.local.json"),
            (Source::Local, ".cocode/config.local.toml"),
        ] {
            let file = project.join(name);
            // With `~` as project, its `.claude` is the user's own and is read already.
            if own.iter().any(|layer| layer.file.as_ref() == Some(&file)) {
                continue;
            }
            match read_project(source, project, &file) {
                Ok(Some((mut layer, left_out))) => {
                    diagnostics.extend(left_out);
                    let known = |name: &str| {
                        let path = ["providers".to_owned(), name.to_owned()];
                        let mut sources =
                            own.iter().filter(|layer| find(&layer.table, &path).is_some()).map(|layer| layer.source);
                        let first = sources.next()?;
                        Some(if first == Source::Default && sources.next().is_none() {
                            Known::BuiltIn
                        } else {
                            Known::Own
                        })
                    };
                    diagnostics.extend(layer.without_redirects(&known));
                    uses.extend(uses::withhold(&mut layer, Place { project, name }, trust));
                    let limit = |key: &str| {
                        own.iter().rev().find_map(|layer| find(&layer.table, &path_of(key))).and_then(dollars)
                    };
                    diagnostics.extend(layer.without_raises(&limit));
                    layers.push(layer);
                }
                Ok(None) => {}
                Err(problems) => {
                    diagnostics.extend(problems);
                    broken.push((source, file));
                }
            }
        }
        let merged = Loaded::assemble(layers, diagnostics.clone(), self.user_home.clone());
        let loaded = merged.unwrap_or_else(|problems| {
            // Each file is fine alone, but not together with the others: a provider without its address.
            let files = [(Source::Project, ".cocode/config.toml"), (Source::Local, ".cocode/config.local.toml")];
            let files = files.map(|(source, name)| (source, project.join(name)));
            broken = self.broken.iter().cloned().chain(files.into_iter().filter(|(_, file)| file.exists())).collect();
            diagnostics.extend(problems);
            Loaded { diagnostics, ..self.clone() }
        });
        // Elsewhere git asks, and the answer is about the command.
        let user = User { home: self.user_home.as_deref(), variables: &Variables::default() };
        let hooks = loaded.starts_git().then(|| GitHooks::found(project, user)).flatten();
        let mut git_hooks = GitHooks::default();
        if let Some((used, hooks)) = hooks {
            git_hooks = if trust.covers(&used) { hooks } else { git_hooks };
            uses.push(used);
        }
        let Config { mcp, env, .. } = &loaded.config;
        let (home, given, enabled) = (&*self.home, &*self.plugin_dirs, &loaded.config.plugins.enabled);
        let plugins = plugins::load(plugins::Sources { home, project, given, enabled }, trust);
        let found = servers::find(&self.origin, mcp, (env, &self.rules), (project, &plugins), trust);
        let servers::Read { servers, problems, uses: more } = found;
        uses.extend(more);
        uses.extend(plugins.uses().cloned());
        let withheld = uses.iter().filter(|used| !trust.covers(used)).map(|used| used.line.clone()).collect();
        let (diagnostics, origin) = ([loaded.diagnostics, problems].concat(), self.origin.clone());
        let (home, plugin_dirs) = (self.home.clone(), self.plugin_dirs.clone());
        Loaded { broken, uses, withheld, git_hooks, servers, origin, diagnostics, plugins, home, plugin_dirs, ..loaded }
    }

    /// With what flags say of servers.
    #[must_use]
    pub fn with_flags(self, flags: servers::Flags) -> Loaded {
        let origin = servers::Origin { flags, ..(*self.origin).clone() };
        Loaded { origin: Arc::new(origin), ..self }
    }

    /// With further servers, as `--mcp-config` would give them.
    #[must_use]
    pub fn with_servers(self, config: String) -> Loaded {
        let servers::Flags { mut configs, strict } = self.origin.flags.clone();
        configs.push(config);
        self.with_flags(servers::Flags { configs, strict })
    }

    /// The providers that somebody has set up, the defaults aside.
    pub fn own_providers(&self) -> Vec<String> {
        let given = self.layers.iter().filter(|layer| layer.source != Source::Default);
        let tables = given.filter_map(|layer| layer.table.get("providers")?.as_table());
        let named =
            tables.flat_map(|providers| providers.iter().filter(|(_, provider)| providers::leads_somewhere(provider)));
        named.map(|(name, _)| name.to_owned()).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Files of the project that what the user agreed to runs.
    pub fn runs(&self) -> Vec<PathBuf> {
        let sealed = self
            .layers
            .iter()
            .flat_map(|layer| layer.runs.values())
            .chain(self.servers.wanted.iter().map(|server| &server.runs));
        let files = sealed.chain([self.git_hooks.runs()]).flat_map(Sealed::paths);
        files.map(Path::to_owned).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Whether a rule for all folders lets git run.
    fn starts_git(&self) -> bool {
        let everywhere = |rule: &&RuleText| {
            use permission::Source::{Config, Managed, User};
            rule.behavior == Behavior::Allow && matches!(rule.source, Managed | User | Config)
        };
        self.rules.iter().filter(everywhere).any(|rule| {
            let command = rule.text.split_once('(').map_or("", |(_, command)| command);
            command.starts_with('*') || ["git", "gh", "glab", "hub"].iter().any(|name| command.contains(name))
        })
    }

    /// Whether a file of the project could not be used.
    pub fn project_broken(&self) -> bool {
        self.broken.iter().any(|(source, _)| source.of_project())
    }

    /// Every key that is set, tables excluded, in the order of their names.
    pub fn given_keys(&self) -> Vec<String> {
        let mut keys = std::collections::BTreeSet::new();
        for layer in self.layers.iter().filter(|layer| layer.source != Source::Default) {
            leaves(&layer.table, "", &mut |key, _| keys.extend([key.to_owned()]));
        }
        keys.into_iter().collect()
    }

    /// The same sources with the user's configuration file as it is now. Without the project's.
    ///
    /// # Errors
    /// The file is broken.
    pub fn read_again(&self, paths: &Paths) -> Result<Loaded, Broken> {
        let one = |problem| Broken(vec![problem]);
        let mut layers: Vec<Layer> = self
            .layers
            .iter()
            .filter(|layer| !layer.source.of_project() && layer.source != Source::User)
            .cloned()
            .collect();
        if let Some(layer) = Layer::read(Source::User, &paths.user_config()).map_err(one)? {
            let problems = layer.check(&Shape::new());
            if !problems.is_empty() {
                return Err(Broken(problems));
            }
            layers.push(layer);
        }
        let loaded = Loaded::assemble(layers, self.diagnostics.clone(), self.user_home.clone()).map_err(Broken)?;
        let (home, plugin_dirs, origin) = (self.home.clone(), self.plugin_dirs.clone(), self.origin.clone());
        Ok(Loaded { broken: self.broken.clone(), home, plugin_dirs, origin, ..loaded })
    }

    /// The hooks of all files, lowest source first, and which of them run.
    pub fn hooks(&self) -> (Vec<hooks::Given>, Switch) {
        let given = |layer: &Layer| {
            let file = layer.file.clone();
            let origin = match (layer.source, file) {
                (Source::Default | Source::ManagedDefaults | Source::Policy, file) => {
                    Origin::Managed(file.unwrap_or_default())
                }
                (Source::UserSettings | Source::User, Some(file)) => Origin::User(file),
                (_, Some(file)) if layer.source.of_project() => Origin::Project(file),
                _ => Origin::CommandLine,
            };
            // What cannot be read was reported, and the file was left out.
            let definitions = layer.hooks().unwrap_or_default();
            (!definitions.0.is_empty()).then_some(hooks::Given {
                origin,
                root: None,
                data: None,
                definitions,
                sealed: layer.runs.clone(),
            })
        };
        let policy = self.layers.iter().filter(|layer| layer.source == Source::Policy);
        let says = |key: &str| policy.clone().any(|layer| layer.table.get(key) == Some(&Value::Boolean(true)));
        let switch = match (says("disable_all_hooks"), self.config.disable_all_hooks || says("managed_hooks_only")) {
            (true, _) => Switch::Off,
            (false, true) => Switch::ManagedOnly,
            (false, false) => Switch::On,
        };
        (self.layers.iter().filter_map(given).chain(self.plugins.hooks()).collect(), switch)
    }

    /// Files with hooks that should stop something and do not run, with their events.
    pub fn unguarded(&self) -> Vec<(PathBuf, Vec<hooks::Event>)> {
        let layers = self.layers.iter().filter(|layer| !layer.unguarded.is_empty());
        layers.filter_map(|layer| Some((layer.file.clone()?, layer.unguarded.clone()))).collect()
    }

    fn assemble(
        mut layers: Vec<Layer>,
        diagnostics: Vec<Problem>,
        user_home: Option<PathBuf>,
    ) -> Result<Loaded, Vec<Problem>> {
        layers.sort_by_key(|layer| layer.source);
        let mut merged = Table::new();
        for layer in &layers {
            merge(&mut merged, &layer.table);
        }
        let incomplete = providers::incomplete(&merged, &layers);
        if !incomplete.is_empty() {
            return Err(incomplete);
        }
        let mut config: Config = Value::Table(merged.clone()).try_into().map_err(|error: toml::de::Error| {
            vec![Problem { place: "configuration".into(), message: error.message().into() }]
        })?;
        for provider in config.providers.values_mut() {
            provider.base_url.truncate(provider.base_url.trim_end_matches('/').len());
        }
        // A file that forbids it is not overruled by a nearer one.
        let forbids =
            |key: &str| layers.iter().any(|layer| find(&layer.table, &path_of(key)) == Some(&Value::Boolean(true)));
        config.permissions.disable_bypass = forbids("permissions.disable_bypass");
        config.permissions.block_outside_reads = forbids("permissions.block_outside_reads");
        config.permissions.block_outside_writes = forbids("permissions.block_outside_writes");
        config.permissions.deny_instead_of_asking = forbids("permissions.deny_instead_of_asking");
        for folder in &mut config.permissions.additional_directories {
            if let (Ok(rest), Some(home)) = (folder.strip_prefix("~"), &user_home) {
                *folder = home.join(rest);
            }
        }
        let rules = layers.iter().flat_map(rules::of).collect();
        Ok(Loaded {
            config,
            rules,
            diagnostics,
            broken: Vec::new(),
            uses: Vec::new(),
            withheld: Vec::new(),
            git_hooks: GitHooks::default(),
            servers: Servers::default(),
            origin: Arc::default(),
            plugins: Plugins::default(),
            plugin_dirs: Vec::new(),
            home: PathBuf::new(),
            merged,
            layers,
            user_home,
        })
    }
}

/// A usable layer of the project with what was left out of it, or all that is wrong with the file.
fn read_project(source: Source, project: &Path, file: &Path) -> Result<Option<(Layer, Vec<Problem>)>, Vec<Problem>> {
    let one = |problem| vec![problem];
    if let (Ok(real), Ok(project)) = (file.canonicalize(), project.canonicalize())
        && !real.starts_with(project)
    {
        let message = format!("is a link to {}, outside the project: put the settings into this file", real.display());
        return Err(vec![Problem { place: file.display().to_string(), message }]);
    }
    if matches!(source, Source::ProjectSettings | Source::LocalSettings) {
        return claude::read(source, file).map_err(one);
    }
    let read = if file.ends_with(models::FILE) { models::read(source, file) } else { Layer::read(source, file) };
    let Some(mut layer) = read.map_err(one)? else { return Ok(None) };
    let shape = Shape::new();
    let left_out = layer.without_faults(&shape);
    let problems = layer.check(&shape);
    if problems.is_empty() { Ok(Some((layer, left_out))) } else { Err(problems) }
}

fn find<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first)?, |value, name| value.as_table()?.get(name))
}
