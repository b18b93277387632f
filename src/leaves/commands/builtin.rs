//! The commands that are part of the program: one row each. The code that serves them matches the enum, never a name.

use serde::{Deserialize, Serialize};

/// A command of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    Help,
    Clear,
    Model,
    Thinking,
    Permissions,
    Resume,
    Find,
    Rename,
    Rewind,
    Undo,
    Redo,
    Export,
    Copy,
    Compact,
    Context,
    Cost,
    Config,
    Diff,
    Todos,
    Tasks,
    Doctor,
    BugReport,
    Hooks,
    Plugin,
    ReloadPlugins,
    Status,
    Sandbox,
    Skills,
    Agents,
    Mcp,
    Memory,
    Plan,
    Theme,
    OutputStyle,
    Vim,
    Exit,
}

/// Who does what a command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Engine,
    /// The screen alone; without one there is nothing to do.
    Screen(Screen),
    /// A screen shows this list where no argument says what to do. Everything else is the engine's.
    List(ListKind),
}

/// What only a screen does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Copy,
    Vim,
    Exit,
}

/// Lists that only the engine can gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListKind {
    Sessions,
    /// Places in all sessions that have words.
    Found,
    Models,
    /// Every setting with its source.
    Settings,
    Rules,
    /// Files that every session of the folder begins with.
    Memory,
    /// The user messages that a rewind can go back to.
    Prompts,
    /// What was typed in this project before, oldest first.
    Skills,
    /// What the session changed in files, and what is not committed.
    Changes,
}

/// What a command needs to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A person in front of a terminal: `cocode -p` refuses it.
    Terminal,
}

/// One command, and all that is known of it before it runs.
#[derive(Debug)]
pub struct Row {
    is: Builtin,
    /// Without the slash.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// What may follow the name; empty: nothing.
    pub hint: &'static str,
    pub about: &'static str,
    pub server: Server,
    pub needs: Needs,
    /// Whether it runs with these arguments while the agent works.
    while_busy: fn(&str) -> bool,
    /// Whether these arguments make a turn of it.
    makes_turn: fn(&str) -> bool,
}

impl Builtin {
    /// What `/help` puts under one heading; every command is in one group.
    pub const GROUPS: [(&str, &[Builtin]); 5] = {
        use Builtin::*;
        [
            ("Session", &[Clear, Resume, Find, Rename, Export, Copy, Status, Cost, Exit]),
            ("Context", &[Context, Compact, Memory, Todos, Tasks]),
            ("Changes", &[Plan, Diff, Undo, Redo, Rewind]),
            (
                "Model and settings",
                &[
                    Model,
                    Thinking,
                    Permissions,
                    Config,
                    OutputStyle,
                    Theme,
                    Vim,
                    Skills,
                    Agents,
                    Mcp,
                    Hooks,
                    Plugin,
                    ReloadPlugins,
                ],
            ),
            ("Help", &[Help, Doctor, Sandbox, BugReport]),
        ]
    };

    pub fn rows() -> &'static [Row] {
        &ROWS
    }

    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it runs with these arguments while the agent works.
    pub fn runs_while_busy(self, args: &str) -> bool {
        (self.row().while_busy)(args.trim())
    }

    /// Whether these arguments make a turn of it.
    pub fn makes_turn(self, args: &str) -> bool {
        (self.row().makes_turn)(args.trim())
    }
}

impl Row {
    pub fn builtin(&self) -> Builtin {
        self.is
    }

    const fn new(is: Builtin, name: &'static str, about: &'static str) -> Row {
        Row {
            is,
            name,
            aliases: &[],
            hint: "",
            about,
            server: Server::Engine,
            needs: Needs::Nothing,
            while_busy: never,
            makes_turn: never,
        }
    }

    const fn hint(self, hint: &'static str) -> Row {
        Row { hint, ..self }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Row {
        Row { aliases, ..self }
    }

    const fn list(self, list: ListKind) -> Row {
        Row { server: Server::List(list), ..self }
    }

    const fn screen(self, screen: Screen) -> Row {
        Row { server: Server::Screen(screen), while_busy: always, ..self }.terminal()
    }

    const fn terminal(self) -> Row {
        Row { needs: Needs::Terminal, ..self }
    }

    /// Runs while the agent works, where these arguments only look.
    const fn looks(self, while_busy: fn(&str) -> bool) -> Row {
        Row { while_busy, ..self }
    }

    const fn turn(self, makes_turn: fn(&str) -> bool) -> Row {
        Row { makes_turn, ..self }
    }
}

const fn always(_: &str) -> bool {
    true
}

const fn never(_: &str) -> bool {
    false
}

const fn bare(args: &str) -> bool {
    args.is_empty()
}

/// Whether `/memory` is given nothing to add.
fn no_note(args: &str) -> bool {
    memory_note(args).is_none()
}

/// The line that `/memory` is to add.
pub fn memory_note(args: &str) -> Option<&str> {
    args.trim().strip_prefix("add").filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim)
}

/// Whether `/config` is given no value.
fn no_value(args: &str) -> bool {
    !args.contains(char::is_whitespace)
}

/// Whether `/permissions` changes none of them.
fn lists_or_tests(args: &str) -> bool {
    matches!(args.split_whitespace().next(), None | Some("test"))
}

/// Whether `/plan` is given a task.
fn is_task(args: &str) -> bool {
    !args.is_empty() && !args.eq_ignore_ascii_case("exit")
}

