//! One session: the driver of the agent over a real log, with a model that is scripted and a provider that counts exactly.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cocode::agent::prompt::SYSTEM;
use cocode::compact::candidate::{self, Made, Quotes};
use cocode::compact::restore::{self, Found, Sources};
use cocode::compact::{Driver, Settings, Step, Summarized, Surroundings, Window};
use cocode::compact::{apply, rounds, summary, trim};
use cocode::config::DEFAULTS;
use cocode::message::tokens::{self, Load};
use cocode::message::{Attachment, Block, CallId, Kind, Message, Role, ToolResult, Usage};
use cocode::protocol::Trigger;
use cocode::provider::catalog::{Catalog, Prices};
use cocode::provider::settings::WireName;
use cocode::session::Session;
use cocode::session::context::Count;
use cocode::session::entry::{Boundary, EntryKind, Seq};
use cocode::tools::Toolbox;

use crate::shapes::{Dice, Shape};
use crate::wires::{self, Structure};

/// The model whose prices count.
pub(crate) const MODEL: &str = "claude-sonnet-5";

/// Estimate of system prompt and tools.
fn overhead(window: u64) -> u64 {
    let tools = Toolbox::builtin().fitting(Some(window)).specs();
    let texts = tools.iter().map(|spec| format!("{}{}{}", spec.name, spec.description, spec.schema));
    tokens::text(SYSTEM) + texts.map(|text| tokens::text(&text)).sum::<u64>()
}

/// What the provider counts them as: denser than the estimate, as JSON is.
fn counted_overhead(window: u64) -> u64 {
    overhead(window) * 115 / 100
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

/// When old results are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Default,
    EveryTurn,
    Never,
}

impl Policy {
    pub(crate) const ALL: [Policy; 3] = [Policy::Default, Policy::EveryTurn, Policy::Never];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Policy::Default => "default",
            Policy::EveryTurn => "clear every turn",
            Policy::Never => "never clear",
        }
    }
}

/// What the scripted model makes of a request for a summary.
#[derive(Debug, Clone, Copy)]
enum Writer {
    Good,
    /// Says next to nothing.
    Bad,
    Empty,
    /// Longer than what it stands for.
    TooLong,
    /// Comes after the provider has timed out once.
    Slow,
    Failing,
}

/// What one session, or many together, came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stats {
    pub(crate) sessions: u64,
    pub(crate) micro: u64,
    /// Results that were read once more after they had been cleared.
    pub(crate) rereads: u64,
    pub(crate) full: u64,
    pub(crate) trims: u64,
    pub(crate) trimmed_sessions: u64,
    pub(crate) requests: u64,
    /// Summaries that were paid for and not used, though the writer did its part.
    pub(crate) refused: u64,
    /// Tokens that summaries stand for.
    pub(crate) summarised: u64,
    /// Tokens that left.
    pub(crate) saved: u64,
    /// Tokens whose cached prefix was lost.
    pub(crate) invalidated: u64,
    pub(crate) dollars: f64,
    /// The part of the dollars that went into filling the cache anew after results were cleared.
    pub(crate) refilled: f64,
    /// Dollars for reading what was cleared, had it stayed until the next boundary.
    pub(crate) unread: f64,
    pub(crate) violations: u64,
    pub(crate) examples: Vec<String>,
}

impl Stats {
    pub(crate) fn add(&mut self, other: &Stats) {
        self.sessions += other.sessions;
        self.micro += other.micro;
        self.rereads += other.rereads;
        self.full += other.full;
        self.trims += other.trims;
        self.trimmed_sessions += other.trimmed_sessions;
        self.requests += other.requests;
        self.refused += other.refused;
        self.summarised += other.summarised;
        self.saved += other.saved;
        self.invalidated += other.invalidated;
        self.dollars += other.dollars;
        self.refilled += other.refilled;
        self.unread += other.unread;
        self.violations += other.violations;
        self.examples.extend(other.examples.iter().take(3).cloned());
    }
}

/// What was done to the context before a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    None,
    Cleared,
    Trimmed,
    Boundary,
}

