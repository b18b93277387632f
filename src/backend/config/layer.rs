//! One source of settings, with the place of every key in it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::aliases;
use super::paths::Env;
use super::shape::Shape;
use super::thinking;
use super::variables;
use crate::hooks::{Definitions, Event};
use crate::stdx::ansi::shown;
use crate::stdx::nearest::nearest;
use crate::stdx::regular;
use crate::stdx::sealed::Sealed;

/// Where settings come from; later ones win over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// `config/default.toml`, in the binary.
    Default,
    /// `/etc/cocode/config.toml`.
    ManagedDefaults,
    /// `<home>/settings.json`.
    UserSettings,
    /// `<config dir>/config.toml`.
    User,
    /// `.claude/settings.json`.
    ProjectSettings,
    /// `.cocode/config.toml`.
    Project,
    /// `.claude/settings.local.json`.
    LocalSettings,
    /// `.cocode/config.local.toml`.
    Local,
    Environment,
    Flags,
    /// `/etc/cocode/policy.toml`.
    Policy,
}

impl Source {
    /// Whether it lies in the project's folder, and so needs trust.
    pub fn of_project(self) -> bool {
        matches!(self, Source::ProjectSettings | Source::Project | Source::LocalSettings | Source::Local)
    }
}

/// What is wrong with a source, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", shown(place), shown(message))]
pub struct Problem {
    /// `file:line`, a file, a variable, or a flag.
    pub place: String,
    /// Names the key, and what to write instead.
    pub message: String,
}

/// Who set up a provider, the project aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nobody but the defaults.
    BuiltIn,
    Own,
}

/// Settings of one source.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub source: Source,
    pub file: Option<PathBuf>,
    pub table: Table,
    /// Files of the project that what it sets runs, by command or key.
    pub runs: BTreeMap<String, Sealed>,
    /// Events whose hooks should stop something and do not run, as they are written wrongly.
    pub unguarded: Vec<Event>,
    places: BTreeMap<String, Place>,
}

#[derive(Debug, Clone)]
enum Place {
    Line(usize),
    Variable(String),
}

impl Layer {
    /// A layer without a file.
    pub(crate) fn new(source: Source, table: Table) -> Layer {
        let (runs, places) = (BTreeMap::new(), BTreeMap::new());
        let mut layer = Layer { source, file: None, table, runs, unguarded: Vec::new(), places };
        layer.resolve();
        layer
    }

    /// Gives every setting its own name.
    fn resolve(&mut self) {
        for (alias, own) in aliases::resolve(&mut self.table) {
            if let Some(place) = self.places.remove(alias) {
                self.places.insert(own.to_owned(), place);
            }
        }
    }

    /// A layer whose keys have no known lines.
    pub(crate) fn of_file(source: Source, file: &Path, table: Table) -> Layer {
        Layer { file: Some(file.to_owned()), ..Layer::new(source, table) }
    }

