//! What every session of the lab works at: a real log, the driver over it, and the steps that the agent takes before a
//! request.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use cocode::agent::prompt::SYSTEM;
use cocode::compact::candidate::{self, Made, Quotes, Ration};
use cocode::compact::memory::{self, Metadata, Notes};
use cocode::compact::restore::{self, Found, Sources};
use cocode::compact::{Candidate, Driver, Features, Search, Settings, Step, Summarized, Surroundings, Window};
use cocode::compact::{apply, micro, summary, trim};
use cocode::config::DEFAULTS;
use cocode::message::tokens::{self, Load};
use cocode::message::{Attachment, Block, Message, Role};
use cocode::protocol::Trigger;
use cocode::provider::catalog::Prices;
use cocode::session::Session;
use cocode::session::entry::{Boundary, EntryKind, Seq};
use cocode::tools::Toolbox;

/// Name of the tier that asks a model.
pub(crate) const FULL: &str = "full";

/// The settings as shipped.
pub(crate) fn shipped() -> (Settings, Features) {
    let defaults: toml::Table = DEFAULTS.parse().expect("the defaults are TOML");
    let part = |name: &str| defaults[name].clone();
    let settings = part("compact").try_into().expect("the shipped settings");
    (settings, part("features").try_into().expect("the shipped features"))
}

/// Estimate of system prompt and tools.
fn overhead(window: u64) -> u64 {
    let tools = Toolbox::builtin().fitting(Some(window)).specs();
    let texts = tools.iter().map(|spec| format!("{}{}{}", spec.name, spec.description, spec.schema));
    tokens::text(SYSTEM) + texts.map(|text| tokens::text(&text)).sum::<u64>()
}

/// What the session opens with, and every boundary brings along: the environment, memory files and skills.
fn opening(window: u64) -> Vec<Arc<Message>> {
    let memory = "- Run the narrowest test first, and say what it printed.\n".repeat(20);
    let environment = format!("# Environment\nA project in /code.\n\n# Memory files\n{memory}");
    let skills = "- review: Reviews a change for mistakes, file by file, and reports them by severity.\n".repeat(12);
    let opening = Message::attachment(Attachment::Opening { memory: 35 }, &environment);
    let mut all = vec![Arc::new(opening)];
    if window >= 16_000 {
        all.push(Arc::new(Message::attachment(Attachment::SkillList, &skills)));
    }
    all
}

/// Tools whose results may be cleared.
pub(crate) fn clearable(tool: &str) -> bool {
    static CLEARABLE: LazyLock<Vec<String>> = LazyLock::new(|| {
        let all = Toolbox::builtin();
        let specs = all.specs();
        let names = specs.iter().map(|spec| spec.name.clone());
        names.filter(|name| all.get(name).is_some_and(|tool| tool.manners().clearable)).collect()
    });
    CLEARABLE.iter().any(|name| name == tool)
}

/// What was done to the context before a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Did {
    Cleared {
        tokens: u64,
    },
    Summarized {
        tier: String,
        before: u64,
        after: u64,
    },
    /// No tier had a summary.
    Failed,
    /// There was one, and it was of no use.
    Rejected,
    Trimmed {
        saved: u64,
        dropped: bool,
    },
    Refused,
    /// The driver does not come to an end.
    Endless,
}

/// One session and what keeps it within its window.
pub(crate) struct Desk {
    pub(crate) session: Session,
    pub(crate) driver: Driver,
    /// The window that the session began with: it decides about tools and skills.
    began: u64,
}

/// Whom the steps ask.
pub(crate) struct Around<'a> {
    pub(crate) prices: Prices,
    /// The provider has dropped the conversation from its cache.
    pub(crate) cold: bool,
    /// A file as it is on disk.
    pub(crate) found: &'a dyn Fn(PathBuf) -> Found,
    /// The model's whole answer to a request for a summary of so many tokens; none when it fails.
    pub(crate) write: &'a mut dyn FnMut(&Desk, u64) -> Option<String>,
}

