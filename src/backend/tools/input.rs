//! What the model passes to a tool: a schema derived from the input type, and a forgiving but precise reading.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::stdx::schema::{self, Fault, Problem, Schema};

/// Derives the schema of a tool's input: no references, no `$schema`, `title`, `format` or null, nothing but the named
/// parameters.
pub fn schema<T: JsonSchema>() -> Value {
    tracing::trace!("a schema was derived");
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    // What the type's own comment says is for readers of the code.
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    schema
}

fn tidy(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["$schema", "title", "format", "default", "minimum"] {
        object.remove(key);
    }
    // An optional parameter is left out rather than null.
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [one] = kinds.as_slice() {
            let one = one.clone();
            object.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        match choices.pop() {
            Some(Value::Object(only)) if choices.is_empty() => {
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
            }
            Some(last) => {
                choices.push(last);
                object.insert("anyOf".into(), Value::Array(choices));
            }
            None => {}
        }
        for key in ["title", "format", "minimum"] {
            object.remove(key);
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(tidy);
        object.insert("additionalProperties".into(), Value::Bool(false));
    }
    if let Some(items) = object.get_mut("items") {
        tidy(items);
    }
}

/// What inputs of a tool with this schema are checked by: its whole numbers are counts.
///
/// # Errors
/// The schema says what no input can be checked for.
pub fn check(schema: &Value) -> Result<Schema, String> {
    let mut schema = schema.clone();
    from_zero(&mut schema);
    Schema::new(schema)
}

/// Reads a tool's input. Unknown parameters are ignored; numbers and booleans may come as strings.
///
/// # Errors
/// A sentence for the model that names the parameter, what is expected and what came.
pub fn parse<T: DeserializeOwned>(input: &Value, check: &Schema) -> Result<T, String> {
    tracing::trace!("an input was read");
    let fitted = lenient(input, check.json());
    if let Some(fault) = check.faults(&fitted).first() {
        return Err(sentence(fault));
    }
    serde_json::from_value(fitted).map_err(|error| format!("Invalid input: {error}."))
}

/// The input with something made up for each required parameter that is missing, `but` one: for trying out rules, which
/// look at that one alone.
pub fn completed(mut input: Map<String, Value>, schema: &Value, but: &str) -> Value {
    if let Value::Object(made_up) = made_up(schema, &mut 0) {
        for (name, value) in made_up.into_iter().filter(|(name, _)| name != but) {
            input.entry(name).or_insert(value);
        }
    }
    Value::Object(input)
}

/// A value that fits; no two texts in it are the same.
fn made_up(schema: &Value, texts: &mut u32) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let value = |name: &str, texts: &mut u32| made_up(&schema["properties"][name], texts);
            let pairs = required.filter_map(Value::as_str).map(|name| (name.to_owned(), value(name, texts)));
            Value::Object(pairs.collect())
        }
        Some("array") => Value::Array((0..2).map(|_| made_up(&schema["items"], texts)).collect()),
        Some("integer") => Value::from(1),
        Some("boolean") => Value::Bool(false),
        _ => schema.get("enum").and_then(|choices| choices.get(0)).cloned().unwrap_or_else(|| {
            *texts += 1;
            Value::String(texts.to_string())
        }),
    }
}

fn from_zero(schema: &mut Value) {
    if schema::kind(schema) == Some("integer") {
        schema["minimum"] = 0.into();
    }
    let Some(schema) = schema.as_object_mut() else { return };
    schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
        .for_each(|(_, each)| from_zero(each));
    schema.get_mut("items").into_iter().for_each(from_zero);
}

/// The value as it was meant: parameters that the schema does not name and nulls left out, and what came as a string or a
/// number for another type read as that.
fn lenient(value: &Value, schema: &Value) -> Value {
    let read = match (schema::kind(schema), value) {
        (Some("object"), Value::Object(given)) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let named = properties.into_iter().flatten().filter_map(|(name, schema)| {
                let value = given.get(name).filter(|value| !value.is_null())?;
                Some((name.clone(), lenient(value, schema)))
            });
            Some(Value::Object(named.collect()))
        }
        (Some("array"), Value::Array(items)) => {
            let each = schema.get("items").unwrap_or(&Value::Null);
            Some(items.iter().map(|item| lenient(item, each)).collect())
        }
        (Some("array" | "object"), Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => Some(lenient(&inner, schema)),
            _ => None,
        },
        (Some("string"), Value::Number(number)) if schema.get("enum").is_none() => Some(number.to_string().into()),
        (Some("boolean"), Value::String(text)) => {
            text.trim().to_ascii_lowercase().parse::<bool>().ok().map(Value::from)
        }
        (Some("integer"), Value::Number(number)) => number.as_f64().and_then(whole).map(Value::from),
        (Some("integer"), Value::String(text)) => text.trim().parse::<u64>().ok().map(Value::from),
        _ => None,
    };
    read.unwrap_or_else(|| value.clone())
}

