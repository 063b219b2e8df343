//! SIGTERM: what is open is delivered within `grace`, what cannot be is kept, and nothing is lost either way.

use std::time::{Duration, Instant};

use wharf_e2e::{LogWriter, deadline};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::support::{archive, assert_no_overwrites, delivered, s3, tail_place};

const NEVER_DUE: &str = "max_bytes: 100MB, max_age: 1h";

#[test]
fn sigterm_delivers_open_batches_that_are_not_due() {
    let s3 = s3();
    let place = tail_place(&s3, 1, NEVER_DUE);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    writer.write(1000).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("the lines are durable", 30, || place.metric_at_least("wharf_durable_records_total", 1000.0));
    assert_eq!(delivered(&s3).lines(), 0, "no batch was due");
    wharf.stop();
    delivered(&s3).assert_each_once(writer.names());
}

#[test]
fn what_grace_does_not_suffice_for_is_kept() {
    let s3 = s3();
    let place = tail_place(&s3, 1, NEVER_DUE);
    let config = format!("grace: 1s\n{}{}", place.tail("app"), archive(1, NEVER_DUE, &[]));
    place.configure(&s3.endpoint(), &config).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    writer.write(1000).unwrap();
    s3.faults().add(Rule::on(Operation::PutObject, Fault::Stall(Duration::from_secs(3600))));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("the lines are durable", 30, || place.metric_at_least("wharf_durable_records_total", 1000.0));
    wharf.stop();
    assert_eq!(delivered(&s3).lines(), 0);

    s3.faults().clear();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("what was kept is delivered", 30, || delivered(&s3).lines() >= 1000);
    wharf.stop();
    delivered(&s3).assert_each_once(writer.names());
    delivered(&s3).assert_contiguous(0);
    assert_no_overwrites(&s3);
}

#[test]
fn a_second_sigterm_ends_at_once_and_loses_nothing() {
    let s3 = s3();
    let place = tail_place(&s3, 2, "max_bytes: 10KB, max_age: 100ms");
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    writer.write(1000).unwrap();
    // The default grace is half a minute, and this service never answers.
    s3.faults().add(Rule::on(Operation::PutObject, Fault::StallReply(Duration::from_secs(3600))));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("a request hangs", 30, || !s3.requests().is_empty());
    wharf.sigterm();
    wharf.wait_until("the stop has begun", 30, || {
        let log = std::fs::read_to_string(place.wharf_log()).unwrap_or_default().to_lowercase();
        log.contains("stop") || place.admin("/ready").map_or(true, |answer| answer.status != 200)
    });
    // Signals that come close together count as one: as somebody impatient would, again and again.
    let end = deadline(10);
    while wharf.is_running() {
        assert!(Instant::now() < end, "Wharf goes on after a second SIGTERM");
        wharf.sigterm();
        std::thread::sleep(Duration::from_millis(100));
    }

    s3.faults().clear();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= 1000);
    wharf.stop();
    delivered(&s3).assert_each_once(writer.names());
    delivered(&s3).assert_contiguous(0);
    assert_no_overwrites(&s3);
}
