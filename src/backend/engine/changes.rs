//! `/diff`: what this session changed in files, and what git says is not committed.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::Engine;
use crate::agent::Presence;
use crate::message::{BlobId, FileDiff, Usage};
use crate::permission::OwnGit;
use crate::protocol::report::{Ended, Report};
use crate::protocol::{Changes, Event, Hunk, Reviewed, Scope, Span, UsageInfo, Verdict};
use crate::session::review::{self, Changed, Sides};
use crate::session::{First, Session};
use crate::stdx::ansi::visible;
use crate::stdx::hash::sha256_hex;
use crate::tools::diff;

/// What git is asked.
const DIFF: [&str; 9] =
    ["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv", "--no-prefix", "--relative", "--", "."];
const UNTRACKED: [&str; 6] = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of git's answer that are read.
const READ: usize = 1 << 20;
/// Largest file that is compared.
const LARGEST: u64 = 8 << 20;
/// Most files unknown to git that are named.
const NAMES: usize = 50;
/// Lines shown around a hunk, and most lines of one.
const AROUND: usize = 3;
const ROWS: usize = 400;
/// Most bytes that the model is told of a review, but for one more hunk, and of a hunk.
const TOLD: usize = 16_000;
const SHOWN: usize = 4_000;

/// Most files of a session that are compared.
const COMPARED: usize = 1_000;

/// Most turns that are reviewed one by one.
const TURNS: usize = 20;

/// Gathers what the session changed, and what git has not.
pub(super) async fn gather(session: &Session, git: &OwnGit) -> Changes {
    let (firsts, reviews, own) = (session.files().first_versions(), session.reviews(TURNS), git.folder.clone());
    let work = move || (of_session(firsts, &own), reviews.into_iter().map(|changed| scope(changed, &own)).collect());
    let (session, scopes) = tokio::task::spawn_blocking(work).await.unwrap_or_default();
    Changes { session, uncommitted: uncommitted(git).await, scopes }
}

/// Tells the person who worked in the session what came of it.
pub(super) async fn tell_receipt(engine: &mut Engine) {
    let usage = engine.agent.usage_info();
    let session = &engine.agent.conversation.session;
    let prompts = session.prompts().map_or(0, |prompts| prompts.len() as u64);
    if engine.setup.presence != Presence::Attended || prompts == 0 {
        return;
    }
    let ended = receipt(session, &engine.setup.project, usage, prompts).await;
    engine.mailbox.emit(Event::Report(Report::Ended(ended))).await;
}

/// What is told at the end of a session: what it changed, and what it used.
pub(super) async fn receipt(session: &Session, project: &Path, usage: UsageInfo, prompts: u64) -> Ended {
    let (firsts, project) = (session.files().first_versions(), project.to_path_buf());
    let changed = tokio::task::spawn_blocking(move || of_session(firsts, &project)).await.unwrap_or_default();
    let Usage { input, output, cache_read, cache_write, .. } = usage.total;
    Ended {
        session: session.id().to_owned(),
        title: session.title().unwrap_or_default().to_owned(),
        prompts,
        // Front ends have seen them.
        commands: 0,
        files: changed.len() as u64,
        added: changed.iter().map(|file| u64::from(file.added)).sum(),
        removed: changed.iter().map(|file| u64::from(file.removed)).sum(),
        tokens: input + output + cache_read + cache_write,
        cost_usd: usage.cost_usd,
    }
}

fn scope(Changed { turn, prompt, files }: Changed, project: &Path) -> Scope {
    Scope { turn, prompt: visible(&prompt), files: files.into_iter().map(|sides| reviewed(sides, project)).collect() }
}

fn reviewed(Sides { path, both, by }: Sides, project: &Path) -> Reviewed {
    let name = visible(&path.strip_prefix(project).unwrap_or(&path).display().to_string());
    let large = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 > LARGEST);
    let both = match both {
        Ok((without, now)) if large(&without) || large(&now) => Err("is too large to compare".to_owned()),
        both => both,
    };
    match both {
        Err(why) => Reviewed { path, name, without: None, now: None, hunks: Vec::new(), held: Some(visible(&why)), by },
        Ok((without, now)) => {
            let hash = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
            let spans = review::spans(without.as_deref(), now.as_deref());
            let binary = [&without, &now].into_iter().flatten().any(|bytes| bytes.contains(&0));
            let sides = (!binary).then(|| (lines(without.as_deref()), lines(now.as_deref())));
            let hunks = spans.into_iter().map(|span| hunk(span, sides.as_ref())).collect();
            Reviewed { path, name, without: hash(&without), now: hash(&now), hunks, held: None, by }
        }
    }
}

