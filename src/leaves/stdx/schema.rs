//! JSON Schema: the one check for tool input, structured answers and settings.
//!
//! Covers the part of the 2020-12 draft that schemas for data use. Every keyword either is checked or only describes; a
//! schema with any other keyword is refused, because skipping it silently would accept values it was meant to reject.

use std::collections::HashMap;
use std::fmt::Write;

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that describe a value and check nothing. `format` is one: the draft calls it an annotation.
const NOTES: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];

const KINDS: &[&str] = &["null", "boolean", "object", "array", "number", "integer", "string"];

/// A schema in which every keyword is understood.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Value,
    patterns: HashMap<String, Regex>,
}

/// The patterns follow from the schema.
impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.root == other.root
    }
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// One place where a value does not fit.
#[derive(Debug)]
pub struct Fault<'a> {
    pub path: Vec<Step>,
    /// The schema of that place; for an unknown key, that of the object around it.
    pub schema: &'a Value,
    pub problem: Problem<'a>,
}

#[derive(Debug)]
pub enum Problem<'a> {
    /// A required key is missing.
    Missing,
    /// The object must not have this key.
    Unknown,
    /// Not of the type that `schema` asks for.
    Kind(&'a Value),
    /// Not one of these values.
    Choice(&'a Value, Vec<&'a Value>),
    /// What the value must be, such as `at least 3`.
    Limit(&'a Value, String),
}

/// `todos[0].status`
pub fn place(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let dot = if text.is_empty() { "" } else { "." };
        let _ = match step {
            Step::Key(key) => write!(text, "{dot}{key}"),
            Step::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// The type that a schema asks for; the first that is not null when there are several.
pub fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// The only values that a schema allows: by `enum`, or by a `oneOf` of constants.
pub fn choices(schema: &Value) -> Vec<&Value> {
    match (schema.get("enum"), schema.get("oneOf")) {
        (Some(Value::Array(values)), _) => values.iter().collect(),
        (_, Some(Value::Array(parts))) => {
            parts.iter().map(|part| part.get("const")).collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

impl Schema {
    /// # Errors
    /// Names the keyword that is not supported or does not read, and where it is.
    pub fn new(root: Value) -> Result<Schema, String> {
        let mut patterns = HashMap::new();
        learn(&root, &root, "#", &mut patterns)?;
        Ok(Schema { root, patterns })
    }

    pub fn json(&self) -> &Value {
        &self.root
    }

    /// Everywhere the value does not fit, in the order of the schema.
    pub fn faults<'a>(&'a self, value: &'a Value) -> Vec<Fault<'a>> {
        let mut check = Check { schema: self, path: Vec::new(), faults: Vec::new() };
        check.value(&self.root, value);
        check.faults
    }

    /// Follows references.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        while let Some(target) = target(&self.root, schema) {
            schema = target;
        }
        schema
    }
}

/// What a `$ref` of this document points to.
fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// Reads a schema once: every keyword is known and has a value of the right form.
fn learn(root: &Value, schema: &Value, at: &str, patterns: &mut HashMap<String, Regex>) -> Result<(), String> {
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err(format!("{at} must be a schema: an object, true or false")),
    };
    for (keyword, given) in keywords {
        let at = format!("{at}/{keyword}");
        let must = |form: bool, what: &str| if form { Ok(()) } else { Err(format!("{at} must be {what}")) };
        match keyword.as_str() {
            "type" => {
                let known = |kind: &Value| kind.as_str().is_some_and(|kind| KINDS.contains(&kind));
                let all = given.as_array().map_or(known(given), |kinds| kinds.iter().all(known));
                must(all, &format!("one or several of {}", KINDS.join(", ")))?;
            }
            "properties" | "$defs" | "definitions" => {
                must(given.is_object(), "an object of schemas")?;
                for (name, schema) in given.as_object().into_iter().flatten() {
                    learn(root, schema, &format!("{at}/{name}"), patterns)?;
                }
            }
            "items" | "additionalProperties" | "not" => learn(root, given, &at, patterns)?,
            "allOf" | "anyOf" | "oneOf" => {
                must(given.as_array().is_some_and(|parts| !parts.is_empty()), "a list of schemas")?;
                for (index, part) in given.as_array().into_iter().flatten().enumerate() {
                    learn(root, part, &format!("{at}/{index}"), patterns)?;
                }
            }
            "required" => {
                must(given.as_array().is_some_and(|names| names.iter().all(Value::is_string)), "a list of names")?;
            }
            "enum" => must(given.is_array(), "a list")?,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => must(given.is_number(), "a number")?,
            "multipleOf" => must(given.as_f64().is_some_and(|number| number > 0.0), "a number above 0")?,
            "minLength" | "maxLength" | "minItems" | "maxItems" => {
                must(given.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0), "a whole number")?;
            }
            "uniqueItems" => must(given.is_boolean(), "true or false")?,
            "pattern" => {
                let pattern = given.as_str().ok_or_else(|| format!("{at} must be a string"))?;
                let regex = Regex::new(pattern).map_err(|error| format!("{at}: {error}"))?;
                patterns.insert(pattern.to_owned(), regex);
            }
            "$ref" => {
                must(target(root, schema).is_some(), "a reference into this schema, such as #/$defs/name")?;
                must(ends(root, schema, &mut Vec::new()), "a reference that does not lead back to itself")?;
            }
            note if note == "const" || NOTES.contains(&note) || note.starts_with("x-") => {}
            _ => return Err(format!("{at} is not supported")),
        }
    }
    Ok(())
}

/// Whether references that apply to one and the same value come to an end.
fn ends<'a>(root: &'a Value, schema: &'a Value, open: &mut Vec<&'a Value>) -> bool {
    if open.iter().any(|before| std::ptr::eq(*before, schema)) {
        return false;
    }
    open.push(schema);
    let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    let mut inner = parts.flatten().chain(schema.get("not")).chain(target(root, schema));
    let end = inner.all(|part| ends(root, part, open));
    open.pop();
    end
}

/// One pass over a value.
struct Check<'a> {
    schema: &'a Schema,
    path: Vec<Step>,
    faults: Vec<Fault<'a>>,
}

