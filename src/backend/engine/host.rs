//! A program that runs us: what it brings along, and what it is asked in the course of the session.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::mailbox::Mailbox;
use crate::hooks::{Definitions, Given, Origin};
use crate::mcp::{Manifest, Program};
use crate::stdx::outside::{Asked, Outside};

/// What the program brings along.
pub struct Host {
    /// Hooks that it answers for.
    pub hooks: Definitions,
    /// Sub-agents, by their names, with the fields of a definition and their `prompt`.
    pub agents: Map<String, Value>,
    /// The way to it, and what it says of its servers.
    pub program: Program,
    calls: Option<mpsc::UnboundedReceiver<Asked>>,
}

impl Host {
    pub fn new(hooks: Definitions, agents: Map<String, Value>, manifests: BTreeMap<String, Manifest>) -> Host {
        let (outside, calls) = Outside::new();
        Host { hooks, agents, program: Program { outside, manifests }, calls: Some(calls) }
    }

    pub(super) fn given(&self) -> Option<Given> {
        (!self.hooks.0.is_empty()).then(|| Given {
            origin: Origin::Outside,
            root: None,
            data: None,
            definitions: self.hooks.clone(),
            sealed: Default::default(),
        })
    }

    pub(super) fn outside(&self) -> Outside {
        self.program.outside.clone()
    }

    /// Passes on what it is asked, for as long as the handle lives.
    pub(super) fn follow(&mut self, mailbox: &Arc<Mailbox>) -> Option<AbortOnDropHandle<()>> {
        let calls = self.calls.take()?;
        Some(AbortOnDropHandle::new(tokio::spawn(pass_on(calls, mailbox.clone()))))
    }
}

async fn pass_on(mut calls: mpsc::UnboundedReceiver<Asked>, mailbox: Arc<Mailbox>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            asked = calls.recv() => match asked {
                Some(Asked { call, mut answer }) => {
                    let mailbox = mailbox.clone();
                    open.spawn(async move {
                        let answered = mailbox.call(call, answer.closed()).await;
                        // Who asked may have gone in this very moment.
                        answered.map(|answered| answer.send(answered))
                    });
                }
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}
