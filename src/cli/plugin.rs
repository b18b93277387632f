//! `cocode plugin`: lists, shows, checks and switches plugins, with the code that loads them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Map, Value};

use super::Here;
use crate::commands::{Diagnostic, Severity};
use crate::config::{self, Loaded, edit, trust};
use crate::engine;
use crate::plugins::store::{self, Kept};
use crate::plugins::{self, From, Installed, Plugin, Row, Standing, git};
use crate::report::plugins as words;
use crate::stdx::ansi::visible;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum PluginCommand {
    /// List all plugins: whether they are on, and what is wrong with them
    List {
        /// Print a JSON array instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show what a plugin has and what of it runs
    Details {
        /// Its id or name
        name: String,
    },
    /// Check a plugin; exits with 1 if something does not work
    Validate {
        /// Fail for warnings as well
        #[arg(long)]
        strict: bool,
        /// The folder of a plugin; default: this one
        path: Option<PathBuf>,
    },
    /// Install a plugin: from a folder, or with git from a URL
    Install {
        /// A folder, or the URL of a git repository
        source: String,
        /// A branch or tag of the repository
        #[arg(long = "ref", value_name = "REF")]
        reference: Option<String>,
        /// The commit that it has to be, with all 40 digits
        #[arg(long)]
        sha: Option<String>,
    },
    /// Uninstall a plugin that was installed here, with what it keeps
    Uninstall {
        /// Its id or name
        name: String,
        /// Leave what it keeps where it is
        #[arg(long)]
        keep_data: bool,
    },
    /// Install a plugin again from where it came, or all of them
    Update {
        /// Its id or name
        name: Option<String>,
    },
    /// Remove the versions that no plugin uses any more
    Prune,
    /// Switch a plugin on
    Enable {
        /// Its id or name
        name: String,
    },
    /// Let a plugin run what it lists: hooks, commands and servers
    Trust {
        /// Its id or name
        name: String,
    },
    /// Switch a plugin off
    Disable {
        /// Its id or name
        name: String,
    },
}

/// Runs a subcommand; returns the exit code: 0, 1 for findings and failures, 2 for mistakes in what was typed.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub(super) fn run(command: &PluginCommand, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    if let PluginCommand::Validate { strict, path } = command {
        let folder = path.as_ref().map_or_else(|| here.cwd.to_owned(), |path| here.cwd.join(path));
        return validate(&folder, *strict, here, out, err);
    }
    let loaded = match config::load(here.paths, here.env, toml::Table::new()) {
        Ok(own) => own.with_project(here.cwd, &trust::of(here.paths, here.cwd)),
        Err(broken) => return writeln!(err, "error: {broken}").map(|()| 2),
    };
    match command {
        PluginCommand::List { json } => list(&loaded, *json, out),
        PluginCommand::Details { name } => match loaded.plugins.named(name) {
            Some(plugin) => {
                // What one has that is off is looked up for this alone.
                let looked = plugins::read_one(&plugin.root, &here.paths.home);
                let looked = looked.map_or_else(|_| plugin.row(), |looked| looked.row());
                let row = Row { skills: looked.skills, runs: looked.runs, ..plugin.row() };
                out.write_all(words::details(&row).as_bytes()).map(|()| 0)
            }
            None => unknown(name, &loaded, err),
        },
        PluginCommand::Enable { name } => switch(name, true, &loaded, here, out, err),
        PluginCommand::Trust { name } => match loaded.plugins.named(name) {
            Some(plugin) => agree(plugin, here, out, err),
            None => unknown(name, &loaded, err),
        },
        PluginCommand::Disable { name } => switch(name, false, &loaded, here, out, err),
        PluginCommand::Install { source, reference, sha } => {
            let (reference, sha) = (reference.as_deref(), sha.as_deref());
            let source = installed_from(source, reference, sha, here);
            said(source.and_then(|source| install(&source, &loaded, here)), out, err)
        }
        PluginCommand::Uninstall { name, keep_data } => match loaded.plugins.named(name) {
            Some(plugin) if plugin.from == From::ClaudeCode => {
                let text = "Claude Code installed it: uninstall it there, or `cocode plugin disable` it";
                writeln!(err, "error: {}: {text}", plugin.id).map(|()| 1)
            }
            Some(plugin) => {
                let kept = if *keep_data { Kept::Data } else { Kept::Nothing };
                let gone = store::uninstall(&here.paths.home, &plugin.id, kept);
                said(gone.map(|()| format!("{} is uninstalled\n", plugin.id)), out, err)
            }
            // Its files may be gone, and only the list knows it.
            None => match Installed::read(&here.paths.home).map(|installed| installed.id_of(name)) {
                Ok(Some(id)) => {
                    let kept = if *keep_data { Kept::Data } else { Kept::Nothing };
                    let gone = store::uninstall(&here.paths.home, &id, kept);
                    said(gone.map(|()| format!("{id} is uninstalled\n")), out, err)
                }
                _ => unknown(name, &loaded, err),
            },
        },
        PluginCommand::Update { name } => update(name.as_deref(), &loaded, here, out, err),
        PluginCommand::Prune => {
            let gone = store::prune(&here.paths.home);
            let line = |folder: &PathBuf| format!("removed {}\n", folder.display());
            said(gone.map(|gone| gone.iter().map(line).collect()), out, err)
        }
        PluginCommand::Validate { .. } => Ok(0),
    }
}

