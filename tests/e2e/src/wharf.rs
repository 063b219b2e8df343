//! A running `wharf` process.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::{deadline, http, wharf_binary};

/// A running Wharf. Dropping it kills it; where the test failed, the end of its log is shown.
#[derive(Debug)]
pub struct Wharf {
    child: Child,
    admin: SocketAddr,
    log: PathBuf,
}

impl Wharf {
    /// Starts the binary with this configuration; its output is appended to `log`.
    ///
    /// # Errors
    /// Where the binary is not there and does not build, or the process cannot be made.
    pub fn spawn(config: &Path, log: &Path, admin_port: u16) -> anyhow::Result<Self> {
        Self::spawn_binary(wharf_binary()?, config, log, admin_port)
    }
    /// The same with a binary that is at hand.
    ///
    /// # Errors
    /// Where the process cannot be made.
    pub fn spawn_binary(binary: &Path, config: &Path, log: &Path, admin_port: u16) -> anyhow::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let child = command(binary)
            .args(["run", "-c"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {} failed", binary.display()))?;
        Ok(Self { child, admin: SocketAddr::from(([127, 0, 0, 1], admin_port)), log: log.to_owned() })
    }
    /// Process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Waits until `GET /ready` says so.
    ///
    /// # Panics
    /// Where it does not come up in two minutes, or ends instead.
    pub fn wait_ready(&mut self) {
        let admin = self.admin;
        self.wait_until("Wharf is ready", 120, || http::get(admin, "/ready").is_ok_and(|answer| answer.status == 200));
    }
    /// Polls until `condition` holds.
    ///
    /// # Panics
    /// Where it does not in `seconds`, or Wharf ends before it does.
    pub fn wait_until(&mut self, what: &str, seconds: u64, condition: impl FnMut() -> bool) {
        if let Err(error) = self.try_wait_until(what, seconds, condition) {
            panic!("{error:#}");
        }
    }
    /// Polls until `condition` holds.
    ///
    /// # Errors
    /// Where it does not in `seconds`, or Wharf ends before it does.
    pub fn try_wait_until(
        &mut self,
        what: &str,
        seconds: u64,
        mut condition: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let end = deadline(seconds);
        loop {
            if condition() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                ensure!(condition(), "{what}: Wharf ended instead ({status})");
                return Ok(());
            }
            ensure!(Instant::now() < end, "{what}: not after {seconds} s");
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    /// SIGKILL. Returns when the process is gone.
    pub fn kill9(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
    /// Sends SIGTERM and returns at once.
    pub fn sigterm(&self) {
        self.signal("-TERM");
    }
    /// Sends SIGHUP and returns at once.
    pub fn sighup(&self) {
        self.signal("-HUP");
    }
    fn signal(&self, signal: &str) {
        // Until it was waited for, the process id is still this child's.
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal} failed");
    }
    /// Waits for the end.
    ///
    /// # Panics
    /// Where it does not end in `seconds`.
    pub fn wait_exit(&mut self, seconds: u64) -> ExitStatus {
        match self.try_wait_exit(seconds) {
            Ok(status) => status,
            Err(error) => panic!("{error:#}"),
        }
    }
    /// Waits for the end.
    ///
    /// # Errors
    /// Where it does not end in `seconds`.
    pub fn try_wait_exit(&mut self, seconds: u64) -> anyhow::Result<ExitStatus> {
        let end = deadline(seconds);
        loop {
            if let Some(status) = self.child.try_wait().context("waiting for Wharf failed")? {
                return Ok(status);
            }
            ensure!(Instant::now() < end, "Wharf has not ended after {seconds} s");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    /// SIGTERM, and a clean end.
    ///
    /// # Panics
    /// Where it does not exit with 0 in a minute.
    pub fn stop(mut self) {
        self.sigterm();
        let status = self.wait_exit(60);
        assert!(status.success(), "after SIGTERM Wharf ended with {status}");
    }
}

/// The binary in an environment where only the tests' credentials are to be found.
#[must_use]
pub fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        if text.starts_with("AWS_") || text.ends_with("_PROXY") || text.starts_with("WHARF_") {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_ACCESS_KEY_ID", wharf_local_aws::ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", wharf_local_aws::SECRET_KEY)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

impl Drop for Wharf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = fs::read(&self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = log.lines().collect();
            let end = lines.get(lines.len().saturating_sub(80)..).unwrap_or_default().join("\n");
            eprintln!("--- the end of Wharf's log ({}):\n{end}\n---", self.log.display());
        }
    }
}
