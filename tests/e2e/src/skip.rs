//! A test that cannot run on this machine says so, in a place where it is seen.

use std::io::Write as _;

/// Notes that a test did not run, and why. In CI (`CI` is set) this is a failure: a green run must have run everything.
///
/// # Panics
/// In CI, unless `optional`.
pub fn skip(test: &str, why: &str, optional: bool) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    assert!(optional || !in_ci, "{test} cannot run here, and CI must run it: {why}");
    eprintln!("SKIPPED {test}: {why}");
    if let Some(file) = std::env::var_os("WHARF_SKIPPED_FILE") {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| writeln!(file, "{test}: {why}"));
    }
}
