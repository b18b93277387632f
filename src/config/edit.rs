//! Changes one key of the user's configuration file; comments and order stay.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::layer::{Layer, Problem, Source, path_of, read_text};
use super::paths::Paths;
use super::shape::Shape;
use crate::stdx::replace;

/// Sets a key in the user's configuration file, and creates the file if it is missing. `text` is a value as one types it:
/// lists by commas, strings without quotes. Returns the file.
///
/// # Errors
/// There is no such key, the value does not fit, or the file is broken or cannot be written. The file is then as before.
pub fn set(paths: &Paths, key: &str, text: &str) -> Result<PathBuf, Problem> {
    let file = paths.user_config();
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let path = path_of(key);
    let shape = Shape::new();
    let value = shape.read(&path, text).map_err(problem)?;
    let before = read_text(&file)?.unwrap_or_default();
    let mut document: DocumentMut = before.strip_prefix('\u{feff}').unwrap_or(&before).parse().map_err(|_| {
        // Reported again by the parser that knows lines.
        let broken = Layer::parse(Source::User, Some(&file), &before).err();
        broken.unwrap_or_else(|| problem("not valid TOML".into()))
    })?;
    let blocked = || problem(format!("`{key}` is inside a value that is not a table: edit the file by hand"));
    let (last, tables) = path.split_last().ok_or_else(blocked)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        table = table.entry(name).or_insert(Item::Table(implicit())).as_table_like_mut().ok_or_else(blocked)?;
    }
    let value = edit_value(&value).ok_or_else(|| problem(format!("`{key}` cannot be written")))?;
    match table.get_mut(last).and_then(Item::as_value_mut) {
        Some(old) => {
            // The comment behind a value belongs to it.
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(last, Item::Value(value));
        }
    }
    let after = document.to_string();
    let layer = Layer::parse(Source::User, Some(&file), &after)?;
    if let Some(problem) = layer.check(&shape).into_iter().next() {
        return Err(problem);
    }
    replace(&file, after.as_bytes()).map_err(|error| problem(format!("cannot be written: {error}")))?;
    Ok(file)
}

fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn edit_value(value: &toml::Value) -> Option<toml_edit::Value> {
    value.to_string().parse().ok()
}

/// Replaces a file's content in one step. A new file, in new folders if needed, is readable only by its owner.
pub(crate) fn replace(file: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mode = if file.exists() { None } else { Some(0o600) };
    replace::replace(file, content, mode)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::paths::Env;
    use super::*;

    fn check(before: &str, key: &str, value: &str, want: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Env::fake(dir.path(), &[])).unwrap();
        let file = paths.user_config();
        if !before.is_empty() {
            replace(&file, before.as_bytes()).unwrap();
        }
        let done = set(&paths, key, value);
        let after = fs::read_to_string(&file).unwrap_or_default();
        match want {
            Ok(want) => assert_eq!((done.map(|_| after.as_str()), key), (Ok(want), key)),
            Err(want) => {
                let problem = done.unwrap_err();
                assert!(problem.to_string().contains(want), "{problem}");
                assert_eq!(after, before);
            }
        }
    }

    #[test]
    fn a_key_is_set_and_the_rest_left_alone() {
        check("", "model", "openai/gpt-5", Ok("model = \"openai/gpt-5\"\n"));
        check("", "tui.theme", "light", Ok("[tui]\ntheme = \"light\"\n"));
        check(
            "# mine\nmodel = 'x' # why\n\n[tui] # look\ntheme = 'dark'   # night\n",
            "tui.theme",
            "light",
            Ok("# mine\nmodel = 'x' # why\n\n[tui] # look\ntheme = \"light\"   # night\n"),
        );
        check(
            "tui = { theme = 'dark' }\n",
            "tui.highlight",
            "off",
            Ok("tui = { theme = 'dark' , highlight = false }\n"),
        );
        check("", "permissions.allow", "Read, Bash(ls:*)", Ok("[permissions]\nallow = [\"Read\", \"Bash(ls:*)\"]\n"));
        check("", "providers.mine.base_url", "http://h/v1", Ok("[providers.mine]\nbase_url = \"http://h/v1\"\n"));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        check("model = 'x'\n", "modle", "y", Err("did you mean `model`?"));
        check("model = 'x'\n", "max_turns", "many", Err("must be a whole number"));
        check("model = \n", "model", "y", Err("config.toml:1: not valid TOML"));
        check("tehme = 1\n", "model", "y", Err("config.toml:1: unknown key `tehme`"));
        check("tui = 3\n", "tui.theme", "dark", Err("not a table"));
    }
}
