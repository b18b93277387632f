//! One session: the driver of the agent over a real log, with a model that is scripted and a provider that counts exactly.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use cocode::compact::{Candidate, Driver, Settings, Step, Summarized, Surroundings, Window};
use cocode::compact::{apply, candidate, summary, trim};
use cocode::config::DEFAULTS;
use cocode::message::tokens::{self, Load};
use cocode::message::{Kind, Message, Usage};
use cocode::protocol::Trigger;
use cocode::provider::catalog::Prices;
use cocode::session::Session;
use cocode::session::context::Count;
use cocode::session::entry::{Boundary, EntryKind, Seq};

use crate::shapes::{Dice, Shape};
use crate::wires;

/// Dollars for a million tokens: what a middle-sized model costs.
const PRICES: Prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };

/// Estimate of system prompt and tools.
fn overhead(window: u64) -> u64 {
    (window / 8).min(8_000)
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
    /// Tokens that summaries stand for.
    pub(crate) summarised: u64,
    /// Tokens that left.
    pub(crate) saved: u64,
    /// Tokens whose cached prefix was lost.
    pub(crate) invalidated: u64,
    pub(crate) dollars: f64,
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
        self.summarised += other.summarised;
        self.saved += other.saved;
        self.invalidated += other.invalidated;
        self.dollars += other.dollars;
        self.violations += other.violations;
        self.examples.extend(other.examples.iter().take(3).cloned());
    }
}

