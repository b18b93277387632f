//! One skill: a SKILL.md as it is on disk, or in the binary. Every file that can be read becomes a skill; what is odd
//! about it is told.

mod fields;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use self::fields::Reader;
use super::diagnostic::Diagnostic;
use super::interface::{self, Interface};
use super::plugin::Plugin;
use super::registry::{LoadedFrom, Source};
use crate::stdx::frontmatter::Frontmatter;
use crate::stdx::regular;

/// Most characters of a description.
const DESCRIPTION: usize = 1_024;
/// Most characters of a name before it is worth a word.
const NAME: usize = 64;
/// Above this many characters, a body is cut when it runs.
pub const BODY: usize = 15_000;
/// Most bytes of a file that are read.
const FILE: u64 = 4 << 20;

/// A prompt-type command with its rules. Its body is read when it runs, so that an edit counts at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What is typed after the slash: without blanks, slashes and colons.
    pub name: String,
    pub aliases: Vec<String>,
    /// One line; of the frontmatter, else of the body.
    pub description: String,
    /// The description is in the frontmatter.
    pub has_description: bool,
    pub when_to_use: Option<String>,
    pub user_invocable: bool,
    pub disable_model_invocation: bool,
    pub argument_hint: Option<String>,
    /// The frontmatter says that arguments may follow: `$1` in the text is one of them.
    pub takes_arguments: bool,
    /// Rules as they are written, granted for a run.
    pub allowed_tools: Vec<String>,
    /// Rules that refuse for a run.
    pub disallowed_tools: Vec<String>,
    /// A model or a role; none keeps the session's.
    pub model: Option<String>,
    pub context: RunsIn,
    /// The agent type of a fork.
    pub agent: Option<String>,
    /// Alive while the skill runs; read by the hook engine.
    pub hooks: Option<Map<String, Value>>,
    pub reminders: Reminders,
    pub interface: Option<Interface>,
    pub source: Source,
    pub loaded_from: LoadedFrom,
    /// The plugin that it belongs to.
    pub plugin: Option<Arc<Plugin>>,
    pub text: Text,
    /// Characters of the body.
    pub body_chars: usize,
}

/// Where a run takes place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunsIn {
    #[default]
    Main,
    /// A sub-agent of its own.
    Fork,
}

/// Where the text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    File {
        path: PathBuf,
        /// What relative paths of the skill start from: its own folder, or one inside it.
        base: PathBuf,
    },
    /// Shipped in the binary.
    Bundled(&'static str),
    /// A server gives it when it runs.
    Served,
}

/// What a skill recalls of itself after it was invoked, by how much is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reminders {
    pub sparse: Option<String>,
    pub normal: Option<String>,
    pub detailed: Option<String>,
}

/// How much of themselves skills repeat in reminders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    Sparse,
    #[default]
    Normal,
    Detailed,
}

impl Reminders {
    /// The reminder of a level, else of the next level below that has one.
    pub fn at(&self, verbosity: Verbosity) -> Option<&str> {
        let levels = [&self.detailed, &self.normal, &self.sparse];
        let from = match verbosity {
            Verbosity::Detailed => 0,
            Verbosity::Normal => 1,
            Verbosity::Sparse => 2,
        };
        levels[from..].iter().find_map(|text| text.as_deref())
    }
}

/// What is known of a file before it is read.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    pub path: &'a Path,
    /// Name when the file has none.
    pub folder: &'a str,
    pub source: &'a Source,
    pub loaded_from: LoadedFrom,
    pub plugin: Option<&'a Arc<Plugin>>,
}

impl Skill {
    /// The skill's file; none when it is shipped in the binary.
    pub fn path(&self) -> Option<&Path> {
        match &self.text {
            Text::File { path, .. } => Some(path),
            Text::Bundled(_) | Text::Served => None,
        }
    }

