//! Calls of the host with what nobody should ask for: other people's rows, floods, forged lines.

use wharf_plugin::__private::{WitBatch, WitFault};
use wharf_plugin::bindings::wharf::output::log::{self, Level};
use wharf_plugin::bindings::wharf::output::records::{self, Body, Selection};
use wharf_plugin::bindings::wharf::output::types::HostError;
use wharf_plugin::bindings::wharf::output::{cloudwatch_logs, metrics, s3, sequence, storage};

use crate::objects::told;
use crate::{Answer, delivered, failed};

pub(crate) fn say(line: &str) {
    log::write(Level::Error, line, &[]);
}

pub(crate) fn attack(attack: &str, argument: &str, batch: &WitBatch) -> Option<Answer> {
    Some(match attack {
        "flood_log" => {
            for n in 0..20_000 {
                say(&format!("line {n}"));
            }
            delivered()
        }
        "long_lines_and_trap" => {
            let line = "x".repeat(1 << 20);
            for _ in 0..30 {
                log::write(Level::Error, &line, &vec![("k".to_owned(), "v".repeat(4096)); 200]);
            }
            crate::trap("deliver")
        }
        "forge_log_lines" => {
            say("a\n2026-01-01T00:00:00Z ERROR wharf: forged\r\u{1b}[2J");
            crate::trap("deliver")
        }
        "flood_metrics" => {
            for n in 0..10_000 {
                metrics::counter_add("flood", 1, &[("n".into(), n.to_string())]);
            }
            delivered()
        }
        "forge_metrics" => {
            let labels = |name: &str| [(name.to_owned(), "other/fine".to_owned())];
            metrics::counter_add("delivered_records\n# TYPE forged counter\nforged", 1, &[]);
            metrics::counter_add("x", 1, &labels("output"));
            metrics::counter_add("x", 1, &labels("a\"} 1\nforged{b"));
            metrics::counter_add("metric_changes_dropped", 1_000_000, &[]);
            metrics::histogram_observe("h", f64::NAN, &[]);
            metrics::histogram_observe("h", f64::INFINITY, &[]);
            delivered()
        }
        "read_others_storage" => {
            let (tenant, key) = argument.split_once(' ').unwrap_or_default();
            let keys = [
                key.to_owned(),
                format!("{tenant}/{key}"),
                format!("../{tenant}/{key}"),
                format!("{tenant}\0{key}"),
                format!("\0{tenant}\0{key}"),
            ];
            let read = keys.map(|key| storage::get(&key).ok().flatten());
            let listed = storage::list("", None, u32::MAX).map(|rows| rows.len());
            failed(format!("{} read, {listed:?}", read.iter().flatten().count()))
        }
        "write_others_storage" => {
            let written = [format!("{argument}\0secret"), format!("../{argument}/secret"), "\0".into()]
                .map(|key| storage::set(&key, b"forged"));
            failed(format!("{} written", written.iter().flatten().count()))
        }
        "fill_storage" => until_refused(|n| storage::set(&format!("{n}"), &[0; 1024])),
        "fill_storage_in_transactions" => until_refused(|n| {
            let change = |k: u32| storage::Change::Set((format!("{n} {k}"), vec![0; 1024]));
            storage::transact(&(0..256).map(change).collect::<Vec<_>>())
        }),
        "fill_storage_by_comparing" => {
            until_refused(|n| storage::compare_and_set(&format!("{n}"), None, Some(&[0; 1024])).map(drop))
        }
        "fill_progress" => until_refused(|n| storage::progress_set(batch, &format!("{n}"), &[0; 1024])),
        "fill_counters" if argument == "short" => {
            until_refused(|n| sequence::assign(&format!("{n}"), batch, 0).map(drop))
        }
        "count_again" => failed(format!("{:?}", sequence::assign(argument, batch, 0))),
        "fill_counters" => until_refused(|n| sequence::assign(&format!("{n}{}", "x".repeat(500)), batch, 0).map(drop)),
        "huge_key" => told(storage::set(&"k".repeat(1 << 20), b"v")),
        "huge_value" => told(storage::set("k", &vec![0; 4 << 20])),
        "huge_transaction" => told(storage::transact(&vec![storage::Change::Delete("k".into()); 100_000])),
        "counter_to_its_end" => {
            let first = sequence::assign("n", batch, u64::MAX);
            let second = sequence::reassign("n", batch, u64::MAX);
            failed(format!("{first:?} {second:?}"))
        }
        "ask_for_others_batches" => {
            let ids = [argument, "", "zz", &"0".repeat(32), &"f".repeat(1 << 20)];
            failed(format!("{:?}", ids.map(records::is_open)))
        }
        "write_in_its_own_place" => put("bucket", "logs/x"),
        "write_to_others_bucket" => put("others", "logs/x"),
        "write_outside_the_prefix" => put("bucket", "private/x"),
        "write_with_dots" => put("bucket", "../logs/x"),
        "forge_object_metadata" => put_with("bucket", "logs/x", &[("a\r\nx-amz-acl".into(), "public-read".into())]),
        "list_others_bucket" => match s3::list_multipart_uploads("bucket", "", None) {
            Ok(uploads) => failed(format!("{} uploads", uploads.len())),
            Err(error) => failed(error.to_string()),
        },
        "write_to_others_log_group" => match cloudwatch_logs::create_log_group("/others", None, &[], None) {
            Ok(()) => delivered(),
            Err(error) => failed(error.to_string()),
        },
        "prepare_wild_events" => {
            let wild = Selection::Indexes(vec![u32::MAX, 0, 0]);
            told(cloudwatch_logs::prepare(batch, &wild, Some(&"k".repeat(1 << 20))).map(drop))
        }
        _ => return None,
    })
}

/// All that `configure` may not do; a fault for each that was refused.
pub(crate) fn ask_for_all_that_is_not_allowed() -> Vec<WitFault> {
    let said = [
        storage::get("k").err().map(|error| error.to_string()),
        storage::set("k", b"v").err().map(|error| error.to_string()),
        s3::head_object("bucket", "logs/x", None).err().map(|error| error.to_string()),
        crate::network::get("http://127.0.0.1/", &[]).err(),
    ];
    said.into_iter().flatten().map(|message| WitFault { path: "/ask".into(), message }).collect()
}

fn until_refused(mut one: impl FnMut(u32) -> Result<(), HostError>) -> Answer {
    for n in 0..1_000_000 {
        if let Err(error) = one(n) {
            return failed(format!("after {n}: {error}"));
        }
    }
    delivered()
}

fn put(bucket: &str, key: &str) -> Answer {
    put_with(bucket, key, &[])
}

fn put_with(bucket: &str, key: &str, metadata: &[(String, String)]) -> Answer {
    let with = s3::Attributes {
        content_type: None,
        content_encoding: None,
        storage_class: None,
        acl: None,
        grant_full_control: None,
        grant_read: None,
        grant_read_acp: None,
        grant_write_acp: None,
        server_side_encryption: None,
        kms_key_id: None,
        bucket_key: None,
        tags: vec![],
        metadata: metadata.to_vec(),
        checksum: "crc32c".into(),
        expected_bucket_owner: None,
    };
    let body = match Body::from_bytes(b"x") {
        Ok(body) => body,
        Err(error) => return failed(error.to_string()),
    };
    match s3::put_object(bucket, key, &body, &with, true) {
        Ok(_) => delivered(),
        Err(error) => failed(error.to_string()),
    }
}
