//! An answer of a given shape: the model ends its work by calling this with an object that fits a schema.

use std::path::Path;

use serde_json::Value;

use super::{Context, Dirs, Output, Running, Tool, input};
use crate::permission::Access;
use crate::provider::ToolSpec;
use crate::stdx::schema::Schema;

/// The tool's name.
pub const NAME: &str = "StructuredOutput";

/// Checks the final answer against the schema that the caller gave.
pub struct Answer {
    schema: Schema,
}

impl Answer {
    pub fn new(schema: Schema) -> Answer {
        Answer { schema }
    }
}

impl Tool for Answer {
    fn spec(&self) -> ToolSpec {
        let description =
            "Submits the final answer in the requested format. Call it exactly once, when the work is done.";
        ToolSpec { name: NAME.into(), description: description.into(), schema: self.schema.json().clone() }
    }

    fn access(&self, _input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Result<Access, String> {
        Ok(Access::Free)
    }

    fn read_only(&self, _input: &Value) -> bool {
        true
    }

    fn title(&self, _input: &Value) -> String {
        "final answer".into()
    }

    fn clearable(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, answer: Value, _context: &'a Context<'a>) -> Running<'a> {
        let problems: Vec<String> = self.schema.faults(&answer).iter().take(5).map(input::sentence).collect();
        let output = if problems.is_empty() {
            Output::ok("The answer was accepted. Say nothing more.")
        } else {
            Output::error(format!(
                "The answer does not fit the schema; fix this and call again:\n{}",
                problems.join("\n")
            ))
        };
        Box::pin(std::future::ready(output))
    }
}
