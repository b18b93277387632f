//! One server as a file defines it: read, with its variables put in, and every mistake named.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};
use url::Url;

use crate::stdx::nearest::nearest;
use crate::stdx::sealed::Sealed;
use crate::stdx::shell_word::quoted;

/// Shortest time limit of calls that counts.
const LEAST: u64 = 1000;
/// Names that other programs have for servers of their own.
const RESERVED: [&str; 5] = ["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"];
/// Variables whose values are not shown: a part of their names says that they hold a secret.
const SECRET: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "KEY",
    "AUTH",
    "COOKIE",
    "PAT",
    "DSN",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Where a definition comes from; of two with one name the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `--mcp-config`.
    Flag,
    /// Of the user, for one project.
    Local,
    /// `.mcp.json` of the project.
    Project,
    User,
    /// A plugin brings it along.
    Plugin,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Scope::Flag => "flag",
            Scope::Local => "local",
            Scope::Project => "project",
            Scope::User => "user",
            Scope::Plugin => "plugin",
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    Program {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    /// Streamable HTTP.
    Http {
        url: Url,
        headers: BTreeMap<String, String>,
    },
    /// The older transport with a stream of its own.
    Sse {
        url: Url,
        headers: BTreeMap<String, String>,
    },
    /// It lives in the program that runs us, which knows it by its name.
    Outside,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    pub scope: Scope,
    /// The file, or the flag.
    pub place: String,
    pub way: Way,
    /// Longest time for one call.
    pub timeout: Option<Duration>,
    /// What runs or is asked, for people: values of secret variables stay variables.
    pub line: String,
    /// The same without what the entry itself gives as secrets: values of variables and headers, and passwords in addresses.
    pub told: String,
    /// What else was agreed to with the line.
    pub bound: String,
    /// Files that must hold what they held when the user agreed.
    pub runs: Sealed,
}

/// What a variable holds.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Definition {
    /// Reads an entry. None: it says that it is not set up. `told` hears of what is odd and harmless.
    ///
    /// # Errors
    /// Why it cannot be used, and the fix.
    pub fn read(
        name: &str,
        given: &Value,
        (scope, place): (Scope, &str),
        variable: Variable,
        told: &mut dyn FnMut(String),
    ) -> Result<Option<Definition>, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if RESERVED.contains(&name) {
            return Err(format!("the name `{name}` is reserved: choose another one"));
        }
        // Of those with longer ones, names of tools are cut, and none has so short a rule as to be typed.
        let most = if scope == Scope::Plugin { 160 } else { 48 };
        if name.is_empty() || name.len() > most || !name.chars().all(plain) {
            return Err("names of servers have letters, digits, `_` and `-`, at most 48: rename it".to_owned());
        }
        // Rules would take its tools for those of another server.
        if name.contains("__") || name.ends_with('_') {
            return Err("names of servers do not contain `__` or end with `_`: rename it".to_owned());
        }
        let given = given.as_object().ok_or("must be an object with `command` or `url`")?;
        let mut fields = Fields { given, variable, told };
        let kind = fields.text("type")?;
        let timeout = match given.get("timeout") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64() {
                Some(ms) if ms >= LEAST => Some(Duration::from_millis(ms)),
                Some(_) => {
                    (fields.told)("`timeout` is ignored: it is in milliseconds, 1000 or more".to_owned());
                    None
                }
                None => return Err("`timeout` must be a number of milliseconds".to_owned()),
            },
        };
        let way = match kind.as_ref().map(|kind| kind.0.as_str()) {
            Some("http" | "streamable-http" | "sse") if given.contains_key("url") => {
                match fields.remote(kind.is_some_and(|kind| kind.0 == "sse"))? {
                    Some(way) => way,
                    None => return Ok(None),
                }
            }
            Some(kind @ ("http" | "streamable-http" | "sse")) => {
                return Err(format!("type \"{kind}\" needs a `url`"));
            }
            // A file has no say in what that program answers for.
            Some("sdk") if scope == Scope::Flag => Way::Outside,
            Some("sdk") => return Err("type \"sdk\" only comes from the program that runs cocode".to_owned()),
            Some("ws") => return Err("type \"ws\" is not supported: use the server's http or sse address".to_owned()),
            None | Some("stdio") if given.contains_key("command") => fields.program()?,
            Some("stdio") => return Err("type \"stdio\" needs a `command`".to_owned()),
            None if given.contains_key("url") => {
                return Err("has a `url` but no `type`: add \"type\": \"http\", or \"sse\"".to_owned());
            }
            None => return Err("has neither `command` nor `url`: add one".to_owned()),
            Some(kind) => {
                return Err(match nearest(kind, ["stdio", "http", "sse"]) {
                    Some(near) => format!("unknown type {kind:?}: did you mean \"{near}\"?"),
                    None => format!("unknown type {kind:?}: use \"stdio\", \"http\" or \"sse\""),
                });
            }
        };
        let (name, place) = (name.to_owned(), place.to_owned());
        let (line, told) = (way.line(given, variable, Values::Shown), way.line(given, variable, Values::Hidden));
        let bound = way.bound(given);
        Ok(Some(Definition { name, scope, place, way, timeout, line, told, bound, runs: Sealed::default() }))
    }

    /// The line that it runs as; none for one behind an address.
    pub fn program(&self) -> Option<&str> {
        matches!(self.way, Way::Program { .. }).then_some(self.line.as_str())
    }

    /// Whether both are the same program with the same arguments, or the same address.
    pub fn is_again(&self, other: &Definition) -> bool {
        match (&self.way, &other.way) {
            (Way::Program { command, args, .. }, Way::Program { command: theirs, args: given, .. }) => {
                command == theirs && args == given
            }
            (
                Way::Http { url, .. } | Way::Sse { url, .. },
                Way::Http { url: theirs, .. } | Way::Sse { url: theirs, .. },
            ) => url == theirs,
            _ => false,
        }
    }
}

