//! Undoes and redoes file changes, without git: contents are blobs next to the log.

use std::path::{Path, PathBuf};

use super::changes::{AGAIN, Plan, Step};
use super::entry::{Along, EntryKind, Restore, Seq, not_undone};
use super::error::Error;
use super::files::{Files, Forced, Ready};
use super::history_view::typed;
use super::recorded::{self, Finished};
use super::restoring::Put;
use super::review::{Changed, Content, Sides, take_back};
use super::session::Session;
use super::without::{Held, Source, Together, Without};
use crate::message::BlobId;
use crate::protocol::{Author, ChangedBy, RewindWhat, Span, Verdict, restored_line};
use crate::stdx::hash::sha256_hex;
use crate::stdx::replace;

/// Most commands that are named if there is nothing to undo.
const MOST_COMMANDS: usize = 10;

/// In the place of a command that cannot be read anymore.
const LOST: &str = "(a command that the log no longer has)";

/// From so many files on, what is saved of them is forced to disk together.
const FORCED: usize = 16;

/// Most files of a turn that are reviewed one by one.
const REVIEWED: usize = 300;

/// Most characters of a prompt that names its turn, or of a command.
const NAMED: usize = 50;

/// What became of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub how: Restore,
    /// The first line of the prompt whose changes were undone.
    pub turn: Option<String>,
    /// Files that are as they were before, or again as they were after.
    pub restored: Vec<PathBuf>,
    /// Those of them that keep what somebody else changed in between.
    pub merged: Vec<PathBuf>,
    /// Files that were left alone; a line each, the path and what became of it.
    pub refused: Vec<String>,
    /// Of the restored files those that commands had changed.
    pub by: Vec<ChangedBy>,
    /// Commands that ran in the turns in question, whose changes cannot be seen.
    pub unseen: Vec<String>,
}

impl Restored {
    fn nothing(how: Restore) -> Restored {
        let (restored, merged) = (Vec::new(), Vec::new());
        Restored { how, turn: None, restored, merged, refused: Vec::new(), by: Vec::new(), unseen: Vec::new() }
    }
}

/// What a rewind did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// What the user had typed there.
    pub prompt: String,
    /// None: files were not asked for.
    pub files: Option<Restored>,
    /// True when the conversation went back.
    pub conversation: bool,
}

impl Restored {
    /// What was done: a line for each file, and for each command that no undo reaches.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.restored.iter().map(|path| restored_line(path, &self.by)).collect();
        if lines.is_empty() {
            lines.push(self.how.nothing().to_owned());
        }
        lines.extend(self.merged.iter().map(|path| format!("kept later changes in {}", path.display())));
        lines.extend(self.refused.iter().map(|refused| format!("left alone: {refused}")));
        lines.extend(self.unseen.iter().map(|command| not_undone(command)));
        lines
    }
}

impl Session {
    /// Saves a file's content before our first change since the last prompt, and again when somebody else changed it in
    /// between. Call it right before a tool changes `path`, which is the real one, links followed.
    ///
    /// # Errors
    /// What the file system or the log says; the change must not continue then.
    pub fn before_change(&mut self, path: &Path) -> Result<(), Error> {
        match self.files().before(path)? {
            Some(before) => self.append(before).map(drop),
            None => Ok(()),
        }
    }

    /// Notes what a tool is about to leave in a file, forced to disk: should the program be killed meanwhile, the file
    /// itself tells whether it did. `temporary` exists beside it until then.
    ///
    /// # Errors
    /// What the log says; the change must not continue then.
    pub fn will_change(&mut self, path: &Path, blob: BlobId, temporary: PathBuf) -> Result<(), Error> {
        if let Some(change) = self.files().changes.current(path) {
            let (path, mode) = (path.to_owned(), change.after().mode());
            self.append(EntryKind::FileAfter { path, blob: Some(blob), mode, temporary: Some(temporary) })?;
        }
        self.sync()
    }

    /// Notes that what was announced for a file is there, or that nothing of it was written.
    ///
    /// # Errors
    /// What the log says.
    pub fn settled(&mut self, path: &Path) -> Result<(), Error> {
        self.append(EntryKind::FilesSettled { paths: vec![path.to_owned()] }).map(drop)
    }

    /// Notes what a file holds once hooks have seen a tool's change of it. Who wrote it cannot be known, so undo reverts
    /// only what loses nobody's words: a formatter's layout of our own lines.
    ///
    /// # Errors
    /// What the log says.
    pub fn after_hook(&mut self, path: &Path) -> Result<(), Error> {
        match self.files().touched(path)? {
            Some(touched) => self.append(touched).map(drop),
            None => Ok(()),
        }
    }

    /// Notes what a recorded command changed, once it has ended.
    ///
    /// # Errors
    /// What the log says.
    pub fn command_ended(&mut self, record: &str, finished: &Finished) -> Result<(), Error> {
        let files = finished.files() as u64;
        if files == 0 && finished.missed.is_empty() {
            return Ok(());
        }
        let (record, missed) = (record.to_owned(), finished.missed.clone());
        self.append(EntryKind::CommandChanged { record, files, missed }).map(drop)
    }

    /// Adopts the records of commands that were running when the program was killed: what they changed can be undone.
    pub(super) fn adopt(&mut self) -> Result<(), Error> {
        for record in self.files().changes.running() {
            let folder = recorded::folder(self.store(), &record);
            let finished = match folder.exists() {
                true => recorded::finish_or_tell(self.store(), &record),
                // It changed nothing, or was not recorded: nobody knows.
                false => Finished::default(),
            };
            self.command_ended(&record, &finished)?;
        }
        Ok(())
    }

    /// Removes the oldest records of commands when all of them take more than `most` bytes, and says so.
    pub fn retain_records(&self, most: u64) -> Option<String> {
        let gone = recorded::retain(self.store(), &self.files().changes.records(), most).unwrap_or_default();
        let commands = if gone == 1 { "1 earlier command".to_owned() } else { format!("{gone} earlier commands") };
        let text = || {
            format!(
                "what {commands} changed can no longer be undone: its saved files took more than undo.session_mb allows"
            )
        };
        (gone > 0).then(text)
    }

    /// Takes the file changes of the last turn back that made some; again, those of the turn before. Files that the last
    /// undo did not get to, or refused, come first.
    ///
    /// # Errors
    /// `Nothing` when no turn is left; otherwise what the log says, and no file was touched.
    pub fn undo(&mut self) -> Result<Restored, Error> {
        self.finish_late()?;
        let files = self.files();
        let plan = files.changes.unfinished(false, |file| files.in_effect(file)).or_else(|| files.undo());
        self.carry_out(Restore::Undo, plan.ok_or(Error::Nothing("undo"))?)
    }

