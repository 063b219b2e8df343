//! SIGKILL at random moments: nothing lost, nothing doubled, nothing overwritten, no gap.
//!
//! `WHARF_CRASH_CYCLES` says how often in all (60 by default), split over the variants. `WHARF_SEED` repeats a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wharf_e2e::{Chance, LogWriter, Place};
use wharf_local_aws::{Fault, Operation, Rule, S3};

use crate::support::{archive, assert_no_overwrites, delivered, s3};

struct Variant {
    name: &'static str,
    workers: u32,
    batch: &'static str,
    config: &'static [&'static str],
    line_bytes: usize,
    /// Lines in one write of the program whose logs are followed.
    burst: u64,
}

const PLAIN: &[&str] = &[];
const PARTS: &[&str] = &["multipart_threshold: 5MiB", "part_size: 5MiB"];

#[test]
fn one_worker_plain() {
    crash(&Variant {
        name: "one worker, plain",
        workers: 1,
        batch: "max_bytes: 30KB, max_age: 200ms",
        config: PLAIN,
        line_bytes: 120,
        burst: 40,
    });
}

#[test]
fn four_workers_plain() {
    crash(&Variant {
        name: "four workers, plain",
        workers: 4,
        batch: "max_bytes: 15KB, max_age: 100ms",
        config: PLAIN,
        line_bytes: 120,
        burst: 40,
    });
}

#[test]
fn one_worker_in_parts() {
    crash(&Variant {
        name: "one worker, multipart",
        workers: 1,
        batch: "max_bytes: 11MB, max_age: 2s",
        config: PARTS,
        line_bytes: 8000,
        burst: 20,
    });
}

#[test]
fn four_workers_in_parts() {
    crash(&Variant {
        name: "four workers, multipart",
        workers: 4,
        batch: "max_bytes: 6MB, max_age: 2s",
        config: PARTS,
        line_bytes: 8000,
        burst: 20,
    });
}

fn cycles() -> u64 {
    let all = std::env::var("WHARF_CRASH_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(60_u64);
    all.div_ceil(4)
}

fn crash(variant: &Variant) {
    let cycles = cycles();
    let mut chance = Chance::from_environment(&format!("crash test, {}, {cycles} cycles", variant.name));
    let s3 = s3();
    make_the_service_slow(&s3);
    let place = Place::new().unwrap();
    let outputs = archive(variant.workers, variant.batch, variant.config);
    place.configure(&s3.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", variant.line_bytes).unwrap();
    writer.write(1).unwrap();

    for cycle in 0..cycles {
        let after_ready = !chance.number().is_multiple_of(3);
        let pause = Duration::from_millis(chance.below(if after_ready { 1200 } else { 700 }));
        let rotate = chance.number().is_multiple_of(4);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let (writer, done) = (&mut writer, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    writer.write(variant.burst).unwrap();
                    thread::sleep(Duration::from_millis(25));
                }
                if rotate {
                    writer.rotate().unwrap();
                    writer.write(1).unwrap();
                }
            });
            // Every way out of this scope has to end the writer.
            let stop_writing = StopWriting(done);
            let mut wharf = place.spawn().unwrap();
            if after_ready {
                wharf.wait_ready();
            }
            thread::sleep(pause);
            wharf.kill9();
            drop(stop_writing);
        });
        let so_far = delivered(&s3);
        println!(
            "cycle {cycle}: {} lines written, {} delivered in {} objects",
            writer.written(),
            so_far.lines(),
            so_far.objects.len()
        );
        so_far.assert_none_twice();
    }

    s3.faults().clear();
    let mut wharf = place.start().unwrap();
    let wanted = writer.written() as usize;
    wharf.wait_until("everything is delivered", 180, || delivered(&s3).lines() >= wanted);
    wharf.stop();
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    all.assert_in_order();
    assert_no_overwrites(&s3);
    assert_eq!(s3.uploads().len(), 0, "unfinished uploads were left behind: {:?}", s3.uploads());
}

struct StopWriting<'a>(&'a AtomicBool);

impl Drop for StopWriting<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers come late, so that kills land between a request and its answer, and some never come.
fn make_the_service_slow(s3: &S3) {
    s3.faults().add(Rule::on(Operation::PutObject, Fault::LoseReply).percent(3));
    s3.faults().add(Rule::on(Operation::CompleteMultipartUpload, Fault::LoseReply).percent(10));
    s3.faults().add(Rule::on_any(Fault::StallReply(Duration::from_millis(60))).percent(40));
}