/// What is wrong with a parameter, for the model.
pub(super) fn sentence(fault: &Fault<'_>) -> String {
    let of = match schema::place(&fault.path) {
        place if place.is_empty() => "The input".to_owned(),
        place => format!("Parameter `{place}`"),
    };
    let kind = article(schema::kind(fault.schema).unwrap_or("value"));
    match &fault.problem {
        Problem::Missing => format!("{of} is missing; it must be {kind}."),
        Problem::Unknown => format!("{of} is not expected."),
        Problem::Choice(value, choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| choice.to_string()).collect();
            format!("{of} must be one of {}, but is {value}.", choices.join(", "))
        }
        Problem::Limit(value, limit) if limit == "at least 0" => {
            format!("{of} must be {kind}, but is {}.", told(value))
        }
        Problem::Kind(value) => format!("{of} must be {kind}, but is {}.", told(value)),
        Problem::Limit(value, limit) => format!("{of} must be {limit}, but is {}.", told(value)),
    }
}

/// A float that is a whole number from 0.
fn whole(number: f64) -> Option<u64> {
    // Exact below 2^53; what is larger is not a sensible count.
    let fits = number.fract() == 0.0 && (0.0..9.0e15).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    fits.then_some(number as u64)
}

fn article(kind: &str) -> String {
    match kind {
        "integer" => "a whole number, 0 or more".into(),
        "array" | "object" => format!("an {kind}"),
        other => format!("a {other}"),
    }
}

/// Shows a value in a message: its kind, and its start when that is short.
fn told(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    match value {
        Value::Array(_) | Value::Object(_) => kind.into(),
        other => {
            let text: String = other.to_string().chars().take(60).collect();
            format!("{kind} {text}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::{check as check_of, *};
    use crate::message::Todo;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Input {
        /// Where.
        path: String,
        count: Option<u32>,
        #[serde(default)]
        all: bool,
        mode: Option<Mode>,
        #[serde(default)]
        todos: Vec<Todo>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        One,
        Two,
    }

    fn check(input: Value, want: Result<Value, &str>) {
        let got = parse::<Input>(&input, &check_of(&schema::<Input>()).unwrap()).map(|input| {
            json!([input.path, input.count, input.all, input.mode.map(|mode| format!("{mode:?}")), input.todos.len()])
        });
        assert_eq!(got, want.map_err(String::from), "{input}");
    }

    #[test]
    fn forgives_and_tells() {
        check(json!({"path": "a"}), Ok(json!(["a", null, false, null, 0])));
        check(
            json!({"path": 7, "count": "3", "all": "TRUE", "mode": "two", "more": [1]}),
            Ok(json!(["7", 3, true, "Two", 0])),
        );
        check(json!({"path": "a", "count": 3.0, "mode": null}), Ok(json!(["a", 3, false, null, 0])));
        check(json!({"path": "a", "todos": "[]"}), Ok(json!(["a", null, false, null, 0])));
        check(json!({}), Err("Parameter `path` is missing; it must be a string."));
        check(json!({"path": null}), Err("Parameter `path` is missing; it must be a string."));
        check(json!({"path": ["a"]}), Err("Parameter `path` must be a string, but is an array."));
        check(
            json!({"path": "a", "count": -1}),
            Err("Parameter `count` must be a whole number, 0 or more, but is the number -1."),
        );
        check(
            json!({"path": "a", "all": "maybe"}),
            Err("Parameter `all` must be a boolean, but is the string \"maybe\"."),
        );
        check(
            json!({"path": "a", "mode": "six"}),
            Err("Parameter `mode` must be one of \"one\", \"two\", but is \"six\"."),
        );
        check(
            json!({"path": "a", "todos": [{"content": "x", "activeForm": "y", "status": "done"}]}),
            Err(
                "Parameter `todos[0].status` must be one of \"pending\", \"in_progress\", \"completed\", but is \"done\".",
            ),
        );
        check(json!("text"), Err("The input must be an object, but is the string \"text\"."));
    }

    #[test]
    fn schemas_are_plain() {
        let todo = json!({
            "content": {"description": "What is to be done, imperative.", "type": "string"},
            "activeForm": {"description": "The same while it is being done.", "type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        });
        let todos = json!({"type": "object", "properties": todo, "required": ["content", "activeForm", "status"],
            "additionalProperties": false});
        let mut got = schema::<Input>();
        // The item's own comment is welcome, but no part of what is checked here.
        got["properties"]["todos"]["items"].as_object_mut().unwrap().remove("description");
        assert_eq!(
            got,
            json!({"type": "object", "properties": {
                "path": {"description": "Where.", "type": "string"},
                "count": {"type": "integer"},
                "all": {"type": "boolean"},
                "mode": {"type": "string", "enum": ["one", "two"]},
                "todos": {"type": "array", "items": todos},
            }, "required": ["path"], "additionalProperties": false})
        );
    }
}
