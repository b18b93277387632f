//! The priority chain, budgets and the toggle, as tables.

use super::*;

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

fn model() -> Abilities {
    Abilities {
        supported: Level::ALL.to_vec(),
        default_level: None,
        max_budget: Some(63_000),
        max_output: 64_000,
        deep_budget: None,
        ultra_budget: None,
    }
}

use Level::{DeepThink, None as Off, UltraThink};

#[test]
fn more_than_the_highest_level_is_never_asked_of_a_model() {
    for (max_level, asked, want) in
        [(UltraThink, UltraThink, UltraThink), (DeepThink, UltraThink, DeepThink), (Off, DeepThink, Off)]
    {
        let settings = Settings { max_level, ..settings() };
        let environment = Environment { level: Some(asked), max_tokens: None };
        let got = effective(&Asked::default(), &Settings { environment, ..settings.clone() }, &model());
        assert_eq!((got.level, got.asked), (want, asked));
        let session = effective(&Asked { session: Some(asked), ..Asked::default() }, &settings, &model());
        assert_eq!(session.level, want);
    }
}

/// Every source says something, each something that the next weaker one does not.
#[test]
fn the_first_source_that_answers_counts() {
    let found = Found { level: UltraThink, words: "Ultrathink".into() };
    let levels = [Some(DeepThink), Some(UltraThink), Some(Off), Some(UltraThink), Some(DeepThink), Some(UltraThink)];
    let sources =
        [Source::Environment, Source::Keyword, Source::Session, Source::Flag, Source::Configuration, Source::Model];
    // All 64 sets of sources that speak.
    for set in 0..64_u32 {
        let says = |at: usize| levels[at].filter(|_| set & (1 << at) != 0);
        let asked = Asked { keyword: says(1).map(|_| &found), session: says(2), turn: None };
        let settings = Settings {
            environment: Environment { level: says(0), max_tokens: None },
            flag: says(3).map(|level| Override { level, budget: None }),
            default_level: says(4),
            ..settings()
        };
        let model = Abilities { default_level: says(5), ..model() };
        let got = effective(&asked, &settings, &model);
        let first = (0..6).find(|at| set & (1 << at) != 0);
        let want = match first {
            Some(at) => (sources[at], levels[at].unwrap(), true),
            None => (Source::Default, Off, false),
        };
        assert_eq!((got.source, got.level, got.explicit), want, "set {set:06b}");
        assert_eq!(got.keyword.as_deref(), (first == Some(1)).then_some("Ultrathink"), "set {set:06b}");
    }
}

#[test]
fn what_comes_with_a_prompt_takes_the_place_of_the_flag() {
    let check =
        |turn: Option<(Level, Option<u32>)>, flag: Option<(Level, Option<u32>)>, want: (Source, Level, Option<u32>)| {
            let of = |(level, budget)| Override { level, budget };
            let asked = Asked { turn: turn.map(of), ..Asked::default() };
            let settings =
                Settings { flag: flag.map(of), default_level: Some(Off), budget_tokens: Some(5_000), ..settings() };
            let got = effective(&asked, &settings, &model());
            assert_eq!((got.source, got.level, got.budget), want, "{turn:?} {flag:?}");
        };
    let flag = Some((UltraThink, Some(40_000)));
    check(None, None, (Source::Configuration, Off, None));
    check(None, flag, (Source::Flag, UltraThink, Some(40_000)));
    check(Some((DeepThink, None)), None, (Source::Flag, DeepThink, Some(5_000)));
    check(Some((DeepThink, Some(9_000))), flag, (Source::Flag, DeepThink, Some(9_000)));
    check(Some((Off, None)), flag, (Source::Flag, Off, None));
    // A budget belongs to who named it.
    check(Some((DeepThink, None)), flag, (Source::Flag, DeepThink, Some(5_000)));
}

#[test]
fn auto_enable_is_a_default_of_models_that_can() {
    let check = |default: Option<Level>, supported: &[Level], want: (Source, Level)| {
        let model = Abilities { default_level: default, supported: supported.to_vec(), ..model() };
        let got = effective(&Asked::default(), &Settings { auto_enable: true, ..settings() }, &model);
        assert_eq!((got.source, got.level), want);
    };
    check(None, &Level::ALL, (Source::Model, DeepThink));
    check(Some(Off), &Level::ALL, (Source::Model, Off));
    check(Some(UltraThink), &Level::ALL, (Source::Model, UltraThink));
    check(None, &[Off], (Source::Default, Off));
}

#[test]
fn the_environment_speaks_in_two_variables() {
    let check =
        |level: Option<Level>, max_tokens: Option<u32>, want: (Source, Level, Option<u32>), name: Option<&str>| {
            let environment = Environment { level, max_tokens };
            let asked = Asked { session: Some(UltraThink), ..Asked::default() };
            let got = effective(&asked, &Settings { environment, ..settings() }, &model());
            assert_eq!((got.source, got.level, got.budget), want, "{environment:?}");
            assert_eq!(environment.variable(), name);
        };
    let (level, tokens) = (Some("COCODE_THINKING_LEVEL"), Some("COCODE_MAX_THINKING_TOKENS"));
    check(None, None, (Source::Session, UltraThink, Some(32_000)), None);
    check(Some(DeepThink), None, (Source::Environment, DeepThink, Some(16_000)), level);
    check(Some(DeepThink), Some(9_000), (Source::Environment, DeepThink, Some(9_000)), level);
    check(Some(Off), Some(9_000), (Source::Environment, Off, None), level);
    check(Some(UltraThink), Some(0), (Source::Environment, Off, None), tokens);
    check(None, Some(0), (Source::Environment, Off, None), tokens);
    check(None, Some(2_000), (Source::Environment, DeepThink, Some(2_000)), tokens);
    check(None, Some(24_000), (Source::Environment, DeepThink, Some(24_000)), tokens);
    check(None, Some(24_001), (Source::Environment, UltraThink, Some(24_001)), tokens);
    check(None, Some(1_000_000), (Source::Environment, UltraThink, Some(62_976)), tokens);
}

