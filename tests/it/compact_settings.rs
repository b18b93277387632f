//! Settings of compaction: every name that they have, in files and variables, and what becomes of values that do not read.

use cocode::report;

use super::config::{Agreed, User};

const USER: &str = "~/.config/cocode/config.toml";

/// What holds of a key, without where it comes from.
fn value(user: &User, key: &str) -> String {
    let explained = report::explained(&user.in_project(Agreed::Everything).explain(key).unwrap());
    explained.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn names_of_earlier_designs_mean_the_same() {
    fn check(line: &str, want: &str) {
        let key = want.split(' ').next().unwrap();
        let alias = line.split(' ').next().unwrap();
        for file in [USER, ".cocode/config.toml"] {
            let user = User::new().file(file, line);
            assert_eq!(value(&user, key), want, "{line} in {file}");
            // The other name explains the setting, and where it was set.
            let explained = user.plain(report::explained(&user.in_project(Agreed::Everything).explain(alias).unwrap()));
            assert!(explained.starts_with(want) && explained.contains("config.toml:1"), "{line}: {explained}");
        }
    }
    check("compact.enabled = false", "compact.enabled = false");
    check("compact.auto_compact_enabled = false", "compact.auto = false");
    check("auto_compact_enabled = false", "compact.auto = false");
    check("autoCompactEnabled = false", "compact.auto = false");
    check("compact.auto_compact_threshold = 0.5", "compact.auto_compact_threshold = 0.5");
    check("compact.auto_compact_threshold = 90000", "compact.auto_compact_threshold = 90000");
    check("compact.model_auto_compact_token_limit = 90000", "compact.auto_compact_threshold = 90000");
    check("model_auto_compact_token_limit = 90000", "compact.auto_compact_threshold = 90000");
    check("compact.auto_compact_pct_override = 70", "compact.auto_compact_pct_override = 70");
    check("compact.free_space_buffer = 1", "compact.free_space_buffer = 1");
    check("compact.warning_threshold = 1", "compact.warning_threshold = 1");
    check("compact.error_threshold = 1", "compact.error_threshold = 1");
    check("compact.min_context_remaining = 1", "compact.min_context_remaining = 1");
    check("compact.micro_compact_min_tokens_to_save = 1", "compact.micro.min_saving = 1");
    check("compact.micro_compact_keep_last_n_tools = 1", "compact.micro.keep_last = 1");
    check("compact.summarization_model = 'm'", "compact.summarization_model = \"m\"");
    check("compact.summarization_model_provider_id = 'p'", "compact.summarization_model_provider_id = \"p\"");
    check("compact.compact_prompt = 'of {messages}'", "compact.compact_prompt = \"of {messages}\"");
    check("compact.restore_max_files = 1", "compact.restore.max_files = 1");
    check("compact.restore_tokens_per_file = 1", "compact.restore.tokens_per_file = 1");
    check("compact.restore_total_file_budget = 1", "compact.restore.total_file_budget = 1");
    check("compact.restore_todos = false", "compact.restore.todos = false");
    check("compact.restore_plan = false", "compact.restore.plan = false");
    check("compact.token_safety_multiplier = 2.0", "compact.token_safety_multiplier = 2.0");
    check("compact.approx_bytes_per_token = 3.0", "compact.approx_bytes_per_token = 3.0");
    check("compact.tokens_per_image = 1", "compact.tokens_per_image = 1");
    check("compact.user_message_max_tokens = 1", "compact.user_message_max_tokens = 1");
    check("compact.max_summary_retries = 3", "compact.max_summary_retries = 3");
    check("compact.preserve_recent_messages = 3", "compact.keep_recent_messages = 3");
    check("compact.tool_summary = 'llm'", "compact.tool_output.summary = \"llm\"");
    check("compact.max_recoveries = 0", "compact.guards.max_recoveries = 0");
    check("features.tengu_session_memory = false", "features.session_memory = false");
    check("features.tengu_sm_compact = false", "features.session_memory_compact = false");
}

#[test]
fn two_names_of_one_setting_are_refused_and_so_are_wrong_values() {
    fn check(text: &str, want: &str) {
        let user = User::new().file(USER, text);
        assert_eq!(user.plain(user.own().unwrap_err()), format!("home/.config/cocode/config.toml:{want}"), "{text}");
    }
    check(
        "[compact]\nauto = true\nauto_compact_enabled = false\n",
        "3: `compact.auto_compact_enabled` is another name for `compact.auto`, which is also set here: keep one of them",
    );
    check(
        "[compact]\nmicro_compact_keep_last_n_tools = 'many'\n",
        "2: `compact.micro.keep_last` must be a whole number, not \"many\"",
    );
    check("[compact]\nauto_compact_threshold = -1\n", "2: `compact.auto_compact_threshold` must be at least 0, not -1");
    check(
        "[compact]\nautocompact = true\n",
        "2: unknown key `compact.autocompact`; `cocode config schema` lists them all",
    );
    let settings = User::new().file("~/.claude/settings.json", r#"{"autoCompactEnabled": false}"#);
    assert_eq!(value(&settings, "compact.auto"), "compact.auto = false");
}

#[test]
fn a_variable_sets_a_setting_by_its_other_name() {
    let user =
        User::new().var("COCODE_COMPACT__AUTO_COMPACT_ENABLED", "off").var("COCODE_COMPACT__RESTORE_MAX_FILES", "2");
    assert_eq!(value(&user, "compact.auto"), "compact.auto = false");
    assert_eq!(value(&user, "compact.restore.max_files"), "compact.restore.max_files = 2");
}

/// Variable without its prefix, spelled as theirs, a value, and what it sets.
const VARIABLES: [(&str, &str, &str, &str); 11] = [
    ("DISABLE_COMPACT", "COCODE_DISABLE_COMPACT", "1", "compact.enabled = false"),
    ("DISABLE_AUTO_COMPACT", "COCODE_DISABLE_AUTO_COMPACT", "yes", "compact.auto = false"),
    ("DISABLE_MICROCOMPACT", "COCODE_DISABLE_MICROCOMPACT", "On", "features.micro_compact = false"),
    (
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "COCODE_AUTOCOMPACT_PCT_OVERRIDE",
        "60",
        "compact.auto_compact_pct_override = 60.0",
    ),
    (
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE",
        "COCODE_BLOCKING_LIMIT_OVERRIDE",
        "90000",
        "compact.blocking_limit = 90000",
    ),
    (
        "CLAUDE_SESSION_MEMORY_MIN_TOKENS",
        "COCODE_SESSION_MEMORY_MIN_TOKENS",
        "7",
        "compact.session_memory.min_net_saving = 7",
    ),
    (
        "CLAUDE_SESSION_MEMORY_MAX_TOKENS",
        "COCODE_SESSION_MEMORY_MAX_TOKENS",
        "7",
        "compact.session_memory.max_summary = 7",
    ),
    ("CLAUDE_EXTRACTION_COOLDOWN", "COCODE_EXTRACTION_COOLDOWN", "7", "compact.session_memory.cooldown_s = 7"),
    ("CLAUDE_CONTEXT_RESTORE_MAX_FILES", "COCODE_CONTEXT_RESTORE_MAX_FILES", "7", "compact.restore.max_files = 7"),
    ("CLAUDE_CONTEXT_RESTORE_BUDGET", "COCODE_CONTEXT_RESTORE_BUDGET", "7", "compact.restore.total_file_budget = 7"),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "COCODE_DISABLE_ATTACHMENTS", "true", "reminders = false"),
];

#[test]
fn every_variable_counts_in_both_spellings_and_a_bad_value_is_named() {
    for (theirs, ours, text, want) in VARIABLES {
        let key = want.split(' ').next().unwrap();
        for name in [theirs, ours] {
            assert_eq!(value(&User::new().var(name, text), key), want, "{name}");
            let user = User::new().var(name, "plenty");
            let (loaded, usual) = (user.own().unwrap(), User::new().own().unwrap());
            assert_eq!(loaded.config, usual.config, "{name}");
            let told: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
            assert!(
                told.len() == 1 && told[0].starts_with(&format!("variable {name}: ignored: it must be ")),
                "{told:?}"
            );
        }
        // Ours wins over theirs, and a bad one of ours leaves theirs.
        let other = if text.parse::<u32>().is_ok_and(|number| number > 1) { "5" } else { "0" };
        let both = User::new().var(theirs, other).var(ours, text);
        assert_eq!(value(&both, key), want, "{ours}");
        let spoilt = User::new().var(theirs, text).var(ours, "plenty");
        assert_eq!(value(&spoilt, key), want, "{theirs}");
    }
    // Beats every file.
    let user = User::new().file(USER, "compact.enabled = true").var("DISABLE_COMPACT", "1");
    let explained = user.plain(report::explained(&user.own().unwrap().explain("compact.enabled").unwrap()));
    insta::assert_snapshot!(explained, @r"
    compact.enabled = false
      from environment, variable DISABLE_COMPACT
      overrides true from user configuration, home/.config/cocode/config.toml:1
      overrides true from built-in defaults
    ");
}
