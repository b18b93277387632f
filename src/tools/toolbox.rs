//! The tools by name, in the one order in which the model is told of them.

use std::sync::Arc;

use crate::agents::Definitions;
use crate::provider::ToolSpec;

use super::Tool;

/// All tools of a session. Cheap to clone; the order never changes, so that requests keep a byte-identical prefix.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<[ToolSpec]>,
}

impl Toolbox {
    /// The tools that need nothing but this machine.
    pub fn builtin() -> Toolbox {
        Toolbox::of(vec![
            Arc::new(super::read::Read),
            Arc::new(super::write::Write),
            Arc::new(super::edit::Edit),
            Arc::new(super::bash::Bash),
            Arc::new(super::grep::Grep),
            Arc::new(super::glob::Glob),
            Arc::new(super::ls::Ls),
            Arc::new(super::todo_write::TodoWrite),
            Arc::new(super::web_fetch::WebFetch::default()),
            Arc::new(super::web_search::WebSearch),
            Arc::new(super::notebook_edit::NotebookEdit),
            Arc::new(super::enter_plan_mode::EnterPlanMode),
            Arc::new(super::exit_plan_mode::ExitPlanMode),
            Arc::new(super::ask_user_question::AskUserQuestion),
            Arc::new(super::skill::Skill),
            Arc::new(super::Task::new(Arc::new(Definitions::builtin()))),
        ])
    }

    /// A set of one's own, in this order.
    pub fn of(tools: Vec<Arc<dyn Tool>>) -> Toolbox {
        let specs = tools.iter().map(|tool| tool.spec()).collect();
        Toolbox { tools: tools.into(), specs }
    }

    /// With one more tool, which the model is told of last; one of the same name gives its place to it.
    pub fn with(&self, tool: Arc<dyn Tool>) -> Toolbox {
        let name = tool.spec().name;
        let mut tools = self.tools.to_vec();
        match self.specs.iter().position(|spec| spec.name == name) {
            Some(at) => tools[at] = tool,
            None => tools.push(tool),
        }
        Toolbox::of(tools)
    }

    /// Those alone whose names are wanted, in the same order.
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Toolbox {
        let pairs = self.tools.iter().zip(self.specs.iter());
        Toolbox::of(pairs.filter(|(_, spec)| wanted(&spec.name)).map(|(tool, _)| tool.clone()).collect())
    }

    /// Finds a tool by the name that the model uses.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.specs.iter().position(|spec| spec.name == name).map(|at| &self.tools[at])
    }

    /// What the model is told, always in the same order.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[test]
    fn names_and_order() {
        let toolbox = Toolbox::builtin();
        let names: Vec<&str> = toolbox.specs.iter().map(|spec| spec.name.as_str()).collect();
        let want = ["Read", "Write", "Edit", "Bash", "Grep", "Glob", "LS", "TodoWrite", "WebFetch", "WebSearch"];
        let more = ["NotebookEdit", "EnterPlanMode", "ExitPlanMode", "AskUserQuestion", "Skill", "Task"];
        assert_eq!(names, [&want[..], &more].concat());
        assert!(names.iter().all(|name| toolbox.get(name).is_some_and(|tool| tool.spec().name == *name)));
        assert!(toolbox.get("Nothing").is_none());
    }

    #[tokio::test]
    async fn wrong_input_is_told_by_every_tool() {
        let mut fixture = Fixture::new();
        let needs = |tool: &&Arc<dyn Tool>| !tool.spec().schema["required"].as_array().is_none_or(Vec::is_empty);
        for tool in Toolbox::builtin().tools.iter().filter(needs) {
            let name = tool.spec().name;
            for (input, want) in [
                (json!({}), "Parameter `"),
                (json!([1]), "The input must be an object, but is an array."),
                (
                    json!({"file_path": {}, "command": [], "pattern": {}, "path": [], "todos": 1, "url": [], "query": {},
                    "notebook_path": [], "content": 1, "old_string": "", "new_string": ""}),
                    "Parameter `",
                ),
            ] {
                let refused = tool.access(&input, &fixture.dirs, None).unwrap_err();
                assert!(refused.starts_with(want), "{name}: {refused}");
                assert_eq!(fixture.error(tool.as_ref(), input.clone()).await, refused, "{name}");
                assert_eq!(tool.preview(&input, &fixture.dirs, None), None, "{name}");
                assert!(!tool.title(&input).contains('\n'), "{name}");
            }
        }
    }

    #[test]
    fn specs_are_small_and_plain() {
        let json = serde_json::to_string(&*Toolbox::builtin().specs()).unwrap();
        // Part of the first request's 18 kB; the system prompt and later tools need the rest.
        assert!(json.len() < 10_500, "{} bytes", json.len());
        for word in ["$schema", "\"title\"", "\"format\"", "$ref", "$defs", "\"null\""] {
            assert!(!json.contains(word), "{word} in {json}");
        }
    }
}