impl<'a> Check<'a> {
    fn fault(&mut self, schema: &'a Value, problem: Problem<'a>) {
        self.faults.push(Fault { path: self.path.clone(), schema, problem });
    }

    fn at(&mut self, step: Step, then: impl FnOnce(&mut Self)) {
        self.path.push(step);
        then(self);
        self.path.pop();
    }

    fn value(&mut self, schema: &'a Value, value: &'a Value) {
        if let Some(target) = target(&self.schema.root, schema) {
            self.value(target, value);
        }
        if schema == &Value::Bool(false) {
            self.fault(schema, Problem::Limit(value, "left out".into()));
        }
        let kinds = schema.get("type").map(|kinds| kinds.as_array().map_or(std::slice::from_ref(kinds), Vec::as_slice));
        if kinds.is_some_and(|kinds| !kinds.iter().any(|kind| kind.as_str().is_some_and(|kind| is(kind, value)))) {
            return self.fault(schema, Problem::Kind(value));
        }
        let only = match schema.get("const") {
            Some(only) => vec![only],
            None => choices(schema),
        };
        if (!only.is_empty() || schema.get("enum").is_some()) && !only.iter().any(|one| same(one, value)) {
            return self.fault(schema, Problem::Choice(value, only));
        }
        self.parts(schema, value);
        match value {
            Value::Object(object) => self.object(schema, object),
            Value::Array(items) => self.items(schema, value, items),
            Value::String(text) => self.text(schema, value, text),
            Value::Number(number) => self.number(schema, value, number.as_f64().unwrap_or(f64::NAN)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The faults that one of several schemas would find here.
    fn apart(&mut self, schema: &'a Value, value: &'a Value) -> Vec<Fault<'a>> {
        let before = std::mem::take(&mut self.faults);
        self.value(schema, value);
        std::mem::replace(&mut self.faults, before)
    }

    fn parts(&mut self, schema: &'a Value, value: &'a Value) {
        let parts =
            |keyword: &str| schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for part in parts("allOf") {
            self.value(part, value);
        }
        for keyword in ["anyOf", "oneOf"] {
            let found: Vec<Vec<Fault<'a>>> = parts(keyword).iter().map(|part| self.apart(part, value)).collect();
            match found.iter().filter(|faults| faults.is_empty()).count() {
                // The alternative that comes closest says best what is wrong.
                0 => self.faults.extend(found.into_iter().min_by_key(Vec::len).into_iter().flatten()),
                1 => {}
                _ if keyword == "anyOf" => {}
                _ => self.fault(schema, Problem::Limit(value, "only one of the alternatives in `oneOf`".into())),
            }
        }
        if let Some(not) = schema.get("not")
            && self.apart(not, value).is_empty()
        {
            self.fault(schema, Problem::Limit(value, "something else: `not` excludes it".into()));
        }
    }

    fn object(&mut self, schema: &'a Value, object: &'a Map<String, Value>) {
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            self.at(Step::Key(name.clone()), |check| match object.get(name) {
                Some(value) => check.value(schema, value),
                None if required.contains(&name.as_str()) => check.fault(schema, Problem::Missing),
                None => {}
            });
        }
        let described = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        for name in required.into_iter().filter(|name| !described(name) && !object.contains_key(*name)) {
            self.at(Step::Key(name.to_owned()), |check| check.fault(&Value::Null, Problem::Missing));
        }
        let Some(others) = schema.get("additionalProperties") else { return };
        for (name, value) in object.iter().filter(|(name, _)| !described(name)) {
            self.at(Step::Key(name.clone()), |check| match others {
                Value::Bool(false) => check.fault(schema, Problem::Unknown),
                others => check.value(others, value),
            });
        }
    }

    fn items(&mut self, schema: &'a Value, value: &'a Value, items: &'a [Value]) {
        if let Some(each) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.at(Step::Index(index), |check| check.value(each, item));
            }
        }
        self.counted(schema, value, items.len(), ["minItems", "maxItems"], "items");
        let twice = |(index, item): (usize, &Value)| items[..index].iter().any(|before| same(before, item));
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && items.iter().enumerate().any(twice) {
            self.fault(schema, Problem::Limit(value, "a list without duplicates".into()));
        }
    }

    fn text(&mut self, schema: &'a Value, value: &'a Value, text: &str) {
        self.counted(schema, value, text.chars().count(), ["minLength", "maxLength"], "characters");
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !self.schema.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
        {
            self.fault(schema, Problem::Limit(value, format!("text that matches `{pattern}`")));
        }
    }

    fn counted(&mut self, schema: &'a Value, value: &'a Value, count: usize, [min, max]: [&str; 2], of: &str) {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        if let Some(min) = bound(min).filter(|min| (count as f64) < *min) {
            self.fault(schema, Problem::Limit(value, format!("at least {min} {of} long")));
        }
        if let Some(max) = bound(max).filter(|max| count as f64 > *max) {
            self.fault(schema, Problem::Limit(value, format!("at most {max} {of} long")));
        }
    }

    fn number(&mut self, schema: &'a Value, value: &'a Value, number: f64) {
        let limits: [(&str, &str, Holds); 5] = [
            ("minimum", "at least", |number, limit| number >= limit),
            ("maximum", "at most", |number, limit| number <= limit),
            ("exclusiveMinimum", "more than", |number, limit| number > limit),
            ("exclusiveMaximum", "less than", |number, limit| number < limit),
            ("multipleOf", "a multiple of", |number, limit| (number / limit - (number / limit).round()).abs() < 1e-9),
        ];
        for (keyword, words, holds) in limits {
            let limit = schema.get(keyword);
            if let Some(limit) = limit.filter(|limit| limit.as_f64().is_some_and(|limit| !holds(number, limit))) {
                self.fault(schema, Problem::Limit(value, format!("{words} {limit}")));
            }
        }
    }
}

