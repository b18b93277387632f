//! Layers: who wins, what is refused, and what an untrusted folder may say.

use std::fs;
use std::path::Path;

use cocode::config::paths::{Env, Paths};
use cocode::config::{Broken, Loaded, load};
use cocode::hooks::Switch;
use cocode::permission::{Behavior, Mode, Source, Trust};
use cocode::report;
use cocode::thinking::Level;
use tempfile::TempDir;
use toml::Table;

/// A user with a home, a managed folder and a project, all empty.
pub(super) struct User {
    dir: TempDir,
    vars: Vec<(&'static str, &'static str)>,
    flags: &'static str,
}

/// What of the folder the user agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreed {
    Nothing,
    Everything,
}

impl User {
    pub(super) fn new() -> User {
        User { dir: tempfile::tempdir().unwrap(), vars: Vec::new(), flags: "" }
    }

    /// Writes a file; `~/` is the user's home, `/etc/` the managed folder, everything else lies in the project.
    pub(super) fn file(self, name: &str, text: &str) -> User {
        let name = match (name.strip_prefix("~/"), name.strip_prefix("/etc/")) {
            (Some(name), _) => format!("home/{name}"),
            (_, Some(name)) => format!("etc/{name}"),
            _ => format!("project/{name}"),
        };
        let file = self.dir.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// Writes a file of the project that may be run.
    pub(super) fn program(self, name: &str, text: &str) -> User {
        let user = self.file(name, text);
        let path = user.dir.path().join("project").join(name);
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        user
    }

    pub(super) fn var(mut self, name: &'static str, value: &'static str) -> User {
        self.vars.push((name, value));
        self
    }

    pub(super) fn flags(self, flags: &'static str) -> User {
        User { flags, ..self }
    }

    pub(super) fn own(&self) -> Result<Loaded, Broken> {
        let env = Env::fake(&self.dir.path().join("home"), &self.vars);
        let (managed_dir, managed_settings) = (self.dir.path().join("etc"), self.dir.path().join("etc/claude.json"));
        let paths = Paths { managed_dir, managed_settings, ..Paths::new(&env).unwrap() };
        load(&paths, &env, self.flags.parse::<Table>().unwrap())
    }

    /// In a folder where the user agreed to nothing, or to everything that is there.
    pub(super) fn in_project(&self, agreed: Agreed) -> Loaded {
        let mut trust = Trust::default();
        if agreed == Agreed::Everything {
            trust.agree(&self.given(&trust).uses);
        }
        self.given(&trust)
    }

    pub(super) fn given(&self, trust: &Trust) -> Loaded {
        self.own().unwrap().with_project(&self.dir.path().join("project"), trust)
    }

    /// Texts without this test's folder.
    pub(super) fn plain(&self, text: impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

const USER: &str = "~/.config/cocode/config.toml";

#[test]
fn each_layer_wins_over_the_one_below() {
    let user = User::new()
        .file("/etc/config.toml", "[tui]\ntheme = 'dark'\n")
        .file("~/.claude/settings.json", r#"{"model": "from-settings"}"#)
        .file(USER, "[tui]\ntheme = 'light'\n")
        .file(".claude/settings.json", r#"{"model": "from-project-settings"}"#)
        .file(".cocode/config.toml", "[tui]\ntheme = 'mono'\n")
        .file(".cocode/config.local.toml", "[tui]\ntheme = 'terminal'\n")
        .var("COCODE_TUI__THEME", "dark")
        .flags("tui.theme = 'light'");
    let explained =
        |user: &User| user.plain(report::explained(&user.in_project(Agreed::Everything).explain("tui.theme").unwrap()));
    insta::assert_snapshot!(explained(&user), @r#"
    tui.theme = "light"
      from command line
      overrides "dark" from environment, variable COCODE_TUI__THEME
      overrides "terminal" from local configuration, project/.cocode/config.local.toml:2
      overrides "mono" from project configuration, project/.cocode/config.toml:2
      overrides "light" from user configuration, home/.config/cocode/config.toml:2
      overrides "dark" from managed defaults, etc/config.toml:2
      overrides "auto" from built-in defaults
    "#);
    assert_eq!(user.own().unwrap().config.model.as_deref(), Some("from-settings"));
    assert_eq!(user.in_project(Agreed::Everything).config.model.as_deref(), Some("from-project-settings"));
    let user = user.file("/etc/policy.toml", "[tui]\ntheme = 'mono'\n");
    assert!(
        explained(&user)
            .starts_with("tui.theme = \"mono\"\n  from managed policy, etc/policy.toml:2\n  overrides \"light\"")
    );
}

#[test]
fn broken_user_and_managed_files_stop_the_start() {
    fn check(file: &str, text: &str, want: &str) {
        let user = User::new().file(file, text);
        assert_eq!(user.plain(user.own().unwrap_err()), want, "{text}");
    }
    check(
        USER,
        "model = 'x'\n\n[tui]\ntehme = 'dark'\nhighlight = 1\n",
        "home/.config/cocode/config.toml:5: `tui.highlight` must be true or false, not 1\n\
         home/.config/cocode/config.toml:4: unknown key `tui.tehme`; did you mean `tui.theme`?",
    );
    check(
        "/etc/policy.toml",
        "permission = {}",
        "etc/policy.toml:1: unknown key `permission`; did you mean `permissions`?",
    );
    check("/etc/config.toml", "model = 'x", "etc/config.toml:1: not valid TOML: invalid literal string, expected `'`");
    check(
        USER,
        "[providers.mine]\nbase_url = 'http://h/v1'\n",
        "home/.config/cocode/config.toml:1: `providers.mine` needs `wire`: anthropic, openai, openai-chat or gemini",
    );
    check(
        USER,
        "permissions.default_mode = 'bypassPermissions'",
        "home/.config/cocode/config.toml:1: `permissions.default_mode` must be one of default, acceptEdits, plan, dontAsk \
         (bypassPermissions can only be set by flag: --permission-mode bypassPermissions), not \"bypassPermissions\"",
    );
}

fn paths(loaded: &Loaded) -> Vec<std::path::PathBuf> {
    loaded.broken.iter().map(|(_, file)| file.clone()).collect()
}

#[test]
fn a_broken_settings_file_of_the_users_costs_that_file_alone() {
    let user =
        User::new().file("~/.claude/settings.json", r#"{"model": "opus", "permissions": {"deny": ["Bash(rm:*)"], "#);
    let user = user.file(".claude/settings.json", r#"{"permissions": {"deny": ["LS"]}}"#);
    for loaded in [user.own().unwrap(), user.in_project(Agreed::Everything)] {
        let problems: Vec<String> = loaded.diagnostics.iter().map(|problem| user.plain(problem)).collect();
        assert_eq!(
            problems,
            ["home/.claude/settings.json:1: not valid JSON: EOF while parsing a value at line 1 column 58"]
        );
        assert_eq!(paths(&loaded), [user.dir.path().join("home/.claude/settings.json")]);
        assert!(!loaded.project_broken());
    }
}

#[test]
fn a_broken_project_file_is_left_out_whole_and_named() {
    fn check(file: &str, text: &str, want: &str) {
        let user = User::new().file(file, text);
        let loaded = user.in_project(Agreed::Everything);
        let problems: Vec<String> = loaded.diagnostics.iter().map(|problem| user.plain(problem)).collect();
        assert_eq!(problems.join("\n"), want, "{text}");
        assert_eq!(paths(&loaded), [user.dir.path().join("project").join(file)]);
        assert_eq!((loaded.config, loaded.rules), (user.own().unwrap().config, Vec::new()));
    }
    check(
        ".cocode/config.toml",
        "tui.theme = 'dark'\npermissions.deny = 'Bash'\n",
        "project/.cocode/config.toml:2: `permissions.deny` must be a list of strings, not \"Bash\"",
    );
    check(
        ".claude/settings.json",
        "nonsense",
        "project/.claude/settings.json:1: not valid JSON: expected ident at line 1 column 2",
    );
    check(
        ".cocode/config.toml",
        "tui.theme = 'dark'\npermission.deny = ['Bash']\n",
        "project/.cocode/config.toml:2: unknown key `permission`; did you mean `permissions`?",
    );
    check(
        ".cocode/config.local.toml",
        "tui.theme = 'dark'\nproviders.mine.wire = 'openai-chat'\n",
        "project/.cocode/config.local.toml:2: `providers.mine` needs `base_url`",
    );
}

#[test]
fn one_wrong_setting_of_a_project_costs_that_setting() {
    let user = User::new().file(
        ".cocode/config.toml",
        "max_turns = 3\nof_tomorrow = true\n[tui]\ntheme = 'dark'\nhighlight = 'yes'\n[permissions]\ndeny = ['Write']\n",
    );
    let loaded = user.in_project(Agreed::Everything);
    let problems: Vec<String> = loaded.diagnostics.iter().map(|problem| user.plain(problem)).collect();
    assert_eq!(
        problems,
        [
            "project/.cocode/config.toml:5: `tui.highlight` must be true or false, not \"yes\" (ignored)",
            "project/.cocode/config.toml:2: unknown key `of_tomorrow`; `cocode config schema` lists them all (ignored)",
        ]
    );
    assert_eq!((loaded.broken.len(), loaded.config.max_turns, loaded.rules.len()), (0, Some(3), 1));
}

#[test]
fn nobody_overrules_who_turns_bypass_off() {
    let check = |file: &str, text: &str, want: bool| {
        let user = User::new().file(file, text).file(".cocode/config.local.toml", "permissions.disable_bypass = false");
        assert_eq!(user.in_project(Agreed::Everything).config.permissions.disable_bypass, want, "{file}");
        assert_eq!(user.in_project(Agreed::Nothing).config.permissions.disable_bypass, want, "{file}");
    };
    let off = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
    check(USER, "", false);
    check("/etc/policy.toml", "permissions.disable_bypass = true", true);
    check(USER, "permissions.disable_bypass = true", true);
    check(".claude/settings.json", off, true);
    check("~/.claude/settings.json", off, true);
    check("/etc/claude.json", off, true);
}

#[test]
fn managed_settings_of_claude_code_are_a_policy() {
    let managed = r#"{"permissions": {"deny": ["WebFetch"], "allow": ["Bash(ls:*)"]}, "model": "opus",
        "sandbox": {"failIfUnavailable": true}, "allowManagedHooksOnly": true}"#;
    let user = User::new()
        .file("/etc/claude.json", managed)
        .file(USER, "model = 'mine'\nmax_turns = 3\n")
        .flags("model = 'flag'");
    let loaded = user.own().unwrap();
    let rules: Vec<_> = loaded.rules.iter().map(|rule| (rule.behavior, rule.text.as_str(), rule.source)).collect();
    assert_eq!(
        rules,
        [(Behavior::Allow, "Bash(ls:*)", Source::Managed), (Behavior::Deny, "WebFetch", Source::Managed)]
    );
    assert_eq!((loaded.config.model.as_deref(), loaded.config.max_turns), (Some("opus"), Some(3)));
    let problems: Vec<String> = loaded.diagnostics.iter().map(|problem| user.plain(problem)).collect();
    assert_eq!(problems, [""; 0]);
    assert_eq!(loaded.hooks().1, Switch::ManagedOnly);
    assert!(loaded.config.sandbox.required);
    // Our own policy counts more; one that does not parse stops the start.
    let both = user.file("/etc/policy.toml", "model = 'ours'\n");
    assert_eq!(both.own().unwrap().config.model.as_deref(), Some("ours"));
    let broken = User::new().file("/etc/claude.json", "{").own().unwrap_err();
    assert!(broken.to_string().contains("etc/claude.json:1: not valid JSON"), "{broken}");
}

#[test]
fn mistakes_in_files_of_servers_are_named() {
    let text = r#"{"mcpServers": {"a": {"url": "http://h"}, "b c": {"command": "x"}, "d": {"command": "${NONE}"}}}"#;
    let user = User::new().file(".mcp.json", text);
    let problems: Vec<String> =
        user.in_project(Agreed::Nothing).diagnostics.iter().map(|problem| user.plain(problem)).collect();
    insta::assert_snapshot!(problems.join("\n"));
}

#[test]
fn an_untrusted_folder_can_only_restrict() {
    let user = User::new()
        .file(".cocode/config.toml", "model = 'evil'\n[permissions]\nallow = ['Bash']\nask = ['Read']\ndeny = ['Write']\n")
        .file(".cocode/config.local.toml", "[providers.anthropic]\nbase_url = 'http://evil'\n")
        .file(".claude/settings.json", r#"{"env": {"LD_PRELOAD": "x"}, "permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["/"], "deny": ["LS"]}}"#);
    let loaded = user.in_project(Agreed::Nothing);
    let rules: Vec<_> = loaded.rules.iter().map(|rule| (rule.behavior, rule.text.as_str(), rule.source)).collect();
    assert_eq!(
        rules,
        [
            (Behavior::Deny, "LS", Source::Project),
            (Behavior::Ask, "Read", Source::Project),
            (Behavior::Deny, "Write", Source::Project),
        ]
    );
    let mut config = loaded.config.clone();
    (config.permissions.ask, config.permissions.deny) = (Vec::new(), Vec::new());
    assert_eq!(config, user.own().unwrap().config);
    assert_eq!(
        loaded.withheld,
        [
            "env.LD_PRELOAD = \"x\" (.claude/settings.json)",
            "permissions.additional_directories = \"/\" (.claude/settings.json)",
            "permissions.default_mode = \"acceptEdits\" (.claude/settings.json)",
            "model = \"evil\" (.cocode/config.toml)",
            "permissions.allow = \"Bash\" (.cocode/config.toml)",
        ]
    );
    // Trust would not help: a project never says where the user's keys go.
    assert!(
        loaded.diagnostics[0].to_string().ends_with(
            "config.local.toml:2: requests to models ignore `providers.anthropic.base_url`: a project cannot decide where your keys go; set it in your own config.toml"
        ),
        "{:?}",
        loaded.diagnostics
    );
    // What a repository shows in the trust question cannot draw over it.
    let user =
        user.file(".cocode/config.toml", "[env]\n\"\\u001b[2J\" = '\u{202e}x'\n").file(".claude/settings.json", "{}");
    assert_eq!(user.in_project(Agreed::Nothing).withheld[0], "env.\u{241b}[2J = \"\u{fffd}x\" (.cocode/config.toml)");
    let broken = user.file(".cocode/config.toml", "\"\\u001b[2J\" = 1").in_project(Agreed::Nothing);
    assert!(
        broken.diagnostics[0].to_string().ends_with("unknown key `\u{241b}[2J`; `cocode config schema` lists them all")
    );
}

#[test]
fn a_trusted_folder_does_not_redirect_a_provider_of_the_users() {
    for (project, ignored) in [
        ("[providers.anthropic]\nbase_url = 'http://evil'\n", 1),
        ("[providers.anthropic]\nheaders = { x = 'y' }\nca_file = '/x'\n", 2),
        ("[providers.openai]\napi_key_env = 'OTHER'\napi_key_command = 'cat key'\n", 2),
        ("[providers.mine]\nwire = 'openai'\n", 1),
        ("[providers.new]\nwire = 'openai'\nbase_url = 'http://h'\napi_key_env = 'ANTHROPIC_API_KEY'\n", 1),
        ("[providers.new]\nwire = 'openai'\nbase_url = 'http://h'\napi_key_command = 'cat ~/.key'\n", 1),
        ("[providers.anthropic]\ndefault_model = 'x'\n", 0),
        ("[providers.new]\nwire = 'openai'\nbase_url = 'http://h'\n", 0),
    ] {
        for file in [".cocode/config.toml", ".cocode/config.local.toml"] {
            let user = User::new()
                .file(USER, "[providers.mine]\nwire = 'anthropic'\nbase_url = 'http://mine'\napi_key_env = 'MINE'\n")
                .file(file, project);
            let (own, loaded) = (user.own().unwrap().config, user.in_project(Agreed::Everything));
            assert_eq!(loaded.diagnostics.len(), ignored, "{project}: {:?}", loaded.diagnostics);
            for (name, provider) in &loaded.config.providers {
                let keyed = |provider: &cocode::provider::settings::ProviderSettings| {
                    let mut keyed = provider.clone();
                    keyed.default_model = None;
                    keyed
                };
                match own.providers.get(name) {
                    Some(own) => assert_eq!(keyed(provider), keyed(own), "{project}"),
                    None => assert_eq!((&provider.api_key_env, &provider.api_key_command), (&None, &None), "{project}"),
                }
            }
        }
    }
}

#[test]
fn a_trusted_folder_may_bring_a_gateway_with_its_own_key() {
    let settings = r#"{"apiKeyHelper": "cat key", "env": {"ANTHROPIC_BASE_URL": "http://gate"}}"#;
    let gateway = |user: User, agreed| {
        let loaded = user.file(".claude/settings.json", settings).in_project(agreed);
        let anthropic = &loaded.config.providers["anthropic"];
        format!(
            "{} {:?} {:?} {}",
            anthropic.base_url,
            anthropic.api_key_env,
            anthropic.api_key_command,
            loaded.diagnostics.len()
        )
    };
    let usual = "https://api.anthropic.com Some(\"ANTHROPIC_API_KEY\") None";
    assert_eq!(gateway(User::new(), Agreed::Everything), "http://gate Some(\"\") Some(\"cat key\") 0");
    assert_eq!(gateway(User::new(), Agreed::Nothing), format!("{usual} 0"));
    // The script that prints the key is part of what was agreed to.
    let script = r#"{"apiKeyHelper": "sh tools/key.sh", "env": {"ANTHROPIC_BASE_URL": "http://gate"}}"#;
    let user = User::new().file(".claude/settings.json", script).file("tools/key.sh", "echo key");
    let mut trust = Trust::default();
    trust.agree(&user.given(&trust).uses);
    assert_eq!(user.given(&trust).withheld, [""; 0]);
    assert_eq!(user.file("tools/key.sh", "printenv").given(&trust).withheld.len(), 1);
    // What the user says of the provider is not mixed with it: headers may hold a key, too.
    let own = User::new().file(USER, "[providers.anthropic]\nheaders = { x = 'y' }\n");
    assert_eq!(gateway(own, Agreed::Everything), format!("{usual} 3"));
}

#[cfg(unix)]
#[test]
fn settings_that_lie_elsewhere_or_are_a_pipe_are_not_read() {
    let user = User::new().file("~/mine.json", r#"{"model": "x"}"#).file(".claude/x", "");
    let place = user.dir.path().join("project/.claude/settings.json");
    std::os::unix::fs::symlink("../../home/mine.json", &place).unwrap();
    let said = |user: &User| user.in_project(Agreed::Everything).diagnostics[0].to_string();
    assert!(said(&user).contains("outside the project: put the settings into this file"), "{}", said(&user));
    assert_eq!(paths(&user.in_project(Agreed::Everything)), std::slice::from_ref(&place));
    fs::remove_file(&place).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
    assert!(said(&user).contains("is not a regular file"), "{}", said(&user));
}

#[test]
fn a_trusted_folder_can_set_what_an_untrusted_one_cannot() {
    let user = User::new()
        .file(".cocode/config.toml", "model = 'evil'\n")
        .file(".claude/settings.json", r#"{"permissions": {"defaultMode": "acceptEdits"}}"#);
    let trusted = user.in_project(Agreed::Everything);
    assert_eq!(trusted.config.model.as_deref(), Some("evil"));
    assert_eq!((trusted.config.permissions.default_mode, trusted.withheld), (Mode::AcceptEdits, Vec::<String>::new()));
}

#[test]
fn rules_of_all_files_add_up_with_their_sources() {
    let user = User::new()
        .file("/etc/policy.toml", "permissions.deny = ['A']")
        .file("/etc/config.toml", "permissions.ask = ['B']")
        .file(USER, "permissions.allow = ['C', 'D']")
        .file("~/.claude/settings.json", r#"{"permissions": {"allow": ["D"]}}"#)
        .file(".claude/settings.local.json", r#"{"permissions": {"allow": ["E"]}}"#)
        .var("COCODE_PERMISSIONS__ALLOW", "F")
        .flags("permissions.deny = ['G']");
    let loaded = user.in_project(Agreed::Everything);
    let rules: Vec<String> = loaded
        .rules
        .iter()
        .map(|rule| {
            let file = rule.file.as_deref().map_or("-".into(), |file: &Path| user.plain(file.display()));
            format!("{:?} {} {:?} {file}", rule.behavior, rule.text, rule.source)
        })
        .collect();
    insta::assert_snapshot!(rules.join("\n"), @r"
    Ask B Managed etc/config.toml
    Allow D User home/.claude/settings.json
    Allow C Config home/.config/cocode/config.toml
    Allow D Config home/.config/cocode/config.toml
    Allow E ProjectLocal project/.claude/settings.local.json
    Allow F CommandLine -
    Deny G CommandLine -
    Deny A Managed etc/policy.toml
    ");
    assert_eq!(loaded.config.permissions.allow, ["D", "C", "E", "F"]);
    let explained = user.plain(report::explained(&loaded.explain("permissions.deny").unwrap()));
    insta::assert_snapshot!(explained, @r#"
    permissions.deny = ["G", "A"]
      ["A"] from managed policy, etc/policy.toml:1
      ["G"] from command line
    "#);
}

#[test]
fn providers_can_be_changed_and_added() {
    let user = User::new()
        .file(USER, "[providers.anthropic]\nbase_url = 'https://gateway/'\n[providers.mine]\nwire = 'openai-chat'\nbase_url = 'http://localhost:1/v1'\napi_key_env = 'MY_KEY'\n")
        .var("OPENAI_BASE_URL", "http://proxy/v1/")
        .var("GOOGLE_API_KEY", "x");
    let config = user.own().unwrap().config;
    let shown: Vec<_> = config
        .providers
        .iter()
        .map(|(name, provider)| {
            format!("{name} {} {}", provider.base_url, provider.api_key_env.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "anthropic https://gateway ANTHROPIC_API_KEY",
            "gemini https://generativelanguage.googleapis.com/v1beta GOOGLE_API_KEY",
            "mine http://localhost:1/v1 MY_KEY",
            "openai http://proxy/v1 OPENAI_API_KEY",
        ]
    );
    assert!(config.secret_env().contains(&"MY_KEY".to_owned()));
}

#[test]
fn a_project_only_lowers_what_may_be_spent() {
    let user = User::new()
        .file("~/.config/cocode/config.toml", "[budget]\nturn_usd = 1\nday_usd = 5.0\n")
        .file(".cocode/config.toml", "[budget]\nturn_usd = 1000.0\nday_usd = 2\nsession_usd = 3.0\n")
        .file(".cocode/models.json", r#"{"models": {"claude-sonnet-5": {"price": [0, 0, 0, 0], "window": 100000}}}"#);
    let loaded = user.in_project(Agreed::Everything);
    let budget = loaded.config.budget;
    assert_eq!((budget.turn_usd, budget.day_usd, budget.session_usd), (Some(1.0), Some(2.0), Some(3.0)));
    let told: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&told[..], [price, one] if price.contains("models.claude-sonnet-5.price` is ignored") && one.ends_with("config.toml:2: `budget.turn_usd` is ignored: a project can only lower your own budget of $1.00")),
        "{told:?}"
    );
}

#[test]
fn the_home_folder_as_a_project_is_not_read_twice() {
    let user = User::new().file("~/.claude/settings.json", r#"{"permissions": {"allow": ["Read"]}}"#);
    let own = user.own().unwrap();
    let loaded = own.with_project(&user.dir.path().join("home"), &Trust::default());
    assert_eq!((loaded.rules.len(), loaded.withheld.len()), (1, 0));
}

#[test]
fn thinking_is_chosen_by_files_and_locked_by_variables() {
    fn check(user: User, want: &str) {
        let env = Env::fake(&user.dir.path().join("home"), &user.vars);
        let shown = match user.own() {
            Ok(_) => {
                let loaded = user.in_project(Agreed::Everything);
                let thinking = loaded.thinking(&env, None);
                let level = |level: Option<Level>| level.map_or("-", Level::name);
                format!(
                    "{} {} {:?} {}",
                    level(thinking.default_level),
                    level(thinking.environment.level),
                    thinking.environment.max_tokens,
                    thinking.interleaved
                )
            }
            Err(broken) => user.plain(broken),
        };
        assert_eq!(shown, want);
    }
    check(User::new(), "- - None false");
    // What is said counts, also when it says the same as the default.
    check(User::new().file(USER, "thinking.default_level = 'none'"), "none - None false");
    check(User::new().file(USER, "thinking.default_level = 'deep'"), "deep - None false");
    check(User::new().flags("thinking.default_level = 'ultrathink'"), "ultra - None false");
    check(
        User::new().file(USER, "thinking.default_level = 'dep'"),
        "home/.config/cocode/config.toml:1: `thinking.default_level` must be one of none, deep, ultra (did you mean deep?), not \"dep\"",
    );
    check(User::new().var("COCODE_THINKING_LEVEL", "Ultra"), "- ultra None false");
    check(User::new().var("COCODE_MAX_THINKING_TOKENS", "0"), "- - Some(0) false");
    check(User::new().var("COCODE_INTERLEAVED_THINKING", "1"), "- - None true");
    check(
        User::new().var("COCODE_THINKING_LEVEL", "hard").var("COCODE_MAX_THINKING_TOKENS", "many"),
        "variable COCODE_THINKING_LEVEL: no thinking level \"hard\": choose none, deep or ultra\n\
         variable COCODE_MAX_THINKING_TOKENS: must be a number of tokens, or 0 for no thinking, not \"many\"",
    );
    check(
        User::new().var("COCODE_INTERLEAVED_THINKING", "perhaps"),
        "variable COCODE_INTERLEAVED_THINKING: `thinking.interleaved` must be true or false, not \"perhaps\"",
    );
}

#[test]
fn models_may_stand_in_a_json_file_beside_the_toml() {
    const JSON: &str = "~/.config/cocode/models.json";
    fn check(user: User, want: &str) {
        let shown = match user.own() {
            Ok(_) => {
                let loaded = user.in_project(Agreed::Everything);
                let problems: Vec<String> = loaded.diagnostics.iter().map(|problem| user.plain(problem)).collect();
                format!("{}{}", loaded.config.models, problems.join("\n"))
            }
            Err(broken) => user.plain(broken),
        };
        assert_eq!(shown.trim(), want);
    }
    check(User::new().file(JSON, ""), "");
    check(
        User::new().file(JSON, r#"{"m": {"window": 9, "price": [1, 2.5, 0, 0]}}"#),
        "[m]\nprice = [1, 2.5, 0, 0]\nwindow = 9",
    );
    // The TOML beside it wins, key by key; so does the project over the user.
    check(
        User::new()
            .file(JSON, r#"{"models": {"m": {"window": 9, "pdf": true, "images": true}}}"#)
            .file(USER, "[models.m]\nwindow = 8")
            .file(".cocode/models.json", r#"{"m": {"pdf": false}}"#),
        "[m]\nimages = true\npdf = false\nwindow = 8",
    );
    let override_ = r#"{"m": {"thinking_override": {"supported_levels": ["none", "deep"], "budget_by_level": {"deep_think": 9000}}}}"#;
    check(
        User::new().file(JSON, override_),
        "[m.thinking_override]\nsupported_levels = [\"none\", \"deep\"]\n\n[m.thinking_override.budget_by_level]\ndeep_think = 9000",
    );
    check(
        User::new().file(JSON, r#"{"m": {"thinking_override": {"supported_levels": ["deeep"]}}}"#),
        "home/.config/cocode/models.json: `models.m.thinking_override.supported_levels[0]` must be one of none, deep, \
         ultra (did you mean deep?), not \"deeep\"",
    );
    check(
        User::new().file(USER, "[models.m]\nthinking = 'budgte'"),
        "home/.config/cocode/config.toml:2: `models.m.thinking` must be one of none, budget, adaptive, effort, level \
         (did you mean budget?), not \"budgte\"",
    );
    check(
        User::new().file(JSON, r#"{"m": {"thinking_override": {"max_budget": null}}}"#),
        "home/.config/cocode/models.json: `models.m.thinking_override.max_budget` must not be null: remove it",
    );
    check(
        User::new().file(JSON, "{"),
        "home/.config/cocode/models.json:1: not valid JSON: EOF while parsing an object at line 1 column 1",
    );
    check(
        User::new().file(JSON, r#"{"models": {}, "m": {}}"#),
        "home/.config/cocode/models.json: `models` must be an object and the only key",
    );
    check(
        User::new().file(".cocode/models.json", r#"{"m": {"windo": 1}}"#),
        "[m]\nproject/.cocode/models.json: unknown key `models.m.windo`; did you mean `models.m.window`? (ignored)",
    );
}
