//! The deterministic model in the binary: fixed recipes over real tools, computed from the request alone.
//!
//! It keeps no state. What it does next follows from the prompt and from the calls and results after it, so a resumed
//! session continues like any other.

mod code;
mod commands;
mod declarations;
mod edit;
mod errors;
mod explain;
mod facts;
mod git;
mod intent;
mod look;
mod notes;
mod plan;
mod repair;
mod skills;
mod slips;
mod suspects;
mod words;
mod write;

use serde_json::{Value, json};

use super::script::Part;
use crate::message::{Kind, Outcome, Role, ToolCall, ToolResult};
use crate::provider::{Purpose, Request};
use intent::Intent;

/// Answers the request. `Offline::assistant` takes it.
pub fn reply(request: &Request) -> Vec<Part> {
    if request.purpose == Purpose::Memory {
        return notes::update(request);
    }
    let situation = Situation::of(request);
    if let Some(file) = plan::planning(request) {
        return plan::recipe(&situation, &file);
    }
    if let Some(stop) = situation.refused() {
        return vec![Part::Text(stop)];
    }
    if let Some((name, args)) = skills::invoked(&situation.prompt) {
        return skills::follow(&situation, name, args);
    }
    let mut parts = recipe(&situation, Intent::of(&situation.prompt)).unwrap_or_else(|calls| calls);
    let ends = !parts.iter().any(|part| matches!(part, Part::Tool { .. }));
    if ends && let Some(schema) = shape(request) {
        return shaped(&situation, schema, &parts);
    }
    if ends
        && situation.first_turn
        && let Some(Part::Text(text)) = parts.last_mut()
    {
        text.truncate(text.trim_end().len());
        text.push_str(NOTE);
    }
    parts
}

/// What comes next: the answer, or (`Err`) the calls that it still needs.
type Recipe = Result<Vec<Part>, Vec<Part>>;

fn recipe(situation: &Situation, intent: Intent) -> Recipe {
    match intent {
        Intent::Say(text) => tell(text),
        Intent::Abilities => Ok(vec![Part::Text(ABILITIES.into())]),
        Intent::Explain => explain::repository(situation),
        Intent::About(topics) => facts::about(situation, &topics),
        Intent::Size => facts::size(situation),
        Intent::Past(what) => git::past(situation, &what),
        Intent::Changes => git::changes(situation),
        Intent::Message => Ok(git::message(situation)),
        Intent::List(things) => declarations::list(situation, things),
        Intent::Look(what) => look::look(situation, &what),
        Intent::Unknown(words) => look::guess(situation, &words),
        Intent::Error => errors::explain(situation),
        Intent::Run(command) => repair::run(situation, &command),
        Intent::Test => repair::test(situation),
        Intent::Fix { named, in_tests } => repair::fix(situation, &named, in_tests),
        Intent::Create { path, text } => edit::create(situation, &path, &text),
        Intent::Append { text, path } => edit::append(situation, &text, &path),
        Intent::Delete { path } => edit::delete(situation, &path),
        Intent::Replace { old, new, path } => edit::replace(situation, &old, &new, path.as_deref()),
        Intent::Spaces { path } => edit::spaces(situation, &path),
        Intent::Set { terms, value } => edit::set(situation, &terms, &value),
        Intent::Comment { names, text } => write::comment(situation, &names, text.as_deref()),
        Intent::WriteTest { names } => write::test(situation, &names),
        Intent::Readme => write::readme(situation),
        Intent::Fetch(url) => look::fetch(situation, &url),
    }
}

/// What the final answer has to be, where the caller wants one of a shape.
fn shape(request: &Request) -> Option<&Value> {
    request.tools.iter().find(|tool| tool.name == FINAL).map(|tool| &tool.schema)
}

/// The tool that takes an answer of a shape.
const FINAL: &str = "StructuredOutput";

