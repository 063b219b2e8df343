//! The components that come inside the binary, made by `build.rs`.

const BUILT_IN: &[(&str, &[u8])] = &[
    ("s3", include_bytes!(concat!(env!("OUT_DIR"), "/s3.wasm"))),
    ("cloudwatch_logs", include_bytes!(concat!(env!("OUT_DIR"), "/cloudwatch_logs.wasm"))),
];

/// A built-in component by its name, as in `plugin: <name>`.
#[must_use]
pub fn component(name: &str) -> Option<&'static [u8]> {
    BUILT_IN.iter().find(|(built_in, _)| *built_in == name).map(|(_, component)| *component)
}

/// Names of all built-in components.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["s3", "cloudwatch_logs"]
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, component, names};

    /// A component begins with `\0asm`, version 13, layer 1; a core module has version 1, layer 0 there.
    #[test]
    fn every_name_has_a_component_and_every_component_a_name() {
        assert_eq!(names(), BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for name in names() {
            assert_eq!(component(name).and_then(|bytes| bytes.get(..8)), Some(&b"\0asm\x0d\0\x01\0"[..]), "{name}");
        }
        assert_eq!(component("no_such_plugin"), None);
    }
}
