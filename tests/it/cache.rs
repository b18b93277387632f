//! What a broken prompt cache costs is said, with its cause, whatever front end runs.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cocode::protocol::{Event, Op, RewindWhat, UsageInfo};
use cocode::provider::catalog::Catalog;
use cocode::provider::settings::WireName;
use cocode::session::entry::{By, CacheBreak, Cause, Sent};
use cocode::stdx::text::grouped;
use serde_json::Value;

use crate::support::fake_api::{FakeApi, Reply};
use crate::support::harness::{Harness, Ran};
use crate::support::program::Program;

use Step::*;

/// A time that never passes.
fn still() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

static PASSED: AtomicU64 = AtomicU64::new(0);
/// One test at a time lets time pass, and only stories see it.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn passing() -> SystemTime {
    still() + Duration::from_secs(PASSED.load(Ordering::Relaxed))
}

fn over(harness: Harness, api: &FakeApi) -> Harness {
    at(harness, api.url())
}

fn at(harness: Harness, base: &str) -> Harness {
    let provider = format!("[providers.fake]\nwire = 'anthropic'\nbase_url = '{base}'\n");
    let set = "model = 'fake/claude-sonnet-5'\nfeatures = { session_memory = false }\n";
    harness.set(&format!("{set}{provider}")).clock(still)
}

fn breaks(ran: &Ran) -> Vec<CacheBreak> {
    let broke = |event: &Event| match event {
        Event::Usage(UsageInfo { cache, .. }) => cache.as_deref().cloned(),
        _ => None,
    };
    ran.events.iter().filter_map(broke).collect()
}

