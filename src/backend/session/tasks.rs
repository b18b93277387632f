//! What runs in the background, as the log tells of it. How each task ended is owed to the model until a message that counts tells
//! it: a fold over all entries, so that neither a crash nor a compaction forgets a debt or pays it twice.

use serde::{Deserialize, Serialize};

use super::entry::{Begun, Ended, EntryKind, Seq};
use crate::message::Effect;

/// All that began where the conversation still knows of it, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks(Vec<Task>);

/// One command or sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The entry that began it.
    pub at: Seq,
    pub begun: Begun,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The entry that told the model how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Seq>,
}

impl Tasks {
    pub(super) fn record(&mut self, seq: Seq, kind: &EntryKind) {
        match kind {
            EntryKind::TaskBegun(begun) if self.find(&begun.task).is_none() => {
                self.0.push(Task { at: seq, begun: begun.clone(), ended: None, told: None });
            }
            EntryKind::TaskEnded(ended) => {
                if let Some(task) = self.find_mut(&ended.task) {
                    task.ended.get_or_insert_with(|| ended.clone());
                }
            }
            EntryKind::Message { message } if message.agent_visible => {
                let effects = message.results().flat_map(|result| &result.effects).chain(&message.effects);
                for effect in effects {
                    if let Effect::Told { task } = effect
                        && let Some(task) = self.find_mut(task)
                    {
                        task.told.get_or_insert(seq);
                    }
                }
            }
            // The conversation is as it was before that entry: what it told then, and the commands of which it knew.
            EntryKind::Rewind { to } => {
                self.0.retain(|task| task.at < *to);
                self.0.iter_mut().for_each(|task| task.told = task.told.filter(|told| told < to));
            }
            _ => {}
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.0.iter()
    }

    pub fn find(&self, task: &str) -> Option<&Task> {
        self.0.iter().find(|known| known.begun.task == task)
    }

    fn find_mut(&mut self, task: &str) -> Option<&mut Task> {
        self.0.iter_mut().find(|known| known.begun.task == task)
    }

    /// Those that have not ended, as far as the log tells.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        self.0.iter().filter(|task| task.ended.is_none())
    }

    /// How those ended of which the model has not been told.
    pub fn owed(&self) -> impl Iterator<Item = &Ended> {
        self.0.iter().filter(|task| task.told.is_none()).filter_map(|task| task.ended.as_ref())
    }

    /// The entry that began the newest of them.
    pub fn newest_owed(&self) -> Option<Seq> {
        self.0.iter().filter(|task| task.told.is_none() && task.ended.is_some()).map(|task| task.at).max()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::SystemTime;

    use proptest::prelude::*;

    use super::*;
    use crate::message::{Attachment, CallId, Message, Outcome, ToolResult};
    use crate::session::Session;
    use crate::session::entry::{Boundary, Status};

    #[derive(Debug, Clone)]
    enum Act {
        Prompt,
        Begin,
        /// Of those that run, the nth ends.
        End(usize),
        /// The model stops one: the result tells it, before the log knows of its end.
        Stop(usize),
        /// A request is about to be sent: what is owed is told.
        Step,
        Compact,
        TakeBack,
        /// To the nth prompt that counts.
        Rewind(usize),
        /// Killed, with so many bytes of one more line in the log.
        Crash(usize),
        Fork,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            2 => Just(Act::Prompt),
            4 => Just(Act::Begin),
            4 => (0..4usize).prop_map(Act::End),
            1 => (0..4usize).prop_map(Act::Stop),
            4 => Just(Act::Step),
            1 => Just(Act::Compact),
            1 => Just(Act::TakeBack),
            2 => (0..4usize).prop_map(Act::Rewind),
            2 => (0..200usize).prop_map(Act::Crash),
            1 => Just(Act::Fork),
        ];
        proptest::collection::vec(act, 1..60)
    }

    fn said(message: Message) -> EntryKind {
        EntryKind::Message { message: Arc::new(message) }
    }

    fn told(task: &str) -> Vec<Effect> {
        vec![Effect::Told { task: task.to_owned() }]
    }

    fn ended(task: &str, status: Status) -> EntryKind {
        EntryKind::TaskEnded(Ended::of(&Begun::command(task, CallId::nth(1), ""), status))
    }

    /// As an agent does before each request.
    fn step(session: &mut Session) {
        let owed: Vec<String> = session.facts().tasks.owed().map(|ended| ended.task.clone()).collect();
        for task in owed {
            let effects = told(&task);
            session.append(said(Message { effects, ..Message::attachment(Attachment::Task, &task) })).unwrap();
        }
    }

    /// What the lines of the log say, in the plainest way: of each command that the conversation knows of, whether it ended
    /// and how often that was told.
    fn plainly(log: &Path) -> BTreeMap<String, (bool, usize)> {
        let mut live: Vec<(Seq, EntryKind)> = Vec::new();
        let mut over: Vec<String> = Vec::new();
        let text = std::fs::read_to_string(log).unwrap_or_default();
        for line in text.lines() {
            let Ok(entry) = serde_json::from_str::<crate::session::entry::Entry>(line) else { continue };
            match &entry.kind {
                EntryKind::Rewind { to } => live.retain(|(seq, _)| seq < to),
                EntryKind::TaskEnded(ended) => over.push(ended.task.clone()),
                _ => {}
            }
            live.push((entry.seq, entry.kind));
        }
        let begun = live.iter().filter_map(|(_, kind)| match kind {
            EntryKind::TaskBegun(begun) => Some(begun.task.clone()),
            _ => None,
        });
        let count = |task: &String| {
            let effects = live.iter().filter_map(|(_, kind)| match kind {
                EntryKind::Message { message } => Some(message),
                _ => None,
            });
            let effects = effects
                .flat_map(|message| message.results().flat_map(|result| &result.effects).chain(&message.effects));
            effects.filter(|effect| matches!(effect, Effect::Told { task: told } if told == task)).count()
        };
        begun.map(|task| (task.clone(), (over.contains(&task), count(&task)))).collect()
    }

