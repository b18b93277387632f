//! The list of commands: looking them up, reading a typed line, the text of `/help`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Completion;
use super::complete::complete;
use super::interface::Interface;
use super::skill::Skill;
use crate::stdx::nearest::nearest;

/// What running a command means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Runs here; its result is text.
    Local,
    /// Becomes a user message.
    Prompt,
    /// Opens a dialog. With arguments, or without a screen, it answers with text.
    Ui,
}

/// Who provides a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Builtin,
    /// Shipped with the program.
    Bundled,
    /// `/etc/cocode`: the administrator.
    PolicySettings,
    UserSettings,
    /// In the repository: what it wants to run needs trust.
    ProjectSettings,
    Plugin {
        id: String,
    },
    Mcp {
        server: String,
    },
}

impl Source {
    /// What stands before the colon in `/user:name`, and behind a command in lists.
    pub fn tag(&self) -> &str {
        match self {
            Source::Builtin => "built-in",
            Source::Bundled => "bundled",
            Source::PolicySettings => "managed",
            Source::UserSettings => "user",
            Source::ProjectSettings => "project",
            Source::Plugin { id } => id,
            Source::Mcp { server } => server,
        }
    }
}

/// What a command was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadedFrom {
    Builtin,
    /// A folder of skills.
    Skills,
    Plugin,
    Bundled,
    /// `.claude/commands`, loaded on request.
    CommandsDeprecated,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Without the slash.
    pub name: String,
    pub aliases: Vec<String>,
    /// `project:name`: means this one, whatever else has the name. None for built-ins.
    pub qualified: Option<String>,
    /// One line.
    pub description: String,
    /// The author wrote the description; else it was taken from the text.
    pub has_description: bool,
    /// For the model: when to use it.
    pub when_to_use: Option<String>,
    /// What may follow the name, such as `[id]`.
    pub argument_hint: Option<String>,
    pub kind: Kind,
    pub source: Source,
    pub loaded_from: LoadedFrom,
    /// False: as if it were not there.
    pub enabled: bool,
    /// Works when typed, but is neither completed nor listed.
    pub hidden: bool,
    /// False: it is refused when typed.
    pub user_invocable: bool,
    /// False: the model may not call it.
    pub for_model: bool,
    /// Works without a screen (`cocode -p "/cost"`).
    pub headless: bool,
    /// Works while a turn runs. A prompt waits for the turn's end by itself.
    pub while_busy: bool,
    pub interface: Option<Interface>,
    /// How much it was used lately, in thousandths.
    pub score: u64,
}

impl Command {
    fn builtin(kind: Kind, name: &str, description: &str) -> Command {
        Command {
            name: name.into(),
            aliases: Vec::new(),
            qualified: None,
            description: description.into(),
            has_description: true,
            when_to_use: None,
            argument_hint: None,
            kind,
            source: Source::Builtin,
            loaded_from: LoadedFrom::Builtin,
            enabled: true,
            hidden: false,
            user_invocable: true,
            for_model: false,
            headless: false,
            while_busy: false,
            interface: None,
            score: 0,
        }
    }

    /// The command that stands for a skill, as long as nothing stronger has its name.
    fn of(skill: &Skill) -> Command {
        Command {
            name: skill.name.clone(),
            aliases: skill.aliases.clone(),
            qualified: Some(format!("{}:{}", skill.source.tag(), skill.name)),
            description: skill.description.clone(),
            has_description: skill.has_description,
            when_to_use: skill.when_to_use.clone(),
            argument_hint: skill.argument_hint.clone(),
            kind: Kind::Prompt,
            source: skill.source.clone(),
            loaded_from: skill.loaded_from,
            enabled: true,
            hidden: !skill.user_invocable,
            user_invocable: skill.user_invocable,
            for_model: !skill.disable_model_invocation,
            headless: true,
            while_busy: false,
            interface: skill.interface.clone(),
            score: 0,
        }
    }

    /// Whether somebody wrote what it is for.
    fn described(&self) -> bool {
        self.has_description || self.when_to_use.is_some()
    }

    /// What lists say of it.
    pub fn summary(&self) -> &str {
        let short = self.interface.as_ref().and_then(|interface| interface.short_description.as_deref());
        short.unwrap_or(&self.description)
    }

