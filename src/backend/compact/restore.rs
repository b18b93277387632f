//! What a summary cannot carry is restored next to it: which files, and how much of each. The caller reads them.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::trim::shortened;
use super::{Driver, Limits, Settings};
use crate::message::tokens::Load;
use crate::message::{Attachment, CallId, Effect, Kind, Message, Todo, tokens};
use crate::session::Context;
use crate::session::Invoked;
use crate::session::entry::{Boundary, Kept, Seq};
use crate::stdx::hash::sha256_hex;

/// What comes back into the conversation, in the order in which the model reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restored {
    messages: Vec<Arc<Message>>,
    kept: Kept,
}

impl Restored {
    /// Tokens of all of it, by estimate.
    pub fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| tokens::message(message)).sum()
    }

    /// Hands it to the boundary; what was put back, in numbers.
    pub fn join(self, boundary: &mut Boundary) -> Kept {
        boundary.attachments.extend(self.messages);
        self.kept
    }
}

/// A file as it is on disk now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// None: larger than could ever be restored.
    pub text: Option<String>,
}

/// What there is to put back.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// The newest read first.
    pub files: Vec<Found>,
    pub todos: &'a [Todo],
    pub plan: Option<Message>,
    /// Oldest first.
    pub skills: &'a [Invoked],
    /// How commands in the background are, those that run first.
    pub tasks: Vec<String>,
}

/// Files that the model has read or written, the newest first. Those that messages from `keep_from` on show are left out,
/// unless what showed them is archived.
pub fn reads(context: &Context, keep_from: Seq, archived: &[CallId]) -> Vec<PathBuf> {
    let (mut paths, mut met) = (Vec::new(), HashSet::new());
    for shown in context.shown().rev() {
        let stays = !shown.lead && shown.seq >= keep_from;
        let effects = shown.message.effects.iter().map(|effect| (stays, effect));
        let of_results = shown.message.results().flat_map(|result| {
            let stays = stays && !archived.contains(&result.id);
            result.effects.iter().map(move |effect| (stays, effect))
        });
        for (stays, effect) in effects.chain(of_results) {
            // A result that was cleared shows nothing any more, but was read all the same.
            if let Effect::Seen { path, .. } = effect
                && met.insert(path.clone())
                && !(stays && context.seen().contains_key(path))
            {
                paths.push(path.clone());
            }
        }
    }
    paths
}

/// Whether a file is never restored: it comes back in another way, or does not belong to the project. `memory` names the
/// memory files; what is below the folder of an invoked skill comes and goes with it.
pub fn excluded(path: &Path, memory: &[String], skills: &[Invoked]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let below = |folder: &str| path.parent().is_some_and(|parent| parent.components().any(|part| is(part, folder)));
    let own = ["transcript.jsonl", "session-memory"];
    below("plans")
        || (below("agents") || name.starts_with("agent-")) && name.ends_with(".jsonl")
        || path.components().any(|part| own.iter().any(|own| is(part, own)))
        || in_agent_folder(path)
        || memory.iter().any(|memory| memory == name)
        || skills.iter().filter_map(|skill| skill.path.as_deref()?.parent()).any(|folder| path.starts_with(folder))
        || name == "SKILL.md"
        || name.ends_with(".agent.json")
        || name.ends_with(".agent.toml")
}

fn is(part: Component<'_>, name: &str) -> bool {
    part.as_os_str() == name
}

/// Whether it lies in the folder of one sub-agent's run: `agents/<id>/…`.
fn in_agent_folder(path: &Path) -> bool {
    let parts: Vec<Component<'_>> = path.components().collect();
    parts.windows(3).any(|parts| is(parts[0], "agents") && !matches!(parts[2], Component::RootDir))
}

/// Tokens for all that is put back, of which `share` percent are granted: at most a third of what there is, or a short
/// conversation would grow.
pub fn budget(context: &Context, driver: &Driver, share: u64) -> u64 {
    let all: Load = context.shown().map(|shown| shown.load).sum();
    let counted = driver.used(context).saturating_sub(driver.meter.overhead());
    (all.total().max(counted) / 3).min(driver.limits().restored) * share / 100
}

