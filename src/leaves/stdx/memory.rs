//! Memory that is free goes back to the system.

/// Gives back what the allocator keeps for later, where much was let go at once. Takes milliseconds.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
