//! Receives ops, and serves them while something runs: what does not need the agent at once, the rest later or not at all.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::mpsc;

use super::lists;
use super::reports::Look;
use super::shell::Ran;
use super::skills::{self, Called};
use super::waiting;
use crate::agent::mailbox::{Mailbox, Prompt};
use crate::agent::skill_runs::Invocation;
use crate::commands::{Builtin, Catalog};
use crate::protocol::{Delivery, Event, Listed, Op, Typed};
use crate::session::{History, Transcripts};

/// Receives ops, also while something runs.
pub(super) struct Inbox {
    pub(super) ops: mpsc::Receiver<Op>,
    /// The session and its model are still being settled: what acts on them waits in `held`.
    pub(super) opening: bool,
    pub(super) held: VecDeque<Op>,
    /// The front end is gone, or asked to end.
    pub(super) closed: bool,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) project: PathBuf,
    pub(super) history: History,
    pub(super) catalog: Arc<Catalog>,
    /// The logs of sub-agents, while a turn has the session.
    pub(super) transcripts: Option<Transcripts>,
    /// `!` lines that ran beside the turn and are in no log yet.
    pub(super) ran: Vec<Ran>,
}

impl Inbox {
    pub(super) async fn next(&mut self) -> Option<Op> {
        if let Some(op) = self.held.pop_front() {
            return Some(op);
        }
        if self.closed {
            return None;
        }
        match self.ops.recv().await {
            None | Some(Op::Shutdown) => {
                self.closed = true;
                None
            }
            op => op,
        }
    }

