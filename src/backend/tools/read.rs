//! Read: a file with line numbers, a page at a time.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::message::{Display, Effect, tokens};
use crate::permission::{Access, Matches, Ruled};
use crate::session::store::Store;
use crate::stdx::links;

use super::call::Typed;
use super::limit::Room;
use super::{Call, Context, Dirs, Manners, Output, file, media, notebook};

/// Longest part of a line that is shown, in characters.
const LINE: usize = 2000;

pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    /// First line, counting from 1
    offset: Option<u64>,
    /// Maximum number of lines
    limit: Option<u64>,
}

impl Typed for Read {
    type Input = Input;

    const NAME: &'static str = "Read";
    const ABOUT: &'static str = include_str!("../../../assets/tools/read.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Reading, ..Ruled::BY_NAME },
        matched: "file_path",
        ..Manners::READS
    };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        file::named(&input.file_path)?;
        let mut title = file::one_line(&input.file_path);
        if let Some(offset @ 2..) = input.offset {
            title.push_str(&format!(" from line {offset}"));
        }
        let path = dirs.absolute(&input.file_path);
        let access = Access::Read { path: path.clone() };
        let work = move |context: Context| async move {
            let job = Job {
                real: context.permit.target().map_or_else(|| links::resolve(&path), Path::to_owned),
                path,
                from: input.offset.unwrap_or(1).max(1),
                limit: input.limit.unwrap_or(u64::MAX).max(1),
                room: Room::beside_notice(&context.settings),
                store: context.store,
                // Dropping the future cancels it, too.
                cancel: context.cancel.child_token(),
            };
            let _guard = job.cancel.clone().drop_guard();
            file::blocking(move || job.run().unwrap_or_else(Output::error)).await
        };
        Ok(Call::new(access, title, work))
    }
}

/// One reading, apart from the session that it is for.
struct Job {
    path: PathBuf,
    /// Where it led when it was decided about.
    real: PathBuf,
    from: u64,
    limit: u64,
    room: Room,
    store: Store,
    cancel: CancellationToken,
}

