//! Which rule allows a command, and what that says of where the line leads by then.

use std::cell::OnceCell;
use std::path::Path;

use super::super::commands::starters::{self, Inner, Kind};
use super::super::commands::{self, Runs};
use super::super::decide::{Verdict, because};
use super::super::dynamic;
use super::super::evaluate::{evaluates, is_shells};
use super::super::files::lexical;
use super::super::matching;
use super::super::paths::{self, Cwd};
use super::super::places::Named;
use super::super::rule::{Entry, Rule, Source, Specifier};
use super::super::shell::Word;
use super::super::wrapper;
use super::super::{Behavior, Mode};
use super::fed;
use super::git;
use super::input;
use super::judge::Judge;
use super::placed::placed;
use super::unnamed::Unnamed;

/// Where only programs of the system are.
const SYSTEM: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

impl Judge<'_> {
    pub(super) fn allow_rule(&self, words: &[Word], cwd: &Cwd) -> Option<&Entry> {
        let globbed = |word: &Word| self.may_become_option(word, cwd);
        let settled = evaluates(words).is_none() && dynamic::unsettled(words, globbed).is_none();
        let settled = settled && self.unknown().revealed(words).is_none();
        let settled = settled && !self.unknown().may_open_secret(words, cwd);
        // A relative program is another one in another folder, and so is a script that the rule names.
        let name = words.first()?.literal()?;
        let is_relative = |name: &str| name.contains('/') && !name.starts_with(['/', '-', '~']);
        let relative = |rule: &Rule| is_relative(&name) || rule.words().any(is_relative);
        let at_top = self.in_folder(cwd, |folder| folder == self.query.places.project);
        let owned = OnceCell::new();
        let owned = || *owned.get_or_init(|| self.is_owned(words, cwd));
        let fits = |rule: &Rule| (at_top || !relative(rule)) && owned();
        if commands::covered::repositories(words).iter().any(|word| self.may_be_folder(word, cwd)) {
            return None;
        }
        let brought = self.brought(words, cwd);
        let here_ruled = |source: Source| matches!(source, Source::Project | Source::ProjectLocal | Source::Session);
        let meant = |entry: &Entry| brought.brought.is_none() || brought.may_be_ruled() && here_ruled(entry.source);
        // A rule for all folders thinks of no programs that this repository names.
        let obeys = OnceCell::new();
        let obeys = || obeys.get_or_init(|| self.obeys(words, cwd)).is_some();
        let hooked = OnceCell::new();
        let hooked = || hooked.get_or_init(|| self.hooked(words, cwd)).is_some();
        let everywhere = |source: Source| matches!(source, Source::Managed | Source::User | Source::Config);
        let apart = |entry: &Entry| here_ruled(entry.source) || !(obeys() || everywhere(entry.source) && hooked());
        let stays = || self.unpacks_out(words, cwd).is_none();
        let known = OnceCell::new();
        let placed = || known.get_or_init(|| placed(words, cwd, self.query.places, self.files)).clone();
        let carries = OnceCell::new();
        let named =
            |rule: &Rule| carries.get_or_init(|| self.may_carry(words)).is_none_or(|at| rule.words().count() > at);
        let unknown = OnceCell::new();
        let told = || !unknown.get_or_init(|| input::runs_unknown(self, words));
        self.query.entries(Behavior::Allow).find(|entry| {
            matching::allows(&entry.rule, words, settled, placed)
                && (*entry.rule.specifier() == Specifier::Any
                    || told() && named(&entry.rule) && meant(entry) && fits(&entry.rule) && apart(entry) && stays())
        })
    }

    /// What speaks against a command that may do more than read, whatever rules allow.
    pub(super) fn stopped(&self, words: &[Word], cwd: &Cwd) -> Option<Verdict> {
        let opened = if self.streams.are_named(words) { self.streams.all() } else { &[] };
        let named = paths::judge_words(self.query, &[words, opened].concat(), cwd, self.files);
        let stops = named.into_iter().chain(input::judge_text(self, words, cwd));
        if let Some(verdict) = stops.max_by_key(|verdict| (verdict.behavior, verdict.firm)) {
            return Some(verdict);
        }
        if let Some(reason) = self.unknown().may_be_forbidden(words) {
            return Some(Verdict::firm(reason));
        }
        let shows = || {
            let folders = git::started(words, &[]).map(|inner| self.entered(&inner, cwd));
            Some((git::may_show(words)?, folders?))
        };
        let searches = || Some((commands::searches(words)?, cwd.clone()));
        for (reads, cwd) in shows().into_iter().chain(searches()) {
            let verdict = paths::judge_reads(self.query, &reads, fed::shown(words), &cwd, self.files);
            if verdict.firm || verdict.behavior == Behavior::Deny {
                return Some(verdict);
            }
        }
        let gathers = |inner: Vec<Word>| {
            let gathered = commands::gathered(&inner)?;
            paths::judge_gathered(self.query, &gathered, &self.entered(&inner, cwd), self.files)
        };
        if let Some(verdict) = git::inner(words).and_then(gathers) {
            return Some(verdict);
        }
        if let Some(reason) = (Unnamed { query: self.query, files: self.files }).reaches_ruled(words, cwd) {
            return Some(Verdict::firm(reason));
        }
        if self.query.mode != Mode::Bypass && self.shows_account(words, cwd) {
            return Some(Verdict::firm("it shows the address of a remote with the account or token in it"));
        }
        let unfinished = || {
            let inner = git::started(words, &[]).filter(|inner| git::continues(inner))?;
            let folders = self.entered(&inner, cwd).0;
            folders.into_iter().flatten().find_map(|folder| self.files.unfinished(&folder).err())
        };
        if let Some(reason) = (self.query.mode != Mode::Bypass).then(unfinished).flatten() {
            return Some(Verdict::firm(reason));
        }
        let unfit = git::unfit(self.query, words, cwd, self.files);
        unfit.filter(|_| self.query.mode != Mode::Bypass).map(Verdict::firm)
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

    /// The first word that names a program, behind one of which nobody knows whether it runs its words: `setarch`, `prlimit` and
    /// many others do.
    fn may_carry(&self, words: &[Word]) -> Option<usize> {
        let harmless = |name: &str| matches!(name, "test" | "[") || dynamic::is_inert(name);
        let is_program = |name: &String| {
            let mut folders = self.query.places.programs.iter();
            !name.contains('/') && !harmless(name) && folders.any(|folder| self.files.runs(&folder.join(name)))
        };
        let known: Vec<String> = words.iter().map(Word::known).collect();
        let name = known[0].rsplit('/').next().unwrap_or_default();
        if let Some((Kind::Tool, Inner::At(at))) = starters::inner(name, &known[1..]) {
            // A program of the system is not one of the project's.
            let inner = &known[at + 1..];
            let has = |folder: &str| self.files.runs(&Path::new(folder).join(&inner[0]));
            let odd = commands::danger::is_undescribed(inner) && !inner[0].contains('/');
            return (odd && SYSTEM.iter().any(|folder| has(folder))).then_some(at + 1);
        }
        if !commands::danger::is_undescribed(&known) {
            return None;
        }
        self.files.spend(self.query.places.programs.len());
        words.iter().skip(1).position(|word| word.literal().is_some_and(|name| is_program(&name))).map(|at| at + 1)
    }

    /// Whether what the command runs by itself, wherever it starts, is the project's.
    fn is_owned(&self, words: &[Word], cwd: &Cwd) -> bool {
        match commands::runs_of_folder(words) {
            Runs::Nothing => true,
            Runs::Hooks => self.in_folder(&self.entered(words, cwd), |folder| self.is_of_repository(folder)),
            Runs::Code => self.in_folder(cwd, |folder| self.is_of_project(folder)),
        }
    }

    /// Where git starts, behind its options for that.
    pub(super) fn entered(&self, words: &[Word], cwd: &Cwd) -> Cwd {
        let is_value = |at: &usize| words[at - 1].known() == "-C";
        let own = (1..words.len()).take_while(|at| words[*at].prefix().starts_with('-') || is_value(at));
        own.filter(is_value)
            .fold(cwd.clone(), |cwd, at| Cwd(paths::paths(&words[at], &cwd, self.query.places, self.files)))
    }

    /// Whether git would show the address of a remote that holds an account.
    fn shows_account(&self, words: &[Word], cwd: &Cwd) -> bool {
        let Some(words) = git::inner(words).filter(|words| git::tells_addresses(words)) else { return false };
        let user = self.query.places.git_user();
        let folders = self.entered(&words, cwd).0;
        folders.is_none_or(|folders| folders.iter().any(|folder| self.files.names_account(folder, user)))
    }

    /// What git would obey in the repository where it starts, beside its own hooks.
    pub(super) fn obeys(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        let Some(folders) = self.entered(&git::started(words, &[])?, cwd).0 else {
            return Some("it is unknown which folder git starts in".into());
        };
        folders.iter().try_for_each(|folder| self.files.repository_to_change(folder)).err()
    }

    /// The hook that git may run where it changes something, if nobody agreed to it.
    pub(super) fn hooked(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        let words = git::runs_hooks(words)?;
        let Some(folders) = self.entered(&words, cwd).0 else {
            return Some("it is unknown which folder git starts in".into());
        };
        let places = self.query.places;
        folders.iter().find_map(|folder| places.git_hooks.strange(folder, places.git_user(), self.files))
    }

    /// Why a rule that covers the command in the project's folder does not cover it here.
    pub(super) fn elsewhere(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        let project = &self.query.places.project;
        if self.in_folder(cwd, |folder| folder == project) {
            return None;
        }
        let entry = self.allow_rule(words, &Cwd(Some(vec![project.clone()])))?;
        if cwd.0.is_none() {
            return Some(format!(
                "it is unknown which folder it starts in, and {} is for the project's",
                because(entry)
            ));
        }
        Some(format!("{} is for the project's folder and what git tracks below it", because(entry)))
    }

    /// What of the command a rule for the same command does not cover.
    pub(super) fn beyond(&self, words: &[Word], cwd: &Cwd) -> Option<String> {
        let carries = self.may_carry(words);
        self.query.entries(Behavior::Allow).find_map(|entry| {
            let placed = || placed(words, cwd, self.query.places, self.files);
            if let Some(at) = carries.filter(|_| matching::allows(&entry.rule, words, true, placed)) {
                let (own, inner) = (words[0].known(), words[at].known());
                return Some(format!(
                    "{own} may run the words behind it, and {} does not name {inner}",
                    because(entry)
                ));
            }
            let beyond = matching::beyond(&entry.rule, words, placed)?;
            Some(format!("{} does not cover {beyond}", because(entry)))
        })
    }

    /// Whether the command starts in such folders, whichever of those it is.
    fn in_folder(&self, cwd: &Cwd, fits: impl Fn(&Path) -> bool) -> bool {
        cwd.0.as_ref().is_some_and(|all| all.iter().all(|folder| fits(&lexical(folder))))
    }

    /// Whether the folder is one for which rules are given: the project's, or one below it of which git tracks something, so
    /// that it is neither foreign nor made meanwhile.
    fn is_of_project(&self, folder: &Path) -> bool {
        let (real, top) = (self.files.resolve(folder), self.files.resolve(&self.query.places.project));
        let tracks = || self.files.tracked(&top).is_some_and(|all| all.iter().any(|path| path.starts_with(&real)));
        real == top || self.is_of_repository(folder) && tracks()
    }

    /// Whether the folder is in the project's own repository, and not in another one below it.
    fn is_of_repository(&self, folder: &Path) -> bool {
        let (real, top) = (self.files.resolve(folder), self.files.resolve(&self.query.places.project));
        let foreign = |folder: &Path| {
            let git = folder.join(".git");
            self.files.is_file(&git) || self.files.link(&git).is_some() || !self.files.names(&git).is_empty()
        };
        real.starts_with(&top) && !real.ancestors().take_while(|above| *above != top).any(foreign)
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
