//! What the user agreed to in which folder: `<home>/cocode/trust`, one agreement a line, as JSON.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layer::read_text;
use super::paths::Paths;
use crate::permission::{Trust, Use};
use crate::stdx::fs::private_dir;

/// What comes before a plugin's id where a folder would be.
const PLUGIN: &str = "plugin ";

/// One line of the file. Lines of other shapes, such as the bare paths of earlier versions, say nothing.
#[derive(Debug, Serialize, Deserialize)]
struct Agreement {
    folder: PathBuf,
    /// Whether `uses` is all that the folder brought along.
    extent: Extent,
    uses: Vec<Use>,
}

/// How much of what a folder brings along was agreed to at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All that there is.
    All,
    /// Something in addition to what was agreed to before.
    More,
}

/// Looks a folder up by its real path; with it comes what was agreed to of plugins, which holds everywhere. What cannot be read was not agreed to; a folder inherits nothing from above.
pub fn of(paths: &Paths, folder: &Path) -> Trust {
    let mut trust = Trust::default();
    let (Ok(folder), Ok(Some(text))) = (fs::canonicalize(folder), read_text(&file(paths))) else { return trust };
    let mut plugins: BTreeMap<PathBuf, Trust> = BTreeMap::new();
    for agreement in text.lines().filter_map(|line| serde_json::from_str::<Agreement>(line).ok()) {
        let trust = match agreement.folder.to_str() {
            Some(place) if place.starts_with(PLUGIN) => plugins.entry(agreement.folder).or_default(),
            _ if agreement.folder == folder => &mut trust,
            _ => continue,
        };
        match agreement.extent {
            Extent::All => trust.agree(&agreement.uses),
            Extent::More => trust.add(&agreement.uses),
        }
    }
    plugins.into_values().for_each(|plugin| trust.join_beside(plugin));
    trust
}

/// Remembers what the user agreed to. Appends one line, so that two processes cannot lose each other's.
///
/// # Errors
/// What the file system says; or the path is not UTF-8.
pub fn remember(paths: &Paths, folder: &Path, extent: Extent, uses: &[Use]) -> io::Result<()> {
    append(paths, fs::canonicalize(folder)?, extent, uses)
}

/// Remembers what the user agreed to of a plugin that is theirs in every folder.
///
/// # Errors
/// What the file system says.
pub fn remember_plugin(paths: &Paths, id: &str, uses: &[Use]) -> io::Result<()> {
    append(paths, PathBuf::from(format!("{PLUGIN}{id}")), Extent::All, uses)
}

fn append(paths: &Paths, folder: PathBuf, extent: Extent, uses: &[Use]) -> io::Result<()> {
    let uses = uses.to_vec();
    let line = serde_json::to_string(&Agreement { folder, extent, uses })?;
    private_dir(&paths.own_state())?;
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file(paths))?.write_all(format!("{line}\n").as_bytes())
}

fn file(paths: &Paths) -> PathBuf {
    paths.own_state().join("trust")
}

#[cfg(test)]
mod tests {
    use super::super::paths::Env;
    use super::*;

    #[test]
    fn only_what_was_shown_in_the_folder_itself_is_agreed_to() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Env::fake(dir.path(), &[])).unwrap();
        let (one, below) = (dir.path().join("one\nline"), dir.path().join("one\nline/below"));
        fs::create_dir_all(&below).unwrap();
        // A path alone, as earlier versions wrote it.
        private_dir(&paths.own_state()).unwrap();
        fs::write(file(&paths), format!("{}\n", serde_json::to_string(&one.canonicalize().unwrap()).unwrap())).unwrap();
        assert!(of(&paths, &one).is_empty());
        let used = |line: &str| Use::new("k", line, "");
        remember(&paths, &one, Extent::All, &[used("a"), used("b")]).unwrap();
        remember(&paths, &one.join("below/.."), Extent::More, &[used("c")]).unwrap();
        let trust = of(&paths, &one);
        assert_eq!(["a", "b", "c", "d"].map(|line| trust.covers(&used(line))), [true, true, true, false]);
        assert!(of(&paths, &below).is_empty());
    }
}
