//! Decides what happens before a request, one step at a time. The caller performs each step and asks again.

use std::sync::Arc;

use super::ledger::Fold;
use super::rounds;
use super::{Candidate, Features, Limits, Meter, Rejected, Search, Settings, Thresholds, Window, candidate, micro};
use crate::message::Usage;
use crate::message::tokens::Load;
use crate::provider::catalog::Prices;
use crate::session::Context;
use crate::session::entry::Ledger;
use crate::session::store::Store;

/// What plans depend on besides the context.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub settings: &'a Settings,
    pub limits: &'a Limits,
    pub meter: &'a Meter,
    /// What must not be forgotten, as far as it was read.
    pub ledger: &'a Arc<Ledger>,
    /// Where what leaves the context is saved: markers name the file.
    pub store: &'a Store,
    /// Tools whose results may be cleared.
    pub clearable: &'a dyn Fn(&str) -> bool,
    pub search: Search,
}

/// What the driver is told for a decision.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub store: &'a Store,
    /// Tools whose results may be cleared.
    pub clearable: &'a dyn Fn(&str) -> bool,
    /// None: unknown.
    pub prices: Option<Prices>,
    /// So much time has passed that the provider's cache has nothing of the conversation any more.
    pub cold: bool,
}

/// What has to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The request fits: send it.
    Send,
    /// Clear these results.
    Clear(micro::Plan),
    /// Run the model tiers, then call `summarized`.
    Summarize,
    /// Carry `trim::plan` out for this target; no model is asked.
    Trim { target: u64 },
    /// Compaction is switched off, and the request does not fit.
    Refuse { used: u64, blocking: u64 },
}

/// How the model tiers ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Summarized {
    /// A boundary is in the log.
    Committed,
    /// Every tier failed.
    Failed,
    /// There is a summary, and it makes too little progress: no failure of the model.
    Rejected,
    /// A hook forbade it: no failure, and no reason to trim before the blocking mark.
    Blocked,
    /// The user stopped it.
    Interrupted,
}

/// Automatic compaction of one session.
#[derive(Debug, Clone)]
pub struct Driver {
    settings: Settings,
    features: Features,
    window: Window,
    pub meter: Meter,
    marks: Thresholds,
    limits: Limits,
    /// Requests of the conversation that were sent.
    requests: u64,
    /// Count of requests when an automatic model tier ran last.
    last_tier: Option<u64>,
    /// The same for any run that changed the context by more than clearing.
    last_run: Option<u64>,
    failures: u32,
    /// Summaries in a row that were paid for and could not be used: each doubles the distance to the next.
    rejections: u32,
    /// The user took a compaction back: until the blocking mark there is no other by itself.
    undone: bool,
    /// Recoveries since a request was last answered.
    recoveries: u32,
    /// The provider found the request too long: the next one has to come under so many tokens.
    forced: Option<u64>,
    /// What must not be forgotten of the conversation.
    ledger: Fold,
    search: Search,
    stage: Stage,
}

/// What was tried for the request at hand.
#[derive(Debug, Clone, Default)]
struct Stage {
    micro: bool,
    tiers: bool,
    trim: bool,
    /// A tier was due and failed.
    failed: bool,
}

impl Driver {
    pub fn new(settings: Settings, features: Features, window: Window) -> Driver {
        let marks = Thresholds::new(window, &settings);
        Driver {
            limits: Limits::new(&settings, marks.available),
            meter: Meter::new(&settings),
            marks,
            settings,
            features,
            window,
            requests: 0,
            last_tier: None,
            last_run: None,
            failures: 0,
            rejections: 0,
            undone: false,
            recoveries: 0,
            forced: None,
            ledger: Fold::default(),
            search: Search::default(),
            stage: Stage::default(),
        }
    }

    /// The prompts of the conversation are the task of another agent, not the user's words.
    pub fn work_for_an_agent(&mut self) {
        self.ledger = Fold::new(true);
    }

    /// What the model has to search with.
    pub fn set_search(&mut self, search: Search) {
        self.search = search;
    }

    pub fn search(&self) -> Search {
        self.search
    }

