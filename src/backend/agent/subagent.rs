//! Launches sub-agents: each an agent of its own with a log of its own, watched over until it ends.

mod watching;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::watching::Watch;
use super::Presence;
use super::budget::Purse;
use super::hooking::Hooking;
use super::mailbox::{Mailbox, Prompt};
use super::parent_child::{Above, Standing, Word};
use super::tasks::{Board, Door, Outlet};
use super::{Agent, Grants, Model, Parts, Policy, Settings, plan, prompt, skill_runs, tasks};
use crate::agents::{Definition, Definitions};
use crate::hooks::{self, Hooks, Worker};
use crate::message::{CallId, Content, Message, Outcome, ToolCall, tokens};
use crate::permission::{Behavior, Mode, Source};
use crate::protocol::report::Forecast;
use crate::protocol::{BETWEEN, Event, Task, TurnEnd, task::Step};
use crate::session::entry::{AgentReport, Begun, Ended, Status, TaskSort};
use crate::session::store::Store;
use crate::session::{self, Session, Transcripts};
use crate::stdx::text;
use crate::tools::background::Background;
use crate::tools::{self, Away, Launch, Offered, RULES, Report, Spawned, Toolbox};

/// Names that mean a model of each provider's own.
const ROLES: [&str; 3] = ["haiku", "sonnet", "opus"];
/// Events of a sub-agent that wait to be looked at.
const EVENTS: usize = 64;
/// Most columns of a prompt that are kept with a task.
const PROMPT: usize = 1000;
/// Most bytes of a report that join the conversation.
const REPORT: usize = 8 * 1024;

/// What launching takes, as it is in one round of calls.
pub(super) struct Launcher {
    pub(super) model: Model,
    pub(super) policy: Policy,
    pub(super) settings: Settings,
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) grants: Arc<dyn Grants>,
    pub(super) hooks: Hooks,
    pub(super) git: Option<String>,
    pub(super) date: String,
    pub(super) clock: fn() -> Instant,
    pub(super) transcripts: Transcripts,
    /// What the conversation above opens with: environment and memory files, as they were told there.
    pub(super) opening: Option<Arc<Message>>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) skills: skill_runs::Settings,
    pub(super) seats: Arc<Semaphore>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) words: mpsc::UnboundedSender<Word>,
    pub(super) board: Board,
    /// Where what it does is written, once it is in the background.
    pub(super) store: Store,
    /// Names of tasks that are in the log already.
    pub(super) known: HashSet<String>,
    pub(super) purse: Arc<Mutex<Purse>>,
    /// The plan file of the agent above while it plans.
    pub(super) plan: Option<PathBuf>,
}

