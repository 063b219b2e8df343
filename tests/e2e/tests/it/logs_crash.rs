//! SIGKILL at random moments while batches of several calls are on their way: nothing lost, and no more there twice than the one call whose
//! answer was not noted, for each worker.
//!
//! `WHARF_LOGS_CRASH_CYCLES` says how often in all (40 by default), split over the variants. `WHARF_SEED` repeats a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wharf_e2e::{Chance, LogWriter, Logged, Place};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::logs_support::{
    GROUP, LINES_BY_TAG, assert_no_rule_was_broken, live, logs, names, repeated, requests, tails, wait_settled, writers,
};

const TAGS: [&str; 4] = ["a", "b", "c", "d"];
/// 259 of them fill a call.
const LINE_BYTES: usize = 4000;

#[test]
fn one_worker_one_stream() {
    crash("one worker", 1, &TAGS[..1]);
}

#[test]
fn four_workers_four_streams() {
    crash("four workers", 4, &TAGS);
}

fn cycles() -> u64 {
    let all = std::env::var("WHARF_LOGS_CRASH_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(40_u64);
    all.div_ceil(2)
}

fn crash(name: &str, workers: u32, tags: &[&str]) {
    let cycles = cycles();
    let mut chance = Chance::from_environment(&format!("CloudWatch Logs crash test, {name}, {cycles} cycles"));
    let logs = logs();
    // Answers come late, so that kills land between a call and the note of it.
    logs.faults().add(Rule::on(Operation::PutLogEvents, Fault::StallReply(Duration::from_millis(60))).percent(50));
    let place = Place::new().unwrap();
    let outputs = live(workers, "max_bytes: 4MB, max_age: 300ms", LINES_BY_TAG);
    place.configure(&logs.endpoint(), &format!("{}{outputs}", tails(&place, tags))).unwrap();
    let mut writers = writers(&place, tags, LINE_BYTES);
    write_each(&mut writers, 1);

    for cycle in 1..=cycles {
        // At any time from the start on; or, more often, around a call.
        let calls = if chance.number().is_multiple_of(4) { 0 } else { 1 + chance.below(6) as usize };
        let pause = Duration::from_millis(chance.below(if calls == 0 { 700 } else { 80 }));
        let rotate = chance.number().is_multiple_of(4);
        let done = AtomicBool::new(false);
        // Several calls' worth at once, so that there are batches of several calls at any rate.
        write_each(&mut writers, 1200 / tags.len() as u64);
        thread::scope(|scope| {
            let (writers, done) = (&mut writers, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    write_each(writers, 5);
                    thread::sleep(Duration::from_millis(25));
                }
                if rotate {
                    for writer in writers {
                        writer.rotate().unwrap();
                        writer.write(1).unwrap();
                    }
                }
            });
            // Every way out of this scope has to end the writer.
            let stop_writing = StopWriting(done);
            let mut wharf = place.spawn().unwrap();
            if calls > 0 {
                let wanted = requests(&logs, Operation::PutLogEvents) + calls;
                wharf.wait_until("calls are made", 60, || requests(&logs, Operation::PutLogEvents) >= wanted);
            }
            thread::sleep(pause);
            wharf.kill9();
            drop(stop_writing);
        });
        let again = repeated(&logs);
        let (calls, events) = (logs.totals().calls, logs.totals().events);
        println!(
            "{name}: cycle {cycle}: {events} events in {calls} calls, {} calls twice ({} events)",
            again.calls, again.events
        );
        assert!(again.calls as u64 <= cycle * u64::from(workers), "more than one call a worker and kill came twice");
    }

    logs.faults().clear();
    let mut wharf = place.start().unwrap();
    let wanted: u64 = writers.iter().map(LogWriter::written).sum();
    wharf.wait_until("everything is delivered", 180, || {
        let events = logs.totals().events;
        events >= wanted && events - repeated(&logs).events as u64 >= wanted
    });
    wait_settled(&mut wharf, &place, 0);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_none_lost(names(&writers));
    let again = repeated(&logs);
    println!(
        "{name}: {cycles} kills, {wanted} events, 0 lost; twice: {} calls, {} events (at most {} calls)",
        again.calls,
        again.events,
        cycles * u64::from(workers)
    );
    assert!(again.calls as u64 <= cycles * u64::from(workers));
    assert!(again.events <= again.calls * 10_000);
    assert_no_rule_was_broken(&logs);
    assert!(logs.totals().calls > cycles, "kills that come before any call show little");
}

fn write_each(writers: &mut [LogWriter], lines: u64) {
    for writer in writers {
        writer.write(lines).unwrap();
    }
}

struct StopWriting<'a>(&'a AtomicBool);

impl Drop for StopWriting<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