    /// Parses TOML, remembering lines.
    pub(crate) fn parse(source: Source, file: Option<&Path>, text: &str) -> Result<Layer, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut layer = Layer { file: file.map(Path::to_owned), ..Layer::new(source, Table::new()) };
        let lines = Lines::of(text);
        let parsed = DeTable::parse(text).map_err(|error| {
            let line = error.span().map(|span| lines.at(span.start));
            let place = layer.file_label();
            Problem {
                place: line.map_or(place.clone(), |line| format!("{place}:{line}")),
                message: format!("not valid TOML: {}", error.message()),
            }
        })?;
        layer.table = plain_table(parsed.get_ref(), &lines, "", &mut layer.places);
        layer.resolve();
        Ok(layer)
    }

    /// Reads and parses a file; `None` if it does not exist.
    pub(crate) fn read(source: Source, file: &Path) -> Result<Option<Layer>, Problem> {
        match read_text(file)? {
            Some(text) => Layer::parse(source, Some(file), &text).map(Some),
            None => Ok(None),
        }
    }

    /// Settings from variables: `COCODE_<TABLE>__<KEY>`, and the addresses that other tools know, too.
    /// The second list holds variables that look like ours and are not: worth a warning, not an error.
    pub(crate) fn environment(env: &Env, shape: &dyn Fn() -> Shape) -> Result<(Layer, Vec<Problem>), Vec<Problem>> {
        let mut layer = Layer::new(Source::Environment, Table::new());
        let (mut odd, mut wrong) = (Vec::new(), Vec::new());
        odd.extend(layer.take_variables(&|name| env.get(name).map(str::to_owned)));
        let ours: Vec<&String> =
            env.vars.keys().filter(|name| is_setting(name) && !variables::is_known(name)).collect();
        let shape = if ours.is_empty() { None } else { Some(shape()) };
        for (name, shape) in ours.into_iter().filter_map(|name| Some((name, shape.as_ref()?))) {
            let problem = |message| Problem { place: format!("variable {name}"), message };
            let path = variable_path(name);
            let Some(text) = env.vars.get(name).and_then(|value| value.to_str()) else {
                wrong.push(problem("the value is not UTF-8".into()));
                continue;
            };
            match shape.read(&path, text) {
                _ if text.is_empty() => {}
                Ok(value) => layer.put(name, &path, value),
                Err(message) if path.len() > 1 || shape.node(&path).is_ok() => wrong.push(problem(message)),
                Err(_) => {
                    let known =
                        ["COCODE_HOME", "COCODE_CONFIG_DIR", "COCODE_MODEL", "COCODE_MAX_TURNS", "COCODE_PROBE_LOCAL"];
                    let near = nearest(name, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                    odd.push(problem(format!("ignored: no such setting{near}")));
                }
            }
        }
        if wrong.is_empty() { Ok((layer, odd)) } else { Err(wrong) }
    }

    /// Takes over what variables say that others have named. Returns those that do not parse.
    pub(crate) fn take_variables(&mut self, get: &dyn Fn(&str) -> Option<String>) -> Vec<Problem> {
        let (found, unread) = variables::read(get);
        for found in found {
            self.put(&found.variable, &path_of(found.key), found.value);
        }
        unread
    }

    /// Everything in this layer that the schema does not allow.
    pub(crate) fn check(&self, shape: &Shape) -> Vec<Problem> {
        let faults = shape.faults(&self.table).into_iter();
        let problems: Vec<Problem> = faults
            .map(|fault| Problem {
                place: self.place(&fault.key),
                message: aliases::clash(&fault.key).unwrap_or(fault.message),
            })
            .collect();
        if !problems.is_empty() {
            return problems;
        }
        let faults = self.hooks().map_or_else(|fault| vec![fault], |hooks| hooks.faults());
        faults.into_iter().map(|message| Problem { place: self.place("hooks"), message }).collect()
    }

    /// Takes out single settings that the schema does not allow, as a newer version of the program may have written them. What
    /// could have denied something stays, for `check` to find.
    pub(crate) fn without_faults(&mut self, shape: &Shape) -> Vec<Problem> {
        let mut left_out = Vec::new();
        for fault in shape.faults(&self.table) {
            let path = path_of(fault.key.split('[').next().unwrap_or_default());
            // Also where it is misspelt.
            let guards = path.first().is_none_or(|first| nearest(first, ["permissions", "hooks"]).is_some());
            if !guards && take(&mut self.table, &path) {
                let message = format!("{} (ignored)", aliases::clash(&fault.key).unwrap_or(fault.message));
                left_out.push(Problem { place: self.place(&fault.key), message });
            }
        }
        left_out
    }

    /// The hooks that it defines.
    ///
    /// # Errors
    /// Names what one of them lacks.
    pub(crate) fn hooks(&self) -> Result<Definitions, String> {
        match self.table.get("hooks") {
            Some(hooks) => {
                hooks.clone().try_into().map_err(|error: toml::de::Error| format!("`hooks`: {}", error.message()))
            }
            None => Ok(Definitions::default()),
        }
    }

    /// Where the key is, or the nearest table around it.
    pub(crate) fn place(&self, key: &str) -> String {
        let mut around = key.split('[').next().unwrap_or(key);
        loop {
            match (self.places.get(around), around.rfind('.')) {
                (Some(Place::Line(line)), _) => return format!("{}:{line}", self.file_label()),
                (Some(Place::Variable(name)), _) => {
                    return match &self.file {
                        Some(file) => format!("{}: env.{name}", file.display()),
                        None => format!("variable {name}"),
                    };
                }
                (None, Some(dot)) => around = &around[..dot],
                (None, None) => return self.file_label(),
            }
        }
    }

    /// Takes out budgets above the user's own, and the prices that these are reckoned with: a project can only lower what may
    /// be spent. Returns what says so.
    pub(crate) fn without_raises(&mut self, own: &dyn Fn(&str) -> Option<f64>) -> Vec<Problem> {
        let mut raised = Vec::new();
        let mut problems = self.without_prices(own);
        let none = &mut Table::new();
        let budget = self.table.get_mut("budget").and_then(Value::as_table_mut).unwrap_or(none);
        budget.retain(|name, value| {
            let key = format!("budget.{name}");
            let Some(most) = own(&key).filter(|most| dollars(value).is_some_and(|given| given > *most)) else {
                return true;
            };
            raised.push((key, most));
            false
        });
        let problem = |(key, most): (String, f64)| Problem {
            place: self.place(&key),
            message: format!("`{key}` is ignored: a project can only lower your own budget of ${most:.2}"),
        };
        problems.extend(raised.into_iter().map(problem));
        problems
    }

    fn without_prices(&mut self, own: &dyn Fn(&str) -> Option<f64>) -> Vec<Problem> {
        const LIMITS: [&str; 3] = ["budget.turn_usd", "budget.session_usd", "budget.day_usd"];
        let limited = LIMITS.iter().any(|key| own(key).is_some());
        let Some(Value::Table(models)) = self.table.get_mut("models").filter(|_| limited) else { return Vec::new() };
        let mut taken = Vec::new();
        for (name, model) in models.iter_mut() {
            if model.as_table_mut().is_some_and(|model| model.remove("price").is_some()) {
                taken.push(format!("models.{name}.price"));
            }
        }
        let message = |key: &str| format!("`{key}` is ignored: your budget is reckoned with your own prices");
        taken.into_iter().map(|key| Problem { place: self.place(&key), message: message(&key) }).collect()
    }

    /// Takes out what would lead a key of the user's elsewhere: of a provider that is `known` without the project everything
    /// that says where requests go and with which key; of a provider of the project's own the key. A settings.json may set
    /// up a gateway with a key of its own, in place of a provider that the user has not set up.
    pub(crate) fn without_redirects(&mut self, known: &dyn Fn(&str) -> Option<Known>) -> Vec<Problem> {
        const KEYS: [&str; 2] = ["api_key_env", "api_key_command"];
        const WAYS: [&str; 3] = ["models", "default_model", "name"];
        let mut taken = Vec::new();
        let Some(Value::Table(providers)) = self.table.get_mut("providers") else { return Vec::new() };
        for (name, provider) in providers.iter_mut() {
            let Value::Table(provider) = provider else { continue };
            let known = known(name);
            let gateway = matches!(self.source, Source::ProjectSettings | Source::LocalSettings)
                && provider.contains_key("base_url")
                && provider.contains_key("api_key_command");
            if gateway && known == Some(Known::BuiltIn) {
                // The user's key, should a variable hold one, does not go there.
                provider.insert("api_key_env".into(), Value::String(String::new()));
                continue;
            }
            let keeps = |key: &str| if known.is_some() { WAYS.contains(&key) } else { !KEYS.contains(&key) };
            taken.extend(provider.keys().filter(|key| !keeps(key)).map(|key| format!("providers.{name}.{key}")));
            provider.retain(|key, _| keeps(key));
        }
        providers.retain(|_, provider| provider.as_table().is_none_or(|table| !table.is_empty()));
        if providers.is_empty() {
            self.table.remove("providers");
        }
        let problem = |key: String| Problem {
            place: self.place(&key),
            message: format!(
                "requests to models ignore `{key}`: a project cannot decide where your keys go; set it in your own config.toml"
            ),
        };
        taken.into_iter().map(problem).collect()
    }

    fn put(&mut self, variable: &str, path: &[String], value: Value) {
        self.places.insert(path.join("."), Place::Variable(variable.into()));
        let Some((last, tables)) = path.split_last() else { return };
        let mut table = &mut self.table;
        for name in tables {
            let entry = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
            match entry {
                Value::Table(next) => table = next,
                _ => return,
            }
        }
        table.insert(last.clone(), value);
    }

    fn file_label(&self) -> String {
        match (&self.file, self.source) {
            (Some(file), _) => file.display().to_string(),
            (None, source) => source.to_string(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Default => "built-in defaults",
            Source::ManagedDefaults => "managed defaults",
            Source::UserSettings => "user settings.json",
            Source::User => "user configuration",
            Source::ProjectSettings => "project settings.json",
            Source::Project => "project configuration",
            Source::LocalSettings => "local settings.json",
            Source::Local => "local configuration",
            Source::Environment => "environment",
            Source::Flags => "command line",
            Source::Policy => "managed policy",
        })
    }
}

