//! The bindings in `src/bindings/generated.rs` are those of the WIT files.

#![expect(clippy::unwrap_used, reason = "a test: a panic is a failed assertion")]

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::Opts;

const UPDATE: &str = "WHARF_UPDATE_BINDINGS";

#[test]
fn the_bindings_are_those_of_the_wit_files() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = made(&sdk.join("wit"));
    let file = sdk.join("src/bindings/generated.rs");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        there == made,
        "the WIT files have changed: write {} anew with\n\n    {UPDATE}=1 cargo test -p wharf-plugin --test bindings\n",
        file.display()
    );
}

/// As the macro `wit_bindgen::generate!` makes them, without documents: nobody reads them there, and the WIT files have them.
fn made(wit: &Path) -> String {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).unwrap();
    let world = resolve.select_world(&[package], Some("plugin")).unwrap();
    let options = Opts {
        format: true,
        pub_export_macro: true,
        export_macro_name: Some("export".into()),
        default_bindings_module: Some("wharf_plugin::bindings".into()),
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, bytes) = files.iter().next().unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with("///")).collect()
}
