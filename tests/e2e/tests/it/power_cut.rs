//! Power cuts: a file system that loses everything that was not synced. `WHARF_POWER_CUTS` says how many (20 by default).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wharf_e2e::disk::PowerDisk;
use wharf_e2e::skip::skip;
use wharf_e2e::{Chance, Place, http, line};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::support::{assert_no_overwrites, delivered, http_place, s3};

#[test]
fn the_disk_of_this_test_keeps_what_was_synced_and_loses_the_rest() {
    let test = "the_disk_of_this_test_keeps_what_was_synced_and_loses_the_rest";
    let mut disk = match PowerDisk::new(64 << 20) {
        Ok(disk) => disk,
        Err(error) => return skip(test, &format!("no ext4 on a loop device here (root is needed): {error:#}"), true),
    };
    let (synced, not_synced) = (disk.path().join("synced"), disk.path().join("not-synced"));
    let mut file = File::create(&synced).unwrap();
    file.write_all(b"kept").unwrap();
    file.sync_all().unwrap();
    File::open(disk.path()).unwrap().sync_all().unwrap();
    drop(file);
    fs::write(&not_synced, vec![1_u8; 1 << 20]).unwrap();
    disk.prepare_cut().unwrap().now().unwrap();
    disk.restore().unwrap();
    assert_eq!(fs::read(&synced).unwrap(), b"kept");
    let left = fs::read(&not_synced).unwrap_or_default();
    assert!(
        left.iter().all(|byte| *byte == 0),
        "the file system was shut down with a flush: this test would show nothing"
    );
}

#[test]
fn acknowledged_records_and_the_index_survive_power_cuts() {
    let test = "acknowledged_records_and_the_index_survive_power_cuts";
    let mut disk = match PowerDisk::new(512 << 20) {
        Ok(disk) => disk,
        Err(error) => return skip(test, &format!("no ext4 on a loop device here (root is needed): {error:#}"), true),
    };
    let cuts = std::env::var("WHARF_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(20_u64);
    let mut chance = Chance::from_environment(&format!("power cuts, {cuts}"));
    let s3 = s3();
    s3.faults().add(Rule::on(Operation::PutObject, Fault::StallReply(Duration::from_millis(40))).percent(40));
    let place = Place::new().unwrap().with_data(disk.path().join("data"));
    let (place, to) = http_place(&s3, place, "max_bytes: 20KB, max_age: 150ms");
    let mut sender = Sender { to, next: 0, acknowledged: BTreeSet::new() };

    for cut in 0..cuts {
        let mut wharf = place.start().unwrap();
        let ready = disk.prepare_cut().unwrap();
        sender.send_while(|heard| {
            wharf.wait_until("records are acknowledged", 30, || heard.records.load(Ordering::SeqCst) > 0);
            thread::sleep(Duration::from_millis(chance.below(900)));
            // Nothing that is heard from here on counts: see `PowerCut::now`.
            heard.over.store(true, Ordering::SeqCst);
            ready.now().unwrap();
        });
        wharf.kill9();
        disk.restore().unwrap();
        println!("cut {cut}: {} records acknowledged, {} delivered", sender.acknowledged.len(), delivered(&s3).lines());
        delivered(&s3).assert_none_twice();
    }

    s3.faults().clear();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("everything that is left is delivered", 60, || place.all_settled());
    wharf.stop();
    let all = delivered(&s3);
    all.assert_none_twice();
    all.assert_contiguous(0);
    assert_no_overwrites(&s3);
    let there = all.distinct();
    let lost: Vec<_> = sender.acknowledged.iter().filter(|number| !there.contains(&format!("p-{number:08}"))).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged records are lost: {lost:?}", lost.len(), sender.acknowledged.len());
    assert!(sender.acknowledged.len() as u64 >= cuts, "hardly anything was acknowledged: the test shows nothing");
}

/// Sends records one request after another, and remembers what was answered with 200. A request without an answer is not sent again: its
/// records may or may not have been kept.
struct Sender {
    to: SocketAddr,
    next: u64,
    acknowledged: BTreeSet<u64>,
}

/// What was heard in one round.
#[derive(Default)]
struct Heard {
    records: AtomicU64,
    /// Nothing more counts.
    over: AtomicBool,
}

impl Sender {
    fn send_while(&mut self, meanwhile: impl FnOnce(&Heard)) {
        let heard = Heard::default();
        thread::scope(|scope| {
            let heard = &heard;
            scope.spawn(move || {
                while !heard.over.load(Ordering::SeqCst) {
                    let numbers = self.next..self.next + 20;
                    self.next += 20;
                    let body: String = numbers.clone().map(|number| line("p", number, 150) + "\n").collect();
                    match http::post(self.to, "/", "text/plain", body.as_bytes()) {
                        Ok(answer) if answer.status == 200 && !heard.over.load(Ordering::SeqCst) => {
                            self.acknowledged.extend(numbers);
                            heard.records.fetch_add(20, Ordering::SeqCst);
                        }
                        // Down, or refusing: do not spin.
                        _ => thread::sleep(Duration::from_millis(5)),
                    }
                }
            });
            let _over = Over(heard);
            meanwhile(heard);
        });
    }
}

/// Every way out has to end the sender.
struct Over<'a>(&'a Heard);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}
