//! An answer of a given shape: the model ends its work by calling this with an object that fits a schema.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Dirs, Manners, Output, Tool, input};
use crate::message::Display;
use crate::permission::Access;
use crate::provider::ToolSpec;
use crate::stdx::schema::Schema;

/// The tool's name.
pub const NAME: &str = "StructuredOutput";

/// Checks the final answer against the schema that the caller gave.
pub struct Answer {
    spec: ToolSpec,
    schema: Arc<Schema>,
}

impl Answer {
    pub fn new(schema: Schema) -> Answer {
        let description =
            "Submits the final answer in the requested format. Call it exactly once, when the work is done.";
        let spec = ToolSpec { name: NAME.into(), description: description.into(), schema: schema.json().clone() };
        Answer { spec, schema: Arc::new(schema) }
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
        let (schema, answer) = (self.schema.clone(), input.clone());
        Ok(Call::new(Access::Free, "final answer", move |_| async move {
            let problems: Vec<String> = schema.faults(&answer).iter().take(5).map(input::sentence).collect();
            if problems.is_empty() {
                let display = Some(Display::Answer { value: answer });
                return Output { display, ..Output::ok("The answer was accepted. Say nothing more.") };
            }
            let problems = problems.join("\n");
            Output::error(format!("The answer does not fit the schema; fix this and call again:\n{problems}"))
        }))
    }
}
