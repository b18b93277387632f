//! Hooks: commands and servers of the user that hear when something happens, and may have a say in it.
//!
//! The caller that makes something happen calls `Hooks::run` with an `Occasion` and does what the `Outcome` says. Hooks decide
//! nothing by themselves: an `allow` is a word that permissions may or may not take.

mod command;
mod config;
mod event;
mod faults;
mod http;
mod matcher;
mod outcome;
mod outside;
mod report;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stdx::hash::sha256_hex;
use crate::stdx::outside::Outside;
use crate::stdx::sealed::Sealed;

pub use command::{Limits, Settings, plain};
pub use config::{Definition, Definitions, Does, Given, Group, OnFailure, Origin, Request};
pub use event::{EndReason, Event, Occasion, Place, StartSource, Trigger, Worker};
pub use outcome::{Decision, Outcome, Verdict};
pub use report::{Ended, Report};

use command::{Home, Ran, Start};
use matcher::Matcher;

/// How long a hook of the event may run when it does not say. These are Claude Code's: hooks are written for them.
fn usual_timeout(event: Event) -> Duration {
    match event {
        // Somebody waits for the prompt to be sent.
        Event::UserPromptSubmit => Duration::from_secs(30),
        // The program ends, and nobody wants to wait for that.
        Event::SessionEnd => Duration::from_millis(1500),
        _ => Duration::from_secs(600),
    }
}

/// Which hooks run at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Switch {
    #[default]
    On,
    /// `disable_all_hooks`, set by anyone but the administrator: managed hooks still run.
    ManagedOnly,
    /// `disable_all_hooks` in the managed policy.
    Off,
}

/// One hook.
#[derive(Debug)]
struct Hook {
    /// Of the same hook in every run of the program.
    id: String,
    event: Event,
    /// As written.
    matcher_text: Option<String>,
    matcher: Matcher,
    does: Does,
    /// What it does, in a line for people.
    line: String,
    timeout: Option<Duration>,
    on_failure: OnFailure,
    once: bool,
    /// The rule that its call has to meet.
    condition: Option<String>,
    /// Nobody waits for it.
    beside: bool,
    origin: Origin,
    root: Option<PathBuf>,
    data: Option<PathBuf>,
    sealed: Sealed,
}

/// What is remembered of the runs of a session.
#[derive(Debug, Default)]
struct Memory {
    /// Hooks with `once` that ran.
    done: HashSet<String>,
    last: HashMap<String, (Ended, u64)>,
}

/// Names hooks that were registered for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Registration(u64);

/// All hooks of a session.
#[derive(Debug, Default)]
pub struct Hooks {
    fixed: Vec<Arc<Hook>>,
    registered: Vec<(Registration, Vec<Arc<Hook>>)>,
    next: u64,
    switch: Switch,
    /// What those that send may reach.
    pub limits: Limits,
    /// The program that runs us, where it has hooks of its own.
    pub outside: Option<Outside>,
    memory: Arc<Mutex<Memory>>,
}

/// A hook as `/hooks` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub event: Event,
    pub matcher: Option<String>,
    pub command: String,
    pub origin: Origin,
    pub once: bool,
    pub beside: bool,
    /// Switched off.
    pub off: bool,
    /// Its last run in this session.
    pub last: Option<(Ended, u64)>,
}

impl Hooks {
    /// The hooks of all files, in the order in which they count.
    pub fn new(given: Vec<Given>, switch: Switch) -> Hooks {
        let fixed = given.into_iter().flat_map(hooks_of).collect();
        Hooks { fixed, switch, ..Hooks::default() }
    }

    /// Takes over other files' hooks, as when a folder was trusted. What is registered or remembered stays.
    pub fn reconfigure(&mut self, given: Vec<Given>, switch: Switch) {
        self.fixed = given.into_iter().flat_map(hooks_of).collect();
        self.switch = switch;
    }

    /// Begins another session: `done` are the ids of hooks with `once` that ran in it already.
    pub fn restart(&self, done: &BTreeSet<String>) {
        *self.memory() = Memory { done: done.iter().cloned().collect(), last: HashMap::new() };
    }

    /// The same hooks for a sub-agent; what is remembered is shared, what either registers is its own.
    pub fn branch(&self) -> Hooks {
        let registered = self.registered.clone();
        Hooks {
            fixed: self.fixed.clone(),
            registered,
            next: self.next,
            switch: self.switch,
            limits: self.limits.clone(),
            outside: self.outside.clone(),
            memory: self.memory.clone(),
        }
    }

