//! Reminders that ride along with a request: files that changed on disk, todos that were forgotten.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::message::{Attachment, Kind, Message, Todo, TodoStatus};
use crate::stdx::hash::sha256_hex;
use crate::tools;

/// Replies without a TodoWrite after which open todos are recalled.
const TODO_PATIENCE: usize = 10;
/// Files that are checked before a request; the model has rarely read more.
const MOST_FILES: usize = 500;
/// Files above this size are compared by time and length alone.
const MOST_BYTES: u64 = 4 << 20;

/// Remembers how the files that the model has read looked when they were last checked.
#[derive(Debug, Default)]
pub(super) struct Watch {
    stamps: HashMap<PathBuf, (SystemTime, u64)>,
    told: HashMap<PathBuf, String>,
}

impl Watch {
    /// Names the files whose content is no longer what the model saw, each change once.
    pub(super) fn changed(&mut self, seen: &HashMap<PathBuf, String>) -> Vec<PathBuf> {
        let mut changed: Vec<PathBuf> = seen
            .iter()
            .take(MOST_FILES)
            .filter(|(path, hash)| self.differs(path, hash))
            .map(|(path, _)| path.clone())
            .collect();
        changed.sort();
        changed
    }

    fn differs(&mut self, path: &Path, seen: &str) -> bool {
        let Ok(meta) = std::fs::metadata(path) else {
            return self.told.insert(path.to_path_buf(), "gone".into()).is_none_or(|told| told != "gone");
        };
        let stamp = (meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len());
        if self.stamps.insert(path.to_path_buf(), stamp) == Some(stamp) || !meta.is_file() || meta.len() > MOST_BYTES {
            return false;
        }
        let Ok(bytes) = std::fs::read(path) else { return false };
        let now = sha256_hex(&bytes);
        if now == seen {
            self.told.remove(path);
            return false;
        }
        self.told.insert(path.to_path_buf(), now.clone()).is_none_or(|told| told != now)
    }
}

/// The text for changed files.
pub(super) fn changed_files(paths: &[PathBuf]) -> String {
    let list: Vec<String> = paths.iter().map(|path| format!("- {}", path.display())).collect();
    format!(
        "The user or a command changed these files since you read them. Read them again before you rely on them or edit them:\n{}",
        list.join("\n")
    )
}

/// Recalls open todos when the model has not touched the list for a while.
pub(super) fn todos(messages: &[Arc<Message>], todos: &[Todo]) -> Option<Message> {
    if !todos.iter().any(|todo| todo.status != TodoStatus::Completed) {
        return None;
    }
    let mut replies = 0;
    for message in messages.iter().rev() {
        if message.kind == Kind::Attachment(Attachment::Todos)
            || message.calls().any(|call| call.name == tools::TODO_WRITE)
        {
            break;
        }
        replies += usize::from(message.kind == Kind::Reply);
        if replies >= TODO_PATIENCE {
            let text = format!(
                "The todo list was last touched a while ago. Update it if it still matters; do not mention this reminder.\n{}",
                Todo::checklist(todos)
            );
            return Some(Message::attachment(Attachment::Todos, &text));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_each_change_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let seen = HashMap::from([(path.clone(), sha256_hex(b"one"))]);
        let mut watch = Watch::default();
        assert_eq!(watch.changed(&seen), [] as [PathBuf; 0]);
        std::fs::write(&path, "other").unwrap();
        assert_eq!(watch.changed(&seen), std::slice::from_ref(&path));
        assert_eq!(watch.changed(&seen), [] as [PathBuf; 0]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(watch.changed(&seen), std::slice::from_ref(&path));
        assert_eq!(watch.changed(&seen), [] as [PathBuf; 0]);
    }

    #[test]
    fn recalls_todos_after_ten_replies() {
        let list = [Todo { content: "x".into(), active_form: "x".into(), status: TodoStatus::Pending }];
        let replies =
            |n: usize| -> Vec<Arc<Message>> { (0..n).map(|_| Arc::new(Message::reply(Vec::new()))).collect() };
        assert!(todos(&replies(9), &list).is_none());
        assert!(todos(&replies(10), &list).is_some());
        assert!(todos(&replies(10), &[]).is_none());
    }
}
