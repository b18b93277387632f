//! What every request of a session begins with: written down once, and sent again by whichever version continues it.

use std::sync::Arc;

use super::{Conversation, Settings};
use crate::agents::Definitions;
use crate::provider::{Request, ToolSpec};
use crate::session::entry::{By, EntryKind, Frozen, Seq};
use crate::session::{self, Session};
use crate::stdx::hash;
use crate::tools::{Toolbox, answer, mcp_call};

/// See the module.
pub(super) struct Head {
    /// The system prompt of this version.
    pub(super) own: Arc<str>,
    recorded: Option<(Seq, Arc<Frozen>)>,
}

impl Head {
    pub(super) fn new(own: Arc<str>) -> Head {
        Head { own, recorded: None }
    }

    /// What a session that continues begins with, unless its user asks for something else now or a tool of it is gone.
    pub(super) fn find(&mut self, session: &Session, given: &str, toolbox: &Toolbox) -> Option<Arc<Frozen>> {
        self.recorded = session.frozen();
        let (_, frozen) = self.recorded.as_ref()?;
        let whole = frozen.tools.iter().all(|tool| toolbox.get(&tool.name).is_some());
        (whole && frozen.given == given).then(|| frozen.clone())
    }

    /// Whether a compaction has made room for what this version would say.
    pub(super) fn outdated(&self, session: &Session, specs: &[ToolSpec]) -> bool {
        self.recorded.as_ref().is_some_and(|(seq, frozen)| {
            matches!(session.facts().projected_since(*seq), Some(By::Compaction { .. }))
                && (*frozen.system != *self.own || *frozen.tools != *specs)
        })
    }

    /// Writes down what a request begins with, where the log does not say it yet. Sub-agents do not live as long.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) fn record(
        &mut self,
        conversation: &mut Conversation,
        request: &Request,
        given: impl FnOnce() -> String,
    ) -> Result<(), session::Error> {
        let same = |frozen: &Frozen| {
            let same = Arc::ptr_eq(&frozen.system, &request.system) && Arc::ptr_eq(&frozen.tools, &request.tools);
            same || (frozen.system == request.system && frozen.tools == request.tools)
        };
        if conversation.above.is_some() || self.recorded.as_ref().is_some_and(|(_, frozen)| same(frozen)) {
            return Ok(());
        }
        let (system, tools) = (request.system.clone(), request.tools.clone());
        let frozen = Arc::new(Frozen { given: given(), system, tools });
        let seq = conversation.append(EntryKind::Frozen(frozen.clone()))?;
        self.recorded = Some((seq, frozen));
        Ok(())
    }
}

/// What of the head the user decides, as a hash: if it differs, the head is made again. `fitting` are those of the tools that
/// the model's window has room for.
pub(super) fn given(settings: &Settings, tools: &Toolbox, fitting: &Toolbox, agents: &Definitions) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let schema = tools.get(answer::NAME).map(|tool| tool.spec().schema.to_string()).unwrap_or_default();
    let own = agents.rows().into_iter().filter(|row| row.file.is_some());
    let own: Vec<String> = own.map(|row| format!("{}\0{}", row.name, row.description)).collect();
    let mut parts = vec![text(&settings.system), text(&settings.append_system), schema, own.join("\0")];
    if fitting.specs().len() < tools.specs().len() {
        parts.push("few tools".to_owned());
    }
    if tools.get(mcp_call::NAME).is_some() {
        parts.push("servers".to_owned());
    }
    format!("{:016x}", hash::short(&[parts.join("\0\0").as_bytes()]))
}
