//! Addresses of requests, and as errors show them.

use url::Url;

use super::clip;

/// The address of a wire's path. A base with a version segment of its own, or any path where the wire's users write the
/// version themselves, keeps it. None: not an http address.
pub(super) fn address(base: &str, version: &str, path: &str, query: &str) -> Option<Url> {
    let mut url = Url::parse(base.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let own = url.path().trim_end_matches('/');
    let own = own.strip_suffix(endpoint(own).unwrap_or_default()).unwrap_or(own).to_string();
    let last = own.rsplit('/').next().unwrap_or_default();
    let versioned = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    // By custom the base of the OpenAI wires includes the version, and may be any path; lists of other wires have a query.
    let of_openai = matches!(path, "/responses" | "/responses/compact" | "/chat/completions");
    let complete = (of_openai || path == "/models" && query.is_empty()) && !own.is_empty();
    let version = if versioned || complete { "" } else { version };
    url.set_path(&format!("{own}{version}{path}"));
    if !query.is_empty() {
        url.set_query(Some(query));
    }
    Some(url)
}

/// The endpoint of a wire that a base URL ends with, as people copy it from examples: requests leave it out, since they
/// add their own.
pub fn endpoint(base: &str) -> Option<&'static str> {
    let base = base.trim().trim_end_matches('/');
    ["/messages", "/chat/completions", "/responses"].into_iter().find(|endpoint| base.ends_with(endpoint))
}

/// An address without what may be secret in it.
pub(super) fn shown(base: &str) -> String {
    let Ok(mut url) = Url::parse(base.trim()) else { return clip(base) };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    clip(url.as_str().trim_end_matches('/'))
}
