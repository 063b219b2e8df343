//! The `aws` blocks, and how an output's own overrides the common one.

use std::time::Duration;

use super::*;
use crate::config::{AwsConfig, PayloadSigning};

#[test]
fn an_output_overrides_the_common_aws_block_value_by_value() {
    let text = r#"
aws:
  region: us-east-1
  endpoint: https://common.example.com
  profile: common
  role_arn: arn:aws:iam::123456789012:role/common
  external_id: common-id
  session_name: common-session
  sts_endpoint: https://sts.example.com
  path_style: true
  payload_signing: always
  connect_timeout: 1s
  request_timeout: 1m
sources: { app: { type: stdin } }
outputs:
  same: { plugin: s3, match: "*" }
  other:
    plugin: s3
    match: "*"
    aws: { region: eu-west-1, path_style: false, payload_signing: auto, request_timeout: 2m }
"#;
    let config = parse(text).unwrap();
    let common = AwsConfig {
        region: Some("us-east-1".into()),
        endpoint: Some("https://common.example.com".into()),
        profile: Some("common".into()),
        role_arn: Some("arn:aws:iam::123456789012:role/common".into()),
        external_id: Some("common-id".into()),
        session_name: Some("common-session".into()),
        sts_endpoint: Some("https://sts.example.com".into()),
        path_style: Some(true),
        payload_signing: PayloadSigning::Always,
        connect_timeout: Some(Duration::from_secs(1)),
        request_timeout: Some(Duration::from_secs(60)),
    };
    assert_eq!(config.aws, common);
    assert_eq!(config.outputs[0].aws, common);
    assert_eq!(
        config.outputs[1].aws,
        AwsConfig {
            region: Some("eu-west-1".into()),
            path_style: Some(false),
            payload_signing: PayloadSigning::Auto,
            request_timeout: Some(Duration::from_secs(120)),
            ..common
        }
    );
}

#[test]
fn credentials_in_the_file_are_refused_with_where_they_come_from() {
    assert_eq!(
        faults(&top("aws:\n  access_key_id: AKIA\n  regoin: us-east-1")),
        "wharf.yaml:6:3: aws: unknown key \"access_key_id\"; credentials come from the usual AWS chain: environment, profile, instance or task role\n\
         wharf.yaml:7:3: aws: unknown key \"regoin\"; did you mean \"region\"?"
    );
}

#[test]
fn an_endpoint_must_be_a_url_and_an_external_id_needs_a_role() {
    assert_eq!(
        faults(&output("aws:\n  endpoint: 127.0.0.1:5000\n  external_id: xy")),
        "wharf.yaml:8:17: outputs.archive.aws.endpoint: expected an http or https URL, found text \"127.0.0.1:5000\"\n    \
         help: write http:// or https://, a host, and perhaps a port: http://127.0.0.1:9000 or https://storage.example.com\n\
         wharf.yaml:9:20: outputs.archive.aws.external_id: there is no \"role_arn\" that it could be for"
    );
}

#[test]
fn an_endpoint_is_a_url_with_a_host_and_its_fault_is_told_once_at_its_place() {
    let file = |url: &str| {
        format!(
            "aws: {{ endpoint: \"{url}\" }}\nsources: {{ app: {{ type: stdin }} }}\noutputs:\n  \
             a: {{ plugin: s3, match: x }}\n  b: {{ plugin: cloudwatch_logs, match: x }}\n"
        )
    };
    for url in ["http://127.0.0.1:9000", "https://s3.example.com/", "HTTP://minio", "http://[::1]:9000"] {
        assert_eq!(parse(&file(url)).unwrap().outputs[1].aws.endpoint.as_deref(), Some(url));
    }
    let no_url = "expected an http or https URL, found text";
    for (url, expected) in [
        ("127.0.0.1:9000", no_url),
        ("ftp://host", no_url),
        ("http://", no_url),
        ("http:///bucket", no_url),
        ("http://[::1", no_url),
        ("http://a b", no_url),
        ("http://host:99999", "expected a URL with a port from 1 to 65535, or with none, found text"),
        ("http://host:0", "expected a URL with a port from 1 to 65535, or with none, found text"),
        ("http://host/path?q=1", "expected a URL without `?` and `#`, found text"),
        ("http://host/path#q", "expected a URL without `?` and `#`, found text"),
    ] {
        assert_eq!(
            faults(&file(url)),
            format!(
                "wharf.yaml:1:18: aws.endpoint: {expected} {url:?}\n    \
                 help: write http:// or https://, a host, and perhaps a port: http://127.0.0.1:9000 or https://storage.example.com"
            )
        );
    }
    let with_password = faults(&file("http://key:hush@host:99999/path?x=1#y"));
    let expected = "wharf.yaml:1:18: aws.endpoint: a user or password in the URL is not used: credentials come from the usual AWS chain\n";
    assert!(with_password.starts_with(expected) && !with_password.contains("hush"), "{with_password}");
    let own = faults(&output("aws: { sts_endpoint: \"https://host:99999\" }"));
    assert!(own.starts_with("wharf.yaml:7:26: outputs.archive.aws.sts_endpoint: expected a URL with a port"), "{own}");
}

