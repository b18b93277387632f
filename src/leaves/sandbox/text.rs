//! Bytes of the system as JSON has them: names of files need not be UTF-8.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Stands before bytes that are not UTF-8, each of which is one character then. No text of the system holds it.
const BYTES: char = '\0';

pub(super) fn encode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(std::iter::once(BYTES).chain(bytes.iter().copied().map(char::from)).collect()),
    }
}

pub(super) fn decode(text: &str) -> Vec<u8> {
    match text.strip_prefix(BYTES) {
        Some(bytes) => bytes.chars().map(|c| c as u32 as u8).collect(),
        None => text.as_bytes().to_vec(),
    }
}

/// A path on the wire.
struct Raw(PathBuf);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(self.0.as_os_str().as_bytes()))
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Raw(OsString::from_vec(decode(&text)).into()))
    }
}

/// For `#[serde(with = "…")]` on one path.
pub(super) mod path {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Raw(path.to_path_buf()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(Raw::deserialize(deserializer)?.0)
    }
}

/// For `#[serde(with = "…")]` on a list of paths.
pub(super) mod paths {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().cloned().map(Raw))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Raw>::deserialize(deserializer)?.into_iter().map(|Raw(path)| path).collect())
    }
}
