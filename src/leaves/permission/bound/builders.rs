//! What builders and git run beside the line that starts them: it comes from files in the folder.

use std::path::Path;

use super::programs::{MANIFESTS, READABLE, commands_of, is_build_file};
use super::{Walk, in_name, lexical};

/// Most files of a folder that a build file includes by a glob.
const MAX_INCLUDED: usize = 256;

impl Walk {
    pub(super) fn build_files(&mut self, folder: &Path) {
        if !folder.starts_with(&self.project) {
            return;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_build_file(&entry.file_name().to_string_lossy().to_lowercase()) {
                self.build_file(&entry.path());
            }
        }
    }

    /// Binds a file that says what a builder does, with what it includes and the scripts that it names.
    pub(super) fn build_file(&mut self, path: &Path) {
        if !path.starts_with(&self.project) || !self.followed.insert(path.to_owned()) {
            return;
        }
        let (Some(content), Some(folder)) = (self.seal(path), path.parent()) else { return };
        self.included(folder, &content.bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if MANIFESTS.contains(&&*name) {
            return;
        }
        let text = commands_of(&name, &content.bytes);
        self.told.extend(text.split(|c| !in_name(c)).map(str::to_owned));
        // By its path a script is found in any folder, also among what was built.
        for word in
            text.split(|c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c)).filter(|word| word.contains('/'))
        {
            let path = lexical(&folder.join(word.trim_start_matches(['@', '-', '+'])));
            if path.starts_with(&self.project) && path.is_file() {
                self.told_script(&path);
            }
        }
    }

    /// Binds a script that a build file names, and what a shell runs of it in turn. What nobody can tell of it is the
    /// builder's matter, which is stated.
    pub(super) fn told_script(&mut self, path: &Path) {
        if !self.followed.insert(path.to_owned()) {
            return;
        }
        let Some(content) = self.seal(path) else { return };
        let by_name = |word: &str| READABLE.contains(&word);
        let ending = path.extension().and_then(|ending| ending.to_str());
        if let Ok(text) = String::from_utf8(content.bytes)
            && match text.strip_prefix("#!").and_then(|text| text.lines().next()) {
                Some(first) => first.split([' ', '/', '\t']).any(by_name),
                None => ending.is_none_or(by_name),
            }
        {
            let all = self.all;
            self.line(&text, 1);
            self.all = all;
        }
    }

    /// Binds what a build file names after `include` or `import`.
    fn included(&mut self, folder: &Path, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            let mut words = line.split_ascii_whitespace();
            if words.next().is_some_and(|word| matches!(word.trim_start_matches(['-', 's']), "include" | "import")) {
                for word in words.map(|word| word.trim_matches(['\'', '"'])) {
                    self.build_file(&lexical(&folder.join(word)));
                    // Only the builder knows what a variable or a glob is: whatever a glob may be counts.
                    if let Some((before, _)) = word.split_once(['$', '*', '?', '[']) {
                        self.all = true;
                        let inside = lexical(&folder.join(before.rsplit_once('/').map_or("", |(inside, _)| inside)));
                        let ending = word.rsplit(['*', '?', ']']).next().unwrap_or_default().trim_end_matches(')');
                        let named = |path: &Path| path.to_str().is_some_and(|path| path.ends_with(ending));
                        let entries =
                            std::fs::read_dir(inside).into_iter().flatten().flatten().map(|entry| entry.path());
                        let globbed = !word.starts_with('$');
                        for path in entries.filter(|path| globbed && named(path)).take(MAX_INCLUDED) {
                            self.build_file(&path);
                        }
                    }
                }
            }
        }
    }

    /// What git runs beside what it was asked for. Its own folder nobody writes unasked, but what the hooks there run.
    pub(super) fn git_hooks(&mut self, depth: usize) {
        let git = self.project.join(".git");
        let config = std::fs::read_to_string(git.join("config")).unwrap_or_default();
        self.all |= config.to_lowercase().contains("hookspath");
        for hook in std::fs::read_dir(git.join("hooks")).into_iter().flatten().flatten() {
            let path = hook.path();
            if path.extension().is_none_or(|ending| ending != "sample")
                && let Some(name) = path.to_str()
            {
                self.script(name, None, depth + 1);
            }
        }
    }
}
