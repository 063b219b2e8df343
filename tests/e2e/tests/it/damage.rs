//! Damage between two runs: what can be saved is delivered once, what cannot is set aside and reported, nothing is overwritten.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use wharf_e2e::{Delivered, Place, http, line};
use wharf_local_aws::{Fault, Operation, Rule, S3};

use crate::support::{assert_no_overwrites, delivered, http_place, s3};

/// Requests, each one chunk at least.
const REQUESTS: u64 = 40;
const LINES: u64 = 50;

/// A place whose journal holds [`REQUESTS`] × [`LINES`] lines that the service refused to take, and which was stopped. Some lines before
/// them were delivered, so that the counter stands above 0.
fn place_with_undelivered_lines(s3: &S3) -> Place {
    let (place, to) = http_place(s3, Place::new().unwrap(), "max_bytes: 100KB, max_age: 500ms");
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), format!("grace: 1s\n{config}")).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());
    let post = |source: &str, from: u64| {
        let body: String = (from..from + LINES).map(|number| line(source, number, 200) + "\n").collect();
        assert_eq!(http::post(to, "/", "text/plain", body.as_bytes()).unwrap().status, 200);
    };
    post("early", 0);
    wharf.wait_until("the first lines are delivered", 30, || delivered(s3).lines() as u64 >= LINES);
    wharf.wait_until("they are settled", 30, || place.all_settled());
    s3.faults().add(Rule::on(Operation::PutObject, Fault::Error("AccessDenied")));
    for request in 0..REQUESTS {
        post("late", request * LINES);
    }
    wharf.stop();
    s3.faults().clear();
    place
}

fn early() -> impl Iterator<Item = String> {
    (0..LINES).map(|number| format!("early-{number:08}"))
}

fn late() -> impl Iterator<Item = String> {
    (0..REQUESTS * LINES).map(|number| format!("late-{number:08}"))
}

/// The segment that holds this text, and where.
fn find_in_segments(place: &Place, needle: &str) -> (PathBuf, u64) {
    for entry in fs::read_dir(place.data().join("journal")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = Vec::new();
        fs::File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle.as_bytes()) {
            return (path, at as u64);
        }
    }
    panic!("no segment holds {needle}");
}

/// Starts, waits until nothing is left to deliver, and stops.
fn drain(place: &Place) {
    let mut wharf = place.start().unwrap();
    wharf.wait_until("everything that is left is delivered", 60, || place.all_settled());
    wharf.stop();
}

fn lost(all: &Delivered) -> Vec<String> {
    let there = all.distinct();
    late().filter(|name| !there.contains(name)).collect()
}

#[test]
fn a_flipped_byte_costs_its_chunk_alone_and_is_reported() {
    let s3 = s3();
    let place = place_with_undelivered_lines(&s3);
    // In the middle of what waits.
    let (segment, at) = find_in_segments(&place, &format!("late-{:08}", REQUESTS * LINES / 2));
    let mut file = OpenOptions::new().write(true).open(&segment).unwrap();
    file.seek(SeekFrom::Start(at + 20)).unwrap();
    file.write_all(b"\x00").unwrap();
    drop(file);

    drain(&place);
    let all = delivered(&s3);
    all.assert_none_twice();
    assert_no_overwrites(&s3);
    let lost = lost(&all);
    assert!(!lost.is_empty(), "the damage went unnoticed");
    assert!(lost.len() as u64 <= REQUESTS * LINES / 4, "{} records went with one flipped byte", lost.len());
    assert!(early().all(|name| all.distinct().contains(&name)));
    let aside = fs::read_dir(place.data().join("quarantine")).unwrap().count();
    assert!(aside > 0, "nothing was set aside");
    let log = fs::read_to_string(place.wharf_log()).unwrap();
    assert!(log.contains("quarantine"), "the log does not name what was set aside");
}

#[test]
fn a_segment_that_was_cut_off_costs_what_was_cut_and_nothing_else() {
    let s3 = s3();
    let place = place_with_undelivered_lines(&s3);
    let (segment, at) = find_in_segments(&place, &format!("late-{:08}", REQUESTS * LINES * 3 / 4));
    OpenOptions::new().write(true).open(&segment).unwrap().set_len(at + 10).unwrap();

    drain(&place);
    let all = delivered(&s3);
    all.assert_none_twice();
    assert_no_overwrites(&s3);
    let there = all.distinct();
    let before = late().take((REQUESTS * LINES / 2) as usize).filter(|name| !there.contains(name)).count();
    assert_eq!(before, 0, "records before the cut are lost");
    assert!(early().all(|name| there.contains(&name)));
    assert!(!lost(&all).is_empty());
}

#[test]
fn without_its_state_wharf_overwrites_nothing_and_loses_nothing() {
    let s3 = s3();
    let place = place_with_undelivered_lines(&s3);
    fs::remove_dir_all(place.data().join("state")).unwrap();

    drain(&place);
    let all = delivered(&s3);
    all.assert_each_once(early().chain(late()));
    assert_no_overwrites(&s3);
    let log = fs::read_to_string(place.wharf_log()).unwrap().to_lowercase();
    assert!(log.contains("state") && (log.contains("rebuil") || log.contains("anew")), "the rebuild was not reported");
}

#[test]
fn with_garbage_for_its_state_wharf_overwrites_nothing_and_loses_nothing() {
    let s3 = s3();
    let place = place_with_undelivered_lines(&s3);
    for entry in fs::read_dir(place.data().join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let length = fs::metadata(&path).unwrap().len();
            fs::write(&path, vec![0xa5_u8; length as usize]).unwrap();
        }
    }

    drain(&place);
    delivered(&s3).assert_each_once(early().chain(late()));
    assert_no_overwrites(&s3);
}
