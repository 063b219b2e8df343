//! What the admin server shows of a running Wharf.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::admin::{Health, JournalHealth, LastFailure, OutputHealth, Phase, Status, WorkerHealth};
use crate::config::Config;
use crate::journal::{Condition, Journal};
use crate::output::{OutputHandle, OutputStatus};
use crate::record::now_ns;
use crate::telemetry::Metrics;

use super::CheckedOutput;

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
    outputs: Vec<(String, OutputHandle)>,
}

impl Board {
    pub(super) fn new(metrics: Metrics) -> Self {
        let inner = Inner { phase: Phase::Starting, journal: None, outputs: vec![] };
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
        journal: &Journal,
    ) {
        let name = |(output, checked): (&crate::config::OutputConfig, &CheckedOutput)| {
            format!("{} {} ({})", output.plugin, checked.plugin.descriptor().version, checked.plugin.digest())
        };
        let mut inner = self.lock();
        inner.outputs = config.outputs.iter().zip(checked).map(name).zip(handles).collect();
        inner.journal = Some(journal.clone());
    }

    pub(super) fn running(&self) {
        self.lock().phase = Phase::Running;
    }

    pub(super) fn stopping(&self) {
        self.lock().phase = Phase::Stopping;
    }

    fn outputs_now(&self) -> Vec<(String, OutputStatus)> {
        self.lock().outputs.iter().map(|(plugin, handle)| (plugin.clone(), handle.status())).collect()
    }

    fn journal_now(&self) -> JournalHealth {
        let Some(journal) = self.lock().journal.clone() else { return JournalHealth::default() };
        let usage = journal.usage();
        let reason = not_writable(&journal.condition().borrow());
        self.metrics.journal(usage.commits, usage.disk_bytes, usage.live_bytes, reason.is_none());
        JournalHealth { writable: reason.is_none(), reason, disk_bytes: usage.disk_bytes }
    }
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
                problems.push(format!(
                    "output {}: its plugin {plugin} dies of whatever it is given and is quarantined; its batches are kept",
                    output.output
                ));
            } else if let Some(failure) = &output.last_failure {
                problems.push(format!("output {}: {}: {}", output.output, failure.kind, failure.message));
            }
        }
        Health {
            phase: self.lock().phase,
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            problems,
            journal,
            outputs: outputs.into_iter().map(|(plugin, output)| shown(plugin, output)).collect(),
        }
    }

    fn ready(&self) -> Result<(), String> {
        match self.lock().phase {
            Phase::Starting => return Err("starting: recovery is not done yet".into()),
            Phase::Stopping => return Err("stopping".into()),
            Phase::Running => {}
        }
        self.journal_now().reason.map_or(Ok(()), Err)
    }

    fn metrics(&self) -> String {
        self.journal_now();
        for (_, output) in self.outputs_now() {
            self.metrics.queue(&output.output, output.queue_bytes, output.queue_records, output.oldest_age_seconds);
        }
        self.metrics.render()
    }
}

fn shown(plugin: String, output: OutputStatus) -> OutputHealth {
    let since =
        |at_ns: i64| std::time::Duration::from_nanos(u64::try_from(now_ns() - at_ns).unwrap_or(0)).as_secs_f64();
    OutputHealth {
        name: output.output.to_string(),
        plugin,
        oldest_undelivered_seconds: (output.queue_records > 0).then_some(output.oldest_age_seconds),
        queue_bytes: output.queue_bytes,
        queue_records: output.queue_records,
        workers: (0u32..)
            .zip(output.workers)
            .map(|(worker, state)| WorkerHealth { worker, state: state.as_str().into() })
            .collect(),
        last_failure: output.last_failure.map(|failure| LastFailure {
            kind: failure.kind,
            message: failure.message,
            seconds_ago: since(failure.at_ns),
        }),
    }
}