/// Tokens of a request, by what the provider's cache has of them.
#[derive(Debug, Clone, Copy, Default)]
struct Weighed {
    same: u64,
    fresh: u64,
    /// The part of `fresh` that the last request held, too.
    again: u64,
    /// What the cache held behind that, and nobody asks for any more.
    lost: u64,
}

struct Sim<'a> {
    session: Session,
    driver: Driver,
    policy: Policy,
    prices: Prices,
    /// What the user and the tools do: the same under every policy.
    dice: Dice<'a>,
    /// What comes of compaction: summaries, and results that are read once more.
    aside: Dice<'a>,
    writer: Writer,
    structure: Structure,
    stats: Stats,
    label: String,
    /// What the last request held, message by message, for the provider's cache.
    cached: Vec<(Seq, Load)>,
    /// Tokens that were cleared since the last boundary.
    absent: u64,
    requests: u64,
    last_tier: Option<u64>,
    /// The window that the session began with: it decides about tools and skills.
    began: u64,
    /// Calls of the last reply.
    awaited: Vec<CallId>,
    /// What the user said last.
    asked: String,
    /// Model calls that a slow writer has let time out.
    slow: u64,
}

fn is_cleared(result: &ToolResult) -> bool {
    result.text().starts_with("[Old tool result content cleared]")
}

fn clearable(tool: &str) -> bool {
    matches!(tool, "Read" | "Bash")
}

fn settings(policy: Policy) -> (Settings, cocode::compact::Features) {
    let defaults: toml::Table = DEFAULTS.parse().expect("the defaults are TOML");
    let part = |name: &str| defaults[name].clone();
    let mut settings: Settings = part("compact").try_into().expect("the shipped settings");
    let mut features: cocode::compact::Features = part("features").try_into().expect("the shipped features");
    match policy {
        Policy::Default => {}
        Policy::EveryTurn => {
            settings.micro.trigger = cocode::compact::MicroTrigger::Always;
            (settings.micro.min_saving, settings.micro.target, settings.micro.weigh_cost) = (1, 0, false);
        }
        Policy::Never => features.micro_compact = false,
    }
    (settings, features)
}

/// Plays one session and removes its log.
pub(crate) fn play(
    home: &Path,
    corpus: &str,
    seed: u64,
    number: u64,
    window: u64,
    turns: u64,
    policy: Policy,
) -> Stats {
    let shape = Shape::nth(number / 5);
    let writers =
        [Writer::Good, Writer::Bad, Writer::Good, Writer::Empty, Writer::TooLong, Writer::Slow, Writer::Failing];
    let (settings, features) = settings(policy);
    let limits = Window { tokens: Some(window), max_output: 32_000 };
    let mut driver = Driver::new(settings, features, limits);
    driver.meter.set_overhead(Load { text: overhead(window), images: 0 });
    let cap = 12_500.min(driver.marks().available / 8);
    let shared = cap < 12_500;
    let mut sim = Sim {
        session: Session::create(home, Path::new("/code"), "lab", SystemTime::now),
        driver,
        policy,
        prices: Catalog::builtin().get(WireName::Anthropic, MODEL).prices.expect("the model has prices"),
        dice: Dice { rng: fastrand::Rng::with_seed(seed), corpus, cap, shared },
        aside: Dice { rng: fastrand::Rng::with_seed(!seed), corpus, cap, shared },
        structure: Structure::default(),
        writer: writers[(number / 25) as usize % writers.len()],
        stats: Stats { sessions: 1, ..Stats::default() },
        label: format!("session {number}, window {window}, {shape:?}, {}", policy.name()),
        cached: Vec::new(),
        absent: 0,
        requests: 0,
        last_tier: None,
        began: window,
        awaited: Vec::new(),
        asked: String::new(),
        slow: 0,
    };
    sim.run(shape, window, turns);
    let folder = sim.session.store().dir().to_owned();
    let stats = sim.stats.clone();
    drop(sim);
    let _ = std::fs::remove_dir_all(folder);
    stats
}

