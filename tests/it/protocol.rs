//! Op and Event as they go over a wire: every variant once. A change here breaks front ends that others wrote.

use std::sync::Arc;

use cocode::commands::report::SkillRow;
use cocode::commands::{Builtin, Registry};
use cocode::hooks::{Ended, Origin, Report};
use cocode::message::{CallId, Message, Todo, TodoStatus, Usage};
use cocode::permission::{Behavior, Mode};
use cocode::plugins::Summary;
use cocode::protocol::task::Step;
use cocode::protocol::*;
use cocode::provider::key::Secret;
use cocode::session::entry::{Begun, Restore, TaskSort};
use cocode::stdx::outside::Call;
use cocode::thinking::{Keywords, Level, Override, Source};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// One line for each value, which must come back as it was.
fn lines<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(values: &[T]) -> String {
    let line = |value: &T| {
        let line = serde_json::to_string(value).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&line).unwrap(), value);
        line
    };
    values.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn ops() {
    let ops = [
        Op::Prompt {
            text: "go".into(),
            attachments: vec!["a.txt".into()],
            delivery: Delivery::Steer,
            thinking: None,
            data: Vec::new(),
        },
        Op::Prompt {
            text: "go".into(),
            attachments: Vec::new(),
            delivery: Delivery::AfterTurn,
            thinking: Some(Override { level: Level::DeepThink, budget: Some(9_000) }),
            data: Vec::from([1..2, 3..4]),
        },
        Op::Shell { command: "ls".into() },
        Op::Command { name: "model".into(), args: "opus".into() },
        Op::Answer { id: AskId(1), answer: Answer::Yes },
        Op::Answer { id: AskId(1), answer: Answer::AllEdits },
        Op::Answer { id: AskId(1), answer: Answer::Nobody { told: "nobody is there".into() } },
        Op::Answer { id: AskId(1), answer: Answer::Rewrite { text: "mine".into() } },
        Op::Answer {
            id: AskId(1),
            answer: Answer::Always { rules: vec!["Bash(ls:*)".into()], scope: GrantScope::Project },
        },
        Op::Answer { id: AskId(1), answer: Answer::No { feedback: Some("not so".into()) } },
        Op::Answer { id: AskId(1), answer: Answer::Fork },
        Op::Answer { id: AskId(1), answer: Answer::ReadOnly },
        Op::Answer { id: AskId(1), answer: Answer::Approve { how: Approval::AcceptEdits } },
        Op::Answer { id: AskId(1), answer: Answer::Approve { how: Approval::AskEach } },
        Op::Answer { id: AskId(1), answer: Answer::Approve { how: Approval::FreshContext } },
        Op::Answer { id: AskId(1), answer: Answer::Chosen { answers: vec![vec!["a".into(), "b".into()], vec![]] } },
        Op::Interrupt,
        Op::Background,
        Op::Unqueue { id: QueueId(2) },
        Op::SetMode { mode: Mode::AcceptEdits },
        Op::SetThinking { level: Some(Level::DeepThink) },
        Op::SetThinking { level: None },
        Op::Rewind { to: 3, what: RewindWhat::Both },
        Op::Remember("go".into()),
        Op::StoreKey { provider: "p".into(), key: Secret::new("k").unwrap() },
        Op::Set { key: "tui.theme".into(), value: Some("dark".into()), place: SettingPlace::User },
        Op::Set { key: "tui.theme".into(), value: None, place: SettingPlace::Project },
        Op::FindServer,
        Op::Find { words: "heron port".into() },
        Op::List { what: ListKind::Sessions },
        Op::Agent { id: "a1".into() },
        Op::Earlier { part: Part::Before(7) },
        Op::Earlier { part: Part::Between(0, 7) },
        Op::Answer {
            id: AskId(1),
            answer: Answer::Changed { input: json!({ "command": "ls -a" }), then: Box::new(Answer::Yes) },
        },
        Op::Return { id: AskId(1), answer: Ok(json!({})) },
        Op::Return { id: AskId(1), answer: Err("gone".into()) },
        Op::Server { change: ServerChange::Reconnect { name: "srv".into() } },
        Op::Server { change: ServerChange::Switch { name: "srv".into(), on: false } },
        Op::Server { change: ServerChange::Given { servers: json!({}) } },
        Op::Commands,
        Op::Shutdown,
    ];
    insta::assert_snapshot!(lines(&ops));
}

