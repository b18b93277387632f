//! A policy as the kernel takes it: a Landlock ruleset, a filter of system calls, and a scratch folder.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Policy, Reads, filter, landlock, system};
use crate::stdx::process::start::{Confined, Program};

/// Variables that say where temporary files go.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// What root keeps: files of others, CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH. The rest leads around Landlock, such as
/// CAP_PERFMON to the memory of other processes.
const READING: u64 = 1 << 1 | 1 << 2;
/// Where it may change files: whose they are, CAP_CHOWN, CAP_FOWNER and CAP_FSETID, and who it is, CAP_SETGID and CAP_SETUID.
const WORKING: u64 = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7;

/// What a policy takes away, ready to be put into force.
#[derive(Debug)]
pub(super) struct Confinement {
    _ruleset: OwnedFd,
    prepared: Confined,
    scratch: Option<PathBuf>,
}

impl Confinement {
    /// None where the policy takes nothing away.
    ///
    /// # Errors
    /// The kernel cannot do what the policy says.
    pub(super) fn of(policy: &Policy, scratch: Option<&Path>) -> io::Result<Option<Confinement>> {
        if policy.is_free() {
            return if policy.guard.is_empty() { Ok(None) } else { Confinement::apart() };
        }
        let abi = landlock::abi()?;
        let mut rules = landlock::Rules::new(abi, policy.network)?;
        match &policy.reads {
            Reads::AllBut(denied) if denied.is_empty() => rules.read(Path::new("/"))?,
            Reads::AllBut(denied) => rules.read_all_but(&[PathBuf::from("/")], denied)?,
            Reads::Within { home, open, hidden } => {
                let denied: Vec<PathBuf> = hidden.iter().chain([home]).cloned().collect();
                rules.read_all_but(&[PathBuf::from("/")], &denied)?;
                rules.read_all_but(open, hidden)?;
            }
            Reads::Only { paths, hidden } => {
                for path in system::READABLE.iter().map(Path::new) {
                    rules.read(path)?;
                }
                rules.read_all_but(paths, hidden)?;
            }
        }
        for path in system::DEVICES.iter().map(Path::new) {
            rules.write(path)?;
        }
        if !policy.writes.is_empty() {
            for path in system::SHARED.iter().map(Path::new) {
                rules.write(path)?;
            }
        }
        // What is hidden below a folder that may be written stays closed: it may be replaced, and not read.
        let hides = match &policy.reads {
            Reads::AllBut(denied) => !denied.is_empty(),
            Reads::Within { .. } => true,
            Reads::Only { .. } => false,
        };
        for path in policy.writes.iter().filter(|_| hides) {
            rules.change(path)?;
        }
        let open = policy.writes.iter().filter(|_| !hides).map(PathBuf::as_path);
        for path in scratch.into_iter().chain(open) {
            rules.read(path)?;
            rules.write(path)?;
        }
        let ruleset = rules.finish();
        let filter = filter::of(policy, abi)?;
        let capabilities = if policy.writes.is_empty() { READING } else { READING | WORKING };
        let prepared = Confined { ruleset: Some(ruleset.as_raw_fd()), filter, capabilities };
        Ok(Some(Confinement { _ruleset: ruleset, prepared, scratch: scratch.map(Path::to_owned) }))
    }

    /// What a guarded command is kept to that may do what the user may: it does not reach around the guard through processes
    /// that the guard does not see, or through those that guard it.
    fn apart() -> io::Result<Option<Confinement>> {
        let Some(ruleset) = landlock::Rules::apart()? else { return Ok(None) };
        let prepared = Confined { ruleset: Some(ruleset.as_raw_fd()), filter: Vec::new(), capabilities: u64::MAX };
        Ok(Some(Confinement { _ruleset: ruleset, prepared, scratch: None }))
    }

    pub(super) fn prepared(&self) -> &Confined {
        &self.prepared
    }

    /// Gives the program what it needs inside: a folder for temporary files.
    pub(super) fn set_up(&self, program: &mut Program) -> io::Result<()> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        let named = |entry: &CString| {
            TEMPORARY
                .iter()
                .any(|name| entry.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest[0] == b'='))
        };
        program.environment.retain(|entry| !named(entry));
        for name in TEMPORARY {
            let entry = [name.as_bytes(), b"=", scratch.as_os_str().as_bytes()].concat();
            program.environment.push(CString::new(entry).map_err(io::Error::other)?);
        }
        Ok(())
    }
}
