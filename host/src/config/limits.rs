//! Limits of plugins: which there are, how much they are where nothing is said, and who may change them.
//!
//! `plugins.limits` is for all. A tenant's `plugin_limits` are the operator's word about that tenant, and may be more or less. An output's `limits`
//! are more or less where the output is the operator's own; a tenant's output may only lower what its tenant has.

use std::time::Duration;

use super::reader::{Elsewhere, Section};
use super::top::{LEAST_MEMORY, YEAR};
use super::units::{format_duration, format_size};
use super::{output_section, tenant_in};

/// What a limit is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes in each second.
    BytesPerSecond,
    /// Milliseconds.
    Millis,
    /// Things, by their name in the plural: `handles`, `requests a second`.
    Count(&'static str),
}

impl Unit {
    /// As messages have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes a second",
            Self::Millis => "ms",
            Self::Count(things) => things,
        }
    }
}

/// Who may change a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `plugins.limits` alone: it is one for the process.
    Host,
    /// That, and a tenant's `plugin_limits`: it is one for all outputs of a tenant together.
    Tenant,
    /// Those, and an output's `limits`.
    Output,
}

/// A limit that an operator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "docs/plugins/limits.md describes each by its key, and a test holds it against this list"
)]
pub enum Limit {
    ComponentSize,
    CompileTime,
    Stack,
    TotalMemory,
    TenantMemory,
    Memory,
    TableElements,
    CpuPerCall,
    CpuPerMib,
    DeliverTimeout,
    CallBytes,
    Handles,
    HostObjects,
    HostBytes,
    LogLines,
    LogBytes,
    MetricSeries,
    Storage,
    TenantStorage,
    Counters,
    TenantCounters,
    HttpRequests,
    TenantHttpRequests,
    HttpConnections,
    TenantHttpConnections,
    HttpSent,
    TenantHttpSent,
    HttpReceived,
    TenantHttpReceived,
}

/// What is known of a limit. Amounts are in its unit.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// As it is written in the configuration.
    pub key: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Where nothing is said.
    pub default: u64,
    /// What may be written.
    pub least: u64,
    /// What may be written.
    pub most: u64,
    /// Who may change it.
    pub scope: Scope,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Limit {
    /// Every limit, in the order of the documentation.
    pub const ALL: [Self; 29] = [
        Self::ComponentSize,
        Self::CompileTime,
        Self::Stack,
        Self::TotalMemory,
        Self::TenantMemory,
        Self::Memory,
        Self::TableElements,
        Self::CpuPerCall,
        Self::CpuPerMib,
        Self::DeliverTimeout,
        Self::CallBytes,
        Self::Handles,
        Self::HostObjects,
        Self::HostBytes,
        Self::LogLines,
        Self::LogBytes,
        Self::MetricSeries,
        Self::Storage,
        Self::TenantStorage,
        Self::Counters,
        Self::TenantCounters,
        Self::HttpRequests,
        Self::TenantHttpRequests,
        Self::HttpConnections,
        Self::TenantHttpConnections,
        Self::HttpSent,
        Self::TenantHttpSent,
        Self::HttpReceived,
        Self::TenantHttpReceived,
    ];

    /// What is known of it.
    #[must_use]
    pub const fn about(self) -> About {
        use Scope::{Host, Output, Tenant};
        use Unit::{Bytes, BytesPerSecond, Count, Millis};
        let year = 365 * 24 * 3600 * 1000;
        let (key, unit, default, least, most, scope) = match self {
            Self::ComponentSize => ("component_size", Bytes, 64 * MIB, 64 * KIB, 64 * MIB, Host),
            Self::CompileTime => ("compile_time", Millis, 300_000, 100, year, Host),
            Self::Stack => ("stack", Bytes, 512 * KIB, 64 * KIB, 8 * MIB, Host),
            Self::TotalMemory => ("total_memory", Bytes, 4 * GIB, LEAST_MEMORY, 1 << 50, Host),
            Self::TenantMemory => ("tenant_memory", Bytes, GIB, LEAST_MEMORY, 1 << 50, Tenant),
            Self::Memory => ("max_memory", Bytes, 64 * MIB, LEAST_MEMORY, 4 * GIB, Output),
            Self::TableElements => ("table_elements", Count("table elements"), 20_000, 100, 1_000_000, Output),
            Self::CpuPerCall => ("cpu_per_call", Millis, 10_000, 10, year, Output),
            Self::CpuPerMib => ("cpu_per_mib", Millis, 63, 0, 3_600_000, Output),
            Self::DeliverTimeout => ("deliver_timeout", Millis, 900_000, 10, year, Output),
            Self::CallBytes => ("call_bytes", Bytes, 16 * MIB, 64 * KIB, GIB, Output),
            Self::Handles => ("handles", Count("handles"), 1024, 16, 1 << 20, Output),
            Self::HostObjects => ("host_objects", Count("host objects"), 256, 16, 1 << 20, Output),
            Self::HostBytes => ("host_bytes", Bytes, 256 * MIB, MIB, 64 * GIB, Output),
            Self::LogLines => ("log_lines", Count("lines a second"), 100, 1, 1_000_000, Output),
            Self::LogBytes => ("log_bytes", BytesPerSecond, 64 * KIB, KIB, GIB, Output),
            Self::MetricSeries => ("metric_series", Count("series"), 100, 0, 100_000, Output),
            Self::Storage => ("storage", Bytes, 16 * MIB, 0, GIB, Output),
            Self::TenantStorage => ("tenant_storage", Bytes, 256 * MIB, 0, 64 * GIB, Tenant),
            Self::Counters => ("counters", Count("counters"), 100_000, 0, 10_000_000, Output),
            Self::TenantCounters => ("tenant_counters", Count("counters"), 1_000_000, 0, 100_000_000, Tenant),
            Self::HttpRequests => ("http_requests", Count("requests a second"), 1000, 1, 1_000_000, Output),
            Self::TenantHttpRequests => {
                ("tenant_http_requests", Count("requests a second"), 10_000, 1, 1_000_000, Tenant)
            }
            Self::HttpConnections => ("http_connections", Count("requests at a time"), 1024, 1, 10_000, Output),
            Self::TenantHttpConnections => {
                ("tenant_http_connections", Count("requests at a time"), 1024, 1, 10_000, Tenant)
            }
            Self::HttpSent => ("http_sent", BytesPerSecond, 256 * MIB, KIB, 64 * GIB, Output),
            Self::TenantHttpSent => ("tenant_http_sent", BytesPerSecond, GIB, KIB, 64 * GIB, Tenant),
            Self::HttpReceived => ("http_received", BytesPerSecond, 64 * MIB, KIB, 64 * GIB, Output),
            Self::TenantHttpReceived => ("tenant_http_received", BytesPerSecond, 256 * MIB, KIB, 64 * GIB, Tenant),
        };
        About { key, unit, default, least, most, scope }
    }

    /// As it is written in the configuration.
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.about().key
    }
}

