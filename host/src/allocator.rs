//! How the C library's allocator is set up, and when it gives memory back.
//!
//! It makes arenas, up to eight for each core, where threads meet at one that is in use; an arena keeps what was freed in it, and
//! others cannot have that. Wharf has four threads a core and some that block, and what it moves are pieces of 1 to 8 MiB, made
//! in one thread and freed in another: many arenas each end up with a few such pieces that nobody uses. With an arena for each core a process
//! that delivers to S3 with two workers has 120 MiB at most in place of 160 to 210, and is as fast; a fixed threshold for `mmap` saves more, but costs
//! 40 % more CPU, for the page faults of memory that is new each time.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether much was freed that nobody is going to need soon.
static MUCH_IS_FREE: AtomicBool = AtomicBool::new(false);

/// Something was let go that had been there for long. The allocator keeps what lies between things that stay: see [`give_back`].
pub(crate) fn much_is_free() {
    MUCH_IS_FREE.store(true, Ordering::Relaxed);
}

/// Gives free memory back to the system, where [`much_is_free`] said so since the last time. Takes some milliseconds. Gives whether it did.
pub(crate) fn give_back() -> bool {
    let is_due = MUCH_IS_FREE.swap(false, Ordering::Relaxed);
    if is_due {
        trim();
    }
    is_due
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    #[expect(unsafe_code, reason = "the C library has no safe way to be told")]
    // SAFETY: malloc_trim(3) takes a number, may be called by any thread at any time, and touches nothing that is in use.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

/// Limits arenas to the number of cores, where `MALLOC_ARENA_MAX` says nothing else. Called before there are threads: arenas that are there stay.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn limit_arenas() {
    if std::env::var_os("MALLOC_ARENA_MAX").is_some() {
        return;
    }
    let most = libc::c_int::try_from(crate::fair::cores().max(2)).unwrap_or(libc::c_int::MAX);
    #[expect(unsafe_code, reason = "the C library has no safe way to be told")]
    // SAFETY: mallopt(3) takes two numbers and keeps them; one that it does not like it refuses, and leaves everything as it was.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, most) };
}

/// Another C library has another allocator.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn limit_arenas() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_all_that_was_let_go() {
        much_is_free();
        much_is_free();
        // Outputs of other tests may let go of something meanwhile, so only the first is certain.
        assert!(give_back());
    }
}
