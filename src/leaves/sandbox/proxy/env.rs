//! What tells programs to use the proxy. Java is not told: it takes no password from its options, and names every option it
//! finds in its output.

use std::path::Path;

use super::client;

/// Whose loopback a command sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// The machine's: what listens there is reached through the proxy, after a question.
    Shared,
    /// One of its own: its own servers are reached directly.
    Own,
}

/// The variables of a command. `url` has its pass, `program` is what answers to `__connect`, `ssh` is how the session's git
/// calls ssh.
pub fn variables(url: &str, loopback: Loopback, program: &Path, ssh: Option<&str>) -> Vec<(String, String)> {
    let direct = match loopback {
        Loopback::Shared => "",
        Loopback::Own => "localhost,127.0.0.1,::1",
    };
    let mut all = Vec::new();
    // Not SOCKS for the last one: Python's httpx stops at once where it has no library for it.
    for (name, value) in [("HTTP_PROXY", url), ("HTTPS_PROXY", url), ("ALL_PROXY", url), ("NO_PROXY", direct)] {
        all.push((name.to_owned(), value.to_owned()));
        all.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let own = [("CARGO_HTTP_PROXY", url), ("NODE_USE_ENV_PROXY", "1"), (client::VARIABLE, url)];
    all.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    if let Some(program) = program.to_str() {
        // ssh hands the line to a shell, and git does the same with all of it.
        let inner = format!("{} {} %h %p", quoted(&program.replace('%', "%%")), client::NAME);
        let ssh = ssh.filter(|ssh| !ssh.trim().is_empty()).unwrap_or("ssh");
        all.push(("GIT_SSH_COMMAND".to_owned(), format!("{ssh} -o {}", quoted(&format!("ProxyCommand={inner}")))));
    }
    all
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+%=".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_is_told_in_words_that_survive_two_shells() {
        let told = |program: &str, ssh| {
            let all = variables("http://x", Loopback::Shared, Path::new(program), ssh);
            all.into_iter().find(|(name, _)| name == "GIT_SSH_COMMAND").unwrap().1
        };
        assert_eq!(told("/bin/cocode", None), "ssh -o 'ProxyCommand=/bin/cocode __connect %h %p'");
        let own = told("/my bin/co%code", Some("ssh -i key"));
        assert_eq!(own, r"ssh -i key -o 'ProxyCommand='\''/my bin/co%%code'\'' __connect %h %p'");
    }
}