/// Submits the answer as its schema wants it, once.
fn shaped(situation: &Situation, schema: &Value, parts: &[Part]) -> Vec<Part> {
    if let Some(step) = situation.of_tool(FINAL).next() {
        return vec![say(if step.ok() { "Submitted.".into() } else { step.text() })];
    }
    let text: Vec<&str> =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect();
    match facts::shaped(situation, schema, &text.join("\n\n")) {
        Some(answer) => vec![tool(FINAL, answer)],
        None => vec![say(
            "I cannot fill that schema: I only know what a manifest says of a project, such as `name` and `version`.",
        )],
    }
}

/// Follows the first answer of a session.
const NOTE: &str = "\n\n---\n*This is the offline model: it follows fixed recipes and does not reason. For a real one, \
    `/model` takes an API key or finds a local server (Ollama, llama.cpp, LM Studio).*";

const ABILITIES: &str = "I am the offline model of cocode. I use the real tools, and you approve every change. Try:\n\n\
     - `explain this repository`, `explain src/main.rs`, `what does <name> do?`\n\
     - `where is <name> defined?`, `who calls <name>?`, `where are links parsed?`\n\
     - `how do I run this?`, `which dependencies?`, `how many lines?`, `list the TODOs`\n\
     - `what changed recently?`, `who wrote this?`, `write a commit message`\n\
     - `run the tests`, `why does the test fail?`, `fix the failing test`\n\
     - `rename <name> to <other>`, `set TIMEOUT to 10`, ``replace `old` with `new` in <file>``\n\
     - `add a docstring to <name>`, `add a test for <name>`, `write a README`\n\
     - `` create notes.md with `text` ``, ``append `text` to <file>``, `delete <file>`\n\
     - `` run `<command>` ``, `explain this error: …`";

/// One call since the prompt, with its result.
struct Step<'a> {
    call: &'a ToolCall,
    result: &'a ToolResult,
}

impl Step<'_> {
    fn ok(&self) -> bool {
        self.result.outcome == Outcome::Ok
    }

    fn text(&self) -> String {
        self.result.text()
    }

    fn input(&self, key: &str) -> &str {
        self.call.input.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// What the model has to continue with.
struct Situation<'a> {
    prompt: String,
    steps: Vec<Step<'a>>,
    /// Nothing was answered before this prompt.
    first_turn: bool,
    /// The working directory, as the environment block names it.
    cwd: String,
}

impl<'a> Situation<'a> {
    fn of(request: &'a Request) -> Situation<'a> {
        let messages = &request.messages;
        let at = messages.iter().rposition(|message| message.kind == Kind::Prompt).unwrap_or(0);
        let prompt = messages.get(at).map(|message| message.text()).unwrap_or_default();
        let after = messages.get(at..).unwrap_or_default();
        let results: Vec<&ToolResult> = after.iter().flat_map(|message| message.results()).collect();
        let mut steps: Vec<Step> = after
            .iter()
            .flat_map(|message| message.calls())
            .filter_map(|call| Some(Step { call, result: results.iter().find(|result| result.id == call.id)? }))
            .collect();
        // What led to an approved plan is not part of carrying it out.
        if let Some(approved) = steps.iter().rposition(|step| step.call.name == "ExitPlanMode" && step.ok()) {
            steps.drain(..=approved);
        }
        let cwd = messages
            .iter()
            .flat_map(|message| message.text().lines().map(str::to_owned).collect::<Vec<_>>())
            .find_map(|line| line.strip_prefix("Working directory: ").map(str::to_owned))
            .unwrap_or_default();
        let first_turn = !messages[..at.min(messages.len())].iter().any(|message| message.role == Role::Assistant);
        Situation { prompt, steps, first_turn, cwd }
    }

    /// Results of one tool, in order.
    fn of_tool(&self, name: &str) -> impl Iterator<Item = &Step<'a>> {
        self.steps.iter().filter(move |step| step.call.name == name)
    }

