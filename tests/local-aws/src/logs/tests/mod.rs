//! The rules, each at its limit and one over, through the door that clients use. Values are from the AWS pages that `rules` names, written out
//! here once more.

mod client;
mod faults;
mod groups;
mod put;
mod reading;
mod signatures;

use serde_json::{Value, json};

use self::client::Client;
use super::{Clock, Logs, Options};

/// 2026-01-01T00:00:00Z
const NOW: i64 = 1_767_225_600_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A server whose clock stands at [`NOW`], with the group `g` and its stream `s`.
fn server_with(options: Options) -> (Logs, Client) {
    let logs = Logs::start(Options { groups: vec!["g".into()], clock: Clock::at(NOW), ..options }).unwrap();
    let client = Client::of(&logs);
    client.ok("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": "s" }));
    (logs, client)
}

fn server() -> (Logs, Client) {
    server_with(Options::default())
}

fn put_of(events: &Value) -> Value {
    json!({ "logGroupName": "g", "logStreamName": "s", "logEvents": events })
}

/// One event for each time.
fn at(times: &[i64]) -> Value {
    times.iter().map(|time| json!({ "timestamp": time, "message": format!("at {time}") })).collect()
}

/// Events of these sizes in bytes, all at [`NOW`].
fn sized(sizes: &[usize]) -> Value {
    sizes.iter().map(|size| json!({ "timestamp": NOW, "message": "x".repeat(*size) })).collect()
}
