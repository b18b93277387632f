//! JSON as people keep it in settings files: with a byte order mark, comments and trailing commas.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::layer::Problem;

/// The one object of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) map: Map<String, Value>,
    /// Keys that stand there more than once; the last one counts.
    pub(super) twice: Vec<String>,
    /// The text is JSON by the book: nothing is lost when it is written again.
    pub(super) strict: bool,
}

/// Reads a file's object; an empty file and `null` are empty ones.
///
/// # Errors
/// It is something else, or cannot be read; with the line.
pub(super) fn object(file: &Path, text: &str) -> Result<Object, Problem> {
    let place = file.display().to_string();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = plain(text);
    let strict = plain == text;
    if plain.trim().is_empty() {
        return Ok(Object { strict, ..Object::default() });
    }
    match serde_json::from_str(&plain) {
        Ok(Value::Object(map)) => {
            let Doubles(twice) = serde_json::from_str(&plain).unwrap_or_default();
            Ok(Object { map, twice, strict })
        }
        Ok(Value::Null) => Ok(Object { strict, ..Object::default() }),
        Ok(_) => Err(Problem { place, message: "must hold a JSON object".into() }),
        Err(error) => {
            Err(Problem { place: format!("{place}:{}", error.line()), message: format!("not valid JSON: {error}") })
        }
    }
}

/// The text with blanks for comments and trailing commas: lines stay where they are.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // Where the last comma is, as long as nothing but blanks came after it.
    let mut comma: Option<usize> = None;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                comma = None;
                plain.push(c);
                while let Some(c) = chars.next() {
                    plain.push(c);
                    match c {
                        '\\' => plain.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => {
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    plain.extend(std::iter::repeat_n(' ', c.len_utf8()));
                }
                plain.push(' ');
            }
            ('/', Some('*')) => {
                plain.push_str("  ");
                chars.next();
                let mut before = ' ';
                for c in chars.by_ref() {
                    plain.extend(std::iter::repeat_n(if c == '\n' { c } else { ' ' }, c.len_utf8()));
                    if (before, c) == ('*', '/') {
                        break;
                    }
                    before = c;
                }
            }
            (',', _) => {
                comma = Some(plain.len());
                plain.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                plain.push(c);
            }
        }
    }
    plain
}

/// The paths of keys that an object has more than once.
#[derive(Default)]
struct Doubles(Vec<String>);

impl<'de> Deserialize<'de> for Doubles {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Doubles, D::Error> {
        from.deserialize_any(Doubles::default())
    }
}

impl<'de> Visitor<'de> for Doubles {
    type Value = Doubles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Doubles, A::Error> {
        let (mut known, mut twice) = (HashSet::new(), Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            let Doubles(below) = map.next_value()?;
            twice.extend(below.into_iter().map(|below| format!("{key}.{below}")));
            if !known.insert(key.clone()) {
                twice.push(key);
            }
        }
        Ok(Doubles(twice))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Doubles, A::Error> {
        let mut twice = Vec::new();
        while let Some(Doubles(below)) = list.next_element()? {
            twice.extend(below);
        }
        Ok(Doubles(twice))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Doubles, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Doubles, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Doubles, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Doubles, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Doubles, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Doubles, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_more_than_json() {
        let check = |text: &str, want: &str, strict: bool| {
            let read = object(Path::new("s.json"), text).map(|object| {
                let twice = if object.twice.is_empty() { String::new() } else { format!(" {:?}", object.twice) };
                assert_eq!(object.strict, strict, "{text}");
                format!("{}{twice}", Value::Object(object.map))
            });
            assert_eq!(read.unwrap_or_else(|problem| problem.to_string()), want, "{text}");
        };
        check("", "{}", true);
        check("null", "{}", true);
        check(" // nothing yet\n", "{}", false);
        check("\u{feff}{\"a\": 1}", r#"{"a":1}"#, true);
        check("{\"a\": [1, 2,\n], // é\n \"b\": 2,}", r#"{"a":[1,2],"b":2}"#, false);
        check("{/* a */ \"a\": /**/ 1 /* * / é\n */, /*/ x */}", r#"{"a":1}"#, false);
        check(
            r#"{"url": "http://x//y", "glob": "/* no, */", "q": "\",}"}"#,
            r#"{"url":"http://x//y","glob":"/* no, */","q":"\",}"}"#,
            true,
        );
        check("{\"a\": 1, /* why */ // and\n}", r#"{"a":1}"#, false);
        check(
            r#"{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": null}], "a": true}"#,
            r#"{"a":true,"c":[{"d":null}]} ["a.b", "c.d", "a"]"#,
            true,
        );
        check("[]", "s.json: must hold a JSON object", true);
        check("{\n\"a\": 1,,\n}", "s.json:3: not valid JSON: trailing comma at line 3 column 1", false);
        check("{\n\n\"a\" 1}", "s.json:3: not valid JSON: expected `:` at line 3 column 5", true);
        check("{\"a\": /* open", "s.json:1: not valid JSON: EOF while parsing a value at line 1 column 13", true);
    }
}
