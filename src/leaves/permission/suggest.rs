//! Rules that a dialog may offer: narrow enough that "don't ask again" means what it shows.

use super::commands::{commit, danger};
use super::decide::{EARLIER, Query, place};
use super::files::Files;
use super::rule::{Entry, Rule, Strictness};
use super::shell::{Simple, Word};
use super::vocabulary::Matches;
use super::{Access, Behavior};
use crate::sandbox::proxy::Contact;
use crate::stdx::host::Pattern;

/// One rule for each simple command that asks; for files the folder; for fetches the host. Empty when none is narrow
/// enough.
pub(super) fn rules(query: &Query, files: &dyn Files) -> Vec<Rule> {
    if stays(query, files) {
        return Vec::new();
    }
    let texts = match query.access {
        Access::Write { path } if query.places.protected(path, files).is_none() => {
            folder(query, Matches::Editing, path, files)
        }
        Access::Read { path } | Access::Search { root: path } if query.places.private(path, files).is_none() => {
            folder(query, Matches::Reading, path, files)
        }
        Access::Fetch { url } => match place(url) {
            Some((host, _)) => vec![format!("{}(domain:{host})", query.tool)],
            None => Vec::new(),
        },
        Access::Connect(Contact { host, port, .. }) => {
            vec![format!("{}(domain:{})", query.vocabulary.tool(Matches::Domain), Pattern::of(host, *port))]
        }
        Access::WebSearch | Access::Foreign { .. } => vec![query.tool.to_owned()],
        Access::Sessions => vec![format!("{}({EARLIER})", query.tool)],
        Access::Agent { kind: name, .. } | Access::Skill { name } => vec![format!("{}({name})", query.tool)],
        // Those of a line come with the decision about it.
        Access::Shell { .. } => Vec::new(),
        Access::Free | Access::Read { .. } | Access::Search { .. } | Access::Write { .. } => Vec::new(),
    };
    texts.iter().filter_map(|text| query.vocabulary.rule(text).ok()).collect()
}

/// Whether it would be asked whatever is allowed: by an ask rule, or because of rules that cannot be read.
fn stays(query: &Query, files: &dyn Files) -> bool {
    let tool = query.tool;
    let asks = |entry: &Entry| match query.access {
        Access::Read { path } | Access::Write { path } | Access::Search { root: path } => {
            entry.rule.covers_path(tool, path, Strictness::Possible, query.places, files)
        }
        Access::Fetch { url } => entry.rule.covers_host(place(url).as_ref().map(|(host, port)| (host, *port))),
        Access::Connect(contact) => entry.rule.covers_contact(contact),
        Access::Agent { kind: name, .. } | Access::Skill { name } => entry.rule.covers_name(tool, Some(name)),
        Access::Sessions => entry.rule.covers_name(tool, Some(EARLIER)),
        Access::WebSearch | Access::Foreign { .. } => entry.rule.covers_name(tool, None),
        // Each of its commands is looked at.
        Access::Shell { .. } | Access::Free => false,
    };
    !query.rules.broken().is_empty() || query.entries(Behavior::Ask).any(asks)
}

/// `Edit(/src/**)` for a file in the project's `src`, the file alone for one in the project's own folder, where the folder
/// would be everything; an absolute pattern outside of it.
fn folder(query: &Query, matches: Matches, path: &std::path::Path, files: &dyn Files) -> Vec<String> {
    let real = files.resolve(path);
    let project = files.resolve(&query.places.project);
    let Some(folder) = (match query.access {
        Access::Search { .. } => Some(real.as_path()),
        _ => real.parent(),
    }) else {
        return Vec::new();
    };
    let text = match (folder.strip_prefix(&project), folder.to_str()) {
        (Ok(below), _) => match below.to_str() {
            Some("") => match real.file_name().and_then(|name| name.to_str()) {
                Some(name) if real != project => format!("/{name}"),
                _ => return Vec::new(),
            },
            Some(below) => format!("/{below}/**"),
            None => return Vec::new(),
        },
        // A whole disk or a whole home is not a narrow rule.
        (Err(_), Some(text)) if folder.components().count() > 2 && query.places.home.as_deref() != Some(folder) => {
            format!("/{text}/**")
        }
        _ => return Vec::new(),
    };
    if text.contains(['[', '?']) || text.trim_end_matches("**").contains('*') {
        return Vec::new();
    }
    vec![format!("{}({text})", query.vocabulary.tool(matches))]
}

/// Programs that run whatever they are given: only the very line would be narrow, and not even that for the first few.
const NEVER: [&str; 28] = [
    "sudo", "doas", "su", "env", "eval", "exec", "xargs", "bash", "sh", "zsh", "dash", "fish", "ssh", "source", ".",
    "builtin", "command", "nohup", "watch", "parallel", "script", "trap", "alias", "export", "timeout", "nice",
    "stdbuf", "time",
];

