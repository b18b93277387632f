//! The system calls that create, change or destroy what a path names, and where each of them says which.

use libc::c_long;

/// What a call does, with the numbers of the arguments that say to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Open {
        place: Place,
        flags: Flags,
    },
    /// To the length behind the path.
    Truncate(Place),
    /// Of a file or a link; of an empty folder where the flags of `unlinkat` say so.
    Remove(Place),
    RemoveFolder(Place),
    /// Of what is left: `flags` of `renameat2`.
    Rename {
        from: Place,
        to: Place,
        flags: Option<usize>,
    },
    Link {
        from: Place,
        to: Place,
    },
    /// Nothing may be there.
    Make(Place, Made),
    /// Of a link that leads elsewhere: where to, in the first argument.
    Lead(Place),
    /// Of its mode, owner, times, attributes.
    Alter(Place, Change),
    /// The same for an open file.
    AlterOpen(usize, Change),
    /// May give a socket a path.
    Bind,
    /// Moves what paths mean.
    Mount,
    /// Has the kernel itself write to a file later.
    Kernel,
    /// A command to an open file, in the second argument: one of `ALTERING`, or one of a file system's own.
    Command,
    /// Gives up rights of its own.
    Restrict,
}

/// What is made at a path; its mode is behind the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Folder,
    /// A pipe, a socket, a device, whose number comes next, or an empty file.
    Node,
}

/// What is altered, with the first of the arguments that say to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Mode(usize),
    Owner(usize),
    /// In 16 bits each.
    OwnerShort(usize),
    Times(Times, usize),
    Attribute(usize),
    NoAttribute(usize),
    /// In a structure that may grow: programs do without.
    Newer,
}

/// How two times are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Nanoseconds,
    Microseconds,
    Seconds,
}

/// Commands that change what a file is: its flags, its project, its version, and that it cannot be changed anymore. Of 64-bit
/// and 32-bit programs.
pub(super) const ALTERING: [u32; 6] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4004_7602, 0x4080_6685];

/// File systems whose commands make, replace and remove whole trees, by the byte that says whose a command is: btrfs and
/// bcachefs.
pub(super) const OF_TREES: [u32; 2] = [0x94, 0xbc];

/// What all programs may tell them: to share blocks, with a file that was opened to be written, and to show how things are.
pub(super) const HARMLESS: [u32; 13] = [
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
    0x8008_9419,
    0x81f8_943c,
    0x8400_941f,
    0x8018_9439,
    0xc010_9414,
    0xd000_941e,
    0xd000_9411,
    0xc070_9411,
    0xd000_9412,
    0xd000_943d,
];

/// A command that opens files by their numbers, on XFS. Of 64-bit and 32-bit programs.
pub(super) const BY_NUMBER: [u32; 2] = [0xc038_586b, 0xc01c_586b];

/// Whether a command makes, replaces or removes more than a file, or has it opened by its number.
pub(super) fn is_of_trees(command: u32) -> bool {
    OF_TREES.contains(&(command >> 8 & 0xff)) && !HARMLESS.contains(&command) || BY_NUMBER.contains(&command)
}

/// Where a path is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The open folder that it starts from; none: the working folder.
    pub(super) folder: Option<usize>,
    pub(super) path: usize,
    pub(super) last: Last,
}

/// What happens to a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Followed,
    Kept,
    /// Unless the flags in this argument say `AT_SYMLINK_NOFOLLOW`.
    FollowedUnless(usize),
    /// If the flags in this argument say `AT_SYMLINK_FOLLOW`.
    FollowedIf(usize),
}

/// Where the flags of an open are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    In(usize),
    /// In the structure that this argument points to.
    Pointed(usize),
    /// `creat` has none.
    Creat,
}

/// A call by its numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) native: c_long,
    /// As 32-bit programs of the same machine call it; none on machines that have none.
    pub(super) compat: Option<u32>,
    pub(super) deed: Deed,
}

const fn here(path: usize, last: Last) -> Place {
    Place { folder: None, path, last }
}

const fn at(folder: usize, last: Last) -> Place {
    Place { folder: Some(folder), path: folder + 1, last }
}

