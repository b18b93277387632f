//! Integration tests.

// Helpers of tests may fail a test, too; clippy exempts only the tests themselves.
#![allow(clippy::unwrap_used)]

mod agent;
mod agent_files;
mod agents;
mod agents_shown;
mod asks;
mod bad_input;
mod builtins;
mod commit;
mod compact_edges;
mod compact_full;
mod compact_headless;
mod compact_kept;
mod compact_killed;
mod compact_settings;
mod compact_switches;
mod compaction;
mod config;
mod digest;
mod earlier;
mod engine;
mod floods;
mod full_disk;
mod headless;
mod hooks;
mod kill;
mod licences;
mod nested_memory;
mod notes;
#[cfg(target_os = "linux")]
mod option_fuzz;
#[cfg(target_os = "linux")]
mod option_fuzz_git;
mod permission_fuzz;
mod plan;
mod plan_enforced;
mod plan_headless;
mod plan_left;
mod plan_reminders;
mod plan_ways;
mod plan_wires;
mod processes;
mod protocol;
mod readme;
mod remote;
mod repositories;
mod skills;
mod start;

mod support;
mod surface;
mod terminal;
mod thinking;
mod tidy;
mod tmux;
mod trust;
mod turns;
mod voice;
mod wires;
