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
        faults(&output("aws:\n  endpoint: 127.0.0.1:5000\n  external_id: x")),
        "wharf.yaml:7:5: outputs.archive: aws has \"external_id\" but no \"role_arn\" that it could be for\n\
         wharf.yaml:8:17: outputs.archive.aws.endpoint: expected an http or https URL, found text \"127.0.0.1:5000\"\n    \
         help: write for example http://127.0.0.1:9000 or https://storage.example.com"
    );
}
