//! What every program of the system may need, and nobody's secret: folders of programs, harmless configuration, devices.

/// What a command may read that reads only what it was judged to: what is missing on a machine is left out.
pub(super) const READABLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/snap",
    // The kernel itself keeps a confined process from what belongs to others there: memory, environment, open files.
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    // Names and ids, without passwords.
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/shells",
    // What programs are loaded and set up with.
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/default/locale",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/debian_version",
    "/etc/redhat-release",
    "/etc/issue",
    "/etc/inputrc",
    "/etc/terminfo",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/file",
    "/etc/manpath.config",
    "/etc/man_db.conf",
    "/etc/gitconfig",
    "/etc/gitattributes",
    "/etc/vim",
    "/etc/fonts",
    "/etc/perl",
    "/etc/python3",
    "/etc/crypto-policies",
    "/etc/gnutls",
    // Certificates, not keys.
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/dev/random",
    "/dev/urandom",
];

/// What may be written whatever else may not: nothing of it is kept.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// What commands need that change something. No pseudo-terminals: Landlock cannot tell a new one from the user's own, on which
/// keys would be read and anything shown.
pub(super) const SHARED: &[&str] = &["/dev/random", "/dev/urandom", "/dev/shm"];
