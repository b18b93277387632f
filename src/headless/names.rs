//! Names of prompts: those that their senders gave them, and the places in the log where they came to be.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

use crate::session::entry::Seq;

/// See the module.
#[derive(Default)]
pub(super) struct Names {
    /// What was handed to the engine and is in no log yet, oldest first.
    sent: VecDeque<(String, Option<Uuid>)>,
    seqs: HashMap<Uuid, Seq>,
    seen: HashSet<Uuid>,
    /// Of the prompts of the turn under way.
    turn: Vec<Uuid>,
}

impl Names {
    /// Whether a name is new. A prompt that is sent twice counts once.
    pub(super) fn is_new(&mut self, name: Option<Uuid>) -> bool {
        name.is_none_or(|name| self.seen.insert(name))
    }

    pub(super) fn sent(&mut self, text: &str, name: Option<Uuid>) {
        self.sent.push_back((text.to_owned(), name));
    }

    /// The prompt of this text is in the log there. Returns its name.
    pub(super) fn logged(&mut self, text: &str, seq: Seq) -> Option<Uuid> {
        // What a failed turn dropped was never logged.
        let at = self.sent.iter().position(|(sent, _)| sent == text)?;
        let (_, name) = self.sent.drain(..=at).next_back()?;
        if let Some(name) = name {
            self.seqs.insert(name, seq);
            self.turn.push(name);
        }
        name
    }

    pub(super) fn seq(&self, name: Uuid) -> Option<Seq> {
        self.seqs.get(&name).copied()
    }

    /// The prompts that the turn answered, which is over.
    pub(super) fn take_turn(&mut self) -> Vec<Uuid> {
        std::mem::take(&mut self.turn)
    }
}
