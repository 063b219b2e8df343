//! The SDK crate in a project: `wharf-plugin/`, a copy of what this binary was built with. It is on no registry yet, and a copy always
//! fits the host that wrote it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::embedded;
use super::new::{NewError, write_all};

/// Its folder in a project.
const FOLDER: &str = "wharf-plugin";

/// Why the SDK of a project could not be replaced.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// There is none.
    #[error("{} has no copy of the SDK (no {FOLDER}/Cargo.toml of the package {FOLDER:?}): is this a project that `wharf plugin new` has made for Rust?", .0.display())]
    NoSdk(PathBuf),
    /// The old one could not be removed.
    #[error("removing {}: {cause}", .path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The new one could not be written.
    #[error(transparent)]
    Write(#[from] NewError),
}

/// Its files, as they lie in a project.
pub(super) fn files() -> impl Iterator<Item = (String, Cow<'static, [u8]>)> {
    embedded::below("sdk/").map(|(path, bytes)| (format!("{FOLDER}/{path}"), Cow::Borrowed(bytes)))
}

/// The versions of other crates that Wharf's own plugins are tested with. Cargo takes what it needs of it.
pub(super) fn lock() -> impl Iterator<Item = (String, Cow<'static, [u8]>)> {
    embedded::below("sdk.lock").map(|(_, bytes)| ("Cargo.lock".to_owned(), Cow::Borrowed(bytes)))
}

/// Puts this binary's SDK in the place of a project's.
///
/// # Errors
/// See [`UpdateError`].
pub fn update(project: &Path) -> Result<PathBuf, UpdateError> {
    let folder = project.join(FOLDER);
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.lines().any(|line| line.trim() == "name = \"wharf-plugin\"") {
        return Err(UpdateError::NoSdk(project.to_owned()));
    }
    fs::remove_dir_all(&folder).map_err(|cause| UpdateError::Remove { path: folder.clone(), cause })?;
    write_all(project, &files().collect::<BTreeMap<_, _>>())?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_brings_what_is_in_this_binary_and_nothing_else() {
        let project = tempfile::tempdir().unwrap();
        let sdk = project.path().join("wharf-plugin");
        fs::create_dir_all(sdk.join("src")).unwrap();
        fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"wharf-plugin\"\n").unwrap();
        fs::write(sdk.join("src/gone.rs"), "").unwrap();
        update(project.path()).unwrap();
        assert!(sdk.join("src/lib.rs").is_file() && sdk.join("wit/output.wit").is_file());
        assert!(!sdk.join("src/gone.rs").exists());
    }

    #[test]
    fn a_folder_that_is_no_sdk_is_not_replaced() {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir_all(project.path().join("wharf-plugin")).unwrap();
        fs::write(project.path().join("wharf-plugin/mine.txt"), "mine").unwrap();
        assert!(matches!(update(project.path()), Err(UpdateError::NoSdk(_))));
        assert!(project.path().join("wharf-plugin/mine.txt").is_file());
    }
}
