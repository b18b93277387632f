//! What servers offer, by the names under which rules and the model know it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderName;
use serde_json::{Map, Value};

use crate::message::unmarked;
use crate::stdx::ansi;
use crate::stdx::hash::sha256_hex;
use crate::stdx::schema::Schema;

/// What names of tools begin with.
const PREFIX: &str = "mcp__";
/// Longest name that every provider takes.
const NAME: usize = 64;
/// Most characters of what is said of a resource, and longest address of one in bytes.
const ABOUT: usize = 120;
const URI: usize = 2048;
/// Most arguments of a prompt.
const ARGUMENTS: usize = 16;
/// Most characters of a description that are kept.
const DESCRIPTION: usize = 2048;

/// Whether a name is that of a server's tool.
pub fn is_tool(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Text of a server as the model gets it: nothing in it turns the reading direction, hides, or looks like a note of ours.
pub fn told(text: &str) -> String {
    unmarked(&ansi::visible(&ansi::clean(text))).into_owned()
}

/// One tool of a server.
#[derive(Debug, Clone)]
pub struct Tool {
    /// `mcp__server__tool`.
    pub name: String,
    /// Its name before it was shortened, or made to differ from another one's: rules against that are rules against it.
    pub whole: Option<String>,
    /// What the server calls it.
    pub own: String,
    pub description: String,
    /// What arguments must fit.
    pub schema: Value,
    /// None: the schema has keywords that only the server can check.
    pub check: Option<Arc<Schema>>,
    /// What the server claims: it changes nothing.
    pub read_only: bool,
}

impl Tool {
    /// The headers in which a request over HTTP says again what some of its arguments are, for proxies on the way.
    pub(super) fn mirrored(&self, arguments: &Map<String, Value>) -> Vec<(String, String)> {
        let named = self.schema["properties"].as_object().into_iter().flatten();
        let header = |(name, schema): (&String, &Value)| {
            let header = format!("mcp-param-{}", schema.get("x-mcp-header")?.as_str()?);
            HeaderName::from_bytes(header.as_bytes()).ok()?;
            let value = match arguments.get(name)? {
                Value::String(text) => text.clone(),
                value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
                _ => return None,
            };
            Some((header, in_header(&value)))
        };
        named.filter_map(header).collect()
    }
}

/// A value as headers have it.
pub(super) fn in_header(value: &str) -> String {
    let plain = value.chars().all(|c| matches!(c, ' '..='~')) && value.trim() == value;
    match plain && !value.starts_with("=?base64?") {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    }
}

/// Why a tool cannot be called over HTTP in the newer era: its schema wants headers that there cannot be.
pub(super) fn misheaded(schema: &Value) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        let Some(header) = schema.get("x-mcp-header") else { continue };
        let property = super::inbound::short(property);
        let name = header.as_str().unwrap_or_default();
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Some(format!("`{property}` names a header that is not valid"));
        }
        if !matches!(schema["type"].as_str(), Some("string" | "integer" | "boolean")) {
            return Some(format!("`{property}` cannot be a header: only strings, integers and booleans can"));
        }
        if names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Some(format!("`{property}` names the same header as another argument"));
        }
        names.push(name.to_owned());
    }
    None
}

/// A prompt that a server has ready for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// `mcp__server__prompt`.
    pub name: String,
    /// What the server calls it.
    pub own: String,
    pub description: String,
    /// Names of its arguments in order, and whether each has to be given.
    pub arguments: Vec<(String, bool)>,
}

