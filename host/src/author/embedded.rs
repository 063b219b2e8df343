//! Files that come inside the binary, packed by `build.rs`, so that a project can be made and built without anything else at hand: the
//! WIT package, the SDK crate for Rust, and the templates of new projects.

use wit_parser::{PackageId, Resolve, SourceMap};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Embedded files below a folder (`sdk/`, `templates/rust/`, …), each with its path inside of it, in the order of their paths.
pub fn below(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(folder)?, *bytes)))
}

/// Files of the WIT package `wharf:output`: name and text.
pub fn wit() -> impl Iterator<Item = (&'static str, &'static str)> {
    below("sdk/wit/").filter_map(|(name, bytes)| Some((name, std::str::from_utf8(bytes).ok()?)))
}

/// The WIT package, parsed.
///
/// # Errors
/// Where the embedded files are no WIT package.
pub fn wit_package() -> Result<(Resolve, PackageId), String> {
    let mut sources = SourceMap::new();
    wit().for_each(|(name, text)| sources.push_str(name, text));
    let group = sources.parse().map_err(|(sources, error)| error.render(&sources))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    Ok((resolve, package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wit_package_is_inside_whole() {
        let names: Vec<&str> = wit().map(|(name, _)| name).collect();
        let in_repository = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit")).unwrap();
        let mut expected: Vec<String> =
            in_repository.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn the_sdk_is_inside_with_what_cargo_needs() {
        let names: Vec<&str> = below("sdk/").map(|(name, _)| name).collect();
        assert!(names.contains(&"Cargo.toml") && names.contains(&"src/lib.rs"), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with("target/")), "{names:?}");
    }
}
