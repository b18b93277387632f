//! The start: project settings, trust, session, model. Every question is asked while ops are served already.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::grants::Files;
use super::models::Models;
use super::places::{gateway, git_status, root};
use super::plugins::Matter;
use super::settings::Settings;
use super::{Engine, Host, Inbox, Known, Setup, choosing, mcp, plugins, servers, skills};
use crate::agent::{self, Agent, Model, Parts, Presence};
use crate::agents;
use crate::config::paths::Paths;
use crate::config::{self, Config, Loaded};
use crate::hooks::{Hooks, StartSource};
use crate::permission::{self, Mode, RuleSet, Source, Trust, Use, Walls};
use crate::plugins::Plugins;
use crate::protocol::{Answer, Event, Question};
use crate::provider::Provider;
use crate::provider::offline::{Offline, script::Script};
use crate::session::entry::EntryKind;
use crate::session::{Session, index};
use crate::stdx::hash;
use crate::tools::answer;
use crate::tools::{Offered, RULES, TODO_WRITE, Toolbox};

/// Turns of a resumed session that are shown at once.
pub(super) const TURNS_SHOWN: usize = 10;

/// Opens everything. Its error is shown and ends the engine; the text names the fix.
pub(super) async fn open(setup: Setup, inbox: &mut Inbox) -> Result<Engine, String> {
    let git = git_status(&setup, &setup.loaded);
    setup.paths.prepare_home().map_err(|error| error.to_string())?;
    let script = match &setup.script {
        Some(file) => Some(play(file)?),
        None => None,
    };
    let mailbox = inbox.mailbox.clone();
    let mut trust = config::trust::of(&setup.paths, &setup.project);
    let mut loaded = setup.loaded.with_project(&setup.project, &trust);
    if setup.trust {
        // What is enabled by settings that are trusted only now brings more along.
        for _ in 0..2 {
            plugins::agree_to_named(&mut trust, loaded.uses.clone(), &loaded.plugins);
            loaded = setup.loaded.with_project(&setup.project, &trust);
        }
        let uses =
            definitions((&setup.paths, &setup.project), &trust, &loaded.plugins, setup.host.as_ref()).uses().to_vec();
        plugins::agree_to_named(&mut trust, uses, &loaded.plugins);
        loaded = setup.loaded.with_project(&setup.project, &trust);
    }
    let tools = mcp::open(&setup, &loaded);
    // What needs nobody's word begins beside everything else.
    mcp::follow(tools.as_ref(), &setup.project, &loaded);
    let catalog = inbox.catalog.clone();
    let loading = skills::load(&catalog, &loaded);
    let session = choosing::choose(&setup, inbox).await?;
    let models = Models::new(&loaded, setup.env.clone(), setup.paths.clone(), script);
    let chosen = choose_model(&setup, &loaded, &models, &session)?;
    let probing = chosen.is_none() && models.probes();
    let model = chosen.unwrap_or_else(|| models.offline());
    let definitions = definitions((&setup.paths, &setup.project), &trust, &loaded.plugins, setup.host.as_ref());
    let toolbox = mcp::reaching(toolbox(&setup, &loaded.config, &definitions), tools.as_ref(), &loaded);
    let settings = Settings::of(&setup, &loaded, &models, &catalog, &model.spec);
    catalog.hide(settings.hidden);
    let (given, switch) = settings.hooks;
    let parts = Parts {
        model,
        policy: agent::Policy {
            rules: settings.rules,
            places: settings.places,
            trust,
            sandbox: setup.commands.clone(),
            gateway: gateway(&setup),
            denials: Default::default(),
            offered: false,
            servers: tools,
        },
        settings: settings.agent,
        toolbox: Arc::new(toolbox),
        hooks: Hooks::new(given, switch),
        skills: settings.skills,
        grants: Arc::new(Files { paths: setup.paths.clone(), project: setup.project.clone() }),
        git,
        date: config::logging::today(),
        clock: setup.clocks.monotonic,
        definitions,
    };
    let mode = start_mode(&setup, &loaded, &session)?;
    let mut agent = Agent::new(session, parts);
    agent.hooking.hooks.limits = settings.hook_limits;
    agent.hooking.hooks.outside = setup.host.as_ref().map(Host::outside);
    if mode != agent.conversation.mode() && !agent.conversation.session.read_only() {
        agent.conversation.append(EntryKind::ModeChanged { mode }).map_err(|error| error.to_string())?;
    }
    let idle = settings.idle;
    // As the front end was made, before the folder was read.
    let interface = setup.loaded.config.interface();
    let known = Known::default();
    let _offering = mcp::offer(agent.policy.servers.as_ref(), &catalog, &mailbox);
    let mut engine =
        Engine { agent, models, loaded, setup, mailbox, probing, catalog, known, idle, interface, _offering };
    engine.tell_interface().await;
    // Git at the start has asked already, beside all this.
    engine.setup.commands.probe().await;
    engine.announce().await;
    // A panic in there leaves the built-ins.
    let _ = loading.await;
    skills::publish(&engine.catalog, &engine.mailbox).await;
    let warning = engine.agent.compaction.warning();
    engine.tell_announcement().await;
    engine.tell_problems(settings.problems.into_iter().chain(warning).collect()).await;
    engine.settle_trust(inbox).await;
    let source = if engine.setup.begin.earlier() { StartSource::Resume } else { StartSource::Startup };
    engine.session_started(source, inbox).await;
    if engine.probing {
        engine.look_for_server(inbox).await;
    }
    engine.clean_up();
    Ok(engine)
}

