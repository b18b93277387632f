//! The one place where a configuration becomes what the running system holds: at the start, on `/config`, with trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::models::Models;
use super::{Engine, Host, Setup, skills};
use crate::agent::{self, Bypass, Reminders, events, skill_runs};
use crate::commands::catalog::{Legacy, Tracking};
use crate::commands::{Builtin, Catalog};
use crate::config::edit::{self, Target};
use crate::config::styles::{self, Style};
use crate::config::trust::Extent;
use crate::config::{self, Config, Loaded};
use crate::hooks::{self, Occasion, Switch};
use crate::permission::{Mode, Places, RuleSet};
use crate::protocol::report::{Holds, Report, SettingChanged};
use crate::protocol::{Event, Listed, SettingList, SettingPlace, SettingRow};
use crate::provider::catalog::ModelSpec;
use crate::provider::http::endpoint;

/// What a configuration says, in the slices in which the parts of the system take it.
pub(super) struct Settings {
    pub(super) rules: RuleSet,
    /// What of the rules cannot be read.
    pub(super) problems: Vec<String>,
    pub(super) places: Places,
    pub(super) agent: agent::Settings,
    pub(super) skills: skill_runs::Settings,
    pub(super) hooks: (Vec<hooks::Given>, Switch),
    pub(super) hook_limits: hooks::Limits,
    /// The catalog's.
    pub(super) switches: (Legacy, Tracking),
    /// Commands that do nothing now.
    pub(super) hidden: &'static [Builtin],
    /// How long nobody types until hooks hear of it.
    pub(super) idle: Duration,
}

impl Settings {
    pub(super) fn of(
        setup: &Setup,
        loaded: &Loaded,
        models: &Models,
        catalog: &Arc<Catalog>,
        spec: &ModelSpec,
    ) -> Settings {
        let config = &loaded.config;
        let (rules, mut problems) = super::open::rules(loaded);
        for (name, provider) in &loaded.config.providers {
            problems.extend(endpoint(&provider.base_url).map(|endpoint| {
                format!("`providers.{name}.base_url` ends in `{endpoint}`, which cocode adds itself: leave it out")
            }));
        }
        let style = styles::find(&setup.paths, &setup.project, &config.output_style);
        // A system prompt of one's own says all that is to be said.
        let style = match style {
            Ok(style) => style.filter(|_| setup.system.is_none()),
            Err(unknown) => {
                problems.push(format!("`output_style` has no effect: {unknown}"));
                None
            }
        };
        let replaced = style.as_ref().filter(|style| !style.keeps_coding).map(|_| agent::prompt::without_coding());
        Settings {
            rules,
            problems,
            places: super::places::places_with(setup, loaded),
            agent: agent::Settings {
                tools: Arc::new(config.tool_settings(spec)),
                max_tries: config.network.max_retries.saturating_add(1).min(10),
                max_turns: config.max_turns,
                system: setup.system.clone().or(replaced),
                append_system: additions(config, style.as_ref(), setup.append_system.as_deref()),
                memory_names: config.memory.files.clone(),
                memory_excludes: config.memory.excludes.clone(),
                thinking: loaded.thinking(&setup.env, setup.thinking),
                compact: config.compact.clone(),
                features: config.features,
                bypass: if setup.mode == Some(Mode::Bypass) || setup.may_bypass {
                    Bypass::Allowed
                } else {
                    Bypass::Never
                },
                plan: agent::plan::Settings {
                    explore_agents: config.plan.explore_agents,
                    plan_agents: config.plan.plan_agents,
                },
                reminders: if config.reminders { Reminders::On } else { Reminders::Off },
                presence: setup.presence,
                seats: config.agents.max_parallel,
                budget: agent::budget::Limits {
                    request: config.budget.request_usd,
                    turn: config.budget.turn_usd,
                    session: config.budget.session_usd,
                    day: config.budget.day_usd,
                    ledger: Some(setup.paths.state_dir.join("ledger.jsonl")),
                },
            },
            skills: skills::settings(catalog, loaded, models, spec),
            hooks: hooks(setup, loaded),
            hook_limits: hooks::Limits {
                urls: config.allowed_hook_urls.clone(),
                variables: config.allowed_hook_variables.clone(),
            },
            switches: skills::switches(config),
            hidden: if config.compact.enabled { &[] } else { &[Builtin::Compact] },
            idle: Duration::from_secs(config.idle_notification_s),
        }
    }
}

