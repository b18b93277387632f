//! The command line: what may be typed, as a configuration layer and as a `Start`.

mod find;
mod import;
mod mcp;
mod plugin;
mod sdk;
mod skills;
mod subcommand;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde_json::Value as Json;
use toml::{Table, Value};

pub use crate::engine::doctor::Here;
pub use sdk::Given;
pub use subcommand::{Own, run};

use crate::headless::Talk;
use crate::permission::Mode;
use crate::stdx::nearest::nearest;
use crate::stdx::schema::Schema;
use crate::stdx::text::split_list;
use crate::thinking::Override;

const EXAMPLES: &str = "\
Examples:
  cocode                                   start in this folder
  cocode \"why does the build fail?\"        start with a prompt
  cocode -p \"list the TODOs\" < notes.txt   one answer on stdout, no screen
  cocode -c                                continue the last session in this folder
  cocode --model openai/gpt-5              use this model
cocode doctor                            check the installation";

/// A coding agent for the terminal.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "cocode", version, about, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(flatten)]
    pub flags: Flags,

    #[command(subcommand)]
    pub command: Option<Sub>,

    /// Work in this folder
    #[arg(long, value_name = "DIR", global = true)]
    pub cwd: Option<PathBuf>,

    /// Flags of the Claude Agent SDK that mean nothing here.
    #[arg(skip)]
    pub ignored: Vec<String>,
}

/// The flags of a session.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Flags {
    /// What to do first; with -p, the whole task
    pub prompt: Option<String>,

    /// Print the answer to stdout and exit; also reads stdin
    #[arg(short, long)]
    pub print: bool,

    /// With -p: format of the answer
    #[arg(long, alias = "outputFormat", value_enum, default_value_t)]
    pub output_format: OutputFormat,

    /// With -p: format of stdin
    #[arg(long, alias = "inputFormat", value_enum, default_value_t)]
    pub input_format: InputFormat,

    /// [provider/]id, or a role: haiku, sonnet, opus
    #[arg(short, long)]
    pub model: Option<String>,

    /// default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, alias = "permissionMode", value_name = "MODE", value_parser = read_mode)]
    pub permission_mode: Option<Mode>,

    /// Same as --permission-mode bypassPermissions
    #[arg(long, alias = "dangerouslySkipPermissions", conflicts_with = "permission_mode")]
    pub dangerously_skip_permissions: bool,

    /// Rules for calls that run without asking, such as "Bash(git diff:*)"; takes all the words that follow, so put
    /// the prompt first
    #[arg(long, alias = "allowedTools", value_name = "RULE", num_args = 1..)]
    pub allowed_tools: Vec<String>,

    /// Rules for calls that never run; also takes all the words that follow
    #[arg(long, alias = "disallowedTools", value_name = "RULE", num_args = 1..)]
    pub disallowed_tools: Vec<String>,

    /// Maximum number of model calls in one turn
    #[arg(long, alias = "maxTurns", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,

    /// Most dollars that one turn may cost
    #[arg(long, alias = "maxBudgetUsd", value_name = "USD", value_parser = dollars, hide_short_help = true)]
    pub max_budget_usd: Option<f64>,

    /// How hard the model thinks: none, deep or ultra; with a budget in tokens if the model takes one (deep:12000)
    #[arg(long, value_name = "LEVEL[:BUDGET]", value_parser = Override::parse)]
    pub thinking: Option<Override>,

    /// Continue the last session in this folder
    #[arg(short, long = "continue", conflicts_with = "resume", group = "earlier")]
    pub continue_last: bool,

    /// Resume a session by id or search words; without a value, choose from a list
    #[arg(short, long, value_name = "ID|SEARCH", num_args = 0..=1, default_missing_value = "", group = "earlier")]
    pub resume: Option<String>,

    /// With -c or -r: continue in a copy of the session
    #[arg(long, alias = "forkSession", requires = "earlier")]
    pub fork_session: bool,

    /// Replace the system prompt
    #[arg(long, alias = "systemPrompt", value_name = "TEXT")]
    pub system_prompt: Option<String>,

    /// Add to the system prompt
    #[arg(long, alias = "appendSystemPrompt", value_name = "TEXT")]
    pub append_system_prompt: Option<String>,

    /// Additional folders that the agent may read and change
    #[arg(long, alias = "addDir", value_name = "DIR", num_args = 1..)]
    pub add_dir: Vec<PathBuf>,

    /// Load the plugin in this folder, for this session; may be given more than once
    #[arg(long, alias = "pluginDir", value_name = "DIR", hide_short_help = true)]
    pub plugin_dir: Vec<PathBuf>,

    /// With -p: the answer must match this JSON Schema (text or file)
    #[arg(long, alias = "jsonSchema", value_name = "SCHEMA")]
    pub json_schema: Option<String>,

    /// MCP servers for this session: a file like .mcp.json, or JSON; can be repeated
    #[arg(long, alias = "mcpConfig", value_name = "FILE|JSON", hide_short_help = true)]
    pub mcp_config: Vec<String>,

    /// Only the servers of --mcp-config
    #[arg(long, alias = "strictMcpConfig", hide_short_help = true)]
    pub strict_mcp_config: bool,

    /// Use this folder's own settings without asking
    #[arg(long)]
    pub trust: bool,

    /// Use the built-in offline model: no key, no network
    #[arg(long)]
    pub offline: bool,

    /// Play a scripted conversation from a YAML file
    #[arg(long, alias = "offlineScript", value_name = "FILE")]
    pub offline_script: Option<PathBuf>,

    /// Use a screen of its own instead of the scrollback
    #[arg(long, conflicts_with = "print")]
    pub fullscreen: bool,

    /// Write more to stderr (with -p) and to the log
    #[arg(long)]
    pub verbose: bool,

    #[command(flatten)]
    pub sdk: sdk::Flags,
}

