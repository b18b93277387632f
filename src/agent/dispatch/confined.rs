//! Calls of a fork of the conversation, which may edit one file and nothing else. Nobody is asked, nothing is shown.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::message::{Effect, Outcome, ToolCall, ToolResult};
use crate::permission::{self, Behavior, Disk, Mode, Places, Query, RuleSet, Sight};
use crate::protocol::Question;
use crate::session::store::Store;
use crate::stdx::hash::sha256_hex;
use crate::tools::{self, AskFuture, Dirs, Host, SearchFuture, Tool};

/// The one tool that a fork has.
const TOOL: &str = "Edit";

/// What the calls of a fork go through. It owns what it looks at, so that the conversation continues meanwhile.
pub(in crate::agent) struct Confined {
    edit: Arc<dyn Tool>,
    file: PathBuf,
    seen: HashMap<PathBuf, String>,
    rules: RuleSet,
    places: Places,
    dirs: Dirs,
    home: Option<PathBuf>,
    settings: Arc<tools::Settings>,
    store: Store,
    cancel: CancellationToken,
}

impl Agent {
    /// A pipeline that lets changes of one file through; the file counts as read with this content. None where there is no
    /// Edit tool.
    pub(in crate::agent) fn confined(
        &self,
        file: PathBuf,
        content: &str,
        cancel: CancellationToken,
    ) -> Option<Confined> {
        let mut places = self.places();
        places.free_writes = vec![file.clone()];
        Some(Confined {
            edit: self.toolbox.get(TOOL)?.clone(),
            seen: HashMap::from([(file.clone(), sha256_hex(content.as_bytes()))]),
            file,
            rules: self.policy.rules.clone(),
            places,
            dirs: self.dirs(),
            home: self.settings.user_home.clone(),
            settings: self.settings.tools.clone(),
            store: self.conversation.session.store().clone(),
            cancel,
        })
    }
}

impl Confined {
    /// Runs a call, or says why not.
    pub(in crate::agent) async fn answer(&mut self, call: ToolCall) -> ToolResult {
        let ToolCall { id, name, input, invalid, .. } = call;
        let refused = |text: String| ToolResult::of_text(id.clone(), Outcome::Denied, text);
        if name != TOOL || invalid.is_some() {
            return refused(format!("Only {TOOL} on {} is available here.", self.file.display()));
        }
        let access = match self.edit.access(&input, &self.dirs, self.home.as_deref()) {
            Ok(access) => access,
            Err(problem) => return ToolResult::of_text(id, Outcome::Error, problem),
        };
        let target = access.target();
        // In plan mode nothing may be written but what is expressly free, whatever the session's own mode allows.
        let query = Query { tool: TOOL, access: &access, mode: Mode::Plan, rules: &self.rules, places: &self.places };
        let decision = permission::decide(&query, &Disk);
        if decision.behavior != Behavior::Allow {
            return refused(format!("Denied: {}.", decision.reasons.join("; ")));
        }
        // Nobody listens to live output.
        let (live, _) = mpsc::unbounded_channel();
        let context = tools::Context {
            target: target.as_deref(),
            call: id.as_str(),
            dirs: &self.dirs,
            sight: &Sight::default(),
            home: self.home.as_deref(),
            seen: &self.seen,
            todos: &[],
            plan: None,
            settings: &self.settings,
            store: &self.store,
            host: &Nobody,
            live,
            cancel: &self.cancel,
        };
        let output = self.edit.run(input, &context).await;
        for effect in &output.effects {
            if let Effect::Seen { path, sha256 } = effect {
                self.seen.insert(path.clone(), sha256.clone());
            }
        }
        ToolResult { id, outcome: output.outcome, content: output.content, display: None, effects: Vec::new() }
    }

    /// The file was put back to this content.
    pub(in crate::agent) fn restored(&mut self, content: &str) {
        self.seen.insert(self.file.clone(), sha256_hex(content.as_bytes()));
    }
}

/// A fork has nobody to turn to.
struct Nobody;

impl Host for Nobody {
    fn ask(&self, _question: Question) -> AskFuture<'_> {
        Box::pin(async { None })
    }

    fn web_search<'a>(&'a self, _query: &'a str, _allowed: &'a [String], _blocked: &'a [String]) -> SearchFuture<'a> {
        Box::pin(async { Err("a fork of the conversation does not search".into()) })
    }
}
