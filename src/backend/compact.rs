//! Keeps the conversation inside the model's window. Pure: plans over the projection; effects are the caller's.
//!
//! Nothing is ever deleted: a plan becomes entries of the log that change the projection. State and its owners:
//!
//! | state | owner |
//! |---|---|
//! | what the model sees, its sizes, the last boundary | `session::Context`, folded from the log |
//! | every constant | `Settings`, a slice of the configuration; `Limits` are the same, fitted to one window |
//! | what the system prompt and tools weigh, how far estimates are off | `Meter`, in the `Driver` |
//! | when a tier ran last, failures in a row, switched off, undone | `Driver`, one for each session that runs; a resumed one starts over |
//! | stages that were tried for the request at hand | `Driver`, until `sent` |
//! | contents of cleared results | files `tool-results/<call>.txt` of the session, written before the entry that clears |
//! | what must not be forgotten | `ledger::Fold`, in the `Driver`, told from the log; a boundary carries it on |
//! | what is put back | `restore`, chosen again for each candidate |
//! | a summary that is not committed yet | `Candidate`, by value, from its tier to `Driver::judge` |
//! | notes of the session | files `session-memory/` of the session, written by the extraction alone |
//! | what came of it | the boundary entry and its `Receipt`, in the log |
//!
//! Clearing old results is a matter of money first: a window of a million tokens that waits to be nearly full pays for
//! everything old with each request. So `micro.trigger` is `paying` as shipped, which may clear below the warning mark, and
//! never when that costs more than it saves; `warning` has the mark as a condition, too. The figures are those of
//! `examples/compaction_lab`.
//!
//! `Driver::step` decides, one step at a time, what happens before a request; agent and lab perform the steps and ask
//! again until it says `Send`. Each stage comes at most once a request, so that it always ends.

pub mod apply;
pub mod candidate;
mod count;
pub mod digest;
mod driver;
pub mod excerpt;
pub mod ledger;
mod limits;
pub mod memory;
pub mod micro;
pub mod receipt;
pub mod restore;
pub mod rounds;
mod settings;
pub mod summary;
mod thresholds;
pub mod trim;

pub use candidate::{Candidate, Ration, Rejected};
pub use count::Meter;
pub use driver::{Driver, Step, Summarized, Surroundings, Terms};
pub use limits::Limits;
pub use settings::{Features, Guards, Memory, Micro, MicroTrigger, Restore, Settings, Summary, ToolOutput};
pub use summary::Search;
pub use thresholds::{Thresholds, Window};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;