impl Prompt {
    /// What may follow its name: `<file> [style]`.
    pub fn hint(&self) -> Option<String> {
        let one = |(name, needed): &(String, bool)| if *needed { format!("<{name}>") } else { format!("[{name}]") };
        let all: Vec<String> = self.arguments.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// Words as its arguments, in order; the last one takes all that is left.
    ///
    /// # Errors
    /// One that has to be given is not.
    pub(super) fn filled(&self, words: &str) -> Result<Map<String, Value>, String> {
        let (mut filled, mut rest) = (Map::new(), words.trim());
        for (at, (name, needed)) in self.arguments.iter().enumerate() {
            let last = at + 1 == self.arguments.len();
            let (word, more) = match rest.split_once(char::is_whitespace) {
                Some((word, more)) if !last => (word, more.trim_start()),
                _ => (rest, ""),
            };
            rest = more;
            match word {
                "" if *needed => {
                    return Err(format!("/{} needs {}", self.name, self.hint().unwrap_or_default()));
                }
                "" => {}
                word => drop(filled.insert(name.clone(), word.into())),
            }
        }
        Ok(filled)
    }
}

/// The prompts of a server as it lists them.
pub(super) fn prompts(server: &str, listed: &[Value]) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = Vec::new();
    for given in listed {
        let Some(own) = given["name"].as_str().filter(|own| !own.is_empty()) else { continue };
        let mut name = name_of(server, own);
        if prompts.iter().any(|other| other.name == name) {
            if prompts.iter().any(|other| other.own == own) {
                continue;
            }
            name = shortened(&name, server, own);
        }
        let argument = |given: &Value| {
            let name: String = ansi::shown(given["name"].as_str()?).chars().take(NAME).collect();
            Some((name, given["required"] == true))
        };
        let arguments = given["arguments"].as_array().into_iter().flatten().take(ARGUMENTS).filter_map(argument);
        let description = given["description"].as_str().or(given["title"].as_str()).unwrap_or_default();
        let description = told(&description.chars().take(DESCRIPTION).collect::<String>());
        prompts.push(Prompt { name, own: own.to_owned(), description, arguments: arguments.collect() });
    }
    prompts
}

/// Something that a server lets the user attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    /// What it is, in one line.
    pub about: String,
}

/// The resources of a server as it lists them. One whose address cannot be typed is left out.
pub(super) fn resources(listed: &[Value]) -> Vec<Resource> {
    let one = |given: &Value| {
        let uri = given["uri"].as_str().filter(|uri| !uri.is_empty() && uri.len() <= URI)?;
        let plain = !uri.contains(|c: char| c.is_control() || c == '"') && ansi::visible(uri) == uri;
        let about =
            [&given["title"], &given["name"], &given["description"]].map(|text| text.as_str().unwrap_or_default());
        let about = about.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
        let about: String = told(about).split_whitespace().collect::<Vec<_>>().join(" ");
        plain.then(|| Resource { uri: uri.to_owned(), about: about.chars().take(ABOUT).collect() })
    };
    listed.iter().filter_map(one).collect()
}

/// The tools of a server as it lists them. What cannot be used is left out and told of.
pub(super) fn tools(server: &str, listed: &[Value], told: &mut dyn FnMut(String)) -> Vec<Tool> {
    let (mut tools, mut names) = (Vec::new(), HashSet::new());
    for given in listed {
        let Some(own) = given["name"].as_str().filter(|own| !own.is_empty()) else {
            told("lists a tool without a name".to_owned());
            continue;
        };
        let schema = match given.get("inputSchema") {
            Some(Value::Object(schema)) => Value::Object(schema.clone()),
            _ => Value::Object(Map::from_iter([("type".to_owned(), "object".into())])),
        };
        let mut name = name_of(server, own);
        if names.contains(&name) {
            if tools.iter().any(|tool: &Tool| tool.own == own) {
                told(format!("lists the tool {:?} twice", super::inbound::short(own)));
                continue;
            }
            name = shortened(&name, server, own);
        }
        names.insert(name.clone());
        let whole = whole_name(server, own);
        let description = given["description"].as_str().or(given["title"].as_str()).unwrap_or_default();
        let description: String = ansi::clean(description).chars().take(DESCRIPTION).collect();
        let hints = &given["annotations"];
        tools.push(Tool {
            whole: (whole != name).then_some(whole),
            name,
            own: own.to_owned(),
            description: description.trim().to_owned(),
            check: Schema::new(schema.clone()).ok().map(Arc::new),
            schema: plain(schema),
            read_only: hints["readOnlyHint"] == true && hints["destructiveHint"] != true,
        });
    }
    tools
}

/// The schema without what says nothing to a model.
fn plain(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    schema
}

fn whole_name(server: &str, own: &str) -> String {
    let mapped = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
    };
    format!("{PREFIX}{}__{}", mapped(server), mapped(own))
}

fn name_of(server: &str, own: &str) -> String {
    let name = whole_name(server, own);
    if name.len() > NAME { shortened(&name, server, own) } else { name }
}

/// A name of its own for what has too long a name, or one that another has.
fn shortened(name: &str, server: &str, own: &str) -> String {
    let hash = sha256_hex(format!("{} {server}{own}", server.len()).as_bytes());
    let hash = &hash[..8];
    format!("{}_{hash}", &name[..name.len().min(NAME - 1 - hash.len())])
}

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct Found {
    pub tool: Arc<Tool>,
}