    fn hint(mut self, hint: &str) -> Command {
        self.argument_hint = Some(hint.into());
        self
    }

    fn alias(mut self, alias: &str) -> Command {
        self.aliases.push(alias.into());
        self
    }

    fn headless(mut self) -> Command {
        self.headless = true;
        self
    }

    fn while_busy(mut self) -> Command {
        self.while_busy = true;
        self
    }
}

/// What a typed line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// For the model, as it stands.
    Message,
    Command {
        command: &'a Command,
        args: &'a str,
    },
    /// Looks like a command and is none; never reaches the model.
    Unknown {
        name: &'a str,
        nearest: Option<&'a str>,
    },
}

/// All commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Registry {
    commands: Vec<Command>,
}

/// Why a skill is not what its name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The name means it.
    Reached,
    /// A built-in has the name.
    BehindBuiltin,
    /// A stronger skill has the name: where that one is.
    Shadowed(String),
}

impl Registry {
    /// The commands that are part of the program.
    pub fn builtin() -> Registry {
        let local = |name, description| Command::builtin(Kind::Local, name, description);
        let ui = |name, description| Command::builtin(Kind::Ui, name, description);
        let commands = vec![
            local("help", "Lists commands and keys").alias("?").headless().while_busy(),
            local("clear", "Starts a new, empty session").alias("new"),
            ui("model", "Shows or switches the model").hint("[provider/]id").headless(),
            local("thinking", "Shows or chooses how hard the model thinks")
                .hint("[none | deep | ultra | auto]")
                .alias("effort")
                .headless(),
            ui("permissions", "Lists, tests and revokes permission rules")
                .hint("[test \"command\" | revoke rule]")
                .headless(),
            ui("resume", "Goes on with an earlier session").hint("[id or search words]").alias("continue"),
            local("rename", "Gives the session a title").hint("title").headless(),
            ui("rewind", "Goes back to an earlier message: conversation, files, or both"),
            local("undo", "Puts the files back that the last turn changed").headless(),
            local("redo", "Makes undone file changes again").headless(),
            local("export", "Writes the conversation to a file").hint("[file.md | file.json]").headless(),
            local("copy", "Copies the last answer, or one of its code blocks")
                .hint("[number of the block]")
                .while_busy(),
            local("compact", "Summarises the conversation to make room in the window")
                .hint("[what to keep in mind | micro [tokens] | undo]")
                .headless(),
            local("context", "Draws what fills the window: prompt, tools, memory, skills, messages, room left")
                .headless(),
            local("cost", "Shows tokens and cost of the session").headless(),
            local("config", "Shows settings with their sources, or changes one").hint("[key [value]]").headless(),
            ui("diff", "Shows what the session changed in files, and what is not committed").headless(),
            local("todos", "Shows the agent's todo list").headless(),
            local("doctor", "Says what works here, and what does not").headless(),
            local("bug-report", "Writes what a maintainer needs to know into a file; sends nothing").headless(),
            local("hooks", "Lists the hooks with their sources and last results").headless(),
            local("status", "Shows version, model, folders and settings in use").headless(),
            ui("skills", "Lists the skills, or loads them anew").hint("[reload]").headless(),
            local("agents", "Lists the sub-agents with their sources and tools").headless(),
            local("memory", "Lists the memory files, or opens one in $EDITOR").hint("[number]").headless(),
            local("plan", "Plans before anything is changed; `exit` goes back").hint("[task | exit]").headless(),
            local("exit", "Ends the session").alias("quit").while_busy(),
        ];
        Registry { commands }
    }

    /// Lists and completion leave these built-ins out, and no others.
    pub fn hide(&mut self, names: &[&str]) {
        for command in self.commands.iter_mut().filter(|command| command.source == Source::Builtin) {
            command.hidden = names.contains(&command.name.as_str());
        }
    }

    /// A list of one's own.
    pub fn of(commands: Vec<Command>) -> Registry {
        Registry { commands }
    }

