//! What a command changed, a line each, written before it happens: what a kill leaves of it is still whole.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::sandbox::{Before, Saved};
use crate::stdx::path_text;

/// Its name in the store.
pub const MANIFEST: &str = "manifest.jsonl";

/// How the names of files end that stay in the store beside their copies, because they have names that nobody mentions.
pub const LIVE: &str = ".live";

/// How the names of copies end that hold what the command left.
pub const LEFT: &str = ".left";

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "line")]
pub enum Line {
    /// The supervisor is there: from now on everything is seen.
    Began { at: u64 },
    /// A path is touched for the first time, or more of it is saved than before: the last line of a path counts.
    Touched {
        /// Nanoseconds since 1970.
        at: u64,
        #[serde(with = "path_text")]
        path: PathBuf,
        before: Before,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    /// What the command had left at a path, before somebody else changed that or it ended with nobody there: what comes after
    /// it is not the command's. The next line of the path begins again.
    Left {
        /// Nanoseconds since 1970.
        at: u64,
        #[serde(with = "path_text")]
        path: PathBuf,
        is: Before,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    /// Something that could not be seen or saved, for people.
    Missed { why: String },
    /// Nobody is left who could change anything.
    Ended { at: u64 },
}

/// A file, whatever its names: device, number, birth.
pub type Number = (u64, u64, i64);

/// What tells two states of a file apart without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    /// Of the last change of the content, in nanoseconds since 1970. Anybody can set it.
    pub mtime: i64,
    /// Of the last change of anything, in nanoseconds since 1970. Nobody can set it.
    #[serde(default)]
    pub ctime: i64,
    /// When the file was made, in nanoseconds since 1970: a number is given to another file once this one is gone. Zero where
    /// the file system does not say.
    #[serde(default)]
    pub born: i64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// How many names it has, those in a store included.
    #[serde(default)]
    pub links: u64,
}

impl Stamp {
    #[cfg(unix)]
    pub fn of(meta: &Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        Stamp {
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            mtime: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
            ctime: meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec()),
            born: born.map_or(0, |born| i64::try_from(born.as_nanos()).unwrap_or(0)),
            mode: meta.mode(),
            uid: meta.uid(),
            gid: meta.gid(),
            links: meta.nlink(),
        }
    }

    #[cfg(not(unix))]
    pub fn of(meta: &Metadata) -> Stamp {
        Stamp { dev: 0, ino: 0, size: meta.len(), mtime: 0, ctime: 0, born: 0, mode: 0, uid: 0, gid: 0, links: 0 }
    }

    /// Whether the content is the same, as far as anybody can tell without reading it: a program can set times back.
    pub fn same_content(&self, other: &Stamp) -> bool {
        (self.dev, self.ino, self.size, self.mtime) == (other.dev, other.ino, other.size, other.mtime)
    }

    /// Whether nothing at all happened to the file between the two, but for what two changes within one tick of the clock do.
    pub fn same_state(&self, other: &Stamp) -> bool {
        self.same_content(other) && self.ctime == other.ctime
    }

    /// What no two files have.
    pub fn number(&self) -> Number {
        (self.dev, self.ino, self.born)
    }

    pub fn same_file(&self, other: &Stamp) -> bool {
        let born = self.born == other.born || self.born == 0 || other.born == 0;
        born && (self.dev, self.ino) == (other.dev, other.ino)
    }

    /// Whether it matters which of two files a path names, even where both hold the same: one of them has other names.
    pub fn has_names(&self, other: &Stamp) -> bool {
        self.links.max(other.links) > 1
    }
}

/// All lines of a command, in the order in which paths were touched: each once, and again after others have changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// False: no supervisor ever stood by, and nothing is known.
    pub began: bool,
    pub touched: Vec<Touched>,
    pub missed: Vec<String>,
    /// When the command had ended, in nanoseconds since 1970; none where the supervisor was killed before.
    pub ended: Option<u64>,
}

/// What a command left at a path, where that is not simply what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub at: u64,
    pub is: Before,
    pub stamp: Option<Stamp>,
}

/// A path, and what was there before the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub at: u64,
    pub path: PathBuf,
    pub before: Before,
    /// Before anything happened to it.
    pub stamp: Option<Stamp>,
    /// It was touched again, before its content changed: what is saved of it under a second name may have other times.
    pub again: bool,
    /// Somebody else has changed it since the command had last touched it.
    pub since: bool,
    pub left: Option<Left>,
}

impl Manifest {
    /// Reads what is in a store. One without a manifest is empty; a line that was cut short is not there, since its call
    /// never happened.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(store: &Path) -> io::Result<Manifest> {
        let file = match File::open(store.join(MANIFEST)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Manifest::default()),
            file => file?,
        };
        let mut manifest = Manifest::default();
        let mut places = std::collections::HashMap::new();
        let mut lines = BufReader::new(file);
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes)? > 0 {
            match serde_json::from_slice(&bytes) {
                Ok(Line::Began { .. }) => manifest.began = true,
                Ok(Line::Touched { at, path, before, stamp }) => {
                    let known = places.get(&path).map(|place: &usize| &mut manifest.touched[*place]);
                    // Without a stamp a file was not looked at again: what is known of the one before changes.
                    let same = |known: &Touched| {
                        known.left.is_none() || stamp.is_none() && matches!(before, Before::File { .. })
                    };
                    match known {
                        Some(known) if same(known) => (known.before, known.again) = (before, true),
                        known => {
                            let since = known.is_some();
                            places.insert(path.clone(), manifest.touched.len());
                            manifest.touched.push(Touched { at, path, before, stamp, again: false, since, left: None });
                        }
                    }
                }
                Ok(Line::Left { at, path, is, stamp }) => {
                    let known = places.get(&path).map(|place| &mut manifest.touched[*place]);
                    known.into_iter().for_each(|known| known.left = Some(Left { at, is: is.clone(), stamp }));
                }
                Ok(Line::Ended { at }) => manifest.ended = Some(at),
                Ok(Line::Missed { why }) if !manifest.missed.contains(&why) => manifest.missed.push(why),
                Ok(Line::Missed { .. }) | Err(_) => {}
            }
            bytes.clear();
        }
        Ok(manifest)
    }
}

impl Touched {
    /// Where the content of the file before is, if it was saved.
    pub fn saved(&self) -> Option<&str> {
        match &self.before {
            Before::File { saved: Saved::As(name), .. } => Some(name),
            _ => None,
        }
    }
}
