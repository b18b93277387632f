//! A command that its call does not wait for.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Done, Input, Way, work};
use crate::message::{CallId, Content};
use crate::session::entry::{Begun, Ended, Status};
use crate::tools::background::{Background, Work};
use crate::tools::{Context, Output};

/// Starts a command, hands it over, and says where to look.
pub(super) async fn begin(input: Input, context: Context) -> Output {
    let agent = context.host.clone();
    let Some(host) = agent.apart() else {
        return Output::error("Commands cannot run in the background here. Run it without run_in_background.");
    };
    let task = context.store.task(&context.call);
    let output = context.store.task_output(&task);
    let file = match context.store.begin_task_output(&task) {
        Ok(file) => file,
        Err(error) => return Output::error(format!("Not run: cannot write {}: {error}.", output.display())),
    };
    let begun = Begun {
        task: task.clone(),
        call: CallId(context.call.clone()),
        command: input.command.clone(),
        description: input.description.clone(),
    };
    let undo = if context.permit.reads() { "" } else { " /undo does not cover what it changes." };
    let cancel = CancellationToken::new();
    let context = Context { host, cancel: cancel.clone(), ..context };
    let (started, mut ready) = oneshot::channel();
    let mut running = Box::pin(async move { work(&input, &context, Way::Background(file, started)).await });
    let early = tokio::select! {
        biased;
        Ok(()) = &mut ready => None,
        done = &mut running => Some(done),
    };
    let (id, title) = (task.clone(), begun.title());
    let ended = move |done: Result<Done, Output>| match done {
        Ok(Done { status, code, why, millis, .. }) => Ended { task: id, title, status, code, why, millis },
        Err(refused) => {
            let why = Content::joined(&refused.content);
            Ended { task: id, title, status: Status::Failed, code: None, why: Some(why), millis: 0 }
        }
    };
    let work: Work = match early {
        Some(Err(refused)) => {
            let _ = std::fs::remove_file(&output);
            return refused;
        }
        // It had ended before anybody looked; it is told of all the same.
        Some(done) => Box::pin(async move { ended(done) }),
        None => Box::pin(async move { ended(running.await) }),
    };
    let background = Background { begun, output: output.clone(), cancel, work };
    match agent.keep_running(background).await {
        Ok(()) => Output::ok(format!(
            "Running in the background as {task}. Output goes to {}: use Read or Grep on it. You are told when the command \
             ends, so do not wait for it or poll. TaskStop ends it.{undo}",
            output.display()
        )),
        Err(problem) => Output::error(format!("Not run: {problem}")),
    }
}
