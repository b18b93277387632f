//! The list of commands: looking them up, reading a typed line, the text of `/help`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Completion;
use super::builtin::{Builtin, Needs, Row};
use super::complete::complete;
use super::interface::Interface;
use super::skill::Skill;
use crate::stdx::nearest::nearest;

/// What the names of prompts of MCP servers begin with.
pub const SERVED: &str = "mcp__";

/// What runs a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Builtin(Builtin),
    /// A skill from there: it becomes a user message.
    Skill(Source),
}

/// Who provides a skill.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
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
    /// What comes before the colon in `/user:name`, and after a command in lists.
    pub fn tag(&self) -> &str {
        match self {
            Source::Bundled => "bundled",
            Source::PolicySettings => "managed",
            Source::UserSettings => "user",
            Source::ProjectSettings => "project",
            Source::Plugin { id } => id,
            Source::Mcp { server } => server,
        }
    }
}

/// What a skill was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadedFrom {
    /// A folder of skills.
    Skills,
    Plugin,
    /// A prompt of an MCP server.
    Mcp,
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
    /// Works when typed, but is neither completed nor listed.
    pub hidden: bool,
    /// False: it is refused when typed.
    pub user_invocable: bool,
    /// False: the model may not call it.
    pub for_model: bool,
    pub interface: Option<Interface>,
    /// How much it was used lately, in thousandths.
    pub score: u64,
}

impl Command {
    fn of_row(row: &Row) -> Command {
        Command {
            name: row.name.into(),
            aliases: row.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            qualified: None,
            description: row.about.into(),
            has_description: true,
            when_to_use: None,
            argument_hint: Some(row.hint.to_owned()).filter(|hint| !hint.is_empty()),
            kind: Kind::Builtin(row.builtin()),
            hidden: false,
            user_invocable: true,
            for_model: false,
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
            kind: Kind::Skill(skill.source.clone()),
            hidden: !skill.user_invocable,
            user_invocable: skill.user_invocable,
            for_model: !skill.disable_model_invocation,
            interface: skill.interface.clone(),
            score: 0,
        }
    }

    /// Whether somebody wrote what it is for.
    fn described(&self) -> bool {
        self.has_description || self.when_to_use.is_some()
    }

    /// Whether the model is told of it, and may call it.
    pub fn offered(&self) -> bool {
        self.source().is_some() && self.for_model && self.described()
    }

    /// What lists say of it.
    pub fn summary(&self) -> &str {
        let short = self.interface.as_ref().and_then(|interface| interface.short_description.as_deref());
        short.unwrap_or(&self.description)
    }

    /// Which of the program's own it is; none for a skill.
    pub fn builtin(&self) -> Option<Builtin> {
        match self.kind {
            Kind::Builtin(builtin) => Some(builtin),
            Kind::Skill(_) => None,
        }
    }

    /// Where a skill is from; none for a command of the program.
    pub fn source(&self) -> Option<&Source> {
        match &self.kind {
            Kind::Builtin(_) => None,
            Kind::Skill(source) => Some(source),
        }
    }

    /// Of no use without a terminal.
    pub fn needs_terminal(&self) -> bool {
        self.builtin().is_some_and(|builtin| builtin.row().needs == Needs::Terminal)
    }

    /// What is said where there is no terminal.
    pub fn wants_terminal(&self) -> String {
        let instead = if self.name == "find" { ": `cocode find words` prints the same" } else { "" };
        format!("/{} needs a terminal{instead}", self.name)
    }

    /// Whether it makes a turn, as every skill does.
    pub fn makes_turn(&self, args: &str) -> bool {
        self.builtin().is_none_or(|builtin| builtin.makes_turn(args))
    }
}

/// What a typed line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// For the model, as it is.
    Message,
    Command {
        command: &'a Command,
        args: &'a str,
    },
    /// A prompt of an MCP server that may still be starting: whether there is one shows when it is run.
    Served {
        name: &'a str,
        args: &'a str,
    },
    /// Looks like a command, but none has that name; it never reaches the model.
    Unknown {
        name: &'a str,
    },
}

