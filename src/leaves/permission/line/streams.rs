//! Redirections: what a line opens for its commands, and which files come to be behind `/dev/stdin` and its like.

use std::path::{Path, PathBuf};

use super::super::Behavior;
use super::super::commands;
use super::super::decide::{Query, Verdict, read, write};
use super::super::edit::Edits;
use super::super::files::{Files, lexical};
use super::super::paths::{self, Cwd};
use super::super::places::in_real_folder;
use super::super::shell::{Node, Redirect, RedirectKind, Word};
use super::super::vocabulary::Matches;
use super::Part;
use super::basis::Basis;

/// Everything that the redirections of a line open, whichever command they belong to: functions are called elsewhere than
/// they are defined, and `exec` redirects all that follows.
#[derive(Debug, Default)]
pub(super) struct Streams {
    files: Vec<Word>,
    /// Of each standard descriptor, whether one of the files may be behind it.
    opened: [bool; 3],
    /// The line may change its folder, so that nobody knows where a relative path of it begins.
    moves: bool,
}

impl Streams {
    pub(super) fn of(node: &Node) -> Streams {
        let mut redirects: Vec<Redirect> = Vec::new();
        node.for_each_redirect(&mut |redirect| redirects.push(redirect.clone()));
        let mut streams = Streams { moves: paths::moves(node), ..Streams::default() };
        let mut copies: Vec<(Option<u32>, usize)> = Vec::new();
        for redirect in redirects {
            let literal = redirect.target.literal();
            let named = literal.as_deref().map(Path::new);
            match redirect.kind {
                RedirectKind::Data => {}
                RedirectKind::Duplicate => {
                    let number = literal.and_then(|text| text.trim_end_matches('-').parse().ok());
                    copies.extend(number.map(|from| (redirect.fd, from)));
                }
                RedirectKind::Read | RedirectKind::Write | RedirectKind::ReadWrite => {
                    match named.and_then(descriptor) {
                        Some(from) => copies.push((redirect.fd, from)),
                        None if named == Some(Path::new("/dev/null")) => {}
                        None => {
                            streams.open(redirect.fd);
                            streams.files.push(redirect.target);
                        }
                    }
                }
            }
        }
        // In any order: a copy of a copy is found by the third time.
        for _ in 0..3 {
            for (fd, from) in &copies {
                if streams.opened.get(*from).is_none_or(|opened| *opened) {
                    streams.open(*fd);
                }
            }
        }
        streams
    }

    fn open(&mut self, fd: Option<u32>) {
        for (at, opened) in self.opened.iter_mut().enumerate() {
            *opened |= fd.map_or(at > 0, |fd| fd as usize == at);
        }
    }

