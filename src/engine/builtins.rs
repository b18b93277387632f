//! Commands that show and change what lies around the session: `/config`, `/todos`, `/doctor`.

use std::fmt::Write;

use super::{Engine, doctor};
use crate::config::{self, edit};
use crate::message::{Todo, TodoStatus};

impl Engine {
    /// `/config`: what is set, one key, or a new value for it.
    pub(super) async fn configure(&mut self, args: &str) {
        let (key, value) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        match (key, value.trim()) {
            ("", _) => self.tell(self.settings_report()).await,
            (key, "") => match self.loaded.explain(key) {
                Ok(text) => self.tell(fenced(&text)).await,
                Err(text) => self.fail(text).await,
            },
            (key, value) => self.set(key, value).await,
        }
    }

    async fn set(&mut self, key: &str, value: &str) {
        let file = match edit::set(&self.setup.paths, key, value) {
            Ok(file) => file,
            Err(problem) => return self.fail(problem).await,
        };
        match self.setup.loaded.read_again(&self.setup.paths) {
            Ok(own) => self.setup.loaded = own,
            Err(broken) => return self.fail(broken).await,
        }
        let mut problems = self.take_settings();
        let explained = self.loaded.explain(key).unwrap_or_default();
        let note = match key.split('.').next() {
            Some("tui" | "keys" | "log") => "\n\nThis takes effect at the next start.",
            Some("model") => "\n\nNew sessions start with it; `/model` changes the current one.",
            _ => "",
        };
        problems.insert(0, format!("Written to `{}`.\n\n{}{note}", file.display(), fenced(&explained)));
        for text in problems {
            self.tell(text).await;
        }
    }

    /// Every key that somebody set, with its source.
    fn settings_report(&self) -> String {
        let mut text = String::new();
        for key in self.loaded.given_keys() {
            text.push_str(&self.loaded.explain(&key).unwrap_or_default());
        }
        let set = if text.is_empty() {
            "All settings have their defaults.".to_owned()
        } else {
            format!("Settings that differ from the defaults, with their sources:\n\n{}", fenced(&text))
        };
        format!(
            "{set}\n\n`/config tui` explains a table or a key, `/config tui.theme light` sets one in `{}`.",
            self.setup.paths.user_config().display()
        )
    }

    /// `/todos`: the agent's list.
    pub(super) fn todos_report(&self) -> String {
        let todos = self.agent.session.context().todos();
        if todos.is_empty() {
            return "The agent has no todo list.".into();
        }
        todos.iter().fold(String::new(), |mut text, Todo { content, active_form, status }| {
            let (mark, words) = match status {
                TodoStatus::Pending => ("☐", content),
                TodoStatus::InProgress => ("◐", active_form),
                TodoStatus::Completed => ("☒", content),
            };
            let _ = writeln!(text, "- {mark} {words}");
            text
        })
    }

    /// `/doctor`: the same as `cocode doctor`.
    pub(super) async fn doctor(&self) {
        let findings = self.findings().await;
        self.tell(fenced(&doctor::to_text(&findings))).await;
    }

    pub(super) async fn findings(&self) -> Vec<doctor::Finding> {
        let (env, paths, cwd) = (self.setup.env.clone(), self.setup.paths.clone(), self.setup.project.clone());
        let look = move || doctor::examine(doctor::Here { env: &env, paths: &paths, cwd: &cwd });
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Takes over the folder's and the user's settings as they are now. What of the rules cannot be read is returned.
    pub(super) fn take_settings(&mut self) -> Vec<String> {
        // What was granted meanwhile is in the file; what could not be remembered holds for this session all the same.
        let remembered = config::trust::of(&self.setup.paths, &self.setup.project);
        self.agent.policy.trust.join(remembered);
        self.loaded = self.setup.loaded.with_project(&self.setup.project, &self.agent.policy.trust);
        let (rules, problems) = super::open::rules(&self.loaded);
        let places = super::open::places_with(&self.setup, &self.loaded);
        self.agent.take_rules(rules, places);
        let (given, switch) = self.loaded.hooks();
        self.agent.hooking.hooks.reconfigure(given, switch);
        self.models.reconfigure(self.loaded.config.clone());
        self.agent.set_skills(super::skills::settings(&self.catalog, &self.loaded, &self.models));
        self.agent.settings.max_turns = self.loaded.config.max_turns;
        self.take_compaction();
        self.agent.settings.thinking = self.loaded.thinking(&self.setup.env, self.setup.thinking);
        let model = self.agent.model.clone();
        let tools = self.loaded.config.tool_settings(&model.spec);
        self.agent.set_model(model, tools);
        problems
    }
}

/// Text that keeps its lines.
pub(super) fn fenced(text: &str) -> String {
    format!("```\n{}\n```", text.trim_end().replace("```", "'''"))
}
