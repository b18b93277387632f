//! ToolSearch: finds tools of MCP servers. The model knows their servers by name and all else from here, so that what requests
//! begin with is the same whatever servers come, go or change.

use std::fmt::Write;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mcp::{self, Servers};
use crate::permission::Access;

use super::call::Typed;
use super::{Call, Context, Dirs, Manners, Offered, Output, file};

/// Tools that are found where the call does not say, and at most.
const FOUND: (usize, usize) = (5, 20);
/// Most bytes of names of servers that the model is told from the beginning.
const NAMES: usize = 300;

pub(super) struct ToolSearch {
    servers: Arc<Servers>,
    about: String,
}

impl ToolSearch {
    /// `names` are those of the servers as the session begins.
    pub(super) fn new(servers: Arc<Servers>, names: &[&str]) -> ToolSearch {
        let mut listed = String::new();
        for name in names {
            if listed.len() + name.len() > NAMES {
                listed.push_str(", …");
                break;
            }
            let between = if listed.is_empty() { "" } else { ", " };
            let _ = write!(listed, "{between}{name}");
        }
        ToolSearch { servers, about: format!("{} Servers: {listed}.", ToolSearch::ABOUT.trim()) }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// What the tool should do, or select:name1,name2
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

impl Typed for ToolSearch {
    type Input = Input;

    const NAME: &'static str = "ToolSearch";
    const ABOUT: &'static str = include_str!("../../../assets/tools/tool_search.md");
    const MANNERS: Manners = Manners { offered: Offered::Below, ..Manners::READS };

    fn about(&self) -> String {
        self.about.clone()
    }

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        let (title, servers) = (file::one_line(&input.query), self.servers.clone());
        let limit = input.limit.unwrap_or(FOUND.0).clamp(1, FOUND.1);
        let work = move |context: Context| async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => file::interrupted(),
                // Servers that still start may have what is asked for.
                () = servers.settled() => Output::ok(told(&servers, &input.query, limit)),
            }
        };
        Ok(Call::new(Access::Free, title, work))
    }
}

fn told(servers: &Servers, query: &str, limit: usize) -> String {
    let found = servers.search(query, limit);
    let mut told = String::new();
    if found.is_empty() {
        let _ = writeln!(told, "No MCP tool fits {query:?}. Try other words, or an empty query for the first tools.");
    }
    for one in &found {
        let tool = &one.tool;
        let _ = writeln!(told, "{}\n{}\nArguments: {}\n", tool.name, tool.description, tool.schema);
    }
    for (name, text) in servers.instructions(&found) {
        let _ = writeln!(told, "Instructions of {name}: {}\n", text.trim());
    }
    let missing = servers.missing();
    if !missing.is_empty() {
        let _ = writeln!(told, "Servers that are not available:\n- {}", missing.join("\n- "));
    }
    mcp::told(told.trim_end())
}
