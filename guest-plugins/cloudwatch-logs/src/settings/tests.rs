use serde_json::{Value, json};
use wharf_plugin::{PartitionKey, schema};

use super::*;
use crate::names;

const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789abc";

/// Of a group and a stream, unless the configuration has its own; null takes one out.
fn new(config: Value) -> Result<(Settings, Plan), Faults> {
    let mut all = json!({ "log_group_name": "/app", "log_stream_name": "main" });
    for (option, value) in config.as_object().unwrap() {
        all[option] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    Settings::new(serde_json::from_value(all).unwrap())
}

#[test]
fn a_group_and_a_stream_are_enough() {
    let (settings, plan) = new(json!({})).unwrap();
    assert_eq!(plan.partition_by, []);
    assert!(plan.in_order);
    assert_eq!(plan.log_groups, ["/app"]);
    assert_eq!((plan.record_overhead, plan.max_age_ms), (36, Some(5_000)));
    assert_eq!(settings.cache_ttl, Duration::from_secs(4 * 3600));
    assert_eq!(settings.recipe, Recipe { log_key: None, oversized: Oversized::Split });
    assert_eq!(settings.group, NewGroup::default());
    assert_eq!(new(json!({ "log_key": "log" })).unwrap().1.record_overhead, 26);
    assert!(!new(json!({ "unordered": true })).unwrap().1.in_order);
}

#[test]
fn a_batchs_calls_are_nearly_all_full() {
    let bytes = new(json!({})).unwrap().1.max_bytes.unwrap();
    let calls = bytes.div_ceil(1_048_576);
    assert!(bytes as f64 / (calls * 1_048_576) as f64 > 0.95, "{bytes} bytes in {calls} calls");
}

#[test]
fn what_names_are_made_of_keeps_batches_apart() {
    let keys = |config| new(config).unwrap().1.partition_by;
    let field = |path: &[&str]| PartitionKey::Field(path.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(keys(json!({ "log_stream_name": null, "log_stream_prefix": "p-" })), [PartitionKey::Tag]);
    assert_eq!(
        keys(json!({ "log_group_template": "/k/$a['b']", "log_stream_template": "$TAG[1].$a['b'].$c" })),
        [field(&["a", "b"]), PartitionKey::Tag, field(&["c"])]
    );
    let plan = new(json!({ "log_group_template": "/k/$a" })).unwrap().1;
    assert_eq!(plan.log_groups, ["/k/*", "/app"]);
}

#[test]
fn a_stream_template_stands_alone_and_falls_back_to_the_tag() {
    let alone = |template: &str| {
        let config = json!({ "log_stream_name": null, "log_stream_template": template });
        new(config).unwrap().1.partition_by
    };
    assert_eq!(alone("$pod"), [PartitionKey::Field(vec!["pod".into()]), PartitionKey::Tag]);
    assert_eq!(alone("$TAG"), [PartitionKey::Tag]);
    assert_eq!(alone("x"), []);
}

#[test]
fn all_that_belongs_to_a_new_group_is_understood() {
    let config = json!({
        "auto_create_group": true, "log_group_class": "DELIVERY", "log_retention_days": 3653,
        "tags": { "team": "a/b", "straße": "" }, "kms_key_id": KEY,
    });
    let group = new(config).unwrap().0.group;
    let tags = vec![("straße".to_owned(), String::new()), ("team".to_owned(), "a/b".to_owned())];
    let (class, kms_key_id) = (Some("DELIVERY".to_owned()), Some(KEY.to_owned()));
    assert_eq!(group, NewGroup { create: true, class, tags, kms_key_id, retention_days: Some(3653) });
    let nothing = json!({ "log_group_class": "", "log_retention_days": 0 });
    assert_eq!(new(nothing).unwrap().0.group, NewGroup::default(), "as people write them who come from Fluent Bit");
    for key in ["12345678-1234-1234-1234-123456789abc", "mrk-1234abcd12ab34cd56ef1234567890ab"] {
        assert!(new(json!({ "auto_create_group": true, "kms_key_id": key })).is_ok(), "{key}");
    }
}

#[test]
fn each_wrong_value_is_a_fault_that_says_what_to_write_instead() {
    let long = "x".repeat(513);
    let making = |mut config: Value| {
        config["auto_create_group"] = true.into();
        config
    };
    let many = |count: usize| (0..count).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>();
    let service = |mut config: Value| {
        config["type"] = "Service".into();
        json!({ "entity": config })
    };
    for (config, path, expected) in [
        (json!({ "log_group_name": "" }), "/log_group_name", "it is empty"),
        (json!({ "log_group_name": "a b" }), "/log_group_name", "' ' is not allowed there: AWS takes letters"),
        (json!({ "log_group_name": "aws/x" }), "/log_group_name", "begin it with `/aws/`"),
        (json!({ "log_group_name": "/x/$TAG" }), "/log_group_name", "belongs to `log_group_template`"),
        (json!({ "log_group_name": long }), "/log_group_name", "513 bytes, and AWS takes 512"),
        (json!({ "log_stream_name": "a:b" }), "/log_stream_name", "':' is not allowed"),
        (json!({ "log_stream_name": "a*" }), "/log_stream_name", "'*' is not allowed"),
        (json!({ "log_stream_name": "a\nb" }), "/log_stream_name", "control characters"),
        (json!({ "log_stream_name": "x-$TAG[1]" }), "/log_stream_name", "belongs to `log_stream_template`"),
        (json!({ "log_stream_name": null }), "/log_stream_name", "`log_stream_prefix` (the tag follows it)"),
        (json!({ "log_stream_prefix": "p" }), "/log_stream_prefix", "leave one of them out"),
        (json!({ "log_stream_name": null, "log_stream_prefix": "a:" }), "/log_stream_prefix", "':' is not allowed"),
        (json!({ "log_group_template": "/a b/$x" }), "/log_group_template", "' ' is not allowed"),
        (json!({ "log_group_template": "aws/$x" }), "/log_group_template", "AWS's own"),
        (json!({ "log_group_template": "" }), "/log_group_template", "is empty"),
        (json!({ "log_stream_template": "$a[0]" }), "/log_stream_template", "elements of arrays"),
        (json!({ "log_stream_template": "$a:$b" }), "/log_stream_template", "':' is not allowed"),
        (json!({ "log_stream_template": format!("{long}$a") }), "/log_stream_template", "more than AWS's 512"),
        (json!({ "log_key": "" }), "/log_key", "leave the option out to send whole records"),
        (json!({ "log_key": long }), "/log_key", "256 bytes"),
        (json!({ "log_format": "json" }), "/log_format", "write `json/emf`"),
        (json!({ "oversized": "drop" }), "/oversized", "write `split`, `truncate` or `dead_letter`"),
        (json!({ "stream_cache_ttl": 0 }), "/stream_cache_ttl", "write a time such as `4h`"),
        (json!({ "stream_cache_ttl": "soon" }), "/stream_cache_ttl", "write a whole number of seconds, or one with ms"),
        (json!({ "stream_cache_size": 0 }), "/stream_cache_size", "from 1 to 100000"),
        (json!({ "log_retention_days": 7 }), "/log_retention_days", "add `auto_create_group: true`"),
        (json!({ "log_group_class": "STANDARD" }), "/log_group_class", "add `auto_create_group: true`"),
        (json!({ "tags": { "a": "b" } }), "/tags", "add `auto_create_group: true`"),
        (json!({ "kms_key_id": KEY }), "/kms_key_id", "add `auto_create_group: true`"),
        (
            making(json!({ "log_retention_days": 2 })),
            "/log_retention_days",
            "does not take 2 days: write 0 (for ever), 1, 3, 5,",
        ),
        (making(json!({ "log_group_class": "standard" })), "/log_group_class", "write `STANDARD`, `INFREQUENT_ACCESS`"),
        (making(json!({ "tags": { "": "b" } })), "/tags", "1 to 128"),
        (making(json!({ "tags": { "aws:x": "b" } })), "/tags", "AWS's own"),
        (making(json!({ "tags": { "a": "x".repeat(257) } })), "/tags", "256"),
        (making(json!({ "tags": { "a": "b;c" } })), "/tags", "';' is not allowed"),
        (making(json!({ "tags": many(51) })), "/tags", "51 tags: AWS takes 50"),
        (making(json!({ "kms_key_id": "alias/x" })), "/kms_key_id", "write its ARN"),
        (making(json!({ "kms_key_id": "arn:aws:s3:::b" })), "/kms_key_id", "write its ARN"),
        (json!({ "entity": { "type": "Shop", "name": "x" } }), "/entity/type", "write `Service`, `RemoteService`"),
        (service(json!({})), "/entity/name", "of type `Service` needs it"),
        (service(json!({ "name": "" })), "/entity/name", "1 to 512"),
        (service(json!({ "name": "x", "identifier": "y" })), "/entity/identifier", "has none: leave it out"),
        (service(json!({ "name": "x", "attributes": many(11) })), "/entity/attributes", "11 attributes: AWS takes 10"),
        (service(json!({ "name": "x", "attributes": { "a": "" } })), "/entity/attributes", "1 to 512"),
        (service(json!({ "name": "x", "attributes": { "x".repeat(257): "a" } })), "/entity/attributes", "1 to 256"),
        (json!({ "entity": { "type": "Resource", "identifier": "i-1" } }), "/entity/resource_type", "needs it"),
    ] {
        let faults = new(config.clone()).map(|_| ()).unwrap_err();
        let found = faults.iter().any(|fault| fault.path == path && fault.message.contains(expected));
        assert!(found, "{config}: {faults:?}");
        assert_eq!(faults.len(), 1, "{config}: one mistake, one fault: {faults:?}");
    }
}

#[test]
fn all_faults_come_at_once() {
    let config = json!({
        "log_group_name": "a b", "log_stream_prefix": "p", "log_format": "x", "oversized": "x", "stream_cache_size": 0,
        "log_retention_days": 2, "auto_create_group": true, "entity": { "type": "Service" },
    });
    let faults = new(config).map(|_| ()).unwrap_err();
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/log_group_name",
            "/log_stream_prefix",
            "/oversized",
            "/log_format",
            "/log_retention_days",
            "/entity/name",
            "/stream_cache_size"
        ]
    );
}

