//! A command line with the tree that it parses to.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{Line, Word, parse};

/// A line of a shell, parsed when it is first decided about and never again.
#[derive(Clone)]
pub struct CommandLine(Arc<(String, OnceLock<Result<Line, String>>)>, Run);

/// Where a line asks to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Run {
    #[default]
    Confined,
    Outside,
}

impl CommandLine {
    pub(in crate::permission) fn parsed(&self) -> Result<&Line, &str> {
        let (text, parsed) = &*self.0;
        parsed.get_or_init(|| parse(text)).as_ref().map_err(String::as_str)
    }
}

impl CommandLine {
    /// The same line, asking to run outside of the sandbox.
    pub fn escaping(self) -> CommandLine {
        CommandLine(self.0, Run::Outside)
    }

    /// Whether it asks to run outside of the sandbox.
    pub fn escapes(&self) -> bool {
        self.1 == Run::Outside
    }
}

/// Programs that run the one that follows them.
const WRAPPERS: [&str; 10] = ["env", "exec", "command", "nice", "nohup", "time", "timeout", "stdbuf", "sudo", "xargs"];

impl CommandLine {
    /// The same with those that run them, such as `sudo` and `env`, as the text names them.
    pub fn started(&self) -> Vec<String> {
        let mut all = Vec::new();
        let Ok(line) = self.parsed() else { return all };
        line.node.for_each_simple(&mut |command| {
            let words = command.words.iter().map_while(Word::literal);
            let mut carried = true;
            all.extend(
                words
                    .filter(|word| !aside(word))
                    .take_while(|word| std::mem::replace(&mut carried, WRAPPERS.contains(&word.as_str()))),
            );
        });
        all
    }

    /// The names of the programs that the text starts, as far as it says them.
    pub fn programs(&self) -> Vec<String> {
        let mut all = Vec::new();
        let Ok(line) = self.parsed() else { return all };
        line.node.for_each_simple(&mut |command| {
            let mut words = command.words.iter().map_while(Word::literal);
            let passed = |word: &String| aside(word) || WRAPPERS.contains(&word.as_str());
            let name = words.find(|word| !passed(word));
            all.extend(name.and_then(|name| Some(Path::new(&name).file_name()?.to_str()?.to_owned())));
        });
        all
    }
}

/// Whether a word before a program is not the name of one: an option, a variable, a number.
fn aside(word: &str) -> bool {
    word.starts_with('-') || word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit())
}

impl From<String> for CommandLine {
    fn from(text: String) -> CommandLine {
        CommandLine(Arc::new((text, OnceLock::new())), Run::default())
    }
}

impl From<&str> for CommandLine {
    fn from(text: &str) -> CommandLine {
        text.to_owned().into()
    }
}

impl Deref for CommandLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.0
    }
}

impl PartialEq for CommandLine {
    fn eq(&self, other: &CommandLine) -> bool {
        **self == **other && self.1 == other.1
    }
}

impl Eq for CommandLine {}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_line() {
        for (line, want) in [
            ("cargo build", "cargo"),
            ("cd x && RUST_LOG=1 timeout 60 /usr/bin/cargo test | tee y", "cd cargo tee"),
            ("env A=1 nice -n 5 npm ci", "npm"),
            ("for i in a b; do pip install $i; done", "pip"),
            ("$CMD x", ""),
            ("if", ""),
        ] {
            assert_eq!(CommandLine::from(line).programs().join(" "), want, "{line}");
        }
    }
}