    /// Takes the last `undo` or rewind back: its files are again exactly as they were before it.
    ///
    /// # Errors
    /// `Nothing` if nothing was undone, or a new change came after; otherwise what the log says.
    pub fn redo(&mut self) -> Result<Restored, Error> {
        let files = self.files();
        let plan = files.changes.unfinished(true, |file| files.in_effect(file)).or_else(|| files.redo());
        self.carry_out(Restore::Redo, plan.ok_or(Error::Nothing("redo"))?)
    }

    /// Puts every file back as it was before the session changed it.
    ///
    /// # Errors
    /// `Nothing` where no change is in effect; otherwise what the log says, and no file was touched.
    pub fn undo_all(&mut self) -> Result<Restored, Error> {
        if self.read_only() {
            return Err(Error::ReadOnly);
        }
        self.finish_late()?;
        let plan = self.files().rewind(0);
        if plan.steps.is_empty() {
            return Err(Error::Nothing("undo"));
        }
        self.carry_out(Restore::Rewind, plan)
    }

    /// Closes the records that a full disk left open.
    fn finish_late(&self) -> Result<(), Error> {
        let done = recorded::finish_late(self.store(), &self.files().changes.records());
        done.map_err(|error| Error::write(self.store().dir(), error))
    }

    /// The last commands that ran where there is nothing left to undo.
    pub fn commands_left(&self) -> Vec<String> {
        let commands = self.files().rewind(0).commands;
        self.command_lines(&commands[commands.len().saturating_sub(MOST_COMMANDS)..])
    }

    /// Goes back to before the prompt at `to`: files, conversation or both.
    ///
    /// # Errors
    /// `NoSuchMessage` if no prompt that counts is there; otherwise what the log says.
    pub fn rewind(&mut self, to: Seq, what: RewindWhat) -> Result<Rewound, Error> {
        let prompt = self.prompt_at(to)?.ok_or(Error::NoSuchMessage { to })?;
        if self.read_only() {
            return Err(Error::ReadOnly);
        }
        self.finish_late()?;
        let files = match what {
            RewindWhat::Conversation => None,
            RewindWhat::Code | RewindWhat::Both => Some(self.carry_out(Restore::Rewind, self.files().rewind(to))?),
        };
        let conversation = what != RewindWhat::Code;
        if conversation {
            self.append(EntryKind::Rewind { to })?;
        }
        Ok(Rewound { prompt, files, conversation })
    }

    /// What can be reviewed: everything first, then turn by turn, the last one first, at most `most` of them.
    pub fn reviews(&self, most: usize) -> Vec<Changed> {
        let files = self.files();
        let scope = |turn: Option<Seq>, prompt: String| {
            let steps = files.back(turn);
            let more = steps.len().saturating_sub(REVIEWED);
            let all = files.together(&steps);
            let of = |step| Some(Sides { by: self.authors(&Step::commands(step)), ..sides_of(files, step, &all)? });
            let mut sides: Vec<Sides> = steps.iter().take(REVIEWED).filter_map(of).collect();
            if more > 0 {
                let both = Err("cannot be reviewed: there are too many; /undo restores them".to_owned());
                sides.push(Sides { path: format!("{more} more files").into(), both, by: Vec::new() });
            }
            Changed { turn, prompt, files: sides }
        };
        let turns = files.changes.turns().into_iter().rev();
        // What a review reverted is reviewed with everything only.
        let turns = turns.filter_map(|turn| Some((turn, self.first_line(turn)?))).take(most);
        std::iter::once(scope(None, String::new()))
            .chain(turns.map(|(turn, prompt)| scope(Some(turn), prompt)))
            .filter(|scope| !scope.files.is_empty())
            .collect()
    }

    /// Takes hunks of the agent's changes back; the next undo brings them again. A file that is not what was reviewed is
    /// left alone.
    ///
    /// # Errors
    /// What the log says; no file was touched then.
    pub fn revert(&mut self, turn: Option<Seq>, verdicts: &[Verdict]) -> Result<Restored, Error> {
        if self.read_only() {
            return Err(Error::ReadOnly);
        }
        let how = Restore::Review;
        let mut done = Restored::nothing(how);
        let steps = self.files().back(turn);
        let all = self.files().together(&steps);
        let mut ready = Vec::new();
        for verdict in verdicts {
            let spans: Vec<Span> = verdict.hunks.iter().filter(|hunk| hunk.revert).map(|hunk| hunk.span).collect();
            if spans.is_empty() {
                continue;
            }
            let step = steps.iter().find(|step| step.path == verdict.path);
            let found = step.ok_or_else(|| "has nothing left to revert".to_owned());
            let worked = found.and_then(|step| self.files().without(step, &all)).and_then(|mut without| {
                let hash = |bytes: &Content| bytes.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
                let (new, old) = contents(self.files(), &without)?;
                let same = hash(&old) == verdict.now && hash(&new) == verdict.without;
                let part = take_back(new.as_deref(), old.as_deref(), &spans).filter(|_| same);
                let part = part.ok_or("was changed during the review; open /diff again")?;
                if part.is_some() && old.is_some() {
                    without.mode = without.from.mode();
                }
                if part != new {
                    without.to = part.map_or(Held::Absent, |bytes| Held::File(Source::Merged(bytes)));
                }
                without.kept = false;
                self.files().ready(without, Forced::Each)
            });
            match worked {
                Ok(one) => ready.extend(one),
                Err(reason) => done.refused.push(format!("{} {reason}", verdict.path.display())),
            }
        }
        if !ready.is_empty() {
            let files = ready.iter().map(|ready| ready.file.clone()).collect();
            self.append(EntryKind::FilesRestored { to: 0, how, files, refused: Vec::new(), along: Vec::new() })?;
            self.replace(how, ready, &mut done)?;
        }
        Ok(done)
    }

