//! What a plugin's skills have to be told: its name and its folders.

use std::path::PathBuf;

/// A plugin, as far as its skills need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// What comes before the colon.
    pub name: String,
    /// With the place that it comes from: `name@marketplace`.
    pub id: String,
    /// Its folder, where it really is.
    pub root: PathBuf,
    /// What it keeps over updates; may not exist yet.
    pub data: PathBuf,
    /// Folders of skills, and single SKILL.md files.
    pub skills: Vec<PathBuf>,
    /// Markdown files that are one skill each, and folders of them.
    pub commands: Vec<PathBuf>,
}