#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Sub {
    #[command(flatten)]
    Own(Own),
    /// Test permission rules
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Put all files back as they were before a session changed them
    Undo {
        /// Id of the session, or search words
        session: String,
    },
    /// Try what is promised of commands: the sandbox, undo, and what they cost
    Prove {
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Export a session as Markdown or JSON
    Export {
        /// Id of the session, or search words
        session: String,
        /// Where to write it; default: stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replaces a file that exists
        #[arg(long, requires = "output")]
        force: bool,
        #[arg(long, value_enum, default_value_t)]
        format: ExportFormat,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum PermissionsCommand {
    /// Decide calls from stdin, one JSON object per line, without running anything
    Check {
        /// JSON lines in, JSON lines out
        #[arg(long, required = true)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    #[default]
    Markdown,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

/// What a start needs besides the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub prompt: Option<String>,
    /// None: the terminal.
    pub headless: Option<Headless>,
    pub earlier: Earlier,
    /// Continue in a copy of the earlier session.
    pub fork: bool,
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    /// The user said `--trust`.
    pub trust: bool,
    pub offline: Offline,
    pub thinking: Option<Override>,
    pub verbose: bool,
    /// What only programs say.
    pub given: sdk::Given,
}

/// The formats of a run without a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Headless {
    pub output: OutputFormat,
    pub input: InputFormat,
    /// What the answer must fit.
    pub json_schema: Option<Schema>,
    pub talk: Talk,
}

/// Which session to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Earlier {
    /// A new one.
    None,
    /// The last one of the folder.
    Last,
    /// The user chooses from a list.
    Choose,
    /// An id, or words to search for.
    Search(String),
}

/// Whether a real model may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offline {
    No,
    Model,
    Script(PathBuf),
}

impl Cli {
    /// Reads arguments, the program's name first.
    ///
    /// # Errors
    /// Usage errors, and the texts of `--help` and `--version`; `clap::Error::exit` prints each where it belongs and
    /// ends with 2 or 0.
    pub fn read(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let (arguments, ignored) = match sdk::speaks(&arguments) {
            true => sdk::arguments(&Cli::command(), &arguments),
            false => (arguments, Vec::new()),
        };
        let cli = Cli::try_parse_from(&arguments).map_err(|error| elsewhere(&arguments, &error).unwrap_or(error))?;
        let cli = Cli { ignored, ..cli };
        let flags = &cli.flags;
        sdk::without_screen(flags)?;
        if flags.input_format == InputFormat::StreamJson && flags.prompt.is_some() {
            return Err(usage("--input-format stream-json reads prompts from stdin: leave out the prompt"));
        }
        if let Some(word) = flags.prompt.as_deref().filter(|_| !flags.print && cli.command.is_none())
            && let Some(fix) = meant(word)
        {
            return Err(usage(format!("`{word}` is not a command: {fix}; `cocode -p {word}` sends it as a prompt")));
        }
        if flags.print && flags.resume.as_deref() == Some("") {
            return Err(usage("--resume with -p needs an id or search words"));
        }
        Ok(cli)
    }

