//! What a broken prompt cache costs is said, with its cause, whatever front end runs.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cocode::protocol::{Event, UsageInfo};
use cocode::provider::settings::WireName;
use cocode::session::entry::{By, CacheBreak, Cause};

use crate::support::fake_api::{FakeApi, Reply};
use crate::support::harness::{Harness, Ran};
use crate::support::program::Program;

static PASSED: AtomicU64 = AtomicU64::new(0);

fn clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + PASSED.load(Ordering::Relaxed))
}

fn over(harness: Harness, api: &FakeApi) -> Harness {
    let base = api.base_url(WireName::Anthropic);
    let provider = format!("[providers.fake]\nwire = 'anthropic'\nbase_url = '{base}'\n");
    harness.set(&format!("model = 'fake/claude-sonnet-5'\n{provider}")).clock(clock)
}

fn breaks(ran: &Ran) -> Vec<CacheBreak> {
    let broke = |event: &Event| match event {
        Event::Usage(UsageInfo { cache, .. }) => cache.as_deref().cloned(),
        _ => None,
    };
    ran.events.iter().filter_map(broke).collect()
}

#[tokio::test]
async fn a_session_is_followed_over_models_pauses_and_resumes() {
    let long = "words and more words ".repeat(600);
    let api = FakeApi::start((0..9).map(|_| Reply::turn().text("Yes.")));
    api.caching(clock);
    // Pure additions are read back, in a session and over a resume.
    let ran = over(Harness::new(), &api).prompt(&long).prompt("two").run().await;
    assert_eq!(breaks(&ran), []);
    let ran = over(Harness::after(ran), &api).prompt("three").run().await;
    assert_eq!(breaks(&ran), [], "{}", ran.trace());
    // Ten minutes later nothing of it is left.
    PASSED.store(600, Ordering::Relaxed);
    let ran = over(Harness::after(ran), &api).prompt("four").prompt("five").run().await;
    let found = breaks(&ran);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].cause, Cause::Expired { gap: 600, ttl: 300 });
    assert!(found[0].again > 5_000 && found[0].read == 0, "{found:?}");
    // Another model reads nothing of the first one's.
    api.allow_other_prefix();
    let ran = over(Harness::after(ran), &api).prompt("/model fake/claude-opus-5").prompt("six").prompt("seven").run();
    let ran = ran.await;
    let by = By::Model { from: "fake/claude-sonnet-5".into(), to: "fake/claude-opus-5".into() };
    let causes: Vec<Cause> = breaks(&ran).into_iter().map(|broke| broke.cause).collect();
    assert_eq!(causes, [Cause::Changed { segment: "model".into(), offset: 0, by }]);
    // The session remembers all of them.
    let ran = over(Harness::after(ran), &api).prompt("/cost").prompt("/cost why").prompt("/cost why 2").run().await;
    let trace = ran.trace();
    for said in [
        "It broke 2 times:",
        "it expired (10 min since the last request, kept for 5 min)",
        "model changed from fake/claude-sonnet-5 to fake/claude-opus-5",
        "First difference: `model`, byte 0 of the request",
    ] {
        assert!(trace.contains(said), "{said}\n{trace}");
    }
}

#[tokio::test]
async fn a_session_keeps_the_words_it_began_with_until_a_compaction() {
    let long = || Reply::turn().text(&"words and more words ".repeat(900));
    let short = || Reply::turn().text("<summary>All is well.</summary>");
    let api = FakeApi::start([long(), long(), long(), long(), short(), short(), short()]);
    api.allow_other_prefix();
    api.caching(clock);
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
        // What was spent stands in the ledger, for every other process.
        let ledger =
            std::fs::read_to_string(ran.home().parent().unwrap().join(".local/state/cocode/ledger.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum: f64 = lines.iter().map(|line| line["usd"].as_f64().unwrap()).sum();
        let cost = ran.session().facts().usage();
        assert_eq!(lines.iter().map(|line| line["input"].as_u64().unwrap()).sum::<u64>(), cost.input);
        assert!(sum >= 0.5, "{sum}");
    }
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