/// The hooks of all files, then those of the program that runs us.
fn hooks(setup: &Setup, loaded: &Loaded) -> (Vec<hooks::Given>, Switch) {
    let (mut given, switch) = loaded.hooks();
    given.extend(setup.host.as_ref().and_then(Host::given));
    (given, switch)
}

/// What is added to the system prompt; None: nothing.
fn additions(config: &Config, style: Option<&Style>, given: Option<&str>) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(style.map(|style| format!("# Output style: {}\n{}", style.name, style.text)));
    if let Some(language) = &config.language {
        parts.push(format!(
            "# Language\nAlways reply in this language: {language}. Code, names and the content of files keep their own."
        ));
    }
    for (what, text) in [("commit messages", &config.attribution.commit), ("pull requests", &config.attribution.pr)] {
        parts.extend(text.as_ref().map(|text| match text.trim() {
            "" => format!("Do not add a trailer or a signature of an assistant to {what}."),
            text => format!("End the text of {what} with a blank line and exactly this:\n{text}"),
        }));
    }
    parts.extend(given.map(str::to_owned));
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn holds(key: &str) -> Holds {
    let table = key.split('.').next().unwrap_or_default();
    match (table, key) {
        ("log" | "sessions" | "mcp", _)
        | (
            _,
            "model"
            | "tui.screen_reader"
            | "tui.fullscreen"
            | "sandbox.enabled"
            | "probe_local"
            | "permissions.default_mode"
            | "permissions.disable_bypass"
            | "tools.todos"
            | "managed_hooks_only"
            | "git_status"
            | "announcements",
        ) => Holds::NextStart,
        ("memory" | "attribution", _) | (_, "language" | "output_style") => Holds::NextSession,
        _ => Holds::Now,
    }
}

/// Every setting for a list.
pub(super) fn rows(setup: &Setup, loaded: &Loaded) -> Vec<SettingRow> {
    loaded.listed(&config::themes::own(&setup.paths), holds)
}

impl Engine {
    /// `/config <key> <value>`; without a value it only looks.
    pub(super) async fn configure(&mut self, args: &str) {
        let (key, value) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let file = Target::user(&self.setup.paths).file;
        if let Some(why) = self.refused_change("user_settings", &file).await {
            return self.fail(why).await;
        }
        let target = Target::user(&self.setup.paths);
        if let Err(problem) = edit::change(&target, key, Some(value.trim())) {
            return self.fail(problem).await;
        }
        let problems = match self.read_settings().await {
            Ok(problems) => problems,
            Err(broken) => return self.fail(broken).await,
        };
        let mut settings = self.loaded.explain(key).unwrap_or_default();
        for given in settings.iter_mut().flat_map(|setting| &mut setting.given) {
            given.place = self.setup.paths.tilde(&given.place);
        }
        let file = PathBuf::from(self.setup.paths.tilde(&file.to_string_lossy()));
        let change = SettingChanged { key: key.to_owned(), settings, file, holds: holds(key) };
        self.show(Report::SettingChanged(change)).await;
        for text in problems {
            self.tell(text).await;
        }
    }

    /// Changes a setting from the list of them, which comes again with what came of it.
    pub(super) async fn set(&mut self, key: &str, value: Option<&str>, place: SettingPlace) {
        let word = Some(self.setting_changed(key, value, place).await.into());
        let rows = rows(&self.setup, &self.loaded);
        self.mailbox.emit(Event::Listed(Listed::Settings(SettingList { rows, word }))).await;
    }

