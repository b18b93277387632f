//! Finds and reads the files that define sub-agents.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::definition::{Definition, Source};
use super::{Definitions, Diagnostic, Plugin, fields};
use crate::hooks;
use crate::permission::{Bound, Trust, Use};
use crate::stdx::ansi::shown;
use crate::stdx::frontmatter::{FaultKind, Frontmatter, snake};
use crate::stdx::git;
use crate::stdx::links;
use crate::stdx::regular;
use crate::stdx::sealed::Sealed;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 256 << 10;
/// How deep folders are searched.
const DEPTH: usize = 4;
/// Most files of one folder, as for skills.
const FILES: usize = 20_000;

/// Where definitions are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folders<'a> {
    /// The working directory: its `.claude/agents` and those of the folders above it up to the repository's root.
    pub project: &'a Path,
    /// Our home, for `agents/` in it.
    pub home: &'a Path,
    /// What of the project's the user agreed to.
    pub trust: &'a Trust,
    pub plugins: &'a [Plugin],
    /// Those of the program that runs us, by their names: the fields of a file, and its text as `prompt`.
    pub given: Option<&'a Map<String, Value>>,
}

/// Reads every definition: the project's first, the nearest before all others, then the user's, those of plugins, and the program's own. One
/// of the project's that the user has not agreed to counts after all others, and without what it would run and ask. A file
/// that cannot be read costs nothing but itself.
pub(crate) fn load(folders: Folders) -> Definitions {
    let (mut project, mut found) = (Definitions::default(), Definitions::default());
    let mut seen = HashSet::new();
    let user = folders.home.join("agents");
    let user_real = user.canonicalize().ok();
    let top = up_to_root(folders.project).last().and_then(|top| top.canonicalize().ok());
    for folder in up_to_root(folders.project) {
        let folder = folder.join(".claude").join("agents");
        // A session in the home folder itself.
        if user_real.is_none() || folder.canonicalize().ok() != user_real {
            project.add(&folder, Source::Project, top.as_deref(), &mut seen);
        }
    }
    found.add(&user, Source::User, None, &mut seen);
    for plugin in folders.plugins {
        found.add_plugin(plugin, folders.project, &mut seen);
    }
    found.all.extend(builtin());
    let found = found.indexed();
    let mut all = Definitions { diagnostics: project.diagnostics, ..Definitions::default() };
    for (name, fields) in folders.given.into_iter().flatten() {
        all.add_given(name, fields);
    }
    let mut last = Vec::new();
    for mut definition in project.all {
        let (uses, sealed) = uses(&definition, folders.project, &found);
        definition.sealed = sealed;
        if uses.iter().all(|used| folders.trust.covers(used)) {
            all.all.push(definition);
        } else {
            (definition.hooks, definition.model) = (None, None);
            last.push(definition);
        }
        all.uses.extend(uses);
    }
    all.all.extend(found.all.into_iter().chain(last));
    all.diagnostics.extend(found.diagnostics);
    all.indexed()
}

/// What of a project's definition needs the user's word: all that runs, that sends elsewhere, or that takes another's place.
/// Also the files that its hooks run.
fn uses(definition: &Definition, project: &Path, others: &Definitions) -> (Vec<Use>, Sealed) {
    let (mut uses, mut sealed) = (Vec::new(), Sealed::default());
    let name = &definition.name;
    if let Some(hooks) = &definition.hooks {
        let (read, _) = hooks::Definitions::read(hooks);
        if !read.0.is_empty() {
            let commands: Vec<String> = read.all().filter_map(|(_, _, hook)| hook.command()).collect();
            let runs = Bound::commands(project, commands.iter().map(String::as_str));
            sealed = runs.runs().clone();
            let line = shown(&format!("the agent {name}: {}", read.lines().join("; ")));
            uses.push(Use::running(format!("hooks of the agent {name}"), line, &hooks.to_string(), &runs));
        }
    }
    let mut add = |what: &str, line: String, bound: String| {
        uses.push(Use::new(format!("{what} of the agent {name}"), shown(&line), &bound));
    };
    if let Some(model) = &definition.model {
        add("model", format!("the agent {name}: the model {model}"), String::new());
    }
    if others.get(name).is_some() {
        let Definition { source: _, description, tools, disallowed, mode, thinking, max_turns, skills, prompt, .. } =
            definition;
        let bound = format!("{description}{tools:?}{disallowed:?}{mode:?}{thinking:?}{max_turns:?}{skills:?}{prompt}");
        add("place", format!("the agent {name} of this folder, which replaces yours"), bound);
    }
    (uses, sealed)
}

