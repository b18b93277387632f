//! Plays a session with planted facts through one tier in one window, and counts what is left of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cocode::compact::memory::Pause;
use cocode::compact::restore::Found;
use cocode::compact::{Features, Settings, apply, micro};
use cocode::message::tokens::{self, Load};
use cocode::message::{Attachment, Kind, Message, Usage};
use cocode::session::context::Count;
use serde::Serialize;

use crate::cache::{Cache, Density, LISTS, Weighed};
use crate::desk::{self, Around, Desk, Did, clearable};
use crate::recall::Recall;
use crate::script::{By, Claim, Scene, Script, filler, read, together};
use crate::writers::Writer;

/// Windows of the table, in tokens.
pub(crate) const WINDOWS: [u64; 6] = [8_192, 12_000, 16_000, 32_000, 200_000, 1_000_000];

/// Compactions after which is counted, from the first that follows the last fact.
pub(crate) const AFTER: [u64; 2] = [1, 5];

/// Requests that a compaction is waited for.
const PATIENCE: u64 = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Old results are cleared; nothing is summarized.
    Micro,
    /// Notes are kept in the background, and stand for what they cover: a session with a person in it.
    Notes,
    /// A model writes a summary.
    Full,
    /// No model can be asked.
    Trim,
}

impl Tier {
    pub(crate) const ALL: [Tier; 4] = [Tier::Micro, Tier::Notes, Tier::Full, Tier::Trim];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tier::Micro => "micro",
            Tier::Notes => "notes",
            Tier::Full => "full",
            Tier::Trim => "trim",
        }
    }

    fn settings(self) -> (Settings, Features) {
        let (mut settings, mut features) = desk::shipped();
        features.session_memory = self == Tier::Notes;
        settings.auto = matches!(self, Tier::Notes | Tier::Full);
        features.micro_compact = self != Tier::Trim;
        (settings, features)
    }
}

/// What is left at one point.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Left {
    /// Facts that stand in the next request, by who told them.
    pub(crate) alive_user: usize,
    pub(crate) alive_found: usize,
    /// Alive, or found by the tool Recall with the obvious words, in the first two pages of its answer.
    pub(crate) reachable: usize,
    /// Claims of a bad writer that stand in the next request.
    pub(crate) false_claims: usize,
    /// Messages of the next request, by estimate. On top come system prompt, tools, and results that the model has not
    /// seen: no compaction takes those.
    pub(crate) tokens: u64,
    /// The whole request as the provider counts it.
    pub(crate) request: u64,
    /// Compactions so far, those before the last fact included.
    pub(crate) compactions: u64,
    /// Cost of the session so far.
    pub(crate) dollars: f64,
    /// What is not alive.
    pub(crate) lost: Vec<String>,
    pub(crate) unreachable: Vec<String>,
    /// The messages of the next request, as the model reads them.
    #[serde(skip)]
    pub(crate) sent: Vec<String>,
}

/// One session of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) script: String,
    pub(crate) tier: &'static str,
    pub(crate) window: u64,
    pub(crate) writer: &'static str,
    pub(crate) facts: usize,
    /// After one compaction and after five.
    pub(crate) after: Vec<Left>,
    /// Requests that did not fit into the window.
    pub(crate) over: u64,
    /// Receipts of summaries: how far off, in percent of what the provider counts, they are before and after.
    pub(crate) receipts: Vec<[f64; 2]>,
}

struct Play<'a> {
    desk: Desk,
    cache: Cache,
    script: &'a Script,
    writer: Writer,
    files: HashMap<PathBuf, String>,
    dollars: f64,
    compactions: u64,
    /// Requests for a summary, and for notes.
    asked: u64,
    over: u64,
    calls: u64,
    sent: Option<(Count, u64)>,
    receipts: Vec<[f64; 2]>,
}

/// Tokens with which each long result of the script is made longer, so that the session fills most of the window.
pub(crate) fn pad(script: &Script, window: u64) -> u64 {
    let (settings, features) = Tier::Full.settings();
    let window = cocode::compact::Window { tokens: Some(window), max_output: 32_000 };
    let marks = *cocode::compact::Driver::new(settings, features, window).marks();
    let own: u64 = (1..)
        .zip(&script.steps)
        .flat_map(|(n, scene)| scene.messages(n, 0))
        .map(|message| tokens::message(&message))
        .sum();
    let room = (marks.target * 7 / 10).saturating_sub(own + 4_000);
    (room / script.long() as u64).min(largest(marks.available))
}

