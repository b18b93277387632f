//! Folders of a line: where `cd` leads, which git may take for a repository, and what their names may become.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::Behavior;
use super::super::commands;
use super::super::decide::Verdict;
use super::super::files::lexical;
use super::super::paths::{self, Cwd};
use super::super::shell::{Simple, Word};
use super::super::wrapper;
use super::Part;
use super::basis::Basis;
use super::judge::Judge;

/// Why what commands unpack in a folder may lie elsewhere, for those that were asked about.
pub(super) type Unpacked = HashMap<(Vec<Word>, Cwd), Option<String>>;

impl Judge<'_> {
    pub(super) fn change_folder(&mut self, words: &[Word], cwd: Cwd) -> (Cwd, Cwd) {
        let text = Simple::canonical(words);
        let places = self.query.places;
        let arguments = match &words[1..] {
            [first, rest @ ..] if first.literal().as_deref() == Some("--") => rest,
            all => all,
        };
        let target = match arguments {
            [] => places.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
            [one] if one.literal().as_deref() != Some("-") && !one.prefix().starts_with('-') => {
                paths::path_text(one, places)
            }
            _ => None,
        };
        let (Some(target), Some(from)) = (target, cwd.0.clone()) else {
            let verdict = Verdict::new(Behavior::Ask, "it is unknown where it goes");
            self.parts.push(Part { words: words.to_vec(), ..Part::new(text, verdict, true) });
            return (Cwd(None), Cwd(None));
        };
        let to: Vec<PathBuf> = from.iter().map(|from| lexical(&from.join(&target))).collect();
        let mut worst = Verdict::new(Behavior::Allow, "it stays in the workspace");
        for path in &to {
            if !places.inside(path, self.files) || !places.inside(&self.files.resolve(path), self.files) {
                paths::worse(
                    &mut worst,
                    Verdict::new(Behavior::Ask, format!("{} is outside the workspace", path.display())),
                );
            }
        }
        self.parts.push(Part { basis: Basis::Plain, words: words.to_vec(), ..Part::new(text, worst, true) });
        (Cwd(Some(to)), cwd)
    }

    /// Why what the command unpacks or copies may land outside: a link that leads out lies where it does so.
    pub(super) fn unpacks_out(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        let mut words = words;
        while let Some(inner) = wrapper::carried(words).and_then(|at| words.get(at..)).filter(|inner| !inner.is_empty())
        {
            words = inner;
        }
        let targets = commands::unpacked_in(words).filter(|_| commands::reads(words).is_err())?;
        let key = (words.to_vec(), cwd.clone());
        self.unpacked.borrow_mut().entry(key).or_insert_with(|| self.follows_out(words, &targets, cwd)).clone()
    }

    fn follows_out(&self, words: &[Word], targets: &[Word], cwd: &Cwd) -> Option<String> {
        let (single, places) = (words[0].literal().as_deref() == Some("cp"), self.query.places);
        let tops = match targets {
            [] => cwd.0.clone(),
            all => all
                .iter()
                .map(|word| paths::paths(word, cwd, places, self.files))
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat()),
        };
        let Some(tops) = tops else { return Some("it is unknown where it unpacks".into()) };
        let tops = tops.iter().map(|top| self.files.resolve(top)).collect();
        let Some(all) = paths::below(tops, self.files) else {
            return Some(
                "there are too many files to tell whether a link leads out: name a folder to unpack in".into(),
            );
        };
        let kept = |real: &Path| {
            !places.inside(real, self.files)
                || places.protected(real, self.files).is_some()
                || places.holds_settings(real, self.files)
        };
        // An archive takes the place of a link to a file; a copy writes through it.
        let out = |(path, link): &&(PathBuf, bool)| {
            let real = || self.files.resolve(path);
            *link && kept(&real()) && (single || !self.files.is_file(&real()))
        };
        let found = all.iter().find(out)?;
        Some(format!("{} leads to what is protected or outside, and what is unpacked follows it", found.0.display()))
    }

    /// Whether git may take the word for a repository of the project, which brings hooks of its own.
    pub(super) fn may_be_folder(&self, word: &Word, cwd: &Cwd) -> bool {
        let Some(name) = word.literal() else { return true };
        let exists = |path: &Path| self.files.is_file(path) || !self.files.names(path).is_empty();
        let below =
            |folder: &Path| ["", ".git", ".bundle"].iter().any(|end| exists(&folder.join(format!("{name}{end}"))));
        // Git starts at the top of the work tree.
        let inside = |folder: &&Path| folder.starts_with(&self.query.places.project);
        cwd.0.as_ref().is_none_or(|all| all.iter().any(|cwd| cwd.ancestors().take_while(inside).any(below)))
    }

    /// Whether a command up to here may make names that look like options: a glob is then no more than what it says.
    pub(super) fn names_options(&self) -> bool {
        self.stirred || self.parts.iter().any(|part| part.names)
    }

    /// Whether the word is a glob that may stand for an option.
    pub(super) fn may_become_option(&self, word: &Word, cwd: &Cwd) -> bool {
        self.names_options() && paths::starts_with_glob(word)
            || paths::may_become_option(word, cwd, self.query.places, self.files)
    }
}
