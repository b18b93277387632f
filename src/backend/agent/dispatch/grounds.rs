//! The decision about a call. Nothing else consults the permission engine.

use std::borrow::Cow;
use std::path::Path;

use super::call::Ready;
use crate::agent::Policy;
use crate::agent::mailbox::Mailbox;
use crate::agent::memory::Whose;
use crate::permission::{
    self, Access, Behavior, Consent, Decision, Disk, Entry, Mode, Permit, Places, Query, RuleSet, Source,
};
use crate::protocol::Event;
use crate::sandbox::{self, Level};
use crate::tools;

/// What decisions are made on.
#[derive(Debug, Clone)]
pub struct Grounds<'a> {
    pub mode: Mode,
    pub rules: Cow<'a, RuleSet>,
    pub places: Places,
    /// How far commands can be confined.
    pub level: Level,
}

impl Grounds<'_> {
    pub(in crate::agent) fn decide(&self, tool: &str, access: &Access) -> Decision {
        let decision = permission::decide(&self.query(tool, access), &Disk);
        tracing::debug!(tool, behavior = ?decision.behavior, "decided");
        decision
    }

    /// The decision about reading a file.
    pub(in crate::agent) fn read(&self, path: &Path) -> Decision {
        self.decide(tools::READ, &Access::Read { path: path.to_owned() })
    }

    /// What the rules say to reading a memory file, whatever the mode: no answer would be a refusal, and no question a
    /// permission.
    pub(in crate::agent) fn memory(&self, path: &Path, whose: Whose) -> (Behavior, String) {
        let mut grounds = Grounds { mode: Mode::Default, ..self.clone() };
        if whose == Whose::Own {
            grounds.places.added.extend(path.canonicalize().ok().and_then(|real| Some(real.parent()?.to_path_buf())));
        }
        let decision = grounds.read(path);
        (decision.behavior, decision.reasons.into_iter().next().unwrap_or_default())
    }

    /// What would happen with a call, of which nothing is run. An error is why its tool would not do it.
    pub fn try_out(
        &self,
        tool: &str,
        access: Result<Access, String>,
        own_name: impl FnOnce(&str) -> Option<String>,
    ) -> Decision {
        match access {
            Ok(access) => self.decide(tool, &self.judged(tool, &access, own_name)),
            Err(problem) => Decision::new(Behavior::Deny, problem),
        }
    }

    /// Whether a command would run in the sandbox once it is approved.
    pub(super) fn confines(&self, ready: &Ready) -> bool {
        let Access::Shell { command, .. } = &ready.access else { return false };
        self.places.approved.confines(command, self.mode, self.level)
    }

    /// Whether it would run without a question if the sandbox could answer for it.
    pub(super) fn could_run_unasked(&self, ready: &Ready) -> bool {
        if self.places.approved.unasked || self.level == Level::None || !matches!(ready.access, Access::Shell { .. }) {
            return false;
        }
        let mut grounds = self.clone();
        grounds.places.approved.unasked = true;
        grounds.decide(&ready.call.name, &ready.access).unasked
    }

    /// As `Permit::of`.
    pub(super) fn permit(&self, ready: &Ready, decision: &Decision, consent: Consent) -> Option<Permit> {
        Permit::of(&self.query(&ready.call.name, &ready.access), decision, consent, &Disk)
    }

    /// What a command line would be held to; None: to nothing.
    pub(in crate::agent) fn policy(&self, line: &str, consent: Consent) -> Option<sandbox::Policy> {
        let access = Access::Shell { command: line.into(), cwd: self.places.cwd.clone() };
        let query = self.query(tools::BASH, &access);
        let decision = permission::decide(&query, &Disk);
        Permit::of(&query, &decision, consent, &Disk)?.policy().cloned()
    }

    /// The same of one that runs unasked because the sandbox holds it; None where none does.
    pub(in crate::agent) fn policy_unasked(&self, line: &str) -> Option<sandbox::Policy> {
        self.places.approved.unasked.then(|| self.policy(line, Consent::Missing)).flatten()
    }

    /// What a call touches as rules see it: a skill under its own name, however it was called, so that a rule against it
    /// holds. A rule may name an alias, too.
    pub(super) fn judged(&self, tool: &str, access: &Access, own_name: impl FnOnce(&str) -> Option<String>) -> Access {
        let Access::Skill { name } = access else { return access.clone() };
        match own_name(name) {
            Some(own) if own != *name && self.decide(tool, access).behavior != Behavior::Deny => {
                Access::Skill { name: own }
            }
            _ => access.clone(),
        }
    }

    /// While a skill runs that says what it needs, a laxer mode allows nothing more that changes something.
    fn narrowed(&self, access: &Access) -> bool {
        let lax = matches!(self.mode, Mode::AcceptEdits | Mode::Edits | Mode::Bypass);
        let changes = match access {
            Access::Write { .. } | Access::Shell { .. } => true,
            Access::Foreign { read_only, .. } => !read_only,
            _ => false,
        };
        let named = |entry: &Entry| entry.source == Source::Skill && entry.behavior == Behavior::Allow;
        lax && changes && self.rules.entries().iter().any(named)
    }

    fn query<'a>(&'a self, tool: &'a str, access: &'a Access) -> Query<'a> {
        let mode = if self.narrowed(access) { Mode::Default } else { self.mode };
        let (rules, places) = (&*self.rules, &self.places);
        Query { tool, access, mode, rules, places, vocabulary: tools::RULES, level: self.level }
    }
}

/// Finds out how far commands can be confined before the first is judged, and says so where nothing confines them.
pub(super) async fn find_level(policy: &Policy, mailbox: &Mailbox) {
    policy.sandbox.probe().await;
    if let Some(why) = policy.sandbox.untold() {
        let then = match policy.places.approved.required {
            true => "and `sandbox.required` is on, so none runs",
            false => "so only plain ones run without asking",
        };
        let text = format!("Nothing confines commands here, {then}: {why}");
        mailbox.emit(Event::Notice { text }).await;
    }
}