/// The folder itself and those above it up to the one that holds `.git`; the folder alone outside of repositories.
fn up_to_root(project: &Path) -> Vec<&Path> {
    let root = git::root(project).unwrap_or(project);
    project.ancestors().take_while(|folder| folder.starts_with(root)).collect()
}

/// Those that are part of the program.
pub(super) fn builtin() -> Vec<Definition> {
    let texts = [
        include_str!("../../../assets/prompts/agents/general-purpose.md"),
        include_str!("../../../assets/prompts/agents/explore.md"),
        include_str!("../../../assets/prompts/agents/plan.md"),
    ];
    let read = |text: &str| definition("", Source::Builtin, text, &mut |_| {});
    texts.into_iter().filter_map(read).collect()
}

impl Definitions {
    fn add(
        &mut self,
        folder: &Path,
        source: fn(PathBuf) -> Source,
        within: Option<&Path>,
        seen: &mut HashSet<PathBuf>,
    ) {
        let mut walk = Walk { within, ..Walk::default() };
        match folder.is_file() {
            true => walk.files.push(folder.to_owned()),
            false => walk.folder(folder, DEPTH),
        }
        let left_out = walk.keep(FILES);
        self.diagnostics.extend(walk.problems);
        self.diagnostics.extend(left_out.map(|problem| Diagnostic { file: folder.to_owned(), problem }));
        for file in walk.files {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            if !seen.insert(real.clone()) {
                continue;
            }
            if within.is_some_and(|top| !links::is_definition(&file, &real, top)) {
                let problem = format!("is a link to {}, which is not an agent; it is ignored", real.display());
                self.diagnostics.push(Diagnostic { file, problem });
                continue;
            }
            match read(&file) {
                Ok(text) => self.read(&file, &text, source),
                Err(problem) => self.diagnostics.push(Diagnostic { file, problem }),
            }
        }
    }

    /// The agents of a plugin, under its name. What would start something or loosen a rule is left to the user's own agents.
    fn add_plugin(&mut self, plugin: &Plugin, project: &Path, seen: &mut HashSet<PathBuf>) {
        let mut added = Definitions::default();
        for path in &plugin.paths {
            added.add(path, Source::Plugin, Some(&plugin.root), seen);
        }
        let folders = [("PLUGIN_ROOT", &*plugin.root), ("PLUGIN_DATA", &*plugin.data), ("PROJECT_DIR", project)];
        for definition in &mut added.all {
            let file = definition.source.file().cloned().unwrap_or_default();
            let given =
                [("hooks", definition.hooks.take().is_some()), ("permissionMode", definition.mode.take().is_some())];
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                let problem = format!("`{field}` is ignored: an agent of a plugin cannot have it");
                added.diagnostics.push(Diagnostic { file: file.clone(), problem });
            }
            definition.name = format!("{}:{}", plugin.name, definition.name);
            let whole = |text: String, (name, folder): &(&str, &Path)| {
                let folder = folder.to_string_lossy();
                text.replace(&format!("${{CLAUDE_{name}}}"), &folder).replace(&format!("${{COCODE_{name}}}"), &folder)
            };
            definition.prompt = folders.iter().fold(definition.prompt.to_string(), whole).into();
        }
        self.all.extend(added.all);
        self.diagnostics.extend(added.diagnostics);
    }

    fn add_given(&mut self, name: &str, given: &Value) {
        let mut say = |problem| self.diagnostics.push(Diagnostic { file: PathBuf::from(name), problem });
        let Some(given) = given.as_object() else { return say("is not an object; it is ignored".into()) };
        let mut fields: Map<String, Value> = given.iter().map(|(key, value)| (snake(key), value.clone())).collect();
        let prompt = fields.remove("prompt").and_then(|prompt| prompt.as_str().map(str::to_owned)).unwrap_or_default();
        fields.insert("name".into(), name.into());
        self.all.push(fields::definition(name, Source::Outside, &fields, &prompt, &mut say));
    }

    fn read(&mut self, file: &Path, text: &str, source: fn(PathBuf) -> Source) {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut say = |problem| self.diagnostics.push(Diagnostic { file: file.to_owned(), problem });
        self.all.extend(definition(&stem, source(file.to_owned()), text, &mut say));
    }
}