#[test]
fn budgets_have_an_order_and_limits() {
    struct Case {
        level: Level,
        environment: Option<u32>,
        flag: Option<u32>,
        config: Option<u32>,
        model: Option<u32>,
        want: Option<u32>,
    }
    let none = Case { level: DeepThink, environment: None, flag: None, config: None, model: None, want: Some(16_000) };
    for case in [
        Case { ..none },
        Case { level: Off, want: None, ..none },
        Case { level: Off, config: Some(9_000), flag: Some(8_000), want: None, ..none },
        Case { level: UltraThink, want: Some(32_000), ..none },
        Case { model: Some(12_000), want: Some(12_000), ..none },
        Case { model: Some(12_000), config: Some(13_000), want: Some(13_000), ..none },
        Case { model: Some(12_000), config: Some(13_000), flag: Some(14_000), want: Some(14_000), ..none },
        Case {
            model: Some(12_000),
            config: Some(13_000),
            flag: Some(14_000),
            environment: Some(15_000),
            want: Some(15_000),
            ..none
        },
        Case { level: UltraThink, config: Some(13_000), want: Some(13_000), ..none },
        // Too small for any provider; too large for the model.
        Case { config: Some(1), want: Some(1_024), ..none },
        Case { config: Some(99_000), want: Some(62_976), ..none },
    ] {
        let settings = Settings {
            environment: Environment { level: Some(case.level), max_tokens: case.environment },
            flag: case.flag.map(|budget| Override { level: Off, budget: Some(budget) }),
            budget_tokens: case.config,
            ..settings()
        };
        let model = Abilities { deep_budget: case.model, ultra_budget: case.model, ..model() };
        assert_eq!(effective(&Asked::default(), &settings, &model).budget, case.want);
    }
    let check = |max_budget: Option<u32>, max_output: u32, want: Option<u32>| {
        let model = Abilities { max_budget, max_output, ..model() };
        let asked = Asked { session: Some(UltraThink), ..Asked::default() };
        assert_eq!(effective(&asked, &settings(), &model).budget, want, "{max_budget:?} {max_output}");
    };
    check(Some(24_576), 64_000, Some(24_576));
    check(Some(63_000), 16_384, Some(15_360));
    check(None, 64_000, None);
}

#[test]
fn what_a_model_lacks_falls_to_the_next_lower() {
    let check = |asked: Level, supported: &[Level], want: Level| {
        let model = Abilities { supported: supported.to_vec(), ..model() };
        let got = effective(&Asked { session: Some(asked), ..Asked::default() }, &settings(), &model);
        assert_eq!((got.level, got.asked), (want, asked), "{supported:?}");
    };
    for level in Level::ALL {
        check(level, &Level::ALL, level);
        check(level, &[Off], Off);
        check(level, &[], Off);
    }
    check(UltraThink, &[Off, DeepThink], DeepThink);
    check(DeepThink, &[Off, UltraThink], Off);
    check(UltraThink, &[Off, UltraThink], UltraThink);
}

#[test]
fn levels_go_round() {
    let check = |from: Level, supported: &[Level], next: Level, prev: Level| {
        assert_eq!((from.up(supported), from.down(supported)), (next, prev));
    };
    let all = &Level::ALL;
    check(Off, all, DeepThink, UltraThink);
    check(DeepThink, all, UltraThink, Off);
    check(UltraThink, all, Off, DeepThink);
    check(Off, &[Off, DeepThink], DeepThink, DeepThink);
    check(DeepThink, &[Off, DeepThink], Off, Off);
    check(Off, &[Off], Off, Off);
    check(UltraThink, &[], Off, Off);
}

#[test]
fn levels_have_names() {
    for name in Level::NAMES {
        let level: Level = name.parse().unwrap();
        assert!(level.name().starts_with(&name[..4]), "{name}");
        assert_eq!(serde_json::from_value::<Level>(name.into()).unwrap(), level);
        assert_eq!(serde_json::to_value(level).unwrap(), level.name());
    }
    assert_eq!("Deep-Think".parse(), Ok(DeepThink));
    assert_eq!("hard".parse::<Level>().unwrap_err(), "no thinking level \"hard\": choose none, deep or ultra");
    let efforts = ["low", "medium", "high", "xhigh", "MAX", "deep"].map(Level::of_effort);
    assert_eq!(efforts, [Some(Off), Some(DeepThink), Some(UltraThink), Some(UltraThink), Some(UltraThink), None]);
}

#[test]
fn a_flag_may_name_a_budget() {
    let parse = |text: &str| Override::parse(text).map(|flag| (flag.level, flag.budget));
    assert_eq!(parse("deep"), Ok((DeepThink, None)));
    assert_eq!(parse("ultra_think:40_000"), Ok((UltraThink, Some(40_000))));
    assert_eq!(parse("none"), Ok((Off, None)));
    assert_eq!(["off", "low", "high"].map(parse), [Ok((Off, None)), Ok((Off, None)), Ok((UltraThink, None))]);
    assert!(parse("deep:").unwrap_err().contains("deep:12000"));
    assert!(parse("deep:0").unwrap_err().contains("number of tokens"));
    assert!(parse("12000").unwrap_err().contains("choose none, deep or ultra"));
}