    /// Runs something while ops keep being served as a busy agent serves them.
    pub(super) async fn attend<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.attend_with(None, work).await
    }

    /// As `attend`; meanwhile, commands that only look find there what they tell.
    pub(super) async fn attend_with<T>(&mut self, look: Option<&Look<'_>>, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            if self.closed {
                // Nobody is left to wait for, and only a program around us may still answer.
                self.mailbox.interrupt();
                tokio::select! {
                    biased;
                    done = &mut work => return done,
                    Some(op) = self.ops.recv() => {
                        if let Op::Return { id, answer } = op {
                            self.mailbox.returned(id, answer);
                        }
                        continue;
                    }
                }
            }
            tokio::select! {
                biased;
                done = &mut work => return done,
                op = self.ops.recv() => match op {
                    None | Some(Op::Shutdown) => {
                        self.closed = true;
                        self.mailbox.interrupt();
                    }
                    // What is looked for may take its time; the work continues beside it.
                    Some(op) => match select(&mut work, Box::pin(self.busy(op, look))).await {
                        Either::Left((done, served)) => {
                            served.await;
                            return done;
                        }
                        Either::Right(((), _)) => {}
                    },
                },
            }
        }
    }

    /// Tells what was typed in this project before: the session's own prompts are shown as they were typed.
    pub(super) async fn tell_history(&self) {
        let typed = self.history.load(&self.project, lists::HISTORY);
        if !typed.is_empty() {
            self.mailbox.emit(Event::Listed(Listed::History(typed))).await;
        }
    }

    /// Keeps a prompt for the history of the project. Losing one is not a reason to stop.
    pub(super) fn remember(&mut self, typed: Typed) {
        if let Err(error) = self.history.append(&self.project, typed) {
            tracing::warn!(%error, "prompt history");
        }
    }

    /// Serves a command beside what runs, or says that it has to wait.
    async fn command(&self, name: String, args: String, look: Option<&Look<'_>>) {
        let mailbox = &self.mailbox;
        let problem = match skills::called(&self.catalog, &name, &args) {
            Ok(Called::Skill(prompt)) => {
                mailbox.enqueue(prompt, Delivery::AfterTurn);
                return mailbox.emit(mailbox.queue()).await;
            }
            // What it ends is not the turn's.
            Ok(Called::Builtin(Builtin::Tasks)) if !args.trim().is_empty() && look.is_some() => {
                match look.map(|look| waiting::act(&look.agent.background, &args)) {
                    Some(Ok(Some(text))) => {
                        mailbox.emit(Event::Notice { text }).await;
                        None
                    }
                    done => done.and_then(Result::err),
                }
            }
            Ok(Called::Builtin(builtin)) => {
                let looked = match look {
                    Some(look) => look.report(builtin, &args).await,
                    None => None,
                };
                match looked {
                    Some(Ok(report)) => {
                        mailbox.emit(Event::Report(report)).await;
                        None
                    }
                    Some(Err(problem)) => Some(problem),
                    // It changes the session: it is its turn once this one is over.
                    None => {
                        let line = format!("/{name} {args}").trim_end().to_owned();
                        let skill = Some(Invocation { name, args });
                        mailbox.enqueue(Prompt { skill, ..Prompt::new(line) }, Delivery::AfterTurn);
                        return mailbox.emit(mailbox.queue()).await;
                    }
                }
            }
            Err(unknown) => Some(unknown),
        };
        if let Some(text) = problem {
            let restore = Some(format!("/{name} {args}").trim_end().to_owned());
            mailbox.emit(Event::Error { text, restore }).await;
        }
        mailbox.emit(Event::Done { op: Op::Command { name, args } }).await;
    }

    /// Runs a `!` line that only reads beside what runs; any other waits.
    async fn shell(&mut self, command: String, look: Option<&Look<'_>>) {
        let mailbox = self.mailbox.clone();
        let ran = match look.and_then(|look| look.beside.as_ref()) {
            Some(beside) => beside.run(&command).await,
            None => None,
        };
        let Some(result) = ran else {
            let shell = Some(command.clone());
            mailbox.enqueue(Prompt { shell, ..Prompt::new(format!("! {command}")) }, Delivery::AfterTurn);
            return mailbox.emit(mailbox.queue()).await;
        };
        let ran = Ran::of(command.clone(), result);
        // The turn has the log: it learns of this line when it ends.
        mailbox.emit(ran.shown()).await;
        self.ran.push(ran);
        mailbox.emit(Event::Done { op: Op::Shell { command } }).await;
    }

    async fn busy(&mut self, op: Op, look: Option<&Look<'_>>) {
        let mailbox = self.mailbox.clone();
        match op {
            Op::Shell { .. }
            | Op::Command { .. }
            | Op::SetMode { .. }
            | Op::SetThinking { .. }
            | Op::Rewind { .. }
            | Op::List { .. }
                if self.opening =>
            {
                self.held.push_back(op);
            }
            Op::Interrupt => {
                mailbox.interrupt();
            }
            Op::Background => mailbox.leave(),
            Op::Answer { id, answer } => mailbox.answer(id, answer),
            Op::Return { id, answer } => mailbox.returned(id, answer),
            Op::Prompt { text, attachments, delivery, thinking, data } => {
                mailbox.enqueue(Prompt { attachments, thinking, data, ..Prompt::new(text) }, delivery);
                mailbox.emit(mailbox.queue()).await;
            }
            Op::Unqueue { id } => {
                mailbox.unqueue(id);
                mailbox.emit(mailbox.queue()).await;
            }
            Op::SetMode { mode } => mailbox.set_mode(mode),
            Op::SetThinking { level } => mailbox.set_thinking(level),
            Op::Shell { command } => self.shell(command, look).await,
            Op::Commands => skills::publish(&self.catalog, &mailbox).await,
            Op::Command { name, args } => self.command(name, args, look).await,
            Op::List { what } => {
                let listed = match look {
                    Some(look) => look.list(what).await.zip(Some(look)),
                    None => None,
                };
                match listed {
                    Some((listed, look)) => {
                        mailbox.emit(Event::Listed(listed)).await;
                        look.listed(what, &mailbox);
                    }
                    None => self.held.push_back(op),
                }
            }
            Op::Find { words } => match look {
                Some(look) => lists::find(look.setup, words, &mailbox),
                None => self.held.push_back(Op::Find { words }),
            },
            Op::StoreKey { provider, key } => match look {
                Some(look) => look.store_key(&provider, &key, &mailbox).await,
                None => self.held.push_back(Op::StoreKey { provider, key }),
            },
            // Settings are the agent's: it has them until its turn ends.
            Op::Set { .. } => {
                if let (Some(look), false) = (look, self.opening) {
                    look.later(&mailbox).await;
                }
                self.held.push_back(op);
            }
            Op::FindServer => match look {
                Some(look) => look.models.find_server(&look.agent.model, &mailbox),
                None => self.held.push_back(op),
            },
            Op::Server { ref change } => match look {
                Some(look) => {
                    look.servers(change, &mailbox).await;
                    mailbox.emit(Event::Done { op }).await;
                }
                None => self.held.push_back(op),
            },
            Op::Rewind { .. } => {
                self.held.push_back(op);
                mailbox.emit(Event::Notice { text: "Queued: the rewind runs when the turn has ended.".into() }).await;
            }
            // The files are the agent's until then.
            Op::Review { .. } => {
                let text = "The review is applied when the turn ends.".to_owned();
                mailbox.emit(Event::Notice { text }).await;
                self.held.push_back(op);
            }
            Op::Remember(typed) => self.remember(typed),
            Op::Agent { id } => match &self.transcripts {
                Some(transcripts) => lists::tell_agent(transcripts, id, &mailbox).await,
                None => self.held.push_back(Op::Agent { id }),
            },
            Op::Earlier { part } => match &self.transcripts {
                Some(transcripts) => lists::tell_earlier(transcripts, part, &mailbox).await,
                None => self.held.push_back(Op::Earlier { part }),
            },
            Op::Shutdown => {}
        }
    }
}