fn questions() -> Vec<Question> {
    vec![
        Question::Permission {
            call: CallId::nth(1),
            tool: "Bash".into(),
            title: "ls".into(),
            input: json!({ "command": "ls" }),
            diff: None,
            reasons: vec!["why".into()],
            suggestions: vec!["Bash(ls:*)".into()],
            all_edits: true,
            session_only: false,
            confined: false,
            unasked: false,
            preset: None,
        },
        Question::Trust {
            folder: "/p".into(),
            plugin: None,
            uses: vec!["a rule".into()],
            kept: vec!["a hook".into()],
            gone: Vec::new(),
        },
        Question::Connect {
            call: CallId::nth(1),
            command: "cargo build".into(),
            place: "crates.io:443".into(),
            reasons: vec!["no rule allows crates.io".into()],
            suggestions: vec!["WebFetch(domain:crates.io)".into()],
            preset: Some(PresetGrant { name: "cargo".into(), rules: vec!["WebFetch(domain:crates.io)".into()] }),
        },
        Question::LocalServer { url: "http://127.0.0.1:1".into(), model: "m".into() },
        Question::Repeated { tool: "LS".into(), title: ".".into(), times: 5 },
        Question::Unrecorded { path: "/p/a.txt".into() },
        Question::Locked { session: "id".into() },
        Question::Import { file: "/p/AGENTS.md".into(), import: "/etc/x".into(), reason: "it is outside".into() },
        Question::EnterPlan { reason: Some("many files".into()) },
        Question::Plan { plan: "# Do it".into(), path: "/h/plans/p.md".into() },
        Question::Choices { questions: vec![choices()] },
    ]
}

fn choices() -> Choices {
    let option = ChoiceOption { label: "SQLite".into(), description: "one file".into() };
    Choices { header: "Store".into(), question: "Which store?".into(), multi: true, options: vec![option] }
}

fn items() -> Vec<Item> {
    let paths = || vec!["/p/a".into()];
    vec![
        Item::Message { seq: 1, message: Arc::new(Message::prompt("go")) },
        Item::CallStarted { call: CallId::nth(1), tool: "LS".into(), title: ".".into() },
        Item::ShellStarted { command: "ls".into() },
        Item::ShellDone { command: "ls".into(), output: "a".into(), code: Some(0) },
        Item::FilesRestored {
            how: Restore::Undo,
            turn: Some("go".into()),
            restored: paths(),
            merged: vec![],
            refused: vec![],
            by: vec![ChangedBy {
                path: "/p/a".into(),
                by: vec![Author { command: "rm a".into(), agent: Some("Explore".into()) }],
            }],
            unseen: vec![],
        },
        Item::Rewound { to: 1, prompt: "go".into() },
        Item::Note { text: "left".into() },
    ]
}

