//! Earlier prompts: Up and Down walk through them, Ctrl+R searches.

use super::chip::Draft;
use super::field::Field;
use crate::protocol::{BETWEEN, Fold, Typed};

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

    /// How prompts that come back together were typed: a paste must not come back as what somebody typed.
    pub fn retyped(&self, sent: &str) -> Typed {
        let mut whole = Typed::from(sent);
        let mut at = 0;
        while let Some(rest) = sent.get(at..).filter(|rest| !rest.is_empty()) {
            let fits = |typed: &&Typed| {
                let after =
                    Some(&typed.text).filter(|text| !text.is_empty()).and_then(|text| rest.strip_prefix(&**text));
                after.is_some_and(|after| after.is_empty() || after.starts_with(BETWEEN))
            };
            let known = self.entries.iter().rev().filter(fits).max_by_key(|typed| typed.text.len());
            whole.folds.extend(
                known.iter().flat_map(|typed| &typed.folds).cloned().map(|fold| Fold { at: fold.at + at, ..fold }),
            );
            at += known.map(|typed| typed.text.len()).or_else(|| rest.find(BETWEEN)).unwrap_or(rest.len())
                + BETWEEN.len();
        }
        whole
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
    fn prompts_that_come_back_together_keep_their_pastes() {
        let pasted = |text: &str, at, len| Typed { text: text.into(), folds: vec![Fold { at, len, picture: None }] };
        let mut history = History::default();
        for typed in [pasted("see one\n\ntwo", 4, 8), pasted("and three", 4, 5), "see one".into()] {
            history.push(&typed);
        }
        for (text, want) in [
            ("see one\n\ntwo", vec![(4, 8)]),
            ("see one\n\ntwo\n\nand three", vec![(4, 8), (18, 5)]),
            ("new\n\nand three", vec![(9, 5)]),
            ("and three more", vec![]),
            ("", vec![]),
        ] {
            let whole = history.retyped(text);
            let folds: Vec<_> = whole.folds.iter().map(|fold| (fold.at, fold.len)).collect();
            assert_eq!((&*whole.text, folds), (text, want));
        }
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