/// The fields of one entry.
struct Fields<'a> {
    given: &'a Map<String, Value>,
    variable: Variable<'a>,
    told: &'a mut dyn FnMut(String),
}

/// A text with its variables put in.
struct Filled(String);

impl Fields<'_> {
    fn text(&mut self, key: &str) -> Result<Option<Filled>, String> {
        match self.given.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.filled(key, text).map(Some),
            Some(_) => Err(format!("`{key}` must be a string")),
        }
    }

    fn filled(&mut self, key: &str, text: &str) -> Result<Filled, String> {
        let mut unset = Vec::new();
        let filled = expand(text, self.variable, &mut |name| unset.push(name.to_owned()));
        for name in unset {
            (self.told)(format!("`{key}`: the variable {name} is not set, so `${{{name}}}` stays as it is"));
        }
        if filled.trim() != filled {
            // It may be a secret.
            (self.told)(format!("`{key}` begins or ends with a blank"));
        }
        if filled.contains('\0') {
            return Err(format!("`{key}` contains a zero byte"));
        }
        Ok(Filled(filled))
    }

    fn map(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let given = match self.given.get(key) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(given)) => given,
            Some(_) => return Err(format!("`{key}` must be an object of strings")),
        };
        let mut map = BTreeMap::new();
        for (name, value) in given {
            let at = format!("{key}.{name}");
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(format!("`{at}` must be a string")),
            };
            map.insert(name.clone(), self.filled(&at, &text)?.0);
        }
        Ok(map)
    }

    fn program(&mut self) -> Result<Way, String> {
        let Filled(command) = self.text("command")?.ok_or("`command` must be a string")?;
        if command.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        let mut args = Vec::new();
        match self.given.get("args") {
            None | Some(Value::Null) => {}
            Some(Value::Array(given)) => {
                for (at, arg) in given.iter().enumerate() {
                    let text = match arg {
                        Value::String(text) => text.clone(),
                        Value::Number(_) | Value::Bool(_) => arg.to_string(),
                        _ => return Err(format!("`args[{at}]` must be a string")),
                    };
                    args.push(self.filled(&format!("args[{at}]"), &text)?.0);
                }
            }
            Some(_) => return Err("`args` must be a list of strings".to_owned()),
        }
        let env = self.map("env")?;
        if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("`env`: {name:?} cannot be the name of a variable"));
        }
        Ok(Way::Program { command, args, env })
    }

    fn remote(&mut self, sse: bool) -> Result<Option<Way>, String> {
        let Filled(url) = self.text("url")?.ok_or("`url` must be a string")?;
        if url.trim().is_empty() {
            return Ok(None);
        }
        let url = Url::parse(url.trim()).map_err(|error| format!("`url` is not valid: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`url` must begin with http:// or https://, not {}:", url.scheme()));
        }
        let headers = self.map("headers")?;
        for (key, instead) in [
            ("oauth", "login is not supported yet: put a token in `headers`"),
            ("headersHelper", "it is not run: put what it prints in `headers`, with a variable"),
        ] {
            if self.given.get(key).is_some_and(|value| !value.is_null()) {
                (self.told)(format!("`{key}` has no effect: {instead}"));
            }
        }
        for (name, value) in &headers {
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("`headers`: {name:?} cannot be the name of a header"));
            }
            if reqwest::header::HeaderValue::from_str(value).is_err() {
                return Err(format!("`headers.{name}` has a value that cannot be sent"));
            }
        }
        Ok(Some(if sse { Way::Sse { url, headers } } else { Way::Http { url, headers } }))
    }
}

