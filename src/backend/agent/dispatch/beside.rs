//! The user's own `!` line while a turn has the agent: one that only reads runs at once, any other waits.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::call::{Heard, Ready};
use super::{Grounds, Prepared, Runner};
use crate::message::{CallId, ToolCall, ToolResult};
use crate::permission::{Consent, Mode, RuleSet};
use crate::tools::{self, Dirs, Toolbox};

/// What such a line runs with: all as it was when the turn began.
pub struct Beside {
    grounds: Grounds<'static>,
    toolbox: Arc<Toolbox>,
    dirs: Dirs,
    runner: Runner,
}

impl Beside {
    pub(super) fn new(grounds: Grounds<'_>, toolbox: Arc<Toolbox>, dirs: Dirs, runner: Runner) -> Beside {
        // What a rule allows may change something: only what nobody has to be asked for reads for sure.
        let grounds = Grounds { mode: Mode::Default, rules: Cow::Owned(RuleSet::default()), ..grounds };
        Beside { grounds, toolbox, dirs, runner }
    }

    /// Runs a line that only reads; none where it may do more.
    pub async fn run(&self, command: &str) -> Option<ToolResult> {
        let call = ToolCall::new(CallId("user_beside".into()), tools::BASH, json!({ "command": command }));
        let Prepared { call, read, .. } = Prepared::read(call, &self.toolbox, self.dirs.clone());
        let work = read.ok()?;
        let access = work.access().clone();
        let ready = Ready::new(call, work, access);
        let grounds = Grounds { level: self.runner.sandbox.probe().await, ..self.grounds.clone() };
        let decision = grounds.decide(&ready.call.name, &ready.access);
        let permit = grounds.permit(&ready, &decision, Consent::Missing).filter(|permit| permit.reads())?;
        Some(self.runner.run(ready.with(permit, Consent::Missing), Heard::Nobody).await.result)
    }
}