/// Whether a number keeps to a limit.
type Holds = fn(f64, f64) -> bool;

fn is(kind: &str, value: &Value) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Object(_) => kind == "object",
        Value::Array(_) => kind == "array",
        Value::String(_) => kind == "string",
        Value::Number(number) => {
            kind == "number" || kind == "integer" && number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
    }
}

/// Equal as JSON Schema has it: 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One line a fault: its place and what is wrong.
    fn check(schema: Value, value: Value, want: &[&str]) {
        let read = Schema::new(schema.clone()).unwrap();
        let show = |fault: &Fault<'_>| {
            let problem = match &fault.problem {
                Problem::Missing => "missing".into(),
                Problem::Unknown => "unknown".into(),
                Problem::Kind(_) => format!("not a {}", fault.schema["type"]),
                Problem::Choice(_, choices) => format!("none of {choices:?}"),
                Problem::Limit(_, what) => what.clone(),
            };
            format!("{}: {problem}", place(&fault.path))
        };
        let found: Vec<String> = read.faults(&value).iter().map(show).collect();
        assert_eq!(found, want, "{schema} of {value}");
    }

    #[test]
    fn types_and_values() {
        check(json!(true), json!(1), &[]);
        check(json!(false), json!(1), &[": left out"]);
        check(json!({"type": "string"}), json!(1), &[": not a \"string\""]);
        check(json!({"type": ["string", "null"]}), json!(null), &[]);
        check(json!({"type": ["string", "null"]}), json!(1), &[": not a [\"string\",\"null\"]"]);
        check(json!({"type": "integer"}), json!(3.0), &[]);
        check(json!({"type": "integer"}), json!(3.5), &[": not a \"integer\""]);
        check(json!({"type": "number", "format": "double"}), json!(3), &[]);
        check(json!({"const": {"a": 1}}), json!({"a": 1.0}), &[]);
        check(json!({"const": 1}), json!(true), &[": none of [Number(1)]"]);
        check(json!({"enum": ["a", null]}), json!(null), &[]);
        check(json!({"enum": ["a"]}), json!("b"), &[": none of [String(\"a\")]"]);
        check(json!({"enum": []}), json!("b"), &[": none of []"]);
        check(
            json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
            json!("c"),
            &[": none of [String(\"a\"), String(\"b\")]"],
        );
    }

    #[test]
    fn limits() {
        let number = json!({"minimum": 1, "maximum": 9.5, "multipleOf": 0.5});
        check(number.clone(), json!(9.5), &[]);
        check(number.clone(), json!(0), &[": at least 1"]);
        check(number, json!(9.7), &[": at most 9.5", ": a multiple of 0.5"]);
        check(json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0), &[": more than 0"]);
        check(json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(1), &[": less than 1"]);
        check(json!({"minLength": 2, "maxLength": 3}), json!("日本"), &[]);
        check(json!({"minLength": 2}), json!("日"), &[": at least 2 characters long"]);
        check(json!({"maxLength": 2}), json!("abc"), &[": at most 2 characters long"]);
        check(json!({"pattern": "^v\\d+$"}), json!("v12"), &[]);
        check(json!({"pattern": "^v\\d+$"}), json!("12"), &[": text that matches `^v\\d+$`"]);
        check(json!({"minItems": 1, "maxItems": 2}), json!([]), &[": at least 1 items long"]);
        check(json!({"minItems": 1, "maxItems": 2}), json!([1, 2, 3]), &[": at most 2 items long"]);
        check(json!({"uniqueItems": true}), json!([1, {"a": 1}, {"a": 1.0}]), &[": a list without duplicates"]);
        // A limit of one type says nothing about another.
        check(json!({"minimum": 1, "minLength": 1, "minItems": 1, "required": ["a"]}), json!(null), &[]);
    }

    #[test]
    fn objects_and_lists() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"items": {"minimum": 1}}},
            "required": ["a", "c"], "additionalProperties": false});
        check(closed.clone(), json!({"a": "x", "b": [1], "c": 1}), &["c: unknown"]);
        check(closed, json!({"b": [1, 0]}), &["a: missing", "b[1]: at least 1", "c: missing"]);
        let open = json!({"additionalProperties": {"type": "string"}});
        check(open, json!({"x": "y", "z": 1}), &["z: not a \"string\""]);
        check(json!({"properties": {"a": true}}), json!({"b": 1}), &[]);
    }

    #[test]
    fn combinations_and_references() {
        let either = json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["a", "b"]}]});
        check(either.clone(), json!("x"), &[]);
        check(either.clone(), json!({"a": 1, "b": 2}), &[]);
        check(either, json!(1), &[": not a \"string\""]);
        let one = json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]});
        check(one.clone(), json!(9), &[]);
        check(one, json!(3), &[": only one of the alternatives in `oneOf`"]);
        check(json!({"allOf": [{"minimum": 1}, {"maximum": 5}]}), json!(9), &[": at most 5"]);
        check(json!({"not": {"type": "string"}}), json!(1), &[]);
        check(json!({"not": {"type": "string"}}), json!("a"), &[": something else: `not` excludes it"]);
        let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
            "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        }, "required": ["name"]}}});
        check(tree.clone(), json!({"name": "a", "children": [{"name": "b", "children": []}]}), &[]);
        check(
            tree,
            json!({"name": "a", "children": [{"children": 1}]}),
            &["children[0].name: missing", "children[0].children: not a \"array\""],
        );
        check(json!({"items": {"$ref": "#"}, "maxItems": 1}), json!([[[], []]]), &["[0]: at most 1 items long"]);
    }

    #[test]
    fn a_schema_that_cannot_be_checked_is_refused() {
        fn check(schema: Value, want: &str) {
            assert_eq!(Schema::new(schema.clone()).unwrap_err(), want, "{schema}");
        }
        check(json!([]), "# must be a schema: an object, true or false");
        check(json!({"if": {}}), "#/if is not supported");
        check(
            json!({"properties": {"a": {"patternProperties": {}}}}),
            "#/properties/a/patternProperties is not supported",
        );
        check(
            json!({"type": "text"}),
            "#/type must be one or several of null, boolean, object, array, number, integer, string",
        );
        check(json!({"items": [{}]}), "#/items must be a schema: an object, true or false");
        check(json!({"anyOf": []}), "#/anyOf must be a list of schemas");
        check(json!({"required": "a"}), "#/required must be a list of names");
        check(json!({"exclusiveMinimum": true}), "#/exclusiveMinimum must be a number");
        check(json!({"maxLength": -1}), "#/maxLength must be a whole number");
        check(json!({"$ref": "other.json"}), "#/$ref must be a reference into this schema, such as #/$defs/name");
        check(json!({"$ref": "#/$defs/a"}), "#/$ref must be a reference into this schema, such as #/$defs/name");
        check(json!({"$ref": "#"}), "#/$ref must be a reference that does not lead back to itself");
        check(
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
            "#/$defs/a/anyOf/0/$ref must be a reference that does not lead back to itself",
        );
        assert!(Schema::new(json!({"pattern": "(?=x)"})).unwrap_err().starts_with("#/pattern: regex parse error"));
        for fine in [json!({"x-order": 1, "title": "T", "format": "email", "$comment": "c", "default": 1}), json!(true)]
        {
            assert!(Schema::new(fine).is_ok());
        }
    }
}
