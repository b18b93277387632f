//! `/sandbox` in words.

use std::fmt::Write;
use std::path::PathBuf;

use crate::protocol::report::{Kept, SandboxReport};
use crate::sandbox::{Level, Network, Policy, Reads};
use crate::stdx::ansi::visible;

/// Most paths of one kind that are named.
const PATHS: usize = 8;

pub(super) fn words(report: &SandboxReport) -> String {
    let SandboxReport { status, required, reading, approved, unasked, denied } = report;
    let mut text = format!("Level: **{}**", status.level.name());
    text.push_str(match status.level {
        Level::None => ", nothing confines commands",
        Level::Kernel => ", Landlock and seccomp",
        Level::Mount => ", Landlock, seccomp and namespaces",
    });
    if !status.why.is_empty() {
        let lead = if status.level == Level::None { "Why" } else { "Why not higher" };
        let _ = write!(text, "\n\n{lead}: {}", visible(&status.why));
    }
    text.push_str("\n\n");
    match (status.level, reading) {
        (Level::None, _) if *required => {
            text.push_str("- **Commands**: none runs, because `sandbox.required` is on\n");
        }
        (Level::None, _) => text.push_str("- **Commands that only read**: a short list of plain ones, the rest asks\n"),
        (_, Some(policy)) => held(&mut text, "Commands that only read", policy),
        (_, None) => text.push_str("- **Commands that only read**: run as you\n"),
    }
    if let Some(policy) = unasked {
        held(&mut text, "Commands that run without asking", policy);
    }
    match approved {
        Some(policy) => held(&mut text, "Approved commands", policy),
        None => text.push_str("- **Approved commands**: run as you\n"),
    }
    if denied.is_empty() {
        text.push_str("\nNothing was denied in this session.\n");
        return text;
    }
    text.push_str("\nDenied in this session, with the rules that would allow it:\n\n");
    for Kept { command, rules } in denied {
        let rules: Vec<String> = rules.iter().map(|rule| format!("`{}`", visible(rule))).collect();
        let _ = writeln!(text, "- `{}`: {}", visible(command).replace('`', "'"), rules.join(", "));
    }
    text
}

fn held(text: &mut String, whose: &str, policy: &Policy) {
    let _ = writeln!(text, "- **{whose}**");
    let reads = match &policy.reads {
        Reads::Only { paths, hidden } => {
            let but = if hidden.is_empty() { String::new() } else { format!(", but not {}", named(hidden)) };
            format!("the system's programs and {}{but}", named(paths))
        }
        Reads::AllBut(hidden) if hidden.is_empty() => "everything".to_owned(),
        Reads::AllBut(hidden) => format!("everything but {}", named(hidden)),
        Reads::Within { home, open, .. } => {
            let home = visible(&home.display().to_string());
            format!("everything but secrets and your home folder `{home}`; in there {}", named(open))
        }
    };
    let everything = policy.writes.iter().any(|path| path.parent().is_none());
    let writes = match policy.writes.is_empty() {
        true => "a private folder for temporary files".to_owned(),
        false if everything => "everything".to_owned(),
        false => format!("a private folder for temporary files, {}", named(&policy.writes)),
    };
    let network = match policy.network {
        Network::Closed => "none",
        Network::Proxy { .. } => "through a proxy that asks about new hosts; the kernel holds it to the proxy's port",
        Network::Open => "open",
    };
    let _ = writeln!(text, "  - reads {reads}\n  - writes {writes}\n  - network: {network}");
}

fn named(paths: &[PathBuf]) -> String {
    let shown = paths.iter().take(PATHS).map(|path| format!("`{}`", visible(&path.display().to_string())));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if paths.len() > PATHS {
        let _ = write!(text, " and {} more", paths.len() - PATHS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Status;

    #[test]
    fn what_holds_is_said_in_words() {
        let kernel = Status { level: Level::Kernel, why: "no namespaces".into() };
        let reading = Policy::reading(vec!["/p".into()]);
        let approved = Policy {
            reads: Reads::AllBut(vec!["/h/.ssh".into()]),
            writes: vec!["/p".into()],
            network: Network::Proxy { port: 0 },
            ..Policy::free()
        };
        let denied = vec![Kept { command: "cargo build".into(), rules: vec!["WebFetch(domain:crates.io)".into()] }];
        let report = SandboxReport {
            status: kernel,
            required: false,
            reading: Some(reading),
            approved: Some(approved),
            unasked: None,
            denied,
        };
        assert_eq!(
            words(&report),
            "Level: **kernel**, Landlock and seccomp\n\nWhy not higher: no namespaces\n\n\
             - **Commands that only read**\n  - reads the system's programs and `/p`\n  - writes a private folder for temporary \
             files\n  - network: none\n\
             - **Approved commands**\n  - reads everything but `/h/.ssh`\n  - writes a private folder for temporary files, \
             `/p`\n  - network: through a proxy that asks about new hosts; the kernel holds it to the proxy's port\n\n\
             Denied in this session, with the rules that would allow it:\n\n- `cargo build`: `WebFetch(domain:crates.io)`\n"
        );
        let none = Status { level: Level::None, why: "old kernel".into() };
        let report = SandboxReport {
            status: none,
            required: true,
            reading: None,
            approved: None,
            unasked: None,
            denied: Vec::new(),
        };
        assert_eq!(
            words(&report),
            "Level: **off**, nothing confines commands\n\nWhy: old kernel\n\n\
             - **Commands**: none runs, because `sandbox.required` is on\n- **Approved commands**: run as you\n\n\
             Nothing was denied in this session.\n"
        );
    }
}
