//! The fields of a SKILL.md, read one by one; what does not fit is told and left out.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::{DESCRIPTION, NAME, RunsIn};
use crate::commands::diagnostic::Diagnostic;
use crate::stdx::frontmatter::{Fault, FaultKind, Field, Frontmatter, Taken, snake};

/// Most skills are written for other programs, too.
const LENIENT: Taken = Taken::Leniently;

/// Fields in which a `#` is more likely a word of the author's than the start of a comment.
const PROSE: [&str; 6] =
    ["description", "when_to_use", "argument_hint", "sparse_reminder", "normal_reminder", "detailed_reminder"];

/// Reads fields, and says what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) head: &'a Frontmatter,
    pub(super) file: &'a Path,
    pub(super) problems: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn warn(&mut self, line: Option<usize>, what: &str, effect: &str, fix: &str) {
        self.problems.push(Diagnostic::warning(self.file, line, [what, effect, fix]));
    }

    pub(super) fn faults(&mut self) {
        for Fault { line, kind } in &self.head.faults {
            let (line, what) = (Some(*line), kind.to_string());
            match kind {
                FaultKind::Missing => {
                    let effect = "name and description are guessed, and the model does not see the skill";
                    self.warn(line, &what, effect, "start the file with `---`, name, description, `---`");
                }
                FaultKind::Preceded => {
                    let effect = "cocode reads the frontmatter anyway; stricter tools do not see it";
                    self.warn(line, &what, effect, "move the comment below the frontmatter");
                }
                FaultKind::Wrapped => {
                    let effect = "cocode reads what is inside the fence; stricter tools see no frontmatter";
                    self.warn(line, &what, effect, "remove the backquotes here and at the end");
                }
                FaultKind::Unclosed => {
                    let effect = "it is assumed to end before this line";
                    self.warn(line, &what, effect, "write `---` above this line");
                }
                FaultKind::TooLong => {
                    let effect = "only simple `key: value` lines are read";
                    self.warn(line, &what, effect, "move text into the body");
                }
                FaultKind::Text { .. } => {
                    let effect = "it is read as plain text; stricter tools reject the file";
                    self.warn(line, &what, effect, "put the value in double quotes");
                }
                FaultKind::Stray { .. } => {
                    self.problems.push(Diagnostic::error(
                        self.file,
                        line,
                        [&what, "the line is ignored", "indent it below its key, or remove it"],
                    ));
                }
                FaultKind::Repeated { .. } => {
                    self.warn(
                        line,
                        &what,
                        "the last one is used; stricter tools reject the file",
                        "remove one of them",
                    );
                }
                // Elsewhere it is one: `version: 1 # the first`.
                FaultKind::Comment { key } if !PROSE.contains(&snake(key).as_str()) => {}
                FaultKind::Comment { .. } => {
                    self.warn(line, &what, "the rest of the line is not read", "put the value in double quotes");
                }
            }
        }
    }

    /// A scalar, or a list joined by commas, on one line.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.block(key).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// A scalar with its lines.
    pub(super) fn block(&mut self, key: &str) -> Option<String> {
        let field = self.head.get(key)?;
        match LENIENT.text(&field.value) {
            Some(text) => Some(text.trim().to_owned()),
            None if field.value.is_null() => None,
            None => {
                self.wrong(field, "text");
                None
            }
        }
    }

    fn wrong(&mut self, field: &Field, wanted: &str) {
        let what = format!("`{}` is not {wanted}", field.written);
        self.problems.push(Diagnostic::error(
            self.file,
            Some(field.line),
            [&what, "it is ignored", &format!("write {wanted}")],
        ));
    }

    pub(super) fn name(&mut self, folder: &str) -> String {
        let given = self.text("name").filter(|name| !name.is_empty());
        let line = self.head.get("name").map(|field| field.line);
        let written = given.clone().unwrap_or_else(|| folder.to_owned());
        let name = slug(&written);
        if name.is_empty() {
            let what = format!("the name {written:?} has no usable letters");
            let words = [what.as_str(), "the skill is named `unnamed`", "give it a name of a-z, 0-9 and -"];
            self.problems.push(Diagnostic::error(self.file, line, words));
            return "unnamed".into();
        }
        if name != written {
            let (what, effect) =
                (format!("the name {written:?} cannot be typed"), format!("it is available as `/{name}`"));
            self.warn(line, &what, &effect, "use a-z, 0-9 and - only");
        } else if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            let what = format!("the name `{name}` contains characters other than a-z, 0-9 and -");
            self.warn(
                line,
                &what,
                "it works here; other tools may reject it",
                &format!("rename it to `{}`", plain(&name)),
            );
        }
        let length = name.chars().count();
        if length > NAME {
            let what = format!("the name has {length} characters; the limit is {NAME}");
            self.warn(line, &what, "it works here; other tools may reject it", "choose a shorter one");
        }
        if given.is_some() && !folder.is_empty() && written != folder {
            let what = format!("the name `{written}` differs from the folder `{folder}`");
            self.warn(line, &what, "the name is used", "use the same name for both");
        }
        name
    }

    pub(super) fn description(&mut self, given: Option<String>, body: &str, name: &str) -> String {
        let line = self.head.get("description").map(|field| field.line);
        let text = match given {
            Some(text) => text,
            None => {
                if self.head.faults.iter().all(|fault| fault.kind != FaultKind::Missing) {
                    let effect = "the model does not see the skill; lists show its first heading";
                    self.warn(line, "no description", effect, "write `description: what it does, and when`");
                }
                fallback(body).unwrap_or_else(|| name.to_owned())
            }
        };
        let length = text.chars().count();
        if length <= DESCRIPTION {
            return text;
        }
        let what = format!("the description has {length} characters; the limit is {DESCRIPTION}");
        self.warn(line, &what, "the rest is ignored", "shorten it");
        let cut = text.char_indices().nth(DESCRIPTION - 1).map_or(text.len(), |(at, _)| at);
        format!("{}…", text[..cut].trim_end())
    }

    pub(super) fn flag(&mut self, key: &str, default: bool) -> bool {
        // Other tools spell it with a k.
        let spelled = if key == "user_invocable" { self.head.get("user_invokable") } else { None };
        let Some(field) = self.head.get(key).or(spelled) else { return default };
        let word = LENIENT.text(&field.value).map(|text| text.trim().to_ascii_lowercase());
        match word.as_deref() {
            Some("true" | "yes" | "on" | "1" | "y") => true,
            Some("false" | "no" | "off" | "0" | "n") => false,
            None if field.value.is_null() => default,
            _ => {
                self.wrong(field, "true or false");
                default
            }
        }
    }

    /// Whether arguments may follow the name, in whatever way the file says so.
    pub(super) fn takes_arguments(&mut self) -> bool {
        ["argument_hint", "arguments"].iter().any(|key| self.head.get(key).is_some())
    }

    pub(super) fn hint(&mut self) -> Option<String> {
        let field = self.head.get("argument_hint")?;
        let text = match &field.value {
            // `[id]` is a list for YAML, and a hint for everybody else.
            Value::Array(items) => {
                let words: Vec<String> = items.iter().filter_map(|item| LENIENT.text(item)).collect();
                format!("[{}]", words.join("] ["))
            }
            value => LENIENT.text(value)?,
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty() && text != "[]").then_some(text)
    }

    pub(super) fn tools(&mut self, key: &str) -> Vec<String> {
        let Some(field) = self.head.get(key) else { return Vec::new() };
        let mut odd = Vec::new();
        let tools = LENIENT.names(&field.value, &mut odd);
        if !odd.is_empty() {
            self.wrong(field, "a list of rules such as `Bash(git diff:*)`");
        }
        tools
    }

    pub(super) fn aliases(&mut self, name: &str) -> Vec<String> {
        let Some(field) = self.head.get("aliases").or_else(|| self.head.get("alias")) else { return Vec::new() };
        let (mut odd, mut aliases) = (Vec::new(), Vec::new());
        for alias in LENIENT.names(&field.value, &mut odd).iter().map(|alias| slug(alias.trim_start_matches('/'))) {
            if !alias.is_empty() && alias != name && !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
        if !odd.is_empty() {
            self.wrong(field, "a list of names");
        }
        aliases
    }

    pub(super) fn context(&mut self) -> RunsIn {
        match self.text("context").as_deref() {
            None | Some("" | "main" | "inline") => RunsIn::Main,
            Some("fork") => RunsIn::Fork,
            Some(other) => {
                let line = self.head.get("context").map(|field| field.line);
                let what = format!("`context: {other}` is neither `main` nor `fork`");
                let words = [what.as_str(), "it runs in the conversation", "write `main` or `fork`"];
                self.problems.push(Diagnostic::error(self.file, line, words));
                RunsIn::Main
            }
        }
    }

    /// The type of agent that runs a fork. Elsewhere the word is some other tool's.
    pub(super) fn agent(&mut self, context: RunsIn) -> Option<String> {
        let agent = self.text("agent").filter(|agent| !agent.is_empty())?;
        if context == RunsIn::Fork {
            return Some(agent);
        }
        let line = self.head.get("agent").map(|field| field.line);
        let what = format!("`agent: {agent}` only works with `context: fork`");
        self.warn(line, &what, "the skill runs in the conversation", "add `context: fork`, or remove it");
        None
    }

    pub(super) fn hooks(&mut self) -> Option<Map<String, Value>> {
        let field = self.head.get("hooks")?;
        match &field.value {
            Value::Object(hooks) => Some(hooks.clone()),
            Value::Null => None,
            _ => {
                self.wrong(field, "a table of events");
                None
            }
        }
    }

    /// A folder inside the skill's own.
    pub(super) fn base_dir(&mut self, own: &Path) -> Option<PathBuf> {
        let given = self.text("base_dir").filter(|text| !matches!(text.as_str(), "" | "." | "./"))?;
        let line = self.head.get("base_dir").map(|field| field.line);
        let path = Path::new(&given);
        let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let base = own.join(path);
        let real = base.canonicalize().ok().zip(own.canonicalize().ok());
        match real {
            Some((real, own)) if inside && real.starts_with(&own) && real.is_dir() => Some(base),
            _ => {
                let what = format!("`base_dir: {given}` is not a folder inside the skill's own");
                let words = [what.as_str(), "paths start from the skill's own folder", "name a folder below it"];
                self.problems.push(Diagnostic::error(self.file, line, words));
                None
            }
        }
    }
}

/// A name that can be typed after a slash, as one word.
fn slug(name: &str) -> String {
    let odd = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '/' | '\\' | ':' | '"' | '\'' | '`' | '<' | '>' | '$' | '|' | '(' | ')' | '[' | ']')
    };
    let parts: Vec<&str> = name.split(odd).filter(|part| !part.is_empty()).collect();
    let name = parts.join("-");
    if name.chars().any(char::is_alphanumeric) { name } else { String::new() }
}

/// The nearest name that every tool takes.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "my-skill".into() } else { parts.join("-") }
}

/// The first heading, else the first paragraph.
fn fallback(body: &str) -> Option<String> {
    let (mut paragraph, mut fenced) = (String::new(), false);
    let mut ended = false;
    for line in body.lines().map(str::trim).take(500) {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let heading = line.trim_start_matches('#');
        let title = heading.trim().trim_end_matches('#').trim_end();
        if heading.len() < line.len() && heading.starts_with(' ') && !title.is_empty() {
            return Some(title.to_owned());
        }
        ended |= line.is_empty() && !paragraph.is_empty();
        if !ended && line.chars().any(char::is_alphanumeric) {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        }
    }
    (!paragraph.is_empty()).then_some(paragraph)
}