    /// The permission mode that a flag asks for.
    pub fn mode(&self) -> Option<Mode> {
        if self.flags.dangerously_skip_permissions { Some(Mode::Bypass) } else { self.flags.permission_mode }
    }

    /// What the flags say of MCP servers.
    pub fn servers(&self) -> crate::config::servers::Flags {
        let Flags { mcp_config, strict_mcp_config, .. } = &self.flags;
        crate::config::servers::Flags { configs: mcp_config.clone(), strict: *strict_mcp_config }
    }

    /// The flags that are settings, as a layer.
    pub fn layer(&self) -> Table {
        let flags = &self.flags;
        let mut layer = Table::new();
        if let Some(model) = &flags.model {
            layer.insert("model".into(), Value::String(model.clone()));
        }
        if let Some(turns) = flags.max_turns {
            layer.insert("max_turns".into(), Value::Integer(turns.into()));
        }
        if let Some(usd) = flags.max_budget_usd {
            layer.insert("budget".into(), Table::from_iter([("turn_usd".to_owned(), Value::Float(usd))]).into());
        }
        let mut permissions = Table::new();
        if let Some(mode) = self.mode().and_then(|mode| Value::try_from(mode).ok()) {
            permissions.insert("default_mode".into(), mode);
        }
        for (name, rules) in [("allow", &flags.allowed_tools), ("deny", &flags.disallowed_tools)] {
            let rules = rules.iter().flat_map(|rules| split_list(rules, |c| c == ',' || c.is_whitespace()));
            let rules: Vec<Value> = rules.map(Value::String).collect();
            if !rules.is_empty() {
                permissions.insert(name.into(), Value::Array(rules));
            }
        }
        if !flags.add_dir.is_empty() {
            let folders = flags.add_dir.iter().map(|folder| Value::String(folder.to_string_lossy().into_owned()));
            permissions.insert("additional_directories".into(), Value::Array(folders.collect()));
        }
        if !permissions.is_empty() {
            layer.insert("permissions".into(), Value::Table(permissions));
        }
        if flags.fullscreen {
            layer.insert("tui".into(), Table::from_iter([("fullscreen".to_owned(), Value::Boolean(true))]).into());
        }
        if flags.verbose {
            let level = [("level".to_owned(), Value::String("debug".into()))];
            layer.insert("log".into(), Value::Table(level.into_iter().collect()));
        }
        layer
    }

    /// The flags that are not settings.
    ///
    /// # Errors
    /// `--json-schema` is not JSON, or its file cannot be read.
    pub fn start(&self) -> Result<Start, clap::Error> {
        let flags = &self.flags;
        let json_schema = flags.json_schema.as_deref().map(read_schema).transpose()?;
        Ok(Start {
            prompt: flags.prompt.clone(),
            headless: (flags.print || sdk::hosted(flags)).then_some(Headless {
                output: flags.output_format,
                input: flags.input_format,
                json_schema,
                talk: flags.sdk.talk(flags.print),
            }),
            earlier: match (flags.continue_last, flags.resume.as_deref()) {
                (true, _) => Earlier::Last,
                (false, None) => Earlier::None,
                (false, Some("")) => Earlier::Choose,
                (false, Some(search)) => Earlier::Search(search.to_owned()),
            },
            fork: flags.fork_session,
            system_prompt: match &flags.sdk.system_prompt_file {
                Some(file) => Some(read_text("--system-prompt-file", file)?),
                None => flags.system_prompt.clone(),
            },
            append_system_prompt: flags.append_system_prompt.clone(),
            trust: flags.trust,
            offline: match (&flags.offline_script, flags.offline) {
                (Some(script), _) => Offline::Script(script.clone()),
                (None, true) => Offline::Model,
                (None, false) => Offline::No,
            },
            thinking: flags.thinking.or_else(|| flags.sdk.thinking()),
            verbose: flags.verbose,
            given: flags.sdk.given(),
        })
    }
}