struct Sim<'a> {
    session: Session,
    driver: Driver,
    dice: Dice<'a>,
    writer: Writer,
    stats: Stats,
    label: String,
    /// What the last request held, message by message, for the provider's cache.
    cached: Vec<(Seq, Load)>,
    requests: u64,
    last_tier: Option<u64>,
    /// Model calls that a slow writer has let time out.
    slow: u64,
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
    let mut sim = Sim {
        session: Session::create(home, Path::new("/code"), "lab", SystemTime::now),
        driver,
        dice: Dice { rng: fastrand::Rng::with_seed(seed), corpus, cap },
        writer: writers[(number / 25) as usize % writers.len()],
        stats: Stats { sessions: 1, ..Stats::default() },
        label: format!("session {number}, window {window}, {shape:?}, {}", policy.name()),
        cached: Vec::new(),
        requests: 0,
        last_tier: None,
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
        self.append(Message::reminder("# Environment\nA project in /code."));
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
                let usage = self.usage(sent, &reply);
                self.answer(reply, usage);
                self.append(results);
                continue;
            };
            let usage = self.usage(sent, &reply);
            self.answer(reply, usage);
        }
        self.stats.trimmed_sessions += u64::from(self.stats.trims > 0);
    }

    /// Every other turn the model needs one of the newest results again; one that was cleared is read once more.
    fn reread(&mut self, shape: Shape, turn: u64) {
        if self.dice.one_in(2) {
            return;
        }
        let back = self.dice.rng.usize(0..12);
        let cleared: Vec<bool> = self.session.context().results().map(|held| held.replaced).collect();
        if cleared.iter().rev().nth(back).is_some_and(|cleared| *cleared) {
            let sent = self.request(turn);
            let (reply, results) = self.dice.round(shape, self.session.next_call());
            let usage = self.usage(sent, &reply);
            self.answer(reply, usage);
            self.append(results);
            self.stats.rereads += 1;
        }
    }

    fn append(&mut self, message: Message) {
        let message = Arc::new(message);
        self.session.append(EntryKind::Message { message }).expect("the log is written");
    }

    fn answer(&mut self, reply: Message, (before, usage): (Count, Usage)) {
        self.append(Message { usage: Some(usage), ..reply });
        self.driver.answered(before, &usage);
        self.requests += 1;
    }

    fn usage(&self, (before, input): (Count, u64), reply: &Message) -> (Count, Usage) {
        let output = cocode::message::tokens::message(reply);
        (before, Usage { input, output, ..Usage::default() })
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
            }
            return;
        }
        let prompts = self.session.context().shown().filter(|shown| shown.message.kind == Kind::Prompt && !shown.lead);
        let prompts: Vec<Seq> = prompts.map(|shown| shown.seq).collect();
        let Some(to) = prompts.iter().rev().nth(2).copied() else { return };
        self.session.append(EntryKind::Rewind { to }).expect("the log is written");
        self.append(Message::prompt("Once more, but differently."));
    }

    /// Prepares a request as the agent does, and sends it: its count, and what the provider counts it as.
    fn request(&mut self, turn: u64) -> (Count, u64) {
        self.driver.prepare();
        let mut cut = false;
        for step in 0.. {
            if step > 4 {
                self.violation("the driver does not come to an end");
                break;
            }
            let around = Surroundings { clearable: &clearable, prices: Some(PRICES) };
            let before = self.driver.used(self.session.context());
            match self.driver.step(self.session.context(), around) {
                Step::Send => break,
                Step::Clear(plan) => {
                    let cleared = apply::clear(&mut self.session, &plan).expect("the log is written");
                    self.append(Message::reminder("Older tool results were cleared."));
                    self.stats.micro += 1;
                    self.stats.saved += cleared.tokens;
                    cut = true;
                }
                Step::Summarize => {
                    let gap = self.driver.settings().guards.tier_gap;
                    if self.last_tier.is_some_and(|last| self.requests - last < gap) {
                        self.violation("two automatic compactions within the guard");
                    }
                    self.last_tier = Some(self.requests);
                    let what = self.summarize(before);
                    cut = true;
                    self.driver.summarized(what);
                }
                Step::Trim { target } => {
                    let opening = [Arc::new(Message::reminder("# Environment\nA project in /code."))];
                    let context = self.session.context();
                    let plan = trim::plan(context, self.driver.terms(&clearable), &opening, target);
                    if !plan.is_empty() {
                        apply::trim(&mut self.session, &plan, before).expect("the log is written");
                        self.stats.trims += 1;
                        self.stats.saved += before.saturating_sub(plan.after);
                        self.driver.ran();
                        cut = true;
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
            Writer::Good => self.dice.text(1_500.min(self.driver.limits().summary / 2)),
            Writer::Bad => "Things were done.".into(),
            Writer::Empty => String::new(),
            Writer::TooLong => self.dice.text(before * 2),
            Writer::Slow => {
                self.slow += 1;
                if self.slow % 2 == 1 {
                    return Summarized::Failed;
                }
                self.dice.text(800.min(self.driver.limits().summary / 2))
            }
            Writer::Failing => return Summarized::Failed,
        };
        let sent = self.true_tokens();
        let output = cocode::message::tokens::text(&written);
        self.stats.dollars += (sent as f64 * PRICES.cache_read + output as f64 * PRICES.output) / 1e6;
        let reply = Message::reply(vec![cocode::message::Block::text(format!("<summary>{written}</summary>"))]);
        let Ok(text) = summary::read(&reply) else { return Summarized::Failed };
        let context = self.session.context();
        let mut opening = vec![Arc::new(Message::reminder("# Environment\nA project in /code."))];
        let message = Arc::new(summary::message(&text, Trigger::Auto));
        let brought = opening.iter().chain([&message]).map(|message| tokens::message(message)).sum();
        let (keep_from, words) = candidate::cut(context, &self.driver, brought);
        opening.extend(summary::history(context, keep_from, words));
        let boundary =
            Boundary { tier: "full".into(), keep_from, opening, summary: Some(message), ..Boundary::default() };
        let candidate = Candidate { boundary, spent: Usage::default(), restored: Default::default() };
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
            Err(_) => Summarized::Failed,
        }
    }

    /// What the provider counts: each message up to a quarter more or less than its estimate.
    fn true_of(seq: Seq, load: Load) -> u64 {
        let factor = 75 + seq.wrapping_mul(2_654_435_761) % 51;
        load.total() * factor / 100
    }

    fn true_tokens(&self) -> u64 {
        let window = self.driver.window().tokens.unwrap_or_default();
        let messages = self.session.context().shown().map(|shown| Sim::true_of(shown.seq, shown.load));
        overhead(window) + messages.sum::<u64>()
    }

    /// Checks and prices what is sent.
    fn check(&mut self, turn: u64, cut: bool) -> (Count, u64) {
        let context = self.session.context();
        let (count, messages) = (context.count(), context.messages());
        let held: Vec<(Seq, Load)> = context.shown().map(|shown| (shown.seq, shown.load)).collect();
        let window = self.driver.window().tokens.unwrap_or_default();
        let tokens = self.true_tokens();
        let mut faults = Vec::new();
        if tokens > window {
            faults.push(format!("{tokens} tokens in a window of {window}"));
        }
        faults.extend(wires::structure(&messages).err());
        if cut || turn.is_multiple_of(100) {
            faults.extend(wires::encoded(&messages).err());
        }
        faults.iter().for_each(|fault| self.violation(fault));
        let same = held.iter().zip(&self.cached).take_while(|(now, then)| now == then).count();
        let sum = |part: &[(Seq, Load)]| part.iter().map(|(seq, load)| Sim::true_of(*seq, *load)).sum::<u64>();
        let (read, fresh) = (overhead(window) + sum(&held[..same]), sum(&held[same..]));
        self.stats.invalidated += sum(&self.cached[same..]);
        self.stats.dollars += (read as f64 * PRICES.cache_read + fresh as f64 * PRICES.cache_write) / 1e6;
        self.cached = held;
        (count, tokens)
    }

    fn violation(&mut self, what: &str) {
        self.stats.violations += 1;
        if self.stats.examples.len() < 3 {
            self.stats.examples.push(format!("{}, request {}: {what}", self.label, self.requests));
        }
    }
}
