//! What tools may ask of the agent: an answer of the user, a web search by the model's own provider.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::dispatch::Connection;
use super::mailbox::Mailbox;
use super::parent_child::{Note, Word, note};
use super::skill_runs::{Caller, View};
use super::subagent::Launcher;
use super::{Model, side_request, tasks};
use crate::message::{CallId, Message, Usage};
use crate::protocol::Question;
use crate::provider::{Purpose, Request, Thinking, WebSearch};
use crate::sandbox::proxy::{Contact, Verdict};
use crate::tools::background::{Background, Shell};
use crate::tools::{AskFuture, FileChange, Host, Launch, NotedFuture, SearchFuture, SpawnedFuture, VerdictFuture};

/// Lent to the tools of one round.
pub(super) struct AgentHost {
    pub(super) model: Model,
    /// What searches of this round cost.
    pub(super) spent: Mutex<Vec<Usage>>,
    pub(super) mailbox: Mailbox,
    pub(super) cancel: CancellationToken,
    pub(super) skills: View,
    /// None where no agent can be launched.
    pub(super) launcher: Option<Arc<Launcher>>,
    /// To the agent whose commands these are. None: nobody answers for a host.
    pub(super) connections: Option<mpsc::UnboundedSender<Connection>>,
    /// To the agent whose tasks continue in the background. None: nobody takes them over.
    pub(super) tasks: Option<tasks::Door>,
    /// To the agent whose log belongs to the session. None: nothing is changed for this host.
    pub(super) words: Option<mpsc::UnboundedSender<Word>>,
}

impl AgentHost {
    /// One that launches nobody and is told of no change.
    pub(super) fn new(model: Model, skills: View, mailbox: &Mailbox, cancel: &CancellationToken) -> AgentHost {
        let (mailbox, cancel, spent) = (mailbox.clone(), cancel.clone(), Mutex::default());
        AgentHost { model, spent, mailbox, cancel, skills, launcher: None, connections: None, tasks: None, words: None }
    }
}

impl Host for AgentHost {
    fn ask(&self, question: Question) -> AskFuture<'_> {
        Box::pin(self.mailbox.ask(question, &self.cancel))
    }

    fn will_change(&self, change: FileChange) -> NotedFuture<'_> {
        Box::pin(async move {
            let Some(words) = &self.words else { return Ok(()) };
            note(words, Note::Change(change)).await.map_err(|error| error.to_string())
        })
    }

    fn connects(&self, call: &str, command: &str, contact: Contact) -> VerdictFuture {
        let (verdict, decided) = oneshot::channel();
        let (call, command) = (CallId(call.into()), command.to_owned());
        let connection = Connection { call, command, contact, verdict };
        let sent = self.connections.as_ref().is_some_and(|connections| connections.send(connection).is_ok());
        Box::pin(async move {
            let nobody = || Verdict::Closed("nobody can be asked about it here".to_owned());
            if sent { decided.await.unwrap_or_else(|_| nobody()) } else { nobody() }
        })
    }

    fn leaving(&self) -> CancellationToken {
        self.mailbox.leaving()
    }

    fn apart(&self) -> Option<Arc<dyn Host>> {
        Some(Arc::new(self.tasks.as_ref()?.apart.clone()))
    }

    fn keep_running(&self, background: Background) -> NotedFuture<'_> {
        Box::pin(async move {
            match &self.tasks {
                Some(tasks) => tasks.hand_over(background).await,
                None => Err("nobody would hear of its end".to_owned()),
            }
        })
    }

    fn shells(&self) -> Vec<Shell> {
        self.tasks.as_ref().map(|tasks| tasks.shells.clone()).unwrap_or_default()
    }

    fn settled(&self, path: PathBuf) -> NotedFuture<'_> {
        Box::pin(async move {
            let Some(words) = &self.words else { return Ok(()) };
            note(words, Note::Settled(path)).await.map_err(|error| error.to_string())
        })
    }

    fn skill(&self, name: &str) -> Result<(), String> {
        self.skills.find(name, Caller::Model).map(drop)
    }

    fn spawn_agent(&self, launch: Launch) -> SpawnedFuture<'_> {
        Box::pin(async move {
            match self.launcher.as_ref().zip(self.tasks.as_ref()) {
                Some((launcher, door)) => Box::pin(launcher.spawn(launch, door, &self.mailbox, &self.cancel)).await,
                None => Err("A sub-agent cannot launch more agents: do the work yourself.".into()),
            }
        })
    }

    fn web_search<'a>(&'a self, query: &'a str, allowed: &'a [String], blocked: &'a [String]) -> SearchFuture<'a> {
        Box::pin(async move {
            if !self.model.spec.web_search {
                return Err(format!("model {} has no built-in web search", self.model.id));
            }
            let request = Request {
                model: self.model.id.clone(),
                system: "Search the web for the query. Answer with the findings: the title, URL and content of each. No advice.".into(),
                tools: Arc::new([]),
                messages: vec![Arc::new(Message::prompt(query))],
                media: Default::default(),
                max_output: self.model.spec.max_output.min(8_000),
                thinking: Thinking::Unset,
                purpose: Purpose::Search,
                cache_key: String::new(),
                web_search: Some(WebSearch { allowed_domains: allowed.to_vec(), blocked_domains: blocked.to_vec() }),
                frontier: None,
            };
            let (reply, usage) = side_request::send(&self.model, request, 0).await;
            if usage != Usage::default() {
                self.spent.lock().unwrap_or_else(PoisonError::into_inner).push(usage);
            }
            let reply = reply.map_err(|error| error.to_string())?;
            Ok(reply.text())
        })
    }
}
