//! The fault that Wharf was started for: after a restart on the same disk, the next object is the next number.

use wharf_e2e::{Delivered, LogWriter, Place};
use wharf_local_aws::S3;

use crate::support::{PREFIX, archive, assert_no_overwrites, delivered, s3, tail_place};

const SMALL: &str = "max_bytes: 20KB, max_age: 300ms";

fn lines_arrive(s3: &S3, count: u64) -> impl FnMut() -> bool {
    move || delivered(s3).lines() as u64 >= count
}

#[test]
fn after_sigterm_the_next_object_is_the_next_number() {
    let s3 = s3();
    let place = tail_place(&s3, 1, SMALL);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    for _ in 0..3 {
        writer.write(500).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("the lines are delivered", 30, lines_arrive(&s3, writer.written()));
        wharf.stop();
    }
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    assert_no_overwrites(&s3);
}

#[test]
fn after_sigkill_the_next_object_is_the_next_number() {
    let s3 = s3();
    let place = tail_place(&s3, 1, SMALL);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    for _ in 0..3 {
        writer.write(500).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("the lines are delivered", 30, lines_arrive(&s3, writer.written()));
        wharf.kill9();
    }
    place.start().unwrap().stop();
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    assert_no_overwrites(&s3);
}

#[test]
fn two_outputs_share_bucket_and_data_directory_and_only_one_counts() {
    let s3 = s3();
    let place = Place::new().unwrap();
    let second = format!(
        "  by_time:\n    plugin: s3\n    match: \"*\"\n    batch: {{ {SMALL} }}\n    config:\n      bucket: logs\n      \
         key_format: /logs/by-time/%Y/%m/%d/$UUID\n"
    );
    let config = format!("{}{}{second}", place.tail("app"), archive(1, SMALL, &[]));
    place.configure(&s3.endpoint(), &config).unwrap();
    let by_time = || Delivered::of(&s3, "logs/by-time/");
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    for round in 0..3 {
        writer.write(500).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("the lines are delivered to both", 30, || {
            let wanted = writer.written() as usize;
            delivered(&s3).lines() >= wanted && by_time().lines() >= wanted
        });
        if round == 1 { wharf.kill9() } else { wharf.stop() }
    }
    let counted = delivered(&s3);
    counted.assert_each_once(writer.names());
    counted.assert_contiguous(0);
    by_time().assert_each_once(writer.names());
    assert_no_overwrites(&s3);
}

#[test]
fn four_workers_leave_no_gap() {
    let s3 = s3();
    let place = tail_place(&s3, 4, "max_bytes: 5KB, max_age: 200ms");
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    for _ in 0..3 {
        writer.write(1000).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("the lines are delivered", 60, lines_arrive(&s3, writer.written()));
        wharf.stop();
    }
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    all.assert_in_order();
    assert_no_overwrites(&s3);
}

#[test]
fn without_index_a_restart_writes_no_key_twice() {
    let s3 = s3();
    let place = Place::new().unwrap();
    let outputs = archive(2, SMALL, &[]).replace(&format!("/{PREFIX}$INDEX"), "/logs/demo/segment_%Y%m%d-%H%M%S-$UUID");
    place.configure(&s3.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    for _ in 0..2 {
        writer.write(500).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("the lines are delivered", 30, lines_arrive(&s3, writer.written()));
        wharf.kill9();
    }
    place.start().unwrap().stop();
    delivered(&s3).assert_each_once(writer.names());
    assert_no_overwrites(&s3);
}