/// An amount, however TOML writes it.
pub(super) fn dollars(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// Merges `upper` over `lower`: tables by key, lists of `permissions` and `hooks` added up, everything else replaced.
pub(crate) fn merge(lower: &mut Table, upper: &Table) {
    merge_at(lower, upper, "");
}

fn merge_at(lower: &mut Table, upper: &Table, prefix: &str) {
    for (name, value) in upper {
        match (lower.get_mut(name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_at(below, above, name),
            (Some(Value::Array(below)), Value::Array(above)) if adds_up(&format!("{prefix}.{name}")) => {
                for item in above {
                    if !below.contains(item) {
                        below.push(item.clone());
                    }
                }
            }
            _ => {
                lower.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Whether the lists of this key add up over all files.
pub(crate) fn adds_up(key: &str) -> bool {
    const LISTS: [&str; 5] =
        ["memory.excludes", "denied_models", "announcements", "allowed_hook_urls", "allowed_hook_variables"];
    let key = key.trim_start_matches('.');
    ["permissions.", "hooks.", "mcp."].iter().any(|table| key.starts_with(table)) || LISTS.contains(&key)
}

/// Calls `visit` with the dotted key of everything that is not a table.
pub(crate) fn leaves(table: &Table, prefix: &str, visit: &mut dyn FnMut(&str, &Value)) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => leaves(inner, &key, visit),
            value => visit(&key, value),
        }
    }
}

/// Removes a value. False if it is not there.
fn take(table: &mut Table, path: &[String]) -> bool {
    match path {
        [] => false,
        [last] => table.remove(last).is_some(),
        [first, rest @ ..] => table.get_mut(first).and_then(Value::as_table_mut).is_some_and(|inner| take(inner, rest)),
    }
}

/// Largest configuration file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a small regular file, if it exists. A FIFO or a device is refused, as it could hang the start.
pub(crate) fn read_text(file: &Path) -> Result<Option<String>, Problem> {
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let bytes = match regular::read(file, MAX_BYTES + 1) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(problem("is not a regular file".into())),
        Err(error) => return Err(problem(format!("cannot be read: {error}"))),
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(problem(format!("is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| problem("is not UTF-8 text".into()))
}

/// The parts of a dotted key; quoted parts may hold dots. Another name of a setting becomes its own.
pub(crate) fn path_of(key: &str) -> Vec<String> {
    aliases::meant(match toml_edit::Key::parse(key) {
        Ok(parts) => parts.into_iter().map(|part| part.get().to_owned()).collect(),
        Err(_) => key.split('.').map(str::to_owned).collect(),
    })
}

fn is_setting(name: &str) -> bool {
    let other = ["COCODE_HOME", "COCODE_CONFIG_DIR", "COCODE_STATE_DIR", "COCODE_SANDBOXED"];
    // A hook or a command may start another cocode.
    let given = ["COCODE_PROJECT_DIR", "COCODE_PLUGIN_ROOT"];
    name.starts_with("COCODE_")
        && !other.contains(&name)
        && !given.contains(&name)
        && !thinking::VARIABLES.contains(&name)
}

/// `COCODE_TUI__THEME` → `tui.theme`. Names in `[env]` keep their case, as variables have one.
fn variable_path(name: &str) -> Vec<String> {
    if name == thinking::INTERLEAVED {
        return path_of("thinking.interleaved");
    }
    let parts: Vec<&str> = name.trim_start_matches("COCODE_").split("__").collect();
    let keep = parts.first().is_some_and(|first| first.eq_ignore_ascii_case("env"));
    let part = |(index, part): (usize, &&str)| if keep && index > 0 { (*part).to_owned() } else { part.to_lowercase() };
    aliases::meant(parts.iter().enumerate().map(part).collect())
}

/// Where the lines of a text end, in bytes.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The number of the line with a byte, from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

fn plain_table(parsed: &DeTable<'_>, lines: &Lines, prefix: &str, places: &mut BTreeMap<String, Place>) -> Table {
    let mut table = Table::new();
    for (name, value) in parsed {
        let key = if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
        places.insert(key.clone(), Place::Line(lines.at(name.span().start)));
        table.insert(name.get_ref().to_string(), plain(value.get_ref(), lines, &key, places));
    }
    table
}

fn plain(value: &DeValue<'_>, lines: &Lines, key: &str, places: &mut BTreeMap<String, Place>) -> Value {
    match value {
        DeValue::String(string) => Value::String(string.to_string()),
        // What does not fit stays text, so that the check reports it as not a number.
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.as_str().into()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::String(number.as_str().into()), Value::Float)
        }
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| plain(item.get_ref(), lines, key, places)).collect())
        }
        DeValue::Table(inner) => Value::Table(plain_table(inner, lines, key, places)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_lines_of_keys() {
        let text = "model = 'x'\n\n[tui]\ntheme = 'dark'\n[providers.a]\nheaders = { b = 'c' }\n";
        let layer = Layer::parse(Source::User, Some(Path::new("c.toml")), text).unwrap();
        for (key, want) in [
            ("model", "c.toml:1"),
            ("tui.theme", "c.toml:4"),
            ("tui.other", "c.toml:3"),
            ("providers.a.headers.b", "c.toml:6"),
            ("nothing", "c.toml"),
        ] {
            assert_eq!(layer.place(key), want, "{key}");
        }
    }

    #[test]
    fn hostile_files_are_problems_not_panics() {
        fn check(text: &str, want: &str) {
            let problem = Layer::parse(Source::User, Some(Path::new("c.toml")), text).unwrap_err();
            assert!(problem.to_string().starts_with(want), "{problem}");
        }
        check("a = 1\nb = ", "c.toml:2: not valid TOML");
        check("a = 1\na = 2", "c.toml:2: not valid TOML");
        check(&format!("a = {}", "[".repeat(100_000)), "c.toml:1: not valid TOML");
        let layer = Layer::parse(Source::User, None, "\u{feff}max_turns = 99999999999999999999").unwrap();
        assert_eq!(layer.check(&Shape::new()).len(), 1);
    }

    #[test]
    fn variables_set_keys() {
        fn check(vars: &[(&str, &str)], want: Result<&str, &str>) {
            let env = Env::fake(Path::new("/h"), vars);
            let shown = match Layer::environment(&env, &Shape::new) {
                Ok((layer, odd)) => {
                    let mut lines = Vec::new();
                    leaves(&layer.table, "", &mut |key, value| {
                        lines.push(format!("{key}={value} ({})", layer.place(key)))
                    });
                    lines.extend(odd.iter().map(ToString::to_string));
                    Ok(lines.join("; "))
                }
                Err(wrong) => Err(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
            };
            assert_eq!(shown.as_deref().map_err(String::as_str), want);
        }
        check(&[("COCODE_HOME", "/x"), ("PATH", "/bin")], Ok(""));
        check(&[("COCODE_TUI__THEME", "light")], Ok("tui.theme=\"light\" (variable COCODE_TUI__THEME)"));
        check(&[("COCODE_MODEL", "")], Ok(""));
        check(&[("COCODE_ENV__Ci", "1")], Ok("env.Ci=\"1\" (variable COCODE_ENV__Ci)"));
        check(
            &[("COCODE_MAX_TURNS", "x")],
            Err("variable COCODE_MAX_TURNS: `max_turns` must be a whole number, not \"x\""),
        );
        check(
            &[("COCODE_TUI__TEHME", "x")],
            Err("variable COCODE_TUI__TEHME: unknown key `tui.tehme`; did you mean `tui.theme`?"),
        );
        check(
            &[("COCODE_MODLE", "x")],
            Ok("variable COCODE_MODLE: ignored: no such setting; did you mean COCODE_MODEL?"),
        );
        check(
            &[("GOOGLE_API_KEY", "secret"), ("OPENAI_BASE_URL", "http://h/v1")],
            Ok("providers.gemini.api_key_env=\"GOOGLE_API_KEY\" (variable GOOGLE_API_KEY); \
                providers.openai.base_url=\"http://h/v1\" (variable OPENAI_BASE_URL)"),
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_does_not_hang_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("config.toml");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        assert_eq!(read_text(&fifo).unwrap_err().message, "is not a regular file");
        assert_eq!(read_text(dir.path()).unwrap_err().message, "is not a regular file");
        assert_eq!(read_text(&dir.path().join("none")), Ok(None));
    }
}
