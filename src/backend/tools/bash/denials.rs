//! What a sandbox kept a command from: connections as they were refused, and writes as the command's own messages tell them.

use std::io;
use std::path::{Path, PathBuf};

use crate::permission::files::lexical;
use crate::sandbox::proxy::Contact;
use crate::sandbox::{Denied, Policy, PutBack, Reads};
use crate::stdx::host::Pattern;
use crate::tools::{EDIT, READ, WEB_FETCH};

/// Most denials that a result names.
const NAMED: usize = 5;
/// Most bytes of output in which messages are looked for, from the end.
const LOOKED: usize = 64 * 1024;
/// What programs say of a file that they may not change.
const MESSAGES: [&str; 5] =
    ["permission denied", "operation not permitted", "read-only file system", "eacces", "eperm"];

/// What was denied, with the rule that would allow it, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denial {
    what: String,
    pub(super) rule: Option<String>,
}

/// What to tell of the denials of a command, as notes of its result.
pub(super) fn notes(denials: &[Denial]) -> Vec<String> {
    if denials.is_empty() {
        return Vec::new();
    }
    let mut notes: Vec<String> = denials
        .iter()
        .take(NAMED)
        .map(|Denial { what, rule }| match rule {
            Some(rule) => format!("The sandbox denied {what}; the rule {rule} would allow it"),
            None => format!("The sandbox denied {what}"),
        })
        .collect();
    let more = denials.len().saturating_sub(NAMED);
    if more > 0 {
        notes.push(format!("The sandbox denied {more} more"));
    }
    notes.push(
        "If the task needs that, run the same command again, if need be with dangerouslyDisableSandbox: true; the user is asked"
            .to_owned(),
    );
    notes
}

pub(super) fn connection(contact: &Contact) -> Denial {
    let pattern = Pattern::of(&contact.host, contact.port);
    Denial { what: format!("connecting to {contact}"), rule: Some(format!("{WEB_FETCH}(domain:{pattern})")) }
}

/// What a command was kept from that ran because a rule, a mode or the sandbox allowed it, and no person.
pub(super) fn guarded(what: &Denied) -> Denial {
    let rule = |path: &Path| {
        // Git makes this one first, and puts it in the place of the other.
        let text = path.display().to_string();
        let text = text.strip_suffix(".lock").filter(|text| text.contains("/.git/")).unwrap_or(&text);
        Some(format!("{EDIT}(/{text})"))
    };
    match what {
        Denied::Write(path) if path.starts_with("/dev/shm") => {
            Denial { what: format!("changing {}, which another program made", path.display()), rule: None }
        }
        Denied::Write(path) => Denial {
            what: format!("changing {}, which is protected: nobody was asked about this command", path.display()),
            rule: rule(path),
        },
        Denied::Read(path) => Denial { what: format!("reading {}", path.display()), rule: None },
        Denied::Connect(host) => Denial { what: format!("connecting to {host}"), rule: None },
        Denied::Call(what) => Denial { what: what.clone(), rule: None },
    }
}

/// The writes, and the reads below the home folder, that the output of a failed command complains of, and that only the policy forbids.
pub(super) fn files(output: &str, cwd: &Path, policy: &Policy) -> Vec<Denial> {
    let from = output.floor_char_boundary(output.len().saturating_sub(LOOKED));
    let mut found: Vec<Denial> = Vec::new();
    for line in output[from..].lines() {
        let lower = line.to_lowercase();
        if !MESSAGES.iter().any(|message| lower.contains(message)) {
            continue;
        }
        let words = line.split(|c: char| c.is_whitespace() || "'\"`‘’“”()[]<>,;=".contains(c));
        let words = words.map(|word| word.trim_matches(':').trim_end_matches('.'));
        for word in words.filter(|word| word.contains('/')) {
            let denial = file(&lexical(&cwd.join(word)), policy);
            found.extend(denial.filter(|denial| !found.contains(denial)));
        }
    }
    found
}

