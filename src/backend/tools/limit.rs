//! Keeps results within what the context can bear: what is cut is first saved whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use crate::message::{Content, tokens};
use crate::session::store::Store;

use super::{Keep, Output, Settings};

/// Most bytes of a command's output that are held in memory while it runs.
const MEMORY: usize = 1024 * 1024;

/// Most bytes that are saved of one result.
const SAVED: u64 = 256 * 1024 * 1024;

/// Passes a result through the limits: lines, bytes and tokens, whichever is least. Results with media and approved plans
/// pass unchanged.
pub fn apply(mut output: Output, settings: &Settings, store: &Store, call: &str) -> Output {
    if output.content.iter().any(|part| matches!(part, Content::Media(_))) {
        return output;
    }
    // The user approved it word by word, so word by word it is handed over; the trim has its own way with it where the
    // window is too small.
    if output.after.iter().any(|after| matches!(after, super::After::PlanApproved { .. })) {
        return output;
    }
    let text = Content::joined(&output.content);
    if fits(&text, Room::of(settings)) {
        return output;
    }
    let mut spool = Spool::new(store, call);
    spool.push(&text);
    output.content = vec![Content::text(spool.finish(settings))];
    output
}

/// So much of a text may be kept.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub lines: usize,
    pub bytes: usize,
    pub tokens: u64,
}

impl Room {
    /// All that the settings grant.
    pub fn of(settings: &Settings) -> Room {
        Room { lines: settings.max_lines, bytes: settings.max_bytes, tokens: settings.max_tokens }
    }

    /// What the settings grant without the lines that a notice of ours takes.
    pub fn beside_notice(settings: &Settings) -> Room {
        let Room { lines, bytes, tokens } = Room::of(settings);
        Room {
            lines: lines.saturating_sub(8).max(lines / 2),
            bytes: bytes.saturating_sub(1024).max(bytes / 2),
            tokens: tokens.saturating_sub(300).max(tokens / 2),
        }
    }

    fn half(self) -> Room {
        Room { lines: self.lines / 2, bytes: self.bytes / 2, tokens: self.tokens / 2 }
    }
}

fn fits(text: &str, room: Room) -> bool {
    text.len() <= room.bytes && lines(text) <= room.lines && tokens::text(text) <= room.tokens
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// The longest start of a text that fits; at a line end where one is near, else on a character boundary.
fn head(text: &str, room: Room) -> &str {
    let mut end = text.floor_char_boundary(room.bytes);
    if let Some((at, _)) = text.match_indices('\n').take_while(|(at, _)| *at < end).nth(room.lines.saturating_sub(1)) {
        end = end.min(at + 1);
    }
    loop {
        let count = tokens::text(&text[..end]);
        if count <= room.tokens {
            break;
        }
        end = text.floor_char_boundary(shrink(end, count, room.tokens));
    }
    match text[..end].rfind('\n') {
        Some(at) if end < text.len() && at + 1 > end / 2 => &text[..=at],
        _ => &text[..end],
    }
}

/// The longest end of a text that fits.
fn tail(text: &str, room: Room) -> &str {
    let mut start = text.ceil_char_boundary(text.len().saturating_sub(room.bytes));
    let body = text.strip_suffix('\n').unwrap_or(text);
    let line_ends = body.rmatch_indices('\n').take_while(|(at, _)| *at + 1 > start);
    if let Some((at, _)) = line_ends.take(room.lines.max(1)).nth(room.lines.saturating_sub(1)) {
        start = start.max(at + 1);
    }
    loop {
        let rest = &text[start..];
        let count = tokens::text(rest);
        if count <= room.tokens {
            break;
        }
        start = text.ceil_char_boundary(text.len() - shrink(rest.len(), count, room.tokens));
    }
    match text[start..].find('\n') {
        Some(at) if start > 0 && at + 1 < (text.len() - start) / 2 => &text[start + at + 1..],
        _ => &text[start..],
    }
}

/// The next length to try for a text of `length` bytes that counts `count` tokens; always less than `length`.
fn shrink(length: usize, count: u64, want: u64) -> usize {
    let scaled = (length as u64).saturating_mul(want) / count.max(1);
    usize::try_from(scaled).unwrap_or(length).min(length.saturating_sub(1 + length / 50))
}

/// Takes a result of any length piece by piece, with bounded memory, and gives what fits of it.
pub struct Spool<'a> {
    store: &'a Store,
    call: &'a str,
    /// Everything so far, or the start of it once `saved` is used.
    first: String,
    /// The newest text behind a gap.
    last: String,
    bytes: u64,
    line_ends: u64,
    saved: Option<Saved>,
    failed: Option<io::Error>,
}

