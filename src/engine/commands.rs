//! Commands that act on the session: `/clear`, `/undo`, `/model` and the like. Their answers are notices in Markdown.

use std::path::PathBuf;

use super::skills::Called;
use super::{Begin, Engine, Inbox, open, skills};
use crate::agent::Model;
use crate::commands::Builtin;
use crate::hooks::{EndReason, StartSource};
use crate::permission::{Behavior, Mode, Rule, Source};
use crate::protocol::{Event, GrantScope, Item, RewindWhat};
use crate::session::Restored;
use crate::session::entry::{EntryKind, Restore, Seq, not_undone};
use crate::session::index;
use crate::{config, session};

impl Engine {
    pub(super) async fn tell(&self, text: impl Into<String>) {
        self.mailbox.emit(Event::Notice { text: text.into() }).await;
    }

    pub(super) async fn fail(&self, text: impl ToString) {
        self.mailbox.emit(Event::Error { text: text.to_string(), restore: None }).await;
    }

    pub(super) async fn command(&mut self, name: &str, args: &str, inbox: &mut Inbox) {
        let builtin = match skills::called(&self.catalog, name, args) {
            Ok(Called::Builtin(builtin)) => builtin,
            Ok(Called::Skill(prompt)) => return self.turn(prompt, inbox).await,
            Err(unknown) => return self.fail(unknown).await,
        };
        match builtin {
            Builtin::Help => self.tell(self.catalog.current().registry.help()).await,
            Builtin::Clear => self.clear(inbox).await,
            Builtin::Model => self.model(args).await,
            Builtin::Thinking => self.thinking(args).await,
            Builtin::Permissions => self.permissions(args).await,
            Builtin::Resume => self.resume(args, inbox).await,
            Builtin::Rename => self.rename(args).await,
            Builtin::Rewind => self.list_prompts().await,
            Builtin::Undo => self.put_back(Restore::Undo).await,
            Builtin::Redo => self.put_back(Restore::Redo).await,
            Builtin::Export => self.export(args).await,
            Builtin::Compact => self.compact(args, inbox).await,
            Builtin::Context => {
                let text = self.agent.window_report();
                self.tell(text).await;
            }
            Builtin::Cost => match self.agent.collect_notes() {
                Ok(()) => self.tell(self.cost()).await,
                Err(error) => self.fail(error).await,
            },
            Builtin::Config => self.configure(args).await,
            Builtin::Diff => self.tell(self.changes_report().await).await,
            Builtin::Todos => self.tell(self.todos_report()).await,
            Builtin::Doctor => self.doctor().await,
            Builtin::BugReport => self.bug_report().await,
            Builtin::Hooks => self.tell(self.hooks_report()).await,
            Builtin::Status => self.tell(self.status()).await,
            Builtin::Plan => self.plan(args, inbox).await,
            Builtin::Skills => self.skills(args).await,
            Builtin::Agents => self.tell(self.agent.agents_report()).await,
            Builtin::Memory => self.tell(self.agent.memory_report()).await,
            Builtin::Copy | Builtin::Exit => self.fail(format!("/{name} needs a terminal")).await,
        }
    }

    async fn clear(&mut self, inbox: &mut Inbox) {
        let session = open::fresh(&self.setup);
        self.replace(session, EndReason::Clear).await;
        self.session_started(StartSource::Clear, inbox).await;
    }

    /// Puts another session in the place of this one. The mode carries over into a new session; an earlier one keeps its own,
    /// but for Bypass, which it does not bring along.
    async fn replace(&mut self, session: crate::session::Session, reason: EndReason) {
        let (now, before_plan) = (self.agent.mode(), self.agent.mode_before_plan());
        self.session_ended(reason).await;
        if let Err(error) = self.agent.session.sync() {
            self.fail(error).await;
        }
        let mode = match session.facts().mode.filter(|_| !session.is_empty()) {
            Some(Mode::Bypass) if now != Mode::Bypass => Mode::Default,
            Some(mode) => mode,
            None => now,
        };
        self.agent.take_session(session, open::git_status(&self.setup, &self.loaded));
        // Where plan mode was entered from goes along with it.
        let modes = if mode == Mode::Plan { vec![before_plan, mode] } else { vec![mode] };
        if !self.agent.session.read_only() && mode != self.agent.mode() {
            for mode in modes {
                if let Err(error) = self.agent.session.append(EntryKind::ModeChanged { mode }) {
                    self.fail(error).await;
                }
            }
        }
        self.announce().await;
    }