impl Sim<'_> {
    fn run(&mut self, shape: Shape, window: u64, turns: u64) {
        for message in opening(window) {
            self.append(Message::clone(&message));
        }
        let mut talking = true;
        for turn in 0..turns {
            if talking {
                let prompt = self.dice.prompt(shape, window);
                self.append(prompt);
            }
            // Late in some sessions a smaller model takes over.
            if turn == turns * 3 / 4 && self.dice.one_in(5) && window > 32_000 {
                let max_output = self.driver.window().max_output;
                self.driver.set_window(Window { tokens: Some(window / 4), max_output });
            }
            if self.dice.one_in(60) {
                self.go_back();
            }
            self.reread(shape, turn);
            let sent = self.request(turn);
            let ends = if matches!(shape, Shape::Talk) { self.dice.one_in(2) } else { self.dice.one_in(6) };
            let reply = if ends {
                talking = true;
                self.dice.answer(shape)
            } else {
                talking = false;
                let (reply, results) = self.dice.round(shape, self.session.next_call());
                self.answer(reply, sent);
                self.append(results);
                continue;
            };
            self.answer(reply, sent);
        }
        self.stats.trimmed_sessions += u64::from(self.stats.trims > 0);
    }

    /// Every other turn the model needs one of the newest results again; one that was cleared is read once more.
    fn reread(&mut self, shape: Shape, turn: u64) {
        let (needed, back) = (self.aside.one_in(2), self.aside.rng.usize(0..12));
        let newest = self.session.context().shown().rev();
        let gone = || newest.flat_map(|shown| shown.message.results()).nth(back).is_some_and(is_cleared);
        if needed && gone() {
            let sent = self.request(turn);
            let (reply, results) = self.aside.again(shape, self.session.next_call());
            self.answer(reply, sent);
            self.append(results);
            self.stats.rereads += 1;
        }
    }

    fn append(&mut self, message: Message) {
        match message.kind {
            Kind::Prompt => (self.asked, self.awaited) = (message.text(), Vec::new()),
            Kind::Reply => self.awaited = message.calls().map(|call| call.id.clone()).collect(),
            _ => {}
        }
        let message = Arc::new(message);
        self.session.append(EntryKind::Message { message }).expect("the log is written");
    }

    fn answer(&mut self, reply: Message, (before, input): (Count, u64)) {
        let output = Sim::true_of(self.session.next_seq(), tokens::load(&reply));
        let usage = Usage { input, output, ..Usage::default() };
        self.stats.dollars += usage.output as f64 * self.prices.output / 1e6;
        self.append(Message { usage: Some(usage), ..reply });
        self.driver.answered(before, &usage);
        self.requests += 1;
        self.stats.requests += 1;
    }

    /// Now and then the user takes a compaction back, or goes back to an earlier message.
    fn go_back(&mut self) {
        if self.dice.one_in(2) {
            let Some(seq) = self.session.last_boundary() else { return };
            let undone = EntryKind::BoundaryUndone { seq };
            let preview = self.session.preview(&undone).expect("the log is read");
            if self.driver.used(&preview) < self.driver.marks().blocking {
                self.session.append(undone).expect("the log is written");
                self.driver.undone();
                self.absent = 0;
            }
            return;
        }
        let prompts = self.session.context().shown().filter(|shown| shown.message.kind == Kind::Prompt && !shown.lead);
        let prompts: Vec<Seq> = prompts.map(|shown| shown.seq).collect();
        let Some(to) = prompts.iter().rev().nth(2).copied() else { return };
        self.session.append(EntryKind::Rewind { to }).expect("the log is written");
        self.absent = 0;
        self.append(Message::prompt("Once more, but differently."));
    }

    /// Prepares a request as the agent does, and sends it: its count, and what the provider counts it as.
    fn request(&mut self, turn: u64) -> (Count, u64) {
        self.driver.prepare();
        let mut cut = Cut::None;
        for step in 0.. {
            if step > 4 {
                self.violation("the driver does not come to an end");
                break;
            }
            let store = self.session.store();
            let around = Surroundings { store, clearable: &clearable, prices: Some(self.prices) };
            let before = self.driver.used(self.session.context());
            match self.driver.step(self.session.context(), around) {
                Step::Send => break,
                Step::Clear(plan) => {
                    let cleared = apply::clear(&mut self.session, &plan).expect("the log is written");
                    self.append(Message::attachment(Attachment::Cleared, "Older tool results were cleared."));
                    self.stats.micro += 1;
                    self.stats.saved += cleared.tokens;
                    self.absent += cleared.tokens;
                    cut = Cut::Cleared;
                }
                Step::Summarize => {
                    let gap = self.driver.settings().guards.tier_gap;
                    if self.last_tier.is_some_and(|last| self.requests - last < gap) {
                        self.violation("two automatic compactions within the guard");
                    }
                    self.last_tier = Some(self.requests);
                    let what = self.summarize(before);
                    if what == Summarized::Committed {
                        cut = Cut::Boundary;
                    }
                    self.driver.summarized(what);
                }
                Step::Trim { target } => {
                    let opening = opening(self.began);
                    let context = self.session.context();
                    let terms = self.driver.terms(self.session.store(), &clearable);
                    let plan = trim::plan(context, terms, &opening, target);
                    if !plan.is_empty() {
                        apply::trim(&mut self.session, &plan, before).expect("the log is written");
                        self.stats.trims += 1;
                        self.stats.saved += before.saturating_sub(plan.after);
                        self.driver.ran();
                        cut = if plan.drop.is_some() { Cut::Boundary } else { Cut::Trimmed };
                    }
                }
                Step::Refuse { .. } => self.violation("refused although compaction is on"),
            }
        }
        self.check(turn, cut)
    }

    /// The full tier with a scripted answer.
    fn summarize(&mut self, before: u64) -> Summarized {
        let written = match self.writer {
            Writer::Good => self.aside.text(1_500.min(self.driver.limits().summary / 2)),
            Writer::Bad => "Things were done.".into(),
            Writer::Empty => String::new(),
            Writer::TooLong => self.aside.text(before * 2),
            Writer::Slow => {
                self.slow += 1;
                if self.slow % 2 == 1 {
                    return Summarized::Failed;
                }
                self.aside.text(800.min(self.driver.limits().summary / 2))
            }
            Writer::Failing => return Summarized::Failed,
        };
        // The summary is asked for behind the very prefix that the last request had.
        let Weighed { same, fresh, .. } = self.weighed();
        let output = tokens::text(&written);
        self.stats.dollars += self.price(same, fresh) + output as f64 * self.prices.output / 1e6;
        let reply = Message::reply(vec![Block::text(format!("<summary>{written}</summary>"))]);
        let Ok(text) = summary::read(&reply) else { return Summarized::Failed };
        let (context, driver) = (self.session.context(), &self.driver);
        let opening = opening(self.began);
        let message = Arc::new(summary::message(&text, Trigger::Auto));
        let most = driver.limits().restored;
        let candidate = candidate::fit(context, driver, |ration| {
            let summary = ration.summary(&message, driver.limits());
            let brought = candidate::weight(&opening, &summary) + most;
            let keep_from = candidate::cut(context, driver, brought, ration);
            let (tier, trigger, opening, quotes) = ("full", Trigger::Auto, opening.clone(), Quotes::Opening);
            let made = Made { tier, trigger, keep_from, opening, summary, quotes };
            made.candidate(context, driver, ration, |archived| {
                let budget = restore::budget(context, driver, ration.restored);
                let files = restore::reads(context, keep_from, archived).into_iter().map(|path| self.found(path));
                let sources = Sources { files: files.collect(), ..Sources::default() };
                restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
            })
        });
        match self.driver.judge(context, candidate) {
            Ok(candidate) => {
                let Boundary { pre_tokens, post_tokens, .. } = candidate.boundary;
                self.session.append(EntryKind::CompactBoundary(candidate.boundary)).expect("the log is written");
                self.stats.full += 1;
                self.stats.summarised += pre_tokens.saturating_sub(post_tokens);
                self.stats.saved += pre_tokens.saturating_sub(post_tokens);
                self.driver.ran();
                Summarized::Committed
            }
            Err(_) => {
                self.stats.refused += 1;
                Summarized::Rejected
            }
        }
    }

    fn window(&self) -> u64 {
        self.driver.window().tokens.unwrap_or_default()
    }

    /// A file on disk: as long as its name says.
    fn found(&self, path: PathBuf) -> Found {
        let hash = path.to_string_lossy().bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let tokens = 100 + (hash % 60).pow(2);
        Found { text: self.aside.corpus.get(..tokens as usize * 4).map(str::to_owned), path }
    }

    /// What the provider counts: each message up to a quarter more or less than its estimate.
    fn true_of(seq: Seq, load: Load) -> u64 {
        let factor = 75 + seq.wrapping_mul(2_654_435_761) % 51;
        load.total() * factor / 100
    }

    fn price(&self, read: u64, written: u64) -> f64 {
        (read as f64 * self.prices.cache_read + written as f64 * self.prices.cache_write) / 1e6
    }

    /// The next request as the provider counts it.
    fn weighed(&self) -> Weighed {
        let mut weighed = Weighed { same: counted_overhead(self.began), ..Weighed::default() };
        let mut cached = self.cached.iter();
        let newest = self.cached.last().map(|(seq, _)| *seq);
        for shown in self.session.context().shown() {
            let now = (shown.seq, shown.load);
            let tokens = Sim::true_of(now.0, now.1);
            if weighed.fresh == 0 && cached.as_slice().first() == Some(&now) {
                cached.next();
                weighed.same += tokens;
            } else {
                weighed.fresh += tokens;
                weighed.again += if Some(now.0) <= newest { tokens } else { 0 };
            }
        }
        weighed.lost = cached.map(|(seq, load)| Sim::true_of(*seq, *load)).sum();
        weighed
    }

    /// Checks and prices what is sent.
    fn check(&mut self, turn: u64, cut: Cut) -> (Count, u64) {
        let weighed = self.weighed();
        let context = self.session.context();
        let (count, messages) = (context.count(), context.messages());
        let window = self.window();
        let tokens = weighed.same + weighed.fresh;
        let mut faults = Vec::new();
        let output = self.driver.room_for_output(context, Load::default()).min(self.driver.window().max_output);
        if tokens + output > window {
            faults.push(format!("{tokens} tokens and {output} of answer in a window of {window}"));
        }
        faults.extend(self.lacks(&messages));
        faults.extend(self.structure.check(&messages).err());
        // The other policies are there for their price: the same driver, the same projections.
        if self.policy == Policy::Default && (cut == Cut::Boundary || turn.is_multiple_of(100)) {
            faults.extend(wires::encoded(&messages).err());
        }
        faults.iter().for_each(|fault| self.violation(fault));
        let prices = self.prices;
        self.stats.invalidated += weighed.lost;
        self.stats.dollars += self.price(weighed.same, weighed.fresh);
        match cut {
            Cut::Boundary => self.absent = 0,
            Cut::Cleared => {
                self.stats.refilled += weighed.again as f64 * (prices.cache_write - prices.cache_read) / 1e6;
            }
            Cut::None | Cut::Trimmed => {}
        }
        self.stats.unread += self.absent as f64 * prices.cache_read / 1e6;
        self.cached.clear();
        self.cached.extend(self.session.context().shown().map(|shown| (shown.seq, shown.load)));
        (count, tokens)
    }

    /// What the model works on has to be in front of it: the results of its last calls, and what it was asked.
    fn lacks(&self, messages: &[Arc<Message>]) -> Option<String> {
        let unread = messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
        let held = messages[unread..].iter().flat_map(|message| message.results());
        let held: Vec<&ToolResult> = held.collect();
        let lacks = |id: &CallId| !held.iter().any(|result| result.id == *id && !is_cleared(result));
        if let Some(id) = self.awaited.iter().find(|id| lacks(id)) {
            return Some(format!("the result of {id} is missing"));
        }
        let asked = rounds::asked(self.session.context()).into_iter().next_back();
        let asked = asked.and_then(|at| self.session.context().shown_from(at).next());
        let start: String = self.asked.chars().take(40).collect();
        let whole = |text: &str| text.starts_with(&start) || text.contains("bytes left out; the full text is in");
        match asked {
            Some(shown) if whole(&shown.message.text()) => None,
            Some(_) => Some("the prompt is another one".into()),
            None => Some("the prompt is missing".into()),
        }
    }

    fn violation(&mut self, what: &str) {
        self.stats.violations += 1;
        if self.stats.examples.len() < 3 {
            self.stats.examples.push(format!("{}, request {}: {what}", self.label, self.requests));
        }
    }
}
