//! A full disk: new records are refused with a clear state, what is there is delivered, and space alone is the cure.

use wharf_e2e::disk::SmallDisk;
use wharf_e2e::skip::skip;
use wharf_e2e::{LogWriter, Place, http, line};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::support::{archive, assert_no_overwrites, delivered, http_place, s3};

const DISK: u64 = 96 << 20;
/// Small segments and a small reserve: the disk is small.
const JOURNAL: &str = "journal: { segment_size: 4MiB, reserve: 8MiB }\n";

#[test]
fn on_a_full_disk_records_are_refused_until_there_is_space_and_none_is_lost() {
    let test = "on_a_full_disk_records_are_refused_until_there_is_space_and_none_is_lost";
    let disk = match SmallDisk::new(DISK) {
        Ok(disk) => disk,
        Err(error) => return skip(test, &format!("a tmpfs cannot be mounted: {error:#}"), true),
    };
    let s3 = s3();
    let place = Place::new().unwrap().with_data(disk.path().join("data"));
    let (place, to) = http_place(&s3, place, "max_bytes: 1MB, max_age: 500ms");
    let config = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), format!("{config}{JOURNAL}")).unwrap();
    let hold = s3.faults().add(Rule::on(Operation::PutObject, Fault::Error("ServiceUnavailable")));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());

    let mut acknowledged = Vec::new();
    let mut number = 0;
    let mut post = |acknowledged: &mut Vec<u64>| {
        let body: String = (number..number + 200).map(|number| line("h", number, 500) + "\n").collect();
        number += 200;
        let status = http::post(to, "/", "text/plain", body.as_bytes()).map(|answer| answer.status).unwrap_or(0);
        if status == 200 {
            acknowledged.extend(number - 200..number);
        }
        status
    };
    for _ in 0..20 {
        assert_eq!(post(&mut acknowledged), 200);
    }
    disk.fill().unwrap();
    wharf.wait_until("a record is refused", 60, || post(&mut acknowledged) == 503);
    assert_eq!(place.metric("wharf_journal_writable", &[]), Some(0.0));
    let health = place.admin("/health").unwrap();
    assert!(
        health.text().to_lowercase().contains("disk"),
        "the health report does not name the disk: {}",
        health.text()
    );

    // With the disk still full, what is there is delivered.
    s3.faults().clear();
    assert!(hold.count() > 0);
    wharf.wait_until("what was acknowledged is delivered", 60, || delivered(&s3).lines() >= acknowledged.len());

    disk.free().unwrap();
    wharf.wait_until("records are taken again", 60, || post(&mut acknowledged) == 200);
    wharf.stop();
    let all = delivered(&s3);
    all.assert_none_twice();
    all.assert_contiguous(0);
    let there = all.distinct();
    let lost = acknowledged.iter().filter(|number| !there.contains(&format!("h-{number:08}"))).count();
    assert_eq!(lost, 0, "of {} acknowledged records", acknowledged.len());
    assert_no_overwrites(&s3);
}

#[test]
fn a_followed_file_waits_for_space_on_the_disk() {
    let test = "a_followed_file_waits_for_space_on_the_disk";
    let disk = match SmallDisk::new(DISK) {
        Ok(disk) => disk,
        Err(error) => return skip(test, &format!("a tmpfs cannot be mounted: {error:#}"), true),
    };
    let s3 = s3();
    let place = Place::new().unwrap().with_data(disk.path().join("data"));
    let config = format!("{JOURNAL}{}{}", place.tail("app"), archive(1, "max_bytes: 1MB, max_age: 500ms", &[]));
    place.configure(&s3.endpoint(), &config).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 500).unwrap();
    writer.write(2000).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("the first lines are delivered", 30, || delivered(&s3).lines() >= 2000);
    disk.fill().unwrap();
    writer.write(20_000).unwrap();
    wharf.wait_until("the full disk is noticed", 60, || place.metric("wharf_journal_writable", &[]) == Some(0.0));
    disk.free().unwrap();
    wharf.wait_until("everything is delivered", 90, || delivered(&s3).lines() >= 22_000);
    wharf.stop();
    delivered(&s3).assert_each_once(writer.names());
    delivered(&s3).assert_contiguous(0);
}
