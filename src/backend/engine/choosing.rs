//! Which session an engine works in: a new one, an earlier one, or a copy.

use super::{Begin, Inbox, Setup};
use crate::protocol::{Answer, Question};
use crate::session::entry::{EntryKind, Seq};
use crate::session::{self, Session, ids, index};

/// What sessions are stamped with.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Opens the session that was asked for, and asks what to do when another process writes it.
pub(super) async fn choose(setup: &Setup, inbox: &mut Inbox) -> Result<Session, String> {
    let home = &setup.paths.home;
    let id = match &setup.begin {
        Begin::New => None,
        Begin::Continue => {
            let sessions = index::list(home, Some(&setup.project)).map_err(|error| error.to_string())?;
            let newest = sessions.into_iter().next().map(|summary| summary.id);
            Some(newest.ok_or("no earlier session in this folder: start without --continue")?)
        }
        Begin::Resume(query) => {
            Some(index::resolve(home, query, (setup.clocks.wall)()).map_err(|error| error.to_string())?)
        }
    };
    let Some(id) = id else {
        let (home, wall) = (&setup.paths.home, setup.clocks.wall);
        return match &setup.session_id {
            Some(id) => Session::create_as(id, home, &setup.project, VERSION, wall).map_err(|error| error.to_string()),
            None => Ok(fresh(setup)),
        };
    };
    same_folder(setup, &id)?;
    if setup.fork {
        return fork(setup, &id).map_err(|error| error.to_string());
    }
    let mut session = open_or_ask(setup, &id, inbox).await?;
    let behind = setup.resume_at.map(|message| behind(&session, message)).transpose()?;
    let next = behind.and_then(|behind| session.context().entries().map(|(seq, _)| seq).find(|seq| *seq >= behind));
    if let Some(to) = next {
        session.append(EntryKind::Rewind { to }).map_err(|error| error.to_string())?;
    }
    Ok(session)
}

/// A copy of a session, up to the message that was asked for.
fn fork(setup: &Setup, id: &str) -> Result<Session, String> {
    let (home, wall) = (&setup.paths.home, setup.clocks.wall);
    let told = |error: session::Error| error.to_string();
    let upto = match setup.resume_at {
        Some(message) => Some(behind(&Session::open_read_only(home, id, wall).map_err(told)?, message)?),
        None => None,
    };
    let own = setup.session_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    Session::fork_as(own, home, id, upto, wall).map_err(told)
}

/// The entry behind the message with this id.
fn behind(session: &Session, message: uuid::Uuid) -> Result<Seq, String> {
    let is = |seq: Seq, blocks: usize| (0..blocks.max(1)).any(|part| ids::of_part(session.id(), seq, part) == message);
    let mut entries = session.context().entries();
    let found = entries.find(|(seq, entry)| is(*seq, entry.blocks.len()));
    found.map(|(seq, _)| seq + 1).ok_or_else(|| format!("session {} has no message {message}", session.id()))
}

pub(super) fn fresh(setup: &Setup) -> Session {
    Session::create(&setup.paths.home, &setup.project, VERSION, setup.clocks.wall)
}

/// Refuses a session of another folder: its files, its shell and its permissions belong there.
///
/// # Errors
/// Names the command that opens it.
pub(super) fn same_folder(setup: &Setup, id: &str) -> Result<(), String> {
    let summary = index::list(&setup.paths.home, None).map_err(|error| error.to_string())?;
    let Some(folder) = summary.into_iter().find(|summary| summary.id == id).map(|summary| summary.cwd) else {
        return Ok(());
    };
    // A folder that is gone cannot be gone to.
    match folder.canonicalize() {
        Ok(real) if real != setup.project => Err(format!(
            "session {id} belongs to {}: resume it there with cocode --cwd '{}' --resume {id}",
            real.display(),
            real.display()
        )),
        _ => Ok(()),
    }
}

/// Opens a session; when another process writes it, a person says whether to fork it or to look only.
pub(super) async fn open_or_ask(setup: &Setup, id: &str, inbox: &mut Inbox) -> Result<Session, String> {
    let home = &setup.paths.home;
    match Session::open(home, id, setup.clocks.wall) {
        Ok(session) => Ok(session),
        Err(error @ session::Error::Locked { .. }) => {
            let mailbox = inbox.mailbox.clone();
            let cancel = mailbox.begin();
            let answer = inbox.attend(mailbox.ask(Question::Locked { session: id.to_owned() }, &cancel)).await;
            mailbox.end();
            match answer {
                Some(Answer::Fork | Answer::Yes) => Session::fork(home, id, None, setup.clocks.wall),
                Some(Answer::ReadOnly) => Session::open_read_only(home, id, setup.clocks.wall),
                _ => return Err(error.to_string()),
            }
            .map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}
