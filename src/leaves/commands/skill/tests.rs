//! Shapes of SKILL.md as they are found in the wild.

use proptest::prelude::*;

use super::*;
use crate::commands::Severity;

fn parsed(folder: &str, text: &str) -> (Skill, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let path = Path::new("/x/SKILL.md");
    let source = Source::UserSettings;
    let at = At { path, folder, source: &source, loaded_from: LoadedFrom::Skills, plugin: None };
    let place = Text::File { path: path.into(), base: "/x".into() };
    (Skill::parse(text, at, place, &mut problems), problems)
}

/// The skill as `name: description`, and what was told, as `line what`; errors with a `!`.
fn check(text: &str, want: &str, told: &[&str]) {
    let (skill, problems) = parsed("folder", text);
    let got = format!("{}: {}", skill.name, skill.description);
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let mark = if problem.severity == Severity::Error { "!" } else { "" };
            format!("{mark}{} {}", problem.line.unwrap_or_default(), problem.what)
        })
        .collect();
    assert_eq!((got.as_str(), lines), (want, told.iter().map(|line| (*line).to_owned()).collect()), "{text}");
}

#[test]
fn shapes() {
    let differs = |line: usize| format!("{line} the name `a` differs from the folder `folder`");
    check("---\nname: folder\ndescription: d\n---\nbody", "folder: d", &[]);
    check("---\ndescription: d\n---\nbody", "folder: d", &[]);
    check("---\nname: a\ndescription: d\n---\nbody", "a: d", &[&differs(2)]);
    check("\u{feff}---\r\nNAME: a\r\nDescription: d\r\n---\r\nbody\r\n", "a: d", &[&differs(2)]);
    check("# The title #\ntext", "folder: The title", &["1 no frontmatter"]);
    check("```\n# code\n```\nfirst\nparagraph\n\nsecond", "folder: first paragraph", &["1 no frontmatter"]);
    check("---\nname: folder\n---\n# Title", "folder: Title", &["0 no description"]);
    check("---\nname: folder\ndescription:\n---\nx", "folder: x", &["3 no description"]);
    check("", "folder: folder", &["1 no frontmatter", "!0 the body is empty"]);
    check("---\nname: folder\ndescription: >-\n  one\n  two\n---\nx", "folder: one two", &[]);
    check("---\nname: folder\ndescription: |\n  one\n  two\n---\nx", "folder: one two", &[]);
    check("---\nname: folder\ndescription: [a, b]\n---\nx", "folder: a, b", &[]);
    check("---\nname: 12\ndescription: 1.5\n---\nx", "12: 1.5", &["2 the name `12` differs from the folder `folder`"]);
    check(
        "---\nname: My Skill\ndescription: d\n---\nx",
        "My-Skill: d",
        &["2 the name \"My Skill\" cannot be typed", "2 the name `My Skill` differs from the folder `folder`"],
    );
    check(
        "---\nname: größe\ndescription: d\n---\nx",
        "größe: d",
        &[
            "2 the name `größe` contains characters other than a-z, 0-9 and -",
            "2 the name `größe` differs from the folder `folder`",
        ],
    );
    check("---\nname: ///\ndescription: d\n---\nx", "unnamed: d", &["!2 the name \"///\" has no usable letters"]);
    check(
        "---\nname: folder\ndescription: d\nbase_dir: ../../etc\ncontext: spoon\nhooks: 3\nuser-invocable: maybe\n---\nx",
        "folder: d",
        &[
            "!5 `context: spoon` is neither `main` nor `fork`",
            "!4 `base_dir: ../../etc` is not a folder inside the skill's own",
            "!7 `user-invocable` is not true or false",
            "!6 `hooks` is not a table of events",
        ],
    );
    check(
        &format!("---\nname: folder\ndescription: d\n---\n{}", "x".repeat(100_000)),
        "folder: d",
        &["0 the body has 100000 characters"],
    );
    check(
        "<!-- made -->\n---\nname: folder\ndescription: d\n---\nx",
        "folder: d",
        &["1 there is a comment above the frontmatter"],
    );
    check(
        "````skill\n---\nname: folder\ndescription: d\n---\nx\n````\n",
        "folder: d",
        &["1 the whole file is inside a code fence"],
    );
    check("---\nname: folder # mine\ndescription: d\nversion: 1 # first\n---\nx", "folder: d", &[]);
    check(
        "---\nname: folder\ndescription: fixes issue #1 and #2\n---\nx",
        "folder: fixes issue",
        &["3 ` #` starts a comment in the value of `description`"],
    );
    check(
        "---\nname: folder\ndescription: d\nagent: quant_analyst\n---\nx",
        "folder: d",
        &["4 `agent: quant_analyst` only works with `context: fork`"],
    );
    let (skill, _) = parsed("f", "---\ndescription: d\nuser-invokable: false\n---\nx");
    assert!(!skill.user_invocable, "as other tools spell it");
    let (skill, _) = parsed("f", &format!("---\ndescription: {}\n---\nx", "é".repeat(2_000)));
    assert_eq!(skill.description.chars().count(), 1_024);
}

