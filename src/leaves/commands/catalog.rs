//! The commands of a session, kept up to date: loaded once, looked at again before they are used, counted when they run.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::builtin::Builtin;
use super::diagnostic::{Diagnostic, Severity};
use super::discover::{Folders, Hidden, Shown, Stamps, discover};
use super::plugin::Plugin;
use super::registry::{Command, Registry, Source, Standing};
use super::skill::Skill;
use super::usage::Usage;

/// Skills in the binary, by name and text.
pub const BUNDLED: &[(&str, &str)] = &[
    ("commit", include_str!("../../../assets/skills/commit/SKILL.md")),
    ("init", include_str!("../../../assets/skills/init/SKILL.md")),
    ("review-pr", include_str!("../../../assets/skills/review-pr/SKILL.md")),
    ("security-review", include_str!("../../../assets/skills/security-review/SKILL.md")),
    ("simplify", include_str!("../../../assets/skills/simplify/SKILL.md")),
];

/// Whether `.claude/commands/*.md` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legacy {
    Load,
    Name,
}

/// Whether the use of skills is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    On {
        /// Days after which a use counts half.
        half_life_days: u32,
    },
    Off,
}

/// Shared by everything that runs or lists commands. The lock is never held over an await.
pub struct Catalog {
    clock: fn() -> SystemTime,
    state: Mutex<State>,
}

struct State {
    folders: Folders,
    now: Arc<Snapshot>,
    /// None: nothing was loaded yet.
    stamps: Option<Stamps>,
    usage: Usage,
    /// Prompts of servers.
    served: Vec<Skill>,
    /// None: nobody has said yet what the settings are.
    switches: Option<(Legacy, Tracking)>,
    /// What is to be told once.
    notices: Vec<String>,
    /// The old commands were named.
    named_legacy: bool,
    /// Built-ins that work when typed, but are not listed.
    hidden: &'static [Builtin],
    /// Front ends have not heard of `now`.
    news: bool,
}

/// All commands and skills as they were at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub registry: Registry,
    /// Highest priority first, each with its standing.
    pub skills: Vec<(Arc<Skill>, Standing)>,
    /// Files that were reached twice: the one left out, the one loaded.
    pub dropped: Vec<(PathBuf, PathBuf)>,
    pub problems: Vec<Diagnostic>,
    /// Files of `.claude/commands` that were not loaded.
    pub legacy: Vec<PathBuf>,
    /// Where in `skills` the first of each source and name is, by `source:name`.
    places: HashMap<String, usize>,
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot {
            registry: Registry::builtin(),
            skills: Vec::new(),
            dropped: Vec::new(),
            problems: Vec::new(),
            legacy: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl Snapshot {
    /// Loads everything now.
    pub fn load(folders: &Folders, usage: &Usage, now: SystemTime) -> (Snapshot, Stamps) {
        Snapshot::with_served(folders, &[], usage, now)
    }

    /// The same, with prompts of servers behind all else.
    fn with_served(folders: &Folders, served: &[Skill], usage: &Usage, now: SystemTime) -> (Snapshot, Stamps) {
        let shown = &folders.shown;
        let mut found = discover(folders, if shown.unbundled { &[] } else { BUNDLED });
        found.skills.extend(served.iter().cloned());
        for skill in &mut found.skills {
            match shown.hidden.get(&skill.name).filter(|_| !matches!(skill.source, Source::Plugin { .. })) {
                Some(Hidden::FromModel) => skill.disable_model_invocation = true,
                Some(Hidden::FromAll) => {
                    (skill.disable_model_invocation, skill.user_invocable) = (true, false);
                }
                None => {}
            }
        }
        let (registry, standings) = Registry::with_skills(&found.skills, |name| usage.score(name, now));
        let mut places = HashMap::with_capacity(found.skills.len());
        for (at, skill) in found.skills.iter().enumerate() {
            places.entry(format!("{}:{}", skill.source.tag(), skill.name)).or_insert(at);
        }
        let snapshot = Snapshot {
            registry,
            places,
            skills: found.skills.into_iter().map(Arc::new).zip(standings).collect(),
            dropped: found.dropped,
            problems: found.problems,
            legacy: found.legacy,
        };
        (snapshot, found.stamps)
    }

    /// The skill behind a command; none for built-ins.
    pub fn skill(&self, command: &Command) -> Option<&Arc<Skill>> {
        self.places.get(command.qualified.as_deref()?).map(|at| &self.skills[*at].0)
    }

    /// Looks a skill up as it would be typed.
    pub fn named(&self, name: &str) -> Option<(&Command, &Arc<Skill>)> {
        let command = self.registry.find(name.trim_start_matches('/'))?;
        Some((command, self.skill(command)?))
    }

    /// Faults by which something of the author's does not work.
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }
}

