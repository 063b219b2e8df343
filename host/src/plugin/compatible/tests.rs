//! What authors are told. Every expected text is written by hand from what was changed in the WIT files.

use super::*;
use crate::plugin::tests::odd;

fn told(replaced: &[(&str, &str)]) -> Unfit {
    explain(&odd::component_of(replaced)).expect("it differs")
}

#[test]
fn a_component_is_told_from_everything_else() {
    assert_eq!(check_form(b"\0asm\x0d\0\x01\0..."), Ok(()));
    for (bytes, what, help) in [
        (&b"\0asm\x01\0\0\0"[..], "core WebAssembly module", "wharf plugin new"),
        (b"\0asm\x0a\0\x01\0", "0a000100", "wharf plugin build"),
        (b"\x7fELF...", "machine code", "the component itself"),
        (b"", "empty", "wharf plugin new"),
        (b"\n  (component)", "WebAssembly text", "wasm-tools parse"),
        (b"#!/bin/sh", "23212f62696e2f73", "wharf plugin build"),
        (b"\0as", "begins with the bytes 006173", "wharf plugin build"),
    ] {
        let unfit = check_form(bytes).unwrap_err();
        assert!(unfit.what.contains(what), "{unfit:?}");
        assert!(unfit.help.as_deref().unwrap_or_default().contains(help), "{unfit:?}");
    }
}

#[test]
fn the_way_from_a_core_module_depends_on_what_it_was_built_for() {
    let described = odd::module(&odd::wit(&[]));
    let unfit = check_form(&described).unwrap_err();
    assert_eq!(unfit.what, "it is a core WebAssembly module, and a plugin is a component");
    assert!(unfit.help.unwrap().contains("wasm-tools component new"));

    // One function imported from `wasi_snapshot_preview1`, by hand.
    let import = b"\x01\x16wasi_snapshot_preview1\x01f\x00\x00";
    let mut preview1 = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0".to_vec();
    preview1.extend([2, u8::try_from(import.len()).unwrap()]);
    preview1.extend(import);
    assert!(check_form(&preview1).unwrap_err().what.contains("built for wasm32-wasip1, without the interfaces"));
    let description = described.windows(14).position(|window| window == b"component-type").unwrap();
    // The section's name has its length before it, the section a length of three bytes and its number.
    let section = described[..description].iter().rposition(|byte| *byte == 0).unwrap();
    preview1.extend(&described[section..]);
    let unfit = check_form(&preview1).unwrap_err();
    assert!(unfit.what.ends_with("it was built for wasm32-wasip1"), "{unfit:?}");
    assert!(unfit.help.unwrap().contains("cargo build --release --target wasm32-wasip2"));
}

#[test]
fn what_is_built_from_the_same_files_differs_in_nothing() {
    assert_eq!(explain(&odd::component_of(&[])), None);
}

#[test]
fn a_parameter_of_another_type_is_told_with_both() {
    let unfit = told(&[(
        "only-if-absent: bool) -> result<written, error>;\n\n  record object-head",
        "only-if-absent: option<bool>) -> result<written, error>;\n\n  record object-head",
    )]);
    assert_eq!(
        unfit.what,
        "it was built with other WIT files than this host has (wharf:output@0.1.0)\n    \
         wharf:output/s3.put-object: parameter \"only-if-absent\": the plugin was built with option<bool>, this host has bool"
    );
    assert!(unfit.help.unwrap().contains("wharf plugin build"));
}

#[test]
fn parameters_that_only_one_of_both_has_are_named() {
    let unfit = told(&[
        (
            "create-log-stream: func(log-group: string, name: string)",
            "create-log-stream: func(log-group: string, class: option<string>)",
        ),
        ("days: u32)", "days: u32, why: string)"),
    ]);
    let lines: Vec<&str> = unfit.what.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            // As many parameters: the second is passed as the second, whatever it is called.
            "    wharf:output/cloudwatch-logs.create-log-stream: parameter \"name\": the plugin was built with option<string>, this host has string",
            "    wharf:output/cloudwatch-logs.put-retention-policy: parameter \"why\": the plugin was built with string, this host has no such parameter",
        ]
    );
}

#[test]
fn nested_types_are_compared_by_their_structure_and_each_difference_is_told_once() {
    let unfit = told(&[
        ("bucket-key: option<bool>", "bucket-key: bool"),
        ("storage-class: option<string>,", ""),
        ("acl: option<string>,", "acl: option<string>,\n owner: string,"),
        ("status: u16,\n    code", "status: u32,\n    code"),
        ("number: u16,\n    etag", "number: option<u16>,\n    etag"),
    ]);
    let lines: Vec<&str> = unfit.what.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            // `attributes` and `call-error` are used by several functions; the first one shows them.
            "wharf:output/s3.put-object: parameter \"with\": field \"storage-class\" of attributes: the plugin was built with no such field, this host has option<string>",
            "wharf:output/s3.put-object: parameter \"with\": field \"bucket-key\" of attributes: the plugin was built with bool, this host has option<bool>",
            "wharf:output/s3.put-object: parameter \"with\": field \"owner\" of attributes: the plugin was built with string, this host has no such field",
            "wharf:output/s3.put-object: result: error: case \"service\" of call-error: field \"status\" of service-error: the plugin was built with u32, this host has u16",
            "wharf:output/s3.complete-multipart-upload: parameter \"parts\": each of the list: field \"number\" of part: the plugin was built with option<u16>, this host has u16",
        ]
    );
}

