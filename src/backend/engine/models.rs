//! Which models there are, and which one is asked.

mod door;

use std::sync::Arc;

use self::door::Doors;
use crate::agent::skill_runs::Lookup;
use crate::agent::{Model, Presence};
use crate::config::paths::{Env, Paths};
use crate::config::{Config, Loaded};
use crate::message::Usage;
use crate::provider::Provider;
use crate::provider::catalog::{Catalog, ModelSpec};
use crate::provider::http::{Client, HttpProvider, Timeouts};
use crate::provider::key::{self, Key};
use crate::provider::offline::{self, Offline};
use crate::provider::probe::{self, Found};
use crate::provider::settings::{ProviderSettings, WireName};

/// The order in which providers are tried when none is named.
const ORDER: [&str; 3] = ["anthropic", "openai", "gemini"];
/// Names that mean a model of each provider's own.
const ROLES: [&str; 3] = ["haiku", "sonnet", "opus"];
/// Name of the provider that a local server is.
const LOCAL: &str = "local";
/// Name of the offline model and of its provider.
pub const OFFLINE: &str = "offline";

/// Providers, their keys and the catalog.
#[derive(Clone)]
pub(super) struct Models {
    config: Config,
    /// Providers that somebody has set up: with one of them nothing is left to chance.
    set_up: Vec<String>,
    env: Env,
    paths: Paths,
    catalog: Catalog,
    client: Client,
    /// A local server that the user agreed to.
    local: Option<ProviderSettings>,
    script: Option<Arc<dyn Provider>>,
    doors: Doors,
}

/// A provider for a local server.
fn local_settings(found: &Found) -> ProviderSettings {
    ProviderSettings {
        key_header: Default::default(),
        wire: found.wire,
        base_url: found.base_url.clone(),
        api_key_env: None,
        api_key_command: None,
        headers: Default::default(),
        ca_file: None,
        models: Default::default(),
        default_model: Some(found.model.clone()),
    }
}

/// The built-in models with the rows of the configuration.
fn catalog(config: &Config) -> Catalog {
    let catalog = Catalog::builtin();
    // Checked against the schema when the settings were read; a row that does not fit leaves the built-in one.
    catalog.with_overrides(config.models.clone()).unwrap_or(catalog)
}

fn timeouts(config: &Config) -> Timeouts {
    let network = &config.network;
    let (connect, idle, local_idle) = (network.connect_timeout(), network.idle_timeout(), network.local_idle_timeout());
    Timeouts { connect, idle, local_idle, ..Timeouts::default() }
}

impl Models {
    pub(super) fn new(loaded: &Loaded, env: Env, paths: Paths, script: Option<Arc<dyn Provider>>) -> Models {
        let config = loaded.config.clone();
        let (catalog, client) = (catalog(&config), Client::new(timeouts(&config)));
        Models {
            config,
            set_up: loaded.own_providers(),
            env,
            paths,
            catalog,
            client,
            local: None,
            script,
            doors: Doors::default(),
        }
    }

    /// The model that is asked when none is named; none when only a local server or the offline model is left.
    ///
    /// # Errors
    /// The configured model cannot be used; the text names the fix.
    pub(super) fn configured(&self) -> Result<Option<Model>, String> {
        if self.script.is_some() {
            return Ok(Some(self.offline()));
        }
        if let Some(name) = &self.config.model {
            return self.named(name).map(Some);
        }
        let own = || self.set_up.iter().find_map(|name| self.config.providers.get_key_value(name));
        let Some((name, settings)) = self.keyed().or_else(|| own().map(|(name, settings)| (name.as_str(), settings)))
        else {
            return Ok(None);
        };
        match &settings.default_model {
            Some(id) => {
                let model = self.of(name, settings, &self.role(name, settings, id));
                let Some(why) = self.refused(&model) else { return Ok(Some(model)) };
                // The first that may be used takes its place.
                let others = self.config.available_models.iter().filter_map(|other| self.named(other).ok());
                others.into_iter().next().map(Some).ok_or(why)
            }
            None => Err(format!(
                "no model is chosen: provider {name} has no `default_model`. Set it, or start with `--model {name}/<model>`"
            )),
        }
    }

