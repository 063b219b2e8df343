//! What is measured of a process: what the kernel says about it, and what came of it.

use std::time::Duration;

use anyhow::Context as _;

/// The kernel reports CPU time in ticks of a hundredth of a second (USER_HZ, proc(5)).
const TICKS: f64 = 100.0;

/// CPU time and memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub cpu_seconds: f64,
    pub peak_bytes: u64,
}

impl Usage {
    pub fn of(process: u32) -> anyhow::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).context("reading CPU time")?;
        // The name in brackets may hold anything; utime and stime are fields 14 and 15 of the line.
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 =
            behind_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("reading peak memory")?;
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|rest| rest.split_whitespace().next());
        let kib: u64 = peak.and_then(|kib| kib.parse().ok()).context("the kernel does not tell peak memory")?;
        Ok(Self { cpu_seconds: ticks as f64 / TICKS, peak_bytes: kib * 1024 })
    }
}

/// Calls of PutLogEvents.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    pub count: u64,
    /// How much of what they could carry they did carry, 0 to 1.
    pub fill: f64,
}

/// One scenario's result.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Of log lines.
    pub input_bytes: u64,
    /// What Wharf read or was sent: log lines, or what is around them as well.
    pub received_bytes: u64,
    pub records: u64,
    pub sent_bytes: u64,
    pub wall: Duration,
    pub usage: Usage,
    pub guest_seconds: Option<f64>,
    pub calls: Option<Calls>,
}

impl Measured {
    /// Megabytes of input a second.
    pub fn rate(&self) -> f64 {
        self.input_bytes as f64 / 1e6 / self.wall.as_secs_f64().max(1e-9)
    }
    /// Records a second.
    pub fn records_rate(&self) -> f64 {
        self.records as f64 / self.wall.as_secs_f64().max(1e-9)
    }
    /// CPU seconds for each GB of input.
    pub fn cpu(&self) -> f64 {
        self.usage.cpu_seconds / (self.input_bytes as f64 / 1e9)
    }
    /// The component's part of it, 0 to 1.
    pub fn guest(&self) -> Option<f64> {
        self.guest_seconds.map(|seconds| seconds / self.usage.cpu_seconds.max(1e-9))
    }
}
