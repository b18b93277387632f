//! Commands that act on the session: `/clear`, `/undo`, `/model` and the like.

use std::path::PathBuf;

use super::reports::{Look, THEME, unquoted};
use super::skills::Called;
use super::{
    Begin, Engine, Inbox, changes, choosing, forecast, lists, mcp, notes, places, plugins, skills, styles, switch,
    waiting,
};
use crate::agent::mailbox::Prompt;
use crate::agent::prefix::Next;
use crate::agent::{Model, Undo};
use crate::commands::{Builtin, SERVED, memory_note};
use crate::hooks::{EndReason, StartSource};
use crate::message::{Attachment, Message};
use crate::permission::{Behavior, Mode, Source};
use crate::protocol::report::{PlanMode, Report};
use crate::protocol::{Event, GrantScope, Item, Listed, RewindWhat, Verdict};
use crate::session::entry::{EntryKind, Restore, Seq, not_undone};
use crate::session::index;
use crate::session::{Overwrite, Restored};
use crate::thinking::Level;
use crate::tools::RULES;
use crate::{config, session};

impl Engine {
    pub(super) async fn tell(&self, text: impl Into<String>) {
        self.mailbox.emit(Event::Notice { text: text.into() }).await;
    }

    pub(super) async fn show(&self, report: Report) {
        self.mailbox.emit(Event::Report(report)).await;
    }

    pub(super) async fn fail(&self, text: impl ToString) {
        self.mailbox.emit(Event::Error { text: text.to_string(), restore: None }).await;
    }

