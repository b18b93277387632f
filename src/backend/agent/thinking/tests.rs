//! Levels as each kind of model takes them.

use super::*;
use crate::message::{CallId, Origin, Outcome, ToolCall, ToolResult};
use crate::provider::catalog::Catalog;
use crate::provider::settings::WireName;
use crate::thinking::{Budgets, Environment, Keywords, Settings};

fn settings() -> Settings {
    Settings {
        environment: Environment::default(),
        flag: None,
        default_level: None,
        max_level: Level::UltraThink,
        auto_enable: false,
        interleaved: false,
        budget_tokens: None,
        keywords: Keywords::default(),
        budgets: Budgets { deep: 16_000, ultra: 32_000 },
    }
}

/// What is sent when nobody chooses, and for each level that is chosen.
#[test]
fn levels_become_parameters() {
    let check = |wire: WireName, id: &str, want: [Parameter; 3]| {
        let spec = Catalog::builtin().get(wire, id);
        let name = crate::provider::codec::codec(wire).name();
        let parameter = |session: Option<Level>| {
            let asked = Asked { session, ..Asked::default() };
            parameter(&effective(&asked, &settings(), &abilities(&spec, name)), &spec, false)
        };
        assert_eq!(parameter(None), Parameter::Unset, "{id}");
        assert_eq!(Level::ALL.map(|level| parameter(Some(level))), want, "{id} on {name}");
    };
    let effort = |word: &str| Parameter::Effort(word.into());
    let adaptive = |word: &str| Parameter::Adaptive { effort: Some(word.into()) };
    use Parameter::{Budget, Off, Unset};
    use WireName::{Anthropic, Gemini, Openai, OpenaiChat};
    check(Anthropic, "claude-haiku-4-5", [Off, Budget(16_000), Budget(32_000)]);
    check(Anthropic, "claude-opus-4-1", [Off, Budget(16_000), Budget(30_976)]);
    check(Anthropic, "claude-opus-5", [Off, adaptive("high"), adaptive("xhigh")]);
    check(Anthropic, "claude-opus-4-6", [Off, adaptive("high"), adaptive("max")]);
    check(Anthropic, "claude-sonnet-4-6", [Off, adaptive("high"), adaptive("high")]);
    check(Anthropic, "claude-of-next-year", [Off, adaptive("high"), adaptive("high")]);
    check(Anthropic, "claude-3-5-haiku", [Unset, Unset, Unset]);
    check(Openai, "gpt-5.4", [Off, effort("high"), effort("xhigh")]);
    check(Openai, "gpt-5", [Off, effort("high"), effort("high")]);
    check(Openai, "gpt-of-next-year", [Off, effort("high"), effort("high")]);
    check(Openai, "gpt-4.1", [Unset, Unset, Unset]);
    check(OpenaiChat, "gpt-5.4", [Off, effort("high"), effort("xhigh")]);
    check(OpenaiChat, "qwen3:8b", [Off, effort("high"), effort("high")]);
    check(OpenaiChat, "claude-opus-5", [Off, Off, Off]);
    check(OpenaiChat, "unheard-of", [Unset, Unset, Unset]);
    check(Gemini, "gemini-3.1-pro-preview", [Off, effort("medium"), effort("high")]);
    check(Gemini, "gemini-2.5-pro", [Off, Budget(16_000), Budget(32_000)]);
    check(Gemini, "gemini-2.5-flash", [Off, Budget(16_000), Budget(24_576)]);
    check(Gemini, "gemini-of-next-year", [Off, effort("high"), effort("high")]);
}

#[test]
fn an_override_says_what_a_model_can() {
    let row = r#"
        ["claude-haiku-4-5".thinking_override]
        supported_levels = ["deep"]
        default_level = "deepthink"
        max_budget = 12000
        budget_by_level = { deep_think = 11000 }
    "#;
    let catalog = Catalog::builtin().with_overrides(row.parse().unwrap()).unwrap();
    let spec = catalog.get(WireName::Anthropic, "claude-haiku-4-5");
    let model = abilities(&spec, "anthropic");
    let want = Abilities {
        supported: vec![Level::None, Level::DeepThink],
        default_level: Some(Level::DeepThink),
        max_budget: Some(12_000),
        max_output: 64_000,
        deep_budget: Some(11_000),
        ultra_budget: None,
    };
    assert_eq!(model, want);
    let now = |settings: Settings| parameter(&effective(&Asked::default(), &settings, &model), &spec, true);
    assert_eq!(now(settings()), Parameter::Interleaved(11_000));
    assert_eq!(now(Settings { budget_tokens: Some(50_000), ..settings() }), Parameter::Interleaved(12_000));
}

#[test]
fn only_budgets_of_the_messages_wire_wait_for_the_turn() {
    let waits = |wire, id| Catalog::builtin().get(wire, id).thinking_per_turn;
    let found = [
        waits(WireName::Anthropic, "claude-haiku-4-5"),
        waits(WireName::Anthropic, "claude-opus-5"),
        waits(WireName::Gemini, "gemini-2.5-pro"),
        waits(WireName::OpenaiChat, "claude-haiku-4-5"),
    ];
    assert_eq!(found, [true, false, false, false]);
    let row = "['claude-opus-5']\nthinking_per_turn = true".parse().unwrap();
    let catalog = Catalog::builtin().with_overrides(row).unwrap();
    assert!(catalog.get(WireName::Anthropic, "claude-opus-5").thinking_per_turn);
}

#[test]
fn calls_are_answered_until_the_next_reply() {
    let results = || Message::tool_results(vec![ToolResult::of_text(CallId::nth(1), Outcome::Ok, "a")]);
    let check = |messages: Vec<Message>, want: bool| {
        let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        assert_eq!(answers_calls(&messages), want);
    };
    let reply = || Message::reply(vec![Block::text("a")]);
    check(vec![], false);
    check(vec![Message::prompt("a")], false);
    check(vec![Message::prompt("a"), reply(), results()], true);
    check(vec![Message::prompt("a"), reply(), results(), Message::reminder("b"), Message::prompt("c")], true);
    check(vec![Message::prompt("a"), reply(), results(), reply(), Message::prompt("c")], false);
}

#[test]
fn foreign_signatures_are_left_out() {
    let wire = || Some(Wire { wire: "anthropic".into(), model: "m".into(), data: "signature".into() });
    let call = ToolCall { wire: wire(), ..ToolCall::new(CallId::nth(1), "LS", Default::default()) };
    let reply = |provider: &str| {
        let blocks = vec![
            Block::Thinking { text: "hm".into(), wire: wire() },
            Block::Text { text: "a".into(), wire: wire() },
            Block::ToolCall(call.clone()),
        ];
        let origin = Some(Origin { provider: provider.into(), model: "m".into() });
        Arc::new(Message { origin, ..Message::reply(blocks) })
    };
    let given = vec![Arc::new(Message::prompt("go")), reply("mine"), reply("other")];
    let got = without_foreign_wire(given.clone(), "mine");
    assert_eq!(got[..2], given[..2]);
    assert!(got[2].blocks.iter().all(|block| wire_of(block).is_none()));
    assert_eq!((got[2].text(), got[2].calls().count()), ("a".into(), 1));
}

fn wire_of(block: &Block) -> Option<&Wire> {
    super::wire(block)
}
