//! What `wit-bindgen` makes of the WIT package. No part of the interface: the rest of the crate gives it natural shapes.
//!
//! It is made beforehand, not by the macro in each build: the generator is half of what a plugin would have to compile. `tests/bindings.rs`
//! checks that it is that of the WIT files, and writes it anew with `WHARF_UPDATE_BINDINGS=1 cargo test -p wharf-plugin --test bindings`.
#![allow(missing_docs, reason = "the WIT files document these items")]
#![allow(unsafe_code, reason = "generated: the canonical ABI's lifting and lowering")]
#![allow(clippy::all, clippy::unwrap_used, clippy::panic, clippy::unimplemented, reason = "generated")]
#![allow(unused_qualifications, clippy::allow_attributes_without_reason, reason = "generated")]

include!("bindings/generated.rs");