#[test]
fn all_that_needs_a_role_is_told_at_once() {
    assert_eq!(
        faults(&output("aws: { external_id: abc, session_name: abcd }")),
        "wharf.yaml:7:25: outputs.archive.aws.external_id: there is no \"role_arn\" that it could be for\n\
         wharf.yaml:7:44: outputs.archive.aws.session_name: there is no \"role_arn\" that it could be for"
    );
    assert_eq!(
        faults(&format!("aws: {{ external_id: abc }}\n{}", output("aws: { session_name: abcd }"))),
        "wharf.yaml:1:21: aws.external_id: there is no \"role_arn\" that it could be for\n\
         wharf.yaml:8:26: outputs.archive.aws.session_name: there is no \"role_arn\" that it could be for"
    );
}

#[test]
fn a_role_is_named_by_the_arn_of_one() {
    let help = "help: write it as IAM shows it: arn:aws:iam::123456789012:role/NAME (aws-cn and aws-us-gov are other partitions)";
    for text in [
        "logs",
        "arn:aws:iam::123456789012:user/logs",
        "arn:aws:iam::12345678901:role/logs",
        "arn:aws:iam::my-account:role/logs",
        "arn:aws:iam:eu-west-1:123456789012:role/logs",
        "arn:aws:sts::123456789012:assumed-role/logs/me",
        "arn::iam::123456789012:role/logs",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:role/a b",
    ] {
        assert_eq!(
            faults(&output(&format!("aws: {{ role_arn: \"{text}\", external_id: x-1 }}"))),
            format!(
                "wharf.yaml:7:22: outputs.archive.aws.role_arn: expected the ARN of a role, found text {text:?}\n    {help}"
            ),
            "{text}"
        );
    }
    for text in [
        "arn:aws:iam::123456789012:role/logs",
        "arn:aws-us-gov:iam::123456789012:role/team/a/logs",
        "arn:aws-cn:iam::123456789012:role/Logs+=,.@-_",
    ] {
        parse(&output(&format!("aws: {{ role_arn: \"{text}\" }}"))).unwrap();
    }
    parse(&output("aws: { role_arn: \"arn:minio:iam:::role/logs\", sts_endpoint: http://127.0.0.1:9000 }")).unwrap();
}

/// The limits are those of `AssumeRole` in the STS API Reference.
#[test]
fn what_sts_would_refuse_is_refused() {
    let block = |line: &str| format!("aws:\n  role_arn: arn:aws:iam::123456789012:role/r\n  {line}");
    let long = "x".repeat(1224);
    parse(&output(&block(&format!("external_id: {long}")))).unwrap();
    parse(&output(&block("external_id: \"a:b/c=d,e.f@g-h_i+j\""))).unwrap();
    for text in ["x", "a b", &format!("{long}x")] {
        let shown = faults(&output(&block(&format!("external_id: \"{text}\""))));
        assert!(
            shown.starts_with("wharf.yaml:9:20: outputs.archive.aws.external_id: expected an external id, found text"),
            "{shown}"
        );
        assert!(shown.ends_with("help: STS takes 2 to 1224 letters, digits and characters of _+=,.@:/-"), "{shown}");
    }
    let shown = faults(&output(&block("session_name: a/b")));
    assert!(shown.ends_with("help: STS takes 2 to 64 letters, digits and characters of _+=,.@-"), "{shown}");
    assert_eq!(
        faults(&output("aws: { region: EU (Ireland) }")),
        "wharf.yaml:7:20: outputs.archive.aws.region: expected a region, found text \"EU (Ireland)\"\n    \
         help: write it as AWS does, for example us-east-1"
    );
}

#[test]
fn a_faulty_role_above_is_told_once_and_not_missed_below() {
    let text = format!("aws: {{ role_arn: logs }}\n{}", output("aws: { external_id: x-1 }"));
    let shown = faults(&text);
    assert!(shown.starts_with("wharf.yaml:1:18: aws.role_arn: expected the ARN of a role"), "{shown}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

#[test]
fn what_is_wrong_in_the_common_block_is_told_once_for_all_outputs() {
    let outputs =
        "sources: { app: { type: stdin } }\noutputs:\n  a: { plugin: s3, match: x }\n  b: { plugin: s3, match: x }\n";
    assert_eq!(
        faults(&format!("aws: {{ external_id: x-1 }}\n{outputs}")),
        "wharf.yaml:1:21: aws.external_id: there is no \"role_arn\" that it could be for"
    );
}