/// Chooses what fits: into `budget` tokens in all, and each kind into its own limit. Todos, plan and commands come before
/// files, and files before skills; what the messages from `keep_from` on contain is not repeated.
pub fn choose(
    sources: Sources<'_>,
    context: &Context,
    keep_from: Seq,
    settings: &Settings,
    limits: &Limits,
    budget: u64,
) -> Restored {
    let mut left = budget.min(limits.restored);
    let mut room = |message: &Message, most: u64| {
        let tokens = tokens::message(message);
        let fits = tokens <= left.min(most);
        if fits {
            left -= tokens;
        }
        fits
    };
    let mut kept = Kept::default();
    let todos = Some(sources.todos).filter(|todos| settings.restore.todos && !todos.is_empty());
    let todos = todos.map(|items| (items.len(), todos_message(items, limits.todos)));
    let todos = todos.filter(|(_, message)| room(message, u64::MAX));
    let plan = sources.plan.filter(|plan| settings.restore.plan && room(plan, u64::MAX));
    kept.todos = todos.as_ref().map_or(0, |(count, _)| *count as u64);
    kept.plan = plan.is_some();
    let tasks = tasks_message(&sources.tasks, limits.tasks).filter(|(_, message)| room(message, u64::MAX));
    kept.tasks = tasks.as_ref().map_or(0, |(count, _)| *count);

    let (mut files, mut for_files) = (Vec::new(), limits.files);
    for found in sources.files.into_iter().take(settings.restore.max_files) {
        let whole = found.text.as_deref().map(|text| whole(&found.path, text));
        if let Some(message) = whole.filter(|message| room(message, limits.file.min(for_files))) {
            for_files -= tokens::message(&message);
            kept.files += 1;
            files.push(message);
            continue;
        }
        let note = too_large(&found.path);
        if room(&note, u64::MAX) {
            files.push(note);
        }
    }

    let said = |skill: &Invoked| {
        let mut stays = context.shown().filter(|shown| !shown.lead && shown.seq >= keep_from);
        stays.any(|shown| shown.message.kind == Kind::Skill && shown.message.text().contains(&skill.content))
    };
    let (mut skills, mut for_skills) = (Vec::new(), limits.skills);
    for skill in sources.skills.iter().rev().filter(|skill| !said(skill)) {
        let message = skill_message(skill, limits.skill);
        if room(&message, for_skills) {
            for_skills -= tokens::message(&message);
            skills.push(message);
        }
    }
    kept.skills = skills.len() as u64;

    let (todos, tasks) = (todos.map(|(_, message)| message), tasks.map(|(_, message)| message));
    let messages = files.into_iter().chain(todos).chain(plan).chain(tasks).chain(skills).map(Arc::new).collect();
    Restored { messages, kept }
}

/// The whole file: it counts as read from here on.
fn whole(path: &Path, text: &str) -> Message {
    let shown =
        format!("# {}\nYou read this file before. This is its full content on disk now.\n\n{text}", path.display());
    let sha256 = sha256_hex(text.as_bytes());
    Message {
        effects: vec![Effect::Seen { path: path.to_owned(), sha256 }],
        ..Message::attachment(Attachment::Restored, &shown)
    }
}

/// As many as fit, and how many.
fn tasks_message(tasks: &[String], most: u64) -> Option<(usize, Message)> {
    let mut found = None;
    let mut text = "# Background commands\nAs they are now:".to_owned();
    for (count, task) in (1..).zip(tasks) {
        text.push_str(&format!("\n- {task}"));
        let message = Message::attachment(Attachment::Restored, &text);
        if tokens::message(&message) > most {
            break;
        }
        found = Some((count, message));
    }
    found
}

fn too_large(path: &Path) -> Message {
    Message::attachment(
        Attachment::Restored,
        &format!("You read {} before. It is too large to restore here: read again what you need.", path.display()),
    )
}

