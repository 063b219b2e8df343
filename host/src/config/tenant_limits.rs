//! Reads the `limits` of tenants, and `tenant_defaults`, which they are read over.

use std::time::Duration;

use super::model::{IngestLimits, TenantLimits};
use super::reader::Section;

/// How much of a second's worth may come at once where nothing is said.
const BURST: Duration = Duration::from_secs(10);

/// What holds for every tenant that says nothing else.
pub(crate) fn defaults(mut section: Section<'_>) -> TenantLimits {
    let limits = section.section("limits").map(|section| read(section, &TenantLimits::default()));
    section.finish(&[
        ("journal", "it belongs under \"limits\""),
        ("ingest", "it belongs under \"limits\""),
        ("aws", "an identity is one tenant's: write it under tenants.NAME.aws"),
        ("share", "a share is one tenant's: write it under tenants.NAME"),
    ]);
    limits.unwrap_or_default()
}

/// A tenant's limits over those of all.
pub(crate) fn read(mut section: Section<'_>, defaults: &TenantLimits) -> TenantLimits {
    let mut count = |key: &'static str| section.count(key, 0..=1_000_000);
    let (outputs, sources, workers) = (count("outputs"), count("sources"), count("workers"));
    let limits = TenantLimits {
        journal_bytes: section.size("journal", 64 << 10..=u64::MAX).or(defaults.journal_bytes),
        ingest: match section.section("ingest") {
            Some(block) => ingest(block, defaults.ingest),
            None => defaults.ingest,
        },
        outputs: outputs.or(defaults.outputs),
        sources: sources.or(defaults.sources),
        workers: workers.or(defaults.workers),
    };
    section.finish(&[
        ("journal_bytes", "did you mean \"journal\"?"),
        ("disk", "did you mean \"journal\"?"),
        ("queue", "did you mean \"journal\"? Each output's share is outputs.NAME.queue"),
        ("max_size", "did you mean \"journal\"?"),
        ("rate", "did you mean \"ingest\"?"),
        ("bytes", "write ingest: { bytes: … }"),
        ("records", "write ingest: { records: … }"),
    ]);
    limits
}

fn ingest(mut section: Section<'_>, defaults: IngestLimits) -> IngestLimits {
    let bytes = section.size("bytes", 1024..=1 << 50);
    let records = section.count("records", 1..=1 << 40);
    let burst = section.duration("burst", Duration::from_secs(1)..=Duration::from_secs(24 * 3600));
    let limits = IngestLimits {
        bytes_per_second: bytes.or(defaults.bytes_per_second),
        records_per_second: records.or(defaults.records_per_second),
        burst: burst.unwrap_or(defaults.burst),
    };
    if burst.is_some() && limits.bytes_per_second.is_none() && limits.records_per_second.is_none() {
        section.fault("burst", "there is no \"bytes\" and no \"records\" that it could be for", None);
    }
    section.finish(&[
        ("bytes_per_second", "did you mean \"bytes\"? It is by the second"),
        ("records_per_second", "did you mean \"records\"? It is by the second"),
        ("max_size", "did you mean \"bytes\"?"),
    ]);
    limits
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self { bytes_per_second: None, records_per_second: None, burst: BURST }
    }
}
