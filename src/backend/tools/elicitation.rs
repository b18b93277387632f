//! What an MCP server asks the user in the course of a call: a form to fill in, or a page to open. Its words are data: they are
//! shown as plain text, and the user sees which server asks.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use url::Url;

use crate::mcp::told;
use crate::protocol::{Answer, ChoiceOption, Choices, Question};
use crate::stdx::schema::{self, Schema};

use super::{Host, input};

/// Most fields of a form, and questions that are asked at once.
const FIELDS: usize = 32;
const AT_ONCE: usize = 4;
/// Most options of a field; others can be written.
const OPTIONS: usize = 24;
/// How often what does not fit is asked again.
const TRIES: usize = 3;
/// Most characters of a message, of what is said of a field, of an option, and of a header.
const MESSAGE: usize = 2_000;
const ABOUT: usize = 500;
const LABEL: usize = 80;
const HEADER: usize = 16;
/// Longest address that is shown to be opened.
const ADDRESS: usize = 2_000;

/// Why there is nothing to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Declined,
    /// Nobody was asked, or nobody answered.
    Cancelled,
}

/// Asks the user, and answers as the protocol wants it.
pub(super) async fn ask(host: &dyn Host, server: &str, params: &Value) -> Value {
    let asked = match params["mode"].as_str() {
        Some("url") => page(host, server, params).await.map(|()| json!({"action": "accept"})),
        _ => form(host, server, params).await.map(|content| json!({"action": "accept", "content": content})),
    };
    asked.unwrap_or_else(|end| match end {
        End::Declined => json!({"action": "decline"}),
        End::Cancelled => json!({"action": "cancel"}),
    })
}

/// Asks questions; what was chosen of each.
async fn choose(host: &dyn Host, questions: Vec<Choices>) -> Result<Vec<Vec<String>>, End> {
    let count = questions.len();
    match host.ask(Question::Choices { questions }).await {
        Some(Answer::Chosen { mut answers }) => {
            answers.resize(count, Vec::new());
            Ok(answers)
        }
        Some(Answer::No { .. }) => Err(End::Declined),
        _ => Err(End::Cancelled),
    }
}

fn option(label: &str, description: &str) -> ChoiceOption {
    ChoiceOption { label: label.to_owned(), description: description.to_owned() }
}

/// The user opens the page: cocode does not look at it.
async fn page(host: &dyn Host, server: &str, params: &Value) -> Result<(), End> {
    let url = params["url"].as_str().filter(|url| url.len() <= ADDRESS).and_then(|url| Url::parse(url).ok());
    let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else { return Err(End::Cancelled) };
    let Some(place) = url.host_str() else { return Err(End::Cancelled) };
    let message = text(&params["message"], MESSAGE);
    let question = format!("The MCP server {server} asks you to open a page at {place}: {message}\n\n{url}");
    let options = vec![option(OPENED, "The call continues"), option("No", "The server is told that you declined")];
    let asked = Choices { header: "Open a page".to_owned(), question, multi: false, options };
    match choose(host, vec![asked]).await?.concat().as_slice() {
        [answer] if answer == OPENED => Ok(()),
        _ => Err(End::Declined),
    }
}

const OPENED: &str = "I opened it";

/// Asks for each field of a form, a few at once, and again for what does not fit.
async fn form(host: &dyn Host, server: &str, params: &Value) -> Result<Map<String, Value>, End> {
    let asks = format!("The MCP server {server} asks: {}", text(&params["message"], MESSAGE));
    let mut open: Vec<(Field, String)> =
        fields(&params["requestedSchema"])?.into_iter().map(|field| (field, String::new())).collect();
    if open.is_empty() {
        let options = vec![option("Yes", ""), option("No", "The server is told that you declined")];
        let asked = Choices { header: "Confirm".to_owned(), question: asks, multi: false, options };
        return match choose(host, vec![asked]).await?.concat().as_slice() {
            [answer] if answer == "Yes" => Ok(Map::new()),
            _ => Err(End::Declined),
        };
    }
    let mut content = Map::new();
    for _ in 0..TRIES {
        let mut again = Vec::new();
        while !open.is_empty() {
            let some: Vec<(Field, String)> = open.drain(..open.len().min(AT_ONCE)).collect();
            let mut questions: Vec<Choices> = some.iter().map(|(field, problem)| field.question(problem)).collect();
            if let Some(first) = questions.first_mut() {
                first.question = format!("{asks}\n\n{}", first.question);
            }
            let answers = choose(host, questions).await?;
            for ((field, _), chosen) in some.into_iter().zip(answers) {
                match field.value(&chosen) {
                    Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
                    Ok(None) => {}
                    Err(problem) => again.push((field, problem)),
                }
            }
        }
        if again.is_empty() {
            return Ok(content);
        }
        open = again;
    }
    Err(End::Cancelled)
}

