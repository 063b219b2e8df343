//! What `cargo xtask`, the demo and the end-to-end tests share. Small, so that `cargo xtask` itself builds in seconds.

pub mod show;
pub mod tools;

use std::path::{Path, PathBuf};

/// The folder of the repository: the one that cargo runs this program in, or else the one that it was built in. They differ where
/// several clones share a target folder.
#[must_use]
pub fn repository() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root_of = |folder: &Path| folder.ancestors().find(|root| root.join("wit").is_dir()).map(Path::to_path_buf);
    here.as_deref().and_then(root_of).or_else(|| root_of(built)).unwrap_or_else(|| PathBuf::from("."))
}
