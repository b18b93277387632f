//! Sub-agents: launched, watched, limited, cancelled, resumed; what they change and ask belongs to the session.

use std::process::Command;

use cocode::permission::Mode;
use cocode::protocol::{Answer, Event, GrantScope, Op};

use crate::support::harness::{Harness, Ran};

/// A main agent that launches these, all in one reply, and then says `Done.`
fn launching(calls: &[(&str, &str)]) -> String {
    let calls: Vec<String> = calls
        .iter()
        .map(|(kind, prompt)| {
            format!("      - tool: {{ name: Task, input: {{ description: do it, prompt: \"{prompt}\", subagent_type: {kind} }} }}\n")
        })
        .collect();
    format!("- reply:\n{}- reply: [text: Done.]\n", calls.concat())
}

/// One step of a sub-agent.
fn step(kind: &str, reply: &str) -> String {
    format!("- for: agent:{kind}\n  reply: [{reply}]\n")
}

fn bash(command: &str) -> String {
    format!("tool: {{ name: Bash, input: {{ command: \"{command}\" }} }}")
}

/// Lines of the trace that begin with one of these.
fn lines(ran: &Ran, starts: &[&str]) -> String {
    let trace = ran.trace();
    let wanted = trace.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    wanted.collect::<Vec<_>>().join("\n")
}

/// Sub-agents' logs, by name, with the texts of their messages.
fn log_of(ran: &Ran, id: &str) -> String {
    std::fs::read_to_string(ran.log().parent().unwrap().join(format!("agent-{id}.jsonl"))).unwrap()
}

#[tokio::test]
async fn explores_and_reports() {
    let ran = Harness::new()
        .file("src/lib.rs", "fn parse() {}\n")
        .script(&format!(
            "{}{}{}",
            launching(&[("Explore", "Where is parse?")]),
            step("Explore", "tool: { name: Grep, input: { pattern: parse } }"),
            step("Explore", "text: It is in src/lib.rs."),
        ))
        .prompt("go")
        .run()
        .await;
    let told = ["session", "mode", "turn", "prompt", "reply", "call", "task", "toolresult", "text"];
    insta::assert_snapshot!(lines(&ran, &told), @r#"
        session mode=default shown=0
        mode default
        turn started
        prompt go
        reply [Task {"description":"do it","prompt":"Where is parse?","subagent_type":"Explore"}]
        call Task Explore: do it
        task a1 Explore started
        task a1 Explore Grep(parse)
        task a1 Explore Done after 1 calls
        toolresult Ok: It is in src/lib.rs.⏎⏎[agent a1, Explore; `resume: "a1"` continues it]
        text Done.
        reply Done.
        turn ended Done
        "#);
    let log = log_of(&ran, "a1");
    for said in ["# Environment", "Where is parse?", "It is in src/lib.rs.", "\"agent_started\"", "\"mode\":\"plan\""] {
        assert!(log.contains(said), "{said} in {log}");
    }
}

#[tokio::test]
async fn several_run_at_the_same_time() {
    let harness = Harness::new();
    // Writing to a pipe ends when somebody reads it, and the other way round: neither ends alone.
    assert!(Command::new("mkfifo").arg(harness.project().join("pipe")).status().unwrap().success());
    let ran = harness
        .mode(Mode::Bypass)
        .script(&format!(
            "{}{}{}{}{}",
            launching(&[("general-purpose", "write"), ("general-purpose", "read")]),
            step("general-purpose", &bash("echo through > pipe")),
            step("general-purpose", &bash("cat pipe")),
            step("general-purpose", "text: One of the two."),
            step("general-purpose", "text: One of the two."),
        ))
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "turn"]), @r#"
        turn started
        toolresult Ok: One of the two.⏎⏎[agent a1, general-purpose; `resume: "a1"` continues it]
        toolresult Ok: One of the two.⏎⏎[agent a2, general-purpose; `resume: "a2"` continues it]
        turn ended Done
        "#);
    assert!(format!("{}{}", log_of(&ran, "a1"), log_of(&ran, "a2")).contains("through"));
}

