//! The tools by name, in the one order in which the model is told of them.

use std::sync::Arc;

use crate::agents::Definitions;
use crate::mcp::{Servers, is_tool};
use crate::permission::{Matches, Ruled, Vocabulary};
use crate::provider::ToolSpec;

use super::call::{Own, Typed};
use super::{Offered, Tool, mcp_call};

/// What rules may be about: the tools below, and names that people bring along in their settings.
pub const RULES: Vocabulary = Vocabulary(&[
    row::<super::read::Read>(),
    row::<super::write::Write>(),
    row::<super::edit::Edit>(),
    row::<super::bash::Bash>(),
    row::<super::grep::Grep>(),
    row::<super::glob::Glob>(),
    row::<super::ls::Ls>(),
    row::<super::todo_write::TodoWrite>(),
    row::<super::web_fetch::WebFetch>(),
    row::<super::web_search::WebSearch>(),
    row::<super::notebook_edit::NotebookEdit>(),
    row::<super::enter_plan_mode::EnterPlanMode>(),
    row::<super::exit_plan_mode::ExitPlanMode>(),
    row::<super::ask_user_question::AskUserQuestion>(),
    row::<super::skill::Skill>(),
    row::<super::task::Task>(),
    row::<super::recall::Recall>(),
    row::<super::task_stop::TaskStop>(),
    row::<super::task_output::TaskOutput>(),
    (super::task::AGENT, Ruled { under: Some(super::TASK), ..Ruled::BY_NAME }),
    ("MultiEdit", Ruled { matches: Matches::Path, under: Some(super::EDIT), shows: None }),
    ("BashOutput", Ruled { under: Some(super::task_output::TaskOutput::NAME), ..Ruled::BY_NAME }),
    ("KillShell", Ruled { under: Some(super::task_stop::TaskStop::NAME), ..Ruled::BY_NAME }),
    ("KillBash", Ruled { under: Some(super::task_stop::TaskStop::NAME), ..Ruled::BY_NAME }),
    ("NotebookRead", Ruled::BY_NAME),
    ("SlashCommand", Ruled::BY_NAME),
    ("ToolSearch", Ruled::BY_NAME),
]);

const fn row<T: Typed>() -> (&'static str, Ruled) {
    (T::NAME, T::MANNERS.rules)
}

/// Below so many tokens every definition has to be worth its place.
const SMALL_WINDOW: u64 = 16_000;

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
            own(super::read::Read),
            own(super::write::Write),
            own(super::edit::Edit),
            own(super::bash::Bash),
            own(super::grep::Grep),
            own(super::glob::Glob),
            own(super::ls::Ls),
            own(super::todo_write::TodoWrite),
            own(super::web_fetch::WebFetch::default()),
            own(super::web_search::WebSearch),
            own(super::notebook_edit::NotebookEdit),
            own(super::enter_plan_mode::EnterPlanMode),
            own(super::exit_plan_mode::ExitPlanMode),
            own(super::ask_user_question::AskUserQuestion),
            own(super::skill::Skill),
            own(super::task::Task::new(Arc::new(Definitions::builtin()))),
            own(super::recall::Recall),
            own(super::task_stop::TaskStop),
            own(super::task_output::TaskOutput),
        ])
    }

    /// With these sub-agents to launch.
    pub fn with_agents(&self, definitions: Arc<Definitions>) -> Toolbox {
        self.with(own(super::task::Task::new(definitions)))
    }

    /// With the pair of tools that reaches all tools of servers; `names` are those of the servers.
    pub fn with_servers(&self, servers: &Arc<Servers>, names: &[&str]) -> Toolbox {
        let search = own(super::tool_search::ToolSearch::new(servers.clone(), names));
        self.with(search).with(Arc::new(super::mcp_call::McpCall::new(servers.clone())))
    }

    /// A set of one's own, in this order.
    pub fn of(tools: Vec<Arc<dyn Tool>>) -> Toolbox {
        let told = tools.iter().filter(|tool| tool.manners().offered != Offered::Nobody);
        let specs = told.map(|tool| tool.spec().clone()).collect();
        Toolbox { tools: tools.into(), specs }
    }

    /// With one more tool, which the model is told of last; one of the same name gives its place to it.
    pub fn with(&self, tool: Arc<dyn Tool>) -> Toolbox {
        let mut tools = self.tools.to_vec();
        match tools.iter().position(|other| other.spec().name == tool.spec().name) {
            Some(at) => tools[at] = tool,
            None => tools.push(tool),
        }
        Toolbox::of(tools)
    }

    /// Those alone that are wanted, in the same order.
    pub fn only(&self, wanted: impl Fn(&dyn Tool) -> bool) -> Toolbox {
        Toolbox::of(self.tools.iter().filter(|tool| wanted(&***tool)).cloned().collect())
    }

    /// As a session begins with it in a window of so many tokens: below `SMALL_WINDOW` without what takes too much of it.
    pub fn fitting(&self, window: Option<u64>) -> Toolbox {
        match window {
            Some(tokens) if tokens < SMALL_WINDOW => {
                let few = self.only(|tool| !tool.manners().needs_room);
                Toolbox { specs: few.iter().map(lean).collect(), ..few }
            }
            _ => self.clone(),
        }
    }

    /// Finds a tool by the name that the model uses.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let own = self.tools.iter().find(|tool| tool.spec().name == name);
        let other = || self.tools.iter().find(|tool| tool.manners().aliases.contains(&name));
        own.or_else(other).or_else(|| if is_tool(name) { self.get(mcp_call::NAME) } else { None })
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn Tool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// What the model is told, always in the same order.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }
}

