//! `cargo xtask docs`: what is written by a program in docs/.
//!
//! A test fails where the reference is not what the WIT files say.

mod reference;

use std::path::Path;

use anyhow::Context as _;
use wharf_task_kit::repository;
use wit_parser::Resolve;

/// The reference of the WIT package, in the repository.
const REFERENCE: &str = "docs/plugins/reference.md";

/// Writes it.
pub fn write() -> anyhow::Result<()> {
    let repository = repository()?;
    let path = repository.join(REFERENCE);
    std::fs::write(&path, text(&repository)?).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn text(repository: &Path) -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(repository.join("wit")).context("reading wit/")?;
    let world = resolve.select_world(&[package], Some("plugin")).context("the world in wit/output.wit")?;
    reference::of(&resolve, package, world).context("a WIT file has something that the reference has no words for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_what_the_wit_files_say() {
        let repository = repository().unwrap();
        let written = std::fs::read_to_string(repository.join(REFERENCE)).unwrap_or_default();
        assert!(written == text(&repository).unwrap(), "{REFERENCE} is not current: run `cargo xtask docs`");
    }
}
