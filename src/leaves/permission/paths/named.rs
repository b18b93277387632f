//! What a command that may change something names: every word of it, and every part of a word, may be a path.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::commands::{left_out, plain};
use super::super::decide::{Query, Verdict, because};
use super::super::dynamic;
use super::super::files::{Files, MAX_PATH};
use super::super::places::{Places, Twin, may_be_kept, only_sources};
use super::super::rule::{Specifier, Strictness};
use super::super::shell::loose::{all_segments, may_hold_line};
use super::super::shell::{Piece, Word};
use super::super::vocabulary::Matches;
use super::super::wrapper;
use super::super::{Behavior, Mode};
use super::{Cwd, path_text, paths, too_much, worse};

/// Commands that change what their operands name.
const WRITERS: [&str; 28] = [
    "wget", "curl", "sort", "split", "perl", "gzip", "rm", "rmdir", "mv", "cp", "mkdir", "touch", "tee", "ln", "chmod",
    "chown", "chgrp", "install", "rsync", "truncate", "shred", "unlink", "dd", "sed", "patch", "tar", "unzip",
    "sponge",
];

/// Judges the paths among the words of a command that is not known to be read-only: rules about paths, protected and private
/// files. None when they stop nothing.
pub(in crate::permission) fn judge_words(
    query: &Query,
    words: &[Word],
    cwd: &Cwd,
    files: &dyn Files,
) -> Option<Verdict> {
    let name = words.first()?.known();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut worst = Verdict::new(Behavior::Allow, "");
    if let Some(verdict) = unpacks_over(&name, words, cwd, query, files) {
        worse(&mut worst, verdict);
    }
    let mut judged = HashSet::new();
    let carries = wrapper::carries(&name);
    let bases = bases(&name, words, cwd, query, files);
    if bases.len() > MAX_BASES {
        worse(&mut worst, Verdict::new(Behavior::Ask, "it names too many folders to tell where its files are"));
    }
    let bases = Cwd(Some(bases.into_iter().take(MAX_BASES).collect()));
    let rules = query.rules.entries().len();
    let is_there = |path: &Path| files.is_file(path) || !files.names(path).is_empty();
    for (at, word) in words.iter().enumerate().skip(1) {
        let told = !matches!(&*name, "curl" | "find") && dynamic::is_value(words, at);
        if told || name == "git" && left_out(word).is_some() {
            continue;
        }
        let other = dynamic::is_no_file(words, at);
        let kept = |path: &Path| takes_in(words) && may_be_kept(path) || is_made(words, at, path, cwd, files);
        if files.spend(rules + word.source.len() / 8) {
            return Some(too_much());
        }
        let text = path_text(word, query.places).unwrap_or_else(|| word.known());
        let mut parts = HashSet::new();
        // No path is longer: bash would pass it on as it is.
        if word.has_glob()
            && (text.len() > MAX_PATH
                || text
                    .split('/')
                    .any(|part| parts.insert(part) && (files.spend(8) || Places::glob_may_be_protected(part))))
        {
            worse(&mut worst, Verdict::firm(format!("{} may reach a protected file", word.source)));
        }
        // What it names now. Where nobody can look, the mode and the rules decide by the text.
        let named = if word.has_glob() { paths(word, cwd, query.places, files) } else { None };
        let last = text.rsplit('/').next().unwrap_or_default();
        if named.is_none() && word.has_glob() && cwd.0.is_none() && query.mode != Mode::Bypass && !only_sources(last) {
            worse(&mut worst, Verdict::firm(format!("it is unknown what {} names", word.source)));
        }
        for path in named.into_iter().flatten().filter(|path| judged.insert(path.clone())).collect::<Vec<_>>() {
            worse(&mut worst, judge_touched(query, &name, &path, kept(&path), files));
        }
        let read = if name == "sed" { behind_letters(&text) } else { Vec::new() };
        for text in candidates(&text).into_iter().chain(read) {
            // Another shell expands what it is given.
            let script = carries && !word.has_glob() && text.contains(['*', '?', '[']);
            let globbed = script.then(|| paths(&as_glob(&text), cwd, query.places, files)).flatten();
            let mut found = joined(&text, cwd, query);
            found.extend(globbed.into_iter().flatten());
            found.extend(joined(&text, &bases, query));
            // A copy keeps the last part of the name alone.
            found.extend(text.rsplit_once('/').iter().flat_map(|(_, name)| joined(name, &bases, query)));
            for path in found.into_iter().filter(|path| !other || is_there(path)) {
                if !judged.insert(path.clone()) {
                    continue;
                }
                worse(&mut worst, judge_touched(query, &name, &path, kept(&path), files));
            }
        }
    }
    (worst.behavior != Behavior::Allow).then_some(worst)
}

