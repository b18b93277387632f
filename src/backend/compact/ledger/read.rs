//! What a message tells.

use std::collections::HashMap;
use std::path::Path;

use super::lexis::{
    self, CHOOSES, COMMANDS, FAILED_TEST, FAILS, FINDS, LABELS, LIFTS, NAMES_FAILURE, NARRATES, OBLIGES,
    PLACES_FAILURE, REQUESTS, WANTS,
};
use super::{Pending, Reader};
use crate::compact::restore;
use crate::message::{Block, Display, Kind, Message, Outcome, Role, Said, ToolCall, ToolResult, typed};
use crate::session::entry::{Sort, Who};
use crate::stdx::redact;

/// Bytes of a result that are looked through, at each end of it.
const LOOKED_THROUGH: usize = 32 * 1024;

/// Lines with figures that one result may leave.
const OF_ONE_RESULT: usize = 4;

/// The tool whose calls are command lines.
const SHELL: &str = "Bash";

/// Tools that change the file they are called with, and say nothing else.
const CHANGE: [&str; 3] = ["Edit", "NotebookEdit", "Write"];

/// Tools that say how they were called wrong, which tells nothing of the project.
const MISUSED: [&str; 6] = ["Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"];

/// The tool that lets another agent work, whose changes are in a log of their own.
const DELEGATES: &str = "Task";

/// Tools whose results speak of the session itself: what it says of them is in the log already, or comes back in its own way.
const OF_THE_SESSION: [&str; 7] =
    ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Recall", "Skill", "StructuredOutput", "TodoWrite"];

/// Separates the user's words from what they were asked.
pub(in crate::compact) const ASKED: &str = " (when asked: ";

/// Words of an answer that says nothing without its question.
const ANSWER: usize = 4;

/// Bytes beyond which a line of output is data.
const LONG_LINE: usize = 240;

pub(super) fn message(reader: &mut Reader<'_>, message: &Message) {
    match (message.role, message.kind) {
        (Role::User, Kind::Prompt) => {
            let text = typed(&message.text(), &message.data, 0);
            let question = std::mem::take(&mut reader.pending.question);
            for (at, sentence) in lexis::sentences(&text).into_iter().enumerate() {
                let answers = at == 0 && !question.is_empty() && lexis::words(sentence).count() <= ANSWER;
                said(reader, sentence, answers.then_some(question.as_str()));
            }
        }
        (Role::Assistant, _) => {
            for block in &message.blocks {
                if let Block::Text { text, .. } = block {
                    lexis::sentences(text).into_iter().for_each(|sentence| stated(reader, sentence));
                }
            }
        }
        (Role::User, Kind::ToolResult) => {
            for answer in message.results() {
                let called = reader.pending.calls.get(&answer.id).cloned().unwrap_or_default();
                result(reader, called, answer);
            }
        }
        _ => {}
    }
    pending(reader.pending, message);
}

/// Takes note of what later messages refer to.
pub(super) fn pending(pending: &mut Pending, message: &Message) {
    match (message.role, message.kind) {
        (Role::User, Kind::Prompt) => {
            const WHY: usize = 90;
            let text = typed(&message.text(), &message.data, 0);
            let says = |part: &&str| lexis::words(part).take(3).count() > 2;
            let sentences = lexis::sentences(&text).into_iter().map(lexis::without_lead).collect::<Vec<_>>();
            if let Some(first) = sentences.iter().copied().find(says).or(sentences.first().copied()) {
                let cut: String = first.chars().take(WHY).collect();
                let more = if cut.len() < first.len() { "…" } else { "" };
                let cut = redact::keys(&cut);
                pending.prompt = format!("{}{more}", lexis::one_line(&cut));
            }
            pending.question.clear();
        }
        (Role::Assistant, _) => {
            let calls = message.calls().map(|call| (call.id.clone(), (call.name.clone(), what(call))));
            pending.calls.extend(calls);
            let mut blocks = message.blocks.iter().rev();
            let last = blocks
                .find_map(|block| if let Block::Text { text, .. } = block { Some(text.trim_end()) } else { None });
            let last = last.filter(|text| text.ends_with(['?', '？']));
            let question = last.and_then(|text| lexis::sentences(text).pop());
            let question = question.filter(|question| !COMMANDS.found_in(question));
            pending.question = question.map(lexis::one_line).unwrap_or_default();
        }
        _ => message.results().for_each(|result| _ = pending.calls.remove(&result.id)),
    }
}