#[test]
fn the_order_of_fields_and_cases_counts() {
    let unfit = told(&[("enum level { error, warn, info", "enum level { warn, error, info")]);
    assert!(
        unfit.what.ends_with(
            "wharf:output/log.max-level: result: order of its cases: the plugin was built with warn, error, info, debug, trace, this host has error, warn, info, debug, trace"
        ),
        "{unfit:?}"
    );
}

#[test]
fn what_it_exports_is_compared_as_well() {
    let unfit = told(&[
        ("describe: func() -> descriptor;", "describe: func() -> string;"),
        ("  abandon: func(batch: borrow<batch>);", ""),
        ("record-overhead: u32,", "record-overhead: u64,"),
    ]);
    let lines: Vec<&str> = unfit.what.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "wharf:output/output.describe: result: the plugin was built with string, this host has record descriptor",
            "wharf:output/output.configure: result: ok: field \"record-overhead\" of plan: the plugin was built with u64, this host has u32",
            "wharf:output/output.abandon: the plugin has no such function, and this host calls it",
        ]
    );
}

#[test]
fn a_function_that_this_host_lacks_is_of_a_newer_one() {
    let unfit = told(&[("  monotonic: func() -> u64;", "  monotonic: func() -> u64;\n  zone: func() -> string;")]);
    assert!(unfit.what.ends_with("wharf:output/clock.zone: this host has no such function"), "{unfit:?}");
    assert!(unfit.help.unwrap().starts_with("it is newer than this Wharf"));
}

#[test]
fn another_version_is_told_with_the_one_that_is_here_and_what_differs_between_them() {
    let unfit = told(&[("wharf:output@0.1.0", "wharf:output@0.2.0"), ("now: func() -> s64;", "now: func() -> u64;")]);
    assert_eq!(
        unfit.what,
        "it was built for wharf:output@0.2.0, and this host has wharf:output@0.1.0\n    \
         wharf:output/clock.now: result: the plugin was built with u64, this host has s64"
    );
    assert!(unfit.help.unwrap().contains("use a newer Wharf"));
    let older = told(&[("wharf:output@0.1.0", "wharf:output@0.0.9")]);
    assert_eq!(
        older.what,
        "it was built for wharf:output@0.0.9, and this host has wharf:output@0.1.0; all that it uses has the same types here"
    );
    assert!(older.help.unwrap().starts_with("build it for this Wharf"));
    // A later patch of the same minor version stands for it.
    assert_eq!(explain(&odd::component_of(&[("wharf:output@0.1.0", "wharf:output@0.1.7")])), None);
}

#[test]
fn an_interface_that_this_host_lacks_is_told_with_those_that_it_has() {
    let unfit = told(&[("world plugin {", "interface kafka { send: func(); }\nworld plugin {\n  import kafka;")]);
    assert!(
        unfit.what.starts_with(
            "it imports wharf:output/kafka@0.1.0, which this host does not have (it has types, records, sequence, storage, s3, cloudwatch-logs, http, log, metrics, clock of wharf:output@0.1.0)"
        ),
        "{unfit:?}"
    );
}

#[test]
fn very_many_differences_are_not_all_told() {
    let unfit = told(&[("option<string>", "string")]);
    let lines: Vec<&str> = unfit.what.lines().collect();
    assert_eq!(lines.len(), 1 + MOST_TOLD + 1);
    assert!(lines.last().unwrap().trim().starts_with("and "), "{lines:?}");
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
        let (name, version) = split(import);
        let offered = match own_interface(name) {
            Some(interface) => Wit::own().unwrap().import(interface).is_some() && same_track(version, WIT_VERSION),
            None => foreign_import(name, version).is_none(),
        };
        assert_eq!(offered, known, "{import}");
    }
}

#[test]
fn a_component_without_the_export_is_no_output() {
    // The smallest component.
    let unfit = explain(b"\0asm\x0d\0\x01\0").unwrap();
    assert_eq!(unfit.what, "it does not export wharf:output/output@0.1.0, so it is no output; it exports nothing");
    assert!(unfit.help.unwrap().contains("wharf plugin new"));
}

#[test]
fn what_is_broken_is_not_explained_but_not_fatal_either() {
    for garbage in [&b"\0asm\x0d\0\x01\0\xff\xff\xff"[..], b"", b"hello"] {
        assert_eq!(explain(garbage), None);
    }
    let good = odd::component_of(&[]);
    for cut in (8..good.len()).step_by(97) {
        let _ = explain(&good[..cut]);
    }
}
