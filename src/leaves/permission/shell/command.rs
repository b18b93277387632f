//! A command line with the tree that it parses to.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::{Line, parse};

/// A line of a shell, parsed when it is first decided about and never again.
#[derive(Clone)]
pub struct CommandLine(Arc<(String, OnceLock<Result<Line, String>>)>);

impl CommandLine {
    pub(in crate::permission) fn parsed(&self) -> Result<&Line, &str> {
        let (text, parsed) = &*self.0;
        parsed.get_or_init(|| parse(text)).as_ref().map_err(String::as_str)
    }
}

impl From<String> for CommandLine {
    fn from(text: String) -> CommandLine {
        CommandLine(Arc::new((text, OnceLock::new())))
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
        **self == **other
    }
}

impl Eq for CommandLine {}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
