//! Launches sub-agents: each an agent of its own with a log of its own, watched over until it ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Presence;
use super::budget::Purse;
use super::hooking::Hooking;
use super::mailbox::{Mailbox, Prompt};
use super::parent_child::{Above, Standing, Word};
use super::{Agent, Grants, Model, Parts, Policy, Settings, plan, prompt, skill_runs, tasks};
use crate::agents::{Definition, Definitions};
use crate::hooks::{self, Hooks, Worker};
use crate::message::{CallId, Kind, Message, ToolCall, tokens};
use crate::permission::{Behavior, Mode, Source};
use crate::protocol::report::Forecast;
use crate::protocol::{Answer, AskId, Asker, Event, Item, Question, Task, TurnEnd, task::Step};
use crate::session::{self, Session, Transcripts};
use crate::tools::{self, Launch, Offered, RULES, Report, Toolbox};

/// Names that mean a model of each provider's own.
const ROLES: [&str; 3] = ["haiku", "sonnet", "opus"];
/// Events of a sub-agent that wait to be looked at.
const EVENTS: usize = 64;

/// What launching takes, lent for one round of calls.
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
    pub(super) purse: Arc<Mutex<Purse>>,
    /// The plan file of the agent above while it plans.
    pub(super) plan: Option<PathBuf>,
}

impl Launcher {
    /// Runs a sub-agent to its end. Waits for a free seat first.
    ///
    /// # Errors
    /// It could not be launched; the text says why and what to do instead.
    pub(super) async fn launch(
        &self,
        launch: Launch<'_>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Report, String> {
        let definition = self.definition(launch.agent)?;
        let model = self.model(&launch, definition)?;
        let mut standing = self.standing.clone();
        let interrupted = |id: &str| Report::interrupted(id, &definition.name);
        let seat = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(interrupted("")),
            seat = self.seats.acquire() => seat,
        };
        // The semaphore is never closed.
        let Ok(_seat) = seat else { return Ok(interrupted("")) };
        let Standing { mode, thinking, .. } = standing.borrow_and_update().clone();
        // The mode may have become stricter while the seat was waited for.
        if mode == Mode::Plan && !definition.read_only() {
            return Err(format!("In plan mode only read-only agents run; {} is not one.", definition.name));
        }
        let (id, session) = self.session(&launch, definition)?;
        let mut child = self.agent(definition, model, session, &id).map_err(|error| error.to_string())?;
        let thinking = definition.thinking.or(thinking);
        child
            .conversation
            .begin(definition.mode_below(mode), thinking, self.opening.as_ref())
            .map_err(|error| error.to_string())?;

