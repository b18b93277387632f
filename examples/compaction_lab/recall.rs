//! The tool Recall as the model calls it, over the log of a session.

use std::path::Path;
use std::sync::Arc;

use cocode::message::{Content, tokens};
use cocode::tools::{self, Dirs, Toolbox};

use crate::desk::Desk;
use crate::script::together;
use crate::tool_context::tool_context;

/// Answers that are read.
const CALLS: u64 = 2;

/// Tokens that they may have together.
const SHOWN: u64 = 1_000;

pub(crate) struct Recall {
    runtime: tokio::runtime::Runtime,
    toolbox: Toolbox,
    dirs: Arc<Dirs>,
    context: tools::Context,
}

impl Recall {
    pub(crate) fn new(desk: &Desk) -> Recall {
        let (log, store) = (desk.session.log().to_owned(), desk.session.store().clone());
        let (dirs, context) = tool_context(Path::new("/code"), log, store);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Recall { runtime, toolbox: Toolbox::builtin(), dirs, context }
    }

    /// Whether the first pages of its answer to these words tell a fact.
    pub(crate) fn finds(&self, words: &[String], telling: &[String]) -> bool {
        let tool = self.toolbox.get("Recall").expect("there is a Recall");
        let mut shown = String::new();
        for page in 1..=CALLS {
            let input = serde_json::json!({ "query": words.join(" "), "page": page });
            let call = tool.call(&input, &self.dirs).expect("it fits");
            let output = self.runtime.block_on(call.run(self.context.clone()));
            let texts = output.content.iter().map(|part| match part {
                Content::Text { text } => text.as_str(),
                Content::Media(_) => "",
            });
            shown.extend(texts);
        }
        assert!(tokens::text(&shown) <= SHOWN, "{} tokens", tokens::text(&shown));
        together(&shown.to_lowercase(), telling).is_some()
    }
}