/// What the model is told of a tool without the parameters that it can do without.
fn lean(tool: &dyn Tool) -> ToolSpec {
    let mut spec = tool.spec().clone();
    if let Some(parameters) = spec.schema["properties"].as_object_mut() {
        parameters.retain(|name, _| !tool.manners().spare.contains(&name.as_str()));
    }
    spec
}

fn own<T: Typed>(tool: T) -> Arc<dyn Tool> {
    Arc::new(Own::new(tool))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stdx::schema::Schema;
    use crate::tools::fixture::Fixture;

    #[test]
    fn names_and_order() {
        let toolbox = Toolbox::builtin();
        let names: Vec<&str> = toolbox.specs.iter().map(|spec| spec.name.as_str()).collect();
        let want = ["Read", "Write", "Edit", "Bash", "Grep", "Glob", "LS", "TodoWrite", "WebFetch", "WebSearch"];
        let more =
            ["NotebookEdit", "EnterPlanMode", "ExitPlanMode", "AskUserQuestion", "Skill", "Task", "Recall", "TaskStop"];
        assert_eq!(names, [&want[..], &more].concat());
        assert!(names.iter().all(|name| toolbox.get(name).is_some_and(|tool| tool.spec().name == *name)));
        assert!(toolbox.get("Nothing").is_none());
        let ruled: Vec<_> = toolbox.iter().map(|tool| (tool.spec().name.as_str(), tool.manners().rules)).collect();
        assert_eq!(ruled, RULES.0[..ruled.len()]);
        // Lines are judged by the rules of these: there is one of each.
        for one in [Matches::Reading, Matches::Editing, Matches::Writing, Matches::Command, Matches::Domain] {
            assert_eq!(RULES.0.iter().filter(|(_, ruled)| ruled.matches == one).count(), 1, "{one:?}");
        }
    }

    #[test]
    fn wrong_input_is_told_by_every_tool() {
        let fixture = Fixture::new();
        let needs = |tool: &&dyn Tool| !tool.spec().schema["required"].as_array().is_none_or(Vec::is_empty);
        for tool in Toolbox::builtin().iter().filter(needs) {
            let name = &tool.spec().name;
            for (input, want) in [
                (json!({}), "Parameter `"),
                (json!([1]), "The input must be an object, but is an array."),
                (
                    json!({"file_path": {}, "command": [], "pattern": {}, "path": [], "todos": 1, "url": [], "query": {},
                    "notebook_path": [], "content": 1, "old_string": "", "new_string": ""}),
                    "Parameter `",
                ),
            ] {
                let refused = tool.call(&input, &fixture.dirs).unwrap_err();
                assert!(refused.starts_with(want), "{name}: {refused}");
            }
        }
    }

    #[test]
    fn small_windows_begin_with_fewer_tools() {
        let names = |window| {
            let specs = Toolbox::builtin().fitting(window).specs();
            specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Some(8_192)), "Read Write Edit Bash Grep Glob TodoWrite ExitPlanMode Recall");
        let all = names(None);
        assert_eq!([names(Some(16_000)), names(Some(200_000))], [all.clone(), all]);
        let json = serde_json::to_string(&*Toolbox::builtin().fitting(Some(8_192)).specs()).unwrap();
        assert!(json.len() < 4_400, "{} bytes", json.len());
        // What is not told is understood all the same.
        assert!(!json.contains("\"-A\"") && json.contains("\"-C\""));
        let grep = Toolbox::builtin().fitting(Some(8_192)).get("Grep").cloned().unwrap();
        assert!(grep.call(&json!({"pattern": "x", "-A": "two"}), &Fixture::new().dirs).is_err());
    }

    #[test]
    fn a_change_leaves_what_was_sent_as_it_is() {
        let before = Toolbox::builtin();
        let sent = before.specs();
        let answer = crate::tools::answer::Answer::new(Schema::new(json!({"type": "object"})).unwrap());
        let after = before.with(Arc::new(answer)).with_agents(Arc::new(Definitions::builtin())).specs();
        assert_eq!((&*sent, after.len()), (&after[..sent.len()], sent.len() + 1));
        assert_eq!(after[sent.len()].name, crate::tools::answer::NAME);
    }

    #[test]
    fn specs_are_small_and_plain() {
        let json = serde_json::to_string(&*Toolbox::builtin().specs()).unwrap();
        // Part of the first request's 18 kB; the system prompt and later tools need the rest.
        assert!(json.len() < 10_700, "{} bytes", json.len());
        for word in ["$schema", "\"title\"", "\"format\"", "$ref", "$defs", "\"null\""] {
            assert!(!json.contains(word), "{word} in {json}");
        }
    }
}
