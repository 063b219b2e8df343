//! What `cargo xtask`, the demo and the end-to-end tests share. Small, so that `cargo xtask` itself builds in seconds.

pub mod show;
pub mod tools;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The folder of the repository, found when it is asked for: from the package that cargo runs, else from the working directory, else from this
/// program. Not the one that it was built in: where several clones share a target folder, that may be another clone, or gone.
///
/// # Errors
/// Where none of them is inside of a clone.
pub fn repository() -> anyhow::Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let places = [package, std::env::current_dir().ok(), std::env::current_exe().ok()];
    let found = places.iter().flatten().find_map(|place| root_of(place));
    found.map(Path::to_path_buf).with_context(|| {
        let places: Vec<String> = places.iter().flatten().map(|place| place.display().to_string()).collect();
        format!(
            "there is no clone of Wharf (a Cargo.toml with [workspace], and wit/ beside it) around {}; run this inside of one",
            places.join(" or ")
        )
    })
}

/// The nearest folder above that is a clone's.
fn root_of(place: &Path) -> Option<&Path> {
    place.ancestors().find(|folder| {
        let workspace =
            std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"));
        workspace && folder.join("wit").is_dir()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_a_workspace_with_wit_beside_it() {
        let folder = std::env::temp_dir().join(format!("wharf-kit-{}", std::process::id()));
        let (clone, inner) = (folder.join("clone"), folder.join("clone/guest-plugins/s3"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir_all(clone.join("wit")).unwrap();
        // A package, and a workspace without wit/, are on the way.
        std::fs::write(inner.join("Cargo.toml"), "[package]\n").unwrap();
        std::fs::write(clone.join("guest-plugins/Cargo.toml"), "[workspace]\n").unwrap();
        std::fs::write(clone.join("Cargo.toml"), "[package]\n").unwrap();
        assert_eq!(root_of(&inner), None);
        std::fs::write(clone.join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
        assert_eq!(root_of(&inner), Some(clone.as_path()));
        assert_eq!(root_of(&clone), Some(clone.as_path()));
        assert_eq!(root_of(&folder), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn these_tests_run_in_the_clone_that_cargo_runs_them_in() {
        let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        assert_eq!(repository().unwrap().join("xtask/kit"), package);
    }
}