    /// Decides file by file, writes the entry, then changes the files. When every file is refused, nothing happened.
    fn carry_out(&mut self, how: Restore, plan: Plan) -> Result<Restored, Error> {
        let turn = (how == Restore::Undo).then(|| self.first_line(plan.to)).flatten();
        let mut done = Restored { turn, ..Restored::nothing(how) };
        let (mut ready, mut refused) = (Vec::new(), Vec::new());
        let forced = if plan.steps.len() > FORCED { Forced::Later } else { Forced::Each };
        let all = self.files().together(&plan.steps);
        let mut along = Vec::new();
        for step in &plan.steps {
            let mut by = step.commands();
            match self.files().prepare(step, &all, forced) {
                Ok(one) => {
                    if one.as_ref().is_some_and(|ready| ready.along) {
                        by = step.along().commands();
                        along.extend(step.later.iter().filter_map(|change| {
                            let (from, _) = change.during?;
                            Some(Along { record: change.record.clone()?, path: step.path.clone(), from })
                        }));
                    }
                    ready.extend(one);
                }
                Err(reason) => {
                    done.refused.push(format!("{} {reason}", step.path.display()));
                    refused.push(step.path.clone());
                }
            }
            let by = self.authors(&by);
            done.by.extend((!by.is_empty()).then(|| ChangedBy { path: step.path.clone(), by }));
        }
        let mut commands = plan.commands;
        if !refused.is_empty() {
            // It may be one of them that changed what cannot be told apart.
            let running = self.files().changes.in_the_background().filter(|ran| !commands.contains(ran));
            commands.extend(running.collect::<Vec<_>>());
        }
        done.unseen = self.command_lines(&commands);
        if ready.is_empty() && !refused.is_empty() {
            done.by.clear();
            return Ok(done);
        }
        if forced == Forced::Later {
            self.files().store.force().map_err(|error| Error::write(self.store().dir(), error))?;
        }
        let files = ready.iter().map(|ready| ready.file.clone()).collect();
        self.append(EntryKind::FilesRestored { to: plan.to, how, files, refused, along })?;
        let failed = self.replace(how, ready, &mut done)?;
        done.by.retain(|by| done.restored.contains(&by.path));
        // The next redo tries those of a redo again without that, and so does what continues after a kill.
        if !failed.is_empty() && how != Restore::Redo && plan.to != AGAIN {
            self.append(EntryKind::FilesRestored {
                to: AGAIN,
                how,
                files: Vec::new(),
                refused: failed,
                along: Vec::new(),
            })?;
        }
        Ok(done)
    }

    /// Writes files whose entry is in the log. Returns those that could not be written.
    fn replace(&mut self, how: Restore, ready: Vec<Ready>, done: &mut Restored) -> Result<Vec<PathBuf>, Error> {
        self.sync()?;
        let (mut failed, mut settled) = (Vec::new(), Vec::new());
        let written = self.files().put(&ready);
        for (Ready { file, kept, .. }, written) in ready.into_iter().zip(written) {
            // The next redo tries what this one could not write.
            let settles =
                !matches!(written, Err(replace::Error::Torn { .. })) && (written.is_ok() || how != Restore::Redo);
            settled.extend(settles.then(|| file.path.clone()));
            match written {
                Ok(put) => {
                    // Another name of a file of which nobody knows where it is.
                    if file.path.starts_with(self.store().dir()) {
                        continue;
                    }
                    done.merged.extend((kept || put == Put::Stays).then(|| file.path.clone()));
                    done.restored.push(file.path);
                }
                Err(error) => {
                    done.refused.push(format!("{} could not be written: {error}", file.path.display()));
                    failed.push(file.path);
                }
            }
        }
        if !settled.is_empty() {
            self.append(EntryKind::FilesSettled { paths: settled })?;
        }
        Ok(failed)
    }

    /// How a prompt or a `!` line begins; `None` if neither is there.
    fn first_line(&self, prompt: Seq) -> Option<String> {
        let text = typed(self.entry(prompt)?.kind)?;
        Some(first_of(&text)).filter(|line| !line.is_empty())
    }

    /// Who ran commands, by their entries.
    fn authors(&self, entries: &[Seq]) -> Vec<Author> {
        let author = |seq: &Seq| match self.entry(*seq)?.kind {
            EntryKind::CommandRan { command, agent, .. } => Some(Author { command: first_of(&command), agent }),
            _ => None,
        };
        entries.iter().filter_map(author).collect()
    }