    /// Adds the hooks of a frontmatter until `remove`; each runs while the `sealed` files are as they were. The second part
    /// names what of it cannot be used.
    #[must_use = "the hooks stay until they are removed"]
    pub fn register(
        &mut self,
        origin: Origin,
        root: Option<PathBuf>,
        hooks: &Value,
        sealed: &Sealed,
    ) -> (Registration, Vec<String>) {
        let (definitions, problems) = Definitions::read(hooks);
        let sealed = definitions.all().map(|(_, _, hook)| (hook.line(), sealed.clone())).collect();
        let registration = Registration(self.next);
        self.next += 1;
        self.registered.push((registration, hooks_of(Given { origin, root, data: None, definitions, sealed })));
        (registration, problems)
    }

    /// Takes registered hooks away again. Those that run already run to their end.
    pub fn remove(&mut self, registration: Registration) {
        self.registered.retain(|(known, _)| *known != registration);
    }

    /// Whether any hook listens to the event; when none does, an occasion need not be put together.
    pub fn listens(&self, event: Event) -> bool {
        self.active().any(|hook| hook.event == event)
    }

    /// The conditions of the hooks that listen to an event: the caller knows which of them hold.
    pub fn conditions(&self, event: Event) -> BTreeSet<String> {
        self.active().filter(|hook| hook.event == event).filter_map(|hook| hook.condition.clone()).collect()
    }

    /// Runs every hook that the occasion is for, in parallel, and combines what they say. A command that is in
    /// several places runs once. Dropping the future ends what runs.
    pub async fn run(&self, occasion: &Occasion, place: &Place, settings: &Settings) -> Outcome {
        let chosen = self.choose(occasion, Waited::For);
        run_all(chosen, self.memory.clone(), occasion, place, settings).await
    }

    /// The run of the occasion's `async` hooks, for a caller to own; `None` if it has no such hooks. Their verdicts are ignored.
    pub fn beside(
        &self,
        occasion: &Occasion,
        place: &Place,
        settings: &Settings,
    ) -> Option<impl Future<Output = Outcome> + use<>> {
        let chosen = self.choose(occasion, Waited::Not);
        let (memory, occasion, place, settings) =
            (self.memory.clone(), occasion.clone(), place.clone(), settings.clone());
        (!chosen.is_empty()).then_some(async move {
            let outcome = run_all(chosen, memory, &occasion, &place, &settings).await;
            Outcome { verdict: None, block: None, stop: None, input: None, ..outcome }
        })
    }

