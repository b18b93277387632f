//! An answer of a given shape: the model ends its work by calling this with an object that fits a schema.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Dirs, Manners, Output, Tool};
use crate::permission::Access;
use crate::provider::ToolSpec;

/// The tool's name.
pub const NAME: &str = "StructuredOutput";

/// Checks the final answer against the schema that the caller gave.
pub struct Answer {
    spec: ToolSpec,
    check: Arc<jsonschema::Validator>,
}

impl Answer {
    /// # Errors
    /// The schema is none; the text says where.
    pub fn new(schema: &Value) -> Result<Answer, String> {
        let check = jsonschema::validator_for(schema)
            .map_err(|error| format!("--json-schema is no valid JSON Schema: {error}"))?;
        if schema["type"] != "object" {
            return Err("--json-schema has to describe an object: {\"type\": \"object\", …}".into());
        }
        let description =
            "Hands over the final answer in the shape that was asked for. Call it exactly once, when the work is done.";
        let spec = ToolSpec { name: NAME.into(), description: description.into(), schema: schema.clone() };
        Ok(Answer { spec, check: Arc::new(check) })
    }
}

impl Tool for Answer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manners(&self) -> Manners {
        Manners { reads: true, ..Manners::ASKS }
    }

    fn call(&self, input: &Value, _dirs: &Dirs) -> Result<Call, String> {
        let (check, input) = (self.check.clone(), input.clone());
        Ok(Call::new(Access::Free, "final answer", move |_| async move {
            let problems: Vec<String> =
                check.iter_errors(&input).take(5).map(|error| format!("{}: {error}", error.instance_path())).collect();
            if problems.is_empty() {
                return Output::ok("The answer is taken. Say nothing more.");
            }
            let problems = problems.join("\n");
            Output::error(format!("The answer does not fit the schema; call again with these mended:\n{problems}"))
        }))
    }
}
