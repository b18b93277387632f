//! How the Claude Agent SDKs start the program: their flags as they write them, made into ours.
//!
//! They give one argument a flag, as `--flag=value` or as two words, and know flags that we do not. A program of theirs
//! must not fail over one of those, so it is named on standard error and left out.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Args, Command};

use super::{InputFormat, OutputFormat};
use crate::headless::Talk;
use crate::stdx::text::split_list;
use crate::thinking::{Level, Override};

/// Flags that only programs give: they are left out of the help, and described in `docs/sdk.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
// One group of this name is enough.
#[group(skip)]
pub struct Flags {
    /// `stdio`: permissions are asked for on stdout, and answered on stdin
    #[arg(long, value_name = "NAME", hide = true)]
    pub permission_prompt_tool: Option<String>,

    /// Lines for parts of replies, as they come
    #[arg(long, hide = true)]
    pub include_partial_messages: bool,

    /// Lines for hooks that run
    #[arg(long, hide = true)]
    pub include_hook_events: bool,

    /// Repeats the prompts that come in, with their ids
    #[arg(long, hide = true)]
    pub replay_user_messages: bool,

    /// Lines with what the mirror of the session is given
    #[arg(long, hide = true)]
    pub session_mirror: bool,

    /// The id of the new session
    #[arg(long, value_name = "UUID", value_parser = uuid, hide = true)]
    pub session_id: Option<String>,

    /// With --resume: continue after this message
    #[arg(long, value_name = "UUID", value_parser = uuid, requires = "earlier", hide = true)]
    pub resume_session_at: Option<String>,

    /// The only tools that the model gets; `default` for all
    #[arg(long, value_name = "TOOL,...", hide = true)]
    pub tools: Option<String>,

    /// Most tokens to think with; 0 for no thinking
    #[arg(long, value_name = "N", hide = true)]
    pub max_thinking_tokens: Option<u32>,

    /// low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL", hide = true)]
    pub effort: Option<String>,

    /// Replace the system prompt by this file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt", hide = true)]
    pub system_prompt_file: Option<String>,

    /// Bypass may be chosen later
    #[arg(long, hide = true)]
    pub allow_dangerously_skip_permissions: bool,
}

/// What of these flags is about the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    pub session_id: Option<String>,
    pub resume_at: Option<uuid::Uuid>,
    /// The only tools that the model gets; None for all.
    pub tools: Option<Vec<String>>,
    pub may_bypass: bool,
}

impl Flags {
    pub(super) fn given(&self) -> Given {
        let list = |tools: &String| split_list(tools, |c| c == ',').into_iter().collect::<Vec<_>>();
        Given {
            session_id: self.session_id.clone(),
            resume_at: self.resume_session_at.as_ref().and_then(|id| uuid::Uuid::parse_str(id).ok()),
            tools: self.tools.as_ref().filter(|tools| *tools != "default").map(list),
            may_bypass: self.allow_dangerously_skip_permissions,
        }
    }

    pub(super) fn talk(&self, print: bool) -> Talk {
        Talk {
            sdk: !print,
            permits: self.permission_prompt_tool.as_deref() == Some("stdio"),
            partial: self.include_partial_messages,
            hooks: print || self.include_hook_events,
            replay: self.replay_user_messages,
            mirror: self.session_mirror,
        }
    }

    /// How hard to think. Effort below `high` leaves it to the configuration, as nothing here means less than usual.
    pub(super) fn thinking(&self) -> Option<Override> {
        let tokens = self.max_thinking_tokens.map(|tokens| match tokens {
            0 => Override { level: Level::None, budget: None },
            tokens => Override { level: Level::DeepThink, budget: Some(tokens) },
        });
        let effort = || match self.effort.as_deref() {
            Some("high") => Some(Level::DeepThink),
            Some("xhigh" | "max") => Some(Level::UltraThink),
            _ => None,
        };
        tokens.or_else(|| effort().map(|level| Override { level, budget: None }))
    }
}

/// Whether a program holds a conversation on stdin and stdout.
pub(super) fn hosted(flags: &super::Flags) -> bool {
    (flags.input_format, flags.output_format) == (InputFormat::StreamJson, OutputFormat::StreamJson)
}

/// # Errors
/// A flag that only counts without a screen came without `--print`.
pub(super) fn without_screen(flags: &super::Flags) -> Result<(), clap::Error> {
    if flags.print || hosted(flags) {
        return Ok(());
    }
    let given = [
        ("--output-format", flags.output_format != OutputFormat::default()),
        ("--input-format", flags.input_format != InputFormat::default()),
        ("--json-schema", flags.json_schema.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(super::usage(format!("{flag} only works with --print: add -p"))),
        None => Ok(()),
    }
}

fn uuid(text: &str) -> Result<String, String> {
    uuid::Uuid::parse_str(text).map(|id| id.to_string()).map_err(|_| "not a UUID".to_owned())
}

/// Whether prompts come in as lines of JSON, so that a program has started us.
pub(super) fn speaks(arguments: &[OsString]) -> bool {
    const FLAGS: [&str; 2] = ["--input-format", "--inputFormat"];
    let is = |word: &OsString| word == "stream-json";
    arguments.iter().enumerate().any(|(at, argument)| {
        let argument = argument.to_str().unwrap_or_default();
        match argument.split_once('=') {
            Some((name, value)) => FLAGS.contains(&name) && value == "stream-json",
            None => FLAGS.contains(&argument) && arguments.get(at + 1).is_some_and(is),
        }
    })
}

/// The arguments as `command` reads them, and the flags that it does not know.
pub(super) fn arguments(command: &Command, given: &[OsString]) -> (Vec<OsString>, Vec<String>) {
    let (mut read, mut ignored) = (Vec::new(), Vec::new());
    let attended = given.iter().any(|argument| argument == "-p" || argument == "--print");
    let mut rest = given.iter().peekable();
    read.extend(rest.next().cloned());
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix("--")).filter(|flag| !flag.is_empty())
        else {
            read.push(argument.clone());
            continue;
        };
        let (name, inline) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (flag, None),
        };
        let flag_like = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
        let Some(known) = known(command, name) else {
            ignored.push(format!("--{name}"));
            if inline.is_none() {
                rest.next_if(|word| !flag_like(word));
            }
            continue;
        };
        let long = known.get_long().unwrap_or(name);
        if !known.get_action().takes_values() {
            // The SDKs always say it, and nobody reads what more is said.
            if long != "verbose" || attended {
                read.push(format!("--{long}").into());
            }
            continue;
        }
        let optional = known.get_num_args().is_some_and(|count| count.min_values() == 0);
        let value =
            inline.or_else(|| if optional { rest.next_if(|word| !flag_like(word)) } else { rest.next() }.cloned());
        let value = match (long, value) {
            ("thinking", Some(value)) => match value.to_str() {
                // How the model decides by itself.
                Some("adaptive" | "enabled") => continue,
                Some("disabled") => Some("none".into()),
                _ => Some(value),
            },
            (_, value) => value,
        };
        read.push(match value {
            Some(value) => joined(long, &value),
            None => format!("--{long}").into(),
        });
    }
    (read, ignored)
}

