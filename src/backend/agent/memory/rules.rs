//! `.claude/rules/**/*.md`: instructions in parts. A rule with `paths` comes with the first file that they match, every other
//! one with its folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::stdx::frontmatter::{Frontmatter, Taken};
use crate::stdx::regular;

/// Where a folder has its rules.
const FOLDER: &str = ".claude/rules";
/// How deep rules may lie.
const DEPTH: usize = 8;
/// Most rules of one folder; the rest is left out.
const MOST: usize = 256;
/// Most bytes of a rule that are looked at for its `paths`.
const HEAD: u64 = 64 << 10;

/// The folder of the rules of `folder`; `home` is that of the user's own memory.
pub(super) fn folder_of(folder: &Path, home: Option<&Path>) -> PathBuf {
    if home == Some(folder) { folder.join("rules") } else { folder.join(FOLDER) }
}

/// The folder of rules that a rule lies in; None where the path is not one of a rule.
pub(super) fn around<'a>(path: &'a Path, home: Option<&Path>) -> Option<&'a Path> {
    let own = home.map(|home| home.join("rules"));
    path.ancestors().skip(1).find(|folder| folder.ends_with(FOLDER) || own.as_deref() == Some(*folder))
}

/// Every rule below a folder, in the order of their paths. A folder that a link leads to counts once.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    walk(folder, 0, &mut seen, &mut found);
    found
}