    /// The same at the start of a session in a folder whose settings are `withheld` until the user trusts it.
    ///
    /// # Errors
    /// Also where the folder names the model and nobody can be asked: a script would take the offline model's words for
    /// those of the model that the folder means.
    pub(super) fn wanted(&self, withheld: &[String], presence: Presence) -> Result<Option<Model>, String> {
        let meant = |line: &&String| line.starts_with("model = ") || line.starts_with("providers.");
        match (self.configured()?, withheld.iter().find(meant)) {
            (None, Some(line)) if presence == Presence::Unattended => Err(format!(
                "no key is set, and the model that this folder names needs your trust: {line}. Add --trust to use it, or --offline for the offline model"
            )),
            (chosen, _) => Ok(chosen),
        }
    }

    /// The first provider that has a key.
    fn keyed(&self) -> Option<(&str, &ProviderSettings)> {
        let rest = self.config.providers.keys().map(String::as_str).filter(|name| !ORDER.contains(name));
        ORDER.into_iter().chain(rest).find_map(|name| {
            let (name, settings) = self.config.providers.get_key_value(name)?;
            self.has_key(name, settings).then_some((name.as_str(), settings))
        })
    }

    fn has_key(&self, name: &str, settings: &ProviderSettings) -> bool {
        settings.api_key_command.is_some() || self.key_value(settings).is_some() || self.key(name, settings).stored()
    }

    /// The key in the environment, or below `[env]`.
    fn key_value(&self, settings: &ProviderSettings) -> Option<&str> {
        let name = settings.api_key_env.as_deref()?;
        let given = self.env.get(name).or_else(|| self.config.env.get(name).map(String::as_str));
        given.filter(|value| !value.trim().is_empty())
    }

    fn key(&self, name: &str, settings: &ProviderSettings) -> Key {
        let credentials = self.paths.config_dir.join(key::FILE);
        let key = Key::new(name, settings, self.key_value(settings), Some(credentials));
        match settings.api_key_env.as_deref() {
            // A project's gateway.
            Some("") => key.hiding(self.config.secret_env()),
            _ => key,
        }
    }

    /// Finds `[provider/]id`, a role, or `offline`.
    ///
    /// # Errors
    /// Nothing of that name can be asked; the text names the fix.
    pub(super) fn named(&self, name: &str) -> Result<Model, String> {
        let model = self.found_by_name(name)?;
        match self.refused(&model) {
            None => Ok(model),
            Some(why) => Err(why),
        }
    }

    /// Why settings do not let a model be asked; the offline model always may be.
    fn refused(&self, model: &Model) -> Option<String> {
        let Config { available_models: available, denied_models: denied, .. } = &self.config;
        if model.provider_name == OFFLINE || available.is_empty() && denied.is_empty() {
            return None;
        }
        let meant = |word: &String| self.means(word, model);
        if denied.iter().any(meant) {
            return Some(format!("{} may not be used: `denied_models` lists it", model.name()));
        }
        (!available.is_empty() && !available.iter().any(meant)).then(|| {
            format!("{} may not be used: `available_models` only lists {}", model.name(), available.join(", "))
        })
    }

    /// Whether a word of the lists means a model: its id or the beginning of it, with or without the provider, or its family.
    fn means(&self, word: &str, model: &Model) -> bool {
        let word = word.strip_suffix("[1m]").unwrap_or(word);
        let id = model.id.rsplit('/').next().unwrap_or_default();
        let begins = |id: &str| id.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        let family = ROLES.contains(&word) && id.split(['-', '.']).any(|part| part == word);
        let role = || self.provider(&model.provider_name).map(|(name, settings)| self.role(name, settings, word));
        begins(id) || begins(&model.name()) || family || ROLES.contains(&word) && role().as_deref() == Some(&model.id)
    }