impl Launcher {
    /// Runs a sub-agent to its end, or lets it continue in the background where that is wanted at once or meanwhile.
    ///
    /// # Errors
    /// It could not be launched; the text says why and what to do instead.
    pub(super) async fn spawn(
        self: &Arc<Self>,
        launch: Launch,
        door: &Door,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Spawned, String> {
        if let Some(id) = launch.resume.clone().filter(|id| self.board.tell(id, &launch.prompt)) {
            return Ok(Spawned::Told { id });
        }
        let (background, own) = (launch.background, CancellationToken::new());
        let opened = self.open(launch)?;
        let (begun, outlet) = (opened.begun.clone(), Outlet::new());
        let output = self.store.task_output(&begun.task);
        let entered = self.board.enter(begun.clone(), own.clone(), opened.below.clone());
        let run = Arc::clone(self).run(opened, mailbox.clone(), own.clone(), outlet.clone());
        let mut running: BoxFuture<'static, Result<Report, String>> = Box::pin(async move {
            let _entered = entered;
            run.await
        });
        let (mut why, mut leaving) = (Away::Launched, None);
        if !background {
            (why, leaving) = (Away::Moved, Some(mailbox.leaving()));
        }
        let file = loop {
            if let Some(wanted) = &leaving {
                tokio::select! {
                    biased;
                    report = &mut running => return report.map(Spawned::Reported),
                    () = cancel.cancelled() => {
                        own.cancel();
                        return running.await.map(Spawned::Reported);
                    }
                    () = wanted.cancelled() => {}
                }
            }
            match self.store.begin_task_output(&begun.task) {
                Ok(file) => break file,
                Err(error) if background => {
                    return Err(format!("Not launched: cannot write {}: {error}.", output.display()));
                }
                // It stays where it is.
                Err(_) => leaving = Some(CancellationToken::new()),
            }
        };
        outlet.open(file);
        let started = (self.clock)();
        let (of, clock) = (begun.clone(), self.clock);
        let work = Box::pin(async move { (ended(&of, running.await, &outlet, clock().duration_since(started)), None) });
        door.hand_over(Background { begun: begun.clone(), output: output.clone(), cancel: own, work }).await?;
        Ok(Spawned::Apart { begun, output, why })
    }

    /// Opens the log of a sub-agent that is about to run.
    fn open(&self, launch: Launch) -> Result<Opened, String> {
        let definition = self.definition(&launch.agent)?;
        self.permits(definition)?;
        let model = self.model(&launch, definition)?;
        let (id, session) = self.session(&launch, definition)?;
        // One that continues is another task each time.
        let names = std::iter::once(id.clone()).chain((2..).map(|time| format!("{id}.{time}")));
        let task = names.into_iter().find(|name| !self.known.contains(name)).unwrap_or_default();
        let begun = Begun {
            sort: TaskSort::Agent { id, agent: definition.name.clone() },
            description: Some(launch.description.clone()),
            ..Begun::command(task, CallId(launch.call.clone()), text::truncate(&launch.prompt, PROMPT))
        };
        let (events, inbox) = mpsc::channel(EVENTS);
        Ok(Opened { launch, begun, model, session, below: Mailbox::new(events), inbox })
    }

    /// In plan mode only those run that change nothing.
    fn permits(&self, definition: &Definition) -> Result<(), String> {
        if self.standing.borrow().mode == Mode::Plan && !definition.read_only() {
            return Err(format!("In plan mode only read-only agents run; {} is not one.", definition.name));
        }
        Ok(())
    }

    /// Runs a sub-agent to its end. Waits for a free seat first.
    async fn run(
        self: Arc<Self>,
        opened: Opened,
        mailbox: Mailbox,
        cancel: CancellationToken,
        outlet: Outlet,
    ) -> Result<Report, String> {
        let Opened { launch, begun, model, session, below, mut inbox } = opened;
        let definition = self.definition(&launch.agent)?;
        let id = begun.agent().unwrap_or_default().to_owned();
        let mut standing = self.standing.clone();
        let interrupted = || Report::interrupted("", &definition.name);
        let seat = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(interrupted()),
            seat = self.seats.clone().acquire_owned() => seat,
        };
        // The semaphore is never closed.
        let Ok(_seat) = seat else { return Ok(interrupted()) };
        let Standing { mode, thinking, .. } = standing.borrow_and_update().clone();
        // The mode may have become stricter while the seat was waited for.
        self.permits(definition)?;
        let mut child = self.agent(definition, model, session, &id).map_err(|error| error.to_string())?;
        let thinking = definition.thinking.or(thinking);
        child
            .conversation
            .begin(definition.mode_below(mode), thinking, self.opening.as_ref())
            .map_err(|error| error.to_string())?;

        let mut watch = Watch {
            launcher: &self,
            mailbox: &mailbox,
            below: &below,
            asks: FuturesUnordered::new(),
            open: Vec::new(),
            mode,
            started: (self.clock)(),
            task: Task {
                id,
                call: CallId(launch.call.clone()),
                agent: definition.name.clone(),
                description: launch.description.clone(),
                step: Step::Started,
                tools: 0,
                tokens: 0,
                millis: 0,
            },
            name: &begun.task,
            usd: 0.0,
            doing: String::new(),
            outlet,
            said: String::new(),
            failure: None,
            model: (child.model.name(), child.model.spec.clone()),
        };
        let spent = child.conversation.facts().spent.len();
        watch.tell(Step::Started).await;
        let run = Box::pin(child.work(Prompt::new(&launch.prompt), &definition.skills, &below, &cancel));
        let mut end = watch.over(run, &mut inbox, &mut standing, definition).await;
        let unread = loop {
            let words = self.board.unread(&begun.task, end == TurnEnd::Done);
            if words.is_empty() || end != TurnEnd::Done {
                break words;
            }
            let words: Vec<String> = words.into_iter().map(|prompt| prompt.text).collect();
            let run = Box::pin(child.turn(Prompt::new(words.join(BETWEEN)), &below, &cancel));
            end = watch.over(run, &mut inbox, &mut standing, definition).await;
        };
        let left = tasks::names(&child) + &not_read(&unread);
        tasks::end(&mut child, "the agent that ran it ended", &below).await.map_err(|error| error.to_string())?;
        for spent in &child.conversation.facts().spent[spent..] {
            watch.spent(spent.model.clone(), spent.usage);
        }
        watch.tell(Step::Done { end }).await;
        let Watch { task, said, failure, .. } = watch;
        Ok(Report {
            id: task.id,
            agent: task.agent,
            end,
            text: said + &left,
            failure,
            tools: task.tools,
            tokens: task.tokens,
            millis: task.millis,
        })
    }

    /// What the sub-agents of these calls send before they have done anything: nobody has sent it yet, so that no cache has
    /// it. One that continues sends what it had.
    pub(super) fn forecast<'a>(&self, calls: impl Iterator<Item = &'a ToolCall>) -> (usize, Forecast) {
        let opening = self.opening.as_deref().map_or(0, |opening| tokens::load(opening).total());
        let mut all = Forecast { tokens: 0, cold: true, usd: Some(0.0), warm_usd: None };
        let mut agents = 0;
        for call in calls.filter(|call| call.input["resume"].is_null()) {
            let said = |key: &str| call.input[key].as_str();
            let text = |key: &str| said(key).unwrap_or_default().to_owned();
            let (agent, prompt, model) = (text("subagent_type"), text("prompt"), said("model").map(str::to_owned));
            let launch = Launch { agent, prompt, model, ..Launch::default() };
            let Ok(definition) = self.definition(&launch.agent) else { continue };
            let Ok((model, _)) = self.model(&launch, definition) else { continue };
            let tools = serde_json::to_string(&*self.below(definition).specs()).unwrap_or_default();
            let texts = [&*definition.prompt, &tools, &launch.prompt];
            let tokens = opening + texts.into_iter().map(tokens::text).sum::<u64>();
            let usd = model.spec.prices.map(|prices| tokens as f64 * prices.uncached() / 1e6);
            agents += 1;
            all.tokens += tokens;
            all.usd = all.usd.zip(usd).map(|(sum, usd)| sum + usd);
        }
        (agents, all)
    }

    /// The tools that a sub-agent has.
    fn below(&self, definition: &Definition) -> Toolbox {
        self.toolbox.only(|tool| match tool.manners().offered {
            Offered::Reading | Offered::Below => definition.offers(&tool.spec().name),
            Offered::Named => definition.names(&tool.spec().name),
            Offered::Main | Offered::Nobody => false,
        })
    }

    fn definition(&self, name: &str) -> Result<&Definition, String> {
        self.definitions.get(name).ok_or_else(|| tools::no_such_agent(&self.definitions, name))
    }

    /// The model that the call names, else the definition, else the session's own.
    fn model(&self, launch: &Launch, definition: &Definition) -> Result<(Model, Arc<tools::Settings>), String> {
        let Some(name) = launch.model.as_deref().or(definition.model.as_deref()).filter(|name| *name != "inherit")
        else {
            return Ok((self.model.clone(), self.settings.tools.clone()));
        };
        // A role is one of the provider that answers already.
        let name = match ROLES.contains(&name) {
            true => format!("{}/{name}", self.model.provider_name),
            false => name.to_owned(),
        };
        (self.skills.models)(&name).map(|(model, limits)| (model, Arc::new(limits)))
    }

    /// A new log, or that of the sub-agent that continues.
    fn session(&self, launch: &Launch, definition: &Definition) -> Result<(String, Session), String> {
        let Some(id) = launch.resume.as_deref() else {
            let cwd = &self.policy.places.cwd;
            let begun = self.transcripts.begin(&definition.name, &launch.description, cwd);
            return begun.map_err(|error| error.to_string());
        };
        let session = match self.transcripts.resume(id) {
            Ok(session) => session,
            Err(session::Error::Locked { .. }) => return Err(format!("Agent {id} is still running.")),
            Err(session::Error::NotFound { .. }) => {
                let known = self.transcripts.ids();
                let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
                return Err(format!("No agent {id:?} to resume. Agents in this session: {known}."));
            }
            Err(error) => return Err(error.to_string()),
        };
        match session.facts().agent.as_deref() {
            Some(agent) if agent != definition.name => {
                Err(format!("Agent {id} is of type {agent}: resume it with that `subagent_type`, or launch a new one."))
            }
            _ => Ok((id.to_owned(), session)),
        }
    }

    fn agent(
        &self,
        definition: &Definition,
        (model, limits): (Model, Arc<tools::Settings>),
        session: Session,
        id: &str,
    ) -> Result<Agent, crate::permission::RuleError> {
        let mut policy = self.policy.clone();
        for rule in definition.denied() {
            policy.rules.add(Behavior::Deny, RULES.rule(rule)?, Source::Session);
        }
        let settings = Settings {
            tools: limits,
            max_turns: definition.max_turns.or(self.settings.max_turns),
            system: Some(definition.prompt.to_string()),
            append_system: None,
            presence: Presence::Unattended,
            seats: 1,
            ..self.settings.clone()
        };
        let mut child = Agent::new(
            session,
            Parts {
                model,
                policy,
                settings,
                toolbox: Arc::new(self.below(definition)),
                grants: self.grants.clone(),
                // A branch of the session's takes their place: it shares what is remembered.
                hooks: Hooks::default(),
                git: prompt::GitStatus::of(self.git.clone()),
                date: self.date.clone(),
                clock: self.clock,
                definitions: self.definitions.clone(),
                skills: self.skills.clone(),
            },
        );
        let plan = self.plan.as_deref().map(|plan| plan::of_sub_agent(plan, id));
        let above = Above { agent: definition.name.clone(), plan, words: self.words.clone() };
        child.conversation.above = Some(above);
        child.compaction.driver.work_for_an_agent();
        child.budget.purse = self.purse.clone();
        child.tasks.board = self.board.below(id);
        let worker = Worker {
            id: id.to_owned(),
            kind: definition.name.clone(),
            transcript: child.conversation.session.log().to_path_buf(),
        };
        child.hooking = Hooking::new(self.hooks.branch());
        child.hooking.worker = Some(worker);
        Launcher::add_hooks(definition, &mut child.hooking.hooks);
        Ok(child)
    }

    /// Registers the hooks of a definition. Those of a project that the user has not agreed to were left out of it.
    fn add_hooks(definition: &Definition, hooks: &mut Hooks) {
        let Some(serde_json::Value::Object(mut given)) = definition.hooks.clone() else { return };
        // What a definition says of its own end.
        if let Some(stop) = given.remove("Stop") {
            given.entry("SubagentStop").or_insert(stop);
        }
        let origin = hooks::Origin::Agent(definition.name.clone());
        // They end with the branch that they are registered in.
        let (_registration, problems) = hooks.register(origin, None, &given.into(), &definition.sealed);
        for problem in problems {
            tracing::warn!(agent = %definition.name, problem, "hooks of a definition");
        }
    }
}

