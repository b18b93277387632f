//! `cocode skills`: lists, shows, checks, converts and creates skills, with the code that loads them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Map, Value};

use super::Here;
use crate::commands::catalog::Snapshot;
use crate::commands::discover::{Found, discover_at};
use crate::commands::skill::RunsIn;
use crate::commands::{Diagnostic, Registry, Severity, Skill, Standing, report};
use crate::config::{self, Loaded, trust};
use crate::engine;
use crate::hooks::Definitions;
use crate::stdx::ansi::visible;
use crate::tools::RULES;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SkillsCommand {
    /// List all skills: where they are, and why one is not available
    List {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: its fields and its text
    Show {
        /// Its name, or source and name, as in project:commit
        name: String,
    },
    /// Check skills; exits with 1 if something does not work
    Validate {
        /// A SKILL.md or a folder of skills; default: all of yours
        paths: Vec<PathBuf>,
    },
    /// Convert .claude/commands/*.md into skills; without --write, only show what would be written
    Migrate {
        /// Write the skills; nothing is overwritten
        #[arg(long)]
        write: bool,
    },
    /// Create a skill
    New {
        /// Its name: a-z, 0-9 and -
        name: String,
        /// Create it in your own folder instead of the project's
        #[arg(long)]
        user: bool,
    },
}

/// Runs a subcommand; returns the exit code: 0, 1 for findings and failures, 2 for mistakes in what was typed.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub(super) fn run(command: &SkillsCommand, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let loaded = match config::load(here.paths, here.env, toml::Table::new()) {
        Ok(own) => own.with_project(here.cwd, &trust::of(here.paths, here.cwd)),
        Err(broken) => return writeln!(err, "error: {broken}").map(|()| 2),
    };
    match command {
        SkillsCommand::List { json: true } => writeln!(out, "{:#}", report::to_json(&load(here, &loaded))).map(|()| 0),
        SkillsCommand::List { json: false } => {
            out.write_all(visible(&list(&load(here, &loaded))).as_bytes())?;
            Ok(0)
        }
        SkillsCommand::Show { name } => {
            let now = load(here, &loaded);
            match now.named(name) {
                Some((_, skill)) => {
                    out.write_all(show(skill).as_bytes())?;
                    Ok(0)
                }
                None => {
                    let near = now.registry.nearest(name).filter(|near| now.named(near).is_some());
                    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                    writeln!(err, "error: no skill {name:?}{near}").map(|()| 2)
                }
            }
        }
        SkillsCommand::Validate { paths } => validate(paths, here, &loaded, out, err),
        SkillsCommand::Migrate { write } => migrate(*write, here, &loaded, out, err),
        SkillsCommand::New { name, user } => new(name, *user, here, out, err),
    }
}

fn load(here: Here<'_>, loaded: &Loaded) -> Snapshot {
    engine::skills(here, loaded)
}

fn list(now: &Snapshot) -> String {
    let mut text = String::new();
    for row in report::rows(now) {
        let name = row.command.unwrap_or(row.name);
        let place = row.path.map(|path| format!("\n    {}", path.display())).unwrap_or_default();
        let _ = writeln!(text, "{name}  {}{place}", row.detail);
    }
    for (dropped, first) in &now.dropped {
        let _ = writeln!(text, "not loaded again: {} is {}", dropped.display(), first.display());
    }
    if text.is_empty() {
        text.push_str("no skills yet: `cocode skills new <name>` creates one\n");
    }
    text
}

fn show(skill: &Skill) -> String {
    let list = |items: &[String]| items.join(", ");
    let flag = |on: bool| if on { "yes" } else { "no" }.to_owned();
    let rows = [
        ("name", skill.name.clone()),
        ("file", skill.place()),
        ("source", skill.source.tag().to_owned()),
        ("aliases", list(&skill.aliases)),
        ("description", skill.description.clone()),
        ("when to use", skill.when_to_use.clone().unwrap_or_default()),
        ("arguments", skill.argument_hint.clone().unwrap_or_default()),
        ("you may type it", flag(skill.user_invocable)),
        ("the model may call it", flag(!skill.disable_model_invocation)),
        ("allowed tools", list(&skill.allowed_tools)),
        ("disallowed tools", list(&skill.disallowed_tools)),
        ("model", skill.model.clone().unwrap_or_default()),
        ("runs", if skill.context == RunsIn::Fork { "as a sub-agent".into() } else { String::new() }),
        ("agent", skill.agent.clone().unwrap_or_default()),
        ("hooks", skill.hooks.iter().flat_map(Map::keys).cloned().collect::<Vec<_>>().join(", ")),
    ];
    let mut text = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name}: {}", visible(value));
    }
    match skill.body() {
        Ok(body) => {
            let _ = writeln!(text, "\n{}", visible(body.trim()));
        }
        Err(problem) => {
            let _ = writeln!(text, "\n{problem}");
        }
    }
    text
}

