//! `cocode mcp`: which servers there are, and which there should be.

use std::io::{self, Write};

use clap::{Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::Here;
use crate::config::{self, servers};
use crate::engine::mcp::probe;
use crate::mcp::Scope;
use crate::protocol::report::{ServerRow, ServerState};
use crate::report;
use crate::stdx::ansi::visible;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum McpCommand {
    /// List servers, and try each that may run
    List,
    /// Show one server in detail
    Get { name: String },
    /// Check servers, and say what is wrong and how to fix it
    Doctor { name: Option<String> },
    /// Add a server: a URL, or a command behind `--`
    Add {
        /// How it is reached
        #[arg(short, long, value_enum, default_value_t)]
        transport: Transport,
        /// Whose it is: yours in this folder, the project's, or yours everywhere
        #[arg(short, long, value_enum, default_value_t)]
        scope: Place,
        /// A variable of the command: NAME=VALUE
        #[arg(short, long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// A header of each request: "Name: value"
        #[arg(short = 'H', long, value_name = "HEADER")]
        header: Vec<String>,
        name: String,
        /// The URL; or a command with its arguments, behind `--` where one of them begins with a dash
        #[arg(required = true, num_args = 1.., value_name = "URL|COMMAND")]
        target: Vec<String>,
    },
    /// Add a server as JSON, as in .mcp.json
    AddJson {
        #[arg(short, long, value_enum, default_value_t)]
        scope: Place,
        name: String,
        json: String,
    },
    /// Remove a server
    Remove {
        /// Where to look; default: wherever it is
        #[arg(short, long, value_enum)]
        scope: Option<Place>,
        name: String,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    #[default]
    Stdio,
    Http,
    Sse,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Place {
    #[default]
    Local,
    Project,
    User,
}

impl Place {
    const ALL: [Place; 3] = [Place::Local, Place::Project, Place::User];

    fn scope(self) -> Scope {
        match self {
            Place::Local => Scope::Local,
            Place::Project => Scope::Project,
            Place::User => Scope::User,
        }
    }
}

/// Runs a subcommand; returns the exit code: 0, 1 when a server failed or is not known, 2 for mistakes in what was
/// typed or configured.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub(super) fn run(command: &McpCommand, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let done = match command {
        McpCommand::List => return list(here, None, Words::Lines, out, err),
        McpCommand::Get { name } => return list(here, Some(name), Words::Blocks, out, err),
        McpCommand::Doctor { name } => return list(here, name.as_deref(), Words::Checked, out, err),
        McpCommand::Add { transport, scope, env, header, name, target } => {
            entry(*transport, (env, header), target).and_then(|entry| add(here, *scope, name, &entry))
        }
        McpCommand::AddJson { scope, name, json } => match serde_json::from_str::<Value>(json) {
            Ok(entry) => add(here, *scope, name, &entry),
            Err(error) => Err(format!("not valid JSON: {error}")),
        },
        McpCommand::Remove { scope, name } => return remove(here, *scope, name, out, err),
    };
    match done {
        Ok(text) => writeln!(out, "{text}").map(|()| 0),
        Err(problem) => writeln!(err, "error: {problem}").map(|()| 2),
    }
}

fn entry(transport: Transport, (env, headers): (&[String], &[String]), target: &[String]) -> Result<Value, String> {
    let pairs = |given: &[String], between: char, what: &str| {
        let pair = |text: &String| match text.split_once(between) {
            Some((name, value)) => Ok((name.trim().to_owned(), Value::from(value.trim()))),
            None => Err(format!("`{text}` is not {what}")),
        };
        given.iter().map(pair).collect::<Result<Map<String, Value>, String>>()
    };
    let (env, headers) = (pairs(env, '=', "NAME=VALUE")?, pairs(headers, ':', "a header like \"Name: value\"")?);
    let Some((first, rest)) = target.split_first() else { return Err("name a URL or a command".to_owned()) };
    let kind = match transport {
        Transport::Stdio => {
            if first.starts_with("http://") || first.starts_with("https://") {
                return Err(format!("{first} is a URL: add `--transport http`, or `--transport sse`"));
            }
            if !headers.is_empty() {
                return Err("a command has no headers: leave out `--header`".to_owned());
            }
            let mut entry = json!({"type": "stdio", "command": first, "args": rest});
            if !env.is_empty() {
                entry["env"] = Value::Object(env);
            }
            return Ok(entry);
        }
        Transport::Http => "http",
        Transport::Sse => "sse",
    };
    if !rest.is_empty() {
        return Err(format!("`{}` behind the URL: a server behind a URL takes no arguments", rest.join(" ")));
    }
    if !env.is_empty() {
        return Err("a server behind a URL has no variables: leave out `--env`".to_owned());
    }
    let mut entry = json!({"type": kind, "url": first});
    if !headers.is_empty() {
        entry["headers"] = Value::Object(headers);
    }
    Ok(entry)
}

fn add(here: Here<'_>, place: Place, name: &str, entry: &Value) -> Result<String, String> {
    let file = servers::add((here.paths, here.env), here.cwd, place.scope(), (name, entry))?;
    Ok(format!("added {name} to {}", here.paths.tilde(&file.display().to_string())))
}

fn remove(
    here: Here<'_>,
    place: Option<Place>,
    name: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let places = place.map_or(Place::ALL.to_vec(), |place| vec![place]);
    for place in places {
        match servers::remove(here.paths, here.cwd, place.scope(), name) {
            Ok(Some(file)) => {
                let file = here.paths.tilde(&file.display().to_string());
                return writeln!(out, "removed {name} from {file}").map(|()| 0);
            }
            Ok(None) => {}
            Err(problem) => return writeln!(err, "error: {problem}").map(|()| 2),
        }
    }
    writeln!(err, "error: unknown server `{name}`: `cocode mcp list` shows all").map(|()| 1)
}

/// How servers are told of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Lines,
    Blocks,
    Checked,
}

