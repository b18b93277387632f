//! The shipped skills that fixed recipes can follow: `/commit` and `/init`. For the others a model has to understand.

use serde_json::json;

use super::{Situation, Step, bash, listed, say, tail, tool};
use crate::provider::offline::script::Part;

/// What a prompt that runs a skill asks for: its name and its arguments.
pub(super) fn invoked(prompt: &str) -> Option<(&str, &str)> {
    let line = prompt.strip_prefix('/')?;
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    plain.then_some((name, args.trim()))
}

pub(super) fn follow(situation: &Situation, name: &str, args: &str) -> Vec<Part> {
    match name.rsplit(':').next().unwrap_or(name) {
        "commit" => commit(situation, args),
        "init" => init(situation),
        _ => vec![say(format!(
            "`/{name}` contains instructions that take understanding, and I follow fixed recipes. `/model` lists models that can do it."
        ))],
    }
}

/// One changed path of `git status --porcelain=v2`.
struct Change {
    staged: char,
    unstaged: char,
    path: String,
}

/// What git says of the work tree.
#[derive(Default)]
struct State {
    /// None: HEAD is detached.
    branch: Option<String>,
    first: bool,
    changes: Vec<Change>,
    untracked: Vec<String>,
    unmerged: Vec<String>,
}

impl State {
    fn read(text: &str) -> State {
        let mut state = State::default();
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let path = |fields: usize| {
                let path = rest.splitn(fields, ' ').nth(fields - 1).unwrap_or_default();
                path.split('\t').next().unwrap_or_default().to_owned()
            };
            let mut marks = rest.chars();
            let mut mark = || marks.next().unwrap_or('.');
            match kind {
                "#" if rest == "branch.oid (initial)" => state.first = true,
                "#" => {
                    let head = rest.strip_prefix("branch.head ").filter(|head| *head != "(detached)");
                    state.branch = head.map(str::to_owned).or(state.branch);
                }
                "1" => state.changes.push(Change { staged: mark(), unstaged: mark(), path: path(8) }),
                "2" => state.changes.push(Change { staged: mark(), unstaged: mark(), path: path(9) }),
                "u" => state.unmerged.push(path(10)),
                "?" => state.untracked.push(rest.to_owned()),
                _ => {}
            }
        }
        state
    }

    fn staged(&self) -> Vec<&Change> {
        self.changes.iter().filter(|change| change.staged != '.').collect()
    }

    /// Paths that could be staged.
    fn left(&self) -> Vec<&str> {
        let changed = self.changes.iter().filter(|change| change.unstaged != '.').map(|change| change.path.as_str());
        changed.chain(self.untracked.iter().map(String::as_str)).collect()
    }
}