impl Job {
    fn run(&self) -> Result<Output, String> {
        let (mut file, metadata) = file::open_at(&self.path, &self.real)?;
        let mut start = vec![0; 16 * 1024];
        let count = fill(&mut file, &mut start).map_err(|error| self.failed(&error))?;
        start.truncate(count);
        if let Some(kind) = media::Kind::of(&start) {
            return media::read(kind, &self.path, file, start, &self.store);
        }
        if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
            return Err(format!("{} is UTF-16. Convert it in Bash: iconv -f UTF-16 -t UTF-8.", self.path.display()));
        }
        if !file::is_text(&start) {
            return Err(format!(
                "{} is a binary file ({} bytes), which Read cannot show. Inspect it in Bash: file, strings, xxd | head.",
                self.path.display(),
                metadata.len()
            ));
        }
        if self.path.extension().is_some_and(|extension| extension == "ipynb") && metadata.len() <= file::EDITABLE {
            let mut bytes = start.clone();
            file.read_to_end(&mut bytes).map_err(|error| self.failed(&error))?;
            if let Some(text) = notebook::render(&bytes) {
                let sha256 = crate::stdx::hash::sha256_hex(&bytes);
                let effects = vec![Effect::Seen { path: self.path.clone(), sha256 }];
                let display = Some(Display::Line { text: "a notebook".into() });
                return Ok(Output { effects, display, ..Output::ok(text) });
            }
            return self.text(io::Cursor::new(bytes), Vec::new(), false);
        }
        self.text(file, start, metadata.len() > file::EDITABLE)
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("Cannot read {}: {error}.", self.path.display())
    }

    /// Reads on from `start`, shows the page, and hashes the whole unless the file is `huge`.
    fn text(&self, mut rest: impl io::Read, start: Vec<u8>, huge: bool) -> Result<Output, String> {
        let mut page = Page::new(self.from, self.limit, self.room);
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        let (mut buffer, mut chunk, mut total) = (vec![0; 256 * 1024], start, 0u64);
        loop {
            page.push(&chunk);
            total += chunk.len() as u64;
            let hashing = !huge && total <= file::EDITABLE;
            if hashing {
                hash.update(&chunk);
            } else if page.full {
                break;
            }
            if self.cancel.is_cancelled() {
                return Ok(file::interrupted());
            }
            let count = fill(&mut rest, &mut buffer).map_err(|error| self.failed(&error))?;
            if count == 0 {
                page.end();
                break;
            }
            chunk.clear();
            chunk.extend_from_slice(&buffer[..count]);
        }
        let known = !huge && total <= file::EDITABLE;
        let sha256 = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let effects = if known { vec![Effect::Seen { path: self.path.clone(), sha256 }] } else { Vec::new() };
        let summary = match page.shown {
            1 => "1 line".into(),
            shown => format!("{shown} lines"),
        };
        let text = page.finish(total, known);
        Ok(Output { effects, display: Some(Display::Line { text: summary }), ..Output::ok(text) })
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Collects the numbered lines of one page from bytes in pieces.
struct Page {
    from: u64,
    limit: u64,
    room: Room,
    text: String,
    shown: u64,
    tokens: u64,
    /// Number of the line that is being read, from 1.
    number: u64,
    /// The start of that line, and its whole length in bytes.
    line: Vec<u8>,
    length: u64,
    /// No further line is taken.
    full: bool,
    /// There is more of the file after the page.
    more: bool,
    invalid: bool,
    windows: u64,
}

impl Page {
    fn new(from: u64, limit: u64, room: Room) -> Page {
        let (text, line) = (String::new(), Vec::new());
        let (full, more, invalid) = (false, false, false);
        Page {
            from,
            limit,
            room,
            text,
            shown: 0,
            tokens: 0,
            number: 1,
            line,
            length: 0,
            full,
            more,
            invalid,
            windows: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.full {
            self.more |= !bytes.is_empty();
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.full {
                self.more = true;
                return;
            }
            let ends = piece.ends_with(b"\n");
            if self.number >= self.from {
                // Four bytes are the longest character.
                let keep = piece.len().min((LINE * 4 + 8).saturating_sub(self.line.len()));
                self.line.extend_from_slice(&piece[..keep]);
            }
            self.length += piece.len() as u64;
            if ends {
                self.take();
            }
        }
    }

    /// Ends the file: the last line may lack its line end.
    fn end(&mut self) {
        if self.length > 0 && !self.full {
            self.take();
        }
    }

    fn take(&mut self) {
        let (line, length) = (std::mem::take(&mut self.line), std::mem::take(&mut self.length));
        let number = self.number;
        self.number += 1;
        if number < self.from {
            return;
        }
        let whole = line.len() as u64 == length;
        let bare = line.strip_suffix(b"\n").unwrap_or(&line);
        let bare = bare.strip_suffix(b"\r").inspect(|_| self.windows += 1).unwrap_or(bare);
        let bare = if number == 1 { bare.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bare) } else { bare };
        let decoded = String::from_utf8_lossy(bare);
        self.invalid |= whole && matches!(decoded, std::borrow::Cow::Owned(_));
        let mut numbered = format!("{number:>6}→");
        match decoded.char_indices().nth(LINE) {
            None if whole => numbered.push_str(&decoded),
            cut => {
                numbered.push_str(&decoded[..cut.map_or(decoded.len(), |(at, _)| at)]);
                numbered.push_str(&format!(" [line cut: it has {length} bytes]"));
            }
        }
        numbered.push('\n');
        let tokens = tokens::text(&numbered);
        let over = self.shown + 1 > self.room.lines as u64
            || self.text.len() + numbered.len() > self.room.bytes
            || self.tokens + tokens > self.room.tokens;
        if over && self.shown > 0 {
            (self.full, self.more) = (true, true);
            self.number = number;
            return;
        }
        self.text.push_str(&numbered);
        self.tokens += tokens;
        self.shown += 1;
        self.full = self.shown >= self.limit;
    }

    /// The page with what the model must know of it. `total` is the bytes read; `known` that they were all.
    fn finish(mut self, total: u64, known: bool) -> String {
        let mut notes = Vec::new();
        if total == 0 {
            notes.push("The file is empty.".to_string());
        } else if self.shown == 0 {
            let lines = self.number - 1;
            notes.push(format!("No line {}: the file has {lines} lines.", self.from));
        }
        if self.more {
            notes.push(format!("There is more: continue with offset {}.", self.from + self.shown));
        }
        if self.invalid {
            notes.push("Bytes that are not valid UTF-8 are shown as \u{fffd}; change this file in Bash only.".into());
        }
        if self.windows > 0 && self.windows >= self.shown.div_ceil(2) {
            notes.push("Lines end in CRLF; Edit and Write keep that.".into());
        }
        if !known {
            notes.push("The file is over 64 MiB: Edit and Write do not accept it.".into());
        }
        if !notes.is_empty() {
            self.text.push_str(&format!("[{}]", notes.join(" ")));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stdx::hash::sha256_hex;
    use crate::tools::fixture::Fixture;

    async fn check(content: impl AsRef<[u8]>, offset: u64, limit: u64, want: &str) {
        let mut fixture = Fixture::new();
        fixture.file("a", content);
        let got = fixture.ok(&Read, json!({"file_path": "a", "offset": offset, "limit": limit})).await;
        assert_eq!(got, want);
    }

    #[tokio::test]
    async fn pages() {
        check("one\ntwo\n", 1, 9, "     1→one\n     2→two\n").await;
        check("one\ntwo", 2, 9, "     2→two\n").await;
        check("one\n\nthree\n", 1, 2, "     1→one\n     2→\n[There is more: continue with offset 3.]").await;
        check("one\ntwo\n", 1, 2, "     1→one\n     2→two\n").await;
        check("", 1, 9, "[The file is empty.]").await;
        check("one\ntwo\n", 7, 9, "[No line 7: the file has 2 lines.]").await;
        check("\u{feff}a\r\nb\r\n", 1, 9, "     1→a\n     2→b\n[Lines end in CRLF; Edit and Write keep that.]").await;
        check(b"caf\xe9\n", 1, 9, "     1→caf\u{fffd}\n[Bytes that are not valid UTF-8 are shown as \u{fffd}; change this file in Bash only.]").await;
        let cut = format!("     1→{} [line cut: it has 9001 bytes]\n     2→b\n", "é".repeat(2000));
        check(format!("{}\nb\n", "é".repeat(4500)), 1, 9, &cut).await;
    }

    #[tokio::test]
    async fn a_page_stops_below_the_limits_and_names_the_next() {
        let mut fixture = Fixture::new();
        let content: String = (1..=9000).map(|n| format!("this is line {n}\n")).collect();
        fixture.file("a", &content);
        for change in [(2000, 9_000_000, 9_000_000), (90_000, 9000, 9_000_000), (90_000, 9_000_000, 3000)] {
            (fixture.settings.max_lines, fixture.settings.max_bytes, fixture.settings.max_tokens) = change;
            let (mut offset, mut lines) = (1, Vec::new());
            loop {
                let output = fixture.run(&Read, json!({"file_path": "a", "offset": offset})).await;
                let limited = super::super::limit::apply(output.clone(), &fixture.settings, &fixture.store, "call");
                assert_eq!(limited, output, "the limits have nothing left to cut");
                let text = fixture.text(&output);
                lines.extend(text.lines().filter_map(|line| Some(line.split_once('→')?.1.to_string())));
                let Some((_, next)) = text.split_once("continue with offset ") else { break };
                offset = next.trim_end_matches(".]").parse().unwrap();
            }
            assert_eq!(lines.join("\n") + "\n", content);
        }
        assert_eq!(fixture.seen.values().collect::<Vec<_>>(), [&sha256_hex(content.as_bytes())]);
    }

    #[tokio::test]
    async fn refusals() {
        let mut fixture = Fixture::new();
        fixture.file("binary", b"\x7fELF\0\0");
        fixture.file("utf16", b"\xff\xfea\0");
        std::fs::create_dir(fixture.root.join("dir")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(fixture.root.join("fifo")).status().unwrap().success());
        // As good as 2 GB: nothing of it is on the disk.
        std::fs::File::create(fixture.root.join("sparse")).unwrap().set_len(2 << 30).unwrap();
        for (path, want) in [
            ("binary", "is a binary file (6 bytes)"),
            ("sparse", "is a binary file (2147483648 bytes)"),
            ("utf16", "is UTF-16"),
            ("dir", "is a folder. Use LS"),
            ("fifo", "is a named pipe (FIFO)"),
            ("gone", "does not exist"),
            ("/dev/zero", "is a device"),
            ("", "The path is empty."),
            ("a\0b", "NUL"),
        ] {
            let got = fixture.error(&Read, json!({"file_path": path})).await;
            assert!(got.contains(want), "{path}: {got}");
        }
        assert_eq!(fixture.seen.len(), 0);
    }

    #[tokio::test]
    async fn a_huge_text_is_paged_without_being_known() {
        let mut fixture = Fixture::new();
        let path = fixture.file("log", "first line\nsecond line\n".repeat(2000));
        std::fs::File::options().write(true).open(path).unwrap().set_len(2 << 30).unwrap();
        let got = fixture.ok(&Read, json!({"file_path": "log", "offset": 2, "limit": 1})).await;
        assert_eq!(
            got,
            "     2→second line\n[There is more: continue with offset 3. The file is over 64 MiB: Edit and Write do not accept it.]"
        );
        assert_eq!(fixture.seen.len(), 0);
    }
}