impl Desk {
    pub(crate) fn new(home: &Path, window: u64, (settings, features): (Settings, Features)) -> Desk {
        let mut driver = Driver::new(settings, features, Window { tokens: Some(window), max_output: 32_000 });
        driver.meter.set_overhead(Load { text: overhead(window), images: 0 });
        let session = Session::create(home, Path::new("/code"), "lab", SystemTime::now);
        let mut desk = Desk { session, driver, began: window };
        opening(window).iter().for_each(|message| desk.append(Message::clone(message)));
        desk
    }

    pub(crate) fn append(&mut self, message: Message) {
        let message = Arc::new(message);
        self.session.append(EntryKind::Message { message }).expect("the log is written");
    }

    /// Removes the log.
    pub(crate) fn leave(self) {
        let folder = self.session.store().dir().to_owned();
        drop(self);
        let _ = std::fs::remove_dir_all(folder);
    }

    pub(crate) fn window(&self) -> u64 {
        self.driver.window().tokens.unwrap_or_default()
    }

    /// Messages before the results that clearing would take away next, up to the last one of the user.
    pub(crate) fn frontier(&self) -> Option<usize> {
        let context = self.session.context();
        let call = micro::frontier(context, self.driver.terms(self.session.store(), &clearable))?;
        let first = context.result_of(&call)?.index;
        let before: Vec<Role> = context.shown().take(first).map(|shown| shown.message.role).collect();
        before.iter().rposition(|role| *role == Role::User).map(|at| at + 1)
    }

    pub(crate) fn used(&self) -> u64 {
        self.driver.used(self.session.context())
    }

    /// Estimate of system prompt and tools.
    pub(crate) fn overhead(&self) -> u64 {
        overhead(self.began)
    }

    /// Makes the next request fit, as the agent does.
    pub(crate) fn prepare(&mut self, around: &mut Around<'_>) -> Vec<Did> {
        self.driver.prepare();
        let mut done = Vec::new();
        loop {
            if done.len() > 4 {
                done.push(Did::Endless);
                return done;
            }
            let given = Surroundings {
                store: self.session.store(),
                clearable: &clearable,
                prices: Some(around.prices),
                cold: around.cold,
            };
            done.push(match self.driver.step(self.session.context(), given) {
                Step::Send => return done,
                Step::Clear(plan) => {
                    let cleared = apply::clear(&mut self.session, &plan).expect("the log is written");
                    self.append(Message::attachment(Attachment::Cleared, "Older tool results were cleared."));
                    Did::Cleared { tokens: cleared.tokens }
                }
                Step::Summarize => {
                    let (did, what) = self.summarize(around);
                    self.driver.summarized(what);
                    did
                }
                Step::Trim { target } => match self.trim(target) {
                    Some(did) => did,
                    None => continue,
                },
                Step::Refuse { .. } => Did::Refused,
            });
        }
    }

    fn trim(&mut self, target: u64) -> Option<Did> {
        let before = self.used();
        let terms = self.driver.terms(self.session.store(), &clearable);
        let plan = trim::plan(self.session.context(), terms, &opening(self.began), target);
        if plan.is_empty() {
            return None;
        }
        apply::trim(&mut self.session, &plan, before).expect("the log is written");
        self.driver.ran();
        if plan.drop.is_some() {
            self.notes().unmark().expect("the notes are written");
        }
        Some(Did::Trimmed { saved: before.saturating_sub(plan.after), dropped: plan.drop.is_some() })
    }

    /// The model tiers: the notes, or else a summary.
    fn summarize(&mut self, around: &mut Around<'_>) -> (Did, Summarized) {
        let candidate = self.noted(around.found).or_else(|| self.written(around));
        let Some(candidate) = candidate else { return (Did::Failed, Summarized::Failed) };
        match self.driver.judge(self.session.context(), candidate) {
            Ok(Candidate { boundary, .. }) => {
                let Boundary { tier, pre_tokens: before, post_tokens: after, .. } = boundary.clone();
                self.session.append(EntryKind::CompactBoundary(boundary)).expect("the log is written");
                self.driver.ran();
                if tier != memory::TIER {
                    self.notes().unmark().expect("the notes are written");
                }
                (Did::Summarized { tier, before, after }, Summarized::Committed)
            }
            Err(_) => (Did::Rejected, Summarized::Rejected),
        }
    }