/// The text as a word of which a shell expands the globs.
fn as_glob(text: &str) -> Word {
    let piece = |c: char| if matches!(c, '*' | '?' | '[') { Piece::Glob(c) } else { Piece::Text(c.to_string()) };
    plain(text).with_pieces(text.chars().map(piece).collect())
}

/// Most folders that the other words of a command are looked for in.
const MAX_BASES: usize = 64;

/// The folders in which a command may look for what its other words name: any value of an option, as of `-C`, `-t` or
/// `--directory`, and where copies go.
fn bases(name: &str, words: &[Word], cwd: &Cwd, query: &Query, files: &dyn Files) -> Vec<PathBuf> {
    let option = |at: usize| words[at].prefix().starts_with('-');
    // Without a dash, tar's options come in one word and their values behind it.
    let bundled = name == "tar" && !option(1.min(words.len() - 1));
    let copies = matches!(name, "cp" | "mv" | "ln" | "install" | "rsync");
    let mut found: Vec<PathBuf> = Vec::new();
    for at in 1..words.len() {
        if found.len() > MAX_BASES {
            break;
        }
        if !matches!(name, "curl" | "find") && dynamic::is_value(words, at) {
            continue;
        }
        if !(option(at) || option(at - 1) || bundled || copies && at + 1 == words.len()) {
            continue;
        }
        let text = path_text(&words[at], query.places).unwrap_or_else(|| words[at].known());
        for path in candidates(&text).iter().flat_map(|text| joined(text, cwd, query)) {
            let here = || cwd.0.iter().flatten().any(|cwd| *cwd == path);
            let holds = || !files.names(&path).is_empty() || !query.places.inside(&path, files);
            if !found.contains(&path) && !here() && holds() {
                found.push(path);
            }
        }
    }
    found
}

/// Judges every word of a line that nobody understood, as a path that the command of that name is given.
pub(in crate::permission) fn judge_raw(
    query: &Query,
    name: &str,
    text: &str,
    cwd: &Path,
    files: &dyn Files,
) -> Option<Verdict> {
    let cwd = Cwd(Some(vec![cwd.to_owned()]));
    let mut worst = Verdict::new(Behavior::Allow, "");
    let mut judged = HashSet::new();
    let rules = query.rules.entries().len();
    for words in all_segments(text) {
        if files.spend((1 + rules) * words.len()) {
            return Some(too_much());
        }
        for text in words.iter().flat_map(|word| candidates(word)) {
            for path in joined(&text, &cwd, query).into_iter().filter(|path| judged.insert(path.clone())) {
                worse(&mut worst, judge_touched(query, name, &path, false, files));
            }
        }
    }
    (worst.behavior != Behavior::Allow).then_some(worst)
}

fn joined(text: &str, cwd: &Cwd, query: &Query) -> Vec<PathBuf> {
    let text = match (text.strip_prefix("~/"), &query.places.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    };
    if text.is_absolute() {
        return vec![text];
    }
    // Where nobody knows the folder, the name alone can still be a protected one.
    match &cwd.0 {
        Some(all) => all.iter().map(|cwd| cwd.join(&text)).collect(),
        None => vec![query.places.cwd.join(&text)],
    }
}

