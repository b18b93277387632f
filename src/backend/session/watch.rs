//! Notices that the log of an open session was removed, replaced or truncated, and writes it again.

use std::fs;
use std::io::{Read, Seek, SeekFrom};

use super::context::Context;
use super::entry::{Entry, EntryKind, Header, Seq};
use super::error::Error;
use super::folds::Folds;
use super::line;
use super::load::Loaded;
use super::log::{Log, Place, Writer};

impl Log {
    /// See `Session::watch`. What was cut off is written again from memory; `stamp` makes entries of it.
    pub(super) fn watch(
        &mut self,
        folds: &mut Folds,
        context: &Context,
        header: Header,
        stamp: impl Fn(Seq, EntryKind) -> Entry,
    ) -> Result<Vec<String>, Error> {
        let Some(writer) = self.writer.as_mut().filter(|writer| writer.exists()) else { return Ok(Vec::new()) };
        let path = self.path.display();
        let mut told = match writer.place()? {
            Place::Same => return Ok(Vec::new()),
            Place::Lost => {
                let bytes = writer.read_all()?;
                writer.write_anew(&bytes)?;
                vec![format!(
                    "the session's log was removed or replaced while it was open, so it was written again: {path}"
                )]
            }
            Place::Cut => {
                let path = path.to_string();
                self.rewrite(folds, context, header, stamp)?;
                vec![format!(
                    "the session's log was truncated while it was open; the rest of the conversation was written again: {path}"
                )]
            }
        };
        self.indexed = 0;
        let lost = folds.files.lost();
        if lost > 0 {
            let files = if lost == 1 { "1 file" } else { &format!("{lost} files") };
            told.push(format!("the earlier content of {files} is lost: those changes can no longer be undone"));
        }
        self.sync()?;
        Ok(told)
    }

    /// Writes the log from what is left of it and from the conversation in memory.
    fn rewrite(
        &mut self,
        folds: &mut Folds,
        context: &Context,
        header: Header,
        stamp: impl Fn(Seq, EntryKind) -> Entry,
    ) -> Result<(), Error> {
        let failed = |error| Error::io("read", &self.path, error);
        let Some(writer) = self.writer.as_mut() else { return Err(Error::ReadOnly) };
        let mut bytes = writer.read_all()?;
        // Of what was cut and written to again, only what was there before counts.
        let whole = folds.lines.iter().take_while(|line| {
            let (from, until) = (line.offset as usize, line.offset as usize + line.len);
            bytes.get(until) == Some(&b'\n')
                && line::parse(&bytes[from..until]).is_some_and(|entry| entry.seq == line.seq)
        });
        let (count, end, mut next) =
            whole.fold((0, 0, 0), |(count, ..), line| (count + 1, line.offset as usize + line.len + 1, line.seq + 1));
        bytes.truncate(end);
        let mut kinds: Vec<(Seq, EntryKind)> = Vec::new();
        if count == 0 {
            kinds.push((0, EntryKind::Header(header)));
        }
        let facts = &folds.facts;
        let title = facts.title().map(|title| EntryKind::Title { title: title.to_owned() });
        let mode = facts.mode.map(|mode| EntryKind::ModeChanged { mode });
        let model = facts.model.clone().map(|model| EntryKind::ModelChanged { model, borrowed: false });
        kinds.extend(context.entries().map(|(seq, message)| (seq, EntryKind::Message { message: message.clone() })));
        kinds.retain(|(seq, kind)| *seq >= next || matches!(kind, EntryKind::Header(_)));
        let changes = serde_json::to_value(&folds.files.changes).map_err(|error| failed(error.into()))?;
        let changes = Some(EntryKind::FilesKnown { changes });
        kinds.extend([title, mode, model, changes].into_iter().flatten().map(|kind| (folds.next_seq, kind)));
        for (seq, kind) in kinds {
            let entry = stamp(seq.max(next), kind);
            next = entry.seq + 1;
            serde_json::to_writer(&mut bytes, &entry).map_err(|error| failed(error.into()))?;
            bytes.push(b'\n');
        }
        let Some(writer) = self.writer.as_mut() else { return Err(Error::ReadOnly) };
        writer.write_anew(&bytes)?;
        let Some(file) = writer.file() else { return Ok(()) };
        let loaded = Loaded::read(file, &self.path).map_err(failed)?;
        self.scan = loaded.scan;
        folds.lines = loaded.folds.lines;
        folds.timeline = loaded.folds.timeline;
        folds.next_seq = folds.next_seq.max(loaded.folds.next_seq);
        Ok(())
    }
}

impl Writer {
    /// Whether the log's name still leads to it, whole.
    pub(super) fn place(&self) -> Result<Place, Error> {
        let Some(file) = self.file() else { return Ok(Place::Same) };
        let open = file.metadata().map_err(|error| Error::io("read", self.path(), error))?;
        if open.len() < self.end() {
            return Ok(Place::Cut);
        }
        let same = fs::symlink_metadata(self.path()).is_ok_and(|named| same_file(&open, &named));
        Ok(if same { Place::Same } else { Place::Lost })
    }

