//! What the kernel says about a process, and how it is shown.

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

/// One scenario's result.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub input_bytes: u64,
    pub sent_bytes: u64,
    pub wall: Duration,
    pub usage: Usage,
    pub guest_seconds: Option<f64>,
}

impl Measured {
    pub const HEADING: &'static str =
        "scenario                                        MB/s  of limit  CPU s/GB    guest      peak       sent";

    fn rate(&self) -> f64 {
        self.input_bytes as f64 / 1e6 / self.wall.as_secs_f64().max(1e-9)
    }
    pub fn row(&self, name: &str, limit: Option<&Self>) -> String {
        let of_limit = limit.map_or_else(String::new, |limit| format!("{:.2}", self.rate() / limit.rate()));
        let cpu = self.usage.cpu_seconds / (self.input_bytes as f64 / 1e9);
        let share = |seconds: f64| format!("{:.1} %", 100.0 * seconds / self.usage.cpu_seconds.max(1e-9));
        let guest = self.guest_seconds.map_or_else(String::new, share);
        let peak = self.usage.peak_bytes as f64 / f64::from(1 << 20);
        let sent = self.sent_bytes as f64 / 1e6;
        format!(
            "{name:<44} {:>7.1}  {of_limit:>8}  {cpu:>8.2}  {guest:>7}  {peak:>5.0} MiB  {sent:>6.0} MB",
            self.rate()
        )
    }
}
