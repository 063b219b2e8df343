//! Series that plugins name at run time, rendered beside the host's own as `wharf_plugin_<name>`.
//!
//! This knows only how to keep and write them. What a plugin may name, and how many series an output may have, is checked by
//! whoever hands them in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// One change of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Adds to a counter.
    Add(u64),
    /// Sets a gauge.
    Set(f64),
    /// Puts a value into a histogram.
    Observe(f64),
}

/// Why a change was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// The output has as many series as it may have.
    TooMany,
    /// The name is already in use for another kind of metric.
    OtherKind,
}

/// All series of all plugins. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PluginSeries {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    families: BTreeMap<String, Family>,
    series_of: BTreeMap<String, usize>,
    dropped: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    series: BTreeMap<Labels, Value>,
}

type Labels = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram { sum: f64, count: u64, buckets: Vec<u64> },
}

impl PluginSeries {
    /// Changes the series of `output` with this name and these labels, which it makes where the output has fewer than `most`.
    ///
    /// # Errors
    /// See [`NotTaken`]; the change is counted as dropped.
    pub fn change(
        &self,
        output: &str,
        name: &str,
        labels: &[(String, String)],
        change: Change,
        most: usize,
    ) -> Result<(), NotTaken> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = inner.change(output, name, labels, change, most);
        if taken.is_err() {
            inner.count_dropped(output);
        }
        taken
    }

    /// Counts a change that was refused before it came here.
    pub fn dropped(&self, output: &str) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).count_dropped(output);
    }
}

impl Inner {
    fn count_dropped(&mut self, output: &str) {
        *self.dropped.entry(output.to_owned()).or_default() += 1;
    }

    fn change(
        &mut self,
        output: &str,
        name: &str,
        labels: &[(String, String)],
        change: Change,
        most: usize,
    ) -> Result<(), NotTaken> {
        let kind = change.kind();
        if self.families.get(name).is_some_and(|family| family.kind != kind) {
            return Err(NotTaken::OtherKind);
        }
        let mut key = labels_of(output);
        key.extend_from_slice(labels);
        // The order in which a guest gives its labels makes no other series.
        key.sort();
        let known = self.families.get(name).is_some_and(|family| family.series.contains_key(&key));
        if !known {
            let series = self.series_of.entry(output.to_owned()).or_default();
            if *series >= most {
                return Err(NotTaken::TooMany);
            }
            *series += 1;
        }
        let family =
            self.families.entry(name.to_owned()).or_insert_with(|| Family { kind, series: BTreeMap::default() });
        family.series.entry(key).or_insert_with(|| Value::new(kind)).apply(change);
        Ok(())
    }
}

/// The labels that say whose a series is: `acme/archive` is archive of acme.
fn labels_of(output: &str) -> Labels {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    match output.split_once('/') {
        None => vec![label("output", output)],
        Some((tenant, output)) => vec![label("output", output), label("tenant", tenant)],
    }
}

impl Change {
    fn kind(self) -> Kind {
        match self {
            Self::Add(_) => Kind::Counter,
            Self::Set(_) => Kind::Gauge,
            Self::Observe(_) => Kind::Histogram,
        }
    }
}

/// Upper ends of the histograms' buckets: 0.001 and up in steps of four, to about 4.4e9. A host that knows neither unit nor range
/// needs them wide: milliseconds in seconds at one end, gigabytes in bytes at the other.
fn bounds() -> impl Iterator<Item = f64> {
    (0..22).map(|step| 0.001 * 4f64.powi(step))
}

impl Value {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Counter => Self::Counter(0),
            Kind::Gauge => Self::Gauge(0.0),
            Kind::Histogram => Self::Histogram { sum: 0.0, count: 0, buckets: vec![0; bounds().count() + 1] },
        }
    }

    fn apply(&mut self, change: Change) {
        match (self, change) {
            (Self::Counter(value), Change::Add(n)) => *value = value.saturating_add(n),
            (Self::Gauge(value), Change::Set(new)) => *value = new,
            (Self::Histogram { sum, count, buckets }, Change::Observe(value)) => {
                *sum += value;
                *count += 1;
                let at = bounds().position(|bound| value <= bound).unwrap_or(buckets.len() - 1);
                if let Some(bucket) = buckets.get_mut(at) {
                    *bucket += 1;
                }
            }
            // The family's kind was compared before.
            _ => {}
        }
    }
}

