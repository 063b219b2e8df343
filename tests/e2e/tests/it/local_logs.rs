//! The local CloudWatch Logs itself, held against what boto3 expects and against AWS's own description of the service.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use wharf_e2e::skip::skip;
use wharf_e2e::{Logged, Moto, script, tools};
use wharf_local_aws::logs::{self, rules};
use wharf_local_aws::{Aws, Fault, Operation, Options, Reject, Rule, Vanish};

#[test]
fn the_local_logs_behave_as_cloudwatch_logs_with_the_limits_that_aws_publishes() {
    let test = "the_local_logs_behave_as_cloudwatch_logs_with_the_limits_that_aws_publishes";
    let venv = match tools::venv() {
        Ok(venv) => venv,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let aws = Aws::start(Options::default(), logs::Options::default()).unwrap();
    let faults = aws.logs().faults();
    let put = Operation::PutLogEvents;
    for code in [
        "ThrottlingException",
        "ServiceUnavailableException",
        "InternalFailure",
        "UnrecognizedClientException",
        "ExpiredTokenException",
        "AccessDeniedException",
    ] {
        faults.add(Rule::on(put, Fault::Error(code)).key(&format!(":fault-{code}")));
    }
    let reject = Reject { too_old: 2, too_new: 1, ..Reject::default() };
    for (stream, fault) in [
        (":fault-lost", Fault::LoseReply),
        (":fault-reset", Fault::Reset { after: 0 }),
        (":fault-late", Fault::StallReply(Duration::from_secs(3))),
        (":fault-partial", Fault::PartialReply { bytes: 5 }),
        (":fault-vanish", Fault::Vanish(Vanish::Stream)),
        (":fault-reject", Fault::Reject(reject)),
    ] {
        faults.add(Rule::on(put, fault).key(stream));
    }
    let said = tools::python(&venv, &script("check_logs_server.py"), &[&aws.endpoint()]).unwrap();
    println!("{said}");
    assert_eq!(said.lines().count(), 7, "not every check was run");
    assert!(aws.s3().object("logs", "beside/logs").is_some());

    let mut errors: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for request in aws.logs().requests() {
        errors.entry(request.operation.name()).or_default().extend(request.code);
    }
    assert!(errors.values().flatten().count() > 20, "the errors of this run are few: {errors:?}");
    let ours = json!({
        "max_call_bytes": rules::MAX_CALL_BYTES,
        "event_overhead_bytes": rules::EVENT_OVERHEAD_BYTES,
        "max_call_events": rules::MAX_CALL_EVENTS,
        "max_event_bytes": rules::MAX_EVENT_BYTES,
        "max_call_span_seconds": rules::MAX_CALL_SPAN.as_secs(),
        "max_age_seconds": rules::MAX_AGE.as_secs(),
        "max_ahead_seconds": rules::MAX_AHEAD.as_secs(),
        "max_group_name_characters": rules::MAX_GROUP_NAME_CHARACTERS,
        "group_name_pattern": rules::GROUP_NAME_PATTERN,
        "reserved_group_prefix": rules::RESERVED_GROUP_PREFIX,
        "max_stream_name_characters": rules::MAX_STREAM_NAME_CHARACTERS,
        "stream_name_pattern": rules::STREAM_NAME_PATTERN,
        "classes": rules::CLASSES,
        "default_class": rules::DEFAULT_CLASS,
        "retention_days": rules::RETENTION_DAYS,
        "max_tags": rules::MAX_TAGS,
        "max_tag_key_characters": rules::MAX_TAG_KEY_CHARACTERS,
        "max_tag_value_characters": rules::MAX_TAG_VALUE_CHARACTERS,
        "max_kms_key_characters": rules::MAX_KMS_KEY_CHARACTERS,
        "max_groups": rules::MAX_GROUPS,
        "create_log_stream_per_second": rules::CREATE_LOG_STREAM_PER_SECOND,
        "describe_log_streams_per_second": rules::DESCRIBE_LOG_STREAMS_PER_SECOND,
        "max_described": rules::MAX_DESCRIBED,
        "max_page_events": rules::MAX_PAGE_EVENTS,
        "max_page_bytes": rules::MAX_PAGE_BYTES,
        "max_filtered_streams": rules::MAX_FILTERED_STREAMS,
        "max_filter_pattern_characters": rules::MAX_FILTER_PATTERN_CHARACTERS,
        "key_attributes": [rules::KEY_ATTRIBUTES.start(), rules::KEY_ATTRIBUTES.end()],
        "key_attribute_names": rules::KEY_ATTRIBUTE_NAMES,
        "max_attributes": rules::MAX_ATTRIBUTES,
        "max_attribute_name_characters": rules::MAX_ATTRIBUTE_NAME_CHARACTERS,
        "max_attribute_value_characters": rules::MAX_ATTRIBUTE_VALUE_CHARACTERS,
        "entity_errors": rules::ENTITY_ERRORS,
        "errors": errors,
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.json");
    std::fs::write(&file, ours.to_string()).unwrap();
    println!("{}", tools::python(&venv, &script("check_logs_rules.py"), &[&file.to_string_lossy()]).unwrap());
}

/// The two ways to see what arrived tell the same story, and an independent server can be asked in the same words.
#[test]
fn what_arrived_reads_the_same_directly_by_boto3_and_from_an_independent_server() {
    let test = "what_arrived_reads_the_same_directly_by_boto3_and_from_an_independent_server";
    let moto = match Moto::start() {
        Ok(moto) => moto,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let local = Aws::start(Options::default(), logs::Options::default()).unwrap();
    let venv = tools::venv().unwrap();
    for endpoint in [moto.endpoint(), local.endpoint()] {
        tools::python(&venv, &script("write_logs.py"), &[&endpoint, "/some/group"]).unwrap();
    }
    let direct = Logged::of(local.logs(), "/some/group");
    assert_eq!(direct.streams.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(direct.messages("a"), ["a 0", "a 1", "a 1", "a 2"]);
    assert_eq!(direct.duplicates(), 1);
    assert_eq!(direct, Logged::read_back(&local.endpoint(), "/some/group").unwrap());
    let theirs = moto.read_back("/some/group").unwrap();
    assert_eq!(theirs.messages("b"), direct.messages("b"));
    assert_eq!(theirs.messages("a"), direct.messages("a"));
}
