//! The prompts typed in each project, for Up and Ctrl+R: `<home>/cocode/history.jsonl`, newest last. Pastes stand in it
//! whole, pictures beside it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::pictures::Pictures;
use crate::protocol::{Picture, Typed};
use crate::stdx::fs::{private_dir, replace_private};
use crate::stdx::regular;

/// Size at which the file is halved, in bytes.
const FULL: u64 = 4 << 20;

/// Longest prompt that is kept, in bytes, with what was pasted into it.
const LONGEST: usize = 512 << 10;

/// Where prompts are remembered.
#[derive(Debug, Clone)]
pub struct History {
    file: PathBuf,
    pictures: Pictures,
    /// The last prompt appended, so that the same one twice in a row is kept once.
    last: Option<(PathBuf, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    project: PathBuf,
    #[serde(flatten)]
    typed: Typed,
}

impl History {
    pub fn new(home: &Path) -> History {
        let file = home.join("cocode").join("history.jsonl");
        History { file, pictures: Pictures::new(home), last: None }
    }

    /// The last prompts of a project, at most `max`, oldest first; the same one is listed once, at its last use. Damaged
    /// lines are skipped, and so are marks of pictures that are gone; a file that cannot be read is an empty history.
    pub fn load(&self, project: &Path, max: usize) -> Vec<Typed> {
        let Ok(file) = regular::open(&self.file) else { return Vec::new() };
        let mut prompts = Vec::new();
        let mut known = std::collections::HashSet::new();
        for line in tail(file).unwrap_or_default().split(|byte| *byte == b'\n').rev() {
            let Ok(row) = serde_json::from_slice::<Row>(line) else { continue };
            let Row { project: of, typed } = row;
            if of == project && known.insert(typed.text.clone()) {
                prompts.push(typed.checked(Path::is_file));
                if prompts.len() >= max {
                    break;
                }
            }
        }
        prompts.truncate(max);
        prompts.reverse();
        prompts
    }

    /// Remembers a prompt. Blank and huge ones, and the last one again, are not.
    ///
    /// # Errors
    /// What the file system says; the prompt itself is sent anyway.
    pub fn append(&mut self, project: &Path, mut typed: Typed) -> Result<(), Error> {
        let text = &typed.text;
        let same = self.last.as_ref().is_some_and(|(folder, last)| folder == project && last == text);
        if same || text.trim().is_empty() || text.len() > LONGEST {
            return Ok(());
        }
        for Picture { path, .. } in typed.folds.iter_mut().filter_map(|fold| fold.picture.as_mut()) {
            // One that cannot be kept is found as long as its file stays where it is.
            if let Ok(kept) = self.pictures.keep_file(path) {
                *path = kept;
            }
        }
        let row = Row { project: project.to_owned(), typed };
        self.write(&row).map_err(|error| Error::write(&self.file, error))?;
        self.last = Some((row.project, row.typed.text));
        Ok(())
    }

    fn write(&self, row: &Row) -> io::Result<()> {
        private_dir(self.file.parent().unwrap_or(Path::new(".")))?;
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.file)?;
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        let len = file.metadata()?.len();
        if len > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            // A write that was cut off must not take this line with it.
            if last != *b"\n" {
                line.insert(0, b'\n');
            }
        }
        file.write_all(&line)?;
        if len > FULL {
            // Prompts that another process adds at this very moment are lost: they are a convenience.
            replace_private(&self.file, &newer_half(file)?)?;
        }
        Ok(())
    }
}

/// What is read of the file: twice its usual limit at most, should somebody else have made it huge.
fn tail(mut file: File) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(2 * FULL)))?;
    let mut bytes = Vec::new();
    file.take(2 * FULL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn newer_half(mut file: File) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(FULL / 2)))?;
    let mut reader = BufReader::new(file);
    reader.skip_until(b'\n')?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Fold;

    fn load(history: &History, project: &Path, max: usize) -> Vec<String> {
        history.load(project, max).into_iter().map(|typed| typed.text).collect()
    }

    #[test]
    fn keeps_prompts_by_project_once_each_in_order_of_last_use() {
        let home = tempfile::tempdir().unwrap();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let mut history = History::new(home.path());
        assert_eq!(load(&history, a, 10), [""; 0]);
        for (project, text) in [
            (a, "one"),
            (a, "one"),
            (b, "other"),
            (a, "two\nlines"),
            (a, " "),
            (a, "one"),
            (a, &"x".repeat(LONGEST + 1)),
        ] {
            history.append(project, text.into()).unwrap();
        }
        assert_eq!(load(&history, a, 10), ["two\nlines", "one"]);
        assert_eq!(load(&history, a, 1), ["one"]);
        assert_eq!(load(&history, b, 10), ["other"]);
        assert_eq!(load(&history, b, 0), [""; 0]);
    }

    #[test]
    fn damage_costs_the_damaged_line_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("cocode/history.jsonl");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, b"{\"project\":\"/a\",\"text\":\"old\"}\n\xff\xfe\n{\"project\":\"/a\",\"te").unwrap();
        let mut history = History::new(home.path());
        history.append(Path::new("/a"), "new".into()).unwrap();
        assert_eq!(load(&history, Path::new("/a"), 9), ["old", "new"]);
    }

    #[test]
    fn is_halved_when_full() {
        let home = tempfile::tempdir().unwrap();
        let mut history = History::new(home.path());
        let project = Path::new("/a");
        for n in 0..10 {
            history.append(project, format!("{n} {}", "x".repeat(LONGEST - 10)).as_str().into()).unwrap();
        }
        assert!(std::fs::metadata(home.path().join("cocode/history.jsonl")).unwrap().len() < FULL);
        let kept = load(&history, project, 100);
        assert!(kept.len() > 3 && kept.last().unwrap().starts_with("9 "), "{}", kept.len());
    }

    #[test]
    fn pastes_and_pictures_come_back_as_long_as_they_exist() {
        let home = tempfile::tempdir().unwrap();
        let (project, shot) = (Path::new("/a"), home.path().join("shot.png"));
        std::fs::write(&shot, "picture").unwrap();
        let fold =
            |at, len, path: Option<PathBuf>| Fold { at, len, picture: path.map(|path| Picture { path, bytes: 7 }) };
        let typed = |text: &str, folds| Typed { text: text.into(), folds };
        let sent = |path| typed("see [Image 1] one\ntwo", vec![fold(4, 9, Some(path)), fold(14, 7, None)]);
        let mut history = History::new(home.path());
        history.append(project, sent(shot.clone())).unwrap();
        // Its own file may go: a clipboard has none, and a screenshot is soon cleared away.
        std::fs::remove_file(&shot).unwrap();
        let kept = history.load(project, 9);
        let path = kept[0].folds[0].picture.clone().unwrap().path;
        assert_eq!((kept, std::fs::read(&path).unwrap().as_slice()), (vec![sent(path.clone())], &b"picture"[..]));
        assert!(path.ends_with("shot.png"));
        // What comes back and is sent again is kept where it lies.
        history.append(project, typed("[Image 1]", vec![fold(0, 9, Some(path.clone()))])).unwrap();
        assert_eq!(history.load(project, 9)[1].folds, vec![fold(0, 9, Some(path.clone()))]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(history.load(project, 9)[0], typed("see one\ntwo", vec![fold(4, 7, None)]));
    }
}