    /// The results of these calls, or (`Err`) those of them that are still to be made, with a sentence before the first.
    fn need<const N: usize>(&self, opening: &str, calls: [Part; N]) -> Result<[&Step<'a>; N], Vec<Part>> {
        self.need_all(opening, calls.into())?.try_into().map_err(|_| Vec::new())
    }

    fn need_all(&self, opening: &str, calls: Vec<Part>) -> Result<Vec<&Step<'a>>, Vec<Part>> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for part in calls {
            let Part::Tool { name, input } = &part else { continue };
            match self.steps.iter().find(|step| step.call.name == *name && step.call.input == *input) {
                Some(step) => found.push(step),
                None => missing.push(part),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        if !opening.is_empty() {
            missing.insert(0, say(opening));
        }
        Err(missing)
    }

    /// The files in an answer of Glob or of Grep, as the user would write them.
    fn paths_of(&self, step: &Step) -> Vec<String> {
        let text = if step.ok() { step.text() } else { String::new() };
        let lines = text.lines().map(|line| self.short(line.trim()).to_owned());
        lines.filter(|line| !line.is_empty() && !line.contains(' ')).collect()
    }

    /// An answer when the user or a rule said no: the recipes have no second way.
    fn refused(&self) -> Option<String> {
        let last = self.steps.last()?;
        (last.result.outcome == Outcome::Denied).then(|| {
            let changed: Vec<String> = self
                .steps
                .iter()
                .filter(|step| step.ok() && matches!(step.call.name.as_str(), "Edit" | "Write"))
                .map(|step| format!("`{}`", self.short(step.input("file_path"))))
                .collect();
            let state = match changed.first() {
                None => "Nothing was changed.".to_owned(),
                Some(file) => format!("What I changed before that in {file} is still there; `/undo` reverts it."),
            };
            let what = match last.input("command") {
                "" => String::new(),
                command => format!(" (`{}`)", command.lines().next().unwrap_or_default()),
            };
            format!("`{}`{what} was denied, so I stopped. {state} What should I do instead?", last.call.name)
        })
    }

    /// The name of the working directory.
    fn folder(&self) -> &str {
        self.cwd.rsplit('/').next().unwrap_or("this folder")
    }

    /// A path as the user would write it.
    fn short<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.cwd.as_str()).map_or(path, |rest| rest.trim_start_matches('/'))
    }
}

fn tool(name: &str, input: Value) -> Part {
    Part::Tool { name: name.into(), input }
}

fn say(text: impl Into<String>) -> Part {
    Part::Text(text.into())
}

/// The answer, in one text.
fn tell(text: impl Into<String>) -> Recipe {
    Ok(vec![say(text)])
}

/// Each of them once, in order.
fn once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

fn read(path: &str) -> Part {
    tool("Read", json!({ "file_path": path }))
}

fn bash(command: &str, description: &str) -> Part {
    tool("Bash", json!({ "command": command, "description": description }))
}

/// The names in the result of LS, without the slash of a folder and the target of a link.
fn listed(text: &str) -> Vec<String> {
    // The first line names the folder itself; names stand indented below it.
    let names = text.lines().filter_map(|line| line.strip_prefix("  "));
    let plain = |name: &str| name.split(" -> ").next().unwrap_or_default().trim_end_matches('/').to_owned();
    names.map(plain).filter(|name| name != "(empty)").collect()
}

/// The lines of a Read result without their numbers.
fn unnumbered(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once('→')?;
            number.trim().parse::<u64>().ok()?;
            Some(rest.to_owned())
        })
        .collect()
}

fn ls() -> Part {
    tool("LS", json!({ "path": "." }))
}

fn glob(pattern: &str) -> Part {
    tool("Glob", json!({ "pattern": pattern }))
}

/// Lines of files that match, with their places.
fn grep(pattern: &str, limit: usize) -> Part {
    tool("Grep", json!({ "pattern": pattern, "output_mode": "content", "-n": true, "-i": true, "head_limit": limit }))
}