/// A sub-agent that is about to run.
struct Opened {
    launch: Launch,
    begun: Begun,
    model: (Model, Arc<tools::Settings>),
    session: Session,
    below: Mailbox,
    inbox: mpsc::Receiver<Event>,
}

/// What the model is told of words that came too late.
fn not_read(unread: &[Prompt]) -> String {
    match unread {
        [] => String::new(),
        unread => {
            let words: Vec<&str> = unread.iter().map(|prompt| prompt.text.as_str()).collect();
            format!("\n\nIt did not read these messages: {}", words.join(BETWEEN))
        }
    }
}

/// How a task ended that is a sub-agent; its report is in its output, too.
fn ended(begun: &Begun, report: Result<Report, String>, outlet: &Outlet, time: Duration) -> Ended {
    let figures = report.as_ref().map(|report| (report.tools, report.tokens)).unwrap_or_default();
    let output = report.map_or_else(tools::Output::error, tools::report);
    let status = match output.outcome {
        Outcome::Ok => Status::Completed,
        Outcome::Interrupted => Status::Stopped,
        Outcome::Error | Outcome::Denied => Status::Failed,
    };
    let mut text = Content::joined(&output.content);
    outlet.write(&format!("\n{text}\n"));
    if text.len() > REPORT {
        text.truncate(text.floor_char_boundary(REPORT));
        text.push_str("\n[Cut: all of it is at the end of the file.]");
    }
    let (report, millis) = (AgentReport { text, tools: figures.0, tokens: figures.1 }, time.as_millis());
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    Ended { millis, report: Some(report), ..Ended::of(begun, status) }
}
