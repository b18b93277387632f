//! How far this machine confines a command: found out by a real run, the first time that it matters.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::process::Command;

use super::record::Manifest;
use super::{Level, Policy, Record, Sandbox};

/// Longest time that the run may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found, for all who share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Found(Arc<Once>);

#[derive(Debug, Default)]
struct Once {
    level: OnceLock<Result<Level, String>>,
    told: OnceLock<()>,
    /// What a command changes can be recorded.
    records: OnceLock<()>,
}

impl Sandbox {
    /// How far commands are confined, as far as it was found out: nobody relies on what was not.
    pub fn level(&self) -> Level {
        self.found.0.level.get().and_then(|found| found.clone().ok()).unwrap_or(Level::None)
    }

    /// Finds that out, once, by a command that is held to reading nothing but programs.
    pub async fn probe(&self) -> Level {
        if self.found.0.level.get().is_none() {
            let found = Box::pin(self.tried()).await;
            let _ = self.found.0.level.set(found);
        }
        self.level()
    }

    /// Whether what commands change can be recorded, as far as it was found out.
    pub fn records(&self) -> bool {
        self.found.0.records.get().is_some()
    }

    /// Why nothing is confined, to be told once.
    pub fn untold(&self) -> Option<String> {
        let why = self.found.0.level.get()?.as_ref().err()?;
        self.found.0.told.set(()).is_ok().then(|| why.clone())
    }

    async fn tried(&self) -> Result<Level, String> {
        let store = tempfile::Builder::new().prefix("cocode-probe-").tempdir().map_err(|error| error.to_string())?;
        let record = Record::new(store.path().to_owned(), Vec::new(), 0, 0);
        // Recording does not hang on being confined.
        let free = Policy { record: Some(record), ..Policy::free() };
        if self.run_captured(Command::new("true"), &free, &[], PATIENCE, 1024).await.is_ok()
            && Manifest::read(store.path()).is_ok_and(|manifest| manifest.began)
        {
            let _ = self.found.0.records.set(());
        }
        let policy = Policy::reading(Vec::new());
        match self.run_captured(Command::new("true"), &policy, &[], PATIENCE, 1024).await {
            Ok(done) if done.code == Some(0) => Ok(Level::Kernel),
            Ok(_) => Err("a confined `true` fails here".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}
