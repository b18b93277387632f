//! A row for each rule of a manifest.

use super::*;

/// Makes the files, in which `-> ` stands for a link, reads the plugin, and compares what it has and what was told.
fn check(files: &[(&str, &str)], want: &str, told: &[&str]) {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap().join("demo");
    std::fs::create_dir(&root).unwrap();
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => std::fs::write(path, text).unwrap(),
        }
    }
    let (manifest, faults) = read(&root, "demo", None);
    let short = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    let shown = manifest.map_or_else(
        || "none".to_owned(),
        |manifest| {
            let mut parts = vec![manifest.name];
            for (what, paths) in
                [("skills", manifest.skills), ("commands", manifest.commands), ("agents", manifest.agents)]
            {
                if !paths.is_empty() {
                    parts.push(format!("{what} {}", paths.iter().map(short).collect::<Vec<_>>().join(" ")));
                }
            }
            parts.extend(manifest.hooks.lines());
            parts.extend(manifest.servers.iter().map(|server| format!("server {} {}", server.name, server.entry)));
            parts.extend(manifest.unsupported.iter().map(|(what, names)| format!("{what} {}", names.join(" "))));
            parts.join("; ")
        },
    );
    let said: Vec<String> = faults
        .iter()
        .map(|fault| format!("{:?} {}: {}; {}", fault.severity, fault.file.display(), fault.what, fault.fix))
        .map(|line| line.replace(&*root.to_string_lossy(), "$R"))
        .collect();
    assert_eq!(shown, want, "{files:?}: {said:#?}");
    assert_eq!(said.len(), told.len(), "{files:?}: {said:#?}");
    for (said, told) in said.iter().zip(told) {
        assert!(said.contains(told), "{files:?}: {said}\ndoes not say\n{told}");
    }
}

/// A manifest beside one skill.
fn manifest(text: &str, want: &str, told: &[&str]) {
    check(&[(FILE, text), ("skills/a/SKILL.md", "x")], want, told);
}

const HOOK: &str = r#"{"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}"#;

