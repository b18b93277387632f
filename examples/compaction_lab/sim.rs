//! One session: the driver of the agent over a real log, with a model that is scripted and a provider that counts exactly.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode::compact::restore::Found;
use cocode::compact::{Features, MicroTrigger, Settings, Window, rounds};
use cocode::message::tokens::{self, Load};
use cocode::message::{CallId, Kind, Message, Role, ToolResult, Usage};
use cocode::session::context::Count;
use cocode::session::entry::{EntryKind, Seq};

use crate::cache::{Cache, Density, List, Weighed};
use crate::desk::{self, Around, Desk, Did};
use crate::shapes::{Dice, Shape};
use crate::wires::{self, Structure};

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
    /// The part of the dollars that went into filling the cache again after results were cleared.
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

/// What the scripted model makes of requests for a summary.
struct Scripted {
    writer: Writer,
    /// Model calls that a slow writer has let time out.
    slow: u64,
}

struct Sim<'a> {
    desk: Desk,
    policy: Policy,
    cache: Cache,
    /// What the user and the tools do: the same under every policy.
    dice: Dice<'a>,
    /// What comes of compaction: summaries, and results that are read once more.
    aside: Dice<'a>,
    scripted: Scripted,
    structure: Structure,
    stats: Stats,
    label: String,
    /// Tokens that were cleared since the last boundary.
    absent: u64,
    requests: u64,
    last_tier: Option<u64>,
    /// Calls of the last reply.
    awaited: Vec<CallId>,
    /// What the user said last.
    asked: String,
}

fn is_cleared(result: &ToolResult) -> bool {
    result.text().starts_with("[Old tool result content cleared]")
}

fn settings(policy: Policy) -> (Settings, Features) {
    let (mut settings, mut features) = desk::shipped();
    match policy {
        Policy::Default => {}
        Policy::EveryTurn => {
            settings.micro.trigger = MicroTrigger::Always;
            (settings.micro.min_saving, settings.micro.target, settings.micro.weigh_cost) = (1, 0, false);
        }
        Policy::Never => features.micro_compact = false,
    }
    (settings, features)
}

/// What is played.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) window: u64,
    pub(crate) turns: u64,
    pub(crate) policy: Policy,
    pub(crate) list: &'a List,
    /// The user goes away for longer than the cache lives, now and then.
    pub(crate) pauses: bool,
}

/// Plays one session and removes its log.
pub(crate) fn play(home: &Path, corpus: &str, case: Case<'_>) -> Stats {
    let Case { seed, number, window, turns, policy, list, pauses } = case;
    let shape = Shape::nth(number / 5);
    let writers =
        [Writer::Good, Writer::Bad, Writer::Good, Writer::Empty, Writer::TooLong, Writer::Slow, Writer::Failing];
    let desk = Desk::new(home, window, settings(policy));
    let cap = 12_500.min(desk.driver.marks().available / 8);
    let shared = cap < 12_500;
    let mut sim = Sim {
        desk,
        policy,
        cache: Cache::new(list, Density::Uneven),
        dice: Dice { rng: fastrand::Rng::with_seed(seed), corpus, cap, shared },
        aside: Dice { rng: fastrand::Rng::with_seed(!seed), corpus, cap, shared },
        structure: Structure::default(),
        scripted: Scripted { writer: writers[(number / 25) as usize % writers.len()], slow: 0 },
        stats: Stats { sessions: 1, ..Stats::default() },
        label: format!("session {number}, window {window}, {shape:?}, {}", policy.name()),
        absent: 0,
        requests: 0,
        last_tier: None,
        awaited: Vec::new(),
        asked: String::new(),
    };
    sim.run(shape, window, (turns, pauses));
    sim.desk.leave();
    sim.stats
}

impl Scripted {
    fn write(&mut self, dice: &mut Dice<'_>, desk: &Desk, before: u64) -> Option<String> {
        let most = desk.driver.limits().summary / 2;
        let written = match self.writer {
            Writer::Good => dice.text(1_500.min(most)),
            Writer::Bad => "Things were done.".into(),
            Writer::Empty => String::new(),
            Writer::TooLong => dice.text(before * 2),
            Writer::Slow => {
                self.slow += 1;
                if self.slow % 2 == 1 {
                    return None;
                }
                dice.text(800.min(most))
            }
            Writer::Failing => return None,
        };
        Some(format!("<summary>{written}</summary>"))
    }
}

