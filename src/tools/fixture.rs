//! A folder and a context in which the tests run tools.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{AskFuture, Content, Context, Dirs, Effect, Host, Keep, Outcome, Output, SearchFuture, Settings, Tool};
use crate::permission::Sight;
use crate::protocol::{Answer, Question};
use crate::session::store::Store;

/// The shipped limits.
pub(super) fn settings() -> Settings {
    Settings {
        max_lines: 2000,
        max_bytes: 50 * 1024,
        max_tokens: 20_000,
        keep: Keep::HeadTail,
        bash_timeout_ms: 120_000,
        bash_max_timeout_ms: 600_000,
        fetch_private: false,
        search_url: None,
        secret_env: vec!["SECRET_KEY".into()],
        env: [("SECRET_KEY".into(), "set".into()), ("FROM_SETTINGS".into(), "set".into())].into(),
    }
}

/// Answers as it was told to, and keeps what it was asked.
struct Person<'a> {
    answer: Option<Answer>,
    asked: &'a Mutex<Option<Question>>,
}

impl Host for Person<'_> {
    fn ask(&self, question: Question) -> AskFuture<'_> {
        *self.asked.lock().unwrap() = Some(question);
        Box::pin(async { self.answer.clone() })
    }

    fn web_search<'a>(&'a self, _: &'a str, _: &'a [String], _: &'a [String]) -> SearchFuture<'a> {
        Box::pin(async { Err("none".to_string()) })
    }
}

/// A project in a temporary folder, and what a session would remember.
pub(super) struct Fixture {
    _dir: tempfile::TempDir,
    pub root: PathBuf,
    pub dirs: Dirs,
    pub sight: Sight,
    pub store: Store,
    pub settings: Settings,
    pub seen: HashMap<PathBuf, String>,
    pub cancel: CancellationToken,
    /// Where the plan goes, in plan mode.
    pub plan: Option<PathBuf>,
    /// What questions are answered with.
    pub answer: Option<Answer>,
    asked: Mutex<Option<Question>>,
    /// What the last call sent while it ran.
    pub live: String,
    calls: u64,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("project");
        std::fs::create_dir(&root).unwrap();
        let dirs = Dirs { project: root.clone(), added: Vec::new(), cwd: root.clone() };
        let store = Store::new(top.join("session"));
        let (seen, cancel, sight) = (HashMap::new(), CancellationToken::new(), Sight::default());
        Fixture {
            _dir: dir,
            root,
            dirs,
            sight,
            store,
            settings: settings(),
            seen,
            cancel,
            plan: None,
            answer: None,
            asked: Mutex::default(),
            live: String::new(),
            calls: 0,
        }
    }

    /// The question that was asked since the last look.
    pub(super) fn asked(&self) -> Option<Question> {
        self.asked.lock().unwrap().take()
    }

    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(super) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    /// Runs a call and folds its effects, as a session does.
    pub(super) async fn run(&mut self, tool: &dyn Tool, input: Value) -> Output {
        let (live, mut sent) = mpsc::unbounded_channel();
        self.calls += 1;
        let call = format!("call_{}", self.calls);
        let access = tool.access(&input, &self.dirs, Some(Path::new("/nonexistent")));
        let target = access.ok().and_then(|access| access.target());
        let context = Context {
            target: target.as_deref(),
            call: &call,
            dirs: &self.dirs,
            sight: &self.sight,
            home: Some(Path::new("/nonexistent")),
            seen: &self.seen,
            todos: &[],
            settings: &self.settings,
            store: &self.store,
            host: &Person { answer: self.answer.clone(), asked: &self.asked },
            plan: self.plan.as_deref(),
            live,
            cancel: &self.cancel,
        };
        let output = tool.run(input, &context).await;
        drop(context);
        self.live.clear();
        while let Ok(text) = sent.try_recv() {
            self.live.push_str(&text);
        }
        for effect in &output.effects {
            match effect {
                Effect::Seen { path, sha256 } => drop(self.seen.insert(path.clone(), sha256.clone())),
                Effect::Cwd { path } => self.dirs.cwd.clone_from(path),
                Effect::Todos { .. } | Effect::Plan { .. } | Effect::Skills { .. } | Effect::Memory { .. } => {}
            }
        }
        output
    }

    /// Runs a call that must succeed; its text, with the project's folder as `ROOT`.
    pub(super) async fn ok(&mut self, tool: &dyn Tool, input: Value) -> String {
        let output = self.run(tool, input).await;
        let text = self.text(&output);
        assert_eq!(output.outcome, Outcome::Ok, "{text}");
        text
    }

    /// Runs a call that must fail; its text.
    pub(super) async fn error(&mut self, tool: &dyn Tool, input: Value) -> String {
        let output = self.run(tool, input).await;
        let text = self.text(&output);
        assert_eq!(output.outcome, Outcome::Error, "{text}");
        text
    }

    pub(super) fn text(&self, output: &Output) -> String {
        let texts = output.content.iter().map(|part| match part {
            Content::Text { text } => text.replace(&self.root.display().to_string(), "ROOT"),
            Content::Media(media) => format!("<{}>", media.media_type),
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
