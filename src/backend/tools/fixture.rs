//! A folder and a context in which the tests run tools.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::Typed;
use super::{
    AskFuture, Call, Content, Context, Dirs, Effect, Host, Keep, Outcome, Output, SearchFuture, Settings, input,
};
use crate::permission::{Access, Consent, Disk, Mode, Permit, Places, Query, RuleSet, decide};
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
        undo: None,
    }
}

/// Answers as it was told to, and keeps what it was asked.
struct Person {
    answer: Option<Answer>,
    asked: Arc<Mutex<Option<Question>>>,
}

impl Host for Person {
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
    pub rules: RuleSet,
    pub mode: Mode,
    pub store: Store,
    pub settings: Settings,
    pub seen: HashMap<PathBuf, String>,
    pub cancel: CancellationToken,
    /// Where the plan goes, in plan mode.
    pub plan: Option<PathBuf>,
    /// What questions are answered with.
    pub answer: Option<Answer>,
    asked: Arc<Mutex<Option<Question>>>,
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
        let home = Some(PathBuf::from("/nonexistent"));
        let dirs = Dirs { project: root.clone(), added: Vec::new(), cwd: root.clone(), home };
        let store = Store::new(top.join("session"));
        let (seen, cancel) = (HashMap::new(), CancellationToken::new());
        Fixture {
            _dir: dir,
            root,
            dirs,
            rules: RuleSet::default(),
            mode: Mode::Bypass,
            store,
            settings: settings(),
            seen,
            cancel,
            plan: None,
            answer: None,
            asked: Arc::default(),
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

    /// Reads a call.
    pub(super) fn call<T: Typed>(&self, tool: &T, input: Value) -> Result<Call, String> {
        tool.call(input::parse(&input, &input::check(&input::schema::<T::Input>())?)?, &self.dirs)
    }

    /// Runs a call and folds its effects, as a session does.
    pub(super) async fn run<T: Typed>(&mut self, tool: &T, input: Value) -> Output {
        let call = self.call(tool, input);
        self.run_call(T::NAME, call).await
    }

    pub(super) async fn run_call(&mut self, tool: &str, call: Result<Call, String>) -> Output {
        match call {
            Ok(call) => {
                let permit = self.permit(tool, call.access());
                self.run_with(call, permit).await
            }
            Err(problem) => Output::error(problem),
        }
    }

    /// What a yes to a call lets it do.
    pub(super) fn permit(&self, tool: &str, access: &Access) -> Permit {
        let places = Places { project: self.root.clone(), cwd: self.dirs.cwd.clone(), ..Places::default() };
        let query = Query {
            tool,
            access,
            mode: self.mode,
            rules: &self.rules,
            places: &places,
            vocabulary: super::RULES,
            level: crate::sandbox::Level::Kernel,
        };
        Permit::of(&query, &decide(&query, &Disk), Consent::Given, &Disk).unwrap()
    }

    pub(super) async fn run_with(&mut self, call: Call, permit: Permit) -> Output {
        let (live, mut sent) = mpsc::unbounded_channel();
        self.calls += 1;
        let host = Person { answer: self.answer.clone(), asked: self.asked.clone() };
        let context = Context {
            sandbox: crate::sandbox::Sandbox::off(),
            call: format!("call_{}", self.calls),
            permit,
            undoing: Default::default(),
            dirs: Arc::new(self.dirs.clone()),
            seen: Arc::new(self.seen.clone()),
            plan: self.plan.clone(),
            settings: Arc::new(self.settings.clone()),
            log: self.store.dir().join(crate::session::LOG_FILE),
            store: self.store.clone(),
            gateway: Default::default(),
            host: Arc::new(host),
            live,
            cancel: self.cancel.clone(),
        };
        let output = call.run(context).await;
        self.live.clear();
        while let Ok(text) = sent.try_recv() {
            self.live.push_str(&text);
        }
        for effect in &output.effects {
            match effect {
                Effect::Seen { path, sha256 } => drop(self.seen.insert(path.clone(), sha256.clone())),
                Effect::Cwd { path } => self.dirs.cwd.clone_from(path),
                Effect::Todos { .. }
                | Effect::Plan { .. }
                | Effect::Skills { .. }
                | Effect::Memory { .. }
                | Effect::Told { .. } => {}
            }
        }
        output
    }

    /// Runs a call that must succeed; its text, with the project's folder as `ROOT`.
    pub(super) async fn ok(&mut self, tool: &impl Typed, input: Value) -> String {
        let output = self.run(tool, input).await;
        let text = self.text(&output);
        assert_eq!(output.outcome, Outcome::Ok, "{text}");
        text
    }

    /// Runs a call that must fail; its text.
    pub(super) async fn error(&mut self, tool: &impl Typed, input: Value) -> String {
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