/// Where a limit was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// In `plugins.limits`, or nowhere.
    Plugins,
    /// In the tenant's `plugin_limits`.
    Tenant,
    /// In the output's `limits`.
    Output,
}

/// An amount for each limit, and where it was said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits([(u64, Level); Limit::ALL.len()]);

impl Default for Limits {
    fn default() -> Self {
        Self(Limit::ALL.map(|limit| (limit.about().default, Level::Plugins)))
    }
}

impl Limits {
    fn slot(&self, limit: Limit) -> (u64, Level) {
        let known = self.0.get(limit as usize).copied();
        known.unwrap_or((limit.about().default, Level::Plugins))
    }

    /// How much it is, in its unit.
    #[must_use]
    pub fn of(&self, limit: Limit) -> u64 {
        self.slot(limit).0
    }

    /// A limit in milliseconds, as time.
    #[must_use]
    pub fn duration(&self, limit: Limit) -> Duration {
        Duration::from_millis(self.of(limit))
    }

    /// A limit of bytes or things, for what counts with the machine's words.
    #[must_use]
    pub fn size(&self, limit: Limit) -> usize {
        usize::try_from(self.of(limit)).unwrap_or(usize::MAX)
    }

    /// The same with another amount, as if it had been said there.
    #[must_use]
    pub fn with(mut self, limit: Limit, amount: u64, level: Level) -> Self {
        if let Some(slot) = self.0.get_mut(limit as usize) {
            *slot = (amount, level);
        }
        self
    }

    /// Where an operator changes it for this output: `plugins.limits.max_memory`, `tenants.acme.outputs.live.limits.max_memory`.
    #[must_use]
    pub fn place(&self, limit: Limit, output: &str) -> String {
        let key = limit.key();
        match (self.slot(limit).1, tenant_in(output)) {
            (Level::Output, _) => format!("{}.limits.{key}", output_section(output)),
            (Level::Tenant, Some(tenant)) => format!("tenants.{tenant}.plugin_limits.{key}"),
            _ => format!("plugins.limits.{key}"),
        }
    }
}

