//! The demo's folder, and the Wharf that runs in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use wharf_e2e::{Wharf, free_port};
use wharf_task_kit::repository;

use crate::{BUCKET, GROUP};

/// Says that a folder is a demo's, and may be removed by the next one.
const MARK: &str = ".wharf-demo";

pub struct Stage {
    root: PathBuf,
    binary: PathBuf,
    admin: u16,
}

impl Stage {
    /// Makes `./wharf-demo`; an earlier demo's is removed.
    pub fn set(binary: &Path) -> anyhow::Result<Self> {
        let stage = Self { root: repository()?.join("wharf-demo"), binary: binary.to_owned(), admin: free_port()? };
        let folder = &stage.root;
        if folder.exists() {
            let own = folder.join(MARK).exists() || fs::read_dir(folder)?.next().is_none();
            ensure!(own, "{} is there and is not a demo's folder: move it away", folder.display());
            fs::remove_dir_all(folder).with_context(|| format!("removing the last demo's {}", folder.display()))?;
        }
        fs::create_dir_all(stage.logs()).with_context(|| format!("making {}", folder.display()))?;
        fs::write(folder.join(MARK), "Made by cargo xtask demo, which removes it when it runs again.\n")?;
        Ok(stage)
    }
    /// Writes the configuration.
    pub fn configure(&self, endpoint: &str) -> anyhow::Result<()> {
        let (data, logs, admin) = (self.data(), self.logs(), self.admin);
        let text = format!(
            r#"# The configuration of the demo. See what Wharf thinks of it:
#   {binary} validate -c {config}
data_dir: "{data}"

aws:
  region: us-east-1
  # The demo's own S3 and CloudWatch Logs, gone when the demo has ended. Leave this line out for AWS itself.
  endpoint: {endpoint}

admin:
  listen: 127.0.0.1:{admin}

sources:
  web: {{ type: tail, paths: ["{logs}/web.log*"], tag: app.web, refresh_interval: 500ms }}
  api: {{ type: tail, paths: ["{logs}/api.log*"], tag: app.api, refresh_interval: 500ms }}
  worker: {{ type: tail, paths: ["{logs}/worker.log*"], tag: app.worker, refresh_interval: 500ms }}

outputs:
  archive:
    plugin: s3
    match: "app.*"
    workers: 2
    # Small, so that a few seconds make several objects.
    batch: {{ max_bytes: 150KB, max_age: 1s }}
    config:
      bucket: {BUCKET}
      key_format: /logs/demo/segment_$INDEX
  live:
    plugin: cloudwatch_logs
    match: "app.*"
    workers: 2
    # Nothing waits longer than this, so calls are small here.
    batch: {{ max_age: 1s }}
    config:
      log_group_name: {GROUP}
      log_stream_prefix: "demo-"  # the tag follows
      log_key: log                # the line itself, not {{"log": line}}
      auto_create_group: true
"#,
            binary = self.binary.display(),
            config = self.config().display(),
            data = data.display(),
            logs = logs.display(),
        );
        fs::write(self.config(), text).context("writing the demo's configuration")
    }
    /// Starts Wharf.
    pub fn start(&self) -> anyhow::Result<Wharf> {
        Wharf::spawn_binary(&self.binary, &self.config(), &self.wharf_log(), self.admin)
    }
    pub fn binary(&self) -> &Path {
        &self.binary
    }
    pub fn config(&self) -> PathBuf {
        self.root.join("wharf.yaml")
    }
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }
    /// Where the demo's S3 puts objects as files.
    pub fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }
    /// Where the events are written down.
    pub fn events(&self) -> PathBuf {
        self.root.join("events")
    }
    pub fn wharf_log(&self) -> PathBuf {
        self.root.join("wharf.log")
    }
}
