//! A command that its call does not wait for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::output::Sink;
use super::{Done, Input, Way, work};
use crate::message::{CallId, Content, Display};
use crate::permission::CommandLine;
use crate::session::entry::{Begun, Ended, Status};
use crate::tools::background::{Background, Work};
use crate::tools::limit::Spool;
use crate::tools::{After, Context, Host, Output, Undoing};

/// What the model is told of every command in the background.
const TOLD: &str = "You are told when the command ends, so do not wait for it or poll. TaskStop ends it.";
/// Of one that may change something, where that is not recorded.
const UNCOVERED: &str = " /undo does not cover what it changes.";

/// How a command that its call waits for leaves for the background.
pub(super) struct Exit {
    left: oneshot::Sender<Left>,
    wanted: CancellationToken,
}

/// It has left.
struct Left {
    /// Ends it from now on.
    cancel: CancellationToken,
    /// The timeout that is over; none where the user wanted it.
    timeout: Option<Duration>,
}

impl Exit {
    /// Resolves when the user wants it to leave.
    pub(super) async fn wanted(&self) {
        self.wanted.cancelled().await;
    }

    /// Lets the call be answered: what it wrote is in the file of a task from now on. What ends it, and who decides about its
    /// connections; none where nobody takes it over, or the file cannot be written.
    pub(super) fn leave(
        self,
        context: &Context,
        sink: &mut Sink<'_>,
        timeout: Option<Duration>,
    ) -> Option<(CancellationToken, Arc<dyn Host>)> {
        let host = context.host.apart()?;
        let file = context.store.begin_task_output(&context.store.task(&context.call)).ok()?;
        sink.continue_in(file).ok()?;
        let cancel = CancellationToken::new();
        self.left.send(Left { cancel: cancel.clone(), timeout }).ok()?;
        Some((cancel, host))
    }
}

/// Whether a command moves to the background at its timeout, as in Claude Code: one that only waits has no use there, git may
/// hold a lock that what comes next needs, and of a line that cannot be read nobody knows.
pub(super) fn may_leave(command: &str) -> bool {
    let programs = CommandLine::from(command).programs();
    programs.first().is_some_and(|first| first != "sleep") && !command.contains("git")
}

/// Runs a command until it ends, or leaves.
pub(super) async fn wait(input: Input, context: Context) -> Output {
    let agent = context.host.clone();
    let (begun, output) = task(&input, &context);
    let undo = uncovered(&context);
    let (exit, mut left) = oneshot::channel();
    let exit = Exit { left: exit, wanted: agent.leaving() };
    let mut running = Box::pin(async move {
        let way = Way::Waited(Box::new(Spool::new(&context.store, &context.call)), exit);
        work(&input, &context, way).await
    });
    let early = tokio::select! {
        biased;
        Ok(left) = &mut left => Err(left),
        done = &mut running => Ok(done),
    };
    let (left, work) = match early {
        Err(left) => (left, ended(&begun, running)),
        Ok(done) => match left.try_recv() {
            Ok(left) => (left, ended(&begun, async { done })),
            Err(_) => return done.map_or_else(|refused| refused, |done| done.output),
        },
    };
    let (id, path) = (begun.task.clone(), output.display().to_string());
    if let Err(problem) = agent.keep_running(Background { begun, output, cancel: left.cancel, work }).await {
        return Output::error(format!("Stopped, since it could not continue in the background: {problem}"));
    }
    let why = match left.timeout {
        Some(time) => format!("The command did not finish within its timeout of {} s, so it moved", time.as_secs_f64()),
        None => "The user moved the command".to_owned(),
    };
    let text = format!(
        "{why} to the background as {id}. All of its output is in {path}: use Read or Grep on it. {TOLD} A change of the working \
         directory does not carry over.{undo}"
    );
    let display = Some(Display::Line { text: format!("moved to the background as {id}") });
    Output { display, ..Output::ok(text) }
}

/// What the model is told where undo will not reach what a command changes.
fn uncovered(context: &Context) -> &'static str {
    match context.undoing {
        Undoing::Recorded(_) => "",
        Undoing::Off | Undoing::Compared(_) if context.permit.reads() => "",
        Undoing::Off | Undoing::Compared(_) => UNCOVERED,
    }
}

/// What a task is to be for the log, and where its output goes.
fn task(input: &Input, context: &Context) -> (Begun, PathBuf) {
    let task = context.store.task(&context.call);
    let output = context.store.task_output(&task);
    let (command, description) = (input.command.clone(), input.description.clone());
    let record = match &context.undoing {
        Undoing::Recorded(record) => Some(record.clone()),
        Undoing::Off | Undoing::Compared(_) => None,
    };
    let begun = Begun::command(task, CallId(context.call.clone()), command);
    (Begun { description, record, ..begun }, output)
}

/// Runs a command to its end, which is told.
fn ended(begun: &Begun, running: impl Future<Output = Result<Done, Output>> + Send + 'static) -> Work {
    let ended = Ended::of(begun, Status::Failed);
    Box::pin(async move {
        match running.await {
            Ok(Done { output, status, code, why, millis }) => {
                let changed = output.after.into_iter().find_map(|after| match after {
                    After::Changed(changed) => Some(changed),
                    _ => None,
                });
                (Ended { status, code, why, millis, ..ended }, changed)
            }
            Err(refused) => {
                let why = Some(Content::joined(&refused.content));
                (Ended { why, ..ended }, None)
            }
        }
    })
}

/// Starts a command, hands it over, and says where to look.
pub(super) async fn begin(input: Input, context: Context) -> Output {
    let agent = context.host.clone();
    let Some(host) = agent.apart() else {
        return Output::error("Commands cannot run in the background here. Run it without run_in_background.");
    };
    let (begun, output) = task(&input, &context);
    let file = match context.store.begin_task_output(&begun.task) {
        Ok(file) => file,
        Err(error) => return Output::error(format!("Not run: cannot write {}: {error}.", output.display())),
    };
    let undo = uncovered(&context);
    let cancel = CancellationToken::new();
    let context = Context { host, cancel: cancel.clone(), ..context };
    let (started, mut ready) = oneshot::channel();
    let mut running = Box::pin(async move { work(&input, &context, Way::Background(file, started)).await });
    let early = tokio::select! {
        biased;
        Ok(()) = &mut ready => None,
        done = &mut running => Some(done),
    };
    let work = match early {
        Some(Err(refused)) => {
            let _ = std::fs::remove_file(&output);
            return refused;
        }
        // It had ended before anybody looked; it is told of all the same.
        Some(done) => ended(&begun, async { done }),
        None => ended(&begun, running),
    };
    let (id, path) = (begun.task.clone(), output.display().to_string());
    match agent.keep_running(Background { begun, output, cancel, work }).await {
        Ok(()) => {
            let display = Some(Display::Line { text: format!("running in the background as {id}") });
            let text = format!(
                "Running in the background as {id}. Output goes to {path}: use Read or Grep on it. {TOLD}{undo}"
            );
            Output { display, ..Output::ok(text) }
        }
        Err(problem) => Output::error(format!("Not run: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_at_its_timeout() {
        for (command, want) in [
            ("make -j4 test", true),
            ("cd sub && npm test | tail -5", true),
            ("sleep 600", false),
            ("/bin/sleep 600; make", false),
            ("make; sleep 600", true),
            ("git fetch", false),
            ("make && git push", false),
            ("echo (", false),
        ] {
            assert_eq!(may_leave(command), want, "{command}");
        }
    }
}
