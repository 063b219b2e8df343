//! Every counter that the configuration lets foresee is there from the start, at 0: Prometheus sees a first event only as a rise.

use crate::config::{Config, OutputConfig};
use crate::dead_letter::REPLAY_SOURCE;
use crate::intake::{Limit, NO_OUTPUT};
use crate::output::counter_words;
use crate::queue::DISCARDED;
use crate::source::{discard_reasons, refusal_reasons, unparsed_reasons};
use crate::telemetry::{Metrics, OutputWords};

pub(super) fn begin(config: &Config, metrics: &Metrics) {
    for source in &config.sources {
        metrics.source_begins(&source.name, discard_reasons(&source.kind), refusal_reasons(&source.kind));
        for reason in unparsed_reasons(source) {
            metrics.unparsed(&source.name, reason, 0);
        }
    }
    metrics.source_begins(REPLAY_SOURCE, &[], &[]);
    for output in &config.outputs {
        metrics.output_begins(&output.name, output.workers, &words(output));
        if !output.grants.http.is_empty() {
            metrics.http_begins(&output.name);
        }
    }
    metrics.dropped("", NO_OUTPUT, 0);
    for tenant in &config.tenants {
        metrics.tenant_begins(&tenant.name, &Limit::ALL.map(Limit::name));
        metrics.dropped(&format!("{}/", tenant.name), NO_OUTPUT, 0);
    }
}

fn words(output: &OutputConfig) -> OutputWords {
    let mut words = counter_words();
    words.dropped.extend(output.queue.when_full.drop_reason());
    words.dropped.push(DISCARDED);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_counters_are_there_before_anything_happens() {
        let text = "tenants:\n  acme:\n    sources: { web: { type: http, listen: \"127.0.0.1:1\" } }\n    \
                    outputs: { archive: { plugin: s3, match: \"*\" } }\n";
        let config = Config::parse(text, "wharf.yaml".as_ref(), &|_| None).unwrap();
        let metrics = Metrics::new();
        begin(&config, &metrics);
        let shown = metrics.render();
        for line in [
            "wharf_source_accepted_records_total{source=\"web\",tenant=\"acme\"} 0",
            "wharf_durable_records_total{output=\"archive\",tenant=\"acme\"} 0",
            "wharf_dropped_records_total{output=\"\",tenant=\"acme\",reason=\"no_output\"} 0",
            "wharf_tenant_accepted_bytes_total{tenant=\"acme\"} 0",
            "wharf_tenant_refused_total{tenant=\"acme\",limit=\"journal\"} 0",
            "wharf_tenant_refused_total{tenant=\"acme\",limit=\"ingest_bytes\"} 0",
            "wharf_tenant_refused_total{tenant=\"acme\",limit=\"ingest_records\"} 0",
        ] {
            assert!(shown.lines().any(|one| one == line), "{line} is not in {shown}");
        }
    }

    #[test]
    fn every_counter_of_the_documentation_is_there_before_anything_happens() {
        let text = "sources:\n  files: { type: tail, paths: [/x] }\n  posts: { type: http, listen: \"127.0.0.1:1\" }\n\
                    outputs:\n  archive: { plugin: s3, match: \"*\", queue: { max_size: 1GB, when_full: drop_oldest } }\n  \
                    live: { plugin: ./own.wasm, match: \"*\", grants: { http: [\"https://api.example.com\"] } }\n";
        let config = Config::parse(text, "wharf.yaml".as_ref(), &|_| None).unwrap();
        let metrics = Metrics::new();
        begin(&config, &metrics);
        let shown = metrics.render();
        let mut wanted = vec![
            "wharf_source_accepted_records_total{source=\"files\"} 0".to_owned(),
            "wharf_source_accepted_bytes_total{source=\"posts\"} 0".to_owned(),
            "wharf_dropped_records_total{output=\"\",reason=\"no_output\"} 0".to_owned(),
            "wharf_worker_cpu_seconds_total{output=\"archive\",worker=\"0\"} 0.0".to_owned(),
            "wharf_http_request_bytes_total{output=\"live\"} 0".to_owned(),
            "wharf_http_response_bytes_total{output=\"live\"} 0".to_owned(),
            "wharf_http_request_seconds_count{output=\"live\"} 0".to_owned(),
        ];
        // The words that docs/operations.md and docs/sources.md give.
        for (metric, label, words) in [
            (
                "rejected_records",
                "reason",
                "rejected retry_expired trap cpu_limit out_of_memory host_limit invalid_report",
            ),
            ("dropped_records", "reason", "queue_full_drop_oldest damaged discarded"),
            (
                "retries",
                "kind",
                "throttled transient auth misconfigured trap cpu_limit out_of_memory host_limit invalid_report timeout host",
            ),
        ] {
            let line = |word| format!("wharf_{metric}_total{{output=\"archive\",{label}=\"{word}\"}} 0");
            wanted.extend(words.split(' ').map(line));
        }
        let results = "2xx 3xx 4xx 5xx no_answer no_credential refused";
        wanted.extend(
            results
                .split(' ')
                .map(|result| format!("wharf_http_requests_total{{output=\"live\",result=\"{result}\"}} 0")),
        );
        for (source, metric, reasons) in [
            ("files", "discarded_records", "line_too_long truncated"),
            ("posts", "discarded_records", "invalid"),
            (
                "posts",
                "refused_requests",
                "queue_full journal_full disk_full journal_failed stopping busy slow too_large bad_request unsupported_type method fault auth tenant_journal tenant_ingest",
            ),
        ] {
            let line = |reason| format!("wharf_source_{metric}_total{{source=\"{source}\",reason=\"{reason}\"}} 0");
            wanted.extend(reasons.split(' ').map(line));
        }
        for line in wanted {
            assert!(shown.lines().any(|one| one == line), "{line} is not in {shown}");
        }
    }
}
