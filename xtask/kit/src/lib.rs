//! What `cargo xtask`, the demo and the end-to-end tests share. Small, so that `cargo xtask` itself builds in seconds.

pub mod show;
pub mod tools;

use std::path::{Path, PathBuf};

/// The folder of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