const ELSEWHERE: Elsewhere = &[
    ("memory", "did you mean \"max_memory\"?"),
    ("cpu", "did you mean \"cpu_per_call\"?"),
    ("timeout", "did you mean \"deliver_timeout\"?"),
    ("max_size", "did you mean \"component_size\"?"),
    ("max_concurrent", "it belongs under \"http\" at the top level; an output's own is \"http_connections\""),
    ("component_size", "it is one for all, under plugins.limits"),
    ("compile_time", "it is one for all, under plugins.limits"),
    ("stack", "it is one for all, under plugins.limits"),
    ("total_memory", "it is one for all, under plugins.limits"),
    ("tenant_memory", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("tenant_storage", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("tenant_counters", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("sequences", "did you mean \"counters\"?"),
    ("tenant_http_requests", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("tenant_http_connections", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("tenant_http_sent", "it is one for all outputs of a tenant, under its plugin_limits"),
    ("tenant_http_received", "it is one for all outputs of a tenant, under its plugin_limits"),
];

/// Reads `plugins.limits`.
pub(crate) fn of_plugins(section: Section<'_>) -> Limits {
    read(section, &Limits::default(), Level::Plugins, None)
}

/// Reads a tenant's `plugin_limits`, over those of all plugins.
pub(crate) fn of_tenant(section: &mut Section<'_>, all: &Limits) -> Limits {
    section.section("plugin_limits").map_or_else(|| all.clone(), |section| read(section, all, Level::Tenant, None))
}

/// Reads an output's `limits`, over its tenant's or those of all plugins.
pub(crate) fn of_output(section: &mut Section<'_>, base: &Limits, tenant: Option<&str>) -> Limits {
    section.section("limits").map_or_else(|| base.clone(), |section| read(section, base, Level::Output, tenant))
}

/// Reads one section. `tenant`: whose limits may be lowered only.
fn read(mut section: Section<'_>, base: &Limits, level: Level, tenant: Option<&str>) -> Limits {
    let mut limits = base.clone();
    for limit in Limit::ALL {
        let may_be_said = match limit.about().scope {
            Scope::Host => level == Level::Plugins,
            Scope::Tenant => level != Level::Output,
            Scope::Output => true,
        };
        let Some(amount) = may_be_said.then(|| amount(&mut section, limit)).flatten() else { continue };
        let most = base.of(limit);
        if let Some(tenant) = tenant.filter(|_| amount > most) {
            let message = format!("is more than its tenant has, which is {}", shown(limit, most));
            let help = format!("lower it, or raise tenants.{tenant}.plugin_limits.{}", limit.key());
            section.fault(limit.key(), message, Some(help));
            continue;
        }
        limits = limits.with(limit, amount, level);
    }
    section.finish(ELSEWHERE);
    limits
}

/// What stands under a limit's key, in its unit.
pub(super) fn amount(section: &mut Section<'_>, limit: Limit) -> Option<u64> {
    let About { key, unit, least, most, .. } = limit.about();
    match unit {
        Unit::Bytes | Unit::BytesPerSecond => section.size(key, least..=most),
        Unit::Count(_) => section.count(key, least..=most),
        Unit::Millis => {
            let range = Duration::from_millis(least)..=Duration::from_millis(most).min(YEAR);
            section.duration(key, range).map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
        }
    }
}

/// An amount as a person writes it.
#[must_use]
pub fn shown(limit: Limit, amount: u64) -> String {
    match limit.about().unit {
        Unit::Bytes | Unit::BytesPerSecond => format_size(amount),
        Unit::Millis => format_duration(Duration::from_millis(amount)),
        Unit::Count(_) => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_at_its_own_place_and_its_default_may_be_written() {
        let limits = Limits::default();
        for (number, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, number, "{limit:?}");
            let About { default, least, most, .. } = limit.about();
            assert!((least..=most).contains(&default), "{limit:?}");
            assert_eq!(limits.of(limit), default);
        }
    }

    #[test]
    fn a_limit_is_named_where_it_was_said() {
        let limits = Limits::default().with(Limit::Memory, 1, Level::Output).with(Limit::Storage, 1, Level::Tenant);
        assert_eq!(limits.place(Limit::Memory, "acme/live"), "tenants.acme.outputs.live.limits.max_memory");
        assert_eq!(limits.place(Limit::Memory, "live"), "outputs.live.limits.max_memory");
        assert_eq!(limits.place(Limit::Storage, "acme/live"), "tenants.acme.plugin_limits.storage");
        assert_eq!(limits.place(Limit::Handles, "acme/live"), "plugins.limits.handles");
    }

    /// The table of docs/plugins/limits.md is what the code says.
    #[test]
    fn the_documentation_has_a_row_with_the_default_of_each_limit() {
        let text = include_str!("../../../docs/plugins/limits.md");
        for limit in Limit::ALL {
            let About { key, default, .. } = limit.about();
            let begins = format!("| `{key}` | `{}` |", shown(limit, default).replace(' ', ""));
            assert!(text.lines().any(|line| line.starts_with(&begins)), "{begins} is not in docs/plugins/limits.md");
        }
    }
}
