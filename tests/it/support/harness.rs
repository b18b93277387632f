//! Runs a whole engine over a scripted model in a temporary folder, and tells what happened, one line an event.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cocode::agent::Presence;
use cocode::config::paths::{Env, Paths};
use cocode::engine::{self, Begin, Handle, Setup};
use cocode::message::{Attachment, Block, Effect, Kind};
use cocode::permission::{Mode, Sandbox};
use cocode::protocol::report::Report;
use cocode::protocol::task::Step;
use cocode::protocol::{Answer, Compaction, Delivery, Delta, Event, Item, ModeChange, Op, Question, Turn};
use cocode::report;
use cocode::session::Session;
use cocode::stdx::clock::Clocks;

use super::program::Program;

/// Longest wait for an event; only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Begins what is waited for, among the prompts.
const WAIT: &str = "wait for ";

/// A project, a home and a script, waiting for prompts.
pub(crate) struct Harness {
    root: tempfile::TempDir,
    script: String,
    mode: Option<Mode>,
    begin: Begin,
    max_turns: Option<u32>,
    ops: Vec<(String, Op)>,
    files: Vec<(String, PathBuf)>,
    answers: VecDeque<Answer>,
    unanswered: bool,
    swap: Option<(PathBuf, String)>,
    folder: &'static str,
    prompts: Vec<String>,
    attachments: Vec<PathBuf>,
    env: Vec<(String, String)>,
    flags: toml::Table,
    thinking: Option<cocode::thinking::Override>,
    presence: Presence,
    clocks: Clocks,
    system: Option<String>,
    helper: bool,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) events: Vec<Event>,
    root: tempfile::TempDir,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("project")).unwrap();
        Harness {
            root,
            script: String::new(),
            mode: None,
            begin: Begin::New,
            max_turns: None,
            ops: Vec::new(),
            files: Vec::new(),
            answers: VecDeque::new(),
            unanswered: false,
            folder: "project",
            prompts: Vec::new(),
            swap: None,
            attachments: Vec::new(),
            env: Vec::new(),
            flags: toml::Table::new(),
            thinking: None,
            presence: Presence::Attended,
            clocks: Clocks::real(),
            system: None,
            helper: true,
        }
    }

    /// Goes on in the folders of an earlier run.
    pub(crate) fn after(ran: Ran) -> Harness {
        Harness { root: ran.root, ..Harness::new() }.begin(Begin::Continue)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join(self.folder).canonicalize().unwrap()
    }

    /// Works in another folder than `project`.
    pub(crate) fn folder(mut self, name: &'static str) -> Harness {
        std::fs::create_dir_all(self.root.path().join(name)).unwrap();
        self.folder = name;
        self
    }

    /// Rewrites a file while the first question is open.
    pub(crate) fn swapped(mut self, path: &str, text: &str) -> Harness {
        self.swap = Some((self.project().join(path), text.to_owned()));
        self
    }

    /// Leaves questions open.
    pub(crate) fn unanswered(mut self) -> Harness {
        self.unanswered = true;
        self
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Harness {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// A file in our own home, `~/.claude`.
    pub(crate) fn home(self, path: &str, text: &str) -> Harness {
        let path = self.root.path().join(".claude").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Steps of `--offline-script`; `$P` stands for the project's folder.
    pub(crate) fn script(mut self, yaml: &str) -> Harness {
        self.script = yaml.replace("$P", &self.project().to_string_lossy());
        self
    }

    pub(crate) fn mode(mut self, mode: Mode) -> Harness {
        self.mode = Some(mode);
        self
    }

    pub(crate) fn max_turns(mut self, turns: u32) -> Harness {
        self.max_turns = Some(turns);
        self
    }

    pub(crate) fn begin(mut self, begin: Begin) -> Harness {
        self.begin = begin;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Harness {
        self.env.push((name.into(), value.into()));
        self
    }

    /// A setting, as a flag would give it.
    pub(crate) fn set(mut self, toml: &str) -> Harness {
        self.flags.extend(toml.parse::<toml::Table>().unwrap());
        self
    }

    /// `--system-prompt`.
    pub(crate) fn system(mut self, text: &str) -> Harness {
        self.system = Some(text.into());
        self
    }

    /// What time it is.
    pub(crate) fn clock(mut self, wall: fn() -> std::time::SystemTime) -> Harness {
        self.clocks.wall = wall;
        self
    }

    /// Nobody works in the session: it is a script's.
    pub(crate) fn unattended(mut self) -> Harness {
        self.presence = Presence::Unattended;
        self
    }

    /// Commands run without the helper that would confine and record them.
    pub(crate) fn without_helper(mut self) -> Harness {
        self.helper = false;
        self
    }

    /// `--thinking`.
    pub(crate) fn thinking(mut self, flag: &str) -> Harness {
        self.thinking = Some(cocode::thinking::Override::parse(flag).unwrap());
        self
    }

    pub(crate) fn prompt(mut self, text: &str) -> Harness {
        self.prompts.push(text.into());
        self
    }

    /// Sends a file along with every prompt.
    pub(crate) fn attach(mut self, path: &str) -> Harness {
        self.attachments.push(path.into());
        self
    }

    /// Answers the next question; without an answer every question is refused.
    pub(crate) fn answer(mut self, answer: Answer) -> Harness {
        self.answers.push_back(answer);
        self
    }

    /// Sends an op once, when a line of the trace begins so for the first time.
    pub(crate) fn at(mut self, line: &str, op: Op) -> Harness {
        self.ops.push((line.into(), op));
        self
    }

    /// Makes a file once, when a line of the trace begins so for the first time.
    pub(crate) fn touch_at(mut self, line: &str, path: &str) -> Harness {
        self.files.push((line.into(), self.project().join(path)));
        self
    }

    /// Sends what follows once a line of the trace begins so that comes after what was sent before.
    pub(crate) fn wait_for(self, line: &str) -> Harness {
        self.prompt(&format!("{WAIT}{line}"))
    }

    fn setup(&self) -> Setup {
        let vars: Vec<(&str, &str)> = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let env = Env::fake(self.root.path(), &vars);
        let paths = Paths::new(&env).unwrap();
        let mut flags = self.flags.clone();
        if let Some(turns) = self.max_turns {
            flags.insert("max_turns".into(), i64::from(turns).into());
        }
        // Whatever listens on the machine that runs the tests must not matter to them.
        flags.entry("probe_local").or_insert(false.into());
        // Nor is the configuration of the user who runs them, whose home is not the session's.
        let git = toml::Table::from_iter([("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".into())]);
        flags.entry("env").or_insert(git.into());
        let script = (!self.script.is_empty()).then(|| {
            let path = self.root.path().join("script.yaml");
            std::fs::write(&path, &self.script).unwrap();
            path
        });
        Setup {
            loaded: cocode::config::load(&paths, &env, flags).unwrap(),
            paths,
            env,
            project: self.project(),
            begin: self.begin.clone(),
            fork: false,
            trust: false,
            offline: false,
            script,
            mode: self.mode,
            thinking: self.thinking,
            system: self.system.clone(),
            append_system: None,
            output_schema: None,
            sandbox: Sandbox::Outer,
            commands: cocode::sandbox::Sandbox::new(self.helper.then(|| Program::binary().into())),
            piped: None,
            presence: self.presence,
            may_bypass: false,
            host: None,
            session_id: None,
            resume_at: None,
            only_tools: None,
            clocks: self.clocks,
        }
    }

    /// Sends the prompts, one a turn, and ends the engine.
    pub(crate) async fn run(mut self) -> Ran {
        let Handle { ops, mut events, task } = engine::start(self.setup());
        let mut seen = Vec::new();
        let mut prompts = VecDeque::from(std::mem::take(&mut self.prompts));
        let (mut begun, mut queued) = (false, 0);
        let mut sent: Option<Op> = None;
        // Lines since the last one was sent, and whether that was served to its end.
        let (mut since, mut served) = (Vec::<String>::new(), false);
        loop {
            let waited = Instant::now();
            let event = loop {
                match tokio::time::timeout(PATIENCE, events.recv()).await {
                    Ok(event) => break event,
                    // A clock that is paused jumps while a real process is waited for.
                    Err(_) if waited.elapsed() < PATIENCE => std::thread::yield_now(),
                    Err(_) => panic!("nothing happens any more after\n{}", trace(&seen, &self.project())),
                }
            };
            let Some(event) = event else { break };
            // The receipt at the end costs what the machine makes of it; `flows` reads it.
            if matches!(event, Event::Report(Report::Ended(_))) {
                continue;
            }
            let row = line(&event, &self.project());
            // What was queued meanwhile makes a turn of its own, before the next prompt.
            let ready = match &event {
                Event::Queue { items } => {
                    queued = items.len();
                    false
                }
                Event::Usage(_) => !begun,
                Event::Done { op } => {
                    sent.take_if(|sent| sent == op);
                    begun && sent.is_none() && queued == 0
                }
                _ => false,
            };
            let begins =
                |(start, _): &mut (String, Op)| row.as_ref().is_some_and(|row| row.starts_with(start.as_str()));
            for (_, file) in
                self.files.extract_if(.., |(start, _)| row.as_ref().is_some_and(|row| row.starts_with(start.as_str())))
            {
                std::fs::write(file, "").unwrap();
            }
            // What happens at a question happens before its answer.
            for (_, op) in self.ops.extract_if(.., begins) {
                let _ = ops.send(op).await;
            }
            if let Event::Ask(ask) = &event
                && !self.unanswered
            {
                if let Some((path, text)) = self.swap.take() {
                    std::fs::write(path, text).unwrap();
                }
                let answer = self.answers.pop_front().unwrap_or(Answer::No { feedback: None });
                // An engine that ends does not wait for answers.
                let _ = ops.send(Op::Answer { id: ask.id, answer }).await;
            }
            seen.push(event);
            since.extend(row);
            served |= ready;
            let waits = |prompt: &String| {
                let line = prompt.strip_prefix(WAIT)?;
                Some(!since.iter().any(|row| row.starts_with(line)))
            };
            match prompts.front().and_then(waits) {
                Some(true) => continue,
                Some(false) if served => drop(prompts.pop_front()),
                Some(false) | None => {}
            }
            if served {
                (begun, served) = (true, false);
                since.clear();
                let op = match prompts.pop_front() {
                    Some(line) if line.starts_with('/') => command(&line),
                    Some(line) if line.starts_with('!') => Op::Shell { command: line[1..].into() },
                    Some(text) => Op::Prompt {
                        text,
                        attachments: self.attachments.clone(),
                        delivery: Delivery::AfterTurn,
                        thinking: None,
                        data: Vec::new(),
                    },
                    None => Op::Shutdown,
                };
                sent = Some(op.clone());
                // After `Closed` nobody listens any more.
                let _ = ops.send(op).await;
            }
        }
        task.await.unwrap();
        Ran { events: seen, root: self.root }
    }
}

impl Ran {
    /// Every event that tells something, one line each. Times and ids are left out.
    pub(crate) fn trace(&self) -> String {
        trace(&self.events, &self.project())
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project").canonicalize().unwrap()
    }

    /// Our own home, `~/.claude`.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join(".claude")
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap()
    }

    /// The one plan that was written.
    pub(crate) fn plan(&self) -> String {
        std::fs::read_to_string(self.plan_file()).unwrap()
    }

    pub(crate) fn plan_file(&self) -> PathBuf {
        let plans = std::fs::read_dir(self.root.path().join(".claude/plans")).unwrap();
        let plans: Vec<PathBuf> = plans.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(plans.len(), 1, "{plans:?}");
        plans.into_iter().next().unwrap()
    }

    /// The log of the newest session.
    pub(crate) fn log(&self) -> PathBuf {
        let home = self.root.path().join(".claude");
        let mut logs: Vec<PathBuf> = std::fs::read_dir(home)
            .unwrap()
            .map(|entry| entry.unwrap().path().join("transcript.jsonl"))
            .filter(|log| log.exists())
            .collect();
        logs.sort();
        logs.pop().expect("a session was written")
    }

    /// The newest session, to look at.
    pub(crate) fn session(&self) -> Session {
        let log = self.log();
        let folder = log.parent().unwrap();
        let id = folder.file_name().unwrap().to_string_lossy().into_owned();
        Session::open_read_only(folder.parent().unwrap(), &id, std::time::SystemTime::now).unwrap()
    }
}

fn trace(events: &[Event], project: &Path) -> String {
    events.iter().filter_map(|event| line(event, project)).collect::<Vec<_>>().join("\n")
}

/// One line for an event; none for those that say nothing new.
fn line(event: &Event, project: &Path) -> Option<String> {
    let clean = |text: &str| plans_unnamed(text).replace(project.to_string_lossy().as_ref(), "$P").replace('\n', "⏎");
    Some(match event {
        Event::Session(info) => format!("session mode={} shown={}", info.mode, info.history.len()),
        Event::Turn(Turn::Started) => "turn started".into(),
        Event::Turn(Turn::Ended { end, .. }) => format!("turn ended {end:?}"),
        Event::Delta(Delta::Text { text }) => format!("text {}", clean(text)),
        Event::Delta(Delta::Thinking { text }) => format!("thinking {}", clean(text)),
        Event::Delta(Delta::ToolOutput { text, .. }) => format!("output {}", clean(text)),
        Event::Delta(Delta::Discarded { reason }) => format!("discarded {reason}"),
        Event::Delta(Delta::ToolArgs { .. })
        | Event::Usage(_)
        | Event::Thinking(_)
        | Event::AskClosed { .. }
        | Event::Call { .. }
        | Event::Turn(Turn::Spent { .. })
        | Event::Closed
        | Event::Model(_)
        | Event::Interface(_)
        | Event::Background { .. }
        | Event::Commands { .. }
        | Event::Listed(_)
        | Event::Done { .. } => return None,
        Event::Item(Item::Message { message, .. }) => {
            let parts: Vec<String> = message
                .blocks
                .iter()
                .map(|block| match block {
                    Block::Text { text, .. } => clean(text),
                    Block::Thinking { text, .. } => format!("({})", clean(text)),
                    Block::ToolCall(call) => format!("[{} {}]", call.name, clean(&call.input.to_string())),
                    Block::ToolResult(result) => format!("{:?}: {}", result.outcome, clean(&result.text())),
                    Block::Media(media) => media.media_type.clone(),
                })
                .collect();
            let kind = match message.kind {
                Kind::Attachment(_) => "attachment".to_owned(),
                kind => format!("{kind:?}").to_lowercase(),
            };
            let plan = message.effects.iter().find_map(|effect| match effect {
                Effect::Plan { note, .. } => Some(note),
                _ => None,
            });
            if let Some(note) = plan {
                return Some(format!("reminder plan {note:?}"));
            }
            if matches!(message.kind, Kind::Attachment(Attachment::Opening { .. })) {
                return None;
            }
            if message.kind == Kind::Attachment(Attachment::SkillList)
                && let Some((_, list)) = parts[0].split_once("# Skills⏎")
            {
                // What the shipped ones say of themselves is not part of any trace.
                let names: Vec<&str> = list.split("⏎- ").skip(1).filter_map(|row| row.split(':').next()).collect();
                return Some(format!("attachment # Skills⏎{}", names.join(" ")));
            }
            format!("{kind} {}", parts.join(" "))
        }
        Event::Item(Item::CallStarted { tool, title, .. }) => format!("call {tool} {}", clean(title)),
        Event::Item(item) => format!("item {}", clean(&serde_json::to_string(item).unwrap())),
        Event::Ask(ask) => match &ask.question {
            Question::Permission { tool, title, suggestions, .. } => {
                let asker = ask.asker.as_ref().map(|asker| format!("({}: {}) ", asker.agent, asker.description));
                format!("ask {}{tool} {} {suggestions:?}", asker.unwrap_or_default(), clean(title))
            }
            other => format!("ask {}", clean(&serde_json::to_string(other).unwrap())),
        },
        Event::Task(task) => {
            let step = match &task.step {
                Step::Started => "started".to_owned(),
                Step::Doing { what } => clean(what),
                Step::Said { .. } => return None,
                Step::Done { end } => format!("{end:?} after {} calls", task.tools),
            };
            format!("task {} {} {step}", task.id, task.agent)
        }
        Event::Mode(ModeChange::Changed { mode }) => format!("mode {mode}"),
        // Where the plan is has a random name.
        Event::Mode(ModeChange::PlanEntered { .. }) => "plan mode entered".into(),
        Event::Mode(ModeChange::PlanExited { approved }) => format!("plan mode left, approved={approved}"),
        Event::Retrying { attempt, of, reason, .. } => format!("retrying {attempt}/{of} {reason}"),
        Event::Todos { items } => format!("todos {}", items.len()),
        Event::Queue { items } => {
            format!("queue {:?}", items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>())
        }
        Event::Hook { ran } => {
            let word = ran.word().map(|word| format!(" · {}", clean(&word))).unwrap_or_default();
            format!("hook {} {}{word}", ran.name, ran.ended.name())
        }
        Event::Compaction(step) => match step {
            Compaction::Started { trigger, .. } => format!("compacting {trigger:?}"),
            Compaction::Progress { phase, .. } if phase.starts_with("Running") => format!("phase {phase}"),
            Compaction::Progress { .. } => return None,
            Compaction::Completed { receipt, .. } => {
                format!("compacted {} {:?} {:?} {:?}", receipt.tier, receipt.trigger, receipt.kept, receipt.dropped)
            }
            Compaction::Failed { reason, text, .. } => format!("compaction failed {reason:?} {}", clean(text)),
            Compaction::MicroApplied { removed_results, .. } => format!("cleared {removed_results}"),
            Compaction::SessionMemoryApplied { .. } => "notes applied".into(),
            Compaction::ThresholdExceeded { .. } => "still large".into(),
        },
        Event::Notice { text } => format!("notice {}", clean(text)),
        Event::Report(report) => format!("notice {}", clean(&report::markdown(report))),
        Event::Error { text, restore } => format!("error {} restore={restore:?}", clean(text)),
    })
}

fn command(line: &str) -> Op {
    let (name, args) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
    Op::Command { name: name.into(), args: args.into() }
}

/// The text with `$PLAN` in the place of a plan's path, which has a random name.
fn plans_unnamed(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(middle) = text.find("/.claude/plans/") {
        let start = text[..middle].rfind([' ', '"', '`', '\n']).map_or(0, |at| at + 1);
        let end = text[middle..].find(".md").map_or(text.len(), |at| middle + at + 3);
        text.replace_range(start..end, "$PLAN");
    }
    text
}
