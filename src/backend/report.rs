//! What commands have found, in words: Markdown for the screen and for `cocode -p`, lines for `cocode doctor`.

pub mod cache;
pub mod compaction;
pub mod plugins;
mod sandbox;
pub mod servers;
mod tasks;
mod window;

pub use self::tasks::load;

use std::fmt::Write;
use std::path::Path;

use crate::agents::AgentRow;
use crate::commands::report::SkillList;
use crate::hooks;
use crate::message::{FileDiff, Todo, TodoStatus};
use crate::protocol::report::{
    Agents, Cost, Ended, Finding, Holds, PlanMode, Report, Setting, SettingChanged, Settings, State, Status, Verdict,
};
use crate::protocol::{Access, Changes, MemoryRow, ModelList, RuleRow, SessionRow, ThinkingInfo};
use crate::stdx::ansi::{shown, visible};
use crate::stdx::text::{self, grouped, short};
use crate::thinking::Source;

/// Sessions that are listed, the newest ones.
const SESSIONS: usize = 20;

/// A report as Markdown.
pub fn markdown(report: &Report) -> String {
    match report {
        Report::Commands(registry) => registry.help(),
        Report::Models(rows) => models(rows),
        Report::Thinking(info) => thinking(info),
        Report::Rules(rows) => rules(rows),
        Report::Verdict(verdict) => self::verdict(verdict),
        Report::Sessions(rows) => sessions(rows),
        Report::Window(window) => window.draw(),
        Report::Cost(cost) => self::cost(cost),
        Report::Broken(broken) => cache::why(broken),
        Report::Changes(changes) => self::changes(changes),
        Report::Todos(items) => todos(items),
        Report::Tasks(rows) => tasks::tasks(rows),
        Report::Settings(settings) => self::settings(settings),
        Report::SettingChanged(change) => setting_changed(change),
        Report::Skills(list) => skills(list),
        Report::Doctor(findings) => examined(findings),
        Report::BugReport(file) => bug_report(file),
        Report::Hooks(rows) => self::hooks(rows),
        Report::Plugins(rows) => plugins::words(rows),
        Report::Status(status) => self::status(status),
        Report::Sandbox(report) => sandbox::words(report),
        Report::Agents(agents) => self::agents(agents),
        Report::Servers(rows) => servers::words(rows),
        Report::ServersChanged(change) => servers::changed(change),
        Report::Memory(rows) => memory(rows),
        Report::Plan(plan) => self::plan(plan),
        Report::Freed(freed) => compaction::freed(freed),
        Report::Ended(ended) => self::ended(ended),
    }
}

/// Text that keeps its lines.
pub fn fenced(text: &str) -> String {
    format!("```\n{}\n```", text.trim_end().replace("```", "'''"))
}

/// The findings of the doctor for a terminal: one line each.
pub fn doctor(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| {
        let (mark, text) = found(finding);
        format!("{mark:<4}  {:<10} {text}\n", finding.area)
    });
    lines.collect()
}

/// The same as Markdown, whose lists wrap at words.
fn examined(findings: &[Finding]) -> String {
    list(findings, |finding| {
        let (mark, text) = found(finding);
        format!("- {mark} **{}** {text}", finding.area)
    })
}

fn found(finding: &Finding) -> (&'static str, String) {
    let mark = match finding.state {
        State::Good => "ok",
        State::Limited => "note",
        State::Bad => "FAIL",
    };
    // File names and variables are untrusted bytes.
    (mark, visible(&finding.text).replace('\n', " "))
}

