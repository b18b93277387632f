//! `/plan`: into plan mode, with a task or without, and out of it again.

use super::{Engine, Inbox};
use crate::agent::mailbox::Prompt;
use crate::commands::Builtin;
use crate::permission::Mode;

impl Engine {
    /// `/plan` enters plan mode, or shows where the plan is; `/plan exit` goes back to the mode before; anything else is
    /// the task to plan.
    pub(super) async fn plan(&mut self, args: &str, inbox: &mut Inbox) {
        let planning = self.agent.mode() == Mode::Plan;
        let task = Builtin::Plan.makes_turn(args);
        if !task && !args.is_empty() {
            if !planning {
                return self.tell("Plan mode is not on.").await;
            }
            let before = self.agent.mode_before_plan();
            return self.change_mode(before).await;
        }
        if !planning {
            self.change_mode(Mode::Plan).await;
            if self.agent.mode() != Mode::Plan {
                return;
            }
        }
        if task {
            return self.turn(Prompt::new(args), inbox).await;
        }
        let Some(file) = self.agent.plan_file() else { return };
        let state = match std::fs::read_to_string(&file) {
            Ok(text) if !text.trim().is_empty() => format!("The plan has {} lines", text.lines().count()),
            _ => "There is no plan yet; it will be".to_owned(),
        };
        let on = if planning { "is on" } else { "is now on: nothing changes until you approve a plan" };
        self.tell(format!("Plan mode {on}. {state} in `{}`. `/plan exit` leaves it.", file.display())).await;
    }

    async fn change_mode(&mut self, mode: Mode) {
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.set_mode(mode, &mailbox).await {
            self.fail(error).await;
        }
    }
}
