//! Senders that nobody here wrote, at work beside Wharf, and what is delivered of what they sent.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use wharf_e2e::{Place, skip};
use wharf_local_aws::S3;

use crate::support::delivered;

/// What records are called: `k-00000007`.
pub fn names(prefix: &str, count: u64) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}-{number:08}"))
}

/// Every record that is in `s3`.
pub fn content(s3: &S3) -> Vec<Value> {
    let bodies = s3.objects();
    let lines = bodies.iter().flat_map(|object| object.body.split(|byte| *byte == b'\n'));
    lines.filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Whether Node.js is there; where it is not, `test` is noted as skipped.
pub fn has_node(test: &str) -> bool {
    let there = Command::new("node").arg("--version").output().is_ok();
    if !there {
        skip::skip(test, "node is not installed (on Debian: apt-get install -y nodejs npm)", false);
    }
    there
}

/// A sender at work. Dropping it ends it.
pub struct Sending {
    process: Child,
    acked: PathBuf,
}

impl Sending {
    /// Starts what `command` makes; it is given the file to which the sender writes the number of each record that was acknowledged.
    pub fn start(place: &Place, prefix: &str, command: impl FnOnce(&PathBuf) -> Command) -> Self {
        let acked = place.root().join(format!("acked-{prefix}"));
        fs::write(&acked, "").unwrap();
        let process = command(&acked).stdin(Stdio::null()).spawn().unwrap();
        Self { process, acked }
    }

    /// The numbers of the records that were acknowledged.
    pub fn acked(&self) -> BTreeSet<u64> {
        let text = fs::read_to_string(&self.acked).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Waits for its end.
    pub fn end(&mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Kills Wharf five times while `start` sends so many records named `k-…`; the sender has so many seconds after the last kill: all that was
/// acknowledged is delivered. `who` is for the output of the test.
pub fn survives_five_kills(
    s3: &S3,
    place: &Place,
    (count, seconds): (u64, u64),
    who: &str,
    start: impl FnOnce() -> Sending,
) {
    let mut wharf = place.start().unwrap();
    let mut sending = start();
    for kill in 1..=5 {
        wharf.wait_until("a part is acknowledged", 120, || sending.acked().len() as u64 >= count * kill / 6);
        wharf.kill9();
        println!("{who}, kill {kill}: {} acknowledged", sending.acked().len());
        wharf = place.start().unwrap();
    }
    wharf.wait_until("all is acknowledged", seconds, || sending.acked().len() as u64 == count);
    sending.end();
    wharf.wait_until("everything is delivered", 60, || place.all_settled());
    wharf.stop();
    // What was sent again because its acknowledgement died with Wharf may be there twice.
    let all = delivered(s3).distinct();
    let expected: BTreeSet<String> = names("k", count).collect();
    let lost = expected.difference(&all).count();
    assert_eq!((lost, all.len() as u64), (0, count), "acknowledged records are lost, or others are there");
    println!("{who}: {count} acknowledged and delivered; {} lines in all", delivered(s3).lines());
}
