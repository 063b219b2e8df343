//! Records by HTTP: a 200 is a promise.

use std::net::{Ipv4Addr, SocketAddr};

use wharf_e2e::{Place, free_port, http, line};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::support::{archive, delivered, http_place, s3};

fn post_lines(to: SocketAddr, from: u64, count: u64) -> u16 {
    let body: String = (from..from + count).map(|number| line("h", number, 60) + "\n").collect();
    http::post(to, "/", "text/plain", body.as_bytes()).unwrap().status
}

#[test]
fn acknowledged_lines_survive_a_kill_and_are_delivered_once() {
    let s3 = s3();
    let (place, to) = http_place(&s3, Place::new().unwrap(), "max_bytes: 1MB, max_age: 1h");
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());
    for batch in 0..10 {
        assert_eq!(post_lines(to, batch * 10, 10), 200);
    }
    wharf.kill9();
    assert_eq!(delivered(&s3).lines(), 0, "no batch was due");
    place.start().unwrap().stop();
    delivered(&s3).assert_each_once((0..100).map(|number| format!("h-{number:08}")));
}

#[test]
fn json_keeps_its_keys_in_their_order() {
    let s3 = s3();
    let (place, to) = http_place(&s3, Place::new().unwrap(), "max_bytes: 1MB, max_age: 1h");
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());
    let body = b"{\"z\":1,\"a\":\"x\"}\n{\"b\":[1,2],\"a\":null}\n";
    assert_eq!(http::post(to, "/", "application/x-ndjson", body).unwrap().status, 200);
    wharf.stop();
    let objects = s3.objects();
    let text = String::from_utf8(objects.first().unwrap().body.to_vec()).unwrap();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().ends_with("\"z\":1,\"a\":\"x\"}"), "{text}");
    assert!(lines.next().unwrap().ends_with("\"b\":[1,2],\"a\":null}"), "{text}");
}

#[test]
fn a_bad_record_is_named_and_nothing_of_its_request_is_kept() {
    let s3 = s3();
    let (place, to) = http_place(&s3, Place::new().unwrap(), "max_bytes: 1MB, max_age: 1h");
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());
    let answer = http::post(to, "/", "application/x-ndjson", b"{\"a\":1}\n{\"b\":\n").unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains('2') || answer.text().contains('1'), "the record is not named: {}", answer.text());
    wharf.stop();
    assert!(s3.objects().is_empty());
}

#[test]
fn a_full_queue_is_a_503_with_a_time_to_come_back_and_not_a_loss() {
    let s3 = s3();
    s3.faults().add(Rule::on(Operation::PutObject, Fault::Error("ServiceUnavailable")));
    let place = Place::new().unwrap();
    let port = free_port().unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let outputs = archive(1, "max_bytes: 10KB, max_age: 1s", &[])
        .replace("    retry:", "    queue: { max_size: 200KB }\n    retry:");
    let source = format!("sources:\n  http:\n    type: http\n    listen: \"127.0.0.1:{port}\"\n");
    place.configure(&s3.endpoint(), &format!("{source}{outputs}")).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("lines are taken", 30, || http::get(to, "/").is_ok());
    let mut taken = Vec::new();
    let refused = loop {
        let from = taken.len() as u64 * 50;
        let body: String = (from..from + 50).map(|number| line("h", number, 100) + "\n").collect();
        let answer = http::post(to, "/", "text/plain", body.as_bytes()).unwrap();
        if answer.status != 200 {
            break answer;
        }
        taken.push(from);
        assert!(taken.len() < 1000, "5 MB were taken into a queue of 200 KB");
    };
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert!(!taken.is_empty(), "nothing was taken at all");
    let ready = place.admin("/ready").unwrap();
    assert_eq!(ready.status, 503);
    assert!(ready.text().starts_with("not ready: output archive: its queue is full, "), "{}", ready.text());
    let labels = ["source=\"http\"", "reason=\"queue_full\""];
    assert_eq!(place.metric("wharf_source_refused_requests_total", &labels), Some(1.0));

    s3.faults().clear();
    wharf.wait_until("what was taken is delivered", 60, || delivered(&s3).lines() >= taken.len() * 50);
    wharf.wait_until("lines are taken again", 30, || post_lines(to, 1_000_000, 1) == 200);
    assert_eq!(place.admin("/ready").unwrap().status, 200);
    wharf.stop();
    let expected = (0..taken.len() as u64 * 50).chain([1_000_000]);
    delivered(&s3).assert_each_once(expected.map(|number| format!("h-{number:08}")));
}
