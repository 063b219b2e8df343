//! The events in CloudWatch Logs: their table, what must hold of them, and where they are written down.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use wharf_e2e::Logged;
use wharf_local_aws::Logs;
use wharf_local_aws::logs::{StreamView, rules};
use wharf_task_kit::show;

use crate::{GROUP, Played};

/// Shows all log streams, then checks their events. Gives how many streams there are.
pub fn show(logs: &Logs, played: &Played) -> anyhow::Result<usize> {
    table(logs, played.calls_before_restart);
    let all = Logged::of(logs, GROUP);
    all.check_each_once(played.lines()).context("CloudWatch Logs: not every line is there once")?;
    all.check_in_order().context("CloudWatch Logs: a stream's events are not in their order")?;
    Ok(all.streams.len())
}

fn table(logs: &Logs, calls_before_restart: u64) {
    for group in logs.groups() {
        let named = |stream: &StreamView| format!("{} : {}", group.name, stream.name);
        let width = group.streams.iter().map(|stream| named(stream).len()).max().unwrap_or(0);
        let heading = format!(
            "{:<width$}  {:>6}  {:>13}  {:>7}  {:>9}  {:>13}",
            "log group : log stream", "calls", "after restart", "events", "size", "fill of calls"
        );
        println!("  {}", show::strong(&heading));
        for stream in &group.streams {
            let calls = logs.calls(&group.name, &stream.name);
            let after = calls.iter().filter(|call| call.number > calls_before_restart).count();
            let bytes = stream.message_bytes + stream.events * rules::EVENT_OVERHEAD_BYTES as u64;
            println!(
                "  {:<width$}  {:>6}  {after:>13}  {:>7}  {:>9}  {:>11.1} %",
                named(stream),
                calls.len(),
                stream.events,
                show::bytes(bytes),
                100.0 * fill(calls.len(), stream.events, bytes),
            );
        }
    }
}

/// How much of what these calls could carry they did carry, in bytes or in events, whichever is nearer to its limit.
fn fill(calls: usize, events: u64, bytes: u64) -> f64 {
    let of_bytes = bytes as f64 / rules::MAX_CALL_BYTES as f64;
    let of_events = events as f64 / rules::MAX_CALL_EVENTS as f64;
    of_bytes.max(of_events) / calls.max(1) as f64
}

/// Writes each stream's events to a file: the service is gone when the demo has ended.
pub fn write_down(logs: &Logs, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (stream, events) in Logged::of(logs, GROUP).streams {
        let path = folder.join(&stream);
        let mut file = BufWriter::new(File::create(&path).with_context(|| format!("making {}", path.display()))?);
        for event in events {
            writeln!(file, "{}\t{}", event.timestamp, event.message)?;
        }
        file.flush().with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_as_full_as_the_limit_that_is_nearer() {
        assert_eq!(fill(1, 1, 1_048_576), 1.0);
        assert_eq!(fill(2, 10_000, 300_000), 0.5);
        assert_eq!(fill(0, 0, 0), 0.0);
    }
}