fn commit(situation: &Situation, wanted: &str) -> Vec<Part> {
    let ran = |start: &str| -> Vec<&Step<'_>> {
        situation.of_tool("Bash").filter(|step| step.input("command").starts_with(start)).collect()
    };
    let (statuses, adds) = (ran("git status --porcelain"), ran("git add"));
    let ask = || bash("git status --porcelain=v2 --branch", "Show the working tree status");
    let Some(status) = statuses.last() else {
        let log = bash("git log -n 12 --format=%s", "Show how commits are written here");
        let under_way = bash("git status --long --untracked-files=no", "Show what is in progress");
        return vec![say("Looking at the repository."), ask(), under_way, log];
    };
    if !status.ok() {
        let text = status.text();
        return vec![say(if text.contains("not a git repository") {
            "This folder is not a git repository, so there is nothing to commit to. `git init` makes one.".to_owned()
        } else {
            format!("git could not report the state of the repository:\n\n{}", tail(&text, 5))
        })];
    }
    let state = State::read(&status.text());
    if !state.unmerged.is_empty() {
        return vec![say(format!(
            "Nothing was committed: these paths have conflicts.\n\n{}\nResolve and stage them first.",
            list(&state.unmerged)
        ))];
    }
    if let Some(add) = adds.last() {
        if !add.ok() {
            return vec![say(format!("Staging failed:\n\n{}", tail(&add.text(), 5)))];
        }
        if statuses.len() < 2 {
            return vec![ask()];
        }
    } else if let Some(command) = staging(wanted, &state) {
        return vec![say("Staging what you asked for."), bash(&command, "Stage the changes")];
    }
    let staged = state.staged();
    let under_way = ran("git status --long").first().map(|step| step.text()).unwrap_or_default();
    let merging = under_way.contains("still merging");
    if let Some(what) = ["rebase", "cherry-pick", "revert", "am"]
        .iter()
        .find(|what| under_way.contains(&format!("git {what} --continue")))
    {
        return vec![say(format!(
            "Nothing was committed: a {what} is in progress. `git {what} --continue` concludes it with its own message, \
             `git {what} --abort` abandons it."
        ))];
    }
    if staged.is_empty() && !merging {
        return vec![say(match state.left()[..] {
            [] => "Nothing to commit: the working tree is clean.".to_owned(),
            ref left => format!(
                "Nothing was committed because nothing is staged. These files have changes:\n\n{}\nStage what belongs \
                 together, or type `/commit everything` or `/commit <path>`.",
                list(left)
            ),
        })];
    }
    let subjects = ran("git log -n 12").first().filter(|step| step.ok()).map(|step| step.text()).unwrap_or_default();
    let heads = ran("git log -n 1 --format='%h %D' MERGE_HEAD");
    if merging && heads.is_empty() {
        return vec![bash("git log -n 1 --format='%h %D' MERGE_HEAD", "Show what is being merged")];
    }
    let given = Some(wanted).filter(|wanted| !wanted.is_empty() && adds.is_empty());
    let subject = given.map_or_else(
        || match heads.first() {
            Some(head) => merged(&head.text()),
            None => subject(&state, &staged, &subjects),
        },
        str::to_owned,
    );
    let commits = ran("git commit");
    if commits.is_empty() && looks(wanted) {
        let subject = given.map_or(subject, |_| self::subject(&state, &staged, &subjects));
        return vec![say(format!(
            "A message for what is staged ({}):\n\n```text\n{subject}\n```\n\nNothing was committed: `/commit` does that.",
            counted(staged.len())
        ))];
    }
    let Some(made) = commits.first() else {
        let quoted = subject.replace('\'', r"'\''");
        return vec![
            say(format!("Committing {} as “{subject}”.", counted(staged.len()))),
            bash(&format!("git commit -m '{quoted}'"), "Commit what is staged"),
        ];
    };
    let subject = made.input("command").trim_start_matches("git commit -m ").trim_matches('\'').replace(r"'\''", "'");
    if !made.ok() {
        return vec![say(format!(
            "Nothing was committed. git or a hook rejected it:\n\n{}\n\nThe message, for the next try:\n\n```text\n{subject}\n```\n\nYour staged changes are still staged.",
            tail(&made.text(), 15)
        ))];
    }
    let Some(shown) = ran("git log -n 1 --stat").first().copied() else {
        return vec![bash("git log -n 1 --stat --format='%h %s'", "Show the commit")];
    };
    let mut text = format!("Committed:\n\n{}", tail(&shown.text(), 20));
    if let (None, false) = (&state.branch, state.first) {
        text.push_str("\n\nHEAD is detached: no branch contains this commit. `git switch -c <name>` creates one.");
    }
    let left = state.left().len();
    if left > 0 {
        text.push_str(&format!("\n\nNot committed: {} with changes.", counted(left)));
    }
    vec![say(text)]
}

/// Whether the words behind `/commit` ask to look only, and are not a message.
fn looks(wanted: &str) -> bool {
    let lower = wanted.to_lowercase();
    let says = [
        "dry run",
        "dry-run",
        "don't commit",
        "do not commit",
        "without committing",
        "not yet",
        "only show",
        "just show",
    ];
    wanted.starts_with('-') && !lower.starts_with("-m")
        || wanted.ends_with('?')
        || says.iter().any(|words| lower.contains(words))
}

/// The subject of a merge as git itself writes it, of the short hash and the names of what was merged.
fn merged(head: &str) -> String {
    let (hash, names) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
    match names.split(", ").find(|name| !name.is_empty() && !name.starts_with("tag: ") && *name != "HEAD") {
        Some(name) => format!("Merge branch '{name}'"),
        None => format!("Merge commit '{hash}'"),
    }
}

/// The command that stages what the user named; none when they named no files.
fn staging(wanted: &str, state: &State) -> Option<String> {
    if state.left().is_empty() {
        return None;
    }
    if matches!(wanted.to_lowercase().as_str(), "all" | "everything" | "-a" | "--all") {
        return Some("git add --all".to_owned());
    }
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let known = |word: &&str| state.left().iter().any(|path| path.trim_end_matches('/') == word.trim_end_matches('/'));
    let all = !words.is_empty() && words.iter().all(known);
    all.then(|| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        format!("git add -- {}", quoted.join(" "))
    })
}

