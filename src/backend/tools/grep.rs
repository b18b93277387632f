//! Grep: searches file contents with ripgrep's own libraries, in this process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::message::Display;
use crate::permission::{Matches, Ruled, Shows, Sight};

use super::call::Typed;
use super::search::{self, Stop};
use super::{Call, Dirs, Manners, Output, file};

/// Longest part of a line that is shown, in characters.
const LINE: usize = 500;

/// Most lines that are collected before the search ends early.
const COLLECTED: usize = 50_000;

/// Most memory that one thread reads a file with: the longest line, and the largest file where matches span lines.
const HEAP: usize = 8 * 1024 * 1024;

/// Most files that are named as not searched.
const NAMED: usize = 5;

pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    pattern: String,
    /// File or folder; default: the working directory
    path: Option<String>,
    /// Only these files, e.g. `*.{ts,tsx}` or `!*.test.ts`
    glob: Option<String>,
    /// Only this file type, e.g. rust, js, py
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Default: files_with_matches
    output_mode: Option<Mode>,
    /// Lines after each match
    #[serde(rename = "-A")]
    after: Option<usize>,
    /// Lines before each match
    #[serde(rename = "-B")]
    before: Option<usize>,
    /// Lines before and after each match
    #[serde(rename = "-C")]
    around: Option<usize>,
    /// Ignore case
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    /// Line numbers; default true
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    /// Matches may span lines
    #[serde(default)]
    multiline: bool,
    /// Maximum number of output lines
    head_limit: Option<usize>,
    /// Output lines to skip
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    FilesWithMatches,
    Content,
    Count,
}

impl Typed for Grep {
    type Input = Input;

    const NAME: &'static str = "Grep";
    const ABOUT: &'static str = include_str!("../../../assets/tools/grep.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Path, under: Some(super::READ), shows: Some(Shows::Lines) },
        matched: "path",
        spare: &["-A", "-B", "-n", "type", "multiline", "offset"],
        ..Manners::READS
    };

    fn call(&self, input: Input, dirs: &Dirs) -> Result<Call, String> {
        matcher(&input)?;
        search::named(input.path.as_deref())?;
        let root = dirs.absolute(input.path.as_deref().unwrap_or("."));
        let (cwd, pattern, path) = (dirs.cwd.clone(), input.pattern.clone(), input.path.clone());
        Ok(search::call((&pattern, path.as_deref()), root, move |root, sight, stop| {
            grep(&input, root, &cwd, sight, stop)
        }))
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true).dot_matches_new_line(input.multiline);
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint = if input.pattern.contains('\n') || input.pattern.contains("\\n") {
            " Set multiline to match line ends."
        } else {
            " Escape special characters such as ( { [ with a backslash to find them."
        };
        format!("The pattern is not valid: {error}.{hint}")
    })
}

fn walker(input: &Input, root: &Path) -> Result<WalkBuilder, String> {
    let mut walker = search::walker(root);
    if let Some(glob) = input.glob.as_deref().filter(|glob| !glob.is_empty()) {
        let mut overrides = OverrideBuilder::new(root);
        overrides.add(glob).map_err(|error| format!("Parameter `glob` is not valid: {error}."))?;
        let overrides = overrides.build().map_err(|error| format!("Parameter `glob` is not valid: {error}."))?;
        walker.overrides(overrides);
    }
    if let Some(kind) = input.kind.as_deref().filter(|kind| !kind.is_empty()) {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(kind);
        let types = types.build().map_err(|_| {
            format!("Parameter `type` is {kind:?}, which is not a known file type. Use glob, e.g. \"*.{kind}\".")
        })?;
        walker.types(types);
    }
    Ok(walker)
}

