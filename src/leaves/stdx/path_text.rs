//! Paths in JSON, those included that are not UTF-8: as a string where they are, as an array of bytes otherwise.
//! For `#[serde(with = "…")]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Bytes(Vec<u8>),
}

/// # Errors
/// What the format says.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => to.serialize_str(text),
        None => path.as_os_str().as_encoded_bytes().serialize(to),
    }
}

/// # Errors
/// What the format says.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Text::deserialize(from)? {
        Text::Plain(text) => PathBuf::from(text),
        Text::Bytes(bytes) => of_bytes(bytes),
    })
}

#[cfg(unix)]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes))
}

#[cfg(not(unix))]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// The same for lists of paths.
pub mod list {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer};

    #[derive(Serialize)]
    struct One<'a>(#[serde(serialize_with = "super::serialize")] &'a Path);

    #[derive(Deserialize)]
    struct Owned(#[serde(deserialize_with = "super::deserialize")] PathBuf);

    /// # Errors
    /// What the format says.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| One(path)))
    }

    /// # Errors
    /// What the format says.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Owned>::deserialize(from)?.into_iter().map(|path| path.0).collect())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        #[serde(with = "super")]
        one: PathBuf,
        #[serde(with = "super::list")]
        many: Vec<PathBuf>,
    }

    #[test]
    fn every_path_comes_back() {
        let odd = PathBuf::from(std::ffi::OsString::from_vec(vec![b'a', 0xff, b'/']));
        for one in [PathBuf::from("/a b"), odd.clone()] {
            let both = Both { one, many: vec![odd.clone(), "x".into()] };
            let text = serde_json::to_string(&both).unwrap();
            assert_eq!(serde_json::from_str::<Both>(&text).unwrap(), both, "{text}");
        }
        let plain = Both { one: "/a".into(), many: vec![] };
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"one":"/a","many":[]}"#);
    }
}
