//! `index.bin`: what reading a log through finds, so that a resume reads only what came after.
//!
//! It earns its lines with long sessions: `cocode -p /status` in one of 100,000 entries that was compacted on its way takes
//! 45 ms with it, 200 ms without. Below 1,000 entries there is no index.
//!
//! A cache. It counts only for the very log that it was made of: made by this version of the program, no longer than the
//! log, its last entry where it says, and where nothing came after it, a log that nobody touched since. Anything else is
//! rebuilt from the log.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::entry::EntryKind;
use super::facts::Facts;
use super::folds::Folds;
use super::line;
use super::load::Loaded;
use super::log::{Lines, Scan};
use super::packed::{self, Cursor};
use crate::stdx::hash::sha256_hex;

/// The index's name in its session's folder.
pub(super) const FILE: &str = "index.bin";

/// Version of the format, and of what is folded into it.
const VERSION: u32 = 8;

/// Lines from which on the index pays.
const WORTH: usize = if cfg!(test) { 8 } else { 1_000 };

/// It changes the order of entries, so it is read again.
const ORDERS: u8 = packed::FLAG;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    program: String,
    lines: usize,
    /// When the log was changed last, in nanoseconds since 1970.
    changed_ns: u128,
    scan: Scan,
    next_call: u64,
    facts: Facts,
    changes: Changes,
}

/// Whether an index of so many lines is to be written when the last one has `saved`.
pub(super) fn is_due(lines: usize, saved: usize) -> bool {
    lines >= saved + WORTH.max(saved / 16)
}

/// Writes the index of a log. It is not forced to disk: half a file counts as missing.
///
/// # Errors
/// What the file system says.
pub(super) fn save(log: &Path, folds: &Folds, scan: Scan) -> io::Result<()> {
    let head = Head {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        lines: folds.lines.len(),
        changed_ns: super::meta::changed_ns(&fs::metadata(log)?),
        scan,
        next_call: folds.next_call,
        facts: folds.facts.clone(),
        changes: folds.files.changes.clone(),
    };
    let mut body = serde_json::to_vec(&head)?;
    body.push(b'\n');
    let mut cursor = Cursor::default();
    for (index, line) in folds.lines.iter().enumerate() {
        cursor.put(&mut body, line, if folds.timeline.orders(index) { ORDERS } else { 0 });
    }
    let folder = log.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(sha256_hex(&body).as_bytes())?;
    file.write_all(b"\n")?;
    file.write_all(&body)?;
    file.persist(folder.join(FILE)).map_err(|error| error.error)?;
    Ok(())
}

/// What the index knows of a log; none when there is no index, or it is not this log's.
pub(super) fn restore(log: &Path, file: &File) -> Option<Loaded> {
    // Beside the log of a sub-agent lies the index of the session's own.
    let bytes = super::log::is_main(log).then(|| fs::read(log.with_file_name(FILE)).ok())??;
    let (digest, body) = bytes.split_at_checked(65)?;
    if digest.strip_suffix(b"\n")? != sha256_hex(body).as_bytes() {
        return None;
    }
    let at = body.iter().position(|byte| *byte == b'\n')?;
    let head: Head = serde_json::from_slice(&body[..at]).ok()?;
    let found = file.metadata().ok()?;
    let untouched = found.len() > head.scan.end || super::meta::changed_ns(&found) == head.changed_ns;
    if head.version != VERSION || head.program != env!("CARGO_PKG_VERSION") || found.len() < head.scan.end || !untouched
    {
        return None;
    }
    let mut table = &body[at + 1..];
    let mut folds = Folds { next_call: head.next_call, facts: head.facts, ..Folds::new(log) };
    folds.files.changes = head.changes;
    let mut reader = Lines::open(log).ok()?;
    let mut cursor = Cursor::default();
    let mut text = Vec::new();
    for _ in 0..head.lines {
        let (line, orders) = cursor.take(&mut table)?;
        if cursor.offset() > head.scan.end + 1 {
            return None;
        }
        let kind = match orders {
            false => EntryKind::Unknown,
            true => {
                reader.read(line, &mut text).ok()?;
                line::parse(&text)?.kind
            }
        };
        folds.place(line, &kind);
    }
    let (last_seq, last_id) = head.scan.last.as_ref()?;
    reader.read(folds.lines.get(folds.lines.len().checked_sub(1)?)?, &mut text).ok()?;
    let last = line::glance(&text)?;
    let closed = byte_at(file, head.scan.end.checked_sub(1)?)? == b'\n';
    if !table.is_empty() || last.seq != *last_seq || last.id != *last_id || !closed {
        return None;
    }
    Some(Loaded { indexed: folds.lines.len(), folds, scan: head.scan })
}