impl Way {
    /// What kind of transport it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Way::Program { .. } => "stdio",
            Way::Http { .. } => "http",
            Way::Sse { .. } => "sse",
            Way::Outside => "sdk",
        }
    }

    fn line(&self, given: &Map<String, Value>, variable: Variable, values: Values) -> String {
        let open = |name: &str| {
            let value = variable(name)?;
            Some(if is_secret(name) || without_password(&value) != value { format!("${{{name}}}") } else { value })
        };
        let shown = |text: &str| {
            let text = expand(text, &open, &mut |_| ());
            if values == Values::Hidden { without_password(&text) } else { text }
        };
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), shown);
        let pairs = |key: &str, between: &str| -> Vec<String> {
            let given = given.get(key).and_then(Value::as_object).into_iter().flatten();
            // As the file has it: what a variable holds is the user's own.
            let plain = |value: &Value| match value.as_str() {
                Some(text) if values == Values::Hidden && !text.contains("${") => "…".to_owned(),
                Some(text) => text.to_owned(),
                None => value.to_string(),
            };
            given.map(|(name, value)| format!("{name}{between}{}", plain(value))).collect()
        };
        match self {
            Way::Program { .. } => {
                let args = given.get("args").and_then(Value::as_array).into_iter().flatten();
                let words = given.get("command").into_iter().chain(args).map(|word| quoted(&text(word)));
                let env = pairs("env", "=").into_iter().map(|pair| match pair.split_once('=') {
                    Some((_, "…")) | None => pair,
                    Some((name, value)) => format!("{name}={}", quoted(value)),
                });
                env.chain(words).collect::<Vec<_>>().join(" ")
            }
            Way::Http { .. } | Way::Sse { .. } => {
                let url = given.get("url").map(text).unwrap_or_default();
                let headers = pairs("headers", ": ");
                let with = if headers.is_empty() { String::new() } else { format!(" with {}", headers.join(", ")) };
                format!("{} {url}{with}", self.kind())
            }
            Way::Outside => "answered by the program that runs cocode".to_owned(),
        }
    }

    /// Everything that decides what runs, or who is asked: what the line shows only in part.
    fn bound(&self, given: &Map<String, Value>) -> String {
        let own = |key: &str| given.get(key).cloned().unwrap_or_default();
        match self {
            Way::Program { command, args, .. } => json!([command, args, own("env")]).to_string(),
            Way::Http { url, .. } | Way::Sse { url, .. } => json!([url.as_str(), own("headers")]).to_string(),
            Way::Outside => self.kind().to_owned(),
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.line)
    }
}

