//! What a component answers, checked and in the host's own types. A guest's answer is input like any other: numbers must make sense,
//! texts are bounded.

use std::sync::Arc;
use std::time::Duration;

use super::{ConfigFault, Descriptor, Failure, FailureKind, Plan};
use crate::capability::bindings::{output, types};
use crate::capability::{cut, one_line};
use crate::config::S3Grant;
use crate::record::PartitionKey;

/// Longest message of a failure or a fault, bytes.
const MESSAGE_BYTES: usize = 4096;
/// Longest reason of a rejection, bytes: there may be one for each record.
const REASON_BYTES: usize = 512;
/// Most faults that are told, and most buckets and log groups of a plan.
const MAX_FAULTS: usize = 100;
const MAX_SCOPES: usize = 64;
/// Most partition keys of a plan.
const MAX_KEYS: usize = 64;
/// Longest HTTP destination (a host name has at most 253) and longest name of a credential.
const NAME_BYTES: usize = 300;
/// Longest name of a log group, and a `*`.
const LOG_GROUP_BYTES: usize = 513;

/// The records that a report rejects and why, ascending.
///
/// # Errors
/// Where it names records that are not there, or one twice, or those of a reason not in order: then it cannot be trusted in the rest either.
pub(super) fn rejections(report: output::Report, records: u32) -> Result<Vec<(u32, Arc<str>)>, String> {
    let mut rejected = Vec::with_capacity(report.rejected.iter().map(|rejection| rejection.records.len()).sum());
    for rejection in report.rejected {
        if !rejection.records.is_sorted() {
            return Err("the report rejects records out of order: those of one reason must ascend".into());
        }
        let reason: Arc<str> = one_line(&rejection.reason, REASON_BYTES).into();
        rejected.extend(rejection.records.into_iter().map(|record| (record, Arc::clone(&reason))));
    }
    rejected.sort_by_key(|(record, _)| *record);
    if let Some((record, _)) = rejected.last().filter(|(record, _)| *record >= records) {
        return Err(format!("the report rejects record {record}, and the batch has {records}"));
    }
    let twice = rejected.windows(2).find_map(|pair| match pair {
        [(one, _), (other, _)] if one == other => Some(*one),
        _ => None,
    });
    match twice {
        Some(record) => Err(format!("the report rejects record {record} twice")),
        None => Ok(rejected),
    }
}

/// A failure as the component says it.
pub(super) fn failure(failure: types::Failure) -> Failure {
    let kind = match failure.kind {
        types::FailureKind::Throttled => FailureKind::Throttled,
        types::FailureKind::Transient => FailureKind::Transient,
        types::FailureKind::Auth => FailureKind::Auth,
        types::FailureKind::Misconfigured => FailureKind::Misconfigured,
        types::FailureKind::Rejected => FailureKind::Rejected,
    };
    Failure { kind, message: bounded(&failure.message), retry_after: failure.retry_after_ms.map(Duration::from_millis) }
}

/// The plan of a configured component.
///
/// # Errors
/// Where it asks for more than a plan may.
pub(super) fn plan(plan: output::Plan) -> Result<Plan, String> {
    if plan.s3.len() > MAX_SCOPES {
        return Err(format!("the plan names {} buckets, and may name at most {MAX_SCOPES}", plan.s3.len()));
    }
    if plan.partition_by.len() > MAX_KEYS {
        return Err(format!(
            "the plan has {} partition keys, and may have at most {MAX_KEYS}",
            plan.partition_by.len()
        ));
    }
    if plan.partition_by.iter().any(|key| matches!(key, output::PartitionKey::Field(path) if path.is_empty())) {
        return Err("a partition key of the plan is a field without a path".into());
    }
    if plan.log_groups.len() > MAX_SCOPES {
        return Err(format!(
            "the plan names {} log groups, and may name at most {MAX_SCOPES}: a beginning with a * stands for many",
            plan.log_groups.len()
        ));
    }
    if let Some(name) = plan.log_groups.iter().find(|name| name.len() > LOG_GROUP_BYTES) {
        return Err(format!("the plan names log group {:?}, which is too long for one", one_line(name, 64)));
    }
    for (what, names) in [("HTTP destinations", &plan.http), ("credentials", &plan.credentials)] {
        if names.len() > MAX_SCOPES {
            return Err(format!("the plan names {} {what}, and may name at most {MAX_SCOPES}", names.len()));
        }
        if let Some(name) = names.iter().find(|name| name.len() > NAME_BYTES) {
            return Err(format!("the plan names {:?} among its {what}, which is too long", one_line(name, 64)));
        }
    }
    if plan.max_bytes == Some(0) || plan.max_records == Some(0) || plan.max_age_ms == Some(0) {
        return Err("the plan closes batches of nothing: max-bytes, max-records and max-age-ms are at least 1".into());
    }
    let scope = |scope: output::S3Scope| S3Grant { bucket: scope.bucket, key_prefix: scope.key_prefix };
    Ok(Plan {
        partition_by: plan.partition_by.into_iter().map(partition_key).collect(),
        in_order: plan.in_order,
        record_overhead: plan.record_overhead,
        max_bytes: plan.max_bytes,
        max_records: plan.max_records.map(u64::from),
        max_age: plan.max_age_ms.map(Duration::from_millis),
        s3: plan.s3.into_iter().map(scope).collect(),
        log_groups: plan.log_groups,
        http: plan.http,
        credentials: plan.credentials,
    })
}