    fn found_by_name(&self, name: &str) -> Result<Model, String> {
        // Claude Code's words: the suffix asks for a window, which the catalog knows, and the last one for a model in plan
        // mode and another after it, where one does both here.
        let name = name.strip_suffix("[1m]").unwrap_or(name);
        let plans = |name: &&str| name.split('/').next_back() == Some("opus");
        let name = name.strip_suffix("plan").filter(plans).unwrap_or(name);
        if name.split('/').next() == Some(OFFLINE) {
            return Ok(self.offline());
        }
        if let Some((first, id)) = name.split_once('/')
            && let Some((provider, settings)) = self.provider(first)
        {
            return Ok(self.of(provider, settings, &self.role(provider, settings, id)));
        }
        // Slashes may be part of an id, where an endpoint lists it or a gateway of many vendors is asked.
        let gateway = |(provider, settings): &(&str, &ProviderSettings)| {
            settings.wire == WireName::OpenaiChat || self.doors.told(provider, name).is_some()
        };
        if let Some((first, _)) = name.split_once('/').filter(|_| !self.keyed().is_some_and(|keyed| gateway(&keyed)))
            && self.local.is_none()
        {
            let names: Vec<&str> = self.config.providers.keys().map(String::as_str).collect();
            return Err(format!(
                "there is no provider {first:?}: choose one of {}, or name the provider first, as in `{}/{name}`",
                names.join(", "),
                self.keyed().map_or("anthropic", |(provider, _)| provider)
            ));
        }
        // A bare id goes to the provider whose wire the catalog knows it from, when that one has a key.
        let known = self.config.providers.iter().find(|(provider, settings)| {
            self.catalog.get(settings.wire, name).known && self.has_key(provider, settings)
        });
        let chosen = known.map(|(provider, settings)| (provider.as_str(), settings)).or_else(|| self.keyed());
        let chosen = chosen.or_else(|| self.local.as_ref().map(|settings| (LOCAL, settings)));
        match chosen {
            Some((provider, settings)) => Ok(self.of(provider, settings, &self.role(provider, settings, name))),
            None => Err(format!(
                "no provider for {name:?}: no key is set. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, \
                 name a provider as in `--model anthropic/{name}`, or use `--model offline`"
            )),
        }
    }

    /// Finds models for skills. A script plays all of them.
    pub(super) fn lookup(&self) -> Lookup {
        let models = self.clone();
        Arc::new(move |name| {
            let model = match models.script {
                Some(_) => Model { id: name.to_owned(), ..models.offline() },
                None => models.named(name)?,
            };
            let tools = models.config.tool_settings(&model.spec);
            Ok((model, tools))
        })
    }

    /// The model that an earlier session was left with; none when it cannot be asked anymore.
    pub(super) fn earlier(&self, name: &str) -> Option<Model> {
        let (first, id) = name.split_once('/')?;
        // What was answered without a model is better answered with one.
        let (provider, settings) = self.provider(first).filter(|_| self.script.is_none())?;
        let usable = settings.api_key_env.is_none() || self.has_key(provider, settings);
        usable.then(|| self.of(provider, settings, id)).filter(|model| self.refused(model).is_none())
    }

    fn provider(&self, name: &str) -> Option<(&str, &ProviderSettings)> {
        // Many call a server of their own `local`, too.
        let configured = self.config.providers.get_key_value(name).map(|(name, settings)| (name.as_str(), settings));
        configured.or_else(|| self.local.as_ref().filter(|_| name == LOCAL).map(|settings| (LOCAL, settings)))
    }

    fn role(&self, provider: &str, settings: &ProviderSettings, id: &str) -> String {
        let configured = settings.models.get(id).cloned();
        configured.or_else(|| self.catalog.role(provider, id).map(str::to_owned)).unwrap_or_else(|| id.to_owned())
    }

