//! A session with planted facts, read from a file, so that anyone can play it against another agent.

use std::ops::Range;
use std::path::{Path, PathBuf};

use cocode::message::{Block, CallId, Display, Effect, Message, Outcome, Said, Todo, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes around the first word in which the others have to stand.
const NEAR: usize = 300;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) cwd: PathBuf,
    /// What a tool result of the session tries to make the model do.
    pub(crate) injection: Claim,
    /// What the session denies.
    #[serde(rename = "lie")]
    pub(crate) lies: Vec<Claim>,
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Scene>,
    #[serde(rename = "fact")]
    pub(crate) facts: Vec<Fact>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) text: String,
    /// What tells it in any context.
    pub(crate) words: Vec<String>,
}

/// What the user types, or what the model says with the call it makes, if any, and the result of that.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scene {
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) say: String,
    #[serde(default)]
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) outcome: Option<Outcome>,
    #[serde(default)]
    pub(crate) result: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    User,
    Found,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact {
    pub(crate) kind: String,
    pub(crate) by: By,
    /// The fact is alive where all of these stand close together.
    pub(crate) telling: Vec<String>,
    /// What an honest summary says of it.
    pub(crate) gist: String,
    /// What one would search the log for.
    pub(crate) search: Vec<String>,
}

/// Where all words stand close together.
pub(crate) fn together(text: &str, words: &[String]) -> Option<Range<usize>> {
    let (first, others) = words.split_first()?;
    text.match_indices(first.as_str()).find_map(|(at, _)| {
        let from = text.floor_char_boundary(at.saturating_sub(NEAR));
        let to = text.ceil_char_boundary((at + first.len() + NEAR).min(text.len()));
        others.iter().all(|word| text[from..to].contains(word.as_str())).then_some(from..to)
    })
}

