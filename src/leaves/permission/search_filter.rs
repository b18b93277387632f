//! What one search may show: files that a rule forbids or asks for, and private ones, stay out of its results. And what a
//! search of the shell shows despite its name.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::files::{Disk, Files};
use super::glob::{self, Case};
use super::places::{Places, configures_git, holds_keys};
use super::rule::{Entry, Strictness};
use super::vocabulary::Shows;
use super::{Access, Behavior, Mode, Query};

/// The files that an admitted call may show of what lies below its root. By default all.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    tool: String,
    /// Rules that keep files back. One that covers the root itself is not part of them: it was asked about.
    stops: Vec<Entry>,
    places: Places,
    /// Whether what is private stays out as well.
    private: bool,
    /// Whether environment files do.
    keys: bool,
    /// These by other names.
    twins: HashSet<(u64, u64)>,
}

impl Sight {
    /// What the call may show; everything for a call that is neither a search nor a listing.
    pub fn of(query: &Query, files: &dyn Files) -> Sight {
        let shows = query.vocabulary.of(query.tool).shows;
        let root = match query.access {
            Access::Search { root } => root,
            Access::Read { path } if shows.is_some() => path,
            _ => return Sight::default(),
        };
        let places = query.places;
        let covers =
            |entry: &Entry, path: &Path| entry.rule.covers_path(query.tool, path, Strictness::Possible, places, files);
        let stops = query.rules.entries().iter().filter(|entry| {
            entry.behavior != Behavior::Allow
                && entry.rule.governs(query.tool)
                && !covers(entry, root)
                && !covers(entry, &root.join("x"))
        });
        let keys = query.mode != Mode::Bypass && shows == Some(Shows::Lines) && !holds_keys(root);
        Sight {
            keys,
            twins: if keys { places.twins(files) } else { HashSet::new() },
            tool: query.tool.to_owned(),
            stops: stops.cloned().collect(),
            places: places.clone(),
            private: query.mode != Mode::Bypass
                && places.private(root, files).is_none()
                && places.reaches_private(root, files),
        }
    }

    /// Whether the path may be one of the results.
    pub fn shows(&self, path: &Path) -> bool {
        self.shows_in(path, &Disk)
    }

    fn shows_in(&self, path: &Path, files: &dyn Files) -> bool {
        let twin = || !self.twins.is_empty() && files.shared(path).is_some_and(|own| self.twins.contains(&own));
        if self.keys && (holds_keys(path) || configures_git(path) && files.keeps_token(path) || twin()) {
            return false;
        }
        if self.stops.is_empty() && !self.private || self.places.free_read(path, files) {
            return true;
        }
        let stopped = self
            .stops
            .iter()
            .any(|entry| entry.rule.covers_path(&self.tool, path, Strictness::Possible, &self.places, files));
        !(stopped || self.private && self.places.private(path, files).is_some())
    }
}

/// What a search shows though its name starts with a dot, since an ignore file says so.
#[derive(Debug, Default)]
pub(super) struct ShownAgain {
    patterns: Vec<String>,
    /// Names of folders that nobody searches.
    ignored: BTreeSet<String>,
    /// Hidden folders that it enters. What is hidden in them counts as shown.
    entered: Vec<PathBuf>,
}

impl ShownAgain {
    /// By the ignore files in the folders that are searched, and in all above: they count in these as well.
    pub(super) fn of(tops: &[PathBuf], ignores: bool, files: &dyn Files) -> ShownAgain {
        let mut again = ShownAgain::default();
        let folders: BTreeSet<&Path> = tops.iter().flat_map(|top| top.ancestors()).collect();
        folders.iter().for_each(|folder| again.enter(folder, files));
        // Outside of a repository the file means nothing. One in a folder speaks of what lies below it alone.
        let above = |folder: &&&Path| tops.iter().all(|top| top.starts_with(folder));
        let tops_of_git = |folder: &&&Path| files.names(folder).iter().any(|name| name == ".git");
        for folder in folders.iter().filter(|_| ignores).filter(above).filter(tops_of_git) {
            again.ignored.extend(files.ignored(&folder.join(".gitignore")));
        }
        again
    }

