//! TodoWrite: replaces the list of what is to be done.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::{Display, Effect, Todo, TodoStatus};
use crate::permission::Access;

use super::call::Typed;
use super::{Call, Dirs, Manners, Output};

pub(super) struct TodoWrite;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The whole list, in order
    todos: Vec<Todo>,
}

impl Typed for TodoWrite {
    type Input = Input;

    const NAME: &'static str = "TodoWrite";
    const ABOUT: &'static str = include_str!("../../../assets/tools/todo_write.md");
    const MANNERS: Manners = Manners {
        // It touches no file, but two lists of one reply must not race.
        reads: false,
        clearable: false,
        ..Manners::READS
    };

    fn call(&self, Input { todos }: Input, _dirs: &Dirs) -> Result<Call, String> {
        let title = format!("{} items", todos.len());
        Ok(Call::new(Access::Free, title, |_| async { write(todos).unwrap_or_else(Output::error) }))
    }
}

fn write(items: Vec<Todo>) -> Result<Output, String> {
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
    use serde_json::{Value, json};

    use super::*;

    fn list(statuses: &[&str]) -> Result<Output, String> {
        let item = |status: &&str| json!({"content": "Do it", "activeForm": "Doing it", "status": status});
        write(serde_json::from_value(statuses.iter().map(item).collect::<Value>()).unwrap())
    }

    #[test]
    fn lists() {
        let output = list(&["completed", "in_progress", "pending"]).unwrap();
        let [Effect::Todos { items }] = output.effects.as_slice() else { panic!("{output:?}") };
        assert_eq!(
            items.iter().map(|item| item.status).collect::<Vec<_>>(),
            [TodoStatus::Completed, TodoStatus::InProgress, TodoStatus::Pending]
        );
        assert_eq!(output.display, Some(Display::Todos { items: items.clone() }));
        assert!(list(&[]).is_ok());
        let refused = list(&["in_progress", "in_progress"]).unwrap_err();
        assert!(refused.starts_with("2 items are in_progress"), "{refused}");
    }
}
