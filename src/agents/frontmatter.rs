//! Splits a Markdown file into its frontmatter's fields and its body.

use serde_json::{Map, Value};

/// Fields with their names in snake_case, the body, and what is wrong with the frontmatter.
pub(super) fn split(text: &str) -> (Map<String, Value>, String, Option<String>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else { return (Map::new(), text, None) };
    let (yaml, body) = match rest.split_once("\n---\n") {
        Some((yaml, body)) => (yaml, body.to_owned()),
        None => match rest.strip_suffix("\n---") {
            Some(yaml) => (yaml, String::new()),
            None => return (Map::new(), rest.to_owned(), Some("the frontmatter has no closing `---`".into())),
        },
    };
    match serde_yaml::from_str::<Map<String, Value>>(yaml) {
        Ok(fields) => (fields.into_iter().map(|(key, value)| (snake(&key), value)).collect(), body, None),
        Err(error) => {
            let problem = error.to_string().lines().next().unwrap_or_default().to_owned();
            (scalars(yaml), body, Some(format!("the frontmatter is no YAML ({problem}); it is read line by line")))
        }
    }
}

/// Top-level `key: value` lines.
fn scalars(yaml: &str) -> Map<String, Value> {
    let pairs = yaml.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-'])).filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| (snake(key.trim()), Value::String(value.to_owned())))
    });
    pairs.collect()
}

/// `maxTurns` and `max-turns` as `max_turns`.
fn snake(key: &str) -> String {
    let mut name = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        } else {
            name.push(if c == '-' { '_' } else { c });
        }
    }
    name
}