fn lines(bytes: Option<&[u8]>) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes.unwrap_or_default());
    text.split_inclusive('\n').map(|line| visible(line.trim_end_matches(['\n', '\r']))).collect()
}

/// A hunk with some lines around it; without sides it is of no text.
fn hunk(span: Span, sides: Option<&(Vec<String>, Vec<String>)>) -> Hunk {
    let (taken, left) = (span.old.0..span.old.1, span.new.0..span.new.1);
    let Some((old, new)) = sides else {
        return Hunk { span, unified: "… binary content differs\n".to_owned(), added: 0, removed: 0 };
    };
    let before = left.start.min(AROUND);
    let behind = (new.len() - left.end).min(AROUND);
    let first = |start: usize, count: usize| if count == 0 { start } else { start + 1 };
    let counts = (taken.len() + before + behind, left.len() + before + behind);
    let mut unified = format!(
        "@@ -{},{} +{},{} @@\n",
        first(taken.start - before.min(taken.start), counts.0),
        counts.0,
        first(left.start - before, counts.1),
        counts.1
    );
    let around = |sign: char, lines: &[String]| lines.iter().map(|line| format!("{sign}{line}\n")).collect::<Vec<_>>();
    let rows = [
        around(' ', &new[left.start - before..left.start]),
        around('-', &old[taken.clone()]),
        around('+', &new[left.clone()]),
        around(' ', &new[left.end..left.end + behind]),
    ]
    .concat();
    unified.extend(rows.iter().take(ROWS).map(String::as_str));
    if rows.len() > ROWS {
        let _ = writeln!(unified, "… {} more lines", rows.len() - ROWS);
    }
    Hunk { span, unified, added: left.len() as u32, removed: taken.len() as u32 }
}

/// What the model is told of a review. `refused` files are as they were.
pub(super) fn told(verdicts: &[Verdict], refused: &[String]) -> String {
    let mut text =
        "The user reviewed your changes in /diff. What they reverted is no longer in the files: do not make the \
                    same change again, and follow their comments.\n"
            .to_owned();
    let mut left = 0;
    for Verdict { path, name, hunks, .. } in verdicts {
        let refused = refused.iter().any(|line| line.starts_with(&format!("{} ", path.display())));
        for hunk in hunks {
            let state = match (hunk.revert, refused) {
                (true, false) => "reverted",
                (true, true) => "the user wanted this reverted, but the file had changed: it is still there",
                (false, _) => "kept, with a comment",
            };
            if text.len() > TOLD {
                left += 1;
                continue;
            }
            let _ = write!(text, "\n{name}, {state}:\n{}", cut(&hunk.unified));
            if !hunk.comment.is_empty() {
                let _ = writeln!(text, "The user's comment: {}", hunk.comment);
            }
        }
    }
    if left > 0 {
        let _ = write!(text, "\n… and {left} more hunks");
    }
    text
}

/// A hunk as the model gets it.
fn cut(unified: &str) -> String {
    let end = unified.floor_char_boundary(SHOWN);
    match end < unified.len() {
        true => format!("{}\n… cut\n", &unified[..end]),
        false => unified.to_owned(),
    }
}

/// The changes that are in effect since `firsts`.
pub(super) fn of_session(firsts: Vec<First>, project: &Path) -> Vec<FileDiff> {
    let more = firsts.len().saturating_sub(COMPARED);
    let mut files: Vec<FileDiff> = firsts.iter().take(COMPARED).filter_map(|first| compare(first, project)).collect();
    if more > 0 {
        files.push(remark(&format!("{more} more files"), "not compared; /undo restores them"));
    }
    files
}

/// The change of one file until now; none when it is again as it was.
fn compare(first: &First, project: &Path) -> Option<FileDiff> {
    let path = &first.path;
    let name = path.strip_prefix(project).unwrap_or(path).to_path_buf();
    let remark = |text: &str| Some(remark(&name.display().to_string(), text));
    let before = match first.before() {
        Ok(before) => before,
        Err(why) => return remark(&why),
    };
    let after = match read(path) {
        Ok(after) => after,
        Err(why) => return remark(&why),
    };
    if before == after {
        return None;
    }
    let binary = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_some_and(|bytes| bytes.contains(&0));
    if binary(&before) || binary(&after) {
        return remark("binary content differs");
    }
    let gone = after.is_none();
    let found = diff::of(&name, before.as_deref(), after.as_deref().unwrap_or_default());
    let path = if gone { format!("{} (removed)", found.path) } else { found.path };
    Some(FileDiff { path, ..found })
}

