//! `metrics`: numbers of a guest in the host's `/metrics`, as `wharf_plugin_<name>` with the output's name.
//!
//! Allowed to every output at work, but bounded: names and label names match `[a-z][a-z0-9_]*`, at most 64 bytes; at most 8 labels
//! with values of at most 128 bytes; at most 100 series an output where nothing else is said. What is over is counted and dropped: a metric never changes how
//! a delivery ends.

use super::Caller;
use super::bindings::metrics;
use super::escape::one_line;
use crate::config::Limit;
use crate::telemetry::plugin_series::{Change, NotTaken};

/// Longest name of a metric or a label, bytes.
const NAME_BYTES: usize = 64;
/// Most labels of a series.
const MAX_LABELS: usize = 8;
/// Longest value of a label, bytes.
const LABEL_BYTES: usize = 128;
/// Names that are the host's own behind `wharf_plugin_`.
const RESERVED_NAMES: [&str; 1] = ["metric_changes_dropped"];
/// Label names that are the host's or Prometheus's own. `worker` is none: a component knows its number, and says whether a series is of one
/// worker or of the whole output.
const RESERVED: [&str; 3] = ["output", "le", "quantile"];

impl metrics::Host for Caller {
    fn counter_add(&mut self, name: String, value: u64, labels: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.change_metric(&name, labels, Change::Add(value));
        Ok(())
    }

    fn gauge_set(&mut self, name: String, value: f64, labels: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.change_metric(&name, labels, Change::Set(value));
        Ok(())
    }

    fn histogram_observe(&mut self, name: String, value: f64, labels: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.change_metric(&name, labels, Change::Observe(value));
        Ok(())
    }
}

impl Caller {
    fn change_metric(&self, name: &str, mut labels: Vec<(String, String)>, change: Change) {
        let Ok(work) = self.work() else { return };
        let series = work.metrics.plugin_series();
        let output = self.services.output();
        // One value that is no number would make the histogram's sum useless for good.
        let is_number = !matches!(change, Change::Observe(value) if !value.is_finite());
        // Of a tenant's output the label is there, and says whose it is.
        let is_taken = |(label, _): &(String, String)| label == "tenant";
        if !is_number || !is_allowed(name, &labels) || (output.contains('/') && labels.iter().any(is_taken)) {
            series.dropped(output);
            return;
        }
        for (_, value) in &mut labels {
            *value = one_line(value, LABEL_BYTES);
        }
        // What is over the limit is counted there; the guest has no use for knowing.
        let most = self.services.limits().size(Limit::MetricSeries);
        if series.change(output, name, &labels, change, most) == Err(NotTaken::TooMany) {
            self.services.count_reached(Limit::MetricSeries);
        }
    }
}

fn is_allowed(name: &str, labels: &[(String, String)]) -> bool {
    let mut names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    is_name(name)
        && !RESERVED_NAMES.contains(&name)
        && labels.len() <= MAX_LABELS
        && names.iter().all(|name| is_name(name) && !RESERVED.contains(name))
        && names.is_sorted_by(|a, b| a < b)
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_wit_file() {
        for (name, allowed) in [
            ("puts", true),
            ("puts_2", true),
            (&*"a".repeat(64), true),
            (&*"a".repeat(65), false),
            ("", false),
            ("2puts", false),
            ("_puts", false),
            ("Puts", false),
            ("puts\n# TYPE forged counter", false),
            ("pü", false),
        ] {
            assert_eq!(is_name(name), allowed, "{name:?}");
        }
    }

    #[test]
    fn labels_are_few_distinct_and_never_the_hosts_own() {
        let labels = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| ((*name).to_owned(), String::new())).collect()
        };
        assert!(is_allowed("m", &labels(&["a", "b"])));
        assert!(is_allowed("m", &labels(&["worker"])));
        assert!(!is_allowed("metric_changes_dropped", &labels(&[])));
        assert!(!is_allowed("m", &labels(&["a", "a"])));
        assert!(!is_allowed("m", &labels(&["output"])));
        assert!(!is_allowed("m", &labels(&["le"])));
        assert!(!is_allowed("m", &labels(&["a", "b", "c", "d", "e", "f", "g", "h", "i"])));
    }
}
