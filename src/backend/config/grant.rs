//! Writes permission rules into Claude Code's settings files: their other keys and their order stay.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::edit::replace;
use super::json::{Object, object};
use super::layer::{Problem, read_text};
use super::paths::Paths;
use super::uses;
use crate::permission::{Behavior, Use};
use crate::protocol::GrantScope;

/// Rules for one project, relative to it.
const LOCAL: &str = ".claude/settings.local.json";

/// The file that holds a scope's rules; `None` for the session's own, which live in its log.
pub fn file_of(scope: GrantScope, paths: &Paths, project: &Path) -> Option<PathBuf> {
    match scope {
        GrantScope::Session => None,
        GrantScope::Project => Some(project.join(LOCAL)),
        GrantScope::User => Some(paths.user_settings()),
    }
}

/// What granting a rule for one project adds to that project's settings.
pub fn used(project: &Path, rule: &str) -> Use {
    uses::grant(uses::Place { project, name: LOCAL }, rule)
}

/// Adds an allow rule to a settings file, and creates the file if it is missing. A rule that is there is not added twice.
///
/// # Errors
/// The file is broken or cannot be written; it is then as before.
pub fn grant(file: &Path, rule: &str) -> Result<(), Problem> {
    change(file, |settings| {
        let list = list(settings, Behavior::Allow)?;
        if !list.iter().any(|item| item == rule) {
            list.push(Json::String(rule.to_owned()));
        }
        Ok(())
    })
}

/// Takes a rule out of a settings file. False if it is not there.
///
/// # Errors
/// The file is broken or cannot be written; it is then as before.
pub fn revoke(file: &Path, behavior: Behavior, rule: &str) -> Result<bool, Problem> {
    if file.extension().is_some_and(|extension| extension == "toml") {
        let message = format!("`{rule}` is in a file of yours that cocode does not rewrite: remove it by hand");
        return Err(Problem { place: file.display().to_string(), message });
    }
    let mut found = false;
    change(file, |settings| {
        let list = list(settings, behavior)?;
        let before = list.len();
        list.retain(|item| item != rule);
        found = list.len() < before;
        Ok(())
    })?;
    Ok(found)
}

/// Changes the object of a file of another program; its other keys and their order stay.
///
/// # Errors
/// The file is broken or cannot be written; it is then as before.
pub(super) fn change(
    file: &Path,
    edit: impl FnOnce(&mut Map<String, Json>) -> Result<(), String>,
) -> Result<(), Problem> {
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    if leads_out(file) {
        return Err(problem(
            "is a link that leads out of the project: cocode does not write project rules there".into(),
        ));
    }
    let before = read_text(file)?.unwrap_or_default();
    let Object { map: mut settings, twice, strict } = object(file, &before)?;
    let original = settings.clone();
    edit(&mut settings).map_err(problem)?;
    if settings == original {
        return Ok(());
    }
    if !strict || !twice.is_empty() {
        return Err(problem(
            "has comments, trailing commas or keys twice, which cocode would lose: change it by hand".into(),
        ));
    }
    let mut text = serde_json::to_string_pretty(&settings).map_err(|error| problem(error.to_string()))?;
    text.push('\n');
    replace(file, text.as_bytes()).map_err(|error| problem(format!("cannot be written: {error}")))
}

/// Whether a project's own file lies elsewhere: a repository could bring a link to the user's settings, and a rule granted
/// for one project would hold for all. The user's own file may be a link.
pub(super) fn leads_out(file: &Path) -> bool {
    let own = file.ends_with(LOCAL) || file.ends_with(super::edit::LOCAL);
    let project = file.parent().filter(|_| own).and_then(Path::parent);
    let real = |path: &Path| path.canonicalize().ok();
    // Of a file that is still to be made its folder counts; a dangling link is made where it points to.
    let place = if file.is_symlink() { real(file) } else { real(file).or_else(|| real(file.parent()?)) };
    match (project.and_then(real), place) {
        (Some(project), Some(place)) => !place.starts_with(project),
        _ => file.is_symlink() && own,
    }
}

