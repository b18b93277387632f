//! What a definition of a sub-agent says, and what comes of it: skills that it begins with, how hard it thinks, mistakes.

use cocode::permission::Mode;
use cocode::protocol::report::Report;
use cocode::protocol::{Answer, Event, Op};
use cocode::provider::settings::WireName;
use cocode::report;
use cocode::thinking::Level;
use serde_json::{Value, json};

use crate::support::fake_api::{FakeApi, Reply};
use crate::support::harness::{Harness, Ran};
use crate::support::program::Program;

/// A definition of the user's own.
fn agent(harness: Harness, head: &str) -> Harness {
    harness.home("agents/one.md", &format!("---\nname: one\ndescription: d\n{head}\n---\nYou are one.\n"))
}

fn skill(harness: Harness, name: &str, head: &str, body: &str) -> Harness {
    harness.home(&format!("skills/{name}/SKILL.md"), &format!("---\ndescription: d\n{head}\n---\n{body}\n"))
}

const LAUNCH: &str = "- reply: [tool: { name: Task, input: { description: d, prompt: Go., subagent_type: one } }]\n";

fn log_of(ran: &Ran, id: &str) -> Vec<Value> {
    let log = std::fs::read_to_string(ran.log().parent().unwrap().join(format!("agent-{id}.jsonl"))).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Kind and text of what the sub-agent read, the opening and the list of skills left out.
fn read_by(ran: &Ran, id: &str) -> Vec<(String, String)> {
    let message = |line: &Value| {
        let message = line.get("message")?;
        let text = message["blocks"][0]["text"].as_str()?.to_owned();
        let told = message["agent_visible"] != false && !text.contains("# Environment") && !text.contains("# Skills");
        told.then(|| (message["kind"].as_str().unwrap_or("prompt").to_owned(), text))
    };
    log_of(ran, id).iter().filter_map(message).collect()
}

#[tokio::test]
async fn it_begins_with_the_skills_that_its_definition_names() {
    let more = "- reply: [tool: { name: Task, input: { description: d, prompt: More., subagent_type: one, resume: a1 } }]\n\
                - reply: [text: Done.]\n";
    let script = format!(
        "{LAUNCH}{more}- for: agent:one\n  reply: [text: First.]\n\
         - for: agent:one\n  reply: [text: Second.]\n"
    );
    let harness = agent(Harness::new(), "skills: [greet, missing, own]\ntools: Bash");
    let harness = skill(harness, "greet", "allowed-tools: Bash(expr:*)", "Greet. Counted !`expr 1 + 2` for you.");
    let harness = skill(harness, "own", "disable-model-invocation: true", "Never read.");
    let ran = harness.script(&script).prompt("go").run().await;
    let read = read_by(&ran, "a1");
    assert!(read[0].1.contains("Greet. Counted 3 for you."), "{read:#?}");
    let rest: Vec<(&str, &str)> = read[1..].iter().map(|(kind, text)| (kind.as_str(), text.as_str())).collect();
    // A session that continues has it already.
    assert_eq!(rest, [("prompt", "Go."), ("reply", "First."), ("prompt", "More."), ("reply", "Second.")]);
    let trace = ran.trace();
    let told: Vec<&str> = trace.lines().filter(|line| line.starts_with("notice")).collect();
    let told = told[..told.len() / 2].join("\n");
    insta::assert_snapshot!(told, @r"
    notice one: `skills` of its definition: No skill `missing`.
    notice one: `skills` of its definition: Only the user can start the skill `own`, as `/own`.
    ");
    // The rule of the skill was for its text alone.
    assert!(!trace.contains("\nask "), "{trace}");
}

#[tokio::test]
async fn a_skill_that_it_begins_with_is_bound_by_its_mode() {
    let harness = agent(Harness::new(), "skills: greet\npermission_mode: plan");
    let harness = skill(harness, "greet", "allowed-tools: Bash, Write", "Greet !`touch made` and !`touch $PWD/too`.");
    let script = format!("{LAUNCH}- reply: [text: Done.]\n- for: agent:one\n  reply: [text: Hm.]\n");
    let ran = harness.mode(Mode::Bypass).script(&script).prompt("go").run().await;
    let read = read_by(&ran, "a1");
    assert_eq!(read[0].1.matches("plan mode runs only what is known to read").count(), 2, "{read:#?}");
    assert!(!ran.project().join("made").exists() && !ran.project().join("too").exists());
}

/// Settings that ask this server, whose requests need not begin alike.
fn provider(api: &FakeApi) -> String {
    api.allow_other_prefix();
    let url = api.base_url(WireName::Openai);
    format!("model = 'fake/gpt-5.4'\n[providers.fake]\nwire = 'openai'\nbase_url = '{url}'\n")
}

/// The effort of each request, of the agent that is asked first, then below it, then again.
async fn efforts(head: &str, setup: impl FnOnce(Harness) -> Harness) -> Vec<String> {
    let call = json!({ "description": "d", "prompt": "Go.", "subagent_type": "one" });
    let api = FakeApi::start([
        Reply::turn().call("Task", call),
        Reply::turn().call("Bash", json!({ "command": "touch x" })),
        Reply::turn().text("Seen."),
        Reply::turn().text("Done."),
    ]);
    let provider = provider(&api);
    let ran = setup(agent(Harness::new(), head).set(&provider)).answer(Answer::Yes).prompt("go").run().await;
    api.assert_clean();
    let received = api.received();
    assert_eq!(received.len(), 4, "{}", ran.trace());
    let effort = |body: &Value| body.pointer("/reasoning/effort").and_then(Value::as_str).unwrap_or("-").to_owned();
    received.iter().map(|request| effort(&request.body)).collect()
}

#[tokio::test]
async fn it_thinks_as_the_session_does_unless_its_definition_says_otherwise() {
    assert_eq!(efforts("", |run| run).await, ["-", "-", "-", "-"]);
    assert_eq!(efforts("", |run| run.prompt("/thinking ultra")).await, ["xhigh"; 4]);
    assert_eq!(efforts("", |run| run.prompt("/thinking none")).await, ["none"; 4]);
    assert_eq!(efforts("", |run| run.thinking("deep")).await, ["high"; 4]);
    assert_eq!(efforts("effort: medium", |run| run).await, ["-", "high", "high", "-"]);
    assert_eq!(efforts("effort: low", |run| run.prompt("/thinking ultra")).await, ["xhigh", "none", "none", "xhigh"]);
    assert_eq!(efforts("effort: medium", |run| run.thinking("ultra")).await, ["xhigh", "high", "high", "xhigh"]);
    // The environment decides over everything.
    let env = |run: Harness| run.env("COCODE_THINKING_LEVEL", "deep");
    assert_eq!(efforts("effort: high", env).await, ["high"; 4]);
    // A key that is pressed while it runs counts from its next request on.
    let press = || Op::SetThinking { level: Some(Level::UltraThink) };
    let pressed = |run: Harness| run.at("ask (one", press());
    assert_eq!(efforts("", pressed).await, ["-", "-", "xhigh", "xhigh"]);
    let pressed = |run: Harness| run.at("ask (one", press());
    assert_eq!(efforts("effort: medium", pressed).await, ["-", "high", "high", "xhigh"]);
}

#[tokio::test]
async fn mistakes_are_listed_with_what_to_write_instead() {
    let head = "tools: Read, Grepp, Task, mcp__x__y\nskills: missing\ncolor: red\nmodell: opus\neffort: much\nhooks:\n  Stopp: []";
    let one = format!("---\nname: one\ndescription: d\n{head}\n---\nYou are one.\n");
    let harness = Harness::new()
        .file(".claude/agents/one.md", &one)
        .file(".claude/agents/none.md", "---\nname: none\ndescription: d\ntools: Wrote\n---\nYou.\n")
        .file(".claude/agents/open.md", "---\nname: open\ndescription: d\ndisallowed_tools: Bash(rm\n---\nYou.\n");
    let ran = harness.prompt("/agents").run().await;
    let notice = ran.events.iter().find_map(|event| match event {
        Event::Report(report @ Report::Agents(_)) => Some(report::markdown(report)),
        _ => None,
    });
    let notice = notice.unwrap().replace(&*ran.project().to_string_lossy(), "$P");
    let wrong = notice.split("Problems in files:\n\n").nth(1).unwrap();
    insta::assert_snapshot!(wrong);
    let program = Program::new().file(".claude/agents/a.md", "---\nname: a\ndescription: d\ntoolz: x\n---\nYou.\n");
    let told = program.run(&["doctor"]).out;
    assert!(told.contains("ok    agents     4 kinds"), "{told}");
    assert!(told.contains("a.md: unknown field `toolz`; the fields are name,"), "{told}");
}

#[tokio::test]
async fn it_is_asked_with_the_model_that_is_named_for_it() {
    let check = async |head: &str, model: Option<&str>, want: Result<&str, &str>| {
        let mut call = json!({ "description": "d", "prompt": "Go.", "subagent_type": "one" });
        if let Some(model) = model {
            call["model"] = json!(model);
        }
        let api = FakeApi::start([
            Reply::turn().call("Task", call),
            Reply::turn().text("Seen."),
            Reply::turn().text("Done."),
        ]);
        let provider = provider(&api);
        let ran = agent(Harness::new(), head).set(&provider).prompt("go").run().await;
        let received = api.received();
        let asked: Vec<&str> = received.iter().map(|request| request.body["model"].as_str().unwrap()).collect();
        match want {
            Ok(name) => assert_eq!(asked, ["gpt-5.4", name, "gpt-5.4"], "{head} {model:?}: {}", ran.trace()),
            // The model above is told, and continues.
            Err(why) => {
                assert_eq!(asked, ["gpt-5.4", "gpt-5.4"], "{head} {model:?}");
                assert!(received[1].raw.contains(why), "{head} {model:?}: {}", ran.trace());
            }
        }
    };
    check("", None, Ok("gpt-5.4")).await;
    check("model: inherit", None, Ok("gpt-5.4")).await;
    check("model: fake/gpt-5.4-mini", None, Ok("gpt-5.4-mini")).await;
    check("model: fake/gpt-5.4-mini", Some("fake/gpt-5.4-nano"), Ok("gpt-5.4-nano")).await;
    check("model: nobody/knows", None, Err("nobody")).await;
}

#[tokio::test]
async fn its_hooks_live_as_long_as_it_does() {
    let hook = |event: &str| {
        format!("  {event}:\n    - hooks: [{{ type: command, command: \"echo {event} >> $CLAUDE_PROJECT_DIR/seen\" }}]")
    };
    let head = format!("hooks:\n{}\n{}", hook("PreToolUse"), hook("Stop"));
    let ls = "tool: { name: LS, input: { path: . } }";
    let script = format!(
        "- reply: [{ls}]\n{LAUNCH}- reply: [{ls}]\n- reply: [text: Done.]\n\
         - for: agent:one\n  reply: [{ls}]\n- for: agent:one\n  reply: [text: Seen.]\n"
    );
    let text = format!("---\nname: one\ndescription: d\n{head}\n---\nYou are one.\n");
    let ran = Harness::new().home("agents/one.md", &text).script(&script).prompt("go").run().await;
    assert_eq!(ran.read("seen"), "PreToolUse\nStop\n", "{}", ran.trace());
    // One of a project that is not trusted runs none.
    let ran = Harness::new().file(".claude/agents/one.md", &text).script(&script).prompt("go").run().await;
    assert!(!ran.project().join("seen").exists(), "{}", ran.trace());
}
