//! One call, read once: what it touches, how it is shown, and the work that begins only with a permit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Context, Dirs, Manners, Output, Seen, Tool, input};
use crate::message::FileDiff;
use crate::permission::Access;
use crate::provider::ToolSpec;
use crate::stdx::schema::Schema;

/// A running call. It owns what it works with, so that it may outlive the round in which it began.
pub type Running = Pin<Box<dyn Future<Output = Output> + Send>>;

type Outlook = dyn Fn(&Seen) -> Result<FileDiff, String> + Send + Sync;

/// A call whose input fits its tool. Paths are resolved against the folders of the moment in which it was read.
pub struct Call {
    access: Access,
    title: String,
    outlook: Option<Box<Outlook>>,
    background: bool,
    work: Box<dyn FnOnce(Context) -> Running + Send + Sync>,
}

impl Call {
    pub(super) fn new<F: Future<Output = Output> + Send + 'static>(
        access: Access,
        title: impl Into<String>,
        work: impl FnOnce(Context) -> F + Send + Sync + 'static,
    ) -> Call {
        Call {
            access,
            title: title.into(),
            outlook: None,
            background: false,
            work: Box::new(|context| Box::pin(work(context))),
        }
    }

    /// For a change of a file: works out what it would do now.
    pub(super) fn with_outlook(
        self,
        outlook: impl Fn(&Seen) -> Result<FileDiff, String> + Send + Sync + 'static,
    ) -> Call {
        Call { outlook: Some(Box::new(outlook)), ..self }
    }

    /// What it starts continues after it is answered.
    pub(super) fn in_background(self) -> Call {
        Call { background: true, ..self }
    }

    pub fn is_background(&self) -> bool {
        self.background
    }

    pub fn access(&self) -> &Access {
        &self.access
    }

    /// One line for the screen: the path, the command, the pattern.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The change that the call would make, or why it must fail as the files are now, and as far as the model has seen them:
    /// that text may tell of the file. None where no file is changed.
    pub fn outlook(&self, seen: &Seen) -> Option<Result<FileDiff, String>> {
        self.outlook.as_ref().map(|outlook| outlook(seen))
    }

    /// Runs the call. Its future ends soon after `context.cancel`, with what was there until then; a dropped future leaves
    /// no process behind.
    pub fn run(self, context: Context) -> Running {
        (self.work)(context)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("access", &self.access).field("title", &self.title).finish_non_exhaustive()
    }
}

/// A tool whose input is a type.
pub(super) trait Typed: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema;

    const NAME: &'static str;
    /// What the model is told of it.
    const ABOUT: &'static str;
    const MANNERS: Manners;

    /// As `ABOUT`, for a tool that says more than is known when it is compiled.
    fn about(&self) -> String {
        Self::ABOUT.trim().to_owned()
    }

    /// Makes a call of an input that fits the type.
    ///
    /// # Errors
    /// A precise sentence for the model when the input says nothing that can be done.
    fn call(&self, input: Self::Input, dirs: &Dirs) -> Result<Call, String>;
}

/// A typed tool with its specification: the schema is derived when it is made, and every input is fitted to that.
pub(super) struct Own<T> {
    tool: T,
    spec: ToolSpec,
    check: Schema,
}

impl<T: Typed> Own<T> {
    pub(super) fn new(tool: T) -> Own<T> {
        let (name, description) = (T::NAME.to_owned(), tool.about());
        let schema = input::schema::<T::Input>();
        let check = input::check(&schema).expect("a derived schema has known keywords");
        Own { tool, spec: ToolSpec { name, description, schema }, check }
    }
}

impl<T: Typed> Tool for Own<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manners(&self) -> Manners {
        T::MANNERS
    }

    fn call(&self, input: &Value, dirs: &Dirs) -> Result<Call, String> {
        self.tool.call(input::parse(input, &self.check)?, dirs)
    }
}
