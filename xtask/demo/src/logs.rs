//! The program whose logs are followed: three files that grow for some seconds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use wharf_e2e::LogWriter;

const FILES: [&str; 3] = ["web", "api", "worker"];
const LINES_EACH: u64 = 4000;
const BURST: u64 = 20;

/// A thread that writes.
pub struct Logs {
    written: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<LogWriter>>>,
}

impl Logs {
    /// Begins to write into this folder.
    pub fn begin(folder: &Path) -> anyhow::Result<Self> {
        let mut writers = Vec::new();
        for name in FILES {
            writers.push(LogWriter::open(&folder.join(format!("{name}.log")), name, 140)?);
        }
        let (written, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (written, stop) = (Arc::clone(&written), Arc::clone(&stop));
            move || {
                for round in 0..LINES_EACH / BURST {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    for writer in &mut writers {
                        writer.write(BURST)?;
                        written.fetch_add(BURST, Ordering::Relaxed);
                    }
                    if round == LINES_EACH / BURST / 4
                        && let Some(first) = writers.first_mut()
                    {
                        first.rotate()?;
                    }
                    std::thread::sleep(Duration::from_millis(30));
                }
                Ok(writers)
            }
        });
        Ok(Self { written, stop, thread })
    }
    /// How many lines there will be.
    pub fn total(&self) -> u64 {
        FILES.len() as u64 * LINES_EACH
    }
    /// How many there are.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
    /// Whether writing goes well.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.thread.is_finished() || self.written() == self.total(), "writing the log files failed");
        Ok(())
    }
    /// Waits until so many lines are written, or all.
    pub fn wait_for(&self, lines: u64) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        while self.written() < lines.min(self.total()) {
            self.check()?;
            ensure!(Instant::now() < end, "the log files do not grow");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
    /// Waits for the end, and gives what was written.
    pub fn end(self) -> anyhow::Result<Vec<LogWriter>> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(writers) => Ok(writers?),
            Err(_) => bail!("writing the log files failed"),
        }
    }
}
