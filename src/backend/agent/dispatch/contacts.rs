//! Connections of commands that run: the rules decide about each, and a person is asked at the first contact with a host.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::mailbox::Mailbox;
use crate::agent::{Agent, decided};
use crate::message::CallId;
use crate::permission::{Access, Behavior, CommandLine, Decision};
use crate::protocol::{Answer, PresetGrant, Question};
use crate::sandbox::presets::Preset;
use crate::sandbox::proxy::{Contact, Verdict};
use crate::session;
use crate::session::entry::{Decided, Lasts, Matter};
use crate::tools;

/// A connection on its way to the agent whose command makes it.
pub(in crate::agent) struct Connection {
    pub(in crate::agent) call: CallId,
    pub(in crate::agent) command: String,
    pub(in crate::agent) contact: Contact,
    pub(in crate::agent) verdict: oneshot::Sender<Verdict>,
}

type Key = (CallId, Contact);
type Asked = Pin<Box<dyn Future<Output = (Key, Option<Answer>)> + Send>>;

/// The connections of one round of calls.
pub(super) struct Contacts {
    heard: mpsc::UnboundedReceiver<Connection>,
    open: FuturesUnordered<Asked>,
    /// The connections that wait for one answer, and what closes its question.
    waiting: HashMap<Key, (Vec<oneshot::Sender<Verdict>>, CancellationToken)>,
    /// What was answered for a command alone: it holds until the command ends.
    once: HashMap<Key, Verdict>,
}

/// What there is to do next.
pub(super) enum Next {
    Heard(Connection),
    Answered(Key, Option<Answer>),
}

impl Contacts {
    pub(super) fn new() -> (mpsc::UnboundedSender<Connection>, Contacts) {
        let (send, heard) = mpsc::unbounded_channel();
        (send, Contacts { heard, open: FuturesUnordered::new(), waiting: HashMap::new(), once: HashMap::new() })
    }

    /// Waits for a connection, or for an answer about one. May be dropped while it waits.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            tokio::select! {
                Some((key, answer)) = self.open.next() => return Next::Answered(key, answer),
                Some(connection) = self.heard.recv() => return Next::Heard(connection),
                else => std::future::pending().await,
            }
        }
    }

    fn settle(&mut self, key: &Key, verdict: &Verdict) {
        if let Some((waiting, question)) = self.waiting.remove(key) {
            question.cancel();
            for connection in waiting {
                // It may have been given up.
                let _ = connection.send(verdict.clone());
            }
        }
    }
}

fn grant(preset: &Preset) -> PresetGrant {
    let rule = |host: &&str| format!("{}(domain:{host})", tools::WEB_FETCH);
    PresetGrant { name: preset.name.to_owned(), rules: preset.hosts.iter().map(rule).collect() }
}

fn decision(contact: &Contact, agent: &Agent) -> Decision {
    let access = Access::Connect(contact.clone());
    agent.policy.grounds(&agent.conversation).decide(tools::BASH, &access)
}

fn denied(contact: &Contact, decision: &Decision) -> Verdict {
    let reason = decision.reasons.first().map_or("rules", String::as_str);
    Verdict::Closed(format!("{contact} is denied: {reason}"))
}

impl Contacts {
    /// Answers a connection, or asks about it. Those to the same place wait for one answer.
    pub(super) fn take(
        &mut self,
        connection: Connection,
        agent: &Agent,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) {
        let Connection { call, command, contact, verdict } = connection;
        let decision = decision(&contact, agent);
        let key = (call.clone(), contact.clone());
        let known = match decision.behavior {
            Behavior::Allow => Some(Verdict::Open),
            Behavior::Deny => Some(denied(&contact, &decision)),
            Behavior::Ask => self.once.get(&key).cloned(),
        };
        if let Some(known) = known {
            // It may have been given up.
            let _ = verdict.send(known);
            return;
        }
        if let Some((waiting, _)) = self.waiting.get_mut(&key) {
            waiting.push(verdict);
            return;
        }
        let suggestions: Vec<String> = decision.suggestions.iter().map(ToString::to_string).collect();
        let programs = CommandLine::from(command.as_str()).programs();
        let preset = Preset::of(&programs).find(|preset| preset.covers(&contact.host, contact.port));
        // What somebody wants to be asked about each time is on no list.
        let preset = preset.filter(|_| !suggestions.is_empty()).map(grant);
        let (place, reasons) = (contact.to_string(), decision.reasons);
        let question = Question::Connect { call, command, place, reasons, suggestions, preset };
        let (mailbox, open) = (mailbox.clone(), cancel.child_token());
        self.waiting.insert(key.clone(), (vec![verdict], open.clone()));
        self.open.push(Box::pin(async move {
            let answer = mailbox.ask(question, &open).await;
            (key, answer)
        }));
    }

    /// Does what was answered about a connection.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn answered(
        &mut self,
        key: Key,
        answer: Option<Answer>,
        agent: &mut Agent,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        // Something else may have settled it: a rule, or the end of the turn.
        let Some(answer) = answer.filter(|_| self.waiting.contains_key(&key)) else { return Ok(()) };
        let contact = key.1.clone();
        // What changed meanwhile may forbid it.
        let now = decision(&contact, agent);
        let closed = |why: &str| Verdict::Closed(format!("{contact} is denied{why}"));
        let (lasts, what, verdict) = match answer {
            Answer::Yes | Answer::Always { .. } if now.behavior == Behavior::Deny => {
                (Lasts::Once, contact.to_string(), denied(&contact, &now))
            }
            Answer::Yes => (Lasts::Once, contact.to_string(), Verdict::Open),
            Answer::Always { rules, scope } => {
                (agent.grant_all(&rules, scope, mailbox).await?, rules.join(", "), Verdict::Open)
            }
            Answer::No { feedback: Some(words) } if !words.trim().is_empty() => {
                (Lasts::Once, contact.to_string(), closed(&format!(" by the user: {}", words.trim())))
            }
            Answer::Nobody { told } => (Lasts::Once, contact.to_string(), closed(&format!(": {told}"))),
            _ => (Lasts::Once, contact.to_string(), closed(" by the user")),
        };
        if lasts == Lasts::Once {
            self.once.insert(key.clone(), verdict.clone());
        }
        self.settle(&key, &verdict);
        let yes = verdict == Verdict::Open;
        let decided = Decided { lasts, ..decided::decided(Matter::Connect, yes, &what) };
        agent.conversation.decided(decided, mailbox).await?;
        self.recheck(agent);
        Ok(())
    }

    /// Settles the open questions that a rule has answered meanwhile.
    pub(super) fn recheck(&mut self, agent: &Agent) {
        let keys: Vec<Key> = self.waiting.keys().cloned().collect();
        for key in keys {
            let decision = decision(&key.1, agent);
            match decision.behavior {
                Behavior::Allow => self.settle(&key, &Verdict::Open),
                Behavior::Deny => self.settle(&key, &denied(&key.1, &decision)),
                Behavior::Ask => {}
            }
        }
    }
}
