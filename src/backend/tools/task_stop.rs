//! TaskStop: ends a command or a sub-agent in the background.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Effect;
use crate::permission::Access;
use crate::session::entry::Status;

use super::background::{Shell, State};
use super::call::Typed;
use super::{Call, Context, Dirs, Manners, Output};

pub(super) struct TaskStop;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    shell_id: Option<String>,
}

impl Typed for TaskStop {
    type Input = Input;

    const NAME: &'static str = "TaskStop";
    const ABOUT: &'static str = include_str!("../../../assets/tools/task_stop.md");
    const MANNERS: Manners = Manners {
        clearable: false,
        needs_room: true,
        spare: &["shell_id"],
        aliases: &["KillShell", "KillBash"],
        ..Manners::CHANGES
    };

    fn call(&self, input: Input, _dirs: &Dirs) -> Result<Call, String> {
        let id = named([input.task_id, input.shell_id]);
        let title = id.clone();
        Ok(Call::new(Access::Free, title, move |context| async move { stop(&id, &context).await }))
    }
}

/// The id under one of its names; empty where none was given.
pub(super) fn named(ids: [Option<String>; 2]) -> String {
    ids.into_iter().flatten().map(|id| id.trim().to_owned()).find(|id| !id.is_empty()).unwrap_or_default()
}

/// The task of that id, or what the model is told instead. A sub-agent goes by its own id, too.
pub(super) fn find(id: &str, context: &Context) -> Result<Shell, String> {
    let mut shells = context.host.shells();
    let agent = || shells.iter().rposition(|shell| shell.begun.agent() == Some(id));
    if let Some(at) = shells.iter().position(|shell| shell.begun.task == id).or_else(agent) {
        return Ok(shells.swap_remove(at));
    }
    let running = shells.iter().filter(|shell| matches!(shell.state, State::Running(_)));
    let rows: Vec<String> = running.map(|shell| format!("{} ({})", shell.begun.task, shell.begun.title())).collect();
    let running = if rows.is_empty() {
        "Nothing runs in the background.".into()
    } else {
        format!("Running: {}.", rows.join(", "))
    };
    match id {
        "" => Err(format!("Parameter `task_id` is missing. {running}")),
        id => Err(format!("Nothing called {id:?} in the background. {running}")),
    }
}

async fn stop(id: &str, context: &Context) -> Output {
    let shell = match find(id, context) {
        Ok(shell) => shell,
        Err(problem) => return Output::error(problem),
    };
    let output = shell.output.display();
    match shell.state {
        State::Ended(ended) => {
            Output::error(format!("It has already ended. {}. Its output is in {output}.", ended.line()))
        }
        State::Running(mut stopper) => {
            stopper.cancel.cancel();
            let text = match stopper.ended().await {
                Some(ended) if ended.status != Status::Stopped => format!("It had just ended. {}.", ended.line()),
                Some(ended) => format!("Stopped {} ({}).", ended.task, ended.title),
                None => format!("Stopped {id}."),
            };
            // It is told with that: no notice follows.
            let effects = vec![Effect::Told { task: shell.begun.task }];
            Output { effects, ..Output::ok(format!("{text} Its output is in {output}.")) }
        }
    }
}