/// The model by script, flag, the session's own choice, or the usual order; none when only a local server or the offline
/// model is left.
fn choose_model(setup: &Setup, loaded: &Loaded, models: &Models, session: &Session) -> Result<Option<Model>, String> {
    if setup.offline || setup.script.is_some() {
        return Ok(Some(models.offline()));
    }
    let earlier = session.facts().own_model.as_deref().filter(|_| loaded.config.model.is_none());
    match earlier.and_then(|name| models.earlier(name)) {
        Some(model) => Ok(Some(model)),
        None => models.wanted(&loaded.withheld, setup.presence),
    }
}

fn play(file: &Path) -> Result<Arc<dyn Provider>, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read the script {}: {error}", file.display()))?;
    let script = Script::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Arc::new(Offline::scripted(script)))
}

/// The sub-agents of a folder, with what is wrong with their files.
pub(super) fn definitions(
    (paths, project): (&Paths, &Path),
    trust: &Trust,
    plugins: &Plugins,
    host: Option<&Host>,
) -> Arc<agents::Definitions> {
    let plugins = plugins.for_agents();
    let (home, given) = (paths.home.as_path(), host.map(|host| &host.agents));
    let mut definitions = agents::load(agents::Folders { project, home, trust, plugins: &plugins, given });
    let toolbox = Toolbox::builtin();
    let below = toolbox.iter().filter(|tool| tool.manners().offered < Offered::Main);
    let below = below.map(|tool| (tool.spec().name.as_str(), tool.manners().offered == Offered::Reading));
    definitions.check_tools(&below.collect::<Vec<_>>(), RULES);
    Arc::new(definitions)
}

fn toolbox(setup: &Setup, config: &Config, definitions: &Arc<agents::Definitions>) -> Toolbox {
    let toolbox = Toolbox::builtin().with_agents(definitions.clone());
    let toolbox = if config.tools.todos { toolbox } else { toolbox.only(|tool| tool.spec().name != TODO_WRITE) };
    let toolbox = match &setup.only_tools {
        Some(names) => toolbox.only(|tool| names.contains(&tool.spec().name)),
        None => toolbox,
    };
    match &setup.output_schema {
        Some(schema) => toolbox.with(Arc::new(answer::Answer::new(schema.clone()))),
        None => toolbox,
    }
}