struct Saved {
    path: PathBuf,
    file: File,
    hash: ring::digest::Context,
    bytes: u64,
}

impl Saved {
    fn write(&mut self, text: &str) -> io::Result<()> {
        let rest = usize::try_from(SAVED - self.bytes).unwrap_or(usize::MAX);
        let text = &text[..text.floor_char_boundary(rest)];
        self.file.write_all(text.as_bytes())?;
        self.hash.update(text.as_bytes());
        self.bytes += text.len() as u64;
        Ok(())
    }
}

impl<'a> Spool<'a> {
    pub fn new(store: &'a Store, call: &'a str) -> Spool<'a> {
        let (first, last) = (String::new(), String::new());
        Spool { store, call, first, last, bytes: 0, line_ends: 0, saved: None, failed: None }
    }

    /// Whether nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds text to the end.
    pub fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.line_ends += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        if self.saved.is_none() && self.failed.is_none() {
            self.first.push_str(text);
            if self.first.len() <= MEMORY {
                return;
            }
            self.save();
            let cut = self.first.floor_char_boundary(MEMORY / 2);
            self.last = self.first.split_off(cut);
        } else {
            self.add(text);
            self.last.push_str(text);
        }
        if self.last.len() > MEMORY / 2 {
            let cut = self.last.ceil_char_boundary(self.last.len() - MEMORY / 4);
            self.last.drain(..cut);
        }
    }

    /// Starts the file with what is in memory.
    fn save(&mut self) {
        let opened = self.store.spill(self.call, "txt");
        match opened {
            Ok((path, file)) => {
                let hash = ring::digest::Context::new(&ring::digest::SHA256);
                self.saved = Some(Saved { path, file, hash, bytes: 0 });
                let first = std::mem::take(&mut self.first);
                self.add(&first);
                self.first = first;
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(saved) = &mut self.saved
            && let Err(error) = saved.write(text)
        {
            let _ = std::fs::remove_file(&saved.path);
            self.saved = None;
            self.failed = Some(error);
        }
    }

    /// Writes everything so far to a file, and says how many bytes that are.
    ///
    /// # Errors
    /// What the file system says.
    pub fn pour(&mut self, file: &mut File) -> io::Result<u64> {
        match self.saved.take() {
            Some(Saved { path, .. }) => {
                let bytes = io::copy(&mut File::open(&path)?, file)?;
                fs::remove_file(&path)?;
                Ok(bytes)
            }
            None => {
                file.write_all(self.first.as_bytes())?;
                file.write_all(self.last.as_bytes())?;
                Ok((self.first.len() + self.last.len()) as u64)
            }
        }
    }

    /// The text as the model gets it: whole if it fits, else its ends with a notice of where the whole is.
    pub fn finish(&mut self, settings: &Settings) -> String {
        let room = Room::beside_notice(settings);
        let in_memory = self.saved.is_none() && self.failed.is_none();
        if in_memory && fits(&self.first, room) {
            return std::mem::take(&mut self.first);
        }
        if in_memory {
            self.save();
        }
        let whole = self.last.is_empty();
        let (first, last) = match settings.keep {
            Keep::Head => (head(&self.first, room), ""),
            Keep::HeadTail => {
                let first = head(&self.first, room.half());
                let rest = if whole { &self.first[first.len()..] } else { self.last.as_str() };
                (first, tail(rest, room.half()))
            }
        };
        let line_break = if first.ends_with('\n') || first.is_empty() { "" } else { "\n" };
        format!("{first}{line_break}{}\n{last}", self.notice(first, last))
    }

    fn notice(&self, first: &str, last: &str) -> String {
        let kept = (first.len() + last.len()) as u64;
        let cut = self.bytes.saturating_sub(kept);
        let ends = (first.matches('\n').count() + last.matches('\n').count()) as u64;
        let lines = self.line_ends.saturating_sub(ends);
        let place = match (&self.saved, &self.failed) {
            (Some(saved), _) => {
                let digest = saved.hash.clone().finish();
                let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                let what = if saved.bytes < self.bytes { "The first part" } else { "The whole" };
                format!(
                    "{what} is in {} ({} bytes, SHA-256 {hex}): use Read with offset and limit, or Grep, on it",
                    saved.path.display(),
                    saved.bytes
                )
            }
            (None, Some(error)) => format!("The rest is lost because it could not be saved: {error}"),
            (None, None) => "The rest was not saved".into(),
        };
        format!("[{lines} lines ({cut} bytes) of {} bytes cut here. {place}]", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BlobId, Media};
    use crate::stdx::hash::sha256_hex;
    use crate::tools::fixture;

    fn text_of(output: &Output) -> &str {
        match output.content.as_slice() {
            [Content::Text { text }] => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_approved_plan_is_handed_over_whole() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().into());
        let settings = Settings { max_lines: 3, ..fixture::settings() };
        let plan = "a step\n".repeat(300);
        let approved =
            super::super::After::PlanApproved { how: crate::protocol::Approval::AskEach, plan: plan.clone() };
        let told = Output { after: vec![approved], ..Output::ok(plan.as_str()) };
        assert_eq!(text_of(&apply(told.clone(), &settings, &store, "call_1")), plan);
        assert_ne!(text_of(&apply(Output { after: vec![], ..told }, &settings, &store, "call_1")), plan);
    }

    fn run(text: &str, change: impl FnOnce(&mut Settings)) -> (String, Vec<PathBuf>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().into());
        let mut settings = fixture::settings();
        change(&mut settings);
        let output = apply(Output::ok(text), &settings, &store, "call_1");
        let got = text_of(&output).to_string();
        assert!(fits(&got, Room::of(&settings)), "{} bytes, {} lines", got.len(), lines(&got));
        assert_eq!(apply(output.clone(), &settings, &store, "call_2"), output, "once is enough");
        let files = std::fs::read_dir(dir.path().join("tool-results")).into_iter().flatten();
        (got, files.map(|file| file.unwrap().path()).collect(), dir)
    }

    #[test]
    fn short_results_pass() {
        for text in ["", "one", "one\n\ntwo\n"] {
            let (got, files, _dir) = run(text, |_| {});
            assert_eq!((got.as_str(), files.len()), (text, 0));
        }
    }

    #[test]
    fn long_results_are_saved_whole_and_cut() {
        let many: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
        let wide = "日本語".repeat(60_000);
        let run_on = "x".repeat(300_000);
        let huge = "0123456789abcde\n".repeat(200_000);
        for text in [&many, &wide, &run_on, &huge] {
            for keep in [Keep::Head, Keep::HeadTail] {
                let (got, files, _dir) = run(text, |settings| settings.keep = keep);
                let [path] = files.as_slice() else { panic!("{files:?}") };
                assert_eq!(&std::fs::read_to_string(path).unwrap(), text);
                let (hash, place) = (sha256_hex(text.as_bytes()), path.display().to_string());
                assert!(got.contains(&hash) && got.contains(&place) && got.contains("cut here"), "{got:.200}");
                let (first, last) = got.split_once('[').unwrap();
                assert!(!first.trim().is_empty() && text.starts_with(first.trim_end()));
                let last = last.split_once("]\n").unwrap().1;
                assert_eq!(last.is_empty(), keep == Keep::Head);
                assert!(text.ends_with(last));
            }
        }
    }

    #[test]
    fn tokens_count_too() {
        let (got, ..) = run(&"word ".repeat(3000), |settings| settings.max_tokens = 800);
        assert!(got.len() < 4_000, "{}", got.len());
    }

    #[test]
    fn what_cannot_be_saved_is_cut_with_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let long = "line\n".repeat(900_000);
        let output = apply(Output::error(long), &fixture::settings(), &Store::new(file), "call_1");
        assert!(text_of(&output).contains("The rest is lost because it could not be saved: "));
        assert!(text_of(&output).starts_with("line\n") && text_of(&output).ends_with("line\n"));
    }

    #[test]
    fn media_pass() {
        let dir = tempfile::tempdir().unwrap();
        let media = Media { media_type: "image/png".into(), blob: BlobId("b".into()), bytes: 9 };
        let content = vec![Content::text("x".repeat(500_000)), Content::Media(media)];
        let output = Output { content, ..Output::ok("") };
        let got = apply(output.clone(), &fixture::settings(), &Store::new(dir.path().into()), "call_1");
        assert_eq!(got, output);
    }
}