/// What a call is about: its command, or its file.
fn what(call: &ToolCall) -> String {
    let field = ["command", "file_path", "path", "notebook_path", "pattern", "url", "query"]
        .into_iter()
        .find_map(|field| call.input.get(field)?.as_str());
    field.map_or_else(|| call.title().to_owned(), str::to_owned)
}

/// Words of the user's own. `about` is what they answered or refused: words of the model.
fn said(reader: &mut Reader<'_>, text: &str, about: Option<&str>) {
    if COMMANDS.found_in(text) {
        return;
    }
    let text = redact::keys(lexis::without_lead(text));
    let text = text.as_str();
    let marked = lexis::telling(text);
    let wide = lexis::words(text).any(|(_, word)| !word.is_ascii() && word.chars().count() > 3);
    let of_words = lexis::words(text).count();
    if of_words < 2 && !wide && marked == 0 && about.is_none() {
        return;
    }
    let (obliges, chooses) = (OBLIGES.place_in(text), CHOOSES.place_in(text));
    let lifts = LIFTS.found_in(text);
    let asks = REQUESTS.found_in(text);
    let figures = lexis::words(text).any(|(sort, _)| sort == lexis::Sort::Figure);
    let (sort, rank) = match () {
        () if obliges.is_some() && !lifts && !WANTS.found_in(text) && !text.ends_with(['?', '？']) => {
            (Sort::Constraint, if asks { 7 } else { 9 })
        }
        () if about.is_some() || lifts => (Sort::Choice, 9),
        () if chooses.is_some() && !asks => (Sort::Choice, 8),
        () if figures => (Sort::Figure, if asks { 7 } else { 9 }),
        // What is told, and not asked for, is worth knowing; a few plain words say how somebody feels about it.
        () if !asks && !WANTS.found_in(text) && !text.ends_with(['?', '？']) => {
            let plain = if of_words < 4 && !wide { 1 } else { 5 };
            (Sort::Choice, if marked == 0 { plain } else { 7 })
        }
        () => (Sort::Name, if marked == 0 { 2 } else { 6 }),
    };
    let around = obliges.or(chooses).map(|place| place.start);
    let clipped = lexis::clip(text, around);
    let text = match about {
        Some(about) if !about.is_empty() => format!("{clipped}{ASKED}{})", short(&redact::keys(about))),
        _ => clipped,
    };
    let about = lexis::subject(&text, false);
    reader.add((sort, Who::User, rank), text, about);
}

/// What the model says it knows. What it says it does is left to the log.
fn stated(reader: &mut Reader<'_>, text: &str) {
    if COMMANDS.found_in(text) || text.ends_with(['?', '？']) {
        return;
    }
    // A line's number says where somebody reads, a commit's what it is about.
    const PLACES: [&str; 12] =
        ["line", "lines", "step", "steps", "module", "file", "files", "test", "tests", "page", "part", "round"];
    let (mut figures, mut names, mut telling, mut before) = (0, 0, false, "");
    for (sort, word) in lexis::words(text) {
        let place = PLACES.contains(&before.to_lowercase().as_str());
        if sort == lexis::Sort::Figure && word.len() > 1 && !place {
            figures += 1;
            telling |= word.bytes().filter(u8::is_ascii_alphanumeric).count() > 3;
        }
        names += usize::from(sort == lexis::Sort::Name);
        before = word;
    }
    let (finds, narrates, proper) = (FINDS.place_in(text), NARRATES.found_in(text), lexis::proper(text));
    if finds.is_none() && (narrates || figures + names + proper == 0) {
        return;
    }
    let rank = 3 + 2 * u8::from(finds.is_some()) + u8::from(figures > 0) + u8::from(telling) - 2 * u8::from(narrates);
    let sort = if figures > 0 { Sort::Figure } else { Sort::Name };
    let about = lexis::subject(text, true);
    reader.add((sort, Who::Model, rank), lexis::clip(text, finds.map(|place| place.start)), about);
}

