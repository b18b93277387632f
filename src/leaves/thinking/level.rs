//! The three levels, their names, and the toggle of a session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How hard the model thinks. The order is that of the effort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    #[default]
    None,
    DeepThink,
    UltraThink,
}

impl Level {
    /// Weakest first.
    pub const ALL: [Level; 3] = [Level::None, Level::DeepThink, Level::UltraThink];

    /// Every way to write a level, for schemas: the names, then what earlier versions wrote.
    pub const NAMES: [&str; 7] = ["none", "deep", "ultra", "deep_think", "deepthink", "ultra_think", "ultrathink"];

    /// The one name that is shown and written.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::DeepThink => "deep",
            Level::UltraThink => "ultra",
        }
    }

    /// What the words for efforts of other programs mean; none for any other word.
    pub fn of_effort(word: &str) -> Option<Level> {
        match word.to_ascii_lowercase().as_str() {
            "low" => Some(Level::None),
            "medium" => Some(Level::DeepThink),
            "high" | "xhigh" | "max" => Some(Level::UltraThink),
            _ => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "none" | "off" => Ok(Level::None),
            "deep" | "deep_think" | "deepthink" => Ok(Level::DeepThink),
            "ultra" | "ultra_think" | "ultrathink" => Ok(Level::UltraThink),
            // The words of other programs.
            word => {
                Level::of_effort(word).ok_or_else(|| format!("no thinking level {text:?}: choose none, deep or ultra"))
            }
        }
    }
}

impl Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Level {
    /// One level up, round after the last; what the model lacks is skipped.
    pub fn up(self, supported: &[Level]) -> Level {
        self.step(supported, 1)
    }

    /// One level down, round after `none`.
    pub fn down(self, supported: &[Level]) -> Level {
        self.step(supported, Level::ALL.len() - 1)
    }

    fn step(self, supported: &[Level], by: usize) -> Level {
        let mut level = self;
        for _ in 0..Level::ALL.len() {
            level = Level::ALL[(level as usize + by) % Level::ALL.len()];
            // Every model can do without.
            if level == Level::None || supported.contains(&level) {
                break;
            }
        }
        level
    }
}