    /// What commands were, by their entries. One that left with a lost log is still one that ran.
    fn command_lines(&self, entries: &[Seq]) -> Vec<String> {
        let line = |seq: &Seq| match self.entry(*seq)?.kind {
            EntryKind::CommandRan { command, .. } if self.files().changes.in_background(*seq) => {
                let command = first_of(&command);
                Some(format!("{command} (still running in the background: undo again once it has ended)"))
            }
            EntryKind::CommandRan { command, .. } => Some(first_of(&command)),
            _ => None,
        };
        let mut lines = Vec::new();
        for line in entries.iter().map(|seq| line(seq).unwrap_or_else(|| LOST.to_owned())) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

/// How a text begins.
fn first_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(NAMED) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

/// Both sides of what a step undoes; none where they do not differ, or are folders.
fn sides_of(files: &Files, step: &Step, all: &Together<'_>) -> Option<Sides> {
    if step.path.starts_with(files.store.dir()) {
        return None;
    }
    let both = match files.without(step, all) {
        Ok(without) if without.to == without.now => return None,
        Ok(without)
            if [&without.to, &without.now].into_iter().all(|held| matches!(held, Held::Absent | Held::Folder)) =>
        {
            return None;
        }
        Ok(without) => contents(files, &without),
        Err(why) => Err(why),
    };
    // Only which file it is differs.
    let differ = both.as_ref().map_or(true, |(to, now)| to != now);
    differ.then(|| Sides { path: step.path.clone(), both, by: Vec::new() })
}

/// What a path would hold without the changes, and what it holds. Of a link it is the target.
fn contents(files: &Files, without: &Without) -> Result<(Content, Content), String> {
    let content = |held: &Held| match held {
        Held::Absent | Held::Folder => Ok(None),
        Held::File(source) => files.bytes(&without.path, source).map(Some),
        Held::Link(target) => Ok(Some(target.as_os_str().as_encoded_bytes().to_vec())),
        Held::Special => Err("is not a regular file".to_owned()),
    };
    Ok((content(&without.to)?, content(&without.now)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::message::{CallId, Message};
    use crate::stdx::links;
    use crate::stdx::replace::{Expected, Replacement};

    /// A session in a folder of its own.
    struct Fixture {
        temp: tempfile::TempDir,
        session: Session,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Fixture {
            let temp = tempfile::tempdir().unwrap();
            let session = Session::create(&temp.path().join("home"), temp.path(), "1", SystemTime::now);
            let fixture = Fixture { temp, session };
            files.iter().for_each(|(name, text)| fs::write(fixture.path(name), text).unwrap());
            fixture
        }

        fn path(&self, name: &str) -> PathBuf {
            fs::canonicalize(self.temp.path()).unwrap().join(name)
        }

        fn turn(&mut self) -> Seq {
            self.session.append(EntryKind::TurnStarted).unwrap();
            self.steer()
        }

        fn steer(&mut self) -> Seq {
            self.session.append(EntryKind::Message { message: Arc::new(Message::prompt("go")) }).unwrap()
        }

        /// What a tool does; no text removes the file.
        fn change(&mut self, name: &str, text: Option<&str>) {
            let path = links::resolve(&self.path(name));
            self.session.before_change(&path).unwrap();
            match text {
                Some(text) => {
                    let replacement = self.will_change(name, text);
                    replacement.write(text.as_bytes(), Expected::Anything, None).unwrap();
                }
                None => {
                    fs::remove_file(&path).unwrap();
                    let gone = EntryKind::FileAfter { path: path.clone(), blob: None, mode: None, temporary: None };
                    self.session.append(gone).unwrap();
                }
            }
            self.session.settled(&path).unwrap();
        }

        fn will_change(&mut self, name: &str, text: &str) -> Replacement {
            let path = links::resolve(&self.path(name));
            let replacement = Replacement::at(path.clone()).unwrap();
            let blob = self.session.store().keep_blob(text.as_bytes()).unwrap();
            self.session.will_change(&path, blob, replacement.temporary().to_owned()).unwrap();
            replacement
        }

        fn command(&mut self, command: &str) {
            let (call, command, record, agent) = (CallId::nth(1), command.into(), None, None);
            let kind = EntryKind::CommandRan { call, command, record, agent };
            self.session.append(kind).unwrap();
        }

        /// Restored, refused (names alone), unseen; then what each file holds.
        fn check(&mut self, done: Restored, restored: &[&str], refused: &[&str], unseen: &[&str], files: &[&str]) {
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let found: Vec<String> = done.restored.iter().map(|path| name(path.to_str().unwrap())).collect();
            assert_eq!(found, restored);
            let found: Vec<String> =
                done.refused.iter().map(|line| name(line.split([' ', ':']).next().unwrap())).collect();
            assert_eq!(found, refused, "{:?}", done.refused);
            assert_eq!(done.unseen, unseen);
            self.holds(files);
            // The same after a resume.
            let home = self.temp.path().join("home");
            let read = Session::open_read_only(&home, self.session.id(), SystemTime::now).unwrap();
            assert_eq!(read.files().undo(), self.session.files().undo());
            assert_eq!(read.files().redo(), self.session.files().redo());
        }

        /// Files a, b, c: their text, or `-` for none.
        fn holds(&self, files: &[&str]) {
            let text = |name| fs::read_to_string(self.path(name)).unwrap_or_else(|_| "-".to_owned());
            let found: Vec<String> = ["a", "b", "c"].into_iter().take(files.len()).map(text).collect();
            assert_eq!(found, files);
        }
    }

    /// The folders that a new file brought go with it, and come again with it; one that somebody uses by then stays.
    #[test]
    fn folders_that_were_made_for_a_file_go_with_it() {
        let mut it = Fixture::new(&[]);
        fs::create_dir(it.path("own")).unwrap();
        it.turn();
        for name in ["x/y/one", "x/two", "own/deep/three", "own/four"] {
            it.session.before_change(&it.path(name)).unwrap();
            fs::create_dir_all(it.path(name).parent().unwrap()).unwrap();
            it.will_change(name, "new").write(b"new", Expected::Absent, None).unwrap();
            it.session.settled(&it.path(name)).unwrap();
        }
        let there = |it: &Fixture| ["x/y", "x", "own/deep", "own"].map(|name| it.path(name).exists());
        it.session.undo().unwrap();
        assert_eq!(there(&it), [false, false, false, true]);
        it.session.redo().unwrap();
        assert_eq!(there(&it), [true; 4]);
        fs::write(it.path("x/mine"), "mine").unwrap();
        it.session.undo().unwrap();
        assert_eq!(there(&it), [false, true, false, true]);
    }

    #[test]
    fn undo_goes_back_turn_by_turn_and_redo_forth() {
        let mut it = Fixture::new(&[("a", "a0"), ("c", "c0")]);
        it.turn();
        it.change("a", Some("a1"));
        it.change("a", Some("a2"));
        it.change("b", Some("b1"));
        it.command("make");
        it.turn();
        it.change("a", Some("a3"));
        it.change("c", None);
        it.turn();
        it.command("rm x");
        it.holds(&["a3", "b1", "-"]);

        let done = it.session.undo().unwrap();
        it.check(done, &["a", "c"], &[], &["rm x"], &["a2", "b1", "c0"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a0", "-", "c0"]);
        assert!(matches!(it.session.undo(), Err(Error::Nothing("undo"))));
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["a2", "b1", "c0"]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "c"], &[], &[], &["a3", "b1", "-"]);
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        // A new change ends what could be redone.
        it.session.undo().unwrap();
        it.turn();
        assert!(it.session.files().redo().is_some());
        it.change("b", Some("b9"));
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        let done = it.session.undo().unwrap();
        it.check(done, &["b"], &[], &[], &["a2", "b1", "c0"]);
    }

    /// Lines of the user without a prompt between them are turns of their own, to undo, to review and to go back to.
    #[test]
    fn a_line_of_the_users_is_a_turn_of_its_own() {
        let mut it = Fixture::new(&[]);
        it.turn();
        it.change("a", Some("a1"));
        for (command, name, text) in [("echo 1 > b", "b", "b1"), ("echo 2 > b", "b", "b2"), ("echo 1 > c", "c", "c1")] {
            it.session.append(EntryKind::ShellStarted { command: command.into() }).unwrap();
            it.change(name, Some(text));
            let ran = EntryKind::ShellRan { command: command.into(), output: String::new(), code: Some(0) };
            it.session.append(ran).unwrap();
        }
        let scopes: Vec<String> = it.session.reviews(9).into_iter().map(|scope| scope.prompt).collect();
        assert_eq!(scopes, ["", "!echo 1 > c", "!echo 2 > b", "!echo 1 > b", "go"]);
        let rows = |it: &Fixture| -> Vec<(String, bool)> {
            it.session.prompts().unwrap().into_iter().map(|row| (row.text, row.changed_files)).collect()
        };
        let want = ["go", "!echo 1 > b", "!echo 2 > b", "!echo 1 > c"].map(|text| (text.to_owned(), true));
        assert_eq!(rows(&it), want);
        for (turn, files) in [("!echo 1 > c", ["a1", "b2", "-"]), ("!echo 2 > b", ["a1", "b1", "-"])] {
            assert_eq!(it.session.undo().unwrap().turn.as_deref(), Some(turn));
            it.holds(&files);
        }
        assert_eq!(rows(&it), want[..2]);
        it.session.redo().unwrap();
        it.holds(&["a1", "b2", "-"]);
        let second = it.session.prompts().unwrap()[1].seq;
        let rewound = it.session.rewind(second, RewindWhat::Both).unwrap();
        assert_eq!(rewound.prompt, "!echo 1 > b");
        it.holds(&["a1", "-", "-"]);
        assert_eq!(rows(&it), want[..1]);
    }

    /// What a user decides who takes hunks of these files back, by their numbers.
    fn verdicts(it: &Fixture, turn: Option<Seq>, picks: &[(&str, &[usize])]) -> Vec<Verdict> {
        let scope = it.session.reviews(9).into_iter().find(|scope| scope.turn == turn).unwrap();
        let hash = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
        let verdict = |(name, hunks): &(&str, &[usize])| {
            let sides = scope.files.iter().find(|sides| sides.path == it.path(name)).unwrap();
            let (without, now) = sides.both.clone().unwrap();
            let spans = super::super::review::spans(without.as_deref(), now.as_deref());
            let judged = |at: &usize| crate::protocol::Judged {
                span: spans[*at],
                unified: String::new(),
                revert: true,
                comment: String::new(),
            };
            Verdict {
                path: sides.path.clone(),
                name: (*name).to_owned(),
                without: hash(&without),
                now: hash(&now),
                hunks: hunks.iter().map(judged).collect(),
            }
        };
        picks.iter().map(verdict).collect()
    }

    #[test]
    fn a_review_takes_hunks_back_and_is_undone() {
        let mut it = Fixture::new(&[("a", "1\n2\n3\n4\n5\n")]);
        it.turn();
        it.change("a", Some("1\nTWO\n3\n4\nFIVE\n"));
        it.change("b", Some("new\n"));
        // The user's own line is on both sides of every hunk.
        fs::write(it.path("a"), "mine\n1\nTWO\n3\n4\nFIVE\n").unwrap();
        let picks = verdicts(&it, None, &[("a", &[0]), ("b", &[0])]);
        let done = it.session.revert(None, &picks).unwrap();
        it.check(done, &["a", "b"], &[], &[], &["mine\n1\n2\n3\n4\nFIVE\n", "-"]);
        // Only what is left can be reviewed.
        let left = it.session.reviews(9);
        let scopes: Vec<(bool, &str, usize)> =
            left.iter().map(|scope| (scope.turn.is_none(), scope.prompt.as_str(), scope.files.len())).collect();
        assert_eq!(scopes, [(true, "", 1), (false, "go", 1)]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["mine\n1\nTWO\n3\n4\nFIVE\n", "new\n"]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["mine\n1\n2\n3\n4\nFIVE\n", "-"]);
        it.session.undo().unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["mine\n1\n2\n3\n4\n5\n", "-"]);
    }

    #[test]
    fn a_review_of_one_turn_leaves_the_others() {
        let mut it = Fixture::new(&[("a", "1\n2\n3\n4\n5\n")]);
        it.turn();
        it.change("a", Some("1\nTWO\n3\n4\n5\n"));
        it.turn();
        it.change("a", Some("1\nTWO\n3\n4\nFIVE\n"));
        let first = it.session.reviews(9)[2].turn;
        let done = it.session.revert(first, &verdicts(&it, first, &[("a", &[0])])).unwrap();
        it.check(done, &["a"], &[], &[], &["1\n2\n3\n4\nFIVE\n"]);
        // The agent continues in the same turn: a change of its own.
        it.change("a", Some("1\n2\n3\n4\nFIVE\n6\n"));
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &["1\n2\n3\n4\nFIVE\n"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &["1\nTWO\n3\n4\nFIVE\n"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &["1\nTWO\n3\n4\n5\n"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &["1\n2\n3\n4\n5\n"]);
    }

    #[test]
    fn a_review_of_what_has_changed_since_does_nothing() {
        let mut it = Fixture::new(&[("a", "1\n2\n3\n")]);
        it.turn();
        it.change("a", Some("1\nTWO\n3\n"));
        it.change("b", Some("new\n"));
        let picks = verdicts(&it, None, &[("a", &[0]), ("b", &[0])]);
        fs::write(it.path("a"), "1\nTWO\n3\nmine\n").unwrap();
        let done = it.session.revert(None, &picks).unwrap();
        it.check(done, &["b"], &["a"], &[], &["1\nTWO\n3\nmine\n", "-"]);
        // On the agent's own lines: the whole file is left to the user.
        fs::write(it.path("a"), "1\ntwo\n3\n").unwrap();
        let scope = &it.session.reviews(9)[0];
        assert!(scope.files[0].both.as_ref().is_err_and(|why| why.starts_with("was changed since at line 2")));
    }

    #[test]
    fn what_somebody_else_changed_is_refused() {
        let mut it = Fixture::new(&[("a", "a0"), ("b", "b0")]);
        it.turn();
        it.change("a", Some("a1"));
        it.change("b", Some("b1"));
        it.change("c", Some("c1"));
        fs::write(it.path("a"), "mine").unwrap();
        fs::remove_file(it.path("b")).unwrap();
        fs::remove_file(it.path("c")).unwrap();
        // The last one is already as it was before.
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["a", "b"], &[], &["mine", "-", "-"]);
        // Nothing was undone, so nothing is redone.
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        // A folder in its place; saved bytes that are gone or damaged.
        fs::create_dir(it.path("c")).unwrap();
        fs::write(it.path("a"), "a1").unwrap();
        fs::write(it.path("b"), "b1").unwrap();
        let blob = |text: &str| it.session.store().blob_path(&BlobId(sha256_hex(text.as_bytes())));
        fs::remove_file(blob("a0")).unwrap();
        fs::write(blob("b0"), "other").unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["a", "b", "c"], &[], &["a1", "b1"]);
    }

    /// Files whose changes stand.
    fn standing(it: &Fixture) -> Vec<String> {
        let firsts = it.session.files().changes.firsts(&|_| Vec::new()).into_iter();
        let mut names: Vec<String> =
            firsts.map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_refused_stays_to_be_undone() {
        for (mine, why) in [
            (Some("mine\n"), "was changed since at line 1, on or right next to what the agent changed"),
            (Some("a1\n# by hand\n"), "was changed since at line 2, on or right next to what the agent changed"),
            (Some("a\0"), "was changed since; binary files cannot be merged"),
            (None, "was deleted since: "),
        ] {
            let mut it = Fixture::new(&[("a", "a0\n")]);
            it.turn();
            it.change("a", Some("a1\n"));
            let path = it.path("a");
            mine.map_or_else(|| fs::remove_file(&path), |text| fs::write(&path, text)).unwrap();
            for _ in 0..2 {
                let done = it.session.undo().unwrap();
                assert!(done.refused[0].contains(why), "{:?}", done.refused);
                it.check(done, &[], &["a"], &[], &[mine.unwrap_or("-")]);
                assert_eq!(standing(&it), ["a"]);
            }
            assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
            fs::write(&path, "a1\n").unwrap();
            let done = it.session.undo().unwrap();
            it.check(done, &["a"], &[], &[], &["a0\n"]);
            // The same the other way.
            fs::write(&path, "mine\n").unwrap();
            for _ in 0..2 {
                let done = it.session.redo().unwrap();
                it.check(done, &[], &["a"], &[], &["mine\n"]);
                assert_eq!(standing(&it), [""; 0]);
            }
            fs::write(&path, "a0\n").unwrap();
            let done = it.session.redo().unwrap();
            it.check(done, &["a"], &[], &[], &["a1\n"]);
            assert_eq!(standing(&it), ["a"]);
        }
    }

    #[test]
    fn an_undo_of_some_files_leaves_the_others_to_the_next() {
        let mut it = Fixture::new(&[("a", "a0"), ("b", "b0"), ("c", "c0")]);
        let first = it.turn();
        it.change("a", Some("a1"));
        it.change("b", Some("b1"));
        it.turn();
        it.change("b", Some("b2"));
        it.change("c", Some("c2"));
        fs::write(it.path("b"), "mine").unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["c"], &["b"], &[], &["a1", "mine", "c0"]);
        assert_eq!(standing(&it), ["a", "b"]);
        // Again and again, exactly what was undone.
        let done = it.session.redo().unwrap();
        it.check(done, &["c"], &[], &[], &["a1", "mine", "c2"]);
        assert_eq!(standing(&it), ["a", "b", "c"]);
        it.session.undo().unwrap();
        // What was refused comes first.
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["b"], &[], &["a1", "mine", "c0"]);
        fs::write(it.path("b"), "b2").unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["b"], &[], &[], &["a1", "b1", "c0"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["a0", "b0", "c0"]);
        for files in [["a1", "b1", "c0"], ["a1", "b2", "c0"], ["a1", "b2", "c2"]] {
            it.session.redo().unwrap();
            it.holds(&files);
        }
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        // A rewind over both turns; a redo that some files refuse; a change after it.
        fs::write(it.path("b"), "mine").unwrap();
        let done = it.session.rewind(first, RewindWhat::Code).unwrap().files.unwrap();
        it.check(done, &["a", "c"], &["b"], &[], &["a0", "mine", "c0"]);
        assert_eq!(standing(&it), ["b"]);
        fs::write(it.path("c"), "mine").unwrap();
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &["c"], &[], &["a1", "mine", "mine"]);
        assert_eq!(standing(&it), ["a", "b"]);
        fs::write(it.path("c"), "c0").unwrap();
        let done = it.session.redo().unwrap();
        it.check(done, &["c"], &[], &[], &["a1", "mine", "c2"]);
        it.turn();
        it.change("c", Some("c3"));
        let done = it.session.undo().unwrap();
        it.check(done, &["c"], &[], &[], &["a1", "mine", "c2"]);
        assert_eq!(standing(&it), ["a", "b", "c"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_could_not_be_written_stays_to_be_undone() {
        let mut it = Fixture::new(&[("b", "b0")]);
        fs::create_dir(it.path("d")).unwrap();
        it.turn();
        it.change("d/a", Some("a1"));
        it.change("b", Some("b1"));
        it.session.undo().unwrap();
        // Where its folder was is a file now: found only when it is written.
        fs::remove_dir(it.path("d")).unwrap();
        fs::write(it.path("d"), "mine").unwrap();
        let done = it.session.redo().unwrap();
        it.check(done, &["b"], &["a"], &[], &[]);
        fs::remove_file(it.path("d")).unwrap();
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &[], &[], &[]);
        assert_eq!(standing(&it), ["a", "b"]);
        // The same with an undo.
        it.turn();
        it.change("d/a", None);
        it.change("b", Some("b2"));
        fs::remove_dir(it.path("d")).unwrap();
        fs::write(it.path("d"), "mine").unwrap();
        let done = it.session.undo().unwrap();
        assert!(done.refused[0].contains("could not be written"), "{:?}", done.refused);
        it.check(done, &["b"], &["a"], &[], &[]);
        let left: Vec<PathBuf> = it.session.files().undo().unwrap().steps.into_iter().map(|step| step.path).collect();
        assert_eq!(left, [it.path("d/a")]);
        fs::remove_file(it.path("d")).unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &[]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_was_put_in_the_path_is_not_followed() {
        let mut it = Fixture::new(&[]);
        fs::create_dir(it.path("d")).unwrap();
        fs::create_dir(it.path("out")).unwrap();
        fs::write(it.path("d/a"), "a0").unwrap();
        it.turn();
        it.change("d/a", Some("a1"));
        it.change("d/b", Some("b1"));
        let swap = |it: &Fixture, texts: [&str; 2]| {
            fs::rename(it.path("d"), it.path("aside")).unwrap();
            std::os::unix::fs::symlink("out", it.path("d")).unwrap();
            ["a", "b"].iter().zip(texts).for_each(|(name, text)| fs::write(it.path("out").join(name), text).unwrap());
        };
        let back = |it: &Fixture| {
            fs::remove_file(it.path("d")).unwrap();
            fs::rename(it.path("aside"), it.path("d")).unwrap();
        };
        let out = |it: &Fixture| ["out/a", "out/b"].map(|name| fs::read_to_string(it.path(name)).unwrap());
        // What lies outside would fit.
        swap(&it, ["a1", "b1"]);
        let done = it.session.undo().unwrap();
        assert!(done.refused.iter().all(|line| line.contains("changed in the meantime and now leads to")), "{done:?}");
        assert_eq!((done.restored.len(), out(&it)), (0, ["a1".to_owned(), "b1".to_owned()]));
        // A change is not even begun there.
        assert!(it.session.before_change(&it.path("d/a")).is_err());
        back(&it);
        assert_eq!(it.session.undo().unwrap().refused, [""; 0]);
        swap(&it, ["a0", "b0"]);
        fs::remove_file(it.path("out/b")).unwrap();
        let done = it.session.redo().unwrap();
        assert_eq!((done.restored.len(), it.path("out/b").exists()), (0, false));
        assert_eq!(fs::read_to_string(it.path("out/a")).unwrap(), "a0");
        back(&it);
        assert_eq!(it.session.redo().unwrap().restored.len(), 2);
    }

    #[test]
    fn a_rewind_keeps_what_came_before_its_prompt() {
        let mut it = Fixture::new(&[("a", "a0")]);
        let first = it.turn();
        it.change("a", Some("a1"));
        let steered = it.steer();
        it.change("a", Some("a2"));
        it.change("b", Some("b2"));
        let second = it.turn();
        it.command("make");
        let prompts = |it: &Fixture| it.session.prompts().unwrap();
        let rows: Vec<(Seq, bool)> = prompts(&it).into_iter().map(|row| (row.seq, row.changed_files)).collect();
        assert_eq!(rows, [(first, true), (steered, true), (second, false)]);
        assert!(matches!(it.session.rewind(second + 1, RewindWhat::Both), Err(Error::NoSuchMessage { .. })));

        let rewound = it.session.rewind(second, RewindWhat::Conversation).unwrap();
        assert_eq!(rewound, Rewound { prompt: "go".into(), files: None, conversation: true });
        assert_eq!(prompts(&it).len(), 2);
        assert!(matches!(it.session.rewind(second, RewindWhat::Both), Err(Error::NoSuchMessage { .. })));
        let done = it.session.rewind(steered, RewindWhat::Code).unwrap().files.unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a1", "-"]);
        assert_eq!(prompts(&it).len(), 2);
        let done = it.session.rewind(first, RewindWhat::Both).unwrap().files.unwrap();
        it.check(done, &["a"], &[], &[], &["a0", "-"]);
        assert_eq!(prompts(&it), []);
        // Forth again, although the prompts are gone: the files know no conversation.
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &[], &[], &["a1", "-"]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["a2", "b2"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a0", "-"]);
    }

    #[cfg(unix)]
    #[test]
    fn modes_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mut it = Fixture::new(&[("real", "r0")]);
        symlink("real", it.path("a")).unwrap();
        symlink("new", it.path("b")).unwrap();
        let mode = |path: PathBuf| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(it.path("real"), fs::Permissions::from_mode(0o750)).unwrap();
        it.turn();
        it.change("a", Some("r1"));
        it.change("b", Some("n1"));
        fs::set_permissions(it.path("real"), fs::Permissions::from_mode(0o600)).unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["real", "new"], &[], &[], &["r0", "-"]);
        // The user's bits win over those from before; where they are ours still, those come back.
        assert_eq!(mode(it.path("real")), 0o600);
        assert!(fs::read_link(it.path("a")).is_ok() && fs::read_link(it.path("b")).is_ok());
        let done = it.session.redo().unwrap();
        it.check(done, &["real", "new"], &[], &[], &["r1", "n1"]);
    }

    /// A file of ten lines, some of them replaced: `[(3, "x")]` puts an x in the place of line 3.
    fn ten(replaced: &[(usize, &str)]) -> String {
        let line = |at: usize| {
            replaced.iter().find(|(line, _)| *line == at).map_or(format!("line {at}"), |(_, text)| (*text).into())
        };
        (0..10).map(|at| line(at) + "\n").collect()
    }

    #[test]
    fn what_the_user_changed_in_between_survives() {
        // Within a turn, between turns, and after the last of them; undone in one go and turn by turn.
        let mut it = Fixture::new(&[("a", &ten(&[]))]);
        let first = it.turn();
        it.change("a", Some(&ten(&[(1, "ours")])));
        fs::write(it.path("a"), ten(&[(1, "ours"), (4, "mine")])).unwrap();
        it.change("a", Some(&ten(&[(1, "ours"), (4, "mine"), (6, "ours")])));
        it.turn();
        let second = ten(&[(0, "mine"), (1, "ours"), (4, "mine"), (6, "ours")]);
        fs::write(it.path("a"), &second).unwrap();
        let third = ten(&[(0, "mine"), (1, "ours"), (4, "mine"), (6, "ours"), (8, "ours")]);
        it.change("a", Some(&third));
        let last = format!("{third}mine at the end\n");
        fs::write(it.path("a"), &last).unwrap();
        let at_end = |text: String| format!("{text}mine at the end\n");

        let done = it.session.undo().unwrap();
        assert_eq!(done.merged, [it.path("a")]);
        it.check(done, &["a"], &[], &[], &[&at_end(second.clone())]);
        // In line 0 they touch: the user's lines stay, and so does ours.
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["a"], &[], &[&at_end(second.clone())]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &[], &[], &[&last]);
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));

        fs::write(it.path("a"), ten(&[(1, "ours"), (4, "mine"), (6, "ours"), (8, "ours"), (9, "mine, too")])).unwrap();
        let done = it.session.rewind(first, RewindWhat::Code).unwrap().files.unwrap();
        it.check(done, &[], &["a"], &[], &[]);
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
    }

