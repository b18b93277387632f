//! Landlock, by its system calls: what a process may do to files, TCP ports, and other processes. Rights are only ever given,
//! and what is not given is denied.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::Network;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Removing and making whatever there is in a folder.
const CONTENTS: u64 = 0b1_1111_1111 << 4;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// What makes sense for anything but a folder: the kernel refuses a rule with more, and the file stays closed.
const FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const BIND_TCP: u64 = 1 << 0;
const CONNECT_TCP: u64 = 1 << 1;
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;

const VERSION: u32 = 1;
const PATH_BENEATH: i32 = 1;
const NET_PORT: i32 = 2;

/// Since when it knows of what, by the number of its interface.
pub(super) const KNOWS_TRUNCATE: u32 = 3;
const KNOWS_PORTS: u32 = 4;
const KNOWS_IOCTL: u32 = 5;
pub(super) const KNOWS_SCOPES: u32 = 6;

#[repr(C)]
struct Attributes {
    files: u64,
    ports: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

#[repr(C)]
struct NetPort {
    allowed: u64,
    port: u64,
}

/// The number of the kernel's interface.
///
/// # Errors
/// The kernel has none, or it is switched off.
pub(super) fn abi() -> io::Result<u32> {
    // SAFETY: nothing is read or written.
    let found = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Attributes>(), 0, VERSION) };
    u32::try_from(found).map_err(|_| {
        let error = io::Error::last_os_error();
        let text = match error.raw_os_error() {
            Some(libc::ENOSYS) => "this kernel has no Landlock: it takes Linux 5.13 or newer".to_owned(),
            Some(libc::EOPNOTSUPP) => {
                "Landlock is switched off: add it to `lsm=` on the kernel's command line".to_owned()
            }
            _ => format!("Landlock is not available here: {error}"),
        };
        io::Error::new(io::ErrorKind::Unsupported, text)
    })
}

/// A ruleset that is being made.
pub(super) struct Rules {
    ruleset: OwnedFd,
    /// The rights on files that this kernel knows.
    known: u64,
}

impl Rules {
    /// # Errors
    /// The kernel cannot hold the network to the policy.
    pub(super) fn new(abi: u32, network: Network) -> io::Result<Rules> {
        let since = |first: u32, rights: u64| if abi >= first { rights } else { 0 };
        let known = EXECUTE
            | WRITE_FILE
            | READ_FILE
            | READ_DIR
            | CONTENTS
            | since(2, REFER)
            | since(KNOWS_TRUNCATE, TRUNCATE)
            | since(KNOWS_IOCTL, IOCTL_DEV);
        let ports = match network {
            Network::Open => 0,
            Network::Closed => since(KNOWS_PORTS, BIND_TCP | CONNECT_TCP),
            Network::Proxy { .. } if abi < KNOWS_PORTS => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel cannot hold a command to one port: it takes Linux 6.7 or newer",
                ));
            }
            Network::Proxy { .. } => BIND_TCP | CONNECT_TCP,
        };
        let attributes =
            Attributes { files: known, ports, scopes: since(KNOWS_SCOPES, SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS) };
        let rules = Rules::made(&attributes, known)?;
        if let Network::Proxy { port } = network {
            rules.add(NET_PORT, &NetPort { allowed: CONNECT_TCP, port: port.into() })?;
        }
        Ok(rules)
    }

    fn made(attributes: &Attributes, known: u64) -> io::Result<Rules> {
        // Older kernels refuse what they do not know, unless it is zero.
        // SAFETY: the attributes live through the call, and the descriptor is nobody's yet.
        let ruleset = unsafe {
            let size = size_of::<Attributes>();
            let number = libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(attributes), size, 0);
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(number as i32)
        };
        Ok(Rules { ruleset, known })
    }

    /// Lets files and folders be read and run, with everything below the path.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<()> {
        self.allow(path, EXECUTE | READ_FILE | READ_DIR)
    }

    /// Lets them be written, made, moved and removed.
    pub(super) fn write(&mut self, path: &Path) -> io::Result<()> {
        self.allow(path, READ_FILE | WRITE_FILE | CONTENTS | REFER | TRUNCATE | IOCTL_DEV)
    }

    /// The same without letting what is there be read.
    pub(super) fn change(&mut self, path: &Path) -> io::Result<()> {
        self.allow(path, WRITE_FILE | CONTENTS | REFER | TRUNCATE | IOCTL_DEV)
    }

    /// Lets everything below the paths be read but what is denied. Folders above that can still be listed, and what is made in
    /// them later cannot be read: a right is for all that is below.
    pub(super) fn read_all_but(&mut self, paths: &[PathBuf], denied: &[PathBuf]) -> io::Result<()> {
        // As they are, not as they are called: a link would lead around.
        let denied: BTreeSet<PathBuf> = denied.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let holds = |path: &Path| denied.iter().any(|denied| denied.starts_with(path));
        let mut open = Vec::new();
        for path in paths.iter().filter_map(|path| path.canonicalize().ok()) {
            match denied.iter().any(|denied| path.starts_with(denied)) {
                true => {}
                false if holds(&path) => open.push(path),
                false => self.read(&path)?,
            }
        }
        for folder in &open {
            self.allow(folder, READ_DIR)?;
        }
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if denied.contains(&path) {
                    continue;
                }
                if holds(&path) {
                    open.push(path);
                } else if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    self.read(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Rules that leave all files open: only what Landlock says of other processes is left, which may not be traced, and whose
    /// memory and open files stay theirs. None where the kernel cannot say that.
    pub(super) fn apart() -> io::Result<Option<OwnedFd>> {
        // Without the second right the kernel lets nothing move from folder to folder.
        const KNOWS_REFER: u32 = 2;
        if abi().map_or(true, |abi| abi < KNOWS_REFER) {
            return Ok(None);
        }
        let mut rules = Rules::made(&Attributes { files: EXECUTE | REFER, ports: 0, scopes: 0 }, EXECUTE | REFER)?;
        rules.allow(Path::new("/"), EXECUTE | REFER)?;
        Ok(Some(rules.finish()))
    }

    pub(super) fn finish(self) -> OwnedFd {
        self.ruleset
    }

    /// A missing path needs no rule, and what we may not reach the command may not either.
    fn allow(&mut self, path: &Path, rights: u64) -> io::Result<()> {
        let Ok(opened) = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return Ok(()) };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
        let rights = if kind == FileType::Directory { rights } else { rights & FILE };
        self.add(PATH_BENEATH, &PathBeneath { allowed: rights & self.known, parent: opened.as_raw_fd() })
    }

    fn add<T>(&self, kind: i32, rule: &T) -> io::Result<()> {
        let ruleset = self.ruleset.as_raw_fd();
        // SAFETY: the rule lives through the call and is of the kind that is said.
        match unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, kind, std::ptr::from_ref(rule), 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