/// A command without a row does not compile: `Exit` is the last one, and the place of a row is that of its variant.
const ROWS: [Row; Builtin::Exit as usize + 1] = {
    use Builtin::*;
    [
        Row::new(Help, "help", "Show commands and keys").also(&["?"]).looks(always),
        Row::new(Clear, "clear", "Start a new session").also(&["new"]).terminal(),
        Row::new(Model, "model", "Show or switch the model").looks(bare).hint("[provider/]id").list(ListKind::Models),
        Row::new(Thinking, "thinking", "Show or set how hard the model thinks")
            .looks(bare)
            .hint("[none | deep | ultra | auto]")
            .also(&["effort"]),
        Row::new(Permissions, "permissions", "List, test and revoke permission rules")
            .looks(lists_or_tests)
            .hint("[test \"command\" | revoke rule]")
            .list(ListKind::Rules),
        Row::new(Resume, "resume", "Resume an earlier session")
            .looks(bare)
            .hint("[id or search words]")
            .also(&["continue"])
            .list(ListKind::Sessions)
            .terminal(),
        Row::new(Find, "find", "Search all sessions").hint("[words]").list(ListKind::Found).terminal(),
        Row::new(Rename, "rename", "Rename the session").hint("title"),
        Row::new(Rewind, "rewind", "Rewind to an earlier message: conversation, files, or both")
            .list(ListKind::Prompts)
            .terminal(),
        Row::new(Undo, "undo", "Undo the file changes of the last turn"),
        Row::new(Redo, "redo", "Redo undone file changes"),
        Row::new(Export, "export", "Export the conversation to a file").hint("[file.md | file.json]"),
        Row::new(Copy, "copy", "Copy the last answer, or one of its code blocks")
            .hint("[block number]")
            .screen(Screen::Copy),
        Row::new(Compact, "compact", "Summarize the conversation to free up the context window")
            .hint("[what to keep in mind | micro [tokens] | undo [plan]]"),
        Row::new(
            Context,
            "context",
            "Show what fills the context window: prompt, tools, memory, skills, messages, free space",
        )
        .looks(always),
        Row::new(Cost, "cost", "Show tokens and cost of the session, and why the cache broke")
            .looks(always)
            .hint("[why [number]]"),
        Row::new(Config, "config", "Show settings with their sources, or change one")
            .looks(no_value)
            .hint("[key [value]]")
            .list(ListKind::Settings),
        Row::new(Diff, "diff", "Review what the session changed, hunk by hunk, and show what is not committed")
            .looks(always)
            .list(ListKind::Changes),
        Row::new(Todos, "todos", "Show the agent's todo list").looks(always),
        Row::new(Tasks, "tasks", "List what runs in the background, stop something, or send an agent a message")
            .looks(bare)
            .hint("[stop id | tell id message]")
            .also(&["bashes"]),
        Row::new(Doctor, "doctor", "Check the installation").looks(always),
        Row::new(BugReport, "bug-report", "Write a bug report to a file; nothing is sent").looks(always),
        Row::new(Hooks, "hooks", "List hooks with their sources and last results").looks(always),
        Row::new(Plugin, "plugin", "List plugins: what each has, what of it runs, and what is wrong with it")
            .looks(always)
            .also(&["plugins"]),
        Row::new(ReloadPlugins, "reload-plugins", "Read all plugins again, and ask for what is new in them"),
        Row::new(Status, "status", "Show version, model, folders and settings").looks(always),
        Row::new(Sandbox, "sandbox", "Show how commands are confined, and what they were denied").looks(always),
        Row::new(Skills, "skills", "List skills, or reload them").looks(bare).hint("[reload]").list(ListKind::Skills),
        Row::new(Agents, "agents", "List sub-agents with their sources and tools").looks(always),
        Row::new(Mcp, "mcp", "List MCP servers with their state, protocol, last error and tools").looks(always),
        Row::new(Memory, "memory", "List memory files, open one in $EDITOR, or add a line to one")
            .looks(no_note)
            .hint("[number | add <text>]")
            .list(ListKind::Memory),
        Row::new(Plan, "plan", "Plan before anything is changed; `exit` leaves plan mode")
            .hint("[task | exit]")
            .turn(is_task),
        Row::new(Theme, "theme", "Show or switch the color theme").looks(bare).hint("[name]").list(ListKind::Settings),
        Row::new(OutputStyle, "output-style", "List output styles, or choose how the model replies").hint("[name]"),
        Row::new(Vim, "vim", "Switch vim keys in the prompt on or off").screen(Screen::Vim),
        Row::new(Exit, "exit", "End the session").also(&["quit"]).screen(Screen::Exit),
    ]
};

const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].is as usize == at, "rows stand in the order of their variants");
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_whether_a_command_is_a_turn() {
        for (builtin, args, want) in [
            (Builtin::Plan, "", false),
            (Builtin::Plan, " exit ", false),
            (Builtin::Plan, "EXIT", false),
            (Builtin::Plan, "a parser", true),
            (Builtin::Compact, "the parser", false),
        ] {
            assert_eq!(builtin.makes_turn(args), want, "{builtin:?} {args}");
        }
    }

    #[test]
    fn what_the_screen_does_needs_one() {
        for row in Builtin::rows() {
            assert!(!matches!(row.server, Server::Screen(_)) || row.needs == Needs::Terminal, "{}", row.name);
        }
    }
}
