//! Small file systems of a test's own: one that can lose power, one that can be full. Both need root.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

/// Runs a program, and gives what it said where it failed.
fn run(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {program} failed"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {} ({})", arguments.join(" "), said.trim(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An ext4 file system on a loop device, whose power can be cut: what was not synced is lost.
#[derive(Debug)]
pub struct PowerDisk {
    folder: TempDir,
    mounted: bool,
}

impl PowerDisk {
    /// Makes and mounts one.
    ///
    /// # Errors
    /// Where this is not root, or there are no loop devices or no ext4.
    pub fn new(bytes: u64) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("wharf-disk-").tempdir()?;
        std::fs::create_dir(folder.path().join("mount"))?;
        let image = std::fs::File::create(folder.path().join("image"))?;
        image.set_len(bytes)?;
        let mut disk = Self { folder, mounted: false };
        run("mkfs.ext4", &["-q", "-F", &disk.image()])?;
        disk.mount()?;
        Ok(disk)
    }
    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
    fn image(&self) -> String {
        self.folder.path().join("image").display().to_string()
    }
    fn mount(&mut self) -> anyhow::Result<()> {
        run("mount", &["-o", "loop", &self.image(), &self.path().display().to_string()])?;
        self.mounted = true;
        Ok(())
    }
    /// Gets ready to cut the power at a moment's notice.
    ///
    /// # Errors
    /// Where the file system cannot be opened.
    pub fn prepare_cut(&self) -> anyhow::Result<PowerCut> {
        // EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32); 2 is EXT4_GOING_FLAGS_NOLOGFLUSH (linux, fs/ext4/ext4.h).
        let script = "import fcntl,os,struct,sys\n\
            disk=os.open(sys.argv[1], os.O_RDONLY)\n\
            how=struct.pack('I', 2)\n\
            print('ready', flush=True)\n\
            sys.stdin.readline()\n\
            fcntl.ioctl(disk, 0x8004587D, how)\n";
        let mut helper = Command::new("python3")
            .args(["-c", script])
            .arg(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("running python3 failed")?;
        let mut said = String::new();
        BufReader::new(helper.stdout.take().context("no output")?).read_line(&mut said)?;
        ensure!(said.trim() == "ready", "the helper that cuts the power did not start");
        Ok(PowerCut { helper })
    }
    /// Power comes back: unmounts, lets `fsck` look, and mounts again. Nothing may have files open on it.
    ///
    /// # Errors
    /// Where the file system is damaged, or does not mount.
    pub fn restore(&mut self) -> anyhow::Result<()> {
        self.unmount()?;
        // Replays the journal, as a mount would; 1 is "errors were corrected".
        let checked = Command::new("e2fsck").args(["-p", "-f", &self.image()]).stdin(Stdio::null()).output()?;
        if checked.status.code().is_none_or(|code| code > 1) {
            bail!("fsck found damage: {}", String::from_utf8_lossy(&checked.stdout).trim());
        }
        self.mount()
    }
    fn unmount(&mut self) -> anyhow::Result<()> {
        if !self.mounted {
            return Ok(());
        }
        run("umount", &[&self.path().display().to_string()])?;
        self.mounted = false;
        Ok(())
    }
}

/// A cut that is about to happen.
#[derive(Debug)]
pub struct PowerCut {
    helper: Child,
}

impl PowerCut {
    /// Cuts the power, within a fraction of a millisecond: from here on nothing reaches the disk, and what was not synced is gone. Programs
    /// that have files open on it get errors.
    ///
    /// A machine without power answers nobody; a program on this disk still does. And ext4 then tells one lie: an fdatasync of a
    /// preallocated file that is under way may succeed although the extent's conversion failed
    /// (`jbd2_complete_transaction` does not look at an aborted journal whose transaction is over). So what is heard after
    /// the call of this function must not count.
    ///
    /// # Errors
    /// Where the file system cannot be shut down.
    pub fn now(mut self) -> anyhow::Result<()> {
        drop(self.helper.stdin.take());
        let status = self.helper.wait()?;
        ensure!(status.success(), "shutting the file system down failed");
        Ok(())
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        if self.unmount().is_err() {
            let _ = run("umount", &["--lazy", &self.path().display().to_string()]);
        }
    }
}

/// A file system in memory with a fixed size.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Makes and mounts one.
    ///
    /// # Errors
    /// Where this is not root.
    pub fn new(bytes: u64) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("wharf-small-").tempdir()?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs", &folder.path().display().to_string()])?;
        Ok(Self { folder })
    }
    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    /// Fills it to the last byte with a ballast file.
    ///
    /// # Errors
    /// Where that goes wrong otherwise than by a full disk.
    pub fn fill(&self) -> anyhow::Result<()> {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(self.ballast())?;
        for piece in [1 << 20, 4096] {
            let zeros = vec![0_u8; piece];
            loop {
                match file.write(&zeros) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(cause) if cause.kind() == std::io::ErrorKind::StorageFull => break,
                    Err(cause) => return Err(cause.into()),
                }
            }
        }
        Ok(())
    }
    /// Frees what [`SmallDisk::fill`] took.
    ///
    /// # Errors
    /// Where the file cannot be removed.
    pub fn free(&self) -> anyhow::Result<()> {
        std::fs::remove_file(self.ballast()).map_err(Into::into)
    }
    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if run("umount", &[&self.folder.path().display().to_string()]).is_err() {
            let _ = run("umount", &["--lazy", &self.folder.path().display().to_string()]);
        }
    }
}