    /// Every hook, in the order of events and of definition.
    pub fn rows(&self) -> Vec<Row> {
        let memory = self.memory();
        let row = |hook: &Arc<Hook>| Row {
            event: hook.event,
            matcher: match (&hook.matcher_text, &hook.condition) {
                (matcher, None) => matcher.clone(),
                (matcher, Some(rule)) => Some(format!("{} if {rule}", matcher.as_deref().unwrap_or("*"))),
            },
            command: hook.line.clone(),
            origin: hook.origin.clone(),
            once: hook.once,
            beside: hook.beside,
            off: !self.runs(hook),
            last: memory.last.get(&hook.id).copied(),
        };
        let mut rows: Vec<Row> = self.all().map(row).collect();
        rows.sort_by_key(|row| row.event);
        rows
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Hook>> {
        self.fixed.iter().chain(self.registered.iter().flat_map(|(_, hooks)| hooks))
    }

    fn runs(&self, hook: &Hook) -> bool {
        match self.switch {
            Switch::On => true,
            Switch::ManagedOnly => matches!(hook.origin, Origin::Managed(_)),
            Switch::Off => false,
        }
    }

    fn active(&self) -> impl Iterator<Item = &Arc<Hook>> {
        self.all().filter(|hook| self.runs(hook))
    }

    /// The hooks that run now, of those that are waited for or of the others. One with `once` is chosen for the last time: also what starts in the same moment passes it.
    fn choose(&self, occasion: &Occasion, waited: Waited) -> Vec<Arc<Hook>> {
        let mut chosen: Vec<Arc<Hook>> = Vec::new();
        let mut memory = self.memory();
        for hook in self.active() {
            let meant = hook.event == occasion.event
                && hook.beside == (waited == Waited::Not)
                && hook.condition.as_ref().is_none_or(|rule| occasion.meets.contains(rule))
                && occasion.subject.as_ref().is_none_or(|subject| hook.matcher.matches(subject));
            let same = |other: &Arc<Hook>| other.does == hook.does && other.root == hook.root;
            if !meant || chosen.iter().any(same) || hook.once && !memory.done.insert(hook.id.clone()) {
                continue;
            }
            chosen.push(hook.clone());
        }
        chosen
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// Whether the caller waits for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    For,
    Not,
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    // Every change is one insertion: a panic elsewhere leaves nothing half done.
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn run_all(
    chosen: Vec<Arc<Hook>>,
    memory: Arc<Mutex<Memory>>,
    occasion: &Occasion,
    place: &Place,
    settings: &Settings,
) -> Outcome {
    let mut outcome = Outcome::default();
    if chosen.is_empty() {
        return outcome;
    }
    let (input, name) = (occasion.input(place), occasion.name());
    let usual = usual_timeout(occasion.event);
    let input = &input;
    let runs = chosen.iter().map(|hook| async move {
        if let Some(file) = hook.sealed.broken() {
            let file = file.strip_prefix(&place.project).unwrap_or(file).display();
            return Ran::none(format!(
                "not run: {file} changed since you trusted this folder; the next start asks again"
            ));
        }
        // What a folder's line runs was looked up from there.
        let of_project = matches!(hook.origin, Origin::Project(_)) || !hook.sealed.is_empty();
        let cwd = if of_project { &place.project } else { &place.cwd };
        let (timeout, place) = (hook.timeout.unwrap_or(usual), Place { cwd: cwd.clone(), ..place.clone() });
        let start = match &hook.does {
            Does::Line(line) => Start::Line(line),
            Does::Program(program, arguments) => Start::Program(program, arguments),
            Does::Request(request) => return http::send(request, timeout, input, settings).await,
            Does::Outside(name) => return outside::ask(name, timeout, input, settings.outside.as_ref()).await,
        };
        let home = Home { root: hook.root.as_deref(), data: hook.data.as_deref() };
        command::run(start, home, timeout, input, &place, settings).await
    });
    let all = join_all(runs).await;
    for (hook, ran) in chosen.iter().zip(all) {
        let said = outcome::read(occasion.event, &ran, on_failure(hook, &ran));
        let report = said.report(&ran, Report::new(occasion.event, &name, &hook.line, hook.origin.clone()));
        tracing::debug!(hook = %hook.line, event = %name, ended = report.ended.name(), millis = report.millis, "hook");
        lock(&memory).last.insert(hook.id.clone(), (report.ended, report.millis));
        outcome.add(said, report);
        if hook.once {
            outcome.once.push(hook.id.clone());
        }
    }
    outcome
}

/// What follows when a hook failed. A program of its own that did not answer in time may be about to say no: its guard of a
/// call holds.
fn on_failure(hook: &Hook, ran: &Ran) -> OnFailure {
    let silent = matches!(ran.end, command::End::TimedOut(_)) && matches!(hook.does, Does::Outside(_));
    if silent && hook.event == Event::PreToolUse { OnFailure::Block } else { hook.on_failure }
}

/// The hooks of one source; those that cannot run were named when it was read.
fn hooks_of(given: Given) -> Vec<Arc<Hook>> {
    let Given { origin, root, data, definitions, sealed } = given;
    let hook = |(event, matcher, definition): (Event, Option<&str>, &Definition)| {
        let condition = definition.condition.as_ref().map(|rule| format!("\0{rule}")).unwrap_or_default();
        let line = definition.line();
        let identity = format!("{event}\0{}\0{line}\0{origin}{condition}", matcher.unwrap_or_default());
        Some(Arc::new(Hook {
            id: sha256_hex(identity.as_bytes())[..16].to_owned(),
            event,
            matcher_text: matcher.map(str::to_owned),
            matcher: Matcher::parse(matcher.unwrap_or_default()).ok()?,
            does: definition.does.clone(),
            timeout: definition.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            once: definition.once,
            condition: definition.condition.clone(),
            beside: definition.beside,
            origin: origin.clone(),
            root: root.clone(),
            data: data.clone(),
            sealed: sealed.get(&line).cloned().unwrap_or_default(),
            on_failure: definition.on_failure,
            line,
        }))
    };
    definitions.all().filter_map(hook).collect()
}

#[cfg(test)]
mod tests;
