//! Plan mode: the plan file, the ways in and out, and what the model is told of it.

pub mod reminders;
mod slug;

use std::path::{Path, PathBuf};

use super::mailbox::Mailbox;
use super::{Bypass, Conversation};
use crate::message::{Message, PlanNote, tokens};
use crate::permission::{Behavior, Decision, Disk, Mode, Places, in_real_folder};
use crate::protocol::{Event, ModeChange};
use crate::session;
use crate::session::entry::EntryKind;
use crate::stdx::fs::private_dir;
pub use reminders::Settings;
use reminders::{Planning, Written};

/// Why plan mode ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// The user approved the plan.
    Approved,
    /// The user chose another mode.
    Chosen,
}

impl Conversation {
    /// Where the session's plan is, once it has one.
    pub fn plan_file(&self) -> Option<PathBuf> {
        if let Some(above) = &self.above {
            return above.plan.clone();
        }
        let slug = self.facts().plan_slug.as_ref()?;
        Some(self.plans.join(format!("{slug}.md")))
    }

    /// A sub-agent is told once of plan mode, and only where the agent above plans.
    async fn remind_below(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        let told = self.context().messages().iter().any(|message| reminders::note(message).is_some());
        match self.open_plan().filter(|_| !told) {
            Some(file) => self.push(reminders::sub_agent(&file, written(&file)), mailbox).await,
            None => Ok(()),
        }
    }

    /// The plan file while plan mode is on.
    pub(super) fn open_plan(&self) -> Option<PathBuf> {
        self.plan_file().filter(|_| self.mode() == Mode::Plan)
    }

    /// Lets the plan be read at any time, and written in plan mode.
    pub(super) fn open_places(&self, places: &mut Places) {
        places.free_reads.extend(self.plan_file().map(|file| in_real_folder(&file, &Disk)));
        places.free_writes.extend(self.open_plan());
    }

    /// Gives the session a plan file, if it has none yet. A fork begins with a copy of its parent's plan.
    ///
    /// # Errors
    /// The log cannot be written.
    fn name_plan(&mut self) -> Result<PathBuf, session::Error> {
        if let Some(file) = self.plan_file() {
            return Ok(file);
        }
        let taken = |name: &str| std::fs::symlink_metadata(self.plans.join(format!("{name}.md"))).is_ok();
        let session = self.session.id().to_owned();
        let slug = slug::pick(&session, taken);
        let file = self.plans.join(format!("{slug}.md"));
        let parent = self.facts().parent_plan.clone();
        self.append(EntryKind::PlanSlug { session, slug })?;
        if let Some(parent) = parent {
            let copied = std::fs::copy(self.plans.join(format!("{parent}.md")), &file);
            tracing::debug!(?copied, "the plan of the parent session");
        }
        Ok(file)
    }

    /// Makes what plan mode needs when it is on: also where it was chosen before the session began.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn tell_plan_mode(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        if self.mode() != Mode::Plan || self.session.read_only() || self.above.is_some() {
            return Ok(());
        }
        let plan_file = self.name_plan()?;
        mailbox.emit(Event::Mode(ModeChange::PlanEntered { plan_file })).await;
        Ok(())
    }

    /// Writes the mode down and tells everyone, and what it means for planning.
    pub(super) async fn enter_mode(
        &mut self,
        mode: Mode,
        leave: Leave,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        let before = self.mode();
        self.append(EntryKind::ModeChanged { mode })?;
        mailbox.emit(Event::Mode(ModeChange::Changed { mode })).await;
        if before == Mode::Plan && mode != Mode::Plan {
            mailbox.emit(Event::Mode(ModeChange::PlanExited { approved: leave == Leave::Approved })).await;
        }
        self.tell_plan_mode(mailbox).await
    }

    /// The mode that `/plan exit` goes back to.
    pub fn mode_before_plan(&self, bypass: Bypass) -> Mode {
        match self.facts().before_plan {
            // A session that was resumed without the flag does not get it back this way.
            Some(Mode::Bypass) if bypass == Bypass::Never => Mode::Default,
            Some(mode) => mode,
            None => Mode::Default,
        }
    }

    /// Reminds the model of plan mode where that is due.
    pub(super) async fn remind_of_plan(&mut self, settings: Settings, mailbox: &Mailbox) -> Result<(), session::Error> {
        if self.above.is_some() {
            return self.remind_below(mailbox).await;
        }
        let planning = if self.mode() == Mode::Plan { Planning::On } else { Planning::Off };
        let file = match planning {
            Planning::On => Some(self.name_plan()?),
            Planning::Off => self.plan_file(),
        };
        let Some(file) = file else { return Ok(()) };
        if planning == Planning::On
            && let Err(error) = file.parent().map_or(Ok(()), private_dir)
        {
            // The model learns it from the Write tool, which fails with the same words.
            tracing::warn!(%error, "the folder of plans");
        }
        let written = written(&file);
        let entries = self.context().entries().map(|(seq, message)| (seq, &**message));
        for note in reminders::due(entries, planning, written, &file) {
            let message = reminders::message(note, &file, written, settings);
            self.push(message, mailbox).await?;
        }
        Ok(())
    }

    /// What the model is told of a refusal; where plan mode is the reason, also what it may do instead.
    pub(super) fn refusal(&self, decision: &Decision, without_plan: impl FnOnce() -> Behavior) -> String {
        let mut text = format!("Denied: {}.", decision.reasons.join("; "));
        if let Some(file) = self.open_plan()
            && without_plan() != Behavior::Deny
            && self.above.is_none()
        {
            text.push_str(&format!(
                " Plan mode is on: change nothing except the plan file {}, with Write or Edit. Put what you would do into the plan, and call ExitPlanMode when it is done.",
                file.display()
            ));
        }
        text
    }

    /// The plan of a session as a reminder: what compaction puts back. None without a plan. A plan of more than `most` tokens
    /// is named, but not shown.
    pub(super) fn restored_plan(&self, most: u64) -> Option<Message> {
        let file = self.plan_file()?;
        let text = std::fs::read_to_string(&file).ok().filter(|text| !text.trim().is_empty())?;
        let shown = file.display();
        let (note, state) = match self.mode() {
            Mode::Plan => (PlanNote::Restored, "Plan mode is on; this is the plan so far, not approved yet."),
            _ => (PlanNote::Exit, "Plan mode is over; follow this plan where it still has open steps."),
        };
        let text = match tokens::text(&text) <= most {
            true => format!("# Plan\n{state} It is in {shown}.\n\n{text}"),
            false => format!("# Plan\n{state} It is too long to show here: read {shown}."),
        };
        Some(reminders::noted(note, &file, &text))
    }
}

/// Where a sub-agent may keep a plan of its own while the agent above plans in `plan`.
pub(super) fn of_sub_agent(plan: &Path, id: &str) -> PathBuf {
    let slug = plan.file_stem().unwrap_or_default().to_string_lossy();
    plan.with_file_name(format!("{slug}-agent-{id}.md"))
}

fn written(file: &Path) -> Written {
    let has_text = std::fs::symlink_metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
    if has_text { Written::Yes } else { Written::No }
}