fn result(reader: &mut Reader<'_>, (tool, what): (String, String), result: &ToolResult) {
    if let Some(words) = users_words(result) {
        for Said { words, question, .. } in words {
            let about = if question.is_empty() { &what } else { question };
            lexis::sentences(words).into_iter().for_each(|part| said(reader, part, Some(about)));
        }
        return;
    }
    let text = result.text();
    match result.outcome {
        Outcome::Error if MISUSED.contains(&tool.as_str()) => return,
        Outcome::Error => return failed(reader, &tool, &what, &text),
        Outcome::Ok => {
            succeeded(reader, &tool, &what);
            match &result.display {
                Some(Display::Diff(diff)) => changed(reader, &diff.path),
                _ if CHANGE.contains(&tool.as_str()) => changed(reader, &what),
                _ => {}
            }
            reader.ledger.delegated |= tool == DELEGATES;
            if tool == SHELL {
                changed_by(&what).into_iter().for_each(|path| changed(reader, path));
            }
        }
        Outcome::Denied | Outcome::Interrupted => return,
    }
    if ![&CHANGE[..], &OF_THE_SESSION].concat().contains(&tool.as_str()) {
        figures(reader, &text);
    }
}

/// What the user said in the answer to a question, in a refusal, or of a plan.
pub(in crate::compact) fn users_words(result: &ToolResult) -> Option<&[Said]> {
    match &result.display {
        Some(Display::Said { answers }) => Some(answers),
        _ => None,
    }
}

fn changed(reader: &mut Reader<'_>, path: &str) {
    // Plans and notes come back in their own way.
    if restore::excluded(Path::new(path), &[], &[]) {
        return;
    }
    let why = reader.pending.prompt.clone();
    // A name may hold line breaks, which would begin lines of their own.
    let path = lexis::one_line(path);
    reader.add((Sort::Path, Who::Tool, 7), path, why);
}

/// The paths that a command line changes for certain: those of tools made for it, and where output goes.
pub(super) fn changed_by(command: &str) -> Vec<&str> {
    const CHANGES: [&str; 8] = ["mv", "cp", "rm", "touch", "mkdir", "tee", "ln", "patch"];
    let is_path = |word: &str| {
        word.len() > 2
            && !word.starts_with('-')
            && !word.starts_with("/dev/")
            && word.contains(['/', '.'])
            && !word.contains(['*', '$', '\''])
    };
    let mut paths = Vec::new();
    for part in command.split(['\n', ';', '|', '&']) {
        let mut words = part.split_whitespace().map(|word| word.trim_matches(['"', '\''])).peekable();
        let mut changes = false;
        if words.peek() == Some(&"git") {
            words.next();
            changes = matches!(words.peek(), Some(&"mv" | &"rm" | &"restore"));
        } else if let Some(program) = words.peek() {
            changes = CHANGES.contains(program) || *program == "sed" && part.contains(" -i");
        }
        let (first, mut into) = (paths.len(), false);
        let copies = part.trim_start().starts_with("cp ") || part.trim_start().starts_with("ln ");
        for word in words.skip(usize::from(changes)) {
            let redirected = word.trim_start_matches(['>', '1', '2']);
            let target = into || redirected.len() < word.len() && word.contains('>');
            if (changes || target) && is_path(redirected) && !redirected.starts_with("s/") {
                paths.push(redirected);
            }
            into = word.ends_with('>');
        }
        // What is copied stays as it is.
        if copies && paths.len() > first + 1 {
            paths.drain(first..paths.len() - 1);
        }
    }
    paths.truncate(6);
    paths
}

/// An error: once, with what was called.
fn failed(reader: &mut Reader<'_>, tool: &str, what: &str, text: &str) {
    let Some(line) = failure(text) else { return };
    let line = match failed_test(text).filter(|test| !line.contains(test.as_str())) {
        Some(test) => format!("{test}: {line}"),
        None => line,
    };
    if COMMANDS.found_in(&line) {
        return;
    }
    let (text, about) = (line, called(tool, what));
    reader.add((Sort::Error, Who::Tool, 6), text, about);
}