fn list<T>(rows: &[T], line: impl FnMut(&T) -> String) -> String {
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn models(list: &ModelList) -> String {
    let mut text = String::from("`/model <name>` switches:\n");
    let used = |current| if current { " (in use)" } else { "" };
    for row in &list.providers {
        let _ = match row.access {
            Access::Offline => write!(text, "\n- `offline`: {}{}", access(&row.access), used(row.current)),
            _ => write!(text, "\n- {}: {}", row.title, access(&row.access)),
        };
        for model in &row.models {
            let _ = write!(text, "\n  - `{}`: {}{}", model.id, model.detail, used(model.current));
        }
    }
    text
}

/// Whether a provider can be asked, in words.
pub fn access(access: &Access) -> String {
    let ports = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    match access {
        Access::Key { from } => format!("key from {from}"),
        Access::Open => "no key needed".to_owned(),
        Access::NoKey => "no key".to_owned(),
        Access::Refused { from: Some(from), why } => format!("{why} ({from})"),
        Access::Refused { from: None, why } => why.clone(),
        Access::Server { url } => format!("server at {url}"),
        Access::NoServer { ports: tried, asked: true } => format!("no server on {}", ports(tried)),
        Access::NoServer { asked: false, .. } => "not looked for".to_owned(),
        Access::Offline => "fixed recipes, no network".to_owned(),
    }
}

/// What holds, why, and what else there is.
fn thinking(info: &ThinkingInfo) -> String {
    let mut text = format!("Thinking: **{}**", info.level);
    if let Some(budget) = info.budget {
        let _ = write!(text, ", at most {budget} tokens");
    }
    let source = match (info.source, &info.locked) {
        (Source::Environment, variable) => format!("by {}", variable.as_deref().unwrap_or("the environment")),
        (Source::Session, _) => "for this session (`/thinking auto` resets it)".into(),
        (Source::Flag, _) => "by `--thinking`".into(),
        (Source::Configuration, _) => "by the setting `thinking.default_level`".into(),
        (Source::Model, _) => "as the default of this model".into(),
        (Source::Keyword, _) => "by a word in the message".into(),
        (Source::Default, _) => String::new(),
    };
    if !source.is_empty() {
        let _ = write!(text, ", chosen {source}");
    }
    text.push('.');
    if info.asked != info.level {
        let _ = write!(text, " {} was requested, but this model does not support it.", info.asked);
    }
    let known: Vec<String> = info.supported.iter().map(|level| format!("`{level}`")).collect();
    let _ = write!(text, "\n\nThis model supports {}.", known.join(", "));
    let words: Vec<String> = [&info.keywords.deep, &info.keywords.ultra]
        .into_iter()
        .filter_map(|words| words.first())
        .map(|word| format!("`{word}`"))
        .collect();
    if info.supported.len() > 1 && !words.is_empty() {
        let _ = write!(text, " {} in a message applies to that message.", words.join(" or "));
    }
    text
}

fn rules(rows: &[RuleRow]) -> String {
    if rows.is_empty() {
        return "No permission rules are set. Everything that is not read-only asks.".into();
    }
    list(rows, |row| format!("- {} `{}` ({})", row.behavior.name(), row.rule, row.source))
}

fn verdict(Verdict { command, behavior, reasons }: &Verdict) -> String {
    format!("`{command}`: **{}**\n\n{}", behavior.name(), list(reasons, |reason| format!("- {reason}")))
}

fn sessions(rows: &[SessionRow]) -> String {
    if rows.is_empty() {
        return "No earlier sessions in this folder.".into();
    }
    format!(
        "Earlier sessions in this folder, newest first; `/resume <id or words>` continues one:\n\n{}",
        list(&rows[..rows.len().min(SESSIONS)], |row| format!("- `{}` {}", row.id, row.title))
    )
}

/// The receipt of a session: what was done, what it cost, and how to continue.
fn ended(ended: &Ended) -> String {
    let plural = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let mut done = vec![plural(ended.prompts, "prompt")];
    if ended.files > 0 {
        let lines = format!("(+{} −{})", ended.added, ended.removed);
        done.push(format!("{} changed {lines}", plural(ended.files, "file")));
    }
    if ended.commands > 0 {
        done.push(plural(ended.commands, "command"));
    }
    done.push(match ended.cost_usd {
        Some(cost) if cost > 0.0 => format!("${cost:.2}"),
        _ => format!("{} tokens", short(ended.tokens)),
    });
    let title = text::truncate(&text::clean_line(&ended.title), 60).into_owned();
    let mut lines = format!("Session \"{title}\": {}\nresume: cocode -c", done.join(" · "));
    if ended.files > 0 {
        let _ = write!(lines, "     undo all: cocode undo {}", ended.session.get(..8).unwrap_or(&ended.session));
    }
    lines
}

fn cost(cost: &Cost) -> String {
    if cost.models.is_empty() {
        return "No request to a model has finished yet.".into();
    }
    let mut text = String::from("| Model | Input | Cached | Output | Cost |\n|---|--:|--:|--:|--:|\n");
    for row in &cost.models {
        let usd = match row.usd {
            Some(0.0) => "free".to_owned(),
            Some(usd) => format!("${usd:.4}"),
            None => "unknown".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {usd} |",
            row.model,
            grouped(row.usage.input + row.usage.cache_write),
            grouped(row.usage.cache_read),
            grouped(row.usage.output)
        );
    }
    match cost.models.iter().map(|row| row.usd).sum::<Option<f64>>() {
        Some(sum) if cost.models.len() > 1 => {
            let _ = write!(text, "\nTogether ${sum:.4}.");
        }
        Some(_) => {}
        None => text.push_str("\nThe catalog has no price for models marked unknown."),
    }
    for spent in &cost.beside {
        let (input, output) = (grouped(spent.usage.input), grouped(spent.usage.output));
        let _ = write!(text, "\n- {} with {}: {input} tokens in, {output} out", spent.what, spent.model);
    }
    cache::summary(&mut text, &cost.cache);
    text
}

fn changes(Changes { session, uncommitted, scopes: _ }: &Changes) -> String {
    let mut text = String::new();
    match session.as_slice() {
        [] => text.push_str("This session has not changed any files with its tools.\n"),
        files => section(&mut text, "Changed in this session", files),
    }
    match uncommitted.as_deref() {
        None => {}
        Some([]) => text.push_str("\ngit: nothing to commit.\n"),
        Some(files) => section(&mut text, "Not committed", files),
    }
    text
}

fn section(text: &mut String, title: &str, files: &[FileDiff]) {
    let _ = writeln!(text, "{}**{title}**\n", if text.is_empty() { "" } else { "\n" });
    for file in files {
        let new = if file.created { ", new" } else { "" };
        let _ = writeln!(text, "`{}` (+{} −{}{new})\n", file.path.replace('`', "'"), file.added, file.removed);
        if !file.unified.is_empty() {
            // The text may hold a fence of its own.
            let fence = "`".repeat(longest_run(&file.unified).max(2) + 1);
            let _ = writeln!(text, "{fence}diff\n{}\n{fence}\n", file.unified.trim_end());
        }
    }
}

/// The longest run of backquotes.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

fn todos(items: &[Todo]) -> String {
    if items.is_empty() {
        return "The agent has no todo list.".into();
    }
    let done = items.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    items.iter().fold(format!("Todos: {done} of {}", items.len()), |mut text, todo| {
        let (mark, words) = todo.line();
        // A break that is not seen where the text is printed as it is.
        let _ = write!(text, "  \n{mark} {words}");
        text
    })
}

/// One key, or every key that somebody set.
fn settings(Settings { key, settings, file }: &Settings) -> String {
    let explained = fenced(&explained(settings));
    let set = match (key, settings.as_slice()) {
        (Some(_), _) => return explained,
        (None, []) => "All settings have their defaults.".to_owned(),
        (None, _) => format!("Settings that differ from the defaults, with their sources:\n\n{explained}"),
    };
    format!(
        "{set}\n\n`/config tui` explains a table or a key, `/config tui.theme light` sets one in `{}`.",
        file.display()
    )
}

/// Values, where each is from, and what it won over: a line each.
pub fn explained(settings: &[Setting]) -> String {
    let mut text = String::new();
    for Setting { key, value, given, adds_up } in settings {
        let _ = match value {
            Some(value) => writeln!(text, "{key} = {value}"),
            None => writeln!(text, "{key} is not set"),
        };
        for (index, given) in given.iter().enumerate() {
            let _ = match (adds_up, index) {
                (true, _) => writeln!(text, "  {} from {}", given.value, given.place),
                (false, 0) => writeln!(text, "  from {}", given.place),
                (false, _) => writeln!(text, "  overrides {} from {}", given.value, given.place),
            };
        }
    }
    shown(&text)
}

fn setting_changed(SettingChanged { key, settings, file, holds }: &SettingChanged) -> String {
    let now = match key.as_str() {
        "model" => "; `/model` changes the one in use",
        "permissions.default_mode" => "; Shift+Tab changes the one in use",
        _ => "",
    };
    let holds = match holds {
        Holds::Now => String::new(),
        Holds::NextSession => "\n\nThis takes effect in the next session.".to_owned(),
        Holds::NextStart => format!("\n\nThis takes effect at the next start{now}."),
    };
    let file = file.display().to_string();
    match settings.as_slice() {
        // What was written counts: there is nothing to explain.
        [Setting { value: Some(value), given, .. }]
            if given.first().is_some_and(|given| given.place.contains(&file)) =>
        {
            format!("`{key} = {value}`, saved to `{file}`.{holds}")
        }
        _ => format!("Written to `{file}`.\n\n{}{holds}", fenced(&explained(settings))),
    }
}

/// Every skill, the strongest source first.
pub fn skills(SkillList { rows, dropped, problems, errors }: &SkillList) -> String {
    let mut text = match rows.len() {
        0 => "No skills yet; `cocode skills new <name>` creates one.".to_owned(),
        1 => "One skill:\n\n".to_owned(),
        count => format!("{count} skills, highest priority first:\n\n"),
    };
    for row in rows {
        let place = row.path.as_ref().map(|path| format!(" (`{}`)", path.display())).unwrap_or_default();
        let _ = writeln!(text, "- `{}` — {}{place}", row.command.as_ref().unwrap_or(&row.name), row.detail);
    }
    if !dropped.is_empty() {
        text.push_str("\nFound twice, loaded once:\n\n");
        for (dropped, first) in dropped {
            let _ = writeln!(text, "- `{}` is `{}`", dropped.display(), first.display());
        }
    }
    if *problems > 0 {
        let _ = write!(text, "\n{problems} problems, {errors} of them errors: see `cocode skills validate`.");
    }
    text
}

fn bug_report(file: &Path) -> String {
    let words = "Read it before you pass it on: it holds settings and log lines, with keys hidden, and nothing of what \
                 was said. Nothing was sent.";
    format!("Wrote the report to `{}`. {words}", file.display())
}

/// Every hook with its source and its last result.
fn hooks(rows: &[hooks::Row]) -> String {
    if rows.is_empty() {
        return "No hooks are set. `[hooks]` in config.toml and `hooks` in .claude/settings.json define them.".into();
    }
    let mut text = String::new();
    if rows.iter().any(|row| row.off) {
        text.push_str("Hooks are off (`disable_all_hooks`).\n\n");
    }
    let mut event = None;
    for row in rows {
        if event.replace(row.event) != Some(row.event) {
            let _ = writeln!(text, "{}**{}**\n", if text.is_empty() { "" } else { "\n" }, row.event);
        }
        let matcher = row.matcher.as_deref().filter(|text| !matches!(*text, "" | "*"));
        let matcher = matcher.map(|text| format!("`{text}`: ")).unwrap_or_default();
        let once = if row.once { ", once" } else { "" };
        let beside = if row.beside { ", in the background" } else { "" };
        let last = match row.last {
            Some((ended, millis)) => format!("{} after {millis} ms", ended.name()),
            None if row.off => "off".to_owned(),
            None => "has not run".to_owned(),
        };
        let command = row.command.replace('`', "'");
        let _ = writeln!(text, "- {matcher}`{command}` ({}{once}{beside}) — {last}", row.origin);
    }
    text
}

fn status(status: &Status) -> String {
    let trust = match status.withheld {
        0 => "no settings withheld".to_owned(),
        1 => "1 setting not trusted: only deny and ask rules count".to_owned(),
        count => format!("{count} settings not trusted: only deny and ask rules count"),
    };
    let rows = [
        ("cocode", status.version.clone()),
        ("Model", format!("{}, a window of {} tokens", status.model, grouped(status.window))),
        ("Mode", status.mode.label().to_owned()),
        ("Folder", format!("{} ({trust})", status.folder.display())),
        ("Session", format!("{} ({})", status.title.as_deref().unwrap_or("untitled"), status.session)),
        ("Log", status.log.display().to_string()),
        ("Context", format!("about {} of {} tokens", grouped(status.context), grouped(status.window))),
        ("Rules", format!("{} (`/permissions` lists them)", status.rules)),
        ("Settings", status.settings.display().to_string()),
    ];
    rows.iter().fold(String::from("| | |\n|---|---|\n"), |mut text, (name, value)| {
        let _ = writeln!(text, "| {name} | {} |", value.replace('|', "\\|"));
        text
    })
}

fn agents(Agents { agents, problems }: &Agents) -> String {
    let mut text = String::from("Agents the model can launch with the Task tool:\n\n");
    for agent in agents {
        let _ = writeln!(text, "- **{}** — {}\n  {}", agent.name, agent.description, notes(agent).join(" · "));
    }
    if !problems.is_empty() {
        let _ = writeln!(text, "\nProblems in files:\n\n{}", list(problems, |problem| format!("- {problem}")));
    }
    text.push_str("\nDefine your own in `.claude/agents/<name>.md`.\n");
    text
}

fn notes(agent: &AgentRow) -> Vec<String> {
    let file = |file: &Path| format!("`{}`", file.display());
    let mut notes = vec![agent.file.as_deref().map_or("built in".to_owned(), file)];
    notes.push(format!("tools: {}", agent.tools));
    notes.push(format!("model: {}", agent.model.as_deref().unwrap_or("the session's")));
    notes.extend(agent.thinking.map(|level| format!("thinking: {level}")));
    if !agent.skills.is_empty() {
        notes.push(format!("starts with {}", agent.skills.join(", ")));
    }
    if agent.read_only {
        notes.push("read-only".into());
    }
    notes.extend(agent.shadowed_by.as_ref().map(|by| match by {
        None => "**shadowed** by the built-in one".to_owned(),
        Some(by) => format!("**shadowed** by {}", file(by)),
    }));
    notes
}

fn memory(rows: &[MemoryRow]) -> String {
    let lines = |row: &MemoryRow| Some(format!("- `{}` ({} lines)", row.path.display(), row.lines?));
    let read: Vec<String> = rows.iter().filter_map(lines).collect();
    match rows {
        [own] if own.lines.is_none() => {
            format!("No memory file yet. `{}` would be read at the start of every session.", own.path.display())
        }
        _ => format!("Read at the start of a session, in this order:\n\n{}", read.join("\n")),
    }
}

fn plan(PlanMode { entered, file, lines }: &PlanMode) -> String {
    let on = if *entered { "is now on: nothing changes until you approve a plan" } else { "is on" };
    let there = lines.map(|lines| format!("The plan has {lines} lines"));
    let state = there.unwrap_or_else(|| "There is no plan yet; it will be".to_owned());
    format!("Plan mode {on}. {state} in `{}`. `/plan exit` leaves it.", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        let mut text = String::new();
        let unified = "@@ -0,0 +1 @@\n+````\n".to_owned();
        section(&mut text, "T", &[FileDiff { path: "a".into(), unified, added: 1, removed: 0, created: true }]);
        assert_eq!(text, "**T**\n\n`a` (+1 −0, new)\n\n`````diff\n@@ -0,0 +1 @@\n+````\n`````\n\n");
    }
}
