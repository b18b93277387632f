//! McpCall: calls a tool of an MCP server. Everybody but the model knows the call by the name of that tool: the log, rules, hooks
//! and the screen. What the model has written is put back into each request.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::mcp::{Caller, Fault, Named, Servers, Tool as Remote, is_tool, told};
use crate::message::{Block, Content, Display, Message, Outcome, ToolCall};
use crate::permission::Access;
use crate::provider::ToolSpec;
use crate::session::store::Store;
use crate::stdx::ansi;

use super::limit::Spool;
use super::{Call, Context, Dirs, Manners, Offered, Output, Tool, elicitation, file, input, media};

/// What the model calls.
pub const NAME: &str = "McpCall";

/// Most characters of a schema, or of what is wrong with arguments, in an error.
const TOLD: usize = 4096;
/// Most characters of a prompt or a resource.
const FETCHED: usize = 60_000;
/// Most characters of a title.
const TITLE: usize = 200;

pub(super) struct McpCall {
    servers: Arc<Servers>,
    spec: ToolSpec,
}

impl McpCall {
    pub(super) fn new(servers: Arc<Servers>) -> McpCall {
        let schema = json!({
            "type": "object",
            "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["tool", "arguments"],
        });
        let description = include_str!("../../../assets/tools/mcp_call.md").trim().to_owned();
        McpCall { servers, spec: ToolSpec { name: NAME.to_owned(), description, schema } }
    }
}

/// A call as everybody but the model knows it.
pub fn named(call: ToolCall) -> ToolCall {
    if call.name != NAME || call.invalid.is_some() {
        return call;
    }
    let Some(name) = call.input["tool"].as_str().filter(|name| is_tool(name)) else { return call };
    let arguments = match call.input.get("arguments") {
        None | Some(Value::Null) => json!({}),
        // As models write it now and then.
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(arguments) => arguments.clone(),
    };
    ToolCall { name: name.to_owned(), input: arguments, ..call }
}

/// Messages as a model with these tools has written them: calls of servers' tools are calls of this one.
pub fn written(messages: Vec<Arc<Message>>, tools: &[ToolSpec]) -> Vec<Arc<Message>> {
    if !tools.iter().any(|tool| tool.name == NAME) {
        return messages;
    }
    let one = |message: Arc<Message>| {
        if !message.calls().any(|call| is_tool(&call.name)) {
            return message;
        }
        let mut message = (*message).clone();
        for block in &mut message.blocks {
            if let Block::ToolCall(call) = block
                && is_tool(&call.name)
            {
                let input = std::mem::take(&mut call.input);
                call.input = json!({"tool": call.name, "arguments": input});
                NAME.clone_into(&mut call.name);
            }
        }
        Arc::new(message)
    };
    messages.into_iter().map(one).collect()
}

impl Tool for McpCall {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manners(&self) -> Manners {
        Manners { offered: Offered::Below, ..Manners::CHANGES }
    }

    /// A call of a server's tool is one by the name of that.
    fn call(&self, input: &Value, _dirs: &Dirs) -> Result<Call, String> {
        Err(match input["tool"].as_str() {
            Some(tool) => format!(
                "`tool` must be the full name that ToolSearch gives, like mcp__server__tool, but is {:?}.",
                file::one_line(tool)
            ),
            None => "Give `tool`, the name of a tool, and `arguments`, an object that fits its schema.".to_owned(),
        })
    }

    fn call_named(&self, name: &str, input: &Value, dirs: &Dirs) -> Result<Call, String> {
        if !is_tool(name) {
            return self.call(input, dirs);
        }
        let (servers, name, input) = (self.servers.clone(), name.to_owned(), input.clone());
        let (access, judged) = match servers.find(&name).map_err(|text| told(&text))? {
            Named::Tool(tool) => {
                fitting(&tool, &input)?;
                let (read_only, whole, changed) = (tool.read_only, tool.whole.clone(), servers.change(&tool));
                (Access::Foreign { read_only, whole, changed }, Some(tool))
            }
            Named::Later => (Access::Foreign { read_only: false, whole: None, changed: None }, None),
        };
        let title = title(&input);
        let work = move |context: Context| async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => file::interrupted(),
                output = run(&servers, (&name, judged.as_deref()), &input, &context) => output.unwrap_or_else(|text| Output::error(told(&text))),
            }
        };
        Ok(Call::new(access, title, work))
    }
}

