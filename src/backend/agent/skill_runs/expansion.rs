//! From a skill's file to what the model reads: its text, with what its commands wrote, and the files that it names.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::commands::expand::{self, Piece, Values};
use crate::commands::skill::{RunsIn, Text};
use crate::commands::{Skill, Source};
use crate::mcp;
use crate::message::{Attachment, Message, Outcome};
use crate::protocol::Event;
use crate::session;
use crate::stdx::fs::private_dir;
use crate::tools::{self, mcp_call};

/// Most characters of the output of one command that are put into a prompt.
const OUTPUT: usize = 30_000;

/// Skills on their way into a conversation.
pub(in crate::agent) struct Expansion<'a> {
    pub(in crate::agent) agent: &'a mut Agent,
    pub(in crate::agent) mailbox: &'a Mailbox,
    pub(in crate::agent) cancel: &'a CancellationToken,
}

impl Expansion<'_> {
    /// Expands a skill's text, runs the commands in it, and tells it to the model.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn push(&mut self, skill: &Arc<Skill>, args: &str) -> Result<(), session::Error> {
        if skill.text == Text::Served {
            self.served(skill, args).await?;
            self.agent.runs.settings.catalog.record(&skill.name);
            self.tell_commands().await;
            return Ok(());
        }
        let (text, attached) = match skill.body() {
            Ok(body) => crate::boxed(|| self.text(skill, &body, args)).await?,
            Err(problem) => (format!("[The skill's text cannot be read: {problem}]"), Vec::new()),
        };
        self.agent.policy.note_invoked(skill, &text, &mut self.agent.conversation)?;
        let (text, attached) = match skill.context {
            RunsIn::Fork => (self.fork(skill, text, attached).await?, Vec::new()),
            RunsIn::Main => (text, attached),
        };
        for message in std::iter::once(Message::skill(text)).chain(attached) {
            self.agent.conversation.push(message, self.mailbox).await?;
        }
        self.agent.runs.settings.catalog.record(&skill.name);
        let turn = self.agent.runs.turn;
        self.agent.runs.recent.retain(|(recent, _)| recent.name != skill.name);
        self.agent.runs.recent.push((skill.clone(), turn));
        self.tell_commands().await;
        Ok(())
    }

    /// Tells that what was used lately comes first from now on.
    async fn tell_commands(&self) {
        if let Some(now) = self.agent.runs.settings.catalog.take_news() {
            self.mailbox.emit(Event::Commands { registry: now.registry.clone() }).await;
        }
    }

    /// Tells the model what a server makes of its prompt. Nothing in it is expanded: it is not the user's own.
    async fn served(&mut self, skill: &Skill, args: &str) -> Result<(), session::Error> {
        let asked = async {
            match &self.agent.policy.servers {
                Some(servers) => servers.prompt(&skill.name, args).await,
                None => Err("no MCP server runs".to_owned()),
            }
        };
        let got = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("it was interrupted".to_owned()),
            got = asked => got,
        };
        let message = match got {
            Ok(got) => {
                let (text, pictures) = mcp_call::prompted(&got, self.agent.conversation.session.store());
                let mut message = Message::skill(format!("The prompt `{}` of an MCP server.\n\n{text}", skill.name));
                message.blocks.extend(pictures);
                message
            }
            Err(problem) => {
                let text = format!("The prompt `{}` cannot be had: {}", skill.name, mcp::told(&problem));
                self.mailbox.emit(Event::Notice { text: text.clone() }).await;
                Message::skill(format!("[{text}]"))
            }
        };
        self.agent.conversation.push(message, self.mailbox).await
    }

    /// The prompt that a skill's body makes, and the files that go with it. A sub-agent that runs a skill gets the same.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn text(
        &mut self,
        skill: &Skill,
        body: &str,
        args: &str,
    ) -> Result<(String, Vec<Message>), session::Error> {
        let session = self.agent.conversation.session.id().to_owned();
        let project = self.agent.policy.places.project.clone();
        if let Some(plugin) = skill.plugin.as_ref().filter(|_| body.contains("PLUGIN_DATA}")) {
            // Where it cannot be made, the skill's own command says so.
            let _ = private_dir(&plugin.data);
        }
        let values = Values {
            args,
            expected: skill.takes_arguments,
            skill_dir: skill.base(),
            plugin_root: skill.plugin.as_ref().map(|plugin| plugin.root.as_path()),
            plugin_data: skill.plugin.as_ref().map(|plugin| plugin.data.as_path()),
            project_dir: skill.plugin.as_ref().map(|_| project.as_path()),
            session_id: &session,
        };
        let expanded = expand::expand(body, &values);
        let mut text = match skill.base() {
            Some(base) => format!(
                "Instructions of the skill `{}`. Relative paths in them start from {}.\n\n",
                skill.name,
                base.display()
            ),
            None => format!("Instructions of the skill `{}`.\n\n", skill.name),
        };
        let mut attached = Vec::new();
        let trusted = self.agent.policy.trusts_text(skill, body);
        let shell = self.agent.runs.settings.shell || matches!(skill.source, Source::Bundled | Source::PolicySettings);
        for piece in expanded.pieces {
            match piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::Shell { .. } if !shell => text.push_str("[shell command execution disabled by policy]"),
                Piece::Shell { command } if !trusted => {
                    text.push_str(&format!(
                        "[`{command}` was not run: the user has not approved what this skill runs]"
                    ));
                }
                Piece::Shell { command } => text.push_str(&self.command_output(&command).await?),
                Piece::File { path } => {
                    text.push('@');
                    text.push_str(&path);
                    attached.extend(self.named_file(skill, &path).await);
                }
            }
        }
        Ok((text, attached))
    }

    /// What a command of a skill wrote, or why it did not.
    async fn command_output(&mut self, command: &str) -> Result<String, session::Error> {
        let input = serde_json::json!({ "command": command, "description": "for a skill" });
        let result = self.agent.aside(tools::BASH, input, self.mailbox, self.cancel).await?;
        let output = result.text();
        let output = output.trim_end();
        let end = output.char_indices().nth(OUTPUT).map_or(output.len(), |(at, _)| at);
        let cut = if end < output.len() { "\n[cut]" } else { "" };
        let output = &output[..end];
        Ok(match result.outcome {
            Outcome::Ok => format!("{output}{cut}"),
            Outcome::Error => format!("[`{command}` failed: {output}{cut}]"),
            Outcome::Denied => format!("[`{command}` was denied: {output}{cut}]"),
            Outcome::Interrupted => format!("[`{command}` was interrupted]"),
        })
    }

    /// A file that the body names as `@path`, when there is one and reading it needs no question.
    async fn named_file(&mut self, skill: &Skill, path: &str) -> Option<Message> {
        let dirs = self.agent.policy.dirs(&self.agent.conversation);
        let own = skill.base().map(|base| base.join(path));
        let near = dirs.absolute(path);
        let file = own.into_iter().chain([near]).find(|file| file.is_file())?;
        let mut places = self.agent.policy.places_of(&self.agent.conversation);
        places.free_reads.extend(self.agent.policy.opens(skill));
        let (effects, text) = match self.agent.attach(&file, places, self.mailbox).await {
            Ok(result) if result.outcome == Outcome::Ok => {
                let text = format!("{}:\n\n{}", file.display(), result.text());
                (result.effects, text)
            }
            Ok(failed) => (Vec::new(), format!("{} could not be read: {}", file.display(), failed.text())),
            Err(_) => {
                let why = "was not attached: reading it needs a question. Read it if you need it.";
                (Vec::new(), format!("{} {why}", file.display()))
            }
        };
        Some(Message { effects, ..Message::attachment(Attachment::File, &text) })
    }
}