/// Whether a line shows the values that an entry gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// The person who is asked about an entry sees all of it.
    Shown,
    Hidden,
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // Some are written in one word, such as PGPASSWORD; a short one may be part of any word.
    SECRET.iter().any(|secret| name.split('_').any(|part| part == *secret) || secret.len() > 3 && name.contains(secret))
        || name.ends_with("KEY")
}

/// An address without the password and the values in it; anything else as it is.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, more) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let place = place.rsplit_once('@').map_or_else(|| place.to_owned(), |(_, host)| format!("…@{host}"));
    let (path, query) = more.split_once('?').map_or((more, None), |(path, query)| (path, Some(query)));
    let hide = |pair: &str| pair.split_once('=').map_or_else(|| pair.to_owned(), |(name, _)| format!("{name}=…"));
    let query = query.map(|query| format!("?{}", query.split('&').map(hide).collect::<Vec<_>>().join("&")));
    format!("{scheme}://{place}{path}{}", query.unwrap_or_default())
}

/// The text with `${NAME}` and `${NAME:-default}` put in. A variable without a value stays as it is, and is told of.
fn expand(text: &str, variable: Variable, missing: &mut dyn FnMut(&str)) -> String {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((inner, after)) = behind.split_once('}') else {
            whole.push_str("${");
            rest = behind;
            continue;
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = match default {
            _ if !named => None,
            // As a shell does, an empty one counts as unset here.
            Some(default) => variable(name).filter(|value| !value.is_empty()).or_else(|| Some(default.to_owned())),
            None => variable(name),
        };
        match value {
            Some(value) => whole.push_str(&value),
            None => {
                if named {
                    missing(name);
                }
                whole.push_str(&format!("${{{inner}}}"));
            }
        }
        rest = after;
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an entry: its line, or what is wrong; and what is told beside it.
    fn check(given: Value, want: &str) {
        let mut told = Vec::new();
        let variable = |name: &str| {
            let known = [
                ("HOME", "/home/ada"),
                ("EMPTY", ""),
                ("API_TOKEN", "s3cret"),
                ("PORT", "81"),
                ("DB", "pg://u:pw@h/x"),
                ("PGPASSWORD", "s3cret"),
            ];
            known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let place = (Scope::Project, ".mcp.json");
        let read = Definition::read("srv", &given, place, &variable, &mut |text| told.push(text));
        let mut lines = vec![match read {
            Ok(Some(definition)) => {
                let line = match definition.told == definition.line {
                    true => definition.line,
                    false => format!("{} | {}", definition.line, definition.told),
                };
                match definition.way {
                    Way::Program { command, args, env } => format!("{line} => {command} {args:?} {env:?}"),
                    Way::Http { url, headers } | Way::Sse { url, headers } => format!("{line} => {url} {headers:?}"),
                    Way::Outside => line,
                }
            }
            Ok(None) => "not set up".to_owned(),
            Err(problem) => format!("error: {problem}"),
        }];
        lines.extend(told);
        assert_eq!(lines.join("\n"), want, "{given}");
    }

    #[test]
    fn entries() {
        check(json!({"command": "npx", "args": ["-y", "a b"]}), "npx -y 'a b' => npx [\"-y\", \"a b\"] {}");
        check(
            json!({"type": "stdio", "command": "${HOME}/s", "args": ["${PORT:-80}", "${NONE:-80}", "${EMPTY:-7}", "${EMPTY}", 5]}),
            "/home/ada/s 81 80 7 '' 5 => /home/ada/s [\"81\", \"80\", \"7\", \"\", \"5\"] {}",
        );
        // A secret is not shown, and reaches the server all the same.
        check(
            json!({"command": "s", "args": ["--token=${API_TOKEN}"], "env": {"T": "${API_TOKEN}", "N": "a b"}}),
            "T='${API_TOKEN}' N='a b' s '--token=${API_TOKEN}' | T='${API_TOKEN}' N=… s '--token=${API_TOKEN}' => s [\"--token=s3cret\"] {\"N\": \"a b\", \"T\": \"s3cret\"}",
        );
        check(
            json!({"command": "s", "args": ["${NONE} "]}),
            "s '${NONE} ' => s [\"${NONE} \"] {}\n`args[0]`: the variable NONE is not set, so `${NONE}` stays as it is\n\
             `args[0]` begins or ends with a blank",
        );
        check(
            json!({"type": "streamable-http", "url": "http://h:${PORT}/mcp", "headers": {"Authorization": "Bearer ${API_TOKEN}"}}),
            "http http://h:${PORT}/mcp with Authorization: Bearer ${API_TOKEN} => http://h:81/mcp {\"Authorization\": \"Bearer s3cret\"}"
                .replace("h:${PORT}", "h:81")
                .as_str(),
        );
        check(json!({"type": "sse", "url": "https://h/sse"}), "sse https://h/sse => https://h/sse {}");
        check(
            json!({"type": "http", "url": "http://u:pw@h/mcp?api_key=zzz&x"}),
            "http http://u:pw@h/mcp?api_key=zzz&x | http http://…@h/mcp?api_key=…&x => http://u:pw@h/mcp?api_key=zzz&x {}",
        );
        check(
            json!({"command": "s", "args": ["${DB}", "${PGPASSWORD}"]}),
            "s '${DB}' '${PGPASSWORD}' => s [\"pg://u:pw@h/x\", \"s3cret\"] {}",
        );
        check(json!({"type": "http", "url": " "}), "not set up\n`url` begins or ends with a blank");
        for (given, want) in [
            (json!(3), "must be an object with `command` or `url`"),
            (json!({}), "has neither `command` nor `url`: add one"),
            (json!({"url": "http://h"}), "has a `url` but no `type`: add \"type\": \"http\", or \"sse\""),
            (json!({"type": "htp", "url": "http://h"}), "unknown type \"htp\": did you mean \"http\"?"),
            (
                json!({"type": "ws", "url": "ws://h"}),
                "type \"ws\" is not supported: use the server's http or sse address",
            ),
            (json!({"type": "http"}), "type \"http\" needs a `url`"),
            (json!({"type": "http", "url": "file:///x"}), "`url` must begin with http:// or https://, not file:"),
            (
                json!({"type": "http", "url": "http://h", "headers": {"a b": "c"}}),
                "`headers`: \"a b\" cannot be the name of a header",
            ),
            (json!({"command": 3}), "`command` must be a string"),
            (json!({"command": "s", "args": "x"}), "`args` must be a list of strings"),
            (json!({"command": "s", "args": [{}]}), "`args[0]` must be a string"),
            (json!({"command": "s", "env": {"A": []}}), "`env.A` must be a string"),
            (json!({"command": "s", "timeout": "x"}), "`timeout` must be a number of milliseconds"),
        ] {
            check(given, &format!("error: {want}"));
        }
    }

    #[test]
    fn names_that_could_be_taken_for_others_are_refused() {
        let read = |name: &str| {
            let entry = json!({"command": "s"});
            Definition::read(name, &entry, (Scope::User, "f"), &|_| None, &mut |_| ()).is_ok()
        };
        let names = ["a", "a_b", "a-b", "A9", "", "a b", "a__b", "a_", "workspace", &"x".repeat(49)];
        assert_eq!(names.map(read), [true, true, true, true, false, false, false, false, false, false]);
    }

    #[test]
    fn what_is_agreed_to_changes_with_all_that_the_file_says_and_not_with_a_secret() {
        let bound = |given: Value, token: &str| {
            let variable = |_: &str| Some(token.to_owned());
            let read = Definition::read("s", &given, (Scope::Project, "f"), &variable, &mut |_| ());
            read.unwrap().unwrap().bound
        };
        let one = |env: &str| json!({"command": "c", "args": ["a"], "env": {"E": env}});
        assert_eq!(bound(one("${T}"), "1"), bound(one("${T}"), "2"));
        assert_ne!(bound(one("${T}"), "1"), bound(one("x"), "1"));
        let by_line = |token: &str| bound(json!({"command": "${C}"}), token);
        assert_ne!(by_line("a"), by_line("b"));
        let url = |header: &str| json!({"type": "http", "url": "http://h", "headers": {"A": header}});
        assert_ne!(bound(url("x"), "1"), bound(url("y"), "1"));
    }
}
