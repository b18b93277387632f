//! Skill: starts one of the skills that the model was told of.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::permission::Access;
use crate::provider::ToolSpec;

use super::{After, Context, Dirs, Output, Running, Tool, input};

pub(super) struct Skill;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Its name, as in the list of skills
    skill: String,
    /// Arguments for the skill
    #[serde(default)]
    args: Option<String>,
}

impl Tool for Skill {
    fn spec(&self) -> ToolSpec {
        let description = include_str!("../../assets/tools/skill.md").trim().into();
        ToolSpec { name: "Skill".into(), description, schema: input::schema::<Input>() }
    }

    fn access(&self, input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Result<Access, String> {
        let Input { skill, .. } = input::parse(input)?;
        let name = skill.trim().trim_start_matches('/').to_owned();
        Ok(Access::Other { specifier: Some(name), read_only: true })
    }

    // What it leads to is judged call by call, but two must not begin at the same time.
    fn read_only(&self, _input: &Value) -> bool {
        false
    }

    fn title(&self, input: &Value) -> String {
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let line = format!("{} {}", text("skill"), text("args"));
        line.lines().next().unwrap_or_default().trim_end().to_owned()
    }

    fn clearable(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move {
            let Input { skill, args } = match input::parse(&input) {
                Ok(input) => input,
                Err(problem) => return Output::error(problem),
            };
            let name = skill.trim().trim_start_matches('/').to_owned();
            match context.host.skill(&name) {
                Ok(()) => {
                    let after = vec![After::Skill { name, args: args.unwrap_or_default() }];
                    Output { after, ..Output::ok("The skill has started; its instructions follow.") }
                }
                Err(problem) => Output::error(problem),
            }
        })
    }
}