/// The tools that fit the words best, best first. `select:a,b` names them.
pub(super) fn search(tools: &[Arc<Tool>], query: &str, limit: usize) -> Vec<Found> {
    if let Some(names) = query.trim().strip_prefix("select:") {
        let wanted: Vec<&str> = names.split(',').map(str::trim).collect();
        let is = |tool: &Arc<Tool>| wanted.iter().any(|name| tool.name == *name || tool.own == *name);
        return tools.iter().filter(|tool| is(tool)).map(|tool| Found { tool: tool.clone() }).take(limit).collect();
    }
    let words = words(query);
    if words.is_empty() {
        return tools.iter().take(limit).map(|tool| Found { tool: tool.clone() }).collect();
    }
    // Okapi BM25 over short texts; a word in the name counts for several.
    let documents: Vec<(HashMap<String, f64>, f64)> = tools.iter().map(|tool| document(tool)).collect();
    let average = documents.iter().map(|(_, length)| length).sum::<f64>() / documents.len().max(1) as f64;
    let count = documents.len() as f64;
    let weight = |word: &str| {
        let with = documents.iter().filter(|(counts, _)| matches(counts, word) > 0.0).count() as f64;
        (1.0 + (count - with + 0.5) / (with + 0.5)).ln()
    };
    let weights: Vec<(&String, f64)> = words.iter().map(|word| (word, weight(word))).collect();
    let score = |(counts, length): &(HashMap<String, f64>, f64)| -> f64 {
        let each = weights.iter().map(|(word, weight)| {
            let times = matches(counts, word);
            weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average.max(1.0)))
        });
        each.sum()
    };
    let mut scored: Vec<(f64, usize)> = documents
        .iter()
        .enumerate()
        .map(|(at, document)| (score(document), at))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(limit).map(|(_, at)| Found { tool: tools[at].clone() }).collect()
}

/// How often a word, or one that begins with it, is in a document.
fn matches(counts: &HashMap<String, f64>, word: &str) -> f64 {
    match counts.get(word) {
        Some(times) => *times,
        None if word.len() >= 3 => {
            counts.iter().filter(|(other, _)| other.starts_with(word)).map(|(_, times)| times / 2.0).sum()
        }
        None => 0.0,
    }
}

fn document(tool: &Tool) -> (HashMap<String, f64>, f64) {
    let mut counts = HashMap::new();
    let mut length = 0.0;
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            *counts.entry(word).or_insert(0.0) += weight;
            length += 1.0;
        }
    };
    add(tool.name.trim_start_matches(PREFIX), 3.0);
    add(&tool.description, 1.0);
    for name in tool.schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
        add(name, 1.0);
    }
    (counts, length)
}

