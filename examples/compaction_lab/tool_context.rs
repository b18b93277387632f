//! What a tool runs in when nobody is there: for the lab and for the benches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode::permission::Permit;
use cocode::sandbox::Sandbox;
use cocode::session::store::Store;
use cocode::tools::{self, Dirs, Keep};

/// The context of a call in a folder, and the folder as calls are read with it.
pub(crate) fn tool_context(root: &Path, log: PathBuf, store: Store) -> (Arc<Dirs>, tools::Context) {
    let dirs = Dirs { project: root.to_owned(), added: Vec::new(), cwd: root.to_owned(), home: None };
    let dirs = Arc::new(dirs);
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
        log,
        store,
        host: Arc::new(Alone),
        sandbox: Sandbox::off(),
        gateway: Default::default(),
        live: tokio::sync::mpsc::unbounded_channel().0,
        cancel: Default::default(),
    };
    (dirs, context)
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
