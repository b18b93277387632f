//! Runs calls that have a permit, and shows what they write meanwhile. Nothing else runs a tool.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::{Done, Heard, Permitted, Ready};
use crate::agent::{Conversation, Policy};
use crate::message::{Content, Outcome, ToolResult};
use crate::permission::{Permit, QUIET_GIT, WITHHELD};
use crate::protocol::{Delta, Event, Item};
use crate::sandbox::Sandbox;
use crate::sandbox::proxy::Gateway;
use crate::session::store::Store;
use crate::tools::{self, Dirs, Host};

/// What calls run with. It owns what it looks at, so that the session can be written meanwhile.
pub(in crate::agent) struct Runner {
    pub(super) dirs: Arc<Dirs>,
    pub(super) seen: Arc<HashMap<PathBuf, String>>,
    pub(super) plan: Option<PathBuf>,
    pub(super) settings: Arc<tools::Settings>,
    pub(super) log: PathBuf,
    pub(super) store: Store,
    pub(super) sandbox: Sandbox,
    pub(super) gateway: Gateway,
    pub(super) host: Arc<dyn Host>,
    pub(super) cancel: CancellationToken,
}

impl Runner {
    /// What the calls of a conversation run with now.
    pub(in crate::agent) fn new(
        policy: &Policy,
        conversation: &Conversation,
        settings: &Arc<tools::Settings>,
        host: Arc<dyn Host>,
        cancel: &CancellationToken,
    ) -> Runner {
        Runner {
            dirs: Arc::new(policy.dirs(conversation)),
            seen: Arc::new(conversation.context().seen().clone()),
            plan: conversation.open_plan(),
            settings: settings.clone(),
            log: conversation.session.log().to_owned(),
            store: conversation.session.store().clone(),
            sandbox: policy.sandbox.clone(),
            gateway: policy.gateway.clone(),
            host,
            cancel: cancel.clone(),
        }
    }

    /// Runs a call to its end.
    pub(super) async fn run(&self, Permitted { ready, permit, undoing, .. }: Permitted, heard: Heard<'_>) -> Done {
        let told = ready.told();
        let Ready { call, work, .. } = ready;
        if let Heard::Wholly(mailbox) = heard {
            let (tool, title) = (call.name.clone(), work.title().to_owned());
            mailbox.emit(Event::Item(Item::CallStarted { call: call.id.clone(), tool, title })).await;
        }
        let settings = self.settings_under(&permit);
        let (live, mut output) = mpsc::unbounded_channel();
        let context = tools::Context {
            call: call.id.as_str().to_owned(),
            permit,
            undoing,
            dirs: self.dirs.clone(),
            seen: self.seen.clone(),
            plan: self.plan.clone(),
            settings: settings.clone(),
            log: self.log.clone(),
            store: self.store.clone(),
            sandbox: self.sandbox.clone(),
            gateway: self.gateway.clone(),
            host: self.host.clone(),
            live,
            cancel: self.cancel.clone(),
        };
        let started = Instant::now();
        let running = AssertUnwindSafe(work.run(context)).catch_unwind();
        tokio::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished,
                Some(text) = output.recv() => {
                    if let Heard::Wholly(mailbox) | Heard::Output(mailbox) = heard {
                        mailbox.emit(Event::Delta(Delta::ToolOutput { call: call.id.clone(), text })).await;
                    }
                }
            }
        };
        let output = finished.unwrap_or_else(|_| {
            tools::Output::error("The tool crashed. This is a bug in cocode. Try another approach.")
        });
        let tools::Output { outcome, mut content, display, effects, after } =
            tools::limit::apply(output, &settings, &self.store, call.id.as_str());
        if outcome == Outcome::Ok {
            content.extend(told.map(Content::text));
        }
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Done { result: ToolResult { id: call.id, outcome, content, display, effects }, after, changed: None, millis }
    }

    /// With settings under which git does not run what a repository names, nor anything a program of the project, where the
    /// permit wants that: hooks and filters work where the user allowed a change.
    fn settings_under(&self, permit: &Permit) -> Arc<tools::Settings> {
        if !permit.quiet_git() {
            return self.settings.clone();
        }
        let mut settings = (*self.settings).clone();
        if let Some(path) = permit.path().and_then(OsStr::to_str) {
            settings.env.insert("PATH".to_owned(), path.to_owned());
        }
        settings.env.extend(QUIET_GIT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        // In a folder of the session's, which every command may read.
        let kept = self.store.keep_blob(WITHHELD.as_bytes()).map(|blob| self.store.blob_path(&blob));
        if let (Ok(file), Some(parameters)) = (kept, settings.env.get_mut("GIT_CONFIG_PARAMETERS")) {
            let file = file.to_string_lossy().replace('\'', r"'\''");
            parameters.push_str(&format!(" 'core.attributesfile={file}'"));
        }
        Arc::new(settings)
    }
}