/// Commands of other agents, and what does the same here.
const ELSEWHERE: [(&str, &str); 12] = [
    ("acp", "cocode does not speak ACP yet"),
    ("auth", "set a key with /model in a session"),
    ("exec", "use `cocode -p \"prompt\"`"),
    ("init", "start a session and type /init"),
    ("login", "set a key with /model in a session"),
    ("logout", "keys are in credentials.toml, beside config.toml"),
    ("resume", "use `cocode -r`"),
    ("run", "use `cocode -p \"prompt\"`"),
    ("serve", "cocode has no server yet"),
    ("sessions", "use `cocode -r`"),
    ("update", "install the new version as you installed this one"),
    ("upgrade", "install the new version as you installed this one"),
];

/// What to do instead, where a prompt of one word looks like a command: nobody means to send `serve` to a model.
fn meant(word: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c == '-';
    if word.len() < 3 || !word.chars().all(plain) {
        return None;
    }
    let cli = Cli::command();
    let own: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let near = nearest(word, own.iter().copied().chain(ELSEWHERE.map(|(name, _)| name)))?;
    let instead = ELSEWHERE.iter().find(|(name, _)| *name == near);
    Some(instead.map_or_else(|| format!("did you mean `cocode {near}`?"), |(_, instead)| (*instead).to_owned()))
}

/// A usage error that says so where a command of another agent was given with arguments, as in `mcp add name`, or where a
/// prompt of several words has no quotes.
fn elsewhere(arguments: &[OsString], error: &clap::Error) -> Option<clap::Error> {
    let word = arguments.get(1)?.to_str()?;
    let more = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict);
    if let Some((_, fix)) = ELSEWHERE.iter().find(|(name, _)| more && *name == word) {
        return Some(usage(format!("`{word}` is not a command: {fix}")));
    }
    let words: Option<Vec<&str>> = arguments[1..].iter().map(|word| word.to_str()).collect();
    let words = words.filter(|words| more && words.len() > 1 && !words.iter().any(|word| word.starts_with('-')))?;
    let own = Cli::command().find_subcommand(word).is_some();
    (!own).then(|| usage(format!("put the prompt in quotes: cocode \"{}\"", words.join(" "))))
}

/// A usage error: printed with the usage line, exit code 2.
pub fn usage(message: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ValueValidation, message)
}

fn read_mode(text: &str) -> Result<Mode, String> {
    serde_json::from_value(Json::String(text.to_owned()))
        .map_err(|_| "choose one of default, acceptEdits, plan, dontAsk, bypassPermissions".to_owned())
}

fn dollars(text: &str) -> Result<f64, String> {
    let finite = text.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
    finite.ok_or_else(|| "not an amount in dollars: use a finite number, 0 or more".to_owned())
}

fn read_text(flag: &str, file: &str) -> Result<String, clap::Error> {
    std::fs::read_to_string(file).map_err(|error| usage(format!("{flag}: cannot read {file}: {error}")))
}

