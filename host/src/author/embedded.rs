//! Files that come inside the binary, packed by `build.rs`, so that a project can be made and built without anything else at hand: the
//! WIT package, the SDK crate for Rust, and the templates of new projects.

use wit_parser::{PackageId, Resolve};

use crate::plugin::wit::{self, Wit};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Embedded files below a folder (`sdk/`, `templates/rust/`, …), each with its path inside of it, in the order of their paths.
pub fn below(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(folder)?, *bytes)))
}

/// Files of the WIT package `wharf:output`: name and text.
pub fn wit() -> impl Iterator<Item = (&'static str, &'static str)> {
    wit::FILES.into_iter()
}

/// The WIT package, parsed.
///
/// # Errors
/// Where the embedded files are no WIT package.
pub fn wit_package() -> Result<(Resolve, PackageId), String> {
    Wit::parse(&wit::FILES).map(|wit| (wit.resolve, wit.package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wit_package_is_inside_whole() {
        let names: Vec<&str> = below("sdk/wit/").map(|(name, _)| name).collect();
        let in_repository = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit")).unwrap();
        let mut expected: Vec<String> =
            in_repository.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        expected.sort();
        assert_eq!(names, expected);
        assert!(wit().map(|(name, _)| name).eq(names), "a project's files and those that a component is compared with");
    }

    #[test]
    fn the_sdk_is_inside_with_what_cargo_needs() {
        let names: Vec<&str> = below("sdk/").map(|(name, _)| name).collect();
        assert!(names.contains(&"Cargo.toml") && names.contains(&"src/lib.rs"), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with("target/")), "{names:?}");
    }
}