    /// What relative paths of the skill start from.
    pub fn base(&self) -> Option<&Path> {
        match &self.text {
            Text::File { base, .. } => Some(base),
            Text::Bundled(_) | Text::Served => None,
        }
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        match (&self.text, &self.source) {
            (Text::File { path, .. }, _) => path.display().to_string(),
            (Text::Served, Source::Mcp { server }) => format!("of the MCP server {server}"),
            _ => "in the program".to_owned(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read; nothing of it can be used.
    pub fn load(at: At<'_>, problems: &mut Vec<Diagnostic>) -> Result<Skill, Diagnostic> {
        let text = read(at.path, problems)?;
        let base = at.path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut skill = Skill::parse(&text, at, Text::File { path: at.path.to_owned(), base }, problems);
        skill.interface = at.path.parent().and_then(|folder| interface::read(folder, problems));
        Ok(skill)
    }

    /// Reads a skill of the binary.
    pub fn bundled(name: &'static str, text: &'static str) -> Skill {
        let (source, loaded_from) = (&Source::Bundled, LoadedFrom::Bundled);
        let at = At { path: Path::new(name), folder: name, source, loaded_from, plugin: None };
        Skill::parse(text, at, Text::Bundled(text), &mut Vec::new())
    }

    /// A prompt of a server, which only the user runs.
    pub fn served(name: &str, description: &str, hint: Option<String>, server: &str) -> Skill {
        let (source, loaded_from) = (&Source::Mcp { server: server.to_owned() }, LoadedFrom::Mcp);
        let at = At { path: Path::new(name), folder: name, source, loaded_from, plugin: None };
        let skill = Skill::parse("---\nuser_invocable: true\n---\n", at, Text::Served, &mut Vec::new());
        let description: String = description.split_whitespace().collect::<Vec<_>>().join(" ");
        Skill {
            name: name.to_owned(),
            has_description: !description.is_empty(),
            description: description.chars().take(DESCRIPTION).collect(),
            takes_arguments: hint.is_some(),
            argument_hint: hint,
            disable_model_invocation: true,
            ..skill
        }
    }

    /// The body as it is now; empty where a server has it.
    ///
    /// # Errors
    /// The file is gone or cannot be read.
    pub fn body(&self) -> Result<Arc<str>, Diagnostic> {
        match &self.text {
            Text::File { path, .. } => {
                let text = read(path, &mut Vec::new())?;
                Ok(text[Frontmatter::read(&text).body].into())
            }
            Text::Bundled(text) => Ok(text[Frontmatter::read(text).body].into()),
            Text::Served => Ok("".into()),
        }
    }

    fn parse(text: &str, at: At<'_>, place: Text, problems: &mut Vec<Diagnostic>) -> Skill {
        let head = Frontmatter::read(text);
        let body = &text[head.body.clone()];
        let mut reader = Reader { head: &head, file: at.path, problems };
        reader.faults();
        let name = reader.name(at.folder);
        let given = reader.text("description").filter(|text| !text.is_empty());
        let has_description = given.is_some();
        let description = reader.description(given, body, &name);
        if body.trim().is_empty() {
            let words = ["the body is empty", "running it does nothing", "write instructions"];
            reader.problems.push(Diagnostic::error(at.path, None, words));
        }
        let body_chars = body.chars().count();
        if body_chars > BODY {
            let what = format!("the body has {body_chars} characters");
            let effect = format!("everything after the first {BODY} is cut when it runs");
            let words = [what.as_str(), effect.as_str(), "move details into other files in the folder"];
            reader.problems.push(Diagnostic::warning(at.path, None, words));
        }
        let context = reader.context();
        let text = match place {
            Text::File { path, base } => Text::File { base: reader.base_dir(&base).unwrap_or(base), path },
            other => other,
        };
        Skill {
            aliases: reader.aliases(&name),
            name,
            description,
            has_description,
            when_to_use: reader.text("when_to_use").filter(|text| !text.is_empty()),
            user_invocable: reader.flag("user_invocable", true),
            disable_model_invocation: reader.flag("disable_model_invocation", false),
            argument_hint: reader.hint(),
            takes_arguments: reader.takes_arguments(),
            allowed_tools: reader.tools("allowed_tools"),
            disallowed_tools: reader.tools("disallowed_tools"),
            model: reader.text("model").filter(|model| !matches!(model.as_str(), "" | "inherit" | "default")),
            context,
            agent: reader.agent(context),
            hooks: reader.hooks(),
            reminders: Reminders {
                sparse: reader.block("sparse_reminder"),
                normal: reader.block("normal_reminder"),
                detailed: reader.block("detailed_reminder"),
            },
            interface: None,
            source: at.source.clone(),
            loaded_from: at.loaded_from,
            plugin: at.plugin.cloned(),
            text,
            body_chars,
        }
    }
}

/// Reads a regular file; a pipe or device would be waited for forever.
fn read(path: &Path, problems: &mut Vec<Diagnostic>) -> Result<String, Diagnostic> {
    let failed = |what: String| {
        Diagnostic::error(
            path,
            None,
            [what.as_str(), "the skill is not loaded", "make it a readable text file, or remove it"],
        )
    };
    let mut bytes = regular::read(path, FILE + 1).map_err(|error| failed(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE {
        bytes.pop();
        let words = ["is larger than 4 MiB", "the rest is not read", "move details into other files"];
        problems.push(Diagnostic::error(path, None, words));
    }
    if let Some(text) = utf16(&bytes) {
        let words = ["is UTF-16", "cocode reads it anyway; other tools may not", "save the file as UTF-8"];
        problems.push(Diagnostic::warning(path, None, words));
        return Ok(text);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.as_bytes();
            let line = bytes[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            let words = ["is not UTF-8", "invalid characters appear as `\u{fffd}`", "save the file as UTF-8"];
            problems.push(Diagnostic::warning(path, Some(line), words));
            String::from_utf8_lossy(bytes).into_owned()
        }
    })
}

/// The text of a file that says to be UTF-16, as editors and shells of Windows write it.
fn utf16(bytes: &[u8]) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests;