    fn written(&self, around: &mut Around<'_>) -> Option<Candidate> {
        let (context, driver) = (self.session.context(), &self.driver);
        let written = (around.write)(self, driver.used(context))?;
        let reply = Message::reply(vec![Block::text(written)]);
        let text = summary::read(&reply).ok()?;
        let opening = opening(self.began);
        let message = Arc::new(summary::message(&text, Trigger::Auto, Search::Recall));
        let most = driver.limits().restored;
        Some(candidate::fit(context, driver, |ration| {
            let summary = ration.summary(&message, driver.limits());
            let brought = candidate::weight(&opening, &summary) + most;
            let keep_from = candidate::cut(context, driver, brought, ration);
            self.candidate((FULL, keep_from), (&opening, summary), ration, around.found)
        }))
    }

    /// The notes as a summary, where they can be used.
    fn noted(&self, found: &dyn Fn(PathBuf) -> Found) -> Option<Candidate> {
        let (context, driver) = (self.session.context(), &self.driver);
        if !(driver.features().session_memory && driver.features().session_memory_compact) {
            return None;
        }
        let (text, mark) = self.notes().load(driver.limits()).ok()?;
        let boundary = self.session.last_boundary().and_then(|seq| self.session.entry(seq));
        let noted = boundary
            .is_some_and(|entry| matches!(entry.kind, EntryKind::CompactBoundary(it) if it.tier == memory::TIER));
        let opening = opening(self.began);
        let summary = Arc::new(summary::message(&memory::summary(&text), Trigger::Auto, Search::Recall));
        let brought = candidate::weight(&opening, &summary) + driver.limits().restored;
        let recent = candidate::cut(context, driver, brought, Ration::WHOLE);
        let keep_from = memory::keep_from(context, mark.seq, noted, recent)?;
        let candidate = candidate::fit(context, driver, |ration| {
            let summary = ration.summary(&summary, driver.limits());
            self.candidate((memory::TIER, keep_from), (&opening, summary), ration, found)
        });
        memory::check(context, driver, candidate).ok()
    }

    fn candidate(
        &self,
        (tier, keep_from): (&str, Seq),
        (opening, summary): (&[Arc<Message>], Arc<Message>),
        ration: Ration,
        found: &dyn Fn(PathBuf) -> Found,
    ) -> Candidate {
        let (context, driver) = (self.session.context(), &self.driver);
        let (trigger, opening, quotes) = (Trigger::Auto, opening.to_vec(), Quotes::Opening);
        let made = Made { tier, trigger, keep_from, opening, summary, quotes };
        made.candidate(context, driver, ration, |archived| {
            let budget = restore::budget(context, driver, ration.restored);
            let files = restore::reads(context, keep_from, archived).into_iter().map(found);
            let files = files.take(driver.settings().restore.max_files).collect();
            let sources = Sources { files, todos: context.todos(), ..Sources::default() };
            restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
        })
    }

    fn notes(&self) -> Notes {
        Notes::of(self.session.store().dir())
    }

    /// Brings the notes up to date when it is time; the model gets the notes as they are, and the entry up
    /// to which they go.
    pub(crate) fn keep_notes(&self, pause: memory::Pause, write: &mut dyn FnMut(&Desk, (&str, Seq)) -> String) {
        let (context, driver) = (self.session.context(), &self.driver);
        if !driver.features().session_memory {
            return;
        }
        let (notes, settings) = (self.notes(), driver.settings());
        let since = notes.metadata().and_then(|metadata| metadata.last_summarized_seq);
        let from = since.unwrap_or_default();
        let since = since.map(|seq| memory::since(context, &driver.meter, seq));
        if !memory::due(self.used(), since, pause, driver, None) {
            return;
        }
        let Some((seq, messages)) = memory::covered(context) else { return };
        let old = notes.begin().expect("the notes are read");
        let text = trim::shortened(&write(self, (&old, from)), memory::limit(settings, driver.marks()));
        notes.write(&text).expect("the notes are written");
        let metadata = Metadata {
            last_summarized_id: self.session.entry(seq).map(|entry| entry.id),
            last_summarized_seq: Some(seq),
            summary_token_count: tokens::text(&text),
            messages_summarized: messages,
            ..Metadata::default()
        };
        notes.save(&metadata).expect("the notes are written");
    }
}
