//! A test's own folder: log files, data directory, configuration.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::{Wharf, compiled, http};

/// A folder with everything that one run of Wharf needs. It goes away with the value, unless the test fails.
#[derive(Debug)]
pub struct Place {
    folder: Option<TempDir>,
    root: PathBuf,
    data: PathBuf,
    admin: u16,
}

/// A port that was free a moment ago.
///
/// # Errors
/// Where there is none.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Place {
    /// A temporary place.
    ///
    /// # Errors
    /// Where folders cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("wharf-e2e-").tempdir()?;
        let root = folder.path().to_owned();
        let mut place = Self::at(&root)?;
        place.folder = Some(folder);
        Ok(place)
    }
    /// A place that stays.
    ///
    /// # Errors
    /// Where folders cannot be made.
    pub fn at(root: &Path) -> anyhow::Result<Self> {
        let root = root.to_owned();
        fs::create_dir_all(root.join("logs")).with_context(|| format!("making {} failed", root.display()))?;
        Ok(Self { folder: None, data: root.join("data"), root, admin: free_port()? })
    }
    /// Puts the data directory elsewhere.
    #[must_use]
    pub fn with_data(mut self, data: PathBuf) -> Self {
        self.data = data;
        self
    }
    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// A log file.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(name)
    }
    /// The data directory.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }
    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join("wharf.yaml")
    }
    /// Where Wharf's own log goes.
    #[must_use]
    pub fn wharf_log(&self) -> PathBuf {
        self.root.join("wharf.log")
    }
    /// Writes the configuration: the common beginning, then `rest` (sources, outputs, and what else a test wants; indented as YAML wants it).
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn configure(&self, endpoint: &str, rest: &str) -> anyhow::Result<()> {
        let mut text = String::new();
        let _ = writeln!(text, "data_dir: {}", self.data.display());
        let _ = writeln!(text, "aws: {{ region: us-east-1, endpoint: \"{endpoint}\" }}");
        let _ = writeln!(text, "admin: {{ listen: \"127.0.0.1:{}\" }}", self.admin);
        text.push_str(rest);
        fs::write(self.config(), text).context("writing the configuration failed")
    }
    /// A `tail` source over all files `NAME*` of this place, tagged `app`.
    #[must_use]
    pub fn tail(&self, name: &str) -> String {
        format!(
            "sources:\n  app:\n    type: tail\n    paths: [\"{}*\"]\n    read_from: beginning\n    refresh_interval: 200ms\n",
            self.log(name).display()
        )
    }
    /// Sum of a metric over all series whose labels contain every one of `labels` (`output="archive"`); none where there is no such series, or
    /// no answer.
    #[must_use]
    pub fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let series = self.admin("/metrics").ok()?.text();
        let values = series.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let named = rest.starts_with('{') || rest.starts_with(' ');
            let value = rest.rsplit(' ').next()?.parse::<f64>().ok()?;
            (named && labels.iter().all(|label| rest.contains(label))).then_some(value)
        });
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
    /// Whether a metric says at least this.
    #[must_use]
    pub fn metric_at_least(&self, name: &str, least: f64) -> bool {
        self.metric(name, &[]).is_some_and(|value| value >= least)
    }
    /// Whether every output has delivered and settled everything.
    #[must_use]
    pub fn all_settled(&self) -> bool {
        self.metric("wharf_queue_records", &[]) == Some(0.0)
    }
    /// `GET` on the admin server.
    ///
    /// # Errors
    /// Where there is no answer.
    pub fn admin(&self, path: &str) -> anyhow::Result<http::Answer> {
        http::get(SocketAddr::from((Ipv4Addr::LOCALHOST, self.admin)), path)
    }
    /// The admin server.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.admin))
    }
    /// `POST /reload`: the status and what is answered.
    ///
    /// # Errors
    /// Where there is no answer in JSON.
    pub fn reload(&self, body: &str) -> anyhow::Result<(u16, serde_json::Value)> {
        let answer = http::post(self.admin_address(), "/reload", "application/json", body.as_bytes())?;
        Ok((answer.status, serde_json::from_slice(&answer.body).context("the answer is no JSON")?))
    }
    /// Starts Wharf here and waits until it is ready.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(&self) -> anyhow::Result<Wharf> {
        let mut wharf = self.spawn()?;
        wharf.wait_ready();
        if self.is_temporary() {
            compiled::keep(&self.data);
        }
        Ok(wharf)
    }
    /// The same with a binary that is at hand.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start_binary(&self, binary: &Path) -> anyhow::Result<Wharf> {
        let mut wharf = Wharf::spawn_binary(binary, &self.config(), &self.wharf_log(), self.admin)?;
        wharf.wait_ready();
        Ok(wharf)
    }
    /// Starts Wharf here and waits for nothing.
    ///
    /// # Errors
    /// Where the process cannot be made.
    pub fn spawn(&self) -> anyhow::Result<Wharf> {
        if self.is_temporary() {
            compiled::lend(&self.data);
        }
        Wharf::spawn(&self.config(), &self.wharf_log(), self.admin)
    }
    /// Whether nothing but one test sees it, on a disk that nothing happens to.
    fn is_temporary(&self) -> bool {
        self.folder.is_some() && self.data.starts_with(&self.root)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("the test's folder is kept: {}", folder.keep().display());
        }
    }
}