fn partition_key(key: output::PartitionKey) -> PartitionKey {
    match key {
        output::PartitionKey::Tag => PartitionKey::Tag,
        output::PartitionKey::Field(path) => PartitionKey::Field(path),
    }
}

/// The faults of a refused configuration, at least one.
pub(super) fn faults(faults: Vec<output::ConfigFault>) -> Vec<ConfigFault> {
    let mut told: Vec<ConfigFault> = faults
        .into_iter()
        .take(MAX_FAULTS)
        .map(|fault| ConfigFault { path: bounded(&fault.path), message: bounded(&fault.message) })
        .collect();
    if told.is_empty() {
        told.push(ConfigFault { path: String::new(), message: "the plugin refuses it and does not say why".into() });
    }
    told
}

/// What a component says of itself.
///
/// # Errors
/// Where the name cannot be one, or the schema is no JSON.
pub(super) fn descriptor(descriptor: output::Descriptor) -> Result<Descriptor, String> {
    let output::Descriptor { name, version, config_schema } = descriptor;
    let plain = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    if name.is_empty() || name.len() > 64 || !plain {
        return Err(format!("it calls itself {:?}; a name has 1 to 64 of a-z, 0-9, _ and -", one_line(&name, 64)));
    }
    let config_schema: serde_json::Value = serde_json::from_str(&config_schema)
        .map_err(|error| format!("the schema of its configuration is no JSON: {error}"))?;
    Ok(Descriptor { name, version: one_line(&version, 64), config_schema })
}

fn bounded(text: &str) -> String {
    // A text that goes into the log, into a terminal: it must not begin a line there.
    one_line(cut(text, MESSAGE_BYTES), MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(numbers: &[u32]) -> output::Report {
        output::Report { rejected: vec![output::Rejection { records: numbers.to_vec(), reason: "no".into() }] }
    }

    #[test]
    fn a_report_names_records_of_the_batch_ascending_and_each_once() {
        for (numbers, records, good) in [
            (&[][..], 0, true),
            (&[0, 4], 5, true),
            (&[0, 1, 2, 3, 4], 5, true),
            (&[5], 5, false),
            (&[1, 1], 5, false),
            (&[2, 1], 5, false),
            (&[0], 0, false),
            (&[u32::MAX], u32::MAX, false),
            (&[u32::MAX - 1], u32::MAX, true),
        ] {
            assert_eq!(rejections(report(numbers), records).is_ok(), good, "{numbers:?} of {records}");
        }
    }

    #[test]
    fn records_of_several_reasons_are_told_in_their_order_and_in_one_of_them_only() {
        let of = |records: &[u32], reason: &str| output::Rejection { records: records.to_vec(), reason: reason.into() };
        let told = rejections(output::Report { rejected: vec![of(&[1, 4], "old"), of(&[0, 2], "large")] }, 5).unwrap();
        let told: Vec<_> = told.iter().map(|(record, reason)| (*record, &**reason)).collect();
        assert_eq!(told, [(0, "large"), (1, "old"), (2, "large"), (4, "old")]);
        assert!(rejections(output::Report { rejected: vec![of(&[1], "old"), of(&[0, 1], "large")] }, 5).is_err());
    }

    #[test]
    fn a_failures_message_is_bounded() {
        let long =
            types::Failure { kind: types::FailureKind::Auth, message: "é".repeat(3000), retry_after_ms: Some(1500) };
        let failure = failure(long);
        assert_eq!(failure.kind, FailureKind::Auth);
        assert_eq!(failure.message.len(), 4096);
        assert_eq!(failure.retry_after, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn a_plan_names_a_bounded_number_of_log_groups() {
        let planned = |log_groups: Vec<String>| {
            plan(output::Plan {
                partition_by: vec![],
                in_order: false,
                record_overhead: 0,
                max_bytes: None,
                max_records: None,
                max_age_ms: None,
                s3: vec![],
                log_groups,
                http: vec![],
                credentials: vec![],
            })
        };
        let longest = format!("{}*", "g".repeat(512));
        assert_eq!(planned(vec![longest.clone(); 64]).unwrap().log_groups.len(), 64);
        assert!(planned(vec![longest.clone(); 65]).unwrap_err().contains("65 log groups"));
        assert!(planned(vec![format!("{longest}x")]).is_err());
    }

    #[test]
    fn a_refusal_without_faults_still_tells_one() {
        assert_eq!(faults(Vec::new()).len(), 1);
    }

    #[test]
    fn a_descriptor_needs_a_plain_name_and_a_schema() {
        let described = |name: &str, schema: &str| {
            descriptor(output::Descriptor { name: name.into(), version: "1.0.0".into(), config_schema: schema.into() })
        };
        assert!(described("cloudwatch_logs", "{}").is_ok());
        assert!(described("S3", "{}").is_err());
        assert!(described("", "{}").is_err());
        assert!(described("../x", "{}").is_err());
        assert!(described("s3", "not json").is_err());
    }
}