/// The words of a text in lower case; `camelCase` has two.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut lower) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && lower);
        if ends && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offered(listed: &[Value]) -> (Vec<Arc<Tool>>, Vec<String>) {
        let mut told = Vec::new();
        let tools = tools("srv", listed, &mut |text| told.push(text));
        (tools.into_iter().map(Arc::new).collect(), told)
    }

    #[test]
    fn names_are_mapped_and_stay_apart() {
        let long = "x".repeat(80);
        let listed: Vec<Value> = ["read_file", "a.b", "a/b", "read_file", "", &long, "ünï"]
            .iter()
            .map(|name| json!({"name": name}))
            .collect();
        let (tools, told) = offered(&listed);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names[..2], ["mcp__srv__read_file", "mcp__srv__a_b"]);
        assert!(names[2].starts_with("mcp__srv__a_b_") && names[2].len() == "mcp__srv__a_b_".len() + 8, "{}", names[2]);
        assert_eq!((names[3].len(), tools[3].own.as_str()), (NAME, long.as_str()));
        assert_eq!(names[4], "mcp__srv___n_");
        let whole: Vec<Option<&str>> = tools.iter().map(|tool| tool.whole.as_deref()).collect();
        assert_eq!(whole, [None, None, Some("mcp__srv__a_b"), Some(&*format!("mcp__srv__{long}")), None]);
        assert_eq!(told, ["lists the tool \"read_file\" twice", "lists a tool without a name"]);
    }

    #[test]
    fn a_claim_to_only_read_counts_where_nothing_speaks_against_it() {
        let hints = [json!({"readOnlyHint": true}), json!({"readOnlyHint": true, "destructiveHint": true}), json!({})];
        let listed: Vec<Value> =
            hints.iter().enumerate().map(|(at, hint)| json!({"name": at.to_string(), "annotations": hint})).collect();
        assert_eq!(offered(&listed).0.iter().map(|tool| tool.read_only).collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn arguments_are_said_again_in_headers_where_the_schema_wants_that() {
        let named = |header: &str| json!({"type": "string", "x-mcp-header": header});
        let properties = json!({
            "region": named("Region"), "text": named("Text"), "count": named("Count"), "odd": named("a b"), "plain": {},
            "absent": named("Absent"), "list": named("List"),
        });
        let schema = json!({"type": "object", "properties": properties});
        let (tools, _) = offered(&[json!({"name": "t", "inputSchema": schema})]);
        let given = json!({"region": "eu west", "text": "é\n", "count": 3, "odd": "x", "plain": "x", "list": []});
        let want = [("mcp-param-Region", "eu west"), ("mcp-param-Text", "=?base64?w6kK?="), ("mcp-param-Count", "3")];
        let want = want.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(tools[0].mirrored(given.as_object().unwrap()), want);
    }

    #[test]
    fn a_schema_that_wants_impossible_headers_is_found() {
        let field = |kind: &str, header: Value| json!({"type": kind, "x-mcp-header": header});
        for (properties, fault) in [
            (json!({"a": field("string", json!("A")), "b": field("integer", json!("B")), "c": {"type": "object"}}), ""),
            (json!({"a": field("string", json!(""))}), "not valid"),
            (json!({"a": field("string", json!("A b"))}), "not valid"),
            (json!({"a": field("string", json!("A:b"))}), "not valid"),
            (json!({"a": field("string", json!("é"))}), "not valid"),
            (json!({"a": field("string", json!(3))}), "not valid"),
            (json!({"a": field("number", json!("A"))}), "cannot be a header"),
            (json!({"a": field("array", json!("A"))}), "cannot be a header"),
            (json!({"a": field("string", json!("A")), "b": field("string", json!("a"))}), "the same header"),
        ] {
            let found = misheaded(&json!({ "properties": properties })).unwrap_or_default();
            assert!(found.contains(fault) && found.is_empty() == fault.is_empty(), "{properties}: {found}");
        }
    }

    #[test]
    fn prompts_take_words_as_their_arguments() {
        let listed = json!([
            {"name": "go", "arguments": [{"name": "a", "required": true}, {"name": "b"}]},
            {"name": "go"}, {"name": ""}, {"title": "x"}, {"name": "g o"}, {"name": "g.o"},
        ]);
        let prompts = prompts("srv", listed.as_array().unwrap());
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!((names[0], names[1], names.len()), ("mcp__srv__go", "mcp__srv__g_o", 3));
        assert!(names[2].starts_with("mcp__srv__g_o_"), "two names that look alike stay two: {names:?}");
        for (words, want) in [
            ("x", json!({"a": "x"})),
            (" x  y z ", json!({"a": "x", "b": "y z"})),
            ("", json!("/mcp__srv__go needs <a> [b]")),
        ] {
            assert_eq!(prompts[0].filled(words).map_or_else(Value::from, Value::from), want, "{words:?}");
        }
        assert_eq!(prompts[1].filled("more").unwrap(), Map::new(), "one that takes nothing gets nothing");
    }

    #[test]
    fn the_best_tool_comes_first() {
        let tool = |name: &str, about: &str, argument: &str| {
            let properties = Map::from_iter([(argument.to_owned(), json!({"type": "string"}))]);
            json!({"name": name, "description": about, "inputSchema": {"type": "object", "properties": properties}})
        };
        let (tools, _) = offered(&[
            tool("create_issue", "Creates an issue in a repository", "title"),
            tool("listIssues", "Lists the issues of a repository", "state"),
            tool("query", "Runs SQL", "statement"),
            tool("noise", "Nothing of interest at all", "x"),
        ]);
        let found = |query: &str, limit: usize| {
            search(&tools, query, limit).into_iter().map(|found| found.tool.own.clone()).collect::<Vec<_>>()
        };
        assert_eq!(found("create issue", 2), ["create_issue", "listIssues"]);
        assert_eq!(found("list issues", 1), ["listIssues"]);
        assert_eq!(found("sql", 5), ["query"]);
        assert_eq!(found("state", 1), ["listIssues"]);
        // The beginning of a word finds it, too.
        assert_eq!(found("repo", 5), ["create_issue", "listIssues"]);
        assert_eq!(found("zebra", 5), [""; 0]);
        assert_eq!(found("", 2), ["create_issue", "listIssues"]);
        assert_eq!(found("select:query, mcp__srv__noise", 5), ["query", "noise"]);
    }
}