    /// The built-ins and these skills, the strongest first, and how each of the skills stands. `score` is how much one was used.
    pub fn with_skills(skills: &[Skill], score: impl Fn(&str) -> f64) -> (Registry, Vec<Standing>) {
        let mut registry = Registry::builtin();
        let mut taken: HashMap<String, Option<String>> = HashMap::new();
        for command in &registry.commands {
            for name in command.aliases.iter().chain([&command.name]) {
                taken.insert(name.to_lowercase(), None);
            }
        }
        let mut standings = Vec::with_capacity(skills.len());
        let mut qualified = HashSet::new();
        for skill in skills {
            let mut command = Command::of(skill);
            command.score = (score(&skill.name) * 1_000.0) as u64;
            let standing = match taken.get(&skill.name.to_lowercase()) {
                None => Standing::Reached,
                Some(None) => Standing::BehindBuiltin,
                Some(Some(place)) => Standing::Shadowed(place.clone()),
            };
            let full = command.qualified.clone().unwrap_or_default();
            // Two of one source and name: only the first has the longer form.
            let first = qualified.insert(full.to_lowercase());
            match &standing {
                Standing::Reached => {
                    taken.insert(skill.name.to_lowercase(), Some(skill.place()));
                    registry.commands.push(command);
                }
                Standing::BehindBuiltin | Standing::Shadowed(_) if first => {
                    command.name = full;
                    command.aliases.clear();
                    command.hidden |= standing != Standing::BehindBuiltin;
                    command.for_model &= standing == Standing::BehindBuiltin;
                    registry.commands.push(command);
                }
                Standing::BehindBuiltin | Standing::Shadowed(_) => {}
            }
            standings.push(standing);
        }
        // An alias never takes a name, and the stronger skill has it.
        for command in registry.commands.iter_mut().filter(|command| command.kind == Kind::Prompt) {
            command.aliases.retain(|alias| match taken.entry(alias.to_lowercase()) {
                Entry::Occupied(_) => false,
                Entry::Vacant(free) => {
                    free.insert(None);
                    true
                }
            });
        }
        (registry, standings)
    }

    /// Commands that the model may call: with a description of the author's, and not kept from it.
    pub fn model_invocable(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| {
            command.kind == Kind::Prompt
                && command.source != Source::Builtin
                && command.for_model
                && command.described()
        })
    }

    /// Skills that `/help` lists: with a description of the author's, and not hidden.
    pub fn user_visible(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| {
            command.kind == Kind::Prompt && command.source != Source::Builtin && !command.hidden && command.described()
        })
    }

    /// The built-ins that are listed.
    fn listed_builtins(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| command.source == Source::Builtin && !command.hidden)
    }

    /// Every enabled command, hidden ones too.
    pub fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.enabled)
    }

    /// Looks a command up by name or alias, without slash; letter case does not count.
    pub fn find(&self, name: &str) -> Option<&Command> {
        let lower = name.to_lowercase();
        let named = |own: &str| own.eq_ignore_ascii_case(name) || own.to_lowercase() == lower;
        let exact = self.all().find(|command| named(&command.name));
        let alias = || self.all().find(|command| command.aliases.iter().any(|alias| named(alias)));
        let full = || self.all().find(|command| command.qualified.as_deref().is_some_and(named));
        exact.or_else(alias).or_else(full)
    }

    /// The name that was probably meant.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let shown = self.all().filter(|command| !command.hidden);
        let names = shown.flat_map(|command| command.aliases.iter().chain([&command.name]));
        nearest(name, names.map(String::as_str))
    }

    /// Reads what the user typed. `/usr/bin is …` and `/ …` are messages: a command is a slash and a name.
    pub fn parse_line<'a>(&'a self, line: &'a str) -> Parsed<'a> {
        let Some(rest) = line.trim_start().strip_prefix('/') else { return Parsed::Message };
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if let Some(command) = self.find(name) {
            return Parsed::Command { command, args: args.trim() };
        }
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
        if plain { Parsed::Unknown { name, nearest: self.nearest(name) } } else { Parsed::Message }
    }

    /// Rows of the popup for what stands after the slash, best first.
    pub fn complete(&self, query: &str) -> Vec<Completion<'_>> {
        complete(query, self.all().filter(|command| !command.hidden))
    }

    /// What `/help` says, as Markdown: a line for each command.
    pub fn help(&self) -> String {
        let mut text = String::from("Commands; `?` on an empty prompt shows the keys.\n\n");
        let row = |text: &mut String, command: &Command, tag: &str| {
            let hint = command.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
            // A backquote would end the code.
            let hint = hint.replace('`', "'");
            let _ = writeln!(text, "- `/{}{hint}` — {}{tag}", command.name, first_sentence(command.summary()));
        };
        self.listed_builtins().for_each(|command| {
            let tag = if command.headless { "" } else { " (needs a terminal)" };
            row(&mut text, command, tag);
        });
        if self.user_visible().next().is_some() {
            text.push_str("\nSkills; `/skills` says where each is.\n\n");
            self.user_visible().for_each(|command| row(&mut text, command, &format!(" ({})", command.source.tag())));
        }
        text
    }

    /// The table of commands for the README, as Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from("| Command | What it does | Headless |\n|---|---|---|\n");
        for command in self.listed_builtins() {
            let hint =
                command.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default().replace('|', "\\|");
            let aliases: Vec<String> = command.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
            let also = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
            let headless = if command.headless { "yes" } else { "" };
            let _ = writeln!(text, "| `/{}{hint}` | {}{also} | {headless} |", command.name, command.description);
        }
        text
    }
}