/// The arguments in one line.
fn title(input: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = input.as_object().into_iter().flatten().map(|(name, value)| format!("{name}: {}", text(value)));
    let line = file::one_line(&pairs.collect::<Vec<_>>().join(", "));
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The arguments as they are sent.
///
/// # Errors
/// What does not fit, with the schema.
fn fitting(tool: &Remote, given: &Value) -> Result<Map<String, Value>, String> {
    let schema = || schema_of(tool);
    let Value::Object(arguments) = given else {
        return Err(format!("`arguments` of {} must be an object.{}", tool.name, schema()));
    };
    let Some(check) = &tool.check else { return Ok(arguments.clone()) };
    let problems: Vec<String> = check.faults(given).iter().take(5).map(input::sentence).collect();
    match problems.is_empty() {
        true => Ok(arguments.clone()),
        false => Err(told(&format!("{}{}", cut(&problems.join(" ")), schema()))),
    }
}

/// What arguments must fit, as far as an error may tell it: ToolSearch tells it whole, within the limits of its results.
fn schema_of(tool: &Remote) -> String {
    let schema = tool.schema.to_string();
    match cut(&schema) {
        whole if whole.len() == schema.len() => format!("\nThe schema of its arguments: {whole}"),
        start => {
            format!("\nThe schema of its arguments begins: {start}\nToolSearch select:{} gives all of it.", tool.name)
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TOLD) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

async fn run(
    servers: &Servers,
    (name, judged): (&str, Option<&Remote>),
    input: &Value,
    context: &Context,
) -> Result<Output, String> {
    // It may still have been starting, or have changed while the user was asked.
    servers.reached(name).await;
    let Named::Tool(tool) = servers.find(name)? else {
        return Err("The server is still starting. Try again.".to_owned());
    };
    let same = |judged: &Remote| (&judged.description, &judged.schema) == (&tool.description, &tool.schema);
    if !judged.is_none_or(same) {
        return Err("The server has just changed this tool. Look at it again with ToolSearch, then call it.".to_owned());
    }
    let arguments = fitting(&tool, input)?;
    let waiting = Waiting { context, server: servers.server_of(&tool) };
    match servers.call(&tool, arguments, &waiting).await {
        Ok(result) => Ok(output(&result, context)),
        Err(fault @ Fault::Rpc { code: -32602, .. }) => Err(format!("The call failed: {fault}{}", schema_of(&tool))),
        Err(fault) => Err(format!("The call failed: {fault}.")),
    }
}

/// The call as its server knows it.
struct Waiting<'a> {
    context: &'a Context,
    server: String,
}

impl Caller for Waiting<'_> {
    fn heard(&self, progress: String) {
        // Nobody listens: then nobody misses it.
        let _ = self.context.live.send(format!("{progress}\n"));
    }

    fn asked<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Value> {
        Box::pin(elicitation::ask(self.context.host.as_ref(), &self.server, params))
    }
}

/// What the model gets of an answer.
fn output(result: &Value, context: &Context) -> Output {
    let (mut texts, pictures) = parts(result["content"].as_array().into_iter().flatten(), &context.store);
    // A server that structures its answer usually says the same in words.
    if texts.iter().all(|text| text.trim().is_empty()) && pictures.is_empty() && !result["structuredContent"].is_null()
    {
        texts.push(result["structuredContent"].to_string());
    }
    let mut text = told(&texts.join("\n"));
    if text.trim().is_empty() && pictures.is_empty() {
        "The tool answered with nothing.".clone_into(&mut text);
    }
    let outcome = if result["isError"] == true { Outcome::Error } else { Outcome::Ok };
    if pictures.is_empty() {
        return Output { outcome, ..Output::ok(text) };
    }
    // Results with pictures pass the limits whole.
    let mut content = Vec::new();
    if !text.is_empty() {
        let mut spool = Spool::new(&context.store, &context.call);
        spool.push(&text);
        content.push(Content::text(spool.finish(&context.settings)));
    }
    let count = pictures.iter().filter(|part| matches!(part, Content::Media(_))).count();
    content.extend(pictures);
    let said = if count == 1 { "1 picture".to_owned() } else { format!("{count} pictures") };
    Output { outcome, content, display: Some(Display::Line { text: said }), ..Output::ok("") }
}

/// The texts and the pictures of content.
fn parts<'a>(content: impl Iterator<Item = &'a Value>, store: &Store) -> (Vec<String>, Vec<Content>) {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for part in content {
        match one(part, store) {
            Part::Text(text) => texts.push(text),
            Part::Picture(picture) => pictures.extend(picture),
        }
    }
    (texts, pictures)
}

