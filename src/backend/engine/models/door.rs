//! The way to a model from inside the program: every provider with what it lacks, keys that are pasted, endpoints that are
//! asked for their models, and a local server that is looked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{LOCAL, Models, OFFLINE, ORDER, ROLES};
use crate::agent::Model;
use crate::agent::mailbox::Mailbox;
use crate::protocol::{Access, Event, Listed, ModelList, ModelRow, ProviderRow};
use crate::provider::Error;
use crate::provider::catalog::ModelSpec;
use crate::provider::catalog::offered::Offered;
use crate::provider::key::{self, Secret};
use crate::provider::probe::{self, Found};
use crate::provider::settings::ProviderSettings;

/// Longest time that an endpoint may take to list its models.
const ASKING: Duration = Duration::from_secs(10);
/// How long its answer counts.
const FRESH: Duration = Duration::from_mins(5);

/// What was found out about endpoints; shared by all copies of `Models`.
#[derive(Clone, Default)]
pub(super) struct Doors(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lists: BTreeMap<String, (Instant, Result<Vec<Offered>, String>)>,
    asking: BTreeSet<String>,
    server: Server,
}

/// What is known of local servers.
#[derive(Default)]
enum Server {
    #[default]
    NotAsked,
    None,
    Found(Found),
}

impl Doors {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the endpoint said of one of its models.
    pub(super) fn told(&self, provider: &str, id: &str) -> Option<Offered> {
        let state = self.lock();
        if let (LOCAL, Server::Found(found)) = (provider, &state.server) {
            let window = found.window.filter(|_| found.model == id);
            return window.map(|window| Offered { id: id.to_owned(), window: Some(window), max_output: None });
        }
        let (_, list) = state.lists.get(provider)?;
        list.as_ref().ok()?.iter().find(|offered| offered.id == id).cloned()
    }

    /// Whether the endpoint is to be asked now: nobody asks it, and what it said is old.
    fn begin(&self, provider: &str) -> bool {
        let mut state = self.lock();
        let fresh = state.lists.get(provider).is_some_and(|(at, _)| at.elapsed() < FRESH);
        !fresh && state.asking.insert(provider.to_owned())
    }

    fn end(&self, provider: &str, answer: Option<Result<Vec<Offered>, String>>) {
        let mut state = self.lock();
        state.asking.remove(provider);
        if let Some(answer) = answer {
            state.lists.insert(provider.to_owned(), (Instant::now(), answer));
        }
    }

    pub(super) fn found(&self) -> Option<Found> {
        match &self.lock().server {
            Server::Found(found) => Some(found.clone()),
            Server::NotAsked | Server::None => None,
        }
    }

    pub(super) fn looked(&self, found: Option<Found>) {
        self.lock().server = found.map_or(Server::None, Server::Found);
    }
}

impl Models {
    /// What `/model` offers: every provider, what it lacks, and its models where it can be asked.
    pub(in crate::engine) fn list(&self, current: &Model) -> ModelList {
        let rest = self.config.providers.keys().map(String::as_str).filter(|name| !ORDER.contains(name));
        let names = ORDER.into_iter().chain(rest);
        let providers = names.filter_map(|name| self.config.providers.get_key_value(name));
        let mut rows: Vec<ProviderRow> =
            providers.map(|(name, settings)| self.provider_row(name, settings, current)).collect();
        rows.push(self.local_row(current));
        rows.push(ProviderRow {
            name: OFFLINE.to_owned(),
            title: "Offline".to_owned(),
            access: Access::Offline,
            current: current.provider_name == OFFLINE,
            models: Vec::new(),
        });
        ModelList { providers: rows, word: None }
    }

    fn provider_row(&self, name: &str, settings: &ProviderSettings, current: &Model) -> ProviderRow {
        let refused = match self.doors.lock().lists.get(name) {
            Some((_, Err(why))) => Some(why.clone()),
            _ => None,
        };
        let from = match (self.key_value(settings), &settings.api_key_command) {
            (Some(_), _) => settings.api_key_env.clone(),
            (None, Some(_)) => Some("api_key_command".to_owned()),
            (None, None) => self.key(name, settings).stored().then(|| key::FILE.to_owned()),
        };
        let needs_none = settings.api_key_env.is_none() && settings.api_key_command.is_none();
        let access = match (from, refused) {
            (from, Some(why)) => Access::Refused { from, why },
            (Some(from), None) => Access::Key { from },
            (None, None) if needs_none => Access::Open,
            (None, None) => Access::NoKey,
        };
        let models = match access {
            Access::NoKey => Vec::new(),
            _ => self.model_rows(name, settings, current),
        };
        let title = match name {
            "anthropic" => "Anthropic".to_owned(),
            "openai" => "OpenAI".to_owned(),
            "gemini" => "Gemini".to_owned(),
            name => name.to_owned(),
        };
        ProviderRow { name: name.to_owned(), title, access, current: current.provider_name == name, models }
    }