fn validate(
    paths: &[PathBuf],
    here: Here<'_>,
    loaded: &Loaded,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let (mut problems, mut count) = (Vec::new(), 0);
    if paths.is_empty() {
        let now = load(here, loaded);
        count = now.skills.len();
        problems.extend(now.skills.iter().flat_map(|(skill, _)| more(skill)));
        problems.extend(clashes(now.skills.iter().map(|(skill, standing)| (skill.as_ref(), standing))));
        problems.extend(now.dropped.iter().map(duplicate));
        problems.extend(now.problems);
    }
    for path in paths {
        let path = here.cwd.join(path);
        if !path.exists() {
            return writeln!(err, "error: {} does not exist", path.display()).map(|()| 2);
        }
        let Found { skills, problems: found, dropped, .. } = discover_at(&path);
        count += skills.len();
        problems.extend(skills.iter().flat_map(more));
        let (_, standings) = Registry::with_skills(&skills, |_| 0.0);
        problems.extend(clashes(skills.iter().zip(&standings)));
        problems.extend(dropped.iter().map(duplicate));
        problems.extend(found);
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    for problem in &problems {
        writeln!(out, "{problem}")?;
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    writeln!(
        out,
        "{}: {}, {}",
        plural(count, "skill"),
        plural(errors, "error"),
        plural(problems.len() - errors, "warning")
    )?;
    Ok(u8::from(errors > 0))
}

/// Problems outside the skill's own fields: rules that the permission engine cannot read, hooks that cannot run.
fn more(skill: &Skill) -> Vec<Diagnostic> {
    let file = skill.path().unwrap_or(Path::new("")).to_owned();
    let error = |what: String, effect: &str, fix: String| Diagnostic {
        file: file.clone(),
        line: None,
        severity: Severity::Error,
        what,
        effect: effect.into(),
        fix,
    };
    let rules = skill.allowed_tools.iter().chain(&skill.disallowed_tools);
    let wrong = rules.filter_map(|text| RULES.rule(text).err());
    let mut found: Vec<Diagnostic> = wrong
        .map(|fault| {
            let what = format!("{:?} is not a permission rule: {}", fault.rule, fault.problem);
            error(what, "the rule is ignored", fault.fix)
        })
        .collect();
    if let Some(hooks) = &skill.hooks {
        let (_, problems) = Definitions::read(&Value::Object(hooks.clone()));
        let fix = "correct it, or remove it";
        found.extend(problems.into_iter().map(|what| error(what, "the other hooks run", fix.into())));
    }
    found
}

/// Skills that cannot be started by their name, if their author can fix that. A source that overrides a weaker one works
/// as intended.
fn clashes<'a>(skills: impl Iterator<Item = (&'a Skill, &'a Standing)>) -> Vec<Diagnostic> {
    let mut first: HashMap<(&str, String), String> = HashMap::new();
    let clash = |(skill, standing): (&'a Skill, &'a Standing)| {
        let (name, tag) = (&skill.name, skill.source.tag());
        let (what, effect) = match (first.entry((tag, name.to_lowercase())), standing) {
            (Entry::Occupied(first), _) => {
                (format!("the name `{name}` is taken by {}", first.get()), "it cannot be started".to_owned())
            }
            (Entry::Vacant(free), standing) => {
                free.insert(skill.place());
                let Standing::BehindBuiltin = standing else { return None };
                (format!("`{name}` is the name of a built-in command"), format!("it is available as `/{tag}:{name}`"))
            }
        };
        let file = skill.path()?.to_owned();
        let fix = "choose another name".to_owned();
        Some(Diagnostic { file, line: None, severity: Severity::Warning, what, effect, fix })
    };
    skills.filter_map(clash).collect()
}

fn duplicate((path, first): &(PathBuf, PathBuf)) -> Diagnostic {
    Diagnostic {
        file: path.clone(),
        line: None,
        severity: Severity::Warning,
        what: format!("is the same file as {}", first.display()),
        effect: "it is loaded once".into(),
        fix: "none needed; remove the link if it is not intended".into(),
    }
}

fn migrate(write: bool, here: Here<'_>, loaded: &Loaded, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let mut loaded = loaded.clone();
    loaded.config.load_legacy_commands = false;
    let now = load(here, &loaded);
    if now.legacy.is_empty() {
        return writeln!(out, "nothing to convert in .claude/commands").map(|()| 0);
    }
    let (mut failed, mut made_of) = (false, HashMap::new());
    for file in &now.legacy {
        let Some(target) = target(file) else { continue };
        if let Some(first) = made_of.insert(target.clone(), file) {
            writeln!(
                out,
                "skipped {}: {} also becomes {}; rename one of them",
                file.display(),
                first.display(),
                target.display()
            )?;
            made_of.insert(target, first);
            continue;
        }
        if target.exists() {
            writeln!(out, "skipped {}: {} exists", file.display(), target.display())?;
            continue;
        }
        if !write {
            writeln!(out, "{} → {}", file.display(), target.display())?;
            continue;
        }
        let made = std::fs::read(file).and_then(|text| {
            std::fs::create_dir_all(target.parent().unwrap_or(Path::new("/")))?;
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true).open(&target)?.write_all(&text)
        });
        match made {
            Ok(()) => writeln!(out, "wrote {}", target.display())?,
            Err(error) => {
                failed = true;
                writeln!(err, "error: {}: {error}", target.display())?;
            }
        }
    }
    if !write {
        writeln!(out, "run `cocode skills migrate --write` to write these; the old files are kept")?;
    }
    Ok(u8::from(failed))
}