/// The definition that a text is; none without a head and a prompt.
fn definition(stem: &str, source: Source, text: &str, say: &mut dyn FnMut(String)) -> Option<Definition> {
    let head = Frontmatter::read(text);
    let body = text[head.body.clone()].replace("\r\n", "\n");
    let faults = head.faults.iter().filter(|fault| fault.kind != FaultKind::Missing);
    faults.for_each(|fault| say(format!("line {}: {}", fault.line, fault.kind)));
    let given: Map<String, Value> = head.fields.into_iter().map(|field| (field.key, field.value)).collect();
    // A note kept among the agents is not an agent.
    if given.is_empty() {
        say("no frontmatter with `name` and `description`; it is ignored".into());
        return None;
    }
    Some(fields::definition(stem, source, &given, &body, say)).filter(|definition| !definition.prompt.is_empty())
}

/// The Markdown files of a folder and those below it.
#[derive(Default)]
struct Walk<'a> {
    /// The repository, for what comes with it: folders are not entered out of there.
    within: Option<&'a Path>,
    files: Vec<PathBuf>,
    problems: Vec<Diagnostic>,
    /// Folders that were entered, by what they really are: a link back ends there.
    entered: HashSet<PathBuf>,
}

impl Walk<'_> {
    /// Leaves the first so many by name, and says how many there were.
    fn keep(&mut self, most: usize) -> Option<String> {
        self.files.sort();
        self.problems.sort_by(|a, b| a.file.cmp(&b.file));
        let all = self.files.len();
        self.files.truncate(most);
        let left_out = all.saturating_sub(most);
        (left_out > 0)
            .then(|| format!("has {all} agents: only the first {most} by name are loaded, {left_out} ignored"))
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        // Most projects have none.
        let Ok(real) = folder.canonicalize() else { return };
        let mut say = |problem| self.problems.push(Diagnostic { file: folder.to_owned(), problem });
        if self.within.is_some_and(|within| !real.starts_with(within)) {
            return say(format!("is a link to {}, outside the project: agents in it are not loaded", real.display()));
        }
        if !self.entered.insert(real) {
            return;
        }
        if depth == 0 {
            return say(format!("is more than {DEPTH} folders deep: agents in it are not loaded; move them up"));
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return say(format!("cannot be listed, so its agents are not loaded: {error}")),
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                self.folder(&path, depth - 1);
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) {
                match path.is_file() {
                    true => self.files.push(path),
                    false if path.exists() => {}
                    false => {
                        let problem = "is a link that leads nowhere: fix or remove it".into();
                        self.problems.push(Diagnostic { file: path, problem });
                    }
                }
            }
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = regular::read(file, LARGEST + 1).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("has more than {LARGEST} bytes and is ignored"));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Tools;
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let temp = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = temp.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree(temp)
        }

        fn load(&self, project: &str, trust: &Trust) -> Definitions {
            load(Folders {
                project: &self.0.path().join(project),
                home: &self.0.path().join("home"),
                trust,
                plugins: &[],
                given: None,
            })
        }

        fn trusted(&self, project: &str) -> Definitions {
            let mut trust = Trust::default();
            trust.agree(self.load(project, &trust).uses());
            self.load(project, &trust)
        }

        /// Name, description and place of every file's definition; then what is wrong.
        fn told(&self, project: &str) -> String {
            let found = self.trusted(project);
            let short = |file: &Path| file.strip_prefix(self.0.path()).unwrap().display().to_string();
            let mut lines = Vec::new();
            for definition in &found.all {
                let place = match &definition.source {
                    Source::Builtin | Source::Outside => continue,
                    Source::User(file) => format!("user {}", short(file)),
                    Source::Project(file) => format!("project {}", short(file)),
                    Source::Plugin(file) => format!("plugin {}", short(file)),
                };
                let shadowed = if found.shadowed_by(definition).is_some() { " (shadowed)" } else { "" };
                lines.push(format!("{}: {} [{place}]{shadowed}", definition.name, definition.description));
            }
            lines.extend(
                found.diagnostics().iter().map(|problem| format!("! {}: {}", short(&problem.file), problem.problem)),
            );
            lines.join("\n")
        }
    }

    #[test]
    fn nearest_first_up_to_the_root_and_broken_files_hide_nobody() {
        let agent = |about: &str| format!("---\nname: check\ndescription: {about}\n---\nYou check.\n");
        let tree = Tree::new(&[
            (".claude/agents/outside.md", &agent("above the repository")),
            ("repo/.git/HEAD", ""),
            ("repo/.claude/agents/check.md", &agent("of the root")),
            ("repo/deep/.claude/agents/check.md", &agent("of the folder")),
            ("repo/deep/.claude/agents/sub/other.md", "---\ndescription: nested\nmaxTurns: 3\n---\nx"),
            ("repo/deep/.claude/agents/colon.md", "---\nname: colon\ndescription: Use it: always\n---\nbody"),
            ("repo/deep/.claude/agents/open.md", "---\nname: open\n"),
            ("repo/deep/.claude/agents/empty.md", "---\nname: empty\ndescription: e\n---\n"),
            ("repo/deep/.claude/agents/note.md", "Just a note."),
            (
                "repo/deep/.claude/agents/odd.md",
                "---\nname: a b\ndescription: d\npermission_mode: yolo\nmax_turns: 0\n---\nx",
            ),
            ("home/agents/check.md", &agent("of the user")),
        ]);
        insta::assert_snapshot!(tree.told("repo/deep"), @r#"
        check: of the folder [project repo/deep/.claude/agents/check.md]
        colon: Use it: always [project repo/deep/.claude/agents/colon.md]
        odd: d [project repo/deep/.claude/agents/odd.md]
        other: nested [project repo/deep/.claude/agents/sub/other.md]
        check: of the root [project repo/.claude/agents/check.md] (shadowed)
        check: of the user [user home/agents/check.md] (shadowed)
        ! repo/deep/.claude/agents/colon.md: line 3: the value of `description` is not valid YAML (mapping values are not allowed in this context)
        ! repo/deep/.claude/agents/empty.md: no text below the frontmatter, which would be its system prompt
        ! repo/deep/.claude/agents/note.md: no frontmatter with `name` and `description`; it is ignored
        ! repo/deep/.claude/agents/odd.md: the name "a b" is not made of letters, digits, `-`, `_` and `:`; it is called "odd"
        ! repo/deep/.claude/agents/odd.md: `permission_mode`: unknown permission mode "yolo": use one of default, acceptEdits, plan, bypassPermissions, dontAsk
        ! repo/deep/.claude/agents/odd.md: `max_turns` is 0, not a number from 1
        ! repo/deep/.claude/agents/open.md: line 3: the frontmatter has no closing `---`
        ! repo/deep/.claude/agents/open.md: no `description`: the model cannot know when to use it
        ! repo/deep/.claude/agents/open.md: no text below the frontmatter, which would be its system prompt
        "#);
        for (found, want) in
            [(tree.trusted("repo/deep"), "of the folder"), (tree.load("repo/deep", &Trust::default()), "of the user")]
        {
            assert_eq!(found.get("CHECK").unwrap().description, want);
        }
        assert_eq!(tree.trusted("repo/deep").get("other").unwrap().max_turns, Some(3));
        assert_eq!(tree.trusted("elsewhere").all.len(), 4);
    }

    #[test]
    fn a_folder_of_many_loses_none_in_silence() {
        let files: Vec<(String, String)> = (0..1_308)
            .map(|n| (format!("p/.claude/agents/a{n}.md"), format!("---\nname: A{n}\ndescription: d\n---\nYou.")))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let found = Tree::new(&files).trusted("p");
        assert_eq!((found.active().count(), found.diagnostics()), (1_308 + 3, [].as_slice()));
        assert_eq!(
            (found.get("A1307").unwrap().name.as_str(), found.get("a7").unwrap().name.as_str()),
            ("A1307", "A7")
        );
        let names = ["c", "a", "d", "b"].map(PathBuf::from).to_vec();
        let mut walk = Walk { files: names, ..Walk::default() };
        assert_eq!(walk.keep(4), None);
        let told = walk.keep(3);
        assert_eq!(walk.files, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(told.unwrap(), "has 4 agents: only the first 3 by name are loaded, 1 ignored");
    }

    #[cfg(unix)]
    #[test]
    fn linked_folders_count_once_and_lost_ones_are_named() {
        let agent = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nYou.\n");
        let tree = Tree::new(&[
            ("team/linked.md", &agent("linked")),
            ("home/agents/own.md", &agent("own")),
            ("home/agents/1/2/3/here.md", &agent("here")),
            ("home/agents/1/2/3/4/lost.md", &agent("lost")),
            ("p/.claude/agents/mine.md", &agent("mine")),
        ]);
        let agents = tree.0.path().join("home/agents");
        std::os::unix::fs::symlink("../../../team", tree.0.path().join("p/.claude/agents/theirs")).unwrap();
        for (target, link) in [("../../team", "team"), ("..", "loop"), ("nowhere.md", "gone.md")] {
            std::os::unix::fs::symlink(target, agents.join(link)).unwrap();
        }
        insta::assert_snapshot!(tree.told("p").replace(&*tree.0.path().to_string_lossy(), ""), @"
        mine: d [project p/.claude/agents/mine.md]
        here: d [user home/agents/1/2/3/here.md]
        own: d [user home/agents/own.md]
        linked: d [user home/agents/team/linked.md]
        ! p/.claude/agents/theirs: is a link to /team, outside the project: agents in it are not loaded
        ! home/agents/1/2/3/4: is more than 4 folders deep: agents in it are not loaded; move them up
        ! home/agents/gone.md: is a link that leads nowhere: fix or remove it
        ");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_links_out_are_left_out() {
        let tree = Tree::new(&[
            ("p/.claude/agents/a.md", "---\nname: a\ndescription: d\n---\nYou are a.\n"),
            ("out/b.md", "---\nname: b\ndescription: d\n---\nYou are b.\n"),
            ("p/.env", "---\nname: env\ndescription: d\n---\nKEY=1\n"),
            ("out/key", "---\nname: secret\ndescription: d\n---\nYou are secret.\n"),
        ]);
        let agents = tree.0.path().join("p/.claude/agents");
        assert!(std::process::Command::new("mkfifo").arg(agents.join("pipe.md")).status().unwrap().success());
        for (target, link) in [
            ("../../../out/key", "k.md"),
            ("../../.env", "env.md"),
            ("/dev/zero", "zero.md"),
            ("../../../out/b.md", "b.md"),
        ] {
            std::os::unix::fs::symlink(target, agents.join(link)).unwrap();
        }
        let told = tree.told("p").replace(&*tree.0.path().to_string_lossy(), "");
        insta::assert_snapshot!(told, @"
        a: d [project p/.claude/agents/a.md]
        b: d [project p/.claude/agents/b.md]
        ! p/.claude/agents/env.md: is a link to /p/.env, which is not an agent; it is ignored
        ! p/.claude/agents/k.md: is a link to /out/key, which is not an agent; it is ignored
        ");
    }

    #[test]
    fn fields_in_every_spelling() {
        let tree = Tree::new(&[(
            "p/.claude/agents/a.md",
            "\u{feff}---\r\nname: a\r\ndescription: d\r\ntools: Read, Bash(git:*), Task\r\ndisallowed-tools: [Bash(rm:*), LS]\r\n\
             model: inherit\r\npermissionMode: acceptEdits\r\nskills: one, two\r\n---\r\nYou are a.\r\n",
        )]);
        let found = tree.trusted("p");
        let a = found.get("a").unwrap();
        assert_eq!(a.tools, Tools::Only(vec!["Read".into(), "Bash".into(), "Task".into()]));
        assert_eq!((a.offers("Read"), a.offers("LS"), a.offers("Bash")), (true, false, true));
        assert_eq!(a.denied().collect::<Vec<_>>(), ["Bash(rm:*)"]);
        assert_eq!((a.model.as_deref(), a.mode), (None, Some(crate::permission::Mode::AcceptEdits)));
        assert_eq!(a.skills, ["one", "two"]);
        assert_eq!(&*a.prompt, "You are a.");
        assert_eq!(found.diagnostics().len(), 1);
    }
}
