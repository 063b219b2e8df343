//! What C code sees of the WIT package: a header and a source made by `wit-bindgen-c`, and an object file that carries the package's
//! types into the module, where the component encoder finds them.

use wit_bindgen_c::Opts;

use crate::author::embedded;

/// Names of generated types and files begin so: `wharf.h`, `wharf_string_t`.
const PREFIX: &str = "wharf";

/// The object file among [`files`].
pub(super) const TYPE_OBJECT: &str = "wharf_component_type.o";

/// The bindings: name and content.
///
/// # Errors
/// Where the WIT package that is inside this binary is wrong.
pub(super) fn files() -> Result<Vec<(String, Vec<u8>)>, String> {
    let (mut resolve, package) = embedded::wit_package()?;
    let world = resolve.select_world(&[package], Some("plugin")).map_err(|error| format!("{error:#}"))?;
    let options = Opts { rename_world: Some(PREFIX.into()), ..Opts::default() };
    let mut files = Default::default();
    options.build().generate(&mut resolve, world, &mut files).map_err(|error| format!("{error:#}"))?;
    Ok(files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bindings_have_a_header_a_source_and_the_types() {
        let files = files().unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["wharf.c", "wharf.h", TYPE_OBJECT]);
        let header = String::from_utf8(files[1].1.clone()).unwrap();
        // What the WIT package exports, and what it offers, as wit-bindgen names them.
        for declared in ["exports_wharf_output_output_deliver", "wharf_output_http_send", "wharf_string_t"] {
            assert!(header.contains(declared), "{declared}");
        }
    }
}