    fn enter(&mut self, folder: &Path, files: &dyn Files) {
        for name in [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"].map(|name| folder.join(name)) {
            self.patterns.extend(files.negated(&name));
        }
    }

    /// Whether the search passes over the path; what it enters has ignore files of its own. Folders come before what is in
    /// them.
    pub(super) fn passes_over(&mut self, path: &Path, link: bool, files: &dyn Files) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = name.starts_with('.');
        let inside = || self.entered.iter().any(|folder| path.starts_with(folder));
        if hidden && !inside() && !self.patterns.iter().any(|pattern| may_name(pattern, &name)) {
            return true;
        }
        if !link && !files.is_file(path) {
            // What is shown again may lie in it.
            if self.patterns.is_empty() && self.ignored.contains(&*name) {
                return true;
            }
            self.enter(path, files);
            self.entered.extend(hidden.then(|| path.to_owned()));
        }
        false
    }
}

/// Whether the pattern may stand for the name. Of what is not plain anything is believed: braces, classes, escapes.
fn may_name(pattern: &str, name: &str) -> bool {
    let last = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    !last.chars().all(|c| c.is_alphanumeric() || "._-*".contains(c)) || glob::may_fit(last, name, Case::Ignored)
}

#[cfg(test)]
mod tests {
    use super::super::files::fake::Table;
    use super::super::{RuleSet, Source, decide};
    use super::*;
    use crate::sandbox::Level;

    #[test]
    fn what_a_search_may_show() {
        let files = Table(&[("/p/link", "/p/secrets/key"), ("/p/.env", "/p/.env")]);
        for (tool, root, mode, path, want) in [
            ("Grep", "/p", Mode::Default, "/p/src/a.rs", true),
            ("Grep", "/p", Mode::Default, "/p/.env", false),
            ("Grep", "/p", Mode::Default, "/p/twin/hard.txt", false),
            ("Grep", "/p", Mode::Bypass, "/p/twin/hard.txt", true),
            ("Grep", "/p", Mode::Default, "/p/cloned/.git/config", false),
            ("Grep", "/p", Mode::Default, "/p/.git/config", true),
            ("Grep", "/p", Mode::Default, "/p/sub/.ENV", false),
            ("Glob", "/p", Mode::Bypass, "/p/.env", false),
            ("LS", "/p", Mode::Default, "/p/.env", false),
            ("Grep", "/p", Mode::Default, "/p/.env.local", false),
            ("Glob", "/p", Mode::Default, "/p/.env.local", true),
            ("Grep", "/p", Mode::Bypass, "/p/.env.local", true),
            ("Grep", "/p", Mode::Default, "/p/secrets/key", false),
            ("Grep", "/p", Mode::Default, "/p/link", false),
            // The question about the folder was answered.
            ("Grep", "/p/asked", Mode::Default, "/p/asked/a", true),
            ("Grep", "/p/asked", Mode::Default, "/p/asked/.env", false),
            ("Grep", "/p", Mode::Default, "/p/asked/a", false),
            ("Grep", "/p", Mode::Default, "/p/only-grep/a", false),
            ("Glob", "/p", Mode::Default, "/p/only-grep/a", true),
            ("Grep", "/home/u", Mode::Default, "/home/u/.claude/cocode/trust.json", false),
            ("Grep", "/home/u", Mode::Bypass, "/home/u/.claude/cocode/trust.json", true),
            ("Grep", "/home/u", Mode::Default, "/home/u/notes", true),
            ("Read", "/p/.env", Mode::Default, "/p/.env", true),
        ] {
            let mut rules = RuleSet::default();
            for (behavior, rule) in [
                (Behavior::Deny, "Read(.env)"),
                (Behavior::Deny, "Read(/secrets/**)"),
                (Behavior::Ask, "Read(/asked/**)"),
                (Behavior::Deny, "Grep(/only-grep/**)"),
                (Behavior::Allow, "Read(/src/**)"),
            ] {
                rules.add(behavior, rule.parse().unwrap(), Source::User);
            }
            let (places, root) = (Places::for_tests(), root.into());
            let access = if tool == "LS" { Access::Read { path: root } } else { Access::Search { root } };
            let access = if tool == "Read" { Access::Read { path: path.into() } } else { access };
            let query = Query {
                tool,
                access: &access,
                mode,
                rules: &rules,
                places: &places,
                vocabulary: crate::permission::vocabulary::TOOLS,
                level: Level::Kernel,
            };
            let sight = Sight::of(&query, &files);
            assert_eq!(sight.shows_in(Path::new(path), &files), want, "{tool} {mode} {path}");
        }
    }

