//! Keeps what this process knows from other processes of its user: keys stand in the environment, and in memory.

/// Takes the environment out of what the system shows of this process (`/proc/<pid>/environ`), and bars processes of the
/// same user from its memory and open files, and from core files of it. Our own reading of the environment continues as
/// before.
///
/// # Safety
/// Only while this is the only thread, and before anybody keeps a pointer into the environment.
pub unsafe fn keep() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: as promised by the caller.
        unsafe { move_environment() };
        // Refused by no kernel that we run on; without it there is no more to be done.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
}

/// Copies every variable elsewhere and wipes its first place, which is what the system shows.
#[cfg(target_os = "linux")]
unsafe fn move_environment() {
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    // SAFETY: the list ends with a null pointer, each entry with a zero byte, and all of it is ours to write. The copies are
    // never freed: they are the environment from now on.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let first = *entry;
            let length = CStr::from_ptr(first).count_bytes();
            *entry = CStr::from_ptr(first).to_owned().into_raw();
            std::ptr::write_bytes(first, 0, length);
            entry = entry.add(1);
        }
    }
}
