//! What tools have in common that change one file: each says only how its change is worked out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::permission::Access;

use super::call::Typed;
use super::file::{self, Change, Snapshot};
use super::{Call, Context, Dirs, Manners, Output, Seen};

/// Whether the model knows the file as it is now; the error tells it to read it first.
pub(super) type Known<'a> = &'a dyn Fn(&Path, &Snapshot) -> Result<(), String>;

/// A tool whose call changes the file that one of its arguments names.
pub(super) trait ChangesFile: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    const NAME: &'static str;
    /// What the model is told of it.
    const ABOUT: &'static str;
    const MANNERS: Manners;

    /// The file, as the call names it.
    fn path(input: &Self::Input) -> &str;

    /// Works the change out. A tool that searches the file asks `known` first, so that a stale view is told as such; what
    /// does not ask is checked when the change is made.
    ///
    /// # Errors
    /// A sentence for the model.
    fn work_out(input: &Self::Input, path: PathBuf, known: Known<'_>) -> Result<Change, String>;
}

impl<T: ChangesFile> Typed for T {
    type Input = T::Input;

    const NAME: &'static str = T::NAME;
    const ABOUT: &'static str = T::ABOUT;
    const MANNERS: Manners = T::MANNERS;

    fn call(&self, input: T::Input, dirs: &Dirs) -> Result<Call, String> {
        file::named(T::path(&input))?;
        let (path, title) = (dirs.absolute(T::path(&input)), file::one_line(T::path(&input)));
        let access = Access::Write { path: path.clone() };
        let input = Arc::new(input);
        let outlook = {
            let (input, path) = (input.clone(), path.clone());
            move |seen: &Seen| {
                let change = T::work_out(&input, path.clone(), &|path, before| file::check_seen(path, before, seen))?;
                // What must fail is not asked about.
                change.check_seen(seen)?;
                Ok(change.diff())
            }
        };
        let work = move |context: Context| async move {
            if let Err(refusal) = file::check_target(&path, context.permit.target()) {
                return Output::error(refusal);
            }
            let known = |path: &Path, before: &Snapshot| file::check_seen(path, before, &context.seen);
            match T::work_out(&input, path, &known) {
                Ok(change) => change.make(&context).await,
                Err(error) => Output::error(error),
            }
        };
        Ok(Call::new(access, title, work).with_outlook(outlook))
    }
}
