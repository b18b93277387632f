//! One plugin as lists show it, and as programs read it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{From, Plugin, Plugins, Standing};

/// One plugin in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub id: String,
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub from: From,
    pub standing: Standing,
    pub enabled: bool,
    pub install_path: PathBuf,
    /// What of it runs or grants something, as the user is asked for it.
    pub runs: Vec<String>,
    /// The user agreed to all of that.
    pub trusted: bool,
    /// As they are typed.
    pub skills: Vec<String>,
    /// What it has and cocode does nothing with.
    pub not_used: Vec<String>,
    pub faults: Vec<String>,
}

/// The plugins of a session, and what of them does not work, by plugin or place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub loaded: Vec<Row>,
    pub errors: Vec<(String, String)>,
}

impl Plugin {
    pub fn row(&self) -> Row {
        Row {
            id: self.id.clone(),
            name: self.manifest.name.clone(),
            version: self.version.clone(),
            description: self.manifest.description.clone(),
            from: self.from,
            standing: self.standing.clone(),
            enabled: !matches!(self.standing, Standing::Off),
            install_path: self.root.clone(),
            runs: self.uses.iter().map(|used| used.line.clone()).collect(),
            trusted: self.trusted,
            skills: self.skills.clone(),
            not_used: self.not_used(),
            faults: self.faults.iter().map(ToString::to_string).collect(),
        }
    }

    /// What it has and cocode does nothing with, in words.
    pub fn not_used(&self) -> Vec<String> {
        let told = |(what, names): &(&str, Vec<String>)| match names.as_slice() {
            [] => format!("its {what} are not supported yet"),
            names => format!("its {what} are not supported yet: {}", names.join(", ")),
        };
        self.manifest.unsupported.iter().map(told).collect()
    }
}

impl Plugins {
    pub fn summary(&self) -> Summary {
        Summary { loaded: self.loaded().map(Plugin::row).collect(), errors: self.errors() }
    }
}
