//! Integration tests: one module a behaviour. The comment over a module says what it is for.

// Helpers of tests may fail a test, too; clippy exempts only the tests themselves.
#![allow(clippy::unwrap_used)]

/// The turn loop: order of events, permissions, cancellation, retries.
mod agent;
/// Definition files of sub-agents, and mistakes in them.
mod agent_files;
/// Sub-agents: launched, watched, limited, cancelled, resumed.
mod agents;
/// Sub-agents on the screen and in the transcript viewer.
mod agents_shown;
/// Permission questions in a real terminal, and the record of every decision.
mod asks;
/// Commands in the background, and how their ends are told.
mod background;
mod background_agents;
/// Bad flags, files, keys and servers: each error names its fix.
mod bad_input;
/// Slash commands: /config, /diff, /todos, /doctor, /feedback.
mod builtins;
/// The prompt cache: what breaks it, and what is said of that.
mod cache;
/// The road of a tool call: read once, decided twice at most, titled for good.
mod calls;
/// The /commit skill in real repositories and over every wire.
mod commit;
/// Compaction in odd conversations, with odd servers, at odd moments.
mod compact_edges;
/// Compaction by summary: the exact requests to the model or a summarizer.
mod compact_full;
/// /compact without a screen.
mod compact_headless;
/// What a compaction keeps and restores, and how it looks after a resume.
mod compact_kept;
/// A process killed in the middle of a compaction.
mod compact_killed;
/// Every setting of compaction, in files and variables.
mod compact_settings;
/// Turning parts of compaction off.
mod compact_switches;
/// When compaction comes, what the model reads after it, a summary that fails, /compact undo.
mod compaction;
/// Settings files and flags: which wins, which are refused, untrusted folders.
mod config;
/// Old tool results archived behind a digest.
mod digest;
/// /model and /config as lists: a key is pasted, settings change at once.
mod doors;
/// The part of a resumed session that is only in the transcript viewer.
mod earlier;
/// Between turns: start, session commands, lists, exit.
mod engine;
/// What people run every day, in the workspace sandbox.
#[cfg(target_os = "linux")]
mod everyday;
/// Words in all sessions: `cocode find` and `/find`.
mod find;
/// Hostile output does not make the program slow or large.
mod floods;
/// A first day: what is given on the command line, and what the last screen says.
mod flows;
/// A full disk costs no file.
mod full_disk;
/// The session on a screen of its own: scrolled, copied from, resized, and what is left of it on the way out.
mod fullscreen;
mod git_hooks;
/// What runs without a person's own yes, and what it must leave alone.
#[cfg(target_os = "linux")]
mod guarded;
/// cocode -p: output formats, exit codes, flags, --json-schema.
mod headless;
/// Hooks: events beside calls and turns, and rules of `.claude/rules`.
mod hook_events;
/// Hooks: where they come from, when they run, what their output does.
mod hooks;
/// Sessions of other agents: `cocode import`.
mod import;
/// A process killed at any byte loses nothing it has shown.
mod kill;
/// Licences and sources of the dependencies.
mod licences;
/// Servers of the Model Context Protocol: found, approved, called, and whatever they do.
mod mcp;
/// `cocode mcp`, and servers by flag.
mod mcp_cli;
/// The same servers behind HTTP.
mod mcp_http;
/// Memory files of nested folders.
mod nested_memory;
/// The proxy of a session: real programs, first contact with a host, what a command may reach.
mod network;
/// Session notes, and compaction from them.
mod notes;
/// The offline model: first questions, small repairs, the examples of the documentation.
mod offline;
/// Options on the read-only list, tried for real against the programs.
#[cfg(target_os = "linux")]
mod option_fuzz;
/// The same for git.
#[cfg(target_os = "linux")]
mod option_fuzz_git;
/// Plan mode against generated shell lines: what it allows changes nothing.
mod permission_fuzz;
/// Plan mode: entering, the plan file, the review, leaving.
mod plan;
/// A model that tries everything to change something in plan mode.
mod plan_enforced;
/// /plan and thinking keywords without a screen.
mod plan_headless;
/// Only the user leaves plan mode.
mod plan_left;
/// What the model reads about plan mode over a long session.
mod plan_reminders;
/// Ways around plan mode: sub-agents, skills, hooks, the plan file's place, a kill.
mod plan_ways;
/// Plan mode over every wire.
mod plan_wires;
/// Plugins in the format of Claude Code: where they are found, what they bring, what of it runs.
mod plugins;
/// No process is left behind, none reads the terminal.
mod processes;
/// Op and Event as JSON: every variant once.
mod protocol;
/// The README's tables are current, and its examples work.
mod readme;
/// Compaction by the provider.
mod remote;
/// Repositories that name programs or places to run or show.
mod repositories;
/// Skills: typed and called, arguments, commands, rules, models.
/// What the sandbox holds, and what must work in it.
#[cfg(target_os = "linux")]
mod sandbox;
/// No shape of process survives the program, however it ends.
#[cfg(target_os = "linux")]
mod sandbox_ends;
/// Under the Claude Agent SDKs: envelope, permissions, hooks, servers, requests.
mod sdk;
mod skills;
/// What a session starts with: model, mode, an earlier session.
mod start;
/// What the tests share: a scripted engine, the binary in a terminal, a provider's server.
mod support;
/// The inline surface of the terminal, through an emulator.
mod surface;
/// The binary in a pseudo-terminal: typing, dialogs, resizes, sessions that are resumed or locked.
mod terminal;
/// Thinking: levels and keywords, down to the bytes on every wire.
mod thinking;
/// The source tree: levels, file lengths, module docs, leftovers, number of dependencies.
mod tidy;
/// Resizes in a real tmux.
mod tmux;
/// Trust in a folder, line by line.
mod trust;
/// Whole turns with tool calls over every wire.
mod turns;
/// What shell commands changed, undone like edits; the horror cases of other agents.
#[cfg(target_os = "linux")]
mod undo_commands;
/// No sentence reads as translated.
mod voice;
/// How far the agent continues by itself, as commands in the background end.
mod waking;
/// Every wire over HTTP, and everything that goes wrong on the way.
mod wires;
