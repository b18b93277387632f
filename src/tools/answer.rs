//! An answer of a given shape: the model ends its work by calling this with an object that fits a schema.

use std::path::Path;

use serde_json::Value;

use super::{Context, Dirs, Output, Running, Tool};
use crate::permission::Access;
use crate::provider::ToolSpec;

/// The tool's name.
pub const NAME: &str = "StructuredOutput";

/// Checks the final answer against the schema that the caller gave.
pub struct Answer {
    schema: Value,
    check: jsonschema::Validator,
}

impl Answer {
    /// # Errors
    /// The schema is invalid; the text says where.
    pub fn new(schema: &Value) -> Result<Answer, String> {
        let check = jsonschema::validator_for(schema)
            .map_err(|error| format!("--json-schema is not a valid JSON Schema: {error}"))?;
        if schema["type"] != "object" {
            return Err("--json-schema must describe an object: {\"type\": \"object\", …}".into());
        }
        Ok(Answer { schema: schema.clone(), check })
    }
}

impl Tool for Answer {
    fn spec(&self) -> ToolSpec {
        let description =
            "Submits the final answer in the requested format. Call it exactly once, when the work is done.";
        ToolSpec { name: NAME.into(), description: description.into(), schema: self.schema.clone() }
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

    fn run<'a>(&'a self, input: Value, _context: &'a Context<'a>) -> Running<'a> {
        let problems: Vec<String> =
            self.check.iter_errors(&input).take(5).map(|error| format!("{}: {error}", error.instance_path())).collect();
        let output = if problems.is_empty() {
            Output::ok("The answer was accepted. Say nothing more.")
        } else {
            Output::error(format!(
                "The answer does not match the schema. Fix these and call again:\n{}",
                problems.join("\n")
            ))
        };
        Box::pin(std::future::ready(output))
    }
}
