//! JSON Schema → the subset of OpenAPI that function declarations may use.

use serde_json::{Map, Value, json};

/// Deepest nesting that is translated; what lies below may be anything.
const DEPTH: usize = 16;

/// Fields that mean the same on both sides.
const KEPT: &[&str] = &[
    "title",
    "description",
    "nullable",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
];

/// The parameters of a function. None when it takes none: an object without properties is refused.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let parameters = convert(schema, schema, DEPTH);
    parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty()).then_some(parameters)
}

fn convert(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(map) = schema.as_object().filter(|_| depth > 0) else { return json!({ "type": "string" }) };
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or_else(|| json!({ "type": "string" }), |found| convert(found, root, depth - 1));
    }
    let mut out = Map::new();
    // Parts that must all hold are one object here.
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        if let Value::Object(part) = convert(part, root, depth - 1) {
            out.extend(part);
        }
    }
    kind(map, &mut out);
    for key in KEPT {
        if let Some(value) = map.get(*key) {
            out.insert((*key).to_string(), value.clone());
        }
    }
    let format = map.get("format").and_then(Value::as_str).unwrap_or_default();
    if matches!(format, "enum" | "date-time" | "int32" | "int64" | "float" | "double") {
        out.insert("format".into(), json!(format));
    }
    choices(map, &mut out, root, depth);
    let is = |out: &Map<String, Value>, name: &str| out.get("type").is_some_and(|kind| kind == name);
    if let Some(properties) = map.get("properties").and_then(Value::as_object) {
        let converted: Map<String, Value> =
            properties.iter().map(|(name, property)| (name.clone(), convert(property, root, depth - 1))).collect();
        let required: Vec<&Value> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|name| name.as_str().is_some_and(|name| converted.contains_key(name)))
            .collect();
        if !required.is_empty() {
            out.insert("required".into(), json!(required));
        }
        if !converted.is_empty() {
            out.insert("properties".into(), Value::Object(converted));
        }
        out.entry("type").or_insert_with(|| json!("object"));
    }
    if is(&out, "array") {
        let items =
            map.get("items").map_or_else(|| json!({ "type": "string" }), |items| convert(items, root, depth - 1));
        out.insert("items".into(), items);
    }
    if !out.contains_key("type") && !out.contains_key("anyOf") {
        out.insert("type".into(), json!("string"));
    }
    Value::Object(out)
}

/// One type; several are alternatives, and `null` among them means nullable.
fn kind(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    match map.get("type") {
        Some(Value::String(name)) => {
            out.insert("type".into(), json!(name));
        }
        Some(Value::Array(names)) => {
            let (null, names): (Vec<&Value>, Vec<&Value>) = names.iter().partition(|name| *name == "null");
            if !null.is_empty() {
                out.insert("nullable".into(), json!(true));
            }
            match names.as_slice() {
                [] => {}
                [name] => {
                    out.insert("type".into(), (*name).clone());
                }
                names => {
                    let any = names.iter().map(|name| {
                        if *name == "array" {
                            json!({ "type": "array", "items": { "type": "string" } })
                        } else {
                            json!({ "type": name })
                        }
                    });
                    out.insert("anyOf".into(), any.collect());
                }
            }
        }
        _ => {}
    }
}

/// `enum` and `const` exist for strings only; `oneOf` is `anyOf`.
fn choices(map: &Map<String, Value>, out: &mut Map<String, Value>, root: &Value, depth: usize) {
    let constant = map.get("const").map(|value| vec![value.clone()]);
    if let Some(values) = map.get("enum").and_then(Value::as_array).cloned().or(constant) {
        let strings: Vec<&Value> = values.iter().filter(|value| value.is_string()).collect();
        if !strings.is_empty() && strings.len() + usize::from(values.contains(&Value::Null)) == values.len() {
            out.insert("type".into(), json!("string"));
            out.insert("enum".into(), json!(strings));
        } else if !out.contains_key("type") {
            let name = if values.iter().all(Value::is_i64) { "integer" } else { "number" };
            out.insert("type".into(), json!(name));
        }
    }
    let Some(any) = map.get("anyOf").or_else(|| map.get("oneOf")).and_then(Value::as_array) else { return };
    let is_null = |part: &&Value| part["type"] == "null";
    if any.iter().any(|part| is_null(&part)) {
        out.insert("nullable".into(), json!(true));
    }
    let parts: Vec<Value> =
        any.iter().filter(|part| !is_null(part)).map(|part| convert(part, root, depth - 1)).collect();
    match parts.as_slice() {
        [Value::Object(only)] => {
            for (key, value) in only {
                out.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        [] => {}
        _ => {
            out.remove("type");
            out.insert("anyOf".into(), Value::Array(parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(property: Value, want: Value) {
        let schema =
            json!({ "type": "object", "properties": { "p": property }, "$defs": { "D": { "type": "integer" } } });
        let converted = parameters(&schema).expect("there is a property");
        assert_eq!(converted["properties"]["p"], want, "{schema}");
    }

    #[test]
    fn schemas() {
        check(
            json!({ "type": "string", "format": "uri", "minLength": 1 }),
            json!({ "type": "string", "minLength": 1 }),
        );
        check(
            json!({ "type": ["integer", "null"], "format": "uint64" }),
            json!({ "nullable": true, "type": "integer" }),
        );
        check(json!({ "$ref": "#/$defs/D" }), json!({ "type": "integer" }));
        check(json!({ "$ref": "#/$defs/None" }), json!({ "type": "string" }));
        check(
            json!({ "anyOf": [{ "$ref": "#/$defs/D" }, { "type": "null" }], "description": "d" }),
            json!({ "description": "d", "nullable": true, "type": "integer" }),
        );
        check(
            json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
        );
        check(json!({ "type": "array" }), json!({ "type": "array", "items": { "type": "string" } }));
        check(json!({ "const": "a" }), json!({ "type": "string", "enum": ["a"] }));
        check(json!({ "enum": [1, 2] }), json!({ "type": "integer" }));
        check(
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": { "a": { "type": "string" } },
                "required": ["a", "gone"],
            }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
        );
        check(json!(true), json!({ "type": "string" }));
    }

    #[test]
    fn no_parameters() {
        assert_eq!(parameters(&json!({ "type": "object", "properties": {} })), None);
        assert_eq!(parameters(&json!({ "type": "object" })), None);
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({
            "type": "object",
            "properties": { "p": { "$ref": "#/$defs/T" } },
            "$defs": { "T": { "type": "object", "properties": { "next": { "$ref": "#/$defs/T" } } } },
        });
        assert!(parameters(&schema).is_some());
    }
}