/// The mode to begin in: by flag, else that of a resumed session, else the configured one.
fn start_mode(setup: &Setup, loaded: &Loaded, session: &Session) -> Result<Mode, String> {
    let fallback = session.facts().mode.unwrap_or(loaded.config.permissions.default_mode);
    // A session that was left in bypass does not come back in it: that takes the flag, each time.
    let fallback = if fallback == Mode::Bypass { Mode::Default } else { fallback };
    let mode = setup.mode.unwrap_or(fallback);
    if mode == Mode::Bypass && loaded.config.permissions.disable_bypass {
        const KEY: &str = "permissions.disable_bypass";
        let given = loaded.explain(KEY)?.into_iter().flat_map(|setting| setting.given);
        let place = given.filter(|given| given.value == "true").map(|given| given.place).next().unwrap_or_default();
        return Err(format!("bypassPermissions is turned off by `{KEY}` ({place}): start in another mode"));
    }
    match mode.refused(root(), setup.sandbox) {
        Some(why) => Err(why.to_owned()),
        None => Ok(mode),
    }
}

/// Parses every rule. One that cannot be read breaks its source when it could have denied something.
pub(super) fn rules(loaded: &Loaded) -> (RuleSet, Vec<String>) {
    let (mut rules, mut problems) = (RuleSet::default(), Vec::new());
    let given = &loaded.config.permissions;
    rules.walls = Walls {
        reads: given.block_outside_reads,
        writes: given.block_outside_writes,
        questions: given.deny_instead_of_asking,
    };
    for text in &loaded.rules {
        let place = text.file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default();
        match RULES.rule(&text.text) {
            Ok(rule) => {
                problems.extend(RULES.misspelt(&rule).map(|error| format!("{place}{error}")));
                rules.add(text.behavior, rule, text.source);
            }
            Err(error) if text.behavior == permission::Behavior::Allow => {
                problems.push(format!("{place}{error}; the rule is ignored"));
            }
            Err(error) => {
                rules.mark_broken(text.source);
                problems.push(format!("{place}{error}; until it is fixed, anything it might have denied asks first"));
            }
        }
    }
    for given in loaded.hooks().0 {
        for condition in given.definitions.all().filter_map(|(_, _, hook)| hook.condition.as_ref()) {
            let error = RULES.rule(condition).err();
            problems.extend(
                error.map(|error| format!("{}: `if` of a hook: {error}; the hook runs for every call", given.origin)),
            );
        }
    }
    for (source, _) in &loaded.broken {
        rules.mark_broken(if source.of_project() { Source::Project } else { Source::User });
    }
    (rules, problems)
}

impl Engine {
    /// Shows one of the messages of the organization, another one in each session.
    async fn tell_announcement(&self) {
        let texts = &self.loaded.config.announcements;
        if texts.is_empty() || !self.agent.conversation.session.is_empty() {
            return;
        }
        let at = hash::short(&[self.agent.conversation.session.id().as_bytes()]) % texts.len() as u64;
        self.mailbox.emit(Event::Notice { text: texts[at as usize].clone() }).await;
    }

