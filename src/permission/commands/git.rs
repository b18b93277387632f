//! What is known of git: subcommands that only read, and options that run programs or write.

/// Settings under which git writes no lock or index and runs no monitor, pager, external diff or text conversion: the
/// environment for every shell line in plan mode. `GIT_CONFIG_*` has the strength of `-c`.
pub const QUIET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "diff.external"),
    ("GIT_CONFIG_VALUE_2", ""),
    ("GIT_CONFIG_KEY_3", "log.showSignature"),
    ("GIT_CONFIG_VALUE_3", "false"),
    ("GIT_CONFIG_KEY_4", "core.pager"),
    ("GIT_CONFIG_VALUE_4", "cat"),
];