#[tokio::test]
async fn the_limit_holds_and_results_keep_the_order_of_the_calls() {
    let run = |seats: u32| async move {
        let ran = Harness::new()
            .set(&format!("agents.max_parallel = {seats}"))
            .script(&format!(
                "{}{}",
                launching(&[("Explore", "one"), ("Explore", "two"), ("Explore", "three")]),
                "- for: agent:Explore\n  repeat: 3\n  reply: [text: Seen.]\n",
            ))
            .prompt("go")
            .run()
            .await;
        let (mut running, mut most) = (0, 0);
        for line in lines(&ran, &["task"]).lines() {
            running = if line.ends_with("started") { running + 1 } else { running - 1 };
            most = most.max(running);
        }
        let results = lines(&ran, &["toolresult"]);
        let at = |id: &str| results.find(id).unwrap();
        assert!(at("agent a1") < at("agent a2") && at("agent a2") < at("agent a3"), "{results}");
        most
    };
    assert_eq!([run(1).await, run(2).await, run(8).await], [1, 2, 3]);
}

#[tokio::test]
async fn what_they_change_is_undone_with_the_turn_and_what_they_cost_is_counted() {
    let ran = Harness::new()
        .file("a.txt", "old\n")
        .mode(Mode::AcceptEdits)
        .script(&format!(
            "{}{}{}{}",
            launching(&[("general-purpose", "change a.txt")]),
            step("general-purpose", "tool: { name: Read, input: { file_path: $P/a.txt } }"),
            step("general-purpose", "tool: { name: Write, input: { file_path: $P/a.txt, content: new } }"),
            step("general-purpose", "text: Changed., usage: { input: 70, output: 7 }"),
        ))
        .prompt("go")
        .prompt("/cost")
        .prompt("/undo")
        .run()
        .await;
    assert_eq!(ran.read("a.txt"), "old\n");
    let spent = ran.session().facts().spent_by_what();
    assert_eq!(spent.len(), 1);
    assert_eq!((spent[0].what.as_str(), spent[0].model.as_str()), ("general-purpose", "offline/script"));
    assert!(spent[0].usage.input > 70, "{spent:?}");
    insta::assert_snapshot!(lines(&ran, &["task", "item"]), @r#"
        task a1 general-purpose started
        task a1 general-purpose Read(a.txt)
        task a1 general-purpose Write(a.txt)
        task a1 general-purpose Done after 2 calls
        item {"type":"files_restored","how":"undo","turn":"go","restored":["$P/a.txt"],"refused":[],"unseen":[]}
        "#);
    assert!(ran.trace().contains("- general-purpose with offline/script: "), "{}", ran.trace());
}

#[tokio::test]
async fn their_questions_name_them_and_a_granted_rule_holds_for_all() {
    let ask = |command: &str| {
        format!(
            "{}{}{}",
            step("general-purpose", &bash(command)),
            step("general-purpose", &bash(command)),
            step("general-purpose", "text: Ran it.")
        )
    };
    let main = "- reply:\n      - tool: { name: Task, input: { description: build it, prompt: p, subagent_type: general-purpose } }\n\
                - reply:\n      - tool: { name: Bash, input: { command: \"touch c\" } }\n- reply: [text: Done.]\n";
    let always = Answer::Always { rules: vec!["Bash(touch:*)".into()], scope: GrantScope::Session };
    let ran = Harness::new().script(&format!("{main}{}", ask("touch b"))).answer(always).prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &["ask", "task", "turn"]), @r#"
        turn started
        task a1 general-purpose started
        task a1 general-purpose waiting for your answer
        ask (general-purpose: build it) Bash touch b ["Bash(touch b)"]
        task a1 general-purpose Bash(touch b)
        task a1 general-purpose Bash(touch b)
        task a1 general-purpose Done after 2 calls
        turn ended Done
        "#);
    assert_eq!(ran.session().facts().grants, ["Bash(touch:*)"]);
}