/// First words behind which every argument still does what these words say: they look, build or test. What runs, installs,
/// sends or throws away whatever it is given is offered as the very line.
const NARROW: &[&str] = &[
    "cargo bench",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo doc",
    "cargo fmt",
    "cargo test",
    "docker images",
    "docker logs",
    "docker ps",
    "gh issue list",
    "gh issue view",
    "gh pr checks",
    "gh pr diff",
    "gh pr list",
    "gh pr view",
    "gh run list",
    "gh run view",
    "git add",
    // Not the rest of it: amending and skipping hooks are other questions.
    "git commit -m",
    "go build",
    "go test",
    "go vet",
    "pytest",
    "ruff check",
    "ruff format",
    "shellcheck",
];

/// The rule for one simple command, as text.
pub(super) fn command(tool: &str, words: &[Word]) -> Option<String> {
    let texts: Vec<String> = words.iter().map(Word::literal).collect::<Option<_>>()?;
    let name = texts.first()?.as_str();
    // The bare name of a program with subcommands tells nothing.
    let bare = texts.len() == 1 && NARROW.iter().any(|narrow| narrow.starts_with(&format!("{name} ")));
    if NEVER.contains(&name) || bare {
        return None;
    }
    let begins = |narrow: &&&str| {
        let mut wanted = narrow.split(' ');
        texts.iter().zip(&mut wanted).all(|(text, want)| text == want) && wanted.next().is_none()
    };
    let covers = |narrow: &&&str| {
        let named: Vec<String> = narrow.split(' ').map(str::to_owned).collect();
        danger::dangers(&texts).is_empty() && !commit::exceeds(&named, &texts)
    };
    if let Some(narrow) = NARROW.iter().find(begins).filter(covers) {
        return Some(format!("{tool}({narrow}:*)"));
    }
    let line = Simple::canonical(words);
    (!line.contains(['*', '\n']) && line.len() <= 300).then(|| format!("{tool}({line})"))
}

#[cfg(test)]
mod tests {
    use super::super::commands::plain;
    use super::*;

    #[test]
    fn suggestions_are_narrow() {
        for (line, want) in [
            ("git commit -m x", Some("Bash(git commit -m:*)")),
            ("git commit -m x -a", Some("Bash(git commit -m x -a)")),
            ("git commit --amend", Some("Bash(git commit --amend)")),
            ("git commit --amend -m x", Some("Bash(git commit --amend -m x)")),
            ("git push --force", Some("Bash(git push --force)")),
            ("git push", Some("Bash(git push)")),
            ("git checkout -f", Some("Bash(git checkout -f)")),
            ("git add src", Some("Bash(git add:*)")),
            ("git", None),
            ("git -C x commit", Some("Bash(git -C x commit)")),
            ("cargo test foo", Some("Bash(cargo test:*)")),
            ("cargo test --config x", Some("Bash(cargo test --config x)")),
            ("cargo +x test", Some("Bash(cargo +x test)")),
            ("cargo run", Some("Bash(cargo run)")),
            ("cargo install x", Some("Bash(cargo install x)")),
            ("npm run build", Some("Bash(npm run build)")),
            ("npm install x", Some("Bash(npm install x)")),
            ("npx x", Some("Bash(npx x)")),
            ("uv run python -c x", Some("Bash(uv run python -c x)")),
            ("uv run x", Some("Bash(uv run x)")),
            ("docker run x", Some("Bash(docker run x)")),
            ("docker compose up", Some("Bash(docker compose up)")),
            ("docker exec x ls", Some("Bash(docker exec x ls)")),
            ("docker logs x", Some("Bash(docker logs:*)")),
            ("kubectl get pods", Some("Bash(kubectl get pods)")),
            ("kubectl exec x ls", Some("Bash(kubectl exec x ls)")),
            ("make", Some("Bash(make)")),
            ("make x", Some("Bash(make x)")),
            ("go run x", Some("Bash(go run x)")),
            ("go test -exec=x", Some("Bash(go test -exec=x)")),
            ("terraform apply", Some("Bash(terraform apply)")),
            ("gh pr view 1", Some("Bash(gh pr view:*)")),
            ("gh pr merge 1", Some("Bash(gh pr merge 1)")),
            ("gh api x", Some("Bash(gh api x)")),
            ("timeout 5 x", None),
            ("xargs rm", None),
            ("npm exec foo", Some("Bash(npm exec foo)")),
            ("python x.py", Some("Bash(python x.py)")),
            ("bash -c ls", None),
            ("sudo ls", None),
            ("env", None),
            ("rm x", Some("Bash(rm x)")),
            ("find . -delete", Some("Bash(find . -delete)")),
            ("pytest -q", Some("Bash(pytest:*)")),
            ("eslint -c x", Some("Bash(eslint -c x)")),
        ] {
            let words: Vec<Word> = line.split(' ').map(plain).collect();
            assert_eq!(command("Bash", &words).as_deref(), want, "{line}");
        }
    }
}