#[cfg(unix)]
#[test]
fn a_base_folder_stays_inside_the_skill() {
    let dir = tempfile::tempdir().unwrap();
    let skill = dir.path().join("skill");
    std::fs::create_dir_all(skill.join("docs/deep")).unwrap();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", skill.join("link")).unwrap();
    std::os::unix::fs::symlink("docs", skill.join("own")).unwrap();
    std::fs::write(skill.join("file"), "").unwrap();
    let source = Source::UserSettings;
    for (given, inside) in [
        ("docs", true),
        ("./docs/deep", true),
        ("own", true),
        ("link", false),
        ("docs/../../outside", false),
        ("/etc", false),
        ("none", false),
        ("file", false),
    ] {
        let path = skill.join("SKILL.md");
        std::fs::write(&path, format!("---\ndescription: d\nbaseDir: {given}\n---\nx")).unwrap();
        let mut problems = Vec::new();
        let at = At { path: &path, folder: "skill", source: &source, loaded_from: LoadedFrom::Skills, plugin: None };
        let read = Skill::load(at, &mut problems).unwrap();
        let want = if inside { skill.join(given) } else { skill.clone() };
        assert_eq!((read.base(), problems.len()), (Some(want.as_path()), usize::from(!inside)), "{given}");
    }
}

#[test]
fn utf_16_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, source) = (dir.path().join("SKILL.md"), Source::UserSettings);
    let text = "---\nname: ein-name\ndescription: schön\n---\nx";
    for (mark, bytes) in [([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]), ([0xfe, 0xff], u16::to_be_bytes)] {
        let units: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
        std::fs::write(&path, [mark.as_slice(), units.as_slice()].concat()).unwrap();
        let mut problems = Vec::new();
        let at = At { path: &path, folder: "ein-name", source: &source, loaded_from: LoadedFrom::Skills, plugin: None };
        let skill = Skill::load(at, &mut problems).unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("ein-name", "schön"));
        assert_eq!(problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>(), ["is UTF-16"]);
    }
}

#[test]
fn every_field() {
    let (skill, problems) = parsed(
        "all",
        "---\nname: all\ndescription: d\nwhen-to-use: always\nuserInvocable: no\ndisable_model_invocation: \"yes\"\n\
         argument-hint: [id]\nallowedTools: Bash(git add:*), Bash(git commit -m:*) Read\ndisallowed-tools:\n- Write\n- \"Bash(rm:*)\"\n\
         model: opus\ncontext: fork\nagent: Explore\naliases: [ci, /save]\nhooks:\n  Stop:\n  - hooks: []\n\
         sparse_reminder: s\ndetailed-reminder: |\n  d1\n  d2\nlicense: MIT\nmetadata: {a: 1}\n---\nx",
    );
    assert_eq!(problems, []);
    assert_eq!(
        (
            skill.when_to_use.as_deref(),
            skill.user_invocable,
            skill.disable_model_invocation,
            skill.argument_hint.as_deref()
        ),
        (Some("always"), false, true, Some("[id]"))
    );
    assert_eq!(skill.allowed_tools, ["Bash(git add:*)", "Bash(git commit -m:*)", "Read"]);
    assert_eq!(skill.disallowed_tools, ["Write", "Bash(rm:*)"]);
    assert_eq!(
        (skill.model.as_deref(), skill.context, skill.agent.as_deref(), skill.aliases),
        (Some("opus"), RunsIn::Fork, Some("Explore"), vec!["ci".to_owned(), "save".to_owned()])
    );
    assert!(skill.hooks.unwrap().contains_key("Stop"));
    let at = |verbosity| skill.reminders.at(verbosity);
    assert_eq!(
        (at(Verbosity::Sparse), at(Verbosity::Normal), at(Verbosity::Detailed)),
        (Some("s"), Some("s"), Some("d1\nd2"))
    );
}

#[test]
fn tools_in_every_spelling() {
    fn check(yaml: &str, want: &[&str]) {
        let (skill, _) = parsed("f", &format!("---\ndescription: d\nallowed-tools: {yaml}\n---\nx"));
        assert_eq!(skill.allowed_tools, want, "{yaml}");
    }
    check("Read, Write", &["Read", "Write"]);
    check("Read Write", &["Read", "Write"]);
    check("[Read, Write]", &["Read", "Write"]);
    check("[Read, Write", &["Read", "Write"]);
    check("[Read, Bash(git: *)]", &["Read", "Bash(git: *)"]);
    check("\n- Read\n- Bash(git add:*)", &["Read", "Bash(git add:*)"]);
    check("\n  - Bash(a: b)\n  - Read, Grep", &["Bash(a: b)", "Read", "Grep"]);
    check("\"Bash(gh pr view:*),Read\"", &["Bash(gh pr view:*)", "Read"]);
    check("", &[]);
    check("[]", &[]);
    check("Bash(git log --format=a,b)", &["Bash(git log --format=a,b)"]);
    check("*", &["*"]);
}

proptest! {
    #[test]
    fn whatever_stands_there_becomes_a_skill_with_a_name(
        folder in "[ -~é/]{0,12}",
        text in "(---\n)?((name|description|allowed-tools|aliases|hooks|context|argument-hint)?[ :\\-#'\"|>\\[\\]{},&*]{0,4}[a-zé]{0,6}\n){0,8}(---\n)?[#` a-zé\n]{0,30}"
    ) {
        let (skill, _) = parsed(&folder, &text);
        prop_assert!(!skill.name.is_empty() && !skill.name.contains(char::is_whitespace));
        prop_assert!(!skill.description.is_empty() && !skill.description.contains('\n'));
    }
}