    async fn setting_changed(&mut self, key: &str, value: Option<&str>, place: SettingPlace) -> Result<String, String> {
        let source = match place {
            SettingPlace::Project => "local_settings",
            SettingPlace::User => "user_settings",
        };
        let file = Target::new(&self.setup.paths, &self.setup.project, place).file;
        if let Some(why) = self.refused_change(source, &file).await {
            return Err(why);
        }
        let target = Target::new(&self.setup.paths, &self.setup.project, place);
        let before = self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust).uses;
        let changed = edit::change(&target, key, value).map_err(|problem| problem.to_string())?;
        let path = target.file;
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !changed {
            return Ok(format!("{key} is not set in {file}"));
        }
        if place == SettingPlace::Project {
            // What the user has just written here needs no question.
            let mut uses = self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust).uses;
            // A plugin that is switched on is asked about by itself.
            let plugins = &self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust).plugins;
            uses.retain(|used| !before.contains(used) && !plugins.uses().any(|other| other == used));
            self.agent.policy.trust.agree(&uses);
            config::trust::remember(&self.setup.paths, &self.setup.project, Extent::More, &uses)
                .map_err(|error| format!("it will ask at the next start: {error}"))?;
        }
        let problems = self.read_settings().await.map_err(|broken| broken.to_string())?;
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        // Another file, a variable or a flag may say something else.
        let wins = self.loaded.wins_over(key, &path);
        if let Some(place) = wins.filter(|_| value.is_some()) {
            return Err(format!("Saved to {file}, but {place} wins"));
        }
        let what = if value.is_some() { "Saved to" } else { "Back to the default; removed from" };
        Ok(match holds(key) {
            Holds::Now => format!("{what} {file}"),
            Holds::NextSession => format!("{what} {file}; takes effect in the next session"),
            Holds::NextStart => format!("{what} {file}; takes effect at the next start"),
        })
    }

    /// Why hooks do not let a file of settings be changed.
    async fn refused_change(&mut self, source: &str, file: &Path) -> Option<String> {
        let occasion = Occasion::config_change(source, file);
        events::refused(&mut self.agent, occasion, &self.mailbox).await.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Takes over the files as they are now. What of the rules cannot be read is returned.
    ///
    /// # Errors
    /// The user's file is broken.
    async fn read_settings(&mut self) -> Result<Vec<String>, config::Broken> {
        self.setup.loaded = self.setup.loaded.read_again(&self.setup.paths)?;
        let problems = self.take_settings();
        self.tell_interface().await;
        Ok(problems)
    }

    /// Tells front ends what they look like, where that has changed.
    pub(super) async fn tell_interface(&mut self) {
        let now = self.loaded.config.interface();
        if self.interface != now {
            self.interface = now.clone();
            self.mailbox.emit(Event::Interface(now)).await;
        }
    }

    /// Takes over the folder's and the user's settings as they are now. What of the rules cannot be read is returned.
    pub(super) fn take_settings(&mut self) -> Vec<String> {
        // What was granted meanwhile is in the file; what could not be remembered holds for this session all the same.
        let remembered = config::trust::of(&self.setup.paths, &self.setup.project);
        self.agent.policy.trust.join(remembered);
        self.loaded = self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust);
        super::mcp::follow(self.agent.policy.servers.as_ref(), &self.setup.project, &self.loaded);
        self.catalog.take_plugins(self.loaded.plugins.for_skills());
        self.models.reconfigure(&self.loaded);
        let model = self.models.renewed(&self.agent.model);
        let settings = Settings::of(&self.setup, &self.loaded, &self.models, &self.catalog, &model.spec);
        self.agent.policy.replace(settings.rules, settings.places);
        let (given, switch) = settings.hooks;
        self.agent.hooking.hooks.reconfigure(given, switch);
        self.agent.hooking.hooks.limits = settings.hook_limits;
        self.agent.runs.settings = settings.skills;
        self.agent.take_settings(settings.agent, model);
        let (legacy, tracking) = settings.switches;
        self.catalog.configure(legacy, tracking);
        self.catalog.show(skills::shown(&self.loaded.config));
        self.catalog.hide(settings.hidden);
        self.idle = settings.idle;
        settings.problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::paths::{Env, Paths};
    use crate::engine::Begin;
    use crate::permission::Sandbox;
    use crate::stdx::clock::Clocks;
    use toml::{Table, Value};

    fn setup(root: &std::path::Path, flags: Table) -> Setup {
        let env = Env::fake(root, &[]);
        let paths = Paths::new(&env).unwrap();
        Setup {
            loaded: config::load(&paths, &env, flags).unwrap_or_else(|broken| panic!("{broken}")),
            paths,
            env,
            project: root.join("project"),
            begin: Begin::New,
            fork: false,
            trust: false,
            offline: true,
            script: None,
            mode: None,
            thinking: None,
            system: None,
            append_system: None,
            output_schema: None,
            commands: crate::sandbox::Sandbox::off(),
            sandbox: Sandbox::Outer,
            piped: None,
            presence: agent::Presence::Attended,
            may_bypass: false,
            host: None,
            session_id: None,
            resume_at: None,
            only_tools: None,
            clocks: Clocks::real(),
        }
    }

    /// All that the running system holds of a configuration.
    fn held(root: &std::path::Path, flags: Table) -> String {
        let setup = setup(root, flags);
        let catalog = skills::catalog(&setup);
        let mut models = Models::new(&setup.loaded, setup.env.clone(), setup.paths.clone(), None);
        models.reconfigure(&setup.loaded);
        let spec = models.offline().spec;
        let now = Settings::of(&setup, &setup.loaded, &models, &catalog, &spec);
        let Settings { rules, problems, places, agent, skills, hooks, hook_limits, switches, hidden, idle } = now;
        let skills = (skills.verbosity, skills.named, skills.room, skills.shell, skills::shown(&setup.loaded.config));
        format!(
            "{rules:?} {problems:?} {places:?} {agent:?} {skills:?} {hooks:?} {hook_limits:?} {switches:?} {hidden:?} \
             {idle:?} {:?} {}",
            (setup.loaded.config.interface(), &setup.loaded.config.plugins),
            models.held()
        )
    }

    /// Another value of the same key that the schema allows.
    fn other(key: &str, value: &Value) -> Value {
        let word = |text: &str| Value::String(text.into());
        match (key, value) {
            ("permissions.default_mode", _) => word("plan"),
            ("sandbox.approved", _) => word("workspace"),
            ("tools.keep", _) => word("head"),
            ("compact.micro.trigger", _) => word("warning"),
            // Ten tries are the most: nine and ten retries are the same.
            ("network.max_retries", _) => Value::Integer(3),
            ("compact.tool_output.summary", _) => word("heuristic"),
            ("thinking.default_level" | "thinking.max_level", _) => word("deep"),
            ("skills.verbosity", _) => word("sparse"),
            ("tui.theme", _) => word("mono"),
            ("output_style", _) => word("learning"),
            ("skills.overrides.commit", _) => word("name-only"),
            ("tui.editor_mode", _) => word("vim"),
            ("tui.resize", _) => word("rebuild"),
            ("log.level", _) => word("warn"),
            (key, _) if key.ends_with(".wire") => word("openai-chat"),
            (_, Value::Boolean(is)) => Value::Boolean(!is),
            (_, Value::Integer(count)) if *count > 1 => Value::Integer(count - 1),
            (_, Value::Integer(count)) => Value::Integer(count + 1),
            (_, Value::Float(share)) => Value::Float(share * 0.99),
            (_, Value::Array(_)) => Value::Array(vec![word("Read")]),
            (_, Value::String(text)) => word(&format!("{text}x")),
            (key, value) => panic!("{key} = {value}"),
        }
    }

    fn nested(key: &str, value: Value) -> Table {
        let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut inner = Table::from_iter([(last.to_owned(), value)]);
        for name in table.rsplit('.').filter(|name| !name.is_empty()) {
            inner = Table::from_iter([(name.to_owned(), Value::Table(inner))]);
        }
        inner
    }

    fn leaves(table: &Table, before: &str, found: &mut Vec<(String, Value)>) {
        for (name, value) in table {
            let key = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
            match value {
                Value::Table(table) => leaves(table, &key, found),
                value => found.push((key, value.clone())),
            }
        }
    }

    #[test]
    fn only_models_that_the_settings_let_be_asked_are_found() {
        let root = tempfile::tempdir().unwrap();
        let check = |flags: &str, name: &str, want: &str| {
            let setup = setup(root.path(), flags.parse().unwrap());
            let models = Models::new(&setup.loaded, setup.env.clone(), setup.paths.clone(), None);
            let found = models.named(name).map_or_else(|why| why, |model| model.name());
            assert!(found.contains(want), "{flags} {name}: {found}");
        };
        check("", "anthropic/opus", "anthropic/claude-opus");
        for some in
            ["available_models = ['sonnet']", "available_models = ['claude-sonnet', 'anthropic/claude-sonnet-5']"]
        {
            check(some, "anthropic/sonnet", "anthropic/claude-sonnet-5");
            check(some, "anthropic/opus", "may not be used: `available_models` only lists ");
        }
        check("denied_models = ['opus']", "anthropic/opus", "may not be used: `denied_models` lists it");
        check("denied_models = ['opus']", "anthropic/sonnet", "anthropic/claude-sonnet-5");
        check(
            "denied_models = ['claude-opus']\navailable_models = ['opus']",
            "anthropic/opus",
            "`denied_models` lists it",
        );
        check("denied_models = ['offline']\navailable_models = ['x']", "offline", "offline/");
    }

    #[test]
    fn what_is_added_to_the_system_prompt() {
        let root = tempfile::tempdir().unwrap();
        let added = |flags: &str| {
            let setup = setup(root.path(), flags.parse().unwrap());
            additions(&setup.loaded.config, None, Some("Mine."))
        };
        assert_eq!(added("").as_deref(), Some("Mine."));
        let all = added("language = 'Greek'\nattribution = { commit = 'By: me', pr = '' }").unwrap();
        for part in [
            "Always reply in this language: Greek.",
            "End the text of commit messages with a blank line and exactly this:\nBy: me",
            "Do not add a trailer or a signature of an assistant to pull requests.\n\nMine.",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
        let bare = agent::prompt::without_coding();
        assert!(
            !bare.contains("# How to work") && bare.contains("# How to answer") && bare.contains("# Safety"),
            "{bare}"
        );
        assert!(bare.starts_with("You are cocode"), "{bare}");
    }

    #[test]
    fn every_key_holds_when_it_says() {
        let root = tempfile::tempdir().unwrap();
        let before = held(root.path(), Table::new());
        let mut keys = Vec::new();
        leaves(&config::DEFAULTS.parse().unwrap(), "", &mut keys);
        // Those without a default.
        keys.extend([
            ("model".into(), Value::String("offline/".into())),
            ("max_turns".into(), Value::Integer(7)),
            ("allowed_hook_urls".into(), Value::Array(Vec::new())),
            ("allowed_hook_variables".into(), Value::Array(Vec::new())),
            ("language".into(), Value::String("German".into())),
            ("attribution.commit".into(), Value::String("x".into())),
            ("attribution.pr".into(), Value::String(String::new())),
            ("skills.list_share".into(), Value::Float(0.5)),
            ("skills.max_description".into(), Value::Integer(70)),
            ("skills.overrides.commit".into(), Value::String("off".into())),
            ("thinking.budget_tokens".into(), Value::Integer(2_000)),
            ("tools.search_url".into(), Value::String("https://s.example/".into())),
            ("compact.max_messages".into(), Value::Integer(70)),
            ("budget.day_usd".into(), Value::Float(1.5)),
            ("env.NAME".into(), Value::String("value".into())),
            ("models.mine.window".into(), Value::Integer(9_000)),
            ("providers.anthropic.headers.x".into(), Value::String("y".into())),
            ("plugins.enabled.x@y".into(), Value::Boolean(true)),
            ("hooks.Stop".into(), Value::Array(Vec::new())),
        ]);
        for (key, value) in keys {
            let value = match key.as_str() {
                "hooks.Stop" => {
                    let hook: Table = "Stop = [{hooks = [{type = 'command', command = 'true'}]}]".parse().unwrap();
                    hook["Stop"].clone()
                }
                key => other(key, &value),
            };
            let changed = held(root.path(), nested(&key, value)) != before;
            let holds = holds(&key);
            match holds {
                Holds::Now => assert!(changed, "{key} is said to hold at once, and nothing takes it over"),
                Holds::NextSession => assert!(changed, "{key}: nothing takes it over"),
                Holds::NextStart => assert!(!changed, "{key} is taken over, and said to need a start"),
            }
        }
    }
}