impl Sim<'_> {
    fn run(&mut self, shape: Shape, window: u64, (turns, pauses): (u64, bool)) {
        let mut talking = true;
        for turn in 0..turns {
            if talking {
                if pauses && self.dice.one_in(3) {
                    self.cache.pass(1_800);
                }
                let prompt = self.dice.prompt(shape, window);
                self.append(prompt);
            }
            // Late in some sessions a smaller model takes over.
            if turn == turns * 3 / 4 && self.dice.one_in(5) && window > 32_000 {
                let max_output = self.desk.driver.window().max_output;
                self.desk.driver.set_window(Window { tokens: Some(window / 4), max_output });
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
                let (reply, results) = self.dice.round(shape, self.desk.session.next_call());
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
        let newest = self.desk.session.context().shown().rev();
        let gone = || newest.flat_map(|shown| shown.message.results()).nth(back).is_some_and(is_cleared);
        if needed && gone() {
            let sent = self.request(turn);
            let (reply, results) = self.aside.again(shape, self.desk.session.next_call());
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
        self.desk.append(message);
    }

    fn answer(&mut self, reply: Message, (before, input): (Count, u64)) {
        let output = self.cache.density.count(self.desk.session.next_seq(), tokens::load(&reply));
        let usage = Usage { input, output, ..Usage::default() };
        self.stats.dollars += self.cache.output(output);
        self.append(Message { usage: Some(usage), ..reply });
        self.desk.driver.answered(before, &usage);
        self.requests += 1;
        self.stats.requests += 1;
    }

    /// Now and then the user takes a compaction back, or goes back to an earlier message.
    fn go_back(&mut self) {
        if self.dice.one_in(2) {
            let Some(seq) = self.desk.session.last_boundary() else { return };
            let undone = EntryKind::BoundaryUndone { seq };
            let preview = self.desk.session.preview(&undone).expect("the log is read");
            if self.desk.driver.used(&preview) < self.desk.driver.marks().blocking {
                self.desk.session.append(undone).expect("the log is written");
                self.desk.driver.undone();
                self.absent = 0;
            }
            return;
        }
        let prompts =
            self.desk.session.context().shown().filter(|shown| shown.message.kind == Kind::Prompt && !shown.lead);
        let prompts: Vec<Seq> = prompts.map(|shown| shown.seq).collect();
        let Some(to) = prompts.iter().rev().nth(2).copied() else { return };
        self.desk.session.append(EntryKind::Rewind { to }).expect("the log is written");
        self.absent = 0;
        self.append(Message::prompt("Once more, but differently."));
    }

    /// Prepares a request as the agent does, and sends it: its count, and what the provider counts it as.
    fn request(&mut self, turn: u64) -> (Count, u64) {
        let Sim { desk, cache, aside, scripted, stats, .. } = &mut *self;
        let corpus = aside.corpus;
        let found = |path: PathBuf| found(corpus, path);
        let mut write = |desk: &Desk, before: u64| {
            let written = scripted.write(aside, desk, before)?;
            // The summary is asked for behind the very prefix that the last request had.
            let Weighed { same, fresh, .. } = cache.weighed(desk);
            stats.dollars += cache.price(same, fresh) + cache.output(tokens::text(&written));
            Some(written)
        };
        let (prices, cold) = (cache.prices, cache.is_cold());
        let done = desk.prepare(&mut Around { prices, cold, found: &found, write: &mut write });
        let mut cut = Cut::None;
        for did in done {
            cut = self.note(did).unwrap_or(cut);
        }
        self.check(turn, cut)
    }

    /// Counts what was done before a request.
    fn note(&mut self, did: Did) -> Option<Cut> {
        if matches!(did, Did::Summarized { .. } | Did::Failed | Did::Rejected) {
            let gap = self.desk.driver.settings().guards.tier_gap;
            if self.last_tier.is_some_and(|last| self.requests - last < gap) {
                self.violation("two automatic compactions within the guard");
            }
            self.last_tier = Some(self.requests);
        }
        match did {
            Did::Cleared { tokens } => {
                self.stats.micro += 1;
                self.stats.saved += tokens;
                self.absent += tokens;
                return Some(Cut::Cleared);
            }
            Did::Summarized { before, after, .. } => {
                self.stats.full += 1;
                self.stats.summarised += before.saturating_sub(after);
                self.stats.saved += before.saturating_sub(after);
                return Some(Cut::Boundary);
            }
            Did::Trimmed { saved, dropped } => {
                self.stats.trims += 1;
                self.stats.saved += saved;
                return Some(if dropped { Cut::Boundary } else { Cut::Trimmed });
            }
            Did::Failed => {}
            Did::Rejected => self.stats.refused += 1,
            Did::Refused => self.violation("refused although compaction is on"),
            Did::Endless => self.violation("the driver does not come to an end"),
        }
        None
    }

    /// Checks and prices what is sent.
    fn check(&mut self, turn: u64, cut: Cut) -> (Count, u64) {
        let weighed = self.cache.weighed(&self.desk);
        let context = self.desk.session.context();
        let (count, messages) = (context.count(), context.messages());
        let window = self.desk.window();
        let tokens = weighed.same + weighed.fresh;
        let mut faults = Vec::new();
        let output =
            self.desk.driver.room_for_output(context, Load::default()).min(self.desk.driver.window().max_output);
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
        let prices = self.cache.prices;
        self.stats.invalidated += weighed.lost;
        self.stats.dollars += self.cache.price(weighed.same, weighed.fresh);
        match cut {
            Cut::Boundary => self.absent = 0,
            Cut::Cleared => {
                self.stats.refilled += weighed.again as f64 * (prices.uncached() - prices.cache_read) / 1e6;
            }
            Cut::None | Cut::Trimmed => {}
        }
        self.stats.unread += self.absent as f64 * prices.cache_read / 1e6;
        self.cache.sent(&self.desk);
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
        let asked = rounds::asked(self.desk.session.context()).into_iter().next_back();
        let asked = asked.and_then(|at| self.desk.session.context().shown_from(at).next());
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

/// A file on disk: as long as its name says.
fn found(corpus: &str, path: PathBuf) -> Found {
    let hash = path.to_string_lossy().bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let tokens = 100 + (hash % 60).pow(2);
    Found { text: corpus.get(..tokens as usize * 4).map(str::to_owned), path }
}
