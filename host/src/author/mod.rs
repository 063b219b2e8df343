//! What a plugin author uses at the desk: from nothing to a component that a host runs.
//!
//! In: a name, or a project's folder. Out: files of a new project, a component, reports for a person. Nothing here runs in production,
//! and nothing here is needed by what does. The command line over it is `cli/plugin/`.

pub mod build;
pub mod embedded;
pub mod inspect;
pub mod new;
pub mod sdk;
pub mod trial;

use std::path::PathBuf;

/// Where compiled components are kept at the desk, so that the second look at one is quick: the user's own cache. None where there
/// is no such place.
#[must_use]
pub fn desk_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("wharf").join("plugins"))
}
