//! Lies in what a call gives back.

use wharf_plugin::__private::{WitBatch, WitFailure, WitFault, WitPlan, WitReport};
use wharf_plugin::bindings::exports::wharf::output::output::{PartitionKey, Rejection, S3Scope};
use wharf_plugin::bindings::wharf::output::types::FailureKind;

use crate::Answer;

pub(crate) fn attack(attack: &str, batch: &WitBatch) -> Option<Answer> {
    let count = batch.count();
    let rejecting = |records: Vec<u32>| Ok(WitReport { rejected: vec![Rejection { records, reason: "no".into() }] });
    let failing = |kind, message, retry_after_ms| Err(WitFailure { kind, message, retry_after_ms });
    Some(match attack {
        "reject_twice" => rejecting(vec![0, 0]),
        "reject_outside" => rejecting(vec![count]),
        "reject_descending" => rejecting((0..count).rev().collect()),
        "reject_in_two_reasons" => {
            let one = Rejection { records: vec![0], reason: "a".into() };
            Ok(WitReport { rejected: vec![one.clone(), Rejection { reason: "b".into(), ..one }] })
        }
        "reject_millions" => rejecting((0..8_000_000).collect()),
        "reject_with_long_reasons" => {
            let reason = |n: u32| Rejection { records: vec![n], reason: format!("{n}{}", "x".repeat(1 << 20)) };
            Ok(WitReport { rejected: (0..24).map(reason).collect() })
        }
        "many_empty_rejections" => {
            let empty = Rejection { records: vec![], reason: String::new() };
            Ok(WitReport { rejected: vec![empty; 2_000_000] })
        }
        "long_failure" => failing(FailureKind::Transient, "x".repeat(4 << 20), None),
        "failure_that_is_no_text" => {
            // SAFETY: none; the host must not take it for text.
            let message = unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) };
            failing(FailureKind::Transient, message, None)
        }
        "failure_with_forged_lines" => {
            failing(FailureKind::Transient, "a\n2026-01-01 ERROR wharf: forged\u{1b}[2J".into(), None)
        }
        "wait_for_ever" => failing(FailureKind::Throttled, "wait".into(), Some(u64::MAX)),
        _ => return None,
    })
}

/// A configuration's faults, more than anybody can read.
pub(crate) fn million_faults() -> Vec<WitFault> {
    vec![WitFault { path: "/a".into(), message: "b".into() }; 200_000]
}

pub(crate) fn plan(attack: &str) -> WitPlan {
    let honest = WitPlan {
        partition_by: vec![PartitionKey::Tag],
        in_order: false,
        record_overhead: 0,
        max_bytes: None,
        max_records: None,
        max_age_ms: None,
        s3: vec![S3Scope { bucket: "bucket".into(), key_prefix: "logs/".into() }],
        log_groups: vec![],
        http: vec![],
        credentials: vec![],
    };
    match attack {
        "plan_of_a_thousand_keys" => {
            let key = |n: u32| PartitionKey::Field(vec![n.to_string()]);
            WitPlan { partition_by: (0..1000).map(key).collect(), ..honest }
        }
        "plan_of_nothing" => WitPlan { max_bytes: Some(0), max_records: Some(0), max_age_ms: Some(0), ..honest },
        _ => honest,
    }
}