/// `.claude/commands/a/b.md` → `.claude/skills/b/SKILL.md`
fn target(file: &Path) -> Option<PathBuf> {
    let commands = file.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "commands"))?;
    Some(commands.parent()?.join("skills").join(file.file_stem()?).join("SKILL.md"))
}

fn new(name: &str, user: bool, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && name.bytes().any(|byte| byte != b'-');
    if !fits {
        return writeln!(err, "error: {name:?} is not a valid skill name: use up to 64 of a-z, 0-9 and -").map(|()| 2);
    }
    let root = if user { here.paths.home.clone() } else { here.cwd.join(".claude") };
    let folder = root.join("skills").join(name);
    let file = folder.join("SKILL.md");
    let text = format!(
        "---\nname: {name}\ndescription: \"What it does and when to use it, in one sentence.\"\nargument-hint: \"[what]\"\n---\n\n\
         # {name}\n\nWrite the steps here. `$ARGUMENTS` is replaced by what follows `/{name}`.\n"
    );
    let made = std::fs::create_dir_all(&folder).and_then(|()| {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).open(&file)?.write_all(text.as_bytes())
    });
    match made {
        Ok(()) => writeln!(out, "wrote {}: run it with /{name}", file.display()).map(|()| 0),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            writeln!(err, "error: {} already exists: edit it, or choose another name", file.display()).map(|()| 1)
        }
        Err(error) => writeln!(err, "error: {}: {error}", file.display()).map(|()| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::paths::{Env, Paths};

    /// Runs the command in a project with these files; its exit code, and what it wrote with `P` for the project.
    fn check(files: &[(&str, &str)], command: SkillsCommand, code: u8, want: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let env = Env::fake(&base.join("home"), &[]);
        let paths = Paths::new(&env).unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(&project).unwrap();
        for (path, text) in files {
            let path = project.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let here = Here { env: &env, paths: &paths, cwd: &project };
        let got = run(&command, here, &mut out, &mut err).unwrap();
        let text = String::from_utf8([out, err].concat()).unwrap().replace(project.to_str().unwrap(), "P");
        for want in want {
            assert!(text.contains(want), "{want}\n{text}");
        }
        assert_eq!(got, code, "{text}");
        dir
    }

    const GOOD: &str = "---\nname: good\ndescription: d\n---\nx\n";

    #[test]
    fn validate_names_place_fault_effect_and_fix() {
        let all = || SkillsCommand::Validate { paths: Vec::new() };
        check(&[(".claude/skills/good/SKILL.md", GOOD)], all(), 0, &[": 0 errors, 0 warnings"]);
        check(
            &[(".claude/skills/warn/SKILL.md", "---\nname: warn\ndescription: Use when: asked\n---\nx\n")],
            all(),
            0,
            &[
                "P/.claude/skills/warn/SKILL.md:3: warning: the value of `description` is not valid YAML (",
                "); it is read as plain text; stricter tools reject the file; put the value in double quotes",
            ],
        );
        check(
            &[(
                ".claude/skills/bad/SKILL.md",
                "---\nname: bad\ndescription: d\nallowed-tools: bash(ls)\ncontext: spoon\n---\nx\n",
            )],
            all(),
            1,
            &[
                "bad/SKILL.md:5: error: `context: spoon` is neither `main` nor `fork`; it runs in the conversation; write `main` or `fork`",
                "bad/SKILL.md: error: \"bash(ls)\" is not a permission rule: tool names start with a capital letter",
                "2 errors",
            ],
        );
        check(
            &[
                (".claude/skills/a/SKILL.md", "---\nname: one\ndescription: d\n---\nx\n"),
                (".claude/skills/b/SKILL.md", "---\nname: One\ndescription: d\n---\nx\n"),
                (".claude/skills/help/SKILL.md", "---\nname: help\ndescription: d\n---\nx\n"),
                (".claude/skills/hook/SKILL.md", "---\nname: hook\ndescription: d\nhooks: {Stopp: []}\n---\nx\n"),
            ],
            all(),
            1,
            &[
                "b/SKILL.md: warning: the name `One` is taken by P/.claude/skills/a/SKILL.md; it cannot be started; choose",
                "help/SKILL.md: warning: `help` is the name of a built-in command; it is available as `/project:help`; choose",
                "hook/SKILL.md: error: `hooks.Stopp` is ignored: no such event; did you mean `Stop`?; the other hooks",
            ],
        );
        let one = SkillsCommand::Validate { paths: vec!["x".into()] };
        check(
            &[("x/SKILL.md", GOOD)],
            one.clone(),
            0,
            &["1 skill: 0 errors, 1 warning", "differs from the folder `x`"],
        );
        check(&[], one, 2, &["P/x does not exist"]);
    }

    #[test]
    fn list_and_show() {
        let files = [(".claude/skills/good/SKILL.md", GOOD), (".agents/skills/good/SKILL.md", GOOD)];
        check(
            &files,
            SkillsCommand::List { json: false },
            0,
            &[
                "/good  project · d\n    P/.claude/skills/good/SKILL.md",
                "good  project · shadowed by P/.claude/skills/good/SKILL.md · d",
            ],
        );
        check(
            &files,
            SkillsCommand::List { json: true },
            0,
            &[
                "\"state\": \"active\"",
                "\"state\": \"shadowed\"",
                "\"shadowed_by\": \"P/.claude/skills/good/SKILL.md\"",
            ],
        );
        check(&files, SkillsCommand::Show { name: "good".into() }, 0, &["name: good\nfile: P/.claude", "\n\nx\n"]);
        check(&files, SkillsCommand::Show { name: "god".into() }, 2, &["did you mean good?"]);
        let text = "---\ndescription: d\ncontext: fork\nagent: Explore\nhooks: {Stop: []}\n---\nx";
        check(
            &[(".claude/skills/away/SKILL.md", text)],
            SkillsCommand::Show { name: "away".into() },
            0,
            &["\nruns: as a sub-agent\nagent: Explore\nhooks: Stop\n"],
        );
    }

    #[test]
    fn migrate_is_dry_and_never_overwrites() {
        let files = [
            (".claude/commands/deep/old.md", "Do it"),
            (".claude/commands/good.md", "other"),
            (".claude/skills/good/SKILL.md", GOOD),
        ];
        let dir = check(
            &files,
            SkillsCommand::Migrate { write: false },
            0,
            &[
                "P/.claude/commands/deep/old.md → P/.claude/skills/old/SKILL.md",
                "skipped P/.claude/commands/good.md: P/.claude/skills/good/SKILL.md exists",
                "--write",
            ],
        );
        assert!(!dir.path().join("project/.claude/skills/old").exists());
        let dir = check(&files, SkillsCommand::Migrate { write: true }, 0, &["wrote P/.claude/skills/old/SKILL.md"]);
        let both = [(".claude/commands/a/old.md", "one"), (".claude/commands/b/old.md", "two")];
        for write in [false, true] {
            check(
                &both,
                SkillsCommand::Migrate { write },
                0,
                &[
                    "skipped P/.claude/commands/b/old.md: P/.claude/commands/a/old.md also becomes P/.claude/skills/old/SKILL.md; rename",
                ],
            );
        }
        let read = |path: &str| std::fs::read_to_string(dir.path().join("project/.claude/skills").join(path)).unwrap();
        assert_eq!((read("old/SKILL.md").as_str(), read("good/SKILL.md").as_str()), ("Do it", GOOD));
    }

    #[test]
    fn a_new_skill_is_valid() {
        let dir = check(
            &[],
            SkillsCommand::New { name: "my-skill".into(), user: false },
            0,
            &["wrote P/.claude/skills/my-skill/SKILL.md"],
        );
        let found = discover_at(&dir.path().join("project/.claude/skills"));
        assert_eq!((found.skills.len(), found.problems), (1, Vec::new()));
        check(
            &[(".claude/skills/a/SKILL.md", "mine")],
            SkillsCommand::New { name: "a".into(), user: false },
            1,
            &["error: P/.claude/skills/a/SKILL.md already exists: edit it, or choose another name"],
        );
        check(&[], SkillsCommand::New { name: "My Skill".into(), user: false }, 2, &["use up to 64 of a-z, 0-9 and -"]);
    }
}
