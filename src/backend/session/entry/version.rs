//! What was at a path at some time, and what undo puts there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message::BlobId;
use crate::sandbox::record::Stamp;
use crate::stdx::path_text;

/// What was at a path at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Version {
    Absent,
    File {
        content: Content,
        /// Unix permission bits, where they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// Tells the file without reading it, where it was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    Link {
        #[serde(with = "path_text")]
        target: PathBuf,
    },
    Folder {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A pipe, a socket, a device: it can be removed, and not be made again.
    Special,
}

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Blob(BlobId),
    /// A file in the session's folder, by its path there.
    Kept(String),
    /// The change leaves it as it is.
    Untouched,
    /// Nobody saved it: it is what the change left.
    Unsaved,
    /// It could not be saved; why.
    Lost(String),
}

impl Version {
    /// A regular file with a saved content, or nothing.
    pub fn of(blob: Option<BlobId>, mode: Option<u32>) -> Version {
        match blob {
            Some(blob) => Version::File { content: Content::Blob(blob), mode, stamp: None },
            None => Version::Absent,
        }
    }

    pub fn mode(&self) -> Option<u32> {
        match self {
            Version::File { mode, .. } | Version::Folder { mode } => *mode,
            Version::Absent | Version::Link { .. } | Version::Special => None,
        }
    }

    /// Of a file that was looked at.
    pub fn stamp(&self) -> Option<&Stamp> {
        match self {
            Version::File { stamp, .. } => stamp.as_ref(),
            _ => None,
        }
    }

    pub fn blob(&self) -> Option<&BlobId> {
        match self {
            Version::File { content: Content::Blob(blob), .. } => Some(blob),
            _ => None,
        }
    }
}

/// One file that undo, redo or rewind replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub from: Version,
    pub to: Version,
    /// What exists beside the file meanwhile.
    #[serde(with = "path_text")]
    pub temporary: PathBuf,
}

/// What a command in the background did to a file after others changed it, undone together with those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Along {
    pub record: String,
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// From when on, in nanoseconds since 1970.
    pub from: u64,
}