fn grep(input: &Input, root: &Path, cwd: &Path, sight: &Sight, stop: &Stop) -> Result<Output, String> {
    let (matcher, walker) = (matcher(input)?, walker(input, root)?);
    let mode = input.output_mode.unwrap_or(Mode::FilesWithMatches);
    let context =
        |lines: Option<usize>| lines.or(input.around).filter(|_| mode == Mode::Content).unwrap_or(0).min(1000);
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(mode == Mode::Content && input.numbers.unwrap_or(true))
        .after_context(context(input.after))
        .before_context(context(input.before))
        .multi_line(input.multiline)
        .heap_limit(Some(HEAP))
        // A file with a zero byte is passed over once that shows up, as in ripgrep.
        .binary_detection(BinaryDetection::quit(0));
    let collected = AtomicUsize::new(0);
    let (found, hits) = mpsc::channel();
    search::files(&walker, sight, stop, || {
        let (found, matcher, mut searcher, collected) = (found.clone(), matcher.clone(), builder.build(), &collected);
        move |path: &Path| {
            let mut hit = Hit::default();
            let sink = Lines { hit: &mut hit, mode, collected, stop, binary: false };
            // A file that cannot be read has no matches to show. The searcher itself fails only when memory runs out.
            let searched = searcher.search_path(&matcher, path, sink);
            hit.too_long = searched.is_err_and(|error| error.kind() == io::ErrorKind::Other);
            if hit.too_long || hit.count > 0 {
                hit.path = path.to_path_buf();
                let _ = found.send(hit);
            }
        }
    });
    drop(found);
    let hits: Vec<Hit> = hits.into_iter().collect();
    let mut unsearched: Vec<PathBuf> = hits.iter().filter(|hit| hit.too_long).map(|hit| hit.path.clone()).collect();
    unsearched.sort();
    let hits = hits.into_iter().filter(|hit| hit.count > 0).collect();
    let mut notes = Vec::new();
    if !unsearched.is_empty() {
        notes.push(not_searched(&unsearched, input.multiline, cwd));
    }
    if collected.into_inner() >= COLLECTED {
        notes.push("[There are more matches: the search ended early. Use a narrower pattern, path or glob.]".into());
    }
    Ok(answer(input, mode, hits, cwd, notes))
}

/// Names files that hold more in one piece than the searcher takes.
fn not_searched(paths: &[PathBuf], multiline: bool, cwd: &Path) -> String {
    let named: Vec<String> = paths.iter().take(NAMED).map(|path| file::shown(path, cwd)).collect();
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = if multiline { "files over 8 MiB with multiline" } else { "lines over 8 MiB" };
    format!("[Not fully searched because of {what}: {}{more}. Use Bash for these.]", named.join(", "))
}

/// What was found in one file.
#[derive(Default)]
struct Hit {
    path: PathBuf,
    count: u64,
    lines: Vec<Found>,
    /// It holds more in one piece than the searcher takes.
    too_long: bool,
}

enum Found {
    Match(Option<u64>, String),
    Context(Option<u64>, String),
    Break,
}

/// Collects what the mode needs and no more.
struct Lines<'a> {
    hit: &'a mut Hit,
    mode: Mode,
    collected: &'a AtomicUsize,
    stop: &'a Stop,
    binary: bool,
}

impl Lines<'_> {
    /// Counts lines towards the cap; false when the search should end.
    fn room(&self, lines: usize) -> bool {
        self.collected.fetch_add(lines, Ordering::Relaxed) + lines < COLLECTED && !self.stop.is_set()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.hit.count += 1;
        match self.mode {
            Mode::FilesWithMatches => Ok(false),
            Mode::Count => Ok(!self.stop.is_set()),
            Mode::Content => {
                let mut lines = 0;
                for (number, line) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
                    self.hit.lines.push(Found::Match(found.line_number().map(|_| number), shown(line)));
                    lines += 1;
                }
                Ok(self.room(lines))
            }
        }
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.hit.lines.push(Found::Context(context.line_number(), shown(context.bytes())));
        Ok(self.room(1))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        self.hit.lines.push(Found::Break);
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, _finish: &SinkFinish) -> Result<(), io::Error> {
        if self.binary {
            self.hit.count = 0;
            self.hit.lines.clear();
        }
        Ok(())
    }
}

/// A line without its end, decoded and cut.
fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Four bytes are the longest character.
    let start = &line[..line.len().min(LINE * 4)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(LINE) {
        None if start.len() == line.len() => text.into_owned(),
        cut => format!("{} [line cut]", &text[..cut.map_or(text.len(), |(at, _)| at)]),
    }
}

