//! Compiled components, which the first start in each test's own data directory would compile anew: a second of two cores, a hundred times over.
//! They are lent to the next test, with the key that they are sealed with, as a data directory would hold them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use wharf_task_kit::tools;

const KEY: &str = "key";

/// What tests of this process have compiled; emptied when the first of them asks.
fn store() -> Option<&'static Path> {
    static STORE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let store = STORE.get_or_init(|| {
        let folder = tools::tools_folder().ok()?.join("compiled");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).ok()?;
        Some(folder)
    });
    store.as_deref()
}

fn cache(data: &Path) -> PathBuf {
    data.join("plugins").join("cache")
}

/// Puts what is known into a data directory that is not there yet. Without it, only time is lost.
pub(crate) fn lend(data: &Path) {
    let Some(store) = store().filter(|store| store.join(KEY).exists() && !data.exists()) else { return };
    let lent = || {
        DirBuilder::new().recursive(true).mode(0o700).create(cache(data))?;
        copy_new(store, &cache(data))
    };
    if lent().is_err() {
        let _ = fs::remove_dir_all(cache(data));
    }
}

/// Keeps what a data directory holds that is sealed with the same key.
pub(crate) fn keep(data: &Path) {
    let (Some(store), Ok(key)) = (store(), fs::read(cache(data).join(KEY))) else { return };
    // The first key is everybody's from then on.
    let _ = copy(&cache(data), store, KEY);
    if fs::read(store.join(KEY)).is_ok_and(|known| known == key) {
        let _ = copy_new(&cache(data), store);
    }
}

fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.') && !to.join(name).exists()) else {
            continue;
        };
        copy(from, to, name)?;
    }
    Ok(())
}

/// Whole or not at all, and never over what is there: tests run side by side.
fn copy(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let half = tempfile::Builder::new().prefix(".half-").tempfile_in(to)?;
    fs::copy(from.join(name), half.path())?;
    half.persist_noclobber(to.join(name)).map(drop).map_err(|error| error.error)
}