/// What a prompt of a server says, message by message, for the model; and its pictures.
pub fn prompted(got: &Value, store: &Store) -> (String, Vec<Block>) {
    let (mut said, mut all) = (String::new(), Vec::new());
    for message in got["messages"].as_array().into_iter().flatten() {
        let content = match &message["content"] {
            Value::Array(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (texts, pictures) = parts(content.iter(), store);
        if message["role"] == "assistant" {
            said.push_str("Assistant: ");
        }
        said.push_str(texts.join("\n").trim());
        said.push_str("\n\n");
        all.extend(pictures);
    }
    (capped(&said), shown(all))
}

/// What a resource of a server holds, for the model; and its pictures.
pub fn resource(got: &Value, store: &Store) -> (String, Vec<Block>) {
    let wrapped = got["contents"].as_array().into_iter().flatten();
    let wrapped: Vec<Value> = wrapped.map(|one| json!({"type": "resource", "resource": one})).collect();
    let (texts, pictures) = parts(wrapped.iter(), store);
    (capped(&texts.join("\n")), shown(pictures))
}

/// Pictures as a prompt has them.
fn shown(pictures: Vec<Content>) -> Vec<Block> {
    let one = |part| match part {
        Content::Media(media) => Some(Block::Media(media)),
        Content::Text { .. } => None,
    };
    pictures.into_iter().filter_map(one).collect()
}

/// Text that the user asked a server for, as far as it fits.
fn capped(text: &str) -> String {
    match text.trim().char_indices().nth(FETCHED) {
        Some((at, _)) => format!("{}\n[cut]", told(&text.trim()[..at])),
        None => told(text.trim()),
    }
}

/// One part of an answer.
enum Part {
    Text(String),
    Picture(Vec<Content>),
}

fn one(part: &Value, store: &Store) -> Part {
    let text = |key: &str| part[key].as_str().unwrap_or_default();
    match text("type") {
        "text" => Part::Text(text("text").to_owned()),
        "image" => bytes(&part["data"], "image", store),
        "audio" => Part::Text(format!("[audio, {}: cocode cannot pass it on]", ansi::visible(text("mimeType")))),
        "resource_link" => {
            let about = [text("name"), text("description")].map(ansi::visible).join(" ");
            Part::Text(format!("[resource {}: {}]", ansi::visible(text("uri")), about.trim()))
        }
        "resource" => {
            let resource = &part["resource"];
            let uri = ansi::visible(resource["uri"].as_str().unwrap_or_default());
            match resource["text"].as_str() {
                Some(text) => Part::Text(format!("[resource {uri}]\n{text}")),
                None => bytes(&resource["blob"], &format!("resource {uri}"), store),
            }
        }
        kind => Part::Text(format!("[{}: cocode does not know this kind of content]", ansi::visible(kind))),
    }
}

/// Bytes that may be a picture.
fn bytes(data: &Value, what: &str, store: &Store) -> Part {
    let decoded = data.as_str().and_then(|data| STANDARD.decode(data).ok());
    match decoded.map(|bytes| media::keep(what, bytes, store)) {
        Some(Ok(output)) => Part::Picture(output.content),
        Some(Err(problem)) => Part::Text(format!("[{problem}]")),
        None => Part::Text(format!("[{what}: not valid base64]")),
    }
}