    fn check(session: &Session, after: &Act) {
        for (task, (over, told)) in plainly(session.log()) {
            let known = session.facts().tasks.find(&task);
            assert!(told <= 1, "{task} was told {told} times after {after:?}");
            assert_eq!(
                known.map(|known| (known.ended.is_some(), known.told.is_some())),
                Some((over, told == 1)),
                "{task}"
            );
            if matches!(after, Act::Step) && over {
                assert_eq!(told, 1, "{task} was not told");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn each_end_is_told_exactly_once(acts in acts()) {
            let home = tempfile::tempdir().unwrap();
            let mut session = Session::create(home.path(), Path::new("/"), "0", SystemTime::now);
            session.append(said(Message::prompt("go"))).unwrap();
            let (mut count, mut running) = (0, Vec::<String>::new());
            let last = [Act::Step, Act::Crash(0), Act::Step];
            for act in acts.into_iter().chain(last) {
                match &act {
                    Act::Prompt => drop(session.append(said(Message::prompt("more"))).unwrap()),
                    Act::Begin => {
                        count += 1;
                        let (task, call) = (format!("b{count}"), CallId::nth(count));
                        running.push(task.clone());
                        let begun = Begun::command(task, call, "sleep 1");
                        session.append(EntryKind::TaskBegun(begun)).unwrap();
                    }
                    Act::End(nth) if !running.is_empty() => {
                        let task = running.remove(nth % running.len());
                        session.append(ended(&task, Status::Completed)).unwrap();
                    }
                    Act::Stop(nth) if !running.is_empty() => {
                        let task = running.remove(nth % running.len());
                        let known = session.facts().tasks.find(&task).is_some();
                        if known {
                            let result = ToolResult::of_text(CallId::nth(count), Outcome::Ok, "Stopped");
                            let result = ToolResult { effects: told(&task), ..result };
                            session.append(said(Message::tool_results(vec![result]))).unwrap();
                        }
                        session.append(ended(&task, Status::Stopped)).unwrap();
                    }
                    Act::End(_) | Act::Stop(_) => {}
                    Act::Step => step(&mut session),
                    Act::Compact => {
                        let keep_from = session.next_seq();
                        session.append(EntryKind::CompactBoundary(Boundary { keep_from, ..Boundary::default() })).unwrap();
                    }
                    Act::TakeBack => {
                        if let Some(seq) = session.last_boundary() {
                            session.append(EntryKind::BoundaryUndone { seq }).unwrap();
                        }
                    }
                    Act::Rewind(nth) => {
                        let prompts = session.prompts().unwrap();
                        if let Some(prompt) = prompts.get(nth % prompts.len().max(1)) {
                            session.append(EntryKind::Rewind { to: prompt.seq }).unwrap();
                            let known = &session.facts().tasks;
                            running.retain(|task| known.find(task).is_some());
                            session.append(said(Message::prompt("again"))).unwrap();
                        }
                    }
                    Act::Crash(bytes) => {
                        let (log, id) = (session.log().to_owned(), session.id().to_owned());
                        drop(session);
                        let half = r#"{"v":1,"seq":999,"id":"x","ts":"","kind":"message","message":{"role":"user","kind":"task","#;
                        let mut file = std::fs::File::options().append(true).open(&log).unwrap();
                        file.write_all(&half.as_bytes()[..*bytes.min(&half.len())]).unwrap();
                        running.clear();
                        session = Session::open(home.path(), &id, SystemTime::now).unwrap();
                    }
                    Act::Fork => {
                        session = Session::fork(home.path(), session.id(), None, SystemTime::now).unwrap();
                        running.clear();
                    }
                }
                check(&session, &act);
            }
        }
    }

    #[test]
    fn what_is_owed() {
        let begun = |task: &str| EntryKind::TaskBegun(Begun::command(task, CallId::nth(1), "make"));
        let notice = |task: &str| said(Message { effects: told(task), ..Message::attachment(Attachment::Task, "") });
        let (done, lost) = (|task| ended(task, Status::Completed), |task| ended(task, Status::Stopped));
        for (kinds, owed, running) in [
            (vec![begun("a"), begun("b"), done("b")], "b", "a"),
            (vec![begun("a"), done("a"), notice("a")], "", ""),
            // The result of a stop comes before its end.
            (vec![begun("a"), notice("a"), lost("a")], "", ""),
            // The telling was rewound; so was the command.
            (vec![begun("a"), done("a"), notice("a"), EntryKind::Rewind { to: 2 }], "a", ""),
            (vec![begun("a"), done("a"), EntryKind::Rewind { to: 0 }], "", ""),
            (vec![begun("a"), EntryKind::Rewind { to: 0 }, done("a")], "", ""),
            // What counts is how it ended first.
            (vec![begun("a"), done("a"), lost("a")], "a", ""),
        ] {
            let mut tasks = Tasks::default();
            kinds.iter().enumerate().for_each(|(seq, kind)| tasks.record(seq as Seq, kind));
            let names = |names: Vec<&str>| names.join(" ");
            assert_eq!(names(tasks.owed().map(|ended| ended.task.as_str()).collect()), owed, "{kinds:?}");
            assert_eq!(names(tasks.running().map(|task| task.begun.task.as_str()).collect()), running, "{kinds:?}");
            assert!(tasks.owed().all(|ended| ended.status == Status::Completed));
        }
    }
}