    pub(super) async fn command(&mut self, name: &str, args: &str, inbox: &mut Inbox) {
        if let Some(servers) = self.agent.policy.servers.clone().filter(|_| name.starts_with(SERVED)) {
            // Its server may still be starting.
            let cancel = self.mailbox.begin();
            let reached = async {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = servers.reached(name) => {}
                }
            };
            inbox.attend(reached).await;
            self.mailbox.end();
            self.catalog.take_served(mcp::prompts(&servers));
            if let Some(text) = servers.refuses(name, args) {
                let restore = Some(format!("/{name} {args}").trim_end().to_owned());
                return self.mailbox.emit(Event::Error { text, restore }).await;
            }
        }
        // Apart, so that a turn has the stack to itself.
        match skills::called(&self.catalog, name, args) {
            Ok(Called::Builtin(builtin)) => {
                if let Some(prompt) = Box::pin(self.builtin(builtin, name, args, inbox)).await {
                    Box::pin(self.turn(prompt, inbox)).await;
                }
            }
            Ok(Called::Skill(prompt)) => Box::pin(self.turn(prompt, inbox)).await,
            Err(unknown) => self.fail(unknown).await,
        }
    }

    /// The prompt that it makes is for the caller to send.
    async fn builtin(&mut self, builtin: Builtin, name: &str, args: &str, inbox: &mut Inbox) -> Option<Prompt> {
        // What a report tells of the session's notes is in the log first.
        if builtin == Builtin::Cost
            && let Err(error) = self.agent.compaction.notes.collect(&mut self.agent.conversation.session)
        {
            self.fail(error).await;
            return None;
        }
        let looked = self.look().report(builtin, args).await;
        if let Some(looked) = looked {
            match looked {
                Ok(report) => self.show(report).await,
                Err(error) => self.fail(error).await,
            }
            return None;
        }
        match builtin {
            Builtin::Clear => self.clear(inbox).await,
            Builtin::Model => switch::model(self, args).await,
            Builtin::Thinking => self.thinking(args).await,
            Builtin::Permissions => self.permissions(args).await,
            Builtin::Resume => Box::pin(self.resume(args, inbox)).await,
            Builtin::Rename => self.rename(args).await,
            Builtin::Rewind => self.list_prompts().await,
            Builtin::Undo => self.put_back(Restore::Undo).await,
            Builtin::Redo => self.put_back(Restore::Redo).await,
            Builtin::Export => self.export(args).await,
            Builtin::Compact => self.compact(args, inbox).await,
            Builtin::Config => self.configure(args).await,
            Builtin::Theme => self.configure(&format!("{THEME} {args}")).await,
            Builtin::OutputStyle => styles::choose(self, args).await,
            Builtin::Plan => return self.plan(args).await,
            Builtin::Skills => skills::act(self, args).await,
            Builtin::ReloadPlugins => plugins::reload(self, inbox).await,
            Builtin::Tasks => waiting::acted(self, args).await,
            Builtin::Memory => notes::add(self, memory_note(args).unwrap_or_default(), inbox).await,
            Builtin::Copy | Builtin::Find | Builtin::Vim | Builtin::Exit => {
                self.fail(format!("/{name} needs a terminal")).await
            }
            // They only look, whatever is said behind them.
            Builtin::Help
            | Builtin::Context
            | Builtin::Cost
            | Builtin::Diff
            | Builtin::Todos
            | Builtin::Doctor
            | Builtin::BugReport
            | Builtin::Hooks
            | Builtin::Status
            | Builtin::Sandbox
            | Builtin::Agents
            | Builtin::Plugin
            | Builtin::Mcp => {}
        }
        None
    }

    async fn clear(&mut self, inbox: &mut Inbox) {
        let session = choosing::fresh(&self.setup);
        self.replace(session, EndReason::Clear, inbox).await;
        self.session_started(StartSource::Clear, inbox).await;
    }

    /// Puts another session in the place of this one. The mode carries over into a new session; an earlier one keeps its own,
    /// but for Bypass, which it does not bring along.
    async fn replace(&mut self, session: crate::session::Session, reason: EndReason, inbox: &mut Inbox) {
        let (now, before_plan) =
            (self.agent.conversation.mode(), self.agent.conversation.mode_before_plan(self.agent.settings.bypass));
        self.session_ended(reason, inbox).await;
        if let Err(error) = self.agent.conversation.session.sync() {
            self.fail(error).await;
        }
        let mode = match session.facts().mode.filter(|_| !session.is_empty()) {
            Some(Mode::Bypass) if now != Mode::Bypass => Mode::Default,
            Some(mode) => mode,
            None => now,
        };
        self.agent.take_session(session, places::git_status(&self.setup, &self.loaded));
        // Where plan mode was entered from goes along with it.
        let modes = if mode == Mode::Plan { vec![before_plan, mode] } else { vec![mode] };
        if !self.agent.conversation.session.read_only() && mode != self.agent.conversation.mode() {
            for mode in modes {
                if let Err(error) = self.agent.conversation.append(EntryKind::ModeChanged { mode }) {
                    self.fail(error).await;
                }
            }
        }
        self.announce().await;
    }

    pub(super) async fn resume(&mut self, query: &str, inbox: &mut Inbox) {
        let id = match index::resolve(&self.setup.paths.home, query, (self.setup.clocks.wall)()) {
            Ok(id) => id,
            Err(error) => return self.fail(error).await,
        };
        if id == self.agent.conversation.session.id() {
            return self.tell("That is the current session.").await;
        }
        if let Err(text) = choosing::same_folder(&self.setup, &id) {
            return self.fail(text).await;
        }
        match choosing::open_or_ask(&self.setup, &id, inbox).await {
            Ok(session) => {
                let model = session.facts().own_model.clone();
                self.replace(session, EndReason::Resume, inbox).await;
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

    pub(super) async fn take_model(&mut self, model: Model) {
        let session = &mut self.agent.conversation.session;
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
            "revoke" => self.revoke(unquoted(rest)).await,
            other => {
                self.fail(format!("Unknown: `/permissions {other}`. Use `test \"command\"` or `revoke rule`.")).await
            }
        }
    }

    async fn revoke(&mut self, text: &str) {
        let rule = match RULES.rule(text) {
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
                        .conversation
                        .append(EntryKind::Revoked { rule: text.to_owned() })
                        .map(|_| true)
                        .map_err(|error| error.to_string()),
                };
                match done {
                    // A file that reads as the same source has it.
                    Ok(false) => {
                        self.agent.policy.rules.add(behavior, rule, source);
                        let text = format!("`{text}` is in .cocode/config.local.toml: change the list in /config");
                        return self.fail(text).await;
                    }
                    Ok(true) => gone.push(source.to_string()),
                    Err(problem) => {
                        self.agent.policy.rules.add(behavior, rule, source);
                        return self.fail(problem).await;
                    }
                }
            }
        }
        if gone.is_empty() {
            let entries = self.agent.policy.rules.entries();
            let kept = entries.iter().find(|entry| entry.rule == rule).and_then(|entry| lists::fixed(entry.source));
            return match kept {
                Some(why) => self.fail(format!("`{text}` cannot be revoked here: {why}.")).await,
                None => {
                    let text =
                        format!("No rule `{text}` to revoke: `/permissions` lists the rules with their sources.");
                    self.fail(text).await
                }
            };
        }
        self.tell(format!("Revoked `{text}` ({}).", gone.join(", "))).await;
    }

    /// Chooses a level for the session; none takes the choice back.
    pub(super) async fn set_thinking(&mut self, level: Option<Level>) {
        if let Err(error) = self.agent.set_thinking(level, &self.mailbox).await {
            self.fail(error).await;
        }
    }

    /// `/thinking [none|deep|ultra|auto]`, and `/effort` with the words of other programs.
    async fn thinking(&mut self, args: &str) {
        let level = match args {
            "auto" => None,
            word => match word.parse() {
                Ok(level) => Some(level),
                Err(problem) => return self.fail(format!("{problem}, or auto to leave it to the settings")).await,
            },
        };
        let info = self.agent.thinking_info();
        if let Some(variable) = info.locked {
            return self.fail(format!("The level is locked by {variable}: start without it to choose another.")).await;
        }
        if self.agent.conversation.session.read_only() {
            return self.fail("This session is open read-only.").await;
        }
        let before = info.level;
        self.set_thinking(level).await;
        let now = self.agent.thinking_info();
        let changed = now.level != before;
        self.show(Report::Thinking(now)).await;
        if changed {
            forecast::tell(self, Next::ThoughtAboutOtherwise).await;
        }
    }

    async fn compact(&mut self, args: &str, inbox: &mut Inbox) {
        if self.agent.conversation.session.read_only() {
            return self.fail("This session is open read-only and cannot be compacted.").await;
        }
        let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let done = match (verb, rest.trim()) {
            ("undo", "") => self.agent.compact_undo(Undo::Compaction, &self.mailbox).await,
            ("undo", "plan") => self.agent.compact_undo(Undo::Plan, &self.mailbox).await,
            ("micro", "") => self.agent.compact_micro(None, &self.mailbox).await,
            ("micro", tokens) if tokens.parse::<u64>().is_ok() => {
                self.agent.compact_micro(tokens.parse().ok(), &self.mailbox).await
            }
            _ => return self.summarize(args, inbox).await,
        };
        match done {
            Ok(freed) => self.show(Report::Freed(freed)).await,
            Err(error) => self.fail(error).await,
        }
    }

    async fn summarize(&mut self, instructions: &str, inbox: &mut Inbox) {
        if !forecast::confirmed(self, inbox).await {
            return self.tell("Not compacted.").await;
        }
        let mailbox = self.mailbox.clone();
        let cancel = mailbox.begin();
        let instructions = Some(instructions.trim().to_owned()).filter(|text| !text.is_empty());
        let look = Look::beside(&self.setup, &self.loaded, &self.models, &self.catalog, (&mut self.agent, &mailbox));
        let compacting = Box::pin(self.agent.compact(instructions, &mailbox, &cancel));
        let done = inbox.attend_with(Some(&look), compacting).await;
        mailbox.end();
        match done {
            Ok(freed) => self.show(Report::Freed(freed)).await,
            Err(error) => self.fail(error).await,
        }
    }

    /// `/plan` enters plan mode, or shows where the plan is; `/plan exit` goes back to the mode before; anything else is
    /// the task to plan.
    async fn plan(&mut self, args: &str) -> Option<Prompt> {
        let planning = self.agent.conversation.mode() == Mode::Plan;
        let task = Builtin::Plan.makes_turn(args);
        if !task && !args.is_empty() {
            if !planning {
                self.tell("Plan mode is not on.").await;
                return None;
            }
            let before = self.agent.conversation.mode_before_plan(self.agent.settings.bypass);
            self.change_mode(before).await;
            return None;
        }
        if !planning {
            self.change_mode(Mode::Plan).await;
            if self.agent.conversation.mode() != Mode::Plan {
                return None;
            }
        }
        if task {
            return Some(Prompt::new(args));
        }
        let file = self.agent.conversation.plan_file()?;
        let text = std::fs::read_to_string(&file).ok().filter(|text| !text.trim().is_empty());
        let lines = text.map(|text| text.lines().count() as u64);
        self.show(Report::Plan(PlanMode { entered: !planning, file, lines })).await;
        None
    }

    async fn change_mode(&mut self, mode: Mode) {
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.set_mode(mode, &mailbox).await {
            self.fail(error).await;
        }
    }

    async fn rename(&mut self, title: &str) {
        if title.is_empty() {
            return self.fail("Which title? Example: `/rename parser rewrite`.").await;
        }
        match self.agent.conversation.append(EntryKind::Title { title: title.to_owned() }) {
            Ok(_) => self.tell(format!("Renamed the session to “{title}”.")).await,
            Err(error) => self.fail(error).await,
        }
    }

    async fn list_prompts(&self) {
        let prompts = lists::prompts(&self.agent.conversation.session);
        self.mailbox.emit(Event::Listed(Listed::Prompts(prompts))).await;
    }

    async fn put_back(&mut self, how: Restore) {
        let done = match how {
            Restore::Undo => self.agent.conversation.session.undo(),
            Restore::Redo => self.agent.conversation.session.redo(),
            Restore::Rewind | Restore::Review => return,
        };
        match done {
            Ok(restored) => self.told_restored(restored).await,
            Err(session::Error::Nothing(what)) => {
                let mut lines = vec![format!("Nothing to {what}.")];
                if how == Restore::Undo {
                    lines.extend(
                        self.agent.conversation.session.commands_left().iter().map(|command| not_undone(command)),
                    );
                }
                self.tell(lines.join("\n")).await;
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn told_restored(&self, restored: Restored) {
        let Restored { how, turn, restored, merged, refused, by, unseen } = restored;
        let item = Item::FilesRestored { how, turn, restored, merged, refused, by, unseen };
        self.mailbox.emit(Event::Item(item)).await;
    }

    /// Reverts what the user rejected, and leaves the model a note of it.
    pub(super) async fn review(&mut self, turn: Option<Seq>, verdicts: Vec<Verdict>) {
        let mut refused = Vec::new();
        if verdicts.iter().any(|verdict| verdict.hunks.iter().any(|hunk| hunk.revert)) {
            match self.agent.conversation.session.revert(turn, &verdicts) {
                Ok(restored) => {
                    refused.clone_from(&restored.refused);
                    self.told_restored(restored).await;
                }
                Err(error) => return self.fail(error).await,
            }
        }
        let note = Message::attachment(Attachment::Review, &changes::told(&verdicts, &refused));
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.conversation.push(note, &mailbox).await {
            self.fail(error).await;
        }
    }

    pub(super) async fn rewind(&mut self, to: Seq, what: RewindWhat) {
        match self.agent.rewind(to, what, &self.mailbox).await {
            Ok(rewound) => {
                if let Some(files) = rewound.files {
                    self.told_restored(files).await;
                }
                if rewound.conversation {
                    self.mailbox.emit(Event::Item(Item::Rewound { to, prompt: rewound.prompt })).await;
                    self.mailbox.emit(Event::Todos { items: self.agent.conversation.context().todos().to_vec() }).await;
                }
                self.mailbox.emit(Event::Usage(self.agent.usage_info())).await;
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn export(&mut self, args: &str) {
        let path = if args.is_empty() {
            PathBuf::from(format!("session-{}.md", &self.agent.conversation.session.id()[..8]))
        } else {
            PathBuf::from(args)
        };
        let path = match (path.strip_prefix("~"), &self.setup.paths.user_home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.setup.project.join(path),
        };
        let json = path.extension().is_some_and(|extension| extension == "json");
        let text = if json {
            self.agent.conversation.session.to_json()
        } else {
            self.agent.conversation.session.to_markdown()
        };
        let written = text.map_err(|error| error.to_string()).and_then(|text| {
            let failed = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => format!("{} exists already; choose another name", path.display()),
                _ => format!("cannot write {}: {error}", path.display()),
            };
            let mut file = session::export_file(&path, Overwrite::Never).map_err(failed)?;
            std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)
        });
        match written {
            Ok(()) => self.tell(format!("Exported the session to `{}`.", path.display())).await,
            Err(text) => self.fail(text).await,
        }
    }
}

impl Begin {
    /// Whether an earlier session is wanted.
    pub fn earlier(&self) -> bool {
        *self != Begin::New
    }
}
