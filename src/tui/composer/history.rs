//! Earlier prompts: Up and Down walk through them, Ctrl+R searches.

use super::chip::Draft;
use super::field::Field;
use crate::protocol::Typed;

/// Earlier prompts, oldest first, and where the user is among them.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Typed>,
    /// None: at the prompt that is being written.
    at: Option<usize>,
    /// What was being written when the walk began.
    kept: Draft,
}

impl History {
    /// Puts entries (oldest first), as loaded from disk, before what was sent meanwhile.
    pub fn set(&mut self, entries: Vec<Typed>) {
        let sent = std::mem::replace(&mut self.entries, entries);
        for typed in sent {
            self.push(&typed);
        }
        self.at = None;
    }

    /// Adds a sent prompt. False when it repeats the last one.
    pub fn push(&mut self, typed: &Typed) -> bool {
        self.at = None;
        let new = !typed.text.trim().is_empty() && self.entries.last().is_none_or(|last| last.text != typed.text);
        if new {
            self.entries.push(typed.clone());
        }
        new
    }

    /// How a text was typed when it was last sent.
    pub fn find(&self, sent: &str) -> Option<&Typed> {
        self.entries.iter().rev().find(|typed| typed.text == sent)
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
        Some(Draft::of(&self.entries[at]))
    }

    /// The entry after, at last what was being written.
    pub fn newer(&mut self) -> Option<Draft> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return Some(Draft::of(&self.entries[at]));
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
    pub fn found<'a>(&self, history: &'a History) -> Option<&'a Typed> {
        let query = self.query.text().to_lowercase();
        if query.is_empty() {
            return None;
        }
        let mut seen: Vec<&str> = Vec::new();
        for entry in history.entries.iter().rev() {
            if entry.text.to_lowercase().contains(&query) && !seen.contains(&entry.text.as_str()) {
                if seen.len() == self.skip {
                    return Some(entry);
                }
                seen.push(&entry.text);
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
        assert!(history.push(&"now".into()));
        history.set(vec!["before".into()]);
        let draft = Draft::plain("");
        let texts = [history.older(&draft), history.older(&draft)].map(|draft| draft.map(|draft| draft.text));
        assert_eq!(texts, [Some("now".to_owned()), Some("before".to_owned())]);
    }

    #[test]
    fn walks_and_searches_without_losing_the_draft() {
        let mut history = History::default();
        history.set(vec!["fix tests".into(), "Run TESTS".into(), "docs".into(), "fix tests".into()]);
        assert!(!history.push(&"fix tests".into()));
        let mut search = Search::default();
        search.query.insert("tests");
        assert_eq!(search.found(&history), Some(&"fix tests".into()));
        search.next(&history);
        assert_eq!(search.found(&history), Some(&"Run TESTS".into()));
        search.next(&history);
        assert_eq!(search.found(&history), Some(&"Run TESTS".into()));

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
