//! Builds the built-in components, to be embedded.
fn main() {}
