//! `log`: a guest's lines, in the host's log with the output's name.
//!
//! Allowed to everyone, always, but bounded: 100 lines and 64 KiB a second an output where nothing else is said (after bursts of five seconds'
//! worth), a line of at most 8 KiB, control characters written out. What is over is counted, and the count is logged. A guest's text is never a
//! format string, a metric's label, or part of another output's error.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tracing::level_filters::LevelFilter;

use super::bindings::log::{self, Level};
use super::bucket::{PerSecond, Suppressed, Verdict};
use super::escape::one_line;
use super::{Caller, Services};
use crate::config::Limit;

/// Longest line, bytes.
const MAX_LINE: usize = 8 * 1024;
/// Most fields of a line; more are left out.
const MAX_FIELDS: usize = 32;
/// Longest field value, bytes.
const MAX_FIELD: usize = 1024;
/// Lines that are kept for the report of a death.
const KEPT_LINES: usize = 20;

/// Where one store's lines go. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct GuestLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    services: Arc<Services>,
    worker: u32,
    plugin: Arc<str>,
    last: Mutex<VecDeque<String>>,
}

impl GuestLog {
    pub(crate) fn new(services: Arc<Services>, worker: u32, plugin: Arc<str>) -> Self {
        Self { inner: Arc::new(Inner { services, worker, plugin, last: Mutex::default() }) }
    }

    /// Takes a line.
    pub(crate) fn write(&self, level: Level, message: &str, fields: &[(String, String)]) {
        let line = one_line(message, MAX_LINE);
        let fields = render(fields);
        self.keep(level, &line, &fields);
        if let Some(watch) = self.inner.services.watch() {
            watch.logged(name(level), &line, &fields);
            return;
        }
        if level as u8 > most_detailed() as u8 {
            return;
        }
        let services = &self.inner.services;
        let limits = services.limits();
        let most = PerSecond { lines: limits.of(Limit::LogLines), bytes: limits.of(Limit::LogBytes) };
        let bytes = line.len() + fields.len();
        let verdict = {
            let mut bucket = services.log_bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.take(Instant::now(), bytes, most)
        };
        match verdict {
            Verdict::Suppress => {
                if let Some(work) = services.work() {
                    work.metrics.log_left_out(services.output(), bytes as u64);
                }
            }
            Verdict::Write { suppressed } => {
                if suppressed.lines > 0 {
                    let Suppressed { lines, bytes } = suppressed;
                    let place = limits.place(Limit::LogLines, services.output());
                    let line = format!(
                        "{lines} lines of {bytes} bytes before this one are left out: the output may log {} lines and {} bytes a second ({place}, log_bytes)",
                        most.lines, most.bytes
                    );
                    self.emit(Level::Warn, &line, "");
                }
                self.emit(level, &line, &fields);
            }
        }
    }

    /// The last lines that the store logged, whatever became of them.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.inner.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn keep(&self, level: Level, line: &str, fields: &str) {
        let mut kept = format!("{}: {line}", name(level));
        if !fields.is_empty() {
            kept.push(' ');
            kept.push_str(fields);
        }
        let mut last = self.inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == KEPT_LINES {
            last.pop_front();
        }
        last.push_back(kept);
    }

    fn emit(&self, level: Level, line: &str, fields: &str) {
        let Inner { services, worker, plugin, .. } = &*self.inner;
        let (output, worker, plugin) = (&**services.output(), *worker, &**plugin);
        let fields = (!fields.is_empty()).then_some(fields);
        // A level is part of a call site, so there is one for each.
        macro_rules! emit {
            ($level:ident) => {
                tracing::$level!(target: "wharf::plugin_log", output, worker, plugin, fields, "{line}")
            };
        }
        match level {
            Level::Error => emit!(error),
            Level::Warn => emit!(warn),
            Level::Info => emit!(info),
            Level::Debug => emit!(debug),
            Level::Trace => emit!(trace),
        }
    }
}

impl log::Host for Caller {
    fn max_level(&mut self) -> wasmtime::Result<Level> {
        // Whoever looks on wants to hear everything.
        Ok(if self.services.watch().is_some() { Level::Trace } else { most_detailed() })
    }

    fn write(&mut self, level: Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.log.write(level, &message, &fields);
        Ok(())
    }
}

/// The most detailed level that somebody listens to. Where nobody does, errors still count as wanted: WIT has no level for none.
fn most_detailed() -> Level {
    match LevelFilter::current() {
        LevelFilter::TRACE => Level::Trace,
        LevelFilter::DEBUG => Level::Debug,
        LevelFilter::INFO => Level::Info,
        LevelFilter::WARN => Level::Warn,
        _ => Level::Error,
    }
}

fn render(fields: &[(String, String)]) -> String {
    let mut text = String::new();
    for (key, value) in fields.iter().take(MAX_FIELDS) {
        let separator = if text.is_empty() { "" } else { " " };
        // Writing into a String cannot fail.
        let _ = write!(text, "{separator}{}={:?}", one_line(key, 64), DisplayLine(&one_line(value, MAX_FIELD)));
    }
    text
}

/// Quotes a value only where it needs it.
struct DisplayLine<'a>(&'a str);

impl std::fmt::Debug for DisplayLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = !self.0.is_empty() && !self.0.contains([' ', '"', '=']);
        if plain { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0.replace('"', "\\\"")) }
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest_log() -> GuestLog {
        GuestLog::new(Services::detached("archive".into()), 0, "s3".into())
    }

    #[test]
    fn the_last_twenty_lines_are_kept_for_the_report_of_a_death() {
        let log = guest_log();
        for n in 0..25 {
            log.write(Level::Info, &format!("line {n}"), &[]);
        }
        let last = log.last_lines();
        assert_eq!(last.len(), 20);
        assert_eq!(last[0], "info: line 5");
        assert_eq!(last[19], "info: line 24");
    }

    #[test]
    fn a_line_cannot_pretend_to_be_two() {
        let log = guest_log();
        log.write(Level::Warn, "a\n2026-01-01 ERROR wharf: forged", &[("k".into(), "v w\n".into())]);
        assert_eq!(log.last_lines(), [r#"warn: a\n2026-01-01 ERROR wharf: forged k="v w\n""#]);
    }

    #[test]
    fn a_line_over_eight_kib_is_cut_and_says_so() {
        let log = guest_log();
        log.write(Level::Info, &"x".repeat(9000), &[]);
        let line = log.last_lines().remove(0);
        assert!(line.ends_with("… (808 bytes more)"), "{line}");
    }
}