const fn call(native: c_long, compat: u32, deed: Deed) -> Call {
    Call { native, compat: Some(compat), deed }
}

use Change::{Attribute, Mode, NoAttribute, Owner};
use Last::{Followed, FollowedIf, FollowedUnless, Kept};

/// What every machine has.
const ALL: &[Call] = &[
    call(libc::SYS_openat, 295, Deed::Open { place: at(0, Followed), flags: Flags::In(2) }),
    call(libc::SYS_openat2, 437, Deed::Open { place: at(0, Followed), flags: Flags::Pointed(2) }),
    call(libc::SYS_unlinkat, 301, Deed::Remove(at(0, Kept))),
    call(libc::SYS_renameat2, 353, Deed::Rename { from: at(0, Kept), to: at(2, Kept), flags: Some(4) }),
    call(libc::SYS_linkat, 303, Deed::Link { from: at(0, FollowedIf(4)), to: at(2, Kept) }),
    call(libc::SYS_symlinkat, 304, Deed::Lead(at(1, Kept))),
    call(libc::SYS_mkdirat, 296, Deed::Make(at(0, Kept), Made::Folder)),
    call(libc::SYS_mknodat, 297, Deed::Make(at(0, Kept), Made::Node)),
    call(libc::SYS_truncate, 92, Deed::Truncate(here(0, Followed))),
    call(libc::SYS_fchmod, 94, Deed::AlterOpen(0, Mode(1))),
    call(libc::SYS_fchmodat, 306, Deed::Alter(at(0, Followed), Mode(2))),
    call(452, 452, Deed::Alter(at(0, FollowedUnless(3)), Mode(2))),
    call(libc::SYS_fchown, 207, Deed::AlterOpen(0, Owner(1))),
    call(libc::SYS_fchownat, 298, Deed::Alter(at(0, FollowedUnless(4)), Owner(2))),
    call(libc::SYS_utimensat, 320, Deed::Alter(at(0, FollowedUnless(3)), Change::Times(Times::Nanoseconds, 2))),
    call(libc::SYS_setxattr, 226, Deed::Alter(here(0, Followed), Attribute(1))),
    call(libc::SYS_lsetxattr, 227, Deed::Alter(here(0, Kept), Attribute(1))),
    call(libc::SYS_fsetxattr, 228, Deed::AlterOpen(0, Attribute(1))),
    call(libc::SYS_removexattr, 235, Deed::Alter(here(0, Followed), NoAttribute(1))),
    call(libc::SYS_lremovexattr, 236, Deed::Alter(here(0, Kept), NoAttribute(1))),
    call(libc::SYS_fremovexattr, 237, Deed::AlterOpen(0, NoAttribute(1))),
    call(463, 463, Deed::Alter(at(0, FollowedUnless(2)), Change::Newer)),
    call(466, 466, Deed::Alter(at(0, FollowedUnless(2)), Change::Newer)),
    call(libc::SYS_bind, 361, Deed::Bind),
    call(libc::SYS_mount, 21, Deed::Mount),
    call(libc::SYS_pivot_root, 217, Deed::Mount),
    call(428, 428, Deed::Mount),                                          // open_tree
    call(429, 429, Deed::Mount),                                          // move_mount
    call(432, 432, Deed::Mount),                                          // fsmount
    call(467, 467, Deed::Mount),                                          // open_tree_attr
    call(469, 469, Deed::Alter(at(0, FollowedUnless(4)), Change::Newer)), // file_setattr
    call(446, 446, Deed::Restrict),                                       // landlock_restrict_self
    call(libc::SYS_ioctl, 54, Deed::Command),
    call(libc::SYS_acct, 51, Deed::Kernel),
    call(libc::SYS_swapon, 87, Deed::Kernel),
    call(libc::SYS_quotactl, 131, Deed::Kernel),
    call(443, 443, Deed::Kernel), // quotactl_fd
];