impl Catalog {
    /// A catalog that has loaded nothing yet: only the built-ins are there.
    pub fn new(folders: Folders, clock: fn() -> SystemTime) -> Catalog {
        let state = State {
            folders,
            now: Arc::default(),
            stamps: None,
            usage: Usage::off(),
            served: Vec::new(),
            switches: None,
            notices: Vec::new(),
            named_legacy: false,
            hidden: &[],
            news: false,
        };
        Catalog { clock, state: Mutex::new(state) }
    }

    /// Takes over what the settings say. What was loaded before is loaded again when it is next looked at.
    pub fn configure(&self, legacy: Legacy, tracking: Tracking) {
        let mut state = self.state();
        if state.switches.replace((legacy, tracking)) == Some((legacy, tracking)) {
            return;
        }
        state.folders.legacy = legacy == Legacy::Load;
        state.stamps = None;
        if let Tracking::On { half_life_days } = tracking {
            let (usage, notice) = Usage::open(&state.folders.home, half_life_days);
            state.usage = usage;
            state.notices.extend(notice);
        } else {
            state.usage = Usage::off();
        }
    }

    /// Takes over the skills of these plugins, and of no others.
    pub fn take_plugins(&self, plugins: Vec<Arc<Plugin>>) {
        let mut state = self.state();
        if state.folders.plugins != plugins {
            state.folders.plugins = plugins;
            state.stamps = None;
        }
    }

    /// Takes over the prompts of servers, and no others. True when they differ from those before.
    pub fn take_served(&self, served: Vec<Skill>) -> bool {
        let mut state = self.state();
        let differs = state.served != served;
        if differs {
            state.served = served;
            state.stamps = None;
        }
        differs
    }

    /// Takes over what the settings say of single skills.
    pub fn show(&self, shown: Shown) {
        let mut state = self.state();
        if state.folders.shown != shown {
            state.folders.shown = shown;
            state.stamps = None;
        }
    }

