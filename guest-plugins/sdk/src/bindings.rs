//! What `wit-bindgen` makes of the WIT package. No part of the interface: the rest of the crate gives it natural shapes.
#![allow(missing_docs, reason = "the WIT files document these items")]
#![allow(unsafe_code, reason = "generated: the canonical ABI's lifting and lowering")]
#![allow(clippy::all, reason = "generated")]
#![allow(unused_qualifications, clippy::allow_attributes_without_reason, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "export",
    default_bindings_module: "wharf_plugin::bindings",
});
