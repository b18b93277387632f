//! What a broken prompt cache costs is said, with its cause, whatever front end runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cocode::protocol::{Event, UsageInfo};
use cocode::provider::settings::WireName;
use cocode::session::entry::{By, CacheBreak, Cause};

use crate::support::fake_api::{FakeApi, Reply};
use crate::support::harness::{Harness, Ran};

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
