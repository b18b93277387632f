//! The filter of system calls that goes with a ruleset: what Landlock does not see. Every call that the filter does not know is
//! refused, so that a newer kernel brings no way around.

use std::io;

use libc::{c_long, sock_filter};

use super::{Network, Policy, landlock};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// The last call that was looked at when this was written: `removexattrat`.
const LAST: u32 = 466;
/// Marks calls of the x32 kind, which are the same under other numbers.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// As an older kernel would: programs know what to do without it.
const MISSING: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Where the kernel puts what is looked at.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Never needed by a command, whatever it may change: what changes the system, what reaches into other processes, and what does
/// the work of other calls where no filter sees it.
const NEVER: &[c_long] = &[
    // Queues of calls.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Memory and queues that have no path.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

/// What debuggers do, and what makes namespaces: Landlock holds in there, so a command keeps it that is only kept from reading
/// some files.
const TOOLS: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_unshare,
    libc::SYS_setns,
];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_kexec_file_load,
    libc::SYS__sysctl,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_modify_ldt,
    // `create_module`, `get_kernel_syms` and `query_module`, which the library does not name.
    174,
    177,
    178,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[c_long] = &[];

/// What changes a file without a right that Landlock knows.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // `setxattrat` and `removexattrat`, which the library does not name.
    463,
    466,
];

#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[c_long] = &[];

/// What reaches a socket by its name. Two ends that a process made for itself remain.
const CONNECTING: &[c_long] = &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_socket];

/// What signals others, where Landlock does not keep it from that.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// The requests to open files that a command may make: of terminals what programs ask, of files what only reads or what
/// needs a descriptor that is open for writing.
#[expect(clippy::unnecessary_cast, reason = "their width depends on the platform")]
const REQUESTS: &[u64] = &[
    libc::TCGETS as u64,
    libc::TCSETS as u64,
    libc::TCSETSW as u64,
    libc::TCSETSF as u64,
    libc::TCSBRK as u64,
    libc::TCXONC as u64,
    libc::TCFLSH as u64,
    // The newer forms of the first four.
    0x802C_542A,
    0x402C_542B,
    0x402C_542C,
    0x402C_542D,
    libc::TIOCGWINSZ as u64,
    libc::TIOCSWINSZ as u64,
    libc::TIOCGPGRP as u64,
    libc::TIOCSPGRP as u64,
    libc::TIOCGSID as u64,
    libc::TIOCSCTTY as u64,
    libc::TIOCNOTTY as u64,
    libc::TIOCOUTQ as u64,
    libc::FIONREAD as u64,
    libc::FIONBIO as u64,
    libc::FIOCLEX as u64,
    libc::FIONCLEX as u64,
    libc::FIOASYNC as u64,
    // Pseudo-terminals: number, lock, other end.
    0x8004_5430,
    0x4004_5431,
    0x5441,
    // FIGETBSZ, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP.
    0x2,
    0x8008_6601,
    0x801C_581F,
    0xC020_660B,
    // FICLONE, FICLONERANGE: into a file that is open for writing.
    0x4004_9409,
    0x4020_940D,
    // Open file of a namespace, process of a descriptor: NS_GET_*.
    0xB701,
    0xB702,
    0xB703,
    0xB704,
];

/// Flags of `clone` that make a namespace.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u32;

