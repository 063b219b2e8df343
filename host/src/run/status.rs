//! What the admin server shows of a running Wharf.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::admin::{
    Health, JournalHealth, KeptHealth, LastFailure, LastReload, NotEnded, OutputHealth, Phase, Quarantine,
    QuarantineEnded, QuarantineHealth, Reloaded, RetriesHealth, Status, TenantHealth, WorkerHealth,
};
use crate::config::units::format_size;
use crate::config::{Config, OutputConfig, SourceConfig, nearest, tenant_in};
use crate::fair::{Tenant, WaitFor};
use crate::intake::wants;
use crate::journal::{Condition, Journal};
use crate::output::{OutputHandle, OutputStatus};
use crate::queue::{Kept, Ledger};
use crate::record::now_ns;
use crate::telemetry::{JournalFigures, Metrics};

use super::{CheckedOutput, Rooms};

/// The running rooms, as far as they are there yet.
#[derive(Debug)]
pub(super) struct Board {
    metrics: Metrics,
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    journal: Option<Journal>,
    ledger: Option<Ledger>,
    last_reload: Option<(Instant, LastReload)>,
    outputs: Vec<Watched>,
    /// Tenants, and what all outputs of each may hold.
    tenants: Vec<(String, Option<u64>)>,
}

#[derive(Debug)]
struct Watched {
    plugin: String,
    /// Whether `/ready` speaks of it: a load balancer stands in front of `http` and `forward` sources, and what else is full is nothing to it.
    /// Where there is no such source, every output counts. A tenant's never does: what fills it is the tenant's doing, and must not take
    /// this host away from the others.
    counts: bool,
    handle: OutputHandle,
}

