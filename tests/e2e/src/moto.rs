//! moto: a CloudWatch Logs server that nobody here wrote. It holds few of AWS's rules (no sizes, no signatures, no rates), so it stands for a
//! second opinion on the protocol and on what was stored, not on limits.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::{Logged, free_port, http, tools, wait_until};

/// A running moto. Dropping it ends it.
#[derive(Debug)]
pub struct Moto {
    server: Child,
    folder: TempDir,
    port: u16,
}

impl Moto {
    /// Starts one on a free port of this machine, and waits until it answers.
    ///
    /// # Errors
    /// Where the tools cannot be had, or it does not start.
    pub fn start() -> anyhow::Result<Self> {
        let venv = tools::venv()?;
        let folder = tempfile::Builder::new().prefix("wharf-moto-").tempdir()?;
        let port = free_port()?;
        let log = File::create(folder.path().join("moto.log"))?;
        let server = Command::new(venv.join("bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting moto_server failed")?;
        let mut moto = Self { server, folder, port };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut ended = None;
        wait_until("moto answers", 90, || {
            ended = moto.server.try_wait().ok().flatten();
            ended.is_some() || http::get(address, "/moto-api/").is_ok()
        });
        ensure!(ended.is_none(), "moto ended at once:\n{}", moto.log());
        Ok(moto)
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
    /// Everything in a log group, read back by boto3.
    ///
    /// # Errors
    /// Where reading fails.
    pub fn read_back(&self, group: &str) -> anyhow::Result<Logged> {
        Logged::read_back(&self.endpoint(), group).with_context(|| format!("moto's log:\n{}", self.log()))
    }
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("moto.log")).unwrap_or_default()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