#[test]
fn a_manifest_may_be_missing_and_names_the_plugin() {
    check(&[("skills/a/SKILL.md", "x")], "demo; skills skills", &[]);
    check(&[("SKILL.md", "x")], "demo; skills SKILL.md", &[]);
    check(&[("SKILL.md", "x"), ("skills/a/SKILL.md", "x")], "demo; skills skills", &[]);
    manifest(r#"{"name": "other"}"#, "other; skills skills", &[]);
    manifest("\u{feff}{\"name\": \"other\"}", "other; skills skills", &[]);
    manifest(
        r#"{"name": "Other_One"}"#,
        "Other_One; skills skills",
        &["Warning $R/.claude-plugin/plugin.json: the name `Other_One` is not in kebab case"],
    );
    for name in ["a b", "a/b", "a:b", "../a", "", "a\\u0007", ".a", "a@b"] {
        manifest(&format!(r#"{{"name": "{name}"}}"#), "none", &["is not made of letters"]);
    }
    manifest(r#"{"version": "1"}"#, "none", &["`name` is missing"]);
    manifest("{}", "none", &["`name` is missing"]);
    check(&[], "demo", &["has nothing that could be loaded"]);
    check(&[("README.md", "")], "demo", &["has nothing that could be loaded"]);
}

#[test]
fn what_is_not_a_manifest_loads_nothing() {
    manifest("", "none", &["is not valid JSON"]);
    manifest("[]", "none", &["is not a JSON object"]);
    check(
        &[("own.json", "{\"name\": \"own\"}"), (FILE, "-> ../own.json")],
        "own",
        &["has nothing that could be loaded"],
    );
    for target in ["-> /etc/hostname", "-> ../../other.json", "-> gone"] {
        check(&[(FILE, target), ("skills/a/SKILL.md", "x")], "none", &["leads out of the plugin, or nowhere"]);
    }
    manifest("{\"name\": \"x\",}", "none", &["is not valid JSON: trailing comma at line 1"]);
    manifest(&"[".repeat(100_000), "none", &["is not valid JSON: recursion limit"]);
    manifest(&format!("{{\"name\": \"{}\"}}", "x".repeat(2 << 20)), "none", &["is larger than 1 MiB"]);
    check(&[(FILE, "-> plugin.json")], "none", &["leads out of the plugin, or nowhere"]);
    check(&[(".claude-plugin/plugin.json/x", "")], "none", &["cannot be read: is not a regular file"]);
}

#[test]
fn values_of_another_kind_are_named() {
    for (field, want) in [
        (r#""name": 3"#, "`name` must be a string"),
        (r#""displayName": []"#, "`displayName` must be a string"),
        (r#""version": 1"#, "`version` must be a string"),
        (r#""author": 1"#, "`author` must be an object with a `name`"),
        (r#""author": {"email": "x"}"#, "`author` must be an object with a `name`"),
        (r#""keywords": "x""#, "`keywords` must be a list of strings"),
        (r#""keywords": [1]"#, "`keywords` must be a list of strings"),
        (r#""defaultEnabled": "yes""#, "`defaultEnabled` must be true or false"),
        (r#""skills": {}"#, "`skills` must be a path or a list of paths"),
        (r#""agents": [1]"#, "`agents` must be a path or a list of paths"),
        (r#""hooks": 1"#, "`hooks` must be a path, an object, or a list of both"),
        (r#""mcpServers": [[]]"#, "`mcpServers` must be a path, an object, or a list of both"),
        (r#""userConfig": []"#, "`userConfig` must be an object"),
        (r#""channels": {}"#, "`channels` must be a list"),
        (r#""dependencies": [{}]"#, "`dependencies` must be a list of names"),
    ] {
        let text = if field.contains("\"name\": 3") {
            format!("{{{field}}}")
        } else {
            format!("{{\"name\": \"demo\", {field}}}")
        };
        let (manifest, faults) = {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            std::fs::create_dir(root.join(".claude-plugin")).unwrap();
            std::fs::write(root.join(FILE), text).unwrap();
            read(&root, "demo", None)
        };
        assert!(manifest.is_none(), "{field}");
        assert!(
            faults.iter().any(|fault| fault.what == want && fault.severity == crate::commands::Severity::Error),
            "{field}: {faults:#?}"
        );
    }
    for field in [r#""metadata": 1"#, r#""experimental": []"#] {
        manifest(
            &format!("{{\"name\": \"demo\", {field}}}"),
            "demo; skills skills",
            &["it is ignored"].map(|_| "must be an object"),
        );
    }
    manifest(
        r#"{"name": "demo", "author": "me", "dependencies": ["a", {"name": "b", "version": "1"}]}"#,
        "demo; skills skills",
        &[],
    );
}

#[test]
fn unknown_fields_are_named_with_the_nearest() {
    manifest(
        r#"{"name": "demo", "hoooks": {}}"#,
        "demo; skills skills",
        &["Warning $R/.claude-plugin/plugin.json: unknown field `hoooks`; did you mean `hooks`?"],
    );
    manifest(r#"{"name": "demo", "zzz": 1}"#, "demo; skills skills", &["unknown field `zzz`; remove it"]);
    manifest(
        r#"{"name": "demo", "experimental": {"x": 1}}"#,
        "demo; skills skills",
        &["unknown field `experimental.x`"],
    );
    check(
        &[(FILE, r#"{"name": "demo"}"#), (".claude-plugin/commands/a.md", "x"), ("commands/b.md", "x")],
        "demo; commands commands",
        &["`.claude-plugin/commands` is not looked at; move it to `commands`"],
    );
}

#[test]
fn paths_stay_in_the_plugin() {
    let other = |field: &str, want: &str, told: &[&str]| {
        let text = format!("{{\"name\": \"demo\", {field}}}");
        check(
            &[
                (FILE, &text),
                ("skills/a/SKILL.md", "x"),
                ("commands/c.md", "x"),
                ("more/b.md", "x"),
                ("../out/b.md", "x"),
            ],
            want,
            told,
        );
    };
    other(r#""commands": "./more""#, "demo; skills skills; commands more", &[]);
    other(r#""commands": ["./more/b.md", "./commands"]"#, "demo; skills skills; commands more/b.md commands", &[]);
    other(
        r#""commands": {"x": {"source": "./more/b.md"}, "y": {"content": "z"}}"#,
        "demo; skills skills; commands more/b.md",
        &["`commands.y` has no `source`"],
    );
    other(r#""skills": "./more""#, "demo; skills skills more; commands commands", &[]);
    other(r#""skills": "."  "#, "demo; skills skills ; commands commands", &[]);
    other(r#""skills": ["./skills"]"#, "demo; skills skills; commands commands", &[]);
    for (path, told) in [
        ("more", "\"more\" does not begin with `./`"),
        ("/etc", "\"/etc\" does not begin with `./`"),
        (".", "\".\" does not begin with `./`"),
        ("./../out", "leads out of the plugin with `..`"),
        ("./more/../../out", "leads out of the plugin with `..`"),
        ("./gone", "\"./gone\" does not exist"),
        ("", "does not begin with `./`"),
    ] {
        other(&format!(r#""commands": "{path}""#), "demo; skills skills", &[told]);
    }
    let linked =
        |link: &str, told: &str| check(&[("skills", link), ("commands/c.md", "x")], "demo; commands commands", &[told]);
    linked("-> /etc", "is a link to /etc, outside the plugin");
    linked("-> skills", "`skills` is a link that leads nowhere");
    linked("-> gone", "`skills` is a link that leads nowhere");
    check(&[("skills", "-> own"), ("own/a/SKILL.md", "x")], "demo; skills own", &[]);
}

#[test]
fn hooks_come_from_files_and_from_the_manifest() {
    let file = "hooks/hooks.json";
    let inner = format!("{{\"description\": \"x\", \"hooks\": {HOOK}}}");
    check(&[(file, &inner)], "demo; hook Stop: x", &[]);
    check(&[(file, HOOK)], "demo; hook Stop: x", &[]);
    let with = |hooks: &str| format!("{{\"name\": \"demo\", \"hooks\": {hooks}}}");
    check(&[(FILE, &with(HOOK))], "demo; hook Stop: x", &[]);
    check(&[(FILE, &with(HOOK)), (file, &inner)], "demo; hook Stop: x; hook Stop: x", &[]);
    check(&[(FILE, &with("\"./hooks/hooks.json\"")), (file, &inner)], "demo; hook Stop: x", &[]);
    check(
        &[(FILE, &with(&format!("[\"./h.json\", {inner}]"))), ("h.json", HOOK)],
        "demo; hook Stop: x; hook Stop: x",
        &[],
    );
    check(&[(file, "{")], "demo", &["hooks/hooks.json: is not valid JSON", "nothing that could be loaded"]);
    check(&[(file, "[]")], "demo", &["hooks/hooks.json: is not a JSON object", "nothing that could be loaded"]);
    check(&[(file, r#"{"Stopp": []}"#), ("SKILL.md", "x")], "demo; skills SKILL.md", &["`hooks.Stopp` is ignored"]);
    check(
        &[(file, &HOOK.replace("command\", \"command\": \"x", "prompt\", \"prompt\": \"x")), ("SKILL.md", "x")],
        "demo; skills SKILL.md",
        &["type \"prompt\" is not supported"],
    );
    check(
        &[(file, &HOOK.replace("\"x\"", "\"x ${user_config.key}\"")), ("SKILL.md", "x")],
        "demo; skills SKILL.md",
        &["a hook in a shell cannot use ${user_config}"],
    );
}

#[test]
fn what_nothing_is_done_with_is_named() {
    check(&[(".mcp.json", r#"{"mcpServers": {"a": {}, "b": {}}}"#)], "demo; server a {}; server b {}", &[]);
    check(
        &[(FILE, r#"{"name": "demo", "mcpServers": {"a": {}}}"#), (".mcp.json", r#"{"b": {}}"#)],
        "demo; server b {}; server a {}",
        &[],
    );
    check(
        &[
            (".lsp.json", r#"{"go": {}}"#),
            ("themes/x.json", ""),
            ("monitors/monitors.json", ""),
            ("workflows/x", ""),
            ("output-styles/x.md", ""),
        ],
        "demo; LSP servers go; output styles ; themes ; monitors ; workflows ",
        &[],
    );
    check(
        &[(FILE, r#"{"name": "demo", "experimental": {"themes": "./t"}, "userConfig": {"key": {}}, "channels": []}"#)],
        "demo; themes ; user configuration key; channels ",
        &[],
    );
    check(&[(".mcp.json", "{")], "demo", &[".mcp.json: is not valid JSON", "nothing that could be loaded"]);
}

#[test]
fn a_marketplace_adds_or_says_everything() {
    let entry = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
    let told = |own: Option<&str>, from: &str| {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for name in ["skills/a", "skills/b"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        if let Some(own) = own {
            std::fs::create_dir(root.join(".claude-plugin")).unwrap();
            std::fs::write(root.join(FILE), own).unwrap();
        }
        let (manifest, faults) = read(&root, "demo", Some(&entry(from)));
        let faults: Vec<String> = faults.into_iter().map(|fault| fault.what).collect();
        manifest.map_or_else(
            || faults.join("; "),
            |manifest| {
                let skills: Vec<_> = manifest.skills.iter().map(|path| path.strip_prefix(&root).unwrap()).collect();
                format!("{} {:?} {} {skills:?}", manifest.name, manifest.version, manifest.default_enabled)
            },
        )
    };
    let row = |own, from, want: &str| assert_eq!(told(own, from), want, "{own:?} {from}");
    row(Some(r#"{"name": "x", "version": "1"}"#), r#"{"name": "y", "version": "2"}"#, r#"x Some("1") true ["skills"]"#);
    row(
        Some(r#"{"name": "x"}"#),
        r#"{"name": "y", "version": "2", "defaultEnabled": false}"#,
        r#"x Some("2") false ["skills"]"#,
    );
    row(None, r#"{"name": "y", "strict": false, "skills": ["./skills/a"]}"#, r#"y None true ["skills/a"]"#);
    row(None, r#"{"name": "y", "skills": ["./skills/a"]}"#, r#"y None true ["skills", "skills/a"]"#);
    row(
        Some(r#"{"name": "x", "skills": "./skills"}"#),
        r#"{"name": "y", "strict": false}"#,
        "`skills` is here, and the marketplace says `strict: false`",
    );
}
