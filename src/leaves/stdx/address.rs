//! Takes what may be secret out of the addresses in a text: names, passwords, queries, and parts of a path that look like a
//! token. What remains is what is known to be harmless: scheme, host and a plain path.

/// Stands for what was taken out.
const HIDDEN: &str = "[hidden]";

/// Longest part of a path that may stand, when it is of letters and digits mixed.
const TOKEN: usize = 20;

/// The text, its addresses without what may be secret.
pub fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme = rest[..at].rfind(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let scheme = scheme.map_or(0, |before| before + rest[before..].chars().next().map_or(1, char::len_utf8));
        let end = rest[at + 3..].find(|c: char| c.is_whitespace() || c.is_control() || "\"'`<>\\|{}".contains(c));
        let end = end.map_or(rest.len(), |end| at + 3 + end);
        out.push_str(&without_login(&rest[..scheme]));
        out.push_str(&rest[scheme..at + 3]);
        out.push_str(&address(&rest[at + 3..end]));
        rest = &rest[end..];
    }
    out.push_str(&without_login(rest));
    out
}

/// An address behind its scheme.
fn address(text: &str) -> String {
    // A parameter of a path's part follows a semicolon.
    let parameter = text.find(';').filter(|at| text[*at..].contains('='));
    let named = text.find(['?', '#']).into_iter().chain(parameter).min().unwrap_or(text.len());
    let (place, query) = text.split_at(named);
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let (login, host) = host.rsplit_once('@').map_or((false, host), |(_, host)| (true, host));
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    // A password may hold a slash: then what looks like a host and a path is a part of it.
    let split = path.split('/').any(|part| part.find('@').is_some_and(|at| at > 0));
    let odd = !port.chars().all(|c| c.is_ascii_digit() || c.is_ascii_punctuation()) || name.contains('@');
    if split || odd {
        return HIDDEN.to_owned();
    }
    let login = if login { "[hidden]@" } else { "" };
    let path: Vec<&str> = path.split('/').map(|part| if is_token(part) { HIDDEN } else { part }).collect();
    let query = query.chars().next().map(|mark| format!("{mark}{HIDDEN}")).unwrap_or_default();
    format!("{login}{host}{}{query}", path.join("/"))
}

fn is_token(part: &str) -> bool {
    // Some have the token behind a colon, or as the value of a name.
    part.split([':', ';', '=', ',']).any(|part| {
        let has = |kind: fn(&char) -> bool| part.chars().any(|c| kind(&c));
        part.len() >= TOKEN && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
    })
}

/// Addresses without a scheme, as proxies are given: `name:password@host`.
fn without_login(text: &str) -> String {
    if !text.contains('@') {
        return text.to_owned();
    }
    let words = text.split_inclusive(|c: char| c.is_whitespace() || "\"'`<>=,()".contains(c));
    words
        .map(|word| match word.rsplit_once('@') {
            Some((login, host)) if login.contains(':') && !login.contains("//") => format!("{HIDDEN}@{host}"),
            _ => word.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_host_and_plain_path_remain() {
        for (text, want) in [
            ("no address at all: a@b, x://", "no address at all: a@b, x://"),
            ("see https://host.example/v1/messages.", "see https://host.example/v1/messages."),
            ("https://user:pa55@host:8443/v1", "https://[hidden]@host:8443/v1"),
            ("https://tok@host http://a:b@c@d/e", "https://[hidden]@host http://[hidden]@d/e"),
            ("https://user:pa/ss@host/x", "https://[hidden]"),
            ("https://user:12/ss@host/x", "https://[hidden]"),
            ("\"https://g.example/v1?key=AIzaSy\", x", "\"https://g.example/v1?[hidden]\", x"),
            ("https://h/v1;key=SECRET/models; next", "https://h/v1;[hidden] next"),
            ("https://h/v1; a=b", "https://h/v1; a=b"),
            ("(https://h/p#access_token=abc)", "(https://h/p#[hidden]"),
            ("http://[::1]:8080/x?y", "http://[::1]:8080/x?[hidden]"),
            ("https://hooks.example/T0/0123456789abcdefABCD", "https://hooks.example/T0/[hidden]"),
            ("https://api.example/bot123456:AAH4567890123456789012/x", "https://api.example/[hidden]/x"),
            (
                "https://medium.example/@name/x and git+ssh://git@h/r.git",
                "https://medium.example/@name/x and git+ssh://[hidden]@h/r.git",
            ),
            ("git@github.com:owner/repo.git", "git@github.com:owner/repo.git"),
            ("proxy=user:pass@proxy:3128", "proxy=[hidden]@proxy:3128"),
            ("postgres://u:p@db/x, redis://:pw@r", "postgres://[hidden]@db/x, redis://[hidden]@r"),
            ("é://x:y@z ünï://a:b@c", "é://[hidden]@z ünï://[hidden]@c"),
        ] {
            assert_eq!(bare(text), want, "{text}");
        }
    }
}
