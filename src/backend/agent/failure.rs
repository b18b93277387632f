//! Why a turn failed, and what the user can do about it.

use crate::provider;
use crate::session;

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Provider(provider::Error),
    #[error("{0}")]
    Session(#[from] session::Error),
    /// A hook erased the prompt before anything else saw it.
    #[error("a UserPromptSubmit hook rejected the prompt: {reason}")]
    Erased { reason: String },
    /// The prompt asks for a skill that cannot run.
    #[error("{0}")]
    Skill(String),
    /// Compaction is switched off, so that nothing can be done about it.
    #[error("the conversation ({used} tokens) no longer fits ({blocking}) and compaction is off")]
    Full { used: u64, blocking: u64 },
}

impl Failure {
    /// What the user can do about it, where the text itself does not say.
    pub(super) fn advice(&self) -> Option<&'static str> {
        match self {
            Failure::Full { .. } => Some(
                "run /compact, or turn it on: unset DISABLE_COMPACT or set `compact.enabled`; `/rewind` goes back to an \
                 earlier message, `/clear` starts a new session",
            ),
            Failure::Provider(provider::Error::ContextTooLong { .. }) => {
                Some("`/rewind` goes back to an earlier message, `/clear` starts a new session")
            }
            Failure::Provider(
                provider::Error::NoKey { .. } | provider::Error::Auth { .. } | provider::Error::Quota { .. },
            ) => Some("`/model` switches to another model; `offline` needs no key"),
            Failure::Provider(provider::Error::Connect { .. }) => {
                Some("check the network, proxy and base URL, or use the offline model")
            }
            _ => None,
        }
    }
}