fn byte_at(mut file: &File, at: u64) -> Option<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::message::{Message, Usage};
    use crate::session::Session;
    use crate::session::entry::Boundary;

    fn turn(session: &mut Session, prompt: &str) {
        let usage = Usage { input: 3, ..Usage::default() };
        for kind in [
            EntryKind::Message { message: Arc::new(Message::prompt(prompt)) },
            EntryKind::TurnStarted,
            EntryKind::CommandRan {
                call: crate::message::CallId::nth(session.next_call()),
                command: "ls".into(),
                record: None,
                agent: None,
            },
            EntryKind::Message { message: Arc::new(Message { usage: Some(usage), ..Message::reply(vec![]) }) },
            EntryKind::TurnEnded { end: "done".into(), usage },
        ] {
            session.append(kind).unwrap();
        }
    }

    /// What opening the log finds.
    fn read(log: &Path) -> String {
        let found = Loaded::read(&File::open(log).unwrap(), log).unwrap();
        format!("{:?}", Loaded { indexed: 0, ..found })
    }

    /// Opens the log as it is, and without any index: both have to find the same.
    fn check(log: &Path, name: &str, indexed: bool) {
        assert_eq!(restore(log, &File::open(log).unwrap()).is_some(), indexed, "{name}");
        let got = read(log);
        let index = log.with_file_name(FILE);
        let kept = fs::read(&index).unwrap();
        fs::remove_file(&index).unwrap();
        assert_eq!(got, read(log), "{name}");
        fs::write(&index, kept).unwrap();
    }

    #[test]
    fn an_index_says_what_the_log_says_or_nothing() {
        let home = tempfile::tempdir().unwrap();
        let mut session = Session::create(home.path(), Path::new("/p"), "1", SystemTime::now);
        for prompt in ["one", "two", "three"] {
            turn(&mut session, prompt);
        }
        session.append(EntryKind::Rewind { to: 6 }).unwrap();
        let boundary = Boundary { keep_from: 3, ..Boundary::default() };
        session.append(EntryKind::CompactBoundary(boundary)).unwrap();
        for prompt in ["four", "five", "six"] {
            turn(&mut session, prompt);
        }
        let (log, id) = (session.log().to_owned(), session.id().to_owned());
        let index = log.with_file_name(FILE);
        drop(session);
        check(&log, "what came after it is read", true);
        drop(Session::open(home.path(), &id, SystemTime::now).unwrap());
        check(&log, "opened", true);

        let (good, text) = (fs::read(&index).unwrap(), fs::read(&log).unwrap());
        let put_back = |bytes: &[u8]| fs::write(&index, bytes).unwrap();
        for (name, bytes) in [
            ("empty", Vec::new()),
            ("truncated", good[..good.len() - 7].to_vec()),
            ("corrupt", good.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == good.len() / 2)).collect()),
            ("of another version", {
                let (mut body, field) = (good[65..].to_vec(), format!("\"version\":{VERSION}"));
                let at = body.windows(field.len()).position(|bytes| bytes == field.as_bytes()).unwrap();
                body[at + field.len() - 1] = b'9';
                [sha256_hex(&body).as_bytes(), b"\n", &body].concat()
            }),
        ] {
            put_back(&bytes);
            check(&log, name, false);
        }
        put_back(&good);
        // Shorter than the index, changed at its end, and changed without becoming longer.
        fs::write(&log, &text[..text.len() / 2]).unwrap();
        check(&log, "a log that was cut", false);
        let line = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        let other = [&text[..line], &text[line..].to_ascii_uppercase(), b"x\n"].concat();
        fs::write(&log, other).unwrap();
        check(&log, "another last entry", false);
        fs::write(&log, String::from_utf8(text.clone()).unwrap().replace("four", "FOUR")).unwrap();
        check(&log, "the same length, changed later", false);
        // Opening the session rebuilds it.
        drop(Session::open(home.path(), &id, SystemTime::now).unwrap());
        check(&log, "rebuilt", true);
        fs::remove_file(&index).unwrap();
        drop(Session::open(home.path(), &id, SystemTime::now).unwrap());
        check(&log, "made again", true);
    }
}