    #[test]
    fn what_a_hook_left_is_taken_back_only_where_it_laid_our_lines_out() {
        for (made, left, found, want) in [
            // A line that somebody saved while the hook ran, far away and right beside; for an own file, too.
            (None, "x\n", "x\nmine\n", None),
            (None, "x", "xmine\n", None),
            (None, "x\n", "\nX\n", None),
            (None, "x\n", "\n x\n", Some("-")),
            (
                Some("one\ntwo\nthree\n"),
                "ONE\ntwo\nthree\n",
                "ONE\ntwo\nthree\nmine\n",
                Some("one\ntwo\nthree\nmine\n"),
            ),
            (Some("one\ntwo\nthree\n"), "ONE\ntwo\nthree\n", "ONE\nmine\ntwo\nthree\n", None),
            (Some("one\ntwo\nthree\n"), "ONE\ntwo\nthree\n", "ONE\nmine\nthree\n", None),
            // A line that somebody put in the place of ours meanwhile.
            (Some("one\ntwo\nthree\n"), "one\nTWO by agent\nthree\n", "one\nmy own precious sentence\nthree\n", None),
            (Some("one\ntwo\n"), "one\nTWO\n", "one\nTWO = 2\n", None),
            (Some("one\ntwo\n"), "one\nb\na\n", "one\na\nB\n", None),
            // A formatter's work.
            (Some("one\ntwo\n"), "one\nb\na\n", "one\na\nb\n", Some("one\ntwo\n")),
            (Some("one\ntwo\n"), "one\nf('a', b)\n", "one\nf(\n    \"a\",\n    b,\n);\n", Some("one\ntwo\n")),
            (Some("one\ntwo\nthree\n"), "ONE\ntwo\nthree\n", "O N\nE\ntwo\nthree\n", Some("one\ntwo\nthree\n")),
            (Some("one\ntwo\nthree\n"), "ONE\ntwo\nthree\n", "ONE\ntwo\n three\n", Some("one\ntwo\n three\n")),
            // Bytes that each are of before or after.
            (Some("8080\n"), "9090\n", "9080\n", None),
        ] {
            for hooked in [true, false] {
                let mut it = Fixture::new(&made.map(|text| ("a", text)).into_iter().collect::<Vec<_>>());
                it.turn();
                it.change("a", Some(left));
                fs::write(it.path("a"), found).unwrap();
                if hooked {
                    it.session.after_hook(&it.path("a")).unwrap();
                }
                let done = it.session.undo().unwrap();
                // Without a hook nothing but a merge takes anything back.
                let merged = want.filter(|want| hooked || want.contains("mine") || want.contains(" three"));
                let holds = merged.unwrap_or(found);
                assert_eq!(done.refused.is_empty(), holds != found, "{found:?} {hooked} {done:?}");
                it.holds(&[holds]);
            }
        }
    }