        let cancel = cancel.child_token();
        let (events, inbox) = mpsc::channel(EVENTS);
        let below = Mailbox::new(events);
        let mut watch = Watch {
            launcher: self,
            mailbox,
            below: &below,
            asks: FuturesUnordered::new(),
            open: Vec::new(),
            mode,
            started: (self.clock)(),
            task: Task {
                id,
                call: CallId(launch.call.to_owned()),
                agent: definition.name.clone(),
                description: launch.description.to_owned(),
                step: Step::Started,
                tools: 0,
                tokens: 0,
                millis: 0,
            },
            said: String::new(),
            failure: None,
            model: (child.model.name(), child.model.spec.clone()),
        };
        let spent = child.conversation.facts().spent.len();
        watch.tell(Step::Started).await;
        let prompt = Prompt::new(launch.prompt);
        let run = Box::pin(child.work(prompt, &definition.skills, &below, &cancel));
        let end = watch.over(run, inbox, &mut standing, definition).await;
        let left = tasks::names(&child);
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
            let launch = Launch {
                call: call.id.as_str(),
                agent: said("subagent_type").unwrap_or_default(),
                description: "",
                prompt: said("prompt").unwrap_or_default(),
                model: said("model"),
                resume: None,
            };
            let Ok(definition) = self.definition(launch.agent) else { continue };
            let Ok((model, _)) = self.model(&launch, definition) else { continue };
            let tools = serde_json::to_string(&*self.below(definition).specs()).unwrap_or_default();
            let texts = [&*definition.prompt, &tools, launch.prompt];
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
    fn model(&self, launch: &Launch<'_>, definition: &Definition) -> Result<(Model, Arc<tools::Settings>), String> {
        let Some(name) = launch.model.or(definition.model.as_deref()).filter(|name| *name != "inherit") else {
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
    fn session(&self, launch: &Launch<'_>, definition: &Definition) -> Result<(String, Session), String> {
        let Some(id) = launch.resume else {
            let cwd = &self.policy.places.cwd;
            let begun = self.transcripts.begin(&definition.name, launch.description, cwd);
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

/// Watches over one sub-agent: what it does becomes live lines, its questions become those of the session.
struct Watch<'a> {
    launcher: &'a Launcher,
    /// Of the agent above.
    mailbox: &'a Mailbox,
    /// Of the sub-agent.
    below: &'a Mailbox,
    asks: FuturesUnordered<BoxFuture<'a, (AskId, Option<Answer>)>>,
    /// Questions that wait, with what takes them back.
    open: Vec<(AskId, CancellationToken)>,
    /// Of the agent above.
    mode: Mode,
    started: Instant,
    task: Task,
    /// The last text that it said.
    said: String,
    failure: Option<String>,
    model: (String, crate::provider::catalog::ModelSpec),
}

impl<'a> Watch<'a> {
    /// Follows the turn to its end.
    async fn over(
        &mut self,
        turn: impl Future<Output = TurnEnd>,
        mut inbox: mpsc::Receiver<Event>,
        standing: &mut watch::Receiver<Standing>,
        definition: &Definition,
    ) -> TurnEnd {
        tokio::pin!(turn);
        let (mut known, mut level) = (standing.borrow().granted.len(), standing.borrow().thinking);
        let end = loop {
            tokio::select! {
                biased;
                Some(event) = inbox.recv() => self.event(event).await,
                Ok(()) = standing.changed() => {
                    let Standing { mode, granted, thinking } = standing.borrow_and_update().clone();
                    let news = granted.get(known..).unwrap_or_default();
                    news.iter().for_each(|(rule, source)| self.below.give(rule.clone(), *source));
                    known = granted.len();
                    self.mode = mode;
                    self.below.set_mode(definition.mode_below(mode));
                    if thinking != level && definition.thinking.is_none() {
                        self.below.set_thinking(thinking);
                    }
                    level = thinking;
                }
                Some((id, answer)) = self.asks.next() => {
                    self.open.retain(|(open, _)| *open != id);
                    if let Some(answer) = answer {
                        self.below.answer(id, answer);
                    }
                }
                end = &mut turn => break end,
            }
        };
        while let Ok(event) = inbox.try_recv() {
            self.event(event).await;
        }
        end
    }

    async fn tell(&mut self, step: Step) {
        self.task.step = step;
        let elapsed = (self.launcher.clock)().duration_since(self.started);
        self.task.millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.mailbox.emit(Event::Task(self.task.clone())).await;
    }

    fn spent(&self, model: String, usage: crate::message::Usage) {
        let (what, spec) = (self.task.agent.clone(), self.model.1.clone());
        // The round that heard this is still there: it waits for this run.
        let _ = self.launcher.words.send(Word::Spent { what, model, spec, usage });
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Ask(ask) => {
                let waiting = self.open.len();
                self.ask(ask.id, ask.question);
                if self.open.len() > waiting {
                    self.tell(Step::Doing { what: "waiting for your answer".into() }).await;
                }
            }
            Event::AskClosed { id } => {
                if let Some((_, token)) = self.open.iter().find(|(open, _)| *open == id) {
                    token.cancel();
                }
            }
            Event::Item(Item::CallStarted { tool, title, .. }) => {
                self.task.tools += 1;
                let project = self.launcher.policy.places.project.to_string_lossy();
                let short = title.strip_prefix(&*project).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&title);
                let what = if short.is_empty() { tool } else { format!("{tool}({short})") };
                self.tell(Step::Doing { what }).await;
            }
            Event::Item(Item::Message { message, .. }) => {
                if message.kind == Kind::Reply {
                    let text = message.text();
                    if !text.trim().is_empty() {
                        self.said = text;
                    }
                    if let Some(usage) = message.usage {
                        self.spent(self.model.0.clone(), usage);
                    }
                }
                self.tell(Step::Said { message }).await;
            }
            Event::Usage(usage) => self.task.tokens = usage.context,
            Event::Retrying { attempt, of, .. } => {
                self.tell(Step::Doing { what: format!("waiting for the provider, attempt {attempt} of {of}") }).await;
            }
            Event::Error { text, .. } => self.failure = Some(text),
            Event::Notice { text } => {
                let text = format!("{}: {text}", self.task.agent);
                self.mailbox.emit(Event::Notice { text }).await;
            }
            hook @ Event::Hook { .. } => self.mailbox.emit(hook).await,
            _ => {}
        }
    }

    /// Puts a question of the sub-agent to the user, in its name.
    fn ask(&mut self, id: AskId, question: Question) {
        // A definition may plan below a session that declines whatever is not allowed.
        if self.mode == Mode::DontAsk && matches!(question, Question::Permission { .. }) {
            let told = "Mode dontAsk denies what is not allowed.".to_owned();
            self.below.answer(id, Answer::Nobody { told });
            return;
        }
        let asker = Asker { agent: self.task.agent.clone(), description: self.task.description.clone() };
        let token = CancellationToken::new();
        self.open.push((id, token.clone()));
        let mailbox = self.mailbox;
        self.asks.push(Box::pin(async move { (id, mailbox.ask_as(Some(asker), question, &token).await) }));
    }
}