fn walk(folder: &Path, depth: usize, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    if depth > DEPTH || !folder.canonicalize().is_ok_and(|real| seen.insert(real)) {
        return;
    }
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if found.len() >= MOST {
            return;
        }
        if path.is_dir() {
            walk(&path, depth + 1, seen, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// Which files a rule is about: patterns relative to the folder that it belongs to. None: it is always about something.
pub(super) fn scope(rule: &Path) -> Option<Vec<String>> {
    let bytes = regular::read(rule, HEAD).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let head = Frontmatter::read(&text);
    let patterns = Taken::Leniently.names(&head.get("paths")?.value, &mut Vec::new());
    // `**` alone means every file.
    (!patterns.is_empty() && !patterns.iter().any(|pattern| matches!(pattern.as_str(), "**" | "**/*")))
        .then_some(patterns)
}

/// The rule without its frontmatter.
pub(super) fn body(text: &str) -> &str {
    &text[Frontmatter::read(text).body]
}

/// Patterns over paths; those that are not valid match nothing.
pub(super) fn patterns<'a>(patterns: impl IntoIterator<Item = &'a String>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
        // One that is too large for the regex engine fails here; the others still count.
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build()
            && GlobSet::builder().add(glob.clone()).build().is_ok()
        {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// Whether patterns mean a file, or a folder around it; `file` is relative to where they begin.
pub(super) fn mean(scope: &[String], file: &Path) -> bool {
    let set = patterns(scope);
    file.ancestors().filter(|path| !path.as_os_str().is_empty()).any(|path| set.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;
    use super::super::{Loader, Whose};
    use super::*;

    /// What is loaded at the start, and then with each of the files.
    fn check(files: &[(&str, &str)], excluded: &[&str], read: &[&str], want: &[&[&str]]) {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                None => std::fs::write(path, text).unwrap(),
            }
        }
        let project = base.join("p");
        let names = ["AGENTS.md", "CLAUDE.md"].map(str::to_owned).to_vec();
        let excluded = excluded.iter().map(|text| text.replace("BASE", base.to_str().unwrap())).collect();
        let mut loader = Loader::new(names, Some(base.join("home/.claude")), project.clone()).without(excluded);
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        let named = |memory: super::super::Memory| -> Vec<String> {
            let name = |path: &Path| path.strip_prefix(&base).unwrap().to_string_lossy().into_owned();
            let asked = memory.asked.iter().map(|asked| format!("? {}", name(&asked.path)));
            memory.files.iter().map(|file| name(&file.path)).chain(asked).collect()
        };
        let mut got = vec![named(loader.start(&project, &judge))];
        got.extend(read.iter().map(|file| named(loader.below(&project.join(file), &judge))));
        assert_eq!(got, want, "{files:?}");
    }

    #[test]
    fn rules_come_with_their_folder_or_with_a_file_that_they_mean() {
        check(
            &[
                ("home/.claude/rules/mine.md", "always"),
                ("home/.claude/rules/rust.md", "---\npaths: '**/*.rs'\n---\nu"),
                ("p/CLAUDE.md", "c"),
                ("p/.claude/rules/style.md", "---\ndescription: x\n---\nstyle"),
                ("p/.claude/rules/api/rest.md", "---\npaths:\n  - \"src/api/**/*.{ts,tsx}\"\n  - docs\n---\nrest"),
                ("p/.claude/rules/notes.txt", "no"),
                ("p/sub/.claude/rules/deep.md", "deep"),
                ("p/.claude/rules/top.md", "---\npaths: \"*.md\"\n---\ntop"),
            ],
            &[],
            &["src/main.ts", "src/api/v1/a.tsx", "src/api/b.ts", "docs/x/y", "sub/a.rs", "sub/b.md", "README.md"],
            &[
                &["home/.claude/rules/mine.md", "p/CLAUDE.md", "p/.claude/rules/style.md"],
                &[],
                &["p/.claude/rules/api/rest.md"],
                &[],
                &[],
                &["p/sub/.claude/rules/deep.md", "home/.claude/rules/rust.md"],
                &[],
                &["p/.claude/rules/top.md"],
            ],
        );
    }

    #[test]
    fn a_rule_is_asked_about_and_left_out_like_any_memory_file() {
        check(
            &[
                ("elsewhere/shared.md", "shared"),
                ("p/.claude/rules/link.md", "-> ../../../elsewhere/shared.md"),
                ("p/.claude/rules/scoped.md", "-> ../../../elsewhere/scoped.md"),
                ("elsewhere/scoped.md", "---\npaths: a.rs\n---\nscoped"),
                ("p/.claude/rules/loop", "-> ."),
                ("AGENTS.md", "above"),
                (".claude/rules/above.md", "above"),
            ],
            &[],
            &["b.rs", "a.rs"],
            &[
                &["AGENTS.md", ".claude/rules/above.md", "? p/.claude/rules/link.md"],
                &[],
                &["? p/.claude/rules/scoped.md"],
            ],
        );
    }

    #[test]
    fn an_override_takes_the_place_of_its_file_and_what_is_excluded_stays_out() {
        check(
            &[
                ("p/AGENTS.md", "shared"),
                ("p/AGENTS.override.md", "mine"),
                ("p/CLAUDE.md", "c @vendor/notes.md"),
                ("p/vendor/notes.md", "n"),
                ("p/vendor/x/CLAUDE.md", "v"),
                ("p/empty/AGENTS.md", "kept"),
                ("p/empty/AGENTS.override.md", " \n"),
                ("p/.claude/rules/out.md", "out"),
            ],
            &["**/vendor/**/CLAUDE.md", "BASE/p/.claude/rules/**", "[broken"],
            &["vendor/x/a.rs", "empty/a"],
            &[&["p/AGENTS.override.md", "p/CLAUDE.md", "p/vendor/notes.md"], &[], &["p/empty/AGENTS.md"]],
        );
    }

    #[test]
    fn the_model_reads_a_rule_without_its_head() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(project.join(FOLDER)).unwrap();
        std::fs::write(project.join(FOLDER).join("a.md"), "---\npaths: src/**\n---\n\nUse tabs.\n").unwrap();
        let mut loader = Loader::new(Vec::new(), None, project.clone());
        let judge = |path: &Path, whose: Whose| judged(path, &project, whose);
        assert!(loader.start(&project, &judge).files.is_empty());
        let memory = loader.below(&project.join("src/x.rs"), &judge);
        assert_eq!(memory.files[0].text.trim(), "Use tabs.");
    }
}