fn read_schema(given: &str) -> Result<Schema, clap::Error> {
    let text = if given.trim_start().starts_with('{') { given.to_owned() } else { read_text("--json-schema", given)? };
    let schema: Json =
        serde_json::from_str(&text).map_err(|error| usage(format!("--json-schema: not valid JSON: {error}")))?;
    let schema = Schema::new(schema).map_err(|error| usage(format!("--json-schema: {error}")))?;
    match schema.resolve(schema.json())["type"] == "object" {
        true => Ok(schema),
        false => Err(usage("--json-schema: the schema must describe an object: {\"type\": \"object\", ...}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<Cli, String> {
        Cli::read(std::iter::once(&"cocode").chain(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_become_a_layer() {
        fn check(line: &[&str], want: &str) {
            let layer = read(line).unwrap().layer().to_string();
            assert_eq!(layer.replace('\n', " ").trim(), want, "{line:?}");
        }
        check(&[], "");
        check(&["hello", "--model", "opus", "--max-turns", "3"], "max_turns = 3 model = \"opus\"");
        check(&["--permission-mode", "plan"], "[permissions] default_mode = \"plan\"");
        check(&["--dangerously-skip-permissions"], "[permissions] default_mode = \"bypassPermissions\"");
        check(
            &["-p", "go", "--allowedTools", "Bash(git log:*) Read,Edit", "Write", "--disallowed-tools", "WebFetch"],
            "[permissions] allow = [\"Bash(git log:*)\", \"Read\", \"Edit\", \"Write\"] deny = [\"WebFetch\"]",
        );
        check(&["--add-dir", "../my docs"], "[permissions] additional_directories = [\"../my docs\"]");
    }

    #[test]
    fn a_budget_is_an_amount() {
        for (given, want) in [("0.5", true), ("0", true), ("nan", false), ("inf", false), ("-1", false), ("x", false)] {
            assert_eq!(read(&[&format!("--max-budget-usd={given}")]).is_ok(), want, "{given}");
        }
    }

    #[test]
    fn the_rest_becomes_a_start() {
        fn check(line: &[&str], want: &dyn Fn(Start) -> Start) {
            let plain = read(&[]).unwrap().start().unwrap();
            assert_eq!(read(line).unwrap().start().unwrap(), want(plain), "{line:?}");
        }
        let headless =
            |output, input| Some(Headless { output, input, json_schema: None, talk: sdk::Flags::default().talk(true) });
        check(&["hi"], &|start| Start { prompt: Some("hi".into()), ..start });
        check(&["-p"], &|start| Start { headless: headless(OutputFormat::Text, InputFormat::Text), ..start });
        check(&["-p", "--outputFormat", "stream-json", "--input-format", "stream-json"], &|start| Start {
            headless: headless(OutputFormat::StreamJson, InputFormat::StreamJson),
            ..start
        });
        check(&["-c", "--fork-session"], &|start| Start { earlier: Earlier::Last, fork: true, ..start });
        check(&["-r"], &|start| Start { earlier: Earlier::Choose, ..start });
        check(&["-r", "abc", "continue"], &|start| Start {
            earlier: Earlier::Search("abc".into()),
            prompt: Some("continue".into()),
            ..start
        });
        check(&["--offline"], &|start| Start { offline: Offline::Model, ..start });
        check(&["--offline-script", "a.yaml"], &|start| Start { offline: Offline::Script("a.yaml".into()), ..start });
    }

    #[test]
    fn usage_errors_name_the_fix() {
        fn check(line: &[&str], want: &str) {
            let error = Cli::read(std::iter::once(&"cocode").chain(line)).and_then(|cli| cli.start()).unwrap_err();
            assert!(error.to_string().contains(want), "{line:?}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        check(&["--modle", "x"], "--model");
        check(&["--permission-mode", "yolo"], "choose one of default");
        check(&["--max-turns", "0"], "1..");
        check(&["--output-format", "json"], "--print");
        check(&["-c", "-r"], "cannot be used with");
        check(&["--fork-session"], "required");
        check(&["-p", "--resume"], "needs an id");
        check(&["-p", "x", "--input-format", "stream-json"], "leave out the prompt");
        check(&["serve"], "`serve` is not a command: cocode has no server yet; `cocode -p serve` sends it as a prompt");
        check(&["mcp", "add", "files"], "the following required arguments were not provided");
        check(&["plugin", "install"], "the following required arguments were not provided");
        check(&["fix", "the", "bug"], "put the prompt in quotes: cocode \"fix the bug\"");
        check(&["fix", "list"], "put the prompt in quotes");
        check(&["doctr"], "did you mean `cocode doctor`?");
        check(&["skill", "--offline"], "did you mean `cocode skills`?");
        for prompt in ["hello", "hi", "continue", "test", "review", "Serve", "fix", "why", "explain", "serve it"] {
            assert_eq!(read(&[prompt]).unwrap().flags.prompt.as_deref(), Some(prompt));
        }
        assert!(read(&["-p", "serve"]).is_ok());
        check(&["-p", "--json-schema", "{"], "not valid JSON");
        check(&["-p", "--json-schema", "[]"], "cannot read []");
        check(&["-p", "--json-schema", "{}"], "the schema must describe an object");
        let unknown = r#"{"type": "object", "properties": {"a": {"if": true}}}"#;
        check(&["-p", "--json-schema", unknown], "--json-schema: #/properties/a/if is not supported");
        check(&["config", "sett"], "set");
        check(&["permissions", "check"], "--json");
    }

    #[test]
    fn help_is_short_and_has_examples() {
        let help = Cli::command().render_help().to_string();
        assert!(help.contains("cocode -p") && help.lines().count() < 67, "{help}");
    }
}
