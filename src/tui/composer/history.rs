//! Earlier prompts: Up and Down walk through them, Ctrl+R searches.

use super::chip::Draft;
use super::field::Field;

/// Earlier prompts, oldest first, and where the user is among them.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<String>,
    /// None: at the prompt that is being written.
    at: Option<usize>,
    /// What was being written when the walk began.
    kept: Draft,
}

impl History {
    /// Puts entries (oldest first), as loaded from disk, before what was sent meanwhile.
    pub fn set(&mut self, entries: Vec<String>) {
        let sent = std::mem::replace(&mut self.entries, entries);
        for text in sent {
            self.push(&text);
        }
        self.at = None;
    }

    /// Adds a sent prompt. False when it repeats the last one.
    pub fn push(&mut self, text: &str) -> bool {
        self.at = None;
        let new = !text.trim().is_empty() && self.entries.last().is_none_or(|last| last != text);
        if new {
            self.entries.push(text.to_owned());
        }
        new
    }

    /// The entry before; `now` is what is in the composer.
    pub fn older(&mut self, now: &Draft) -> Option<Draft> {
        let at = match self.at {
            None => self.entries.len().checked_sub(1)?,
            Some(at) => at.checked_sub(1)?,
        };
        if self.at.is_none() {
            self.kept = now.clone();
        }
        self.at = Some(at);
        Some(Draft::plain(&self.entries[at]))
    }

    /// The entry after, at last what was being written.
    pub fn newer(&mut self) -> Option<Draft> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return Some(Draft::plain(&self.entries[at]));
        }
        self.at = None;
        Some(std::mem::take(&mut self.kept))
    }
}

/// A search through the history, newest match first.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub query: Field,
    /// How many matches the user has gone past.
    skip: usize,
}

impl Search {
    /// The match that is shown: the `skip`th newest different entry that contains the query, whatever its case.
    pub fn found<'a>(&self, history: &'a History) -> Option<&'a str> {
        let query = self.query.text().to_lowercase();
        if query.is_empty() {
            return None;
        }
        let mut seen: Vec<&str> = Vec::new();
        for entry in history.entries.iter().rev() {
            if entry.to_lowercase().contains(&query) && !seen.contains(&entry.as_str()) {
                if seen.len() == self.skip {
                    return Some(entry);
                }
                seen.push(entry);
            }
        }
        None
    }

    /// Goes on to the next older match, where there is one.
    pub fn next(&mut self, history: &History) {
        self.skip += 1;
        if self.found(history).is_none() {
            self.skip -= 1;
        }
    }

    /// Starts again from the newest after the query changed.
    pub fn rewind(&mut self) {
        self.skip = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_file_was_read_stays_the_newest() {
        let mut history = History::default();
        assert!(history.push("now"));
        history.set(vec!["before".into()]);
        let draft = Draft::plain("");
        let texts = [history.older(&draft), history.older(&draft)].map(|draft| draft.map(|draft| draft.text));
        assert_eq!(texts, [Some("now".to_owned()), Some("before".to_owned())]);
    }

    #[test]
    fn walks_and_searches_without_losing_the_draft() {
        let mut history = History::default();
        history.set(vec!["fix tests".into(), "Run TESTS".into(), "docs".into(), "fix tests".into()]);
        assert!(!history.push("fix tests"));
        let mut search = Search::default();
        search.query.insert("tests");
        assert_eq!(search.found(&history), Some("fix tests"));
        search.next(&history);
        assert_eq!(search.found(&history), Some("Run TESTS"));
        search.next(&history);
        assert_eq!(search.found(&history), Some("Run TESTS"));

        let draft = Draft::plain("half");
        let texts: Vec<Option<String>> =
            [history.older(&draft), history.older(&draft), history.newer(), history.newer()]
                .into_iter()
                .chain([history.newer()])
                .map(|draft| draft.map(|draft| draft.text))
                .collect();
        let want = [Some("fix tests"), Some("docs"), Some("fix tests"), Some("half"), None];
        assert_eq!(texts, want.map(|text| text.map(str::to_owned)));
    }
}