#[tokio::test]
async fn a_no_without_a_word_stops_the_turn() {
    let ran = Harness::new()
        .script(&format!(
            "{}{}",
            launching(&[("general-purpose", "one"), ("Explore", "two")]),
            step("general-purpose", &bash("touch b")) + &step("Explore", "text: Seen.")
        ))
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["ask", "toolresult", "turn"]), @r#"
        turn started
        ask (general-purpose: do it) Bash touch b ["Bash(touch b)"]
        toolresult Denied: The user denied one of the agent's calls and stopped it.⏎⏎[agent a1, general-purpose; `resume: "a1"` continues it]
        toolresult Ok: Seen.⏎⏎[agent a2, Explore; `resume: "a2"` continues it]
        turn ended Refused
        "#);
}

#[tokio::test]
async fn cancelling_the_agent_cancels_those_below_and_answers_every_call() {
    let ran = Harness::new()
        .mode(Mode::Bypass)
        .set("agents.max_parallel = 2")
        .script(&format!(
            "{}{}",
            launching(&[("general-purpose", "one"), ("general-purpose", "two"), ("general-purpose", "three")]),
            "- for: agent:general-purpose\n  repeat: 3\n  reply: [tool: { name: Bash, input: { command: cat /dev/zero } }]\n",
        ))
        .at("task a2 general-purpose Bash", Op::Interrupt)
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "turn"]), @r#"
        turn started
        toolresult Interrupted: The agent was interrupted.⏎⏎[agent a1, general-purpose; `resume: "a1"` continues it]
        toolresult Interrupted: The agent was interrupted.⏎⏎[agent a2, general-purpose; `resume: "a2"` continues it]
        toolresult Interrupted: The agent was interrupted.
        turn ended Interrupted
        "#);
    // Their logs can be gone on with.
    let below = ran.session().transcripts().resume("a1").unwrap();
    assert!(below.context().messages().iter().any(|message| message.results().next().is_some()));
}

#[tokio::test]
async fn an_earlier_one_goes_on_by_its_id() {
    let resume = |id: &str, kind: &str| {
        format!(
            "- reply: [tool: {{ name: Task, input: {{ description: more, prompt: And then?, subagent_type: {kind}, resume: {id} }} }}]\n"
        )
    };
    let ran = Harness::new()
        .script(&format!(
            "{}{}{}{}{}{}",
            "- reply: [tool: { name: Task, input: { description: look, prompt: First., subagent_type: Explore } }]\n",
            resume("a1", "Explore"),
            resume("a7", "Explore"),
            resume("a1", "Plan") + "- reply: [text: Done.]\n",
            step("Explore", "text: Found one."),
            "- for: agent:Explore\n  expect: { contains: \"And then?\", messages: 4 }\n  reply: [text: Found two.]\n",
        ))
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["task", "toolresult", "turn"]), @r#"
        turn started
        task a1 Explore started
        task a1 Explore Done after 0 calls
        toolresult Ok: Found one.⏎⏎[agent a1, Explore; `resume: "a1"` continues it]
        task a1 Explore started
        task a1 Explore Done after 0 calls
        toolresult Ok: Found two.⏎⏎[agent a1, Explore; `resume: "a1"` continues it]
        toolresult Error: No agent "a7" to resume. Agents in this session: a1.
        toolresult Error: Agent a1 is of type Explore: resume it with that `subagent_type`, or launch a new one.
        turn ended Done
        "#);
}