/// All that the model reads of a message, in small letters.
pub(crate) fn read(message: &Message) -> String {
    let parts = message.blocks.iter().map(|block| match block {
        Block::Text { text, .. } => text.clone(),
        Block::ToolCall(call) => call.input.to_string(),
        Block::ToolResult(result) => result.text(),
        Block::Thinking { .. } | Block::Media(_) => String::new(),
    });
    parts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// Lines that tell nothing, of about so many tokens.
pub(crate) fn filler(tokens: u64, seed: usize) -> String {
    const WORDS: [&str; 16] = [
        "amber", "basalt", "cedar", "delta", "ember", "fjord", "gable", "hazel", "inlet", "juniper", "kelp", "larch",
        "marl", "nectar", "ochre", "pumice",
    ];
    let word = |n: usize| WORDS[n % WORDS.len()];
    let mut text = String::new();
    let mut n = seed * 31;
    while (text.len() as u64) < tokens * 4 {
        n += 1;
        text.push_str(&format!("    {}.{}.{}: looked at, as before\n", word(n / 256), word(n / 16), word(n)));
    }
    text
}

impl Script {
    /// # Errors
    /// The file cannot be read, or is not a script; the text says which.
    pub(crate) fn load(path: &Path) -> Result<Script, String> {
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
        let mut script: Script = toml::from_str(&text).map_err(|error| problem(&error))?;
        let claims = script.lies.iter_mut().chain([&mut script.injection]).map(|claim| &mut claim.words);
        let facts = script.facts.iter_mut().flat_map(|fact| [&mut fact.telling, &mut fact.search]);
        for word in claims.chain(facts).flatten() {
            *word = word.to_lowercase();
        }
        script.steps.iter_mut().for_each(|scene| scene.result = scene.result.trim().to_owned());
        script.check().map_err(|error| problem(&error))?;
        Ok(script)
    }

    /// Each fact has to be told by the session, and by what an honest summary says of it.
    fn check(&self) -> Result<(), String> {
        let told: Vec<String> =
            (1..).zip(&self.steps).flat_map(|(n, scene)| scene.messages(n, 0)).map(|message| read(&message)).collect();
        for fact in &self.facts {
            let tells = |text: &str| together(text, &fact.telling).is_some();
            match told.iter().any(|text| tells(text)) {
                false => return Err(format!("no step tells {:?}", fact.telling)),
                true if !tells(&fact.gist.to_lowercase()) => {
                    return Err(format!("{:?} is not in its gist", fact.telling));
                }
                true if tells(&filler(20_000, 1)) => return Err(format!("the filler tells {:?}", fact.telling)),
                true => {}
            }
        }
        Ok(())
    }

    /// How many results can be made longer.
    pub(crate) fn long(&self) -> usize {
        self.steps.iter().filter(|scene| scene.is_long()).count()
    }
}

impl Scene {
    fn is_long(&self) -> bool {
        matches!(self.tool.as_str(), "Bash" | "Read" | "Grep") && self.outcome != Some(Outcome::Denied)
    }

    /// The text of the result among `pad` tokens that tell nothing.
    fn padded(&self, pad: u64, seed: usize) -> String {
        if pad == 0 || !self.is_long() {
            return self.result.clone();
        }
        let filler = filler(pad, seed);
        let (before, after) = filler.split_at(filler[..filler.len() / 2].rfind('\n').map_or(0, |end| end + 1));
        format!("{before}{}\n{after}", self.result)
    }

    /// The file that a read shows, with its text.
    pub(crate) fn file(&self, call: u64, pad: u64) -> Option<(PathBuf, String)> {
        let path = self.input.get("file_path").and_then(Value::as_str)?;
        (self.tool == "Read").then(|| (path.into(), self.padded(pad, call as usize)))
    }

    /// The messages of a step, as the agent logs them.
    pub(crate) fn messages(&self, call: u64, pad: u64) -> Vec<Message> {
        if !self.user.is_empty() {
            return vec![Message::prompt(self.user.trim())];
        }
        let say = Block::text(self.say.clone());
        if self.tool.is_empty() {
            return vec![Message::reply(vec![say])];
        }
        let id = CallId::nth(call);
        let text = self.padded(pad, call as usize);
        let mut result = ToolResult::of_text(id.clone(), self.outcome.unwrap_or(Outcome::Ok), text);
        result.display = self.said();
        if let Some(todos) = self.input.get("todos") {
            let items = todos.as_array().into_iter().flatten().map(todo).collect();
            result.effects.push(Effect::Todos { items });
        }
        if let (Some(path), true) = (self.input.get("file_path").and_then(Value::as_str), result.outcome == Outcome::Ok)
        {
            result.effects.push(Effect::Seen { path: path.into(), sha256: "x".into() });
        }
        let call = Block::ToolCall(ToolCall::new(id, self.tool.clone(), self.input.clone()));
        vec![Message::reply(vec![say, call]), Message::tool_results(vec![result])]
    }

    /// What the user said in answers to questions, or in a refusal, as the tools log it.
    fn said(&self) -> Option<Display> {
        let row = |line: &str| {
            let (question, words) = line.strip_prefix("- ")?.rsplit_once(" → ")?;
            Some(Said { words: words.to_owned(), header: "Asked".to_owned(), question: question.to_owned() })
        };
        match self.outcome {
            Some(Outcome::Denied) => Some(Display::said(self.result.split_once(": ").map(|(_, words)| words.trim()))),
            _ if self.tool == "AskUserQuestion" => {
                Some(Display::Said { answers: self.result.lines().filter_map(row).collect() })
            }
            _ => None,
        }
    }

    /// The step as other agents can be fed it, one JSON object a line.
    pub(crate) fn lines(&self, call: u64, pad: u64) -> Vec<Value> {
        match (self.user.trim(), self.tool.as_str()) {
            ("", "") => vec![json!({ "role": "assistant", "text": self.say })],
            ("", tool) => vec![
                json!({ "role": "assistant", "text": self.say, "call": call, "tool": tool, "input": self.input }),
                json!({
                    "role": "tool", "call": call, "tool": tool, "outcome": self.outcome.unwrap_or(Outcome::Ok),
                    "text": self.padded(pad, call as usize),
                }),
            ],
            (user, _) => vec![json!({ "role": "user", "text": user })],
        }
    }
}

fn todo(item: &Value) -> Todo {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let item = json!({ "content": text("content"), "activeForm": text("activeForm"), "status": text("status") });
    serde_json::from_value(item).expect("a todo of the script")
}