/// All commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Command>", into = "Vec<Command>")]
pub struct Registry {
    commands: Vec<Command>,
    /// Where a name leads, in lower case: names win over aliases, aliases over the longer forms.
    places: Arc<HashMap<String, usize>>,
}

impl From<Vec<Command>> for Registry {
    fn from(commands: Vec<Command>) -> Registry {
        Registry::of(commands)
    }
}

impl From<Registry> for Vec<Command> {
    fn from(registry: Registry) -> Vec<Command> {
        registry.commands
    }
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
        Registry::of(Builtin::rows().iter().map(Command::of_row).collect())
    }

    /// A list of one's own.
    pub fn of(commands: Vec<Command>) -> Registry {
        let mut places = HashMap::with_capacity(2 * commands.len());
        let mut note = |at: usize, name: &str| {
            places.entry(name.to_lowercase()).or_insert(at);
        };
        commands.iter().enumerate().for_each(|(at, command)| note(at, &command.name));
        for (at, command) in commands.iter().enumerate() {
            command.aliases.iter().for_each(|alias| note(at, alias));
        }
        for (at, command) in commands.iter().enumerate() {
            command.qualified.iter().for_each(|full| note(at, full));
        }
        Registry { commands, places: Arc::new(places) }
    }

    /// Lists and completion leave these built-ins out, and no others.
    pub fn hide(&mut self, hidden: &[Builtin]) {
        for command in &mut self.commands {
            if let Kind::Builtin(builtin) = command.kind {
                command.hidden = hidden.contains(&builtin);
            }
        }
    }

    /// The built-ins and these skills, highest priority first, and the standing of each skill. `score` is how much one was used.
    pub fn with_skills(skills: &[Skill], score: impl Fn(&str) -> f64) -> (Registry, Vec<Standing>) {
        let mut commands = Registry::builtin().commands;
        let mut taken: HashMap<String, Option<String>> = HashMap::new();
        for command in &commands {
            for name in command.aliases.iter().chain([&command.name]) {
                taken.insert(name.to_lowercase(), None);
            }
        }
        let mut standings = Vec::with_capacity(skills.len());
        let mut qualified = HashSet::new();
        // Short names of plugins' skills: each always has its longer one.
        let mut short = Vec::new();
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
                _ if skill.plugin.is_some() => {
                    if standing == Standing::Reached {
                        taken.insert(skill.name.to_lowercase(), Some(skill.place()));
                        short.push((commands.len(), skill.name.clone()));
                    }
                    if first {
                        command.name = full;
                        commands.push(command);
                    }
                }
                Standing::Reached => {
                    taken.insert(skill.name.to_lowercase(), Some(skill.place()));
                    commands.push(command);
                }
                Standing::BehindBuiltin | Standing::Shadowed(_) if first => {
                    command.name = full;
                    command.aliases.clear();
                    command.hidden |= standing != Standing::BehindBuiltin;
                    command.for_model &= standing == Standing::BehindBuiltin;
                    commands.push(command);
                }
                Standing::BehindBuiltin | Standing::Shadowed(_) => {}
            }
            standings.push(standing);
        }
        // An alias never takes a name, and the stronger skill has it.
        for command in commands.iter_mut().filter(|command| command.source().is_some()) {
            command.aliases.retain(|alias| match taken.entry(alias.to_lowercase()) {
                Entry::Occupied(_) => false,
                Entry::Vacant(free) => {
                    free.insert(None);
                    true
                }
            });
        }
        for (at, name) in short {
            commands[at].aliases.insert(0, name);
        }
        (Registry::of(commands), standings)
    }

    /// Commands that the model may call: with a description of the author's, and not kept from it.
    pub fn model_invocable(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| command.offered())
    }

    /// Skills that `/help` lists: with a description of the author's, and not hidden.
    pub fn user_visible(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| command.source().is_some() && !command.hidden && command.described())
    }

    /// The built-ins that are listed.
    fn listed_builtins(&self) -> impl Iterator<Item = &Command> {
        self.all().filter(|command| command.source().is_none() && !command.hidden)
    }

    /// Every command, hidden ones too.
    pub fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter()
    }

    /// Looks a command up by name or alias, without slash; letter case does not count.
    pub fn find(&self, name: &str) -> Option<&Command> {
        self.places.get(&name.to_lowercase()).map(|at| &self.commands[*at])
    }

    /// What is said of a name that means nothing.
    pub fn unknown(&self, name: &str) -> String {
        match self.nearest(name) {
            Some(near) => format!("unknown command /{name}: did you mean /{near}?"),
            None => format!("unknown command /{name}: /help lists all commands"),
        }
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
        match plain {
            true if name.starts_with(SERVED) => Parsed::Served { name, args: args.trim() },
            true => Parsed::Unknown { name },
            false => Parsed::Message,
        }
    }

    /// Rows of the popup for the text after the slash, best first.
    pub fn complete(&self, query: &str) -> Vec<Completion<'_>> {
        complete(query, self.all().filter(|command| !command.hidden))
    }

    /// What `/help` says, as Markdown: groups with their numbers, and a row for each command, what it does before what it
    /// takes.
    pub fn help(&self) -> String {
        let groups = Builtin::GROUPS.iter().map(|(title, group)| {
            let among = |command: &&Command| command.builtin().is_some_and(|builtin| group.contains(&builtin));
            ((*title).to_owned(), self.listed_builtins().filter(among).collect::<Vec<_>>())
        });
        let skills = ("Skills, `/skills` shows where each is".to_owned(), self.user_visible().collect());
        let groups: Vec<_> = groups.chain([skills]).filter(|(_, commands)| !commands.is_empty()).collect();
        let count: usize = groups.iter().map(|(_, commands)| commands.len()).sum();
        let mut text = format!("Commands ({count}; `?` on an empty prompt shows the keys)\n");
        for (title, commands) in groups {
            let _ = writeln!(text, "\n**{title}** ({})\n\n| | |\n|---|---|", commands.len());
            // A bar would begin another cell, a backquote would end the code.
            let cell = |text: &str| text.replace('|', "\\|");
            for command in commands {
                let hint = command.argument_hint.as_ref().map(|hint| format!(" · `{}`", hint.replace('`', "'")));
                let does = first_sentence(command.summary()).trim_end_matches('.');
                let tag = command.source().map(|source| format!(" ({})", source.tag())).unwrap_or_default();
                let row = (cell(does), cell(&hint.unwrap_or_default()));
                let _ = writeln!(text, "| `/{}` | {}{tag}{} |", command.name, row.0, row.1);
            }
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
            let headless = if command.needs_terminal() { "" } else { "yes" };
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
    fn help_has_each_command_in_one_group() {
        let help = Registry::builtin().help();
        let listed = Registry::builtin().listed_builtins().count();
        assert!(help.starts_with(&format!("Commands ({listed}; ")), "{help}");
        assert!(
            help.contains(
                "\n**Changes** (5)\n\n| | |\n|---|---|\n| `/rewind` | Rewind to an earlier message: conversation, files, or both |"
            ),
            "{help}"
        );
        assert!(help.contains("\n| `/memory` | List memory files, open one in $EDITOR, or add a line to one · `[number \\| add <text>]` |\n"), "{help}");
        assert_eq!(help.lines().filter(|line| line.starts_with("| `/")).count(), listed);
        assert!(!help.contains("Skills, "), "there are no skills");
    }

    #[test]
    fn lines_are_commands_messages_or_mistakes() {
        fn check(line: &str, want: &str) {
            let registry = Registry::builtin();
            let shown = match registry.parse_line(line) {
                Parsed::Message => "message".to_owned(),
                Parsed::Command { command, args } => format!("{} <{args}>", command.name),
                Parsed::Served { name, args } => format!("of a server: {name} <{args}>"),
                Parsed::Unknown { name } => registry.unknown(name),
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
        check("/hlep", "unknown command /hlep: did you mean /help?");
        check("/qiut now", "unknown command /qiut: did you mean /quit?");
        check("/frobnicate", "unknown command /frobnicate: /help lists all commands");
        check("/user:name", "unknown command /user:name: /help lists all commands");
        check("/mcp__srv__go a  b", "of a server: mcp__srv__go <a  b>");
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
        check("re", &["redo", "reload-plugins", "rename", "resume"]);
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
