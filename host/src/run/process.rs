//! What the process does for its own safety, whoever starts it: secrets of outputs and records of tenants are in its memory.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// No core dump, and no other process of the same user that reads the memory of this one (`ptrace`, `/proc/PID/mem`).
///
/// A limit of zero alone would not do: where the kernel hands core dumps to a program (`core_pattern` with a `|`), it counts for nothing.
pub(super) fn keep_memory_private() {
    if let Err(cause) = rlimit::setrlimit(rlimit::Resource::CORE, 0, 0) {
        tracing::warn!(%cause, "core dumps could not be turned off: see `ulimit -c`");
    }
    if let Err(cause) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%cause, "the process could not be made undumpable: others of the same user may read its memory");
    }
}

/// Root has no need to be: nothing that Wharf does needs more than its folder and the files that it reads.
pub(super) fn warn_of_root() {
    if rustix::process::geteuid().is_root() {
        tracing::warn!(
            "Wharf runs as root: give it a user of its own (packaging/wharf.service, packaging/Containerfile), so that whatever gets out of a plugin is nobody"
        );
    }
}
