//! How far this machine confines a command: found out by a real run, the first time that it matters, and remembered.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::record::Manifest;
use super::{Level, Policy, Record, Sandbox, Status};

/// Longest time that the run may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why no machine gets further than `Kernel`.
const NOT_MOUNT: &str = "cocode does not use mount namespaces yet";

/// How the names of folders begin that a run records into; the number of its process follows.
const PROBE: &str = "cocode-probe-";

/// Stands behind what is remembered where what commands change can be recorded.
const RECORDS: &str = "records\n";

/// What was found, for all who share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Found(Arc<Once>);

#[derive(Debug, Default)]
struct Once {
    level: OnceCell<Result<Level, String>>,
    told: OnceLock<()>,
    /// What a command changes can be recorded.
    records: OnceLock<()>,
    /// Where it is remembered that a run succeeded.
    file: OnceLock<PathBuf>,
}

impl Sandbox {
    /// Remembers in a file what was found, as long as the kernel, this program and what surrounds it are the same.
    #[must_use]
    pub fn remembered_in(self, file: PathBuf) -> Sandbox {
        let _ = self.found.0.file.set(file);
        self
    }

    /// How far commands are confined, as far as it was found out: nobody relies on what was not.
    pub fn level(&self) -> Level {
        self.status().map_or(Level::None, |status| status.level)
    }

    /// The same, with what keeps it from being more.
    pub fn status(&self) -> Option<Status> {
        Some(match self.found.0.level.get()? {
            Ok(Level::Mount) => Status { level: Level::Mount, why: String::new() },
            Ok(level) => Status { level: *level, why: NOT_MOUNT.into() },
            Err(why) => Status { level: Level::None, why: why.clone() },
        })
    }

    /// Finds that out, once, by a command that is held to reading nothing but programs.
    pub async fn probe(&self) -> Level {
        self.found.0.level.get_or_init(|| Box::pin(self.found())).await;
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

    async fn found(&self) -> Result<Level, String> {
        let remembered = self.found.0.file.get().filter(|_| self.helps()).zip(surroundings());
        if let Some((file, now)) = &remembered
            && let Ok(then) = std::fs::read_to_string(file)
            && let Some(records @ ("" | RECORDS)) = then.strip_prefix(now.as_str())
        {
            if records == RECORDS {
                let _ = self.found.0.records.set(());
            }
            return Ok(Level::Kernel);
        }
        let tried = self.tried().await;
        // Only what works: a machine that was fixed is to be seen at the next start.
        if let (Ok(_), Some((file, now))) = (&tried, &remembered) {
            let records = if self.found.0.records.get().is_some() { RECORDS } else { "" };
            keep(file, &format!("{now}{records}"));
        }
        tried
    }

    /// A folder for the record of the run, beside what is remembered: one that was left behind by a kill is found there.
    fn store(&self) -> std::io::Result<tempfile::TempDir> {
        let prefix = format!("{PROBE}{}-", std::process::id());
        let named = {
            let mut named = tempfile::Builder::new();
            named.prefix(&prefix);
            named
        };
        let beside = self.found.0.file.get().and_then(|file| file.parent());
        if let Some(folder) = beside.filter(|folder| std::fs::create_dir_all(folder).is_ok()) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let owner = name.strip_prefix(PROBE).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
                if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
            if let Ok(store) = named.tempdir_in(folder) {
                return Ok(store);
            }
        }
        named.tempdir()
    }

    async fn tried(&self) -> Result<Level, String> {
        let store = self.store().map_err(|error| error.to_string())?;
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
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr);
                Err(format!("a confined `true` fails here: {}", said.lines().next().unwrap_or("it says nothing")))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn keep(file: &Path, text: &str) {
    let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    if let Err(error) = made.and_then(|()| crate::stdx::replace::replace(file, text.as_bytes(), Some(0o600))) {
        tracing::debug!(%error, "cannot remember the level of the sandbox");
    }
}

/// All that the outcome of a run depends on: the running kernel, this program, and the container around it.
fn surroundings() -> Option<String> {
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let text = |file: &str| std::fs::read_to_string(file).ok();
    let link = |file: &str| std::fs::read_link(file).ok();
    let status = text("/proc/self/status")?;
    let limits = ["Uid", "NoNewPrivs", "Seccomp"];
    let limits = status.lines().filter(|line| limits.iter().any(|name| line.starts_with(name))).collect::<Vec<_>>();
    Some(format!(
        "{}{:?} {}\n{}{:?} {:?}\n{}\n",
        text("/proc/version")?,
        program.modified().ok()?,
        program.len(),
        text("/proc/sys/kernel/random/boot_id")?,
        link("/proc/self/ns/user")?,
        link("/proc/self/ns/mnt")?,
        limits.join("\n"),
    ))
}
