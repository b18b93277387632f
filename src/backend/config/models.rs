//! `models.json`: what `[models]` in the `config.toml` next to it may say, as other programs write it.

use std::path::Path;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::json;
use super::layer::{Layer, Problem, Source, read_text};

/// Name of the file.
pub(super) const FILE: &str = "models.json";

/// Reads `{"models": {"<id>": {…}}}`, or the rows alone; none when the file does not exist.
///
/// # Errors
/// The file cannot be read, or is not a JSON object of objects.
pub(super) fn read(source: Source, file: &Path) -> Result<Option<Layer>, Problem> {
    let Some(text) = read_text(file)? else { return Ok(None) };
    let mut object = json::object(file, &text)?.map;
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let rows = match object.remove("models") {
        Some(Json::Object(rows)) if object.is_empty() => rows,
        Some(_) => return Err(problem("`models` must be an object and the only key".into())),
        None => object,
    };
    let models = table(&rows).map_err(|key| problem(format!("`models.{key}` must not be null: remove it")))?;
    let root = Table::from_iter([("models".to_owned(), Value::Table(models))]);
    Ok(Some(Layer::of_file(source, file, root)))
}

/// The object as TOML.
///
/// # Errors
/// The key of what TOML cannot say.
fn table(object: &Map<String, Json>) -> Result<Table, String> {
    let row = |(name, value): (&String, &Json)| match self::value(value) {
        Ok(value) => Ok((name.clone(), value)),
        Err(key) if key.is_empty() => Err(name.clone()),
        Err(key) => Err(format!("{name}.{key}")),
    };
    object.iter().map(row).collect()
}

fn value(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => return Err(String::new()),
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(value).collect::<Result<_, _>>()?),
        Json::Object(object) => Value::Table(table(object)?),
    })
}
