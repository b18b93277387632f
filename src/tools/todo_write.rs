//! TodoWrite: replaces the list of what is to be done.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::message::{Display, Effect, Todo, TodoStatus};
use crate::permission::Access;
use crate::provider::ToolSpec;

use super::{Context, Dirs, Output, Running, Tool, input};

pub(super) struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// The whole list, in order
    todos: Vec<Todo>,
}

impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        let description = include_str!("../../assets/tools/todo_write.md").trim().into();
        ToolSpec { name: "TodoWrite".into(), description, schema: input::schema::<Input>() }
    }

    fn access(&self, input: &Value, _dirs: &Dirs, _home: Option<&Path>) -> Result<Access, String> {
        input::parse::<Input>(input).map(|_| Access::Free)
    }

    // It touches no file, but two lists of one reply must not race.
    fn read_only(&self, _input: &Value) -> bool {
        false
    }

    fn title(&self, input: &Value) -> String {
        let todos = input.get("todos").and_then(Value::as_array).map_or(0, Vec::len);
        format!("{todos} items")
    }

    fn clearable(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Value, _context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move { write(&input).unwrap_or_else(Output::error) })
    }
}

fn write(input: &Value) -> Result<Output, String> {
    let Input { todos: items } = input::parse(input)?;
    if let Some(at) = items.iter().position(|item| item.content.trim().is_empty()) {
        return Err(format!("Parameter `todos[{at}].content` is empty."));
    }
    let with = |status| items.iter().filter(|item| item.status == status).count();
    let (active, done) = (with(TodoStatus::InProgress), with(TodoStatus::Completed));
    if active > 1 {
        return Err(format!(
            "{active} items are in_progress, but only one may be: the one you are working on. The list was not changed."
        ));
    }
    let told = format!("The list has {} items, {done} completed. Continue with the one in progress.", items.len());
    let display = Some(Display::Todos { items: items.clone() });
    Ok(Output { display, effects: vec![Effect::Todos { items }], ..Output::ok(told) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(status: &str) -> Value {
        json!({"content": "Do it", "activeForm": "Doing it", "status": status})
    }

    #[test]
    fn lists() {
        let output = write(&json!({"todos": [item("completed"), item("in_progress"), item("pending")]})).unwrap();
        let [Effect::Todos { items }] = output.effects.as_slice() else { panic!("{output:?}") };
        assert_eq!(
            items.iter().map(|item| item.status).collect::<Vec<_>>(),
            [TodoStatus::Completed, TodoStatus::InProgress, TodoStatus::Pending]
        );
        assert_eq!(output.display, Some(Display::Todos { items: items.clone() }));
        assert!(write(&json!({"todos": []})).is_ok());
        let refused = write(&json!({"todos": [item("in_progress"), item("in_progress")]})).unwrap_err();
        assert!(refused.starts_with("2 items are in_progress"), "{refused}");
    }
}
