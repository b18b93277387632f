//! A session on disk: an append-only log, and the context as a projection of it.

mod changes;
pub mod compared;
pub mod context;
#[cfg(test)]
mod counting;
pub mod entry;
mod error;
mod export;
mod facts;
mod files;
mod folds;
pub mod history;
mod history_view;
pub mod ids;
pub mod import;
pub mod index;
mod known;
pub mod ledger;
mod line;
mod load;
mod log;
mod merge;
mod meta;
mod names;
mod offsets;
mod packed;
mod parts;
mod pictures;
pub mod recall;
pub mod recorded;
mod restoring;
pub mod review;
#[expect(clippy::module_inception, reason = "the folder holds everything of a session, the file is its log")]
mod session;
pub mod store;
pub mod tasks;
#[cfg(test)]
mod tests;
mod timeline;
pub mod transcripts;
mod undo;
mod untold;
mod watch;
mod without;

pub use context::Context;
pub use error::Error;
pub use export::{Overwrite, export_file};
pub use facts::{Facts, Invoked, title_of};
pub use files::{Files, First};
pub use history::History;
pub use history_view::{PromptRow, read_history, read_part};
pub use index::Summary;
pub use log::FILE as LOG_FILE;
pub use pictures::{LARGEST as LARGEST_PICTURE, Pictures};
pub use session::{Clock, Session, rfc3339};
pub use transcripts::Transcripts;
pub use undo::{Restored, Rewound};