/// What only this machine has, from before there were calls that start from an open folder.
#[cfg(target_arch = "x86_64")]
const OLD: &[Call] = &[
    call(libc::SYS_open, 5, Deed::Open { place: here(0, Followed), flags: Flags::In(1) }),
    call(libc::SYS_creat, 8, Deed::Open { place: here(0, Followed), flags: Flags::Creat }),
    call(libc::SYS_unlink, 10, Deed::Remove(here(0, Kept))),
    call(libc::SYS_rmdir, 40, Deed::RemoveFolder(here(0, Kept))),
    call(libc::SYS_rename, 38, Deed::Rename { from: here(0, Kept), to: here(1, Kept), flags: None }),
    call(libc::SYS_renameat, 302, Deed::Rename { from: at(0, Kept), to: at(2, Kept), flags: None }),
    call(libc::SYS_link, 9, Deed::Link { from: here(0, Kept), to: here(1, Kept) }),
    call(libc::SYS_symlink, 83, Deed::Lead(here(1, Kept))),
    call(libc::SYS_mkdir, 39, Deed::Make(here(0, Kept), Made::Folder)),
    call(libc::SYS_mknod, 14, Deed::Make(here(0, Kept), Made::Node)),
    call(libc::SYS_chmod, 15, Deed::Alter(here(0, Followed), Mode(1))),
    call(libc::SYS_chown, 212, Deed::Alter(here(0, Followed), Owner(1))),
    call(libc::SYS_lchown, 198, Deed::Alter(here(0, Kept), Owner(1))),
    call(libc::SYS_utime, 30, Deed::Alter(here(0, Followed), Change::Times(Times::Seconds, 1))),
    call(libc::SYS_utimes, 271, Deed::Alter(here(0, Followed), Change::Times(Times::Microseconds, 1))),
    call(libc::SYS_futimesat, 299, Deed::Alter(at(0, Followed), Change::Times(Times::Microseconds, 2))),
];

#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Call] = &[call(libc::SYS_renameat, 302, Deed::Rename { from: at(0, Kept), to: at(2, Kept), flags: None })];

/// What only 32-bit programs call: a second number for some of the above.
const COMPAT: &[(u32, Deed)] = &[
    (193, Deed::Truncate(here(0, Followed))),
    (16, Deed::Alter(here(0, Kept), Change::OwnerShort(1))),
    (182, Deed::Alter(here(0, Followed), Change::OwnerShort(1))),
    (95, Deed::AlterOpen(0, Change::OwnerShort(1))),
    (412, Deed::Alter(at(0, FollowedUnless(3)), Change::Times(Times::Nanoseconds, 2))),
];

/// Those of 64-bit programs.
pub(super) fn native() -> impl Iterator<Item = &'static Call> {
    ALL.iter().chain(OLD)
}

/// Those of 32-bit programs, by number.
pub(super) fn compat() -> impl Iterator<Item = (u32, Deed)> {
    native().filter_map(|call| Some((call.compat?, call.deed))).chain(COMPAT.iter().copied())
}

/// What a call does, by the kind of program and its number.
pub(super) fn deed(arch: u32, number: i32) -> Option<Deed> {
    match Some(arch) == super::filter::NATIVE {
        true => native().find(|call| call.native == c_long::from(number)).map(|call| call.deed),
        false => compat().find(|(compat, _)| i64::from(*compat) == i64::from(number)).map(|(_, deed)| deed),
    }
}

/// The highest number of those that were looked at: a newer call may do anything, and programs do without it. The same for
/// 32-bit programs, since all machines count alike from 424 on.
pub(super) const NEWEST: u32 = 470;

/// Calls that would get round the others: programs do without them.
pub(super) const DENIED: &[c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_open_by_handle_at];

/// The same for 32-bit programs.
pub(super) const DENIED_COMPAT: &[u32] = &[425, 426, 427, 342];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_there_once() {
        let mut numbers: Vec<i64> = native().map(|call| call.native).collect();
        let mut others: Vec<u32> = compat().map(|(number, _)| number).collect();
        for count in [numbers.len(), others.len()] {
            assert!(count > 25);
        }
        let (before, others_before) = (numbers.len(), others.len());
        numbers.sort_unstable();
        numbers.dedup();
        others.sort_unstable();
        others.dedup();
        assert_eq!((numbers.len(), others.len()), (before, others_before));
    }
}
