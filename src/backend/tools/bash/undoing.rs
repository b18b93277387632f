//! What one command changes: recorded while it runs, and told once it has ended.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use crate::permission::{Disk, Files};
use crate::protocol::{Answer, Question};
use crate::sandbox::{Before, Denied, Effect, Guard, Policy, Record, Saved};
use crate::session::compared::Compared;
use crate::session::recorded::{self, Finished};
use crate::stdx::git::{User, Variables};
use crate::tools::{Context, Dirs, Undoing, Unrecordable};

/// Most paths that rules forbade and a result names.
const NAMED: usize = 5;

/// Most denials that are kept.
const MOST_KEPT: usize = 50;

/// What the kernel says where a recorded command starts a program that wants more rights than the user has.
const NO_PRIVILEGES: &str = "no new privileges";

/// Said of a line that gains privileges.
const UNSEEN: &str = "what this line changed, because sudo and the like cannot be recorded";
/// Said where nothing can be recorded.
const IMPOSSIBLE: &str = "what commands change, because they cannot be recorded here";

/// Follows that.
const PRIVILEGED: &str = "A recorded command gains no privileges. Run sudo in a line of its own: such a line is not recorded, and undo cannot restore what it changes";

/// Stands by while one command runs.
pub(super) struct Watch<'a> {
    context: &'a Context,
    way: Way,
    asked: Option<Asked<'a>>,
    /// What was lost because somebody preferred that to an end.
    lost: Vec<String>,
    /// What rules keep from being changed.
    forbidden: Guard,
    denied: Vec<PathBuf>,
    /// What it was kept from because nobody has agreed to it.
    pub(super) guarded: Vec<Denied>,
}

enum Way {
    Off,
    Recorded(String),
    Compared(Option<Arc<Compared>>, Unrecordable),
}

type Asked<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// What becomes of a command that has no room to be recorded.
pub(super) enum Verdict {
    Unrecorded(PathBuf),
    /// It ends.
    Stopped(PathBuf),
}