/// The line that names a failure, and where it happened.
fn failure(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| line.len() < 2_000).collect();
    let names = |line: &&str| NAMES_FAILURE.found_in(line.trim_start_matches("[stderr]"));
    let at = lines
        .iter()
        .position(names)
        .or_else(|| lines.iter().position(|line| FAILS.found_in(line)))
        .or_else(|| lines.iter().position(|line| !line.trim().is_empty()))?;
    // An exception is told after the way that led to it.
    let at = match lines[at].starts_with("Traceback") {
        true => lines.iter().rposition(names).unwrap_or(at),
        false => at,
    };
    let named = lexis::clip(lines[at].trim(), None);
    let after = lines[at + 1..]
        .iter()
        .take(2)
        .find(|line| PLACES_FAILURE.found_in(line) || lines[at].trim_end().ends_with(':'));
    // A frame of the runtime tells nothing of the project.
    const RUNTIMES: [&str; 4] = ["node:", "/rustc/", "site-packages", "<frozen "];
    let tells = |place: &&str| place.len() < 120 && !RUNTIMES.iter().any(|runtime| place.contains(runtime));
    let place = after.map(|line| line.trim().trim_start_matches("--> ").trim()).filter(tells);
    Some(match place {
        Some(place) => format!("{named} ({})", lexis::one_line(place)),
        None => named,
    })
}

/// The first test that a test runner names as failed.
fn failed_test(text: &str) -> Option<String> {
    const LONGEST: usize = 90;
    let named = |line: &str| FAILED_TEST.group_in(line.trim_end()).map(lexis::one_line);
    let name = text.lines().filter(|line| line.len() < LONG_LINE).find_map(named)?;
    (name.chars().count() <= LONGEST).then_some(name)
}

/// A call succeeded: errors of the same call before it are fixed, by what changed since.
fn succeeded(reader: &mut Reader<'_>, tool: &str, what: &str) {
    let mut calls = vec![called(tool, what)];
    if tool == SHELL {
        calls.extend(what.split("&&").map(|part| called(tool, part)));
    }
    let lines = &mut reader.ledger.lines;
    for at in 0..lines.len() {
        let line = &lines[at];
        if line.sort != Sort::Error || line.fixed.is_some() {
            continue;
        }
        let Some(about) = calls.iter().find(|call| same_call(&line.about, call)) else { continue };
        let since = line.seq;
        let by = lines.iter().rev().find(|line| line.sort == Sort::Path && line.seq > since);
        let by = by.map_or(String::new(), |by| format!(" since {} changed", by.text));
        // Called in another way, that is what did it.
        let set = about.strip_suffix(bare(about)).unwrap_or_default().trim_end();
        let other = bare(about) != bare(&line.about);
        let fixed = match () {
            () if *about == line.about || redact::keys(about) != *about => match by.as_str() {
                "" => "which passes now".to_owned(),
                by => format!("which passes{by}"),
            },
            () if other => format!("which passes as `{about}`{by}"),
            () if set.is_empty() => format!("which passes as `{about}`"),
            () => format!("which passes with `{set}`"),
        };
        lines[at].fixed = Some(fixed);
    }
}

/// A call without the variables that are set for it.
fn bare(call: &str) -> &str {
    let mut rest = call.trim_start();
    while let Some((word, behind)) = rest.split_once(' ')
        && let Some((name, _)) = word.split_once('=')
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    {
        rest = behind.trim_start();
    }
    rest
}

fn called(tool: &str, what: &str) -> String {
    match tool == SHELL {
        true => short(what),
        false => format!("{tool} {}", short(what)).trim().to_owned(),
    }
}

