//! The subcommands that need no engine: `config`, `doctor`, `skills`, `mcp`, `plugin`, `find`, `import`, `completions`.

use std::io::{self, Write};

use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;

use super::find::{self, Find};
use super::import::{self, Import};
use super::mcp::{self, McpCommand};
use super::plugin::{self, PluginCommand};
use super::skills::{self, SkillsCommand};
use super::{Cli, Here};
use crate::config::{self, Loaded, docs, edit, trust};
use crate::engine::doctor;
use crate::protocol::report::State;
use crate::report;

#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Own {
    /// Show and change settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check the installation
    Doctor {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// List, check and create skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List, check, install and switch plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Search all sessions
    Find(Find),
    /// Import sessions of Claude Code, Codex, opencode and pi
    Import(Import),
    /// List, add and remove MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Print a completion script
    Completions { shell: Shell },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print where your configuration file is
    Path,
    /// Print the value of a key, as TOML
    Get { key: String },
    /// Change a key in your configuration file
    Set { key: String, value: String },
    /// Show where a value comes from
    Explain { key: String },
    /// Print the JSON Schema of a configuration file
    Schema,
}

/// Runs a subcommand; returns the exit code: 0, 1 for findings and failures, 2 for mistakes in what was typed or configured.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub fn run(command: &Own, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match command {
        Own::Config(command) => match config_command(command, here) {
            Ok(text) => out.write_all(text.as_bytes()).map(|()| 0),
            Err(message) => writeln!(err, "error: {message}").map(|()| 2),
        },
        Own::Doctor { json } => {
            let findings = doctor::examine(here, &doctor::confinement(here));
            if *json {
                writeln!(out, "{}", doctor::to_json(&findings))?;
            } else {
                out.write_all(report::doctor(&findings).as_bytes())?;
            }
            Ok(u8::from(findings.iter().any(|finding| finding.state == State::Bad)))
        }
        Own::Find(find) => find::run(find, here, out, err),
        Own::Mcp(command) => mcp::run(command, here, out, err),
        Own::Import(import) => import::run(import, here, out, err),
        Own::Skills(command) => skills::run(command, here, out, err),
        Own::Plugin(command) => plugin::run(command, here, out, err),
        Own::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "cocode", &mut script);
            out.write_all(&script).map(|()| 0)
        }
    }
}

fn config_command(command: &ConfigCommand, here: Here<'_>) -> Result<String, String> {
    match command {
        ConfigCommand::Path => Ok(format!("{}\n", here.paths.user_config().display())),
        ConfigCommand::Get { key } => match load(here)?.get(key)? {
            Some(toml::Value::Table(table)) => Ok(table.to_string()),
            Some(value) => Ok(format!("{value}\n")),
            None => Ok(String::new()),
        },
        ConfigCommand::Set { key, value } => {
            let file = {
                let target = edit::Target::user(here.paths);
                edit::change(&target, key, Some(value)).map_err(|problem| problem.to_string())?;
                target.file
            };
            // Say now if something overrides the file.
            let explained = load(here).and_then(|loaded| loaded.explain(key))?;
            Ok(format!("wrote {}\n{}", file.display(), report::explained(&explained)))
        }
        ConfigCommand::Explain { key } => explained(&load(here)?, key),
        ConfigCommand::Schema => {
            serde_json::to_string_pretty(&docs::schema()).map(|text| text + "\n").map_err(|error| error.to_string())
        }
    }
}

/// A setting of ours, or a key of Claude Code's with what becomes of it.
fn explained(loaded: &Loaded, key: &str) -> Result<String, String> {
    loaded.explain(key).map(|settings| report::explained(&settings)).or_else(|unknown| {
        let (text, settings) =
            loaded.explain_foreign(key).map_err(|near| if near.contains("did you mean") { near } else { unknown })?;
        Ok(format!("{text}\n{}", report::explained(&settings)))
    })
}

fn load(here: Here<'_>) -> Result<Loaded, String> {
    let own = config::load(here.paths, here.env, toml::Table::new()).map_err(|broken| broken.to_string())?;
    let loaded = own.with_project(here.cwd, &trust::of(here.paths, here.cwd));
    if loaded.project_broken() { Err(config::Broken(loaded.diagnostics).to_string()) } else { Ok(loaded) }
}