    /// From now on lists and completion leave these built-ins out, and only these.
    pub fn hide(&self, hidden: &'static [Builtin]) {
        let mut state = self.state();
        if state.hidden != hidden {
            state.hidden = hidden;
            Arc::make_mut(&mut state.now).registry.hide(hidden);
            state.news = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave half a change: each is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commands as they were last looked at.
    pub fn current(&self) -> Arc<Snapshot> {
        self.state().now.clone()
    }

    /// Looks whether a file or folder changed, and loads again if so. True when what was there before is out of date.
    pub fn refresh(&self) -> (Arc<Snapshot>, bool) {
        let mut state = self.state();
        if state.stamps.as_ref().is_some_and(|stamps| !stamps.changed()) {
            return (state.now.clone(), false);
        }
        self.load(&mut state);
        (state.now.clone(), true)
    }

    /// Loads again, whatever the files look like.
    pub fn reload(&self) -> Arc<Snapshot> {
        let mut state = self.state();
        self.load(&mut state);
        state.now.clone()
    }

    fn load(&self, state: &mut State) {
        let (mut snapshot, stamps) = Snapshot::with_served(&state.folders, &state.served, &state.usage, (self.clock)());
        snapshot.registry.hide(state.hidden);
        if !snapshot.legacy.is_empty() && !std::mem::replace(&mut state.named_legacy, true) {
            let count = snapshot.legacy.len();
            state.notices.push(format!(
                "{count} file{} in `.claude/commands` {} not loaded: `cocode skills migrate` converts them into skills, \
                 and `load_legacy_commands = true` loads them as they are.",
                if count == 1 { "" } else { "s" },
                if count == 1 { "is" } else { "are" },
            ));
        }
        state.now = Arc::new(snapshot);
        state.stamps = Some(stamps);
        state.news = true;
    }

    /// Counts a use of a skill.
    pub fn record(&self, name: &str) {
        let mut state = self.state();
        let now = (self.clock)();
        if let Err(error) = state.usage.record(name, now) {
            tracing::warn!(%error, "cannot record that a skill was used");
        }
        let skills: Vec<Skill> = state.now.skills.iter().map(|(skill, _)| Skill::clone(skill)).collect();
        let (mut registry, _) = Registry::with_skills(&skills, |name| state.usage.score(name, now));
        registry.hide(state.hidden);
        Arc::make_mut(&mut state.now).registry = registry;
        state.news = true;
    }

    /// The commands, when they are others than when this was last asked.
    pub fn take_news(&self) -> Option<Arc<Snapshot>> {
        let mut state = self.state();
        std::mem::take(&mut state.news).then(|| state.now.clone())
    }

    /// What is to be told once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &std::path::Path, text: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }

    fn catalog(base: &std::path::Path) -> Catalog {
        let folders = Folders {
            managed: base.join("etc"),
            home: base.join("home"),
            project: base.join("project"),
            ..Folders::default()
        };
        let catalog = Catalog::new(folders, || SystemTime::UNIX_EPOCH);
        catalog.configure(Legacy::Name, Tracking::On { half_life_days: 7 });
        catalog
    }

    #[test]
    fn clashes_are_settled_by_source_and_all_stay_reachable() {
        let dir = tempfile::tempdir().unwrap();
        let text = |what: &str| format!("---\ndescription: {what}\naliases: [go]\n---\nx");
        write(&dir.path().join("project/.claude/skills/a"), &text("project a"));
        write(&dir.path().join("home/skills/a"), &text("user a"));
        write(&dir.path().join("etc/skills/a"), &text("managed a"));
        write(&dir.path().join("project/.claude/skills/help"), &text("own help"));
        let catalog = catalog(dir.path());
        let (now, changed) = catalog.refresh();
        assert!(changed);
        let check = |name: &str, want: Option<&str>| {
            let found = now.named(name).map(|(_, skill)| skill.description.as_str());
            assert_eq!(found, want, "{name}");
        };
        check("a", Some("managed a"));
        check("A", Some("managed a"));
        check("go", Some("managed a"));
        check("managed:a", Some("managed a"));
        check("user:a", Some("user a"));
        check("project:a", Some("project a"));
        check("bundled:a", None);
        check("project:help", Some("own help"));
        check("help", None);
        assert_eq!(now.registry.find("help").unwrap().builtin(), Some(Builtin::Help));
        let standings: Vec<_> = now
            .skills
            .iter()
            .filter(|(skill, _)| skill.source != Source::Bundled)
            .map(|(_, standing)| standing.clone())
            .collect();
        let managed = dir.path().join("etc/skills/a/SKILL.md").display().to_string();
        assert_eq!(
            standings,
            [
                Standing::Reached,
                Standing::Shadowed(managed.clone()),
                Standing::Shadowed(managed),
                Standing::BehindBuiltin
            ]
        );
        let model: Vec<&str> = now
            .registry
            .model_invocable()
            .filter(|row| row.source() != Some(&Source::Bundled))
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(model, ["a", "project:help"]);
    }

    #[test]
    fn settings_hide_single_skills_and_all_that_ship() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            write(&dir.path().join("home/skills").join(name), "---\ndescription: d\n---\nx");
        }
        let catalog = catalog(dir.path());
        let seen = |catalog: &Catalog| {
            let now = catalog.refresh().0;
            let own = |command: &&Command| ["a", "b", "c", "commit"].contains(&command.name.as_str());
            let names =
                |rows: Vec<&Command>| rows.into_iter().filter(own).map(|row| row.name.clone()).collect::<Vec<_>>();
            let typed =
                ["a", "b", "c", "commit"].map(|name| now.registry.find(name).is_some_and(|row| row.user_invocable));
            (names(now.registry.model_invocable().collect()).join(" "), typed)
        };
        assert_eq!(seen(&catalog), ("a b c commit".to_owned(), [true; 4]));
        let hidden = [("b".to_owned(), Hidden::FromModel), ("c".to_owned(), Hidden::FromAll)];
        catalog.show(Shown { unbundled: true, hidden: hidden.into() });
        assert_eq!(seen(&catalog), ("a".to_owned(), [true, true, false, false]));
    }

