//! Changes one key of a configuration file, the user's or one of a project; comments and order stay.

use std::path::{Path, PathBuf};

use toml::Value;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::grant::leads_out;
use super::layer::{Layer, Problem, Source, path_of, read_text};
use super::paths::Paths;
use super::shape::Shape;
use super::themes;
use crate::protocol::SettingPlace;
use crate::stdx::replace;

/// Settings of one user for one project, relative to it.
pub(super) const LOCAL: &str = ".cocode/config.local.toml";

/// The file that a change goes into.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    paths: &'a Paths,
    source: Source,
    pub file: PathBuf,
}

impl<'a> Target<'a> {
    pub fn user(paths: &'a Paths) -> Target<'a> {
        Target { paths, source: Source::User, file: paths.user_config() }
    }

    pub fn new(paths: &'a Paths, project: &Path, place: SettingPlace) -> Target<'a> {
        match place {
            SettingPlace::User => Target::user(paths),
            SettingPlace::Project => Target { paths, source: Source::Local, file: project.join(LOCAL) },
        }
    }
}

/// Sets a key in a configuration file, which is created if it is missing, or takes it out. `text` is a value as one types
/// it: lists by commas, strings without quotes. Returns whether the file changed.
///
/// # Errors
/// There is no such key, the value does not fit, or the file is broken or cannot be written. The file is then as before.
pub fn change(target: &Target<'_>, key: &str, text: Option<&str>) -> Result<bool, Problem> {
    let path = path_of(key);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    change_at(target, &path, text)
}

/// The same for a key whose parts may hold dots.
///
/// # Errors
/// Those of `change`.
pub fn change_at(target: &Target<'_>, path: &[&str], text: Option<&str>) -> Result<bool, Problem> {
    let key = path.join(".");
    let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
    let Target { paths, source, file } = target;
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    if *source == Source::Local && leads_out(file) {
        return Err(problem("is a link that leads out of the project: cocode does not write settings there".into()));
    }
    let shape = Shape::new();
    let value = match text {
        Some(text) => Some(shape.read(&path, text).map_err(problem)?),
        None => shape.node(&path).map(|_| None).map_err(problem)?,
    };
    if let (Some(name), ["tui", "theme"]) =
        (value.as_ref().and_then(Value::as_str), path.iter().map(String::as_str).collect::<Vec<_>>().as_slice())
    {
        themes::check(paths, name).map_err(problem)?;
    }
    let before = read_text(file)?.unwrap_or_default();
    let mut document: DocumentMut = before.strip_prefix('\u{feff}').unwrap_or(&before).parse().map_err(|_| {
        // Reported again by the parser that knows lines.
        let broken = Layer::parse(*source, Some(file), &before).err();
        broken.unwrap_or_else(|| problem("not valid TOML".into()))
    })?;
    let blocked = || problem(format!("`{key}` is inside a value that is not a table: edit the file by hand"));
    let (last, tables) = path.split_last().ok_or_else(blocked)?;
    match value {
        Some(value) => {
            let value = edit_value(&value).ok_or_else(|| problem(format!("`{key}` cannot be written")))?;
            put(document.as_table_mut(), tables, last, value).ok_or_else(blocked)?;
        }
        None if !take(document.as_table_mut(), tables, last) => return Ok(false),
        None => {}
    }
    let after = document.to_string();
    let layer = Layer::parse(*source, Some(file), &after)?;
    if let Some(problem) = layer.check(&shape).into_iter().next() {
        return Err(problem);
    }
    replace(file, after.as_bytes()).map_err(|error| problem(format!("cannot be written: {error}")))?;
    Ok(true)
}

/// None where something on the way is not a table.
fn put(root: &mut dyn TableLike, tables: &[String], last: &str, value: toml_edit::Value) -> Option<()> {
    let mut table = root;
    for name in tables {
        table = table.entry(name).or_insert(Item::Table(implicit())).as_table_like_mut()?;
    }
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
    Some(())
}

/// Takes a key out, with tables that are empty then. False where it is not there.
fn take(table: &mut dyn TableLike, tables: &[String], last: &str) -> bool {
    let Some((first, rest)) = tables.split_first() else { return table.remove(last).is_some() };
    let Some(inner) = table.get_mut(first).and_then(Item::as_table_like_mut) else { return false };
    let taken = take(inner, rest, last);
    if taken && inner.is_empty() {
        table.remove(first);
    }
    taken
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
        let target = Target::new(&paths, dir.path(), SettingPlace::User);
        let done = change(&target, key, Some(value));
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

    #[test]
    fn a_key_is_taken_out_and_the_rest_left_alone() {
        let check = |before: &str, key: &str, want: Result<(bool, &str), &str>| {
            let dir = tempfile::tempdir().unwrap();
            let paths = Paths::new(&Env::fake(dir.path(), &[])).unwrap();
            let target = Target::new(&paths, dir.path(), SettingPlace::Project);
            replace(&target.file, before.as_bytes()).unwrap();
            let done = change(&target, key, None).map_err(|problem| problem.to_string());
            let after = fs::read_to_string(&target.file).unwrap();
            match (done, want) {
                (Ok(done), want) => assert_eq!(Ok((done, after.as_str())), want, "{key}"),
                (Err(problem), Err(want)) => assert!(problem.contains(want), "{problem}"),
                (done, want) => panic!("{done:?} {want:?}"),
            }
        };
        check("# mine\nmodel = 'x'\nmax_turns = 3\n", "max_turns", Ok((true, "# mine\nmodel = 'x'\n")));
        check("[tui]\ntheme = 'dark'\n\n[log]\nlevel = 'off'\n", "tui.theme", Ok((true, "\n[log]\nlevel = 'off'\n")));
        check("model = 'x'\n", "tui.theme", Ok((false, "model = 'x'\n")));
        check("model = 'x'\n", "tui.tehme", Err("did you mean `tui.theme`?"));
    }
}
