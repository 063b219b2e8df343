//! Real components, good ones and broken ones.

use sha2::{Digest as _, Sha256};

use super::*;
use crate::plugin::tests::{component, odd, options as host_options};

async fn inspect(source: &PluginSource) -> Inspection {
    let host = PluginHost::new(host_options()).unwrap();
    Inspection::of(source, &host).await.unwrap()
}

async fn inspect_bytes(bytes: &[u8]) -> (String, Value) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.wasm");
    std::fs::write(&file, bytes).unwrap();
    let inspection = inspect(&PluginSource::File(file)).await;
    (inspection.to_string(), inspection.to_json())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_is_told_with_all_that_it_asks_for_and_its_options() {
    let inspection = inspect(&PluginSource::BuiltIn("s3".into())).await;
    let shown = inspection.to_string();
    assert_eq!(inspection.problem(), None);
    for line in [
        "component      s3, built in",
        "wit            wharf:output@0.1.0",
        "sdk            wharf-plugin 0.1.0",
        "  s3               S3: objects in buckets",
        "  sequence         durable counters ($INDEX)",
    ] {
        assert!(shown.lines().any(|found| found == line), "{line:?} is not in\n{shown}");
    }
    assert!(shown.contains("language       Rust") && shown.contains("wit-component"), "{shown}");
    let json = inspection.to_json();
    let bucket = json["options"].as_array().unwrap().iter().find(|option| option["name"] == "bucket").unwrap();
    assert_eq!((&bucket["type"], &bucket["required"]), (&json!("text"), &json!(true)));
    assert_eq!(json["usable"], true);
    // It writes objects, and never asks for log groups.
    let asked: Vec<&str> =
        json["asks_for"].as_array().unwrap().iter().filter_map(|a| a["interface"].as_str()).collect();
    assert!(asked.contains(&"s3") && !asked.contains(&"cloudwatch-logs") && !asked.contains(&"http"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_told_with_its_digest_and_what_needs_a_grant() {
    let inspection = inspect(&PluginSource::File(component().to_owned())).await;
    let (shown, json) = (inspection.to_string(), inspection.to_json());
    let bytes = std::fs::read(component()).unwrap();
    assert_eq!(json["sha256"], hex::encode(Sha256::digest(&bytes)));
    assert_eq!(json["bytes"], bytes.len());
    assert!(json["memory_bytes"].as_u64().unwrap() >= 65_536);
    assert!(shown.contains("S3: objects in buckets (needs a grant)"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_fit_is_told_as_far_as_it_goes_and_why() {
    let odd = odd::component_of(&[
        ("now: func() -> s64;", "now: func() -> u64;"),
        ("world plugin {", "interface kafka { send: func(); }\nworld plugin {\n  import kafka;"),
    ]);
    let (shown, json) = inspect_bytes(&odd).await;
    assert!(shown.contains("  clock            the time\n                   now, monotonic\n"), "{shown}");
    assert!(shown.contains("Imports that this Wharf does not have\n  wharf:output/kafka@0.1.0\n"), "{shown}");
    assert!(shown.contains("This Wharf cannot use it: it imports wharf:output/kafka@0.1.0"), "{shown}");
    assert!(shown.contains("clock.now: result: the plugin was built with u64, this host has s64"), "{shown}");
    assert_eq!((&json["usable"], &json["name"], &json["options"]), (&json!(false), &Value::Null, &json!([])));
    assert!(json["problem"]["help"].as_str().unwrap().contains("wharf plugin build"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_module_that_knows_its_interfaces_is_told_with_them() {
    let (shown, json) = inspect_bytes(&odd::module(&odd::wit(&[]))).await;
    assert!(shown.contains("  http             HTTP requests (needs a grant)\n                   send\n"), "{shown}");
    assert_eq!((&json["usable"], &json["wit"]), (&json!(false), &json!(["0.1.0"])));
}

/// The names are those that ComponentizeJS 0.23 and componentize-py 0.25 leave in what they make.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_told_by_its_own_language_and_not_by_its_interpreters() {
    let producers = |values: &[(&str, &str)]| {
        let text = |text: &str| [vec![u8::try_from(text.len()).unwrap()], text.as_bytes().to_vec()].concat();
        let mut content = text("producers");
        content.push(u8::try_from(values.len()).unwrap());
        for (kind, name) in values {
            content.extend([text(kind), vec![1], text(name), text("")].concat());
        }
        [b"\0asm\x01\0\0\0\0".to_vec(), vec![u8::try_from(content.len()).unwrap()], content].concat()
    };
    let python = [producers(&[("language", "Rust")]), b"\0\x10\x0fcomponentize_py".to_vec()].concat();
    for (module, expected) in [
        (producers(&[("language", "C11"), ("processed-by", "ComponentizeJS")]), json!(["JavaScript"])),
        (python, json!(["Python"])),
        (producers(&[("language", "Rust"), ("processed-by", "wit-bindgen-c")]), json!(["Rust"])),
        (producers(&[("processed-by", "wit-bindgen-c")]), json!(["C"])),
        (producers(&[("processed-by", "clang")]), json!([])),
    ] {
        assert_eq!(inspect_bytes(&module).await.1["languages"], expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_component_is_told_as_what_it_is() {
    for (bytes, told) in [
        (odd::module(&odd::wit(&[])), "it is a core WebAssembly module"),
        (b"hello".to_vec(), "it is not WebAssembly"),
        (odd::component_of(&[])[..500].to_vec(), "it is no valid component"),
        // It fits, and traps.
        (odd::component_of(&[]), "it died while it described itself"),
    ] {
        let (shown, json) = inspect_bytes(&bytes).await;
        assert!(shown.contains(&format!("This Wharf cannot use it: {told}")), "{shown}");
        assert_eq!(json["sha256"], hex::encode(Sha256::digest(&bytes)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_off_is_told_with_what_to_do_and_its_size_once() {
    let (shown, _) = inspect_bytes(&odd::component_of(&[])[..500]).await;
    assert!(shown.lines().any(|line| line == "size           500 bytes"), "{shown}");
    let help = "    help: it may be cut or damaged: copy it again, or build it again with `wharf plugin build`";
    assert!(shown.lines().any(|line| line == help), "{shown}");
}
