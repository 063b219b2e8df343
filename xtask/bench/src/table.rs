//! How results are shown: a table for each destination, with the limit as its first row.

use crate::measure::Measured;
use crate::scenario::Destination;

/// What a table is of.
pub fn heading(of: Destination) -> String {
    let common = format!(
        "{:<54}  {:>7}  {:>8}  {:>8}  {:>7}  {:>9}",
        "scenario", "MB/s", "of limit", "CPU s/GB", "guest", "peak"
    );
    match of {
        Destination::S3 => format!("{common}  {:>9}  {:>9}", "received", "sent"),
        Destination::Logs => format!("{common}  {:>9}  {:>11}  {:>7}", "events/s", "calls/1000", "filled"),
    }
}

/// One result; `limit` is what it is held against.
pub fn row(of: Destination, name: &str, measured: &Measured, limit: Option<&Measured>) -> String {
    let of_limit = limit.map_or_else(String::new, |limit| format!("{:.2}", measured.rate() / limit.rate()));
    let guest = measured.guest().map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share));
    let common = format!(
        "{name:<54}  {:>7.1}  {of_limit:>8}  {:>8.2}  {guest:>7}  {:>5.0} MiB",
        measured.rate(),
        measured.cpu(),
        measured.usage.peak_bytes as f64 / f64::from(1 << 20),
    );
    let Destination::Logs = of else {
        let [received, sent] = [measured.received_bytes, measured.sent_bytes].map(|bytes| bytes as f64 / 1e6);
        return format!("{common}  {received:>6.0} MB  {sent:>6.0} MB");
    };
    let (calls, filled) = measured.calls.map_or_else(Default::default, |calls| {
        let each = 1000.0 * calls.count as f64 / measured.records.max(1) as f64;
        (format!("{each:.3}"), format!("{:.1} %", 100.0 * calls.fill))
    });
    format!("{common}  {:>9.0}  {calls:>11}  {filled:>7}", measured.records_rate())
}