#[tokio::test]
async fn plan_mode_binds_them() {
    let changes = ["touch b", "echo x > b", "git commit -m x"].map(|command| step("Explore", &bash(command)));
    let ran = Harness::new()
        .mode(Mode::Plan)
        .file(
            ".claude/agents/lax.md",
            "---\nname: lax\ndescription: d\ntools: Read, Bash\npermission_mode: bypassPermissions\n---\nYou.\n",
        )
        .file("../.claude/agents/shadow.md", "---\nname: Plan\ndescription: d\ntools: Read, Write\n---\nYou.\n")
        .script(&format!(
            "{}{}{}",
            launching(&[("general-purpose", "x"), ("lax", "x"), ("Plan", "x"), ("Explore", "x")]),
            changes.concat(),
            step("Explore", "tool: { name: Write, input: { file_path: $P/b, content: x } }")
                + &step(
                    "Explore",
                    "tool: { name: Task, input: { description: d, prompt: p, subagent_type: Explore } }"
                )
                + &step("Explore", "text: Nothing worked."),
        ))
        .prompt("go")
        .run()
        .await;
    assert!(!ran.project().join("b").exists());
    let told = lines(&ran, &["ask", "task", "toolresult", "turn"]);
    let short = told.lines().map(|line| line.split(" Plan mode is on:").next().unwrap());
    insta::assert_snapshot!(short.collect::<Vec<_>>().join("\n"), @r#"
        turn started
        task a1 Explore started
        task a1 Explore Done after 0 calls
        toolresult Denied: Denied: plan mode only launches read-only agents, such as Explore.
        toolresult Denied: Denied: plan mode only launches read-only agents, such as Explore.
        toolresult Denied: Denied: plan mode only launches read-only agents, such as Explore.
        toolresult Ok: Nothing worked.⏎⏎[agent a1, Explore; `resume: "a1"` continues it]
        turn ended Done
        "#);
    let log = log_of(&ran, "a1");
    assert_eq!(log.matches("\"outcome\":\"denied\"").count(), 3, "{log}");
    assert!(log.contains("-agent-a1.md"), "its own plan file in {log}");
    assert!(!log.contains("ExitPlanMode"), "{log}");
    assert!(log.contains("There is no tool named \\\"Task\\\""), "{log}");
}

#[tokio::test]
async fn a_mode_that_gets_stricter_meanwhile_holds_below() {
    let ran = Harness::new()
        .script(&format!(
            "{}{}{}",
            launching(&[("general-purpose", "x")]),
            step("general-purpose", &bash("touch b")),
            step("general-purpose", "text: No.")
        ))
        .unanswered()
        .at("ask (general-purpose", Op::SetMode { mode: Mode::Plan })
        .prompt("go")
        .run()
        .await;
    assert!(!ran.project().join("b").exists());
    insta::assert_snapshot!(lines(&ran, &["ask", "task", "mode", "turn"]), @r#"
        mode default
        turn started
        task a1 general-purpose started
        task a1 general-purpose waiting for your answer
        ask (general-purpose: do it) Bash touch b ["Bash(touch b)"]
        mode plan
        task a1 general-purpose Done after 0 calls
        turn ended Done
        "#);
}

#[tokio::test]
async fn rules_for_types_and_failures_are_results() {
    let ran = Harness::new()
        .set("permissions.deny = [\"Agent(Plan)\"]")
        .script(&format!(
            "{}{}",
            launching(&[("Plan", "x"), ("Nobody", "x"), ("Explore", "x")]),
            step("Explore", "error: { kind: bad_request, message: no }"),
        ))
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(lines(&ran, &["task", "toolresult", "turn"]), @r#"
        turn started
        task a1 Explore started
        task a1 Explore Failed after 0 calls
        toolresult Denied: Denied: deny rule Agent(Plan) (command line).
        toolresult Error: No agent type "Nobody". The types are: general-purpose, Explore, Plan.
        toolresult Error: The agent failed: the provider rejected the request (400): no⏎⏎[agent a1, Explore; `resume: "a1"` continues it]
        turn ended Done
        "#);
}

#[tokio::test]
async fn definitions_decide_on_tools_prompt_and_calls() {
    let ran = Harness::new()
        .file(
            ".claude/agents/one.md",
            "---\nname: one\ndescription: d\ndisallowedTools: Write, Bash(touch:*)\nmaxTurns: 2\n---\nYou are one.\n",
        )
        .mode(Mode::Bypass)
        .script(&format!(
            "{}{}{}",
            launching(&[("one", "x")]),
            step("one", "tool: { name: Write, input: { file_path: $P/b, content: x } }"),
            step("one", &bash("touch b"))
        ))
        .prompt("go")
        .run()
        .await;
    assert!(!ran.project().join("b").exists());
    insta::assert_snapshot!(lines(&ran, &["task", "toolresult", "turn"]), @r#"
        turn started
        task a1 one started
        task a1 one MaxTurns after 0 calls
        toolresult Error: The agent reached its limit of model calls; its work is incomplete.⏎⏎[agent a1, one; `resume: "a1"` continues it]
        turn ended Done
        "#);
    let log = log_of(&ran, "a1");
    assert!(log.contains("There is no tool named \\\"Write\\\"") && log.contains("deny rule Bash(touch:*)"), "{log}");
}

#[tokio::test]
async fn a_planning_agent_may_ask_and_knows_its_plan_file() {
    let question = "tool: { name: AskUserQuestion, input: { questions: [{ header: H, question: Which?, options: [{ label: a, description: b }, { label: c, description: d }] }] } }";
    for kind in ["Explore", "Plan"] {
        let ran = Harness::new()
            .mode(Mode::Plan)
            .script(&format!(
                "{}{}- for: agent:{kind}\n  expect: {{ contains: \"→ a\" }}\n  reply: [text: It is a.]\n",
                launching(&[(kind, "Look.")]),
                step(kind, question),
            ))
            .answer(Answer::Chosen { answers: vec![vec!["a".into()]] })
            .prompt("go")
            .run()
            .await;
        assert!(ran.trace().contains("It is a."), "{}", ran.trace());
        let log = log_of(&ran, "a1");
        // It has no tool to write the file with.
        assert!(log.contains("It does not exist yet.") && !log.contains("create it with Write"), "{log}");
        let asker = ran.events.iter().find_map(|event| match event {
            Event::Ask(ask) => Some(ask.asker.as_ref()?.agent.clone()),
            _ => None,
        });
        assert_eq!(asker.as_deref(), Some(kind), "{}", ran.trace());
    }
}

#[tokio::test]
async fn definitions_are_listed() {
    let ran = Harness::new()
        .file(".claude/agents/one.md", "---\nname: Explore\ndescription: Mine.\nmodel: haiku\n---\nYou are one.\n")
        .file(".claude/agents/two.md", "no frontmatter")
        .prompt("/agents")
        .run()
        .await;
    let told = lines(&ran, &["notice"]).replace('⏎', "\n");
    insta::assert_snapshot!(told, @r"
        notice Ignored from this folder: the agent Explore: the model haiku, the agent Explore of this folder, which replaces yours. cocode asks again at the next start.
        notice Agents the model can launch with the Task tool:

        - **general-purpose** — Works on a multi-step task on its own: searching when you do not know where to look, changing code, checking it.
          built in · tools: all · model: the session's
        - **Explore** — Explores a code base and reports, with paths and lines. Changes nothing. Say how thorough to be: quick, medium or very thorough.
          built in · tools: Read, Grep, Glob, LS, Bash, WebFetch, WebSearch, TodoWrite, AskUserQuestion, Recall · model: the session's · read-only
        - **Plan** — Designs a change: steps, critical files, trade-offs. Changes nothing.
          built in · tools: Read, Grep, Glob, LS, Bash, WebFetch, WebSearch, TodoWrite, AskUserQuestion, Recall · model: the session's · read-only
        - **Explore** — Mine.
          `$P/.claude/agents/one.md` · tools: all · model: the session's · **shadowed** by the built-in one

        Problems in files:

        - $P/.claude/agents/two.md: no frontmatter with `name` and `description`; it is ignored

        Define your own in `.claude/agents/<name>.md`.
        ");
}