impl Collector for PluginSeries {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, family) in &inner.families {
            let name = format!("plugin_{name}");
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(&name, "Named by a plugin", None, kind)?;
            for (labels, value) in &family.series {
                let mut one = metric.encode_family(labels)?;
                match value {
                    Value::Counter(value) => ConstCounter::new(*value).encode(one)?,
                    Value::Gauge(value) => ConstGauge::new(*value).encode(one)?,
                    Value::Histogram { sum, count, buckets } => {
                        let ends = bounds().chain(std::iter::once(f64::INFINITY));
                        let buckets: Vec<(f64, u64)> = ends.zip(buckets.iter().copied()).collect();
                        one.encode_histogram::<Labels>(*sum, *count, &buckets, None)?;
                    }
                }
            }
        }
        if !inner.dropped.is_empty() {
            let help = "Changes of plugins' metrics that were over a limit or not allowed";
            let mut metric =
                encoder.encode_descriptor("plugin_metric_changes_dropped", help, None, MetricType::Counter)?;
            for (output, dropped) in &inner.dropped {
                let labels = labels_of(output);
                ConstCounter::new(*dropped).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    fn label(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn a_counter_is_rendered_with_its_output_and_labels() {
        let metrics = Metrics::new();
        let series = metrics.plugin_series();
        series.change("archive", "puts", &[label("kind", "a\"b")], Change::Add(2), 10).unwrap();
        series.change("archive", "puts", &[label("kind", "a\"b")], Change::Add(3), 10).unwrap();
        let text = metrics.render();
        assert!(text.contains("# TYPE wharf_plugin_puts counter\n"), "{text}");
        assert!(text.contains("wharf_plugin_puts_total{kind=\"a\\\"b\",output=\"archive\"} 5\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn outputs_of_two_tenants_with_one_name_have_series_of_their_own_up_to_the_limit_of_each() {
        let metrics = Metrics::new();
        let series = metrics.plugin_series();
        for output in ["archive", "acme/archive", "globex/archive"] {
            series.change(output, "puts", &[label("zone", "a")], Change::Add(1), 1).unwrap();
            assert_eq!(series.change(output, "puts", &[], Change::Add(1), 1), Err(NotTaken::TooMany));
        }
        let text = metrics.render();
        for line in [
            "wharf_plugin_puts_total{output=\"archive\",zone=\"a\"} 1",
            "wharf_plugin_puts_total{output=\"archive\",tenant=\"acme\",zone=\"a\"} 1",
            "wharf_plugin_metric_changes_dropped_total{output=\"archive\",tenant=\"globex\"} 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn a_histogram_counts_cumulatively_up_to_infinity() {
        let metrics = Metrics::new();
        for value in [0.0005, 0.003, 1e12] {
            metrics.plugin_series().change("o", "seconds", &[], Change::Observe(value), 10).unwrap();
        }
        let text = metrics.render();
        for line in [
            "wharf_plugin_seconds_count{output=\"o\"} 3",
            "wharf_plugin_seconds_bucket{le=\"0.001\",output=\"o\"} 1",
            "wharf_plugin_seconds_bucket{le=\"0.004\",output=\"o\"} 2",
            "wharf_plugin_seconds_bucket{le=\"+Inf\",output=\"o\"} 3",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn series_over_the_limit_are_counted_and_known_ones_go_on() {
        let metrics = Metrics::new();
        let series = metrics.plugin_series();
        for n in 0..3 {
            series.change("o", "g", &[label("n", &n.to_string())], Change::Set(1.0), 3).unwrap();
        }
        assert_eq!(series.change("o", "g", &[label("n", "3")], Change::Set(1.0), 3), Err(NotTaken::TooMany));
        assert_eq!(series.change("o", "g", &[label("n", "2")], Change::Set(2.5), 3), Ok(()));
        assert_eq!(series.change("other", "g", &[], Change::Set(1.0), 3), Ok(()));
        let text = metrics.render();
        assert!(text.contains("wharf_plugin_metric_changes_dropped_total{output=\"o\"} 1"), "{text}");
        assert!(text.contains("wharf_plugin_g{n=\"2\",output=\"o\"} 2.5"), "{text}");
    }

    #[test]
    fn a_name_keeps_its_kind() {
        let series = PluginSeries::default();
        series.change("a", "x", &[], Change::Add(1), 10).unwrap();
        assert_eq!(series.change("b", "x", &[], Change::Set(1.0), 10), Err(NotTaken::OtherKind));
    }
}
