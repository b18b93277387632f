//! What may run: rules, folders and what the user agreed to.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::{Conversation, Grants, Grounds};
use crate::mcp::Servers;
use crate::permission::{Access, Behavior, Places, RuleSet, Source, Trust};
use crate::protocol::report::Kept;
use crate::protocol::{GrantScope, PresetGrant};
use crate::sandbox::Sandbox;
use crate::sandbox::proxy::Gateway;
use crate::session;
use crate::session::entry::EntryKind;
use crate::tools::{Dirs, RULES};

/// What may run.
#[derive(Debug, Clone)]
pub struct Policy {
    pub rules: RuleSet,
    /// Folders and protected places; `cwd` follows the shell.
    pub places: Places,
    /// What the folder brings along and the user agreed to.
    pub trust: Trust,
    /// What commands run in.
    pub sandbox: Sandbox,
    /// How commands reach the network that have no way of their own.
    pub gateway: Gateway,
    /// What commands were kept from.
    pub denials: Denials,
    /// It was offered once that the sandbox answers for commands.
    pub offered: bool,
    /// The servers that it rules, of which the toolbox has a pair of tools. None where none is set up.
    pub servers: Option<Arc<Servers>>,
}

/// What the sandbox kept commands from: the rules that would have allowed it, by the command, the last ones alone.
#[derive(Debug, Clone, Default)]
pub struct Denials(VecDeque<(String, Vec<String>)>);

impl Denials {
    const KEPT: usize = 20;

    pub(super) fn note(&mut self, command: String, rules: Vec<String>) {
        self.0.retain(|(known, _)| *known != command);
        self.0.truncate(Denials::KEPT - 1);
        self.0.push_front((command, rules));
    }

    /// All, the last ones first.
    pub(super) fn rows(&self) -> Vec<Kept> {
        self.0.iter().map(|(command, rules)| Kept { command: command.clone(), rules: rules.clone() }).collect()
    }

    /// What is offered when the command is to run again.
    pub(super) fn grant(&self, access: &Access) -> Option<PresetGrant> {
        let Access::Shell { command, .. } = access else { return None };
        let (_, rules) = self.0.iter().find(|(known, _)| **known == **command)?;
        Some(PresetGrant { name: String::new(), rules: rules.clone() })
    }
}

impl Policy {
    /// The folders that a call of this conversation starts from.
    pub(super) fn dirs(&self, conversation: &Conversation) -> Dirs {
        let Places { project, added, home, .. } = self.places.clone();
        Dirs { project, added, cwd: conversation.context().cwd().to_path_buf(), home }
    }

    /// The places of a conversation now: the plan may be read at any time, and written in plan mode.
    pub(super) fn places_of(&self, conversation: &Conversation) -> Places {
        let mut places = Places { cwd: conversation.context().cwd().to_path_buf(), ..self.places.clone() };
        conversation.open_places(&mut places);
        places
    }

    /// What decisions are made on now.
    pub(super) fn grounds(&self, conversation: &Conversation) -> Grounds<'_> {
        let (mode, places) = (conversation.mode(), self.places_of(conversation));
        Grounds { mode, rules: Cow::Borrowed(&self.rules), places, level: self.sandbox.level() }
    }

    /// Takes over other files' rules and folders; what was granted in the session stays.
    pub fn replace(&mut self, mut rules: RuleSet, places: Places) {
        for entry in self.rules.entries().iter().filter(|entry| matches!(entry.source, Source::Session | Source::Skill))
        {
            rules.add(entry.behavior, entry.rule.clone(), entry.source);
        }
        let free_reads = std::mem::take(&mut self.places.free_reads);
        (self.rules, self.places) = (rules, Places { free_reads, ..places });
    }

    /// Lets a rule count that was granted to another agent of the session.
    pub(super) fn allow(&mut self, rule: &str, source: Source) {
        if let Ok(rule) = RULES.rule(rule) {
            self.rules.add(Behavior::Allow, rule, source);
        }
    }

    /// Grants a rule from now on. Returns where it counts, and why it could not be kept beyond the session.
    pub(super) fn grant(
        &mut self,
        text: &str,
        scope: GrantScope,
        grants: &dyn Grants,
        conversation: &mut Conversation,
    ) -> Result<(Option<Source>, Result<(), String>), session::Error> {
        let rule = match RULES.rule(text) {
            Ok(rule) => rule,
            Err(error) => return Ok((None, Err(error.to_string()))),
        };
        let saved = match scope {
            GrantScope::Session => Ok(()),
            scope => grants.save(scope, text),
        };
        let source = match (scope, &saved) {
            (GrantScope::Project, Ok(())) => Source::ProjectLocal,
            (GrantScope::User, Ok(())) => Source::User,
            _ => {
                conversation.append(EntryKind::Granted { rule: text.to_owned() })?;
                Source::Session
            }
        };
        self.rules.add(Behavior::Allow, rule, source);
        if let Some(above) = &conversation.above {
            above.granted(text, source);
        }
        Ok((Some(source), saved))
    }
}