#[test]
fn events() {
    let model =
        ModelInfo { provider: "p".into(), model: "m".into(), window: 1, known: true, probing: false, local: false };
    let session = SessionInfo {
        id: "id".into(),
        cwd: "/p".into(),
        title: None,
        mode: Mode::Default,
        model: model.clone(),
        tools: vec!["Read".into()],
        history: vec![
            HistoryItem::Note { text: "before".into() },
            HistoryItem::Compacted { receipt: Receipt::default(), summary: "s".into() },
        ],
        older: 0,
        log: "/h/id/transcript.jsonl".into(),
        read_only: false,
        sandbox: cocode::sandbox::Status { level: cocode::sandbox::Level::Kernel, why: "why".into() },
        servers: Vec::new(),
        plugins: Summary { loaded: Vec::new(), errors: vec![("x@y".into(), "is gone".into())] },
        agents: vec!["explore".into()],
        output_style: "default".into(),
    };
    let thinking = ThinkingInfo {
        level: Level::DeepThink,
        asked: Level::UltraThink,
        source: Source::Session,
        budget: Some(16_000),
        session: Some(Level::UltraThink),
        supported: vec![Level::None, Level::DeepThink],
        locked: None,
        keywords: Keywords { deep: vec!["deepthink".into()], ultra: vec![] },
    };
    let usage = UsageInfo {
        total: Usage::default(),
        cost_usd: Some(0.5),
        context: 1,
        window: 2,
        left: 50,
        fullness: Fullness::Warning,
        cache: None,
    };
    let todo = Todo { content: "do".into(), active_form: "doing".into(), status: TodoStatus::Pending };
    let mut events = vec![
        Event::Session(session),
        Event::Turn(Turn::Started),
        Event::Turn(Turn::Ended { end: TurnEnd::Done, usage: Usage::default(), cost_usd: None, millis: 1 }),
        Event::Turn(Turn::Spent {
            api_millis: 1,
            models: vec![ModelShare {
                model: "p/m".into(),
                usage: Usage::default(),
                cost_usd: Some(0.5),
                limits: Some((8, 2)),
            }],
        }),
        Event::Call {
            id: AskId(1),
            call: Call::Hook { hook: "h".into(), input: json!({}), call: Some("call_1".into()) },
        },
        Event::Call { id: AskId(1), call: Call::Message { server: "srv".into(), message: json!({}) } },
        Event::Delta(Delta::Text { text: "a".into() }),
        Event::Delta(Delta::Thinking { text: "a".into() }),
        Event::Delta(Delta::ToolArgs { name: "LS".into(), bytes: 1 }),
        Event::Delta(Delta::ToolOutput { call: CallId::nth(1), text: "a".into() }),
        Event::Delta(Delta::Discarded { reason: "cut".into() }),
        Event::AskClosed { id: AskId(1) },
        Event::Mode(ModeChange::Changed { mode: Mode::Plan }),
        Event::Mode(ModeChange::PlanEntered { plan_file: "/h/plans/p.md".into() }),
        Event::Mode(ModeChange::PlanExited { approved: true }),
        Event::Thinking(Thinking::Level(thinking)),
        Event::Thinking(Thinking::Complete { tokens: 7 }),
        Event::Usage(usage),
        Event::Retrying { attempt: 1, of: 10, delay_ms: 500, reason: "busy".into() },
        Event::Todos { items: vec![todo.clone()] },
        Event::Queue { items: vec![Queued { id: QueueId(1), text: "go".into(), delivery: Delivery::AfterTurn }] },
        Event::Compaction(Compaction::Started { trigger: Trigger::Auto, tokens: 1 }),
        Event::Compaction(Compaction::Completed { receipt: Receipt::default(), summary: "s".into() }),
        Event::Compaction(Compaction::Failed {
            trigger: Trigger::Auto,
            reason: FailureReason::NoSummary,
            text: "t".into(),
            usage: Usage::default(),
            cost_usd: Some(0.5),
        }),
        Event::Notice { text: "note".into() },
        Event::Report(report::Report::Todos(vec![todo.clone()])),
        Event::Report(report::Report::Window(report::Window {
            model: "p/m".into(),
            tokens: Some(9),
            used: 2,
            left: 98,
            messages: 1,
            marks: report::Marks { available: 8, warning: 5, target: 6, blocking: 7, max_messages: None },
            auto: true,
            parts: vec![(report::Part::Messages, 2)],
            duplicates: Vec::new(),
            compactions: Vec::new(),
        })),
        Event::Error { text: "bad".into(), restore: Some("go".into()) },
        Event::Model(model),
        Event::Commands { registry: Registry::of(vec![Registry::builtin().find("cost").unwrap().clone()]) },
        Event::Listed(Listed::Skills(vec![SkillRow {
            command: Some("/x".into()),
            name: "x".into(),
            detail: "d".into(),
            path: Some("/s/x/SKILL.md".into()),
        }])),
        Event::Listed(Listed::Sessions(vec![SessionRow { id: "id".into(), title: "t".into(), detail: "d".into() }])),
        Event::Listed(Listed::Models(ModelList {
            providers: [
                Access::Key { from: "P_KEY".into() },
                Access::Open,
                Access::NoKey,
                Access::Refused { from: Some("P_KEY".into()), why: "refused".into() },
                Access::Server { url: "http://h".into() },
                Access::NoServer { ports: vec![1], asked: true },
                Access::Offline,
            ]
            .map(|access| ProviderRow {
                name: "p".into(),
                title: "P".into(),
                access,
                current: false,
                models: vec![ModelRow { id: "p/m".into(), detail: "d".into(), current: true }],
            })
            .into(),
            word: Some(Word::Done { text: "stored".into() }),
        })),
        Event::Listed(Listed::Settings(SettingList {
            rows: [
                SettingKind::Switch,
                SettingKind::Choice { values: vec!["a".into()] },
                SettingKind::Text,
                SettingKind::Table,
            ]
            .map(|kind| SettingRow {
                key: "k".into(),
                value: Some("v".into()),
                source: "default".into(),
                default: None,
                about: "what it does.".into(),
                kind,
                holds: cocode::protocol::report::Holds::Now,
            })
            .into(),
            word: Some(Word::Failed { text: "no".into() }),
        })),
        Event::Interface(Interface {
            theme: "dark".into(),
            notifications: true,
            highlight: true,
            reduced_motion: false,
            vim: true,
            rebuild: true,
            keys: [("send".to_owned(), vec!["enter".to_owned()])].into(),
            status_line: Default::default(),
        }),
        Event::Listed(Listed::Rules(vec![RuleRow {
            rule: "Read".into(),
            behavior: Behavior::Deny,
            source: "user".into(),
            fixed: Some("shared".into()),
        }])),
        Event::Listed(Listed::Prompts(vec![PromptRow { seq: 1, text: "go".into(), changed_files: false }])),
        Event::Listed(Listed::History(vec!["go".into()])),
        Event::Listed(Listed::Changes(Changes::default())),
        Event::Listed(Listed::Resources(vec![ResourceRow { mention: "srv:demo://a".into(), about: "A".into() }])),
        Event::Hook {
            ran: Report {
                event: cocode::hooks::Event::PreToolUse,
                name: "PreToolUse:Bash".into(),
                command: "./check.sh".into(),
                origin: Origin::User("/h/settings.json".into()),
                ended: Ended::Blocked,
                code: Some(2),
                millis: 7,
                stdout: "out".into(),
                stderr: "no".into(),
                note: None,
            },
        },
        Event::Background {
            running: vec![Begun {
                description: Some("build".into()),
                sort: TaskSort::Agent { id: "a1".into(), agent: "Plan".into() },
                ..Begun::command("a1", CallId::nth(1), "make")
            }],
            ended: None,
        },
        Event::Done { op: Op::builtin(Builtin::Compact, "undo") },
        Event::Closed,
    ];
    let task = |step| {
        Event::Task(Task {
            id: "a1".into(),
            call: CallId::nth(1),
            agent: "Plan".into(),
            description: "d".into(),
            step,
            tools: 1,
            tokens: 2,
            millis: 3,
        })
    };
    let said = Step::Said { message: Arc::new(Message::reply(vec![])) };
    let steps = [Step::Started, Step::Doing { what: "LS(.)".into() }, said, Step::Done { end: TurnEnd::Done }];
    events.extend(steps.map(task));
    let asker = Some(Asker { agent: "Plan".into(), description: "d".into() });
    events.push(Event::Ask(Ask { id: AskId(2), question: Question::Locked { session: "id".into() }, asker }));
    events.extend(questions().into_iter().map(|question| Event::Ask(Ask { id: AskId(1), question, asker: None })));
    events.extend(items().into_iter().map(Event::Item));
    insta::assert_snapshot!(lines(&events));
}
