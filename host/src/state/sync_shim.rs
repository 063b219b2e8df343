//! Makes sled's flush real.
//!
//! sled 0.34.7 ends a flush with `sync_file_range` on Linux, which neither writes metadata nor empties the disk's cache:
//! after a power cut, flushed rows are gone. Here the process has a `sync_file_range` of its own, which the linker prefers
//! to the C library's, and which is an `fdatasync`. It counts its calls, so that a start can prove that sled reaches it.
#![expect(unsafe_code, reason = "a C symbol has to be replaced; there is no safe way to do that")]

use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// What sled calls at the end of each write to its log: an `fdatasync` of the whole file.
#[cfg(target_os = "linux")]
// SAFETY: same name, same signature and same contract (0, or -1 and errno) as the C library's function, but stronger.
#[unsafe(no_mangle)]
pub extern "C" fn sync_file_range(
    fd: libc::c_int,
    _offset: libc::off64_t,
    _bytes: libc::off64_t,
    _flags: libc::c_uint,
) -> libc::c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: fdatasync takes any number for a descriptor, and answers EBADF to a wrong one.
    unsafe { libc::fdatasync(fd) }
}

/// How often sled has synced so far. None where this system's sled calls `fsync` by itself.
pub(super) fn syncs() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        // Naming the function here is what keeps it in every program that opens a state.
        std::hint::black_box(sync_file_range as *const ());
        Some(CALLS.load(Ordering::Relaxed))
    }
    #[cfg(not(target_os = "linux"))]
    None
}
