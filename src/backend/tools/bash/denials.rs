//! What a sandbox kept a command from: connections as they were refused, and writes as the command's own messages tell them.

use std::path::{Path, PathBuf};

use crate::permission::files::lexical;
use crate::sandbox::proxy::Contact;
use crate::sandbox::{Policy, Reads};
use crate::stdx::host::Pattern;
use crate::tools::{EDIT, WEB_FETCH};

/// Most denials that a result names.
const NAMED: usize = 5;
/// Most bytes of output in which messages are looked for, from the end.
const LOOKED: usize = 64 * 1024;
/// What programs say of a file that they may not change.
const MESSAGES: [&str; 5] =
    ["permission denied", "operation not permitted", "read-only file system", "eacces", "eperm"];

/// What was denied, with the rule that would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denial {
    what: String,
    pub(super) rule: String,
}

/// What to tell of the denials of a command, as notes of its result.
pub(super) fn notes(denials: &[Denial]) -> Vec<String> {
    if denials.is_empty() {
        return Vec::new();
    }
    let mut notes: Vec<String> = denials
        .iter()
        .take(NAMED)
        .map(|Denial { what, rule }| format!("The sandbox denied {what}; the rule {rule} would allow it"))
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
    Denial { what: format!("connecting to {contact}"), rule: format!("{WEB_FETCH}(domain:{pattern})") }
}

/// The writes that the output of a failed command complains of, and that only the policy forbids.
pub(super) fn writes(output: &str, cwd: &Path, policy: &Policy) -> Vec<Denial> {
    let from = output.floor_char_boundary(output.len().saturating_sub(LOOKED));
    let mut found: Vec<PathBuf> = Vec::new();
    for line in output[from..].lines() {
        let lower = line.to_lowercase();
        if !MESSAGES.iter().any(|message| lower.contains(message)) {
            continue;
        }
        let words = line.split(|c: char| c.is_whitespace() || "'\"`‘’“”()[]<>,;=".contains(c));
        let words = words.map(|word| word.trim_matches(':').trim_end_matches('.'));
        for word in words.filter(|word| word.contains('/')) {
            let path = lexical(&cwd.join(word));
            let covered = policy.writes.iter().any(|folder| path.starts_with(folder));
            // A secret that could not be read is not offered for writing.
            let secret =
                matches!(&policy.reads, Reads::AllBut(hidden) if hidden.iter().any(|own| path.starts_with(own)));
            if covered || secret || !may_write(&path) {
                continue;
            }
            let folder = if path.is_dir() { path } else { path.parent().unwrap_or(&path).to_owned() };
            if !found.contains(&folder) {
                found.push(folder);
            }
        }
    }
    let denial = |folder: PathBuf| Denial {
        what: format!("writing below {}", folder.display()),
        rule: format!("{EDIT}(/{}/**)", folder.display()),
    };
    found.into_iter().filter(|folder| folder.components().count() > 2).map(denial).collect()
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
                writes(&put(output), &work, &policy).into_iter().map(|denial| denial.rule).collect();
            assert_eq!(rules.join(" "), put(want), "{output}");
        }
    }
}