    pub(super) async fn resume(&mut self, query: &str, inbox: &mut Inbox) {
        if query.is_empty() {
            return self.tell(self.sessions_report()).await;
        }
        let id = match index::resolve(&self.setup.paths.home, query) {
            Ok(id) => id,
            Err(error) => return self.fail(error).await,
        };
        if id == self.agent.session.id() {
            return self.tell("That is the current session.").await;
        }
        if let Err(text) = open::same_folder(&self.setup, &id) {
            return self.fail(text).await;
        }
        match open::open_or_ask(&self.setup, &id, inbox).await {
            Ok(session) => {
                let model = session.facts().own_model.clone();
                self.replace(session, EndReason::Resume).await;
                if let Some(model) = model.and_then(|name| self.models.earlier(&name)) {
                    let tools = self.loaded.config.tool_settings(&model.spec);
                    self.agent.set_model(model, tools);
                    self.mailbox.emit(Event::Model(self.agent.model.info())).await;
                    self.agent.tell_thinking(&self.mailbox).await;
                }
                self.session_started(StartSource::Resume, inbox).await;
            }
            Err(text) => self.fail(text).await,
        }
    }

    fn sessions_report(&self) -> String {
        let rows = match index::list(&self.setup.paths.home, Some(&self.setup.project)) {
            Ok(rows) => rows,
            Err(error) => return error.to_string(),
        };
        if rows.is_empty() {
            return "No earlier sessions in this folder.".into();
        }
        let lines: Vec<String> = rows
            .iter()
            .take(20)
            .map(|row| format!("- `{}` {}", row.id, row.title.as_deref().unwrap_or("untitled")))
            .collect();
        format!(
            "Earlier sessions in this folder, newest first; `/resume <id or words>` continues one:\n\n{}",
            lines.join("\n")
        )
    }

    async fn model(&mut self, name: &str) {
        if name.is_empty() {
            let rows = self.models.rows(&self.agent.model);
            let lines: Vec<String> = rows
                .iter()
                .map(|row| format!("- `{}` — {}{}", row.id, row.detail, if row.current { " (in use)" } else { "" }))
                .collect();
            return self.tell(format!("`/model <name>` switches:\n\n{}", lines.join("\n"))).await;
        }
        match self.models.named(name) {
            Ok(model) => {
                let unknown = (!model.spec.known).then(|| {
                    format!(" The catalog does not know it; assuming a window of {} tokens.", model.spec.window)
                });
                let text = format!("The model is now `{}`.{}", model.name(), unknown.unwrap_or_default());
                self.take_model(model).await;
                self.tell(text).await;
            }
            Err(text) => self.fail(text).await,
        }
    }

    pub(super) async fn take_model(&mut self, model: Model) {
        let session = &mut self.agent.session;
        if !session.is_empty()
            && !session.read_only()
            && let Err(error) = session.append(EntryKind::ModelChanged { model: model.name(), borrowed: false })
        {
            return self.fail(error).await;
        }
        let tools = self.loaded.config.tool_settings(&model.spec);
        self.agent.set_model(model, tools);
        self.mailbox.emit(Event::Model(self.model_info())).await;
        self.agent.tell_thinking(&self.mailbox).await;
        self.mailbox.emit(Event::Usage(self.agent.usage_info())).await;
    }