    /// The bytes of the open file, which may have no name anymore; at most those that were written.
    fn read_all(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let Some(mut file) = self.file() else { return Ok(bytes) };
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(self.end()).read_to_end(&mut bytes));
        read.map_err(|error| Error::io("read", self.path(), error))?;
        Ok(bytes)
    }
}

#[cfg(unix)]
pub(super) fn same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
pub(super) fn same_file(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::message::Message;
    use crate::session::Session;

    fn say(session: &mut Session, text: &str) {
        session.append(EntryKind::TurnStarted).unwrap();
        session.append(EntryKind::Message { message: Arc::new(Message::prompt(text)) }).unwrap();
    }

    /// Two prompts, what happens to the log, another prompt; then the session as somebody else reads it.
    fn check(harm: impl Fn(&Path), want: &str) {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let mut session = Session::create(&home, temp.path(), "1", SystemTime::now);
        assert_eq!(session.watch().unwrap(), [""; 0]);
        say(&mut session, "one");
        let file = temp.path().canonicalize().unwrap().join("f");
        fs::write(&file, "old").unwrap();
        session.before_change(&file).unwrap();
        say(&mut session, "two");
        assert_eq!(session.watch().unwrap(), [""; 0]);
        harm(session.log());
        let told = session.watch().unwrap();
        assert!(told[0].contains(want) && told[0].contains("transcript.jsonl"), "{told:?}");
        let gone = !session.store().dir().join("blobs").exists();
        assert_eq!(told.len(), 1 + usize::from(gone), "{told:?}");
        say(&mut session, "three");
        assert_eq!(session.watch().unwrap(), [""; 0]);
        let ours: Vec<String> = session.context().messages().iter().map(|message| message.text()).collect();
        assert_eq!(ours, ["one", "two", "three"]);
        assert!(session.entry(session.next_seq() - 1).is_some());
        assert!(matches!(Session::open(&home, session.id(), SystemTime::now), Err(Error::Locked { .. })));
        let read = Session::open_read_only(&home, session.id(), SystemTime::now).unwrap();
        assert_eq!((read.context().messages(), read.notices()), (session.context().messages(), &[][..]));
        assert_eq!((read.title(), read.next_seq()), (session.title(), session.next_seq()));
        let changes = |session: &Session| serde_json::to_value(&session.files().changes).unwrap();
        assert_eq!(changes(&read), changes(&session));
        let seqs = |session: &Session| session.context().entries().map(|(seq, _)| seq).collect::<Vec<_>>();
        assert_eq!(seqs(&read), seqs(&session));
    }

    #[test]
    fn a_log_that_went_is_written_again() {
        let folder = |log: &Path| log.parent().unwrap().to_owned();
        check(|log| fs::remove_dir_all(folder(log)).unwrap(), "removed or replaced");
        check(|log| fs::rename(folder(log), folder(log).with_extension("aside")).unwrap(), "removed or replaced");
        check(|log| fs::remove_file(log).unwrap(), "removed or replaced");
        check(
            |log| {
                fs::remove_file(log).unwrap();
                fs::write(log, "something else\n").unwrap();
            },
            "removed or replaced",
        );
        // Nobody writes into it, so opening it would wait forever.
        #[cfg(unix)]
        check(
            |log| {
                fs::remove_file(log).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(log).status().unwrap().success());
            },
            "removed or replaced",
        );
        let cut = |log: &Path, len: u64| fs::File::options().write(true).open(log).unwrap().set_len(len).unwrap();
        check(|log| cut(log, 0), "was truncated");
        check(|log| cut(log, fs::metadata(log).unwrap().len() - 30), "was truncated");
        check(|log| fs::write(log, "{}\n").unwrap(), "was truncated");
    }

    #[test]
    fn what_took_its_place_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let mut session = Session::create(temp.path(), temp.path(), "1", SystemTime::now);
        say(&mut session, "one");
        let log = session.log().to_owned();
        fs::remove_file(&log).unwrap();
        fs::write(&log, "mine\n").unwrap();
        session.watch().unwrap();
        assert_eq!(fs::read_to_string(log.with_extension("jsonl.found-1")).unwrap(), "mine\n");
        // Another process that writes there keeps its log.
        fs::remove_file(&log).unwrap();
        let other = fs::File::create(&log).unwrap();
        other.lock().unwrap();
        assert!(matches!(session.watch(), Err(Error::Locked { .. })));
        drop(other);
        assert_eq!(session.watch().unwrap().len(), 1);
    }

    #[test]
    fn a_place_that_takes_no_log_is_an_error_and_loses_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let mut session = Session::create(&home, temp.path(), "1", SystemTime::now);
        say(&mut session, "one");
        fs::remove_dir_all(&home).unwrap();
        fs::write(&home, "in the way").unwrap();
        let error = session.watch().unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("home"), "{error}");
        fs::remove_file(&home).unwrap();
        assert_eq!(session.watch().unwrap().len(), 1);
        let read = Session::open_read_only(&home, session.id(), SystemTime::now).unwrap();
        assert_eq!(read.context().messages(), session.context().messages());
    }
}
