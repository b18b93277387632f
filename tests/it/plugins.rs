//! Plugins in the format of Claude Code: where they are found, what they bring, what of it runs, and what is said of it.

use std::fs;

use serde_json::Value;

use super::support::program::{Done, Program};

const MANIFEST: &str = ".claude-plugin/plugin.json";

/// A plugin with a skill, a command, an agent and a hook, in a folder of the project.
fn demo(program: Program, at: &str) -> Program {
    let hooks = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command",
        "command": "sh '${CLAUDE_PLUGIN_ROOT}/note.sh' \"$CLAUDE_PLUGIN_DATA\" ${CLAUDE_PROJECT_DIR}"}]}]}}"#;
    program
        .file(&format!("{at}/{MANIFEST}"), r#"{"name": "demo", "version": "1.2.0", "description": "Shows how"}"#)
        .file(&format!("{at}/skills/greet/SKILL.md"), "---\ndescription: Greets\n---\nSay hello from ${CLAUDE_PLUGIN_ROOT}.\n")
        .file(&format!("{at}/commands/build.md"), "---\ndescription: Builds\nallowed-tools: Bash(make:*)\n---\nBuild.\n")
        .file(&format!("{at}/agents/look.md"), "---\nname: look\ndescription: Looks\nhooks: {}\npermissionMode: plan\n---\nLook in ${CLAUDE_PLUGIN_ROOT}.\n")
        .file(&format!("{at}/hooks/hooks.json"), hooks)
        .file(&format!("{at}/note.sh"), "test -d \"$1\" && echo \"$1 $2 $CLAUDE_PLUGIN_ROOT\" > \"$2/noted\"\n")
        .file(&format!("{at}/.lsp.json"), r#"{"lspServers": {"db": {}}}"#)
}

/// The first line of a run, and how it ended.
fn init(program: &Program, args: &[&str]) -> (Value, Done) {
    let mut all = vec!["-p", "hi", "--offline", "--output-format", "stream-json"];
    all.extend(args);
    let done = program.run(&all);
    let first = done.out.lines().find(|line| line.contains("\"init\"")).unwrap_or_else(|| panic!("{done:?}"));
    (serde_json::from_str(first).unwrap(), done)
}

fn commands(init: &Value) -> Vec<&str> {
    let all = init["slash_commands"].as_array().unwrap();
    all.iter().filter_map(Value::as_str).filter(|name| name.contains(':')).collect()
}

#[test]
fn what_a_plugin_brings_is_there_and_its_hooks_wait_for_trust() {
    let program = demo(Program::new(), "own/demo");
    let (line, done) = init(&program, &["--plugin-dir", "own/demo"]);
    assert_eq!(commands(&line), ["demo:greet", "demo:build"]);
    let plugin = &line["plugins"][0];
    let root = program.project().join("own/demo");
    assert_eq!((&plugin["name"], &plugin["source"]), (&"demo".into(), &"demo@inline".into()));
    assert_eq!(plugin["path"], root.to_string_lossy().as_ref());
    assert_eq!(line.get("plugin_errors"), None);
    for told in
        ["is not trusted", "plugin demo: hook SessionStart: sh", "plugin demo: allowed tools of /build: Bash(make:*)"]
    {
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
    assert!(!program.project().join("noted").exists(), "the hook ran before the user agreed");
    let (_, done) = init(&program, &["--plugin-dir", "own/demo", "--trust"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let data = program.home().join(".claude/plugins/data/demo-inline");
    let noted = fs::read_to_string(program.project().join("noted")).unwrap();
    assert_eq!(noted, format!("{} {} {}\n", data.display(), program.project().display(), root.display()));
    // What was agreed to holds, here and elsewhere, until the list is another.
    fs::remove_file(program.project().join("noted")).unwrap();
    let (_, done) = init(&program, &["--plugin-dir", "own/demo"]);
    assert!(!done.err.contains("is not trusted"), "{}", done.err);
    assert!(program.project().join("noted").exists());
    let program = program.file("own/demo/note.sh", "echo other > noted\n");
    let (_, done) = init(&program, &["--plugin-dir", "own/demo"]);
    assert!(done.err.contains("is not trusted"), "{}", done.err);
    assert!(done.err.contains("plugin demo: hook SessionStart: sh"), "{}", done.err);
    assert!(!done.err.contains("allowed tools of /build"), "{}", done.err);
    assert_ne!(fs::read_to_string(program.project().join("noted")).unwrap(), "other\n");
}

#[test]
fn a_skill_knows_the_folder_of_its_plugin() {
    let program = demo(Program::new(), "own/demo");
    let done = program.run(&["-p", "/demo:greet", "--offline", "--plugin-dir", "own/demo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let log = fs::read_to_string(&program.logs()[0]).unwrap();
    let root = program.project().join("own/demo");
    assert!(log.contains(&format!("Say hello from {}.", root.display())), "{log}");
    // The short name reaches it, too.
    let done = program.run(&["-p", "/greet", "--offline", "--plugin-dir", "own/demo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = program.run(&["-p", "/agents", "--offline", "--plugin-dir", "own/demo"]);
    assert!(done.out.contains("demo:look"), "{}", done.out);
    for told in ["`hooks` is ignored", "`permissionMode` is ignored"] {
        assert!(done.out.contains(told), "{told}: {}", done.out);
    }
}

#[test]
fn plugins_of_claude_code_are_found_and_settings_switch_them() {
    let list = |program: &Program, args: &[&str]| {
        let mut all = vec!["plugin", "list", "--json"];
        all.extend(args);
        let done = program.run(&all);
        let rows: Vec<Value> = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
        let row = |row: &Value| {
            format!("{} {} {}", row["id"].as_str().unwrap(), row["from"].as_str().unwrap(), row["enabled"])
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let program = Program::new();
    let cache = program.home().join(".claude/plugins/cache/market");
    let entry = |scope: &str, name: &str, more: &str| {
        let path = cache.join(name).join("1.0.0");
        format!(r#""{name}@market": [{{"scope": "{scope}", "installPath": {path:?}, "version": "1.0.0"{more}}}]"#)
    };
    let here = format!(", \"projectPath\": {:?}", program.project());
    let entries = [
        entry("user", "one", ""),
        entry("project", "two", ", \"projectPath\": \"/elsewhere\""),
        entry("local", "three", &here),
        entry("user", "gone", ""),
    ];
    let skill = "---\ndescription: d\n---\nx";
    let program = program
        .home_file(
            ".claude/plugins/installed_plugins.json",
            &format!("{{\"version\": 2, \"plugins\": {{{}}}}}", entries.join(",")),
        )
        .home_file(".claude/plugins/cache/market/one/1.0.0/skills/a/SKILL.md", skill)
        .home_file(".claude/plugins/cache/market/two/1.0.0/skills/a/SKILL.md", skill)
        .home_file(".claude/plugins/cache/market/three/1.0.0/skills/a/SKILL.md", skill)
        .home_file(&format!(".claude/skills/mine/{MANIFEST}"), r#"{"name": "mine"}"#)
        .home_file(".claude/skills/mine/skills/b/SKILL.md", skill)
        .home_file(".claude/settings.json", r#"{"enabledPlugins": {"three@market": false, "missing@market": true}}"#);
    let want = ["one@market claude_code true", "three@market claude_code false", "mine@skills-dir skills true"];
    assert_eq!(list(&program, &[]), want);
    let (line, done) = init(&program, &[]);
    assert_eq!(commands(&line), ["one:a", "mine:b"]);
    let errors = line["plugin_errors"].to_string();
    for told in ["gone@market is not there", "missing@market: error: is enabled and not installed"] {
        assert!(errors.contains(told), "{told}: {errors}");
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
    // One's own word wins over Claude Code's settings, which stay as they are.
    let before = fs::read(program.home().join(".claude/settings.json")).unwrap();
    assert_eq!(program.run(&["plugin", "enable", "three"]).out, "three@market is on\n");
    assert_eq!(program.run(&["plugin", "disable", "one@market"]).out, "one@market is off\n");
    assert_eq!(fs::read(program.home().join(".claude/settings.json")).unwrap(), before);
    assert_eq!(commands(&init(&program, &[]).0), ["three:a", "mine:b"]);
    let done = program.run(&["plugin", "enable", "nobody"]);
    assert_eq!((done.code, done.err.contains("there are one@market")), (Some(2), true), "{done:?}");
}

#[test]
fn a_plugin_of_the_project_waits_for_trust() {
    let skill = "---\ndescription: d\n---\nx";
    let program = Program::new()
        .file(&format!(".claude/skills/their/{MANIFEST}"), r#"{"name": "their"}"#)
        .file(".claude/skills/their/skills/a/SKILL.md", skill)
        .home_file(&format!(".claude/skills/mine/{MANIFEST}"), r#"{"name": "mine", "defaultEnabled": false}"#)
        .home_file(".claude/skills/mine/skills/b/SKILL.md", skill)
        .file(".claude/settings.json", r#"{"enabledPlugins": {"mine@skills-dir": true}}"#);
    let (line, done) = init(&program, &[]);
    assert_eq!(commands(&line), [] as [&str; 0]);
    for told in
        ["plugin their: the plugin of this folder in .claude/skills/their", "plugins.enabled.mine@skills-dir = true"]
    {
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
    assert_eq!(commands(&init(&program, &["--trust"]).0), ["mine:b", "their:a"]);
    assert_eq!(commands(&init(&program, &[]).0), ["mine:b", "their:a"]);
}

#[test]
fn validate_says_what_is_wrong() {
    let program = demo(Program::new(), "good")
        .file("bad/.claude-plugin/plugin.json", r#"{"name": 1}"#)
        .file("odd/.claude-plugin/plugin.json", r#"{"name": "odd", "hoks": {}, "commands": "../x"}"#);
    let check = |args: &[&str], code: i32, told: &[&str]| {
        let mut all = vec!["plugin", "validate"];
        all.extend(args);
        let done = program.run(&all);
        assert_eq!(done.code, Some(code), "{args:?}: {done:?}");
        for told in told {
            assert!(done.out.contains(told) || done.err.contains(told), "{told}: {done:?}");
        }
    };
    check(&["good"], 0, &["note: its LSP servers are not supported yet: db", "demo: 0 errors, 2 warnings"]);
    check(&["good/.claude-plugin/plugin.json"], 0, &["demo: 0 errors"]);
    check(&["--strict", "good"], 1, &["`hooks` is ignored: an agent of a plugin cannot have it"]);
    check(&["bad"], 1, &["`name` must be a string; the plugin does not load", "1 error, 0 warnings"]);
    check(&["odd"], 1, &["did you mean `hooks`?", "leads out of the plugin with `..`"]);
    check(&["nowhere"], 2, &["error: "]);
    let done = program.run(&["plugin", "details", "demo"]);
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn names_clash_and_the_stronger_counts() {
    let skill = |text: &str| format!("---\ndescription: {text}\n---\nx");
    let program = Program::new()
        .file("p/skills/commit/SKILL.md", &skill("of the plugin"))
        .file("p/skills/own/SKILL.md", &skill("of the plugin"))
        .file("q/p/skills/other/SKILL.md", &skill("of another"))
        .home_file(".claude/skills/own/SKILL.md", &skill("of the user"));
    let (line, _) = init(&program, &["--plugin-dir", "p", "--plugin-dir", "q/p", "--plugin-dir", "none"]);
    assert_eq!(commands(&line), ["p:commit", "p:own", "bundled:commit"]);
    let errors = line["plugin_errors"].to_string();
    for told in ["has the name of p@inline", "none: error: cannot be opened"] {
        assert!(errors.contains(told), "{told}: {errors}");
    }
    let done = program.run(&["-p", "/plugin", "--offline", "--plugin-dir", "p", "--plugin-dir", "q/p"]);
    assert!(done.out.contains("- **p@inline** on (by --plugin-dir)\n  - skills: /p:commit, /p:own"), "{}", done.out);
}

#[test]
fn a_plugin_is_installed_updated_and_removed() {
    let program = demo(Program::new(), "demo").file("plain.txt", "");
    let run = |args: &[&str]| {
        let mut all = vec!["plugin"];
        all.extend(args);
        program.run(&all)
    };
    let done = run(&["install", "demo"]);
    assert!(done.out.starts_with("demo@local 1.2.0 is installed\nthe next session asks whether this may run:\n- plugin demo: hook SessionStart: sh"), "{done:?}");
    assert_eq!(commands(&init(&program, &[]).0), ["demo:greet", "demo:build"]);
    fs::write(program.project().join("demo").join(MANIFEST), r#"{"name": "demo", "version": "2"}"#).unwrap();
    assert!(run(&["update"]).out.starts_with("demo@local 1.2.0 is now 2\n"));
    assert!(run(&["prune"]).out.contains("cache/local/demo/1.2.0\n"));
    assert_eq!(run(&["uninstall", "demo"]).out, "demo@local is uninstalled\n");
    assert_eq!(commands(&init(&program, &[]).0), [] as [&str; 0]);
    for (args, told) in [
        (&["install", "nowhere"][..], "neither a folder nor the URL"),
        (&["install", "x@market"], "does not read marketplaces yet"),
        (&["install", "demo", "--sha", "abc"], "is not a whole commit"),
        (&["install", "ext::sh -c touch% hacked"], "neither a folder nor the URL"),
        (&["install", "ext::sh://x"], "git fetch failed"),
        (&["uninstall", "demo"], "no plugin \"demo\""),
    ] {
        let done = run(args);
        assert!(done.code != Some(0) && done.err.contains(told), "{args:?}: {done:?}");
    }
    // One whose files are gone can still be removed, by its name as well.
    for name in ["demo", "demo@local"] {
        assert_eq!(run(&["install", "demo"]).code, Some(0));
        fs::remove_dir_all(program.home().join(".claude/cocode/plugins/cache")).unwrap();
        assert_eq!(run(&["uninstall", name]).out, "demo@local is uninstalled\n");
    }
    assert_eq!(run(&["list"]).out, "no plugins: `cocode plugin install <folder>` adds one\n");
}

#[test]
fn trust_in_a_folder_is_not_trust_in_what_the_user_installed() {
    let program = demo(Program::new(), "demo").file(".claude/settings.json", r#"{"env": {"A": "1"}}"#);
    assert_eq!(program.run(&["plugin", "install", "demo"]).code, Some(0));
    let noted = program.project().join("noted");
    let (_, done) = init(&program, &["--trust"]);
    assert!(done.err.contains("the plugin demo@local is not trusted, so this does not run: plugin demo: "), "{done:?}");
    assert!(done.err.contains("`cocode plugin trust demo@local` lets it") && !noted.exists(), "{done:?}");
    assert!(!done.err.contains("env.A"), "{done:?}");
    let done = program.run(&["plugin", "trust", "demo"]);
    assert!(done.out.starts_with("demo@local may run this from now on:\n- plugin demo: hook SessionStart"), "{done:?}");
    let (_, done) = init(&program, &[]);
    assert!(!done.err.contains("is not trusted") && noted.exists(), "{done:?}");
}

#[test]
fn no_variable_makes_git_run_a_program() {
    let set = [("GIT_ALLOW_PROTOCOL", "ext"), ("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "protocol.ext.allow")];
    let more = [("GIT_CONFIG_VALUE_0", "always"), ("GIT_EXEC_PATH", "."), ("GIT_TEMPLATE_DIR", "template")];
    let program = set.into_iter().chain(more).fold(Program::new(), |program, (name, value)| program.env(name, value));
    let program = program.file("git-remote-x", "#!/bin/sh\ntouch hacked\n").file("template/hooks/post-checkout", "");
    for url in ["ext::touch % hacked ://", "ext::sh -c touch% hacked%S://x"] {
        let done = program.run(&["plugin", "install", url]);
        assert!(done.err.contains("transport 'ext' not allowed"), "{done:?}");
    }
    assert!(!program.project().join("hacked").exists());
}

#[test]
fn a_repository_is_fetched_at_the_commit_that_was_asked_for() {
    let program = demo(Program::new(), "repo");
    let git = |args: &[&str]| {
        let mut command = program.command("git", args);
        command.current_dir(program.project().join("repo")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "e@x");
        }
        let done = program.wait(command);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.out.trim().to_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "--all"]);
    git(&["commit", "-qm", "one"]);
    let first = git(&["rev-parse", "HEAD"]);
    let url = format!("file://{}", program.project().join("repo").display());
    let done = program.run(&["plugin", "install", &url, "--sha", &first]);
    assert!(done.out.starts_with("demo@local 1.2.0 is installed\n"), "{done:?}");
    let root = program.home().join(".claude/cocode/plugins/cache/local/demo/1.2.0");
    assert_eq!((root.join("note.sh").exists(), root.join(".git").exists()), (true, false));
    let other = "0".repeat(40);
    let done = program.run(&["plugin", "install", &url, "--sha", &other]);
    assert!(done.err.contains("git fetch failed"), "{done:?}");
    let done = program.run(&["plugin", "install", &url, "--ref", "-x"]);
    assert_ne!(done.code, Some(0), "{done:?}");
    assert!(root.join("note.sh").exists());
}