/// A subject in the manner of earlier ones.
fn subject(state: &State, staged: &[&Change], earlier: &str) -> String {
    if state.first {
        return "Initial commit".to_owned();
    }
    let verb = match staged.iter().map(|change| change.staged).collect::<Vec<_>>()[..] {
        ref marks if marks.iter().all(|mark| *mark == 'A') => "Add",
        ref marks if marks.iter().all(|mark| *mark == 'D') => "Remove",
        ref marks if marks.iter().all(|mark| *mark == 'R') => "Rename",
        _ => "Update",
    };
    let what = match staged {
        [one] => one.path.clone(),
        [one, other] => format!("{} and {}", one.path, other.path),
        more => counted(more.len()),
    };
    let plain = format!("{verb} {what}");
    let subjects: Vec<&str> = earlier.lines().collect();
    let most = |of: &dyn Fn(&&&str) -> bool| 2 * subjects.iter().filter(of).count() > subjects.len();
    let lower = |text: &str| text.chars().next().is_some_and(char::is_lowercase);
    let prefix = |text: &str| text.split_once(": ").map(|(prefix, _)| prefix.to_owned()).filter(|p| !p.contains(' '));
    let usual = |text: &str| {
        let kinds = ["feat", "fix", "chore", "docs", "refactor", "test", "build", "ci", "perf", "style"];
        prefix(text).is_some_and(|prefix| kinds.contains(&prefix.split(['(', '!']).next().unwrap_or_default()))
    };
    let small = |text: &str| text[..1].to_lowercase() + &text[1..];
    if most(&|text| usual(text)) {
        let docs = staged.iter().all(|change| change.path.ends_with(".md"));
        return format!("{}: {}", if docs { "docs" } else { "chore" }, small(&plain));
    }
    if most(&|text| prefix(text).is_some()) {
        let area = staged[0].path.split(['/', '.']).find(|part| !part.is_empty()).unwrap_or("repo");
        return format!("{area}: {}", small(&plain));
    }
    if most(&|text| lower(text)) { small(&plain) } else { plain }
}

fn counted(files: usize) -> String {
    format!("{files} file{}", if files == 1 { "" } else { "s" })
}

fn list(paths: &[impl AsRef<str>]) -> String {
    paths.iter().take(20).map(|path| format!("- `{}`\n", path.as_ref())).collect()
}

/// Commands of usual kinds of projects, by the file that gives them away.
const COMMANDS: &[(&str, &[&str])] = &[
    ("justfile", &["just --list"]),
    ("Makefile", &["make", "make test"]),
    ("Cargo.toml", &["cargo build", "cargo test", "cargo clippy --all-targets", "cargo fmt"]),
    ("package.json", &["npm install", "npm test"]),
    ("pyproject.toml", &["python -m pytest"]),
    ("go.mod", &["go build ./...", "go test ./...", "go vet ./..."]),
    ("pom.xml", &["mvn verify"]),
    ("build.gradle", &["./gradlew build"]),
];

fn init(situation: &Situation) -> Vec<Part> {
    let Some(folder) = situation.of_tool("LS").next() else {
        return vec![say("Looking at the project."), tool("LS", json!({ "path": "." }))];
    };
    let names = listed(&folder.text());
    if let Some(file) = names.iter().find(|name| matches!(name.as_str(), "AGENTS.md" | "CLAUDE.md")) {
        return vec![say(format!(
            "`{file}` already exists. Improving it takes understanding, and I follow fixed recipes; `/model` lists models that can do it."
        ))];
    }
    match situation.of_tool("Write").next() {
        None => {
            let commands: Vec<String> = COMMANDS
                .iter()
                .filter(|(file, _)| names.iter().any(|name| name == file))
                .flat_map(|(_, commands)| commands.iter().map(|command| format!("- `{command}`\n")))
                .collect();
            let title = situation.cwd.rsplit('/').next().unwrap_or("This project");
            let mut text = format!("# {title}\n");
            if !commands.is_empty() {
                text.push_str(&format!("\n## Commands\n\n{}", commands.concat()));
            }
            let hidden = |name: &&String| !name.starts_with('.') && *name != "target" && *name != "node_modules";
            let places: Vec<String> =
                names.iter().filter(hidden).take(20).map(|name| format!("- `{name}`\n")).collect();
            text.push_str(&format!("\n## Layout\n\n{}", places.concat()));
            vec![say("Writing `AGENTS.md`."), tool("Write", json!({ "file_path": "AGENTS.md", "content": text }))]
        }
        Some(step) if step.ok() => vec![say(
            "Wrote `AGENTS.md` with the usual commands and the layout. What only you know is missing: rules, pitfalls, and reasons.",
        )],
        Some(step) => vec![say(format!("The write failed: {}", step.text()))],
    }
}