    /// Tells what is wrong with rules and settings. A file of the project that is not used at all is a failure.
    async fn tell_problems(&self, rules: Vec<String>) {
        let settings = self.loaded.diagnostics.iter().map(ToString::to_string);
        let plugins = self.loaded.plugins.errors().into_iter().map(|(_, error)| error);
        for text in rules.into_iter().chain(settings).chain(plugins) {
            self.mailbox.emit(Event::Notice { text }).await;
        }
        for (file, events) in self.loaded.unguarded() {
            let events: Vec<&str> = events.iter().map(|event| event.name()).collect();
            let text = format!(
                "{}: not every hook for {} runs, so what the missing ones should stop is not stopped: fix what is named above",
                file.display(),
                events.join(", ")
            );
            let event = match self.setup.presence {
                Presence::Attended => Event::Error { text, restore: None },
                Presence::Unattended => Event::Notice { text },
            };
            self.mailbox.emit(event).await;
        }
        if !self.loaded.broken.is_empty() {
            let files = self.loaded.broken.iter().map(|(_, file)| file.display().to_string());
            let text = format!(
                "{}: ignored because it does not parse; until it is fixed, anything its rules might have denied asks first",
                files.collect::<Vec<_>>().join(", ")
            );
            // Where nobody sees it, a broken file of the project has ended the start.
            let event = match self.loaded.project_broken() || self.setup.presence == Presence::Attended {
                true => Event::Error { text, restore: None },
                false => Event::Notice { text },
            };
            self.mailbox.emit(event).await;
        }
    }

    /// Everything that the folder brings along and that needs the user's word, as it is now.
    fn uses(&self) -> Vec<Use> {
        let trust = &self.agent.policy.trust;
        let loaded = self.setup.loaded.with_project(&self.setup.project, trust);
        let definitions =
            definitions((&self.setup.paths, &self.setup.project), trust, &loaded.plugins, self.setup.host.as_ref());
        let mut uses = loaded.uses;
        uses.extend_from_slice(definitions.uses());
        uses.extend(self.agent.runs.uses(&self.agent.policy));
        uses
    }

    /// Asks at the start for what is new in the folder's settings and agents, and says what is gone.
    async fn settle_trust(&mut self, inbox: &mut Inbox) {
        if self.setup.trust {
            for matter in self.matters().into_iter().filter(|matter| matter.named) {
                matter.agree(&mut self.agent.policy.trust);
                plugins::remember(self, &matter).await;
            }
        }
        if self.withholds(self.agent.family.definitions.uses()) {
            return self.ask_trust(inbox).await;
        }
        let Some(Matter { uses, .. }) = self.matters().into_iter().find(|matter| matter.plugin.is_none()) else {
            return;
        };
        let trust = &self.agent.policy.trust;
        let gone = trust.difference(&uses).gone;
        if !gone.is_empty() {
            let text = format!("The folder no longer contains what you trusted: {}", gone.join(", "));
            self.mailbox.emit(Event::Notice { text }).await;
            let left: Vec<Use> = uses.into_iter().filter(|used| trust.covers(used)).collect();
            plugins::remember(self, &Matter { plugin: None, uses: left, named: true }).await;
        }
    }

