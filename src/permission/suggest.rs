//! Rules that a dialog may offer: narrow enough that "don't ask again" means what it shows.

use super::decide::Query;
use super::files::Files;
use super::rule::Rule;
use super::{Access, line};

/// One rule for each simple command that asks; for files the folder; for fetches the host. Empty when none is narrow
/// enough.
pub(super) fn rules(query: &Query, files: &dyn Files) -> Vec<Rule> {
    let texts = match query.access {
        Access::Shell { command, cwd } => line::suggestions(query, command, cwd, files),
        Access::Write { path } if query.places.protected(path, files).is_none() => folder(query, "Edit", path, files),
        Access::Read { path } | Access::Search { root: path } if query.places.private(path, files).is_none() => {
            folder(query, "Read", path, files)
        }
        Access::Fetch { url } => match url::Url::parse(url).ok().as_ref().and_then(url::Url::host_str) {
            Some(host) => vec![format!("WebFetch(domain:{host})")],
            None => Vec::new(),
        },
        Access::WebSearch => vec!["WebSearch".to_owned()],
        Access::Other { specifier: None, .. } => vec![query.tool.to_owned()],
        Access::Other { specifier: Some(name), .. } => vec![format!("{}({name})", query.tool)],
        Access::Free | Access::Read { .. } | Access::Search { .. } | Access::Write { .. } => Vec::new(),
    };
    texts.iter().filter_map(|text| Rule::parse(text).ok()).collect()
}

/// `Edit(/src/**)` for a file in the project's `src`; an absolute pattern outside of it.
fn folder(query: &Query, tool: &str, path: &std::path::Path, files: &dyn Files) -> Vec<String> {
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
            Some("") => "/**".to_owned(),
            Some(below) => format!("/{below}/**"),
            None => return Vec::new(),
        },
        // A whole disk or a whole home is no narrow rule.
        (Err(_), Some(text)) if folder.components().count() > 2 && query.places.home.as_deref() != Some(folder) => {
            format!("/{text}/**")
        }
        _ => return Vec::new(),
    };
    if text.contains(['[', '?']) || text.trim_end_matches("**").contains('*') {
        return Vec::new();
    }
    vec![format!("{tool}({text})")]
}
