//! Which rule allows a command, and what that says of where the line leads by then.

use std::cell::OnceCell;

use super::super::Behavior;
use super::super::commands;
use super::super::dynamic;
use super::super::evaluate::{evaluates, is_shells};
use super::super::matching;
use super::super::paths::{self, Cwd};
use super::super::places::Named;
use super::super::rule::{Entry, Rule, Source, Specifier};
use super::super::shell::Word;
use super::super::wrapper;
use super::judge::Judge;
use super::placed::placed;

impl Judge<'_> {
    pub(super) fn allow_rule(&self, words: &[Word], cwd: &Cwd) -> Option<&Entry> {
        let globbed = |word: &Word| self.may_become_option(word, cwd);
        let settled = evaluates(words).is_none() && dynamic::unsettled(words, globbed).is_none();
        // A relative program is another one in another folder, and so is a script that the rule names.
        let name = words.first()?.literal()?;
        let is_relative = |name: &str| name.contains('/') && !name.starts_with(['/', '-', '~']);
        let relative = |rule: &Rule| is_relative(&name) || rule.words().any(is_relative);
        let here = cwd.0.as_deref() == Some(std::slice::from_ref(&self.start));
        if commands::covered::repositories(words).iter().any(|word| self.may_be_folder(word, cwd)) {
            return None;
        }
        let brought = self.brought(words, cwd);
        let here_ruled = |source: Source| matches!(source, Source::Project | Source::ProjectLocal | Source::Session);
        let meant = |entry: &Entry| brought.brought.is_none() || brought.may_be_ruled() && here_ruled(entry.source);
        let known = OnceCell::new();
        let placed = || known.get_or_init(|| placed(words, cwd, self.query.places, self.files)).clone();
        self.query.entries(Behavior::Allow).find(|entry| {
            matching::allows(&entry.rule, words, settled, placed)
                && (*entry.rule.specifier() == Specifier::Any || meant(entry) && (here || !relative(&entry.rule)))
        })
    }

    /// What the names in the words mean: the first that may be a program of the project, or how they are looked for. Where
    /// the words start another program, each may be its name.
    pub(super) fn brought(&self, words: &[Word], cwd: &Cwd) -> Named {
        let places = self.query.places;
        let apart = places.programs.iter().any(|folder| folder.is_relative());
        let carries = wrapper::carried(words).is_some();
        let mut all = Named::default();
        for (at, word) in words.iter().enumerate().take(if carries { words.len() } else { 1 }) {
            let Some(name) = word.literal().filter(|name| !name.contains('/') && !name.starts_with('-')) else {
                continue;
            };
            if at == 0 && self.wrappers == 0 && is_shells(&name) {
                continue;
            }
            let key = (name, if apart { cwd.clone() } else { Cwd(None) });
            let mut known = self.named.borrow_mut();
            let look = |(name, _): &(String, Cwd)| {
                self.files.spend(places.programs.len());
                places.named(name, cwd, self.files)
            };
            let named = known.entry(key).or_insert_with_key(look);
            if named.brought.is_some() {
                return named.clone();
            }
            all.open |= named.open;
        }
        all
    }

    pub(super) fn is_allowed(&self, words: &[Word], cwd: &Cwd) -> bool {
        self.allow_rule(words, cwd).is_some()
    }

    /// Whether a rule covers the command because of where its paths lead.
    pub(super) fn is_held(&self, words: &[Word], cwd: &Cwd) -> bool {
        let Some(name) = words[0].literal() else { return false };
        commands::leads_through(&name, &words[1..])
            && self.allow_rule(words, cwd).is_some_and(|entry| *entry.rule.specifier() != Specifier::Any)
    }

    pub(super) fn brings_links(&self, words: &[Word], cwd: &Cwd) -> bool {
        commands::brings_links(words, |word| {
            let paths = paths::paths(word, cwd, self.query.places, self.files);
            paths.is_some_and(|paths| paths.iter().all(|path| self.files.is_file(path)))
        })
    }
}