    /// What ripgrep shows, by its own walk, is asked about.
    #[test]
    fn what_ignore_files_show_again_is_searched() {
        let exclude = ".git/info/exclude";
        for (ignore, patterns, secret, want) in [
            (".ignore", "", ".env", Behavior::Allow),
            (".ignore", "!.env", ".env", Behavior::Ask),
            (".ignore", "!.aws", ".aws/credentials", Behavior::Ask),
            (".ignore", "!.ssh", ".ssh/id_rsa", Behavior::Ask),
            (".ignore", "!.h", ".h/.env", Behavior::Ask),
            (".ignore", "!.h", ".h/a/.b/.env", Behavior::Ask),
            (".ignore", "!.config/", ".config/credentials.json", Behavior::Ask),
            (".rgignore", "*\n!.h/**\n!.h", ".h/key.pem", Behavior::Ask),
            (".ignore", "!.{env,x}", ".env", Behavior::Ask),
            (".gitignore", "!.en[v]", ".env", Behavior::Ask),
            (".ignore", "!.\\env", ".env", Behavior::Ask),
            (".ignore", "\u{feff}!.env", ".env", Behavior::Ask),
            ("sub/.ignore", "!.env", "sub/.env", Behavior::Ask),
            (exclude, "!.env", ".env", Behavior::Ask),
            ("sub/.git/info/exclude", "!.env", "sub/.env", Behavior::Ask),
            ("real/info/exclude", "!.env", ".env", Behavior::Ask),
            (".ignore", "!.github", ".env", Behavior::Allow),
            (".gitignore", "vendor/", "sub/vendor/key.pem", Behavior::Allow),
            (".gitignore", "vendor/\n!x", "vendor/key.pem", Behavior::Ask),
            ("sub/.gitignore", "vendor/", "vendor/key.pem", Behavior::Ask),
            (".gitignore", "!.gitkeep\n!.vscode/settings.json", ".vscode/.env", Behavior::Allow),
            (".ignore", "# !.env\n.env", ".env", Behavior::Allow),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            match ignore.starts_with("real/") {
                true => write(".git", "gitdir: real\n"),
                false => write(".git/HEAD", ""),
            }
            write(ignore, patterns);
            write(secret, "S3C");
            let places = Places { project: root.clone(), cwd: root.clone(), ..Places::default() };
            let access = Access::Shell { command: "rg S3C".into(), cwd: root.clone() };
            let rules = RuleSet::default();
            let query = Query {
                tool: "Bash",
                access: &access,
                mode: Mode::Default,
                rules: &rules,
                places: &places,
                vocabulary: crate::permission::vocabulary::TOOLS,
                level: Level::None,
            };
            let decision = decide(&query, &Disk);
            assert_eq!(decision.behavior, want, "{ignore} {patterns:?} {secret}: {decision:?}");
            let mut walked = ignore::WalkBuilder::new(&root).build();
            let shown = walked.any(|entry| entry.is_ok_and(|entry| entry.path() == root.join(secret)));
            assert!(!shown || want == Behavior::Ask, "{ignore} {patterns:?} {secret}");
        }
    }
}
