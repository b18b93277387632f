//! The tool Recall as the model calls it, over the log of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode::message::{Content, tokens};
use cocode::permission::Permit;
use cocode::tools::{self, Dirs, Keep, Toolbox};

use crate::desk::Desk;
use crate::script::together;

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
        let root = std::path::PathBuf::from("/code");
        let dirs = Arc::new(Dirs { project: root.clone(), added: Vec::new(), cwd: root, home: None });
        let settings = tools::Settings {
            max_lines: 2_000,
            max_bytes: 50 * 1024,
            max_tokens: 20_000,
            keep: Keep::HeadTail,
            bash_timeout_ms: 1_000,
            bash_max_timeout_ms: 1_000,
            fetch_private: false,
            search_url: None,
            secret_env: Vec::new(),
            env: BTreeMap::new(),
            undo: None,
        };
        let context = tools::Context {
            call: "1".into(),
            permit: Permit::by_hand(),
            undoing: Default::default(),
            dirs: dirs.clone(),
            seen: Arc::default(),
            plan: None,
            settings: Arc::new(settings),
            log: desk.session.log().to_owned(),
            store: desk.session.store().clone(),
            host: Arc::new(Alone),
            sandbox: cocode::sandbox::Sandbox::off(),
            gateway: Default::default(),
            live: tokio::sync::mpsc::unbounded_channel().0,
            cancel: Default::default(),
        };
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

/// There is nobody to ask.
struct Alone;

impl tools::Host for Alone {
    fn ask(&self, _: cocode::protocol::Question) -> tools::AskFuture<'_> {
        Box::pin(async { None })
    }

    fn web_search<'a>(&'a self, _: &'a str, _: &'a [String], _: &'a [String]) -> tools::SearchFuture<'a> {
        Box::pin(async { Err("none".to_owned()) })
    }
}