    #[test]
    fn a_redo_after_a_merge_brings_back_exactly_what_was_there() {
        let mut it = Fixture::new(&[("a", &ten(&[]))]);
        it.turn();
        it.change("a", Some(&ten(&[(1, "ours")])));
        let before = ten(&[(1, "ours"), (7, "mine")]);
        fs::write(it.path("a"), &before).unwrap();
        for _ in 0..3 {
            let done = it.session.undo().unwrap();
            it.check(done, &["a"], &[], &[], &[&ten(&[(7, "mine")])]);
            let done = it.session.redo().unwrap();
            it.check(done, &["a"], &[], &[], &[&before]);
        }
        // A change between undo and redo survives both.
        it.session.undo().unwrap();
        fs::write(it.path("a"), ten(&[(4, "later"), (7, "mine")])).unwrap();
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &[], &[], &[&ten(&[(1, "ours"), (4, "later"), (7, "mine")])]);
    }

    #[test]
    fn files_that_were_made_are_removed_only_with_our_lines_alone() {
        let mut it = Fixture::new(&[]);
        it.turn();
        it.change("a", Some("ours\n"));
        it.change("b", Some("ours\n"));
        fs::write(it.path("b"), "ours\nmine\n").unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &["b"], &[], &["-", "ours\nmine\n"]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a"], &[], &[], &["ours\n", "ours\nmine\n"]);
    }

    /// Resumes the session as after a kill.
    fn resume(it: &mut Fixture) {
        let (home, id) = (it.temp.path().join("home"), it.session.id().to_owned());
        let other = Session::create(&it.temp.path().join("other"), it.temp.path(), "1", SystemTime::now);
        drop(std::mem::replace(&mut it.session, other));
        it.session = Session::open(&home, &id, SystemTime::now).unwrap();
    }

    #[test]
    fn a_kill_at_any_point_of_a_change_leaves_it_undoable() {
        let (old, new) = (ten(&[]), ten(&[(0, "new"), (5, "longer than it was")]) + "more\n");
        let tail = format!("{old}{}", &new[old.len()..]);
        let half = |at: usize| format!("{}{}", &new[..at], &tail[at..]);
        // What the file holds when the program dies, and what the temporary file does.
        for (file, temporary) in [
            (&old, None),
            (&old, Some("")),
            (&old, Some(&new[..9])),
            (&old, Some(new.as_str())),
            (&new, Some(old.as_str())),
            (&new, None),
            // Written in place.
            (&tail, None),
            (&tail[..old.len() + 2].to_owned(), None),
            (&half(3), None),
            (&half(40), None),
        ] {
            for earlier in [false, true] {
                let mut it = Fixture::new(&[("a", if earlier { "first\n" } else { &old })]);
                it.turn();
                if earlier {
                    it.change("a", Some(&old));
                }
                it.session.before_change(&it.path("a")).unwrap();
                let replacement = it.will_change("a", &new);
                fs::write(it.path("a"), file).unwrap();
                temporary.iter().for_each(|text| fs::write(replacement.temporary(), text).unwrap());
                resume(&mut it);
                // The next person to open the file must not take it for what the agent meant.
                let half = ![&old, &new].contains(&file);
                let want = format!("{} is half-written", it.path("a").display());
                let told: Vec<bool> = it.session.notices().iter().map(|notice| notice.starts_with(&want)).collect();
                assert_eq!(told, vec![true; usize::from(half)], "{file:?}");
                assert!(!replacement.temporary().exists(), "{file:?} {temporary:?}");
                let before = if earlier { "first\n" } else { &old };
                it.session.undo().unwrap();
                it.holds(&[before]);
                it.session.redo().unwrap();
                it.holds(&[file]);
            }
        }
    }

    #[test]
    fn a_save_that_met_a_kill_is_not_removed() {
        let mut it = Fixture::new(&[("a", "a0")]);
        it.turn();
        it.session.before_change(&it.path("a")).unwrap();
        let replacement = it.will_change("a", "a1");
        fs::write(it.path("a"), "a1").unwrap();
        fs::write(replacement.temporary(), "mine").unwrap();
        resume(&mut it);
        assert!(it.session.notices()[0].contains("contains what someone saved"), "{:?}", it.session.notices());
        assert_eq!(fs::read_to_string(replacement.temporary()).unwrap(), "mine");
    }

    #[test]
    fn an_undo_that_was_cut_short_goes_on() {
        let mut it = Fixture::new(&[("a", "a0"), ("b", "b0")]);
        it.turn();
        it.change("a", Some("a1"));
        it.turn();
        it.change("a", Some("a2"));
        it.change("b", Some("b2"));
        it.session.undo().unwrap();
        // As if it had been killed between the two files: nothing says that they were written.
        let log = it.session.log().to_owned();
        let text = fs::read_to_string(&log).unwrap();
        let last = text.trim_end().rfind('\n').unwrap() + 1;
        assert!(text[last..].contains("files_settled"), "{}", &text[last..]);
        fs::write(&log, &text[..last]).unwrap();
        fs::write(it.path("b"), "b2").unwrap();
        resume(&mut it);
        let done = it.session.undo().unwrap();
        it.check(done, &["b"], &[], &[], &["a1", "b0"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a"], &[], &[], &["a0", "b0"]);
        it.session.redo().unwrap();
        it.session.redo().unwrap();
        it.session.redo().unwrap();
        it.holds(&["a2", "b2"]);
    }
}