/// One field of a form.
struct Field {
    name: String,
    kind: Kind,
    needed: bool,
    schema: Value,
    about: String,
    /// What can be chosen: what it is called, what is said of it, and the value; none leaves the field out.
    options: Vec<(String, &'static str, Option<Value>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// Only what is offered.
    One,
    Several,
}

/// The fields of a form in its order.
fn fields(schema: &Value) -> Result<Vec<Field>, End> {
    let given = schema["properties"].as_object().into_iter().flatten();
    let needed = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let fields: Option<Vec<Field>> = given.map(|(name, schema)| Field::read(name, schema, needed(name))).collect();
    // What cannot be asked as it is meant is not asked at all.
    fields.filter(|fields| fields.len() <= FIELDS).ok_or(End::Cancelled)
}

impl Field {
    fn read(name: &str, schema: &Value, needed: bool) -> Option<Field> {
        let listed = listed(schema);
        let (kind, mut options) = match schema["type"].as_str() {
            Some("array") => (Kind::Several, self::listed(&schema["items"])),
            Some("boolean") => (Kind::One, vec![("Yes".to_owned(), json!(true)), ("No".to_owned(), json!(false))]),
            Some("string") | None if !listed.is_empty() => (Kind::One, listed),
            Some("string") => (Kind::Text, Vec::new()),
            Some("number" | "integer") => (Kind::Number, Vec::new()),
            _ => return None,
        };
        if kind == Kind::Several && options.is_empty() {
            return None;
        }
        let default = schema.get("default").filter(|default| !default.is_null());
        if let Some(default) = default {
            match options.iter().position(|(_, value)| value == default) {
                Some(at) => {
                    let first = options.remove(at);
                    options.insert(0, first);
                }
                None if kind == Kind::Several => {
                    options.insert(0, (format!("Default: {}", shown(default)), default.clone()));
                }
                None => options.insert(0, (shown(default), default.clone())),
            }
        }
        let about = |value: &Value| if Some(value) == default { "default" } else { "" };
        let mut options: Vec<_> =
            options.into_iter().take(OPTIONS).map(|(label, value)| (label, about(&value), Some(value))).collect();
        if !needed {
            options.push(("Leave empty".to_owned(), "", None));
        }
        let title = text(&schema["title"], ABOUT);
        let title = if title.is_empty() { text(&json!(name), ABOUT) } else { title };
        let description = text(&schema["description"], ABOUT);
        let about = if description.is_empty() { title } else { format!("{title}: {description}") };
        Some(Field { name: name.to_owned(), kind, needed, schema: schema.clone(), about, options })
    }

    /// What is asked, with what is wrong with the answer before.
    fn question(&self, problem: &str) -> Choices {
        let title = text(&self.schema["title"], HEADER);
        let header = if title.is_empty() { text(&json!(self.name), HEADER) } else { title };
        let question = if problem.is_empty() { self.about.clone() } else { format!("{}\n\n{problem}", self.about) };
        let options = self.options.iter().map(|(label, about, _)| option(label, about)).collect();
        Choices { header, question, multi: self.kind == Kind::Several, options }
    }

    /// The value that was chosen; none leaves the field out.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn value(&self, chosen: &[String]) -> Result<Option<Value>, String> {
        let mut several = Vec::new();
        for words in chosen {
            let offered = self.options.iter().find(|(label, _, _)| label == words);
            let value = match offered {
                Some((_, _, None)) => return Ok(None),
                Some((_, _, Some(value))) => value.clone(),
                None => self.written(words.trim())?,
            };
            match self.kind {
                Kind::Several if !value.is_array() => several.push(value),
                _ => return self.fitting(value).map(Some),
            }
        }
        match self.kind {
            Kind::Several if !several.is_empty() => self.fitting(Value::Array(several)).map(Some),
            _ if self.needed => Err("This field has to be filled in.".to_owned()),
            _ => Ok(None),
        }
    }

    /// What the user has written as a value.
    fn written(&self, words: &str) -> Result<Value, String> {
        let number = || words.parse::<i64>().map(Value::from).ok().or_else(|| Some(json!(words.parse::<f64>().ok()?)));
        match self.kind {
            Kind::Text => Ok(json!(words)),
            Kind::Number => number().ok_or_else(|| format!("{words:?} is not a number.")),
            Kind::One | Kind::Several => {
                let same = |(label, _, value): &&(String, &str, Option<Value>)| {
                    label.eq_ignore_ascii_case(words) || value.as_ref().is_some_and(|value| value == words)
                };
                let found = self.options.iter().find(same).and_then(|(_, _, value)| value.clone());
                found.ok_or_else(|| format!("{words:?} is not one of the options."))
            }
        }
    }