/// In one word: a value that begins with a dash is a value all the same.
fn joined(long: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{long}="));
    word.push(value);
    word
}

fn known<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| {
        argument.get_long() == Some(name)
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            // Only known once the command is built.
            || matches!(name, "help" | "version") && argument.get_id() == name
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Cli;
    use super::*;

    fn read(line: &[&str]) -> Result<Cli, String> {
        let minimum = ["cocode", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
        Cli::read(minimum.iter().chain(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_sdks_write_is_read() {
        let check = |line: &[&str], want: &dyn Fn(&Cli) -> bool| {
            let cli = read(line).unwrap();
            assert_eq!(cli.flags.output_format, OutputFormat::StreamJson);
            assert!(cli.start().unwrap().headless.is_some() && want(&cli), "{line:?}: {cli:?}");
        };
        check(&[], &|cli| !cli.flags.verbose && cli.ignored.is_empty());
        check(&["--system-prompt", ""], &|cli| cli.flags.system_prompt.as_deref() == Some(""));
        check(&["--append-system-prompt", "--- rules"], &|cli| {
            cli.flags.append_system_prompt.as_deref() == Some("--- rules")
        });
        let rules = |cli: &Cli, which: &str| cli.layer()["permissions"][which].to_string();
        for line in [
            &["--allowedTools=Read,Bash(git log:*)", "--foo", "--disallowedTools=Edit"][..],
            &["--allowedTools", "Read,Bash(git log:*)", "--disallowedTools", "Edit", "--bar", "b"][..],
        ] {
            check(line, &|cli| {
                rules(cli, "allow") == "[\"Read\", \"Bash(git log:*)\"]" && rules(cli, "deny") == "[\"Edit\"]"
            });
        }
        check(&["--betas=a,b", "--task-budget", "1000", "--debug", "--max-turns=3"], &|cli| {
            cli.ignored == ["--betas", "--task-budget", "--debug"] && cli.flags.max_turns == Some(3)
        });
        check(&["--tools", "", "--permission-prompt-tool", "stdio"], &|cli| {
            cli.flags.sdk.tools.as_deref() == Some("")
                && cli.flags.sdk.permission_prompt_tool.as_deref() == Some("stdio")
        });
        let id = "0190f5fe-7c00-7a00-8000-000000000001";
        check(&["--resume", id, "--fork-session", "--session-id", id, "--resume-session-at", id], &|cli| {
            cli.flags.resume.as_deref() == Some(id) && cli.flags.fork_session
        });
        check(&["--thinking", "adaptive"], &|cli| cli.start().unwrap().thinking.is_none());
        let thinks = |cli: &Cli| serde_json::to_string(&cli.start().unwrap().thinking).unwrap();
        check(&["--thinking=disabled"], &|cli| thinks(cli) == thinks(&read(&["--max-thinking-tokens", "0"]).unwrap()));
        check(&["--max-thinking-tokens=9000"], &|cli| thinks(cli).contains("9000"));
        check(&["--effort", "high"], &|cli| thinks(cli) == thinks(&read(&["--thinking=deep"]).unwrap()));
        check(&["--effort", "low"], &|cli| cli.start().unwrap().thinking.is_none());
        check(&["--mcp-config", "{\"mcpServers\":{}}", "--strict-mcp-config"], &|cli| {
            cli.flags.mcp_config.len() == 1 && cli.flags.strict_mcp_config
        });
        check(&["--json-schema={\"type\":\"object\"}", "--permission-mode=acceptEdits"], &|cli| {
            cli.flags.json_schema.is_some()
        });
        let refused = |line: &[&str]| read(line).unwrap_err();
        assert!(refused(&["--session-id", "x"]).contains("not a UUID"));
        assert!(refused(&["--resume-session-at", id]).contains("required"));
        assert!(refused(&["a prompt"]).contains("leave out the prompt"));
    }

    #[test]
    fn only_programs_are_read_like_that() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(speaks(&words(&["cocode", "--input-format=stream-json"])));
        assert!(!speaks(&words(&["cocode", "-p", "--input-format", "text", "stream-json"])));
        let (read, ignored) = arguments(&Cli::command(), &words(&["cocode", "--no-such", "value", "--model", "-m"]));
        assert_eq!((read, ignored), (words(&["cocode", "--model=-m"]), vec!["--no-such".to_owned()]));
    }
}
