//! Calls to the program that runs us: hooks and servers of its own live over there, and it answers for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// What is asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Call {
    /// Runs a hook, by the name that the program gave it.
    Hook {
        hook: String,
        input: Value,
        /// The call of a tool that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// Hands a message to one of its servers of the Model Context Protocol.
    Message { server: String, message: Value },
}

/// The answer, or why it is missing.
pub type Answer = Result<Value, String>;

/// A call on its way; who made it has gone once `answer` is closed.
#[derive(Debug)]
pub struct Asked {
    pub call: Call,
    pub answer: oneshot::Sender<Answer>,
}

/// The way to the program.
#[derive(Debug, Clone)]
pub struct Outside(mpsc::UnboundedSender<Asked>);

impl PartialEq for Outside {
    fn eq(&self, other: &Outside) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl Outside {
    /// The way, and its other end.
    pub fn new() -> (Outside, mpsc::UnboundedReceiver<Asked>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Outside(send), receive)
    }

    /// Asks, and waits. A dropped future withdraws the question.
    ///
    /// # Errors
    /// What the program says went wrong, or that it is gone.
    pub async fn call(&self, call: Call) -> Answer {
        let gone = || "the program that runs cocode no longer answers".to_owned();
        let (answer, answered) = oneshot::channel();
        // Nothing piles up: each who asks waits for the answer.
        self.0.send(Asked { call, answer }).map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}