/// What happens in a session, in order.
#[derive(Clone, Copy)]
enum Step {
    /// A prompt of so many words, answered at once.
    Say(&'static str, usize),
    /// The model reads a file.
    Read(&'static str),
    /// A prompt that gets no answer, however often the model is asked.
    Silence(&'static str, usize),
    Compact,
    /// A command or a `!` line that makes no request.
    Do(&'static str),
    /// So many seconds pass after the last request.
    Later(u64),
    /// The provider loses what it has cached.
    Forget,
    /// Another process continues, after this.
    Resume(fn(Harness) -> Harness),
    /// Another process asks by another name of the host.
    Elsewhere,
    /// Another process goes back to before this prompt.
    Rewind(&'static str),
}

/// Three turns: 24 kB of prompts, and 20 kB of a file between them.
const BEGIN: [Step; 3] = [Say("one ", 3_000), Read("a.txt"), Say("three ", 2_000)];

enum Want {
    Cause(Cause),
    /// The segment's name begins so.
    Changed(&'static str, By),
    Route,
}

/// A session over one provider, continued by one process after another.
struct Story {
    api: FakeApi,
    next: Harness,
    /// Numbers of the requests that are in the log.
    logged: Vec<usize>,
    requests: usize,
}

impl Story {
    fn new() -> Story {
        let (api, lines) = (FakeApi::start([]), |line: &str| line.repeat(20_000 / line.len()));
        api.caching(passing);
        let first = over(Harness::new(), &api)
            .clock(passing)
            .file("a.txt", &lines("a line of a\n"))
            .file("b.txt", &lines("and of b\n"));
        Story { api, next: first, logged: Vec::new(), requests: 0 }
    }

    fn answer(&mut self, reply: Reply) {
        self.api.push(reply);
        self.logged.push(self.requests);
        self.requests += 1;
    }

    fn say(&mut self, text: &str) {
        self.next = std::mem::replace(&mut self.next, Harness::new()).prompt(text);
    }

    async fn run(&mut self) -> Ran {
        let ran = std::mem::replace(&mut self.next, Harness::new()).run().await;
        self.api.assert_clean();
        ran
    }

    async fn step(&mut self, step: Step) {
        match step {
            Say(word, times) => {
                self.say(&word.repeat(times));
                self.answer(Reply::turn().text("Yes."));
            }
            Read(path) => {
                self.say(&format!("read {path}"));
                self.answer(Reply::turn().call("Read", serde_json::json!({ "file_path": path })));
                self.answer(Reply::turn().text("Read."));
            }
            Silence(word, times) => {
                self.say(&word.repeat(times));
                (0..4).for_each(|_| self.answer(Reply::turn()));
            }
            Compact => {
                self.say("/compact");
                self.api.push(Reply::turn().text("<summary>All is well.</summary>"));
                self.requests += 1;
            }
            Do(line) => self.say(line),
            Later(seconds) => {
                let pass = move |_: &mut _| {
                    PASSED.fetch_add(seconds, Ordering::Relaxed);
                };
                self.api.after(self.requests, pass);
            }
            Forget => self.api.after(self.requests, |cache| cache.forget()),
            Resume(change) if self.requests == 0 => {
                self.next = change(std::mem::replace(&mut self.next, Harness::new()));
            }
            Resume(change) => {
                let ran = self.run().await;
                self.next = change(over(Harness::after(ran), &self.api).clock(passing));
            }
            Elsewhere => {
                let ran = self.run().await;
                let base = self.api.url().replace("127.0.0.1", "localhost");
                self.next = at(Harness::after(ran), &base).clock(passing);
            }
            Rewind(word) => {
                let ran = self.run().await;
                let prompts = ran.session().prompts().unwrap();
                let to = prompts.iter().find(|prompt| prompt.text.starts_with(word)).unwrap().seq;
                let op = Op::Rewind { to, what: RewindWhat::Conversation };
                self.next = over(Harness::after(ran), &self.api).clock(passing).at("session", op);
            }
        }
    }

    /// The byte where the request of a break differs from the one before, by what was received.
    fn first_difference(&self, ran: &Ran, broke: &CacheBreak) -> u64 {
        let (mut segments, mut bodies) = (Vec::new(), Vec::new());
        let received = self.api.received();
        for ((seq, _, sent), number) in ran.session().requests().into_iter().zip(&self.logged) {
            let Sent { head, keep, add, tail, .. } = &*sent;
            segments.splice(..head.len().min(segments.len()), head.iter().map(|segment| segment.2));
            segments.splice(3 + keep..segments.len().max(3) - tail, add.iter().map(|segment| segment.2));
            if seq == broke.before || seq == broke.request {
                bodies.push(received[*number].body.clone());
            }
            if seq == broke.request {
                break;
            }
        }
        let [old, new] = &bodies[..] else { panic!("two requests of {broke:?}") };
        let before = |segment: usize| segments[..segment].iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        let common =
            |old: &str, new: &str| old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count() as u64;
        let system = |body: &Value| body["system"][0]["text"].as_str().unwrap().to_owned();
        if system(old) != system(new) {
            return before(1) + common(&system(old), &system(new));
        }
        let (old, new) = (blocks(old), blocks(new));
        assert_eq!(segments.len(), 3 + new.len());
        let at = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        before(3 + at) + old.get(at).zip(new.get(at)).map_or(0, |(old, new)| common(old, new))
    }
}

/// What the model reads of each block of the messages, as it is written down for the comparison.
fn blocks(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
    let text = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => block["text"].as_str().unwrap().to_owned(),
        "tool_result" => {
            let content = &block["content"];
            let text = content.as_str().unwrap_or_else(|| content[0]["text"].as_str().unwrap());
            format!("call_1\0\0{text}\0")
        }
        _ => block["input"].to_string(),
    };
    blocks.map(text).collect()
}

fn after_begin(steps: &[Step]) -> Vec<Step> {
    [&BEGIN[..], steps].concat()
}

async fn play(steps: &[Step], story: &mut Story) -> Ran {
    for step in steps {
        story.step(*step).await;
    }
    story.step(Say("last ", 9)).await;
    story.run().await
}

#[tokio::test]
async fn what_comes_behind_a_conversation_breaks_nothing() {
    let _alone = ALONE.lock().await;
    let kind: fn(Harness) -> Harness = |harness| harness.file("AGENTS.md", "Be kind.");
    let skill: fn(Harness) -> Harness =
        |harness| harness.home("skills/late/SKILL.md", "---\nname: late\ndescription: Joins late.\n---\nBe late.");
    for (name, steps) in [
        ("another turn", &[][..]),
        ("a short pause", &[Later(299)]),
        ("another process in time", &[Resume(|harness| harness)]),
        ("memory that changes between two processes", &[Resume(kind), Say("four ", 9), Resume(kind)]),
        ("a skill that joins", &[Resume(skill)]),
        ("modes and lines", &[Do("/plan"), Say("four ", 9), Do("!echo five"), Do("/plan exit")]),
        ("midnight", &[Later(200), Say("four ", 9), Later(200)]),
    ] {
        let mut story = Story::new();
        let ran = play(&after_begin(steps), &mut story).await;
        assert_eq!(ran.session().facts().breaks, [], "{name}\n{}", ran.trace());
        let heads: Vec<Value> = story.api.received().iter().map(|received| head(&received.body)).collect();
        assert!(heads.iter().all(|head| *head == heads[0]), "{name}");
    }
    // Nor does what is written behind a shorter one, while the shorter one is kept.
    let mut story = Story::new();
    story.api.allow_other_prefix();
    let ran = play(&after_begin(&[Rewind("three"), Say("again ", 9_000)]), &mut story).await;
    assert_eq!(ran.session().facts().breaks, [], "{}", ran.trace());
}

/// System prompt, tools, and the message that opens the conversation with the memory files.
fn head(body: &Value) -> Value {
    let opening = &body["messages"][0]["content"][0]["text"];
    let mut system = body["system"].clone();
    let _ = system[0].as_object_mut().map(|system| system.remove("cache_control"));
    serde_json::json!([system, body["tools"], opening])
}

type Row = (&'static str, Vec<Step>, Want, &'static str);

/// What another process does otherwise, and time.
fn between_processes() -> Vec<Row> {
    let name = |model: &str| format!("fake/{model}");
    let expired = |gap| Want::Cause(Cause::Expired { gap, ttl: 300 });
    let model = By::Model { from: name("claude-sonnet-5"), to: name("claude-opus-5") };
    let thinking = By::Thinking { from: String::new(), to: "Adaptive { effort: Some(\"high\") }".into() };
    let tools = By::Tools { added: vec![], removed: vec![], changed: vec!["Task".into()] };
    let agent: fn(Harness) -> Harness =
        |harness| harness.home("agents/late.md", "---\nname: late\ndescription: Joins late.\n---\nBe late.");
    let terse: fn(Harness) -> Harness = |harness| harness.system("Be terse.");
    let small: fn(Harness) -> Harness =
        |harness| harness.set("models = { claude-sonnet-5 = { window = 12000 } }").system("Be terse.");
    let (haiku, opus) = (Do("/model fake/claude-haiku-4-5"), Do("/model fake/claude-opus-5"));
    let too_short = Want::Cause(Cause::BelowMinimum { minimum: 4_096 });
    let blocks = [&[Silence("four ", 3_000)][..], &[Do("!echo and"); 25]].concat();
    vec![
        ("a long pause", after_begin(&[Later(301)]), expired(301), "it expired"),
        (
            "another process on the next day",
            after_begin(&[Later(86_400), Resume(|harness| harness)]),
            expired(86_400),
            "it expired (24 h since the last request, kept for 5 min)",
        ),
        ("a model", after_begin(&[opus]), Want::Changed("model", model), "model changed from fake/claude-sonnet-5 to"),
        (
            "a thinking level",
            after_begin(&[Do("/thinking deep")]),
            Want::Changed("params", thinking),
            "thinking changed from the default to",
        ),
        (
            "a system prompt",
            after_begin(&[Resume(terse)]),
            Want::Changed("system", By::System),
            "system prompt changed",
        ),
        (
            "an agent that joins",
            after_begin(&[Resume(agent)]),
            Want::Changed("tools", tools),
            "tool list changed: Task changed",
        ),
        ("an address", after_begin(&[Elsewhere]), Want::Route, "sent to http://localhost:"),
        (
            "more blocks than the provider looks back",
            after_begin(&blocks),
            Want::Cause(Cause::BreakpointLimit { blocks: 26 }),
            "26 blocks since the last breakpoint",
        ),
        (
            "a model that caches nothing so short",
            vec![Resume(small), Say("one ", 1_000), haiku, Say("two ", 9)],
            too_short,
            "the provider caches nothing below 4,096 tokens",
        ),
        ("a provider that forgets", after_begin(&[Forget]), Want::Cause(Cause::Provider), "the provider lost it"),
    ]
}

/// What changes the conversation itself.
fn changes() -> Vec<Row> {
    let of_messages = |by| Want::Changed("message", by);
    let clear: fn(Harness) -> Harness = |harness| harness.set("compact = { micro = { keep_last = 1 } }");
    let limit: fn(Harness) -> Harness = |harness| harness.set("compact = { auto = false, blocking_limit = 20000 }");
    let digest: fn(Harness) -> Harness = |harness| harness.set("compact = { tool_summary = 'heuristic' }");
    let undone = [Compact, Say("four ", 9), Forget, Say("five ", 9), Do("/compact undo")];
    let (four, five) = (Say("four ", 9), Say("five ", 9));
    vec![
        ("a compaction", after_begin(&[Compact]), of_messages(By::Compaction { number: 1 }), "compaction 1"),
        (
            "a compaction that is undone late",
            after_begin(&undone),
            of_messages(By::CompactionUndone),
            "compaction undone",
        ),
        (
            "a rewind to what is no longer kept",
            after_begin(&[Later(200), four, Later(200), five, Rewind("read")]),
            of_messages(By::Rewind),
            "rewind",
        ),
        (
            "results that are cleared",
            [&[Resume(clear)], &BEGIN[..], &[Read("b.txt"), Do("/compact micro 0")]].concat(),
            of_messages(By::Cleared),
            "old tool results cleared",
        ),
        (
            "blocks that are trimmed",
            vec![Resume(limit), Say("one ", 9), Say("two ", 12_000), Say("three ", 4_000)],
            of_messages(By::Clipped),
            "large blocks trimmed",
        ),
        (
            "results that a digest replaces",
            [&[Resume(digest)], &[Read("a.txt"); 10][..], &[Say("long ", 4_000), Read("b.txt")]].concat(),
            of_messages(By::Archived),
            "old tool results replaced by a digest",
        ),
    ]
}

#[tokio::test]
async fn every_break_is_named_with_its_byte_and_its_cost() {
    let _alone = ALONE.lock().await;
    for (name, steps, want, told) in between_processes().into_iter().chain(changes()) {
        let mut story = Story::new();
        story.api.allow_other_prefix();
        let ran = play(&steps, &mut story).await;
        let broken = ran.session().facts().breaks.clone();
        let last = breaks(&ran).pop().unwrap_or_else(|| panic!("{name}: {broken:?}\n{}", ran.trace()));
        let as_wanted = match (&want, &last.cause) {
            (Want::Route, cause) => matches!(cause, Cause::Route { .. }),
            (Want::Cause(want), cause) => want == cause,
            (Want::Changed(want, who), Cause::Changed { segment, offset, by }) => {
                let known = ["model", "tools", "params"].contains(want);
                segment.starts_with(want) && by == who && (known || *offset == story.first_difference(&ran, &last))
            }
            (Want::Changed(..), _) => false,
        };
        assert!(as_wanted, "{name}: {last:?}");
        // It costs what the provider counted, at the price of the model that was asked.
        let requests = ran.session().requests();
        let at = requests.iter().position(|(seq, ..)| *seq == last.request).unwrap();
        let (input, read, written) = story.api.counted()[story.logged[at]];
        let model = requests[at].2.model.trim_start_matches("fake/");
        let price = Catalog::builtin().get(WireName::Anthropic, model).prices.unwrap().uncached();
        let usd = last.again as f64 * price / 1e6;
        assert!(last.read == read && (2_001..=input + written).contains(&last.again), "{name}: {last:?}");
        assert_eq!(last.cost_usd, Some(usd), "{name}");
        // Another process tells the same of it.
        let ran = Harness::after(ran).prompt(&format!("/cost why {}", broken.len())).run().await;
        let trace = ran.trace();
        let cost = if usd < 0.01 { "(under $0.01)".into() } else { format!("(${usd:.2})") };
        let byte = match &last.cause {
            Cause::Changed { segment, offset, .. } => {
                format!("First difference: `{segment}`, byte {}", grouped(*offset))
            }
            _ => String::new(),
        };
        for said in [told, &cost, &byte] {
            assert!(trace.contains(said), "{name} lacks {said:?}:\n{trace}");
        }
    }
}

/// The tokens that the trace forecasts, the last time that it does.
fn forecast(ran: &Ran, begins: &str, cold: &str) -> Option<f64> {
    let trace = ran.trace();
    let line = trace.lines().rev().find_map(|line| line.strip_prefix("notice ")?.strip_prefix(begins))?;
    let (tokens, rest) = line.split_once(" tokens").unwrap();
    assert!(rest.contains(cold), "{line}");
    Some(tokens.strip_suffix('k').unwrap().parse::<f64>().unwrap() * 1e3)
}

#[tokio::test]
async fn what_a_step_will_cost_is_told_before_it() {
    let _alone = ALONE.lock().await;
    let resume = Resume(|harness| harness);
    for (name, steps, told) in [
        ("a prompt", &[][..], false),
        ("a resume in time", &[resume], false),
        ("a compaction in time", &[Compact], false),
        ("a prompt after a pause", &[Later(301)], true),
        ("a resume", &[Later(301), resume], true),
        ("a model", &[Do("/model fake/claude-opus-5")], true),
        ("a thinking level", &[Do("/thinking deep")], true),
        ("a compaction", &[Later(301), Compact], true),
    ] {
        let mut story = Story::new();
        story.api.allow_other_prefix();
        let ran = play(&[&[Say("more ", 6_000)], &BEGIN[..], steps].concat(), &mut story).await;
        let forecast = forecast(&ran, "next request: ", ", cache cold: ≈ $0.");
        // Once, though a prompt follows.
        assert_eq!(ran.trace().matches("next request: ").count(), usize::from(told), "{name}\n{}", ran.trace());
        // What was sent next: the prompt, or what asks for the summary.
        let next = story.api.counted().len() - 1 - usize::from(name == "a compaction");
        let (input, read, written) = story.api.counted()[next];
        let off = forecast.map_or(0.0, |tokens| tokens / (input + read + written) as f64 - 1.0);
        assert!(off.abs() < 0.1, "{name}: {off}");
    }
    // Sub-agents begin with what nobody has sent yet.
    let mut story = Story::new();
    story.api.allow_other_prefix();
    story.next = std::mem::replace(&mut story.next, Harness::new()).file("AGENTS.md", &"Be kind.\n".repeat(2_000));
    let input = serde_json::json!({ "description": "look", "prompt": "Look.", "subagent_type": "Explore" });
    story.answer((0..5).fold(Reply::turn(), |reply, _| reply.call("Task", input.clone())));
    (0..6).for_each(|_| story.answer(Reply::turn().text("Done.")));
    story.say("go");
    let ran = story.run().await;
    let forecast = forecast(&ran, "starting 5 agents: ", " before they do any work, cache cold: ≈ $0.").unwrap();
    let sent: u64 = story.api.counted()[1..6].iter().map(|(input, read, written)| input + read + written).sum();
    assert!((forecast / sent as f64 - 1.0).abs() < 0.1, "{forecast} {sent}\n{}", ran.trace());
}

#[tokio::test]
async fn a_session_keeps_the_words_it_began_with_until_a_compaction() {
    let long = || Reply::turn().text(&"words and more words ".repeat(900));
    let short = || Reply::turn().text("<summary>All is well.</summary>");
    let api = FakeApi::start([long(), long(), long(), long(), short(), short(), short()]);
    api.allow_other_prefix();
    api.caching(still);
    let over = |harness: Harness| {
        over(harness, &api).set("compact = { keep_recent_tokens = 0, min_messages_before_compact = 1 }")
    };
    let ran = over(Harness::new()).prompt("one").prompt("two").run().await;
    // Another version wrote this log.
    let log = std::fs::read_to_string(ran.log()).unwrap();
    let old = |line: &str| match line.contains(r#""kind":"frozen""#) {
        true => line.replacen(r#""system":""#, r#""system":"Of old. "#, 1).replacen(
            r#""description":""#,
            r#""description":"Old. "#,
            1,
        ),
        false => line.to_owned(),
    };
    let lines: Vec<String> = log.lines().map(old).collect();
    std::fs::write(ran.log(), lines.join("\n") + "\n").unwrap();
    let ran = over(Harness::after(ran)).prompt("three").prompt("four").prompt("/compact").prompt("five").run().await;
    let said = |number: usize| {
        let body = &api.received()[number].body;
        let begins = |text: &serde_json::Value, with: &str| text.as_str().is_some_and(|text| text.starts_with(with));
        (begins(&body["system"][0]["text"], "Of old."), begins(&body["tools"][0]["description"], "Old."))
    };
    let told: Vec<_> = (0..api.received().len()).map(said).collect();
    let (new, old) = ((false, false), (true, true));
    // The summary is asked for with what is cached, too.
    assert_eq!(told, [new, new, old, old, old, new], "{}", ran.trace());
    // What the user asks for now wins.
    let ran = over(Harness::after(ran)).system("Be terse.").prompt("six").run().await;
    let body = api.received().pop().unwrap().body;
    assert_eq!(body["system"][0]["text"], "Be terse.", "{}", ran.trace());
}

#[tokio::test]
async fn a_session_begins_anew_where_its_tools_no_longer_fit() {
    let api = FakeApi::start((0..3).map(|_| Reply::turn().text("Yes.")));
    api.allow_other_prefix();
    api.caching(still);
    let small = |harness: Harness| harness.set("models = { claude-sonnet-5 = { window = 12000 } }");
    let ran = over(Harness::new(), &api).prompt("one").run().await;
    let ran = small(over(Harness::after(ran), &api)).prompt("two").run().await;
    let ran = over(Harness::after(ran), &api).prompt("three").run().await;
    let tools = |number: usize| api.received()[number].body["tools"].as_array().unwrap().len();
    assert!(tools(1) < tools(0) && tools(2) == tools(0), "{} {} {}: {}", tools(0), tools(1), tools(2), ran.trace());
}

#[tokio::test]
async fn a_budget_warns_and_then_ends_the_turn_between_two_requests() {
    let call = || Reply::turn().call("LS", serde_json::json!({ "path": "." })).input(100_000);
    for (budget, name) in [("turn_usd = 0.5", "turn"), ("session_usd = 0.5", "session"), ("day_usd = 0.5", "day")] {
        let api = FakeApi::start((0..9).map(|_| call()));
        let set = format!("budget = {{ {budget} }}\nfeatures = {{ session_memory = false }}");
        let ran = over(Harness::new(), &api).set(&set).prompt("go").run().await;
        api.assert_clean();
        let trace = ran.trace();
        let (warned, stopped) =
            (format!("budget for the {name} is almost used up"), format!("the budget for the {name} is used up"));
        assert!(trace.contains(&warned) && trace.contains(&stopped), "{trace}");
        assert!(trace.ends_with("turn ended Budget"), "{trace}");
        assert_eq!(api.received().len(), 3, "{trace}");
        // What was spent is in the ledger, for every other process.
        let ledger =
            std::fs::read_to_string(ran.home().parent().unwrap().join(".local/state/cocode/ledger.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum: f64 = lines.iter().map(|line| line["usd"].as_f64().unwrap()).sum();
        let cost = ran.session().facts().usage();
        assert_eq!(lines.iter().map(|line| line["input"].as_u64().unwrap()).sum::<u64>(), cost.input);
        assert!(sum >= 0.5, "{sum}");
    }
}

#[tokio::test]
async fn neither_retries_nor_a_last_answer_pass_a_budget() {
    let answer = |tokens| Reply::turn().text(&"Hi there. ".repeat(40)).input(tokens);
    for (name, first, requests) in [
        ("a try that fails uses it up", answer(200_000).cut_after(500), 1),
        ("a second try does", answer(100_000).cut_after(500), 2),
        ("the only answer does", answer(200_000), 1),
    ] {
        let api = FakeApi::start([first, answer(200_000), answer(200_000)]);
        let ran = over(Harness::new(), &api).set("budget = { turn_usd = 0.3 }").prompt("go").run().await;
        let trace = ran.trace();
        assert!(trace.contains("budget for the turn is used up"), "{name}\n{trace}");
        assert!(trace.ends_with("turn ended Budget"), "{name}\n{trace}");
        assert_eq!(api.received().len(), requests, "{name}\n{trace}");
    }
}

#[tokio::test]
async fn sub_agents_spend_what_is_left_of_the_budget_above() {
    let look = || Reply::turn().call("LS", serde_json::json!({ "path": "." })).input(100_000);
    let input = serde_json::json!({ "description": "look", "prompt": "Look.", "subagent_type": "general-purpose" });
    for name in ["turn", "session", "day"] {
        let task = Reply::turn().call("Task", input.clone()).input(100_000);
        let api = FakeApi::start(std::iter::once(task).chain((0..6).map(|_| look())));
        api.allow_other_prefix();
        let budget = format!("budget = {{ {name}_usd = 0.5 }}");
        let ran = over(Harness::new(), &api).set(&budget).prompt("go").run().await;
        let trace = ran.trace();
        assert!(trace.contains(&format!("general-purpose: Stopped: the budget for the {name} is used up")), "{trace}");
        assert!(trace.ends_with("turn ended Budget"), "{trace}");
        assert_eq!(api.received().len(), 3, "{name}\n{trace}");
        let ledger = ran.home().parent().unwrap().join(".local/state/cocode/ledger.jsonl");
        assert_eq!(std::fs::read_to_string(ledger).unwrap().lines().count(), 3, "{name}");
    }
}

#[tokio::test]
async fn agents_at_work_at_once_set_aside_what_they_may_spend() {
    let look = || Reply::turn().call("LS", serde_json::json!({ "path": "." })).input(100_000);
    let input = serde_json::json!({ "description": "look", "prompt": "Look.", "subagent_type": "general-purpose" });
    for name in ["turn", "session", "day"] {
        let tasks = (0..4).fold(Reply::turn().input(100_000), |reply, _| reply.call("Task", input.clone()));
        let api = FakeApi::start(std::iter::once(tasks).chain((0..9).map(|_| look())));
        api.allow_other_prefix();
        let budget = format!("budget = {{ {name}_usd = 0.5 }}");
        let ran = over(Harness::new(), &api).set(&budget).prompt("go").run().await;
        let trace = ran.trace();
        assert!(trace.ends_with("turn ended Budget"), "{trace}");
        // The last one passes the budget, as it does where there is only one agent; none beside it.
        assert_eq!(api.received().len(), 3, "{name}\n{trace}");
    }
    // With room for all of them they work side by side, and what one has set aside another may have afterwards.
    let tasks = (0..4).fold(Reply::turn(), |reply, _| reply.call("Task", input.clone()));
    let done = (0..9).map(|_| Reply::turn().text("Done.").input(10_000));
    let api = FakeApi::start(std::iter::once(tasks).chain(done));
    api.allow_other_prefix();
    let ran = over(Harness::new(), &api).set("budget = { turn_usd = 2.5 }").prompt("go").run().await;
    assert!(ran.trace().ends_with("turn ended Done"), "{}", ran.trace());
    assert_eq!(api.received().len(), 6, "{}", ran.trace());
}

#[tokio::test]
async fn summaries_ask_the_budget() {
    let settings =
        "compact = { keep_recent_tokens = 0, min_messages_before_compact = 1 }\nbudget = { session_usd = 0.3 }";
    let api = FakeApi::start([Reply::turn().text("Hi.").input(100_000), Reply::turn().input(100_000)]);
    api.allow_other_prefix();
    let ran = over(Harness::new(), &api).set(settings).prompt("one").prompt("/compact").prompt("/compact").run().await;
    let trace = ran.trace();
    // A second try of the first one, and the second one.
    let refused = "Nothing was compacted: the budget for the session is used up: $0.";
    assert_eq!((trace.matches(refused).count(), api.received().len()), (2, 2), "{trace}");
    // By itself, in the middle of a turn.
    let api = FakeApi::start([
        Reply::turn().call("LS", serde_json::json!({ "path": "." })).input(190_000),
        Reply::turn().input(190_000),
        Reply::turn().text("Never."),
    ]);
    api.allow_other_prefix();
    let settings =
        "compact = { auto_compact_threshold = 100000, min_messages_before_compact = 1 }\nbudget = { turn_usd = 0.7 }";
    let ran = over(Harness::new(), &api).set(settings).prompt("go").run().await;
    let trace = ran.trace();
    assert!(trace.contains("the budget for the turn is used up") && trace.ends_with("turn ended Budget"), "{trace}");
    assert_eq!(api.received().len(), 2, "{trace}");
}

#[tokio::test]
async fn a_budget_holds_whatever_hides_what_was_spent() {
    let answer = || Reply::turn().text("Hi.").input(100_000);
    // Another model continues.
    let api = FakeApi::start((0..3).map(|_| answer()));
    api.allow_other_prefix();
    let ran = over(Harness::new(), &api).prompt("one").run().await;
    let other = "model = 'fake/claude-opus-5'\nbudget = { session_usd = 0.1 }";
    let ran = over(Harness::after(ran), &api).set(other).prompt("two").run().await;
    let trace = ran.trace();
    assert!(trace.contains("budget for the session is used up: $0."), "{trace}");
    assert_eq!(api.received().len(), 1, "{trace}");
    // The ledger cannot be written or read: what others spend is not known, so nothing is spent.
    let api = FakeApi::start((0..5).map(|_| answer()));
    let ran = over(Harness::new(), &api).home("../.local/state/cocode/ledger.jsonl/x", "");
    let ran = ran.set("budget = { day_usd = 0.5 }").prompt("one").run().await;
    let trace = ran.trace();
    let told = "Stopped: the budget for the day cannot be checked: ";
    assert!(trace.contains(told) && trace.contains("ledger.jsonl cannot be used ("), "{trace}");
    assert!(trace.ends_with("turn ended Budget") && api.received().is_empty(), "{trace}");
    // Without a budget for the day nobody needs it.
    let ran = Harness::after(ran).set("budget = { session_usd = 0.5 }").prompt("one").run().await;
    assert!(ran.trace().ends_with("turn ended Done"), "{}", ran.trace());
}

#[test]
fn the_ledger_has_what_all_processes_spent_whichever_of_them_is_killed() {
    let program = Program::new();
    let call = |path: &str, rest: &str| {
        format!("- reply: [tool: {{name: LS, input: {{path: {path}}}}}, usage: {{input: 1000, output: 10}}{rest}]\n")
    };
    let end = "- reply: [text: Done., usage: {input: 500, output: 5}]\n";
    let whole = program.script("whole.yaml", &(call("a", "") + &call("b", "") + &call("c", "") + end));
    let slow =
        program.script("slow.yaml", &(call("a", "") + &call("b", "") + "- reply: [delay_ms: 60000, text: No.]\n"));
    let start = |script: &str| {
        let args = ["-p", "go", "--output-format", "stream-json", "--offline-script", script];
        program.command(Program::binary(), &args).spawn().unwrap()
    };
    let mut killed = start(&slow);
    let others: Vec<Child> = (0..3).map(|_| start(&whole)).collect();
    // Its second result is there, so the request before it was counted.
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.filter(|line| line.contains(r#""type":"user""#)).take(2).count(), 2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    for other in others {
        let done = other.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let read = |path: PathBuf| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let input = |value: &serde_json::Value| value["input"].as_u64().unwrap_or(0);
    let spent: u64 = program.logs().into_iter().flat_map(read).map(|line| input(&line["message"]["usage"])).sum();
    let ledger = read(program.home().join(".local/state/cocode/ledger.jsonl"));
    assert_eq!((ledger.iter().map(input).sum::<u64>(), ledger.len()), (spent, 14));
    assert_eq!(spent, 3 * 3_500 + 2_000);
}