    /// The value, if it is what the server wants.
    fn fitting(&self, value: Value) -> Result<Value, String> {
        let form = json!({"type": "object", "properties": {"value": self.schema}});
        // Keywords that only the server can check are left to it.
        if let Ok(form) = Schema::new(form) {
            let given = json!({ "value": value });
            if let Some(fault) = form.faults(&given).first() {
                return Err(told(&input::sentence(fault).replace("Parameter `value`", "It")));
            }
        }
        let is = |words: &str| match self.schema["format"].as_str() {
            Some("email") => words.split_once('@').is_some_and(|(name, place)| !name.is_empty() && place.contains('.')),
            Some("uri") => Url::parse(words).is_ok(),
            Some("date") => words.parse::<Date>().is_ok(),
            Some("date-time") => words.parse::<Timestamp>().is_ok(),
            _ => true,
        };
        match value.as_str() {
            Some(words) if !is(words) => Err(format!("{words:?} is not {}.", article(&self.schema["format"]))),
            _ => Ok(value),
        }
    }
}

fn article(format: &Value) -> &'static str {
    match format.as_str() {
        Some("email") => "an e-mail address",
        Some("uri") => "a URL",
        Some("date") => "a date like 2026-11-29",
        _ => "a time like 2026-11-29T12:00:00Z",
    }
}

/// The values that a schema lists, each with what it is called.
fn listed(schema: &Value) -> Vec<(String, Value)> {
    let titled = [&schema["oneOf"], &schema["anyOf"]].into_iter().find_map(Value::as_array);
    let mut all: Vec<(String, Value)> = match titled {
        Some(titled) => titled.iter().map(|one| (text(&one["title"], LABEL), one["const"].clone())).collect(),
        None => {
            let names = &schema["enumNames"];
            let named = schema::choices(schema).into_iter().enumerate();
            named.map(|(at, value)| (text(&names[at], LABEL), value.clone())).collect()
        }
    };
    all.retain(|(_, value)| value.is_string() || value.is_number());
    for at in 0..all.len() {
        let again = all[..at].iter().any(|(label, _)| *label == all[at].0);
        if all[at].0.is_empty() || again {
            all[at].0 = shown(&all[at].1);
        }
    }
    all
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bool(yes) => if *yes { "Yes" } else { "No" }.to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::String(words) => text(&json!(words), LABEL),
        value => value.to_string(),
    }
}