/// The filter of a policy.
///
/// # Errors
/// It is not written for this architecture.
pub(super) fn of(policy: &Policy, abi: u32) -> io::Result<Vec<sock_filter>> {
    if ARCHITECTURE == 0 {
        let text = "the sandbox is not available on this architecture: it takes x86-64 or ARM64";
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let mut filter = Filter::begin();
    for list in [NEVER, NEVER_HERE] {
        filter.deny(list);
    }
    let only_hides = policy.network == Network::Open && policy.writes.iter().any(|path| path.parent().is_none());
    if only_hides {
        return Ok(filter.end());
    }
    filter.deny(TOOLS);
    // Its flags are in memory. Programs fall back to `clone`.
    filter.answer(libc::SYS_clone3, MISSING);
    filter.when(libc::SYS_clone, 0, |block| block.any_bit(NAMESPACES, DENY));
    filter.when(libc::SYS_ioctl, 1, |block| block.only(REQUESTS.iter().map(|request| *request as u32)));
    // Of itself, by 0: never of another process.
    for call in
        [libc::SYS_sched_setaffinity, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler, libc::SYS_sched_setattr]
    {
        filter.when(call, 0, |block| block.only([0]));
    }
    for call in [libc::SYS_setpriority, libc::SYS_ioprio_set, libc::SYS_prlimit64] {
        let argument = if call == libc::SYS_prlimit64 { 0 } else { 1 };
        filter.when(call, argument, |block| block.only([0]));
    }
    if policy.writes.is_empty() {
        filter.deny(METADATA);
        filter.deny(METADATA_HERE);
    }
    if abi < landlock::KNOWS_TRUNCATE {
        filter.without_truncation();
    }
    if abi < landlock::KNOWS_SCOPES {
        filter.deny(SIGNALS);
    }
    filter.network(policy.network);
    Ok(filter.end())
}

/// A filter that is being made. What no block refuses is allowed.
struct Filter(Vec<sock_filter>);

impl Filter {
    fn begin() -> Filter {
        let mut filter = Filter(Vec::new());
        filter.add(LOAD, ARCH, 0, 0);
        // A program of another architecture, such as a 32-bit one, has other numbers.
        filter.add(EQUAL, ARCHITECTURE, 1, 0);
        filter.add(RETURN, MISSING, 0, 0);
        filter.add(LOAD, NUMBER, 0, 0);
        #[cfg(target_arch = "x86_64")]
        const {
            assert!(X32 > LAST, "calls of the x32 kind are above the last")
        };
        filter.add(ABOVE, LAST, 0, 1);
        filter.add(RETURN, MISSING, 0, 0);
        filter
    }

    fn add(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn answer(&mut self, call: c_long, answer: u32) {
        self.add(EQUAL, call as u32, 0, 1);
        self.add(RETURN, answer, 0, 0);
    }

    fn deny(&mut self, calls: &[c_long]) {
        for call in calls {
            self.answer(*call, DENY);
        }
    }

    /// What holds for a call, by the lower half of one of its arguments: a block that always returns.
    fn when(&mut self, call: c_long, argument: u32, block: impl FnOnce(&mut Block)) {
        let mut inner = Block(vec![sock_filter { code: LOAD, jt: 0, jf: 0, k: ARGUMENTS + 8 * argument }]);
        block(&mut inner);
        inner.0.push(sock_filter { code: RETURN, jt: 0, jf: 0, k: ALLOW });
        let length = u8::try_from(inner.0.len()).expect("a block is short");
        self.add(EQUAL, call as u32, 0, length);
        self.0.append(&mut inner.0);
    }

    /// Where Landlock does not know it, nothing is cut short but through a descriptor that is open for writing.
    fn without_truncation(&mut self) {
        const TRUNCATES: u32 = (libc::O_ACCMODE | libc::O_TRUNC) as u32;
        self.deny(&[libc::SYS_truncate]);
        // Its flags are in memory.
        self.answer(libc::SYS_openat2, MISSING);
        self.when(libc::SYS_openat, 2, |block| block.masked(TRUNCATES, libc::O_TRUNC as u32, DENY));
        #[cfg(target_arch = "x86_64")]
        self.when(libc::SYS_open, 1, |block| block.masked(TRUNCATES, libc::O_TRUNC as u32, DENY));
    }

    fn network(&mut self, network: Network) {
        if network == Network::Open {
            return;
        }
        // Ends of packets could be turned to any name.
        self.when(libc::SYS_socketpair, 1, |block| {
            block.add(MASK, KIND);
            block.only([libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32]);
        });
        match network {
            Network::Closed => self.deny(CONNECTING),
            _ => self.proxied(),
        }
    }

    /// TCP, whose ports Landlock holds to one; and no way to open a connection that it does not see.
    fn proxied(&mut self) {
        const FAST_OPEN: u32 = libc::MSG_FASTOPEN as u32;
        let mut socket = Block(Vec::new());
        socket.argument(2);
        socket.unless(&[0, libc::IPPROTO_TCP as u32]);
        socket.argument(0);
        socket.unless(&[libc::AF_INET as u32, libc::AF_INET6 as u32]);
        self.when(libc::SYS_socket, 1, |block| {
            block.add(MASK, KIND);
            block.unless(&[libc::SOCK_STREAM as u32]);
            block.0.append(&mut socket.0);
        });
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            self.when(call, flags, |block| block.any_bit(FAST_OPEN, DENY));
        }
    }

    fn end(mut self) -> Vec<sock_filter> {
        self.add(RETURN, ALLOW, 0, 0);
        self.0
    }
}

/// The kind of a socket, without its flags.
const KIND: u32 = 0xf;

/// What is asked of one call.
struct Block(Vec<sock_filter>);

impl Block {
    fn add(&mut self, code: u16, k: u32) {
        self.0.push(sock_filter { code, jt: 0, jf: 0, k });
    }

    fn argument(&mut self, argument: u32) {
        self.add(LOAD, ARGUMENTS + 8 * argument);
    }

    fn any_bit(&mut self, bits: u32, answer: u32) {
        self.0.push(sock_filter { code: ANY_BIT, jt: 0, jf: 1, k: bits });
        self.add(RETURN, answer);
    }

    /// What has exactly this under the mask gets the answer.
    fn masked(&mut self, mask: u32, value: u32, answer: u32) {
        self.add(MASK, mask);
        self.0.push(sock_filter { code: EQUAL, jt: 0, jf: 1, k: value });
        self.add(RETURN, answer);
    }

    /// Refuses everything but these.
    fn unless(&mut self, values: &[u32]) {
        for (at, value) in values.iter().enumerate() {
            // Past the rest and what refuses.
            let past = u8::try_from(values.len() - at).expect("a list is short");
            self.0.push(sock_filter { code: EQUAL, jt: past, jf: 0, k: *value });
        }
        self.add(RETURN, DENY);
    }

    fn only(&mut self, values: impl IntoIterator<Item = u32>) {
        self.unless(&values.into_iter().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What the filter answers to a call, as the kernel would run it.
    fn run(filter: &[sock_filter], arch: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &filter[at];
            at += 1;
            let jump = |hit: bool| usize::from(if hit { step.jt } else { step.jf });
            match step.code {
                LOAD if step.k == ARCH => value = arch,
                LOAD if step.k == NUMBER => value = call,
                LOAD => value = arguments[(step.k - ARGUMENTS) as usize / 8] as u32,
                MASK => value &= step.k,
                EQUAL => at += jump(value == step.k),
                ABOVE => at += jump(value > step.k),
                ANY_BIT => at += jump(value & step.k != 0),
                RETURN => return step.k,
                other => panic!("{other:x}"),
            }
        }
    }

    fn filter(writes: &[&str], network: Network, abi: u32) -> Vec<sock_filter> {
        let writes = writes.iter().map(PathBuf::from).collect();
        let policy = Policy { writes, network, ..Policy::reading(Vec::new()) };
        of(&policy, abi).unwrap()
    }

    #[test]
    fn calls_are_answered_by_what_they_do() {
        let (inet, unix) = (libc::AF_INET as u64, libc::AF_UNIX as u64);
        let (stream, packets) = (libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
        let cloexec = libc::SOCK_CLOEXEC as u64;
        let reads = filter(&[], Network::Closed, 7);
        let works = filter(&["/w"], Network::Proxy { port: 1 }, 7);
        let open = filter(&["/w"], Network::Open, 7);
        let old = filter(&[], Network::Closed, 1);
        let hides = filter(&["/"], Network::Open, 7);
        let rows: &[(&[sock_filter], c_long, &[u64], u32)] = &[
            (&reads, libc::SYS_read, &[], ALLOW),
            (&reads, libc::SYS_openat, &[0, 0, libc::O_TRUNC as u64], ALLOW),
            (&old, libc::SYS_openat, &[0, 0, libc::O_TRUNC as u64], DENY),
            (&old, libc::SYS_openat, &[0, 0, (libc::O_TRUNC | libc::O_WRONLY) as u64], ALLOW),
            (&old, libc::SYS_truncate, &[], DENY),
            (&old, libc::SYS_kill, &[], DENY),
            (&reads, libc::SYS_kill, &[], ALLOW),
            (&reads, libc::SYS_ptrace, &[], DENY),
            (&reads, libc::SYS_io_uring_setup, &[], DENY),
            (&hides, libc::SYS_io_uring_setup, &[], DENY),
            (&hides, libc::SYS_mount, &[], DENY),
            (&hides, libc::SYS_ptrace, &[], ALLOW),
            (&hides, libc::SYS_unshare, &[], ALLOW),
            (&hides, libc::SYS_clone3, &[], ALLOW),
            (&hides, libc::SYS_ioctl, &[0, libc::TIOCSTI], ALLOW),
            (&works, libc::SYS_unshare, &[], DENY),
            (&reads, libc::SYS_fchmod, &[], DENY),
            (&works, libc::SYS_fchmod, &[], ALLOW),
            (&reads, 466, &[], DENY),
            (&works, 466, &[], ALLOW),
            (&works, 467, &[], MISSING),
            (&works, 1 << 30, &[], MISSING),
            (&reads, libc::SYS_clone, &[libc::CLONE_VM as u64], ALLOW),
            (&reads, libc::SYS_clone, &[libc::CLONE_NEWUSER as u64], DENY),
            (&reads, libc::SYS_clone3, &[], MISSING),
            (&reads, libc::SYS_ioctl, &[0, libc::TCGETS], ALLOW),
            (&reads, libc::SYS_ioctl, &[0, 0xB704], ALLOW),
            (&reads, libc::SYS_ioctl, &[0, libc::TIOCSTI], DENY),
            // The kernel looks at the lower half only.
            (&reads, libc::SYS_ioctl, &[0, 1 << 32 | libc::TIOCSTI], DENY),
            (&works, libc::SYS_ioctl, &[0, libc::TIOCSTI], DENY),
            (&reads, libc::SYS_socket, &[inet, stream, 0], DENY),
            (&works, libc::SYS_socket, &[inet, stream | cloexec, 0], ALLOW),
            (&works, libc::SYS_socket, &[inet, stream, 6], ALLOW),
            (&works, libc::SYS_socket, &[inet, stream, 262], DENY),
            (&works, libc::SYS_socket, &[inet, packets, 0], DENY),
            (&works, libc::SYS_socket, &[unix, stream, 0], DENY),
            (&open, libc::SYS_socket, &[unix, packets, 0], ALLOW),
            (&reads, libc::SYS_socketpair, &[unix, stream | cloexec], ALLOW),
            (&reads, libc::SYS_socketpair, &[unix, packets], DENY),
            (&reads, libc::SYS_connect, &[], DENY),
            (&works, libc::SYS_connect, &[], ALLOW),
            (&works, libc::SYS_sendto, &[0, 0, 0, libc::MSG_FASTOPEN as u64], DENY),
            (&works, libc::SYS_sendto, &[0, 0, 0, 0], ALLOW),
            (&reads, libc::SYS_prlimit64, &[0], ALLOW),
            (&reads, libc::SYS_prlimit64, &[1], DENY),
            (&reads, libc::SYS_setpriority, &[0, 0], ALLOW),
            (&reads, libc::SYS_setpriority, &[0, 1], DENY),
        ];
        for (nth, (filter, call, given, want)) in rows.iter().enumerate() {
            let mut arguments = [0; 6];
            arguments[..given.len()].copy_from_slice(given);
            assert_eq!(run(filter, ARCHITECTURE, *call as u32, arguments), *want, "row {nth}: {call} {given:?}");
        }
        assert_eq!(run(&reads, 0x4000_0003, 1, [0; 6]), MISSING, "a 32-bit program");
        for filter in [&reads, &works, &open, &old, &hides] {
            assert!(filter.len() < 4096, "the kernel takes no longer one");
        }
    }
}