/// Prints what was done, or why not.
fn said(done: Result<String, String>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match done {
        Ok(text) => out.write_all(visible(&text).as_bytes()).map(|()| 0),
        Err(text) => writeln!(err, "error: {text}").map(|()| 1),
    }
}

/// Where a plugin comes from, as it is remembered: in the words of marketplaces.
fn installed_from(
    source: &str,
    reference: Option<&str>,
    sha: Option<&str>,
    here: Here<'_>,
) -> Result<Map<String, Value>, String> {
    let folder = here.cwd.join(source);
    let pairs = if folder.is_dir() && reference.is_none() && sha.is_none() {
        let folder = folder.canonicalize().map_err(|error| format!("{source}: {error}"))?;
        vec![("source", Some("directory".to_owned())), ("path", Some(folder.to_string_lossy().into_owned()))]
    } else if folder.is_dir() || source.contains("://") || source.starts_with("git@") {
        let url = if folder.is_dir() { folder.to_string_lossy().into_owned() } else { source.to_owned() };
        let (reference, sha) = (reference.map(str::to_owned), sha.map(str::to_owned));
        vec![("source", Some("url".to_owned())), ("url", Some(url)), ("ref", reference), ("sha", sha)]
    } else {
        let marketplace = "cocode does not read marketplaces yet: name a folder, or the URL of a git repository";
        let nothing = "neither a folder nor the URL of a git repository";
        return Err(format!("{source}: {}", if source.contains('@') { marketplace } else { nothing }));
    };
    Ok(pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?)))).collect())
}

/// Installs a plugin, and says what of it will run.
fn install(source: &Map<String, Value>, loaded: &Loaded, here: Here<'_>) -> Result<String, String> {
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    let (home, kept) = (&here.paths.home, Value::Object(source.clone()));
    let done = match (text("path"), text("url")) {
        (Some(folder), _) => store::install(home, Path::new(folder), kept, None)?,
        (None, Some(url)) => {
            let from = git::Repository { url, reference: text("ref"), sha: text("sha") };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("cannot start the async runtime: {error}"))?;
            let fetched = runtime.block_on(git::fetch(from, &loaded.config.secret_env()))?;
            store::install(home, fetched.folder.path(), kept, Some(&fetched.commit))?
        }
        (None, None) => return Err("nobody knows where it came from: install it again".into()),
    };
    let mut told = match &done.before {
        Some(before) if *before == done.version => format!("{} {} is installed again\n", done.id, done.version),
        Some(before) => format!("{} {before} is now {}\n", done.id, done.version),
        None => format!("{} {} is installed\n", done.id, done.version),
    };
    for skipped in &done.skipped {
        told += &format!("not copied: {skipped}\n");
    }
    let now = config::load(here.paths, here.env, toml::Table::new()).map_err(|broken| broken.to_string())?;
    let now = now.with_project(here.cwd, &trust::of(here.paths, here.cwd));
    if let Some(plugin) = now.plugins.named(&done.id) {
        told += &waits(plugin);
    }
    Ok(told)
}

/// Agrees to what a plugin lists, for who cannot be asked.
fn agree(plugin: &Plugin, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let (id, uses) = (&plugin.id, &plugin.uses);
    if plugin.of_project() {
        return writeln!(err, "error: {id} comes with the project: start with --trust to trust the folder").map(|()| 1);
    }
    if uses.is_empty() {
        let why = if plugin.standing == Standing::On { "needs no trust" } else { "is not on" };
        return writeln!(out, "{id} {why}").map(|()| 0);
    }
    if let Err(error) = trust::remember_plugin(here.paths, id, uses) {
        return writeln!(err, "error: {error}").map(|()| 1);
    }
    let lines: String = uses.iter().map(|used| format!("- {}\n", used.line)).collect();
    out.write_all(visible(&format!("{id} may run this from now on:\n{lines}")).as_bytes()).map(|()| 0)
}

