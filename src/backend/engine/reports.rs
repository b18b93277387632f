//! Commands that only look: they gather data, which front ends put into words, also while a turn has the agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::models::Models;
use super::{Setup, bug_report, changes, doctor, lists, mcp, places, settings};
use crate::agent::mailbox::Mailbox;
use crate::agent::{Agent, Beside, Snapshot};
use crate::commands::report as skills;
use crate::commands::{Builtin, Catalog, ListKind};
use crate::config::Loaded;
use crate::message::Usage;
use crate::permission::Decision;
use crate::plugins::Plugin;
use crate::protocol::report::{
    Broken, CacheReport, Cost, Finding, ModelCost, Report, SandboxReport, Settings, Status, Verdict,
};
use crate::protocol::{Changes, Event, FoundList, Listed, ModelList, SettingList, Word};
use crate::provider::key::Secret;
use crate::session::Session;

/// The setting that `/theme` shows and changes.
pub(super) const THEME: &str = "tui.theme";

/// All that they look at.
pub(super) struct Look<'a> {
    pub(super) setup: &'a Setup,
    pub(super) loaded: &'a Loaded,
    pub(super) models: &'a Models,
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) agent: Snapshot,
    pub(super) session: Reading<'a>,
    /// For `!` lines while a turn has the agent.
    pub(super) beside: Option<Beside>,
}

/// Where the session is.
pub(super) enum Reading<'a> {
    Own(&'a Session),
    /// A turn has it: its log is read again, by its id.
    Log(String),
}