/// What in a word may be a path: itself, an option's value, the words of a line in it.
fn candidates(word: &str) -> Vec<String> {
    let mut parts = vec![word.to_owned()];
    parts.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
    parts.extend(word.split(':').map(str::to_owned));
    // The file of `-d @file`, `-F name=<file;type=…`, `:(top)file`.
    parts.extend(word.split(['@', '<', '=', ';', ',', ')']).map(|part| part.trim().to_owned()));
    // The folder that a clone makes is called as what it is cloned from, without these.
    let cloned = [".git", ".bundle"].iter().filter_map(|end| word.trim_end_matches('/').strip_suffix(end));
    parts.extend(cloned.filter_map(|name| name.rsplit(['/', ':']).next()).map(str::to_owned));
    if may_hold_line(word) {
        parts.extend(all_segments(word).into_iter().flatten());
    }
    let mut all: Vec<String> = parts.iter().flat_map(|part| glued(part)).collect();
    all.extend(parts);
    all.retain(|text| !text.is_empty() && text.len() < 4096 && !text.starts_with('-'));
    all
}

/// What commands of sed's script read and write: the name follows the letter at once.
fn behind_letters(script: &str) -> Vec<String> {
    let letters = script.match_indices(['r', 'R', 'w', 'W']).filter(|(at, _)| {
        let before = script[..*at].chars().next_back();
        before.is_none_or(|c| c.is_ascii_digit() || c.is_whitespace() || "$/;{}!|,#".contains(c))
    });
    let names = letters.map(|(at, _)| script[at + 1..].lines().next().unwrap_or_default().trim().to_owned());
    names.filter(|name| !name.is_empty() && !name.starts_with('-')).take(MAX_CUTS).collect()
}

/// Most places at which a cluster of options is cut, counted from its end: what begins before has a longer name than any that
/// is protected.
const MAX_CUTS: usize = 64;

/// What may be the value of an option in one word with it: where the options before it end, only the program knows.
fn glued(word: &str) -> impl Iterator<Item = String> {
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let end = cluster.find(['/', '.', '~']).unwrap_or(cluster.len());
    let cuts = (1..=end).filter(move |at| *at == 1 || at + MAX_CUTS > end);
    cuts.filter_map(move |at| cluster.get(at..).map(str::to_owned))
}

fn judge_touched(query: &Query, name: &str, path: &Path, kept: bool, files: &dyn Files) -> Verdict {
    for matches in [Matches::Reading, Matches::Editing] {
        let tool = query.vocabulary.tool(matches);
        for behavior in [Behavior::Deny, Behavior::Ask] {
            let ruled = query.entries(behavior).find(|entry| {
                *entry.rule.specifier() != Specifier::Any
                    && entry.rule.covers_path(tool, path, Strictness::Possible, query.places, files)
            });
            if let Some(entry) = ruled {
                // Of another command nobody knows whether it writes there.
                let behavior =
                    if matches == Matches::Editing && !WRITERS.contains(&name) { Behavior::Ask } else { behavior };
                return Verdict { behavior, reason: because(entry), firm: true };
            }
        }
    }
    if let Some(reason) = query.hidden_from_rules(path, files) {
        return Verdict::firm(reason);
    }
    // Reading what is private does not ask in this mode; writing what is protected asks in every mode.
    let secret = || query.places.private(path, files).or_else(|| query.places.twin(path, Twin::Secret, files));
    let private = || secret().filter(|_| query.mode != Mode::Bypass && !kept);
    let in_git = || query.places.runs_in_git(path, files).filter(|_| WRITERS.contains(&name));
    if let Some(reason) = query.places.protected(path, files).or_else(in_git).or_else(private) {
        if query.places.free_read(path, files) {
            return Verdict::new(Behavior::Allow, "");
        }
        return Verdict::firm(reason);
    }
    let whole = matches!(
        name,
        "rm" | "mv" | "rsync" | "chmod" | "chown" | "chgrp" | "shred" | "gzip" | "gunzip" | "bzip2" | "xz" | "zstd"
    );
    if whole && (query.places.holds_protected(path, files) || query.places.holds_settings(path, files)) {
        return Verdict::firm(format!("{} holds protected files", path.display()));
    }
    Verdict::new(Behavior::Allow, "")
}

