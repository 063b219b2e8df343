//! A registry that is not ours: Debian's `docker-registry` (CNCF Distribution), in a folder of the test's own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::{free_port, http, wait_until};

/// A running registry. Dropping it ends it; what was pushed stays in its folder.
#[derive(Debug)]
pub struct OciRegistry {
    child: Child,
    port: u16,
}

/// The program, where it is installed.
#[must_use]
pub fn docker_registry() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join("docker-registry")).find(|program| program.is_file())
}

impl OciRegistry {
    /// Starts one that keeps its things in `folder`, on `port` where it had one before.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(program: &Path, folder: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        let port = port.map_or_else(free_port, Ok)?;
        std::fs::create_dir_all(folder)?;
        let config = folder.join("config.yml");
        let text = format!(
            "version: 0.1\nlog: {{ level: warn }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: \"127.0.0.1:{port}\" }}\n",
            folder.join("data").display()
        );
        std::fs::write(&config, text)?;
        let child = Command::new(program)
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting docker-registry")?;
        let registry = Self { child, port };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_until("the registry answers", 60, || http::get(address, "/v2/").is_ok_and(|answer| answer.status == 200));
        Ok(registry)
    }
    /// Its port on this machine.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
    /// `oci://127.0.0.1:PORT/name`
    #[must_use]
    pub fn reference(&self, name: &str) -> String {
        format!("oci://127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for OciRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
