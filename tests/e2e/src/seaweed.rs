//! SeaweedFS: an S3 server that nobody here wrote.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::{Delivered, http, tools, wait_until};

/// A running SeaweedFS with one bucket. Dropping it ends it.
#[derive(Debug)]
pub struct Seaweed {
    server: Child,
    folder: TempDir,
    venv: PathBuf,
    port: u16,
    bucket: String,
}

/// A script in `tests/e2e/python`.
///
/// # Errors
/// Where this does not run inside of a clone.
pub fn script(name: &str) -> anyhow::Result<PathBuf> {
    Ok(wharf_task_kit::repository()?.join("tests/e2e/python").join(name))
}

/// Everything that it listens on; it would take fixed ports otherwise, and two tests could not run side by side.
const PORTS: [&str; 12] = [
    "s3.port",
    "s3.port.grpc",
    "s3.port.iceberg",
    "s3.port.lance",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "volume.port.public",
    "filer.port",
    "filer.port.grpc",
    "filer.port.public",
];

impl Seaweed {
    /// Starts one, and makes the bucket.
    ///
    /// # Errors
    /// Where the tools cannot be had, or it does not start.
    pub fn start(bucket: &str) -> anyhow::Result<Self> {
        let venv = tools::venv()?;
        let folder = tempfile::Builder::new().prefix("wharf-seaweed-").tempdir()?;
        let identities = serde_json::json!({ "identities": [{
            "name": "test",
            "credentials": [{ "accessKey": wharf_local_aws::ACCESS_KEY, "secretKey": wharf_local_aws::SECRET_KEY }],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }] });
        let config = folder.path().join("s3.json");
        fs::write(&config, identities.to_string())?;
        let data = folder.path().join("data");
        fs::create_dir(&data)?;
        // All at once, so that no port is handed out twice.
        let held: Vec<TcpListener> =
            PORTS.iter().map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
        let ports: Vec<u16> =
            held.iter().map(|held| held.local_addr().map(|address| address.port())).collect::<Result<_, _>>()?;
        drop(held);
        let log = File::create(folder.path().join("weed.log"))?;
        let mut command = Command::new(venv.join("bin/weed"));
        command.args(["-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]);
        command.args(["-s3.autoCreateBucket=false", "-s3.iam=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"]);
        command.arg(format!("-dir={}", data.display())).arg(format!("-s3.config={}", config.display()));
        for (name, port) in PORTS.iter().zip(&ports) {
            command.arg(format!("-{name}={port}"));
        }
        let server = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting SeaweedFS (weed) failed")?;
        let port = ports.first().copied().unwrap_or_default();
        let mut seaweed = Self { server, folder, venv, port, bucket: bucket.to_owned() };
        seaweed.make_bucket()?;
        Ok(seaweed)
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
    /// Everything in the bucket, read back by boto3 with checksums verified.
    ///
    /// # Errors
    /// Where reading fails.
    pub fn read_back(&self, prefix: &str) -> anyhow::Result<Delivered> {
        let into = tempfile::tempdir_in(self.folder.path())?;
        let folder = into.path().to_string_lossy().into_owned();
        tools::python(&self.venv, &script("s3_client.py")?, &["read", &self.endpoint(), &self.bucket, &folder])?;
        Delivered::of_directory(into.path(), prefix)
    }
    fn make_bucket(&mut self) -> anyhow::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut ended = None;
        wait_until("SeaweedFS answers", 90, || {
            ended = self.server.try_wait().ok().flatten();
            ended.is_some() || http::get(address, "/").is_ok()
        });
        let log = || fs::read_to_string(self.folder.path().join("weed.log")).unwrap_or_default();
        ensure!(ended.is_none(), "SeaweedFS ended at once:\n{}", log());
        // The S3 side answers before the filer behind it does.
        let mut made =
            tools::python(&self.venv, &script("s3_client.py")?, &["make-bucket", &self.endpoint(), &self.bucket]);
        for _ in 0..5 {
            if made.is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_secs(1));
            made =
                tools::python(&self.venv, &script("s3_client.py")?, &["make-bucket", &self.endpoint(), &self.bucket]);
        }
        made.map(drop).with_context(|| format!("making a bucket in SeaweedFS failed; its log:\n{}", log()))
    }
}

impl Drop for Seaweed {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