/// Whether git takes what the words name into the repository.
fn takes_in(words: &[Word]) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal);
    text(0).as_deref() == Some("git") && matches!(text(1).as_deref(), Some("add" | "stage"))
}

/// Whether the path is a file that is not there yet and that a plain copy makes: nothing in it is shown.
fn is_made(words: &[Word], at: usize, path: &Path, cwd: &Cwd, files: &dyn Files) -> bool {
    let is = |at: usize, text: &str| words[at].literal().as_deref() == Some(text);
    let operands = (1..words.len()).filter(|at| !["-n", "-v", "-p", "-i"].iter().any(|option| is(*at, option)));
    let text = words[at].literal().filter(|text| !text.starts_with('-'));
    let named = |text: &str| cwd.0.iter().flatten().any(|cwd| cwd.join(text) == path);
    is(0, "cp")
        && at + 1 == words.len()
        && operands.count() == 2
        && text.is_some_and(|text| named(&text))
        && files.link(path).is_none()
        && !files.is_file(path)
        && files.names(path).is_empty()
}

/// Where archives and patches put what they hold, of which nobody knows the names: not over what is protected.
fn unpacks_over(name: &str, words: &[Word], cwd: &Cwd, query: &Query, files: &dyn Files) -> Option<Verdict> {
    let texts: Vec<String> = words.iter().skip(1).map(Word::known).collect();
    let short = |text: &str, letter| text.starts_with('-') && !text.starts_with("--") && text.contains(letter);
    let unpacks = match name {
        "tar" | "bsdtar" => {
            let bundle = texts.first().is_some_and(|first| !first.starts_with('-') && first.contains('x'));
            let long = |text: &String| text.starts_with("--ex") || text.starts_with("--ge");
            bundle || texts.iter().any(|text| short(text, 'x') || long(text))
        }
        "unzip" => !texts.iter().any(|text| ['l', 't', 'p', 'v', 'Z'].iter().any(|letter| short(text, *letter))),
        "patch" => !texts.iter().any(|text| text == "--dry-run"),
        "git" => {
            let told = ["--check", "--stat", "--numstat", "--summary"];
            let applies = |text: &String| text == "apply" || text == "am";
            texts.iter().any(applies) && !texts.iter().any(|text| told.contains(&text.as_str()))
        }
        "cpio" | "7z" | "unrar" => true,
        _ => false,
    };
    if !unpacks {
        return None;
    }
    let start = Cwd(cwd.0.clone().or_else(|| Some(vec![query.places.project.clone()])));
    // The last option of several counts from the one before.
    let mut folders = start.clone();
    for (at, text) in texts.iter().enumerate() {
        let own = ["--directory=", "-C", "-d"].iter().find_map(|option| text.strip_prefix(option));
        let target = match own {
            Some("") => words.get(at + 2).cloned(),
            Some(rest) => Some(plain(rest)),
            None if text == "--directory" => words.get(at + 2).cloned(),
            None => None,
        };
        if let Some(target) = target {
            folders = Cwd(paths(&target, &folders, query.places, files));
        }
    }
    let all = folders.0.or(start.0).unwrap_or_default();
    let over = all.iter().find(|folder| query.places.holds_settings(folder, files))?;
    let reason =
        format!("what it unpacks may replace protected files in {}: unpack it in another folder", over.display());
    Some(Verdict::firm(reason))
}