fn list(settings: &mut Map<String, Json>, behavior: Behavior) -> Result<&mut Vec<Json>, String> {
    let name = match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    };
    let permissions = settings.entry("permissions").or_insert(Json::Null);
    if permissions.is_null() {
        *permissions = Json::Object(Map::new());
    }
    let permissions = permissions.as_object_mut().ok_or("`permissions` must be an object")?;
    let list = permissions.entry(name).or_insert(Json::Null);
    if list.is_null() {
        *list = Json::Array(Vec::new());
    }
    list.as_array_mut().ok_or_else(|| format!("`permissions.{name}` must be a list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, rule: &str, want: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".claude/settings.local.json");
        if let Some(before) = before {
            replace(&file, before.as_bytes()).unwrap();
        }
        let done = grant(&file, rule).map_err(|problem| problem.message);
        let after = std::fs::read_to_string(&file).unwrap_or_default();
        match want {
            Ok(want) => assert_eq!((done, after.as_str()), (Ok(()), want)),
            Err(want) => assert_eq!((done, after.as_str()), (Err(want.to_owned()), before.unwrap_or_default())),
        }
    }

    #[test]
    fn a_rule_joins_what_is_there() {
        let fresh = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls:*)\"\n    ]\n  }\n}\n";
        check(None, "Bash(ls:*)", Ok(fresh));
        check(Some(""), "Bash(ls:*)", Ok(fresh));
        check(Some("null"), "Bash(ls:*)", Ok(fresh));
        check(Some(r#"{"permissions":{"allow":null}}"#), "Bash(ls:*)", Ok(fresh));
        check(Some(r#"{"permissions":null}"#), "Bash(ls:*)", Ok(fresh));
        check(Some(r#"{"permissions":{"allow":["Read"]}}"#), "Read", Ok(r#"{"permissions":{"allow":["Read"]}}"#));
        check(
            Some(r#"{"z": 1, "permissions": {"deny": ["X"], "allow": ["A"]}, "a": null}"#),
            "B",
            Ok(
                "{\n  \"z\": 1,\n  \"permissions\": {\n    \"deny\": [\n      \"X\"\n    ],\n    \"allow\": [\n      \"A\",\n      \"B\"\n    ]\n  },\n  \"a\": null\n}\n",
            ),
        );
    }

    #[test]
    fn a_broken_file_is_refused_and_kept() {
        check(Some("{"), "Read", Err("not valid JSON: EOF while parsing an object at line 1 column 1"));
        let lost = "has comments, trailing commas or keys twice, which cocode would lose: change it by hand";
        check(Some("{\n// mine\n}"), "Read", Err(lost));
        check(Some(r#"{"permissions": {"allow": ["A",]}}"#), "Read", Err(lost));
        check(Some(r#"{"a": 1, "a": 2}"#), "Read", Err(lost));
        check(Some(r#"{"permissions": {"allow": ["Read"],}}"#), "Read", Ok(r#"{"permissions": {"allow": ["Read"],}}"#));
        check(Some("[]"), "Read", Err("must hold a JSON object"));
        check(Some(r#"{"permissions": []}"#), "Read", Err("`permissions` must be an object"));
        check(Some(r#"{"permissions": {"allow": {}}}"#), "Read", Err("`permissions.allow` must be a list"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_refused() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let (one, two, mine) = (dir.path().join("one"), dir.path().join("two"), dir.path().join("settings.json"));
        let three = dir.path().join("three");
        std::fs::create_dir_all(one.join(".claude")).unwrap();
        std::fs::create_dir_all(three.join(".claude")).unwrap();
        symlink(dir.path().join("absent"), three.join(LOCAL)).unwrap();
        std::fs::create_dir_all(&two).unwrap();
        std::fs::write(&mine, "{}").unwrap();
        symlink(&mine, one.join(LOCAL)).unwrap();
        symlink(dir.path(), two.join(".claude")).unwrap();
        for project in [&one, &two, &three] {
            let problem = grant(&project.join(LOCAL), "Bash").unwrap_err();
            assert!(problem.message.contains("link that leads out of the project"), "{problem}");
        }
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "{}");
        assert!(!dir.path().join("settings.local.json").exists() && !dir.path().join("absent").exists());
    }

    #[test]
    fn a_rule_is_taken_out_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        grant(&file, "Read").unwrap();
        assert_eq!(revoke(&file, Behavior::Deny, "Read"), Ok(false));
        assert_eq!(revoke(&file, Behavior::Allow, "Read"), Ok(true));
        assert_eq!(revoke(&file, Behavior::Allow, "Read"), Ok(false));
        assert!(revoke(&dir.path().join("config.toml"), Behavior::Allow, "Read").is_err());
    }
}
