//! Whether bytes can be a plugin of this host, and if not, what their author should do.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::capability::bindings::WIT_VERSION;
use crate::capability::one_line;

/// Largest component: script languages bring their interpreter along.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// What plugins of this package export.
const EXPORT: &str = "wharf:output/output";
/// What this host offers of its own package.
const INTERFACES: [&str; 10] =
    ["types", "records", "sequence", "storage", "s3", "cloudwatch-logs", "http", "log", "metrics", "clock"];
/// Packages of WASI that it offers, with nothing behind them.
const WASI: [&str; 6] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];

/// Finds out from the first bytes whether this is a component at all.
pub(super) fn check_form(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it has {} bytes, and may have at most {MAX_BYTES}", bytes.len()));
    }
    let build = "build it with `cargo build --release --target wasm32-wasip2`, or turn a core module into a component with \
                 `wasm-tools component new`";
    match bytes {
        // Component layer 1, version 0x0d.
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err(format!("it is a core WebAssembly module, and a plugin is a component: {build}"))
        }
        [0, b'a', b's', b'm', version @ ..] => {
            let version = hex::encode(version.get(..4).unwrap_or(version));
            Err(format!("its WebAssembly binary version {version} is not known here: {build}"))
        }
        [0x7f, b'E', b'L', b'F', ..] => {
            Err("it is machine code, perhaps of `wasmtime compile`: give the component itself, Wharf compiles it"
                .into())
        }
        [] => Err("it is empty".into()),
        other if is_wat(other) => {
            Err("it is WebAssembly text: turn it into a binary with `wasm-tools parse -o plugin.wasm`".into())
        }
        other => {
            let begins = hex::encode(other.get(..8).unwrap_or(other));
            Err(format!("it is not WebAssembly (it begins with the bytes {begins}): {build}"))
        }
    }
}

fn is_wat(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    text.starts_with(b"(component") || text.starts_with(b"(module") || text.starts_with(b";;")
}

/// Compares what the component imports and exports with what this host has, by name and version.
pub(super) fn check_names(engine: &Engine, component: &Component) -> Result<(), String> {
    let kind = component.component_type();
    let mut faults: Vec<String> = kind.imports(engine).filter_map(|(name, _)| import_fault(name)).collect();
    let exports: Vec<&str> = kind.exports(engine).map(|(name, _)| name).collect();
    faults.extend(export_fault(&exports));
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// What is wrong with an import.
fn import_fault(import: &str) -> Option<String> {
    let (name, version) = split(import);
    let shown = one_line(import, 200);
    if let Some(interface) = name.strip_prefix("wharf:output/") {
        if !INTERFACES.contains(&interface) {
            let known = INTERFACES.join(", ");
            return Some(format!(
                "it imports {shown}, which this host does not have (it has {known} of wharf:output@{WIT_VERSION}): use a newer Wharf"
            ));
        }
        return (!same_track(version, WIT_VERSION)).then(|| version_fault("imports", &shown, name));
    }
    let is_wasi = WASI.iter().any(|package| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('/')));
    if is_wasi && same_track(version, "0.2.0") {
        return None;
    }
    let remedy = match name {
        _ if name.starts_with("wasi:http/") => "outputs reach their destination through the host's own interfaces",
        _ if name.starts_with("wasi:") => {
            "this host offers cli, clocks, filesystem, io, random and sockets of WASI 0.2, all empty"
        }
        _ => "a plugin imports only wharf:output and WASI 0.2",
    };
    Some(format!("it imports {shown}, which this host does not have: {remedy}"))
}

fn export_fault(exports: &[&str]) -> Option<String> {
    let found = exports.iter().find(|export| split(export).0 == EXPORT);
    match found {
        Some(export) if same_track(split(export).1, WIT_VERSION) => None,
        Some(export) => Some(version_fault("exports", &one_line(export, 200), EXPORT)),
        None => {
            let names: Vec<String> = exports.iter().take(5).map(|name| one_line(name, 100)).collect();
            let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
            Some(format!("it does not export {EXPORT}@{WIT_VERSION}, so it is no output; it exports {names}"))
        }
    }
}

fn version_fault(does: &str, found: &str, name: &str) -> String {
    format!("it {does} {found}, and this host has {name}@{WIT_VERSION}: build it with the WIT files of this Wharf")
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    }
}

/// Whether a version may stand for another, as the component linker sees it: the same major, or the same minor below 1.0.0.
/// Pre-releases stand only for themselves.
fn same_track(found: Option<&str>, wanted: &str) -> bool {
    let track = |version: &str| -> Option<(u64, u64)> {
        let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        // The patch number must be one, but does not matter.
        numbers.next()??;
        Some(if major > 0 { (major, 0) } else { (0, minor) })
    };
    found.is_some_and(|found| found == wanted || track(found).is_some_and(|found| track(wanted) == Some(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_told_from_everything_else() {
        assert_eq!(check_form(b"\0asm\x0d\0\x01\0..."), Ok(()));
        for (bytes, told) in [
            (&b"\0asm\x01\0\0\0"[..], "wasm32-wasip2"),
            (b"\0asm\x0a\0\x01\0", "0a000100"),
            (b"\x7fELF...", "machine code"),
            (b"", "empty"),
            (b"\n  (component)", "wasm-tools parse"),
            (b"#!/bin/sh", "23212f62696e2f73"),
            (b"\0as", "begins with the bytes 006173"),
        ] {
            let text = check_form(bytes).unwrap_err();
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn interfaces_are_known_by_name_and_track() {
        for (import, known) in [
            ("wharf:output/records@0.1.0", true),
            ("wharf:output/records@0.1.7", true),
            ("wharf:output/records@0.2.0", false),
            ("wharf:output/records@0.1.0-rc1", false),
            ("wharf:output/records", false),
            ("wharf:output/http@0.1.0", true),
            ("wharf:output/kafka@0.1.0", false),
            ("wasi:io/streams@0.2.6", true),
            ("wasi:io/streams@0.2.0", true),
            ("wasi:io/streams@0.3.0", false),
            ("wasi:http/outgoing-handler@0.2.0", false),
            ("wasi:iota/x@0.2.0", false),
            ("acme:db/query@1.0.0", false),
        ] {
            assert_eq!(import_fault(import).is_none(), known, "{import}");
        }
    }

    #[test]
    fn another_version_is_told_with_the_one_that_is_here() {
        assert_eq!(
            import_fault("wharf:output/s3@0.4.0").unwrap(),
            "it imports wharf:output/s3@0.4.0, and this host has wharf:output/s3@0.1.0: build it with the WIT files of this Wharf"
        );
        assert!(export_fault(&["wharf:output/output@2.0.0"]).unwrap().contains("wharf:output/output@0.1.0"));
    }

    #[test]
    fn a_component_without_the_export_is_no_output() {
        assert_eq!(export_fault(&["a:b/c", "wharf:output/output@0.1.0"]), None);
        let text = export_fault(&["wasi:cli/run@0.2.0"]).unwrap();
        assert!(text.contains("no output") && text.contains("wasi:cli/run@0.2.0"), "{text}");
    }

    #[test]
    fn every_interface_of_the_wit_files_is_offered() {
        let wit = include_str!("../../../wit/output.wit");
        let imports = wit.lines().filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'));
        assert_eq!(imports.collect::<Vec<_>>(), INTERFACES);
    }

    #[test]
    fn the_version_is_the_one_in_the_wit_files() {
        let wit = include_str!("../../../wit/output.wit");
        assert!(wit.starts_with(&format!("package wharf:output@{WIT_VERSION};")));
    }
}
