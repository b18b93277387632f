//! Why a turn failed, and what the user can do about it.

use super::Presence;
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
    /// What hooks are told of its kind, in the words of Claude Code; none where nothing failed but the prompt was refused.
    pub(super) fn kind(&self) -> Option<&'static str> {
        use provider::Error::{
            Auth, BadRequest, Broken, Connect, ContextTooLong, EndedEarly, Idle, NoKey, NoServer, NotFound, Quota,
            RateLimited, Server,
        };
        Some(match self {
            Failure::Erased { .. } | Failure::Skill(_) => return None,
            Failure::Provider(RateLimited { .. }) => "rate_limit",
            Failure::Provider(Auth { .. } | NoKey { .. }) => "authentication_failed",
            Failure::Provider(Quota { .. }) => "billing_error",
            Failure::Provider(BadRequest { .. } | NotFound { .. } | ContextTooLong { .. }) => "invalid_request",
            Failure::Provider(
                Server { .. } | Connect { .. } | NoServer { .. } | Idle(_) | EndedEarly | Broken { .. },
            ) => "server_error",
            _ => "unknown",
        })
    }

    /// Itself, and what the user can do about it.
    pub(super) fn told(&self, presence: Presence) -> String {
        self.advice(presence).map_or_else(|| self.to_string(), |advice| format!("{self}; {advice}"))
    }

    /// What the user can do about it, where the text itself does not say. Slash commands are for those who can type them.
    fn advice(&self, presence: Presence) -> Option<&'static str> {
        let here = presence == Presence::Attended;
        match self {
            Failure::Full { .. } if here => Some(
                "run /compact, or turn it on: unset DISABLE_COMPACT or set `compact.enabled`; `/rewind` goes back to an \
                 earlier message, `/clear` starts a new session",
            ),
            Failure::Full { .. } => Some("unset DISABLE_COMPACT or set `compact.enabled`"),
            Failure::Provider(provider::Error::ContextTooLong { .. }) if here => {
                Some("`/rewind` goes back to an earlier message, `/clear` starts a new session")
            }
            Failure::Provider(
                provider::Error::NoKey { .. } | provider::Error::Auth { .. } | provider::Error::Quota { .. },
            ) => Some(match here {
                true => "`/model` takes another key or switches to another model; `/model offline` needs no key",
                false => "`--model` names another model; `--offline` needs no key",
            }),
            Failure::Provider(provider::Error::NoServer { .. }) => Some("start it, or check the base URL"),
            Failure::Provider(provider::Error::Connect { .. }) => {
                Some("check the network, proxy and base URL, or use the offline model")
            }
            _ => None,
        }
    }
}