    /// The default, what the roles mean, and what the endpoint lists, each once.
    fn model_rows(&self, name: &str, settings: &ProviderSettings, current: &Model) -> Vec<ModelRow> {
        let own = (current.provider_name == name).then(|| (current.id.clone(), ""));
        let default = settings.default_model.iter().map(|id| (id.clone(), "default"));
        let roles =
            ROLES.into_iter().map(|role| (self.role(name, settings, role), role)).filter(|(id, role)| id != role);
        let listed: Vec<String> = match self.doors.lock().lists.get(name) {
            Some((_, Ok(list))) => list.iter().map(|offered| offered.id.clone()).collect(),
            _ => Vec::new(),
        };
        let found = self.doors.found().filter(|_| name == LOCAL);
        let served = found.into_iter().flat_map(|found| std::iter::once(found.model).chain(found.others));
        let mut rows: Vec<ModelRow> = Vec::new();
        let all = default.chain(roles).chain(listed.into_iter().chain(served).map(|id| (id, ""))).chain(own);
        for (id, what) in all {
            let full = format!("{name}/{id}");
            if rows.iter().any(|row| row.id == full) {
                continue;
            }
            let detail = detail(&self.spec(name, settings, &id), what);
            rows.push(ModelRow { current: current.name() == full, id: full, detail });
        }
        rows
    }

    fn local_row(&self, current: &Model) -> ProviderRow {
        let (found, asked) = match &self.doors.lock().server {
            Server::NotAsked => (None, false),
            Server::None => (None, true),
            Server::Found(found) => (Some(found.clone()), true),
        };
        let (access, models) = match found {
            None => (Access::NoServer { ports: probe::ports(), asked }, Vec::new()),
            Some(found) => {
                let settings = super::local_settings(&found);
                (Access::Server { url: found.base_url }, self.model_rows(LOCAL, &settings, current))
            }
        };
        let current = current.provider_name == LOCAL;
        ProviderRow { name: LOCAL.to_owned(), title: "Local".to_owned(), access, current, models }
    }

    /// Asks every endpoint that can be asked for its models, beside everything else; the list comes again when one has
    /// answered. Ends by itself.
    pub(in crate::engine) fn ask_endpoints(&self, current: &Model, mailbox: &Arc<Mailbox>) {
        if self.script.is_some() {
            return;
        }
        for (name, settings) in &self.config.providers {
            if (settings.api_key_env.is_some() && !self.has_key(name, settings)) || !self.doors.begin(name) {
                continue;
            }
            let provider = self.http(name, settings);
            let (models, current, mailbox, name) = (self.clone(), current.clone(), mailbox.clone(), name.clone());
            tokio::spawn(async move {
                let answer = match tokio::time::timeout(ASKING, provider.offers()).await {
                    Ok(Ok(list)) => Some(Ok(list)),
                    Ok(Err(Error::Auth { .. })) => Some(Err("the key was refused".to_owned())),
                    Ok(Err(error)) => {
                        tracing::debug!(%error, name, "its list of models");
                        None
                    }
                    Err(_) => None,
                };
                models.doors.end(&name, answer);
                mailbox.emit(Event::Listed(Listed::Models(models.list(&current)))).await;
            });
        }
    }

    /// Looks for a local server again, beside everything else; the list comes again with what was found.
    pub(in crate::engine) fn find_server(&self, current: &Model, mailbox: &Arc<Mailbox>) {
        let (models, current, mailbox) = (self.clone(), current.clone(), mailbox.clone());
        tokio::spawn(async move {
            models.doors.looked(models.probe().await);
            mailbox.emit(Event::Listed(Listed::Models(models.list(&current)))).await;
        });
    }

    /// Keeps a key that was pasted. Returns what to tell: where it is, or why it is not.
    pub(in crate::engine) fn store_key(&self, provider: &str, secret: &Secret) -> Result<String, String> {
        let Some(settings) = self.config.providers.get(provider) else {
            return Err(format!("there is no provider {provider}"));
        };
        let file = self.paths.config_dir.join(key::FILE);
        key::store(&file, provider, secret)?;
        // What was said to the key before says nothing about this one.
        self.doors.lock().lists.remove(provider);
        let file = match self.paths.user_home.as_deref().and_then(|home| file.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => file.display().to_string(),
        };
        match (self.key_value(settings), &settings.api_key_env) {
            (Some(_), Some(variable)) => {
                Err(format!("stored in {file}, but {variable} wins: unset it to use this key"))
            }
            _ => Ok(format!("Key stored in {file}")),
        }
    }
}

/// What a row says of a model: `1M · $3/$15 · default`.
fn detail(spec: &ModelSpec, what: &str) -> String {
    let window = match spec.window {
        tokens @ 1_000_000.. => {
            let whole = format!("{:.1}", tokens as f64 / 1e6);
            format!("{}M", whole.strip_suffix(".0").unwrap_or(&whole))
        }
        tokens => format!("{}k", tokens / 1000),
    };
    let dollars = |price: f64| if price.fract() == 0.0 { format!("${price}") } else { format!("${price:.2}") };
    let prices = spec.prices.as_ref().filter(|prices| prices.input > 0.0 || prices.output > 0.0);
    let mut parts = vec![if spec.known { window } else { format!("{window} assumed") }];
    parts.extend(prices.map(|prices| format!("{}/{}", dollars(prices.input), dollars(prices.output))));
    parts.extend((!what.is_empty()).then(|| what.to_owned()));
    parts.join(" · ")
}