/// Why a file that a command complains of is closed to it; None where it is not the policy, or a secret that is not offered.
fn file(path: &Path, policy: &Policy) -> Option<Denial> {
    let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    let (closed, hidden) = match &policy.reads {
        Reads::AllBut(hidden) => (false, hidden),
        Reads::Within { home, open, hidden } => (path.starts_with(home) && !below(open), hidden),
        Reads::Only { hidden, .. } => (false, hidden),
    };
    if below(hidden) {
        return None;
    }
    if closed && path.is_file() {
        let what = format!("reading {}, which is not the workspace and not of a known tool", path.display());
        return Some(Denial { what, rule: Some(format!("{READ}(/{})", path.display())) });
    }
    if below(&policy.writes) || !may_write(path) {
        return None;
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    (folder.components().count() > 2).then(|| Denial {
        what: format!("writing below {}", folder.display()),
        rule: Some(format!("{EDIT}(/{}/**)", folder.display())),
    })
}

/// What to tell of protected files that a command changed.
pub(super) fn put_back(PutBack { back, lost }: &PutBack) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(first) = back.first() {
        let rules =
            back.iter().take(3).map(|path| format!("{EDIT}(/{})", path.display())).collect::<Vec<_>>().join(", ");
        let more = if back.len() > 1 { format!(" and {} more", back.len() - 1) } else { String::new() };
        notes.push(format!(
            "This command ran without asking, so protected files were put back: {}{more}. To change them, allow {rules}, or set \
             dangerouslyDisableSandbox to true: the user is asked",
            first.display()
        ));
    }
    if let Some(first) = lost.first() {
        notes.push(format!("Protected files were changed and could not be put back: {}", first.display()));
    }
    notes
}

/// Why a command does not run.
pub(super) fn not_started(error: &io::Error, folder: &Path, policy: &Policy) -> String {
    let ask = match policy.put_back.is_empty() {
        true => "",
        // What is too large to be saved is such a reason.
        false => " Set dangerouslyDisableSandbox to true to have the user asked.",
    };
    format!("Cannot start bash in {}: {error}.{ask}", folder.display())
}

/// Whether the user may change what is at the path, or make it: then it was not the system that refused.
fn may_write(path: &Path) -> bool {
    let Some(there) = path.ancestors().find(|path| path.exists()) else { return false };
    path.is_absolute() && rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use crate::sandbox::Network;

    use super::*;

    #[test]
    fn messages_of_programs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (work, other) = (root.join("work"), root.join("other"));
        std::fs::create_dir_all(work.join("src")).unwrap();
        std::fs::create_dir_all(other.join("deep")).unwrap();
        let policy = Policy {
            reads: Reads::AllBut(vec![root.join("secret")]),
            writes: vec![work.clone()],
            network: Network::Closed,
            ..Policy::free()
        };
        for (output, want) in [
            ("touch: cannot touch 'OTHER/x': Permission denied", "Edit(/OTHER/**)"),
            ("bash: line 1: OTHER/x: Permission denied", "Edit(/OTHER/**)"),
            ("mkdir: cannot create directory ‘OTHER/deep/y’: Permission denied", "Edit(/OTHER/deep/**)"),
            ("PermissionError: [Errno 13] Permission denied: 'OTHER/x'", "Edit(/OTHER/**)"),
            ("npm error Error: EACCES: permission denied, mkdir 'OTHER/_cacache'", "Edit(/OTHER/**)"),
            ("rm: cannot remove '../other/a': Operation not permitted", "Edit(/OTHER/**)"),
            // Not the sandbox, not a write that was denied, or nothing that a rule should name.
            ("touch: cannot touch '/proc/x': Permission denied", ""),
            ("cat: OTHER/x: No such file or directory", ""),
            ("touch: cannot touch 'WORK/src/x': Permission denied", ""),
            ("touch: cannot touch '/x': Permission denied", ""),
            ("Permission denied (publickey).", ""),
            ("cat: WORK/../secret/id: Permission denied", ""),
        ] {
            let put = |text: &str| {
                text.replace("OTHER", &other.display().to_string()).replace("WORK", &work.display().to_string())
            };
            let rules: Vec<String> =
                files(&put(output), &work, &policy).into_iter().filter_map(|denial| denial.rule).collect();
            assert_eq!(rules.join(" "), put(want), "{output}");
        }
    }
}