/// Most tokens of a tool result.
fn largest(available: u64) -> u64 {
    12_500.min(available / 8)
}

/// What is played.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) script: &'a Script,
    pub(crate) tier: Tier,
    pub(crate) window: u64,
    pub(crate) writer: Writer,
    pub(crate) density: Density,
}

pub(crate) fn play(home: &Path, Case { script, tier, window, writer, density }: Case<'_>) -> Row {
    let mut play = Play {
        desk: Desk::new(home, window, tier.settings()),
        cache: Cache::new(&LISTS[0], density),
        script,
        writer,
        files: HashMap::new(),
        dollars: 0.0,
        compactions: 0,
        asked: 0,
        over: 0,
        calls: 0,
        sent: None,
        receipts: Vec::new(),
    };
    let pad = pad(script, window);
    for scene in &script.steps {
        play.step(scene, pad);
    }
    let mut after = Vec::new();
    for nth in 1..=AFTER[1] {
        play.on_to_the_next(tier);
        if AFTER.contains(&nth) {
            after.push(play.left());
        }
    }
    let Play { desk, over, receipts, .. } = play;
    desk.leave();
    let (tier, writer, facts) = (tier.name(), writer.name(), script.facts.len());
    Row { script: script.name.clone(), tier, window, writer, facts, after, over, receipts }
}