/// The first sentence of a description, at most 160 characters of it: lists have no room for more.
fn first_sentence(text: &str) -> &str {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    let cut = text.char_indices().nth(160).map_or(text.len(), |(at, _)| at);
    text[..end.min(cut)].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_a_line_for_each_command() {
        let help = Registry::builtin().help();
        assert!(help.contains("\n- `/memory [number]` — Lists the memory files"), "{help}");
        assert_eq!(help.lines().count(), 2 + Registry::builtin().all().filter(|command| !command.hidden).count());
    }

    #[test]
    fn lines_are_commands_messages_or_mistakes() {
        fn check(line: &str, want: &str) {
            let registry = Registry::builtin();
            let shown = match registry.parse_line(line) {
                Parsed::Message => "message".to_owned(),
                Parsed::Command { command, args } => format!("{} <{args}>", command.name),
                Parsed::Unknown { name, nearest } => format!("unknown {name}, {nearest:?}"),
            };
            assert_eq!(shown, want, "{line}");
        }
        check("hello", "message");
        check("", "message");
        check("/", "message");
        check("/ help", "message");
        check("/usr/bin is where it lives", "message");
        check("/etc/hosts", "message");
        check("/src/*.rs has errors", "message");
        check("//comment", "message");
        check("look at /help", "message");
        check("/help", "help <>");
        check("  /help", "help <>");
        check("/HELP", "help <>");
        check("/?", "help <>");
        check("/quit", "exit <>");
        check("/rename  my  title ", "rename <my  title>");
        check("/model\topenai/gpt-5", "model <openai/gpt-5>");
        check("/export\nx", "export <x>");
        check("/hlep", "unknown hlep, Some(\"help\")");
        check("/qiut now", "unknown qiut, Some(\"quit\")");
        check("/frobnicate", "unknown frobnicate, None");
        check("/user:name", "unknown user:name, None");
    }

    #[test]
    fn completion_prefers_names_over_aliases_over_descriptions() {
        fn check(query: &str, want: &[&str]) {
            let registry = Registry::builtin();
            let rows = registry.complete(query);
            let names: Vec<&str> = rows.iter().map(|row| row.command.name.as_str()).collect();
            assert_eq!(names.get(..want.len().min(names.len())), Some(want), "{query}: {names:?}");
            assert!(!want.is_empty() || names.is_empty(), "{query}: {names:?}");
        }
        check("", &["help", "clear", "model"]);
        check("mod", &["model"]);
        check("re", &["redo", "rename", "resume", "rewind"]);
        check("rsm", &["resume"]);
        check("quit", &["exit"]);
        check("tokens", &["cost"]);
        check("COST", &["cost"]);
        check("zzzz", &[]);
        check("^", &[]);
        check("!help", &[]);
    }

    #[test]
    fn completion_says_what_matched() {
        let registry = Registry::builtin();
        let rows = registry.complete("rwd");
        assert_eq!((rows[0].command.name.as_str(), rows[0].matched.as_slice()), ("rewind", &[0, 2, 5][..]));
    }

    #[test]
    fn names_are_unique() {
        let registry = Registry::builtin();
        let mut names: Vec<&String> =
            registry.all().flat_map(|command| command.aliases.iter().chain([&command.name])).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