    #[test]
    fn the_two_filters() {
        let dir = tempfile::tempdir().unwrap();
        let skills = dir.path().join("home/skills");
        for (name, head) in [
            ("plain", "description: d"),
            ("guessed", "license: MIT"),
            ("when", "when_to_use: often"),
            ("hidden", "description: d\nuser-invocable: false"),
            ("secret", "description: d\ndisable-model-invocation: true"),
        ] {
            write(&skills.join(name), &format!("---\n{head}\n---\nThe body"));
        }
        let (now, _) = catalog(dir.path()).refresh();
        let names = |rows: Vec<&Command>| {
            let own = rows.iter().filter(|row| row.source() != Some(&Source::Bundled));
            own.map(|row| row.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(now.registry.model_invocable().collect()), "hidden plain when");
        assert_eq!(names(now.registry.user_visible().collect()), "plain secret when");
        let completed: Vec<String> = now
            .registry
            .complete("")
            .iter()
            .map(|row| row.command.name.clone())
            .filter(|name| name == "guessed" || name == "hidden")
            .collect();
        assert_eq!(completed, ["guessed"]);
        assert!(now.registry.help().contains("| `/when` | The body (user) |"), "{}", now.registry.help());
    }

    #[test]
    fn use_orders_completion_and_an_edit_is_live() {
        let dir = tempfile::tempdir().unwrap();
        let skills = dir.path().join("home/skills");
        for name in ["cat", "car"] {
            write(&skills.join(name), "---\ndescription: d\n---\nx");
        }
        let catalog = catalog(dir.path());
        let first = || catalog.current().registry.complete("ca")[0].command.name.clone();
        catalog.refresh();
        assert_eq!(first(), "car");
        catalog.record("cat");
        assert_eq!(first(), "cat");
        assert!(!catalog.refresh().1);
        write(&skills.join("cat"), "---\ndescription: something else\n---\nx");
        let (now, changed) = catalog.refresh();
        assert_eq!((now.named("cat").unwrap().1.description.as_str(), changed), ("something else", true));
        assert_eq!(first(), "cat");
    }

    #[test]
    fn old_commands_are_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let commands = dir.path().join("project/.claude/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::write(commands.join("old.md"), "Do it").unwrap();
        let catalog = catalog(dir.path());
        catalog.refresh();
        let notices = catalog.take_notices();
        assert!(notices[0].starts_with("1 file in `.claude/commands` is not loaded"), "{notices:?}");
        catalog.reload();
        assert_eq!(catalog.take_notices(), [] as [String; 0]);
        let folders = Folders { project: dir.path().join("project"), legacy: true, ..Folders::default() };
        let (now, _) = Snapshot::load(&folders, &Usage::off(), SystemTime::UNIX_EPOCH);
        assert_eq!(now.named("old").unwrap().1.loaded_from, crate::commands::LoadedFrom::CommandsDeprecated);
    }
}
