//! A copy of the conversation in the format and at the place of Claude Code's own sessions: the lists of sessions of its SDKs
//! read nothing else. cocode never reads it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::lines;
use crate::message::{Kind, Message};
use crate::protocol::{HistoryItem, SessionInfo};
use crate::session::entry::Seq;
use crate::session::{self, ids, import};

/// Characters of a folder's name before it is cut and told apart by a hash.
const LONGEST_NAME: usize = 200;
/// Bytes at the end of a file that is continued in which its last entry is looked for.
const TAIL: u64 = 1 << 16;

/// The copy of one session.
pub(super) struct Mirror {
    path: PathBuf,
    file: File,
    session: String,
    /// What every entry repeats.
    frame: Map<String, Value>,
    /// The last entry: the next one answers it.
    last: Option<String>,
}

impl Mirror {
    /// Opens the copy under `home`, the folder of Claude Code's settings, and begins a new one with what is known of the
    /// conversation. Also returns the entries written by that.
    ///
    /// # Errors
    /// A folder or the file cannot be made or written.
    pub(super) fn open(home: &Path, session: &SessionInfo) -> io::Result<(Mirror, Vec<Value>)> {
        let folder = home.join("projects").join(folder(&session.cwd.to_string_lossy()));
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(format!("{}.jsonl", session.id));
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let open = OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(&path);
        let mut file = open?;
        let (fresh, last) = end(&mut file)?;
        let frame = json!({
            "isSidechain": false,
            "userType": "external",
            "entrypoint": import::OWN,
            "cwd": session.cwd,
            "sessionId": session.id,
            "version": lines::CC_COMPAT,
        });
        let Value::Object(frame) = frame else { unreachable!("an object was written") };
        let mut mirror = Mirror { path, file, session: session.id.clone(), frame, last };
        let mut begun = Vec::new();
        if fresh {
            if let Some(title) = &session.title {
                begun.extend(mirror.rename(title)?);
            }
            for item in &session.history {
                if let HistoryItem::Message { seq, message } = item {
                    begun.extend(mirror.add(message, *seq, None)?);
                }
            }
        }
        Ok((mirror, begun))
    }

    /// Where the copy is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what people would see of a message, and returns the entries. `name` is what a prompt was called by the program
    /// that sent it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&mut self, message: &Message, seq: Seq, name: Option<uuid::Uuid>) -> io::Result<Vec<Value>> {
        let id = |part: usize| ids::of_part(&self.session, seq, part);
        let lines = match message.kind {
            Kind::Prompt => vec![lines::replay(message, name.unwrap_or_else(|| id(0)))],
            _ => lines::messages(message, &format!("msg_{}", id(usize::MAX).simple()), id),
        };
        let entries = lines.into_iter().map(|line| self.entry(line)).collect();
        self.write(entries)
    }

    /// The session has another name.
    ///
    /// # Errors
    /// As [`Mirror::add`].
    pub(super) fn rename(&mut self, title: &str) -> io::Result<Vec<Value>> {
        self.write(vec![json!({ "type": "custom-title", "customTitle": title, "sessionId": self.session })])
    }

    fn entry(&mut self, mut line: Value) -> Value {
        let id = line["uuid"].as_str().unwrap_or_default().to_owned();
        let mut entry = self.frame.clone();
        entry.insert("parentUuid".into(), json!(self.last.replace(id)));
        for (key, name) in
            [("type", "type"), ("message", "message"), ("uuid", "uuid"), ("tool_use_result", "toolUseResult")]
        {
            if let Some(value) = line.get_mut(key) {
                entry.insert(name.into(), value.take());
            }
        }
        entry.insert("timestamp".into(), session::rfc3339(SystemTime::now()).into());
        Value::Object(entry)
    }

    /// All at once, so that a kill leaves whole lines.
    fn write(&mut self, entries: Vec<Value>) -> io::Result<Vec<Value>> {
        let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        self.file.write_all(text.as_bytes())?;
        Ok(entries)
    }
}

/// Whether a file is new, and the id of its last entry. A line that was torn is ended.
fn end(file: &mut File) -> io::Result<(bool, Option<String>)> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok((true, None));
    }
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    if !tail.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    let id = |line: &[u8]| {
        let entry: Value = serde_json::from_slice(line).ok()?;
        Some(entry["uuid"].as_str()?.to_owned())
    };
    Ok((false, tail.split(|byte| *byte == b'\n').rev().find_map(id)))
}

/// What Claude Code calls the folder with the sessions of a working directory.
fn folder(cwd: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    // As JavaScript counts: a letter outside of the first plane is two.
    let name: String = cwd.chars().flat_map(|letter| std::iter::repeat_n(plain(letter), letter.len_utf16())).collect();
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..LONGEST_NAME], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_claude_code_names_them() {
        let long = format!("/{}", "a".repeat(220));
        // By the function of the SDK, run in Node.
        let rows = [
            ("/work/my app", "-work-my-app".to_owned()),
            ("/ä/𝕏.d", "------d".to_owned()),
            (&long, format!("-{}-7upm6p", "a".repeat(199))),
        ];
        for (cwd, want) in rows {
            assert_eq!(folder(cwd), want, "{cwd}");
        }
    }
}