/// A call in a few words: without the folder that it went to.
fn short(what: &str) -> String {
    const LONGEST: usize = 100;
    let what = match what.split_once("&&") {
        Some((folder, rest)) if folder.trim_start().starts_with("cd ") => rest,
        _ => what,
    };
    let line = lexis::one_line(what);
    let cut: String = line.chars().take(LONGEST).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

/// Whether two calls do the same: the same program and part of it, one with more options than the other.
fn same_call(a: &str, b: &str) -> bool {
    let program = |call: &str| call.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let within = |few: &str, many: &str| {
        let mut many = many.split_whitespace();
        few.split_whitespace().all(|word| many.any(|other| other == word))
    };
    let (a, b) = (bare(a), bare(b));
    a == b || program(a) == program(b) && (within(a, b) || within(b, a))
}

/// Lines of output that stand out: with a figure or a finding, in a shape that no other line of it has. The fewer there
/// are of them, the more they tell.
fn figures(reader: &mut Reader<'_>, text: &str) {
    let (head, tail) = if text.len() > 2 * LOOKED_THROUGH {
        (
            &text[..text.floor_char_boundary(LOOKED_THROUGH)],
            &text[text.ceil_char_boundary(text.len() - LOOKED_THROUGH)..],
        )
    } else {
        (text, "")
    };
    let mut shapes: HashMap<u64, u32> = HashMap::new();
    let lines = || {
        let lines = head.lines().chain(tail.lines()).map(|line| content(line).trim());
        lines.filter(|line| line.len() > 5 && line.len() < LONG_LINE)
    };
    lines().for_each(|line| *shapes.entry(shape(line)).or_default() += 1);
    let mut found: Vec<(u8, &str)> = Vec::new();
    for line in lines().filter(|line| shapes.get(&shape(line)) == Some(&1)) {
        let worth = worth(line);
        if worth > 0 && !COMMANDS.found_in(line) {
            found.push((worth, line));
        }
    }
    let dense = match found.len() {
        0..=4 => 2,
        5..=12 => 1,
        _ => 0,
    };
    // Stable: of lines that tell as much the first ones stay.
    found.sort_by_key(|(worth, _)| std::cmp::Reverse(*worth));
    for (worth, line) in found.into_iter().take(OF_ONE_RESULT) {
        let about = lexis::subject(line, true);
        reader.add((Sort::Figure, Who::Tool, worth + dense), lexis::clip(line, None), about);
    }
}

/// How much a line of output tells: a comment or a sentence, a label with a value, or nothing.
fn worth(line: &str) -> u8 {
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let comment = line.trim_start_matches(['#', '/', '*', '-', ';', '!', ' ']).len() < line.len();
    let of_words = line.split_whitespace().count();
    let code = line.ends_with([';', '{', '}', '(', ',']) || line.starts_with("use ") || line.starts_with("import ");
    // What tools say of themselves is in brackets.
    if line.starts_with('[') && line.ends_with(']') {
        return 0;
    }
    // A sentence speaks to people: of how things are, or of what must not be done.
    let tells = of_words > 3 && !code && (FINDS.found_in(line) || OBLIGES.found_in(line));
    let prose = of_words > 4 && line.ends_with(['.', '。', '!']) && !line.contains(['=', '{', '(']);
    if digits == 0 {
        let quotes = line.contains(['「', '『', '“']);
        return if tells && (comment || prose) || quotes && !code { 2 } else { 0 };
    }
    let constant = line
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word.len() > 3 && word.contains('_') && !word.bytes().any(|byte| byte.is_ascii_lowercase()));
    match () {
        () if comment && of_words > 3 || prose && tells => 3,
        () if constant && digits > 1 => {
            if code {
                2
            } else {
                3
            }
        }
        () if LABELS.found_in(line) && !code => 2,
        () if !code && digits > 1 && of_words > 2 => 2,
        () if !code && digits > 1 && of_words > 1 => 1,
        () if LABELS.found_in(line) && digits > 2 => 1,
        () => 0,
    }
}

/// A line without the number that a reader gave it.
fn content(line: &str) -> &str {
    let trimmed = line.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &trimmed[digits..];
    rest.strip_prefix(['\t', '→', '|']).filter(|_| digits > 0).unwrap_or(line)
}

/// The same for lines that differ in their digits alone.
fn shape(line: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut digit = false;
    for byte in line.bytes() {
        let is = byte.is_ascii_digit();
        if !(is && digit) {
            hash = (hash ^ u64::from(if is { b'#' } else { byte })).wrapping_mul(0x0000_0100_0000_01b3);
        }
        digit = is;
    }
    hash
}
