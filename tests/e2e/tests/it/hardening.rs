//! What the process does for its own safety, and the unit that it is started with.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use wharf_e2e::{Place, command, skip, wait_until, wharf_binary};

use crate::support::{archive, s3};

/// Secrets are in its memory. Whoever started it may have asked for core dumps.
#[test]
fn a_process_that_is_ended_by_force_leaves_no_core_dump() {
    let (place, s3) = (Place::new().unwrap(), s3());
    place.configure(&s3.endpoint(), &format!("{}{}", place.tail("app"), archive(1, "max_age: 1s", &[]))).unwrap();
    let script = format!(
        "ulimit -c unlimited 2>/dev/null; exec {} run -c {}",
        wharf_binary().unwrap().display(),
        place.config().display()
    );
    let mut child =
        command("sh".as_ref()).args(["-c", &script]).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("Wharf is ready", 120, || place.admin("/ready").is_ok_and(|answer| answer.status == 200));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    let sent = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = child.wait().unwrap();
    assert!(ended.signal().is_some() && !ended.core_dumped(), "{ended}");
}

/// `systemd-analyze verify` knows each setting, and finds what has a typing error in it.
#[test]
fn systemd_takes_the_unit() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        skip::skip("systemd_takes_the_unit", "systemd-analyze is not installed", true);
        return;
    };
    assert!(version.status.success());
    let dir = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(wharf_task_kit::repository().unwrap().join("packaging/wharf.service")).unwrap();
    // The program that it starts has to be there.
    let unit = unit.replace("/usr/bin/wharf", &wharf_binary().unwrap().display().to_string());
    let file = dir.path().join("wharf.service");
    std::fs::write(&file, unit).unwrap();
    let checked = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("wharf.service")).collect();
    assert!(about_it.is_empty(), "{said}");
}
