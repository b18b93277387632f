//! The three levels, their names, and the toggle of a session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How hard the model thinks. The order is that of the effort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    #[default]
    None,
    DeepThink,
    UltraThink,
}

impl Level {
    /// Weakest first.
    pub const ALL: [Level; 3] = [Level::None, Level::DeepThink, Level::UltraThink];

    /// Every way to write a level, for schemas.
    pub const NAMES: [&str; 7] = ["none", "deep_think", "deep", "deepthink", "ultra_think", "ultra", "ultrathink"];

    /// As settings and logs name it.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::DeepThink => "deep_think",
            Level::UltraThink => "ultra_think",
        }
    }

    /// As front ends show it.
    pub fn label(self) -> &'static str {
        match self {
            Level::None => "no thinking",
            Level::DeepThink => "deep think",
            Level::UltraThink => "ultra think",
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
            "none" => Ok(Level::None),
            "deep" | "deep_think" | "deepthink" => Ok(Level::DeepThink),
            "ultra" | "ultra_think" | "ultrathink" => Ok(Level::UltraThink),
            _ => Err(format!("no thinking level {text:?}: choose none, deep_think or ultra_think")),
        }
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The choice that a session remembers. Unset until first used; from then on `none` is a choice, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Toggle {
    level: Option<Level>,
}

impl Toggle {
    pub fn new(level: Option<Level>) -> Toggle {
        Toggle { level }
    }

    /// What it answers in the chain.
    pub fn level(self) -> Option<Level> {
        self.level
    }

    /// Chooses a level; none unsets it.
    pub fn set_level(&mut self, level: Option<Level>) {
        self.level = level;
    }

    /// Goes one level up, round after the last. `effective` is where an unset toggle starts; what the model lacks is
    /// skipped.
    pub fn toggle_next(&mut self, effective: Level, supported: &[Level]) -> Level {
        self.step(effective, supported, 1)
    }

    /// Goes one level down, round after `none`.
    pub fn toggle_prev(&mut self, effective: Level, supported: &[Level]) -> Level {
        self.step(effective, supported, Level::ALL.len() - 1)
    }

    fn step(&mut self, effective: Level, supported: &[Level], by: usize) -> Level {
        let mut level = self.level.unwrap_or(effective);
        for _ in 0..Level::ALL.len() {
            level = Level::ALL[(level as usize + by) % Level::ALL.len()];
            // Every model can do without.
            if level == Level::None || supported.contains(&level) {
                break;
            }
        }
        self.level = Some(level);
        level
    }
}