impl Board {
    pub(super) fn new(metrics: Metrics) -> Self {
        let inner = Inner {
            phase: Phase::Starting,
            journal: None,
            ledger: None,
            last_reload: None,
            outputs: vec![],
            tenants: vec![],
        };
        Self { metrics, started: Instant::now(), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn outputs(
        &self,
        config: &Config,
        checked: &[CheckedOutput],
        handles: Vec<OutputHandle>,
        rooms: &Rooms,
    ) {
        let watched = |((output, checked), handle): ((&OutputConfig, &CheckedOutput), OutputHandle)| Watched {
            plugin: format!("{} {} ({})", output.plugin, checked.plugin.descriptor().version, checked.plugin.digest()),
            counts: counts_for_readiness(output, &config.sources),
            handle,
        };
        let mut inner = self.lock();
        inner.outputs = config.outputs.iter().zip(checked).zip(handles).map(watched).collect();
        inner.tenants =
            config.tenants.iter().map(|tenant| (tenant.name.to_string(), tenant.limits.journal_bytes)).collect();
        inner.journal = Some(rooms.journal.clone());
        inner.ledger = Some(rooms.ledger.clone());
    }

    pub(super) fn running(&self) {
        self.lock().phase = Phase::Running;
    }

    pub(super) fn stopping(&self) {
        self.lock().phase = Phase::Stopping;
    }

    fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// How a reload ended.
    pub(super) fn reloaded(&self, reloaded: &Reloaded) {
        let last = LastReload {
            result: reloaded.result.as_str(),
            trigger: reloaded.trigger.clone(),
            seconds_ago: 0.0,
            faults: reloaded.faults.clone(),
            needs_restart: reloaded.needs_restart.clone(),
        };
        self.lock().last_reload = Some((Instant::now(), last));
    }

    fn last_reload(&self) -> Option<LastReload> {
        let (when, last) = self.lock().last_reload.clone()?;
        Some(LastReload { seconds_ago: when.elapsed().as_secs_f64(), ..last })
    }

    /// What is kept for outputs that are not configured.
    fn kept_now(&self) -> Vec<KeptHealth> {
        let ledger = self.lock().ledger.clone();
        let kept = ledger.map(|ledger| ledger.kept()).unwrap_or_default();
        let shown =
            |kept: Kept| KeptHealth { output: kept.output.to_string(), records: kept.records, bytes: kept.bytes };
        kept.into_iter().map(shown).collect()
    }

    fn outputs_now(&self) -> Vec<(String, OutputStatus)> {
        self.lock().outputs.iter().map(|watched| (watched.plugin.clone(), watched.handle.status())).collect()
    }

    /// A sentence for each output that turns records away and that `/ready` speaks of.
    fn full_now(&self) -> Vec<String> {
        let counting: Vec<_> =
            self.lock().outputs.iter().filter(|one| one.counts).map(|one| one.handle.clone()).collect();
        counting.iter().filter_map(|handle| turned_away(&handle.status())).collect()
    }

    fn tenants_now(&self, outputs: &[(String, OutputStatus)]) -> Vec<TenantHealth> {
        let tenants = self.lock().tenants.clone();
        let of = |(name, journal_limit_bytes): (String, Option<u64>)| {
            let own =
                outputs.iter().map(|(_, output)| output).filter(|it| tenant_in(&it.output) == Some(name.as_str()));
            let own: Vec<&OutputStatus> = own.collect();
            let ages = own.iter().filter(|output| output.queue_records > 0).map(|output| output.oldest_age_seconds);
            TenantHealth {
                outputs: own.len(),
                queue_bytes: own.iter().map(|output| output.queue_bytes).sum(),
                journal_limit_bytes,
                oldest_undelivered_seconds: ages.reduce(f64::max),
                name,
            }
        };
        tenants.into_iter().map(of).collect()
    }

    /// What each tenant of the configuration, and the operator, waits for, and had.
    fn waits_now(&self) {
        let inner = self.lock();
        let (journal, tenants) = (inner.journal.clone(), inner.tenants.clone());
        drop(inner);
        let lanes = journal.map(|journal| journal.waiting_bytes()).unwrap_or_default();
        for name in tenants.iter().map(|(name, _)| Some(name.as_str())).chain([None]) {
            let tenant = Tenant::named(name);
            let lane = lanes.get(&name.map(Into::into)).copied().unwrap_or(0);
            self.metrics.tenant_share(name, lane, tenant.cpu());
            for what in WaitFor::ALL {
                self.metrics.tenant_waits(name, what.as_str(), tenant.waited(what));
            }
        }
    }

    fn journal_now(&self) -> JournalHealth {
        let Some(journal) = self.lock().journal.clone() else { return JournalHealth::default() };
        let usage = journal.usage();
        let reason = not_writable(&journal.condition().borrow());
        self.metrics.journal(JournalFigures {
            commits: usage.commits,
            quarantined_records: usage.quarantined_records,
            disk_bytes: usage.disk_bytes,
            live_bytes: usage.live_bytes,
            writable: reason.is_none(),
        });
        JournalHealth { writable: reason.is_none(), reason, disk_bytes: usage.disk_bytes }
    }
}

fn counts_for_readiness(output: &OutputConfig, sources: &[SourceConfig]) -> bool {
    if output.tenant.is_some() {
        return false;
    }
    let mut listening = sources.iter().filter(|source| !source.kind.listens().is_empty()).peekable();
    let feeds = |source: &SourceConfig| source.kind.has_tags_of_its_own() || wants(&output.matches, &source.tag);
    listening.peek().is_none() || listening.any(feeds)
}

fn quarantined(plugin: &str, output: &OutputStatus) -> String {
    let others: Vec<&str> = output.quarantined_with.iter().map(|other| &**other).collect();
    let everywhere = match others.as_slice() {
        [] => String::new(),
        _ => format!(", as in {}", others.join(", ")),
    };
    format!(
        "output {name}: its plugin {plugin} dies of whatever it is given{everywhere}, and is quarantined; one batch is tried now and then, and \
         all at once after `wharf quarantine end {name}`",
        name = output.output
    )
}

fn turned_away(output: &OutputStatus) -> Option<String> {
    let full = output.full?;
    Some(format!(
        "output {}: its queue is full, {} of {} (queue.max_size): sources wait and http answers 503 until something is delivered",
        output.output,
        format_size(full.used),
        format_size(full.max)
    ))
}

fn not_writable(condition: &Condition) -> Option<String> {
    match condition {
        Condition::Writable => None,
        Condition::DiskFull { free, needed } => Some(format!(
            "the disk is full: {free} bytes are free and {needed} must be; Wharf goes on delivering, and takes records again by itself when there is room"
        )),
        Condition::LimitReached { used, limit } => {
            Some(format!("the journal holds {used} bytes of at most {limit} (journal.max_size)"))
        }
        Condition::Failed(cause) => Some(format!("writing the journal failed: {cause}")),
    }
}

impl Status for Board {
    fn health(&self) -> Health {
        let journal = self.journal_now();
        let outputs = self.outputs_now();
        let mut problems: Vec<String> = journal.reason.iter().cloned().collect();
        for (plugin, output) in &outputs {
            if output.quarantined {
                problems.push(quarantined(plugin, output));
            } else if let Some(failure) = &output.last_failure {
                problems.push(format!("output {}: {}: {}", output.output, failure.kind, failure.message));
            }
            problems.extend(turned_away(output));
        }
        let kept = self.kept_now();
        problems.extend(kept.iter().map(|kept| {
            format!(
                "{} records ({} bytes) are kept for output {}, which is not configured: configure it to deliver them, or drop them with --discard {}",
                kept.records, kept.bytes, kept.output, kept.output
            )
        }));
        let last_reload = self.last_reload();
        if let Some(last) = last_reload.as_ref().filter(|last| !last.faults.is_empty()) {
            problems.push(format!(
                "the last reload was {}, the configuration before it is at work: {}",
                last.result,
                last.faults.join("; ")
            ));
        }
        // Each takes the lock, and a guard in the expression below would be held to its end.
        let (phase, tenants) = (self.phase(), self.tenants_now(&outputs));
        Health {
            phase,
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            problems,
            journal,
            tenants,
            outputs: outputs.into_iter().map(|(plugin, output)| shown(plugin, output)).collect(),
            kept,
            last_reload,
        }
    }

    fn ready(&self) -> Result<(), String> {
        match self.lock().phase {
            Phase::Starting => return Err("starting: recovery is not done yet".into()),
            Phase::Stopping => return Err("stopping".into()),
            Phase::Running => {}
        }
        let reasons: Vec<String> = self.journal_now().reason.into_iter().chain(self.full_now()).collect();
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }

    fn metrics(&self) -> String {
        self.journal_now();
        self.waits_now();
        let outputs = self.outputs_now();
        for tenant in self.tenants_now(&outputs) {
            self.metrics.tenant_queue(&tenant.name, tenant.queue_bytes);
        }
        for (_, output) in outputs {
            self.metrics.plugin_quarantined(&output.output, output.quarantined);
            self.metrics.queue(&output.output, output.queue_bytes, output.queue_records, output.oldest_age_seconds);
        }
        self.metrics.render()
    }
}

impl Quarantine for Board {
    fn end_quarantine(&self, output: &str) -> Result<QuarantineEnded, NotEnded> {
        let inner = self.lock();
        if inner.phase == Phase::Starting {
            return Err(NotEnded::Starting);
        }
        let handles: Vec<_> = inner.outputs.iter().map(|one| (one.plugin.clone(), one.handle.clone())).collect();
        drop(inner);
        let Some((plugin, handle)) = handles.iter().find(|(_, handle)| **handle.name() == *output) else {
            let names: Vec<_> = handles.iter().map(|(_, handle)| handle.name()).collect();
            let nearest = nearest(output, &names).map(str::to_owned);
            return Err(NotEnded::Unknown { output: output.to_owned(), nearest });
        };
        let released = handle.end_quarantine().ok_or_else(|| NotEnded::NotQuarantined(output.to_owned()))?;
        Ok(QuarantineEnded {
            output: output.to_owned(),
            plugin: plugin.clone(),
            batches: released.batches,
            with: released.with.iter().map(ToString::to_string).collect(),
        })
    }
}

fn shown(plugin: String, output: OutputStatus) -> OutputHealth {
    let since =
        |at_ns: i64| std::time::Duration::from_nanos(u64::try_from(now_ns() - at_ns).unwrap_or(0)).as_secs_f64();
    let from_now = |when: Instant| when.saturating_duration_since(Instant::now()).as_secs_f64();
    OutputHealth {
        quarantine: output.next_probe.filter(|_| output.quarantined).map(|next| QuarantineHealth {
            next_try_in_seconds: from_now(next),
            with: output.quarantined_with.iter().map(ToString::to_string).collect(),
        }),
        name: output.output.to_string(),
        tenant: tenant_in(&output.output).map(str::to_owned),
        plugin,
        oldest_undelivered_seconds: (output.queue_records > 0).then_some(output.oldest_age_seconds),
        queue_bytes: output.queue_bytes,
        queue_records: output.queue_records,
        workers: (0u32..)
            .zip(output.workers)
            .map(|(worker, state)| WorkerHealth { worker, state: state.as_str().into() })
            .collect(),
        retries: output.retries.map(|retries| RetriesHealth {
            batches: retries.batches,
            next_in_seconds: from_now(retries.next),
            reason: retries.why,
        }),
        last_failure: output.last_failure.map(|failure| LastFailure {
            kind: failure.kind,
            message: failure.message,
            seconds_ago: since(failure.at_ns),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Fullness;

    #[test]
    fn a_load_balancer_hears_only_of_outputs_that_an_http_source_feeds() {
        let config = |sources: &str| {
            let text = format!(
                "sources:\n{sources}outputs:\n  web: {{ plugin: s3, match: \"web.*\" }}\n  app: {{ plugin: s3, match: app }}\n"
            );
            Config::parse(&text, "wharf.yaml".as_ref(), &|_| None).unwrap()
        };
        let counting = |config: &Config| -> Vec<String> {
            let counts = |output: &&OutputConfig| counts_for_readiness(output, &config.sources);
            config.outputs.iter().filter(counts).map(|output| output.name.to_string()).collect()
        };
        let tail = "  files: { type: tail, tag: app, paths: [/x] }\n";
        let http = "  posts: { type: http, tag: web.a, listen: \"127.0.0.1:1\" }\n";
        assert_eq!(counting(&config(&format!("{tail}{http}"))), ["web"]);
        assert_eq!(counting(&config(tail)), ["web", "app"], "without http sources every output counts");
        let tenant = "tenants:\n  acme: { outputs: { all: { plugin: s3, match: \"*\" } } }\n";
        let text = format!("sources:\n{http}{tenant}");
        let config = Config::parse(&text, "wharf.yaml".as_ref(), &|_| None).unwrap();
        assert!(counting(&config).is_empty(), "what fills a tenant's output is that tenant's doing");
    }

    #[test]
    fn health_knows_every_tenant_also_one_without_anything() {
        let board = Board::new(Metrics::new());
        board.lock().tenants = vec![("acme".into(), Some(300)), ("globex".into(), None)];
        let tenants = board.health().tenants;
        let shown: Vec<_> =
            tenants.iter().map(|it| (it.name.as_str(), it.queue_bytes, it.journal_limit_bytes)).collect();
        assert_eq!(shown, [("acme", 0, Some(300)), ("globex", 0, None)]);
    }

    #[test]
    fn metrics_tell_of_every_tenant_of_the_configuration_and_the_operator_what_each_waits_for() {
        let board = Board::new(Metrics::new());
        board.lock().tenants = vec![("told-of".into(), None)];
        let wait = Tenant::named(Some("told-of")).waits(WaitFor::Destination);
        let shown = || board.metrics();
        let line = |name: &str, value: &str| {
            format!("wharf_tenant_{name}{{tenant=\"told-of\",for=\"destination\"}} {value}\n")
        };
        let text = shown();
        for wanted in [line("waiting", "1"), line("waits_total", "0"), line("waited_seconds_total", "0.0")] {
            assert!(text.contains(&wanted), "{wanted} is not in {text}");
        }
        for what in ["cpu", "disk", "journal", "destination", "retry"] {
            assert!(text.contains(&format!("wharf_tenant_waiting{{for=\"{what}\"}} ")), "{what}: {text}");
        }
        drop(wait);
        let text = shown();
        assert!(text.contains(&line("waiting", "0")) && text.contains(&line("waits_total", "1")), "{text}");
        assert!(!text.contains(&line("waited_seconds_total", "0.0")), "{text}");
    }

    #[test]
    fn a_full_queue_is_told_with_its_output_and_its_limit() {
        let status = OutputStatus {
            output: "archive".into(),
            workers: vec![],
            quarantined: false,
            next_probe: None,
            quarantined_with: vec![],
            last_failure: None,
            retries: None,
            queue_bytes: 0,
            queue_records: 0,
            full: Some(Fullness { used: 200_000, max: 200_000 }),
            oldest_age_seconds: 0.0,
        };
        let expected = "output archive: its queue is full, 200 KB of 200 KB (queue.max_size): sources wait and http answers 503 \
                        until something is delivered";
        assert_eq!(turned_away(&status).as_deref(), Some(expected));
        assert_eq!(turned_away(&OutputStatus { full: None, ..status }), None);
    }
}
