//! The shipped settings, and what tests build conversations from.

use super::Settings;

/// The shipped settings.
pub(super) fn settings() -> Settings {
    let defaults: toml::Table = include_str!("../../config/default.toml").parse().unwrap();
    defaults["compact"].clone().try_into().unwrap()
}