    async fn permissions(&mut self, args: &str) {
        let (verb, rest) = args.split_once(' ').unwrap_or((args, ""));
        match verb {
            "" => {
                let rows = self.rules();
                if rows.is_empty() {
                    return self.tell("No permission rules are set. Everything that is not read-only asks.").await;
                }
                let lines: Vec<String> = rows
                    .iter()
                    .map(|row| format!("- {} `{}` ({})", row.behavior.name(), row.rule, row.source))
                    .collect();
                self.tell(lines.join("\n")).await;
            }
            "test" => {
                let command = unquoted(rest);
                if command.is_empty() {
                    return self.fail("Which command? Example: `/permissions test \"git push\"`.").await;
                }
                self.tell(self.agent.explain(command)).await;
            }
            "revoke" => self.revoke(unquoted(rest)).await,
            other => {
                self.fail(format!("Unknown: `/permissions {other}`. Use `test \"command\"` or `revoke rule`.")).await
            }
        }
    }

    async fn revoke(&mut self, text: &str) {
        let rule = match Rule::parse(text) {
            Ok(rule) => rule,
            Err(error) => return self.fail(error).await,
        };
        let mut gone = Vec::new();
        for (source, scope) in [
            (Source::Session, GrantScope::Session),
            (Source::ProjectLocal, GrantScope::Project),
            (Source::User, GrantScope::User),
        ] {
            for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
                if !self.agent.policy.rules.remove(behavior, &rule, source) {
                    continue;
                }
                let file = config::grant::file_of(scope, &self.setup.paths, &self.setup.project);
                let done = match file {
                    Some(file) => config::grant::revoke(&file, behavior, text).map_err(|problem| problem.to_string()),
                    None => self
                        .agent
                        .session
                        .append(EntryKind::Revoked { rule: text.to_owned() })
                        .map(|_| true)
                        .map_err(|error| error.to_string()),
                };
                match done {
                    Ok(_) => gone.push(source.to_string()),
                    Err(problem) => {
                        self.agent.policy.rules.add(behavior, rule, source);
                        return self.fail(problem).await;
                    }
                }
            }
        }
        if gone.is_empty() {
            return self
                .fail(format!("No rule `{text}` to revoke: `/permissions` lists the rules with their sources."))
                .await;
        }
        self.tell(format!("Revoked `{text}` ({}).", gone.join(", "))).await;
    }

    async fn rename(&mut self, title: &str) {
        if title.is_empty() {
            return self.fail("Which title? Example: `/rename parser rewrite`.").await;
        }
        match self.agent.session.append(EntryKind::Title { title: title.to_owned() }) {
            Ok(_) => self.tell(format!("Renamed the session to “{title}”.")).await,
            Err(error) => self.fail(error).await,
        }
    }

    async fn list_prompts(&self) {
        let listed = self.list(crate::protocol::ListKind::Prompts);
        self.mailbox.emit(Event::Listed(listed)).await;
    }

    async fn put_back(&mut self, how: Restore) {
        let done = match how {
            Restore::Undo => self.agent.session.undo(),
            Restore::Redo => self.agent.session.redo(),
            Restore::Rewind => return,
        };
        match done {
            Ok(restored) => self.told_restored(restored).await,
            Err(session::Error::Nothing(what)) => {
                let mut lines = vec![format!("Nothing to {what}.")];
                if how == Restore::Undo {
                    lines.extend(self.agent.session.commands_left().iter().map(|command| not_undone(command)));
                }
                self.tell(lines.join("\n")).await;
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn told_restored(&self, restored: Restored) {
        let Restored { how, turn, restored, merged, refused, unseen } = restored;
        self.mailbox.emit(Event::Item(Item::FilesRestored { how, turn, restored, merged, refused, unseen })).await;
    }

    pub(super) async fn rewind(&mut self, to: Seq, what: RewindWhat) {
        match self.agent.rewind(to, what) {
            Ok(rewound) => {
                if let Some(files) = rewound.files {
                    self.told_restored(files).await;
                }
                if rewound.conversation {
                    self.mailbox.emit(Event::Item(Item::Rewound { to, prompt: rewound.prompt })).await;
                    self.mailbox.emit(Event::Todos { items: self.agent.session.context().todos().to_vec() }).await;
                }
                self.mailbox.emit(Event::Usage(self.agent.usage_info())).await;
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn export(&mut self, args: &str) {
        let path = if args.is_empty() {
            PathBuf::from(format!("session-{}.md", &self.agent.session.id()[..8]))
        } else {
            PathBuf::from(args)
        };
        let path = match (path.strip_prefix("~"), &self.setup.paths.user_home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.setup.project.join(path),
        };
        let json = path.extension().is_some_and(|extension| extension == "json");
        let text = if json { self.agent.session.to_json() } else { self.agent.session.to_markdown() };
        let written = text.map_err(|error| error.to_string()).and_then(|text| {
            let mut options = std::fs::OpenOptions::new();
            // What was said may hold secrets.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            std::io::Write::write_all(&mut file, text.as_bytes())
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        });
        match written {
            Ok(()) => self.tell(format!("Exported the session to `{}`.", path.display())).await,
            Err(text) => self.fail(text).await,
        }
    }

    fn cost(&self) -> String {
        let facts = self.agent.session.facts();
        let used = facts.usage_by_model();
        if used.is_empty() {
            return "No model has been used yet.".into();
        }
        let mut text = String::from("| Model | Input | Cached | Output | Cost |\n|---|--:|--:|--:|--:|\n");
        let mut sum = Some(0.0);
        for (model, usage) in &used {
            let cost = self.models.cost(model, usage);
            sum = sum.zip(cost).map(|(sum, cost)| sum + cost);
            let cost = match cost {
                Some(0.0) => "free".to_owned(),
                Some(cost) => format!("${cost:.4}"),
                None => "unknown".to_owned(),
            };
            text.push_str(&format!(
                "| {model} | {} | {} | {} | {cost} |\n",
                grouped(usage.input + usage.cache_write),
                grouped(usage.cache_read),
                grouped(usage.output)
            ));
        }
        match sum {
            Some(sum) if used.len() > 1 => text.push_str(&format!("\nTogether ${sum:.4}.")),
            Some(_) => {}
            None => text.push_str("\nThe catalog has no price for models marked unknown."),
        }
        for spent in facts.spent_by_what() {
            text.push_str(&format!(
                "\n- {} with {}: {} tokens in, {} out",
                spent.what,
                spent.model,
                grouped(spent.usage.input),
                grouped(spent.usage.output)
            ));
        }
        text
    }

    fn status(&self) -> String {
        let (session, model) = (&self.agent.session, &self.agent.model);
        let usage = self.agent.usage_info();
        let trust = match (self.agent.policy.trust.is_empty(), self.loaded.withheld.len()) {
            (_, 0) => "none of its settings is withheld".to_owned(),
            (true, _) => "not trusted: only its deny and ask rules count".to_owned(),
            (false, count) => format!("trusted, except for {count} new settings"),
        };
        let rows = [
            ("cocode", env!("CARGO_PKG_VERSION").to_owned()),
            ("Model", format!("{}, a window of {} tokens", model.name(), grouped(model.spec.window))),
            ("Mode", self.agent.mode().label().to_owned()),
            ("Folder", format!("{} ({trust})", self.setup.project.display())),
            ("Session", format!("{} ({})", session.title().unwrap_or("untitled"), session.id())),
            ("Log", session.log().display().to_string()),
            ("Context", format!("about {} of {} tokens", grouped(usage.context), grouped(usage.window))),
            ("Rules", format!("{} (`/permissions` lists them)", self.agent.policy.rules.entries().len())),
            ("Settings", self.setup.paths.user_config().display().to_string()),
        ];
        let mut text = String::from("| | |\n|---|---|\n");
        for (name, value) in rows {
            text.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|")));
        }
        text
    }
}

/// An argument as it may be written for a shell: without the quotes around it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote).filter(|text| !text.contains(quote));
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

/// A count with its thousands apart: `28,949`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Begin {
    /// Whether an earlier session is wanted.
    pub fn earlier(&self) -> bool {
        *self != Begin::New
    }
}