fn answer(input: &Input, mode: Mode, mut hits: Vec<Hit>, cwd: &Path, notes: Vec<String>) -> Output {
    let matches: u64 = hits.iter().map(|hit| hit.count).sum();
    let files = hits.len();
    let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let lines: Vec<String> = match mode {
        Mode::FilesWithMatches => {
            let mut paths: Vec<PathBuf> = hits.into_iter().map(|hit| hit.path).collect();
            search::newest_first(&mut paths);
            paths.iter().map(|path| file::shown(path, cwd)).collect()
        }
        Mode::Count => {
            hits.sort_by(|one, other| one.path.cmp(&other.path));
            hits.iter().map(|hit| format!("{}:{}", file::shown(&hit.path, cwd), hit.count)).collect()
        }
        Mode::Content => {
            hits.sort_by(|one, other| one.path.cmp(&other.path));
            let apart = input.after.or(input.before).or(input.around).is_some_and(|lines| lines > 0);
            content(&hits, cwd, apart)
        }
    };
    let total = lines.len();
    let limit = input.head_limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let mut shown: Vec<String> = lines.into_iter().skip(input.offset).take(limit).collect();
    let next = input.offset + shown.len();
    let what = if total == 0 {
        shown.push("No matches. Hidden, ignored and binary files are skipped.".into());
        "No matches".to_string()
    } else {
        match mode {
            Mode::FilesWithMatches => plural(files as u64, "file", "files"),
            _ => format!("{} in {}", plural(matches, "match", "matches"), plural(files as u64, "file", "files")),
        }
    };
    if total > next {
        shown.push(format!("[{} more lines; continue with offset {next}]", total - next));
    } else if total > 0 && input.offset >= total {
        shown.push(format!("[The answer has only {total} lines.]"));
    }
    shown.extend(notes);
    Output { display: Some(Display::Line { text: what }), ..Output::ok(shown.join("\n")) }
}

