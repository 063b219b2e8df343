//! Files to an S3 server that nobody here wrote, read back by a client that nobody here wrote.

use wharf_e2e::{LogWriter, Place, Seaweed, skip::skip};

use crate::support::{PREFIX, archive};

#[test]
fn files_arrive_at_an_independent_server_once_in_order_and_with_contiguous_numbers() {
    let test = "files_arrive_at_an_independent_server_once_in_order_and_with_contiguous_numbers";
    let seaweed = match Seaweed::start("logs") {
        Ok(seaweed) => seaweed,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let place = Place::new().unwrap();
    let outputs = archive(2, "max_bytes: 200KB, max_age: 1s", &[]);
    place.configure(&seaweed.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
    let mut first = LogWriter::open(&place.log("app-a.log"), "a", 150).unwrap();
    let mut second = LogWriter::open(&place.log("app-b.log"), "b", 90).unwrap();
    first.write(3000).unwrap();

    let mut wharf = place.start().unwrap();
    second.write(2000).unwrap();
    wharf.wait_until("the first file is followed", 30, || place.metric_at_least("wharf_durable_records_total", 3000.0));
    first.rotate().unwrap();
    first.write(1000).unwrap();
    wharf.wait_until("6,000 records are delivered", 60, || {
        place.metric_at_least("wharf_delivered_records_total", 6000.0)
    });
    wharf.stop();

    let read = seaweed.read_back(PREFIX).unwrap();
    read.assert_each_once(first.names().chain(second.names()));
    read.assert_contiguous(0);
    read.assert_in_order();
    assert!(read.objects.len() > 1, "one object alone says nothing about numbers");
}

#[test]
fn a_large_batch_goes_to_an_independent_server_in_parts() {
    let test = "a_large_batch_goes_to_an_independent_server_in_parts";
    let seaweed = match Seaweed::start("logs") {
        Ok(seaweed) => seaweed,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let place = Place::new().unwrap();
    let outputs = archive(1, "max_bytes: 14MB, max_age: 5m", &["multipart_threshold: 5MiB", "part_size: 5MiB"]);
    place.configure(&seaweed.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 1000).unwrap();
    writer.write(20_000).unwrap();

    let mut wharf = place.start().unwrap();
    wharf.wait_until("a batch is delivered", 90, || place.metric_at_least("wharf_delivered_records_total", 1.0));
    // The rest is delivered by the stop.
    wharf.stop();

    let read = seaweed.read_back(PREFIX).unwrap();
    read.assert_each_once(writer.names());
    read.assert_contiguous(0);
    read.assert_in_order();
}
