//! What the kernel lets a command do: levels, policies, and what the command did. Plain data here; below it the helper that
//! puts a policy into force and ends with its command.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod filter;
pub mod guard;
#[cfg(target_os = "linux")]
pub mod helper;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod landlock;
mod level;
pub mod presets;
pub mod proxy;
pub mod record;
mod running;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod wire;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::stdx::path_text;

pub use guard::{Guard, Guarded, Refused};
pub use running::{Happening, Running, Sandbox};

/// How far this machine can confine a command, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing confines it: what it may do rests on what its text says.
    None,
    /// Landlock and seccomp on Linux, Seatbelt on macOS: files, network, signals.
    Kernel,
    /// As `Kernel`, in mount and network namespaces of its own: protected files inside writable folders, too.
    Mount,
}

impl Level {
    /// Its name in settings, in JSON and for people; nothing is `off`.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "off",
            Level::Kernel => "kernel",
            Level::Mount => "mount",
        }
    }
}

/// How far commands are confined here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub level: Level,
    /// Why not further, with what to do about it. Empty: it is all there is.
    pub why: String,
}

/// What one command may reach. The helper is given it on a descriptor, never in its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub reads: Reads,
    /// Folders, and single files, that it may change; everything below them. Empty: it only reads, so that it may not change
    /// what the kernel does not tie to a path either, such as modes and times.
    #[serde(with = "path_text::list")]
    pub writes: Vec<PathBuf>,
    /// Paths below `writes` that stay as they are: denied at level mount, answered with an error and reported at level kernel.
    #[serde(with = "path_text::list")]
    pub protected: Vec<PathBuf>,
    /// What else it must not change, by name. Without a supervisor nothing holds it to that.
    pub guard: Guard,
    /// Saved before, and put back once all of the command has ended, whatever becomes of us.
    #[serde(with = "path_text::list")]
    pub put_back: Vec<PathBuf>,
    pub network: Network,
    /// Saves what the command changes before it changes it.
    pub record: Option<Record>,
}

impl Policy {
    /// Of a command that a person approved: it may do what they may.
    pub fn free() -> Policy {
        Policy {
            reads: Reads::AllBut(Vec::new()),
            writes: vec!["/".into()],
            protected: Vec::new(),
            guard: Guard::default(),
            put_back: Vec::new(),
            network: Network::Open,
            record: None,
        }
    }

    /// Of a command that runs unasked because it only reads: these paths, and the system's programs.
    pub fn reading(paths: Vec<PathBuf>) -> Policy {
        Policy {
            reads: Reads::Only { paths, hidden: Vec::new() },
            writes: Vec::new(),
            network: Network::Closed,
            ..Policy::free()
        }
    }

    /// Whether it takes nothing away but what the supervisor guards.
    pub fn is_free(&self) -> bool {
        Policy { record: None, guard: Guard::default(), ..self.clone() } == Policy::free()
    }
}

/// What a command may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// Everything that the user may, but for these.
    AllBut(#[serde(with = "path_text::list")] Vec<PathBuf>),
    /// Everything that the user may but what lies below their home folder, of which only these; and nothing that is hidden.
    Within {
        #[serde(with = "path_text")]
        home: PathBuf,
        #[serde(with = "path_text::list")]
        open: Vec<PathBuf>,
        #[serde(with = "path_text::list")]
        hidden: Vec<PathBuf>,
    },
    /// The system's program folders, and these, without what lies below them and is hidden.
    Only {
        #[serde(with = "path_text::list")]
        paths: Vec<PathBuf>,
        #[serde(with = "path_text::list")]
        hidden: Vec<PathBuf>,
    },
}

/// What a command may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    Closed,
    /// TCP to our own proxy on loopback, which lets through what was granted.
    Proxy {
        port: u16,
    },
    Open,
}

/// What became of the paths of `Policy::put_back` that a command has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBack {
    #[serde(with = "path_text::list")]
    pub back: Vec<PathBuf>,
    /// Those that could not be put back.
    #[serde(with = "path_text::list")]
    pub lost: Vec<PathBuf>,
}

/// Where what a command changes is saved, so that it can be undone exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// A folder of the session, on the file system of the workspace if possible: victims are linked into it.
    #[serde(with = "path_text")]
    pub store: PathBuf,
    /// Largest file that is copied, in bytes.
    pub largest: u64,
    /// Most bytes that one command may have copied.
    pub budget: u64,
    /// Nothing below these is recorded: scratch folders, /proc, /dev, the store itself.
    #[serde(with = "path_text::list")]
    pub skip: Vec<PathBuf>,
    /// Recorded although it is below one of `skip`: a workspace in the folder for temporary files.
    #[serde(with = "path_text::list")]
    pub within: Vec<PathBuf>,
}

/// One thing that a command did, or was kept from doing, in the order in which it came first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum Effect {
    /// A path was touched for the first time: what was there before.
    Touched {
        #[serde(with = "path_text")]
        path: PathBuf,
        before: Before,
    },
    /// The kernel, or the helper, refused.
    Denied {
        what: Denied,
    },
    Connected {
        host: String,
    },
}

/// What was at a path before the command changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "was")]
pub enum Before {
    Absent,
    File {
        mode: u32,
        size: u64,
        saved: Saved,
    },
    Link {
        #[serde(with = "path_text")]
        target: PathBuf,
    },
    Folder {
        mode: u32,
    },
    /// A pipe, a socket, a device: nothing that could be saved.
    Special,
}

/// Whether the content of a file was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saved {
    /// Under this name in the store.
    As(String),
    /// Nobody touched it: only its mode, owner or times.
    Untouched,
    /// Why it cannot be restored.
    Lost(String),
}

/// What was refused, as a grant would name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    Read(#[serde(with = "path_text")] PathBuf),
    Write(#[serde(with = "path_text")] PathBuf),
    Connect(String),
    /// Anything else, in words.
    Call(String),
}