/// Lines as ripgrep prints them: `path:number:text`, dashes for context.
fn content(hits: &[Hit], cwd: &Path, apart: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for hit in hits {
        if apart && !lines.is_empty() {
            lines.push("--".to_string());
        }
        let path = file::shown(&hit.path, cwd);
        for found in &hit.lines {
            lines.push(match found {
                Found::Match(Some(number), text) => format!("{path}:{number}:{text}"),
                Found::Match(None, text) => format!("{path}:{text}"),
                Found::Context(Some(number), text) => format!("{path}-{number}-{text}"),
                Found::Context(None, text) => format!("{path}-{text}"),
                Found::Break => "--".to_string(),
            });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::Outcome;
    use crate::tools::fixture::Fixture;

    fn project() -> Fixture {
        let fixture = Fixture::new();
        fixture.file("a.rs", "fn one() {}\n\nfn two() {\n    one();\n}\n");
        fixture.file("sub/b.ts", "function One() {}\r\n");
        fixture.file("sub/c.txt", format!("one {}\n", "x".repeat(600)));
        fixture.file("binary", b"one\n\0one\n");
        fixture.file(".hidden", "one\n");
        fixture.file("target/made.rs", "one\n");
        fixture.file(".gitignore", "target\n");
        fixture.file("latin", b"one caf\xe9\n");
        fixture
    }

    async fn check(input: Value, want: &str) {
        let mut fixture = project();
        let output = fixture.run(&Grep, input.clone()).await;
        let mut text = fixture.text(&output);
        if !input["output_mode"].is_string() {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            text = lines.join("\n");
        }
        assert_eq!(text, want, "{input}");
    }

    #[tokio::test]
    async fn modes_and_filters() {
        let long = format!("sub/c.txt:1:one {} [line cut]", "x".repeat(496));
        check(json!({"pattern": "one"}), "a.rs\nlatin\nsub/c.txt").await;
        check(json!({"pattern": "one", "-i": true}), "a.rs\nlatin\nsub/b.ts\nsub/c.txt").await;
        check(json!({"pattern": "one", "glob": "*.{rs,ts}", "-i": true}), "a.rs\nsub/b.ts").await;
        check(json!({"pattern": "one", "glob": "!*.rs"}), "latin\nsub/c.txt").await;
        check(json!({"pattern": "one", "type": "rust"}), "a.rs").await;
        check(json!({"pattern": "one", "path": "sub"}), "sub/c.txt").await;
        check(json!({"pattern": "one", "path": "a.rs"}), "a.rs").await;
        check(json!({"pattern": "one", "path": ".hidden"}), ".hidden").await;
        check(json!({"pattern": "absent"}), "No matches. Hidden, ignored and binary files are skipped.").await;
        check(json!({"pattern": "one", "output_mode": "count"}), "a.rs:2\nlatin:1\nsub/c.txt:1").await;
        check(
            json!({"pattern": "one", "output_mode": "content"}),
            &format!("a.rs:1:fn one() {{}}\na.rs:4:    one();\nlatin:1:one caf\u{fffd}\n{long}"),
        )
        .await;
        check(
            json!({"pattern": "one", "output_mode": "content", "-n": false, "glob": "*.rs"}),
            "a.rs:fn one() {}\na.rs:    one();",
        )
        .await;
        check(json!({"pattern": "One", "output_mode": "content", "glob": "*.ts"}), "sub/b.ts:1:function One() {}")
            .await;
        check(
            json!({"pattern": "one\\(\\);", "output_mode": "content", "-C": 1}),
            "a.rs-3-fn two() {\na.rs:4:    one();\na.rs-5-}",
        )
        .await;
        check(
            json!({"pattern": "two.*?one", "output_mode": "content", "multiline": true}),
            "a.rs:3:fn two() {\na.rs:4:    one();",
        )
        .await;
        check(
            json!({"pattern": "fn|one", "output_mode": "content", "glob": "*.rs", "head_limit": 1, "offset": 1}),
            "a.rs:3:fn two() {\n[1 more lines; continue with offset 2]",
        )
        .await;
        check(json!({"pattern": "one", "output_mode": "count", "offset": 9}), "[The answer has only 3 lines.]").await;
    }

    #[tokio::test]
    async fn refusals() {
        let mut fixture = project();
        for (input, want) in [
            (json!({"pattern": "fn("}), "The pattern is not valid"),
            (json!({"pattern": "a\\nb"}), "Set multiline"),
            (json!({"pattern": "a", "type": "klingon"}), "not a known file type. Use glob, e.g. \"*.klingon\""),
            (json!({"pattern": "a", "glob": "{a"}), "Parameter `glob` is not valid"),
            (
                json!({"pattern": "a", "glob": format!("{}b{}", "{a,".repeat(200), "}".repeat(200))}),
                "`glob` is not valid",
            ),
            (json!({"pattern": "a", "path": "gone"}), "does not exist"),
            (json!({"pattern": "a", "output_mode": "all"}), "must be one of \"files_with_matches\""),
        ] {
            let got = fixture.error(&Grep, input).await;
            assert!(got.contains(want), "{got}");
        }
        fixture.cancel.cancel();
        assert_eq!(fixture.run(&Grep, json!({"pattern": "one"})).await.outcome, Outcome::Interrupted);
    }

    #[tokio::test]
    async fn a_flood_of_matches_is_bounded() {
        let mut fixture = Fixture::new();
        fixture.file("a", "match\n".repeat(COLLECTED * 2));
        let got = fixture.ok(&Grep, json!({"pattern": "match", "output_mode": "content"})).await;
        assert_eq!(got.lines().count(), COLLECTED + 1);
        assert!(got.ends_with("Use a narrower pattern, path or glob.]"));
    }

    #[tokio::test]
    async fn a_line_that_does_not_fit_is_passed_over_with_a_word() {
        let mut fixture = Fixture::new();
        let blob = |size: usize| format!("match before\n{} match\nmatch after\n", "x".repeat(size));
        fixture.file("fits", blob(HEAP / 4));
        fixture.file("huge", blob(HEAP + 1));
        for (input, want) in [
            (
                json!({"pattern": "match", "output_mode": "count"}),
                "fits:3\nhuge:1\n[Not fully searched because of \
              lines over 8 MiB: huge. Use Bash for these.]",
            ),
            (json!({"pattern": "match", "output_mode": "count", "path": "fits"}), "fits:3"),
            (
                json!({"pattern": "after", "path": "huge"}),
                "No matches. Hidden, ignored and binary files are skipped.\n\
              [Not fully searched because of lines over 8 MiB: huge. Use Bash for these.]",
            ),
            (
                json!({"pattern": "before.*?match", "multiline": true, "path": "huge"}),
                "No matches. Hidden, ignored and \
              binary files are skipped.\n[Not fully searched because of files over 8 MiB with multiline: huge. \
              Use Bash for these.]",
            ),
        ] {
            assert_eq!(fixture.ok(&Grep, input).await, want);
        }
    }
}
