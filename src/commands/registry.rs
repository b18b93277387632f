//! The list of commands: looking them up, reading a typed line, the text of `/help`.

use std::fmt::Write;

use super::Completion;
use super::complete::complete;
use crate::stdx::nearest::nearest;

/// What running a command means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Runs here; its result is text.
    Local,
    /// Becomes a user message.
    Prompt,
    /// Opens a dialog. With arguments, or without a screen, it answers with text.
    Ui,
}

/// Who provides a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    Builtin,
}

/// What a command was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadedFrom {
    Builtin,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Without the slash.
    pub name: String,
    pub aliases: Vec<String>,
    /// One line.
    pub description: String,
    /// What may follow the name, such as `[id]`.
    pub argument_hint: Option<String>,
    pub kind: Kind,
    pub source: Source,
    pub loaded_from: LoadedFrom,
    /// False: as if it were not there.
    pub enabled: bool,
    /// Works when typed, but is neither completed nor listed.
    pub hidden: bool,
    /// Works without a screen (`cocode -p "/cost"`).
    pub headless: bool,
    /// Works while a turn runs.
    pub while_busy: bool,
}

impl Command {
    fn builtin(kind: Kind, name: &str, description: &str) -> Command {
        Command {
            name: name.into(),
            aliases: Vec::new(),
            description: description.into(),
            argument_hint: None,
            kind,
            source: Source::Builtin,
            loaded_from: LoadedFrom::Builtin,
            enabled: true,
            hidden: false,
            headless: false,
            while_busy: false,
        }
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    commands: Vec<Command>,
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
            local("cost", "Shows tokens and cost of the session").headless(),
            local("status", "Shows version, model, folders and settings in use").headless(),
            local("memory", "Lists the memory files, or opens one in $EDITOR").hint("[number]").headless(),
            local("exit", "Ends the session").alias("quit").while_busy(),
        ];
        Registry { commands }
    }

    /// Every enabled command, hidden ones too.
    pub fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.enabled)
    }

    /// Looks a command up by name or alias, without slash; letter case does not count.
    pub fn find(&self, name: &str) -> Option<&Command> {
        let named = |own: &str| own.eq_ignore_ascii_case(name);
        let exact = self.all().find(|command| named(&command.name));
        exact.or_else(|| self.all().find(|command| command.aliases.iter().any(|alias| named(alias))))
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
        for command in self.all().filter(|command| !command.hidden) {
            let hint = command.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
            let _ = writeln!(text, "- `/{}{hint}` — {}", command.name, command.description);
        }
        text
    }

    /// The table of commands for the README, as Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from("| Command | What it does | Headless |\n|---|---|---|\n");
        for command in self.all().filter(|command| !command.hidden) {
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