    /// The model changed, and with it the window: what does not fit any more is compacted before the next request.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
        self.marks = Thresholds::new(window, &self.settings);
        self.limits = Limits::new(&self.settings, self.marks.available);
    }

    /// The settings changed while the session runs. What was learned of the conversation stays.
    pub fn set_settings(&mut self, settings: Settings, features: Features, window: Window) {
        self.meter = Meter::new(&settings);
        (self.settings, self.features) = (settings, features);
        self.set_window(window);
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn features(&self) -> Features {
        self.features
    }

    pub fn window(&self) -> Window {
        self.window
    }

    pub fn marks(&self) -> &Thresholds {
        &self.marks
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The terms of plans in this window.
    pub fn terms<'a>(&'a self, store: &'a Store, clearable: &'a dyn Fn(&str) -> bool) -> Terms<'a> {
        let ledger = self.ledger.read();
        let Driver { settings, limits, meter, search, .. } = self;
        Terms { settings, limits, meter, ledger, store, clearable, search: *search }
    }

    /// The marks as they count beside system prompt and tools: where those take more than half of the target in a small
    /// window, it is raised so that there is room to work in. A target that was asked for stays.
    fn working_marks(&self) -> Thresholds {
        let (marks, overhead) = (self.marks, self.meter.overhead());
        let usual = marks.target == marks.available - self.limits.free_space;
        if !usual || overhead * 2 <= marks.target {
            return marks;
        }
        let raised = overhead + marks.available.saturating_sub(overhead) / 2;
        let up = |mark: u64| mark.max(raised).min(marks.available);
        Thresholds { target: up(marks.target), tiers: up(marks.tiers), blocking: up(marks.blocking), ..marks }
    }

    /// Tokens of the request that the context makes now.
    pub fn used(&self, context: &Context) -> u64 {
        self.meter.used(context)
    }

    /// Tokens that the window has left for an answer with so much behind the conversation. The floor is for requests that
    /// nothing could make fit: an answer of a few words would only be cut off.
    pub fn room_for_output(&self, context: &Context, behind: Load) -> u64 {
        const LEAST: u64 = 1_024;
        let Some(window) = self.window.tokens else { return u64::MAX };
        self.window.left(self.meter.most(context) + self.meter.of(behind)).max(LEAST.min(window / 8))
    }

    /// Begins to prepare a request.
    pub fn prepare(&mut self) {
        self.stage = Stage::default();
    }

    /// Reads what is new into the ledger.
    pub fn follow(&mut self, context: &Context) {
        self.ledger.follow(context);
    }

    /// What must not be forgotten of all that a context came of.
    pub fn ledger(&self, context: &Context) -> Arc<Ledger> {
        self.ledger.of(context)
    }

    /// What has to be done before the request can be sent. Each stage comes at most once, so this ends in `Send`.
    pub fn step(&mut self, context: &Context, around: Surroundings<'_>) -> Step {
        let (used, marks) = (self.used(context), self.working_marks());
        if !self.settings.enabled {
            let blocking = marks.blocking;
            return if used >= blocking { Step::Refuse { used, blocking } } else { Step::Send };
        }
        // A little with each request once a compaction comes near, so that it need not read it all; most sessions end before.
        let many = marks.max_messages.is_some_and(|most| context.len() as u64 * 2 >= most);
        if used * 2 >= marks.tiers || many || self.forced.is_some() {
            self.ledger.approach(context);
        }
        if !self.stage.micro && self.features.micro_compact {
            self.stage.micro = true;
            let trigger = micro::Trigger::Automatic { used, marks, prices: around.prices, cold: around.cold };
            if let Some(plan) = micro::plan(context, self.terms(around.store, around.clearable), trigger) {
                return Step::Clear(plan);
            }
        }
        let full = used >= marks.blocking || self.forced.is_some();
        if !self.stage.tiers && self.due(context, used, &marks) {
            self.stage.tiers = true;
            self.last_tier = Some(self.requests);
            self.follow(context);
            return Step::Summarize;
        }
        if !self.stage.trim && (full || self.stage.failed) {
            self.stage.trim = true;
            self.follow(context);
            return Step::Trim { target: self.forced.unwrap_or(marks.target).min(marks.target) };
        }
        self.forced = None;
        Step::Send
    }

    /// Whether the model tiers run by themselves now.
    fn due(&self, context: &Context, used: u64, marks: &Thresholds) -> bool {
        let enough = rounds::spoken(context) >= self.settings.min_messages_before_compact;
        let gap = self.settings.guards.tier_gap << self.rejections.min(5);
        let apart = self.last_tier.is_none_or(|last| self.requests - last >= gap);
        let on = self.settings.auto && self.failures < self.settings.guards.max_failures;
        if !(enough && on && apart) {
            return false;
        }
        let mark = if self.undone { marks.blocking.max(marks.tiers) } else { marks.tiers };
        let many = marks.max_messages.is_some_and(|most| context.len() as u64 >= most);
        let wanted = self.forced.is_some() || used >= mark || many;
        // A summary that could not be used is not paid for; where the request does not fit, the trim makes room.
        wanted && candidate::is_promising(context, self)
    }

    /// Takes note of what came of `Step::Summarize`. True: automatic compaction is off from now on.
    pub fn summarized(&mut self, what: Summarized) -> bool {
        match what {
            Summarized::Committed => {
                (self.failures, self.rejections) = (0, 0);
                self.undone = false;
                false
            }
            Summarized::Failed => {
                self.failures += 1;
                self.stage.failed = true;
                self.failures == self.settings.guards.max_failures
            }
            Summarized::Rejected => {
                self.rejections += 1;
                self.stage.failed = true;
                false
            }
            Summarized::Blocked | Summarized::Interrupted => false,
        }
    }

    /// Takes note of an automatic run that changed the context. True: the one before was so close that the user has to be
    /// told what fills the window.
    pub fn ran(&mut self) -> bool {
        let close = self.last_run.is_some_and(|last| self.requests - last <= self.settings.guards.report_within);
        self.last_run = Some(self.requests);
        close
    }

    /// Whether a tier's candidate may be committed.
    ///
    /// # Errors
    /// The figures, when it makes too little progress.
    pub fn judge(&self, context: &Context, candidate: Candidate) -> Result<Candidate, Rejected> {
        candidate.judge(context, &self.meter, &self.marks, &self.settings)
    }

    /// The request was answered; `before` is the count of the context that was sent.
    pub fn answered(&mut self, before: crate::session::context::Count, usage: &Usage) {
        self.requests += 1;
        self.recoveries = 0;
        let input = usage.context() - usage.output;
        if input > 0 {
            self.meter.observe(before, input);
        }
    }

    /// The provider found the request too long. True: prepare it again and send it once more.
    pub fn too_long(&mut self, context: &Context, limit: Option<u64>) -> bool {
        if !self.settings.enabled || self.recoveries >= self.settings.guards.max_recoveries {
            return false;
        }
        self.recoveries += 1;
        // The count was wrong, or the window is: what was sent has to shrink for certain.
        let sent = self.used(context);
        if let Some(limit) = limit.filter(|limit| self.window.tokens.is_some_and(|tokens| *limit < tokens)) {
            self.set_window(Window { tokens: Some(limit), ..self.window });
        }
        self.forced = Some(self.marks.target.min(sent * 3 / 5));
        self.stage = Stage::default();
        true
    }

    /// Whether the provider found the request at hand too long: one of the same length would be refused as well.
    pub fn overflowed(&self) -> bool {
        self.forced.is_some()
    }

    /// The user took the last compaction back.
    pub fn undone(&mut self) {
        self.undone = true;
    }

    /// Another session took the place of the one that was compacted.
    pub fn reset(&mut self) {
        let (meter, ledger) = (self.meter.clone(), Fold::new(self.ledger.is_task()));
        let search = self.search;
        *self = Driver { meter, ledger, search, ..Driver::new(self.settings.clone(), self.features, self.window) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, clearable, driver};
    use crate::compact::{apply, trim};
    use crate::session::entry::{Boundary, EntryKind};

    /// Prepares a request as an agent does, with tiers that end as `tiers` says; one word a step.
    fn prepared(talk: &mut Talk, driver: &mut Driver, tiers: Summarized) -> String {
        driver.prepare();
        let mut steps = Vec::new();
        loop {
            let around = Surroundings { store: talk.session.store(), clearable: &clearable, prices: None, cold: false };
            match driver.step(talk.context(), around) {
                Step::Send => break,
                Step::Clear(plan) => {
                    apply::clear(&mut talk.session, &plan).unwrap();
                    steps.push("clear");
                }
                Step::Summarize => {
                    driver.summarized(tiers.clone());
                    steps.push("summarize");
                }
                Step::Trim { target } => {
                    let before = driver.used(talk.context());
                    let plan = trim::plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], target);
                    apply::trim(&mut talk.session, &plan, before).unwrap();
                    steps.push("trim");
                }
                Step::Refuse { .. } => {
                    steps.push("refuse");
                    break;
                }
            }
            assert!(steps.len() < 4, "{steps:?}");
        }
        steps.join(" ")
    }

    fn answer(driver: &mut Driver) {
        driver.answered(Default::default(), &Usage::default());
    }

    fn check(tokens: u64, change: impl FnOnce(&mut Settings), tiers: Summarized, want: &str) {
        let mut talk = Talk::new();
        talk.prompt(10).reply(1).prompt(1).counted(tokens).prompt(1);
        assert_eq!(prepared(&mut talk, &mut driver(200_000, change), tiers), want, "{tokens}");
    }

    #[test]
    fn what_happens_before_a_request() {
        use Summarized::{Blocked, Failed, Interrupted};
        check(100_000, |_| {}, Failed, "");
        // Here nothing can be cleared, clipped or dropped but small talk: the figures alone decide.
        check(168_000, |_| {}, Blocked, "summarize");
        check(168_000, |_| {}, Interrupted, "summarize");
        check(168_000, |_| {}, Failed, "summarize trim");
        check(178_000, |_| {}, Blocked, "summarize trim");
        check(168_000, |settings| settings.auto = false, Failed, "");
        check(178_000, |settings| settings.auto = false, Failed, "trim");
        check(190_000, |settings| settings.enabled = false, Failed, "refuse");
        check(168_000, |settings| settings.enabled = false, Failed, "");
        check(168_000, |settings| settings.min_messages_before_compact = 9, Failed, "");
    }

    #[test]
    fn tiers_keep_their_distance_and_give_up() {
        let mut driver = driver(200_000, |_| {});
        let mut steps = Vec::new();
        for _ in 0..12 {
            let mut talk = Talk::new();
            talk.prompt(10).reply(1).prompt(1).counted(170_000).prompt(1);
            steps.push(prepared(&mut talk, &mut driver, Summarized::Failed));
            answer(&mut driver);
        }
        // Every third request; after three failures in a row never again.
        let tried: Vec<usize> = (0..12).filter(|at| steps[*at].starts_with("summarize")).collect();
        assert_eq!(tried, [0, 3, 6]);
    }

    #[test]
    fn a_candidate_that_was_refused_is_no_failure() {
        let mut driver = driver(200_000, |_| {});
        assert!((0..9).all(|_| !driver.summarized(Summarized::Rejected)));
        assert_eq!([(); 3].map(|()| driver.summarized(Summarized::Failed)), [false, false, true]);
    }

    #[test]
    fn a_summary_that_could_not_be_used_is_not_asked_for() {
        let mut driver = driver(8_192, |_| {});
        let mut talk = Talk::new();
        talk.prompt(10).reply(500).prompt(10).round("Read", &[1_000, 1_000, 1_000, 1_000]);
        // What the model has not answered yet stays, and alone fills the window.
        assert_eq!(prepared(&mut talk, &mut driver, Summarized::Failed), "trim");
        assert!(driver.used(talk.context()) <= driver.marks().target);
        let mut talk = Talk::new();
        talk.prompt(10).reply(3_500).prompt(10).round("Read", &[700]);
        assert_eq!(prepared(&mut talk, &mut driver, Summarized::Failed), "summarize trim");
    }

    #[test]
    fn an_undone_compaction_waits_for_the_blocking_mark() {
        for (tokens, want) in [(168_000, ""), (178_000, "summarize")] {
            let mut driver = driver(200_000, |_| {});
            driver.undone();
            let mut talk = Talk::new();
            talk.prompt(10).reply(1).prompt(1).counted(tokens).prompt(1);
            let steps = prepared(&mut talk, &mut driver, Summarized::Committed);
            assert_eq!(steps.split(' ').next(), Some(want), "{steps}");
        }
    }

    #[test]
    fn a_request_that_was_too_long_is_recovered_once() {
        let mut driver = driver(200_000, |_| {});
        let mut talk = Talk::new();
        (0..40).for_each(|_| _ = talk.prompt(500).reply(500));
        talk.prompt(5);
        assert_eq!(prepared(&mut talk, &mut driver, Summarized::Failed), "");
        let sent = driver.used(talk.context());
        assert!(driver.too_long(talk.context(), Some(32_000)));
        assert_eq!(driver.window().tokens, Some(32_000));
        let around = Surroundings { store: talk.session.store(), clearable: &clearable, prices: None, cold: false };
        assert_eq!(driver.step(talk.context(), around), Step::Summarize);
        driver.summarized(Summarized::Failed);
        let Step::Trim { target } = driver.step(talk.context(), around) else { panic!("no trim") };
        let plan = trim::plan(talk.context(), driver.terms(talk.session.store(), &clearable), &[], target);
        assert!(plan.after <= 20_000 && plan.after < sent);
        assert!(!driver.too_long(talk.context(), None));
        answer(&mut driver);
        assert!(driver.too_long(talk.context(), None));
    }

    #[test]
    fn a_smaller_window_compacts_first() {
        let mut driver = driver(1_000_000, |_| {});
        let mut talk = Talk::new();
        (0..60).for_each(|_| _ = talk.prompt(500).reply(500));
        talk.prompt(5);
        assert_eq!(prepared(&mut talk, &mut driver, Summarized::Failed), "");
        driver.set_window(Window { tokens: Some(8_192), max_output: 8_000 });
        assert_eq!(prepared(&mut talk, &mut driver, Summarized::Failed), "summarize trim");
        assert!(driver.used(talk.context()) <= driver.marks().target);
    }

    #[test]
    fn once_a_boundary_is_undone_what_was_counted_before_it_holds_again() {
        let driver = driver(200_000, |_| {});
        let mut talk = Talk::new();
        talk.prompt(50_000).counted(60_000).prompt(10);
        let boundary = Boundary { keep_from: talk.session.next_seq(), ..Boundary::default() };
        let seq = talk.session.append(EntryKind::CompactBoundary(boundary)).unwrap();
        talk.prompt(10).counted(100);
        assert_eq!(driver.used(talk.context()), 100);
        let undone = EntryKind::BoundaryUndone { seq };
        let preview = talk.session.preview(&undone).unwrap();
        talk.session.append(undone).unwrap();
        // By estimate alone it would be 66,500.
        assert!((60_001..60_100).contains(&driver.used(talk.context())), "{}", driver.used(talk.context()));
        assert_eq!(driver.used(&preview), driver.used(talk.context()));
    }

    /// Found by the lab: 11,334 tokens counted as 5,139.
    #[test]
    fn what_left_is_taken_out_of_a_count_once_however_many_boundaries_are_undone() {
        let driver = driver(200_000, |_| {});
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[3_000]).counted(10_000);
        let undo = |talk: &mut Talk, between: &dyn Fn(&mut Talk)| {
            let seq = talk.session.append(EntryKind::CompactBoundary(Boundary::default())).unwrap();
            between(talk);
            talk.session.append(EntryKind::BoundaryUndone { seq }).unwrap();
        };
        undo(&mut talk, &|talk| {
            (0..4).for_each(|_| _ = talk.prompt(1).counted(11_000));
            let cleared = micro::Clear { call: crate::message::CallId::nth(1), tokens: 3_000, persist: false };
            let plan = micro::Plan { clear: vec![cleared], saved: 3_000, balance: None };
            apply::clear(&mut talk.session, &plan).unwrap();
        });
        talk.counted(7_100);
        undo(&mut talk, &|_| {});
        assert_eq!(driver.used(talk.context()), 7_100);
    }

    #[test]
    fn two_runs_close_together_are_told() {
        let mut driver = driver(200_000, |_| {});
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(driver.ran());
            (0..6).for_each(|_| answer(&mut driver));
        }
        (0..6).for_each(|_| answer(&mut driver));
        told.push(driver.ran());
        assert_eq!(told, [false, true, true, false]);
    }
}