fn todos_message(todos: &[Todo], most: u64) -> Message {
    const TITLE: &str = "# Todos\nYour list as you left it:";
    Message::attachment(
        Attachment::Restored,
        &format!("{TITLE}\n{}", shortened(&Todo::checklist(todos), most.saturating_sub(30))),
    )
}

fn skill_message(skill: &Invoked, most: u64) -> Message {
    let text = shortened(&skill.content, most.saturating_sub(40));
    let path = skill.path.as_ref().map(|path| format!("Path: {}\n", path.display())).unwrap_or_default();
    let cut = if text.len() < skill.content.len() { " It is truncated." } else { "" };
    Message::attachment(
        Attachment::Restored,
        &format!(
            "# Skill {}\n{path}It was invoked earlier; follow it where it still applies.{cut}\n\n{text}",
            skill.name
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, driver, text};
    use crate::message::{Block, TodoStatus};

    #[test]
    fn what_is_never_restored() {
        let memory = ["AGENTS.md".to_owned()];
        let path = Some("/p/.claude/skills/a/SKILL.md".into());
        let skills = [Invoked { name: "a".into(), path, opened: None, content: String::new() }];
        for (path, want) in [
            ("/p/src/main.rs", false),
            ("/p/plans.md", false),
            ("/p/myplans/a.md", false),
            ("/home/plans/a.md", true),
            ("/p/plans/deep/a.md", true),
            ("/p/agents/x.rs", false),
            ("/p/agents/x.jsonl", true),
            ("/s/1/agent-a1.jsonl", true),
            ("/p/agent-notes.md", false),
            ("/p/agents/id/notes.md", true),
            ("/s/1/transcript.jsonl", true),
            ("/s/1/session-memory/summary.md", true),
            ("/p/AGENTS.md", true),
            ("/p/sub/AGENTS.md", true),
            ("/p/NOTAGENTS.md", false),
            ("/p/x/SKILL.md", true),
            ("/p/.claude/skills/a/scripts/run.py", true),
            ("/p/.claude/skills/ab/scripts/run.py", false),
            ("/p/r.agent.json", true),
            ("/p/r.agent.toml", true),
            ("/p/agent.toml", false),
        ] {
            assert_eq!(excluded(Path::new(path), &memory, &skills), want, "{path}");
        }
    }

    /// A message that shows a file whole.
    fn seen(path: &str) -> Message {
        let effects = vec![Effect::Seen { path: path.into(), sha256: "x".into() }];
        Message { effects, ..Message::reminder("x") }
    }

    #[test]
    fn the_newest_read_comes_first_and_what_stays_is_left_out() {
        let mut talk = Talk::new();
        for path in ["/a", "/b", "/a", "/c"] {
            talk.push(seen(path));
        }
        let kept = talk.session.next_seq();
        talk.push(seen("/d"));
        let all =
            |from| reads(talk.context(), from, &[]).iter().map(|path| path.display().to_string()).collect::<String>();
        assert_eq!(all(kept + 9), "/d/c/a/b");
        assert_eq!(all(kept), "/c/a/b");
        assert_eq!(all(0), "");
    }

    /// First words of what is restored, and the counts.
    fn shown(restored: &Restored) -> String {
        let first = |message: &Arc<Message>| {
            let text = message.text();
            text.lines().nth(1).unwrap_or_default().split(" before").next().unwrap_or_default().to_owned()
        };
        let lines: Vec<String> = restored.messages.iter().map(first).collect();
        let Kept { files, todos, plan, skills, .. } = restored.kept;
        format!("{} | {files} {todos} {plan} {skills}", lines.join(", "))
    }

    fn check(window: u64, budget: u64, sizes: &[Option<u64>], want: &str) {
        let (driver, mut talk) = (driver(window, |_| {}), Talk::new());
        let kept = talk.push(Message { kind: Kind::Skill, ..Message::prompt("kept skill") });
        let todo =
            |content: &str| Todo { content: content.into(), active_form: String::new(), status: TodoStatus::Pending };
        let todos = [todo("one"), todo("two")];
        let skill = |name: &str, content: String| Invoked { name: name.into(), path: None, opened: None, content };
        let skills = [skill("old", text(10)), skill("kept", "kept skill".into()), skill("new", text(9_000))];
        let found = |(n, size): (usize, &Option<u64>)| Found { path: format!("/{n}").into(), text: size.map(text) };
        let sources = Sources {
            files: sizes.iter().enumerate().map(found).collect(),
            todos: &todos,
            plan: Some(Message::reminder("# Plan")),
            skills: &skills,
            tasks: Vec::new(),
        };
        let restored = choose(sources, talk.context(), kept, driver.settings(), driver.limits(), budget);
        assert!(restored.tokens() <= budget.min(driver.limits().restored), "{window} {budget}");
        assert_eq!(shown(&restored), want, "{window} {budget}");
    }

    #[test]
    fn commands_are_told_of_as_far_as_they_fit() {
        let mut talk = Talk::new();
        let kept = talk.push(Message::prompt("go"));
        let check = |most: u64, want: (usize, &str)| {
            let driver = driver(200_000, |settings| settings.restore.tasks_tokens = most);
            let tasks = vec!["b2 runs".to_owned(), text(100), "b3 has ended".to_owned()];
            let sources = Sources { tasks, ..Sources::default() };
            let restored = choose(sources, talk.context(), kept, driver.settings(), driver.limits(), u64::MAX);
            let said = restored.messages.first().map(|message| message.text()).unwrap_or_default();
            let said = said.lines().filter(|line| line.starts_with("- b")).collect::<Vec<_>>().join(" ");
            assert_eq!((restored.kept.tasks, said.as_str()), want, "{most}");
        };
        check(2000, (3, "- b2 runs - b3 has ended"));
        check(40, (1, "- b2 runs"));
        check(1, (0, ""));
    }

    #[test]
    fn each_kind_keeps_its_limit() {
        const MOST: u64 = u64::MAX;
        check(
            200_000,
            MOST,
            &[Some(10), None, Some(9_000), Some(4_000)],
            "# /0, You read /1, You read /2, # /3, # Todos, # Plan, # Skill old | 2 2 true 1",
        );
        check(
            200_000,
            MOST,
            &[Some(1); 7],
            "# /0, # /1, # /2, # /3, # /4, # Todos, # Plan, # Skill new, # Skill old | 5 2 true 2",
        );
        check(200_000, 100, &[Some(500), Some(5)], "You read /0, # /1, # Todos, # Plan | 1 2 true 0");
        check(200_000, 0, &[Some(1)], " | 0 0 false 0");
        check(
            8_192,
            MOST,
            &[Some(900), Some(200)],
            "You read /0, # /1, # Todos, # Plan, # Skill new, # Skill old | 1 2 true 2",
        );
    }

    #[test]
    fn a_file_that_was_restored_whole_counts_as_read() {
        let (driver, mut talk) = (driver(200_000, |_| {}), Talk::new());
        talk.prompt(1_000).push(Message::reply(vec![Block::text("x")]));
        let end = talk.session.next_seq();
        let files = vec![
            Found { path: "/whole".into(), text: Some("fn main() {}".into()) },
            Found { path: "/large".into(), text: None },
        ];
        let sources = Sources { files, ..Sources::default() };
        let restored = choose(sources, talk.context(), end, driver.settings(), driver.limits(), u64::MAX);
        let mut boundary = Boundary { keep_from: end, ..Boundary::default() };
        restored.join(&mut boundary);
        talk.session.append(crate::session::entry::EntryKind::CompactBoundary(boundary)).unwrap();
        let seen: Vec<_> = talk.context().seen().iter().collect();
        assert_eq!(seen, [(&PathBuf::from("/whole"), &sha256_hex(b"fn main() {}"))]);
    }
}