impl Play<'_> {
    /// What comes next in the session. A reply comes from a request.
    fn step(&mut self, scene: &Scene, pad: u64) {
        self.calls += u64::from(!scene.tool.is_empty());
        self.files.extend(scene.file(self.calls, pad));
        for message in scene.messages(self.calls, pad) {
            if message.kind != Kind::Reply {
                self.desk.append(message);
                continue;
            }
            self.request();
            self.answer(message);
            let pause = if scene.tool.is_empty() { Pause::Reply } else { Pause::Round };
            self.keep_notes(pause);
        }
    }

    /// Work that tells nothing, until the next compaction is done and the request behind it is ready.
    fn on_to_the_next(&mut self, tier: Tier) {
        let compactions = self.compactions;
        let available = self.desk.driver.marks().available;
        for round in 0..PATIENCE {
            if round % 6 == 0 {
                let user = "Good, please look at the next module in the same way.".into();
                self.step(&Scene { user, ..Scene::default() }, 0);
            }
            if self.request() && self.compactions > compactions {
                return;
            }
            if tier == Tier::Micro && round == 4 {
                self.clear();
                return;
            }
            self.calls += 1;
            let text = filler(largest(available) * 3 / 4, self.calls as usize);
            // Nothing that clearing takes away: the window has to fill up.
            let input = serde_json::json!({ "page": self.calls });
            let (say, tool) = ("The next one.".into(), "mcp__tracker__report".into());
            let scene = Scene { say, tool, input, result: text, ..Scene::default() };
            let [reply, result] = scene.messages(self.calls, 0).try_into().expect("a call and its result");
            self.answer(reply);
            self.desk.append(result);
            self.keep_notes(Pause::Round);
        }
    }

    /// `/compact micro 0`.
    fn clear(&mut self) {
        let terms = self.desk.driver.terms(self.desk.session.store(), &clearable);
        let trigger = micro::Trigger::Asked { target: Some(0) };
        if let Some(plan) = micro::plan(self.desk.session.context(), terms, trigger) {
            apply::clear(&mut self.desk.session, &plan).expect("the log is written");
            self.desk.append(Message::attachment(Attachment::Cleared, "Older tool results were cleared."));
        }
        self.compactions += 1;
    }

    /// Makes the next request ready, unless it is; whether anything was done for that.
    fn request(&mut self) -> bool {
        if self.sent.is_some() {
            return false;
        }
        let before = self.weight();
        let Play { desk, cache, script, writer, files, asked, dollars, .. } = self;
        let found = |path: PathBuf| Found { text: files.get(&path).cloned(), path };
        let mut write = |desk: &Desk, before: u64| {
            *asked += 1;
            let written = writer.answer(script, desk, before, *asked);
            let Weighed { same, fresh, .. } = cache.weighed(desk);
            *dollars += cache.price(same, fresh) + cache.output(tokens::text(&written));
            Some(written)
        };
        let (prices, cold) = (cache.prices, cache.is_cold());
        let done = desk.prepare(&mut Around { prices, cold, found: &found, write: &mut write });
        let made = done.iter().filter(|did| matches!(did, Did::Summarized { .. } | Did::Trimmed { .. })).count() as u64;
        self.compactions += made;
        if let [Did::Summarized { before: told, after: left, .. }] = done.as_slice() {
            let off = |told: u64, truth: u64| (told as f64 / truth as f64 - 1.0) * 100.0;
            self.receipts.push([off(*told, before), off(*left, self.weight())]);
        }
        let Weighed { same, fresh, .. } = self.cache.weighed(&self.desk);
        let driver = &self.desk.driver;
        let output =
            driver.room_for_output(self.desk.session.context(), Load::default()).min(driver.window().max_output);
        self.over += u64::from(same + fresh + output > self.desk.window());
        self.dollars += self.cache.price(same, fresh);
        self.cache.sent(&self.desk);
        self.sent = Some((self.desk.session.context().count(), same + fresh));
        made > 0
    }

    /// Tokens of the next request.
    fn weight(&self) -> u64 {
        let Weighed { same, fresh, .. } = self.cache.weighed(&self.desk);
        same + fresh
    }

    fn answer(&mut self, reply: Message) {
        let Some((before, input)) = self.sent.take() else { return };
        let output = self.cache.density.count(self.desk.session.next_seq(), tokens::load(&reply));
        let usage = Usage { input, output, ..Usage::default() };
        self.dollars += self.cache.output(output);
        self.desk.append(Message { usage: Some(usage), ..reply });
        self.desk.driver.answered(before, &usage);
    }

    fn keep_notes(&mut self, pause: Pause) {
        let Play { desk, cache, script, writer, asked, dollars, .. } = self;
        desk.keep_notes(pause, &mut |desk, old| {
            *asked += 1;
            let text = writer.notes(script, desk, old, *asked);
            let Weighed { same, fresh, .. } = cache.weighed(desk);
            *dollars += cache.price(same, fresh) + cache.output(tokens::text(&text));
            text
        });
    }

    /// What is left of the facts in the request that is ready.
    fn left(&self) -> Left {
        let context = self.desk.session.context();
        let sent: Vec<String> = context.messages().iter().map(|message| read(message)).collect();
        let recall = Recall::new(&self.desk);
        let told = |words: &[String]| sent.iter().any(|text| together(text, words).is_some());
        let Weighed { same, fresh, .. } = self.cache.weighed(&self.desk);
        let loads = || context.shown().rev();
        let all: Load = loads().map(|shown| shown.load).sum();
        let unread: Load = loads()
            .take_while(|shown| shown.message.kind != Kind::Reply)
            .filter(|shown| shown.message.kind == Kind::ToolResult)
            .map(|shown| shown.load)
            .sum();
        let mut left = Left {
            tokens: (all - unread).total(),
            request: same + fresh,
            compactions: self.compactions,
            dollars: self.dollars,
            sent: context.messages().iter().map(|message| message.text()).filter(|text| !text.is_empty()).collect(),
            ..Left::default()
        };
        for fact in &self.script.facts {
            let name = format!("{}: {}", fact.kind, fact.telling.join(" + "));
            let alive = told(&fact.telling);
            match fact.by {
                By::User => left.alive_user += usize::from(alive),
                By::Found => left.alive_found += usize::from(alive),
            }
            if recall.finds(&fact.search, &fact.telling) {
                left.reachable += 1;
            } else {
                left.unreachable.push(name.clone());
            }
            if !alive {
                left.lost.push(name);
            }
        }
        // The injection itself may stand in a result that is kept; what a summary makes of it does not tell where it is from.
        let summed: Vec<String> = context
            .messages()
            .iter()
            .filter(|message| message.kind == Kind::CompactSummary)
            .map(|message| read(message))
            .collect();
        let claimed = |claim: &Claim| summed.iter().any(|text| together(text, &claim.words).is_some());
        left.false_claims =
            self.script.lies.iter().chain([&self.script.injection]).filter(|claim| claimed(claim)).count();
        left
    }
}
