//! What tools have in common that change one file: each says only how its change is worked out.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::message::FileDiff;
use crate::permission::Access;
use crate::provider::ToolSpec;

use super::file::{self, Change, Snapshot};
use super::{Context, Dirs, Output, Running, Tool, input};

/// Whether the model knows the file as it is now; the error tells it to read it first.
pub(super) type Known<'a> = &'a dyn Fn(&Path, &Snapshot) -> Result<(), String>;

/// A tool whose call changes the file that one of its arguments names.
pub(super) trait ChangesFile: Send + Sync {
    type Input: DeserializeOwned + JsonSchema;

    const NAME: &'static str;
    /// What the model is told of it.
    const ABOUT: &'static str;
    /// The name of the argument that names the file.
    const PATH: &'static str;
    /// As `Tool::clearable`.
    const CLEARABLE: bool;

    /// The file, as the call names it.
    fn path(input: &Self::Input) -> &str;

    /// Works the change out. A tool that searches the file asks `known` first, so that a stale view is told as such; what
    /// does not ask is checked when the change is made.
    ///
    /// # Errors
    /// A sentence for the model.
    fn work_out(input: Self::Input, path: PathBuf, known: Known<'_>) -> Result<Change, String>;
}

fn change<T: ChangesFile>(input: &Value, dirs: &Dirs, home: Option<&Path>, known: Known<'_>) -> Result<Change, String> {
    let input = input::parse::<T::Input>(input)?;
    file::named(T::path(&input))?;
    let path = dirs.absolute(T::path(&input), home);
    T::work_out(input, path, known)
}

impl<T: ChangesFile> Tool for T {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: T::NAME.into(), description: T::ABOUT.trim().into(), schema: input::schema::<T::Input>() }
    }

    fn access(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Result<Access, String> {
        file::write_access(T::path(&input::parse::<T::Input>(input)?), dirs, home)
    }

    fn read_only(&self, _input: &Value) -> bool {
        false
    }

    fn title(&self, input: &Value) -> String {
        file::one_line(file::text_of(input, T::PATH))
    }

    fn preview(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Option<FileDiff> {
        change::<T>(input, dirs, home, &|_, _| Ok(())).ok().map(|change| change.diff())
    }

    fn hopeless(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Option<String> {
        change::<T>(input, dirs, home, &|_, _| Ok(())).err()
    }

    fn clearable(&self) -> bool {
        T::CLEARABLE
    }

    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move {
            let known = |path: &Path, before: &Snapshot| file::check_seen(path, before, context);
            let named = input::parse::<T::Input>(&input);
            let checked = named.and_then(|input| {
                file::named(T::path(&input))?;
                file::check_target(&context.dirs.absolute(T::path(&input), context.home), context.target)
            });
            if let Err(refusal) = checked {
                return Output::error(refusal);
            }
            let change = change::<T>(&input, context.dirs, context.home, &known);
            match change {
                Ok(change) => change.make(context).await,
                Err(error) => Output::error(error),
            }
        })
    }
}