/// What the next session asks about.
fn waits(plugin: &Plugin) -> String {
    if plugin.trusted || plugin.uses.is_empty() {
        return String::new();
    }
    let lines = plugin.uses.iter().map(|used| format!("- {}\n", used.line));
    format!("the next session asks whether this may run:\n{}", lines.collect::<String>())
}

fn update(
    name: Option<&str>,
    loaded: &Loaded,
    here: Here<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let installed = match Installed::read(&here.paths.home) {
        Ok(installed) => installed,
        Err(why) => return writeln!(err, "error: {why}").map(|()| 1),
    };
    let id = match name.map(|name| loaded.plugins.named(name).ok_or(name)) {
        Some(Err(name)) => return unknown(name, loaded, err),
        Some(Ok(plugin)) if !installed.plugins.contains_key(&plugin.id) => {
            return writeln!(err, "error: {} was not installed by cocode", plugin.id).map(|()| 1);
        }
        Some(Ok(plugin)) => Some(plugin.id.clone()),
        None => None,
    };
    let mut code = 0;
    for (_, record) in installed.plugins.iter().filter(|(other, _)| id.as_ref().is_none_or(|id| id == *other)) {
        let source = record.source.as_object().cloned().unwrap_or_default();
        code = code.max(said(install(&source, loaded, here), out, err)?);
    }
    Ok(code)
}

fn list(loaded: &Loaded, json: bool, out: &mut dyn Write) -> io::Result<u8> {
    let rows: Vec<Row> = loaded.plugins.all.iter().map(Plugin::row).collect();
    if json {
        let text = serde_json::to_string_pretty(&rows).map_err(io::Error::from)?;
        return writeln!(out, "{text}").map(|()| 0);
    }
    out.write_all(words::list(&rows).as_bytes())?;
    if rows.is_empty() {
        writeln!(out, "no plugins: `cocode plugin install <folder>` adds one")?;
    }
    for fault in &loaded.plugins.faults {
        writeln!(out, "{fault}")?;
    }
    Ok(0)
}

fn unknown(name: &str, loaded: &Loaded, err: &mut dyn Write) -> io::Result<u8> {
    let ids: Vec<&str> = loaded.plugins.all.iter().map(|plugin| plugin.id.as_str()).collect();
    let known = if ids.is_empty() { "none was found".to_owned() } else { format!("there are {}", ids.join(", ")) };
    writeln!(err, "error: no plugin {name:?}: {known}").map(|()| 2)
}

/// Switches a plugin in the user's own settings.
fn switch(
    name: &str,
    on: bool,
    loaded: &Loaded,
    here: Here<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let Some(plugin) = loaded.plugins.named(name) else { return unknown(name, loaded, err) };
    let target = edit::Target::user(here.paths);
    let path = ["plugins", "enabled", &plugin.id];
    if let Err(problem) = edit::change_at(&target, &path, Some(if on { "true" } else { "false" })) {
        return writeln!(err, "error: {problem}").map(|()| 1);
    }
    let now = config::load(here.paths, here.env, toml::Table::new()).map_err(|broken| broken.to_string());
    let now = now.map(|own| own.with_project(here.cwd, &trust::of(here.paths, here.cwd)));
    let holds = now.as_ref().ok().and_then(|now| now.config.plugins.enabled.get(&plugin.id)) == Some(&on);
    let word = if on { "on" } else { "off" };
    if !holds {
        let text = format!("{} is switched elsewhere: {} does not decide here", plugin.id, target.file.display());
        return writeln!(err, "error: {text}").map(|()| 1);
    }
    writeln!(out, "{} is {word}", plugin.id)?;
    let waiting = now.ok().and_then(|now| now.plugins.named(&plugin.id).map(waits));
    out.write_all(visible(&waiting.filter(|_| on).unwrap_or_default()).as_bytes())?;
    Ok(0)
}

fn validate(folder: &Path, strict: bool, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    // The folder may be named by its manifest.
    let manifest = folder.is_file().then(|| folder.parent().and_then(Path::parent)).flatten();
    let folder = manifest.unwrap_or(folder);
    let plugin = match plugins::read_one(folder, &here.paths.home) {
        Ok(plugin) => plugin,
        Err(error) => return writeln!(err, "error: {}: {error}", folder.display()).map(|()| 2),
    };
    let mut faults = plugin.faults.clone();
    faults.extend(engine::plugin_faults(&plugin));
    for fault in &faults {
        writeln!(out, "{fault}")?;
    }
    for what in plugin.not_used() {
        writeln!(out, "note: {}", visible(&what))?;
    }
    let count = |severity| faults.iter().filter(|fault: &&Diagnostic| fault.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let name = &plugin.manifest.name;
    writeln!(out, "{}: {}, {}", visible(name), plural(errors, "error"), plural(warnings, "warning"))?;
    Ok(u8::from(errors > 0 || strict && warnings > 0))
}