/// Words of a server in one line.
fn text(words: &Value, most: usize) -> String {
    let words = told(words.as_str().unwrap_or_default());
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..line[..at].char_indices().last().map_or(0, |(at, _)| at)]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::super::{AskFuture, SearchFuture};
    use super::*;

    /// Answers one question after the other, and keeps what it was asked.
    struct Person(Mutex<(VecDeque<Answer>, Vec<Choices>)>);

    impl Host for Person {
        fn ask(&self, question: Question) -> AskFuture<'_> {
            let Question::Choices { questions } = question else { panic!("{question:?}") };
            let mut state = self.0.lock().unwrap();
            state.1.extend(questions);
            let answer = state.0.pop_front();
            Box::pin(async move { answer })
        }

        fn web_search<'a>(&'a self, _: &'a str, _: &'a [String], _: &'a [String]) -> SearchFuture<'a> {
            Box::pin(async { Err("none".to_owned()) })
        }
    }

    fn chosen(words: &[&[&str]]) -> Answer {
        Answer::Chosen { answers: words.iter().map(|words| words.iter().map(ToString::to_string).collect()).collect() }
    }

    async fn asked(params: Value, answers: impl IntoIterator<Item = Answer>) -> (Value, Vec<Choices>) {
        let person = Person(Mutex::new((answers.into_iter().collect(), Vec::new())));
        let answer = ask(&person, "srv", &params).await;
        (answer, person.0.into_inner().unwrap().1)
    }

    fn form_of(properties: Value, required: &[&str]) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties, "required": required}})
    }

    #[tokio::test]
    async fn each_kind_of_field_is_asked_for_and_read() {
        let two = json!([{"const": "a", "title": "The A"}, {"const": "b", "title": "The B"}]);
        for (schema, needed, offered, words, want) in [
            (json!({"type": "string"}), true, "", "x", json!("x")),
            (json!({"type": "string", "default": "John"}), true, "John", "John", json!("John")),
            (json!({"type": "string", "default": "John"}), false, "John|Leave empty", "Leave empty", json!(null)),
            (json!({"type": "integer", "default": 30}), true, "30", "30", json!(30)),
            (json!({"type": "integer"}), true, "", "-4", json!(-4)),
            (json!({"type": "number", "default": 95.5}), true, "95.5", "95.5", json!(95.5)),
            (json!({"type": "number"}), true, "", "1.5", json!(1.5)),
            (json!({"type": "boolean", "default": false}), true, "No|Yes", "No", json!(false)),
            (json!({"type": "boolean"}), false, "Yes|No|Leave empty", "yes", json!(true)),
            (json!({"type": "string", "enum": ["a", "b"], "default": "b"}), true, "b|a", "b", json!("b")),
            (json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}), true, "A|B", "B", json!("b")),
            (json!({"type": "string", "oneOf": two}), true, "The A|The B", "the b", json!("b")),
            (json!({"type": "array", "items": {"anyOf": two}}), true, "The A|The B", "The A", json!(["a"])),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a", "b"]}),
                true,
                "Default: a, b|a|b",
                "Default: a, b",
                json!(["a", "b"]),
            ),
            (json!({"type": "string", "format": "email"}), true, "", "a@b.c", json!("a@b.c")),
        ] {
            let form = form_of(json!({"f": schema}), if needed { &["f"] } else { &[] });
            let (answer, questions) = asked(form, [chosen(&[&[words]])]).await;
            let labels: Vec<&str> = questions[0].options.iter().map(|option| option.label.as_str()).collect();
            assert_eq!(labels.join("|"), offered, "{schema}");
            let content = if want.is_null() { json!({}) } else { json!({"f": want}) };
            assert_eq!(answer, json!({"action": "accept", "content": content}), "{schema}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_asked_again_and_not_for_ever() {
        for (schema, words, problem) in [
            (json!({"type": "integer"}), "many", "\"many\" is not a number."),
            (json!({"type": "integer", "maximum": 5}), "7", "It must be at most 5, but is the number 7."),
            (json!({"type": "string", "enum": ["a"]}), "c", "\"c\" is not one of the options."),
            (json!({"type": "string", "format": "email"}), "me", "\"me\" is not an e-mail address."),
            (json!({"type": "string", "format": "uri"}), "no", "\"no\" is not a URL."),
            (json!({"type": "string", "format": "date"}), "1.1.", "\"1.1.\" is not a date like 2026-11-29."),
        ] {
            let form = form_of(json!({"f": schema}), &["f"]);
            let (answer, questions) = asked(form, vec![chosen(&[&[words]]); 9]).await;
            assert_eq!((answer, questions.len()), (json!({"action": "cancel"}), TRIES), "{schema}");
            assert!(questions[1].question.ends_with(problem), "{}", questions[1].question);
        }
        let form = form_of(json!({"a": {"type": "string"}, "b": {"type": "integer"}}), &["a", "b"]);
        let answers = [chosen(&[&["x"], &["y"]]), chosen(&[&["2"]])];
        let (answer, questions) = asked(form, answers).await;
        assert_eq!(answer["content"], json!({"a": "x", "b": 2}));
        assert_eq!(questions.len(), 3, "only what did not fit is asked again");
    }

    #[tokio::test]
    async fn a_page_is_shown_and_never_fetched() {
        let page = |url: &str| json!({"mode": "url", "message": "Log in\u{202e} <system-reminder>", "url": url});
        let (answer, questions) = asked(page("https://login.example/a?b=1"), [chosen(&[&["I opened it"]])]).await;
        assert_eq!(answer, json!({"action": "accept"}));
        assert_eq!(
            questions[0].question,
            "The MCP server srv asks you to open a page at login.example: Log in\u{fffd} [system-reminder>\n\n\
             https://login.example/a?b=1"
        );
        for (url, answers, want) in [
            ("https://a.example/", vec![chosen(&[&["No"]])], "decline"),
            ("https://a.example/", vec![Answer::No { feedback: None }], "decline"),
            ("https://a.example/", vec![Answer::Nobody { told: String::new() }], "cancel"),
            ("https://a.example/", vec![], "cancel"),
            ("javascript:alert(1)", vec![chosen(&[&["I opened it"]])], "cancel"),
            ("file:///etc/passwd", vec![chosen(&[&["I opened it"]])], "cancel"),
        ] {
            assert_eq!(asked(page(url), answers).await.0, json!({"action": want}), "{url}");
        }
    }

    #[tokio::test]
    async fn a_form_that_cannot_be_asked_is_not_accepted() {
        for schema in [json!({"f": {"type": "object"}}), json!({"f": {"type": "array", "items": {"type": "string"}}})] {
            let (answer, questions) = asked(form_of(schema, &[]), [chosen(&[&["x"]])]).await;
            assert_eq!((answer, questions), (json!({"action": "cancel"}), Vec::new()));
        }
        // One without fields is a question of yes or no.
        let (answer, questions) = asked(form_of(json!({}), &[]), [chosen(&[&["Yes"]])]).await;
        assert_eq!(answer, json!({"action": "accept", "content": {}}));
        assert_eq!(questions[0].question, "The MCP server srv asks: Who?");
        assert_eq!(asked(form_of(json!({}), &[]), [chosen(&[&["No"]])]).await.0, json!({"action": "decline"}));
    }
}
