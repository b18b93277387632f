//! Calls of a fork of the conversation, which may edit one file and nothing else. Nobody is asked, nothing is shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::call::{Heard, Ready};
use super::grounds::Grounds;
use super::run::Runner;
use crate::message::{Effect, Outcome, ToolCall, ToolResult};
use crate::permission::{Mode, Places};
use crate::protocol::Question;
use crate::stdx::hash::sha256_hex;
use crate::tools::{self, AskFuture, Host, SearchFuture, Tool};

/// What the calls of a fork go through. It owns what it looks at, so that the conversation continues meanwhile.
pub(in crate::agent) struct Confined {
    edit: Arc<dyn Tool>,
    file: PathBuf,
    grounds: Grounds<'static>,
    runner: Runner,
}

impl Confined {
    /// A pipeline that lets changes of one file through, which counts as read with this content.
    pub(in crate::agent) fn new(
        edit: Arc<dyn Tool>,
        (file, content): (PathBuf, &str),
        grounds: Grounds<'_>,
        runner: Runner,
    ) -> Confined {
        // In plan mode nothing may be written but what is expressly free, whatever the session's own mode allows.
        let places = Places { free_writes: vec![file.clone()], ..grounds.places };
        let rules = Cow::Owned(grounds.rules.into_owned());
        let grounds = Grounds { mode: Mode::Plan, rules, places, level: grounds.level };
        let mut confined = Confined { edit, file, grounds, runner: Runner { plan: None, ..runner } };
        confined.restored(content);
        confined
    }

    /// Runs a call, or says why not.
    pub(in crate::agent) async fn answer(&mut self, call: ToolCall) -> ToolResult {
        let id = call.id.clone();
        let refused = |text: String| ToolResult::of_text(id.clone(), Outcome::Denied, text);
        if call.name != tools::EDIT || call.invalid.is_some() {
            return refused(format!("Only {} of {} is open here.", tools::EDIT, self.file.display()));
        }
        let work = match self.edit.call(&call.input, &self.runner.dirs) {
            Ok(work) => work,
            Err(problem) => return ToolResult::of_text(id, Outcome::Error, problem),
        };
        let access = work.access().clone();
        let permitted = match self.grounds.admit(Ready::new(call, work, access)) {
            Ok(permitted) => permitted,
            Err(decision) => return refused(format!("Denied: {}.", decision.reasons.join("; "))),
        };
        let ToolResult { outcome, content, effects, .. } = self.runner.run(permitted, Heard::Nobody).await.result;
        let seen = Arc::make_mut(&mut self.runner.seen);
        for effect in effects {
            if let Effect::Seen { path, sha256 } = effect {
                seen.insert(path, sha256);
            }
        }
        ToolResult { id, outcome, content, display: None, effects: Vec::new() }
    }

    /// The file was put back to this content.
    pub(in crate::agent) fn restored(&mut self, content: &str) {
        self.runner.seen = Arc::new(HashMap::from([(self.file.clone(), sha256_hex(content.as_bytes()))]));
    }
}

/// A fork has nobody to turn to.
pub(in crate::agent) struct Nobody;

impl Host for Nobody {
    fn ask(&self, _question: Question) -> AskFuture<'_> {
        Box::pin(async { None })
    }

    fn web_search<'a>(&'a self, _query: &'a str, _allowed: &'a [String], _blocked: &'a [String]) -> SearchFuture<'a> {
        Box::pin(async { Err("a fork of the conversation does not search".into()) })
    }
}