/// What is said in place of a change.
fn remark(name: &str, text: &str) -> FileDiff {
    let (path, unified) = (visible(name), format!("… {}\n", visible(text)));
    FileDiff { path, unified, added: 0, removed: 0, created: false }
}

/// What is there; of a link it is the target, as for git.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    if let Ok(target) = std::fs::read_link(path) {
        return Ok(Some(target.as_os_str().as_encoded_bytes().to_vec()));
    }
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(meta) if !meta.is_file() => Err("is no longer a regular file".into()),
        Ok(meta) if meta.len() > LARGEST => Err("is too large to compare".into()),
        Ok(_) => std::fs::read(path).map(Some).map_err(|error| format!("cannot be read: {error}")),
    }
}

/// What `git diff HEAD` says; none outside of a repository, or when git does not answer.
async fn uncommitted(git: &OwnGit) -> Option<Vec<FileDiff>> {
    let captured = match git.ask(&DIFF, PATIENCE, READ).await {
        Ok(captured) => captured?,
        Err(reason) => return Some(vec![remark("git", &format!("not started: {reason}"))]),
    };
    if captured.code != Some(0) {
        return None;
    }
    let mut files = parse(&String::from_utf8_lossy(&captured.stdout));
    if let Ok(captured) = git.ask(&UNTRACKED, PATIENCE, READ).await {
        let captured = captured?;
        files.extend(untracked(&String::from_utf8_lossy(&captured.stdout)));
    }
    Some(files)
}

/// The files that git does not know, as one row with their names.
fn untracked(names: &str) -> Option<FileDiff> {
    let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
    let mut unified: String = names.iter().take(NAMES).map(|name| format!("… {}\n", visible(name))).collect();
    if names.len() > NAMES {
        let _ = writeln!(unified, "… and {} more", names.len() - NAMES);
    }
    let path = match names.len() {
        0 => return None,
        1 => "1 untracked file".to_owned(),
        count => format!("{count} untracked files"),
    };
    Some(FileDiff { path, unified, added: 0, removed: 0, created: false })
}

/// Splits what git says by files.
fn parse(text: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            // Both halves are the same name, unless it was moved; then the header's other lines tell.
            let half = names.get(..names.len() / 2).unwrap_or(names);
            files.push(FileDiff { path: visible(half), unified: String::new(), added: 0, removed: 0, created: false });
            inside = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        inside |= line.starts_with("@@");
        if !inside {
            if let Some(name) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("rename to ")) {
                let name = name.trim_end_matches('\t');
                if name != "/dev/null" {
                    file.path = visible(name);
                }
            }
            file.created |= line.starts_with("new file");
            if line.starts_with("Binary files") {
                file.unified.push_str("… binary content differs\n");
            }
            continue;
        }
        file.added += u32::from(line.starts_with('+'));
        file.removed += u32::from(line.starts_with('-'));
        file.unified.push_str(&visible(line));
        file.unified.push('\n');
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_answer_is_split_by_files() {
        let text = "diff --git a.txt a.txt\nindex 1..2 100644\n--- a.txt\n+++ a.txt\n@@ -1 +1,2 @@\n-one\n+two\n+-- three\n\
                    diff --git b c b c\nnew file mode 100644\n--- /dev/null\n+++ b c\t\n@@ -0,0 +1 @@\n+x\n\
                    diff --git p.png p.png\nBinary files p.png and p.png differ\n";
        let files = parse(text);
        let shown: Vec<String> = files
            .iter()
            .map(|file| format!("{} +{} -{} {} {:?}", file.path, file.added, file.removed, file.created, file.unified))
            .collect();
        assert_eq!(
            shown,
            [
                "a.txt +2 -1 false \"@@ -1 +1,2 @@\\n-one\\n+two\\n+-- three\\n\"",
                "b c +1 -0 true \"@@ -0,0 +1 @@\\n+x\\n\"",
                "p.png +0 -0 false \"… binary content differs\\n\"",
            ]
        );
        assert_eq!(parse(""), []);
    }

    #[test]
    fn files_unknown_to_git_are_counted_and_named() {
        let names: String = (1..=60).map(|n| format!("{n}.txt\0")).collect();
        assert_eq!(untracked(""), None);
        let one = untracked("a b\0").unwrap();
        assert_eq!((one.path.as_str(), one.unified.as_str()), ("1 untracked file", "… a b\n"));
        let many = untracked(&names).unwrap();
        assert_eq!(many.path, "60 untracked files");
        assert!(many.unified.starts_with("… 1.txt\n") && many.unified.ends_with("… 50.txt\n… and 10 more\n"));
    }
}