#[test]
fn a_stream_that_is_named_twice_is_told_its_other_faults_too() {
    for (config, expected) in [
        (json!({ "log_stream_name": "", "log_stream_prefix": "p" }), &["/log_stream_name", "/log_stream_prefix"][..]),
        (json!({ "log_stream_name": "a:b", "log_stream_prefix": "p" }), &["/log_stream_name", "/log_stream_prefix"]),
        (
            json!({ "log_stream_name": "a:b", "log_stream_prefix": "c*" }),
            &["/log_stream_name", "/log_stream_prefix", "/log_stream_prefix"],
        ),
    ] {
        let faults = new(config.clone()).map(|_| ()).unwrap_err();
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(paths, expected, "{config}: {faults:?}");
    }
}

/// The list is copied from AWS's page by hand; this holds it against the text of the page.
#[test]
fn retention_takes_exactly_the_days_that_aws_names() {
    let page =
        "1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653";
    let page: Vec<u32> = page.split(", ").map(|days| days.parse().unwrap()).collect();
    for days in 1..=4_000 {
        let taken = new(json!({ "auto_create_group": true, "log_retention_days": days })).is_ok();
        assert_eq!(taken, page.contains(&days), "{days}");
    }
}

#[test]
fn the_schema_describes_every_option_and_names_what_belongs_elsewhere() {
    let schema = schema::of_output::<crate::CloudWatchLogs>();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["log_group_name"]));
    let properties = schema["properties"].as_object().unwrap();
    for (name, property) in properties {
        assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {property}");
    }
    for (name, _) in names::ELSEWHERE {
        assert!(!properties.contains_key(*name), "{name} is an option");
    }
    assert!(!schema.to_string().contains("$ref"), "the schema stands alone");
}

/// Options of Fluent Bit 5.1's `cloudwatch_logs`, from its documentation.
#[test]
fn every_option_of_fluent_bit_is_one_here_or_is_explained() {
    let schema = schema::of::<Config>();
    for option in [
        "add_entity",
        "auto_create_group",
        "auto_retry_requests",
        "endpoint",
        "external_id",
        "extra_user_agent",
        "log_format",
        "log_group_class",
        "log_group_name",
        "log_group_template",
        "log_key",
        "log_retention_days",
        "log_stream_name",
        "log_stream_prefix",
        "log_stream_template",
        "metric_dimensions",
        "metric_namespace",
        "port",
        "profile",
        "region",
        "role_arn",
        "sts_endpoint",
        "workers",
    ] {
        let here = schema["properties"][option].is_object();
        assert!(here != names::ELSEWHERE.iter().any(|(name, _)| *name == option), "{option}");
    }
}