impl<'a> Watch<'a> {
    /// Prepares the policy, or looks at the workspace as it is before.
    pub(super) async fn begin(context: &'a Context, policy: &mut Policy) -> Watch<'a> {
        let way = match (&context.undoing, &context.settings.undo) {
            (Undoing::Off, _) | (_, None) => Way::Off,
            (Undoing::Recorded(record), Some(undo)) => {
                let store = recorded::folder(&context.store, record);
                let within = workspace(context);
                policy.record = Some(Record::new(store, within, undo.largest, undo.budget));
                Way::Recorded(record.clone())
            }
            (Undoing::Compared(why), Some(_)) => {
                if *why == Unrecordable::Privileged {
                    // Under a supervisor it would gain nothing.
                    policy.guard = Guard::default();
                }
                let roots = workspace(context);
                let looked = tokio::task::spawn_blocking(move || Compared::look(&roots)).await;
                Way::Compared(looked.ok().flatten().map(Arc::new), *why)
            }
        };
        let forbidden =
            Guard { paths: policy.protected.clone(), refused: policy.guard.refused.clone(), ..Guard::default() };
        Watch { context, way, asked: None, lost: Vec::new(), forbidden, denied: Vec::new(), guarded: Vec::new() }
    }

    /// Whether somebody is waited for.
    pub(super) fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes what the command did, or was kept from. What cannot be undone is said before it happens.
    pub(super) fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Touched { path, before: Before::File { saved: Saved::Lost(why), .. } } => {
                let text = format!("[Undo cannot restore {}: {why}]\n", self.name(&path));
                // Nobody listens: the result says it, too.
                let _ = self.context.live.send(text);
            }
            Effect::Denied { what: Denied::Write(path) }
                if self.forbidden.fixes(&path) || self.forbidden.refuses(&path) =>
            {
                if !self.denied.contains(&path) {
                    self.denied.push(path);
                }
            }
            Effect::Denied { what } if self.guarded.len() < MOST_KEPT && !self.guarded.contains(&what) => {
                self.guarded.push(what);
            }
            Effect::Touched { .. } | Effect::Denied { .. } | Effect::Connected { .. } => {}
        }
    }

    /// Asks whether the command may continue although there is no room to save what it changes there.
    pub(super) fn ask(&mut self, path: PathBuf) {
        self.asked = Some(Box::pin(full(self.context, path)));
    }

    /// Waits for the answer. May be dropped while it waits.
    pub(super) async fn answer(&mut self) -> Verdict {
        let Some(asked) = &mut self.asked else { return std::future::pending().await };
        let verdict = asked.await;
        self.asked = None;
        if let Verdict::Unrecorded(path) = &verdict {
            self.lost.push(format!("{} and what came after it: the disk was full", self.name(path)));
        }
        verdict
    }

    /// Runs without a record from the beginning, if somebody wants that.
    pub(super) async fn without(&mut self, policy: &mut Policy) -> Verdict {
        let verdict = full(self.context, self.context.store.dir().to_owned()).await;
        if let Verdict::Unrecorded(_) = verdict {
            policy.record = None;
            self.lost.push("the disk was full, so nothing of it was recorded".to_owned());
        }
        verdict
    }

    /// The command continues in the background. Its record does, too; two looks so far apart would tell what others did.
    pub(super) fn let_go(&mut self) {
        if let Way::Compared(..) = self.way {
            self.way = Way::Off;
        }
    }

    /// Once everything has ended: what changed, and what the result says of it.
    pub(super) async fn finish(self, output: &str) -> (Option<Changed>, Vec<String>) {
        let mut notes = Vec::new();
        let (record, finished) = match &self.way {
            Way::Off => (None, None),
            Way::Recorded(record) => {
                let (store, name) = (self.context.store.clone(), record.clone());
                let finished = tokio::task::spawn_blocking(move || recorded::finish_or_tell(&store, &name)).await;
                let finished =
                    finished.unwrap_or_else(|error| Finished::unseen(format!("its record is damaged: {error}")));
                if output.contains(NO_PRIVILEGES) {
                    notes.push(PRIVILEGED.to_owned());
                }
                (Some(record.clone()), Some(finished))
            }
            Way::Compared(looked, why) => {
                let mut finished = match looked.clone() {
                    Some(looked) => tokio::task::spawn_blocking(move || looked.since()).await.unwrap_or_default(),
                    None => Finished::default(),
                };
                match why {
                    Unrecordable::Privileged => finished.missed.push(UNSEEN.to_owned()),
                    Unrecordable::Here if finished.files() > 0 => finished.missed.push(IMPOSSIBLE.to_owned()),
                    Unrecordable::Here => {}
                }
                (None, Some(finished))
            }
        };
        let changed = finished.map(|mut finished| {
            finished.missed.extend(self.lost.iter().cloned());
            Changed { record, finished }
        });
        let (told, dirs) = (changed.as_ref().map(|changed| changed.finished.clone()), self.context.dirs.clone());
        let line = move || {
            let variables = Variables::default();
            let user = User { home: dirs.home.as_deref(), variables: &variables };
            told.and_then(|told| told.line(|path| name(&dirs, path), |path| Disk.git_ignores(path, user)))
        };
        let line = tokio::task::spawn_blocking(line).await.unwrap_or_default();
        notes.splice(0..0, line);
        let denied = self.denied.iter().take(NAMED).map(|path| self.name(path)).collect::<Vec<_>>();
        if !denied.is_empty() {
            notes.push(format!("A rule of the user's forbids changing {}", denied.join(", ")));
        }
        (changed, notes)
    }

    fn name(&self, path: &Path) -> String {
        name(&self.context.dirs, path)
    }
}

/// A path as a person calls it: from the working folder, or from the home folder.
fn name(dirs: &Dirs, path: &Path) -> String {
    let short = [&dirs.cwd, &dirs.project].into_iter().find_map(|folder| path.strip_prefix(folder).ok());
    let home = || Some(format!("~/{}", path.strip_prefix(dirs.home.as_ref()?).ok()?.display()));
    let text = short.map(|short| short.display().to_string()).or_else(home);
    crate::stdx::ansi::visible(&text.unwrap_or_else(|| path.display().to_string()))
}

/// What a command changed, and the name of its record; none where nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub record: Option<String>,
    pub finished: Finished,
}

fn workspace(context: &Context) -> Vec<PathBuf> {
    std::iter::once(&context.dirs.project).chain(&context.dirs.added).cloned().collect()
}

async fn full(context: &Context, path: PathBuf) -> Verdict {
    match context.host.ask(Question::Unrecorded { path: path.clone() }).await {
        Some(Answer::Yes) => Verdict::Unrecorded(path),
        _ => Verdict::Stopped(path),
    }
}