fn list(here: Here<'_>, name: Option<&str>, words: Words, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let own = match config::load(here.paths, here.env, toml::Table::new()) {
        Ok(own) => own,
        Err(broken) => return writeln!(err, "error: {broken}").map(|()| 2),
    };
    let mut loaded = own.with_project(here.cwd, &config::trust::of(here.paths, here.cwd));
    let problems = loaded.diagnostics.iter().filter(|problem| problem.message.contains("MCP server"));
    let problems: Vec<String> = problems.map(|problem| here.paths.tilde(&problem.to_string())).collect();
    let checked = words == Words::Checked;
    for problem in &problems {
        match checked {
            true => writeln!(out, "warn  {}", visible(problem))?,
            false => writeln!(err, "{problem}")?,
        }
    }
    if let Some(name) = name {
        loaded.servers.wanted.retain(|definition| definition.name == name);
        loaded.servers.off.retain(|(definition, _)| definition.name == name);
        if loaded.servers.is_empty() {
            return writeln!(err, "error: unknown server `{name}`: `cocode mcp list` shows all").map(|()| 1);
        }
    }
    let mut rows = probe(here, &loaded)?;
    for row in &mut rows {
        row.place = here.paths.tilde(&row.place);
    }
    match words {
        _ if rows.is_empty() => writeln!(out, "{}", report::servers::words(&rows))?,
        Words::Blocks => writeln!(out, "{}", report::servers::words(&rows))?,
        Words::Checked => write!(out, "{}", report::servers::checked(&rows))?,
        Words::Lines => rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))?,
    }
    Ok(u8::from(rows.iter().any(|row| matches!(row.state, ServerState::Failed | ServerState::NeedsAuth))))
}

/// One server in one line.
fn line(row: &ServerRow) -> String {
    let about = match (row.state, &row.error) {
        (ServerState::Connected, _) => format!("connected, {} tools", row.tools),
        (_, Some(error)) => visible(error),
        (_, None) => "not connected".to_owned(),
    };
    let mark = match row.state {
        ServerState::Connected => "ok",
        ServerState::Failed | ServerState::NeedsAuth => "FAIL",
        ServerState::Pending | ServerState::Disabled => "off",
    };
    format!("{mark:<4}  {}: {} ({}): {about}", row.name, visible(&row.line), row.scope)
}