/// The text with a capital letter first.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// `s`, where there are several.
fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Rows of a list, the first of them, and how many more there are.
fn rows(all: &[String], most: usize) -> String {
    let mut text: String = all.iter().take(most).map(|row| format!("- {row}\n")).collect();
    if all.len() > most {
        text.push_str(&format!("- … and {} more\n", all.len() - most));
    }
    text
}

/// The last lines of an output, in a fence.
fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let from = all.len().saturating_sub(lines);
    format!("```text\n{}\n```", all[from..].join("\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::{Block, CallId, Message};
    use crate::provider::{Purpose, Thinking};

    /// Plays a conversation: each row is what the tool called next answers. Returns every step as text.
    fn play(prompt: &str, answers: &[(&str, Outcome)]) -> Vec<String> {
        let mut messages =
            vec![Arc::new(Message::reminder("Working directory: /w")), Arc::new(Message::prompt(prompt))];
        let mut answers = answers.iter();
        let mut trace = Vec::new();
        for round in 0..20u64 {
            let request = Request {
                model: "offline".into(),
                system: "".into(),
                tools: Arc::new([]),
                messages: messages.clone(),
                media: Default::default(),
                max_output: 1000,
                thinking: Thinking::Unset,
                purpose: Purpose::Main,
                cache_key: String::new(),
                web_search: None,
                frontier: None,
            };
            let (mut blocks, mut results) = (Vec::new(), Vec::new());
            for (at, part) in reply(&request).into_iter().enumerate() {
                match part {
                    Part::Text(text) => {
                        trace.push(text.lines().next().unwrap_or_default().to_owned());
                        blocks.push(Block::text(text));
                    }
                    Part::Tool { name, input } => {
                        trace.push(format!("{name} {input}"));
                        let id = CallId(format!("c{round}_{at}"));
                        let (text, outcome) = answers.next().expect("an answer for each call");
                        results.push(ToolResult::of_text(id.clone(), *outcome, *text));
                        blocks.push(Block::ToolCall(ToolCall::new(id, name, input)));
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
            messages.push(Arc::new(Message::reply(blocks)));
            if results.is_empty() {
                return trace;
            }
            messages.push(Arc::new(Message::tool_results(results)));
        }
        panic!("no end: {trace:#?}");
    }

    #[test]
    fn repairs_a_failing_test_by_trying_small_changes() {
        use Outcome::{Error, Ok};
        let source = "     1→pub fn last_page(items: usize, per_page: usize) -> usize {\n     2→    items / per_page - 1\n     3→}\n";
        let failing = "---- tests::rounds_up stdout ----\nthread 'tests::rounds_up' panicked at src/lib.rs:9:9:\nassertion failed\ntest result: FAILED";
        let trace = play(
            "Fix the failing test",
            &[
                ("/w/\n  src/\n  Cargo.toml\n", Ok),
                ("No files match.", Ok),
                (failing, Error),
                ("src/lib.rs", Ok),
                (source, Ok),
                ("edited", Ok),
                ("test result: ok", Ok),
            ],
        );
        assert_eq!(trace[1], r#"LS {"path":"."}"#);
        assert_eq!(trace[4], r#"Bash {"command":"cargo test","description":"Run the tests"}"#);
        assert!(trace[8].starts_with("Read"), "{trace:#?}");
        assert!(trace[10].starts_with("Edit"), "{trace:#?}");
        assert!(trace.iter().any(|line| line.starts_with("The tests pass now")), "{trace:#?}");
    }

    #[test]
    fn searches_where_the_words_meet_and_in_files_named_for_the_first() {
        use Outcome::Ok;
        let none = ("", Ok);
        let found = [
            none,
            none,
            ("/w/src/config.rs", Ok),
            ("src/config.rs:7:fn parse() {", Ok),
            ("notes.md:3:config parsing", Ok),
        ];
        let trace = play("where is the settings file parsed?", &found);
        assert!(trace[3].contains("(config|setting|conf)"), "{trace:#?}");
        assert!(trace[4].contains("{**/*pars*}") || trace[4].contains("pars"), "{trace:#?}");
        assert!(trace.last().is_some_and(|line| line.contains("Most likely `src/config.rs`")), "{trace:#?}");
    }

    #[test]
    fn a_refusal_ends_the_recipe() {
        let trace = play("delete notes.md", &[("no", Outcome::Denied)]);
        assert!(trace[2].starts_with("`Bash` (`rm -- 'notes.md'`) was denied"), "{trace:#?}");
    }

    #[test]
    fn commits_in_the_style_of_the_repository() {
        fn check(line: &str, status: &str, log: &str, want: &[&str]) {
            let state = format!("# branch.oid abc\n# branch.head main\n{status}");
            let shown = ("abc subject\n a.txt | 1 +", Outcome::Ok);
            let staged = ("", Outcome::Ok);
            let again = "# branch.head main\n1 M. N... 1 1 1 0 0 src/parse.rs";
            let mut answers = vec![(state.as_str(), Outcome::Ok), ("On branch main", Outcome::Ok), (log, Outcome::Ok)];
            match want.first() {
                Some(first) if first.starts_with("git add") => {
                    answers.extend([staged, (again, Outcome::Ok), staged, shown]);
                }
                _ => answers.extend([staged, shown]),
            }
            let trace = play(line, &answers);
            let commands: Vec<String> = trace
                .iter()
                .filter_map(|line| {
                    Some(serde_json::from_str::<Value>(line.strip_prefix("Bash ")?).unwrap()["command"].to_string())
                })
                .map(|command| serde_json::from_str(&command).unwrap())
                .filter(|command: &String| !command.starts_with("git status") && !command.starts_with("git log"))
                .collect();
            assert_eq!(commands, want, "{trace:#?}");
        }
        let one = "1 M. N... 1 1 1 0 0 src/parse.rs";
        check("/commit", one, "Fix a thing\nAdd another", &["git commit -m 'Update src/parse.rs'"]);
        check("/commit", one, "fix a thing\nadd another", &["git commit -m 'update src/parse.rs'"]);
        check("/commit", one, "feat: a\nfix(x): b\nMerge", &["git commit -m 'chore: update src/parse.rs'"]);
        check("/commit", one, "parser: a\ntui/view: b", &["git commit -m 'src: update src/parse.rs'"]);
        check("/commit", one, "", &["git commit -m 'Update src/parse.rs'"]);
        check(
            "/commit",
            "1 A. N... 1 1 1 0 0 a b.md\n1 A. N... 1 1 1 0 0 c.md",
            "docs: x",
            &["git commit -m 'docs: add a b.md and c.md'"],
        );
        check("/commit", "2 R. N... 1 1 1 0 0 R100 new.rs\told.rs", "X", &["git commit -m 'Rename new.rs'"]);
        check("/user:commit don't panic", one, "", &["git commit -m 'don'\\''t panic'"]);
        check(
            "/commit src/parse.rs",
            "1 .M N... 1 1 1 0 0 src/parse.rs\n? other",
            "",
            &["git add -- 'src/parse.rs'", "git commit -m 'Update src/parse.rs'"],
        );
        check("/commit all", "? src/", "", &["git add --all", "git commit -m 'Update src/parse.rs'"]);
    }

    #[test]
    fn edits_after_reading() {
        let trace =
            play("replace `cat` with `dog` in pets.txt", &[("     1→a cat\n", Outcome::Ok), ("edited", Outcome::Ok)]);
        assert_eq!(trace[1], r#"Read {"file_path":"pets.txt"}"#);
        assert_eq!(
            trace[3],
            r#"Edit {"file_path":"pets.txt","old_string":"cat","new_string":"dog","replace_all":true}"#
        );
    }
}