    fn of(&self, name: &str, settings: &ProviderSettings, id: &str) -> Model {
        let spec = self.spec(name, settings, id);
        Model { provider: Arc::new(self.http(name, settings)), provider_name: name.to_owned(), id: id.to_owned(), spec }
    }

    fn http(&self, name: &str, settings: &ProviderSettings) -> HttpProvider {
        let key = self.key(name, settings);
        HttpProvider::with_catalog(name, settings.clone(), key, self.client.clone(), self.catalog.clone())
    }

    /// What is known of a model, wherever it is named: the catalog's row, else what the endpoint says, else the window
    /// that is assumed. A local server decides for itself how much it loads.
    fn spec(&self, name: &str, settings: &ProviderSettings, id: &str) -> ModelSpec {
        let spec = self.catalog.get(settings.wire, id);
        if spec.known && name != LOCAL {
            return spec;
        }
        let spec = self.doors.told(name, id).map_or(spec.clone(), |offered| spec.told(&offered));
        let fallback = self.config.compact.fallback_context_window;
        let assumed = self.catalog.family(id).or_else(|| (fallback > 0).then_some(fallback));
        match assumed.filter(|_| !spec.known) {
            Some(window) => spec.assuming(window),
            None => spec,
        }
    }

    /// The model that needs nothing.
    pub(super) fn offline(&self) -> Model {
        let provider = self.script.clone().unwrap_or_else(|| Arc::new(Offline::assistant(offline::reply)));
        let spec = ModelSpec { known: true, window: 200_000, ..ModelSpec::unknown(WireName::Anthropic) };
        let id = if self.script.is_some() { "script" } else { OFFLINE };
        Model { provider, provider_name: OFFLINE.into(), id: id.into(), spec }
    }

    /// Whether to look for a local server at all.
    pub(super) fn probes(&self) -> bool {
        self.config.probe_local && self.script.is_none()
    }

    /// Looks for a local server.
    pub(super) async fn probe(&self) -> Option<Found> {
        probe::local_server(&self.client, &probe::ADDRESSES).await
    }

    /// Takes over other settings.
    pub(super) fn reconfigure(&mut self, loaded: &Loaded) {
        let config = loaded.config.clone();
        self.set_up = loaded.own_providers();
        self.catalog = catalog(&config);
        if timeouts(&self.config) != timeouts(&config) {
            self.client = Client::new(timeouts(&config));
        }
        self.config = config;
    }

    /// The same model as the settings have it now.
    pub(super) fn renewed(&self, model: &Model) -> Model {
        match self.config.providers.get_key_value(&model.provider_name) {
            Some((name, settings)) => self.of(name, settings, &model.id),
            None => model.clone(),
        }
    }

    /// What a use of the model `provider/id` cost; none without prices.
    pub(super) fn cost(&self, name: &str, usage: &Usage) -> Option<f64> {
        let (provider, id) = name.split_once('/')?;
        if provider == OFFLINE {
            return Some(0.0);
        }
        let (_, settings) = self.provider(provider)?;
        self.catalog.get(settings.wire, id).cost(usage)
    }

    /// The model of a local server that the user agreed to.
    pub(super) fn use_local(&mut self, found: &Found) -> Model {
        let settings = local_settings(found);
        self.doors.looked(Some(found.clone()));
        self.local = Some(settings.clone());
        self.of(LOCAL, &settings, &found.model)
    }

    /// What a search for a local server came to.
    pub(super) fn looked(&self, found: Option<Found>) {
        self.doors.looked(found);
    }

    /// The local server that was found last.
    pub(super) fn found(&self) -> Option<Found> {
        self.doors.found()
    }

    /// All that is held of the settings.
    #[cfg(test)]
    pub(super) fn held(&self) -> String {
        let Config { providers, available_models, denied_models, .. } = &self.config;
        format!("{providers:?} {available_models:?} {denied_models:?} {:?} {:?}", self.catalog, timeouts(&self.config))
    }
}