    /// What the redirection opens; None where it opens nothing.
    pub(super) fn judge(
        &self,
        redirect: &Redirect,
        query: &Query,
        edits: &Edits,
        cwd: &Cwd,
        files: &dyn Files,
    ) -> Option<Part> {
        let part = |text, verdict, read_only| Some(Part::new(text, verdict, read_only));
        let target = &redirect.target;
        let writes = match redirect.kind {
            // Others may be open for what the shell around the line reports.
            RedirectKind::Duplicate if !matches!(target.literal().as_deref(), Some("0" | "1" | "2" | "-" | "")) => {
                let reason = "it writes to an open file of the shell";
                return part(format!(">&{}", target.source), Verdict::new(Behavior::Ask, reason), false);
            }
            RedirectKind::Duplicate => return None,
            RedirectKind::Data if target.is_dynamic() => {
                return part(
                    format!("<<< {}", target.source),
                    Verdict::new(Behavior::Ask, "its input is only known when it runs"),
                    false,
                );
            }
            RedirectKind::Data => return None,
            RedirectKind::Read => false,
            RedirectKind::Write | RedirectKind::ReadWrite => true,
        };
        let text = format!("{} {}", if writes { ">" } else { "<" }, target.source);
        let paths = if target.has_glob() { None } else { paths::paths(target, cwd, query.places, files) };
        let Some(paths) = paths else {
            // The name alone may already be one that is ruled or protected.
            let words = [commands::plain("tee"), target.clone()];
            let verdict = paths::judge_words(query, &words, cwd, files)
                .unwrap_or_else(|| Verdict::new(Behavior::Ask, "it is unknown where it leads"));
            return part(text, verdict, false);
        };
        let mut worst = Verdict::new(Behavior::Allow, if writes { "it may be written" } else { "it only reads" });
        let (mut file, mut opened) = (false, false);
        let mut outside = Vec::new();
        for path in paths {
            // By where it leads: a link in the folder may have the text of a device in its path.
            let device = in_real_folder(&path, files);
            let reopened = descriptor(&path).map(|fd| self.reopened(fd, writes, query, cwd, files));
            if matches!(reopened, Some(None)) || device == Path::new("/dev/null") {
                if writes && worst.behavior == Behavior::Allow {
                    worst.reason = format!("writing to {} is harmless", path.display());
                }
                continue;
            }
            if let Some(Some(verdict)) = reopened {
                paths::worse(&mut worst, verdict);
                (file, opened) = (file || writes, opened || !writes);
                continue;
            }
            let device = lexical(&path);
            if device.starts_with("/dev/tcp") || device.starts_with("/dev/udp") {
                paths::worse(&mut worst, Verdict::firm("it opens a network connection"));
                continue;
            }
            let verdict = if writes {
                write(query, query.vocabulary.tool(Matches::Writing), &path, files)
            } else {
                read(query, query.vocabulary.tool(Matches::Reading), &path, files)
            };
            paths::worse(&mut worst, verdict);
            (file, opened) = (file || writes, opened || !writes);
            outside
                .extend(Some(&path).filter(|path| !query.places.inside(path, files)).map(|path| files.resolve(path)));
            if writes && edits.lead_through(&path, files) {
                paths::worse(
                    &mut worst,
                    Verdict::new(Behavior::Ask, "the line changes a folder that it leads through"),
                );
            }
            if redirect.kind == RedirectKind::ReadWrite {
                paths::worse(&mut worst, read(query, query.vocabulary.tool(Matches::Reading), &path, files));
            }
        }
        let read_only = !writes || worst.behavior == Behavior::Allow;
        let names = file && commands::names_option(target);
        let basis = match (writes, file) {
            // The shell opens it, by a name that is known.
            (false, _) if target.literal().is_some() => Basis::Plain,
            (false, _) => Basis::Text,
            (true, true) => Basis::Leave,
            (true, false) => Basis::Nothing,
        };
        Some(Part { basis, outside, writes: file, names, looks: opened, ..Part::new(text, worst, read_only) })
    }

    /// What opening the descriptor's file again means, where a redirection of the line may have put a file there: Linux
    /// opens it as if by its name, so that one which was opened for reading can be written. None where no file is opened.
    fn reopened(&self, fd: usize, writes: bool, query: &Query, cwd: &Cwd, files: &dyn Files) -> Option<Verdict> {
        let mut worst = None;
        for word in self.files(fd) {
            // Which folder it was opened in is only told where the line stays in one.
            let known = !self.moves || word.prefix().starts_with('/');
            let paths = paths::paths(word, cwd, query.places, files).filter(|_| known && !word.has_glob());
            let unknown = || vec![Verdict::firm("the line opens a file of which it is unknown where it lies")];
            let verdicts = paths.map_or_else(unknown, |paths| {
                let judge = |path: &PathBuf| match writes {
                    true => write(query, query.vocabulary.tool(Matches::Writing), path, files),
                    false => read(query, query.vocabulary.tool(Matches::Reading), path, files),
                };
                paths.iter().map(judge).collect()
            });
            for verdict in verdicts {
                paths::worse(worst.get_or_insert_with(|| verdict.clone()), verdict);
            }
        }
        worst
    }

    /// The files that may be behind the descriptor.
    fn files(&self, fd: usize) -> &[Word] {
        if self.opened.get(fd) == Some(&false) { &[] } else { &self.files }
    }

    pub(super) fn all(&self) -> &[Word] {
        &self.files
    }

    /// Whether one of the words may name a descriptor behind which there is a file.
    pub(super) fn are_named(&self, words: &[Word]) -> bool {
        !self.files.is_empty() && words.iter().skip(1).any(|word| names_one(&word.known()))
    }
}

fn names_one(text: &str) -> bool {
    ["/dev/std", "/dev/fd", "/fd/"].iter().any(|part| text.contains(part))
}

/// The standard descriptor whose file the path opens again, by its plain names alone.
fn descriptor(path: &Path) -> Option<usize> {
    let text = path.to_str()?;
    match text {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => {
            let number = text.strip_prefix("/dev/fd/").or_else(|| text.strip_prefix("/proc/self/fd/"))?;
            ["0", "1", "2"].iter().position(|known| *known == number)
        }
    }
}
