//! The components that are part of the binary.

/// The bytes of a built-in component.
pub(crate) fn component(_name: &str) -> Option<&'static [u8]> {
    None
}

/// The names of all built-in components.
pub(crate) fn names() -> &'static [&'static str] {
    &[]
}
