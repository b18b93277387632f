//! Finds words in all sessions of a home.

use std::path::{Path, PathBuf};

use super::{Place, Terms, search};
use crate::session::error::Error;
use crate::session::index::{self, Summary};
use crate::session::log::FILE;

/// A place, and the session that it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub session: Summary,
    pub place: Place,
}

/// Searches the sessions that are wanted, at most `most` places, the best first. What sub-agents said is left out.
///
/// # Errors
/// The sessions cannot be listed.
pub fn sessions(home: &Path, wanted: impl Fn(&Summary) -> bool, terms: &Terms, most: usize) -> Result<Vec<Hit>, Error> {
    let mut sessions = index::list(home, None)?;
    sessions.retain(wanted);
    let logs: Vec<PathBuf> = sessions.iter().map(|session| log(home, session)).collect();
    let places = search(home, &logs, terms, most).places.into_iter().take(most);
    Ok(places.map(|place| Hit { session: sessions[place.log].clone(), place }).collect())
}

/// The logs of all sessions, the last changed first; none where they cannot be listed.
pub fn logs(home: &Path) -> Vec<PathBuf> {
    index::list(home, None).unwrap_or_default().iter().map(|session| log(home, session)).collect()
}

fn log(home: &Path, session: &Summary) -> PathBuf {
    home.join(&session.id).join(FILE)
}