impl<'a> Look<'a> {
    /// While something else has the agent: it is as it was just before.
    pub(super) fn beside(
        setup: &'a Setup,
        loaded: &'a Loaded,
        models: &'a Models,
        catalog: &'a Arc<Catalog>,
        (agent, mailbox): (&mut Agent, &Mailbox),
    ) -> Look<'a> {
        let session = Reading::Log(agent.conversation.session.id().to_owned());
        let beside = Some(agent.beside(mailbox, &CancellationToken::new()));
        Look { setup, loaded, models, catalog, agent: Snapshot::of(agent), session, beside }
    }

    /// What a command that only looks has found, or why it cannot; none for any other command.
    pub(super) async fn report(&self, builtin: Builtin, args: &str) -> Option<Result<Report, String>> {
        let args = args.trim();
        if !builtin.runs_while_busy(args) {
            return None;
        }
        let found = match builtin {
            Builtin::Help => Ok(Report::Commands(self.catalog.current().registry.clone())),
            Builtin::Model => Ok(Report::Models(self.models.list(&self.agent.model))),
            Builtin::Resume => lists::sessions(self.setup, None).map(Report::Sessions),
            Builtin::Config => self.settings(args),
            Builtin::Theme => self.settings(THEME),
            Builtin::Doctor => Ok(Report::Doctor(findings(self.setup).await)),
            Builtin::Hooks => Ok(Report::Hooks(self.agent.hooks())),
            Builtin::Plugin => Ok(Report::Plugins(self.loaded.plugins.all.iter().map(Plugin::row).collect())),
            Builtin::Skills => Ok(Report::Skills(skills::list(&self.catalog.refresh().0))),
            Builtin::Agents => Ok(Report::Agents(self.agent.agents())),
            Builtin::Mcp => Ok(Report::Servers(mcp::rows(self.agent.servers(), &self.setup.paths))),
            Builtin::Memory => Ok(Report::Memory(lists::memory(&self.agent, self.setup))),
            Builtin::Permissions if args.is_empty() => Ok(Report::Rules(lists::rules(&self.agent.rules()))),
            builtin => match &self.session {
                Reading::Own(session) => return self.of_session(builtin, args, session).await,
                Reading::Log(id) => match Session::open_read_only(&self.setup.paths.home, id, self.setup.clocks.wall) {
                    Ok(session) => return self.of_session(builtin, args, &session).await,
                    Err(error) => Err(error.to_string()),
                },
            },
        };
        Some(found)
    }

    async fn of_session(&self, builtin: Builtin, args: &str, session: &Session) -> Option<Result<Report, String>> {
        Some(Ok(match builtin {
            Builtin::Context => Report::Window(self.agent.window(session)),
            Builtin::Cost => return Some(self.cost(args, session)),
            Builtin::Diff => Report::Changes(self.changes(session).await),
            Builtin::Todos => Report::Todos(session.context().todos().to_vec()),
            Builtin::Tasks => Report::Tasks(lists::tasks(session, &self.agent.background)),
            Builtin::Status => self.status(session),
            Builtin::Sandbox => self.sandbox(session).await,
            Builtin::Thinking => Report::Thinking(self.agent.thinking(session)),
            Builtin::Permissions => return Some(self.verdict(args, session).await),
            Builtin::BugReport => return Some(bug_report::write(self, session).await.map(Report::BugReport)),
            _ => return None,
        }))
    }

    /// `/permissions test <command>`.
    async fn verdict(&self, args: &str, session: &Session) -> Result<Report, String> {
        let command = unquoted(args.split_once(char::is_whitespace).map_or("", |(_, command)| command));
        if command.is_empty() {
            return Err("Which command? Example: `/permissions test \"git push\"`.".into());
        }
        let Decision { behavior, reasons, .. } = self.agent.try_out(session, command).await;
        Ok(Report::Verdict(Verdict { command: command.to_owned(), behavior, reasons }))
    }

    /// `/cost [why [number]]`.
    fn cost(&self, args: &str, session: &Session) -> Result<Report, String> {
        let facts = session.facts();
        let mut words = args.split_whitespace();
        match (words.next(), words.next().map(str::parse::<usize>)) {
            (None, _) => {}
            (Some("why"), None) => return Ok(Report::Broken(Broken { breaks: facts.breaks.clone(), number: None })),
            (Some("why"), Some(Ok(number))) if (1..=facts.breaks.len()).contains(&number) => {
                return Ok(Report::Broken(Broken { breaks: facts.breaks.clone(), number: Some(number) }));
            }
            (Some("why"), Some(_)) => return Err(format!("`/cost why` lists {} breaks.", facts.breaks.len())),
            (Some(other), _) => return Err(format!("`/cost` does not know {other:?}; try `/cost why`.")),
        }
        let breaks = facts.breaks.iter().map(|(_, broke)| broke);
        let total = facts.usage();
        let cache = CacheReport {
            prompt: total.input + total.cache_read + total.cache_write,
            read: total.cache_read,
            breaks: facts.breaks.len(),
            again: breaks.clone().map(|broke| broke.again).sum(),
            usd: breaks.map(|broke| broke.cost_usd).sum(),
        };
        let row = |(model, usage): (String, Usage)| ModelCost { usd: self.models.cost(&model, &usage), model, usage };
        Ok(Report::Cost(Cost {
            models: facts.usage_by_model().into_iter().map(row).collect(),
            beside: facts.spent_by_what(),
            cache,
        }))
    }

    async fn sandbox(&self, session: &Session) -> Report {
        self.setup.commands.probe().await;
        let confined = &self.loaded.config.sandbox;
        let looked = self.agent.confined(session);
        Report::Sandbox(Box::new(SandboxReport {
            status: self.setup.confinement(),
            required: confined.required,
            reading: looked.reading,
            approved: looked.approved,
            unasked: looked.unasked,
            denied: looked.denied,
        }))
    }

    fn status(&self, session: &Session) -> Report {
        let model = &self.agent.model;
        Report::Status(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: model.name(),
            window: model.spec.window,
            mode: session.facts().mode.unwrap_or_default(),
            folder: self.shown(&self.setup.project),
            withheld: self.loaded.withheld.len() as u64,
            session: session.id().to_owned(),
            title: session.title().map(str::to_owned),
            log: self.shown(session.log()),
            context: self.agent.used(session),
            rules: self.agent.rules().entries().len() as u64,
            settings: self.shown(&self.setup.paths.user_config()),
        })
    }

    /// A path as people write it.
    fn shown(&self, path: &Path) -> PathBuf {
        PathBuf::from(self.setup.paths.tilde(&path.to_string_lossy()))
    }

    /// `/config`: one key, or every key that somebody set.
    fn settings(&self, key: &str) -> Result<Report, String> {
        let settings = match key {
            "" => self.loaded.given_keys().iter().filter_map(|key| self.loaded.explain(key).ok()).flatten().collect(),
            key => self.loaded.explain(key)?,
        };
        let file = self.setup.paths.user_config();
        Ok(Report::Settings(Settings { key: Some(key.to_owned()).filter(|key| !key.is_empty()), settings, file }))
    }

    /// A list that only looks; none where the agent has it.
    pub(super) async fn list(&self, what: ListKind) -> Option<Listed> {
        Some(match (what, &self.session) {
            (ListKind::Sessions, Reading::Own(session)) => self.sessions(session.id()),
            (ListKind::Sessions, Reading::Log(id)) => self.sessions(id),
            (ListKind::Found, _) => Listed::Found(FoundList::default()),
            (ListKind::Models, _) => Listed::Models(self.models.list(&self.agent.model)),
            (ListKind::Settings, _) => {
                Listed::Settings(SettingList { rows: settings::rows(self.setup, self.loaded), word: None })
            }
            (ListKind::Skills, _) => Listed::Skills(skills::rows(&self.catalog.refresh().0)),
            (ListKind::Changes, _) => match self.report(Builtin::Diff, "").await {
                Some(Ok(Report::Changes(changes))) => Listed::Changes(changes),
                _ => Listed::Changes(Changes::default()),
            },
            (ListKind::Rules, _) => Listed::Rules(lists::rules(&self.agent.rules())),
            (ListKind::Memory, _) => Listed::Memory(lists::memory(&self.agent, self.setup)),
            (ListKind::Prompts, Reading::Own(session)) => Listed::Prompts(lists::prompts(session)),
            (ListKind::Prompts, _) => return None,
        })
    }

    /// Keeps a key that was pasted, and lists the models again with what came of it.
    pub(super) async fn store_key(&self, provider: &str, key: &Secret, mailbox: &Arc<Mailbox>) {
        let word = Some(self.models.store_key(provider, key).into());
        let list = ModelList { word, ..self.models.list(&self.agent.model) };
        mailbox.emit(Event::Listed(Listed::Models(list))).await;
        self.models.ask_endpoints(&self.agent.model, mailbox);
    }

    /// A setting was changed that has to wait.
    pub(super) async fn later(&self, mailbox: &Arc<Mailbox>) {
        let text = "Saved when the turn ends".to_owned();
        let list = SettingList { rows: settings::rows(self.setup, self.loaded), word: Some(Word::Done { text }) };
        mailbox.emit(Event::Listed(Listed::Settings(list))).await;
    }

    /// What a list finds out once it is shown.
    pub(super) fn listed(&self, what: ListKind, mailbox: &Arc<Mailbox>) {
        if what == ListKind::Models {
            self.models.ask_endpoints(&self.agent.model, mailbox);
        }
    }

    fn sessions(&self, own: &str) -> Listed {
        let rows = lists::sessions(self.setup, Some(own));
        Listed::Sessions(rows.unwrap_or_else(|error| {
            tracing::error!(error, "cannot list the sessions");
            Vec::new()
        }))
    }

    async fn changes(&self, session: &Session) -> Changes {
        changes::gather(session, &places::own_git(self.setup, self.loaded)).await
    }
}

/// An argument as it may be written for a shell: without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote).filter(|text| !text.contains(quote));
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

pub(super) async fn findings(setup: &Setup) -> Vec<Finding> {
    let (env, paths, cwd) = (setup.env.clone(), setup.paths.clone(), setup.project.clone());
    setup.commands.probe().await;
    let sandbox = setup.confinement();
    let look = move || doctor::examine(doctor::Here { env: &env, paths: &paths, cwd: &cwd }, &sandbox);
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
