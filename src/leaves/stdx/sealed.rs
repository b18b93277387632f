//! Files that must still hold what they held when somebody agreed to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::hash::sha256_hex;
use super::regular;

/// Most bytes of a file that are hashed; beyond them its length and its time count.
const MOST: u64 = 4 << 20;
/// Coarsest clock of a file system, in seconds.
const SETTLED: i64 = 2;

/// Files with what each held; none where there was no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sealed(BTreeMap<PathBuf, Held>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Nothing,
    Content(Seal),
    /// It is watched, and may change: changing it asks.
    Anything,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seal {
    hash: String,
    stamp: Option<Stamp>,
}

impl Sealed {
    /// Seals a file with what `content` said of it. What was sealed before stays so.
    pub fn add(&mut self, path: &Path, content: Option<&Content>) {
        let held = || content.map_or(Held::Nothing, |content| Held::Content(content.seal()));
        self.0.entry(path.to_owned()).or_insert_with(held);
    }

    /// Watches what others sealed: it may change.
    pub fn watch(&mut self, other: &Sealed) {
        other.0.keys().for_each(|path| {
            self.0.entry(path.clone()).or_insert(Held::Anything);
        });
    }

    /// Takes over what others sealed.
    pub fn join(&mut self, other: &Sealed) {
        other.0.iter().for_each(|(path, seal)| {
            self.0.entry(path.clone()).or_insert_with(|| seal.clone());
        });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn holds(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The first file that holds something else now. Reads only those whose stamp differs.
    pub fn broken(&self) -> Option<&Path> {
        self.0.iter().find(|(path, held)| !holds_still(path, held)).map(|(path, _)| path.as_path())
    }
}

/// What a regular file holds, or the start of it.
#[derive(Debug)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub hash: String,
    stamp: Option<Stamp>,
}

impl Content {
    fn seal(&self) -> Seal {
        Seal { hash: self.hash.clone(), stamp: self.stamp }
    }
}

/// What the kernel says of a file: device, number, length, and the time of its last change, which nobody can set back.
type Stamp = (u64, u64, u64, i64, i64);

#[cfg(unix)]
fn stamp(data: &Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;

    Some((data.dev(), data.ino(), data.size(), data.ctime(), data.ctime_nsec()))
}

#[cfg(not(unix))]
fn stamp(_: &Metadata) -> Option<Stamp> {
    None
}

/// Whether the last change is so long ago that another one would get another time.
fn settled(stamp: Stamp) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).is_ok_and(|now| stamp.3.saturating_add(SETTLED) < now)
}

fn holds_still(path: &Path, held: &Held) -> bool {
    let seal = match held {
        Held::Nothing => return content(path).is_none(),
        Held::Anything => return true,
        Held::Content(seal) => seal,
    };
    let now = || path.metadata().ok().as_ref().and_then(stamp);
    seal.stamp.is_some() && now() == seal.stamp || content(path).is_some_and(|content| content.hash == seal.hash)
}

/// Reads a file once, so that what is looked at is what is sealed. None: it cannot be read, nor run.
pub fn content(path: &Path) -> Option<Content> {
    let file = regular::open(path).ok()?;
    // Before its bytes: a change meanwhile makes another stamp.
    let data = file.metadata().ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    let mut hash = sha256_hex(&bytes);
    if bytes.len() as u64 == MOST {
        let _ = write!(hash, "{} {:?}", data.len(), data.modified().ok());
    }
    Some(Content { bytes, hash, stamp: stamp(&data).filter(|stamp| settled(*stamp)) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_seal_breaks_with_the_content_alone() {
        let temp = tempfile::tempdir().unwrap();
        let (one, two) = (temp.path().join("one"), temp.path().join("two"));
        fs::write(&one, "1").unwrap();
        let mut sealed = Sealed::default();
        [&one, &two].into_iter().for_each(|path| sealed.add(path, content(path).as_ref()));
        assert_eq!(sealed.broken(), None);
        let when = fs::metadata(&one).unwrap().modified().unwrap();
        fs::write(&one, "2").unwrap();
        fs::File::options().write(true).open(&one).unwrap().set_modified(when).unwrap();
        assert_eq!(sealed.broken(), Some(one.as_path()));
        fs::write(&one, "1").unwrap();
        assert_eq!(sealed.broken(), None);
        fs::write(&two, "").unwrap();
        assert_eq!(sealed.broken(), Some(two.as_path()));
    }

    /// A stamp that is as it was spares the reading; one that differs decides nothing by itself.
    #[cfg(unix)]
    #[test]
    fn only_what_has_another_stamp_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let one = temp.path().join("one");
        fs::write(&one, "1").unwrap();
        let now = stamp(&fs::metadata(&one).unwrap());
        let held = sha256_hex(b"1");
        for (hash, stamp, holds) in [
            ("another", now, true),
            ("another", None, false),
            (held.as_str(), None, true),
            (held.as_str(), Some((0, 0, 1, 0, 0)), true),
            ("another", Some((0, 0, 1, 0, 0)), false),
        ] {
            let seal = Seal { hash: hash.to_owned(), stamp };
            let held = Held::Content(seal);
            assert_eq!(holds_still(&one, &held), holds, "{held:?}");
        }
        assert_eq!(content(&one).unwrap().stamp, None, "written just now");
    }
}