    /// What is asked about one by one. A yes to one of them says nothing of the others.
    fn matters(&self) -> Vec<Matter> {
        let loaded = self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust);
        Matter::all(self.uses(), &loaded.plugins)
    }

    /// Whether something of these settings and uses waits for the user's word.
    fn withholds(&self, uses: &[Use]) -> bool {
        let trust = &self.agent.policy.trust;
        !self.loaded.withheld.is_empty() || uses.iter().any(|used| !trust.covers(used))
    }

    /// Asks whether to use what is new in the folder, and again for what changed while the question was open: only what was
    /// shown is used.
    pub(super) async fn ask_trust(&mut self, inbox: &mut Inbox) {
        self.known.trust = true;
        let (mut problems, mut refused, mut agreed) = (None, Vec::new(), Vec::new());
        loop {
            let next = self.matters().into_iter().find(|matter| matter.waits(&self.agent.policy.trust, &refused));
            let Some(matter) = next else { break };
            if agreed.contains(&matter.plugin) {
                let what = if matter.plugin.is_none() { "Something in the folder" } else { "A plugin" };
                let text = format!("{what} changed while you were being asked.");
                self.mailbox.emit(Event::Notice { text }).await;
            }
            if !plugins::agrees(self, &matter, inbox).await {
                refused.extend(matter.uses);
                agreed.retain(|plugin| *plugin != matter.plugin);
                continue;
            }
            agreed.push(matter.plugin);
            if self.agent.conversation.session.is_empty() {
                let trust = &self.agent.policy.trust;
                let plugins = self.setup.loaded.with_project(&self.setup.project, trust).plugins;
                let definitions =
                    definitions((&self.setup.paths, &self.setup.project), trust, &plugins, self.setup.host.as_ref());
                self.agent.set_definitions(definitions);
            }
            problems = Some(self.take_settings());
        }
        let Some(problems) = problems else { return };
        agreed.dedup();
        for plugin in agreed {
            let text = match plugin {
                None => "You trust this folder: cocode uses its settings.".to_owned(),
                Some(id) => format!("You trust the plugin {id}."),
            };
            self.mailbox.emit(Event::Notice { text }).await;
        }
        let mailbox = self.mailbox.clone();
        for text in problems {
            mailbox.emit(Event::Notice { text }).await;
        }
        skills::publish(&self.catalog, &mailbox).await;
        self.tell_interface().await;
        match choose_model(&self.setup, &self.loaded, &self.models, &self.agent.conversation.session) {
            Ok(Some(model)) => {
                self.probing = false;
                self.take_model(model).await;
            }
            // The limits of the tools may be the project's.
            Ok(None) => self.take_model(self.agent.model.clone()).await,
            Err(text) => mailbox.emit(Event::Error { text, restore: None }).await,
        }
        match start_mode(&self.setup, &self.loaded, &self.agent.conversation.session) {
            Ok(mode) if self.agent.conversation.session.is_empty() => {
                if let Err(error) = self.agent.set_mode(mode, &mailbox).await {
                    self.fail(error).await;
                }
            }
            _ => {}
        }
    }

    /// Looks for a local server, and asks before its first use.
    async fn look_for_server(&mut self, inbox: &mut Inbox) {
        let mailbox = self.mailbox.clone();
        let found = inbox.attend(self.models.probe()).await;
        self.models.looked(found.clone());
        if let Some(found) = found {
            let known = servers::known(&self.setup.paths);
            let cancel = mailbox.begin();
            let agreed = known.lines().any(|line| line == found.base_url) || {
                let question = Question::LocalServer { url: found.base_url.clone(), model: found.model.clone() };
                let answer = inbox.attend(mailbox.ask(question, &cancel)).await;
                matches!(answer, Some(Answer::Yes | Answer::Always { .. }))
            };
            mailbox.end();
            if agreed {
                servers::remember(&self.setup.paths, &known, &found.base_url);
                let model = self.models.use_local(&found);
                self.agent.runs.settings =
                    skills::settings(&self.catalog, &self.loaded, &self.models, &self.agent.model.spec);
                self.probing = false;
                self.take_model(model).await;
            }
        }
        if self.probing {
            self.probing = false;
            mailbox.emit(Event::Model(self.model_info())).await;
        }
    }

    /// Naming a model of the server that was found means agreeing to its address, which was shown.
    pub(super) fn agree_to_server(&mut self, model: &str) {
        let Some(found) = self.models.found() else { return };
        if found.model == model || found.others.iter().any(|other| other == model) {
            servers::remember(&self.setup.paths, &servers::known(&self.setup.paths), &found.base_url);
            self.models.use_local(&found);
            self.agent.runs.settings =
                skills::settings(&self.catalog, &self.loaded, &self.models, &self.agent.model.spec);
        }
    }

    /// Removes sessions that nobody touched for long, beside everything else.
    fn clean_up(&self) {
        let (home, days) = (self.setup.paths.home.clone(), self.loaded.config.sessions.cleanup_period_days);
        if days > 0 {
            let (keep, now) = (Duration::from_secs(u64::from(days) * 86_400), (self.setup.clocks.wall)());
            tokio::task::spawn_blocking(move || match index::cleanup(&home, keep, now) {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old sessions removed"),
                Err(error) => tracing::warn!(%error, "cannot remove old sessions"),
            });
        }
    }
}
